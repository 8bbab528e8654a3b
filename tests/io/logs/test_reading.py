"""Ways to read a log: each is declared once, and known wherever logs are read and recorded."""

import inspect
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from surestep.declaring import Choice, Text, Texts
from surestep.io.logs.reading import DEFAULTS, READING, Reading

from log_tables import frame_of
from surestep.cli.count import command as count_command
from surestep.cli.improve import command as improve_command
from surestep.cli.inspect import command as inspect_command
from surestep.cli.rehearse import command as rehearse_command
from surestep.errors import InvalidParameter
from surestep.io import read_log
from surestep.results.record import PARAMETERS

COMMANDS = (improve_command, rehearse_command, count_command, inspect_command)


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


TEXTS = {
    "bins": ["a:width=1", "b:edges=1,2"],
    "time_format": ["%d.%m.%Y"],
}


def values(name):
    match READING[name].shape:
        case Texts():
            return st.lists(st.sampled_from(TEXTS[name]), max_size=2).map(tuple)
        case Text():
            return st.sampled_from([*TEXTS[name], DEFAULTS[name]])
        case Choice(words):
            return st.sampled_from([*words, DEFAULTS[name]])


readings = st.fixed_dictionaries({name: values(name) for name in READING}).map(
    lambda said: Reading(**said)
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
        ({"delimiter": "\t"}, r"delimiter is '\\t', expected one of .*'tab'"),
        ({"bins": "age:width=1"}, "bins are 'age:width=1', expected a list"),
        ({"bins": [3]}, "expected a list of texts"),
    ],
)
def test_what_nobody_can_mean_is_refused(said, message):
    with pytest.raises(InvalidParameter, match=message):
        Reading(**said)


def test_columns_are_listed_one_below_the_other():
    row = {"state": "a", "action": "x", "reward": 1, "pscore": 0.5}
    listed = str(read_log(frame_of([row], [*row])).columns).splitlines()
    assert listed[-1] == "behavior_prob pscore"
    assert all(line[13] == " " != line[14] for line in listed)
