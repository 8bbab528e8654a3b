"""Settings that all tests share."""

import pytest
from hypothesis import HealthCheck, settings

from surestep.pipeline import terms

# The first call of a kernel compiles it, so a time limit an example would say nothing.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

# `make test` tries the same examples every time; `make test-all` also goes looking for new ones,
# and tries a few on machines that are made to look like others.
settings.register_profile("surestep", max_examples=60, derandomize=True, **COMMON)
settings.register_profile("few", max_examples=10, derandomize=True, **COMMON)
settings.register_profile("explore", max_examples=400, **COMMON)
settings.load_profile("surestep")


@pytest.fixture(autouse=True, scope="session")
def no_stress_test_unless_asked_for():
    """`improve` rehearses small logs by default, for seconds: tests that want it say `worlds`."""
    usual, terms.MOST_STATES_REHEARSED = terms.MOST_STATES_REHEARSED, 0
    yield
    terms.MOST_STATES_REHEARSED = usual
