"""A fingerprint of counts that depends on nothing but what they say."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from surestep.io.labelled_counts import LabelledCounts


def counts_digest(counts: LabelledCounts) -> str:
    """SHA-256 over columns, labels and numbers, in the one order that counts have.

    Unlike the bytes of a counts file, it is the same whatever version of Parquet's writer is used.
    """
    words = {
        "state_columns": counts.state_columns,
        "action_columns": counts.action_columns,
        "states": counts.states,
        "actions": counts.actions,
        "scale": counts.scale,
        "rows_read": counts.rows_read,
        "dropped": dict(sorted(counts.dropped.items())),
        "episodes": counts.episodes,
    }
    digest = hashlib.sha256(json.dumps(words, ensure_ascii=True).encode())
    rows = counts.transitions
    for column in (counts.starts, counts.decided, *rows):
        if column is None:
            digest.update(b"none")
        elif column.dtype == object:  # whole numbers of any size
            digest.update(",".join(map(str, column)).encode())
        else:
            kind = "<f8" if column.dtype.kind == "f" else "<i8"
            digest.update(np.ascontiguousarray(column, kind).tobytes())
    return digest.hexdigest()
