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
    visits: FloatArray,
    chose: IntArray,
    decisions: IntArray,
    is_open: BoolArray,
    names: Sequence[str],
) -> Check:
    """Holds the new policy's time in each state against the decisions of the log there [S].

    `visits` [S] are those of the policy in the estimated model, `chose` [S] the decisions that
    chose it. A state is scarce where less than a tenth of its share of the time is its share of
    these. `is_open` [S] marks states of bins that are open to one side; one in which they have half
    as large a share or more, they know well. It fails where either takes most of the time.
    """
    share = visits / (visits.sum() or 1.0)
    known = shares_of(chose)
    scarce = known < SCARCE * share
    is_open = is_open & (known < MORE_THAN_THE_LOG * share)
    figures = dict[str, float]()
    for name, spent in (("scarce", scarce), ("open", is_open)):
        figures |= {
            f"{name}_share": float(share[spent].sum()),
            f"{name}_states": float(np.count_nonzero(spent)),
            f"{name}_decisions": float(decisions[spent].sum()),
        }
    most = max(figures["scarce_share"], figures["open_share"])
    marked, of_all = scarce | is_open, shares_of(decisions)
    shown = [s for s in np.argsort(-share, kind="stable")[:SHOWN].tolist() if share[s] > 0]
    return Check(
        code="enough-data",
        outcome="failed" if most > MOST_OF_THE_TIME else "passed",
        figures=figures,
        picture=tuple(
            Mark(
                *(names[s], 0.0, float(share[s]), float(share[s]), float(of_all[s])),
                marked=bool(marked[s]),
            )
            for s in shown
        ),
    )


def shares_of(decisions: IntArray) -> FloatArray:
    """Returns the share [S] of the decisions [S] that each state has."""
    return decisions / max(int(decisions.sum()), 1)
