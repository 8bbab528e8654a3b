"""Finds, counts and loads a log of decisions: `read_log` and the `LogSource` it returns.

DuckDB reads the rows, so that a log may be larger than memory; every row is checked.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

import numpy as np

import surestep._arrays as arrays
import surestep.io.logs.tables as tables
from surestep._names import refuse_unknown
from surestep._reprs import short_html, short_repr
from surestep.description import Bin, Description, SignalRule, described, given_as, several
from surestep.errors import InvalidLog, InvalidParameter, named_in_errors, said
from surestep.io.counts.labelled import LabelledCounts, counts_digest, counts_of_costs, merge_counts
from surestep.io.labels.binning import Binning, binnings_of, number_sql
from surestep.io.labels.learnt_states import LARGEST, LearntStates
from surestep.io.logs import query as queries
from surestep.io.logs.columns import ROLES, SINGLE, ColumnMapping, closest, naming
from surestep.io.logs.counting import count_rows
from surestep.io.logs.findings import first_row_where, passed
from surestep.io.logs.formats import FORMATS
from surestep.io.logs.frames import register_frame
from surestep.io.logs.loading import (
    RANDOM,
    STOPPED,
    UNEXPLAINED,
    counts_of,
    first_rows,
    in_episodes,
    log_of_steps,
    numbered_steps,
    texts_by_column,
)
from surestep.io.logs.roles import ISO, RewardSql, RoleSql, RowCheck, as_varchar, is_stamp_type
from surestep.io.sql import ROW, columns_of, limit_memory, named, replacing, sql_name
from surestep.model import DecisionLog, Pairs
from surestep.parallel import map_as_done

MISSING = "(missing)"  # stands for a missing value in the first row of an episode
MOSTLY = 0.9  # share of the distinct rows: with more distinct values, a column tells episodes apart
MEASUREMENT = f"a number of at most {LARGEST:g}, since states are learnt from the column"
OUR_NAMES = r"[\x00-\x1f]|^(?i:surestep )"  # names that columns of a log may not have
SHOWN = ("episode", "state", "action", "reward")  # roles whose columns a line about the log shows


@dataclass(frozen=True, slots=True)
class LogSource:
    """A log whose files and columns are known, and whose rows are read on demand.

    Made by `read_log`.

    Parameters
    ----------
    table : Table
        The files or the table in memory, and how they are read.
    columns : ColumnMapping
        The columns of each role (state, action, reward, …).
    types : dict of str to str
        The type of each column, as DuckDB calls it.
    memory_limit : str, optional
        The most memory to use, such as "2GB".
    edges_from : callable, optional
        Maps the number of episodes to the share of them whose quantiles become edges of bins; by
        default all of the log.
    learnt : dict of str to LearntStates
        States learnt from measurements, by their column.
    cost : bool, default False
        Whether the column of rewards has costs, which are earned with a minus.

    Examples
    --------
    >>> log = surestep.read_log({"state": ["a", "b"], "action": ["x", "x"], "reward": [1, 0]})
    >>> log.columns.state, log.counts().rows_read
    (('state',), 2)
    """

    table: tables.Table
    columns: ColumnMapping
    types: Mapping[str, str]
    memory_limit: str | None = None
    edges_from: Callable[[int], float] | None = None
    learnt: Mapping[str, LearntStates] = field(default_factory=dict)
    cost: bool = False

    __repr__ = short_repr("table.name", *(f"columns.{role}" for role in SHOWN))
    _repr_html_ = short_html("table.name", *(f"columns.{role}" for role in ROLES))

    @property
    def description(self) -> Description:
        """Returns the description of the log, as given by its user."""
        return self.table.description

    @property
    def columns_in_files(self) -> dict[str, tuple[str, ...]]:
        """Returns the columns of each role that the files have; reading may add others."""
        added = self.table.preparation.added
        plain = replace(self.columns, state=self.columns.present)
        return {role: names for role, names in plain.by_role().items() if names[0] not in added}

    def sampled(self, share: float, binnings: Mapping[str, Binning]) -> Self:
        """Returns a share of the episodes, drawn by a hash of their names, with the same bins.

        Parameters
        ----------
        share : float
            The share of the episodes, from 0 to 1.
        binnings : dict of str to Binning
            The bins to use, by column.

        Returns
        -------
        LogSource
            The log of these episodes.
        """
        name = sql_name(str(self.columns.episode))
        # Computed once for an episode: a condition on `name` itself would be computed for each row.
        text = f"CAST(any_value({name}) AS VARCHAR)"
        kept = (name, f"md5_number_lower({text}) < {int(share * 2**64)}::UBIGINT")
        bins = {name: binning.to_json() for name, binning in binnings.items()}
        description = described({**self.description.given(), "bins": bins})
        return replace(self, table=replace(self.table, description=description, kept=kept))

    @property
    def files(self) -> tuple[Path, ...]:
        """Returns the files that are read; none for a table in memory."""
        return (self.table.raw or self.table).files

    @property
    def query_facts(self) -> dict[str, Any] | None:
        """Returns the digest, types and keys of a query, for the record; None without a query."""
        made = self.table.made
        if made is None:
            return None
        order = [made.keys.episode, made.keys.step]
        return {"digest": made.digest, "types": made.types, "keys": order}

    @property
    def plain(self) -> RoleSql:
        """Returns the SQL of the roles, without bins."""
        return RoleSql.of(self.columns, self.types, {})

    @property
    def to_learn(self) -> dict[str, Bin]:
        """Returns the rules of states that were not learnt yet, by their column."""
        names = tables.learnt_names(self.description)
        return {name: self.description.bins[name] for name in names if name not in self.learnt}

    def measured(self, columns: Sequence[str]) -> dict[str, arrays.AnyArray]:
        """Returns measurements, episodes and rewards of the rows that states are learnt from.

        Parameters
        ----------
        columns : sequence of str
            The columns of measurements.

        Returns
        -------
        dict of str to array [N]
            The measurements by column, "surestep episode" and "surestep reward"; of the part of
            the log that chooses a policy, where the log is split, and else of all rows.
        """
        with tables.connected(self.table, self.memory_limit) as database:
            roles = self.plain
            read = {name: number_sql(name, self.types[name]) for name in columns}
            wrong = {name: f"abs({read[name]}) <= {LARGEST} IS NOT TRUE" for name in columns}
            passed(self.table, database, [RowCheck(wrong[x], x, MEASUREMENT) for x in columns])
            assert roles.episode is not None
            episode = roles.episode.sql
            reward = RewardSql.of(roles).double
            needed = [*read, self.columns.reward, self.columns.episode, self.columns.step]
            rows = first_rows(database, self.plain, [*map(str, needed)], self.edges_from)
            listed = ", ".join(f"{number} AS {sql_name(name)}" for name, number in read.items())
            taught = database.execute(
                f"SELECT {listed}, dense_rank() OVER (ORDER BY {episode}) AS "
                f'"surestep episode", {reward} AS "surestep reward" FROM {rows} '
                f"ORDER BY {episode}, {roles.step}"
            )
            return dict(taught.fetchnumpy())

    def with_states(self, states: LearntStates) -> Self:
        """Returns the log with a column of states that were learnt.

        Parameters
        ----------
        states : LearntStates
            The states, and the name of their column.

        Returns
        -------
        LogSource
            The log with this column.
        """
        name = states.name
        before = tables.learnt_select(name)
        after = tables.learnt_select(name, states.sql())
        old = self.table.preparation
        selects, in_order = (
            tuple(select.replace(before, after) for select in each)
            for each in (old.selects, old.in_order)
        )
        preparation = replace(old, selects=selects, in_order=in_order)
        table = replace(self.table, preparation=preparation)
        return replace(self, table=table, learnt={**self.learnt, name: states})

    def of_signal(self, rule: SignalRule) -> Self:
        """Returns the log with the column of a signal as its rewards.

        Parameters
        ----------
        rule : SignalRule
            The column, and whether it has costs.

        Returns
        -------
        LogSource
            The log of this signal.
        """
        refuse_unknown(f"there is no column {rule.column!r}", rule.column, self.types)
        return replace(self, columns=replace(self.columns, reward=rule.column), cost=rule.cost)

    def counts(self) -> LabelledCounts:
        """Counts the transitions #_D(s,a,s') with exact sums of rewards, starts and ends.

        Returns
        -------
        LabelledCounts
            The counts with the labels of the log.

        Raises
        ------
        InvalidLog
            A row cannot be used; the message names file, row and column.
        """
        self.check_says_ends()
        if self.to_learn:
            raise InvalidParameter(
                f"the states {next(iter(self.to_learn))!r} are to be learnt, by the part of the "
                "log that chooses a policy; expected `surestep improve`"
            )
        made = self.table.made
        if made is not None:
            queries.check_no_look_ahead(made.workshop, made.query, made.keys)
        why_stopped = self.why_stopped
        with tables.connected(self.table, self.memory_limit) as database:
            sources = (self.table.raw or self.table).sources(database)
            roles = self.roles(database)
            scale = count_rows(self.table, database, roles)
            if self.memory_limit is not None:
                limit_memory(database, self.memory_limit, share=0.5)  # the rest is for the arrays
            counts = counts_of(database, roles, scale, why_stopped)
        if made is not None:
            lost = queries.left_out_rewards(made, self.columns.reward)
            counts = replace(counts, dropped_rewards={**counts.dropped_rewards, **lost})
        counts = counts_of_costs(counts) if self.cost else counts
        return replace(
            counts,
            sources=sources or (counts_digest(counts),),
            ends_apart=self.description.unsafe.states is not None,
        )

    def counts_of_all(self) -> LabelledCounts:
        """Counts the log, and each further signal of its description.

        Returns
        -------
        LabelledCounts
            The counts; `signals` has those of the further signals.
        """
        self.check_one_decision(self.description.stakes.discount)
        further = [*self.description.signals.items()][1:]
        return replace(
            self.counts(), signals={name: self.of_signal(rule).counts() for name, rule in further}
        )

    def edges(self) -> tuple[str, ...]:
        """Returns digests of the first row and of the row that would follow the last.

        With these, `merge_counts` notices an episode that is cut between two files.

        Returns
        -------
        tuple of str
            Two digests; none for loose transitions or several files.
        """
        roles = self.plain
        if roles.episode is None or len(self.files) != 1:
            return ()
        with tables.connected(self.table, self.memory_limit) as database:
            place = (f"CAST({roles.episode.sql} AS VARCHAR)", roles.step)
            parts = [f"{end}({x}, {ROW})" for end in ("min_by", "max_by") for x in place]
            ends = database.execute(f"SELECT {', '.join(parts)} FROM log").fetchone()
        steps = (0, 0) if self.table.preparation.numbers_stamps else (ends[1], ends[3] + 1)
        places = zip(ends[::2], steps, strict=True)
        return tuple(sha256(f"{name}|{step}".encode()).hexdigest() for name, step in places)

    @property
    def says_ends(self) -> bool:
        """Tells whether the log or its description says how episodes end."""
        return bool(self.columns.terminated or self.columns.truncated or self.columns.next_state)

    @property
    def why_stopped(self) -> str:
        """Returns the reason for which last rows are left out that a clock is said to stop."""
        if self.description.ends == "random":
            return RANDOM
        if self.description.ends == "clock" and tables.has_unexplained(
            self.table, self.columns, self.memory_limit
        ):
            return UNEXPLAINED
        return STOPPED

    def check_says_ends(self) -> None:
        """Refuses a log if neither it nor its description says how episodes end.

        Raises
        ------
        InvalidLog
            Nobody says it.
        """
        if not self.says_ends:
            raise InvalidLog(
                f"{self.table.name}: nobody says how episodes end, so that the worst ends may be "
                "missing; expected a column of ends, of stops by a clock, or of next states "
                f"({naming('terminated', 'truncated', 'next_state')}), or a word for all: "
                f"{tables.ends_said('complete')} (every last row is an end), "
                f"{tables.ends_said('clock')} (recording stops after so many steps, or at a date), "
                f"or {tables.ends_said('random')} (it is known to stop at random)"
            )

    def check_one_decision(self, discount: float | None) -> None:
        """Refuses rows that became episodes by default, unless the discount is 0.

        Parameters
        ----------
        discount : float or None
            The discount; None if it was not given.

        Raises
        ------
        InvalidLog
            No column tells which rows follow each other, and the discount is not 0.
        """
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
        numbered: bool = False,
    ) -> DecisionLog:
        """Loads every step into memory, for methods that look at whole episodes.

        Parameters
        ----------
        pairs : Pairs, optional
            Pairs with labels, among which those of the log are found; by default those of the
            counts.
        counts : LabelledCounts, optional
            The counts of this log, if they are known; otherwise the log is counted first.
        propensities : bool, default False
            Keep the logged probability of each action; the log needs a column of them.
        stopped : bool, default False
            Keep last rows at which a clock stopped the recording, without a next state.
        numbered : bool, default False
            Number the episodes by the places of their first rows, as `first_values` does.

        Returns
        -------
        DecisionLog
            The episodes, in the order in which they began.

        Raises
        ------
        InvalidLog
            A row cannot be used, or the log has no episodes.
        """
        if propensities and self.columns.propensity is None:
            raise InvalidParameter(
                "propensities are asked for, but no column of the log says with which probability "
                f"its actions were taken; name it with {naming('propensity')}"
            )
        counted = self.counts() if counts is None else counts
        with tables.connected(self.table, self.memory_limit) as database:
            roles = RoleSql.of(self.columns, self.types, counted.binnings)
            if roles.episode is None:
                raise InvalidLog(
                    "the log is loose transitions, which are no episodes; expected columns of "
                    "episodes and steps, or a method that needs only counts"
                )
            rows, labels = numbered_steps(database, roles, stopped)
        if labels != (counted.states, counted.actions):
            raise InvalidLog("the log has other labels than when it was counted; count it again")
        known = counted.to_counts().pairs if pairs is None else pairs
        steps = log_of_steps(rows, counted, known, propensities=propensities, numbered=numbered)
        return arrays.altered(steps, reward=0.0 - steps.reward) if self.cost else steps

    def by_column(
        self,
    ) -> tuple[DecisionLog, list[tuple[list[str | None], list[str | None]]], Mapping[str, Binning]]:
        """Loads every step with the labels of each column of the state by itself.

        Returns
        -------
        tuple of DecisionLog, list and dict of str to Binning
            The episodes, whose states are those of the first column alone; for each column the
            labels before and after each step, None where nobody saw them; and the bins.
        """
        columns = self.columns
        first = replace(columns, state=columns.state[:1], next_state=columns.next_state[:1])
        known = columns.propensity is not None
        log = replace(self, columns=first).load(numbered=True, propensities=known)
        with tables.connected(self.table, self.memory_limit) as database:
            roles = self.roles(database)
            return log, texts_by_column(database, roles, log), roles.binnings

    def first_values(
        self, columns: Sequence[str], *, last: bool = False
    ) -> tuple[arrays.IntArray, dict[str, arrays.AnyArray], dict[str, arrays.BoolArray]]:
        """Reads columns in the first row of each episode.

        Parameters
        ----------
        columns : sequence of str
            The columns.
        last : bool, default False
            Read them in the last row instead.

        Returns
        -------
        tuple of array of int [E], dict of str to array [E], and dict of str to array of bool [E]
            The places of first rows, the texts of each column, and in which episodes it changes.
        """
        texts = [
            f"coalesce(nullif({as_varchar(name, self.types[name])}, 'nan'), '{MISSING}') AS v{i}"
            for i, name in enumerate(columns)
        ]
        end = "arg_max" if last else "arg_min"
        firsts = [f"{end}(v{i}, step) AS v{i}" for i in range(len(columns))]
        changes = [f"count(DISTINCT v{i}) > 1 AS c{i}" for i in range(len(columns))]
        with tables.connected(self.table, self.memory_limit) as database:
            answer = database.execute(
                f"SELECT {', '.join([*firsts, *changes])}, arg_min(place, step) AS begun "
                f"FROM ({in_episodes(self.plain, texts)}) GROUP BY episode ORDER BY begun"
            ).fetchnumpy()
        values = {name: np.asarray(answer[f"v{i}"]) for i, name in enumerate(columns)}
        changing = {name: np.asarray(answer[f"c{i}"], np.bool_) for i, name in enumerate(columns)}
        return np.asarray(answer["begun"]), values, changing

    def begun_at(self) -> arrays.FloatArray | None:
        """Reads when each episode began, in the order of `first_values`.

        Returns
        -------
        array of float [E] or None
            Seconds since 1970 (UTC); None where no column has times.
        """
        if self.columns.time is None:
            return None
        rows = in_episodes(self.plain, [f"{self.plain.time} AS moment"])
        with tables.connected(self.table, self.memory_limit) as database:
            begun = database.execute(
                f"SELECT epoch(arg_min(moment, step)) AS seconds FROM ({rows}) "
                "GROUP BY episode ORDER BY arg_min(place, step)"
            ).fetchnumpy()
        return np.asarray(begun["seconds"], np.float64)

    def tied(self) -> int:
        """Returns how many rows were decided at the same time as a row of another episode.

        Returns
        -------
        int
            The rows; 0 where no column says when they were decided.
        """
        if not self.columns.time:
            return 0
        episode = ROW if self.plain.episode is None else self.plain.episode.sql
        with tables.connected(self.table, self.memory_limit) as database:
            (rows,) = database.execute(
                "SELECT coalesce(sum(rows), 0)::BIGINT FROM (SELECT count(*) AS rows FROM log "
                f"GROUP BY {self.plain.time} HAVING min({episode}) <> max({episode}))"
            ).fetchone()
        return int(rows)

    def beside_counts(self) -> str | None:
        """Returns a digest of what counts leave out: which row has which time and further signals.

        Returns
        -------
        str or None
            The digest, which does not depend on the order of rows; None where there are neither.
            Steps that are time stamps count by their numbers.
        """
        roles = self.plain
        further = [rule.column for rule in self.description.signals.values()][1:]
        told = [number_sql(column, self.types[column]) for column in further]
        if self.columns.time not in (None, self.columns.step):
            told.append(f"epoch({roles.time})")
        if roles.episode is None or not told:
            return None
        texts = [
            f"coalesce(CAST({x} AS VARCHAR), '')" for x in (roles.episode.sql, roles.step, *told)
        ]
        with tables.connected(self.table, self.memory_limit) as database:
            (digest,) = database.execute(
                f"SELECT bit_xor(md5_number(concat_ws(' ', {', '.join(texts)}))) FROM log"
            ).fetchone()
        return f"{digest:032x}"

    def contents(self) -> arrays.IntArray:
        """Returns digests of the episodes, in the order of `load`.

        Returns
        -------
        array of int [1 or 2, E]
            A digest of all values of an episode but ids (columns without a role that differ in
            every row), and maybe one of a column of mostly distinct values, such as a measurement.
        """
        names = [name for name in self.types if name != self.columns.episode]
        # One group of each value of each column: in the groups of other columns a column is NULL.
        # This counts distinct values several times as fast as count(DISTINCT …) of each column.
        asked = ", ".join(f"count({sql_name(name)})" for name in names)
        with tables.connected(self.table, self.memory_limit) as database:
            rows, *distinct = database.execute(
                f'SELECT coalesce(sum("surestep size"), 0) // {len(names)}, {asked} FROM (SELECT '
                f'{named(names)}, count(*) AS "surestep size" FROM log '
                f"GROUP BY GROUPING SETS (({'), ('.join(map(sql_name, names))})))"
            ).fetchone()
            different = dict(zip(names, distinct, strict=True))
            known = {name for given in self.columns.by_role().values() for name in given}
            told = [name for name in names if name in known or different[name] < rows]
            content = f"hash({named(told)})"
            fine = max(told, key=different.__getitem__)
            (contents,) = database.execute(f"SELECT count(DISTINCT {content}) FROM log").fetchone()
            both = (f"{content} AS content", f"hash({sql_name(fine)}) AS fine")
            answer = database.execute(
                "SELECT hash(list(content ORDER BY step)) AS content, hash(list(fine ORDER BY "
                f"step)) AS fine FROM ({in_episodes(self.plain, both)}) GROUP BY episode "
                "ORDER BY arg_min(place, step)"
            ).fetchnumpy()
        digests = np.stack([np.asarray(answer[x]).view(np.int64) for x in ("content", "fine")])
        return digests if different[fine] > MOSTLY * contents else digests[:1]

    def first_beyond(
        self, running: tuple[float, float], ending: tuple[float, float], *, counted: bool
    ) -> str:
        """Finds the first row whose reward lies outside of the possible range.

        Parameters
        ----------
        running : tuple of float
            The least and the greatest reward of a step after which the episode goes on.
        ending : tuple of float
            The same of a step that ends the episode.
        counted : bool
            Whether to look at counted rows only; others may go on or end, unless a clock cut them.

        Returns
        -------
        str
            File, row, column and value; empty if there is no such row, or rows do not tell by
            themselves whether their episode ended.
        """
        if self.description.ends == "complete":
            return ""
        with tables.connected(self.table, self.memory_limit) as database:
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
            goes_on = "true" if counted or self.description.ends is not None else stopped
            condition = (
                f"CASE WHEN {over} THEN {at_end} WHEN {goes_on} THEN {on_the_way} "
                f"ELSE {on_the_way} AND {at_end} END"
            )
            place, text = first_row_where(self.table, database, condition, self.columns.reward)
            return place and f"{place}: {text!r}"

    def roles(self, database: Any) -> RoleSql:
        """Returns the SQL of the roles; quantiles are taken from the log.

        Where one part of the log chooses a policy and another judges it, only the first part gives
        quantiles.

        Parameters
        ----------
        database : DuckDBPyConnection
            A database with the view `log`.

        Returns
        -------
        RoleSql
            SQL for states, actions, episodes and the rest.
        """
        bins = self.description.bins
        by_quantile = [name for name, rule in bins.items() if rule.quantiles is not None]
        rows = first_rows(database, self.plain, by_quantile, self.edges_from)
        binnings = binnings_of(database, bins, self.types, rows)
        for name, column, _ in self.columns.memory:
            if column in binnings:
                binnings[name] = binnings[column]
        return RoleSql.of(self.columns, self.types, MappingProxyType(binnings))


def read_log(
    source: object,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    bins: Mapping[str, Mapping[str, Any]] | None = None,
    ends: Literal["complete", "clock", "random"] | None = None,
    memory: int | None = None,
    reader: Mapping[str, Any] | None = None,
    query: str | None = None,
    tables: Mapping[str, str] | None = None,
    case: str | None = None,
    memory_limit: str | None = None,
) -> LogSource:
    """Finds a log and the roles of its columns; without a query, no rows are read.

    Parameters
    ----------
    source : path, list of paths, table or Description
        A file, a pattern such as "logs/*.parquet", a folder, or a description (`.toml`); or a
        table in memory: pandas, polars, Arrow, or a dictionary of lists or arrays.
    columns : mapping, optional
        The columns of each role, where they have other names than usual, such as {"state": "ward"}.
    bins : mapping, optional
        Bins of a column: quantiles, width, edges; or states of several: tree, kmeans.
    ends : {"complete", "clock", "random"}, optional
        How episodes end, where no column tells: complete, with their last row; clock, recording
        stops after so many steps, or at a date with steps of equal length; random, it is known to
        stop at random, whatever was done.
    memory : int, optional
        Situations also have the columns of so many steps before, with what was done there; 0: none.
    reader : mapping, optional
        How text files are written, in the words of DuckDB's reader.
    query : str, optional
        SQL that prepares the rows of the table `log`.
    tables : mapping, optional
        Further tables of the query: a file for each name.
    case : str, optional
        The column of the files that says whose rows belong together, for a query.
    memory_limit : str, optional
        Such as "2GB"; the rest spills to disk.

    Returns
    -------
    LogSource
        The log, ready to be counted or loaded.

    Raises
    ------
    FileFailure
        There is no such file, or it cannot be read.
    InvalidLog
        A column of a role is missing or ambiguous.

    Notes
    -----
    Arguments override what a description says. A log without columns of episodes, steps, ends and
    next states has one decision a row: every row is an episode. Steps may be time stamps, in ISO
    8601 or in the reader's `timestampformat`. A query that looks ahead is refused when the log is
    counted.

    Examples
    --------
    >>> roles = {"state": ["condition", "demand"], "action": "decision"}
    >>> log = surestep.read_log("examples/pumps.csv", columns=roles)
    >>> log.load().num_episodes
    6000
    """
    how = {"columns": columns, "bins": bins, "ends": ends, "memory": memory, "reader": reader}
    return open_log(*given_as(source, **how, query=query, tables=tables, case=case), memory_limit)


def open_log(
    description: Description, frame: object = None, memory_limit: str | None = None
) -> LogSource:
    """Finds the log of a description and the roles of its columns; see `read_log`."""
    if isinstance(frame, LogSource):
        return replace(frame, table=replace(frame.table, description=description))
    table = tables.find_table(description, frame)
    if description.query is not None:
        table = table_of_query(table, description.query, memory_limit)
    with tables.connected(table, memory_limit) as database, named_in_errors(table.name, InvalidLog):
        types = tables.types_of(database)
        for name in (x for x in types if re.search(OUR_NAMES, x)):
            raise InvalidLog(
                f"there is a column {name.removesuffix('_1')!r}; expected another name for it, "
                "without tabs and line breaks, that does not begin with 'surestep '"
            )
        mapping = tables.meaning_of(description, types)
        mapping = mapping.remembering(description.memory.steps or 0, [*types])
        preparation = tables.preparation_of(
            description, mapping, types, steps_are_stamps(database, description, types, mapping)
        )
        columns = [*types, *preparation.added]
        for column, rule in description.bins.items():
            if mapping.reward in several(rule.columns):
                raise InvalidLog(
                    f"{column!r} is learnt from column {mapping.reward!r}, the reward, which "
                    "nobody knows when deciding; expected other columns"
                )
            if column not in (*mapping.state, *mapping.action):
                raise InvalidLog(
                    f"column {column!r} is binned, but is neither of the state nor of the action; "
                    f"{closest(column, columns)}"
                )
        for column in several(description.groups.columns):
            roles = [role for role, names in mapping.by_role().items() if column in names]
            if column not in columns or not {"state", "time"}.issuperset(roles):
                raise InvalidLog(
                    f"groups.columns names {column!r}; expected a column that is known before the "
                    f"first decision of an episode: {closest(column, columns)}"
                )
        table = replace(table, preparation=preparation)
        types = tables.types_of(database, table.scan(database))
    first = next(iter(description.signals.values()), None)
    return LogSource(
        table, mapping, MappingProxyType(types), memory_limit, cost=first is not None and first.cost
    )


def table_of_query(raw: tables.Table, sql: str, memory_limit: str | None) -> tables.Table:
    """Runs the query of a description; returns its rows as a table."""
    description = raw.description
    if queries.LOG in description.tables:
        raise InvalidParameter("tables has 'log', the name of the log itself; name it otherwise")
    workshop = queries.Workshop()
    with workshop.loading(memory_limit) as database:
        if raw.frame is not None:
            register_frame(database, raw.frame)
        types = load_raw(database, queries.LOG, raw)
        load_further(database, description)
    query = queries.Query(sql, memory_limit=memory_limit)
    with workshop.locked(query) as database:
        database.execute(f"CREATE TABLE {queries.RESULT} AS {query.rows()}")
        kinds = columns_of(database, queries.RESULT)
    with named_in_errors(raw.name, InvalidLog):
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
    measured = {name: several(rule.columns) for name, rule in description.bins.items()}
    labels = (*mapping.state, *mapping.action)
    decided = tuple(column for name in labels for column in measured.get(name) or (name,))
    told_by = (None, None) if single else (mapping.episode, mapping.step)
    signals = [rule.column for rule in description.signals.values()]
    ends = (mapping.terminated, mapping.truncated, *mapping.next_state)
    after = tuple(name for name in (mapping.reward, *signals, *ends) if name in kinds)
    known = (description.columns.known_before, description.groups.columns, mapping.time)
    before = tuple(name for names in known if names for name in several(names))
    keys = queries.Keys(*told_by, decided, after, before)
    rows, digest = queries.write_rows(workshop, query, keys)
    made = queries.Made(workshop, query, keys, digest, types, queries.ROW in kinds)
    return tables.Table(
        f"the query of {raw.name}",
        (rows,),
        FORMATS["parquet"],
        description=description,
        raw=raw,
        made=made,
    )


def load_further(database: Any, description: Description) -> None:
    """Loads the `tables` of a description for its query."""
    for name, file in description.tables.items():
        load_raw(
            database, name, tables.find_table(Description(files=file, reader=description.reader))
        )


def load_raw(database: Any, name: str, raw: tables.Table) -> dict[str, str]:
    """Loads a table for a query; returns its types. The log gets the column `row`."""
    typed = raw.format.typed
    reader = raw.description.reader
    rows = raw.read(database, raw.files) if typed is None else typed(raw.files, reader)
    with tables.explaining(raw):
        kinds = columns_of(database, rows)
        numbers = [sql_name(column) for column, kind in kinds.items() if kind == "DOUBLE"]
        missing = [f"nullif({x}, 'nan'::DOUBLE) AS {x}" for x in numbers]  # as in `act`
        values = replacing(missing)
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
    """Tells whether the steps are time stamps, by their type or by the first row."""
    kind = types.get(str(mapping.step), "")
    if kind != "VARCHAR":
        return is_stamp_type(kind)
    first = f"SELECT {sql_name(str(mapping.step))} FROM log LIMIT 1"
    text = next((row[0] for row in database.execute(first).fetchall()), None)
    if text is None or re.fullmatch(r"\s*[0-9]+(\.0*)?\s*", text):
        return False
    return description.reader.timestampformat is not None or bool(re.fullmatch(ISO, text, re.ASCII))


def count_on_ray(
    source: LogSource,
    *,
    address: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LabelledCounts:
    """Counts the files of a log in parallel on a Ray cluster and merges the counts.

    Every file must hold whole episodes, and workers must see the files under the same names.
    `address` is an existing cluster.
    """
    if not source.files:
        raise InvalidParameter(f"{source.table.name} is in memory; a cluster counts files only")
    said = {**source.description.given(), "columns": source.columns_in_files}
    shards = [
        (described({**said, "files": [str(file.absolute())]}), None, source.memory_limit)
        for file in source.files  # workers need not be in the folder of the command
    ]
    parts = list[LabelledCounts]()
    for _, part in map_as_done(count_shard, shards, engine="ray", address=address):
        parts.append(part)
        if progress is not None:
            progress(len(parts), len(shards))
    return merge_counts(parts)


def count_shard(shard: tuple[Description, None, str | None]) -> LabelledCounts:
    """Counts the log of one file, with its further signals."""
    return open_log(*shard).counts_of_all()
