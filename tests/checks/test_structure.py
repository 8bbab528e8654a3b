"""The test of a structure: its counts by loops, its e-values in fractions, alarms and power.

A true structure fails with a chance of at most α. Tests of that draw with fixed seeds and allow as
many failures as a test that fails exactly that often would exceed once in 10⁶ tests.
"""

import math
import runpy
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from surestep.certificates import NodeStitched
from surestep.certificates.node_law import node_draws
from surestep.checks import blind_share, check_structure
from surestep.checks.structure import LEVEL, compared, could_miss, log_e_value, noticed_change
from surestep.environments.sysadmin import STRUCTURE, SysAdmin
from surestep.kernels.nodes import NodeStacks
from surestep.model.factored import ColumnRules, FactoredLog, FactoredProblem
from surestep.model.structure import Structure

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "structure.py"
RING = runpy.run_path(str(SCRIPT))


def most_failures(logs):
    return int(stats.binom.isf(1e-6, logs, LEVEL))


def predictive(counts):
    """Returns KT as a product of predictive chances, in any order of the draws."""
    chance, seen = Fraction(1), [0] * len(counts)
    for value, number in enumerate(counts):
        for _ in range(number):
            chance *= (seen[value] + Fraction(1, 2)) / (sum(seen) + Fraction(len(counts), 2))
            seen[value] += 1
    return chance


@given(
    st.integers(2, 4).flatmap(
        lambda size: st.tuples(*2 * [st.lists(st.integers(0, 6), min_size=size, max_size=size)])
    )
)
def test_e_values_are_predictive_chances_over_the_best_ones(pair):
    there, others = pair
    total = [a + b for a, b in zip(there, others, strict=True)]
    best = math.prod(Fraction(x, sum(total)) ** x for x in total if x)
    exact = predictive(there) * predictive(others) / best
    found = log_e_value(np.array(there, float), np.array(total, float))
    assert found == pytest.approx(math.log(exact), abs=1e-10)


def row_of_three():
    """Returns a structure with a row of three columns, one by itself, an end and a late column."""
    names = ["g_0", "g_1", "g_2"]
    table = {
        "early": {"parents": [], "action": "none"},
        "g_*": {
            "parents": ["@left"],
            "action": {"hit": "hit_@"},
            "edge": "lo",
            "known": [{"action": "hit", "is": "hi"}],
        },
        "end": {"parents": ["next.g_1"], "action": "none"},
        "late": {"parents": ["late"], "action": "all"},
    }
    columns = dict.fromkeys(names, ("lo", "hi")) | {"early": ("a", "b", "c"), "late": ("x", "y")}
    return Structure.read(columns, ["hit_0", "hit_1", "hit_2", "wait", "look"], table)


def random_log(structure, steps, seed, unseen):
    """Returns rows by chance, some with next columns that nobody saw."""
    rng = np.random.default_rng(seed)
    sizes = [len(values) for values in structure.values[: len(structure.columns)]]
    state = rng.integers(sizes, size=(steps, len(sizes)))
    following = rng.integers(sizes, size=(steps, len(sizes)))
    action = rng.integers(structure.num_actions, size=steps)
    for i in range(3):
        following[action == i, i] = 1
    ended = rng.random(steps) < 0.1
    following[ended & (rng.random(steps) < 0.5)] = -1
    late = np.arange(steps) > steps // 2
    following[(rng.random(following.shape) < unseen) & late[:, np.newaxis]] = -1
    state[rng.random(state.shape) < unseen / 10] = -1
    return FactoredLog(
        structure=structure,
        state=state,
        action=action,
        next_state=following,
        ended=ended,
        offsets=np.arange(steps + 1),
    )


