"""Kernels that verbs compile ahead: the lists name what is needed, and a cold verb says so."""

import json
import os
import shutil
import subprocess
import sys
from queue import SimpleQueue
from threading import Event

import numpy as np
import pytest

from support.pump_commands import EXAMPLES, LINES, write_lines
from surestep.environments.sysadmin import SysAdmin
from surestep.kernels.ahead import NEEDED, all_kernels, hand_out

TOLD = "compiling for this machine, once: about "
# Runs a verb, and prints the kernels that it has called.
VERB = """
import sys
from surestep.cli.main import main
from surestep.environments.sysadmin import SysAdmin
from surestep.kernels.ahead import all_kernels, kernel_of
main(sys.argv[1:], standalone_mode=False)
used = (name for name in all_kernels() if kernel_of(name).code.cache_info().currsize)
print(*used, sep="\\n", file=sys.stderr)
"""
PLANT = """
files = "log.csv"
ends = "clock"
columns.episode = "shift"
columns.step = "hour"
columns.state = ["machine_0", "machine_1", "machine_2", "machine_3"]
behavior.policy = "current.json"
stakes.discount = 0.95
method.worlds = 0
[structure."machine_*"]
values = ["failed", "works"]
parents = ["@", "@left + @right"]
action = {reboot = "reboot_@"}
[structure.reward]
terms = [{of = "machine_*", works = 1.0}, {of = "action", "reboot_*" = -1.0}]
"""
FIRST_FAILED = {
    "format": "surestep column rules",
    "group": "machine_*",
    "rules": [{"when": {"@": ["failed", "failed"]}, "action": "reboot_@", "chance": 0.3}],
    "default": "nothing",
    "chance": 0.3,
}


@pytest.fixture
def pumps(tmp_path):
    """The description of a small part of the log of pumps."""
    write_lines(tmp_path / "pumps.csv", LINES[:2001])
    for name in ("pumps.toml", "pumps_policy.csv"):
        shutil.copy(EXAMPLES / name, tmp_path)
    return tmp_path / "pumps.toml"


@pytest.fixture
def plant(tmp_path):
    """The description of a log with a structure: four machines in a ring."""
    world = SysAdmin(4)
    log = world.sample(world.first_failed(0.3), 60, rng=1)
    texts = [log.structure.values[0][value] for value in log.state.ravel()]
    states = np.array(texts).reshape(log.state.shape)
    rows = ["shift,hour,machine_0,machine_1,machine_2,machine_3,action,reward"]
    for i, (state, action) in enumerate(zip(states, log.action, strict=True)):
        done = log.structure.actions[action]
        rows.append(f"{i // 40},{i % 40},{','.join(state)},{done},{log.earned[i]}")
    write_lines(tmp_path / "log.csv", rows)
    (tmp_path / "current.json").write_text(json.dumps(FIRST_FAILED))
    (tmp_path / "plant.toml").write_text(PLANT)
    return tmp_path / "plant.toml"


def errors_of(*command, **environment):
    """Runs Python code with arguments; returns the lines of standard error."""
    done = subprocess.run(
        [sys.executable, "-c", *map(str, command)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


def files_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("names", NEEDED.values())
def test_the_lists_name_kernels_once(names):
    assert set(names) <= set(all_kernels())
    assert len(set(names)) == len(names)


@pytest.mark.thorough
def test_improve_needs_what_its_list_names(pumps, tmp_path):
    told = errors_of(VERB, "improve", pumps, "--worlds", "2", "-o", tmp_path / "out")
    assert set(told) & set(all_kernels()) == set(NEEDED["improve"])


@pytest.mark.thorough
def test_without_stored_code_a_verb_says_so_and_leaves_the_same_bytes(plant, tmp_path):
    warm = errors_of(VERB, "improve", plant, "-o", tmp_path / "warm")
    assert set(warm) & set(all_kernels()) == set(NEEDED["improve by a structure"])
    cold = errors_of(
        VERB, "improve", plant, "-o", tmp_path / "cold", NUMBA_CACHE_DIR=str(tmp_path / "empty")
    )
    alone = os.cpu_count() == 1  # then nothing can be compiled meanwhile
    assert [line.startswith(TOLD) for line in cold[:1]] == [not alone]
    assert files_in(tmp_path / "cold") == files_in(tmp_path / "warm")
    assert len([*(tmp_path / "empty").rglob("*.nbi")]) >= len(NEEDED["improve by a structure"])


@pytest.mark.parametrize("program", ["no/such/python", "/bin/false"])
def test_what_no_process_compiles_is_not_waited_for(program, monkeypatch):
    monkeypatch.setattr(sys, "executable", program)
    waiting, ready = SimpleQueue(), [Event() for _ in range(3)]
    for one in ready:
        waiting.put(("runs.running_sums", one))
    hand_out(waiting)
    assert all(one.is_set() for one in ready)
