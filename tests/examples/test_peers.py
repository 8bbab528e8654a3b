"""benchmarks/peers.py holds d3rlpy against the truth; here a stand-in does the fitting."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

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


class Learner:
    """Takes action 0 everywhere after the first steps, and what it was given in the end."""

    def __init__(self, last):
        self.last, self.epochs = last, 0

    def fitter(self, dataset, n_steps, n_steps_per_epoch, **_):
        for number in range(1, n_steps // n_steps_per_epoch + 1):
            self.epochs = number
            yield number, {}

    def predict(self, states):
        return np.zeros(len(states), int) if self.epochs == 1 else self.last


def stand_in(last, seen):
    """A module with as much of d3rlpy as the benchmark asks for; notes the settings it is given."""
    module = ModuleType("d3rlpy")
    module.seed = lambda number: None
    module.ActionSpace = SimpleNamespace(DISCRETE="discrete")
    module.logging = SimpleNamespace(NoopAdapterFactory=object)
    module.dataset = SimpleNamespace(MDPDataset=lambda *arrays, **named: (arrays, named))

    def config(**settings):
        seen.append(settings)
        return SimpleNamespace(create=lambda device: Learner(last))

    module.algos = SimpleNamespace(DiscreteCQLConfig=config, DiscreteBCQConfig=config)
    return module


def test_fits_are_kept_and_worth_what_they_are_worth(peers, tmp_path, monkeypatch):
    data = peers.draw("gridworld", 5, 0, tmp_path)
    plan = optimal(data.benchmark.mdp)
    best = plan.policy.probability.reshape(data.benchmark.num_states, -1).argmax(axis=1)
    seen = []
    monkeypatch.setitem(sys.modules, "d3rlpy", stand_in(best, seen))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(set_num_threads=lambda n: None))
    assert peers.theirs(data) == {}
    peers_fit = sys.modules["peers_fit"]
    peers_fit.fit(data.path, "cql, α = 4")
    fits = peers.theirs(data)
    assert list(fits) == ["cql, α = 4, 5,000 steps", "cql, α = 4, 20,000 steps"]
    earned = fits["cql, α = 4, 20,000 steps"].performance
    assert earned == pytest.approx(data.benchmark.optimal_performance())
    assert fits["cql, α = 4, 5,000 steps"].performance < earned
    assert seen == [
        {"gamma": 0.95, "learning_rate": 1e-3, "target_update_interval": 250, "alpha": 4.0}
    ]


def test_every_setting_has_a_file_of_its_own(peers):
    peers_fit = sys.modules["peers_fit"]
    files = {peers_fit.file_of(Path("a-1-000.log.npz"), setting) for setting in peers_fit.SETTINGS}
    assert len(files) == len(peers_fit.SETTINGS)


def test_ours_see_the_rewards_of_the_log_only(peers, tmp_path):
    data = peers.draw("gridworld", 5, 0, tmp_path)
    assert peers.problem_of(data).counts == data.log.counts()
