"""Holds many models, data sets or problems of one shape, as arrays with a leading axis."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

import surestep._arrays as arrays
from surestep._settings import Each
from surestep.errors import InvalidCounts, InvalidModel, ShapeMismatch, named_in_errors
from surestep.model.counts import LARGEST_TOTAL, Counts, LoggedRewards
from surestep.model.mdp import FiniteMDP, read_initial
from surestep.model.noun import noun
from surestep.model.pairs import Transitions, check_same_pairs, read_noun, spread_rows, united
from surestep.model.policy import Policy
from surestep.model.problem import Problem, UnseenRule, most_actions


@noun("num_models", "num_states", "pairs.num_pairs", "discount")
@dataclass(frozen=True, slots=True, eq=False)
class MDPBatch(Transitions):
    """B models over one set of pairs and successors, for `evaluate_batch` and `optimal_batch`.

    Parameters
    ----------
    pairs : Pairs
        The enabled actions of each state.
    offsets : array of int [K+1]
        Pair k owns the transitions `offsets[k]` … `offsets[k+1] − 1`.
    successor : array of int [T]
        The state that each transition leads to in any of the models.
    probability : array of float [B, T]
        The probabilities; a row of zeros ends the episode in that model.
    expected_reward : array of float [B, K]
        The expected rewards of pairs. Error bounds take them as exact.
    discount : array of float [K]
        The discount of each pair, from 0 to 1.
    initial : array of float [S]
        The start distribution.

    Examples
    --------
    >>> mdp = surestep.FiniteMDP.from_dense([[[1.0], [1.0]]], [[0.0, 1.0]], discount=0.5)
    >>> batch = surestep.MDPBatch.from_models([mdp, mdp.with_rewards([[3.0, 0.0]])])
    >>> surestep.optimal_batch(batch).value
    array([[2.],
           [6.]])
    """

    probability: Annotated[arrays.FloatArray, Each("BT", 0)]
    expected_reward: Annotated[arrays.FloatArray, Each("BK")]
    discount: Annotated[arrays.FloatArray, Each("K", 0, 1)]
    initial: arrays.FloatArray  # [S]

    def __post_init__(self) -> None:
        read_noun(self, InvalidModel)
        words = arrays.RunWords(
            "transition probabilities",
            "row",
            self.pairs.pair_name,
            " (or 0, to end the episode)",
            "model",
        )
        arrays.keep(
            self,
            probability=arrays.normalised_runs(
                self.probability, self.offsets, words, InvalidModel, zeros_allowed=True
            ),
            initial=read_initial(self.pairs, self.initial),
        )

    @classmethod
    def from_models(cls, models: Sequence[FiniteMDP]) -> "MDPBatch":
        """Makes the batch of several models.

        Parameters
        ----------
        models : sequence of FiniteMDP
            Models with the same pairs, discounts and start; their successors may differ.

        Returns
        -------
        MDPBatch
            It has the successors of all of them.
        """
        if (
            not isinstance(models, Sequence)
            or len(models) == 0
            or not all(isinstance(model, FiniteMDP) for model in models)
        ):
            raise InvalidModel(f"models is {arrays.shown(models)}, expected a list of FiniteMDPs")
        first = models[0]
        for index, model in enumerate(models):
            check_same_pairs("model 0", first.pairs, f"model {index}", model.pairs)
            for what in ("discount", "initial"):
                if not np.array_equal(getattr(model, what), getattr(first, what)):
                    raise ShapeMismatch(f"model {index} has another {what} than model 0")
        together, places = united(first.pairs, models)
        size = together.successor.size
        probability = spread_rows([model.probability for model in models], places, size)
        return cls(
            first.pairs,
            together.offsets,
            together.successor,
            arrays.own(probability),
            arrays.own(np.stack([model.expected_reward for model in models])),
            first.discount,
            first.initial,
        )

    @property
    def num_models(self) -> int:
        """Returns B, the number of models."""
        return len(self.probability)

    def model(self, index: int) -> FiniteMDP:
        """Takes one model out of the batch.

        Parameters
        ----------
        index : int
            Its number.

        Returns
        -------
        FiniteMDP
            The model; its rewards are the expected rewards of its pairs.
        """
        chances = self.probability[index]
        reward = self.expected_reward[index]
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


@noun("num_data_sets", "pairs.num_states", "pairs.num_pairs", "visits")
@dataclass(frozen=True, slots=True, eq=False)
class CountsBatch(Transitions):
    """The counts of B data sets over one set of pairs and successors.

    Parameters
    ----------
    pairs : Pairs
        The enabled actions of each state.
    offsets : array of int [K+1]
        Pair k owns the transitions `offsets[k]` … `offsets[k+1] − 1`.
    successor : array of int [T]
        The state that each transition leads to.
    times : array of int [B, T]
        The number of times each data set has each transition.
    rewards : LoggedRewards
        Known rewards, the same for all data sets ([K] or [T]), or sums for each data set ([B, K] or
        [B, T]).
    starts : array of int [B, S]
        The number of episodes that started in each state.
    terminal : array of bool [S], optional
        States in which episodes are known to end; by default none.

    Attributes
    ----------
    visits : array of int [B, K]
        The number of times each data set visits each pair.

    Examples
    --------
    >>> from surestep.model import CountsBatch, LoggedRewards
    >>> rewards = LoggedRewards([1.0], "pair", known=True)
    >>> CountsBatch(surestep.Pairs.full(1, 1), [0, 1], [0], [[3], [5]], rewards, [[1], [1]])
    CountsBatch(num_data_sets=2, num_states=1, num_pairs=1, visits=3…5)
    """

    times: Annotated[arrays.IntArray, Each("BT", 0)]
    rewards: LoggedRewards
    starts: Annotated[arrays.IntArray, Each("BS", 0)]
    terminal: Annotated[arrays.BoolArray, Each("S")] = field(default=None)  # type: ignore[arg-type]
    visits: arrays.IntArray = field(init=False)  # [B, K]

    def __post_init__(self) -> None:
        """Checks all data sets at once; `Counts` names the fault of the first bad one."""
        read_noun(self, InvalidCounts)
        arrays.expect("rewards", self.rewards, LoggedRewards, InvalidCounts)
        rewards = self.rewards
        visits = arrays.run_sums(self.times, self.offsets)
        observed = visits if rewards.per == "pair" else self.times
        shape = observed.shape[1:] if rewards.known else observed.shape
        rewards = rewards.changed(
            lambda values: arrays.freeze(arrays.floats("reward", values, shape, InvalidCounts))
        )
        arrays.keep(self, rewards=rewards, visits=arrays.own(visits))
        wrong: arrays.BoolArray = np.full(
            len(self.times), rewards.least is not None
        )  # `Counts` checks these
        wrong |= ~self.starts.any(axis=1) | visits[:, self.terminal[self.pairs.state]].any(axis=1)
        for numbers in (self.times, self.starts):
            wrong |= numbers.sum(axis=1, dtype=np.float64) > LARGEST_TOTAL
        if not rewards.known:
            wrong |= ((observed == 0) & (rewards.values != 0)).any(axis=1)
        for index in np.flatnonzero(wrong).tolist():
            with named_in_errors(f"data set {index}", InvalidCounts):
                self.counts(index)

    @property
    def num_data_sets(self) -> int:
        """Returns B, the number of data sets."""
        return len(self.times)

    def counts(self, index: int) -> Counts:
        """Takes the counts of one data set out of the batch.

        Parameters
        ----------
        index : int
            The number of the data set.

        Returns
        -------
        Counts
            Its counts.
        """
        return Counts(
            self.pairs,
            self.offsets,
            self.successor,
            self.times[index],
            self.rewards
            if self.rewards.known
            else self.rewards.changed(lambda values: values[index]),
            self.starts[index],
            self.terminal,
        )

    def expected_reward(self) -> arrays.FloatArray:
        """Computes the reward Σ_s' P̂ R̂ of each pair in the estimates.

        Returns
        -------
        array of float [B, K]
            It has 0 at pairs that were not visited.
        """
        logged = self.rewards
        visits = np.maximum(self.visits, 1)
        seen = self.visits > 0
        if logged.per == "pair":
            return np.where(seen, logged.values if logged.known else logged.values / visits, 0.0)
        earned = self.times * logged.values if logged.known else logged.values
        return np.where(seen, arrays.run_sums(earned, self.offsets) / visits, 0.0)


@noun("counts.num_data_sets", "num_states", "num_actions", "discount", "value_bounds", "unseen")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProblemBatch:
    """The problems of B data sets of one behavior policy, with the same discount and bounds.

    Parameters
    ----------
    counts : CountsBatch
        The data sets.
    behavior : Policy
        The behavior policy π_b of all of them.
    discount : float
        The discount γ.
    value_bounds : tuple of float
        Bounds (low, high) of every value of the true MDP.
    unseen : {"terminal", "pessimistic"}, default "terminal"
        The worth of a pair that a data set never visits, as in `Problem`.

    Examples
    --------
    >>> from surestep.model import ProblemBatch
    >>> counts = surestep.Counts.from_dense([[[3, 1]], [[0, 0]]], rewards=[[1.0], [0.0]])
    >>> problem = surestep.Problem(
    ...     counts=counts, behavior=np.ones((2, 1)), discount=0.9, value_bounds=(0, 10)
    ... )
    >>> ProblemBatch.from_problems([problem, problem]).problem(1).discount
    0.9
    """

    counts: CountsBatch
    behavior: Policy  # π_b
    discount: float  # γ
    value_bounds: tuple[float, float]
    unseen: UnseenRule = "terminal"

    def __post_init__(self) -> None:
        arrays.expect("counts", self.counts, CountsBatch)
        first = self.problem(0)
        arrays.keep(self, discount=first.discount, value_bounds=first.value_bounds)

    @property
    def num_states(self) -> int:
        """Returns |S|, ends of episodes included."""
        return self.counts.pairs.num_states

    @property
    def num_actions(self) -> int:
        """Returns |A|, the largest number of enabled actions of a state."""
        return most_actions(self.counts.pairs)

    @classmethod
    def from_problems(cls, problems: Sequence[Problem]) -> "ProblemBatch":
        """Makes the batch of several problems.

        Parameters
        ----------
        problems : sequence of Problem
            Problems with the same behavior policy, discount, value bounds, `unseen` and ends of
            episodes.

        Returns
        -------
        ProblemBatch
            It has the transitions of all of them.
        """
        first = problems[0]
        every = [problem.counts for problem in problems]
        pairs = first.counts.pairs
        rewards = first.counts.rewards
        for index, problem in enumerate(problems):
            check_same_pairs("problem 0", pairs, f"problem {index}", problem.counts.pairs)
            for what in ("behavior", "single_discount", "value_bounds", "unseen"):
                if getattr(problem, what) != getattr(first, what):
                    raise ShapeMismatch(f"problem {index} has another {what} than problem 0")
            if not np.array_equal(problem.counts.terminal, first.counts.terminal):
                raise ShapeMismatch(f"problem {index} has other ends of episodes than problem 0")
        together, places = united(pairs, every)
        size = together.successor.size
        times = spread_rows([counts.times for counts in every], places, size)
        if rewards.per == "transition":
            earned = [
                counts.times * counts.rewards.values if rewards.known else counts.rewards.values
                for counts in every
            ]
            rewards = LoggedRewards(spread_rows(earned, places, size), "transition", False)
        elif not rewards.known:
            values = np.stack([counts.rewards.values for counts in every])
            rewards = LoggedRewards(values, "pair", False)
        return cls(
            counts=CountsBatch(
                pairs,
                arrays.own(together.offsets),
                together.successor,
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
        """Takes the problem of one data set out of the batch.

        Parameters
        ----------
        index : int
            The number of the data set.

        Returns
        -------
        Problem
            Its problem.
        """
        return Problem(
            counts=self.counts.counts(index),
            behavior=self.behavior,
            discount=self.discount,
            value_bounds=self.value_bounds,
            unseen=self.unseen,
        )

    def expected_reward(self) -> arrays.FloatArray:
        """Computes the reward of each pair in the estimates; `unseen` values unseen pairs.

        Returns
        -------
        array of float [B, K]
            The expected rewards.
        """
        counts = self.counts
        rewards = counts.rewards
        wary = (self.unseen == "pessimistic") & ~counts.terminal[counts.pairs.state]
        return np.where(
            counts.visits > 0,
            counts.expected_reward(),
            np.where(
                wary,
                self.value_bounds[0],
                rewards.values if rewards.known and rewards.per == "pair" else 0.0,
            ),
        )
