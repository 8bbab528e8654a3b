"""An algorithm, an environment, a log format and a check of one's own, each by its recipe.

docs/building.md says which file and which line each takes; here the line is set for a test. (A
section of the report: tests/pipeline/test_sections.py.)
"""

import duckdb
import numpy as np
import pytest

import surestep
from support.labelled_worlds import COLUMNS, NAMES, world
from support.log_tables import write_table
from support.toy_extension import Halfway
from surestep.algorithms import ALGORITHMS
from surestep.checks import CHECKS, Check, failed, says
from surestep.checks.check import CheckKind
from surestep.environments.families import bandit
from surestep.environments.registry import ENVIRONMENTS
from surestep.experiments import read_experiments, run_experiment
from surestep.io.logs.formats import OF_ENDINGS, Format
from surestep.io.sql import file_list
from surestep.pipeline import certify_result, verify_result
from surestep.pipeline.inspect import inspect


def rows_of(table):
    """The environment and the algorithm of each row of a run's table."""
    return duckdb.sql(f"SELECT environment, algorithm FROM '{table}'").fetchall()


def test_an_algorithm_of_ones_own_improves_is_rehearsed_verified_and_run(tmp_path, monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "halfway", Halfway)
    log = write_table(tmp_path / "log.csv", world(5, states=5, episodes=60).rows, NAMES)
    source = surestep.read_log(log, columns=COLUMNS)
    kinds = ["robust"]
    result = surestep.improve(
        source, "halfway", discount=0.9, n_wedge=12, certificates=kinds, worlds=1
    )
    assert result.rehearsal is not None
    out = tmp_path / "out"
    result.save(out)
    assert "halfway" in (out / "report.html").read_text()
    assert verify_result(out, log).level == "same bytes"
    assert (result.table.policy.probability >= result.table.behavior / 2 - 1e-12).all()
    experiment = tmp_path / "own.toml"
    experiment.write_text(
        'title = "Own"\nseed = 1\nrepetitions = 2\nepisodes = [30]\n'
        '[[environments]]\nname = "bandit"\n[[algorithms]]\nname = "halfway"\nn_wedge = 2\n'
    )
    (read,) = read_experiments(str(experiment))
    assert rows_of(run_experiment(read, tmp_path / "run")) == [("bandit", "halfway")] * 2


class Reading(Halfway):
    """One that looks at whole episodes."""

    looks_at_log = True

    def improve(self, problem):
        assert problem.log is not None
        return super().improve(problem)


def test_an_algorithm_that_looks_at_whole_episodes_is_given_them(tmp_path, monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "halfway", Reading)
    log = write_table(tmp_path / "log.csv", world(5, states=5, episodes=20).rows, NAMES)
    source = surestep.read_log(log, columns=COLUMNS)
    terms = {"discount": 0.9, "n_wedge": 12, "certificates": ["robust"], "worlds": 0}
    assert surestep.improve(source, "halfway", **terms).record.parameters.n_wedge == 12


def coin(seed: int = 1):
    """A bandit with two arms."""
    return bandit(seed=seed, arms=2)


def test_an_environment_of_ones_own_is_made_and_run(tmp_path, monkeypatch):
    monkeypatch.setitem(ENVIRONMENTS, "coin", coin)
    experiment = tmp_path / "own.toml"
    experiment.write_text(
        'title = "Own"\nseed = 1\nrepetitions = 3\nepisodes = [30]\n'
        '[[environments]]\nname = "coin"\nseed = 2\n[[algorithms]]\nname = "basic-rl"\n'
    )
    (read,) = read_experiments(str(experiment))
    assert rows_of(run_experiment(read, tmp_path / "run")) == [("coin, seed=2", "basic-rl")] * 3


def scan_bars(database, files, reading):
    """SQL that reads tables whose columns stand between bars."""
    return f"SELECT * FROM read_csv({file_list(files)}, delim='|', all_varchar=true, header=true)"


def test_a_log_format_of_ones_own_is_counted_inspected_and_improved(tmp_path, monkeypatch):
    rows = world(5, states=5, episodes=60).rows
    usual = write_table(tmp_path / "log.csv", rows, NAMES)
    own = tmp_path / "log.bars"
    own.write_text(usual.read_text().replace(",", "|"))
    with pytest.raises(surestep.SurestepError, match=r"log\.bars has no known ending, expected"):
        surestep.read_log(own, columns=COLUMNS)
    monkeypatch.setitem(OF_ENDINGS, ".bars", Format((".bars",), scan_bars))
    improved = [
        surestep.improve(
            surestep.read_log(path, columns=COLUMNS),
            discount=0.9,
            n_wedge=12,
            certificates=["robust"],
            worlds=0,
        )
        for path in (usual, own)
    ]
    chances = [result.table.policy.probability for result in improved]
    np.testing.assert_array_equal(*chances)
    looked = [inspect(surestep.read_log(path, columns=COLUMNS)) for path in (usual, own)]
    assert looked[0].coverage == looked[1].coverage
    improved[1].save(tmp_path / "out")
    assert verify_result(tmp_path / "out", own).level == "same bytes"
    judged = certify_result(tmp_path / "out", own, ["robust"])
    assert judged.certificates[0].lower == improved[1].certificate.lower


def is_short(given):
    steps = given.log.num_steps / given.log.num_episodes
    outcome = "failed" if steps < 100 else "passed"
    return Check(code="long-episodes", outcome=outcome, figures={"steps": steps})


@pytest.mark.thorough
def test_a_check_of_ones_own_is_shown_saved_and_speaks_against_a_proof(tmp_path, monkeypatch):
    """Its failure forbids to call anything proved."""
    kind = CheckKind(
        code="long-episodes",
        title="Episodes are long",
        passed="They have {steps:step} on average.",
        failed="Episodes are short: {steps:2} steps on average.",
        figures=("steps",),
        against="markov",
        forbids_proof=lambda check, certificate: True,
        of_log=is_short,
    )
    rng = np.random.default_rng(3)
    treated = rng.random(2000) < 0.5
    rows = {
        "state": rng.choice(["a", "b"], 2000),
        "action": np.where(treated, "treat", "wait"),
        "reward": (rng.random(2000) < 0.2 + 0.6 * treated).astype(float),
    }
    log = write_table(
        tmp_path / "log.csv",
        [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)],
        tuple(rows),
    )
    terms = {"discount": 0.0, "worlds": 0, "certificates": ["stitched"], "ending": (0.0, 1.0)}
    usual = surestep.improve(surestep.read_log(log), **terms)
    assert usual.verdict.startswith("proved")
    monkeypatch.setitem(CHECKS, kind.code, kind)
    assert [check.code for check in failed(inspect(surestep.read_log(log)).checks)] == [kind.code]
    result = surestep.improve(surestep.read_log(log), **terms)
    (found,) = failed(result.record.checks)
    assert says(found) == "Episodes are short: 1 steps on average."
    assert result.verdict == "not shown to be better"
    result.save(tmp_path / "out")
    assert says(found) in (tmp_path / "out" / "report.html").read_text()
    assert verify_result(tmp_path / "out", log).level == "same bytes"
