"""Do the model's values match what episodes earned?

A process whose states leave something out may look Markov from one step to the next, and still have
other returns than its model. So the value V̂ of the log's own policy in the log's own model is
compared, in each state, with the mean return of the episodes from their first visit on.

**The test.** If states are Markov, one policy decides and episodes are alike, then given how often
every exit of every state (action, reward, next state, end) was taken, all orders in which exits fit
together to as many episodes are equally likely: their chances are products of the same factors. The
model is the same in all of them. So trails with the log's exits are drawn, with the last exit of
each state as in the log (`kernels.shuffles`), and what is exact given those is exact. The statistic
is the largest |mean − V̂| of some states in standard deviations. The exits alone choose these
states, and each trail has its own standard deviations: so the p-value is exact for any number of
rows.

**Where recording stopped.** A truncated row is an exit too, after which the model says what would
have come. So the test is exact where recording never stops, or by the state alone. Where a clock
stops it, shuffled episodes have other lengths than those of the log, and means another spread. But
in either a mean less V̂ is a sum of martingale differences, less what V̂ has learnt from them; it is
divided by the standard deviation that follows from its own weights, and so it is standard normal in
the limit of many episodes, in the log as in the shuffles, whatever stops the recording without
looking ahead (studentised permutation tests: Janssen 1997, Chung and Romano 2013).
"""

import numpy as np

import surestep._arrays as arrays
from surestep.checks.check import Check, CheckKind, GivenLog, Mark
from surestep.checks.shuffling import SAME, shuffles_of, slack_of
from surestep.errors import NeverEnds, NotConverged
from surestep.kernels.shuffles import Trail, room_to_walk, walk_trails
from surestep.model import DecisionLog, estimate_behavior, estimate_mdp
from surestep.planning.evaluation import evaluate

MOST_STATES = 12  # the states with most rows are tested
LEAST = 30  # rows of a tested state, and episodes


def check(given: GivenLog) -> Check:
    """Checks the model's value of π̂_b against mean returns, in the states with most rows.

    The picture has the range of shuffled means around each value; the test fails if a mean is
    outside. The logger must decide by the state alone and must not learn on the way: the model has
    one policy only.
    """
    log = given.log
    discount = given.discount
    if discount is None or discount >= 1:
        return Check.unchecked(KIND.code, "no-discount")
    try:
        counts = log.counts()
        value = evaluate(estimate_mdp(counts, discount), estimate_behavior(counts))
    except (NeverEnds, NotConverged):
        return Check.unchecked(KIND.code, "no-discount")
    # Rows choose the states, as they do not depend on the order; numbers of episodes would.
    rows = np.bincount(log.state, minlength=log.pairs.num_states)
    shown = np.argsort(-rows, kind="stable")[:MOST_STATES]
    shown = shown[rows[shown] >= LEAST]
    if shown.size == 0 or log.num_episodes < LEAST:
        return Check.unchecked(KIND.code, "nothing-to-compare")
    trail = trail_of(log, discount, value, shown)
    if not trail.excess.any():
        return Check.unchecked(KIND.code, "nothing-varies")
    excess, deviation = walked(
        trail, discount, shown.size, shuffles_of(log.num_steps), given.seed + 5
    )
    if not deviation.any():  # as in episodes of one step, whose mean return is the model's value
        return Check.unchecked(KIND.code, "nothing-to-compare")
    ratio = np.abs(excess) / np.where(deviation > 0, deviation, np.inf)
    observed = float(ratio[0].max())
    shuffled = np.sort(ratio[1:].max(axis=1))
    at_least = np.count_nonzero(shuffled >= observed - slack_of(observed))
    p_value = (1 + at_least) / (1 + shuffled.size)
    failing = max(int(given.level * (1 + shuffled.size)), 1)  # from this shuffle on: p ≤ level
    radius = (shuffled[-failing] + slack_of(observed)) * deviation[0]
    return Check(
        code=KIND.code,
        outcome="failed" if p_value <= given.level else "passed",
        level=given.level,
        p_value=p_value,
        rows=log.num_steps,
        one_an_episode=False,
        noticed=float(radius.max()),
        figures={"states": float(shown.size)},
        picture=tuple(
            Mark(given.names[s], v - r, v + r, v + e, v)
            for s, v, r, e in zip(
                *(part.tolist() for part in (shown, value[shown], radius, excess[0])), strict=True
            )
        ),
    )


def trail_of(
    log: DecisionLog, discount: float, value: arrays.FloatArray, shown: arrays.IntArray
) -> Trail:
    """Returns the trail of a log, with the rewards of its steps beyond the model's value [S]."""
    visited, state = np.unique(log.state, return_inverse=True)
    place = np.full(visited.size, -1)
    place[np.searchsorted(visited, shown)] = np.arange(shown.size)
    excess = log.reward + discount * value[log.next_state] - value[log.state]
    rounding = SAME * (np.abs(log.reward).max() + np.abs(value).max())
    excess[np.abs(excess) <= rounding] = 0.0
    target = arrays.places_among(visited, log.next_state)
    target[log.terminated | log.truncated] = -1
    order = np.argsort(state, kind="stable")
    rows = np.bincount(state)
    return Trail(
        starts=state[log.episode_offsets[:-1]],
        offsets=arrays.offsets_of(rows),
        target=target[order],
        excess=excess[order],
        variance=np.bincount(state, excess**2) / rows,
        place=place,
    )


def walked(
    trail: Trail, discount: float, shown: int, shuffles: int, seed: int
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns means less values and standard deviations [1 + shuffles, shown], the log's first."""
    excess, deviation = np.empty((shuffles + 1, shown)), np.empty((shuffles + 1, shown))
    walk_trails.all(
        shuffles + 1, room_to_walk(trail, shown), seed, discount, trail, excess, deviation
    )
    return excess, deviation


KIND = CheckKind(
    code="model-returns",
    title="The model's values match what episodes earned",
    broken="The model's values do not match what episodes earned",
    passed="The model's values and the mean returns agree, as far as luck allows.",
    failed="In some situations episodes earned something else than the model says: the recorded "
    "situation leaves something out, or decisions changed over time.",
    noticed="It compares mean returns in {states:situation}, and would have noticed a difference "
    "of {noticed:2} in each.",
    figures=("states",),
    against="markov",
    of_log=check,
)
