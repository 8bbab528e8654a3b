"""Inspecting tables: every number against plain Python, on logs that make sense and on others."""

from collections import Counter, defaultdict
from itertools import pairwise
from statistics import median_low

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_tables import COLUMNS, DERIVED, KINDS, frame_of, rows_of, write_table
from support.strategies import decision_logs
from surestep.errors import InvalidLog
from surestep.io import read_log
from surestep.io.logs.findings import Example
from surestep.io.logs.inspection import REWARD_BINS, inspect_log

CENTS = st.integers(-500, 500).map(lambda cents: cents / 100)
NUMBERS = ("0", "1", "2.5", "-3", "1e3")


def pairs_of(facts, numbers):
    """The pairs of all rows with one of their numbers."""
    return {
        (facts.states[s], facts.actions[a]): n
        for s, a, n in zip(facts.state, facts.action, numbers, strict=True)
    }


def found_in(facts):
    """How often each kind was found."""
    times = Counter()
    for suspicion in facts.suspicions:
        times[suspicion.kind] += suspicion.times
    return +times


@pytest.mark.thorough
@settings(max_examples=3)
@given(
    log=decision_logs(rewards=CENTS),
    kind=st.sampled_from(KINDS),
    columns=st.sampled_from((COLUMNS, DERIVED)),
    rng=st.randoms(),
)
def test_a_sound_log_is_counted_as_counting_counts_it(log, kind, columns, rng, folder):
    rows = rows_of(log)
    rng.shuffle(rows)
    source = read_log(write_table(folder / f"log{kind}", rows, columns))
    facts = inspect_log(source)
    counts = source.counts()
    assert +Counter(pairs_of(facts, facts.visits)) == visits_of(counts)
    taken = Counter(((row["state"],), (row["action"],)) for row in rows)
    assert pairs_of(facts, facts.taken) == taken
    assert facts.rows == len(rows)
    assert (facts.taken - facts.visits).sum() == sum(counts.dropped.values())
    lengths = sorted(Counter(row["episode"] for row in rows).values())
    episodes = facts.episodes
    assert episodes.number == len(lengths)
    spread = (episodes.lowest, episodes.median, episodes.highest)
    assert spread == (lengths[0], median_low(lengths), lengths[-1])
    between = [sum(low < x < high for x in lengths) for low, high in pairwise(episodes.edges)]
    assert list(episodes.histogram) == between
    terminated = sum(row["terminated"] for row in rows)
    ends = (terminated, log.num_episodes - terminated, 0)
    assert (episodes.terminated, episodes.truncated, episodes.without_end) == ends
    decided = {row["state"] for row in rows}
    reached = {row["next_state"] for row in rows} - decided if "next_state" in columns else ()
    assert facts.only_reached == len(reached)
    assert set(found_in(facts)) <= {"state seen once", "outlier"}


@settings(max_examples=4)
@given(rewards=st.lists(st.one_of(CENTS, st.just(1e6)), min_size=1, max_size=40))
def test_rewards_have_the_quartiles_bins_and_outliers_of_plain_python(rewards):
    frame = {
        "state": np.zeros(len(rewards), np.int64),
        "action": np.zeros(len(rewards), np.int64),
        "next_state": np.zeros(len(rewards), np.int64),
        "reward": np.array(rewards),
    }
    facts = inspect_log(read_log(frame))
    found = facts.rewards
    quartiles = np.quantile(rewards, (0.25, 0.5, 0.75), method="inverted_cdf")
    np.testing.assert_array_equal(found.quartiles, quartiles)
    assert (found.number, found.lowest) == (len(rewards), min(rewards))
    assert found.highest == max(rewards)
    reach = 10 * (quartiles[2] - quartiles[0])
    near = [x for x in rewards if quartiles[0] - reach <= x <= quartiles[2] + reach]
    few = 0 < len(rewards) - len(near) <= 1
    shown = near if few else rewards
    assert (found.low, found.high) == (min(shown), max(shown))
    assert found_in(facts)["outlier"] == (len(rewards) - len(near) if few else 0)
    width = found.high - found.low
    bins = Counter(
        min(int((x - found.low) / width * REWARD_BINS), REWARD_BINS - 1) if width else 0
        for x in shown
    )
    assert dict(bins) == {i: times for i, times in enumerate(found.bins) if times}


