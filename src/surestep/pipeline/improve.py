"""`improve`: from a log of decisions to a better policy, its certificate and its report."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import surestep.certificates.episodes as episodes
from surestep.algorithms import Algorithm, Limits, needs_log
from surestep.certificates import Certifier, Posterior
from surestep.certificates.registry import may_be_believed
from surestep.certificates.stitched import Stitched
from surestep.description import SEEN, given_as
from surestep.errors import (
    CertificateRefused,
    InvalidParameter,
    NeverEnds,
    NotConverged,
    OutOfTime,
    said,
)
from surestep.io.labels.vocabulary import with_names
from surestep.model import Policy, Problem, estimate_behavior
from surestep.model.known import Logger
from surestep.model.log import UNKNOWN
from surestep.model.problem import UnseenRule
from surestep.parallel import reach
from surestep.pipeline.certifiers import certified, splitting, with_algorithm
from surestep.pipeline.checks import result_checks
from surestep.pipeline.evidence import CountsSource, Evidence, LoadedSteps, gather, open_source
from surestep.pipeline.findings import findings_of, settle
from surestep.pipeline.recording import Rehearsed, data_summary, record_of
from surestep.pipeline.refuting import check_declared, check_ends_for_certain
from surestep.pipeline.signals import problem_of, with_signals
from surestep.pipeline.stress_test import ALONE, Assignment, Effort, Progress, planned, rehearsal_of
from surestep.pipeline.terms import Terms
from surestep.planning import evaluate, performance
from surestep.report.result import result_page
from surestep.results.advantage_intervals import gain_interval, gains_of_lost
from surestep.results.findings import Findings, NoRehearsal, is_proved
from surestep.results.record import ESTIMATED, ROW_PROPENSITIES, Estimates, Record, baseline_of
from surestep.results.result import Result
from surestep.results.table import PolicyTable

# Of fewer episodes a smaller share estimates what is done now too badly: measured against what was
# really done, 8 of 40 claims were wrong with a share of 0.1
# (`benchmarks/practice.py --logs 40 --share 0.1`, Random MDPs with 300 episodes, by rollouts).
LEAST_SHARE, MANY_EPISODES = 0.3, 1_000


def improve(
    source: object,
    algorithm: str | Algorithm | None = None,
    *,
    discount: float | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    bins: Mapping[str, Mapping[str, Any]] | None = None,
    ends: Literal["complete", "clock"] | None = None,
    query: str | None = None,
    behavior: object = None,
    logger: Logger | None = None,
    running: tuple[float, float] | None = None,
    ending: tuple[float, float] | None = None,
    returns: tuple[float, float] | None = None,
    states: object = None,
    actions: object = None,
    signals: Mapping[str, Mapping[str, Any]] | None = None,
    unsafe: Mapping[str, Any] | None = None,
    possible: object = None,
    allowed: object = None,
    n_wedge: int | Literal["auto"] | None = None,
    zeta: float | None = None,
    least_visits: int | None = None,
    delta: float | None = None,
    unseen: UnseenRule | None = None,
    certificates: Sequence[str | Certifier] | None = None,
    train_share: float | None = None,
    worlds: int | None = None,
    names: Mapping[str, Mapping[str, str]] | None = None,
    memory_limit: str | None = None,
    workers: int = 1,
    engine: str = "local",
    address: str | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Result:
    """Returns the improved policy for a log, with its certificates, report and record.

    `source` is a description (a path that ends in .toml), a `LogSource`, counts, or anything that
    `read_log` takes; `columns`, `bins`, `ends` and `query` are those of `read_log`. What is given
    here stands above what a description says. `behavior` is a table of the policy that made the log
    (a path or a table in memory), "uniform" (a randomised trial), "propensities" (a column of the
    log), or "estimate"; by default propensities where the log has them. `algorithm` is settings, or
    a name such as "spibb" or "spibb:n_wedge=50"; `n_wedge` or `zeta` say N∧, else it is chosen by
    the lower bound of the first certificate. Where no algorithm is named, policies that can be
    proved (`Provable`) are candidates beside those of SPIBB, and so are all with one action in each
    state that they change. What was seen fewer than `least_visits` times (10) is not done more
    often than before, unless N∧ is given. `certificates` are names such as "posterior" or
    "robust:set=l1", or settings: the result stands by the first, and each holds at δ for itself.
    The first `train_share` of the log (0.5 of up to 100 episodes, falling to 0.3 of 500 and more)
    chooses the policy, and the rest judges it; a `logger` that is "fixed", and not "adaptive", has
    not learnt on the way, and then a part drawn at random chooses. `worlds` of each kind rehearse
    the whole; 0: none; by default a number that follows from the size of the problem. They are gone
    through by `workers` processes, or with the `engine` "ray" by the cluster at `address`. A
    `time_limit` in seconds ends that stress test; the result then says how many worlds were
    reached. To have the rest saved before, see `draft`. `states` and `actions` list what there is
    beyond what the log shows. `possible` is "seen", so that nothing is recommended in a state that
    the log does not show there, or a table of all pairs of state and action that there are;
    `allowed` is one of those that may be recommended: no other pair is taken more often than by
    π_b. `running` is the range of what a step may earn after which the episode goes on, `ending`
    that of a step which ends it; of the two, one that is left out means exactly 0. `returns` is the
    range of what whole episodes return, and their rest from any step on. Where none of the three is
    given, the rewards of the log are taken for all there are, and nothing is called proved better.
    `signals` are numbers of which the first is improved and the others must not get worse, such as
    {"dialysis": {"column": "dialysis", "running": (0, 1), "cost": True, "not_worse_by": 0.02}};
    `unsafe` says which states are not to be reached, such as {"states": "pressure = 'critical'",
    "within": 30}. `names` are what people call the values of a column, such as
    {"iv_fluid": {"0": "none"}}: the page shows them, and policy.csv does not.
    """
    beside = {"behavior": behavior, "states": states, "actions": actions}
    beside |= {"possible": possible, "allowed": allowed}
    words, objects = dict[str, Any](), dict[str, object]()
    for name, value in beside.items():
        if value is not None:
            (words if isinstance(value, str | os.PathLike) else objects)[name] = value
    description, frame = given_as(
        source,
        **words,
        **{"discount": discount, "columns": columns, "bins": bins, "ends": ends, "query": query},
        **{"signals": signals, "unsafe": unsafe},
        **{"logger": logger, "running": running, "ending": ending, "returns": returns},
        **{"n_wedge": n_wedge, "zeta": zeta, "least_visits": least_visits, "delta": delta},
        **{"unseen": unseen, "train_share": train_share, "worlds": worlds, "names": names},
    )
    # Types that are registered nowhere are known by their objects alone.
    terms = Terms.of(description, algorithm=algorithm, certificates=certificates)
    reach(engine, address)
    tell = progress or (lambda what, done, total: None)
    tell("reading the log", 0, 1)
    log = open_source(description, frame, memory_limit)
    made = draft(gather(log, terms=terms, objects=objects), terms, tell)
    return result_of(made.finished(tell, Effort(workers, engine, address, time_limit)))


@dataclass(frozen=True, slots=True)
class Draft:
    """A result before its stress test, and what the stress test needs."""

    findings: Findings
    question: Assignment
    how: Rehearsed
    record: Callable[[Rehearsed], Record]
    least_worlds: int

    @property
    def result(self) -> Result:
        """Returns the result, whole but for a stress test."""
        return result_of(self.findings)

    def like(self, record: Record) -> Draft:
        """Returns the draft as if made with the versions, the machine and the files of a record."""

        def in_order(own: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
            return {name: theirs[name] for name in (*own, *theirs) if name in theirs}

        def moved(own: Record) -> Record:
            versions = in_order(own.versions, record.versions)
            machine = in_order(own.machine, record.machine)
            return replace(own, versions=versions, machine=machine, inputs=record.inputs)

        findings = replace(self.findings, record=moved(self.findings.record))
        return replace(self, findings=findings, record=lambda how: moved(self.record(how)))

    def finished(self, progress: Progress, effort: Effort = ALONE) -> Findings:
        """Returns the findings with a stress test, which goes on from what the folder has of it.

        Where a time limit leaves too few worlds, it is still without.
        """
        if not self.how.sizes:
            return self.findings
        try:
            rehearsal, how = rehearsal_of(
                self.question, self.how, effort, progress, self.least_worlds
            )
        except OutOfTime:
            return self.findings
        found = replace(self.findings, rehearsal=rehearsal, no_rehearsal=how.why_none)
        return replace(found, record=self.record(how))


def draft(
    evidence: Evidence, terms: Terms, progress: Progress, *, time_limit: float | None = None
) -> Draft:
    """Improves and certifies: all that there is to say before a stress test.

    `time_limit` is the one that has led to the number of worlds in the terms, if any.
    """
    terms = replace(terms, has_episodes=evidence.has_episodes)
    question = prepared(evidence, terms)
    how = planned(terms, question)._replace(time_limit=time_limit)
    made = draft_with(evidence, terms, question, how, progress)
    if made.findings.changes:
        return made
    none = Rehearsed(0, why_none=NoRehearsal("nothing changed"))
    findings = replace(made.findings, no_rehearsal=none.why_none, record=made.record(none))
    return replace(made, findings=findings, how=none)


def draft_with(
    evidence: Evidence, terms: Terms, question: Assignment, how: Rehearsed, progress: Progress
) -> Draft:
    """Improves, certifies and drafts the result, for a stress test of a given size."""
    problem, algorithm, part = question.problem, question.algorithm, question.training
    progress("improving the policy", 0, 1)
    settled = settle(algorithm, part)
    policy = settled.improvement.policy
    # An N∧ that the data chose is none that was fixed beforehand.
    fixed = None if settled.choice else settled.improvement.n_wedge
    told = with_algorithm(question.told, settled.algorithm, fixed)
    certifiers = [
        asked.told_since(certifier, question.told, told)
        for asked, certifier in zip(terms.asked, question.certifiers, strict=True)
    ]
    claims = []
    for done, certifier in enumerate(certifiers):
        progress("certifying", done, len(certifiers))
        claims.append(certified(problem, policy, certifier))
    estimate, assembly = part.estimate(), evidence.assembly
    if evidence.description.names:
        words = with_names(assembly.vocabulary, evidence.description.names)
        assembly = replace(assembly, vocabulary=words)
    numbered = assembly.renumbered(question.numbering)
    table = PolicyTable.of(
        *(numbered.vocabulary, part, estimate, settled.improvement, numbered.quiet),
        judging=question.judging,
        delta=terms.level,
        allowed=numbered.allowed,
    )
    if not table.changed.any() and evidence.behavior in ESTIMATED:
        # What changes nothing is what was done: the estimate of all of the log, not of a part.
        as_done = estimate_behavior(problem.counts).probability
        table = replace(table, probability=as_done, behavior=as_done)
    estimates: Estimates = {
        "behavior": performance(estimate, part.behavior),
        "policy": float(estimate.initial @ settled.improvement.plan.value),
    }
    # Without a discount a policy need not end in other models.
    if part is not problem and problem.single_discount < 1:
        model = problem.estimate()
        before = performance(model, problem.behavior)
        estimates["gain_of_all"] = performance(model, policy) - before
    if question.judging is not None:
        with suppress(NeverEnds, NotConverged):
            behind = part.counts if problem.behavior_is_estimated else None
            held_out = gain_interval(question.judging, policy, terms.level, behind)
            estimates |= {f"held_out_{name}": value for name, value in held_out._asdict().items()}  # type: ignore[typeddict-item]
    estimates |= lost_expected(question.judging or problem, policy, terms, evidence)
    if problem.log is not None and not is_proved(claims[0]):
        estimates |= proof_expected(certifiers[0], part, policy, problem.log.num_episodes)
    value = evaluate(estimate, part.behavior)
    baseline = None
    if problem.log is not None:
        chosen_by = problem.log if part.log is None else part.log
        baseline = baseline_of(
            *(problem.log, problem.single_discount, value, estimates["behavior"]),
            model_episodes=chosen_by.num_episodes,
        )
    progress("checking what is assumed", 0, 1)
    checks = result_checks(
        *(replace(evidence, assembly=numbered), terms, question, table),
        certificates=tuple(claims),
        model=estimate,
        values=(settled.improvement.plan.value, value),
        estimates=estimates,
        baseline=baseline,
    )

    def record(how: Rehearsed) -> Record:
        return record_of(
            *(evidence, terms, problem, settled, how),
            estimates=estimates,
            baseline=baseline,
            checks=checks,
        )

    findings = findings_of(
        part,
        estimate,
        table,
        settled=settled,
        certificate=claims[0],
        others=tuple(claims[1:]),
        no_rehearsal=NoRehearsal("to come") if how.sizes else how.why_none,
        data=data_summary(evidence.counts),
        record=record(how),
        judging=question.judging,
    )
    if question.numbering is not None:
        findings = findings.renumbered(assembly.vocabulary, question.numbering)
    least = min(terms.least_worlds, max(how.worlds, 1))
    return Draft(findings, question, how, record, least)


def lost_expected(judging: Problem, policy: Policy, terms: Terms, evidence: Evidence) -> Any:
    """Returns the gain if cases that nobody saw again fared otherwise than others, if any did."""
    log = judging.log
    if log is None or not (log.next_state == UNKNOWN).any():
        return {}
    with suppress(NeverEnds, NotConverged):
        gains = gains_of_lost(judging, log, policy, terms.ranges(evidence.facts).ending)
        return {f"lost_{name}": value for name, value in gains._asdict().items()}
    return {}


def proof_expected(certifier: Certifier, part: Problem, policy: Policy, recorded: int) -> Any:
    """Returns how many episodes, of so many times the log's, should prove a gain.

    Only rollouts of the part that chose the policy can say that; nothing is said by others.
    """
    changed = (policy.probability != part.behavior.probability).any()
    if not (changed and isinstance(certifier, Stitched)):
        return {}
    try:
        growth = certifier.growth_for_proof(part, policy)
    except CertificateRefused:
        return {}
    return {"episodes_for_proof": None if growth is None else math.ceil(growth * recorded)}


def result_of(findings: Findings) -> Result:
    """Returns the result with its report."""
    claims = (findings.certificate, *findings.others)
    page = result_page(findings)
    return Result(findings.table, claims, findings.record, page, findings.rehearsal)


def prepared(evidence: Evidence, terms: Terms) -> Assignment:
    """Returns what is asked: the problem, with whole episodes where they are looked at."""
    problem = problem_of(evidence.assembly, terms, evidence.facts)
    of_rows = evidence.behavior == ROW_PROPENSITIES
    steps = LoadedSteps(
        evidence.source, evidence.counts, problem.counts.pairs, propensities=of_rows
    )
    check_declared(terms, problem, steps)
    check_ends_for_certain(problem)
    told = terms.certifier_settings(evidence.facts)
    certifiers = tuple(asked.make_with(told) for asked in terms.asked)
    least = max(terms.floor or 0, int(evidence.kinds["possible"] == SEEN))
    limits = Limits(least_visits=least, allowed=evidence.assembly.allowed)
    algorithm = terms.algorithm_for(problem, told, certifiers, limits)
    whole = [certifier.name for certifier in certifiers if episodes.needs_episodes(certifier)]
    if needs_log(algorithm):
        whole.insert(0, algorithm.name)
    problem, numbering = steps.numbered(problem, evidence.assembly.quiet, whole)
    source = CountsSource(evidence.counts) if evidence.source is None else evidence.source
    problem = with_signals(
        *(problem, evidence.description, source, evidence.assembly, terms, numbering, whole)
    )
    if numbering is not None and limits.allowed is not None:
        limits = replace(limits, allowed=limits.allowed[numbering.pair])
    algorithm = terms.algorithm_for(problem, told, certifiers, limits)  # which knows all signals
    split = splitting(certifiers)
    training, judging = problem, None
    if split is not None:
        training = episodes.training_for(problem, split)
        if evidence.behavior in ESTIMATED:
            check_share(episodes.split_of(split)[0], episodes.log_of(problem).num_episodes)
            # What certifies must have no part in the policy that it compares with.
            behavior = estimate_behavior(training.counts)
            problem, training = (part.with_behavior(behavior) for part in (problem, training))
        judging = episodes.held_out_part(problem, *episodes.split_of(split))
    belief = belief_beside(certifiers)
    return Assignment(problem, training, judging, algorithm, told, certifiers, belief, numbering)


def check_share(share: float, recorded: int) -> None:
    """Refuses a part that is too small to estimate what is done now from it."""
    if share < LEAST_SHARE and recorded < MANY_EPISODES:
        raise InvalidParameter(
            f"train_share is {share:g}, and what is done now is estimated from that part of "
            f"{recorded:,} episodes alone; expected at least {LEAST_SHARE}, {MANY_EPISODES:,} "
            f"episodes, or the policy that made the log ({said('behavior=…', '--behavior')})"
        )


def belief_beside(certifiers: Sequence[Certifier]) -> Posterior | None:
    """Returns whose claim is the belief to be shown; None where none, or that of the first, is."""
    believed = (
        certifier
        for place, certifier in enumerate(certifiers)
        if may_be_believed(place, certifier.name, apart=episodes.holds_out(certifier))
    )
    first = next(believed, None)
    return first if first is not certifiers[0] and isinstance(first, Posterior) else None
