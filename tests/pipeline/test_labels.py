"""What people call the values of a column: on pages and screens, and nowhere else."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st
from surestep.io.labels.names import names_of, read_rules, rules_of

import surestep
from labelled_worlds import COLUMNS, NAMES, world
from log_tables import write_table
from pump_commands import run_surestep
from surestep.errors import InvalidLog, InvalidParameter
from surestep.pipeline import explain, in_words
from surestep.pipeline.inspect import inspect
from surestep.pipeline.verify import verify_result

TERMS = {"discount": 0.9, "n_wedge": 3, "worlds": 0, "certificates": ["robust"]}
TEXTS = st.text(min_size=1, max_size=8)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    rows = world(5, states=4, episodes=120).rows
    return write_table(tmp_path_factory.mktemp("logs") / "log.csv", rows, NAMES)


@pytest.fixture(scope="module")
def source(log):
    return surestep.read_log(log, columns=COLUMNS)


@pytest.fixture(scope="module")
def plain(source):
    return surestep.improve(source, **TERMS)


@pytest.fixture(scope="module")
def labels(plain):
    """A name for every text of the first column of the action, and for one of the state."""
    words = plain.table.vocabulary
    actions = sorted({label[0] for label in words.actions})
    return {
        words.action_columns[0]: {text: f"<action> number {i}" for i, text in enumerate(actions)},
        words.state_columns[0]: {words.states[0][0]: "the, first: state"},
    }


@pytest.fixture(scope="module")
def named(source, labels):
    return surestep.improve(source, names=labels, **TERMS)


@given(st.dictionaries(TEXTS, st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=3), max_size=3))
def test_rules_say_what_the_mapping_says(names):
    assert names_of(rules_of(names)) == names
    assert read_rules(rules_of(names)) == rules_of(names)


def test_the_page_has_names_and_the_files_have_labels(plain, named, labels):
    assert "&lt;action&gt; number 0" in named.report
    assert "the, first: state" in named.report
    assert "the, first: state" not in plain.report
    files, usual = named.files(), plain.files()
    assert files["policy.csv"] == usual["policy.csv"]
    assert files["policy.parquet"] == usual["policy.parquet"]
    assert files["certificates.json"] == usual["certificates.json"]
    assert named.record.parameters["labels"] == rules_of(labels)
    assert named.record.counts_sha256 == plain.record.counts_sha256


def test_a_saved_result_knows_them_and_is_made_again(named, log, tmp_path):
    named.save(tmp_path / "named")
    loaded = surestep.load(tmp_path / "named")
    assert loaded == named
    words = loaded.table.vocabulary
    explained = explain(loaded, words.states[0])
    assert explained.state == words.states[0]
    assert explained.called[0] == "the, first: state"
    assert explained.actions[0].action == words.actions[0]
    assert "<action> number" in " ".join(in_words(explained))
    verify_result(tmp_path / "named", log)
    given = [word for text in words.states[0] for word in ("--state", text)]
    printed = run_surestep("explain", tmp_path / "named", *given).output
    assert "the, first: state" in printed
    assert "<action> number 0" in printed


def test_a_file_says_the_same(source, named, labels, tmp_path):
    with (tmp_path / "names.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["column", "value", "name"])
        rows.writerows(
            [column, value, name]
            for column, names in labels.items()
            for value, name in names.items()
        )
    again = surestep.improve(source, labels=[str(tmp_path / "names.csv")], **TERMS)
    assert again.record == named.record
    assert again.report == named.report


def test_the_command_line_and_inspect_take_them(log, plain, tmp_path):
    action = plain.table.vocabulary.action_columns[0]
    text = plain.table.vocabulary.actions[0][0]
    columns = [f"--{role.replace('_', '-')}={name}" for role, names in COLUMNS.items()
               for name in ([names] if isinstance(names, str) else names)]  # fmt: skip
    given = (*columns, "--label", f"{action}={text}:call it so")
    printed = run_surestep("inspect", log, *given, "-o", tmp_path / "log.html").output
    assert "call it so" in printed
    assert f"'{action}={text}:call it so'" in printed  # in the command to go on with
    assert "call it so" in (tmp_path / "log.html").read_text()
    assert (
        "call it so" not in run_surestep("inspect", log, *given, "--json").output.split("names")[0]
    )


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["dose"], "labels is 'dose', which is no file; expected 'COLUMN"),
        (["dose=0"], "label is 'dose=0', expected 'COLUMN=VALUE:NAME"),
        (["dose=0:none,0:low"], "calls '0' in column 'dose' both 'none' and 'low', expected one"),
        (["nowhere=0:none"], "column 'nowhere' has labels, but is neither of the state nor"),
        ({"dose": "none"}, "the labels of column 'dose' are 'none', expected a name for each"),
        (7, "labels is 7, expected"),
    ],
)
def test_what_makes_no_sense_is_refused(source, labels, said):
    with pytest.raises(surestep.SurestepError, match=said.replace("(", r"\(")):
        surestep.improve(source, names=labels, **TERMS)


def test_names_that_nothing_has_are_refused(source, plain):
    column = plain.table.vocabulary.action_columns[0]
    with pytest.raises(InvalidParameter, match=f"column '{column}' is never 'elsewhere', which"):
        surestep.improve(source, names={column: {"elsewhere": "x"}}, **TERMS)
    with pytest.raises(InvalidParameter, match="column 'nowhere' has labels, but is neither"):
        inspect(source, labels={"nowhere": {"0": "x"}})


def test_a_file_that_contradicts_itself_is_refused(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("column,value,name\ndose,0,none\ndose,0,low\n")
    with pytest.raises(InvalidLog, match="row 2, column 'dose': '0' is called 'low', but 'none'"):
        read_rules(path)
    path.write_text("col,value,name\ndose,0,none\n")
    with pytest.raises(InvalidLog, match="there is no column 'column'"):
        read_rules(path)
