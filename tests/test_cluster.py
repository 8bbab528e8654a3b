"""A real Ray cluster of several machines, all of them on this one: what is lost is made again.

Workers stop where a test wants them to (`held_blocks`), so none of this rests on a clock.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support import held_blocks, tasks
from support.held_blocks import finished
from support.pump_commands import EXAMPLES, LINES, PUMPS, run_surestep, write_lines
from surestep import device
from surestep.parallel import available_cores, map_as_done, reach

pytestmark = [
    pytest.mark.slow,  # a cluster takes its time to start
    # Ray warns about its own future defaults, and leaves sockets to the interpreter's end.
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SMALL = {"object_store_memory": 80 * 2**20}
MACHINES = 3
PATIENCE = 120  # seconds, for what takes a few


@pytest.fixture(scope="module", autouse=True)
def ray():
    """Ray, whose workers find what tests import."""
    ray = pytest.importorskip("ray", reason="needs the extra: pip install '.[cluster]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        patch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "5")  # then all give a head up
        yield ray


def started(machines, **last):
    """A head that does no tasks, and machines of one core each; the last one may have more."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **SMALL}
    )
    for number in range(machines):
        more = last if number == machines - 1 else {}
        cluster.add_node(num_cpus=1, **SMALL, **more)
    return cluster


