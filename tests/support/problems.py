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
