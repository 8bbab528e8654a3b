"""Logs as users have them, counted by DuckDB: streamed, spilled to disk, checked row by row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from surestep._reprs import short_html, short_repr
from surestep.errors import InvalidLog, InvalidParameter, said
from surestep.io.counts.labelled import LabelledCounts, Taught, counts_digest, merge_counts
from surestep.io.labels.bin_rules import Quantiles, bin_option, read_bin_option, resolve_binnings
from surestep.io.labels.binning import Binning
from surestep.io.labels.histories import present_columns, with_past
from surestep.io.labels.label import Label
from surestep.io.logs.checks import check_rows, first_where, no_row, places_where
from surestep.io.logs.columns import ROLES, ColumnMapping, closest, naming
from surestep.io.logs.counting import IN_ORDER, CountQuery, count_as_hoped
from surestep.io.logs.digests import file_sources
from surestep.io.logs.findings import Look, explain_episodes
from surestep.io.logs.frames import kind_of, names_of, ungrouped
from surestep.io.logs.groups import labelled
from surestep.io.logs.histories import (
    HistoryColumns,
    check_long_enough,
    columns_in_files,
    history_of,
    with_history,
)
from surestep.io.logs.lanes import lanes_of
from surestep.io.logs.learnt_states import rule_of
from surestep.io.logs.loading import first_rows, load_steps
from surestep.io.logs.missing import CUT_SHORT, GONE, advice
from surestep.io.logs.preparing import meaning_of, prepared
from surestep.io.logs.reading import Reading, is_to_be_learnt
from surestep.io.logs.rewards import RewardSql, Units
from surestep.io.logs.roles import RoleSql
from surestep.io.logs.stamps import is_stamp_type, reads_stamp
from surestep.io.logs.tables import Table, connected, find_table, watched
from surestep.io.sql import ROW, limit_memory, sql_name, sql_text
from surestep.model import DecisionLog, Pairs
from surestep.parallel import map_as_done

SHOWN = ("episode", "state", "action", "reward")  # of the columns, in a line


@dataclass(frozen=True, slots=True)
class LogSource:
    """A log that has been found but not read."""

    table: Table
    columns: ColumnMapping
    types: Mapping[str, str]  # column → type, as DuckDB calls it
    memory_limit: str | None = None
    # The first share of so many episodes, whose quantiles are edges; None: all.
    edges_from: Callable[[int], float] | None = None

    __repr__ = short_repr("table.name", *(f"columns.{role}" for role in SHOWN))
    _repr_html_ = short_html("table.name", *(f"columns.{role}" for role in ROLES))

    @property
    def reading(self) -> Reading:
        """Returns the way in which the log is read."""
        return self.table.reading

    def with_bins(self, bins: Sequence[str]) -> LogSource:
        """Returns the same log with other rules for columns of numbers."""
        reading = replace(self.table.reading, bins=bins)
        return replace(self, table=replace(self.table, reading=reading))

    def sampled(self, share: float, binnings: Mapping[str, Binning]) -> LogSource:
        """Returns a share of the episodes, drawn by a hash of their names, with the same bins."""
        name = f"CAST({sql_name(str(self.columns.episode))} AS VARCHAR)"
        kept = f"md5_number_lower({name}) < {int(share * 2**64)}::UBIGINT"
        source = self.with_bins([bin_option(*each) for each in binnings.items()])
        return replace(source, table=replace(source.table, kept=kept))

    def again(
        self, reading: Reading, columns: Mapping[str, str | Sequence[str]] | None = None
    ) -> LogSource:
        """Returns the same log, read in another way; `columns` are those of the files, by role.

        By default they are those that the log has now.
        """
        given = [*map(str, self.table.files)] if self.table.files else self.table.frame
        if columns is None:
            columns = columns_in_files(self.columns.by_role(), self.reading)
        return open_log(given, columns, reading, self.memory_limit)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read; none for a table in memory."""
        return self.table.files

    def counts(self, progress: Callable[[int, int], None] | None = None) -> LabelledCounts:
        """#_D(s,a,s') with exact sums of rewards, starts and ends, in bounded memory.

        `progress` is told what share of the pass under way is done, as (done, total).
        """
        counts = self.counts_as_part(progress)
        check_history(self.table, counts)
        return counts

    def counts_as_part(self, progress: Callable[[int, int], None] | None = None) -> LabelledCounts:
        """Returns the counts, also where no episode has as many rows as a state may have.

        Others may have, in the rest of the log, or in the one that the states are from.
        """
        self.check_ends_said()
        if is_to_be_learnt(self.reading.states_from):
            raise InvalidParameter(
                f"states are to be learnt ({self.reading.states_from}), which takes returns and so "
                "a discount; expected surestep.states.learn, or `surestep improve`"
            )
        if not self.reading.is_settled:
            raise InvalidParameter(
                "how many rows make a state is to be chosen (auto); expected "
                "surestep.states.choose_history, or `surestep improve`"
            )
        with connected(self.table, self.memory_limit) as database, watched(database, progress):
            sources = file_sources(self.table, database)
            self.table.format.check_labels(database, self.table.files, self.unbinned_labels())
            roles = self.roles(database)
            scale = count_rows(self.table, database, roles)
            if self.memory_limit is not None:
                limit_memory(database, self.memory_limit, share=0.5)  # arrays have the rest
            counts = labelled(database, roles, scale, left_out(self.table, database))
        counts = replace(counts, taught=taught_by(self.reading, self.columns))
        return replace(counts, sources=sources or (counts_digest(counts),))

    @property
    def says_ends(self) -> bool:
        """Tells whether anybody says how episodes end."""
        columns = self.columns
        flags = (columns.terminated, columns.truncated, columns.is_last, *columns.next_state)
        return any(flag is not None for flag in flags)

    def check_ends_said(self) -> None:
        """Refuses a log of which nobody says how episodes end: all bad ends may be missing."""
        if self.says_ends:
            return
        raise InvalidLog(
            f"{self.table.name}: nobody says how episodes end, so that the worst ends may be "
            f"missing; expected a column of it ({naming('terminated')}, or "
            f"{naming('truncated')} where a clock stopped the recording), one of next states "
            f"({naming('next_state')}), or a word for all{said(' (to read_log)', '')}: "
            f"{said('complete=True', '--complete')} (the last row of every episode ends it), "
            f"{said('clock=True', '--clock')} (recording stops after so many "
            "steps, or at a date with steps of equal length), or "
            f"{said('one_step=True', '--one-step')} (every row is an episode of its own)"
        )

    def load(
        self,
        pairs: Pairs | None = None,
        counts: LabelledCounts | None = None,
        *,
        propensities: bool = False,
    ) -> DecisionLog:
        """Returns every step, in memory, for methods that look at whole episodes.

        `pairs` has labels, among which those of the log are found; by default those of `counts`.
        `counts` are those of this very log, where they were made already: they have checked every
        row, so that the log is read only once more. With `propensities` the log has those of its
        rows; expected is a column of them.
        """
        if propensities and self.columns.behavior_prob is None:
            raise InvalidParameter(
                "propensities are asked for, but no column of the log says with which probability "
                f"its actions were taken; name it with {naming('behavior_prob')}"
            )
        counted = self.counts() if counts is None else counts
        with connected(self.table, self.memory_limit) as database:
            roles = RoleSql.of(self.columns, self.types, counted.binnings)
            numbered = self.table.preparation.changes
            return load_steps(
                *(database, roles, counted, pairs),
                numbered=numbered,
                propensities=propensities,
            )

    def place_of(self, labels: Mapping[str, Label]) -> str:
        """Finds where the log first decides with these labels, by role: file, row and column.

        Empty where it does not. The log is read again for it.
        """
        with connected(self.table, self.memory_limit) as database:
            roles = self.roles(database)
            conditions = [roles.decides]
            for role, label in labels.items():
                for code, text in zip(getattr(roles.codes, role), label, strict=True):
                    value = f"CAST({code.sql} AS VARCHAR)"
                    distinct = database.execute(f"SELECT DISTINCT {value} FROM log").fetchall()
                    same = [coded for (coded,) in distinct if coded is not None]
                    same = [sql_text(coded) for coded in same if code.label(coded) == text]
                    conditions.append(f"{value} IN ({', '.join(same) or 'NULL'})")
            column = getattr(self.columns, list(labels)[-1])[0]
            places = places_where(self.table, database, " AND ".join(conditions), column)
            return next((place.where for place in places), "")

    def first_beyond(
        self, running: tuple[float, float], ending: tuple[float, float], *, counted: bool
    ) -> str:
        """Finds the first row with a reward beyond what such steps may earn: file, row, column.

        Rows that are not `counted` too may go on or end, unless a clock cut them. Empty where there
        is none, or a row does not say by itself whether its episode ended.
        """
        if self.columns.is_last is not None or self.reading.complete:
            return ""
        with connected(self.table, self.memory_limit) as database:
            roles = self.roles(database)
            reward = RewardSql.of(roles).double
            over, stopped = (
                f"coalesce({roles.flag(flag)}, false)"
                for flag in (self.columns.terminated, self.columns.truncated)
            )
            on_the_way, at_end = (
                f"NOT ({reward} BETWEEN {low!r}::DOUBLE AND {high!r}::DOUBLE)"
                for low, high in (map(float, running), map(float, ending))
            )
            goes_on = "true" if counted or self.reading.clock else stopped
            condition = (
                f"CASE WHEN {over} THEN {at_end} WHEN {goes_on} THEN {on_the_way} "
                f"ELSE {on_the_way} AND {at_end} END"
            )
            places = places_where(self.table, database, condition, self.columns.reward)
            return next((f"{place.where}: {place.value}" for place in places), "")

    def unbinned_labels(self) -> list[str]:
        """The columns of labels that are the text that is written there."""
        binned = {read_bin_option(rule)[0] for rule in self.reading.bins}
        width = len(present_columns(self.columns.state, self.columns.action))
        state, next_state = self.columns.state[:width], self.columns.next_state[:width]
        following = dict(zip(next_state, state, strict=False))
        labels = (*state, *self.columns.action, *next_state)
        return [name for name in labels if following.get(name, name) not in binned]

    def roles(self, database: Any) -> RoleSql:
        """Returns the roles of the columns as SQL; the log itself gives the bins of quantiles.

        Where a part of it judges what another part has chosen, only the latter does.
        """
        rules = dict(map(read_bin_option, self.reading.bins))
        following = dict(zip(self.columns.state, self.columns.next_state, strict=False))

        def refused_at(condition: str, column: str) -> tuple[str, str]:
            place = first_where(self.table, database, condition, column)
            hint = place.hint or advice(column, place.text, ("drop",))
            return f"{place.where}: found {place.value}", hint

        quantiles = {name: rule for name, rule in rules.items() if isinstance(rule, Quantiles)}
        times, rows, plain = "count(*)", "log", RoleSql.of(self.columns, self.types, {})
        if self.columns.weight is not None:
            times = f"sum(greatest(coalesce({plain.whole(self.columns.weight)}, 1), 1))::BIGINT"
        elif quantiles and self.edges_from is not None:
            numbered = self.table.preparation.changes
            rows = first_rows(database, plain, [*quantiles], self.edges_from, numbered=numbered)
        by_quantile = resolve_binnings(database, quantiles, following, refused_at, times, rows)
        edges = {name: rule for name, rule in rules.items() if isinstance(rule, Binning)}
        binnings = {name: (by_quantile | edges)[name] for name in rules}
        binnings = with_past(binnings, self.columns.state, self.columns.action)
        return RoleSql.of(self.columns, self.types, MappingProxyType(binnings))


