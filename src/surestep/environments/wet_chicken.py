"""Wet Chicken: a canoe on a river that ends in a waterfall (Tresp 1994; Hans and Udluft 2009).

The canoe is x squares down the river in lane y: state width · x + y. Far down is good, for a step
pays the x it leads to, but whoever goes over the edge starts again at (0, 0). In lane y the stream
moves the canoe by v = 3y/width, give or take up to τ = 3.5 − v with equal chances: the far lanes
are fast, the near ones wild. Nothing ends an episode but the end of the recording.

*The continuous Wet Chicken of Scholl et al. (2022): a river without squares, cut into cells.*
The canoe is x ≥ 0 down the river in lane y. A step leads to x̂ = x + Δx + v(y) + U, U uniform on
[−τ(y), τ(y)], as on the river of squares but without rounding: x̂ < 0 ends at the shore, x = 0;
x̂ ≥ length goes over the waterfall, back to (0, 0). A step pays the x it leads to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IntArray
from surestep._settings import Settings
from surestep.environments.benchmark import Benchmark, Length, Seed, Share, check_size, mdp_of_rows
from surestep.model.log import DecisionLog
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Pairs, check_same_pairs
from surestep.model.policy import Policy
from surestep.sampling import drawing

ACTIONS = ("drift", "hold", "paddle back", "left", "right")
DRIFT, HOLD, PADDLE_BACK, LEFT, RIGHT = range(5)
ALONG = np.array([0, -1, -2, 0, 0])  # what an action adds to x
ACROSS = np.array([0, 0, 0, -1, 1])  # and to y
TURBULENCE = 3.5
VELOCITY = 3.0
DISCOUNT = 0.95
PUBLISHED_SIZE = 5

# How the paper's code would learn a behavior policy, were it not shipped with a uniform one.
LEARNING_EPISODES, LEARNING_STEPS, LEARNING_RATE, INVERSE_TEMPERATURE = 100, 50, 0.9, 0.01


def wet_chicken(length: Length = PUBLISHED_SIZE, width: Length = PUBLISHED_SIZE) -> Benchmark:
    """Wet Chicken as in the paper's figures: π_b is uniform.

    The paper says that π_b comes from Q-learning with a softmax (`wet-chicken/q-learning`), but
    the policy published with its code is exactly uniform, and that is what its figures show. The
    data carries the expected rewards, which are known at unvisited pairs too.
    """
    mdp = with_expected_rewards(wet_chicken_mdp(length, width))
    highest = float(mdp.expected_reward.max()) / (1 - DISCOUNT)
    return Benchmark(
        name="wet-chicken",
        mdp=mdp,
        behavior=Policy.uniform(mdp),
        horizon=10,
        rewards="known",
        value_bounds=(0.0, highest),  # the best expected reward in every step
    )


def wet_chicken_q_learning(seed: Seed = 1) -> Benchmark:
    """Wet Chicken with the policy that the paper describes: Q-learning, then a softmax.

    As the paper's code would have learned it with this seed of NumPy's legacy generator: 100
    episodes of 50 uniformly random steps, and a softmax so flat that ρ(π_b) is within 0.06 of that
    of the uniform policy. No published figure uses it.
    """
    plain = wet_chicken()
    behavior = learned_behavior(plain.mdp, seed)
    return replace(plain, name="wet-chicken/q-learning", behavior=behavior, collector=behavior)


def wet_chicken_heuristic(
    epsilon: Share = 0.1, length: Length = PUBLISHED_SIZE, width: Length = PUBLISHED_SIZE
) -> Benchmark:
    """Wet Chicken with the heuristic ε-policies of Scholl et al. (2022), who use ε = 0.1, 0.2, 0.5.

    π_b = (1 − ε) · heuristic + ε · uniform. The data is one stream of steps with the rewards that
    were drawn, and what is never visited earns 0. The stream starts at (0, 0); in the published
    experiment it goes on where that of the data set before it stopped.
    """
    mdp = wet_chicken_mdp(length, width)
    greedy = Policy.deterministic(mdp, heuristic_actions(length, width))
    return Benchmark(
        name="wet-chicken/heuristic",
        mdp=mdp,
        behavior=greedy.mix(Policy.uniform(mdp), epsilon),
        horizon=None,
        value_bounds=(0.0, float(mdp.expected_reward.max()) / (1 - DISCOUNT)),
    )


def stream(width: int) -> tuple[FloatArray, FloatArray]:
    """Velocity v and turbulence τ of each lane."""
    velocity = VELOCITY * np.arange(width) / width
    return velocity, TURBULENCE - velocity


def wet_chicken_mdp(length: int, width: int) -> FiniteMDP:
    """Returns the model of the river; a transition earns the x of its successor.

    The target x̂ is uniform on I = [x + Δx + v − τ, x + Δx + v + τ] and rounded: square k gets the
    share of I within [k − ½, k + ½], square 0 also what lies before it, and the waterfall, which is
    state 0, what lies beyond the last square.
    """
    check_size(f"length {length} and width {width}", length * width)
    pairs = Pairs.full(length * width, len(ACTIONS), action_labels=ACTIONS)
    x, y = np.divmod(pairs.state, width)
    lane = np.clip(y + ACROSS[pairs.action], 0, width - 1)[:, np.newaxis]
    velocity, turbulence = stream(width)
    middle = x + ALONG[pairs.action] + velocity[y]
    low, high = middle - turbulence[y], middle + turbulence[y]
    first = np.clip(np.floor(low + 0.5), 0, length - 1).astype(np.int64)
    reach = int(2 * TURBULENCE) + 2  # an interval of length 7 meets at most 8 squares
    square = first[:, np.newaxis] + np.arange(min(reach, length))
    before = np.where(square == 0, -np.inf, square - 0.5)
    hit = share_of(low, high, before, square + 0.5)
    hit[square >= length] = 0.0
    fall = share_of(low, high, np.full((x.size, 1), length - 0.5), np.inf)
    home = (first == 0) & (lane[:, 0] == 0)  # there, square 0 is where the waterfall leads to
    hit[home, 0] += fall[home, 0]
    fall[home] = 0.0
    square[square >= length] = 0  # any state will do for what cannot happen
    return mdp_of_rows(
        pairs,
        np.hstack([np.zeros_like(lane), width * square + lane]),
        np.hstack([fall, hit]),
        np.hstack([np.zeros_like(lane), square]),
        DISCOUNT,
    )


def share_of(
    low: FloatArray, high: FloatArray, start: FloatArray, end: FloatArray | float
) -> FloatArray:
    """Returns the share of the interval [low, high] [K] that lies within [start, end] [K, W]."""
    low, high = low[:, np.newaxis], high[:, np.newaxis]
    overlap = np.minimum(high, end) - np.maximum(low, start)
    within: FloatArray = np.maximum(overlap, 0.0) / (high - low)
    return within


def with_expected_rewards(mdp: FiniteMDP) -> FiniteMDP:
    """Averages: every transition of a pair earns what the pair earns on average."""
    return replace(mdp, reward=np.repeat(mdp.expected_reward, np.diff(mdp.offsets)))


def heuristic_actions(length: int, width: int) -> IntArray:
    """Go to the middle lane and stay in the middle of the river [S] (Scholl et al. 2022).

    Published for 5 × 5, with square 2 and lane 2 as the middle.
    """
    x, y = np.divmod(np.arange(length * width), width)
    middle, lane = (length - 1) // 2, (width - 1) // 2
    return np.select(
        [x > middle, y < lane, y > lane, x == middle, x == middle - 1],
        [PADDLE_BACK, RIGHT, LEFT, PADDLE_BACK, HOLD],
        DRIFT,
    )


def learned_behavior(mdp: FiniteMDP, seed: int) -> Policy:
    """π(a|s) ∝ exp(0.01 · Q(s,a)), with Q learned from uniformly random steps at rate 0.9."""
    rng = np.random.RandomState(seed)
    dense = mdp.dense()
    cumulative = np.cumsum(dense.P, axis=2)
    q = np.zeros((mdp.num_states, len(ACTIONS)))
    for _ in range(LEARNING_EPISODES):
        state = 0
        for _ in range(LEARNING_STEPS):
            action = rng.randint(len(ACTIONS))
            after = int(np.searchsorted(cumulative[state, action], rng.random_sample()))
            target = dense.R[state, action] + DISCOUNT * q[after].max()
            q[state, action] += LEARNING_RATE * (target - q[state, action])
            state = after
    return Policy.softmax(mdp, q, 1 / INVERSE_TEMPERATURE)


# ---- the continuous Wet Chicken -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RiverCells(Settings):
    """The river, cut into cells: state width · c + y for cell c of lane y.

    Cell 0 is the shore itself, x = 0, where falls and landings end; cell c ≥ 1 is
    ((c − 1)/per_unit, c/per_unit]. Positions on the river are rows (x, y), 0 ≤ x < length and y a
    lane, of many canoes at once.
    """

    length: Length = PUBLISHED_SIZE
    width: Length = PUBLISHED_SIZE
    per_unit: Length = 2

    @property
    def num_cells(self) -> int:
        """Counts the cells of a lane, the shore included."""
        return self.length * self.per_unit + 1

    @property
    def pairs(self) -> Pairs:
        """Returns the cells of all lanes, with every action in each."""
        states = self.num_cells * self.width
        check_size(f"{self.num_cells} cells a lane", states)
        return Pairs.full(states, len(ACTIONS), action_labels=ACTIONS)

    @property
    def truth(self) -> None:
        """Returns None: no finite model is the river."""
        return None

    def state(self, position: FloatArray) -> IntArray:
        """Returns the state [N] of each position [N, 2]."""
        cell = np.ceil(position[:, 0] * self.per_unit)
        return (self.width * cell + position[:, 1]).astype(np.int64)

    def step(self, position: FloatArray, action: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draws where the actions [N] lead from the positions [N, 2]; x' is the reward."""
        velocity, turbulence = stream(self.width)
        lane = position[:, 1].astype(np.int64)
        noise = turbulence[lane] * rng.uniform(-1.0, 1.0, lane.size)
        target = position[:, 0] + ALONG[action] + velocity[lane] + noise
        after = np.empty_like(position)
        after[:, 0] = np.maximum(target, 0.0)
        after[:, 1] = np.clip(lane + ACROSS[action], 0, self.width - 1)
        after[target >= self.length] = 0.0
        return after

    def rollout(
        self, policy: Policy, episodes: int, horizon: int, rng: np.random.Generator
    ) -> DecisionLog:
        """Returns the log of a policy that sees the cells only, on the river itself, from (0, 0).

        Rewards are the true x; every episode is truncated after `horizon` steps.
        """
        pairs = self.pairs
        check_same_pairs("the river in cells", pairs, "the policy", policy.pairs)
        decide = drawing(policy.pairs.offsets, policy.probability, rng)
        state = np.zeros((horizon + 1, episodes), np.int64)
        action = np.empty((horizon, episodes), np.int64)
        reward = np.empty((horizon, episodes))
        position: FloatArray = np.zeros((episodes, 2))
        for t in range(horizon):
            action[t] = pairs.action[decide(state[t])]
            position = self.step(position, action[t], rng)
            state[t + 1] = self.state(position)
            reward[t] = position[:, 0]
        last = np.zeros((horizon, episodes), np.bool_)
        last[-1] = True
        return DecisionLog(
            pairs,
            state[:-1].T.ravel(),
            action.T.ravel(),
            reward.T.ravel(),
            state[1:].T.ravel(),
            np.zeros(last.size, np.bool_),
            last.T.ravel(),
            arrays.offsets_of(np.full(episodes, horizon)),
        )


