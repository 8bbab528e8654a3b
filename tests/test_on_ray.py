"""Work that is given to a Ray cluster; the cluster itself is a stand-in here (see test_cluster)."""

import contextlib
import os
import shutil
import socket
import sys
from functools import partial

import pytest

from support import tasks
from support.pump_commands import EXAMPLES, PUMPS, run_surestep
from support.stand_in_ray import stand_in
from surestep import device, improve, parallel
from surestep.errors import (
    ClusterUnavailable,
    DeviceUnavailable,
    InvalidModel,
    InvalidParameter,
    MissingExtra,
)
from surestep.io import read_log
from surestep.io.logs.source import count_on_ray
from surestep.parallel import VARIABLE, available_cores, map_as_done, reach

LOG = EXAMPLES / "pumps.csv"


@pytest.fixture
def use(monkeypatch):
    """Puts a stand-in of certain machines in Ray's place."""
    return partial(stand_in, monkeypatch)


def device_of(task):
    return os.environ[VARIABLE]


def test_answers_come_as_they_get_done_with_their_places(use):
    ray = use({"CPU": 2.0}, {"CPU": 1.0})
    answers = list(map_as_done(str, range(20), engine="ray"))
    assert answers != sorted(answers)
    assert dict(answers) == {task: str(task) for task in range(20)}
    assert ray.most_waiting == parallel.TASKS_A_CORE * 3  # not all tasks at once
    assert (ray.options["num_cpus"], ray.options["max_retries"]) == (1, parallel.RETRIES)
    assert available_cores("ray") == 3
    assert list(map_as_done(str, [], engine="ray")) == []


def test_here_answers_have_the_order_of_the_tasks():
    assert list(map_as_done(str, range(3))) == [(0, "0"), (1, "1"), (2, "2")]


def test_a_larger_cluster_gets_more_tasks(use):
    ray = use({"CPU": 1.0})
    answers = map_as_done(str, range(50), engine="ray")
    next(answers)
    assert ray.most_waiting == parallel.TASKS_A_CORE
    ray.machines.append({"CPU": 4.0})
    next(answers)
    assert ray.most_waiting == parallel.TASKS_A_CORE * 5
    ray.machines.clear()  # all of them are lost; others may come
    assert len([next(answers) for _ in range(48)]) == 48


def test_tasks_that_are_no_longer_wanted_are_called_off(use):
    ray = use()
    answers = map_as_done(str, range(20), engine="ray")
    next(answers)
    answers.close()
    assert set(ray.cancelled) == set(ray.waiting) != set()


def test_an_error_of_a_task_is_raised_as_it_was_there(use):
    use()
    with pytest.raises(InvalidModel, match="initial state is 3, expected 0 to 0") as refusal:
        dict(map_as_done(tasks.refuse_three, range(6), engine="ray"))
    assert "Traceback" not in str(refusal.value)


def test_a_task_that_the_cluster_loses_is_told_in_a_line(use):
    ray = use()
    ray.lost = True
    with pytest.raises(ClusterUnavailable, match="did not finish a task: The node is gone") as lost:
        dict(map_as_done(str, range(6), engine="ray"))
    assert "\n" not in str(lost.value)


@pytest.mark.parametrize("name", ["auto", "cpu"])
def test_tasks_know_the_device(name, use):
    use()
    with device(name):
        assert dict(map_as_done(device_of, [0], engine="ray")) == {0: name}


