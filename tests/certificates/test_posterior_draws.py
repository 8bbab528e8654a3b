"""Draws of the posterior, and the gains in them, against a plain oracle.

Draws are compared with NumPy's own Dirichlet numbers. Seeds are fixed, and a comparison of equal
laws would fail once in 10⁶ tests.
"""

import tracemalloc
from dataclasses import replace
from functools import cache

import numba
import numpy as np
import pytest
import scipy.stats

from support.failures import RARE
from support.gpu import MANY, NEARLY
from support.oracles import gains_in_draws
from support.posterior_examples import (
    BOUNDS,
    assert_moments,
    chunk_of,
    dense_times,
    example,
    gains_in,
    posterior_gains,
    with_sums,
)
from support.problems import uniform_problem
from support.reward_oracle import unknown_rewards
from surestep import Counts, Pairs, Policy, certify, device
from surestep._arrays import run_sums
from surestep.certificates import Posterior, drawn, posterior, verify
from surestep.certificates.posterior import model_draws
from surestep.certificates.prior import ADVERSE, adverse_questions
from surestep.kernels import devices
from surestep.kernels.devices import require_gpu
from surestep.kernels.drawn import Performance
from surestep.kernels.posterior import PIECES, REMAINDER
from surestep.model.counts import LoggedRewards

DRAWS = 20_000
MACHINES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.slow])]
EXACTLY = {"rtol": 0, "atol": 0}


@cache
def drawn_rows(name):
    """Drawn rows of the first pair [draws, S], and whether all states are drawn for themselves."""
    counts, prior, weight = ROWS[name]
    problem = uniform_problem(counts, 0.5, (0.0, 1.0))
    settings = Posterior(prior=prior, prior_weight=weight)
    models = model_draws(problem, settings)
    used = np.arange(counts.pairs.num_pairs) == 0
    chunk = chunk_of(models, used, DRAWS)
    assert len(chunk.ends) == DRAWS
    ends = chunk.ends[:, -1]
    assert (ends >= 0).all()
    row, place = np.nonzero(np.arange(chunk.target.shape[1]) < ends[:, np.newaxis])
    times, rows = np.zeros((2, DRAWS, counts.pairs.num_states))
    np.add.at(times, (row, chunk.target[row, place]), 1.0)
    assert times.max() == 1.0  # nobody is drawn twice
    rows[row, chunk.target[row, place]] = chunk.share[row, place]
    return rows, models.rows[0].weight * PIECES >= counts.pairs.num_states


def weights_in(counts, prior, weight):
    """The weights of the posteriors of all rows [S, A, S], from dense tables."""
    times, size = dense_times(counts), counts.pairs.num_states
    if prior != "pooled":
        return times + {"weight": weight / size, "uniform": 1.0, "jeffreys": 0.5}[prior]
    every = times.sum(axis=(0, 1)) + weight / size
    pooled = times.sum(axis=1) + weight * every / every.sum()
    return times + weight * (pooled / pooled.sum(axis=1, keepdims=True))[:, np.newaxis]


def first_row(times, *others):
    """Counts of which the first pair has these, other actions of its state the others."""
    size, rng = len(times), np.random.default_rng(4)
    table = rng.poisson(0.5, (size, 1 + len(others), size))
    table[0] = [times, *others]
    return Counts.from_dense(table, rewards=np.zeros(table.shape[:2]))


ROWS = {
    "even, sparse": (first_row([4, 0, 1] + [0] * 27), "weight", 1.5),
    "even, very sparse": (first_row([1, 0, 2] + [0] * 57), "weight", 0.24),
    "even, never visited": (first_row([0] * 25), "weight", 1.0),
    "even, all drawn": (first_row([3, 0, 0, 1, 0, 0]), "weight", 1.8),
    "even, all seen": (first_row([3, 1, 2]), "weight", 0.03),
    "sparse": (first_row([4, 0, 1] + [0] * 27, [0, 3, 3] + [0] * 27), "pooled", 1.5),
    "very sparse": (first_row([1, 0, 2] + [0] * 37, [2] + [0] * 39), "pooled", 0.9),
    "never visited": (first_row([0] * 25, [5, 0, 1] * 8 + [0]), "pooled", 1.0),
    "a state never visited": (first_row([0] * 25), "pooled", 1.0),
    "all drawn": (first_row([3, 0, 0, 1, 0, 0], [0, 0, 2, 2, 2, 0]), "pooled", 1.8),
}


