"""Links that nobody spells out: public names in code, and files of the docs in texts."""

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxRole

from docsite import public

PAGE = re.compile(r"docs/([\w/-]+)\.(?:md|rst)")


def setup(app):
    app.add_role("code-or-name", CodeOrName())
    app.add_transform(Texts)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class CodeOrName(SphinxRole):
    """What stands between single backticks in a docstring: code, and a link if it is public."""

    def run(self):
        code = nodes.literal(self.rawtext, self.text)
        name = public.find(self.text, self.env.ref_context.get("py:module", ""))
        return [linked(code, self.env.docname, "py", "obj", name) if name else code], []


class Texts(SphinxTransform):
    """Makes `docs/bounds.md` a link called *bounds*, and `surestep.io.read_mdp` one to its entry.

    A block that names no language is taken for plain text, and not for Python.
    """

    default_priority = 500

    def apply(self):
        for block in self.document.findall(nodes.literal_block):
            if block.get("language", "default") == "default" and ">>>" not in block.astext():
                block["language"] = "text"
        for code in list(self.document.findall(nodes.literal)):
            if isinstance(code.parent, nodes.reference | pending_xref | nodes.title):
                continue
            text = code.astext()
            page = PAGE.fullmatch(text)
            name = public.find(text) if text.startswith("surestep.") else None
            if page:
                word = nodes.inline(page[1], page[1])
                code.replace_self(linked(word, self.env.docname, "std", "doc", f"/{page[1]}"))
            elif name:
                code.replace_self(linked(code.deepcopy(), self.env.docname, "py", "obj", name))


def linked(code, docname, domain, kind, target):
    """Returns code as a link; that it leads nowhere would be a warning."""
    link = pending_xref(
        "", refdomain=domain, reftype=kind, reftarget=target, refexplicit=True, refdoc=docname
    )
    link += code
    return link


def resolve(app, env, node, text):
    """Leads the names in signatures to the reference; those of other packages stay as they are.

    A signature names the module in which a class is written, or the class alone. What it names
    and nobody needs to make is not public, and stays as it is too.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    name = public.find(target, node.get("py:module") or "")
    made = None
    if name and name != target:
        python = env.domains["py"]
        made = python.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, text)
    if made is None and node["reftype"] == "class":  # an author says obj, a signature class
        return text
    return made
