"""Writes what `surestep inspect` shows: coverage of a log, its limits, and suspicious rows."""

from collections.abc import Iterator

import surestep.sections as show
from surestep._words import counted, harmless, listed, number, percent
from surestep.checks.words import failed, summary
from surestep.errors import said
from surestep.io.labels.vocabulary import called
from surestep.io.logs.findings import Example
from surestep.io.logs.inspection import Rewards
from surestep.report.checks import checks_section
from surestep.report.data import visit_bars
from surestep.results.inspection import Inspection, Overlap

MOST_ACTIONS = 12  # columns of the table of visits
DISCOUNTS = (0.9, 0.95, 0.99)  # that many would choose from


def inspection_sections(inspection: Inspection, following: str) -> list[show.Section]:
    """Returns the sections of an inspection; `following` is the command to run next."""
    cautions = [
        show.Item("", caution.says, sign="!", mood="caution") for caution in inspection.cautions
    ]
    enough = show.Item(
        "", "Nothing: every state has actions to choose from.", sign="✓", mood="good"
    )
    clean = show.Item("", "None found.", sign="✓", mood="good")
    words = "Mend the rows that are refused, then:" if inspection.refused else "Then:"
    return [
        overview(inspection),
        coverage_section(inspection),
        show.Section("limits", "What the log is too thin for", items=cautions or [enough]),
        checks_section(inspection.checks, folded=False),
        show.Section("suspicious", "Suspicious rows", items=suspicious(inspection) or [clean]),
        show.Section("next", "Next", [*discount_words(inspection), words], command=following),
    ]


def overview(inspection: Inspection) -> show.Section:
    """Returns the size of the log, its columns, and how episodes and rewards are spread."""
    free = sum(inspection.states_by_trusted[2:])
    failing = len(failed(inspection.checks))
    many = len(inspection.suspicions)
    reached = inspection.states_only_reached
    facts = [
        ("states", f"{inspection.states:,}{f', {reached:,} more only reached' if reached else ''}"),
        ("actions", f"{len(inspection.actions):,}"),
    ]
    if inspection.rewards is not None:
        facts.append(("rewards", rewards_words(inspection.rewards)))
    if inspection.unfinished:
        stopped = (
            f"{counted(inspection.unfinished, 'row')} at which the recording stopped: no visits"
        )
        facts.append(("unfinished", stopped))
    if inspection.overlap is not None:
        facts.append(("policy", f"{inspection.overlap.policy}: {fit(inspection.overlap)}"))
    facts += [
        (role.replace("_", " "), inspection.columns.described(role))
        for role in inspection.columns.shown
    ]
    trusted = f"two or more actions with more than {inspection.n_wedge:,} visits"
    takes = f"counting {'refuses' if inspection.refused else 'takes'} the log as it is"
    kinds = counted(many, "kind") if many else "none"
    wrong = f"{failing:,} failed" if failing else "none failed"
    return show.Section(
        "overview",
        harmless(inspection.source, 200),
        keys=[
            show.Key("Rows", f"{inspection.rows:,}", ends_words(inspection)),
            show.Key(
                "States with a choice",
                f"{free:,} of {inspection.states:,}",
                trusted,
                "good" if free else "bad",
            ),
            show.Key(
                "Suspicious rows",
                kinds,
                takes,
                "bad" if inspection.refused else "plain" if many else "good",
            ),
            show.Key(
                "Assumptions", wrong, summary(inspection.checks), "bad" if failing else "plain"
            ),
        ],
        facts=facts,
        pictures=[*spreads(inspection)],
    )


def spreads(inspection: Inspection) -> Iterator[show.Picture]:
    """Draws the lengths of episodes and the rewards as histograms."""
    episodes = inspection.episodes
    rewards = inspection.rewards
    if episodes is not None:
        caption = show.Caption(
            "episode-rows",
            "Rows an episode",
            f"{episodes.lowest:,} to {episodes.highest:,} rows, median {episodes.median:,}.",
        )
        yield show.Histogram(
            caption, "rows", "episode", episodes.edges, [show.Layer(episodes.histogram)]
        )
    if rewards is not None and len(rewards.bins) > 1:
        many = len(rewards.bins)
        width = (rewards.high - rewards.low) / many
        edges = [*(rewards.low + i * width for i in range(many)), rewards.high]
        caption = show.Caption("rewards", "Rewards", f"{rewards_words(rewards)}.")
        yield show.Histogram(caption, "reward", "row", edges, [show.Layer(rewards.bins)])


def coverage_section(inspection: Inspection) -> show.Section:
    """Returns how often pairs are visited, and in how many states that leaves a choice."""
    seen = inspection.coverage
    n_wedge = inspection.n_wedge
    share = percent(seen.visits_trusted / inspection.visits) if inspection.visits else "none"
    states = [
        show.Bar(f"{i:,}", times, "blue" if i > 1 else "orange")
        for i, times in enumerate(inspection.states_by_trusted)
        if times or i < 3
    ]
    alone = sum(inspection.states_by_tried[1:2])
    return show.Section(
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
            show.Bars(
                show.Caption(
                    "pairs-by-visits",
                    "Pairs by visits",
                    f"Blue: more than N∧ = {n_wedge:,} visits, which may change. Orange: kept as "
                    "before.",
                ),
                "visits",
                "pair",
                visit_bars(seen.histogram, n_wedge),
            ),
            show.Bars(
                show.Caption(
                    "states-by-choice",
                    "States by trusted actions",
                    f"By actions with more than {n_wedge:,} visits: with fewer than two nothing "
                    "can change.",
                ),
                "trusted actions",
                "state",
                states,
            ),
        ],
        tables=[states_table(inspection), actions_table(inspection)],
    )