@pytest.mark.one_quick
@pytest.mark.parametrize("name", ROWS)
def test_rows_have_the_moments_of_a_dirichlet(name):
    rows, singly = drawn_rows(name)
    assert singly == ("all drawn" in name)
    slack = 0.0 if singly else REMAINDER**2  # what is left at last is of one state
    assert_moments(rows, weights_in(*ROWS[name])[0, 0], slack)


@pytest.mark.parametrize("name", ROWS)
def test_sums_over_rows_have_the_law_of_a_dirichlet(name):
    rng = np.random.default_rng(8)
    rows, _ = drawn_rows(name)
    dense = rng.dirichlet(weights_in(*ROWS[name])[0, 0], DRAWS)
    worth = rng.normal(size=rows.shape[1])
    for here, there in (
        (rows @ worth, dense @ worth),
        (rows.max(axis=1), dense.max(axis=1)),
        ((rows**2).sum(axis=1), (dense**2).sum(axis=1)),
    ):
        # The largest of a row may be 1 but for rounding, in many draws.
        assert scipy.stats.ks_2samp(here.round(9), there.round(9)).pvalue > RARE


def oracle_gains(problem, policy, settings, draws, rng):
    """Δ in models drawn with NumPy, state by state in full, and solved by LAPACK."""
    counts, pairs = problem.counts, problem.counts.pairs
    size, times = pairs.num_states, dense_times(problem.counts)
    allowed, weight = np.flatnonzero(~counts.terminal), settings.prior_weight
    shapes = weights_in(counts, settings.prior, weight)
    starts = {"uniform": 1.0, "jeffreys": 0.5}.get(settings.prior, weight / allowed.size)
    initial = np.zeros((draws, size))
    initial[:, allowed] = rng.dirichlet(counts.starts[allowed] + starts, draws)
    if settings.starts == "known":
        initial[:] = counts.starts / counts.starts.sum()
    rows = [rng.dirichlet(row, draws) for row in shapes.reshape(-1, size)]
    P = np.stack(rows, axis=1).reshape(draws, *shapes.shape)
    R = oracle_rewards(counts, times, settings, draws, rng)
    P[:, counts.terminal], R[:, counts.terminal] = 0.0, 0.0
    return gains_in_draws(problem, policy, initial, P, R)


def oracle_rewards(counts, times, settings, draws, rng):
    """Rewards [draws, S, A, S] of drawn models."""
    logged, pairs = counts.rewards, counts.pairs
    if logged.per == "pair":
        values, observed = logged.values.reshape(pairs.num_states, -1), times.sum(axis=2)
    else:
        values, observed = np.zeros(times.shape), times
        pair = np.repeat(np.arange(pairs.num_pairs), np.diff(counts.offsets))
        values[pairs.state[pair], pairs.action[pair], counts.successor] = logged.values
    values = np.broadcast_to(values, (draws, *values.shape))
    if not logged.known:
        drawn_once = unknown_rewards(values[0] / np.maximum(observed, 1), observed, settings)
        values = np.stack([drawn_once(rng) for _ in range(draws)])
    values = values if values.ndim == 4 else values[..., np.newaxis]
    return np.broadcast_to(values, (draws, *times.shape)).copy()


SETTINGS = {
    "even": (None, Posterior(prior="weight")),
    "even, few weights": (None, Posterior(prior="weight", prior_weight=0.2)),
    "pooled": (None, Posterior(prior="pooled")),
    "pooled, few weights": (None, Posterior(prior="pooled", prior_weight=0.2)),
    "uniform": (None, Posterior(prior="uniform")),
    "jeffreys, known starts": (None, Posterior(prior="jeffreys", starts="known")),
    "like the others": ("transition", Posterior(prior="weight")),
    "like the others, by pair": ("pair", Posterior(prior="pooled")),
    "between bounds": ("transition", Posterior(prior="weight", **BOUNDS)),
    "noise": ("transition", Posterior(prior="pooled", rewards="bounded", **BOUNDS)),
    "noise, by pair": (
        "pair",
        Posterior(prior="weight", rewards="bounded", prior_weight=0.2, **BOUNDS),
    ),
}


def asked(name):
    """The example with the rewards of these settings, and the settings."""
    per, settings = SETTINGS[name]
    problem, policy = example()
    return problem if per is None else with_sums(problem, per), policy, settings


@cache
def expected_gains(name):
    """The gains of the oracle, drawn once for both solvers."""
    return oracle_gains(*asked(name), 600, np.random.default_rng(2))


