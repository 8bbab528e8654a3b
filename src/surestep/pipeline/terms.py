"""Holds the terms of an improvement: the user's settings, and the defaults of all others.

The certificates of a result get their settings from these terms and from facts about the data.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import surestep.description as keys
from surestep._arrays import BoolArray, in_digits, least_draws, shown
from surestep.algorithms import SPIBB, Algorithm, Constrained, Provable, make_algorithm
from surestep.algorithms.contract import Limited, Limits, limited
from surestep.algorithms.registry import is_algorithm, kind_of, needs_log, settings_of
from surestep.algorithms.trees import StateColumn
from surestep.bounds import ProblemSize, equivalent_n_wedge
from surestep.candidates import n_wedge_setting
from surestep.certificates import Certifier, certify
from surestep.certificates.episodes import holds_out, needs_episodes, split_of
from surestep.certificates.registry import Asked, NoClaim, read_settings
from surestep.choosing_n_wedge import AutoNWedge
from surestep.choosing_within_limits import ConstrainedChoice
from surestep.errors import CertificateRefused, InvalidParameter, RefutedBounds, said
from surestep.io.counts.labelled import LabelledCounts
from surestep.io.logs.loading import BY_CLOCK, UNFINISHED
from surestep.model import Certificate, Policy, Problem, Statement
from surestep.model.known import NOTHING, Known, Ranges, Split, hull, single_rewards, with_zero

ROUNDS = (5, 20, 80)  # of provable policies among the candidates
# Whatever a pipeline may improve with.
Improving = Algorithm | AutoNWedge | ConstrainedChoice | Limited
MOST_PROGRAMMED = 10_000  # pairs up to which they are: each program then takes a few seconds

SEED = 1  # of certificates, where none is given: fixed for all data, so that nobody tries others
BOUND_OF = {"spibb-2s": "2s", "spibb-beta": "beta"}  # all others: SPIBB's

# The share of a log that chooses the policy: of up to so many episodes, and from so many on.
SMALL_LOG = (100, 0.5)
LARGE_LOG = (500, 0.3)


def facts_of(counts: LabelledCounts) -> Known:
    """Returns the facts about the data that counts tell, before anybody said anything."""
    rows = counts.transitions
    unit = 10**counts.scale
    least, greatest = rows.least_reward, rows.greatest_reward

    def seen(which: BoolArray, *dropped: str) -> tuple[float, float]:
        ends = [earned for why, earned in counts.dropped_rewards.items() if why in dropped]
        if which.any():
            ends.append((int(least[which].min()) / unit, int(greatest[which].max()) / unit))
        return hull(ends)

    return Known(
        # A clock stops what goes on; a step whose outcome nobody knows may be of either kind.
        single=Ranges(
            seen(~rows.terminated, *BY_CLOCK, UNFINISHED), seen(rows.terminated, UNFINISHED)
        ),
        rewards_vary=bool((least != greatest).any()),
        transitions=least.size,
        episodes=counts.episodes.recorded,
        steps=counts.rows_read,
    )


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of an improvement as a user gave them, checked; None where nothing was said."""

    stakes: keys.Stakes
    method: keys.MethodKeys
    behavior: keys.Behavior  # only its logger is set
    algorithm: Algorithm | None = None  # an object of Python, for which `method` has a text
    certificates: Sequence[str | Certifier] | None = None  # likewise; the main one first
    has_episodes: bool = True  # what the data say, once they are known: whole ones, not counts

    @classmethod
    def of(cls, description: keys.Description | None = None, **given: Any) -> Self:
        """Reads the terms of a description; arguments `given` in Python replace its values."""
        algorithm = given.get("algorithm")
        certificates = given.get("certificates")
        if not isinstance(algorithm, str | None):
            if not is_algorithm(algorithm):
                raise InvalidParameter(
                    f"algorithm is of type {type(algorithm).__name__}, expected a name or one of "
                    "surestep.algorithms with its settings"
                )
            settings = settings_of(algorithm)
            given["algorithm"] = str(Asked(settings.pop("algorithm"), settings))
        if isinstance(certificates, list | tuple):
            given["certificates"] = [str(Asked.of(kind)) for kind in certificates]
        below = {} if description is None else description.given()
        told = keys.described(keys.merged(below, keys.in_words(**given)))
        if told.stakes.discount is None:
            raise InvalidParameter(
                "nobody says how much the next step counts; expected "
                f"{said('discount=…', '--discount, or discount under [stakes]')}, from 0 to 1"
            )
        own = None if isinstance(algorithm, str) else algorithm
        terms = cls(
            told.stakes, told.method, keys.Behavior(logger=told.behavior.logger), own, certificates
        )
        for name, rule in [*told.signals.items()][1:]:
            try:
                terms.of_signal(rule)
            except InvalidParameter as problem:
                raise InvalidParameter(
                    f"signals.{name}{', a cost' * rule.cost}: {problem}"
                ) from None
        return terms

    def of_signal(self, rule: keys.SignalRule) -> Self:
        """Returns the terms of a further signal: its own ranges, and the discount of all or its."""
        own = {"discount": self.discount, **rule.stakes}
        return replace(self, stakes=keys.Stakes(**own))

    def __post_init__(self) -> None:
        for wrong in self.contradictions():
            raise InvalidParameter(wrong)
        if self.stakes.returns is None and self.declared_ranges is not None:
            self.declared_ranges.returns(self.discount)  # refused where they have no bounds

    def contradictions(self) -> Iterator[str]:
        """Yields a sentence for each two settings that contradict each other."""
        method = self.method
        algorithm, settings, wedge = self.named
        if method.n_wedge is not None and method.zeta is not None:
            yield "both n_wedge and zeta are given, expected at most one of them"
        for name in ("n_wedge", "zeta"):
            if self.said(name) is not None and wedge is None:
                yield f"{name} is given, but {algorithm} has no N∧"
            if self.said(name) is not None and self.brings_wedge:
                yield f"{name} is given beside the N∧ of the algorithm, expected one of them"
        if method.rules is not None and not self.may_follow_rules:
            yield "rules is given beside an algorithm, n_wedge or zeta, expected it without these"
        own = settings.get("delta")
        if method.delta is not None and own not in (None, method.delta):
            yield (
                f"delta is {method.delta!r}, but the setting delta is {own!r}; expected one δ for "
                "the algorithm and the certificate"
            )
        texts = [str(asked) for asked in self.asked]
        if not texts or len(set(texts)) < len(texts):
            kinds = ", ".join(texts) or "none"
            yield f"the certificates asked for are {kinds}; expected at least one, and none twice"
        if method.worlds:
            if method.worlds < self.least_worlds:
                yield (
                    f"worlds is {method.worlds}, expected 0, or at least "
                    f"{in_digits(self.least_worlds)} of each kind: fewer do not show what happens "
                    "so rarely"
                )
            if self.asked[0].why_not_rehearsed:
                yield f"worlds is {method.worlds}, but {self.asked[0].why_not_rehearsed}"
        yield from self.contradictions_of_split()

    def contradictions_of_split(self) -> Iterator[str]:
        """Yields a sentence if the data cannot be split, and for each two splits that differ."""
        for name in ("train_share", "logger"):
            ours = self.said(name)
            if ours is not None and not self.has_episodes:
                yield (
                    f"{name} is given, but the data are no episodes in their order, so that they "
                    "cannot be split; expected a log with columns of episodes and steps"
                )
            for asked in self.asked:
                theirs = asked.settings.get(name)
                if ours is not None and theirs not in (None, 0, ours):
                    yield (
                        f"{name} is {shown(ours)}, but {asked} says {shown(theirs)}; "
                        "expected the same: the log is split once"
                    )

    def given(self) -> dict[str, Any]:
        """Returns the keys that the user set, as a description has them: objects as texts."""
        return {part: getattr(self, part).given() for part in ("stakes", "method", "behavior")}

    def said(self, name: str) -> Any:
        """Returns the value that the user gave to a term; None: the user gave none."""
        return keys.at(self, keys.PATHS[name])

    def used(self, name: str) -> Any:
        """Returns the value that the user gave to a term, or its default."""
        value = self.said(name)
        return keys.DEFAULTS[name] if value is None else value

    @property
    def brings_wedge(self) -> bool:
        """Tells whether the algorithm brings an N∧ of its own, as an object or a setting."""
        _, settings, wedge = self.named
        return wedge is not None and (self.algorithm is not None or wedge in settings)

    @property
    def named(self) -> tuple[str, dict[str, Any], str | None]:
        """Returns the name of the algorithm, the settings behind it, and which of them is N∧."""
        if self.algorithm is not None:
            return self.algorithm.name, {}, n_wedge_setting(self.algorithm)
        name, settings = read_settings(self.used("algorithm"))
        return name, settings, n_wedge_setting(kind_of(name))

    @property
    def asked(self) -> tuple[Asked, ...]:
        """Returns the certificates to make, the main one first."""
        usual = keys.DEFAULT_CERTIFICATES if self.has_episodes else keys.DEFAULT_OF_COUNTS
        told = self.method.certificates if self.certificates is None else self.certificates
        given = usual if told is None else told
        return tuple(map(Asked.of, [given] if isinstance(given, str) else given))

    def certifier_settings(self, facts: Known) -> Known:
        """Returns the settings of certifiers that do not depend on the algorithm.

        Of two ranges of rewards, one that is left out says that such steps earn exactly 0.
        """
        split = Split(self.share_of(facts.episodes), self.of_split("logger") or "adaptive")
        single = self.declared_ranges or facts.single
        if self.declared_ranges is None and self.stakes.returns is not None:
            single = single_rewards(self.stakes.returns, self.discount)
        settled = facts._replace(
            delta=self.level,
            reward_bounds=single.rewards if self.is_declared else None,
            ranges=self.declared_ranges,
            single=single,
            rewards_seen=with_zero(facts.single.rewards),
            seed=SEED,
            split=split if self.has_episodes else None,
        )
        return settled._replace(returns=self.return_bounds(settled))

    def looking(self, certifiers: Sequence[Certifier]) -> list[str]:
        """Returns the names of the algorithm and certifiers that look at whole episodes."""
        algorithm: Any = self.algorithm or kind_of(self.named[0])
        own = [algorithm.name] if needs_log(algorithm) else []
        return own + [certifier.name for certifier in certifiers if needs_episodes(certifier)]

    def share_of(self, episodes: int) -> float:
        """Returns the share of the log that chooses the policy, for this number of episodes."""
        return self.of_split("train_share") or usual_train_share(episodes)

    def of_split(self, name: str) -> Any:
        """Returns a setting of the split that the user gave to all kinds, or to one; else None."""
        kinds = [asked.settings for asked in self.asked if asked.settings.get("train_share") != 0]
        values = [self.said(name), *(settings.get(name) for settings in kinds)]
        return next((value for value in values if value is not None), None)

    @property
    def splits(self) -> bool:
        """Tells whether a part of the data is held out, to judge by."""
        return self.has_episodes and any(
            "train_share" in asked.takes and asked.settings.get("train_share") != 0
            for asked in self.asked
        )

    @property
    def least_worlds(self) -> int:
        """Counts the worlds of each kind that a rehearsal needs, to calibrate a posterior."""
        first = self.asked[0]
        return (
            least_draws(float(first.settings.get("delta", self.level)))
            if first.type.calibrates
            else 1
        )

    @property
    def discount(self) -> float:
        """Returns γ, which the user has to give."""
        return self.stakes.discount or 0.0

    @property
    def level(self) -> float:
        """Returns δ."""
        return float(self.used("delta"))

    def defaults(self) -> tuple[str, ...]:
        """Returns the names of the parameters for which a default was taken."""
        void = {"behavior"} if self.splits else {"behavior", "train_share", "logger"}
        if self.floor is None:
            void.add("least_visits")
        if not self.may_follow_rules:
            void.add("rules")
        if self.is_declared:
            void |= {"running", "ending"}  # a range that is left out is 0, or follows from returns
        if self.named[2] is None or self.brings_wedge or self.method.zeta is not None:
            void.add("n_wedge")
        return tuple(x for x in keys.DEFAULTS if x not in void and self.said(x) is None)

    @property
    def floor(self) -> int | None:
        """Returns the least visits of a pair that may change; None where an N∧ was given."""
        given = isinstance(self.method.n_wedge, int) or self.brings_wedge
        return None if given else int(self.used("least_visits"))

    @property
    def may_follow_rules(self) -> bool:
        """Tells whether trees may be candidates: the user named no algorithm, no N∧ and no ζ."""
        method = self.method
        open_wedge = method.n_wedge in (None, keys.AUTO) and method.zeta is None
        return method.algorithm is None and self.algorithm is None and open_wedge

    def algorithm_for(
        self,
        problem: Problem,
        told: Known,
        certifiers: Sequence[Certifier],
        limits: Limits,
        columns: tuple[StateColumn, ...] = (),
    ) -> Improving:
        """Returns the algorithm: with N∧ as given, from ζ, or chosen by one of the certifiers.

        Where nobody named an algorithm and rollouts of the first part choose, provable policies,
        those with one action in every state, and trees over the columns of the state are among the
        candidates. Where there are further signals, only policies within their limits are. `told`
        is what the certifiers were told.
        """
        if self.algorithm is not None:
            return limited(self.algorithm, limits)
        name, settings, wedge = self.named
        least = 0
        if self.method.algorithm is None and problem.signals:
            name = Constrained.name  # Constrained has an N∧ as well
        if "delta" in {field.name for field in fields(kind_of(name))}:
            settings.setdefault("delta", self.level)
        if wedge is not None and self.floor is None:
            settings.setdefault(wedge, self.method.n_wedge)
        elif wedge is not None and self.floor is not None:
            least = max(1, self.floor - 1)
            if name in BOUND_OF:  # it converts an N∧ of SPIBB to its own
                size = ProblemSize(problem.num_states, problem.num_actions, settings["delta"])
                least = equivalent_n_wedge(least, size, given=BOUND_OF[name], wanted="spibb")
            settings[wedge] = least
            if self.method.zeta is not None:
                wanted = SPIBB.for_zeta(self.method.zeta, problem, "spibb", self.level).n_wedge
                settings[wedge] = max(wanted, least)
        algorithm = make_algorithm(name, **settings)
        if not least or self.method.zeta is not None:
            return limited(algorithm, limits)
        first, *others = choosers(certifiers, told)
        small = problem.counts.pairs.num_pairs <= MOST_PROGRAMMED
        more = self.method.algorithm is None and first.compares_many
        rules = int(self.used("rules")) if more and columns else 0
        if self.method.algorithm is None and isinstance(algorithm, Constrained):
            return ConstrainedChoice(
                algorithm=algorithm,
                certifier=first,
                rounds=ROUNDS if small else (algorithm.rounds,),
                otherwise=others[0] if others else None,
                limits=limits,
                one_action=more,
                columns=columns,
                rules=rules,
            )
        return AutoNWedge(
            algorithm=algorithm,
            certifier=first,
            least=least,
            otherwise=others[0] if others else None,
            limits=limits,
            beside=tuple(Provable(rounds=m) for m in ROUNDS) if more and small else (),
            one_action=more,
            columns=columns,
            rules=rules,
        )

    @property
    def is_declared(self) -> bool:
        """Tells whether the user declared ranges of rewards or of returns."""
        return any(self.said(name) is not None for name in keys.RANGES)

    @property
    def declared_ranges(self) -> Ranges | None:
        """Returns the ranges of rewards that the user declared; None: the user declared none."""
        told = self.stakes
        if told.running is None and told.ending is None:
            return None
        return Ranges(told.running or NOTHING, told.ending or NOTHING)

    def return_bounds(self, told: Known) -> tuple[float, float]:
        """Returns the bounds of returns: as declared, or as the rewards of single steps allow."""
        return self.stakes.returns or told.single.returns(self.discount)

    def value_bounds(self, told: Known, terminal: BoolArray) -> tuple[float, float]:
        """Returns the bounds of the values of all states; they contain 0, the value of an end."""
        bounds = self.return_bounds(told)
        return with_zero(bounds) if self.stakes.returns is not None or terminal.any() else bounds

    def premises(self, told: Known) -> tuple[Statement, ...]:
        """Returns the assumptions about rewards: as declared, or as seen."""
        premises = []
        if self.stakes.returns is not None:
            low, high = self.stakes.returns
            premises.append(Statement("returns-bounded-from-any-step", {"low": low, "high": high}))
        if self.stakes.returns is None or self.declared_ranges is not None:
            premises.append(told.single.statement(declared=self.is_declared))
        return tuple(premises)


