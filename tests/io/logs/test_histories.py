"""States that are the last rows: the windows that one would write by hand, in every kind of log."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surestep.io.logs.source as source_module
from log_tables import frame_of, rows_of, write_table
from surestep import read_log
from surestep.environments import make
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.counts.labelled import counts_digest
from surestep.io.labels.histories import (
    MOST_ROWS,
    PADDING,
    History,
    Length,
    apart_from_padding,
)
from surestep.io.labels.label import joined
from surestep.io.logs.inspection import inspect_log

# Texts that could be taken for others: for what stands where no row is, or for two columns.
TEXTS = ["a", "a, b", "b", "none", "(none)", "((none))", "((none)", "\\", ","]
texts = st.sampled_from(TEXTS)


def plain(text):
    """The text of the log that stands in a column of an earlier row; None where no row is."""
    if text == PADDING:
        return None
    return text[1:-1] if text.strip("()") == "none" and text != "none" else text


def window_of(label, states, actions, rows):
    """The rows of a state: (state, action) of earlier ones, oldest first, then the present one."""
    width = states + actions
    earlier = [label[states + i * width : states + (i + 1) * width] for i in range(rows - 1)]
    known = [tuple(map(plain, row)) for row in earlier]
    assert all(None not in row for row in known if row[0] is not None)
    window = [row for row in reversed(known) if row[0] is not None]
    assert [row[0] is None for row in known] == sorted(row[0] is None for row in known)
    return (*window, label[:states])


def transitions_of(counts, states, actions, rows):
    """How often each window, action and next window (None: the end) occur, with what they paid."""
    moves, found = counts.transitions, {}
    for i in range(moves.times.size):
        there = None
        if not moves.terminated[i]:
            there = window_of(counts.states[moves.next_state[i]], states, actions, rows)
        here = window_of(counts.states[moves.state[i]], states, actions, rows)
        key = here, counts.actions[moves.action[i]], there
        assert key not in found
        found[key] = int(moves.times[i]), int(moves.reward_sum[i]) / 10**counts.scale
    return found


def by_hand(episodes, rows):
    """The same of episodes of (state, action, reward), the last of which ends its episode."""
    times, paid = Counter(), defaultdict(float)
    for episode in episodes:
        windows = [
            (*(step[:1] + step[1:2] for step in episode[max(i - rows + 1, 0) : i]), episode[i][0])
            for i in range(len(episode))
        ]
        windows = [
            (*((*state, *action) for state, action in window[:-1]), window[-1])
            for window in windows
        ]
        for i, (_, action, reward) in enumerate(episode):
            there = windows[i + 1] if i + 1 < len(episode) else None
            times[windows[i], action, there] += 1
            paid[windows[i], action, there] += reward
    return {key: (times[key], paid[key]) for key in times}


def table_of(episodes, seed=0):
    """The rows of the episodes in any order."""
    rows = [
        {"episode": f"e{e}", "step": t + 7}
        | {f"state_{i}": text for i, text in enumerate(state)}
        | {f"action_{i}": text for i, text in enumerate(action)}
        | {"reward": reward, "terminated": t + 1 == len(episode)}
        for e, episode in enumerate(episodes)
        for t, (state, action, reward) in enumerate(episode)
    ]
    order = np.random.default_rng(seed).permutation(len(rows))
    rows = [rows[i] for i in order]
    return frame_of(rows, tuple(rows[0]))


@st.composite
def logs(draw):
    """Episodes of states and actions of one or two columns."""
    states, actions = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    label = st.tuples(*[texts] * states), st.tuples(*[texts] * actions)
    step = st.tuples(*label, st.integers(-3, 3))
    return states, actions, draw(st.lists(st.lists(step, min_size=1, max_size=5), min_size=1))


@settings(max_examples=5)
@given(logs(), st.integers(2, 4))
def test_states_are_the_windows_of_rows_and_no_two_are_confused(log, rows):
    states, actions, episodes = log
    columns = {
        "state": [f"state_{i}" for i in range(states)],
        "action": [f"action_{i}" for i in range(actions)],
    }
    source = read_log(table_of(episodes), columns=columns, history=rows)
    longest = max(map(len, episodes))
    if longest < rows:
        with pytest.raises(InvalidLog, match=f"last {rows} rows .* more than {longest}; expected"):
            source.counts()
        return
    counts = source.counts()
    assert transitions_of(counts, states, actions, rows) == by_hand(episodes, rows)
    assert len(set(map(joined, counts.states))) == len(counts.states)
    steps = source.load()
    assert steps.num_steps == sum(map(len, episodes))
    assert (steps.counts().visits.sum(), steps.num_episodes) == (steps.num_steps, len(episodes))


@given(st.lists(st.text(st.sampled_from("(none)x")), max_size=4))
def test_no_text_of_a_log_is_what_stands_where_no_row_is(several):
    marked = [apart_from_padding(text) for text in several]
    assert PADDING not in marked
    assert [plain(text) for text in marked] == several


@given(st.integers(2, 5), st.sets(st.sampled_from("abcd"), min_size=1, max_size=3), st.data())
def test_a_history_is_known_by_its_columns(rows, names, data):
    state = tuple(sorted(names))
    action = tuple(data.draw(st.sets(st.sampled_from("xyz"), min_size=1, max_size=2)))
    history = History(rows, state, action)
    assert History.among(history.columns, action) == history
    assert History.among(history.columns[:-1], action) is None
    assert History.among(state, action) is None


@pytest.mark.parametrize("memory", [1, 2])
@pytest.mark.parametrize("name", ["tiger", "voicemail", "cheese-maze"])
def test_observations_read_as_histories_are_the_states_of_the_environments(name, memory):
    """Their windows are made otherwise: while the environment is simulated."""
    log = make(name, memory=memory).sample(60, np.random.default_rng(3))
    rows, words = rows_of(log), log.pairs.state_labels
    for row, state, there, action in zip(rows, log.state, log.next_state, log.action, strict=True):
        row["state"] = words[state].split()[-1]
        row["action"] = log.pairs.action_labels[action]
        row["next_state"] = None if row["terminated"] else words[there].split()[-1]
    counts = read_log(frame_of(rows), history=memory + 1).counts()
    found = Counter()
    moves = counts.transitions
    for i in range(moves.times.size):
        here, there = (
            "over" if place < 0 else words_of(counts.states[place], memory)
            for place in (moves.state[i], moves.next_state[i])
        )
        found[here, counts.actions[moves.action[i]][0], there] += int(moves.times[i])
    labels = log.pairs.state_labels, log.pairs.action_labels, log.pairs.state_labels
    steps = zip(log.state, log.action, log.next_state, strict=True)
    expected = Counter(
        tuple(names[i] for names, i in zip(labels, step, strict=True)) for step in steps
    )
    assert found == expected


def words_of(label, memory):
    return " ".join(part for row in window_of(label, 1, 1, memory + 1) for part in row)


# ---- the other ways to read a log -------------------------------------------------------------


def patients(episodes=30, seed=1):
    """Rows with a number, a ward, an action and a reward."""
    rng = np.random.default_rng(seed)
    return [
        {
            "episode": e,
            "step": t,
            "age": round(float(rng.uniform(0, 10)), 1),
            "ward": str(rng.choice(["a", "b"])),
            "action": str(rng.choice(["wait", "treat"])),
            "reward": float(rng.integers(3)),
            "terminated": t == 3,
        }
        for e in range(episodes)
        for t in range(4)
    ]


NAMES = ("episode", "step", "age", "ward", "action", "reward", "terminated")
BOTH = {"state": ["age", "ward"]}


def same_counts(one, other):
    assert one.states == other.states
    assert one.state_columns == other.state_columns
    for ours, theirs in zip(one.transitions, other.transitions, strict=True):
        assert (ours is None and theirs is None) or (ours == theirs).all()
    assert (one.starts == other.starts).all()


@pytest.mark.parametrize("rule", ["age:edges=2.5,7", "age:width=3", "age:quantiles=3"])
def test_bins_are_those_of_a_log_that_was_binned_before(rule):
    rows = patients()
    source = read_log(frame_of(rows, NAMES), columns=BOTH, bins=[rule], history=2)
    counts = source.counts()
    binning = counts.binnings["age"]
    assert counts.binnings["age 1 before"] == binning
    plainly = [{**row, "age": binning.label(binning.index(row["age"]))} for row in rows]
    same_counts(counts, read_log(frame_of(plainly, NAMES), columns=BOTH, history=2).counts())
    finer = source.with_bins(["age:edges=1,2,3,4"]).counts()
    assert finer.binnings["age 1 before"].edges == (1, 2, 3, 4)
    assert inspect_log(source).states == tuple(
        state for state, decided in zip(counts.states, counts.decided, strict=True) if decided
    )


@pytest.mark.parametrize("given", [{}, {"next_ward": True}])
def test_rows_in_order_are_counted_in_one_pass_and_others_alike(monkeypatch, given):
    rows = patients()
    for row, after in zip(rows, [*rows[1:], rows[0]], strict=True):
        row["next_ward"] = None if row["terminated"] else after["ward"]
    names = (*NAMES, *given)
    hopes = []
    count = source_module.count_as_hoped

    def watched(database, query, scan):
        hopes.append(count(database, query, scan))
        return hopes[-1]

    monkeypatch.setattr(source_module, "count_as_hoped", watched)
    columns = {"state": ["ward"]}
    in_order = read_log(frame_of(rows, names), columns=columns, history=3).counts()
    assert hopes == [True]
    other = read_log(frame_of(rows[::-1], names), columns=columns, history=3).counts()
    assert hopes == [True, False, True]
    same_counts(in_order, other)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_are_read_as_tables_in_memory(tmp_path, kind):
    rows = patients(8)
    given = {"columns": BOTH, "bins": ["age:width=5"], "history": 3}
    path = write_table(tmp_path / f"log.{kind}", rows, NAMES)
    same_counts(read_log(path, **given).counts(), read_log(frame_of(rows, NAMES), **given).counts())


def test_a_row_knows_the_action_before_as_a_derived_column_does():
    """`previous` says 'none' where a history says '(none)': else both are the same."""
    table = frame_of(patients(), NAMES)
    states = {"state": ["ward", "last", "spent"]}
    derived = read_log(
        table, columns=states, derive=["last=previous(action)", "spent=sum(reward)"], history=2
    ).counts()
    place = derived.state_columns.index("action 1 before")
    for label in derived.states:
        last = label[derived.state_columns.index("last")]
        assert label[place] == (PADDING if last == "none" else last)
    spent = derived.state_columns.index("spent 1 before")
    assert {label[spent] for label in derived.states} > {PADDING, "0.0"}


def test_gaps_and_missing_values_end_histories():
    rows = [
        ("p", "2025-03-01 08:00", "a", "x"),
        ("p", "2025-03-01 09:00", "b", "y"),
        ("p", "2025-04-01 08:00", "a", "x"),  # a month later: another episode
        ("p", "2025-04-01 09:00", "b", "x"),
        ("p", "2025-04-01 10:00", "", "y"),  # the recording ends here
        ("p", "2025-04-01 11:00", "a", "y"),
    ]
    names = ("episode", "step", "state", "action")
    table = frame_of([dict(zip(names, row, strict=True)) | {"reward": 0} for row in rows],
                     (*names, "reward"))  # fmt: skip
    source = read_log(table, gap="7d", missing=["state=drop"], history=2, clock=True)
    counts = source.counts()
    assert set(counts.states) == {("a", PADDING, PADDING), ("b", "a", "x")}
    assert (counts.rows_read, sum(counts.dropped.values())) == (6, 4)


def test_last_observations_of_rlds_have_histories_too():
    names = ("episode", "step", "state", "action", "reward", "is_last", "is_terminal")
    rows = [(1, 0, "a", "x", 1, 0, 0), (1, 1, "b", "y", 2, 0, 0), (1, 2, "c", None, 0, 1, 0)]
    table = frame_of([dict(zip(names, row, strict=True)) for row in rows], names)
    counts = read_log(table, history=3).counts()
    assert counts.states[-1] == ("c", "b", "y", "a", "x")
    assert counts.transitions.times.tolist() == [1, 1]


def test_ends_that_are_named_are_as_few_as_without_histories():
    names = ("episode", "step", "state", "action", "reward", "next_state", "terminated")
    rows = [
        *((1, 0, "a", "x", 0, "b", 0), (1, 1, "b", "y", 1, "home", 1)),
        *((2, 0, "a", "y", 0, "b", 0), (2, 1, "b", "y", 1, "home", 1)),
        *((3, 0, "a", "y", 0, "b", 0), (3, 1, "b", "x", 1, "c", 0)),
    ]
    table = frame_of([dict(zip(names, row, strict=True)) for row in rows], names)
    counts = read_log(table, history=2).counts()
    assert counts.end_states() == (("home", PADDING, PADDING),)
    assert ("c", "b", "x") in counts.states
    again = read_log(table, columns=read_log(table, history=2).columns.by_role(), history=2)
    same_counts(again.counts(), counts)


# ---- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        *(0, MOST_ROWS + 1, 1.5, True, "two", "-1", "{}", "[2]", "nan"),
        '{"rows": 3, "log_likelihood": [-1.5, -1.0]}',
        '{"rows": 1, "log_likelihood": ["x"]}',
    ],
)
def test_numbers_of_rows_that_make_no_sense_are_refused(said):
    with pytest.raises(InvalidParameter, match=r"history is .*, expected 1 to 50 rows, or 'auto'"):
        read_log({"state": ["a"]}, history=said)


def test_a_choice_is_read_as_it_was_written():
    choice = Length(2, (-1.25, -1.0))
    assert Length.read(choice.text) == choice
    assert Length.read("auto") == Length(None)
    assert Length.read(3).text == "3"


def test_logs_in_which_nobody_knows_what_was_before_are_refused():
    loose = {"state": ["a"], "action": ["x"], "reward": [1], "next_state": ["b"]}
    with pytest.raises(InvalidLog, match=r"last 2 rows .* name them with columns="):
        read_log(loose, history=2)
    assert read_log(loose, history=1).counts().states == (("a",), ("b",))
    bandit = {"state": ["a", "b"], "action": ["x", "y"], "reward": [1, 2]}
    source = read_log(bandit, one_step=True, history=2)
    with pytest.raises(InvalidLog, match="no episode has more than 1; expected a history of 1"):
        source.counts()


def test_one_file_of_a_cluster_may_have_short_episodes_only(tmp_path, monkeypatch):
    monkeypatch.setattr(
        source_module,
        "map_as_done",
        lambda function, tasks, **engine: enumerate(map(function, tasks)),
    )
    long = [
        {"episode": e, "step": t, "state": (e + t) % 2, "action": t % 2, "reward": 1}
        for e in range(4)
        for t in range(4)
    ]
    short = [{**row, "episode": row["episode"] + 4} for row in long if row["step"] < 2]
    for name, rows in {"long": long, "short": short}.items():
        write_table(tmp_path / f"{name}.csv", rows, tuple(long[0]))
    source = read_log([tmp_path / "long.csv", tmp_path / "short.csv"], history=3, clock=True)
    merged, alone = source_module.count_on_ray(source), source.counts()
    assert counts_digest(merged) == counts_digest(alone)
    with pytest.raises(InvalidLog, match=r"short\.csv: .* no episode has more than [12];"):
        source_module.count_on_ray(read_log(tmp_path / "short.csv", history=3, clock=True))


def test_a_column_that_there_is_already_is_refused():
    table = frame_of([{**row, "ward 1 before": "x"} for row in patients(3)],
                     (*NAMES, "ward 1 before"))  # fmt: skip
    with pytest.raises(InvalidLog, match="makes a column 'ward 1 before', which there is"):
        read_log(table, columns=BOTH, history=2)


def test_a_missing_state_is_told_once_at_its_own_row():
    rows = [{**row, "ward": None if i == 5 else row["ward"]} for i, row in enumerate(patients(3))]
    source = read_log(frame_of(rows, NAMES), columns={"state": ["ward"]}, history=2)
    with pytest.raises(InvalidLog, match="row 6, column 'ward': found nothing, expected a value"):
        source.counts()
    (only,) = [each for each in inspect_log(source).suspicions if each.refused]
    assert only.times == 1
