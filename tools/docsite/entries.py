"""Entries of the reference: docstrings as they are written here, fields, and what is raised."""

import inspect
import io
import re
import tokenize
from dataclasses import fields, is_dataclass

from docsite import errors_of, public
from docsite.arguments import MEANING, unexplained

MARKED = re.compile(r"(`[^`]*`)")  # what stands in code is left alone
ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")  # what Sphinx leaves of one inside another
OWN_WORDS = re.compile(r"\||(?<=\w)_(?=\W|$)|(?<=/)\*")  # no substitution, target or emphasis


def setup(app):
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", short_types)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def process(app, what, name, value, options, lines):
    """Turns a docstring into what Sphinx reads, and adds what the code says besides."""
    if what == "data":  # Sphinx found the docstring of its type
        lines.clear()
    lines[:] = kept_formulas([escaped(line) for line in lines])
    if name not in public.names():
        return
    if what == "class":
        lines += described_fields(value)
    elif what == "function":
        lines += [
            "",
            *(f":param {arg}: {escaped(MEANING[key])}" for arg, key in unexplained(value)),
        ]
    if app.builder.name != "dummy":  # the quick form, which only looks where links lead
        lines += raised(value)


def short_types(app, what, name, value, options, arguments, returned):
    """Returns a signature in which types of arrays have the names that the code has for them."""
    return tuple(text and ALIAS.sub(r"\1", text) for text in (arguments, returned))


def escaped(line):
    """Returns a line in which bars and underscores are themselves."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    parts = MARKED.split(line)
    parts[::2] = [OWN_WORDS.sub(lambda found: f"\\{found[0]}", part) for part in parts[::2]]
    return "".join(parts)


def kept_formulas(lines):
    """Returns the lines, with blocks that are indented by four shown as they are."""
    made, before, blank = [], 0, False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line.strip() and blank and indent >= before + 4:
            made += [" " * before + "::", ""]
        made.append(line)
        blank = not line.strip()
        if not blank and not (made and indent >= before + 4):
            before = indent
    return made


def described_fields(kind):
    """Returns what the comments beside the fields of a class say, as a list of fields."""
    said = comments(kind)
    given = set(inspect.signature(kind).parameters)
    listed = [
        f":{'param' if name in given else 'ivar'} {name}: {escaped(said[name])}"
        for name in field_names(kind)
        if said.get(name)
    ]
    return ["", *listed] if listed else []


def field_names(kind):
    if is_dataclass(kind):
        return [field.name for field in fields(kind)]
    return list(getattr(kind, "_fields", ()))


def comments(kind):
    """Returns the comments behind, or in lines of their own above, the fields of a class."""
    node = errors_of.definitions(kind.__module__)[kind.__qualname__]
    lines = errors_of.file_of(kind.__module__).read_text(encoding="utf-8").splitlines(keepends=True)
    source = "".join(lines[node.lineno - 1 : node.end_lineno])
    said, above, name = {}, [], None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        text = token.string.lstrip("# ")
        if token.type == tokenize.COMMENT and not text.startswith(("type:", "noqa")):
            if token.line.lstrip().startswith("#"):
                above.append(text)
            elif name:
                said[name] = " ".join([*above, text.split("  #")[0]])
                above = []
        elif token.type == tokenize.NAME and token.start[1] == 4 and ":" in token.line:
            name = token.string
            if above:
                said[name], above = " ".join(above), []
        elif token.type == tokenize.NAME and token.string == "def":
            break
    return said


def raised(value):
    """Returns which errors a public thing may raise, and what each of them means."""
    kinds = [public.names()[name] for name in errors_of.names_of(value)]
    return ["", *(f":raises {kind.__name__}: {first_sentence(kind)}" for kind in kinds)]


def first_sentence(kind):
    return escaped(inspect.getdoc(kind).partition("\n\n")[0].replace("\n", " "))
