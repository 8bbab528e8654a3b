"""Makes the tables of a run: readable names, rows for CSV, and text for Markdown."""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from surestep._words import Scale, counted, escaped_cell, number
from surestep.experiments.comparison import UNKNOWN, Compared, Comparison, Difference
from surestep.experiments.experiment import (
    CONTENT,
    PER_REPETITION,
    STREAM,
    read_environment,
    read_label,
)
from surestep.experiments.intervals import Interval
from surestep.experiments.metrics import (
    SHARES,
    CellSummary,
    Method,
    Summary,
    first_certified,
    whole_or_none,
    without_size,
)
from surestep.experiments.runs import method_text

ALGORITHMS = {  # the names that authors gave to their algorithms
    "basic-rl": "Basic RL",
    "spibb": "SPIBB",
    "lower-spibb": "SPIBB (≤)",
    "spibb-2s": "2s",
    "spibb-beta": "β",
    "exact-soft-spibb": "Soft-SPIBB (exact)",
    "approx-soft-spibb": "Soft-SPIBB (approximate)",
    "lower-soft-spibb": "Soft-SPIBB (lower)",
    "advantage-soft-spibb": "Soft-SPIBB (advantageous)",
    "one-step-exact-soft-spibb": "Soft-SPIBB (exact, one step)",
    "one-step-approx-soft-spibb": "Soft-SPIBB (approximate, one step)",
    "ramdp": "RaMDP",
    "rmin": "R-MIN",
    "pessimistic-mbie": "MBIE (pessimistic)",
    "duipi": "DUIPI",
    "robust-mdp": "Robust MDP",
    "vi-lcb": "VI-LCB",
    "hcpi": "HCPI",
}
OF_CERTIFIERS = {  # settings that are named, as their value alone is unclear
    "prior_weight": "c",
    "n_wedge": "N∧",
    "delta": "δ",
    "worlds": "worlds",
}
LEFT_OUT = ("known_start", "draws", "starts", "reward_low", "reward_high", "horizon")
OF_CLAIMS = {"violation": "P(Δ < L)", "positive": "P(L > 0)", "tightness": "tightness"}
METRICS = {
    "student": "Student (asymptotic): mean",
    "better": "better than π_b",
    "worse": "worse than π_b",
    **OF_CLAIMS,
}
STREAM_OF_STEPS = "wet-chicken/heuristic"  # its data sets are streams of steps
LETTERS = {"epsilon": "ε", "kappa": "κ", "delta": "δ", "xi": "ξ", "n_wedge": "N∧"}


def algorithm_name(algorithm: str) -> str:
    """Returns the name that the authors gave to an algorithm, or its name here."""
    return ALGORITHMS.get(algorithm, algorithm)


def settings_in_words(setting: str) -> str:
    """Returns the settings of a label in words: 'ε = 0.1, rewards = known'."""
    return ", ".join(
        f"{LETTERS.get(name, name)} = {value}" for name, value in read_label(setting).items()
    )


def method_name(method: Method) -> str:
    """Returns a method with its settings: 'SPIBB, N∧ = 100'."""
    n_wedge = "" if method.n_wedge is None else f"N∧ = {method.n_wedge}"
    parts = (algorithm_name(method.algorithm), n_wedge, settings_in_words(method.setting))
    return ", ".join(filter(None, parts))


def metric_name(metric: str) -> str:
    """Returns the name of a metric: 'mean', '10 % CVaR', 'better than π_b'."""
    if metric.startswith("cvar"):
        return f"{metric.removeprefix('cvar')} % CVaR"
    return METRICS.get(metric, metric)


def counts_steps(label: str) -> bool:
    """Tells whether data sizes in an environment are steps of one stream, and not trajectories."""
    name, parameters = read_environment(label)
    # With content, a user chose the name.
    return STREAM in parameters or (name == STREAM_OF_STEPS and CONTENT not in parameters)


def size_axis(labels: Iterable[str]) -> str:
    """Returns the label for an axis of data sizes: 'trajectories in the data set'.

    If some environments count steps and others trajectories, it is 'size of the data set'.
    """
    nouns = {"steps in" if counts_steps(label) else "trajectories in" for label in labels}
    return f"{nouns.pop() if len(nouns) == 1 else 'size of'} the data set"


def size_words(size: int, label: str) -> str:
    """Returns a data size in an environment: '1,000 trajectories', or '1 step'."""
    if counts_steps(label):
        return counted(size, "step")
    return counted(size, "trajectory", "trajectories")


def environment_name(label: str) -> str:
    """Returns the readable name of an environment, without digests and seeds by repetition."""
    name, parameters = read_environment(label)
    shown = [
        f"{LETTERS.get(key, key)} = {value}"
        for key, value in parameters.items()
        if key not in (CONTENT, STREAM) and (key, value) != ("seed", PER_REPETITION)
    ]
    return ", ".join([name, *shown])


WORDS_FOR: dict[str, Callable[[Any], str]] = {  # the parts of a figure
    "environment": environment_name,
    "algorithm": algorithm_name,
    "setting": lambda setting: settings_in_words(setting) or "no settings",
    "n-wedge": lambda n_wedge: "no N∧" if n_wedge is None else f"N∧ = {n_wedge}",
    "metric": metric_name,
}


