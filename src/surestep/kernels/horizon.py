"""The most steps without a discount that a model can take in a row, from each state."""

from __future__ import annotations

import numpy as np

from surestep.kernels._compile import kernel
from surestep.kernels._types import IntsOut
from surestep.kernels.records import Model


@kernel()
def undiscounted_heights(model: Model, height: IntsOut) -> None:
    """Counts the most steps in a row with discount 1 from each state, into `height` [S].

    Those steps must form no cycle. Depth-first search with its own stack: the height of a state
    is known once all states below it are done.
    """
    pair_offsets, offsets, successor, probability, discount, _ = model
    num_states = pair_offsets.size - 1
    height[:] = -1
    stack = np.empty(num_states, np.int64)
    position = np.empty(num_states, np.int64)  # the next transition to follow, while on the stack
    for root in range(num_states):
        if height[root] >= 0:
            continue
        depth = 0
        stack[0] = root
        position[root] = offsets[pair_offsets[root]]
        height[root] = 0
        while depth >= 0:
            s = stack[depth]
            end = offsets[pair_offsets[s + 1]]
            pushed = False
            k = np.searchsorted(offsets, position[s], side="right") - 1
            while position[s] < end:
                t = position[s]
                while offsets[k + 1] <= t:
                    k += 1
                if discount[k] < 1.0:
                    position[s] = offsets[k + 1]
                    continue
                target = successor[t]
                if probability[t] > 0.0 and height[target] < 0:
                    stack[depth + 1] = target
                    position[target] = offsets[pair_offsets[target]]
                    height[target] = 0
                    depth += 1
                    pushed = True
                    break
                if probability[t] > 0.0:
                    height[s] = max(height[s], height[target] + 1)
                position[s] = t + 1
            if not pushed:
                depth -= 1
