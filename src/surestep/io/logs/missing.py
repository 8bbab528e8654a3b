"""Rules for missing values: refused, the recording cut, or a label of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from surestep.errors import InvalidParameter, said
from surestep.io.logs.columns import ColumnMapping
from surestep.io.sql import sql_name, sql_text

RULES = ("refuse", "drop", "label")
LABEL = "missing"
GONE = '"surestep gone"'
CUT_SHORT = "a value is missing there, or earlier in the episode"


def read_missing(options: Sequence[str]) -> dict[str, str]:
    """Returns the rule of each column: 'lactate=drop'; the last word of an option is the rule."""
    rules = dict[str, str]()
    for option in options:
        column, equals, rule = option.rpartition("=")
        if not equals or not column or rule not in RULES:
            raise InvalidParameter(
                f"missing is {option!r}, expected COLUMN={'|'.join(RULES)}, such as lactate=drop"
            )
        if column in rules:
            raise InvalidParameter(f"missing is given twice for column {column!r}, expected once")
        rules[column] = rule
    return rules


def advice(column: str, text: str | None, rules: Sequence[str]) -> str:
    """Returns what can be done where nothing is, as the end of a sentence; else nothing."""
    if not rules or (text is not None and text.strip().lower() not in ("", "nan")):
        return ""
    ways = {
        "drop": "the recording of its episode then ends there",
        "label": f"then it is the label {LABEL!r}",
    }
    given = [(f"{column}={rule}", ways[rule]) for rule in rules]
    options = [f"{said(f'missing={[rule]}', f'--missing {rule}')}: {way}" for rule, way in given]
    return f" ({'; or '.join(options)})"


def is_missing(column: str, kind: str) -> str:
    """Returns SQL: nothing is there, or not-a-number, or text without a letter."""
    name = sql_name(column)
    if kind in ("FLOAT", "DOUBLE"):
        return f"({name} IS NULL OR isnan({name}))"
    if kind == "VARCHAR":
        return f"({name} IS NULL OR trim({name}) = '')"
    return f"({name} IS NULL)"


@dataclass(frozen=True, slots=True)
class MissingLabels:
    """Missing values that become a label: 'missing'."""

    columns: Mapping[str, str]  # column → type

    def sql(self, rows: str) -> str:
        """Returns the SQL of the rows with labels where nothing was."""
        labels = [
            f"CASE WHEN {is_missing(name, kind)} THEN {sql_text(LABEL)} "
            f"ELSE CAST({sql_name(name)} AS VARCHAR) END AS {sql_name(name)}"
            for name, kind in self.columns.items()
        ]
        return f"SELECT * REPLACE ({', '.join(labels)}) FROM ({rows})"


@dataclass(frozen=True, slots=True)
class CutWhereMissing:
    """Recordings that stop before a row with a missing value, so that no rows become neighbours.

    Without episodes, each such row is left out by itself.
    """

    columns: Mapping[str, str]  # column → type
    mapping: ColumnMapping

    def marked(self, rows: str) -> str:
        """Returns the SQL of all rows, those that are left out marked as gone."""
        bad = " OR ".join(is_missing(name, kind) for name, kind in self.columns.items())
        if self.mapping.episode is None or self.mapping.step is None:
            return f"SELECT *, ({bad}) AS {GONE} FROM ({rows})"
        episode, step = sql_name(self.mapping.episode), sql_name(self.mapping.step)
        order = f"coalesce(TRY_CAST({step} AS DOUBLE), 0)"
        return (
            f"SELECT *, bool_or({bad}) OVER (PARTITION BY {episode} ORDER BY {order} "
            f"ROWS UNBOUNDED PRECEDING) AS {GONE} FROM ({rows})"
        )

    def sql(self, rows: str) -> str:
        """Returns the SQL of the rows that are kept."""
        return f"SELECT * EXCLUDE ({GONE}) FROM ({self.marked(rows)}) WHERE NOT {GONE}"
