"""The continuous Wet Chicken as a benchmark: a model of what happens between its cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.environments.benchmark import Benchmark
from surestep.environments.building import check_size, mdp_of_rows, share
from surestep.environments.continuous_wet_chicken import ContinuousWetChicken, RiverCells
from surestep.environments.wet_chicken import (
    ACROSS,
    ALONG,
    DISCOUNT,
    DRIFT,
    HOLD,
    LEFT,
    PADDLE_BACK,
    PUBLISHED_SIZE,
    RIGHT,
    TURBULENCE,
    stream,
)
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Policy


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
