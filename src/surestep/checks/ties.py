"""Were cases decided at the same time, so that only the files say which decision came first?"""

from surestep.checks.check import Check, CheckKind


def check(tied: int) -> Check | None:
    """Fails if rows were decided at the same time as a row of another episode."""
    return Check.failing(KIND.code, tied > 0, tied=float(tied))


KIND = CheckKind(
    code="tied-times",
    title="Cases were decided at the same time",
    failed="{tied:decision} were made at the same time as one of another episode. Only the files "
    "say in which order, and whoever decided may have learnt from one for the next. Name a finer "
    'time; or if nobody learnt on the way, say so: behavior.logger = "fixed".',
    figures=("tied",),
)
