"""Text for a terminal: labels of logs and files are shown there, and never obeyed.

A label may hold whatever a log holds, also what moves the cursor, colours or renames a terminal, or
turns the direction of text. All that is printed goes through here and has such characters replaced
by what they are called, as in Python: '\\x1b'. Only our own colours and lines pass.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from surestep._progress import is_terminal
from surestep._words import OBEYED, visible

if TYPE_CHECKING:
    from rich.console import Console

    from surestep.sections import Section


def lines(text: str) -> str:
    """Returns the text made visible line by line: ends of lines stay."""
    return "\n".join(map(visible, text.split("\n")))


def say(*texts: object, err: bool = False, **style: Any) -> None:
    """Prints texts that are not None, a line each; for `style` see `click.secho`."""
    plain = False if os.environ.get("NO_COLOR") else None  # as rich has it
    for text in texts:
        if text is not None:  # to the stream itself: click takes one without our letters for UTF-8
            click.secho(
                lines(str(text)), file=sys.stderr if err else sys.stdout, color=plain, **style
            )


def shell_word(text: str) -> str:
    r"""Returns a text as a word of a command on one line, which can be pasted.

    >>> print(shell_word("log.csv"), shell_word("my log.csv"), shell_word("a\nb"))
    log.csv 'my log.csv' $'a\nb'
    """
    if not OBEYED.search(text):
        return shlex.quote(text)
    escaped = text.replace("\\", r"\\").replace("'", r"\'")
    return f"$'{visible(escaped)}'"


def say_wrote(*paths: object, **style: Any) -> None:
    """Prints which files were written, a line each, whatever their names are."""
    say(*(f"wrote {visible(str(path))}" for path in paths), **style)


def say_sentences(text: str, **style: Any) -> None:
    """Prints a text, in a terminal broken between words."""
    wide = get_terminal_size().columns if is_terminal(sys.stdout) else sys.maxsize
    say(fill(text, wide, break_long_words=False, break_on_hyphens=False), **style)


def say_json(content: object) -> None:
    """Prints JSON, which has escapes of its own for what would be obeyed."""
    text = json.dumps(content, indent=2, ensure_ascii=False)
    escaped = (OBEYED.sub(lambda sign: f"\\u{ord(sign[0]):04x}", x) for x in text.split("\n"))
    click.echo("\n".join(escaped))


def terminal(**settings: Any) -> Console:
    """Returns a console of rich, for standard output unless the settings say otherwise."""
    from rich.console import Console
    from rich.segment import Segment

    class Shown(Console):
        """A console in which what would be obeyed is made visible."""

        def render(self, *thing: Any, **options: Any) -> Iterator[Segment]:
            """Renders it, piece by piece; pieces that only move the cursor are rich's own."""
            for piece in super().render(*thing, **options):
                yield (
                    piece
                    if (piece.control is not None)
                    else Segment(lines(piece.text), piece.style)
                )

        def on_broken_pipe(self) -> None:
            """Leaves it to `main`, where rich would end the process without a word."""
            raise

    return Shown(**settings)


def show(sections: Sequence[Section]) -> None:
    """Prints sections; names from the data may look like rich's markup, and are none."""
    from surestep.report.terminal import print_sections

    print_sections(sections, terminal(highlight=False, markup=False, emoji=False))
