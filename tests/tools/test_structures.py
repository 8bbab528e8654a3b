"""Claims on nodes are wrong within δ, and wrong structures are caught, where the truth is known."""

import numpy as np
import pytest
from scipy.stats import binom

import structures
from structures import DELTA, DISCOUNT, SMALL, WORLDS

TRUE = [world for world in WORLDS if not world.left_out]
WRONG = [world for world in WORLDS if world.left_out and world.episodes < 1_000]


def gain_of(world):
    new, today = structures.policies(world)
    return structures.value(world, new) - structures.value(world, today)


@pytest.mark.parametrize(
    "world",
    [world for world in WORLDS if not world.learns and world.episodes == 100],
    ids=lambda w: w.name,
)
def test_the_value_is_what_logs_return(world):
    """The mean return of 300 episodes, within 5 standard errors and what comes after 30 steps."""
    _, today = structures.policies(world)
    returns = structures.logged(world._replace(episodes=300), 1).returns(DISCOUNT)
    slack = 5 * returns.std() / np.sqrt(300) + DISCOUNT**30 * 4 / (1 - DISCOUNT)
    assert abs(returns.mean() - structures.value(world, today)) <= slack


@pytest.mark.thorough
@pytest.mark.parametrize("seeds", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_claims_are_wrong_within_delta(seeds):
    """With a rate of at most 10 %, more wrong ones come once in 10,000 tests."""
    wrong = [
        np.array(structures.claims((world, seed))[:4]) > gain_of(world) + SMALL
        for world in TRUE
        for seed in range(seeds)
    ]
    most = binom.ppf(1 - 1e-4, len(wrong), DELTA)
    assert most < len(wrong)  # it can fail
    assert (np.sum(wrong, axis=0) <= most).all()


@pytest.mark.one_quick
@pytest.mark.parametrize("world", WRONG, ids=lambda w: w.name)
def test_wrong_structures_are_caught(world):
    assert structures.claims((world, 0))[4]


@pytest.mark.thorough
def test_a_wrong_structure_can_make_a_false_proof_that_its_test_forbids():
    *_, control = WORLDS
    _, stitched, robust, _, fails, _ = structures.claims((control, 0))
    assert min(stitched, robust) > gain_of(control) + SMALL
    assert fails


def test_the_table_has_a_line_a_world(monkeypatch, capsys):
    monkeypatch.setattr(structures, "WORLDS", WORLDS[:1])
    monkeypatch.setattr(structures, "available_cores", lambda: 1)
    monkeypatch.setattr("sys.argv", ["structures.py", *structures.SMALLEST])
    structures.main()
    assert len(capsys.readouterr().out.splitlines()) == 3
