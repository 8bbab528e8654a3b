"""The certificates of a result, with their settings, and what a refusal becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from surestep._arrays import BoolArray
from surestep.algorithms import Algorithm
from surestep.certificates import Certifier, certify
from surestep.certificates.episodes import holds_out, split_of
from surestep.certificates.registry import NoClaim
from surestep.errors import CertificateRefused, InvalidParameter, RefutedBounds
from surestep.io.counts.labelled import LabelledCounts
from surestep.io.logs.loading import STOPPED, UNFINISHED
from surestep.model import Certificate, Policy, Problem
from surestep.model.known import Known, Ranges, hull, with_zero

BOUND_OF = {"spibb-2s": "2s", "spibb-beta": "beta"}  # all others: SPIBB's


class DataFacts(NamedTuple):
    """The facts about the data that settings of certificates follow from."""

    ranges: Ranges  # the rewards seen on the way and at ends; 0 where none are
    rewards_vary: bool  # one transition earned different rewards
    transitions: int  # different ones
    episodes: int = 0  # recorded

    @classmethod
    def of(cls, counts: LabelledCounts) -> DataFacts:
        """Returns the facts that counts tell."""
        rows, unit = counts.transitions, 10**counts.scale
        least, greatest = rows.least_reward, rows.greatest_reward

        def seen(which: BoolArray, *dropped: str) -> tuple[float, float]:
            ends = [earned for why, earned in counts.dropped_rewards.items() if why in dropped]
            if which.any():
                ends.append((int(least[which].min()) / unit, int(greatest[which].max()) / unit))
            return hull(ends)

        # A clock stops what goes on; a step whose outcome nobody knows may be of either kind.
        ranges = Ranges(
            seen(~rows.terminated, STOPPED, UNFINISHED), seen(rows.terminated, UNFINISHED)
        )
        vary, episodes = bool((least != greatest).any()), counts.episodes.recorded
        return cls(ranges, vary, least.size, episodes)

    @property
    def rewards(self) -> tuple[float, float]:
        """Returns the smallest and the largest reward, and 0, which an end earns."""
        return with_zero(self.ranges.rewards)


def with_algorithm(known: Known, algorithm: Algorithm, n_wedge: int | None) -> Known:
    """Returns what is known with the published bound that goes with the algorithm, at its N∧."""
    # 0 visits buy nothing: then the certifier finds its own.
    return known._replace(bound=BOUND_OF.get(algorithm.name, "spibb"), n_wedge=n_wedge or None)


def certified(problem: Problem, policy: Policy, certifier: Certifier) -> Certificate:
    """Returns the claim of the certifier, or a certificate with the reason why it refuses.

    Bounds that the data refute are a mistake of the user, and are raised.
    """
    try:
        return certify(problem, policy, certifier)
    except RefutedBounds:
        raise
    except CertificateRefused as refusal:
        nothing = NoClaim(
            refusal=str(refusal), code=refusal.code, asked=certifier.name, delta=certifier.delta
        )
        return certify(problem, policy, nothing)


def splitting(certifiers: Sequence[Certifier]) -> Certifier | None:
    """Returns a certifier whose training part alone may choose the policy, where one holds out.

    The log is split once, so several of them must agree on the split.
    """
    for certifier in certifiers:
        if certifier.needs.held_out and not holds_out(certifier):
            raise InvalidParameter(
                f"a {certifier.name} certificate has train_share 0, which says that the policy was "
                "chosen without this log; expected more than 0, or `surestep certify` with another "
                "log"
            )
    split = [certifier for certifier in certifiers if holds_out(certifier)]
    if len({split_of(certifier) for certifier in split}) > 1:
        raise InvalidParameter(
            "certificates with different train_share, logger or seed are asked for, but only one "
            "part of the log can choose the policy; expected the same for all"
        )
    return split[0] if split else None
