"""A check that there are enough data where the new policy goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surestep._arrays import BoolArray, IntArray
from surestep.checks.check import Check, Mark
from surestep.checks.luck import TimeInStates, interval

MOST_OF_THE_TIME = 0.5
MORE_THAN_THE_LOG = 0.5  # of the time in open bins, where the log has fewer of its decisions
SCARCE = 0.1  # of the time that the new policy spends in a state, where the log has fewer decisions
SHOWN = 8  # states


def place_check(
    time: TimeInStates,
    decisions: IntArray,
    is_open: BoolArray,
    names: Sequence[str],
    *,
    level: float,
) -> Check:
    """Holds the new policy's time in each state against the decisions of the log there [S].

    A state is scarce where the log has less than a tenth of the new policy's share. `is_open` [S]
    marks states of bins that are open to one side; one in which the log has half as large a share
    or more, it knows well. It fails where either takes most of the time, as estimated.
    All intervals together miss with a chance of about `level`, in states that were fixed before.
    """
    occupancy = time.shares
    share = decisions / max(int(decisions.sum()), 1)
    scarce = share < SCARCE * occupancy
    is_open = is_open & (share < MORE_THAN_THE_LOG * occupancy)
    shown = [int(s) for s in np.argsort(-occupancy, kind="stable")[:SHOWN] if occupancy[s] > 0]
    each = level / (len(shown) + 2)

    def ends(there: BoolArray) -> tuple[float, float]:
        spent = float(occupancy[there].sum())
        return interval(spent, time.standard_error(there), each, (0.0, 1.0))

    figures = dict[str, float]()
    for name, there in (("scarce", scarce), ("open", is_open)):
        low, high = ends(there)
        figures |= {
            f"{name}_share": float(occupancy[there].sum()),
            f"{name}_low": low,
            f"{name}_high": high,
            f"{name}_states": float(np.count_nonzero(there & (occupancy > 0))),
            f"{name}_decisions": float(decisions[there].sum()),
        }
    most = max(figures["scarce_share"], figures["open_share"])
    return Check(
        code="enough-data",
        outcome="failed" if most > MOST_OF_THE_TIME else "passed",
        level=level,
        rows=time.rows,
        figures=figures,
        picture=tuple(
            Mark(
                names[s],
                *ends(np.arange(share.size) == s),
                float(occupancy[s]),
                float(share[s]),
                marked=bool(is_open[s] or scarce[s]),
            )
            for s in shown
        ),
    )
