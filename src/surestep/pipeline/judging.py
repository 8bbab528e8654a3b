"""Further certificates about a saved policy: from the log that made it, or from another one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from surestep._files import read_path
from surestep.algorithms import Algorithm, settings_from_json
from surestep.certificates import Asked, Certifier, Trajectory, certify, verify
from surestep.errors import CertificateRefused, InvalidParameter, ShapeMismatch
from surestep.io.counts_digest import counts_digest
from surestep.io.labelled_counts import LabelledCounts
from surestep.model import Certificate, Policy, Problem
from surestep.pipeline.assembly import Assembly, starts_of
from surestep.pipeline.certifying import Settings
from surestep.pipeline.evidence import CountsSource, gather
from surestep.pipeline.improving import Progress, problem_of
from surestep.pipeline.terms import Terms, terms_of
from surestep.pipeline.verifying import completed, open_again
from surestep.results.result import Result, load


@dataclass(frozen=True, slots=True)
class Judged:
    """What was claimed about a saved policy, and whether from the log that it was made from."""

    certificates: tuple[Certificate, ...]
    same_log: bool


def certify_result(
    directory: str | Path,
    log: object,
    kinds: Sequence[str | Certifier],
    *,
    delta: float | None = None,
    reward_bounds: tuple[float, float] | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Judged:
    """Certificates of these kinds about the policy in a folder, from a log.

    δ and the bounds of rewards are by default those of the result. A log that the policy was not
    made from may judge it too; a trajectory certificate needs one.
    """
    tell = progress or (lambda what, done, total: None)
    tell("reading the log", 0, 1)
    judge = Judge.of(directory, log, memory_limit, kinds)
    terms = terms_of(judge.saved.record)
    told = Settings(
        terms.level if delta is None else delta,
        terms.reward_bounds if reward_bounds is None else reward_bounds,
    )
    parameters = judge.saved.record.parameters
    chosen = parameters["n_wedge_chosen_by"] is not None
    told = told.of_algorithm(judge.algorithm, None if chosen else parameters["n_wedge"])
    asked = [Asked.of(each) for each in kinds]
    if not asked:
        raise InvalidParameter("no kind of certificate is given, expected at least one")
    claims = []
    for done, each in enumerate(asked):
        tell("certifying", done, len(asked))
        certifier = told.certifier(judge.fitting(each), judge.problem)
        claims.append(certify(judge.problem, judge.policy, certifier))
    return Judged(tuple(claims), judge.same_log)


def check_certificates(
    directory: str | Path,
    log: object,
    certificates: Sequence[Certificate],
    *,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Makes certificates about the policy in a folder again, and refuses them where they differ."""
    tell = progress or (lambda what, done, total: None)
    tell("reading the log", 0, 1)
    judge = Judge.of(directory, log, memory_limit, [each.kind for each in certificates])
    for done, each in enumerate(certificates):
        tell("certifying", done, len(certificates))
        if each.kind == "trajectory":
            judge.fitting(Asked(each.kind, each.parameters))
        verify(each, judge.problem, judge.policy)


@dataclass(frozen=True, slots=True)
class Judge:
    """A saved policy, and the problem that a log poses about it."""

    saved: Result
    problem: Problem
    policy: Policy
    same_log: bool

    @classmethod
    def of(
        cls, directory: str | Path, log: object, memory_limit: str | None, kinds: Sequence[object]
    ) -> Judge:
        """Reads folder and log; whole episodes where a kind looks at them."""
        saved = load(read_path(directory))
        source = open_again(saved.record, log, memory_limit)
        counts = source.counts()
        same_log = counts_digest(counts) == saved.record.counts_sha256
        terms = terms_of(saved.record)
        if same_log:
            known, _ = completed(saved, {"behavior": None, "states": None, "actions": None})
            problem = problem_of(gather(counts, **known).assembly, terms)
        else:
            problem = problem_of(other_assembly(saved, counts), fixed_bounds(terms, saved))
        if any(str(kind).startswith("trajectory") for kind in kinds):
            if isinstance(source, CountsSource):
                raise InvalidParameter(
                    "trajectory looks at whole episodes, but only counts are given; expected a log"
                )
            log_of_steps = source.load(problem.counts.pairs)
            problem = replace(problem, log=log_of_steps, counts=log_of_steps.counts())
        policy = Policy(problem.counts.pairs, saved.table.probability)
        return cls(saved, problem, policy, same_log)

    @property
    def algorithm(self) -> Algorithm:
        """What made the policy."""
        return settings_from_json(json.dumps(dict(self.saved.record.parameters["algorithm"])))

    def fitting(self, asked: Asked) -> Asked:
        """What is asked for, if this log may judge so; another log need not be split."""
        if asked.kind != "trajectory":
            return asked
        if not self.same_log:
            return Asked(asked.kind, {"train_share": 0.0, **asked.settings})
        made = [Asked.of(text) for text in self.saved.record.parameters["certificates"]]
        splits = [split_of(each) for each in made if each.kind == "trajectory"]
        if split_of(asked) not in splits:
            raise CertificateRefused(
                "the policy was chosen from this very log, so that its episodes cannot judge it; "
                "expected another log, or a policy made with `surestep improve --kind trajectory`, "
                "and the same train_share and seed"
            )
        return asked


def split_of(asked: Asked) -> tuple[object, ...]:
    """How a trajectory certificate splits the episodes."""
    fields = Trajectory.__dataclass_fields__
    return tuple(asked.settings.get(name, fields[name].default) for name in ("train_share", "seed"))


def fixed_bounds(terms: Terms, saved: Result) -> Terms:
    """The terms with the value bounds of the result, wherever they came from."""
    low, high = saved.record.parameters["value_bounds"]
    return replace(terms, value_bounds=(low, high))


def other_assembly(saved: Result, counts: LabelledCounts) -> Assembly:
    """Another log over the states and actions of the result, with its behavior policy."""
    table = saved.table
    columns = table.vocabulary.state_columns, table.vocabulary.action_columns
    if columns != (counts.state_columns, counts.action_columns):
        raise ShapeMismatch("the log has other columns of states or actions than the result")
    estimated = saved.record.parameters["behavior"] == "estimate"
    behavior = Policy(table.pairs, table.behavior, estimated=estimated)
    premises = (
        *starts_of(counts),
        "The behavior policy is the one in the result, also for this log, which the policy was not "
        "made from.",
    )
    return Assembly(
        table.vocabulary, counts.to_counts(table.pairs), behavior, table.quiet, premises
    )
