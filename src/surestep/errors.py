"""The errors that surestep raises: one family, so that `except SurestepError` catches them all.

Their messages tell people what to say instead, in the words of whoever asked: arguments to those
who call a function, options to those who type a command. Both are given to `said`, and the command
line says that it is the one who speaks (`speaking_of_options`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = [
    "CertificateMismatch",
    "CertificateRefused",
    "ClusterUnavailable",
    "DeviceUnavailable",
    "FileFailure",
    "InvalidCertificate",
    "InvalidCounts",
    "InvalidLog",
    "InvalidModel",
    "InvalidParameter",
    "InvalidPolicy",
    "InvalidResult",
    "MissingExtra",
    "NeverEnds",
    "NotConverged",
    "OutOfTime",
    "RefutedBounds",
    "ResultMismatch",
    "ShapeMismatch",
    "SurestepError",
    "UnsupportedPolicy",
]

LONGEST = 4_000  # letters of a message
OF_OPTIONS: ContextVar[bool] = ContextVar("of_options", default=False)


def said(argument: str, option: str) -> str:
    """Returns how something is said: the argument of a function, or the option of a command.

    What ends up in files that are made again must not be said in two ways.
    """
    return option if OF_OPTIONS.get() else argument


def install(extra: str) -> str:
    """Returns the end of a message: the command that installs an extra.

    It is for a clone, as long as surestep is on no index.
    """
    return f"install it in a clone of surestep with: pip install '.[{extra}]'"


@contextmanager
def speaking_of_options() -> Iterator[None]:
    """Makes messages speak of options, as long as it lasts."""
    token = OF_OPTIONS.set(True)
    try:
        yield
    finally:
        OF_OPTIONS.reset(token)


class SurestepError(Exception):
    """Something the caller can act on; the message says what, where, and what to do."""

    def __str__(self) -> str:
        """Returns the message; one with megabytes of a file in it is shortened in the middle."""
        text = super().__str__()
        return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}…{text[-LONGEST // 2 :]}"


class InvalidModel(SurestepError):
    """An MDP, or a part of one, that is not well formed."""


class InvalidPolicy(SurestepError):
    """A policy that is not a distribution over the enabled actions of every state."""


class InvalidCounts(SurestepError):
    """Counts that no log could have produced."""


class InvalidLog(SurestepError):
    """A log of decisions that no run of episodes could have produced."""


class UnsupportedPolicy(SurestepError):
    """A policy that does what the log never shows, so that the log cannot tell its value."""


class InvalidParameter(SurestepError):
    """A setting outside its range."""


class DeviceUnavailable(SurestepError):
    """A GPU that was asked for and cannot be used."""


class ClusterUnavailable(SurestepError):
    """A Ray cluster that cannot be reached, or lost what it was given to do."""


class ShapeMismatch(SurestepError):
    """Two things combined that do not describe the same states, actions or transitions."""


class InvalidCertificate(SurestepError):
    """A certificate, or a text that should hold one, that is not well formed."""


class CertificateRefused(SurestepError):
    """A claim that cannot be made about this policy, or not from this data.

    It is raised with a `model.Statement`, or a plug-in's own words and code. `code` is the reason
    in a word, such as "too-few-visits", without names and numbers of the case: reasons can be told
    apart and counted. docs/codes.md lists those of the package.
    """

    def __init__(self, said: object, *, code: str | None = None) -> None:
        """Takes a statement, or the sentence for people and the code for programs."""
        super().__init__(said)
        self.code = code or str(getattr(said, "code", "in-own-words"))


class RefutedBounds(CertificateRefused):
    """Bounds of rewards or values that the data refute, so that no claim may rest on them."""


class CertificateMismatch(CertificateRefused):
    """A certificate that comes out differently when it is computed again."""


class InvalidResult(SurestepError):
    """A folder that holds no result, or one whose files were changed."""


class ResultMismatch(SurestepError):
    """A result that comes out differently when it is made again."""


class NotConverged(SurestepError):
    """An iteration that ended before its answer was proven good enough.

    Where a tolerance that was asked for cannot be proved, `plan` is the Plan that was reached, or
    `evaluation` the Evaluation, with the `error_bound` that is proved; else they may be None.
    """

    def __init__(self, message: str, *, plan: Any = None, evaluation: Any = None) -> None:
        """Takes the sentence for people, and what was reached."""
        super().__init__(message)
        self.plan, self.evaluation = plan, evaluation


class NeverEnds(SurestepError):
    """A policy, or a model, that may go on for ever where nothing is discounted."""


class OutOfTime(SurestepError):
    """Work that a time limit ended before there was anything to tell."""


class FileFailure(SurestepError):
    """A file that could not be read or written."""


class MissingExtra(SurestepError):
    """A package that is not installed; the message ends with the command that installs it."""
