"""Every algorithm without a discount, where going round is as good as leaving."""

import dataclasses

import numpy as np
import pytest

from surestep import FiniteMDP, Policy, Problem, evaluate, sample_log
from surestep.algorithms import ALGORITHMS, make_algorithm
from surestep.errors import InvalidParameter

SETTINGS = {"epsilon": 0.2, "kappa": 0.1, "xi": 1.0}
AT_WORST_ENDLESS = ("pessimistic-mbie", "robust-mdp")  # mass may go anywhere, round and round


def hospital():
    """To and fro between two states for nothing, staying in a third, and ends that pay 1 or 0."""
    P, R = np.zeros((5, 2, 5)), np.zeros((5, 2, 5))
    P[0, 0, 0] = P[1, 0, 2] = P[2, 0, 1] = 1.0
    P[0, 1, [1, 3, 4]] = 0.4, 0.3, 0.3
    P[1, 1, [3, 4]] = 0.7, 0.3
    P[2, 1, [3, 4]] = 0.5, 0.5
    R[:, :, 3] = 1.0
    mdp = FiniteMDP.from_dense(P, R, 1.0)
    log = sample_log(mdp, Policy.uniform(mdp), 300, 10_000, np.random.default_rng(1))
    return Problem(
        counts=log.counts(),
        behavior=Policy.uniform(mdp),
        discount=1.0,
        value_bounds=(0.0, 1.0),
        unseen="pessimistic",
        log=log,
    )


@pytest.mark.parametrize("name", ALGORITHMS)
def test_policies_end_where_others_that_never_do_look_as_good(name):
    fields = dataclasses.fields(ALGORITHMS[name])
    needed = [field.name for field in fields if field.default is dataclasses.MISSING]
    algorithm = make_algorithm(name, **{each: SETTINGS.get(each, 10) for each in needed})
    problem = hospital()
    if name in AT_WORST_ENDLESS:
        with pytest.raises(InvalidParameter, match="is 1, expected less: mass may go to any state"):
            algorithm.improve(problem)
        return
    found = algorithm.improve(problem)
    value = evaluate(problem.estimate(), found.policy)  # which refuses one that never ends
    assert found.plan.value == pytest.approx(value, abs=1e-9)
    assert (value >= evaluate(problem.estimate(), problem.behavior) - 1e-9).all()
