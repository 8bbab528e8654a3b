"""What residuals prove, number by number, and which pairs they rule out."""

import numpy as np
import pytest

from surestep import FiniteMDP, Pairs
from surestep.errors import NotConverged
from surestep.planning.proof import (
    DEFAULT_TOLERANCE,
    LOOSEST_DEFAULT,
    ROW_EXCESS,
    Horizon,
    Judge,
    Verdict,
    certified_steps,
    horizon_of,
    longest_horizon,
    most_terms,
)
from surestep.planning.pruning import WORTH_COPYING, Backup, pruned

STEPS = Horizon(low=2.0, high=10.0, uniform=False)
ULP = 2.0**-52


def ring(discounts, ends=()):
    """States in a ring, each with its discount; some end the episode instead."""
    size = len(discounts)
    lengths = np.array([0 if s in ends else 1 for s in range(size)])
    successor = [(s + 1) % size for s in range(size) if s not in ends]
    return FiniteMDP(
        Pairs.full(size, 1),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.array(successor, int),
        np.ones(len(successor)),
        np.ones(len(successor)),
        np.array(discounts, float),
        np.full(size, 1 / size),
    )


def test_a_horizon_is_bounded_from_both_sides_by_the_discounts():
    one = horizon_of(ring([0.9, 0.9]))
    assert one.uniform
    assert one.low == 1 / (1 - 0.9 * (1 - ROW_EXCESS)) < 10 < one.high
    assert one.high == longest_horizon(0.9) == pytest.approx(10)
    two = horizon_of(ring([0.5, 0.9]))
    assert not two.uniform
    assert (two.low, two.high) == (1 / (1 - 0.5 * (1 - ROW_EXCESS)), longest_horizon(0.9))
    ending = horizon_of(ring([0.9, 0.9], ends=[1]))
    assert not ending.uniform
    assert (ending.low, ending.high) == (1.0, longest_horizon(0.9))


def test_a_discount_that_rounding_can_lift_to_1_is_refused():
    assert longest_horizon(0.0) == 1.0
    assert longest_horizon(1 - 2 * ROW_EXCESS) == pytest.approx(1 / ROW_EXCESS, rel=1e-3)
    with pytest.raises(NotConverged, match="too near 1"):
        longest_horizon(1 - ROW_EXCESS / 2)


@pytest.mark.parametrize(("length", "below"), [(1, 0.0), (5, 0.0), (5, 0.9), (40, 0.5)])
def test_steps_without_discounting_are_counted(length, below):
    # `length` steps with discount 1, then one with discount `below` back to the start:
    # w = length + 1 + below · w at the start.
    mdp = ring([1.0] * length + [below])
    expected = (length + 1) / (1 - below)
    found = certified_steps(mdp)
    assert expected * (1 - 1e-9) <= found
    # 50 sweeps bring the start w = (1 + γ·length)/(1 − γ) + length down.
    assert found <= 1.5 * expected
    assert horizon_of(mdp) == Horizon(1.0, found, uniform=False)


def test_ends_count_as_steps():
    assert certified_steps(ring([1.0, 1.0, 1.0], ends=[2])) == pytest.approx(3, rel=1e-9)


def judge(tolerance=None, terms=10, leeway=0.0):
    return Judge(STEPS, 3.0, terms, tolerance, leeway)


@pytest.mark.parametrize(
    ("residuals", "low", "high"),
    [((-1.0, 2.0), -10, 20), ((1.0, 2.0), 2, 20), ((-2.0, -1.0), -20, -2), ((0.0, 0.0), 0, 0)],
)
def test_a_residual_is_multiplied_by_the_bound_that_is_worse(residuals, low, high):
    verdict = judge().verdict(residuals, 5.0)
    slack = 10 * ULP * 8.0  # terms · 2⁻⁵² · (max |R| + max |v|)
    assert verdict.low == pytest.approx(low, abs=11 * slack)
    assert verdict.high == pytest.approx(high, abs=11 * slack)
    # Rounding is on the safe side, and no smaller than it may be.
    assert verdict.low <= low - 2 * slack * (1 - 1e-9)
    assert verdict.high >= high + 2 * slack * (1 - 1e-9)
    assert verdict.error == max(-verdict.low, verdict.high)
    assert verdict.middle == (verdict.low + verdict.high) / 2


def test_ties_and_rounding_are_the_floor_of_a_residual():
    verdict = judge().verdict((0.0, 0.0), 5.0, 1e-6)
    assert verdict.floor == pytest.approx(8 * (1e-6 + 10 * ULP), rel=1e-12)
    assert verdict.high == pytest.approx(10 * verdict.floor, rel=1e-12)
    assert verdict.low == -verdict.high
    idle = judge(leeway=1e-6).verdict((0.0, 0.0), 5.0)
    assert idle.floor == verdict.floor
    assert idle.error == pytest.approx(10 * 8 * 10 * ULP, rel=1e-12)  # what is idle is no error


