"""Runs the checks that tell whether a claim can rest on its log, for `inspect` and for results."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from surestep._arrays import (
    BoolArray,
    IntArray,
    altered,
    marked,
    places_among,
    run_owners,
    run_sums,
)
from surestep.certificates.drawn import drawn_models
from surestep.certificates.episodes import split_of
from surestep.certificates.posterior import (
    MEMORY,
    WIDE_TO_CHOOSE,
    Posterior,
    judged_part,
    model_draws,
)
from surestep.certificates.robust import Robust
from surestep.certificates.tilted_sets import tilted_claim, tilts
from surestep.checks import (
    Check,
    check_log,
    clock,
    copies,
    declared_policy,
    memory,
    outcomes,
    ties,
)
from surestep.checks.check import (
    GivenCauses,
    GivenPolicy,
    GivenPractice,
    GivenResult,
    GivenStock,
)
from surestep.checks.running import check_result, check_signals, given_log, looked_at, of_drawn
from surestep.description import several
from surestep.errors import NeverEnds, NotConverged, SurestepError
from surestep.io.labels.binning import Binning
from surestep.io.labels.vocabulary import Label, Vocabulary, joined
from surestep.io.logs.inspection import LogFacts
from surestep.io.logs.loading import BY_CLOCK
from surestep.io.logs.source import LogSource
from surestep.model import (
    Certificate,
    DecisionLog,
    FiniteMDP,
    MDPBatch,
    Policy,
    Problem,
    estimate_behavior,
)
from surestep.model.log import UNKNOWN
from surestep.model.numbering import by_appearance
from surestep.pipeline.evidence import Evidence
from surestep.pipeline.findings import decision_visits
from surestep.pipeline.stress_test import Assignment
from surestep.pipeline.terms import splitting
from surestep.planning import evaluate, occupancy, performance
from surestep.planning.tilted import WorstCase
from surestep.results.advantage_intervals import gain_interval, reward_moments
from surestep.results.findings import PolicyTable, belief_in
from surestep.results.record import Baseline, Estimates

MOST_CHECKED = 1_000_000  # rows of a log that is loaded for checks alone; episodes of a larger one
LEAST_DRAWN = 20  # mean episodes of a sample; a smaller sample may be empty


def inspection_checks(source: LogSource, facts: LogFacts) -> tuple[Check, ...]:
    """Returns the checks of a log without a result; a log that counting refuses is not tested."""
    log, part = log_of_facts(source, facts)
    names = () if isinstance(log, str) else log.pairs.state_labels or ()
    labels = {joined(label): label for label in facts.states}
    end = ("",) * len(source.columns.state)
    drawn_from = 0 if facts.episodes is None or part is source else facts.episodes.number
    of_log = log_checks(
        log,
        part,
        [labels.get(name, end) for name in names],
        names=names,
        discount=source.description.stakes.discount,
        drawn_from=drawn_from,
    )
    stops = [] if log in ("no-episodes", "refused") else clock.check([source.why_stopped])
    return (*stops, *of_log, Check.unchecked("hidden-causes", "no-result"))


def log_checks(
    log: DecisionLog | str,
    source: LogSource | None,
    labels: Sequence[Label],
    *,
    names: Sequence[str],
    discount: float | None,
    drawn_from: int,
) -> tuple[Check, ...]:
    """Returns all checks of a log whose states have names and labels [S].

    The first ones look for outcomes in the states, and for copies of episodes, if the log is not
    large.
    """
    of_log = check_log(log, names, discount=discount, drawn_from=drawn_from)
    if isinstance(log, str) or source is None:
        return of_log
    before = several(source.description.columns.known_before)
    columns = {
        name: texts
        for name, texts in zip(source.columns.present, zip(*labels, strict=True), strict=False)
        if name not in before  # columns of the past were known when it was decided
    }
    checks = [outcomes.check(log, columns)]
    roles = source.columns
    if roles.memory:
        first = len(roles.present)
        checks.append(
            memory.check(log, labels, range(first, len(roles.state) + 1, first + len(roles.action)))
        )
    if log.num_steps <= MOST_CHECKED:
        checks.append(copies.check(log, source.contents()))
    return (*of_drawn(checks, log.num_episodes, drawn_from or log.num_episodes), *of_log)


def log_of_facts(
    source: LogSource, facts: LogFacts
) -> tuple[DecisionLog, LogSource] | tuple[str, None]:
    """Loads the log, and returns it with its source; or the reason why it cannot be tested."""
    if source.columns.episode is None:
        return "no-episodes", None
    if facts.episodes is None or any(suspicion.refused for suspicion in facts.suspicions):
        return "refused", None
    part = log_or_sample(source, facts.rows, facts.episodes.number, facts.binnings)
    if part is None:
        return "too-large", None
    try:
        log = part.load(stopped=True)
    except SurestepError:  # the log does not say how episodes end
        return "refused", None
    never_left = np.bincount(log.state, minlength=log.pairs.num_states) == 0
    return by_appearance(log, never_left).log(log), part  # as in a result


def log_or_sample(
    source: LogSource, rows: int, episodes: int, binnings: Mapping[str, Binning]
) -> LogSource | None:
    """Returns the log, or a sample of a large log; None if the sample would be too small."""
    share = MOST_CHECKED / rows
    if share >= 1:
        return source
    return source.sampled(share, binnings) if share * episodes >= LEAST_DRAWN else None


def result_checks(
    evidence: Evidence,
    question: Assignment,
    table: PolicyTable,
    *,
    certificates: tuple[Certificate, ...],
    model: FiniteMDP,
    estimates: Estimates,
    baseline: Baseline | None,
) -> tuple[Check, ...]:
    """Returns all checks of a result; `model` is the estimated one."""
    problem = question.problem
    part = question.training
    # Of all that may still come, from any step on.
    low, high = evidence.terms.return_bounds(evidence.told)
    log, source = log_of(evidence, problem)
    words = evidence.assembly.vocabulary
    columns = dict(zip(words.state_columns, zip(*words.states, strict=True), strict=True))
    # Expected visits of actions that the model takes for the worst, as it never saw them.
    unseen = float(occupancy(model, part.behavior)[part.unseen_pairs()].sum())
    result = GivenResult(
        certificates=certificates,
        gain=compared_gain(estimates),
        returns=None if baseline is None else (baseline.least, baseline.greatest),
        gap=None if baseline is None else baseline.gap(unseen * (high - low)),
        rewards_vary=evidence.told.rewards_vary,
        policy=given_policy(table, model),
        practice=practice(question, table),
        causes=hidden_causes(question, table, columns, certificates, evidence.kinds["behavior"]),
        declared=declared_policy.check(
            declared_policy.of_problem(problem, evidence.kinds["behavior"])
        ),
        stock=running_stock(question, table, state_names(words)),
    )
    drawn_from = 0 if source is evidence.log_source else evidence.counts.episodes.recorded
    of_log = log_checks(
        log,
        source,
        words.states,
        names=state_names(words),
        discount=problem.single_discount,
        drawn_from=drawn_from,
    )
    logs = {signal.name: signal.problem.log for signal in problem.signals if not signal.is_chance}
    may_learn = evidence.terms.of_split("logger") != "fixed"
    return (
        *clock.check(evidence.counts.dropped),
        *ties.check(evidence.source.tied() if may_learn else 0),
        *of_log,
        *check_signals(logs),
        *check_result(result),
    )


def hidden_causes(
    question: Assignment,
    table: PolicyTable,
    columns: Mapping[str, Sequence[str]],
    certificates: tuple[Certificate, ...],
    behavior: str,
) -> GivenCauses | str:
    """Returns the claims that hidden causes may undo, or the code of why that is not checked."""
    problem = question.problem
    if not problem.behavior_is_estimated:
        # In a trial, or with recorded chances, no hidden cause decided; a table is only a claim.
        return "behavior-known" if behavior in ("uniform", "propensities") else "behavior-given"
    belief = belief_in(certificates)
    claims = [one for one in (certificates[0], belief) if one is not None and (one.lower or 0) > 0]
    if not claims:
        return "no-claim"
    if any(said.code == "need-not-be-markov" for said in claims[0].notes):
        return "not-assumed"
    judging = question.judging or problem
    models: list[FiniteMDP] = []
    if belief in claims and np.count_nonzero(problem.counts.times) <= WIDE_TO_CHOOSE:
        judge = question.certifiers[certificates.index(belief)]
        if isinstance(judge, Posterior):
            few = judge.lighter()
            models = [*drawn_models(model_draws(judged_part(few, problem), few), MEMORY)]
    try:
        estimate = worst_case(judging, [judging.estimate()], table.policy)
        drawn = worst_case(judging, models, table.policy) if models else None
        robust = robust_claim(question, table.policy, certificates)
    except (NeverEnds, NotConverged):
        return "no-discount"
    return GivenCauses(estimate, drawn, belief, robust, problem.counts.visits, columns)


def robust_claim(
    question: Assignment, policy: Policy, certificates: tuple[Certificate, ...]
) -> Callable[[float], float] | None:
    """Returns the robust claim as a function of the odds Γ; None if no claim is above 0."""
    for judge, claim in zip(question.certifiers, certificates, strict=True):
        if isinstance(judge, Robust) and (claim.lower or 0) > 0 and tilts(judge, question.problem):
            return tilted_claim(judge, question.problem, policy)
    return None


def worst_case(problem: Problem, models: Sequence[FiniteMDP], policy: Policy) -> WorstCase:
    """Sets up a policy's worst case in models whose rewards vary as in the data.

    The mean reward of each pair is that of the model; a transition never seen has no spread.
    """
    first = models[0]
    batch = MDPBatch.from_models([altered(model, initial=first.initial) for model in models])
    counts = problem.counts
    owner = run_owners(batch.offsets)
    place = places_among(counts.keys(), batch.keys())
    seen = place >= 0
    mean, least, greatest = (one[place] for one in reward_moments(counts))
    usual = batch.expected_reward[:, owner]
    differ = np.where(seen, mean - usual, 0.0)
    differ -= run_sums(batch.probability * differ, batch.offsets)[:, owner]
    width = np.where(seen, greatest - least, 0.0)
    share = np.where(width > 0, (greatest - mean) / np.where(width > 0, width, 1.0), 1.0)
    low = usual + differ - (1 - share) * width
    shares = np.broadcast_to(share, low.shape)
    return WorstCase(
        batch,
        np.stack([model.initial for model in models]),
        np.stack([low, low + width]),
        np.stack([shares, 1 - shares]),
        policy=policy,
        behavior=problem.behavior,
    )


def compared_gain(estimates: Estimates) -> float:
    """Returns the estimated gain to compare claims with.

    It is the estimate from held-out data if there is one, else the larger of the two others.
    """
    chosen_by = estimates["policy"] - estimates["behavior"]
    return estimates.get("held_out_gain", max(chosen_by, estimates.get("gain_of_all", chosen_by)))


def practice(question: Assignment, table: PolicyTable) -> GivenPractice | str:
    """Returns the rows after the part that estimates π_b, or the code of why there are none."""
    log = question.problem.episodes
    first = question.training.log
    judging = question.judging
    if not question.problem.behavior_is_estimated:
        return "behavior-given"
    split = splitting(question.certifiers)
    drawn_at_random = split is not None and split_of(split)[1] is not None
    if split is None or drawn_at_random or log is None or first is None or judging is None:
        return "behavior-of-all"
    rows = np.arange(log.num_steps) if log.order is None else np.argsort(log.order)
    late = ~marked(rows[: first.num_steps], log.num_steps)
    given = given_log(log)
    late = late[np.isin(run_owners(log.episode_offsets), looked_at(log, given.seed))]
    model = judging.estimate()
    recent = estimate_behavior(judging.counts)
    gain = None
    with suppress(NeverEnds):  # in what the rest of the log shows
        gain = performance(model, table.policy) - performance(model, recent)
    return GivenPractice(given, late, gain)


def running_stock(
    question: Assignment, table: PolicyTable, names: Sequence[str]
) -> GivenStock | None:
    """Returns where episodes began and where running ones are, with gains from there on."""
    log = question.problem.episodes
    if log is None or not table.changed.any():
        return None
    size = log.pairs.num_states
    after = log.next_state[log.episode_offsets[1:] - 1]
    goes_on = ~log.terminated[log.episode_offsets[1:] - 1] & (after != UNKNOWN)
    part = question.judging or question.training
    behind = question.training.counts if part.behavior.estimated else None

    def interval(starts: IntArray) -> tuple[float, float, float]:
        begun = altered(part, counts=altered(part.counts, starts=starts))
        return gain_interval(begun, table.policy, question.certifiers[0].delta, behind)

    try:
        model = part.estimate()
        gain = evaluate(model, table.policy) - evaluate(model, part.behavior)
    except (NeverEnds, NotConverged):
        return None
    return GivenStock(
        np.bincount(log.state[log.episode_offsets[:-1]], minlength=size),
        np.bincount(after[goes_on], minlength=size),
        gain,
        interval,
        names,
    )


def log_of(
    evidence: Evidence, problem: Problem
) -> tuple[DecisionLog, LogSource] | tuple[str, None]:
    """Returns the log behind a result with its source; or the reason why there is none."""
    source = evidence.log_source
    counts = evidence.counts
    if source is None or not evidence.terms.has_episodes:
        return "no-episodes", None
    if problem.log is not None and {*BY_CLOCK}.isdisjoint(counts.dropped):
        return problem.log, source
    part = log_or_sample(source, counts.rows_read, counts.episodes.recorded, counts.binnings)
    if part is None:
        return ("too-large", None) if problem.log is None else (problem.log, source)
    return part.load(problem.counts.pairs, (counts if part is source else None), stopped=True), part


def given_policy(table: PolicyTable, model: FiniteMDP) -> GivenPolicy | None:
    """Returns the new policy with its state visits in a model; None if it changes nothing."""
    if not table.changed.any():
        return None
    return GivenPolicy(
        pairs=table.pairs,
        probability=table.probability,
        behavior=table.behavior,
        visits=table.visits,
        held_out_visits=table.held_out_visits,
        decided=table.decided,
        time=decision_visits(model, table.policy, table),
        is_open=in_open_bins(table.vocabulary),
        names=state_names(table.vocabulary),
    )


def in_open_bins(vocabulary: Vocabulary) -> BoolArray:
    """Marks the states [S] that have a bin without an end in one of their columns."""
    ends = {name: binning.open_labels() for name, binning in vocabulary.binnings.items()}
    columns = vocabulary.state_columns
    return np.array(
        [
            any(text in ends.get(name, ()) for name, text in zip(columns, state, strict=True))
            for state in vocabulary.states
        ],
        np.bool_,
    )


def state_names(vocabulary: Vocabulary) -> list[str]:
    """Returns the names of states as people call them, one text each."""
    return [joined(vocabulary.state_name(state)) for state in range(len(vocabulary.states))]
