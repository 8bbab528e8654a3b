"""`surestep certify`: further claims about a saved policy, from its log or from another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from surestep.cli import options
from surestep.cli.options import described
from surestep.cli.progress import task_progress
from surestep.cli.terminal import say, terminal
from surestep.description import Description
from surestep.sections import Section


@click.command("certify", short_help="Certify a saved policy by other kinds, or by another log.")
@click.argument("result", type=click.Path(path_type=Path))
@described()
@click.option(
    "--certificate",
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND[:SETTING=VALUE,...]",
    help="A kind of certificate, such as posterior, robust:set=l1,strict=true, a-priori:bound=beta "
    "or trajectory:interval=student-t; repeat it for several.",
)
@click.option(
    "--delta", type=float, help="δ: the chance that a claim is wrong.  [default: as in the result]"
)
@options.declared_range("running")
@options.declared_range("ending")
@options.declared_range("returns")
@options.allow_query
@options.output_file("A file for the certificates, as JSON.")
@click.option(
    "--check",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Instead, make the certificates of this file again, and refuse them if they differ.",
)
def command(
    result: Path,
    description: Description,
    kinds: tuple[str, ...],
    allow_query: bool,
    memory_limit: str | None,
    output: Path | None,
    check: Path | None,
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
    surestep certify result later.csv --check claim.json
    """
    from surestep._files import write_together
    from surestep.pipeline import certify_result, check_certificates
    from surestep.report.certificates import certificate_name, of_one, together_words
    from surestep.report.terminal import print_sections
    from surestep.results.result import certificates_to_json, read_certificates

    how: dict[str, Any] = {"allow_query": allow_query, "memory_limit": memory_limit}
    if check is not None:
        if kinds or output or any(given is not None for given in declared.values()):
            raise click.UsageError("--check makes what is in the file again, and takes no more")
        with task_progress() as progress:
            claims = read_certificates(check)
            check_certificates(result, description, claims, progress=progress, **how)
        say("confirmed: the claims come out the same", fg="green", bold=True)
        return
    if not kinds:
        raise click.UsageError("expected at least one --certificate, or --check")
    with task_progress() as progress:
        judged = certify_result(result, description, kinds, progress=progress, **how, **declared)
    claims = judged.certificates
    if not judged.same_log:
        say("This is another log than the one that the policy was made from.")
    for claim in claims:
        name, told = certificate_name(claim), judged.verdict(claim)
        assumed = of_one(claim, name)._replace(folded=False, facts=())
        title = f"{name}: {told.rung}"
        section = Section("claim", title, [told.why], parts=[assumed], mood=told.mood)
        print_sections([section], terminal(highlight=False, markup=False))
    if len(claims) > 1:
        say(f"\n{together_words(claims, settled=False)}", dim=True)
    if output is not None:
        text = claims[0].to_json() if len(claims) == 1 else certificates_to_json(claims)
        write_together({output: [f"{text}\n".encode()]})
        say(f"wrote {output}", dim=True)
