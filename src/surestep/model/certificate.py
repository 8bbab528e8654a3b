"""Certificate: a claim about one improved policy, with all that is needed to judge and redo it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, Struct

import surestep._arrays as arrays
from surestep._json import converted
from surestep._reprs import short_html, short_repr
from surestep._settings import check_settings
from surestep.errors import InvalidCertificate
from surestep.model.statements import (
    Scalar,
    Statement,
    read_scalars,
    read_statements,
    statement_from_json,
)

Standing = Literal["proved", "asymptotic", "posterior", "as-published", "by-extension", "none"]

SCHEMA_VERSION = 5
# In which ways a result may be spoken of that stands by a certificate: the ladder of words
Rung = Literal[
    "proved better",
    "proved within the rewards seen",
    "believed better",
    "not shown to be better",
    "nothing changed",
]
VERDICTS: tuple[Rung, ...] = get_args(Rung)
NO_CLAIM = "no-claim"  # the kind of a certificate that stands where another was refused
KIND = r"^[a-z0-9]+(-[a-z0-9]+)*$"
VERDICT = "verdict"  # of a result, in the file of the certificate that it stands by

SCALAR_TYPES = ["null", "boolean", "number", "string"]

Kind = Annotated[str, Meta(pattern=KIND)]
# These are for the schema only: what reads and makes certificates refuses others with more words.
Standings = Annotated[str, Meta(extra_json_schema={"enum": list(get_args(Standing))})]
Verdicts = Annotated[Any, Meta(extra_json_schema={"enum": list(VERDICTS)})]
Scalars = Annotated[
    dict[str, Any], Meta(extra_json_schema={"additionalProperties": {"type": SCALAR_TYPES}})
]


class StatementFile(Struct, forbid_unknown_fields=True):
    """A statement in a file: code and values for programs, the sentence for people."""

    code: Kind
    values: Annotated[Scalars, Meta(description="what the sentence needs")]
    sentence: Annotated[str, Meta(min_length=1)]


class SignalClaim(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The claim about one of several signals; more is better, so that costs have a minus."""

    name: str
    cost: Annotated[bool, Meta(description="people see it with the other sign")] = False
    chance: Annotated[bool, Meta(description="minus the chance to reach unsafe states")] = False
    alone: Annotated[bool, Meta(description="claims are of the new policy, not of a gain")] = False
    limit: Annotated[float, Meta(description="what the gain, or the value, has to be at least")]
    tested: Annotated[
        float | None,
        Meta(description="a lower bound of it, with 1 − delta, no better than asked for"),
    ]
    holds: Annotated[bool, Meta(description="tested is at least the limit; of the first, above")]
    lower: Annotated[
        float | None,
        Meta(description="a lower bound of the gain; of a chance, of minus the chance itself"),
        Meta(description="those of all signals hold at once, with 1 − delta"),
    ]
    before: Annotated[float | None, Meta(description="estimated, under π_b")]
    after: Annotated[float | None, Meta(description="estimated, under π_I")]
    refusal: Annotated[str | None, Meta(description="why nothing is claimed")] = None


