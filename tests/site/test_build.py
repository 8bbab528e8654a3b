"""The site builds without a warning, and asks nobody for anything."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ELSEWHERE = re.compile(
    r"""(?:src|srcset|data|poster)\s*=\s*["'](?:https?:)?//|@import|url\(["']?(?:https?:)?//"""
)
STYLES = re.compile(r"""<link[^>]*href=["'](?:https?:)?//""")


def test_the_site_builds_and_refers_to_nothing_elsewhere(tmp_path):
    command = ["-m", "sphinx", "-q", "-W", "--keep-going", "-c", "tools/site", "docs", tmp_path]
    built = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    pages = [page for page in tmp_path.rglob("*.html") if "_static" not in page.parts]
    sources = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.rst")]
    assert len(pages) == len(sources) + 3  # the indices of names and of modules, and the search
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not ELSEWHERE.search(text), page
        assert not STYLES.search(text), page
        assert "mathjax" not in text.lower(), page
    assert (tmp_path / "searchindex.js").exists()
