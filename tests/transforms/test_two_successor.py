"""Two-successor forms: the paper's theorems in exact rationals, the way back, and the chains."""

import math
import pickle
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.oracles import solve_exactly
from support.strategies import counts, mdps, policies
from surestep import Counts, FiniteMDP, Pairs, Policy, estimate_mdp, evaluate
from surestep._arrays import run_lengths
from surestep.errors import InvalidModel, SurestepError
from surestep.transforms import two_successor
from surestep.transforms.two_successor import SplitChains

split_chains = sys.modules["surestep.transforms.two_successor"]  # not the function
LEAVES = (0, 1, 2, 3, 4, 5, 9, 14)  # of each pair, one of them a state
PAIRS = Pairs.full(len(LEAVES), 1)
OFFSETS = np.concatenate([[0], np.cumsum(LEAVES)])
SUCCESSOR = np.concatenate([np.arange(m) % len(LEAVES) for m in LEAVES]).astype(np.int32)


def below(found, row):
    """The transitions at the leaves below a row; auxiliary state S + x has the row K + x."""
    for t in range(found.offsets[row], found.offsets[row + 1]):
        if found.child[t] < found.original.num_states:
            yield int(found.first[t])
        else:
            yield from below(found, row_of(found, t))


def row_of(found, t):
    """The row of the auxiliary state at a place in the rows."""
    return found.original.num_pairs + int(found.child[t]) - found.original.num_states


def exact_shares(found, leaf):
    """The chance of each child given its node, by the construction, of rationals [T]."""
    share = []
    for row in range(found.pairs.num_pairs):
        weights = [
            leaf[found.first[t]]
            if found.child[t] < found.original.num_states
            else sum(leaf[i] for i in below(found, row_of(found, t)))
            for t in range(found.offsets[row], found.offsets[row + 1])
        ]
        whole = sum(weights)
        unreached = [Fraction(int(i == 0)) for i in range(len(weights))]
        if row < found.original.num_pairs:
            share += weights
        else:
            share += [weight / whole for weight in weights] if whole else unreached
    return np.array(share, object)


def exact_rows(mdp):
    """The probabilities [T] as rationals that sum to exactly 1 in every row."""
    exact = np.array([Fraction(float(p)) for p in mdp.probability], object)
    for first, last in zip(mdp.offsets[:-1], mdp.offsets[1:], strict=True):
        if first < last:
            exact[first:last] = exact[first:last] / sum(exact[first:last])
    return exact


def paths(offsets, child, share, num_states, num_pairs, pair):
    """All (successor, probability) in which a walk through auxiliary states can end."""
    ends, open_rows = [], [(pair, 1)]
    while open_rows:
        row, reached = open_rows.pop()
        for t in range(offsets[row], offsets[row + 1]):
            probability = reached * share[t]
            if child[t] < num_states:
                ends.append((int(child[t]), probability))
            else:
                open_rows.append((num_pairs + child[t] - num_states, probability))
    return ends


@given(st.data(), mdps())
def test_theorem_1_each_transition_has_one_path_of_the_same_probability(data, mdp):
    split = two_successor(mdp)
    exact, chains = exact_rows(mdp), split.chains
    share = exact_shares(chains, exact)
    for pair in range(mdp.num_pairs):
        ends = paths(chains.offsets, chains.child, share, mdp.num_states, mdp.num_pairs, pair)
        run = slice(mdp.offsets[pair], mdp.offsets[pair + 1])
        stored = zip(mdp.successor[run].tolist(), exact[run], strict=True)
        assert sorted(ends) == sorted(stored)
    rows = [sum(share[a:b]) for a, b in zip(chains.offsets, chains.offsets[1:], strict=False)]
    assert set(rows[mdp.num_pairs :]) <= {1}
    np.testing.assert_allclose(split.mdp.probability, share.astype(float), rtol=1e-12)


@given(st.data(), mdps(max_states=4, undiscounted=True))
def test_corollary_1_values_of_the_states_are_unchanged_exactly(data, mdp):
    policy = data.draw(policies(mdp.pairs))
    split = two_successor(mdp)
    exact = exact_rows(mdp)
    share, lifted = exact_shares(split.chains, exact), split.lift(policy)
    rewards = [Fraction(float(r)) for r in mdp.reward]
    expected = [
        Fraction(float(mdp.ending_reward[i]))
        + sum((exact[t] * rewards[t] for t in range(*mdp.offsets[i : i + 2])), Fraction(0))
        for i in range(mdp.num_pairs)
    ]
    original = exact_values(mdp.pairs, mdp.offsets, mdp.successor, exact, expected, mdp, policy)
    auxiliary = [Fraction(0)] * split.chains.num_auxiliary
    after = exact_values(
        split.mdp.pairs,
        split.mdp.offsets,
        split.mdp.successor,
        share,
        expected + auxiliary,
        split.mdp,
        lifted,
    )
    assert after[: mdp.num_states] == original


