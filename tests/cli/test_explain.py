"""`surestep explain`: the numbers of one state, and what they mean."""

import json

import pytest

import surestep
from pump_commands import LINES, PUMPS, UNTESTED, run_surestep, write_lines


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    home = tmp_path_factory.mktemp("explain")
    write_lines(home / "log.csv", LINES[:1501])
    given = (*PUMPS, *UNTESTED, "-o", home / "out")
    assert run_surestep("improve", home / "log.csv", *given).exit_code == 0
    return home / "out"


def test_all_actions_stand_side_by_side(out):
    result = run_surestep("explain", out, "--state", "worn", "--state", "high")
    assert result.exit_code == 0, result.output
    assert "condition worn, demand high" in result.stdout
    for action in ("ease", "run", "sell", "service"):
        assert action in result.stdout
    assert "What was done before is only estimated from the log." in result.stdout
    named = run_surestep("explain", out, "--state", "demand=high", "--state", "condition=worn")
    assert named.stdout == result.stdout


def test_json_says_what_the_table_says(out):
    table = surestep.load(out).table
    n_wedge = surestep.load(out).record.parameters["n_wedge"]
    for label in table.vocabulary.states:
        words = [word for text in label for word in ("--state", text)]
        result = run_surestep("explain", out, *words, "--json")
        assert result.exit_code == 0, result.output
        content = json.loads(result.stdout)
        s = table.vocabulary.state_index(label)
        run = range(table.pairs.offsets[s], table.pairs.offsets[s + 1])
        assert content["state"] == list(label)
        if table.quiet[s]:
            assert content["actions"] == []
            continue
        for k, told in zip(run, content["actions"], strict=True):
            assert told["probability"] == table.probability[k]
            assert told["behavior"] == table.behavior[k]
            assert told["visits"] == table.visits[k]
            assert told["q"] == table.q[k]
            missing = n_wedge + 1 - table.visits[k]
            assert told["more_visits"] == (missing if missing > 0 else None)


def test_an_end_leaves_nothing_to_decide(out):
    result = run_surestep("explain", out, "--state", "(end)", "--state", "(end)")
    assert result.exit_code == 0, result.output
    assert "Nothing is ever decided there" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--state", "wron", "--state", "high"), "did you mean 'worn'?"),
        (("--state", "worn"), "has 1 values, expected 2: condition, demand"),
        (("--state", "condition=worn", "--state", "high"), "give every --state with its column"),
        (("--state", "condition=worn", "--state", "condition=new"), "column 'demand' is missing"),
        ((), "Missing option '--state'"),
    ],
)
def test_a_state_that_is_not_there_is_refused(words, message, out):
    result = run_surestep("explain", out, *words)
    assert result.exit_code == 2
    assert message in result.stderr
