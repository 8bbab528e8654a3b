"""Were cases decided at the same time, so that nothing says which decision came first?"""

from surestep.checks.check import Check, CheckKind


def check(tied: int) -> tuple[Check, ...]:
    """Tells how many rows were decided at the same time as a row of another episode, if any."""
    told = Check(code=KIND.code, outcome="told", figures={"tied": float(tied)})
    return (told,) * (tied > 0)


KIND = CheckKind(
    code="tied-times",
    title="Cases were decided at the same time",
    failed="{tied:decision} were made at the same time as one of another episode. The log does not "
    "say in which order, and whoever decided may have learnt from one for the next. Name a finer "
    'time; or if nobody learnt on the way, say so: behavior.logger = "fixed".',
    figures=("tied",),
)
