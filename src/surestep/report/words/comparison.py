"""A comparison in words and numbers: the cells of its tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from surestep._words import Scale, number
from surestep.experiments.comparison import LEVELS, Compared, Comparison
from surestep.experiments.metrics import metric_of
from surestep.experiments.naming import environment_name, method_name, metric_name, size_words
from surestep.experiments.tails import Interval
from surestep.report.text_tables import TextTable

VALUES = {
    "performance": "ρ",
    "gain": "ρ − ρ(π_b)",
    "normalised": "(ρ − ρ(π_b)) / (ρ(π*) − ρ(π_b))",
}
SHARES = Scale(0, 3)
INTERVALS = (
    "All intervals are 95 % intervals, each on its own, and hold for every distribution between "
    "the bounds of what policies can earn: of means and differences by betting, of the CVaR by "
    "order statistics, of shares Clopper and Pearson's. A dash is an end that the repetitions are "
    "too few for, or for which no bound is known. Differences are taken on the same data."
)


def comparison_tables(comparison: Comparison, value: str) -> list[TextTable]:
    """Returns the tables of a comparison: what methods reach, and which share reaches how much."""
    methods = comparison.methods
    names = list(methods[0].summary.metrics)
    other = method_name(comparison.against)
    headings = ["method", *map(metric_name, names)]
    if len(methods) > 1:
        headings += [
            f"{how}\n{other}" for how in ("mean difference to", "better than", "worse than")
        ]
    scale = scale_of(methods, names)
    rows = [
        [
            method_name(one.summary.method),
            *(
                interval_words(one.summary.metrics[name], SHARES if is_share(name) else scale)
                for name in names
            ),
            *(difference_cells(one, scale) if len(methods) > 1 else []),
        ]
        for one in methods
    ]
    return [
        TextTable(
            f"{place_words(comparison)}: {VALUES[value]}",
            headings,
            rows,
            f"Reached: {VALUES[value]}",
        ),
        profile_table(comparison),
    ]


def profile_table(comparison: Comparison) -> TextTable:
    """Returns which share of the repetitions reaches how much of what is possible."""
    headings = ["method", *(f"≥ {level:g}" for level in LEVELS)]
    rows = [
        [
            method_name(one.summary.method),
            *(interval_words(share, SHARES) for share in one.profile),
        ]
        for one in comparison.methods
    ]
    subject = "share of repetitions by normalised performance (0 is π_b, 1 is π*)"
    caption = f"{place_words(comparison)}: {subject}"
    return TextTable(caption, headings, rows, f"S{subject[1:]}")


def place_words(comparison: Comparison) -> str:
    """Returns where methods are compared: 'gridworld, 100 trajectories, 1,000 repetitions'."""
    return (
        f"{environment_name(comparison.environment)}, "
        f"{size_words(comparison.episodes, [comparison.environment])}, "
        f"{comparison.repetitions:,} repetitions, π_b "
        f"{number(comparison.methods[0].summary.behavior_performance)}, π* "
        f"{number(comparison.methods[0].summary.optimal_performance)}"
    )


def difference_cells(one: Compared, scale: Scale) -> list[str]:
    """Returns how a method differs from the one that all are compared with; nothing for itself."""
    if one.difference is None:
        return ["", "", ""]
    mean, ahead, behind = one.difference
    return [
        interval_words(mean, scale),
        interval_words(ahead, SHARES),
        interval_words(behind, SHARES),
    ]


def is_share(metric: str) -> bool:
    """Returns whether a metric is a share of repetitions."""
    return metric_of(metric).is_share


def scale_of(methods: Iterable[Compared], names: Sequence[str]) -> Scale:
    """Returns the scale on which all that is reached has four digits."""
    reached = [
        one.summary.metrics[name].value for one in methods for name in names if not is_share(name)
    ]
    return Scale.of(reached, 4)


def interval_words(interval: Interval, scale: Scale) -> str:
    """Returns a number with its interval: '0.543', '[0.541, 0.546]'; a dash for an end without."""
    low, high = (
        "–" if math.isnan(end) else scale.number(end) for end in (interval.low, interval.high)
    )
    return f"{scale.number(interval.value)}\n[{low}, {high}]"


def ends_words(interval: Interval) -> str:
    """Returns the ends of an interval: '[0.541, 0.546]'."""
    return f"[{number(interval.low)}, {number(interval.high)}]"
