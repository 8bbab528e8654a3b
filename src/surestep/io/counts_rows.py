"""The rows of a file of counts as arrays: every label becomes its number, and all must fit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surestep._arrays import AnyArray
from surestep.io.binning import Binning
from surestep.io.exact_sums import limbs, whole_numbers
from surestep.io.labelled_counts import Episodes, Label, LabelledCounts, merge_counts
from surestep.io.log_tables import file_list, named
from surestep.io.transitions import END, REWARDS, Transitions

SUM_SLACK = 1e-12  # relative: doubles are compared


class Layout(NamedTuple):
    """The columns of a file of counts."""

    state: tuple[str, ...]
    action: tuple[str, ...]
    behavior_prob: bool

    @classmethod
    def of(cls, counts: LabelledCounts) -> Layout:
        """The layout that counts need."""
        known = counts.transitions.lowest is not None
        return cls(counts.state_columns, counts.action_columns, known)

    def labels(self, role: str) -> list[str]:
        """The columns of the labels of a role, 'state.ward'."""
        return [f"{role}.{name}" for name in (self.action if role == "action" else self.state)]

    @property
    def columns(self) -> list[str]:
        """All columns but the kind of a row."""
        texts = [name for role in ("state", "action", "next_state") for name in self.labels(role)]
        seen = ["lowest", "highest"] if self.behavior_prob else []
        return [*texts, "terminated", "decided", "times", *REWARDS, *seen]


def read_rows(database: Any, path: Path, manifest: Mapping[str, Any]) -> LabelledCounts:
    """The rows of the file, which must fit together."""
    layout = Layout(
        tuple(map(str, manifest["state_columns"])),
        tuple(map(str, manifest["action_columns"])),
        bool(manifest["behavior_prob"]),
    )
    database.execute(
        f"CREATE TEMP TABLE rows AS SELECT kind, {', '.join(map(named, layout.columns))}, "
        f"file_row_number AS place FROM read_parquet({file_list([path])}, file_row_number=true)"
    )
    for role in ("state", "action"):
        database.execute(
            f"CREATE TEMP TABLE {role}s AS SELECT row_number() OVER (ORDER BY place) - 1 AS "
            f"number, * FROM rows WHERE kind = '{role}'"
        )
    states, actions = labels(database, layout, "state"), labels(database, layout, "action")
    begun = whole(database.execute("SELECT times, decided FROM states ORDER BY number"))
    transitions = read_transitions(database, layout)
    starts = begun["times"].astype(np.int64)
    decided = begun["decided"].astype(np.bool_)
    if (transitions.times < 1).any() or (starts < 0).any():
        raise ValueError("a count is negative, or 0 where there is a transition")
    if not rewards_fit(transitions):
        raise ValueError("a sum of rewards is not between the least and the greatest, times visits")
    if ((transitions.next_state == END) & ~transitions.terminated).any():
        raise ValueError("a step that did not terminate led nowhere")
    if not decided[transitions.state].all():
        raise ValueError("a transition begins where nobody decides")
    ended = manifest["episodes"]
    return merge_counts(
        [
            LabelledCounts(
                layout.state,
                layout.action,
                states,
                actions,
                transitions,
                manifest["reward_scale"],
                starts,
                manifest["rows_read"],
                {str(why): many for why, many in manifest["rows_dropped"].items()},
                decided,
                Episodes(ended["recorded"], ended["terminated"], ended["truncated"]),
                {str(name): Binning.from_json(each) for name, each in manifest["bins"].items()},
                tuple(manifest["sources"]),
            )
        ]
    )


def labels(database: Any, layout: Layout, role: str) -> tuple[Label, ...]:
    """The labels of a role by number, each of them there once."""
    texts = ", ".join(named(name) for name in layout.labels(role))
    rows = database.execute(f"SELECT {texts} FROM {role}s ORDER BY number").fetchall()
    if not all(isinstance(text, str) for row in rows for text in row):
        raise ValueError(f"a label of a {role} is no text")
    if len(set(rows)) < len(rows):
        raise ValueError("a label is there twice")
    return tuple(rows)


def read_transitions(database: Any, layout: Layout) -> Transitions:
    """The transitions, by the numbers of their labels."""
    joins = (
        ("here", "states", "state", "state"),
        ("act", "actions", "action", "action"),
        ("there", "states", "state", "next_state"),
    )
    joined = "".join(
        f" LEFT JOIN {table} AS {alias} ON "
        + " AND ".join(
            f"{alias}.{named(known)} = rows.{named(used)}"
            for known, used in zip(layout.labels(role), layout.labels(as_role), strict=True)
        )
        for alias, table, role, as_role in joins
    )
    nowhere = " AND ".join(f"rows.{named(name)} IS NULL" for name in layout.labels("next_state"))
    rewards = ", ".join(limbs(f"CAST(rows.{name} AS HUGEINT)", name) for name in REWARDS)
    seen = ", rows.lowest, rows.highest" if layout.behavior_prob else ""
    found = whole(
        database.execute(
            "SELECT here.number AS state, act.number AS action, "
            f"CASE WHEN {nowhere} THEN {END} ELSE there.number END AS next_state, "
            "rows.terminated::BOOLEAN AS terminated, rows.times::BIGINT AS times, "
            f"{rewards}{seen} FROM rows{joined} "
            "WHERE rows.kind = 'transition' ORDER BY rows.place"
        )
    )
    if layout.behavior_prob:
        low, high = found["lowest"], found["highest"]
        if not ((low > 0) & (low <= high) & (high <= 1)).all():
            raise ValueError("a propensity is not above 0 and at most 1")
    return Transitions(
        found["state"].astype(np.int64),
        found["action"].astype(np.int64),
        found["next_state"].astype(np.int64),
        found["terminated"].astype(np.bool_),
        found["times"],
        whole_numbers(found, "reward_sum"),
        whole_numbers(found, "least_reward"),
        whole_numbers(found, "greatest_reward"),
        found.get("lowest"),
        found.get("highest"),
    )


def rewards_fit(rows: Transitions) -> bool:
    """Whether every mean lies between the least and the greatest reward, up to rounding."""
    sums, least, greatest = (np.asarray(getattr(rows, name), float) for name in REWARDS)
    slack = SUM_SLACK * np.maximum(np.abs(least), np.abs(greatest)) * rows.times
    below, above = sums < least * rows.times - slack, sums > greatest * rows.times + slack
    return not (below | above | (rows.least_reward > rows.greatest_reward)).any()


def whole(answer: Any) -> dict[str, AnyArray]:
    """The columns of an answer, in which nothing is missing."""
    columns = answer.fetchnumpy()
    for name, values in columns.items():
        if np.ma.is_masked(values):
            raise ValueError(f"a value of {name} is missing or unknown")
    return {name: np.asarray(values) for name, values in columns.items()}
