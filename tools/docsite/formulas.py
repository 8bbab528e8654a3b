"""Formulas as drawings, made when the site is built: no script, no font, nothing to fetch.

MathML would need a font for mathematics on every machine; without one, indices sit on the line.
"""

import html
import re

import ziamath
from docutils import nodes

SIZE = 16  # what is drawn is scaled with the text around it
FRAME = re.compile(r'<svg [^>]*viewBox="(\S+) (\S+) (\S+) (\S+)">')


def setup(app):
    ziamath.config.svg2 = False  # every drawing stands by itself, without names to share
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
    _, top, width, height = (float(number) for number in FRAME.match(drawing).groups())
    style = (
        f"width:{width / SIZE:.3f}em;height:{height / SIZE:.3f}em;"
        f"vertical-align:{-(top + height) / SIZE:.3f}em"
    )
    box = FRAME.match(drawing)[0].split("viewBox=")[1]
    said = html.escape(" ".join(formula.split()), quote=True)
    begin = f'<svg role="img" aria-label="{said}" fill="currentColor" style="{style}" viewBox={box}'
    return FRAME.sub(lambda _: begin, drawing, count=1).replace('"black"', '"currentColor"')
