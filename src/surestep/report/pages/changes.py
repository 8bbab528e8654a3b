"""Changes by situation: the changes that matter most, and a table of situations."""

from __future__ import annotations

from collections.abc import Sequence

from surestep._words import Scale, counted, percent, signed
from surestep.report.charts.small_bars import change_bar, share_bar
from surestep.report.html import Element, Node, element, label
from surestep.report.page_tables import (
    Cell,
    Column,
    Row,
    amount,
    data_table,
    filter_bar,
    further_bar,
    label_cells,
    number_columns,
)
from surestep.report.pages.shared_parts import action_words, estimated_tag
from surestep.report.words.verdict import limits_words
from surestep.results.findings import Findings, StateChange
from surestep.results.ranking import gaining_action, kept_states, moves_in
from surestep.results.table import UNCHANGED, PolicyTable

MOST_MATTER = 10
PRINTED = 5  # of these, as in page.css
MOST_ROWS, MOST_CELLS = 250, 2500  # of the table that have pictures, so that the page stays small
MOST_CHANGES = 5_000  # rows of changed situations; half a kB each, beyond the pictured ones
MOST_MOVES = 5  # actions of a situation that are shown


# ---- the changes that matter most ----------------------------------------------------------------


def top_section(findings: Findings) -> Element | None:
    """Returns the changes with the largest share in the gain, in words and bars."""
    top = [change for change in findings.changes if change.evidence != "contradicted"][:MOST_MATTER]
    if not top:
        return None
    shares, gains = scales(findings)
    many = {1: "The change that matters", 10: "The ten changes that matter most"}
    return element(
        "section",
        element("h2", many.get(len(top), "The changes that matter most"), estimated_tag(findings)),
        element(
            "p",
            "Ordered by how often one is there, times what one decision gains there. Grey is what "
            "the current policy does, blue what the new one does.",
        ),
        element("p", f"The first {PRINTED} are printed here.", class_="paper")
        if len(top) > PRINTED
        else None,
        element(
            "ol", [change_card(findings, change, shares, gains) for change in top], class_="changes"
        ),
        id="top",
    )


def scales(findings: Findings) -> tuple[Scale, Scale]:
    """Returns how shares in the gain, and gains of one decision, are written everywhere."""
    shares = Scale.of(change.contribution for change in findings.changes)
    return shares, Scale.of(change.advantage for change in findings.changes)


def change_card(findings: Findings, change: StateChange, shares: Scale, gains: Scale) -> Element:
    """Returns one changed situation."""
    whole = shares.signed(findings.chosen_gain)
    share = f"{shares.signed(change.contribution)} of {whole}{shares.unit}"
    return element(
        "li",
        element("p", state_words(findings.table, change.state), class_="where"),
        moves(findings.table, change.state),
        element(
            "p",
            element("strong", share),
            f"{percent(change.occupancy)} of the time is spent here, and one decision gains "
            f"{gains.number(change.advantage)}{gains.unit}. "
            f"{evidence_words(findings, change, gains)}",
            class_="worth",
        ),
        class_="change",
    )


def evidence_words(findings: Findings, change: StateChange, gains: Scale) -> str:
    """Returns what the action rests on that gains the most chance in a situation."""
    table, action = findings.table, gaining_action(findings.table, change.state)
    parts = (
        f": {action.visits:,} in the part that chose, {action.held_out_visits:,} in the part that "
        "checks"
    )
    sure = percent(1 - findings.certificate.delta)
    judged = "" if change.evidence is None else f"{change.evidence.capitalize()} by the rest. "
    return (
        f"{judged}Seen {action.visits + action.held_out_visits:,} times"
        f"{parts if action.held_out_decisions else ''}. Its advantage lies between "
        f"{gains.signed(float(table.advantage_low[action.pair]))} and "
        f"{gains.signed(float(table.advantage_high[action.pair]))} (about {sure})."
    )


