"""Every algorithm without a discount, where going round is as good as leaving."""

import dataclasses

import numpy as np
import pytest

from support.problems import logged_problem
from surestep import FiniteMDP, Policy, evaluate, sample_log
from surestep.algorithms import ALGORITHMS, make_algorithm
from surestep.errors import InvalidParameter, NeverEnds

SETTINGS = {"epsilon": 0.2, "kappa": 0.1, "xi": 1.0}
FURTHER = {"vi-lcb": {"scale": 0.1}}  # the usual one prefers few steps to good ones
ENDLESS_WHERE_ENDS_COST = ("duipi", "hcpi")  # which judge a policy that need not end
AT_WORST_ENDLESS = ("pessimistic-mbie", "robust-mdp")  # mass may go anywhere, round and round


def hospital(paid):
    """To and fro between two states for nothing, staying in a third, and ends of which one pays."""
    P, R = np.zeros((5, 2, 5)), np.zeros((5, 2, 5))
    P[0, 0, 0] = P[1, 0, 2] = P[2, 0, 1] = 1.0
    P[0, 1, [1, 3, 4]] = 0.4, 0.3, 0.3
    P[1, 1, [3, 4]] = 0.7, 0.3
    P[2, 1, [3, 4]] = 0.5, 0.5
    R[:, :, 3] = paid
    mdp = FiniteMDP.from_dense(P, R, 1.0)
    log = sample_log(mdp, Policy.uniform(mdp), 300, 10_000, np.random.default_rng(1))
    bounds = min(paid, 0.0), max(paid, 0.0)
    return logged_problem(log, 1.0, bounds, unseen="pessimistic")


@pytest.mark.parametrize("paid", [1.0, -1.0])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_policies_end_where_others_that_never_do_look_as_good(name, paid):
    # Where ends cost, never to end would be worth more, if logs could tell that it is worth 0.
    fields = dataclasses.fields(ALGORITHMS[name])
    needed = [field.name for field in fields if field.default is dataclasses.MISSING]
    settings = {each: SETTINGS.get(each, 10) for each in needed} | FURTHER.get(name, {})
    algorithm = make_algorithm(name, **settings)
    problem = hospital(paid)
    if name in AT_WORST_ENDLESS:
        with pytest.raises(InvalidParameter, match="is 1, expected less: mass may go to any state"):
            algorithm.improve(problem)
        return
    if name in ENDLESS_WHERE_ENDS_COST and paid < 0:
        with pytest.raises(NeverEnds, match="state 0 never ends under the policy"):
            algorithm.improve(problem)
        return
    found = algorithm.improve(problem)
    value = evaluate(problem.estimate(), found.policy)  # which refuses one that never ends
    assert found.plan.value == pytest.approx(value, abs=1e-9)
    assert (value >= evaluate(problem.estimate(), problem.behavior) - 1e-9).all()