def read_log(
    source: object,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    bins: Sequence[str] = (),
    decimal: str = ".",
    thousands: str | None = None,
    delimiter: str | None = None,
    time_format: str | None = None,
    gap: str | None = None,
    one_step: bool = False,
    complete: bool = False,
    clock: bool = False,
    states_from: str | None = None,
    learnt_from: int | None = None,
    history: int | str | None = None,
    missing: Sequence[str] = (),
    derive: Sequence[str] = (),
    reward_table: Sequence[str] = (),
    memory_limit: str | None = None,
) -> LogSource:
    """Finds a log and the meaning of its columns, without reading it.

    `source` is a path, a pattern such as 'logs/*.parquet', a folder, a list of them, or a table in
    memory (pandas, polars, Arrow, a dictionary of lists or arrays; groups are episodes);
    `columns` names the columns of a role where they have other names than usual, `bins` are rules
    such as 'age:quantiles=10' for columns of numbers, `decimal` and `thousands` are the signs in
    numbers that are written as text, `delimiter` stands between columns, and `memory_limit`, such
    as '2GB', bounds the memory. Steps may be time stamps, in ISO 8601 or in a `time_format`; after
    a `gap` such as '30d' another episode begins. `one_step` says that every row is an episode,
    `complete` that the last row of an episode is its end, and `clock` that one which is not is the
    last because recording stops after so many steps, or at a date with steps of equal length.
    `missing` are rules such as
    'lactate=drop', `derive` columns such as 'calls=count(event=call)', and `reward_table` files
    that say what values of columns pay. `states_from` is a rule of states (see
    `surestep.states.learn`), and the first `learnt_from` episodes, which taught it, are left out.
    With a `history` of 3, a state is the last 3 rows of an episode, with the actions between them
    ("auto": see `surestep.states.choose_history`).
    """
    reading = Reading(
        bins=bins,
        decimal=decimal,
        thousands=thousands,
        delimiter=delimiter,
        time_format=time_format,
        gap=gap,
        one_step=one_step,
        complete=complete,
        clock=clock,
        states_from=states_from,
        learnt_from=learnt_from,
        history=history,  # type: ignore[arg-type]
        missing=missing,
        derive=derive,
        reward_table=reward_table,
    )
    return open_log(source, columns, reading, memory_limit)


