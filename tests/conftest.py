"""Settings that all tests share."""

import gc
import os
import signal

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

# Set before NumPy is imported, and for the processes that tests start: threads that wait by turning
# in circles take the cores from the other tests, and what takes 0.1 s alone takes 10 s beside them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# What starts the tests in the background may have Ctrl-C ignored, and every child inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Collecting the tests makes half a million objects that stay: looking through them for garbage
# again and again took a tenth of the time.
gc.disable()


def pytest_collection_finish():
    """Leaves what was collected alone from now on, and looks for garbage among what comes."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure():
    """Frees what was left alone: at its exit DuckDB lists all its types that are still held."""
    gc.unfreeze()


# The first call of a kernel compiles it, so a time limit an example would say nothing.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

# `make test` tries the same examples every time; `make test-all` also goes looking for new ones.
settings.register_profile("surestep", max_examples=10, derandomize=True, **COMMON)
settings.register_profile("explore", max_examples=400, **COMMON)
settings.load_profile("surestep")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Looks for no doctests in tests, which have none."""
    return [found for found in (yield) if not isinstance(found, DoctestModule)]


# ---- on a GPU ---------------------------------------------------------------------------------

GPU_ASKED_FOR = "1" in map(os.environ.get, ("SURESTEP_TEST_GPU", "NUMBA_ENABLE_CUDASIM"))
NO_GPU = pytest.mark.skip(reason="no GPU was asked for: `make test-gpu`, or NUMBA_ENABLE_CUDASIM=1")


if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    from support.simulated_gpu import install

    install()


def pytest_collection_modifyitems(items):
    """Skips what needs a GPU, unless one was asked for, or what simulates it."""
    for item in items:
        if item.get_closest_marker("gpu") and not GPU_ASKED_FOR:
            item.add_marker(NO_GPU)


@pytest.fixture
def both():
    """Gives what work returns on the processor, and what it returns on the GPU."""
    from surestep import device

    def on_each(work):
        with device("cpu"):
            expected = work()
        with device("cuda"):
            return expected, work()

    return on_each


@pytest.fixture(scope="session", autouse=True)
def one_thread_each():
    """Gives each process one thread where several run side by side, which have all cores."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        import numba

        numba.set_num_threads(1)


@pytest.fixture
def two_threads():
    """Gives kernels two threads, if this machine has two."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    yield numba.get_num_threads()
    numba.set_num_threads(before)


@pytest.fixture(scope="session")
def labelled_log(tmp_path_factory):
    """A log of 120 episodes in a small world, as a file that nobody changes."""
    from support.labelled_worlds import NAMES, world
    from support.log_tables import write_table

    rows = world(5, states=4, episodes=120).rows
    return write_table(tmp_path_factory.mktemp("logs") / "log.csv", rows, NAMES)
