"""Logs as tables of plain rows, and tables as files of every kind."""

import csv
import dataclasses
import json
from fractions import Fraction

import numpy as np

from surestep.io.counts.labelled import counts_digest
from surestep.io.labels.vocabulary import joined
from surestep.io.sql import in_memory

COLUMNS = (
    *("episode", "step", "state", "action", "reward", "next_state"),
    *("terminated", "truncated"),
)
DERIVED = tuple(name for name in COLUMNS if name != "next_state")
KINDS = (".csv", ".jsonl", ".parquet")


def rows_of(log, episode_names=None):
    """The log as plain rows, one dictionary each; states are called s0, s1, …, actions a0, …"""
    rows = []
    for e in range(log.num_episodes):
        for step, i in enumerate(range(*log.episode_offsets[e : e + 2])):
            rows.append(
                {
                    "episode": f"e{e}" if episode_names is None else episode_names[e],
                    "step": step,
                    "state": f"s{log.state[i]}",
                    "action": f"a{log.action[i]}",
                    "reward": float(log.reward[i]),
                    "next_state": f"s{log.next_state[i]}",
                    "terminated": bool(log.terminated[i]),
                    "truncated": bool(log.truncated[i]),
                }
            )
    return rows


def write_table(path, rows, columns=COLUMNS):
    """The rows as a file of the kind that its ending says."""
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        lines = [json.dumps({name: row[name] for name in columns}) + "\n" for row in rows]
        path.write_text("".join(lines), encoding="utf-8")
    else:
        with in_memory() as database:
            database.register("rows", frame_of(rows, columns))
            database.execute(f"COPY rows TO '{path}' (FORMAT parquet)")
    return path


def frame_of(rows, columns=COLUMNS):
    """The rows as a dictionary of arrays."""
    frame = {name: [row[name] for row in rows] for name in columns}
    return {
        name: np.array(values, object if isinstance(values[0], str | None) else None)
        for name, values in frame.items()
    }


def table_of(log, states, actions):
    """The log as columns, in which its states and actions have these names."""
    return {
        "episode": np.repeat(np.arange(log.num_episodes), np.diff(log.episode_offsets)),
        "step": log.step,
        "state": np.array(states, object)[log.state],
        "action": np.array(actions, object)[log.action],
        "reward": log.reward,
        "next_state": np.array(states, object)[log.next_state],
        "terminated": log.terminated,
        "truncated": log.truncated,
    }


def found_in(counts):
    """Counts as plain dictionaries of labels.

    Times, rewards (sum, least, greatest), starts, propensities, rows dropped, states of decisions,
    and episodes by their ends.
    """
    rows, state = counts.transitions, [*map(joined, counts.states), None]
    keys = [
        (state[s], joined(counts.actions[a]), state[n], bool(over))
        for s, a, n, over in zip(*rows[:4], strict=True)
    ]
    times = dict(zip(keys, rows.times.tolist(), strict=True))
    columns = zip(rows.reward_sum, rows.least_reward, rows.greatest_reward, strict=True)
    rewards = {
        key: tuple(Fraction(int(units), 10**counts.scale) for units in each)
        for key, each in zip(keys, columns, strict=True)
    }
    starts = {x: n for x, n in zip(state, counts.starts.tolist(), strict=False) if n}
    ranges = None
    if rows.lowest is not None:
        pairs = zip(rows.lowest.tolist(), rows.highest.tolist(), strict=True)
        ranges = dict(zip(keys, pairs, strict=True))
    decided = {x for x, there in zip(state, counts.decided.tolist(), strict=False) if there}
    dropped = sum(counts.dropped.values())
    return times, rewards, starts, ranges, dropped, decided, counts.episodes._asdict()


def digest_of(counts):
    """A digest of the counts, whatever files they were made of."""
    return counts_digest(dataclasses.replace(counts, sources=("0" * 64,)))
