"""What is possible and what is allowed: kept by the improvement, recorded, verified, explained."""

import csv
import json
import shlex

import numpy as np
import pytest

import surestep
from support.pump_commands import run_surestep, write_lines
from surestep import load
from surestep.errors import InvalidLog, InvalidParameter
from surestep.pipeline import explain, in_words, verify_result

TERMS = ("--discount", "0.9", "--kind", "robust", "--worlds", "0")
STATES, ACTIONS = ("a", "b"), ("left", "right", "up")
# How often each action was taken, and what it earns: `up` is best in a, and nobody tried it in b.
VISITS = {"a": (30, 30, 30), "b": (40, 8, 0)}
EARNS = {"a": (0, 1, 2), "b": (0, 1, 0)}


def pairs(actions_of):
    return ["state,action", *(f"{s},{a}" for s, actions in actions_of.items() for a in actions)]


def log_rows():
    """Steps of one state each, a and b in turn; the end comes after b."""
    rows = ["episode,step,state,action,reward,terminated"]
    for episode in range(90):
        for step, state in enumerate(STATES):
            visits = VISITS[state]
            action = np.searchsorted(np.cumsum(visits), episode % sum(visits), side="right")
            did = f"{episode},{step},{state},{ACTIONS[action]},{EARNS[state][action]}"
            rows.append(f"{did},{'true' if state == 'b' else 'false'}")
    return rows


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("possible")
    write_lines(folder / "log.csv", log_rows())
    write_lines(folder / "possible.csv", pairs({"a": ACTIONS, "b": ACTIONS[:2]}))
    write_lines(folder / "allowed.csv", pairs({"a": ACTIONS[:2], "b": ACTIONS}))
    return folder


@pytest.fixture(scope="module")
def usual(home):
    """What is improved without limits."""
    return improved(home, home / "usual", "--set", "method.n_wedge=5")


def improved(home, out, *given):
    result = run_surestep("improve", home / "log.csv", *TERMS, *given, "-o", out)
    assert result.exit_code == 0, result.output
    return load(out)


def chances(table, state):
    s = table.vocabulary.index("state", state)
    run = slice(table.pairs.offsets[s], table.pairs.offsets[s + 1])
    names = [table.vocabulary.actions[a][0] for a in table.pairs.action[run]]
    return dict(zip(names, table.probability[run].tolist(), strict=True))


@pytest.mark.thorough
def test_the_best_that_is_allowed_is_recommended(home, usual, tmp_path):
    assert chances(usual.table, "a")["up"] > 0.9
    given = ("--set", "method.n_wedge=5", "--set", f"limits.allowed={home / 'allowed.csv'}")
    result = improved(home, tmp_path / "out", *given)
    table = result.table
    before = table.behavior[table.vocabulary.index("action", "up")]
    found = chances(table, "a")
    assert found["up"] <= before + 1e-12
    assert found["right"] > 0.6  # it takes what left had
    assert result.record.parameters.allowed == "listed"
    assert "Limits were set: 5 of 6 pairs may be recommended" in result.report
    with open(tmp_path / "out" / "policy.csv", encoding="utf-8", newline="") as file:
        barred = [row for row in csv.DictReader(file) if row["allowed"] == "false"]
    assert [(row["state"], row["action"]) for row in barred] == [("a", "up")]
    with open(home / "usual" / "policy.csv", encoding="utf-8", newline="") as file:
        assert {row["allowed"] for row in csv.DictReader(file)} == {""}
    explained = explain(result, "a")
    assert [each.allowed for each in explained.actions] == [True, True, False]
    assert explained.actions[2].more_visits is None
    words = " ".join(in_words(explained))
    assert "'up' is not among the pairs that may be recommended" in words
    assert "Among 'left' and 'right', tried more often, the rest of the probability" in words
    shown = run_surestep("explain", tmp_path / "out", "--state", "a")
    assert "30 (barred)" in " ".join(shown.stdout.split())
    assert "not among" not in " ".join(in_words(explain(result, "b")))


@pytest.mark.parametrize(
    ("key", "lines", "message"),
    [
        ("allowed", ["a,left", "a,left"], "row 2: state 'a', action 'left' is there again"),
        ("allowed", ["a,lift"], "no action has 'lift' in column 'action'; did you mean"),
        ("allowed", ["a,left", "c,left"], "row 2: no state has 'c' in column 'state'"),
        ("allowed", ["(end),left"], "has no pair of a state and an action that is possible"),
        ("possible", ["a,left"], "the log has the state 'b'"),
        (
            "possible",
            pairs({"a": ACTIONS, "b": ("left",)})[1:],
            "the log takes action 'right' in state 'b', but ",
        ),
    ],
)
def test_bad_limits_are_refused(key, lines, message, home, tmp_path):
    file = write_lines(tmp_path / "bad.csv", ["state,action", *lines])
    given = ("--set", f"limits.{key}={file}", "-o", tmp_path / "o")
    result = run_surestep("improve", home / "log.csv", *TERMS, *given)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "bad.csv" in result.stderr
    assert not (tmp_path / "o").exists()


def test_limits_of_states_that_nobody_met_are_no_mistake():
    rows = {
        "age": np.array([30.0, 30.0, 50.0, 50.0] * 10),
        "ward": np.array(["x", "x", "y", "y"] * 10, object),
        "action": np.array(["go", "stay"] * 20, object),
        "reward": np.array([1.0, 0.0] * 20),
        "next_age": np.array([30.0, 50.0] * 20),
        "next_ward": np.array(["x", "y"] * 20, object),
    }
    log = surestep.read_log(
        rows, columns={"state": ["age", "ward"]}, bins={"age": {"edges": [40, 60]}}
    )
    limits = {  # 30, y and 70, x were never met, but could be
        "age": np.array([30.0, 30.0, 70.0]),
        "ward": np.array(["x", "y", "x"], object),
        "action": np.array(["go"] * 3, object),
    }
    terms = {"discount": 0.9, "certificates": ["robust"], "worlds": 0, "n_wedge": 3}
    result = surestep.improve(log, allowed=limits, **terms)
    assert result.table.allowed.tolist() == [True, False, False, False]
    limits["ward"][1] = "z"
    with pytest.raises(InvalidLog, match="no state has 'z' in column 'ward'"):
        surestep.improve(log, allowed=limits, **terms)


