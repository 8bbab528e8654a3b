"""Numbers states and actions by their first appearance in a log.

Random numbers, ties and the order of sums depend on the numbers of states and actions. So these
numbers must not depend on names, if results are not to depend on names.
"""

from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.model.log import UNKNOWN, DecisionLog
from surestep.model.pairs import Pairs, picked_labels
from surestep.model.policy import Policy


class Numbering(NamedTuple):
    """Other numbers for the states, actions and pairs of a log.

    The arrays hold the former number of each state, action and pair; `former[numbering.state]` puts
    values over states into the order of the new numbers.
    """

    state: arrays.IntArray  # [S]
    action: arrays.IntArray  # [A]
    pair: arrays.IntArray  # [K]
    pairs: Pairs  # with the new numbers

    @classmethod
    def of(cls, pairs: Pairs, state: arrays.IntArray, action: arrays.IntArray) -> "Numbering":
        """Returns the numbering of pairs that puts states and actions into these orders."""
        new_state = np.argsort(state)[pairs.state]
        new_action = np.argsort(action)[pairs.action]
        order = np.lexsort((new_action, new_state))
        return cls(
            state,
            action,
            order,
            Pairs(
                arrays.offsets_of(np.bincount(new_state, minlength=pairs.num_states)),
                new_action[order],
                pairs.num_actions,
                picked_labels(pairs.state_labels, state),
                picked_labels(pairs.action_labels, action),
            ),
        )

    def log(self, log: DecisionLog) -> DecisionLog:
        """Returns the log with the new numbers; it was checked with the former ones."""
        state, action, pair = map(np.argsort, (self.state, self.action, self.pair))
        return arrays.altered(
            log,
            pairs=self.pairs,
            state=state[log.state].astype(log.state.dtype),
            action=action[log.action].astype(log.action.dtype),
            next_state=np.append(state, UNKNOWN)[log.next_state].astype(log.next_state.dtype),
            pair=pair[log.pair],
        )

    def policy(self, policy: Policy) -> Policy:
        """Returns the policy with the new numbers."""
        return Policy(self.pairs, policy.probability[self.pair], estimated=policy.estimated)


def by_appearance(log: DecisionLog, last: arrays.BoolArray) -> Numbering:
    """Returns the numbering by first appearance, with the states that are `last` [S] at the end.

    States and actions that the log never names come after the others, in the former order.
    """
    state = first_places(
        np.concatenate([log.state, log.next_state[log.next_state >= 0]]), log.pairs.num_states
    )
    return Numbering.of(
        log.pairs,
        np.lexsort((state, last)),
        np.argsort(first_places(log.action, log.pairs.num_actions), kind="stable"),
    )


def first_places(values: arrays.IntArray, size: int) -> arrays.IntArray:
    """Returns the first place of each number below `size`; `values.size` for a missing number."""
    place = np.full(size, values.size)
    place[values[::-1]] = np.arange(values.size)[::-1]  # the first place is written last
    return place


def merged_log(log: DecisionLog, group: arrays.IntArray) -> tuple[DecisionLog, arrays.IntArray]:
    """Returns the log with the groups [S] of its states as states, and the new pair of each [K]."""
    pairs = log.pairs
    shown, pair = np.unique(
        group[pairs.state] * pairs.num_actions + pairs.action, return_inverse=True
    )
    merged = Pairs(
        arrays.offsets_of(np.bincount(shown // pairs.num_actions)),
        shown % pairs.num_actions,
        pairs.num_actions,
    )
    moved = arrays.altered(
        log,
        pairs=merged,
        state=group[log.state].astype(log.state.dtype),
        next_state=np.append(group, UNKNOWN)[log.next_state].astype(log.next_state.dtype),
        pair=pair[log.pair],
    )
    return moved, pair