def counts_by_loops(log):
    """Returns counts by (node, variable, value) of a log of `row_of_three`, draw by draw."""
    structure = log.structure
    names, order = [*structure.columns], ["early", "g_0", "g_1", "g_2", "end", "late"]
    offsets = {"@": 0, "@right": 1, "@left": 2}
    found, stopped = defaultdict(lambda: defaultdict(int)), set()
    for t in range(log.num_steps):
        now = dict(zip(names, log.state[t].tolist(), strict=True))
        after = dict(zip(names, log.next_state[t].tolist(), strict=True))
        lost = not log.ended[t] and all(value < 0 for value in after.values())
        after["end"] = -1 if lost else int(log.ended[t])
        action = structure.actions[log.action[t]]
        for place, name in enumerate(order):
            if name == "late" and log.ended[t]:
                continue
            member = int(name[2]) if name[:2] == "g_" else None
            part = ""
            if member is not None:
                if action == f"hit_{member}":
                    continue
                parent = now[f"g_{member - 1}"] if member else 0
                word, part, labels = "g_*: @left ", ", action other", ("lo", "hi")
            elif name == "early":
                parent, word, labels = 0, "early: ", ("always",)
            elif name == "end":
                parent, word, labels = after["g_1"], "end: next.g_1 ", ("lo", "hi")
            else:
                parent, word, labels = now["late"], "late: late ", ("x", "y")
                part = f", action {action}"
            if parent < 0:
                stopped |= {word + label + part for label in labels}
                continue
            node = word + labels[parent] + part
            if after[name] < 0:
                stopped.add(node)
            if node in stopped:
                continue
            seen = {"rows": 0 if t < 1024 else int(math.log2(t)) - 9}
            if member is None:
                seen |= now
                seen |= {f"next.{one}": after[one] for one in order[:place]}
                seen["action"] = log.action[t]
            else:
                seen |= {one: now[one] for one in ("early", "late")}
                seen["next.early"] = after["early"]
                seen["which one"] = member
                for word, offset in offsets.items():
                    other = (member + offset) % 3
                    seen[word] = now[f"g_{other}"]
                    if other < member:
                        seen["next." + word] = after[f"g_{other}"]
                hit = action.startswith("hit")
                spelled = f"hit_{(int(action[4:]) - member) % 3}" if hit else action
                seen["action, seen from g_0"] = spelled
            for variable, value in seen.items():
                found[node, variable, value][after[name]] += 1
    return found


@pytest.mark.parametrize("unseen", [0.0, 0.003])
def test_counts_are_those_of_a_loop_over_all_draws(unseen):
    structure = row_of_three()
    log = random_log(structure, 3000, 1, unseen)
    expected = counts_by_loops(log)
    compared_cells = 0
    for unit in compared(log):
        for variable, table in unit.tables:
            for k, v, x in np.argwhere(table > 0):
                spelled = v - 1
                if variable.name.startswith("action, seen"):
                    spelled = variable.values[v - 1]
                cell = expected[structure.node_names[unit.nodes[k]], variable.name, spelled]
                assert cell.pop(x) == table[k, v, x], (variable.name, v - 1)
                compared_cells += 1
    assert not any(expected.values())
    assert compared_cells > 500


def test_the_number_of_tests_is_that_of_the_structure():
    structure = row_of_three()
    few, many = (check_structure(random_log(structure, n, 1, 0.0)) for n in (20, 500))
    assert few.tests == many.tests
    # Of two values one is compared. `early`: four columns with two values, itself with three, five
    # actions, 16 places in the log.
    early = 4 + 3 + 5 + 16
    # Two nodes: early, late, three places; next early and two places; actions, members.
    group = 2 * (3 + 1 + 3 + 3 + 2 + 5 + 3 + 16)
    end = 2 * (early + 3 + 3)
    assert few.tests == early + group + end + 10 * (early + 3 + 3 + 1)


def test_large_groups_look_at_their_neighbours_only():
    world = SysAdmin(60)
    log = world.sample(world.first_failed(0.3), 2, rng=1)
    (unit,) = compared(log)
    variables = [variable for variable, _ in unit.tables]
    names = {variable.name for variable in variables}
    assert {"@left", "@-8", "@+8", "next.@-8"} <= names
    assert not {"@-9", "@+9"} & names
    (actions,) = (one for one in variables if one.name.startswith("action"))
    assert len(actions.values) == 1 + 2 * 8 + 1 + 1  # itself, near ones, the others, nothing


def watched(logs, steps, seed):
    """Returns logs of a logger who learns, with ends that are decided by what nobody then saw.

    The column x is bad with a chance of 0.4, and then the step ends, most often while y is bad.
    """
    structure = Structure.read(
        {"x": ["good", "bad"], "y": ["good", "bad"]},
        ["wait", "push"],
        {
            "x": {"parents": [], "action": "none"},
            "y": {"parents": ["y"], "action": "all"},
            "end": {"parents": ["next.x", "y"], "action": "none"},
        },
    )
    rng = np.random.default_rng(seed)
    for _ in range(logs):
        y, bad = 0, [0, 0]
        state, action, following, ended, offsets = [], [], [], [], [0]
        for t in range(steps):
            act = int(rng.random() < 0.5) if t < steps // 4 else int(bad[1] < bad[0])
            nx, ny = int(rng.random() < 0.4), int(rng.random() < (0.3, 0.5)[y])
            bad[act] += ny
            over = bool(nx) and rng.random() < (0.02, 0.9)[y]
            state.append([0 if not offsets[-1] < t else following[-1][0], y])
            action.append(act)
            ended.append(over)
            following.append([-1, -1] if over else [nx, ny])
            y = 0 if over else ny
            if over:
                offsets.append(t + 1)
        yield FactoredLog(
            structure=structure,
            state=np.maximum(state, 0),
            action=action,
            next_state=following,
            ended=ended,
            offsets=offsets if offsets[-1] == steps else [*offsets, steps],
        )