@pytest.fixture
def cluster(ray):
    """A cluster that this process is connected to; a GPU is said to be on one of the machines."""
    made = started(MACHINES, num_gpus=1)
    try:
        reach("ray", made.address)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def until(condition):
    """Waits for a condition that is bound to come true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


def give_permits(folder, workers):
    """Permits with which these workers finish three blocks at least, and not all of them."""
    for number in range(3 * held_blocks.MOST_CALLS + workers * (held_blocks.MOST_CALLS - 1)):
        (folder / f"permit-{number}").touch()


def all_wait(folder, workers):
    """Tells whether no permit is left, so many workers wait, and what they finished is kept."""
    held = held_blocks.held(folder)
    return len(held) >= workers and len(finished(folder)) >= 3 and not [*folder.glob("permit-*")]


@pytest.mark.parametrize("work", held_blocks.WORK)
def test_a_killed_worker_and_a_lost_machine_lose_nothing(work, cluster, ray, tmp_path):
    """Both are lost in the midst of blocks, when others are finished."""
    give_permits(tmp_path, MACHINES)
    answers, function = [], held_blocks.WORK[work]

    def drive():
        with device("cpu"):  # so that all machines take part
            answers.append(function(tmp_path, engine="ray"))

    thread = threading.Thread(target=drive)
    thread.start()
    until(lambda: all_wait(tmp_path, MACHINES))
    before = finished(tmp_path)
    assert 3 <= len(before) < held_blocks.BLOCKS

    here = ray.get_runtime_context().get_node_id()  # the machine that this process belongs to
    first, second = [each for each in held_blocks.held(tmp_path) if each[1] != here][:2]
    os.kill(first[0], signal.SIGKILL)
    lost = next(node for node in cluster.list_all_nodes() if node.node_id == second[1])
    cluster.remove_node(lost, allow_graceful=False)
    until(lambda: len(held_blocks.held(tmp_path)) > MACHINES)  # another has taken over, and waits
    assert finished(tmp_path) == before
    (tmp_path / held_blocks.OPEN).touch()
    thread.join(PATIENCE)

    assert answers == [function(tmp_path, "alone")]
    after = finished(tmp_path)
    assert len(after) == held_blocks.BLOCKS
    assert before.items() <= after.items()  # none was made twice
    until(lambda: available_cores("ray") == MACHINES - 1)


@pytest.mark.parametrize("work", held_blocks.WORK)
def test_a_restarted_head_loses_nothing(work, tmp_path):
    """The head ends in the midst of blocks, and so does the process that gave them to it."""
    code = (
        "import sys, pathlib; from support import held_blocks; folder = pathlib.Path(sys.argv[1])\n"
        f"held_blocks.WORK[{work!r}](folder, engine='ray', address=sys.argv[2])"
    )
    script = [sys.executable, "-c", code, str(tmp_path)]
    give_permits(tmp_path, 2)
    first = started(2)
    try:
        driver = subprocess.Popen([*script, first.address], stderr=subprocess.PIPE)
        until(lambda: all_wait(tmp_path, 2))
        before = finished(tmp_path)
        first.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
        driver.communicate(timeout=PATIENCE)
        assert driver.returncode != 0
    finally:
        first.shutdown()
    assert finished(tmp_path) == before
    assert 3 <= len(before) < held_blocks.BLOCKS

    (tmp_path / held_blocks.OPEN).touch()
    again = started(2)
    try:
        subprocess.run([*script, again.address], check=True, timeout=PATIENCE)
    finally:
        again.shutdown()
    after = finished(tmp_path)
    assert len(after) == held_blocks.BLOCKS
    assert before.items() <= after.items()
    function = held_blocks.WORK[work]
    assert function(tmp_path) == function(tmp_path, "alone")  # of the first there is all


def test_commands_give_the_same_files(cluster, ray, tmp_path):
    """A GPU is not there in truth, so nobody may ask for it."""
    log = write_lines(tmp_path / "log.csv", LINES[:401])
    behavior = ("--behavior", EXAMPLES / "pumps_policy.csv", "--worlds", "9")
    behavior += ("--set", "method.n_wedge=1")
    kind = ("--kind", "posterior:starts=known,prior=weight,draws=19", "--device", "cpu")
    commands = {
        "rehearse": (log, *PUMPS, *behavior, *kind, "--sizes", "1,2"),
        "improve": (log, *PUMPS, *behavior, *kind),
        "run": ("coverage/bandit", "--repetitions", "1", "--device", "cpu"),
    }
    for verb, given in commands.items():
        engines = {"local": ("--workers", "1"), "ray": ("--address", cluster.address)}
        for engine, more in engines.items():
            out = tmp_path / f"{verb}-{engine}"
            result = run_surestep(verb, *given, "--engine", engine, *more, "-o", out)
            assert result.exit_code == 0, result.output
        alone, there = (tmp_path / f"{verb}-{engine}" for engine in engines)
        files = ["table.parquet"] if verb == "run" else [path.name for path in alone.iterdir()]
        for name in files:
            assert (there / name).read_bytes() == (alone / name).read_bytes(), (verb, name)


def test_machines_count_the_files_of_a_log(cluster, ray, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(4):  # lines of whole episodes
        part = [line for line in LINES[1:2001] if int(line.split(",")[0]) % 4 == number]
        write_lines(logs / f"{number}.csv", [LINES[0], *part])
    for engine in (("local",), ("ray", "--address", cluster.address)):
        out = tmp_path / f"{engine[0]}.parquet"
        result = run_surestep("count", logs, *PUMPS[:-2], "--engine", *engine, "-o", out)
        assert result.exit_code == 0, result.output
    assert (tmp_path / "ray.parquet").read_bytes() == (tmp_path / "local.parquet").read_bytes()


def test_gpus_are_asked_for_and_the_device_is_known_there(cluster):
    """There is one core beside the GPU, so a task gets the whole of it."""
    answers = dict(map_as_done(tasks.device_and_gpu, range(6), engine="ray"))
    assert set(answers.values()) == {("auto", "0", (0,))}
    with device("cpu"):
        answers = dict(map_as_done(tasks.device_and_gpu, range(6), engine="ray"))
    assert {(name, gpus) for name, _, gpus in answers.values()} == {("cpu", ())}


def test_a_cluster_that_ended_is_told_in_a_line(tmp_path):
    made = started(0)
    address = made.address
    made.shutdown()
    command = ["run", "paper/gridworld", "--engine", "ray", "--address", address]
    code = "import sys; from surestep.cli.main import main; main(sys.argv[1:])"
    ended = subprocess.run(
        [sys.executable, "-c", code, *command, "-o", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"Error: --address is '{address}', but no Ray cluster can be")
    assert ended.stderr.count("\n") == 1
    assert not Path(tmp_path / "out").exists()
