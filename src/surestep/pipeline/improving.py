"""The main job: from a log of decisions to a better policy, its certificate and its report."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from surestep.algorithms import Algorithm, needs_log, settings_to_json
from surestep.certificates import Certifier, training_part
from surestep.choosing import AutoNWedge
from surestep.errors import InvalidParameter
from surestep.io.counts_digest import counts_digest
from surestep.io.labelled_counts import LabelledCounts
from surestep.model import Problem
from surestep.model.problem import UnseenRule
from surestep.pipeline.certifying import certified, certified_at_levels, training_of
from surestep.pipeline.command import command_line
from surestep.pipeline.evidence import Evidence, gather
from surestep.pipeline.findings import findings_of
from surestep.pipeline.sensitivity import Settled, settle
from surestep.pipeline.terms import Terms
from surestep.planning import performance
from surestep.rehearsal import Rehearsal, rehearse
from surestep.report.page import result_page
from surestep.results.findings import DataSummary
from surestep.results.record import Record, current_machine, current_versions
from surestep.results.result import Result
from surestep.results.table import PolicyTable

REHEARSAL_SEED = 0
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
    problem, algorithm, certifiers = prepared(evidence, terms)
    training = training_of(certifiers)
    part = problem
    if training is not None:
        part = training_part(problem, training.train_share, training.seed)
    progress("improving the policy", 0, 1)
    settled = settle(algorithm, part)
    policy = settled.improvement.policy
    told = terms.certifier_settings.of_algorithm(
        settled.algorithm, None if settled.choice else settled.improvement.n_wedge
    )
    certifiers = [told.certifier(asked, problem) for asked in terms.asked]
    progress("certifying", 0, len(certifiers))
    claims = certified_at_levels(problem, policy, certifiers[0])
    others = []
    for done, certifier in enumerate(certifiers[1:], 1):
        progress("certifying", done, len(certifiers))
        others.append(certified(problem, policy, certifier))
    worlds = terms.worlds_for(problem)
    rehearsal = rehearsed(problem, algorithm, certifiers[0], worlds, workers, progress)
    estimate = part.estimate()
    assembly = evidence.assembly
    table = PolicyTable.of(assembly.vocabulary, part, estimate, settled.improvement, assembly.quiet)
    estimates = {
        "behavior": performance(estimate, part.behavior),
        "policy": float(estimate.initial @ settled.improvement.plan.value),
    }
    record = record_of(evidence, terms, problem, settled, worlds, estimates)
    findings = findings_of(
        part,
        estimate,
        table,
        settled=settled,
        certifier=certifiers[0],
        claims=claims,
        others=tuple(others),
        rehearsal=rehearsal,
        data=data_summary(evidence.counts),
        record=record,
        progress=lambda done, total: progress("trying other settings", done, total),
    )
    return Made(
        Result(
            table,
            (claims.own, *others),
            record,
            result_page(findings),
            rehearsal,
        ),
        problem,
    )


def prepared(
    evidence: Evidence, terms: Terms
) -> tuple[Problem, Algorithm | AutoNWedge, list[Certifier]]:
    """The problem, with whole episodes where they are looked at, what improves, and who judges."""
    problem = problem_of(evidence, terms)
    algorithm = terms.algorithm_for(problem)
    whole = [asked.kind for asked in terms.asked if asked.kind == "trajectory"]
    if needs_log(algorithm):
        whole.insert(0, algorithm.name)
    if whole:
        problem = with_log(problem, evidence, whole[0])
        algorithm = terms.algorithm_for(problem)
    told = terms.certifier_settings
    return problem, algorithm, [told.certifier(asked, problem) for asked in terms.asked]


def rehearsed(
    problem: Problem,
    algorithm: Algorithm | AutoNWedge,
    certifier: Certifier,
    worlds: int,
    workers: int,
    progress: Progress,
) -> Rehearsal | None:
    """The stress test of the whole pipeline, choice of N∧ included; always with the same seed."""
    if worlds == 0:
        return None
    return rehearse(
        problem,
        algorithm,
        certifier,
        rng=np.random.default_rng(REHEARSAL_SEED),
        worlds=worlds,
        workers=workers,
        progress=lambda done, total: progress("rehearsing", done, total),
    )


def problem_of(evidence: Evidence, terms: Terms) -> Problem:
    """The problem under the terms; what was taken for granted goes into its premises."""
    assembly = evidence.assembly
    low, high = terms.value_bounds_for(assembly.counts)
    premises = assembly.premises
    if terms.reward_bounds is None:
        read = "the bounds of rewards" if terms.value_bounds else "the bounds of rewards and values"
        premises += (
            f"No step ever earns less or more than the mean rewards observed, or 0: {read} were "
            "read off the data.",
        )
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


def record_of(
    evidence: Evidence,
    terms: Terms,
    problem: Problem,
    settled: Settled,
    worlds: int,
    estimates: Mapping[str, float],
) -> Record:
    """With what the result was made."""
    algorithm, chosen_by = settled.algorithm, settled.chosen_by
    words = evidence.assembly.vocabulary
    quiet = [words.states[s] for s in evidence.assembly.quiet.nonzero()[0]]
    parameters: dict[str, Any] = {
        "discount": problem.single_discount,
        "algorithm": json.loads(settings_to_json(algorithm)),
        "n_wedge": settled.improvement.n_wedge,
        "n_wedge_chosen_by": None if chosen_by is None else chosen_by.name,
        "zeta": terms.zeta,
        "delta": terms.level,
        "value_bounds": list(problem.value_bounds),
        "reward_bounds": None if terms.reward_bounds is None else list(terms.reward_bounds),
        "unseen": problem.unseen,
        "behavior": evidence.behavior,
        "states": evidence.states,
        "actions": evidence.actions,
        "columns": {role: list(names) for role, names in evidence.columns.items()},
        "bins": list(evidence.bins),
        "seeds": seeds_of(algorithm, worlds),
        "certificates": [str(asked) for asked in terms.asked],
        "worlds": worlds,
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


def seeds_of(algorithm: Algorithm, worlds: int) -> dict[str, int]:
    """The seeds that are no settings of a certificate."""
    seeds: dict[str, int] = {"algorithm": algorithm.seed} if hasattr(algorithm, "seed") else {}
    return seeds | ({"rehearsal": REHEARSAL_SEED} if worlds else {})


def data_summary(counts: LabelledCounts) -> DataSummary:
    """What the log holds."""
    return DataSummary(
        counts.rows_read,
        dict(counts.dropped),
        counts.transitions.times.size,
        *(counts.episodes if counts.episodes.recorded else (None, None, None)),
    )
