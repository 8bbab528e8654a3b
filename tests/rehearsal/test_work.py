"""The steps of a rehearsal: more of anything takes more of them."""

from dataclasses import replace

import numpy as np
import pytest

from support.problems import uniform_problem
from surestep import Counts
from surestep.algorithms import SPIBB
from surestep.certificates import Posterior, Robust, Stitched
from surestep.choosing_n_wedge import AutoNWedge
from surestep.rehearsal.work import share_of, size_of_truth, work_in
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


def test_more_policies_draws_and_beliefs_are_more_work_each():
    problem, posterior = ring(4), Posterior(prior="uniform")

    def fixed(algorithm, *judges):
        return share_of(problem, algorithm, judges).fixed

    few, many = (
        AutoNWedge(algorithm=SPIBB_3, certifier=Robust(), grid=grid) for grid in ((1, 50), None)
    )
    assert fixed(SPIBB_3, Robust()) < fixed(few, Robust()) < fixed(many, Robust())
    assert fixed(SPIBB_3, posterior) < fixed(SPIBB_3, replace(posterior, delta=0.001, draws=2000))
    beside = fixed(SPIBB_3, Robust(), posterior) - fixed(SPIBB_3, Robust())
    assert 0 < beside < fixed(SPIBB_3, posterior)  # a belief has as few draws as may be
    vast = replace(problem, value_bounds=(-1e308, 1e308))  # from which nothing can be drawn
    assert share_of(vast, SPIBB_3, [Posterior()]).fixed > 0


def test_whole_episodes_are_gone_through_step_by_step():
    found, longer = (share_of(each, SPIBB_3, [Stitched()]) for each in (ring(4), ring(4, 160)))
    assert longer.of_data == pytest.approx(2 * found.of_data)
    assert found.at(2.5) == pytest.approx(found.fixed + 2.5 * found.of_data)


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
