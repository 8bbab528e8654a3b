"""What charts and notebooks show: bins and orders by the plainest way, and escaped labels."""

import csv
import io
from dataclasses import replace

import html5lib
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import surestep
from support.findings import (
    gridworld_findings,
    maintenance_findings,
    rehearsed_findings,
    with_many_states,
    without_changes,
)
from support.labelled_worlds import COLUMNS
from surestep import Problem
from surestep import _reprs as frames
from surestep._words import signed
from surestep.errors import MissingExtra
from surestep.results import plots

VISITS = st.lists(st.integers(0, 3000), min_size=1, max_size=16)
GAINS = st.one_of(
    st.floats(-1e9, 1e9, allow_nan=False), st.sampled_from([0.0, 1e-12, -1e-12, 1e30, -1e30])
)
SHARES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@given(VISITS, st.one_of(st.none(), st.integers(0, 5000)))
def test_bins_of_visits_hold_every_pair_once(visits, n_wedge):
    bins = plots.visit_bins(np.array(visits), n_wedge)
    assert bins[0] == plots.VisitBin(0, 0, visits.count(0))
    assert [bin.low for bin in bins[1:]] == [bin.high + 1 for bin in bins[:-1]]
    assert bins[-1].high >= max(visits)
    for bin in bins:
        assert bin.times == sum(bin.low <= number <= bin.high for number in visits)
    if n_wedge is not None:  # no bin holds trusted pairs beside others
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
    assert [bin.high for bin in plots.visit_bins(np.array([0, largest]), n_wedge)] == ends


@given(arrays(float, st.integers(1, 40), elements=GAINS), st.sampled_from([0.0, 1e-9, 0.5]), GAINS)
@example(np.array([32.0]), 0.0, 0.0)  # of width 1 they would be too many
def test_bins_hold_every_gain_on_its_own_side_of_0(gain, tolerance, also):
    edges, sorts = plots.gain_bins(gain, tolerance, also)
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
    assert plots.round_width(least) == pytest.approx(width, rel=1e-12)


def of_one_state(behavior, probability, **changes):
    """A table whose first state has these chances, and the state's pairs."""
    table = maintenance_findings().table
    many = int(table.pairs.offsets[1])
    before, after = table.behavior.copy(), table.probability.copy()
    before[:many], after[:many] = behavior[:many], probability[:many]
    return replace(table, behavior=before, probability=after, **changes), range(many)


@given(st.lists(SHARES, min_size=3, max_size=3), st.lists(SHARES, min_size=3, max_size=3))
def test_actions_that_change_and_gain_most_are_found(behavior, probability):
    table, pairs = of_one_state(behavior, probability)
    change = {pair: abs(table.probability[pair] - table.behavior[pair]) for pair in pairs}
    ordered, changed = plots.moves_in(table, 0)
    expected = sorted(pairs, key=lambda pair: (-change[pair], -table.probability[pair]))
    assert ordered.tolist() == expected
    assert changed == sum(moved > 1e-12 for moved in change.values())
    gained = [table.probability[pair] - table.behavior[pair] for pair in pairs]
    assert gained[plots.gaining_action(table, 0)] == max(gained)


def test_states_that_stay_as_they_were_by_the_time_spent_there():
    grid = gridworld_findings()
    for findings in (grid, without_changes(grid), with_many_states(grid, 50)):
        changed = {change.state for change in findings.changes}
        kept = [state for state in range(findings.table.pairs.num_states) if state not in changed]
        share = findings.behavior_occupancy
        assert plots.kept_states(findings).tolist() == sorted(kept, key=lambda state: -share[state])
    quiet = np.arange(25) == 24  # where nothing is decided, nothing is kept
    found = without_changes(replace(grid, table=replace(grid.table, quiet=quiet)))
    assert sorted(plots.kept_states(found)) == list(range(24))


def test_the_gain_is_what_the_new_policy_earns_more():
    findings = maintenance_findings()
    for policy, gain in ((5.0, 3.0), (-1.0, -3.0)):
        record = replace(findings.record, estimates={"behavior": 2.0, "policy": policy})
        assert replace(findings, record=record).estimated_gain == gain


