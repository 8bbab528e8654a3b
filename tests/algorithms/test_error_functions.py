"""How wrong a pair may be: the formulas, number by number."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.constraints import errors_of as plain_errors
from contract.constraints import returns_of
from support.strategies import logged_problems, problems
from surestep import Counts, DecisionLog, Pairs, Policy, Problem
from surestep.algorithms import SoftSPIBB
from surestep.algorithms.error_functions import errors_of, pair_returns
from surestep.bounds import BOUNDS, BetaBound, ProblemSize, SPIBBBound
from surestep.errors import InvalidParameter


def counted(*visits):
    """A problem of one state whose actions have been tried so often."""
    counts = Counts.from_dense([[[n] for n in visits]], rewards=[[0.0] * len(visits)])
    return Problem(
        counts=counts, behavior=Policy.uniform(counts), discount=0.9, value_bounds=(-1.0, 4.0)
    )


def test_hoeffding():
    expected = [math.sqrt(2 * math.log(2 * 1 * 3 / 0.5) / n) for n in (1, 8)]
    assert errors_of("hoeffding", counted(1, 8, 0), 0.5).tolist() == pytest.approx(
        [*expected, math.inf]
    )


@pytest.mark.parametrize("name", ["spi", "spi-no-gamma", "spibb"])
@pytest.mark.parametrize("as_name", [True, False])
def test_bounds_about_rows(name, as_name):
    found = errors_of(name if as_name else BOUNDS[name], counted(3, 100, 0), 0.1)
    radius = BOUNDS[name].radius(np.array([3, 100]), ProblemSize(1, 3, 0.1))
    assert found.tolist() == [*radius.tolist(), math.inf]
    assert found[0] == pytest.approx(math.sqrt(2 / 3 * math.log(2 * 3 * 2 / 0.1)))


def test_bernstein():
    """Returns at γ = ½: 2 after action 0 at the start, 2 and 0 after action 1."""
    log = DecisionLog(
        Pairs.full(2, 2),
        state=[0, 1, 1],
        action=[0, 1, 1],
        reward=[1.0, 2.0, 0.0],
        next_state=[1, 0, 0],
        terminated=[False] * 3,
        truncated=[False, True, True],
        episode_offsets=[0, 2, 3],
    )
    counts = log.counts()
    problem = Problem(
        counts=counts,
        behavior=Policy.uniform(counts),
        discount=0.5,
        value_bounds=(-1.0, 4.0),
        log=log,
    )
    returns = pair_returns(problem)
    assert returns.times.tolist() == [1, 0, 0, 2]
    assert returns.mean.tolist() == [2.0, 0.0, 0.0, 1.0]
    assert returns.variance.tolist() == [0.0, 0.0, 0.0, 2.0]
    log_term = math.log(4 * 2 * 2 / 0.2)
    variance = 2.0 / (2 * 4.0) ** 2
    expected = 2 * (math.sqrt(2 * variance * log_term / 2) + 7 * log_term / (3 * (2 - 1)))
    assert errors_of("bernstein", problem, 0.2).tolist() == pytest.approx(
        [math.inf, math.inf, math.inf, expected]
    )


@settings(max_examples=30)
@given(data=st.data())
def test_all_are_what_plain_loops_say(data):
    for error, kind in (
        ("hoeffding", problems),
        ("spibb", problems),
        ("bernstein", logged_problems),
    ):
        problem = data.draw(kind())
        algorithm = SoftSPIBB(epsilon=1.0, delta=0.3, error=error)
        found = errors_of(error, problem, 0.3)
        assert found.tolist() == pytest.approx(plain_errors(algorithm, problem).tolist(), rel=1e-9)
    means = [np.mean(found) if found else 0.0 for found in returns_of(problem)]
    assert pair_returns(problem).mean.tolist() == pytest.approx(means, abs=1e-12)


@pytest.mark.parametrize(
    "error", ["hoefding", None, 3, SPIBBBound, ["hoeffding"], "2s", BetaBound()]
)
def test_what_is_no_error_function_about_rows_is_refused(error):
    with pytest.raises(
        InvalidParameter,
        match=r"error is .*expected one of hoeffding, bernstein, spi, spi-no-gamma, spibb: it weig",
    ):
        SoftSPIBB(epsilon=1.0, delta=0.1, error=error)


def test_a_bound_needs_a_delta_below_1():
    problem = Problem(
        counts=(counts := Counts.from_dense([[[1]]], rewards=[[0.0]])),
        behavior=Policy.uniform(counts),
        discount=0.5,
        value_bounds=(0, 1),
    )
    with pytest.raises(InvalidParameter, match=r"delta is 1\.0, expected "):
        SoftSPIBB(epsilon=1.0, error="spibb").improve(problem)


def test_bernstein_needs_values_that_differ_from_0():
    log = DecisionLog(Pairs.full(1, 1), [0], [0], [0.0], [0], [False], [True], [0, 1])
    counts = log.counts()
    problem = Problem(
        counts=counts, behavior=Policy.uniform(counts), discount=0.5, value_bounds=(0, 0), log=log
    )
    with pytest.raises(InvalidParameter, match=r"value_bounds is \(0, 0\), expected a larger one"):
        SoftSPIBB(epsilon=1.0, error="bernstein").improve(problem)


def test_returns_need_one_discount():
    log = DecisionLog(Pairs.full(1, 1), [0], [0], [0.0], [0], [False], [True], [0, 1])
    counts = log.counts()
    problem = Problem(
        counts=counts,
        behavior=Policy.uniform(counts),
        discount=np.array([0.5]),
        value_bounds=(0, 1),
        log=log,
    )
    with pytest.raises(InvalidParameter, match="expected one number as discount"):
        SoftSPIBB(epsilon=1.0, error="bernstein").improve(problem)