def states_table(inspection: Inspection) -> show.Table:
    """Returns a table of visits by states and actions, the busiest first; too few in brackets."""
    actions = sorted(enumerate(inspection.actions), key=lambda placed: -placed[1].visits)
    order = [place for place, _ in actions[:MOST_ACTIONS]]
    roles = inspection.columns
    names = [
        ", ".join(called(inspection.actions[i].action, roles.action, inspection.names))
        for i in order
    ]
    columns = [*(show.Column(name) for name in roles.state), *show.numbers(*names)]

    def cell(visits: int) -> show.Cell:
        text = f"{visits:,}" if visits > inspection.n_wedge else f"({visits:,})" if visits else "·"
        return show.Amount(text, visits)

    rows = [
        [*called(use.state, roles.state, inspection.names), *(cell(use.visits[i]) for i in order)]
        for use in inspection.busiest
    ]
    return show.Table(
        "states",
        f"Visits in the busiest of {counted(inspection.states, 'state')}; in brackets at most "
        f"{inspection.n_wedge:,}, · never",
        columns,
        rows,
        sortable=True,
    )


def actions_table(inspection: Inspection) -> show.Table:
    """Returns how often each action was taken, and in how many states."""
    total = inspection.visits or 1
    rows = [
        [
            *called(use.action, inspection.columns.action, inspection.names),
            show.Amount(f"{use.visits:,}", use.visits),
            show.Amount(percent(use.visits / total), use.visits),
            show.Amount(f"{use.states:,}", use.states),
            show.Amount(f"{use.trusted_states:,}", use.trusted_states),
        ]
        for use in inspection.actions
    ]
    columns = [
        *(show.Column(name) for name in inspection.columns.action),
        *show.numbers("visits", "share", "states", f"states with more than {inspection.n_wedge:,}"),
    ]
    return show.Table("actions", "All actions", columns, rows, sortable=True)


def suspicious(inspection: Inspection) -> list[show.Item]:
    """Lists suspicious rows, with the first places of each kind."""
    return [
        show.Item(
            "",
            f"{suspicion.says}{' (refused)' if suspicion.refused else ''}",
            "; ".join(map(place, suspicion.examples)),
            sign="✗" if suspicion.refused else "!",
            mood="bad" if suspicion.refused else "caution",
        )
        for suspicion in inspection.suspicions
    ]


def place(example: Example) -> str:
    """Names the place of a row, and the value there."""
    file, row, episode, step, value = example
    parts = [
        "" if file is None else harmless(file, 200),
        f"row {row:,}",
        "" if episode is None else f"episode {harmless(episode)}",
        "" if step is None else f"step {harmless(step)}",
    ]
    there = "nothing there" if value is None else harmless(value)
    return f"{', '.join(filter(None, parts))}: {there}"


# ---- words --------------------------------------------------------------------------------------


def ends_words(inspection: Inspection) -> str:
    """Returns how many episodes there are, and how they end."""
    if inspection.episodes is None:
        return "loose transitions"
    many, *ends = inspection.episodes[:4]
    words = ("terminated", "truncated", "without an end")
    how = [f"{times:,} {word}" for times, word in zip(ends, words, strict=True) if times]
    return f"{counted(many, 'episode')}: {listed(how)}"


def rewards_words(rewards: Rewards) -> str:
    """Returns the range of rewards, such as '−400 to 300, median 90', and their outliers."""
    middle = number(rewards.quartiles[1])
    words = f"{number(rewards.low)} to {number(rewards.high)}, median {middle}"
    beyond = [number(rewards.lowest)] if rewards.lowest < rewards.low else []
    beyond += [number(rewards.highest)] if rewards.highest > rewards.high else []
    return f"{words}, and outliers as far as {listed(beyond)}" if beyond else words


def fit(overlap: Overlap) -> str:
    """Returns whether the given policy can have made the log."""
    if overlap.states_unknown or overlap.impossible:
        return "cannot have made this log"
    return "unlikely to have made this log" if overlap.unlikely else "fits the log"


def discount_words(inspection: Inspection) -> list[str]:
    """Explains the discount that has to be chosen by what it means for episodes as long as these.

    A reward n steps ahead counts γⁿ, so the last of an episode of n rows counts γⁿ⁻¹ at its start.
    """
    meaning = "The discount γ is yours to choose: a reward n steps ahead counts γⁿ of one now."
    episodes = inspection.episodes
    ahead = 20 if episodes is None else episodes.median - 1
    weights = listed([f"{percent(discount**ahead)} with {discount:g}" for discount in DISCOUNTS])
    if episodes is None:
        return [f"{meaning} One 20 steps ahead counts {weights}."]
    if episodes.highest == 1:
        return [f"{meaning} Every episode here has one row, so that any γ means the same."]
    sentences = [
        f"{meaning} Episodes here have {counted(episodes.median, 'row')} (median), up to "
        f"{episodes.highest:,}: at its start, the reward in row {episodes.median:,} of an episode "
        f"counts {weights}."
    ]
    if episodes.terminated == episodes.number:
        sentences.append(
            "Every episode here comes to its end, so that γ = 1 "
            f"({said('discount=1', '--discount 1')}) can be chosen too: then rewards count the "
            "same however late they come."
        )
    return sentences
