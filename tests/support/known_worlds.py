"""Worlds that are known: two benchmarks of the literature, the paper's captions, and a bandit.

The benchmarks are whole numbers: how often each transition comes in n tries. Sources: the Gridworld
of Laroche et al. (2019) and the Wet Chicken of Hans and Udluft (2009), both as Wienhöft et al.
(2023) use them.
"""

from __future__ import annotations

import numpy as np

from support.problems import uniform_problem
from surestep import Counts, FiniteMDP, Policy, Problem, sample_log

GOAL = 24
BEHAVIOR_Q = np.array(
    [
        [-1.2363245677241501, -0.36937598756919143, -8.475023664163292, -7.4649301097892025],
        [-0.41991395806042253, -1.2538522829538505, -6.930178765179449, -0.9869138585231639],
        [-1.1131515420602567, -4.883155153862606, -5.406766646558411, -0.6458453619243011],
        [-0.7309503753405263, -1.7597943630962578, -7.731525264178674, -7.698833456333562],
        [0.4703130985006043, -7.516420956200418, -6.662331608559354, -1.0742975045243233],
        [-1.8352194331878924, -0.05140387756624127, -1.0292872008710772, -5.536970536016117],
        [0.09899530896991461, -0.09333673700383838, -0.10987099317138332, -0.009592348719361519],
        [0.013947205687565453, -5.535587036480857, -0.47927628959459845, -0.8200806841206368],
        [0.36883556595520745, 3.212361206524119, -0.9231093776381798, -5.521723079546086],
        [11.478333435115028, -2.196513500375359, 0.750004225625538, 2.3491214240087537],
        [0.01737356695669018, -0.5656733438627051, -0.25843283588139365, -4.712237411662102],
        [0.7885752695465333, 0.33467124419997996, -0.030891400013131648, 0.2503646479436128],
        [1.2599179138854084, -5.55624165132064, -0.2991944974678153, -1.2197653305051799],
        [0.510844612497996, -6.276767577963099, -0.6134063838565127, -3.8383674428939676],
        [23.15493365230177, 4.276810444515158, 5.948941992291084, 6.318252180187209],
        [-0.13370805131516697, -0.194040334893513, -0.4733356087022027, -5.94259071195809],
        [1.4378291916365131, 3.407501380821342, 1.0373153445410987, 0.04753923223685171],
        [11.127640621202287, 7.938740066827776, -0.040356179070569584, 1.8824229042355667],
        [23.045657956784655, 16.086817038832518, 9.648145679656189, 3.7192161984036716],
        [59.792714303075556, 29.577237624672264, 16.523708558869888, 43.01822117603378],
        [-6.4951957334153825, -0.5303293995182012, -1.7846286824316901, -6.479529020840202],
        [-5.666702581283187, 6.825360083856933, 3.2086946214092604, -0.18700224137524601],
        [8.020471510224953, 20.872469636806418, 10.168684716585233, 7.707442193521753],
        [34.835168713626445, 60.21699072946113, 12.22719703680394, 10.003279510997702],
        [0.0, 0.0, 0.0, 0.0],
    ]
)


def gridworld_table() -> np.ndarray:
    """5 × 5 cells, state x + 5y, actions north, east, south, west: in 20 tries, 15 succeed."""
    moves = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    walls = {(2, y) for y in (0, 1, 2)} | {(3, y) for y in (2, 3)}  # east of that cell

    def reached(x: int, y: int, dx: int, dy: int) -> tuple[int, int]:
        blocked = dx != 0 and (min(x, x + dx), y) in walls
        inside = 0 <= x + dx <= 4 and 0 <= y + dy <= 4
        return (x, y) if blocked or not inside else (x + dx, y + dy)

    times = np.zeros((25, 4, 25), np.int64)
    for state in range(GOAL):
        y, x = divmod(state, 5)
        for action in range(4):
            for turn, share in ((0, 15), (1, 2), (3, 2), (2, 1)):
                there = reached(x, y, *moves[(action + turn) % 4])
                times[state, action, there[0] + 5 * there[1]] += share
    return times


