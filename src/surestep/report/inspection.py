"""An inspection: what a log holds, what it is too thin for, and which rows look wrong."""

from __future__ import annotations

from surestep._words import counted, harmless, listed, number, percent, short
from surestep.checks import summary
from surestep.errors import said
from surestep.io.logs.findings import Example
from surestep.io.logs.inspection import Rewards
from surestep.report.checks import checks_section
from surestep.results.chart_bins import Bin
from surestep.results.inspection import Inspection, reward_edges
from surestep.sections import (
    Amount,
    Bar,
    Bars,
    Caption,
    Cell,
    Column,
    Histogram,
    Item,
    Key,
    Layer,
    Mood,
    Picture,
    Section,
    Table,
    numbers,
)

MOST_ACTIONS = 12  # columns of the table of visits
DISCOUNTS = (0.9, 0.95, 0.99)  # that many would choose from


def inspection_sections(inspection: Inspection, following: str) -> list[Section]:
    """Returns all parts; `following` is the command that one might run next."""
    return [
        overview(inspection),
        coverage_section(inspection),
        limits_section(inspection),
        checks_section(inspection.checks, folded=False),
        suspicious_section(inspection),
        next_section(inspection, following),
    ]


def overview(inspection: Inspection) -> Section:
    """Returns the size of the log, its columns, and how episodes and rewards are spread."""
    episodes, free = inspection.episodes, inspection.states_with_choice
    failing, many = len(inspection.failed_checks), len(inspection.suspicions)
    reached, unfinished = inspection.states_only_reached, inspection.unfinished
    facts = [
        ("states", f"{inspection.states:,}{f', {reached:,} more only reached' if reached else ''}"),
        ("actions", f"{len(inspection.actions):,}"),
    ]
    if inspection.rewards is not None:
        facts.append(("rewards", rewards_words(inspection.rewards)))
    if unfinished:
        words = f"{counted(unfinished, 'row')} at which the recording stopped: no visits"
        facts.append(("unfinished", words))
    if inspection.overlap is not None:
        facts.append(("policy", f"{inspection.overlap.policy}: {fit(inspection)}"))
    columns = inspection.columns
    facts += [(role.replace("_", " "), columns.described(role)) for role in columns.shown]
    told = "loose transitions" if episodes is None else ends_words(inspection)
    keys = [
        Key("Rows", f"{inspection.rows:,}", told),
        Key(
            "States with a choice",
            f"{free:,} of {inspection.states:,}",
            f"two or more actions with more than {inspection.n_wedge:,} visits",
            "good" if free else "bad",
        ),
        Key(
            "Suspicious rows",
            counted(many, "kind") if many else "none",
            f"counting {'refuses' if inspection.refused else 'takes'} the log as it is",
            "bad" if inspection.refused else "plain" if many else "good",
        ),
        Key(
            "Assumptions",
            f"{failing:,} failed" if failing else "none failed",
            summary(inspection.checks),
            "bad" if failing else "plain",
        ),
    ]
    name = harmless(inspection.source, 200)
    return Section("overview", name, keys=keys, facts=facts, pictures=spreads(inspection))


def spreads(inspection: Inspection) -> list[Picture]:
    """Returns how long episodes are, and what rewards there are."""
    episodes, rewards, pictures = inspection.episodes, inspection.rewards, list[Picture]()
    if episodes is not None and episodes.rows is not None:
        rows = episodes.rows
        text = f"{rows.lowest:,} to {rows.highest:,} rows, median {rows.median:,}."
        caption = Caption("episode-rows", "Rows an episode", text)
        layer = Layer([bin.times for bin in episodes.histogram])
        pictures.append(Histogram(caption, "rows", "episode", episodes.edges, [layer]))
    if rewards is not None and len(rewards.bins) > 1:
        caption = Caption("rewards", "Rewards", f"{rewards_words(rewards)}.")
        layer = Layer(rewards.bins)
        pictures.append(Histogram(caption, "reward", "row", reward_edges(rewards), [layer]))
    return pictures


