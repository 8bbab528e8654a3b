"""Groups of episodes by a value at their start, and what the new policy means for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from surestep._arrays import IntArray
from surestep.checks.groups import Untold
from surestep.model import Policy, Problem
from surestep.planning import performance


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupGain:
    """The gain of the episodes that begin with one value of a column.

    Parameters
    ----------
    column : str
        The column.
    value : str
        Its value in the first row of an episode; "other" stands for the small groups.
    episodes : int
        How many episodes of the log begin so.
    gain, low, high : float, optional
        The estimate by the part of the log that judges, with an interval of about 1 − δ; None where
        the gain cannot be told.
    untold : {"differs", "too-few"}, optional
        The reason why: actions do other things to this group than the state tells, or there are too
        few rows to know.
    changing : int, default 0
        In how many episodes of the log the column changes later.
    spared : bool, optional
        Whether it is shown to lose no more than `not_worse_by`; None where nobody asked.
    gains : bool, default False
        Whether it is among the groups that are named as gaining.

    Examples
    --------
    >>> from surestep.results import GroupGain
    >>> GroupGain(column="sex", value="f", episodes=50, gain=-1.0, low=-1.5, high=-0.5).harmed
    True
    """

    column: str
    value: str
    episodes: int
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    untold: Untold | None = None
    changing: int = 0
    spared: bool | None = None
    gains: bool = False

    @property
    def name(self) -> str:
        """Returns column and value: 'sex: f'."""
        return f"{self.column}: {self.value}"

    @property
    def harmed(self) -> bool:
        """Tells whether its whole interval is a loss."""
        return self.high is not None and self.high < 0


class Group(NamedTuple):
    """A group before its gain is known, and the problems that begin as its episodes do."""

    shown: GroupGain
    numbers: IntArray  # of its episodes
    by_state: bool  # the state tells it
    first: Problem  # of the part that chooses, with the starts that it shows
    judged: Problem  # of the part that judges
    whole: Problem  # of all of the log, with the starts of the part that judges


def expected_gains(groups: Sequence[Group], policy: Policy) -> list[float]:
    """Returns the gains of groups in the model of the part that chooses, if they begin there."""
    parts = [group.first for group in groups if group.first.counts.starts.any()]
    return [
        performance(part.estimate(), policy) - performance(part.estimate(), part.behavior)
        for part in parts
    ]
