"""These tests need a GPU, or what simulates one: `make test-gpu`, or NUMBA_ENABLE_CUDASIM=1."""

import os

ASKED_FOR = "1" in (os.environ.get("NUMBA_ENABLE_CUDASIM"), os.environ.get("SURESTEP_TEST_GPU"))
collect_ignore_glob = [] if ASKED_FOR else ["test_*.py"]