class CertificateFile(Struct, forbid_unknown_fields=True, kw_only=True):
    """The file of a certificate; only that of one that a result stands by has a verdict."""

    schema_version: Literal[5]
    verdict: Annotated[Verdicts, Meta(description="what the result may be called")] = UNSET
    kind: Kind
    standing: Standings
    lower: Annotated[
        float | None,
        Meta(description="L: the claim is ρ(π_I) − ρ(π_b) ≥ L; null where nothing is claimed"),
    ]
    zeta: Annotated[float | None, Meta(description="−lower")]
    delta: Annotated[float, Meta(gt=0, lt=1)]
    span: Annotated[float, Meta(ge=0, description="V_max − V_min")]
    says_nothing: Annotated[bool, Meta(description="zeta is null, or zeta ≥ span")]
    assumptions: Annotated[list[StatementFile], Meta(min_length=1)]
    notes: list[StatementFile]
    parameters: Annotated[Scalars, Meta(description="the settings of the certifier")]
    figures: Annotated[Scalars, Meta(description="what the claim was computed from")]
    signals: Annotated[list[SignalClaim], Meta(description="where there are several")] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """With confidence 1 − δ, ρ(π_I, M) − ρ(π_b, M) ≥ `lower`, if the assumptions hold.

    `kind` and `parameters` say which certifier made it and with which settings, so that it can be
    made again; `figures` are the numbers it was computed from. `standing` says in which sense the
    confidence is meant: "proved" in finite samples, "asymptotic", "posterior", or "as-published",
    that is, taken over from a paper with its gaps; "by-extension" where a kind that is not built in
    says so. Where it is "none" nothing is claimed, and `lower` is None: the certificate only says
    why.
    """

    kind: str
    standing: Standing
    lower: float | None  # L; None where nothing is claimed
    delta: Annotated[float, Meta(gt=0, lt=1)]  # δ
    span: Annotated[float, Meta(ge=0)]  # V_max − V_min: two policies cannot differ by more
    assumptions: tuple[Statement, ...]  # at least one; texts are taken as sentences of one's own
    notes: tuple[Statement, ...] = ()  # remarks on this very claim that assume nothing
    parameters: Mapping[str, Scalar]
    figures: Mapping[str, Scalar]
    signals: tuple[SignalClaim, ...] = ()  # where there are several; the first is the one improved

    __repr__ = short_repr("kind", "standing", "lower", "delta")
    _repr_html_ = short_html("kind", "standing", "lower", "delta", "span", "says_nothing")

    def __post_init__(self) -> None:
        """Checks every field once, and freezes the mappings."""
        check_settings(self, InvalidCertificate)
        if not re.fullmatch(KIND, self.kind):
            raise InvalidCertificate(
                f"kind is {arrays.shown(self.kind)}, expected lower-case words joined by hyphens"
            )
        set_field = object.__setattr__
        if (self.standing == "none") != (self.lower is None):
            raise InvalidCertificate(
                f"lower is {arrays.shown(self.lower)} and standing {self.standing!r}, expected a "
                "number, or None and 'none'"
            )
        for name in ("assumptions", "notes"):
            set_field(self, name, read_statements(name, getattr(self, name), InvalidCertificate))
        if not self.assumptions:
            raise InvalidCertificate("assumptions is empty, expected at least one statement")
        for name in ("parameters", "figures"):
            set_field(self, name, read_scalars(name, getattr(self, name)))

    @property
    def zeta(self) -> float | None:
        """Returns ζ = −L, the loss that the claim leaves open; None without a claim."""
        return None if self.lower is None else 0.0 - self.lower  # never −0

    @property
    def says_nothing(self) -> bool:
        """Tells whether nothing is claimed, or a ζ of at least the span, true of any policy."""
        return self.zeta is None or self.zeta >= self.span

    @property
    def none_worse(self) -> bool:
        """Tells whether every signal is shown to keep its limit; so it is where there is one."""
        return all(part.holds for part in self.signals)

    def assumes(self, *codes: str) -> bool:
        """Tells whether a statement of one of these codes is among the assumptions."""
        return any(said.code in codes for said in self.assumptions)

    def to_json(self, verdict: str | None = None) -> str:
        """Returns the certificate as JSON, in the form that `certificate_schema` describes.

        `verdict` is what the result as a whole may be called that stands by this certificate.
        """
        return json.dumps(self.content(verdict), indent=2, ensure_ascii=False, allow_nan=False)

    def content(self, verdict: str | None = None) -> dict[str, Any]:
        """Returns the object that JSON writes."""
        return {
            "schema_version": SCHEMA_VERSION,
            **({} if verdict is None else {VERDICT: verdict}),
            "kind": self.kind,
            "standing": self.standing,
            "lower": self.lower,
            "zeta": self.zeta,
            "delta": self.delta,
            "span": self.span,
            "says_nothing": self.says_nothing,
            "assumptions": [statement.to_json() for statement in self.assumptions],
            "notes": [statement.to_json() for statement in self.notes],
            "parameters": dict(self.parameters),
            "figures": dict(self.figures),
            **({"signals": msgspec.to_builtins(self.signals)} if self.signals else {}),
        }

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Returns the certificate that `to_json` wrote; else refuses it with the field named."""
        return cls.from_content(read_json(text))

    @classmethod
    def from_content(cls, content: Any) -> Certificate:
        """Returns the certificate of an object of JSON; else refuses it with the field named."""
        version = content.get("schema_version") if isinstance(content, dict) else None
        if type(version) is int and version != SCHEMA_VERSION:
            raise InvalidCertificate(
                f"schema_version is {arrays.shown(version)}, expected {SCHEMA_VERSION}: this "
                "version of surestep reads no other; make the certificate again from its log"
            )
        file = converted(content, CertificateFile, "certificate", InvalidCertificate)
        if file.verdict is not UNSET and file.verdict not in VERDICTS:
            raise InvalidCertificate(
                f"{VERDICT} is {arrays.shown(file.verdict)}, expected one of {', '.join(VERDICTS)}"
            )
        certificate = cls(
            kind=file.kind,
            standing=file.standing,
            lower=file.lower,
            delta=file.delta,
            span=file.span,
            assumptions=stated("assumptions", content["assumptions"]),
            notes=stated("notes", content["notes"]),
            parameters=file.parameters,
            figures=file.figures,
            signals=tuple(file.signals),
        )
        for name in ("zeta", "says_nothing"):
            if getattr(file, name) != getattr(certificate, name):
                raise InvalidCertificate(
                    f"{name} is {getattr(file, name)}, expected {getattr(certificate, name)}: "
                    f"lower is {certificate.lower}, and span {certificate.span}"
                )
        return certificate

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles and copies by way of JSON: a read-only mapping has no pickle of its own."""
        return Certificate.from_json, (self.to_json(),)

    __hash__ = None  # type: ignore[assignment]


