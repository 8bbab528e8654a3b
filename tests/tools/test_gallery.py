"""Every page of the gallery runs in its quick form, and says what its code prints."""

import sys

import pytest

import gallery
import surestep
from gallery import GALLERY, agrees, blocks, marks, page_folder, run_page, shown, unprinted
from support.stand_in_ray import stand_in
from surestep import extensions
from surestep.environments.families import bandit

PAGES = sorted(path for path in GALLERY.glob("*.md") if path.stem != "index")


@pytest.fixture(autouse=True)
def _own_marks(tmp_path, monkeypatch):
    """What is run here says nothing about what `make docs` has run."""
    monkeypatch.setattr(gallery, "DONE", tmp_path / "done")


# Of the others, `make test` reads the text, and `make test-all` and `make docs-all` run the code.
# README.md and docs/improving.md print the numbers of the pumps too.
QUICK = ("bandit",)


def case(path):
    """A page with its name, left for later where the quick ones show as much of the tool."""
    slow = [] if path.stem in QUICK else [pytest.mark.slow]
    return pytest.param(path, id=path.stem, marks=slow)


@pytest.mark.parametrize("path", [case(path) for path in PAGES])
def test_a_page_says_what_its_code_prints(path, monkeypatch):
    page = path.read_text(encoding="utf-8")
    if "ray" in marks(page, "needs"):
        stand_in(monkeypatch)
    if missing := gallery.missing_packages(page):
        pytest.skip(f"needs {', '.join(missing)}")
    with page_folder():
        for run in run_page(page, quick=True):
            assert agrees(run.said, run.printed), f"line {run.line}: {run.printed}"


@pytest.mark.slow  # like most pages of the gallery
def test_the_recipes_for_logs_make_what_their_page_says():
    page = (GALLERY.parent / "recipes.md").read_text(encoding="utf-8")
    with page_folder():
        runs = list(run_page(page, quick=False))
    assert len(runs) == 15
    for run in runs:
        assert agrees(run.said, run.printed), f"line {run.line}: {run.printed}"


def test_what_a_page_registers_is_forgotten():
    """The next page would hand it to worker processes, which cannot import it any more."""
    before = extensions.registered()
    with page_folder():
        surestep.register(bandit, name="of-a-page/bandit")
        assert len(extensions.registered()) == len(before) + 1
    assert extensions.registered() == before


@pytest.mark.slow  # a cluster takes its time to start
# Ray warns about its own future defaults, and leaves sockets to the interpreter's end.
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_page_about_a_cluster_runs_on_one():
    ray = pytest.importorskip("ray", reason="needs the extra: pip install '.[cluster]'")
    page = (GALLERY / "cluster.md").read_text(encoding="utf-8")
    try:
        with page_folder():
            assert all(agrees(run.said, run.printed) for run in run_page(page, quick=True))
    finally:
        ray.shutdown()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_text_of_a_page_is_whole(path):
    page = path.read_text(encoding="utf-8")
    assert unprinted(page) == []
    assert "\n## Not shown by the certificate\n" in page
    for rule in marks(page, "quick"):
        assert rule.split(" => ")[0] in "".join(block.text for block in blocks(page)), rule
    for picture in gallery.pictures(page):
        assert (GALLERY / picture).exists(), picture


def test_all_pages_are_listed():
    index = (GALLERY / "index.md").read_text(encoding="utf-8")
    assert all(f"({path.name})" in index for path in PAGES)


@pytest.mark.parametrize(
    ("said", "printed", "same"),
    [
        ("a 1.25\n", "a   1.26", True),  # the last digit
        ("a 1.25\n", "a 1.27", False),
        ("a 12\n", "a 13", False),  # a count
        ("gain 1,107 of 2\n", "gain 1,108 of 2", True),
        ("one\n…\nfour 4\n", "one\ntwo 2\nthree\nfour 4", True),
        ("one\n…\nfour 4\n", "one\ntwo 2\nthree\nfour 5", False),
        ("one two", "one\nthree", False),
        ("1.2e-05", "1.3e-05", True),
        ("", "anything", False),
    ],
)
def test_outputs_are_compared_up_to_last_digits_and_what_is_left_out(said, printed, same):
    assert agrees(said, printed) is same


def test_a_page_keeps_the_lines_that_it_showed():
    printed = "first 3\nsecond\n\nthird 9.5 of 10\nfourth"
    assert shown("first 1\n…\nthird 7.25 of 10\n…\n", printed) == "first 3\n…\nthird 9.5 of 10\n…\n"
    assert shown("row 1\n…\n", "row 2\nrow 3\nrow 4") == "row 2\n…\n"
    assert shown("old", printed) == printed + "\n"
    assert shown("…\n", "saved x, about 7 s\n" + "row\n" * 20) == "…\n" + "row\n" * 11 + "…\n"
    assert shown("", "word " * 30).count("\n") == 2


