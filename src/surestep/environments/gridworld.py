"""Builds Gridworld: a way across a slippery grid with two walls (Laroche et al. 2019).

Cell (x, y) is state x + size · y; episodes start at (0, 0) and end in the opposite corner, which
pays 1 for entering it. A move goes in its direction with probability 0.75, to either side with 0.10
and backwards with 0.05; a move against a wall or the border stays in place.
"""

import math
from dataclasses import replace
from typing import Annotated

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep.environments.benchmark import MOST_STATES, Benchmark, mdp_from_rows
from surestep.model import FiniteMDP, Pairs, Policy
from surestep.planning.ends import breadth_first

ACTIONS = ("north", "east", "south", "west")
SLIP = (0.75, 0.10, 0.05, 0.10)  # by quarter turns to the right
DISCOUNT = 0.95
PUBLISHED_SIZE = 5
Side = Annotated[int, Meta(ge=2, le=math.isqrt(MOST_STATES))]
DETOUR = 1 / 3  # the uniform part of the behavior policy, for unpublished sizes

# The published behavior policy is the softmax of this table: one row a state, one column an action.
PUBLISHED_Q = """
-1.2363245677241501 -0.36937598756919143 -8.475023664163292 -7.4649301097892025
-0.41991395806042253 -1.2538522829538505 -6.930178765179449 -0.9869138585231639
-1.1131515420602567 -4.883155153862606 -5.406766646558411 -0.6458453619243011
-0.7309503753405263 -1.7597943630962578 -7.731525264178674 -7.698833456333562
0.4703130985006043 -7.516420956200418 -6.662331608559354 -1.0742975045243233
-1.8352194331878924 -0.05140387756624127 -1.0292872008710772 -5.536970536016117
0.09899530896991461 -0.09333673700383838 -0.10987099317138332 -0.009592348719361519
0.013947205687565453 -5.535587036480857 -0.47927628959459845 -0.8200806841206368
0.36883556595520745 3.212361206524119 -0.9231093776381798 -5.521723079546086
11.478333435115028 -2.196513500375359 0.750004225625538 2.3491214240087537
0.01737356695669018 -0.5656733438627051 -0.25843283588139365 -4.712237411662102
0.7885752695465333 0.33467124419997996 -0.030891400013131648 0.2503646479436128
1.2599179138854084 -5.55624165132064 -0.2991944974678153 -1.2197653305051799
0.510844612497996 -6.276767577963099 -0.6134063838565127 -3.8383674428939676
23.15493365230177 4.276810444515158 5.948941992291084 6.318252180187209
-0.13370805131516697 -0.194040334893513 -0.4733356087022027 -5.94259071195809
1.4378291916365131 3.407501380821342 1.0373153445410987 0.04753923223685171
11.127640621202287 7.938740066827776 -0.040356179070569584 1.8824229042355667
23.045657956784655 16.086817038832518 9.648145679656189 3.7192161984036716
59.792714303075556 29.577237624672264 16.523708558869888 43.01822117603378
-6.4951957334153825 -0.5303293995182012 -1.7846286824316901 -6.479529020840202
-5.666702581283187 6.825360083856933 3.2086946214092604 -0.18700224137524601
8.020471510224953 20.872469636806418 10.168684716585233 7.707442193521753
34.835168713626445 60.21699072946113 12.22719703680394 10.003279510997702
0.0 0.0 0.0 0.0
"""


def gridworld(size: Side = PUBLISHED_SIZE) -> Benchmark:
    """Builds Gridworld as in the paper: π_b is the softmax of a published table of action values.

    The published V_max of 0.6 is about ρ(π*) and lies below the largest value, 0.979. On sizes
    other than 5, walls, discount and horizon scale with the grid (a step is 5/size of a published
    step), and π_b takes a shortest way with probability 2/3 and any action with 1/3.
    """
    mdp = gridworld_mdp(size)
    if size == PUBLISHED_SIZE:
        behavior = Policy.softmax(mdp, np.array(PUBLISHED_Q.split(), dtype=float).reshape(-1, 4))
    else:
        behavior = Policy.deterministic(mdp, shortest_ways(size)).mix(Policy.uniform(mdp), DETOUR)
    return Benchmark(
        name="gridworld",
        mdp=mdp,
        behavior=behavior,
        horizon=10 * size,
        value_bounds=(0.0, 1.0),  # the reward of 1 is paid once
    )


def gridworld_uniform_data(size: Side = PUBLISHED_SIZE) -> Benchmark:
    """Builds Gridworld with data from the uniform policy, and the usual π_b.

    An experiment of Laroche et al. (2019); not in the paper.
    """
    plain = gridworld(size)
    return replace(plain, name="gridworld/uniform-data", collector=Policy.uniform(plain.mdp))


def gridworld_mdp(size: int) -> FiniteMDP:
    """Returns the model of the grid, with γ = 0.95^(5/size)."""
    ways = open_ways(size)
    goal = size * size - 1
    state = np.arange(size * size)[:, np.newaxis]
    order = [2, 3, 1, 0]  # directions in the order of the states they lead to
    target = state + np.array([size, 1, -size, -1])
    slip = np.array([[SLIP[(d - a) % 4] for d in range(4)] for a in range(4)])  # [A, direction]
    # Who is held up stays, which comes between the ways down and up in the order of states.
    successor = np.insert(target[:, order], 2, state[:, 0], axis=1)
    probability = np.insert((slip * ways[:, np.newaxis])[:, :, order], 2, ~ways @ slip.T, axis=2)
    probability[goal] = 0.0
    rows = np.broadcast_to(successor[:, np.newaxis], probability.shape).reshape(-1, 5)
    return mdp_from_rows(
        Pairs.full(state.size, 4, action_labels=ACTIONS),
        rows,
        probability.reshape(-1, 5),
        rows == goal,
        DISCOUNT ** (PUBLISHED_SIZE / size),
    )


def open_ways(size: int) -> arrays.BoolArray:
    """Tells whether a cell can be left to the north, east, south and west [S, 4].

    One published wall stands between x = 2 and 3 below y = 3, the other between x = 3 and 4 from
    y = 2 to below y = 4; on other sizes they scale with the grid, rounded to cells.
    """

    def scaled(coordinate: int) -> int:
        return (2 * coordinate * size + PUBLISHED_SIZE) // (2 * PUBLISHED_SIZE)

    ways = np.ones((4, size, size), np.bool_)  # direction, y, x
    north, east, south, west = ways
    north[-1] = east[:, -1] = south[0] = west[:, 0] = False
    for column, low, high in ((3, 0, 3), (4, 2, 4)):
        east[scaled(low) : scaled(high), scaled(column) - 1] = False
    west[:, 1:] = east[:, :-1]
    return ways.reshape(4, -1).T.copy()


def shortest_ways(size: int) -> arrays.IntArray:
    """Returns an action [S] on a shortest way to the goal; any action at the goal."""
    ways = open_ways(size)
    step = np.array([size, 1, -size, -1])
    state, direction = np.nonzero(ways)  # ways lead back too, so the search starts at the goal
    _, parent = breadth_first(
        arrays.offsets_of(np.count_nonzero(ways, axis=1)),
        (state + step[direction]).astype(np.int32),
        len(ways) - 1,
    )
    towards = parent - np.arange(len(ways))
    return np.asarray(np.argmax(towards[:, np.newaxis] == step, axis=1))
