"""Writes the arguments that several verbs share into their docstrings.

python tools/docstrings.py [--write]

A key of a description is explained once, by its field in `surestep.description`, and so are a few
other arguments, here. Without --write, docstrings that say something else are listed, and the exit
code is 1. Arguments that only one verb has are written by hand.
"""

import ast
import json
import re
import sys
import textwrap
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import surestep.description as keys

SOURCES = Path(__file__).parent.parent / "src" / "surestep"
VERBS = {
    "pipeline/improve.py": ("improve",),
    "pipeline/certify.py": ("certify_result",),
    "pipeline/verify.py": ("verify_result",),
    "pipeline/rehearse.py": ("rehearse_log",),
    "io/logs/source.py": ("read_log",),
}
# What Python takes besides what a description can say.
TYPES = {
    "algorithm": 'str or Algorithm, default "spibb"',
    "behavior": "str, path or table, optional",
    "states": "path, table or sequence, optional",
    "actions": "path, table or sequence, optional",
    "possible": 'path, table or "seen", optional',
    "allowed": "path or table, optional",
    "certificates": "sequence of str or Certifier, optional",
}
OTHERS = {
    "directory": ("str or path", "The folder of a saved result."),
    "workers": ("int, default 1", "Processes of this machine that do the stress test."),
    "engine": ('{"local", "ray"}', "Do the stress test here, or on a Ray cluster."),
    "address": ("str, optional", 'The Ray cluster, such as "auto" or "head:6379".'),
    "time_limit": (
        "float, optional",
        "Seconds after which the stress test ends; the result says how many worlds were reached.",
    ),
    "memory_limit": ("str, optional", 'Such as "2GB"; the rest spills to disk.'),
    "progress": (
        "bool or callable, optional",
        "True shows a bar. A function is called with what is being done, how much of it is done, "
        "and of how much.",
    ),
    "allow_query": (
        "bool, default False",
        "Run the query that the result was made by, which is not in a description of yours.",
    ),
}
OF_RESULT = ("certify_result",)  # where nothing is said, these take what the result was made with
OF_ITS_OWN = {"verify_result": ("worlds",)}  # these mean something else there
LONGEST = 100  # columns
FAR = 1e9  # a bound beyond this is none for readers


def shared(*, of_result: bool = False) -> dict[str, tuple[str, str]]:
    """Returns the type and the meaning of every argument that is explained once.

    Defaults are those of an improvement, or what a result was made with.
    """
    known = dict(OTHERS)
    hints = get_type_hints(keys.Description, include_extras=True)
    places = {name: path for name, path in keys.PATHS.items() if path in keys.HELP}
    places |= {name: name for name in hints if name not in keys.TABLES or name in keys.HELP}
    for name, path in places.items():
        table, _, key = path.rpartition(".")
        own = get_type_hints(keys.TABLES[table], include_extras=True) if table else hints
        usual = "the result's own" if of_result else keys.DEFAULTS.get(name)
        known[name] = explained(name, own[key], keys.HELP[path], usual)
    for name in ("columns", "unsafe", "groups"):
        known[name] = explained(name, dict, hints[name].__metadata__[0].description)
    return known


def explained(name: str, kind: Any, meaning: str, default: Any = None) -> tuple[str, str]:
    """Returns the type of an argument with its default, and what it means."""
    if default is None:
        return TYPES.get(name, f"{plain_type(kind)}, optional"), meaning
    if isinstance(default, str) and " " in default:
        said = TYPES.get(name, f"{plain_type(kind)}, optional")
        return said, f"{meaning} Default: {default}."
    shown = f'"{default}"' if isinstance(default, str) else default
    return TYPES.get(name, f"{plain_type(kind)}, default {shown}"), meaning


def plain_type(kind: Any) -> str:
    """Returns a type as a reader would say it.

    >>> plain_type(keys.Share | None), plain_type(Literal["a", "b"]), plain_type(keys.Several)
    ('float in (0, 1)', '{"a", "b"}', 'str or sequence of str')
    """
    if get_origin(kind) is Annotated:
        bare, *metas = get_args(kind)
        return plain_type(bare) + "".join(map(span, metas)) * (bare is float)
    if get_origin(kind) in (Union, UnionType):
        options = [option for option in get_args(kind) if option is not NoneType]
        texts = [plain_type(option) for option in options]
        if len(texts) > 1:
            texts = [text.removeprefix("{").removesuffix("}") for text in texts]
        return " or ".join(texts)
    if get_origin(kind) is Literal:
        words = ", ".join(json.dumps(word) for word in get_args(kind))
        return f"{{{words}}}"
    if get_origin(kind) is tuple and ... in get_args(kind):
        return f"sequence of {plain_type(get_args(kind)[0])}"
    if get_origin(kind) is tuple:
        return f"({', '.join(map(plain_type, get_args(kind)))})"
    is_table = (get_origin(kind) or kind) is dict or issubclass(kind, keys.Part)
    return "mapping" if is_table else kind.__name__


def span(meta: Any) -> str:
    """Returns the bounds of numbers, such as ' in (0, 1)'; nothing where they do not matter."""
    low = meta.gt if meta.ge is None else meta.ge
    high = meta.lt if meta.le is None else meta.le
    if low is None or high is None or high > FAR:
        return ""
    return f" in {'(' if meta.ge is None else '['}{low}, {high}{')' if meta.le is None else ']'}"


def arguments_in(section: str) -> dict[str, str]:
    """Returns the entries of a section of parameters by their names."""
    entries = re.split(r"^ {4}(?=\S)", section, flags=re.MULTILINE)[1:]
    return {re.match(r"\w+", entry)[0]: f"    {entry.rstrip()}" for entry in entries}


def entry(name: str, kind: str, meaning: str) -> str:
    """Returns the entry of one argument."""
    indent = " " * 8
    return f"    {name} : {kind}\n" + textwrap.fill(
        meaning, LONGEST, initial_indent=indent, subsequent_indent=indent, break_long_words=False
    )


def rewritten(text: str, verb: str) -> str:
    """Returns the text of a module in which one verb's docstring has the shared explanations."""
    tree = ast.parse(text)
    (node,) = (x for x in tree.body if isinstance(x, ast.FunctionDef) and x.name == verb)
    names = [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
    start = text.index("    Parameters\n    ----------\n", text.index(f"def {verb}("))
    start += len("    Parameters\n    ----------\n")
    end = re.compile(r"^ *\n(?= {4}\S.*\n {4}-+$)", re.MULTILINE).search(text, start).start()
    written, known = arguments_in(text[start:end]), shared(of_result=verb in OF_RESULT)
    for name in OF_ITS_OWN.get(verb, ()):
        del known[name]
    lines = [entry(name, *known[name]) if name in known else written[name] for name in names]
    return text[:start] + "\n".join(lines) + "\n" + text[end:]


def outdated(*, write: bool = False) -> list[str]:
    """Returns the verbs whose docstrings differ from what is explained once, and mends them."""
    found = []
    for name, verbs in VERBS.items():
        path = SOURCES / name
        for verb in verbs:
            text = path.read_text(encoding="utf-8")
            new = rewritten(text, verb)
            if new != text:
                found.append(f"{name}: {verb}")
                if write:
                    path.write_text(new, encoding="utf-8")
    return found


if __name__ == "__main__":
    differing = outdated(write="--write" in sys.argv)
    print("\n".join(differing) or "all docstrings say what the description says")
    sys.exit(bool(differing) and "--write" not in sys.argv)
