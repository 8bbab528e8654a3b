"""Finds certifiers by name, or by a text with settings such as 'robust:set=l1,strict=true'.

The standing of a claim is its own word for it, where its kind is built in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import surestep._arrays as arrays
from surestep._names import refuse_unknown, twice, unknown
from surestep._settings import Delta, Settings
from surestep.certificates.apriori import APriori
from surestep.certificates.common import Certifier, Needs, claim_of, values_statement
from surestep.certificates.node_posterior import NodePosterior
from surestep.certificates.node_tables import NodeRobust
from surestep.certificates.nodes import NodeStitched
from surestep.certificates.posterior import Posterior
from surestep.certificates.robust import Robust
from surestep.certificates.stitched import Stitched
from surestep.certificates.trajectory import Trajectory
from surestep.errors import InvalidParameter
from surestep.extensions import Shelf, missing_in
from surestep.model import Policy, Problem, Signal
from surestep.model.certificate import NO_CLAIM, Certificate, Standing
from surestep.model.known import Known, ends
from surestep.model.statements import STOPPING, Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class NoClaim(Settings, Certifier):
    """No L at all: a result without a guarantee.

    A result always carries a certificate. Where the one that was asked for is refused, this says
    so, with the reason, instead of leaving a gap that a reader might overlook.
    """

    code: str  # of the refusal of the requested claim, for programs
    asked: str | None = None  # the kind that was asked for; None where it is not known
    refusal: str  # the sentence of the refusal
    delta: Delta = 0.1

    name: ClassVar = NO_CLAIM
    value_figures: ClassVar = frozenset[str]()
    needs: ClassVar = Needs()
    may_choose: ClassVar = False

    def certify(self, problem: Problem, policy: Policy) -> Certificate:
        """Returns a certificate without a claim, with the reason why there is none."""
        note = Statement("no-guarantee", {"asked": self.asked, "refusal": self.refusal})
        return claim_of(
            self, problem, None, "none", assumptions=(values_statement(problem),), notes=(note,)
        )


CERTIFIERS: dict[str, type[Any]] = {
    "a-priori": APriori,
    "no-claim": NoClaim,
    "robust": Robust,
    "posterior": Posterior,
    "trajectory": Trajectory,
    "stitched": Stitched,
}


BUILT_IN = frozenset(
    {*CERTIFIERS, NodeStitched.name, NodeRobust.name, NodePosterior.name}
)  # claims of other kinds are believed at most
MEMBERS = ("name", "value_figures", "needs", "may_choose", "delta", "certify")
BY_EXTENSION: Standing = "by-extension"
OF_REWARDS = ("reward", "return", "ending", "extreme")  # names of settings begin with them
WORDS: dict[str, bool | None] = {"none": None, "true": True, "false": False}


def check_certifier(certifier: object) -> None:
    """Refuses an object that does not inherit from `Certifier`, or lacks a member of one."""
    kind = type(certifier)
    if kind in CERTIFIERS.values():
        return
    known = " or ".join(kind.__name__ for kind in CERTIFIERS.values())
    lacks = missing_in(kind, MEMBERS)
    if not isinstance(certifier, Certifier):
        lacks = lacks or "a kind that inherits from surestep.certificates.Certifier"
    elif not lacks and certifier.name in CERTIFIERS:
        lacks = "a kind with another name than these"
    if lacks:
        raise InvalidParameter(
            f"certifier is of type {kind.__name__}, expected {known}, with its settings, or {lacks}"
        )


# Kinds that inherit from `Certifier` have all its other members with `told`.
SHELF: Shelf[type[Any]] = Shelf("certificates", CERTIFIERS, (*MEMBERS, "told"))


def only_believed(kind: str) -> bool:
    """Tells whether the claims of a kind are beliefs: those of a posterior, and of plug-ins."""
    return kind not in BUILT_IN or kind in (Posterior.name, NodePosterior.name)


def may_be_believed(place: int, kind: str, *, apart: bool) -> bool:
    """Tells whether a claim counts as a belief; `place` is its place among the claims.

    The stress test measures the first of these claims, and the page shows it. `apart` says that the
    data of the claim had no part in choosing the policy. The stress test measures a kind that is
    not built in only in the first place.
    """
    return apart and only_believed(kind) and (place == 0 or kind in BUILT_IN)


def standing_of(certificate: Certificate) -> Standing:
    """Returns the standing of a claim: proved, a belief, or by extension.

    A kind that is not built in may call a claim proved or a posterior; it stands by extension.
    """
    own = certificate.kind not in BUILT_IN
    said = certificate.standing
    return BY_EXTENSION if own and said in ("proved", "posterior") else said


def standing_name(certificate: Certificate) -> str:
    """Returns the standing in words, with its extension: 'proved', 'by extension toy-pack'.

    Nobody is named for an object that was handed over without being registered.
    """
    standing = standing_of(certificate)
    if certificate.kind in BUILT_IN or standing == "none":
        open_end = standing == "proved" and certificate.assumes(STOPPING.code)
        return f"{standing} if stopping tells nothing" if open_end else standing
    by = f"by extension {SHELF.source_of(certificate.kind)}".rstrip()
    return by if standing == BY_EXTENSION else f"{standing} {by}"


class Asked(NamedTuple):
    """A kind of certificate, and the settings that the user gave."""

    kind: str
    settings: Mapping[str, Any]
    own: type[Any] | None = None  # its type, where it is not built in

    @classmethod
    def of(cls, given: object) -> "Asked":
        """Reads a text or a certifier; every setting of a certifier but None counts as given."""
        if isinstance(given, str):
            return read_asked(given)
        try:
            check_certifier(given)
        except InvalidParameter as reason:
            raise InvalidParameter(f"{reason}; or a name, one of {', '.join(kinds())}") from None
        if isinstance(given, NoClaim):
            raise InvalidParameter(f"a certifier is {given!r}, expected one that claims something")
        values = {
            field.name: arrays.as_python(getattr(given, field.name))
            for field in fields(given)  # type: ignore[arg-type]
        }
        said = {name: value for name, value in values.items() if value is not None}
        own = None if type(given) in CERTIFIERS.values() else type(given)
        return cls(given.name, said, own)  # type: ignore[attr-defined]

    def make(self, **more: Any) -> Certifier:
        """Returns the certifier; settings that were given win over `more`."""
        certifier: Certifier = self.type(**{**more, **self.settings})
        return certifier

    def make_with(self, known: Known) -> Certifier:
        """Returns the certifier with the settings that follow from the known facts."""
        return self.make(**told_to(self.type, known, self.settings))

    @property
    def type(self) -> type[Any]:
        """Returns the type of the certifier."""
        return SHELF.get(self.kind) if self.own is None else self.own

    @property
    def why_not_rehearsed(self) -> str:
        """Returns the reason why the kind cannot be stress-tested; empty where there is none."""
        if self.type is Trajectory and self.settings.get("claim") == "horizon":
            return "the claim is about the first steps only, while worlds are compared by ρ"
        return ""

    @property
    def takes(self) -> tuple[str, ...]:
        """Returns the names of all its settings."""
        return tuple(field.name for field in fields(self.type))

    def __str__(self) -> str:
        """Returns the text that `read_asked` reads."""
        words = {value: word for word, value in WORDS.items()}
        given = [
            f"{name}={words[value] if value is None or isinstance(value, bool) else value}"
            for name, value in self.settings.items()
        ]
        return f"{self.kind}:{','.join(given)}" if given else self.kind


def told_to(kind: type[Any], known: Known, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a kind that follow from known facts, for settings not given."""
    told = kind.told(known, given)
    for what in ("reward", "return"):  # both ends come from one source
        both = ends(what, None)
        if both.keys() & given.keys():
            told |= both
    takes = [field.name for field in fields(kind)]
    return {name: told[name] for name in takes if told.get(name) is not None}


