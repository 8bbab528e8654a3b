"""`surestep explain`: the numbers of one state, and what they mean."""

import json
from dataclasses import replace

import pytest

import surestep
from support.pump_commands import LINES, PUMPS, UNTESTED, run_surestep, write_lines
from surestep.cli.results import explanation_section
from surestep.cli.terminal import terminal
from surestep.pipeline import Explanation, in_words
from surestep.pipeline.explain import ActionReason
from surestep.report.terminal import print_sections


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
    n_wedge = surestep.load(out).record.parameters.n_wedge
    for label in table.vocabulary.states:
        words = [word for text in label for word in ("--state", text)]
        result = run_surestep("explain", out, *words, "--json")
        assert result.exit_code == 0, result.output
        content = json.loads(result.stdout)
        s = table.vocabulary.index("state", label)
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


def explanation_of(visits, *, n_wedge=10, label="{}", **changes):
    """The first action was taken half of the time before, and all the time now."""
    behavior = [0.5, *[0.5 / (len(visits) - 1)] * (len(visits) - 1)]
    reasons = tuple(
        ActionReason(
            (label.format(k // 5), label.format(k % 5)),
            behavior[k],
            float(k == 0) if times > n_wedge else behavior[k],
            times,
            times > n_wedge,
            1000.0 / 7 + k,
            -1000.0 / 7,
            None if times > n_wedge else n_wedge + 1 - times,
        )
        for k, times in enumerate(visits)
    )
    columns = ("iv_fluid", "vasopressor")
    explained = Explanation(
        ("17", "high"), ("cluster", "lactate"), columns, "spibb", n_wedge, True, reasons, 31_415
    )
    return replace(explained, **changes)


@pytest.mark.parametrize("label", ["{}", "level {} of the pump", "{}" + 30 * "m"])
def test_25_actions_fit_80_columns_and_those_nobody_tried_are_left_out(label, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    explained = explanation_of([20_000, 12_000, 7, 1, *[0] * 21], label=label)
    print_sections([explanation_section(explained)], terminal())
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert "without 21 that nobody tried" in " ".join(printed.split())
    assert "and 16 others keep the probability that they had: never tried there." in " ".join(
        printed.split()
    )


@pytest.mark.parametrize(
    ("visits", "n_wedge", "said"),
    [
        ((9, 1), 1, "'0, 1' keeps the probability that it had: tried at most once (N∧), too"),
        ((9, 7), 8, "'0, 1' keeps the probability that it had: tried at most 8 times (N∧), too"),
        ((9, 0), 0, "'0, 1' keeps the probability that it had: never tried there."),
    ],
)
def test_how_seldom_is_said_in_words(visits, n_wedge, said):
    sentences = " ".join(in_words(explanation_of(visits, n_wedge=n_wedge)))
    assert said in sentences
    assert "1 times" not in sentences
    assert ("at most" in sentences) == (visits[1] > 0)


@pytest.mark.parametrize(
    ("probability", "goes"),
    [(1.0, "all"), (1 - 1e-12, "all"), (1 - 1e-9, "the rest of the"), (0.9, "the rest of the")],
)
def test_all_probability_is_all_but_for_rounding(probability, goes):
    explained = explanation_of((30, 20, 1))
    first, second, third = explained.actions
    shares = probability, 1 - probability, 0.0
    actions = (
        each._replace(probability=share)
        for each, share in zip((first, second, third), shares, strict=True)
    )
    (said,) = (
        words for words in in_words(replace(explained, actions=tuple(actions))) if "Among" in words
    )
    assert f"tried more often, {goes} probability goes to '0, 1', whose estimated" in said


def test_an_end_leaves_nothing_to_decide(out):
    result = run_surestep("explain", out, "--state", "(end)", "--state", "(end)")
    assert result.exit_code == 0, result.output
    assert "Nothing is ever decided there" in result.stdout
