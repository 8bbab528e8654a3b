"""Reads and writes logs, counts and models.

Each public name is imported on first use, so that the command line starts quickly.
"""

from typing import TYPE_CHECKING

from surestep._lazy import lazy_names

if TYPE_CHECKING:
    from surestep.io.counts.file import read_counts as read_counts, write_counts as write_counts
    from surestep.io.counts.labelled import (
        LabelledCounts as LabelledCounts,
        merge_counts as merge_counts,
    )
    from surestep.io.logs.frames import from_rollouts as from_rollouts
    from surestep.io.logs.source import LogSource as LogSource, read_log as read_log
    from surestep.io.models.gymnasium import (
        from_dict as from_dict,
        from_gymnasium as from_gymnasium,
    )
    from surestep.io.models.prism import from_prism as from_prism
    from surestep.io.models.umb import read_mdp as read_mdp, write_mdp as write_mdp

__getattr__, __dir__, __all__ = lazy_names(
    "surestep.io",
    {
        "counts.file": "read_counts write_counts",
        "counts.labelled": "LabelledCounts merge_counts",
        "logs.frames": "from_rollouts",
        "logs.source": "LogSource read_log",
        "models.umb": "read_mdp write_mdp",
        "models.gymnasium": "from_dict from_gymnasium",
        "models.prism": "from_prism",
    },
)
