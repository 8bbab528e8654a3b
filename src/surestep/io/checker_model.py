"""A model as model checkers store it, and how ours becomes one.

Checkers know neither the end of an episode nor a start distribution: every choice of theirs leads
somewhere, and there is one initial state. So ends become one absorbing state that carries the
label `end`, and a start in several states becomes one more state with the label `start`, whose
single action leads to them. All other labels are the model's own and stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from surestep._arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    RunWords,
    floats,
    indices,
    normalised_runs,
    offsets_of,
    refuse_where,
    repeated_in_run,
    run_lengths,
)
from surestep.errors import InvalidModel
from surestep.io.actions import Actions
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Labels
from surestep.model.transitions import owner

RESERVED = INITIAL, END, START, DEADLOCK = "init", "end", "start", "deadlock"
REWARD = "reward"  # the reward structure that counts among several, where nobody chooses


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckerModel:
    """States with choices, choices with transitions, rewards on each; S, K, T are the file's.

    A transition earns its own reward, that of its choice and that of the state it leaves. A state
    without choices stays where it is, and a choice without transitions ends the episode.
    """

    choice_offsets: IntArray  # [S+1]
    offsets: IntArray  # [K+1]
    successor: IntArray  # [T]
    probability: FloatArray  # [T]
    reward: FloatArray  # [T]
    choice_reward: FloatArray  # [K]
    state_reward: FloatArray  # [S]
    initial: BoolArray  # [S]
    actions: Actions
    labels: Mapping[str, BoolArray] = field(default_factory=dict)  # label → the states it marks [S]
    state_labels: Labels = None  # [S] what the states are called

    def __post_init__(self) -> None:
        """Checks the numbers while states and choices go by the names of the file."""
        states, transitions = self.num_states, self.successor.shape
        successor = indices("successor", self.successor, states, InvalidModel, self.name)
        probability = floats("probability", self.probability, transitions, InvalidModel, self.name)
        words = RunWords("probabilities", "choice", self.choice_name, self.name)
        floats("reward", self.reward, transitions, InvalidModel, self.name)
        choices = self.choice_reward.shape
        floats("reward", self.choice_reward, choices, InvalidModel, self.choice_name)
        floats("reward", self.state_reward, (states,), InvalidModel, lambda s: f"state {s}")
        refuse_where(
            repeated_in_run(successor, self.offsets),
            lambda t: f"the transition from {self.name(t)} to {successor[t]} is listed twice",
            "transition",
            InvalidModel,
        )
        object.__setattr__(self, "successor", successor)
        object.__setattr__(
            self, "probability", normalised_runs(probability, self.offsets, words, InvalidModel)
        )

    @property
    def num_states(self) -> int:
        """S."""
        return self.choice_offsets.size - 1

    @property
    def num_choices(self) -> int:
        """K."""
        return self.offsets.size - 1

    def choice_name(self, choice: int) -> str:
        """'state 3, choice 1', as the file numbers them."""
        state = owner(self.choice_offsets, choice)
        return f"state {state}, choice {choice - self.choice_offsets[state]}"

    def name(self, transition: int) -> str:
        """The choice to which a transition belongs."""
        return self.choice_name(owner(self.offsets, transition))

    def marked(self, label: str) -> BoolArray:
        """The states that a label marks [S]."""
        return self.labels.get(label, np.zeros(self.num_states, np.bool_))

    def marks(self) -> dict[str, BoolArray]:
        """The labels but those that say where episodes start and end."""
        return {label: states for label, states in self.labels.items() if label not in RESERVED}


def closed(mdp: FiniteMDP) -> CheckerModel:
    """The model with its ends and its start as states: ours first, then `end`, then `start`."""
    refuse_several_discounts(mdp)
    pairs, states, lengths = mdp.pairs, mdp.num_states, run_lengths(mdp.offsets)
    ends = lengths == 0
    # The states to be added, by their labels: where their one choice leads, and how likely.
    added: dict[str, tuple[IntArray, FloatArray]] = {}
    if ends.any():
        added[END] = np.array([states]), np.ones(1)
    first = np.flatnonzero(mdp.initial)
    if mdp.initial[first].tolist() != [1.0]:
        added[START] = first, mdp.initial[first]
    extra, total = len(added), states + len(added)
    rows, chances = [row for row, _ in added.values()], [chance for _, chance in added.values()]
    place = mdp.offsets[:-1][ends]  # of the transitions to the end
    reward = np.insert(mdp.reward, place, mdp.ending_reward[ends]) + 0.0  # −0 is written as 0
    return CheckerModel(
        choice_offsets=np.append(pairs.offsets, pairs.num_pairs + 1 + np.arange(extra)),
        offsets=offsets_of(np.append(np.maximum(lengths, 1), [row.size for row in rows])),
        successor=np.concatenate([np.insert(mdp.successor, place, states), *rows]),
        probability=np.concatenate([np.insert(mdp.probability, place, 1.0), *chances]),
        reward=np.append(reward, np.zeros(sum(row.size for row in rows))),
        choice_reward=np.zeros(pairs.num_pairs + extra),
        state_reward=np.zeros(total),
        initial=np.arange(total) == (total - 1 if START in added else first[0]),
        actions=Actions(
            np.append(pairs.action, np.zeros(extra, np.int64)),
            pairs.num_actions,
            pairs.action_labels,
        ),
        labels={
            **{label: np.append(marked, [False] * extra) for label, marked in mdp.marks.items()},
            **{label: np.arange(total) == states + i for i, label in enumerate(added)},
        },
    )


def refuse_several_discounts(mdp: FiniteMDP) -> None:
    """No file holds discounts, so the reader must be able to give one for all pairs."""
    refuse_where(
        mdp.discount != mdp.discount[0],
        lambda k: (
            f"the discount of {mdp.pairs.pair_name(k)} is {mdp.discount[k]}, that of "
            f"{mdp.pairs.pair_name(0)} is {mdp.discount[0]}; model files hold no discounts, so "
            "only a model with a single one can be written"
        ),
        "pair",
        InvalidModel,
    )


def chosen_reward(names: Mapping[str, str], wanted: str | None) -> str:
    """The identifier of the reward structure that is meant, of all identifiers and their names."""
    if wanted is None and len(names) == 1:
        return next(iter(names))
    name = REWARD if wanted is None else wanted
    matches = [identifier for identifier in names if names[identifier] == name]
    if not matches:
        raise InvalidModel(
            f"reward is {wanted!r}, expected one of the reward structures: "
            f"{', '.join(map(repr, names.values())) or 'there are none'}"
        )
    return matches[0]
