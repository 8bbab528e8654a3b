"""Whole rehearsals on small problems: deterministic, honest about bad priors, and refusing."""

import sys
from dataclasses import dataclass, replace
from inspect import signature
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from support.known_worlds import ARMS, bandit, bandit_problem
from support.problems import logged_problem, uniform_problem
from surestep import Counts, DecisionLog, Pairs, evaluate
from surestep.algorithms import HCPI, SPIBB, LowerSPIBB
from surestep.certificates import (
    APriori,
    Posterior,
    Robust,
    Stitched,
    Trajectory,
    certify,
    training_part,
)
from surestep.choosing_n_wedge import AutoNWedge
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.rehearsal import (
    Calibration,
    Completed,
    DrawnFromPosterior,
    EpisodeBootstrap,
    calibrate,
    rehearsal_from_json,
    rehearse,
)
from surestep.rehearsal.rehearse import (
    LUCK,
    REPORTING,
    SIZES,
    RehearsalPlan,
    claims_of_rank,
    equal_actions,
    read_sizes,
    run_block,
    tolerance_of,
)
from surestep.rehearsal.sources import DataSize, problem_of
from surestep.rehearsal.worlds import ActionsAlike

REHEARSING = sys.modules[rehearse.__module__]
POSTERIOR = Posterior(starts="known", prior="weight", draws=199)
FAMILY = (DrawnFromPosterior("jeffreys"), EpisodeBootstrap())
HELD_OUT = Posterior(draws=99, train_share=0.4, logger="fixed")


def run(problem, certifier, seed=0, **settings):
    defaults = {"worlds": 20, "sizes": (0.5, 1.0, 4.0), "algorithm": SPIBB(n_wedge=3)}
    settings = defaults | settings
    algorithm = settings.pop("algorithm")
    return rehearse(problem, algorithm, certifier, rng=np.random.default_rng(seed), **settings)


@pytest.mark.slow  # test_parallel.py has two workers too
def test_the_number_of_workers_decides_nothing():
    terms = {"family": FAMILY, "worlds": 10, "sizes": (1.0,)}
    one, two = (run(bandit_problem(30), POSTERIOR, workers=n, **terms) for n in (1, 2))
    assert one.to_json() == two.to_json()


@pytest.mark.thorough
def test_a_seed_decides_everything():
    problem, terms = bandit_problem(30), {"family": FAMILY, "worlds": 10, "sizes": (1.0,)}
    found = run(problem, POSTERIOR, **terms)
    assert run(problem, POSTERIOR, seed=1, **terms).to_json() != found.to_json()
    seeded = rehearse(problem, SPIBB(n_wedge=3), POSTERIOR, rng=0, **terms)
    assert seeded.to_json() == found.to_json()


def test_a_world_does_not_depend_on_the_others():
    problem = bandit_problem(30)
    family = (Completed("uniform"), DrawnFromPosterior("jeffreys"))
    few, many = (run(problem, Robust(), family=family, worlds=worlds) for worlds in (3, 12))
    for kind in (0, 1):
        np.testing.assert_array_equal(
            few.gain[few.member == kind], many.gain[many.member == kind][:3]
        )


@pytest.mark.parametrize("certifier", [POSTERIOR, Trajectory(reward_low=0.0, reward_high=1.0)])
def test_data_that_are_too_many_to_hold_are_judged_one_after_the_other(certifier, monkeypatch):
    terms = {"family": (Completed("uniform"),), "worlds": 9, "sizes": (1.0, 2.0)}
    problem = bandit_problem(30)
    together = run(problem, certifier, **terms)
    monkeypatch.setattr(REHEARSING, "MOST_AT_ONCE", 1)
    alone = run(problem, certifier, **terms)
    np.testing.assert_allclose(alone.gain, together.gain, atol=1e-12)
    np.testing.assert_array_equal(alone.claim, together.claim)


