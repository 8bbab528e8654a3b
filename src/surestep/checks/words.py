"""Writes the titles and sentences of checks, for the terminal and for pages."""

from collections.abc import Sequence

from surestep._words import THIN_SPACE, counted, listed, number, percent, signed
from surestep.checks.check import CHECKS, WHY, Check, Sentences
from surestep.model import Certificate

SMALLEST = 1e-4  # the smallest p-value that is written as a number


class Figure(float):
    """A number that formats itself: {x}, {x:2} with two digits, {x:+}, {x:%}, or {x:row}."""

    def __format__(self, how: str) -> str:
        value = float(self)
        if how == "+":
            return signed(value)
        if how == "%":  # always two digits
            return percent(value) if value >= 0.1 else f"{number(100 * value, 2)}{THIN_SPACE}%"
        return counted(int(value), how) if how.isalpha() else number(value, int(how or 4))


def filled(words: Sentences, check: Check) -> str:
    """Fills the figures of a check into a sentence."""
    if not isinstance(words, str):
        return words(check)
    given = {**check.figures, "noticed": check.noticed or 0.0}
    return words.format(**{name: Figure(value) for name, value in given.items()})


def title(check: Check) -> str:
    """Returns the assumption of a check; the finding, where the check failed.

    Parameters
    ----------
    check : Check
        The check.

    Returns
    -------
    str
        A few words, without a period.

    Examples
    --------
    >>> from surestep.checks import check_log, title
    >>> from surestep.environments import make
    >>> gridworld = make("gridworld")
    >>> first, *_ = check_log(gridworld.sample(100, 1))
    >>> title(first)
    'The next situation depends only on the current situation and action'
    """
    kind = CHECKS[check.code]
    words = (check.outcome == "failed" and kind.broken) or kind.title
    return words if check.signal is None else f"{words} ({check.signal})"


def says(check: Check) -> str:
    """Returns the finding of a check, in a sentence or two.

    Parameters
    ----------
    check : Check
        The check.

    Returns
    -------
    str
        The sentences.

    Examples
    --------
    >>> from surestep.checks import check_log, says
    >>> from surestep.environments import make
    >>> gridworld = make("gridworld")
    >>> first, *_ = check_log(gridworld.sample(100, 1))
    >>> says(first)
    'No sign that the 3 previous steps help to predict the next situation.'
    """
    kind = CHECKS[check.code]
    if check.outcome == "unchecked":
        words = WHY[check.why or ""]
    else:
        words = filled(getattr(kind, check.outcome) or kind.failed, check)
    return f"{kind.always} {words}".strip()


def aside(check: Check) -> str:
    """Describes the test and the effect that it would have noticed; empty without a test."""
    kind = CHECKS[check.code]
    if check.p_value is None or check.rows is None or check.level is None:
        return "" if check.outcome == "unchecked" else kind.aside
    p_value = f"p = {number(check.p_value, 2)}" if check.p_value >= SMALLEST else "p < 0.0001"
    rows = counted(check.rows, "row")
    if check.episodes is not None:
        rows += " of {:,} of {:,} episodes (drawn at random)".format(*check.episodes)
    if check.one_an_episode:
        rows += ", at most one per episode and kind"
    tested = f"Permutation test over {rows}: {p_value}; it fails at {number(check.level, 2)}."
    return tested if check.noticed is None else f"{tested} {filled(kind.noticed, check)}"


def failed(checks: Sequence[Check]) -> list[Check]:
    """Returns the checks that failed.

    Parameters
    ----------
    checks : sequence of Check
        Any checks.

    Returns
    -------
    list of Check
        Those whose outcome is "failed".

    Examples
    --------
    >>> from surestep.checks import check_log, failed
    >>> from surestep.environments import make
    >>> gridworld = make("gridworld")
    >>> failed(check_log(gridworld.sample(100, 1)))
    []
    """
    return [check for check in checks if check.outcome == "failed"]


def forbids_proof(checks: Sequence[Check], claim: Certificate) -> bool:
    """Tells whether a failed check means that a claim must not be called proved."""
    tests = ((CHECKS[check.code].forbids_proof, check) for check in failed(checks))
    return bool(speaking_against(checks, claim)) or any(
        forbids(check, claim) for forbids, check in tests if forbids is not None
    )


def speaking_against(checks: Sequence[Check], claim: Certificate) -> list[Check]:
    """Returns the failed checks that are evidence against something that a claim assumes."""
    return [check for check in failed(checks) if claim.assumes(CHECKS[check.code].against or "")]


def asked(checks: Sequence[Check]) -> str:
    """Returns the question of the first failed check that must be answered first; else ""."""
    asking = (check for check in failed(checks) if CHECKS[check.code].asks)
    return next((f"{title(check)}. {says(check)}" for check in asking), "")


def summary(checks: Sequence[Check]) -> str:
    """Says in a sentence how many assumptions were tested, and which failed."""
    many = counted(len(checks), "assumption")
    wrong = failed(checks)
    tested = sum(check.outcome in ("passed", "failed") for check in checks)
    if not tested:
        return f"Of {many}, none could be tested."
    result = "none failed"
    if wrong:
        result = f"{len(wrong):,} failed: {listed([f'“{title(check)}”' for check in wrong])}"
    return f"Of {many}, {tested:,} {'was' if tested == 1 else 'were'} tested; {result}."
