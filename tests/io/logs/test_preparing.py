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


def digest(source):
    return counts_digest(source.counts())


@pytest.mark.thorough
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


MISSING = "expected a value (leave such rows out, or give them a value, in the query of a desc"
STAMP = "a time stamp such as 2025-03-31 14:05 (if it is a date"
DATES = "with reader={'timestampformat': …}, such as %d/%m/%Y, %m/%d/%Y or %Y-%m"
TWICE = "row 3, column 'step': in episode 'e', step 1 is there 2 times, by its time stamps; exp"


@pytest.mark.parametrize(
    ("changes", "reading", "says"),
    [
        ({"step": ["03/04/2025"] * 3}, {}, "row 1, column 'step': found '03/04/2025', expected"),
        ({"step": ["03/04/2025"] * 3}, {}, DATES),
        ({"step": ["first"] * 3}, {}, STAMP),
        ({"step": ["2025-04-03", "2025-04-04", "soon"]}, {}, "row 3, column 'step': found 'soon'"),
        ({"step": ["2025-01-01", "2025-01-02", "2025-01-02"]}, {}, TWICE),
        ({}, {"columns": {"time": "state"}}, "column 'state': found 'a', expected a time"),
        ({"terminated": ["0"] * 3}, {"ends": "complete"}, "found column 'terminated' that does so"),
        ({"state": ["1", "3", None]}, {}, f"row 3, column 'state': found nothing, {MISSING}"),
        (
            {"state": ["1", "3", None]},
            {"bins": {"state": {"width": 2}}},
            "found nothing, expected a finite number, since the column is binned",
        ),
        *(
            (
                {"reward": ["1", text, "0"]},
                {},
                f"row 2, column 'reward': found {text!r}, expected a finite number (write it with",
            )
            for text in ("1.250,75", "-0,5", "1'000")
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_can_be_done(changes, reading, says):
    log = {"episode": ["e"] * 3, "step": ["0", "1", "2"], "state": ["a"] * 3, "action": ["x"] * 3}
    with pytest.raises((InvalidLog, InvalidParameter)) as refusal:
        read_log(log | {"reward": ["0"] * 3} | changes, **{"ends": "clock", **reading}).counts()
    assert says in str(refusal.value)


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


def test_measurements_are_read_in_the_notation_of_the_file(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(
        "episode;step;x;action;reward;terminated\na;0;1.234;u;0,5;false\na;1;2,5;u;1;true\n"
    )
    reader = {"delim": ";", "decimal_separator": ",", "thousands": "."}
    bins = {"cond": {"tree": 2, "columns": ["x"]}}
    source = read_log(log, reader=reader, bins=bins, columns={"state": "cond"})
    assert source.measured(["x"])["x"].tolist() == [1234.0, 2.5]
