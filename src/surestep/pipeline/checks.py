"""Checks that a claim can rest on its log: the checks of `inspect`, and those of a result."""

from __future__ import annotations

import numpy as np

from surestep._arrays import BoolArray, FloatArray, run_sums
from surestep.certificates.episodes import parts_of_log, split_of
from surestep.certificates.stitched import Folds, Stitched
from surestep.checks import Check, CheckCode, check_log
from surestep.checks.check import Unjudged, WhyUnchecked
from surestep.checks.cuts import Terms as CutTerms
from surestep.checks.cuts import cut_check, replaced_states
from surestep.checks.drift import practice_check
from surestep.checks.held_out import folds_by
from surestep.checks.hidden import hidden_check
from surestep.checks.memory import episode_of_rows
from surestep.checks.of_log import LEVEL, looked_at, sampled, seed_of, unchecked
from surestep.checks.places import place_check
from surestep.checks.time_in_states import TimeInStates
from surestep.errors import NeverEnds, SurestepError
from surestep.io.labels.bin_rules import coarser_option, finer_option, read_bin_option
from surestep.io.labels.label import joined
from surestep.io.labels.vocabulary import Vocabulary
from surestep.io.logs.inspection import LogFacts
from surestep.io.logs.loading import StateNumbers
from surestep.io.logs.source import LogSource
from surestep.model import Certificate, DecisionLog, Pairs, Problem, estimate_behavior
from surestep.model.numbering import by_appearance
from surestep.pipeline.certifiers import splitting
from surestep.pipeline.evidence import Evidence, Steps
from surestep.pipeline.stress_test import Question
from surestep.pipeline.terms import Terms
from surestep.planning import performance
from surestep.results.ladder import belief_in
from surestep.results.table import PolicyTable
from surestep.states.other_sizes import other_sizes

MOST_LOADED = 5_000_000  # rows of a log that are loaded where no claim needs its steps


def inspection_checks(source: LogSource, facts: LogFacts) -> tuple[Check, ...]:
    """Returns the checks of a log by itself; what counting refuses is not checked."""
    hidden = Check.unchecked("hidden-causes", "no-result")
    if facts.episodes is None or source.columns.weight is not None:
        return (*unchecked("no-episodes"), hidden)
    if facts.rows > MOST_LOADED:
        return (*unchecked("too-large"), hidden)
    try:
        log = source.load()
    except SurestepError:
        return (*unchecked("refused"), hidden)
    never_left = np.bincount(log.state, minlength=log.pairs.num_states) == 0
    log = by_appearance(log, never_left).log(log)  # as in a result
    return (*check_log(log, log.pairs.state_labels or ()), hidden)


def result_checks(
    evidence: Evidence,
    terms: Terms,
    question: Question,
    table: PolicyTable,
    *,
    certificates: tuple[Certificate, ...],
    time: TimeInStates,
    values: tuple[FloatArray, FloatArray],
) -> tuple[Check, ...]:
    """Returns all checks of a result.

    `time` is that of the new policy in each state, `values` [S] are those of the new and of the
    current policy, all in the estimated model.
    """
    problem, judge = question.problem, judge_of(question)
    claim = certificates[0]
    if (claim.lower or 0.0) <= 0:
        claim = belief_in(certificates) or claim
    discount = problem.single_discount
    rewards = terms.ranges(evidence.facts).rewards
    low, high = terms.return_bounds(evidence.facts)  # of all that may still come, from any step on
    new, current = (rewards[1] - rewards[0] + discount * float(np.ptp(value)) for value in values)
    log, names = log_of(evidence, problem), names_of(evidence.assembly.vocabulary)
    of_log = (
        check_log(log, names, discount=discount) if isinstance(log, DecisionLog) else unchecked(log)
    )
    return (
        *of_log,
        practice(question, judge, table),
        Check.unchecked("hidden-causes", "not-assumed")
        if is_free_of_models(claim)
        else hidden_check(claim.lower, high - low, (new, current), discount),
        data_check(table, time, folds_by(judge, problem.log)),
        other_cuts(evidence, problem, table, log, judge=judge, claim=claim.lower),
    )


def judge_of(question: Question) -> Stitched | None:
    """Returns what bounds a policy by the rows that did not choose it; None where all did."""
    split = splitting(question.certifiers)
    if split is None:
        return None
    share, logger, seed = split_of(split)
    # Somebody's own kind of certificate may choose by other rows than its settings say.
    whole, chosen_by = question.problem.log, question.training.log
    if whole is None or chosen_by != parts_of_log(whole, share, seed)[0]:
        return None
    low, high = question.told.returns or (None, None)
    return Stitched(
        train_share=share, logger=logger, seed=seed or 0, return_low=low, return_high=high
    )


