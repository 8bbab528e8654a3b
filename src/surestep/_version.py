"""Returns versions of surestep and of other packages; imports no module of surestep."""

from functools import cache

__version__ = "0.1.0"


@cache
def installed_version(package: str) -> str:
    """Returns the version of an installed package, read once: that takes milliseconds."""
    from importlib.metadata import version

    return version(package)
