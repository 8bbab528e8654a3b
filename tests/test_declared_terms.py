"""Every declared term is an option, a parameter of `improve`, in run.json, read back and repeated.

What is shown here of all terms fails where a place forgets one; the last test adds one of its own.
"""

import dataclasses
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import surestep
from pump_commands import LINES, PUMPS, write_lines
from surestep import pipeline
from surestep.certificates.episodes import Logger
from surestep.cli.improve import command as improve_command
from surestep.cli.options import read
from surestep.cli.rehearse import command as rehearse_command
from surestep.declaring import (
    AlgorithmName,
    AlgorithmSettings,
    Bounds,
    Choice,
    Number,
    Texts,
    Whole,
)
from surestep.errors import InvalidParameter
from surestep.io.logs.reading import USUAL as AS_USUAL
from surestep.model.problem import UnseenRule
from surestep.pipeline.recording import terms_from, words_of
from surestep.pipeline.terms import Terms
from surestep.results.record import PARAMETERS
from surestep.terms import SOURCES, TERMS, Declared

# Of a run in which nobody said anything.
TAKEN = {name: TERMS[name].default if name in TERMS else None for name in PARAMETERS}
TAKEN |= {
    "discount": 0.9,
    "algorithm": {"algorithm": "spibb", "n_wedge": 20},
    "n_wedge_chosen_by": "posterior",
    "behavior": "estimate",
    "columns": {},
    **AS_USUAL.parameters(),
    "certificates": ["stitched"],
    "worlds": 10,
}
USUAL = ("behavior", *(name for name, term in TERMS.items() if term.has_default))
OF_ALGORITHM = ("algorithm", "n_wedge", "zeta", "settings")  # recorded together
ALONE = [name for name in TERMS if name not in OF_ALGORITHM]


def values(shape):
    """Values of a shape."""
    match shape:
        case Number():
            return st.floats(0.01, 0.99)
        case Whole():
            return st.integers(10, 1000)
        case Bounds():
            return st.tuples(st.floats(-5, -1), st.floats(0, 5))
        case Choice(words):
            return st.sampled_from(words)
        case Texts():
            return st.sampled_from([["robust"], ["robust:set=l1", "a-priori"]])
    raise AssertionError(f"there are no values of {shape}")


@pytest.mark.parametrize("name", [*TERMS, *SOURCES])
@pytest.mark.parametrize("command", [improve_command, rehearse_command])
def test_it_is_an_option(command, name):
    term = (TERMS | SOURCES)[name]
    option = next(each for each in command.params if each.name == name)
    assert option.opts == [term.option_for(name)]
    if (command.name, name) != ("rehearse", "worlds"):  # which has its own
        assert option.help == term.full_help
    assert option.required == term.required


def test_it_is_a_parameter_of_improve_and_handed_on(monkeypatch):
    signature = inspect.signature(surestep.improve).parameters
    for field in dataclasses.fields(Declared):
        parameter = signature[field.name]
        assert parameter.annotation.removesuffix(" | None") == field.type.removesuffix(" | None")
        usual = parameter.empty if TERMS[field.name].required else None
        assert parameter.default is usual
    assert set(SOURCES) < set(signature)

    class Heard(Exception):
        pass

    def hear(**said):
        raise Heard(said)

    monkeypatch.setattr(sys.modules[surestep.improve.__module__], "Terms", hear)
    given_terms = {name: object() for name in TERMS}
    with pytest.raises(Heard) as heard:
        surestep.improve("log.csv", **given_terms)
    assert heard.value.args == (given_terms,)


def test_it_is_recorded_by_itself_or_with_the_algorithm():
    left_out = [name for name in TERMS if name not in PARAMETERS]
    assert [type(TERMS[name].shape) for name in left_out] == [AlgorithmSettings]


def test_words_are_those_of_the_types():
    assert set(TERMS["logger"].shape.words) == set(get_args(Logger))
    assert set(TERMS["unseen"].shape.words) == set(get_args(UnseenRule))


def test_the_docs_name_every_option():
    text = (Path(__file__).parents[1] / "docs" / "improving.md").read_text()
    for name, term in (TERMS | SOURCES).items():
        assert term.option_for(name) in text


@given(data=st.data())
def test_what_is_recorded_is_read_back_and_repeated(data):
    name = data.draw(st.sampled_from(ALONE))
    shape = TERMS[name].shape
    value = data.draw(st.just(["dose=0:none"]) if name == "labels" else values(shape))
    recorded = json.loads(json.dumps(value))
    again = terms_from(TAKEN | {name: recorded}, [each for each in USUAL if each != name])
    assert getattr(again, name) == value
    words = words_of(TAKEN | {name: recorded}, [each for each in USUAL if each != name], [])
    assert TERMS[name].option_for(name) in words
    assert by_command(words) == again
    if TERMS[name].has_default:
        assert getattr(terms_from(TAKEN | {name: recorded}, USUAL), name) is None
        assert TERMS[name].option_for(name) not in words_of(TAKEN | {name: recorded}, USUAL, [])


