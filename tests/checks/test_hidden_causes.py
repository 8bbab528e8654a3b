"""Hidden causes, against changed models; and where the new policy goes, against the log."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep import FiniteMDP, Pairs, Policy, evaluate
from surestep.checks import enough_data
from surestep.checks.check import GivenPolicy, GivenResult
from surestep.checks.hidden_causes import break_even, break_even_in_model, check
from surestep.model.statements import Statement

SHARES = st.floats(0.001, 0.999)


def loss_at_most(epsilon, span, discount):
    """By how much rows that are off by ε can change the difference of two policies."""
    return 2 * span * epsilon / (1 - discount * (1 - epsilon)) if epsilon > 0 else 0.0


def test_where_nothing_varies_only_other_rows_altogether_undo_a_claim():
    assert break_even_in_model(0.5, (0.0, 0.0), 0.9) == 1.0
    assert break_even_in_model(9.0, (1.0, 1.0), 0.5) == 1.0


@given(lower=SHARES, span=st.floats(0.1, 10.0), discount=st.floats(0.0, 0.999))
def test_at_the_break_even_the_claim_is_used_up(lower, span, discount):
    epsilon = break_even(lower, span, discount)
    assert 0 < epsilon <= 1
    if epsilon < 1:
        assert loss_at_most(epsilon, span, discount) == pytest.approx(lower, rel=1e-9)


@given(
    seed=st.integers(0, 10_000),
    epsilon=st.floats(0.0, 1.0),
    discount=st.sampled_from([0.0, 0.5, 0.9, 0.99]),
    corners=st.booleans(),
)
def test_no_change_of_rows_costs_more_than_the_bound(seed, epsilon, discount, corners):
    """Both policies may meet another world, each with outcomes that differ by at most ε."""
    rng = np.random.default_rng(seed)
    states, actions = 3, 2
    rows = rng.dirichlet(np.ones(states), size=(states, actions))
    rewards = rng.choice([0.0, 1.0], size=(states, actions, states))
    span = 1 / (1 - discount)  # rewards lie between 0 and 1
    start = np.eye(states)[0]
    worth, widths = [], []
    for side in (-1, 1):  # the worst for one policy, the best for the other
        model = FiniteMDP.from_dense(rows, rewards, discount, start)
        policy = Policy.from_dense(model, rng.dirichlet(np.ones(actions), size=states))
        before = evaluate(model, policy)
        target = rewards + discount * before
        if corners:  # as much as ε allows moves from the best outcome to the worst one
            moved = move(rows, side * target, epsilon)
        else:
            other = rng.dirichlet(np.ones(states), size=(states, actions))
            moved = (1 - epsilon) * rows + epsilon * other
        assert np.abs(moved - rows).sum(axis=2).max() / 2 <= epsilon + 1e-12
        after = evaluate(FiniteMDP.from_dense(moved, rewards, discount, start), policy)
        worth.append(abs(after[0] - before[0]))
        widths.append(1.0 + discount * np.ptp(before))
    lost = sum(worth)
    assert lost <= loss_at_most(epsilon, span, discount) + 1e-9
    # A claim that is just used up breaks even at no larger ε.
    assert break_even_in_model(lost, tuple(widths), discount) <= epsilon + 1e-9


def move(rows, target, epsilon):
    """Moves mass from the largest targets of each row to its smallest."""
    moved = rows.copy()
    for s, a in np.ndindex(rows.shape[:2]):
        left, worst = epsilon, int(np.argmin(target[s, a]))
        for best in np.argsort(-target[s, a]):
            taken = min(left, moved[s, a, best]) if best != worst else 0.0
            moved[s, a, best] -= taken
            moved[s, a, worst] += taken
            left -= taken
    return moved


def test_the_bound_is_reached():
    """A world that pays 1 for ever, or with probability ε a step falls to where it pays nothing."""
    epsilon, discount = 0.1, 0.9
    rows = np.zeros((2, 1, 2))
    rows[0, 0], rows[1, 0] = [1 - epsilon, epsilon], [0, 1]
    rewards = np.zeros((2, 1, 2))
    rewards[0, 0, 0] = 1.0
    model = FiniteMDP.from_dense(rows, rewards, discount, np.eye(2)[0])
    lost = 1 / (1 - discount) - evaluate(model, Policy.uniform(model))[0]
    assert lost == pytest.approx(loss_at_most(epsilon, 1 / (1 - discount), discount) / 2)


def test_doctors_who_see_more_change_the_chances_by_more_than_a_wrong_claim_allows():
    """In `hidden-cause` every policy is worth the same, so that every claimed gain is wrong."""
    # P(severe | treated) is 0.8 in the log, and 0.5 if anybody is treated: then 0.3 of all move
    # from a mild course to a severe one, 0.9 of which end elsewhere.
    strength = 0.3 * 0.9
    for lower in (0.01, 0.1, 0.5, 0.9):
        assert break_even(lower, 1.0, 0.99) < strength


def hidden_check(lower, span, widths, discount, notes=()):
    claim = SimpleNamespace(lower=lower, notes=notes)
    return check(SimpleNamespace(claim=claim, span=span, widths=widths, discount=discount))


def test_without_a_claim_or_a_discount_nothing_is_told():
    widths = (0.5, 0.4)
    assert hidden_check(None, 1.0, widths, 0.9).why == "no-claim"
    assert hidden_check(-0.1, 1.0, widths, 0.9).why == "no-claim"
    assert hidden_check(0.1, 1.0, widths, 1.0).why == "no-discount"
    told = hidden_check(0.1, 1.0, widths, 0.9)
    assert told.outcome == "told"
    assert told.figures["proved"] == break_even(0.1, 1.0, 0.9)
    assert told.figures["estimated"] == pytest.approx(0.1 * 0.1 / 0.9)
    assert hidden_check(5.0, 1.0, widths, 0.9).figures["estimated"] == 1.0
    free = hidden_check(0.1, 1.0, widths, 0.9, [Statement("need-not-be-markov", {})])
    assert free.why == "not-assumed"


NAMES = ["low", "middle", "high"]
VISITS = np.array([2.0, 2.0, 6.0])


def checked(decisions, is_open=(False, False, False), shown=None):
    decisions = np.array(decisions)
    shown = decisions if shown is None else np.array(shown)
    return found_in(VISITS, decisions, shown, np.array(is_open))


def found_in(time, decisions, shown, is_open):
    """The check of a policy with one pair a state."""
    chances = (np.ones(3), np.ones(3))
    judging = shown - decisions
    pairs = Pairs(np.arange(4), np.zeros(3, int), 1)
    seen = (decisions, judging, np.ones(3, bool), time, is_open, NAMES)
    nothing = dict.fromkeys(GivenResult.__dataclass_fields__)
    policy = GivenPolicy(pairs, *chances, *seen)
    return enough_data.check(GivenResult(**nothing | {"policy": policy}))


def test_time_in_states_that_the_log_hardly_knows_fails():
    found = checked([500, 480, 20])
    assert found.outcome == "failed"
    assert found.figures["scarce_share"] == pytest.approx(0.6)
    assert found.figures["scarce_decisions"] == 20.0
    assert [mark.name for mark in found.picture] == ["high", "low", "middle"]
    assert [mark.value for mark in found.picture] == pytest.approx([0.6, 0.2, 0.2])
    assert [mark.marked for mark in found.picture] == [True, False, False]


@pytest.mark.parametrize(
    ("time", "decisions", "is_open", "outcome"),
    [
        ([0, 0, 1], [95, 0, 5], "   ", "failed"),
        ([0, 0, 1], [91, 0, 9], "   ", "failed"),
        ([0, 0, 1], [90, 0, 10], "   ", "passed"),  # a tenth of its share of the time
        ([50, 0, 50], [100, 0, 0], "   ", "passed"),  # half of the time is not most of it
        ([49, 0, 51], [100, 0, 0], "   ", "failed"),
        ([0, 1, 9], [0, 80, 20], "o o", "failed"),
        ([0, 1, 9], [0, 56, 44], "o o", "failed"),
        ([0, 1, 9], [0, 55, 45], "o o", "passed"),  # half as much of the one as of the other
        ([0, 50, 50], [0, 80, 20], "o o", "passed"),
        ([0, 49, 51], [0, 80, 20], "o o", "failed"),
        ([4, 2, 4], [50, 50, 50], "o o", "passed"),
    ],
)
def test_it_fails_beyond_the_border_and_not_at_it(time, decisions, is_open, outcome):
    visits = np.array(decisions)
    found = found_in(np.array(time), visits, visits, np.array([sign == "o" for sign in is_open]))
    assert found.outcome == outcome


def test_a_bin_that_is_open_below_does_not_vouch_for_one_that_is_open_above():
    found = checked([600, 200, 200], [True, False, True])
    assert found.outcome == "failed"
    assert found.figures["open_share"] == pytest.approx(0.6)
    assert found.figures["open_decisions"] == 200
    assert [mark.marked for mark in found.picture] == [True, False, False]


def test_held_out_rows_show_decisions_and_do_not_say_which_states_are_scarce():
    alone = checked([500, 480, 20])
    both = checked([500, 480, 20], shown=[500, 480, 2020])
    assert both.figures["scarce_share"] == alone.figures["scarce_share"]
    assert both.figures["scarce_decisions"] == 2020
    assert both.picture[0].beside == pytest.approx(2020 / 3000)


def test_without_decisions_nothing_breaks():
    nothing = np.zeros(3, np.int64)
    found = found_in(np.zeros(3), nothing, nothing, nothing == 0)
    assert (found.outcome, found.picture, found.figures["open_share"]) == ("passed", (), 0.0)
    unchanged = GivenResult(**dict.fromkeys(GivenResult.__dataclass_fields__))
    assert enough_data.check(unchanged).why == "no-change"
