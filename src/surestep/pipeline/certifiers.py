"""Which certificates a result carries, with which settings, and what a refusal becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from surestep.algorithms import Algorithm
from surestep.certificates import (
    Asked,
    Certifier,
    NoClaim,
    Posterior,
    Trajectory,
    certify,
    certify_at,
)
from surestep.certificates.certifying import certify_batch, with_delta
from surestep.certificates.episodes import Logger, holds_out, split_of
from surestep.certificates.trajectory import PROVED
from surestep.errors import CertificateRefused, InvalidParameter, RefutedBounds
from surestep.io.counts.labelled import LabelledCounts
from surestep.model import Certificate, Counts, Policy, Problem

BOUND_OF = {"spibb-2s": "2s", "spibb-beta": "beta"}  # all others: SPIBB's
DELTAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


class RewardFacts(NamedTuple):
    """The facts about single rewards that the data show."""

    bounds: tuple[float, float]  # the smallest and the largest one, and 0, which an end earns
    vary: bool  # one transition earned different rewards

    @classmethod
    def of(cls, counts: LabelledCounts) -> RewardFacts:
        """Returns the facts, from the least and the greatest reward of each transition."""
        least, greatest = counts.transitions.least_reward, counts.transitions.greatest_reward
        unit = 10**counts.scale
        low, high = int(least.min(initial=0)) / unit, int(greatest.max(initial=0)) / unit
        return cls((low, high), bool((least != greatest).any()))


class Split(NamedTuple):
    """The split of a log into a part that chooses the policy, and one that judges it."""

    train_share: float
    logger: Logger


class Settings(NamedTuple):
    """Settings of certifiers, for whatever a certificate that is asked for leaves open."""

    delta: float
    reward_bounds: tuple[float, float] | None  # as given; None: nobody said
    rewards: RewardFacts
    seed: int
    split: Split | None  # None where the data cannot be split
    bound: str = "spibb"  # of a-priori
    n_wedge: int | None = None  # of a-priori: fixed before the data, or None
    returns: tuple[float, float] | None = None  # the bounds of returns as given
    single_returns: tuple[float, float] | None = None  # what single rewards allow an episode

    def of_algorithm(self, algorithm: Algorithm, n_wedge: int | None) -> Settings:
        """Returns these with the published bound that goes with the algorithm, at its N∧."""
        # 0 visits buy nothing: then the certifier finds its own.
        return self._replace(bound=BOUND_OF.get(algorithm.name, "spibb"), n_wedge=n_wedge or None)

    def certifier(self, asked: Asked) -> Certifier:
        """The certifier with everything that it takes and was not told."""
        more: dict[str, object] = {"delta": self.delta, "seed": self.seed}
        if self.split is not None:
            more |= self.split._asdict()
        if asked.kind == "a-priori":
            more |= {"bound": self.bound, "n_wedge": self.n_wedge}
        if asked.kind == "posterior" and self.rewards.vary:
            more["rewards"] = "bounded"
        if not {"reward_low", "reward_high"} & set(asked.settings):
            bounds = self.reward_bounds
            if self.needs_reward_bounds(asked):
                bounds = self.rewards.bounds if bounds is None else bounds
            elif asked.kind == "trajectory":
                bounds = None  # it asks for none
            if bounds is not None:
                more |= {"reward_low": bounds[0], "reward_high": bounds[1]}
        returns = self.returns
        if returns is None and asked.kind == "stitched":
            returns = self.single_returns
        if returns is not None and self.takes_returns(asked):
            more |= {"return_low": returns[0], "return_high": returns[1]}
        known = {name: value for name, value in more.items() if name in asked.takes}
        certifier = asked.make(**known)
        exact = isinstance(certifier, Posterior) and certifier.rewards == "deterministic"
        if exact and self.rewards.vary:
            raise InvalidParameter(
                "rewards is 'deterministic', but one transition earned different rewards; expected "
                "'bounded', or leave it out"
            )
        return certifier

    def takes_returns(self, asked: Asked) -> bool:
        """Tells whether the claim takes bounds of returns, and was not told them itself."""
        if {"return_low", "return_high"} & set(asked.settings):
            return False
        whole = asked.settings.get("estimator") == "is" and "horizon" not in asked.settings
        return asked.kind != "trajectory" or (whole and self.needs_reward_bounds(asked))

    def needs_reward_bounds(self, asked: Asked) -> bool:
        """Tells whether the claim rests on bounds of the rewards."""
        if asked.kind == "posterior":
            usual = "bounded" if self.rewards.vary else "deterministic"
            return bool(asked.settings.get("rewards", usual) == "bounded")
        interval = Trajectory.__dataclass_fields__["interval"].default
        proved = asked.settings.get("interval", interval) in PROVED
        return asked.kind == "robust" or (asked.kind == "trajectory" and proved)


def mean_reward_range(counts: Counts) -> tuple[float, float]:
    """The smallest and the largest mean reward of a transition, and 0."""
    seen = counts.times > 0
    means = counts.rewards.values[seen] / counts.times[seen]
    return min(0.0, float(means.min(initial=0.0))), max(0.0, float(means.max(initial=0.0)))


def certified(problem: Problem, policy: Policy, certifier: Certifier) -> Certificate:
    """The claim of the certifier, or where it refuses, a certificate that says so.

    Bounds that the data refute are a mistake of whoever gave them, and no answer: they are raised.
    """
    try:
        return certify(problem, policy, certifier)
    except RefutedBounds:
        raise
    except CertificateRefused as refusal:
        return no_claim(problem, policy, certifier, refusal)


class Claims(NamedTuple):
    """The claim at the certifier's own δ, and those at others."""

    own: Certificate
    at: tuple[Certificate, ...]  # rising δ; empty where the certifier refuses


