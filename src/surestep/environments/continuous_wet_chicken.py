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
import surestep.environments.wet_chicken as squares
from surestep._arrays import FloatArray, IntArray
from surestep._settings import Settings
from surestep.environments.benchmark import Benchmark
from surestep.environments.building import Length, Share, check_size, mdp_of_rows
from surestep.environments.wet_chicken import ACROSS, ALONG, DISCOUNT, PUBLISHED_SIZE, TURBULENCE
from surestep.model.log import DecisionLog
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Pairs, check_same_pairs
from surestep.model.policy import Policy
from surestep.sampling import drawing


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
        return Pairs.full(states, len(squares.ACTIONS), action_labels=squares.ACTIONS)

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
        velocity, turbulence = squares.stream(self.width)
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


# ---- the continuous Wet Chicken as a benchmark: a model of what happens between its cells -------


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
        [squares.PADDLE_BACK, squares.RIGHT, squares.LEFT, squares.PADDLE_BACK, squares.HOLD],
        squares.DRIFT,
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
    velocity, turbulence = squares.stream(width)
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
