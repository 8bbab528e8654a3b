"""Ways to read a log: each is declared once, and known wherever logs are read and recorded."""

import inspect
import json
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from log_tables import frame_of
from pump_commands import LINES, PUMPS, UNTESTED, run_surestep, write_lines
from surestep.cli.count import command as count_command
from surestep.cli.improve import command as improve_command
from surestep.cli.inspect import command as inspect_command
from surestep.cli.rehearse import command as rehearse_command
from surestep.declaring import Choice, Flag, Text, Texts, Whole
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io import read_log
from surestep.io.labels.state_rules import Split, TreeRule
from surestep.io.logs.notation import PLAIN, Notation, advice
from surestep.io.logs.reading import DEFAULTS, READING, Reading
from surestep.pipeline.verify import verify_result
from surestep.results.record import PARAMETERS

COMMANDS = (improve_command, rehearse_command, count_command, inspect_command)
DATABASE = duckdb.connect()
SIGNS = [(".", None), (",", None), (".", ","), (",", "."), (".", "'"), (",", " ")]


@pytest.mark.parametrize("name", READING)
def test_it_is_an_option_a_parameter_and_recorded(name):
    for command in COMMANDS:
        option = next(each for each in command.params if each.name == name)
        assert option.opts == [READING[name].option_for(name)]
        assert option.help == READING[name].full_help
    parameter = inspect.signature(read_log).parameters[name]
    assert parameter.default == DEFAULTS[name]
    assert name in PARAMETERS
    assert READING[name].option_for(name) in (
        Path(__file__).parents[3] / "docs" / "logs.md"
    ).read_text(encoding="utf-8")


RULE = json.dumps(TreeRule(("age",), Split("age", 60.0, None, None)).to_json(), ensure_ascii=False)
TEXTS = {
    "bins": ["a:width=1", "b:edges=1,2"],
    "time_format": ["%d.%m.%Y"],
    "gap": ["30d"],
    "states_from": ["tree:size=3", RULE],
    "history": ["3", "auto", '{"rows": 2, "log_likelihood": [-1.5, -1.0]}'],
    "missing": ["lactate=drop"],
    "derive": ["calls=count(event=call)"],
    "reward_table": ["action,reward\nwait,-1\n"],
}


def values(name):
    match READING[name].shape:
        case Texts():
            return st.lists(st.sampled_from(TEXTS[name]), max_size=2).map(tuple)
        case Text():
            return st.sampled_from([*TEXTS[name], DEFAULTS[name]])
        case Flag():
            return st.booleans()
        case Whole():
            return st.sampled_from([None, 80])
        case Choice(words):
            return st.sampled_from([*words, DEFAULTS[name]])


readings = (
    st.fixed_dictionaries({name: values(name) for name in READING})
    .filter(lambda said: said["decimal"] != said["thousands"])
    .map(lambda said: Reading(**said))
)


@given(reading=readings)
def test_what_is_said_is_recorded_read_back_and_repeated(reading):
    recorded = json.loads(json.dumps(reading.parameters()))
    assert Reading.of(recorded) == reading
    words = ["log.csv", "--discount", "0.9", "-o", "OUT", *reading.words()]
    context = improve_command.make_context("improve", words)
    assert Reading.of({name: context.params[name] for name in READING}) == reading


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"decimal": ";"}, r"decimal is ';', expected one of '\.', ','"),
        ({"decimal": ",", "thousands": ","}, "both ',', expected two different signs"),
        ({"thousands": "."}, r"both '\.', expected two"),
        ({"delimiter": "\t"}, r"delimiter is '\\t', expected one of .*'tab'"),
        ({"bins": "age:width=1"}, "bins are 'age:width=1', expected a list"),
        ({"bins": [3]}, "expected a list of texts"),
    ],
)
def test_what_nobody_can_mean_is_refused(said, message):
    with pytest.raises(InvalidParameter, match=message):
        Reading(**said)


# ---- numbers ----------------------------------------------------------------------------------


def written(cents, notation):
    """A number of hundredths as people write it."""
    text = f"{abs(cents) / 100:,.2f}"
    signs = {",": notation.thousands or "", ".": notation.decimal}
    return ("-" if cents < 0 else "") + "".join(signs.get(sign, sign) for sign in text)


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=20), st.sampled_from(SIGNS))
def test_a_number_means_the_same_in_every_notation(cents, signs):
    notation = Notation(*signs)
    rows = [written(each, notation) for each in cents]
    query = f"SELECT {notation.sql('x')} FROM (SELECT unnest(?::VARCHAR[]) AS x)"
    texts = DATABASE.execute(query, [rows]).fetchall()
    assert all(map(notation.reads, rows))
    assert [round(100 * float(text)) for (text,) in texts] == cents


