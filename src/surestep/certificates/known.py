"""Facts of the data that certifiers may be told, where nobody gave them settings."""

from __future__ import annotations

from typing import Any, NamedTuple

from surestep.certificates.episodes import Logger
from surestep.certificates.ranges import Ranges


class Split(NamedTuple):
    """The split of a log into a part that chooses the policy, and one that judges it."""

    train_share: float
    logger: Logger


class Known(NamedTuple):
    """Facts about the data and statements of the user; None where there are none."""

    delta: float | None = None
    seed: int | None = None
    split: Split | None = None  # None where the data cannot be split
    reward_bounds: tuple[float, float] | None = None  # of single rewards, as declared
    ranges: Ranges | None = None  # on the way and at ends, where they were declared themselves
    rewards_seen: tuple[float, float] | None = None  # the smallest and the largest, and 0
    rewards_vary: bool = False  # one transition earned different rewards
    returns: tuple[float, float] | None = None  # the bounds of returns, declared or seen
    bound: str | None = None  # the published one that goes with the algorithm
    n_wedge: int | None = None  # where it was fixed before the data
    transitions: int = 0  # different ones, in the data

    @property
    def possible_rewards(self) -> tuple[float, float] | None:
        """Returns the bounds of single rewards as declared, or else those seen."""
        return self.rewards_seen if self.reward_bounds is None else self.reward_bounds

    def usual(self) -> dict[str, Any]:
        """Returns what every kind is told that has such settings."""
        split = {} if self.split is None else self.split._asdict()
        told = {"delta": self.delta, "seed": self.seed, **split}
        told |= {"bound": self.bound, "n_wedge": self.n_wedge}
        return told | ends("reward", self.reward_bounds) | ends("return", self.returns)


def ends(what: str, bounds: tuple[float, float] | None) -> dict[str, float | None]:
    """Returns the settings that bound rewards or returns."""
    low, high = (None, None) if bounds is None else bounds
    return {f"{what}_low": low, f"{what}_high": high}