@pytest.mark.parametrize(("whole", "groups"), [(False, [4, 2]), (True, [2, 1, 1, 1, 1])])
def test_as_many_data_are_held_at_a_time_as_there_is_room_for(whole, groups, monkeypatch):
    problem = bandit_problem(40)
    judge = Trajectory(reward_low=0.0, reward_high=1.0) if whole else POSTERIOR
    plan = RehearsalPlan(problem, SPIBB(n_wedge=3), judge, None, (Completed("uniform"),), 7, 3)
    (block,) = plan.blocks(REPORTING, ())
    world = block.kind.world(problem, block.rng(0, 0))
    each = world.truth.successor.size
    monkeypatch.setattr(REHEARSING, "MOST_AT_ONCE", 4 * each + (80 - 2 * each if whole else 0))
    sizes = [DataSize(40, 9)] * 2 + [DataSize(90, 9), DataSize(1, 90)] * 2
    sources = [REHEARSING.Source(world, size, block.rng(0, 1)) for size in sizes]
    assert [*map(len, REHEARSING.at_once(plan, sources))] == groups


@pytest.mark.parametrize("algorithm", [SPIBB(n_wedge=3), LowerSPIBB(n_wedge=3)])
def test_gains_and_claims_are_those_of_improve_and_certify(algorithm):
    problem = bandit_problem(40)
    kind, sizes = DrawnFromPosterior("weight", 2.0), (DataSize(40, 1), DataSize(90, 1))
    plan = RehearsalPlan(problem, algorithm, POSTERIOR, None, (kind,), 7, 6)
    block = plan.blocks(REPORTING, sizes)[0]._replace(first=2, last=6)
    found = run_block(block)
    for (b, number), (z, size) in product(enumerate(range(2, 6)), enumerate(sizes)):
        world = kind.world(problem, block.rng(number, 0))
        rng = block.rng(number, 1 + z)
        posed = problem_of(problem, world.truth, world.collect(*size, rng))
        policy = algorithm.improve(posed).policy
        values = [
            evaluate(world.truth, each) @ world.truth.initial for each in (policy, problem.behavior)
        ]
        assert found.gain[b, z] == pytest.approx(values[0] - values[1], abs=1e-9)
        seed = int(rng.integers(2**63 - 1))
        certificate = certify(posed, policy, replace(POSTERIOR, seed=seed))
        assert found.claim[b, z] == certificate.lower
        assert found.draws[b, z, POSTERIOR.rank - 1] == certificate.lower


@pytest.mark.parametrize(
    "certifier",
    [
        Trajectory(reward_low=0.0, reward_high=1.0, train_share=0.4, seed=3),
        Robust(reward_low=0.0, reward_high=1.0),
        HELD_OUT,
    ],
)
def test_beliefs_are_those_of_the_data_that_chose_no_policy(certifier):
    """The part that chooses is the one that is not judged by, whoever holds the rest out."""
    problem, algorithm = bandit_problem(40), SPIBB(n_wedge=2)
    kind, size = DrawnFromPosterior("weight", 2.0), DataSize(40, 1)
    plan = RehearsalPlan(problem, algorithm, certifier, HELD_OUT, (kind,), 7, 3)
    (block,) = plan.blocks(REPORTING, (size,))
    found = run_block(block)
    changed = 0
    for number in range(3):
        world = kind.world(problem, block.rng(number, 0))
        rng = block.rng(number, 1)
        posed = problem_of(problem, world.truth, world.record(*size, rng))
        seed = int(rng.integers(2**63 - 1))
        policy = algorithm.improve(training_part(posed, 0.4, seed)).policy
        changed += policy != algorithm.improve(posed).policy
        values = [
            evaluate(world.truth, each) @ world.truth.initial for each in (policy, problem.behavior)
        ]
        assert found.gain[number, 0] == pytest.approx(values[0] - values[1], abs=1e-9)
        belief = certify(posed, policy, replace(HELD_OUT, seed=seed))
        assert found.belief[number, 0] == belief.lower
        if isinstance(certifier, Robust):
            assert found.claim[number, 0] == certify(posed, policy, certifier).lower
    assert changed


