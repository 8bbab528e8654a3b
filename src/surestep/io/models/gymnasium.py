"""Makes finite MDPs of tabular Gymnasium environments, and of their tables.

A tabular environment has a table `P[s][a] = [(probability, next state, reward, terminated), …]`
in which successors may repeat. Only the flag tells whether an episode ends: FrozenLake's terminal
states loop, but those of CliffWalking and Taxi go on as if nothing had happened.
"""

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

import surestep._arrays as arrays
from surestep.errors import InvalidModel, optional_module
from surestep.io.models.checker import merged_branches
from surestep.model.mdp import FiniteMDP, read_initial, spread_discount, spread_initial
from surestep.model.pairs import Pairs


def from_gymnasium(env: Any, discount: float, *, initial: object = None) -> FiniteMDP:
    """Returns the MDP of a tabular Gymnasium environment (FrozenLake, CliffWalking, Taxi, …).

    States keep their numbers and their values. A terminating transition into a state where nothing
    happens any more (FrozenLake's goal) ends the episode there; all others (CliffWalking, Taxi) go
    to one more state, the last, which is the end.

    Parameters
    ----------
    env : str or gymnasium.Env
        An environment with a table `P`, or a name that `gymnasium.make` knows.
    discount : float
        The discount of every step, from 0 to 1.
    initial : int or array of float [S], optional
        The state in which episodes start, or the chance of each; by default the environment's own.

    Returns
    -------
    FiniteMDP
        The model, with the states of the table, and perhaps one more for the end.

    Raises
    ------
    InvalidModel
        The environment has no such table, the table is malformed, or nothing says where episodes
        start.
    MissingExtra
        A name was given, and Gymnasium is not installed.

    Examples
    --------
    >>> from surestep.io import from_gymnasium
    >>> from_gymnasium("FrozenLake-v1", discount=0.9)
    FiniteMDP(num_states=16, num_pairs=64, num_transitions=128, discount=0.9)
    """
    if isinstance(env, str):
        gymnasium = optional_module("gymnasium", f"{env} is made by Gymnasium", "rl")
        try:
            env = gymnasium.make(env)
        except gymnasium.error.Error as problem:
            raise InvalidModel(f"Gymnasium makes no environment {env!r}: {problem}") from None
    base = getattr(env, "unwrapped", env)
    if initial is None:
        initial = getattr(base, "initial_state_distrib", None)
    name = getattr(getattr(env, "spec", None), "id", None) or type(env).__name__
    return mdp_of_table(getattr(base, "P", None), discount, initial, str(name))


def from_dict(
    table: Mapping[int, Any] | Sequence[Any], discount: float, *, initial: object = 0
) -> FiniteMDP:
    """Returns the MDP of a dictionary of transitions, in the form of Gymnasium's `P`.

    Ends of episodes are read as by `from_gymnasium`: from the flag of a transition.

    Parameters
    ----------
    table : dict of dict of list
        `table[state][action]` lists tuples (probability, next state, reward, terminated). States
        and actions are the numbers 0, 1, …; a state may lack some of the actions.
    discount : float
        The discount of every step, from 0 to 1.
    initial : int or array of float [S]
        The state in which episodes start, by default 0, or the chance of each.

    Returns
    -------
    FiniteMDP
        The model, with the states of the table, and perhaps one more for the end.

    Raises
    ------
    InvalidModel
        The table is malformed, or its probabilities do not sum to 1.

    Examples
    --------
    >>> from surestep.io import from_dict
    >>> coin = [(0.5, 0, 0.0, False), (0.5, 1, 1.0, True)]
    >>> from_dict({0: {0: coin}, 1: {0: [(1.0, 1, 0.0, True)]}}, discount=0.9)
    FiniteMDP(num_states=2, num_pairs=2, num_transitions=2, discount=0.9)
    """
    return mdp_of_table(table, discount, initial, "the dictionary")


