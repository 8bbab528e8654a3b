"""The benchmarks of the field, exact: models, behavior policies, and the terms of experiments.

Beside them families of worlds in which claims are put to the test. Where Gymnasium is installed,
importing this package makes every published benchmark known to it.
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

    Importing this package does it already where Gymnasium is installed.

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
