"""Episodes as they are logged: how long, how they end, and which of their steps look wrong.

An inspection shows what looks wrong; counting refuses the log for it.

A block of 60 steps is summed up in one row, its steps as the bits of one number, as in counting.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surestep._arrays import IntArray
from surestep.errors import InvalidLog
from surestep.io.logs.look import EXAMPLES, Look, Suspicion, create_view
from surestep.io.logs.preparing import NONE
from surestep.io.sql import ROW, sql_name

CHAIN, REPEATED = "broken chain", "repeated step"
BLOCK = 60  # bits of a number that DuckDB shifts without overflow


class Episodes(NamedTuple):
    """The episodes of a log."""

    number: int
    lengths: IntArray  # [L] rising
    times: IntArray  # [L] how many episodes are that long
    terminated: int
    truncated: int
    without_end: int


def sum_up_episodes(look: Look) -> None:
    """Creates the table `episodes`: a row each, with `different` steps from `low` to `high`."""
    look.database.execute(
        "CREATE TEMP TABLE episodes AS SELECT episode, sum(rows)::BIGINT AS rows, "
        "sum(steps)::BIGINT AS steps, sum(different)::BIGINT AS different, min(low) AS low, "
        "max(high) AS high, min(flagged) AS flagged, bool_or(terminated) AS terminated, "
        "bool_or(truncated) AS truncated FROM (SELECT episode, count(*) AS rows, "
        "count(step) AS steps, min(step) AS low, max(step) AS high, "
        f"coalesce(bit_count(bit_or(1::UBIGINT << (step % {BLOCK})::UBIGINT)), 0) AS different, "
        "min(step) FILTER (terminated OR truncated) AS flagged, "
        "bool_or(terminated) AS terminated, bool_or(truncated) AS truncated "
        f"FROM seen WHERE episode IS NOT NULL GROUP BY episode, step // {BLOCK}) GROUP BY episode"
    )


def episode_facts(look: Look) -> Episodes:
    """Counts the episodes, by their length and by how they end."""
    number, terminated, truncated = look.one(
        "SELECT count(*), count(*) FILTER (terminated), "
        "count(*) FILTER (truncated AND NOT terminated) "
        "FROM episodes"
    )
    lengths = look.all("SELECT rows, count(*) FROM episodes GROUP BY rows ORDER BY rows")
    table = np.array(lengths, np.int64).reshape(-1, 2)
    without_end = number - terminated - truncated
    return Episodes(number, table[:, 0], table[:, 1], terminated, truncated, without_end)


def episode_suspicions(look: Look) -> list[Suspicion | None]:
    """All that can be wrong with the steps of an episode."""
    return [
        repeated_steps(look),
        missing_steps(look),
        steps_after_end(look),
        broken_chain(look),
        episodes_without_end(look),
    ]


def explain_episodes(look: Look) -> InvalidLog | None:
    """Returns the first trouble with the steps of an episode as an error; None where none is."""
    create_view(look)
    sum_up_episodes(look)
    for suspicion in filter(None, episode_suspicions(look)):
        if suspicion.refused and suspicion.examples:
            return InvalidLog(refusal(look, suspicion))
    return None


def refusal(look: Look, suspicion: Suspicion) -> str:
    """Returns the sentence of a refusal: where, what was found, and what was expected.

    Of several rows of one step, the last one that is known is at fault.
    """
    first, mapping = suspicion.examples[0], look.roles.mapping
    column = mapping.step
    if suspicion.kind == CHAIN:
        column = mapping.next_state[0]
    row = [e.row for e in suspicion.examples if (e.file, *e[2:]) == (first.file, *first[2:])][-1]
    others, found = "", first.value
    if suspicion.times > 1:
        others = f"; {suspicion.times:,} {suspicion.of}s are affected"
    if suspicion.kind == REPEATED and look.table.preparation.numbers_stamps:
        found = f"more than one row has the time {written_at(look, first.file, row, str(column))!r}"
    return (
        f"{first.file or look.table.name}, row {row:,}, column {column!r}: in episode "
        f"{first.episode!r}, {found}; expected {suspicion.expected}{others}"
    )


def written_at(look: Look, file: str | None, row: int, column: str) -> str:
    """Returns what a file has in a row and column, before anything is done to it."""
    plain = replace(look.table, preparation=NONE)
    rows = plain.scan(look.database, () if file is None else (Path(file),), numbered=True)
    query = f"SELECT CAST({sql_name(column)} AS VARCHAR) FROM ({rows}) WHERE {ROW} = {row}"
    return str(look.one(query)[0])


def affected(condition: str) -> str:
    """The first episodes of which the condition holds; '9' comes before '10'."""
    return (
        f"SELECT episode FROM episodes WHERE {condition} ORDER BY length(episode), episode "
        f"LIMIT {EXAMPLES}"
    )


def repeated_steps(look: Look) -> Suspicion | None:
    """Rows that say again what happened at some step of an episode."""
    condition = "different < steps"
    times, episodes = look.one(
        "SELECT coalesce(sum(steps - different), 0)::BIGINT, count(*) FROM episodes "
        f"WHERE {condition}"
    )
    if not times:
        return None
    places = look.all(
        "SELECT episode, step, 'step ' || step || ' is there ' || count(*) || ' times' FROM seen "
        f"WHERE episode IN ({affected(condition)}) AND step IS NOT NULL GROUP BY episode, step "
        f"HAVING count(*) > 1 ORDER BY length(episode), episode, step LIMIT {EXAMPLES}"
    )
    says = f"too many: another row has the same episode and step ({in_episodes(episodes)})"
    expected = (
        "once (if rows are copies of each other, keep one; if they are different episodes, number "
        "them differently)"
    )
    return Suspicion(REPEATED, times, "row", says, expected, look.at(places))


def missing_steps(look: Look) -> Suspicion | None:
    """Steps that are missing between others of their episode."""
    condition = "different < high - low + 1"
    times, episodes = look.one(
        "SELECT coalesce(sum(high::HUGEINT - low + 1 - different), 0)::HUGEINT, count(*) "
        f"FROM episodes WHERE {condition}"
    )
    if not times:
        return None
    places = look.all(
        "SELECT episode, step, 'step ' || step || ' is followed by step ' || following FROM ("
        "SELECT episode, step, lead(step) OVER (PARTITION BY episode ORDER BY step) AS following "
        f"FROM (SELECT DISTINCT episode, step FROM seen WHERE episode IN ({affected(condition)}) "
        "AND step IS NOT NULL)) WHERE following > step + 1 "
        f"ORDER BY length(episode), episode, step LIMIT {EXAMPLES}"
    )
    says = f"missing between others of their episode ({in_episodes(episodes)})"
    expected = "steps numbered without gaps (begin a new episode where some are missing)"
    return Suspicion("missing step", int(times), "step", says, expected, look.at(places))


def steps_after_end(look: Look) -> Suspicion | None:
    """Rows of an episode that come after a flag says that it is over."""
    condition = "flagged < high"
    episodes = look.one(f"SELECT count(*) FROM episodes WHERE {condition}")[0]
    if not episodes:
        return None
    after = "seen JOIN episodes USING (episode) WHERE step > flagged"
    times = look.one(f"SELECT count(*) FROM {after}")[0]
    places = look.all(
        "SELECT episode, min(step), 'the episode ended at step ' || any_value(flagged) "
        f"FROM {after} AND episode IN ({affected(condition)}) GROUP BY episode "
        "ORDER BY length(episode), episode"
    )
    says = f"after the end of their episode ({in_episodes(episodes)})"
    expected = "the flag at the last step (begin a new episode after it)"
    return Suspicion("step after end", times, "row", says, expected, look.at(places))


def broken_chain(look: Look) -> Suspicion | None:
    """Rows whose next state is not the state of the next step."""
    width = len(look.roles.mapping.next_state)
    if not width:
        return None
    leads = ", ".join(f"lead(state_{i}) OVER following AS there_{i}" for i in range(width))
    differ = " OR ".join(f"there_{i} <> next_state_{i}" for i in range(width))
    said, was = (
        " || ', ' || ".join(f"{role}_{i}" for i in range(width)) for role in ("next_state", "there")
    )
    look.database.execute(
        f"CREATE TEMP TABLE broken AS SELECT episode, step, {said} AS said, {was} AS was FROM "
        f"(SELECT *, lead(step) OVER following AS later, {leads} FROM seen WHERE episode IS NOT "
        f"NULL AND step IS NOT NULL WINDOW following AS (PARTITION BY episode ORDER BY step, "
        f"{look.labels('state')}, {look.labels('next_state')})) "
        f"WHERE later = step + 1 AND next_state_0 IS NOT NULL AND ({differ})"
    )
    times = look.one("SELECT count(*) FROM broken")[0]
    if not times:
        return None
    places = look.all(
        "SELECT episode, step, 'next state ' || said || ', but the next step is in ' || was "
        f"FROM broken ORDER BY length(episode), episode, step, said, was LIMIT {EXAMPLES}"
    )
    says = "with a next state that is not the state of the next step"
    expected = "the same (leave the column out to have it derived from the next step)"
    return Suspicion(CHAIN, times, "row", says, expected, look.at(places))


def episodes_without_end(look: Look) -> Suspicion | None:
    """Episodes whose rows never say that they are over."""
    mapping = look.roles.mapping
    condition = "NOT terminated AND NOT truncated"
    times = look.one(f"SELECT count(*) FROM episodes WHERE {condition}")[0]
    if not times:
        return None
    places = look.all(
        "SELECT episode, high, 'last step' FROM episodes WHERE high IS NOT NULL AND episode IN "
        f"({affected(condition)}) ORDER BY length(episode), episode"
    )
    says = "without an end: their last step is neither terminated nor truncated"
    if mapping.terminated is None and mapping.truncated is None:
        says = "without an end: no column says whether an episode is over"
    return Suspicion("episode without end", times, "episode", says, None, look.at(places))


def in_episodes(number: int) -> str:
    """'in 1 episode'."""
    return f"in {number:,} episode{'' if number == 1 else 's'}"
