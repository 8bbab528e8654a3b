"""The worst share of returns: a bound on how much better its mean is, from stitched rollouts.

The mean of the worst share α of returns (their CVaR) is (1/α) ∫_0^α F⁻¹(u) du, with F the
distribution of returns. Rounds of one policy, each on entries that no round before has read, are
independent draws of its return (`stitched`). Let F̂ be that of m of them. Then F ≤ F̂ + ε everywhere,
and likewise F ≥ F̂ − ε, each with probability 1 − δ/2 for ε = √(ln(2/δ) / 2m) (Dvoretzky, Kiefer and
Wolfowitz 1956; the constant is Massart's of 1990, for δ ≤ 1). Hence, with ℓ and h the least and the
greatest return,

    CVaR(π_I) ≥ (1/α) (min(ε, α) ℓ + ∫_0^{α−ε} F̂⁻¹)   and   CVaR(π_b) ≤ (1/α) ∫_ε^{α+ε} F̂⁻¹,

where F̂⁻¹ is h above 1. A rollout that is cut counts with the least that may follow for π_I, with
the most for π_b, which moves either bound to the safe side. The difference holds with 1 − δ.

m is fixed by fold 1 alone, and one series of numbers is taken. If the log lacks an entry for one of
the m rounds, nothing is said: a wrong band is published no more often than it is wrong on stacks
without an end. What is *not* valid: to take as many rounds as there happen to be, to pool several
series, or to choose m or the series afterwards.
"""

import math

import numpy as np

from surestep._arrays import FloatArray
from surestep.certificates.bets import (
    CERTIFYING,
    PLANNING,
    PLANNING_RUNS,
    PLANNING_SEED,
    case_of,
)
from surestep.certificates.stacks import Way, horizons, roll_out_each
from surestep.kernels.stitched import OURS, THEIRS, Case, Course, Stacks, Tails
from surestep.model.known import with_zero
from surestep.model.statements import Scalar

CAREFUL = 3.0  # standard errors of the visits of the scarcest pair, by which the rest may have less
LEFT = 0.01  # γ^t, at the most, where rollouts are cut


def worst_figures(
    stacks: tuple[Stacks, Stacks],
    ratio: float,
    course: Course,
    *,
    share: float,
    delta: float,
    seed: int,
) -> dict[str, Scalar]:
    """Returns the figures of a claim about the worst share of returns; its bound may be None.

    `stacks` are those of both folds; fold 2 has `ratio` times the size of fold 1.
    """
    first, second = stacks
    limits = with_zero(course.limits)
    ends = np.array(limits)[:, np.newaxis]
    tails = (np.repeat(ends, part.shape[1], axis=1) for part in course.tails)
    course = course._replace(tails=Tails(*tails), limits=limits)
    steps = next(
        most for most in horizons(course.discount) if most is None or course.discount**most <= LEFT
    )
    ends_of_band = []
    for who in (OURS, THEIRS):
        ways = [Way(who, steps, steps)]
        plan = case_of(first, course, first, PLANNING_SEED)
        (tried,) = roll_out_each([plan], ways, PLANNING, PLANNING_RUNS)
        fewest = int(tried.complete.min())
        rounds = int(ratio * (fewest - CAREFUL * math.sqrt(fewest)))
        if rounds < 1:
            return {"worst_lower": None, "worst_rounds": 0}
        case = Case(second, course, first.sizes > 0, seed, rounds)
        (made,) = roll_out_each([case], ways, CERTIFYING, 1)
        if made.complete[0] < rounds:
            return {"worst_lower": None, "worst_rounds": rounds}
        returns = np.sort(made.differences[0, :rounds] * who)
        ends_of_band.append(worst_mean(returns, share, delta / 2, limits, who=who))
    ours, theirs = ends_of_band
    return {
        "worst_lower": ours - theirs,
        "worst_policy": ours,
        "worst_behavior": theirs,
        "worst_rounds": rounds,
    }


def worst_mean(
    returns: FloatArray, share: float, delta: float, limits: tuple[float, float], *, who: int
) -> float:
    """Returns the end of the band of (1/α) ∫_0^α F⁻¹: the lower one for π_I, else the upper one.

    `returns` rise.
    """
    band = math.sqrt(math.log(1 / delta) / (2 * returns.size))
    shift = -band if who == OURS else band
    edges = np.arange(returns.size + 1) / returns.size
    inside = np.clip(edges, max(shift, 0.0), max(share + shift, 0.0))
    total = float(np.diff(inside) @ returns)
    total += min(band, share) * limits[0] if who == OURS else 0.0
    total += max(share + shift - max(shift, 1.0), 0.0) * limits[1] if who == THEIRS else 0.0
    return total / share
