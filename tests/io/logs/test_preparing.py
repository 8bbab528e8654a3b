"""Logs as people have them: the same counts as from a log that was prepared by hand."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surestep import read_log
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.counts.labelled import counts_digest
from surestep.io.logs.deriving import read_derived
from surestep.io.logs.groups import STOPPED, UNFINISHED
from surestep.io.logs.tables import connected

START = datetime(2025, 3, 31)
ROW = st.fixed_dictionaries(
    {
        "state": st.sampled_from(["calm", "busy"]),
        "action": st.sampled_from(["wait", "act"]),
        "dose": st.sampled_from(["1", "2.5", "4"]),
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
    plain = read_log(table(rows, *PLAIN, reward=lambda row: "1"), clock=True)
    random.shuffle(rows)
    iso = table(rows, "episode", "state", "action", "when", reward=lambda row: "1")
    iso["when"] = [when.isoformat(random.choice([" ", "T"])) for when in iso["when"]]
    stamped = read_log(iso, columns={"step": "when"}, clock=True)
    assert digest(stamped) == digest(plain)
    local = iso | {"when": [row["when"].strftime("%d/%m/%Y %H:%M") for row in rows]}
    form = {"columns": {"step": "when"}, "time_format": "%d/%m/%Y %H:%M"}
    assert digest(read_log(local, clock=True, **form)) == digest(plain)


@few
@given(EPISODES)
def test_gaps_cut_as_by_hand(episodes):
    rows = rows_of(episodes)
    cut, part = [], 0
    for before, row in zip([None, *rows], rows, strict=False):
        same = before is not None and before["episode"] == row["episode"]
        part = part + 1 if same and row["minutes"] > 60 else part if same else 0
        step = 0 if not same or row["minutes"] > 60 else cut[-1]["step"] + 1
        cut.append(row | {"episode": f"{row['episode']} #{part + 1}", "step": step})
    by_hand = table(cut, *PLAIN, reward=lambda row: "1")
    given_ = table(rows, "episode", "state", "action", "when", reward=lambda row: "1")
    given_["when"] = [str(when) for when in given_["when"]]
    source = read_log(given_, columns={"step": "when"}, gap="1h", clock=True)
    assert digest(source) == digest(read_log(by_hand, clock=True))


@few
@given(EPISODES, st.randoms(use_true_random=False))
def test_recordings_are_cut_where_a_value_is_missing(episodes, random):
    """The rows before it stay, and nothing after it becomes a neighbour of them."""
    rows = rows_of(episodes)
    gone = {id(row) for row in rows if random.random() < 0.2}
    kept, lost = [], set()
    for row in rows:
        if id(row) in gone:
            lost.add(row["episode"])
        if row["episode"] not in lost:
            kept.append(row)
    damaged = table(rows, *PLAIN, reward=lambda row: "1")
    damaged["lactate"] = ["" if id(row) in gone else "2" for row in rows]
    source = read_log(damaged, missing=["lactate=drop"], clock=True)
    if not kept:
        with pytest.raises(InvalidLog, match="no row"):
            source.counts()
        return
    counts = source.counts()
    by_hand = read_log(table(kept, *PLAIN, reward=lambda row: "1"), clock=True).counts()
    assert counts.states == by_hand.states
    assert (counts.transitions.times == by_hand.transitions.times).all()
    cut = [many for why, many in counts.dropped.items() if "lactate" in why]
    assert sum(cut) == len(rows) - len(kept)
    there = {row["episode"] for row in kept}  # no clock stopped what was cut short
    assert counts.dropped.get(STOPPED, 0) == len(there - lost)
    assert counts.dropped.get(UNFINISHED, 0) == len(there & lost)
    assert counts.rows_read == len(rows)


def derived(rows, option, **reading):
    """The values of a derived column, in the order of the rows."""
    made = table(rows, *PLAIN, "dose", "when", reward=lambda row: "1")
    made["when"] = [str(when) for when in made["when"]]
    source = read_log(made, derive=[option], **reading)
    with connected(source.table) as database:
        name = read_derived(option).name
        query = f'SELECT "{name}" FROM log ORDER BY "surestep row"'
        return [value for (value,) in database.execute(query).fetchall()]


def so_far(rows, place, *, present):
    """The rows of the episode up to a place, with or without the one there."""
    last = place + 1 if present else place
    return [row for row in rows[:last] if row["episode"] == rows[place]["episode"]]


@settings(max_examples=3, deadline=None)
@given(EPISODES)
def test_derived_columns_are_those_of_the_definition(episodes):
    rows = rows_of(episodes)
    places = range(len(rows))
    here = [so_far(rows, place, present=True) for place in places]
    before = [so_far(rows, place, present=False) for place in places]
    calls = [sum(row["state"] == "busy" for row in past) for past in here]
    assert derived(rows, "calls=count(state=busy)") == calls
    # What is decided is not known before: only earlier rows count.
    acted = [sum(row["action"] == "act" for row in past) for past in before]
    assert derived(rows, "acted=count(action=act)") == acted
    assert derived(rows, "rows=count()") == [len(past) for past in here]
    doses = [sum(float(row["dose"]) for row in past) for past in here]
    assert derived(rows, "total=sum(dose)") == doses
    last = [past[-1]["dose"] if past else "none" for past in before]
    assert derived(rows, "last=previous(dose)") == last
    assert derived(rows, "age=since(first)") == [len(past) - 1.0 for past in here]
    stamps = {"columns": {"step": "when"}}
    days = [(past[-1]["when"] - past[0]["when"]).total_seconds() / 86400 for past in here]
    assert derived(rows, "age=since(first)", **stamps) == pytest.approx(days)
    quiet = []
    for past in here:
        busy = [row["when"] for row in past if row["state"] == "busy"]
        passed = None if not busy else (past[-1]["when"] - busy[-1]).total_seconds() / 86400
        quiet.append("never" if passed is None else passed)
    found = derived(rows, "quiet=since(state=busy)", **stamps)
    assert [value if value == "never" else float(value) for value in found] == [
        value if value == "never" else pytest.approx(value) for value in quiet
    ]


def test_values_and_names_are_quoted():
    """No text of a user becomes SQL."""
    nasty = "x'); DROP TABLE log; --"
    log = {
        "episode": ["a", "a"], "step": ["0", "1"], "action": ["go", "go"], "reward": ["1", "0"],
        'st"ate': [nasty, nasty], "terminated": ["false", "true"],
    }  # fmt: skip
    source = read_log(
        log,
        columns={"state": ['st"ate', "n"]},
        derive=[f'n=count(st"ate={nasty})'],
        missing=['st"ate=label'],
    )
    assert source.counts().states == ((nasty, "1"), (nasty, "2"))


def test_rewards_by_tables_add_up(tmp_path):
    costs, pays = tmp_path / "costs.csv", tmp_path / "pays.csv"
    costs.write_text("action,reward\nact,-0.1\n*,0\n")
    pays.write_text("outcome,reward\nhome,1\ndied,-10\n,0\n")
    log = {
        "episode": [1, 1, 2], "step": [0, 1, 0], "state": ["s", "s", "s"],
        "action": ["act", "wait", "act"], "outcome": [None, "home", "died"],
    }  # fmt: skip
    tables = [str(costs), str(pays)]
    source = read_log(log, reward_table=tables, complete=True)
    assert sorted(source.load().reward) == [-10.1, -0.1, 1.0]
    costs.unlink()  # what is recorded is what it said
    again = read_log(log, reward_table=source.reading.reward_table, complete=True)
    assert digest(again) == digest(source)


def test_rows_that_are_episodes_need_no_more():
    log = {"state": ["a", "b"], "action": ["x", "y"], "reward": [1, 0]}
    counts = read_log(log, one_step=True).counts()
    assert counts.episodes.terminated == counts.episodes.recorded == 2
    with pytest.raises(InvalidLog, match="neither a column of episodes nor one of next states"):
        read_log(log)


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

CLOCK = {"clock": True}


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
        ({}, {"gap": "30 moons"}, "gap is '30 moons', expected a time above 0 such as 30d"),
        ({}, {"missing": ["reward"]}, "'reward', expected COLUMN=refuse|drop|label"),
        ({}, {"missing": ["lactate=drop"]}, "no column 'lactate' of which values"),
        ({}, {"derive": ["n=median(state)"]}, "expected 'calls=count(event=call)'"),
        ({}, {"derive": ["state=count()"]}, "makes a column 'state', which there is"),
        ({}, {"derive": ["n=count(evnt=call)"]}, "looks at column 'evnt', which there is not"),
        ({}, {"reward_table": ["x,reward\na,1\n"]}, "from a table and from column 'reward'"),
        ({}, {"reward_table": ["state,reward\na,much\n"]}, "line 2, column 'reward': found 'much'"),
        ({}, CLOCK | {"columns": {"time": "state"}}, "column 'state': found 'a', expected a time"),
        ({"terminated": ["0", "1"]}, {"complete": True}, "but so does column 'terminated'"),
        ({"done": ["0", "1"]}, {"complete": True}, "but so does column 'done'; expected one"),
        ({}, {"complete": True, "clock": True}, "its last row ends, but so does clock=True"),
        ({}, {"clock": 1}, "clock is 1, expected true or false"),
        ({}, {"one_step": 1}, "one_step is 1, expected true or false"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, reading, says):
    with pytest.raises((InvalidLog, InvalidParameter)) as refusal:
        read_log(BASE | changes, **reading).counts()
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        (["end,reward\nSurvived,1\ndied,-1\n,0\n"], "row 2: column 'end' has the value 'survived' "
         "(2 rows), which the reward table does not list; it lists 'Survived', …"),
        (["end,reward\nsurvived,1\ndied,-1\n"], "row 1: column 'end' is empty (3 rows), which the "
         "reward table does not list; it lists 'survived', 'died'"),
        (["action,reward\n*,1\n", "action,end,reward\n*,survived,1\n*,,0\n"],
         "row 4: column 'action' has the value 'y' and column 'end' has the value 'died' (1 row), "
         "which the reward table does not list; it lists '*, survived', '*, '"),
    ],
)  # fmt: skip
def test_a_value_that_no_reward_table_lists_is_named(tables, says, tmp_path):
    """The rows are the outcomes, so that nothing is said of leaving them out."""
    file = tmp_path / "log.csv"
    rows = ["1,0,,x", "1,1, survived,x", "2,0,,x", "2,1,died,y", "3,0,,x", "3,1,survived,x"]
    lines = ["episode,step,end,action,state", *(f"{row},s" for row in rows)]
    file.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(InvalidLog) as refusal:
        read_log(file, reward_table=tables, complete=True).counts()
    assert str(refusal.value) == f"{file}, {says}"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "expected a value (missing=['x=drop']: the recording of its episode then ends there; "
         "or missing=['x=label']: then it is the label 'missing'); 2 rows are affected"),
        ({"bins": ["x:width=2"]}, "expected a number, since the column is binned "
         "(missing=['x=drop']: the recording of its episode then ends there); 2 rows"),
        ({"bins": ["x:quantiles=2"]}, "expected a finite number, since the column is binned "
         "(missing=['x=drop']: the recording"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_with_what_can_be_done(settings, says):
    columns = {"state": ["x"]}
    with pytest.raises(InvalidLog) as refused:
        read_log(WITH_GAPS, columns=columns, clock=True, **settings).counts()
    assert f"row 3, column 'x': found nothing, {says}" in str(refused.value)
    said = {"missing": ["x=drop"], "clock": True, **settings}
    kept = read_log(WITH_GAPS, columns=columns, **said).counts()
    assert sum(kept.dropped.values()) == 3  # with the last row before the gap, which led nowhere
    assert kept.dropped[UNFINISHED] == 1  # no clock has cut it


def test_where_only_numbers_have_a_place_nothing_is_labelled():
    with pytest.raises(InvalidParameter, match=r"where only numbers have a place.*x=drop"):
        read_log(WITH_GAPS, columns={"state": ["x"]}, missing=["x=label"], bins=["x:width=2"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("03/04/2025", "with time_format, such as %d/%m/%Y or %m/%d/%Y)"),
        ("31.12.2025 08:00", "with time_format, such as %d/%m/%Y)"),
        ("first", "a time stamp such as 2025-03-31 14:05; 4 rows"),
    ],
)
def test_a_stamp_that_could_be_several_dates_is_refused_with_how_to_say_which(text, says):
    stamped = WITH_GAPS | {"step": [text] * 4, "x": ["1"] * 4}
    with pytest.raises(InvalidLog) as refused:
        read_log(stamped, columns={"state": ["x"]}, clock=True).counts()
    assert f"row 1, column 'step': found {text!r}, expected" in str(refused.value)
    assert says in str(refused.value)


def test_two_rows_of_one_time_are_named_by_their_time():
    tied = WITH_GAPS | {"step": ["2025-01-01", "2025-01-02", "2025-01-02", "2025-01-01"]}
    says = r"row 3, column 'step': in episode 'e', more than one row has the time '2025-01-02'"
    with pytest.raises(InvalidLog, match=says):
        read_log(tied | {"x": ["1"] * 4}, columns={"state": ["x"]}, clock=True).counts()


def test_rows_that_belong_together_are_no_episodes_of_one_step():
    with pytest.raises(InvalidLog, match=r"say which rows belong together; .* leave out one_step"):
        read_log(WITH_GAPS, columns={"state": ["x"]}, one_step=True)
