"""Names of claims in pictures and tables: of certifiers, algorithms and environments."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from surestep.experiments.coverage import CellSummary
from surestep.experiments.experiment import read_label
from surestep.experiments.naming import setting_words

WORDS = {  # what a setting is called in a legend, where its value alone would not be understood
    "prior_weight": "c",
    "n_wedge": "N∧",
    "delta": "δ",
    "worlds": "worlds",
}
Claimant = tuple[str, str]  # a certifier and its settings, as tables have them
LEFT_OUT = ("known_start", "draws", "starts", "reward_low", "reward_high", "horizon")


def task_name(summary: CellSummary) -> str:
    """Returns where which algorithm was run: 'gridworld: spibb, N∧ = 27'."""
    return f"{summary.cell.family}: {proposal_name(summary)}"


def proposal_name(summary: CellSummary) -> str:
    """Returns the algorithm with its settings: 'spibb, N∧ = 27'."""
    cell = summary.cell
    parts = [cell.algorithm]
    if not math.isnan(cell.n_wedge):
        parts.append(f"N∧ = {cell.n_wedge:g}")
    if cell.setting:
        parts.append(cell.setting.replace("n_wedge=auto", "N∧ chosen"))
    return ", ".join(parts)


def claimant_of(summary: CellSummary) -> Claimant:
    """Returns who claims."""
    return summary.cell.certifier, summary.cell.certifier_setting


def certifier_names(summaries: Iterable[CellSummary]) -> dict[Claimant, str]:
    """Returns all who claim with their names, which have all settings where few are not enough."""
    names = {claimant_of(summary): certifier_name(summary) for summary in summaries}
    times = Counter(names.values())
    return {
        (certifier, setting): name
        if times[name] == 1
        else ", ".join(filter(None, [certifier, setting_words(setting)]))
        for (certifier, setting), name in names.items()
    }


def certifier_name(summary: CellSummary) -> str:
    """Returns the certifier with the settings that tell it from others: 'robust, l1'."""
    parts = [summary.cell.certifier]
    for key, value in read_label(summary.cell.certifier_setting).items():
        if key in LEFT_OUT or value == "False":
            continue
        if key == "train_share":
            parts.append("held out")
        elif value == "True":
            parts.append(key)
        else:
            parts.append(f"{WORDS[key]} = {value}" if key in WORDS else value)
    return ", ".join(parts)
