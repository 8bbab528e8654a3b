"""Holds a result for a log with a known structure: rules over columns, and the claim about them.

A saved result is a folder: rules.json, certificate.json, report.html, and run.json with the
description and the digests of the others.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from surestep._arrays import generator
from surestep._files import read_path, read_whole, write_folder
from surestep._json import converted, read_json
from surestep._reprs import short_repr
from surestep._words import listed
from surestep.checks import Check
from surestep.checks.structure import StructureTest
from surestep.errors import InvalidParameter, InvalidResult
from surestep.model import Certificate, ColumnRules, Structure
from surestep.model.certificate import Rung
from surestep.model.statements import WITHIN_SEEN
from surestep.rehearsal import Rate, Rehearsal, rehearsal_from_json
from surestep.results.record import InputFile, digests_of
from surestep.results.result import STRUCTURED, text_of
from surestep.results.unfinished import REHEARSAL, RUN

RULES, CERTIFICATE, REPORT = FILES = ("rules.json", "certificate.json", "report.html")
ERRORS = 3  # standard errors of rollouts by which a claim may exceed the best guess
BELIEF = "belief.json"  # not in results of older releases
Ends = tuple[str, str]  # the first and the last value of a column with which a rule holds


class ColumnRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule: the ranges of columns in which it holds, and the action to take."""

    when: dict[str, Ends]
    action: str
    chance: float = 0.0  # of a random action instead


class WrittenRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of rules.json; a current policy is written in the same format."""

    format: Literal["surestep column rules"] = "surestep column rules"
    version: Literal[1] = 1
    group: str | None = None  # its members are "@" in rules, with "@left" and "@right"
    rules: tuple[ColumnRule, ...]  # the first that holds decides, for the first such member
    default: str  # the action if no rule holds
    chance: float = 0.0  # of a random action instead

    def policy(self, structure: Structure) -> ColumnRules:
        """Returns the policy over the columns of a structure."""
        return ColumnRules.of(
            structure,
            [(rule.when, rule.action) for rule in self.rules],
            self.default,
            group=self.group,
            chance=[*(rule.chance for rule in self.rules), self.chance],
        )

    def texts(self) -> list[str]:
        """Returns the rules as sentences."""
        member = (self.group or "").replace("*", "@")
        places = {"@": member, "@left": "the one before it", "@right": "the one after it"}
        said = []
        for rule in self.rules:
            parts = [
                f"{places.get(name, name)} = {' to '.join(dict.fromkeys(ends))}"
                for name, ends in rule.when.items()
            ]
            start = f"If {listed(parts)}" if parts else "Always"
            said.append(f"{start}: {rule.action}.")
        return [*said, f"{'Else' if said else 'Always'}: {self.default}."]


class StructuredRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of run.json: inputs and versions, sizes, estimates and the test."""

    format: Literal["surestep structured result"] = "surestep structured result"
    version: Literal[1] = 1
    surestep: str
    description: dict[str, Any]
    inputs: list[InputFile]
    columns: dict[str, list[str]]
    actions: list[str]
    data: dict[str, int]
    # Returns of the new policy and of the current one, and the standard error of the difference
    # by the rollouts.
    estimates: dict[str, float]
    test: dict[str, Any]  # of the structure
    learnt: dict[str, dict[str, Any]] = {}  # what stands in place of "learn"
    no_rehearsal: str | None = None  # why there is no stress test
    current: dict[str, Any] = {}  # where the current policy comes from, and its columns
    checks: tuple[Check, ...] = ()  # of what else the claim assumes; only those that failed
    outputs: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class StructuredResult:
    """The answer of `improve_structured`, which `load_structured` reads again.

    Parameters
    ----------
    rules : WrittenRules
        The new policy in words.
    certificate : Certificate
        The claim about it.
    record : StructuredRecord
        With what it was made.
    structure : Structure
        The columns, actions and nodes.
    test : StructureTest
        What speaks against the structure.
    report : str
        The page, as HTML.
    belief : Certificate or None
        What may be believed of it beyond the claim.
    rehearsal : Rehearsal or None
        The stress test.

    Examples
    --------
    See docs/structure.md.
    """

    rules: WrittenRules
    certificate: Certificate
    record: StructuredRecord
    structure: Structure
    test: StructureTest
    report: str = field(default="", repr=False)
    belief: Certificate | None = None
    rehearsal: Rehearsal | None = None

    __repr__ = short_repr("certificate.kind", "certificate.lower", "certificate.delta")

    @property
    def verdict(self) -> Rung:
        """Returns the verdict on the result; where a check failed, nothing is shown."""
        wrong = self.test.failed or self.test.is_blind or self.too_much is not None
        if wrong or self.record.checks:
            return "not shown to be better"
        proved = (self.certificate.lower or 0.0) > 0
        if proved and self.may_prove:
            seen = self.certificate.assumes(WITHIN_SEEN)
            return "proved within the rewards seen" if seen else "proved better"
        return "believed better" if proved or self.believed_gain else "not shown to be better"

    @property
    def may_prove(self) -> bool:
        """Tells whether the claim is a proof: not with a learnt structure, nor over an estimate."""
        estimated = self.certificate.assumes("behavior-estimated-apart")
        return not (self.structure.learnt or estimated)

    @property
    def believed_gain(self) -> float:
        """Returns the gain that is believed; 0 if the stress test refutes beliefs, or for none."""
        lower = 0.0 if self.belief is None else self.belief.lower or 0.0
        if self.rehearsal is not None:
            gain, tolerance = self.rehearsal.gain, self.rehearsal.tolerance
            wrong = Rate.of((self.rehearsal.belief > gain + tolerance).ravel())
            lower *= wrong.low <= self.rehearsal.delta
        return max(lower, 0.0)

    @property
    def estimated_gain(self) -> float:
        """Returns the estimated return of the new policy less that of the current one."""
        return self.record.estimates["policy"] - self.record.estimates["behavior"]

    @property
    def too_much(self) -> Check | None:
        """Returns the failed check if clearly more is claimed than the best guess; else None."""
        claim, gain = self.certificate.lower or 0.0, self.estimated_gain
        slack = ERRORS * self.record.estimates.get("error", 0.0)
        fails = claim > max(gain, 0.0) + slack
        return Check.failing("claim-above-estimate", fails, claim=claim, estimate=gain)

    @property
    def policy(self) -> ColumnRules:
        """Returns the new policy."""
        return self.rules.policy(self.structure)

    def act(self, row: Mapping[str, object], rng: np.random.Generator | int | None = None) -> str:
        """Returns the action of the rules in a situation.

        Parameters
        ----------
        row : mapping
            The value of each column.
        rng : Generator or int, optional
            The source of random numbers, or its seed, for rules with a chance of a random action.

        Returns
        -------
        str
            The action.

        Raises
        ------
        InvalidParameter
            A column is missing, or has a value that the log never showed.
        """
        state = []
        for name, values in self.record.columns.items():
            value = str(row.get(name, ""))
            if value not in values:
                raise InvalidParameter(f"column {name!r} is {value!r}, expected one of {values}")
            state.append(values.index(value))
        source = None if rng is None else generator(rng)
        return self.structure.actions[int(self.policy.act(np.array([state]), source)[0])]

    def files(self) -> dict[str, bytes]:
        """Returns the files of a saved result; equal results have equal bytes.

        Returns
        -------
        dict of str to bytes
            The content of each file by its name.
        """
        contents = {
            RULES: pretty(self.rules),
            CERTIFICATE: f"{self.certificate.to_json(self.verdict)}\n".encode(),
            REPORT: self.report.encode(),
        }
        if self.belief is not None:
            contents[BELIEF] = f"{self.belief.to_json()}\n".encode()
        if self.rehearsal is not None:
            contents[REHEARSAL] = f"{self.rehearsal.to_json()}\n".encode()
        return contents | {
            RUN: pretty(msgspec.structs.replace(self.record, outputs=digests_of(contents)))
        }

    def save(self, directory: str | Path) -> None:
        """Writes a new folder, whole or not at all.

        Parameters
        ----------
        directory : str or path
            The folder, which must not be there.
        """
        write_folder(read_path(directory), self.files())


