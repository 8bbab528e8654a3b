"""Worlds agree with the data where there is data, and follow their rule elsewhere."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.problems import logged_problem, uniform_problem
from support.strategies import logged_problems, problems
from surestep import Counts, DecisionLog, FiniteMDP, Pairs, Policy, evaluate, sample_log
from surestep.algorithms import SPIBB
from surestep.certificates import Posterior, Robust
from surestep.errors import InvalidParameter
from surestep.model.counts import LoggedRewards
from surestep.model.successors import Successors
from surestep.planning.ends import endless_circle
from surestep.rehearsal import (
    Completed,
    DrawnFromPosterior,
    EpisodeBootstrap,
    completion,
    default_family,
    rehearse,
    sources,
)
from surestep.rehearsal.completion import actions_alike, completed
from surestep.rehearsal.sources import DataSize, problem_of, size_of

FILLS = ("self-loop", "uniform", "pessimistic", "optimistic")
USABLE = problems().filter(lambda problem: problem.counts.visits.any())
ROBUST = Robust(known_start=True, reward_low=0.0, reward_high=1.0)


def rows_of(mdp):
    """{pair: {successor: (probability, reward)}}, without what never happens."""
    table = {}
    for k in range(mdp.num_pairs):
        run = slice(mdp.offsets[k], mdp.offsets[k + 1])
        entries = zip(mdp.successor[run], mdp.probability[run], mdp.reward[run], strict=True)
        table[k] = {int(s): (float(p), float(r)) for s, p, r in entries if p > 0}
    return table


class Observed:
    """What the data say of rewards, in plain Python."""

    def __init__(self, counts):
        self.counts, self.known = counts, counts.rewards.known
        self.of_pair, self.of_transition, into, total = {}, {}, {}, [0.0, 0]
        rewards = counts.rewards.values
        for k in range(counts.pairs.num_pairs):
            run = range(counts.offsets[k], counts.offsets[k + 1])
            if counts.rewards.per == "pair":
                if self.known:
                    self.of_pair[k] = rewards[k]
                elif counts.visits[k]:
                    self.of_pair[k] = rewards[k] / counts.visits[k]
                if counts.visits[k]:
                    total[0] += self.of_pair[k] * counts.visits[k]
                    total[1] += counts.visits[k]
                continue
            for t in run:
                successor, times = int(counts.successor[t]), counts.times[t]
                if self.known:
                    self.of_transition[k, successor] = rewards[t]
                elif times:
                    self.of_transition[k, successor] = rewards[t] / times
                if times:
                    each = self.of_transition[k, successor] * times
                    earned, entered = into.get(successor, (0.0, 0))
                    into[successor] = (earned + each, entered + times)
                    total = [total[0] + each, total[1] + times]
        self.mean = total[0] / total[1]
        self.on_entry = {s: earned / entered for s, (earned, entered) in into.items()}

    def reward(self, pair, successor, like=None):
        for k in (pair, like):
            if k in self.of_pair:
                return self.of_pair[k]
            if (k, successor) in self.of_transition:
                return self.of_transition[k, successor]
        return self.on_entry.get(successor, self.mean)


@settings(max_examples=40, deadline=None)
@given(problem=USABLE, fill=st.sampled_from(FILLS))
def test_where_there_is_data_a_completion_is_the_estimate(problem, fill):
    counts, found = problem.counts, rows_of(completed(problem, fill))
    observed = Observed(counts)
    for k in np.flatnonzero(counts.visits):
        run = slice(counts.offsets[k], counts.offsets[k + 1])
        entries = zip(counts.successor[run], counts.times[run], strict=True)
        expected = {int(s): n / counts.visits[k] for s, n in entries if n > 0}
        assert {s: p for s, (p, _) in found[k].items()} == expected
        for s, (_, reward) in found[k].items():
            assert reward == pytest.approx(observed.reward(k, s), abs=1e-12)


@settings(max_examples=3 * settings.default.max_examples, deadline=None)
@given(problem=USABLE)
def test_unseen_rows_follow_their_rule(problem):
    counts, pairs = problem.counts, problem.counts.pairs
    observed, states = Observed(counts), range(problem.num_states)
    worlds = {fill: completed(problem, fill) for fill in FILLS}
    found = {fill: rows_of(world) for fill, world in worlds.items()}
    values = {fill: evaluate(world, problem.behavior) for fill, world in worlds.items()}
    known = np.add.reduceat(counts.visits, pairs.offsets[:-1]) > 0
    known |= counts.terminal
    for k in np.flatnonzero(problem.unseen_pairs()):
        assert {s: p for s, (p, _) in found["self-loop"][k].items()} == {int(pairs.state[k]): 1.0}
        chances = {s: p for s, (p, _) in found["uniform"][k].items()}
        assert chances == pytest.approx(dict.fromkeys(states, 1 / problem.num_states))
        for fill, best in (("pessimistic", min), ("optimistic", max)):
            ((target, (chance, _)),) = found[fill][k].items()
            assert chance == 1.0
            value = problem.discount * values[fill]
            worth = {s: observed.reward(k, s) + value[s] for s in states if known[s]}
            assert worth[target] == pytest.approx(best(worth.values()), abs=1e-6)
        for fill in FILLS:
            for s, (_, reward) in found[fill][k].items():
                assert reward == pytest.approx(observed.reward(k, s), abs=1e-12)


KINDS = [
    *(Completed(fill) for fill in FILLS),
    DrawnFromPosterior("weight", 0.5),
    DrawnFromPosterior("uniform"),
    EpisodeBootstrap("uniform"),
]


@settings(max_examples=3 * settings.default.max_examples, deadline=None)
@given(problem=logged_problems(), kind=st.sampled_from(KINDS), seed=st.integers(0, 10**6))
def test_every_world_keeps_the_terms_and_poses_problems_of_the_same_kind(problem, kind, seed):
    rng = np.random.default_rng(seed)
    world = kind.world(problem, rng)
    truth, counts = world.truth, problem.counts
    np.testing.assert_array_equal(truth.initial, counts.starts / counts.starts.sum())
    np.testing.assert_array_equal(truth.discount, problem.discount)
    ends = counts.terminal[counts.pairs.state]
    np.testing.assert_array_equal(np.diff(truth.offsets) == 0, ends)
    seen = counts.times > 0
    size = np.int64(problem.num_states)
    keys = np.repeat(np.arange(truth.num_pairs), np.diff(truth.offsets)) * size + truth.successor
    shown = np.repeat(np.arange(truth.num_pairs), np.diff(counts.offsets)) * size + counts.successor
    assert np.isin(shown[seen], keys).all()
    for collect in (world.collect, world.record):
        data = collect(7, 5, rng)
        posed = problem_of(problem, truth, data)  # Problem checks the counts against the log
        assert posed.counts.starts.sum() == 7
        assert posed.counts.visits.sum() == data.times.sum()
        assert (posed.counts.rewards.known, posed.counts.rewards.per) == (
            counts.rewards.known,
            counts.rewards.per,
        )
        assert not (posed.counts.terminal & ~counts.terminal).any()
        if counts.rewards.known and counts.rewards.per == "transition":  # nothing is forgotten
            assert posed.counts.successor.size == np.count_nonzero(~ends[shown // size])


@settings(max_examples=40, deadline=None)
@given(problem=USABLE)
def test_no_completion_by_visited_states_is_beyond_the_extremes(problem):
    value = {
        fill: evaluate(completed(problem, fill), problem.behavior)
        for fill in ("pessimistic", "optimistic")
    }
    assert (value["pessimistic"] <= value["optimistic"] + 1e-6).all()
    if (np.add.reduceat(problem.counts.visits, problem.counts.pairs.offsets[:-1]) > 0).all():
        for fill in ("self-loop", "uniform"):
            between = evaluate(completed(problem, fill), problem.behavior)
            assert (between >= value["pessimistic"] - 1e-6).all()
            assert (between <= value["optimistic"] + 1e-6).all()


@pytest.mark.thorough
def test_drawn_worlds_have_the_mean_of_the_posterior():
    table = np.zeros((3, 2, 3), int)
    table[0, 0] = [3, 5, 0]
    table[1, 0] = [0, 0, 4]
    counts = Counts.from_dense(table, rewards=np.zeros((3, 2)), terminal=[False, False, True])
    problem = uniform_problem(counts, 0.9, (0.0, 1.0))
    rng, kind = np.random.default_rng(0), DrawnFromPosterior("weight", 6.0)
    draws = np.stack([kind.world(problem, rng).truth.dense().P for _ in range(500)])
    rows = (table + 2.0) / (table.sum(axis=2, keepdims=True) + 6.0)
    rows[2] = 0.0
    # The largest variance of an entry is that of a Beta(2, 4): 8/252.
    np.testing.assert_allclose(draws.mean(axis=0), rows, atol=5 * np.sqrt(8 / 252 / 500))


@settings(max_examples=30, deadline=None)
@given(problem=logged_problems(), seed=st.integers(0, 10**6))
def test_resampled_counts_are_those_of_the_resampled_log(problem, seed):
    world = EpisodeBootstrap().world(problem, np.random.default_rng(seed))
    data = world.record(9, 1, np.random.default_rng(seed))
    expected = data.log.counts()
    posed = problem_of(replace(problem, counts=problem.log.counts()), world.truth, data).counts
    assert posed.starts.tolist() == expected.starts.tolist()
    assert posed.times.tolist() == expected.times.tolist()
    assert posed.successor.tolist() == expected.successor.tolist()
    np.testing.assert_allclose(posed.rewards.values, expected.rewards.values, atol=1e-9)
    assert posed.terminal.tolist() == expected.terminal.tolist()


def one_state(visits):
    """A state with two actions, visited so often."""
    table = np.array(visits).reshape(1, 2, 1)
    counts = Counts.from_dense(table, rewards=np.zeros((1, 2)))
    return uniform_problem(counts, 0.9, (0.0, 1.0))


def names(problem, certifier):
    return [kind.name for kind in default_family(problem, certifier)]


def test_the_default_family_leaves_out_the_prior_of_the_certificate():
    problem = one_state([3, 0])
    everything = names(problem, Robust())
    assert len(everything) == 8
    assert len(names(one_state([3, 1]), Robust())) == 5  # nothing is unseen: completions are one
    for certifier, own in (
        (Posterior(), "posterior, weight 5"),
        (Posterior(prior_weight=1.0), "posterior, weight 1"),
        (Posterior(prior="uniform"), "posterior, uniform"),
        (Posterior(prior="jeffreys"), "posterior, jeffreys"),
    ):
        assert names(problem, certifier) == [name for name in everything if name != own]


def noisy_problem(rewards):
    """One decision, in state 0: a common action, and one that was taken three times."""
    size = rewards.size
    action = (np.arange(size) >= size - 3).astype(np.int64)
    over = np.ones(size, np.bool_)
    log = DecisionLog(
        *(Pairs.full(2, 2), np.zeros(size, np.int64), action, rewards),
        *(np.ones(size, np.int64), over, ~over, np.arange(size + 1)),
    )
    return logged_problem(log, 0.9, (-1.0, 5.0))


def test_rewards_vary_in_worlds_as_in_the_log():
    rewards = np.concatenate([np.tile([0.0, 0.0, 0.0, 4.0], 100), [5.0, 5.0, 4.7]])
    world = Completed("self-loop").world(noisy_problem(rewards), np.random.default_rng(0))
    data = world.record(4000, 1, np.random.default_rng(1))
    common = data.log.action == 0
    assert set(data.log.reward[common].tolist()) == {0.0, 4.0}
    # Three rewards are few: those of all pairs are taken, scaled so that none is above 5.
    assert data.log.reward.max() <= 5 + 1e-12
    assert data.log.reward[~common].std() > 0.05
    np.testing.assert_allclose(np.bincount(data.log.action, data.log.reward), data.earned)
    # The same law in sums, of few and of many draws; standard deviations are √3 and less.
    for collected in (
        data,
        *(world.collect(n, 1, np.random.default_rng(2)) for n in (900, 90_000)),
    ):
        off = np.abs(collected.earned / collected.times - world.truth.reward)
        assert (off < 5 * 1.8 / np.sqrt(collected.times)).all()
    sums = [world.collect(900, 1, np.random.default_rng(i)) for i in range(200)]
    spread = np.std([data.earned[0] - data.times[0] for data in sums]) / np.sqrt(450)
    assert spread == pytest.approx(np.sqrt(3), rel=0.25)  # five standard errors


def test_rewards_that_never_vary_or_are_known_stay_exact():
    exact = noisy_problem(np.concatenate([np.full(400, 0.1), np.full(3, 0.3)]))
    noisy = noisy_problem(np.concatenate([np.tile([0.0, 4.0], 200), np.full(3, 0.3)]))
    known = replace(noisy, counts=noisy.log.counts(np.zeros((2, 2))))
    for problem in (exact, known, replace(noisy, log=None)):
        world = Completed("self-loop").world(problem, np.random.default_rng(0))
        assert world.noise is None
    assert isinstance(
        Completed("self-loop").world(noisy, np.random.default_rng(0)).noise, sources.Residuals
    )


@given(logged_problems())
def test_residuals_leave_means_as_they_are_and_rewards_in_their_range(problem):
    truth = completed(problem, "self-loop")
    noise = sources.Residuals.of(problem, truth)
    if noise is None:
        return
    rewards, scale = problem.log.reward, np.abs(problem.log.reward).max()
    for t in range(truth.num_transitions):
        run = noise.value[noise.begin[t] : noise.begin[t] + noise.length[t]]
        drawn = truth.reward[t] + noise.scale[t] * run
        assert drawn.mean() == pytest.approx(truth.reward[t], abs=1e-9 * scale)
        assert drawn.min() >= rewards.min() - 1e-9 * scale
        assert drawn.max() <= rewards.max() + 1e-9 * scale


def test_noise_is_one_of_two_rewards_with_the_mean_of_the_truth():
    P = np.zeros((5, 1, 5))
    P[0, 0, 1:] = 0.25
    R = np.zeros((5, 1, 5))
    R[0, 0, 1:] = [-2.0, 6.0, 0.0, 7.0]  # the least, the greatest, a quarter, more than can be
    world = sources.Simulated.of(
        FiniteMDP.from_dense(P, R, 0.9), Policy(Pairs.full(5, 1), [1.0] * 5)
    )
    noisy = replace(world, noise=(-2.0, 6.0))
    for source in (world, noisy):
        data = source.collect(4000, 1, np.random.default_rng(0))
        assert data.times.sum() == data.starts.sum() == data.starts[0] == 4000
        mean = data.earned / data.times
        assert mean[:2].tolist() == [-2.0, 6.0]
        if source is world:
            assert mean[2:].tolist() == [0.0, 7.0]
            continue
        assert mean[3] == 6.0
        high = (data.earned[2] + 2 * data.times[2]) / 8  # how often it was the greater one
        assert high == round(high)
        # The deviation of a mean of 1000 of these rewards is 8 · √(3/16/1000) = 0.11.
        assert abs(mean[2]) < 0.6
    recorded = noisy.record(4000, 1, np.random.default_rng(0))
    assert set(recorded.log.reward) == {-2.0, 6.0}
    mean = recorded.earned / recorded.times
    assert (mean[0], mean[1], mean[3]) == (-2.0, 6.0, 6.0)
    assert abs(mean[2]) < 0.6
    assert recorded.earned.sum() == recorded.log.reward.sum()
    np.testing.assert_array_equal(recorded.log.counts().rewards.values, recorded.earned)


def test_ends_that_nobody_reached_stay_ends():
    """State 2 is stored as a successor, with a known reward, and was never seen."""
    counts = Counts(
        Pairs.full(3, 1), [0, 2, 2, 2], [1, 2], [5, 0],
        LoggedRewards(np.array([1.0, 2.0]), "transition", True), [5, 0, 0], [False, True, True],
    )  # fmt: skip
    problem = uniform_problem(counts, 0.9, (0.0, 2.0))
    truth = completed(problem, "self-loop")
    for times, terminal in (([3, 0], [False, True, True]), ([0, 0], [False, False, True])):
        data = sources.Data(np.array(times), np.zeros(2), np.array([3, 0, 0]))
        posed = problem_of(problem, truth, data).counts
        assert posed.terminal.tolist() == terminal
        assert posed.rewards.values.tolist() == [1.0, 2.0]


def leaving(chance):
    """One state that is left for the end with this chance."""
    table = np.zeros((2, 1, 2), int)
    table[0, 0] = [round(1000 * (1 - chance)), round(1000 * chance)]
    counts = Counts.from_dense(
        table, rewards=np.zeros((2, 1)), starts=[round(1000 * chance), 0], terminal=[False, True]
    )
    return uniform_problem(counts, 0.9, (0.0, 1.0))


@pytest.mark.parametrize("chance", [0.1, 0.25, 0.5])
def test_without_a_log_episodes_last_as_long_as_makes_their_mean_length(chance):
    problem = leaving(chance)
    size = size_of(problem)
    # Σ_{t<H} (1 − p)^t = (1 − (1 − p)^H)/p, of which 99 % of the mean 1/p are asked.
    expected = int(np.ceil(np.log(0.01) / np.log(1 - chance) - 1e-9))
    assert size == (problem.counts.starts.sum(), expected)


def test_episodes_that_never_end_last_their_mean_length():
    counts = Counts.from_dense(np.full((1, 1, 1), 60), rewards=[[1.0]], starts=[5])
    problem = uniform_problem(counts, 0.9, (0.0, 10.0))
    assert size_of(problem) == (5, 12)
    assert sources.horizon_for(completed(problem, "uniform"), problem.behavior, 0.2) == 1


def test_a_log_says_how_long_its_episodes_last():
    P = np.zeros((2, 1, 2))
    P[0, 0] = [0.8, 0.2]
    mdp = FiniteMDP.from_dense(P, np.zeros((2, 1)), 0.9)
    policy = Policy.uniform(mdp)
    for horizon, cut_off in ((3, True), (1000, False)):
        log = sample_log(mdp, policy, 50, horizon, np.random.default_rng(0))
        problem = logged_problem(log, 0.9, (0.0, 1.0))
        longest = int(np.diff(log.episode_offsets).max())
        assert size_of(problem) == (50, 3 if cut_off else 10 * longest)


def test_a_stream_grows_by_steps_and_a_log_by_episodes():
    assert DataSize(1, 300).times(0.5) == (1, 150)
    assert DataSize(30, 10).times(2.5) == (75, 10)
    assert DataSize(2, 10).times(0.01) == (1, 10)
    assert DataSize(1, 10).times(0.01) == (1, 1)


def test_no_episode_is_longer_than_a_hundred_of_the_observed():
    # Episodes of this world are over after one step, however long those of the data were.
    assert (
        sources.horizon_for(completed(leaving(1.0), "uniform"), leaving(1.0).behavior, 3.0) == 300
    )
    assert sources.horizon_for(completed(leaving(1.0), "uniform"), leaving(1.0).behavior, 1.0) == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Completed("magic"), "fill is 'magic'; expected one of self-loop"),
        (lambda: EpisodeBootstrap(3), "fill is 3"),
        (lambda: DrawnFromPosterior("weight"), "weight is None for the prior 'weight', expected a"),
        (lambda: DrawnFromPosterior("weight", float("nan")), "weight is nan"),
        (lambda: DrawnFromPosterior("uniform", 2.0), "has a weight of its own"),
        (lambda: DrawnFromPosterior("flat"), "prior is 'flat'"),
    ],
)
def test_settings_that_mean_nothing_are_refused(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()


def test_a_bootstrap_needs_episodes_and_a_world_needs_data():
    with pytest.raises(InvalidParameter, match="the problem has no log"):
        EpisodeBootstrap().world(leaving(0.5), np.random.default_rng(0))
    counts = Counts.from_dense(np.zeros((2, 1, 2), int), reward_sums=np.zeros((2, 1)))
    empty = replace(leaving(0.5), counts=counts, behavior=Policy.uniform(counts))
    with pytest.raises(InvalidParameter, match="the data has no visits"):
        completed(empty, "uniform")


@given(problem=USABLE)
def test_where_all_actions_are_alike_every_policy_earns_the_same(problem):
    """Rows and observed rewards are pooled over the actions of a state."""
    assume(not problem.counts.rewards.known and problem.single_discount < 1)
    mdp = actions_alike(problem)
    uniform = Policy.uniform(mdp)
    first = np.zeros(mdp.pairs.num_pairs)
    first[mdp.pairs.offsets[:-1]] = 1.0
    np.testing.assert_allclose(
        evaluate(mdp, uniform), evaluate(mdp, Policy(mdp.pairs, first)), atol=1e-9
    )
    assert (mdp.initial == problem.counts.starts / problem.counts.starts.sum()).all()


# State 0 has three actions, of which the last two were never tried. State 1 earns 1, state 2
# earns −1, both lead to the end 3; nobody was ever in state 4.
TIMES = np.zeros((5, 3, 5), int)
TIMES[0, 0, [1, 2]], TIMES[1, 0, 3], TIMES[2, 0, 3] = [3, 1], 3, 1
REWARDS = np.zeros((5, 3))
REWARDS[1], REWARDS[2] = 1.0, -1.0
ENABLED = np.zeros((5, 3), bool)
ENABLED[0], ENABLED[:, 0] = True, True


def with_support(*unseen):
    """What the two unseen pairs of state 0 may lead to, and nothing else is new."""
    counts = Counts.from_dense(
        TIMES, rewards=REWARDS, enabled=ENABLED, terminal=[False] * 3 + [True, False]
    )
    problem = uniform_problem(counts, 0.5, (-9.0, 9.0))
    if not unseen:
        return problem
    rows = [[1, 2], *unseen, [3], [3], [], [4]]
    support = Successors(
        counts.pairs,
        np.cumsum([0, *map(len, rows)]),
        np.array([s for row in rows for s in row], np.int32),
    )
    return replace(problem, support=support)


def row(mdp, pair):
    run = slice(mdp.offsets[pair], mdp.offsets[pair + 1])
    return dict(zip(mdp.successor[run].tolist(), mdp.probability[run].tolist(), strict=True))


@pytest.mark.parametrize(
    ("fill", "first", "second"),
    [
        ("self-loop", {0: 1.0}, {1: 0.5, 2: 0.5}),  # a loop that cannot be goes anywhere it may
        ("uniform", {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, {1: 0.5, 2: 0.5}),
        ("pessimistic", {2: 1.0}, {2: 1.0}),
        ("optimistic", {1: 1.0}, {1: 1.0}),
    ],
)
def test_unseen_pairs_lead_only_to_where_they_may(fill, first, second):
    mdp = completed(with_support([0, 1, 2], [1, 2]), fill)
    assert row(mdp, 0) == {1: 0.75, 2: 0.25}  # as it was seen
    assert row(mdp, 1) == pytest.approx(first)
    assert row(mdp, 2) == pytest.approx(second)
    assert row(mdp, 6) == {4: 1.0}


def test_the_best_and_the_worst_are_states_that_were_visited_where_any_may_come():
    # State 4 would be the best for a pair that leads there or to state 2: nobody knows it, though.
    for fill in ("pessimistic", "optimistic"):
        mdp = completed(with_support([2, 4], [4]), fill)
        assert row(mdp, 1) == {2: 1.0}
        assert row(mdp, 2) == {4: 1.0}  # where nothing else may come
        assert row(completed(with_support(), fill), 1) == {1 if fill == "optimistic" else 2: 1.0}


def test_rows_that_lead_everywhere_have_a_limit(monkeypatch):
    problem = with_support()  # 3 unseen pairs, with that of state 4, and 5 states
    monkeypatch.setattr(completion, "MOST_CELLS", 15)
    completed(problem, "uniform")
    monkeypatch.setattr(completion, "MOST_CELLS", 14)
    with pytest.raises(InvalidParameter, match=r"3 unseen pairs .* 5 states have 15 transitions"):
        completed(problem, "uniform")


def test_the_default_family_leaves_out_what_is_too_large(monkeypatch):
    monkeypatch.setattr("surestep.rehearsal.worlds.MOST_CELLS", 15)
    names = {kind.name for kind in default_family(with_support(), Robust())}
    assert {"estimate, unseen: uniform", "estimate, unseen: optimistic"} <= names
    assert not {"posterior, jeffreys", "posterior, uniform"} & names  # 35 transitions
    monkeypatch.setattr("surestep.rehearsal.worlds.MOST_CELLS", 14)
    assert "estimate, unseen: uniform" not in {
        k.name for k in default_family(with_support(), Robust())
    }
    supported = {kind.name for kind in default_family(with_support([0], [1]), Robust())}
    assert {"estimate, unseen: uniform", "posterior, jeffreys"} <= supported
    assert not {"estimate, unseen: pessimistic", "estimate, unseen: optimistic"} & supported
    assert {"posterior, weight 1", "posterior, weight 5"} <= supported


@pytest.mark.parametrize("weight", [1e-3, 1e9])
def test_the_ends_of_the_range_of_weights_are_allowed(weight):
    assert DrawnFromPosterior("weight", weight).weight == weight
    for wrong in (float(np.nextafter(weight, 0.0 if weight < 1 else np.inf)), True):
        with pytest.raises(
            InvalidParameter, match=r"expected a number from 0\.001 to 1,000,000,000"
        ):
            DrawnFromPosterior("weight", wrong)


def pooled(per, values, times):
    """Two states and two actions that lead to either; what was earned, by pair or transition."""
    counts = Counts(
        Pairs.full(2, 2),
        [0, 2, 4, 4, 4],
        [0, 1, 0, 1],
        times,
        LoggedRewards(np.array(values), per, False),
        [1, 0],
        [False, False],
    )
    return actions_alike(uniform_problem(counts, 0.5, (-9.0, 9.0)))


def test_actions_alike_have_what_was_seen_of_all_together():
    mdp = pooled("transition", [3.0, 8.0, 9.0, 0.0], [1, 4, 3, 0])
    assert row(mdp, 0) == row(mdp, 1) == {0: 0.5, 1: 0.5}
    # To state 0: (3 + 9) in 4 times; to state 1: 8 in 4 times. Nobody decided in state 1.
    assert mdp.reward[:4].tolist() == [3.0, 2.0, 3.0, 2.0]
    assert row(mdp, 2) == row(mdp, 3) == {1: 1.0}


def test_rewards_of_pairs_are_pooled_by_how_often_each_was_taken():
    mdp = pooled("pair", [10.0, 3.0, 0.0, 0.0], [1, 4, 3, 0])
    # Action 0 earns 2 on average and action 1 earns 1. To state 0: (1 · 2 + 3 · 1)/4; to 1: 2.
    assert mdp.reward[:4].tolist() == [1.25, 2.0, 1.25, 2.0]


def illness():
    """Sick or worse, until at home (which pays 1) or dead; nobody was ever seen in state 4."""
    P = np.zeros((5, 2, 5))
    P[0, 0, [0, 1, 2, 3]] = 0.4, 0.3, 0.2, 0.1
    P[0, 1, [0, 1, 2, 3]] = 0.3, 0.1, 0.5, 0.1
    P[1, 0, [0, 1, 3]] = 0.3, 0.3, 0.4
    P[1, 1, [0, 2, 3]] = 0.5, 0.2, 0.3
    P[4, :, 3] = 1.0
    R = np.zeros((5, 2, 5))
    R[:2, :, 2] = 1.0
    return FiniteMDP.from_dense(P, R, 1.0)


def ill(episodes=300, horizon=1000, discount=1.0):
    mdp = illness()
    log = sample_log(mdp, Policy.uniform(mdp), episodes, horizon, np.random.default_rng(3))
    return logged_problem(log, discount, (0.0, 1.0), unseen="pessimistic")


def test_completions_that_never_end_are_left_out():
    # What is never seen leads back to itself: nobody who gets there ever ends.
    problem = ill()
    names = [kind.name for kind in default_family(problem, ROBUST)]
    assert Completed("self-loop").name not in names
    assert Completed("uniform").name in names
    discounted = [kind.name for kind in default_family(ill(discount=0.9), ROBUST)]
    assert Completed("self-loop").name in discounted
    assert set(names) < set(discounted)


@pytest.mark.thorough
def test_a_rehearsal_without_a_discount_is_one_of_worlds_that_end():
    problem = ill()
    terms = {"rng": 0, "sizes": (1.0,)}
    found = rehearse(problem, SPIBB(n_wedge=20), ROBUST, worlds=2, **terms)
    assert np.isfinite(found.gain).all()
    assert np.abs(found.gain).max() <= 1
    assert (found.claim <= found.gain).all()
    assert any("may never end" in sentence for sentence in found.limits)
    near = rehearse(ill(30, discount=0.99), SPIBB(n_wedge=20), ROBUST, worlds=1, **terms)
    assert not any("may never end" in sentence for sentence in near.limits)


def test_drawn_worlds_end_under_the_behavior_policy():
    problem = ill(episodes=5)
    rng = np.random.default_rng(1)
    for _ in range(20):
        truth = DrawnFromPosterior("weight", 1.0).world(problem, rng).truth
        assert endless_circle(truth, problem.behavior.probability).size == 0
        evaluate(truth, problem.behavior)


def test_kinds_in_which_nothing_ends_are_refused():
    # No state is known to end an episode, and rows lead to all states: none of them ends.
    mdp = FiniteMDP.from_dense(np.full((2, 1, 2), 0.5), np.zeros((2, 1)), 1.0)
    log = sample_log(mdp, Policy.uniform(mdp), 5, 4, np.random.default_rng(0))
    endless = uniform_problem(log.counts(), 1.0, (0.0, 1.0))
    with pytest.raises(InvalidParameter, match="the behavior policy may never end, at discount 1"):
        DrawnFromPosterior("jeffreys").world(endless, np.random.default_rng(0))
