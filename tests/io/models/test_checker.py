"""Models of checkers become ours: ends and starts are found again, and actions are numbered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.model_files import BIT, DOUBLE, bits
from support.umb_parts import actions, doubles, values
from support.umb_parts import read as read_umb
from surestep import optimal
from surestep.errors import InvalidModel
from surestep.io.models.checker import Actions, number_actions


def read(folder, choices, branches, *, initial=0, labels=None, rewards=None, names=None):
    """Reads an archive with labels (label → states), rewards (level → values), names of choices."""
    labels, rewards = labels or {}, rewards or {}
    marks = {label: {"applies-to": ["states"], "type": BIT} for label in labels}
    earned = {"reward": {"applies-to": list(rewards), "type": DOUBLE}} if rewards else {}
    table = sorted(set(names or ()), reverse=True)
    taken = [table.index(name) for name in names or ()]
    files = actions(*taken, strings=table)["files"] if names else {}
    for label, states in labels.items():
        files |= values("aps", label, states=bits(np.isin(np.arange(len(choices)), states)))
    files |= values("rewards", "reward", **{name: doubles(*each) for name, each in rewards.items()})
    more = {"index": {"annotations": {"aps": marks, "rewards": earned}}, "files": files}
    settings = {"actions": len(table), "initial": (initial,), "more": more}
    return read_umb(folder, choices, branches, **settings)


def successors(mdp):
    """Each pair's successors with their probabilities."""
    return [
        dict(zip(mdp.successor[a:b].tolist(), mdp.probability[a:b].tolist(), strict=True))
        for a, b in zip(mdp.offsets[:-1].tolist(), mdp.offsets[1:].tolist(), strict=True)
    ]


# ---- ends and starts --------------------------------------------------------------------------

END = {"end": [1]}
SURELY = [1, 1, 1], [[(1, 1.0)], [(1, 1.0)], [(1, 1.0)]]


def test_an_end_that_is_only_entered_surely_goes(tmp_path):
    mdp = read(tmp_path, *SURELY, labels=END, rewards={"branches": [5, 0, -1]})
    assert (mdp.num_states, mdp.num_transitions) == (2, 0)  # state 2 is now state 1
    assert mdp.ending_reward.tolist() == [5.0, -1.0]


def test_an_end_that_is_entered_by_chance_stays_without_successors(tmp_path):
    branches = [[(1, 0.5), (2, 0.5)], [(1, 1.0)], [(1, 1.0)]]
    mdp = read(tmp_path, [1, 1, 1], branches, labels=END)
    assert successors(mdp) == [{1: 0.5, 2: 0.5}, {}, {1: 1.0}]


KEPT = {
    "it earns": {"rewards": {"branches": [0, 1, 0]}},
    "it can be left": {"model": ([1, 2, 1], [[(1, 1)], [(1, 1)], [(0, 1)], [(1, 1)]])},
    "it is the start": {"initial": 1},
    "nothing leads to it": {"model": ([1, 1, 1], [[(0, 1)], [(1, 1)], [(0, 1)]])},
    "there are two": {
        "model": ([1, 1, 1], [[(1, 1)], [(1, 1)], [(2, 1)]]),
        "labels": {"end": [1, 2]},
    },
}


@pytest.mark.parametrize("name", KEPT)
def test_an_end_stays_where_something_would_be_lost(tmp_path, name):
    settings = dict(KEPT[name])
    found = read(tmp_path, *settings.pop("model", SURELY), **{"labels": END, **settings})
    assert found.num_states == 3


def test_an_end_that_stays_has_no_successors_only_if_nothing_happens_there(tmp_path):
    both = {"end": [0, 1]}
    mdp = read(tmp_path, [1, 1], [[(1, 1.0)], [(1, 1.0)]], initial=1, labels=both)
    assert successors(mdp) == [{1: 1.0}, {}]


def test_a_state_without_choices_is_an_end_unless_it_earns(tmp_path):
    chain = [1, 0], [[(1, 1.0)]]
    assert successors(read(tmp_path, *chain)) == [{1: 1.0}, {}]
    earning = read(tmp_path, *chain, rewards={"states": [0, 3]})
    assert successors(earning) == [{1: 1.0}, {1: 1.0}]
    assert optimal(earning).value.tolist() == pytest.approx([3.0, 6.0])


