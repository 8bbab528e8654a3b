"""Splits logs into episodes that may choose a policy and episodes that judge it."""

from dataclasses import replace
from typing import Any

import numpy as np

import surestep._arrays as arrays
from surestep.certificates.common import refused
from surestep.errors import InvalidLog, InvalidParameter
from surestep.model import Counts, LoggedRewards, Policy, Problem
from surestep.model.log import UNKNOWN, DecisionLog, Excerpt, least_and_greatest, terminal_states
from surestep.offpolicy.split import first_steps, split_episodes
from surestep.offpolicy.weights import unsupported_pairs


def training_part(problem: Problem, train_share: float, seed: int | None) -> Problem:
    """Returns the problem of the episodes that may choose a policy; the others are to judge it.

    Leaves out counts, sums and ends that only the other episodes show.

    Parameters
    ----------
    problem : Problem
        The data, with their log.
    train_share : float
        The share of the episodes that may choose.
    seed : int or None
        Shuffles the episodes. None: the share is the first part in the order of the log, which of
        a single episode is its first steps.

    Returns
    -------
    Problem
        The training part.

    Raises
    ------
    InvalidParameter
        Where there is no log, or the share leaves no episode.

    Examples
    --------
    >>> mdp = surestep.FiniteMDP.from_dense(
    ...     [[[0.9, 0.1], [0.2, 0.8]], [[0.0, 1.0], [0.0, 1.0]]],
    ...     [[0.0, 0.0], [1.0, 0.5]], discount=0.5)
    >>> behavior = surestep.Policy.uniform(mdp)
    >>> log = surestep.sample_log(mdp, behavior, 400, horizon=10, rng=np.random.default_rng(1))
    >>> problem = surestep.Problem(counts=log.counts(), behavior=behavior, discount=0.5,
    ...     value_bounds=(0.0, 2.0), log=log)
    >>> surestep.certificates.training_part(problem, 0.3, seed=None).log.num_episodes
    120
    """
    arrays.expect("problem", problem, Problem)
    if problem.log is None:
        raise InvalidParameter(
            "training_part needs whole episodes, but the problem has no log; give it as "
            "Problem(log=…)"
        )
    train, _ = parts_of_log(problem.log, train_share, seed)
    if train is None:
        raise InvalidParameter(
            f"train_share is {train_share!r}, which leaves none of {problem.log.num_episodes} "
            "episodes for training; expected more"
        )
    alone = replace(
        problem,
        counts=counts_of_part(problem, train, "chooses the policy"),
        log=train,
        premises=(),
        closed=None,
        signals=(),
    )
    return arrays.altered(
        alone,
        signals=tuple(
            s.moved(lambda p: training_part(p, train_share, seed)) for s in problem.signals
        ),
    )


def held_out_part(problem: Problem, train_share: float, seed: int | None) -> Problem:
    """Returns the problem of the held-out episodes, which did not choose the policy."""
    log = log_of(problem)
    _, rest = parts_of_log(log, train_share, seed)
    if rest is None:
        raise refused("nothing-held-out", share=train_share, episodes=log.num_episodes)
    counts = counts_of_part(problem, rest, "judges the policy")
    if log.num_episodes == 1:  # where the rest of a stream begins, no episode starts
        counts = replace(counts, starts=problem.counts.starts)
        rest = None
    alone = replace(problem, counts=counts, log=rest, signals=())
    return arrays.altered(
        alone,
        signals=tuple(
            s.moved(lambda p: held_out_part(p, train_share, seed)) for s in problem.signals
        ),
    )


def log_of(problem: Problem) -> DecisionLog:
    """Returns the log of a problem; refuses a problem without one."""
    if problem.log is None:
        raise refused("no-log")
    return problem.log


def counts_of_part(problem: Problem, part: DecisionLog, does: str) -> Counts:
    """Returns the counts of a part of a log; refuses a part in which no row has a next state."""
    if (part.next_state == UNKNOWN).all():
        raise InvalidLog(
            f"no row of the part of the log that {does} says where it led; expected one that does: "
            "another train_share, or rows that say how their episodes ended"
        )
    return counts_like(problem.counts, part, known_ends(problem, part))


def training_for(problem: Problem, certifier: Any) -> Problem:
    """Returns the data that may choose a policy that a certifier judges: all, or a training part.

    Parameters
    ----------
    problem : Problem
        The data.
    certifier : Certifier
        The certifier; one with a `train_share` above 0 judges by the rest.

    Returns
    -------
    Problem
        The problem itself, or its training part.

    Examples
    --------
    >>> mdp = surestep.FiniteMDP.from_dense(
    ...     [[[0.9, 0.1], [0.2, 0.8]], [[0.0, 1.0], [0.0, 1.0]]],
    ...     [[0.0, 0.0], [1.0, 0.5]], discount=0.5)
    >>> behavior = surestep.Policy.uniform(mdp)
    >>> log = surestep.sample_log(mdp, behavior, 400, horizon=10, rng=np.random.default_rng(1))
    >>> problem = surestep.Problem(counts=log.counts(), behavior=behavior, discount=0.5,
    ...     value_bounds=(0.0, 2.0), log=log)
    >>> stitched = surestep.certificates.Stitched(train_share=0.3)
    >>> surestep.certificates.training_for(problem, stitched).log.num_episodes
    120
    """
    return training_part(problem, *split_of(certifier)) if holds_out(certifier) else problem


def holds_out(certifier: Any) -> bool:
    """Tells whether a certifier judges by a part of the log that did not choose the policy."""
    return bool(getattr(certifier, "train_share", 0.0) > 0)