def certified_at_levels(problem: Problem, policy: Policy, certifier: Certifier) -> Claims:
    """Returns the claim, and the same at other δ; for the price of one where that is possible."""
    levels = sorted({*filter(lambda delta: suits(certifier, delta), DELTAS), certifier.delta})
    if isinstance(certifier, Posterior):
        try:
            claims = certify_at(problem, policy, certifier, levels)
        except RefutedBounds:
            raise
        except CertificateRefused as refusal:
            return Claims(no_claim(problem, policy, certifier, refusal), ())
        return Claims(claims[levels.index(certifier.delta)], tuple(claims))
    own = certified(problem, policy, certifier)
    if own.lower is None:
        return Claims(own, ())
    found = [
        own
        if delta == own.delta
        else certify_batch([problem], [policy], with_delta(certifier, delta))[0]
        for delta in levels
    ]
    return Claims(own, tuple(each for each in found if isinstance(each, Certificate)))


def suits(certifier: Certifier, delta: float) -> bool:
    """Tells whether so small a δ can be claimed with these settings."""
    return not isinstance(certifier, Posterior) or delta * (certifier.draws + 1) >= 1 - 1e-9


def no_claim(
    problem: Problem, policy: Policy, certifier: Certifier, refusal: CertificateRefused
) -> Certificate:
    """Returns a certificate that says what was asked for, and why there is none."""
    nothing = NoClaim(refusal=str(refusal), asked=certifier.name, delta=certifier.delta)
    return certify(problem, policy, nothing)


def splitting(certifiers: Sequence[Certifier]) -> Certifier | None:
    """Returns a certifier whose training part alone may choose the policy, where one holds out.

    The log is split once, so several of them must agree on the split.
    """
    for each in certifiers:
        if each.needs.held_out and not holds_out(each):
            raise InvalidParameter(
                f"a {each.name} certificate has train_share 0, which says that the policy was "
                "chosen without this log; expected more than 0, or `surestep certify` with another "
                "log"
            )
    split = [each for each in certifiers if holds_out(each)]
    if len({split_of(each) for each in split}) > 1:
        raise InvalidParameter(
            "certificates with different train_share, logger or seed are asked for, but only one "
            "part of the log can choose the policy; expected the same for all"
        )
    return split[0] if split else None