def open_log(
    source: object,
    columns: Mapping[str, str | Sequence[str]] | None,
    reading: Reading,
    memory_limit: str | None,
) -> LogSource:
    """Finds a log and the meaning of its columns; see `read_log`."""
    groups = ungrouped(source)
    if groups is not None:
        source, episode = groups
        columns = {"episode": episode, **(columns or {})}
    table = find_table(source, reading)
    with connected(table, memory_limit) as database:
        types = described(database)
        row = first_steps(database, types, columns or {})
    unreadable = [str(name) for name in names_of(table.frame) if str(name) not in types]
    lacking = table.lacking()
    beyond = [name for name in (*unreadable, *lacking) if name not in types]
    chosen = columns_in_files(columns or {}, reading)
    with named_in_errors(table):
        mapping = meaning_of(reading, types, beyond, chosen)
    check_readable(table, mapping, unreadable, lacking)
    stamped = steps_are_stamps(reading, types, mapping, row)
    with named_in_errors(table):
        preparation = prepared(reading, mapping, types, stamped)
    if preparation.changes:
        table = replace(table, preparation=preparation)
        with connected(table, memory_limit) as database:
            types = described(database)
    with named_in_errors(table):
        check_bins(reading.bins, mapping, tuple(types))
    rows = 1 if is_to_be_learnt(reading.states_from) else reading.history_length.rows or 1
    if rows > 1:
        with named_in_errors(table):
            history = history_of(mapping, rows, types)
        binned = frozenset(read_bin_option(rule)[0] for rule in reading.bins)
        stage = HistoryColumns(history, mapping, types, binned)
        table = replace(table, preparation=table.preparation.then(stage))
        mapping = with_history(mapping, history)
        with connected(table, memory_limit) as database:
            types = described(database)
    return LogSource(table, mapping, MappingProxyType(types), memory_limit)


