"""Certifiers as text: 'posterior', or with settings 'robust:set=l1,strict=true'."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import surestep._arrays as arrays
from surestep._names import unknown
from surestep.certificates.known import Known, ends
from surestep.certificates.no_claim import NoClaim
from surestep.certificates.posterior import Posterior, told_posterior
from surestep.certificates.protocol import Certifier
from surestep.certificates.registry import (
    CERTIFIERS,
    SHELF,
    certifier_kind,
    check_certifier,
    find_kind,
)
from surestep.certificates.robust import Robust, told_robust
from surestep.certificates.trajectory import Trajectory, told_trajectory
from surestep.errors import InvalidParameter

TOLD = {Posterior: told_posterior, Robust: told_robust, Trajectory: told_trajectory}
WORDS: dict[str, bool | None] = {"none": None, "true": True, "false": False}


class Asked(NamedTuple):
    """A kind of certificate, and those of its settings that were given."""

    kind: str
    settings: Mapping[str, Any]
    own: type[Any] | None = None  # its type, where it is not built in

    @classmethod
    def of(cls, given: object) -> Asked:
        """Returns a text, or a certifier, of which every setting but None counts as given."""
        if isinstance(given, str):
            return read_asked(given)
        try:
            check_certifier(given)
        except InvalidParameter as reason:
            raise InvalidParameter(f"{reason}; or a name, one of {', '.join(kinds())}") from None
        if isinstance(given, NoClaim):
            raise InvalidParameter(f"a certifier is {given!r}, expected one that claims something")
        names = [field.name for field in dataclasses.fields(given)]  # type: ignore[arg-type]
        values = {name: arrays.plain(getattr(given, name)) for name in names}
        said = {name: value for name, value in values.items() if value is not None}
        own = None if type(given) in CERTIFIERS.values() else type(given)
        return cls(given.name, said, own)  # type: ignore[attr-defined]

    def make(self, **more: Any) -> Certifier:
        """Returns the certifier; settings that were given win over `more`."""
        certifier: Certifier = self.type(**{**more, **self.settings})
        return certifier

    def make_with(self, known: Known) -> Certifier:
        """Returns the certifier with everything that it takes from what is known."""
        return self.make(**told_to(self.type, known, self.settings))

    def told_since(self, certifier: Certifier, before: Known, now: Known) -> Certifier:
        """Returns the certifier with what became known since it was made, where anything did."""
        old, new = (told_to(self.type, known, self.settings) for known in (before, now))
        learnt = [name for name in new if new[name] != old.get(name) and name not in self.settings]
        more = {name: new[name] for name in learnt}
        told: Certifier = replace(certifier, **more) if more else certifier  # type: ignore[type-var]
        return told

    @property
    def type(self) -> type[Any]:
        """Returns the type of the certifier."""
        return certifier_kind(self.kind) if self.own is None else self.own

    @property
    def why_not_rehearsed(self) -> str:
        """Returns what stands against a rehearsal; empty where nothing does."""
        if self.type is Trajectory and self.settings.get("claim") == "horizon":
            return "the claim is about the first steps only, while worlds are compared by ρ"
        return ""

    @property
    def takes(self) -> tuple[str, ...]:
        """Returns the names of all its settings."""
        return tuple(field.name for field in dataclasses.fields(self.type))

    def __str__(self) -> str:
        """Returns the text that `read_asked` reads."""
        words = {value: word for word, value in WORDS.items()}
        given = [
            f"{name}={words[value] if value is None or isinstance(value, bool) else value}"
            for name, value in self.settings.items()
        ]
        return f"{self.kind}:{','.join(given)}" if given else self.kind


def told_to(kind: type[Any], known: Known, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that a kind takes from what is known, beside those given."""
    told = TOLD[kind](known, given) if kind in TOLD else known.usual()
    for what in ("reward", "return"):  # both ends come from one source
        both = ends(what, None)
        if both.keys() & given.keys():
            told |= both
    takes = [field.name for field in dataclasses.fields(kind)]
    return {name: told[name] for name in takes if told.get(name) is not None}


def kinds() -> tuple[str, ...]:
    """Returns the names of all kinds; nobody asks for no claim."""
    return tuple(name for name in SHELF.everything() if name != NoClaim.name)


def make_certifier(text: str) -> Certifier:
    """Returns the certifier that a text names.

    >>> make_certifier("robust:set=l1,strict=true").strict
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
    twice = next((each for each, _ in given if [n for n, _ in given].count(each) > 1), None)
    if twice is not None:
        raise InvalidParameter(f"the setting {twice} of {name} is given twice, expected once")
    return name, dict(given)


def read_asked(text: str) -> Asked:
    """Returns a kind, and after a colon its settings, each NAME=VALUE."""
    kind, settings = read_settings(text)
    if find_kind(kind) is None or kind == NoClaim.name:
        raise unknown(f"there is no kind of certificate {kind!r}", kind, kinds())
    asked = Asked(kind, settings)
    for name in asked.settings:
        if name not in asked.takes:
            raise unknown(f"{kind} has no setting {name!r}", name, asked.takes)
    return asked


def read_setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE: a whole number, a number, true, false, none, or a word."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise InvalidParameter(f"a setting of a certificate is {text!r}, expected NAME=VALUE")
    name = name.replace("-", "_")
    if value.lower() in WORDS:
        return name, WORDS[value.lower()]
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
