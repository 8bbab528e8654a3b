"""Results whose states are the last rows of an episode: improved, lifted, saved, verified, used."""

import csv
import shlex

import numpy as np
import pytest

import surestep
from log_tables import frame_of, rows_of, write_table
from pump_commands import run_surestep
from remembering_worlds import remembering_log
from surestep import read_log
from surestep.checks.memory import next_state_check
from surestep.cli.improve import command as improve_command
from surestep.errors import InvalidLog, InvalidParameter, ShapeMismatch
from surestep.io import read_counts
from surestep.io.labels.histories import PADDING
from surestep.io.logs.reading import Reading
from surestep.pipeline import certify_result, verify_result
from surestep.pipeline.evidence import gather
from surestep.pipeline.inspect import inspect

RANGES = {"running": (-9, 9), "ending": (-9, 9)}
TERMS = {"discount": 0.9, "worlds": 0, "certificates": ["robust"]} | RANGES
NAMES = ("episode", "step", "state", "action", "reward", "truncated")
POLICY = {
    "state": np.repeat(["s0", "s1", "s2"], 2).astype(object),
    "action": np.tile(["a0", "a1"], 3).astype(object),
    "probability": np.array([0.7, 0.3, 0.6, 0.4, 0.5, 0.5]),
}


def lagging(seed=0, episodes=60, **settings):
    """The rows of a log in which the action before matters, rewards with few digits."""
    rows = rows_of(remembering_log(seed, episodes=episodes, **settings))
    return [{**row, "reward": round(row["reward"], 1)} for row in rows]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("history")
    log = write_table(folder / "log.csv", lagging(lag=0.6), NAMES)
    result = surestep.improve(read_log(log, history=2), behavior=POLICY, **TERMS)
    result.save(folder / "out")
    return folder


def codes(certificate):
    return [each.code for each in certificate.assumptions]


def test_a_policy_of_single_rows_is_that_of_every_history_that_ends_with_them():
    log = read_log(frame_of(lagging(), NAMES), history=3)
    evidence = gather(log, POLICY)
    policy, words = evidence.assembly.behavior, evidence.assembly.vocabulary
    of_row = dict(zip(zip(POLICY["state"], POLICY["action"], strict=True), POLICY["probability"],
                      strict=True))  # fmt: skip
    for k in range(policy.pairs.num_pairs):
        if not evidence.assembly.quiet[policy.pairs.state[k]]:
            state = words.states[policy.pairs.state[k]]
            action = words.actions[policy.pairs.action[k]]
            assert policy.probability[k] == of_row[state[0], action[0]]
    assert (evidence.states, evidence.actions) == ("observed", "behavior table")
    what = [each for each in evidence.assembly.premises if each.code == "nothing-beyond-observed"]
    assert [each.values["what"] for each in what] == ["states"]
    lacking = {name: values[2:] for name, values in POLICY.items()}
    with pytest.raises(ShapeMismatch, match=r"in the unknown state 's0, .*no state has 's0"):
        gather(log, lacking)


def test_a_policy_of_histories_is_taken_as_it_is():
    log = read_log(frame_of(lagging(), NAMES), history=2)
    lifted = gather(log, POLICY).assembly
    pairs, words = lifted.behavior.pairs, lifted.vocabulary
    deciding = np.flatnonzero(~lifted.quiet[pairs.state])
    labels = [words.states[pairs.state[k]] for k in deciding]
    table = {
        name: np.array([label[i] for label in labels], object)
        for i, name in enumerate(words.state_columns)
    }
    table["action"] = np.array([words.actions[pairs.action[k]][0] for k in deciding], object)
    again = gather(log, table | {"probability": lifted.behavior.probability[deciding]})
    assert again.states == "behavior table"
    assert again.assembly.vocabulary.states == words.states
    assert (again.assembly.behavior.probability == lifted.behavior.probability).all()


def test_pairs_of_single_rows_are_those_of_every_history():
    log = read_log(frame_of(lagging(), NAMES), history=2)
    pairs = {name: POLICY[name] for name in ("state", "action")}
    possible = gather(log, possible=pairs)
    assert (possible.states, possible.possible) == ("observed", "listed")
    some = {name: values[:3] for name, values in pairs.items()}  # s0 and, of s1, a0
    allowed = gather(log, allowed=some).assembly
    words, pairs_there = allowed.vocabulary, allowed.counts.pairs
    marked = {
        (words.states[pairs_there.state[k]][0], words.actions[pairs_there.action[k]][0])
        for k in np.flatnonzero(allowed.allowed)
    }
    assert marked == {("s0", "a0"), ("s0", "a1"), ("s1", "a0")}
    wrong = {"state": np.array(["s9"], object), "action": np.array(["a0"], object)}
    with pytest.raises(InvalidLog, match="has the state 's9': no state has 's9' in column 'state'"):
        gather(log, allowed=wrong)


