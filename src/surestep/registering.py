"""Registers algorithms, kinds of certificates and environments of users: `surestep.register`."""

from typing import Any, TypeVar

from surestep.algorithms import registry as algorithms
from surestep.certificates import registry as certificates
from surestep.environments import registry as environments
from surestep.errors import InvalidParameter
from surestep.extensions import Shelf

Thing = TypeVar("Thing")


def register(thing: Thing, name: str | None = None) -> Thing:
    """Makes an algorithm, a kind of certificate or an environment known by name.

    The name holds in this process, in workers and in Ray tasks that it starts.

    Parameters
    ----------
    thing : type or callable
        A class that can `improve` is an algorithm, one that can `certify` a kind of certificate,
        and a function that returns a `Benchmark` an environment.
    name : str, optional
        By default the name that a class gives itself, and of a function its own.

    Returns
    -------
    type or callable
        The thing itself, so that `register` can stand above a class.

    Raises
    ------
    InvalidParameter
        The name is taken, or the thing lacks a member.

    Examples
    --------
    >>> from surestep.environments import make
    >>> from surestep.environments.families import bandit  # or a function of yours
    >>> _ = surestep.register(bandit, name="toys/coin")
    >>> make("toys/coin", arms=2).num_actions
    2
    """
    own = "name" if isinstance(thing, type) else "__name__"
    known_as = getattr(thing, own, None) if name is None else name
    shelf = shelf_of(thing)
    if not isinstance(known_as, str):
        raise InvalidParameter(f"{thing!r:.80} has the name {known_as!r}, expected a text")
    shelf.add(known_as, thing)
    return thing


def shelf_of(thing: object) -> Shelf[Any]:
    """Returns the shelf of a thing: one that can improve is an algorithm, and so on."""
    if isinstance(thing, type) and hasattr(thing, "improve"):
        return algorithms.SHELF
    if isinstance(thing, type) and hasattr(thing, "certify"):
        return certificates.SHELF
    if callable(thing) and not isinstance(thing, type):
        return environments.SHELF
    raise InvalidParameter(
        f"{thing!r:.80} cannot be registered, expected a class that can improve (an algorithm) or "
        "certify (a kind of certificate), or a function that returns a Benchmark (an environment)"
    )
