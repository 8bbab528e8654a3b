"""The users' own words for states and actions: found again from any form of them, or refused."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.errors import InvalidModel, InvalidParameter
from surestep.io.labels.binning import Binning
from surestep.io.labels.vocabulary import Vocabulary, in_order, joined
from surestep.model import Pairs

LABELS = st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=6, unique=True)
AGES = Binning(edges=(40, 50))
PATIENTS = Vocabulary(
    ("age", "ward"),
    ("drug",),
    (("< 40", "3"), ("40 to < 50", "3"), (">= 50", "true"), ("< 40", "true")),
    (("wait",), ("treat",)),
    {"age": AGES},
)


@pytest.mark.thorough
@given(states=LABELS, actions=LABELS)
def test_a_label_is_found_in_every_form(states, actions):
    words = Vocabulary(("a", "b"), ("c", "d"), tuple(states), tuple(actions))
    for i, (a, b) in enumerate(states):
        assert words.index("state", (a, b)) == words.index("state", [a, b]) == i
        assert words.index("state", {"b": b, "a": a, "more": None}) == i
    assert [words.index("action", label) for label in actions] == list(range(len(actions)))


@given(age=st.floats(-1000, 1000), as_text=st.booleans())
def test_a_number_is_binned_before_it_is_looked_up(age, as_text):
    expected = 1 if 40 <= age < 50 else 0 if age < 40 else None
    row = {"age": str(age) if as_text else age, "ward": 3}
    if expected is None:
        with pytest.raises(InvalidParameter, match="there is no state '>= 50, 3'; did you mean"):
            PATIENTS.index("state", row)
    else:
        assert PATIENTS.index("state", row) == PATIENTS.index("state", (row["age"], 3)) == expected


@given(ages=st.lists(st.floats(-1000, 1000), min_size=1), wards=st.sets(st.text(), min_size=1))
def test_bins_are_in_the_order_of_their_numbers(ages, wards):
    binning = Binning(width=7)
    places = sorted({binning.index(age) for age in ages})
    labels = {(ward, binning.label(place)) for ward in wards for place in places}
    expected = [(ward, binning.label(place)) for ward in sorted(wards) for place in places]
    assert in_order(labels, ("ward", "age"), {"age": binning}) == expected
    assert in_order(labels, ("ward", "age"), {}) == sorted(labels)


def test_a_label_of_no_bin_comes_after_the_bins():
    labels = [(">= 50",), ("40 to < 50",), ("(end)",), ("< 40",)]
    assert in_order(labels, ("age",), {"age": AGES}) == [labels[i] for i in (3, 1, 0, 2)]


def test_raw_values_are_turned_into_the_text_of_a_table():
    for raw, text in (
        (3, "3"),
        (np.int64(3), "3"),
        (2.5, "2.5"),
        (np.float32(0.1), "0.1"),
        (True, "true"),
        (np.False_, "false"),
    ):
        words = Vocabulary(("x",), ("y",), ((text,),), ((text,),))
        assert words.index("state", raw) == words.index("state", {"x": raw}) == 0
        assert words.index("action", raw) == words.index("action", text) == 0
    assert PATIENTS.index("state", {"age": np.int8(60), "ward": True}) == 2
    assert PATIENTS.index("state", (">= 50", "true")) == 2


@pytest.mark.parametrize(
    ("given_state", "message"),
    [
        ({"ward": "3"}, "column 'age' is missing, expected age, ward"),
        ({"age": 3, "ward": "4"}, "no state has '4' in column 'ward'; known are '3', 'true'"),
        ({"age": 3, "ward": "tru"}, "no state has 'tru' in column 'ward'; did you mean 'true'"),
        ({"age": 3, "ward": float("nan")}, "column 'ward' is NaN"),
        ({"age": float("inf"), "ward": 3}, "column 'age' is inf, expected a finite number to bin"),
        ({"age": 10**400, "ward": 3}, "column 'age' is 1000.*, expected a text, a number"),
        ({"age": "old", "ward": 3}, "no state has 'old' in column 'age'"),
        ({"age": 3, "ward": [3]}, r"column 'ward' is \[3\], expected a text"),
        ("3", "state '3' has 1 values, expected 2: age, ward"),
        (None, "has 1 values, expected 2"),
    ],
)
def test_an_unknown_state_is_explained(given_state, message):
    with pytest.raises(InvalidParameter, match=message):
        PATIENTS.index("state", given_state)


def test_an_unknown_action_is_explained():
    with pytest.raises(InvalidParameter, match="'treet' in column 'drug'; did you mean 'treat'"):
        PATIENTS.index("action", "treet")


@given(states=LABELS, actions=LABELS)
def test_pairs_carry_the_joined_labels(states, actions):
    words = Vocabulary(("a", "b"), ("c", "d"), tuple(states), tuple(actions))
    texts = {
        "state_labels": tuple(map(joined, states)),
        "action_labels": tuple(map(joined, actions)),
    }
    enabled = [(s, a) for s in range(len(states)) for a in range(len(actions))]
    assert words.pairs_of(enabled) == Pairs.full(len(states), len(actions), **texts)


@pytest.mark.parametrize(
    ("enabled", "error", "message"),
    [
        ([(4, 0)], InvalidParameter, r"enabled state\[0\] is 4, expected 0 to 3"),
        ([(0, -1)], InvalidModel, r"action\[0\] is -1, expected 0 to 1"),
        ([(0, 0)], InvalidModel, "state '40 to < 50, 3' has no action"),
        ([], InvalidModel, "has no action"),
        (None, InvalidParameter, "expected numbers"),
    ],
)
def test_bad_lists_of_pairs_are_refused(enabled, error, message):
    with pytest.raises(error, match=message):
        PATIENTS.pairs_of(enabled)


def test_a_vocabulary_is_a_value():
    same = Vocabulary(
        list(PATIENTS.state_columns),
        list(PATIENTS.action_columns),
        [list(label) for label in PATIENTS.states],
        list(PATIENTS.actions),
        {"age": Binning(edges=[40.0, 50.0])},
    )
    assert same == PATIENTS
    assert hash(same) == hash(PATIENTS)
    assert pickle.loads(pickle.dumps(same)) == copy.deepcopy(same) == same  # noqa: S301
    assert Vocabulary(("x",), ("y",), (("1",),), (("2",),)) != PATIENTS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state_columns": ()}, "expected names, each once"),
        ({"state_columns": ("x", "x")}, "expected names, each once"),
        ({"names": {"z": {"1": "low"}}}, "column 'z' has names, but is neither"),
        ({"states": (("a", "b"),)}, "label of state 0 is .*, expected 1 text, one a column"),
        ({"states": (("a",), "b")}, "label of state 1 is 'b', expected 1 text"),
        ({"states": (("a",), ("a",))}, "state label 'a' is given twice, again at 1"),
        ({"states": ()}, "there is no state"),
        ({"binnings": {"z": AGES}}, "column 'z' is binned, but is neither"),
    ],
)
def test_bad_vocabularies_are_refused(change, message):
    good = {
        "state_columns": ("x",),
        "action_columns": ("y",),
        "states": (("a",),),
        "actions": (("b",),),
    }
    Vocabulary(**good)
    with pytest.raises(InvalidParameter, match=message):
        Vocabulary(**{**good, **change})


def test_a_number_stands_for_its_label_whatever_the_type_of_its_column():
    """A column of 5 and 5.5 has the label '5.0', and one of 3 and 4 the label '3'."""
    states = (("5.0", "3"), ("5.5", "3"), ("5.0", "4"))
    words = Vocabulary(("dose", "ward"), ("action",), states, (("go",),))
    assert words.index("state", (5, 3)) == words.index("state", (5.0, 3.0)) == 0
    assert words.index("state", {"dose": np.int64(5), "ward": np.float64(4)}) == 2
    assert words.index("state", (5.5, 3.0)) == 1
    mixed = Vocabulary(("dose",), ("action",), (("5",), ("5.0",)), (("go",),))
    assert [mixed.index("state", given) for given in (5, "5", 5.0, "5.0")] == [0, 0, 1, 1]
    with pytest.raises(InvalidParameter, match="no state has '5' in column 'dose'"):
        words.index("state", ("5", "3"))  # a text is what it says
