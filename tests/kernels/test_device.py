"""Which machine kernels run on is said in one place, and a GPU that cannot be used is named."""

import os
import subprocess
import sys
import warnings
from importlib.util import find_spec as real_find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from support.gpu import MANY
from surestep import FiniteMDP, MDPBatch, Policy, device, evaluate_batch
from surestep._arrays import writable_owner
from surestep.cli.main import main
from surestep.errors import DeviceUnavailable, InvalidParameter, MissingExtra
from surestep.kernels import devices
from surestep.kernels.devices import (
    PROCESSOR,
    brought_home,
    chosen_device,
    device_in_use,
    gpu_is_for,
    machine_for,
    machine_for_tasks,
    require_gpu,
    usable_gpu,
)
from surestep.kernels.elimination import evaluate_each, room_to_evaluate
from surestep.kernels.types import FloatsIn, FloatsOut, Room, RoomSize
from surestep.planning.backups import Backup
from surestep.planning.batch import models_of, plan_elimination
from test_gpu import files_for_gpus

TESTS = Path(__file__).parents[1]


class Seen:
    """A GPU that only says its name."""

    name = "a GPU of the test"


@pytest.fixture
def no_extra(monkeypatch):
    monkeypatch.delenv("SURESTEP_DEVICE", raising=False)
    monkeypatch.setattr(devices, "find_spec", lambda name: None)


@pytest.fixture
def extra(monkeypatch):
    """The extra is there; what is found is what the test puts into the list."""
    monkeypatch.delenv("SURESTEP_DEVICE", raising=False)
    monkeypatch.setattr(devices, "find_spec", lambda name: name)
    devices.gpu_or_none.cache_clear()
    found = []
    monkeypatch.setattr(devices, "gpu_or_reason", lambda: found[0])
    yield found
    devices.gpu_or_none.cache_clear()


def test_a_device_is_chosen_by_context_by_variable_or_not_at_all(monkeypatch, no_extra):
    assert chosen_device() == "auto"
    monkeypatch.setenv("SURESTEP_DEVICE", "cpu")
    assert chosen_device() == "cpu"
    with device("auto"):
        assert chosen_device() == "auto"
        with device("cpu"):
            assert chosen_device() == "cpu"
        assert chosen_device() == "auto"
    assert os.environ["SURESTEP_DEVICE"] == "cpu"


def test_an_unknown_device_is_refused_and_nothing_stays_chosen(no_extra):
    with pytest.raises(InvalidParameter, match=r"device .* is 'tpu', expected one of auto, cpu"):
        device("tpu").__enter__()
    assert "SURESTEP_DEVICE" not in os.environ


def test_without_the_extra_everything_is_as_ever_without_a_word(no_extra):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert usable_gpu() is None
        assert device_in_use() == "cpu"
        assert not gpu_is_for(10**9, (np.zeros(1),))
        assert machine_for_tasks(10**9) == PROCESSOR
        arrays = (np.zeros(10**7),)
        assert machine_for(arrays) == (PROCESSOR, arrays)


def test_a_gpu_that_was_asked_for_needs_the_extra(no_extra):
    with pytest.raises(MissingExtra, match=r"pip install '\.\[gpu\]'$"), device("cuda"):
        pass
    result = CliRunner().invoke(main, ["run", "tiny", "--device", "cuda"])
    assert result.exit_code == 2
    assert "--device is 'cuda'" in result.stderr
    assert result.stderr.strip().endswith("pip install '.[gpu]'")


def test_a_gpu_that_cannot_be_used_is_an_error_where_it_was_asked_for(extra):
    extra.append("no driver was found")
    with pytest.raises(DeviceUnavailable, match="no GPU can be used: no driver was found"):
        device("cuda").__enter__()
    assert "SURESTEP_DEVICE" not in os.environ


def test_a_gpu_that_cannot_be_used_is_told_once_where_it_was_not_asked_for(extra):
    extra.append("its memory is full")
    with pytest.warns(UserWarning, match="the GPU is not used: its memory is full"):
        assert usable_gpu() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert usable_gpu() is None
    with device("cpu"):
        assert usable_gpu() is None


def test_many_tasks_go_to_the_gpu_and_few_only_where_it_was_asked_for(extra):
    extra.append(Seen())
    args = (np.zeros(1),)
    assert gpu_is_for(devices.LEAST_TASKS, args)
    assert not gpu_is_for(devices.LEAST_TASKS - 1, args)
    with device("cuda"):
        assert gpu_is_for(1, args)
        assert device_in_use() == "a GPU of the test"
    with device("cpu"):
        assert not gpu_is_for(10**9, args)


