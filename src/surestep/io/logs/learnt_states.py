"""States learnt from measurements, as a column of the log; what taught them is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from surestep._files import read_path, read_whole
from surestep.errors import InvalidLog, InvalidParameter, said
from surestep.io.labels.bin_rules import number_sql
from surestep.io.labels.state_rules import StateRule, rule_from_json
from surestep.io.logs.columns import ColumnMapping
from surestep.io.logs.reading import LEARNERS, is_to_be_learnt
from surestep.io.logs.roles import Check
from surestep.io.logs.stamps import time_column
from surestep.io.sql import ROW, sql_name, sql_text

STATE = "learnt state"


def rule_text(given: str) -> str:
    """Returns what is recorded of a rule that is given as JSON or as a file: its JSON in a line."""
    text = given
    if not given.lstrip().startswith("{"):
        file = read_path(given)
        text = read_whole(file).decode("utf-8", "replace") if file.is_file() else ""
    return json.dumps(parsed(text, given).to_json(), ensure_ascii=False)


def rule_of(given: str | None) -> StateRule | None:
    """Returns the rule that is recorded; None where there is none, or none yet."""
    return None if given is None or is_to_be_learnt(given) else parsed(given, given)


def parsed(text: str, given: str) -> StateRule:
    """Returns the rule in a text, which was given so or by its file."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        option = said("states_from", "--states-from")
        raise InvalidParameter(
            f"{option} is {given!r:.80}, expected {', '.join(LEARNERS)}, or a file with a rule"
        ) from None
    return rule_from_json(content)


def raw_states(state: tuple[str, ...], rule: StateRule) -> tuple[str, ...]:
    """Returns columns of the state as files have them: measurements in place of what was learnt."""
    kept = tuple(name for name in state if name != STATE)
    return kept if STATE not in state else (*kept, *rule.columns)


def with_learnt(mapping: ColumnMapping, rule: StateRule) -> ColumnMapping:
    """Returns the columns with the learnt state in place of the measurements that it is made of."""
    missing = [name for name in rule.columns if name not in mapping.state]
    if missing:
        raise InvalidLog(
            f"the rule of states measures column {missing[0]!r}, which is none of the state "
            f"({', '.join(mapping.state)}); expected all of {', '.join(rule.columns)}"
        )
    if mapping.next_state:
        raise InvalidLog(
            f"states are learnt, but columns {', '.join(mapping.next_state)} say where a step led; "
            "expected a log in which that is the state of the next row"
        )
    kept = tuple(name for name in mapping.state if name not in rule.columns)
    return replace(mapping, state=(*kept, STATE))


@dataclass(frozen=True, slots=True)
class LearntStates:
    """Rows with their learnt state, in words; none where a measurement is no finite number."""

    rule: StateRule
    types: Mapping[str, str]

    @property
    def numbers(self) -> dict[str, str]:
        """Returns the SQL of each measurement as a number."""
        return {name: f"({number_sql(name, self.types[name])})" for name in self.rule.columns}

    @property
    def checks(self) -> list[Check]:
        """Returns the checks of the measurements, without which a row has no state."""
        expected = "a finite number, since states are made of it"
        return [
            Check(f"NOT coalesce(isfinite({number}), false)", name, expected, ("drop",))
            for name, number in self.numbers.items()
        ]

    def sql(self, rows: str) -> str:
        """Returns the SQL of the rows with this column."""
        usable = " AND ".join(f"coalesce(isfinite({x}), false)" for x in self.numbers.values())
        labels = ", ".join(map(sql_text, self.rule.labels()))
        code = f"CASE WHEN {usable} THEN {self.rule.sql(self.numbers)} END"
        return f"SELECT *, [{labels}][{code} + 1] AS {sql_name(STATE)} FROM ({rows})"


@dataclass(frozen=True, slots=True)
class LaterEpisodes:
    """Rows of all but the first episodes, which taught something about the others."""

    mapping: ColumnMapping
    number: int  # of episodes that are left out

    def sql(self, rows: str) -> str:
        """Returns the SQL of the other rows; one without an episode is kept, to be refused."""
        taught = first_episodes(rows, self.mapping, self.number)
        return f"SELECT * FROM ({rows}) WHERE NOT EXISTS ({taught})"


@dataclass(frozen=True, slots=True)
class FirstEpisodes:
    """Rows of the first episodes, which are to teach something about the others."""

    mapping: ColumnMapping
    number: int  # of episodes that are kept

    def sql(self, rows: str) -> str:
        """Returns the SQL of these rows."""
        taught = first_episodes(rows, self.mapping, self.number)
        return f"SELECT * FROM ({rows}) WHERE EXISTS ({taught})"


def first_episodes(rows: str, mapping: ColumnMapping, number: int) -> str:
    """Returns SQL: of the first so many episodes in time, the one that a row is of."""
    episode = sql_name(str(mapping.episode))
    began, order = f"min({ROW}) AS {BEGAN}", BEGAN
    if mapping.time is not None:
        time = f"TRY_CAST({time_column(mapping)} AS TIMESTAMP)"
        began, order = f"{began}, min({time}) AS {WHEN}", f"{WHEN}, {BEGAN}"
    begun = f"SELECT {episode} AS {TAUGHT}, {began} FROM ({rows}) GROUP BY {episode}"
    first = f"SELECT {TAUGHT} FROM ({begun}) ORDER BY {order} LIMIT {number}"
    return f"SELECT {TAUGHT} FROM ({first}) WHERE {TAUGHT} = {episode}"


BEGAN, WHEN, TAUGHT = '"surestep began"', '"surestep when"', '"surestep taught"'
PLACE = '"surestep place"'