def needs_episodes(certifier: Any) -> bool:
    """Tells whether a certifier needs the log, and not its counts alone."""
    return bool(certifier.needs.episodes or holds_out(certifier))


def split_of(certifier: Any) -> tuple[float, int | None]:
    """Returns the share of a log that a certifier leaves to the choice of the policy, and the seed.

    The seed shuffles episodes before they are split; it is None for a split in time.
    """
    return certifier.train_share, certifier.seed if certifier.logger == "fixed" else None


def known_ends(problem: Problem, part: DecisionLog) -> arrays.BoolArray:
    """Returns the states [S] in which episodes end, by a part of the log and the problem."""
    ends = terminal_states(part)
    if problem.log is not None:
        ends = ends | (problem.counts.terminal & ~terminal_states(problem.log))
    if problem.support is not None:
        ends = ends | problem.support.ends()
    return ends


def parts_of_log(
    log: DecisionLog, train_share: float, seed: int | None
) -> tuple[DecisionLog | None, DecisionLog | None]:
    """Splits a log as `split_episodes` does; a single episode is split in time.

    Where rows of several episodes lie between each other, the first part is all that was decided
    before the first row of the first episode that is not in it: what follows of an episode that
    began before is of the second part, and no start there; in the first part that episode is cut.
    """
    if isinstance(log, Excerpt):
        return log.split(train_share)
    order = np.arange(log.num_steps) if log.num_episodes == 1 else log.order
    if seed is not None or order is None:
        return split_episodes(log, train_share, seed)
    size = log.num_steps if log.num_episodes == 1 else log.num_episodes
    cut = round(float(train_share) * size)
    if not 0 < cut < size:
        return (log, None) if cut > 0 else (None, log)
    if log.num_episodes == 1:  # a stream: nothing starts in the rest of it
        return log.rows(order < cut), replace(log.rows(order >= cut), continued=None)
    before = order < order[log.episode_offsets[cut]]

    def split() -> tuple[DecisionLog, DecisionLog]:
        first = log.rows(before)
        begun = before[log.episode_offsets[:-1]]
        goes_on = ~before[log.episode_offsets[1:] - 1][begun]
        goes_on |= False if first.cut is None else first.cut
        return replace(first, cut=goes_on if goes_on.any() else None), log.rows(~before)

    return log.remembered(("rows", cut), split)


def counts_like(whole: Counts, part: DecisionLog, terminal: arrays.BoolArray) -> Counts:
    """Returns the counts of a part of the log, with the kind of rewards of the whole."""
    seen = part.counts()
    rewards = whole.rewards
    shape = (seen.offsets, seen.successor, seen.times)
    if not rewards.known and rewards.per == "pair":
        known = part.with_outcomes()
        sums = np.bincount(known.pair, known.reward, whole.pairs.num_pairs)
        ends = least_and_greatest(known.reward, known.pair, whole.pairs.num_pairs)
        rewards = LoggedRewards(sums.astype(np.float64), "pair", False, *ends)
    elif not rewards.known:
        rewards = seen.rewards
    elif rewards.per == "transition":  # known for transitions never seen, too
        known = part.with_outcomes()
        size = np.int64(whole.pairs.num_states)
        keys = arrays.run_owners(whole.offsets) * size + whole.successor
        order = np.argsort(keys)
        place = order[np.searchsorted(keys, known.pair * size + known.next_state, sorter=order)]
        shape = (whole.offsets, whole.successor, np.bincount(place, minlength=keys.size))
    return Counts(whole.pairs, *shape, rewards, seen.starts, terminal)


def with_ends(problem: Problem) -> Counts:
    """Returns the counts, with the least and the greatest rewards if they or the log have them."""
    counts = problem.counts
    if counts.rewards.least is None and not counts.rewards.known and problem.log is not None:
        return counts_like(counts, problem.log, counts.terminal)
    return counts


def recorded_log(problem: Problem, horizon: int | None) -> DecisionLog:
    """Returns the log up to the horizon; refuses a recording that stopped before it and the end.

    Without a horizon, every episode must be over.
    """
    log = log_of(problem) if horizon is None else first_steps(log_of(problem), horizon)
    lengths = arrays.run_lengths(log.episode_offsets)
    early = ~over_at_last(log)
    if log.cut is not None:  # by a split: the rest is known, and elsewhere
        early &= ~log.cut
    if horizon is not None:
        early &= lengths < horizon
    for e, others in arrays.first_where(early, "episode"):
        raise refused(
            "truncated-early",
            episode=e,
            steps=lengths[e],
            most=lengths[early].min(),
            others=others,
        )
    return log


def over_at_last(log: DecisionLog) -> arrays.BoolArray:
    """Returns the episodes [E] that are over at their last step."""
    return log.terminated[log.episode_offsets[1:] - 1]


def check_known_support(problem: Problem, policy: Policy) -> None:
    """Refuses an estimated π_b, or one that π exceeds, unless rows record their propensities."""
    if problem.log is not None and problem.log.propensity is not None:
        return
    if problem.behavior_is_estimated:
        raise refused("behavior-not-known")
    counts = problem.counts
    beyond = unsupported_pairs(policy, problem.behavior)
    for k, others in arrays.first_where(beyond & ~counts.terminal[counts.pairs.state], "pair"):
        raise refused(
            "policy-beyond-behavior",
            pair=counts.pairs.pair_name(k),
            chance=policy.probability[k],
            others=others,
        )
