"""Describes groups of episodes, by a value at their start, and the gain of each group."""

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
    by_state : bool, default True
        Whether the state determines the group. If not, all that is said of it takes actions to do
        in it what they do in other episodes of the same situation: `spared` is then no proof.

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
    by_state: bool = True

    @property
    def name(self) -> str:
        """Returns column and value: 'sex: f'."""
        return f"{self.column}: {self.value}"

    @property
    def believed(self) -> bool:
        """Tells whether it is spared only if actions do in it what they do elsewhere."""
        return bool(self.spared) and not self.by_state

    @property
    def harmed(self) -> bool:
        """Tells whether its whole interval is a loss."""
        return self.high is not None and self.high < 0


class Group(NamedTuple):
    """A group of episodes, and problems that start where its episodes start."""

    shown: GroupGain
    numbers: IntArray  # the numbers of its episodes
    first: Problem  # of the part that chooses, with the starts of the group there
    judged: Problem  # of the part that judges, with the starts of the group there
    whole: Problem  # of the whole log, with the same starts as `judged`


def expected_gains(groups: Sequence[Group], policy: Policy) -> list[float]:
    """Returns the gains of groups in the model of the choosing part; skips those without starts."""
    parts = [group.first for group in groups if group.first.counts.starts.any()]
    return [
        performance(part.estimate(), policy) - performance(part.estimate(), part.behavior)
        for part in parts
    ]