def exact_values(pairs, offsets, successor, probability, expected, mdp, policy):
    """V^π in rationals, from rows of rational probabilities."""
    n = pairs.num_states
    matrix = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    right = [Fraction(0)] * n
    for pair in range(pairs.num_pairs):
        state, taken = int(pairs.state[pair]), Fraction(float(policy.probability[pair]))
        right[state] += taken * expected[pair]
        for t in range(offsets[pair], offsets[pair + 1]):
            weight = taken * Fraction(float(mdp.discount[pair])) * probability[t]
            matrix[state][int(successor[t])] -= weight
    return solve_exactly(matrix, right)


@given(mdps())
def test_the_split_form_has_the_sizes_the_paper_says(mdp):
    split = two_successor(mdp).mdp
    branching = run_lengths(mdp.offsets)
    added = split.num_states - mdp.num_states
    assert run_lengths(split.offsets).max() <= 2
    assert added == np.maximum(branching - 2, 0).sum()
    assert split.num_states <= mdp.num_states**2 * mdp.pairs.num_actions
    assert split.num_transitions == mdp.num_transitions + added
    new = slice(mdp.num_pairs, None)
    assert (split.discount[new] == 1).all()
    assert (split.expected_reward[new] == 0).all()
    assert (split.pairs.action[new] == mdp.pairs.num_actions).all()
    assert (run_lengths(split.pairs.offsets)[mdp.num_states :] == 1).all()
    np.testing.assert_array_equal(split.initial[mdp.num_states :], 0.0)
    short = np.flatnonzero(branching <= 2)
    for pair in short:
        old, new_run = slice(*mdp.offsets[pair : pair + 2]), slice(*split.offsets[pair : pair + 2])
        for name in ("successor", "probability", "reward"):
            np.testing.assert_array_equal(getattr(split, name)[new_run], getattr(mdp, name)[old])


def products(split):
    """The probabilities of the original, by the paths of the split form."""
    chains, share = split.chains, split.mdp.probability
    reached = np.ones(chains.pairs.num_pairs)  # of each row, which comes after its parent's
    found = np.zeros(split.original.successor.size)
    for row in range(reached.size):
        for t in range(*chains.offsets[row : row + 2]):
            if chains.child[t] < chains.original.num_states:
                found[chains.first[t]] = reached[row] * share[t]
            else:
                reached[row_of(chains, t)] = reached[row] * share[t]
    return found


@given(st.data(), mdps())
def test_the_original_mdp_comes_back(data, mdp):
    goal = data.draw(st.lists(st.booleans(), min_size=mdp.num_states, max_size=mdp.num_states))
    mdp = replace(mdp, marks={"goal": np.array(goal)})
    split = two_successor(mdp)
    assert split.original == mdp
    assert split.mdp.marks["goal"].tolist() == [*goal, *[False] * split.chains.num_auxiliary]
    # Theorem 1: the products along paths are the probabilities.
    np.testing.assert_allclose(products(split), mdp.probability, rtol=1e-12, atol=0)
    policy = data.draw(policies(mdp.pairs))
    assert split.lower(split.lift(policy)) == policy
    again = pickle.loads(pickle.dumps(split))  # noqa: S301
    assert again.original == mdp
    assert not again.chains.first.flags.writeable


@given(st.data(), counts(max_states=5))
def test_the_original_counts_come_back_exactly(data, logged):
    split = two_successor(logged)
    assert split.original == logged
    leaf = split.chains.child < logged.pairs.num_states
    seen = logged.times[logged.times > 0]
    assert (split.counts.times[leaf] == seen[split.chains.first[leaf]]).all()
    assert run_lengths(split.counts.offsets).max() <= 2
    assert (split.counts.visits[: logged.pairs.num_pairs] == logged.visits).all()
    policy = data.draw(policies(logged.pairs))
    assert split.lower(split.lift(policy)) == policy


