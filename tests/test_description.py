"""Descriptions: what is written is read again, what is wrong is refused in one line."""

import json
import math
import shlex
import tomllib

import click
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from surestep import description as module
from surestep.cli.options import described as options_of
from surestep.description import (
    Description,
    assignment,
    command,
    described,
    given_as,
    leaves,
    merged,
    written,
)
from surestep.errors import FileFailure, InvalidParameter, SurestepError

TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
NAMES = TEXTS.filter(bool)
NUMBERS = st.floats(-1e9, 1e9)
SEVERAL = NAMES | st.lists(NAMES, min_size=1, max_size=3)
RANGES = st.tuples(NUMBERS, NUMBERS).map(sorted).filter(any)
SIZES = st.integers(2, 1000) | st.just("auto")
BINS = st.one_of(
    st.fixed_dictionaries({"quantiles": st.integers(2, 1000)}),
    st.fixed_dictionaries({"width": st.floats(1e-6, 1e6)}),
    st.fixed_dictionaries({"edges": st.lists(NUMBERS, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"tree": SIZES, "columns": SEVERAL}),
    st.fixed_dictionaries({"kmeans": SIZES, "columns": SEVERAL}),
)


def read_description(file):
    return given_as(file)[0]


def some(**keys):
    return st.fixed_dictionaries({}, optional=keys)


CONTENTS = some(
    files=SEVERAL,
    query=TEXTS,
    tables=st.dictionaries(TEXTS, NAMES, max_size=2),
    reader=some(
        delim=st.characters(codec="utf-8"), nullstr=SEVERAL, skip=st.integers(0, 9),
        decimal_separator=st.sampled_from(".,"), encoding=st.just("latin-1"),
    ),
    case=TEXTS,
    ends=st.sampled_from(["complete", "clock", "random"]),
    columns=some(state=SEVERAL, action=SEVERAL, reward=NAMES, episode=NAMES, time=NAMES),
    bins=st.dictionaries(TEXTS, BINS, max_size=2),
    behavior=some(policy=NAMES, logger=st.just("fixed")),
    stakes=some(discount=st.floats(0, 1), running=RANGES, ending=RANGES, returns=RANGES),
    limits=some(possible=NAMES, allowed=NAMES, states=NAMES),
    method=some(
        algorithm=NAMES, n_wedge=st.integers(0, 99) | st.just("auto"), zeta=NUMBERS,
        delta=st.floats(0.01, 0.99), certificates=SEVERAL, worlds=st.integers(0, 99),
    ),
    names=st.dictionaries(TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=2), max_size=2),
)  # fmt: skip
DESCRIPTIONS = CONTENTS.map(described)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
KEYS = [*Description.__struct_fields__]


def read_back(line):
    """Returns the description that the command line gives to a verb."""
    got = []

    @click.command()
    @options_of(*module.READING, *module.ASKING, *module.IMPROVING)
    def verb(description, **_):
        got.append(description)

    done = CliRunner().invoke(verb, shlex.split(line)[2:], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return got[0]


def refused(content):
    """Returns why nested values are no description, in one line."""
    with pytest.raises(InvalidParameter) as problem:
        described(content)
    assert "\n" not in str(problem.value)
    return str(problem.value)


def outcome(work, *arguments):
    """Returns what comes of it, or the refusal, which is one line."""
    try:
        return work(*arguments)
    except SurestepError as problem:
        message = str(problem)
    assert "\n" not in message
    return message


def one_for_one(description):
    """Returns a description with lists of one where a text would do, as the command has them."""
    content = description.given()
    for path in ("files", "columns.state", "columns.action", "method.certificates"):
        value = module.at(description, path)
        if isinstance(value, str):
            module.put(content, path, [value])
    return described(content)


@given(CONTENTS)
def test_toml_that_is_written_is_read_again(content):
    text = "\n".join(f"{module.key_text(name)} = {written(x)}" for name, x in content.items())
    assert tomllib.loads(text) == content
    assert described(tomllib.loads(text)) == described(content)
    assert described(json.loads(json.dumps(described(content).given()))) == described(content)


@given(DESCRIPTIONS)
def test_leaves_are_assignments(description):
    content = {}
    for path, value in leaves(description.given()):
        content = merged(content, assignment(f"{path}={written(value)}"))
    assert described(content) == description


def is_other(file):
    return file.startswith("-") or file.endswith(".toml")


@given(DESCRIPTIONS)
def test_the_command_says_all_of_a_description(description):
    if not module.several(description.files) or any(
        map(is_other, module.several(description.files))
    ):
        description = described(merged(description.given(), {"files": "log.csv"}))
    assert one_for_one(read_back(command("verb", description))) == one_for_one(description)


@pytest.mark.parametrize(
    "content",
    [
        {"columns": {"state": "-x", "reward": "--set", "episode": "a b'\"$(c)\n"}},
        {"stakes": {"running": [-1, 5], "discount": 1}},
        {"stakes": {"ending": [-1.5, 0]}},
        {"method": {"certificates": ["robust:set=l1", "stitched"], "delta": 0.05}},
        {"bins": {"a.b": {"edges": [1, 2.5]}, "": {"width": 1e-7}}},
        {"columns": {"state": ["a", "b"]}, "names": {"a": {}}},
        {"query": "SELECT *\nFROM log -- \x7f\x00\u2028 'x'", "reader": {"delim": "\t"}},
        {"names": {"a": {"x = y": "[1]", "1": "true"}}, "limits": {"possible": "seen"}},
    ],
)
def test_commands_of_odd_names(content):
    description = described({"files": ["log.csv"], **content})
    assert one_for_one(read_back(command("verb", description))) == one_for_one(description)


def test_a_file_that_looks_like_an_option_is_none():
    description = described({"files": ["-log.csv", "--help"]})
    assert read_back(command("verb", description)).files == ("./-log.csv", "./--help")


@given(path=st.sampled_from(["stakes.discount", "bins.age.width", "names.a.b"]), text=TEXTS)
def test_an_assignment_is_read_or_refused(path, text):
    assert isinstance(outcome(assignment, f"{path}={text}"), dict | str)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("method.algorithm=spibb:n_wedge=5", {"method": {"algorithm": "spibb:n_wedge=5"}}),
        ("stakes.discount = 0.9", {"stakes": {"discount": 0.9}}),
        ("limits.allowed=a b.csv", {"limits": {"allowed": "a b.csv"}}),
        ('names.a."x y"=ill', {"names": {"a": {"x y": "ill"}}}),
        ("case=", {"case": ""}),
    ],
)
def test_assignments_as_people_write_them(text, content):
    assert assignment(text) == content


