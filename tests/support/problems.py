"""Problems as many tests pose them: with a uniform behavior policy, or by a log."""

from surestep import Policy, Problem


def uniform_problem(counts, discount, value_bounds, **more):
    return Problem(
        counts=counts,
        behavior=Policy.uniform(counts),
        discount=discount,
        value_bounds=value_bounds,
        **more,
    )


def logged_problem(log, behavior, discount, value_bounds, *, counts=None, **more):
    counts = log.counts() if counts is None else counts
    terms = {"behavior": behavior, "discount": discount, "value_bounds": value_bounds}
    return Problem(counts=counts, log=log, **terms, **more)
