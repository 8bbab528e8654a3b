"""What a run was made of, so that it can be made again."""

from __future__ import annotations

from surestep.experiments.findings import RunFindings
from surestep.experiments.naming import environment_name, method_name
from surestep.report.html import Element, Node, element, label
from surestep.report.numbers import duration, number
from surestep.report.page_tables import facts, more
from surestep.report.pages.record import setting_words


def settings_section(findings: RunFindings) -> Element:
    """Returns the experiment, what made its rows, and where the time went."""
    entries: list[tuple[Node, Node]] = [
        ("experiment", label(findings.name)),
        ("seed", setting_words(findings.plan.get("seed"))),
        ("repetitions", f"{findings.repetitions:,}"),
        ("data sizes", ", ".join(f"{size:,}" for size in findings.sizes)),
        ("environments", listed([environment_name(name) for name in findings.environments])),
        ("methods", listed([method_name(method) for method in findings.methods])),
    ]
    return element(
        "section",
        element("h2", "Settings"),
        element("p", "All of this is in the folder of the run, in manifest.json."),
        facts(entries),
        more("Versions and time", facts([*versions(findings), *times(findings)])),
        id="settings",
    )


def listed(names: list[str]) -> Element:
    """Returns names, one a line."""
    return element("ul", [element("li", label(name)) for name in names], class_="plain")


def versions(findings: RunFindings) -> list[tuple[Node, Node]]:
    """Returns the versions that made the rows, by the digest of their code."""
    entries: list[tuple[Node, Node]] = []
    for code, origin in findings.made_by.items():
        made = origin.get("versions", {}) if isinstance(origin, dict) else {}
        entries.append((label(f"code {code}"), label(setting_words(made))))
    return entries


def times(findings: RunFindings) -> list[tuple[Node, Node]]:
    """Returns the seconds of one core, by what they were spent on."""
    spent = {
        name: x for name, x in findings.seconds.items() if isinstance(x, int | float) and x > 0
    }
    return [(label(name), f"{duration(x)} ({number(x)} s)") for name, x in spent.items()]