# ---- and as a benchmark: a model of what happens between the cells -------------------------------


def wet_chicken_continuous(
    cells: Length = 2, epsilon: Share = 0.1, length: Length = 5, width: Length = 5
) -> Benchmark:
    """Returns the continuous Wet Chicken, cut into `cells` cells a unit of length.

    Its data comes from the river itself. Seen through cells that is no Markov process, so its model
    is an approximation, the better the more cells: x is taken to be uniform in its cell. π_b mixes
    the heuristic of Scholl et al. (2022), which an even number of cells can tell exactly, with the
    uniform policy. They published the river, but no experiment on it.
    """
    river = RiverCells(length=length, width=width, per_unit=cells)
    mdp = cell_mdp(river)
    greedy = Policy.deterministic(mdp, cell_heuristic(river))
    return Benchmark(
        name="wet-chicken/continuous",
        mdp=mdp,
        behavior=greedy.mix(Policy.uniform(mdp), epsilon),
        horizon=None,
        value_bounds=(0.0, length / (1 - DISCOUNT)),  # the far end in every step
        simulator=river,
    )


def cell_heuristic(cells: RiverCells) -> IntArray:
    """Go to the two middle lanes and stay before the middle of the river [S], cells by their ends.

    Published for 5 × 5: paddle back beyond x = 2.5, go right in lanes below 2 and left in those
    above 3, and between them paddle back beyond x = 2 and hold beyond x = 1.
    """
    length, width = cells.length, cells.width
    cell, y = np.divmod(np.arange(cells.num_cells * width), width)
    x = cell / cells.per_unit
    middle, lane = (length - 1) // 2, (width - 1) // 2
    return np.select(
        [x > length / 2, y < lane, y > lane + 1, x > middle, x > middle - 1],
        [PADDLE_BACK, RIGHT, LEFT, PADDLE_BACK, HOLD],
        DRIFT,
    )


