"""Drafts the description of a log: guesses the role of each column from the first rows."""

import math
import os
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from surestep.checks import outcomes
from surestep.checks.shuffling import ends_of_equal
from surestep.description import Description, key_text, several, written
from surestep.errors import InvalidLog
from surestep.io.labels.binning import decimal_sql, number_sql
from surestep.io.logs.columns import ROLES
from surestep.io.logs.roles import stamp_sql
from surestep.io.logs.tables import connected, find_table, plain_text, types_of
from surestep.io.sql import sql_name, sql_text

FEW = 30  # different values of a column that may be a part of the state as it is
MOST_COLUMNS = 5_000  # of a log
# Words in names of columns that tell what they are, where none has a name of the role itself.
HINTS = {
    "episode": ("case", "patient", "stay", "session", "user", "customer", "trace", "id"),
    "step": ("time", "timestamp", "date", "day", "week", "hour", "index"),
    "action": (
        "decision", "treatment", "dose", "choice", "arm", "activity", "event", "offer", "price",
        "item", "concept:name",
    ),
    "reward": ("return", "profit", "revenue", "payoff", "score", "click", "spend"),
}  # fmt: skip
NO_STATE = ("id", "time", "timestamp", "date", "case:concept:name")  # names, or go up only
NO_ROLE = ("unnamed: ", "last_event")  # an index of pandas; how a trace of XES ends is for users
MANY = 10  # different values of a column that may tell episodes apart
COSTS = ("cost", "costs", "expense", "penalty", "loss")  # the more, the worse
# Words for what is known only after the decision, though exports have it on every row.
LATER = (
    *HINTS["reward"], *COSTS, "died", "dead", "death", "mortality", "survived", "outcome", "result",
    "success", "converted", "conversion", "churned", "readmitted", "recovered",
)  # fmt: skip


class Column(NamedTuple):
    """Figures of a column, from the first rows of the log."""

    name: str
    distinct: int
    missing: int
    numbers: bool  # all that is there are numbers
    stamps: bool  # or time stamps
    least: float | None
    greatest: float | None
    rows: int  # that have a value

    @property
    def gap(self) -> float:
        """Returns the mean gap between its distinct numbers; infinite if it has other values."""
        if not self.numbers or self.least is None or self.greatest is None:
            return math.inf
        return (self.greatest - self.least) / max(self.distinct - 1, 1)


class Guess(NamedTuple):
    """The columns guessed for a role, and the reason."""

    columns: tuple[str, ...]
    why: str


BY_NAME = "a guess by its name"
TOGETHER = 20  # columns in one statement: its time grows faster than their number


def describe(description: Description, folder: Path) -> str:
    """Describes a log as TOML; comments say which columns were guessed, and why.

    It is to lie in the folder, and names its files from there.
    """
    with connected(find_table(description)) as database:
        columns = look(database, types_of(database), description)
        guesses = guess(columns)
        after = told_after(database, columns, guesses)
    if after:
        state = guesses.pop("state")
        before = tuple(name for name in state.columns if name not in after)
        guesses |= {"state": state._replace(columns=before)} if before else {}
    return description_text(description, columns, guesses, folder, after)


def told_after(
    database: Any, columns: Sequence[Column], guesses: Mapping[str, Guess]
) -> dict[str, list[str]]:
    """Maps columns guessed for the state to those of their values that only last rows have."""
    if not {"episode", "step", "state"} <= guesses.keys():
        return {}
    state, (episode,), (step,) = (guesses[x].columns for x in ("state", "episode", "step"))
    names = [column.name for column in columns if column.name in state and column.distinct <= FEW]
    texts = [f"coalesce(CAST({sql_name(name)} AS VARCHAR), '')" for name in (episode, *names)]
    rows = database.execute(
        f"SELECT {', '.join(texts)} FROM first_rows ORDER BY {sql_name(episode)}, "
        f"TRY_CAST(CAST({sql_name(step)} AS VARCHAR) AS DOUBLE), {sql_name(step)}"
    ).fetchall()
    episodes, *values = zip(*rows, strict=True)
    told = outcomes.columns_told_after(
        dict(zip(names, values, strict=True)),
        np.arange(len(rows)),
        ends_of_equal(np.unique(episodes, return_inverse=True)[1]),
    )
    there = {name: [text for text in texts if text] for name, texts in told.items()}
    return {name: texts for name, texts in there.items() if texts}  # '' is no value


def look(database: Any, types: Mapping[str, str], description: Description) -> list[Column]:
    """Returns the figures of each column, from the first rows, and keeps these as a table."""
    if len(types) > MOST_COLUMNS:
        raise InvalidLog(
            f"{several(description.files)[0]}: there are {len(types):,} columns, expected at most "
            f"{MOST_COLUMNS:,}; keep those that decisions may depend on"
        )
    database.execute("CREATE TEMP TABLE first_rows AS SELECT * FROM log LIMIT 100_000")
    parts = list[str]()
    for name, kind in types.items():
        number = (
            decimal_sql(plain_text(description, name))
            if kind == "VARCHAR"
            else number_sql(name, kind)
        )
        there = f"count({sql_name(name)})"
        stamp = stamp_sql(name, kind, description.reader.timestampformat)
        facts = (
            sql_text(name),
            f"count(DISTINCT {sql_name(name)})",
            f"count(*) - {there}",
            f"count({number}) = {there} AND {there} > 0",
            f"count({stamp}) = {there} AND {there} > 0",
            f"min({number})",
            f"max({number})",
            there,
        )
        parts.append(f"row({', '.join(facts)})")
    columns = list[Column]()
    for first in range(0, len(parts), TOGETHER):
        some = ", ".join(parts[first : first + TOGETHER])
        row = database.execute(f"SELECT {some} FROM first_rows").fetchone()
        columns += [Column._make(facts) for facts in row]
    return columns


