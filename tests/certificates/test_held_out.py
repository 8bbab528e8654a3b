"""A posterior of held-out data is that of a problem made from the rest of the log alone."""

from dataclasses import replace

import numpy as np
import pytest

from support.logs import log_of
from support.posterior_examples import posterior_gains
from support.problems import logged_problem
from surestep import DecisionLog, FiniteMDP, Pairs, Policy, certify, sample_log
from surestep.certificates import (
    APriori,
    Posterior,
    Robust,
    Stitched,
    Trajectory,
    training_part,
)
from surestep.certificates.episodes import (
    held_out_part,
    holds_out,
    needs_episodes,
    split_of,
    training_for,
)
from surestep.certificates.posterior import judged_part
from surestep.errors import CertificateRefused, InvalidParameter

SHARE = 0.3


def world():
    P, R = np.zeros((4, 2, 4)), np.zeros((4, 2, 4))
    P[0] = [[0.2, 0.5, 0.2, 0.1], [0.1, 0.1, 0.3, 0.5]]
    P[1] = [[0.3, 0.3, 0.2, 0.2], [0.0, 0.4, 0.4, 0.2]]
    R[0, :, 2], R[1, :, 3] = 1.0, 0.5
    return FiniteMDP.from_dense(P, R, 0.9)


def problem_of(log, **changes):
    return logged_problem(log, 0.9, (0.0, 2.0), **changes)


def logged(episodes=60, seed=0):
    mdp = world()
    return sample_log(mdp, Policy.uniform(mdp), episodes, 30, np.random.default_rng(seed))


def other_policy(log):
    return Policy.from_dense(log.pairs, [[0.1, 0.9], [0.8, 0.2], [0.5, 0.5], [0.5, 0.5]])


def rest_of(log, settings):
    """The numbers of the episodes that are not for training, by the plainest means."""
    number = log.num_episodes
    order = np.arange(number)
    if settings.logger == "fixed":
        order = np.random.default_rng(settings.seed).permutation(number)
    return order[round(settings.train_share * number) :]


@pytest.mark.parametrize("logger", ["adaptive", "fixed"])
@pytest.mark.parametrize("share", [0.1, SHARE, 0.9])
def test_it_is_the_posterior_of_the_rest_alone(logger, share):
    log = logged()
    problem, policy = problem_of(log), other_policy(log)
    settings = Posterior(train_share=share, logger=logger, seed=5, draws=99)
    rest = problem_of(log.episodes(rest_of(log, settings)))
    alone = replace(settings, train_share=0.0)
    found, expected = certify(problem, policy, settings), certify(rest, policy, alone)
    assert (found.lower, found.figures) == (expected.lower, expected.figures)
    assert found.lower != certify(problem, policy, alone).lower
    np.testing.assert_array_equal(
        posterior_gains(problem, policy, settings), posterior_gains(rest, policy, alone)
    )
    # What may choose is said, and is the one difference in what is assumed.
    assert found.assumptions[:-1] == expected.assumptions
    assert found.assumptions[-1].code == "chosen-from-part"
    assert found.assumptions[-1].values["share"] == share
    assert found.parameters["train_share"] == share


def test_a_single_stream_is_split_in_time():
    P = np.array([[[0.7, 0.3], [0.2, 0.8]], [[0.5, 0.5], [0.9, 0.1]]])
    endless = FiniteMDP.from_dense(P, np.array([[0.0, 0.1], [0.2, 0.0]]), 0.9)
    rng = np.random.default_rng(0)
    stream = sample_log(endless, Policy.uniform(endless), 1, 80, rng)
    cut, steps = round(SHARE * 80), stream.num_steps
    rest = DecisionLog(
        stream.pairs, stream.state[cut:], stream.action[cut:], stream.reward[cut:],
        stream.next_state[cut:], stream.terminated[cut:], stream.truncated[cut:], [0, steps - cut],
    )  # fmt: skip
    settings = Posterior(train_share=SHARE, draws=99)
    policy = Policy.from_dense(stream.pairs, [[0.1, 0.9], [0.8, 0.2]])
    found = certify(problem_of(stream), policy, settings)
    # The stream starts where it did: where its rest begins, no episode does.
    alone = problem_of(rest)
    alone = replace(alone, counts=replace(alone.counts, starts=stream.counts().starts), log=None)
    expected = certify(alone, policy, replace(settings, train_share=0.0))
    assert (found.lower, found.figures) == (expected.lower, expected.figures)
    assert training_for(problem_of(stream), settings).log.num_steps == cut


