"""What tests of robust claims share: kinds of sets, and a small problem."""

import numpy as np
import pytest

from surestep import Counts, Policy, Problem
from surestep.certificates.uncertainty import uncertainty_of

SETS = ("interval", "l1", "two-successor")
RANGE = {"reward_low": -3.0, "reward_high": 3.0}
EVERY = pytest.mark.parametrize("kind", SETS)
STRICT = pytest.mark.parametrize("strict", [False, True], ids=["fixed", "strict"])


def set_of(problem, certifier):
    """The set that the certifier looks at."""
    return uncertainty_of(problem, certifier)


def small_counts(scale=1, **rewards):
    """Two states with two actions each, one pair of which was never tried, and an end."""
    table = np.zeros((3, 2, 3), int)
    table[0, 0], table[0, 1], table[1, 0] = (6, 3, 1), (0, 5, 5), (2, 0, 8)
    given = rewards or {"rewards": [[0.5, 1.0], [0.0, 2.0], [0.0, 0.0]]}
    return Counts.from_dense(
        scale * table, **given, starts=scale * np.array([8, 2, 0]), terminal=[False, False, True]
    )


def small_problem(scale=1, **changes):
    """A problem around those counts."""
    counts = changes.pop("counts", None) or small_counts(scale)
    terms = {"behavior": Policy.uniform(counts), "discount": 0.9, "value_bounds": (0.0, 20.0)}
    return Problem(counts=counts, **(terms | changes))
