"""SysAdmin: the ring against its published values, and the simulation by columns against it."""

import numpy as np
import pytest

from surestep import Policy, performance
from surestep.environments import make
from surestep.environments.sysadmin import SysAdmin
from surestep.errors import InvalidParameter


@pytest.mark.parametrize(
    ("machines", "best", "uniform", "nothing"),
    [
        (4, 59.271518, 30.721429, 23.815375),
        (7, 88.593884, 46.531731, 39.074369),
        (8, 96.446401, 51.988337, 44.484583),
    ],
)
def test_values_are_the_published_ones(machines, best, uniform, nothing):
    ring = make("sysadmin", machines=machines)
    idle = Policy.deterministic(ring.mdp, np.full(ring.num_states, machines))
    found = (
        ring.optimal_performance(),
        performance(ring.mdp, Policy.uniform(ring.mdp)),
        performance(ring.mdp, idle),
    )
    np.testing.assert_allclose(found, (best, uniform, nothing), atol=1e-6)


@pytest.mark.thorough
def test_rules_earn_by_columns_what_their_table_earns():
    """A mean of 4,000 returns lies within 5 standard errors, but once in a million times."""
    world, ring = SysAdmin(4), make("sysadmin", machines=4)
    states = (np.arange(16)[:, np.newaxis] >> np.arange(4)[::-1]) & 1
    rules = world.fewest_failed_neighbours()
    table = Policy.deterministic(ring.mdp, rules.act(states))
    exact = performance(ring.mdp, table)
    returns = world.sample(rules, 4000, rng=3, steps=200).returns(0.95)
    assert abs(returns.mean() - exact) < 5 * returns.std() / 4000**0.5 + 0.01


def test_bounds_hold_from_every_state_whatever_comes():
    ring = make("sysadmin", machines=4)
    assert ring.worst_performance() >= 3.0  # from all machines on, which is more than the bound
    with pytest.raises(InvalidParameter, match="at least 3"):
        SysAdmin(2)
