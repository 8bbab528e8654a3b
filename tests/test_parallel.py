"""One map over tasks: the same answers here, in workers and on a stand-in for a cluster."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numba
import numpy as np
import pytest

from support import tasks
from support.pump_commands import EXAMPLES, PUMPS, run_surestep
from support.stand_in_ray import stand_in
from support.toy_extension import Halfway
from surestep import (
    FiniteMDP,
    Pairs,
    Policy,
    device,
    evaluate,
    extensions,
    improve,
    parallel,
    register,
)
from surestep.algorithms import make_algorithm
from surestep.errors import (
    ClusterUnavailable,
    DeviceUnavailable,
    InvalidModel,
    InvalidParameter,
    MissingExtra,
    SurestepError,
)
from surestep.io import read_log
from surestep.io.logs.source import count_on_ray
from surestep.parallel import VARIABLE, available_cores, map_as_done, reach


def models(count):
    rng = np.random.default_rng(2)
    return [
        FiniteMDP.from_dense(rng.dirichlet(np.ones(6), (6, 2)), rng.normal(size=(6, 2)), 0.9)
        for _ in range(count)
    ]


def use_parallel_kernels():
    """Evaluates a model large enough to wake the threads of the kernels."""
    states, width = 60_000, 4
    pairs = Pairs.full(states, 1)
    successor = (np.arange(states)[:, np.newaxis] + 7 * np.arange(width)) % states
    mdp = FiniteMDP(
        pairs,
        np.arange(states + 1) * width,
        successor.ravel(),
        np.full(states * width, 0.25),
        np.ones(states * width),
        np.full(states, 0.5),
        np.full(states, 1 / states),
    )
    np.testing.assert_allclose(evaluate(mdp, Policy.uniform(mdp), method="iterative"), 2.0)


@pytest.mark.slow
def test_two_workers_give_the_bits_of_one_even_after_the_parent_used_threads():
    use_parallel_kernels()
    given = models(5)
    assert list(map_as_done(tasks.plan, given, workers=2)) == list(map_as_done(tasks.plan, given))


def test_workers_are_spawned_and_answers_come_in_the_order_of_the_tasks(monkeypatch):
    monkeypatch.setattr(tasks, "MARK", "set by the parent")
    places, answers = zip(*map_as_done(tasks.whereabouts, range(20), workers=2), strict=True)
    assert places == tuple(range(20))
    assert [task for task, *_ in answers] == list(range(20))
    assert os.getpid() not in {process for _, process, *_ in answers}
    assert {method for *_, method, _ in answers} == {"spawn"}
    assert {mark for *_, mark in answers} == {"as imported"}


def test_one_worker_is_this_process():
    places, answers = zip(*map_as_done(tasks.whereabouts, range(3)), strict=True)
    assert places == (0, 1, 2)
    assert [task for task, *_ in answers] == [0, 1, 2]
    assert {process for _, process, *_ in answers} == {os.getpid()}
    done = []
    next(map_as_done(done.append, range(3)))
    assert done == [0]  # a task is done only when its answer is wanted


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_error_of_a_task_is_raised_after_the_answers_before_it(workers):
    answers = map_as_done(tasks.refuse_three, range(6), workers=workers)
    assert [next(answers) for _ in range(3)] == [(0, 0), (1, 1), (2, 2)]
    with pytest.raises(InvalidModel, match="initial state is 3, expected 0 to 0"):
        next(answers)
    assert list(answers) == []


@pytest.mark.parametrize("workers", [0, -1])
def test_there_is_at_least_one_worker(workers):
    with pytest.raises(InvalidParameter, match=f"workers is {workers}, expected 1 to 1024"):
        list(map_as_done(tasks.whereabouts, [1], workers=workers))


@pytest.mark.parametrize("workers", [1, 2])
def test_no_tasks_give_no_answers(workers):
    assert list(map_as_done(tasks.whereabouts, [], workers=workers)) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGHUP])
def test_workers_end_with_their_parent(number):
    """All of them have the pipe open that is read here, which ends when the last one has."""
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"sys.path.insert(0, {str(Path(tasks.__file__).parent)!r})\n"
        "import tasks; from surestep.parallel import map_as_done\n"
        "signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))\n"
        "list(map_as_done(tasks.never_done, range(4), workers=2))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    begun = [process.stdout.readline() for _ in range(2)]
    process.kill() if number == signal.SIGKILL else os.killpg(process.pid, number)
    _, said = process.communicate(timeout=120)
    assert begun == ["begun\n"] * 2
    assert process.returncode in (-number, 128 + number)
    if number == signal.SIGHUP:  # nor does the process by which Python cleans up
        assert said == ""
    if number == signal.SIGINT:  # one traceback, the parent's; workers say nothing
        assert said.count("Traceback") == 1
        assert said.endswith("KeyboardInterrupt\n")


def test_answers_that_are_no_longer_wanted_are_not_waited_for():
    answers = map_as_done(tasks.wait_if_asked, [0, 1, 1, 1], workers=2)
    assert next(answers) == (0, 0)
    answers.close()


def test_a_worker_that_dies_is_told_in_a_sentence():
    with pytest.raises(SurestepError, match="a worker process died, perhaps for want of memory"):
        list(map_as_done(tasks.die, range(3), workers=2))


def test_threads_do_every_task_in_its_place_and_hand_on_what_goes_wrong(two_threads, monkeypatch):
    names = set()

    def square(number):
        names.add(threading.current_thread().name)
        return number**2

    assert parallel.map_in_threads(square, range(50)) == [number**2 for number in range(50)]
    assert len(names) >= two_threads
    names.clear()
    monkeypatch.setattr(numba, "get_num_threads", lambda: 1)
    assert parallel.map_in_threads(square, [3]) == [9]
    assert names == {threading.current_thread().name}
    with pytest.raises(ZeroDivisionError):
        parallel.map_in_threads(lambda number: 1 / number, [2, 1, 0])


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
    here = list(map_as_done(str, range(3)))
    assert here == [(0, "0"), (1, "1"), (2, "2")]


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


def halfway(n_wedge):
    return make_algorithm("halfway", n_wedge=n_wedge)


def test_tasks_know_what_was_registered(use, monkeypatch):
    monkeypatch.setattr(extensions, "_registered", {})
    register(Halfway)
    ray = use()

    def get(answer, of=ray.get):
        monkeypatch.setattr(extensions, "_registered", {})  # as in another process
        return of(answer)

    ray.get = get
    assert dict(map_as_done(halfway, [3], engine="ray")) == {0: Halfway(n_wedge=3)}


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
