"""Makes benchmarks by their names."""

import inspect
from collections.abc import Callable, Mapping
from typing import get_type_hints

from surestep._names import refuse_unknown
from surestep._settings import check_setting
from surestep.environments import (
    families,
    gridworld,
    hidden,
    icu_sepsis,
    partly_seen,
    random_mdp,
    resource_gathering,
    sysadmin,
    wet_chicken,
)
from surestep.environments.benchmark import Benchmark
from surestep.errors import InvalidParameter
from surestep.extensions import Shelf

# Benchmarks as others published them.
PUBLISHED: dict[str, Callable[..., Benchmark]] = {
    "gridworld": gridworld.gridworld,
    "gridworld/uniform-data": gridworld.gridworld_uniform_data,
    "wet-chicken": wet_chicken.wet_chicken,
    "wet-chicken/heuristic": wet_chicken.wet_chicken_heuristic,
    "resource-gathering": resource_gathering.resource_gathering,
    "resource-gathering/near-optimal": resource_gathering.resource_gathering_near_optimal,
    "resource-gathering/ragged": resource_gathering.resource_gathering_ragged,
    "random-mdp": random_mdp.random_mdp,
    "random-mdp/easter-egg": random_mdp.random_mdp_easter_egg,
    "random-mdp/bad-egg": random_mdp.random_mdp_bad_egg,
    "sysadmin": sysadmin.sysadmin,
}
# Worlds that put claims to the test: little can be gained, or rewards, states or loggers are hard.
FAMILIES: dict[str, Callable[..., Benchmark]] = {
    "alike": families.alike,
    "nearly-alike": families.nearly_alike,
    "noisy": families.noisy,
    "bandit": families.bandit,
    "disaster": families.disaster,
    "jackpot": families.jackpot,
    "adaptive": families.adaptive,
    "adaptive/bandit": families.adaptive_bandit,
    "copied": families.copied,
    "outcome-in-state": families.outcome_in_state,
    "stops-that-know": families.stops_that_know,
    "coarse": families.coarse,
    "hidden-cause": hidden.hidden_cause,
    "tiger": partly_seen.tiger,
    "voicemail": partly_seen.voicemail,
    "cheese-maze": partly_seen.cheese_maze,
    "icu-sepsis": icu_sepsis.icu_sepsis,
}
ENVIRONMENTS = PUBLISHED | FAMILIES


SHELF: Shelf[Callable[..., Benchmark]] = Shelf("environments", ENVIRONMENTS)


def make(name: str, **parameters: object) -> Benchmark:
    """Makes the benchmark of a name.

    Parameters
    ----------
    name : str
        A name in `ENVIRONMENTS`, or of a plug-in.
    **parameters : object
        Parameters of the function that builds it.

    Returns
    -------
    Benchmark
        The model, π_b, and the horizon, rewards and bounds of the experiment.

    Raises
    ------
    InvalidParameter
        The name or a parameter is unknown, or a value is refused.

    Examples
    --------
    >>> from surestep.environments import make
    >>> gridworld = make("gridworld", size=7)
    >>> gridworld.num_states, round(gridworld.performance_of_behavior(), 3)
    (49, 0.399)
    """
    return checked_benchmark(name, builder(name, parameters)(**parameters))


def checked_benchmark(name: str, made: object) -> Benchmark:
    """Returns what a function of that name made; the function of a user may make anything."""
    if not isinstance(made, Benchmark):
        raise InvalidParameter(f"{name} returns a {type(made).__name__}, expected a Benchmark")
    return made


def builder(name: str, parameters: Mapping[str, object]) -> Callable[..., Benchmark]:
    """Returns the function that makes the benchmark of a name; refuses unknown parameters."""
    build = SHELF.get(name)
    known = inspect.signature(build).parameters
    types = get_type_hints(build, include_extras=True) if name in ENVIRONMENTS else {}
    for given, value in parameters.items():
        refuse_unknown(f"{name} has no parameter {given!r}", given, known)
        if given in types:
            check_setting(given, value, types[given])
    return build
