"""Files and foreign objects to nouns, and back.

Each public name is imported on first use: the command line asks for the roles of columns alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surestep.io.counts.file import is_counts_file as is_counts_file
    from surestep.io.counts.file import read_counts as read_counts
    from surestep.io.counts.file import write_counts as write_counts
    from surestep.io.counts.labelled import merge_counts as merge_counts
    from surestep.io.logs.minari import from_minari as from_minari
    from surestep.io.logs.minari import from_rollouts as from_rollouts
    from surestep.io.logs.source import LogSource as LogSource
    from surestep.io.logs.source import read_log as read_log
    from surestep.io.models.files import read_mdp as read_mdp
    from surestep.io.models.files import write_mdp as write_mdp
    from surestep.io.models.gymnasium import from_gymnasium as from_gymnasium
    from surestep.io.models.prism import from_prism as from_prism

_HOME = {
    "LogSource": "surestep.io.logs.source",
    "from_gymnasium": "surestep.io.models.gymnasium",
    "from_minari": "surestep.io.logs.minari",
    "from_prism": "surestep.io.models.prism",
    "from_rollouts": "surestep.io.logs.minari",
    "is_counts_file": "surestep.io.counts.file",
    "merge_counts": "surestep.io.counts.labelled",
    "read_counts": "surestep.io.counts.file",
    "read_log": "surestep.io.logs.source",
    "read_mdp": "surestep.io.models.files",
    "write_counts": "surestep.io.counts.file",
    "write_mdp": "surestep.io.models.files",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    """Imports a public name from its home on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'surestep.io' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *_HOME})
