"""MDPBatch: what a batch keeps of its models. Values of batches are tested under planning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from support.strategies import mdps
from surestep import FiniteMDP, MDPBatch, Pairs
from surestep.errors import InvalidCounts
from surestep.model.batch import CountsBatch
from surestep.model.counts import LoggedRewards


@st.composite
def families(draw, size=3):
    """Models with the same pairs, discounts and start, and successors of their own."""
    first = draw(mdps(max_states=4))
    models = [first]
    for _ in range(size - 1):
        other = draw(st.randoms(use_true_random=False))
        rng = np.random.default_rng(other.getrandbits(32))
        states, pairs = first.num_states, first.num_pairs
        weight = rng.integers(0, 3, (pairs, states)).astype(float)
        weight[rng.random(pairs) < 0.2] = 0.0
        total = weight.sum(axis=1, keepdims=True)
        rows = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
        pair, successor = np.nonzero(rows)
        ends = total[:, 0] == 0
        models.append(
            FiniteMDP(
                first.pairs,
                np.append(0, np.cumsum(np.count_nonzero(rows, axis=1))),
                successor,
                rows[pair, successor],
                rng.normal(size=pair.size),
                first.discount,
                first.initial,
                np.where(ends, rng.normal(size=pairs), 0.0),
            )
        )
    return models


@given(models=families())
def test_a_model_of_a_batch_has_the_dynamics_of_the_model_it_came_from(models):
    batch = MDPBatch.from_models(models)
    assert (batch.num_models, batch.num_states) == (3, models[0].num_states)
    for index, model in enumerate(models):
        again = batch.model(index)
        assert again.pairs == model.pairs
        assert np.array_equal(again.offsets, model.offsets)
        for k in range(model.num_pairs):
            run = slice(model.offsets[k], model.offsets[k + 1])
            order = np.argsort(model.successor[run])
            assert np.array_equal(again.successor[run], model.successor[run][order])
            assert np.array_equal(again.probability[run], model.probability[run][order])
        assert_allclose(again.expected_reward, model.expected_reward, rtol=1e-11, atol=1e-12)
        assert np.array_equal(again.discount, model.discount)
        assert np.array_equal(again.initial, model.initial)


@given(models=families())
def test_a_batch_has_exactly_the_successors_that_some_model_has(models):
    batch = MDPBatch.from_models(models)
    listed = {
        (k, int(successor))
        for k in range(batch.pairs.num_pairs)
        for successor in batch.successor[batch.offsets[k] : batch.offsets[k + 1]]
    }
    expected = {
        (k, int(successor))
        for model in models
        for k in range(model.num_pairs)
        for successor in model.successor[model.offsets[k] : model.offsets[k + 1]]
    }
    assert listed == expected


def test_rows_within_rounding_keep_their_bits_and_those_of_single_precision_are_rescaled():
    pairs = Pairs.full(3, 1)
    single = np.array([0.1, 0.2, 0.7], np.float32).astype(float)
    rows = np.array([[0.1, 0.2, 0.7 + 1e-16] * 3, [*single, *[0.0] * 3, 0.25, 0.25, 0.5]])
    batch = MDPBatch(
        pairs, [0, 3, 6, 9], [0, 1, 2] * 3, rows, np.zeros((2, 3)), [0.9] * 3, [1.0, 0.0, 0.0]
    )
    assert np.array_equal(batch.probability[0], rows[0])
    assert np.array_equal(batch.probability[1, 3:], rows[1, 3:])
    assert abs(batch.probability[1, :3].sum() - 1) <= 1e-12
    assert_allclose(batch.probability[1, :3], single, rtol=1e-6)
    assert np.diff(batch.model(1).offsets).tolist() == [3, 0, 3]


@pytest.mark.parametrize(
    ("per", "known", "values"),
    [
        ("transition", True, [2.0, 6.0, 9.0]),
        ("transition", False, [[2.0, 18.0, 0.0], [2.0, 0.0, 0.0]]),
        ("pair", False, [[20.0, 0.0], [2.0, 0.0]]),
    ],
)
def test_rewards_of_data_sets_are_means_of_what_each_saw(per, known, values):
    # Pair 0 leads to 0 and 1, once and three times in the first set, once to 0 in the second.
    def counted(values):
        return CountsBatch(
            Pairs.full(2, 1),
            np.array([0, 2, 3]),
            np.array([0, 1, 1]),
            np.array([[1, 3, 0], [1, 0, 0]]),
            LoggedRewards(np.array(values), per, known=known),
            np.array([[1, 0], [1, 0]]),
        )

    assert counted(values).expected_reward().tolist() == [[5.0, 0.0], [2.0, 0.0]]
    if not known:
        values[1][-1] = 3.0  # of a pair that was never seen
        with pytest.raises(InvalidCounts, match="data set 1: "):
            counted(values)
