"""The siblings of a `.tra` file that speak of states: labels in `.lab`, names in `.sta`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from surestep._arrays import BoolArray, IntArray
from surestep._files import read_whole
from surestep.errors import FileFailure, InvalidModel
from surestep.io.checker_model import INITIAL
from surestep.io.text_lines import Lines, split_lines
from surestep.model.pairs import Labels

DECLARATION = re.compile(rb"\s*#DECLARATION\s(.*?)#END", re.DOTALL)
LABEL = re.compile(rb'(\d{1,9})="([^"]*)"')
STATE = re.compile(r'(\d{1,10}):(?:\(\d+\) (".*")|(\(.*\)))')  # ours: a value, then a JSON string
COLON = ord(":")


def read_labels(path: Path, states: int) -> dict[str, BoolArray]:
    """Which states the labels mark, `init` among them: label → [S]."""
    if not path.exists():
        raise FileFailure(
            f"{path} is missing; it says which state is the initial one ('{INITIAL}')"
        )
    data = read_whole(path)
    storm = DECLARATION.match(data)
    if storm is None:
        return numbered_labels(split_lines(data), states)
    lines = split_lines(data[storm.end() :])
    skipped = data[: storm.end()].count(b"\n")
    return named_labels(storm[1].split(), replace(lines, number=lines.number + skipped), states)


def numbered_labels(lines: Lines, states: int) -> dict[str, BoolArray]:
    """PRISM's labels: 0="init" 1="end", then 12: 0 1."""
    if not len(lines):
        raise InvalidModel('the file is empty, expected the names of labels: 0="init" …')
    words = np.arange(lines.offsets[1])
    found = [LABEL.fullmatch(text) for text in lines.texts(words)]
    lines.refuse(
        np.array([match is None for match in found]),
        words,
        lambda word: f'the declaration {word} is not of the form 0="init"',
    )
    names = {int(match[1]): match[2] for match in found if match}
    if sorted(names) != list(range(len(found))):
        raise InvalidModel(f"line {lines.number[0]}: labels are not numbered 0, 1, 2, …")
    lines = lines.after(1)
    first = lines.column(0)
    colon = np.frombuffer(lines.data, np.uint8)[lines.last[first] - 1] == COLON
    lines.refuse(~colon, first, lambda word: f"the line begins with {word}, expected 'state:'")
    last = lines.last.copy()
    last[first] -= 1
    lines = replace(lines, last=last)
    state = lines.whole(first, "the state", states)
    owner, words = label_words(lines)
    number = lines.whole(words, "the label", len(names))
    return masks([names[index] for index in range(len(names))], state[owner], number, states)


def named_labels(names: list[bytes], lines: Lines, states: int) -> dict[str, BoolArray]:
    """Storm's labels: #DECLARATION init end #END, then 12 init end."""
    state = lines.whole(lines.column(0), "the state", states)
    owner, words = label_words(lines)
    table = {name: index for index, name in enumerate(names)}
    number = np.array([table.get(text, -1) for text in lines.texts(words)], np.int64)
    lines.refuse(number < 0, words, lambda word: f"the label {word} is not declared")
    return masks(list(table), state[owner], number, states)


def label_words(lines: Lines) -> tuple[IntArray, IntArray]:
    """All words but the first of each line, and the lines in which they stand."""
    owner = np.repeat(np.arange(len(lines)), lines.lengths)
    words = lines.offsets[0] + np.arange(owner.size)
    kept = words != lines.column(0)[owner]
    return owner[kept], words[kept]


def masks(
    names: list[bytes], state: IntArray, number: IntArray, states: int
) -> dict[str, BoolArray]:
    """Label → the states that it marks; `init` is always there."""
    result = {INITIAL: np.zeros(states, np.bool_)}
    for index, name in enumerate(names):
        try:
            marked = result.setdefault(name.decode("utf-8"), np.zeros(states, np.bool_))
        except UnicodeDecodeError:
            raise InvalidModel(f"the label {name!r} is not valid UTF-8") from None
        marked[state[number == index]] = True
    return result


def read_state_labels(path: Path, states: int) -> Labels:
    """What the states are called: their values, or in our files their labels; None without a file.

    A line of ours is `3:(3) "ward"`: PRISM reads the number and overlooks the rest.
    """
    if not path.exists():
        return None
    try:
        text = read_whole(path).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise InvalidModel(f"byte {problem.start} is not valid UTF-8") from None
    lines = [
        (number, line.strip())
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    names: list[str | None] = [None] * states
    for number, line in lines[1:]:  # the first one names the variables
        match = STATE.fullmatch(line)
        try:
            name = match and (match[3] or json.loads(match[2]))
        except ValueError:
            name = None
        if match is None or name is None or int(match[1]) >= states:
            raise InvalidModel(
                f"line {number} is {line[:40]!r}, expected 'state:(values)' with a state from 0 to "
                f"{states - 1}"
            )
        if names[int(match[1])] is not None:
            raise InvalidModel(f"line {number}: state {match[1]} has a line already")
        names[int(match[1])] = name
    if None in names:
        raise InvalidModel(f"state {names.index(None)} has no line, expected one for each state")
    return tuple(name for name in names if name is not None)
