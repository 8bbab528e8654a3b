"""Breadth-first search, against a queue."""

from collections import deque

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from surestep.planning.ends import breadth_first


@st.composite
def graphs(draw):
    """For each state, the states its ways lead to, in order, repetitions allowed."""
    size = draw(st.integers(1, 8))
    return [draw(st.lists(st.integers(0, size - 1), max_size=4)) for _ in range(size)]


@given(graph=graphs(), data=st.data())
def test_states_are_met_as_a_queue_meets_them(graph, data):
    start = data.draw(st.integers(0, len(graph) - 1))
    met, parents, queue = [start], {start: start}, deque([start])
    while queue:
        state = queue.popleft()
        for target in graph[state]:
            if target not in parents:
                parents[target] = state
                met.append(target)
                queue.append(target)
    offsets = np.concatenate([[0], np.cumsum([len(ways) for ways in graph])])
    successor = np.array([target for ways in graph for target in ways], np.int32)
    order, parent = breadth_first(offsets, successor, start)
    assert order.tolist() == met
    assert parent.tolist() == [parents.get(state, -1) for state in range(len(graph))]