def mdp_of_table(table: Any, discount: float, initial: object, name: str) -> FiniteMDP:
    """Returns the MDP of a table P; messages call its origin by the name."""
    pair_offsets, action, rows = read_transition_table(table, name)
    num_states = pair_offsets.size - 1
    if initial is None:
        raise InvalidModel(
            f"{name} does not say where episodes start; give a state or a distribution as initial="
        )
    states = Pairs.full(num_states, 1)
    start = read_initial(states, spread_initial(states, initial))
    pair_state = arrays.run_owners(pair_offsets)
    # In closed states every action leads back to the state with reward 0.
    leaves = (rows["successor"] != pair_state[rows["pair"]]) | (rows["reward"] != 0)
    leaving = pair_state[rows["pair"][leaves & (rows["probability"] > 0)]]
    ends = np.bincount(leaving, minlength=num_states) == 0
    elsewhere = rows["terminated"] & ~ends[rows["successor"]]
    if elsewhere.any():
        rows["successor"][elsewhere] = num_states
        ends = np.append(ends, True)
        pair_offsets = np.append(pair_offsets, pair_offsets[-1] + 1)
        action = np.append(action, 0)
        start = np.append(start, 0.0)
    pairs = Pairs(pair_offsets, action, int(action.max(initial=0)) + 1)
    rows = rows[~ends[pairs.state[rows["pair"]]] & (rows["probability"] > 0)]
    offsets = arrays.offsets_of(np.bincount(rows["pair"], minlength=pairs.num_pairs))
    branches = (rows[name] for name in ("successor", "probability", "reward"))
    return FiniteMDP(
        pairs,
        **merged_branches(offsets, *branches),
        discount=spread_discount(pairs, discount),
        initial=start,
    )


ROW = np.dtype(
    [
        ("pair", np.int64),
        ("successor", np.int64),
        ("probability", np.float64),
        ("reward", np.float64),
        ("terminated", np.bool_),
    ]
)


def read_transition_table(
    table: Any, name: str
) -> tuple[arrays.AnyArray, arrays.AnyArray, arrays.AnyArray]:
    """Reads a table P; returns the offsets of pairs [S+1], the action [K], and the rows."""
    if not isinstance(table, Mapping | Sequence) or len(table) == 0:
        raise InvalidModel(
            f"{name} has no table P of transitions, expected a tabular environment such as "
            "FrozenLake, CliffWalking or Taxi"
        )
    lengths: list[int] = []
    actions: list[int] = []
    rows: list[tuple[int, int, float, float, bool]] = []
    for state in range(len(table)):
        try:
            row = table[state]
            choices = sorted(row) if isinstance(row, Mapping) else range(len(row))
            for action in choices:
                for probability, successor, reward, terminated in row[action]:
                    target = index(successor)
                    if not 0 <= target < len(table):
                        raise InvalidModel(
                            f"the table P of {name} leads from state {state}, action "
                            f"{action} to state {target}, expected 0 to {len(table) - 1}"
                        )
                    entry = (float(probability), float(reward), bool(terminated))
                    rows.append((len(actions), target, *entry))
                if not 0 <= index(action) <= arrays.LARGEST_INDEX:
                    raise ValueError(f"action {action} is not one of 0, 1, …")
                actions.append(index(action))
        except (TypeError, ValueError, KeyError, IndexError, OverflowError) as problem:
            raise InvalidModel(
                f"the table P of {name} is malformed at state {state}: {problem}; expected "
                "P[state][action] = [(probability, next state, reward, terminated), …]"
            ) from None
        lengths.append(len(choices))
    table_rows = np.array(rows, ROW)
    offsets = arrays.offsets_of(np.array(lengths))

    def place(row: int) -> str:
        pair = rows[row][0]
        return (
            f"state {arrays.owner(offsets, pair)}, action {actions[pair]} in the table P of {name}"
        )

    # Rows of probability 0 must be numbers, too.
    arrays.floats("a probability", table_rows["probability"], None, InvalidModel, place, least=0)
    arrays.floats("a reward", table_rows["reward"], None, InvalidModel, place)
    return offsets, np.array(actions, np.int64), table_rows
