"""Certificate: what it demands of its fields, its JSON and the published schema of that."""

import copy
import dataclasses
import json
import math
import pickle
from pathlib import Path
from typing import get_args

import jsonschema
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from surestep import Certificate
from surestep.errors import InvalidCertificate
from surestep.model import Statement, certificate_schema
from surestep.model.certificate import VERDICTS, Standing

SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "certificate.schema.json"

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
SEEDS = st.none() | st.integers(0, 9)
STATEMENTS = st.one_of(
    TEXT.filter(bool),  # in one's own words
    st.just(Statement("markov")),
    st.builds(lambda low: Statement("values-bounded", {"low": low, "high": 3}), NUMBERS),
    st.builds(lambda seed: Statement("chosen-from-part", {"share": 0.3, "seed": seed}), SEEDS),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), NUMBERS, TEXT)
FACTS = st.dictionaries(TEXT, SCALARS, max_size=4)
STANDINGS = [each for each in get_args(Standing) if each != "none"]
CLAIMED = st.tuples(st.sampled_from(STANDINGS), NUMBERS)
CERTIFICATES = st.builds(
    lambda claimed, **others: Certificate(standing=claimed[0], lower=claimed[1], **others),
    kind=st.sampled_from(["a-priori", "robust", "k2-x"]),
    claimed=CLAIMED | st.just(("none", None)),
    delta=st.floats(0, 1, exclude_min=True, exclude_max=True),
    span=st.floats(0, 1e300),
    assumptions=st.lists(STATEMENTS, min_size=1, max_size=3),
    notes=st.lists(STATEMENTS, max_size=3),
    parameters=FACTS,
    figures=FACTS,
)
GOOD = {
    "kind": "a-priori",
    "standing": "proved",
    "lower": -0.5,
    "delta": 0.1,
    "span": 2.0,
    "assumptions": ("The log is Markov.",),
    "notes": (),
    "parameters": {"n_wedge": None},
    "figures": {"visits": 12, "gain": 0.25},
}


def document(**changes):
    """The JSON of a good certificate, as a dict, with some fields changed."""
    return json.loads(Certificate(**GOOD).to_json()) | changes


def validator():
    """A judge of documents by the published schema alone."""
    return jsonschema.Draft202012Validator(certificate_schema())


# ---- what it says -----------------------------------------------------------------------------


@given(certificate=CERTIFICATES)
@example(certificate=Certificate(**GOOD | {"standing": "none", "lower": None}))
@example(certificate=Certificate(**GOOD | {"lower": -GOOD["span"]}))
def test_zeta_is_what_may_be_lost_and_a_loss_of_the_whole_span_says_nothing(certificate):
    if certificate.lower is None:
        assert certificate.zeta is None
        assert certificate.says_nothing
        return
    assert certificate.zeta == -certificate.lower
    assert math.copysign(1, Certificate(**GOOD | {"lower": 0.0}).zeta) == 1
    assert certificate.says_nothing == (-certificate.lower >= certificate.span)


def test_it_is_frozen_and_keeps_nothing_of_the_caller():
    parameters = {"n_wedge": 3}
    certificate = Certificate(**GOOD | {"parameters": parameters, "assumptions": ["One."]})
    parameters["n_wedge"] = 4
    assert certificate.parameters["n_wedge"] == 3
    assert certificate.assumptions == (Statement("in-own-words", {"sentence": "One."}),)
    with pytest.raises(TypeError):
        certificate.parameters["n_wedge"] = 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.lower = 1.0
    with pytest.raises(TypeError):
        hash(certificate)


def test_numbers_of_numpy_become_plain_ones():
    figures = {"a": np.int64(3), "b": np.float64(0.5), "c": np.bool_(True), "d": np.float32(0.5)}
    found = Certificate(**GOOD | {"figures": figures, "lower": np.float32(1)})
    assert [type(value) for value in found.figures.values()] == [int, float, bool, float]
    assert type(found.lower) is float


# ---- JSON -------------------------------------------------------------------------------------


@given(certificate=CERTIFICATES)
@example(certificate=Certificate(**GOOD | {"standing": "none", "lower": None}))
def test_json_pickles_and_copies_keep_everything(certificate):
    text = certificate.to_json()
    validator().validate(json.loads(text))
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    for again in (
        Certificate.from_json(text),
        pickle.loads(pickle.dumps(certificate)),  # noqa: S301
        copy.deepcopy(certificate),
    ):
        assert again == certificate
        assert again.to_json() == text  # types too: True is no 1, and 1 no 1.0
    text.encode()  # can be written


def test_the_schema_file_is_the_schema():
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == certificate_schema()
    validator().check_schema(certificate_schema())


def test_the_schema_names_the_fields_in_the_order_in_which_they_are_written():
    said = json.loads(Certificate.from_json(json.dumps(document())).to_json("proved better"))
    assert list(certificate_schema()["properties"]) == [*said, "signals"]  # only of several
    assert validator().is_valid(said)


def test_a_verdict_is_one_of_four_and_no_part_of_the_claim():
    content = document()
    claim = Certificate.from_json(json.dumps(content))
    for verdict in VERDICTS:
        assert Certificate.from_json(claim.to_json(verdict)) == claim
    for verdict in ("better", 1, []):
        with pytest.raises(InvalidCertificate, match=r"^verdict is .*, expected one of proved"):
            Certificate.from_json(json.dumps({**content, "verdict": verdict}))


@pytest.mark.parametrize("name", certificate_schema()["required"])
def test_a_missing_field_is_named(name):
    content = document()
    del content[name]
    with pytest.raises(
        InvalidCertificate, match=f"^certificate: .* missing required field {name}$"
    ):
        Certificate.from_json(json.dumps(content))
    assert not validator().is_valid(content)


