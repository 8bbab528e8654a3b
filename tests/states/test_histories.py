"""The length of histories: chosen by held-out likelihood, on episodes that judge nothing else."""

import json
import math
from collections import Counter

import numpy as np
import pytest

import surestep
from log_tables import frame_of, rows_of, write_table
from pump_commands import run_surestep
from remembering_worlds import remembering_log
from surestep import read_log
from surestep.errors import CertificateRefused, InvalidLog, InvalidParameter
from surestep.io.labels.histories import Length
from surestep.io.labels.state_rules import Split, TreeRule
from surestep.pipeline import certify_result, verify_result
from surestep.pipeline.evidence import gather
from surestep.states import choose_history
from surestep.states.histories import WEIGHTS, choice, log_likelihoods

NAMES = ("episode", "step", "state", "action", "reward", "truncated")


def told_by_hand(log, teaching, longest):
    """The same likelihoods, row by row with dictionaries."""
    rows = []  # (contexts, next state, reward)
    for e in range(log.num_episodes):
        steps = range(*log.episode_offsets[e : e + 2])
        for i in steps:
            past = [(int(log.state[j]), int(log.action[j])) for j in steps if j < i]
            now = (int(log.state[i]), int(log.action[i]))
            contexts = [(now, *past[::-1][:k]) for k in range(longest)]
            padded = [(*c, *["start"] * (k + 1 - len(c))) for k, c in enumerate(contexts)]
            rows.append((padded, int(log.next_state[i]), float(log.reward[i])))

    def chances(outcomes, contexts_of):
        shorter = [1 / len(set(outcomes))] * len(rows)
        for k in range(longest):
            contexts = contexts_of(k)
            taught = [i for i in range(len(rows)) if teaching[i]]
            total = Counter(contexts[i] for i in taught)
            pairs = Counter((contexts[i], outcomes[i]) for i in taught)
            told = [
                [
                    (pairs[contexts[i], outcomes[i]] - teaching[i] + m * shorter[i])
                    / (total[contexts[i]] - teaching[i] + m)
                    for i in range(len(rows))
                ]
                for m in WEIGHTS
            ]
            candidates = [shorter, *told]
            shorter = max(candidates, key=lambda each: math.fsum(math.log(each[i]) for i in taught))
            yield shorter

    following, paid = [row[1] for row in rows], [row[2] for row in rows]
    where = chances(following, lambda k: [row[0][k] for row in rows])
    reward = chances(paid, lambda k: [(row[0][k], row[1]) for row in rows])
    for one, other in zip(where, reward, strict=True):
        yield [math.log(p * q) for p, q in zip(one, other, strict=True)]


def test_likelihoods_are_those_that_one_finds_row_by_row():
    log = remembering_log(4, episodes=25, lag=0.5)
    log = surestep.DecisionLog(
        log.pairs, log.state, log.action, np.round(log.reward / 2), log.next_state,
        log.terminated, log.truncated, log.episode_offsets,
    )  # fmt: skip
    teaching = np.arange(log.num_steps) < 0.7 * log.num_steps
    found = [*log_likelihoods(log, teaching, 3)]
    expected = [*told_by_hand(log, teaching.tolist(), 3)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("logs", "episodes"),
    [(10, 40), *(pytest.param(300, each, marks=pytest.mark.slow) for each in (40, 150, 600))],
)
def test_one_row_is_taken_where_one_is_enough(logs, episodes):
    """At most 1 of 100 logs takes more: of 900 (the slow ones) one did.

    With 1 of 100, more than 1 of 10 would be seen with 4 of 1,000 other seeds, and more than 9 of
    300 with 1 of 1,000.
    """
    chosen = [choice(remembering_log(seed, episodes=episodes)).rows for seed in range(logs)]
    assert sum(rows > 1 for rows in chosen) <= (1 if logs == 10 else 9)


@pytest.mark.parametrize("how", [{"lag": 0.6}, {"paid_lag": 2.0}])
def test_two_rows_are_taken_where_the_row_before_matters(how):
    """Weaker effects are found less often; such ones in 9 of 10 logs at the least."""
    chosen = [choice(remembering_log(seed, episodes=80, **how)).rows for seed in range(8)]
    assert sum(rows == 2 for rows in chosen) >= 6


def test_the_row_before_the_last_is_found_although_the_last_says_nothing():
    """x_t = x_{t−2} and x_{t−1} added modulo 2, but for noise: neither tells it alone."""
    rng = np.random.default_rng(0)
    rows = []
    for episode in range(200):
        states = [*rng.integers(2, size=2)]
        while len(states) < 9:
            states.append((states[-1] + states[-2] + (rng.random() < 0.1)) % 2)
        rows += [
            {"episode": episode, "step": t, "state": f"s{x}", "action": "a", "reward": 0,
             "truncated": t == 8}
            for t, x in enumerate(states)
        ]  # fmt: skip
    told = Length.read(choose_history(read_log(frame_of(rows, NAMES))).reading.history)
    assert told.rows == 2
    assert len(told.log_likelihood) == 5
    assert told.log_likelihood[1] > told.log_likelihood[0] + 0.2
    # What stood before one action alone cannot be told by fewer rows.
    assert told.log_likelihood[2] == pytest.approx(told.log_likelihood[1], abs=0.05)


def lagging_rows(episodes=150, seed=2):
    rows = rows_of(remembering_log(seed, episodes=episodes, lag=0.6))
    return [{**row, "reward": round(row["reward"])} for row in rows]


