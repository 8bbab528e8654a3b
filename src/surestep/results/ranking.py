"""The order for readers: states and actions in the order in which they matter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surestep._arrays import IntArray
from surestep.results.findings import Findings
from surestep.results.table import UNCHANGED, PolicyTable


class Moves(NamedTuple):
    """The pairs of a state, the one whose chance changes most first, and how many change."""

    pairs: IntArray
    changed: int


def moves_in(table: PolicyTable, state: int) -> Moves:
    """Orders the pairs of a state by |π_I − π_b|, ties by π_I; returns them, and how many move."""
    run = np.arange(table.pairs.offsets[state], table.pairs.offsets[state + 1])
    change = np.abs(table.probability[run] - table.behavior[run])
    order = np.lexsort((-table.probability[run], -change))
    return Moves(run[order], int((change > UNCHANGED).sum()))


class GainingAction(NamedTuple):
    """The action that gains the most chance in a state, and how often the log shows it."""

    pair: int
    visits: int
    decisions: int  # in the state, whichever action was taken
    held_out_visits: int  # in the part of the log that did not choose the policy
    held_out_decisions: int


def gaining_action(table: PolicyTable, state: int) -> GainingAction:
    """Finds the pair of a state with the largest π_I − π_b; returns what the log says of it."""
    run = slice(int(table.pairs.offsets[state]), int(table.pairs.offsets[state + 1]))
    pair = run.start + int(np.argmax((table.probability - table.behavior)[run]))
    return GainingAction(
        pair,
        int(table.visits[pair]),
        int(table.visits[run].sum()),
        int(table.held_out_visits[pair]),
        int(table.held_out_visits[run].sum()),
    )


def kept_states(findings: Findings) -> IntArray:
    """Returns the states in which all stays as it was, by the time spent there under π_b."""
    kept = ~findings.table.quiet
    kept[[change.state for change in findings.changes]] = False
    states = np.flatnonzero(kept)
    order = np.argsort(-findings.behavior_occupancy[states], kind="stable")
    return states[order]


def thinnest_states(findings: Findings) -> IntArray:
    """Returns the states that the log shows, those first with most time of π_I for a decision."""
    decisions = findings.table.all_decisions
    seen = np.flatnonzero(decisions > 0)
    scarcity = findings.occupancy[seen] / decisions[seen]
    return seen[np.argsort(-scarcity, kind="stable")]
