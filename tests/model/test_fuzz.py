"""Whatever the constructors are given, they make a valid noun or raise a SurestepError.

NumPy's warnings are errors here (see pyproject.toml), so a silent overflow fails these tests too.
"""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from support.frozen import arrays_of
from support.junk import JUNK, arguments
from support.strategies import all_pairs, count_tables, counts, mdps, policies
from surestep import (
    Counts,
    FiniteMDP,
    MDPBatch,
    Pairs,
    Policy,
    Problem,
    SurestepError,
    estimate_mdp,
    evaluate,
)
from surestep.errors import NeverEnds
from surestep.model import LoggedRewards

NOUNS = Pairs | FiniteMDP | Policy | Counts | Problem | MDPBatch | LoggedRewards


def attempt(call, *args, **kwargs):
    """The noun that the call makes, or None where it raises the error it should."""
    refusal = None
    try:
        noun = call(*args, **kwargs)
    except SurestepError as error:
        refusal = error
    if refusal is not None:
        assert str(refusal)
        return None
    assert isinstance(noun, NOUNS)
    for name, array in arrays_of(noun):
        assert array.dtype in (np.float64, np.int64, np.int32, np.bool_), name
        assert not array.flags.writeable, name
        assert array.flags.c_contiguous, name
        assert np.isfinite(array).all(), name
    return noun


def check_distributions(probability, offsets):
    """Every run that is not empty sums to 1."""
    assert (probability >= 0).all()
    for first, last in pairwise(offsets):
        if last > first:
            assert abs(probability[first:last].sum() - 1) <= 2e-12


def check_pairs(pairs):
    assert (np.diff(pairs.offsets) >= 1).all()
    assert pairs.offsets[0] == 0
    assert pairs.offsets[-1] == pairs.action.size
    assert 0 <= pairs.action.min() <= pairs.action.max() < pairs.num_actions
    for s in range(pairs.num_states):
        assert (np.diff(pairs.action[pairs.offsets[s] : pairs.offsets[s + 1]]) > 0).all()


def check_mdp(mdp):
    check_pairs(mdp.pairs)
    check_distributions(mdp.probability, mdp.offsets)
    check_distributions(mdp.initial, [0, mdp.num_states])
    assert ((mdp.discount >= 0) & (mdp.discount <= 1)).all()
    assert mdp.offsets.size == mdp.num_pairs + 1
    if mdp.successor.size:
        assert 0 <= mdp.successor.min() <= mdp.successor.max() < mdp.num_states


# ---- pairs and policies -----------------------------------------------------------------------


@given(data=st.data())
def test_pairs_from_anything(data):
    good = data.draw(all_pairs(max_states=3))
    fields = {
        "offsets": np.array(good.offsets),
        "action": np.array(good.action),
        "num_actions": good.num_actions,
        "state_labels": [f"s{i}" for i in range(good.num_states)],
        "action_labels": None,
    }
    pairs = attempt(Pairs, **data.draw(arguments(fields)))
    if pairs is not None:
        check_pairs(pairs)


@given(data=st.data())
def test_pairs_from_any_mask(data):
    fields = {
        "enabled": data.draw(all_pairs(max_states=3)).enabled(),
        "state_labels": None,
        "action_labels": None,
    }
    pairs = attempt(Pairs.from_enabled, **data.draw(arguments(fields)))
    if pairs is not None:
        check_pairs(pairs)


@given(data=st.data())
def test_policies_from_anything(data):
    pairs = data.draw(all_pairs(max_states=3))
    good = data.draw(policies(pairs))
    policy = attempt(
        Policy, **data.draw(arguments({"pairs": pairs, "probability": np.array(good.probability)}))
    )
    if policy is not None:
        check_distributions(policy.probability, policy.pairs.offsets)


@given(data=st.data())
def test_policies_from_any_table(data):
    pairs = data.draw(all_pairs(max_states=3))
    fields = {"source": pairs, "table": data.draw(policies(pairs)).dense()}
    policy = attempt(Policy.from_dense, **data.draw(arguments(fields)))
    if policy is not None:
        check_distributions(policy.probability, policy.pairs.offsets)


