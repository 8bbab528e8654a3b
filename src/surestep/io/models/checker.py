"""Converts models to the form of model checkers and back.

Checkers know neither the end of an episode nor a start distribution: every choice leads somewhere,
and there is one initial state. So ends become one absorbing state with the label `end`, and a start
in several states becomes one more state with the label `start`, whose single action leads to them.
All other labels stay. The conversion back recognises these states, even in files of other tools.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

import surestep._arrays as arrays
from surestep._settings import Each, read_arrays
from surestep.errors import InvalidModel
from surestep.model.mdp import FiniteMDP, spread_discount
from surestep.model.pairs import Labels, Pairs, picked_labels
from surestep.planning.ends import entered_from

RESERVED = INITIAL, END, START, DEADLOCK = "init", "end", "start", "deadlock"
UNIFORM = "uniform"  # a start equally often in all initial states


class Actions(NamedTuple):
    """The action of each choice, as a file numbers and names them."""

    number: arrays.IntArray  # [K] in the file's own numbering, 0 … num_actions − 1
    num_actions: int
    names: Sequence[str | None] | None = None  # [num_actions], if the file gives any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckerModel:
    """A model as checkers store it: states have choices, choices have transitions [S, K, T].

    A transition earns its own reward, that of its choice and that of the state it leaves. A state
    without choices stays where it is, and a choice without transitions ends the episode.
    """

    choice_offsets: arrays.IntArray  # [S+1]
    offsets: arrays.IntArray  # [K+1]
    successor: Annotated[arrays.IndexArray, Each("T", 0, below="S")]
    probability: Annotated[arrays.FloatArray, Each("T", 0)]
    reward: Annotated[arrays.FloatArray, Each("T")]
    choice_reward: Annotated[arrays.FloatArray, Each("K")]
    state_reward: Annotated[arrays.FloatArray, Each("S")]
    initial: arrays.BoolArray  # [S]
    actions: Actions
    labels: Mapping[str, arrays.BoolArray] = field(
        default_factory=dict
    )  # label → the states it marks [S]
    state_labels: Labels = None  # [S] names of the states

    def __post_init__(self) -> None:
        """Checks the numbers; messages number states and choices as the file does."""
        sizes = {"S": self.num_states, "K": self.offsets.size - 1, "T": int(self.offsets[-1])}
        names = {
            "S": "state {}".format,
            "K": self.choice_name,
            "T": lambda t: self.choice_name(arrays.owner(self.offsets, t)),
        }
        read_arrays(self, InvalidModel, sizes, names)
        words = arrays.RunWords("probabilities", "choice", self.choice_name)
        arrays.keep(
            self,
            probability=arrays.normalised_runs(self.probability, self.offsets, words, InvalidModel),
        )

    @property
    def num_states(self) -> int:
        """Returns S."""
        return self.choice_offsets.size - 1

    def choice_name(self, choice: int) -> str:
        """Returns 'state 3, choice 1', as the file numbers them."""
        state = arrays.owner(self.choice_offsets, choice)
        return f"state {state}, choice {choice - self.choice_offsets[state]}"

    def marked(self, label: str) -> arrays.BoolArray:
        """Returns the states that a label marks [S]."""
        return self.labels.get(label, np.zeros(self.num_states, np.bool_))

    def marks(self) -> dict[str, arrays.BoolArray]:
        """Returns the labels and the states they mark, except labels of starts and ends."""
        return {label: states for label, states in self.labels.items() if label not in RESERVED}


# ---- from our model to a checker's -----------------------------------------------------------


def to_checker(mdp: FiniteMDP) -> CheckerModel:
    """Returns the model with its ends and its start as states: ours first, then `end`, `start`."""
    pairs = mdp.pairs
    for k, others in arrays.first_where(mdp.discount != mdp.discount[0], "pair"):
        raise InvalidModel(
            f"the discount of {pairs.pair_name(k)} is {mdp.discount[k]}, that of "
            f"{pairs.pair_name(0)} is {mdp.discount[0]}; model files hold no discounts, so "
            f"only a model with a single one can be written{others}"
        )
    states = mdp.num_states
    lengths = arrays.run_lengths(mdp.offsets)
    ends = lengths == 0
    # The states to be added, by their labels: where their one choice leads, and how likely.
    added: dict[str, tuple[arrays.IntArray, arrays.FloatArray]] = {}
    if ends.any():
        added[END] = np.array([states]), np.ones(1)
    first = np.flatnonzero(mdp.initial)
    if mdp.initial[first].tolist() != [1.0]:
        added[START] = first, mdp.initial[first]
    extra = len(added)
    total = states + extra
    rows = [row for row, _ in added.values()]
    chances = [chance for _, chance in added.values()]
    at = mdp.offsets[:-1][ends]  # where the transitions to the end go
    reward = np.insert(mdp.reward, at, mdp.ending_reward[ends]) + 0.0  # −0 is written as 0
    return CheckerModel(
        choice_offsets=np.append(pairs.offsets, pairs.num_pairs + 1 + np.arange(extra)),
        offsets=arrays.offsets_of(np.append(np.maximum(lengths, 1), [row.size for row in rows])),
        successor=np.concatenate([np.insert(mdp.successor, at, states), *rows]),
        probability=np.concatenate([np.insert(mdp.probability, at, 1.0), *chances]),
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
            **{label: np.pad(marked, (0, extra)) for label, marked in mdp.marks.items()},
            **{label: np.arange(total) == states + i for i, label in enumerate(added)},
        },
    )


# ---- from a checker's model to ours -----------------------------------------------------------


class Graph(NamedTuple):
    """The states and choices of a file on their way to our model; S, K, T change."""

    choice_offsets: arrays.IntArray  # [S+1]
    offsets: arrays.IntArray  # [K+1]
    successor: arrays.IndexArray  # [T]
    probability: arrays.FloatArray  # [T]
    reward: arrays.FloatArray  # [T]
    ending_reward: arrays.FloatArray  # [K]
    action: arrays.IntArray  # [K]

    @property
    def choice(self) -> arrays.IntArray:
        """Returns the choice of each transition [T]."""
        return arrays.run_owners(self.offsets)

    @property
    def state(self) -> arrays.IntArray:
        """Returns the state that each transition leaves [T]."""
        return arrays.run_owners(self.choice_offsets)[self.choice]


def from_checker(
    model: CheckerModel, discount: float, initial: str | None, goal: arrays.BoolArray | None = None
) -> FiniteMDP:
    """Returns our model, without the states that only mark where episodes start and end.

    A state `end` in which nothing happens is removed, if every choice that enters it does so
    surely: these become pairs without successors. Otherwise it stays, with pairs without successors
    of its own, as do deadlocks. A last state `start` is removed, if it is the initial one, never
    entered again, and has a single choice that earns nothing. `initial` tells where episodes start
    if the file marks several states as initial, see `start_distribution`. States of a `goal` [S]
    earn nothing and end the episode, states behind them are removed, and missing them costs ∞.
    """
    graph = with_loops(model)
    source = graph.state
    chance = start_distribution(model, initial)
    start = start_state(model, graph, source)
    if start is not None:
        row = source == start
        chance[graph.successor[row]] += chance[start] * graph.probability[row]
        chance[start] = 0.0
    # Idle states are never left and earn nothing.
    busy = source[(graph.successor != source) | (graph.reward != 0)]
    earning = arrays.run_owners(graph.choice_offsets)[graph.ending_reward != 0]
    idle = np.bincount(np.append(busy, earning), minlength=model.num_states) == 0
    end = end_state(graph, source, idle & model.marked(END) & (chance == 0))
    deadlock = model.marked(DEADLOCK) | (arrays.run_lengths(model.choice_offsets) == 0)
    over = idle & (model.marked(END) | deadlock)
    gone = np.isin(np.arange(model.num_states), [s for s in (start, end) if s is not None])
    if goal is not None:
        over |= goal
        kept = ~over[source]
        gone |= entered_from(source[kept], graph.successor[kept], chance > 0) < 0
    graph = drop_states(graph, over, gone, end)
    numbering = number_actions(model.actions._replace(number=graph.action), graph.choice_offsets)
    graph = sort_actions(graph._replace(action=numbering.number))
    pairs = Pairs(
        graph.choice_offsets,
        graph.action,
        numbering.num_actions,
        picked_labels(model.state_labels, np.flatnonzero(~gone)),
        cast(Labels, numbering.names),
    )
    return FiniteMDP(
        pairs,
        graph.offsets,
        graph.successor,
        graph.probability,
        graph.reward,
        spread_discount(pairs, discount),
        chance[~gone],
        graph.ending_reward,
        {label: states[~gone] for label, states in model.marks().items()},
        0.0 if goal is None else np.inf,
    )


def start_distribution(model: CheckerModel, initial: str | None) -> arrays.FloatArray:
    """Returns the start distribution [S]: the one initial state, if `initial` is None.

    'uniform' starts equally often in all states that the file marks as initial, and a label in all
    states that carry it.
    """
    wanted = UNIFORM if initial is None else initial
    marks = {**model.labels, UNIFORM: model.initial}
    if wanted not in marks:
        raise InvalidModel(
            f"initial is {initial!r}, expected one of "
            f"{', '.join(map(repr, [UNIFORM, *model.labels]))}"
        )
    states = np.flatnonzero(marks[wanted])
    if states.size == 0:
        label = INITIAL if wanted == UNIFORM else wanted
        raise InvalidModel(f"no state is marked as {label!r}, expected one to start in")
    if initial is None and states.size > 1:
        raise InvalidModel(
            f"{states.size} states ({states[0]}, {states[1]}, …) are marked as '{INITIAL}', "
            f"expected one initial state; initial='{UNIFORM}' starts equally often in each of "
            "them, and initial='a label' in the states with that label"
        )
    return marks[wanted] / states.size


def with_loops(model: CheckerModel) -> Graph:
    """Adds up the rewards of each transition; gives a state without choices a loop to itself."""
    lengths = arrays.run_lengths(model.choice_offsets)
    sizes = arrays.run_lengths(model.offsets)
    with np.errstate(over="ignore"):  # an infinite reward is refused later, by name
        earned = model.choice_reward + np.repeat(model.state_reward, lengths)
        reward = model.reward + np.repeat(earned, sizes)
    ending = np.where(sizes == 0, earned, 0.0)
    dead = np.flatnonzero(lengths == 0)
    at_choice = model.choice_offsets[dead]
    at = model.offsets[at_choice]
    return Graph(
        arrays.offsets_of(np.maximum(lengths, 1)),
        arrays.offsets_of(np.insert(sizes, at_choice, 1)),
        np.insert(model.successor, at, dead),
        np.insert(model.probability, at, 1.0),
        np.insert(reward, at, model.state_reward[dead]),
        np.insert(ending, at_choice, 0.0),
        np.insert(model.actions.number, at_choice, 0),
    )


def start_state(model: CheckerModel, graph: Graph, source: arrays.IntArray) -> int | None:
    """Returns the last state if it only starts episodes, as `to_checker` adds it; else None."""
    start = model.num_states - 1
    row = source == start
    added = (
        model.initial[start]
        and model.marked(START)[start]
        and arrays.run_lengths(graph.choice_offsets)[start] == 1
        and row.any()
        and not np.any(graph.successor == start)
        and not graph.reward[row].any()
    )
    return start if added else None


def end_state(graph: Graph, source: arrays.IntArray, candidate: arrays.BoolArray) -> int | None:
    """Returns the only `candidate` if all choices that enter it surely do so; else None."""
    if np.count_nonzero(candidate) != 1:
        return None
    end = int(np.argmax(candidate))
    entering = (graph.successor == end) & (source != end)
    surely = arrays.run_lengths(graph.offsets)[graph.choice[entering]] == 1
    return end if entering.any() and surely.all() else None


def drop_states(
    graph: Graph, over: arrays.BoolArray, gone: arrays.BoolArray, end: int | None
) -> Graph:
    """Drops the states `gone`, transitions to `end`, and those that leave states `over`."""
    choice = graph.choice
    source = graph.state
    ending = graph.successor == (-1 if end is None else end)
    ending_reward = graph.ending_reward.copy()
    ending_reward[choice[ending]] = graph.reward[ending]
    kept = ~(ending | over[source] | gone[source])
    kept_choice = ~gone[arrays.run_owners(graph.choice_offsets)]
    return Graph(
        arrays.offsets_of(arrays.run_lengths(graph.choice_offsets)[~gone]),
        arrays.offsets_of(np.bincount(choice[kept], minlength=kept_choice.size)[kept_choice]),
        (np.cumsum(~gone) - 1)[graph.successor[kept]],
        graph.probability[kept],
        graph.reward[kept],
        ending_reward[kept_choice],
        graph.action[kept_choice],
    )


def sort_actions(graph: Graph) -> Graph:
    """Sorts the choices of each state by their action."""
    if not arrays.not_rising(graph.action, graph.choice_offsets).any():
        return graph
    order = np.lexsort((graph.action, arrays.run_owners(graph.choice_offsets)))
    sizes = arrays.run_lengths(graph.offsets)[order]
    moved = arrays.ranges(graph.offsets[order], sizes)
    return graph._replace(
        offsets=arrays.offsets_of(sizes),
        successor=graph.successor[moved],
        probability=graph.probability[moved],
        reward=graph.reward[moved],
        ending_reward=graph.ending_reward[order],
        action=graph.action[order],
    )


# ---- branches that lead to the same state -----------------------------------------------------


def merged_branches(
    offsets: arrays.IntArray,
    successor: arrays.IntArray,
    probability: arrays.FloatArray,
    reward: arrays.FloatArray,
) -> dict[str, Any]:
    """Merges branches [T] of a choice that lead to the same state; their states rise afterwards.

    Their probabilities add up, and their rewards average.
    """
    choice = arrays.run_owners(offsets)
    order = np.lexsort((successor, choice))
    first = np.flatnonzero(arrays.first_of_equal(choice[order], successor[order]))
    kept = order[first]
    chances = probability[order]
    total = np.add.reduceat(chances, first)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        earned = np.add.reduceat(chances * reward[order], first)
        average = np.where(total > 0, earned / total, 0.0)
    return {
        "offsets": arrays.offsets_of(np.bincount(choice[kept], minlength=offsets.size - 1)),
        "successor": successor[kept],
        "probability": total,
        "reward": average,
    }


# ---- the actions of a model file, and the numbers that they get here --------------------------
#
# Our actions are numbered once for the whole model and rise within each state. Checkers number
# choices state by state and may name them: in any order, only some of them, or several alike.


def number_actions(actions: Actions, offsets: arrays.IntArray) -> Actions:
    """Numbers the actions of states' choices, whose runs `offsets` [S+1] delimit, and labels them.

    Numbers are kept where each stands for one action of a state, and names keep their numbers
    where these rise within states. Other names are numbered in the order in which they appear.
    Choices without a name are known by their position.
    """
    code, count, names = actions
    if names is not None and all(names[number] is None for number in np.unique(code).tolist()):
        position = arrays.ranges(0, arrays.run_lengths(offsets))
        return Actions(position, int(position.max(initial=0)) + 1, None)
    if names is None and not arrays.repeated_in_run(code, offsets).any():
        return Actions(code, count, None)
    if names is None:
        numbers, code = np.unique(code, return_inverse=True)
        names = [f"a{number}" for number in numbers.tolist()]
    labels = tuple(name for name in names if name is not None)
    if len(set(labels)) == len(names) and not arrays.not_rising(code, offsets).any():
        return Actions(code, count, labels)
    table: dict[str, int] = {}  # numbers of the names, as they appear
    named = [
        table.setdefault(name, len(table)) for name in distinct_names(code.tolist(), names, offsets)
    ]
    return Actions(np.array(named, np.int64), len(table), tuple(table))


def distinct_names(
    code: Sequence[int], names: Sequence[str | None], offsets: arrays.IntArray
) -> Iterator[str]:
    """Yields a name for each choice [K]; names differ within each state.

    A choice without a name is called after its position, and the second choice of a name ‘go’ in a
    state is called ‘go (2)’.
    """
    for begin, end in pairwise(offsets.tolist()):
        taken: dict[str, int] = {}  # how often a name was wanted in this state
        for position, number in enumerate(code[begin:end]):
            given = names[number]
            name = str(position) if given is None else given
            while name in taken:
                taken[name] += 1
                name = f"{name} ({taken[name]})"
            taken[name] = 1
            yield name
