"""The default prior where an even one fails: many states, few successors, little effects."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binomtest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "posterior.py"
LOGS, FALSE_ALARMS = 10, 0.01


@pytest.mark.slow
def test_an_even_prior_fails_with_700_states_and_the_default_one_does_not():
    benchmark = SimpleNamespace(**runpy.run_path(str(SCRIPT)))
    cell = benchmark.Cell(700, 2, 2, 50, 0.1, "exact")

    def chance(prior):
        """The p-value of "wrong in at most a tenth of the logs", for the first logs."""
        rows = [benchmark.claim_and_truth(cell, 99, seed, prior) for seed in range(LOGS)]
        lower, gain = np.array(rows).T
        return binomtest(int(np.sum(lower > gain)), LOGS, 0.1, "greater").pvalue

    assert chance("weight") < FALSE_ALARMS
    assert chance("cautious") > FALSE_ALARMS
