"""Improves the policy behind a log of decisions, with a certificate and a report."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import surestep.certificates.episodes as episodes
from surestep._arrays import FloatArray
from surestep._progress import Progress, silent, telling
from surestep.algorithms import Algorithm
from surestep.algorithms.contract import Limits
from surestep.certificates import Certifier
from surestep.certificates.registry import may_be_believed
from surestep.checks import failed
from surestep.description import SEEN, given_as
from surestep.errors import (
    CertificateRefused,
    InvalidParameter,
    NeverEnds,
    NotConverged,
    OutOfTime,
    said,
)
from surestep.model import FiniteMDP, estimate_behavior
from surestep.model.known import Logger
from surestep.model.log import UNKNOWN
from surestep.model.problem import UnseenRule
from surestep.model.statements import STOPPING, WITHIN_SEEN
from surestep.parallel import reach
from surestep.pipeline.checks import result_checks
from surestep.pipeline.evidence import Evidence, check_there, gather, open_source, policy_of
from surestep.pipeline.findings import (
    Settled,
    findings_of,
    in_order_of_labels,
    policy_table,
    settle,
)
from surestep.pipeline.groups import group_gains, groups_of
from surestep.pipeline.posing import problem_of, with_signals
from surestep.pipeline.recording import Rehearsed, record_of
from surestep.pipeline.rules import columns_of, rules_of
from surestep.pipeline.stress_test import ALONE, Assignment, Effort, planned, rehearsal_of
from surestep.pipeline.terms import Terms, certified, splitting, with_algorithm
from surestep.planning import evaluate, performance
from surestep.planning.ends import refuse_endless
from surestep.rehearsal import Rehearsal
from surestep.report.result import result_page
from surestep.report.rules import card_page
from surestep.results import PolicyTable, Result
from surestep.results.advantage_intervals import gain_interval, gains_of_lost
from surestep.results.findings import Findings, is_proved
from surestep.results.record import ESTIMATED, Baseline, Estimates, Record, baseline_of
from surestep.results.totals import totals_of

# Of fewer episodes a smaller share estimates what is done now too badly: measured against what was
# really done, 8 of 40 claims were wrong with a share of 0.1
# (`benchmarks/practice.py --logs 40 --share 0.1`, Random MDPs with 300 episodes, by rollouts).
LEAST_SHARE = 0.3
MANY_EPISODES = 1_000


def improve(
    source: object,
    algorithm: str | Algorithm | None = None,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    bins: Mapping[str, Mapping[str, Any]] | None = None,
    ends: Literal["complete", "clock", "random"] | None = None,
    memory: int | None = None,
    query: str | None = None,
    names: Mapping[str, Mapping[str, str]] | None = None,
    about: Mapping[str, str] | None = None,
    behavior: object = None,
    logger: Logger | None = None,
    states: object = None,
    actions: object = None,
    possible: object = None,
    discount: float | None = None,
    running: tuple[float, float] | None = None,
    ending: tuple[float, float] | None = None,
    returns: tuple[float, float] | None = None,
    per: int | None = None,
    horizon: int | None = None,
    signals: Mapping[str, Mapping[str, Any]] | None = None,
    unsafe: Mapping[str, Any] | None = None,
    groups: Mapping[str, Any] | None = None,
    allowed: object = None,
    guideline: str | os.PathLike[str] | None = None,
    n_wedge: int | Literal["auto"] | None = None,
    zeta: float | None = None,
    least_visits: int | None = None,
    rules: int | None = None,
    unseen: UnseenRule | None = None,
    delta: float | None = None,
    certificates: Sequence[str | Certifier] | None = None,
    train_share: float | None = None,
    worlds: int | None = None,
    workers: int = 1,
    engine: str = "local",
    address: str | None = None,
    time_limit: float | None = None,
    memory_limit: str | None = None,
    progress: Progress | bool | None = None,
) -> Result:
    """Improves the policy behind a log, with certificates, a report and a record.

    Arguments come in groups: the data (`columns` to `possible`), the stakes (`discount` to
    `allowed`), the method (`n_wedge` to `train_share`, and `algorithm`), and the effort (`worlds`
    on). Each stands above what a description says.

    Parameters
    ----------
    source : str, path, LogSource, table or LabelledCounts
        A description (a path that ends in .toml), or anything that `read_log` takes; or counts.
    algorithm : str or Algorithm, default "spibb"
        The algorithm, such as spibb:n_wedge=50; see `surestep algorithms`.
    columns : mapping, optional
        The columns of each role, where they have other names than usual, such as {"state": "ward"}.
    bins : mapping, optional
        Bins of a column: quantiles, width, edges; or states of several: tree, kmeans.
    ends : {"complete", "clock", "random"}, optional
        How episodes end, where no column tells: complete, with their last row; clock, recording
        stops after so many steps, or at a date with steps of equal length; random, it is known to
        stop at random, whatever was done.
    memory : int, optional
        Situations also have the columns of so many steps before, with what was done there; 0: none.
    query : str, optional
        SQL that prepares the rows of the table `log`.
    names : mapping, optional
        What people call the values of a column, on the page and the screen.
    about : mapping, optional
        For readers of the page: title, population, period, author, date.
    behavior : str, path or table, optional
        The policy that made the log: a table of state, action, probability; uniform (a randomised
        trial); propensities, or row-propensities where they vary within a state; or estimate.
        Default: propensities, else estimate.
    logger : {"adaptive", "fixed"}, default "adaptive"
        One that is adaptive may have learnt on the way, so the first part of the log chooses the
        policy; with one that is fixed, a part drawn at random does.
    states : path, table or sequence, optional
        A file with all states that there are, where the log shows fewer.
    actions : path, table or sequence, optional
        A file with all actions that there are.
    possible : path, table or "seen", optional
        What can be done in a state: `seen`, only what the log shows there; or a table of state,
        action with all pairs that there are.
    discount : float in [0, 1], optional
        How much the next step counts (γ), from 0 to 1.
    running : (float, float), optional
        A step after which it goes on earns between these. Default: as seen in the log; 0 if only
        the other is given.
    ending : (float, float), optional
        A step that ends its episode earns between these. Default: as seen in the log; 0 if only the
        other is given.
    returns : (float, float), optional
        The lowest and highest total from any step to the end, unless that is 0.
    per : int, optional
        Count totals and shares per so many episodes, such as 100.
    horizon : int, optional
        Count totals and shares within so many steps (decisions), also where episodes do not end.
    signals : mapping, optional
        Numbers that steps earn: column, running, ending, returns, cost, discount, per. The first is
        improved, and others get worse by at most not_worse_by.
    unsafe : mapping, optional
        States that are not to be reached more often: states, within, at_most, not_worse_by.
    groups : mapping, optional
        Groups by values at the start of an episode: columns, not_worse_by, least (30). Without
        columns, those of the state.
    allowed : path or table, optional
        A table of state, action: no other is taken more often than before.
    guideline : str, optional
        A table of state, action: what the guideline says; states that it leaves out go on as
        before.
    n_wedge : int or "auto", default "auto"
        Pairs visited at most so often (N∧) keep their probability; or `auto`.
    zeta : float, optional
        Choose the N∧ at which SPIBB's bound claims a loss of at most ζ.
    least_visits : int, default 10
        Pairs visited less are not taken more often, unless N∧ is given.
    rules : int, default 12
        The most rules of a policy that is preferred to a table, if it promises nine tenths; 0:
        none.
    unseen : {"pessimistic", "terminal"}, default "pessimistic"
        What a pair is worth that was never tried: pessimistic, or 0 (terminal).
    delta : float in (0, 1), default 0.1
        The chance that the claim is wrong (δ).
    certificates : sequence of str or Certifier, optional
        Kinds of claims, such as robust:set=l1; the result stands by the first. Default: stitched,
        posterior, robust; of counts robust.
    train_share : float in (0, 1), optional
        The share of the log that chooses the policy; the rest judges it. Default: 0.5 of up to 100
        episodes, falling to 0.3 of 500 and more.
    worlds : int, optional
        Worlds of each kind in the stress test; 0: none. Default: 10, or what δ needs, as far as
        that takes about a quarter of a minute of one core; beyond, only those that say how often
        beliefs are wrong.
    workers : int, default 1
        Processes of this machine that do the stress test.
    engine : {"local", "ray"}
        Do the stress test here, or on a Ray cluster.
    address : str, optional
        The Ray cluster, such as "auto" or "head:6379".
    time_limit : float, optional
        Seconds after which the stress test ends; the result says how many worlds were reached.
    memory_limit : str, optional
        Such as "2GB"; the rest spills to disk.
    progress : bool or callable, optional
        True shows a bar. A function is called with what is being done, how much of it is done, and
        of how much.

    Returns
    -------
    Result
        The policy, what is claimed of it, the page that explains both, and what made them.

    Raises
    ------
    InvalidParameter
        An argument contradicts its type, another argument or the log.
    InvalidLog
        The log cannot be read with these columns.
    RefutedBounds
        The log contradicts `running`, `ending` or `returns`.

    Notes
    -----
    Where no algorithm is named, policies that can be proved (`Provable`) are candidates beside
    those of SPIBB, and so are all with one action in each state that they change, policies that
    leave out a column of the state, and small trees of rules. N∧ is chosen by the lower bound of
    the first certificate. Each certificate holds at δ for itself. Where none of
    `running`, `ending` and `returns` is given, the rewards of the log are taken for all there are,
    and nothing is called proved better; of the first two, one that is left out means exactly 0.

    Examples
    --------
    >>> table = {  # one decision an episode: a state, what was done, what it paid
    ...     "state": ["mild", "mild", "severe", "severe"] * 60,
    ...     "action": ["wait", "treat"] * 120,
    ...     "reward": [1.0, 0.0, 0.0, 1.0] * 60,
    ... }
    >>> result = surestep.improve(table, discount=0, ending=(0, 1), worlds=0)
    >>> result.verdict
    'proved better'
    >>> result.act("severe", rng=0)
    'treat'
    """
    beside = {
        "behavior": behavior,
        "states": states,
        "actions": actions,
        "possible": possible,
        "allowed": allowed,
    }
    words = {name: value for name, value in beside.items() if isinstance(value, str | os.PathLike)}
    description, frame = given_as(
        source,
        columns=columns,
        bins=bins,
        ends=ends,
        memory=memory,
        query=query,
        names=names,
        about=about,
        logger=logger,
        discount=discount,
        running=running,
        ending=ending,
        returns=returns,
        per=per,
        horizon=horizon,
        signals=signals,
        unsafe=unsafe,
        groups=groups,
        guideline=guideline,
        n_wedge=n_wedge,
        zeta=zeta,
        least_visits=least_visits,
        rules=rules,
        unseen=unseen,
        delta=delta,
        train_share=train_share,
        worlds=worlds,
        **words,
    )
    if description.structure:
        raise InvalidParameter(
            "the description has a [structure]; expected surestep.pipeline.improve_structured"
        )
    check_there(description)  # before the warning of what the description leaves open
    # Types that are registered nowhere are known by their objects alone.
    terms = Terms.of(description, algorithm=algorithm, certificates=certificates)
    reach(engine, address)
    with telling(progress) as tell:
        tell("reading the log", 0, 1)
        objects = {
            name: value for name, value in beside.items() if value is not None and name not in words
        }
        made = draft(gather(open_source(description, frame, memory_limit), terms, objects), tell)
        return result_of(made.finished(tell, Effort(workers, engine, address, time_limit)))


@dataclass(frozen=True, slots=True)
class Draft:
    """A result before its stress test, and what the stress test needs."""

    findings: Findings
    question: Assignment
    how: Rehearsed
    record: Callable[[Rehearsed], Record]
    least_worlds: int

    def finished(
        self, progress: Progress, effort: Effort = ALONE, kept: Rehearsal | None = None
    ) -> Findings:
        """Runs the stress test, or goes on with its finished parts; returns the findings with it.

        One that is `kept` is taken as it is. If a time limit leaves too few worlds, the findings
        are returned without a stress test.
        """
        if not self.how.sizes:
            return self.findings
        try:
            rehearsal, how = (
                (kept, self.how)
                if kept is not None
                else rehearsal_of(self.question, self.how, effort, progress, self.least_worlds)
            )
        except OutOfTime:
            return self.findings
        return replace(
            self.findings,
            rehearsal=rehearsal,
            no_rehearsal=how.why_none,
            record=self.record(how),
        )


def draft(
    evidence: Evidence, progress: Progress = silent, *, time_limit: float | None = None
) -> Draft:
    """Makes the draft of a result: improves the policy and certifies it, without a stress test.

    `time_limit` is the one that has led to the number of worlds in the terms, if any.
    """
    question = prepared(evidence)
    how = planned(evidence.terms, question)._replace(time_limit=time_limit)
    made = draft_with(evidence, question, how, progress)
    if made.findings.changes:
        return made
    none = Rehearsed(0, why_none="nothing changed")
    findings = replace(made.findings, no_rehearsal=none.why_none, record=made.record(none))
    return replace(made, findings=findings, how=none)


def prepared(evidence: Evidence) -> Assignment:
    """Poses the problem, builds the algorithm and the certifiers, and splits the log."""
    terms = evidence.terms
    parts = evidence.assembly
    problem = problem_of(parts, terms, evidence.told, evidence.counts, evidence.log_source)
    if problem.single_discount == 1:  # an estimated π_b that may never end is refused
        refuse_endless(problem.estimate(), problem.behavior.probability)
    problem = with_signals(problem, evidence.description, evidence.source, parts, terms)
    certifiers = evidence.certifiers
    least = max(terms.floor or 0, int(evidence.kinds["possible"] == SEEN))
    limits = Limits(least_visits=least, allowed=parts.allowed)
    columns = columns_of(parts.vocabulary, parts.quiet)
    algorithm = terms.algorithm_for(problem, evidence.told, certifiers, limits, columns)
    split = splitting(certifiers)
    training = problem
    judging = None
    if split is not None:
        training = episodes.training_for(problem, split)
        if evidence.kinds["behavior"] in ESTIMATED:
            check_share(episodes.split_of(split)[0], episodes.log_of(problem).num_episodes)
            # The data that certify must have no part in π_b.
            behavior = estimate_behavior(training.counts)
            problem, training = (part.with_behavior(behavior) for part in (problem, training))
        judging = episodes.held_out_part(problem, *episodes.split_of(split))
    groups = groups_of(evidence, problem, training, judging)
    belief = next(
        (
            certifier
            for place, certifier in enumerate(certifiers)
            if may_be_believed(place, certifier.name, apart=episodes.holds_out(certifier))
        ),
        None,
    )
    return Assignment(
        problem=problem,
        training=training,
        judging=judging,
        algorithm=algorithm,
        certifiers=certifiers,
        belief=None if belief is certifiers[0] else belief,
        groups=groups,
    )


def draft_with(
    evidence: Evidence, question: Assignment, how: Rehearsed, progress: Progress
) -> Draft:
    """Improves, certifies and drafts the result, for a stress test of a given size."""
    part = question.training
    progress("improving the policy", 0, 1)
    keys = evidence.description.groups
    settled = settle(question.algorithm, part, question.groups, keys.not_worse_by)
    # An N∧ chosen from the data was not fixed beforehand.
    fixed = None if settled.choice else settled.improvement.n_wedge
    told = with_algorithm(evidence.told, settled.algorithm, fixed)
    certifiers = [asked.make_with(told) for asked in evidence.terms.asked]
    claims = []
    for done, certifier in enumerate(certifiers):
        progress("certifying", done, len(certifiers))
        claims.append(certified(question.problem, settled.improvement.policy, certifier))
    model = part.estimate()
    table = table_of(evidence, question, settled, model)
    estimates = estimates_of(evidence, question, settled, model)
    if not is_proved(claims[0]):
        estimates = with_proof_expected(estimates, certifiers[0], question, settled)
    baseline = earned(question, evaluate(model, part.behavior), estimates["behavior"])
    progress("checking what is assumed", 0, 1)
    checks = result_checks(
        evidence,
        question,
        table,
        certificates=tuple(claims),
        model=model,
        estimates=estimates,
        baseline=baseline,
    )
    unsure = bool(failed(checks)) or claims[0].assumes(WITHIN_SEEN, STOPPING.code)
    record = partial(
        record_of,
        evidence,
        question.problem,
        settled,
        estimates=estimates,
        baseline=baseline,
        checks=checks,
        totals=totals_of(
            question.problem,
            part if question.judging is None else question.judging,
            settled.improvement.policy,
            evidence.terms.stakes,
            evidence.description.signals,
            delta=evidence.terms.level,
            estimated_from=part.counts if question.problem.behavior_is_estimated else None,
        ),
        groups=group_gains(
            question, settled.improvement.policy, keys, certifiers[0], names=not unsure
        ),
    )
    findings = findings_of(
        part,
        model,
        table,
        settled=settled,
        certificates=tuple(claims),
        no_rehearsal=how.why_none,
        record=record(how),
        judging=question.judging,
    )
    if evidence.guideline is not None:
        rows = evidence.guideline.rows
        said = dict(zip(rows["state"], rows["action"], strict=True))
        findings = replace(findings, guideline=said)
    if settled.choice and settled.choice.best.tried.tree:
        columns = columns_of(evidence.assembly.vocabulary, evidence.assembly.quiet)
        rules = rules_of(findings, settled.choice.best.tried.tree, columns)
        findings = replace(findings, rules=rules)
    if evidence.assembly.numbering is not None:
        findings = in_order_of_labels(findings, evidence.assembly.numbering)
    return Draft(findings, question, how, record, evidence.terms.least_worlds)


def table_of(
    evidence: Evidence, question: Assignment, settled: Settled, model: FiniteMDP
) -> PolicyTable:
    """Returns the table of the improved policy, pair by pair."""
    parts = evidence.assembly
    table = policy_table(
        parts.vocabulary,
        question.training,
        model,
        settled.improvement,
        parts.quiet,
        judging=question.judging,
        delta=evidence.terms.level,
        allowed=parts.allowed,
    )
    if table.changed.any() or evidence.kinds["behavior"] not in ESTIMATED:
        return table
    # A policy that changes nothing is shown as π_b, estimated from the whole log, not a part.
    as_done = estimate_behavior(question.problem.counts).probability
    return replace(table, probability=as_done, behavior=as_done)


def estimates_of(
    evidence: Evidence, question: Assignment, settled: Settled, model: FiniteMDP
) -> Estimates:
    """Estimates the returns of both policies by models of the parts of the log."""
    problem = question.problem
    part = question.training
    behind = part.counts if problem.behavior_is_estimated else None
    level = evidence.terms.level
    policy = settled.improvement.policy
    estimates: Estimates = {
        "behavior": performance(model, part.behavior),
        "policy": float(model.initial @ settled.improvement.plan.value),
    }
    # Without a discount a policy need not end in other models.
    if part is not problem and problem.single_discount < 1:
        of_all = problem.estimate()
        estimates["gain_of_all"] = performance(of_all, policy) - performance(
            of_all, problem.behavior
        )
    if question.judging is not None:
        with suppress(NeverEnds, NotConverged):
            gain, low, high = gain_interval(question.judging, policy, level, behind)
            estimates |= {"held_out_gain": gain, "held_out_low": low, "held_out_high": high}
    rest = problem if question.judging is None else question.judging
    if evidence.guideline is not None:
        known = policy_of(evidence.guideline, evidence.assembly, problem.behavior)
        with suppress(NeverEnds, NotConverged):
            over = gain_interval(rest.with_behavior(known), policy, level)
            today = gain_interval(rest, known, level, behind)
            estimates |= {"guideline": today, "over_guideline": over}
    if rest.episodes is not None and (rest.episodes.next_state == UNKNOWN).any():
        with suppress(NeverEnds, NotConverged):
            worst, opposed = gains_of_lost(rest, rest.episodes, policy, evidence.told.single.ending)
            estimates |= {"lost_worst": worst, "lost_opposed": opposed}
    return estimates


def earned(question: Assignment, value: FloatArray, model: float) -> Baseline | None:
    """Computes the mean return of the episodes of the log; None without whole episodes."""
    log = question.problem.episodes
    if log is None:
        return None
    return baseline_of(
        log,
        question.problem.single_discount,
        value,
        model,
        model_episodes=episodes.log_of(question.training).num_episodes,
    )


def with_proof_expected(
    estimates: Estimates, certifier: Certifier, question: Assignment, settled: Settled
) -> Estimates:
    """Adds the number of episodes, like those of the log, that would prove a gain.

    It is None if the certifier foresees no proof, and left out if the certifier refuses.
    """
    log = question.problem.episodes
    policy = settled.improvement.policy
    changed = (policy.probability != question.training.behavior.probability).any()
    if log is None or not changed:
        return estimates
    try:
        growth = certifier.growth_for_proof(question.training, policy)
    except CertificateRefused:
        return estimates
    expected = None if growth is None else math.ceil(growth * log.num_episodes)
    return {**estimates, "episodes_for_proof": expected}


def result_of(findings: Findings) -> Result:
    """Returns the result with its report."""
    return Result(
        findings.table,
        findings.certificates,
        findings.record,
        result_page(findings),
        findings.rehearsal,
        rules=findings.rules,
        card=card_page(findings),
    )


def check_share(share: float, recorded: int) -> None:
    """Refuses a part that is too small to estimate what is done now from it."""
    if share < LEAST_SHARE and recorded < MANY_EPISODES:
        raise InvalidParameter(
            f"train_share is {share:g}, and what is done now is estimated from that part of "
            f"{recorded:,} episodes alone; expected at least {LEAST_SHARE}, {MANY_EPISODES:,} "
            f"episodes, or the policy that made the log ({said('behavior=…', '--behavior')})"
        )
