"""Assumptions and notes are codes with values: one sentence each, and all of them explained."""

import copy
import csv
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import surestep
from surestep.errors import InvalidCertificate
from surestep.model import Statement
from surestep.model.statements import OWN_WORDS, SENTENCES, statement_from_json, values_of

SOURCE = Path(surestep.__file__).parent
DOCS = Path(__file__).parents[1] / "docs" / "codes" / "assumptions.csv"
REFUSALS = {
    line.partition(",")[0]
    for line in DOCS.with_name("refusals.csv").read_text(encoding="utf-8").splitlines()
} - {"behavior-estimated"}  # an assumption too
EXAMPLES = {  # values that a sentence can be made of, by name
    "alpha": 0.25, "asked": "robust", "ending_high": 5.0, "ending_low": -4.0, "episodes": 80,
    "draws": 99, "high": 2, "kind": "robust", "low": -1.0, "per": "pair",
    "prior": "cautious", "rows": 3, "running_high": 1.5, "running_low": 0.5,
    "refusal": "so", "seed": None, "sentence": "It rains.", "share": 0.3, "states": 12,
    "steps": 5, "successors": 16, "weight": 5.0, "what": "states",
}  # fmt: skip


def example(code):
    """A statement of this code."""
    return Statement(code, {name: EXAMPLES[name] for name in values_of(code)})


def codes_made():
    """The code of every statement that is made in the source."""
    texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    return {code for text in texts for code in re.findall(r'\bStatement\(\s*"(.*?)"', text)}


def codes_explained():
    """The codes of the table in the docs, each with the values beside it."""
    with DOCS.open(newline="", encoding="utf-8") as file:
        return [(row["code"], row["values"].split()) for row in csv.DictReader(file)]


def test_the_docs_explain_each_code_once_with_its_values():
    said = [(code, values_of(code)) for code in SENTENCES if code not in REFUSALS]
    assert sorted(codes_explained()) == sorted(said)


def test_each_code_is_stated_somewhere_and_none_beyond():
    assert codes_made() | {OWN_WORDS} == {*SENTENCES}


def test_a_code_is_a_few_words_and_its_sentence_no_other_one_has():
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in SENTENCES)
    sentences = [str(example(code)) for code in SENTENCES]
    assert len({*sentences}) == len(sentences)
    assert all(re.fullmatch(r"[A-Z].*\.|[a-z].*; expected .*[^.]", said) for said in sentences)


@pytest.mark.parametrize("code", SENTENCES)
def test_statements_are_kept_by_pickles_copies_and_json(code):
    statement = example(code)
    for again in (
        pickle.loads(pickle.dumps(statement)),  # noqa: S301
        copy.deepcopy(statement),
        statement_from_json("it", statement.to_json()),
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


def test_a_file_cannot_say_one_thing_to_people_and_another_to_programs():
    content = Statement("behavior-estimated").to_json()
    with pytest.raises(InvalidCertificate, match=r"^notes\[2\]: sentence is 'The behavior policy"):
        statement_from_json("notes[2]", content | {"sentence": "The behavior policy is known."})


ANYTHING = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3))


@given(code=st.sampled_from(sorted(SENTENCES)), data=st.data())
def test_any_values_make_a_sentence_or_are_refused(code, data):
    values = {name: data.draw(ANYTHING) for name in values_of(code)}
    try:
        statement = Statement(code, values)
    except InvalidCertificate:
        return
    assert str(statement)
    assert statement_from_json("it", statement.to_json()) == statement


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
    "experiments/store.py": "the number of an error, which a file system tells in words only",
    "io/labels/binning.py": "the label of a bin, by the reader beside its writer",
    "io/logs/counting.py": "an error that our own query raises: SQL has words and no codes",
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
