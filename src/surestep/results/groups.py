"""Groups of episodes by a value at their start, and what the new policy means for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surestep._arrays import BoolArray, IntArray, altered
from surestep.checks.groups import Untold
from surestep.model import DecisionLog, Problem


class Group(NamedTuple):
    """The episodes that begin with one value of a column."""

    column: str
    value: str
    numbers: IntArray  # of its episodes
    by_state: bool  # the state tells it
    changing: int  # episodes of the log in which the column changes later

    @property
    def name(self) -> str:
        """Returns column and value: 'sex: f'."""
        return f"{self.column}: {self.value}"

    def of(self, log: DecisionLog) -> BoolArray:
        """Marks its episodes [E] in a part of the log."""
        numbers = np.full(log.num_episodes, -1) if log.number is None else log.number
        return np.isin(numbers, self.numbers)

    def problem(self, problem: Problem, log: DecisionLog) -> Problem | None:
        """Returns a problem that begins as the group does in a log; None where it never begins."""
        begun = self.of(log)
        if log.continued is not None:
            begun &= ~log.continued
        first = log.state[log.episode_offsets[:-1]][begun]
        counts = altered(problem.counts, starts=np.bincount(first, None, problem.num_states))
        return altered(problem, counts=counts, signals=()) if first.size else None


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


def none_harmed(groups: Sequence[GroupGain]) -> bool:
    """Tells whether every group is shown to be spared, as far as that was asked."""
    return all(group.spared is not False for group in groups)
