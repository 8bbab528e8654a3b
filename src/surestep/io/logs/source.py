"""Logs as users have them, counted by DuckDB: streamed, spilled to disk, checked row by row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import surestep._arrays as arrays
import surestep.description as keys
import surestep.io.logs.tables as tables
from surestep._arrays import AnyArray, IntArray
from surestep._names import unknown
from surestep._reprs import short_html, short_repr
from surestep.description import Bin, Description, SignalRule, several
from surestep.errors import InvalidLog, InvalidParameter, said
from surestep.io.counts.labelled import LabelledCounts, counts_digest, merge_counts, negated
from surestep.io.labels.binning import Binning, binnings_of, number_sql
from surestep.io.labels.learnt_states import LARGEST, LearntStates
from surestep.io.logs import query as queries
from surestep.io.logs.columns import ROLES, SINGLE, ColumnMapping, closest, naming
from surestep.io.logs.counting import count_rows
from surestep.io.logs.findings import first_where, passed
from surestep.io.logs.formats import FORMATS
from surestep.io.logs.frames import register
from surestep.io.logs.loading import contents_of, counts_of, first_rows, load_steps
from surestep.io.logs.roles import Check, RewardSql, RoleSql, is_stamp_type, reads_stamp
from surestep.io.logs.tables import Table, connected
from surestep.io.sql import ROW, columns_of, limit_memory, sql_name
from surestep.model import DecisionLog, Pairs
from surestep.parallel import map_as_done

MEASUREMENT = f"a number of at most {LARGEST:g}, since states are learnt from the column"
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
    learnt: Mapping[str, LearntStates] = field(default_factory=dict)  # by their column
    cost: bool = False  # the column of rewards has costs: they are earned with a minus

    __repr__ = short_repr("table.name", *(f"columns.{role}" for role in SHOWN))
    _repr_html_ = short_html("table.name", *(f"columns.{role}" for role in ROLES))

    @property
    def description(self) -> Description:
        """Returns what somebody said of the log, and of what is to be done with it."""
        return self.table.description

    @property
    def columns_in_files(self) -> dict[str, tuple[str, ...]]:
        """Returns the columns of each role that has some, without those that reading adds."""
        added = self.table.preparation.added
        return {
            role: names for role, names in self.columns.by_role().items() if names[0] not in added
        }

    def sampled(self, share: float, binnings: Mapping[str, Binning]) -> LogSource:
        """Returns a share of the episodes, drawn by a hash of their names, with the same bins."""
        name = f"CAST({sql_name(str(self.columns.episode))} AS VARCHAR)"
        kept = f"md5_number_lower({name}) < {int(share * 2**64)}::UBIGINT"
        bins = {name: binning.to_json() for name, binning in binnings.items()}
        description = keys.described({**self.description.given(), "bins": bins})
        return replace(self, table=replace(self.table, description=description, kept=kept))

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read; none for a table in memory."""
        return (self.table.raw or self.table).files

    @property
    def tables(self) -> tuple[str, ...]:
        """The files of further tables of a query."""
        return tuple(self.description.tables.values())

    @property
    def query_facts(self) -> dict[str, Any] | None:
        """Returns what a result keeps of a query: its digest, types of the log, and its keys."""
        if (made := self.table.made) is None:
            return None
        order = [made.keys.episode, made.keys.step]
        return {"digest": made.digest, "types": made.types, "keys": order}

    @property
    def plain(self) -> RoleSql:
        """Returns the roles of the columns as SQL, none of them binned."""
        return RoleSql.of(self.columns, self.types, {})

    @property
    def to_learn(self) -> dict[str, Bin]:
        """Returns the rules of states that are still to be learnt, by their column."""
        names = tables.learnt_names(self.description)
        return {name: self.description.bins[name] for name in names if name not in self.learnt}

    def measured(self, columns: Sequence[str]) -> dict[str, AnyArray]:
        """Returns measurements, episodes and rewards of the rows that teach, in their order.

        They are those of the part that chooses a policy, where the log is split, and else all.
        """
        with connected(self.table, self.memory_limit) as database:
            roles = self.plain
            read = {name: number_sql(name, self.types[name]) for name in columns}
            wrong = {name: f"abs({read[name]}) <= {LARGEST} IS NOT TRUE" for name in columns}
            passed(self.table, database, [Check(wrong[x], x, MEASUREMENT) for x in columns])
            assert roles.episode is not None
            episode, reward = roles.episode.sql, RewardSql.of(roles).double
            wanted = [*read, self.columns.reward, str(self.columns.episode), str(self.columns.step)]
            rows = self.rows_that_teach(database, wanted)
            listed = ", ".join(f"{number} AS {sql_name(name)}" for name, number in read.items())
            taught = database.execute(
                f"SELECT {listed}, dense_rank() OVER (ORDER BY {episode}) AS "
                f'"surestep episode", {reward} AS "surestep reward" FROM {rows} '
                f"ORDER BY {episode}, {roles.step}"
            )
            return dict(taught.fetchnumpy())

    def rows_that_teach(self, database: Any, columns: Sequence[str]) -> str:
        """Returns a table of some columns of the part that chooses a policy; else the log."""
        if self.edges_from is None or not columns:
            return "log"
        return first_rows(database, self.plain, columns, self.edges_from)

    def with_states(self, states: LearntStates) -> LogSource:
        """Returns the log with a column of states that were learnt."""
        name, done = states.name, self.table.preparation
        unknown, known = tables.learnt_select(name), tables.learnt_select(name, states.sql())
        selects = tuple(select.replace(unknown, known) for select in done.selects)
        table = replace(self.table, preparation=replace(done, selects=selects))
        return replace(self, table=table, learnt={**self.learnt, name: states})

    def of_signal(self, rule: SignalRule) -> LogSource:
        """Returns the log with the column of a signal as its rewards."""
        if rule.column not in self.types:
            raise unknown(f"there is no column {rule.column!r}", rule.column, self.types)
        return replace(self, columns=replace(self.columns, reward=rule.column), cost=rule.cost)

    def counts(self) -> LabelledCounts:
        """#_D(s,a,s') with exact sums of rewards, starts and ends, in bounded memory."""
        self.check_ends_said()
        if self.to_learn:
            raise InvalidParameter(
                f"the states {next(iter(self.to_learn))!r} are to be learnt, by the part of the "
                "log that chooses a policy; expected `surestep improve`"
            )
        if (made := self.table.made) is not None:
            queries.check_no_look_ahead(made.workshop, made.query, made.keys)
        with connected(self.table, self.memory_limit) as database:
            sources = (self.table.raw or self.table).sources(database)
            roles = self.roles(database)
            scale = count_rows(self.table, database, roles)
            if self.memory_limit is not None:
                limit_memory(database, self.memory_limit, share=0.5)  # arrays have the rest
            counts = counts_of(database, roles, scale)
        if made is not None:
            lost = queries.left_out_rewards(made, self.columns.reward)
            counts = replace(counts, dropped_rewards={**counts.dropped_rewards, **lost})
        counts = negated(counts) if self.cost else counts
        apart = self.description.unsafe.states is not None
        return replace(counts, sources=sources or (counts_digest(counts),), ends_apart=apart)

    def counts_of_all(self) -> LabelledCounts:
        """Returns the counts, with those of all further signals beside them."""
        self.check_one_decision(self.description.stakes.discount)
        further = [*self.description.signals.items()][1:]
        signals = {name: self.of_signal(rule).counts() for name, rule in further}
        return replace(self.counts(), signals=signals)

    def edges(self) -> tuple[str, ...]:
        """Returns the first row of the log, and the one after its last, as digests.

        By them `merge_counts` notices an episode that is cut between two files.
        """
        roles = self.plain
        if roles.episode is None or len(self.files) != 1:
            return ()
        with connected(self.table, self.memory_limit) as database:
            episode, step = f"CAST({roles.episode.sql} AS VARCHAR)", roles.step
            parts = [f"{end}({x}, {ROW})" for end in ("min_by", "max_by") for x in (episode, step)]
            ends = database.execute(f"SELECT {', '.join(parts)} FROM log").fetchone()
        steps = (0, 0) if self.table.preparation.numbers_stamps else (ends[1], ends[3] + 1)
        named = zip(ends[::2], steps, strict=True)
        return tuple(sha256(f"{name}|{step}".encode()).hexdigest() for name, step in named)

    @property
    def says_ends(self) -> bool:
        """Tells whether anybody says how episodes end."""
        columns = self.columns
        return bool(columns.terminated or columns.truncated or columns.next_state)

    def check_ends_said(self) -> None:
        """Refuses a log of which nobody says how episodes end: all bad ends may be missing."""
        if not self.says_ends:
            raise InvalidLog(
                f"{self.table.name}: nobody says how episodes end, so that the worst ends may be "
                "missing; expected a column of ends, of stops by a clock, or of next states "
                f"({naming('terminated', 'truncated', 'next_state')}), or a word for all: "
                f"{tables.ends_said('complete')} (every last row is an end), or "
                f"{tables.ends_said('clock')} (recording stops after so many steps, or at a date)"
            )

    def check_one_decision(self, discount: float | None) -> None:
        """Refuses rows that became episodes by default, unless nothing comes after a decision."""
        if self.columns.episode == SINGLE["episode"] and discount != 0:
            raise InvalidLog(
                f"{self.table.name}: no column says which rows follow each other; name them with "
                f"{naming('episode', 'step')}, or next states with {naming('next_state')}; if "
                f"every row is a case by itself, set {said('discount=0', 'stakes.discount = 0')}"
            )

    def load(
        self,
        pairs: Pairs | None = None,
        counts: LabelledCounts | None = None,
        *,
        propensities: bool = False,
        stopped: bool = False,
    ) -> DecisionLog:
        """Returns every step, in memory, for methods that look at whole episodes.

        `pairs` has labels, among which those of the log are found; by default those of `counts`.
        `counts` are those of this very log, where they were made already: they have checked every
        row, so that the log is read only once more. With `propensities` the log has those of its
        rows; expected is a column of them. With `stopped` it has also last rows at which a clock
        stopped the recording, and of which nobody knows where they led.
        """
        if propensities and self.columns.propensity is None:
            raise InvalidParameter(
                "propensities are asked for, but no column of the log says with which probability "
                f"its actions were taken; name it with {naming('propensity')}"
            )
        counted = self.counts() if counts is None else counts
        with connected(self.table, self.memory_limit) as database:
            roles = RoleSql.of(self.columns, self.types, counted.binnings)
            log = load_steps(database, roles, counted, pairs, propensities, stopped)
        return arrays.altered(log, reward=0.0 - log.reward) if self.cost else log

    def contents(self) -> IntArray:
        """Returns digests of the episodes, in the order of `load`; see `contents_of`."""
        names = [name for name in self.types if name != self.columns.episode]
        with connected(self.table, self.memory_limit) as database:
            return contents_of(database, self.plain, names)

    def first_beyond(
        self, running: tuple[float, float], ending: tuple[float, float], *, counted: bool
    ) -> str:
        """Finds the first row with a reward beyond what such steps may earn: file, row, column.

        Rows that are not `counted` too may go on or end, unless a clock cut them. Empty where there
        is none, or a row does not say by itself whether its episode ended.
        """
        if self.description.ends == "complete":
            return ""
        with connected(self.table, self.memory_limit) as database:
            roles = self.roles(database)
            reward = f"{'-' * self.cost}({RewardSql.of(roles).double})"
            over, stopped = (
                f"coalesce({roles.flag(flag)}, false)"
                for flag in (self.columns.terminated, self.columns.truncated)
            )
            on_the_way, at_end = (
                f"NOT ({reward} BETWEEN {low!r}::DOUBLE AND {high!r}::DOUBLE)"
                for low, high in (map(float, running), map(float, ending))
            )
            goes_on = "true" if counted or self.description.ends == "clock" else stopped
            condition = (
                f"CASE WHEN {over} THEN {at_end} WHEN {goes_on} THEN {on_the_way} "
                f"ELSE {on_the_way} AND {at_end} END"
            )
            place, text = first_where(self.table, database, condition, self.columns.reward)
            return place and f"{place}: {text!r}"

    def roles(self, database: Any) -> RoleSql:
        """Returns the roles of the columns as SQL; the log itself gives the bins of quantiles.

        Where a part of it judges what another part has chosen, only the latter does.
        """
        bins = self.description.bins
        by_quantile = [name for name, rule in bins.items() if rule.quantiles is not None]
        rows = self.rows_that_teach(database, by_quantile)
        binnings = binnings_of(database, bins, self.types, rows)
        return RoleSql.of(self.columns, self.types, MappingProxyType(binnings))


