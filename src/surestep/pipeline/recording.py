"""Makes the record of an improvement: its parameters, the terms behind them, and the command."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

import surestep.algorithms.registry as algorithms
import surestep.certificates.registry as certificates
from surestep._blocks import versions_here
from surestep._version import installed_version
from surestep.checks import Check
from surestep.description import Description, command, described, in_words, merged, without_folders
from surestep.extensions import Shelf, versions_of
from surestep.io.counts.labelled import LabelledCounts, counts_digest
from surestep.model import Problem
from surestep.pipeline.evidence import Evidence
from surestep.pipeline.findings import Settled
from surestep.pipeline.terms import SEED, Terms
from surestep.results.findings import DECLINED
from surestep.results.groups import GroupGain
from surestep.results.record import (
    Baseline,
    Estimates,
    Parameters,
    Record,
    Total,
    current_machine,
)


class Rehearsed(NamedTuple):
    """Settings of the stress test of a whole improvement."""

    worlds: int  # of each kind; 0: only worlds in which all actions are alike
    sizes: Sequence[float] = ()  # of the data; none: no stress test
    seed: int = 0
    time_limit: float | None = None  # in seconds, where one decided the number of worlds
    why_none: str = DECLINED  # where there are no worlds, or none of other kinds


def record_of(
    evidence: Evidence,
    problem: Problem,
    settled: Settled,
    rehearsal: Rehearsed,
    *,
    estimates: Estimates,
    baseline: Baseline | None,
    checks: tuple[Check, ...],
    totals: tuple[Total, ...],
    groups: tuple[GroupGain, ...],
) -> Record:
    """Returns the record: all that the result was made with, and that is needed to read it."""
    terms = evidence.terms
    words = evidence.assembly.vocabulary
    parameters = parameters_of(evidence, problem, settled, rehearsal)
    defaults = (*evidence.defaults, *terms.defaults())
    said = said_of(evidence.description, terms)
    if rehearsal.time_limit is not None:  # the number of worlds reached in time
        defaults = tuple(name for name in defaults if name != "worlds")
        said = merged(said, in_words(worlds=rehearsal.worlds))
    description = described(said)
    return Record(
        versions_with(settled.algorithm.name, parameters.certificates, words.learnt),
        current_machine(),
        evidence.files,
        counts_digest(evidence.counts),
        description.given(),
        parameters,
        defaults,
        {
            "state_columns": list(words.state_columns),
            "action_columns": list(words.action_columns),
            "binnings": {name: binning.to_json() for name, binning in words.binnings.items()},
            "states_without_decision": [list(label) for label in evidence.resting],
            "learnt": msgspec.to_builtins(words.learnt),
        },
        data_of(evidence.counts),
        estimates,
        command("improve", description, "-o", "OUT"),
        baseline,
        checks,
        None if evidence.log_source is None else evidence.log_source.query_facts,
        totals,
        groups,
        None if evidence.log_source is None else evidence.log_source.beside_counts(),
    )


def said_of(description: Description, terms: Terms) -> dict[str, Any]:
    """Returns the description for the record: with the terms, and files without folders."""
    return described(merged(without_folders(description).given(), terms.given())).given()


def parameters_of(
    evidence: Evidence, problem: Problem, settled: Settled, rehearsal: Rehearsed
) -> Parameters:
    """Returns the parameters of the record: all terms, and the values that the data settled."""
    terms = evidence.terms
    split = evidence.told.split if terms.splits else None
    stakes = terms.stakes
    ranges: dict[str, Any] = (
        evidence.told.single._asdict()
        if stakes.returns is None or terms.declared_ranges is not None
        else {"running": None, "ending": None}
    )
    seeds = {
        "certificates": SEED,  # and those that are no settings of a certificate
        **({"algorithm": settled.algorithm.seed} if hasattr(settled.algorithm, "seed") else {}),
        **({"rehearsal": rehearsal.seed} if rehearsal.sizes else {}),
    }
    chosen_by = settled.chosen_by
    place = None if settled.choice is None else settled.choice.best.tried.left_out
    return Parameters(
        discount=problem.single_discount,
        algorithm=algorithms.settings_of(settled.algorithm),
        n_wedge=settled.improvement.n_wedge,
        n_wedge_chosen_by=None if chosen_by is None else chosen_by.name,
        zeta=terms.method.zeta,
        least_visits=terms.floor,
        delta=terms.level,
        **ranges,
        returns=stakes.returns,
        unseen=terms.used("unseen"),
        **evidence.kinds,
        columns={role: list(names) for role, names in evidence.source.columns_in_files.items()},
        seeds=seeds,
        certificates=[str(asked) for asked in terms.asked],
        train_share=split and split.train_share,
        logger=split and split.logger,
        worlds=rehearsal.worlds,
        sizes=list(rehearsal.sizes),
        time_limit=rehearsal.time_limit,
        rules=terms.used("rules") if terms.may_follow_rules else None,
        left_out=None if place is None else evidence.assembly.vocabulary.state_columns[place],
    )


def data_of(counts: LabelledCounts) -> dict[str, Any]:
    """Counts the rows, the dropped rows and the episodes of the log; None: no whole episodes."""
    ends = counts.episodes if counts.episodes.recorded else (None, None, None)
    return {
        "rows": counts.rows_read,
        "dropped": dict(counts.dropped),
        "transitions": counts.transitions.times.size,
        "episodes": ends[0],
        "terminated": ends[1],
        "truncated": ends[2],
    }


def terms_of(record: Record) -> Terms:
    """Reads the terms that the user gave from a record; defaults stay open."""
    return Terms.of(described(record.description))


def made_from_log(record: Record) -> bool:
    """Tells whether a result was made from a log, whose rewards have a column, not from counts."""
    return "reward" in record.parameters.columns


# ---- parts of a result that are not built in, and who brought it --------------------------------


def versions_with(
    algorithm: str, kinds: Iterable[str], learnt: Collection[str] = ()
) -> dict[str, str]:
    """Returns the installed versions of all packages that make a result, plug-ins included."""
    parts: list[tuple[Shelf[Any], str]] = [
        (algorithms.SHELF, algorithm),
        *((certificates.SHELF, kind.partition(":")[0]) for kind in kinds),
    ]
    learner = {"scikit-learn": installed_version("scikit-learn")} if learnt else {}
    return versions_here() | learner | versions_of(parts)
