"""Defines the commands for logs: `describe`, `inspect`, `count` and `merge`."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import click

import surestep.description as keys
from surestep._files import check_output, write_together
from surestep._progress import task_progress
from surestep._words import counted
from surestep.cli import options
from surestep.cli.terminal import say, say_json, say_wrote, shell_word, show
from surestep.errors import FileFailure


@click.command("describe", short_help="Look at a log, and write a description to go on with.")
@click.argument("logs", nargs=-1, metavar="LOG...")
@options.output_file("The file to write.  [default: LOG.toml beside LOG]")
@options.setting(help="How the files are written, such as reader.delim=';'.")
@click.option("--keys", "list_keys", is_flag=True, help="List all keys of a description instead.")
def describe_command(
    logs: tuple[str, ...], output: Path | None, assigned: tuple[str, ...], list_keys: bool
) -> None:
    """Look at LOG, guess what its columns are, and write that down with comments.

    Nothing is asked. Read the file, correct it where the guess is wrong, and go on with it.

    \b
    surestep describe log.csv
    surestep inspect log.toml
    surestep improve log.toml -o result
    """
    if list_keys:
        for path, words in keys.HELP.items():
            usual = keys.DEFAULTS.get(path.rpartition(".")[2])
            say(f"{path}: {words}{'' if usual is None else f'  [default: {usual}]'}")
        return
    if not logs:
        raise click.UsageError("Missing argument 'LOG...'.")
    from surestep.io.logs.tables import matching
    from surestep.pipeline.describe import describe

    said: dict[str, object] = {"files": list(logs)}
    for text in assigned:
        said = keys.merged(said, keys.assignment(text))
    if said.keys() - {"files", "reader"}:
        raise click.UsageError("--set says here how files are written, such as reader.delim=';'.")
    if output is None and not Path(logs[0]).exists():
        matching(Path(logs[0]))  # says if it is an address
        raise FileFailure(f"{logs[0]} is no file or folder; name the file to write with -o")
    target = Path(logs[0]).with_suffix(keys.SUFFIX) if output is None else output
    check_output(target)
    if output is None and target.exists():
        raise FileFailure(f"{target} is there already; name another file with -o")
    write_together({target: [describe(keys.described(said), target.parent).encode()]})
    say_wrote(target)
    say(f"next: read it, then: surestep inspect {shell_word(str(target))}")


@click.command(
    "inspect", cls=options.Grouped, short_help="Look at a log: coverage, overlap, suspicious rows."
)
@options.described(*keys.READING, "behavior.policy")
@click.option(
    "--n-wedge",
    type=options.NATURAL,
    default=keys.DEFAULTS["least_visits"] - 1,
    help="N∧: more visits are trusted.",
)
@options.output_file("Write a page (HTML) as well.")
@options.json_instead
def inspect_command(
    description: keys.Description,
    memory_limit: str | None,
    n_wedge: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Look at LOG, a description (TOML) or a log, before using it.

    Shows how often each action was tried in each state, what the log is too thin for, and rows
    that look wrong, with their places. It refuses only what cannot be read at all.

    \b
    surestep inspect log.toml
    surestep inspect log.csv --state ward --state severity --action decision -o log.html
    """
    from surestep.io.counts.file import kind_of_counts
    from surestep.io.logs.source import open_log
    from surestep.pipeline.inspect import inspect
    from surestep.report.inspection import inspection_sections
    from surestep.report.page import page
    from surestep.results.inspection import as_json as plain

    if any(map(kind_of_counts, keys.several(description.files))):
        raise click.UsageError("These are counts; inspect looks at the log that was counted.")
    with task_progress() as progress:
        progress("looking at the log", 0, 1)
        source = open_log(description, memory_limit=memory_limit)
        inspection = inspect(source, n_wedge=n_wedge)
    sections = inspection_sections(inspection, next_command(description, ends=source.says_ends))
    if output is not None:
        write_together(
            {
                output: [
                    page(
                        "A look at a log", sections, title=f"Inspection of {inspection.source}"
                    ).encode()
                ]
            }
        )
    if as_json:
        say_json(plain(inspection))
        return
    show(sections)
    if output is not None:
        say_wrote(output)