def state_words(table: PolicyTable, state: int) -> list[Element]:
    """Returns a situation in the users' own words, each with the name of its column."""
    words = table.vocabulary
    return [
        element(
            "span", element("span", label(name), " ", class_="column"), label(text), class_="part"
        )
        for name, text in zip(words.state_columns, words.state_name(state), strict=True)
    ]


def moves(table: PolicyTable, state: int) -> Element:
    """Returns how often actions are taken before and after, the largest change first."""
    shown, rest = moves_shown(table, state)
    return element(
        "ul",
        [move(table, pair) for pair in shown],
        element("li", element("span", rest, class_="rest")) if rest else None,
        class_="moves",
    )


def moves_shown(table: PolicyTable, state: int) -> tuple[list[int], str]:
    """Returns the pairs of a situation that are shown, and what there is to say of the others."""
    pairs, changed = moves_in(table, state)
    shown = [int(pair) for pair in pairs[: min(max(changed, 1), MOST_MOVES)]]
    left = pairs.size - len(shown)
    others = "the same as before" if changed <= len(shown) else "in policy.csv"
    return shown, f"{counted(left, 'other action')}: {others}" if left else ""


def moves_in_words(table: PolicyTable, state: int) -> list[Node]:
    """Returns the same without pictures: for the many rows that few will look at."""
    shown, rest = moves_shown(table, state)
    words: list[Node] = []
    for pair in shown:
        before, after = float(table.behavior[pair]), float(table.probability[pair])
        words += [action_words(table, pair), f" {percent(before)} → {percent(after)}; "]
    return [*words, rest or None]


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
    shares, gains = scales(findings)
    before = " (before: estimated)" if findings.behavior_is_estimated else ""
    columns = [
        *(Column(label(name)) for name in table.vocabulary.state_columns),
        Column(f"Decisions, before → after{before}"),
        *number_columns(
            "Time spent there",
            f"One decision gains{gains.unit}",
            f"Share in the gain{shares.unit}",
            "Seen in the log",
        ),
        Column("By the rest of the log"),
    ]
    return element(
        "section",
        element("h2", "What changes", estimated_tag(findings)),
        element(
            "p",
            "One row a situation. The gain of one decision is against what the current policy does "
            "there on average. By the part of the log that chose the policy, the shares of all "
            f"situations add up to {signed(findings.chosen_gain)}.",
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
        further_bar("situations"),
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
    """Returns changed situations by their share in the gain, others by the time spent there.

    The first rows have pictures.
    """
    table = findings.table
    width = len(table.vocabulary.state_columns) + MOST_MOVES
    pictured = max(min(MOST_ROWS, MOST_CELLS // width), MOST_MATTER)
    shares, gains = scales(findings)
    decisions = table.all_decisions
    rows = [
        state_row(
            *(findings, change.state, int(decisions[change.state])),
            [
                Cell(gains.signed(change.advantage), change.advantage),
                Cell(shares.signed(change.contribution), change.contribution),
            ],
            change.evidence or "–",
            pictured=place < pictured,
        )
        for place, change in enumerate(findings.changes[:MOST_CHANGES])
    ]
    rest = kept_states(findings)[: max(pictured - len(rows), 0)]
    return rows + [state_row(findings, int(state), int(decisions[state])) for state in rest]


def state_row(
    findings: Findings,
    state: int,
    visits: int,
    gains: Sequence[Cell] | None = None,
    evidence: str = "–",
    *,
    pictured: bool = True,
) -> Row:
    """Returns a row of the table of situations; `gains` where something changes there."""
    table = findings.table
    share = float(findings.behavior_occupancy[state])
    time = [share_bar(share) if pictured else None, amount(percent(share))]
    cells = [
        *label_cells(table.vocabulary.state_name(state)),
        Cell(moves(table, state) if pictured else moves_in_words(table, state)),
        Cell(time, share),
        *(gains or (Cell("–"), Cell("–"))),
        Cell(f"{visits:,}", visits),
        Cell(evidence),
    ]
    return Row(cells, "changed" if gains else "kept")
