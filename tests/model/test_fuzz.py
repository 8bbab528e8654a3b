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
from support.strategies import all_pairs, count_tables, counts, decision_logs, mdps, policies
from surestep import (
    Counts,
    DecisionLog,
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

PAIRS = all_pairs(max_states=3)
POLICIES = PAIRS.flatmap(policies)


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
    for name, array in arrays_of(noun):
        assert array.dtype in (np.float64, np.int64, np.int32, np.bool_), name
        assert not array.flags.writeable, name
        assert array.flags.c_contiguous, name
        assert np.isfinite(array).all(), name
    check(noun)
    return noun


# ---- what is valid ----------------------------------------------------------------------------


def check(noun):
    """Everything that a noun of this kind promises."""
    match noun:
        case Pairs():
            check_pairs(noun)
        case Policy():
            check_distributions(noun.probability, noun.pairs.offsets)
        case FiniteMDP():
            check_mdp(noun)
        case MDPBatch():
            for index in range(noun.num_models):
                check_mdp(noun.model(index))
        case Counts():
            check_counts(noun)
        case DecisionLog():
            check_log(noun)
        case Problem():
            assert noun.value_bound >= 0
            assert all(type(bound) is float for bound in noun.value_bounds)
            attempt(noun.estimate)
        case _:
            pytest.fail(f"{type(noun)} is no noun")


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


def check_counts(found):
    check_pairs(found.pairs)
    assert (found.times >= 0).all()
    assert found.visits.sum() == found.times.sum()
    assert found.starts.min() >= 0
    assert found.starts.sum() >= 1
    check_mdp(estimate_mdp(found, 0.5))


def check_log(log):
    over = log.terminated | log.truncated
    last = np.isin(np.arange(log.num_steps), log.episode_offsets[1:] - 1)
    assert (over | (log.next_state == -1) == last).all()
    assert (log.next_state[~last] == log.state[1:][~last[:-1]]).all()
    assert log.pair.min() >= 0


# ---- good arguments of every constructor --------------------------------------------------------


def arrays(noun, *names):
    """Copies of some arrays of a noun, by name."""
    return {name: np.array(getattr(noun, name)) for name in names}


def pairs(draw):
    good = draw(PAIRS)
    labels = {"state_labels": [f"s{i}" for i in range(good.num_states)], "action_labels": None}
    numbers = {"num_actions": good.num_actions, **arrays(good, "offsets", "action")}
    return Pairs, numbers | labels


def enabled(draw):
    fields = {"enabled": draw(PAIRS).enabled(), "state_labels": None, "action_labels": None}
    return Pairs.from_enabled, fields


def policy(draw):
    good = draw(POLICIES)
    return Policy, {"pairs": good.pairs, **arrays(good, "probability")}


def dense_policy(draw):
    good = draw(POLICIES)
    return Policy.from_dense, {"source": good.pairs, "table": good.dense()}


def deterministic(draw):
    source = draw(PAIRS)
    first = np.array(source.action[source.offsets[:-1]])
    return Policy.deterministic, {"source": source, "actions": first}


def softmax(draw):
    source = draw(PAIRS)
    return Policy.softmax, {"source": source, "q": np.zeros(source.num_pairs), "temperature": 2.0}


def mixture(draw):
    first = draw(POLICIES)
    other = draw(st.one_of(policies(first.pairs), all_pairs().flatmap(policies)))
    return first.mix, {"other": other, "weight": 0.25}


def model(draw):
    good = draw(mdps(max_states=3))
    names = ("offsets", "successor", "probability", "reward", "discount", "initial")
    return FiniteMDP, {"pairs": good.pairs, **arrays(good, *names, "ending_reward")}


def dense_model(draw):
    table = draw(count_tables(max_states=3, max_actions=2)).astype(float)
    total = table.sum(axis=2, keepdims=True)
    P = np.divide(table, total, out=np.zeros_like(table), where=total > 0)
    return FiniteMDP.from_dense, {
        "P": P,
        "R": np.ones(draw(st.sampled_from([P.shape, P.shape[:2]]))),
        "discount": draw(st.sampled_from([0.9, 1.0, np.full(P.shape[:2], 0.5)])),
        "initial": draw(st.sampled_from([0, np.full(P.shape[0], 1 / P.shape[0])])),
        "enabled": draw(st.sampled_from([None, np.ones(P.shape[:2], bool)])),
    }


def sparse_model(draw):
    _, good = dense_model(draw)
    for name in ("P", "R"):
        if good[name].ndim == 3:
            slices = good[name].swapaxes(0, 1)
            good[name] = [scipy.sparse.coo_array(each).asformat("csr") for each in slices]
    return FiniteMDP.from_sparse, good


def batch(draw):
    good = MDPBatch.from_models([draw(mdps(max_states=3))] * 2)
    names = ("offsets", "successor", "probability", "expected_reward", "discount", "initial")
    return MDPBatch, {"pairs": good.pairs, **arrays(good, *names)}


def batch_of_models(draw):
    some = st.lists(st.one_of(mdps(max_states=2, max_actions=1), JUNK), max_size=3)
    return MDPBatch.from_models, {"models": draw(some)}


def counted(draw):
    good = draw(counts(max_states=2))
    logged = {**arrays(good.rewards, "values"), "per": good.rewards.per}
    try:
        rewards = LoggedRewards(**draw(arguments(logged | {"known": good.rewards.known})))
    except SurestepError:
        rewards = draw(JUNK)
    fields = arrays(good, "offsets", "successor", "times", "starts", "terminal")
    return Counts, {"pairs": good.pairs, "rewards": rewards, **fields}


def dense_counts(draw):
    table = draw(count_tables(max_states=3))
    known = draw(st.booleans())
    shape = draw(st.sampled_from([table.shape, table.shape[:2]]))
    return Counts.from_dense, {
        "C": table,
        "rewards": np.ones(shape) if known else None,
        "reward_sums": None if known else np.zeros(shape),
        "starts": np.ones(table.shape[0], int),
        "enabled": draw(st.sampled_from([None, np.ones(table.shape[:2], bool)])),
        "terminal": np.zeros(table.shape[0], bool),
    }


def estimate(draw):
    return estimate_mdp, {"counts": draw(counts(max_states=2)), "discount": draw(JUNK)}


def problem(draw):
    log = draw(counts(max_states=2))
    bounds = st.one_of(st.just((0.0, 1.0)), st.tuples(JUNK, JUNK), st.lists(JUNK, max_size=3))
    fields = {"counts": log, "behavior": Policy.uniform(log), "discount": 0.9}
    unseen = draw(st.sampled_from(["terminal", "pessimistic"]))
    return Problem, fields | {"value_bounds": draw(bounds), "unseen": unseen}


def log(draw):
    good = draw(decision_logs(max_states=3))
    names = ("state", "action", "reward", "next_state", "terminated", "truncated")
    return DecisionLog, {"pairs": good.pairs, **arrays(good, *names, "episode_offsets")}


CONSTRUCTORS = (
    *(pairs, enabled, policy, dense_policy, deterministic, softmax, mixture, model, dense_model),
    *(sparse_model, batch, batch_of_models, counted, dense_counts, estimate, problem, log),
)


@pytest.mark.parametrize("good", CONSTRUCTORS)
@given(data=st.data())
def test_anything_makes_a_valid_noun_or_is_refused(good, data):
    call, fields = good(data.draw)
    attempt(call, **data.draw(arguments(fields)))


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
        attempt(first.__add__, second)


@given(other=JUNK)
def test_adding_anything_else_to_counts_is_a_type_error(other):
    counted = Counts.from_dense([[[1]]], rewards=[[0.0]])
    with pytest.raises(TypeError, match="unsupported operand"):
        counted + (other if not hasattr(other, "__radd__") else None)


@given(log=decision_logs(), junk=JUNK)
def test_selections_and_rewards_of_any_kind_are_taken_or_refused(log, junk):
    attempt(log.episodes, junk)
    attempt(log.counts, junk)


@given(data=st.data())
def test_what_a_constructor_accepts_can_be_evaluated(data):
    call, fields = dense_model(data.draw)
    mdp = attempt(call, **data.draw(arguments(fields)))
    if mdp is not None and np.abs(mdp.expected_reward).max() < 1e300:
        try:
            assert np.isfinite(evaluate(mdp, Policy.uniform(mdp))).all()
        except NeverEnds:
            assert mdp.discount.max() == 1