def next_command(description: keys.Description, *, ends: bool) -> str:
    """Returns the command to improve the policy behind the log; the user must fill in the discount.

    If nothing says how episodes end, the user must fill that in, too: no log shows it.
    """
    given = click.get_current_context().params
    logs = given["logs"]
    said = {name for name, value in given.items() if value}
    if logs[0].endswith(keys.SUFFIX) and said <= {"logs", "n_wedge", "output", "as_json"}:
        words = f"surestep improve {shell_word(logs[0])}"
    else:
        words = keys.command("improve", description, quote=shell_word)
    discount = "" if description.stakes.discount is not None else " --discount GAMMA"
    return f"{words}{'' if ends else ' --ends (complete|clock|random)'}{discount} -o result"


@click.command(
    "count",
    cls=options.Grouped,
    short_help="Count a log: tables of decisions to a small, mergeable file.",
)
@options.described(*keys.READING)
@options.output_file("The file of counts to write.")
@click.option("--sql", "dialect", metavar="DIALECT", help="Print queries for a warehouse instead.")
@click.option(
    "--table", default="log", show_default=True, help="With --sql: the name of the log there."
)
@click.option(
    "--entries",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="With --sql: the first rows of a state and an action that are kept.",
)
@options.cluster("Count the files, a task each,")
def count_command(
    *,
    description: keys.Description,
    output: Path | None,
    memory_limit: str | None,
    dialect: str | None,
    table: str,
    entries: int,
    engine: str,
    address: str | None,
) -> None:
    """Count LOG, a description (TOML) or a log, into a file of counts.

    Columns with the usual names are found by themselves; say which is which for others. Repeat an
    option where a state, next state or action has several columns. On a cluster, each file must
    hold whole episodes.

    \b
    surestep count log.csv -o counts.parquet
    surestep count 'logs/*.parquet' --state ward --state severity --action decision -o c.parquet

    With --sql, LOG is a sample of whole episodes, and nothing is counted: the queries count the
    table in a warehouse, and begin with one that draws such a sample.

    \b
    surestep count log.toml --sql postgres --table decisions > queries.sql
    """
    from surestep.io.counts.file import kind_of_counts, write_counts
    from surestep.io.logs.source import count_on_ray, open_log
    from surestep.parallel import reach

    if (output is None) == (dialect is None):
        raise click.UsageError(
            "Say where to write the counts (-o), or for whom the queries (--sql)."
        )
    reach(engine, address)
    if any(map(kind_of_counts, keys.several(description.files))):
        raise click.UsageError("These are counts already; put them together with surestep merge.")
    source = open_log(description, memory_limit=memory_limit)
    if output is None:
        from surestep.io.logs.warehouse import queries_for

        say(queries_for(source, str(dialect), table=table, most=entries))
        return
    say(source.columns)
    with task_progress() as progress:
        advance = partial(progress, f"counting {source.table.name}")
        advance(0, 1)
        if engine == "ray":
            counts = count_on_ray(source, address=address, progress=advance)
        else:
            counts = replace(source.counts_of_all(), edges=source.edges())
    write_counts(counts, output, memory_limit=memory_limit)
    say(
        f"read {counts.rows_read:,} rows: {len(counts.states):,} states, "
        f"{len(counts.actions):,} actions, {counts.transitions.times.size:,} transitions"
    )
    ended = counts.episodes
    if ended.recorded:
        say(
            f"{counted(ended.recorded, 'episode')}: {ended.terminated:,} terminated, "
            f"{ended.truncated:,} truncated, {ended.unflagged:,} without a word how they ended"
        )
    say(*(f"dropped {counted(rows, 'row')}: {why}" for why, rows in counts.dropped.items()))
    say_wrote(output)


@click.command("merge", short_help="Merge files of counts into one.")
@click.argument("files", nargs=-1, required=True, metavar="COUNTS...")
@options.output_file("The file of counts to write.", required=True)
def merge_command(files: tuple[str, ...], output: Path) -> None:
    """Merge files of counts that `surestep count` wrote, in any order.

    The result has the bytes that counting all their logs at once gives. Files that counted the same
    log are refused.

    \b
    surestep merge monday.parquet tuesday.parquet -o both.parquet
    """
    from surestep.io import merge_counts, read_counts, write_counts

    counts = merge_counts([read_counts(path) for path in files])
    write_counts(counts, output)
    say(
        f"merged {len(files):,} files: {counts.rows_read:,} rows, {len(counts.states):,} states, "
        f"{counts.transitions.times.size:,} transitions"
    )
    say_wrote(output)
