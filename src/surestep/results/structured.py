"""Holds a result for a log with a known structure: rules over columns, and the claim about them.

A saved result is a folder: rules.json, certificate.json, report.html, and run.json with the
description and the digests of the others.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import numpy as np

from surestep._arrays import generator
from surestep._json import converted
from surestep._reprs import short_repr
from surestep._words import listed
from surestep.checks import Check
from surestep.checks.structure import StructureTest, checks_of
from surestep.errors import InvalidParameter, InvalidResult
from surestep.model import Certificate, ColumnRules, Structure
from surestep.model.certificate import Rung
from surestep.rehearsal import Rehearsal, rehearsal_from_json
from surestep.results.findings import rung_of
from surestep.results.record import InputFile
from surestep.results.rules import pretty, read_as
from surestep.results.unfinished import CERTIFICATE, REHEARSAL, REPORT, RULES, RUN, Saved

STRUCTURED = '"format": "surestep structured result"'  # in the record of such a result
FILES_OF_RULES = (RULES, CERTIFICATE, REPORT)
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

    def to_json(self, outputs: dict[str, str]) -> str:
        """Returns the content of run.json, with the digests of the other files."""
        return f"{pretty(msgspec.structs.replace(self, outputs=outputs))}\n"


@dataclass(frozen=True, slots=True)
class StructuredResult(Saved):
    """The answer of `improve_structured`, which `load` reads again.

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
    def certificates(self) -> tuple[Certificate, ...]:
        """Returns the claim, and the belief if there is one."""
        return (self.certificate, *([] if self.belief is None else [self.belief]))

    @property
    def checks(self) -> tuple[Check, ...]:
        """Returns the checks of what the claim assumes."""
        tested = checks_of(self.test, self.certificate.lower, self.record.estimates)
        return (*tested, *self.record.checks)

    @property
    def verdict(self) -> Rung:
        """Returns the verdict on the result; where a check failed, nothing is shown."""
        return rung_of(
            self.certificates, changed=True, rehearsal=self.rehearsal, checks=self.checks
        )

    @property
    def estimated_gain(self) -> float:
        """Returns the estimated return of the new policy less that of the current one."""
        return self.record.estimates["policy"] - self.record.estimates["behavior"]

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

    def contents(self) -> dict[str, bytes]:
        """Returns all files but the record.

        Returns
        -------
        dict of str to bytes
            The content of each file by its name.
        """
        further = {BELIEF: self.belief, REHEARSAL: self.rehearsal}
        return {
            RULES: f"{pretty(self.rules)}\n".encode(),
            CERTIFICATE: f"{self.certificate.to_json(self.verdict)}\n".encode(),
            REPORT: self.report.encode(),
            **{name: f"{x.to_json()}\n".encode() for name, x in further.items() if x is not None},
        }


def structured_result(record: StructuredRecord, text: Callable[[str], str]) -> StructuredResult:
    """Returns the result with this record; `text` reads its files, which are as it lists them."""
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
        rules=read_as(WrittenRules, RULES, text(RULES)),
        certificate=Certificate.from_json(text(CERTIFICATE)),
        record=record,
        structure=structure,
        test=converted(test, StructureTest, RUN, InvalidResult),
        report=text(REPORT),
        belief=Certificate.from_json(text(BELIEF)) if BELIEF in record.outputs else None,
        rehearsal=rehearsal_from_json(text(REHEARSAL)) if REHEARSAL in record.outputs else None,
    )
