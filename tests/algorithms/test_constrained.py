"""Policies within limits: optima by brute force, limits kept, and limits nobody can keep."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.strategies import problems
from surestep import Counts, Policy, Problem
from surestep.algorithms import Constrained
from surestep.algorithms.contract import Limited, Limits
from surestep.model.problem import Reach, Signal, reaching

FREE = {"n_wedge": 0, "rounds": 1e-9, "price": 0}  # nothing but the limits of signals


def with_signals(problem, *signals):
    return replace(problem, signals=signals)


def signal_of(problem, rewards, name="second", **limit):
    """A further signal with these rewards of pairs [S, A]."""
    pairs = problem.counts.pairs
    own = replace(problem.counts.rewards, values=rewards[pairs.state, pairs.action])
    own = replace(own, per="pair", known=True, least=None, greatest=None)
    counts = replace(problem.counts, rewards=own)
    return Signal(name=name, problem=replace(problem, counts=counts), **limit)


def chance_of(problem, states, within=None, name="unsafe", **limit):
    """The chance to reach states."""
    unsafe = np.isin(np.arange(problem.num_states), states)
    part = reaching(problem, Reach(unsafe, within, limit.get("at_most") is not None))
    return Signal(name=name, problem=part, **limit)


def small(seed, gamma=0.9):
    """Two states in which something is decided, and an end; all pairs seen often."""
    rng = np.random.default_rng(seed)
    times = rng.integers(0, 5, (3, 2, 3)) * 100
    times[:, :, 2] += 100
    times[2] = 0
    rewards = rng.integers(-3, 4, (3, 2)).astype(float)
    rewards[2] = 0
    counts = Counts.from_dense(times, rewards=rewards, starts=[3, 1, 0], terminal=[False] * 2 + [1])
    share = rng.uniform(0.1, 0.9, 3)
    behavior = Policy.from_dense(counts, np.stack([share, 1 - share], axis=1))
    problem = Problem(counts=counts, behavior=behavior, discount=gamma, value_bounds=(-40, 40))
    return problem, np.where(counts.terminal[:, None], 0.0, rng.integers(-3, 4, (3, 2)))


def rho_of(problem, policy):
    """ρ of policies […, S, A] in M̂ by equations, or minus the chance to reach states."""
    model, reach = problem.estimate(), problem.reach
    shape = problem.num_states, problem.counts.pairs.num_actions
    moves, earned = np.zeros((*shape, shape[0])), np.zeros(shape)
    owner = np.repeat(np.arange(model.num_pairs), np.diff(model.offsets))
    state, action = model.pairs.state, model.pairs.action
    np.add.at(moves, (state[owner], action[owner], model.successor), model.probability)
    unseen = problem.unseen_pairs()
    chance = np.where(unseen, -1.0, 0.0)
    earned[state, action] = model.expected_reward if reach is None else chance
    chain = np.einsum("...sa,sat->...st", policy, moves)
    gain = (policy * earned).sum(axis=-1)
    if reach is None:
        value = np.linalg.solve(np.eye(shape[0]) - problem.discount * chain, gain[..., None])[
            ..., 0
        ]
        return value @ model.initial
    value = -reach.states.astype(float) * np.ones_like(gain)
    for _ in range(reach.within or 3_000):
        value = np.where(reach.states, -1.0, gain + (chain @ value[..., None])[..., 0])
    return value @ model.initial


def least_of(signal):
    before = rho_of(signal.problem, signal.problem.behavior.dense())
    return before - signal.margin if signal.at_most is None else -signal.at_most


def grid(problem, steps=41):
    """All policies of two states by a grid, and π_b."""
    p, q = (x.ravel() for x in np.meshgrid(*[np.linspace(0, 1, steps)] * 2))
    half = np.full(p.size, 0.5)
    each = np.stack([p, 1 - p, q, 1 - q, half, half], axis=1).reshape(-1, 3, 2)
    return np.concatenate([each, problem.behavior.dense()[None]])


def check_best(problem, slack=1e-7):
    """No policy of the grid within the limits is better, and π_I is within them."""
    found = Constrained(**FREE).improve(problem).policy.dense()
    others = grid(problem)
    within = np.ones(len(others), bool)
    for signal in problem.signals:
        assert rho_of(signal.problem, found) >= least_of(signal) - 1e-8
        within &= rho_of(signal.problem, others) >= least_of(signal)
    assert within.any()
    assert rho_of(problem, others)[within].max() <= rho_of(problem, found) + slack
    return found


@pytest.mark.one_quick
@pytest.mark.parametrize("margin", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(6))
def test_no_policy_within_the_limits_is_better(seed, margin):
    problem, second = small(seed)
    third = np.roll(second, 1, axis=1)
    signals = signal_of(problem, second, margin=margin), signal_of(problem, third, "third")
    check_best(with_signals(problem, signals[0]))
    check_best(with_signals(problem, *signals))


def test_opposed_signals_leave_what_their_margin_allows():
    problem, _ = small(1)
    rewards = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    problem = signal_of(problem, rewards).problem
    for margin in (0.0, 0.25):
        asked = with_signals(problem, signal_of(problem, -rewards, margin=margin))
        found = check_best(asked)
        before = rho_of(problem, problem.behavior.dense())
        assert rho_of(problem, found) == pytest.approx(before + margin, abs=1e-7)
    assert Constrained(**FREE).improve(with_signals(problem)).kept_by is None
    free = Constrained(n_wedge=10**6).improve(asked)
    assert free.policy == problem.behavior  # nothing was seen that often
    assert free.kept_by == ("",) * 6


@pytest.mark.thorough
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))]
)
def test_chances_without_discount_are_bounded_by_the_program_itself(seed):
    problem, _ = small(seed, gamma=1.0)
    for limit in ({"margin": 0.05}, {"margin": 0.0}):
        check_best(with_signals(problem, chance_of(problem, [1], **limit)))


def ward(gamma=0.9):
    """A bold and a careful action; the bold one is worth more and leads to danger (state 1) more.

    In danger, and in state 2 after it, one may give up (0) or go on (1), which is better.
    """
    times, rewards = np.zeros((4, 2, 4), int), np.zeros((4, 2))
    times[0, :, 1], times[0, :, 3] = (300, 100), (700, 900)
    times[1, :, 2], times[2, :, 3] = 1_000, 1_000
    rewards[0], rewards[1, 1], rewards[2, 1] = (1.0, 0.5), 0.1, 0.1
    counts = Counts.from_dense(times, rewards=rewards, starts=[9, 0, 0, 0], terminal=[0, 0, 0, 1])
    behavior = Policy.from_dense(counts, np.full((4, 2), 0.5))
    return Problem(counts=counts, behavior=behavior, discount=gamma, value_bounds=(-5.0, 5.0))


@pytest.mark.one_quick
@pytest.mark.parametrize("gamma", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("within", [None, 1, 7])
def test_a_chance_may_be_as_large_as_allowed(gamma, within):
    problem = ward(gamma)
    # 0.1 + 0.2 p may be 0.2 of before and the margin, or what somebody allows.
    for limit, bold in (
        ({"margin": 0.0}, 0.5),
        ({"margin": 0.05}, 0.75),
        ({"at_most": 0.15}, 0.25),
    ):
        asked = with_signals(problem, chance_of(problem, [1], within, **limit))
        if limit.get("at_most"):  # less than before: bold actions are worth more, so it has to pay
            asked = with_signals(
                signal_of(problem, np.array([[0, 1], [0, 0], [0, 0], [0, 0]])).problem,
                *asked.signals,
            )
            bold = 0.0
        made = Constrained(**FREE).improve(asked)
        assert made.policy.dense()[0, 0] == pytest.approx(bold, abs=1e-6)
        assert made.unmet == ()
        if "margin" in limit:
            assert made.kept_by == ("unsafe", *[""] * 7)
            # What is done in danger and after it does not change the chance.
            np.testing.assert_allclose(made.policy.dense()[1:3, 1], 1.0, atol=1e-6)


def test_a_chance_that_nobody_can_keep_changes_nothing():
    problem = ward()
    asked = with_signals(problem, chance_of(problem, [1], at_most=0.05))
    made = Constrained(**FREE).improve(asked)
    assert made.policy == problem.behavior
    assert made.unmet == ("unsafe",)
    assert made.kept_by[0] == "unsafe"
    # One that costs too much of the first signal is none to take either.
    made = Constrained(**FREE).improve(with_signals(problem, chance_of(problem, [1], at_most=0.15)))
    assert rho_of(problem, made.policy.dense()) >= rho_of(problem, problem.behavior.dense())


def test_chances_of_several_kinds_hold_together():
    problem = ward()
    signals = (
        chance_of(problem, [1], margin=0.05),
        chance_of(problem, [2], name="late", margin=0.02),
    )
    found = Constrained(**FREE).improve(with_signals(problem, *signals)).policy.dense()
    assert found[0, 0] == pytest.approx(0.6, abs=1e-6)


def test_limits_that_contradict_each_other_keep_what_was_done():
    problem = ward()
    more = np.array([[1.0, 0.0], [0, 0], [0, 0], [0, 0]])
    asked = with_signals(
        problem, signal_of(problem, more), signal_of(problem, -more, "third"),
        chance_of(problem, [1], at_most=0.15),
    )  # fmt: skip
    made = Constrained(**FREE).improve(asked)
    assert made.policy == problem.behavior
    assert made.unmet == ("unsafe",)


def test_closed_pairs_and_few_visits_keep_their_share():
    problem = ward()
    asked = with_signals(problem, signal_of(problem, np.ones((4, 2)), margin=9.0))
    allowed = np.array([False, True, True, True, True, False, True, True])
    found = Limited(algorithm=Constrained(**FREE), limits=Limits(allowed=allowed)).improve(asked)
    assert found.policy.probability.tolist() == [0.5, 0.5, 0.0, 1.0, 0.5, 0.5, 0.5, 0.5]


@given(
    problem=problems(max_states=4),
    seed=st.integers(0, 999),
    margin=st.sampled_from([0.0, 0.2]),
    n_wedge=st.sampled_from([0, 5]),
    within=st.sampled_from([None, 2]),
)
@settings(deadline=None)
def test_no_limit_is_ever_broken(problem, seed, margin, n_wedge, within):
    rng = np.random.default_rng(seed)
    shape = (problem.num_states, problem.counts.pairs.num_actions)
    others = [rng.integers(-2, 3, shape).astype(float) for _ in range(2)]
    unsafe = rng.integers(0, problem.num_states, 1)
    asked = with_signals(
        problem, signal_of(problem, others[0], margin=margin), signal_of(problem, others[1], "3rd"),
        chance_of(problem, unsafe, within, margin=margin / 2),
    )  # fmt: skip
    made = Constrained(n_wedge=n_wedge, rounds=1e-3, price=0.1).improve(asked)
    found, before = made.policy.dense(), problem.behavior.dense()
    scale = 1e-6 * max(map(abs, problem.value_bounds))
    assert rho_of(problem, found) >= rho_of(problem, before) - scale
    for signal in asked.signals:
        assert rho_of(signal.problem, found) >= least_of(signal) - scale
    scarce = problem.counts.visits <= n_wedge
    assert (made.policy.probability == problem.behavior.probability)[scarce].all()
    assert made.unmet == ()
