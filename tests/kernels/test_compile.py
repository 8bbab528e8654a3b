"""The cache of machine code: never stale, shared by processes, and not needed."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

import surestep
from surestep.kernels import _compile
from surestep.kernels.types import FloatsIn, FloatsOut, Room, RoomSize, signature_of

KERNELS = Path(_compile.__file__).parent

HELPER = """
from tiny._compile import helper

@helper
def scaled(x):
    return FACTOR * x
"""
CALLER = """
from tiny._compile import kernel
from tiny.types import FloatsOut
from tiny.helpers import scaled

@kernel()
def scale(values: FloatsOut) -> None:
    for i in range(values.size):
        values[i] = scaled(values[i])
"""
ASK = "import numpy as np; from tiny.caller import scale; x = np.ones(1); scale(x); print(x[0])"
ASK_AGAIN = f"""
import os, sys
from pathlib import Path
def files():
    return {{path: path.stat().st_mtime_ns for path in Path(os.environ["FILES"]).rglob("*")}}
before = files()
{ASK}
print("same" if files() == before else "other")
import tiny
folder = Path(tiny.__file__).parent
(folder / "helpers.py").write_text((folder.parent / "later.py").read_text())
for name in [name for name in sys.modules if name.startswith("tiny")]:
    del sys.modules[name]
{ASK}
"""

PLAN = """
import hashlib
import numpy as np
import numba
from surestep import FiniteMDP, MDPBatch, Pairs, Policy
from surestep import evaluate, evaluate_batch, optimal_batch
from surestep import value_iteration
from surestep.kernels._compile import Kernel
import sys
assert numba.get_num_threads() == THREADS
modules = [each for name, each in sys.modules.items() if name.startswith("surestep.")]
members = [each for module in modules for each in vars(module).values()]
for kernel in members:
    if isinstance(kernel, Kernel) and kernel.threads_from is not None:
        kernel.threads_from = 0 if EVER_PARALLEL else None
rng = np.random.default_rng(5)
states, actions, width = 60_000, 2, 4  # many blocks for each thread
pairs = Pairs.full(states, actions)
ring = pairs.state[:, np.newaxis] + np.arange(width)  # mixes slowly, so that sweeps do not do
successor = ring % states
mdp = FiniteMDP(
    pairs,
    np.arange(pairs.num_pairs + 1) * width,
    successor.ravel(),
    rng.dirichlet(np.ones(width), pairs.num_pairs).ravel(),
    rng.normal(size=pairs.num_pairs * width),
    np.full(pairs.num_pairs, 0.95),
    np.full(states, 1 / states),
)
small = [FiniteMDP.from_dense(rng.dirichlet(np.ones(9), (9, 3)), rng.random((9, 3)), 0.9)
         for _ in range(40)]
batch = MDPBatch.from_models(small)
uniform = Policy.uniform(mdp)
answers = [
    evaluate(mdp, uniform, method="iterative"),
    value_iteration(mdp, tolerance=1e-6).value,
    evaluate_batch(batch, Policy.uniform(batch.pairs)).value,
    optimal_batch(batch).value,
]
for answer in answers:
    print(hashlib.sha256(answer.tobytes()).hexdigest())
"""


def run(code, **environment):
    """What the code prints in a new interpreter whose variables are the given ones."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


@pytest.fixture
def tiny(tmp_path):
    """A package of two kernel files, one calling the other, and what compiles them."""
    package = tmp_path / "code" / "tiny"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for name in ("_code_cache.py", "_compile.py", "devices.py", "types.py"):
        source = (KERNELS / name).read_text(encoding="utf-8")
        (package / name).write_text(source.replace("surestep.kernels", "tiny"), encoding="utf-8")
    (package / "helpers.py").write_text(HELPER.replace("FACTOR", "3.0"))
    (package / "caller.py").write_text(CALLER)
    return package


def path_of(package):
    """The folders in which a new interpreter finds the package, and this one's surestep."""
    return os.pathsep.join([str(package.parent), str(Path(surestep.__file__).parents[1])])


