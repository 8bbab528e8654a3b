"""Bins hold everything, on its own side of N∧ or of 0; orders are those of the plainest way."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from support.findings import (
    gridworld_findings,
    maintenance_findings,
    with_many_states,
    without_changes,
)
from surestep.results.plots import (
    VisitBin,
    gain_bins,
    gaining_action,
    kept_states,
    moves_in,
    round_width,
    visit_bins,
)

VISITS = st.lists(st.integers(0, 3000), min_size=1, max_size=16)
GAINS = st.one_of(
    st.floats(-1e9, 1e9, allow_nan=False), st.sampled_from([0.0, 1e-12, -1e-12, 1e30, -1e30])
)


@given(VISITS, st.one_of(st.none(), st.integers(0, 5000)))
def test_bins_of_visits_hold_every_pair_once(visits, n_wedge):
    bins = visit_bins(np.array(visits), n_wedge)
    assert bins[0] == VisitBin(0, 0, visits.count(0))
    assert [bin.low for bin in bins[1:]] == [bin.high + 1 for bin in bins[:-1]]
    assert bins[-1].high >= max(visits)
    for bin in bins:
        assert bin.times == sum(bin.low <= number <= bin.high for number in visits)


@given(VISITS, st.integers(0, 5000))
def test_no_bin_holds_trusted_pairs_beside_others(visits, n_wedge):
    bins = visit_bins(np.array(visits), n_wedge)
    trusted = sum(bin.times for bin in bins if bin.low > n_wedge)
    assert trusted == sum(number > n_wedge for number in visits)


@pytest.mark.parametrize(
    ("largest", "n_wedge", "ends"),
    [
        (3000, None, [0, 10, 100, 1000, 10000]),
        (3000, 20, [0, 10, 20, 100, 1000, 10000]),
        (3000, 15, [0, 15, 100, 1000, 10000]),  # 10 is too near
        (3000, 0, [0, 10, 100, 1000, 10000]),
        (3000, 4000, [0, 10, 100, 1000, 4000]),
        (3000, 10**6, [0, 10, 100, 1000, 10000]),
        (0, 20, [0, 10]),
    ],
)
def test_bins_of_visits_end_at_powers_of_ten_and_at_n_wedge(largest, n_wedge, ends):
    assert [bin.high for bin in visit_bins(np.array([0, largest]), n_wedge)] == ends


@given(arrays(float, st.integers(1, 40), elements=GAINS), st.sampled_from([0.0, 1e-9, 0.5]), GAINS)
@example(np.array([32.0]), 0.0, 0.0)  # of width 1 they would be too many
def test_bins_hold_every_gain_on_its_own_side_of_0(gain, tolerance, also):
    edges, sorts = gain_bins(gain, tolerance, also)
    assert 2 <= len(edges) <= 31
    assert min(abs(edge) for edge in edges) == 0
    assert edges == sorted(set(edges))
    worse, same = gain < -tolerance, np.abs(gain) <= tolerance
    assert [sum(part) for part in sorts] == [worse.sum(), same.sum(), (~worse & ~same).sum()]
    slack = 1e-9 * (edges[-1] - edges[0])
    assert edges[0] - slack <= min(also, gain.min())
    assert max(also, gain.max()) <= edges[-1] + slack
    for low, high, *_, many in zip(edges[:-1], edges[1:], *sorts, strict=True):
        inside = (gain > tolerance) & (gain >= low - slack) & (gain <= high + slack)
        assert many <= inside.sum()


@pytest.mark.parametrize(
    ("least", "width"), [(0.0, 1.0), (0.11, 0.2), (0.2, 0.2), (3.0, 5.0), (7.0, 10.0), (1e30, 1e30)]
)
def test_widths_are_round(least, width):
    assert round_width(least) == pytest.approx(width, rel=1e-12)


SHARES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


def of_one_state(behavior, probability, **changes):
    """A table whose first state has these chances, and the state's pairs."""
    table = maintenance_findings().table
    many = int(table.pairs.offsets[1])
    before, after = table.behavior.copy(), table.probability.copy()
    before[:many], after[:many] = behavior[:many], probability[:many]
    return replace(table, behavior=before, probability=after, **changes), range(many)


@given(st.lists(SHARES, min_size=3, max_size=3), st.lists(SHARES, min_size=3, max_size=3))
def test_the_action_that_changes_most_comes_first(behavior, probability):
    table, pairs = of_one_state(behavior, probability)
    change = {pair: abs(table.probability[pair] - table.behavior[pair]) for pair in pairs}
    ordered, changed = moves_in(table, 0)
    expected = sorted(pairs, key=lambda pair: (-change[pair], -table.probability[pair]))
    assert ordered.tolist() == expected
    assert changed == sum(moved > 1e-12 for moved in change.values())


@given(st.lists(SHARES, min_size=3, max_size=3), st.lists(SHARES, min_size=3, max_size=3))
def test_the_action_that_gains_most_is_found(behavior, probability):
    table, pairs = of_one_state(behavior, probability)
    gained = [table.probability[pair] - table.behavior[pair] for pair in pairs]
    assert gained[gaining_action(table, 0)] == max(gained)


def test_states_that_stay_as_they_were_by_the_time_spent_there():
    grid = gridworld_findings()
    for findings in (grid, without_changes(grid), with_many_states(grid, 50)):
        changed = {change.state for change in findings.changes}
        kept = [state for state in range(findings.table.pairs.num_states) if state not in changed]
        share = findings.behavior_occupancy
        assert kept_states(findings).tolist() == sorted(kept, key=lambda state: -share[state])


def test_where_nothing_is_decided_nothing_is_kept():
    machine = maintenance_findings()
    quiet = machine.table.quiet.copy()
    quiet[-1] = True
    findings = without_changes(replace(machine, table=replace(machine.table, quiet=quiet)))
    assert sorted(kept_states(findings)) == list(range(quiet.size - 1))