def certifier_for(certifier: Any, signal: Signal) -> Any:
    """Returns the certifier with the settings that the rewards of a signal ask for."""
    told = told_to(type(certifier), signal.known, {})
    usual = {field.name: field.default for field in fields(certifier)}
    names = [name for name in usual if name.startswith(OF_REWARDS)]
    return replace(certifier, **{name: told.get(name, usual[name]) for name in names})


def kinds() -> tuple[str, ...]:
    """Returns the names of all kinds of certificates, without `NoClaim`."""
    return tuple(name for name in SHELF.everything() if name != NoClaim.name)


def make_certifier(text: str) -> Certifier:
    """Returns the certifier that a text names.

    Parameters
    ----------
    text : str
        A kind, and after a colon its settings, each NAME=VALUE.

    Returns
    -------
    Certifier
        The certifier.

    Raises
    ------
    InvalidParameter
        Where there is no such kind or setting.

    Examples
    --------
    >>> surestep.certificates.make_certifier("robust:set=l1,strict=true").strict
    True
    """
    return read_asked(text).make()


def read_settings(text: str) -> tuple[str, dict[str, Any]]:
    """Returns a name, and after a colon its settings, each NAME=VALUE.

    >>> read_settings("spibb:n_wedge=50")
    ('spibb', {'n_wedge': 50})
    """
    name, _, rest = text.partition(":")
    given = [*map(read_setting, rest.split(","))] if rest else []
    for first, _ in twice(key for key, _ in given):
        raise InvalidParameter(
            f"the setting {given[first][0]} of {name} is given twice, expected once"
        )
    return name, dict(given)


def read_asked(text: str) -> Asked:
    """Returns a kind, and after a colon its settings, each NAME=VALUE."""
    kind, settings = read_settings(text)
    if SHELF.find(kind) is None or kind == NoClaim.name:
        raise unknown(f"there is no kind of certificate {kind!r}", kind, kinds())
    asked = Asked(kind, settings)
    for name in asked.settings:
        refuse_unknown(f"{kind} has no setting {name!r}", name, asked.takes)
    return asked


def read_setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE: a whole number, a number, true, false, none, or a word."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise InvalidParameter(f"a setting is {text!r}, expected NAME=VALUE")
    name = name.replace("-", "_")
    if value.lower() in WORDS:
        return name, WORDS[value.lower()]
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
