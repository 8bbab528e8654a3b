"""Claims about the chance to reach unsafe states, by three kinds, where they could fail.

Truths are exact: chances by fractions over all states, and models written down by hand. A claim
that may fail with probability δ is allowed as many failures as one that fails exactly that often
would exceed once in 10⁶ tests. A form that is not valid must fail far more often.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from support.failures import allowed_failures
from support.oracles import solve_exactly
from support.posterior_examples import chunk_of, posterior_gains
from support.problems import logged_problem
from surestep import FiniteMDP, Policy, sample_log
from surestep.certificates import Posterior, Robust, Stitched, certify, drawn
from surestep.certificates.certifying import certify_many, verify
from surestep.certificates.posterior import judged_part, model_draws
from surestep.certificates.stitched import judging_of
from surestep.model.problem import Reach, reaching

DELTA, N = 0.1, 4
START, MIDDLE, UNSAFE, END, HIDDEN = range(5)
UNSAFE_STATES = np.array([False, False, True, False, True])
KINDS = {
    "stitched": Stitched(delta=DELTA, series=48),
    "robust": Robust(delta=DELTA, known_start=True),
    "posterior": Posterior(delta=DELTA, draws=99),
}


def world(careful, bold, hidden=0.0, start=START):
    """Two actions; each leads from the start or the middle to the unsafe state with its chance.

    Whoever was there goes on to the middle, so that logs continue after it. The hidden state is
    reached from the middle by the bold action alone.
    """
    P = np.zeros((5, 2, 5))
    for action, chance in enumerate((careful, bold)):
        gone = hidden if action else 0.0
        P[START, action] = 0.0, 0.9 - chance, chance, 0.1, 0.0
        P[MIDDLE, action] = 0.25, 0.0, chance, 0.75 - chance - gone, gone
        P[UNSAFE, action] = P[HIDDEN, action] = 0.0, 0.5, 0.0, 0.5, 0.0
    R = np.tile([[1.0], [2.0], [-3.0], [0.0], [-9.0]], 2)
    return FiniteMDP.from_dense(P, R, 0.9, start)


def taking(mdp, bold):
    """The policy that takes the bold action with this chance in every state."""
    return Policy(mdp.pairs, np.tile([1 - bold, bold], 5))


def asked(mdp, behavior, reach, episodes=60, seed=0, horizon=12):
    """The problem of the chance, by a log that π_b made."""
    log = sample_log(mdp, behavior, episodes, horizon, seed)
    log = replace(log, reward=log.reward + np.arange(log.num_steps) % 3)  # of no interest here
    counts = replace(log.counts(), terminal=np.arange(5) == END)
    whole = logged_problem(log, 0.9, (-100.0, 100.0), behavior, counts=counts)
    return reaching(whole, reach)


def exact_chance(mdp, policy, reach):
    """The chance to reach the states, by fractions: steps one by one, or equations of the chain."""
    size = mdp.num_states
    chain = [[Fraction(0)] * size for _ in range(size)]
    for k, s in enumerate(mdp.pairs.state):
        for t in range(mdp.offsets[k], mdp.offsets[k + 1]):
            share = Fraction(float(policy.probability[k])) * Fraction(float(mdp.probability[t]))
            chain[s][mdp.successor[t]] += share
    reached = [Fraction(int(unsafe)) for unsafe in reach.states]
    if reach.within is None:
        safe = [s for s in range(size) if not reach.states[s]]
        matrix = [[Fraction(int(s == o)) - chain[s][o] for o in safe] for s in safe]
        right = [sum(chain[s][o] * reached[o] for o in range(size)) for s in safe]
        for s, chance in zip(safe, solve_exactly(matrix, right), strict=True):
            reached[s] = chance
    for _ in range(reach.within or 0):
        reached = [
            reached[s]
            if reach.states[s]
            else sum((chain[s][o] * reached[o] for o in range(size)), Fraction(0))
            for s in range(size)
        ]
    return float(sum(Fraction(float(mdp.initial[s])) * reached[s] for s in range(size)))


def truth_of(mdp, policy, behavior, reach):
    """What is claimed: ρ(π_I), less ρ(π_b) unless it is of π_I alone."""
    before = 0.0 if reach.alone else exact_chance(mdp, behavior, reach)
    return before - exact_chance(mdp, policy, reach)


WORLDS = {
    # of the careful and the bold action, of the hidden state; how bold π_b and π_I are
    "rare": (world(0.02, 0.05), 0.5, 0.1),
    "worse": (world(0.02, 0.10), 0.3, 0.9),
    "hidden": (world(0.02, 0.02, hidden=0.03), 0.05, 1.0),
    "no effect": (world(0.05, 0.05), 0.5, 0.9),
    "starts unsafe": (world(0.02, 0.10, start=[0.9, 0.0, 0.1, 0.0, 0.0]), 0.5, 0.1),
}


@pytest.mark.one_quick
@pytest.mark.parametrize("number", [30, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("within", [N, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "alone"),
    [
        *(("worse", True), ("hidden", False), ("no effect", False)),
        *(
            pytest.param(*easier, marks=pytest.mark.slow)
            for easier in (
                *(("worse", False), ("hidden", True), ("no effect", True)),
                *product(("rare", "starts unsafe"), (False, True)),
            )
        ),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_claims_are_wrong_at_most_as_often_as_they_say(kind, name, within, alone, number):
    mdp, before, after = WORLDS[name]
    behavior, policy = taking(mdp, before), taking(mdp, after)
    reach, certifier = Reach(UNSAFE_STATES, within, alone), KINDS[kind]
    if kind == "robust" and name == "starts unsafe":
        certifier = replace(certifier, known_start=False)
    problems = [asked(mdp, behavior, reach, seed=seed) for seed in range(number)]
    claims = certify_many(problems, [policy] * number, certifier)
    lower = np.array([claim.lower for claim in claims])
    truth = truth_of(mdp, policy, behavior, reach)
    assert (lower > truth).sum() <= allowed_failures(number)
    assert (lower >= -1).all()
    if name == "no effect" and not alone:  # an alarm or a gain where nothing changes
        assert truth == pytest.approx(0.0, abs=1e-12)
        assert (lower > 0).sum() <= allowed_failures(number)
    figures = claims[0].figures
    assert (figures["within"], figures["alone"], figures["discount"]) == (within, alone, 1.0)
    verify(claims[0], problems[0], policy)


def test_stitched_claims_say_something():
    mdp = world(0.01, 0.15)
    behavior, policy = taking(mdp, 0.9), taking(mdp, 0.0)
    for alone, at_least in ((False, 0.0), (True, -0.25)):
        problem = asked(mdp, behavior, Reach(UNSAFE_STATES, N, alone), episodes=1500)
        assert certify(problem, policy, KINDS["stitched"]).lower > at_least


def test_rollouts_that_are_cut_count_as_reached():
    # π_I does what fold 1 never saw, which leads to the unsafe state in half of all cases. To leave
    # out rollouts that are cut would claim that nothing happens, and always be wrong.
    mdp = world(0.0, 0.5)
    behavior, policy = taking(mdp, 0.0), taking(mdp, 0.3)
    reach = Reach(UNSAFE_STATES, 1, True)
    truth, wrong = truth_of(mdp, policy, behavior, reach), 0
    for seed in range(20):
        problem = asked(mdp, behavior, reach, episodes=400, seed=seed)
        claim = certify(problem, policy, KINDS["stitched"])
        assert claim.lower <= truth
        assert 0.2 < claim.figures["cut_share"] < 0.4
        kept = 1 - claim.figures["cut_share"]
        without_cut = claim.figures["estimate"] + (1 - kept)  # each of these paid −1
        wrong += without_cut / kept > truth + 0.1
    assert wrong == 20


@pytest.mark.parametrize(
    ("within", "alone"),
    [
        *((0, False), (3, True), (None, False)),
        *(
            pytest.param(*other, marks=pytest.mark.slow)
            for other in ((0, True), (3, False), (None, True), *product((1, 10), (False, True)))
        ),
    ],
)
def test_kinds_agree_with_exact_chances_where_nearly_all_is_known(within, alone):
    mdp = world(0.05, 0.2, hidden=0.05, start=[0.8, 0.1, 0.1, 0.0, 0.0])
    behavior, policy = taking(mdp, 0.5), taking(mdp, 0.2)
    reach = Reach(UNSAFE_STATES, within, alone)
    problem = asked(mdp, behavior, reach, episodes=20_000)
    truth = truth_of(mdp, policy, behavior, reach)
    for kind, near in {"stitched": 0.02, "posterior": 0.012, "robust": 0.4}.items():
        claim = certify(problem, policy, KINDS[kind])
        assert truth - near <= claim.lower <= truth + 0.012
        if kind == "stitched":
            assert claim.figures["estimate"] == pytest.approx(truth, abs=0.02)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("small", [128, 2])
@pytest.mark.parametrize("kind", ["posterior", "stitched"])
def test_claims_on_a_gpu_are_those_of_the_processor(kind, small, both, monkeypatch):
    monkeypatch.setattr(drawn, "SMALL", small)
    mdp = world(0.1, 0.3)
    problem = asked(mdp, taking(mdp, 0.5), Reach(UNSAFE_STATES, N, True), episodes=12)
    expected, found = both(lambda: certify(problem, taking(mdp, 0.2), KINDS[kind]))
    assert found.lower == pytest.approx(expected.lower, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_policy_does_in_unsafe_states_and_after_n_steps_is_of_no_account(kind):
    mdp = world(0.1, 0.1)
    behavior = taking(mdp, 0.5)
    other = behavior.probability.copy().reshape(5, 2)
    other[[UNSAFE, HIDDEN]] = 1.0, 0.0
    problem = asked(mdp, behavior, Reach(UNSAFE_STATES, N, True), episodes=300)
    same = certify(problem, behavior, KINDS[kind])
    assert -1 < same.lower < 0  # π_b itself is claimed about, too
    assert not same.notes
    claim = certify(problem, Policy(mdp.pairs, other.ravel()), KINDS[kind])
    assert claim.lower == pytest.approx(same.lower, abs=0.05 if kind == "stitched" else 1e-12)
    gain = certify(asked(mdp, behavior, Reach(UNSAFE_STATES, N)), behavior, KINDS[kind])
    assert gain.lower == 0.0
    assert [note.code for note in gain.notes] == ["nothing-changed"]


def test_no_step_is_cut_by_the_number_that_counts_and_all_rounds_are_of_the_policy():
    mdp = world(0.1, 0.3)
    behavior, policy = taking(mdp, 0.5), taking(mdp, 0.4)
    for alone in (False, True):
        problem = asked(mdp, behavior, Reach(UNSAFE_STATES, 2, alone), episodes=300)
        figures = certify(problem, policy, KINDS["stitched"]).figures
        assert figures["cut_share"] == 0.0
        assert (figures["behavior_rounds"] == 0) == alone


def test_ranges_of_other_rewards_change_nothing():
    mdp = world(0.05, 0.2)
    behavior, policy = taking(mdp, 0.5), taking(mdp, 0.2)
    problem = asked(mdp, behavior, Reach(UNSAFE_STATES, N), episodes=200)
    ranges = {"reward_low": 0.0, "reward_high": 5.0}
    more = {
        "stitched": ranges | {"return_low": 0.0, "return_high": 50.0},
        "robust": ranges,
        "posterior": ranges | {"extreme_weight": 1.0, "rewards": "bounded"},
    }
    for kind, certifier in KINDS.items():
        plain, told = (
            certify(problem, policy, one) for one in (certifier, replace(certifier, **more[kind]))
        )
        assert (told.lower, told.assumptions) == (plain.lower, plain.assumptions)


def test_plans_know_unsafe_states_that_only_the_judging_part_ends_in():
    # The unsafe state is an end of the log, which fold 1 never shows: its rollouts still end there.
    mdp = world(0.0, 0.0)
    behavior, policy = taking(mdp, 0.5), taking(mdp, 0.1)
    log = sample_log(mdp, behavior, 100, 12, 0)
    reached = log.next_state.copy()
    reached[log.episode_offsets[-1] - 1] = HIDDEN
    log = replace(log, next_state=reached)
    bounds = (-9.0, 99.0)
    whole = logged_problem(log, 0.9, bounds, behavior)
    problem = reaching(whole, Reach(UNSAFE_STATES))
    certifier = KINDS["stitched"]
    judging = judging_of(certifier, problem, policy)
    over = judging.course.over
    assert over[UNSAFE_STATES].all()
    assert over[END]


def test_a_training_part_expects_bounds_of_chances():
    mdp = world(0.01, 0.15)
    behavior, policy = taking(mdp, 0.9), taking(mdp, 0.0)
    for alone in (False, True):
        problem = asked(mdp, behavior, Reach(UNSAFE_STATES, N, alone), episodes=500)
        for kind, certifier in KINDS.items():
            ((bound, own),) = certifier.choosing_bounds(
                [problem], [[policy, behavior]], lambda _: []
            )
            assert -1 <= bound <= (0.0 if alone else 1.0)
            assert own < 0 if alone else own == 0.0, kind


def dense_draws(problem, settings, policies):
    """Rows [draws, K, S] and starts [draws, S] of the models under the first prior."""
    part = judged_part(settings, problem)
    models = model_draws(part, settings).apart()[0]
    used = ~models.counts.terminal[models.counts.pairs.state] & (policies > 0)
    chunk = chunk_of(models, used, settings.draws)
    rows = np.zeros((settings.draws, used.size, problem.num_states))
    for b, k in np.ndindex(settings.draws, used.size):
        cells = slice(*chunk.ends[b, k : k + 2])
        np.add.at(rows[b, k], chunk.target[b, cells], chunk.share[b, cells])
    return rows, chunk.initial


@pytest.mark.one_quick
@pytest.mark.parametrize("within", [0, 3, None])
@pytest.mark.parametrize("alone", [False, True])
def test_gains_are_those_of_each_drawn_model(within, alone):
    mdp = world(0.1, 0.3)
    behavior, policy = taking(mdp, 0.5), taking(mdp, 0.2)
    problem = asked(mdp, behavior, Reach(UNSAFE_STATES, within, alone), episodes=30)
    settings = Posterior(prior="weight", draws=19, delta=0.2)
    rows, starts = dense_draws(problem, settings, behavior.probability)
    gains = posterior_gains(problem, policy, settings)
    for b in range(settings.draws):
        chances = []
        for chosen in (policy, behavior):
            chain = (chosen.probability[:, np.newaxis] * rows[b]).reshape(5, 2, 5).sum(axis=1)
            reached = UNSAFE_STATES.astype(float)
            for _ in range(5_000 if within is None else within):
                reached = np.where(UNSAFE_STATES, 1.0, chain @ reached)
            chances.append(starts[b] @ reached)
        expected = -chances[0] if alone else chances[1] - chances[0]
        assert gains[b] == pytest.approx(expected, abs=1e-9)


def test_signals_meet_the_same_models_draw_by_draw():
    mdp = world(0.1, 0.3, start=[0.9, 0.0, 0.1, 0.0, 0.0])
    behavior = taking(mdp, 0.5)
    chance = asked(mdp, behavior, Reach(UNSAFE_STATES, N), episodes=80)
    log = chance.log
    value = logged_problem(log, 0.9, (-100.0, 100.0), behavior)
    noisy = Posterior(
        prior="weight", draws=49, rewards="bounded", reward_low=-9.0, reward_high=5.0, seed=3
    )
    plain = Posterior(prior="weight", draws=49, seed=3)
    ours, theirs = (
        dense_draws(problem, settings, behavior.probability)
        for problem, settings in ((value, noisy), (chance, plain))
    )
    left = ~UNSAFE_STATES[mdp.pairs.state]
    np.testing.assert_array_equal(ours[0][:, left], theirs[0][:, left])
    np.testing.assert_array_equal(ours[1], theirs[1])
