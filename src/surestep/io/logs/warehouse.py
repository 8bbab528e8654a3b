"""Writes the queries that count a log in a warehouse, and reads the tables that they make there.

A *stack* is what came of the visits of a pair, in the order of decisions; its rows are *entries*.
Beside counts, the first entries of every stack are all that `stitched` reads of a log, so that a
billion rows become a few for each pair. Every row says whether it belongs to the part of the log
that chooses a policy or to the one that judges it; the border is fixed before anything is seen.
`templates/warehouse.sql.jinja` has the queries.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

import surestep._arrays as arrays
from surestep._names import unknown
from surestep.errors import InvalidCounts, InvalidParameter, optional_module
from surestep.io.counts.file import FORM
from surestep.io.counts.labelled import END, REWARDS, LabelledCounts, counts_digest, known_places
from surestep.io.labels.vocabulary import joined
from surestep.io.logs.columns import SINGLE, ColumnMapping, naming
from surestep.io.logs.counting import BEGINS
from surestep.io.logs.findings import passed
from surestep.io.logs.loading import (
    counts_of,
    joined_codes,
    log_of_steps,
    numbered_transitions,
)
from surestep.io.logs.roles import RewardSql, RoleSql
from surestep.io.logs.source import LogSource
from surestep.io.logs.tables import connected
from surestep.io.sql import columns_of, file_list, in_memory, sql_name, sql_text
from surestep.model import DecisionLog, Pairs
from surestep.model.log import Excerpt, Seen

FORMS = {"counts": "surestep counts 1", "entries": "surestep entries 1"}
USUAL_SHARE = 0.3  # of the episodes of a large log, as in `pipeline.terms`
DIGITS = (2, 9)  # after the point that sums keep: at least cents; as many as the queries add up
HEAD = """-- A fifth of the episodes, whole, by a hash of their ids, to describe and inspect:
-- {sample}

-- Save both tables as Parquet, then: surestep improve counts.parquet entries.parquet

{counts};

