"""The continuous Wet Chicken of Scholl et al. (2022): a river without squares, cut into cells.

The canoe is x ≥ 0 down the river in lane y. A step leads to x̂ = x + Δx + v(y) + U, U uniform on
[−τ(y), τ(y)], as on the river of squares but without rounding: x̂ < 0 ends at the shore, x = 0;
x̂ ≥ length goes over the waterfall, back to (0, 0). A step pays the x it leads to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IntArray
from surestep.environments.benchmark import Benchmark
from surestep.environments.building import MOST_STATES, check_size, mdp_of_rows, share, whole_number
from surestep.environments.wet_chicken import (
    ACROSS,
    ACTIONS,
    ALONG,
    DISCOUNT,
    DRIFT,
    HOLD,
    LEFT,
    PADDLE_BACK,
    PUBLISHED_SIZE,
    RIGHT,
    TURBULENCE,
    checked_size,
    stream,
)
from surestep.errors import InvalidParameter
from surestep.model.log import DecisionLog
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Pairs, check_same_pairs
from surestep.model.policy import Policy
from surestep.sampling import drawing


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousWetChicken:
    """The river as a simulator of many canoes at once; positions are rows (x, y)."""

    length: int = PUBLISHED_SIZE
    width: int = PUBLISHED_SIZE

    def __post_init__(self) -> None:
        """Checks the size."""
        checked_size(self.length, self.width)

    def step(self, position: object, action: object, rng: np.random.Generator) -> FloatArray:
        """Draws one step of the actions [N] from the positions [N, 2]; x' is its reward."""
        arrays.expect("rng", rng, np.random.Generator)
        before = self.positions(position)
        chosen = arrays.whole_numbers("action", action, (len(before),), InvalidParameter)
        arrays.refuse_where(
            (chosen < 0) | (chosen >= len(ACTIONS)),
            lambda i: f"action[{i}] is {chosen[i]}, expected 0 to {len(ACTIONS) - 1}",
            "action",
            InvalidParameter,
        )
        return moved(self, before, chosen, rng)

    def positions(self, position: object) -> FloatArray:
        """Positions [N, 2] on the river: 0 ≤ x < length, and y a lane."""
        rows = arrays.floats("position", position, None, InvalidParameter)
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise InvalidParameter(f"position has shape {rows.shape}, expected rows (x, y)")
        x, y = rows.T
        arrays.refuse_where(
            (x < 0) | (x >= self.length) | (y < 0) | (y >= self.width) | (y != np.floor(y)),
            lambda i: (
                f"position {i} is ({x[i]}, {y[i]}), expected 0 ≤ x < {self.length} and a lane "
                f"y of 0 to {self.width - 1}"
            ),
            "position",
            InvalidParameter,
        )
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RiverCells:
    """The river cut into cells: state width · c + y for cell c of lane y.

    Cell 0 is the shore itself, x = 0, where falls and landings end; cell c ≥ 1 is
    ((c − 1)/per_unit, c/per_unit].
    """

    river: ContinuousWetChicken
    per_unit: int

    def __post_init__(self) -> None:
        """Checks the number of cells."""
        arrays.expect("river", self.river, ContinuousWetChicken)
        whole_number("cells", self.per_unit, 1, MOST_STATES)
        check_size(f"{self.num_cells} cells a lane", self.num_cells * self.river.width)

    @property
    def num_cells(self) -> int:
        """Counts the cells of a lane, the shore included."""
        return self.river.length * self.per_unit + 1

    @property
    def pairs(self) -> Pairs:
        """Returns the cells of all lanes, with every action in each."""
        states = self.num_cells * self.river.width
        return Pairs.full(states, len(ACTIONS), action_labels=ACTIONS)

    @property
    def truth(self) -> None:
        """Returns None: no finite model is the river."""
        return None

    def state(self, position: object) -> IntArray:
        """Returns the state [N] of each position [N, 2]."""
        return cells_of(self, self.river.positions(position))

    def rollout(
        self, policy: Policy, episodes: int, horizon: int, rng: np.random.Generator
    ) -> DecisionLog:
        """Returns the log of a policy that sees the cells only, on the river itself, from (0, 0).

        Rewards are the true x; every episode is truncated after `horizon` steps.
        """
        arrays.expect("policy", policy, Policy)
        pairs = self.pairs
        check_same_pairs("the river in cells", pairs, "the policy", policy.pairs)
        arrays.expect_count("episodes", episodes)
        arrays.expect_count("horizon", horizon)
        arrays.expect("rng", rng, np.random.Generator)
        decide = drawing(policy.pairs.offsets, policy.probability, rng)
        state = np.zeros((horizon + 1, episodes), np.int64)
        action = np.empty((horizon, episodes), np.int64)
        reward = np.empty((horizon, episodes))
        position: FloatArray = np.zeros((episodes, 2))
        for t in range(horizon):
            action[t] = pairs.action[decide(state[t])]
            position = moved(self.river, position, action[t], rng)
            state[t + 1] = cells_of(self, position)
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


