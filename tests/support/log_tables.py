"""Logs as tables of plain rows, and tables as files of every kind."""

import csv
import json

import numpy as np

from surestep.io.sql import in_memory

COLUMNS = (
    *("episode", "step", "state", "action", "reward", "next_state"),
    *("terminated", "truncated"),
)


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
