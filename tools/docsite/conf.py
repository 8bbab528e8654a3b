"""How Sphinx makes the site: `make docs`. What comes out asks nobody, and works from any folder."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "src")]

from surestep import __version__, _arrays  # noqa: E402

project = "surestep"
author = "the surestep contributors"
copyright = "the surestep contributors, Apache-2.0"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    *(f"docsite.{name}" for name in ("chapters", "commands", "entries", "formulas", "links")),
]
smartquotes_action = "D"  # dashes only: those of Sphinx before the meaning of an argument
default_role = "code-or-name"
nitpicky = True  # a name that leads nowhere is a warning, and warnings are errors


myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in vars(_arrays) if name.endswith("Array")}
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 72
python_use_unqualified_type_names = True

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