def test_only_what_was_seen_is_recommended(home, usual, tmp_path):
    given = ("--set", "method.n_wedge=5", "--set", "limits.possible=seen")
    result = improved(home, tmp_path / "out", *given)
    assert result.record.parameters.possible == "seen"
    said = "No action is recommended in a situation where the log does not show it."
    assert said in result.report
    assert explain(usual, "b").actions[2].more_visits == explain(result, "b").n_wedge + 1
    never = explain(result, "b").actions[2]
    assert never.more_visits is None
    words = " ".join(in_words(explain(result, "b")))
    assert "'up' keeps the probability that it had: never tried there, and nothing is rec" in words
    # δ is still shared by all pairs: what was seen is data.
    assert result.table.pairs.num_pairs == 7
    assert result.certificate.lower == usual.certificate.lower


def test_an_algorithm_that_likes_the_unknown_keeps_to_what_was_seen():
    # In b, `up` was never tried; with values from 0 on down it would look best.
    rows = {
        "state": np.array(["b", "b", "a"] * 20, object),
        "action": np.array(["left", "right", "up"] * 20, object),
        "reward": np.array([-1.0, -2.0, -1.0] * 20),
        "next_state": np.array(["a", "a", "b"] * 20, object),
    }
    terms = {"discount": 0.9, "certificates": ["robust"], "worlds": 0, "unseen": "terminal"}
    terms |= {"algorithm": "rmin", "n_wedge": 0, "returns": (-30, 0)}
    log = surestep.read_log(rows)
    seen = surestep.improve(log, possible="seen", **terms).table
    unseen = seen.visits == 0
    assert (seen.probability[unseen] <= seen.behavior[unseen] + 1e-12).all()


def test_declared_pairs_are_the_pairs(home, usual, tmp_path):
    given = ("--set", "method.n_wedge=5", "--set", f"limits.possible={home / 'possible.csv'}")
    result = improved(home, tmp_path / "out", *given)
    table = result.table
    assert "Possible pairs were declared: 5." in result.report
    assert list(chances(table, "b")) == ["left", "right"]
    assert table.pairs.num_pairs == 6  # and that of the end
    parameters = result.record.parameters
    assert parameters.possible == "listed"
    assert parameters.states == parameters.actions == "possible pairs"
    codes = [each.code for each in result.certificate.assumptions]
    assert "pairs-declared" in codes
    assert "nothing-beyond-observed" not in codes
    # What cannot happen has no share of δ.
    assert result.certificate.lower > usual.certificate.lower


@pytest.mark.thorough
def test_a_behavior_table_says_already_what_is_possible(home, tmp_path):
    result = improved(home, tmp_path / "out")
    table = result.table
    given = {"state": [*"aaabbb"], "action": [*ACTIONS * 2]}
    given["probability"] = table.behavior[table.decided]
    terms = {"discount": 0.9, "certificates": ["robust"], "worlds": 0, "behavior": given}
    log = surestep.read_log(home / "log.csv")
    with pytest.raises(InvalidParameter, match="the behavior table says which states and actions"):
        surestep.improve(log, possible=home / "possible.csv", **terms)
    with pytest.raises(InvalidParameter, match="the table of what is possible says which states"):
        surestep.improve(
            log, discount=0.9, worlds=0, possible=home / "possible.csv", actions=list(ACTIONS)
        )
    # What was seen is no list of pairs, and may stand beside it.
    assert surestep.improve(log, possible="seen", **terms).record.parameters.possible == "seen"


GIVEN = [
    (("--set", "limits.possible=seen"), ()),
    (
        ("--set", "limits.possible=possible.csv", "--set", "limits.allowed=allowed.csv"),
        ("possible", "allowed"),
    ),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("given", "files"), GIVEN, ids=str)
def test_the_command_makes_it_again_and_verify_confirms(given, files, home, tmp_path, monkeypatch):
    monkeypatch.chdir(home)
    out = tmp_path / "out"
    assert run_surestep("improve", "log.csv", *TERMS, *given, "-o", out).exit_code == 0
    record = json.loads((out / "run.json").read_text())
    assert [each["role"] for each in record["inputs"]] == ["log", *files]
    words = shlex.split(record["command"])
    assert run_surestep(*words[1:-1], tmp_path / "again").exit_code == 0
    for file in out.iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name
    tables = [word for name in files for word in ("--set", f"limits.{name}={name}.csv")]
    confirmed = run_surestep("verify", out, "log.csv", *tables)
    assert (confirmed.exit_code, "confirmed" in confirmed.stdout) == (0, True), confirmed.output
    again = run_surestep("certify", out, "log.csv", "--kind", "robust:set=l1")
    assert again.exit_code == 0, again.output


@pytest.mark.thorough
def test_other_limits_are_no_confirmation(home, tmp_path):
    improved(home, tmp_path / "out", "--set", f"limits.allowed={home / 'allowed.csv'}")
    other = write_lines(tmp_path / "allowed.csv", pairs({"a": ("left",), "b": ("left",)}))
    for name in ("allowed", "possible"):
        with pytest.raises(surestep.errors.ResultMismatch, match=f"limits.{name}"):
            verify_result(tmp_path / "out", home / "log.csv", **{name: other})
