"""Settings that all tests share."""

from hypothesis import HealthCheck, settings

# The first call of a kernel compiles it, so a time limit an example would say nothing.
settings.register_profile(
    "surestep", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60
)
settings.load_profile("surestep")
