"""Half and twice the states that were learnt, and claims that rest on how finely they are cut."""

import numpy as np
import pytest

import surestep
from surestep import read_log
from surestep.io.labels.bin_rules import read_bin_option
from surestep.io.labels.state_rules import CentreRule, Split, TreeRule
from surestep.pipeline import verify_result
from surestep.states import clusters, regression_trees
from surestep.states.choosing_size import Rows
from surestep.states.learning import ROWS_A_STATE
from surestep.states.other_sizes import (
    best_split,
    coarser_bins,
    finer_bins,
    half_of,
    pruned,
    twice_of,
)

COLUMNS = ("x", "y")


def rows_of(number=400, seed=0):
    """Measurements of which both tell something of returns."""
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=(number, 2)), 1)
    returns = np.sin(3 * values[:, 0]) + 0.5 * (values[:, 1] > 0.3) + rng.normal(0, 0.1, number)
    return Rows(values, returns, np.arange(number + 1))


def squares(rows, members):
    return float(((rows.returns[members] - rows.returns[members].mean()) ** 2).sum())


def lies_within(fine, coarse, values):
    """Each fine state is within one coarse state."""
    fine, coarse = fine.indices(values), coarse.indices(values)
    return all(np.unique(coarse[fine == state]).size <= 1 for state in np.unique(fine))


@pytest.mark.parametrize("seed", range(3))
def test_a_leaf_is_cut_where_returns_differ_most(seed):
    rows = rows_of(120, seed)
    left = {}
    for place, column in enumerate(COLUMNS):
        for threshold in np.unique(rows.values[:, place])[1:]:
            low = rows.values[:, place] < threshold
            if min(low.sum(), (~low).sum()) >= ROWS_A_STATE:
                left[column, threshold] = squares(rows, low) + squares(rows, ~low)
    split = best_split(COLUMNS, rows)
    low = rows.values[:, COLUMNS.index(split.column)] < split.threshold
    assert squares(rows, low) + squares(rows, ~low) == pytest.approx(min(left.values()))


def test_few_or_equal_rows_are_not_cut():
    few = rows_of(2 * ROWS_A_STATE - 1)
    assert best_split(COLUMNS, few) is None
    same = Rows(np.ones((200, 2)), np.arange(200.0), np.arange(201))
    assert best_split(COLUMNS, same) is None


def test_trees_of_other_sizes_lie_within_each_other():
    rows = rows_of()
    rule = regression_trees.grown(rows, COLUMNS, 5, ROWS_A_STATE)
    half, twice = half_of(rule, rows), twice_of(rule, rows)
    assert half.num_states == 2
    assert rule.num_states < twice.num_states <= 2 * rule.num_states
    assert lies_within(twice, rule, rows.values)
    assert lies_within(rule, half, rows.values)
    two = TreeRule(COLUMNS, Split("x", 0.0, None, None))
    assert half_of(two, rows) == two


def test_splits_that_tell_least_go_first():
    rows = Rows(np.repeat(np.arange(4.0), 50)[:, None], np.repeat([0, 1, 10, 30], 50), None)
    below, above = Split("x", 1.0, None, None), Split("x", 3.0, None, None)
    four = TreeRule(("x",), Split("x", 2.0, below, above))
    assert pruned(four, rows, 3) == TreeRule(("x",), Split("x", 2.0, None, above))
    assert half_of(four, rows) == TreeRule(("x",), Split("x", 2.0, None, None))


def test_clusters_are_cut_in_two_and_put_together_two_by_two():
    values = np.repeat([[0.0, 0.0], [0.0, 1.0], [8.0, 0.0], [8.0, 3.0]], [60, 20, 40, 40], axis=0)
    rows = Rows(values, np.zeros(160), None)
    four = CentreRule(COLUMNS, (1.0, 1.0), tuple(map(tuple, np.unique(values, axis=0))))
    assert half_of(four, rows).centres == ((0.0, 0.25), (8.0, 1.5))
    two = half_of(four, rows)
    assert twice_of(two, rows).centres == ((0.0, 0.0), (0.0, 1.0), (8.0, 0.0), (8.0, 3.0))
    assert twice_of(four, rows) == four  # all rows of a cluster are the same


