"""Questions to a log: its columns as SQL that never fails, and the places of rows.

Labels, steps and rewards mean what they mean in counting; what counting would refuse is NULL here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from surestep.io.logs.rewards import RewardSql
from surestep.io.logs.roles import LabelCode, RoleSql
from surestep.io.logs.tables import Table
from surestep.io.sql import ROW, sql_name, sql_text

EXAMPLES = 3  # of each kind of suspicious row


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
    of: str  # what is counted: "row", "step", "episode" or "state"
    says: str  # the rest of the sentence: '3 rows have …'
    expected: str | None  # what counting refuses such a log for; None where it does not
    examples: tuple[Example, ...]

    @property
    def refused(self) -> bool:
        """Tells whether counting refuses such a log."""
        return self.expected is not None


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
        """Returns the columns of a role in the view: ['state_0', 'state_1']."""
        return [f"{role}_{i}" for i in range(len(getattr(self.roles.mapping, role)))]

    def labels(self, role: str) -> str:
        """Returns the columns of a role as a query lists them: 'state_0, state_1'."""
        return ", ".join(self.columns(role))

    def known(self, *roles: str) -> str:
        """Returns the condition that no label of these roles is missing."""
        columns = [column for role in roles for column in self.columns(role)]
        return " AND ".join(f"{column} IS NOT NULL" for column in columns)

    @property
    def reward(self) -> str:
        """Returns the reward as a double, NULL where it is no finite number."""
        value = f"TRY_CAST({sql_name(self.roles.mapping.reward)} AS DOUBLE)"
        usable = RewardSql.of(self.roles).is_number
        return f"CASE WHEN {usable} AND isfinite({value}) THEN {value} END"

    @property
    def step(self) -> str:
        """Returns the step, NULL where it is no whole number of at least 0."""
        number = self.roles.whole(str(self.roles.mapping.step))
        return f"CASE WHEN {number} >= 0 THEN {number} END"

    @property
    def episode(self) -> str:
        """Returns the episode as text."""
        code = self.roles.codes.episode
        return "NULL" if code is None else code_text(code)

    def examples(self, condition: str, value: str) -> tuple[Example, ...]:
        """Returns the first rows of which the condition holds, with an expression's value there."""
        named_step = self.roles.mapping.step
        step = "NULL" if named_step is None else self.roles.text(named_step)
        examples = list[Example]()
        self.database.execute("SET preserve_insertion_order = true")
        for file in self.table.files or (None,):
            one = () if file is None else (file,)
            answer = self.all(
                f"SELECT {ROW}, {self.episode}, {step}, CAST({value} AS VARCHAR) "
                f"FROM ({self.table.scan(self.database, one, numbered=True)}) "
                f"WHERE {condition} ORDER BY {ROW} LIMIT {EXAMPLES - len(examples)}"
            )
            examples += [Example(None if file is None else str(file), *row) for row in answer]
            if len(examples) == EXAMPLES:
                break
        self.database.execute("SET preserve_insertion_order = false")
        return tuple(examples)

    def at(self, places: Sequence[tuple[str, int, str]]) -> tuple[Example, ...]:
        """Returns the rows at these episodes and steps, with what is to be said about each."""
        if not places:
            return ()
        here = [
            f"({self.episode} = {sql_text(name)} AND {self.step} = {step})"
            for name, step, _ in places
        ]
        says = " ".join(
            f"WHEN {condition} THEN {sql_text(note)}"
            for condition, (_, _, note) in zip(here, places, strict=True)
        )
        return self.examples(" OR ".join(here), f"CASE {says} END")


def code_text(code: LabelCode) -> str:
    """Returns the code of a label as text, NULL where there is none."""
    text = f"CAST({code.sql} AS VARCHAR)"
    unusable = " OR ".join(f"({check.condition})" for check in code.checks)
    return f"CASE WHEN NOT ({unusable}) THEN {text} END" if unusable else text


def create_view(look: Look) -> None:
    """Creates the view `seen`: columns under names of our own, NULL where nothing is usable."""
    roles, mapping, codes = look.roles, look.roles.mapping, look.roles.codes
    terminated = f"coalesce({roles.flag(mapping.terminated)}, false)"
    truncated = f"coalesce({roles.flag(mapping.truncated)}, false)"
    columns = [
        *(f"{code_text(code)} AS state_{i}" for i, code in enumerate(codes.state)),
        *(f"{code_text(code)} AS action_{i}" for i, code in enumerate(codes.action)),
        *(f"{code_text(code)} AS next_state_{i}" for i, code in enumerate(codes.next_state)),
        f"{look.reward} AS reward",
        f"{terminated} AS terminated",
        f"{truncated} AS truncated",
    ]
    if mapping.episode is not None:
        columns += [f"{look.episode} AS episode", f"{look.step} AS step"]
    look.database.execute(f"CREATE TEMP VIEW seen AS SELECT {', '.join(columns)} FROM log")
