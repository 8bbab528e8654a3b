"""Builds Wet Chicken: a canoe above a waterfall (Tresp 1994; Hans and Udluft 2009).

The canoe is x squares down the river in lane y: state width · x + y. Far down is good, for a step
pays the x it leads to, but a canoe that goes over the edge starts again at (0, 0). In lane y the
stream moves the canoe by v = 3y/width, plus a uniform number from −τ to τ = 3.5 − v: the far lanes
are fast, the near lanes wild. Only the end of the recording ends an episode.
"""

from dataclasses import replace

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.environments.benchmark import Benchmark, Length, Portion, check_size, mdp_from_rows
from surestep.model import FiniteMDP, Pairs, Policy

ACTIONS = ("drift", "hold", "paddle back", "left", "right")
DRIFT, HOLD, PADDLE_BACK, LEFT, RIGHT = range(5)
ALONG = np.array([0, -1, -2, 0, 0])  # an action adds this to x
ACROSS = np.array([0, 0, 0, -1, 1])  # and this to y
TURBULENCE = 3.5
VELOCITY = 3.0
DISCOUNT = 0.95
PUBLISHED_SIZE = 5


def wet_chicken(length: Length = PUBLISHED_SIZE, width: Length = PUBLISHED_SIZE) -> Benchmark:
    """Builds Wet Chicken as in the paper's figures: π_b is uniform.

    The paper says that π_b comes from Q-learning with a softmax, but the policy published with its
    code is exactly uniform, and so is the policy of its figures. The data carries the expected
    rewards, which are known at unvisited pairs too.
    """
    drawn = wet_chicken_mdp(length, width)
    mdp = replace(drawn, reward=np.repeat(drawn.expected_reward, np.diff(drawn.offsets)))
    return Benchmark(
        name="wet-chicken",
        mdp=mdp,
        behavior=Policy.uniform(mdp),
        horizon=10,
        rewards="known",
        # The best expected reward in every step.
        value_bounds=(0.0, float(mdp.expected_reward.max()) / (1 - DISCOUNT)),
    )


def wet_chicken_heuristic(
    epsilon: Portion = 0.1, length: Length = PUBLISHED_SIZE, width: Length = PUBLISHED_SIZE
) -> Benchmark:
    """Builds Wet Chicken with the heuristic ε-policies of Scholl et al. (2022): ε = 0.1, 0.2, 0.5.

    π_b = (1 − ε) · heuristic + ε · uniform. The data is one stream of steps with the drawn rewards,
    and pairs never visited earn 0. The stream starts at (0, 0); in the published experiment it
    continues the stream of the data set before.
    """
    mdp = wet_chicken_mdp(length, width)
    return Benchmark(
        name="wet-chicken/heuristic",
        mdp=mdp,
        behavior=Policy.deterministic(mdp, heuristic_actions(length, width)).mix(
            Policy.uniform(mdp), epsilon
        ),
        horizon=None,
        value_bounds=(0.0, float(mdp.expected_reward.max()) / (1 - DISCOUNT)),
    )


def wet_chicken_mdp(length: int, width: int) -> FiniteMDP:
    """Returns the model of the river; a transition earns the x of its successor.

    The target x̂ is uniform on I = [x + Δx + v − τ, x + Δx + v + τ] and rounded: square k gets the
    share of I within [k − ½, k + ½], square 0 also the share before it, and the waterfall, which is
    state 0, the share beyond the last square.
    """
    check_size(f"length {length} and width {width}", length * width)
    pairs = Pairs.full(length * width, len(ACTIONS), action_labels=ACTIONS)
    x, y = np.divmod(pairs.state, width)
    lane = np.clip(y + ACROSS[pairs.action], 0, width - 1)[:, np.newaxis]
    velocity = VELOCITY * np.arange(width) / width  # of each lane
    turbulence = TURBULENCE - velocity
    middle = x + ALONG[pairs.action] + velocity[y]
    low, high = middle - turbulence[y], middle + turbulence[y]
    first = np.clip(np.floor(low + 0.5), 0, length - 1).astype(np.int64)
    reach = int(2 * TURBULENCE) + 2  # an interval of length 7 meets at most 8 squares
    square = first[:, np.newaxis] + np.arange(min(reach, length))
    hit = share_within(low, high, np.where(square == 0, -np.inf, square - 0.5), square + 0.5)
    hit[square >= length] = 0.0
    fall = share_within(low, high, np.full((x.size, 1), length - 0.5), np.inf)
    home = (first == 0) & (lane[:, 0] == 0)  # for these pairs, square 0 is the waterfall's target
    hit[home, 0] += fall[home, 0]
    fall[home] = 0.0
    square[square >= length] = 0  # transitions of probability 0 may lead to any state
    return mdp_from_rows(
        pairs,
        np.hstack([np.zeros_like(lane), width * square + lane]),
        np.hstack([fall, hit]),
        np.hstack([np.zeros_like(lane), square]),
        DISCOUNT,
    )


def share_within(
    low: FloatArray, high: FloatArray, start: FloatArray, end: FloatArray | float
) -> FloatArray:
    """Returns the share of the interval [low, high] [K] that lies within [start, end] [K, W]."""
    low, high = low[:, np.newaxis], high[:, np.newaxis]
    overlap = np.minimum(high, end) - np.maximum(low, start)
    return np.asarray(np.maximum(overlap, 0.0) / (high - low))


def heuristic_actions(length: int, width: int) -> IntArray:
    """Returns actions [S] to the middle lane and the middle of the river (Scholl et al. 2022).

    They are published for 5 × 5, with square 2 and lane 2 as the middle.
    """
    x, y = np.divmod(np.arange(length * width), width)
    middle, lane = (length - 1) // 2, (width - 1) // 2
    return np.select(
        [x > middle, y < lane, y > lane, x == middle, x == middle - 1],
        [PADDLE_BACK, RIGHT, LEFT, PADDLE_BACK, HOLD],
        DRIFT,
    )
