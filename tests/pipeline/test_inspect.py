"""What an inspection says about coverage and overlap, against plain Python."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_tables import frame_of
from surestep.errors import InvalidParameter
from surestep.io import read_log
from surestep.pipeline.inspect import inspect
from surestep.pipeline.terms import Terms

STATES, ACTIONS = ("s", "t", "u"), ("x", "y")
TAKEN = st.dictionaries(
    st.tuples(st.sampled_from(STATES), st.sampled_from(ACTIONS)), st.integers(1, 40), min_size=1
)


def log_of(taken):
    """Loose transitions that take each pair so many times."""
    rows = [
        {"state": state, "action": action, "reward": 1, "next_state": "s"}
        for (state, action), times in taken.items()
        for _ in range(times)
    ]
    return read_log(frame_of(rows, ("state", "action", "reward", "next_state")))


def policy_table(chances):
    """A policy as a table in memory."""
    states, actions = ([pair[i] for pair in chances] for i in (0, 1))
    return {"state": states, "action": actions, "probability": [float(p) for p in chances.values()]}


@given(lengths=st.lists(st.integers(1, 60), min_size=1, max_size=20))
@settings(max_examples=settings.default.max_examples // 3)
def test_episodes_are_counted_by_their_lengths(lengths):
    rows = [(e, t) for e, length in enumerate(lengths) for t in range(length)]
    table = {
        "episode": np.array([e for e, _ in rows]),
        "step": np.array([t for _, t in rows]),
        **{name: np.full(len(rows), "x", object) for name in ("state", "action")},
        "reward": np.ones(len(rows)),
        "terminated": np.array([t == lengths[e] - 1 for e, t in rows]),
    }
    found = inspect(read_log(table)).episodes
    assert (found.lowest, found.highest) == (min(lengths), max(lengths))
    assert found.median == np.quantile(lengths, 0.5, method="inverted_cdf")
    assert found.histogram == tuple(np.histogram(lengths, found.edges)[0])
    assert sum(found.histogram) == len(lengths)


@settings(max_examples=settings.default.max_examples // 3)
@given(taken=TAKEN, n_wedge=st.integers(0, 30))
def test_coverage_is_that_of_plain_python(taken, n_wedge):
    found = inspect(log_of(taken), n_wedge=n_wedge)
    states, actions = ({pair[i] for pair in taken} for i in (0, 1))
    trusted = {pair: times for pair, times in taken.items() if times > n_wedge}
    coverage = found.coverage
    assert (found.states, len(found.actions)) == (len(states), len(actions))
    assert coverage.pairs == len(states) * len(actions)
    assert coverage.never == coverage.pairs - len(taken) == coverage.histogram[0].times
    assert (coverage.trusted, coverage.visits_trusted) == (len(trusted), sum(trusted.values()))
    for listed, pairs in ((found.states_by_tried, taken), (found.states_by_trusted, trusted)):
        number = Counter(sum(pair[0] == state for pair in pairs) for state in states)
        assert listed == tuple(number[i] for i in range(len(actions) + 1))
    for use in found.actions:
        mine = {pair: times for pair, times in taken.items() if (pair[1],) == use.action}
        assert (use.visits, use.states) == (sum(mine.values()), len(mine))
        assert use.trusted_states == len(mine.keys() & trusted.keys())
    rows = [
        ((state,), tuple(taken.get((state, action), 0) for action in sorted(actions)))
        for state in sorted(states)
    ]
    assert found.busiest == tuple(sorted(rows, key=lambda row: -sum(row[1])))
    kinds = {caution.kind for caution in found.cautions}
    assert ("nothing to choose" in kinds) == (sum(found.states_by_trusted[2:]) == 0)


@settings(max_examples=settings.default.max_examples // 3)
@given(taken=TAKEN, weights=st.lists(st.integers(0, 3), min_size=6, max_size=6), rng=st.randoms())
def test_overlap_with_a_policy_is_that_of_plain_python(taken, weights, rng):
    chances = {}
    for i, state in enumerate(STATES):
        pair = weights[2 * i : 2 * i + 2]
        if sum(pair):
            for action, weight in zip(ACTIONS, pair, strict=True):
                chances[state, action] = weight / sum(pair)
    chances = chances or {("s", "x"): 1.0}
    found = inspect(log_of(taken), behavior=policy_table(chances)).overlap
    visited, known = {pair[0] for pair in taken}, {pair[0] for pair in chances}
    assert found.states_unknown == len(visited - known)
    assert found.states_unvisited == len(known - visited)
    assert found.never_seen == sum(
        chance > 0 and pair[0] in visited and pair not in taken for pair, chance in chances.items()
    )
    of_known = {pair: times for pair, times in taken.items() if pair[0] in known}
    possible = {pair: times for pair, times in of_known.items() if chances.get(pair, 0) > 0}
    assert found.impossible == len(of_known) - len(possible)
    rows = Counter()
    for (state, _), times in taken.items():
        rows[state] += times
    unlikely = 0
    for (state, action), times in possible.items():
        p, n = chances[state, action], rows[state]
        unlikely += abs(times - n * p) > 5 * (n * p * (1 - p)) ** 0.5 + 1
    assert found.unlikely == unlikely


def test_every_mismatch_is_told_with_the_first_labels():
    taken = {("s", "x"): 1000, ("s", "y"): 2, ("t", "x"): 500, ("t", "y"): 500, ("u", "x"): 1}
    chances = {("s", "x"): 1.0, ("s", "y"): 0.0, ("t", "x"): 0.9, ("t", "y"): 0.05}
    chances[("t", "z")] = 0.05
    found = inspect(log_of(taken), behavior=policy_table(chances))
    said = {caution.kind: caution.says for caution in found.cautions}
    assert "nothing about 1 of 3 states of the log, such as 'u'" in said["unknown state"]
    assert "1 pair is in the log" in said["impossible pair"]
    assert "'y' in 's'" in said["impossible pair"]
    assert "3 pairs are taken far more or less often" in said["unlikely pair"]
    assert "such as 'z' in 't'" in said["never seen"]
    assert "less than 1 % of the rows of their state, such as 'y' in 's'" in said["thin overlap"]
    assert "In 1 of 3 states only one action was ever tried" in said["no comparison"]


def test_settings_out_of_range_are_refused():
    log = log_of({("s", "x"): 1})
    for wrong in (-1, True, 1.5):
        with pytest.raises(InvalidParameter, match="n_wedge is"):
            inspect(log, n_wedge=wrong)


def proposed(table, columns, **bins):
    """What an inspection says should be binned."""
    kinds = ("fine column", "several measurements")
    found = inspect(read_log(table, columns={"state": columns}, **bins)).cautions
    return [each.says for each in found if each.kind in kinds]


def test_a_column_of_many_numbers_should_be_binned():
    ages, columns = [20 + place / 4 for place in range(101)], ["age", "name"]
    table = {
        "age": np.array(ages),
        "name": np.array([f"n{age}" for age in ages], object),
        "action": np.full(len(ages), "wait", object),
        "reward": np.ones(len(ages)),
        "next_age": np.array(ages),
        "next_name": np.array(["n"] * len(ages), object),
    }
    (says,) = proposed(table, columns)
    assert says.startswith("Column 'age' has 101 different numbers")
    assert "such as with bins={'age': {'quantiles': 10}}." in says
    assert " of its own. Bin it" in says
    assert not proposed(table, columns, bins={"age": {"width": 10}})
    table["age"] = np.arange(101)  # which may be clusters
    (says,) = proposed(table, columns)
    assert " of its own. Unless they are names, as of clusters, bin it" in says
    assert not proposed({name: values[:100] for name, values in table.items()}, columns)


def test_pairs_count_as_trusted_from_as_many_visits_on_as_improve_changes():
    terms = Terms.of(discount=0.9)
    visits = {("s", "x"): terms.floor, ("s", "y"): terms.floor - 1}
    found = inspect(log_of(visits))
    assert [use.trusted_states for use in found.actions] == [1, 0]


def test_several_measurements_should_be_binned():
    """Each has few values, and all together make a state of nearly every row."""
    rng = np.random.default_rng(0)
    table = {
        "pulse": rng.integers(60, 80, 150),
        "age": rng.integers(20, 40, 150),
        "action": np.full(150, "wait", object),
        "reward": np.ones(150),
        "next_pulse": np.full(150, 70),
        "next_age": np.full(150, 30),
    }

    (says,) = proposed(table, ["pulse", "age"])
    assert says.startswith("Columns 'pulse', 'age' are numbers, and make 1")
    assert "with bins={'pulse': {'quantiles': 4}, 'age': {'quantiles': 4}}." in says
    assert not proposed(table, ["pulse", "age"], bins={"age": {"width": 10}})
