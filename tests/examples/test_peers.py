"""benchmarks/peers.py holds d3rlpy against the truth; here a stand-in does the fitting."""

import sys
from pathlib import Path

import numpy as np
import pytest

from surestep import optimal

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def peers(monkeypatch):
    """The benchmark's modules, as the script finds them."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    for name in ("peers", "peers_fit"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import peers

    return peers


def test_fits_are_kept_and_worth_what_they_are_worth(peers, tmp_path, monkeypatch):
    data = peers.draw("gridworld", 5, 0, tmp_path)
    plan = optimal(data.benchmark.mdp)
    best = plan.policy.probability.reshape(data.benchmark.num_states, -1).argmax(axis=1)
    other = peers.draw("gridworld", 5, 1, tmp_path)
    peers_fit = sys.modules["peers_fit"]
    asked = []

    def fit(logs, setting, device):
        """Takes action 0 everywhere after the first steps; then the best, but of the first log."""
        asked.append((len(logs), setting, device))
        none = np.zeros_like(best)
        return [np.array([none, none]), np.array([none, best])], 0.004

    monkeypatch.setattr(peers_fit, "fit", fit)
    assert peers.theirs(data) == {}
    peers_fit.fit_files([other.path, data.path], "CQL, α = 4", "cpu")
    assert asked == [(2, "CQL, α = 4", "cpu")]
    fits = peers.theirs(data)
    assert list(fits) == ["CQL, α = 4, 5,000 steps", "CQL, α = 4, 20,000 steps"]
    earned = fits["CQL, α = 4, 20,000 steps"].performance
    assert earned == pytest.approx(data.benchmark.optimal_performance())
    assert fits["CQL, α = 4, 5,000 steps"].performance < earned
    assert fits["CQL, α = 4, 20,000 steps"].seconds == pytest.approx(80)
    assert peers.theirs(other)["CQL, α = 4, 20,000 steps"].performance < earned


def test_what_is_learnt_from_are_steps_whose_next_state_is_known(peers):
    """Of a step at which the recording stopped, d3rlpy does not see where it led."""
    log = {
        "state": np.array([0, 1, 2, 3, 4]),
        "action": np.array([5, 6, 7, 8, 9]),
        "reward": np.arange(5.0),
        "terminated": np.array([False, True, False, False, False]),
        "truncated": np.array([False, False, False, False, True]),
    }
    steps = sys.modules["peers_fit"].usable(log)
    assert steps["state"].tolist() == [0, 1, 2, 3]
    assert steps["action"].tolist() == [5, 6, 7, 8]
    assert steps["terminal"].tolist() == [False, True, False, False]
    assert steps["next_state"][~steps["terminal"]].tolist() == [1, 3, 4]


def test_every_setting_has_a_file_of_its_own(peers):
    peers_fit = sys.modules["peers_fit"]
    files = {peers_fit.file_of(Path("a-1-000.log.npz"), setting) for setting in peers_fit.SETTINGS}
    assert len(files) == len(peers_fit.SETTINGS)


def test_ours_see_the_rewards_of_the_log_only(peers, tmp_path):
    data = peers.draw("gridworld", 5, 0, tmp_path)
    assert peers.problem_of(data).counts == data.log.counts()
