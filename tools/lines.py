"""Counts the modules and lines of code of each room, without blanks, comments and docstrings.

python tools/lines.py [FOLDER [--check]]

--check fails where a package is above its budget in pyproject.toml ([tool.surestep.budgets]); who
raises one does so in the same commit, with the reason in its message.
"""

import ast
import io
import sys
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

SILENT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}


def lines_of_code(text: str) -> int:
    """Returns how many lines of a module have code on them."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def counted(root: Path) -> tuple[Counter[str], Counter[str]]:
    """Returns the modules and the lines of each room."""
    modules, lines = Counter[str](), Counter[str]()
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parent.as_posix()
        modules[room] += 1
        lines[room] += lines_of_code(path.read_text(encoding="utf-8"))
    return modules, lines


def beyond(lines: Counter[str], budgets: dict[str, int]) -> list[str]:
    """Returns what is wrong with the budgets: rooms above theirs, without one, or not there.

    A room inside another one is part of it, unless it has a budget of its own.
    """
    spent = Counter[str]()
    for room, number in lines.items():
        owners = [name for name in budgets if f"{room}/".startswith(f"{name}/")]
        spent[max(owners, key=len, default=room)] += number
    return [
        f"{room} has {spent[room]:,} lines of code, and its budget is {budgets.get(room, 0):,}"
        for room in sorted({*spent, *budgets})
        if not 0 < spent[room] <= budgets.get(room, 0)
    ]


def main(folder: str = "src/surestep", *words: str) -> None:
    """Prints the lines of each room; with --check, fails where one is above its budget."""
    modules, lines = counted(Path(folder))
    for room in sorted(lines):
        print(f"{room:20} {modules[room]:4} modules {lines[room]:6,} lines")
    print(f"{'all':20} {modules.total():4} modules {lines.total():6,} lines")
    if "--check" in words:
        project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
        faults = beyond(lines, project["tool"]["surestep"]["budgets"])
        sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