@given(st.data(), counts(max_states=5))
def test_theorem_2_the_estimate_has_one_path_of_the_same_probability(data, logged):
    split = two_successor(logged)
    new, num_pairs = split.counts, logged.pairs.num_pairs
    visits = np.repeat(new.visits, run_lengths(new.offsets))
    share = [Fraction(int(n), int(v)) for n, v in zip(new.times, visits, strict=True)]
    for pair in range(num_pairs):
        ends = paths(new.offsets, new.successor, share, logged.pairs.num_states, num_pairs, pair)
        run = range(*logged.offsets[pair : pair + 2])
        seen = [
            (int(logged.successor[t]), Fraction(int(logged.times[t]), int(logged.visits[pair])))
            for t in run
            if logged.times[t] > 0
        ]
        assert sorted(ends) == sorted(seen)


@given(st.data(), counts(max_states=5))
def test_corollary_2_the_estimate_of_the_split_counts_is_the_split_estimate(data, logged):
    split = two_successor(logged)
    ours = estimate_mdp(split.counts, split.discounts(0.9))
    estimate = estimate_mdp(logged, 0.9)
    theirs = two_successor(estimate).mdp
    assert ours.pairs == theirs.pairs
    for name in ("offsets", "successor", "discount", "initial"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    scale = 1 + np.abs(theirs.reward).max(initial=0) + np.abs(theirs.ending_reward).max()
    np.testing.assert_allclose(ours.probability, theirs.probability, rtol=1e-12)
    np.testing.assert_allclose(ours.reward, theirs.reward, atol=1e-12 * scale)
    np.testing.assert_array_equal(ours.ending_reward, theirs.ending_reward)
    policy = data.draw(policies(logged.pairs))
    value = evaluate(ours, split.lift(policy))[: logged.pairs.num_states]
    np.testing.assert_allclose(value, evaluate(estimate, policy), atol=1e-9 * scale)


def figure_2():
    """The paper's Figure 2a: s0 with two actions, of four and of two successors."""
    table = np.zeros((5, 2, 5))
    table[0, 0, :4] = 0.5, 0.2, 0.2, 0.1
    table[0, 1, 3:] = 0.2, 0.8
    return table


def test_the_papers_figure_2_comes_out():
    rewards = np.arange(10.0).reshape(5, 2)
    split = two_successor(FiniteMDP.from_dense(figure_2(), rewards, 0.9)).mdp
    assert split.num_states == 7
    dense = split.dense()
    np.testing.assert_allclose(dense.P[0, 0, [0, 5]], [0.5, 0.5], rtol=1e-12)  # s0 and x1
    np.testing.assert_allclose(dense.P[5, 2, [1, 6]], [0.4, 0.6], rtol=1e-12)  # s1 and x2
    np.testing.assert_allclose(dense.P[6, 2, [2, 3]], [2 / 3, 1 / 3], rtol=1e-12)  # s2 and s3
    np.testing.assert_array_equal(dense.P[0, 1, 3:5], [0.2, 0.8])
    np.testing.assert_array_equal(dense.R[:5, :2], rewards)
    np.testing.assert_array_equal(dense.enabled[5:], [[False, False, True]] * 2)


def test_the_papers_counts_come_out():
    table = np.zeros((4, 1, 4), int)
    table[0, 0] = [5, 4, 3, 2]
    split = two_successor(Counts.from_dense(table, rewards=np.zeros((4, 1))))
    assert split.counts.times.tolist() == [5, 9, 4, 5, 3, 2]
    assert split.counts.successor.tolist() == [0, 4, 1, 5, 2, 3]


def test_rows_with_stored_zeros_at_their_end_lead_nowhere():
    pairs = Pairs.full(5, 1)
    successor = [*range(5), 0, 0, 0, 0]
    probability = [0.25, 0.75, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    mdp = FiniteMDP(
        pairs,
        [0, 5, 6, 7, 8, 9],
        successor,
        probability,
        np.arange(9.0),
        np.full(5, 0.9),
        np.eye(5)[0],
    )
    split = two_successor(mdp)
    np.testing.assert_array_equal(products(split), mdp.probability)
    value = evaluate(split.mdp, Policy.uniform(split.mdp))[:5]
    np.testing.assert_allclose(value, evaluate(mdp, Policy.uniform(mdp)), rtol=1e-9)


def test_a_row_of_very_many_successors_keeps_its_value():
    size = 20_001
    rng = np.random.default_rng(5)
    weight = rng.random(size - 1) ** 8
    successor = np.arange(1, size)
    reward = rng.normal(size=size)
    mdp = FiniteMDP(
        Pairs.full(size, 1),
        [0, *[size - 1] * size],
        successor,
        weight / weight.sum(),
        np.zeros(size - 1),
        np.full(size, 0.9),
        np.eye(1, size)[0],
        np.where(np.arange(size) > 0, reward, 0.0),
    )
    split = two_successor(mdp)
    truth = 0.9 * math.fsum(mdp.probability * reward[1:])
    assert evaluate(split.mdp, Policy.uniform(split.mdp))[0] == pytest.approx(truth, rel=1e-9)
    np.testing.assert_allclose(products(split), mdp.probability, rtol=1e-11)


def test_counts_beyond_the_whole_doubles_are_added_up_exactly():
    table = np.zeros((4, 1, 4), np.int64)
    table[0, 0] = [1, 2**59 + 1, 2**58 + 1, 1]
    split = two_successor(Counts.from_dense(table, rewards=np.zeros((4, 1))))
    assert split.counts.times.tolist() == [
        1, 2**59 + 2**58 + 3, 2**59 + 1, 2**58 + 2, 2**58 + 1, 1,
    ]  # fmt: skip


def test_labels_stay_and_new_ones_differ_from_them():
    table = np.zeros((4, 1, 4))
    table[0, 0] = 0.25
    labels = ("ward", "home", "x2 of state 'ward', action 'τ'", "end")
    mdp = FiniteMDP.from_dense(
        table, np.zeros((4, 1)), 0.9, state_labels=labels, action_labels=("τ",)
    )
    pairs = two_successor(mdp).mdp.pairs
    assert pairs.state_labels == (
        *labels, "x2 of state 'ward', action 'τ''", "x3 of state 'ward', action 'τ'",
    )  # fmt: skip
    assert pairs.action_labels == ("τ", "τ'")


def test_what_belongs_to_another_model_is_refused():
    mdp = FiniteMDP.from_dense(figure_2(), np.zeros((5, 2)), 0.9)
    split = two_successor(mdp)
    with pytest.raises(SurestepError, match="the policy has 5 states, the split model has 7"):
        split.lower(Policy.uniform(mdp))
    with pytest.raises(SurestepError, match="the policy has 7 states, the original model has 5"):
        split.lift(Policy.uniform(split.mdp))
    with pytest.raises(SurestepError, match="model"):
        two_successor("an MDP")


def test_every_node_has_two_children():
    found = SplitChains.of(PAIRS, OFFSETS, SUCCESSOR)
    auxiliary = [max(m - 2, 0) for m in LEAVES]
    assert found.num_auxiliary == sum(auxiliary)
    assert found.pairs.num_states == found.pairs.num_pairs == len(LEAVES) + sum(auxiliary)
    assert found.child.size == found.first.size == SUCCESSOR.size + sum(auxiliary)
    assert np.diff(found.offsets).tolist() == [min(m, 2) for m in LEAVES] + [2] * sum(auxiliary)
    for pair in range(len(LEAVES)):
        assert list(below(found, pair)) == list(range(OFFSETS[pair], OFFSETS[pair + 1]))
    leaf = found.child < len(LEAVES)
    assert found.child[leaf].tolist() == SUCCESSOR[found.first[leaf]].tolist()
    nodes = found.child[~leaf]
    assert sorted(nodes.tolist()) == list(range(len(LEAVES), found.pairs.num_states))
    assert [next(below(found, row_of(found, t))) for t in np.flatnonzero(~leaf)] == (
        found.first[~leaf].tolist()
    )


def test_auxiliary_states_have_one_action_of_their_own():
    found = SplitChains.of(PAIRS, OFFSETS, SUCCESSOR).pairs
    assert found.num_actions == 2
    assert np.diff(found.offsets).tolist() == [1] * found.num_states
    assert found.action.tolist() == [0] * len(LEAVES) + [1] * (found.num_states - len(LEAVES))


def test_there_are_no_more_states_than_can_be_numbered(monkeypatch):
    states = SplitChains.of(PAIRS, OFFSETS, SUCCESSOR).pairs.num_states
    monkeypatch.setattr(split_chains.arrays, "LARGEST_INDEX", states)
    assert SplitChains.of(PAIRS, OFFSETS, SUCCESSOR).pairs.num_states == states
    monkeypatch.setattr(split_chains.arrays, "LARGEST_INDEX", states - 1)
    with pytest.raises(InvalidModel, match=f"has {states} states, expected at most {states - 1}"):
        SplitChains.of(PAIRS, OFFSETS, SUCCESSOR)