def practice(question: Question, judge: Stitched | None, table: PolicyTable) -> Check:
    """Returns whether practice has changed since the part of the log that π_b is estimated from."""
    code: CheckCode = "practice-changed"
    log, first, judging = question.problem.log, question.training.log, question.judging
    if not question.problem.behavior_is_estimated:
        return Check.unchecked(code, "behavior-given")
    if judge is None or judge.logger == "fixed" or log is None or first is None or judging is None:
        return Check.unchecked(code, "behavior-of-all")
    seed = seed_of(log)
    late = np.ones(log.num_steps, np.bool_)
    rows = np.arange(log.num_steps) if log.order is None else np.argsort(log.order)
    late[rows[: first.num_steps]] = False
    late = late[np.isin(episode_of_rows(log), looked_at(log, seed))]
    model, recent = judging.estimate(), estimate_behavior(judging.counts)
    try:
        gain = performance(model, table.policy) - performance(model, recent)
    except NeverEnds:  # in what the rest of the log shows
        gain = None
    return practice_check(sampled(log, seed), late, gain, seed=seed + 6, level=LEVEL)


def is_free_of_models(claim: Certificate) -> bool:
    """Tells whether a gain is claimed that stands whatever the states leave out."""
    needs_none = any(said.code == "need-not-be-markov" for said in claim.notes)
    return needs_none and (claim.lower or 0.0) > 0


def log_of(evidence: Evidence, problem: Problem) -> DecisionLog | WhyUnchecked:
    """Returns the log behind a result, loaded for it where need be, or why there is none."""
    if not evidence.has_episodes:
        return "no-episodes"
    if problem.log is not None:
        return problem.log
    if evidence.counts.rows_read > MOST_LOADED:
        return "too-large"
    return Steps(evidence.source, evidence.counts, problem.counts.pairs).log


def other_cuts(
    evidence: Evidence,
    problem: Problem,
    table: PolicyTable,
    log: DecisionLog | WhyUnchecked,
    *,
    judge: Stitched | None,
    claim: float | None,
) -> Check:
    """Returns what the change of policy is worth in states cut half and twice as finely."""
    code: CheckCode = "other-cuts"
    source = evidence.source
    if source is None:
        return Check.unchecked(code, "no-source")
    if not source.reading.bins and source.reading.states_from is None:
        return Check.unchecked(code, "no-bins")
    if source.reading.states_from is not None and not source.reading.learnt_from:
        return Check.unchecked(code, "taught-elsewhere")
    if not isinstance(log, DecisionLog):
        return Check.unchecked(code, log)
    if log.num_steps > MOST_LOADED:
        return Check.unchecked(code, "too-large")
    if not table.changed.any():
        return Check.unchecked(code, "no-change")
    if problem.single_discount == 1:
        return Check.unchecked(code, "no-discount")
    try:
        others = cut_otherwise(source, problem.single_discount)
        if others is None:
            return Check.unchecked(code, "no-bins")
        coarse, fine = (with_states(log, other.load_states()) for other in others)
    except SurestepError:  # finer states may be too many for a limit of memory
        return Check.unchecked(code, "refused")
    return cut_check(
        *(log, (coarse, fine), (table.policy, problem.behavior)),
        CutTerms(problem.single_discount, problem.value_bounds, judge),
        claim=claim,
        level=LEVEL,
    )


def with_states(log: DecisionLog, states: StateNumbers) -> DecisionLog:
    """Returns the rows of a log with states that were loaded for them."""
    pairs = Pairs.full(states.num_states, log.pairs.num_actions)
    return replaced_states(log, pairs, states.state, states.next_state)


def cut_otherwise(source: LogSource, discount: float) -> tuple[LogSource, LogSource] | None:
    """Returns a log whose states are cut half and twice as finely; None where none are finer.

    By what taught the states, where something did, else by the rules of bins alone.
    """
    if source.reading.learnt_from:
        return other_sizes(source, discount)
    bins, states = tuple(source.reading.bins), source.columns.state
    coarser, finer = (
        tuple(change(rule) if read_bin_option(rule)[0] in states else rule for rule in bins)
        for change in (coarser_option, finer_option)
    )
    return None if finer == bins else (source.with_bins(coarser), source.with_bins(finer))


def data_check(table: PolicyTable, time: TimeInStates, folds: Folds | Unjudged) -> Check:
    """Returns whether there are enough data where the new policy goes."""
    if not table.changed.any():
        return Check.unchecked("enough-data", "no-change")
    decisions = run_sums(table.visits + table.held_out_visits, table.pairs.offsets)
    is_open = in_open_bins(table.vocabulary)
    return place_check(*(time, folds, decisions, is_open, names_of(table.vocabulary)), level=LEVEL)


def in_open_bins(vocabulary: Vocabulary) -> BoolArray:
    """Returns the states [S] a column of which is a bin without an end."""
    open_labels = [
        set() if column not in vocabulary.binnings else vocabulary.binnings[column].open_labels()
        for column in vocabulary.state_columns
    ]
    return np.array(
        [
            any(text in labels for text, labels in zip(state, open_labels, strict=True))
            for state in vocabulary.states
        ],
        np.bool_,
    )


def names_of(vocabulary: Vocabulary) -> list[str]:
    """Returns what states are called, one text each."""
    return [joined(vocabulary.state_name(state)) for state in range(len(vocabulary.states))]