def pretty(content: msgspec.Struct) -> bytes:
    """Returns a struct as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def is_structured(folder: Path) -> bool:
    """Tells whether a folder holds a result for a log with a structure."""
    path = folder / RUN
    return path.is_file() and STRUCTURED.encode() in read_whole(path)


def load_structured(directory: str | Path) -> StructuredResult:
    """Loads a result that `StructuredResult.save` wrote.

    Parameters
    ----------
    directory : str or path
        The folder.

    Returns
    -------
    StructuredResult
        The result.

    Raises
    ------
    InvalidResult
        The folder holds no such result, or its files were changed.

    Examples
    --------
    See docs/structure.md.
    """
    folder = read_path(directory)
    record = read_as(folder, RUN, StructuredRecord)
    names = (*FILES, *({BELIEF, REHEARSAL} & record.outputs.keys()))
    for name, digest in digests_of({name: read_whole(folder / name) for name in names}).items():
        if digest != record.outputs.get(name):
            raise InvalidResult(f"{folder / name} was changed after it was written")
    tables = {
        name: table | (record.learnt[name] | {"learnt": True} if name in record.learnt else {})
        for name, table in record.description["structure"].items()
    }
    structure = Structure.read(record.columns, record.actions, tables)
    # JSON has no −∞, the evidence of a test that had nothing to compare.
    test = {
        name: -math.inf if x is None and name == "evidence" else x
        for name, x in record.test.items()
    }
    return StructuredResult(
        rules=read_as(folder, RULES, WrittenRules),
        certificate=Certificate.from_json(text_of(folder, CERTIFICATE)),
        record=record,
        structure=structure,
        test=converted(test, StructureTest, RUN, InvalidResult),
        report=text_of(folder, REPORT),
        belief=Certificate.from_json(text_of(folder, BELIEF)) if BELIEF in record.outputs else None,
        rehearsal=rehearsal_from_json(text_of(folder, REHEARSAL))
        if REHEARSAL in record.outputs
        else None,
    )


def read_as(folder: Path, name: str, kind: type[Any]) -> Any:
    """Reads a JSON file of a folder as an instance of `kind`."""
    try:
        return converted(read_json(read_whole(folder / name)), kind, name, InvalidResult)
    except ValueError as problem:
        raise InvalidResult(f"{folder / name}: {problem}") from None
