"""Values that stand in last rows only, too often for chance."""

import numpy as np
import pytest

from surestep import environments
from surestep.checks.outcomes import values_told_after


def told(column, lengths):
    labels, value = np.unique(np.array([*map(str, column)]), return_inverse=True)
    return values_told_after(labels.tolist(), value, np.append(0, np.cumsum(lengths)))


def test_as_many_rows_as_the_formula_says():
    """Ten rows an episode: k ln(10) ≥ ln(1000 · 2) from k = 4 on."""
    for k, found in ((3, []), (4, ["died"])):
        column = [word for e in range(50) for word in ["in"] * 9 + ["died" if e < k else "in"]]
        assert told(column, [10] * 50) == found


def test_a_value_that_goes_on_once_was_known():
    column = (["in"] * 9 + ["died"]) * 49 + ["in"] * 8 + ["died", "died"]
    assert told(column, [10] * 50) == []


@pytest.mark.parametrize(
    "column",
    [
        [f"week {step}" for _ in range(50) for step in range(6)],  # told by the step
        [e % 3 + step for e in range(50) for step in range(6)],  # counts with it
        [5 - step for _ in range(50) for step in range(6)],  # down
    ],
)
def test_what_follows_the_step_is_left_out(column):
    assert told(column, [6] * 50) == []


def test_single_decisions_are_left_out():
    assert told(["a", "b"] * 50, [1] * 100) == []


def test_where_some_situations_nearly_always_end_another_may_do_so():
    column = (
        (["in"] * 8 + ["late"]) * 40 + ["in"] * 8 + ["late", "late"] + (["in"] * 8 + ["end"]) * 9
    )
    lengths = [9] * 40 + [10] + [9] * 9
    assert told(column, lengths) == []


@pytest.mark.one_quick
@pytest.mark.parametrize("name", ["gridworld", "random-mdp", "hidden-cause", "icu-sepsis"])
def test_logs_of_known_worlds_are_quiet(name):
    world = environments.make(name)
    for seed in range(3):
        log = world.sample(300, seed)
        labels = [*map(str, range(log.pairs.num_states))]
        assert values_told_after(labels, log.state, log.episode_offsets) == []