def read_log(
    source: object,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    bins: Mapping[str, Mapping[str, Any]] | None = None,
    ends: Literal["complete", "clock"] | None = None,
    reader: Mapping[str, Any] | None = None,
    query: str | None = None,
    tables: Mapping[str, str] | None = None,
    case: str | None = None,
    memory_limit: str | None = None,
) -> LogSource:
    """Finds a log and the meaning of its columns; without a query, nothing is read.

    `source` is a description (a path that ends in .toml), a path, a pattern such as
    'logs/*.parquet', a folder, a list of them, or a table in memory (pandas, polars, Arrow, a
    dictionary of lists or arrays). What is given here stands above what a
    description says: `columns` names the columns of a role where they have other names than usual,
    `bins` are rules such as {"age": {"quantiles": 10}} for columns of numbers, `reader` has options
    of DuckDB's reader of text files, such as {"delim": ";"}, and `memory_limit`, such as '2GB',
    bounds the memory. Steps may be time stamps, in ISO 8601 or in the reader's `timestampformat`.
    `ends` says of all episodes how their last rows end: "complete", it ends the episode, or
    "clock", one that does not is the last because recording stops after so many steps, or at a date
    with steps of equal length. A log that has columns neither of episodes, steps and ends nor of
    next states has one decision a row, and every row is an episode.

    A `query` is SQL that prepares the rows of the table `log`, with further `tables` by name;
    `case` is the column of the log that says whose rows belong together. A decision may depend on
    the rows of a case so far only: a query that looks ahead is refused when the log is counted.
    """
    how = {"columns": columns, "bins": bins, "ends": ends, "reader": reader}
    return open_log(
        *keys.given_as(source, **how, query=query, tables=tables, case=case), memory_limit
    )


