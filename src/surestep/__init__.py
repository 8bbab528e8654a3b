"""surestep: from a log of past decisions to a better policy, and how sure one may be of it.

The names in `__all__` are the public API. Each is imported on first use, so that
`import surestep` and `surestep --help` cost next to nothing.
"""

from typing import TYPE_CHECKING

from surestep._lazy import lazy_names
from surestep._version import __version__ as __version__

if TYPE_CHECKING:
    from surestep.algorithms import improvement_of as improvement_of
    from surestep.certificates import certify as certify
    from surestep.errors import SurestepError as SurestepError
    from surestep.io import read_log as read_log
    from surestep.kernels.devices import device as device
    from surestep.model import (
        Certificate as Certificate,
        Counts as Counts,
        DecisionLog as DecisionLog,
        FiniteMDP as FiniteMDP,
        Improvement as Improvement,
        MDPBatch as MDPBatch,
        Pairs as Pairs,
        Plan as Plan,
        Policy as Policy,
        Problem as Problem,
        estimate_behavior as estimate_behavior,
        estimate_mdp as estimate_mdp,
    )
    from surestep.pipeline.followup import pilot as pilot, watch as watch
    from surestep.pipeline.improve import improve as improve
    from surestep.planning import (
        evaluate as evaluate,
        evaluate_batch as evaluate_batch,
        evaluate_with_bound as evaluate_with_bound,
        occupancy as occupancy,
        optimal as optimal,
        optimal_batch as optimal_batch,
        performance as performance,
        policy_iteration as policy_iteration,
        reachability as reachability,
        value_iteration as value_iteration,
    )
    from surestep.registering import register as register
    from surestep.rehearsal.rehearse import rehearse as rehearse
    from surestep.results import (
        Result as Result,
        load as load,
    )
    from surestep.sampling import (
        sample_counts as sample_counts,
        sample_log as sample_log,
    )
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
        "pipeline": "improve pilot watch",
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