@given(data=st.data())
def test_deterministic_policies_from_any_actions(data):
    pairs = data.draw(all_pairs(max_states=3))
    actions = np.array(pairs.action[pairs.offsets[:-1]])
    policy = attempt(
        Policy.deterministic, **data.draw(arguments({"source": pairs, "actions": actions}))
    )
    if policy is not None:
        assert set(policy.probability) <= {0.0, 1.0}
        check_distributions(policy.probability, policy.pairs.offsets)


@given(data=st.data())
def test_softmax_policies_from_anything(data):
    pairs = data.draw(all_pairs(max_states=3))
    fields = {"source": pairs, "q": np.zeros(pairs.num_pairs), "temperature": 2.0}
    policy = attempt(Policy.softmax, **data.draw(arguments(fields)))
    if policy is not None:
        check_distributions(policy.probability, policy.pairs.offsets)


@given(data=st.data())
def test_mixtures_with_anything(data):
    pairs = data.draw(all_pairs(max_states=3))
    first = data.draw(policies(pairs))
    other = data.draw(st.one_of(policies(pairs), all_pairs().flatmap(policies)))
    mixed = attempt(first.mix, **data.draw(arguments({"other": other, "weight": 0.25})))
    if mixed is not None:
        check_distributions(mixed.probability, pairs.offsets)


# ---- models -----------------------------------------------------------------------------------


@given(data=st.data())
def test_models_from_anything(data):
    good = data.draw(mdps(max_states=3))
    names = ("offsets", "successor", "probability", "reward", "discount", "initial")
    fields = {name: np.array(getattr(good, name)) for name in (*names, "ending_reward")}
    mdp = attempt(FiniteMDP, **data.draw(arguments({"pairs": good.pairs, **fields})))
    if mdp is not None:
        check_mdp(mdp)


@st.composite
def dense_fields(draw):
    """Good arguments of `FiniteMDP.from_dense`, by name."""
    table = draw(count_tables(max_states=3, max_actions=2)).astype(float)
    total = table.sum(axis=2, keepdims=True)
    P = np.divide(table, total, out=np.zeros_like(table), where=total > 0)
    return {
        "P": P,
        "R": np.ones(draw(st.sampled_from([P.shape, P.shape[:2]]))),
        "discount": draw(st.sampled_from([0.9, 1.0, np.full(P.shape[:2], 0.5)])),
        "initial": draw(st.sampled_from([0, np.full(P.shape[0], 1 / P.shape[0])])),
        "enabled": draw(st.sampled_from([None, np.ones(P.shape[:2], bool)])),
    }


@given(data=st.data())
def test_models_from_any_tables(data):
    fields = data.draw(arguments(data.draw(dense_fields())))
    mdp = attempt(FiniteMDP.from_dense, **fields)
    if mdp is not None:
        check_mdp(mdp)


@given(data=st.data())
def test_models_from_any_sparse_matrices(data):
    good = data.draw(dense_fields())
    actions = range(good["P"].shape[1])
    fields = data.draw(arguments(good | {"P": None} if data.draw(st.booleans()) else good))
    if fields["P"] is good["P"]:
        fields["P"] = [scipy.sparse.csr_array(good["P"][:, a]) for a in actions]
    if fields["R"] is good["R"] and good["R"].ndim == 3:
        fields["R"] = tuple(scipy.sparse.coo_array(good["R"][:, a]) for a in actions)
    mdp = attempt(FiniteMDP.from_sparse, **fields)
    if mdp is not None:
        check_mdp(mdp)


@given(data=st.data())
def test_batches_from_anything(data):
    good = MDPBatch.from_models([data.draw(mdps(max_states=3))] * 2)
    names = ("offsets", "successor", "probability", "expected_reward", "discount", "initial")
    fields = {name: np.array(getattr(good, name)) for name in names}
    batch = attempt(MDPBatch, **data.draw(arguments({"pairs": good.pairs, **fields})))
    if batch is not None:
        for index in range(batch.num_models):
            check_mdp(batch.model(index))


@given(data=st.data())
def test_batches_from_any_models(data):
    models = data.draw(
        st.one_of(JUNK, st.lists(st.one_of(mdps(max_states=2, max_actions=1), JUNK), max_size=3))
    )
    batch = attempt(MDPBatch.from_models, models)
    if batch is not None:
        assert batch.num_models == len(models)


