"""Assumptions, notes and refusals are codes with values: one sentence each, all explained."""

import copy
import csv
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import surestep
from surestep.errors import (
    CertificateMismatch,
    CertificateRefused,
    InvalidCertificate,
    RefutedBounds,
)
from surestep.model import Statement
from surestep.model.certificate import StatementFile, stated
from surestep.model.statements import OWN_WORDS, SENTENCES, STOPPING, value_names

SOURCE = Path(surestep.__file__).parent
DOCS = Path(__file__).parents[2] / "docs" / "codes"
EXAMPLES = {  # values that a sentence can be made of, by name; others are 3
    "alpha": 0.25, "asked": "robust", "does": "there is", "kind": "robust", "others": "",
    "pair": "state 1, action 2", "path": "lower", "per": "pair", "prior": "cautious",
    "reason": "so; expected more", "refusal": "so", "seed": None, "sentence": "It rains.",
    "share": 0.3, "what": "states", "where": "there",
}  # fmt: skip


def example(code):
    """A statement of this code."""
    return Statement(code, {name: EXAMPLES.get(name, 3) for name in value_names(code)})


def is_refusal(code):
    """Whether a sentence begins in the middle of a line."""
    return str(example(code))[0].islower()


def explained(table):
    """The rows of a table of codes in the docs."""
    with (DOCS / table).open(newline="", encoding="utf-8") as file:
        return [*csv.DictReader(file)]


def test_the_docs_explain_each_code_once_assumptions_with_their_values():
    said = [(code, value_names(code)) for code in SENTENCES if not is_refusal(code)]
    table = [(row["code"], row["values"].split()) for row in explained("assumptions.csv")]
    assert sorted(table) == sorted(said)
    refusals = [row["code"] for row in explained("refusals.csv")]
    assert refusals == sorted(filter(is_refusal, SENTENCES))


def test_each_code_is_stated_somewhere_and_none_beyond():
    paths = {*SOURCE.rglob("*.py")} - {SOURCE / "model" / "statements.py"}
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    assert {*re.findall(r'\b(?:Statement|refused)\(\s*"(.*?)"', text)} < {*SENTENCES}
    assert {code for code in SENTENCES if f'"{code}"' not in text} <= {OWN_WORDS, STOPPING.code}


def test_no_refusal_of_the_package_has_words_of_its_own():
    raised = (
        r"(?:CertificateRefused|RefutedBounds|CertificateMismatch)\((?!\s*(?:Statement\(|said))"
    )
    texts = {path.name: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    assert {name for name, text in texts.items() if re.search(raised, text)} == {"errors.py"}


@pytest.mark.parametrize("kind", [CertificateRefused, RefutedBounds, CertificateMismatch])
def test_a_refusal_keeps_its_code_on_the_way_from_a_worker(kind):
    for refusal in (kind("no name", code="no-name"), kind(Statement("no-log"))):
        refusal.add_note("met in world 7")
        for again in (pickle.loads(pickle.dumps(refusal)), copy.deepcopy(refusal)):  # noqa: S301
            assert type(again) is kind
            assert (str(again), again.code) == (str(refusal), refusal.code)
            assert again.__notes__ == ["met in world 7"]
    assert (refusal.code, kind("no name").code) == ("no-log", "in-own-words")


def test_a_code_is_a_few_words_and_its_sentence_no_other_one_has():
    assert all(re.fullmatch(r"[a-z]+(-[a-z01]+)*", code) for code in SENTENCES)
    sentences = [str(example(code)) for code in SENTENCES]
    assert len({*sentences}) == len(sentences)
    assert all(re.fullmatch(r"[A-Z].*\.|[a-z].*[,;] expected .*[^.]", said) for said in sentences)


def from_file(content):
    """The statement that a file holds."""
    (statement,) = stated("notes", [StatementFile(**content)])
    return statement


@pytest.mark.parametrize("code", SENTENCES)
def test_statements_are_kept_by_pickles_copies_and_json(code):
    statement = example(code)
    for again in (
        pickle.loads(pickle.dumps(statement)),  # noqa: S301
        copy.deepcopy(statement),
        from_file(statement.to_json()),
    ):
        assert again == statement
        assert (str(again), repr(again)) == (str(statement), repr(statement))


@pytest.mark.parametrize("code", SENTENCES)
def test_a_statement_has_exactly_the_values_that_its_sentence_needs(code):
    values = dict(example(code).values)
    with pytest.raises(InvalidCertificate, match="unexpected"):
        Statement(code, values | {"more": 1})
    for name in values:
        with pytest.raises(InvalidCertificate, match=f"{code} makes no sentence: .*{name}"):
            Statement(code, {key: value for key, value in values.items() if key != name})


def test_values_cannot_be_changed():
    given_values = {"low": 0.0, "high": 1.0}
    statement = Statement("values-bounded", given_values)
    given_values["low"] = -1.0
    assert statement.values["low"] == 0.0
    with pytest.raises(TypeError):
        statement.values["low"] = -1.0
    with pytest.raises(TypeError):
        hash(statement)


def test_numbers_read_the_same_where_other_programs_wrote_them():
    ours, theirs = (Statement("values-bounded", {"low": 0, "high": x}) for x in (4.0, 4))
    assert ours == theirs
    assert str(ours) == str(theirs) == "Every value lies between 0.0 and 4.0."


@pytest.mark.parametrize(
    ("code", "values", "message"),
    [
        ("moon", {}, "code is 'moon', which no statement of this version"),
        (None, {}, "code is None"),
        ("values-bounded", {"low": "a", "high": 1}, "makes no sentence: could not convert"),
        ("values-bounded", {"low": None, "high": 1}, "makes no sentence"),
        ("values-bounded", {"low": float("inf"), "high": 1}, "values.low is inf"),
        ("values-bounded", 3, "values is 3, expected names with their values"),
        ("rewards-unseen-alike", {"per": "year"}, "makes no sentence"),
        (OWN_WORDS, {"sentence": ""}, "expected a sentence"),
        (OWN_WORDS, {"sentence": 3}, "expected a sentence"),
    ],
)
def test_what_makes_no_sentence_is_refused(code, values, message):
    with pytest.raises(InvalidCertificate, match=message):
        Statement(code, values)


def test_a_statement_outlives_its_wording():
    content = Statement("behavior-estimated").to_json()
    former = from_file(content | {"sentence": "As it was worded before."})
    assert former.to_json() == content


ANYTHING = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3))


