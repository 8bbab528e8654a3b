"""Builds partially observed benchmarks whose logs show the last observations and actions.

They are check environments of Simão, Suilen and Jansen (AAAI 2023), with the numbers of their
package `pogym`: episodes begin with an observation. A state of the log
is the present observation and the last `memory` observations and actions before it; fewer at the
beginning. The values of its policies are known exactly, from the hidden state with what is
remembered.

*Tiger.* A tiger is behind one of two doors. To listen costs 1, and is right in 85 %; its door pays
−100, the other door 10 (Cassandra, Kaelbling and Littman 1994; there an episode goes on after a
door).

*Voicemail.* A caller wants a message saved or deleted. To ask costs 1, and the answer is often
misheard; to save or to delete ends the episode (after Williams and Young 2007).

*CheeseMaze.* A mouse in a maze of eleven cells sees only the walls around it; to find the cheese
pays 1 and ends the episode (McCallum 1993). Cells, and which walls look alike:

    0 1 2 3 4      a b c b d
    5   6   7      e   e   e
    8  10   9      f   *   f

π_b depends on the present observation only: it is the softmax of the best action values in the
model that very many episodes of a uniform policy would show (in the original, of Q-learning).
"""

import itertools
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep.environments.benchmark import Benchmark
from surestep.environments.hidden import Merged, expected_visits
from surestep.model import FiniteMDP, Pairs, Policy
from surestep.planning import optimal, q_values

DISCOUNT = 0.95
HORIZON = 100
Memory = Annotated[int, Meta(ge=0, le=3)]
History = tuple[int, ...]  # observation, action, observation, …, and the present observation


class Unseen(NamedTuple):
    """A world whose state is hidden; its last state is the end of an episode."""

    chance: arrays.FloatArray  # [X, A, X]
    reward: arrays.FloatArray  # [X, A, X]
    initial: arrays.FloatArray  # [X]
    sight: arrays.FloatArray  # [X, O] the chances of observations
    observations: tuple[str, ...]
    actions: tuple[str, ...]


def tiger(memory: Memory = 1) -> Benchmark:
    """Builds Tiger, a tiger behind one of two doors; to listen costs 1, and is right in 85 %."""
    world = asking(
        ((-100.0, 10.0), (10.0, -100.0)),
        (0.5, 0.5),
        ((0.85, 0.15), (0.15, 0.85)),
        ("left", "right"),
        ("listen", "open-left", "open-right"),
    )
    # To listen for ever costs 20.
    return partly_seen("tiger", world, memory, sharpness=0.05, value_bounds=(-100.0, 10.0))


def voicemail(memory: Memory = 1) -> Benchmark:
    """Builds Voicemail, a caller whose wish is misheard; to ask costs 1.

    The right end pays 5, to save in vain −10, and to delete in vain −20.
    """
    world = asking(
        ((5.0, -20.0), (-10.0, 5.0)),
        (0.65, 0.35),
        ((0.8, 0.2), (0.3, 0.7)),
        ("heard-save", "heard-delete"),
        ("ask", "save", "delete"),
    )
    return partly_seen("voicemail", world, memory, sharpness=0.3, value_bounds=(-20.0, 5.0))


Two = tuple[float, float]


def asking(
    pays: tuple[Two, Two],
    initial: Two,
    sight: tuple[Two, Two],
    observations: tuple[str, ...],
    actions: tuple[str, ...],
) -> Unseen:
    """Returns a world of two hidden states: the first action costs 1, others end the episode.

    `pays` and `sight` have a row for each state, of the ends and of the observations.
    """
    chance = np.zeros((3, 3, 3))
    reward = np.zeros((3, 3, 3))
    chance[[0, 1], 0, [0, 1]] = 1.0
    chance[:2, 1:, 2] = 1.0
    reward[:2, 0] = -1.0
    reward[:2, 1:, 2] = pays
    seen = np.array([*sight, (0.5, 0.5)])
    return Unseen(chance, reward, np.array([*initial, 0.0]), seen, observations, actions)


WALLS = (0, 1, 2, 1, 3, 4, 4, 4, 5, 5)  # what each cell looks like
CORRIDORS = ((0, 1), (1, 2), (2, 3), (3, 4))  # from west to east
STAIRS = ((0, 5), (5, 8), (2, 6), (6, 10), (4, 7), (7, 9))  # from north to south
CELLS = 10  # besides that of the cheese


