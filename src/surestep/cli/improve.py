"""Defines the commands `improve`, from a log to a policy, and `rehearse`, a stress test of that."""

from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surestep._progress import task_progress
from surestep._words import visible
from surestep.cli import options
from surestep.cli.terminal import compile_first, say, say_json, say_sentences, show
from surestep.description import ASKING, IMPROVING, READING, Description

if TYPE_CHECKING:
    from surestep.pipeline import Effort
    from surestep.results.findings import Findings
    from surestep.results.result import Result


@click.command(
    "improve",
    cls=options.Grouped,
    short_help="From a log of decisions to a better policy, and a report.",
)
@options.described(*READING, *ASKING, *IMPROVING)
@click.option(
    "-o",
    "--output",
    cls=options.Option,
    group="The question",
    type=options.FOLDER,
    required=True,
    help="A new folder, or one to go on with.",
)
@options.stress_test("Do the stress test")
@options.json_instead
@options.device
def improve_command(
    description: Description,
    output: Path,
    memory_limit: str | None,
    effort: "Effort",
    as_json: bool,
) -> None:
    """Improve the policy behind LOG: a description (TOML), a log, or what `count` wrote.

    OUTPUT gets the policy, its certificates, a page that explains all (report.html), and what is
    needed to repeat it (run.json). All but the stress test is saved before that begins; if it is
    interrupted, the same command goes on with it.

    \b
    surestep improve log.toml -o result
    surestep improve log.csv --behavior policy.csv --discount 0.95 -o result
    """
    compile_first("improve by a structure" if description.structure else "improve")
    if description.structure:
        improve_by_structure(description, output, memory_limit, as_json=as_json)
        return
    with task_progress() as progress:
        progress("reading the log", 0, 1)  # before anything that takes its time to be loaded
        from surestep.parallel import reach
        from surestep.pipeline.evidence import check_there, gather, open_source
        from surestep.pipeline.improve import draft, result_of
        from surestep.pipeline.recording import said_of
        from surestep.pipeline.terms import Terms
        from surestep.results import load
        from surestep.results.unfinished import begin, check_can_begin, finish

        check_there(description)  # before it is told what was not said of the log
        asked = Terms.of(description)
        check_can_begin(output, said_of(description, asked))
        reach(effort.engine, effort.address)
        made = draft(gather(open_source(description, memory_limit=memory_limit), asked), progress)
        files = result_of(made.findings).files()
        findings = made.findings
        done = begin(output, files)
        if made.how.sizes and not done:
            worlds = made.how.worlds
            kinds = f"{worlds:,} worlds of each kind" if worlds else "worlds without any benefit"
            say(
                f"saved {visible(str(output))}, not yet stress tested; next: {kinds} (if "
                "interrupted, the same command goes on)",
                err=as_json,
            )
            findings = made.finished(progress, effort._replace(folder=output))
            if findings.rehearsal is not None:
                files = result_of(findings).files()
                finish(output, files)
    shown = visible(str(output))
    if as_json:
        print_summary(load(output))
    elif done:
        load(output)  # `load` refuses a result that was changed meanwhile
        say(f"{shown} holds the finished result of this command; nothing is left to do")
    else:
        print_answer(findings)
        say(f"Wrote {len(files)} files into {shown}. Open the report: ", nl=False)
        say(visible(str(output / "report.html")), bold=True)


def improve_by_structure(
    description: Description, output: Path, memory_limit: str | None, *, as_json: bool
) -> None:
    """Improves the policy of a log whose structure is known, and saves the result."""
    with task_progress() as progress:
        progress("reading the log", 0, 1)
        from surestep._files import check_new_folder
        from surestep.pipeline.structured import improve_structured
        from surestep.report.structured import structured_sections

        check_new_folder(output)
        result = improve_structured(description, memory_limit=memory_limit, progress=progress)
        result.save(output)
    if as_json:
        say_json(
            {
                "verdict": result.verdict,
                "lower": result.certificate.lower,
                "delta": result.certificate.delta,
                "standing": result.certificate.standing,
                "believed": None if result.belief is None else result.belief.lower,
                "estimated_gain": result.estimated_gain,
                "rules": result.rules.texts(),
                "test": result.record.test,
                "learnt": result.record.learnt,
            }
        )
    else:
        show(structured_sections(result))
        say(
            f"Wrote {len(result.files())} files into {visible(str(output))}. Open the report: ",
            nl=False,
        )
        say(visible(str(output / "report.html")), bold=True)


