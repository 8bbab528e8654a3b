"""Lots show which episodes are missing, and in which arm the others are."""

import dataclasses

import msgspec
import numpy as np
import pytest

from surestep.errors import InvalidLog, InvalidParameter
from surestep.followup import lots
from surestep.followup.episodes import Episodes, Measure
from surestep.followup.pilot import DAY, PilotPlan, judged, seconds

MADE = "2026-01-01"
COIN = Measure("return", 0.0, 1.0, middle=0.5, variance=0.25)
ARMS = ["new", "old", "new", "old", "new"]


def plan_of(**more):
    return PilotPlan(
        made=MADE, digest="", delta=0.5, episodes=4, measures=[COIN], lots="lots.csv", **more
    )


def text_of(names, arms=ARMS):
    rows = [f"{i},{arm},{name}" for i, (arm, name) in enumerate(zip(arms, names, strict=True), 1)]
    return "\n".join(["place,arm,episode", *rows, ""])


def episodes_of(names, returns, days=None, *, pending=()):
    values = np.array([returns], float)
    days = np.arange(len(names)) if days is None else np.array(days)
    return Episodes(
        measures=(COIN,),
        ids=tuple(names),
        starts=seconds(MADE) + DAY * days,
        arm=np.array(["old"] * len(names)),  # whatever was done
        returns=values,
        lowest=values,
        highest=values,
        pending=np.isin([*names], pending),
        followed=np.ones(len(names)),
    )


def answered(text, episodes, today="2027-01-01", **more):
    return judged(plan_of(**more), "", lots.in_order(text, None, episodes), today)


def test_the_arm_of_the_lot_counts_in_the_order_of_lots():
    text = text_of("abcde")
    rows = episodes_of("edcba", [1, 0, 1, 0, 1])
    ordered = lots.in_order(text, None, rows)
    assert ordered.ids == tuple("abcde")
    assert ordered.arm.tolist() == ARMS
    assert ordered.returns.tolist() == [[1, 0, 1, 0, 1]]
    answer = answered(text, rows)
    assert (answer.counted, answer.new, answer.missing, answer.order) == (5, 3, 0, "lots")
    # By the exact sum: Z = ±2(G − ½), so that each of the five is 1.
    assert answer.measures[0].estimate == 1.0


@pytest.mark.parametrize("gone", ["", "c"])  # a lot that nobody got, and one whose rows are missing
def test_a_missing_lot_is_pending_and_then_the_worst(gone):
    text = text_of(["a", "b", gone, "d", ""])
    rows = episodes_of("abd", [1, 0, 0], [0, 1, 9])
    without = answered(text, rows)
    assert (without.counted, without.pending, without.missing) == (2, 1, 1)
    early = answered(text, rows, "2026-01-12", deadline=3.0)  # it began by the tenth
    assert (early.counted, early.overdue) == (2, 0)
    late = answered(text, rows, "2026-01-13", deadline=3.0)
    assert (late.counted, late.overdue, late.new) == (4, 1, 2)
    worst = answered(text_of(["a", "b", "c", "d", ""]), episodes_of("abcd", [1, 0, 0, 0]))
    assert late.measures[0].lower == worst.measures[0].lower
    assert late.followed == (1.0, 1.0)  # of the rows that are there


def test_lots_after_the_last_used_one_do_not_count():
    answer = answered(text_of(["a", "b", "", "", ""]), episodes_of("ab", [1, 0]))
    assert (answer.episodes, answer.pending) == (2, 0)
    nothing = answered(text_of([""] * 5), episodes_of("", []))
    assert (nothing.episodes, nothing.verdict) == (0, "not yet")
    lost = answered(text_of(["a", "", "", "", ""]), episodes_of("", []), deadline=0.0)
    assert (lost.counted, lost.missing) == (0, 1)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (text_of("abcd", ARMS[:4]), InvalidLog, "'e' has no lot"),
        (text_of("abcda"), InvalidLog, "'a' has two lots"),
        (text_of("abcde", ["neu", *ARMS[1:]]), InvalidLog, "'a' is in the arm 'neu'"),
        ("", InvalidParameter, "expected place, arm, episode"),
        ("place,arm\n1,new\n", InvalidParameter, "columns place, arm, and 1 rows"),
        (text_of("abcde").replace("3,", "4,"), InvalidParameter, "without a gap"),
        (text_of("abcde").replace("3,new", "3"), InvalidParameter, "without a gap"),
    ],
)
def test_files_of_lots_that_no_pilot_has(text, error, words):
    with pytest.raises(error, match=words):
        answered(text, episodes_of("abcde", [0] * 5))


def test_drawn_lots_are_fair_and_have_their_digest():
    text = lots.drawn(4_000, 0.3, ("new, better", "old"))
    arms, names, digest = lots.read(text)
    assert abs(arms.count("new, better") / 4_000 - 0.3) < 5 * np.sqrt(0.21 / 4_000)
    assert names == [""] * 4_000
    lots.in_order(text.replace("\n", "\r\n"), digest, episodes_of("", []))  # as a sheet writes it
    with pytest.raises(InvalidParameter, match="other arms than were drawn"):
        lots.in_order(text_of("abcde"), digest, episodes_of("", []))


def test_without_lots_the_missing_ones_may_have_gone_as_badly_as_can_be():
    """The new arm won 34 of 40, the control 30 of 60: 20 episodes that lost may be left out."""
    new = np.arange(100) % 5 < 2
    rank = np.where(new, np.cumsum(new), np.cumsum(~new)) * 7 % np.where(new, 40, 60)
    rows = episodes_of([f"e{i}" for i in range(100)], np.where(new, rank < 34, rank < 30))
    rows = dataclasses.replace(rows, arm=np.where(new, "new", "old"))
    plan = msgspec.structs.replace(plan_of(), lots=None)
    answer = judged(plan, "", rows, "2027-01-01")
    assert answer.measures[0].passed
    assert (answer.verdict, answer.lacking) == ("not yet", 20)
    assert answer.lower_with_lacking < 0 < answer.measures[0].lower
    # The same where the control lacks 20 that won: it is the mirror image, arms and returns.
    mirrored = dataclasses.replace(
        rows, **dict.fromkeys(("returns", "lowest", "highest"), 1 - rows.returns)
    )
    mirrored = dataclasses.replace(mirrored, arm=np.where(new, "old", "new"))
    other = judged(plan, "", mirrored, "2027-01-01")
    assert (other.verdict, other.lacking) == ("not yet", -20)
    assert other.lower_with_lacking == pytest.approx(answer.lower_with_lacking)
    assert other.measures[0].passed
    # As few as chance may leave in that arm are no shortage: 46 of 100, 0.8 standard errors.
    fair = dataclasses.replace(rows, arm=np.where(np.arange(100) % 50 < 23, "new", "old"))
    assert judged(plan, "", fair, "2027-01-01").lacking == 0
