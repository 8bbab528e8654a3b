"""Keeps results: the policy, its certificates, its report, and the record that repeats the run."""

from surestep.results.episode import Episode
from surestep.results.findings import (
    COLUMNS,
    DECLINED,
    UNCHANGED,
    Confirmation,
    Findings,
    PolicyTable,
    StateChange,
    belief_in,
    is_proved,
    rung_of,
    undone,
)
from surestep.results.groups import Group, GroupGain, expected_gains
from surestep.results.plots import (
    VisitBin,
    claims_picture,
    flags_of,
    gaining_action,
    gains_picture,
    kept_states,
    moves_in,
    own_size,
    visit_bins,
)
from surestep.results.policy_files import policy_parquet_rows, policy_rows
from surestep.results.record import (
    ESTIMATED,
    ROW_PROPENSITIES,
    Baseline,
    Estimates,
    InputFile,
    Parameters,
    Record,
    Total,
    baseline_of,
    current_machine,
)
from surestep.results.result import (
    CARD,
    CERTIFICATE,
    FILES,
    FOR_STAFF,
    PARQUET,
    POLICY,
    REPORT,
    RULES,
    Decision,
    Default,
    Result,
    load,
)
from surestep.results.rules import Rule, Rules
from surestep.results.structured import StructuredResult, load_structured
from surestep.results.unfinished import REHEARSAL, RUN, STRESS_TEST, begin, finish, read_file

__all__ = [
    "Decision",
    "Default",
    "Episode",
    "GroupGain",
    "PolicyTable",
    "Record",
    "Result",
    "StructuredResult",
    "load",
    "load_structured",
]
