"""Tables of docs/algorithms.md are what the classes declare, that of docs/logs.md has every key."""

from dataclasses import fields
from pathlib import Path

import pytest

from contract.settings import SETTINGS
from surestep.algorithms import ALGORITHMS, Promise
from surestep.description import TABLES, Description

PAGE = Path(__file__).parents[2] / "docs" / "algorithms.md"


def table(heading):
    """The rows of the table under a heading, by their first cell."""
    lines = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    rows = [line.replace(r"\|", "∣").strip("|").split("|") for line in lines if line[:1] == "|"]
    cells = [[cell.strip() for cell in row] for row in rows]
    return {row[0]: row[1:] for row in cells[2:]}, cells[0][1:]


PROMISES, COLUMNS = table("Promises")
SETTINGS_TABLE, _ = table("Methods and settings")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_row_of_an_algorithm_says_what_it_declares(name):
    for algorithm in SETTINGS[name]:
        row = PROMISES[f"`{name}`"]
        assert len(row) == len(COLUMNS) == len(Promise)
        declared = ["✓" if promise in algorithm.promises else "" for promise in Promise]
        assert row == declared, algorithm


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_settings_of_an_algorithm_are_listed(name):
    listed = SETTINGS_TABLE[f"`{name}`"][-1]
    names = [field.name for field in fields(ALGORITHMS[name])]
    names = [each for each in names if each not in ("step", "iterate")]  # what names stand for
    assert listed == ", ".join(f"`{each}`" for each in names)


def test_the_page_lists_no_other_algorithms():
    assert set(SETTINGS_TABLE) == {f"`{name}`" for name in ALGORITHMS}
    assert set(PROMISES) == set(SETTINGS_TABLE)


def test_the_columns_are_the_promises():
    for column, promise in zip(COLUMNS, Promise, strict=True):
        assert column.split()[0] in promise.value


LOGS = Path(__file__).parents[2] / "docs" / "logs.md"


@pytest.mark.parametrize("table", ["", *TABLES])
def test_the_page_on_logs_names_every_key_of_a_description(table):
    page = LOGS.read_text(encoding="utf-8").split("## All keys of a description\n")[1]
    keys = page.split("\n## ")[0]
    for name in TABLES.get(table, Description).__struct_fields__:
        assert any(f"{before}{name}" in keys for before in ("`", "[")), name
