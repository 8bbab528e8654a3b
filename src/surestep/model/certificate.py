"""Defines certificates: a claim about one improved policy, with all data to recompute it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, Struct

import surestep._arrays as arrays
from surestep._json import converted, unique
from surestep._settings import check_settings
from surestep.errors import InvalidCertificate, named_in_errors
from surestep.model.noun import noun
from surestep.model.statements import Scalar, Statement, read_scalars, read_statements

Standing = Literal[
    "proved", "asymptotic", "posterior", "believed", "as-published", "by-extension", "none"
]

SCHEMA_VERSION = 5
# The verdicts on a result, from the strongest to the weakest
Rung = Literal[
    "proved better",
    "proved within the rewards seen",
    "believed better",
    "not shown to be better",
    "nothing changed",
]
VERDICTS: tuple[Rung, ...] = get_args(Rung)
NO_CLAIM = "no-claim"  # the kind of a certificate in place of one that was refused
KIND = r"^[a-z0-9]+(-[a-z0-9]+)*$"
VERDICT = "verdict"  # the field for the verdict on a result, in its main certificate's file

SCALAR_TYPES = ["null", "boolean", "number", "string"]

Kind = Annotated[str, Meta(pattern=KIND)]
# These are for the schema only: readers and constructors refuse other values with better messages.
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
    """The claim about one of several signals; more is better, so that costs have a minus.

    Parameters
    ----------
    name : str
        The name of the signal.
    cost : bool, default False
        People see it with the other sign.
    chance : bool, default False
        It is minus the chance to reach unsafe states.
    alone : bool, default False
        The claim is about the new policy itself, not about a gain.
    limit : float
        The least gain, or value, that is required.
    tested : float or None
        A lower bound of that gain or value, with confidence 1 − δ. The search for it may stop at
        the limit.
    holds : bool
        True if `tested` is at least the limit; for the signal that is improved, above it.
    lower : float or None
        A lower bound of the gain, or of minus the chance. With confidence 1 − δ, the lower bounds
        of all signals hold at once.
    before : float or None
        The estimate under π_b.
    after : float or None
        The estimate under π_I.
    refusal : str, optional
        The reason why nothing is claimed.

    Examples
    --------
    >>> from surestep.model import SignalClaim
    >>> SignalClaim(
    ...     name="price", limit=-0.1, tested=-0.05, holds=True, lower=-0.06, before=2.0, after=2.02
    ... ).holds
    True
    """

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
    """The file of a certificate; only the main certificate of a result has a verdict."""

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


@noun("kind", "standing", "lower", "delta", "span", "says_nothing")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Certificate(arrays.ByValue):
    """The claim that ρ(π_I, M) − ρ(π_b, M) ≥ `lower` with confidence 1 − δ.

    It holds if the assumptions hold.

    Parameters
    ----------
    kind : str
        The kind of certifier that made it.
    standing : str
        The sense of the confidence. "proved": in finite samples; "asymptotic": in the limit of much
        data; "posterior": under a prior; "believed": if a structure that was learnt from the log is
        true; "as-published": taken over from a paper with its gaps; "by-extension": as a plug-in
        says. With "none" nothing is claimed, and the certificate only gives the reason.
    lower : float or None
        L, the lower bound of the gain; None if nothing is claimed.
    delta : float
        The probability δ with which the claim may be wrong.
    span : float
        V_max − V_min: two policies cannot differ by more.
    assumptions : tuple of Statement or str
        At least one; a text is a sentence in your own words.
    notes : tuple of Statement or str, default ()
        Remarks on this claim that assume nothing.
    parameters : mapping from str to None, bool, int, float or str
        The settings of the certifier, so that the certificate can be made again.
    figures : mapping from str to None, bool, int, float or str
        The numbers it was computed from.
    signals : tuple of SignalClaim, default ()
        The claims of all signals if there are several; the first is about the improved signal.

    Raises
    ------
    InvalidCertificate
        If fields contradict each other.

    Examples
    --------
    >>> claim = surestep.Certificate(
    ...     kind="robust",
    ...     standing="proved",
    ...     lower=0.5,
    ...     delta=0.1,
    ...     span=10.0,
    ...     assumptions=["The log is Markov."],
    ...     parameters={},
    ...     figures={},
    ... )
    >>> claim.zeta, claim.says_nothing, str(claim.assumptions[0])
    (-0.5, False, 'The log is Markov.')
    >>> surestep.Certificate.from_json(claim.to_json()) == claim
    True
    """

    kind: str
    standing: Standing
    lower: float | None  # L
    delta: Annotated[float, Meta(gt=0, lt=1)]  # δ
    span: Annotated[float, Meta(ge=0)]
    assumptions: tuple[Statement, ...]
    notes: tuple[Statement, ...] = ()
    parameters: Mapping[str, Scalar]
    figures: Mapping[str, Scalar]
    signals: tuple[SignalClaim, ...] = ()

    def __post_init__(self) -> None:
        check_settings(self, InvalidCertificate)
        if not re.fullmatch(KIND, self.kind):
            raise InvalidCertificate(
                f"kind is {arrays.shown(self.kind)}, expected lower-case words joined by hyphens"
            )
        if (self.standing == "none") != (self.lower is None):
            raise InvalidCertificate(
                f"lower is {arrays.shown(self.lower)} and standing {self.standing!r}, expected a "
                "number, or None and 'none'"
            )
        arrays.keep(
            self,
            assumptions=read_statements("assumptions", self.assumptions, InvalidCertificate),
            notes=read_statements("notes", self.notes, InvalidCertificate),
            parameters=read_scalars("parameters", self.parameters),
            figures=read_scalars("figures", self.figures),
        )
        if not self.assumptions:
            raise InvalidCertificate("assumptions is empty, expected at least one statement")

    @property
    def zeta(self) -> float | None:
        """Returns ζ = −L, the loss that the claim leaves open; None without a claim."""
        return None if self.lower is None else 0.0 - self.lower  # never −0

    @property
    def says_nothing(self) -> bool:
        """Tells whether nothing is claimed, or only ζ ≥ span, which is true of any policy."""
        return self.zeta is None or self.zeta >= self.span

    @property
    def none_worse(self) -> bool:
        """Tells whether every signal is shown to keep its limit; True without signals."""
        return all(part.holds for part in self.signals)

    def assumes(self, *codes: str) -> bool:
        """Tells whether a statement of one of these codes is among the assumptions.

        Parameters
        ----------
        *codes : str
            Codes of statements.

        Returns
        -------
        bool
            True if any of them is.
        """
        return any(said.code in codes for said in self.assumptions)

    def to_json(self, verdict: str | None = None) -> str:
        """Writes the certificate as JSON, in the form that `certificate_schema` describes.

        Parameters
        ----------
        verdict : str, optional
            The verdict on the result whose main certificate this is.

        Returns
        -------
        str
            The text of a file.
        """
        return json.dumps(self.content(verdict), indent=2, ensure_ascii=False, allow_nan=False)

    def content(self, verdict: str | None = None) -> dict[str, Any]:
        """Makes the JSON object of the certificate.

        Parameters
        ----------
        verdict : str, optional
            The verdict on the result whose main certificate this is.

        Returns
        -------
        dict
            JSON values by name.
        """
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
    def from_json(cls, text: str) -> "Certificate":
        """Reads the certificate that `to_json` wrote.

        Parameters
        ----------
        text : str
            The text of the file.

        Returns
        -------
        Certificate
            The certificate.

        Raises
        ------
        InvalidCertificate
            If the text is no certificate; the message names the field.
        """
        return cls.from_content(read_unique_json(text))

    @classmethod
    def from_content(cls, content: Any) -> "Certificate":
        """Reads a certificate from a JSON object.

        Parameters
        ----------
        content : dict
            The object that `content` made.

        Returns
        -------
        Certificate
            The certificate.

        Raises
        ------
        InvalidCertificate
            If the object is no certificate; the message names the field.
        """
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
            assumptions=stated("assumptions", file.assumptions),
            notes=stated("notes", file.notes),
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
        """Pickles and copies as JSON, since a read-only mapping cannot be pickled."""
        return Certificate.from_json, (self.to_json(),)


def certificate_schema() -> dict[str, Any]:
    """Returns the JSON Schema (draft 2020-12) of the files of certificates.

    Returns
    -------
    dict
        The schema of `Certificate.to_json`.

    Notes
    -----
    Beyond it, `Certificate.from_json` demands that zeta is −lower, that says_nothing is right, and
    that the codes and values of statements are known. Sentences are for people, in the wording of
    the release that wrote the file. Only the file of the main certificate of a result has a
    verdict.

    Examples
    --------
    >>> from surestep.model import certificate_schema
    >>> certificate_schema()["title"]
    'Certificate'
    """
    schema = msgspec.json.schema(CertificateFile)
    for part in schema["$defs"].values():
        part["description"] = part["description"].partition("\n")[0]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:surestep:certificate:{SCHEMA_VERSION}",
        **schema["$defs"].pop("CertificateFile"),
        "title": "Certificate",
        "$defs": schema["$defs"],
        "if": {"properties": {"standing": {"const": "none"}}},
        "then": {"properties": {"lower": {"type": "null"}, "zeta": {"type": "null"}}},
        "else": {"properties": {"lower": {"type": "number"}, "zeta": {"type": "number"}}},
    }


# ---- reading ----------------------------------------------------------------------------------


def read_unique_json(text: str) -> Any:
    """Returns the value of a JSON text; refuses objects in which a name stands twice."""
    if not isinstance(text, str):
        raise InvalidCertificate(f"the certificate is of type {type(text).__name__}, expected str")

    try:
        return json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as problem:
        raise InvalidCertificate(f"the certificate is no JSON: {problem}") from None


def stated(path: str, given: list[StatementFile]) -> tuple[Statement, ...]:
    """Makes the statements of a file from codes and values, since its sentences may be outdated."""
    statements = []
    for place, entry in enumerate(given):
        with named_in_errors(f"{path}[{place}]", InvalidCertificate):
            statements.append(Statement(entry.code, entry.values))
    return tuple(statements)
