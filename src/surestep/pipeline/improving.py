"""The main job: from a log of decisions to a better policy, its certificate and its report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from surestep.algorithms import Algorithm, needs_log
from surestep.certificates import Certifier, training_part
from surestep.choosing import AutoNWedge
from surestep.errors import InvalidParameter
from surestep.model import Problem
from surestep.model.problem import UnseenRule
from surestep.pipeline.assembly import Assembly
from surestep.pipeline.certifying import certified, certified_at_levels, training_of
from surestep.pipeline.evidence import Evidence, gather
from surestep.pipeline.findings import findings_of
from surestep.pipeline.recording import Rehearsed, data_summary, record_of
from surestep.pipeline.refuting import check_given_bounds
from surestep.pipeline.sensitivity import settle
from surestep.pipeline.terms import Terms
from surestep.planning import performance
from surestep.rehearsal import Rehearsal, rehearse
from surestep.report.page import result_page
from surestep.results.findings import Findings
from surestep.results.result import Result
from surestep.results.table import PolicyTable

READ_OFF = "Bounds of rewards, where the claim has them, were read off the data."
Progress = Callable[[str, int, int], None]  # what is being done, done, of how many


def improve(
    source: object,
    algorithm: str | Algorithm | None = None,
    *,
    discount: float,
    behavior: object = None,
    settings: Mapping[str, Any] | None = None,
    n_wedge: int | Literal["auto"] | None = None,
    zeta: float | None = None,
    delta: float | None = None,
    value_bounds: tuple[float, float] | None = None,
    reward_bounds: tuple[float, float] | None = None,
    unseen: UnseenRule | None = None,
    certificates: Sequence[str | Certifier] | None = None,
    worlds: int | None = None,
    states: object = None,
    actions: object = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Result:
    """The improved policy for a log, with its certificates, report and record.

    `source` is a `LogSource`, counts, or anything that `read_log` takes. `behavior` is a table of
    the policy that made the log (a path or a table in memory), "propensities" (a column of the
    log), or "estimate"; by default propensities where the log has them. `algorithm` is settings, or
    a name with `settings`; `n_wedge` or `zeta` say N∧, else it is chosen by the lower bound of the
    first certificate. `certificates` are names such as "posterior" or "robust:set=l1", or settings:
    the result stands by the first, and each holds at δ for itself. A trajectory certificate keeps
    its test part out of the improvement. `worlds` of each kind rehearse the whole; 0: none.
    `states` and `actions` list what there is beyond what the log shows. Without bounds of rewards
    or values, those of the rewards observed are taken.
    """
    terms = Terms(
        discount=discount,
        algorithm=algorithm,
        settings=settings or {},
        n_wedge=n_wedge,
        zeta=zeta,
        delta=delta,
        value_bounds=value_bounds,
        reward_bounds=reward_bounds,
        unseen=unseen,
        certificates=certificates,
        worlds=worlds,
    )
    tell = progress or (lambda what, done, total: None)
    tell("reading the log", 0, 1)
    return make_result(gather(source, behavior, states, actions), terms, tell, workers).result


@dataclass(frozen=True, slots=True)
class Made:
    """A result, and the problem that it solves."""

    result: Result
    problem: Problem


def make_result(evidence: Evidence, terms: Terms, progress: Progress, workers: int = 1) -> Made:
    """Improves, certifies, rehearses, and writes the report."""
    problem, algorithm = prepared(evidence, terms)
    rehearsal = Rehearsed(terms.worlds_for(problem))
    findings = find(evidence, terms, problem, algorithm, rehearsal, progress, workers)
    claims = (findings.certificate, *findings.others)
    page = result_page(findings)
    result = Result(findings.table, claims, findings.record, page, findings.rehearsal)
    return Made(result, problem)


def find(
    evidence: Evidence,
    terms: Terms,
    problem: Problem,
    algorithm: Algorithm | AutoNWedge,
    rehearsal: Rehearsed,
    progress: Progress,
    workers: int,
) -> Findings:
    """All that there is to say: the policy, what is claimed of it, and what a rehearsal found."""
    told = terms.certifier_settings(evidence.rewards)
    part = training_problem(problem, [told.certifier(asked) for asked in terms.asked])
    progress("improving the policy", 0, 1)
    settled = settle(algorithm, part)
    policy = settled.improvement.policy
    # An N∧ that the data chose is none that was fixed beforehand.
    told = told.of_algorithm(
        settled.algorithm, None if settled.choice else settled.improvement.n_wedge
    )
    certifiers = [told.certifier(asked) for asked in terms.asked]
    progress("certifying", 0, len(certifiers))
    claims = certified_at_levels(problem, policy, certifiers[0])
    others = []
    for done, certifier in enumerate(certifiers[1:], 1):
        progress("certifying", done, len(certifiers))
        others.append(certified(problem, policy, certifier))
    rehearsed = rehearsal_of(problem, algorithm, certifiers[0], rehearsal, progress, workers)
    estimate, assembly = part.estimate(), evidence.assembly
    table = PolicyTable.of(assembly.vocabulary, part, estimate, settled.improvement, assembly.quiet)
    estimates = {
        "behavior": performance(estimate, part.behavior),
        "policy": float(estimate.initial @ settled.improvement.plan.value),
    }
    return findings_of(
        part,
        estimate,
        table,
        settled=settled,
        certifier=certifiers[0],
        claims=claims,
        others=tuple(others),
        rehearsal=rehearsed,
        data=data_summary(evidence.counts),
        record=record_of(evidence, terms, problem, settled, rehearsal, estimates),
        progress=lambda done, total: progress("trying other settings", done, total),
    )


def training_problem(problem: Problem, certifiers: Sequence[Certifier]) -> Problem:
    """What may choose the policy: all, or the training part where the rest is to judge it."""
    training = training_of(certifiers)
    if training is None:
        return problem
    return training_part(problem, training.train_share, training.seed)


def prepared(evidence: Evidence, terms: Terms) -> tuple[Problem, Algorithm | AutoNWedge]:
    """The problem, with whole episodes where they are looked at, and what improves it."""
    problem = problem_of(evidence.assembly, terms)
    check_given_bounds(terms, problem, evidence.rewards)
    algorithm = terms.algorithm_for(problem, evidence.rewards)
    whole = [asked.kind for asked in terms.asked if asked.kind == "trajectory"]
    if needs_log(algorithm):
        whole.insert(0, algorithm.name)
    if not whole:
        return problem, algorithm
    return with_log(problem, evidence, whole[0]), algorithm


def rehearsal_of(
    problem: Problem,
    algorithm: Algorithm | AutoNWedge,
    certifier: Certifier,
    settings: Rehearsed,
    progress: Progress,
    workers: int,
) -> Rehearsal | None:
    """The stress test of the whole pipeline, choice of N∧ included."""
    if settings.worlds == 0:
        return None
    return rehearse(
        problem,
        algorithm,
        certifier,
        rng=np.random.default_rng(settings.seed),
        worlds=settings.worlds,
        sizes=settings.sizes,
        workers=workers,
        progress=lambda done, total: progress("rehearsing", done, total),
    )


def problem_of(assembly: Assembly, terms: Terms) -> Problem:
    """The problem under the terms; what was taken for granted goes into its premises."""
    low, high = terms.value_bounds_for(assembly.counts)
    premises = assembly.premises
    if terms.reward_bounds is None and terms.value_bounds is None:
        premises += (
            "No step ever earns less or more, on average, than the mean rewards observed, or 0: "
            "the value bounds were read off the data.",
        )
    if terms.reward_bounds is None:
        premises += (READ_OFF,)
    return Problem(
        counts=assembly.counts,
        behavior=assembly.behavior,
        discount=terms.discount,
        value_bounds=(low, high),
        unseen=terms.unseen_rule,
        premises=premises,
    )


def with_log(problem: Problem, evidence: Evidence, name: str) -> Problem:
    """The problem with its whole episodes."""
    if evidence.source is None:
        raise InvalidParameter(
            f"{name} looks at whole episodes, but only counts are given; expected a log"
        )
    log = evidence.source.load(problem.counts.pairs)
    return replace(problem, log=log, counts=log.counts())