@pytest.mark.thorough
def test_where_nothing_is_held_out_a_belief_beside_changes_nothing():
    problem = bandit_problem(30)
    alone, beside = (
        run(problem, Robust(), worlds=4, sizes=(1.0,), belief=belief)
        for belief in (None, Posterior(draws=99))
    )
    for name in ("gain", "claim", "luck", "outside"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(beside, name))
    assert np.isnan(alone.belief).all()
    assert np.isnan(alone.lucky_belief).all()
    assert alone.wrong_beliefs is None
    assert np.isfinite(beside.belief).all()
    # Beliefs of a posterior that is stood by are its claims.
    own = run(problem, POSTERIOR, worlds=9, sizes=(1.0,))
    np.testing.assert_array_equal(own.belief, own.claim)
    np.testing.assert_array_equal(own.lucky_belief, own.luck)


def test_luck_is_what_is_claimed_beyond_the_truth():
    """Where all actions are alike, known rewards still differ: a claim of that gain is no luck."""
    known = np.zeros((3, ARMS))
    known[0] = [0.0, 0.1, 0.2, 0.9]
    problem = bandit_problem(40, rewards=known)
    found = run(problem, Robust(known_start=True), worlds=3, sizes=(1.0,))
    assert (found.gain > 0.5).all()
    assert found.luck.size == 10  # at the least
    assert ((found.luck > -0.6) & (found.luck < 0)).all()  # most of the gain is claimed


def test_where_actions_tell_nothing_of_noisy_rewards_nothing_would_be_certified():
    """Means of pairs differ by luck, and with exact rewards four of five worlds certified that."""
    rng = np.random.default_rng(1)
    over = np.ones(1000, np.bool_)
    log = DecisionLog(
        *(Pairs.full(6, 4), rng.integers(5, size=1000), rng.integers(4, size=1000)),
        (rng.random(1000) < 0.3).astype(float),
        *(np.full(1000, 5), over, ~over, np.arange(1001)),
    )
    judge = Stitched(return_low=0.0, return_high=1.0)
    terms = {"worlds": 3, "sizes": (1.0,), "algorithm": SPIBB(n_wedge=5)}
    found = run(logged_problem(log, 0.9, (0.0, 1.0)), judge, **terms)
    assert (found.claim > 0).sum() <= 1  # of 18


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 0.0), (-2.0, 3.0)])
def test_luck_has_noise_where_the_certificate_expects_some(bounds):
    low, high = bounds
    noisy = replace(POSTERIOR, rewards="bounded", reward_low=low, reward_high=high)
    for judges in ((noisy, None), (Robust(), noisy)):
        assert equal_actions(bandit_problem(10), judges) == ActionsAlike(bounds)
        known = bandit_problem(10, rewards=bandit().dense().R)
        assert equal_actions(known, judges) == ActionsAlike()
    exact = replace(noisy, rewards="deterministic")
    assert equal_actions(bandit_problem(10), (exact, None)) == ActionsAlike()
    assert equal_actions(bandit_problem(10), (Robust(), exact)) == ActionsAlike()
    assert equal_actions(bandit_problem(10), (Robust(), None)) == ActionsAlike()


def plan_of(problem, worlds, *kinds):
    return RehearsalPlan(problem, SPIBB(n_wedge=3), POSTERIOR, None, kinds, 7, worlds)


def test_every_stage_has_worlds_of_its_own():
    plan = plan_of(bandit_problem(10), 3, Completed("self-loop"), Completed("optimistic"))
    draws = [
        block.rng(world, part).random()
        for stage in (REHEARSING.CALIBRATING, REPORTING, LUCK)
        for block in plan.blocks(stage, (DataSize(1, 1),))
        for world in range(3)
        for part in range(2)
    ]
    assert len(set(draws)) == len(draws) == (1 + 2 + 2) * 6  # optimistic ones do not calibrate


