"""A support that the user knows: posterior and robust certificates against plain oracles.

Seeds are fixed, and a comparison of equal laws would fail once in 10⁶ tests.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from support import posterior_examples
from support.failures import RARE, allowed_failures
from support.oracles import gains_in_draws
from support.posterior_examples import (
    assert_moments,
    chunk_of,
    dense_times,
    posterior_gains,
)
from support.problems import logged_problem, uniform_problem
from support.reward_oracle import unknown_rewards
from surestep import Counts, FiniteMDP, Policy, certify, performance, sample_log
from surestep.algorithms import SPIBB
from surestep.certificates import Posterior, Robust, training_part, verify
from surestep.certificates.posterior import model_draws
from surestep.certificates.uncertainty import uncertainty_of
from surestep.errors import CertificateMismatch, CertificateRefused, InvalidParameter
from surestep.model import Statement, Successors
from surestep.rehearsal import default_family
from surestep.rehearsal.completion import completed
from surestep.rehearsal.sources import problem_of

ALLOWED = np.zeros((4, 2, 4), bool)  # the last state ends episodes
ALLOWED[0] = [[1, 1, 0, 1], [0, 0, 1, 0]]
ALLOWED[1] = [[0, 1, 1, 1], [1, 0, 0, 1]]
ALLOWED[2] = [[0, 1, 1, 1], [1, 1, 1, 1]]
WEIGHT = np.array([0.2, 3.0, 0.7, 1.0, 0.05, 2.0, 1.5, 4.0, 0.4, 1.0, 1.0, 0.3, 0.6, 0.6, 2.5, 0.1])
TIMES = dense_times(posterior_examples.example()[0].counts)


def successors(pairs, allowed, weight=None):
    """The successors where the table [S, A, S] is true."""
    rows = allowed.reshape(-1, allowed.shape[2])
    return Successors(pairs, np.cumsum([0, *rows.sum(axis=1)]), np.nonzero(rows)[1], weight)


def example(*, allowed=ALLOWED, weight=WEIGHT, per="pair", known=True):
    """Three states and an end; one pair never visited, some rows with few successors."""
    rng = np.random.default_rng(4)
    observed = TIMES if per == "transition" else TIMES.sum(axis=2)
    rewards = rng.uniform(-0.5, 1.5, observed.shape)
    rewards[3] = 0.0
    counts = Counts.from_dense(
        TIMES,
        **{"rewards": rewards} if known else {"reward_sums": rewards * observed},
        starts=[6, 3, 0, 0],
        terminal=[False, False, False, True],
    )
    problem = uniform_problem(
        counts, 0.8, (-5.0, 10.0), support=successors(counts.pairs, allowed, weight)
    )
    policy = Policy.from_dense(counts, [[0.2, 0.8], [1, 0], [0.7, 0.3], [0.5, 0.5]])
    return problem, policy, rewards


def drawn_rows(problem, certifier, draws):
    """Drawn rows of all pairs [draws, K, S]."""
    models = model_draws(problem, certifier)
    counts = problem.counts
    used = ~counts.terminal[counts.pairs.state]
    chunk = chunk_of(models, used, draws)
    ends = chunk.ends[:, -1]
    assert (ends >= 0).all()
    draw, place = np.nonzero(np.arange(chunk.target.shape[1]) < ends[:, np.newaxis])
    pair = np.concatenate([np.repeat(np.arange(used.size), np.diff(each)) for each in chunk.ends])
    rows = np.zeros((draws, used.size, problem.num_states))
    rows[draw, pair, chunk.target[draw, place]] = chunk.share[draw, place]
    return rows


def shapes_of(problem, prior, weight=5.0):
    """The Dirichlet shapes [S, A, S] of the posterior, 0 where nothing can come."""
    spread = weight / np.maximum(ALLOWED.sum(axis=2, keepdims=True), 1)
    shapes = (
        TIMES + {"weight": spread, "uniform": 1.0, "jeffreys": 0.5, "own": 0.0}[prior] * ALLOWED
    )
    if prior == "own":
        shapes[ALLOWED] += problem.support.weight
    return shapes


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("prior", "weight"),
    [("weight", 5.0), ("weight", 0.02), ("uniform", 5.0), ("jeffreys", 5.0), ("own", 5.0)],
)
def test_rows_have_the_moments_of_their_own_dirichlet(prior, weight):
    problem, _, _ = example()
    rows = drawn_rows(problem, Posterior(prior=prior, prior_weight=weight), 10_000)
    shapes = shapes_of(problem, prior, weight).reshape(-1, 4)
    for found, shape in zip(rows.swapaxes(0, 1)[:6], shapes[:6], strict=True):
        assert not found[:, shape == 0].any()
        assert_moments(found, shape)


def test_the_tiniest_weights_leave_one_successor_each_as_often_as_they_should():
    problem, _, _ = example(weight=np.full(16, 1e-9))
    rows = drawn_rows(problem, Posterior(prior="own"), 4000)[:, 5]  # a pair never visited
    assert np.isfinite(rows).all()
    assert (rows.max(axis=1) > 1 - 1e-9).all()
    assert scipy.stats.chisquare((rows > 0.5).sum(axis=0)).pvalue > RARE


def oracle_gains(problem, policy, rewards, certifier, draws, rng):
    """Δ in models drawn with NumPy, and solved by LAPACK."""
    counts, shapes = problem.counts, shapes_of(problem, certifier.prior)
    observed = TIMES if rewards.ndim == 3 else TIMES.sum(axis=2)
    P = np.zeros((draws, *TIMES.shape))
    for s, a in np.argwhere(ALLOWED.any(axis=2)):
        P[:, s, a, ALLOWED[s, a]] = rng.dirichlet(shapes[s, a, ALLOWED[s, a]], draws)
    R = np.broadcast_to(rewards, (draws, *rewards.shape))
    if not counts.rewards.known:
        drawn_once = unknown_rewards(rewards, observed, certifier)
        R = np.stack([drawn_once(rng) for _ in range(draws)])
    R = np.broadcast_to(R if R.ndim == 4 else R[..., np.newaxis], P.shape)
    initial = np.zeros((draws, 4))
    initial[:, :3] = rng.dirichlet(counts.starts[:3] + certifier.prior_weight / 3, draws)
    return gains_in_draws(problem, policy, initial, P, R)


BOUNDS = {"reward_low": -0.5, "reward_high": 1.5}
CASES = {
    "spread": ("pair", True, Posterior(prior="weight")),
    "own": ("transition", True, Posterior(prior="own")),
    "own, unseen rewards": ("transition", False, Posterior(prior="own", **BOUNDS)),
    "own, noise": ("transition", False, Posterior(prior="own", rewards="bounded", **BOUNDS)),
    "own, noise by pair": ("pair", False, Posterior(prior="own", rewards="bounded", **BOUNDS)),
}


@pytest.mark.one_quick
@pytest.mark.parametrize("name", CASES)
def test_gains_have_the_law_of_the_oracle(name):
    per, known, certifier = CASES[name]
    problem, policy, rewards = example(per=per, known=known)
    found = posterior_gains(problem, policy, replace(certifier, draws=4000, seed=1))
    rng = np.random.default_rng(2)
    expected = oracle_gains(problem, policy, rewards, certifier, 600, rng)
    assert scipy.stats.ks_2samp(found, expected).pvalue > RARE
    assert found.std() == pytest.approx(expected.std(), rel=0.15)


def one_way():
    """A problem whose pairs lead to one state each, half of them unseen; a policy, and its gain."""
    allowed = np.zeros((3, 2, 3), bool)
    allowed[0, :, 1], allowed[1, 0, 2], allowed[1, 1, 0] = True, True, True
    rewards = [[1.0, 2.0], [0.5, 3.0], [0.0, 0.0]]
    counts = Counts.from_dense(
        allowed * [[[1], [0]], [[1], [0]], [[0], [0]]],  # the second action was never taken
        rewards=rewards,
        terminal=[False, False, True],
    )
    problem = uniform_problem(counts, 0.5, (0.0, 6.0), support=successors(counts.pairs, allowed))
    policy = Policy.deterministic(counts, [1, 1, 0])
    truth = FiniteMDP.from_dense(allowed * 1.0, rewards, 0.5)
    return problem, policy, performance(truth, policy) - performance(truth, problem.behavior)


def test_with_one_successor_a_row_is_known_exactly():
    problem, policy, difference = one_way()
    found = certify(problem, policy, Posterior(starts="known", draws=19))
    assert found.lower == pytest.approx(difference, abs=1e-9)
    assert found.figures["mean_gain"] == pytest.approx(difference, abs=1e-9)


@pytest.mark.thorough
def test_under_the_users_own_prior_the_truth_is_one_more_draw():
    rng, draws, worlds = np.random.default_rng(12), 9, 150
    ranks = []
    for world in range(worlds):
        P = np.zeros(ALLOWED.shape)
        shapes = np.zeros(ALLOWED.shape)
        shapes[ALLOWED] = WEIGHT
        for s, a in np.argwhere(ALLOWED.any(axis=2)):
            P[s, a, ALLOWED[s, a]] = rng.dirichlet(shapes[s, a, ALLOWED[s, a]])
        mdp = FiniteMDP.from_dense(P, rng.normal(size=P.shape[:2]) * [[1], [1], [1], [0]], 0.8)
        rewards = mdp.pairs.dense(np.where(mdp.pairs.state < 3, mdp.expected_reward, 0.0))
        log = sample_log(mdp, Policy.uniform(mdp), 8, 5, rng)
        counts = replace(log.counts(rewards=rewards), terminal=np.arange(4) == 3)
        support = successors(mdp.pairs, ALLOWED, WEIGHT)
        problem = uniform_problem(counts, 0.8, (-50.0, 50.0), support=support)
        policy = SPIBB(n_wedge=1).improve(problem).policy
        if not np.array_equal(policy.probability, problem.behavior.probability):
            certifier = Posterior(prior="own", draws=draws, seed=world, starts="known")
            truth = performance(mdp, policy) - performance(mdp, problem.behavior)
            ranks.append(int((posterior_gains(problem, policy, certifier) < truth).sum()))
    assert len(ranks) > 0.8 * worlds
    assert scipy.stats.chisquare(np.bincount(ranks, minlength=draws + 1)).pvalue > RARE


def test_a_posterior_certificate_says_what_was_given():
    problem, policy, _ = example()
    found = certify(problem, policy, Posterior(prior="own", draws=19, prior_weight=3.0))
    assert "with the weights that were given" in str(found.assumptions[0])
    assert found.assumptions[1] == Statement("successors-given", {"successors": 16})
    assert Statement("starts-prior", {"states": 3, "weight": 1.0}) in found.assumptions
    assert (found.figures["successors"], found.figures["alpha"]) == (16, None)
    assert verify(found, problem, policy) == found
    spread = certify(problem, policy, Posterior(draws=19))
    assert "a weight of 5 shared evenly among those of the row" in str(spread.assumptions[0])
    assert spread.figures["total_prior_weight"] == 5.0
    uniform = certify(problem, policy, Posterior(prior="uniform", draws=19))
    assert "over the successors that were given, with weight 1 each" in str(uniform.assumptions[0])


def test_weights_that_are_not_there_are_refused():
    problem, policy, _ = example(weight=None)
    for each in (problem, replace(problem, support=None)):
        with pytest.raises(CertificateRefused, match="prior is 'own', but the problem has no"):
            certify(each, policy, Posterior(prior="own"))
    with pytest.raises(InvalidParameter, match=r"prior_weight is 3\.0, but the prior uniform"):
        Posterior(prior="uniform", prior_weight=3.0)


SETS = [
    Robust(set=kind, strict=strict, known_start=known, **BOUNDS)
    for kind in ("interval", "l1", "two-successor")
    for strict, known in ((False, True), (True, False))
]
EVERY_SET = pytest.mark.parametrize("certifier", SETS, ids=repr)
EXTRA = 5


def embedded(problem, policy, order):
    """The same with states of which nothing comes, `order` saying where each state stands."""
    counts, size = problem.counts, problem.num_states + EXTRA
    per_transition, states = counts.rewards.per == "transition", counts.pairs.num_states
    pair = np.repeat(np.arange(counts.pairs.num_pairs), np.diff(counts.offsets))
    times, rewards = np.zeros((size, 2, size), int), np.zeros((size, 2, size))
    state, action = order[counts.pairs.state[pair]], counts.pairs.action[pair]
    times[state, action, order[counts.successor]] = counts.times
    rewards[state, action, order[counts.successor]] = (
        counts.rewards.values if per_transition else 0.0
    )
    starts, ends, chances = np.zeros(size, int), np.ones(size, bool), np.full((2, size, 2), 0.5)
    starts[order], ends[order] = counts.starts, counts.terminal
    for table, each in zip(chances, (problem.behavior, policy), strict=True):
        table[order] = each.dense()
    kind = "rewards" if counts.rewards.known else "reward_sums"
    if not per_transition:
        table = np.zeros((size, 2))
        table[order] = counts.rewards.values.reshape(states, 2)
        rewards = table
    larger = Counts.from_dense(times, **{kind: rewards}, starts=starts, terminal=ends)
    allowed = np.zeros((size, 2, size), bool)
    allowed[np.ix_(order, [0, 1], order)] = True
    allowed[ends] = False
    behavior, other = (Policy.from_dense(larger, table) for table in chances)
    given = successors(larger.pairs, allowed)
    return replace(problem, counts=larger, behavior=behavior, support=given), other


@EVERY_SET
@pytest.mark.parametrize(("per", "known"), [("pair", True), ("transition", True), ("pair", False)])
def test_what_cannot_come_might_as_well_not_exist(certifier, per, known):
    problem, policy, _ = example(per=per, known=known)
    alone = replace(problem, support=None)
    expected = certify(alone, policy, certifier)
    everywhere = successors(problem.counts.pairs, np.ones((4, 2, 4), bool))
    same = certify(replace(alone, support=everywhere), policy, certifier)
    assert same.lower == pytest.approx(expected.lower, abs=1e-9 * expected.span)
    assert same.figures["parts"] == expected.figures["parts"]
    if certifier.known_start:  # otherwise the further states may be starts
        order = np.array([0, 3, 4, 7])
        larger, other = embedded(alone, policy, order)
        found = certify(larger, other, certifier)
        assert found.lower == pytest.approx(expected.lower, abs=1e-9 * expected.span)
        assert certify(replace(larger, support=None), other, certifier).lower < found.lower


@EVERY_SET
def test_a_smaller_support_says_more_and_one_successor_says_all(certifier):
    problem, policy, _ = example(per="transition")
    wide = certify(replace(problem, support=None), policy, certifier)
    near = certify(problem, policy, certifier)
    assert near.lower > wide.lower
    # One of the six rows that go on has one successor, so that it is known.
    assert wide.figures["parts"] - near.figures["parts"] == 1
    assert near.figures["successors"] == 16
    assert problem.support.statement() in near.assumptions
    assert verify(near, problem, policy) == near
    with pytest.raises(CertificateMismatch):
        verify(near, replace(problem, support=None), policy)
    exact, best, difference = one_way()
    found = certify(exact, best, replace(certifier, known_start=True, reward_high=3.0))
    assert found.lower == pytest.approx(difference, abs=1e-9)


@EVERY_SET
def test_the_claim_holds_for_models_within_the_support_that_the_set_leaves_possible(certifier):
    problem, policy, rewards = example(per="transition")
    models = uncertainty_of(problem, certifier)
    worlds, rng = models.models, np.random.default_rng(7)
    found = certify(problem, policy, certifier)
    for _ in range(30):
        row = worlds.worst(rng.normal(size=4) * 5)
        P = np.zeros((8, 4))
        pair = np.repeat(np.arange(8), np.diff(worlds.rows.room))
        np.add.at(P, (pair, row.successor), row.probability)
        np.testing.assert_allclose(P[:6].sum(axis=1), 1.0)
        assert not P[~ALLOWED.reshape(8, 4)].any()
        truth = FiniteMDP.from_dense(P.reshape(4, 2, 4), rewards, 0.8, problem.counts.starts / 9)
        # The set holds these starts, those of the data.
        difference = performance(truth, policy) - performance(truth, problem.behavior)
        assert found.lower <= difference + 1e-9


def claim_about_one_split(good, number, certifier):
    """L of an action that came out well so often, where that is all that is not known."""
    allowed = np.zeros((4, 2, 4), bool)
    allowed[0, 0, 3] = allowed[0, 1, 1] = allowed[0, 1, 2] = True
    allowed[1:3, :, 3] = True
    table = allowed * 300
    table[0, 1] = [0, good, number - good, 0]
    counts = Counts.from_dense(
        table, rewards=[[0, 0], [1, 1], [-1, -1], [0, 0]], terminal=np.arange(4) == 3
    )
    left, right = (Policy.from_dense(counts, [row] + [[0.5, 0.5]] * 3) for row in np.eye(2))
    support = successors(counts.pairs, allowed)
    problem = uniform_problem(counts, 0.9, (-1.0, 1.0), support=support)
    found = certify(replace(problem, behavior=left), right, certifier)
    assert found.figures["parts"] == 1
    return found.lower


def test_where_one_split_is_all_there_is_claims_fail_about_as_often_as_they_may():
    rng, delta, number, p = np.random.default_rng(9), 0.4, 60, 0.37
    certifier = Robust(set="two-successor", strict=False, delta=delta, known_start=True)
    wrong = 0
    for _ in range(number):
        lower = claim_about_one_split(rng.binomial(300, p), 300, certifier)
        wrong += lower > 0.9 * (2 * p - 1)
    # One of the two sides is what counts, so about δ/2 of the claims are wrong.
    assert number * delta / 6 < wrong <= allowed_failures(number, delta)


@pytest.mark.thorough
def test_only_strict_sets_stand_a_logger_who_stops_when_it_looks_good():
    # An action is tried until a fixed-n interval lies above the truth, at most 2,000 times.
    delta, number, p = 0.1, 60, 0.5
    wrong = {False: 0, True: 0}
    for seed in range(number):
        good = np.cumsum(np.random.default_rng(seed).random(2000) < p)
        tries = np.arange(1, 2001)
        low = np.where(good > 0, scipy.stats.beta.ppf(delta / 2, good, tries - good + 1), 0.0)
        stop = int(np.argmax(low > p)) if (low > p).any() else 1999
        for strict in wrong:
            certifier = Robust(set="two-successor", strict=strict, delta=delta, known_start=True)
            lower = claim_about_one_split(int(good[stop]), int(tries[stop]), certifier)
            wrong[strict] += lower > 0.9 * (2 * p - 1)
    assert wrong[False] > number / 4
    assert wrong[True] <= allowed_failures(number, delta)


def logged_example():
    """A problem with a log of a world in which the support is all there is."""
    rng = np.random.default_rng(3)
    P = np.where(ALLOWED, 1.0, 0.0)
    P /= np.maximum(P.sum(axis=2, keepdims=True), 1)
    mdp = FiniteMDP.from_dense(P, np.ones((4, 2)) * [[1], [2], [0], [0]], 0.8)
    log = sample_log(mdp, Policy.uniform(mdp), 2, 3, rng)
    counts = replace(log.counts(), terminal=np.arange(4) == 3)
    support = successors(mdp.pairs, ALLOWED, WEIGHT)
    return logged_problem(log, 0.8, (0.0, 10.0), counts=counts, support=support)


def test_the_training_part_knows_the_support():
    problem = logged_example()
    for seed in range(5):
        part = training_part(problem, 0.5, seed)
        assert part.support == problem.support
        assert part.counts.terminal[3]


def test_worlds_of_a_rehearsal_stay_within_the_support():
    problem, rng = logged_example(), np.random.default_rng(0)
    assert problem.unseen_pairs().any()
    family = default_family(problem, Posterior(prior="own"))
    assert len(family) == 9
    for kind in family:
        world = kind.world(problem, rng)
        table = world.truth.dense().P
        assert not table[~ALLOWED].any(), kind
        again = problem_of(problem, world.truth, world.collect(20, 5, rng))
        assert again.support == problem.support
    for fill in ("uniform", "self-loop"):
        found = completed(problem, fill).dense().P
        for pair in np.flatnonzero(problem.unseen_pairs()):
            s, a = divmod(int(pair), 2)
            stays = fill == "self-loop" and ALLOWED[s, a, s]
            expected = np.eye(4)[s] if stays else ALLOWED[s, a] / ALLOWED[s, a].sum()
            np.testing.assert_allclose(found[s, a], expected)
