"""The Soft-SPIBB family: what a budget buys, and how its members compare.

How wrong a pair may be: the formulas, number by number.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.constraints import errors_of as plain_errors
from support.problems import uniform_problem
from support.strategies import logged_problems, problems
from surestep import Counts, Policy, evaluate
from surestep.algorithms import BasicRL, SoftSPIBB, make_algorithm
from surestep.algorithms.soft import errors_of
from surestep.bounds import BOUNDS, ProblemSize
from surestep.bounds.loss import BetaBound, SPIBBBound
from surestep.errors import InvalidParameter
from surestep.planning.backups import Backup

BUDGETED = ("exact", "approx", "one-step-exact", "one-step-approx")
EPSILONS = st.sampled_from([0.0, 0.05, 0.5, 5.0])


def soft(form, **settings):
    """The form of Soft-SPIBB of that name."""
    return make_algorithm(f"{form}-soft-spibb", **settings)


def bandit(visits, rewards, behavior):
    """One state whose arms lead back to it."""
    counts = Counts.from_dense([[[n] for n in visits]], rewards=[rewards])
    problem = uniform_problem(counts, 0.5, (-10.0, 10.0))
    return replace(problem, behavior=Policy.from_dense(counts, [behavior]))


@pytest.mark.parametrize("form", BUDGETED)
def test_a_move_between_two_arms_costs_both_errors(form):
    # e = √(2 ln(2·2/δ) / N) is 1 and ½, so that ε = 0.3 moves 0.3 / 1.5.
    delta = 4 * math.exp(-2)
    problem = bandit([4, 16], [0.0, 1.0], [0.9, 0.1])
    row = soft(form, epsilon=0.3, delta=delta).improve(problem).policy.probability
    if form.endswith("exact"):
        assert row == pytest.approx([0.7, 0.3])
    else:  # half of the budget for each arm: 0.15 / 1
        assert row == pytest.approx([0.75, 0.25])


def test_the_lower_form_charges_increases_only():
    delta = 4 * math.exp(-2)
    problem = bandit([4, 16], [0.0, 1.0], [0.9, 0.1])
    row = soft("lower", epsilon=0.3, delta=delta).improve(problem).policy.probability
    assert row == pytest.approx([0.3, 0.7])  # 0.3 / ½
    # From an arm that was never pulled too, where the other form keeps π_b.
    problem = bandit([0, 16], [0.0, 1.0], [0.9, 0.1])
    row = soft("lower", epsilon=0.3, delta=delta).improve(problem).policy.probability
    assert row == pytest.approx([0.3, 0.7])
    row = soft("exact", epsilon=0.3, delta=delta).improve(problem).policy.probability
    assert row.tolist() == [0.9, 0.1]


@settings(max_examples=25)
@given(problem=problems(), epsilon=EPSILONS)
def test_the_approximate_form_is_no_better_than_the_exact_one_and_that_than_the_lower(
    problem, epsilon
):
    plans = [
        soft(form, epsilon=epsilon).improve(problem).plan for form in ("approx", "exact", "lower")
    ]
    slack = sum(plan.error_bound for plan in plans)
    assert (plans[0].value <= plans[1].value + slack).all()
    assert (plans[1].value <= plans[2].value + slack).all()


@settings(max_examples=25)
@given(problem=problems(all_visited=True))
def test_a_budget_without_limit_makes_it_basic_rl(problem):
    best = BasicRL().improve(problem).plan
    for form in ("exact", "approx", "lower"):
        plan = soft(form, epsilon=1e6).improve(problem).plan
        assert np.abs(plan.value - best.value).max() <= plan.error_bound + best.error_bound


@settings(max_examples=25)
@given(problem=logged_problems())
def test_no_budget_keeps_the_behavior_policy(problem):
    for form in (*BUDGETED, "lower", "advantage"):
        assert soft(form, epsilon=0).improve(problem).policy == problem.behavior


@settings(max_examples=30)
@given(problem=logged_problems(), epsilon=EPSILONS)
def test_the_advantage_form_gains_in_every_state_under_q_of_the_behavior_policy(problem, epsilon):
    estimate, offsets = problem.estimate(), problem.counts.pairs.offsets
    q = Backup.of(estimate).q(evaluate(estimate, problem.behavior))
    found = soft("advantage", epsilon=epsilon).improve(problem)
    change = found.policy.probability - problem.behavior.probability
    gains = np.add.reduceat(change * q, offsets[:-1])
    assert gains.min() >= -1e-9 * max(1.0, np.abs(q).max())


@settings(max_examples=25)
@given(problem=problems(), epsilon=EPSILONS)
def test_without_a_future_one_step_is_all_there_is(problem, epsilon):
    problem = replace(problem, discount=0.0)
    for step in ("exact", "approx"):
        found = SoftSPIBB(epsilon=epsilon, step=step, iterate=False).improve(problem)
        assert found.policy == SoftSPIBB(epsilon=epsilon, step=step).improve(problem).policy
        assert found.plan.iterations == 1


@pytest.mark.parametrize("step", ["lower", "advantage"])
def test_other_steps_are_for_iteration(step):
    with pytest.raises(InvalidParameter, match=f"iterate is False, but {step} steps are for"):
        SoftSPIBB(epsilon=1.0, step=step, iterate=False)


def counted(*visits):
    """A problem of one state whose actions have been tried so often."""
    counts = Counts.from_dense([[[n] for n in visits]], rewards=[[0.0] * len(visits)])
    return uniform_problem(counts, 0.9, (-1.0, 4.0))


@pytest.mark.parametrize("name", ["spi", "spi-no-gamma", "spibb"])
@pytest.mark.parametrize("as_name", [True, False])
def test_bounds_about_rows(name, as_name):
    found = errors_of(name if as_name else BOUNDS[name], counted(3, 100, 0), 0.1)
    radius = BOUNDS[name].radius(np.array([3, 100]), ProblemSize(1, 3, 0.1))
    assert found.tolist() == [*radius.tolist(), math.inf]
    assert found[0] == pytest.approx(math.sqrt(2 / 3 * math.log(2 * 3 * 2 / 0.1)))


@settings(max_examples=30)
@given(problem=problems())
def test_all_are_what_plain_loops_say(problem):
    for error in ("hoeffding", "spibb"):
        algorithm = SoftSPIBB(epsilon=1.0, delta=0.3, error=error)
        found = errors_of(error, problem, 0.3)
        assert found.tolist() == pytest.approx(plain_errors(algorithm, problem).tolist(), rel=1e-9)


@pytest.mark.parametrize(
    "error", ["hoefding", None, 3, SPIBBBound, ["hoeffding"], "2s", BetaBound()]
)
def test_what_is_no_error_function_about_rows_is_refused(error):
    with pytest.raises(
        InvalidParameter,
        match=r"error is .*expected one of hoeffding, spi, spi-no-gamma, spibb: it weig",
    ):
        SoftSPIBB(epsilon=1.0, delta=0.1, error=error)


def test_a_bound_without_a_claim_is_refused():
    with pytest.raises(InvalidParameter, match=r"delta is 1\.0, expected "):
        SoftSPIBB(epsilon=1.0, error="spibb").improve(counted(1))