@pytest.mark.parametrize(
    ("worlds", "states", "device", "last"),
    [
        (1, 3, "cpu", [1]),
        (5, 3, "cpu", [5]),
        (6, 3, "cpu", [5, 6]),
        (10, 128, "cpu", [5, 10]),
        (3, 129, "cpu", [1, 2, 3]),  # worlds of many states are worked on one by one
        (600, 3, "a GPU", [250, 500, 600]),
    ],
)
def test_blocks_hold_every_world_once(worlds, states, device, last, monkeypatch):
    monkeypatch.setattr(sys.modules[RehearsalPlan.__module__], "device_in_use", lambda: device)
    plan = plan_of(bandit_problem(10), worlds, Completed("self-loop"))
    blocks = plan._replace(problem=SimpleNamespace(num_states=states)).blocks(LUCK, ())
    assert [block.last for block in blocks] == last
    assert [block.first for block in blocks] == [0, *last[:-1]]


def test_claims_of_the_calibrated_rank_are_those_of_the_draw():
    draws = np.arange(24.0).reshape(2, 3, 4)  # worlds, sizes, draws
    outcome = REHEARSING.Outcomes(*np.zeros((2, 2, 3)), draws, *np.zeros((2, 2, 3)))
    calibration = Calibration(4, 3, (2, 4), ("one", "two"))
    assert claims_of_rank(calibration, [outcome]).tolist() == draws[:, :, 1].tolist()
    assert claims_of_rank(replace(calibration, ranks=(0, 4)), [outcome]) is None
    assert claims_of_rank(None, [outcome]) is None


def test_what_counts_as_equal_is_a_share_of_the_largest_value():
    problem = bandit_problem(10)
    assert tolerance_of(replace(problem, value_bounds=(-4.0, 2.0))) == 4e-9
    assert tolerance_of(replace(problem, value_bounds=(0.0, 2.0))) == 2e-9
    assert 0 < tolerance_of(replace(problem, value_bounds=(0.0, 0.0))) < 1e-300


def test_there_are_a_hundred_worlds_at_half_to_ten_times_the_data_unless_others_are_asked_for():
    assert SIZES == (0.5, 1.0, 2.0, 5.0, 10.0)
    for function in (rehearse, calibrate):
        assert signature(function).parameters["worlds"].default == 100


def test_a_refusal_in_a_world_is_no_claim():
    problem = bandit_problem(30)
    noisy = replace(POSTERIOR, rewards="bounded", reward_low=2.0, reward_high=3.0)
    behavior = problem.behavior.probability[np.newaxis]
    claims, draws = REHEARSING.claims_and_draws([noisy], [problem], behavior)
    assert np.isnan(claims).all()
    assert np.isnan(draws).all()
    found = run(problem, APriori(n_wedge=10**6), sizes=(1.0,))  # SPIBB changes what it must not
    assert found.summary().refused.share == 1.0
    assert found.summary().violated.happened == 0
    assert found.summary().median_claim is None


@pytest.mark.thorough
def test_whole_episodes_are_rehearsed_with_their_log():
    problem = bandit_problem(60)
    judge = Trajectory(reward_low=0.0, reward_high=1.0, train_share=0.5)
    found = run(problem, judge, worlds=10, sizes=(1.0, 10.0))
    assert found.calibration is None
    assert found.summary(10.0).refused.happened == 0
    assert found.summary(10.0).violated.share <= 0.2
    assert found.summary(10.0).mean_gain > 0.1
    hcpi = run(problem, Robust(known_start=True, reward_low=0.0, reward_high=1.0),
               worlds=3, sizes=(1.0,), algorithm=HCPI(), family=(EpisodeBootstrap(),))  # fmt: skip
    assert hcpi.gain.shape == (3, 1)


@pytest.mark.thorough
def test_a_prior_that_weighs_nothing_is_caught():
    """With next to no prior, what few episodes show is certain, and so is the gain."""
    problem = bandit_problem(24)
    naive = Posterior(prior="weight", prior_weight=1e-3, starts="known")
    family = (DrawnFromPosterior("weight", 5.0),)
    greedy = SPIBB(n_wedge=0)
    caught = run(problem, naive, family=family, worlds=100, sizes=(1.0,), algorithm=greedy)
    assert caught.summary().violated.low > 0.1
    assert caught.calibration.rank < caught.calibration.rank_of_prior
    if caught.calibration.rank == 0:
        assert caught.calibrated_claim is None
        with pytest.raises(CertificateRefused, match="even the least of 99 draws"):
            caught.calibration.applied_to(naive)
    else:
        assert caught.summary().calibrated_violated.share < caught.summary().violated.share


