"""An inspection: what was found is said on the page and in the terminal alike."""

import io

import html5lib
import pytest

from surestep import read_log
from surestep.checks import says, title
from surestep.cli.terminal import terminal
from surestep.errors import speaking_of_options
from surestep.pipeline.inspect import inspect
from surestep.report.inspection import discount_words, inspection_sections
from surestep.report.page import page
from surestep.report.terminal import print_sections

NEXT = "surestep improve log.csv --discount GAMMA -o result"


def inspected(lengths, *, ends=True, reward=1.0):
    episodes = [(e, t) for e, length in enumerate(lengths) for t in range(length)]
    last = [t == lengths[e] - 1 for e, t in episodes]
    columns = {
        "episode": [e for e, _ in episodes],
        "step": [t for _, t in episodes],
        "state": ["a" if t % 3 else "b" for _, t in episodes],
        "action": ["x" if (e + t) % 4 else "y" for e, t in episodes],
        "reward": [reward * t for _, t in episodes],
        "terminated": last if ends else [False] * len(episodes),
        "truncated": [False] * len(episodes) if ends else last,
    }
    return inspect(read_log(columns))


def shown(inspection):
    """The words of the page and of the terminal."""
    sections = inspection_sections(inspection, NEXT)
    made = page("A look at a log", sections)
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    body = parser.parse(made).find("body")
    file = io.StringIO()
    print_sections(sections, terminal(file=file, width=1_000, highlight=False, markup=False))
    return [" ".join(text.split()) for text in ("".join(body.itertext()), file.getvalue())]


@pytest.mark.thorough
def test_all_that_was_found_is_said_in_both_places():
    found = inspected([9, 21, 30] * 9, ends=False)
    loose = read_log({"state": ["a", "b"], "action": ["x", "x"], "reward": [0, "?"],
                      "next_state": ["b", "a"]})  # fmt: skip
    for inspection in (found, inspect(loose)):
        for text in shown(inspection):
            assert NEXT in text
            assert f"{inspection.rows:,}" in text
            for check in inspection.checks:
                assert title(check) in text
                assert " ".join(says(check).split()) in text
            for caution in inspection.cautions:
                assert " ".join(caution.says.split()) in text
            for suspicion in inspection.suspicions:
                assert suspicion.says in text
                assert all(f"row {example.row:,}" in text for example in suspicion.examples)
            for sentence in discount_words(inspection):
                assert " ".join(sentence.split()) in text
            assert "(empty)" not in text
            refused = "Mend the rows that are refused" in text
            assert refused == inspection.refused
            assert ("counting refuses the log as it is" in text) == inspection.refused
    assert inspect(loose).refused
    assert "27 episodes: 27 truncated" in shown(found)[0]


@pytest.mark.parametrize("ends", [True, False])
def test_a_reward_at_the_end_of_a_median_episode(ends):
    said = discount_words(inspected([2, 21, 30], ends=ends))
    assert "Episodes here have 21 rows (median), up to 30" in said[0]
    assert "the reward in row 21" in said[0]
    assert "12 % with 0.9, 36 % with 0.95 and 82 % with 0.99" in said[0].replace("\u202f", " ")
    assert len(said) == 1 + ends
    assert not ends or "discount=1" in said[1]
    with speaking_of_options():
        assert not ends or "--discount 1" in discount_words(inspected([2], ends=ends))[1]


def test_one_row_needs_no_discount_and_loose_transitions_have_no_length():
    (said,) = discount_words(inspected([1, 1]))
    assert "any γ means the same" in said
    loose = {"state": ["a", "b"], "action": ["x", "x"], "reward": [0, 1], "next_state": ["b", "a"]}
    (said,) = discount_words(inspect(read_log(loose)))
    assert "One 20 steps ahead counts 12 % with 0.9" in said.replace("\u202f", " ")
