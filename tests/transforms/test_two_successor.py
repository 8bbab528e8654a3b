"""Two- and k-successor forms: the paper's theorems in exact rationals, and the way back.

The shape of the trees, grown by the kernels as plain Python, which checks every index.
"""

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
from surestep.kernels import splits
from surestep.transforms import k_successor, two_successor
from surestep.transforms.two_successor import grow_trees

SHAPES = st.integers(2, 5)  # k
split_trees = sys.modules["surestep.transforms.two_successor"]  # not the function
LEAVES = (0, 1, 2, 3, 4, 5, 9, 14)  # of each pair, one of them a state
PAIRS = Pairs.full(len(LEAVES), 1)
OFFSETS = np.concatenate([[0], np.cumsum(LEAVES)])
SUCCESSOR = np.concatenate([np.arange(m) % len(LEAVES) for m in LEAVES]).astype(np.int32)


def exact_shares(trees, leaf):
    """The compiled conditionals, run as plain Python on rationals [T]."""
    node = np.full(trees.num_auxiliary, Fraction(0), object)
    share = np.full(trees.child.size, Fraction(0), object)
    tree = splits.SplitTree(trees.original.num_states, trees.offsets, trees.child, trees.origin)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "weight_of", splits.weight_of.py_func)
        splits.add_up.py_func(tree, leaf, node)
        splits.conditionals.function(tree, leaf, node, share)
    return share


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


@given(st.data(), mdps(), SHAPES)
def test_theorem_1_each_transition_has_one_path_of_the_same_probability(data, mdp, k):
    split = k_successor(mdp, k)
    exact, trees = exact_rows(mdp), split.trees
    share = exact_shares(trees, exact)
    for pair in range(mdp.num_pairs):
        ends = paths(trees.offsets, trees.child, share, mdp.num_states, mdp.num_pairs, pair)
        run = slice(mdp.offsets[pair], mdp.offsets[pair + 1])
        stored = zip(mdp.successor[run].tolist(), exact[run], strict=True)
        assert sorted(ends) == sorted(stored)
    rows = [sum(share[a:b]) for a, b in zip(trees.offsets, trees.offsets[1:], strict=False)]
    assert set(rows[mdp.num_pairs :]) <= {1}
    np.testing.assert_allclose(split.mdp.probability, share.astype(float), rtol=1e-12)


@given(st.data(), mdps(max_states=4, undiscounted=True), SHAPES)
def test_corollary_1_values_of_the_states_are_unchanged_exactly(data, mdp, k):
    policy = data.draw(policies(mdp.pairs))
    split = k_successor(mdp, k)
    exact = exact_rows(mdp)
    share, lifted = exact_shares(split.trees, exact), split.lift(policy)
    rewards = [Fraction(float(r)) for r in mdp.reward]
    expected = [
        Fraction(float(mdp.ending_reward[i]))
        + sum((exact[t] * rewards[t] for t in range(*mdp.offsets[i : i + 2])), Fraction(0))
        for i in range(mdp.num_pairs)
    ]
    original = exact_values(mdp.pairs, mdp.offsets, mdp.successor, exact, expected, mdp, policy)
    auxiliary = [Fraction(0)] * split.trees.num_auxiliary
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


@given(mdps(), SHAPES)
def test_the_split_form_has_the_sizes_the_paper_says(mdp, k):
    split = k_successor(mdp, k).mdp
    branching = run_lengths(mdp.offsets)
    added = split.num_states - mdp.num_states
    assert run_lengths(split.offsets).max() <= k
    assert added == sum(max(0, math.ceil((m - 1) / (k - 1)) - 1) for m in branching.tolist())
    if k == 2:
        assert added == np.maximum(branching - 2, 0).sum()
        assert split.num_states <= mdp.num_states**2 * mdp.pairs.num_actions
    assert split.num_transitions == mdp.num_transitions + added
    new = slice(mdp.num_pairs, None)
    assert (split.discount[new] == 1).all()
    assert (split.expected_reward[new] == 0).all()
    assert (split.pairs.action[new] == mdp.pairs.num_actions).all()
    assert (run_lengths(split.pairs.offsets)[mdp.num_states :] == 1).all()
    np.testing.assert_array_equal(split.initial[mdp.num_states :], 0.0)
    short = np.flatnonzero(branching <= k)
    for pair in short:
        old, new_run = slice(*mdp.offsets[pair : pair + 2]), slice(*split.offsets[pair : pair + 2])
        for name in ("successor", "probability", "reward"):
            np.testing.assert_array_equal(getattr(split, name)[new_run], getattr(mdp, name)[old])


def products(split):
    """The probabilities of the original, by the paths of the split form."""
    trees, share = split.trees, split.mdp.probability
    first, states = trees.original.num_pairs, trees.original.num_states
    reached = np.ones(first + trees.num_auxiliary)  # of each row, which comes after its parent's
    found = np.zeros(split.original.successor.size)
    for row in range(reached.size):
        for t in range(*trees.offsets[row : row + 2]):
            if trees.origin[t] >= 0:
                found[trees.origin[t]] = reached[row] * share[t]
            else:
                reached[first + trees.child[t] - states] = reached[row] * share[t]
    return found


