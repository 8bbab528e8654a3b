"""Problems as many tests pose them: by default, the behavior policy is uniform."""

from surestep import Policy, Problem


def uniform_problem(counts, discount, value_bounds, **more):
    return Problem(
        counts=counts,
        behavior=Policy.uniform(counts),
        discount=discount,
        value_bounds=value_bounds,
        **more,
    )


def logged_problem(log, discount, value_bounds, behavior=None, *, counts=None, **more):
    """The problem of a log, by its own counts or by those given."""
    return Problem(
        counts=log.counts() if counts is None else counts,
        behavior=Policy.uniform(log.pairs) if behavior is None else behavior,
        discount=discount,
        value_bounds=value_bounds,
        log=log,
        **more,
    )


def problem_of(counts, **changes):
    """A problem around the counts, with any discount and bounds."""
    return uniform_problem(counts, **{"discount": 0.9, "value_bounds": (-7.0, 5.0), **changes})