def guess(columns: Sequence[Column]) -> dict[str, Guess]:
    """Returns the columns of each role: by their names, else by hints in names and content."""
    guesses = dict[str, Guess]()
    free = {
        column.name: column for column in columns if not column.name.lower().startswith(NO_ROLE)
    }
    for role, usual in ROLES.items():
        same = [name for alias in usual.aliases for name in free if name.lower() == alias]
        if same:
            guesses[role] = Guess((same[0],), "by its name")
            free.pop(same[0])
    for role in HINTS:
        if role in guesses:
            continue
        likely = likely_columns(role, [*free.values()], guesses)
        if likely:
            guesses[role] = Guess((likely[0].name,), BY_NAME)
            free.pop(likely[0].name)
        elif role == "step" and "episode" in guesses and guesses["episode"].why == BY_NAME:
            named = guesses.pop("episode").columns  # of no use without steps
            free |= {column.name: column for column in columns if column.name in named}
    if "state" not in guesses:
        following = {f"next_{name}" for name in free}
        fit = [
            column.name
            for column in free.values()
            if column.distinct > 1 and column.name not in following and not column.stamps
            and not has_hint(column.name, LATER)
            and (column.distinct <= FEW or (column.numbers and not has_hint(column.name, NO_STATE)))
        ]  # fmt: skip
        if fit:
            why = "a guess: what varies; leave out what is known only after the decision"
            guesses["state"] = Guess(tuple(fit), why)
    return guesses


def likely_columns(role: str, free: Sequence[Column], guesses: Mapping[str, Guess]) -> list[Column]:
    """Returns the columns that hints make likely for a role, the most likely one first."""
    hints = HINTS[role]
    likely = [column for column in free if has_hint(column.name, hints) and fits(role, column)]
    if role == "step":
        likely = likely if "episode" in guesses else []
        return sorted(
            [*[column for column in free if column.stamps], *likely],
            key=lambda column: not has_hint(column.name, hints),
        )
    if role == "episode":
        likely.sort(key=lambda column: (not has_hint(column.name, ("id",)), -column.distinct))
    if role == "action":
        likely.sort(key=lambda column: column.name.lower() not in hints)
    return likely


def fits(role: str, column: Column) -> bool:
    """Tells whether the values of a column fit a role."""
    if role == "episode":
        many = MANY <= column.distinct <= column.rows / 2 and not column.stamps
        return many and not has_hint(column.name, HINTS["action"])
    if role == "step":  # numbers with few gaps between them, or equal ones
        return column.gap < 2 or (column.gap.is_integer() and column.distinct < column.rows)
    return role != "reward" or column.numbers


def has_hint(name: str, hints: Sequence[str]) -> bool:
    """Tells whether a column's name, or a word of it (also in the plural), is one of the hints."""
    words = "".join(sign if sign.isalnum() else " " for sign in name.lower()).split()
    known = {name.lower(), *words, *(word.removesuffix("s") for word in words)}
    return not known.isdisjoint(hints)


def description_text(
    description: Description,
    columns: Sequence[Column],
    guesses: Mapping[str, Guess],
    folder: Path,
    after: Mapping[str, Sequence[str]],
) -> str:
    """Fills in the template of descriptions; `after` has column values that only last rows have."""
    by_name = {column.name: column for column in columns}
    used = {role: [by_name[name] for name in chosen.columns] for role, chosen in guesses.items()}
    taken = {*chain(*used.values())}
    others = [column for column in columns if column not in taken]
    later = [column.name for column in others if has_hint(column.name, LATER)]
    files = several(description.files)
    policy = Path(files[0]).with_name(f"{Path(files[0]).stem}_policy.csv")
    environment = Environment(
        loader=PackageLoader("surestep.pipeline"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"written": written, "key": key_text, "sql": sql_name, "text": sql_text}
    return environment.get_template("description.toml.jinja").render(
        files=[from_folder(file, folder) for file in files],
        reader=description.reader.given(),
        step=next(iter(used.get("step", ())), None),
        roles=ROLES,
        guesses=guesses,
        others=[column.name for column in others],
        later=later,
        after=after,
        costs=[name for name in later if has_hint(name, COSTS)],
        missing=[
            x
            for x in columns
            if x.missing and x not in others and x not in used.get("next_state", ())
        ],
        fine=[x for x in used.get("state", ()) if x.numbers and x.distinct > FEW],
        policy=from_folder(policy, folder) if policy.is_file() else "",
        rewards=used.get("reward", ()),
    )


def from_folder(file: str | Path, folder: Path) -> str:
    """Returns the name of a file as seen from a folder."""
    return Path(os.path.relpath(file, folder)).as_posix()
