"""Every refusal has a code: the same for the same reason, and one that the docs explain."""

import ast
import copy
import csv
import pickle
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import surestep
from surestep.errors import CertificateMismatch, CertificateRefused, RefutedBounds
from surestep.model import Statement

SOURCE = Path(surestep.__file__).parent
DOCS = Path(__file__).parents[1] / "docs" / "codes" / "refusals.csv"
REFUSALS = {kind.__name__ for kind in (CertificateRefused, RefutedBounds, CertificateMismatch)}
SHARED = {  # the same reason, met by several kinds of certificates
    "delta-too-small", "no-log", "rewards-beyond-bounds", "rewards-beyond-ranges",
    "too-few-episodes",
}  # fmt: skip


@cache
def codes_raised():
    """The class and the code of every refusal that is made in the source, also by a partial."""
    made = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in REFUSALS):
            continue
        for call in ast.walk(ast.parse(text)):
            if not isinstance(call, ast.Call):
                continue
            kind = call.args[0] if ast.unparse(call.func) == "partial" else call.func
            if ast.unparse(kind) in REFUSALS:
                codes = [each.value for each in call.keywords if each.arg == "code"]
                said = call.args[0]
                if isinstance(said, ast.Call) and ast.unparse(said.func) == "Statement":
                    codes.append(said.args[0])
                (code,) = codes
                made.append((ast.unparse(kind), ast.literal_eval(code)))
    return made


def codes_explained():
    """The first column of the table of refusals."""
    with DOCS.open(newline="", encoding="utf-8") as file:
        return [row["code"] for row in csv.DictReader(file)]


def test_a_code_is_a_few_words_and_stands_for_one_reason():
    made = codes_raised()
    assert len(made) > 40
    assert all(re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", code) for _, code in made)
    assert {
        code for code, times in Counter(code for _, code in made).items() if times > 1
    } == SHARED
    # What callers tell apart by the class has another code too.
    assert len({code for _, code in made}) == len(set(made))


def test_the_docs_explain_each_code_once():
    assert sorted(codes_explained()) == sorted({code for _, code in codes_raised()})


@pytest.mark.parametrize("kind", [CertificateRefused, RefutedBounds, CertificateMismatch])
def test_a_refusal_keeps_its_code_on_the_way_from_a_worker(kind):
    refusal = kind("state 3 has no name", code="no-name")
    refusal.add_note("met in world 7")
    for again in (pickle.loads(pickle.dumps(refusal)), copy.deepcopy(refusal)):  # noqa: S301
        assert type(again) is kind
        assert (str(again), again.code) == ("state 3 has no name", "no-name")
        assert again.__notes__ == ["met in world 7"]
    stated = kind(Statement("made-from-log", {"kind": "robust"}))
    again = pickle.loads(pickle.dumps(stated))  # noqa: S301
    assert (str(again), again.code) == (str(stated), "made-from-log")
    assert kind("state 3 has no name").code == "in-own-words"
