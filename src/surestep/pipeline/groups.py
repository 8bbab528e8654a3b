"""Estimates the gain of each group of episodes, by the values that columns have at the start.

**Gains.** The gain of a group is ι·(V_I − V_b), with ι the starts of its episodes in the part that
judges, and V the values in the model of that part. Its interval is that of the gain of all
(`results.advantage_intervals`), with other starts. A group by columns of the state is told by the
states. Of any other, `checks.groups` asks whether its starts are all that it has of its own. A test
that found no difference is no premise of a proof: nothing that follows is proved of such a group,
it is never named as gaining, and a margin that it keeps is believed at most.

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
of which fold 1 expects an L above 0, rounded down, and at least 1: so it costs little where fold 1
is half right. (A gain that fold 1 merely estimates to be above 0 does not count: half of all groups
without any have one.) That L is the lower end of the interval of the gain at Bonferroni's level, as
the policy was chosen where fold 1 happened to show gains.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from surestep._arrays import IntArray, altered
from surestep.candidates import in_numbers
from surestep.certificates.common import Certifier, Question, bound_of, claims_of
from surestep.certificates.episodes import log_of
from surestep.checks.groups import untold
from surestep.checks.running import given_log
from surestep.description import GroupKeys, several
from surestep.errors import InvalidParameter, NeverEnds, NotConverged
from surestep.io.labels.vocabulary import called, in_order
from surestep.model import Policy, Problem
from surestep.pipeline.evidence import Evidence
from surestep.pipeline.stress_test import Assignment
from surestep.planning import evaluate, occupancy
from surestep.results.advantage_intervals import gain_interval
from surestep.results.groups import Group, GroupGain

LEAST = 30  # episodes of a group
MOST_VALUES = 12  # of a column of the state, unless the user named it
MOST_PAIRS = 5_000  # of a problem, unless the user named groups
OTHER = "other"


def groups_of(
    evidence: Evidence, problem: Problem, training: Problem, judging: Problem | None
) -> tuple[Group, ...]:
    """Returns the groups of each named column, or of the state's columns if none is named.

    Small groups are merged, and so are values that the part that chooses does not show.
    """
    keys = evidence.description.groups
    asked = several(keys.columns)
    source = evidence.log_source
    if source is None or judging is None:
        if keys.given():
            raise InvalidParameter(
                "[groups] is given, but nothing judges gains of groups apart; expected a log with "
                "several episodes, and a certificate that leaves a part of it out, as stitched does"
            )
        return ()
    words = evidence.assembly.vocabulary
    log = log_of(problem)
    columns = asked or words.state_columns * (log.pairs.num_pairs <= MOST_PAIRS)
    outside = [name for name in columns if name not in words.state_columns]
    place, texts, changing = source.first_values(outside) if outside else (np.zeros(0), {}, {})
    numbers = np.asarray(log.number)
    early = np.isin(numbers, np.asarray(log_of(training).number))
    values = {x: texts[x][np.searchsorted(place, numbers)].astype(str) for x in texts}
    values |= {
        name: np.array(labels)[log.state[log.episode_offsets[:-1]]]
        for name, labels in zip(words.state_columns, zip(*words.states, strict=True), strict=True)
    }
    groups = list[Group]()
    for name in columns:
        value = values[name]
        shown, code, times = np.unique(value, return_inverse=True, return_counts=True)
        small = (times < (keys.least or LEAST)) | (np.bincount(code, early) == 0)
        if not asked and (small.all() or not 1 < shown.size <= MOST_VALUES):
            continue
        value = np.where(small[code], OTHER, value)
        for label in sorted(
            in_order([(str(text),) for text in set(value)], (name,), words.binnings),
            key=(OTHER,).__eq__,
        ):
            own = numbers[value == label[0]]
            groups.append(
                Group(
                    shown=GroupGain(
                        column=name,
                        value=called(label, (name,), words.names)[0],
                        episodes=own.size,
                        untold="too-few",
                        changing=int(np.sum(changing.get(name, 0))),
                        by_state=name not in texts,
                    ),
                    numbers=own,
                    first=begun(training, training, own),
                    judged=begun(judging, judging, own),
                    whole=begun(problem, judging, own),
                )
            )
    return tuple(group for group in groups if group.judged.counts.starts.any())


def begun(problem: Problem, part: Problem, numbers: IntArray) -> Problem:
    """Returns a problem whose starts are those of the numbered episodes in a part of the log."""
    log = log_of(part)
    inside = np.isin(np.asarray(log.number), numbers)
    inside &= True if log.continued is None else ~log.continued
    starts = np.bincount(log.state[log.episode_offsets[:-1]][inside], None, problem.num_states)
    return altered(problem, counts=altered(problem.counts, starts=starts), signals=())


def group_gains(
    question: Assignment, policy: Policy, keys: GroupKeys, certifier: Certifier, *, names: bool
) -> tuple[GroupGain, ...]:
    """Returns the estimated gain of each group; groups that were asked for also get claims.

    `names` allows claims that name the groups that gain.
    """
    delta = certifier.delta
    gains = [*estimated(question, policy, delta)]
    told = [x for x, one in zip(question.groups, gains, strict=False) if one.gain is not None]
    sure = [group for group in told if group.shown.by_state]
    if keys.not_worse_by is not None:
        spared = passing(told, policy, certifier, delta, -keys.not_worse_by)
        gains = [
            replace(x, spared=x.name in spared) if x.episodes >= (keys.least or LEAST) else x
            for x in gains
        ]
    named = sum(one.by_state for one in gains)
    if names and keys.columns is not None and named:
        hoped = [
            gain_interval(one.first, policy, delta / named)[1]
            for one in sure
            if one.first.counts.starts.any()
        ]
        least = max(1, sum(low > 0 for low in hoped) // 2)  # k*
        better = passing(sure, policy, certifier, least * delta / named, 0.0)
        gains = [replace(x, gains=len(better) >= least and x.name in better) for x in gains]
    return tuple(gains)


def estimated(question: Assignment, policy: Policy, delta: float) -> Iterator[GroupGain]:
    """Estimates each group's gain from the part that judges, where that part allows it."""
    behavior = question.problem.behavior
    more = policy.probability > behavior.probability
    if not question.groups or not more.any():
        return
    given = given_log(log_of(question.problem).with_outcomes())
    for group in question.groups:
        part = group.judged
        group_gain = group.shown
        with suppress(NeverEnds, NotConverged):
            if not group_gain.by_state:
                model = part.estimate()
                after = [part.single_discount * evaluate(model, one) for one in (policy, behavior)]
                inside = np.isin(np.asarray(given.log.number), group.numbers)
                why = untold(given, inside, more * occupancy(model, policy), after)
                group_gain = replace(group_gain, untold=why)
            if group_gain.by_state or group_gain.untold is None:
                gain, low, high = gain_interval(
                    part,
                    policy,
                    delta,
                    question.training.counts if behavior.estimated else None,
                )
                group_gain = replace(group_gain, gain=gain, low=low, high=high, untold=None)
        yield group_gain


def passing(
    groups: Sequence[Group], policy: Policy, certifier: Certifier, delta: float, above: float
) -> list[str]:
    """Returns the names of groups whose gain is proved to exceed `above` at level `delta`.

    Certifiers without the setting `known_start` prove nothing.
    """
    if not hasattr(certifier, "known_start"):
        return []
    judge: Any = certifier.lighter().for_signal(first=False)
    judge = replace(judge, known_start=True, delta=delta)
    claims = claims_of([Question(judge, group.whole, policy) for group in groups])
    lower = in_numbers(map(bound_of, claims))
    return [x.shown.name for x, bound in zip(groups, lower, strict=True) if bound > above]