def words_for(part: str, value: object) -> str:
    """Returns the name of a column, a row or a line of a figure."""
    return WORDS_FOR.get(part, lambda other: "" if other is None else str(other))(value)


# ---- names of claims ---------------------------------------------------------------------------


def task_name(summary: CellSummary) -> str:
    """Returns the environment and the algorithm with its settings: 'gridworld: spibb, N∧ = 27'."""
    cell = summary.cell
    n_wedge = "" if math.isnan(cell.n_wedge) else f"N∧ = {cell.n_wedge:g}"
    setting = cell.setting.replace("n_wedge=auto", "N∧ chosen")
    return ", ".join(filter(None, [f"{cell.family}: {cell.algorithm}", n_wedge, setting]))


def claim_names(summaries: Sequence[CellSummary]) -> list[str]:
    """Returns the certifier of each claim; with all settings if the short name is ambiguous."""
    few = [certifier_name(one) for one in summaries]
    many = [
        ", ".join(filter(None, [one.cell.certifier, settings_in_words(one.cell.certifier_setting)]))
        for one in summaries
    ]
    meanings = Counter(name for name, _ in {*zip(few, many, strict=True)})
    return [name if meanings[name] == 1 else full for name, full in zip(few, many, strict=True)]


def certifier_name(summary: CellSummary) -> str:
    """Returns the short name of a certifier with its main settings: 'robust, l1'."""
    parts = [summary.cell.certifier]
    for key, value in read_label(summary.cell.certifier_setting).items():
        if key in LEFT_OUT or value == "False":
            continue
        if key == "train_share":
            parts.append("held out")
        elif value == "True":
            parts.append(key)
        else:
            parts.append(f"{OF_CERTIFIERS[key]} = {value}" if key in OF_CERTIFIERS else value)
    return ", ".join(parts)


# ---- rows --------------------------------------------------------------------------------------

NOTHING = Difference(UNKNOWN, UNKNOWN, UNKNOWN)
DIFFERENCES = ("difference", "ahead", "behind", "difference_student")
OF_DIFFERENCES = (
    "mean difference to",
    "better than",
    "worse than",
    "Student (asymptotic): mean difference to",
)
TableRow = Mapping[str, Any]


def comparison_rows(comparisons: Sequence[Comparison]) -> list[TableRow]:
    """Returns a row for each method of each comparison, with its difference to `against`."""
    return [
        row_of(one.summary)
        | {"against": method_text(comparison.against)}
        | dict(zip(shown(DIFFERENCES, one.summary), one.difference or NOTHING, strict=False))
        for comparison in comparisons
        for one in comparison.methods
    ]


def shown(columns: Sequence[str], one: Summary) -> Sequence[str]:
    """Returns the columns of differences; the last, with Student's intervals, only if asked for."""
    return columns if "student" in one.metrics else columns[:-1]


def row_of(one: Summary) -> dict[str, Any]:
    """Returns a summary as a row."""
    return {
        "environment": one.environment,
        "episodes": one.episodes,
        **one.method._asdict(),
        **{name: getattr(one, name) for name in Summary._fields[3:-1]},
        **one.metrics,
    }


def claim_rows(cells: Sequence[CellSummary]) -> list[TableRow]:
    """Returns a row for each cell.

    `first_certified` is the smallest data size at which half of the repetitions certify a gain.
    """
    first = first_certified(cells)
    plain = [name for name in CellSummary._fields[1:] if name not in ("violation", "positive")]
    return [
        one.cell._asdict()
        | {"n_wedge": whole_or_none(one.cell.n_wedge)}
        | {name: getattr(one, name) for name in (*plain, "violation", "positive")}
        | {"first_certified": first[without_size(one.cell)]}
        for one in cells
    ]


