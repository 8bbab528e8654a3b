"""Many models, or data sets and their problems, of one shape: arrays with a leading axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import BoolArray, FloatArray, IndexArray, IntArray, RunWords
from surestep._reprs import short_repr
from surestep._settings import Each
from surestep.errors import InvalidCounts, InvalidModel, ShapeMismatch
from surestep.model.counts import LARGEST_TOTAL, Counts, LoggedRewards
from surestep.model.mdp import FiniteMDP, read_initial
from surestep.model.pairs import Pairs, check_same_pairs, read_noun, united
from surestep.model.policy import Policy
from surestep.model.problem import Problem, UnseenRule, most_actions


@dataclass(frozen=True, slots=True, eq=False)
class MDPBatch:
    """B models over one set of pairs and successors, for `evaluate_batch` and `optimal_batch`.

    A row of zeros ends the episode in that model: models estimated from different data sets share
    the successors that any of them has seen. The expected rewards are part of the model as they
    are: what was lost when they were rounded is not in any error bound.
    """

    pairs: Pairs
    offsets: IntArray  # [K+1]
    successor: IndexArray  # [T]
    probability: Annotated[FloatArray, Each("BT", 0)]
    expected_reward: Annotated[FloatArray, Each("BK")]
    discount: Annotated[FloatArray, Each("K", 0, 1)]
    initial: FloatArray  # [S]

    __repr__ = short_repr("num_models", "num_states", "pairs.num_pairs", "discount")

    __setstate__ = arrays.restore_frozen

    def __post_init__(self) -> None:
        """Checks everything once and freezes the arrays."""
        read_noun(self, InvalidModel)
        pairs, remedy = self.pairs, " (or 0, to end the episode)"
        words = RunWords("transition probabilities", "row", pairs.pair_name, remedy, "model")
        arrays.keep(
            self,
            probability=arrays.normalised_runs(
                self.probability, self.offsets, words, InvalidModel, zeros_allowed=True
            ),
            initial=read_initial(pairs, self.initial),
        )

    @classmethod
    def from_models(cls, models: Sequence[FiniteMDP]) -> MDPBatch:
        """Returns the batch of models with the same pairs, discounts and start.

        Their successors may differ: the batch has those of all of them.
        """
        wrong = not isinstance(models, Sequence) or len(models) == 0
        if wrong or not all(isinstance(model, FiniteMDP) for model in models):
            raise InvalidModel(f"models is {arrays.shown(models)}, expected a list of FiniteMDPs")
        first = models[0]
        for index, model in enumerate(models):
            check_same_pairs("model 0", first.pairs, f"model {index}", model.pairs)
            for what in ("discount", "initial"):
                if not np.array_equal(getattr(model, what), getattr(first, what)):
                    raise ShapeMismatch(f"model {index} has another {what} than model 0")
        offsets, successor, places = united(first.pairs, models)
        probability = np.zeros((len(models), successor.size))
        for row, place, model in zip(probability, places, models, strict=True):
            row[place] = model.probability
        return cls(
            first.pairs,
            offsets,
            successor,
            arrays.own(probability),
            arrays.own(np.stack([model.expected_reward for model in models])),
            first.discount,
            first.initial,
        )

    @property
    def num_models(self) -> int:
        """B, the number of models."""
        return len(self.probability)

    @property
    def num_states(self) -> int:
        """|S|."""
        return self.pairs.num_states

    def model(self, index: int) -> FiniteMDP:
        """One model of the batch; its rewards are the expected ones of its pairs."""
        chances, reward = self.probability[index], self.expected_reward[index]
        present = chances > 0
        pair = arrays.run_owners(self.offsets)[present]
        lengths = np.bincount(pair, minlength=self.pairs.num_pairs)
        return FiniteMDP(
            self.pairs,
            arrays.offsets_of(lengths),
            self.successor[present],
            chances[present],
            reward[pair],
            self.discount,
            self.initial,
            np.where(lengths == 0, reward, 0.0),
            endless=None,
        )


@dataclass(frozen=True, slots=True, eq=False)
class CountsBatch:
    """The counts of B data sets over one set of pairs and successors.

    `rewards` are known, the same for all data sets ([K] or [T]), or sums of what each observed
    ([B, K] or [B, T]).
    """

    pairs: Pairs
    offsets: IntArray  # [K+1]
    successor: IndexArray  # [T]
    times: Annotated[IntArray, Each("BT", 0)]
    rewards: LoggedRewards
    starts: Annotated[IntArray, Each("BS", 0)]
    # Episodes are known to end there; None means nowhere
    terminal: Annotated[BoolArray, Each("S")] = field(default=None)  # type: ignore[arg-type]
    visits: IntArray = field(init=False)  # [B, K]

    __repr__ = short_repr("num_data_sets", "pairs.num_states", "pairs.num_pairs", "visits")

    __setstate__ = arrays.restore_frozen

    def __post_init__(self) -> None:
        """Checks everything once and freezes the arrays."""
        read_noun(self, InvalidCounts)
        arrays.expect("rewards", self.rewards, LoggedRewards, InvalidCounts)
        times, starts, rewards = self.times, self.starts, self.rewards
        visits = arrays.run_sums(times, self.offsets)
        observed = visits if rewards.per == "pair" else times
        shape = observed.shape[1:] if rewards.known else observed.shape
        rewards = rewards.changed(
            lambda values: arrays.freeze(arrays.floats("reward", values, shape, InvalidCounts))
        )
        arrays.keep(self, rewards=rewards, visits=arrays.own(visits))
        wrong: BoolArray = np.full(len(times), rewards.least is not None)  # `Counts` knows of these
        wrong |= ~starts.any(axis=1) | visits[:, self.terminal[self.pairs.state]].any(axis=1)
        for numbers in (times, starts):
            wrong |= numbers.sum(axis=1, dtype=np.float64) > LARGEST_TOTAL
        if not rewards.known:
            wrong |= ((observed == 0) & (rewards.values != 0)).any(axis=1)
        for index in np.flatnonzero(wrong).tolist():
            try:
                self.counts(index)
            except InvalidCounts as reason:
                raise InvalidCounts(f"data set {index}: {reason}") from None

    @property
    def num_data_sets(self) -> int:
        """B, the number of data sets."""
        return len(self.times)

    def counts(self, index: int) -> Counts:
        """Returns the counts of one data set."""
        rewards = self.rewards
        if not rewards.known:
            rewards = rewards.changed(lambda values: values[index])
        return Counts(
            self.pairs,
            self.offsets,
            self.successor,
            self.times[index],
            rewards,
            self.starts[index],
            self.terminal,
        )

    def expected_reward(self) -> FloatArray:
        """Computes Σ_s' P̂ R̂, the reward of each pair in the estimate [B, K]; 0 if not visited."""
        visits, logged = np.maximum(self.visits, 1), self.rewards
        seen = self.visits > 0
        if logged.per == "pair":
            return np.where(seen, logged.values if logged.known else logged.values / visits, 0.0)
        earned = self.times * logged.values if logged.known else logged.values
        return np.where(seen, arrays.run_sums(earned, self.offsets) / visits, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProblemBatch:
    """The problems of B data sets that the same behavior policy made, on the same terms."""

    counts: CountsBatch
    behavior: Policy  # π_b
    discount: float  # γ
    value_bounds: tuple[float, float]
    unseen: UnseenRule = "terminal"

    __repr__ = short_repr(
        "counts.num_data_sets", "num_states", "num_actions", "discount", "value_bounds", "unseen"
    )

    def __post_init__(self) -> None:
        """Checks the terms, as those of the first problem."""
        arrays.expect("counts", self.counts, CountsBatch)
        first = self.problem(0)
        object.__setattr__(self, "discount", first.discount)
        object.__setattr__(self, "value_bounds", first.value_bounds)

    @property
    def num_states(self) -> int:
        """|S|, ends of episodes included."""
        return self.counts.pairs.num_states

    @property
    def num_actions(self) -> int:
        """|A|, the largest number of enabled actions of a state."""
        return most_actions(self.counts.pairs)

    @classmethod
    def from_problems(cls, problems: Sequence[Problem]) -> ProblemBatch:
        """Returns the batch of problems on the same terms, with the same ends of episodes.

        Their transitions may differ: the batch has those of all of them.
        """
        first, every = problems[0], [problem.counts for problem in problems]
        pairs, rewards = first.counts.pairs, first.counts.rewards
        for index, problem in enumerate(problems):
            check_same_pairs("problem 0", pairs, f"problem {index}", problem.counts.pairs)
            for what in ("behavior", "single_discount", "value_bounds", "unseen"):
                if getattr(problem, what) != getattr(first, what):
                    raise ShapeMismatch(f"problem {index} has another {what} than problem 0")
            if not np.array_equal(problem.counts.terminal, first.counts.terminal):
                raise ShapeMismatch(f"problem {index} has other ends of episodes than problem 0")
        offsets, successor, places = united(pairs, every)
        times = np.zeros((len(every), successor.size), np.int64)
        earned = np.zeros(times.shape)
        for b, (counts, place) in enumerate(zip(every, places, strict=True)):
            values = counts.rewards.values
            times[b, place] = counts.times
            if rewards.per == "transition":
                earned[b, place] = counts.times * values if rewards.known else values
        if rewards.per == "transition":
            rewards = LoggedRewards(earned, "transition", False)
        elif not rewards.known:
            values = np.stack([counts.rewards.values for counts in every])
            rewards = LoggedRewards(values, "pair", False)
        return cls(
            counts=CountsBatch(
                pairs,
                arrays.own(offsets),
                successor,
                arrays.own(times),
                rewards,
                np.stack([counts.starts for counts in every]),
                first.counts.terminal,
            ),
            behavior=first.behavior,
            discount=first.single_discount,
            value_bounds=first.value_bounds,
            unseen=first.unseen,
        )

    def problem(self, index: int) -> Problem:
        """Returns the problem of one data set."""
        return Problem(
            counts=self.counts.counts(index),
            behavior=self.behavior,
            discount=self.discount,
            value_bounds=self.value_bounds,
            unseen=self.unseen,
        )

    def expected_reward(self) -> FloatArray:
        """Computes the reward of each pair in the estimate [B, K], unseen ones as the rule says."""
        counts = self.counts
        if self.unseen == "pessimistic":
            unseen = np.where(counts.terminal[counts.pairs.state], 0.0, self.value_bounds[0])
        else:
            unseen = np.zeros(counts.pairs.num_pairs)
        if counts.rewards.known and counts.rewards.per == "pair":
            ends = counts.terminal[counts.pairs.state]
            keeps = ends | (self.unseen == "terminal")
            unseen = np.where(keeps, counts.rewards.values, unseen)
        return np.where(counts.visits > 0, counts.expected_reward(), unseen)
