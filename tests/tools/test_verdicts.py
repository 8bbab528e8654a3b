"""What stands at the top of results, held against the truth, and the page about it."""

import csv
import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

import careless_structures
from coverage_page import write_coverage_page, write_verdicts
from judged_results import (
    JudgedResult,
    all_together,
    read_verdicts,
    refuted_verdicts,
    verdict_counts,
)
from support.coverage_runs import run_with_certifiers
from surestep import performance
from surestep.environments import make
from surestep.errors import SurestepError

TOOL = Path(__file__).parents[2] / "tools" / "verdicts.py"
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"


def said(verdict, *, lower=0.0, belief=math.nan, gain=0.0, family="f", repetition=0):
    return JudgedResult(family, family, 100, repetition, 0, verdict, lower, belief, gain, 1.0)


@pytest.mark.parametrize(
    ("verdict", "lower", "belief", "gain", "wrong", "no_better"),
    [
        ("proved better", 0.2, math.nan, 0.1, True, False),
        ("proved better", 0.2, math.nan, 0.2, False, False),
        ("proved better", 0.2, math.nan, 0.2 - 1e-12, False, False),  # rounding
        ("proved better", 0.2, math.nan, 1e-12, True, True),
        ("believed better", -1, 0.2, 0.1, True, False),
        ("believed better", 0.9, 0.05, 0.1, False, False),
        ("believed better", 0.0, 0.2, -0.1, True, True),
        ("not shown to be better", 0.2, 0.2, -0.1, False, False),
        ("nothing changed", 0.0, math.nan, 0.0, False, False),
    ],
)
def test_a_verdict_is_wrong_where_less_is_true(verdict, lower, belief, gain, wrong, no_better):
    found = said(verdict, lower=lower, belief=belief, gain=gain)
    assert (found.wrong, found.no_better) == (wrong, no_better)


def test_verdicts_are_counted_by_family_size_and_stress_test():
    rows = [
        said("proved better", lower=0.1, gain=0.2),
        said("nothing changed", family="g"),
        said("proved better", lower=0.3, gain=0.2),
        said("believed better", belief=0.3, gain=0.0),
    ]
    first, second = verdict_counts(rows)
    assert first._asdict() == {
        "family": "f", "episodes": 100, "worlds": 0, "logs": 3, "mean_gain": pytest.approx(0.4 / 3),
        "proved": 2, "proved_wrong": 1, "proved_no_better": 0,
        "believed": 1, "believed_wrong": 1, "believed_no_better": 1,
    }  # fmt: skip
    assert (second.family, second.logs, second.proved) == ("g", 1, 0)
    (both,) = all_together([first, second])
    assert both._replace(mean_gain=0.0) == first._replace(
        family="all of these", logs=4, mean_gain=0.0
    )
    assert both.mean_gain == pytest.approx(0.1)


def test_verdicts_are_refuted_as_claims_are():
    """At 1 %, 20 of 100 at δ = 10 % are beyond chance (19.2 is the limit), 15 are not."""

    def counted(wrong):
        right = [said("proved better", lower=0.1, gain=0.2)] * (100 - wrong)
        return verdict_counts(right + [said("proved better", lower=0.3, gain=0.2)] * wrong)

    assert refuted_verdicts(counted(15), 0.1) == []
    assert refuted_verdicts(counted(25), 0.1) == counted(25)


