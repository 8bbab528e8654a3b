"""The record of an improvement: its parameters, the terms that lead to them, and the command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from surestep.algorithms import Algorithm
from surestep.algorithms.registry import SHELF as ALGORITHMS
from surestep.algorithms.registry import algorithm_of, settings_of
from surestep.certificates.registry import SHELF as CERTIFICATES
from surestep.checks import Check
from surestep.choosing_n_wedge import n_wedge_setting
from surestep.declaring import Bounds, Shape
from surestep.errors import InvalidParameter
from surestep.extensions import SINGULAR, Shelf, versions_of
from surestep.io.counts.labelled import LabelledCounts, counts_digest
from surestep.io.logs.columns import ROLE_OPTIONS, option_of
from surestep.io.logs.reading import Reading
from surestep.model import Problem
from surestep.pipeline.evidence import SEEN, Evidence
from surestep.pipeline.findings import Settled
from surestep.pipeline.terms import SEED, Terms
from surestep.results.alarms import Alarm
from surestep.results.baseline import Baseline
from surestep.results.findings import DECLINED, DataSummary, NoRehearsal
from surestep.results.record import (
    PARAMETERS,
    Estimates,
    InputFile,
    Record,
    current_machine,
    current_versions,
)
from surestep.terms import AUTO, SOURCES, TERMS

FILE_ROLES = ("log", *SOURCES)


class Rehearsed(NamedTuple):
    """Settings of the rehearsal of a whole improvement."""

    worlds: int  # of each kind; 0: none but those in which all actions are alike
    sizes: Sequence[float] = ()  # of the data; none: not at all
    seed: int = 0
    seconds: float = 0.0  # of one core that it takes, roughly
    time_limit: float | None = None  # in seconds, where one decided the number of worlds
    why_none: NoRehearsal = DECLINED  # where there are no worlds, or none of other kinds


def record_of(
    evidence: Evidence,
    terms: Terms,
    problem: Problem,
    settled: Settled,
    rehearsal: Rehearsed,
    *,
    estimates: Estimates,
    baseline: Baseline | None,
    alarms: tuple[Alarm, ...],
    checks: tuple[Check, ...],
) -> Record:
    """Returns the record: with what the result was made, and what it must be read with."""
    words = evidence.assembly.vocabulary
    quiet = [words.states[s] for s in evidence.assembly.quiet.nonzero()[0]]
    parameters = parameters_of(evidence, terms, problem, settled, rehearsal)
    defaults = (*evidence.defaults, *terms.defaults())
    if rehearsal.time_limit is not None:  # the number of worlds is what was reached
        defaults = tuple(name for name in defaults if name != "worlds")
    return Record(
        versions_with(Names.said_in(parameters)),
        current_machine(),
        evidence.files,
        counts_digest(evidence.counts),
        parameters,
        defaults,
        {
            "state_columns": list(words.state_columns),
            "action_columns": list(words.action_columns),
            "binnings": {name: binning.to_json() for name, binning in words.binnings.items()},
            "states_without_decision": [list(label) for label in quiet],
        },
        data_summary(evidence.counts)._asdict(),
        estimates,
        command_line(parameters, defaults, evidence.files),
        baseline,
        alarms,
        checks,
    )


def parameters_of(
    evidence: Evidence, terms: Terms, problem: Problem, settled: Settled, rehearsal: Rehearsed
) -> dict[str, Any]:
    """Returns the parameters: every term as it was said or taken, but for those that were settled
    by the data or by other terms.
    """
    split = terms.certifier_settings(evidence.facts).split if terms.splits else None
    said = {name: terms.used(name) for name, term in TERMS.items() if term.recorded is not None}
    if terms.returns is None or terms.running is not None or terms.ending is not None:
        said |= terms.ranges(evidence.facts)._asdict()
    chosen_by = settled.chosen_by
    said |= {
        "discount": problem.single_discount,
        "algorithm": settings_of(settled.algorithm),
        "n_wedge": settled.improvement.n_wedge,
        "n_wedge_chosen_by": None if chosen_by is None else chosen_by.name,
        "least_visits": terms.floor,
        "delta": terms.level,
        "behavior": evidence.behavior,
        "states": evidence.states,
        "actions": evidence.actions,
        "possible": evidence.possible,
        "allowed": evidence.allowed,
        "columns": {role: list(names) for role, names in evidence.columns.items()},
        **evidence.reading.parameters(),
        "seeds": {"certificates": SEED} | seeds_of(settled.algorithm, rehearsal),
        "certificates": [str(asked) for asked in terms.asked],
        "train_share": split and split.train_share,
        "logger": split and split.logger,
        "worlds": rehearsal.worlds,
        "sizes": rehearsal.sizes,
        "time_limit": rehearsal.time_limit,
    }
    return {name: to_json(said[name]) for name in PARAMETERS}


def seeds_of(algorithm: Algorithm, rehearsal: Rehearsed) -> dict[str, int]:
    """The seeds that are no settings of a certificate."""
    seeds: dict[str, int] = {"algorithm": algorithm.seed} if hasattr(algorithm, "seed") else {}
    return seeds | ({"rehearsal": rehearsal.seed} if rehearsal.sizes else {})


def data_summary(counts: LabelledCounts) -> DataSummary:
    """Returns the size of the log, and of what was left out of it."""
    return DataSummary(
        counts.rows_read,
        dict(counts.dropped),
        counts.transitions.times.size,
        *(counts.episodes if counts.episodes.recorded else (None, None, None)),
    )


# ---- from a record back to terms --------------------------------------------------------------


def terms_of(record: Record) -> Terms:
    """Returns the terms under which a result was made: what nobody gave is left open again."""
    return terms_from(record.parameters, record.defaults)


def terms_from(parameters: Mapping[str, Any], defaults: Sequence[str]) -> Terms:
    """Returns the terms that lead to these parameters, of which `defaults` were not given."""
    return Terms(**said_in(parameters, defaults))


def said_in(parameters: Mapping[str, Any], defaults: Sequence[str]) -> dict[str, Any]:
    """Returns what was said of each term that leads to these parameters; None: nothing."""
    said: dict[str, Any] = {
        name: None if name in defaults else from_json(term.shape, parameters[name])
        for name, term in TERMS.items()
        if term.recorded is not None
    }
    return said | algorithm_said(parameters, defaults)


def algorithm_said(parameters: Mapping[str, Any], defaults: Sequence[str]) -> dict[str, Any]:
    """Returns what was said of the algorithm, its N∧ and its settings."""
    settings = dict(parameters["algorithm"])
    algorithm = algorithm_of(settings)
    name, wedge = settings.pop("algorithm"), n_wedge_setting(algorithm)
    n_wedge = None if wedge is None else getattr(algorithm, wedge)
    settings.pop(str(wedge), None)
    if parameters["n_wedge_chosen_by"] is not None:
        n_wedge = None if "n_wedge" in defaults else AUTO
        if "algorithm" in defaults:
            settings = {}  # of the candidate that was chosen
    if parameters["zeta"] is not None:
        n_wedge = None  # it follows from ζ
    if settings.get("delta") == parameters["delta"]:
        del settings["delta"]  # it is that of all
    return {
        "algorithm": None if "algorithm" in defaults else name,
        "n_wedge": n_wedge,
        "settings": settings,
    }


def to_json(value: Any) -> Any:
    """Returns the value of a term as run.json has it."""
    return list(value) if isinstance(value, tuple) else value


def from_json(shape: Shape, value: Any) -> Any:
    """Returns the value of a term that run.json has."""
    return (value[0], value[1]) if isinstance(shape, Bounds) and value is not None else value


# ---- and to a command --------------------------------------------------------------------------


def command_line(
    parameters: Mapping[str, Any], defaults: Sequence[str], inputs: Sequence[InputFile]
) -> str:
    """`surestep improve …`, with the names of the files as they were, without their folders."""
    return shlex.join(["surestep", "improve", *words_of(parameters, defaults, inputs), "-o", "OUT"])


def rehearse_command(
    parameters: Mapping[str, Any], defaults: Sequence[str], inputs: Sequence[InputFile]
) -> str:
    """`surestep rehearse …`, with the same words, and its own."""
    words = words_of(parameters, defaults, inputs)
    sizes = ",".join(f"{size:g}" for size in parameters["sizes"])
    words += ["--sizes", sizes, "--seed", str(parameters["seeds"]["rehearsal"])]
    return shlex.join(["surestep", "rehearse", *words, "-o", "OUT"])


def words_of(
    parameters: Mapping[str, Any], defaults: Sequence[str], inputs: Sequence[InputFile]
) -> list[str]:
    """Returns the log, how it is read, what is known beside it, and all terms that were given.

    What nobody gave is left out: it is taken by default again, and counts as such again.
    """
    files = {role: [file.name for file in inputs if file.role == role] for role in FILE_ROLES}
    words = files["log"] or ["LOG"]
    if made_from_log(parameters):  # counts were read when they were made
        for role in ROLE_OPTIONS:
            for column in parameters["columns"].get(role, ()):
                words += [option_of(role), column]
        words += Reading.of(parameters).words()
    kind = parameters["behavior"]
    if "behavior" not in defaults:
        words += ["--behavior", *((files["behavior"] or ["POLICY"]) if kind == "table" else [kind])]
    if parameters["possible"] == SEEN:
        words += ["--possible", SEEN]
    for role in ("states", "actions", "possible", "allowed"):
        if parameters[role] == "listed":
            words += [f"--{role}", *(files[role] or [role.upper()])]
    said = said_in(parameters, defaults)
    for name, term in TERMS.items():
        words += term.words_for(name, said[name])
    return words


def made_from_log(parameters: Mapping[str, Any]) -> bool:
    """Tells whether a result was made from a log, whose rewards have a column, not from counts."""
    return "reward" in parameters["columns"]


# ---- parts of a result that are not built in, and who brought it --------------------------------


class Names(NamedTuple):
    """The names of an algorithm and of kinds of certificates."""

    algorithm: str
    kinds: tuple[str, ...]

    @classmethod
    def said_in(cls, parameters: Mapping[str, Any]) -> Names:
        """Returns the names that stand in the parameters of a record."""
        kinds = (text.partition(":")[0] for text in parameters["certificates"])
        return cls(str(parameters["algorithm"].get("algorithm")), tuple(kinds))

    @property
    def on_shelves(self) -> list[tuple[Shelf[Any], str]]:
        """Returns the names, and where to look them up."""
        return [(ALGORITHMS, self.algorithm), *((CERTIFICATES, kind) for kind in self.kinds)]


def versions_with(names: Names) -> dict[str, str]:
    """Returns the versions here of all that a result is made with."""
    return current_versions() | versions_of(names.on_shelves)


def check_extensions(record: Record) -> None:
    """Refuses a result that was made with an extension that is not here."""
    for shelf, name in Names.said_in(record.parameters).on_shelves:
        if shelf.find(name) is None:
            others = record.versions.keys() - current_versions().keys()
            named = ", ".join(f"{package} {record.versions[package]}" for package in sorted(others))
            raise InvalidParameter(
                f"there is no {SINGULAR[shelf.sort]} {name!r} here, with which the result was "
                "made; expected its extension to be installed or registered"
                + (f": the result names {named}" if named else "")
            )