@pytest.mark.slow
def test_the_right_prior_is_left_alone():
    """Rows of weight 200 hardly learn from 24 episodes: worlds are draws from the prior itself."""
    problem = bandit_problem(24, rewards=bandit().dense().R)
    right = Posterior(prior="weight", prior_weight=200.0, starts="known")
    family = (DrawnFromPosterior("weight", 200.0),)
    found = run(problem, right, family=family, worlds=200, sizes=(1.0,))
    assert found.summary().violated.low <= 0.1 <= found.summary().violated.high
    assert found.calibration.rank >= 5  # by chance it may lose a little


def test_robust_claims_hold_in_worlds_of_every_kind():
    robust = Robust(known_start=True, reward_low=0.0, reward_high=1.0)
    found = run(bandit_problem(100), robust, worlds=10, sizes=(1.0,))
    assert found.calibration is None
    assert found.summary().violated.low <= 0.1
    assert found.summary().refused.happened == 0


@pytest.mark.slow
def test_with_more_data_there_is_less_harm_and_more_is_certified():
    family = (Completed("self-loop"), DrawnFromPosterior("jeffreys"))
    found = run(
        bandit_problem(40), POSTERIOR, family=family, worlds=50, sizes=(0.25, 1.0, 16.0),
        algorithm=SPIBB(n_wedge=0),
    )  # fmt: skip
    few, same, many = (found.summary(size) for size in found.sizes)
    assert many.harmed.high < few.harmed.low
    assert few.certified.high < many.certified.low
    assert few.mean_gain < same.mean_gain < many.mean_gain
    power = found.power()
    assert power[0] <= power[1] <= power[2]
    assert found.episodes == (10, 40, 640)


