"""The settings of Sphinx for the site (`make docs`). Its pages load nothing from other hosts."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "src")]

from numpydoc.xref import DEFAULT_LINKS  # noqa: E402

from docsite.names import ENTRIES  # noqa: E402
from surestep import __version__  # noqa: E402

# The address of the public repository, such as "https://github.com/OWNER/NAME". While it is empty,
# no page has a link to the repository or to edit it.
REPOSITORY = ""

project = "surestep"
author = "the surestep contributors"
copyright = "the surestep contributors, Apache-2.0"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
extensions += [f"docsite.{name}" for name in ("commands", "formulas", "names", "pages")]
default_role = "name"
smartquotes = False
highlight_language = "none"
nitpicky = True  # a name that leads nowhere is a warning, and warnings are errors
nitpick_ignore_regex = [("py:obj", r"surestep\.\w+\.\w+\.\w+")]  # members without an entry

myst_enable_extensions = ["attrs_block", "colon_fence", "dollarmath"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # the docstrings name the types
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_aliases = {name: name for name in DEFAULT_LINKS}  # no links to Python and NumPy
numpydoc_xref_aliases |= {name: entry for name, entry in ENTRIES.items() if name[0].isupper()}
numpydoc_xref_ignore = "all"  # other words are no links

html_theme = "pydata_sphinx_theme"
html_title = f"surestep {release}"
html_math_renderer = "drawn"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["copy.js"]
html_favicon = "static/icon.svg"
html_show_search_summary = False  # a page that was opened as a file may not read its neighbours
html_copy_source = False
html_context = {"default_mode": "auto"}
html_sidebars = {page: [] for page in ("index", "commands", "changelog")}
html_theme_options = {
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
if REPOSITORY:
    _, _, _, owner, repository = REPOSITORY.split("/")
    html_context |= {"github_user": owner, "github_repo": repository}
    html_context |= {"github_version": "main", "doc_path": "docs"}
    html_theme_options |= {"github_url": REPOSITORY, "use_edit_page_button": True}
    html_theme_options["secondary_sidebar_items"] += ["edit-this-page"]
