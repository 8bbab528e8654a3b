"""Finds faults of a log: single rows that cannot be used, and rows that do not fit together.

A single row fails one of the `RowCheck`s of its roles. How rows fit together is asked of the table
`seen`: the log, read once, with our names of columns and NULL where counting refuses the value.
Each finding is an SQL query with a sentence. Inspecting shows all findings with their first places
in the files; counting refuses a log with a finding that has something `expected`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from surestep._arrays import shown
from surestep._words import counted
from surestep.errors import InvalidLog
from surestep.io.logs.query import ROW as PLACE
from surestep.io.logs.roles import (
    FLAGS,
    LARGEST_SCALE,
    LARGEST_SUM,
    LabelCode,
    RewardSql,
    RoleSql,
    RowCheck,
    Units,
)
from surestep.io.logs.tables import Table
from surestep.io.sql import ROW, as_texts, sql_name

NOTE = '"surestep note"'
EXAMPLES = 3  # shown for each kind of suspicious row
BLOCK = 60  # steps that are counted together, as bits of one 64-bit number


# ---- rows by themselves -----------------------------------------------------------------------


def check_rows(table: Table, database: Any, roles: RoleSql) -> Units:
    """Refuses the first row that cannot be used; returns the units that exact sums need."""
    reward = RewardSql.of(roles)
    rows, scale, largest, short = passed(
        table, database, roles.checks(reward.is_number), "count(*)", *reward.needs()
    )
    if rows == 0:
        raise no_row(table)
    if scale > LARGEST_SCALE or largest * rows * 10.0**scale >= LARGEST_SUM:
        place, text = first_row_where(table, database, f"{reward.digits} = {scale}", reward.column)
        raise InvalidLog(
            f"{place}: found {text!r}, which needs {scale} digits after the point; {rows:,} "
            f"rewards of up to {largest:g} with that many cannot be added up exactly; round "
            "the rewards to fewer digits"
        )
    return reward.units(scale, largest, short)


def passed(table: Table, database: Any, checks: Sequence[RowCheck], *also: str) -> Sequence[Any]:
    """Refuses the first row that fails a check; returns other aggregates of all rows."""
    totals, failed = failures(database, checks, *also)
    for check, rows in failed:
        place, text = first_row_where(table, database, check.condition, check.column)
        value = "nothing" if text is None else shown(text)
        hint = check.hint
        if text is None or text.strip().lower() in ("", "nan"):
            hint = " (leave such rows out, or give them a value, in the query of a description)"
        elif not hint and re.fullmatch(r"\s*[+-]?[0-9][0-9.,' \u00a0\u202f]*", text):
            hint = " (write it with a decimal point only, in the query of a description)"
        others = "" if rows == 1 else f"; {rows:,} rows are affected"
        raise InvalidLog(f"{place}: found {value}, expected {check.expected}{hint}{others}")
    return totals


def failures(
    database: Any, checks: Sequence[RowCheck], *also: str
) -> tuple[Sequence[Any], list[tuple[RowCheck, int]]]:
    """Returns other aggregates of all rows, and the checks that some rows fail, with how many."""
    asked = [*also, *(f"count_if({check.condition})" for check in checks)]
    totals = database.execute(f"SELECT {', '.join(asked)} FROM log").fetchone()
    counted = zip(checks, totals[len(also) :], strict=True)
    return totals[: len(also)], [(check, times) for check, times in counted if times]


def no_row(table: Table) -> InvalidLog:
    """Returns the error for a log without rows."""
    return InvalidLog(f"{table.name} has no row, expected at least one decision")


def first_row_where(
    table: Table, database: Any, condition: str, column: str
) -> tuple[str, str | None]:
    """Finds the first row that fulfils a condition, in the order of the files.

    Returns its place, empty if there is no such row, and the text of the column there.
    """
    raw_row = sql_name(PLACE) if table.made is not None and table.made.keeps_rows else "NULL"
    database.execute("SET preserve_insertion_order = true")
    hit = database.execute(
        f"SELECT {ROW}, {raw_row}, {as_texts([column])} FROM log WHERE {condition} "
        f"ORDER BY {ROW} LIMIT 1"
    ).fetchone()
    if hit is None:
        return "", None
    file, row = table.place(database, hit[0])
    where = f"{file or table.name}, row {row:,}"
    if hit[1] is not None and table.raw is not None:
        file, row = table.raw.place(database, hit[1])
        where += f" ({file or table.raw.name}, row {row:,})"
    return f"{where}, column {column!r}", hit[2]


# ---- rows beside each other -------------------------------------------------------------------


class Example(NamedTuple):
    """One suspicious row: its place and its value."""

    file: str | None  # None for a table in memory
    row: int  # from 1, in its file
    episode: str | None
    step: str | None
    value: str | None


class Suspicion(NamedTuple):
    """A fault found in a log: how many rows have it, and the first of them."""

    kind: str
    times: int
    says: str  # '3 rows too many: …'
    expected: str | None  # None if counting does not refuse such a log
    examples: tuple[Example, ...] = ()

    @property
    def refused(self) -> bool:
        """Tells whether counting refuses such a log."""
        return self.expected is not None


class Finding(NamedTuple):
    """A query that finds rows where a log looks wrong."""

    of: str  # the noun that is counted
    says: str  # the sentence, after the number
    expected: str | None
    # SQL over `seen` and the tables made from it: the `row` of each place, how many `times` it
    # counts, its `episode`, and a `note`; its {names} are those of `Look.names`
    places: str
    shows: str | None = None  # the role whose values are shown as examples; None: the note
    refused_at: str = "step"  # the role whose column is at fault


IN_EPISODES = "(in {number:,} episode{s})"
STEPS = "seen WHERE episode IS NOT NULL AND step IS NOT NULL"
OF_EPISODES: Mapping[str, Finding] = {
    "repeated step": Finding(
        "row",
        f"too many: another row has the same episode and step {IN_EPISODES}",
        "once (if rows are copies of each other, keep one; if they are different episodes, number "
        "them differently)",
        "SELECT row, 1 AS times, episode, 'step ' || step || ' is there ' || count(*) OVER same || "
        f"' times' AS note FROM {STEPS} AND episode IN (SELECT episode FROM episodes WHERE "
        "different < steps) WINDOW same AS (PARTITION BY episode, step) "
        "QUALIFY row > min(row) OVER same",
    ),
    "missing step": Finding(
        "row",
        f"after which steps are missing {IN_EPISODES}",
        "steps numbered without gaps (begin a new episode where some are missing; of steps 0, 4, 8 "
        "a query makes 0, 1, 2: step // 4)",
        "SELECT row, 1 AS times, episode, 'step ' || step || ' is followed by step "
        "' || later AS note FROM (SELECT *, lead(step) OVER (PARTITION BY episode "
        f"ORDER BY step) AS later FROM {STEPS} AND episode IN (SELECT episode FROM episodes WHERE "
        "different < high - low + 1)) WHERE later > step + 1",
    ),
    "step after end": Finding(
        "row",
        f"after the end of their episode {IN_EPISODES}",
        "the flag at the last step (begin a new episode after it)",
        "SELECT arg_min(row, step) AS row, count(*) AS times, episode, 'the episode ended at step "
        "' || any_value(flagged) AS note FROM seen JOIN (SELECT episode, flagged FROM episodes "
        "WHERE flagged < high) USING (episode) WHERE step > flagged GROUP BY episode",
    ),
    "broken chain": Finding(
        "row",
        "with a next state that is not the state of the next step",
        "the same (leave the column out to have it derived from the next step)",
        "SELECT row, 1 AS times, episode, 'next state ' || {said} || ', but the next step is in ' "
        "|| {was} AS note FROM (SELECT *, lead(step) OVER near AS later, "
        f"{{leads}} FROM {STEPS} WINDOW near AS (PARTITION BY episode ORDER BY step, {{labels}})) "
        "WHERE later = step + 1 AND next_0 IS NOT NULL AND ({differ})",
        refused_at="next_state",
    ),
    "tied time": Finding(
        "row",
        "decided at the same time as a row of another episode; in which order, the files say alone "
        "(tables of a warehouse say another one)",
        None,
        "SELECT row, 1 AS times, episode, 'at ' || moment AS note FROM seen WHERE moment IS NOT "
        "NULL WINDOW same AS (PARTITION BY moment) "
        "QUALIFY min(episode) OVER same <> max(episode) OVER same",
        refused_at="time",
    ),
    "episode without end": Finding(
        "episode",
        "without an end: {why}",
        None,
        "SELECT arg_max(row, step) AS row, 1 AS times, episode, 'last step' AS note FROM seen "
        "WHERE episode IS NOT NULL GROUP BY episode "
        "HAVING NOT bool_or(terminated) AND NOT bool_or(truncated)",
    ),
}
OF_LABELS = {
    "outlier": Finding(
        "row",
        "with a reward far from almost all others, which are {low:g} to {high:g}",
        None,
        "SELECT row, 1 AS times, episode, NULL AS note FROM seen "
        "WHERE NOT reward BETWEEN {low!r}::DOUBLE AND {high!r}::DOUBLE",
        "reward",
    ),
    "state seen once": Finding(
        "state",
        "seen in a single row (a typing error, or a state too fine to learn from)",
        None,
        "SELECT min(row) AS row, 1 AS times, NULL AS episode, NULL AS note FROM visited "
        "GROUP BY {state} HAVING sum(rows) = 1",
        "state",
    ),
}


@dataclass(frozen=True, slots=True)
class Look:
    """Asks a log for faults: its table, the roles of its columns, and an open database."""

    table: Table
    roles: RoleSql
    database: Any

    def read(self) -> tuple[int, bool]:
        """Creates the tables `seen` and `episodes`; counts the rows, and tells if all are usable.

        An episode has `different` distinct steps from `low` to `high`; `flagged` is its first step
        with an end.
        """
        reward = RewardSql.of(self.roles)
        number = f"TRY_CAST({sql_name(reward.column)} AS DOUBLE)"
        checks = self.roles.checks(reward.is_number)
        columns = {
            "episode": "NULL",
            "step": "NULL::BIGINT",
            **self.roles.columns(usable_code),
            "row": ROW,
            "moment": self.roles.time if self.roles.mapping.time else "NULL",
            "reward": f"CASE WHEN {reward.is_number} AND isfinite({number}) THEN {number} END",
            "faulty": " OR ".join(f"({check.condition})" for check in checks),
        }
        columns |= {flag: f"coalesce({columns[flag]}, false)" for flag in FLAGS}
        told = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        self.database.execute("SET preserve_insertion_order = true")
        self.database.execute(
            "CREATE TEMP TABLE seen AS SELECT * REPLACE (CASE WHEN step >= 0 THEN step END AS step)"
            f" FROM (SELECT {told} FROM log)"
        )
        self.database.execute(
            "CREATE TEMP TABLE episodes AS SELECT episode, sum(rows)::BIGINT AS rows, "
            "sum(steps) AS steps, sum(different) AS different, min(low) AS low, max(high) AS "
            "high, min(flagged) AS flagged, bool_or(terminated) AS terminated, "
            "bool_or(truncated) AS truncated FROM (SELECT episode, count(*) AS rows, "
            "count(step) AS steps, min(step) AS low, max(step) AS high, coalesce(bit_count("
            f"bit_or(1::UBIGINT << (step % {BLOCK})::UBIGINT)), 0) AS different, "
            "min(step) FILTER (terminated OR truncated) AS flagged, bool_or(terminated) AS "
            "terminated, bool_or(truncated) AS truncated FROM seen WHERE episode IS NOT NULL "
            f"GROUP BY episode, step // {BLOCK}) GROUP BY episode"
        )
        rows, unusable = self.database.execute(
            "SELECT count(*), count_if(faulty) FROM seen"
        ).fetchone()
        return rows, unusable == 0

    @property
    def names(self) -> dict[str, Any]:
        """Returns the parts of SQL and sentences that findings name in braces."""
        mapping = self.roles.mapping
        width = range(len(self.roles.next_state))
        why = "their last step is neither terminated nor truncated"
        if mapping.terminated is None and mapping.truncated is None:
            why = "no column says whether an episode is over"
        return {
            "why": why,
            "state": ", ".join(self.roles.names("state")),
            "said": " || ', ' || ".join(f"next_{i}" for i in width),
            "was": " || ', ' || ".join(f"there_{i}" for i in width),
            "leads": ", ".join(f"lead(state_{i}) OVER near AS there_{i}" for i in width),
            "differ": " OR ".join(f"there_{i} <> next_{i}" for i in width),
            "labels": ", ".join([*self.roles.names("state"), *self.roles.names("next")]),
        }

    def unusable(self) -> Iterator[Suspicion]:
        """Yields a suspicion for each column with values that counting refuses."""
        checks = self.roles.checks(RewardSql.of(self.roles).is_number)
        for check, times in failures(self.database, checks)[1]:
            says = f"{counted(times, 'row')} without {check.expected} in column {check.column!r}"
            places = f"SELECT {ROW} AS row, NULL AS note FROM log WHERE {check.condition}"
            examples = self.examples(places, [check.column])
            yield Suspicion("unusable value", times, says, check.expected, examples)

    def ask(self, findings: Mapping[str, Finding], **names: Any) -> Iterator[Suspicion]:
        """Yields the suspicions of all findings; `names` and `self.names` fill their braces."""
        names |= self.names
        for kind, finding in findings.items():
            self.database.execute(
                f"CREATE OR REPLACE TEMP TABLE places AS {finding.places.format(**names)}"
            )
            times, number = self.database.execute(
                "SELECT coalesce(sum(times), 0)::HUGEINT, count(DISTINCT episode) FROM places"
            ).fetchone()
            if times:
                says = finding.says.format(number=number, s="" if number == 1 else "s", **names)
                told = f"{counted(times, finding.of)} {says}"
                shown = self.roles.mapping.by_role().get(finding.shows or "", ())
                examples = self.examples("SELECT row, note FROM places", shown)
                yield Suspicion(kind, int(times), told, finding.expected, examples)

    def of_episodes(self) -> dict[str, Finding]:
        """Returns the findings about episodes for which this log has columns."""
        there = self.roles.mapping.by_role() if self.roles.mapping.episode else {}
        return {kind: one for kind, one in OF_EPISODES.items() if one.refused_at in there}

    def examples(self, places: str, columns: Sequence[str]) -> tuple[Example, ...]:
        """Returns the first of some rows, with the values of columns there, or with their notes.

        `places` is SQL for the numbers of the rows and their notes.
        """
        episode = self.roles.episode
        step = self.roles.mapping.step
        texts = [
            "NULL" if episode is None else usable_code(episode),
            "NULL" if step is None else sql_name(step),
            " || ', ' || ".join(as_texts([name]) for name in columns) or NOTE,
        ]
        listed = ", ".join(f"CAST({sql} AS VARCHAR)" for sql in texts)
        rows = self.database.execute(
            f"SELECT {ROW}, {listed} FROM log JOIN (SELECT row AS {ROW}, note AS {NOTE} "
            f"FROM ({places}) WHERE row IS NOT NULL ORDER BY row LIMIT {EXAMPLES}) USING ({ROW}) "
            f"ORDER BY {ROW}"
        ).fetchall()
        return tuple(Example(*self.table.place(self.database, row), *told) for row, *told in rows)


def explain_episodes(look: Look) -> InvalidLog | None:
    """Returns an error for the first suspicion about episodes that is refused; None without one."""
    look.read()
    suspicion = next((one for one in look.ask(look.of_episodes()) if one.refused), None)
    if suspicion is None:
        return None
    finding = OF_EPISODES[suspicion.kind]
    column = look.roles.mapping.by_role()[finding.refused_at][0]
    file, row, episode, _, note = suspicion.examples[0]
    if suspicion.kind == "repeated step" and look.table.preparation.numbers_stamps:
        note = f"{note}, by its time stamps"
    affected = f"; {suspicion.times:,} {finding.of}s are affected"
    return InvalidLog(
        f"{file or look.table.name}, row {row:,}, column {column!r}: in episode {episode!r}, "
        f"{note}; expected {finding.expected}{affected if suspicion.times > 1 else ''}"
    )


def usable_code(code: LabelCode) -> str:
    """Returns SQL for the code of a label; NULL if the value cannot be used."""
    unusable = " OR ".join(f"({check.condition})" for check in code.checks)
    return f"CASE WHEN NOT ({unusable}) THEN {code.sql} END" if unusable else code.sql
