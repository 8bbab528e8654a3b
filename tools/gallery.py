"""Runs the pages of docs/gallery, and writes what they print and draw into them.

python tools/gallery.py [PAGE ...]   runs pages in full, all of them by default
python tools/gallery.py --check      writes nothing, and fails where a page would change
python tools/gallery.py --changed    leaves out pages that were run without a problem before, and
                                     whose text and files of `examples` are still the same

A page is Markdown that works by itself: its blocks are run from top to bottom, in a new folder with
a link to `examples`.

- `python`: all of a page in one namespace. What is printed stands in a block of `text` below.
- `console`: lines that begin with `$ surestep` are commands, and below each stands what it prints.
- A line `…` in either stands for lines that are left out; alone, it becomes the first lines.
- A block below `<!-- file: NAME -->` is not run, but written to that file.
- What is drawn is saved by the page itself, and comes to stand beside it: `![...](NAME.svg)`.

What `make test` runs is the same code with other sizes. These stand at the top of a page, as in
`<!-- quick: BUSES = 500 => BUSES = 50 -->`. Above what is printed otherwise then stands
`<!-- in full -->`, and above a block of `text` also what the quick form prints, between these two
words and the arrow. Where a page needs a package that is not installed, `<!-- needs: ray -->`, it
stays as it is. Numbers in the text are those of the blocks; what else the text may name stands in
`<!-- given: 1987 -->`.
"""

