"""Builds Resource Gathering: carry gold and gems home past enemies (Barrett and Narayanan 2008).

This is the version of the PRISM model: a 5 × 5 grid with home at (3, 1), gold at (3, 5), a gem at
(5, 4) and enemies at (3, 4) and (4, 5). Entering a resource picks it up; entering home delivers it
and lowers the number left to collect. Entering an enemy's cell leads to an attack with probability
0.1, which sends the gatherer home with nothing. As in the published arrays, only delivered gold
pays, 1 each time, also once enough is collected; only the end of the recording ends an episode.
"""

from dataclasses import replace
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep.environments.benchmark import MOST_STATES, Benchmark, check_size, mdp_from_rows
from surestep.model import FiniteMDP, Pairs, Policy
from surestep.planning import optimal
from surestep.planning.ends import breadth_first

ACTIONS = ("right", "left", "top", "down")
SLOTS = ("slot 0", "slot 1", "slot 2", "slot 3")
MOVES = ((1, 0), (-1, 0), (0, 1), (0, -1))
SIDE = 5
HOME = (3, 1)
GOLD = (3, 5)
GEM = (5, 4)
ENEMIES = ((3, 4), (4, 5))
ATTACK = 0.1
DISCOUNT = 0.995
HORIZON = 60
ROUND_TRIP = 8  # steps from home to the gold and back: gold is delivered no more often
EXPLORING = 1e-5  # the paper's probability of each action that is not optimal
PLACES = 8 * SIDE**2  # with gold or not, with a gem or not, after an attack or not
Pieces = Annotated[int, Meta(ge=0, le=MOST_STATES)]
REACHABLE = 94  # the reachable ones of these places, for any number left to collect

# The optimal actions that were published, as slots: ties were broken by rounding.
PUBLISHED_SLOTS = (
    "2222111221102221202201002231000013033211003033222203100303200222321100100122002033210001102202"
    "0332221110222003201122110220012201022201002230110220202210000130330102220100223211003033110221"
    "0100130332222031001000100223211001203002223211001001000013033222203100100002033100021110303310"
    "2223221001000200312222031001000020331000000002223221001000200310000203310000000020031000000000"
)


def resource_gathering(gold: Pieces = 1, gem: Pieces = 1) -> Benchmark:
    """Builds Resource Gathering as in the paper's figures: four slots a state, π_b softmaxed twice.

    The published arrays number the actions of a state 0, 1, … in the order right, left, top, down
    and fill up with copies of slot 0, so that a slot means different things in different states.
    π_b is the paper's policy (`resource-gathering/near-optimal`) put through a softmax, as the
    published code does: 0.475 for an optimal action and 0.175 for the others. The figures can only
    come from this policy, since the paper's own policy leaves nothing to improve. `gold` and `gem`
    are the numbers to collect, which make 94 · (gold + 1) · (gem + 1) states.
    """
    prose = resource_gathering_near_optimal(gold, gem)
    behavior = Policy.softmax(prose.mdp, prose.behavior.probability)
    return replace(prose, name="resource-gathering", behavior=behavior, collector=behavior)


def resource_gathering_near_optimal(gold: Pieces = 1, gem: Pieces = 1) -> Benchmark:
    """Builds Resource Gathering with the paper's own policy, on the published arrays.

    π_b takes every action that is not optimal with probability 10⁻⁵. It earns 99.994 % of the
    optimum and sees little but one way, so there is nothing to improve, and no figure can show it.
    """
    world = gathering_world(gold, gem)
    mdp = padded_mdp(world)
    return on_usual_terms(
        "resource-gathering/near-optimal", mdp, near_optimal(mdp, best_slots(world, gold, gem))
    )


def resource_gathering_ragged(gold: Pieces = 1, gem: Pieces = 1) -> Benchmark:
    """Builds Resource Gathering with the model's own actions: moves that stay in the grid, by name.

    π_b is made as in `resource-gathering`, over the actions that exist. Not in the paper.
    """
    world = gathering_world(gold, gem)
    mdp = mdp_from_rows(
        Pairs.from_enabled(world.enabled, action_labels=ACTIONS),
        world.successor[world.enabled],
        world.probability[world.enabled],
        world.delivers[world.enabled][:, np.newaxis],
        DISCOUNT,
    )
    behavior = Policy.softmax(mdp, near_optimal(mdp, best_slots(world, gold, gem)).probability)
    return on_usual_terms("resource-gathering/ragged", mdp, behavior)


def on_usual_terms(name: str, mdp: FiniteMDP, behavior: Policy) -> Benchmark:
    """Returns the benchmark with the horizon, rewards and bounds that all variants share."""
    return Benchmark(
        name=name,
        mdp=mdp,
        behavior=behavior,
        horizon=HORIZON,
        rewards="known",
        value_bounds=(0.0, 1 / (1 - DISCOUNT**ROUND_TRIP)),  # gold at once, then every round trip
    )


# ---- the model --------------------------------------------------------------------------------


