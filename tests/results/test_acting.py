"""Acting where π_I decides nothing: a fallback that says that it is one."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

import surestep
from surestep.errors import InvalidParameter
from surestep.pipeline import explain, in_words
from surestep.results import Decision, Default
from surestep.results.acting import answer_in

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
    for age, dose in MET:
        found = result.act(row(age, dose), rng(), Default("stay"))
        assert found == Decision("go", None, found.followed)
        assert found.followed[2] == "x"
        assert result.act(row(age, dose), rng()) == found.action


def test_a_default_action_is_taken_and_said_to_be_one(result):
    for state in (row(999.0, 9.0), row(*GONE), row(5.0, 1.0, "y")):
        assert result.act(state, rng(), Default("stay")) == Decision("stay", "default", None)
    with pytest.raises(InvalidParameter, match="no action has 'fly' in column 'action'"):
        result.act(row(999.0, 9.0), rng(), Default("fly"))


def test_a_known_behavior_policy_decides_where_the_log_goes_no_further(result):
    table = replace(result.table, quiet=np.zeros_like(result.table.quiet))
    for known, fallback in ((True, None), (False, "default")):
        decided = answer_in(table, row(*GONE), rng(), Default("stay"), behavior_known=known)
        assert decided.fallback == fallback


def test_a_row_has_all_columns_and_a_fallback_is_one(result):
    with pytest.raises(InvalidParameter, match="column 'ward' is missing"):
        result.act({"age": 5.0, "dose": 1.0}, rng(), Default("stay"))
    with pytest.raises(InvalidParameter, match="fallback is"):
        result.act(row(5.0, 1.0), rng(), "stay")


def test_a_table_has_a_decision_a_row(result):
    frame = pd.DataFrame([row(age, dose) for age, dose in product((5.0, 999.0), (1.0, 9.0))])
    found = result.act(frame, rng(), Default("stay"))
    assert [each.fallback for each in found] == [None, "default", None, "default"]


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