def coverage_section(inspection: Inspection) -> Section:
    """Returns how often pairs are visited, and how many states that leaves a choice in."""
    seen, n_wedge, total = inspection.coverage, inspection.n_wedge, inspection.visits
    share = percent(seen.visits_trusted / total) if total else "none"
    pairs = [
        Bar(
            bin_name(bin),
            bin.times,
            "green" if bin.low > n_wedge else "orange" if bin.high else "vermilion",
        )
        for bin in seen.histogram
    ]
    states = [
        Bar(f"{i:,}", times, "green" if i > 1 else "orange")
        for i, times in enumerate(inspection.states_by_trusted)
        if times or i < 3
    ]
    by_visits = Caption(
        "pairs-by-visits",
        "Pairs by visits",
        f"Green: more than N∧ = {n_wedge:,} visits, which may change. Orange: kept as before.",
    )
    by_choice = Caption(
        "states-by-choice",
        "States by trusted actions",
        f"States by how many actions have more than {n_wedge:,} visits; with fewer than two there "
        "is nothing to choose.",
    )
    alone = sum(inspection.states_by_tried[1:2])
    return Section(
        "coverage",
        "Coverage",
        [
            f"{counted(inspection.states, 'state')} and "
            f"{counted(len(inspection.actions), 'action')} make {counted(seen.pairs, 'pair')}; "
            f"{seen.never:,} were never visited. {counted(seen.trusted, 'pair')} with more than "
            f"{n_wedge:,} visits have {share} of all visits. In {counted(alone, 'state')} only one "
            "action was ever tried."
        ],
        pictures=[
            Bars(by_visits, "visits", "pair", pairs),
            Bars(by_choice, "trusted actions", "state", states),
        ],
        tables=[states_table(inspection), actions_table(inspection)],
    )


def bin_name(bin: Bin) -> str:
    """Returns the name of a bin below its bar, where there is little room."""
    if bin.high == 0:
        return "never"
    if bin.low == bin.high:
        return str(bin.low)
    return f"{bin.low}–{bin.high}" if bin.high < 100 else f"{short(bin.low)}+"


def states_table(inspection: Inspection) -> Table:
    """Returns visits by states and actions, the busiest first; too few stand in brackets."""
    order = inspection.actions_by_visits[:MOST_ACTIONS]
    names = [", ".join(inspection.action_name(inspection.actions[i].action)) for i in order]
    columns = [*(Column(name) for name in inspection.columns.state), *numbers(*names)]

    def cell(visits: int) -> Cell:
        text = f"{visits:,}" if visits > inspection.n_wedge else f"({visits:,})" if visits else "·"
        return Amount(text, visits)

    rows = [
        [*inspection.state_name(use.state), *(cell(use.visits[i]) for i in order)]
        for use in inspection.busiest
    ]
    caption = (
        f"Visits in the busiest of {counted(inspection.states, 'state')}; in brackets at most "
        f"{inspection.n_wedge:,}, · never"
    )
    return Table("states", caption, columns, rows, sortable=True)


def actions_table(inspection: Inspection) -> Table:
    """Returns how often each action was taken, and in how many states."""
    total = inspection.visits or 1
    rows = [
        [
            *inspection.action_name(use.action),
            Amount(f"{use.visits:,}", use.visits),
            Amount(percent(use.visits / total), use.visits),
            Amount(f"{use.states:,}", use.states),
            Amount(f"{use.trusted_states:,}", use.trusted_states),
        ]
        for use in inspection.actions
    ]
    headings = ("visits", "share", "states", f"states with more than {inspection.n_wedge:,}")
    columns = [*(Column(name) for name in inspection.columns.action), *numbers(*headings)]
    return Table("actions", "All actions", columns, rows, sortable=True)


def limits_section(inspection: Inspection) -> Section:
    """Returns what cannot be learned from the log."""
    items = [Item("", caution.says, sign="!", mood="caution") for caution in inspection.cautions]
    none = Item("", "Nothing: every state has actions to choose from.", sign="✓", mood="good")
    return Section("limits", "What the log is too thin for", items=items or [none])


