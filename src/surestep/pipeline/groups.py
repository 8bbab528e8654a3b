"""Groups: for whom the new policy is better, by the values that columns have at the start.

**Gains.** The gain of a group is ι·(V_I − V_b), with ι the starts of its episodes in the part that
judges, and V the values in the model of that part. Its interval is that of the gain of all
(`results.advantage_intervals`), with other starts. A group by columns of the state is told by the
states. Of any other, `checks.groups` asks whether its starts are all that it has of its own.

**Bounds.** A stitched (or robust) claim from a known start is about ι as it is: the cases of the
group that the part which judges shows. Starts are a stack of their own, independent of what steps
lead to (`certificates.stitched`), and so are the groups of starts, if the state tells all. So all
of that proof holds given the starts and their groups; plans may know them.

**No group is harmed by more than m.** L of each group at the whole δ is held against −m, and all
are said to be spared only if every one passes. If a group loses more than m in truth, it passes
with a chance of at most δ, and all pass with no larger one (intersection–union, as
`certificates.certifying` has it for signals). ∎ That there is a gain on average is one more limit
of the same kind.

**Who gains.** Let G groups be named beforehand, α = δ, and e = (1/δ*)·1{L at δ* > 0} with
δ* = k*α/G and a k* that fold 1 fixes. A group without a gain has E[e] ≤ P(L > gain)/δ* ≤ 1: e is an
e-value. e-BH names the k groups with the largest e-values, for the largest k with
e_(k) ≥ G/(kα), and the mean share of wrong names among those named is at most α, however groups
overlap (Wang & Ramdas 2022). ∎ As every e is 0 or G/(k*α), all groups with L > 0 are named if there
are k* of them, and none otherwise. With k* = 1 this is Bonferroni's level; k* is half of the groups
in which fold 1 sees a gain, rounded down, and at least 1: so it costs little where fold 1 is half
right.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from surestep._arrays import BoolArray, IntArray, altered
from surestep.checks.groups import Effects, Untold, untold
from surestep.checks.running import given_log
from surestep.description import GroupKeys, several
from surestep.errors import NeverEnds, NotConverged
from surestep.io.labels.vocabulary import Vocabulary, called, in_order
from surestep.io.logs.source import LogSource
from surestep.model import Counts, DecisionLog, Policy, Problem
from surestep.planning import evaluate, occupancy
from surestep.results.advantage_intervals import gain_interval
from surestep.results.groups import GroupGain

LEAST = 30  # episodes of a group
MOST_VALUES = 12  # of a column of the state that nobody named
MOST_PAIRS = 5_000  # of a problem whose groups nobody named
OTHER = "other"


class Group(NamedTuple):
    """The episodes that begin with one value of a column."""

    column: str
    value: str
    numbers: IntArray  # of its episodes
    by_state: bool  # the state tells it
    changing: int = 0

    def of(self, log: DecisionLog) -> BoolArray:
        """Marks its episodes [E] in a part of the log."""
        assert log.number is not None
        return np.isin(log.number, self.numbers)

    def starts(self, log: DecisionLog) -> IntArray:
        """Counts the starts of its episodes in a part of the log, by states [S]."""
        begun = self.of(log)
        if log.continued is not None:
            begun &= ~log.continued
        return np.bincount(log.state[log.episode_offsets[:-1]][begun], None, log.pairs.num_states)

    def problem(self, problem: Problem, log: DecisionLog | None) -> Problem | None:
        """Returns a problem that begins as the group does in a log; None where it never begins."""
        starts = np.zeros(1) if log is None else self.starts(log)
        if not starts.any():
            return None
        return altered(problem, counts=altered(problem.counts, starts=starts), signals=())


def groups_of(
    source: LogSource, words: Vocabulary, log: DecisionLog, first: DecisionLog, keys: GroupKeys
) -> tuple[Group, ...]:
    """Returns the groups of each column; `first` is the part of the log that chooses.

    Values that it does not show, and small groups, are put together.
    """
    asked = several(keys.columns)
    least = LEAST if keys.least is None else keys.least
    columns = asked or words.state_columns
    outside = [name for name in columns if name not in words.state_columns]
    place, texts, changing = source.first_values(outside) if outside else (np.zeros(0), {}, {})
    assert log.number is not None
    assert first.number is not None
    at_start = log.state[log.episode_offsets[:-1]]
    early = np.isin(log.number, first.number)
    groups = list[Group]()
    for name in columns:
        if name in texts:
            value = texts[name][np.searchsorted(place, log.number)]
        else:
            label = words.state_columns.index(name)
            value = np.array([state[label] for state in words.states], object)[at_start]
        shown, code = np.unique(value.astype(str), return_inverse=True)
        large = (np.bincount(code) >= least) & (np.bincount(code, early) > 0)
        if not asked and shown.size > MOST_VALUES:
            continue
        own = list[Group]()
        for (text,) in in_order([(str(x),) for x in shown[large]], (name,), words.binnings):
            numbers = log.number[value == text]
            known_as = called((text,), (name,), words.names)[0]
            own.append(Group(name, known_as, numbers, name not in texts, changing.get(name, 0)))
        if not large.all():
            numbers = log.number[~large[code]]
            own.append(Group(name, OTHER, numbers, name not in texts, changing.get(name, 0)))
        groups += own if asked or len(own) > 1 else []
    return tuple(groups)


def gains_of(
    groups: Sequence[Group],
    problem: Problem,
    judging: Problem,
    policy: Policy,
    *,
    delta: float,
    estimated_from: Counts | None,
) -> tuple[GroupGain, ...]:
    """Estimates the gain of each group by the part that judges; none where values do not exist.

    The whole problem says whether effects differ. `estimated_from` are the counts behind π_b.
    """
    behavior = judging.behavior
    more = policy.probability > behavior.probability
    if not groups or problem.log is None or not more.any():
        return ()
    model = judging.estimate()
    try:
        values = [judging.single_discount * evaluate(model, one) for one in (policy, behavior)]
    except (NeverEnds, NotConverged):
        return ()
    given = given_log(problem.log.with_outcomes())
    effects = Effects(more, *values)
    gains = list[GroupGain]()
    for group in groups:
        part = group.problem(judging, judging.log)
        why: Untold | None = "too-few"
        ends: tuple[float | None, ...] = (None, None, None)
        if part is not None and not group.by_state:
            visits = occupancy(part.estimate(), policy)
            why = untold(given, group.of(given.log), effects, visits)
        elif part is not None:
            why = None
        if part is not None and why is None:
            ends = gain_interval(part, policy, delta, estimated_from)
        gains.append(
            GroupGain(
                column=group.column,
                value=group.value,
                episodes=group.numbers.size,
                gain=ends[0],
                low=ends[1],
                high=ends[2],
                untold=why,
                changing=group.changing,
            )
        )
    return tuple(gains)
