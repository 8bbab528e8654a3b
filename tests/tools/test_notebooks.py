"""Every page of the gallery is also a notebook with the same code, by the rules of nbformat 4.5."""

import ast
import json
import re

import pytest

from gallery import GALLERY, blocks
from notebooks import notebook

PAGES = sorted(path for path in GALLERY.glob("*.md") if path.stem != "index")
KEYS = {
    "markdown": {"cell_type", "id", "metadata", "source"},
    "code": {"cell_type", "id", "metadata", "source", "outputs", "execution_count"},
}


@pytest.fixture(params=PAGES, ids=lambda path: path.stem)
def page(request):
    return request.param


def cells_of(path, kind):
    cells = json.loads(notebook(path))["cells"]
    return [cell for cell in cells if cell["cell_type"] == kind]


def test_it_follows_the_schema(page):
    made = json.loads(notebook(page))
    assert set(made) == {"nbformat", "nbformat_minor", "metadata", "cells"}
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert made["metadata"]["kernelspec"]["name"] == "python3"
    names = [cell["id"] for cell in made["cells"]]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
    for cell in made["cells"]:
        assert set(cell) - {"attachments"} == KEYS[cell["cell_type"]]
        assert isinstance(cell["source"], str)
        assert cell["source"]
        for output in cell.get("outputs", []):
            assert set(output) == {"output_type", "name", "text"}
            assert (output["output_type"], output["name"]) == ("stream", "stdout")


def test_it_has_the_code_of_the_page_in_its_order(page):
    written = blocks(page.read_text(encoding="utf-8"))
    python = [
        block.text.rstrip("\n")
        for block in written
        if block.kind == "python" and not block.mark.startswith("file: ")
    ]
    sources = [cell["source"] for cell in cells_of(page, "code")]
    assert [source for source in sources if source[0] not in "!%"] == python
    for source in python:
        ast.parse(source)
    files = [block for block in written if block.mark.startswith("file: ")]
    assert [source.partition("\n")[2] for source in sources if source[0] == "%"] == [
        block.text.rstrip("\n") for block in files
    ]


def test_it_types_each_command_and_shows_its_answer():
    commands = [cell for cell in cells_of(GALLERY / "pumps.md", "code") if cell["source"][0] == "!"]
    inspected, improved, _ = commands
    assert inspected["source"].startswith("!surestep inspect examples/pumps.csv --state condition")
    assert inspected["outputs"][0]["text"].startswith("examples/pumps.csv\n…\n")
    first, *_, last = improved["source"].splitlines()
    assert first.endswith("\\")
    assert last.startswith("!surestep verify result")
    assert "Adopt it" in improved["outputs"][0]["text"]


def test_it_shows_what_python_prints():
    shown = {
        cell["source"][-20:]: cell["outputs"] for cell in cells_of(GALLERY / "pumps.md", "code")
    }
    texts = [output["text"] for outputs in shown.values() for output in outputs]
    assert "habit 858.9, new policy 1241.7, best 1241.7\n" in texts


def test_its_text_needs_no_other_file(page):
    for cell in cells_of(page, "markdown"):
        links = re.findall(r"\]\(([^)]*)\)", cell["source"])
        pictures = {f"attachment:{name}" for name in cell.get("attachments", {})}
        assert {link for link in links if not link.startswith("https://")} == pictures
        assert "<!--" not in cell["source"]


def test_the_first_cell_names_what_it_needs():
    assert "`ray`" in cells_of(GALLERY / "cluster.md", "markdown")[0]["source"]
