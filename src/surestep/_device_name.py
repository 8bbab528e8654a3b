"""Reads the device that kernels run on from the environment variable `SURESTEP_DEVICE`."""

import os
from typing import Literal, cast, get_args

from surestep.errors import InvalidParameter, said

Device = Literal["auto", "cpu", "cuda"]
VARIABLE = "SURESTEP_DEVICE"


def chosen_device() -> Device:
    """Returns the device that `SURESTEP_DEVICE` names; "auto" by default."""
    name = os.environ.get(VARIABLE, "auto")
    if name in get_args(Device):
        return cast(Device, name)
    raise InvalidParameter(
        f"{said('device', '--device')} (or {VARIABLE}) is {name!r:.40}, expected one of "
        f"{', '.join(get_args(Device))}"
    )
