"""Counting by one pass, in lanes, and by putting rows in order: all against plain Python."""

import os
import random
import subprocess
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_tables import DERIVED, KINDS, found_in, frame_of, write_table
from surestep.errors import InvalidLog
from surestep.io import read_log
from surestep.io.logs import counting as log_counting
from surestep.io.logs import roles as log_roles
from surestep.io.logs.tables import connected

GIVEN = (*DERIVED, "next_state")
RARE = ("behavior_prob",)


REWARDS = st.one_of(
    st.integers(-300, 300).map(lambda cents: cents / 100),
    st.sampled_from([0.1, 1e-5, 1.2345678901234567e-05, 0.30000000000000004, -1e12]),
)
NAMES = {
    "numbers": str,
    "texts": lambda i: f"s{i}",
    "odd": lambda i: ["a,b", "é", " x", '"', "10", "9"][i],
}


@st.composite
def tables(draw):
    """Rows of whole episodes, in order; labels are numbers or texts, and episodes of any name."""
    kind = draw(st.sampled_from(sorted(NAMES)))
    name = int if kind == "numbers" else NAMES[kind]
    episodes = draw(st.lists(st.integers(0, 2000), min_size=1, max_size=5, unique=True))
    numbered = draw(st.booleans())
    rows = []
    for episode in episodes:
        length, first = draw(st.integers(1, 4)), draw(st.integers(0, 2))
        states = draw(st.lists(st.integers(0, 5), min_size=length + 1, max_size=length + 1))
        flag = draw(st.sampled_from(["terminated", "truncated", "neither"]))
        rows += [
            {
                "episode": episode if numbered else f"e{episode}",
                "step": first + t,
                "state": name(states[t]),
                "action": draw(st.integers(0, 1)),
                "reward": draw(REWARDS),
                "next_state": name(states[t + 1]),
                "terminated": t == length - 1 and flag == "terminated",
                "truncated": t == length - 1 and flag == "truncated",
                "behavior_prob": draw(st.sampled_from([0.125, 0.25, 0.5, 1.0])),
            }
            for t in range(length)
        ]
    return rows


def expected(rows, columns):
    """What the rows, in order, count up to; by hand."""
    times, earned, starts, seen = Counter(), defaultdict(list), Counter(), defaultdict(list)
    dropped, decided, ended = 0, set(), Counter()
    for i, row in enumerate(rows):
        fresh = i == 0 or rows[i - 1]["episode"] != row["episode"]
        last = i + 1 == len(rows) or rows[i + 1]["episode"] != row["episode"]
        decided.add(str(row["state"]))
        starts[str(row["state"])] += fresh
        ended["recorded"] += fresh
        ended["terminated"] += row["terminated"]
        ended["truncated"] += row["truncated"]
        target = None if last else str(rows[i + 1]["state"])
        if "next_state" in columns:
            target = str(row["next_state"])
        if target is None and not row["terminated"]:
            dropped += 1
            continue
        key = str(row["state"]), str(row["action"]), target, row["terminated"]
        times[key] += 1
        earned[key].append(Fraction(repr(row["reward"])))
        seen[key].append(row["behavior_prob"])
    ranges = {key: (min(found), max(found)) for key, found in seen.items()}
    rewards = {key: (sum(each), min(each), max(each)) for key, each in earned.items()}
    return times, rewards, +starts, ranges, dropped, decided, ended


