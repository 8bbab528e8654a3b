"""`surestep --version --json`: all that a report of a bug needs, and nothing personal."""

from __future__ import annotations

import platform
import re
import warnings
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from surestep._version import __version__
from surestep.errors import SurestepError

REQUIREMENT = re.compile(r"([\w.-]+).*?(?:extra == ['\"]([\w-]+)['\"])?$")


def all_versions() -> dict[str, Any]:
    """Returns the versions of surestep, Python and all packages that it may use, and the device.

    A package that is not installed has the version None. There are no paths, and no names of users
    or machines.
    """
    packages: dict[str, str | None] = {}
    extras: dict[str, dict[str, str | None]] = {}
    with suppress(PackageNotFoundError):  # run from its sources, without being installed
        for line in requires("surestep") or []:
            name, extra = REQUIREMENT.fullmatch(line).groups()  # type: ignore[union-attr]
            (extras.setdefault(extra, {}) if extra else packages)[name] = installed(name)
    return {
        "surestep": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "packages": packages,
        "extras": extras,
        "device": device(),
    }


def installed(name: str) -> str | None:
    """Returns the version of a package; None where it is not installed."""
    with suppress(PackageNotFoundError):
        return version(name)
    return None


def device() -> str:
    """Returns what kernels run on: "cpu", the name of a GPU, or why neither can be told."""
    from surestep.kernels._device import device_in_use

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a GPU is not used is what the answer says
        try:
            return device_in_use()
        except SurestepError as problem:
            return type(problem).__name__