@pytest.mark.parametrize("text", ["", "=", "=1", "stakes", "a b=1", "[stakes]\na=1"])
def test_what_is_no_assignment_is_refused(text):
    with pytest.raises(InvalidParameter, match="expected KEY=VALUE"):
        assignment(text)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"file": "x"}, "there is no key 'file'; did you mean files"),
        ({"stakes": {"discont": 1}}, "no key 'discont' in [stakes]; did you mean discount"),
        (
            {"bins": {"age": {"quantile": 4}}},
            "no key 'quantile' in [bins.age]; did you mean quantiles",
        ),
        ({"stakes": {"discount": 1.5}}, "stakes.discount is 1.5, expected"),
        ({"stakes": {"discount": "high"}}, "stakes.discount is 'high', expected a number"),
        ({"stakes": {"running": [0, math.nan]}}, "stakes.running"),
        ({"stakes": {"running": [2, 1]}}, "lower number of running first"),
        ({"stakes": {"running": [0, 0]}}, "nothing can be gained"),
        ({"stakes": {"running": [1]}}, "stakes.running"),
        ({"bins": {"age": {"width": math.nan}}}, "bins"),
        ({"bins": {"age": {"quantiles": 1}}}, "bins"),
        ({"bins": {"age": {}}}, "one of quantiles, width, edges, tree, kmeans"),
        ({"bins": {"age": {"width": 1, "edges": [1]}}}, "one of quantiles"),
        ({"bins": {"age": {"tree": 4}}}, "columns beside tree"),
        ({"bins": {"age": {"tree": 4, "columns": []}}}, "bins"),
        ({"bins": {"age": {"width": 4, "columns": ["a"]}}}, "columns beside tree"),
        ({"method": {"zeta": math.nan}}, "method.zeta"),
        ({"method": {"worlds": True}}, "method.worlds is True, expected a whole number"),
        ({"method": {"worlds": 1.5}}, "method.worlds is 1.5"),
        *(({"method": {"n_wedge": wrong}}, "or `auto`") for wrong in ("some", 5.0, 5.5, True)),
        ({"method": {"n_wedge": np.float64(5)}}, "or `auto`"),
        ({"method": {"unseen": "x"}}, "never tried: pessimistic, or 0 (terminal)"),
        ({"ends": "never"}, "ends is 'never', expected another word (How episodes end"),
        ({"reader": {"delim": ";;"}}, "reader.delim is ';;'"),
        ({"files": 3}, "files is 3"),
        ({"columns": "x"}, "columns is 'x', expected a table of keys"),
        ({"columns": {"reward": ["a", "b"]}}, "columns.reward"),
        ({"names": {"a": {"b": 1}}}, "names"),
    ],
)
def test_what_is_wrong_is_refused_by_its_key(content, words):
    assert words in refused(content)