def test_bounds_that_a_world_breaks_are_reported():
    problem = replace(bandit_problem(30), value_bounds=(0.0, 0.3))
    found = run(problem, Robust(), worlds=2, sizes=(1.0,), family=(Completed("self-loop"),))
    assert found.outside.all()
    assert "In 2 of 2 cases a true value lay outside" in found.limits[-1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"worlds": -1}, "worlds is -1, expected a whole number from 0 to 1,000,000"),
        ({"worlds": 1_000_001}, "worlds is 1000001"),
        ({"sizes": (0.5, 1_000_000.5)}, "data that rise, such as 1, 2, up to 1,000,000"),
        ({"worlds": 5}, "worlds is 5 for each kind, expected at least 1/delta − 1 = 9"),
        ({"sizes": ()}, "expected multiples of the data"),
        ({"sizes": (2.0, 1.0)}, "expected multiples of the data that rise"),
        ({"sizes": (0.0, 1.0)}, "expected multiples of the data that rise"),
        ({"family": ()}, r"family is \(\), expected at least one kind of world, and none twice"),
        ({"family": (Completed("uniform"),) * 2}, "and none twice"),
        ({"algorithm": "spibb"}, "algorithm is 'spibb'"),
        ({"workers": 0}, "workers is 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, words):
    assert read_sizes((0.5, 1_000_000)) == (0.5, 1e6)
    with pytest.raises(InvalidParameter, match=words):
        run(bandit_problem(10), POSTERIOR, **settings)


def test_problems_that_cannot_be_rehearsed_are_refused():
    problem = bandit_problem(10)
    with pytest.raises(InvalidParameter, match="certifier is of type str"):
        run(problem, "posterior")
    first_steps = Trajectory(horizon=1, claim="horizon", reward_low=0.0, reward_high=1.0)
    with pytest.raises(InvalidParameter, match="about the first steps only"):
        run(problem, first_steps)
    with pytest.raises(InvalidParameter, match=r"rng is 0\.5, expected a numpy"):
        rehearse(problem, SPIBB(n_wedge=3), POSTERIOR, rng=0.5)
    counts = Counts.from_dense(np.zeros((2, 1, 2), int), reward_sums=np.zeros((2, 1)))
    empty = uniform_problem(counts, 0.9, (0.0, 1.0))
    with pytest.raises(InvalidParameter, match="the data has no visits"):
        run(empty, POSTERIOR)


def test_an_estimated_behavior_policy_is_mentioned():
    problem = bandit_problem(10)
    guess = replace(problem.behavior, estimated=True)
    found = run(replace(problem, behavior=guess), Robust(), worlds=2, sizes=(1.0,))
    assert "behavior policy was estimated" in found.limits[-1]


def test_the_choice_of_n_wedge_is_rehearsed_too():
    """Together with others, every world has the policy that it would have alone."""
    problem = bandit_problem(30)
    auto = AutoNWedge(algorithm=SPIBB(n_wedge=1), certifier=POSTERIOR)
    terms = {"worlds": 9, "sizes": (1.0,), "family": [Completed("self-loop")]}
    found, alone = (
        run(problem, POSTERIOR, seed=2, algorithm=each, **terms)
        for each in (auto, Alone(auto.lighter()))
    )
    np.testing.assert_allclose(found.gain, alone.gain, atol=1e-9)
    np.testing.assert_allclose(found.claim, alone.claim, atol=1e-9)


def test_what_is_believed_where_nothing_is_provable_is_chosen_together_as_alone():
    """A robust certificate of so few episodes proves nothing, and the posterior chooses."""
    problem, judge = bandit_problem(30), Robust(known_start=True)
    terms = {"worlds": 9, "sizes": (1.0,), "family": [Completed("self-loop")]}
    auto = AutoNWedge(algorithm=SPIBB(n_wedge=1), certifier=judge, otherwise=POSTERIOR)
    found, alone, cautious = (
        run(problem, judge, seed=2, algorithm=each, **terms)
        for each in (auto, Alone(auto.lighter()), replace(auto, otherwise=None))
    )
    np.testing.assert_allclose(found.gain, alone.gain, atol=1e-9)
    assert (found.gain > 0).any()
    assert (cautious.gain == 0).all()


@dataclass(frozen=True)
class Alone:
    """An algorithm that is not worked on together with others."""

    algorithm: AutoNWedge

    def improve(self, problem):
        return self.algorithm.improve(problem)


def test_without_worlds_of_other_kinds_luck_is_seen_all_the_same():
    problem, judge = bandit_problem(30), Robust(known_start=True)
    found = run(problem, judge, worlds=0, sizes=(1.0,), belief=POSTERIOR)
    assert (found.worlds, found.family, found.gain.shape) == (0, (), (0, 1))
    assert found.wrong_beliefs.total == found.luck.size == 10
    assert found.more_episodes() is None
    again = rehearsal_from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert again.gain.shape == (0, 1)
    # They are the first of those that a rehearsal with other kinds has.
    other = run(problem, judge, worlds=1, sizes=(1.0,), belief=POSTERIOR)
    np.testing.assert_array_equal(other.lucky_belief, found.lucky_belief)


def test_optimistic_worlds_are_held_against_a_claim_but_do_not_calibrate_it():
    problem = bandit_problem(30)
    family = [Completed("optimistic"), Completed("uniform")]
    terms = {"rng": np.random.default_rng(1), "worlds": 9}
    found = rehearse(problem, SPIBB(n_wedge=2), POSTERIOR, **terms, sizes=(1.0,), family=family)
    assert found.family == tuple(kind.name for kind in family)
    assert found.calibration.family == (Completed("uniform").name,)
    again = calibrate(
        problem, SPIBB(n_wedge=2), POSTERIOR, rng=np.random.default_rng(1), worlds=9, family=family
    )
    assert again == found.calibration
    with pytest.raises(InvalidParameter, match="no kind of world in the family calibrates"):
        calibrate(problem, SPIBB(n_wedge=2), POSTERIOR, **terms, family=family[:1])