def open_log(
    description: Description, frame: object = None, memory_limit: str | None = None
) -> LogSource:
    """Finds a log and the meaning of its columns; see `read_log`."""
    if isinstance(frame, LogSource):
        return replace(frame, table=replace(frame.table, description=description))
    table = tables.find_table(description, frame)
    if description.query is not None:
        table = table_of_query(table, description.query, memory_limit)
    with connected(table, memory_limit) as database, tables.named_in_errors(table):
        types = tables.types_of(database)
        mapping = tables.meaning_of(description, types)
        stamped = steps_are_stamps(database, description, types, mapping)
        preparation = tables.prepared(description, mapping, types, stamped)
        check_bins(description.bins, mapping, [*types, *preparation.added])
        table = replace(table, preparation=preparation)
        types = tables.types_of(database, table.scan(database))
    first = next(iter(description.signals.values()), None)
    cost = first is not None and first.cost
    return LogSource(table, mapping, MappingProxyType(types), memory_limit, cost=cost)


def table_of_query(raw: Table, sql: str, memory_limit: str | None) -> Table:
    """Returns the table of the rows that a query makes."""
    description = raw.description
    if queries.LOG in description.tables:
        raise InvalidParameter("tables has 'log', the name of the log itself; name it otherwise")
    workshop = queries.Workshop()
    with workshop.loading(memory_limit) as database:
        if raw.frame is not None:
            register(database, raw.frame)
        types = load_raw(database, queries.LOG, raw)
        load_further(database, description)
    query = queries.Query(sql, memory_limit=memory_limit)
    kinds = queries.run(workshop, query)
    with tables.named_in_errors(raw):
        mapping = tables.meaning_of(description, kinds)
    single = mapping.episode is None or mapping.episode == SINGLE["episode"]
    case = description.case or (mapping.episode if mapping.episode in types else None)
    if not single and case not in types:
        raise InvalidLog(
            "nobody says which rows of the files belong together before the query; expected the "
            f"key `case`, a column of the files: {', '.join(map(repr, types))}"
        )
    order = next((name for name in (mapping.step, mapping.time) if name in types), None)
    query = replace(query, case=None if single else case, order=order)
    decided = list[str]()
    for name in (*mapping.state, *mapping.action):
        rule = description.bins.get(name)
        decided += several(None if rule is None else rule.columns) or (name,)
    told_by = (None, None) if single else (mapping.episode, mapping.step)
    signals = [rule.column for rule in description.signals.values()]
    ends = (mapping.terminated, mapping.truncated, *mapping.next_state)
    after = tuple(name for name in (mapping.reward, *signals, *ends) if name in kinds)
    before = several(description.columns.known_before)
    keys = queries.Keys(*told_by, tuple(decided), after, before)
    rows, digest = queries.finish(workshop, query, keys)
    made = queries.Made(workshop, query, keys, digest, types, queries.ROW in kinds)
    name, parquet = f"the query of {raw.name}", FORMATS["parquet"]
    return Table(name, (rows,), parquet, description=description, raw=raw, made=made)


