"""What a posterior over models says about rewards: known, seen, or never seen."""

from __future__ import annotations

from typing import Literal

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray, refuse_where, run_owners
from surestep.certificates.drawn import RewardDraws
from surestep.errors import CertificateRefused
from surestep.kernels.posterior import UNSEEN_SHAPE
from surestep.model.counts import Counts
from surestep.model.log import DecisionLog
from surestep.model.problem import Problem
from surestep.model.transitions import transition_name

RewardModel = Literal["deterministic", "bounded"]

SAME = 1e-9  # relative to the largest reward: rewards this close are the same


def reward_draws(
    problem: Problem, model: RewardModel, low: float | None, high: float | None
) -> RewardDraws:
    """The rewards of drawn models, once data and settings are known to suit each other."""
    counts = problem.counts
    logged = counts.rewards
    per_pair = logged.per == "pair"
    observed = counts.visits if per_pair else counts.times
    settled = observed > 0
    if logged.known:
        settled = ends_left_out(counts) if per_pair else np.ones(observed.size, np.bool_)
    value = logged.values / np.where(logged.known, 1, np.maximum(observed, 1))
    check_values(problem, value, settled & (observed > 0))
    bounds = (0.0, 0.0) if low is None or high is None else (float(low), float(high))
    if logged.known or low is None:
        span = 0.0 if all_known(problem) else bounds[1] - bounds[0]
    else:
        span = bounds[1] - bounds[0]
        check_bounds(counts, value, settled, bounds)
    if model == "bounded" and not logged.known:
        share = np.where(settled, (value - bounds[0]) / span, 0.0).clip(0.0, 1.0) * observed
        shapes = UNSEEN_SHAPE + share, UNSEEN_SHAPE + observed - share
        nothing = np.zeros(0)
        return RewardDraws(
            per_pair, True, *shapes, bounds[0], span, nothing, nothing.astype(np.int64)
        )
    if not logged.known and problem.log is not None:
        check_deterministic(counts, problem.log)
    atoms, copies = unseen_atoms(problem, value[settled], span)
    first = np.where(settled, value, np.nan)
    return RewardDraws(per_pair, False, first, first, bounds[0], span, atoms, copies)


def unseen_atoms(problem: Problem, seen: FloatArray, span: float) -> tuple[FloatArray, IntArray]:
    """The rewards that unseen ones are drawn from; none where they are known or have bounds."""
    if span > 0 or all_known(problem):
        return np.zeros(0), np.zeros(0, np.int64)
    if seen.size == 0:
        raise CertificateRefused(
            "no reward was ever observed, so none can be drawn; expected some data, known rewards, "
            "or reward_low and reward_high"
        )
    atoms, copies = np.unique(seen, return_counts=True)
    return atoms, copies


def all_known(problem: Problem) -> bool:
    """Whether the reward of every transition that may come is known, seen or not."""
    counts = problem.counts
    if not counts.rewards.known or counts.rewards.per == "pair":
        return counts.rewards.known
    partial = problem.stored_sizes() < problem.support_sizes()
    return not partial[ends_left_out(counts)].any()


def ends_left_out(counts: Counts) -> BoolArray:
    """The pairs [K] that have a row: not those of known ends of episodes."""
    going_on: BoolArray = ~counts.terminal[counts.pairs.state]
    return going_on


def reward_sentences(
    problem: Problem, model: RewardModel, low: float | None, high: float | None
) -> tuple[str, ...]:
    """What is assumed about rewards, in plain words."""
    counts = problem.counts
    if all_known(problem):
        return ("The rewards are known.",)
    what = counts.rewards.per
    ends = "" if low is None or high is None else f"{float(low)!r} and {float(high)!r}"
    if counts.rewards.known:
        sentences = ["The rewards that are given are known."]
    elif model == "bounded":
        return (
            f"Every reward is one of {ends} (for rewards in between, this is too cautious), and "
            f"the mean of each {what} is a draw from a Beta(½, ½) prior between them.",
        )
    else:
        sentences = [f"The reward of a {what} is always the same, so what was observed is exact."]
    if not ends:
        sentences.append(
            f"The rewards of a {what} never observed are like those that were (Bayesian "
            "bootstrap), so this is no exact posterior."
        )
    else:
        sentences.append(
            f"The reward of a {what} never observed is a draw from between {ends}, where all are "
            "equally likely."
        )
    return tuple(sentences)


