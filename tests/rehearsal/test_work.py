"""The steps of a rehearsal, by hand from the formulas."""

from dataclasses import replace

import numpy as np
import pytest

from support.problems import uniform_problem
from surestep import Counts
from surestep.algorithms import SPIBB
from surestep.certificates import Posterior, Robust, Stitched
from surestep.choosing_n_wedge import AutoNWedge
from surestep.rehearsal import default_family
from surestep.rehearsal.work import STEPS_A_SECOND, share_of, size_of_truth, work_in
from surestep.rehearsal.worlds import ActionsAlike, Completed, DrawnFromPosterior

SPIBB_3 = SPIBB(n_wedge=3)


def ring(states, visits=80):
    """States in a ring, of which the last is an end; an action stays or goes on."""
    here = np.arange(states)
    times = np.zeros((states, 1, states), int)
    times[here, 0, (here + 1) % states] = 1
    times[here, 0, here] = visits - 1
    times[-1] = 0
    counts = Counts.from_dense(
        times, rewards=np.zeros((states, 1)), terminal=here == states - 1, starts=here == 0
    )
    return uniform_problem(counts, 0.9, (0.0, 1.0))


def test_a_step_is_a_nanosecond():
    assert STEPS_A_SECOND == 1e9


def test_without_draws_systems_are_solved_for_every_policy():
    # Four states, six transitions, one policy.
    system = 0.6 * 4**3 / 3
    claim = 200 * 100 * 6 + 20 * system
    found = share_of(ring(4), SPIBB_3, [Robust()])
    assert found == pytest.approx((5e6 + 1200 * 6 + claim, 0.0))
    # N∧ = 1, 2, 5, 10, 20, 50 and 100 for 80 visits, or those that are asked for.
    for grid, policies in ((None, 7), ((1, 50), 2)):
        auto = AutoNWedge(algorithm=SPIBB_3, certifier=Robust(), grid=grid)
        choice = 200 * 100 * 6 + 20 * policies * system
        found = share_of(ring(4), auto, [Robust()])
        assert found == pytest.approx((5e6 + policies * 1200 * 6 + choice + claim, 0.0))


@pytest.mark.parametrize("states", [4, 128, 129])
def test_with_draws_every_policy_is_evaluated_in_every_model(states):
    """A uniform prior draws every successor of every pair but those of the end."""
    problem, cells = ring(states), (states - 1) * states
    each = 0.6 * states**3 / 3 if states <= 128 else 50 * cells
    planned = 1200 * problem.counts.successor.size
    for settings, draws, fewest in (({}, 99, 29), ({"delta": 0.001, "draws": 2000}, 999, 2999)):
        posterior = Posterior(prior="uniform", **settings)
        claim = draws * (80 * cells + 2 * each)
        found = share_of(problem, SPIBB_3, [posterior])
        assert found == pytest.approx((5e6 + planned + claim, 0.0))
        # To choose, and as a belief beside another claim, it has as few draws as may be.
        belief = fewest * (80 * cells + 2 * each)
        beside = share_of(problem, SPIBB_3, [Robust(), posterior])
        alone = share_of(problem, SPIBB_3, [Robust()])
        assert beside.fixed - alone.fixed == pytest.approx(belief)
        auto = AutoNWedge(algorithm=SPIBB_3, certifier=posterior, grid=(1, 5))
        chosen = fewest * (80 * cells + 3 * each)
        assert share_of(problem, auto, [posterior]).fixed == pytest.approx(
            5e6 + 2 * planned + chosen + claim
        )


def test_what_cannot_be_drawn_takes_the_transitions_that_were_seen():
    vast = replace(ring(4), value_bounds=(-1e308, 1e308))
    expected = 5e6 + 1200 * 6 + 99 * (80 * 6 + 2 * 0.6 * 4**3 / 3)
    assert share_of(vast, SPIBB_3, [Posterior()]).fixed == pytest.approx(expected)


def test_whole_episodes_are_gone_through_step_by_step():
    # 64 runs of 18 ways to plan, and 96 to claim, over 240 steps.
    found = share_of(ring(4), SPIBB_3, [Stitched()])
    assert found.fixed == pytest.approx(5e6 + 1e7 + 2e6 + 1200 * 6)
    assert found.of_data == pytest.approx(1000 * 240 + 2 * (64 * 18 + 96) * 240)
    assert found.at(2.5) == pytest.approx(found.fixed + 2.5 * found.of_data)


@pytest.mark.parametrize("certifier", [Robust(), Posterior(prior="uniform"), Stitched()])
def test_worlds_are_gone_through_at_every_size_and_where_they_calibrate(certifier):
    problem = ring(4)
    kinds = default_family(problem, certifier)
    again = [kind for kind in kinds if kind.calibrates and isinstance(certifier, Posterior)]
    one = share_of(problem, SPIBB_3, [certifier])

    def built(kinds):
        return 700 * sum(size_of_truth(problem, kind) for kind in kinds)

    luck = built([ActionsAlike()]) + one.at(1.0)
    for worlds, sizes in ((0, (1.0,)), (1, (1.0,)), (10, (0.5, 1.0, 3.5)), (12, (1.0,))):
        rounds = built(kinds) + len(kinds) * sum(map(one.at, sizes))
        rounds += built(again) + len(again) * one.at(1.0)
        expected = worlds * rounds + max(worlds, 10) * luck
        assert work_in(problem, SPIBB_3, [certifier]).of(worlds, sizes) == pytest.approx(expected)


def test_a_truth_has_the_transitions_that_its_rule_gives_it():
    """Two actions in three states; one was taken in each, and the third state is an end."""
    times = np.zeros((3, 2, 3), int)
    times[0, 0] = [0, 4, 5]
    times[1, 1] = [2, 0, 7]
    counts = Counts.from_dense(
        times, rewards=np.zeros((3, 2)), terminal=[False, False, True], starts=[1, 0, 0]
    )
    problem = uniform_problem(counts, 0.9, (0.0, 1.0))
    sizes = {
        Completed("self-loop"): 4 + 2,
        Completed("uniform"): 4 + 2 * 3,
        DrawnFromPosterior("uniform"): 4 * 3,
        ActionsAlike(): 2 * 2 + 2 * 2,
    }
    for kind, size in sizes.items():
        assert size_of_truth(problem, kind) == size
        assert kind.world(problem, np.random.default_rng(0)).truth.num_transitions == size


def test_more_of_anything_is_more_work():
    belief = Posterior(train_share=0.3)
    auto = AutoNWedge(algorithm=SPIBB_3, certifier=Stitched(), otherwise=belief)
    less, larger, longer = (
        work_in(problem, auto, [Stitched(), belief])
        for problem in (ring(20), ring(200), ring(20, visits=800))
    )
    asked = [(0, (1.0,)), (1, (1.0,)), (10, (1.0,)), (10, (1.0, 2.0)), (11, (1.0, 3.0))]
    for work in (less, larger, longer):
        taken = [work.of(*each) for each in asked]
        assert taken == sorted(set(taken))
    for each in asked:
        assert less.of(*each) < min(larger.of(*each), longer.of(*each))