MESSY = st.fixed_dictionaries(
    {
        "episode": st.sampled_from(("a", "b", None)),
        "step": st.one_of(st.sampled_from("0123"), st.sampled_from(("x", "-1", None, "70"))),
        "state": st.sampled_from(("s", "t", "u", None)),
        "action": st.sampled_from(("x", "y", None)),
        "reward": st.sampled_from((*NUMBERS, "many", None, "nan")),
        "next_state": st.sampled_from(("s", "t", None)),
        "terminated": st.sampled_from(("0", "0", "true", "maybe")),
        "truncated": st.sampled_from(("0", "0", "1", None)),
    }
)


def expected_of_episodes(rows, chained):
    """What is wrong with the steps of episodes, by plain Python."""
    found, steps = Counter(), defaultdict(list)
    for row in rows:
        if row["episode"] is not None:
            steps[row["episode"]].append(row)
    for own in steps.values():
        over = [row for row in own if row["terminated"] == "true" or row["truncated"] == "1"]
        found["episode without end"] += not over
        usable = [row for row in own if (row["step"] or "x").isdigit()]
        numbers = [int(row["step"]) for row in usable]
        found["repeated step"] += len(numbers) - len(set(numbers))
        found["missing step"] += sum(b > a + 1 for a, b in pairwise(sorted(numbers)))
        ends = [int(row["step"]) for row in over if (row["step"] or "x").isdigit()]
        found["step after end"] += sum(number > min(ends, default=99) for number in numbers)
        if chained:
            found["broken chain"] += broken_links(usable)
    return found


def broken_links(usable):
    """How many rows lead to another state than the next step is in; equal steps in fixed order."""
    ordered = sorted(
        usable,
        key=lambda row: (
            [int(row["step"])]
            + [(row[name] is None, row[name] or "") for name in ("state", "next_state")]
        ),
    )
    return sum(
        int(after["step"]) == int(row["step"]) + 1
        and None not in (row["next_state"], after["state"])
        and row["next_state"] != after["state"]
        for row, after in pairwise(ordered)
    )


def expected_of_rows(rows, chained):
    """How many values cannot be used, by plain Python."""
    number = sum(row[name] is None for row in rows for name in ("episode", "state", "action"))
    number += sum(row["reward"] not in NUMBERS for row in rows)
    number += sum(not (row["step"] or "x").isdigit() for row in rows)
    number += sum(row["terminated"] == "maybe" for row in rows)
    number += sum(row["truncated"] is None for row in rows)
    if chained:
        number += sum(
            (row["next_state"], row["terminated"], row["truncated"]) == (None, "0", "0")
            for row in rows
        )
    return number