def test_numbers_of_numpy_paths_and_tuples_are_taken(tmp_path):
    got = described(
        {
            "files": (tmp_path / "a.csv",),
            "stakes": {"discount": np.float32(0.5), "running": np.array([0, 1])},
            "method": {"worlds": np.int64(3), "n_wedge": np.int64(5)},
        }
    )
    assert got.files == str(tmp_path / "a.csv")
    assert (got.stakes.discount, got.stakes.running, got.method.worlds) == (0.5, (0, 1), 3)
    assert type(got.method.n_wedge) is int


INNER = st.sampled_from([key for part in module.TABLES.values() for key in part.__struct_fields__])
TABLES_OF_JSON = st.dictionaries(INNER, JSON, max_size=2)


@settings(max_examples=20)
@given(st.dictionaries(st.sampled_from(KEYS) | TEXTS, JSON | TABLES_OF_JSON, max_size=3))
def test_any_values_are_a_description_or_refused_in_one_line(content):
    assert isinstance(outcome(described, content), Description | str)


@given(
    st.binary(max_size=30)
    | TEXTS.map(str.encode)
    | st.lists(
        st.sampled_from(
            [*module.HELP, "[", "]", " = ", "\n", '"', "1", "nan", "{", "}", "true", "07:32"]
        )
    ).map(lambda words: "".join(words).encode())
)
def test_any_file_is_a_description_or_refused_in_one_line(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("any") / "log.toml"
    file.write_bytes(content)
    assert isinstance(outcome(read_description, file), Description | str)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(FileFailure, match="cannot be read"):
        read_description(tmp_path / "none.toml")
    with pytest.raises(FileFailure, match="cannot be read"):
        module.read_toml(tmp_path)


def test_files_are_those_of_the_folder_of_the_description(tmp_path):
    (tmp_path / "log.toml").write_text(
        'files = ["a.csv", "/b.csv"]\ntables = { w = "wards.csv" }\n'
        '[behavior]\npolicy = "policy.csv"\n[limits]\npossible = "seen"\nallowed = "ok.csv"\n'
    )
    got = read_description(tmp_path / "log.toml")
    assert got.files == (str(tmp_path / "a.csv"), "/b.csv")
    assert got.tables == {"w": str(tmp_path / "wards.csv")}
    assert got.behavior.policy == str(tmp_path / "policy.csv")
    assert got.limits == module.LimitKeys(possible="seen", allowed=str(tmp_path / "ok.csv"))
    kept = module.without_folders(got)
    assert (kept.files, kept.tables) == (("a.csv", "b.csv"), {"w": "wards.csv"})
    assert (kept.behavior.policy, kept.limits.allowed) == ("policy.csv", "ok.csv")


@pytest.mark.parametrize("word", module.WORDS_FOR_BEHAVIOR)
def test_words_are_no_files(tmp_path, word):
    (tmp_path / "log.toml").write_text(f'files = "x.csv"\nbehavior.policy = "{word}"\n')
    assert read_description(tmp_path / "log.toml").behavior.policy == word


@given(CONTENTS, CONTENTS, CONTENTS)
def test_what_stands_above_wins(below, above, top):
    both = merged(below, above)
    for path, value in leaves(above):
        if value != {}:
            assert dict(leaves(both))[path] == value
    for path, value in leaves(both):
        assert value in (dict(leaves(above)).get(path), dict(leaves(below)).get(path))
    assert merged(below, {}) == below == merged({}, below)
    if not (below.keys() & above.keys() & top.keys()):
        assert merged(merged(below, above), top) == merged(below, merged(above, top))


def test_another_rule_for_bins_stands_in_for_the_one_below():
    tree = {"bins": {"age": {"tree": 4, "columns": "x"}, "dose": {"width": 2}}}
    wider, clusters = ({"bins": {"age": rule}} for rule in ({"width": 5}, {"kmeans": 9}))
    assert described(merged(tree, wider)).given() == {
        "bins": {"age": {"width": 5.0}, "dose": {"width": 2.0}}
    }
    assert merged(tree, clusters)["bins"]["age"] == {"kmeans": 9, "columns": "x"}


def test_arguments_of_python_find_their_keys():
    assert module.in_words(discount=0.9, behavior="uniform", query=None, case="x") == {
        "stakes": {"discount": 0.9},
        "behavior": {"policy": "uniform"},
        "case": "x",
    }


def test_every_key_has_a_text_of_help_and_nothing_else_has():
    whole = ("bins", "reader", "signals", "structure")  # explained as tables
    keys = {key for key in KEYS if key not in module.TABLES or key in whole}
    for table, part in module.TABLES.items():
        keys |= {f"{table}.{key}" for key in part.__struct_fields__ if table not in whole}
    assert set(module.HELP) == keys
    assert all(text.endswith(".") for text in module.HELP.values())
    assert set(module.OPTIONS) <= keys
    assert len({*module.OPTIONS.values()}) == len(module.OPTIONS)
