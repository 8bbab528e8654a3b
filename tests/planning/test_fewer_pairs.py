"""Which pairs a proof leaves out, by the kernels as plain Python, which checks every index."""

import numpy as np
import pytest

from surestep import FiniteMDP
from surestep.planning import pruning
from surestep.planning.proof import Verdict
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
    left = pruned(choice(1.0, 0.0), np.zeros(1), Verdict(low, high, goal=1.0, floor=0.0))
    assert left.reward.tolist() == [1.0, 0.0][:kept]
    assert left.pair_offsets.tolist() == [0, kept]


def test_rounding_keeps_pairs_on_both_sides():
    for floor, kept in ((0.24, 1), (0.26, 2)):  # ½ · 1 + 2 · floor against 1
        left = pruned(choice(0.0, 1.0), np.zeros(1), Verdict(0.0, 1.0, goal=1.0, floor=floor))
        assert left.reward.size == kept
        assert left.reward[-1] == 1.0


def test_few_pairs_less_are_not_worth_a_copy():
    verdict = Verdict(-0.1, 0.1, goal=1.0, floor=0.0)
    eleven = choice(*[1.0] * 10, 0.0)
    assert pruned(eleven, np.zeros(1), verdict) is eleven
    ten = pruned(choice(*[1.0] * 9, 0.0), np.zeros(1), verdict)
    assert ten.reward.tolist() == [1.0] * 9
    assert ten.offsets.tolist() == list(range(10))
    assert ten.discount.tolist() == [0.5] * 9