@settings(max_examples=settings.default.max_examples // 3)
@given(rows=st.lists(MESSY, min_size=1, max_size=12), columns=st.sampled_from((COLUMNS, DERIVED)))
def test_a_log_that_makes_no_sense_is_shown_as_it_is(rows, columns, folder):
    chained = "next_state" in columns
    source = read_log(write_table(folder / "messy.csv", rows, columns))
    facts = inspect_log(source)
    states = Counter(row["state"] for row in rows if None not in (row["state"], row["action"]))
    expected = expected_of_episodes(rows, chained)
    expected["unusable value"] = expected_of_rows(rows, chained)
    expected["state seen once"] = sum(times == 1 for times in states.values())
    found = found_in(facts)
    del found["outlier"]
    assert found == +expected
    taken = Counter(((row["state"],), (row["action"],)) for row in rows)
    known = {pair: n for pair, n in taken.items() if (None,) not in pair}
    assert pairs_of(facts, facts.taken) == known
    refused = any(suspicion.refused for suspicion in facts.suspicions)
    try:
        source.counts()
    except InvalidLog:
        assert refused
    else:
        assert not refused


def write_parts(tmp_path):
    """One log in two files, with something wrong in each."""
    header = "episode,step,state,action,reward,terminated\n"
    first = tmp_path / "1.csv"
    second = tmp_path / "2.csv"
    first.write_text(header + "a,0,s,x,1,0\na,1,s,x,oops,0\na,1,s,y,1,1\n")
    second.write_text(header + "b,0,s,x,1,0\nb,2,rare,x,1,1\nb,3,s,x,1,0\nc,0,,x,1,0\n")
    return first, second


def test_every_kind_is_shown_with_its_file_row_episode_step_and_value(tmp_path):
    first, second = map(str, write_parts(tmp_path))
    facts = inspect_log(read_log([first, second]))
    places = {suspicion.kind: suspicion.examples for suspicion in facts.suspicions}
    assert places["repeated step"] == (Example(first, 3, "a", "1", "step 1 is there 2 times"),)
    assert places["missing step"] == (Example(second, 1, "b", "0", "step 0 is followed by step 2"),)
    assert places["step after end"] == (
        Example(second, 3, "b", "3", "the episode ended at step 2"),
    )
    assert places["episode without end"] == (Example(second, 4, "c", "0", "last step"),)
    assert places["state seen once"] == (Example(second, 2, "b", "2", "rare"),)
    unusable = [s for s in facts.suspicions if s.kind == "unusable value"]
    assert [(s.says, s.examples) for s in unusable] == [
        ("1 row without a value in column 'state'", (Example(second, 4, "c", "0", None),)),
        (
            "1 row without a finite number in column 'reward'",
            (Example(first, 2, "a", "1", "oops"),),
        ),
    ]


def test_a_next_state_that_is_not_the_next_steps_state_is_shown():
    rows = [
        {"episode": "e", "step": 0, "state": "s", "action": "x", "reward": 0, "next_state": "t"},
        {"episode": "e", "step": 1, "state": "u", "action": "x", "reward": 0, "next_state": "t"},
    ]
    facts = inspect_log(read_log(frame_of(rows, tuple(rows[0]))))
    broken = next(s for s in facts.suspicions if s.kind == "broken chain")
    says = "next state t, but the next step is in u"
    assert broken.examples == (Example(None, 1, "e", "0", says),)


def test_the_next_episode_may_begin_with_the_next_number_of_a_step():
    rows = {
        "episode": ["a", "a", "b", "b"],
        "step": [0, 1, 2, 3],
        "state": ["x", "y", "x", "y"],
        "action": ["u"] * 4,
        "reward": [0, 1, 0, 1],
        "next_state": ["y", "end", "y", "end"],
        "terminated": [False, True, False, True],
    }
    assert inspect_log(read_log(rows)).suspicions == ()


def test_rows_of_several_episodes_at_one_time_are_counted_and_not_refused():
    when = ["2025-01-01", "2025-01-02", "2025-01-02", "2025-01-03", "2025-01-03"]  # twice in c
    rows = [
        {"episode": e, "step": t, "state": "s", "action": "x", "reward": 0, "terminated": t}
        for e, t in (("a", 0), ("a", 1), ("b", 0), ("c", 0), ("c", 1))
    ]
    table = [row | {"when": day} for row, day in zip(rows, when, strict=True)]
    source = read_log(frame_of(table, tuple(table[0])), columns={"time": "when"})
    (tied,) = [s for s in inspect_log(source).suspicions if s.kind == "tied time"]
    assert (tied.times, tied.refused) == (2, False)
    says = "at 2025-01-02 00:00:00"
    assert tied.examples == (Example(None, 2, "a", "1", says), Example(None, 3, "b", "0", says))
    assert source.counts().rows_read == 5
    plain = inspect_log(read_log(frame_of(rows, tuple(rows[0])))).suspicions
    assert "tied time" not in {s.kind for s in plain}


def test_flags_are_read_in_many_ways():
    words = {"true": True, "T": True, " Yes": True, "1": True, "1.0": True, "TRUE ": True}
    words |= {"false": False, "F": False, "no": False, "0": False, "0.0": False, " False": False}
    rows = [
        {"episode": e, "step": 0, "state": "s", "action": "x", "reward": 0, "terminated": word}
        for e, word in enumerate((*words, "truest", "01"))
    ]
    facts = inspect_log(read_log(frame_of(rows, tuple(rows[0]))))
    assert facts.episodes.terminated == sum(words.values())
    assert found_in(facts)["unusable value"] == 2


def test_labels_with_quotes_and_steps_beyond_all_bounds_are_only_text(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "episode,step,state,action,reward\n"
        'it\'s,0,"o\'clock",x,1\n"it\'s",999999999999999999,"o\'clock",x,1e999\n'
        '"""; DROP TABLE log",0,once,x,1e308\n"""; DROP TABLE log",0,s,x,-1e308\n'
    )
    facts = inspect_log(read_log(path))
    found = found_in(facts)
    assert found["missing step"] == 1
    assert (found["repeated step"], found["episode without end"]) == (1, 2)
    assert facts.rewards.number == 3
    assert len(facts.rewards.bins) == 1  # the width of others would be infinite


def visits_of(counts):
    """The visits of every pair, as counting finds them."""
    rows, visits = counts.transitions, Counter()
    for s, a, times in zip(rows.state, rows.action, rows.times, strict=True):
        visits[counts.states[s], counts.actions[a]] += times
    return visits


def bins_of(rule):
    column, _, rest = rule.partition(":")
    kind, _, number = rest.partition("=")
    return {column: {kind: [float(number)] if kind == "edges" else int(number)}}


@pytest.mark.parametrize("rule", ["state:width=2", "state:quantiles=3", "action:edges=0.5"])
def test_binned_labels_are_counted_by_their_bins(tmp_path, rule):
    path = tmp_path / "log.csv"
    lines = [f"{i % 3},{i // 3},{i % 7},{i % 2},{i},0" for i in range(30)]
    path.write_text("episode,step,state,action,reward,done\n" + "\n".join(lines) + "\n")
    source = read_log(path, bins=bins_of(rule))
    facts = inspect_log(source)
    assert +Counter(pairs_of(facts, facts.visits)) == visits_of(source.counts())
    assert len(facts.states) < 7 or len(facts.actions) < 3
    path.write_text(path.read_text() + "9,0,nan,nan,0,0\n")
    facts = inspect_log(read_log(path, bins=bins_of(rule.replace("quantiles=3", "width=1"))))
    refused = [s.says for s in facts.suspicions if s.kind == "unusable value"]
    column = rule.partition(":")[0]
    assert refused == [
        f"1 row without a finite number, since the column is binned in column {column!r}"
    ]


def test_loose_transitions_have_no_episodes():
    rows = [{"state": "a", "action": "x", "reward": 1, "next_state": "b"}]
    facts = inspect_log(read_log(frame_of(rows, tuple(rows[0]))))
    assert (facts.episodes, facts.only_reached) == (None, 1)
    assert [s.kind for s in facts.suspicions] == ["state seen once"]


def test_a_log_without_any_usable_row_is_still_shown(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("episode,step,state,action,reward\n,,,,\n,,,,\n")
    facts = inspect_log(read_log(path))
    assert (facts.rows, facts.states, facts.rewards, facts.episodes) == (2, (), None, None)
    assert found_in(facts) == {"unusable value": 10}


def test_what_cannot_be_read_at_all_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("episode,step,state,action,reward\n")
    with pytest.raises(InvalidLog, match="no row"):
        inspect_log(read_log(path))
    path.write_text('episode,step,state,action,reward\na,0,s,x\na,1,"s\n')
    with pytest.raises(InvalidLog, match="line 2: found 4 values, expected 5"):
        inspect_log(read_log(path))
