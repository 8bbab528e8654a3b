"""From a checker's model to ours: ends of episodes and starts are found again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surestep._arrays import (
    BoolArray,
    FloatArray,
    IndexArray,
    IntArray,
    offsets_of,
    run_lengths,
    run_owners,
)
from surestep.errors import InvalidModel
from surestep.io.actions import number_actions, rises
from surestep.io.checker_model import DEADLOCK, END, INITIAL, START, CheckerModel
from surestep.model.mdp import FiniteMDP, spread_discount
from surestep.model.pairs import Pairs

UNIFORM = "uniform"


class Graph(NamedTuple):
    """The states and choices of a file while they become ours."""

    choice_offsets: IntArray  # [S+1]
    offsets: IntArray  # [K+1]
    successor: IndexArray  # [T]
    probability: FloatArray  # [T]
    reward: FloatArray  # [T]
    ending_reward: FloatArray  # [K]
    action: IntArray  # [K]

    @property
    def choice(self) -> IntArray:
        """The choice of each transition [T]."""
        return run_owners(self.offsets)

    @property
    def state(self) -> IntArray:
        """The state that each transition leaves [T]."""
        return run_owners(self.choice_offsets)[self.choice]


def opened(model: CheckerModel, discount: float, initial: str | None) -> FiniteMDP:
    """The model without the states that only say where episodes start and end.

    A state `end` in which nothing happens goes, if every choice that enters it does so surely:
    these become pairs without successors. Otherwise it stays, with pairs without successors of its
    own, as do deadlocks. A last state `start` goes, if it is the initial one, never entered again,
    and has a single choice that earns nothing. `initial` says where episodes start if the file
    marks several states as initial, see `start_distribution`.
    """
    graph = with_loops(model)
    source = graph.state
    chance = start_distribution(model, initial)
    start = start_state(model, graph, source)
    if start is not None:
        row = source == start
        chance[graph.successor[row]] += chance[start] * graph.probability[row]
        chance[start] = 0.0
    idle = idle_states(graph, source)
    end = end_state(graph, source, idle & model.marked(END) & (chance == 0))
    deadlock = model.marked(DEADLOCK) | (run_lengths(model.choice_offsets) == 0)
    over = idle & (model.marked(END) | deadlock)
    gone = np.isin(np.arange(model.num_states), [s for s in (start, end) if s is not None])
    graph = without(graph, over, gone, end)
    numbering = number_actions(model.actions._replace(number=graph.action), graph.choice_offsets)
    graph = in_action_order(graph._replace(action=numbering.action))
    names = model.state_labels
    pairs = Pairs(
        graph.choice_offsets,
        graph.action,
        numbering.num_actions,
        names and tuple(names[state] for state in np.flatnonzero(~gone).tolist()),
        numbering.labels,
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
    )


def start_distribution(model: CheckerModel, initial: str | None) -> FloatArray:
    """Where episodes start [S]: in the one initial state of the file, if `initial` is None.

    'uniform' starts equally often in all states that the file marks as initial, and a label in all
    states that carry it.
    """
    if initial is None or initial == UNIFORM:
        marked = model.initial
    elif initial in model.labels:
        marked = model.labels[initial]
    else:
        known = ", ".join(map(repr, [UNIFORM, *model.labels]))
        raise InvalidModel(f"initial is {initial!r}, expected one of {known}")
    states = np.flatnonzero(marked)
    if states.size == 0:
        label = INITIAL if initial in (None, UNIFORM) else initial
        raise InvalidModel(f"no state is marked as {label!r}, expected one to start in")
    if initial is None and states.size > 1:
        raise InvalidModel(
            f"{states.size} states ({states[0]}, {states[1]}, …) are marked as '{INITIAL}', "
            f"expected one initial state; initial='{UNIFORM}' starts equally often in each of "
            "them, and initial='a label' in the states with that label"
        )
    return marked / states.size


def with_loops(model: CheckerModel) -> Graph:
    """The file's choices, each with all that it earns; a state without choices gets a loop."""
    lengths, sizes = run_lengths(model.choice_offsets), run_lengths(model.offsets)
    with np.errstate(over="ignore"):  # what is too large is refused by name later
        earned = model.choice_reward + np.repeat(model.state_reward, lengths)
        reward = model.reward + np.repeat(earned, sizes)
    ending = np.where(sizes == 0, earned, 0.0)
    dead = np.flatnonzero(lengths == 0)
    at_choice = model.choice_offsets[dead]
    at = model.offsets[at_choice]
    return Graph(
        offsets_of(np.maximum(lengths, 1)),
        offsets_of(np.insert(sizes, at_choice, 1)),
        np.insert(model.successor, at, dead),
        np.insert(model.probability, at, 1.0),
        np.insert(reward, at, model.state_reward[dead]),
        np.insert(ending, at_choice, 0.0),
        np.insert(model.actions.number, at_choice, 0),
    )


