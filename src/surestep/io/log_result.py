"""From the groups of a count to LabelledCounts: codes become text, and groups become arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surestep._arrays import BoolArray, IntArray
from surestep.io.exact_sums import limbs, whole_numbers
from surestep.io.labelled_counts import Episodes, Label, LabelledCounts, merge_counts
from surestep.io.log_codes import LabelCode
from surestep.io.log_counting import BEGINS, OBSERVATION, TERMINATED, TRUNCATED
from surestep.io.log_roles import RoleSql
from surestep.io.transitions import END, REWARDS, Transitions

UNFINISHED = "the recording stopped, and no next state is known"
OBSERVED = "the last observation of an episode, where nothing was decided"


def labelled(database: Any, roles: RoleSql, scale: int) -> LabelledCounts:
    """The table `counted` as counts in their normal form."""
    codes = roles.codes
    here, act, there = (
        listed(role, len(found))
        for role, found in (("state", codes.state), ("action", codes.action), ("next", codes.state))
    )
    number_codes(
        database,
        "state",
        f"SELECT {here} FROM counted UNION SELECT {there} FROM counted WHERE next_0 IS NOT NULL",
    )
    decision = f"kind & {OBSERVATION} = 0"
    number_codes(database, "action", f"SELECT DISTINCT {act} FROM counted WHERE {decision}")
    states = labels(database, "state", codes.state)
    groups = numbered_groups(database, roles, decision)
    observed = database.execute(
        f"SELECT coalesce(sum(rows), 0)::BIGINT FROM counted WHERE NOT ({decision})"
    ).fetchone()[0]
    kind = groups["kind"]
    unfinished = (groups["next_state"] == END) & (kind & TERMINATED == 0)
    dropped = {UNFINISHED: int(groups["rows"][unfinished].sum()), OBSERVED: int(observed)}
    # Loose transitions do not say where episodes begin: every row stands for a start.
    begins = (kind & BEGINS > 0) | (codes.episode is None)
    return merge_counts(
        [
            LabelledCounts(
                roles.mapping.state,
                roles.mapping.action,
                states,
                labels(database, "action", codes.action),
                transitions_of(groups, ~unfinished),
                scale,
                added_up(groups["state"][begins], groups["times"][begins], len(states)),
                int(groups["rows"].sum()) + int(observed),
                {why: rows for why, rows in dropped.items() if rows},
                added_up(groups["state"], groups["times"], len(states)) > 0,
                Episodes(0, 0, 0) if codes.episode is None else episodes_of(kind, groups["times"]),
                roles.binnings,
            )
        ]
    )


def number_codes(database: Any, role: str, codes: str) -> None:
    """The table `{role}_codes`: distinct codes, each with a number."""
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE {role}_codes AS "
        f"SELECT row_number() OVER () - 1 AS number, * FROM ({codes})"
    )


def labels(database: Any, role: str, codes: Sequence[LabelCode]) -> tuple[Label, ...]:
    """The label of each number."""
    texts = ", ".join(f"CAST({role}_{i} AS VARCHAR)" for i in range(len(codes)))
    rows = database.execute(f"SELECT {texts} FROM {role}_codes ORDER BY number").fetchall()
    return tuple(
        tuple(code.label(text) for code, text in zip(codes, row, strict=True)) for row in rows
    )


def numbered_groups(database: Any, roles: RoleSql, decision: str) -> dict[str, Any]:
    """The groups of decisions as arrays, every code replaced by its number."""
    width, acting = len(roles.codes.state), len(roles.codes.action)
    here = " AND ".join(f"here.state_{i} = counted.state_{i}" for i in range(width))
    there = " AND ".join(f"there.state_{i} = counted.next_{i}" for i in range(width))
    act = " AND ".join(f"act.action_{i} = counted.action_{i}" for i in range(acting))
    rewards = ", ".join(limbs(f"CAST({name} AS HUGEINT)", name) for name in REWARDS)
    seen = ", lowest, highest" if roles.mapping.behavior_prob is not None else ""
    found: dict[str, Any] = database.execute(
        "SELECT here.number AS state, act.number AS action, coalesce(there.number, -1) AS "
        f"next_state, kind, rows, times, {rewards}{seen} "
        f"FROM counted JOIN state_codes here ON {here} JOIN action_codes act ON {act} "
        f"LEFT JOIN state_codes there ON {there} WHERE {decision}"
    ).fetchnumpy()
    return found


def transitions_of(groups: dict[str, Any], kept: BoolArray) -> Transitions:
    """The groups that led somewhere."""
    return Transitions(
        groups["state"],
        groups["action"],
        groups["next_state"],
        groups["kind"] & TERMINATED > 0,
        groups["times"],
        whole_numbers(groups, "reward_sum"),
        whole_numbers(groups, "least_reward"),
        whole_numbers(groups, "greatest_reward"),
        groups.get("lowest"),
        groups.get("highest"),
    ).each(lambda column: column[kept])


def episodes_of(kind: IntArray, times: IntArray) -> Episodes:
    """How many episodes there are, and how they ended."""
    over = kind & TERMINATED > 0
    stopped = ~over & (kind & TRUNCATED > 0)
    return Episodes(*(int(times[which].sum()) for which in (kind & BEGINS > 0, over, stopped)))


def added_up(place: IntArray, times: IntArray, size: int) -> IntArray:
    """The times of each place."""
    found = np.zeros(size, np.int64)
    np.add.at(found, place, times)
    return found


def listed(role: str, width: int) -> str:
    """'state_0, state_1'."""
    return ", ".join(f"{role}_{i}" for i in range(width))
