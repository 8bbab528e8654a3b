"""Many sets in one compiled loop, against the loop that does one set at a time."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.strategies import all_pairs, policies
from surestep import Pairs, Policy
from surestep.errors import NotConverged
from surestep.planning import robust
from surestep.planning.rectangular import (
    Earnings,
    IntervalRows,
    L1Rows,
    RectangularSet,
    SupportTrees,
    TreeRows,
)
from surestep.planning.robust import best_value, best_values, joinable, worst_value, worst_values

KINDS = ("intervals", "l1", "trees")


def random_set(pairs, kind, rng, discount):
    """A set with successors, ends, rewards and widths of its own."""
    states, size = pairs.num_states, pairs.num_pairs
    ends = rng.random(size) < 0.2
    stored = (rng.random((size, states)) < rng.choice([0.3, 0.8, 1.0])) & ~ends[:, np.newaxis]
    pair, successor = np.nonzero(stored)
    offsets = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    width = rng.choice([0.0, 0.1, 0.5, 2.0])
    center = stored * rng.dirichlet(np.ones(states), size)
    center = (center / np.maximum(center.sum(axis=1, keepdims=True), 1e-300))[pair, successor]
    if kind == "l1":
        radius = np.where(stored.any(axis=1), rng.random(size) * width, 2.0)
        rows = L1Rows.of(offsets, successor.astype(np.int32), center, np.minimum(radius, 2), ends)
    elif kind == "trees":
        trees = SupportTrees.of(offsets, successor.astype(np.int32), ends, states)
        chance = rng.random(trees.node_offsets[-1])
        rows = TreeRows(trees, np.maximum(chance - width, 0), np.minimum(chance + width, 1))
    else:
        rows = IntervalRows.of(
            offsets,
            successor.astype(np.int32),
            np.maximum(center - width, 0),
            np.minimum(center + width, 1),
            np.where(stored.any(axis=1), max(width, 0.01), 1.0),
            ends,
            states,
        )
    stored_reward, ending = rng.normal(size=pair.size), rng.normal(size=size)
    low = Earnings(stored_reward, rng.normal(size=size), ending)
    high = Earnings(stored_reward + rng.random(), low.outside + 0.5, ending + rng.random())
    return RectangularSet(pairs, np.full(size, discount), rows, low, high)


@st.composite
def batches(draw, kind):
    """Some sets over the same pairs, with a policy each."""
    pairs = draw(all_pairs(6, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    discount = draw(st.sampled_from([0.0, 0.5, 0.95]))
    sets = [random_set(pairs, kind, rng, discount) for _ in range(draw(st.integers(1, 4)))]
    return sets, [draw(policies(pairs)) for _ in sets]


def assert_alike(found, single):
    """Both are within their proven errors of one truth."""
    assert (np.abs(found.value - single.value) <= found.error_bound + single.error_bound).all()
    assert found.error_bound <= 1e-7 * (1 + np.abs(single.value).max())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(data=st.data())
def test_a_batch_says_of_each_set_what_one_call_says(kind, data):
    sets, chosen = data.draw(batches(kind))
    plain = [worst_value(*each).value for each in zip(sets, chosen, strict=True)]
    # Floors that bind nowhere, somewhere and everywhere.
    shift = data.draw(st.sampled_from([-100.0, 0.0, 1.0]))
    tilt = np.linspace(-1, 1, plain[0].size)
    floors = [value + shift + tilt for value in plain]
    found = worst_values(sets, chosen, floors)
    for plan, *each in zip(found, sets, chosen, floors, strict=True):
        assert_alike(plan, worst_value(*each))
        assert plan.policy is each[1]
    ceilings = [-floor for floor in floors]
    for plan, *each in zip(
        best_values(sets, chosen, ceilings), sets, chosen, ceilings, strict=True
    ):
        assert_alike(plan, best_value(*each))


@pytest.mark.parametrize("kind", KINDS)
def test_the_compiled_loop_finds_good_values_by_itself(kind, monkeypatch):
    def not_called(*_):
        raise AssertionError("left to the other loop")

    monkeypatch.setattr(robust, "worst_value", not_called)
    pairs, rng = Pairs.full(40, 3), np.random.default_rng(3)
    sets = [random_set(pairs, kind, rng, 0.98) for _ in range(12)]
    uniform = [Policy.uniform(pairs)] * len(sets)
    plans = worst_values(sets, uniform, [np.full(40, -1.0)] * len(sets))
    assert max(plan.iterations for plan in plans) <= 200


def test_sets_of_up_to_128_states_over_the_same_pairs_and_of_one_kind_are_joined():
    def sets(*states, rows=(None, None)):
        pairs = [Pairs.full(size, 1) for size in states]
        discount = np.full(1, 0.9)
        return [
            SimpleNamespace(pairs=p, rows=r, discount=discount)
            for p, r in zip(pairs, rows, strict=True)
        ]

    assert joinable(sets(128, 128))
    assert not joinable(sets(129, 129))
    assert not joinable(sets(128, 127))
    assert not joinable(sets(2, 2, rows=(SimpleNamespace(), None)))


def test_sets_that_the_loop_cannot_do_are_done_one_by_one(monkeypatch):
    rng = np.random.default_rng(1)
    small, other = Pairs.full(4, 2), Pairs.full(5, 1)
    sets = [random_set(small, "l1", rng, 0.9), random_set(other, "trees", rng, 0.9)]
    chosen = [Policy.uniform(small), Policy.uniform(other)]
    floors = [np.full(4, -100.0), np.full(5, -100.0)]
    for plan, *each in zip(worst_values(sets, chosen, floors), sets, chosen, floors, strict=True):
        assert_alike(plan, worst_value(*each))
    assert worst_values([], [], []) == []
    monkeypatch.setattr(robust, "plan_of", lambda *_: None)
    (plan,) = worst_values(sets[:1], chosen[:1], floors[:1])
    assert_alike(plan, worst_value(sets[0], chosen[0], floors[0]))


def test_what_cannot_be_proven_is_refused():
    pairs = Pairs.full(3, 1)
    near_one = random_set(pairs, "l1", np.random.default_rng(0), 1 - 1e-15)
    with pytest.raises(NotConverged, match="too near 1"):
        worst_values([near_one], [Policy.uniform(pairs)], [np.zeros(3)])
