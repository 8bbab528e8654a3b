"""Public names as links, and docstrings as Sphinx reads them."""

import re
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxRole

PAGES = Path(__file__).parents[2] / "docs" / "api"  # one for each public module
ENTRY = re.compile(r"^\.\. auto(?:class|function|data|exception):: (\w+)$", re.MULTILINE)
ARGUMENTS = {"failed", "n_wedge", "summary", "title", "zeta"}  # more often than functions
MARKUP = re.compile(r"(`[^`]*`)|\||(?<=\w)_(?=\W|$)|(?<=/)\*")  # code, or markup by accident


def entries() -> dict[str, str]:
    """Maps each public name, alone and as it is imported, to its entry in the reference."""
    found: dict[str, str] = {}
    for page in sorted(PAGES.iterdir(), key=lambda page: page.stem == "surestep"):  # its names win
        module = "surestep" if page.stem == "surestep" else f"surestep.{page.stem}"
        for name in ENTRY.findall(page.read_text(encoding="utf-8")):
            entry = f"{module}.{name}"
            found |= {name: entry, f"surestep.{name}": entry, entry: entry}
    return {name: entry for name, entry in found.items() if name not in ARGUMENTS}


ENTRIES = entries()


def setup(app):
    app.add_role("name", Name())
    app.add_transform(LinkedNames)
    app.connect("autodoc-process-docstring", process, priority=400)  # numpydoc follows
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Name(SphinxRole):
    """Shows code between single backticks in reStructuredText; links it if it is a public name."""

    def run(self):
        return [linked(self.text, self.env.docname)], []


class LinkedNames(SphinxTransform):
    """Links names such as `surestep.io.read_mdp` in Markdown, and colours doctests."""

    default_priority = 500

    def apply(self):
        for code in list(self.document.findall(nodes.literal)):
            text = code.astext()
            inside = isinstance(code.parent, nodes.reference | pending_xref | nodes.title)
            if text.startswith("surestep.") and not inside:
                code.replace_self(linked(text, self.env.docname))
        for block in self.document.findall(nodes.doctest_block):
            block["language"] = "pycon"


def linked(text, docname):
    """Returns a text as code, with a link if it is a public name or a member of one."""
    code = nodes.literal(text, text)
    name = text.removesuffix("()")
    owner, _, member = name.rpartition(".")
    entry = ENTRIES.get(name) or (owner in ENTRIES and f"{ENTRIES[owner]}.{member}")
    if not entry:
        return code
    place = {"refdomain": "py", "reftype": "obj", "reftarget": entry, "refdoc": docname}
    return pending_xref("", code, refexplicit=True, **place)


def process(app, what, name, value, options, lines):
    """Escapes bars and underscores, and shows blocks that are indented by four as they are."""
    written = [] if what == "data" else lines[:]  # Sphinx found the docstring of its type
    lines.clear()
    around = 0  # the indentation of the text around a block
    block = None  # the indentation of the block
    for line in written:
        indent = len(line) - len(line.lstrip())
        if line.strip() and (block is None or indent < block):
            begins = lines and not lines[-1].strip() and indent >= around + 4
            block = indent if begins else None
            if begins:
                lines += [" " * around + "::", ""]
            else:
                around = indent
        kept = block is not None or line.lstrip().startswith((">>>", "..."))
        lines.append(line if kept else MARKUP.sub(lambda found: found[1] or f"\\{found[0]}", line))
