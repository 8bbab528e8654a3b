"""Worlds without a discount: which of them end, and what a policy is worth that does not."""

import numpy as np
import pytest

from surestep import FiniteMDP, Policy, Problem, evaluate, sample_log
from surestep.algorithms import SPIBB
from surestep.certificates import Robust
from surestep.errors import InvalidParameter
from surestep.rehearsal import Completed, DrawnFromPosterior, rehearse
from surestep.rehearsal.worlds import default_family, ends_under_behavior

ROBUST = Robust(known_start=True, reward_low=0.0, reward_high=1.0)


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


def problem_of(episodes=300, horizon=1000, discount=1.0):
    mdp = illness()
    log = sample_log(mdp, Policy.uniform(mdp), episodes, horizon, np.random.default_rng(3))
    return Problem(
        counts=log.counts(),
        behavior=Policy.uniform(mdp),
        discount=discount,
        value_bounds=(0.0, 1.0),
        unseen="pessimistic",
        log=log,
    )


def test_completions_that_never_end_are_left_out():
    # What is never seen leads back to itself: nobody who gets there ever ends.
    problem = problem_of()
    names = [kind.name for kind in default_family(problem, ROBUST)]
    assert Completed("self-loop").name not in names
    assert Completed("uniform").name in names
    discounted = [kind.name for kind in default_family(problem_of(discount=0.9), ROBUST)]
    assert Completed("self-loop").name in discounted
    assert set(names) < set(discounted)


def test_a_rehearsal_without_a_discount_is_one_of_worlds_that_end():
    problem = problem_of()
    found = rehearse(
        problem, SPIBB(n_wedge=20), ROBUST, rng=np.random.default_rng(0), worlds=4, sizes=(1.0,)
    )
    assert np.isfinite(found.gain).all()
    assert np.abs(found.gain).max() <= 1
    assert (found.claim <= found.gain).all()
    assert any("may never end" in sentence for sentence in found.limits)
    near = rehearse(
        problem_of(discount=0.99),
        SPIBB(n_wedge=20),
        ROBUST,
        rng=np.random.default_rng(0),
        worlds=1,
        sizes=(1.0,),
    )
    assert not any("may never end" in sentence for sentence in near.limits)


def test_drawn_worlds_end_under_the_behavior_policy():
    problem = problem_of(episodes=5)
    rng = np.random.default_rng(1)
    for _ in range(20):
        truth = DrawnFromPosterior("weight", 1.0).world(problem, rng).truth
        assert ends_under_behavior(problem, truth)
        evaluate(truth, problem.behavior)


def test_kinds_in_which_nothing_ends_are_refused():
    # No state is known to end an episode, and rows lead to all states: none of them ends.
    mdp = FiniteMDP.from_dense(np.full((2, 1, 2), 0.5), np.zeros((2, 1)), 1.0)
    log = sample_log(mdp, Policy.uniform(mdp), 5, 4, np.random.default_rng(0))
    endless = Problem(
        counts=log.counts(), behavior=Policy.uniform(mdp), discount=1.0, value_bounds=(0.0, 1.0)
    )
    with pytest.raises(InvalidParameter, match="the behavior policy may never end, at discount 1"):
        DrawnFromPosterior("jeffreys").world(endless, np.random.default_rng(0))