def check_readable(
    table: Table, mapping: ColumnMapping, unreadable: Sequence[str], lacking: Mapping[str, Path]
) -> None:
    """Refuses a column that DuckDB has no type for, or that some files lack, where it is needed."""
    for role, columns in mapping.by_role().items():
        for name in columns:
            if name in lacking:
                raise InvalidLog(
                    f"{lacking[name]} has no column {name!r}, which is that of the {role} in other "
                    "files; expected it in all of them"
                )
            if name in unreadable:
                raise InvalidLog(
                    f"{table.name}: column {name!r}, chosen for {role}, is of type "
                    f"{kind_of(table.frame, name)}, which cannot be read; turn it into numbers or "
                    "text"
                )


def described(database: Any) -> dict[str, str]:
    """Returns the type of each column of the log, as DuckDB calls it."""
    rows = database.execute("DESCRIBE SELECT * FROM log").fetchall()
    return {str(row[0]): str(row[1]) for row in rows if str(row[0]) != ROW.strip('"')}


def first_steps(
    database: Any, types: Mapping[str, str], chosen: Mapping[str, str | Sequence[str]]
) -> dict[str, str | None]:
    """Returns what the first row has in the columns of text that may hold its step."""
    named = chosen.get("step", ROLES["step"].aliases)
    wanted = {named} if isinstance(named, str) else {*named}
    columns = [
        name
        for name, kind in types.items()
        if kind == "VARCHAR" and (name in wanted or name.lower() in wanted)
    ]
    if not columns:
        return {}
    row = database.execute(
        f"SELECT {', '.join(map(sql_name, columns))} FROM log LIMIT 1"
    ).fetchone()
    return dict(zip(columns, row or (), strict=False))


