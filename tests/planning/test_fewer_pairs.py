"""Which pairs a proof leaves out, by the kernels as plain Python, which checks every index."""

import numpy as np
import pytest

from surestep import FiniteMDP
from surestep.planning import pruning
from surestep.planning.proof import Bracket
from surestep.planning.pruning import Backup, pruned


@pytest.fixture(autouse=True)
def plain_kernels(monkeypatch):
    for name in ("count_kept", "copy_kept"):
        monkeypatch.setattr(pruning, name, getattr(pruning, name).function)


def choice(*rewards):
    """One state that leads back to itself, with these rewards, at discount ½."""
    size = len(rewards)
    return Backup.of(FiniteMDP.from_dense(np.ones((1, size, 1)), [list(rewards)], 0.5))


@pytest.mark.parametrize(
    ("low", "high", "kept"),
    [
        (-1.0, 0.9, 1),  # ½ · 1.9 is less than the difference of 1
        (-1.0, 1.1, 2),
        (0.5, 1.9, 1),  # what is surely above is not below
        (0.5, 2.1, 2),
        (-1.9, -0.5, 1),
        (-2.1, -0.5, 2),
    ],
)
def test_a_pair_goes_if_what_is_unknown_cannot_make_up_for_it(low, high, kept):
    left = pruned(choice(1.0, 0.0), np.zeros(1), Bracket(low, high, goal=1.0, floor=0.0))
    assert left.reward.tolist() == [1.0, 0.0][:kept]
    assert left.pair_offsets.tolist() == [0, kept]


def test_rounding_keeps_pairs_on_both_sides():
    for floor, kept in ((0.24, 1), (0.26, 2)):  # ½ · 1 + 2 · floor against 1
        left = pruned(choice(0.0, 1.0), np.zeros(1), Bracket(0.0, 1.0, goal=1.0, floor=floor))
        assert left.reward.size == kept
        assert left.reward[-1] == 1.0


@pytest.mark.parametrize(("share", "kept"), [(1 - 2e-12, 2), (1 - 4e-12, 1)])
def test_rows_may_sum_to_a_little_more_than_1(share, kept):
    # By 3e-12 at most: ½ · 2 · share · (1 + 3e-12) against a difference of 1.
    left = pruned(choice(1.0, 0.0), np.zeros(1), Bracket(0.0, 2 * share, goal=1.0, floor=0.0))
    assert left.reward.size == kept


def test_what_is_left_are_whole_pairs_of_every_state():
    # Three states of three pairs that lead to 1, 2 or 3 states; some pairs earn too little.
    rng, kept = np.random.default_rng(0), [0, 2, 4, 6, 7]
    lengths = rng.permutation(np.repeat([1, 2, 3], 3))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    size = int(starts[-1])
    whole = Backup(
        np.array([0, 3, 6, 9]),
        starts,
        rng.integers(0, 3, size).astype(np.int32),
        rng.random(size),
        rng.random(9),
        np.where(np.isin(np.arange(9), kept), 0.0, -9.0) + rng.random(9),
    )
    bracket = Bracket(-1.0, 1.0, goal=1.0, floor=0.0)
    left = pruned(whole, np.zeros(3), bracket)
    assert left.pair_offsets.tolist() == [0, 2, 3, 5]
    assert left.offsets.tolist() == [0, *np.cumsum(lengths[kept]).tolist()]
    for name in ("reward", "discount"):
        assert getattr(left, name).tolist() == getattr(whole, name)[kept].tolist()
    for name in ("successor", "probability"):
        rows = [getattr(whole, name)[starts[k] : starts[k + 1]] for k in kept]
        assert getattr(left, name).tolist() == np.concatenate(rows).tolist()


def test_few_pairs_less_are_not_worth_a_copy():
    bracket = Bracket(-0.1, 0.1, goal=1.0, floor=0.0)
    eleven = choice(*[1.0] * 10, 0.0)
    assert pruned(eleven, np.zeros(1), bracket) is eleven
    ten = pruned(choice(*[1.0] * 9, 0.0), np.zeros(1), bracket)
    assert ten.reward.tolist() == [1.0] * 9
    assert ten.offsets.tolist() == list(range(10))
    assert ten.discount.tolist() == [0.5] * 9
