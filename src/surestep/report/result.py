"""Writes the reports on a result and on a stress test, as sections and as pages."""

from collections.abc import Mapping, Sequence

from surestep.report.answer import answer_section
from surestep.report.certificates import certificates_section
from surestep.report.changes import table_section
from surestep.report.checks import checks_section
from surestep.report.data import data_section, wanted_section
from surestep.report.page import asset, page
from surestep.report.stress_test import stress_test_section
from surestep.results.findings import Findings
from surestep.results.record import Record
from surestep.sections import Column, Section, Table, numbers

TITLE = "Policy improvement report"


def result_sections(findings: Findings) -> list[Section]:
    """Returns the sections of a result; the first one can be read alone."""
    return [
        answer_section(findings),
        *([table_section(findings)] if findings.changes else []),
        data_section(findings),
        checks_section(findings.record.checks),
        certificates_section(findings),
        stress_test_section(findings),
        wanted_section(findings),
        record_section(findings),
        words_section(),
    ]


def result_page(findings: Findings) -> str:
    """Returns the report on a result as one HTML page; equal results give equal pages."""
    record = findings.record
    title = record.about.get("title", TITLE)
    return page(title, result_sections(findings), about_words(record), title=title)


def about_words(record: Record) -> str:
    """Says which log the page is about: its files, population, period, author and date."""
    logs = [file.name for file in record.inputs if file.role == "log"]
    files = logs[0] if len(logs) == 1 else f"{len(logs)} files"
    many = record.data["episodes"]
    episodes = "" if many is None else f"{many:,} episodes"
    given = [record.about.get(name, "") for name in ("population", "period", "author", "date")]
    return " · ".join(filter(None, [files if logs else "", episodes, *given]))


def rehearsal_page(findings: Findings) -> str:
    """Returns the stress test of an improvement as a page, with the claims that were tested."""
    return page(
        "Stress test",
        [
            stress_test_section(findings, folded=False),
            certificates_section(findings),
            words_section(),
        ],
        title="Stress test of a policy improvement",
    )


# ---- how to repeat it, and words ----------------------------------------------------------------


def record_section(findings: Findings) -> Section:
    """Returns the command, the files, the settings and the versions that made a result."""
    record = findings.record
    rows = [
        *([file.role, file.name, f"{file.size:,}", file.sha256] for file in record.inputs),
        ["counts", "what the log counts up to", "", record.counts_sha256],
    ]
    columns = [Column("Role"), Column("File"), *numbers("Bytes"), Column("SHA-256")]
    return Section(
        "repeat",
        "How to repeat it",
        ["With the files below, this command makes the same result again:"],
        command=record.command,
        tables=[Table("inputs", "What went into it", columns, rows)],
        parts=[
            Section(
                "settings",
                "Settings",
                facts=[
                    (name, setting(record, name)) for name in record.parameters.__struct_fields__
                ],
            ),
            Section(
                "versions",
                "Versions and machine",
                facts=[*record.versions.items(), *record.machine.items()],
            ),
        ],
        folded=True,
    )


def setting(record: Record, name: str) -> str:
    """Returns a setting as text, and marks a default."""
    words = setting_words(getattr(record.parameters, name))
    if name == "worlds" and words == "0" and record.parameters.sizes:
        words = "0, but for those without any benefit"
    return f"{words} (default)" if name in record.defaults else words


def setting_words(value: object) -> str:
    """Returns a setting as text: lists and mappings in one line."""
    if isinstance(value, Mapping):
        words = ", ".join(f"{name} = {setting_words(part)}" for name, part in value.items())
        return words or "none"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(setting_words, value)) or "none"
    if isinstance(value, float):
        return f"{value:.12g}"
    return "not given" if value is None else str(value)


def words_section() -> Section:
    """Returns a list of terms with their meanings."""
    facts = [
        (term, meaning)
        for term, meaning in (line.split("\t") for line in asset("assets/words.txt").splitlines())
    ]
    return Section("words", "Words used here", facts=facts, folded=True)