@given(code=st.sampled_from(sorted(SENTENCES)), data=st.data())
def test_any_values_make_a_sentence_or_are_refused(code, data):
    values = {name: data.draw(ANYTHING) for name in value_names(code)}
    try:
        statement = Statement(code, values)
    except InvalidCertificate:
        return
    assert str(statement)
    assert from_file(statement.to_json()) == statement


# ---- no code looks into sentences ----------------------------------------------------------------


PHRASE = r'[rf]*"[^"\n]*[\w:;,] [^"\n]*"'  # several words, or what separates parts of a sentence
METHOD = r"(?:(?:starts|ends)with|remove(?:pre|suf)fix|r?partition|r?split|r?find|r?index|count)"
LOOKING = re.compile(
    rf"{PHRASE} (?:not )?in (?![(\[{{])"  # a phrase in a text, which is no list of texts
    rf"|\.{METHOD}\(\s*{PHRASE}"
    rf"|\bin str\(|\bstr\(\w+\)\.{METHOD}\("  # anything in what an error says
    r"|\bre\.\w+\([^\n]*\bstr\("
)
ALLOWED = {  # mostly messages of other programs, which have no codes
    "_json.py": "errors of msgspec",
    "description.py": "errors of msgspec",
    "experiments/experiment.py": "settings in a column of a table, by their own reader",
    "experiments/run.py": "the number of an error, which a file system tells in words only",
    "io/labels/binning.py": "the label of a bin, by the reader beside its writer",
    "io/logs/counting.py": "an error that our own query raises: SQL has words and no codes",
    "io/logs/tables.py": "errors of DuckDB",
    "io/logs/query.py": "names of DuckDB's types",
    "io/models/storm_process.py": "errors of Storm",
    "io/sql.py": "errors of DuckDB",
}


def looks_into_sentences(path):
    """The lines of a file in which a text is searched for a phrase, or an error for anything."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [number for number, line in enumerate(lines, 1) if LOOKING.search(line)]


def test_no_code_looks_into_sentences():
    places = {
        path.relative_to(SOURCE).as_posix(): looks_into_sentences(path)
        for path in SOURCE.rglob("*.py")
    }
    assert not {name: lines for name, lines in places.items() if lines and name not in ALLOWED}


@pytest.mark.parametrize(
    "code",
    [
        'changed = "No pair is changed" not in note',
        'kind, _, reason = refusal.partition(": ")',
        'known = sentence.startswith("The behavior policy")',
        "    again = REFUTED in str(problem)",
        '    found = re.search("[0-9]+", str(problem))',
        "    parts = str(problem).split()",
    ],
)
def test_looking_into_sentences_is_found(code):
    assert LOOKING.search(code)
    assert not LOOKING.search('if word in ("not shown", "proved"): parts = ", ".join(words)')