def certificate_schema() -> dict[str, Any]:
    """Returns the JSON Schema (draft 2020-12) of what `to_json` writes and `from_json` reads.

    Beyond it, `from_json` demands that zeta is −lower, that says_nothing is right, and that codes
    are known with these values; sentences are for people, and as the release worded them that wrote
    the file. Only the file of a certificate that a result stands by has a verdict.
    """
    schema = msgspec.json.schema(CertificateFile)
    fields = schema["$defs"].pop("CertificateFile")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:surestep:certificate:{SCHEMA_VERSION}",
        **fields,
        "title": "Certificate",
        "$defs": schema["$defs"],
        "if": {"properties": {"standing": {"const": "none"}}},
        "then": {"properties": {"lower": {"type": "null"}, "zeta": {"type": "null"}}},
        "else": {"properties": {"lower": {"type": "number"}, "zeta": {"type": "number"}}},
    }


# ---- reading ----------------------------------------------------------------------------------


def read_json(text: str) -> Any:
    """Returns what a text says in JSON; no name stands twice in one object."""
    if not isinstance(text, str):
        raise InvalidCertificate(f"the certificate is of type {type(text).__name__}, expected str")

    def unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(members)
        if len(content) < len(members):
            names = [name for name, _ in members]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidCertificate(
                f"{arrays.shown(twice)} stands twice in one object, expected once"
            )
        return content

    try:
        return json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as problem:
        raise InvalidCertificate(f"the certificate is no JSON: {problem}") from None


def stated(path: str, given: list[Any]) -> tuple[Statement, ...]:
    """Returns the statements of a file."""
    return tuple(statement_from_json(f"{path}[{i}]", entry) for i, entry in enumerate(given))