def test_propensities_and_estimates_are_those_of_histories():
    """Of a logger that looks at the action before, no table of single rows can be true."""
    rng = np.random.default_rng(5)
    rows, before = [], None
    for episode, step in np.ndindex(80, 4):
        before = None if step == 0 else before
        chance = 0.8 if before == "x" else 0.5
        action = "x" if rng.random() < chance else "y"
        rows.append({"episode": episode, "step": step, "state": "s", "action": action,
                     "reward": 0, "terminated": step == 3,
                     "behavior_prob": chance if action == "x" else 1 - chance})  # fmt: skip
        before = action
    table = frame_of(rows, tuple(rows[0]))
    assert gather(read_log(table)).behavior == "row-propensities"
    evidence = gather(read_log(table, history=2))
    logged = evidence.assembly
    assert evidence.behavior == "propensities"
    words, dense = logged.vocabulary, logged.behavior.dense()
    assert dense[words.state_index(("s", "s", "x")), words.action_index("x")] == 0.8
    assert dense[words.state_index(("s", PADDING, PADDING)), words.action_index("x")] == 0.5
    estimated = gather(read_log(table, history=2), "estimate").assembly.behavior.dense()
    assert estimated[words.state_index(("s", "s", "x")), 0] == pytest.approx(0.8, abs=0.1)
    assert estimated[words.state_index(("s", "s", "y")), 0] == pytest.approx(0.5, abs=0.15)


def test_a_result_is_recorded_repeated_and_verified(saved):
    result = surestep.load(saved / "out")
    for claim in result.certificates:
        (said,) = [each for each in claim.assumptions if each.code == "states-are-histories"]
        assert said.values == {"rows": 2}
        assert "states-learnt-apart" not in codes(claim)
    assert result.record.parameters["history"] == "2"
    assert "--history 2" in result.record.command
    assert "last 2 rows" in result.report
    assert verify_result(saved / "out", saved / "log.csv").level == "same bytes"
    assert "before" not in result.record.command  # columns are those of the file
    words = shlex.split(result.record.command)[2:]
    said = improve_command.make_context("improve", words).params
    assert Reading.of(said) == Reading.of(result.record.parameters)
    assert (said["column_state"], said["column_action"]) == (("state",), ("action",))


def test_more_claims_come_from_the_same_log_and_from_a_later_one(saved):
    (same,) = certify_result(saved / "out", saved / "log.csv", ["robust"]).certificates
    assert same == surestep.load(saved / "out").certificate
    later = write_table(saved / "later.csv", lagging(lag=0.6)[:-30], NAMES)  # histories are known
    (claim,) = certify_result(saved / "out", later, ["robust"]).certificates
    assert codes(claim).count("states-are-histories") == 1
    other = write_table(saved / "other.csv", lagging(1, lag=0.6), NAMES)
    with pytest.raises(ShapeMismatch, match=r"row 3, .* the log has the state 's2, s0, a0', which"):
        certify_result(saved / "out", other, ["robust"])


def test_it_acts_on_rows_as_on_their_history(saved):
    result = surestep.load(saved / "out")
    table = result.table
    rng = np.random.default_rng

    def chances(state):
        s = table.vocabulary.state_index(state)
        return table.probability[table.pairs.offsets[s] : table.pairs.offsets[s + 1]].tolist()

    first, second = {"state": "s0", "action": "a1"}, {"state": "s2"}
    by_columns = {"state": "s2", "state 1 before": "s0", "action 1 before": "a1"}
    assert chances([first, second]) == chances(by_columns) == chances(("s2", "s0", "a1"))
    assert chances([{"state": "s1", "action": "a0"}, first, second]) == chances(by_columns)
    assert chances([second]) == chances(("s2", PADDING, PADDING))
    assert result.act([first, second], rng(1)) == result.act(by_columns, rng(1))
    with pytest.raises(InvalidParameter, match="column 'action' is missing, expected state, acti"):
        result.act([{"state": "s0"}, second], rng(1))
    with pytest.raises(InvalidParameter, match="column 'state 1 before' is missing"):
        result.act(second, rng(1))
    shown = run_surestep(
        "explain", saved / "out", "--state", "s2", "--state", "s0", "--state", "a1"
    )
    assert "state s2, state 1 before s0, action 1 before a1" in " ".join(shown.output.split())