@pytest.mark.one_quick
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(
    "solver", ["elimination", pytest.param("iteration", marks=pytest.mark.slow)]
)  # that both agree is tested below
def test_gains_have_the_law_of_the_oracle(name, solver, monkeypatch):
    problem, policy, settings = asked(name)
    if solver == "iteration":
        monkeypatch.setattr(drawn, "SMALL", 0)
    found = posterior_gains(problem, policy, replace(settings, draws=4000, seed=1))
    expected = expected_gains(name)
    assert scipy.stats.ks_2samp(found, expected).pvalue > RARE
    assert found.std() == pytest.approx(expected.std(), rel=0.15)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("discount", [0.8, 1.0])
@pytest.mark.parametrize("small", [128, 2])
@pytest.mark.parametrize("name", SETTINGS)
def test_claims_on_a_gpu_are_those_of_the_processor(name, small, discount, both, monkeypatch):
    monkeypatch.setattr(drawn, "SMALL", small)
    problem, policy, settings = asked(name)
    problem = replace(problem, discount=discount, value_bounds=(-50.0, 50.0))
    expected, found = both(lambda: certify(problem, policy, replace(settings, draws=MANY)))
    apart = expected.figures["evaluation_error"] + found.figures["evaluation_error"]
    # Without a discount drawn episodes may be long, and what can be proved is less.
    assert apart < (1e-3 if small == 2 else 1e-7 if discount == 1 else 1e-9)
    assert found.lower == pytest.approx(expected.lower, rel=1e-9, abs=apart)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("small", [128, 2])
def test_claims_are_alike_where_a_gpu_is_only_taken_for_many_tasks(small, monkeypatch):
    """A model or two of what was drawn on the GPU is no reason to leave it."""
    monkeypatch.setattr(drawn, "SMALL", small)
    problem, policy = example()
    with device("cpu"):
        expected = certify(problem, policy, Posterior(draws=30, seed=4)).lower
    gpu = require_gpu()
    monkeypatch.setattr(devices, "LEAST_TASKS", 20)
    for module in (devices, drawn):
        monkeypatch.setattr(module, "usable_gpu", lambda: gpu)
    with device("auto"):
        found = certify(problem, policy, Posterior(draws=30, seed=4)).lower
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("prior", ["weight", "pooled"])
@pytest.mark.parametrize("states", [128, 129])
def test_up_to_128_states_are_eliminated_and_iterating_agrees(states, prior, monkeypatch):
    rng = np.random.default_rng(states)
    times, rewards = rng.poisson(0.05, (states, 2, states)), rng.random((states, 2))
    problem = uniform_problem(Counts.from_dense(times, rewards=rewards), 0.8, (0.0, 5.0))
    policy = Policy.deterministic(problem.counts, np.ones(states, int))

    def claimed(small):
        monkeypatch.setattr(drawn, "SMALL", small)
        return certify(problem, policy, Posterior(prior=prior, draws=9))

    usual, exact, near = (claimed(small) for small in (drawn.SMALL, states, 0))
    assert usual == (exact if states == 128 else near)
    error = near.figures["evaluation_error"]
    assert exact.figures["evaluation_error"] < 1e-9 < error < 1e-4
    # What is off, by at most the error, is taken off as well.
    assert exact.lower - 2 * error <= near.lower <= exact.lower + 1e-9


def test_in_a_wide_problem_the_fewest_draws_choose(monkeypatch):
    problem, _ = example()
    asked = []
    for wide in (10**6, 0):
        monkeypatch.setattr(posterior, "WIDE_TO_CHOOSE", wide)
        asked += [
            posterior.for_choosing(judge, problem).draws
            for judge in (Posterior(), Posterior(draws=19))
        ]
    assert asked == [99, 19, 29, 19]


def adverse_gains(problem, policy, draws, rng):
    """Gains in dense models whose rows are Dirichlet(times + 0.2 where the policy gains least)."""
    times, size = dense_times(problem.counts).astype(float), problem.num_states
    reward = problem.counts.pairs.dense(problem.counts.rewards.values)
    going_on = ~problem.counts.terminal
    both = np.stack([problem.behavior.dense(), policy.dense()])

    def values(rows):
        chains = np.einsum("psa,sat->pst", both, rows * going_on[:, np.newaxis, np.newaxis])
        earned = (both * reward).sum(axis=2)
        return np.linalg.solve(np.eye(size) - problem.discount * chains, earned[..., np.newaxis])

    mean = times + 5 / size
    theirs, ours = values(mean / mean.sum(axis=2, keepdims=True))[..., 0]
    times[:, :, np.argmin(ours - theirs)] += ADVERSE
    starts = problem.counts.starts / problem.counts.starts.sum()
    gains = []
    for _ in range(draws):
        drawn_ones = rng.gamma(times)
        theirs, ours = values(drawn_ones / drawn_ones.sum(axis=2, keepdims=True))[..., 0]
        gains.append(starts @ (ours - theirs))
    return np.array(gains)