@given(st.data(), mdps(), SHAPES)
def test_the_original_mdp_comes_back(data, mdp, k):
    goal = data.draw(st.lists(st.booleans(), min_size=mdp.num_states, max_size=mdp.num_states))
    mdp = replace(mdp, marks={"goal": np.array(goal)})
    split = k_successor(mdp, k)
    assert split.original == mdp
    assert split.mdp.marks["goal"].tolist() == [*goal, *[False] * split.trees.num_auxiliary]
    # Theorem 1: the products along paths are the probabilities.
    np.testing.assert_allclose(products(split), mdp.probability, rtol=1e-12, atol=0)
    policy = data.draw(policies(mdp.pairs))
    assert split.lower(split.lift(policy)) == policy
    again = pickle.loads(pickle.dumps(split))  # noqa: S301
    assert again.original == mdp
    assert not again.trees.origin.flags.writeable


@given(st.data(), counts(max_states=5), SHAPES)
def test_the_original_counts_come_back_exactly(data, logged, k):
    split = k_successor(logged, k)
    assert split.original == logged
    leaf = split.trees.origin >= 0
    assert (split.counts.times[leaf] == logged.times[split.trees.origin[leaf]]).all()
    assert run_lengths(split.counts.offsets).max() <= k
    assert (split.counts.visits[: logged.pairs.num_pairs] == logged.visits).all()
    policy = data.draw(policies(logged.pairs))
    assert split.lower(split.lift(policy)) == policy


@given(st.data(), counts(max_states=5), SHAPES)
def test_theorem_2_the_estimate_has_one_path_of_the_same_probability(data, logged, k):
    split = k_successor(logged, k)
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


@given(st.data(), counts(max_states=5), SHAPES)
def test_corollary_2_the_estimate_of_the_split_counts_is_the_split_estimate(data, logged, k):
    split = k_successor(logged, k)
    ours = estimate_mdp(split.counts, split.discounts(0.9))
    estimate = estimate_mdp(logged, 0.9)
    theirs = k_successor(estimate, k).mdp
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 1}, r"k is 1, expected a whole number of at least 2"),
        ({"k": 2.5}, r"k is 2\.5"),
        ({"k": True}, r"k is True"),
    ],
)
def test_bad_settings_are_refused_by_name(settings, message):
    mdp = FiniteMDP.from_dense(figure_2(), np.zeros((5, 2)), 0.9)
    with pytest.raises(SurestepError, match=message):
        k_successor(mdp, **settings)


def test_what_belongs_to_another_model_is_refused():
    mdp = FiniteMDP.from_dense(figure_2(), np.zeros((5, 2)), 0.9)
    split = two_successor(mdp)
    with pytest.raises(SurestepError, match="the policy has 5 states, the split model has 7"):
        split.lower(Policy.uniform(mdp))
    with pytest.raises(SurestepError, match="the policy has 7 states, the original model has 5"):
        split.lift(Policy.uniform(split.mdp))
    with pytest.raises(SurestepError, match="model"):
        two_successor("an MDP")


@pytest.fixture
def grown(monkeypatch):
    monkeypatch.setattr(splits, "write_chains", splits.write_chains.function)
    return lambda k: grow_trees(PAIRS, OFFSETS, SUCCESSOR, np.arange(SUCCESSOR.size), k)


def below(found, row):
    """The transitions at the leaves below a row; auxiliary state S + x has the row K + x."""
    for t in range(found.offsets[row], found.offsets[row + 1]):
        if found.origin[t] >= 0:
            yield int(found.origin[t])
        else:
            yield from below(found, int(found.child[t]))


@pytest.mark.parametrize("k", [2, 3, 5])
def test_every_node_but_the_last_of_a_tree_is_full(k, grown):
    found = grown(k)
    auxiliary = [max(-(-(m - 1) // (k - 1)), 1) - 1 for m in LEAVES]  # ⌈(m − 1)/(k − 1)⌉ − 1
    assert found.num_auxiliary == sum(auxiliary)
    assert found.pairs.num_states == found.pairs.num_pairs == len(LEAVES) + sum(auxiliary)
    assert found.child.size == found.origin.size == SUCCESSOR.size + sum(auxiliary)
    lengths, first = np.diff(found.offsets), len(LEAVES)
    for pair, (m, more) in enumerate(zip(LEAVES, auxiliary, strict=True)):
        rows = [lengths[pair], *lengths[first : first + more]]
        first += more
        assert rows[:-1] == [k] * more
        assert rows[-1] == m - (k - 1) * more <= k
        assert sorted(below(found, pair)) == list(range(OFFSETS[pair], OFFSETS[pair + 1]))
    leaf = found.origin >= 0
    assert found.child[leaf].tolist() == SUCCESSOR[found.origin[leaf]].tolist()
    nodes = found.child[~leaf]
    assert sorted(nodes.tolist()) == list(range(len(LEAVES), found.pairs.num_states))


def test_auxiliary_states_have_one_action_of_their_own(grown):
    found = grown(2).pairs
    assert found.num_actions == 2
    assert np.diff(found.offsets).tolist() == [1] * found.num_states
    assert found.action.tolist() == [0] * len(LEAVES) + [1] * (found.num_states - len(LEAVES))


def test_there_are_no_more_states_than_can_be_numbered(grown, monkeypatch):
    states = grown(3).pairs.num_states
    monkeypatch.setattr(split_trees.arrays, "LARGEST_INDEX", states)
    assert grown(3).pairs.num_states == states
    monkeypatch.setattr(split_trees.arrays, "LARGEST_INDEX", states - 1)
    with pytest.raises(InvalidModel, match=f"has {states} states, expected at most {states - 1}"):
        grown(3)
