"""ICU-Sepsis: the published values, both ways to record an end, and life without its file."""

import sys
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surestep import Policy, optimal, performance
from surestep.environments import icu_sepsis as module
from surestep.environments import make
from surestep.errors import MissingExtra

try:
    distribution("icu-sepsis")
    INSTALLED = True
except PackageNotFoundError:
    INSTALLED = False
needs_data = pytest.mark.skipif(
    not INSTALLED, reason="needs the data of icu-sepsis: pip install '.[icu]'"
)
# uniform, expert, optimal
TOTAL = (0.780071, 0.781845, 0.875142)  # at γ = 1
DISCOUNTED = (0.719095, 0.722158, 0.801334)  # at γ = 0.99


@pytest.fixture(scope="module")
def benchmark():
    return make("icu-sepsis")


@needs_data
def test_the_model_is_the_published_one(benchmark):
    mdp = benchmark.mdp
    assert (benchmark.num_states, benchmark.num_actions) == (716, 25)
    assert mdp.pairs.state_labels[713:] == ("death", "survival", "after")
    assert mdp.initial[:713].sum() == pytest.approx(1, abs=1e-12)
    uniform, experts = (
        performance(mdp, policy) for policy in (Policy.uniform(mdp), benchmark.behavior)
    )
    values = (uniform, experts, benchmark.optimal_performance())
    assert_allclose(values, DISCOUNTED, rtol=0, atol=5e-7)
    assert "icu_sepsis" not in sys.modules
    assert "gym" not in sys.modules


@needs_data
def test_without_a_discount_the_values_are_the_published_ones(benchmark):
    """By dense solves on the tables, and policy iteration from the experts."""
    rows, start, experts = module.read_tables()
    live, paid = rows[:713, :, :713], rows[:713, :, 714]

    def value_of(policy):
        chain = np.einsum("sa,sat->st", policy, live)
        return np.linalg.solve(np.eye(713) - chain, (policy * paid).sum(axis=1))

    assert start[:713] @ value_of(np.full((713, 25), 1 / 25)) == pytest.approx(TOTAL[0], abs=5e-7)
    value = value_of(experts[:713])
    assert start[:713] @ value == pytest.approx(TOTAL[1], abs=5e-7)
    q = paid + live @ value
    while (q.max(axis=1) > value + 1e-12).any():
        value = value_of(np.eye(25)[q.argmax(axis=1)])
        q = paid + live @ value
    assert start[:713] @ value == pytest.approx(TOTAL[2], abs=5e-7)


@needs_data
@pytest.mark.slow
def test_planning_without_a_discount_proves_the_published_values():
    world = make("icu-sepsis", discount=1.0)
    mdp, plan = world.mdp, optimal(world.mdp)
    uniform, experts = (performance(mdp, each) for each in (Policy.uniform(mdp), world.behavior))
    assert_allclose((uniform, experts, mdp.initial @ plan.value), TOTAL, rtol=0, atol=5e-7)
    assert plan.error_bound < 1e-8


@needs_data
@pytest.mark.slow
def test_both_ways_to_record_an_end_are_worth_the_same(benchmark):
    flagged = make("icu-sepsis", ends="flag")
    assert flagged.num_states == 714
    plan = optimal(flagged.mdp)
    assert performance(flagged.mdp, plan.policy) == pytest.approx(DISCOUNTED[2], abs=5e-7)
    rng = np.random.default_rng(0)
    policy = Policy.softmax(flagged.mdp, rng.normal(scale=3, size=flagged.mdp.num_pairs))
    worth = flagged.truth.worth(policy.probability[np.newaxis])[0]
    assert worth == pytest.approx(performance(flagged.mdp, policy), abs=1e-9)
    logs = [each.sample(300, np.random.default_rng(1)) for each in (benchmark, flagged)]
    assert np.array_equal(logs[0].reward, logs[1].reward)
    assert np.array_equal(logs[0].terminated, logs[1].terminated)
    assert set(logs[0].next_state[logs[0].terminated]) == {713, 714}
    assert set(logs[1].next_state[logs[1].terminated]) == {713}


@needs_data
@pytest.mark.slow
def test_without_effects_all_policies_are_worth_what_the_experts_are():
    world = make("icu-sepsis", effect=0)
    assert world.performance_of_behavior() == pytest.approx(DISCOUNTED[1], abs=5e-7)
    assert world.optimal_performance() == pytest.approx(DISCOUNTED[1], abs=5e-7)


@pytest.mark.parametrize("kept", ["nothing", "no file"])
def test_what_is_missing_is_said_with_the_command_that_installs_it(kept, monkeypatch, tmp_path):
    class Empty:
        def locate_file(self, path):
            return tmp_path / path

    def distribution(name):
        if kept == "nothing":
            raise PackageNotFoundError(name)
        return Empty()

    monkeypatch.setattr(module, "distribution", distribution)
    with pytest.raises(MissingExtra) as refusal:
        make("icu-sepsis")
    assert str(refusal.value).startswith("the model of icu-sepsis is in the package icu-sepsis, of")
    assert str(refusal.value).endswith("with: pip install '.[icu]'")
