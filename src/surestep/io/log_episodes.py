"""What each episode of a log is, in one group a handful of steps, and what is wrong with it.

A block of 60 steps is summed up in one row, its steps as the bits of one number. That finds every
step that is there twice or not at all without sorting the log, in memory that grows with the
episodes and not with the rows.
"""

from __future__ import annotations

from typing import Any

from surestep.errors import InvalidLog

BLOCK = 60  # bits of a number that DuckDB shifts without overflow


def sum_up_episodes(database: Any, width: int) -> None:
    """The tables `episodes`, one row each, and `starts`, the state of each first step."""
    states = ", ".join(f"state_{i} := state_{i}" for i in range(width))
    database.execute(
        "CREATE TEMP TABLE episodes AS SELECT episode, sum(steps)::BIGINT AS steps, "
        "sum(different)::BIGINT AS different, min(low) AS low, max(high) AS high, "
        "sum(flags)::BIGINT AS flags, min(flagged) AS flagged, arg_min(start, low) AS start FROM ("
        "SELECT episode, count(*) AS steps, min(step) AS low, max(step) AS high, "
        f"bit_count(bit_or(1::UBIGINT << (step % {BLOCK})::UBIGINT)) AS different, "
        "count_if(terminated OR truncated) AS flags, "
        "min(step) FILTER (terminated OR truncated) AS flagged, "
        f"arg_min(struct_pack({states}), step) AS start "
        f"FROM steps GROUP BY episode, step // {BLOCK}) GROUP BY episode"
    )
    columns = ", ".join(f"start.state_{i} AS state_{i}" for i in range(width))
    database.execute(
        f"CREATE TEMP TABLE starts AS SELECT {columns}, count(*) AS times FROM episodes "
        "GROUP BY ALL"
    )


def check_episodes(source: str, database: Any) -> None:
    """Refuses episodes with a step twice, a gap, or steps after their end."""
    for condition, explain in (
        ("different < steps", repeated_step),
        ("steps < high - low + 1", missing_step),
        ("flags > 0 AND flagged < high", step_after_end),
    ):
        found = database.execute(
            f"SELECT min(episode), count(*) FROM episodes WHERE {condition}"
        ).fetchone()
        if found[1]:
            others = "" if found[1] == 1 else f"; {found[1]:,} episodes are affected"
            raise InvalidLog(f"{source}: {explain(database, found[0])}{others}")


def repeated_step(database: Any, episode: str) -> str:
    """Which step is there more than once."""
    step, times = database.execute(
        "SELECT step, count(*) FROM steps WHERE episode = ? GROUP BY step HAVING count(*) > 1 "
        "ORDER BY step LIMIT 1",
        [episode],
    ).fetchone()
    return (
        f"episode {episode!r} has step {step} {times} times, expected once (if rows are copies of "
        "each other, keep one; if they are different episodes, number them differently)"
    )


def missing_step(database: Any, episode: str) -> str:
    """Between which two steps one is missing."""
    step, following = database.execute(
        "SELECT step, following FROM (SELECT step, lead(step) OVER (ORDER BY step) AS following "
        "FROM steps WHERE episode = ?) WHERE following > step + 1 ORDER BY step LIMIT 1",
        [episode],
    ).fetchone()
    return (
        f"step {step} of episode {episode!r} is followed by step {following}, expected "
        f"{step + 1} (steps are numbered without gaps; begin a new episode where some are missing)"
    )


def step_after_end(database: Any, episode: str) -> str:
    """Which step ends an episode that goes on."""
    step, terminated = database.execute(
        "SELECT step, terminated FROM steps WHERE episode = ? AND (terminated OR truncated) "
        "ORDER BY step LIMIT 1",
        [episode],
    ).fetchone()
    return (
        f"step {step} of episode {episode!r} is {'terminated' if terminated else 'truncated'}, but "
        f"step {step + 1} follows; expected the flag at the last step (begin a new episode after "
        "it)"
    )
