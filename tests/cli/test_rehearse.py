"""`surestep rehearse`: a stress test with a page, and what it says about more data."""

import json

import pytest

from support.pump_commands import EXAMPLES, LINES, PUMPS, run_surestep, write_lines
from surestep.rehearsal import rehearsal_from_json

BEHAVIOR = ("--behavior", EXAMPLES / "pumps_policy.csv")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    home = tmp_path_factory.mktemp("rehearse")
    write_lines(home / "log.csv", LINES[:201])
    return home / "log.csv"


def test_it_says_what_was_found_and_writes_a_page(log, tmp_path):
    out = tmp_path / "out"
    sizes = ("--worlds", "9", "--sizes", "1,2", "--workers", "1")
    options = (*BEHAVIOR, "--set", "method.n_wedge=5", *sizes)
    options += ("--kind", "posterior:starts=known,prior=weight,draws=19", "-o", out)
    result = run_surestep("rehearse", log, *PUMPS, *options)
    assert result.exit_code == 0, result.output
    for words in ("The stress test\n", "optimistic", "It is no confidence level."):
        assert words in result.stdout, words
    assert sorted(path.name for path in out.iterdir()) == [
        *("rehearsal.html", "rehearsal.json", "run.json")
    ]
    text = (out / "rehearsal.json").read_text()
    found = rehearsal_from_json(text)
    assert found.sizes == (1.0, 2.0)
    assert f"{found.to_json()}\n" == text
    kinds = len(found.family)
    assert found.gain.shape == (9 * kinds, 2)
    assert "estimate, unseen: optimistic" not in json.loads(text)["calibration"]["ranks"]
    page = (out / "rehearsal.html").read_text()
    assert "It is no confidence level." in page
