"""What stands at the top of results, held against the truth."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from judged_results import (
    JudgedResult,
    all_together,
    read_verdicts,
    refuted_verdicts,
    verdict_counts,
)
from surestep import performance
from surestep.environments import make

TOOL = Path(__file__).parents[2] / "tools" / "verdicts.py"


def said(verdict, *, lower=0.0, belief=math.nan, gain=0.0, family="f", repetition=0):
    return JudgedResult(family, family, 100, repetition, 0, verdict, lower, belief, gain, 1.0)


def test_a_verdict_is_wrong_where_less_is_true_than_was_claimed():
    assert said("proved better", lower=0.2, gain=0.1).wrong
    assert not said("proved better", lower=0.2, gain=0.2).wrong
    assert not said("proved better", lower=0.2, gain=0.2 - 1e-12).wrong  # rounding
    assert said("believed better", lower=-1, belief=0.2, gain=0.1).wrong
    assert not said("believed better", lower=0.9, belief=0.05, gain=0.1).wrong
    assert not said("not shown to be better", lower=0.2, belief=0.2).wrong
    assert not said("nothing changed").wrong


def test_no_better_is_the_plainer_question():
    assert said("proved better", lower=0.2, gain=1e-12).no_better
    assert not said("proved better", lower=0.2, gain=0.1).no_better
    assert said("believed better", belief=0.2, gain=-0.1).no_better
    assert not said("not shown to be better", gain=-0.1).no_better


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


def test_a_run_goes_on_where_it_stopped(tool, monkeypatch, tmp_path):
    cells = list(tool.families())
    assert {members[0].name for members, _ in cells} >= {"alike", "noisy", "hidden-cause"}
    monkeypatch.setattr(tool, "families", lambda: iter(cells[:2]))
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