FINE = Statement("markov").to_json()
WRONG = [  # field, value, the path that the message begins with
    *((name, value, name) for name in ("lower", "delta", "span", "zeta") for value in ("1", None)),
    *((name, [1.0], name) for name in ("lower", "delta", "span", "zeta", "kind", "standing")),
    *((name, True, name) for name in ("lower", "delta", "span", "zeta", "schema_version")),
    *((name, None, name) for name in ("kind", "standing", "assumptions", "notes")),
    *((name, "word", name) for name in ("assumptions", "notes", "parameters", "figures")),
    *((name, [], name) for name in ("assumptions", "parameters", "figures")),
    *(
        (name, said, rf"{name}\[{place}")
        for name in ("assumptions", "notes")
        for said, place in (
            ([FINE, 3], r"1\]"),
            (["Fine."], r"0\]"),
            ([FINE | {"code": "Fine"}], r"0\]\.code"),
            ([FINE | {"values": 3}], r"0\]\.values"),
            ([FINE | {"sentence": ""}], r"0\]\.sentence"),
        )
    ),
    *((name, {"x": [1]}, rf"{name}\.x") for name in ("parameters", "figures")),
    *((name, {"x": {}}, rf"{name}\.x") for name in ("parameters", "figures")),
    ("delta", 0, "delta"),
    ("delta", 1.0, "delta"),
    ("span", -0.5, "span"),
    ("kind", "A priori", "kind"),
    ("kind", "", "kind"),
    ("standing", "certain", "standing"),
    ("says_nothing", 0, "says_nothing"),
    ("schema_version", 4, "schema_version"),
    ("schema_version", 6, "schema_version"),
    ("schema_version", 0, "schema_version"),
    ("standing", "none", "lower"),
    ("schema_version", "1", "schema_version"),
]


@pytest.mark.parametrize(("name", "value", "path"), WRONG, ids=str)
def test_a_wrong_field_is_refused_by_its_path_and_by_the_schema(name, value, path):
    content = document(**{name: value})
    said = rf"^({path} is .*|certificate\.{path}: )expected "
    with pytest.raises(InvalidCertificate, match=said):
        Certificate.from_json(json.dumps(content))
    # True equals 1 in JSON Schema's `const` only for some validators.
    assert name == "schema_version" or not validator().is_valid(content)


def test_a_field_that_no_certificate_has_is_refused_by_name():
    content = document(surprise=1)
    with pytest.raises(InvalidCertificate, match=r"^certificate: .* unknown field surprise$"):
        Certificate.from_json(json.dumps(content))
    assert not validator().is_valid(content)


NOTHING = {"kind": "no-claim", "standing": "none", "lower": None, "zeta": None} | {
    "says_nothing": True
}


@pytest.mark.parametrize(
    "changes",
    [{"standing": "proved"}, {"lower": -2.0, "zeta": 2.0}, {"zeta": 0.0}, {"says_nothing": False}],
    ids=str,
)
def test_half_a_claim_is_refused(changes):
    with pytest.raises(InvalidCertificate):
        Certificate.from_json(json.dumps(document(**NOTHING | changes)))
    assert "says_nothing" in changes or not validator().is_valid(document(**NOTHING | changes))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400])
@pytest.mark.parametrize("name", ["lower", "delta", "span", "zeta", "figures", "parameters"])
def test_numbers_that_are_no_finite_doubles_are_refused_by_their_path(name, number):
    content = document()
    inside = name in ("figures", "parameters")
    content[name] = {"x": "HERE"} if inside else "HERE"
    path = rf"{name}\.x" if inside else name
    made = "0.5: lower is -0.5" if name == "zeta" else "a (finite )?number"
    said = rf"^{path} is .*expected {made}|^certificate\.{path}: (expected|number out of range)"
    with pytest.raises(InvalidCertificate, match=said):
        Certificate.from_json(json.dumps(content).replace('"HERE"', number))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"zeta": 0.6}, r"zeta is 0\.6, expected 0\.5: lower is -0\.5, and span 2\.0"),
        ({"says_nothing": True}, r"says_nothing is True, expected False: lower is -0\.5"),
    ],
)
def test_derived_fields_must_follow_from_the_others(changes, message):
    with pytest.raises(InvalidCertificate, match=message):
        Certificate.from_json(json.dumps(document(**changes)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[]", "^certificate: expected object, got array"),
        ("[" * 100_000, "no JSON"),
        ("9" * 5000, "no JSON"),
        ('{"kind": "a", "kind": "b"}', "'kind' stands twice"),
        (b"{}", "of type bytes"),
        (None, "of type NoneType"),
    ],
    ids=["empty", "half", "list", "deep", "long", "twice", "bytes", "none"],
)
def test_what_is_no_certificate_is_refused(text, message):
    with pytest.raises(InvalidCertificate, match=message):
        Certificate.from_json(text)


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(name=st.sampled_from(sorted(document())), value=ANYTHING)
def test_any_other_value_of_a_field_is_read_or_refused_in_words(name, value):
    text = json.dumps(document(**{name: value}))
    try:
        found = Certificate.from_json(text)
    except InvalidCertificate:
        return
    assert Certificate.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    "changes",
    [
        {"notes": ("\ud800",)},
        {"figures": {"x": "\udfff"}},
        {"figures": {"\ud900": 1}},
        {"figures": {3: 1}},
        {"figures": {"x": 1j}},
        {"figures": {"x": np.zeros(2)}},
        {"figures": {"x": 10**5000}},
        {"lower": 10**5000},
        {"lower": np.nan},
    ],
    ids=range(9),
)
def test_what_no_file_can_hold_is_refused_at_once(changes):
    with pytest.raises(InvalidCertificate):
        Certificate(**GOOD | changes)
