"""Certifies a saved policy further, by the log that made it or by another log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from surestep._arrays import IntArray, first_where
from surestep._progress import Progress, telling
from surestep.algorithms.registry import algorithm_of
from surestep.certificates import Certifier, certify
from surestep.certificates.episodes import holds_out, needs_episodes, split_of, training_for
from surestep.certificates.registry import Asked
from surestep.checks import Check, clock, declared_policy
from surestep.description import RANGES, described, given_as, in_words, merged
from surestep.errors import CertificateRefused, InvalidParameter, ShapeMismatch
from surestep.io.counts.labelled import LabelledCounts, counts_digest
from surestep.io.labels.label_tables import (
    PairTable,
    check_listed,
    check_log_fits,
    propensities_vary,
)
from surestep.io.logs.inspection import inspect_log
from surestep.io.logs.source import LogSource
from surestep.model import Certificate, Policy, Problem, Statement
from surestep.model.known import Ranges, Split, hull
from surestep.pipeline.checks import inspection_checks
from surestep.pipeline.evidence import (
    Assembly,
    CountsSource,
    assemble,
    gather,
    numbered,
    of_recording,
    open_source,
    pair_table_of,
    policy_of,
)
from surestep.pipeline.improve import prepared
from surestep.pipeline.posing import problem_of, with_signals
from surestep.pipeline.recording import terms_of
from surestep.pipeline.terms import Terms, certified, facts_of, with_algorithm
from surestep.pipeline.verify import check_said, open_again
from surestep.report.answer import Verdict, verdict
from surestep.results.findings import belief_in
from surestep.results.record import ROW_PROPENSITIES, InputFile
from surestep.results.result import POLICY, Result, with_table

SAME_CHANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Judged:
    """Claims about a saved policy, and whether they come from the log that made the policy.

    Parameters
    ----------
    certificates : tuple of Certificate
        The claims, one a kind.
    result : Result
        The saved result.
    same_log : bool
        The log is the one that the policy was made from.
    same_terms : bool
        Log and terms are those of the result, and so is its stress test.
    fresh : bool
        Nothing shows that the policy was made from any of the log.
    checks : tuple of Check
        The checks of the log.

    Examples
    --------
    >>> import tempfile
    >>> from surestep.pipeline import certify_result
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     surestep.improve(table, discount=0, worlds=0).save(f"{folder}/result")
    ...     judged = certify_result(f"{folder}/result", table, ["robust"])
    >>> judged.verdict(judged.certificates[0]).rung
    'not shown to be better'
    """

    certificates: tuple[Certificate, ...]
    result: Result
    same_log: bool
    same_terms: bool
    fresh: bool
    checks: tuple[Check, ...] = ()

    def verdict(self, claim: Certificate) -> Verdict:
        """Returns the line to act on that follows from one of the claims.

        Only the claim of the result may prove, or on a fresh log the first one.

        Parameters
        ----------
        claim : Certificate
            One of `certificates`.

        Returns
        -------
        Verdict
            One of the five verdicts, and why.
        """
        saved = self.result
        belief = belief_in(saved.certificates) if self.same_terms else None
        rehearsed = belief is not None and what_is_rehearsed(claim) == what_is_rehearsed(belief)
        return verdict(
            [claim],
            changed=claim.figures.get("changed_pairs") != 0,
            rehearsal=saved.rehearsal if rehearsed else None,
            awaited=saved.awaits_stress_test and rehearsed,
            fresh=self.fresh,
            named=claim == (self.certificates[0] if self.fresh else saved.certificate),
            record=saved.record if self.same_log else None,
            checks=self.checks,
        )


def what_is_rehearsed(claim: Certificate) -> tuple[str, dict[str, Any]]:
    """Returns the kind and the settings of a claim, without `seed` and `draws`."""
    return claim.kind, {k: v for k, v in claim.parameters.items() if k not in ("seed", "draws")}


def certify_result(
    directory: str | Path,
    log: object,
    kinds: Sequence[str | Certifier],
    *,
    delta: float | None = None,
    running: tuple[float, float] | None = None,
    ending: tuple[float, float] | None = None,
    returns: tuple[float, float] | None = None,
    allow_query: bool = False,
    memory_limit: str | None = None,
    progress: Progress | bool | None = None,
) -> Judged:
    """Certifies the policy of a saved result by other kinds, or by another log.

    Parameters
    ----------
    directory : str or path
        The folder of a saved result.
    log : str, path, Description or table
        The log that the policy was made from, or another one that the same policy made. What a
        description says of stakes must agree with the result. A trajectory certificate needs a log
        that the policy was not made from.
    kinds : sequence of str or Certifier
        Kinds of certificates, such as "robust:set=l1".
    delta : float in (0, 1), optional
        The chance that the claim is wrong (δ). Default: the result's own.
    running : (float, float), optional
        A step after which it goes on earns between these. Default: the result's own.
    ending : (float, float), optional
        A step that ends its episode earns between these. Default: the result's own.
    returns : (float, float), optional
        The lowest and highest total from any step to the end, unless that is 0. Default: the
        result's own.
    allow_query : bool, default False
        Run the query that the result was made by, which is not in a description of yours.
    memory_limit : str, optional
        Such as "2GB"; the rest spills to disk.
    progress : bool or callable, optional
        True shows a bar. A function is called with what is being done, how much of it is done, and
        of how much.

    Returns
    -------
    Judged
        The certificates, and what may be said of the policy with them.

    Raises
    ------
    CertificateRefused
        A kind does not cover the policy, or must not see this log.
    ResultMismatch
        The description contradicts the result.

    Examples
    --------
    >>> import tempfile
    >>> from surestep.pipeline import certify_result
    >>> table = {
    ...     "state": ["mild", "mild", "severe", "severe"] * 60,
    ...     "action": ["wait", "treat"] * 120,
    ...     "reward": [1.0, 0.0, 0.0, 1.0] * 60,
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     surestep.improve(table, discount=0, worlds=0).save(f"{folder}/result")
    ...     judged = certify_result(f"{folder}/result", table, ["robust:set=l1"])
    >>> judged.certificates[0].kind, judged.same_log
    ('robust', True)
    """
    asked = [Asked.of(kind) for kind in kinds]
    if not asked:
        raise InvalidParameter("no kind of certificate is given, expected at least one")
    declared = in_words(running=running, ending=ending, returns=returns)
    with telling(progress) as tell:
        tell("reading the log", 0, 1)
        saved = with_table(directory)
        source = log_again(
            saved,
            log,
            memory_limit,
            but=RANGES if declared else (),
            allow_query=allow_query,
        )
        made = SavedPolicy.of(saved, source, asked, declared, delta)
        claims = []
        for done, certifier in enumerate(made.certifiers):
            tell("certifying", done, len(asked))
            made.check_may_judge(certifier)
            claims.append(certify(made.problem, made.policy, certifier))
        checks = saved.record.checks
        if not made.same_log:
            given = declared_policy.of_problem(made.problem, saved.record.parameters.behavior)
            checks = (*checks_of(source), *declared_policy.check(given))
    return Judged(
        certificates=tuple(claims),
        result=saved,
        same_log=made.same_log,
        same_terms=made.same_log and made.terms == terms_of(saved.record),
        fresh=not made.shares_files,
        checks=checks,
    )


def certify_policy(
    log: object,
    policy: object,
    kinds: Sequence[str] = (),
    *,
    discount: float | None = None,
    delta: float | None = None,
    running: tuple[float, float] | None = None,
    ending: tuple[float, float] | None = None,
    returns: tuple[float, float] | None = None,
    memory_limit: str | None = None,
    progress: Progress | bool | None = None,
) -> list[tuple[Certificate, Verdict]]:
    """Certifies a table of states and actions, such as a guideline, by a log.

    The policy must have been made without the log. States that it leaves out go on as before.

    Parameters
    ----------
    log : str, path, Description or table
        The log, or a description of it.
    policy : path or table
        A table of state, action: one action in each state.
    kinds : sequence of str, optional
        Kinds of claims, such as robust:set=l1; only the first may prove. Default: those of the
        description.
    discount : float in [0, 1], optional
        How much the next step counts (γ), from 0 to 1.
    delta : float in (0, 1), default 0.1
        The chance that the claim is wrong (δ).
    running : (float, float), optional
        A step after which it goes on earns between these. Default: as seen in the log; 0 if only
        the other is given.
    ending : (float, float), optional
        A step that ends its episode earns between these. Default: as seen in the log; 0 if only the
        other is given.
    returns : (float, float), optional
        Every episode returns between these, and so does its rest from any step on, unless that is
        0.
    memory_limit : str, optional
        Such as "2GB"; the rest spills to disk.
    progress : bool or callable, optional
        True shows a bar. A function is called with what is being done, how much of it is done, and
        of how much.

    Returns
    -------
    list of (Certificate, Verdict)
        The claims, each with the line to act on that follows from it.

    Examples
    --------
    >>> from surestep.pipeline import certify_policy
    >>> table = {
    ...     "state": ["mild", "mild", "severe", "severe"] * 60,
    ...     "action": ["wait", "treat"] * 120,
    ...     "reward": [1.0, 0.0, 0.0, 1.0] * 60,
    ... }
    >>> guideline = {"state": ["severe"], "action": ["treat"]}
    >>> (claim, told), *_ = certify_policy(table, guideline, discount=0, ending=(0, 1))
    >>> told.rung
    'proved better'
    """
    description, frame = given_as(
        log,
        certificates=[*kinds] or None,
        discount=discount,
        delta=delta,
        running=running,
        ending=ending,
        returns=returns,
    )
    with telling(progress) as tell:
        tell("reading the log", 0, 1)
        source = open_source(description, frame, memory_limit)
        evidence = gather(source, Terms.of(description))
        question = prepared(evidence)
        behavior = question.problem.behavior
        chosen = policy_of(
            pair_table_of(policy, evidence.counts, evidence.log_source), evidence.assembly, behavior
        )
        claims = [certified(question.problem, chosen, kind) for kind in question.certifiers]
        decisions = declared_policy.of_problem(question.problem, evidence.kinds["behavior"])
        judge = partial(
            verdict,
            changed=bool((chosen.probability != behavior.probability).any()),
            fresh=True,
            checks=(*checks_of(source), *declared_policy.check(decisions)),
        )
    return [(claim, judge([claim], named=claim is claims[0])) for claim in claims]


def checks_of(source: LogSource | CountsSource) -> tuple[Check, ...]:
    """Returns the checks of a log; of counts, those that they tell of."""
    if isinstance(source, LogSource):
        return inspection_checks(source, inspect_log(source))
    return tuple(clock.check(source.counts().dropped))


@dataclass(frozen=True, slots=True)
class SavedPolicy:
    """A saved policy, with the problem of the log that is to judge it."""

    terms: Terms
    certifiers: tuple[Certifier, ...]  # for the kinds that the caller asked for
    splits: frozenset[tuple[float, int | None]]  # of this log, by which the policy was made
    problem: Problem
    policy: Policy
    chosen_by: IntArray  # [K] visits in the data that chose the policy
    same_log: bool
    shares_files: bool  # the policy was made from a file of this log

    @classmethod
    def of(
        cls,
        saved: Result,
        source: LogSource | CountsSource,
        kinds: Sequence[Asked],
        declared: Mapping[str, Any],
        delta: float | None = None,
    ) -> Self:
        """Reads the log, with whole episodes if a certifier needs them.

        `declared` has ranges in place of all those of the result, as a description has them.
        """
        record = saved.record
        terms = terms_of(record)
        counts = source.counts()
        log = source if isinstance(source, LogSource) else None
        same_log = counts_digest(counts) == record.counts_sha256
        used = {file.sha256 for file in record.inputs if file.role == "log"}
        shares_files = same_log or any(
            InputFile.of("log", path).sha256 in used for path in source.files
        )
        if declared:
            stakes = described(merged(in_words(discount=terms.discount), declared)).stakes
            terms = replace(terms, stakes=stakes)
        facts = facts_of(counts)
        if not same_log and "running" in record.defaults:
            # Without declared ranges, steps may earn what the log of the result shows.
            shown = [getattr(record.parameters, name) for name in Ranges._fields]
            facts = facts._replace(single=Ranges(*map(hull, zip(facts.single, shown, strict=True))))
        parts = assemble(counts, **given_in(saved)) if same_log else other_log(saved, counts, log)
        told = terms.certifier_settings(facts)
        splits = set()
        if same_log:
            made = [Asked.of(text).make_with(told) for text in record.parameters.certificates]
            splits = {split_of(certifier) for certifier in made if holds_out(certifier)}
        told = told._replace(
            # The whole log may judge a policy that was made without it.
            split=told.split if splits else Split(0.0, "adaptive"),
            delta=told.delta if delta is None else delta,
        )
        n_wedge = None if record.parameters.n_wedge_chosen_by else record.parameters.n_wedge
        told = with_algorithm(told, algorithm_of(record.parameters.algorithm), n_wedge)
        certifiers = tuple(kind.make_with(told) for kind in kinds)
        table = saved.table
        if record.behavior_is_estimated:
            # That of the result, which the training part alone may have told.
            parts = replace(
                parts, behavior=Policy(parts.counts.pairs, table.behavior, estimated=True)
            )
        policy = Policy(parts.counts.pairs, table.probability)
        visits = table.visits
        parts = numbered(
            parts,
            source,
            counts,
            [certifier.name for certifier in certifiers if needs_episodes(certifier)],
            of_rows=record.parameters.behavior == ROW_PROPENSITIES,
        )
        problem = problem_of(parts, terms, told, counts, log)
        problem = with_signals(problem, described(record.description), source, parts, terms)
        if not same_log:
            how = Statement("log-partly-known" if shares_files else "log-unknown")
            problem = problem.moved(lambda p: replace(p, premises=(*p.premises, how)))
        if parts.numbering is not None:
            policy = parts.numbering.policy(policy)
            visits = visits[parts.numbering.pair]
        return cls(
            terms=terms,
            certifiers=certifiers,
            splits=frozenset(splits),
            problem=problem,
            policy=policy,
            chosen_by=visits,
            same_log=same_log,
            shares_files=shares_files,
        )

    def check_may_judge(self, certifier: Certifier) -> None:
        """Refuses a certifier that needs held-out data if this log chose the policy.

        On the log of the result, the certifier has to leave the same steps to the choice of the
        policy. Equal counts are not enough: the same episodes in another order are split
        differently.
        """
        if not certifier.needs.held_out and not holds_out(certifier):
            return
        if not self.same_log and self.shares_files:
            raise CertificateRefused(Statement("made-from-some-of-log"))
        alike = split_of(certifier) in self.splits and np.array_equal(
            training_for(self.problem, certifier).counts.visits, self.chosen_by
        )
        if self.same_log and not alike:
            raise CertificateRefused(Statement("made-from-log", {"kind": certifier.name}))


def log_again(
    saved: Result,
    log: object,
    memory_limit: str | None,
    *,
    but: Sequence[str],
    allow_query: bool,
    time: str | None = None,
) -> LogSource | CountsSource:
    """Opens a log to judge by, with the bins of the result, since its own quantiles may differ.

    Refuses a description whose stakes, except those named in `but`, differ from the result's.
    `time` names the column of times if it is not that of the result.
    """
    own, frame = given_as(log)
    record = saved.record
    words = saved.table.vocabulary
    stakes = {name: value for name, value in own.stakes.given().items() if name not in but}
    check_said(record, described({"stakes": stakes}))
    rules = record.description.get("bins", {})
    bins = {name: binning.to_json() for name, binning in words.binnings.items()}
    bins |= {name: rules[name] for name in words.learnt if name in rules}
    # Those of the parameters are of the files; columns that reading adds are said alone.
    columns = record.description.get("columns", {}) | record.parameters.columns
    columns |= {} if time is None else {"time": time}
    source = open_again(
        record,
        own,
        frame,
        memory_limit,
        {"columns": columns, "bins": bins},
        allow_query=allow_query,
    )
    for states in words.learnt.values():
        source = source.with_states(states) if isinstance(source, LogSource) else source
    return source


def given_in(saved: Result) -> dict[str, Any]:
    """Returns the arguments of `assemble` that a saved result holds: lists of labels, and π_b."""
    parameters = saved.record.parameters
    words = saved.table.vocabulary
    inside = {
        "states": words.states[: saved.table.num_deciding],
        "actions": words.actions,
        "possible": pairs_in(saved),
    }
    listed = {name: each for name, each in inside.items() if getattr(parameters, name) == "listed"}
    behavior = behavior_table_of(saved) if parameters.behavior == "table" else parameters.behavior
    return {"behavior": behavior, "learnt": words.learnt, **listed}


def behavior_table_of(saved: Result) -> PairTable:
    """Returns the behavior policy of a saved result as a table of pairs."""
    return replace(pairs_in(saved), probability=saved.table.behavior[saved.table.decided])


def pairs_in(saved: Result) -> PairTable:
    """Returns the pairs of a saved result in states with a decision, with their labels.

    These states come first in the table of the result, so that pairs have its numbers.
    """
    table = saved.table
    known = replace(table.vocabulary, states=table.vocabulary.states[: table.num_deciding])
    enabled = np.stack([table.pairs.state, table.pairs.action], axis=1)[table.decided]
    pairs = known.pairs_of(enabled)
    return PairTable(POLICY, known, pairs, np.ones(pairs.num_pairs))


def other_log(saved: Result, counts: LabelledCounts, log: LogSource | None) -> Assembly:
    """Assembles another log over the pairs of a result; refuses a log with further pairs."""
    table = saved.table
    words = table.vocabulary
    deciding = table.num_deciding
    estimated = saved.record.behavior_is_estimated
    if (words.state_columns, words.action_columns) != (counts.state_columns, counts.action_columns):
        raise ShapeMismatch("the log has other columns of states or actions than the result")
    going = {label for label, yes in zip(counts.states, counts.goes_on, strict=False) if yes}
    ends = {*words.states[deciding:]} - going
    met = [label for label in (*counts.states, *counts.end_states()) if label not in ends]
    check_listed(
        "state", words.state_columns, words.states[:deciding], met, where="the policy", log=log
    )
    check_log_fits(pairs_in(saved) if estimated else behavior_table_of(saved), counts, log)
    behavior = Policy(table.pairs, table.behavior, estimated=estimated)
    if not estimated:
        check_same_behavior(behavior, counts)
    premises = (*of_recording(counts), Statement("behavior-of-result"))
    if saved.record.parameters.behavior == ROW_PROPENSITIES and propensities_vary(counts):
        premises += (Statement("acted-on-more"),)
    return Assembly(words, counts.to_counts(table.pairs), behavior, table.quiet, premises)


def check_same_behavior(known: Policy, counts: LabelledCounts) -> None:
    """Refuses a log whose propensities contradict the behavior policy of the result."""
    rows = counts.transitions
    pair = counts.pairs_of_rows(known.pairs)
    chance = known.probability[pair]
    for logged in [ends for ends in (rows.lowest, rows.highest) if ends is not None]:
        for t, others in first_where(np.abs(chance - logged) > SAME_CHANCE, "transition"):
            raise ShapeMismatch(
                f"the log says that {known.pairs.pair_name(int(pair[t]))} was taken with "
                f"probability {logged[t]:.6g}, but the behavior policy of the result has "
                f"{chance[t]:.6g}; expected a log that the same policy made{others}"
            )