def print_summary(result: "Result") -> None:
    """Prints the verdict of a saved result and its main numbers, for programs."""
    from surestep.checks import failed

    claim = result.certificate
    say_json(
        {
            "verdict": result.verdict,
            "lower": claim.lower,
            "delta": claim.delta,
            "standing": claim.standing,
            "estimated_gain": result.estimated_gain,
            "unit": result.record.unit,
            "totals": [asdict(total) for total in result.totals],
            "hidden_odds": result.hidden_odds,
            **{
                name: x for name, x in result.record.estimates.items() if name.endswith("guideline")
            },
            "failed_checks": [check.code for check in failed(result.record.checks)],
            "awaits_stress_test": result.awaits_stress_test,
            "groups": [asdict(group) for group in result.groups],
        }
    )


def print_answer(findings: "Findings") -> None:
    """Prints the first screen of the report, the stress test, and the defaults that were used."""
    from surestep.checks import failed
    from surestep.report.answer import answer_section
    from surestep.report.stress_test import no_rehearsal_words, outcome_words

    # Failed checks take more room.
    answer = answer_section(findings, most=1 if failed(findings.record.checks) else 2)
    brief = [
        part._replace(
            items=[item._replace(aside="") for item in part.items],
            parts=[inside._replace(folded=False) for inside in part.parts],
        )
        for part in answer.parts
    ]
    show([answer._replace(parts=brief)])
    if findings.awaits_stress_test:
        say(
            "NOT YET STRESS TESTED: too few worlds in the time given; the same command goes on.",
            fg="yellow",
            bold=True,
        )
    elif findings.rehearsal is None:
        say_sentences(no_rehearsal_words(findings))
    else:
        say_sentences(outcome_words(findings.rehearsal))
    read = findings.record.data
    columns = ", ".join(chain(*findings.record.parameters.columns.values()))
    episodes = "" if read["episodes"] is None else f", {read['episodes']:,} episodes"
    say_sentences(f"Read {read['rows']:,} rows{episodes}. Columns: {columns}", dim=True)
    if findings.record.defaults:
        one, *rest = findings.record.defaults
        say_sentences(
            f"By default: {one} and {len(rest)} more (“How to repeat it” in the report)", dim=True
        )


def sizes_of(ctx: click.Context, option: click.Parameter, text: str) -> tuple[float, ...]:
    """Reads numbers that are separated by commas."""
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of numbers such as 0.5,1,2") from None


@click.command(
    "rehearse",
    cls=options.Grouped,
    short_help="Stress test an improvement, and see what more data brings.",
)
@options.described(*READING, *ASKING, *IMPROVING)
@click.option(
    "--sizes",
    callback=sizes_of,
    default="0.5,1,2,5,10",
    help="The amounts of data that are collected in a world, in multiples of LOG.",
)
@click.option("--seed", type=options.NATURAL, default=0, help="Of random numbers.")
@options.stress_test("Make the worlds")
@click.option("-o", "--output", type=options.FOLDER, help="A new folder, or one to go on with.")
@options.device
def rehearse_command(
    *,
    description: Description,
    output: Path | None,
    memory_limit: str | None,
    sizes: tuple[float, ...],
    seed: int,
    effort: "Effort",
) -> None:
    """Stress test what `surestep improve` would do with LOG, given the same options.

    Worlds are made from the log in several ways, none of which the certificate assumes. In each,
    the behavior policy collects data, the policy is improved and certified, and all is held
    against the truth, which is known there. This is no confidence level. The
    certificate that is tested is the first one, and there are 100 worlds of each kind unless
    --worlds says another number. OUTPUT gets rehearsal.html, a page to look at,
    rehearsal.json, and run.json with the settings. What is finished is kept there, and the same
    command goes on after an interruption.

    \b
    surestep rehearse log.toml -o rehearsal
    surestep rehearse log.csv --discount 0.95 --kind robust --sizes 1,10,100
    """
    compile_first("improve")
    with task_progress() as progress:
        progress("reading the log", 0, 1)  # before anything that takes its time to be loaded
        from surestep.pipeline import rehearse_log

        worlds = description.method.worlds
        rehearsed = rehearse_log(
            description,
            worlds=100 if worlds is None else worlds,  # of each kind
            sizes=sizes,
            seed=seed,
            effort=effort._replace(folder=output),
            memory_limit=memory_limit,
            progress=progress,
        )
    from surestep.report.stress_test import stress_test_section

    show([stress_test_section(rehearsed.findings, folded=False)])
    if output is not None:
        say("Open the page: ", nl=False)
        say(visible(str(output / "rehearsal.html")), bold=True)