def start_state(model: CheckerModel, graph: Graph, source: IntArray) -> int | None:
    """The last state, where it is one that `closed` added for the start."""
    start = model.num_states - 1
    if not (model.initial[start] and model.marked(START)[start]):
        return None
    row = source == start
    single = run_lengths(graph.choice_offsets)[start] == 1 and row.any()
    again = np.any(graph.successor == start)
    return start if single and not again and not graph.reward[row].any() else None


def idle_states(graph: Graph, source: IntArray) -> BoolArray:
    """States [S] that are never left and earn nothing."""
    size = graph.choice_offsets.size - 1
    busy = (graph.successor != source) | (graph.reward != 0)
    earning = run_owners(graph.choice_offsets)[graph.ending_reward != 0]
    active = np.bincount(source[busy], minlength=size) + np.bincount(earning, minlength=size)
    idle: BoolArray = active == 0
    return idle


def end_state(graph: Graph, source: IntArray, candidate: BoolArray) -> int | None:
    """The one state that is the end of episodes and nothing else."""
    found = np.flatnonzero(candidate)
    if found.size != 1:
        return None
    entering = (graph.successor == found[0]) & (source != found[0])
    surely = run_lengths(graph.offsets)[graph.choice[entering]] == 1
    return int(found[0]) if entering.any() and surely.all() else None


def without(graph: Graph, over: BoolArray, gone: BoolArray, end: int | None) -> Graph:
    """The graph without the states that go, and without transitions into or after the end."""
    if not (over.any() or gone.any()):
        return graph
    choice, source = graph.choice, graph.state
    ending = graph.successor == (-1 if end is None else end)
    ending_reward = graph.ending_reward.copy()
    ending_reward[choice[ending]] = graph.reward[ending]
    kept = ~(ending | over[source] | gone[source])
    kept_choice = ~gone[run_owners(graph.choice_offsets)]
    sizes = np.bincount(choice[kept], minlength=kept_choice.size)
    return Graph(
        offsets_of(run_lengths(graph.choice_offsets)[~gone]),
        offsets_of(sizes[kept_choice]),
        (np.cumsum(~gone) - 1)[graph.successor[kept]],
        graph.probability[kept],
        graph.reward[kept],
        ending_reward[kept_choice],
        graph.action[kept_choice],
    )


def in_action_order(graph: Graph) -> Graph:
    """The graph with rising actions within each state."""
    if rises(graph.action, graph.choice_offsets):
        return graph
    order = np.lexsort((graph.action, run_owners(graph.choice_offsets)))
    sizes = run_lengths(graph.offsets)[order]
    offsets = offsets_of(sizes)
    moved = np.arange(offsets[-1]) + np.repeat(graph.offsets[order] - offsets[:-1], sizes)
    return graph._replace(
        offsets=offsets,
        successor=graph.successor[moved],
        probability=graph.probability[moved],
        reward=graph.reward[moved],
        ending_reward=graph.ending_reward[order],
        action=graph.action[order],
    )