def test_the_goal_is_asked_for_or_what_doubles_can_prove():
    assert judge(tolerance=0.25).verdict((0.0, 0.0), 5.0).goal == 0.25
    assert judge().verdict((0.0, 0.0), 5.0).goal == DEFAULT_TOLERANCE * 8
    assert judge().verdict((0.0, 0.0), 5.0, 1e-8).goal == pytest.approx(4e-8 * 8 * 10, rel=1e-5)
    assert judge(leeway=1e-8).verdict((0.0, 0.0), 5.0).goal == pytest.approx(3.2e-6, rel=1e-5)
    assert judge().verdict((0.0, 0.0), 5.0, 1e-2).goal == LOOSEST_DEFAULT * 8


def test_good_is_an_error_of_at_most_the_goal():
    assert Verdict(low=-1.0, high=0.5, goal=1.0, floor=0.0).good
    assert Verdict(low=-0.5, high=1.0, goal=1.0, floor=0.0).good
    assert not Verdict(low=-1.0, high=1.1, goal=1.0, floor=0.0).good
    assert not Verdict(low=-1.1, high=1.0, goal=1.0, floor=0.0).good


@pytest.mark.parametrize("bad", [(np.nan, 0.0), (0.0, np.inf), (-np.inf, 0.0)])
def test_what_is_not_finite_proves_nothing(bad):
    with pytest.raises(NotConverged, match="too large for doubles"):
        judge().verdict(bad, 1.0)
    with pytest.raises(NotConverged, match="too large for doubles"):
        judge().verdict((0.0, 0.0), np.inf)


def test_the_terms_of_a_backup_are_successors_and_pairs():
    assert most_terms(np.array([0, 3, 3, 5]), np.array([0, 2, 3])) == 3 + 2 + 8
    mdp = ring([0.5, 0.5])
    asked = Judge.of(mdp, 0.1)
    assert (asked.reward_scale, asked.terms, asked.tolerance) == (1.0, 1 + 1 + 8, 0.1)


# ---- pruning ----------------------------------------------------------------------------------


def choices(q, discount=0.5):
    """One state whose pairs are worth `q`: they end the episode."""
    size = len(q)
    return Backup(
        np.array([0, size]),
        np.zeros(size + 1, np.int64),
        np.zeros(0, np.int32),
        np.zeros(0),
        np.full(size, discount),
        np.array(q, float),
    )


def kept(q, verdict, discount=0.5):
    """The worth of the pairs that are left."""
    return pruned(choices(q, discount), np.zeros(1), verdict).reward.tolist()


@pytest.mark.parametrize(
    ("low", "high", "width"), [(-1.0, 3.0, 2.0), (1.0, 3.0, 1.5), (-3.0, -1.0, 1.5), (0.0, 0.0, 0)]
)
def test_pairs_are_left_out_beyond_what_the_bracket_allows(low, high, width):
    # γ (max(high, 0) − min(low, 0)) below the best, with γ = ½.
    verdict = Verdict(low, high, goal=1.0, floor=0.0)
    near, far = 10 - width * (1 - 1e-9), 10 - width * (1 + 1e-9) - 1e-9
    assert kept([near, 10.0, far, far], verdict) == [near, 10.0]


def test_rounding_in_both_values_widens_what_is_kept():
    verdict = Verdict(0.0, 0.0, goal=1.0, floor=0.25)
    assert kept([10 - 0.5 + 1e-9, 10.0, 10 - 0.5 - 1e-9, 0.0], verdict) == [9.5 + 1e-9, 10.0]


def test_the_largest_discount_counts():
    model = choices([10.0, 8.5, 7.9, 0.0])._replace(discount=np.array([0.1, 0.2, 0.3, 0.5]))
    left = pruned(model, np.zeros(1), Verdict(-2.0, 2.0, goal=1.0, floor=0.0))
    assert left.reward.tolist() == [10.0, 8.5]
    assert left.discount.tolist() == [0.1, 0.2]


def test_a_copy_is_made_only_if_enough_is_left_out():
    verdict = Verdict(0.0, 0.0, goal=1.0, floor=0.0)
    exactly = choices([1.0] * 9 + [0.0])
    assert WORTH_COPYING == 0.9
    assert pruned(exactly, np.zeros(1), verdict).reward.size == 9
    fewer = choices([1.0] * 10 + [0.0])
    assert pruned(fewer, np.zeros(1), verdict) is fewer


def test_what_is_kept_is_copied_with_its_transitions():
    mdp = FiniteMDP(
        Pairs.full(2, 2),
        np.array([0, 2, 3, 3, 5]),
        np.array([0, 1, 1, 0, 1]),
        np.array([0.25, 0.75, 1.0, 0.5, 0.5]),
        np.array([1.0, 1.0, -9.0, 2.0, 2.0]),
        np.full(4, 0.5),
        np.array([1.0, 0.0]),
        np.array([0.0, 0.0, -9.0, 0.0]),
    )
    left = pruned(Backup.of(mdp), np.array([2.0, 4.0]), Verdict(-1.0, 1.0, goal=1.0, floor=0.0))
    assert left.pair_offsets.tolist() == [0, 1, 2]
    assert left.offsets.tolist() == [0, 2, 4]
    assert left.successor.tolist() == [0, 1, 0, 1]
    assert left.probability.tolist() == [0.25, 0.75, 0.5, 0.5]
    assert left.reward.tolist() == [1.0, 2.0]