import argparse
import contextlib
import difflib
import hashlib
import importlib.util
import io
import os
import re
import shlex
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GALLERY = ROOT / "docs" / "gallery"
DONE = ROOT / ".cache" / "gallery"  # a file for each page that was run without a problem
LEFT_OUT = "…"
FIRST = 12  # lines that take the place of a … alone
WIDTH = 88  # longer lines are wrapped, as in a terminal; those of tables are not
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")
FENCE = re.compile(
    r"^(?:<!-- (?P<mark>file: \S+|in full)(?P<quick> |\n(?:(?!-->).)*^)-->\n+)?"
    r"```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
MARK = r"<!-- {}: (.+?) -->"


class GalleryError(Exception):
    """A page that cannot be run, or that does not say what its code prints."""


@dataclass(frozen=True)
class Block:
    """A block of a page: code, or what code prints."""

    kind: str  # python, console, text or another language
    mark: str  # "file: NAME", "in full" or nothing
    text: str
    start: int  # of the block in the page, with its mark
    begin: int  # of its text in the page
    end: int  # of the block in the page
    line: int
    quick: str  # what the quick form prints, where that is another text
    quick_begin: int

    def prints_of(self, above: "Block | None") -> bool:
        """Tells whether this is what the block above it prints."""
        in_page = self.kind == "text" and not self.mark.startswith("file: ")
        return in_page and above is not None and above.kind == "python"


@dataclass(frozen=True)
class Printed:
    """What one piece of code printed, and what the page says it prints."""

    said: str
    printed: str
    begin: int  # of what is said in the page
    line: int


def blocks(page: str) -> list[Block]:
    """Returns the blocks of a page, in their order."""
    return [
        Block(
            kind=found["kind"],
            mark=found["mark"] or "",
            text=found["text"],
            start=found.start(),
            begin=found.start("text"),
            end=found.end(),
            line=page.count("\n", 0, found.start("text")) + 1,
            quick=found["quick"] or "",
            quick_begin=found.start("quick"),
        )
        for found in FENCE.finditer(page)
    ]


def marks(page: str, name: str) -> list[str]:
    """Returns what the marks of that name at any place of the page say."""
    return re.findall(MARK.format(name), page)


def pictures(page: str) -> list[str]:
    """Returns the files of the pictures that a page shows."""
    return re.findall(r"!\[[^\]]*\]\(([^)]*)\)", page)


def in_quick_form(page: str, text: str) -> str:
    """Returns a block's text with the sizes of the quick form."""
    for rule in marks(page, "quick"):
        usual, quick = rule.split(" => ")
        text = text.replace(usual, quick)
    return text


def missing_packages(page: str) -> list[str]:
    """Returns the packages that the page needs and that are not installed; none is imported."""
    needed = [name for name in marks(page, "needs") if name not in sys.modules]
    return [name for name in needed if importlib.util.find_spec(name) is None]


def run_page(page: str, *, quick: bool) -> Iterator[Printed]:
    """Runs the code of a page in the present folder, and says what each piece printed.

    In the quick form, commands below `<!-- in full -->` are run, and what they print is left open.
    """
    written = blocks(page)
    namespace: dict[str, object] = {"__name__": "gallery"}
    for place, block in enumerate(written):
        code = in_quick_form(page, block.text) if quick else block.text
        if block.mark.startswith("file: "):
            Path(block.mark.removeprefix("file: ")).write_text(code, encoding="utf-8")
        elif block.kind == "python":
            below = written[place + 1] if place + 1 < len(written) else None
            printed = run_python(code, namespace, block.line)
            if below is not None and below.prints_of(block):
                if quick and below.mark == "in full":
                    yield Printed(below.quick, printed, below.quick_begin, below.line)
                else:
                    yield Printed(below.text, printed, below.begin, below.line)
            elif printed:
                raise GalleryError(f"line {block.line}: nothing says that this prints {printed!r}")
        elif block.kind == "console":
            yield from run_session(block, page if quick else "")


def run_python(code: str, namespace: dict[str, object], line: int) -> str:
    """Runs a block of Python, and returns what it printed."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(compile("\n" * (line - 1) + code, "page", "exec"), namespace)
        except Exception as problem:
            raise GalleryError(f"line {line}: {type(problem).__name__}: {problem}") from problem
    return printed.getvalue()


def run_session(block: Block, page: str) -> Iterator[Printed]:
    """Runs the commands of a block of `console`; with a page, in its quick form."""
    begin = block.begin
    left_open = bool(page) and block.mark == "in full"
    for command, said in commands(block.text):
        printed = run_command(in_quick_form(page, command).removeprefix("$ "), block.line)
        begin += len(command)
        if said and not left_open:  # a page need not say what a command prints
            yield Printed(said, printed, begin, block.line)
        begin += len(said)


def commands(session: str) -> Iterator[tuple[str, str]]:
    """Yields each command of a block of `console`, and what the page says it prints."""
    for part in re.split(r"^(?=\$ )", session, flags=re.MULTILINE):
        command = re.match(r"(?:.*\\\n)*.*\n", part)
        if command is not None:
            yield command[0], part[command.end() :]


def run_command(command: str, line: int) -> str:
    """Runs `surestep` in this process, and returns what it printed."""
    from click.testing import CliRunner

    from surestep.cli.main import main

    program, *arguments = shlex.split(command.replace("\\\n", " "))
    if program != "surestep":
        raise GalleryError(f"line {line}: found the command {program!r}, expected surestep")
    result = CliRunner().invoke(main, arguments, prog_name="surestep")
    answers = (0, 1) if arguments[0] in ("pilot", "watch") else (0,)  # 1 is an answer of these
    if result.exit_code not in answers:
        raise GalleryError(f"line {line}: {command} ended with {result.exit_code}: {result.stderr}")
    return result.stdout


def agrees(said: str, printed: str) -> bool:
    """Tells whether the page says what was printed, up to lines left out and last digits.

    A number agrees within one of its last digit, so that no page rests on last bits.
    """
    parts = (" ".join(part.split()) for part in re.split(f"^{LEFT_OUT}$", said, flags=re.MULTILINE))
    texts = (map(re.escape, NUMBER.split(part)) for part in parts)
    pattern = ".*?".join(f"({NUMBER.pattern})".join(words) for words in texts)
    found = re.fullmatch(pattern, " ".join(printed.split()))
    return found is not None and all(map(close, NUMBER.findall(said), found.groups()))


def close(one: str, other: str) -> bool:
    """Tells whether two numbers differ by at most one of the last digit of either."""
    first, second = (float(number.replace(",", "")) for number in (one, other))
    return abs(first - second) <= 1.000001 * max(map(last_digit, (one, other)))


def last_digit(number: str) -> float:
    """Returns what one of the last digit is worth; nothing, of a whole number below 1,000."""
    digits, _, power = number.replace(",", "").partition("e")
    _, point, decimals = digits.partition(".")
    if not point and not power and float(digits) < 1_000:
        return 0.0
    return 10.0 ** (int(power or 0) - len(decimals))


def shown(said: str, printed: str) -> str:
    """Returns what a page shows of a print: all, or the lines that it showed before."""
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    if said.strip() == LEFT_OUT:
        timed = lines and lines[0].startswith("saved ")  # which says how long it will take
        first = [LEFT_OUT, *lines[1:FIRST]] if timed else lines[:FIRST]
        lines = [*first, *([LEFT_OUT] if len(lines) > FIRST else [])]
    elif LEFT_OUT in said.split("\n"):
        before = NUMBER.sub("#", " ".join(said.split()))
        kept: list[str] = []
        for line in lines:
            words = NUMBER.sub("#", " ".join(line.split()))
            place = before.find(words)
            if words and place >= 0:
                kept.append(line)
                before = before[place + len(words) :]
            elif words and kept[-1:] != [LEFT_OUT]:
                kept.append(LEFT_OUT)
        lines = kept
    wrapped = (
        [line] if len(line) <= WIDTH or line[0] in "| " else textwrap.wrap(line, WIDTH)
        for line in lines
    )
    return "".join(f"{line}\n" for each in wrapped for line in each)


def unprinted(page: str) -> list[str]:
    """Returns the numbers in the text of a page that stand in none of its blocks."""
    known = set(NUMBER.findall(" ".join(marks(page, "given"))))
    for block in blocks(page):
        known.update(NUMBER.findall(re.sub(r"(?<=\d)_(?=\d)", ",", block.text)))
    text = re.sub(r"<!--.*?-->|`[^`\n]*`|\]\([^)]*\)|^#.*$", " ", FENCE.sub(" ", page), flags=re.M)
    return [number for number in NUMBER.findall(text) if number not in known]


@contextlib.contextmanager
def page_folder() -> Iterator[Path]:
    """Gives a new folder to run a page in, with the examples beside it.

    What the page imports from it and registers is forgotten in the end: a page works by itself.
    """
    import matplotlib

    from surestep import extensions

    registered = dict(extensions._registered)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        Path("examples").symlink_to(ROOT / "examples")
        os.environ.setdefault("SOURCE_DATE_EPOCH", "0")  # pictures do not say when they were made
        sys.path.insert(0, name)  # a page may import files that it writes, as a script does
        try:
            with matplotlib.rc_context({"svg.hashsalt": "surestep"}):
                yield Path(name)
        finally:
            sys.path.remove(name)
            for path in Path(name).glob("*.py"):
                sys.modules.pop(path.stem, None)
            extensions._registered.clear()
            extensions._registered.update(registered)


def made_again(page: str) -> tuple[str, dict[str, bytes]]:
    """Runs a page in both forms, and returns what it is to say, and its pictures."""
    with page_folder() as folder:
        runs = list(run_page(page, quick=False))
        drawn = {}
        for picture in pictures(page):
            if not (folder / picture).exists():
                raise GalleryError(f"the page shows {picture}, but does not make it")
            drawn[picture] = (folder / picture).read_bytes()
    with page_folder():
        below = {run.begin for run in runs}
        quick_runs = [run for run in run_page(page, quick=True) if run.begin not in below]
    changes = [(run, shown(run.said, run.printed)) for run in runs]
    changes += [(run, "\n" + shown(run.said, run.printed)) for run in quick_runs]
    for run, text in sorted(changes, key=lambda change: -change[0].begin):
        if not agrees(run.said, run.printed) or run.said.strip() == LEFT_OUT:
            page = page[: run.begin] + text + page[run.begin + len(run.said) :]
    return page, drawn


def problems_of(path: Path, *, check: bool) -> list[str]:
    """Runs a page, writes it anew with its pictures unless `check`, and says what is wrong."""
    page = path.read_text(encoding="utf-8")
    try:
        new, drawn = made_again(page)
    except GalleryError as problem:
        return [str(problem)]
    if not check:
        path.write_text(new, encoding="utf-8")
        for name, picture in drawn.items():
            (path.parent / name).write_bytes(picture)
    changed = difflib.unified_diff(page.splitlines(), new.splitlines(), n=0, lineterm="")
    lines = [line for line in changed if not line.startswith(("---", "+++"))]
    problems = ["it prints something else:", *lines] if check and lines else []
    if numbers := unprinted(new):
        problems.append(f"the text names {', '.join(numbers)}, which nothing prints")
    return problems


def mark_of(path: Path) -> Path:
    """Returns the file that says that a page was run: of its text, and of the examples it names."""
    page = path.read_text(encoding="utf-8")
    named = sorted(set(re.findall(r"examples/[\w./-]*\w", page)))
    data = [(ROOT / name).read_bytes() for name in named if (ROOT / name).is_file()]
    return DONE / hashlib.sha256(b"\0".join([page.encode(), *data])).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the pages of docs/gallery in full.")
    parser.add_argument("pages", nargs="*", type=Path, help="pages, all by default")
    parser.add_argument("--check", action="store_true", help="write nothing, and fail at a change")
    parser.add_argument("--changed", action="store_true", help="leave out pages as they were run")
    options = parser.parse_args()
    DONE.mkdir(parents=True, exist_ok=True)
    wrong = False
    pages = sorted({*GALLERY.glob("*.md")} - {GALLERY / "index.md"})  # which runs nothing
    for path in map(Path.resolve, options.pages or pages):
        if missing := missing_packages(path.read_text(encoding="utf-8")):
            print(f"{path.name}: stays as it is, without {', '.join(missing)}")
            continue
        if options.changed and mark_of(path).exists():
            continue
        problems = problems_of(path, check=options.check)
        for problem in problems:
            print(f"{path.name}: {problem}", file=sys.stderr)
            wrong = True
        if not problems:
            mark_of(path).touch()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
