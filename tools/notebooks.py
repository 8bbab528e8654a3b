"""Pages of the gallery as Jupyter notebooks (nbformat 4.5): text, code and what the code prints."""

import base64
import json
import re
from pathlib import Path

from gallery import Block, blocks, commands, marks

NEEDS = (
    "*This notebook is a page of surestep's gallery. It needs {}, and beside it the folder "
    "`examples` of surestep's repository.*"
)


def notebook(path: Path) -> str:
    """Returns the notebook of a page, as JSON."""
    page = path.read_text(encoding="utf-8")
    packages = ["surestep with its extra `plots`", *(f"`{name}`" for name in marks(page, "needs"))]
    cells = [markdown_cell(NEEDS.format(" and ".join(packages)), path)]
    text = ""  # since the last cell
    end = 0
    above = None
    for block in blocks(page):
        text += page[end : block.start]
        end = block.end
        code = typed(block)
        if block.prints_of(above):
            cells[-1]["outputs"] = printed(block.text)
        elif code is not None:
            cells.append(markdown_cell(text, path))
            cells.append(code)
            text = ""
        else:  # a block of another language
            text += page[block.start : block.end]
        above = block
    cells.append(markdown_cell(text + page[end:], path))
    cells = [cell for cell in cells if cell["source"]]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "cells": cells,
    }
    return json.dumps(made, ensure_ascii=False, indent=1) + "\n"


def typed(block: Block) -> dict[str, object] | None:
    """Returns the cell of a block that is run or written to a file; none for other blocks."""
    if block.mark.startswith("file: "):
        return code_cell(f"%%writefile {block.mark.removeprefix('file: ')}\n{block.text}", "")
    if block.kind == "python":
        return code_cell(block.text, "")
    if block.kind == "console":
        parts = list(commands(block.text))
        lines = "".join(re.sub(r"^\$ ", "!", command) for command, _ in parts)
        return code_cell(lines, "".join(said for _, said in parts))
    return None


def code_cell(source: str, said: str) -> dict[str, object]:
    """Returns a cell of code, with what it printed when the page was made."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "source": source.rstrip("\n"),
        "outputs": printed(said),
    }


def printed(text: str) -> list[dict[str, object]]:
    """Returns a text as the outputs of a cell."""
    return [{"output_type": "stream", "name": "stdout", "text": text}] if text else []


def markdown_cell(text: str, path: Path) -> dict[str, object]:
    """Returns a cell of text: pictures are in it, and links to other pages are plain words."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"(?<!!)\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", text)
    cell: dict[str, object] = {"cell_type": "markdown", "metadata": {}}
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    if pictures:
        encoded = {name: base64.b64encode((path.parent / name).read_bytes()) for name in pictures}
        cell["attachments"] = {
            name: {"image/svg+xml": picture.decode()} for name, picture in encoded.items()
        }
    cell["source"] = re.sub(r"(!\[[^\]]*\]\()", r"\1attachment:", text).strip()
    return cell
