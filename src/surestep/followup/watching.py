"""Warns when episodes return less than a level: an e-detector (Shin, Ramdas and Rinaldo 2022).

**The detector.** Let G_1, G_2, … be returns in the order of their starts, G_t ≤ h, and c < h the
level. For a stake λ with λ (h − c) < 1,

    M_0 = 0,   M_t = (M_{t−1} + 1) (1 + λ (c − G_t)) = Σ_{s ≤ t} Π_{i = s..t} (1 + λ (c − G_i)).

It is the capital of somebody who puts 1 on every episode, bets that from there on returns are below
c, and never takes anything out. `detect` takes the mean M over λ ∈ {.1, .25, .5, .8} / (h − c), and
raises the alarm at the first t with M_t ≥ A.

**Theorem.** If E[G_t | G_1, …, G_{t−1}] ≥ c for all t ≤ N, an alarm among the first N episodes has
a chance of at most N/A. *Proof.* Every factor is positive, as c − G_t ≥ −(h − c), and has a
conditional mean of at most 1. So E[M_t | past] ≤ M_{t−1} + 1: the numbers M_t − t are a
supermartingale, of each λ and of their mean. Let τ be the alarm, or N if that is earlier. By
optional stopping E[M_τ] ≤ E[τ] ≤ N; and M_τ ≥ 0, with M_τ ≥ A where there was an alarm. By Markov's
inequality P(alarm by N) ≤ N/A. ∎ Without a fixed N, E[τ] ≥ E[M_τ] ≥ A: the mean run to a false
alarm is A or longer.

So **A = N/α** for a chance of at most α among the next N episodes. It may be looked at after every
episode: the alarm is one event for all looks. Among twice as many episodes the chance is 2α.

**What breaks it.** A level above the mean, if only by luck: the mean of 100 old episodes is above
the true mean in half of all cases. So a level is a *lower bound*. And seasons: c must be below the
mean in every season (`lowest_season`), or returns are compared with those of a small holdout that
goes on as before (`paired`): the same weeks make both better or worse. Returns in the order of
their ends break it, too, where bad ones are known early.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray, expect_count
from surestep._settings import Delta, check_setting
from surestep.checks import Check
from surestep.errors import InvalidParameter
from surestep.offpolicy import betting
from surestep.rehearsal import Rate

SHARES = (0.1, 0.25, 0.5, 0.8)  # of the largest stake 1 / (h − c), as far as the sources tried them
ANOTHER = "counts of the old log, which is not that of the result"  # among the inputs
ROUNDING = 1e-9  # added to ln A, for what rounding may add to ln M


class Level(NamedTuple):
    """A level below which mean returns, or gains over a holdout, must not fall."""

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
        Their returns, or what they return more than episodes of the holdout. An episode that a
        clock cut counts as well as it may have gone: by these the policy is watched.
    recorded : array of float [m]
        The same as recorded, of a cut episode what it returned so far.
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
    before : mapping from situations to float
        How often they would be by the current policy that the result knows (π_b).
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
    recorded: FloatArray
    places: IntArray
    levels: tuple[Level, ...]
    within: int
    alpha: float
    followed: Mapping[tuple[str, ...], Rate]
    before: Mapping[tuple[str, ...], float]
    unknown: int
    checks: tuple[Check, ...] | None
    unit: str
    inputs: Mapping[str, str]
    report: str = field(default="", repr=False)

    @property
    def alarm(self) -> bool:
        """Tells whether returns fell below a level."""
        return any(level.alarm is not None for level in self.levels)

    @property
    def adoption(self) -> tuple[Rate, float]:
        """How often decisions are as advised over all situations, and would have been before."""
        totals = np.array([rate.total for rate in self.followed.values()])
        happened = sum(rate.happened for rate in self.followed.values())
        before = float(totals @ [*self.before.values()] / totals.sum())
        return Rate.of(np.arange(totals.sum()) < happened), before

    @property
    def is_followed(self) -> bool:
        """Tells whether more decisions are as advised than before; no decision is against it."""
        return not self.followed or not hardly_more(*self.adoption)

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
            "mean": float(self.recorded.mean()) if self.values.size else None,
            "mean_at_best": float(self.values.mean()) if self.values.size else None,
            "unit": self.unit,
            "inputs": dict(self.inputs),
            "within": self.within,
            "alpha": self.alpha,
            "levels": [level._asdict() for level in self.levels],
            "is_followed": self.is_followed,
            "followed": [
                {"state": x, "before": self.before[x], **asdict(rate)}
                for x, rate in self.followed.items()
            ],
            "unknown": self.unknown,
            "drift": [{x: getattr(one, x) for x in names} for one in self.checks or ()],
        }


def hardly_more(rate: Rate, before: float) -> bool:
    """Tells whether decisions are hardly more often as advised than before.

    That is, of the others less than a quarter changed, and by the interval surely less than half.
    """
    others = 1 - before
    return rate.share < before + others / 4 and rate.high < before + others / 2


class Detection(NamedTuple):
    """The course of a detector: ln M after every episode, and the alarm.

    `alarm` is the place of the episode that raised it, `since` that of the first episode after the
    change, by the smallest stake: the start from which its bets won the most. Both are None without
    an alarm.
    """

    evidence: FloatArray  # [n] ln M
    goal: float  # ln A
    alarm: int | None = None
    since: int | None = None


def detect(
    returns: FloatArray, level: float, high: float, *, within: int, alpha: float
) -> Detection:
    """Watches returns [n], each at most `high`, for a mean below the level.

    An alarm among the first `within` has a chance of at most `alpha` while the mean is no lower.
    """
    expect_count("within", within)
    check_setting("alpha", alpha, Delta)
    if not level < high:
        raise InvalidParameter(
            f"level is {level:.10g}, expected less than {high:.10g}, the highest return: nothing "
            "could ever be above it"
        )
    goal = math.log(within) - math.log(alpha)
    shares = np.array(SHARES)[:, np.newaxis]
    factors = np.log1p(shares * (level - returns) / (high - level))  # [4, n], as all that follow
    capital = np.cumsum(factors, axis=1)  # ln P_t of whoever began with the first episode
    before = capital - factors
    sums = capital + np.logaddexp.accumulate(-before, axis=1)  # M_t = P_t Σ_{s < t} 1/P_s
    evidence = np.logaddexp.reduce(sums, axis=0) - math.log(len(SHARES))
    above = np.flatnonzero(evidence >= goal + ROUNDING)
    if not above.size:
        return Detection(evidence, goal)
    alarm = int(above[0])
    return Detection(evidence, goal, alarm, int(np.argmin(before[0, : alarm + 1])))


def paired(returns: FloatArray, held_out: BoolArray) -> tuple[FloatArray, IntArray]:
    """Compares each holdout episode with the new policy's episodes since the previous one.

    Returns the mean of the latter less the former [m], and the places [m] of the former among all.
    An episode of the holdout without such neighbours is left out. If the new policy is better by
    Δ or more in every season, and seasons do not turn between neighbours, each difference has a
    mean of Δ or more; they lie within ±(highest − lowest return).
    """
    places = np.flatnonzero(held_out)
    ours = np.diff(np.cumsum(np.where(held_out, 0.0, returns))[places], prepend=0.0)
    number = np.diff(np.cumsum(~held_out)[places], prepend=0)
    places, ours, number = (values[number > 0] for values in (places, ours, number))
    return ours / number - returns[places], places


def lowest_season(returns: FloatArray, seasons: int, low: float, delta: float) -> float:
    """Returns a lower bound of the mean return in the lowest season, with a chance of 1 − δ.

    Returns [n], each at least `low`, lie in the order of starts, and seasons are equal parts of
    them; each has its bound (`betting`) at δ/k, so that all k hold at once.
    """
    if not 1 <= seasons <= returns.size:
        raise InvalidParameter(
            f"seasons is {seasons:,}, expected 1 to {returns.size:,}, the episodes of the old log"
        )
    return min(betting(part, low, delta / seasons) for part in np.array_split(returns, seasons))