def load_further(database: Any, description: Description) -> None:
    """Loads the further tables of a query."""
    for name, file in description.tables.items():
        described = Description(files=file, reader=description.reader)
        load_raw(database, name, tables.find_table(described))


def load_raw(database: Any, name: str, raw: Table) -> dict[str, str]:
    """Loads a table for a query, the log with the places of its rows; returns its types."""
    rows = raw.typed(database)
    with tables.explaining(raw):
        kinds = columns_of(database, rows)
        numbers = [sql_name(column) for column, kind in kinds.items() if kind == "DOUBLE"]
        missing = [f"nullif({x}, 'nan'::DOUBLE) AS {x}" for x in numbers]  # as in `act`
        values = queries.replacing(missing)
        if name == queries.LOG:
            for own in (column for column in kinds if column.lower() == queries.ROW):
                raise InvalidLog(
                    f"{raw.name} has a column {own!r}, which for a query is the place of a row in "
                    "the files; expected another name for it"
                )
            values += f", row_number() OVER () AS {sql_name(queries.ROW)}"
        database.execute(f"CREATE TABLE {sql_name(name)} AS SELECT {values} FROM ({rows})")
    return columns_of(database, sql_name(name))


def steps_are_stamps(
    database: Any, description: Description, types: Mapping[str, str], mapping: ColumnMapping
) -> bool:
    """Tells whether the steps are time stamps, by their type, or by the first row."""
    kind = types.get(str(mapping.step), "")
    if kind != "VARCHAR":
        return is_stamp_type(kind)
    first = f"SELECT {sql_name(str(mapping.step))} FROM log LIMIT 1"
    text = next((row[0] for row in database.execute(first).fetchall()), None)
    if text is None or re.fullmatch(r"\s*[0-9]+(\.0*)?\s*", text):
        return False
    return description.reader.timestampformat is not None or reads_stamp(text)


