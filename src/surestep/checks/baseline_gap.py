"""Does the model say something else of the current policy than its episodes earned?

`results.Baseline` has the test: a normal mean, with one false alarm in a thousand.
"""

from __future__ import annotations

from surestep.checks.check import Check, GivenResult, Kind


def check(result: GivenResult) -> Check | None:
    """Returns the gap, where there is one."""
    return Check.failing(KIND.code, result.gap is not None, **(result.gap or {}))


KIND = Kind(
    code="baseline-gap",
    title="The model and the episodes agree on what the current policy earns",
    failed="The model says that the current policy earns {model} per episode; the episodes say "
    "{low} to {high}. The model does not describe the log, so its gains may be wrong too.",
    figures=("model", "low", "high"),
    of_result=check,
)