@pytest.mark.parametrize(
    ("signs", "text", "found"),
    [
        ((",", None), "1.5", "1.5 (written without the decimal sign ,)"),
        ((",", "."), "1.234", "1234"),
        ((",", "."), "1.5", "1.5 (written without the decimal sign ,)"),
        ((",", "."), "12.34.567", "12.34.567"),
        ((",", " "), "1\u00a0234,5", "1234.5"),
        ((",", None), "ten", "ten"),
        ((",", None), None, None),
        ((".", ","), "1,234.5", "1234.5"),
        ((".", ","), "1,5", "1,5"),
        ((",", None), "1e-3", "1e-3"),
    ],
)
def test_only_numbers_in_the_notation_become_numbers(signs, text, found):
    query = f"SELECT {Notation(*signs).sql('x')} FROM (SELECT ?::VARCHAR AS x)"
    assert DATABASE.execute(query, [text]).fetchone() == (found,)


@given(st.from_regex(r"[0-9.,' ]{1,9}", fullmatch=True))
def test_advice_is_given_where_it_helps_and_nowhere_else(text):
    words = advice(text)
    helps = any(Notation(*signs).reads(text) for signs in [*SIGNS[1:], (".", " ")])
    assert bool(words) == (helps and not PLAIN.reads(text))


def comma_lines(lines):
    """The pump log with amounts in thousands and decimal commas, between semicolons."""
    header, *rows = [line.split(",") for line in lines]
    place = header.index("reward")
    for row in rows:
        row[place] = f"{2000 + int(row[place]):,},50".replace(",", ".", 1)
    return [";".join(row) for row in (header, *rows)]


def test_decimal_commas_are_recorded_and_verified(tmp_path):
    log = write_lines(tmp_path / "log.csv", comma_lines(LINES[:61]))
    usual = [*PUMPS, *UNTESTED, "--kind", "robust"]
    asked = ("--decimal", ",", "--thousands", ".")
    made = run_surestep("improve", log, *usual, *asked, "-o", tmp_path / "out")
    assert made.exit_code == 0, made.output
    run = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert (run["parameters"]["decimal"], run["parameters"]["thousands"]) == (",", ".")
    assert "--decimal , --thousands ." in run["command"]
    assert verify_result(tmp_path / "out", log).level == "same bytes"
    shown = run_surestep("inspect", log, *PUMPS[:-2], *asked)
    assert "--decimal , --thousands ." in shown.output
    counted = run_surestep("count", log, *PUMPS[:-2], *asked, "-o", tmp_path / "counts.parquet")
    assert counted.exit_code == 0, counted.output
    refused = run_surestep("count", log, *PUMPS[:-2], "-o", tmp_path / "none.parquet")
    assert refused.exit_code == 2
    assert "with --decimal , --thousands . it is a number" in " ".join(refused.output.split())


def test_bins_and_steps_have_decimal_commas_too_and_labels_stay():
    rows = [
        {"episode": "1", "step": "1.000", "age": "1,5", "action": "0,1", "reward": "1.000,25"},
        {"episode": "1", "step": "1.001", "age": "12,5", "action": "0,2", "reward": ",5"},
    ]
    source = read_log(
        frame_of(rows, tuple(rows[0])),
        columns={"state": "age"},
        bins=["age:edges=10"],
        decimal=",",
        thousands=".",
        clock=True,
    )
    counts = source.counts()
    assert counts.states == (("< 10",), (">= 10",))
    assert counts.actions == (("0,1",), ("0,2",))
    assert int(counts.transitions.reward_sum[0]) == 100025


def test_a_refusal_says_how_numbers_could_be_read():
    rows = [{"age": "30,5", "action": "b", "reward": "1.234,5", "next_age": "31"}]
    table = frame_of(rows, tuple(rows[0]))
    binned = read_log(table, columns={"state": "age"}, bins=["age:quantiles=2"])
    with pytest.raises(InvalidLog, match=r"found '30,5', .* \(with decimal=',' it is a number\)"):
        binned.counts()


def test_a_point_is_no_decimal_comma():
    rows = [{"state": "a", "action": "b", "reward": "1.5", "next_state": "a"}]
    with pytest.raises(InvalidLog, match=r"found '1\.5 \(written without the decimal sign ,\)'"):
        read_log(frame_of(rows, tuple(rows[0])), decimal=",").counts()


def test_columns_are_listed_one_below_the_other():
    row = {"state": "a", "action": "x", "reward": 1, "pscore": 0.5}
    listed = str(read_log(frame_of([row], [*row]), one_step=True).columns).splitlines()
    assert listed[-1] == "behavior_prob pscore"
    assert all(line[13] == " " != line[14] for line in listed)
