"""Counts the modules and lines of code of each room, without blanks, comments and docstrings.

python tools/lines.py [FOLDER]
"""

import ast
import io
import sys
import tokenize
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


def main(folder: str = "src/surestep") -> None:
    root = Path(folder)
    modules, lines = Counter[str](), Counter[str]()
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parent.as_posix()
        modules[room] += 1
        lines[room] += lines_of_code(path.read_text(encoding="utf-8"))
    for room in sorted(lines):
        print(f"{room:20} {modules[room]:4} modules {lines[room]:6,} lines")
    print(f"{'all':20} {modules.total():4} modules {lines.total():6,} lines")


if __name__ == "__main__":
    main(*sys.argv[1:])
