"""Every algorithm on a model of 10⁵ states, which nobody could store as a table."""

import numpy as np
import pytest

from contract.constraints import CONSTRAINTS
from contract.settings import SETTINGS, needs_log
from support.problems import uniform_problem
from surestep import Counts, Pairs, performance
from surestep._arrays import offsets_of
from surestep.algorithms import ALGORITHMS, Promise
from surestep.errors import InvalidParameter
from surestep.model.counts import LoggedRewards

STATES = 100_000
FAST = "spibb"  # the one that every run of the tests tries
CASES = [
    next(algorithm for algorithm in SETTINGS[name] if not needs_log(algorithm))
    for name in ALGORITHMS
    if not all(map(needs_log, SETTINGS.get(name, ())))
]


@pytest.fixture(scope="module")
def problem():
    """Ragged actions, ends, pairs never visited, and three successors of each other one."""
    rng = np.random.default_rng(7)
    enabled = rng.random((STATES, 3)) < 0.8
    enabled[:, 0] = True
    pairs = Pairs.from_enabled(enabled)
    ends = rng.random(STATES) < 0.02
    seen = (rng.random(pairs.num_pairs) < 0.9) & ~ends[pairs.state]
    near = rng.integers(0, STATES, (np.count_nonzero(seen), 1)) + np.array([0, 17, 4001])
    counts = Counts(
        pairs,
        offsets_of(3 * seen),
        (near % STATES).ravel(),
        rng.integers(1, 200, near.size),
        LoggedRewards(rng.random(pairs.num_pairs), "pair", True),
        ~ends,
        ends,
    )
    return uniform_problem(counts, 0.9, (0.0, 10.0))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "algorithm",
    [
        pytest.param(each, id=each.name, marks=[] if each.name == FAST else pytest.mark.slow)
        for each in CASES
    ],
)
def test_a_large_model_is_improved_or_refused_by_its_size(algorithm, problem):
    if algorithm.name in ("provable", "constrained"):
        with pytest.raises(InvalidParameter, match="260,076 pairs, but the linear program of"):
            algorithm.improve(problem)
        return
    found = algorithm.improve(problem)
    assert found.plan.error_bound <= 1e-6
    estimate = problem.estimate()
    gain = performance(estimate, found.policy) - performance(estimate, problem.behavior)
    if Promise.NEVER_WORSE in algorithm.promises:
        assert gain >= -1e-6
    if algorithm.name not in ("robust-mdp", "vi-lcb"):  # 10⁵ states leave all open to them
        assert gain > 0.01
    if algorithm.constraint:
        CONSTRAINTS[algorithm.name](algorithm, problem, found)
