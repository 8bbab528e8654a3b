"""Whole logs in memory, and their states alone."""

import numpy as np

from surestep import read_log


def test_states_alone_are_those_of_the_whole_log():
    """Also where an episode ends in a state of its own, or in none, and is cut short."""
    log = {
        "episode": [1, 1, 2, 2, 3, 3], "step": [0, 1, 0, 1, 0, 1],
        "x": [0.1, 0.9, 0.4, 0.2, 0.7, 0.6], "action": ["a", "b"] * 3, "reward": [0.0] * 6,
        "terminated": [False, True, False, False, False, True],
    }  # fmt: skip
    table = {name: np.array(values) for name, values in log.items()}
    source = read_log(table, columns={"state": "x"}, bins=["x:edges=0.3,0.6"])
    whole, states = source.load(), source.load_states()
    assert states.state.tolist() == whole.state.tolist()
    assert states.next_state.tolist() == whole.next_state.tolist()
    assert states.num_states == whole.pairs.num_states