def test_gains_under_the_prior_against_a_policy_have_the_law_of_dense_draws():
    problem, policy = example()
    assert problem.counts.rewards.known
    settings = Posterior(draws=4000, starts="known")
    models = model_draws(problem, settings)
    question = drawn.DrawnQuestion(
        models, problem.behavior.probability, policy.probability[np.newaxis]
    )
    ((against, _),) = adverse_questions(question)
    ((found,),) = gains_in([against], 4000, 2**29)
    expected = adverse_gains(problem, policy, 2000, np.random.default_rng(3))
    assert scipy.stats.ks_2samp(found.lower[0], expected).pvalue > RARE
    assert found.lower.std() == pytest.approx(expected.std(), rel=0.15)


def test_the_cautious_gains_are_the_smallest_ones_of_three_priors():
    problem, policy = example()
    policies = [policy, Policy.deterministic(problem.counts, [0, 0, 0, 0])]
    settings = Posterior(draws=199)
    even, pooled = (
        posterior_gains(problem, policies, replace(settings, prior=prior))
        for prior in ("weight", "pooled")
    )
    models = model_draws(problem, settings)
    against = []
    for each in policies:
        single = each.probability[np.newaxis]
        ((question, _),) = adverse_questions(
            drawn.DrawnQuestion(models, problem.behavior.probability, single)
        )
        ((gains,),) = gains_in([question], 199, 2**29)
        against.append(gains.lower[0])
    found = posterior_gains(problem, policies, settings)
    assert (found <= even).all()
    three = [np.sort(gains, axis=1) for gains in (even, pooled, against)]
    np.testing.assert_array_equal(np.sort(found, axis=1), np.min(three, axis=0))
    for fewer in (three[:2], three[2:]):  # neither the former ones nor the last are all
        assert not (np.sort(found, axis=1) == np.min(fewer, axis=0)).all()
    for row, gains in zip(even, found, strict=True):
        assert (np.diff(gains[np.argsort(row)]) >= 0).all()  # in the order of the first prior
    claim = certify(problem, policy, settings)
    claims = [
        certify(problem, policy, replace(settings, prior=prior)).lower
        for prior in ("weight", "pooled")
    ]
    assert claim.lower == min(claims)
    assert verify(claim, problem, policy) == claim


def test_draws_depend_on_nothing_but_their_number_and_the_seed(monkeypatch):
    problem, policy = example()
    other = Policy.deterministic(problem.counts, [0, 0, 0, 0])
    settings = Posterior(prior="pooled", prior_weight=0.2)
    whole = posterior_gains(problem, policy, settings)
    assert whole.shape == (1000,)
    some = posterior_gains(problem, policy, replace(settings, draws=77))
    np.testing.assert_array_equal(some, whole[:77])
    both = posterior_gains(problem, [other, policy], settings)
    np.testing.assert_array_equal(both[1], whole)
    np.testing.assert_array_equal(both[0], posterior_gains(problem, other, settings))
    monkeypatch.setattr(drawn, "expected_cells", lambda *_: 3)  # too few: made again with more
    np.testing.assert_array_equal(posterior_gains(problem, policy, settings), whole)
    assert (posterior_gains(problem, policy, replace(settings, seed=1)) != whole).all()


