"""Logs as people have them: the same counts as from a log that was prepared by hand."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surestep import read_log
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.counts.labelled import counts_digest

START = datetime(2025, 3, 31)
ROW = st.fixed_dictionaries(
    {
        "state": st.sampled_from(["calm", "busy"]),
        "action": st.sampled_from(["wait", "act"]),
        "minutes": st.integers(1, 200),  # since the row before
    }
)
EPISODES = st.lists(st.lists(ROW, min_size=1, max_size=5), min_size=1, max_size=4)
few = settings(max_examples=3, deadline=None)


def rows_of(episodes):
    """Rows as a table has them, with the step, the time and the episode of each."""
    rows = []
    for number, steps in enumerate(episodes):
        when = START + timedelta(days=number)
        for step, row in enumerate(steps):
            when += timedelta(minutes=row["minutes"])
            rows.append({"episode": f"e{number}", "step": str(step), "when": when, **row})
    return rows


def table(rows, *columns, **made):
    """A dictionary of columns of text, some of them made from rows."""
    built = {name: [row[name] for row in rows] for name in columns}
    return built | {name: [make(row) for row in rows] for name, make in made.items()}


PLAIN = ("episode", "step", "state", "action")
WITH_GAPS = {
    "episode": ["e", "e", "e", "f"],
    "step": ["0", "1", "2", "0"],
    "x": ["1", "3", None, None],
    "action": ["a"] * 4,
    "reward": ["0"] * 4,
}


def digest(source):
    return counts_digest(source.counts())


@few
@given(EPISODES, st.randoms(use_true_random=False))
def test_time_stamps_order_rows_as_numbers_do(episodes, random):
    rows = rows_of(episodes)
    plain = read_log(table(rows, *PLAIN, reward=lambda row: "1"), ends="clock")
    random.shuffle(rows)
    iso = table(rows, "episode", "state", "action", "when", reward=lambda row: "1")
    iso["when"] = [when.isoformat(random.choice([" ", "T"])) for when in iso["when"]]
    stamped = read_log(iso, columns={"step": "when"}, ends="clock")
    assert digest(stamped) == digest(plain)
    local = iso | {"when": [row["when"].strftime("%d/%m/%Y %H:%M") for row in rows]}
    form = {"columns": {"step": "when"}, "reader": {"timestampformat": "%d/%m/%Y %H:%M"}}
    assert digest(read_log(local, ends="clock", **form)) == digest(plain)


def test_rows_that_are_episodes_need_no_more():
    log = {"state": ["a", "b"], "action": ["x", "y"], "reward": [1, 0]}
    source = read_log(log)
    counts = source.counts()
    assert counts.episodes.terminated == counts.episodes.recorded == 2
    assert source.columns_in_files == {role: (role,) for role in log}
    by_hand = log | {"episode": [1, 2], "step": [0, 0], "terminated": [True, True]}
    assert digest(source) == digest(read_log(by_hand))
    assert source.load() == read_log(by_hand).load()


@pytest.mark.parametrize("column", ["step", "terminated", "truncated"])
def test_rows_that_may_belong_together_are_no_episodes(column):
    log = {"state": ["a", "b"], "action": ["x", "y"], "reward": [1, 0], column: [0, 1]}
    with pytest.raises(InvalidLog, match="no column says what the episode"):
        read_log(log)
    with pytest.raises(InvalidLog, match="no column says what the episode"):
        read_log({name: log[name] for name in ("state", "action", "reward")}, ends="complete")


def test_episodes_come_by_their_time(tmp_path):
    log = {
        "episode": ["late", "early"], "step": [0, 0], "state": ["a", "b"], "action": ["x", "x"],
        "reward": [1, 2], "began": ["2025-05-01", "2025-04-01"], "terminated": [True, True],
    }  # fmt: skip
    assert read_log(log).load().reward.tolist() == [1, 2]
    assert read_log(log, columns={"time": "began"}).load().reward.tolist() == [2, 1]


BASE = {
    "episode": ["1", "1"], "step": ["0", "1"], "state": ["a", "b"], "action": ["x", "x"],
    "reward": ["1", "0"],
}  # fmt: skip

CLOCK = {"ends": "clock"}


@pytest.mark.parametrize(
    ("changes", "reading", "says"),
    [
        ({"step": ["03/04/2025", "04/04/2025"]}, CLOCK, "row 1, column 'step': found '03/04/2025'"),
        (
            {"step": ["2025-04-03", "soon"]},
            CLOCK,
            "row 2, column 'step': found 'soon', expected a wh",
        ),
        ({"step": ["2025-04-03", "2025-04-03"]}, {}, "step"),
        ({}, CLOCK | {"columns": {"time": "state"}}, "column 'state': found 'a', expected a time"),
        (
            {"terminated": ["0", "1"]},
            {"ends": "complete"},
            "found column 'terminated' that does so too",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(changes, reading, says):
    with pytest.raises((InvalidLog, InvalidParameter)) as refusal:
        read_log(BASE | changes, **reading).counts()
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "expected a value (leave such rows out, or give them a value, in the query of a "
         "description); 2 rows are affected"),
        ({"bins": {"x": {"width": 2}}}, "expected a finite number, since the column is binned"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_with_what_can_be_done(settings, says):
    with pytest.raises(InvalidLog) as refused:
        read_log(WITH_GAPS, columns={"state": ["x"]}, ends="clock", **settings).counts()
    assert f"row 3, column 'x': found nothing, {says}" in str(refused.value)


@pytest.mark.parametrize("text", ["1.250,75", "-0,5", "1'000"])
def test_a_number_in_another_notation_is_refused_with_what_can_be_done(text):
    with pytest.raises(InvalidLog) as refused:
        read_log(BASE | {"reward": ["1", text]}, ends="clock").counts()
    says = f"row 2, column 'reward': found {text!r}, expected a finite number (write it with a deci"
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("03/04/2025", "with reader={'timestampformat': …}, such as %d/%m/%Y, %m/%d/%Y or %Y-%m"),
        ("first", "a time stamp such as 2025-03-31 14:05 (if it is a date"),
    ],
)
def test_a_stamp_that_could_be_several_dates_is_refused_with_how_to_say_which(text, says):
    stamped = WITH_GAPS | {"step": [text] * 4, "x": ["1"] * 4}
    with pytest.raises(InvalidLog) as refused:
        read_log(stamped, columns={"state": ["x"]}, ends="clock").counts()
    assert f"row 1, column 'step': found {text!r}, expected" in str(refused.value)
    assert says in str(refused.value)


def test_two_rows_of_one_time_are_refused():
    tied = WITH_GAPS | {"step": ["2025-01-01", "2025-01-02", "2025-01-02", "2025-01-01"]}
    says = r"row 3, column 'step': in episode 'e', step 1 is there 2 times, by its time stamps; exp"
    with pytest.raises(InvalidLog, match=says):
        read_log(tied | {"x": ["1"] * 4}, columns={"state": ["x"]}, ends="clock").counts()


def test_measurements_are_read_in_the_notation_of_the_file(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(
        "episode;step;x;action;reward;terminated\na;0;1.234;u;0,5;false\na;1;2,5;u;1;true\n"
    )
    reader = {"delim": ";", "decimal_separator": ",", "thousands": "."}
    bins = {"cond": {"tree": 2, "columns": ["x"]}}
    source = read_log(log, reader=reader, bins=bins, columns={"state": "cond"})
    assert source.measured(["x"])["x"].tolist() == [1234.0, 2.5]
