"""Structures, logs and rules by columns: what is read, and what is refused by name."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.description import described
from surestep.environments.sysadmin import SysAdmin
from surestep.errors import InvalidLog, InvalidParameter, InvalidPolicy
from surestep.model.factored import ColumnRules, FactoredLog
from surestep.model.structure import Structure

COLUMNS = {"fluids": ["low", "high"], "pressure": ["low", "normal", "high"]}
ACTIONS = ["wait", "give"]
TABLE = {
    "fluids": {"parents": ["fluids"]},
    "pressure": {"parents": ["pressure", "next.fluids"], "action": "none"},
    "reward": {"terms": [{"of": "next.pressure", "normal": 1.0}, {"of": "action", "give": -0.5}]},
}


def test_a_node_is_a_column_with_parents_and_a_part_of_the_action():
    structure = Structure.read(COLUMNS, ACTIONS, TABLE)
    assert structure.num_nodes == 2 * 2 + 3 * 2
    assert structure.node_names[0] == "fluids: fluids low, action wait"
    assert structure.node_names[-1] == "pressure: pressure high, next.fluids high"
    assert structure.reward_range == (-0.5, 1.0)
    values = np.array([[1, 2, 0, 1, 0, 0]])  # now (high, high), then (low, normal)
    assert structure.nodes.at(0, values, np.array([1]))[0] == 3
    assert structure.nodes.at(1, values, np.array([1]))[0] == 4 + 2 * 2
    assert structure.reward_of(values, np.array([1])).tolist() == [0.5]
    assert copy.deepcopy(structure) == structure


def test_one_value_may_be_listed():
    listed = {"fluids": {"values": ["low"]}}
    structure = Structure.read(COLUMNS | {"fluids": ["low"]}, ACTIONS, TABLE | listed)
    assert (structure.declared, structure.values[0]) == (("fluids",), ("low",))
    with pytest.raises(InvalidParameter, match=r"is \('low',\), but its column has"):
        Structure.read(COLUMNS, ACTIONS, TABLE | listed)


def test_a_row_of_machines_has_values_beyond_its_ends():
    table = {
        "m_*": {"parents": ["@", "@left + @right"], "action": "none", "edge": "up"},
    }
    columns = {f"m_{i}": ["down", "up"] for i in range(3)}
    structure = Structure.read(columns, ["wait"], table)
    values = np.array([[1, 0, 1, 0, 0, 0, 0, 0]])
    nodes = [int(structure.nodes.at(d, values, np.array([0]))[0]) for d in range(3)]
    assert [structure.node_names[node] for node in nodes] == [
        "m_*: @ up, @left + @right 1",
        "m_*: @ down, @left + @right 2",
        "m_*: @ up, @left + @right 1",
    ]
    rules = ColumnRules.of(
        structure, [({"@left": "up", "@right": "up"}, "wait")], "wait", group="m_*"
    )
    assert rules.deciding(np.array([[1, 0, 1], [0, 0, 0]]))[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pressur": {"parents": []}}, "structure.pressur names no column"),
        ({"fluids": {"parents": ["volume"]}}, "structure.fluids has the parent 'volume'"),
        ({"fluids": {"parents": ["next.pressure"]}}, "not decided before it"),
        ({"fluids": {"parent": []}}, r"no key 'parent' in \[structure\.fluids\]"),
        ({"fluids": {"parents": [], "action": {"dose": "gives"}}}, "has the action 'gives'"),
        ({"fluids": {"parents": [], "action": "some"}}, "structure.fluids.action is 'some'"),
        ({"fluids": {"parents": [], "known": [{"is": "medium"}]}}, "has no value 'medium'"),
        ({"fluids": {"parents": [], "known": [{"action": "x", "is": "low"}]}}, "action = 'x'"),
        ({"reward": {"terms": [{"of": "fluids", "medium": 1}]}}, "has 'medium'"),
        ({"fluids": {"values": [0, 1]}}, r"fluids.values is \('0', '1'\), but its column has"),
        ({"reward": {"values": ["low", 1]}}, "structure.reward.values has 'low', expected numbers"),
        ({"reward": {"values": ["low"]}}, "structure.reward.values has 'low', expected numbers"),
        ({"reward": {"values": [0, 1], "terms": []}}, "structure.reward has no key 'terms'"),
    ],
)
def test_what_a_table_leaves_open_is_refused_by_name(changes, words):
    with pytest.raises(InvalidParameter, match=words):
        Structure.read(COLUMNS, ACTIONS, TABLE | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reward": {"terms": [{"fluids": 1}]}}, "structure.reward .*each term to have 'of'"),
        ({"reward": {"terms": [{"of": "fluids", "low": "1"}]}}, "and else numbers; found"),
        ({"reward": {"terms": {"of": "fluids"}}}, "structure.reward.terms .*a list; found a table"),
        ({"reward": {"values": []}}, "structure.reward.values is .*length >= 1"),
        ({"fluids": 3}, "structure.fluids is 3, expected a table of keys"),
        ({"fluids": {"parents": [3]}}, r"structure.fluids.parents\[0\] is 3, expected a text"),
        ({"fluids": {"action": {"dose": 3}}}, "structure.fluids.action.*found a whole number"),
        ({"fluids": {"known": [{"action": "give"}]}}, "structure.fluids .*known to have 'is'"),
        ({"fluids": {"known": {"is": "low"}}}, "structure.fluids.known .*list; found a table"),
        ({"fluids": {"known": [{"is": ["low", "high"]}]}}, "structure.fluids.known.* a list"),
        ({"fluids": {"edge": ["low", "high"]}}, "structure.fluids.edge is .*found a list"),
        ({"fluids": {"learnt": "no"}}, "structure.fluids.learnt is 'no', expected true or false"),
    ],
)
def test_a_wrong_type_is_refused_by_the_name_of_its_key_before_a_log_is_read(changes, words):
    with pytest.raises(InvalidParameter, match=words):
        described({"structure": TABLE | changes})
    with pytest.raises(InvalidParameter, match=words):
        Structure.read(COLUMNS, ACTIONS, TABLE | changes)


def test_a_column_without_a_table_and_a_late_reward_are_refused():
    with pytest.raises(InvalidParameter, match="column 'fluids' has no table"):
        Structure.read(COLUMNS, ACTIONS, {"pressure": {"parents": []}})
    late = {"end": {"parents": ["pressure"]}} | TABLE
    with pytest.raises(InvalidParameter, match=r"'next\.pressure', which is decided"):
        Structure.read(COLUMNS, ACTIONS, late)


def log_with(**changes):
    table = TABLE | {"fluids": {"parents": ["fluids"], "known": [{"action": "give", "is": "high"}]}}
    given = {
        "structure": Structure.read(COLUMNS, ACTIONS, table),
        "state": [[0, 0], [1, 1]],
        "action": [1, 0],
        "next_state": [[1, 1], [0, 2]],
        "ended": [False, False],
        "offsets": [0, 2],
        "reward": [0.5, 0.0],
    }
    return FactoredLog(**given | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"next_state": [[0, 1], [0, 2]]},
            "row 1 contradicts the structure: fluids: .*'high'.*'low'",
        ),
        ({"reward": [0.5, 1.0]}, "row 2 contradicts the structure: its reward is 1, .* gives 0"),
        ({"state": [[0, 0], [1, 3]]}, "row 2: column 'pressure' of state has the number 3"),
        ({"ended": [False, True]}, "row 2 ends its episode"),
        ({"state": [[0, 0]]}, "state has shape"),
    ],
)
def test_what_a_row_contradicts_is_named_with_the_row(changes, words):
    assert log_with().num_steps == 2
    with pytest.raises(InvalidLog, match=words):
        log_with(**changes)


def test_a_reward_that_nobody_saw_counts_as_the_greatest():
    """Whatever the missing values were, no return is above the one that is counted."""
    terms = [{"of": "next.x", "low": -5.0, "high": 3.0}, {"of": "action", "go": -1.0}]
    table = {"x": {"parents": ["x"]}, "end": {"parents": []}, "reward": {"terms": terms}}
    log = FactoredLog(
        structure=Structure.read({"x": ["low", "high"]}, ["go", "stay"], table),
        state=[[0], [1], [0]],
        action=[0, 1, 1],
        next_state=[[1], [-1], [-1]],
        ended=[False, True, False],  # where the third step led, and whether it ended
        offsets=[0, 2, 3],
    )
    assert log.earned.tolist() == [2.0, 3.0, 3.0]
    assert log.returns(0.5).tolist() == [2.0 + 0.5 * 3.0, 3.0]
    assert log.returns(0.5, within=1).tolist() == [2.0, 3.0]


def test_a_node_for_the_reward_needs_rewards():
    structure = Structure.read(COLUMNS, ACTIONS, TABLE | {"reward": {"values": [0, 1]}})
    with pytest.raises(InvalidLog, match="the log no rewards"):
        log_with(structure=structure, reward=None)
    with pytest.raises(InvalidLog, match=r"row 2 has the reward 0\.5, .* it lists 0\.0, 1\.0"):
        log_with(structure=structure, reward=[1.0, 0.5])
    assert log_with(structure=structure, reward=[1.0, 0.0]).values()[:, -1].tolist() == [1, 0]


@given(st.integers(3, 7), st.data())
def test_rules_take_the_first_member_of_the_first_rule_that_any_fulfils(machines, data):
    world = SysAdmin(machines)
    state = data.draw(st.lists(st.integers(0, 1), min_size=machines, max_size=machines))
    expected = machines
    for left, right in [(1, 1), (1, None), (None, 1), (None, None)]:
        fits = [
            i
            for i in range(machines)
            if state[i] == 0
            and left in (None, state[i - 1])
            and right in (None, state[(i + 1) % machines])
        ]
        if fits:
            expected = fits[0]
            break
    assert world.fewest_failed_neighbours().act(np.array([state])).tolist() == [expected]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([({"volume": "low"}, "give")], "rule 1 has the condition 'volume'"),
        ([({"fluids": "medium"}, "give")], "rule 1: fluids = 'medium'"),
        ([({"fluids": "low"}, "gives")], "a rule takes 'gives'"),
    ],
)
def test_rules_that_name_what_does_not_exist_are_refused(rules, words):
    with pytest.raises(InvalidParameter, match=words):
        ColumnRules.of(Structure.read(COLUMNS, ACTIONS, TABLE), rules, "wait")


def chances_by_hand(conditions, law, state):
    """The law of the first condition that holds, by the numbers of its values."""
    for when, row in zip(conditions, law, strict=False):
        if all(low <= state[c] <= high for c, (low, high) in when.items()):
            return row
    return law[len(conditions)]


@given(st.data())
def test_laws_of_rules_are_those_of_the_first_that_holds(data):
    """Both ways to find a rule: a table names one value of every column, other rules ranges."""
    structure = Structure.read(COLUMNS, ACTIONS, TABLE)
    is_table = data.draw(st.booleans())
    conditions, law = [], []
    for _ in range(data.draw(st.integers(0, 6))):
        when = {}
        for c, size in ((0, 2), (1, 3)):
            low = data.draw(st.integers(0, size - 1))
            when[c] = (low, low if is_table else data.draw(st.integers(low, size - 1)))
        conditions.append(when)
    for _ in range(len(conditions) + 1):
        first = data.draw(st.integers(0, 4)) / 4
        law.append([first, 1 - first])
    words = [
        {structure.columns[c]: tuple(structure.values[c][v] for v in ends)
         for c, ends in when.items()}
        for when in conditions
    ]  # fmt: skip
    rules = ColumnRules.of_laws(structure, words, law)
    states = np.array([[a, b] for a in range(2) for b in range(3)])
    exact = np.array([chances_by_hand(conditions, law, state) for state in states])
    np.testing.assert_array_equal(rules.chances(states), exact)
    never = rules.chances(states)[np.arange(6), rules.act(states)] < 0.5
    assert not never.any()  # without chance, the most likely action


def test_actions_are_drawn_by_the_law_of_their_rule():
    structure = Structure.read(COLUMNS, [*ACTIONS, "never"], TABLE)
    law = [[0.25, 0.75, 0.0], [0.0, 0.0, 1.0], [0.6, 0.4, 0.0]]
    conditions = [{"pressure": "low"}, {"pressure": "high"}]
    rules = ColumnRules.of_laws(structure, conditions, law)
    number = 20_000
    for pressure, row in zip((0, 2, 1), law, strict=True):
        taken = rules.act(np.tile([0, pressure], (number, 1)), np.random.default_rng(pressure))
        found = np.bincount(taken, minlength=3) / number
        assert found == pytest.approx(row, abs=5 * 0.5 / number**0.5)
        assert (found[np.array(row) == 0] == 0).all()


def test_where_nobody_knows_what_is_done_nothing_is_made_up():
    structure = Structure.read(COLUMNS, ACTIONS, TABLE)
    rules = ColumnRules.of_laws(structure, [{"fluids": "low"}], [[0.5, 0.5], [0.5, 0.4]])
    known = np.array([[0, 1]])
    assert rules.chances(known).tolist() == [[0.5, 0.5]]
    assert rules.chances(np.array([[1, 1]])).tolist() == [[0.5, 0.4]]
    rules.act(np.tile(known, (1000, 1)), np.random.default_rng(1))
    with pytest.raises(InvalidParameter, match=r"nobody knows what is done in state .* of"):
        rules.act(np.tile([1, 1], (1000, 1)), np.random.default_rng(1))


@pytest.mark.parametrize(
    ("law", "words"),
    [
        ([[1, 0], [0.5, 0.6]], r"law of rule 2 is \[0\.5, 0\.6\], expected .* at most 1"),
        ([[-0.5, 1.5], [1, 0]], r"law of rule 1 is \[-0\.5, 1\.5\], expected chances"),
        ([[1, 0]], r"law has shape \(1, 2\), expected \(2, 2\)"),
    ],
)
def test_laws_that_are_no_chances_are_refused(law, words):
    structure = Structure.read(COLUMNS, ACTIONS, TABLE)
    with pytest.raises(InvalidPolicy, match=words):
        ColumnRules.of_laws(structure, [{"fluids": "low"}], law)
