"""surestep: from a log of past decisions to a better policy, and how sure one may be of it.

The names in `__all__` are the public API. Each is imported on first use, so that
`import surestep` and `surestep --help` cost next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from surestep._version import __version__ as __version__

if TYPE_CHECKING:
    from surestep.certificates import certify as certify
    from surestep.errors import SurestepError as SurestepError
    from surestep.io import read_log as read_log
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
    from surestep.pipeline import improve as improve
    from surestep.planning import evaluate as evaluate
    from surestep.planning import evaluate_batch as evaluate_batch
    from surestep.planning import evaluate_with_bound as evaluate_with_bound
    from surestep.planning import modified_policy_iteration as modified_policy_iteration
    from surestep.planning import occupancy as occupancy
    from surestep.planning import optimal as optimal
    from surestep.planning import optimal_batch as optimal_batch
    from surestep.planning import performance as performance
    from surestep.planning import policy_iteration as policy_iteration
    from surestep.planning import value_iteration as value_iteration
    from surestep.registering import register as register
    from surestep.rehearsal import rehearse as rehearse
    from surestep.results import Result as Result
    from surestep.results import load as load
    from surestep.sampling import sample_counts as sample_counts
    from surestep.sampling import sample_log as sample_log
    from surestep.transforms import two_successor as two_successor

_HOME = {
    "SurestepError": "surestep.errors",
    "Certificate": "surestep.model",
    "Counts": "surestep.model",
    "DecisionLog": "surestep.model",
    "FiniteMDP": "surestep.model",
    "Improvement": "surestep.model",
    "MDPBatch": "surestep.model",
    "Pairs": "surestep.model",
    "Plan": "surestep.model",
    "Policy": "surestep.model",
    "Problem": "surestep.model",
    "Result": "surestep.results",
    "certify": "surestep.certificates",
    "estimate_behavior": "surestep.model",
    "estimate_mdp": "surestep.model",
    "improve": "surestep.pipeline",
    "load": "surestep.results",
    "read_log": "surestep.io",
    "register": "surestep.registering",
    "rehearse": "surestep.rehearsal",
    "evaluate": "surestep.planning",
    "evaluate_batch": "surestep.planning",
    "evaluate_with_bound": "surestep.planning",
    "modified_policy_iteration": "surestep.planning",
    "occupancy": "surestep.planning",
    "optimal": "surestep.planning",
    "optimal_batch": "surestep.planning",
    "performance": "surestep.planning",
    "policy_iteration": "surestep.planning",
    "value_iteration": "surestep.planning",
    "sample_counts": "surestep.sampling",
    "sample_log": "surestep.sampling",
    "two_successor": "surestep.transforms",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    """Imports a public name from its home on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'surestep' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *_HOME})
