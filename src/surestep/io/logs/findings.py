"""Findings: all that can look wrong in a log, each an SQL query with a sentence.

A log is read once, into the table `seen`: columns under names of our own, NULL where counting
refuses the value. Every finding is asked of it. Inspecting shows what is found, with its first
places in the files; counting refuses a log for what has something else `expected`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from surestep.errors import InvalidLog
from surestep.io.logs.preparing import NONE
from surestep.io.logs.rewards import RewardSql
from surestep.io.logs.roles import LabelCode, RoleSql
from surestep.io.logs.tables import Table
from surestep.io.sql import ROW, sql_name, sql_text

EXAMPLES = 3  # of each kind of suspicious row
BLOCK = 60  # steps in one row, as the bits of a number that DuckDB shifts without overflow


class Example(NamedTuple):
    """One suspicious row: where it stands, and what is there."""

    file: str | None  # None for a table in memory
    row: int  # from 1, in its file
    episode: str | None
    step: str | None
    value: str | None


class Suspicion(NamedTuple):
    """Something that looks wrong, how often, and the first places."""

    kind: str
    times: int
    says: str  # '3 rows too many: …'
    expected: str | None  # what counting refuses such a log for; None where it does not
    examples: tuple[Example, ...] = ()

    @property
    def refused(self) -> bool:
        """Tells whether counting refuses such a log."""
        return self.expected is not None


class Finding(NamedTuple):
    """A question to a log that looks wrong where the answer has rows."""

    of: str  # what is counted
    says: str  # the sentence, after the number
    expected: str | None
    # SQL over `seen` and what is summed up from it: a row for each place, with how many `times` it
    # counts, the keys of the place, and a `note`; its {names} are those of `Look.names`
    places: str = ""
    keys: tuple[str, ...] = ("episode", "step")  # roles that tell the place
    shows: str | None = None  # the role whose columns are shown there; None: the note
    refused_at: str = "step"  # the role whose column is at fault


UNUSABLE, OUTLIER = "unusable value", "outlier"
FLAGS = ("terminated", "truncated")
IN_EPISODES = "(in {number:,} episode{s})"
STEPS = "seen WHERE episode IS NOT NULL AND step IS NOT NULL"
FINDINGS: Mapping[str, Finding] = {
    UNUSABLE: Finding("row", "without {expected} in column {column!r}", "{expected}"),
    "repeated step": Finding(
        "row",
        f"too many: another row has the same episode and step {IN_EPISODES}",
        "once (if rows are copies of each other, keep one; if they are different episodes, number "
        "them differently)",
        "SELECT count(*) - 1 AS times, episode, step, 'step ' || step || ' is there ' || count(*) "
        f"|| ' times' AS note FROM {STEPS} AND episode IN (SELECT episode FROM episodes WHERE "
        "different < steps) GROUP BY episode, step HAVING count(*) > 1",
    ),
    "missing step": Finding(
        "step",
        f"missing between others of their episode {IN_EPISODES}",
        "steps numbered without gaps (begin a new episode where some are missing)",
        "SELECT later - step - 1 AS times, episode, step, 'step ' || step || ' is followed by step "
        "' || later AS note FROM (SELECT episode, step, lead(step) OVER (PARTITION BY episode "
        f"ORDER BY step) AS later FROM {STEPS} AND episode IN (SELECT episode FROM episodes WHERE "
        "different < high - low + 1)) WHERE later > step + 1",
    ),
    "step after end": Finding(
        "row",
        f"after the end of their episode {IN_EPISODES}",
        "the flag at the last step (begin a new episode after it)",
        "SELECT count(*) AS times, episode, min(step) AS step, 'the episode ended at step ' || "
        "any_value(flagged) AS note FROM seen JOIN (SELECT episode, flagged FROM episodes WHERE "
        "flagged < high) USING (episode) WHERE step > flagged GROUP BY episode",
    ),
    "broken chain": Finding(
        "row",
        "with a next state that is not the state of the next step",
        "the same (leave the column out to have it derived from the next step)",
        "SELECT 1 AS times, episode, step, 'next state ' || {said} || ', but the next step is in ' "
        "|| {was} AS note FROM (SELECT episode, step, {next_state}, lead(step) OVER near AS later, "
        f"{{leads}} FROM {STEPS} WINDOW near AS ({{order}})) "
        "WHERE later = step + 1 AND next_state_0 IS NOT NULL AND ({differ})",
        refused_at="next_state",
    ),
    "episode without end": Finding(
        "episode",
        "without an end: {why}",
        None,
        "SELECT 1 AS times, episode, high AS step, 'last step' AS note FROM episodes "
        "WHERE NOT terminated AND NOT truncated",
    ),
    OUTLIER: Finding(
        "row",
        "with a reward far from almost all others, which are {low:g} to {high:g}",
        None,
        "SELECT times, reward FROM rewards "
        "WHERE NOT reward BETWEEN {low!r}::DOUBLE AND {high!r}::DOUBLE",
        ("reward",),
        "reward",
    ),
    "state seen once": Finding(
        "state",
        "seen in a single row (a typing error, or a state too fine to learn from)",
        None,
        "SELECT 1 AS times, {state}, {any_action} FROM visited GROUP BY {state} "
        "HAVING sum(rows) = 1",
        ("state", "action"),
        "state",
    ),
}


class Found(NamedTuple):
    """An answer whose places are still to be looked up in the files."""

    suspicion: Suspicion
    condition: str  # SQL over the user's columns: the row is such a place
    value: str  # SQL: what is shown of it


@dataclass(frozen=True, slots=True)
class Look:
    """A log that can be asked: its table, the roles of its columns, and the database."""

    table: Table
    roles: RoleSql
    database: Any

    def one(self, query: str) -> Any:
        """Returns the only row of an answer."""
        return self.database.execute(query).fetchone()

    def all(self, query: str) -> list[Any]:
        """Returns all rows of an answer."""
        rows: list[Any] = self.database.execute(query).fetchall()
        return rows

    def columns(self, role: str) -> list[str]:
        """Returns the columns of a role in `seen`: ['state_0', 'state_1']."""
        named = getattr(self.roles.mapping, role)
        return [f"{role}_{i}" for i in range(len(named))] if isinstance(named, tuple) else [role]

    @property
    def parts(self) -> dict[str, str]:
        """Returns SQL by column of `seen`, over the user's columns; some may still be unusable."""
        roles, mapping, codes = self.roles, self.roles.mapping, self.roles.codes
        columns = {
            f"{role}_{i}": usable(code)
            for role in ("state", "action", "next_state")
            for i, code in enumerate(getattr(codes, role))
        }
        columns["reward"] = f"TRY_CAST({sql_name(mapping.reward)} AS DOUBLE)"
        columns |= {flag: roles.flag(getattr(mapping, flag)) for flag in FLAGS}
        if codes.episode is not None:
            columns["episode"] = usable(codes.episode)
            columns["step"] = roles.whole(str(mapping.step))
        return columns

    def read(self) -> tuple[int, bool]:
        """Creates the tables `seen` and `episodes`; counts the rows, and tells if all are usable.

        An episode has so many `different` steps from `low` to `high`, and the first end `flagged`.
        """
        usable = {flag: f"coalesce({flag}, false)" for flag in FLAGS}
        usable["reward"] = "CASE WHEN is_number AND isfinite(reward) THEN reward END"
        if self.roles.mapping.episode is not None:
            usable["step"] = "CASE WHEN step >= 0 THEN step END"
        is_number = RewardSql.of(self.roles).is_number
        checks = [f"({check.condition})" for check in self.roles.checks(is_number)]
        told = named(self.parts | {"is_number": is_number, "faulty": " OR ".join(checks)})
        self.database.execute("SET preserve_insertion_order = true")
        self.database.execute(
            f"CREATE TEMP TABLE seen AS SELECT * EXCLUDE (is_number) REPLACE ({named(usable)}) "
            f"FROM (SELECT {told} FROM log)"
        )
        if self.roles.mapping.episode is not None:
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
        rows, unusable = self.one("SELECT count(*), count_if(faulty) FROM seen")
        return rows, unusable == 0

    @property
    def names(self) -> dict[str, Any]:
        """Returns what the findings name."""
        mapping, width = self.roles.mapping, range(len(self.roles.mapping.next_state))
        state, action, next_state = map(self.columns, ("state", "action", "next_state"))
        why = "their last step is neither terminated nor truncated"
        if mapping.terminated is None and mapping.truncated is None:
            why = "no column says whether an episode is over"
        return {
            "state": ", ".join(state),
            "next_state": ", ".join(next_state),
            "any_action": ", ".join(f"any_value({name}) AS {name}" for name in action),
            "said": " || ', ' || ".join(next_state),
            "was": " || ', ' || ".join(f"there_{i}" for i in width),
            "leads": ", ".join(f"lead(state_{i}) OVER near AS there_{i}" for i in width),
            "differ": " OR ".join(f"there_{i} <> next_state_{i}" for i in width),
            "order": self.order if width and mapping.episode else "",
            "why": why,
        }

    @property
    def order(self) -> str:
        """Returns the window of steps in order: empty where rows lie so, one episode at a time."""
        runs, back = self.one(
            "SELECT count_if(episode IS DISTINCT FROM last), count_if(episode = last AND step <= "
            "before) FROM (SELECT episode, step, lag(episode) OVER () AS last, lag(step) OVER () "
            f"AS before FROM {STEPS})"
        )
        if not back and runs == self.one("SELECT count(low) FROM episodes")[0]:
            return ""
        labels = ", ".join([*self.columns("state"), *self.columns("next_state")])
        return f"PARTITION BY episode ORDER BY step, {labels}"

    def unusable(self) -> Iterator[Found]:
        """Yields the values that counting refuses, by column."""
        finding = FINDINGS[UNUSABLE]
        for check in self.roles.checks(RewardSql.of(self.roles).is_number):
            says = finding.says.format(expected=check.expected, column=check.column)
            suspicion = Suspicion(UNUSABLE, 0, says, check.expected)
            yield Found(suspicion, check.condition, self.roles.text(check.column))

    def ask(self, kinds: Iterable[str], **names: Any) -> Iterator[Found]:
        """Yields what is found of these kinds; `names` are those that `names` lacks."""
        names |= self.names
        for kind in kinds:
            of, says, expected, places, roles, shows, _ = FINDINGS[kind]
            keys = [column for role in roles for column in self.columns(role)]
            query = places.format(**names)
            self.database.execute(f"CREATE OR REPLACE TEMP TABLE places AS {query}")
            times, number = self.one(
                f"SELECT coalesce(sum(times), 0)::HUGEINT, count(DISTINCT {keys[0]}) FROM places"
            )
            if not times:
                continue
            texts = ", ".join(f"CAST({key} AS VARCHAR)" for key in keys)
            first = self.all(
                f"SELECT {texts}, {'NULL' if shows else 'note'} AS note FROM places "
                f"WHERE {keys[-1]} IS NOT NULL ORDER BY length(CAST({keys[0]} AS VARCHAR)), "
                f"{', '.join(keys)}, note LIMIT {EXAMPLES}"
            )
            own = [f"CAST({self.parts[key]} AS VARCHAR)" for key in keys]
            here = [
                " AND ".join(f"{x} = {sql_text(y)}" for x, y in zip(own, place, strict=False))
                for place in first
            ]
            if shows:
                given = self.roles.mapping.by_role()[shows]
                value = " || ', ' || ".join(map(self.roles.text, given))
            else:
                notes = (sql_text(place[-1]) for place in first)
                told = (f" WHEN {x} THEN {y}" for x, y in zip(here, notes, strict=True))
                value = f"CASE{''.join(told)} ELSE NULL END" if here else "NULL"
            s = "" if number == 1 else "s"
            sentence = f"{many(times, of)} {says.format(number=number, s=s, **names)}"
            suspicion = Suspicion(kind, int(times), sentence, expected)
            yield Found(suspicion, " OR ".join(here) or "false", value)

    def with_places(self, found: Sequence[Found]) -> tuple[Suspicion, ...]:
        """Returns what was found with its first places; the log is read once more for all."""
        if not found:
            return ()
        mapping, columns = self.roles.mapping, self.parts
        step = "NULL" if mapping.step is None else self.roles.text(mapping.step)
        episode = f"CAST({columns.get('episode', 'NULL')} AS VARCHAR)"
        times, examples = [0] * len(found), [list[Example]() for _ in found]
        asked = ", ".join(
            f"count(*) FILTER ({each.condition}), arg_min(row({ROW}, {episode}, {step}, "
            f"{each.value}), {ROW}, {EXAMPLES}) FILTER ({each.condition})"
            for each in found
        )
        self.database.execute("SET preserve_insertion_order = true")
        for file in self.table.files or (None,):
            name, files = (None, ()) if file is None else (self.table.name_of(file), (file,))
            rows = self.table.scan(self.database, files, numbered=True)
            answer = self.one(f"SELECT {asked} FROM ({rows})")
            for i, (number, first) in enumerate(zip(answer[::2], answer[1::2], strict=True)):
                times[i] += number
                examples[i] += [Example(name, *each) for each in first or ()]
        suspicions = list[Suspicion]()
        for (each, *_), number, first in zip(found, times, examples, strict=True):
            told = each._replace(examples=tuple(first[:EXAMPLES]))
            if each.kind == UNUSABLE:
                told = told._replace(times=number, says=f"{many(number, 'row')} {each.says}")
            suspicions += [told] if told.times else []
        return tuple(suspicions)

    def of_episodes(self) -> list[str]:
        """Returns the kinds that can be asked of episodes."""
        kinds = [kind for kind, each in FINDINGS.items() if "step" in each.keys and each.places]
        chained = bool(self.roles.mapping.next_state)
        return [kind for kind in kinds if chained or FINDINGS[kind].refused_at == "step"]