def check_bins(bins: Mapping[str, Bin], mapping: ColumnMapping, columns: Sequence[str]) -> None:
    """Refuses rules for columns that are no labels, and states that are learnt of rewards."""
    for column, rule in bins.items():
        if mapping.reward in several(rule.columns):
            raise InvalidLog(
                f"{column!r} is learnt from column {mapping.reward!r}, the reward, which nobody "
                "knows when deciding; expected other columns"
            )
        if column not in (*mapping.state, *mapping.action):
            raise InvalidLog(
                f"column {column!r} is binned, but is neither of the state nor of the action; "
                f"{closest(column, columns)}"
            )


def count_on_ray(
    source: LogSource,
    *,
    address: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LabelledCounts:
    """The counts of a log of files, each counted by a task; every file holds whole episodes.

    Workers must see the files under the same names. `address` is an existing cluster.
    """
    if not source.files:
        raise InvalidParameter(f"{source.table.name} is in memory; a cluster counts files only")
    said = {**source.description.given(), "columns": source.columns_in_files}
    shards = [
        (keys.described({**said, "files": [str(file.absolute())]}), None, source.memory_limit)
        for file in source.files  # workers need not be in the folder of the command
    ]
    parts = list[LabelledCounts]()
    for _, part in map_as_done(count_shard, shards, engine="ray", address=address):
        parts.append(part)
        if progress is not None:
            progress(len(parts), len(shards))
    return merge_counts(parts)


def count_shard(shard: tuple[Description, None, str | None]) -> LabelledCounts:
    """The counts of one file."""
    return open_log(*shard).counts_of_all()
