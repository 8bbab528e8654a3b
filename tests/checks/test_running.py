"""Checks of logs whose truth is known: Markov ones, and one for each assumption that fails."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy.stats import binom

from support.remembering_worlds import ACTIONS, STATES, remembering_log
from surestep import DecisionLog, FiniteMDP, Pairs, Policy, sample_log
from surestep._json import typed
from surestep.checks import Check, check_log, drift, practice_changed, running, shuffling
from surestep.checks.check import GivenLog, GivenPractice, GivenResult
from surestep.checks.running import DELTA, LEVEL, check_signals
from surestep.checks.shuffling import Shuffled, check_of
from surestep.checks.words import title
from surestep.environments.families import adaptive, coarse
from surestep.environments.hidden import hidden_cause
from surestep.report.checks import pictures_of

RARE = 1e-4  # the chance that a test of rates fails although all is right
NAMES = [f"state {s}" for s in range(20)]


@pytest.fixture
def quick(monkeypatch):
    """Few shuffles, whose p-values are as exact as those of many."""
    monkeypatch.setattr(shuffling, "MANY", 39)
    monkeypatch.setattr(shuffling, "TRIES", 1)
    monkeypatch.setattr(running, "LEVEL", 0.05)


def outcomes(log, discount=0.9):
    return {check.code: check.outcome for check in check_log(log, NAMES, discount=discount)}


def rates(logs):
    """How often each check fails, and the most that a rate of 0.05 allows."""
    found = [outcomes(log) for log in logs]
    failed = {code: sum(each[code] == "failed" for each in found) for code in found[0]}
    return failed, binom.ppf(1 - RARE, len(found), 0.05)


@pytest.mark.one_quick
@pytest.mark.parametrize("episodes", [100, 20])  # all rows of few long episodes are compared
def test_markov_logs_give_false_alarms_at_most_as_stated(quick, episodes):
    failed, most = rates(remembering_log(seed, episodes=episodes) for seed in range(40))
    assert max(failed.values()) <= most


@pytest.mark.thorough
def test_a_learning_logger_gives_no_false_alarm_about_the_process(quick):
    benchmark = adaptive(effect=1.0)
    failed, most = rates(benchmark.sample(100, np.random.default_rng(i)) for i in range(25))
    for code in ("markov-next-state", "drift-next-state"):
        assert failed[code] <= most


def test_a_log_too_small_to_show_any_effect_is_not_tested():
    few = remembering_log(1, episodes=2)
    found = {check.code: check for check in check_log(few, NAMES, discount=0.9)}
    for code in ("markov-next-state", "markov-reward", "drift-reward", "behavior-memory"):
        assert (found[code].outcome, found[code].why) == ("unchecked", "too-small")
    # What so small a log shows all the same counts.
    shown = Shuffled(rows=13, statistic=9.0, p_value=0.001, shuffles=(0.0,), noticed=None)
    assert check_of("drift-reward", shown, 0.01, True).outcome == "failed"
    assert check_of("drift-reward", shown, 0.0001, True).why == "too-small"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fixed", "learning"])
def test_rates_of_false_alarms_in_many_logs(quick, kind):
    benchmark = adaptive(effect=1.0)
    logs = (
        remembering_log(i, episodes=100)
        if kind == "fixed"
        else benchmark.sample(100, np.random.default_rng(i))
        for i in range(1000)
    )
    failed, most = rates(logs)
    for code in ("markov-next-state", "drift-next-state", "markov-reward", "drift-reward"):
        assert failed[code] <= most


@pytest.mark.slow
@pytest.mark.parametrize(("episodes", "steps"), [(200, 20), (1, 4000)])
def test_rates_of_false_alarms_where_hundreds_of_pairs_are_sparse(quick, episodes, steps):
    rng = np.random.default_rng(0)
    rows = np.zeros((200, 4, 200))
    for row in rows.reshape(-1, 200):
        row[rng.choice(200, 4, replace=False)] = rng.dirichlet(np.ones(4))
    mdp = FiniteMDP.from_dense(rows, np.zeros_like(rows), 0.9, np.full(200, 1 / 200))
    policy = Policy.from_dense(mdp, rng.dirichlet(np.ones(4), size=200))
    names = [""] * 200
    found = [
        {check.code: check.outcome for check in check_log(log, names)}
        for log in (
            sample_log(mdp, policy, episodes, steps, np.random.default_rng(i)) for i in range(200)
        )
    ]
    most = binom.ppf(1 - RARE, 200, 0.05)
    for code in ("markov-next-state", "drift-next-state", "behavior-memory"):
        assert sum(each[code] == "failed" for each in found) <= most


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("broken", "code"),
    [
        ({"lag": 0.3}, "markov-next-state"),
        ({"paid_lag": 1.0}, "markov-reward"),
        ({"drift": 0.3}, "drift-next-state"),
        ({"paid_drift": 1.0}, "drift-reward"),
        ({"severity": 0.9}, "behavior-memory"),
    ],
)
def test_what_is_broken_fails_and_the_rest_of_the_process_does_not(broken, code):
    found = outcomes(remembering_log(3, episodes=400, **broken))
    assert found[code] == "failed"
    process = {"markov-next-state", "markov-reward", "drift-next-state", "drift-reward"} - {code}
    assert {found[each] for each in process} == {"passed"}


def alternating(log, block):
    """The same log with rewards × 1.3 in every other block of episodes."""
    episode = np.repeat(np.arange(log.num_episodes), np.diff(log.episode_offsets))
    return replace(log, reward=log.reward * np.where(episode // block % 2, 1.3, 1.0))


@pytest.mark.parametrize(
    ("episodes", "block"),
    [(1000, 250), (1500, 250), pytest.param(4000, 100, marks=pytest.mark.slow)],
)
def test_rewards_that_alternate_in_blocks_are_a_drift(episodes, block):
    log = alternating(remembering_log(3, episodes=episodes), block)
    check = drift.reward_by_time(GivenLog(log, 1, running.LEVEL))
    assert check.outcome == "failed"
    assert drift.next_state_by_time(GivenLog(log, 1, running.LEVEL)).outcome == "passed"


@pytest.mark.thorough
@pytest.mark.parametrize("logs", [100, pytest.param(250, marks=pytest.mark.slow)])
def test_blocks_of_several_lengths_are_one_test(quick, logs):
    """Twice as many times at 0.05; in 500, a rate of 0.1 would be noticed with 99 %."""
    found = [
        check(GivenLog(remembering_log(seed, episodes=250), seed, 0.05)).outcome
        for seed in range(logs)
        for check in (drift.reward_by_time, drift.next_state_by_time)
    ]
    failed = found.count("failed")
    assert binom.cdf(failed, 2 * logs, 0.05) > RARE  # nor is any level given away
    assert failed <= binom.ppf(1 - RARE, 2 * logs, 0.05)


def test_one_step_logs_have_all_their_rows_compared():
    log = remembering_log(1, episodes=150, paid_drift=0.5)
    one_step = DecisionLog(
        log.pairs, log.state, log.action, log.reward, log.next_state,
        *(np.zeros_like(log.truncated), np.ones_like(log.truncated)), np.arange(log.num_steps + 1),
    )  # fmt: skip
    check = drift.reward_by_time(GivenLog(one_step, 1, 0.01))
    assert (check.rows, check.one_an_episode) == (one_step.num_steps, True)


def practice_of(log, seed, *, others=0.0):
    """The check of a log whose first 0.3 told π_b; later, a share of actions are others."""
    cut = round(0.3 * log.num_episodes) * 8
    late = np.arange(log.num_steps) >= cut
    changed = late & (np.random.default_rng(seed).random(log.num_steps) < others)
    log = replace(log, action=np.where(changed, 1, log.action))
    practice = GivenPractice(GivenLog(log, seed - 6, 0.05), late, 0.5)
    nothing = dict.fromkeys(GivenResult.__dataclass_fields__)
    return practice_changed.check(GivenResult(**nothing | {"practice": practice}))


@pytest.mark.parametrize("logs", [120, pytest.param(300, marks=pytest.mark.slow)])
def test_practice_that_stays_gives_false_alarms_at_most_as_stated(quick, logs):
    """Logs at 0.05, also of loggers who remember within an episode."""
    failed = [
        practice_of(remembering_log(seed, episodes=150, severity=0.9 * (seed % 2)), seed).outcome
        for seed in range(logs)
    ].count("failed")
    assert failed <= binom.ppf(1 - RARE, logs, 0.05)


def test_practice_that_changed_is_noticed(quick):
    found = [practice_of(remembering_log(seed), seed, others=0.5) for seed in range(20)]
    assert [check.outcome for check in found].count("failed") >= 19
    assert found[0].figures == {"gain": 0.5, "has_gain": 1.0}


@pytest.mark.thorough
def test_merged_states_are_seen():
    log = coarse().sample(150, np.random.default_rng(0))
    assert outcomes(log)["markov-next-state"] == "failed"


def test_a_hidden_cause_without_memory_is_not_seen_by_any_test():
    """That is why it has a line of its own: how strong it would have to be."""
    log = hidden_cause().sample(300, np.random.default_rng(0))
    assert "failed" not in outcomes(log, 0.99).values()


def test_values_that_do_not_add_up_are_seen():
    """Episodes of eight steps, which pay at their end: how many are left is in no state."""
    log = remembering_log(1, episodes=400)
    paid_last = DecisionLog(
        Pairs.full(STATES + 1, ACTIONS),
        log.state,
        log.action,
        log.truncated.astype(float),
        np.where(log.truncated, STATES, log.next_state),
        log.truncated,
        np.zeros_like(log.truncated),
        log.episode_offsets,
    )
    found = {check.code: check for check in check_log(paid_last, NAMES, discount=0.7)}
    check = found["model-returns"]
    assert check.outcome == "failed"
    # From the start 0.7⁷ is earned; a model without a clock ends in any step with a chance of 1/8.
    assert any(not mark.low <= mark.value <= mark.high for mark in check.picture)


def test_levels_are_shared_and_findings_repeat():
    log = remembering_log(2)
    first, again = (check_log(log, NAMES, discount=0.9) for _ in range(2))
    assert first == again
    assert sum(check.level for check in first if check.level) == pytest.approx(DELTA * 6 / 10)
    written = json.loads(json.dumps([asdict(check) for check in first]))
    assert typed(written, tuple[Check, ...]) == first
    without = {check.code: check for check in check_log(log, NAMES)}  # a discount
    assert without["model-returns"].why == "no-discount"


def test_further_signals_are_tested_by_name_at_the_level_of_the_first():
    logs = {
        "steady": remembering_log(3, episodes=400),
        "drifting": remembering_log(3, episodes=400, paid_drift=1.0),
        "unknown": None,
    }
    found = {(check.signal, check.code): check for check in check_signals(logs)}
    assert {key for key, check in found.items() if check.outcome == "failed"} == {
        ("drifting", "drift-reward")
    }
    pictures = [each.caption.name for check in found.values() for each in pictures_of(check)]
    assert title(found["drifting", "drift-reward"]).endswith("changed over time (drifting)")
    assert {check.why for (name, _), check in found.items() if name == "unknown"} == {"no-steps"}
    assert {check.level for check in found.values()} == {None, LEVEL}
    assert len(set(pictures)) == len(pictures) == 4  # ids of a page


def test_of_a_large_log_whole_episodes_are_looked_at(monkeypatch):
    log = remembering_log(2, episodes=300)
    monkeypatch.setattr(running, "MOST_STEPS", 1000)
    part = log.episodes(running.looked_at(log, 7))
    assert 900 < part.num_steps <= 1000
    lengths = set(np.diff(part.episode_offsets).tolist())
    assert lengths == {8}