def test_what_chose_is_left_out_and_the_rest_is_as_if_given(tmp_path):
    rows = lagging_rows()
    source = read_log(write_table(tmp_path / "log.csv", rows, NAMES), history="auto")
    with pytest.raises(InvalidParameter, match=r"is to be chosen .*choose_history"):
        source.counts()
    chosen = choose_history(source)
    told = Length.read(chosen.reading.history)
    assert (told.rows, chosen.reading.learnt_from) == (2, 30)
    later = [row for row in rows if int(row["episode"][1:]) >= 30]
    by_hand = read_log(frame_of(later, NAMES), history=2).counts()
    ours = chosen.counts()
    assert ours.states == by_hand.states
    assert (ours.transitions.times == by_hand.transitions.times).all()
    more = choose_history(read_log(tmp_path / "log.csv", history="auto", learnt_from=100))
    assert more.reading.learnt_from == 100


def test_a_result_tells_what_was_chosen_and_is_verified(tmp_path):
    log = write_table(tmp_path / "log.csv", lagging_rows(), NAMES)
    made = run_surestep(
        *("improve", log, "--history", "auto", "--discount", 0.9, "--worlds", 0),
        *("--kind", "robust", "-o", tmp_path / "out"),
    )
    assert made.exit_code == 0, made.output
    printed = " ".join(made.output.split())
    assert "A situation is the last 2 rows of an episode" in printed
    assert "chosen with the first 30 episodes" in printed
    result = surestep.load(tmp_path / "out")
    told = Length.read(result.record.parameters["history"])
    assert f"−{-told.log_likelihood[0]:.4f} with 1 row, " in printed
    assert f"−{-told.log_likelihood[1]:.4f} with 2 rows, " in result.report
    premises = {each.code: dict(each.values) for each in result.certificate.assumptions}
    assert premises["states-are-histories"] == {"rows": 2}
    assert premises["states-learnt-apart"] == {"episodes": 30}
    assert verify_result(tmp_path / "out", log).level == "same bytes"
    later = write_table(tmp_path / "later.csv", lagging_rows(60, seed=9), NAMES)
    (other,) = certify_result(tmp_path / "out", later, ["robust"]).certificates
    premises = {each.code: dict(each.values) for each in other.assumptions}
    assert premises["states-learnt-apart"] == {"episodes": 0}
    # A log of no more episodes than chose, and one of which some did.
    few_rows = [{**row, "episode": f"new {row['episode']}"} for row in lagging_rows(20, seed=9)]
    few = write_table(tmp_path / "few.csv", few_rows, NAMES)
    judged = certify_result(tmp_path / "out", few, ["robust"])
    premises = {each.code: dict(each.values) for each in judged.certificates[0].assumptions}
    assert premises["states-learnt-apart"] == {"episodes": 0}
    assert judged.fresh
    for files in ([log, few], [few, log]):
        with pytest.raises(CertificateRefused, match="taught what a state is") as refusal:
            certify_result(tmp_path / "out", files, ["robust"])
        assert refusal.value.code == "taught-states"
    assert certify_result(tmp_path / "out", [log], ["robust"]).same_log
    # A row that cannot be read is told, also where nothing is left without the first episodes.
    wrong = write_table(tmp_path / "wrong.csv", [{**row, "reward": "x"} for row in few_rows], NAMES)
    with pytest.raises(InvalidLog, match=r"wrong\.csv, row 1, column 'reward'"):
        certify_result(tmp_path / "out", wrong, ["robust"])


def test_commands_that_only_look_choose_too(tmp_path):
    log = write_table(tmp_path / "log.csv", lagging_rows(), NAMES)
    for verb, more in (("inspect", ()), ("count", ("-o", tmp_path / "counts.parquet"))):
        shown = run_surestep(verb, log, "--history", "auto", *more)
        assert shown.exit_code == 0, shown.output
        assert "A situation is the last 2 rows" in shown.output
        assert "state 1 before" in shown.output


def test_learnt_states_have_histories_of_the_same_episodes():
    rng = np.random.default_rng(1)
    rows = [
        {**row, "state": round(float(rng.uniform(0, 1)) + int(row["state"][1]), 3)}
        for row in lagging_rows()
    ]
    table = frame_of(rows, NAMES)
    binned = read_log(table, states_from="bins:size=2,share=0.3", history="auto")
    with pytest.raises(InvalidParameter, match=r"states are to be learnt .*states.learn returns"):
        choose_history(binned)
    chosen = choose_history(surestep.states.learn(binned, discount=0.9))
    assert chosen.reading.learnt_from == 45
    assert chosen.counts().episodes.recorded == 105
    fixed = surestep.states.learn(read_log(table, states_from="bins:size=2", history=2), discount=1)
    assert fixed.columns.state == ("state", "state 1 before", "action 1 before")
    assert set(fixed.counts().binnings) == {"state", "state 1 before"}
    rule = TreeRule(("state",), Split("state", 1.0, None, Split("state", 2.0, None, None)))
    ways = {"states_from": json.dumps(rule.to_json(), ensure_ascii=False), "learnt_from": 45}
    words = gather(read_log(table, **ways, history=2)).assembly.vocabulary
    assert words.state_columns == ("learnt state", "learnt state 1 before", "action 1 before")
    there = words.states[words.state_index([{"state": 0.1, "action": "a1"}, {"state": 2.9}])]
    assert there == ("state ≥ 2", "state < 1", "a1")
    by_label = dict(zip(words.state_columns, there, strict=True))
    assert words.states[words.state_index(by_label)] == there


def test_too_little_to_choose_from_is_refused():
    few = read_log(frame_of(lagging_rows(20), NAMES), history="auto")
    with pytest.raises(InvalidLog, match=r"from 4 episodes with 28 rows, expected at least 20 epi"):
        choose_history(few)
    loose = {"state": ["a"], "action": ["x"], "reward": [1], "next_state": ["b"]}
    with pytest.raises(InvalidLog, match="chosen from whole episodes, but the log has no columns"):
        choose_history(read_log(loose, history="auto"))
