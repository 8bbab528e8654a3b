"""Files and foreign objects to nouns, and back."""

from surestep.io.counts.file import is_counts_file, read_counts, write_counts
from surestep.io.counts.labelled import merge_counts
from surestep.io.logs.minari import from_minari, from_rollouts
from surestep.io.logs.source import LogSource, read_log
from surestep.io.models.files import read_mdp, write_mdp
from surestep.io.models.gymnasium import from_gymnasium
from surestep.io.models.prism import from_prism

__all__ = [
    "LogSource",
    "from_gymnasium",
    "from_minari",
    "from_prism",
    "from_rollouts",
    "is_counts_file",
    "merge_counts",
    "read_counts",
    "read_log",
    "read_mdp",
    "write_counts",
    "write_mdp",
]