@pytest.mark.parametrize(
    ("prior", "rewards", "starts", "memory"),
    [
        ("cautious", "transition", "posterior", 2**29),
        ("pooled", "pair", "known", 2**29),
        ("uniform", "known", "known", 20_000),
    ],
)
@pytest.mark.parametrize("machine", MACHINES)
def test_many_data_sets_get_the_gains_that_each_gets_alone(
    prior, rewards, starts, memory, machine, monkeypatch
):
    """Also where policies, transitions, seeds and atoms differ, and where one is refused."""
    monkeypatch.setattr(drawn, "NEAR", memory)
    monkeypatch.setenv("SURESTEP_DEVICE", "cpu")
    settings, questions = Posterior(draws=19, prior=prior, starts=starts), []
    for seed in range(5):
        problem, policy = example()
        if rewards != "known":
            problem = with_sums(problem, rewards)
        fewer = problem.counts.times // (1 + seed)
        kept = problem.counts if seed == 0 else thinned(problem.counts, fewer)
        several = [policy, problem.behavior, policy][: 1 + seed % 3]
        questions.append((replace(settings, seed=seed), replace(problem, counts=kept), several))
    questions[3] = (questions[3][0], replace(questions[3][1], discount=HALVES), [policy])
    with device(machine):
        together = Posterior.gains_each(*zip(*questions, strict=True))
    for gains, (certifier, problem, several) in zip(together, questions, strict=True):
        if not isinstance(problem.discount, float):
            assert gains.code == "discount-per-pair"
            continue
        alone = posterior_gains(problem, several, certifier)
        np.testing.assert_allclose(gains, alone, **(NEARLY if machine == "cuda" else EXACTLY))


HALVES = np.full(8, 0.5)


def thinned(counts, times):
    """Counts without what was seen too rarely, and its rewards in the same proportion."""
    rewards = counts.rewards
    if not rewards.known:
        seen = times if rewards.per == "transition" else run_sums(times, counts.offsets)
        before = counts.times if rewards.per == "transition" else counts.visits
        rewards = replace(rewards, values=rewards.values * seen / np.maximum(before, 1))
    return replace(counts, times=times, rewards=rewards)


@pytest.mark.parametrize("solver", ["elimination", "iteration"])
def test_gains_depend_neither_on_threads_nor_on_memory(solver, two_threads, monkeypatch):
    if solver == "iteration":
        monkeypatch.setattr(drawn, "SMALL", 0)
    if two_threads < 2:
        pytest.skip("there is one thread only")
    problem, policy = example()
    settings = Posterior(prior="pooled", prior_weight=0.2, draws=300)
    whole = posterior_gains(problem, policy, settings)
    for memory in (10_000, 20_001):
        few = posterior_gains(problem, policy, settings, memory=memory)
        assert few.tobytes() == whole.tobytes()
    numba.set_num_threads(1)
    alone = posterior_gains(problem, policy, settings)
    assert alone.tobytes() == whole.tobytes()


SLOW = {
    # times of staying, of going on, and of each of many ends, which are rare and yet decide the
    # values
    "random walk": (500, 500, 0, 0.999),
    "sticky": (9_900, 100, 0, 0.999),
    "rare ends": (10_000, 90_000, 10, 0.999),
    "nothing counts but now": (5, 5, 1, 0.0),
}


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n == "sticky" else ()) for n in SLOW]
)
def test_slow_models_are_evaluated_as_well(name, monkeypatch):
    stay, go, end, discount = SLOW[name]
    live, ends = 40, 100
    table = np.zeros((live + ends, 2, live + ends), int)
    for s in range(live):
        table[s, :, s] = stay
        table[s, 0, (s + 1) % live] += go
        table[s, 1, (s - 1) % live] += go
        table[s, :, live:] = end
    counts = Counts.from_dense(
        table,
        rewards=np.random.default_rng(1).random((live + ends, 2)),
        starts=np.arange(live + ends) == 0,
        terminal=np.arange(live + ends) >= live,
    )
    problem = uniform_problem(counts, discount, (0.0, 1 / (1 - discount)))
    policy = Policy.deterministic(counts, np.zeros(live + ends, int))
    settings = Posterior(prior_weight=0.01, draws=9)
    near = certify(problem, policy, settings)
    monkeypatch.setattr(drawn, "SMALL", 1000)
    exact = certify(problem, policy, settings)
    error = near.figures["evaluation_error"]
    assert exact.figures["evaluation_error"] < max(1e-3 * error, 1e-12)
    assert error < 4e-6 / (1 - discount)
    assert exact.lower - 2 * error <= near.lower <= exact.lower + 1e-3 * error


