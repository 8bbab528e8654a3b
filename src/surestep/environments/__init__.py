"""The benchmarks of the field, exact: models, behavior policies, and the terms of experiments.

Where Gymnasium is installed, importing this package makes every benchmark known to it.
"""

from importlib.util import find_spec

from surestep.environments.benchmark import Benchmark, Simulator
from surestep.environments.continuous_wet_chicken import ContinuousWetChicken, RiverCells
from surestep.environments.registry import ENVIRONMENTS, make

__all__ = [
    "ENVIRONMENTS",
    "Benchmark",
    "ContinuousWetChicken",
    "RiverCells",
    "Simulator",
    "make",
    "register",
]


def register() -> None:
    """Makes every benchmark known to Gymnasium, as `surestep/Gridworld-v0` and so on.

    Done already where Gymnasium is installed; elsewhere it says how to install it.
    """
    from surestep.environments import gymnasium_envs

    gymnasium_envs.register()


if find_spec("gymnasium") is not None:
    register()
