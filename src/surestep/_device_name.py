"""The name of the machine that kernels are to run on: an environment variable says it."""

import os
from typing import Literal, cast, get_args

from surestep.errors import InvalidParameter, said

Device = Literal["auto", "cpu", "cuda"]
VARIABLE = "SURESTEP_DEVICE"


def chosen_device() -> Device:
    """Returns the device that was asked for."""
    name = os.environ.get(VARIABLE, "auto")
    if name in get_args(Device):
        return cast(Device, name)
    raise InvalidParameter(
        f"{said('device', '--device')} (or {VARIABLE}) is {name!r:.40}, expected one of "
        f"{', '.join(get_args(Device))}"
    )