def test_nothing_but_the_standard_library_reads_a_policy_of_histories(saved):
    with (saved / "out" / "policy.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    result = surestep.load(saved / "out")
    words, policy = result.table.vocabulary, result.policy.dense()
    episode = [("s0", "a1"), ("s2", "a0"), ("s1", None)]  # as `docs/improving.md` tells it
    for now in range(len(episode)):
        before = episode[now - 1] if now else ("(none)", "(none)")
        there = {
            "state": episode[now][0],
            "state 1 before": before[0],
            "action 1 before": before[1],
        }
        s = words.state_index([{"state": s, "action": a} for s, a in episode[: now + 1]])
        found = {
            row["action"]: float(row["probability"]) for row in rows if there.items() <= row.items()
        }
        assert found == {action[0]: policy[s, a] for a, action in enumerate(words.actions)}


def test_binned_rows_and_names_of_values_hold_for_earlier_rows_too():
    rows = [{**row, "age": 10 * int(row["state"][1]) + 3.0} for row in lagging()]
    names = ("episode", "step", "age", "action", "reward", "truncated")
    log = read_log(
        frame_of(rows, names), columns={"state": "age"}, bins=["age:width=10"], history=2
    )
    labels = {"action": {"a0": "wait", "a1": "treat"}}
    result = surestep.improve(log, labels=labels, **TERMS)
    words = result.table.vocabulary
    s = words.state_index([{"age": 4.5, "action": "a1"}, {"age": 23}])
    assert words.states[s] == ("20 to < 30", "0 to < 10", "a1")
    assert words.state_name(s) == ("20 to < 30", "0 to < 10", "treat")
    assert words.state_index({"age": 23, "age 1 before": 4.5, "action 1 before": "a1"}) == s


def test_counts_remember_that_states_are_histories(saved):
    counted = run_surestep(
        *("count", saved / "log.csv", "--history", "2", "-o", saved / "counts.parquet")
    )
    assert counted.exit_code == 0, counted.output
    evidence = gather(read_counts(saved / "counts.parquet"), POLICY)
    assert "states-are-histories" in [each.code for each in evidence.assembly.premises]
    assert evidence.states == "observed"


def test_inspect_looks_at_histories_and_names_them_in_what_comes_next(saved):
    shown = run_surestep("inspect", saved / "log.csv", "--history", "2")
    assert shown.exit_code == 0, shown.output
    assert "state 1 before" in shown.output
    assert "--history 2" in shown.output
    policy = read_log(saved / "log.csv", history=2)
    assert inspect(policy, behavior=POLICY).overlap.states_unknown == 0


def test_the_markov_check_fails_for_single_rows_and_passes_for_two():
    """By chance a check of level 0.01 would fail in one of 100 logs: the seed is fixed."""
    table = frame_of(lagging(3, episodes=150, lag=0.5), NAMES)
    outcomes = [
        next_state_check(read_log(table, history=k).load(), seed=1, level=0.01).outcome
        for k in (1, 2)
    ]
    assert outcomes == ["failed", "passed"]


@pytest.mark.slow
def test_the_markov_check_of_histories_fails_as_rarely_as_it_says():
    """Of 100 logs that two rows tell all of, 5 fail on average: more than 12 in 1 of 700 runs."""
    failed = 0
    for seed in range(100):
        table = frame_of(lagging(seed, episodes=150, lag=0.5), NAMES)
        check = next_state_check(read_log(table, history=2).load(), seed=seed, level=0.05)
        failed += check.outcome == "failed"
    assert failed <= 12


def test_a_later_log_may_have_shorter_episodes_than_a_state_has_rows(tmp_path):
    first = [{**row, "terminated": row["truncated"]} for row in lagging()]
    names = (*NAMES[:5], "terminated")
    surestep.improve(read_log(frame_of(first, names), history=3), **TERMS).save(tmp_path / "out")
    short = [{**row, "terminated": row["step"] == 1} for row in lagging() if row["step"] < 2]
    (claim,) = certify_result(tmp_path / "out", frame_of(short, names), ["robust"]).certificates
    assert "states-are-histories" in codes(claim)
    with pytest.raises(InvalidLog, match="no episode has more than"):
        read_log(frame_of(short, names), history=3).counts()