def cheese_maze(memory: Memory = 1) -> Benchmark:
    """Builds CheeseMaze: ten cells, of which some look alike; the cheese pays 1."""
    moves: dict[str, dict[int, int]] = {x: {} for x in ("north", "south", "east", "west")}
    for ways, there, back in ((CORRIDORS, "east", "west"), (STAIRS, "south", "north")):
        moves[there] |= dict(ways)
        moves[back] |= {second: first for first, second in ways}
    chance = np.zeros((CELLS + 1, 4, CELLS + 1))
    for cell, (action, side) in itertools.product(range(CELLS), enumerate(moves.values())):
        chance[cell, action, side.get(cell, cell)] = 1.0
    reward = np.broadcast_to(np.eye(CELLS + 1)[CELLS], chance.shape)
    world = Unseen(
        chance,
        reward,
        np.append(np.full(CELLS, 1 / CELLS), 0.0),
        np.eye(max(WALLS) + 1)[[*WALLS, 0]],
        tuple("abcdef"),
        tuple(moves),
    )
    return partly_seen("cheese-maze", world, memory, sharpness=15.0, value_bounds=(0.0, 1.0))


def partly_seen(
    name: str,
    world: Unseen,
    memory: int,
    *,
    sharpness: float,
    value_bounds: tuple[float, float],
) -> Benchmark:
    """Returns the benchmark of a hidden world; π_b sees the present observation."""
    plain, present = shown_log(world, 0)
    seen = plain.model(expected_visits(plain.mdp, Policy.uniform(plain.mdp), HORIZON))
    by_sight = Policy.softmax(seen, q_values(seen, optimal(seen).value), 1 / sharpness).dense()
    place = {history: row for row, history in enumerate(present)}
    log, histories = shown_log(world, memory)
    rows = [place[history[-1:]] for history in histories]
    behavior = Policy.from_dense(log.pairs, by_sight[rows])
    return Benchmark(
        name=name,
        mdp=log.model(expected_visits(log.mdp, log.acting(behavior), HORIZON)),
        behavior=behavior,
        horizon=HORIZON,
        value_bounds=value_bounds,
        simulator=log,
    )


def shown_log(world: Unseen, memory: int) -> tuple[Merged, list[History]]:
    """Returns the world whose log shows what is remembered, and the history of each state.

    States are the hidden ones with what is remembered, as far as they can be reached; the last
    state of the log is the end, with an empty history.
    """
    over = len(world.initial) - 1
    first = world.initial[:, np.newaxis] * world.sight
    waiting: list[tuple[int, History]] = [(x, (o,)) for x, o in np.argwhere(first > 0).tolist()]
    number = {each: i for i, each in enumerate(waiting)}
    moves = list[tuple[int, int, int, float, float]]()
    for x, history in waiting:  # which grows
        follows = world.chance[x, :, :, np.newaxis] * world.sight
        for a, y, o in np.argwhere(follows > 0).tolist():
            after = (y, () if y == over else (*history, a, o)[-2 * memory - 1 :])
            if after not in number:
                number[after] = len(number)
                waiting.append(after)
            move = number[x, history], a, number[after]
            moves.append((*move, float(follows[a, y, o]), float(world.reward[x, a, y])))
    size = len(number)
    chances = np.zeros((size, len(world.actions), size))
    rewards = np.zeros_like(chances)
    for here, a, there, chance, reward in moves:
        chances[here, a, there] += chance
        rewards[here, a, there] = reward
    histories = sorted(
        {history for _, history in number}, key=lambda each: (not each, len(each), each)
    )
    words = world.observations, world.actions  # by turns
    labels = [
        " ".join(own[x] for own, x in zip(itertools.cycle(words), history, strict=False)) or "over"
        for history in histories
    ]
    shown = {history: row for row, history in enumerate(histories)}
    mdp = FiniteMDP.from_dense(
        chances,
        rewards,
        DISCOUNT,
        np.append(first[first > 0], np.zeros(size - np.count_nonzero(first))),
        action_labels=world.actions,
    )
    pairs = Pairs.full(
        len(labels), len(world.actions), state_labels=labels, action_labels=world.actions
    )
    return Merged(mdp=mdp, pairs=pairs, shown=np.array([shown[x] for _, x in number])), histories