@pytest.mark.parametrize(
    ("name", "machines", "share"),
    [
        ("auto", [{"CPU": 8.0}], 0),
        ("auto", [{"CPU": 8.0}, {"CPU": 4.0, "GPU": 1.0}], 0.25),
        ("auto", [{"CPU": 12.0, "GPU": 1.0}, {"CPU": 4.0, "GPU": 2.0}], 0.0833),
        ("auto", [{"CPU": 2.0, "GPU": 8.0}], 1),
        ("auto", [{"CPU": 256.0, "GPU": 1.0}], parallel.LEAST_SHARE),
        ("auto", [{"CPU": 4.0}, {"GPU": 1.0}], 0),  # nothing can run beside that one
        ("cuda", [{"CPU": 4.0, "GPU": 1.0}], 0.25),
        ("cpu", [{"CPU": 4.0, "GPU": 1.0}], 0),
    ],
)
def test_a_task_asks_for_its_share_of_a_gpu(name, machines, share, use, monkeypatch):
    ray = use(*machines)
    monkeypatch.setenv(VARIABLE, name)
    assert dict(map_as_done(str, [0], engine="ray")) == {0: "0"}
    assert ray.options["num_gpus"] == share


def test_a_gpu_that_no_machine_has_is_refused(use, monkeypatch):
    use({"CPU": 4.0})
    monkeypatch.setenv(VARIABLE, "cuda")
    with pytest.raises(DeviceUnavailable, match="no machine of the Ray cluster has a GPU"):
        dict(map_as_done(str, [0], engine="ray"))


@pytest.fixture
def closed_port():
    """A port of this machine where nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield listener.getsockname()[1]


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_a_cluster_that_does_not_answer_is_refused_at_once(scheme, use, closed_port, monkeypatch):
    ray = use()
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    address = f"{scheme}127.0.0.1:{closed_port}"
    with pytest.raises(ClusterUnavailable, match=f"address is '{address}', but no Ray cluster"):
        reach("ray", address)
    result = run_surestep("run", "paper/gridworld", "--engine", "ray", "--address", address)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: --address is '{address}', but no Ray cluster can be")
    assert result.stderr.count("\n") == 1
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(ClusterUnavailable):
        reach("ray")


@pytest.mark.parametrize("address", ["here:70000", "nonsense"])
def test_what_is_no_address_is_refused(address, use, monkeypatch):
    ray = use()

    def init(**given):
        raise ValueError("Invalid address format: nonsense")

    ray.init = init
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ClusterUnavailable, match=f"address is '{address}', but"):
        reach("ray", address)


COMMANDS = {
    "run": ("run", "coverage/alike"),
    "count": ("count", LOG, *PUMPS[:-2], "-o", "counts.parquet"),
    "rehearse": ("rehearse", LOG, *PUMPS),
    "improve": ("improve", LOG, *PUMPS, "-o", "result"),
}


def test_workers_in_another_folder_find_the_files_of_the_command(use, tmp_path, monkeypatch):
    ray, elsewhere = use(), tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copyfile(LOG, tmp_path / "pumps.csv")

    def get(answer, of=ray.get):
        with contextlib.chdir(elsewhere):
            return of(answer)

    ray.get = get
    monkeypatch.chdir(tmp_path)
    source = read_log("pumps.csv", columns={"state": ["condition", "demand"], "action": "decision"})
    assert count_on_ray(source).rows_read == 70_631


@pytest.mark.parametrize("verb", COMMANDS)
def test_all_verbs_with_an_engine_say_what_is_missing_before_they_begin(verb, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as where it is not installed
    result = run_surestep(*COMMANDS[verb], "--engine", "ray")
    assert result.exit_code == 2
    assert result.stderr.endswith("with: pip install '.[cluster]'\n")
    assert result.stderr.count("\n") == 1
    result = run_surestep(*COMMANDS[verb], "--address", "auto")
    assert (result.exit_code, "--address is for --engine ray" in result.stderr) == (2, True)


def test_an_engine_that_there_is_not_is_refused(monkeypatch):
    with pytest.raises(InvalidParameter, match="engine is 'Ray', expected one of local, ray"):
        map_as_done(str, [1], engine="Ray")
    with pytest.raises(InvalidParameter, match="address is for engine='ray'"):
        improve(LOG, discount=0.95, address="auto")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match="needs Ray"):
        improve(LOG, discount=0.95, engine="ray")
