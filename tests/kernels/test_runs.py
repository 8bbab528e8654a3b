"""Running sums, products and draws within runs, against plain loops and exact inversion."""

import itertools
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from surestep.kernels.runs import element_at, running_products, running_sums

VALUES = st.floats(0, 8, allow_subnormal=False)
RUNS = st.lists(st.lists(VALUES, max_size=5), min_size=1, max_size=4)


def flat(runs):
    offsets = np.concatenate([[0], np.cumsum([len(run) for run in runs])])
    return offsets, np.array([x for run in runs for x in run], float)


@given(runs=RUNS)
def test_running_sums_and_products_restart_with_every_run(runs):
    offsets, values = flat(runs)
    for kernel, operation in ((running_sums, np.add), (running_products, np.multiply)):
        expected = [x for run in runs for x in itertools.accumulate(run, operation)]
        assert kernel(offsets, values).tolist() == expected


@given(
    weights=st.lists(st.integers(0, 5), min_size=1, max_size=9).filter(any),
    level=st.integers(0, 2**20 - 1),
)
def test_a_draw_inverts_the_distribution_exactly(weights, level):
    # Sixteenths and 2⁻²⁰ths are doubles, so nothing is rounded and the answer is known exactly.
    probability = [Fraction(w, 16) for w in weights]
    uniform = Fraction(level, 2**20)
    total, running = sum(probability), list(itertools.accumulate(probability))
    expected = next(i for i, x in enumerate(running) if x > uniform * total)
    cumulative = np.array([-1.0, *map(float, running)])  # another run comes first
    chosen = element_at(np.array([0, 1, cumulative.size]), cumulative, 1, float(uniform))
    assert chosen - 1 == expected
    assert weights[expected] > 0


def test_the_largest_uniform_number_stays_inside_the_run():
    below_one = np.nextafter(1.0, 0.0)
    for total in (1.0, 1 - 1e-12, 1 + 1e-12, np.nextafter(1.0, 2.0), below_one, 1e-300):
        cumulative = np.array([total / 2, total, total, total])  # the last two have no weight
        assert element_at(np.array([0, 4]), cumulative, 0, below_one) == 1