def steps_are_stamps(
    reading: Reading, types: Mapping[str, str], mapping: ColumnMapping, row: Mapping[str, Any]
) -> bool:
    """Tells whether the steps are time stamps, by their type, or by the first row."""
    if mapping.step is None or mapping.step not in types:
        return False
    if is_stamp_type(types[mapping.step]) or reading.gap is not None:
        return True
    text = row.get(mapping.step)
    if not isinstance(text, str) or re.fullmatch(r"\s*[0-9]+(\.0*)?\s*", text):
        return False
    return reading.time_format is not None or reads_stamp(text)


@contextmanager
def named_in_errors(table: Table) -> Iterator[None]:
    """Puts the name of the table before what is wrong with its columns."""
    try:
        yield
    except InvalidLog as problem:
        raise InvalidLog(f"{table.name}: {problem}") from None


def check_bins(bins: Sequence[str], mapping: ColumnMapping, columns: Sequence[str]) -> None:
    """Refuses rules for columns that are not there, are no labels, or have a rule already."""
    binned = [read_bin_option(rule)[0] for rule in bins]
    for i, column in enumerate(binned):
        if column not in columns:
            raise InvalidLog(f"there is no column {column!r} to bin; {closest(column, columns)}")
        if column not in (*mapping.state, *mapping.action):
            raise InvalidParameter(
                f"column {column!r} is binned, but is neither of the state nor of the action"
            )
        if column in binned[:i]:
            raise InvalidParameter(f"column {column!r} is binned twice, expected one rule")


def count_rows(table: Table, database: Any, roles: RoleSql) -> int:
    """Makes the table `counted`, or says what is wrong; returns the scale of its sums.

    One pass if the first guess of the rewards' digits is right and rows are right and in order.
    """
    reward = RewardSql.of(roles)
    guess = reward.guess(database)
    if guess is not None and count_in_one_pass(table, database, CountQuery(roles, guess)):
        if database.execute("SELECT count(*) FROM counted").fetchone()[0] == 0:
            raise no_row(table)
        return guess.scale
    units: Units = check_rows(table, database, roles, reward)
    query = CountQuery(roles, units)
    if units != guess and count_in_one_pass(table, database, query):
        return units.scale
    database.execute("SET preserve_insertion_order = false")
    trouble = None
    if roles.codes.episode is not None:
        if count_as_hoped(database, query, query.chained("log", IN_ORDER)):
            return units.scale
        trouble = explain_episodes(Look(table, roles, database))
    raise trouble or InvalidLog(
        f"{table.name} gave other rows when it was read again; expected a log that does not change"
    )


