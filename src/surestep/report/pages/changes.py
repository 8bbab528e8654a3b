"""What changes where: the changes that matter most, and a table of situations."""

from __future__ import annotations

from collections.abc import Sequence

from surestep.report.charts.small_bars import change_bar, share_bar
from surestep.report.html import Element, element, label
from surestep.report.numbers import counted, number, percent, signed
from surestep.report.pages.shared_parts import action_words, estimated_tag
from surestep.report.tables import (
    Cell,
    Column,
    Row,
    amount,
    data_table,
    filter_bar,
    label_cells,
    number_columns,
)
from surestep.report.words.limits import limits_words
from surestep.results.findings import Findings, StateChange
from surestep.results.ranking import gaining_action, kept_states, moves_in
from surestep.results.table import UNCHANGED, PolicyTable

MOST_MATTER = 10
MOST_ROWS, MOST_CELLS = 250, 2500  # of the table, so that the page stays small
MOST_MOVES = 5  # actions of a situation that are shown


# ---- the changes that matter most ----------------------------------------------------------------


def top_section(findings: Findings) -> Element | None:
    """Returns the changes with the largest share in the gain, in words and bars."""
    top = findings.changes[:MOST_MATTER]
    if not top:
        return None
    many = {1: "The change that matters", 10: "The ten changes that matter most"}
    return element(
        "section",
        element("h2", many.get(len(top), "The changes that matter most"), estimated_tag(findings)),
        element(
            "p",
            "Ordered by how often one is there, times what one decision gains there. Grey is what "
            "the current policy does, blue what the new one does.",
        ),
        element("ol", [change_card(findings, change) for change in top], class_="changes"),
        id="top",
    )


def change_card(findings: Findings, change: StateChange) -> Element:
    """Returns one changed situation."""
    return element(
        "li",
        element("p", state_words(findings.table, change.state), class_="where"),
        moves(findings.table, change.state),
        element(
            "p",
            element("strong", f"{signed(change.contribution, 3)} of {signed(findings.gain, 3)}"),
            f"{percent(change.occupancy)} of the time is spent here, and one decision gains "
            f"{number(change.advantage, 3)}. {evidence_words(findings, change.state)}",
            class_="worth",
        ),
        class_="change",
    )


def evidence_words(findings: Findings, state: int) -> str:
    """Returns what the action rests on that gains the most chance in a situation."""
    table, action = findings.table, gaining_action(findings.table, state)
    judged = f", and {action.held_out_visits:,} of {action.held_out_decisions:,} that judge it"
    wedge = "" if table.n_wedge is None else f" (N∧ = {table.n_wedge:,})"
    sure = percent(1 - findings.certificate.delta)
    return (
        f"It rests on {action.visits:,} of {action.decisions:,} decisions that chose it{wedge}"
        f"{judged if action.held_out_decisions else ''}. Its advantage lies between "
        f"{signed(float(table.advantage_low[action.pair]), 3)} and "
        f"{signed(float(table.advantage_high[action.pair]), 3)} (about {sure})."
    )


def state_words(table: PolicyTable, state: int) -> list[Element]:
    """Returns a situation in the users' own words, each with the name of its column."""
    words = table.vocabulary
    return [
        element(
            "span", element("span", label(name), " ", class_="column"), label(text), class_="part"
        )
        for name, text in zip(words.state_columns, words.states[state], strict=True)
    ]


def moves(table: PolicyTable, state: int) -> Element:
    """Returns how often actions are taken before and after, the largest change first."""
    pairs, changed = moves_in(table, state)
    shown = pairs[: min(max(changed, 1), MOST_MOVES)]
    left = pairs.size - shown.size
    rest = "the same as before" if changed <= shown.size else "in policy.csv"
    return element(
        "ul",
        [move(table, int(pair)) for pair in shown],
        element("li", element("span", f"{counted(left, 'other action')}: {rest}", class_="rest"))
        if left
        else None,
        class_="moves",
    )