def test_a_record_names_the_gpu(extra):
    from surestep.results.record import current_machine

    extra.append(Seen())
    assert current_machine()["gpu"] == "a GPU of the test"
    with device("cpu"):
        assert "gpu" not in current_machine()


# ---- on a GPU, or on what simulates one -------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    "only", ["not slow", pytest.param("slow", marks=pytest.mark.slow)]
)  # fmt: skip
def test_the_simulator_has_the_answers_of_the_processor(only):
    assert real_find_spec("numba.cuda.simulator") is not None
    command = [sys.executable, "-m", "pytest", "-q", "--assert", "plain", "-m", f"gpu and {only}"]
    result = subprocess.run(
        [*command, *files_for_gpus()],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:]


@pytest.fixture
def gpu():
    with device("cuda"):
        yield require_gpu()


@pytest.fixture(scope="module")
def models():
    """Many models of 6 states."""
    rng = np.random.default_rng(0)
    reward, each = rng.normal(size=(6, 2)), rng.dirichlet(np.ones(6), (MANY, 6, 2))
    return MDPBatch.from_models([FiniteMDP.from_dense(P, reward, 0.9) for P in each])


def add_up(first: int, last: int, room: Room, given: FloatsIn, done: FloatsOut) -> None:
    for task in range(first, last):
        done[task] += given[task] + room.floats.size


@pytest.mark.gpu
def test_a_frozen_array_is_sent_once_and_forgotten_with_it(gpu, models):
    backup = Backup.of(models.model(0))
    machine, there = machine_for(backup)
    assert machine_for(backup)[1].probability is there.probability
    assert brought_home(there.probability).tolist() == backup.probability.tolist()
    before = len(gpu.kept)
    del backup
    assert len(gpu.kept) < before
    assert machine.gpu is gpu


@pytest.mark.gpu
def test_what_can_still_change_is_sent_anew(gpu):
    numbers = np.ones(4)
    part = np.broadcast_to(numbers, 4)  # can itself not be written to
    for value in (1.0, 2.0):
        numbers[:] = value
        done = np.zeros(4)
        assert gpu.run(add_up, 4, RoomSize(0), (np.ascontiguousarray(part), done))
        assert done.tolist() == [value] * 4
        assert writable_owner(part) is not None


@pytest.mark.gpu
def test_what_does_not_fit_is_left_as_it_was(gpu, monkeypatch):
    given, done = np.ones(4), np.zeros(4)

    def full(*args, **kwargs):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(type(gpu), "room", full)
        assert not gpu.run(add_up, 4, RoomSize(2), (given, done))
        assert done.tolist() == [0.0] * 4
    assert gpu.run(add_up, 4, RoomSize(2), (given, done))
    assert done.tolist() == [3.0] * 4


@pytest.mark.gpu
def test_every_task_is_done_where_room_is_scarce(gpu, monkeypatch):
    cuda = sys.modules[type(gpu).__module__]
    monkeypatch.setattr(cuda, "THREADS_A_BLOCK", 4)
    monkeypatch.setattr(cuda, "MOST_LANES", 1 << 18)
    monkeypatch.setattr(cuda, "LEAST_LANES", 8)
    # Room for 20 lanes: 14 are taken, which are three and a half blocks.
    monkeypatch.setattr(type(gpu), "free", 8 * 2 * 20 / cuda.ROOM_SHARE)
    done = np.zeros(26)
    assert gpu.run(cuda.count_tasks, done.size, RoomSize(1, 1), (done,))
    assert done.tolist() == [1.0] * 26


@pytest.mark.gpu
@pytest.mark.parametrize("there", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_work_that_does_not_fit_goes_to_the_processor_and_says_so(there, gpu, models, monkeypatch):
    """Also where its arrays are on the GPU: they are brought home."""
    uniform = Policy.uniform(models.pairs)
    with device("cpu"):
        expected = evaluate_batch(models, uniform).value
    plan = plan_elimination(models.pairs, models.offsets, models.successor)
    arrays, policy = gpu.arrays if there else np, np.ascontiguousarray(uniform.probability[None])
    found, residual = arrays.empty(expected.shape), arrays.empty((MANY,))
    args = models_of(models), policy, plan, found, residual
    monkeypatch.setattr(type(gpu), "run", lambda *args: False)
    devices.say_too_small.cache_clear()
    with pytest.warns(UserWarning, match="too little memory"):
        evaluate_each.all(MANY, room_to_evaluate(plan), *args)
    assert (brought_home(found) == expected).all()