START = {"start": [2]}
OURS = [1, 1, 1], [[(1, 1)], [(0, 1)], [(0, 0.25), (1, 0.75)]]
STATES = {
    "it earns": {"rewards": {"branches": [0, 0, 1, 0]}},
    "it can be entered": {"model": ([1, 1, 1], [[(2, 1)], *OURS[1][1:]])},
    "it has a choice": {"model": ([1, 1, 2], [*OURS[1], [(0, 1)]])},
    "it is not last": {"initial": 0, "labels": {"start": [0]}},
    "it is not called so": {"labels": {}},
}


def test_a_start_that_looks_like_ours_becomes_a_distribution(tmp_path):
    assert read(tmp_path, *OURS, initial=2, labels=START).initial.tolist() == [0.25, 0.75]


@pytest.mark.parametrize("name", STATES)
def test_any_other_start_is_a_state(tmp_path, name):
    settings = dict(STATES[name])
    model = settings.pop("model", OURS)
    found = read(tmp_path, *model, **{"initial": 2, "labels": START, **settings})
    assert found.num_states == 3
    assert found.initial.max() == 1.0


def test_what_goes_is_checked_too(tmp_path):
    ends = [[(1, 1.0)], [(1, 0.9)], [(1, 1.0)]]
    with pytest.raises(
        InvalidModel, match=r"m\.umb: probabilities of state 1, choice 0 sum to 0\.9"
    ):
        read(tmp_path, [1, 1, 1], ends, labels=END)


def test_rewards_that_are_too_large_together_are_refused(tmp_path):
    rewards = {"states": [1e308, 0], "branches": [1e308, 0]}
    words = r"m\.umb: reward of state 0, action 'go' → state 1 is inf, expected a finite number"
    with pytest.raises(InvalidModel, match=words):
        read(tmp_path, [1, 1], [[(1, 1)], [(1, 1)]], rewards=rewards, names=["go", "go"])


# ---- actions ----------------------------------------------------------------------------------

ORDERS = {  # the names of each state's choices, the file's numbering, our labels and numbers
    "as in the file, where that rises": ([["c"], ["b", "d"]], "abcd", "abcd", [[2], [1, 3]]),
    "by first appearance": ([["b", "a"], ["c"]], "abc", "bac", [[0, 1], [2]]),
    "by first appearance in any state": ([["b", "c"], ["a", "b"]], "cba", "bca", [[0, 1], [2, 0]]),
    "in one order, whatever states have": ([["a", "b"], ["b", "a"]], "ab", "ab", [[0, 1], [1, 0]]),
    "not by their names": ([["a10", "b"]], ["b", "a10"], ["a10", "b"], [[0, 1]]),
    "without the ones that nobody has": ([["b", "a"]], "abc", "ba", [[0, 1]]),
    "by position": ([[None, None], [None]], [None], None, [[0, 1], [0]]),
    "by position without a name": ([["a", None], [None]], ["a", None], "a10", [[0, 1], [2]]),
    "after a name that is repeated": (
        [["go", "go", "go"], ["go"]], ["go"], ["go", "go (2)", "go (3)"], [[0, 1, 2], [0]],
    ),
    "after a name that looks repeated": (
        [["x (2)", "x", "x"]], ["x", "x (2)"], ["x (2)", "x", "x (2) (2)"], [[0, 1, 2]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERS)
def test_actions_are_numbered(name):
    rows, table, labels, numbers = ORDERS[name]
    code = np.array([list(table).index(name) for row in rows for name in row])
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    found = number_actions(Actions(code, len(table), list(table)), starts)
    assert found.names == (None if labels is None else tuple(labels))
    assert found.number.tolist() == [number for row in numbers for number in row]


ROWS = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3), min_size=1, max_size=4)


@given(rows=ROWS)
def test_every_choice_keeps_its_name_and_its_reward(tmp_path_factory, rows):
    names = [name for row in rows for name in row]
    mdp = read(
        tmp_path_factory.mktemp("actions"),
        [len(row) for row in rows],
        [[(s, 1)] for s, row in enumerate(rows) for _ in row],
        rewards={"choices": range(1, len(names) + 1)},
        names=names,
    )
    pairs = mdp.pairs
    choice = (mdp.reward - 1).astype(int)  # each pair is known by what it earns
    assert sorted(choice.tolist()) == list(range(len(names)))
    called = [pairs.action_labels[number] for number in pairs.action.tolist()]
    seen = {}
    for pair in np.argsort(choice).tolist():  # as they stand in the file
        name, state = names[choice[pair]], int(pairs.state[pair])
        seen[state, name] = seen.get((state, name), 0) + 1
        times = seen[state, name]
        assert called[pair] == (name if times == 1 else f"{name} ({times})")