def moved(
    river: ContinuousWetChicken, before: FloatArray, action: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Draws where the actions [N] lead from positions [N, 2] that are known to be on the river."""
    velocity, turbulence = stream(river.width)
    lane = before[:, 1].astype(np.int64)
    noise = turbulence[lane] * rng.uniform(-1.0, 1.0, lane.size)
    target = before[:, 0] + ALONG[action] + velocity[lane] + noise
    after = np.empty_like(before)
    after[:, 0] = np.maximum(target, 0.0)
    after[:, 1] = np.clip(lane + ACROSS[action], 0, river.width - 1)
    after[target >= river.length] = 0.0
    return after


def cells_of(cells: RiverCells, position: FloatArray) -> IntArray:
    """Returns the states [N] of positions [N, 2] that are known to be on the river."""
    cell = np.ceil(position[:, 0] * cells.per_unit)
    return (cells.river.width * cell + position[:, 1]).astype(np.int64)


# ---- the continuous Wet Chicken as a benchmark: a model of what happens between its cells -------


def wet_chicken_continuous(
    cells: int = 2,
    epsilon: float = 0.1,
    length: int = PUBLISHED_SIZE,
    width: int = PUBLISHED_SIZE,
) -> Benchmark:
    """Returns the continuous Wet Chicken, cut into `cells` cells a unit of length.

    Its data comes from the river itself. Seen through cells that is no Markov process, so its model
    is an approximation, the better the more cells: x is taken to be uniform in its cell. π_b mixes
    the heuristic of Scholl et al. (2022), which an even number of cells can tell exactly, with the
    uniform policy. They published the river, but no experiment on it.
    """
    epsilon = share("epsilon", epsilon)
    river = RiverCells(river=ContinuousWetChicken(length=length, width=width), per_unit=cells)
    mdp = cell_mdp(river)
    greedy = Policy.deterministic(mdp, cell_heuristic(river))
    return Benchmark(
        name="wet-chicken/continuous",
        mdp=mdp,
        behavior=greedy.mix(Policy.uniform(mdp), epsilon),
        horizon=None,
        rewards="observed",
        value_bounds=(0.0, length / (1 - DISCOUNT)),  # the far end in every step
        simulator=river,
    )


def cell_heuristic(cells: RiverCells) -> IntArray:
    """Go to the two middle lanes and stay before the middle of the river [S], cells by their ends.

    Published for 5 × 5: paddle back beyond x = 2.5, go right in lanes below 2 and left in those
    above 3, and between them paddle back beyond x = 2 and hold beyond x = 1.
    """
    length, width = cells.river.length, cells.river.width
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
    width, end, extent = cells.river.width, float(cells.river.length), 1.0 / cells.per_unit
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
