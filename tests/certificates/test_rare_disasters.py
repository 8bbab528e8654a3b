"""A state that nobody saw and that would be terrible: sparse rows fear it as whole ones do."""

import numpy as np
import pytest

from surestep import Pairs, Policy, Problem
from surestep.certificates import Posterior, posterior_gains
from surestep.model.counts import Counts, LoggedRewards
from surestep.model.successors import Successors

GAIN, DISASTER, VISITS = 0.3, -1000.0, 600


def gains(states, *, given):
    """Returns the gains of the second action of state 0, with all successors given or sparsely.

    The first action led to state 1, which pays nothing, the second to state 2, which pays a little;
    the last state, which nobody saw, would be a disaster.
    """
    pairs = Pairs(
        np.concatenate([[0], np.arange(2, states + 2)]),
        np.concatenate([[0, 1], np.zeros(states - 1, int)]),
        2,
    )
    pays = np.zeros(pairs.num_pairs)
    pays[3], pays[-1] = GAIN, DISASTER
    starts, terminal = np.zeros(states, int), np.ones(states, bool)
    starts[0], terminal[0] = 2 * VISITS, False
    counts = Counts(
        pairs,
        np.minimum(np.arange(pairs.num_pairs + 1), 2),
        np.array([1, 2]),
        np.array([100 * VISITS, VISITS]),
        LoggedRewards(pays, "pair", True),
        starts,
        terminal,
    )
    behavior, policy = np.ones((2, pairs.num_pairs))
    behavior[:2], policy[:2] = (0.99, 0.01), (0, 1)
    anywhere = Successors(
        pairs,
        np.minimum(np.arange(pairs.num_pairs + 1), 2) * states,
        np.tile(np.arange(states), 2),
    )
    problem = Problem(
        counts=counts,
        behavior=Policy(pairs, behavior),
        discount=0.999,
        value_bounds=(DISASTER, GAIN + 1),
        support=anywhere if given else None,
    )
    settings = Posterior(prior="weight", draws=20_000, starts="known", seed=7)
    return np.sort(posterior_gains(problem, Policy(pairs, policy), settings))


@pytest.mark.parametrize("states", [24, 60])
def test_sparse_rows_are_as_afraid_of_what_nobody_saw(states):
    sparse, whole = gains(states, given=False), gains(states, given=True)
    for level in (0.02, 0.05, 0.1, 0.25):
        lower = sparse[int(level * sparse.size)]
        # Of 20,000 draws the share below a quantile is known to 0.01, and the last hundredth of the
        # stick takes little of it.
        assert np.mean(whole < lower) < level + 0.03
