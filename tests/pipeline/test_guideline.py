"""A guideline, compared with both policies, and judged as a table."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import surestep
from surestep.cli.main import main
from surestep.errors import InvalidLog, InvalidParameter
from surestep.pipeline import certify_policy, verify_result

GUIDELINE = "state,action\nsevere,treat\n"
TERMS = {"discount": 0.0, "ending": (0.0, 1.0), "worlds": 0}
COLUMNS = ("state", "action", "reward")
LOG = """
files = "log.csv"
[stakes]
discount = 0.0
ending = [0.0, 1.0]
[guideline]
policy = "guideline.csv"
[method]
worlds = 0
"""


@pytest.fixture
def folder(tmp_path):
    """400 rows: to treat the severe pays 0.8 instead of 0.4, and the mild 0.3 instead of 0.7."""
    rng = np.random.default_rng(0)
    severe, treat = (rng.integers(0, 2, 400) for _ in range(2))
    chance = np.where(severe, np.where(treat, 0.8, 0.4), np.where(treat, 0.3, 0.7))
    paid = (rng.random(400) < chance).astype(int)
    rows = [
        (("mild", "severe")[s], ("wait", "treat")[a], r)
        for s, a, r in zip(severe, treat, paid.tolist(), strict=True)
    ]
    lines = [",".join(map(str, row)) for row in (COLUMNS, *rows)]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    (tmp_path / "guideline.csv").write_text(GUIDELINE)
    (tmp_path / "log.toml").write_text(LOG)
    return tmp_path


def means(folder, first):
    """The mean reward of rows from `first` on, by state and action, and how often states are."""
    rows = [x.split(",") for x in (folder / "log.csv").read_text().split()[1 + first :]]
    paid = {}
    for state, action, reward in rows:
        paid.setdefault((state, action), []).append(float(reward))
    share = {s: sum(row[0] == s for row in rows) / len(rows) for s in ("mild", "severe")}
    return {key: np.mean(each) for key, each in paid.items()}, share


def test_gains_are_those_of_the_rows_set_aside(folder):
    result = surestep.improve(str(folder / "log.toml"))
    train = result.record.parameters.train_share
    first = round(train * 400)
    mean, share = means(folder, first)
    rows = [x.split(",") for x in (folder / "log.csv").read_text().split()[1 : 1 + first]]
    habit = np.mean([row[1] == "treat" for row in rows if row[0] == "severe"])
    today = habit * mean["severe", "treat"] + (1 - habit) * mean["severe", "wait"]
    estimates = result.record.estimates
    gain, low, high = estimates["guideline"]
    assert gain == pytest.approx(share["severe"] * (mean["severe", "treat"] - today), abs=0.01)
    assert low < gain < high
    over, low, high = estimates["over_guideline"]
    assert gain + over == pytest.approx(estimates["held_out_gain"], rel=1e-9)
    assert low < over < high
    assert "The guideline gains" in result.report
    assert "<bdi>Guideline</bdi>" in result.card


@pytest.mark.thorough
def test_a_result_with_a_guideline_is_saved_read_and_verified(folder):
    ran = CliRunner().invoke(
        main, ["improve", str(folder / "log.toml"), "-o", str(folder / "out"), "--json"]
    )
    told = json.loads(ran.stdout)
    result = surestep.load(folder / "out")
    assert tuple(told["guideline"]) == tuple(result.record.estimates["guideline"])
    assert tuple(told["over_guideline"]) == tuple(result.record.estimates["over_guideline"])
    assert verify_result(folder / "out", str(folder / "log.toml")).level == "same bytes"


@pytest.mark.thorough
def test_a_table_is_judged_without_a_class(folder):
    log = str(folder / "log.toml")
    (claim, told), *others = certify_policy(log, folder / "guideline.csv")
    assert claim.kind == "stitched"
    assert told.rung == "proved better"
    assert 0 < claim.lower < 0.2
    assert all(verdict.rung != "proved better" for _, verdict in others)
    table = {"state": ["severe"], "action": ["treat"]}
    assert certify_policy(log, table, ["robust"])[0][0].kind == "robust"
    ran = CliRunner().invoke(main, ["certify", log, "--policy", str(folder / "guideline.csv")])
    assert ran.exit_code == 0
    assert "stitched: proved better" in ran.stdout
    same = {"state": ["severe"], "action": ["wait"]}
    assert certify_policy(log, same)[0][1].rung != "proved better"


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("state,action\nsevere,tread\n", InvalidLog, r"row 1: no action has 'tread' .*'treat'"),
        ("state,action\nmild,wait\nsever,treat\n", InvalidLog, r"row 2: no state has 'sever'"),
        ("state,action\nmild,\n", InvalidLog, r"row 1, column 'action': found nothing"),
        ("state,action\nmild,wait\nmild,treat\n", InvalidParameter, r"has 2 actions in .*'mild'"),
        ("ward,action\nmild,wait\n", InvalidLog, r"no column 'state'"),
    ],
)
def test_a_bad_table_is_refused_by_row_and_value(folder, text, error, words):
    (folder / "guideline.csv").write_text(text)
    with pytest.raises(error, match=words):
        certify_policy(str(folder / "log.toml"), folder / "guideline.csv")


def test_certify_still_needs_a_log_for_a_result(folder):
    ran = CliRunner().invoke(main, ["certify", str(folder)])
    assert ran.exit_code == 2
    assert "expected a LOG" in ran.stderr