def suspicious_section(inspection: Inspection) -> Section:
    """Returns what looks wrong, with the first places."""
    items = []
    for suspicion in inspection.suspicions:
        sign, refused = ("✗", " (refused)") if suspicion.refused else ("!", "")
        places = "; ".join(map(place, suspicion.examples))
        mood: Mood = "bad" if suspicion.refused else "caution"
        items.append(Item("", f"{suspicion.says}{refused}", places, sign, mood))
    none = Item("", "None found.", sign="✓", mood="good")
    return Section("suspicious", "Suspicious rows", items=items or [none])


def place(example: Example) -> str:
    """Returns where a row stands, and what is there."""
    file, row, episode, step, value = example
    parts = [] if file is None else [harmless(file, 200)]
    parts.append(f"row {row:,}")
    for name, text in (("episode", episode), ("step", step)):
        parts += [] if text is None else [f"{name} {harmless(text)}"]
    return f"{', '.join(parts)}: {'nothing there' if value is None else harmless(value)}"


def next_section(inspection: Inspection, following: str) -> Section:
    """Returns what to do with the log, and what a discount means for it."""
    words = "Mend the rows that are refused, then:" if inspection.refused else "Then:"
    return Section("next", "Next", [*discount_words(inspection), words], command=following)


# ---- words --------------------------------------------------------------------------------------


def ends_words(inspection: Inspection) -> str:
    """Returns how many episodes there are, and how they end."""
    episodes = inspection.episodes
    if episodes is None:
        return "loose transitions"
    ends = (
        (episodes.terminated, "terminated"),
        (episodes.truncated, "truncated"),
        (episodes.without_end, "without an end"),
    )
    how = [f"{many:,} {words}" for many, words in ends if many]
    return f"{counted(episodes.number, 'episode')}: {listed(how) if how else 'none'}"


def rewards_words(rewards: Rewards) -> str:
    """Returns '−400 to 300, median 90', and how far outliers lie."""
    middle = number(rewards.quartiles[1])
    words = f"{number(rewards.low)} to {number(rewards.high)}, median {middle}"
    beyond = [
        number(value)
        for value, outside in (
            (rewards.lowest, rewards.lowest < rewards.low),
            (rewards.highest, rewards.highest > rewards.high),
        )
        if outside
    ]
    return f"{words}, and outliers as far as {listed(beyond)}" if beyond else words


def fit(inspection: Inspection) -> str:
    """Returns whether the given policy can have made the log."""
    overlap = inspection.overlap
    if overlap is None:
        return "not given"
    if overlap.states_unknown or overlap.impossible:
        return "cannot have made this log"
    return "unlikely to have made this log" if overlap.unlikely else "fits the log"


def discount_words(inspection: Inspection) -> list[str]:
    """Explains the discount that has to be chosen by what it means for episodes as long as these.

    A reward n steps ahead counts γⁿ, so the last of an episode of n rows counts γⁿ⁻¹ at its start.
    """
    meaning = "The discount γ is yours to choose: a reward n steps ahead counts γⁿ of one now."
    episodes = inspection.episodes
    if episodes is None or episodes.rows is None:
        weights = [f"{percent(discount**20)} with {discount:g}" for discount in DISCOUNTS]
        return [f"{meaning} One 20 steps ahead counts {listed(weights)}."]
    length = episodes.rows.median
    if episodes.rows.highest == 1:
        return [f"{meaning} Every episode here has one row, so that any γ means the same."]
    weights = [f"{percent(discount ** (length - 1))} with {discount:g}" for discount in DISCOUNTS]
    sentences = [
        f"{meaning} Episodes here have {counted(length, 'row')} (median), up to "
        f"{episodes.rows.highest:,}: at its start, the reward in row {length:,} of an episode "
        f"counts {listed(weights)}."
    ]
    if episodes.terminated == episodes.number:
        sentences.append(
            "Every episode here comes to its end, so that γ = 1 "
            f"({said('discount=1', '--discount 1')}) can be chosen too: then rewards count the "
            "same however late they come."
        )
    return sentences
