"""Prints text safely in a terminal: escapes control characters in labels and names of files.

Labels may contain characters that move the cursor, colour or rename a terminal, or turn the
direction of text. Everything that is printed goes through this module. It replaces such characters
by their escapes in Python, such as '\\x1b'. Only the colours and ends of lines of surestep pass.
"""

import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import click

from surestep._progress import is_terminal
from surestep._words import OBEYED, visible

if TYPE_CHECKING:
    from rich.console import Console

    from surestep.sections import Section


def lines(text: str) -> str:
    """Escapes control characters in a text, except the ends of lines."""
    return "\n".join(map(visible, text.split("\n")))


def say(*texts: object, err: bool = False, **style: Any) -> None:
    """Prints texts that are not None, a line each; for `style` see `click.secho`."""
    plain = False if os.environ.get("NO_COLOR") else None  # the same rule as in rich
    for text in texts:
        if text is not None:  # to the stream itself: click takes one without our letters for UTF-8
            click.secho(
                lines(str(text)), file=sys.stderr if err else sys.stdout, color=plain, **style
            )


def compile_first(task: Literal["improve", "improve by a structure"]) -> None:
    """Lets all cores compile what a task needs, unless that is stored, and says so."""
    from surestep.kernels.ahead import NEEDED, compile_ahead

    if note := compile_ahead(NEEDED[task]):
        say(note, err=True)


def shell_word(text: str) -> str:
    r"""Quotes a text as one word of a shell command, on one line.

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
    """Prints JSON, with control characters as JSON escapes."""
    text = json.dumps(content, indent=2, ensure_ascii=False)
    escaped = (OBEYED.sub(lambda sign: f"\\u{ord(sign[0]):04x}", x) for x in text.split("\n"))
    click.echo("\n".join(escaped))


def terminal(**settings: Any) -> "Console":
    """Returns a console of rich, for standard output unless the settings say otherwise."""
    from rich.console import Console
    from rich.segment import Segment

    class Shown(Console):
        """A console that escapes control characters."""

        def render(self, *thing: Any, **options: Any) -> Iterator[Segment]:
            """Renders an object and escapes its pieces, except control codes of rich itself."""
            for piece in super().render(*thing, **options):
                yield (
                    piece
                    if (piece.control is not None)
                    else Segment(lines(piece.text), piece.style)
                )

        def on_broken_pipe(self) -> None:
            """Raises the error again for `main`; rich would end the process silently."""
            raise

    return Shown(**settings)


def show(sections: "Sequence[Section]") -> None:
    """Prints sections; never interprets names from the data as markup of rich."""
    from surestep.report.terminal import print_sections

    print_sections(sections, terminal(highlight=False, markup=False, emoji=False))