def name_of(counts: Counts, index: int) -> str:
    """The pair or the transition that a reward belongs to."""
    if counts.rewards.per == "pair":
        return counts.pairs.pair_name(index)
    return transition_name(counts.pairs, counts.offsets, counts.successor, index)


def check_bounds(
    counts: Counts, value: FloatArray, settled: BoolArray, bounds: tuple[float, float]
) -> None:
    """Refuses bounds that an observed mean reward exceeds."""
    low, high = bounds
    slack = SAME * max(abs(low), abs(high))
    refuse_where(
        settled & ((value < low - slack) | (value > high + slack)),
        lambda i: (
            f"the mean reward of {name_of(counts, i)} is {value[i]}, expected reward_low = {low} "
            f"to reward_high = {high}"
        ),
        counts.rewards.per,
        CertificateRefused,
    )


def check_observed(problem: Problem) -> None:
    """Refuses value bounds that the mean rewards of visited pairs contradict."""
    counts = problem.counts
    observed = counts.visits if counts.rewards.per == "pair" else counts.times
    mean = counts.rewards.values
    if not counts.rewards.known:
        mean = mean / np.maximum(observed, 1)
    check_rewards(problem, mean, observed > 0)


def check_values(problem: Problem, value: FloatArray, seen: BoolArray) -> None:
    """Refuses value bounds that the rewards of a pair contradict, and ends outside of them."""
    check_rewards(problem, value, seen)
    counts, (low, high) = problem.counts, problem.value_bounds
    pairs, slack = counts.pairs, SAME * max(abs(low), abs(high), SAME)
    ending = counts.unseen_reward()
    over = ~ends_left_out(counts)
    refuse_where(
        over & ((ending < low - slack) | (ending > high + slack)),
        lambda k: (
            f"{pairs.pair_name(k)} ends the episode with {ending[k]:.10g}, outside of value_bounds "
            f"= ({low}, {high}); expected wider bounds"
        ),
        "pair",
        CertificateRefused,
    )


def check_rewards(problem: Problem, value: FloatArray, seen: BoolArray) -> None:
    """Refuses value bounds that the rewards of a pair contradict.

    V = r + γ V' with V and V' within the bounds, so V_min − γ V_max ≤ r ≤ V_max − γ V_min.
    """
    counts, (low, high) = problem.counts, problem.value_bounds
    pairs, discount = counts.pairs, problem.single_discount
    least, most = low - discount * high, high - discount * low
    slack = SAME * max(abs(low), abs(high), SAME)
    per_pair = counts.rewards.per == "pair"
    owner = np.arange(pairs.num_pairs) if per_pair else run_owners(counts.offsets)
    smallest, largest = np.full(pairs.num_pairs, np.inf), np.full(pairs.num_pairs, -np.inf)
    np.minimum.at(smallest, owner[seen], value[seen])
    np.maximum.at(largest, owner[seen], value[seen])
    visited = largest >= smallest
    refuse_where(
        visited & ((smallest > most + slack) | (largest < least - slack)),
        lambda k: (
            f"{pairs.pair_name(k)} earns {smallest[k]:.10g} to {largest[k]:.10g}, but values "
            f"between value_bounds = ({low}, {high}) allow only {least:.10g} to {most:.10g}; "
            "expected wider bounds"
        ),
        "pair",
        CertificateRefused,
    )


def check_deterministic(counts: Counts, log: DecisionLog) -> None:
    """Refuses a log in which one transition (or pair) earned different rewards."""
    pairs = counts.pairs
    size = np.int64(pairs.num_states)
    per_pair = counts.rewards.per == "pair"
    key = log.pair if per_pair else log.pair * size + log.next_state
    shown, place = np.unique(key, return_inverse=True)
    smallest, largest = np.full(shown.size, np.inf), np.full(shown.size, -np.inf)
    np.minimum.at(smallest, place, log.reward)
    np.maximum.at(largest, place, log.reward)

    def name(i: int) -> str:
        pair, successor = (int(shown[i]), 0) if per_pair else divmod(int(shown[i]), int(size))
        led_to = "" if per_pair else f" → {pairs.state_name(successor)}"
        return f"{pairs.pair_name(pair)}{led_to}"

    refuse_where(
        largest - smallest > SAME * float(np.abs(log.reward).max()),
        lambda i: (
            f"{name(i)} earned {smallest[i]} and {largest[i]} in the log, so its reward is not "
            "deterministic; expected rewards='bounded' with reward_low and reward_high"
        ),
        counts.rewards.per,
        CertificateRefused,
    )
