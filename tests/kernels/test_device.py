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

from surestep import device
from surestep.cli.main import main
from surestep.errors import DeviceUnavailable, InvalidParameter, MissingExtra
from surestep.kernels import _device
from surestep.kernels._device import (
    PROCESSOR,
    chosen_device,
    device_in_use,
    gpu_is_for,
    machine_for,
    machine_for_tasks,
    usable_gpu,
)

TESTS = Path(__file__).parents[1]


class Seen:
    """A GPU that only says its name."""

    name = "a GPU of the test"


@pytest.fixture
def no_extra(monkeypatch):
    monkeypatch.delenv("SURESTEP_DEVICE", raising=False)
    monkeypatch.setattr(_device, "find_spec", lambda name: None)


@pytest.fixture
def extra(monkeypatch):
    """The extra is there; what is found is what the test puts into the list."""
    monkeypatch.delenv("SURESTEP_DEVICE", raising=False)
    monkeypatch.setattr(_device, "find_spec", lambda name: name)
    _device.gpu_or_none.cache_clear()
    found = []
    monkeypatch.setattr(_device, "gpu_or_reason", lambda: found[0])
    yield found
    _device.gpu_or_none.cache_clear()


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
        assert machine_for_tasks(10**9) is PROCESSOR
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
    assert gpu_is_for(_device.LEAST_TASKS, args)
    assert not gpu_is_for(_device.LEAST_TASKS - 1, args)
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


@pytest.mark.parametrize(
    "only", ["not slow", pytest.param("slow", marks=pytest.mark.slow)]
)  # fmt: skip
def test_the_simulator_has_the_answers_of_the_processor(only):
    assert real_find_spec("numba.cuda.simulator") is not None
    command = [sys.executable, "-m", "pytest", "-q", "-m", only]
    result = subprocess.run(
        [*command, str(TESTS / "gpu")],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:]