# ---- counts and problems ----------------------------------------------------------------------


@given(data=st.data())
def test_counts_from_anything(data):
    good = data.draw(counts(max_states=2))
    fields = {
        name: np.array(getattr(good, name))
        for name in ("offsets", "successor", "times", "starts", "terminal")
    }
    logged = {"values": np.array(good.rewards.values), "per": good.rewards.per}
    words = data.draw(arguments(logged | {"known": good.rewards.known}))
    try:
        rewards = LoggedRewards(**words)
    except SurestepError:
        rewards = data.draw(JUNK)
    found = attempt(
        Counts, **data.draw(arguments({"pairs": good.pairs, "rewards": rewards, **fields}))
    )
    if found is not None:
        check_counts(found)


@given(data=st.data())
def test_counts_from_any_tables(data):
    table = data.draw(count_tables(max_states=3))
    known = data.draw(st.booleans())
    shape = data.draw(st.sampled_from([table.shape, table.shape[:2]]))
    fields = {
        "C": table,
        "rewards": np.ones(shape) if known else None,
        "reward_sums": None if known else np.zeros(shape),
        "starts": np.ones(table.shape[0], int),
        "enabled": data.draw(st.sampled_from([None, np.ones(table.shape[:2], bool)])),
        "terminal": np.zeros(table.shape[0], bool),
    }
    found = attempt(Counts.from_dense, **data.draw(arguments(fields)))
    if found is not None:
        check_counts(found)


def check_counts(found):
    check_pairs(found.pairs)
    assert (found.times >= 0).all()
    assert found.visits.sum() == found.times.sum()
    assert found.starts.min() >= 0
    assert found.starts.sum() >= 1
    check_mdp(estimate_mdp(found, 0.5))


@given(data=st.data())
def test_merging_any_two_counts(data):
    def one():
        good = data.draw(counts(max_states=2, max_actions=1))
        factor = data.draw(st.sampled_from([1, 1, 1, 2**58, 2**61]))
        scale = data.draw(st.sampled_from([1.0, 1.0, 1e306]))
        return attempt(
            Counts,
            good.pairs,
            good.offsets,
            good.successor,
            good.times * factor,
            LoggedRewards(good.rewards.values * scale, good.rewards.per, good.rewards.known),
            good.starts * factor,
        )

    first, second = one(), one()
    if first is not None and second is not None:
        merged = attempt(first.__add__, second)
        if merged is not None:
            check_counts(merged)


@given(other=JUNK)
def test_adding_anything_else_to_counts_is_a_type_error(other):
    log = Counts.from_dense([[[1]]], rewards=[[0.0]])
    with pytest.raises(TypeError, match="unsupported operand"):
        log + (other if not hasattr(other, "__radd__") else None)


@given(data=st.data())
def test_problems_from_anything(data):
    log = data.draw(counts(max_states=2))
    fields = {
        "counts": log,
        "behavior": Policy.uniform(log),
        "discount": 0.9,
        "value_bounds": data.draw(
            st.one_of(st.just((0.0, 1.0)), st.tuples(JUNK, JUNK), st.lists(JUNK, max_size=3))
        ),
        "unseen": data.draw(st.sampled_from(["terminal", "pessimistic"])),
    }
    found = attempt(Problem, **data.draw(arguments(fields)))
    if found is not None:
        assert found.value_bound >= 0
        assert all(type(bound) is float for bound in found.value_bounds)
        attempt(found.estimate)


@given(data=st.data())
def test_estimates_with_any_discount(data):
    mdp = attempt(estimate_mdp, data.draw(counts(max_states=2)), data.draw(JUNK))
    if mdp is not None:
        check_mdp(mdp)


@given(data=st.data())
def test_what_a_constructor_accepts_can_be_evaluated(data):
    fields = data.draw(arguments(data.draw(dense_fields())))
    mdp = attempt(FiniteMDP.from_dense, **fields)
    if mdp is not None and np.abs(mdp.expected_reward).max() < 1e300:
        try:
            assert np.isfinite(evaluate(mdp, Policy.uniform(mdp))).all()
        except NeverEnds:
            assert mdp.discount.max() == 1
