"""Our betting bound against what others publish for the same bets.

No printed numbers for concrete data were found in the paper of Waudby-Smith and Ramdas (2023). So
this compares, for *their* stakes, our capital and its inversion with numbers that we computed with
the authors' package, and with a closed form that the tests of another package state. Our own stakes
differ on purpose (theirs use an upper bound of the values and a prior variance of 1/4, ours know
none): `betting` as a whole is compared only with its own formula, written again in 50 digits.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surestep.offpolicy import betting
from surestep.offpolicy.intervals import LARGEST_SHARE, largest_refuted

# Computed with confseq 0.0.11 (the authors' package; gostevehoward/confseq on GitHub) from VALUES:
# lambda_predmix_eb(x, alpha=0.05, fixed_n=20), then betting_mart(x, m, theta=1, trunc_scale=0.75,
# m_trunc=True), one-sided as ours is, of which the maximum is given for each m; and the last lower
# end of betting_cs(..., theta=1, breaks=1000), one step of its grid below the first m kept.
VALUES = [
    0.62, 0.31, 0.88, 0.45, 0.93, 0.07, 0.71, 0.56, 0.84, 0.39,
    0.67, 0.98, 0.22, 0.75, 0.51, 0.90, 0.48, 0.63, 0.81, 0.34,
]  # fmt: skip
CONFSEQ_STAKES = [
    1.0946656610223948, 1.5370637216804974, 1.7871756093739155, 1.7926462799522442,
    1.9768507155573705, 1.9300679649474302, 1.7299098294239077, 1.8198835550947485,
    1.9302763575266493, 1.9502599593457093, 2.0050327902498823, 2.083343371325938,
    2.007561135949992, 1.9558226806512071, 2.0018075939699744, 2.062031554223276,
    2.0480606984982774, 2.095388497900135, 2.15201865844162, 2.173020092028089,
]  # fmt: skip
CONFSEQ_CAPITAL = {0.2: 37610.91902341657, 0.4: 137.18639028138665, 0.5: 5.886054554463567}
CONFSEQ_LOWER, CONFSEQ_GRID = 0.458, 0.001


@pytest.mark.parametrize(("mean", "capital"), CONFSEQ_CAPITAL.items())
def test_the_capital_is_that_of_confseq_for_the_same_stakes(mean, capital):
    # m is refuted at exactly the levels that the largest capital reaches, and so is all below it.
    data, stakes = np.array(VALUES), np.array(CONFSEQ_STAKES)
    level = math.log(capital)
    assert largest_refuted(data, stakes, level - 1e-9) == pytest.approx(mean, abs=1e-8)
    assert largest_refuted(data, stakes, level - 1e-9) >= mean
    assert largest_refuted(data, stakes, level + 1e-9) < mean


def test_the_lower_end_is_that_of_confseq_for_the_same_stakes():
    lower = largest_refuted(np.array(VALUES), np.array(CONFSEQ_STAKES), math.log(20))
    assert CONFSEQ_LOWER <= lower <= CONFSEQ_LOWER + 2 * CONFSEQ_GRID


@pytest.mark.parametrize("value", [0.75, 0.9])
@pytest.mark.parametrize("stake", [0.25, 0.5])
def test_equal_values_and_a_fixed_stake_have_the_closed_form_of_shangrla(value, stake):
    # test_betting_mart of pbstark/SHANGRLA: the p-value of the mean 1/2 is 1 / (1 + λ(x − 1/2))^n.
    number, mean = 20, 0.5
    level = number * math.log1p(stake * (value - mean))
    found = largest_refuted(np.full(number, value), np.full(number, stake), level)
    assert found == pytest.approx(mean, abs=1e-12)


def exact_capitals(values, mean, log_level):
    """K_t(m) of all t with the stakes that `capital` describes, in 50 digits."""
    capital, found = mpmath.mpf(1), []
    for i, value in enumerate(values):
        past = [Fraction(0), *values[:i]]
        centre = sum(past) / len(past)
        variance = sum((x - centre) ** 2 for x in past) / len(past)
        stake = mpmath.mpf(0)
        if variance > 0:
            exact = mpmath.mpf(variance.numerator) / variance.denominator
            stake = mpmath.sqrt(2 * log_level / (len(values) * exact))
        capital *= 1 + min(stake, LARGEST_SHARE / mean) * (
            mpmath.mpf(value.numerator) / value.denominator - mean
        )
        found.append(capital)
    return found


@settings(max_examples=30)
@given(
    values=st.lists(st.integers(0, 64), min_size=2, max_size=12),
    delta=st.sampled_from([0.01, 0.1, 0.5]),
)
def test_the_bound_is_where_the_capital_in_exact_arithmetic_reaches_the_level(values, delta):
    found = betting([value / 64 for value in values], 0.0, delta)
    exact = [Fraction(value, 64) for value in values]
    with mpmath.workdps(50):
        level = -mpmath.log(mpmath.mpf(delta))
        above = exact_capitals(exact, mpmath.mpf(found) * (1 + 1e-6) + 1e-9, level)
        assert mpmath.log(max(above)) < level
        if found > 0:
            below = exact_capitals(exact, mpmath.mpf(found) * (1 - 1e-12), level)
            assert mpmath.log(max(below)) >= level