def left_out(table: Table, database: Any) -> dict[str, int]:
    """Counts the rows that are left out before counting, by reason."""
    cut = table.preparation.cut
    if cut is None:
        return {}
    before = replace(table, preparation=table.preparation.until_cut)
    rows = cut.marked(before.scan(database, table.files, numbered=True))
    (gone,) = database.execute(f"SELECT count(*) FROM ({rows}) WHERE {GONE}").fetchone()
    return {f"{CUT_SHORT} ({', '.join(cut.columns)})": int(gone)} if gone else {}


def count_in_one_pass(table: Table, database: Any, query: CountQuery) -> bool:
    """Makes the table `counted` of rows as they lie; False if one of them is not as hoped."""
    if query.roles.codes.episode is None:
        database.execute("SET preserve_insertion_order = false")
        return count_as_hoped(database, query, query.steps("log"))
    hoped = table.preparation.as_rows_lie
    if not hoped.keeps_order:
        return count_as_hoped(database, query, query.chained("log", IN_ORDER))
    database.execute("SET preserve_insertion_order = true")
    lanes, log = lanes_of(table, database), "log"
    if hoped != table.preparation:
        log = f"({replace(table, preparation=hoped).scan(database, table.files)})"
    rows = query.in_lanes(database, lanes) if lanes else query.chained(log, "")
    return count_as_hoped(database, query, rows)


def taught_by(reading: Reading, columns: ColumnMapping) -> Taught | None:
    """Returns what taught the states of a log that is read so; None where nothing did."""
    rule, chosen = rule_of(reading.states_from), bool(reading.history_length.log_likelihood)
    if rule is None and not chosen and not reading.learnt_from:
        return None
    order = "log" if columns.time is None else "time"
    first_by = {order: reading.learnt_from} if reading.learnt_from else {}
    return Taught(first_by, None if rule is None else rule.to_json())


class Shard(NamedTuple):
    """A file that a task counts."""

    file: str
    columns: dict[str, tuple[str, ...]]
    reading: Reading
    memory_limit: str | None


def count_on_ray(
    source: LogSource,
    *,
    address: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LabelledCounts:
    """The counts of a log of files, each counted by a task; every file holds whole episodes.

    Workers must see the files under the same names. `address` is an existing cluster.
    """
    if not source.table.files:
        raise InvalidParameter(f"{source.table.name} is in memory; a cluster counts files only")
    columns = source.columns.by_role()
    if source.reading.learnt_from:
        raise InvalidParameter(
            "the first episodes taught states and are left out, which a file by itself cannot "
            "tell; expected to count such a log on one machine"
        )
    shards = [
        Shard(str(file.absolute()), columns, source.reading, source.memory_limit)
        for file in source.files  # workers need not be in the folder of the command
    ]
    parts = list[LabelledCounts]()
    for _, part in map_as_done(count_shard, shards, engine="ray", address=address):
        parts.append(part)
        if progress is not None:
            progress(len(parts), len(shards))
    counts = merge_counts(parts)
    check_history(source.table, counts)
    return counts


def count_shard(shard: Shard) -> LabelledCounts:
    """The counts of one file."""
    log = open_log(shard.file, shard.columns, shard.reading, shard.memory_limit)
    return log.counts_as_part()


def check_history(table: Table, counts: LabelledCounts) -> None:
    """Refuses states of more rows than any episode of a whole log has."""
    with named_in_errors(table):
        check_long_enough(counts.states, counts.state_columns, counts.action_columns)
