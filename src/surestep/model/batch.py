"""Many models of one shape: the same pairs and successors, other probabilities and rewards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IndexArray, IntArray, RunWords
from surestep._reprs import short_repr
from surestep.errors import InvalidModel, ShapeMismatch
from surestep.model.mdp import FiniteMDP, read_discount, read_initial
from surestep.model.pairs import Pairs, check_same_pairs
from surestep.model.transitions import read_successors, transition_name, united


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
    probability: FloatArray  # [B, T]
    expected_reward: FloatArray  # [B, K]
    discount: FloatArray  # [K]
    initial: FloatArray  # [S]

    __repr__ = short_repr("num_models", "num_states", "pairs.num_pairs", "discount")

    __setstate__ = arrays.restore_frozen

    def __post_init__(self) -> None:
        """Checks everything once and freezes the arrays."""
        pairs = self.pairs
        arrays.expect("pairs", pairs, Pairs, InvalidModel)
        offsets, successor = read_successors(pairs, self.offsets, self.successor, InvalidModel)
        probability = arrays.floats("probability", self.probability, None, InvalidModel)
        if probability.ndim != 2 or probability.shape[0] == 0:
            raise InvalidModel(
                f"probability has shape {probability.shape}, expected [models, {successor.size}]"
            )
        size = probability.shape[0]
        arrays.floats("probability", probability, (size, successor.size), InvalidModel)
        reward = arrays.floats(
            "expected_reward", self.expected_reward, (size, pairs.num_pairs), InvalidModel
        )
        words = RunWords(
            "transition probabilities",
            "row",
            pairs.pair_name,
            lambda t: transition_name(pairs, offsets, successor, t),
            " (or 0, to end the episode)",
            "model",
        )
        probability = arrays.normalised_runs(
            probability, offsets, words, InvalidModel, zeros_allowed=True
        )
        arrays.keep(
            self,
            offsets=offsets,
            successor=successor,
            probability=probability,
            expected_reward=reward,
            discount=read_discount(pairs, self.discount),
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
