"""PRISM explicit files that others wrote: what they mean, and what is refused by file and line."""

from pathlib import Path

import numpy as np
import pytest
import stormpy
import stormpy.examples
from numpy.testing import assert_allclose, assert_array_equal

from model_files import storm_values, write_files
from surestep import optimal
from surestep.errors import FileFailure, InvalidModel, SurestepError
from surestep.io import read_mdp

# Three states: 0 waits or treats, 1 is where nothing is known of actions, 2 stays where it is.
TRA = """\
3 4 6
0 0 0 0.5 wait
0 0 1 0.5 wait
0 1 2 1 treat
1 0 0 1/3
1 0 2 2/3
2 0 2 1
"""
LAB = '0="init" 1="deadlock" 2="healthy"\n0: 0\n2: 1 2\n'
GOOD = {"tra": TRA, "lab": LAB}


def read(folder, discount=0.5, **contents):
    return read_mdp(write_files(folder, **{**GOOD, **contents}), discount)


def successors(mdp):
    """Each pair's successors with their probabilities."""
    return [
        dict(zip(mdp.successor[a:b].tolist(), mdp.probability[a:b].tolist(), strict=True))
        for a, b in zip(mdp.offsets[:-1].tolist(), mdp.offsets[1:].tolist(), strict=True)
    ]


# ---- what files mean --------------------------------------------------------------------------


def test_a_small_model_by_hand(tmp_path):
    mdp = read(
        tmp_path,
        srew="3 2\n0 1.5\n2 0\n",
        trew="3 4 3\n0 0 1 -2\n0 1 2 1e1\n1 0 2 .25\n",
        sta="(x,sick)\n0:(1,true)\n1:(2,true)\n2:(0,false)\n",
    )
    assert mdp.pairs.state_labels == ("(1,true)", "(2,true)", "(0,false)")
    assert mdp.pairs.action_labels == ("wait", "treat", "0")
    assert mdp.pairs.action.tolist() == [0, 1, 2, 2]
    assert successors(mdp) == [{0: 0.5, 1: 0.5}, {2: 1.0}, {0: 1 / 3, 2: 2 / 3}, {}]
    assert mdp.reward.tolist() == [1.5, -0.5, 11.5, 0.0, 0.25]
    assert mdp.ending_reward.tolist() == [0.0] * 4
    assert mdp.initial.tolist() == [1.0, 0.0, 0.0]
    assert mdp.discount.tolist() == [0.5] * 4


def test_comments_blank_lines_and_line_endings_do_not_matter(tmp_path):
    sta = "(x)\n0:(1)\n1:(2)\n2:(0)\n"
    plain = read(tmp_path, trew="3 4 1\n0 0 1 -2\n", srew="3 1\n0 1\n", sta=sta)
    assert plain == read(
        tmp_path,
        tra="# Transitions (MDP)\r\n" + TRA.replace("\n", " \t\r\n\r\n# and so on\r\n"),
        lab="# Labels\n\n" + LAB.replace("\n", "\r\n"),
        trew='# Reward structure "cost"\n# Transition rewards\n3 4 1\n0 0 1 -2',
        srew="# Reward structure\n# State rewards\n3 1\n\n  0\t1",
        sta="# States\n" + sta.replace("\n", "\r\n\r\n"),
    )


def test_the_order_of_lines_does_not_matter(tmp_path):
    head, *lines = TRA.splitlines()
    ordered = read(tmp_path)
    shuffled = read(tmp_path, tra="\n".join([head, *reversed(lines)]))
    assert shuffled.pairs == ordered.pairs
    assert_array_equal(shuffled.dense().P, ordered.dense().P)


def test_rationals_are_rounded_to_the_nearest_double(tmp_path):
    big = f"{10**300 // 3}/{10**300}"
    mdp = read(tmp_path, tra=TRA.replace("1/3", big).replace("2/3", "0." + "6" * 3000 + "7"))
    assert mdp.probability[[3, 4]].tolist() == [1 / 3, 2 / 3]


def test_a_markov_chain_has_a_single_action(tmp_path):
    mdp = read(
        tmp_path,
        tra="2 3\n0 0 0.25 go\n0 1 0.75\n1 1 1\n",
        lab='0="init"\n1: 0\n',
        trew="2 1\n0 1 4\n",
    )
    assert mdp.pairs.action_labels is None
    assert mdp.pairs.action.tolist() == [0, 0]
    assert mdp.reward.tolist() == [0.0, 4.0, 0.0]
    assert mdp.initial.tolist() == [0.0, 1.0]


