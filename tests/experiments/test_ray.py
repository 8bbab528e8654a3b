"""The same cells on a Ray cluster give the same table."""

import os
import sys

import pytest

from support import toy_extension
from surestep import extensions, register
from surestep.experiments import read_experiments, run_experiment

pytestmark = [
    pytest.mark.slow,  # a cluster takes its time to start
    # Ray warns about its own future defaults, and leaves sockets to the interpreter's end.
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

EXPERIMENT = """
seed = 3
repetitions = 120
episodes = [5, 50]

[[environments]]
name = "gridworld"

[[algorithms]]
name = "spibb"
n_wedge = [5, 10]

[[algorithms]]
name = "halfway"  # not built in
n_wedge = 5
"""


def test_a_local_cluster_gives_the_same_table(tmp_path, monkeypatch):
    monkeypatch.setattr(extensions, "_registered", {})
    register(toy_extension.Halfway)
    ray = pytest.importorskip("ray", reason="needs the extra: pip install '.[cluster]'")
    plan = tmp_path / "small.toml"
    plan.write_text(EXPERIMENT)
    (experiment,) = read_experiments(str(plan))
    tests = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    ray.init(num_cpus=2, runtime_env=tests, include_dashboard=False, log_to_driver=False)
    try:
        cluster = run_experiment(experiment, tmp_path / "cluster", engine="ray")
    finally:
        ray.shutdown()
    alone = run_experiment(experiment, tmp_path / "alone")
    assert cluster.read_bytes() == alone.read_bytes()