def without_unseen(log):
    """Returns stacks from which entries that nobody saw are left out, which is not valid."""
    stacks, when = node_draws(log)
    seen = stacks.entry >= 0
    lengths = [
        int(seen[a:b].sum()) for a, b in zip(stacks.offsets, stacks.offsets[1:], strict=False)
    ]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return NodeStacks(offsets, offsets[1:], stacks.entry[seen], stacks.starts), when[seen]


@pytest.mark.thorough
def test_what_nobody_saw_makes_no_false_alarms_where_leaving_it_out_does(monkeypatch):
    logs = [*watched(60, 400, seed=1)]
    assert sum(check_structure(log).failed for log in logs) <= most_failures(60)
    # Doctests of the module make a second one: the names of this function are those that count.
    monkeypatch.setitem(check_structure.__globals__, "node_draws", without_unseen)
    assert sum(check_structure(log).failed for log in logs) > most_failures(60)


def test_draws_after_the_first_one_that_nobody_saw_do_not_count():
    structure = Structure.read(
        {"x": ["a", "b"], "z": ["a", "b"]},
        ["go"],
        {"x": {"parents": []}, "z": {"parents": []}},
    )
    z = np.arange(2000) % 2
    following = np.column_stack([z, np.full(2000, -1)])
    log = FactoredLog(
        structure=structure,
        state=np.column_stack([z, z]),
        action=np.zeros(2000, int),
        next_state=following,
        ended=np.zeros(2000, bool),
        offsets=[0, 2000],
    )
    assert check_structure(log).failed
    early = following.copy()
    early[10, 0] = -1
    kept = check_structure(replace(log, next_state=early))
    assert not kept.failed
    assert kept.worst.rows + kept.worst.others == 10


@pytest.mark.one_quick
@pytest.mark.parametrize("kind", [*RING["KINDS"]])
def test_wrong_structures_are_noticed(kind):
    effect = {"nothing": 0.0, "parent": 0.05}.get(kind, 0.04)
    found = [check_structure(RING["logged"](kind, effect, 0.1, 300, seed)) for seed in range(2)]
    assert all(one.failed == (kind != "nothing") for one in found)
    if kind != "nothing":
        worst = found[0].worst
        assert worst.node == "machine_*: @ up, action other"
        variable, value = {
            "parent": ("weather", "good"),
            "members": ("which one", "machine_0"),
            "together": ("next.@left", "down"),
            "time": ("rows", "4097 to 8192"),
            "reset": ("action, seen from machine_0", "reset_5"),
        }[kind]
        assert worst.variable == variable
        assert worst.value == value or kind == "time"
        assert abs(worst.chance - worst.elsewhere) == pytest.approx(effect, abs=0.02)


@pytest.mark.slow
def test_a_true_structure_fails_seldom():
    logs = 1000
    found = [check_structure(RING["logged"]("nothing", 0, 0.5, 50, seed)) for seed in range(logs)]
    assert sum(one.failed for one in found) <= most_failures(logs)


@pytest.mark.parametrize("rows", [600, 20_000])
@pytest.mark.parametrize("chance", [0.05, 0.35, 0.5])
def test_the_change_that_is_noticed_is_noticed_about_four_times_of_five(chance, rows):
    bar, draws = math.log(300 / LEVEL), 4000
    change = noticed_change(np.array([rows * (1 - chance), rows * chance]), bar)
    rng = np.random.default_rng(1)
    there = rng.binomial(250, chance + change, draws)
    others = rng.binomial(rows - 250, chance, draws)
    counts = np.stack([250 - there, there], axis=1).astype(float)
    total = counts + np.stack([rows - 250 - others, others], axis=1)
    assert 0.7 < np.mean(log_e_value(counts, total) >= bar) < 0.9


def test_nothing_is_noticed_in_few_rows():
    assert noticed_change(np.array([3.0, 2.0]), math.log(300 / LEVEL)) is None


def lamps(log_actions):
    """Returns a log of two lamps, in which only some actions are taken, and its structure."""
    structure = Structure.read(
        {"lamp": ["off", "on"], "door": ["shut", "open"]},
        ["wait", "switch"],
        {"lamp": {"parents": ["lamp"], "action": "none"}, "door": {"parents": []}},
    )
    rng = np.random.default_rng(1)
    following = rng.integers(2, size=(8000, 2))
    return FactoredLog(
        structure=structure,
        state=rng.integers(2, size=(8000, 2)),
        action=rng.choice(log_actions, 8000),
        next_state=following,
        ended=np.zeros(8000, bool),
        offsets=np.arange(8001),
    )


