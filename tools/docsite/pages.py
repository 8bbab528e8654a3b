"""Adds words for the search to pages, and notebooks to those of the gallery."""

import re
from pathlib import Path

from docutils import nodes

from gallery import blocks
from notebooks import notebook

# Words that readers may search for, for pages that say the same by other words.
SYNONYMS = {
    "algorithms": "batch reinforcement learning conservative pessimism safe",
    "api/offpolicy": "off-policy evaluation counterfactual OPE IPS propensity doubly robust",
    "building": "extension plug-in plugin custom entry point",
    "certificates": "confidence interval lower bound high-confidence guarantee p-value",
    "checks": "hidden unobserved confounding confounders causal ignorability nonstationary shift",
    "deploying": "deployment production serving inference export",
    "gallery/bandit": "contextual bandit recommender A/B test advertising",
    "gallery/loans": "process mining event log",
    "model": "Markov decision process value iteration policy iteration dynamic programming",
    "own_policy": "off-policy evaluation counterfactual OPE target policy",
    "rehearsal": "simulation backtest sensitivity rehearsal",
    "settings": "hyperparameters configuration options",
    "signals": "constraints constrained CMDP multi-objective several rewards safety",
    "size": "big data memory scaling cluster",
    "verifying": "reproducibility audit",
}
DOWNLOAD = '<p><a href="{0}.ipynb" download>Download this page as a notebook</a></p>\n'


def setup(app):
    app.connect("doctree-read", add_words)
    app.connect("html-page-context", add_notebook)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add_words(app, doctree):
    """Adds the synonyms of a page, which the index of the search then holds."""
    words = re.findall(r"\w+", SYNONYMS.get(app.env.docname, ""))
    doctree += nodes.meta(name="keywords", content=", ".join(words))


def add_notebook(app, name, template, context, doctree):
    """Writes the notebook of a page of the gallery beside it, with a link at the page's top."""
    page = Path(app.srcdir, f"{name}.md")
    if name.startswith("gallery/") and blocks(page.read_text(encoding="utf-8")):
        copy = Path(app.outdir, f"{name}.ipynb")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(notebook(page), encoding="utf-8")
        head, title, body = context["body"].partition("</h1>\n")
        context["body"] = head + title + DOWNLOAD.format(page.stem) + body
