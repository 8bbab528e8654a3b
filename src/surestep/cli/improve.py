"""`surestep improve`: from a log of decisions to a better policy, certificate and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from surestep._words import duration
from surestep.cli import options
from surestep.cli.options import Grouped, Option, described
from surestep.cli.progress import task_progress
from surestep.cli.terminal import say, terminal
from surestep.description import ASKING, IMPROVING, READING, Description

if TYPE_CHECKING:
    from surestep.pipeline import Effort
    from surestep.results.findings import Findings

LUCKY = "worlds without any benefit"
SHOWN_CHANGES = 3  # 1 where checks failed, of which more is to be said
UNFINISHED = "NOT YET STRESS TESTED: too few worlds in the time given; the same command goes on."


@click.command(
    "improve", cls=Grouped, short_help="From a log of decisions to a better policy, and a report."
)
@described(*READING, *ASKING, *IMPROVING)
@click.option(
    "-o",
    "--output",
    type=options.FOLDER,
    required=True,
    cls=Option,
    group="The question",
    help="The folder of the result, or of one to go on with.",
)
@options.stress_test("Do the stress test")
def command(
    description: Description, output: Path, memory_limit: str | None, effort: Effort
) -> None:
    """Improve the policy behind LOG: a description (TOML), a log, or what `count` wrote.

    OUTPUT gets the policy, its certificates, a page that explains all (report.html), and what is
    needed to repeat it (run.json). All but the stress test is saved before that begins; if it is
    interrupted, the same command goes on with it.

    \b
    surestep improve log.toml -o result
    surestep improve log.csv --behavior policy.csv --discount 0.95 -o result
    """
    with task_progress() as progress:
        progress("reading the log", 0, 1)  # before anything that takes its time to be loaded
        from surestep.parallel import reach
        from surestep.pipeline import Terms, draft, gather, open_source
        from surestep.pipeline.improve import result_of
        from surestep.results.unfinished import begin, check_can_begin, finish, save

        check_can_begin(output)
        reach(effort.engine, effort.address)
        asked = Terms.of(description)
        source = open_source(description, memory_limit=memory_limit)
        made = draft(gather(source, terms=asked), asked, progress)
        files = made.result.files()
        findings = made.findings
        if made.how.sizes:
            begin(output, files)
            seconds, worlds = made.how.seconds, made.how.worlds
            kinds = f"{worlds:,} worlds of each kind" if worlds else LUCKY
            left = duration(seconds / effort.cores(seconds))
            say(
                f"saved {output}, not yet stress tested; next: {kinds}, about {left} (if that is "
                "interrupted, the same command goes on)"
            )
            findings = made.finished(progress, effort._replace(folder=output))
            if findings.rehearsal is not None:
                files = result_of(findings).files()
                finish(output, files)
        else:
            save(output, files)
    print_answer(findings)
    say(f"wrote {output}: {', '.join(files)}", dim=True)
    say("\nOpen the report: ", nl=False)
    say(output / "report.html", bold=True)


def print_answer(findings: Findings) -> None:
    """Prints the first screen of the report, the stress test, and what was taken by default."""
    from surestep.checks import failed
    from surestep.report.answer import answer_section
    from surestep.report.stress_test import found_words, no_rehearsal_words
    from surestep.report.terminal import print_sections

    most = 1 if failed(findings.record.checks) else SHOWN_CHANGES
    answer, rehearsal = answer_section(findings, most=most), findings.rehearsal
    print_sections([answer], terminal(highlight=False, markup=False, emoji=False))
    if findings.awaits_stress_test:
        say(UNFINISHED, fg="yellow", bold=True)
    elif rehearsal is None:
        say(no_rehearsal_words(findings.no_rehearsal))
    else:
        say(*found_words(rehearsal))
    read, named = findings.record.data, findings.record.parameters.columns
    columns = "; ".join(f"{role} {', '.join(names)}" for role, names in named.items() if names)
    episodes = "" if read["episodes"] is None else f", {read['episodes']:,} episodes"
    say(f"Read {read['rows']:,} rows{episodes}. Columns: {columns}", dim=True)
    if findings.record.defaults:
        names = ", ".join(findings.record.defaults)
        say(f"By default: {names} (“How to repeat it” in the report)", dim=True)
