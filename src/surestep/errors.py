"""The errors that surestep raises; `except SurestepError` catches them all.

A message names what was found, what was expected, and what to do. The same message speaks of
arguments to a caller in Python and of options to a user of the command line (`said`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
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
    """Returns the argument for callers in Python, and the option for the command line.

    Texts that are saved in files must not depend on this: `verify` makes them again.
    """
    return option if OF_OPTIONS.get() else argument


def install(extra: str) -> str:
    """Returns the command that installs an extra from a clone: surestep is on no index yet."""
    return f"install it in a clone of surestep with: pip install '.[{extra}]'"


def optional_module(name: str, need: str, extra: str) -> Any:
    """Imports a module of an extra; the error says who needs it, and how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtra(f"{need}, which is not installed; {install(extra)}") from None


@contextmanager
def speaking_of_options() -> Iterator[None]:
    """Makes messages speak of options inside a `with` block."""
    token = OF_OPTIONS.set(True)
    try:
        yield
    finally:
        OF_OPTIONS.reset(token)


@contextmanager
def named_in_errors(name: object, kind: "type[SurestepError]") -> Iterator[None]:
    """Puts a name before the message of an error of this kind that is raised inside."""
    try:
        yield
    except kind as problem:
        raise kind(f"{name}: {problem}") from None


class SurestepError(Exception):
    """The base class of all errors of surestep, which a caller can act on.

    The message says what was found, where, what was expected, and what to do.

    Examples
    --------
    >>> try:
    ...     surestep.read_log("nowhere.csv")
    ... except surestep.errors.SurestepError as error:
    ...     print(type(error).__name__, str(error)[:22])
    FileFailure nowhere.csv is no file
    """

    def __str__(self) -> str:
        """Returns the message; a very long one is shortened in the middle."""
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

    Parameters
    ----------
    said : Statement or str
        The reason as a statement of `surestep.model`, or as a sentence.
    code : str, optional
        The reason in a word, such as "too-few-visits", without names and numbers of the case. By
        default the code of the statement. docs/codes.md lists all codes of surestep.

    Examples
    --------
    >>> surestep.errors.CertificateRefused("too short", code="too-few-visits").code
    'too-few-visits'
    """

    def __init__(self, said: object, *, code: str | None = None) -> None:
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

    Parameters
    ----------
    message : str
        The message.
    plan : Plan, optional
        The plan that was reached, with the error bound that is proved for it.
    evaluation : Evaluation, optional
        The evaluation that was reached, with its error bound.

    Examples
    --------
    >>> mdp = surestep.FiniteMDP.from_dense([[[1.0]]], [[1.0]], discount=0.9)
    >>> try:
    ...     surestep.optimal(mdp, tolerance=1e-300)
    ... except surestep.errors.NotConverged as error:
    ...     print(error.plan.error_bound < 1e-9)
    True
    """

    def __init__(self, message: str, *, plan: Any = None, evaluation: Any = None) -> None:
        super().__init__(message)
        self.plan = plan
        self.evaluation = evaluation


class NeverEnds(SurestepError):
    """A policy, or a model, that may go on for ever where nothing is discounted."""


class OutOfTime(SurestepError):
    """Work that a time limit ended before there was anything to tell."""


class FileFailure(SurestepError):
    """A file that could not be read or written."""


class MissingExtra(SurestepError):
    """A package that is not installed; the message ends with the command that installs it."""