ORDERS = {
    "by first appearance": ([["b", "a"], ["c"]], "bac", [[0, 1], [2]]),
    "by an order that all states follow": ([["b", "c"], ["a", "b"]], "abc", [[1, 2], [0, 1]]),
    "of which the first to appear comes first": ([["c"], ["b", "d"], ["a", "b"]], "cabd", None),
    "none that all states follow": ([["a", "b"], ["b", "a"]], "ab", [[0, 1], [0, 1]]),
    "not by their names": ([["a10", "b", "a9"]], ["a10", "b", "a9"], [[0, 1, 2]]),
    "by place": ([[None, None], [None]], None, [[0, 1], [0]]),
    "by place where there is no name": ([["a", None], [None]], ["a", "1", "0"], [[0, 1], [2]]),
    "after a name that is repeated": (
        [["go", "go", "go"], ["go"]],
        ["go", "go (2)", "go (3)"],
        [[0, 1, 2], [0]],
    ),
    "after a name that looks repeated": (
        [["go_(2)", "go", "go"]],
        ["go_(2)", "go", "go (2)"],
        [[0, 1, 2]],
    ),
    "after words that only look escaped": (
        [["__x_20", "__x_ffffff_"]],
        ["__x_20", "__x_ffffff_"],
        [[0, 1]],
    ),
    "by number": ([["a0", "a3"], ["a1"]], None, [[0, 3], [1]]),
    "by number, which sorts them": ([["a3", "a0"], ["a1"]], None, [[0, 3], [1]]),
    "by number, unless one is repeated": ([["a0", "a0"]], ["a0", "a0 (2)"], [[0, 1]]),
    "by number, unless others have names": ([["a0", "go"]], ["a0", "go"], [[0, 1]]),
    "by number, unless it is none": ([["a00", "a1"]], ["a00", "a1"], [[0, 1]]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_actions_are_numbered(tmp_path, name):
    states, labels, numbers = ORDERS[name]
    names = [(s, j, name) for s, row in enumerate(states) for j, name in enumerate(row)]
    lines = [f"{s} {j} {s} 1 {name or ''}" for s, j, name in names]
    tra = "\n".join([f"{len(states)} {len(lines)} {len(lines)}", *lines])
    rewards = [f"{s} {j} {s} {10 * s + j + 1}" for s, j, _ in names]
    trew = "\n".join([f"{len(states)} {len(lines)} {len(lines)}", *rewards])
    mdp = read(tmp_path, tra=tra, lab='0="init"\n0: 0', trew=trew)
    pairs = mdp.pairs
    assert pairs.action_labels == (labels if labels is None else tuple(labels))
    runs = np.split(pairs.action, pairs.offsets[1:-1])
    if numbers is not None:
        assert [sorted(run) for run in runs] == [sorted(row) for row in numbers]
    for s, j, name in names:
        pair = int(np.flatnonzero(mdp.reward == 10 * s + j + 1)[0])  # which earns its own reward
        number = int(pairs.action[pair])
        called = f"a{number}" if labels is None else pairs.action_labels[number]
        assert called.startswith(name or "")


def test_ends_are_folded_only_where_nothing_is_lost(tmp_path):
    lab = '0="init" 1="end"\n0: 0\n1: 1\n'
    surely = "3 3 3\n0 0 1 1\n1 0 1 1\n2 0 1 1\n"
    mdp = read(tmp_path, tra=surely, lab=lab, trew="3 3 2\n0 0 1 5\n2 0 1 -1\n")
    assert (mdp.num_states, mdp.num_transitions) == (2, 0)  # state 2 is now state 1
    assert mdp.ending_reward.tolist() == [5.0, -1.0]

    perhaps = "3 3 4\n0 0 1 0.5\n0 0 2 0.5\n1 0 1 1\n2 0 1 1\n"
    mdp = read(tmp_path, tra=perhaps, lab=lab, trew="3 3 0\n")
    assert successors(mdp) == [{1: 0.5, 2: 0.5}, {}, {1: 1.0}]

    for name, contents in {
        "it earns": {"trew": "3 3 1\n1 0 1 1\n"},
        "it can be left": {"tra": "3 4 4\n0 0 1 1\n1 0 1 1\n1 1 0 1\n2 0 1 1\n", "trew": "3 4 0"},
        "it is the start": {"lab": '0="init" 1="end"\n1: 0 1\n', "trew": "3 3 0\n"},
        "nothing leads to it": {"tra": "3 3 3\n0 0 0 1\n1 0 1 1\n2 0 0 1\n", "trew": "3 3 0"},
        "there are two": {
            "tra": "3 3 3\n0 0 1 1\n1 0 1 1\n2 0 2 1\n",
            "lab": '0="init" 1="end"\n0: 0\n1: 1\n2: 1',
            "trew": "3 3 0",
        },
    }.items():
        assert read(tmp_path, **{"tra": surely, "lab": lab, **contents}).num_states == 3, name


def test_an_end_that_stays_has_no_successors_only_if_nothing_happens_there(tmp_path):
    lab = '0="init" 1="end"\n1: 0 1\n0: 1\n'
    mdp = read(tmp_path, tra="2 2 2\n0 0 1 1\n1 0 1 1\n", lab=lab)
    assert successors(mdp) == [{1: 1.0}, {}]


def test_a_state_without_transitions_is_an_end_unless_it_earns(tmp_path):
    lab = '0="init"\n0: 0\n'
    quiet = read(tmp_path, tra="2 1 1\n0 0 1 1 go\n", lab=lab)
    assert successors(quiet) == [{1: 1.0}, {}]
    earning = read(tmp_path, tra="2 1 1\n0 0 1 1 go\n", lab=lab, srew="2 1\n1 3\n")
    assert successors(earning) == [{1: 1.0}, {1: 1.0}]
    assert optimal(earning).value.tolist() == pytest.approx([3.0, 6.0])


def test_a_start_of_others_is_a_state_unless_it_looks_just_like_ours(tmp_path):
    lab = '0="init" 1="start"\n2: 0 1\n'
    ours = "3 3 4\n0 0 1 1\n1 0 0 1\n2 0 0 .25\n2 0 1 .75\n"
    assert read(tmp_path, tra=ours, lab=lab).initial.tolist() == [0.25, 0.75]
    for name, contents in {
        "it earns": {"trew": "3 3 1\n2 0 0 1\n"},
        "it can be entered": {"tra": ours.replace("0 0 1 1", "0 0 2 1"), "trew": "3 3 0"},
        "it has a choice": {"tra": ours.replace("3 3 4", "3 4 5") + "2 1 0 1\n", "trew": "3 4 0"},
        "it is not last": {
            "tra": "3 3 4\n0 0 1 1\n1 0 0 1\n2 0 0 .25\n2 0 1 .75\n",
            "lab": '0="init" 1="start"\n0: 0 1\n',
            "trew": "3 3 0",
        },
        "it is not called so": {"lab": '0="init"\n2: 0\n', "trew": "3 3 0"},
    }.items():
        found = read(tmp_path, **{"tra": ours, "lab": lab, **contents})
        assert found.num_states == 3, name
        assert found.initial.max() == 1.0, name


# ---- Storm's dialect --------------------------------------------------------------------------

SHIPPED = Path(stormpy.examples.__file__).parent / "files"
STORMS = {
    "a chain": {"tra": "tra/die.tra", "lab": "lab/die.lab", "trew": "rew/die.coin_flips.trans.rew"},
    "two dice": {
        "tra": "tra/two_dice.tra",
        "lab": "lab/two_dice.lab",
        "trew": "rew/two_dice.flip.trans.rew",
    },
    "white space": {"tra": "tra/mdp_whitespaces.tra", "lab": "lab/mdp_general.lab"},
    "state rewards": {
        "tra": "tra/mdp_general.tra",
        "lab": "lab/mdp_general.lab",
        "srew": "rew/mdp_general.state.rew",
        "trew": "rew/mdp_general.trans.rew",
    },
}


@pytest.mark.parametrize("name", STORMS)
def test_files_in_storms_dialect_mean_what_storm_says(tmp_path, name):
    contents = {suffix: (SHIPPED / file).read_text() for suffix, file in STORMS[name].items()}
    contents["lab"] = contents["lab"].replace("\n4 init", "\n4")  # we want one initial state
    tra = write_files(tmp_path, **contents)
    rewards = {"state_rewards": ".srew", "transition_rewards": ".trew"}
    storm = stormpy.build_model_from_explicit(
        tra,
        tra.with_suffix(".lab"),
        **{key: tra.with_suffix(s) for key, s in rewards.items() if s[1:] in contents},
    )
    mdp = read_mdp(tra, 0.9)
    assert (mdp.num_states, mdp.num_pairs) == (storm.nr_states, storm.nr_choices)
    assert np.flatnonzero(mdp.initial).tolist() == list(storm.initial_states)
    if len(contents) > 2:
        assert_allclose(optimal(mdp).value, storm_values(storm, 0.9), atol=1e-6)
    else:
        assert mdp.num_transitions == storm.nr_transitions
        assert not mdp.reward.any()


def test_states_that_only_storm_would_give_a_loop_are_ends(tmp_path):
    contents = {"tra": SHIPPED / "tra/mdp_deadlock.tra", "lab": SHIPPED / "lab/mdp_general.lab"}
    texts = {suffix: file.read_text() for suffix, file in contents.items()}
    mdp = read_mdp(
        write_files(tmp_path, **{**texts, "lab": "#DECLARATION\ninit\n#END\n0 init\n"}), 0.9
    )
    ends = np.diff(mdp.offsets) == 0
    storm = stormpy.build_model_from_explicit(tmp_path / "m.tra", tmp_path / "m.lab")
    assert (mdp.num_states, mdp.num_pairs) == (storm.nr_states, storm.nr_choices)
    assert mdp.num_transitions == storm.nr_transitions - ends.sum()
    assert ends.sum() == 1


# ---- refusals ---------------------------------------------------------------------------------


def changed(old, new, text=TRA):
    assert text.count(old) == 1, old
    return text.replace(old, new)


def lines(*without, text=TRA):
    """The text without some of its lines."""
    return "\n".join(line for i, line in enumerate(text.splitlines(), 1) if i not in without)


SREW, TREW, STA = "3 1\n0 1\n", "3 4 1\n0 0 1 2\n", "(x)\n0:(0)\n1:(1)\n2:(2)\n"
REFUSED = {
    # ---- .tra ----------------------------------------------------------------------------------
    "an empty file": ({"tra": ""}, "m.tra: the file is empty, expected the number of states"),
    "only comments": ({"tra": "# Transitions (MDP)\n"}, "m.tra: the file is empty"),
    "no header": ({"tra": lines(1)}, "m.tra: line 1 has 5 words, expected 3 numbers (states, choi"),
    "a partially observable model": ({"tra": "3 4 6 2\n"}, "line 1 has 4 words, expected 3"),
    "a header of words": ({"tra": changed("3 4 6", "3 b 6")}, "line 1: the count is 'b', expected"),
    "half a count": ({"tra": changed("3 4 6", "3 4.0 6")}, "the count is '4.0', expected a whole"),
    "rates": ({"tra": "# Transitions (CTMC)\n2 1\n0 1 3\n"}, "of type 'ctmc', expected 'mdp' or"),
    "an automaton": ({"tra": "ma\n0 0 1 1\n"}, "m.tra: the model is of type 'ma', expected 'mdp'"),
    "a line too few": (
        {"tra": lines(7)},
        "m.tra: found 5 transitions, but the header says 6 (the file may be cut off)",
    ),
    "a line too many": ({"tra": TRA + "2 1 2 1\n"}, "found 7 transitions, but the header says 6"),
    "a choice too few": (
        {"tra": changed("3 4 6", "3 5 6")},
        "m.tra: found 4 choices, but the header says 5",
    ),
    "too few words": (
        {"tra": changed("2 0 2 1", "2 0 2")},
        "m.tra: line 7 has 3 words, expected 4",
    ),
    "too many words": (
        {"tra": changed("2 0 2 1", "2 0 2 1 a b")},
        "line 7 has 6 words, expected 4",
    ),
    "a state that does not exist": (
        {"tra": changed("2 0 2 1", "3 0 2 1")},
        "m.tra: line 7: the state is '3', expected a whole number from 0 to 2",
    ),
    "a negative state": ({"tra": changed("1 0 0 1/3", "-1 0 0 1/3")}, "line 5: the state is '-1'"),
    "a successor that does not exist": (
        {"tra": changed("2 0 2 1", "2 0 9 1")},
        "m.tra: line 7: the successor is '9', expected a whole number from 0 to 2",
    ),
    "a state beyond all numbers": (
        {"tra": changed("2 0 2 1", f"{'9' * 5000} 0 2 1")},
        "line 7: the state is '9999999999999999999999999999999999999999…', expected",
    ),
    "swapped columns": (
        {"tra": changed("0 0 1 0.5", "0 0 0.5 1")},
        "m.tra: line 3: the successor is '0.5', expected a whole number",
    ),
    "a choice that is skipped": (
        {"tra": changed("0 1 2 1", "0 2 2 1")},
        "line 4: the choice is '2', but the state has no choice with the number before it",
    ),
    "a choice with two names": (
        {"tra": changed("0 0 1 0.5 wait", "0 0 1 0.5 treat")},
        "line 3: this choice of state '0' has another action in an earlier line",
    ),
    "a choice named once": (
        {"tra": changed("0 0 1 0.5 wait", "0 0 1 0.5")},
        "line 3: this choice of state '0' has another action in an earlier line",
    ),
    "a name in another encoding": (
        {"tra": TRA.replace("treat", "gr\xfcn").encode("latin-1")},
        "m.tra: line 4: the action 'gr\ufffdn' is not valid UTF-8",
    ),
    "bytes that are no text": ({"tra": b"\xff\xfe\x00\x01" * 9}, "m.tra: "),
    "probabilities that sum to 0.9": (
        {"tra": changed("0 0 0 0.5", "0 0 0 0.4")},
        "m.tra: probabilities of state 0, choice 0 sum to 0.9, expected 1; 1 of 4 choices is",
    ),
    "probabilities that sum to 0.9 at the end": (
        {"tra": changed("2 0 2 1", "2 0 2 0.9"), "lab": '0="init" 1="end"\n0: 0\n2: 1\n'},
        "m.tra: probabilities of state 2, choice 0 sum to 0.9, expected 1",
    ),
    "a negative probability": (
        {"tra": changed("1/3", "-1/3").replace("2/3", "4/3")},
        "m.tra: probability of state 1, choice 0 is -0.333",
    ),
    "a probability that is none": (
        {"tra": changed("2 0 2 1", "2 0 2 p")},
        "line 7: the probability is 'p', expected a finite number",
    ),
    "NaN": (
        {"tra": changed("2 0 2 1", "2 0 2 nan")},
        "the probability is 'nan', expected a finite",
    ),
    "an infinite probability": (
        {"tra": changed("2 0 2 1", "2 0 2 inf")},
        "probability is 'inf', e",
    ),
    "a number with underscores": ({"tra": changed("2 0 2 1", "2 0 2 1_0")}, "probability is '1_0'"),
    "an interval": (
        {"tra": changed("2 0 2 1", "2 0 2 [0,1]")},
        "the probability is '[0,1]', expec",
    ),
    "a division by 0": (
        {"tra": changed("2/3", "2/0")},
        "line 6: the probability is '2/0', expected",
    ),
    "a fraction of fractions": (
        {"tra": changed("2/3", "2/3/1")},
        "the probability is '2/3/1', expe",
    ),
    "a fraction of thousands of digits": (
        {"tra": changed("2/3", f"{'2' * 5000}/{'3' * 5000}")},
        "m.tra: line 6: the probability is '22222222222222222222222222222",
    ),
    "a transition twice": (
        {"tra": changed("0 0 1 0.5", "0 0 0 0.5")},
        "m.tra: the transition from state 0, choice 0 to 0 is listed twice; 1 of 6 transitions is",
    ),
    "states out of thin air": (
        {"tra": "2000000000 1 1\n0 0 0 1\n"},
        "m.tra: the model has 2000000000 states and 1 transitions, expected one state at least",
    ),
    "states out of thin air, for Storm": ({"tra": "mdp\n0 0 2000000000 1\n"}, "2000000001 states"),
    "no states": ({"tra": "0 0 0\n"}, "m.tra: the model has 0 states and 0 transitions"),
    "transitions of no states": ({"tra": "0 1 1\n0 0 0 1\n"}, "has 0 states and 1 transitions"),
    # ---- .lab ----------------------------------------------------------------------------------
    "an empty label file": ({"lab": ""}, "m.lab: the file is empty, expected the names of labels"),
    "labels without names": (
        {"lab": "0: 0\n"},
        "m.lab: line 1: the declaration '0:' is not of the",
    ),
    "labels in no order": ({"lab": '1="init"\n0: 1\n'}, "m.lab: line 1: labels are not numbered 0"),
    "a label of an unknown state": (
        {"lab": LAB + "3: 2\n"},
        "m.lab: line 4: the state is '3', expected a whole number from 0 to 2",
    ),
    "an unknown label": (
        {"lab": LAB + "1: 3\n"},
        "m.lab: line 4: the label is '3', expected a whole number from 0 to 2",
    ),
    "a label that is a word": (
        {"lab": LAB + "1: init\n"},
        "m.lab: line 4: the label is 'init', exp",
    ),
    "a line without a colon": (
        {"lab": LAB + "1 2\n"},
        "line 4: the line begins with '1', expected",
    ),
    "a line without a state": ({"lab": LAB + ": 2\n"}, "m.lab: line 4: the state is '', expected"),
    "no initial state": (
        {"lab": '0="init"\n'},
        "m.tra: no state is marked as 'init', expected one to start in",
    ),
    "no label init": ({"lab": '0="start"\n0: 0\n'}, "m.tra: no state is marked as 'init'"),
    "two initial states": (
        {"lab": '0="init"\n0: 0\n2: 0\n'},
        "m.tra: 2 states (0, 2, …) are marked as 'init', expected one initial state",
    ),
    "a label that Storm would miss": (
        {"lab": "#DECLARATION\ninit\n#END\n0 init end\n"},
        "m.lab: line 4: the label 'end' is not declared",
    ),
    # ---- .srew and .trew -----------------------------------------------------------------------
    "an empty reward file": (
        {"srew": ""},
        "m.srew: the file is empty, expected the number of stat",
    ),
    "rewards of another model": (
        {"srew": "2 1\n0 1\n"},
        "m.srew: line 1: counts are [2, 1], expected [3, '…']",
    ),
    "a reward too few": (
        {"srew": "3 2\n0 1\n"},
        "m.srew: found 1 rewards, but the header says 2 (t",
    ),
    "a reward of an unknown state": (
        {"srew": "3 1\n3 1\n"},
        "m.srew: line 2: the state is '3', exp",
    ),
    "a reward twice": ({"srew": "3 2\n0 1\n0 1\n"}, "m.srew: line 3: a second line gives the same"),
    "a reward of NaN": (
        {"srew": "3 1\n0 nan\n"},
        "m.srew: line 2: the reward is 'nan', expected a",
    ),
    "a reward that is too large": (
        {"srew": "3 1\n0 1e999\n"},
        "m.srew: line 2: the reward is '1e99",
    ),
    "a reward without a state": (
        {"srew": "3 1\n0\n"},
        "m.srew: line 2 has 1 words, expected 2: sta",
    ),
    "rewards for other choices": (
        {"trew": "3 5 1\n0 0 1 2\n"},
        "m.trew: line 1: counts are [3, 5, 1], expected [3, 4, '…']",
    ),
    "a reward of no transition": (
        {"trew": "3 4 1\n0 0 2 2\n"},
        "m.trew: line 2: the transition of state '0' that has this reward is not in the .tra file",
    ),
    "a reward of no choice": (
        {"trew": "3 4 1\n0 7 1 2\n"},
        "m.trew: line 2: the transition of state",
    ),
    "a transition's reward twice": ({"trew": "3 4 2\n0 0 1 2\n0 0 1 2\n"}, "line 3: a second line"),
    "rewards that are too large together": (
        {"srew": "3 1\n0 1e308\n", "trew": "3 4 1\n0 0 1 1e308\n"},
        "m.tra: reward of state 0, action 'wait' → state 1 is inf, expected a finite number",
    ),
    # ---- .sta ----------------------------------------------------------------------------------
    "an empty state file": ({"sta": ""}, "m.sta: state 0 has no line, expected one for each state"),
    "a state without a line": ({"sta": lines(3, text=STA)}, "m.sta: state 1 has no line, expected"),
    "a state with two lines": (
        {"sta": STA + "0:(5)\n"},
        "m.sta: line 5: state 0 has a line already",
    ),
    "a line of an unknown state": (
        {"sta": STA + "3:(5)\n"},
        "m.sta: line 5 is '3:(5)', expected 'state:(values)' with a state from 0 to 2",
    ),
    "a line without a state's number": ({"sta": STA + "(5)\n"}, "m.sta: line 5 is '(5)', expected"),
    "two states with the same values": (
        {"sta": changed("2:(2)", "2:(1)", STA)},
        "m.tra: state label '(1)' is given twice, the second time at 2",
    ),
    "a label that is cut off": (
        {"sta": STA.replace("(1)", '(1) "wa\\"')},
        "m.sta: line 3 is '1:(1) ",
    ),
    "states in another encoding": ({"sta": b"(x)\n0:(\xff)"}, "m.sta: byte 7 is not valid UTF-8"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_refused_by_file_and_line(tmp_path, name):
    contents, words = REFUSED[name]
    with pytest.raises(InvalidModel) as refusal:
        read(tmp_path, **contents)
    assert words in str(refusal.value)
    assert str(refusal.value).startswith(str(tmp_path))
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


def test_rewards_in_files_with_numbers_are_chosen_by_number_or_name(tmp_path):
    path = write_files(tmp_path, **GOOD)
    assert not read_mdp(path, 0.9).reward.any()
    (tmp_path / "m1.srew").write_text("3 1\n0 1\n")
    assert read_mdp(path, 0.9).reward[0] == read_mdp(path, 0.9, reward="1").reward[0] == 1.0
    (tmp_path / "m2.trew").write_text('# Reward structure "cost"\n3 4 1\n0 0 1 2\n')
    assert read_mdp(path, 0.9, reward="1").reward.tolist()[:2] == [1.0, 1.0]
    assert sorted(read_mdp(path, 0.9, reward="cost").reward.tolist())[-2:] == [0.0, 2.0]
    with pytest.raises(InvalidModel, match=r"m\.tra: reward is None, expected .*: '1', 'cost'$"):
        read_mdp(path, 0.9)
    with pytest.raises(InvalidModel, match=r"m\.tra: reward is '2', expected .*: '1', 'cost'$"):
        read_mdp(path, 0.9, reward="2")
    (tmp_path / "m.srew").write_text("3 1\n1 5\n")  # the rewards of the model's own name come first
    assert read_mdp(path, 0.9).reward.max() == 5.0


def test_the_files_that_the_mistakes_are_made_from_are_good(tmp_path):
    assert read(tmp_path, srew=SREW, trew=TREW, sta=STA).num_states == 3


def test_a_label_file_must_be_there(tmp_path):
    with pytest.raises(FileFailure, match=r"m\.lab is missing; it says which state is the initial"):
        read_mdp(write_files(tmp_path, tra=TRA), 0.9)


@pytest.mark.parametrize("suffix", ["lab", "srew", "trew", "sta"])
def test_a_sibling_that_is_a_folder_is_refused(tmp_path, suffix):
    path = write_files(tmp_path, **GOOD)
    path.with_suffix(f".{suffix}").unlink(missing_ok=True)
    path.with_suffix(f".{suffix}").mkdir()
    with pytest.raises(FileFailure, match=rf"m\.{suffix} cannot be read: Is a directory"):
        read_mdp(path, 0.9)


@pytest.mark.parametrize("suffix", ["tra", "lab", "srew", "trew", "sta"])
def test_a_file_that_is_cut_off_anywhere_is_refused_or_lacks_nothing(tmp_path, suffix):
    contents = {**GOOD, "srew": SREW, "trew": TREW, "sta": STA}
    whole = read(tmp_path, **contents)
    text = contents[suffix]
    refused = 0
    for size in range(len(text)):
        try:
            found = read(tmp_path, **{**contents, suffix: text[:size]})
        except SurestepError:
            refused += 1
        else:
            # Nobody says how many labels there are, but without the first one there is no start.
            assert found == whole or (suffix == "lab" and found.num_states == whole.num_states)
    assert refused >= {"tra": 76, "lab": 38, "srew": 6, "trew": 12, "sta": 20}[suffix]