@pytest.mark.parametrize(
    ("recorded", "defaults", "words"),
    [
        ({}, (), []),
        ({}, ("n_wedge",), ["--n-wedge", "auto"]),
        ({}, ("algorithm",), ["--algorithm", "spibb"]),
        ({"zeta": 0.5, "n_wedge_chosen_by": None}, (), ["--zeta", "0.5"]),
        ({"n_wedge_chosen_by": None}, ("n_wedge",), ["--n-wedge", "20"]),
        (
            {"algorithm": {"algorithm": "approx-soft-spibb", "epsilon": 0.2, "delta": 0.1}},
            ("algorithm",),
            ["--algorithm", "approx-soft-spibb", "--setting", "epsilon=0.2"],
        ),
        (
            {"algorithm": {"algorithm": "approx-soft-spibb", "epsilon": 0.2, "delta": 0.3}},
            ("algorithm",),
            [
                *("--algorithm", "approx-soft-spibb", "--setting", "epsilon=0.2"),
                *("--setting", "delta=0.3"),
            ],
        ),
    ],
)
def test_what_is_said_of_the_algorithm_is_read_back_and_repeated(recorded, defaults, words):
    left = [name for name in USUAL if name not in defaults]
    found = words_of(TAKEN | recorded, left, [])
    assert found == ["LOG", "--discount", "0.9", *words]
    assert by_command(found) == terms_from(TAKEN | recorded, left)


def by_command(words):
    """The terms that a command line gives."""
    context = improve_command.make_context("improve", [*words, "-o", "OUT"])
    return Terms(**{name: read(TERMS[name].shape, context.params[name]) for name in TERMS})


@pytest.mark.parametrize("name", TERMS)
def test_a_value_of_another_shape_is_refused(name):
    if TERMS[name].shape != Number():  # whose use checks it
        with pytest.raises(InvalidParameter, match=f"{name} is|'car'"):
            Terms(**{"discount": 0.9, name: "car"})


def test_only_the_algorithm_is_read_in_its_own_way():
    special = [name for name in TERMS if name not in ALONE and name != "zeta"]
    shapes = {type(TERMS[name].shape) for name in special}
    assert shapes == {AlgorithmName, AlgorithmSettings, Whole}
    assert pipeline.Terms is Terms


TOY = """
    patience: int | None = field(
        default=None,
        metadata=declared(
            shape=Whole(1, "nobody waits for less"),
            default=3,
            label="days of patience",
            help="How long to wait.",
        ),
    )


TERMS"""
ADDED = """
import sys, types
from pathlib import Path
from importlib.util import find_spec
spec = find_spec("surestep.terms")
text = Path(spec.origin).read_text()
assert text.count("\\n\\n\\nTERMS") == 1
sys.modules["surestep.terms"] = module = types.ModuleType("surestep.terms")
exec(compile(text.replace("\\n\\n\\nTERMS", TOY), spec.origin, "exec"), module.__dict__)
from surestep.cli.main import main
for command in COMMANDS:
    try:
        main(command)
    except SystemExit as end:
        print("exit code", end.code)
"""


def test_a_term_of_ones_own_is_one_declaration(tmp_path):
    log = write_lines(tmp_path / "log.csv", LINES[:151])
    usual = [*map(str, PUMPS), "--kind", "robust", "--worlds", "0"]
    improved = ["improve", str(log), *usual, "-o"]
    commands = [
        [*improved, str(tmp_path / "out"), "--patience", "7"],
        ["verify", str(tmp_path / "out"), str(log)],
        [*improved, str(tmp_path / "usual")],
        [*improved, str(tmp_path / "none"), "--patience", "0"],
    ]
    code = f"TOY = {TOY!r}\nCOMMANDS = {commands!r}\n{ADDED}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.count("exit code 0") == 3, found.stdout + found.stderr
    assert "confirmed: the same bytes in every file" in found.stdout
    assert "by default: days of patience = 3" in found.stdout
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["parameters"]["patience"] == 7
    assert "--patience 7" in run["command"]
    taken = json.loads((tmp_path / "usual" / "run.json").read_text())
    assert taken["parameters"]["patience"] == 3
    assert "patience" in taken["defaults"]
    assert "--patience" not in taken["command"]
    words = "patience is 0, expected a whole number of at least 1: nobody waits for less"
    assert words in " ".join(found.stderr.split())
