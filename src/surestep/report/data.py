"""Writes the sections on the data: size and coverage of the log, and which data would help most."""

from collections.abc import Iterator, Sequence

from surestep._words import counted, number, short
from surestep.results.findings import Findings, PolicyTable
from surestep.results.plots import VisitBin, visit_bins
from surestep.results.record import Baseline, Parameters
from surestep.sections import Amount, Bar, Bars, Caption, Column, Section, Table, numbers

MOST_WANTED = 20


def data_section(findings: Findings) -> Section:
    """Describes the size and the coverage of the log."""
    return Section(
        "data",
        "The data",
        [
            coverage_words(findings),
            *limits_words(findings.table, findings.record.parameters),
            *baseline_words(findings.record.baseline),
        ],
        facts=log_facts(findings),
        pictures=[visits_picture(findings)],
        folded=True,
    )


def chooser(table: PolicyTable) -> str:
    """Names the rows that count towards N∧: the log, or the part of it that chose the policy."""
    return "the part of the log that chose" if table.held_out_visits.any() else "the log"


def coverage_words(findings: Findings) -> str:
    """Says how many pairs have enough visits to be changed."""
    table = findings.table
    visits = (table.visits + table.held_out_visits)[table.decided]
    unseen = int((visits == 0).sum())
    start = "Every action was tried in every situation."
    if unseen:
        pairs = counted(visits.size, "pair")
        start = f"Of {pairs} of a situation and an action, the log never shows {unseen:,}."
    if table.trusted is None or table.n_wedge is None:
        return start
    chosen = findings.record.parameters.n_wedge_chosen_by
    origin = f"chosen by the lower bound of {chosen}" if chosen else "given"
    return (
        f"{start} Actions seen at least {table.n_wedge + 1:,} times in {chooser(table)} may change "
        f"(N∧ = {table.n_wedge:,}, {origin}): {int(table.trusted.sum()):,} pairs."
    )


def limits_words(table: PolicyTable, parameters: Parameters) -> Iterator[str]:
    """Says which pairs may be recommended, a sentence a limit; nothing where all may."""
    pairs = int(table.decided.sum())
    if table.allowed is not None:
        yield (
            f"Limits were set: {int(table.allowed.sum()):,} of "
            f"{counted(pairs, 'pair')} may be recommended; no other is taken more "
            "often than before."
        )
    if parameters.possible == "seen":
        yield "No action is recommended in a situation where the log does not show it."
    elif parameters.possible == "listed":
        yield f"Possible pairs were declared: {pairs:,}."


def baseline_words(earned: Baseline | None) -> list[str]:
    """Returns the mean return of the log's own episodes; nothing without whole episodes."""
    if earned is None:
        return []
    after = f" ({earned.cut_off:,} were cut off; the model adds the rest)" if earned.cut_off else ""
    return [
        f"The {earned.episodes:,} episodes of the log earned {number(earned.mean)} on average, "
        f"95\u202f% interval {number(earned.low)} to {number(earned.high)}{after}."
    ]


def visits_picture(findings: Findings) -> Bars:
    """Returns a picture of pairs by their visits in the rows that chose the policy."""
    table = findings.table
    n_wedge = table.n_wedge
    log = chooser(table)
    text = f"Pairs of situation and action by how often {log} shows them."
    if n_wedge is not None:
        text += f" Blue: more than {n_wedge:,} times, enough to change. Orange: too seldom."
    return Bars(
        Caption("visits-picture", "How often pairs are seen", text),
        f"times seen in {log}",
        "pair",
        visit_bars(visit_bins(table.visits[table.decided], n_wedge), n_wedge),
    )


def visit_bars(bins: Sequence[VisitBin], n_wedge: int | None) -> list[Bar]:
    """Returns the bars of pairs by their visits: blue where these are trusted."""
    return [
        Bar("never", times, "vermilion")
        if high == 0
        else Bar(f"≤ {short(high)}", times, "blue" if low > (n_wedge or 0) else "orange")
        for low, high, times in bins
    ]


def log_facts(findings: Findings) -> list[tuple[str, str]]:
    """Returns the size of the log."""
    data = findings.record.data
    dropped = "; ".join(f"{many:,}: {why}" for why, many in sorted(data["dropped"].items()))
    facts = [
        ("Rows", f"{data['rows']:,}"),
        ("Rows left out", dropped or "none"),
        ("Decisions counted", f"{int(findings.table.all_decisions.sum()):,}"),
        ("Episodes", "unknown" if data["episodes"] is None else f"{data['episodes']:,}"),
    ]
    if data["episodes"] is not None:
        facts.append(
            (
                "How they ended",
                f"{data['terminated']:,} came to their end, {data['truncated']:,} were cut off",
            )
        )
    return facts


def wanted_section(findings: Findings) -> Section:
    """Returns where more data could be worth most."""
    table = findings.table
    wanted = findings.wanted[:MOST_WANTED]
    words = table.vocabulary
    if not wanted:
        return Section(
            "wanted",
            "What data would help most",
            ["No action that was seen too seldom to be trusted looks better than the new policy."],
            folded=True,
        )
    columns = [
        *(Column(name) for name in words.state_columns),
        Column("Action"),
        *numbers(f"Seen in {chooser(table)}", "More visits needed", "Promise"),
    ]
    rows = [
        [
            *words.state_name(int(table.pairs.state[entry.pair])),
            ", ".join(words.action_name(int(table.pairs.action[entry.pair]))),
            Amount(f"{int(table.visits[entry.pair]):,}", float(table.visits[entry.pair])),
            Amount(f"{entry.more_visits:,}", entry.more_visits),
            Amount(number(entry.promise, 3), entry.promise),
        ]
        for entry in wanted
    ]
    return Section(
        "wanted",
        "What data would help most",
        [
            "These actions look better than the new policy, but were seen too seldom to be "
            "trusted. Try them more often where that is safe. The promise is how much better they "
            "look, times how often the new policy gets there."
        ],
        tables=[
            Table(
                "wanted-pairs",
                f"{len(wanted):,} of {len(findings.wanted):,}, the most promising first",
                columns,
                rows,
                sortable=True,
            )
        ],
        folded=True,
    )
