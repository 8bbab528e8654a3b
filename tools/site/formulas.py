"""Formulas as MathML, made when the site is built: no script, no font, nothing to fetch."""

from docutils import nodes
from latex2mathml.converter import convert


def setup(app):
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def inline_formula(writer, node):
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def displayed_formula(writer, node):
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode
