"""Stitched certificates: the lemma by enumeration, stacks, claims, and what is refused.

A proved claim may fail with probability δ. Tests of that draw with fixed seeds and allow as many
failures as a claim that fails exactly that often would exceed once in 10⁶ tests.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.chosen import chosen_spibb
from support.logs import log_of
from support.oracles import exact_pairs, exact_value
from support.problems import logged_problem, uniform_problem
from support.rollouts import Draw, roll_out
from support.strategies import logged_problems, random_policy
from surestep import (
    Counts,
    FiniteMDP,
    Pairs,
    Policy,
    Problem,
    certify,
    estimate_behavior,
    sample_log,
)
from surestep.certificates import Stitched, stitched
from surestep.certificates import stacks as module
from surestep.certificates.bets import kinds_of
from surestep.certificates.episodes import training_for, training_part
from surestep.certificates.stacks import (
    Case,
    Course,
    Stacks,
    Tails,
    Way,
    course_of,
    horizons,
    roll_out_each,
    stacks_of,
    tails_of_set,
    tally_each,
)
from surestep.errors import CertificateRefused, InvalidParameter, RefutedBounds
from surestep.kernels.stitched import BOTH, OURS, THEIRS
from surestep.model import Statement
from surestep.planning.rectangular import Earnings, RectangularSet, rows_in_balls

HALF = Fraction(1, 2)
WIDE = (-100.0, 100.0)


def loops():
    """Two states and an end: action 0 goes round in loops, action 1 may end, with a toll."""
    P = np.zeros((3, 2, 3))
    P[0, 0, [0, 1]] = 0.5
    P[0, 1, [1, 2]] = 0.5
    P[1, 0, [0, 1]] = 0.25, 0.75
    P[1, 1, [0, 2]] = 0.5
    R = np.zeros((3, 2, 3))
    R[0, 0, 1], R[0, 1, 2], R[1, 0, 0], R[1, 1, 2] = 1.0, -2.0, 0.5, 3.0
    return FiniteMDP.from_dense(P, R, 0.5, initial=[1.0, 0.0, 0.0])


def all_stacks(mdp, depths):
    """Every way that the first visits of all pairs can turn out, with its probability."""
    outcomes = [
        [(t, Fraction(float(mdp.probability[t]))) for t in range(*mdp.offsets[k : k + 2])]
        for k in range(4)
    ]
    rows = [
        list(itertools.product(each, repeat=depth))
        for each, depth in zip(outcomes, depths, strict=True)
    ]
    offsets = np.array([0, *np.cumsum(depths), sum(depths), sum(depths)])
    for combined in itertools.product(*rows):
        taken = np.array([t for row in combined for t, _ in row])
        chance = math.prod((p for row in combined for _, p in row), start=Fraction(1))
        successor = mdp.successor[taken].astype(np.int64)
        starts = np.zeros(3, int)
        yield Stacks(offsets, mdp.reward[taken], successor, successor == 2, starts), chance


def course_between(mdp, ours, theirs, tails):
    """The course of two policies in the model, all of whose starts are state 0."""
    counts = sample_log(mdp, ours, 5, 2, np.random.default_rng(0)).counts()
    problem = Problem(counts=counts, behavior=theirs, discount=0.5, value_bounds=(-8.0, 8.0))
    course = course_of(problem, ours, WIDE, None)
    return course._replace(tails=tails, over=np.array([False, False, True]))


def true_tails(mdp, policies):
    """What is left is worth exactly its mean: values and q of each policy, in rationals."""
    values = [exact_value(mdp, policy.probability) for policy in policies]
    at_pair = [
        [earned + sum(w * value[s] for s, w in later.items()) for earned, later in exact_pairs(mdp)]
        for value in values
    ]
    return Tails(np.array(at_pair, float), np.array(values, float))


UP, DOWN, ALL = [1, 1, 0], [0, 0, 0], [True] * 6


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("ours", "readable", "horizon", "depths", "rounds"),
    [
        (UP, ALL, 2, (4, 2, 2, 2), 2),
        (UP, [True, True, False, True, True, True], 2, (4, 2, 0, 2), 2),
        ([0, 1, 0], ALL, 2, (4, 0, 2, 2), 2),
        (UP, [True, True, True, False, True, True], 1, (3, 3, 0, 0), 3),
        pytest.param(UP, ALL, 3, (6, 4, 4, 2), 2, marks=pytest.mark.slow),
    ],
)
def test_the_mean_of_a_round_is_the_difference_given_all_rounds_before(
    ours, readable, horizon, depths, rounds
):
    # The stacks are as deep as such rounds can read, so that none is missing.
    mdp = loops()
    policies = [Policy.deterministic(mdp.pairs, each) for each in (ours, DOWN)]
    course = course_between(mdp, *policies, true_tails(mdp, policies))
    truth = [exact_value(mdp, policy.probability)[0] for policy in policies]
    both, either = [truth[0] - truth[1]], [truth[0], -truth[1]]
    expected = {BOTH: both * 3, OURS: either[:1] * 3, THEIRS: either[1:] * 3, 2: either * 2}
    means = {}
    for stacks, chance in all_stacks(mdp, depths):
        for who in expected:
            way = Way(who, horizon, horizon)
            found = roll_out(stacks, course, np.array(readable), way, Draw(0, 1, 1, rounds))
            assert found.complete[0] == rounds
            values = tuple(
                Fraction(float(x)).limit_denominator(10**9) for x in found.differences[0]
            )
            for i in range(rounds):
                total, mass = means.get((who, values[:i]), (Fraction(0), Fraction(0)))
                means[who, values[:i]] = total + chance * values[i], mass + chance
    assert len(means) > 6  # the past matters for what is read next
    for (who, before), (total, mass) in means.items():
        assert abs(float(total / mass - expected[who][len(before)])) < 1e-6


def random_course(seed):
    """Stacks of a random log, and the course of two random policies."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(4, 0.7), (4, 3))
    P[3] = 0.0
    mdp = FiniteMDP.from_dense(P, rng.normal(size=P.shape), 0.9)
    ours, theirs = (random_policy(mdp.pairs, rng) for _ in range(2))
    log = sample_log(mdp, theirs.mix(ours, 0.5), 40, 9, rng)
    problem = logged_problem(log, 0.9, (-50.0, 50.0), theirs)
    return stacks_of(log), course_of(problem, ours, WIDE, None)


def followed(stacks: Stacks, course: Course, readable, who, numbers):
    """What each round gives, in plain Python, with the kernel's actions given by `numbers`."""
    base = np.zeros(stacks.offsets.size - 1, int)
    result = []
    for i, start in enumerate(stacks.starts):
        reads = np.zeros((2, base.size), int)
        totals = [0.0, 0.0]
        sides = {BOTH: (0, 1), OURS: (0,), THEIRS: (1,)}
        for side in sides[who] if who in sides else ((0,) if i % who == 0 else (1,)):
            s, weight, total, visits = start, 1.0, 0.0, {}
            while not course.over[s]:
                begin, end = course.pair_offsets[s : s + 2]
                row = course.chances.reshape(2, -1)[side, 2 * begin : 2 * end]
                number = numbers(i, s, visits.get(s, 0))
                visits[s] = visits.get(s, 0) + 1
                k = begin + int(np.searchsorted(row, number, side="right")) % (end - begin)
                at = base[k] + reads[side, k]
                if not readable[k]:
                    total += weight * course.tails.at_pair[side, k]
                    break
                if at >= stacks.sizes[k]:
                    return result
                reads[side, k] += 1
                row_number = stacks.offsets[k] + at
                total += weight * stacks.reward[row_number]
                weight *= course.discount
                s = stacks.successor[row_number]
                if stacks.ended[row_number]:
                    break
            totals[side] = total
        base += reads.max(axis=0)
        result.append(totals[0] - totals[1])
    return result