def test_the_claim_is_the_quantile_of_the_draws():
    problem, policy = example()
    for delta, draws, rank in ((0.1, 1000, 100), (0.1, 9, 1), (0.05, 99, 5), (0.29, 99, 29)):
        settings = Posterior(delta=delta, draws=draws)
        gains = posterior_gains(problem, policy, settings)
        found = certify(problem, policy, settings)
        assert found.lower == np.sort(gains)[rank - 1]
        expected = {
            "rank": rank,
            "mean_gain": pytest.approx(gains.mean(), rel=1e-12),
            "median_gain": pytest.approx(np.median(gains), rel=1e-12),
            "draws_with_a_loss": (gains < 0).sum(),
        }
        assert {name: found.figures[name] for name in expected} == expected
    seen = {"states": 4, "visits": 64, "episodes": 9, "unseen_pairs": 1, "changed_pairs": 6}
    assert found.figures.items() >= seen.items()
    assert (found.figures["value_low"], found.figures["value_high"]) == problem.value_bounds
    assert (found.standing, found.span) == ("posterior", 15.0)


def test_no_model_is_drawn_to_see_that_the_behavior_policy_loses_nothing(monkeypatch):
    problem, _ = example()
    monkeypatch.delattr("surestep.certificates.posterior.drawn_gains_each")
    assert certify(problem, problem.behavior, Posterior()).figures["evaluation_error"] == 0.0


def test_no_draw_gains_or_loses_more_than_values_span(monkeypatch):
    problem, policy = example(value_bounds=(-1.4, 1.5))
    settings = Posterior(prior="weight")
    free = posterior_gains(replace(problem, value_bounds=(-99.0, 99.0)), policy, settings)
    held = posterior_gains(problem, policy, settings)
    assert (held <= free + 1e-9).all()
    assert (held < free - 0.1).any()
    assert (np.abs(held) <= 2.9).all()
    performance = Performance(PERFORMANCES, 0 * PERFORMANCES, 0 * PERFORMANCES)
    monkeypatch.setattr(drawn, "evaluated", lambda *_: performance)
    models = model_draws(problem, settings)
    models = replace(models, value_bounds=(-1.4, 3.6))
    others = np.stack([policy.probability] * 2)
    question = drawn.DrawnQuestion(models, problem.behavior.probability, others)
    ((gains,),) = gains_in([question], 4, 2**20)
    expected = [[1.0, -1.0], [-1.0, -5.0], [0.6, 0.0], [0.0, -1.0]]
    np.testing.assert_allclose(gains.lower.T, expected, atol=1e-12)


# ρ of π_b and of two others, where −1.4 ≤ ρ ≤ 3.6: all within the bounds, a loss of more than they
# allow, a gain of more, and π_b above them (a loss remains one).
PERFORMANCES = np.array([[1.0, 2.0, 0.0], [4.0, 3.0, -9.0], [3.0, 9.0, 3.0], [5.0, 9.0, 4.0]])


def many_states():
    """A problem of 10⁵ states, where few were ever seen, and a policy that takes larger rewards."""
    rng = np.random.default_rng(0)
    size = 100_000
    table = [(s, 0, (s * 7 + 1) % size, 3) for s in range(0, size, 50)]
    state, _, successor, times = (np.array(column) for column in zip(*table, strict=True))
    pairs = Pairs.full(size, 2)
    offsets = np.zeros(pairs.num_pairs + 1, int)
    offsets[2 * state + 1] = 1
    starts = np.zeros(size, int)
    starts[0] = 5
    counts = Counts(
        pairs,
        np.cumsum(offsets),
        successor,
        times,
        LoggedRewards(rng.random(pairs.num_pairs), "pair", True),
        starts,
    )
    problem = uniform_problem(counts, 0.5, (0.0, 2.0))
    best = counts.rewards.values.reshape(-1, 2).argmax(axis=1)
    return problem, Policy.deterministic(counts, best)


@pytest.mark.slow
def test_many_draws_of_many_states_stay_within_the_memory():
    problem, policy = many_states()
    # One prior: of two, the number of draws decides whose claim is the smaller one.
    settings, memory = Posterior(prior="weight", draws=99, prior_weight=1.0), 2**28
    tracemalloc.start()
    try:
        gains = posterior_gains(problem, policy, settings, memory=memory)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.5 * memory < peak < memory + 2**26  # which the problem itself may take
    assert 0.1 < gains.mean() < 0.5
    first = posterior_gains(problem, policy, replace(settings, draws=9))
    np.testing.assert_array_equal(gains[:9], first)
    found = certify(problem, policy, Posterior(draws=9, prior_weight=1.0))
    # Half of the better of two uniform rewards is 1/3, of their mean 1/4, twice from anywhere. What
    # is claimed is the least of nine draws.
    assert 0 < found.lower < found.figures["mean_gain"] < 0.5
    assert found.figures["evaluation_error"] < 1e-4
