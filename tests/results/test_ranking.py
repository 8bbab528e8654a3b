"""What a reader sees first, against the plainest way to order it."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.findings import (
    gridworld_findings,
    maintenance_findings,
    with_many_states,
    without_changes,
)
from surestep.results.ranking import gaining_action, kept_states, moves_in, thinnest_states

MACHINE, GRID = maintenance_findings(), gridworld_findings()
SHARES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


def of_one_state(behavior, probability, **changes):
    """A table whose first state has these chances, and the state's pairs."""
    table = MACHINE.table
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
def test_the_action_that_gains_most_is_found_with_its_visits(behavior, probability):
    table = MACHINE.table
    held_out = np.arange(table.visits.size)
    table, pairs = of_one_state(behavior, probability, held_out_visits=held_out)
    gained = [table.probability[pair] - table.behavior[pair] for pair in pairs]
    action = gaining_action(table, 0)
    assert gained[action.pair] == max(gained)
    assert action.visits == table.visits[action.pair]
    assert action.decisions == sum(table.visits[pair] for pair in pairs) == table.decisions[0]
    assert (action.held_out_visits, action.held_out_decisions) == (action.pair, sum(pairs))


def test_states_that_stay_as_they_were_by_the_time_spent_there():
    for findings in (GRID, without_changes(GRID), with_many_states(GRID, 50)):
        changed = {change.state for change in findings.changes}
        kept = [state for state in range(findings.table.pairs.num_states) if state not in changed]
        share = findings.behavior_occupancy
        assert kept_states(findings).tolist() == sorted(kept, key=lambda state: -share[state])


def test_where_nothing_is_decided_nothing_is_kept():
    quiet = MACHINE.table.quiet.copy()
    quiet[-1] = True
    findings = without_changes(replace(MACHINE, table=replace(MACHINE.table, quiet=quiet)))
    assert sorted(kept_states(findings)) == list(range(quiet.size - 1))


@given(st.lists(st.integers(0, 3), min_size=6, max_size=6), st.randoms(use_true_random=False))
def test_the_thinnest_states_have_most_time_for_a_decision(visits, random):
    table = MACHINE.table
    counted = np.zeros_like(table.visits)
    counted[table.pairs.offsets[:-1]] = visits
    share = np.array([random.random() for _ in visits])
    # All of the log counts, whether it chose or judges.
    chose = np.array([random.randint(0, int(many)) for many in counted])
    parts = {"visits": chose, "held_out_visits": counted - chose}
    findings = replace(MACHINE, table=replace(table, **parts), occupancy=share)
    seen = [state for state, many in enumerate(visits) if many]
    expected = sorted(seen, key=lambda state: -share[state] / visits[state])
    assert thinnest_states(findings).tolist() == expected
    assert findings.table.num_silent == visits.count(0)
