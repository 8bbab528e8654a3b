"""Describing a log: a look at its columns, a guess of what they are, and a file that says both."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from surestep.description import Description, key_text, several, written
from surestep.io.labels.bin_rules import number_sql
from surestep.io.logs.columns import ROLES
from surestep.io.logs.source import types_of
from surestep.io.logs.stamps import stamp_sql
from surestep.io.logs.tables import connected, find_table
from surestep.io.sql import sql_name

FEW = 30  # different values of a column that may be a part of the state as it is
LOOKED_AT = 100_000  # rows
# Words in names of columns that tell what they are, where none has a name of the role itself.
HINTS = {
    "episode": ("case", "patient", "stay", "session", "user", "customer", "trace", "id"),
    "step": ("time", "timestamp", "date", "day", "week", "hour", "index"),
    "action": ("decision", "treatment", "dose", "choice", "arm", "activity", "event", "offer"),
    "reward": ("return", "profit", "cost", "revenue", "payoff", "score", "click", "spend"),
}


class Column(NamedTuple):
    """What a look at a column has found."""

    name: str
    distinct: int
    missing: int
    numbers: bool  # all that is there are numbers
    stamps: bool  # or time stamps
    least: float | None
    greatest: float | None


class Guess(NamedTuple):
    """A column for a role, and why."""

    columns: tuple[str, ...]
    why: str


def describe(description: Description, folder: Path) -> str:
    """Returns a description of a log as TOML, with what was guessed and why as comments.

    It is to lie in the folder, and names its files from there.
    """
    table = find_table(description)
    with connected(table) as database:
        types = types_of(database)
        columns = look(database, types)
        guesses = guess(database, columns)
    return text_of(description, columns, guesses, folder)


def look(database: Any, types: Mapping[str, str]) -> list[Column]:
    """Returns what each column holds, in the first rows."""
    parts = list[str]()
    for name, kind in types.items():
        number, stamp = number_sql(name, kind), stamp_sql(name, kind, None)
        there = f"count({sql_name(name)})"
        parts += [
            f"count(DISTINCT {sql_name(name)})",
            f"count(*) - {there}",
            f"count({number}) = {there} AND {there} > 0",
            f"count({stamp}) = {there} AND {there} > 0",
            f"min({number})",
            f"max({number})",
        ]
    rows = f"(SELECT * FROM log LIMIT {LOOKED_AT})"
    facts = database.execute(f"SELECT {', '.join(parts)} FROM {rows}").fetchone()
    return [Column(name, *facts[6 * i : 6 * i + 6]) for i, name in enumerate(types)]


def guess(database: Any, columns: Sequence[Column]) -> dict[str, Guess]:
    """Returns the columns of each role: by their names, else by hints in names and content."""
    guesses = dict[str, Guess]()
    free = {column.name: column for column in columns}
    for role, usual in ROLES.items():
        for name in usual.aliases:
            same = [column for column in free if column.lower() == name]
            if same:
                guesses[role] = Guess((same[0],), "by its name")
                free.pop(same[0])
                break
    for role, hints in HINTS.items():
        likely = [column for column in free.values() if has_hint(column.name, hints)]
        if role == "step":
            likely = [column for column in likely if column.stamps or column.numbers]
        if role == "reward":
            likely = [column for column in likely if column.numbers]
        if role == "episode":
            likely = [column for column in likely if column.distinct > 1]
        if role not in guesses and likely and (role != "step" or "episode" in guesses):
            guesses[role] = Guess((likely[0].name,), "a guess by its name")
            free.pop(likely[0].name)
    if "state" not in guesses:
        following = {f"next_{name}" for name in free}
        fit = [
            column.name
            for column in free.values()
            if column.distinct > 1 and column.name not in following and not column.stamps
            and (column.distinct <= FEW or column.numbers)
        ]  # fmt: skip
        if fit:
            why = "a guess: what varies; leave out what is known only after the decision"
            guesses["state"] = Guess(tuple(fit), why)
    return guesses


def has_hint(name: str, hints: Sequence[str]) -> bool:
    """Tells whether a word in the name of a column is one of the hints."""
    words = "".join(sign if sign.isalnum() else " " for sign in name.lower()).split()
    return any(hint in words for hint in hints)


def text_of(
    description: Description, columns: Sequence[Column], guesses: Mapping[str, Guess], folder: Path
) -> str:
    """Returns the text of the file."""
    files = several(description.files)
    names = [from_folder(file, folder) for file in files]
    by_name = {column.name: column for column in columns}
    lines = [f"files = {written(names)}"]
    if description.reader.given():
        lines.append(f"reader = {written(description.reader.given())}")
    lines += ['# query = "SELECT * FROM log WHERE …"  # where rows need preparing: docs/recipes.md']
    told = {"terminated", "truncated", "next_state"} & guesses.keys()
    if "episode" in guesses and not told:
        lines += [
            "# How do episodes end? No column tells. Choose one, if it is true:",
            '# ends = "complete"  # the last row of every episode ends it',
            '# ends = "clock"     # recording stops after so many steps, or at a date',
        ]
    lines += ["", "[columns]"]
    for role in ROLES:
        if role in guesses:
            value = guesses[role].columns
            shown = written(list(value) if len(value) > 1 else value[0])
            lines.append(f"{role} = {shown}  # {guesses[role].why}")
        elif ROLES[role].needed:
            lines.append(f"# {role} = {written(ROLES[role].aliases[0])}  # not found: name it")
    used = {name for each in guesses.values() for name in each.columns}
    others = [column.name for column in columns if column.name not in used]
    if others:
        lines.append(f"# not used: {', '.join(map(written, others))}")
    fine = [
        by_name[name]
        for name in guesses["state"].columns
        if by_name[name].numbers and by_name[name].distinct > FEW
    ] if "state" in guesses else []  # fmt: skip
    lines += ["", "[bins]"] if fine else []
    for column in fine:
        note = f"{column.distinct:,} different numbers; or width, or edges"
        lines.append(f"{key_text(column.name)} = {{ quantiles = 10 }}  # {note}")
    lines += ["", "[behavior]", *behavior_lines(files, guesses, folder), "", "[stakes]"]
    lines.append("discount = 0.95  # choose it: how much the next step counts, from 0 to 1")
    if "reward" in guesses:
        reward = by_name[guesses["reward"].columns[0]]
        if reward.least is not None and reward.greatest is not None:
            seen = written([reward.least, reward.greatest])
            lines += [
                f"# The log shows rewards from {reward.least:g} to {reward.greatest:g}. What can a "
                "step earn at least and at most, also if no row shows it?",
                f"# running = {seen}  # a step after which it goes on",
                f"# ending = {seen}  # a step that ends its episode",
            ]
    return "\n".join(lines) + "\n"


def behavior_lines(files: Sequence[str], guesses: Mapping[str, Guess], folder: Path) -> list[str]:
    """Returns what is said of the policy that made the log."""
    beside = Path(files[0]).with_name(f"{Path(files[0]).stem}_policy.csv")
    if beside.is_file():
        name = written(from_folder(beside, folder))
        return [f"policy = {name}  # there is such a file beside the log"]
    if "propensity" in guesses:
        return ["# its probabilities are in the log"]
    return ['policy = "estimate"  # or a table of state, action, probability, which is better']


def from_folder(file: str | Path, folder: Path) -> str:
    """Returns the name of a file as seen from a folder."""
    return Path(os.path.relpath(file, folder)).as_posix()
