"""Defines the commands for saved results: `verify`, `explain` and `certify`."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surestep._progress import task_progress
from surestep.cli import options
from surestep.cli.terminal import compile_first, say, say_json, say_wrote, show
from surestep.description import Description, description_of, several
from surestep.sections import Column, Section, Table, numbers

if TYPE_CHECKING:
    from surestep.pipeline import Explanation


@click.command("verify", short_help="Make a result again from its log, and compare.")
@click.argument("output", type=click.Path(path_type=Path))
@options.described("behavior.policy")
@click.option(
    "--log",
    "old_log",
    type=click.Path(path_type=Path),
    help="The old log of a watch, or of a pilot with a past control.  [default: found]",
)
@click.option(
    "--worlds", type=int, metavar="0", help="Repeat all but the stress test.  [default: all]"
)
@options.allow_query
@options.device
def verify_command(
    output: Path, description: Description, old_log: Path | None, worlds: int | None, **how: Any
) -> None:
    """Make the result in OUTPUT again from LOG, and refuse it where anything is different.

    LOG is the log, or your own description of it: files are read that you name, no others. A key
    that says another thing than the result was made with ends with exit code 2.

    It is confirmed, with exit code 0, where all bytes are the same. Where all numbers are within
    1e-9 and all words are the same, or a difference refutes it, that is said, and the exit code
    is 1.

    \b
    surestep verify result log.toml
    surestep verify result log.csv --behavior policy.csv
    surestep verify pilot new.csv
    surestep verify watch.json new.csv
    """
    from surestep.pipeline import verify_pilot, verify_result
    from surestep.pipeline.followup import verify_watch
    from surestep.results.unfinished import record_in

    is_pilot = (output / "answer.json").is_file()
    if old_log is not None and not is_pilot and output.suffix != ".json":
        raise click.UsageError("--log is the old log of a pilot or a watch; give a result's as LOG")
    with task_progress() as progress:
        if is_pilot:
            verification = verify_pilot(output, description, old_log=old_log, **how)
        elif output.suffix == ".json":
            verification = verify_watch(output, description, old_log=old_log, **how)
        else:
            by_structure = "structure" in record_in(output).get("description", {})
            compile_first("improve by a structure" if by_structure else "improve")
            verification = verify_result(
                output, description, worlds=worlds, progress=progress, **how
            )
    agreed = f"what you gave agrees with it: {', '.join(verification.compared)}"
    if verification.confirmed:
        say(f"confirmed: the same bytes in {verification.repeated}", fg="green", bold=True)
        say(f"{agreed}; all else is as its run.json says")
        return
    values = verification.level == "same values"
    outcome = (
        f"not confirmed: the same values in {verification.repeated}, but not the same bytes"
        if values
        else "refuted"
    )
    say(outcome, fg="yellow" if values else "red", bold=True)
    say(verification.difference, agreed if values else None)
    raise SystemExit(1)


@click.command("explain", short_help="Explain why a policy does what it does in a state.")
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--state", "given", multiple=True, required=True, help="Once for each column.")
@options.json_instead
def explain_command(output: Path, given: tuple[str, ...], as_json: bool) -> None:
    """Explain why the policy saved in OUTPUT does what it does in a state.

    Raw values are binned as in the log.
    Where a state has several columns, give one after the other, or each with its name.

    \b
    surestep explain result --state ward-3
    surestep explain result --state ward=3 --state age=47
    """
    from surestep.pipeline import explain
    from surestep.results.result import with_table

    result = with_table(output)
    explanation = explain(result, state_of(given, result.table.vocabulary.state_columns))
    if as_json:
        actions = [  # nothing is kept by a signal where there are no further ones
            {name: x for name, x in reason._asdict().items() if x or name != "kept_by"}
            for reason in explanation.actions
        ]
        say_json({**dataclasses.asdict(explanation), "actions": actions})
        return
    show([explanation_section(explanation)])


def state_of(given: tuple[str, ...], columns: tuple[str, ...]) -> dict[str, str] | tuple[str, ...]:
    """Returns the state as a row where columns are named, else as labels in order."""
    parts = (text.partition("=") for text in given)
    named = [(name, value) for name, equals, value in parts if equals and name in columns]
    if 0 < len(named) < len(given):
        raise click.UsageError("give every --state with its column (COLUMN=VALUE), or none of them")
    return dict(named) or given


def explanation_section(explanation: "Explanation") -> Section:
    """Returns the actions side by side, and the reasons to choose between them."""
    from surestep._words import Scale, number
    from surestep.pipeline import in_words

    tried = [reason for reason in explanation.actions if reason.visits]
    values = Scale.of((reason.q for reason in tried), digits=5)
    gains = Scale.of((reason.advantage for reason in tried), digits=4)
    hidden = explanation.untried if len(explanation.untried) > 1 else ()
    rows = list[list[str]]()
    for reason in explanation.actions:
        if reason not in hidden:
            to_go = "" if reason.more_visits is None else f" ({reason.more_visits:,} to go)"
            to_go = " (barred)" if reason.allowed is False else to_go
            known = [values.number(reason.q), gains.signed(reason.advantage)]
            rows.append(
                [
                    *reason.called,
                    number(reason.behavior),
                    number(reason.probability),
                    f"{reason.visits:,}{to_go}",
                    *(known if reason.visits else ["unknown", "–"]),
                ]
            )
    before = "before, estimated" if explanation.behavior_is_estimated else "before"
    figures = ("new", "visits", f"value, estimated{values.unit}", f"better by{gains.unit}")
    columns = [*map(Column, explanation.action_columns), *numbers(before, *figures)]
    left = f"without {len(hidden):,} that nobody tried (--json has all)" if hidden else ""
    parts = [rows[i : i + 16] for i in range(0, len(rows), 16)]  # more is not printed of a table
    named = zip(explanation.state_columns, explanation.called, strict=True)
    return Section(
        "state",
        ", ".join(f"{column} {label}" for column, label in named),
        tables=[Table("actions", left, columns, part) for part in parts],
        parts=[Section("why", "What decides", in_words(explanation))],
    )


@click.command("certify", short_help="Certify a saved policy by other kinds, or by another log.")
@click.argument("result", type=click.Path(path_type=Path))
@options.described(required=False)
@click.option(
    "--policy",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A table of state, action to judge, made without LOG; then RESULT is the first LOG.",
)
@click.option(
    "--certificate",
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Such as posterior, robust:set=l1,strict=true or a-priori:bound=beta; repeatable.",
)
@click.option("--delta", type=float, help="The chance of a wrong claim.  [default: the result's]")
@options.declared_range("running")
@options.declared_range("ending")
@options.declared_range("returns")
@options.allow_query
@options.output_file("A file for the certificates, as JSON.")
@options.device
def certify_command(
    *,
    result: Path,
    description: Description,
    policy: Path | None,
    kinds: tuple[str, ...],
    allow_query: bool,
    memory_limit: str | None,
    output: Path | None,
    **declared: Any,
) -> None:
    """Say what the data in LOG claim about the policy in the folder RESULT.

    LOG is the one that the policy was made from, or another one that the same behavior policy made,
    read with the same columns; one with states that the policy does not know is refused. Each claim
    holds at δ for itself, and names its standing and all that it assumes. A kind that does not
    cover the policy is refused, never replaced.

    \b
    surestep certify result log.csv --kind robust:set=two-successor --kind a-priori:bound=beta
    surestep certify result later.csv --kind trajectory --ending 0 1 -o claim.json
    surestep certify log.toml --policy guideline.csv
    """
    from surestep._files import write_together
    from surestep.pipeline import certify_policy, certify_result
    from surestep.report.certificates import certificate_name, of_one, together_words
    from surestep.results.result import certificates_to_json

    if policy is not None:
        said = {name: value for name, value in description.given().items() if name != "files"}
        log = description_of([str(result), *several(description.files)], said)
        with task_progress() as progress:
            judged_claims = certify_policy(
                log, policy, kinds, progress=progress, memory_limit=memory_limit, **declared
            )
    elif not kinds or not description.files:
        raise click.UsageError("expected a LOG, and at least one --certificate")
    else:
        with task_progress() as progress:
            judged = certify_result(
                result,
                description,
                kinds,
                progress=progress,
                allow_query=allow_query,
                memory_limit=memory_limit,
                **declared,
            )
        if not judged.same_log:
            say("This is another log than the one that the policy was made from.")
        judged_claims = [(claim, judged.verdict(claim)) for claim in judged.certificates]
    claims = [claim for claim, _ in judged_claims]
    for claim, told in judged_claims:
        name = certificate_name(claim)
        assumed = of_one(claim, name)._replace(folded=False, facts=())
        title = f"{name}: {told.rung}"
        show([Section("claim", title, [told.why], parts=[assumed], mood=told.mood)])
    if len(claims) > 1:
        say(f"\n{together_words(claims, settled=False)}", dim=True)
    if output is not None:
        text = claims[0].to_json() if len(claims) == 1 else certificates_to_json(claims)
        write_together({output: [f"{text}\n".encode()]})
        say_wrote(output, dim=True)
