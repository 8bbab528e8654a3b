"""The continuous Wet Chicken of Scholl et al. (2022): a river without squares, cut into cells.

The canoe is x ≥ 0 down the river in lane y. A step leads to x̂ = x + Δx + v(y) + U, U uniform on
[−τ(y), τ(y)], as on the river of squares but without rounding: x̂ < 0 ends at the shore, x = 0;
x̂ ≥ length goes over the waterfall, back to (0, 0). A step pays the x it leads to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surestep._arrays import (
    FloatArray,
    IntArray,
    expect,
    expect_count,
    floats,
    offsets_of,
    refuse_where,
    whole_numbers,
)
from surestep.environments.building import MOST_STATES, check_size, whole_number
from surestep.environments.wet_chicken import (
    ACROSS,
    ACTIONS,
    ALONG,
    PUBLISHED_SIZE,
    checked_size,
    stream,
)
from surestep.errors import InvalidParameter
from surestep.model.log import DecisionLog
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
        expect("rng", rng, np.random.Generator)
        before = self.positions(position)
        chosen = whole_numbers("action", action, (len(before),), InvalidParameter)
        refuse_where(
            (chosen < 0) | (chosen >= len(ACTIONS)),
            lambda i: f"action[{i}] is {chosen[i]}, expected 0 to {len(ACTIONS) - 1}",
            "action",
            InvalidParameter,
        )
        return moved(self, before, chosen, rng)

    def positions(self, position: object) -> FloatArray:
        """Positions [N, 2] on the river: 0 ≤ x < length, and y a lane."""
        rows = floats("position", position, None, InvalidParameter)
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise InvalidParameter(f"position has shape {rows.shape}, expected rows (x, y)")
        x, y = rows.T
        refuse_where(
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
        expect("river", self.river, ContinuousWetChicken)
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
        expect("policy", policy, Policy)
        pairs = self.pairs
        check_same_pairs("the river in cells", pairs, "the policy", policy.pairs)
        expect_count("episodes", episodes)
        expect_count("horizon", horizon)
        expect("rng", rng, np.random.Generator)
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
            offsets_of(np.full(episodes, horizon)),
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
