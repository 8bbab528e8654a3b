"""The way of rows from files to the view `log`: SQL around that of a scan.

Stages follow each other in one order, whatever the order of options: single decisions as episodes,
stamps, and ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from surestep.errors import InvalidLog, said
from surestep.io.logs.columns import ColumnMapping, by_name, names, naming, resolve
from surestep.io.logs.last_rows import TERMINATED, TRUNCATED, MarkedLastRows
from surestep.io.logs.one_step import OneStepEpisodes
from surestep.io.logs.reading import Reading
from surestep.io.logs.roles import flag_sql
from surestep.io.logs.stamps import (
    Stamped,
    StepsByStamp,
    TimesAsStamps,
    WithoutStamps,
)


class Stage(Protocol):
    """Something that is done to all rows."""

    def sql(self, rows: str) -> str:
        """Returns the SQL of the rows afterwards, from that of the rows before."""
        ...


@dataclass(frozen=True, slots=True)
class Preparation:
    """The changes that a reading makes to rows; none by default."""

    stages: tuple[Stage, ...] = ()

    @property
    def changes(self) -> bool:
        """Tells whether anything is done at all."""
        return bool(self.stages)

    def sql(self, rows: str) -> str:
        """Returns the SQL of the rows of `log`, from that of the rows of files."""
        for stage in self.stages:
            rows = stage.sql(rows)
        return rows

    @property
    def keeps_order(self) -> bool:
        """Tells whether rows stay in the order of the files."""
        return all(isinstance(stage, KEEPING_ORDER) for stage in self.stages)

    @property
    def numbers_stamps(self) -> bool:
        """Tells whether steps are numbers that time stamps were given."""
        return any(isinstance(stage, StepsByStamp) for stage in self.stages)


NONE = Preparation()
KEEPING_ORDER = (OneStepEpisodes, TimesAsStamps)


def meaning_of(
    reading: Reading,
    types: Mapping[str, str],
    beyond: Sequence[str],
    chosen: Mapping[str, str | Sequence[str]],
) -> ColumnMapping:
    """Returns what columns mean: those of files, of these types, and those that a reading adds.

    `beyond` are columns that cannot be read, and `chosen` those that somebody chose, by role.
    """
    there = [*types, *added_to_single(reading, types)]
    added = list[str]()
    for role, is_said in ((TERMINATED, reading.complete), (TRUNCATED, reading.clock)):
        named = names(role, chosen[role]) if role in chosen else by_name(role, list(types))
        added += [role] if is_said and named in ((), (role,)) else []
    return resolve(tuple(dict.fromkeys([*there, *added, *beyond])), chosen)


def added_to_single(reading: Reading, types: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the columns that a log of single decisions is given; none for other logs."""
    return OneStepEpisodes.of(list(types)).columns if reading.one_step else ()


def prepared(
    reading: Reading, mapping: ColumnMapping, types: Mapping[str, str], steps_are_stamps: bool
) -> Preparation:
    """Returns what a reading does to the rows of files with columns of these types."""
    stages = list[Stage]()
    single = added_to_single(reading, types)
    if reading.one_step and mapping.episode in types and mapping.step in types:
        raise InvalidLog(
            f"every row is to be an episode, but columns {mapping.episode!r} and {mapping.step!r} "
            "say which rows belong together; expected one of them: leave out "
            f"{said('one_step', '--one-step')}, and say {said('complete=True', '--complete')} if "
            "the last row of every episode is its end"
        )
    if single:
        stages.append(OneStepEpisodes(single))
    stamped = steps_are_stamps and mapping.step is not None and mapping.episode is not None
    if stamped:
        episode, step = str(mapping.episode), str(mapping.step)
        stages.append(Stamped(step, types[step], reading.time_format))
        stages.append(StepsByStamp(episode, step))
    if reading.complete or reading.clock:
        check_said_of_all(types, mapping, reading)
        stages.append(last_rows(types, mapping, reading))
    if mapping.time is not None and mapping.time != mapping.step:
        stages.append(TimesAsStamps(mapping.time, types[mapping.time], reading.time_format))
    elif mapping.time is not None and not stamped:
        raise InvalidLog(
            f"column {mapping.time!r} is that of the step and of the time at which episodes began, "
            "but its steps are numbers; expected time stamps"
        )
    if stamped:
        stages.append(WithoutStamps(mapping.time == mapping.step))
    return Preparation(tuple(stages))


def last_rows(types: Mapping[str, str], mapping: ColumnMapping, reading: Reading) -> MarkedLastRows:
    """Returns what marks the last rows of episodes, where something is said of all of them."""

    def flag(column: str | None) -> str | None:
        return flag_sql(column, types[column]) if column is not None and column in types else None

    column, other = mapping.terminated, mapping.truncated
    if reading.clock:
        column, other = other, column
    rows = str(mapping.episode), str(mapping.step)
    return MarkedLastRows(*rows, str(column), flag(other) or "false", flag(column))


def check_said_of_all(types: Mapping[str, str], mapping: ColumnMapping, reading: Reading) -> None:
    """Refuses logs whose ends are told otherwise, and those without episodes."""
    clock, complete = said("clock=True", "--clock"), said("complete=True", "--complete")
    others = {
        clock: reading.clock and reading.complete,
        said("one_step=True", "--one-step"): reading.one_step,
        f"column {mapping.terminated!r}": reading.complete and mapping.terminated in types,
    }
    told = f"{complete if reading.complete else clock} tells of every episode how its last row ends"
    for other, is_said in others.items():
        if is_said:
            raise InvalidLog(f"{told}, but so does {other}; expected one of them")
    if mapping.episode is None or mapping.step is None:
        raise InvalidLog(
            f"{told}, but there is no column of episodes or of steps; name them with "
            f"{naming('episode', 'step')}"
        )
