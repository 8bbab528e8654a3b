"""A check that there are enough data where the new policy goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surestep._arrays import BoolArray, IntArray
from surestep.certificates.stitched import Folds
from surestep.checks.check import Check, Mark, Unjudged
from surestep.checks.time_in_states import TimeInStates, longest, share_bounds

MOST_OF_THE_TIME = 0.5
MORE_THAN_THE_LOG = 0.5  # of the time in open bins, where the log has fewer of its decisions
SCARCE = 0.1  # of the time that the new policy spends in a state, where the log has fewer decisions
SHOWN = 8  # states


def place_check(
    time: TimeInStates,
    folds: Folds | Unjudged,
    decisions: IntArray,
    is_open: BoolArray,
    names: Sequence[str],
    *,
    level: float,
) -> Check:
    """Holds the new policy's time in each state against the decisions of the log there [S].

    A state is scarce where the rows that chose the policy have less than a tenth of its share there
    among their decisions. `is_open` [S] marks states of bins that are open to one side; one in
    which they have half as large a share or more, they know well. It fails where either takes most
    of the time, as estimated. All intervals together miss with a chance of at most `level`, by the
    rows of the second fold; they are all that may be where there is none.
    """
    share = time.shares
    scarce = time.decisions < SCARCE * share
    is_open = is_open & (time.decisions < MORE_THAN_THE_LOG * share)
    shown = [int(s) for s in np.argsort(-share, kind="stable")[:SHOWN] if share[s] > 0]
    sets = np.stack([scarce, is_open, *(np.arange(share.size) == s for s in shown)])
    # Nobody spends any time in no state: that is certain.
    there: BoolArray = np.any(sets, axis=1)
    bounds = np.where(there[:, np.newaxis], [0.0, 1.0], 0.0)
    discount = float(time.model.discount[0])
    if there.any() and not isinstance(folds, str):
        each = level / (2 * np.count_nonzero(there))
        bounds[there] = share_bounds(time.policy, folds, sets[there], discount=discount, delta=each)
    figures = {"horizon": 0.0 if isinstance(folds, str) or discount < 1 else float(longest(folds))}
    for name, spent, (low, high) in zip(("scarce", "open"), sets, bounds.tolist(), strict=False):
        figures |= {
            f"{name}_share": float(share[spent].sum()),
            f"{name}_low": low,
            f"{name}_high": high,
            f"{name}_states": float(np.count_nonzero(spent)),
            f"{name}_decisions": float(decisions[spent].sum()),
        }
    most = max(figures["scarce_share"], figures["open_share"])
    marked, of_all = scarce | is_open, decisions / max(int(decisions.sum()), 1)
    return Check(
        code="enough-data",
        outcome="failed" if most > MOST_OF_THE_TIME else "passed",
        level=level,
        rows=0 if isinstance(folds, str) else folds.second.num_steps,
        unjudged=folds if isinstance(folds, str) else None,
        figures=figures,
        picture=tuple(
            Mark(names[s], low, high, float(share[s]), float(of_all[s]), marked=bool(marked[s]))
            for s, (low, high) in zip(shown, bounds[2:].tolist(), strict=True)
        ),
    )
