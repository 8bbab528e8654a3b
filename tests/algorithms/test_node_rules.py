"""Rules from the estimated model of nodes: its law, its rollouts, and what is found."""

import numpy as np
import pytest

from surestep.algorithms.node_rules import find_rules, returns_of
from surestep.certificates import NodeStitched
from surestep.certificates.node_law import estimated_law, stepped
from surestep.environments.sysadmin import GROUP, SysAdmin

CERTIFIER = NodeStitched()


def world_with_log(machines, episodes):
    world = SysAdmin(machines)
    return world, world.problem(world.sample(world.first_failed(0.3), episodes, rng=1))


def rules_for(problem):
    return find_rules(CERTIFIER.parts(problem)[0], CERTIFIER, {GROUP: ["reboot_@"]})


@pytest.mark.one_quick
@pytest.mark.parametrize("most", [1, 2, 3])
def test_lists_that_are_all_too_long_are_cut(most):
    training = CERTIFIER.parts(world_with_log(5, 60)[1])[0]
    few = find_rules(training, CERTIFIER, {GROUP: ["reboot_@"]}, most=most)
    assert len(few.rules) == most - 1
    assert few.default == "nothing"


def test_the_law_is_that_of_frequencies():
    _, problem = world_with_log(5, 400)
    structure = problem.structure
    law = estimated_law(problem.log)
    free = np.flatnonzero(structure.known < 0)
    assert (law[:, -1] == 1).all()
    # Chances of failing with 2, 1 and 0 failed neighbours; the error of each is below 0.03.
    np.testing.assert_allclose(law[free, 0], [0.65, 0.35, 0.05], atol=0.03)


def test_steps_and_returns_in_the_model_are_those_of_the_world():
    world, problem = world_with_log(4, 50)
    structure = problem.structure
    law = estimated_law(problem.log)
    law[structure.known < 0, 0] = [0.65, 0.35, 0.05]  # the true law
    rng = np.random.default_rng(3)
    state = np.ones((3000, 4), np.int64)
    action = np.full(3000, 4)
    values = stepped(structure, law, state, action, rng.random((3000, 4)))
    assert values[:, 4:8].mean() == pytest.approx(0.95, abs=0.01)
    policy = world.first_failed()
    found = returns_of(problem, law, policy, (state, action, np.arange(3000)), rng)
    log = world.sample(policy, 3000, rng=4, steps=59)  # whose first action is "nothing", too
    expected = log.returns(0.95)
    error = (found.var() / 3000 + expected.var() / 3000) ** 0.5
    assert abs(found.mean() - expected.mean()) < 5 * error
    twice = returns_of(problem, law, policy, (state, action, np.arange(3000) // 2), rng)
    assert (twice[::2] == twice[1::2]).all()


@pytest.mark.thorough
def test_rules_are_found_that_gain_nearly_as_much_as_the_best_ones_known():
    world, problem = world_with_log(8, 300)
    found = rules_for(problem)
    assert len(found.rules) <= 8
    best, ours, before = (
        world.sample(policy, 400, rng=5, steps=120).returns(0.95).mean()
        for policy in (world.fewest_failed_neighbours(), found.policy, problem.behavior)
    )
    assert ours - before > 0.8 * (best - before)
    claim = CERTIFIER.certify(problem, found.policy)
    assert 0 < claim.lower < ours - before
    assert rules_for(problem).rules == found.rules
