"""Resource Gathering: the published arrays bit for bit, and its words played out state by state."""

import hashlib
import io
import time
from collections import deque

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surestep import Policy, optimal, performance
from surestep.environments import make
from surestep.environments.resource_gathering import PUBLISHED_SLOTS

PLAIN = make("resource-gathering")
REWARDED = (
    "(45,3)(70,1)(72,0)(96,3)(100,1)(122,0)(181,3)(224,3)(236,1)(238,0)(279,3)(291,1)(293,0)(298,3)"
    "(299,1)(336,1)(338,0)(343,3)(344,1)(346,0)(365,3)(366,1)(368,0)(374,0)"
)

# Which moves enter what, as the published model lists them: (position, action).
ENTER_HOME = {((2, 1), "right"), ((4, 1), "left"), ((3, 2), "down")}
ENTER_GOLD = {((2, 5), "right"), ((4, 5), "left"), ((3, 4), "top")}
ENTER_GEM = {((4, 4), "right"), ((5, 3), "top"), ((5, 5), "down")}
ENTER_ENEMY = {
    *{((3, 5), "right"), ((2, 4), "right"), ((5, 5), "left"), ((4, 4), "left")},
    *{((3, 5), "down"), ((3, 3), "top"), ((4, 4), "top")},
}
MOVES = {"right": (1, 0), "left": (-1, 0), "top": (0, 1), "down": (0, -1)}


def played_out(gold_to_collect, gem_to_collect):
    """States by number, and for each (action, [(chance, next state)], reward) in order."""
    start = (False, False, False, 3, 1, gold_to_collect, gem_to_collect)
    number, choices, queue = {start: 0}, [], deque([start])
    while queue:
        gold, gem, _, x, y, gold_left, gem_left = queue.popleft()
        row = []
        for action, (right, up) in MOVES.items():
            if not (1 <= x + right <= 5 and 1 <= y + up <= 5):
                continue
            move = ((x, y), action)
            home = move in ENTER_HOME
            after = (
                (gold and not home) or move in ENTER_GOLD,
                (gem and not home) or move in ENTER_GEM,
                False,
                x + right,
                y + up,
                max(0, gold_left - 1) if home and gold else gold_left,
                max(0, gem_left - 1) if home and gem else gem_left,
            )
            branches = [(1.0, after)]
            if move in ENTER_ENEMY:
                branches = [(0.1, (False, False, True, 3, 1, gold_left, gem_left)), (0.9, after)]
            for _, state in branches:
                if state not in number:
                    number[state] = len(number)
                    queue.append(state)
            row.append(
                (action, [(p, number[s]) for p, s in branches], 1.0 if home and gold else 0.0)
            )
        choices.append(row)
    return number, choices


def test_the_dynamics_are_the_published_file_byte_for_byte():
    file = io.BytesIO()
    np.lib.format.write_array(file, PLAIN.mdp.dense().P, version=(1, 0))
    content = file.getvalue()
    assert len(content) == 4_524_160
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content)
    assert blob.hexdigest() == "2587517d53b3ff907039a175a62889c553d950e4"


def test_rewards_are_those_published_and_a_copy_earns_nothing():
    rewarded = PLAIN.mdp.pairs.dense(PLAIN.mdp.expected_reward)
    found = "".join(f"({s},{a})" for s, a in np.argwhere(rewarded == 1))
    assert found == REWARDED
    assert np.count_nonzero(rewarded) == 24
    P = PLAIN.mdp.dense().P
    assert np.array_equal(P[72, 3], P[72, 0])  # it delivers the gold too


def test_the_optimal_slots_are_those_published():
    digest = hashlib.sha1(PUBLISHED_SLOTS.encode()).hexdigest()
    assert digest == "18fd10218c2aa146f4e315a2e4756cb42d1a7f74"
    greedy = Policy.deterministic(PLAIN.mdp, list(map(int, PUBLISHED_SLOTS)))
    assert performance(PLAIN.mdp, greedy) == pytest.approx(21.99378540218195, abs=1e-9)
    plan = optimal(PLAIN.mdp)
    assert plan.value.max() == pytest.approx(22.8838, abs=5e-5)


