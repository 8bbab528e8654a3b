"""The settings of a run, from which it can be made again."""

from __future__ import annotations

import math
from collections.abc import Sequence

from surestep._words import duration, number
from surestep.experiments.findings import Setup
from surestep.experiments.naming import environment_name, method_name
from surestep.report.html import Element, Node, element, label
from surestep.report.page_tables import facts, more
from surestep.report.pages.record import setting_words

SHOWN = 20  # names of a list


def settings_section(setup: Setup, certifiers: Sequence[str] = ()) -> Element:
    """Returns the experiment, what made its rows, and where the time went."""
    entries: list[tuple[Node, Node]] = [
        ("experiment", label(setup.name)),
        ("seed", setting_words(setup.plan.get("seed"))),
        ("repetitions", f"{setup.repetitions:,}"),
        ("data sizes", ", ".join(f"{size:,}" for size in setup.sizes)),
        ("environments", listed([environment_name(name) for name in setup.environments])),
        ("methods", listed([method_name(method) for method in setup.methods])),
    ]
    if certifiers:
        entries.append(("certifiers", listed(certifiers)))
    return element(
        "section",
        element("h2", "Settings"),
        element("p", "All of this is in the folder of the run, in manifest.json."),
        facts(entries),
        more("Versions and time", facts([*versions(setup), *times(setup)])),
        id="settings",
    )


def listed(names: Sequence[str]) -> Element:
    """Returns names, one a line, and how many there are beyond those that are shown."""
    beyond = len(names) - SHOWN
    return element(
        "ul",
        [element("li", label(name)) for name in names[:SHOWN]],
        element("li", f"and {beyond:,} more") if beyond > 0 else None,
        class_="plain",
    )


def versions(setup: Setup) -> list[tuple[Node, Node]]:
    """Returns the versions that made the rows, by the digest of their code."""
    entries: list[tuple[Node, Node]] = []
    for code, origin in setup.made_by.items():
        made = origin.get("versions", {}) if isinstance(origin, dict) else {}
        entries.append((label(f"code {code}"), label(setting_words(made))))
    return entries


def times(setup: Setup) -> list[tuple[Node, Node]]:
    """Returns the seconds of one core, by what they were spent on."""
    spent = {
        name: x
        for name, x in setup.seconds.items()
        if isinstance(x, int | float) and 0 < x < math.inf
    }
    return [(label(name), f"{duration(x)} ({number(x)} s)") for name, x in spent.items()]
