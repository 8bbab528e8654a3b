"""N∧ chosen by a certificate: the best of a grid on the same draws is wrong too often, ours not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.chosen import chosen_spibb
from support.posterior_examples import posterior_gains
from support.problems import logged_problem
from surestep import Counts, FiniteMDP, Policy, Problem, certify, sample_log
from surestep.algorithms import SPIBB, BasicRL, BetaSPIBB, Constrained, Provable
from surestep.algorithms.contract import Limits
from surestep.candidates import (
    MIXED,
    ONE_ACTION,
    Tried,
    best_of,
    n_wedge_of,
    with_one_action,
)
from surestep.certificates import (
    APriori,
    Posterior,
    Robust,
    Stitched,
    Trajectory,
    training_part,
)
from surestep.certificates.episodes import training_for
from surestep.certificates.posterior import CHOOSING
from surestep.certificates.registry import certifier_for
from surestep.choosing_n_wedge import AutoNWedge, usual_grid
from surestep.choosing_within_limits import ConstrainedChoice, Outlook, best_promise
from surestep.errors import CertificateRefused, InvalidParameter, NotConverged
from surestep.model import Pairs
from surestep.model.batch import ProblemBatch
from surestep.model.known import Known
from surestep.model.problem import Signal
from surestep.rehearsal import Rate

VISITS = [1000, 42, 40, 38, 36, 34, 32, 30, 28, 26]
WINS = [500, 25, 24, 23, 22, 21, 20, 19, 18, 17]  # the fewer the visits, the better it looks
GRID = [visits - 1 for visits in VISITS[1:]]


def arms():
    """One decision: an arm that π_b nearly always takes, and nine that look better and better.

    Every N∧ of the grid trusts one arm more, and moves nearly all weight to it: the gains of the
    candidates are as good as independent.
    """
    table, rewards = np.zeros((3, 10, 3), int), np.zeros((3, 10, 3))
    table[0, :, 1], table[0, :, 2] = WINS, np.subtract(VISITS, WINS)
    rewards[0, :, 1] = 1.0
    counts = Counts.from_dense(
        table, rewards=rewards, starts=[sum(VISITS), 0, 0], terminal=[False, True, True]
    )
    mostly = np.full((3, 10), 0.1)
    mostly[0] = [0.991, *[0.001] * 9]
    behavior = Policy.from_dense(counts, mostly)
    return Problem(counts=counts, behavior=behavior, discount=0.5, value_bounds=(0.0, 1.0))


@pytest.mark.slow
def test_the_best_of_a_grid_on_the_same_draws_is_wrong_too_often_and_ours_is_not():
    """Given the data, the truth is one more draw from the posterior: both rates are exact."""
    problem, trials = arms(), 150
    certifier = Posterior(prior="weight", prior_weight=1.0, draws=9, starts="known")
    policies = [SPIBB(n_wedge=n_wedge).improve(problem).policy for n_wedge in GRID]
    assert len({policy.probability.tobytes() for policy in policies}) == len(GRID)
    truth = posterior_gains(problem, policies, replace(certifier, draws=trials, seed=10**6))
    spoilt, fresh = [], []
    for trial in range(trials):
        once = replace(certifier, seed=2 * trial)
        lower = posterior_gains(problem, policies, once).min(axis=1)  # rank 1 of 9 draws
        spoilt.append(truth[lower.argmax(), trial] < lower.max())
        chosen = chosen_spibb(problem, once, GRID)
        claim = chosen.certificate
        fresh.append(truth[GRID.index(chosen.n_wedge), trial] < claim.lower)
    assert Rate.of(np.array(spoilt)).low > 0.15
    assert Rate.of(np.array(fresh)).low <= 0.1


def test_a_posterior_chooses_with_one_seed_and_certifies_with_its_own():
    problem, certifier = arms(), Posterior(starts="known", draws=99, seed=4)
    chosen = chosen_spibb(problem, certifier, GRID)
    assert chosen.certificate == certify(problem, chosen.policy, certifier)
    others = [
        certify(
            problem,
            SPIBB(n_wedge=n).improve(problem).policy,
            replace(certifier, seed=(4 + CHOOSING) % 2**63),
        ).lower
        for n in GRID
    ]
    assert chosen.lower == tuple(others)
    assert chosen.n_wedge == GRID[int(np.argmax(others))]
    last = replace(certifier, seed=2**63 - 1)  # the next one is 0 again
    assert chosen_spibb(problem, last, GRID[:1]).certificate.delta == 0.1


def test_a_robust_certificate_chooses_and_certifies_with_the_same_data():
    problem, certifier = arms(), Robust(known_start=True)
    chosen = chosen_spibb(problem, certifier, [*GRID, 10**6])
    assert chosen.certificate == certify(problem, chosen.policy, certifier)
    assert chosen.certificate.lower == max(chosen.lower)
    assert chosen.n_wedge == 10**6  # nobody can be sure of these arms, and π_b loses nothing
    assert chosen.certificate.lower == 0
    # Of equal bounds, the most careful candidate wins.
    assert chosen_spibb(problem, certifier, [2000, 10**6, 3000]).n_wedge == 10**6


def test_another_judge_chooses_only_where_no_candidate_promises_a_gain():
    problem, grid = arms(), (*GRID, 10**6)
    proof, belief = Robust(known_start=True), Posterior(starts="known", delta=0.4, draws=99)
    spibb = SPIBB(n_wedge=1)
    alone = AutoNWedge(algorithm=spibb, certifier=proof, grid=grid).choose(problem)
    assert max(each.lower for each in alone.candidates) == 0  # that of π_b
    assert n_wedge_of(alone.best.tried.algorithm) == 10**6
    both = AutoNWedge(algorithm=spibb, certifier=proof, grid=grid, otherwise=belief)
    believed = AutoNWedge(algorithm=spibb, certifier=belief, grid=grid).choose(problem)
    found = both.choose(problem)
    assert believed.best.lower > 0
    assert (found.chosen_by, found.taken) == (belief, believed.taken)
    assert [each.lower for each in found.candidates] == [each.lower for each in believed.candidates]
    # The other way round a gain is expected at once, and nobody else is asked.
    first = replace(both, certifier=belief, otherwise=proof).choose(problem)
    assert (first.chosen_by, first.taken) == (belief, believed.taken)


def test_where_all_candidates_of_both_judges_are_refused_so_is_the_choice():
    problem = logged()
    beyond = Robust(reward_low=2.0, reward_high=3.0)
    both = AutoNWedge(algorithm=SPIBB(n_wedge=1), certifier=beyond, otherwise=Posterior())
    assert both.choose(problem).chosen_by == Posterior()
    with pytest.raises(CertificateRefused):
        replace(both, otherwise=beyond).choose(problem)
    with pytest.raises(InvalidParameter, match="otherwise is of type APriori, expected"):
        replace(both, otherwise=APriori())


def logged():
    P, R = np.zeros((3, 2, 3)), np.zeros((3, 2, 3))
    P[0, 0, 1:], P[0, 1, 1:] = [0.7, 0.3], [0.2, 0.8]
    R[0, :, 2] = 1.0
    mdp = FiniteMDP.from_dense(P, R, 0.9)
    log = sample_log(mdp, Policy.uniform(mdp), 400, 5, np.random.default_rng(0))
    return logged_problem(log, 0.9, (0.0, 1.0))


def test_trajectories_of_the_test_part_have_no_say_in_the_choice():
    problem = logged()
    judge = Trajectory(train_share=0.5, reward_low=0.0, reward_high=1.0)
    chosen = chosen_spibb(problem, judge, [5, 10**6])
    assert chosen.n_wedge == 5
    training = training_part(problem, judge.train_share, judge.seed)
    assert chosen.policy == SPIBB(n_wedge=5).improve(training).policy
    assert chosen.certificate == certify(problem, chosen.policy, judge)
    assert chosen.certificate.lower > 0
    # Other outcomes in the test part: another claim about the same choice.
    again = chosen_spibb(with_other_test_part(problem, judge), judge, [5, 10**6])
    assert (again.n_wedge, again.lower, again.policy) == (5, chosen.lower, chosen.policy)
    assert again.certificate.lower < 0 < chosen.certificate.lower


def with_other_test_part(problem, judge):
    """The problem in which every test episode, all of one step, came out the other way."""
    log = problem.log
    order = np.random.default_rng(judge.seed).permutation(log.num_episodes)
    test = order[round(judge.train_share * log.num_episodes) :]
    next_state, reward = log.next_state.copy(), log.reward.copy()
    next_state[test], reward[test] = 3 - next_state[test], 1.0 - reward[test]
    other = replace(log, next_state=next_state, reward=reward)
    return replace(problem, log=other, counts=other.counts())


def test_an_algorithm_that_chooses_gives_what_its_best_candidate_gives():
    problem, certifier = arms(), Posterior(starts="known", draws=99)
    auto = AutoNWedge(algorithm=SPIBB(n_wedge=7), certifier=certifier)
    choice = auto.choose(problem)
    tried = [n_wedge_of(each.tried.algorithm) for each in choice.candidates]
    assert tried == [*usual_grid(max(VISITS))]
    assert choice.candidates[-1].improvement.policy == problem.behavior
    assert choice.candidates[-1].lower == 0.0 <= choice.best.lower  # π_b is a candidate
    best = choice.best.tried.algorithm.improve(problem)
    assert auto.improve(problem).policy == best.policy == choice.best.improvement.policy
    assert auto.name == "spibb"


def test_converted_n_wedges_are_chosen_too():
    auto = AutoNWedge(
        algorithm=BetaSPIBB(spibb_n_wedge=1), certifier=Robust(known_start=True), grid=(10, 10**6)
    )
    assert n_wedge_of(auto.choose(arms()).best.tried.algorithm) == 10**6


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"algorithm": "spibb"}, "algorithm is 'spibb', expected one of"),
        ({"algorithm": BasicRL()}, r"algorithm is BasicRL\(.*that has an N∧"),
        ({"certifier": APriori()}, "certifier is of type APriori"),
        ({"grid": 3}, "grid is 3, expected several numbers"),
        ({"grid": [3, -1]}, "n_wedge is -1"),
        ({"grid": [2.5]}, r"n_wedge is 2\.5"),
    ],
)
def test_what_cannot_choose_is_refused(given, words):
    settings = {"algorithm": SPIBB(n_wedge=1), "certifier": Robust()} | given
    with pytest.raises(InvalidParameter, match=words):
        AutoNWedge(**settings)


def paired_arms():
    """Two decisions in a row, of which one arm is better each; a log of them."""
    P, R = np.zeros((4, 3, 4)), np.zeros((4, 3, 4))
    P[0, :, 1] = P[1, :, 2] = [0.3, 0.4, 0.8]
    P[0, :, 3] = P[1, :, 3] = [0.7, 0.6, 0.2]
    R[1, :, 2] = 1.0
    mdp = FiniteMDP.from_dense(P, R, 0.9)
    behavior = Policy.from_dense(mdp, np.tile([0.5, 0.3, 0.2], (4, 1)))
    log = sample_log(mdp, behavior, 600, 5, np.random.default_rng(0))
    return logged_problem(log, 0.9, (0.0, 1.0), behavior)


def test_candidates_beside_are_scored_with_one_action_too():
    problem, judge = paired_arms(), Stitched(return_low=0.0, return_high=1.0)
    part = training_for(problem, judge)
    limits = Limits(least_visits=10, allowed=np.tile([False, True, True], 4))
    auto = AutoNWedge(
        algorithm=SPIBB(n_wedge=9), certifier=judge, least=9, limits=limits,
        beside=(Provable(rounds=5), Provable(rounds=20)), one_action=True,
    )  # fmt: skip
    choice = auto.choose(part)
    number = len(auto.algorithms(int(part.counts.visits.max())))
    assert [each.tried.size for each in choice.candidates] == [MIXED] * number + [
        ONE_ACTION
    ] * number
    names = [each.tried.algorithm.name for each in choice.candidates]
    assert names[number - 2 : number] == ["provable", "provable"]
    policies = [each.improvement.policy for each in choice.candidates]
    (lower,) = judge.choosing_bounds([part], [policies], None)
    assert [each.lower for each in choice.candidates] == lower
    for each in choice.candidates:
        gained = each.improvement.policy.probability - part.behavior.probability
        assert (gained <= 1e-9)[limits.closed(part.counts)].all()
        algorithm = each.tried.algorithm
        assert (n_wedge_of(algorithm) is None) == (algorithm.name == "provable")
    assert choice.best.lower > 0
    # Many data sets at once choose as each by itself does.
    batch = ProblemBatch.from_problems([part, part])
    for chosen in auto.choose_batch(batch, [part, part]):
        np.testing.assert_allclose(chosen, choice.best.improvement.policy.probability, atol=1e-9)


def test_one_action_takes_the_most_likely_of_those_that_gain():
    pairs = Pairs.full(4, 3)
    behavior = Policy(pairs, np.array([0.6, 0.2, 0.2] * 4))
    probability = [0.7, 0.3, 0.0, 0.4, 0.3, 0.3, 0.6, 0.2, 0.2, 0.3, 0.4, 0.3]
    found = with_one_action(Policy(pairs, np.array(probability)), behavior).dense()
    expected = [[1, 0, 0], [0, 1, 0], [0.6, 0.2, 0.2], [0, 1, 0]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("lower", "expected"),
    [
        ([0.5, 1.0, 0.2, 0.85], 1),
        ([0.5, 1.0, 0.2, 0.9], 3),
        ([0.5, 1.0, 0.95, 0.91], 2),
        ([0.5, 1.0, 2.0, 0.91], 2),
        ([-1.0, 0.0, -2.0, 0.0], 1),  # nothing is gained: the largest N∧
        ([CertificateRefused("no", code="no"), -1.0, -0.95, -2.0], 2),
    ],
)
def test_one_action_is_taken_where_it_promises_nine_tenths_of_the_best(lower, expected):
    algorithms = [SPIBB(n_wedge=5), SPIBB(n_wedge=20)]
    none = paired_arms().behavior
    tried = [Tried(one, none, size) for size in (MIXED, ONE_ACTION) for one in algorithms]
    assert best_of(tried, lower) == expected
    assert best_of(tried[:2], lower[:2]) == 1  # without such candidates


OUTLOOKS = st.tuples(
    st.sampled_from([-0.2, -0.1, 0.0]),
    st.sampled_from([-1.0, 0.0, 0.5, 0.9, 0.95, 1.0]),
    st.sampled_from([0.0, 0.1, 0.2]),
)


@given(st.lists(st.tuples(OUTLOOKS, st.sampled_from([2.0, 3.0, ONE_ACTION, MIXED])), min_size=1))
def test_within_limits_the_smallest_that_promises_nine_tenths_is_taken(cases):
    promised = [Outlook(*outlook) for outlook, _ in cases]
    sizes = [size for _, size in cases]
    taken = best_promise(promised, sizes)
    kept = [i for i, one in enumerate(promised) if one.kept == 0]
    most = max((promised[i].first for i in kept), default=-1.0)
    if most <= 0:  # no gain within limits: whoever comes nearest to them, then the largest gain
        assert promised[taken][:2] == max(one[:2] for one in promised)
        return
    near = [i for i in kept if promised[i].first >= 0.9 * most]
    assert taken in near
    assert sizes[taken] == min(sizes[i] for i in near)
    alike = [i for i in near if sizes[i] == sizes[taken]]
    assert promised[taken].spare == max(promised[i].spare for i in alike)


def test_where_one_beside_finds_nothing_the_current_policy_stands_in_for_it(monkeypatch):
    problem, judge = paired_arms(), Stitched(return_low=0.0, return_high=1.0)
    auto = AutoNWedge(
        algorithm=SPIBB(n_wedge=9), certifier=judge, beside=(Provable(),), one_action=True
    )

    def fails(self, problem):
        raise NotConverged("no")

    monkeypatch.setattr(Provable, "improve", fails)
    part = training_for(problem, judge)
    choice = auto.choose(part)
    stands_in = [each for each in choice.candidates if each.tried.algorithm.name == "provable"]
    assert [each.improvement.policy for each in stands_in] == [part.behavior] * 2
    assert n_wedge_of(choice.best.tried.algorithm) is not None
    with pytest.raises(NotConverged):
        auto.improvement(replace(auto.beside[0], rounds=3), part)


def in_both(opposed=1.0, margin=0.0):
    """The arms of `paired_arms`, and a second signal: the last arm pays, the middle one costs."""
    problem = paired_arms()
    reward = np.array([0.0, opposed, -opposed])[problem.log.action] * 0.1
    log = replace(problem.log, reward=reward)
    second = replace(problem, log=log, counts=log.counts(), value_bounds=(-0.2, 0.2))
    known = Known(returns=(-0.2, 0.2))
    return replace(
        problem, signals=(Signal(name="second", problem=second, margin=margin, known=known),)
    )


def test_constrained_policies_are_chosen_by_what_is_expected_of_all_signals():
    judge = Stitched(return_low=0.0, return_high=1.0)
    for margin in (0.0, 0.15):
        part = training_for(in_both(margin=margin), judge)
        (signal,) = part.signals
        own = certifier_for(judge, signal)
        assert (own.return_low, own.return_high) == (-0.2, 0.2)
        choice = ConstrainedChoice(
            algorithm=Constrained(n_wedge=9), certifier=judge, rounds=(20, 80)
        ).choose(part)
        policies = [each.improvement.policy for each in choice.candidates]
        assert policies[0] == part.behavior
        (first,) = judge.choosing_bounds([part], [policies], None)
        (second,) = own.choosing_bounds([signal.problem], [policies], None)
        assert [each.lower for each in choice.candidates] == first
        short = [max(0.0, -margin - bound) for bound in second]
        best = max(range(len(first)), key=lambda i: (-short[i], first[i]))
        assert choice.taken == best
        made = choice.best.improvement
        assert made.n_wedge == 9
        assert len(made.kept_by) == 12
        assert choice.best.lower > 0
    # With enough to spare, the limit of the second signal is expected to be proved.
    assert second[1] < -margin < second[5]


def test_without_a_proof_beliefs_choose_among_constrained_policies():
    part = in_both(opposed=-1.0)
    choice = ConstrainedChoice(
        algorithm=Constrained(n_wedge=9), certifier=Robust(reward_low=0.0, reward_high=1.0),
        otherwise=Posterior(), rounds=(20,),
        limits=Limits(allowed=np.tile([True, False, True], 4)),
    ).choose(part)  # fmt: skip
    assert isinstance(choice.chosen_by, Posterior)
    gained = choice.best.improvement.policy.dense() - part.behavior.dense()
    assert (gained[:, 1] == 0).all()
    assert certifier_for(Robust(reward_low=0.0, reward_high=1.0), part.signals[0]) == Robust()
