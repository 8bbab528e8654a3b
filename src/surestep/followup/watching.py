"""Watch: what new episodes say of an adopted policy, against levels that it must not fall below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from surestep._arrays import FloatArray, IntArray
from surestep.checks import Check
from surestep.rehearsal import Rate


class Level(NamedTuple):
    """A lower bound that mean returns, or gains over a holdout, must not fall below."""

    name: str
    value: float | None  # None: there is none
    delta: float  # the chance that it is too high
    why: str  # where it comes from, or why there is none
    evidence: float = 0.0  # ln M / ln A after the last episode; 1: an alarm
    alarm: str | None = None  # the episode that raised it
    since: str | None = None  # the episode with which the fall probably began
    place: int | None = None  # of the alarm among all episodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """The answer of `watch`: how far a policy is followed, and whether it is still as good.

    Parameters
    ----------
    ids : tuple of str
        The episodes, in the order of their starts, with their days where these are known.
    known : int
        Episodes before the first pending one: these count.
    values : array of float [m]
        Their returns, or what they return more than episodes of the holdout.
    places : array of int [m]
        The episode of each value.
    levels : tuple of Level
        The levels, each with what was seen of it; one without a value says why.
    within : int
        N: a false alarm among so many episodes has a chance of at most `alpha`.
    alpha : float
        That chance, if levels are right.
    followed : mapping from situations to Rate
        How often decisions are as advised, where the policy rules something out; the least
        followed situation first.
    unknown : int
        Decisions in situations, or with actions, that the policy does not know.
    checks : tuple of Check or None
        Effects and rewards of actions in old rows against new ones; None: the old log is not there.
    unit : str
        The unit of returns.
    inputs : mapping from str to str
        The digests (SHA-256) of run.json of the result, and of the files of the rows.
    report : str
        The page, as HTML.

    Examples
    --------
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> table |= {"episode": list(range(60)), "step": [0] * 60}
    >>> result = surestep.improve(table, discount=0, ending=(0, 1), ends="complete", worlds=0)
    >>> new = {"state": ["mild"] * 90, "action": ["wait"] * 90, "reward": [1] * 30 + [0] * 60}
    >>> new |= {"episode": list(range(90)), "step": [0] * 90}
    >>> watched = surestep.watch(result, new, log=table)
    >>> watched.alarm, watched.followed["mild",].share
    (True, 1.0)
    """

    ids: tuple[str, ...]
    known: int
    values: FloatArray
    places: IntArray
    levels: tuple[Level, ...]
    within: int
    alpha: float
    followed: Mapping[tuple[str, ...], Rate]
    unknown: int
    checks: tuple[Check, ...] | None
    unit: str
    inputs: Mapping[str, str]
    report: str = field(default="", repr=False)

    @property
    def alarm(self) -> bool:
        """Tells whether returns fell below a level."""
        return any(level.alarm is not None for level in self.levels)

    def content(self) -> dict[str, Any]:
        """Returns the answer as values of JSON.

        Returns
        -------
        dict
            All but the page.
        """
        names = ("code", "outcome", "p_value")
        return {
            "alarm": self.alarm,
            "episodes": self.known,
            "pending": len(self.ids) - self.known,
            "mean": float(self.values.mean()) if self.values.size else None,
            "unit": self.unit,
            "inputs": dict(self.inputs),
            "within": self.within,
            "alpha": self.alpha,
            "levels": [level._asdict() for level in self.levels],
            "followed": [{"state": x, **asdict(rate)} for x, rate in self.followed.items()],
            "unknown": self.unknown,
            "drift": [{x: getattr(one, x) for x in names} for one in self.checks or ()],
        }
