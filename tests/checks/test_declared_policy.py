"""Bets against declared chances: their mean is at most 1, and they find wrong declarations."""

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

import surestep
from support.problems import problem_of
from surestep.checks import declared_policy, failed
from surestep.checks.declared_policy import (
    Decisions,
    check,
    highest,
    log_most_likely,
    log_wealths,
    of_problem,
)
from surestep.model import Counts
from surestep.pipeline import certify_result


def decisions(state, action, chance, choices, *, law=None, uniform=False):
    """A log of rows; without a law, that of its state."""
    state, action = np.asarray(state), np.asarray(action)
    chance = np.asarray(chance, np.float64)
    return Decisions(
        cuts=[np.zeros_like(state), state],
        law=state if law is None else law,
        action=action,
        taken=np.ones(state.size),
        chance=chance,
        high=chance if uniform else highest(chance, chance),
        choices=choices,
        name=lambda cut, entry: f"{cut}: {action[entry]}",
    )


def predicted(actions, choices):
    """The chance of a sequence by the bettor's rule, one action after the other, exactly."""
    seen, product = [0] * choices, Fraction(1)
    for action in actions:
        product *= Fraction(2 * seen[action] + 1, 2 * sum(seen) + choices)
        seen[action] += 1
    return product


@pytest.mark.one_quick
@pytest.mark.parametrize("choices", [2, 3])
def test_wealth_is_that_of_bets_one_after_the_other_and_its_mean_is_1(choices):
    """By hand, over all logs of six decisions in two states."""
    state = np.array([0, 1, 0, 0, 1, 0])
    chance = np.array([[0.5, 0.2, 0.3], [0.1, 0.2, 0.7]])[:, :choices]
    chance /= chance.sum(axis=1, keepdims=True)
    means = np.zeros(3)
    for actions in itertools.product(range(choices), repeat=6):
        taken = np.array(actions)
        given = decisions(state, taken, chance[state, taken], choices, uniform=True)
        law = chance[state, taken].prod()
        (whole,) = np.exp(log_wealths(given, given.cuts[0]))
        apart = np.exp(log_wealths(given, given.cuts[1]))
        assert whole == pytest.approx(float(predicted(actions, choices)) / law)
        for s in (0, 1):
            own = taken[state == s].tolist()
            there = chance[s, own].prod()
            assert apart[s] == pytest.approx(float(predicted(own, choices)) / there)
        means += law * np.array([whole, *apart])
    np.testing.assert_allclose(means, 1.0)


@pytest.mark.parametrize("true", [(0.325, 0.675), (1 / 3, 2 / 3), (0.335, 0.665)])
def test_within_the_digits_the_mean_wealth_is_at_most_1(true):
    """The chances are written as 0.33 and 0.67; all logs of eight decisions."""
    mean = 0.0
    for actions in itertools.product((0, 1), repeat=8):
        written = np.array([0.33, 0.67])[list(actions)]
        given = decisions(np.zeros(8, np.int64), actions, written, 2)
        mean += math.prod(true[a] for a in actions) * math.exp(log_wealths(given, given.cuts[0])[0])
    assert 0.9 < mean <= 1 + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_the_largest_likelihood_is_that_of_a_search(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 5))
    high = np.minimum(rng.dirichlet(np.ones(size)) + 0.06, 1.0)
    taken = rng.integers(1, 50, size).astype(np.float64)
    (found,) = log_most_likely(np.zeros(size, np.int64), taken, high)
    searched = minimize(
        lambda share: -taken @ np.log(share),
        high / high.sum() * 0.99,
        bounds=[(1e-6, top) for top in high],
        constraints={"type": "ineq", "fun": lambda share: 1 - share.sum()},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found == pytest.approx(-searched.fun, rel=1e-5)
    assert found >= -searched.fun - 1e-6  # never below


def test_digits_are_those_that_are_written():
    written = np.array([0.33, 1 / 3, 0.5, 0.0, 1.0, float(np.float32(0.33)), 0.999])
    expected = [0.335, 1 / 3 + 5e-7, 0.55, 5e-7, 1.0, 0.335, 0.9995]
    np.testing.assert_allclose(highest(written, written), expected, atol=2e-8)


def test_a_third_may_be_written_with_two_digits_over_a_million_rows():
    taken = np.array([333_400.0, 666_600.0])
    state, action = np.zeros(2, np.int64), np.arange(2)

    def found(*chance):
        entries = decisions(state, action, chance, 2)
        return check(entries._replace(taken=taken))

    assert found(0.33, 0.67) == ()
    assert found(0.3333, 0.6667) == ()
    assert found(0.328, 0.672)  # no third to three digits


def wards(rows, share, rng):
    """Two situations; "go" pays 0.7 and "stay" 0.4, so that always going gains 0.3·(1 − share)."""
    state = rng.integers(0, 2, rows)
    goes = rng.random(rows) < np.asarray(share)[state]
    pays = rng.random(rows) < np.where(goes, 0.7, 0.4)
    return {
        "state": np.where(state, "dry", "wet").tolist(),
        "action": np.where(goes, "go", "stay").tolist(),
        "reward": pays.astype(float).tolist(),
    }


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("share", "where"), [((0.9, 0.9), "action 'go'"), ((0.9, 0.1), "state '(dry|wet)', action")]
)
def test_a_trial_that_was_none_proves_nothing(share, where):
    """Over uniform practice the gain is 0.15; over what people do it is 0.03, or 0.15."""
    log = wards(4_000, share, np.random.default_rng(0))
    result = surestep.improve(log, discount=0, ending=(0, 1), worlds=0, behavior="uniform")
    assert result.certificate.lower > 0
    assert result.verdict == "not shown to be better"
    (found,) = (x for x in failed(result.record.checks) if x.code == "declared-policy")
    assert found.figures["declared"] == 0.5
    assert found.figures["logged"] - 0.5 == pytest.approx(0.4, abs=0.03)
    assert re.match(where, found.signal)
    assert "Answer one question first" in result.report


