"""Claims from the first entries of stacks, beside the counts of all rows."""

from dataclasses import fields

import numpy as np
import pytest

import surestep
from surestep.certificates import Stitched, training_for
from surestep.certificates.episodes import parts_of_log
from surestep.errors import InvalidLog
from surestep.model import DecisionLog, Pairs, Policy, Problem
from surestep.model.log import Excerpt, Seen
from surestep.model.problem import Reach, reaching

SHARE, DELTA = 0.3, 0.3
ONE = Pairs.full(2, 2)  # a decision in state 0, which leads to state 1, the end


def learner(episodes, rng):
    """One decision an episode, by a logger who mostly takes what paid most; all pays alike."""
    paid, taken = np.zeros(2), np.full(2, 1e-9)
    actions, rewards = [], (rng.random(episodes) < 0.5).astype(float)
    for reward in rewards:
        explores = rng.random() < 0.7
        action = int(rng.integers(2)) if explores else int(np.argmax(paid / taken))
        actions.append(action)
        paid[action] += reward
        taken[action] += 1
    yes = np.ones(episodes, np.bool_)
    zeros = np.zeros(episodes, np.int64)
    return DecisionLog(ONE, zeros, actions, rewards, zeros + 1, yes, ~yes, np.arange(episodes + 1))


def excerpt_of(log, limits, among=None):
    """The first rows of every pair in both parts; `among` puts the rows into another order."""
    cut = round(SHARE * log.num_episodes)
    border = log.episode_offsets[cut]
    chooses = np.arange(log.num_steps) < border
    order = np.arange(log.num_steps) if among is None else among
    kept = np.concatenate(
        [
            order[(log.pair == k)[order] & (chooses == first)[order]][:limit]
            for k in range(log.pairs.num_pairs)
            for first, limit in zip((True, False), limits, strict=True)
        ]
    )
    kept.sort()
    rows = {x.name: getattr(log, x.name) for x in fields(DecisionLog) if x.init}
    rows |= {x: rows[x][kept] for x in ("state", "action", "reward", "next_state", "terminated")}
    rows |= {"truncated": ~rows["terminated"], "episode_offsets": np.arange(kept.size + 1)}
    parts = [log.episodes(slice(0, cut)), log.episodes(slice(cut, None))]
    seen = [Seen(x.counts(), x.starts[: 4 * limit]) for x, limit in zip(parts, limits, strict=True)]
    starts = np.concatenate([x.starts for x in seen])
    whole = Seen(log.counts(), starts)
    return Excerpt(**rows, seen=whole, chooses=chooses[kept], parts=tuple(seen), share=SHARE)


def problem_of(log, discount=0.0, most=1.0):
    return Problem(
        counts=log.counts(), behavior=Policy.uniform(log.counts()), discount=discount,
        value_bounds=(0.0, most), log=log,
    )  # fmt: skip


def false_claims(logs, among):
    """The logs in which a gain of the second action is claimed, though there is none."""
    certifier = Stitched(delta=DELTA, train_share=SHARE, series=32)
    second = Policy.deterministic(ONE, [1, 0])
    wrong = 0
    for seed in range(logs):
        log = learner(500, np.random.default_rng(seed))
        part = excerpt_of(log, (26, 60), among(log))
        wrong += surestep.certify(problem_of(part), second, certifier).lower > 0
    return wrong


@pytest.mark.thorough
def test_first_entries_claim_a_gain_that_is_none_as_seldom_as_said():
    """Although the logger learns. Where the best entries are picked, most claims are wrong."""

    def best(log):
        return np.argsort(-log.reward * log.action, kind="stable")

    def usual(logs):
        return logs * DELTA + 4 * (logs * DELTA * (1 - DELTA)) ** 0.5

    assert false_claims(60, lambda log: None) <= usual(60)
    assert false_claims(20, best) > usual(20)


@pytest.fixture(scope="module")
def walk():
    """Three states, of which the last but one is not to be reached, and an end."""
    going = [
        [[0.6, 0.2, 0.1, 0.1], [0.2, 0.6, 0.1, 0.1]],
        [[0.5, 0.1, 0.2, 0.2], [0.1, 0.3, 0.3, 0.3]],
        [[0.1, 0.4, 0.2, 0.3], [0.4, 0.1, 0.2, 0.3]],
        [[0, 0, 0, 1], [0, 0, 0, 1]],
    ]
    earns = [[0.2, 0.8], [0.4, 0.1], [0.5, 0.5], [0.0, 0.0]]
    mdp = surestep.FiniteMDP.from_dense(going, earns, discount=0.8)
    log = surestep.sample_log(
        mdp, Policy.uniform(mdp), 200, horizon=6, rng=np.random.default_rng(2)
    )
    return log, Policy.deterministic(mdp, [1, 0, 0, 0])


@pytest.mark.parametrize("asked", ["gain", "chance"])
def test_all_entries_claim_what_the_log_claims(walk, asked):
    log, policy = walk
    claims = []
    for given in (log, excerpt_of(log, (10_000, 10_000))):
        problem = problem_of(given, 0.8, 5.0)
        if asked == "chance":
            problem = reaching(problem, Reach(np.arange(4) == 2, within=3, alone=True))
        certifier = Stitched(train_share=SHARE, series=64, tails=0.0)
        claims.append(surestep.certify(problem, policy, certifier))
    assert claims[0].lower == claims[1].lower
    assert claims[0].figures["rounds"] == claims[1].figures["rounds"] > 10


def test_parts_have_the_counts_of_all_their_rows(walk):
    log, _ = walk
    given = excerpt_of(log, (3, 7))
    problem = problem_of(given, 0.8, 5.0)
    part = training_for(problem, Stitched(train_share=SHARE))
    theirs = training_for(problem_of(log, 0.8, 5.0), Stitched(train_share=SHARE))
    assert part.counts.times.tolist() == theirs.counts.times.tolist()
    assert part.counts.terminal.tolist() == theirs.counts.terminal.tolist()
    assert part.log.num_episodes == theirs.log.num_episodes == 60
    assert part.log.num_steps == np.minimum(theirs.counts.visits, 3).sum()
    assert part.episodes is None
    assert parts_of_log(given, SHARE, None)[0] is parts_of_log(given, SHARE, None)[0]
    with pytest.raises(InvalidLog, match=r"split at 0\.3, and cannot be split at 0\.2"):
        parts_of_log(given, 0.2, None)
