"""A check that there are enough data where the new policy goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep.checks.check import Check, Mark

MOST_OF_THE_TIME = 0.5
MORE_THAN_THE_LOG = 0.5  # of the time in open bins, where the log has fewer of its decisions
SCARCE = 0.1  # of the time that the new policy spends in a state, where the log has fewer decisions
SHOWN = 8  # states


def place_check(
    occupancy: FloatArray, decisions: IntArray, is_open: BoolArray, names: Sequence[str]
) -> Check:
    """Holds the new policy's time in each state [S] against the decisions of the log there [S].

    A state is scarce where the log has less than a tenth of the new policy's share. `is_open` [S]
    marks states of bins that are open to one side; where the log has half as large a share in all
    of them or more, it knows them well. It fails where either takes most of the time.
    """
    share = decisions / max(int(decisions.sum()), 1)
    scarce = share < SCARCE * occupancy
    if float(share[is_open].sum()) >= MORE_THAN_THE_LOG * float(occupancy[is_open].sum()):
        is_open = np.zeros_like(is_open)
    figures = {
        f"{name}_{what}": value
        for name, there in (("scarce", scarce), ("open", is_open))
        for what, value in (
            ("share", float(occupancy[there].sum())),
            ("states", float(np.count_nonzero(there & (occupancy > 0)))),
            ("decisions", float(decisions[there].sum())),
        )
    }
    most = max(figures["scarce_share"], figures["open_share"])
    order = np.argsort(-occupancy, kind="stable")[:SHOWN]
    return Check(
        code="enough-data",
        outcome="failed" if most > MOST_OF_THE_TIME else "passed",
        rows=int(decisions.sum()),
        figures=figures,
        picture=tuple(
            Mark(
                names[s],
                0.0,
                float(occupancy[s]),
                float(occupancy[s]),
                float(share[s]),
                marked=bool(is_open[s] or scarce[s]),
            )
            for s in order.tolist()
            if occupancy[s] > 0
        ),
    )
