"""States from centres: k-means on measurements in units of their spread."""

from __future__ import annotations

import numpy as np

from surestep.io.labels.state_rules import CentreRule
from surestep.states.choosing_size import Rows, scikit_learn

MOST_ROWS = 20_000  # centres get no better by more


def clustered(rows: Rows, columns: tuple[str, ...], clusters: int) -> CentreRule:
    """Returns the centres of so many clusters (scikit-learn's `KMeans`), in a settled order.

    A column that never varies has unit 1. Centres are sorted, so that their numbers do not rest on
    the order in which they were found.
    """
    spread = rows.values.std(axis=0)
    units = np.where(spread > 0, spread, 1.0)
    every = -(-rows.values.shape[0] // MOST_ROWS)
    # One thread adds up in one order, so the same rows have the same centres again.
    kmeans = scikit_learn("sklearn.cluster").KMeans
    with scikit_learn("threadpoolctl").threadpool_limits(1):
        made = kmeans(n_clusters=clusters, n_init=1, random_state=0)
        found = made.fit(rows.values[::every] / units)
    centres = np.unique(found.cluster_centers_ * units, axis=0)
    return CentreRule(columns, tuple(units.tolist()), tuple(map(tuple, centres.tolist())))