def usual_train_share(episodes: int) -> float:
    """Returns the default share of the log that chooses the policy, for a number of episodes.

    Between a small log and a large one it falls with the logarithm. A single episode, which is
    split by its steps, counts as a large log.

    >>> [usual_train_share(episodes) for episodes in (50, 100, 300, 500, 50_000)]
    [0.5, 0.5, 0.36, 0.3, 0.3]
    """
    (few, most), (many, least) = SMALL_LOG, LARGE_LOG
    if episodes <= 1:
        return least
    large = math.log(max(episodes, few) / few) / math.log(many / few)
    return round(max(least, most - (most - least) * large), 2)


def choosers(certifiers: Sequence[Certifier], told: Known) -> list[Certifier]:
    """Returns the certifiers whose lower bounds choose N∧.

    The first certifier chooses. Where it may not, or expects no gain, a posterior does: the one
    beside it, or one made for that.
    """
    first, *others = certifiers
    believers = [certifier for certifier in others if certifier.calibrates]
    if first.may_choose:
        return [first, *believers[:1]]
    return believers[:1] or [Asked("posterior", {}).make_with(told)]


def with_algorithm(known: Known, algorithm: Algorithm, n_wedge: int | None) -> Known:
    """Adds the published bound of the algorithm, and its N∧, to the settings of certifiers."""
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
        return certify(
            problem,
            policy,
            NoClaim(
                refusal=str(refusal),
                code=refusal.code,
                asked=certifier.name,
                delta=certifier.delta,
            ),
        )


def splitting(certifiers: Sequence[Certifier]) -> Certifier | None:
    """Returns a certifier that holds out a part of the log; None if none does.

    The log is split once, so all certifiers that hold out must agree on the split.
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
