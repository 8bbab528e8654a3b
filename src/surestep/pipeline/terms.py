"""The terms of an improvement: what a user said, and what was taken where nothing was said."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from msgspec.structs import asdict

import surestep._arrays as arrays
import surestep.description as keys
from surestep._arrays import BoolArray
from surestep.algorithms import SPIBB, Algorithm, Limits, is_algorithm, kind_of, make_algorithm
from surestep.algorithms.limits import limited
from surestep.algorithms.provable import Provable
from surestep.algorithms.registry import settings_of
from surestep.bounds import ProblemSize, equivalent_n_wedge
from surestep.certificates import Asked, Certifier, Posterior
from surestep.certificates.episodes import Logger
from surestep.certificates.known import Known, Split
from surestep.certificates.named import read_settings
from surestep.certificates.ranges import NOTHING, Ranges, single_rewards, with_zero
from surestep.certificates.stitched import Stitched
from surestep.choosing_n_wedge import AutoNWedge, Method, n_wedge_setting
from surestep.description import Description
from surestep.errors import InvalidParameter, said
from surestep.model import Problem, Statement
from surestep.model.problem import UnseenRule
from surestep.pipeline.certifiers import BOUND_OF, DataFacts
from surestep.rehearsal.rehearse import MOST_OF_A_KIND

ROUNDS = (5, 20, 80)  # of provable policies among the candidates
MOST_PROGRAMMED = 10_000  # pairs up to which they are: each program then takes a few seconds

SEED = 1  # of certificates, where none is given: fixed for all data, so that nobody tries others


# The share of a log that chooses the policy: of up to so many episodes, and from so many on.
SMALL_LOG, LARGE_LOG = (100, 0.5), (500, 0.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of an improvement as a user gave them, checked; None where nothing was said."""

    discount: float
    algorithm: str | Algorithm | None = None  # a name, with settings behind a colon, or an object
    n_wedge: int | Literal["auto"] | None = None
    zeta: float | None = None
    least_visits: int | None = None
    delta: float | None = None
    running: tuple[float, float] | None = None
    ending: tuple[float, float] | None = None
    returns: tuple[float, float] | None = None
    unseen: UnseenRule | None = None
    certificates: Sequence[str | Certifier] | None = None  # the one to stand by first
    train_share: float | None = None
    logger: Logger | None = None
    worlds: int | None = None
    has_episodes: bool = True  # what the data say, once they are known: whole ones, not counts

    @classmethod
    def of(cls, description: Description, **objects: Any) -> Terms:
        """Returns the terms that a description gives; `objects` of Python stand in for texts."""
        stakes, method = description.stakes, description.method
        if stakes.discount is None:
            raise InvalidParameter(
                "nobody says how much the next step counts; expected "
                f"{said('discount=…', '--discount, or discount under [stakes]')}, from 0 to 1"
            )
        given = asdict(stakes) | asdict(method) | objects
        return cls(logger=description.behavior.logger, **given)

    def __post_init__(self) -> None:
        """Refuses what contradicts itself, before anything is read."""
        checked = keys.described(self.given())
        for table in (checked.stakes, checked.method):
            for name in {*table.__struct_fields__} - {"algorithm", "certificates"}:
                object.__setattr__(self, name, getattr(table, name))
        for wrong in self.contradictions():
            raise InvalidParameter(wrong)

    def contradictions(self) -> Iterator[str]:
        """Yields what is said twice, or cannot be together."""
        if self.n_wedge is not None and self.zeta is not None:
            yield "both n_wedge and zeta are given, expected at most one of them"
        algorithm, settings, wedge = self.named
        for name in ("n_wedge", "zeta"):
            if getattr(self, name) is not None and wedge is None:
                yield f"{name} is given, but {algorithm} has no N∧"
            if getattr(self, name) is not None and self.brings_wedge:
                yield f"{name} is given beside the N∧ of the algorithm, expected one of them"
        own = settings.get("delta")
        if self.delta is not None and own not in (None, self.delta):
            yield (
                f"delta is {self.delta!r}, but the setting delta is {own!r}; expected one δ for "
                "the algorithm and the certificate"
            )
        texts = [str(asked) for asked in self.asked]
        if not texts or len(set(texts)) < len(texts):
            found = ", ".join(texts) or "none"
            yield f"the certificates asked for are {found}; expected at least one, and none twice"
        if self.worlds:
            least, obstacle = self.least_worlds, self.asked[0].why_not_rehearsed
            if self.worlds < least:
                yield (
                    f"worlds is {self.worlds}, expected 0, or at least {arrays.in_digits(least)} "
                    "of each kind: fewer do not show what happens so rarely"
                )
            arrays.expect_count("worlds", self.worlds, MOST_OF_A_KIND)
            if obstacle:
                yield f"worlds is {self.worlds}, but {obstacle}"
        for name in ("train_share", "logger"):
            ours = getattr(self, name)
            if ours is not None and not self.has_episodes:
                yield (
                    f"{name} is given, but the data are no episodes in their order, so that they "
                    "cannot be split; expected a log with columns of episodes and steps"
                )
            for asked in self.asked:
                theirs = asked.settings.get(name)
                if ours is not None and theirs not in (None, 0, ours):
                    yield (
                        f"{name} is {arrays.shown(ours)}, but {asked} says {arrays.shown(theirs)}; "
                        "expected the same: the log is split once"
                    )

    def given(self) -> dict[str, Any]:
        """Returns what was said, as a description has it: objects of Python as texts."""
        given = {
            field.name: arrays.plain(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if field.name != "has_episodes"
        }
        if isinstance(self.certificates, list | tuple):
            given["certificates"] = [str(Asked.of(kind)) for kind in self.certificates]
        if not isinstance(self.algorithm, str | None):
            if not is_algorithm(self.algorithm):
                raise InvalidParameter(
                    f"algorithm is of type {type(self.algorithm).__name__}, expected a name or one "
                    "of surestep.algorithms with its settings"
                )
            settings = settings_of(self.algorithm)
            given["algorithm"] = str(Asked(settings.pop("algorithm"), settings))
        return keys.in_words(**given)

    @property
    def brings_wedge(self) -> bool:
        """Tells whether the algorithm brings an N∧ of its own, as an object or a setting."""
        _, settings, wedge = self.named
        is_object = not isinstance(self.algorithm, str | None)
        return wedge is not None and (is_object or wedge in settings)

    @property
    def named(self) -> tuple[str, dict[str, Any], str | None]:
        """Returns the name of the algorithm, the settings behind it, and which of them is N∧."""
        if not isinstance(self.algorithm, str | None):
            return self.algorithm.name, {}, n_wedge_setting(self.algorithm)
        name, settings = read_settings(self.algorithm or keys.DEFAULTS["algorithm"])
        return name, settings, n_wedge_setting(kind_of(name))

    @property
    def asked(self) -> tuple[Asked, ...]:
        """The certificates that are made; the first is the one to stand by."""
        usual = keys.DEFAULT_CERTIFICATES if self.has_episodes else keys.DEFAULT_OF_COUNTS
        given = usual if self.certificates is None else self.certificates
        return tuple(map(Asked.of, [given] if isinstance(given, str) else given))

    def certifier_settings(self, facts: DataFacts) -> Known:
        """Returns the settings of certifiers, but for what depends on the algorithm."""
        split = Split(self.share_of(facts.episodes), self.said_of_split("logger"))
        return Known(
            delta=self.level,
            reward_bounds=self.ranges(facts).rewards if self.is_declared else None,
            ranges=self.declared_ranges,
            rewards_seen=facts.rewards,
            rewards_vary=facts.rewards_vary,
            transitions=facts.transitions,
            seed=SEED,
            split=split if self.has_episodes else None,
            returns=self.return_bounds(facts),
        )

    def share_of(self, episodes: int) -> float:
        """Returns the share of so many recorded episodes that chooses the policy."""
        return self.said_of_split("train_share") or usual_train_share(episodes)

    def said_of_split(self, name: str) -> Any:
        """Returns what was said of the split: what is said of one kind holds for all."""
        kinds = [asked.settings for asked in self.asked if asked.settings.get("train_share") != 0]
        values = [getattr(self, name), *(settings.get(name) for settings in kinds)]
        return next((value for value in values if value is not None), keys.DEFAULTS.get(name))

    @property
    def splits(self) -> bool:
        """Tells whether a part of the data is held out, to judge by."""
        takes = (asked for asked in self.asked if "train_share" in asked.takes)
        return self.has_episodes and any(asked.settings.get("train_share") != 0 for asked in takes)

    @property
    def least_worlds(self) -> int:
        """Counts the worlds of each kind that a rehearsal needs, to calibrate a posterior."""
        first = self.asked[0]
        delta = float(first.settings.get("delta", self.level))
        return arrays.least_draws(delta) if first.kind == Posterior.name else 1

    @property
    def level(self) -> float:
        """δ."""
        return float(self.used("delta"))

    def defaults(self) -> tuple[str, ...]:
        """Returns the parameters that nobody gave, and that something was taken for."""
        void = [] if self.splits else ["train_share", "logger"]
        if self.floor is None:
            void.append("least_visits")
        if self.is_declared:
            void += ["running", "ending"]  # a range that is left out is 0, or follows from returns
        if self.named[2] is None or self.brings_wedge or self.zeta is not None:
            void.append("n_wedge")
        told = [field.name for field in dataclasses.fields(self)]
        usual = {*keys.DEFAULTS, *keys.BY_DEFAULT} - {*void}
        return tuple(name for name in told if name in usual and getattr(self, name) is None)

    def used(self, name: str) -> Any:
        """Returns what was said of a term, or what is taken where nobody said anything."""
        value = getattr(self, name)
        return keys.DEFAULTS.get(name) if value is None else value

    @property
    def floor(self) -> int | None:
        """Returns the least visits of what may change; None where an N∧ was given, which wins."""
        given = isinstance(self.n_wedge, int) or self.brings_wedge
        return None if given else int(self.used("least_visits"))

    def algorithm_for(
        self, problem: Problem, told: Known, certifiers: Sequence[Certifier], limits: Limits
    ) -> Method:
        """Returns what improves: N∧ as given, from ζ, or chosen by one of the certifiers.

        Where nobody named an algorithm and rollouts of the first part choose, provable policies and
        those with one action in every state are among the candidates. `told` is what the certifiers
        were told.
        """
        if not isinstance(self.algorithm, str | None):
            return limited(self.algorithm, limits)
        (name, settings, wedge), least = self.named, 0
        if "delta" in {field.name for field in dataclasses.fields(kind_of(name))}:
            settings.setdefault("delta", self.level)
        if wedge is not None and self.floor is None:
            settings.setdefault(wedge, self.n_wedge)
        elif wedge is not None and self.floor is not None:
            least = max(1, self.floor - 1)
            if name in BOUND_OF:  # asked for an N∧ of SPIBB, it uses another one
                size = ProblemSize(problem.num_states, problem.num_actions, settings["delta"])
                least = equivalent_n_wedge(least, size, given=BOUND_OF[name], wanted="spibb")
            settings[wedge] = least
            if self.zeta is not None:
                wanted = SPIBB.for_zeta(self.zeta, problem, "spibb", self.level).n_wedge
                settings[wedge] = max(wanted, least)
        algorithm = make_algorithm(name, **settings)
        if not least or self.zeta is not None:
            return limited(algorithm, limits)
        first, *others = choosers(certifiers, told)
        small = problem.counts.pairs.num_pairs <= MOST_PROGRAMMED
        more = self.algorithm is None and isinstance(first, Stitched)
        return AutoNWedge(
            algorithm=algorithm,
            certifier=first,
            least=least,
            otherwise=others[0] if others else None,
            limits=limits,
            beside=tuple(Provable(rounds=m) for m in ROUNDS) if more and small else (),
            one_action=more,
        )

    @property
    def is_declared(self) -> bool:
        """Tells whether somebody said what steps may earn, or what episodes return."""
        return any(given is not None for given in (self.running, self.ending, self.returns))

    @property
    def declared_ranges(self) -> Ranges | None:
        """Returns what single steps may earn, where somebody declared it."""
        if self.running is None and self.ending is None:
            return None
        return Ranges(self.running or NOTHING, self.ending or NOTHING)

    def ranges(self, facts: DataFacts) -> Ranges:
        """Returns what single steps may earn: as declared, or else as seen in the log.

        Of two ranges, one that is left out says that such steps earn exactly 0.
        """
        if self.declared_ranges is not None:
            return self.declared_ranges
        if self.returns is not None:
            return single_rewards(self.returns, self.discount)
        return facts.ranges

    def return_bounds(self, facts: DataFacts) -> tuple[float, float]:
        """Returns the bounds of returns: as declared, or what single steps allow."""
        if self.returns is not None:
            return self.returns
        return self.ranges(facts).returns(self.discount)

    def value_bounds(self, facts: DataFacts, terminal: BoolArray) -> tuple[float, float]:
        """Returns the bounds of values of all states, of which some may be ends, worth 0."""
        bounds = self.return_bounds(facts)
        return with_zero(bounds) if self.returns is not None or terminal.any() else bounds

    def premises(self, facts: DataFacts) -> tuple[Statement, ...]:
        """Returns what is taken for granted of rewards: what was declared, or what was seen."""
        premises = []
        if self.returns is not None:
            low, high = self.returns
            premises.append(Statement("returns-bounded-from-any-step", {"low": low, "high": high}))
        if self.returns is None or self.declared_ranges is not None:
            premises.append(self.ranges(facts).statement(declared=self.is_declared))
        return tuple(premises)


def usual_train_share(episodes: int) -> float:
    """Returns the share of so many episodes that chooses the policy, where nobody says another.

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
    """Returns by whose lower bounds N∧ is chosen: the first certificate's; and where it may not
    choose, or expects no gain, those of a posterior that is made beside it, or for that.
    """
    first, *others = certifiers
    believers: list[Certifier] = [
        certifier for certifier in others if isinstance(certifier, Posterior)
    ]
    if first.may_choose:
        return [first, *believers[:1]]
    return believers[:1] or [Asked("posterior", {}).make_with(told)]