@pytest.mark.parametrize(("gold", "gem"), [(0, 0), (1, 1), (2, 1), (1, 2), (3, 0), (0, 3)])
def test_the_ragged_model_is_what_playing_gives(gold, gem):
    number, choices = played_out(gold, gem)
    mdp = make("resource-gathering/ragged", gold=gold, gem=gem).mdp
    assert mdp.num_states == len(number) == 94 * (gold + 1) * (gem + 1)
    names, actions, rewards, rows = mdp.pairs.action_labels, [], [], []
    for row in choices:
        actions.append([action for action, _, _ in row])
        rewards += [reward for _, _, reward in row]
        rows += [branches for _, branches, _ in row]
    offsets = mdp.pairs.offsets
    for state, expected in enumerate(actions):
        run = mdp.pairs.action[offsets[state] : offsets[state + 1]]
        assert [names[a] for a in run] == expected
    assert mdp.expected_reward.tolist() == rewards
    found = [
        list(zip(mdp.probability[a:b].tolist(), mdp.successor[a:b].tolist(), strict=True))
        for a, b in zip(mdp.offsets[:-1], mdp.offsets[1:], strict=True)
    ]
    assert found == rows
    if (gold, gem) == (1, 1):
        assert (mdp.num_states, mdp.num_pairs, mdp.num_transitions) == (376, 1208, 1304)


def test_slots_are_the_actions_in_order_and_then_copies_of_the_first():
    ragged = make("resource-gathering/ragged").mdp
    lengths = np.diff(ragged.pairs.offsets)
    assert np.bincount(lengths).tolist() == [0, 0, 64, 168, 144]
    padded, own = PLAIN.mdp.dense(), ragged.dense()
    for state in range(376):
        actions = np.flatnonzero(own.enabled[state])
        for slot in range(4):
            action = actions[slot] if slot < actions.size else actions[0]
            assert np.array_equal(padded.P[state, slot], own.P[state, action])
    successors = np.diff(PLAIN.mdp.offsets)
    assert np.bincount(successors).tolist() == [0, 1368, 136]


def test_behavior_policies_of_the_prose_and_of_the_published_code():
    prose = make("resource-gathering/near-optimal")
    assert prose.mdp == PLAIN.mdp
    slots = np.array(list(PUBLISHED_SLOTS), int)
    for benchmark, best, other, atol in (
        (prose, 0.99997, 1e-5, 1e-15),
        (PLAIN, 0.47535691, 0.17488103, 5e-9),
    ):
        table = benchmark.behavior.dense()
        assert_allclose(table[np.arange(376), slots], best, rtol=0, atol=atol)
        assert_allclose(np.sort(table, axis=1)[:, :3], other, rtol=0, atol=atol)
        assert benchmark.collector == benchmark.behavior
    assert performance(PLAIN.mdp, Policy.uniform(PLAIN.mdp)) == pytest.approx(0.74815, abs=5e-6)


def test_what_is_left_to_collect_changes_no_value():
    larger = make("resource-gathering/near-optimal", gold=3, gem=2)
    assert larger.num_states == 94 * 4 * 3
    optimum = larger.optimal_performance()
    assert optimum == pytest.approx(21.99378540218195, abs=1e-9)
    assert larger.performance_of_behavior() == pytest.approx(optimum, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("gold", "gem"), [(102, 102), (10637, 0)])
def test_a_million_states_are_built_in_seconds(gold, gem):
    start = time.perf_counter()
    benchmark = make("resource-gathering", gold=gold, gem=gem)
    assert time.perf_counter() - start < 30
    assert benchmark.num_states == 94 * (gold + 1) * (gem + 1) > 990_000
