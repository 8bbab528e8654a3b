"""PRISM explicit files, read: `.tra` with its siblings `.lab`, `.sta`, `.srew` and `.trew`.

    .tra   S K T, then for each transition:  state choice successor probability [action]
    .lab   0="init" 1="end", then for each state with labels:  state: label label …
    .sta   (variables), then for each state:  state:(values)
    .srew  S N, then for each state with a reward:  state reward
    .trew  S K N, then for each transition with a reward:  state choice successor reward

Markov chains have neither K nor choices. Lines that begin with # are comments; newer versions of
PRISM write some. Storm's dialect is read too: its `.tra` begins with `mdp` or `dtmc` instead of
counts, its rewards come without counts, and its `.lab` begins with `#DECLARATION init end #END`
and then gives labels by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surestep._arrays import LARGEST_INDEX, FloatArray, IntArray, offsets_of, run_lengths
from surestep._files import read_whole
from surestep.errors import InvalidModel
from surestep.io.actions import Actions, places
from surestep.io.checker_model import INITIAL, CheckerModel, chosen_reward
from surestep.io.naming import naming
from surestep.io.prism_labels import read_labels, read_state_labels
from surestep.io.text_lines import Lines, split_lines

NAME = re.compile(rb'\s*# Reward structure "([^"\n]*)"')
TYPE = re.compile(rb"\s*# Transitions \((\w+)\)")


class Header(NamedTuple):
    """What the beginning of `.tra` says."""

    chain: bool  # whether it is a Markov chain, which has no choices
    counts: tuple[int, ...]  # states, choices (unless a chain), transitions; none in Storm's files

    @property
    def columns(self) -> str:
        """What stands in front of a number in a line of `.tra` and `.trew`."""
        return "state successor" if self.chain else "state choice successor"


class Transitions(NamedTuple):
    """The transitions in the order of states and choices."""

    choice_offsets: IntArray  # [S+1]
    offsets: IntArray  # [K+1]
    successor: IntArray  # [T]
    probability: FloatArray  # [T]
    actions: Actions


def read_explicit(path: Path, reward: str | None) -> CheckerModel:
    """The model in a `.tra` file and its siblings; `reward` names the rewards that count."""
    with naming(path):
        header, lines = read_header(read_whole(path))
        found = read_transitions(header, lines)
        rewards = chosen_rewards(path, reward)
    states = found.choice_offsets.size - 1
    with naming(rewards.with_suffix(".srew")):
        state_reward = read_state_rewards(rewards.with_suffix(".srew"), header, states)
    with naming(rewards.with_suffix(".trew")):
        transition_reward = read_transition_rewards(rewards.with_suffix(".trew"), header, found)
    with naming(path.with_suffix(".lab")):
        labels = read_labels(path.with_suffix(".lab"), states)
    with naming(path.with_suffix(".sta")):
        state_labels = read_state_labels(path.with_suffix(".sta"), states)
    with naming(path):
        return CheckerModel(
            **found._asdict(),
            reward=transition_reward,
            choice_reward=np.zeros(found.offsets.size - 1),
            state_reward=state_reward,
            initial=labels.pop(INITIAL),
            labels=labels,
            state_labels=state_labels,
        )


# ---- .tra -------------------------------------------------------------------------------------


def read_header(data: bytes) -> tuple[Header, Lines]:
    """The header, and the lines that follow it."""
    lines = split_lines(data)
    if not len(lines):
        raise InvalidModel("the file is empty, expected the number of states and of transitions")
    words = lines.texts(np.arange(lines.offsets[1]))
    comment = TYPE.match(data)
    kind = (comment[1] if comment else words[0]).decode("utf-8", "replace").lower()
    if kind.isalpha() and kind not in ("mdp", "dtmc"):
        raise InvalidModel(f"the model is of type {kind!r}, expected 'mdp' or 'dtmc'")
    if kind.isalpha() and not comment:
        return Header(kind == "dtmc", ()), lines.after(1)
    if len(words) not in (2, 3):
        raise InvalidModel(
            f"line {lines.number[0]} has {len(words)} words, expected 3 numbers (states, choices, "
            "transitions) or 2 for a Markov chain (states, transitions)"
        )
    counts = lines.whole(np.arange(len(words)), "the count").tolist()
    return Header(len(words) == 2, tuple(counts)), lines.after(1)


def read_transitions(header: Header, lines: Lines) -> Transitions:
    """What the lines of `.tra` say, checked against the counts of its header."""
    width = 3 if header.chain else 4
    expect_words(lines, (width, width + 1), f"{header.columns} probability [action]")
    expect_lines(lines, header.counts[-1:], "transition")
    if header.counts:
        expect_states(header.counts[0], len(lines))
    below = header.counts[0] if header.counts else LARGEST_INDEX
    state, local, successor = read_places(header, lines, below)
    probability = lines.doubles(lines.column(width - 1), "the probability")
    highest = max(int(state.max(initial=-1)), int(successor.max(initial=-1)))
    states = header.counts[0] if header.counts else highest + 1
    expect_states(states, len(lines))
    order = np.lexsort((local, state))
    state, local = state[order], local[order]
    first = np.flatnonzero((np.diff(state, prepend=-1) != 0) | (np.diff(local, prepend=-1) != 0))
    choice_offsets = offsets_of(np.bincount(state[first], minlength=states))
    offsets = np.append(first, len(lines))
    lines.refuse(
        places(choice_offsets) != local[first],
        lines.column(1)[order][first],
        lambda word: f"the choice is {word}, but the state has no choice with the number before it",
    )
    if len(header.counts) == 3 and first.size != header.counts[1]:
        raise InvalidModel(f"found {first.size} choices, but the header says {header.counts[1]}")
    actions = Actions(np.zeros(first.size, np.int64), 1)
    if not header.chain:
        actions = read_actions(lines, order, offsets)
    return Transitions(choice_offsets, offsets, successor[order], probability[order], actions)


def read_places(header: Header, lines: Lines, states: int) -> tuple[IntArray, IntArray, IntArray]:
    """What stands first in lines of `.tra` and `.trew`: the state, its choice, the successor."""
    state = lines.whole(lines.column(0), "the state", states)
    if header.chain:
        successor = lines.whole(lines.column(1), "the successor", states)
        return state, np.zeros(len(lines), np.int64), successor
    local = lines.whole(lines.column(1), "the choice")
    return state, local, lines.whole(lines.column(2), "the successor", states)


def read_actions(lines: Lines, order: IntArray, offsets: IntArray) -> Actions:
    """What the choices are called: the fifth word in each of their lines, or nothing."""
    code = np.zeros(len(lines), np.int64)
    named = np.flatnonzero(lines.lengths == 5)
    words = lines.column(4)[named]
    table: dict[bytes, int] = {}
    texts = lines.texts(words)
    code[named] = [table.setdefault(text, len(table) + 1) for text in texts]
    chosen = code[order][offsets[:-1]]
    lines.refuse(
        np.repeat(chosen, run_lengths(offsets)) != code[order],
        lines.column(0)[order],
        lambda word: f"this choice of state {word} has another action in an earlier line",
    )
    names: list[str | None] = [None]
    for text in table:
        try:
            names.append(text.decode("utf-8"))
        except UnicodeDecodeError:
            wrong = np.array([text == other for other in texts])
            lines.refuse(wrong, words, lambda word: f"the action {word} is not valid UTF-8")
    return Actions(chosen, len(names), names, words=True)


def expect_states(states: int, transitions: int) -> None:
    """Refuses a number of states that would fill the memory out of a file of a few bytes."""
    if not 0 < states <= 2 * transitions + 1:
        raise InvalidModel(
            f"the model has {states} states and {transitions} transitions, expected one state at "
            "least, and hardly any that no transition leaves or enters"
        )


def expect_words(lines: Lines, allowed: Sequence[int], meaning: str) -> None:
    """Refuses a line with too few or too many words."""
    wrong = ~np.isin(lines.lengths, allowed)
    if wrong.any():
        line = int(np.argmax(wrong))
        raise InvalidModel(
            f"line {lines.number[line]} has {lines.lengths[line]} words, expected "
            f"{' or '.join(map(str, allowed))}: {meaning}"
        )


def expect_lines(lines: Lines, promised: Sequence[int], noun: str) -> None:
    """Refuses a file that has more or fewer lines than its header says."""
    if promised and len(lines) != promised[0]:
        raise InvalidModel(
            f"found {len(lines)} {noun}s, but the header says {promised[0]}"
            + (" (the file may be cut off)" if len(lines) < promised[0] else "")
        )


# ---- .srew and .trew --------------------------------------------------------------------------


def chosen_rewards(path: Path, wanted: str | None) -> Path:
    """The path of the rewards that count, but for its suffix.

    They stand beside the model under its own name, or, where there are several reward structures,
    under its name and a number. They go by the name that a comment gives, or else by the number.
    """
    names: dict[str, str] = {}
    for number in count(0):
        stem = f"{path.stem}{number or ''}"
        files = [path.with_name(f"{stem}{suffix}") for suffix in (".srew", ".trew")]
        titles = [NAME.match(read_whole(file)) for file in files if file.exists()]
        if titles:
            named = [title[1].decode("utf-8", "replace") for title in titles if title]
            names[stem] = named[0] if named else str(number or "")
        elif number > 0:
            break
    if wanted is None and (path.stem in names or not names):
        return path
    return path.with_name(f"{chosen_reward(names, wanted)}.tra")


def read_state_rewards(path: Path, header: Header, states: int) -> FloatArray:
    """Rewards of states [S]; 0 without a file."""
    reward: FloatArray = np.zeros(states)
    if path.exists():
        lines = reward_lines(path, header.counts[:1])
        expect_words(lines, (2,), "state reward")
        state = lines.whole(lines.column(0), "the state", states)
        refuse_repeated(lines, state)
        reward[state] = lines.doubles(lines.column(1), "the reward")
    return reward


def read_transition_rewards(path: Path, header: Header, found: Transitions) -> FloatArray:
    """Rewards of transitions [T]; 0 without a file."""
    reward: FloatArray = np.zeros(found.successor.size)
    if not path.exists():
        return reward
    lines = reward_lines(path, header.counts[:-1])
    width = 3 if header.chain else 4
    expect_words(lines, (width,), f"{header.columns} reward")
    states = found.choice_offsets.size - 1
    state, local, successor = read_places(header, lines, states)
    missing = local >= run_lengths(found.choice_offsets)[state]
    choice = np.where(missing, 0, found.choice_offsets[state] + local)
    keys = np.repeat(np.arange(found.offsets.size - 1), run_lengths(found.offsets)) * states
    keys += found.successor
    order = np.argsort(keys, kind="stable")
    wanted = choice * states + successor
    at = np.minimum(np.searchsorted(keys[order], wanted), max(keys.size - 1, 0))
    if keys.size:
        missing |= keys[order[at]] != wanted
    lines.refuse(
        missing,
        lines.column(0),
        lambda word: f"the transition of state {word} that has this reward is not in the .tra file",
    )
    refuse_repeated(lines, wanted)
    reward[order[at]] = lines.doubles(lines.column(width - 1), "the reward")
    return reward


def reward_lines(path: Path, counts: Sequence[int]) -> Lines:
    """The lines of rewards, once their header is known to fit the one of `.tra`."""
    lines = split_lines(read_whole(path))
    if not counts:
        return lines
    if not len(lines):
        raise InvalidModel("the file is empty, expected the number of states and of rewards")
    found = lines.whole(np.arange(lines.offsets[1]), "the count").tolist()
    if tuple(found[:-1]) != tuple(counts):
        raise InvalidModel(f"line {lines.number[0]}: counts are {found}, expected {[*counts, '…']}")
    expect_lines(lines.after(1), found[-1:], "reward")
    return lines.after(1)


def refuse_repeated(lines: Lines, key: IntArray) -> None:
    """Refuses a second line about the same thing."""
    again = np.ones(key.size, np.bool_)
    again[np.unique(key, return_index=True)[1]] = False
    lines.refuse(
        again, lines.column(0), lambda word: f"a second line gives the same reward of state {word}"
    )