def word(value):
    """SplitMix64's output function, in whole numbers of Python."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)


def number_of(seed, purpose, run):
    """The number that the kernel draws for a visit, from its definition."""
    golden = 0x9E3779B97F4A7C15

    def joined(start, *numbers):
        for each in numbers:
            start = word(((start ^ int(each)) + golden) % 2**64)
        return start

    first = word((seed + golden) % 2**64)
    return lambda *place: ((joined(first, purpose, run, *place) >> 12) + 0.5) * 2.0**-52


@given(seed=st.integers(0, 10**6), who=st.sampled_from([BOTH, OURS, THEIRS, 2, 3]))
@settings(max_examples=15)
def test_the_kernel_does_what_the_definition_says(seed, who):
    stacks, course = random_course(seed)
    readable = stacks.sizes > seed % 5
    rounds = roll_out(stacks, course, readable, Way(who), Draw(seed, 2, 3, stacks.starts.size))
    for run in range(3):
        expected = followed(stacks, course, readable, who, number_of(seed, 2, run))
        assert rounds.complete[run] == len(expected)
        np.testing.assert_allclose(rounds.differences[run, : len(expected)], expected, atol=1e-12)


@pytest.mark.parametrize("known", [False, True])
def test_cases_that_are_rolled_out_together_are_what_each_is_alone(known, monkeypatch):
    cases, ways = [], []
    for seed in range(4):
        stacks, course = random_course(3 + seed // 2)  # two of them are on the same log
        initial = np.cumsum(np.random.default_rng(seed).dirichlet(np.ones(4)))
        if known:
            course = course._replace(start_chances=initial)
        cases.append(Case(stacks, course, stacks.sizes > seed, seed, 30 + seed))
        ways.append([Way(seed - 1, seed + 1, None), Way(3, None, seed + 1)])
    # Other signals take the same steps, which are worth something else.
    for case in cases[:]:
        stacks, course = case.stacks, case.course
        tails = Tails(*(3 * worth for worth in course.tails))
        course = course._replace(at_end=1 - course.at_end, tails=tails, limits=(-1.5, 1.5))
        cases.append(case._replace(stacks=stacks._replace(reward=stacks.reward**2), course=course))
    ways = 2 * ways
    assert module.walks_of(cases, ways) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert module.walks_of(cases[4:], ways[:2] * 2) == [[0], [1], [2], [3]]
    every = [(c, w) for c in range(len(cases)) for w in range(2)]
    together = roll_out_each([cases[c] for c, _ in every], [ways[c][w] for c, w in every], 1, 3)
    tallies = tally_each(cases, ways, 1, 3)
    monkeypatch.setattr(module, "MOST_KEPT", 1)  # no two of them at a time
    assert [*module.rolled_together(cases, 0)] == [[c] for c in range(8)]
    for figure, own in zip(tallies, tally_each(cases, ways, 1, 3), strict=True):
        np.testing.assert_array_equal(figure, own)
    for (c, w), rounds in zip(every, together, strict=True):
        (alone,) = roll_out_each([cases[c]], [ways[c][w]], 1, 3)
        for one, other in zip(rounds, alone, strict=True):
            np.testing.assert_array_equal(one, other)
        for figure, own in zip(tallies, tally_each([cases[c]], [ways[c]], 1, 3), strict=True):
            np.testing.assert_array_equal(figure[c, w], own[0, w])
        for kind, values in enumerate(kinds_of(ways[c][w].who, rounds)):
            number, mean, variance = (figure[c, w, kind] for figure in tallies)
            assert number == values.size / 3
            if values.size:
                expected = (values.mean(), values.var())
                assert (mean, variance) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_each_policy_has_its_own_horizon_and_a_start_of_its_own_in_turn():
    # A walk that earns 1 in every step and never ends: so many steps, so much is earned.
    walk = Stacks(
        np.array([0, 40]), np.ones(40), np.zeros(40, int), np.zeros(40, bool), np.zeros(9, int)
    )
    course = Course(
        np.array([0, 1]), np.ones(4), np.empty(0), np.zeros(1, bool), np.zeros((2, 1)),
        Tails(np.zeros((2, 1)), np.zeros((2, 1))), 1.0, WIDE,
    )  # fmt: skip
    found = roll_out(walk, course, np.ones(1, bool), Way(3, 5, 2), Draw(0, 1, 1, 9))
    assert found.differences[0].tolist() == [5.0, -2.0, -2.0] * 3
    assert (found.complete.tolist(), found.cuts.tolist()) == ([9], [9])
    short = walk._replace(offsets=np.array([0, 13]))
    assert roll_out(short, course, np.ones(1, bool), Way(3, 5, 2), Draw(0, 1, 1, 9)).complete == 3


def arms(seed, episodes=400, gap=0.5):
    """One decision between two actions, of which the second pays more; π_b takes either."""
    P = np.zeros((2, 2, 2))
    P[0, :, 1] = 1.0
    R = np.zeros((2, 2, 2))
    R[0, 1, 1] = gap
    mdp = FiniteMDP.from_dense(P, R, 0.9, initial=[1.0, 0.0])
    behavior = Policy.uniform(mdp)
    log = sample_log(mdp, behavior, episodes, 3, np.random.default_rng(seed))
    problem = logged_problem(log, 0.9, (0.0, 1.0), behavior)
    return problem, Policy.deterministic(mdp.pairs, [1, 0])


def test_a_gain_without_chance_is_found_nearly_whole():
    problem, better = arms(0)
    claim = certify(problem, better, Stitched())
    assert 0.15 < claim.lower <= 0.25
    assert claim.standing == "proved"
    # With the roles exchanged it is a loss, and never called a gain.
    turned = replace(problem, behavior=better)
    assert certify(turned, problem.behavior, Stitched()).lower < -0.25


@given(
    problem=logged_problems(),
    seed=st.integers(0, 1000),
    logger=st.sampled_from(["fixed", "adaptive"]),
)
@settings(max_examples=settings.default.max_examples // 2)
def test_a_claim_lies_within_its_span(problem, seed, logger):
    if problem.log.num_episodes < 6:
        return
    policy = random_policy(problem.counts.pairs, np.random.default_rng(seed))
    claim = certify(problem, policy, Stitched(seed=seed, logger=logger))
    assert -claim.span * (1 + 1e-6) - 1e-6 <= claim.lower <= claim.span


def test_a_claim_tells_its_bounds_and_what_must_hold():
    problem, better = arms(3)
    claim = certify(problem, better, Stitched(return_low=-0.25, return_high=0.5))
    bounds = {"value_low": 0.0, "value_high": 1.0, "return_low": -0.25, "return_high": 0.5}
    sizes = {"episodes": 280, "training_episodes": 120, "changed_pairs": 4}
    assert claim.figures.items() >= (bounds | sizes).items()
    assert claim.span == 0.75
    for assumption in (
        Statement("chosen-from-part", {"share": 0.3, "seed": None}),
        Statement("order-of-decisions"),
        Statement("returns-bounded", {"low": -0.25, "high": 0.5}),
        Statement("values-bounded", {"low": 0.0, "high": 1.0}),
    ):
        assert assumption in claim.assumptions


def test_what_must_hold_depends_on_the_settings():
    problem, _ = arms(3)
    fixed = Stitched(logger="fixed", seed=7, train_share=0.0, reward_low=-1.0, reward_high=2.0)
    assumed = stitched.assumptions_of(fixed, problem, {"robust_tails": True})
    for assumption in (
        Statement("part-only-planned", {"share": 0.2, "seed": 7}),
        Statement("logger-never-learnt"),
        Statement("rewards-bounded", {"low": -1.0, "high": 2.0}),
    ):
        assert assumption in assumed
    # A value is a return, and has its bounds.
    assert "values-bounded" not in [assumption.code for assumption in assumed]
    alone = [assumption.code for assumption in stitched.assumptions_of(fixed, problem, {})]
    assert "rewards-bounded" not in alone
    assert Statement("rewards-known") in stitched.assumptions_of(
        Stitched(), problem, {"robust_tails": True}
    )


@pytest.mark.parametrize(("share", "steps"), [(0.3, 120), (0.0, 80)])
def test_tails_to_plan_with_come_from_the_first_part_as_if_it_were_all(share, steps, monkeypatch):
    foreseen = []

    def grown(problem, factor):
        foreseen.append((problem.log.num_steps, factor))
        return "grown"

    def robust_tails(certifier, problem, policies):
        assert problem == "grown"
        return [None] * len(policies)

    monkeypatch.setattr(stitched, "grown", grown)
    monkeypatch.setattr(stitched, "robust_tails", robust_tails)
    certify(*arms(3), Stitched(train_share=share, reward_low=0.0, reward_high=1.0))
    assert foreseen == [(steps, pytest.approx(400 / steps))]


@pytest.mark.parametrize(("series", "runs"), [(1024, 64), (300, 18), (96, 8)])
def test_the_certified_policy_is_planned_in_a_run_for_each_sixteen_series(
    series, runs, monkeypatch
):
    asked, plans_of = [], stitched.plans_of

    def noted(planning, *numbers):
        asked.append(numbers)
        return plans_of(planning, *numbers)

    monkeypatch.setattr(stitched, "plans_of", noted)
    certify(*arms(3), Stitched(series=series, reward_low=0.0, reward_high=1.0))
    assert asked == [(runs, 2**21)]


def test_nothing_that_certifies_had_a_part_in_the_plan():
    # Other outcomes in the second part: the same plan, another claim.
    problem, better = arms(3)
    log = problem.log
    reward = log.reward.copy()
    reward[200:] = 0.5 - reward[200:]
    other = replace(log, reward=reward)
    turned = replace(problem, log=other, counts=other.counts())
    certifier = Stitched(train_share=0.5)
    claims = [certify(each, better, certifier) for each in (problem, turned)]
    for name in ("paired", "expected", "horizon"):
        assert claims[0].figures[name] == claims[1].figures[name]
    assert claims[0].lower > 0 > claims[1].lower


def test_the_training_part_chooses_n_wedge_by_what_it_expects():
    problem, _ = arms(3)
    chosen = chosen_spibb(problem, Stitched(), [5, 10**6])
    assert chosen.n_wedge == 5
    assert chosen.lower[1] == 0.0 < chosen.lower[0]
    assert chosen.certificate.lower > 0


def test_a_larger_log_is_expected_to_prove_what_this_one_does_not():
    few, better = arms(3, episodes=60, gap=0.1)
    enough, _ = arms(3, episodes=4_000, gap=0.1)
    certifier = Stitched()
    growth = certifier.growth_for_proof(training_for(few, certifier), better)
    assert growth in stitched.GROWTHS[1:]
    assert certifier.growth_for_proof(training_for(enough, certifier), better) == 1.0
    # So many times the log proves it, and the log does not.
    assert certify(few, better, certifier).lower <= 0
    larger, _ = arms(5, episodes=round(60 * growth), gap=0.1)
    assert certify(larger, better, certifier).lower > 0
    # Nothing helps where there is nothing to gain.
    worse = Policy.deterministic(few.counts.pairs, [0, 0])
    assert certifier.growth_for_proof(training_for(few, certifier), worse) is None
    assert certifier.growth_for_proof(training_for(few, certifier), few.behavior) is None


def test_of_a_log_that_did_not_choose_the_first_fifth_only_plans():
    problem, better = arms(0)
    claim = certify(problem, better, Stitched(train_share=0.0))
    assert (claim.figures["training_episodes"], claim.figures["episodes"]) == (80, 320)
    assert Statement("chosen-without-log") in claim.assumptions
    with pytest.raises(InvalidParameter, match="leaves none of 400 episodes for training"):
        training_part(problem, 0.0, None)


KNOWN = {"known_start": True}


def stream(steps):
    """One episode of so many steps in a single state, and the policy of its first action."""
    mdp = FiniteMDP.from_dense(np.ones((1, 2, 1)), [[1.0, 0.0]], 0.5)
    behavior = Policy.uniform(mdp)
    log = sample_log(mdp, behavior, 1, steps, np.random.default_rng(0))
    problem = logged_problem(log, 0.5, (0.0, 2.0), behavior)
    return problem, Policy.deterministic(mdp.pairs, [0])


@pytest.mark.parametrize(
    ("case", "given", "words"),
    [
        (arms(0), {"delta": 1e-300}, "delta is 1e-300, expected at least 1e-100"),
        (arms(0, episodes=3), {}, "3 episodes, 1 to choose and plan and 2 to"),
        (arms(0, episodes=3), {"train_share": 0.1}, "3 episodes, 0 to choose and plan and 3 to"),
        (stream(200), {}, "one episode, which shows one start and can only be split in time"),
        (stream(200), {"known_start": True, "logger": "fixed"}, "can only be split in time"),
        (stream(40), KNOWN, "40 steps, 12 to choose and plan and 28 to"),
        (stream(39), KNOWN | {"train_share": 0.5}, "39 steps, 20 to choose and plan and 19 to"),
        (stream(40), KNOWN | {"train_share": 0.01}, "40 steps, 0 to choose and plan and 40 to"),
    ],
)
def test_what_cannot_be_split_or_has_no_level_is_refused(case, given, words):
    with pytest.raises(CertificateRefused, match=words):
        certify(*case, Stitched(**given))


def test_two_episodes_or_twenty_steps_in_either_part_are_enough():
    episodes, steps = arms(0, episodes=6)[0].log, stream(60)[0].log
    certifier = Stitched(train_share=1 / 3, known_start=True)
    assert stitched.folds_of(certifier, episodes).ratio == 2.0
    assert stitched.folds_of(certifier, steps).ratio == 2.0
    larger = replace(certifier, train_share=2 / 3)
    assert stitched.folds_of(larger, steps).ratio == 0.5


def test_an_estimate_from_the_whole_log_is_refused():
    problem, better = arms(1)
    with pytest.raises(CertificateRefused, match="estimated from the whole log"):
        certify(replace(problem, behavior=estimate_behavior(problem.counts)), better, Stitched())
    training = training_for(problem, Stitched())
    usable = replace(problem, behavior=estimate_behavior(training.counts))
    claim = certify(usable, better, Stitched(practice=0.0))
    assert Statement("behavior-estimated-apart") in claim.assumptions


def test_bounds_of_returns_that_an_episode_exceeds_are_refused():
    problem, better = arms(1)
    with pytest.raises(RefutedBounds, match=r"0.5 is earned, expected 0.0 to 0.4"):
        certify(problem, better, Stitched(return_low=0.0, return_high=0.4))
    claim = certify(problem, better, Stitched(return_low=0.0, return_high=0.5))
    assert claim.lower > certify(problem, better, Stitched()).lower


def test_bounds_of_returns_that_only_rollouts_exceed_are_refused():
    # Every episode that goes on loses 1, at its first step (1) or at its second one (2); the first
    # second step that a rollout reads is one that lost.
    pairs = Pairs.full(3, 3)
    late, early = [(0, 2, 0.0, 1), (1, 0, -1.0, 2)], [(0, 1, -1.0, 1), (1, 0, 0.0, 2)]
    log = log_of(pairs, *[[(0, 0, 0.0, 2)], late, early] * 40)
    behavior = Policy.deterministic(pairs, [0, 0, 0])
    problem = logged_problem(log, 1.0, (-1.0, 0.0), behavior)
    risky = Policy.deterministic(pairs, [1, 0, 0])
    with pytest.raises(RefutedBounds, match=r"rollouts come to -2, but returns between -1.0 and"):
        certify(problem, risky, Stitched())


def test_stacks_hold_the_visits_of_each_pair_in_their_order():
    mdp = FiniteMDP.from_dense(
        np.full((2, 2, 2), 0.5), np.arange(8.0).reshape(2, 2, 2), 0.5, [0.5, 0.5]
    )
    log = sample_log(mdp, Policy.uniform(mdp), 5, 3, np.random.default_rng(0))
    stacks = stacks_of(log)
    starts, entries = [], [[] for _ in range(4)]
    for first, last in zip(log.episode_offsets, log.episode_offsets[1:], strict=False):
        starts.append(log.state[first])
        for i in range(first, last):
            entries[log.pair[i]].append((log.reward[i], log.next_state[i], log.terminated[i]))
    assert stacks.starts.tolist() == starts
    assert stacks.sizes.tolist() == [len(each) for each in entries]
    assert [*zip(stacks.reward, stacks.successor, stacks.ended, strict=True)] == [
        entry for each in entries for entry in each
    ]


@pytest.mark.parametrize("way", [Way(BOTH, 4, 4), Way(OURS, 4, 4), Way(3, 4, 4)])
def test_a_run_is_over_where_it_needs_a_step_of_which_nobody_knows_where_it_led(way):
    """So it is the run on stacks that end before such steps, whatever comes after them."""
    mdp = FiniteMDP.from_dense(
        np.full((3, 2, 3), 1 / 3), np.arange(18.0).reshape(3, 2, 3), 0.5, [0.5, 0.5, 0.0]
    )
    log = sample_log(mdp, Policy.uniform(mdp), 40, 6, np.random.default_rng(1))
    problem = logged_problem(log, 0.5, (0.0, 40.0))
    policy = Policy.deterministic(mdp.pairs, [1, 0, 1])
    course = course_of(problem, policy, (0.0, 40.0), None)
    last = np.isin(np.arange(log.num_steps), log.episode_offsets[1:] - 1)
    lost = last & (np.arange(log.num_steps) > log.num_steps / 3)
    unknown = stacks_of(
        replace(log, next_state=np.where(lost, -1, log.next_state), truncated=log.truncated & ~lost)
    )
    cut = [np.flatnonzero(run < 0) for run in np.split(unknown.successor, unknown.offsets[1:-1])]
    sizes = [gone[0] if gone.size else size for gone, size in zip(cut, unknown.sizes, strict=True)]
    kept = np.concatenate(
        [np.arange(first, first + size)
         for first, size in zip(unknown.offsets[:-1], sizes, strict=True)]
    )  # fmt: skip
    shorter = Stacks(
        np.append(0, np.cumsum(sizes)),
        unknown.reward[kept], unknown.successor[kept], unknown.ended[kept], unknown.starts,
    )  # fmt: skip
    ours, theirs, whole = (
        roll_out(stacks, course, np.ones(6, bool), way, Draw(3, 1, 8, 40))
        for stacks in (unknown, shorter, stacks_of(log))
    )
    assert (ours.complete == theirs.complete).all()
    for mine, yours in zip(kinds_of(way.who, ours), kinds_of(way.who, theirs), strict=True):
        assert (mine == yours).all()
    assert 0 < ours.complete.sum() < whole.complete.sum()


def test_a_course_has_the_starts_the_ends_and_what_cuts_count_for():
    counts = Counts.from_dense(
        [[[1, 1], [2, 0]], [[0, 0], [0, 0]]],
        rewards=[[0.0, 0.0], [3.0, 5.0]],
        terminal=[False, True],
    )
    problem = uniform_problem(counts, 0.5, (-2.0, 6.0))
    policy = Policy.from_dense(counts, [[0.5, 0.5], [0.25, 0.75]])
    course = course_of(problem, policy, (-2.0, 6.0), np.array([1.0, 3.0]))
    assert course.start_chances.tolist() == [0.25, 1.0]
    # In either state first what both have in common, then what each has of its own.
    assert course.chances.reshape(2, -1).tolist() == [
        [0.5, 1.0, 1.0, 1.0, 0.25, 0.75, 0.75, 1.0],
        [0.5, 1.0, 1.0, 1.0, 0.25, 0.75, 1.0, 1.0],
    ]
    assert course_of(problem, policy, (-2.0, 6.0), None).start_chances.size == 0
    assert course.at_end.tolist() == [[0.0, 4.5], [0.0, 4.0]]
    assert course.tails.at_pair.tolist() == [[-2.0] * 4, [6.0] * 4]
    assert course.tails.at_state.tolist() == [[-2.0] * 2, [6.0] * 2]


def test_robust_tails_are_what_a_set_proves_within_the_bounds_of_values(monkeypatch):
    # State 0 earns 1 to 2 and goes to state 1; there, one way goes on and one is over.
    pairs, zeros = Pairs(np.array([0, 1, 3]), np.array([0, 0, 1]), 2), np.zeros(3)
    rows = rows_in_balls(
        np.array([0, 1, 2, 2]),
        np.array([1, 0], np.int32),
        np.ones(2),
        zeros,
        np.array([False, False, True]),
        closed=True,
    )
    low, high = (Earnings(np.full(2, r), np.full(3, r), np.full(3, r)) for r in (1.0, 2.0))
    models = RectangularSet(pairs, np.full(3, 0.5), rows, low, high)
    problem = SimpleNamespace(
        value_bounds=(-3.0, 4.0), num_states=2, behavior=Policy.uniform(pairs)
    )
    floors = []

    def valued(state_values):
        def answer(models, policy, floor):
            floors.append(floor.tolist())
            return SimpleNamespace(value=np.array(state_values), error_bound=0.25)

        return answer

    monkeypatch.setattr(module, "worst_value", valued([1.0, -3.0]))
    monkeypatch.setattr(module, "best_value", valued([2.5, 4.0]))
    (tails,) = tails_of_set(problem, [Policy.uniform(pairs)], models)
    assert floors == [[4.0] * 2, [-3.0] * 2]  # of π_b first, which all policies share
    assert tails.at_state.tolist() == [[0.75, -3.0], [2.75, 4.0]]
    slack = 4e-9
    expected = [[1 - 1.5, 1 + 0.375, 1.0], [2 + 2.0, 2 + 1.375, 2.0]]
    expected = np.array(expected) + slack * np.array([[-1.0] * 3, [0.0, 1.0, 1.0]])
    np.testing.assert_allclose(tails.at_pair, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("discount", "steps"),
    [(0.9, (12, 22, 34, 44, 66, None)), (0.5, (2, 4, 6, 7, 10, None)), (0.0, (1,)), (1.0, (None,))],
)
def test_rollouts_are_cut_where_little_is_left(discount, steps):
    assert horizons(discount) == steps
