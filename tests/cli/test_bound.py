"""`surestep bound`: both questions, in a table and as JSON."""

import json
from functools import partial

from support.pump_commands import run_surestep
from surestep.bounds import BOUNDS, ProblemSize, n_wedge, zeta

MODEL = ["--states", "25", "--actions", "4", "--discount", "0.95"]
SIZE = ProblemSize(states=25, actions=4, discount=0.95, value_bound=1.0, delta=0.1)


bound = partial(run_surestep, "bound", *MODEL)


def rows(output):
    """The table by bound: the words of each of its rows."""
    lines = [line.split() for line in output.splitlines()]
    return {line[0]: line for line in lines if line and line[0] in BOUNDS}


def test_it_answers_both_questions_for_all_bounds():
    result = bound("--value-bound", "1", "--visits", "10000000", "--zeta", "0.1")
    assert result.exit_code == 0
    table = rows(result.stdout)
    assert list(table) == list(BOUNDS)
    for name, row in table.items():
        assert row[1:3] == [BOUNDS[name].covers, "as-published"]
        exact, shown = zeta(name, 10**7, SIZE), float(row[3])
        assert exact <= shown <= exact * (1 + 1e-3)  # rounded up, so that it stays a bound
        assert row[4:6] == ["limits", "loss"]
        assert row[-1] == f"{n_wedge(name, 0.1, SIZE):,}"
    assert "NOTHING" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_it_says_loudly_when_a_guarantee_says_nothing():
    few = bound("--value-bound", "1", "--visits", "100")
    assert [row[4] for row in rows(few.stdout).values()] == ["NOTHING"] * len(BOUNDS)
    assert "NOTHING: values span 2, so no policy can be worse by more" in few.stdout
    loose = bound("--values", "0", "1", "--zeta", "1")
    assert "ζ = 1 guarantees NOTHING: values span 1" in loose.stdout
    assert "NOTHING" not in bound("--value-bound", "1", "--zeta", "1").stdout


def test_a_gain_is_claimed_where_it_outweighs_the_loss_and_spi_has_none():
    result = bound("--value-bound", "1", "--visits", "10000000", "--gain", "0.5")
    table = rows(result.stdout)
    assert table["spibb"][4:6] == ["claims", "gain"]
    assert table["spi"][3] == "–"
    assert "No answer from spi, spi-no-gamma: its formula has no gain." in result.stdout


def test_json_holds_the_same_numbers_unrounded():
    result = bound("--values", "-1", "0.5", "--visits", "100", "--zeta", "0.2", "--json")
    answer = json.loads(result.stdout)
    assert answer["span"] == 1.5
    assert answer["asked"]["visits"] == 100
    assert [found["method"] for found in answer["answers"]] == list(BOUNDS)
    for found in answer["answers"]:
        assert found["zeta"] == zeta(found["method"], 100, SIZE)
        assert found["n_wedge"] == n_wedge(found["method"], 0.2, SIZE)
        assert found["says_nothing"] is True
