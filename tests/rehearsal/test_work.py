"""The steps of a rehearsal, by hand from the formulas."""

from dataclasses import replace

import numpy as np
import pytest

from surestep import Counts, Policy, Problem
from surestep.algorithms import SPIBB
from surestep.certificates import Posterior, Robust, Stitched
from surestep.choosing import AutoNWedge
from surestep.rehearsal import default_family
from surestep.rehearsal.work import STEPS_A_SECOND, work_of, work_of_world

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
    return Problem(
        counts=counts, behavior=Policy.uniform(counts), discount=0.9, value_bounds=(0.0, 1.0)
    )


def test_a_step_is_a_nanosecond():
    assert STEPS_A_SECOND == 1e9


def test_without_draws_systems_are_solved_for_every_policy():
    # Four states, six transitions; the policy, and three more.
    one = 5e6 + 100 * 2 * 100 * 6 + 20 * (1 + 3) * 0.6 * 4**3 / 3
    assert work_of_world(ring(4), SPIBB_3, Robust()) == pytest.approx(one)
    # N∧ = 1, 2, 5, 10, 20, 50 and 100 for 80 visits, or those that are asked for.
    for grid, policies in ((None, 7), ((1, 50), 2)):
        auto = AutoNWedge(algorithm=SPIBB_3, certifier=Robust(), grid=grid)
        several = 5e6 + 100 * 2 * 100 * 6 + 20 * (policies + 3) * 0.6 * 4**3 / 3
        assert work_of_world(ring(4), auto, Robust()) == pytest.approx(several)


@pytest.mark.parametrize("states", [4, 128, 129])
def test_with_draws_every_policy_is_evaluated_in_every_model(states):
    """A uniform prior draws every successor of every pair but those of the end."""
    cells = (states - 1) * states
    each = 0.6 * states**3 / 3 if states <= 128 else 20 * cells
    for settings, draws in (({}, 99), ({"delta": 0.001, "draws": 2000}, 999)):
        posterior = Posterior(prior="uniform", **settings)
        expected = 5e6 + draws * (2 * 100 * cells + (1 + 3) * each)
        assert work_of_world(ring(states), SPIBB_3, posterior) == pytest.approx(expected)


def test_what_cannot_be_drawn_takes_the_transitions_that_were_seen():
    vast = replace(ring(4), value_bounds=(-1e308, 1e308))
    expected = 5e6 + 99 * (2 * 100 * 6 + (1 + 3) * 0.6 * 4**3 / 3)
    assert work_of_world(vast, SPIBB_3, Posterior()) == pytest.approx(expected)


@pytest.mark.parametrize("certifier", [Robust(), Posterior(prior="uniform")])
def test_worlds_are_gone_through_at_every_size_and_where_they_calibrate(certifier):
    problem = ring(4)
    kinds = default_family(problem, certifier)
    again = [kind for kind in kinds if kind.calibrates and isinstance(certifier, Posterior)]
    one = work_of_world(problem, SPIBB_3, certifier)
    for worlds, sizes in ((1, (1.0,)), (10, (0.5, 1.0, 3.5))):
        passes = worlds * (len(kinds) * sum(sizes) + len(again)) + 10  # of luck
        found = work_of(problem, SPIBB_3, [certifier], worlds, sizes)
        assert found == pytest.approx(passes * one)
    both = work_of(problem, SPIBB_3, [certifier, Robust()], 1, (1.0,))
    passes = len(kinds) + len(again) + 10
    assert both == pytest.approx(passes * (one + work_of_world(problem, SPIBB_3, Robust())))


def test_whole_episodes_are_gone_through_step_by_step():
    problem = ring(4)
    expected = 5e7 + 30 * (16 * 1 + 40) * 240 + (1 + 3) * 20 * 60 * 6
    assert work_of_world(problem, SPIBB_3, Stitched()) == pytest.approx(expected)
