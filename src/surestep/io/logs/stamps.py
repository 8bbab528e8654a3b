"""Time stamps in place of numbers of steps: the order of rows.

A stamp is written as ISO 8601 says (2025-03-31, 2025-03-31 14:05, 2025-03-31T14:05:09Z), or in the
form that a user gives. 03/04/2025 may be in March or in April, so nobody guesses.
"""

from __future__ import annotations

import re

from surestep.errors import said
from surestep.io.sql import sql_name, sql_text

ISO = (
    r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?\s*(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?\s*"
)
DATE = r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}"
EITHER_WAY = r"\s*(0?[0-9]|1[0-2])[./-](0?[0-9]|1[0-2])[./-][0-9]"  # day and month could be swapped
TIME = '"surestep time"'


def is_stamp_type(kind: str) -> bool:
    """Tells whether values of a type, as DuckDB calls it, are dates or times."""
    return kind == "DATE" or kind.startswith("TIMESTAMP")


def stamp_sql(column: str, kind: str, form: str | None) -> str:
    """Returns SQL: the stamp of a column as a TIMESTAMP, NULL where it is none."""
    name = sql_name(column)
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"({name} AT TIME ZONE 'UTC')"
    if is_stamp_type(kind):
        return f"CAST({name} AS TIMESTAMP)"
    text = f"trim(CAST({name} AS VARCHAR))"
    if form is not None:
        return f"try_strptime({text}, {sql_text(form)})"
    plain = f"replace({text}, ',', '.')"
    zoned = rf"regexp_matches({plain}, ':[0-9.]+\s*(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)$')"
    return (
        f"CASE WHEN regexp_full_match({text}, {sql_text(ISO)}) THEN CASE WHEN {zoned} "
        f"THEN TRY_CAST({plain} AS TIMESTAMPTZ) AT TIME ZONE 'UTC' "
        f"ELSE TRY_CAST({plain} AS TIMESTAMP) END END"
    )


def reads_stamp(text: str) -> bool:
    """Tells whether a text is a stamp as ISO 8601 writes it."""
    return re.fullmatch(ISO, text, re.ASCII) is not None


def advice(text: str | None) -> str:
    """Returns how to say what form a stamp has that may be one, as the end of a sentence."""
    if text is not None and re.fullmatch("[0-9]{10}", text, re.ASCII):
        return " (if it is seconds since 1970, a query makes a time stamp of it: to_timestamp)"
    month = text is not None and re.fullmatch("[0-9]{4}-[0-9]{2}", text, re.ASCII)
    if text is None or reads_stamp(text) or not (month or re.search(DATE, text, re.ASCII)):
        return ""
    ways = (
        "%Y-%m"
        if month
        else "%d/%m/%Y or %m/%d/%Y"
        if re.match(EITHER_WAY, text, re.ASCII)
        else "%d/%m/%Y"
    )
    option = said("reader={'timestampformat': …}", "--set reader.timestampformat=…")
    return f" (if it is a date, say how it is written with {option}, such as {ways})"