PAGE = """<!-- quick: SIZE = 100 => SIZE = 3 -->
<!-- given: 1987 -->
Since 1987 there are 100 and `7`.

<!-- file: two.csv -->
```text
state,action
```

```python
SIZE = 100
from pathlib import Path
print(SIZE, len(Path("two.csv").read_text()))
```

<!-- in full
3 13
-->
```text
100 13
```

```console
$ surestep --version
surestep
```
"""


def test_code_runs_from_top_to_bottom_in_either_form():
    for quick, size in ((False, "100"), (True, "3")):
        with page_folder():
            first, second = run_page(PAGE, quick=quick)
        assert first.printed == f"{size} 13\n" == first.said.removeprefix("\n")
        assert PAGE[first.begin :].startswith(first.said)
        assert second.printed[:8] == "surestep"
        assert PAGE[second.begin :].startswith(second.said)
    assert unprinted(PAGE) == []
    assert unprinted(PAGE.replace("100 and", "101 and")) == ["101"]


def test_a_page_imports_what_it_writes_and_leaves_nothing_behind():
    page = "<!-- file: number_of_page.py -->\n```python\nNUMBER = {}\n```\n\n"
    page += "```python\nfrom number_of_page import NUMBER\nprint(NUMBER)\n```\n\n```text\n```\n"
    for number in (1, 2):
        with page_folder():
            (run,) = run_page(page.format(number), quick=False)
        assert run.printed == f"{number}\n"
    assert "number_of_page" not in sys.modules


def test_what_fails_names_its_line():
    with page_folder(), pytest.raises(gallery.GalleryError, match=r"line 2: ZeroDivisionError"):
        list(run_page("```python\n1 / 0\n```\n", quick=False))
    with page_folder(), pytest.raises(gallery.GalleryError, match="nothing says that this prints"):
        list(run_page("```python\nprint(1)\n```\n", quick=False))
    with page_folder(), pytest.raises(gallery.GalleryError, match="expected surestep"):
        list(run_page("```console\n$ rm -r folder\n```\n", quick=False))
    with page_folder(), pytest.raises(gallery.GalleryError, match="ended with 2"):
        list(run_page("```console\n$ surestep inspect nowhere.csv\n```\n", quick=False))


def test_a_page_is_written_with_what_it_prints(tmp_path, monkeypatch, capsys):
    path = tmp_path / "page.md"
    path.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n\nIt is 2.\n")
    monkeypatch.setattr(sys, "argv", ["gallery.py", str(path)])
    assert gallery.main() == 1
    assert "names 2, which nothing prints" in capsys.readouterr().err
    path.write_text(path.read_text().replace("is 2", "is 1"))
    assert gallery.main() == 0
    assert path.read_text() == "```python\nprint(1)\n```\n\n```text\n1\n```\n\nIt is 1.\n"


def test_a_page_is_run_again_only_where_it_or_an_example_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "ROOT", tmp_path)
    path, data = tmp_path / "page.md", tmp_path / "examples" / "log.csv"
    data.parent.mkdir()
    data.write_text("1\n")
    path.write_text("```python\nprint(open('examples/log.csv').read())\n```\n\n```text\n1\n```\n")
    ran = []
    monkeypatch.setattr(gallery, "problems_of", lambda path, check: ran.append(path) or problems)
    monkeypatch.setattr(sys, "argv", ["gallery.py", "--check", "--changed", str(path)])
    problems = ["it prints something else"]
    assert (gallery.main(), gallery.main(), len(ran)) == (1, 1, 2)  # until it is mended
    problems = []
    assert (gallery.main(), gallery.main(), len(ran)) == (0, 0, 3)
    data.write_text("2\n")
    assert (gallery.main(), gallery.main(), len(ran)) == (0, 0, 4)
    path.write_text(path.read_text() + "More.\n")
    assert (gallery.main(), gallery.main(), len(ran)) == (0, 0, 5)
    monkeypatch.setattr(sys, "argv", ["gallery.py", "--check", str(path)])
    assert (gallery.main(), len(ran)) == (0, 6)


def test_what_the_quick_form_prints_is_kept_beside(tmp_path, monkeypatch, capsys):
    path = tmp_path / "page.md"
    code, quick = "```python\nprint(10)\n```\n", "<!-- quick: 10 => 2 -->\n"
    path.write_text(f"{quick}{code}\n<!-- in full -->\n```text\n```\n")
    monkeypatch.setattr(sys, "argv", ["gallery.py", str(path)])
    assert gallery.main() == 0
    assert path.read_text() == f"{quick}{code}\n<!-- in full\n2\n-->\n```text\n10\n```\n"
    monkeypatch.setattr(sys, "argv", ["gallery.py", "--check", str(path)])
    assert gallery.main() == 0
    other = path.read_text().replace("\n2\n", "\n3\n")
    path.write_text(other)
    assert gallery.main() == 1
    assert "page.md: -3\npage.md: +2\n" in capsys.readouterr().err
    assert path.read_text() == other