@pytest.mark.thorough
def test_a_trial_that_was_one_is_proved():
    log = wards(2_000, (0.5, 0.5), np.random.default_rng(0))
    result = surestep.improve(log, discount=0, ending=(0, 1), worlds=0, behavior="uniform")
    assert result.verdict == "proved better"
    table = {"state": ["dry", "dry", "wet", "wet"], "action": ["go", "stay"] * 2}
    wrong = table | {"probability": [0.5, 0.5, 0.1, 0.9]}
    result = surestep.improve(log, discount=0, ending=(0, 1), worlds=0, behavior=wrong)
    assert result.verdict == "not shown to be better"


def test_a_policy_of_counts_is_tested_state_by_state():
    taken = np.full((40, 2), 25)
    taken[7] = 45, 5
    stay = taken[..., np.newaxis] * np.eye(40, dtype=np.int64)[:, np.newaxis]

    def found(number):
        counts = Counts.from_dense(stay[:number, :, :number], rewards=np.zeros((number, 2)))
        return check(of_problem(problem_of(counts), "uniform"))

    assert found(40)[0].signal == "state 7, action 0"
    assert found(7) == ()


@pytest.mark.thorough
def test_another_log_of_a_declared_policy_is_tested_too(tmp_path):
    rng = np.random.default_rng(0)
    trial, none = (wards(2_000, share, rng) for share in ((0.5, 0.5), (0.9, 0.9)))
    given = {"discount": 0, "ending": (0, 1), "behavior": "uniform"}
    surestep.improve(trial, worlds=0, **given).save(tmp_path / "result")
    rungs = []
    for log in (wards(2_000, (0.5, 0.5), rng), none):
        judged = certify_result(tmp_path / "result", log, ["stitched"])
        rungs.append(judged.verdict(judged.certificates[0]).rung)
    assert rungs == ["proved better", "not shown to be better"]


def rows_of_learner(rows, rng, wrong=False):
    """Somebody goes more often after each success, and writes the chance of what was done."""
    log = {"state": ["ward"] * rows, "action": [], "reward": [], "propensity": []}
    chance = 0.5
    for _ in range(rows):
        goes = rng.random() < (0.9 if wrong else chance)
        pays = rng.random() < (0.7 if goes else 0.4)
        log["action"].append("go" if goes else "stay")
        log["reward"].append(float(pays))
        log["propensity"].append(round(chance if goes else 1 - chance, 2))
        chance = min(
            max(chance + (0.01 if goes == pays else -0.01), 0.1), 0.9 if not wrong else 0.5
        )
    return log


@pytest.mark.one_quick
@pytest.mark.parametrize("wrong", [False, True])
def test_chances_of_rows_are_tested(wrong):
    log = rows_of_learner(1_500, np.random.default_rng(1), wrong)
    result = surestep.improve(log, discount=0, ending=(0, 1), worlds=0)
    assert ("declared-policy" in {x.code for x in failed(result.record.checks)}) == wrong
    assert result.record.parameters.behavior == "row-propensities"


# ---- false alarms: where they could be -----------------------------------------------------------


def drawn(law, rng):
    return (rng.random((len(law), 1)) >= law.cumsum(axis=1)[:, :-1]).sum(axis=1)


def few_visits(rng):
    state = rng.integers(0, 100, 200)
    law = np.full((200, 4), 0.25)
    return decisions(state, drawn(law, rng), np.full(200, 0.25), 4, uniform=True)


def nearly_certain(rng):
    state, law = rng.integers(0, 5, 300), np.tile([0.999, 0.001], (300, 1))
    action = drawn(law, rng)
    return decisions(state, action, law[0, action], 2)


def at_the_ends_of_digits(rng):
    true = 0.5 + 0.05 * rng.choice([-1, 1], 20)
    state = rng.integers(0, 20, 1_000)
    return decisions(
        state, drawn(np.stack([true, 1 - true], 1)[state], rng), np.full(1_000, 0.5), 2
    )


def learning(rng):
    state, action, chance = rng.integers(0, 3, 200), np.zeros(200, np.int64), np.zeros(200)
    goes = np.full(3, 0.5)
    for i, s in enumerate(state):
        action[i] = rng.random() >= goes[s]
        chance[i] = (goes[s], 1 - goes[s])[action[i]]
        goes[s] = np.clip(goes[s] + 0.05 - 0.1 * action[i], 0.02, 0.98)
    return decisions(state, action, chance.round(2), 2, law=np.arange(200))


@pytest.mark.slow
@pytest.mark.parametrize("draw", [few_visits, nearly_certain, at_the_ends_of_digits, learning])
def test_true_declarations_fail_at_most_as_often_as_stated(draw, monkeypatch):
    """At a level of 0.05, in 500 logs: far below, as Ville's inequality is not tight."""
    monkeypatch.setattr(declared_policy, "LEVEL", 0.05)
    rng = np.random.default_rng(0)
    assert sum(bool(check(draw(rng))) for _ in range(500)) <= 0.05 * 500
