"""Other cuts: gains in states that are cut otherwise, and a gain that is one of the bins."""

import numpy as np
import pytest

import surestep
from surestep import DecisionLog, FiniteMDP, Pairs, Policy, performance, read_log
from surestep.checks import cuts
from surestep.checks.cuts import Cut, Terms, carried

ALL_CHOSE = Terms(discount=0.9, value_bounds=(0.0, 1.0), judge=None)

TREAT = np.array([0.1, 0.9])  # how often the healthy and the ill are treated
WELL = np.array([[0.8, 0.95], [0.1, 0.3]])  # [severity, treated]: everybody is helped


def patients(number, seed=0):
    """Patients of two severities, x = 0 and 1, or 2 and 3, who get well or not, in one step."""
    rng = np.random.default_rng(seed)
    x = rng.integers(4, size=number)
    treated = (rng.random(number) < TREAT[x % 2]).astype(int)
    well = (rng.random(number) < WELL[x % 2, treated]).astype(float)
    return x, treated, well


def log_of(state, treated, well, states):
    number = len(state)
    return DecisionLog(
        Pairs.full(states + 1, 2),
        state,
        treated,
        well,
        np.full(number, states),
        np.ones(number, bool),
        np.zeros(number, bool),
        np.arange(number + 1),
    )


def gain_among(log, other, policies):
    """The estimated gain where all rows chose the policies."""
    return cuts.gain_among(log, Cut.of(log, other, policies, ALL_CHOSE), 0.9)


def test_gains_are_those_of_the_rows_in_the_other_states():
    x, treated, well = patients(4000)
    coarse, fine = log_of(x // 2, treated, well, 2), log_of(x, treated, well, 4)
    never = Policy.from_dense(coarse.pairs, np.array([[1.0, 0.0]] * 3))
    always = Policy.from_dense(coarse.pairs, np.array([[0.0, 1.0]] * 3))
    # Simpson's paradox: in bins of two severities treatment looks harmful, and is not.
    assert gain_among(coarse, coarse, (always, never)) < -0.1
    means = {(s, a): well[(x == s) & (treated == a)].mean() for s in range(4) for a in range(2)}
    expected = np.mean([means[s, 1] - means[s, 0] for s in x])
    assert gain_among(coarse, fine, (always, never)) == pytest.approx(expected)
    assert expected > 0.1
    # Back again: policies of fine states are worth the same, carried to themselves.
    again = carried(always, [(coarse, fine)], fine.pairs)
    assert gain_among(fine, fine, (again, again)) == 0


def test_pairs_never_seen_in_a_fine_state_are_like_those_of_the_coarse_one_around_it():
    state = np.array([0, 0, 1, 1])  # fine; both lie in coarse state 0
    treated, well = np.array([0, 1, 0, 0]), np.array([0.0, 1.0, 0.25, 0.25])
    coarse, fine = log_of(state * 0, treated, well, 1), log_of(state, treated, well, 2)
    always = Policy.from_dense(coarse.pairs, np.array([[0.0, 1.0]] * 2))
    never = Policy.from_dense(coarse.pairs, np.array([[1.0, 0.0]] * 2))
    # Treatment was never tried in fine state 1, so it pays 1 there too, as in the coarse one.
    assert gain_among(coarse, fine, (always, never)) == pytest.approx(1.0 - 0.125)


def test_coarser_states_have_the_mean_of_the_policy_over_their_rows():
    x, treated, well = patients(1000)
    fine, coarse = log_of(x, treated, well, 4), log_of(x // 2, treated, well, 2)
    policy = Policy.from_dense(fine.pairs, np.array([[1, 0], [0, 1], [1, 0], [0, 1], [1, 0]]))
    table = carried(policy, [(fine, coarse)], coarse.pairs).dense()
    assert table[0, 1] == pytest.approx(np.mean(x[x < 2] == 1))
    model = FiniteMDP.from_dense(
        np.tile(np.eye(3)[2], (3, 2, 1)) * np.array([1, 1, 0])[:, None, None],
        np.zeros((3, 2, 3)), 0.9, np.array([0.5, 0.5, 0.0]),
    )  # fmt: skip
    assert performance(model, Policy.from_dense(model, table)) == 0


@pytest.fixture(scope="module")
def result():
    x, treated, well = patients(4000)
    rows = {
        "episode": np.arange(4000), "step": np.zeros(4000, int), "x": x, "treated": treated,
        "reward": well, "terminated": np.ones(4000, bool),
    }  # fmt: skip
    columns = {"state": "x", "action": "treated"}
    source = read_log(rows, columns=columns, bins=["x:edges=0,2,4"])
    terms = {"certificates": ["stitched"], "ending": (0, 1), "worlds": 0}
    return surestep.improve(source, discount=0.9, **terms)


def test_a_gain_that_finer_bins_turn_into_a_loss_is_an_alarm(result):
    assert result.verdict == "proved better"
    (check,) = (each for each in result.record.checks if each.code == "other-cuts")
    assert check.outcome == "failed"
    assert check.figures["own"] > 0 > check.figures["twice"]
    assert "finer-bins" in [alarm.code for alarm in result.record.alarms]
    assert check.rows == 2800  # 0.7 of the log did not choose the policy
    assert check.figures["twice_low"] < check.figures["twice"] < check.figures["twice_high"]
    assert check.figures["own_low"] > 0  # as the claim says, in states that leave something out
    assert "twice as finely" in result.report


def test_hidden_causes_and_all_lines_are_told(result):
    codes = [check.code for check in result.record.checks]
    assert codes == [
        "markov-next-state", "markov-reward", "model-returns", "drift-next-state", "drift-reward",
        "behavior-memory", "practice-changed", "hidden-causes", "enough-data", "other-cuts",
    ]  # fmt: skip
    (told,) = (check for check in result.record.checks if check.outcome == "told")
    # A return lies between 0 and 1, so that a claim of L stands ε = κ(1 − γ)/(1 − κγ), κ = L/2.
    kappa = result.certificate.lower / 2
    assert told.figures["proved"] == pytest.approx(kappa * 0.1 / (1 - 0.9 * kappa))
    assert "If hidden causes changed the chances" in result.report
