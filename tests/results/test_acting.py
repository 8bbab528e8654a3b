"""Acting where π_I decides nothing: a fallback that says that it is one."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import surestep
from surestep.errors import InvalidParameter
from surestep.pipeline import explain, in_words
from surestep.results import Decision, Default, Nearest
from surestep.results.acting import decision_in, nearest_state

EDGES = (10, 20, 30, 40)
MET = [(5.0, 1.0), (15.0, 1.0), (45.0, 1.0), (15.0, 9.0)]  # age and dose, of ward x
GONE = (25.0, 5.0)  # where the log goes no further


@pytest.fixture(scope="module")
def result():
    """In every state that was met, `go` is better than `stay`, which was done more often."""
    met, action = np.repeat(MET, 40, axis=0), np.tile(["stay"] * 30 + ["go"] * 10, len(MET))
    size = action.size
    after = np.array([MET[(i + 1) % len(MET)] if i % 5 else GONE for i in range(size)])
    log = {
        **{"age": met[:, 0], "dose": met[:, 1], "ward": np.full(size, "x", object)},
        **{"action": action.astype(object), "reward": (action == "go").astype(float)},
        **{f"next_{name}": after[:, i] for i, name in enumerate(("age", "dose"))},
        "next_ward": np.full(size, "x", object),
    }
    bins = {"age": {"edges": EDGES}, "dose": {"width": 2}}
    source = surestep.read_log(log, columns={"state": ["age", "dose", "ward"]}, bins=bins)
    terms = {"discount": 0.5, "n_wedge": 5, "certificates": ["a-priori"], "worlds": 0}
    return surestep.improve(source, **terms)


def row(age, dose, ward="x"):
    return {"age": age, "dose": dose, "ward": ward}


def rng():
    return np.random.default_rng(0)


def test_where_the_policy_decides_nothing_falls_back(result):
    for fallback in (Nearest(), Default("stay")):
        for age, dose in MET:
            found = result.act(row(age, dose), rng(), fallback)
            assert found == Decision("go", None, found.followed)
            assert found.followed[2] == "x"
            assert result.act(row(age, dose), rng()) == found.action


def test_a_default_action_is_taken_and_said_to_be_one(result):
    for state in (row(999.0, 9.0), row(*GONE), row(5.0, 1.0, "y")):
        assert result.act(state, rng(), Default("stay")) == Decision("stay", "default", None)
    with pytest.raises(InvalidParameter, match="no action has 'fly' in column 'action'"):
        result.act(row(999.0, 9.0), rng(), Default("fly"))


def test_the_nearest_bin_is_followed_as_it_was_and_said_to_be(result):
    found = [result.act(row(25.0, 1.0), np.random.default_rng(i), Nearest()) for i in range(200)]
    assert {each.fallback for each in found} == {"nearest"}
    assert {each.followed for each in found} == {("10 to < 20", "0 to < 2", "x")}
    # π_b, which stays three times of four, and not π_I.
    assert 120 < sum(each.action == "stay" for each in found) < 180
    known = decision_in(result.table, row(*GONE), rng(), Nearest(), behavior_known=True)
    assert known.fallback is None  # π_b is known there, although the log goes no further
    ended = result.act(row(*GONE), rng(), Nearest())
    assert (ended.fallback, ended.followed) == ("nearest", ("10 to < 20", "0 to < 2", "x"))


@given(age=st.floats(-100, 100), dose=st.floats(-50, 50))
def test_nearest_is_nearest_by_bins(age, dose, result):
    words = result.table.vocabulary

    def place(each):
        return np.searchsorted(EDGES, each[0], side="right"), np.floor(each[1] / 2)

    label = words.label_of("state", row(age, dose))
    found = words.states[nearest_state(result.table, label)]
    here = place((age, dose))
    distance = {
        words.states[words.index("state", row(*each))]: sum(
            abs(a - b) for a, b in zip(place(each), here, strict=True)
        )
        for each in MET
    }
    assert distance[found] == min(distance.values())


def test_other_columns_must_be_the_same(result):
    with pytest.raises(InvalidParameter, match=r"no state has 'y' in column 'ward'.*Default"):
        result.act(row(5.0, 1.0, "y"), rng(), Nearest())
    with pytest.raises(InvalidParameter, match="column 'ward' is missing"):
        result.act({"age": 5.0, "dose": 1.0}, rng(), Default("stay"))
    with pytest.raises(InvalidParameter, match="fallback is"):
        result.act(row(5.0, 1.0), rng(), "nearest")


def test_a_table_has_a_decision_a_row(result):
    frame = pd.DataFrame([row(age, dose) for age, dose in product((5.0, 999.0), (1.0, 9.0))])
    found = result.act(frame, rng(), Nearest())
    assert [each.fallback for each in found] == [None, "nearest", None, "nearest"]


def test_what_was_not_met_is_named_with_its_bin(result):
    with pytest.raises(
        InvalidParameter,
        match=r"^999999\.0 in column 'age' falls into the bin '>= 40' and 9\.0 in column 'dose' "
        r"falls into the bin '8 to < 10': there is no state '>= 40, 8 to < 10, x'",
    ):
        result.act(row(999999.0, 9.0), rng())
    explained = explain(result, ("999999", "1", "x"))
    assert explained.open_bins == (("age", ">= 40"),)
    assert "The bin '>= 40' of age has no end: it also holds" in in_words(explained)[0]
    assert explain(result, row(15.0, 1.0)).open_bins == ()