def snapshot(folder):
    """Every file below the folder, with what it holds and when it was written."""
    return {
        path.relative_to(folder): (path.stat().st_mtime_ns, path.stat().st_ino, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


# ---- the cache --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_second_process_takes_the_machine_code_of_the_first_until_a_helper_is_edited(
    tiny, tmp_path
):
    cache = tmp_path / "cache"
    places = {"PYTHONPATH": path_of(tiny), "NUMBA_CACHE_DIR": str(cache)}
    assert run(ASK, **places) == ["3.0"]
    kept = snapshot(cache)
    assert sorted(path.suffix for path in kept) == [".nbc", ".nbi"]
    (tiny.parent / "later.py").write_text(HELPER.replace("FACTOR", "5.0"))
    # The helper is edited in another file than its caller, which is not stale.
    assert run(ASK_AGAIN, **places, FILES=str(cache)) == ["3.0", "same", "5.0"]


@pytest.mark.slow
def test_memory_serves_where_nothing_can_be_written(tiny, tmp_path):
    (tiny / "__pycache__").write_text("a file where a folder would have to be")
    (tmp_path / "home").write_text("and another one")
    before = snapshot(tmp_path)
    home = str(tmp_path / "home" / "cache")
    assert run(ASK, PYTHONPATH=path_of(tiny), XDG_CACHE_HOME=home, HOME=home) == ["3.0"]
    assert snapshot(tmp_path) == before


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder in which Numba keeps what it compiles."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return lambda: {path.suffix: path for path in tmp_path.rglob("*") if path.is_file()}


def test_a_disk_that_is_full_is_done_without(kept, monkeypatch):
    def no_space(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", no_space)
    assert add_one()(1.0) == 2.0
    assert kept() == {}


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_machine_code_that_cannot_be_read_is_made_again(suffix, kept):
    assert add_one()(1.0) == 2.0
    path = kept()[suffix]
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"\xff" * 1000):
        path.write_bytes(damaged)
        assert add_one()(1.0) == 2.0
        assert path.read_bytes() != damaged
        made = add_one().code(False)  # only reads what was made again
        assert sum(made.stats.cache_hits.values()) == 1


def plus_one(x: float) -> float:
    return x + 1.0


def add_one():
    """A kernel that nobody has called yet."""
    return _compile.Kernel(plus_one, None)


# ---- threads ----------------------------------------------------------------------------------


@pytest.mark.slow  # three processes compile what they run
def test_one_thread_two_threads_and_no_threading_at_all_give_the_same_bits():
    places = {"PYTHONPATH": str(Path(surestep.__file__).parents[1])}
    if cache := os.environ.get("NUMBA_CACHE_DIR"):
        places["NUMBA_CACHE_DIR"] = cache
    one, two, none = (
        run(PLAN.replace("THREADS", threads).replace("EVER_PARALLEL", ever), **variables, **places)
        for threads, ever, variables in (
            ("1", "True", {"NUMBA_NUM_THREADS": "1"}),
            ("2", "True", {"NUMBA_NUM_THREADS": "2"}),
            ("1", "False", {"NUMBA_NUM_THREADS": "1"}),
        )
    )
    assert len(one) == 4
    assert one == two == none


def test_threads_are_woken_for_large_arrays_only(monkeypatch):
    asked = []

    def compile_nothing(kernel, parallel):
        asked.append(parallel)
        return lambda values: None

    monkeypatch.setattr(_compile.Kernel, "compiled", compile_nothing)
    for threads_from, expected in ((10, [False, True]), (None, [False])):
        watched = _compile.Kernel(lambda values: None, threads_from)
        for size in (1, 9, 10, 99, 9):
            watched(np.zeros(size))
        assert asked == expected
        asked.clear()


def count_up(first_task: int, end_task: int, room: Room, done: FloatsOut) -> None:
    for task in range(first_task, end_task):
        done[task] += 1.0


@pytest.mark.parametrize("threads_from", [None, 0, 50])
def test_every_task_is_done_once_with_any_number_of_threads(threads_from, kept, monkeypatch):
    counting = _compile.Tasks(count_up, threads_from)
    for threads in (1, 2, 7):
        monkeypatch.setattr(numba, "get_num_threads", lambda threads=threads: threads)
        for number in (0, 1, 2, 9, 100):
            done = np.zeros(100)
            counting.all(number, RoomSize(), done)
            assert done.tolist() == [1.0] * number + [0.0] * (100 - number)


def test_what_borrows_arrays_returns_none_of_its_own():
    @_compile.borrowing
    def made(values):
        return values + 1.0

    with pytest.raises(numba.NumbaError, match="Only accept returning of array passed"):
        made.compile((numba.float64[::1],))


def test_a_helper_runs_as_python_where_python_calls_it():
    @_compile.helper
    def doubled(x):
        return 2 * x

    assert doubled("ab") == "abab"
    assert not doubled.overloads


def test_a_helper_is_compiled_once_for_all_whole_numbers():
    @_compile.helper
    def doubled(x):
        return 2 * x

    @_compile.helper
    def both(x):
        return doubled(x) + doubled(3)

    both.compile((numba.int64,))
    assert len(doubled.overloads) == 1


def test_an_error_in_a_task_is_raised(monkeypatch):
    def fail(first_task, end_task, room, done):
        raise OverflowError(f"task {first_task}")

    failing = _compile.Tasks(fail, 0)
    monkeypatch.setattr(failing, "code", lambda parallel: fail)
    monkeypatch.setattr(numba, "get_num_threads", lambda: 2)
    with pytest.raises(OverflowError, match="task 0"):
        failing.all(10, RoomSize(), np.zeros(10))


# ---- the types of annotations -----------------------------------------------------------------


class Inner(NamedTuple):
    numbers: FloatsIn


class Outer(NamedTuple):
    inner: Inner
    factor: float
    shift: tuple[float, float]
    result: FloatsOut


class Derived(Outer):
    """A record with methods of its own."""


class Others(NamedTuple):
    inner: Inner
    factor: float
    shift: tuple[float, float]
    result: FloatsOut


def scale_all(outer: Outer, up: bool) -> int:
    """Numbers times a factor and a shift."""
    for i in range(outer.result.size):
        outer.result[i] = outer.factor * outer.inner.numbers[i] + outer.shift[1 if up else 0]
    return outer.result.size


def test_records_are_one_type_whether_what_they_read_is_frozen_or_not(kept):
    scale = _compile.Kernel(scale_all, None)
    frozen = np.array([1.0, 2.0])
    frozen.setflags(write=False)
    for numbers in (np.array([1.0, 2.0]), frozen):
        for kind, shift in ((Outer, (0.0, 1.0)), (Derived, (0, 1))):
            result = np.zeros(2)
            assert scale(kind(Inner(numbers), 2.0, shift, result), True) == 2
            assert result.tolist() == [3.0, 5.0]
    assert len(scale.code(False).overloads) == 1
    with pytest.raises(TypeError):  # what is written cannot be frozen
        scale(Outer(Inner(frozen), 2.0, (0.0, 1.0), frozen), True)
    with pytest.raises(TypeError):  # nor is another record the same for having the same fields
        scale(Others(Inner(frozen), 2.0, (0.0, 1.0), np.zeros(2)), True)


def test_the_largest_array_counts_also_within_records():
    inner = Inner(np.zeros(7))
    assert _compile.largest_size((np.zeros(3), 9, Outer(inner, 1.0, (0.0, 1.0), np.zeros(5)))) == 7
    assert _compile.largest_size((1.0,)) == 0


def test_a_signature_is_read_from_the_annotations():
    signature = signature_of(count_up)
    assert signature.return_type == numba.types.void
    numbers = numba.types.Array(numba.types.float64, 1, "C")
    assert signature.args[:2] == (numba.types.int64, numba.types.int64)
    assert signature.args[2].instance_class is Room
    assert signature.args[3:] == (numbers,)
    assert signature_of(scale_all).return_type == numba.types.int64
