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
from contextlib import suppress
from dataclasses import replace

import numpy as np

from surestep.certificates import Certifier
from surestep.certificates.common import Question, bound_of, claims_of
from surestep.checks.groups import Untold, untold
from surestep.checks.running import given_log
from surestep.description import several
from surestep.errors import CertificateRefused, InvalidParameter, NeverEnds, NotConverged
from surestep.io.labels.vocabulary import called, in_order
from surestep.model import DecisionLog, Policy, Problem
from surestep.pipeline.evidence import Evidence
from surestep.pipeline.stress_test import Assignment
from surestep.planning import evaluate, occupancy
from surestep.results.advantage_intervals import gain_interval
from surestep.results.groups import Group, GroupGain

LEAST = 30  # episodes of a group
MOST_VALUES = 12  # of a column of the state that nobody named
MOST_PAIRS = 5_000  # of a problem whose groups nobody named
OTHER = "other"


def groups_of(
    evidence: Evidence, first: DecisionLog | None, judging: Problem | None
) -> tuple[Group, ...]:
    """Returns the groups of each column; where nobody named any, of those of the state.

    `first` is the part of the log that chooses. Values that it does not show, and small groups, are
    put together.
    """
    keys = evidence.description.groups
    asked = several(keys.columns)
    source = evidence.log_source
    log = evidence.assembly.log
    apart = first is not None and judging is not None and judging.log is not None
    if source is None or log is None or log.number is None or first is None or not apart:
        if asked:
            raise InvalidParameter(
                "groups are named, but nothing judges their gains apart; expected a log with "
                "several episodes, and a certificate that leaves a part of it out, as stitched does"
            )
        return ()
    words = evidence.assembly.vocabulary
    columns = asked or words.state_columns * (log.pairs.num_pairs <= MOST_PAIRS)
    outside = [name for name in columns if name not in words.state_columns]
    place, texts, changing = source.first_values(outside) if outside else (np.zeros(0), {}, {})
    early = np.isin(log.number, [] if first.number is None else first.number)
    groups = list[Group]()
    for name in columns:
        if name in texts:
            value = texts[name][np.searchsorted(place, log.number)].astype(str)
        else:
            label = words.state_columns.index(name)
            named = np.array([state[label] for state in words.states])
            value = named[log.state[log.episode_offsets[:-1]]]
        shown, code, times = np.unique(value, return_inverse=True, return_counts=True)
        small = (times < (keys.least or LEAST)) | (np.bincount(code, early) == 0)
        if not asked and (small.all() or not 1 < shown.size <= MOST_VALUES):
            continue
        value = np.where(small[code], OTHER, value)
        labels = in_order([(str(text),) for text in set(value)], (name,), words.binnings)
        for one in sorted(labels, key=(OTHER,).__eq__):
            numbers = log.number[value == one[0]]
            known_as = called(one, (name,), words.names)[0]
            by_state = name not in texts
            groups.append(Group(name, known_as, numbers, by_state, changing.get(name, 0)))
    return tuple(groups)


def group_gains(
    evidence: Evidence, question: Assignment, policy: Policy, certifier: Certifier, *, names: bool
) -> tuple[GroupGain, ...]:
    """Returns what a policy means for each group; of groups asked for, with what is claimed.

    `names`: groups that gain may be named.
    """
    delta = evidence.terms.level
    keys = evidence.description.groups
    gains = estimated(question, policy, delta)
    if keys.columns is None or not gains:
        return tuple(gains)
    told = [group for group, one in zip(question.groups, gains, strict=True) if not one.untold]
    if keys.not_worse_by is not None:
        spared = passing(told, question, policy, (certifier, delta), -keys.not_worse_by)
        large = {one.name for one in gains if one.episodes >= (keys.least or LEAST)}
        gains = [replace(x, spared=x.name in spared if x.name in large else None) for x in gains]
    if names:
        seen = expected_gains(question.groups, question.training, policy)
        least = max(1, sum(gain > 0 for gain in seen) // 2)  # k*
        level = least * delta / len(gains)
        better = passing(told, question, policy, (certifier, level), 0.0)
        gains = [replace(x, gains=len(better) >= least and x.name in better) for x in gains]
    return tuple(gains)


def estimated(question: Assignment, policy: Policy, delta: float) -> list[GroupGain]:
    """Estimates the gain of each group by the part that judges, where it can be told."""
    judging = question.judging
    log = question.problem.log
    if not question.groups or judging is None or judging.log is None or log is None:
        return []
    more = policy.probability > judging.behavior.probability
    model = judging.estimate()
    behind = question.training.counts if judging.behavior_is_estimated else None
    given = given_log(log.with_outcomes())
    gains = list[GroupGain]()
    for group in question.groups if more.any() else ():
        part = group.problem(judging, judging.log)
        why: Untold | None = "too-few"
        ends: tuple[float | None, ...] = (None, None, None)
        with suppress(NeverEnds, NotConverged):
            if part is not None and group.by_state:
                why = None
            elif part is not None:
                after = [evaluate(model, one) for one in (policy, judging.behavior)]
                visits = more * occupancy(part.estimate(), policy)
                worth = [judging.single_discount * value for value in after]
                why = untold(given, group.of(given.log), visits, worth)
            if part is not None and why is None:
                ends = gain_interval(part, policy, delta, behind)
        gains.append(
            GroupGain(
                column=group.column,
                value=group.value,
                episodes=group.numbers.size,
                gain=ends[0],
                low=ends[1],
                high=ends[2],
                untold=why if ends[0] is None else None,
                changing=group.changing,
            )
        )
    return gains


def passing(
    groups: Sequence[Group],
    question: Assignment,
    policy: Policy,
    judge: tuple[Certifier, float],
    above: float,
) -> set[str]:
    """Returns the names of groups whose gain is proved to be above a number, at a level of its own.

    Kinds that take no start as known prove nothing.
    """
    certifier = judge[0].lighter().for_signal(first=False)
    if question.judging is None or question.judging.log is None:
        return set()
    found = set[str]()
    for group in groups if hasattr(certifier, "known_start") else ():
        own = replace(certifier, known_start=True, delta=judge[1])  # type: ignore[type-var]
        part = group.problem(question.problem, question.judging.log) or question.problem
        (bound,) = map(bound_of, claims_of([Question(own, part, policy)]))
        if not isinstance(bound, CertificateRefused) and bound > above:
            found.add(group.name)
    return found


def spares(groups: Sequence[Group], margin: float, problem: Problem, policy: Policy) -> bool:
    """Tells whether a problem expects no group to lose more than the margin.

    A world of the stress test has no groups.
    """
    return all(gain >= -margin for gain in expected_gains(groups, problem, policy))


def expected_gains(groups: Sequence[Group], problem: Problem, policy: Policy) -> list[float]:
    """Returns the gain of each group that begins in a problem, by the model of that problem."""
    if problem.log is None:
        return []
    model = problem.estimate()
    gain = evaluate(model, policy) - evaluate(model, problem.behavior)
    parts = [group.problem(problem, problem.log) for group in groups]
    return [
        float(np.average(gain, weights=part.counts.starts)) for part in parts if part is not None
    ]
