"""Counts the modules and statements of each package.

python tools/statements.py [FOLDER [--check]]

A statement is an `ast.stmt`, so the count does not depend on how the code is laid out.

--check fails where a package is above its budget in pyproject.toml ([tool.surestep.budgets]); who
raises one does so in the same commit, with the reason in its message.
"""

import ast
import sys
import tomllib
from collections import Counter
from pathlib import Path


def number_of_statements(text: str) -> int:
    """Returns the number of statements of a module; a docstring is one, too."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(text)))


def counted(root: Path) -> tuple[Counter[str], Counter[str]]:
    """Returns the number of modules and of statements of each package."""
    modules, statements = Counter[str](), Counter[str]()
    for path in root.rglob("*.py"):
        package = path.relative_to(root).parent.as_posix()
        modules[package] += 1
        statements[package] += number_of_statements(path.read_text(encoding="utf-8"))
    return modules, statements


def beyond(statements: Counter[str], budgets: dict[str, int]) -> list[str]:
    """Lists packages above their budget, without one, or budgets of packages that do not exist.

    A package inside another one is part of it, unless it has a budget of its own.
    """
    spent = Counter[str]()
    for package, number in statements.items():
        owners = [name for name in budgets if f"{package}/".startswith(f"{name}/")]
        spent[max(owners, key=len, default=package)] += number
    return [
        f"{package} has {spent[package]:,} statements, its budget is {budgets.get(package, 0):,}"
        for package in sorted({*spent, *budgets})
        if not 0 < spent[package] <= budgets.get(package, 0)
    ]


def main(folder: str = "src/surestep", *words: str) -> None:
    """Prints the statements of each package; with --check, fails where one is above its budget."""
    modules, statements = counted(Path(folder))
    for package in sorted(statements):
        print(f"{package:20} {modules[package]:4} modules {statements[package]:6,} statements")
    print(f"{'all':20} {modules.total():4} modules {statements.total():6,} statements")
    if "--check" in words:
        project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
        faults = beyond(statements, project["tool"]["surestep"]["budgets"])
        sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
