"""Settings that all tests share."""

import signal

from hypothesis import HealthCheck, settings

# What starts the tests in the background may have Ctrl-C ignored, and every child inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The first call of a kernel compiles it, so a time limit an example would say nothing.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

# `make test` tries the same examples every time; `make test-all` also goes looking for new ones,
# and tries a few on machines that are made to look like others.
settings.register_profile("surestep", max_examples=20, derandomize=True, **COMMON)
settings.register_profile("few", max_examples=10, derandomize=True, **COMMON)
settings.register_profile("explore", max_examples=400, **COMMON)
settings.load_profile("surestep")
