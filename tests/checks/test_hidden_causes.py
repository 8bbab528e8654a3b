"""Hidden causes, against linear programs and worlds with a hidden bit; and where policies go."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import surestep
from surestep import Counts, FiniteMDP, MDPBatch, Pairs, Policy, Problem, performance
from surestep._words import THIN_SPACE
from surestep.certificates import Posterior
from surestep.certificates.drawn import drawn_models
from surestep.certificates.posterior import MEMORY, model_draws
from surestep.checks import Check, enough_data, says
from surestep.checks.check import GivenCauses, GivenPolicy, GivenResult
from surestep.checks.hidden_causes import (
    believed,
    break_even,
    check,
    column_odds,
    odds_to_undo,
    strongest,
)
from surestep.pipeline.checks import worst_case
from surestep.planning.tilted import WorstCase

SEEDS = st.integers(0, 10_000)
ODDS = st.floats(1.0, 20.0)


def plain(model, policy, behavior):
    """A policy in a model whose transitions earn one reward each."""
    rewards, shares = np.stack([model.reward, model.reward]), np.ones((2, model.reward.size)) / 2
    return worst(model, rewards, shares, policy, behavior)


def worst(model, rewards, shares, policy, behavior):
    """The same with two rewards [2, T] a transition."""
    return WorstCase(
        MDPBatch.from_models([model]),
        model.initial[np.newaxis],
        rewards[:, np.newaxis],
        shares[:, np.newaxis],
        policy=policy,
        behavior=behavior,
    )


def some_model(seed, discount=0.9, states=4, actions=2):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(states), size=(states, actions))
    rows *= rng.random(rows.shape) < 0.8
    rows[..., 0] += rows.sum(axis=2) == 0
    rows /= rows.sum(axis=2, keepdims=True)
    start = np.eye(states)[0]
    model = FiniteMDP.from_dense(rows, rng.normal(size=rows.shape), discount, start)
    both = rng.dirichlet(np.ones(actions), size=(2, states))
    both[1, -1] = both[0, -1]  # one state goes on as before
    return model, *(Policy.from_dense(model, probability) for probability in both)


def worst_row(chance, worth, p, odds):
    """The least mean of `worth`, by a linear program over the true law."""
    low, high = p + (1 - p) / odds, p + (1 - p) * odds
    bounds = [*zip(low * chance, high * chance, strict=True)]
    found = linprog(worth, A_eq=np.ones((1, worth.size)), b_eq=[1.0], bounds=bounds)
    return found.fun


def worst_by_programs(model, policy, behavior, odds, rewards, shares):
    """Value iteration of the worst backup, each row by a linear program."""
    value = np.zeros(model.num_states)
    for _ in range(28):  # at a discount of 1/2, what is left is 4e-9 of the first error
        q = np.zeros(model.num_pairs)
        for k in range(model.num_pairs):
            row = slice(model.offsets[k], model.offsets[k + 1])
            state = model.pairs.state[k]
            same = model.pairs.state == state
            as_before = np.allclose(policy.probability[same], behavior.probability[same])
            worth = rewards[:, row] + model.discount[k] * value[model.successor[row]]
            chance = (shares[:, row] * model.probability[row]).ravel()
            p = 1.0 if as_before else behavior.probability[k]
            q[k] = worst_row(chance, worth.ravel(), p, odds)
        value = np.bincount(model.pairs.state, policy.probability * q)
    return value


@pytest.mark.one_quick
@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("odds", [1.5, 6.0])  # odds of 1 are those of the next test
def test_the_worst_case_is_that_of_linear_programs(seed, odds):
    model, behavior, policy = some_model(seed, discount=0.5)
    rng = np.random.default_rng(seed)
    share, spread = rng.random((2, model.reward.size))
    rewards = np.stack([model.reward - (1 - share) * spread, model.reward + share * spread])
    shares = np.stack([share, 1 - share])
    case = worst(model, rewards, shares, policy, behavior)
    expected = worst_by_programs(model, policy, behavior, odds, rewards, shares)
    usual = performance(model, behavior)
    assert case.gains(odds)[0] == pytest.approx(model.initial @ expected - usual, abs=1e-6)


@given(seed=SEEDS, first=ODDS, second=ODDS)
def test_a_stronger_cause_leaves_less_whatever_was_asked_before(seed, first, second):
    model, behavior, policy = some_model(seed)
    case = plain(model, policy, behavior)
    low, high = sorted((first, second))
    worse, better = case.gains(high)[0], case.gains(low)[0]
    assert worse <= better + 1e-6
    assert better == pytest.approx(plain(model, policy, behavior).gains(low)[0], abs=1e-6)
    without = performance(model, policy) - performance(model, behavior)
    assert case.gains(1.0)[0] == pytest.approx(without, abs=1e-7)
    assert case.plain_gains[0] == pytest.approx(without, abs=1e-7)
    assert better <= without + 1e-6


def test_who_goes_on_as_before_has_nothing_to_fear():
    model, behavior, _ = some_model(1)
    assert plain(model, behavior, behavior).gains(10.0)[0] == pytest.approx(0.0, abs=1e-9)


def test_without_a_discount_episodes_still_end():
    rows = [[[0.5, 0.5], [0.1, 0.9]], [[0.0, 0.0], [0.0, 0.0]]]
    model = FiniteMDP.from_dense(rows, [[-1.0, -1.0], [0.0, 0.0]], 1.0)
    behavior = Policy.uniform(model)
    case = plain(model, Policy.deterministic(model, [1, 0]), behavior)
    # p = 1/2, Γ = 3: α = 2/3, and a quarter is the tail, which may all stay: 1 − 0.9 · 2/3.
    stays = 2 / 3 * 0.1 + 1 / 3 * 0.4
    assert case.gains(3.0)[0] == pytest.approx(-1 / (1 - stays) - performance(model, behavior))


@given(edges=st.lists(st.floats(1.001, 19.0), min_size=1, max_size=30), data=st.data())
def test_odds_at_which_gains_are_gone_are_found_by_rank(edges, data):
    rank = data.draw(st.integers(1, len(edges)))
    gains = np.array(edges) - 1
    drawn = SimpleNamespace(plain_gains=gains, gains=lambda odds: np.array(edges) - odds)
    delta = rank / (len(edges) + 1) + 1e-9
    belief = SimpleNamespace(delta=delta, lower=np.sort(gains)[rank - 1] + 1)  # above what is drawn
    found = break_even(believed(drawn, belief), 20.0)
    assert found == pytest.approx(sorted(edges)[rank - 1], rel=0.01)
    assert found <= sorted(edges)[rank - 1]
    assert break_even(lambda odds: -100.0, 20.0) == 1.0
    assert break_even(lambda odds: 100.0, 20.0) == 20.0


# ---- worlds with a hidden bit -------------------------------------------------------------------
# Half of all are well. Treatment pays 1 if one is well, and else nothing. People treat half of
# all, and the well more often: the odds are Γ times those of treating anybody, so q = Γ/(1 + Γ).


def logged(rows, mean, chosen, discount=1.0):
    """A policy that always treats, in a world as its log shows it: treated, 0 or 1 is paid."""
    model = FiniteMDP.from_dense(rows, mean, discount)
    behavior = Policy.from_dense(model, chosen)
    chance = model.expected_reward[np.repeat(np.arange(model.num_pairs), np.diff(model.offsets))]
    pays = (
        model.pairs.action[np.repeat(np.arange(model.num_pairs), np.diff(model.offsets))] == 1
    ) & (chance > 0)
    rewards = np.where(pays, [[0.0], [1.0]], model.reward)
    shares = np.where(pays, [1 - chance, chance], 0.5)
    treat = Policy.deterministic(model, np.ones(model.num_states, int))
    return worst(model, rewards, shares, treat, behavior)


@pytest.mark.parametrize("odds", [1.5, 2.0, 4.0])
def test_a_cause_drawn_anew_in_every_step_does_what_the_worst_case_says(odds):
    q = odds / (1 + odds)
    waiting = 1 - q  # then treatment is worth as much as what people do
    rows, mean, discount = np.ones((1, 2, 1)), [[waiting, q]], 0.9
    case = logged(rows, mean, [[0.5, 0.5]], discount)
    assert case.gains(1.0)[0] == pytest.approx((q - 0.5) / (1 - discount))
    assert case.gains(odds)[0] == pytest.approx(0.0, abs=1e-6)  # 1/2 is earned, and was before
    assert break_even(lambda odds: case.gains(odds)[0], 20.0) == pytest.approx(odds, rel=0.01)


@pytest.mark.parametrize("odds", [1.5, 2.0, 3.0])
def test_a_cause_that_lasts_does_more_than_the_worst_case_says(odds):
    """Who waits leaves; who is treated is treated or waits again. The well stay well."""
    q = odds / (1 + odds)
    sick = 1 / (1 + odds)  # treated in the second step, where q of all are well; half in all
    well = (0.5 - (1 - q) * sick) / q
    assert 1 / odds <= well / (1 - well) <= odds
    assert sick / (1 - sick) == pytest.approx(1 / odds)
    rows = np.zeros((3, 2, 3))
    rows[0, 0, 2] = rows[0, 1, 1] = rows[1, :, 2] = 1.0
    left = q + 0.5 - q * well  # what people earn who wait at once, so that all earn more than 1/2
    mean = [[left, 0.0], [0.0, 2 * q * well], [0.0, 0.0]]
    case = logged(rows, mean, [[0.5, 0.5]] * 3)
    truth = 0.5 - (0.5 * left + 0.5 * q * well)  # half of all are well, if all are treated
    assert truth < 0 < case.gains(odds)[0]


@pytest.mark.thorough
def test_a_log_with_a_hidden_bit_is_told_its_strength():
    """Treatment gains nothing, and seems to gain 1/6: the odds of the hidden bit are 2."""
    rng = np.random.default_rng(1)
    is_well = rng.random(6_000) < 0.5
    treated = rng.random(6_000) < np.where(is_well, 2 / 3, 1 / 3)
    table = {
        "state": ["ward"] * 6_000,
        "action": np.where(treated, "treat", "wait").tolist(),
        "reward": np.where(treated, is_well, 1 / 3).tolist(),
    }
    result = surestep.improve(table, discount=0, ending=(0, 1), worlds=0)
    assert result.verdict == "proved better"  # which it is not
    (found,) = (one for one in result.record.checks if one.code == "hidden-causes")
    assert found.figures["estimate_odds"] == pytest.approx(2.0, rel=0.1)
    assert 1.5 < result.hidden_odds < found.figures["estimate_odds"]
    assert found.picture[0].value == pytest.approx(result.estimated_gain)
    few = {name: column[:600] for name, column in table.items()}
    trial = surestep.improve(few, discount=0, ending=(0, 1), worlds=0, behavior="uniform")
    assert trial.verdict == "proved better"
    assert trial.hidden_odds is None
    assert "does not record" not in trial.report


# ---- models of the posterior --------------------------------------------------------------------


def test_drawn_models_have_the_gains_of_the_posterior():
    rng = np.random.default_rng(3)
    times = rng.integers(0, 20, size=(4, 2, 4))
    counts = Counts.from_dense(times, rewards=rng.normal(size=(4, 2, 4)))
    behavior, policy = (Policy.from_dense(counts, rng.dirichlet([1, 1], 4)) for _ in range(2))
    problem = Problem(counts=counts, behavior=behavior, discount=0.8, value_bounds=(-50.0, 50.0))
    judge = Posterior(prior="weight", draws=19)
    models = drawn_models(model_draws(problem, judge), MEMORY)
    case = worst_case(problem, [*models], policy)
    expected = judge.gains(problem, [policy])[0]
    assert case.gains(1.0).tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    assert case.plain_gains == pytest.approx(case.gains(1.0), abs=1e-9)
    visited = problem.estimate()
    assert worst_case(problem, [visited], policy).gains(1.0)[0] == pytest.approx(
        performance(visited, policy) - performance(visited, behavior), abs=1e-6
    )


def test_the_belief_is_gone_before_the_estimate_and_no_later():
    model, behavior, policy = some_model(5)
    case = max(
        (plain(model, policy, behavior), plain(model, behavior, policy)),
        key=lambda one: one.gains(1.0)[0],
    )
    lower = case.gains(1.0)[0] / 2
    belief = SimpleNamespace(delta=0.1, lower=lower)
    given = GivenCauses(case, case, belief, None, np.ones(8, int), {"a": ["x"] * 4})
    found = check(SimpleNamespace(causes=given))
    half, whole = found.figures["belief_odds"], found.figures["estimate_odds"]
    assert 1 < half < whole
    assert case.gains(half)[0] == pytest.approx(case.gains(1.0)[0] - lower, rel=0.05)
    alone = check(SimpleNamespace(causes=given._replace(drawn=None)))
    assert alone.figures["belief_odds"] == alone.figures["estimate_odds"] == whole
    assert odds_to_undo([found]) == half
    assert check(SimpleNamespace(causes="no-claim")).why == "no-claim"


def test_results_of_earlier_releases_keep_their_sentence():
    figures = {"proved": 0.00063, "estimated": 0.04, "lower": 350.0}
    older = Check(code="hidden-causes", outcome="told", figures=figures)
    assert f"by more than 4{THIN_SPACE}% at every step" in says(older)
    assert odds_to_undo([older]) is strongest([older]) is None
    with pytest.raises(ValueError, match="has the figures proved"):
        Check(code="hidden-causes", outcome="told", figures={"proved": 0.1})


# ---- how strong columns are ---------------------------------------------------------------------


def decisions(seed, chances, rows, values=6):
    """Decisions [K] by a column that tilts them, one that does not, and one with six values."""
    rng = np.random.default_rng(seed)
    cells = [(a, b, c) for a in range(2) for b in range(2) for c in range(values)]
    state = rng.integers(len(cells), size=rows)
    action = rng.random(rows) < np.array([chances[a] for a, _, _ in cells])[state]
    visits = np.bincount(2 * state + action, minlength=2 * len(cells))
    columns = dict(zip(("tilts", "plain", "many"), zip(*cells, strict=True), strict=True))
    texts = {name: [*map(str, column)] for name, column in columns.items()}
    return visits, Pairs.full(len(cells), 2), texts


def test_a_column_is_as_strong_as_it_tilts_and_noise_has_no_strength():
    """0.4 and 0.7 beside 0.55: log odds differ by 0.606 and 0.647."""
    noise = []
    for seed in range(40):
        odds = column_odds(*decisions(seed, (0.4, 0.7), rows=2_000))
        assert odds["tilts"] == pytest.approx(np.exp(0.62), rel=0.12)
        noise += [odds["plain"], odds["many"]]
    assert np.mean(np.array(noise) == 1.0) > 0.85
    assert max(noise) < 1.25  # where the largest odds ratio is above 2


def test_a_column_alone_has_no_strength_and_none_is_found_without_decisions():
    visits, pairs, columns = decisions(1, (0.4, 0.7), rows=500)
    assert column_odds(visits, pairs, {"tilts": columns["tilts"]}) == {}
    assert set(column_odds(0 * visits, pairs, columns).values()) == {1.0}
    same = column_odds(visits * 10**8, pairs, columns)["tilts"]
    assert same == pytest.approx(column_odds(visits * 10**4, pairs, columns)["tilts"], rel=0.05)


# ---- where the new policy goes ------------------------------------------------------------------


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
