"""From counted labels and a behavior policy to numbered states, actions and pairs.

What |S|, |A| and the enabled pairs are: the rows of the behavior table, else the lists of states
and actions, else every action seen anywhere in every state seen. States in which nothing is decided
come last and have one action, the first; they count in |S|.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from surestep._arrays import BoolArray, IntArray, freeze
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.counts.labelled import LabelledCounts, known_places
from surestep.io.labels.behavior import BehaviorTable, check_log_fits, policy_from_propensities
from surestep.io.labels.label import Label, joined
from surestep.io.labels.tables import Locate, check_listed, nowhere
from surestep.io.labels.vocabulary import Vocabulary
from surestep.model import Counts, Pairs, Policy, estimate_behavior

BehaviorKind = Literal["table", "propensities", "estimate"]


@dataclass(frozen=True, slots=True)
class Assembly:
    """The parts of a problem, but for its terms."""

    vocabulary: Vocabulary
    counts: Counts
    behavior: Policy
    quiet: BoolArray  # [S] nothing is decided there
    premises: tuple[str, ...]


def assemble(
    counts: LabelledCounts,
    behavior: BehaviorTable | Literal["propensities", "estimate"],
    states: Sequence[Label] | None = None,
    actions: Sequence[Label] | None = None,
    locate: Locate = nowhere,
) -> Assembly:
    """Numbers for the labels, the counts over them, and the behavior policy.

    `locate` finds the row of the log that a table or a list does not allow.
    """
    if not isinstance(behavior, BehaviorTable):
        vocabulary, pairs, quiet = observed_pairs(counts, states, actions, locate)
        found = counts.to_counts(pairs)
        policy, said = (
            (estimate_behavior(found), ())
            if behavior == "estimate"
            else logged_policy(counts, found)
        )
        premises = (*beyond(states, actions), *starts_of(counts), *said)
        return Assembly(vocabulary, found, policy, quiet, premises)
    if states is not None or actions is not None:
        raise InvalidParameter(
            "the behavior table says which states and actions there are; expected no list of them "
            "beside it"
        )
    check_log_fits(behavior, counts, locate)
    vocabulary, pairs, quiet = table_pairs(counts, behavior)
    certain = np.ones(pairs.num_pairs - behavior.pairs.num_pairs)
    policy = Policy(pairs, np.concatenate([behavior.policy.probability, certain]))
    return Assembly(vocabulary, counts.to_counts(pairs), policy, quiet, starts_of(counts))


def logged_policy(counts: LabelledCounts, numbered: Counts) -> tuple[Policy, tuple[str, ...]]:
    """Returns π_b from the propensities of the log, and what that takes for granted."""
    rows, pairs = counts.transitions, numbered.pairs
    state = known_places("state", [joined(label) for label in counts.states], pairs.state_labels)
    action = known_places(
        "action", [joined(label) for label in counts.actions], pairs.action_labels
    )
    pair = pairs.find(state[rows.state], action[rows.action])
    order = np.argsort(pair, kind="stable")
    seen, first = np.unique(pair[order], return_index=True)
    if rows.lowest is None or rows.highest is None:
        raise InvalidLog("no column of the log says with which probability actions were taken")
    low = np.minimum.reduceat(rows.lowest[order], first)
    high = np.maximum.reduceat(rows.highest[order], first)
    found = policy_from_propensities(pairs, seen, low, high)
    said = []
    if found.states_completed:
        said.append(
            "Where logged probabilities leave something, the actions never taken share it evenly "
            f"(states: {found.states_completed:,})."
        )
    if found.states_unseen > np.count_nonzero(numbered.terminal):
        said.append("In states that nobody decided in, the behavior policy takes any action.")
    return found.policy, tuple(said)


def observed_pairs(
    counts: LabelledCounts,
    states: Sequence[Label] | None,
    actions: Sequence[Label] | None,
    locate: Locate,
) -> tuple[Vocabulary, Pairs, BoolArray]:
    """Every action in every state, of the lists or of the log; ends of episodes come last."""
    ends = counts.end_states()
    if states is not None:
        deciding = [label for label in counts.states if label not in ends]
        check_listed("state", counts.state_columns, states, deciding, locate)
    if actions is not None:
        check_listed("action", counts.action_columns, actions, counts.actions, locate)
    known = sorted(set(counts.states if states is None else states) - set(ends))
    taken = sorted(counts.actions if actions is None else actions)
    vocabulary = vocabulary_of(counts, (*known, *ends), taken)
    enabled = np.indices((len(known), len(taken))).reshape(2, -1)
    return vocabulary, *with_quiet(vocabulary, enabled, len(known))


def table_pairs(
    counts: LabelledCounts, table: BehaviorTable
) -> tuple[Vocabulary, Pairs, BoolArray]:
    """The rows of the table, and the states of the log in which nobody decided."""
    words = table.vocabulary
    quiet = [label for label in counts.states if label not in words.state_places]
    quiet += [label for label in counts.end_states() if label not in counts.states]
    vocabulary = vocabulary_of(counts, (*words.states, *quiet), words.actions)
    enabled = np.stack([table.pairs.state, table.pairs.action])
    return vocabulary, *with_quiet(vocabulary, enabled, len(words.states))


def vocabulary_of(
    counts: LabelledCounts, states: Sequence[Label], actions: Sequence[Label]
) -> Vocabulary:
    """The words of the log for these states and actions."""
    columns = counts.state_columns, counts.action_columns
    return Vocabulary(*columns, tuple(states), tuple(actions), counts.binnings)


def with_quiet(vocabulary: Vocabulary, enabled: IntArray, deciding: int) -> tuple[Pairs, BoolArray]:
    """The enabled pairs [2, K], one more for each state after the first `deciding`, and a mark."""
    quiet = np.arange(len(vocabulary.states)) >= deciding
    alone = np.flatnonzero(quiet)
    listed = np.concatenate([enabled, np.stack([alone, np.zeros_like(alone)])], axis=1)
    return vocabulary.pairs_of(listed.T), freeze(quiet)


def starts_of(counts: LabelledCounts) -> tuple[str, ...]:
    """Returns the assumption about starts, where the log does not say where episodes begin."""
    if counts.episodes.recorded:
        return ()
    return ("Episodes start as often in a state as the log decides there: it names no starts.",)


def beyond(states: Sequence[Label] | None, actions: Sequence[Label] | None) -> tuple[str, ...]:
    """Returns the assumptions where nobody said which states and actions there are."""
    nouns = {"states": states, "actions": actions}
    return tuple(
        f"There are no {noun} beyond those observed."
        for noun, listed in nouns.items()
        if listed is None
    )