@settings(max_examples=settings.default.max_examples // 3)
@given(
    rows=tables(),
    kind=st.sampled_from(KINDS),
    columns=st.sampled_from([DERIVED, GIVEN, (*DERIVED, *RARE), (*GIVEN, *RARE)]),
    rng=st.randoms(use_true_random=False),
)
def test_rows_in_any_order_count_as_by_hand(rows, kind, columns, rng, folder):
    by_hand = list(expected(rows, columns))
    if "behavior_prob" not in columns:
        by_hand[3] = None
    for shuffled in (False, True):
        if shuffled:
            rng.shuffle(rows)
        counts = read_log(write_table(folder / f"log{kind}", rows, columns)).counts()
        assert found_in(counts) == tuple(by_hand)
        assert counts.rows_read == len(rows)
        assert counts.episodes.unflagged == by_hand[6]["recorded"] - sum(
            by_hand[6][how] for how in ("terminated", "truncated")
        )


def word_of_ends(rows, ends):
    """Flags last rows as a word of ends says; returns the columns of files without that flag."""
    flag, other = ("terminated", "truncated") if ends == "complete" else ("truncated", "terminated")
    for row, following in pairwise([*rows, {"episode": None}]):
        row[flag] = row["episode"] != following["episode"] and not row[other]
    return tuple(name for name in DERIVED if name != flag)


@settings(max_examples=settings.default.max_examples // 5)
@given(
    rows=tables(),
    kind=st.sampled_from(KINDS),
    ends=st.sampled_from(["complete", "clock"]),
    rng=st.randoms(use_true_random=False),
)
def test_a_word_of_ends_flags_last_rows_in_any_order(rows, kind, ends, rng, folder):
    columns = word_of_ends(rows, ends)
    by_hand = list(expected(rows, columns))
    by_hand[3] = None
    for shuffled in (False, True):
        if shuffled:
            rng.shuffle(rows)
        log = read_log(write_table(folder / f"log{kind}", rows, columns), ends=ends)
        assert found_in(log.counts()) == tuple(by_hand)


@settings(max_examples=4)
@given(
    rows=tables(),
    cuts=st.lists(st.integers(0, 20), max_size=4),
    target=st.integers(1, 4),
    ends=st.sampled_from([None, "complete", "clock"]),
)
def test_lanes_meet_at_their_seams(rows, cuts, target, ends, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lanes")
    for row in rows:  # digits of rewards that one pass guesses
        row["reward"] = round(row["reward"] % 10, 2)
    rows.sort(key=lambda row: (len(str(row["episode"])), str(row["episode"]), row["step"]))
    columns = DERIVED if ends is None else word_of_ends(rows, ends)
    places = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    for number, (begin, end) in enumerate(pairwise(places)):
        write_table(folder / f"{number}.parquet", rows[begin:end], columns)
    by_hand = list(expected(rows, columns))
    by_hand[3] = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_counting, "SHORTEST", target)
        source = read_log(folder, ends=ends)
        with connected(source.table) as database:
            lanes = log_counting.lanes_of(source.table, database)
        assert len(lanes) > 1 or len(rows) <= max(target, -(-len(rows) // 2))
        patch.setattr(log_counting, "check_rows", None)  # one pass must be enough
        assert found_in(source.counts()) == tuple(by_hand)


@pytest.mark.one_quick
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": 1}, r"row {row}, column 'step': in episode '7', step 1 is there 2 times"),
        ({"step": 9}, r"row {before}, column 'step': in episode '7', step 1 is followed by step 9"),
        ({"state": "q"}, r"row {before}, column 'next_state': .* c, but the next step is in q"),
        ({"reward": float("inf")}, r"row {row}, column 'reward': found '[iI]nf"),
        ({"behavior_prob": 0.0}, r"row {row}, column 'behavior_prob': found '0.0', expected a p"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_in_any_order(change, message, shuffled, tmp_path):
    rows = [
        {
            "episode": str(episode),
            "step": step,
            "state": "abc"[step],
            "action": "x",
            "reward": 0.5,
            "next_state": "abcd"[step + 1],
            "terminated": step == 2,
            "truncated": False,
            "behavior_prob": 0.5,
        }
        for episode in (5, 7, 9)
        for step in range(3)
    ]
    rows[5] |= change
    wrong, earlier = rows[5], rows[4]
    if shuffled:
        random.Random(3).shuffle(rows)
    for kind in KINDS[-1:] if shuffled else KINDS:
        path = write_table(tmp_path / f"log{kind}", rows, (*GIVEN, *RARE))
        row = rows.index(wrong) + 1
        if "2 times" in message:  # the second one is told
            row = max(i + 1 for i, r in enumerate(rows) if (r["episode"], r["step"]) == ("7", 1))
        told = message.format(row=row, before=rows.index(earlier) + 1)
        with pytest.raises(InvalidLog, match=told) as refusal:
            read_log(path).counts()
        assert f"{path}, row " in str(refusal.value)


@pytest.mark.thorough
def test_a_scale_guessed_wrong_is_found_in_a_second_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(log_roles, "SAMPLE", 1)
    for rewards in ([1.0, 0.25], [1.0, 1 / 3], [1e12, 0.001], [0.1, -(2.0**60)], [5.0, 1e-9]):
        rows = [{"state": 1, "action": 1, "reward": r, "next_state": 1} for r in rewards]
        for kind in KINDS:
            path = write_table(tmp_path / f"log{kind}", rows, tuple(rows[0]))
            counts = read_log(path).counts()
            total = Fraction(int(counts.transitions.reward_sum[0]), 10**counts.scale)
            assert total == sum(Fraction(repr(r)) for r in rewards)


def test_a_state_where_a_dropped_row_decides_is_no_end():
    rows = [
        {"episode": 1, "step": 0, "state": "a", "action": "x", "reward": 1, "next_state": "b"},
        {"episode": 2, "step": 0, "state": "b", "action": "x", "reward": 1, "next_state": None},
    ]
    flags = ({"terminated": True, "truncated": False}, {"terminated": False, "truncated": True})
    rows = [{**row, **flag} for row, flag in zip(rows, flags, strict=True)]
    counts = read_log(frame_of(rows, GIVEN)).counts()
    assert counts.decided.tolist() == [True, True]
    final = counts.to_counts()
    assert final.pairs.state_labels == ("a", "b", "(end)")
    assert final.terminal.tolist() == [False, False, True]


def test_numbers_that_are_equal_but_written_differently_are_one_label():
    rows = [{"state": x, "action": 1, "reward": 0, "next_state": -x} for x in (0.0, -0.0, 1.5)]
    counts = read_log(frame_of(rows, tuple(rows[0]))).counts()
    assert counts.states == (("-1.5",), ("0.0",), ("1.5",))
    assert counts.transitions.times.tolist() == [2, 1]


def test_the_types_of_a_source_cannot_be_changed():
    source = read_log({"state": [1], "action": [1], "reward": [0], "next_state": [1]})
    with pytest.raises(TypeError):
        source.types["state"] = "VARCHAR"


INTERRUPTED = """
import os, signal, threading
import numpy as np
from surestep.description import Description
from surestep.io.logs import tables

log = tables.find_table(Description(), {"state": np.array([1])})
with tables.connected(log) as database:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    database.execute("SELECT sum(hash(range)) FROM range(1000000000000)")
"""


@pytest.mark.thorough
def test_an_interrupt_stops_a_scan_and_leaves_nothing(tmp_path):
    child = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert child.stderr.rstrip().endswith("KeyboardInterrupt")
    assert not list(tmp_path.iterdir())
