"""What people call the values of a column: on pages and screens, and nowhere else."""

import pytest

import surestep
from support.labelled_worlds import COLUMNS
from support.pump_commands import run_surestep
from surestep.errors import InvalidParameter
from surestep.pipeline import explain, in_words
from surestep.pipeline.verify import verify_result

TERMS = {"discount": 0.9, "n_wedge": 3, "worlds": 0, "certificates": ["robust"]}


@pytest.fixture(scope="module")
def source(labelled_log):
    return surestep.read_log(labelled_log, columns=COLUMNS)


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


def test_the_page_has_names_and_the_files_have_labels(plain, named, labels):
    assert "&lt;action&gt; number 0" in named.report
    assert "the, first: state" in named.report
    assert "the, first: state" not in plain.report
    files, usual = named.files(), plain.files()
    assert files["policy.csv"] == usual["policy.csv"]
    assert files["policy.parquet"] == usual["policy.parquet"]
    assert files["certificates.json"] == usual["certificates.json"]
    assert named.record.description["names"] == labels
    assert named.record.counts_sha256 == plain.record.counts_sha256


def test_a_saved_result_knows_them_and_is_made_again(named, labelled_log, tmp_path):
    named.save(tmp_path / "named")
    loaded = surestep.load(tmp_path / "named")
    assert loaded == named
    words = loaded.table.vocabulary
    explained = explain(loaded, words.states[0])
    assert explained.state == words.states[0]
    assert explained.called[0] == "the, first: state"
    assert explained.actions[0].action == words.actions[0]
    assert "<action> number" in " ".join(in_words(explained))
    verify_result(tmp_path / "named", labelled_log)
    given = [word for text in words.states[0] for word in ("--state", text)]
    printed = run_surestep("explain", tmp_path / "named", *given).output
    assert "the, first: state" in printed
    assert "<action> number 0" in printed


@pytest.mark.thorough
def test_the_command_line_and_inspect_take_them(labelled_log, plain, tmp_path):
    action = plain.table.vocabulary.action_columns[0]
    text = plain.table.vocabulary.actions[0][0]
    columns = ("--state=place", "--state=level", "--action=move")
    given = (*columns, "--set", f"names.{action}.{text}=call it so")
    printed = run_surestep("inspect", labelled_log, *given, "-o", tmp_path / "log.html").output
    assert "call it so" in printed
    words = f"--set 'names.{action}.{text}=\"call it so\"'"
    assert words in printed  # in the command to go on with
    assert "call it so" in (tmp_path / "log.html").read_text()
    told = run_surestep("inspect", labelled_log, *given, "--json").output
    assert "call it so" not in told.split("names")[0]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (7, "names is 7, expected a table of keys"),
        ({"move": "none"}, "names.*'none'.*, expected a table of keys"),
        ({"nowhere": {"0": "none"}}, "column 'nowhere'"),
        ({"move": {"elsewhere": "x"}}, "column 'move' is never 'elsewhere', which"),
    ],
)
def test_names_that_nothing_has_are_refused(source, names, said):
    with pytest.raises(InvalidParameter, match=said):
        surestep.improve(source, names=names, **TERMS)
