"""Episodes known again: whatever file and order they come in, and not those that look like them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surestep import DecisionLog, FiniteMDP, Pairs, Policy, sample_log
from surestep.results.known_episodes import (
    MOST,
    KnownEpisodes,
    chance_of_alike,
    episode_digests,
)


def wandering(states=10, end=0.1):
    """Random rows over some states, each of which may end the episode."""
    rng = np.random.default_rng(0)
    P = np.zeros((states + 1, 2, states + 1))
    P[:states, :, :states] = (1 - end) * rng.dirichlet(np.ones(states), (states, 2))
    P[:states, :, states] = end
    return FiniteMDP.from_dense(P, np.broadcast_to(np.arange(states + 1.0), P.shape), 0.9)


def log_of(episodes, seed, mdp=None, horizon=30):
    mdp = wandering() if mdp is None else mdp
    return sample_log(mdp, Policy.uniform(mdp), episodes, horizon, np.random.default_rng(seed))


def joined(first, second):
    """The episodes of both logs, one log after the other."""
    columns = ("state", "action", "reward", "next_state", "terminated", "truncated")
    both = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in columns}
    offsets = np.append(first.episode_offsets, first.num_steps + second.episode_offsets[1:])
    return replace(first, **both, episode_offsets=offsets)


@given(order=st.permutations(range(20)))
@settings(max_examples=20)
def test_digests_go_with_their_episodes(order):
    log = log_of(20, 3)
    digests = episode_digests(log)
    assert np.array_equal(episode_digests(log.episodes(np.array(order))), digests[order])
    assert KnownEpisodes.of(log.episodes(np.array(order))) == KnownEpisodes.of(log)


def three(**changes):
    """Three episodes of one step each."""
    columns = {"state": [0, 1, 2], "action": [0, 0, 1], "reward": [0.5, 0.5, 0.0]}
    columns |= {"next_state": [3, 3, 3], "terminated": [True, True, True]} | changes
    arrays = {name: np.array(values) for name, values in columns.items()}
    return DecisionLog(
        Pairs.full(4, 2), **arrays, truncated=~arrays["terminated"], episode_offsets=np.arange(4)
    )


@pytest.mark.parametrize(
    "change",
    [
        {"state": [0, 2, 2]},
        {"action": [0, 1, 1]},
        {"reward": [0.5, 0.75, 0.0]},
        {"next_state": [3, 0, 3]},
        {"terminated": [True, False, True]},
    ],
)
def test_a_digest_is_that_of_all_that_happened(change):
    digests = episode_digests(three())
    assert len(set(digests.tolist())) == 3
    assert (episode_digests(three(**change)) != digests).tolist() == [False, True, False]


def test_steps_count_in_their_order_and_the_sign_of_zero_does_not():
    log = log_of(1, 2)
    turned = replace(log, reward=log.reward[::-1].copy())
    assert episode_digests(turned) != episode_digests(log)
    zero = replace(log, reward=np.zeros(log.num_steps))
    minus = replace(log, reward=-np.zeros(log.num_steps))
    assert episode_digests(zero) == episode_digests(minus)


@pytest.mark.parametrize("number", [300, 3 * MOST])
def test_old_episodes_among_new_ones_are_known_again(number):
    mdp = wandering(end=0.02)
    old, new = log_of(number, 0, mdp), log_of(number, 1, mdp)
    known = KnownEpisodes.of(old)
    assert (known.smallest.size == MOST) == (number > MOST)
    assert not known.met_in(new).are_old
    met = known.met_in(old)
    assert (met.alike, met.are_old) == (met.looked_at, True)
    some = np.random.default_rng(2).permutation(number)[: number // 3]
    assert known.met_in(joined(new, old.episodes(some))).are_old


def test_short_episodes_are_alike_by_chance():
    # One step with a few outcomes: nobody can tell old ones from new ones, and nobody is accused.
    mdp = wandering(states=2, end=0.5)
    known = KnownEpisodes.of(log_of(400, 0, mdp, horizon=1))
    met = known.met_in(log_of(400, 1, mdp, horizon=1))
    assert met.alike > 390
    assert not met.are_old


@pytest.mark.slow
def test_fresh_logs_are_seldom_called_old():
    # Episodes of middling length, about half of which are like another one.
    mdp = wandering(states=3, end=0.4)
    for seed in range(200):
        known = KnownEpisodes.of(log_of(200, 2 * seed, mdp))
        assert 0.1 < known.once / known.number < 0.9
        assert not known.met_in(log_of(200, 2 * seed + 1, mdp)).are_old


def test_the_chance_of_another_one_alike_is_bounded_by_those_there_were():
    assert chance_of_alike(100, 0) == 1.0
    # None of 100 alike: (1 − p)^100 = 10⁻⁶/2 at the bound.
    assert (1 - chance_of_alike(100, 100)) ** 100 == pytest.approx(5e-7, rel=1e-6)


def test_what_was_kept_comes_back_and_nothing_else_is_read():
    known = KnownEpisodes.of(log_of(30, 0))
    assert KnownEpisodes.read(known._asdict()) == known
    assert KnownEpisodes.read(None) is None
    for changed in (
        {"digests": known.digests[:-1]},
        {"digests": ""},
        {"digests": "xy" * 8},
        {"digests": known.digests + known.digests},
        {"once": known.number + 1},
        {"number": 30.0},
        {"once": True},
    ):
        with pytest.raises(ValueError, match=r"known episodes|hexadecimal"):
            KnownEpisodes.read(known._asdict() | changed)
    with pytest.raises(ValueError, match="known episodes are"):
        KnownEpisodes.read([])
