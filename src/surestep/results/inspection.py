"""Holds what `inspect` finds in a log: its sizes, its coverage, and what looks wrong."""

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple

from surestep.checks import Check
from surestep.io.labels.vocabulary import Label, Names
from surestep.io.logs.columns import ColumnMapping
from surestep.io.logs.findings import Suspicion
from surestep.io.logs.inspection import EpisodeLengths, Rewards
from surestep.model.noun import noun
from surestep.results.plots import VisitBin


class Coverage(NamedTuple):
    """The visits of pairs: every state with a decision, with every action of the log."""

    pairs: int  # states × actions
    never: int  # pairs without a visit
    trusted: int  # pairs with more than N∧ visits
    visits_trusted: int  # visits to the trusted pairs
    histogram: tuple[VisitBin, ...]  # numbers of pairs by their visits; one bin ends at N∧


class ActionUse(NamedTuple):
    """The number of times that an action was taken, and of states where it was."""

    action: Label
    visits: int
    states: int
    trusted_states: int  # those with more than N∧ visits


class StateUse(NamedTuple):
    """The number of times that each action was taken in a state, in the order of actions."""

    state: Label
    visits: tuple[int, ...]


class Overlap(NamedTuple):
    """The fit of a log to the policy that is said to have made it."""

    policy: str  # where it was read
    never_seen: int  # pairs that the policy takes in states of the log, but the log never shows
    impossible: int  # pairs that the log shows, but the policy never takes
    unlikely: int  # pairs taken far more or less often than the policy says
    states_unknown: int  # states of the log that the policy says nothing about
    states_unvisited: int  # states of the policy in which the log never decides


class Caution(NamedTuple):
    """A limit of what can be learned from the log."""

    kind: str
    says: str


@noun("source", "rows", "states", "n_wedge")
@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The findings of one look at a log."""

    source: str
    columns: ColumnMapping
    n_wedge: int
    rows: int
    unfinished: int  # rows without a known outcome; they are not visits
    states: int  # in which a row decides
    states_only_reached: int  # next states in which no row decides
    actions: tuple[ActionUse, ...]
    episodes: EpisodeLengths | None  # None for loose transitions
    rewards: Rewards | None  # None where no reward is a number
    coverage: Coverage
    states_by_tried: tuple[int, ...]  # [A+1] states in which 0, 1, … A actions were tried
    states_by_trusted: tuple[int, ...]  # [A+1] the same for actions with more than N∧ visits
    busiest: tuple[StateUse, ...]  # the states with most rows, in falling order
    overlap: Overlap | None  # None where no policy was given
    cautions: tuple[Caution, ...]
    suspicions: tuple[Suspicion, ...]
    names: Names = field(default_factory=dict)  # display names of texts, by column
    checks: tuple[Check, ...]  # of the assumptions of claims about the log

    @property
    def refused(self) -> bool:
        """Tells whether counting refuses the log as it is."""
        return any(suspicion.refused for suspicion in self.suspicions)

    @property
    def visits(self) -> int:
        """Counts the visits of all pairs."""
        return sum(use.visits for use in self.actions)


def as_json(value: object) -> Any:
    """Converts a value of this module to dictionaries and lists for JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: as_json(part) for name, part in zip(value._fields, value, strict=True)}
    return [as_json(part) for part in value] if isinstance(value, tuple) else value