def cell_mdp(cells: RiverCells) -> FiniteMDP:
    """Returns the model of the cells in which x is uniform in its cell (and 0 at the shore).

    A transition earns the mean x' of those that take it.
    """
    width, end, extent = cells.width, float(cells.length), 1.0 / cells.per_unit
    pairs, last = cells.pairs, cells.num_cells - 1
    reach = min(int(np.ceil(2 * TURBULENCE / extent)) + 2, last)  # how many cells a step can hit
    check_size(f"{cells.per_unit} cells a unit", cells.num_cells * width, pairs.num_pairs * reach)
    cell, y = np.divmod(pairs.state, width)
    lane = np.clip(y + ACROSS[pairs.action], 0, width - 1)[:, np.newaxis]
    velocity, turbulence = stream(width)
    low = np.maximum(cell - 1, 0) * extent + ALONG[pairs.action] + velocity[y] - turbulence[y]
    spread = Spread(low, np.where(cell > 0, extent, 0.0), 2 * turbulence[y])
    first = np.clip(np.floor(low / extent) + 1, 1, last).astype(np.int64)
    target = first[:, np.newaxis] + np.arange(reach)
    edges = np.minimum(np.hstack([target[:, :1] - 1, target]) * extent, end)
    below, moment = spread.below(edges)
    hit = np.diff(below, axis=1)
    mean = np.diff(moment, axis=1) / np.where(hit > 0, hit, 1.0)
    landed = np.where(first == 1, below[:, 0], 0.0)[:, np.newaxis]
    fallen = 1.0 - spread.below(np.full((cell.size, 1), end))[0]
    home = lane == 0  # there, the shore is where the waterfall leads to
    return mdp_of_rows(
        pairs,
        np.hstack([np.zeros_like(lane), lane, width * np.minimum(target, last) + lane]),
        np.hstack([np.where(home, 0.0, fallen), landed + np.where(home, fallen, 0.0), hit]),
        np.hstack([np.zeros((cell.size, 2)), mean]),
        DISCOUNT,
    )


class Spread(NamedTuple):
    """The law of low + A + B, with A uniform on [0, extent] and B on [0, noise], all [K]."""

    low: FloatArray
    extent: FloatArray
    noise: FloatArray

    def below(self, edge: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Returns the chance F of being below the edges [K, W], and F times the mean of what is.

        The latter is ∫ t dF(t) = edge · F(edge) − ∫ F(t) dt.
        """
        low, extent, noise = (values[:, np.newaxis] for values in self)
        reach = np.clip(edge - low, 0.0, extent + noise)
        point = extent == 0
        area = noise * np.where(point, 1.0, extent)

        def past_corners(power: int) -> FloatArray:
            corners = (reach, reach - extent, reach - noise, reach - extent - noise)
            one, two, three, four = (np.maximum(corner, 0.0) ** power for corner in corners)
            total: FloatArray = one - two - three + four
            return total

        once = np.where(point, reach, past_corners(2) / 2) / area
        twice = np.where(point, reach**2 / 2, past_corners(3) / 6) / area
        share = np.where(reach == extent + noise, 1.0, once)
        return share, (low + reach) * share - twice