def as_csv(rows: Iterable[TableRow]) -> str:
    """Returns rows as CSV, numbers with nine digits; an interval has a column for each end.

    A cell is empty if its number is unknown, such as an end that needs more repetitions.
    """
    flat = [dict(cells_of(row)) for row in rows]
    text = io.StringIO()
    writer = csv.DictWriter(
        text, list(dict.fromkeys(name for row in flat for name in row)), lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def cells_of(row: TableRow) -> Iterator[tuple[str, object]]:
    """Yields the cells of a row."""
    for name, value in row.items():
        if isinstance(value, Interval):
            yield from zip((name, f"{name}_low", f"{name}_high"), map(cell, value), strict=True)
        else:
            yield name, cell(value)


def cell(value: Any) -> object:
    """Returns a number with nine digits, nothing for NaN, and texts escaped; tuples are joined."""
    if isinstance(value, tuple):
        value = " or ".join(value)
    if not isinstance(value, float):
        return escaped_cell(value) if isinstance(value, str) else value
    return "" if math.isnan(value) else float(f"{value:.9g}")


# ---- text tables, as Markdown --------------------------------------------------------------------

VALUES = {"performance": "ρ", "gain": "ρ − ρ(π_b)", "normalised": "(ρ − ρ(π_b)) / (ρ(π*) − ρ(π_b))"}
SHARE_SCALE = Scale(0, 3)
INTERVALS = (
    "All intervals are 95 % intervals, each on its own, and hold for every distribution between "
    "the bounds of what policies can earn: of means and differences by betting, of the CVaR by "
    "order statistics, of shares Clopper and Pearson's. A dash is an end that the repetitions are "
    "too few for, or for which no bound is known. Differences are taken on the same data."
)
STUDENT = (
    "Student's intervals are asymptotic: right for normal values and in the limit of many "
    "repetitions. If values are skewed, or bad ones rare, they miss the truth in more than 5 %."
)
CLAIM_HEADINGS = (
    "claim", "standing", "δ", "wrong: Δ < L", "certifies a gain: L > 0", "refused", "tightness",
    "mean gain Δ", "mean L",
)  # fmt: skip
CLAIM_INTERVALS = (
    "Rates are over all repetitions, refusals included, with Clopper and Pearson's 95 % intervals, "
    "each on its own. A claim of confidence 1 − δ may be wrong in a share δ of the repetitions. "
    "Tightness is mean max(L, 0) / mean Δ. MDPs of a family are pooled."
)
# What Markdown obeys; an underscore between letters it does not.
OBEYED = re.compile(r"[\\|*`<>~$]|(?<![^\W_])_|_(?![^\W_])|\((?<=\]\()|&(?=#?\w+;)")
# Control characters, ends of lines and marks of direction, which are replaced by a space.
BREAKS = re.compile(r"[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+")


class TextTable(NamedTuple):
    """A table: a column of words, then columns of numbers; a cell may have several lines."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def comparison_table(comparison: Comparison, value: str) -> TextTable:
    """Returns the table of metrics and differences in one environment at one data size."""
    methods = comparison.methods
    first = methods[0].summary
    shares = {name: name in SHARES for name in first.metrics}
    reached = [one.summary.metrics[name] for one in methods for name in shares if not shares[name]]
    apart = [one.difference.mean for one in methods if one.difference is not None]
    scale = Scale.of([interval.value for interval in reached or apart], 4)
    headings = ["method", *map(metric_name, shares)]
    if len(methods) > 1:
        other = method_name(comparison.against)
        headings += [f"{how}\n{other}" for how in shown(OF_DIFFERENCES, first)]

    def cells(one: Compared) -> list[str]:
        reached = [
            interval_words(one.summary.metrics[name], SHARE_SCALE if shares[name] else scale)
            for name in shares
        ]
        beside = (
            map(interval_words, one.difference, (scale, SHARE_SCALE, SHARE_SCALE, scale))
            if one.difference
            else [""] * 4
        )
        return [method_name(one.summary.method), *reached, *beside][: len(headings)]

    place = (
        f"{environment_name(comparison.environment)}, "
        f"{size_words(comparison.episodes, comparison.environment)}, "
        f"{comparison.repetitions:,} repetitions, π_b {number(first.behavior_performance)}, "
        f"π* {number(first.optimal_performance)}: {VALUES[value]}"
    )
    return TextTable(place, headings, [cells(one) for one in methods])


def claim_tables(summaries: Sequence[CellSummary]) -> list[TextTable]:
    """Returns a table for each algorithm in each family at each data size."""
    together: dict[str, list[list[str]]] = {}
    for one, name in zip(summaries, claim_names(summaries), strict=True):
        size = size_words(one.cell.episodes, one.cell.family)
        place = f"{task_name(one)}, {size}, {one.repetitions:,} repetitions"
        together.setdefault(place, []).append(
            [
                name,
                " or ".join(one.standing) or "refused",
                number(one.delta),
                interval_words(one.violation, SHARE_SCALE),
                interval_words(one.positive, SHARE_SCALE),
                SHARE_SCALE.number(one.refused),
                SHARE_SCALE.number(one.tightness),
                number(one.mean_gain),
                number(one.mean_lower),
            ]
        )
    return [TextTable(place, CLAIM_HEADINGS, rows) for place, rows in together.items()]


def interval_words(interval: Interval, scale: Scale) -> str:
    """Returns a number with its interval: '0.543', '[0.541, 0.546]'; a dash for a missing end."""
    low, high = (
        "–" if math.isnan(end) else scale.number(end) for end in (interval.low, interval.high)
    )
    return f"{scale.number(interval.value)}\n[{low}, {high}]"


def as_markdown(table: TextTable) -> str:
    """Returns the table as Markdown, with its caption above."""
    lines = [table.headings, ["---", *["---:"] * (len(table.headings) - 1)], *table.rows]
    bars = ["| " + " | ".join(map(in_markdown, line)) + " |" for line in lines]
    return "\n".join([f"**{in_markdown(table.caption)}**", "", *bars])


def in_markdown(text: str) -> str:
    r"""Escapes a text, so that Markdown shows it unchanged.

    >>> print(in_markdown("0.5 [0.4, 0.6] a|b *c* π_b"))
    0.5 [0.4, 0.6] a\|b \*c\* π_b
    """
    return OBEYED.sub(r"\\\g<0>", BREAKS.sub(" ", text))