HOSTILE = "<script>alert('$1')</script>"
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def source(labelled_log):
    return surestep.read_log(labelled_log, columns=COLUMNS)


@pytest.fixture(scope="module")
def result(source):
    terms = {"discount": 0.9, "n_wedge": 3, "worlds": 0, "certificates": ["robust", "a-priori"]}
    made = surestep.improve(source, **terms)
    words = made.table.vocabulary
    column = words.state_columns[0]
    labels = {column: {text: f"{HOSTILE} {text}" for text in {s[0] for s in words.states}}}
    return surestep.improve(source, names=labels, **terms)


def test_html_says_what_it_is_and_escapes_every_label(source, result):
    findings = rehearsed_findings()
    problem = Problem(
        counts=source.counts().to_counts(),
        behavior=surestep.estimate_behavior(source.counts().to_counts()),
        discount=0.9,
        value_bounds=(-9.0, 9.0),
    )
    for noun in (source, problem, result.certificate, findings.rehearsal):
        text = noun._repr_html_()
        assert text.startswith("<table>")
        assert type(noun).__name__ in text
        assert len(text) < 5000
        assert len(repr(noun)) < 300
    frame = html5lib.parseFragment(result._repr_html_(), namespaceHTMLElements=False)
    (page,) = frame
    assert (page.tag, page.attrib["srcdoc"]) == ("iframe", result.report)
    assert f"<script>{HOSTILE}" not in result.report
    hostile = replace(source, table=replace(source.table, name=HOSTILE))
    assert "<script>" not in hostile._repr_html_()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_has_the_rows_of_the_file(result, library, monkeypatch):
    pytest.importorskip(library)
    monkeypatch.setattr(frames, "find_spec", lambda name: True if name == library else None)
    frame = result.to_frame()
    assert type(frame).__module__.startswith(library)
    rows = [*csv.DictReader(io.StringIO(result.files()["policy.csv"].decode()))]
    names = frame.column_names if library == "pyarrow" else list(frame.columns)
    assert names == list(rows[0])
    for name in names:
        values = frame[name].to_pylist() if library == "pyarrow" else frame[name].to_list()
        for value, row in zip(values, rows, strict=True):
            written = row[name]
            if value is None:
                assert written == ""
            elif isinstance(value, float):
                assert float(written) == value
            else:
                assert written.lower() == str(value).lower()


def test_without_any_library_there_is_a_command(result, monkeypatch):
    monkeypatch.setattr(frames, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="pip install pandas"):
        result.to_frame()


def test_changes_are_drawn_in_the_order_of_what_they_gain(result):
    pytest.importorskip("matplotlib")
    table = result.table
    gains = np.zeros(table.pairs.num_states)
    for k, state in enumerate(table.pairs.state):
        moved = table.probability[k] - table.behavior[k]
        gains[state] += moved * table.advantage[k] * table.visits[table.pairs.state == state].sum()
    ordered = plots.most_changed(table)
    assert set(ordered) == set(np.flatnonzero(table.changed))
    assert (np.diff(gains[ordered]) <= 1e-12).all()
    figure = result.plot()
    (axes,) = figure.axes
    pairs = [plots.gaining_action(table, int(state)) for state in ordered[::-1]]
    names = [tick.get_text().split(": ") for tick in axes.get_yticklabels()]
    labels = [", ".join(table.vocabulary.state_name(int(s))) for s in ordered[::-1]]
    assert [name for name, _ in names] == [plots.shortened(label) for label in labels]
    actions = [table.vocabulary.action_name(int(table.pairs.action[pair])) for pair in pairs]
    assert [action for _, action in names] == [", ".join(action) for action in actions]
    today, new = axes.lines
    assert today.get_xdata().tolist() == table.behavior[pairs].tolist()
    assert new.get_xdata().tolist() == table.probability[pairs].tolist()
    assert today.get_markerfacecolor() == "white"
    assert figure._repr_png_().startswith(PNG)


def test_a_result_is_printed_with_its_verdict_and_its_claim(result):
    assert str(result).startswith(result.verdict)
    assert f"({result.certificate.kind})" in str(result)
    assert str(result).endswith(f"estimated gain {signed(result.estimated_gain)} per episode")