def move(table: PolicyTable, pair: int) -> Element:
    """Returns how often one action is taken, before and after."""
    before, after = float(table.behavior[pair]), float(table.probability[pair])
    same = abs(after - before) <= UNCHANGED
    shares = [] if same else [percent(before), " → "]
    return element(
        "li",
        action_words(table, pair),
        change_bar(before, before if same else after),
        element("span", shares, element("b", percent(after)), class_="from-to"),
    )


# ---- the table -----------------------------------------------------------------------------------


def table_section(findings: Findings) -> Element:
    """Returns situations with what is done there, the changed ones first."""
    rows, table = table_rows(findings), findings.table
    before = " (before: estimated)" if findings.behavior_is_estimated else ""
    columns = [
        *(Column(label(name)) for name in table.vocabulary.state_columns),
        Column(f"Decisions, before → after{before}"),
        *number_columns(
            "Time spent there", "One decision gains", "Share in the gain", "Seen in the log"
        ),
    ]
    return element(
        "section",
        element("h2", "What changes", estimated_tag(findings)),
        element(
            "p",
            "One row a situation. The gain of one decision is against what the current policy does "
            "there on average; the shares of all situations add up to the expected gain of "
            f"{signed(findings.gain)}.",
        ),
        [element("p", words) for words in limits_words(table, findings.record.parameters)],
        left_out(findings, len(rows)),
        filter_bar(
            "situations",
            "Find a situation or an action",
            {"changed": "Changed only", "kept": "Unchanged only"},
        ),
        data_table(
            "situations",
            "Situations: what the current policy does, and what the new one does",
            columns,
            rows,
            sortable=True,
        ),
        id="changes",
    )


def left_out(findings: Findings, shown: int) -> Element | None:
    """Returns that the table is not all there is, or None where it is."""
    all_states, changed = findings.table.num_deciding, len(findings.changes)
    if shown == all_states:
        return None
    missing = max(changed - shown, 0)
    which = (
        f"{counted(missing, 'changed situation')} with a smaller share in the gain are not here."
        if missing
        else "Every changed situation is here."
    )
    return element(
        "div",
        element("p", f"Only {shown:,} of {all_states:,} situations are listed", class_="loud"),
        element("p", f"{which} The file policy.csv holds all of them, action by action."),
        class_="box caution",
    )


def table_rows(findings: Findings) -> list[Row]:
    """Returns changed situations by their share in the gain, others by the time spent there."""
    table = findings.table
    width = len(table.vocabulary.state_columns) + MOST_MOVES
    limit = max(min(MOST_ROWS, MOST_CELLS // width), MOST_MATTER)
    changed = [changed_row(findings, change) for change in findings.changes[:limit]]
    rest = kept_states(findings)[: limit - len(changed)]
    return changed + [kept_row(findings, int(state)) for state in rest]


def changed_row(findings: Findings, change: StateChange) -> Row:
    """Returns the row of a situation in which something changes."""
    numbers = [
        Cell(signed(change.advantage, 3), change.advantage),
        Cell(signed(change.contribution, 3), change.contribution),
    ]
    return state_row(findings, change.state, numbers, "changed")


def kept_row(findings: Findings, state: int) -> Row:
    """Returns the row of a situation in which all stays as it was."""
    return state_row(findings, state, [Cell("–"), Cell("–")], "kept")


def state_row(findings: Findings, state: int, numbers: Sequence[Cell], group: str) -> Row:
    """Returns a row of the table of situations."""
    table = findings.table
    share = float(findings.behavior_occupancy[state])
    visits = int(table.decisions[state])
    cells = [
        *label_cells(table.vocabulary.states[state]),
        Cell(moves(table, state)),
        Cell([share_bar(share), amount(percent(share))], share),
        *numbers,
        Cell(f"{visits:,}", visits),
    ]
    return Row(cells, group)
