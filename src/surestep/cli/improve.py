"""`surestep improve`: from a log of decisions to a better policy, certificate and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from surestep.cli import options
from surestep.cli.options import Grouped, Option, described
from surestep.cli.progress import task_progress
from surestep.cli.terminal import terminal
from surestep.description import ASKING, IMPROVING, LABELS, READING, Description
from surestep.report.numbers import duration

if TYPE_CHECKING:
    from rich.console import Console

    from surestep.results import Result
    from surestep.results.record import Record


@click.command(
    "improve", cls=Grouped, short_help="From a log of decisions to a better policy, and a report."
)
@described(*READING, *ASKING, *IMPROVING)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    cls=Option,
    group="The question",
    help="A new folder for the result, or one to go on with.",
)
@options.time_limit
@options.worker_processes
@options.cluster("Do the stress test")
def command(
    description: Description,
    output: Path,
    memory_limit: str | None,
    workers: int | None,
    engine: str,
    address: str | None,
    time_limit: float | None,
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
        from surestep.io import LogSource
        from surestep.parallel import reach, usual_workers
        from surestep.pipeline import Terms, draft, gather, open_source
        from surestep.results.unfinished import begin, check_can_begin, finish, save

        check_can_begin(output)
        reach(engine, address)
        asked = Terms.of(description)
        source = open_source(description, memory_limit=memory_limit)
        console = terminal(highlight=False, soft_wrap=True)  # paths stay whole
        if isinstance(source, LogSource):
            console.print(str(source.columns), markup=False)
        made = draft(gather(source, terms=asked), asked, progress)
        result = made.result
        files = result.files()
        if made.how.sizes:
            begin(output, files)
            cores = workers or usual_workers(engine, made.how.seconds)
            print_plan(console, output, made.how.worlds, made.how.seconds / cores)
            result = made.finished(
                progress,
                workers=cores,
                engine=engine,
                address=address,
                folder=output,
                time_limit=time_limit,
            )
            if result.rehearsal is not None:
                files = result.files()
                finish(output, files)
        else:
            save(output, files)
    print_data(console, result)
    print_terms(console, result)
    print_answer(console, result)
    for name in files:
        if name != "report.html":
            console.print(f"wrote {output / name}", markup=False, style="dim")
    console.print("\nOpen the report: ", end="")
    console.print(f"{output / 'report.html'}", markup=False, style="bold")


def print_plan(console: Console, output: Path, worlds: int, seconds: float) -> None:
    """Prints that the result is saved, what comes next, and how long that should take."""
    next_ones = (
        f"{worlds:,} worlds of each kind" if worlds else "worlds in which all actions are alike"
    )
    console.print(
        f"saved {output}, not yet stress tested; next: {next_ones}, about {duration(seconds)} "
        "(if that is interrupted, the same command goes on)",
        markup=False,
    )


def print_data(console: Console, result: Result) -> None:
    """Prints what the log holds, what may be recommended, and which rows were dropped."""
    from surestep.report.numbers import counted
    from surestep.report.words.verdict import limits_words

    data, table = result.record.data, result.table
    words = [f"read {data['rows']:,} rows"]
    if data["episodes"] is not None:
        words.append(f"{data['episodes']:,} episodes")
    words += [
        f"{table.num_deciding:,} states and {int(table.quiet.sum()):,} where nothing is decided",
        f"{len(table.vocabulary.actions):,} actions",
        f"{data['transitions']:,} different transitions",
    ]
    console.print(", ".join(words))
    given = result.record.parameters
    for sentence in limits_words(table, given):
        console.print(sentence, markup=False)
    for reason, rows in data["dropped"].items():
        console.print(f"dropped {counted(rows, 'row')}: {reason}", markup=False)


def print_terms(console: Console, result: Result) -> None:
    """Prints every parameter that nobody gave, and what N∧ is."""
    record = result.record
    given = record.parameters
    for name in record.defaults:
        console.print(f"by default: {LABELS.get(name, name)} = {taken(record, name)}", markup=False)
    if record.has_row_propensities:
        console.print(
            "The behavior policy of a state is estimated: the log names the probability of each "
            "row's action, not of a state's. Claims are relative to the estimate, but for those of "
            "whole episodes (trajectory), which need none."
        )
    elif record.behavior_is_estimated:
        console.print("The behavior policy is estimated: all claims are relative to the estimate.")
    alone = "; one action in every state that changes" if result.table.one_action else ""
    if given["n_wedge_chosen_by"] is not None and "rounds" in given["algorithm"]:
        console.print(
            f"provable, {given['algorithm']['rounds']:g} rounds, chosen by the lower bound of "
            f"{given['n_wedge_chosen_by']}{alone}"
        )
    if given["n_wedge"] is None:
        return
    asked = given["algorithm"].get("spibb_n_wedge")
    if asked is not None:
        console.print(f"N∧ = {given['n_wedge']:,}, which claims what {asked:,} (N∧ of SPIBB) does")
    if given["zeta"] is not None:
        console.print(f"N∧ = {given['n_wedge']:,}, from ζ = {given['zeta']:g}")
    elif given["n_wedge_chosen_by"] is not None:
        chosen = f"chosen by the lower bound of {given['n_wedge_chosen_by']}"
        nothing = "" if result.table.changed.any() else ": nothing changes there"
        console.print(f"N∧ = {given['n_wedge']:,}, {chosen}{nothing}{alone}")
    else:
        console.print(
            f"[yellow]N∧ = {given['n_wedge']:,} is a hyper-parameter without a guarantee[/]"
        )


def print_answer(console: Console, result: Result) -> None:
    """Prints what changes, what it should gain, and how sure that is."""
    from surestep.certificates.standing import standing_name
    from surestep.report.numbers import signed
    from surestep.report.words.alarms import alarm_words, baseline_words, estimate_words
    from surestep.report.words.verdict import proof_words, verdict

    changed, states = int(result.table.changed.sum()), result.table.num_deciding
    console.print(f"\nchanges {changed:,} of {states:,} states")
    console.print(
        f"estimated gain {signed(result.estimated_gain)} per episode. "
        f"{estimate_words(result.record)}",
        markup=False,
    )
    if result.record.baseline is not None:
        console.print(baseline_words(result.record), markup=False)
    for alarm in result.record.alarms:
        console.print(f"ALARM: {alarm_words(alarm)}", style="bold red", markup=False)
    judged = verdict(
        result.certificates,
        changed=changed > 0,
        rehearsal=result.rehearsal,
        awaited=result.awaits_stress_test,
        alarms=result.record.alarms,
    )
    colour = {"good": "green", "bad": "red"}.get(judged.mood, "yellow")
    console.print(
        judged.headline.upper() if judged.mood == "bad" else judged.headline,
        style=f"bold {colour}",
        markup=False,
    )
    for sentence in (*judged.sentences, proof_words(result.record, result.certificate)):
        if sentence is not None:
            console.print(sentence, markup=False)
    if result.certificate.lower is not None:
        console.print(
            f"standing of the certificate: {standing_name(result.certificate)}",
            style="dim",
            markup=False,
        )
    print_certificates(console, result)
    print_checks(console, result)
    print_rehearsal(console, result)


def print_checks(console: Console, result: Result) -> None:
    """Prints how many assumptions failed, and what figures say that no alarm does."""
    from surestep.report.words.checks import HEADING, check_words, recent_words, summary_words

    console.print(f"\n{HEADING} {summary_words(result.record.checks)}", markup=False)
    for check in result.record.checks:
        if check.outcome == "told":
            console.print(check_words(check), markup=False)
        elif check.code == "practice-changed" and check.outcome == "failed":
            console.print(recent_words(check.figures), markup=False)


def print_certificates(console: Console, result: Result) -> None:
    """Prints all certificates, a line each, and what they claim together."""
    from surestep.report.words.certificates import claim_words, names_of, together_words

    console.print()
    names = names_of(result.certificates)
    for name, certificate in zip(names, result.certificates, strict=True):
        console.print(f"{name}: {claim_words(certificate)}", markup=False)
    if len(result.certificates) > 1:
        console.print(together_words(result.certificates), style="dim", markup=False)


def print_rehearsal(console: Console, result: Result) -> None:
    """Prints what the stress test found."""
    from surestep.report.words.rehearsal import (
        belief_words,
        calibration_words,
        harm_words,
        luck_words,
        more_data_words,
    )
    from surestep.report.words.verdict import claimant

    rehearsal = result.rehearsal
    if result.awaits_stress_test:
        console.print(
            "\nNOT YET STRESS TESTED: too few worlds in the time given; the same command goes on.",
            style="bold yellow",
        )
        return
    if rehearsal is None:
        changed = result.verdict != "nothing changed"
        why = "see `surestep rehearse --help`" if changed else "nothing changed, nothing to test"
        console.print(f"\nNo stress test was made: {why}.")
        return
    if rehearsal.worlds == 0:
        console.print(f"\n{luck_words(rehearsal)}", markup=False)
        believed = belief_words(rehearsal)
        if believed is not None:
            # Rehearsed are the beliefs of the kind to stand by, or else those of a posterior.
            whose = claimant(result.certificate, "a")
            console.print(f"What {whose} says is only believed. {believed}", markup=False)
        console.print("No other kinds of worlds were gone through: see `surestep rehearse --help`.")
        return
    console.print(f"\n{harm_words(rehearsal)}", markup=False)
    if rehearsal.calibration is not None:
        _, headline, sentence = calibration_words(rehearsal.calibration, rehearsal.delta)
        console.print(f"{headline}. {sentence}", markup=False)
    console.print(luck_words(rehearsal), markup=False)
    more = more_data_words(rehearsal, result.verdict)
    if more is not None:
        console.print(more, markup=False)


def taken(record: Record, name: str) -> str:
    """Returns what was taken for a parameter that nobody gave."""
    from surestep.report.words.rehearsal import worlds_words

    given = record.parameters
    if name == "algorithm":
        return str(given["algorithm"]["algorithm"])
    if name == "n_wedge":
        return "auto"
    return worlds_words(given) if name == "worlds" else shown(given[name])


def shown(value: object) -> str:
    """Returns a parameter as a person reads it."""
    from surestep.report.numbers import number

    if isinstance(value, list):
        return (", " if isinstance(value[0], str) else " to ").join(map(shown, value))
    return number(value) if isinstance(value, float) else str(value)
