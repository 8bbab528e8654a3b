"""The main job: from a log of decisions to a better policy, its certificate and its report."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from surestep.algorithms import Algorithm, needs_log, settings_to_json
from surestep.errors import InvalidParameter
from surestep.io.counts_digest import counts_digest
from surestep.io.labelled_counts import LabelledCounts
from surestep.model import Problem
from surestep.model.problem import UnseenRule
from surestep.pipeline.certifying import certified, certifier_for
from surestep.pipeline.command import command_line
from surestep.pipeline.evidence import Evidence, gather
from surestep.pipeline.findings import findings_of
from surestep.pipeline.terms import Terms
from surestep.planning import performance
from surestep.report.page import result_page
from surestep.results.findings import DataSummary
from surestep.results.record import Record, current_machine, current_versions
from surestep.results.result import Result
from surestep.results.table import PolicyTable

Progress = Callable[[str, int, int], None]  # what is being done, done, of how many


def improve(
    source: object,
    algorithm: str | Algorithm | None = None,
    *,
    discount: float,
    behavior: object = None,
    settings: Mapping[str, Any] | None = None,
    n_wedge: int | None = None,
    zeta: float | None = None,
    delta: float | None = None,
    value_bounds: tuple[float, float] | None = None,
    unseen: UnseenRule | None = None,
    states: object = None,
    actions: object = None,
    progress: Progress | None = None,
) -> Result:
    """The improved policy for a log, with its certificate, report and record.

    `source` is a `LogSource`, counts, or anything that `read_log` takes. `behavior` is a table of
    the policy that made the log (a path or a table in memory), "propensities" (a column of the
    log), or "estimate"; by default propensities where the log has them. `algorithm` is settings, or
    a name with `settings`; `n_wedge` or `zeta` say N∧. `states` and `actions` list what there is
    beyond what the log shows. Without value bounds, those of the rewards observed are taken.
    """
    terms = Terms(
        discount=discount,
        algorithm=algorithm,
        settings=settings or {},
        n_wedge=n_wedge,
        zeta=zeta,
        delta=delta,
        value_bounds=value_bounds,
        unseen=unseen,
    )
    tell = progress or (lambda what, done, total: None)
    tell("reading the log", 0, 1)
    return make_result(gather(source, behavior, states, actions), terms, tell).result


@dataclass(frozen=True, slots=True)
class Made:
    """A result, and the problem that it solves."""

    result: Result
    problem: Problem


def make_result(evidence: Evidence, terms: Terms, progress: Progress) -> Made:
    """Improves, certifies, and writes the report."""
    assembly = evidence.assembly
    problem = problem_of(evidence, terms)
    algorithm = terms.algorithm_for(problem)
    if needs_log(algorithm):
        problem = with_log(problem, evidence, algorithm)
    progress("improving the policy", 0, 1)
    improvement = algorithm.improve(problem)
    certifier = certifier_for(algorithm, improvement, terms.level)
    certificate = certified(problem, improvement, certifier)
    estimate = problem.estimate()
    table = PolicyTable.of(assembly.vocabulary, problem, estimate, improvement, assembly.quiet)
    estimates = {
        "behavior": performance(estimate, problem.behavior),
        "policy": float(estimate.initial @ improvement.plan.value),
    }
    record = record_of(evidence, terms, problem, algorithm, improvement.n_wedge, estimates)
    findings = findings_of(
        problem,
        estimate,
        table,
        algorithm=algorithm,
        improvement=improvement,
        certifier=certifier,
        certificate=certificate,
        data=data_summary(evidence.counts),
        record=record,
        progress=lambda done, total: progress("trying other settings", done, total),
    )
    return Made(Result(table, certificate, record, result_page(findings)), problem)


def problem_of(evidence: Evidence, terms: Terms) -> Problem:
    """The problem under the terms; what was taken for granted goes into its premises."""
    assembly = evidence.assembly
    low, high = terms.value_bounds_for(assembly.counts)
    premises = assembly.premises
    if terms.value_bounds is None:
        premises += (
            "No step ever earns less or more than the mean rewards observed, or 0: the value "
            "bounds were read off the data.",
        )
    return Problem(
        counts=assembly.counts,
        behavior=assembly.behavior,
        discount=terms.discount,
        value_bounds=(low, high),
        unseen=terms.unseen_rule,
        premises=premises,
    )


def with_log(problem: Problem, evidence: Evidence, algorithm: Algorithm) -> Problem:
    """The problem with its whole episodes."""
    if evidence.source is None:
        raise InvalidParameter(
            f"{algorithm.name} looks at whole episodes, but only counts are given; expected a log"
        )
    log = evidence.source.load(problem.counts.pairs)
    return replace(problem, log=log, counts=log.counts())


def record_of(
    evidence: Evidence,
    terms: Terms,
    problem: Problem,
    algorithm: Algorithm,
    n_wedge: int | None,
    estimates: Mapping[str, float],
) -> Record:
    """With what the result was made."""
    words = evidence.assembly.vocabulary
    quiet = [words.states[s] for s in evidence.assembly.quiet.nonzero()[0]]
    parameters: dict[str, Any] = {
        "discount": problem.single_discount,
        "algorithm": json.loads(settings_to_json(algorithm)),
        "n_wedge": n_wedge,
        "zeta": terms.zeta,
        "delta": terms.level,
        "value_bounds": list(problem.value_bounds),
        "unseen": problem.unseen,
        "behavior": evidence.behavior,
        "states": evidence.states,
        "actions": evidence.actions,
        "columns": {role: list(names) for role, names in evidence.columns.items()},
        "bins": list(evidence.bins),
        "seeds": {"algorithm": algorithm.seed} if hasattr(algorithm, "seed") else {},
    }
    defaults = (*evidence.defaults, *terms.defaults())
    return Record(
        current_versions(),
        current_machine(),
        evidence.files,
        counts_digest(evidence.counts),
        parameters,
        defaults,
        {
            "state_columns": list(words.state_columns),
            "action_columns": list(words.action_columns),
            "binnings": {name: each.to_json() for name, each in words.binnings.items()},
            "states_without_decision": [list(label) for label in quiet],
        },
        data_summary(evidence.counts)._asdict(),
        estimates,
        command_line(parameters, defaults, evidence.files),
    )


def data_summary(counts: LabelledCounts) -> DataSummary:
    """What the log holds."""
    return DataSummary(
        counts.rows_read,
        dict(counts.dropped),
        counts.transitions.times.size,
        *(counts.episodes if counts.episodes.recorded else (None, None, None)),
    )