@pytest.fixture(scope="module")
def tool():
    """The script, as a module."""
    spec = importlib.util.spec_from_file_location("verdicts_tool", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.thorough
def test_a_log_goes_through_improve_as_a_user_would_give_it(tool, monkeypatch):
    benchmark, results = make("nearly-alike", effect=1), []
    improve = tool.surestep.improve
    monkeypatch.setattr(
        tool.surestep, "improve", lambda *a, **k: results.append(improve(*a, **k)) or results[0]
    )
    log = benchmark.sample(400, np.random.default_rng(0))
    found = tool.verdict_of(benchmark, log, 0)
    (result,) = results
    assert found["verdict"] == result.verdict
    # The policy by its labels, state by state, into the model itself.
    table = benchmark.behavior.dense().copy()
    states, actions = result.table.vocabulary.states, result.table.vocabulary.actions
    for k, chance in enumerate(result.table.probability):
        state = int(states[result.table.pairs.state[k]][0])
        if state != 19:
            table[state, int(actions[result.table.pairs.action[k]][0])] = chance
    policy = type(benchmark.behavior).from_dense(benchmark.mdp, table)
    gain = performance(benchmark.mdp, policy) - benchmark.performance_of_behavior()
    assert found["gain"] == pytest.approx(gain, abs=1e-9)
    assert found["gain"] > 0
    assert found["lower"] == result.certificates[0].lower


def test_a_user_declares_ranges_where_the_world_has_them_and_nothing_where_nobody_does(tool):
    disaster = {"running": (-500.0, 1.5), "ending": (-500.0, 1.5)}
    assert tool.declared_in(make("disaster")) == disaster
    assert tool.declared_in(make("disaster", declared=False)) == {}
    assert tool.declared_in(make("bandit")) == {"returns": (0.0, 1.0)}


@pytest.mark.thorough
def test_careless_logs_are_families_and_refused_ones_claim_nothing(tool, tmp_path):
    cells = {(family, size) for family, _, size in tool.careless_cells()}
    missing = tool.missing_cases(tmp_path / "verdicts.csv", 1, 0)
    assert cells == {(c.environment, c.episodes) for c in missing if isinstance(c.environment, str)}
    refused = tool.judged(tool.Case("dropped by a query", 300, 0, 0))
    assert refused.verdict == "refused"
    assert not refused.wrong
    copied = tool.judged(tool.Case("copied rows", 100, 1, 0))
    assert copied.verdict in ("not shown to be better", "nothing changed")
    assert copied.gain == 0


@pytest.mark.parametrize(
    "world",
    [
        careless_structures.rare_losses,
        careless_structures.practice_by_parity,
        careless_structures.declared_trial,
    ],
)
def test_logs_with_a_structure_earn_what_their_laws_say(world):
    """The mean of 2,000 episodes, within 5 standard errors."""
    log = world(0, 2_000)
    returns = np.bincount(log.table["episode"], log.table["reward"])
    assert abs(returns.mean() - log.before) <= 5 * returns.std() / np.sqrt(2_000)


def test_a_structure_beside_a_false_policy_is_a_family_too(tool):
    found = tool.judged(tool.Case("[structure] not as declared", 1000, 0, 0))
    assert found.gain == pytest.approx(4 * 0.1 * 0.3)  # nine in ten went
    assert found.lower > found.gain
    assert found.verdict == "not shown to be better"
    assert not found.wrong


def test_a_run_goes_on_where_it_stopped(tool, monkeypatch, tmp_path):
    cells = list(tool.families())
    assert {members[0].name for members, _ in cells} >= {"alike", "noisy", "hidden-cause"}
    monkeypatch.setattr(tool, "families", lambda: iter(cells[:2]))
    monkeypatch.setattr(tool, "careless_cells", list)
    facts = {"verdict": "nothing changed", "lower": 0.0, "belief": 0.0, "gain": 0.0}
    monkeypatch.setattr(tool, "verdict_of", lambda *_: facts | {"behavior_performance": 1.0})
    path = tmp_path / "runs" / "verdicts.csv"
    tool.run(path, 1, 0, math.inf)
    assert len(read_verdicts(path)) == 2
    tool.run(path, 3, 0, math.inf)
    rows = read_verdicts(path)
    assert [row.repetition for row in rows] == [0, 0, 1, 1, 2, 2]
    assert {row.environment for row in rows} == {f"alike, seed={seed}" for seed in (1, 2, 3)}
    assert {row.family for row in rows} == {"alike"}
    tool.run(path, 9, 0, -1.0)
    assert read_verdicts(path) == rows


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """The directory of a small run with certifiers."""
    return run_with_certifiers(tmp_path_factory.mktemp("runs") / "small")


@pytest.mark.thorough
def test_the_page_keeps_what_stands_outside_of_the_marks(small_run, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Above\n\n{BEGIN}\nold\n{END}\n\nBelow\n")
    written = write_coverage_page(page, [small_run], tmp_path / "pictures")
    names = ("small.svg", "small.csv", "by-certifier/small.csv", "by-size/small.csv")
    assert written == [page, *(tmp_path / "pictures" / name for name in names)]
    text = page.read_text()
    assert text.startswith(f"# Above\n\n{BEGIN}\n")
    assert text.endswith(f"{END}\n\nBelow\n")
    assert "old" not in text
    assert "## A small one\n\n![a small one](pictures/small.svg)" in text
    assert all(f"](pictures/{name})" in text for name in names)
    assert "| posterior | each MDP | 4 | 3 |" in text
    assert "| posterior | families pooled | 4 | 3 |" in text
    with (tmp_path / "pictures" / names[2]).open(newline="", encoding="utf-8") as file:
        rows = [row[:4] for row in csv.reader(file)]
    assert ["wet-chicken: basic-rl", "a-priori, beta", "always refused", "2"] in rows
    with (tmp_path / "pictures" / names[3]).open(newline="", encoding="utf-8") as file:
        sizes = list(csv.DictReader(file))
    (refused,) = {row["refused"] for row in sizes if row["certifier"] == "a-priori, beta"} & {"1"}
    assert all(row["mean_lower"] == "" for row in sizes if row["refused"] == refused)
    again = page.read_bytes()
    write_coverage_page(page, [small_run], tmp_path / "pictures")
    assert page.read_bytes() == again


def test_a_page_without_marks_is_refused_and_left_alone(small_run, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{END} {BEGIN}")
    with pytest.raises(SurestepError, match="lacks the marks"):
        write_coverage_page(page, [small_run], tmp_path)
    assert page.read_text() == f"{END} {BEGIN}"
    with pytest.raises(SurestepError, match="cannot read"):
        write_coverage_page(Path(tmp_path / "missing.md"), [small_run], tmp_path)


def test_the_page_says_how_often_better_is_wrong(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- verdicts: begin -->former<!-- verdicts: end -->\nbelow\n")
    counts = verdict_counts([said("proved better", lower=0.3, gain=0.2)] * 40)
    broken = verdict_counts([said("believed better", belief=0.3, family="hidden")])
    write_verdicts(page, counts, broken, 0.1, verdict_counts([said("refused", family="stream")]))
    text = page.read_text()
    assert text.startswith("above\n<!-- verdicts: begin -->\n\n*Proved better* in 2 cells, refuted")
    assert "refuted at δ = 0.1: f, 100." in text
    assert "| all of these | 100 | 40 | 0.2 | 100 % | 100 % (91.2 % – 100 %) | 0 % | 0 % |" in text
    assert "| hidden | 100 | 1 | 0 |" in text
    assert "| stream | 100 | 1 | 0 | 0 % |" in text
    assert text.endswith("<!-- verdicts: end -->\nbelow\n")
    assert "former" not in text