def gridworld(tries: int) -> Problem:
    """Gridworld seen `tries` × 20 times everywhere: a reward of 1 for entering the goal."""
    rewards = np.zeros((25, 4, 25))
    rewards[:, :, GOAL] = 1.0
    ends = np.arange(25) == GOAL
    counts = Counts.from_dense(tries * gridworld_table(), rewards=rewards, terminal=ends)
    return Problem(
        counts=counts,
        behavior=Policy.softmax(counts, BEHAVIOR_Q),
        discount=0.95,
        value_bounds=(0.0, 1.0),
    )


def wet_chicken_table() -> np.ndarray:
    """State 5x + y, actions drift, hold, paddle back, left, right; lengths in tenths."""
    times = np.zeros((25, 5, 25), np.int64)
    for state in range(25):
        x, y = divmod(state, 5)
        flow, width = 6 * y, 35 - 6 * y
        for action, (dx, dy) in enumerate([(0, 0), (-1, 0), (-2, 0), (0, -1), (0, 1)]):
            lane = min(max(y + dy, 0), 4)
            low, high = 10 * (x + dx) + flow - width, 10 * (x + dx) + flow + width
            times[state, action, 0] += max(0, high - max(low, 45))  # down the waterfall
            times[state, action, lane] += max(0, min(high, -5) - low)  # up to the land
            for cell in range(5):
                overlap = min(high, 10 * cell + 5) - max(low, 10 * cell - 5)
                times[state, action, 5 * cell + lane] += max(0, overlap)
    return times


def wet_chicken(tries: int) -> Problem:
    """Wet Chicken seen in proportion everywhere: the reward is how far down one expects to get."""
    table = wet_chicken_table()
    far = np.arange(25) // 5
    counts = Counts.from_dense(tries * table, rewards=(table @ far) / table.sum(axis=2))
    return uniform_problem(counts, 0.95, (0.0, 68.0))


# |S|, |A|, N∧^SPIBB, N∧^2s, N∧^β: the captions of the paper's Figures 4 to 6.
CAPTIONS = [
    (25, 4, 100, 55, 27),
    (25, 4, 200, 110, 67),
    (25, 4, 400, 219, 146),
    (25, 5, 60, 34, 10),
    (25, 5, 120, 67, 36),
    (25, 5, 180, 101, 61),
    (376, 4, 600, 43, 12),
    (376, 4, 800, 57, 25),
    (376, 4, 1000, 71, 37),
]
ARMS = 4


def bandit():
    """One decision among four arms that pay 1 with chances 0.2, 0.4, 0.5 and 0.8."""
    P = np.zeros((3, ARMS, 3))
    P[0, :, 2] = [0.2, 0.4, 0.5, 0.8]
    P[0, :, 1] = 1 - P[0, :, 2]
    R = np.zeros((3, ARMS, 3))
    R[0, :, 2] = 1.0
    return FiniteMDP.from_dense(P, R, 0.9)


def bandit_problem(episodes, *, rewards=None, seed=0):
    """The data of so many decisions of the bandit, made at random."""
    mdp = bandit()
    log = sample_log(mdp, Policy.uniform(mdp), episodes, 1, np.random.default_rng(seed))
    return Problem(
        counts=log.counts(rewards),
        behavior=Policy.uniform(mdp),
        discount=0.9,
        value_bounds=(0.0, 1.0),
        log=log,
    )


def two_ways_problem():
    """A log of 30 single decisions between two ways to a prize, as a problem."""
    P = np.zeros((3, 2, 3))
    P[0, :, 2] = [0.3, 0.7]
    P[0, :, 1] = 1 - P[0, :, 2]
    R = np.zeros((3, 2, 3))
    R[0, :, 2] = 1.0
    mdp = FiniteMDP.from_dense(P, R, 0.9)
    log = sample_log(mdp, Policy.uniform(mdp), 30, 1, np.random.default_rng(0))
    return uniform_problem(log.counts(), 0.9, (0.0, 1.0))
