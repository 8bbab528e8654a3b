"""Problems whose behavior policy is uniform, as many tests pose them."""

from surestep import Policy, Problem


def uniform_problem(counts, discount, value_bounds, **more):
    return Problem(
        counts=counts,
        behavior=Policy.uniform(counts),
        discount=discount,
        value_bounds=value_bounds,
        **more,
    )


def problem_of(counts, **changes):
    """A problem around the counts, with any discount and bounds."""
    return uniform_problem(counts, **{"discount": 0.9, "value_bounds": (-7.0, 5.0), **changes})
