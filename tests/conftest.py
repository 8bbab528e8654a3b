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
