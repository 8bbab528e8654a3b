"""Another log than the one that made a policy: its counts over the pairs of a saved result.

The log may have states that the result does not have, or in which it has no decision. The policy
says nothing of them, so that both policies do there what is done anyway, whatever that is:

    P_s(s') = Σ_a π_b(a|s) P(s'|s,a),

the same row for π_I and for π_b. It needs no π_b(a|s): where whoever made the log looked at the
state only and did not learn, the steps of that state are draws from P_s, whichever actions they
took. So all its actions count as one pair, which both policies take for certain. The claim then
holds as for any other problem, with a row for each such state that has its share of δ.

An action that the result does not have in a state that it has is another matter: that π_b never
takes it there is what the claim is relative to. Where π_b is only estimated, so the claim says, and
the pair is one that neither policy takes. Where π_b is known, the log contradicts it, and is
refused.

A log whose own propensities vary within states says that whoever made it looked at more. The steps
of a new state are then draws from no one P_s, and only a claim that needs no Markov states is left:
its weights there are 1, whatever was looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray, freeze
from surestep.errors import CertificateRefused, ShapeMismatch
from surestep.io.counts.labelled import LabelledCounts
from surestep.io.labels.behavior import propensities_vary
from surestep.io.labels.label import Label, joined
from surestep.io.labels.label_tables import Locate, found_at, nowhere, others, places_or_none
from surestep.io.labels.vocabulary import Vocabulary, in_order
from surestep.model import Certificate, Pairs, Policy, Statement
from surestep.pipeline.evidence import Assembly, of_recording
from surestep.results.result import Result
from surestep.results.table import PolicyTable

SAME_CHANCE = 1e-6
AS_BEFORE = "(as before)"  # the action of a state in which nothing changes


class OtherLog(NamedTuple):
    """Another log over the pairs of a result and more, and which of its states are pooled."""

    assembly: Assembly
    pooled: BoolArray  # [S] whatever was done there counts as the only pair


def other_log(saved: Result, counts: LabelledCounts, locate: Locate = nowhere) -> OtherLog:
    """Returns another log over the pairs of the result, and over those that only the log has."""
    table = saved.table
    columns = table.vocabulary.state_columns, table.vocabulary.action_columns
    if columns != (counts.state_columns, counts.action_columns):
        raise ShapeMismatch("the log has other columns of states or actions than the result")
    estimated = saved.record.behavior_is_estimated
    declared = saved.record.parameters["possible"] == "listed"
    beyond = Beyond.of(table, counts)
    if declared or not estimated:
        refuse_strange(table, counts, beyond.strange, locate, declared=declared)
    if not estimated:
        refuse_strange(table, counts, beyond.never, locate, declared=False)
    vocabulary, pairs = beyond.pairs(table, counts)
    pooled = np.isin(np.arange(pairs.num_states), beyond.pooled_places(vocabulary))
    behavior = Policy(pairs, carried(table, pairs, table.behavior), estimated=estimated)
    if counts.transitions.lowest is not None and not estimated:
        check_same_behavior(behavior, counts, pooled)
    quiet = ~pooled
    quiet[: table.quiet.size] &= table.quiet
    premises = (*of_recording(counts), Statement("behavior-of-result"))
    varying = propensities_vary(counts)
    if varying and saved.record.has_row_propensities:
        premises += (Statement("acted-on-more"),)
    premises += beyond.statements(varying=varying)
    if "value_bounds" in saved.record.defaults:
        premises += (Statement("value-bounds-of-other-log"),)
    numbered = counts.to_counts(pairs, pooled)
    assembly = Assembly(vocabulary, numbered, behavior, freeze(quiet), premises)
    return OtherLog(assembly, freeze(pooled))


class Beyond(NamedTuple):
    """The part of a log beyond a result: states, and transitions [T] of states that it has."""

    states: list[Label]  # that the result does not have, in order
    undecided: list[Label]  # in which the log decides, and the result has no decision
    strange: BoolArray  # [T] the action has no pair there
    never: BoolArray  # [T] the action has a pair there, which π_b never takes

    @classmethod
    def of(cls, table: PolicyTable, counts: LabelledCounts) -> Beyond:
        """Finds what the result does not know."""
        words, rows = table.vocabulary, counts.transitions
        met = (*counts.states, *counts.end_states())
        new = in_order(
            (label for label in met if label not in words.state_places),
            words.state_columns,
            words.binnings,
        )
        places = places_or_none(words.state_places, counts.states)
        deciding = (places >= 0) & ~table.quiet[places]
        undecided = [counts.states[s] for s in np.flatnonzero(counts.decided & ~deciding)]
        if not (counts.decided & deciding).any():
            raise ShapeMismatch(
                "the log decides in no state of the result, so that it says nothing about its "
                f"policy; it decides in {joined(undecided[0])!r}, and the result in "
                f"{joined(words.states[0])!r}; expected a log of the same states"
            )
        state = places[rows.state]
        action = places_or_none(words.action_places, counts.actions)[rows.action]
        known = deciding[rows.state]
        pair = table.pairs.find(np.maximum(state, 0), np.maximum(action, 0))
        enabled = known & (action >= 0) & (pair >= 0)
        return cls(new, undecided, known & ~enabled, enabled & (table.behavior[pair] == 0))

    def pairs(self, table: PolicyTable, counts: LabelledCounts) -> tuple[Vocabulary, Pairs]:
        """Returns the pairs of the result, the strange ones, and one for each new state."""
        words, rows = table.vocabulary, counts.transitions
        taken_there = np.stack([rows.state[self.strange], rows.action[self.strange]])
        strange = np.unique(taken_there, axis=1).T.tolist()
        taken = {counts.actions[a] for _, a in strange} - {*words.actions}
        actions = [*words.actions, *in_order(taken, words.action_columns, words.binnings)]
        if self.states:
            actions.append(unused(AS_BEFORE, actions))
        vocabulary = Vocabulary(
            words.state_columns,
            words.action_columns,
            (*words.states, *self.states),
            tuple(actions),
            words.binnings,
        )
        enabled = [*zip(table.pairs.state.tolist(), table.pairs.action.tolist(), strict=True)]
        enabled += [
            (vocabulary.state_places[counts.states[s]], vocabulary.action_places[counts.actions[a]])
            for s, a in strange
        ]
        first = len(words.states)
        enabled += [(first + i, len(actions) - 1) for i in range(len(self.states))]
        return vocabulary, vocabulary.pairs_of(enabled)

    def pooled_places(self, vocabulary: Vocabulary) -> IntArray:
        """Returns the states in which the log decides, and the result does not."""
        return places_or_none(vocabulary.state_places, self.undecided)

    def statements(self, *, varying: bool) -> tuple[Statement, ...]:
        """Returns what a claim takes for granted of what the result does not have.

        Where propensities vary within states, nobody looked at the state only.
        """
        said, many = [], {"states": len(self.undecided)}
        if self.undecided:
            said.append(
                Statement("states-beyond-result-as-done", many)
                if varying
                else Statement("states-beyond-result", many)
            )
        if self.strange.any():
            said.append(Statement("actions-beyond-result"))
        return tuple(said)


def check_needs_no_rows(claim: Certificate) -> None:
    """Refuses a claim about Markov states where those of new states are no draws from one row."""
    said = {each.code for each in claim.assumptions}
    if {"markov", "states-beyond-result-as-done"} <= said:
        raise CertificateRefused(
            f"a certificate of kind {claim.kind!r} takes whoever made this log to have looked at "
            "the state only in states that the result does not have, but the probabilities that "
            "the log names vary within states; expected kind 'trajectory', or a log without new "
            "states",
            code="acted-on-more-beyond-result",
        )


def unused(text: str, labels: list[Label]) -> Label:
    """Returns a label that none of the others is: '(as before)', or in more brackets."""
    width = len(labels[0])
    while (text,) * width in labels:
        text = f"({text})"
    return (text,) * width


def carried(table: PolicyTable, pairs: Pairs, values: FloatArray) -> FloatArray:
    """Returns chances [K] of the result over other pairs: 1 where there is one pair, else 0.

    The states of the result come first, in its order.
    """
    same_state = pairs.state < table.pairs.num_states
    same = same_state & (pairs.action < table.pairs.num_actions)
    state, action = np.where(same, pairs.state, 0), np.where(same, pairs.action, 0)
    pair = np.where(same, table.pairs.find(state, action), -1)
    alone = np.diff(pairs.offsets)[pairs.state] == 1
    return np.where(pair >= 0, values[pair], alone.astype(np.float64))


def refuse_strange(
    table: PolicyTable, counts: LabelledCounts, rows: BoolArray, locate: Locate, *, declared: bool
) -> None:
    """Refuses a log that takes what the behavior policy of the result never takes."""
    if not rows.any():
        return
    taken = counts.transitions
    first = int(np.argmax(rows))
    state, action = counts.states[taken.state[first]], counts.actions[taken.action[first]]
    many = np.unique(np.stack([taken.state[rows], taken.action[rows]]), axis=1).shape[1]
    why = (
        "which was declared not to be possible there"
        if declared
        else "which the behavior policy of the result never takes there"
    )
    raise ShapeMismatch(
        f"{found_at(locate({'state': state, 'action': action}))}the log takes action "
        f"{joined(action)!r} in state {joined(state)!r}, {why}: a claim against that policy cannot "
        f"rest on a log that another one made; expected a log of the same{others(many, 'pairs')}"
    )


def check_same_behavior(known: Policy, counts: LabelledCounts, pooled: BoolArray) -> None:
    """Refuses a log whose propensities say that another policy made it."""
    rows, pairs = counts.transitions, known.pairs
    pair = counts.pairs_of_rows(pairs, pooled)
    compared = ~pooled[pairs.state[pair]]
    for logged in (rows.lowest, rows.highest):
        if logged is None:
            continue
        other = compared & (np.abs(known.probability[pair] - logged) > SAME_CHANCE)
        if other.any():
            t = int(np.argmax(other))
            many = np.unique(pair[other]).size
            raise ShapeMismatch(
                f"the log says that {pairs.pair_name(int(pair[t]))} was taken with probability "
                f"{logged[t]:.6g}, but the behavior policy of the result has "
                f"{known.probability[pair[t]]:.6g}; expected a log that the same policy made"
                f"{others(many, 'pairs')}"
            )
