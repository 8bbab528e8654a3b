"""Builds the benchmarks of the field exactly: models, behavior policies, horizons and bounds.

It also builds families of worlds that put claims to the test. If Gymnasium is installed, importing
this package registers every published benchmark with it.
"""

from importlib.util import find_spec

from surestep.environments.benchmark import Benchmark, Simulator, Truth
from surestep.environments.registry import ENVIRONMENTS, FAMILIES, PUBLISHED, make

__all__ = [
    "ENVIRONMENTS",
    "FAMILIES",
    "PUBLISHED",
    "Benchmark",
    "Simulator",
    "Truth",
    "make",
    "register",
]


def register() -> None:
    """Registers every published benchmark with Gymnasium, as `surestep/Gridworld-v0` and so on.

    If Gymnasium is installed, importing this package does it already.

    Raises
    ------
    MissingExtra
        Gymnasium is not installed.

    Examples
    --------
    >>> from surestep.environments import register
    >>> import gymnasium
    >>> register()
    >>> gymnasium.make("surestep/Gridworld-v0").observation_space.n
    np.int64(25)
    """
    from surestep.environments import gymnasium_envs

    gymnasium_envs.register()


if find_spec("gymnasium") is not None:
    register()