@pytest.mark.parametrize("size", [2, 7, 16])
def test_clusters_of_any_size(size):
    rows = rows_of()
    rule = clusters.clustered(rows, COLUMNS, size)
    assert half_of(rule, rows).num_states == max(size // 2, 2)
    twice = twice_of(rule, rows)
    assert rule.num_states <= twice.num_states <= 2 * rule.num_states

    def error(rule):
        nearest = np.array(rule.centres)[rule.indices(rows.values)]
        return float((((rows.values - nearest) / rule.units) ** 2).sum())

    assert error(twice) < error(rule) < error(half_of(rule, rows)) or size == 2


def test_bins_are_cut_at_the_median_of_their_rows_also_open_ones():
    rows = Rows(np.column_stack([np.arange(100.0), np.zeros(100)]), np.zeros(100), None)
    (x, y, other) = finer_bins(["x:edges=50", "y:edges=1", "z:quantiles=3"], rows, COLUMNS)
    edges = read_bin_option(x)[1].edges
    assert len(edges) == 3
    assert [*np.histogram(rows.values[:, 0], [-np.inf, *edges, np.inf])[0]] == [25, 25, 25, 25]
    assert (y, other) == ("y:edges=1.0", "z:quantiles=3")  # z is none of the columns
    assert [*finer_bins(["x:quantiles=3", "y:width=2"], rows, COLUMNS)] == [
        "x:quantiles=6",
        "y:width=1.0",
    ]
    assert [*coarser_bins(["x:edges=1,2,3", "z:quantiles=6"], COLUMNS)] == [
        "x:edges=2.0",
        "z:quantiles=6",
    ]


def patients(number=1500):
    """Of two kinds that a tree tells apart first, each healthy or ill: all are helped by treatment.

    But the ill are treated more often, so that among all of a kind treatment looks harmful.
    """
    rng = np.random.default_rng(0)
    kind, ill = rng.integers(2, size=number), rng.integers(2, size=number)
    treated = (rng.random(number) < np.array([0.1, 0.9])[ill]).astype(int)
    well = rng.random(number) < np.array([[0.8, 0.95], [0.1, 0.3]])[ill, treated]
    return {
        "episode": np.arange(number), "step": np.zeros(number, int), "kind": kind, "ill": ill,
        "treated": treated, "reward": 5.0 * kind + well, "terminated": np.ones(number, bool),
    }  # fmt: skip


TERMS = {"discount": 0.9, "ending": (0, 6), "worlds": 0, "certificates": ["posterior"]}
STATE = {"state": ["kind", "ill"], "action": "treated"}


@pytest.mark.parametrize("method", ["tree", "bins"])
def test_a_gain_that_finer_states_turn_into_a_loss_is_an_alarm(method, tmp_path, monkeypatch):
    log = patients()
    if method == "bins":
        log["kind"] = 3 * log["kind"] + log["ill"]  # 0, 1, 3, 4: one edge tells the kinds apart
    state = STATE if method == "tree" else {"state": "kind", "action": "treated"}
    source = read_log(log, columns=state, states_from=f"{method}:size=2")
    result = surestep.improve(source, **TERMS)
    (check,) = (each for each in result.record.checks if each.code == "other-cuts")
    assert check.outcome == "failed"
    assert check.figures["own_low"] > 0 > check.figures["twice"]
    assert "finer-bins" in [alarm.code for alarm in result.record.alarms]
    result.save(tmp_path / "out")

    def missing(module):
        raise AssertionError(f"{module} is needed to make the result again")

    for module in (regression_trees, clusters):
        monkeypatch.setattr(module, "scikit_learn", missing)
    assert verify_result(tmp_path / "out", log).level == "same bytes"


def test_states_that_are_enough_are_no_alarm_whatever_taught_them():
    source = read_log(patients(), columns=STATE, states_from="kmeans:size=4")
    result = surestep.improve(source, **TERMS)
    (check,) = (each for each in result.record.checks if each.code == "other-cuts")
    assert check.outcome != "failed"


def test_a_rule_from_elsewhere_cannot_be_cut():
    rule = '{"kind": "tree", "columns": ["ill"], "tree": {"column": "ill", "threshold": 0.5, '
    rule += '"below": {"state": "ill < 0.5"}, "at_or_above": {"state": "ill ≥ 0.5"}}}'
    source = read_log(patients(), columns=STATE, states_from=rule)
    result = surestep.improve(source, **TERMS)
    (check,) = (each for each in result.record.checks if each.code == "other-cuts")
    assert check.why == "taught-elsewhere"
