"""Formulas as drawings that are part of the page: no script, no font, nothing to load.

MathML would need a font for mathematics on every machine; without one, indices sit on the line.
"""

import html
import re

import ziamath
from docutils import nodes

SIZE = 16  # the drawing is scaled with the text around it
FRAME = re.compile(r'<svg [^>]*viewBox="\S+ (\S+) (\S+) (\S+)">')


def setup(app):
    ziamath.config.svg2 = False  # each drawing is complete, without names that several share
    app.add_html_math_renderer("drawn", (inline_formula, None), (displayed_formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def inline_formula(writer, node):
    writer.body.append(drawn(node.astext(), inline=True))
    raise nodes.SkipNode


def displayed_formula(writer, node):
    writer.body.append(f'<div class="formula">{drawn(node.astext(), inline=False)}</div>')
    raise nodes.SkipNode


def drawn(formula, *, inline):
    """Returns a drawing on the line of the text and in its colour; the formula is its label."""
    drawing = ziamath.Latex(formula, size=SIZE, inline=inline).svg()
    top, width, height = (float(number) / SIZE for number in FRAME.match(drawing).groups())
    place = f"width:{width:.3f}em;height:{height:.3f}em;vertical-align:{-top - height:.3f}em"
    label = html.escape(" ".join(formula.split()), quote=True)
    shown = f'<svg role="img" aria-label="{label}" fill="currentColor" style="{place}" '
    return drawing.replace("<svg ", shown, 1).replace('"black"', '"currentColor"')
