"""Tables of contents of pages that come and go: a new file needs no line in another one."""

from fnmatch import fnmatch

from docutils.statemachine import StringList
from sphinx.addnodes import toctree
from sphinx.directives.other import TocTree


def setup(app):
    app.add_directive("pages", Pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Pages(TocTree):
    """A toctree of all pages that match, but those that this page has listed already.

    Patterns are those of whole names, such as `gallery/*`; one that begins with `-` leaves pages
    out. Unlike the glob of a toctree, it may match nothing.
    """

    def run(self):
        listed = {
            name for made in self.state.document.findall(toctree) for _, name in made["entries"]
        }
        wanted = [line for line in self.content if line and not line.startswith("-")]
        unwanted = [line.removeprefix("-") for line in self.content if line.startswith("-")]
        pages = [
            f"/{name}"
            for pattern in wanted
            for name in sorted(self.env.found_docs - listed - {self.env.docname})
            if fnmatch(name, pattern) and name.count("/") == pattern.count("/")
            if not any(fnmatch(name, other) for other in unwanted)
        ]
        if not pages:
            return []
        self.content = StringList(pages, source=self.env.docname)
        return super().run()
