"""Worlds in which the truth is known, made from the data of a problem.

A kind of world is a frozen settings object with one method, `world`. What it returns knows its
truth, and draws the data that π_b would have collected there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np

from surestep._arrays import FloatArray, IntArray, is_number, run_owners
from surestep.certificates import Certifier, Posterior
from surestep.certificates.drawn import (
    ModelDraws,
    RewardDraws,
    draw_chunk,
    expected_cells,
    room_for,
)
from surestep.errors import InvalidParameter
from surestep.model.log import DecisionLog
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.rehearsal.completion import MOST_CELLS, Fill, Rows, completed, mdp_of_rows
from surestep.sampling import CountSampler, sample_log

WorldPrior = Literal["weight", "uniform", "jeffreys"]
ALPHA = {"uniform": 1.0, "jeffreys": 0.5}
MEMORY = 2**30  # bytes of one drawn world


class Data(NamedTuple):
    """What was collected in a world, over the transitions of its truth."""

    times: IntArray  # [T]
    earned: FloatArray  # [T] the sum of the rewards
    starts: IntArray  # [S]
    log: DecisionLog | None = None


class World(Protocol):
    """A model that counts as true, and a source of data."""

    truth: FiniteMDP

    def collect(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """The counts of that many episodes of π_b."""
        ...

    def record(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """The same with the log, for what looks at whole episodes."""
        ...


class WorldKind(Protocol):
    """A frozen dataclass of settings with one verb."""

    @property
    def name(self) -> str:
        """What results call it."""
        ...

    @property
    def is_one_world(self) -> bool:
        """Whether every world of the kind has the same truth, so that only the data differ."""
        ...

    def world(self, problem: Problem, rng: np.random.Generator) -> World:
        """One world, from the problem alone."""
        ...


@dataclass(frozen=True, slots=True)
class Completed:
    """The maximum-likelihood MDP, with rows of unseen pairs filled in; see `completed`."""

    fill: Fill

    def __post_init__(self) -> None:
        """Checks the fill."""
        check_fill(self.fill)

    @property
    def name(self) -> str:
        """What results call it."""
        return f"estimate, unseen: {self.fill}"

    @property
    def is_one_world(self) -> bool:
        """Only the data differ."""
        return True

    def world(self, problem: Problem, rng: np.random.Generator) -> World:
        """The completed MDP, in which π_b acts."""
        return Simulated.of(completed(problem, self.fill), problem.behavior)


@dataclass(frozen=True, slots=True)
class DrawnFromPosterior:
    """A draw from the Dirichlet posterior: "weight" spreads `weight` over the states of a row.

    "uniform" has weight 1 a state, "jeffreys" ½. Rewards are known or the observed means.
    """

    prior: WorldPrior = "weight"
    weight: float | None = None

    def __post_init__(self) -> None:
        """Checks the prior."""
        if not isinstance(self.prior, str) or self.prior not in get_args(WorldPrior):
            raise InvalidParameter(
                f"prior is {self.prior!r}, expected one of {', '.join(get_args(WorldPrior))}"
            )
        if self.prior != "weight" and self.weight is not None:
            raise InvalidParameter(
                f"weight is {self.weight!r}, but the prior {self.prior} has a weight of its own; "
                "expected none"
            )
        if self.prior == "weight" and not (is_number(self.weight) and 1e-3 <= self.weight <= 1e9):
            raise InvalidParameter(f"weight is {self.weight!r}, expected 0.001 to 1e9")

    @property
    def name(self) -> str:
        """What results call it."""
        return f"posterior, {f'weight {self.weight:g}' if self.prior == 'weight' else self.prior}"

    @property
    def is_one_world(self) -> bool:
        """Every world has other chances."""
        return False

    def alpha(self, num_states: int) -> float:
        """The weight of a state in a row."""
        return ALPHA[self.prior] if self.weight is None else self.weight / num_states

    def world(self, problem: Problem, rng: np.random.Generator) -> World:
        """One model of the posterior, in which π_b acts."""
        counts = problem.counts
        nothing = np.zeros(counts.pairs.num_pairs)
        no_rewards = RewardDraws(
            True, False, nothing, nothing, 0.0, 0.0, np.zeros(0), np.zeros(0, np.int64)
        )
        models = ModelDraws(
            counts=counts,
            discount=problem.single_discount,
            value_bounds=problem.value_bounds,
            alpha=self.alpha(problem.num_states),
            start_alpha=0.0,
            rewards=no_rewards,
            seed=int(rng.integers(2**63 - 1)),
        )
        used = ~counts.terminal[counts.pairs.state]
        cells = expected_cells(models, used)
        while True:
            drawn = room_for(models, cells, 1, MEMORY)
            draw_chunk(models, used, 0, drawn)
            if drawn.ends[0, -1] >= 0:
                break
            cells *= 2
        pair = run_owners(drawn.ends[0])
        # What the draw left over, a millionth at most, is shared out in proportion.
        share = drawn.share[0, : pair.size] / (1.0 - drawn.rest[0, pair])
        rows = Rows.of(pair, drawn.target[0, : pair.size].astype(np.int64), share)
        return Simulated.of(mdp_of_rows(problem, rows), problem.behavior)


@dataclass(frozen=True, slots=True)
class EpisodeBootstrap:
    """Episodes of the log, drawn again with replacement; the completed estimate counts as true."""

    fill: Fill = "self-loop"

    def __post_init__(self) -> None:
        """Checks the fill."""
        check_fill(self.fill)

    @property
    def name(self) -> str:
        """What results call it."""
        return f"episode bootstrap, unseen: {self.fill}"

    @property
    def is_one_world(self) -> bool:
        """Only the data differ."""
        return True

    def world(self, problem: Problem, rng: np.random.Generator) -> World:
        """The completed MDP of all episodes, with some of them as data."""
        if problem.log is None:
            raise InvalidParameter(
                "the problem has no log, and an episode bootstrap draws whole episodes; give it as "
                "Problem(log=…), or leave this kind of world out"
            )
        truth = completed(problem, self.fill)
        size = np.int64(problem.num_states)
        key = run_owners(truth.offsets) * size + truth.successor
        taken = np.searchsorted(key, problem.log.pair * size + problem.log.next_state)
        return Resampled(truth, problem.log, taken)


@dataclass(frozen=True, slots=True)
class Simulated:
    """A model in which π_b acts anew."""

    truth: FiniteMDP
    sampler: CountSampler

    @classmethod
    def of(cls, truth: FiniteMDP, behavior: Policy) -> Simulated:
        """The world of that truth."""
        # A log does not show what ends are worth, so the sampler must not either.
        silent = replace(truth, ending_reward=np.zeros(truth.num_pairs))
        return cls(truth, CountSampler.of(silent, behavior))

    def collect(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """Counts of episodes that end where the model says so, or after `horizon` steps."""
        times, starts = self.sampler.draw(episodes, horizon, rng)
        return Data(times, times * self.truth.reward, starts)

    def record(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """The log of such episodes."""
        log = sample_log(self.sampler.mdp, self.sampler.policy, episodes, horizon, rng)
        size = np.int64(self.truth.num_states)
        key = run_owners(self.truth.offsets) * size + self.truth.successor
        times = np.bincount(
            np.searchsorted(key, log.pair * size + log.next_state), minlength=key.size
        )
        return Data(times, times * self.truth.reward, starts_of(log), log)


@dataclass(frozen=True, slots=True)
class Resampled:
    """A model that was estimated from a log, and the episodes of that log."""

    truth: FiniteMDP
    log: DecisionLog
    taken: IntArray  # [N] the transition of each step

    def collect(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """Counts of episodes drawn with replacement, each as long as it was."""
        total = self.log.num_episodes
        return self.data_of(rng.multinomial(episodes, np.full(total, 1 / total)))

    def record(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """The log of episodes drawn with replacement."""
        chosen = rng.integers(0, self.log.num_episodes, episodes)
        data = self.data_of(np.bincount(chosen, minlength=self.log.num_episodes))
        return data._replace(log=self.log.episodes(chosen))

    def data_of(self, copies: IntArray) -> Data:
        """The counts of so many copies of each episode [E]."""
        by_step = np.repeat(copies, np.diff(self.log.episode_offsets))
        size, first = self.truth.num_transitions, self.log.state[self.log.episode_offsets[:-1]]
        return Data(
            np.rint(np.bincount(self.taken, by_step, size)).astype(np.int64),
            np.bincount(self.taken, by_step * self.log.reward, size),
            np.rint(np.bincount(first, copies, self.truth.num_states)).astype(np.int64),
        )


def starts_of(log: DecisionLog) -> IntArray:
    """Where the episodes of a log start [S]."""
    first = log.state[log.episode_offsets[:-1]]
    return np.bincount(first, minlength=log.pairs.num_states)


def default_family(problem: Problem, certifier: Certifier) -> tuple[WorldKind, ...]:
    """All completions, posteriors under other priors than the certifier's, and the bootstrap.

    Worlds in which every row leads everywhere are left out where that makes them too large.
    """
    size = problem.num_states
    unseen = int(np.count_nonzero(problem.unseen_pairs()))
    family: list[WorldKind] = [
        Completed(fill)
        for fill in get_args(Fill)
        if fill != "uniform" or unseen * size <= MOST_CELLS
    ]
    assumed = None
    if isinstance(certifier, Posterior):
        assumed = (certifier.prior, certifier.prior_weight)
    for kind in (DrawnFromPosterior("weight", 1.0), DrawnFromPosterior("weight", 5.0)):
        if assumed != ("weight", kind.weight):
            family.append(kind)
    if problem.counts.pairs.num_pairs * size <= MOST_CELLS:
        for prior in ("jeffreys", "uniform"):
            if assumed is None or assumed[0] != prior:
                family.append(DrawnFromPosterior(prior))  # type: ignore[arg-type]
    if problem.log is not None:
        family.append(EpisodeBootstrap())
    return tuple(family)


def check_fill(fill: object) -> None:
    """Refuses a rule that does not exist."""
    if not isinstance(fill, str) or fill not in get_args(Fill):
        raise InvalidParameter(f"fill is {fill!r}, expected one of {', '.join(get_args(Fill))}")