{entries};"""
TEMPLATES = Environment(
    loader=PackageLoader("surestep.io.logs"), undefined=StrictUndefined, trim_blocks=True
)
TEMPLATES.filters |= {"sql": sql_name, "text": sql_text}


def first_limit(most: int, share: float) -> int:
    """Returns the most entries of a stack in the first part: `most`, in proportion of the parts."""
    return max(1, round(most * share / (1 - share)))


def queries_for(source: LogSource, dialect: str, *, table: str, most: int) -> str:
    """Returns the statements that make the tables of a log in a warehouse, in an SQL dialect.

    `table` is the name of the log there, and `most` the number of entries of a stack of the part
    that judges.
    """
    sqlglot = optional_module("sqlglot", "queries for a warehouse need sqlglot", "warehouse")
    if dialect not in sqlglot.Dialect.classes:
        raise unknown(
            f"there is no dialect {dialect!r}", dialect, sorted(sqlglot.Dialect.classes)[1:]
        )
    check_can_be_asked(source)
    files = source.columns_in_files
    share = source.description.method.train_share or USUAL_SHARE
    template = TEMPLATES.get_template("warehouse.sql.jinja")
    made = {
        query: sqlglot.transpile(
            template.render(
                query=query,
                columns=source.columns,
                needed=[x for role in files if role != "next_state" for x in files[role]],
                flags={role: files.get(role, [""])[0] for role in ("terminated", "truncated")},
                ends=source.description.ends,
                stamps=source.table.preparation.numbers_stamps,
                cost=source.cost,
                log=".".join(map(sql_name, table.split("."))),
                forms=FORMS,
                form_column=FORM,
                share=share,
                most=most,
                first=first_limit(most, share),
            ),
            read="duckdb",
            write=dialect,
            pretty=query != "sample",
            identify=True,
        )[0]
        for query in ("sample", *FORMS)
    }
    return HEAD.format(**made)


def check_can_be_asked(source: LogSource) -> None:
    """Refuses a log whose description says what the queries leave out."""
    description, columns = source.description, source.columns
    source.check_says_ends()
    for found, is_there, expected in (
        ("a query", description.query, "a view of its rows"),
        ("bins", description.bins, "a view whose columns have the bins"),
        (
            f'ends = "{description.ends}"',
            description.ends in ("clock", "random"),
            "a view whose column `truncated` marks the last rows that a clock stopped",
        ),
        ("a memory", columns.memory, "a view whose columns have the past"),
        ("several signals", len(description.signals) > 1, "one column of rewards"),
        ("propensities", columns.propensity, "the behavior policy as a table, or estimate"),
    ):
        if is_there:
            raise InvalidParameter(
                f"the log has {found}, which queries for a warehouse leave out; expected {expected}"
            )
    if columns.episode in (None, SINGLE["episode"]) or columns.time is None:
        raise InvalidParameter(
            "a table in a warehouse has no order; expected columns that say which rows are an "
            f"episode, and when they were decided ({naming('episode', 'step', 'time')})"
        )
    with connected(source.table, source.memory_limit) as database:
        passed(source.table, database, source.plain.rare_checks())


# ---- the tables -------------------------------------------------------------------------------


class WarehouseTables(NamedTuple):
    """The counts and the first entries of a log, which a warehouse made."""

    counts: LabelledCounts
    # Of both parts, numbered like `counts`, with the states in which the first episodes began.
    parts: Sequence[tuple[LabelledCounts, arrays.IntArray]]
    rows: dict[str, arrays.AnyArray]  # of entries, over the labels of `counts`
    share: float  # of the episodes: of the first part
    complete: bool  # every row and every start is there
    tied: int  # rows decided at the same time as one of another episode

    def load(self, pairs: Pairs) -> DecisionLog:
        """Returns the log if it is complete, else its entries, each an episode of its own."""
        return log_of_steps(self.rows, self.counts, pairs, numbered=True)

    def known(self, log: DecisionLog) -> DecisionLog:
        """Returns the log of `load`, which may be renumbered by now, with all that is known."""
        if self.complete:
            return log
        pairs = log.pairs
        place = known_places("state", [*map(joined, self.counts.states)], pairs.state_labels)
        one, other = (
            Seen(part.to_counts(pairs, self.counts), place[starts]) for part, starts in self.parts
        )
        whole = self.counts.to_counts(pairs)
        whole = replace(whole, starts=one.counts.starts + other.counts.starts)  # as rows are loaded
        return Excerpt(
            **{x.name: getattr(log, x.name) for x in fields(DecisionLog) if x.init},
            seen=Seen(whole, np.concatenate([one.starts, other.starts])),
            chooses=self.rows["chooses"],
            parts=(one, other),
            share=self.share,
        )


def read_tables(files: Sequence[Path]) -> WarehouseTables:
    """Reads the tables that the queries made, in any number of Parquet files; checks that they fit.

    Labels and numbers may have any type, as warehouses differ.
    """
    with in_memory(threads=1) as database:
        rows = f"read_parquet({file_list(files)}, union_by_name=true, filename=true)"
        found = database.execute(f"SELECT DISTINCT {FORM}, filename FROM {rows}").fetchall()
        by_form = {form: [Path(name) for x, name in found if x == form] for form in FORMS.values()}
        if not all(by_form.values()) or {form for form, _ in found} - {*by_form}:
            forms = ", ".join(sorted(f"{Path(name).name}: {form}" for form, name in found))
            raise InvalidCounts(
                "expected the two tables that the queries of `surestep count` make in a warehouse, "
                f"counts and entries, and no other file; found {forms}"
            )
        both = [file_list(some) for some in by_form.values()]
        columns = [*columns_of(database, f"FROM read_parquet({both[0]})")]
        roles, names = roles_of(columns)
        template = TEMPLATES.get_template("tables.sql.jinja")
        database.execute(
            template.render(counts=both[0], entries=both[1], names=names, columns=columns)
        )
        return tables_of(database, roles)


def roles_of(columns: Sequence[str]) -> tuple[RoleSql, list[tuple[str, str]]]:
    """Returns the roles of the columns of a table, and its columns of labels with our names."""
    names = {
        role: tuple(x.removeprefix(f"{role}__") for x in columns if x.startswith(f"{role}__"))
        for role in ("state", "action")
    }
    mapping = ColumnMapping(names["state"], names["action"], "reward", episode="episode")
    types = dict.fromkeys((*mapping.state, *mapping.action, "episode"), "VARCHAR")
    roles = RoleSql.of(mapping, types, {})
    theirs = {"state": mapping.state, "action": mapping.action, "next_state": mapping.state}
    return roles, [
        (f"{role}__{name}", ours)
        for role, several in theirs.items()
        for name, ours in zip(several, roles.names(role.removesuffix("_state")), strict=True)
    ]


def tables_of(database: Any, roles: RoleSql) -> WarehouseTables:
    """Returns the tables `counted` and `entered`, after they were checked."""
    share, complete = check_tables(database, roles)
    digits = ", ".join(RewardSql(name, "DOUBLE").digits for name in REWARDS[1:])
    scale, tied = database.execute(
        f"SELECT least(greatest(max(greatest({digits})), {DIGITS[0]}), {DIGITS[1]}), "
        "sum(tied)::BIGINT FROM counted"
    ).fetchone()
    units = ", ".join(f"round({x} * 1e{scale}::DOUBLE)::HUGEINT AS {x}" for x in REWARDS)
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE counted AS SELECT * REPLACE ({units}) FROM counted"
    )
    whole = counts_of(database, roles, scale)
    whole = replace(whole, sources=(counts_digest(whole),))
    parts = list[tuple[LabelledCounts, arrays.IntArray]]()
    for part in ("choosing", "judging"):
        transitions, times, _ = numbered_transitions(
            database, roles, len(whole.states), f"kept AND part = '{part}'"
        )
        counts = replace(whole, transitions=transitions, scale=scale, starts=times)
        begun = database.execute(
            "SELECT here.number AS state FROM entered JOIN state_codes AS here USING "
            f"({', '.join(roles.names('state'))}) WHERE starts AND part = '{part}' ORDER BY episode"
        ).fetchnumpy()
        parts.append((counts, np.asarray(begun["state"], np.int64)))
    answer = database.execute(
        f"SELECT here.number AS state, act.number AS action, coalesce(there.number, {END}) AS "
        "next_state, terminated, reward, episode, place, chooses FROM (FROM entered WHERE NOT "
        f"starts) AS entered {joined_codes(roles, 'entered')} "
        f"ORDER BY {'episode' if complete else 'place'}, step"
    ).fetchnumpy()
    rows = {name: np.asarray(values) for name, values in answer.items()}
    if not complete:
        rows |= {name: np.arange(rows["state"].size) for name in ("episode", "place")}
    return WarehouseTables(whole, parts, rows, share, complete, tied)


def check_tables(database: Any, roles: RoleSql) -> tuple[float, bool]:
    """Refuses counts of rows that cannot be used, and entries that are not those of the counts.

    Returns the share of the part that chooses, and whether every row and start is an entry.
    """
    odd, rows, starts, share, most, listed = database.execute(
        "SELECT sum(odd), sum(times) FILTER (kept), sum(times) FILTER (kept AND kind & "
        f"{BEGINS} > 0), any_value(train_share), any_value(most), (SELECT count(*) FROM entered) "
        "FROM counted"
    ).fetchone()
    if odd:
        raise InvalidCounts(
            f"{odd:,} rows of the log cannot be used: a value is missing, steps have gaps, or an "
            "episode goes on after its end; `surestep inspect` of whole episodes shows which"
        )
    first = first_limit(most, share)
    keys = ", ".join(["part", "most", "train_share", *roles.names("state"), *roles.names("action")])
    (different,) = database.execute(
        f"SELECT count(*) FROM (SELECT {keys}, least(sum(times), if(part = 'choosing', {first}, "
        f"{most})) AS times FROM counted WHERE kept GROUP BY {keys}) AS counted FULL JOIN (SELECT "
        f"{keys}, count(*) AS times FROM entered WHERE NOT starts GROUP BY {keys}) AS entered "
        f"USING ({keys}) WHERE counted.times IS DISTINCT FROM entered.times"
    ).fetchone()
    if different:
        raise InvalidCounts(
            "the entries are not those of the counts (other numbers of rows of a state and an "
            "action); expected both tables of the same queries, each whole"
        )
    states = ", ".join(roles.names("state"))
    (contradicting,) = database.execute(
        "SELECT (SELECT count(*) FROM kinds WHERE contradict) + (SELECT count(*) FROM (SELECT "
        "sum(counts) AS counts, sum(entries) AS entries, if(part = 'choosing', "
        f"{first}, {most}) * (SELECT count(*) FROM (SELECT DISTINCT {states} FROM kinds WHERE "
        "starts)) AS most FROM kinds WHERE starts GROUP BY part) WHERE entries < least(counts, "
        "most)) + (SELECT count(*) - count(DISTINCT (episode, step)) + count(DISTINCT (place, "
        "episode)) - count(DISTINCT place) FROM entered WHERE NOT starts)"
    ).fetchone()
    if contradicting:
        raise InvalidCounts(
            "the entries contradict the counts: other rewards, next states or first steps of "
            "episodes; expected both tables of the same queries, as these wrote them"
        )
    return share, listed == rows + starts