class GatheringWorld(NamedTuple):
    """The reachable states, in their published order, and the effects of moves there."""

    place: arrays.IntArray  # [S] the cell, the load and the attack: all but the number left
    enabled: arrays.BoolArray  # [S, A] the move stays in the grid
    successor: arrays.IndexArray  # [S, A, 2] after an attack, and after the move
    probability: arrays.FloatArray  # [S, A, 2]
    delivers: arrays.BoolArray  # [S, A] the move brings gold home


def gathering_world(gold: int, gem: int) -> GatheringWorld:
    """Returns the world with `gold` and `gem` to collect, numbered breadth-first from the start.

    Actions are taken in the order right, left, top, down, and an attack before the move. A state is
    the numbers left to collect, and a place: the load, a mark after an attack, and a cell.
    """
    check_size(f"gold {gold} and gem {gem}", REACHABLE * (gold + 1) * (gem + 1))
    shape = (gold + 1, gem + 1, 2, 2, 2, SIDE, SIDE)
    states = np.indices(shape, np.int32).reshape(len(shape), -1, 1)
    gold_left, gem_left, with_gold, with_gem, _, row, column = states
    right, up = np.array(MOVES).T
    x = column + right
    y = row + up
    enabled = (x >= 0) & (x < SIDE) & (y >= 0) & (y < SIDE)

    def enters(cell: tuple[int, int]) -> arrays.BoolArray:
        return np.asarray((x + 1 == cell[0]) & (y + 1 == cell[1]))

    home = enters(HOME)
    enemy = enters(ENEMIES[0]) | enters(ENEMIES[1])
    delivers = (with_gold & home) == 1
    moved = (
        np.maximum(gold_left - delivers, 0),
        np.maximum(gem_left - (with_gem & home), 0),
        (with_gold & ~home) | enters(GOLD),
        (with_gem & ~home) | enters(GEM),
        0,
        y,
        x,
    )
    attacked = (gold_left, gem_left, 0, 0, 1, HOME[1] - 1, HOME[0] - 1)
    branches = np.broadcast_arrays(
        np.ravel_multi_index(attacked, shape),
        np.ravel_multi_index(moved, shape, mode="clip"),  # right for enabled moves
    )
    target = np.stack(branches, axis=-1, dtype=np.int32)  # [state, action, branch]

    ways = np.stack([enabled & enemy, enabled], axis=-1)
    offsets = arrays.offsets_of(np.count_nonzero(ways, axis=(1, 2)))
    start = np.ravel_multi_index((gold, gem, 0, 0, 0, HOME[1] - 1, HOME[0] - 1), shape)
    order, _ = breadth_first(offsets, target[ways], int(start))
    number = np.zeros(len(target), np.int32)
    number[order] = np.arange(order.size)
    chances = np.where(enemy[order, :, np.newaxis], [ATTACK, 1 - ATTACK], [0.0, 1.0])
    return GatheringWorld(
        order % PLACES,
        enabled[order],
        number[target[order]],
        chances,
        delivers[order],
    )


def padded_mdp(world: GatheringWorld) -> FiniteMDP:
    """Returns the model of four slots a state: its actions in order, then copies of the first.

    As in the published arrays, a copy earns nothing, even if the first action delivers gold.
    """
    in_order = np.argsort(~world.enabled, axis=1, kind="stable")  # enabled actions first
    copy = np.arange(len(MOVES)) >= np.count_nonzero(world.enabled, axis=1)[:, np.newaxis]
    state = np.repeat(np.arange(len(copy)), len(MOVES))
    action = np.where(copy, in_order[:, :1], in_order).ravel()
    reward = world.delivers[state, action] & ~copy.ravel()
    return mdp_from_rows(
        Pairs.full(len(copy), len(MOVES), action_labels=SLOTS),
        world.successor[state, action],
        world.probability[state, action],
        reward[:, np.newaxis],
        DISCOUNT,
    )


# ---- the policies -----------------------------------------------------------------------------


def near_optimal(mdp: FiniteMDP, best: arrays.IntArray) -> Policy:
    """Returns the policy that takes slot `best` [S], and every other slot with probability 10⁻⁵."""
    probability = np.full(mdp.num_pairs, EXPLORING)
    offsets = mdp.pairs.offsets
    probability[offsets[:-1] + best] = 1 - (arrays.run_lengths(offsets) - 1) * EXPLORING
    return Policy(mdp.pairs, probability)


def best_slots(world: GatheringWorld, gold: int, gem: int) -> arrays.IntArray:
    """Returns the slot [S] of an optimal action: as published, or else the lowest.

    The numbers left to collect change nothing, so the world with nothing left gives all actions.
    """
    if (gold, gem) == (1, 1):
        return np.array(list(PUBLISHED_SLOTS), dtype=np.int64)
    least = gathering_world(0, 0)
    chosen = optimal(padded_mdp(least)).policy.dense().argmax(axis=1)
    slot_of_place = np.zeros(PLACES, np.int64)
    slot_of_place[least.place] = chosen
    return slot_of_place[world.place]
