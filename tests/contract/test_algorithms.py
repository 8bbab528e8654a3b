"""The contract of algorithms: each is held to the promises that it declares, on any problem."""

import copy
import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import surestep.algorithms
from contract.constraints import CONSTRAINTS, errors_of
from contract.renumbering import renumbered, value_in_own_model
from contract.settings import SETTINGS, needs_log, promises
from contract.worlds import with_log, with_more_data, with_one_step, without_data
from support.oracles import best_bounded_row, best_row, class_optimum, exact_value, largest_gap
from support.strategies import logged_problems, problems
from surestep import evaluate_with_bound, optimal, performance
from surestep.algorithms import ALGORITHMS, SPIBB, Promise, registry
from surestep.algorithms.registry import algorithm_of, settings_of
from surestep.errors import InvalidParameter
from surestep.transforms import two_successor

CASES = [algorithm for name in ALGORITHMS for algorithm in SETTINGS.get(name, ())]
FEW = settings(max_examples=settings.default.max_examples // 5)  # of each of many cases
BRUTE_FORCE = {"spibb", "spibb-2s", "spibb-beta"}


def every(algorithms):
    """A test for each of the algorithms."""
    return pytest.mark.parametrize("algorithm", algorithms, ids=repr)


def having(promise):
    """A test for each of the algorithms that declare the promise."""
    return every([algorithm for algorithm in CASES if promise in algorithm.promises])


def problems_for(algorithm, **kind):
    """Problems that the algorithm can read."""
    return logged_problems(**kind) if needs_log(algorithm) else problems(**kind)


def slack_of(problem, plan):
    """How far two values may be apart that are equal but for evaluation and ties."""
    behavior = evaluate_with_bound(problem.estimate(), problem.behavior)
    return 4 * (plan.error_bound + behavior.error_bound) / (1 - problem.discount)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_registered_algorithm_has_settings_to_be_tested_with(name):
    assert SETTINGS.get(name), f"give {name} some settings in tests/contract/settings.py"
    assert all(isinstance(algorithm, ALGORITHMS[name]) for algorithm in SETTINGS[name])
    for algorithm in SETTINGS[name]:
        assert algorithm.name == name
        assert registry.needs_log(algorithm) == needs_log(algorithm)
        assert algorithm.source
        assert (name in CONSTRAINTS) == bool(algorithm.constraint)


@every(CASES)
def test_the_promises_are_those_of_the_contract(algorithm):
    assert algorithm.promises == promises(algorithm)


@every(CASES)
def test_settings_are_frozen_and_survive_repr_and_json(algorithm):
    for setting in (*algorithm.__slots__, "anything"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(algorithm, setting, 1)
    again = eval(repr(algorithm), vars(surestep.algorithms))  # noqa: S307
    assert (again, hash(again)) == (algorithm, hash(algorithm))
    loaded = algorithm_of(json.loads(json.dumps(settings_of(algorithm))))
    assert loaded == algorithm
    assert type(loaded) is type(algorithm)


@every([algorithm for algorithm in CASES if needs_log(algorithm)])
@settings(max_examples=3)
@given(problem=problems())
def test_who_needs_a_log_says_so(algorithm, problem):
    assume(problem.counts.visits.any())  # without any data HCPI has nothing to ask a log for
    with pytest.raises(InvalidParameter, match=r"but the problem has no log.*Problem\(log=…\)"):
        algorithm.improve(problem)


@every(CASES)
@pytest.mark.parametrize("thing", [None, "log", 3])
def test_what_is_no_problem_is_refused(algorithm, thing):
    with pytest.raises(InvalidParameter, match="problem is of type"):
        algorithm.improve(thing)


@every(CASES)
@FEW
@given(data=st.data())
def test_an_improvement_is_the_same_every_time_and_says_what_its_policy_is_worth(algorithm, data):
    problem = data.draw(problems_for(algorithm))
    before = copy.deepcopy(problem)
    first, second = algorithm.improve(problem), algorithm.improve(problem)
    assert problem == before
    assert first.policy == second.policy  # bit for bit
    assert np.array_equal(first.plan.value, second.plan.value)
    assert first.plan.policy is first.policy
    assert first.policy.pairs == problem.counts.pairs
    truth = exact_value(problem.estimate(), first.policy.probability)
    assert largest_gap(first.plan.value, truth) <= Fraction(first.plan.error_bound)
    assert first.plan.error_bound <= 1e-6 * max(1.0, *map(abs, problem.value_bounds))


@having(Promise.RENUMBERING)
@FEW
@given(data=st.data())
def test_values_do_not_depend_on_the_numbers_of_states_and_actions(algorithm, data):
    problem = data.draw(problems_for(algorithm, generic=True))
    pairs = problem.counts.pairs
    states = np.array(data.draw(st.permutations(range(pairs.num_states))))
    actions = np.array(data.draw(st.permutations(range(pairs.num_actions))))
    other = renumbered(problem, states, actions)
    here = value_in_own_model(algorithm, problem, algorithm.improve(problem).policy)
    there = value_in_own_model(algorithm, other, algorithm.improve(other).policy)
    gap = np.abs(there.value[states] - here.value).max()
    assert gap <= slack_of(problem, here) + slack_of(other, there)


@having(Promise.KEEPS_BEHAVIOR)
@FEW
@given(data=st.data())
def test_without_data_the_behavior_policy_is_kept_bit_for_bit(algorithm, data):
    problem = data.draw(problems_for(algorithm))
    problem = with_one_step(problem) if needs_log(algorithm) else without_data(problem)
    found = algorithm.improve(problem).policy
    assert np.array_equal(found.probability, problem.behavior.probability)


@having(Promise.NEVER_WORSE)
@FEW
@given(data=st.data())
def test_in_the_estimated_mdp_the_policy_is_never_worse(algorithm, data):
    problem = data.draw(problems_for(algorithm))
    estimate, found = problem.estimate(), algorithm.improve(problem)
    after, before = (
        np.array([float(value) for value in exact_value(estimate, policy.probability)])
        for policy in (found.policy, problem.behavior)
    )
    slack = slack_of(problem, found.plan)
    assert estimate.initial @ after >= estimate.initial @ before - slack
    if algorithm.name not in ("robust-mdp", "provable", "constrained"):  # which look at starts
        assert (after >= before - slack).all()


@every([algorithm for algorithm in CASES if algorithm.constraint])
@FEW
@given(data=st.data())
def test_the_policy_obeys_the_constraint(algorithm, data):
    problem = data.draw(problems_for(algorithm))
    CONSTRAINTS[algorithm.name](algorithm, problem, algorithm.improve(problem))


@every([algorithm for algorithm in CASES if algorithm.name in BRUTE_FORCE])
@FEW
@given(data=st.data())
def test_no_vertex_of_its_class_is_better(algorithm, data):
    problem = data.draw(problems(max_states=3))
    found = algorithm.improve(problem)
    trusted = problem.counts.visits > found.n_wedge
    offsets = problem.counts.pairs.offsets
    choices = []
    for first, last in pairwise(offsets.tolist()):
        behavior, free = problem.behavior.probability[first:last], trusted[first:last]
        kept = np.where(free, 0.0, behavior)
        choices.append(
            [kept + behavior[free].sum() * np.eye(last - first)[k] for k in np.flatnonzero(free)]
            or [kept]
        )
    estimate = problem.estimate()
    values = [exact_value(estimate, np.concatenate(rows)) for rows in product(*choices)]
    best = [max(column) for column in zip(*values, strict=True)]
    assert largest_gap(found.plan.value, best) <= Fraction(found.plan.error_bound)


def best_of_class(algorithm, problem, found):
    """The best row of the algorithm's class for q, as a linear program: run, q → row."""
    behavior = problem.behavior.probability
    if algorithm.name == "lower-spibb":
        most = np.where(problem.counts.visits > found.n_wedge, 1.0, behavior)
        return lambda run, q: best_bounded_row(q, np.zeros(q.size), most[run])
    error = errors_of(algorithm, problem)
    leave = np.zeros(error.size) if algorithm.name == "lower-soft-spibb" else error
    return lambda run, q: best_row(q, behavior[run], leave[run], error[run], algorithm.epsilon)


@having(Promise.OPTIMAL_IN_CLASS)
@FEW
@given(data=st.data())
def test_no_linear_program_finds_a_better_policy_of_its_class(algorithm, data):
    if algorithm.name in BRUTE_FORCE:
        return  # see the test above
    problem = data.draw(problems_for(algorithm, max_states=3))
    found = algorithm.improve(problem)
    best = class_optimum(
        problem.estimate(), problem.behavior.probability, best_of_class(algorithm, problem, found)
    )
    scale = max(1.0, np.abs(best).max())
    assert found.plan.value == pytest.approx(best, abs=1e-8 * scale / (1 - problem.discount))


@having(Promise.REACHES_OPTIMUM)
@FEW
@given(data=st.data())
def test_the_optimum_is_reached_as_every_pair_is_visited_more_often(algorithm, data):
    problem = data.draw(problems(max_states=3, max_actions=2, all_visited=True))
    truth = problem.estimate()  # of any multiple of the counts
    if needs_log(algorithm):
        problem = with_log(with_more_data(problem, 3_000))
    else:
        problem = with_more_data(problem, 10**13)
    scale = max(1.0, np.abs(truth.reward).max(initial=0.0)) / (1 - problem.discount)
    best, found = optimal(truth), algorithm.improve(problem).policy
    assert performance(truth, found) >= truth.initial @ best.value - 1e-3 * scale


@every([algorithm for algorithm in CASES if isinstance(algorithm, SPIBB)])
@FEW
@given(problem=problems())
def test_spibb_on_two_successor_counts_agrees_on_main_states(algorithm, problem):
    split = two_successor(problem.counts)
    behavior, discounts = split.lift(problem.behavior), split.discounts(problem.discount)
    again = replace(problem, counts=split.counts, behavior=behavior, discount=discounts)
    plain, found = algorithm.improve(problem).plan, algorithm.improve(again).plan
    gap = np.abs(found.value[: problem.num_states] - plain.value).max()
    assert gap <= plain.error_bound + found.error_bound
    lowered = evaluate_with_bound(problem.estimate(), split.lower(found.policy))
    assert np.abs(lowered.value - plain.value).max() <= lowered.error_bound + 2 * (
        plain.error_bound + found.error_bound
    )
