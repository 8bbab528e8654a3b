"""The version of surestep and those of other packages, in a module that knows nothing of ours."""

from functools import cache

__version__ = "0.1.0"


@cache
def installed_version(package: str) -> str:
    """Returns the version of an installed package, read once: that takes milliseconds."""
    from importlib.metadata import version

    return version(package)