def test_the_blind_share_is_that_of_steps_to_where_the_log_has_not_been():
    everywhere, waits = lamps([0, 1]), lamps([0])
    switch = ColumnRules.of(everywhere.structure, [], "switch")
    assert blind_share(everywhere, switch, 0.9) == 0
    assert blind_share(waits, switch, 0.9) == pytest.approx(1)
    assert blind_share(waits, ColumnRules.of(waits.structure, [], "wait"), 0.9) == 0
    half = ColumnRules.of(waits.structure, [({"door": "open"}, "switch")], "wait")
    found = blind_share(waits, half, 0.9, (0, 0))
    # It switches in half of the steps after the first one; rollouts end at a weight of 0.05.
    weights = 0.9 ** np.arange(29)
    assert found == pytest.approx(0.5 * (1 - 1 / weights.sum()), abs=0.02)
    whole = check_structure(waits, half, 0.9, (0, 0))
    assert whole.blind == found
    assert whole.is_blind
    assert check_structure(waits).blind is None
    assert not check_structure(waits).is_blind


def test_honest_logs_are_not_called_blind():
    world = SysAdmin(8)
    log = world.sample(world.first_failed(0.3), 300, rng=1)
    for policy in (world.fewest_failed_neighbours(), world.first_failed(0.3)):
        assert not check_structure(log, policy, 0.95, (1,) * 8).is_blind


def pushed_in_bad_weather(seed, effect, episodes, share):
    """A log of episodes of 40 steps; weather is left out, and nothing is gained by more pushes.

    Pushing in good weather lets the machine work with a chance that is larger by `effect`. Weather
    is bad in half of the steps, and the log pushes in a `share` of these.
    """
    columns = {"weather": ("bad", "good"), "machine": ("failed", "works")}
    table = {
        "weather": {"parents": [], "action": "none"},
        "machine": {"parents": [], "learnt": True},
        "reward": {"terms": [{"of": "machine", "works": 1.0}]},
    }
    rng = np.random.default_rng(seed)
    state = rng.integers(2, size=(episodes, 41, 2))
    state[:, 0] = 1
    good = state[:, :-1, 0]
    action = np.where(good == 1, 1, rng.random(good.shape) < share).astype(np.int64)
    chance = 0.5 + effect * action * good
    state[:, 1:, 1] = rng.random(chance.shape) < chance
    return FactoredLog(
        structure=Structure.read(columns, ["rest", "push"], table),
        state=state[:, :-1].reshape(-1, 2),
        action=action.ravel(),
        next_state=state[:, 1:].reshape(-1, 2),
        ended=np.zeros(action.size, np.bool_),
        offsets=np.arange(episodes + 1) * 40,
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("effect", "episodes", "share", "pushes"),
    [(0.12, 300, 0.05, (250, 350)), (0.06, 3500, 0.016, (1000, 1250))],
)
def test_what_the_test_could_have_missed_is_more_than_a_false_gain(effect, episodes, share, pushes):
    """The new policy always pushes, so that its true gain is 0."""
    log = pushed_in_bad_weather(1, effect, episodes, share)
    good = ({"weather": "good"}, "push")
    current = ColumnRules.of(log.structure, [good], "rest", chance=[0.0, 2 * share])
    new = ColumnRules.of(log.structure, [], "push")
    problem = FactoredProblem(log=log, behavior=current, discount=0.95)
    tested = check_structure(log, new, 0.95, behavior=current)
    assert (tested.failed, tested.is_blind) == (False, False)
    lower = NodeStitched().certify(problem, new).lower
    assert lower > 0.2
    bad = (log.action == 1) & (log.state[:, 0] == 0)
    drawn = np.bincount(log.next_state[log.action == 1, 1]).astype(float)
    noticed = noticed_change(drawn, math.log(tested.tests / LEVEL), bad.sum())
    # From the next step on, each one earns less by what was missed, where half of pushes are bad.
    expected = 19 * noticed * (0.5 - bad.sum() / drawn.sum())
    missed = could_miss(problem, new)
    assert pushes[0] < bad.sum() < pushes[1]
    assert missed == pytest.approx(expected, rel=0.1)
    assert missed > lower


@pytest.mark.thorough
def test_less_is_missed_in_a_long_log_and_nothing_where_nothing_was_learnt():
    world = SysAdmin(4)
    table = {**STRUCTURE, "machine_*": {**STRUCTURE["machine_*"], "learnt": True}}
    better, missed = world.fewest_failed_neighbours(), []
    for episodes in (100, 1000):
        log = world.sample(world.first_failed(0.3), episodes, rng=1)
        assert could_miss(world.problem(log), better) == 0
        learnt = replace(log, structure=world.structure(table))
        missed.append(could_miss(world.problem(learnt), better))
    assert 0 < 2 * missed[1] < missed[0] < 8.9  # the true gain
