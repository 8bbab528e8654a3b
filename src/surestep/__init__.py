"""surestep: from a log of past decisions to a better policy, and how sure one may be of it.

The names in `__all__` are the public API. Each is imported on first use, so that
`import surestep` and `surestep --help` cost next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surestep._lazy import lazy_names
from surestep._version import __version__ as __version__

if TYPE_CHECKING:
    from surestep.algorithms import improvement_of as improvement_of
    from surestep.certificates import certify as certify
    from surestep.errors import SurestepError as SurestepError
    from surestep.io import read_log as read_log
    from surestep.kernels.devices import device as device
    from surestep.model import Certificate as Certificate
    from surestep.model import Counts as Counts
    from surestep.model import DecisionLog as DecisionLog
    from surestep.model import FiniteMDP as FiniteMDP
    from surestep.model import Improvement as Improvement
    from surestep.model import MDPBatch as MDPBatch
    from surestep.model import Pairs as Pairs
    from surestep.model import Plan as Plan
    from surestep.model import Policy as Policy
    from surestep.model import Problem as Problem
    from surestep.model import estimate_behavior as estimate_behavior
    from surestep.model import estimate_mdp as estimate_mdp
    from surestep.pipeline.improve import improve as improve
    from surestep.planning import evaluate as evaluate
    from surestep.planning import evaluate_batch as evaluate_batch
    from surestep.planning import evaluate_with_bound as evaluate_with_bound
    from surestep.planning import occupancy as occupancy
    from surestep.planning import optimal as optimal
    from surestep.planning import optimal_batch as optimal_batch
    from surestep.planning import performance as performance
    from surestep.planning import policy_iteration as policy_iteration
    from surestep.planning import reachability as reachability
    from surestep.planning import value_iteration as value_iteration
    from surestep.registering import register as register
    from surestep.rehearsal.rehearse import rehearse as rehearse
    from surestep.results import Result as Result
    from surestep.results import load as load
    from surestep.sampling import sample_counts as sample_counts
    from surestep.sampling import sample_log as sample_log
    from surestep.transforms.two_successor import two_successor as two_successor

__getattr__, __dir__, __all__ = lazy_names(
    "surestep",
    {
        "errors": "SurestepError",
        "model": "Certificate Counts DecisionLog FiniteMDP Improvement MDPBatch Pairs Plan Policy "
        "Problem estimate_behavior estimate_mdp",
        "results": "Result load",
        "algorithms": "improvement_of",
        "certificates": "certify",
        "pipeline": "improve",
        "io": "read_log",
        "kernels.devices": "device",
        "registering": "register",
        "rehearsal": "rehearse",
        "planning": "evaluate evaluate_batch evaluate_with_bound "
        "occupancy optimal optimal_batch performance policy_iteration reachability "
        "value_iteration",
        "sampling": "sample_counts sample_log",
        "transforms": "two_successor",
    },
)
