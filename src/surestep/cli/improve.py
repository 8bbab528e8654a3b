"""`surestep improve`: from a log of decisions to a better policy, certificate and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from surestep._words import duration
from surestep.cli import options
from surestep.cli.options import Grouped, Option, described
from surestep.cli.progress import task_progress
from surestep.cli.terminal import MOODS, say
from surestep.description import ASKING, IMPROVING, LABELS, READING, Description

if TYPE_CHECKING:
    from surestep.results import Result
    from surestep.results.record import Record

LUCKY = "worlds in which all actions are alike"
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
        if isinstance(source, LogSource):
            say(source.columns)
        made = draft(gather(source, terms=asked), asked, progress)
        result = made.result
        files = result.files()
        if made.how.sizes:
            begin(output, files)
            cores = workers or usual_workers(engine, made.how.seconds)
            worlds = made.how.worlds
            kinds = f"{worlds:,} worlds of each kind" if worlds else LUCKY
            say(
                f"saved {output}, not yet stress tested; next: {kinds}, about "
                f"{duration(made.how.seconds / cores)} (if that is interrupted, the same command "
                "goes on)"
            )
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
    print_data(result)
    print_terms(result)
    print_answer(result)
    say(*(f"wrote {output / name}" for name in files if name != "report.html"), dim=True)
    say("\nOpen the report: ", nl=False)
    say(output / "report.html", bold=True)


def print_data(result: Result) -> None:
    """Prints what the log holds, what may be recommended, and which rows were dropped."""
    from surestep._words import counted
    from surestep.report.words.verdict import limits_words

    data, table = result.record.data, result.table
    episodes = "" if data["episodes"] is None else f"{data['episodes']:,} episodes, "
    say(
        f"read {data['rows']:,} rows, {episodes}{table.num_deciding:,} states and "
        f"{int(table.quiet.sum()):,} where nothing is decided, {len(table.vocabulary.actions):,} "
        f"actions, {data['transitions']:,} different transitions",
        *limits_words(table, result.record.parameters),
        *(f"dropped {counted(rows, 'row')}: {why}" for why, rows in data["dropped"].items()),
    )


def print_terms(result: Result) -> None:
    """Prints every parameter that nobody gave, and what N∧ is."""
    record = result.record
    given = record.parameters
    for name in record.defaults:
        say(f"by default: {LABELS.get(name, name)} = {taken(record, name)}")
    if record.has_row_propensities:
        say(
            "The behavior policy of a state is estimated: the log names the probability of each "
            "row's action, not of a state's. Claims are relative to the estimate, but for those of "
            "whole episodes (trajectory), which need none."
        )
    elif record.behavior_is_estimated:
        say("The behavior policy is estimated: all claims are relative to the estimate.")
    algorithm, n_wedge = given["algorithm"], given["n_wedge"]
    alone = "; one action in every state that changes" if result.table.one_action else ""
    chooser = given["n_wedge_chosen_by"]
    chosen = f"chosen by the lower bound of {chooser}"
    if chooser is not None and "rounds" in algorithm:
        say(f"provable, {algorithm['rounds']:g} rounds, {chosen}{alone}")
    if n_wedge is None:
        return
    if algorithm.get("spibb_n_wedge") is not None:
        same = f"{algorithm['spibb_n_wedge']:,} (N∧ of SPIBB)"
        say(f"N∧ = {n_wedge:,}, which claims what {same} does")
    if given["zeta"] is not None:
        say(f"N∧ = {n_wedge:,}, from ζ = {given['zeta']:g}")
    elif chooser is not None:
        nothing = "" if result.table.changed.any() else ": nothing changes there"
        say(f"N∧ = {n_wedge:,}, {chosen}{nothing}{alone}")
    else:
        say(f"N∧ = {n_wedge:,} is a hyper-parameter without a guarantee", fg="yellow")


def print_answer(result: Result) -> None:
    """Prints what changes, what it should gain, and how sure that is."""
    from surestep._words import signed
    from surestep.certificates.standing import standing_name
    from surestep.checks import failed, says, summary
    from surestep.report.words.certificates import claim_words, names_of, together_words
    from surestep.report.words.estimates import baseline_words, estimate_words
    from surestep.report.words.verdict import proof_words, verdict

    record, certificates = result.record, result.certificates
    changed = int(result.table.changed.sum())
    say(
        f"\nchanges {changed:,} of {result.table.num_deciding:,} states",
        f"estimated gain {signed(result.estimated_gain)} per episode. {estimate_words(record)}",
        None if record.baseline is None else baseline_words(record),
    )
    say(*(f"FAILED: {says(check)}" for check in failed(record.checks)), fg="red", bold=True)
    judged = verdict(
        certificates,
        changed=changed > 0,
        rehearsal=result.rehearsal,
        awaited=result.awaits_stress_test,
        checks=record.checks,
    )
    loud = judged.headline.upper() if judged.mood == "bad" else judged.headline
    say(loud, fg=MOODS.get(judged.mood, "yellow"), bold=True)
    say(*judged.sentences, proof_words(record, result.certificate))
    if result.certificate.lower is not None:
        say(f"standing of the certificate: {standing_name(result.certificate)}", dim=True)
    say("")
    for name, certificate in zip(names_of(certificates), certificates, strict=True):
        say(f"{name}: {claim_words(certificate)}")
    say(together_words(certificates) if len(certificates) > 1 else None, dim=True)
    say(f"\nCan the claim rest on this log? {summary(record.checks)}")
    say(*(says(check) for check in record.checks if check.outcome == "told"))
    print_rehearsal(result)


def print_rehearsal(result: Result) -> None:
    """Prints what the stress test found."""
    from surestep.report.words import rehearsal as words
    from surestep.report.words.verdict import claimant

    rehearsal = result.rehearsal
    say("")
    if result.awaits_stress_test:
        say(UNFINISHED, fg="yellow", bold=True)
    elif rehearsal is None:
        changed = result.verdict != "nothing changed"
        why = "see `surestep rehearse --help`" if changed else "nothing changed, nothing to test"
        say(f"No stress test was made: {why}.")
    elif rehearsal.worlds == 0:
        # Rehearsed are the beliefs of the kind to stand by, or else those of a posterior.
        believed, whose = words.belief_words(rehearsal), claimant(result.certificate, "a")
        say(
            words.luck_words(rehearsal),
            believed and f"What {whose} says is only believed. {believed}",
            "No other kinds of worlds were gone through: see `surestep rehearse --help`.",
        )
    else:
        say(*words.found_words(rehearsal), words.more_data_words(rehearsal, result.verdict))


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
    from surestep._words import number

    if isinstance(value, list):
        return (", " if isinstance(value[0], str) else " to ").join(map(shown, value))
    return number(value) if isinstance(value, float) else str(value)