def explain_episodes(look: Look) -> InvalidLog | None:
    """Returns the first trouble with the steps of an episode as an error; None where none is.

    Of several rows of one step, the last one that is known is at fault.
    """
    look.read()
    refused = (each for each in look.ask(look.of_episodes()) if each.suspicion.refused)
    places = (each for found in refused for each in look.with_places([found]))
    for suspicion in (each for each in places if each.examples):
        first, finding = suspicion.examples[0], FINDINGS[suspicion.kind]
        column = look.roles.mapping.by_role()[finding.refused_at][0]
        same = [e.row for e in suspicion.examples if (e.file, *e[2:]) == (first.file, *first[2:])]
        found, times = first.value, suspicion.times
        others = f"; {times:,} {finding.of}s are affected" if times > 1 else ""
        if suspicion.kind == "repeated step" and look.table.preparation.numbers_stamps:
            stamp = written_at(look, first.file, same[-1], column)
            found = f"more than one row has the time {stamp!r}"
        return InvalidLog(
            f"{first.file or look.table.name}, row {same[-1]:,}, column {column!r}: in episode "
            f"{first.episode!r}, {found}; expected {suspicion.expected}{others}"
        )
    return None


def written_at(look: Look, file: str | None, row: int, column: str) -> str:
    """Returns what a file has in a row and column, before anything is done to it."""
    plain = replace(look.table, preparation=NONE)
    rows = plain.scan(look.database, () if file is None else (Path(file),), numbered=True)
    query = f"SELECT CAST({sql_name(column)} AS VARCHAR) FROM ({rows}) WHERE {ROW} = {row}"
    return str(look.one(query)[0])


def usable(code: LabelCode) -> str:
    """Returns the code of a label as SQL, NULL where it cannot be used."""
    unusable = " OR ".join(f"({check.condition})" for check in code.checks)
    return f"CASE WHEN NOT ({unusable}) THEN {code.sql} END" if unusable else code.sql


def named(columns: Mapping[str, str]) -> str:
    """Returns the columns as a query lists them."""
    return ", ".join(f"{sql} AS {name}" for name, sql in columns.items())


def many(number: int, noun: str) -> str:
    """Returns '1 row' or '3 rows'."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
