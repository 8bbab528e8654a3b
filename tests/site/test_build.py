"""The site in its quick form: every page is read, and every reference leads somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from docutils import nodes

from docsite.commands import entry
from surestep.cli.main import VERBS, main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
FENCED = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow  # half a minute; `make test-browser` builds the site with -W, too
def test_all_pages_are_read_without_a_warning(tmp_path):
    command = ["-m", "sphinx", "-q", "-W", "--keep-going", "-c", "tools/docsite", "-b", "dummy"]
    built = subprocess.run(
        [sys.executable, *command, "docs", tmp_path], cwd=ROOT, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr


def commands_in(page):
    """The commands that a page shows, each as one line."""
    for language, block in FENCED.findall(page.read_text(encoding="utf-8")):
        lines = block.replace("\\\n", " ").splitlines()
        for line in lines if language in ("", "console") else ():
            words = line.partition(" #")[0].removeprefix("$ ").split()
            if words[:1] == ["surestep"] and len(words) > 1:
                yield words[1:]


def test_commands_are_found():
    assert sum(len(list(commands_in(page))) for page in PAGES) > 25


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_that_a_page_shows_can_be_typed(page):
    """Verbs and options exist and have their values; nothing is run."""
    for verb, *words in commands_in(page):
        if verb.startswith("-"):
            continue
        check_typed(verb, words)


def check_typed(verb, words):
    """Fails where there is no such verb, or where it does not take these words."""
    assert verb in VERBS, verb
    context = main.make_context("surestep", [verb], resilient_parsing=True)
    command = main.get_command(context, verb)
    command.make_parser(context).parse_args(args=list(words))


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_of_a_verb_are_code_on_its_page_and_can_be_typed(verb):
    context = click.Context(main, info_name="surestep")
    command = main.get_command(context, verb)
    shown = entry(click.Context(command, info_name=verb, parent=context))
    assert not any("\b" in part.astext() for part in shown)
    usage, *examples = [part.astext() for part in shown if isinstance(part, nodes.literal_block)]
    assert usage.startswith(f"surestep {verb}")
    assert len(examples) == command.help.count("\b")
    for line in "\n".join(examples).splitlines():
        name, typed, *words = line.partition(" >")[0].split()
        if name == "surestep":
            check_typed(typed, words)


TOCTREE = re.compile(r"^```{toctree}\n(?::[^\n]*\n)*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["guides", "api", "gallery/index", "start"])
def test_every_page_of_a_chapter_has_a_card(name):
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    pages = "".join(TOCTREE.findall(text)).split()
    cards = re.findall(r"^(?:- |  )\[.*\]\((.+)\.(?:md|rst)\)$", text, re.MULTILINE)
    assert cards == pages


HEADING = re.compile(r"^#{1,4} (.+)$|^(.+)\n(?:===+|---+|~~~+)$", re.MULTILINE)
HALF = re.compile(r"(What|How|Where|Whether|Which|To|Of|And|That|By|With)\b(?!.*\?$)")


def test_no_heading_is_the_first_half_of_a_sentence():
    pages = [*PAGES, ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.rst"))]
    found = [
        f"{page.name}: {heading}"
        for page in pages
        for heading in map("".join, HEADING.findall(FENCED.sub("", page.read_text("utf-8"))))
        if HALF.match(heading) or heading.endswith((",", ":"))
    ]
    assert found == []
