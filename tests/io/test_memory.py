"""Logs with a memory: states against a memory that plain Python keeps, and what is refused."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import surestep
from surestep.environments import make
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.labels.binning import START, Binning

ROWS = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c d"]), st.floats(-3, 3), st.sampled_from(["x", "y"])
        ),
        min_size=1,
        max_size=5,
    ),
    min_size=1,
    max_size=4,
)


def table_of(episodes, order):
    """The rows of episodes as columns, in any order."""
    rows = [
        (f"e{e}", t, place, number, action, 0.0, t + 1 == len(steps))
        for e, steps in enumerate(episodes)
        for t, (place, number, action) in enumerate(steps)
    ]
    names = ("episode", "step", "place", "number", "action", "reward", "terminated")
    return dict(zip(names, zip(*(rows[i] for i in order(len(rows))), strict=True), strict=True))


def remembered(steps, memory):
    """The state of each step: what is there now, and before, newest first."""
    whole = Binning(width=1.0)
    past = list[str]()
    for place, number, action in steps:
        now = [place, whole.label(whole.index(number))]
        padded = [*past, *[START] * 3 * memory]
        yield (*now, *padded[: 3 * memory])
        past = [*now, action, *past]


@pytest.mark.thorough
@given(ROWS, st.integers(0, 3), st.randoms())
def test_states_are_those_of_a_memory_kept_by_hand(episodes, memory, random):
    table = table_of(episodes, lambda n: random.sample(range(n), n))
    source = surestep.read_log(
        {name: list(values) for name, values in table.items()},
        columns={"state": ["place", "number"]},
        bins={"number": {"width": 1.0}},
        memory=memory,
    )
    counts = source.counts()
    log = source.load(counts=counts)
    kept = [label for steps in episodes for label in remembered(steps, memory)]
    by_name = {", ".join(x.replace(",", "\\,") for x in label): label for label in kept}
    episode = np.repeat(np.arange(log.num_episodes), np.diff(log.episode_offsets))
    found = sorted(by_name[log.pairs.state_labels[s]] for s in log.state)
    assert episode.size == len(kept)
    assert found == sorted(kept)
    assert set(counts.states) == set(kept)


def written(log, path, sight):
    """A log of a benchmark as a file of rows."""
    seen, actions = log.pairs.state_labels, log.pairs.action_labels
    episode = np.repeat(np.arange(log.num_episodes), np.diff(log.episode_offsets))
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["episode", "step", sight, "action", "reward", "terminated", "truncated"])
        flags = log.reward, log.terminated, log.truncated
        for e, t, s, a, *rest in zip(episode, log.step, log.state, log.action, *flags, strict=True):
            table.writerow([e, t, seen[s], actions[a], *rest])
    return str(path)


@pytest.mark.one_quick
@pytest.mark.parametrize("name", ["tiger", "voicemail", "cheese-maze"])
@pytest.mark.parametrize("memory", [1, 2])
def test_what_is_remembered_is_what_the_world_with_that_memory_shows(name, memory, tmp_path):
    """The same walks, as the benchmark shows them and as rows are read with a memory."""
    plain, full = make(name, memory=0), make(name, memory=memory)
    files = [
        written(world.sample(200, 5), tmp_path / f"{place}.csv", "seen")
        for place, world in enumerate((plain, full))
    ]
    read = surestep.read_log(files[0], columns={"state": "seen"}, memory=memory)
    shown = surestep.read_log(files[1], columns={"state": "seen"})
    ours, theirs = read.counts(), shown.counts()

    def one_text(label):  # the last step first, each as (seen, action)
        now, *before = label
        steps = [before[i : i + 2] for i in range(0, len(before), 2)]
        texts = [text for step in reversed(steps) for text in step]
        return " ".join(text for text in [*texts, now] if text != START)

    assert {one_text(label) for label in ours.states} == {label for (label,) in theirs.states}
    visits = [
        np.sort(np.bincount(c.transitions.state, c.transitions.times)) for c in (ours, theirs)
    ]
    np.testing.assert_array_equal(visits[0][visits[0] > 0], visits[1][visits[1] > 0])


BASE = {
    "episode": [0, 0, 1, 1],
    "step": [0, 1, 0, 1],
    "state": ["a", "b", "a", "b"],
    "action": ["x", "y", "x", "y"],
    "reward": [0, 1, 0, 1],
    "terminated": [0, 1, 0, 1],
}


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({"next_state": ["b", None] * 2}, "memory.steps is 1, but column 'next_state' says which"),
        ({"state 1 step before": ["a"] * 4}, "column 'state 1 step before' is there already"),
        ({"state": ["(start)", "b"] * 2}, r"found '\(start\)', expected another text"),
    ],
)
def test_a_memory_that_cannot_be_made_is_refused_in_a_line(change, refused):
    with pytest.raises(InvalidLog, match=refused):
        surestep.read_log(BASE | change, memory=1).counts()


def test_rows_without_episodes_have_no_memory():
    loose = {name: BASE[name] for name in ("state", "action", "reward")}
    with pytest.raises(InvalidLog, match="column 'state' belongs to no episode"):
        surestep.read_log(loose, memory=1)
    with pytest.raises(
        InvalidParameter, match=r"memory\.steps is 11, expected a whole number <= 10"
    ):
        surestep.read_log(BASE, memory=11)


@pytest.mark.thorough
def test_a_policy_of_the_present_is_lifted_to_every_past():
    table = {name: values * 40 for name, values in BASE.items()}
    table["episode"] = [i // 2 for i in range(160)]
    table["action"] = ["x", "y", "y", "x"] * 40
    policy = {"state": ["a", "a", "b", "b"], "action": ["x", "y"] * 2}
    chances = policy | {"probability": [0.25, 0.75, 0.5, 0.5]}
    terms = {"memory": 1, "discount": 1, "worlds": 0, "ending": (0, 1)}
    result = surestep.improve(table, behavior=chances, **terms)
    rows = result.to_frame().to_dict("records")
    assert {(r["state"], r["action 1 step before"]) for r in rows} == {
        ("a", START),
        ("b", "x"),
        ("b", "y"),
    }
    known = dict(zip(zip(*policy.values(), strict=True), chances["probability"], strict=True))
    assert all(r["behavior_probability"] == known[r["state"], r["action"]] for r in rows)
    allowed = {"state": ["b"], "action": ["x"]}
    within = surestep.improve(table, allowed=allowed, **terms).table.allowed
    assert within.sum() == 2
    with pytest.raises(InvalidLog, match="no state has 'c' in column 'state'"):
        surestep.improve(table, allowed={"state": ["c"], "action": ["x"]}, **terms)