def test_neither_part_is_moved_by_the_other():
    log = logged()
    number = round(SHARE * log.num_episodes)
    settings, policy = Posterior(train_share=SHARE, draws=99), other_policy(log)
    first = np.arange(log.num_steps) < log.episode_offsets[number]
    for change, stays in ((first, "claim"), (~first, "training")):
        moved = replace(log, reward=np.where(change, 0.25, log.reward))
        claims = [certify(problem_of(each), policy, settings).lower for each in (log, moved)]
        parts = [training_for(problem_of(each), settings).counts for each in (log, moved)]
        assert (claims[0] == claims[1]) == (stays == "claim")
        assert (parts[0] == parts[1]) == (stays == "training")


def test_ends_that_only_the_other_part_shows_are_not_known():
    """All episodes for training end in state 1, and all others in state 2."""
    steps = [(0, i % 2, 1.0, 1 if i < 5 else 2) for i in range(10)]
    log = log_of(Pairs.full(4, 2), *([step] for step in steps))
    problem = problem_of(log)
    assert problem.counts.terminal.tolist() == [False, True, True, False]
    assert training_part(problem, 0.5, None).counts.terminal.tolist() == [False, True, False, False]
    assert held_out_part(problem, 0.5, None).counts.terminal.tolist() == [False, False, True, False]
    # What is known from elsewhere stays known.
    told = replace(log.counts(), terminal=[False, True, True, True])
    with_told = replace(problem, counts=told)
    assert held_out_part(with_told, 0.5, None).counts.terminal.tolist()[2:] == [True, True]
    assert training_part(with_told, 0.5, None).counts.terminal.tolist()[2:] == [False, True]


def test_where_nothing_is_held_out_all_is_looked_at():
    problem = problem_of(logged())
    for certifier in (Posterior(), Robust(), APriori()):
        assert training_for(problem, certifier) is problem
        assert not holds_out(certifier)
        assert not needs_episodes(certifier)
    assert judged_part(Posterior(), problem) is problem
    bare = replace(problem, log=None)
    policy = other_policy(problem.log)
    assert certify(bare, policy, Posterior(draws=99)) == certify(
        problem, policy, Posterior(draws=99)
    )


def test_all_who_hold_out_agree_on_what():
    problem = problem_of(logged())
    for logger, seed in (("adaptive", None), ("fixed", 4)):
        terms = {"train_share": SHARE, "logger": logger, "seed": 4}
        told = Trajectory(**terms, reward_low=0.0, reward_high=1.0)
        for certifier in (Posterior(**terms), Stitched(**terms), told):
            assert split_of(certifier) == (SHARE, seed)
            assert needs_episodes(certifier)
            assert holds_out(certifier)
            part = training_for(problem, certifier)
            assert part.counts == training_part(problem, SHARE, seed).counts


def test_what_cannot_be_split_is_refused():
    problem = problem_of(logged(2))
    policy = other_policy(problem.log)
    with pytest.raises(CertificateRefused, match="the problem has no log"):
        certify(replace(problem, log=None), policy, Posterior(train_share=SHARE))
    with pytest.raises(CertificateRefused, match="leaves none of 2 episodes to judge by"):
        certify(problem, policy, Posterior(train_share=0.9))
    with pytest.raises(InvalidParameter, match="leaves none of 2 episodes for training"):
        training_for(problem, Posterior(train_share=0.1))
