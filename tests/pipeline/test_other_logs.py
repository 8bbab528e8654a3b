"""A later log judges a policy that knows all of its states and actions; any other is refused."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surestep
from surestep.certificates.registry import Asked
from surestep.errors import ShapeMismatch
from surestep.io import write_counts
from surestep.pipeline import certify_result
from surestep.pipeline.certify import SavedPolicy, log_again

TERMS = {"discount": 0.5, "n_wedge": 3, "certificates": ["robust"], "worlds": 0}
BOUNDS = {"running": (-2.0, 1.0), "ending": (-8.0, 2.0)}
NAMES = ("episode", "step", "state", "action", "reward", "terminated")
LED = (*NAMES[:5], "next_state", "terminated")


def table(rows, names=NAMES):
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def first_rows():
    """Where `bold` always pays 2 and `safe` 1."""
    return [(i, 0, "here", ("safe", "bold")[i % 2], (1.0, 2.0)[i % 2], True) for i in range(41)]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("other")
    surestep.improve(table(first_rows()), **TERMS, **BOUNDS).save(home / "estimated")
    actions = ["safe", "bold", "never"]
    listed = {"state": ["here"] * 3, "action": actions, "probability": [0.5, 0.5, 0.0]}
    surestep.improve(table(first_rows()), **TERMS, **BOUNDS, behavior=listed).save(home / "known")
    declared = {name: listed[name][:2] for name in ("state", "action")}
    given = {**TERMS, **BOUNDS, "possible": declared}
    surestep.improve(table(first_rows()), **given).save(home / "declared")
    return home


def made_of(folder, rows, kinds=(), **how):
    return judging(folder, table(rows, **how), [Asked.of(kind) for kind in kinds])


def judging(folder, log, kinds=()):
    saved = surestep.load(folder)
    source = log_again(saved, log, None, but=(), allow_query=False)
    return SavedPolicy.of(saved, source, kinds, {})


@pytest.mark.one_quick
@pytest.mark.parametrize("folder", ["estimated", "known", "declared"])
def test_a_state_that_the_policy_does_not_know_is_refused(folder, home):
    rows = [*first_rows()[:3], (3, 0, "here", "bold", 2.0, False), (3, 1, "trap", "safe", -4, True)]
    words = (
        "the dict, row 5: the log has the state 'trap', which the policy does not have: no state "
        "has 'trap' in column 'state'; known are 'here'"
    )
    with pytest.raises(ShapeMismatch) as caught:
        certify_result(home / folder, table(rows), ["robust", "stitched"])
    assert str(caught.value) == words


@pytest.mark.thorough
def test_a_state_in_which_the_policy_does_not_decide_is_refused(tmp_path):
    # In the first log episodes end in `late`; in the others somebody decides there, or it is new.
    first = [(i, 0, "here", "ab"[i % 2], float(i % 2), "late", True) for i in range(40)]
    surestep.improve(table(first, LED), **TERMS).save(tmp_path / "out")
    later = [(i, 0, "here", "ab"[i % 2], float(i % 2), "late", False) for i in range(30)]
    later += [(i, 1, "late", "ab"[i % 2], -1.0, "late", True) for i in range(30)]
    for rows, state in (
        (sorted(later), "late"),
        ([(*row[:5], "gone", True) for row in first], "gone"),
        ([(*row[:5], "here", True) for row in first], "(end)"),
    ):
        with pytest.raises(ShapeMismatch, match=re.escape(f"the log has the state '{state}'")):
            made_of(tmp_path / "out", rows, names=LED)
    made = made_of(tmp_path / "out", first[:31], names=LED)
    assert made.problem.counts.terminal.tolist() == [False, True]


@pytest.mark.parametrize(
    ("folder", "action", "why"),
    [
        ("estimated", "odd", "does not list it there"),
        ("declared", "odd", "does not list it there"),
        ("known", "odd", "does not list it there"),
        ("known", "never", "gives it probability 0 there"),
    ],
)
def test_an_action_that_the_policy_does_not_know_is_refused(folder, action, why, home):
    rows = [(99, 0, "here", action, 0.0, True), *first_rows()]
    with pytest.raises(ShapeMismatch) as caught:
        certify_result(home / folder, table(rows), ["robust"])
    assert str(caught.value) == (
        f"the dict, row 1: the log takes action {action!r} in state 'here', but policy.csv {why}; "
        "expected a row with a probability above 0; 1 of 3 transitions is affected"
    )


def test_counts_of_other_columns_are_refused(tmp_path):
    one = surestep.read_log(table(first_rows())).counts()
    rows = [(*row[:2], "there", *row[2:]) for row in first_rows()]
    names = (*NAMES[:2], "place", *NAMES[2:])
    two = surestep.read_log(table(rows, names), columns={"state": ["place", "state"]}).counts()
    write_counts(two, tmp_path / "two.parquet")
    surestep.improve(one, **TERMS, **BOUNDS).save(tmp_path / "out")
    with pytest.raises(ShapeMismatch, match="other columns of states or actions than the result"):
        certify_result(tmp_path / "out", tmp_path / "two.parquet", ["robust"])


BINS = {1.0: "< 2", 5.0: "2 to < 10", 50.0: ">= 10"}  # as texts, they come in another order
LATER = st.lists(
    st.tuples(st.sampled_from([1.0, 5.0, 50.0]), st.sampled_from("bc"), st.integers(0, 3)),
    min_size=1,
    max_size=30,
)


@pytest.fixture(scope="module")
def aged(tmp_path_factory):
    """A result over bins of numbers and three actions."""
    home = tmp_path_factory.mktemp("aged")
    rows = [(i, 0, (1.0, 5.0, 50.0)[i % 3], "abc"[i // 3 % 3], i % 4, True) for i in range(90)]
    log = surestep.read_log(table(rows), bins={"state": {"edges": [2, 10]}})
    surestep.improve(log, **TERMS, ending=(0.0, 3.0)).save(home / "out")
    return home / "out"


def by_label(pairs, values):
    """The values [K] by the names of state and action, whatever their numbers."""
    names = zip(pairs.state, pairs.action, strict=True)
    labels = [(pairs.state_labels[s], pairs.action_labels[a]) for s, a in names]
    return dict(zip(labels, values.tolist(), strict=True))


@pytest.mark.thorough
@given(drawn=LATER)
@settings(max_examples=3, deadline=None)
def test_pairs_are_found_by_their_labels_whatever_the_order_of_these(drawn, aged):
    """Of the later log nobody counts but Python: it lacks an action, and may lack states."""
    rows = [(i, 0, *row, True) for i, row in enumerate(drawn)]
    for kinds in ((), ("stitched",)):
        made = made_of(aged, rows, kinds)
        saved, counts = surestep.load(aged).table, made.problem.counts
        assert by_label(counts.pairs, made.policy.probability) == by_label(
            saved.pairs, saved.probability
        )
        times, paid = Counter(), Counter()
        for age, action, reward in drawn:
            times[BINS[age], action] += 1
            paid[BINS[age], action] += reward
        earned = np.add.reduceat(np.append(counts.rewards.values, 0.0), counts.offsets[:-1])
        earned[counts.visits == 0] = 0.0
        for pair, number in by_label(counts.pairs, counts.visits).items():
            assert number == times[pair]
        for pair, reward in by_label(counts.pairs, earned).items():
            assert reward == paid[pair]
    (claim,), (again,) = (
        certify_result(aged, table(x), ["robust"]).certificates for x in (rows, rows[::-1])
    )
    assert claim.assumptions == again.assumptions
    assert claim.lower == pytest.approx(again.lower, rel=1e-12, abs=1e-12)  # sums in another order


def test_bins_of_a_later_log_are_those_of_the_result(tmp_path):
    def log(ages, size):
        age = np.resize(np.array(ages, float), size)
        action = np.array(["ab"[i // len(ages) % 2] for i in range(size)], object)
        earned = np.where(action == "b", 1.0, 0.0)
        return {"age": age, "action": action, "reward": earned, "next_age": np.roll(age, 1)}

    columns = {"state": "age"}
    source = surestep.read_log(
        log([1, 2, 3, 4], 160), columns=columns, bins={"age": {"quantiles": 4}}
    )
    surestep.improve(source, **TERMS).save(tmp_path / "out")
    later = log([1.5, 2.5, 3.5, 99.0], 80)  # whose own quantiles are elsewhere
    made = judging(tmp_path / "out", later)
    assert made.problem.counts.pairs.num_states == 4
    assert made.problem.counts.visits.tolist() == [10] * 8


@pytest.mark.thorough
def test_a_log_of_another_behavior_policy_is_refused(tmp_path):
    names = (*NAMES, "behavior_prob")
    first = [(*row, 0.5) for row in first_rows()]
    surestep.improve(table(first, names), **TERMS, **BOUNDS).save(tmp_path / "out")
    assert made_of(tmp_path / "out", first[:30], names=names).problem.counts.visits.sum() == 30
    other = [(*row[:6], 0.7 if row[3] == "bold" else 0.5) for row in first]
    with pytest.raises(ShapeMismatch, match=r"'bold'.*with probability 0\.7, but the behavior"):
        made_of(tmp_path / "out", other, names=names)
