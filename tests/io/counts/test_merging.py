"""Counts as files: a log cut into pieces, counted in any order and merged, gives the same bytes."""

import dataclasses
import json
import random
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_tables import COLUMNS, DERIVED, KINDS, frame_of, rows_of, write_table
from support.strategies import decision_logs
from surestep import Pairs
from surestep.errors import FileFailure, InvalidCounts, InvalidLog, ShapeMismatch, SurestepError
from surestep.io import merge_counts, read_counts, read_log, write_counts
from surestep.io.counts import file
from surestep.io.counts.labelled import counts_digest
from surestep.model.known import with_zero
from surestep.pipeline.terms import facts_of

REWARDS = st.one_of(
    st.integers(-500, 500).map(lambda cents: cents / 100), st.sampled_from([1e-5, 0.1 + 0.2, 1 / 3])
)


def bytes_of(counts, path):
    write_counts(counts, path)
    return path.read_bytes()


@pytest.mark.thorough
@settings(max_examples=3)
@given(
    log=decision_logs(rewards=REWARDS),
    columns=st.sampled_from([COLUMNS, DERIVED, (*DERIVED, "behavior_prob")]),
    rng=st.randoms(use_true_random=False),
)
def test_shards_in_any_order_give_the_bytes_of_one_pass(log, columns, rng, folder):
    rows = [row | {"behavior_prob": rng.choice([0.25, 0.5])} for row in rows_of(log)]
    in_memory = read_log(frame_of(rows, columns)).counts()
    kind, shard = rng.choice(KINDS), {row["episode"]: rng.randrange(3) for row in rows}
    parts, paths = [], []
    for number in sorted(set(shard.values()), key=lambda _: rng.random()):
        chosen = [row for row in rows if shard[row["episode"]] == number]
        rng.shuffle(chosen)
        path = write_table(folder / f"shard{number}{kind}", chosen, columns)
        write_counts(read_log(path).counts(), folder / f"{number}.parquet")
        parts.append(read_counts(folder / f"{number}.parquet"))
        paths.append(path)
    whole = bytes_of(read_log(paths).counts(), folder / "whole.parquet")
    together = merge_counts(parts)
    assert counts_digest(together) == counts_digest(in_memory)
    assert bytes_of(together, folder / "merged.parquet") == whole
    pairwise = parts[0]
    for part in parts[1:]:
        pairwise = merge_counts([part, pairwise])
    assert bytes_of(pairwise, folder / "pairwise.parquet") == whole


def counts_of(*rewards, columns=("state", "action")):
    state, action = columns
    rows = [
        {state: "a", action: "x", "reward": reward, "next_state": "b", "terminated": False}
        for reward in rewards
    ]
    names = {"state": state, "action": action}
    return read_log(frame_of(rows, tuple(rows[0])), columns=names).counts()


def nameless(counts):
    """The counts without what they were made of: small tables may well be equal."""
    return dataclasses.replace(counts, sources=())


def test_the_scale_is_the_smallest_that_the_rewards_need():
    halves = counts_of("0.50", "0.5")
    assert (halves.scale, list(halves.transitions.reward_sum)) == (1, [10])
    inner = counts_of("0", "0.5", "0.5", "1")  # neither the sum nor the extremes need a digit
    assert (inner.scale, list(inner.transitions.reward_sum)) == (0, [2])
    assert (counts_of("0.5").scale, counts_of("1e-3").scale, counts_of("5e2").scale) == (1, 3, 0)
    together = merge_counts([counts_of("0.5"), counts_of("0.001")])
    assert (together.scale, list(together.transitions.reward_sum)) == (3, [501])


def test_sums_beyond_38_digits_are_refused():
    huge, tiny = counts_of("9e30"), counts_of("1e-9")
    with pytest.raises(InvalidCounts, match="more than 38 digits"):
        merge_counts([huge, tiny])


def test_other_columns_are_other_counts():
    with pytest.raises(ShapeMismatch, match="state is state in some counts and ward in others"):
        merge_counts([counts_of(1), counts_of(1, columns=("ward", "action"))])
    with pytest.raises(InvalidCounts, match="no counts to merge"):
        merge_counts([])


def test_what_is_no_file_of_counts_is_refused(tmp_path):
    path = tmp_path / "counts.parquet"
    with pytest.raises(FileFailure, match="is no file"):
        read_counts(path)
    with duckdb.connect() as database:
        database.execute(f"COPY (SELECT 1 AS kind) TO '{path}' (FORMAT parquet)")
    with pytest.raises(InvalidCounts, match="no manifest"):
        read_counts(path)
    whole = bytes_of(counts_of("0.5", 1), path)
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        with pytest.raises(SurestepError, match=r"counts\.parquet"):
            read_counts(path)


def test_forged_rows_are_refused(tmp_path):
    good = counts_of("0.5")
    rows = good.transitions
    for change, message in (
        ({"times": rows.times * 0}, "a count is negative, or 0"),
        ({"next_state": rows.next_state * 0 - 1}, "did not terminate led nowhere"),
        ({"reward_sum": rows.reward_sum + 1}, "not between the least and the greatest"),
        ({"least_reward": rows.least_reward + 1}, "not between the least and the greatest"),
    ):
        forged = dataclasses.replace(good, transitions=rows._replace(**change))
        write_counts(forged, tmp_path / "forged.parquet")
        with pytest.raises(InvalidCounts, match=message):
            read_counts(tmp_path / "forged.parquet")
    for column, value, message in (
        ("state.state", 'nullif("state.state", "state.state")', "a label of a state is no text"),
        ("times", "nullif(times, times)", "is missing or"),
        ("times", "CASE WHEN kind = 'state' THEN 1e300 ELSE times END", "cannot be read: Conv"),
    ):
        write_counts(good, tmp_path / "good.parquet")
        with_values(tmp_path / "good.parquet", column, value, tmp_path / "forged.parquet")
        with pytest.raises(InvalidCounts, match=message):
            read_counts(tmp_path / "forged.parquet")


def test_counts_that_were_changed_are_refused_by_name(tmp_path):
    """Every flipped bit is one."""
    good, path = tmp_path / "good.parquet", tmp_path / "changed.parquet"
    write_counts(counts_of("0.5", "2"), good)
    data, rng = good.read_bytes(), random.Random(41)
    for place in [rng.randrange(len(data)) for _ in range(40)]:
        changed = bytearray(data)
        changed[place] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        with pytest.raises(InvalidCounts, match=r"changed\.parquet"):
            read_counts(path)
    path.write_bytes(data.replace(b'"rows_read": 2', b'"rows_read": 1'))
    with pytest.raises(InvalidCounts, match="it was damaged or changed after it was written; coun"):
        read_counts(path)


def test_counts_of_an_older_version_are_read():
    counts = read_counts(Path(__file__).parents[2] / "data" / "counts-6.parquet")
    assert (counts.rows_read, counts.states) == (4, (("a", "< 50"), ("a", ">= 50"), ("b", "< 50")))
    assert counts.transitions.reward_sum.tolist() == [50, -25, 200, 100]
    assert counts.signals["harm"].transitions.reward_sum.tolist() == [0, 0, 0, -1]


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_what_the_log_does_and_pairs_do_not_allow_is_named(missing):
    """Of the rows of three pairs, that which the pairs lack."""
    does = [("a", "x"), ("a", "y"), ("b", "y")]
    rows = [
        {"state": s, "action": a, "reward": 1, "next_state": "b", "terminated": False}
        for s, a in does
    ]
    enabled = [pair for pair in (*does, ("b", "x")) if pair != does[missing]]
    taken = [[a for there, a in sorted(enabled) if there == s] for s in "ab"]
    pairs = Pairs([0, len(taken[0]), 3], ["xy".index(a) for each in taken for a in each], 2,
                  ["a", "b"], ["x", "y"])  # fmt: skip
    state, action = does[missing]
    words = f"takes action '{action}' in state '{state}', where it is not enabled"
    with pytest.raises(ShapeMismatch, match=words):
        read_log(frame_of(rows, tuple(rows[0]))).counts().to_counts(pairs)


def with_values(good, column, value, path):
    """A file of counts whose column has other values, as older versions wrote it: undigested."""
    with duckdb.connect() as database:
        key = "SELECT value FROM parquet_kv_metadata(?) WHERE key = 'surestep'"
        manifest = json.loads(bytes(database.execute(key, [str(good)]).fetchone()[0]))
        del manifest["digest"]
        source = f"SELECT * REPLACE ({value} AS \"{column}\") FROM '{good}'"
        told = json.dumps(manifest | {"version": 6}).replace("'", "''")
        form = f"(FORMAT parquet, KV_METADATA {{surestep: '{told}'}})"
        database.execute(f"COPY ({source}) TO '{path}' {form}")


def test_rewards_left_out_for_several_reasons_are_merged_in_one_order():
    one, other = (read_log({"state": [s], "action": ["x"], "reward": [1]}).counts() for s in "ab")
    one = dataclasses.replace(one, dropped_rewards={"without an action": (0.0, 1.0)})
    other = dataclasses.replace(other, dropped_rewards={"after the end": (0.0, 2.0)})
    there, back = merge_counts([one, other]), merge_counts([other, one])
    assert [*there.dropped_rewards.items()] == [*back.dropped_rewards.items()]
    assert counts_digest(there) == counts_digest(back)


def test_no_log_is_merged_twice_by_whatever_way(tmp_path):
    """A file by its bytes, also in the counts of others; a table in memory by its counts."""
    files = {}
    for name, reward in (("a", 1), ("b", 2), ("c", 3)):
        row = {"state": "s", "action": "x", "reward": reward, "next_state": "t", "terminated": True}
        files[name] = write_table(tmp_path / f"{name}.csv", [row], tuple(row))
    a, b, c = (read_log(path).counts() for path in files.values())
    write_counts(merge_counts([a, b]), tmp_path / "ab.parquet")
    ab, bc = read_counts(tmp_path / "ab.parquet"), read_log([files["b"], files["c"]]).counts()
    assert ab.sources == tuple(sorted(a.sources + b.sources))
    assert merge_counts([ab, c]).rows_read == 3
    for parts, words in (((a, a), "1 and 2"), ((c, ab, bc), "1 and 3"), ((ab, bc), "1 and 2")):
        with pytest.raises(InvalidCounts, match=rf"counts {words} are of the same log \(SHA-256 "):
            merge_counts(parts)
    in_memory = counts_of("0.5")
    with pytest.raises(InvalidCounts, match="of the same log"):
        merge_counts([in_memory, counts_of("0.5")])
    copy = tmp_path / "copy.csv"
    copy.write_bytes(files["a"].read_bytes())
    with pytest.raises(InvalidLog, match=r"copy\.csv has the same content as .*a\.csv"):
        read_log([files["a"], copy]).counts()


@pytest.mark.parametrize("kind", KINDS)
def test_shards_without_rows_are_no_logs(kind, tmp_path):
    """They are often alike, as those that other programs leave behind."""
    names = ("state", "action", "reward", "next_state", "terminated")
    row = dict(zip(names, ("s", "x", 1.0, "t", True), strict=True))
    paths = [tmp_path / f"{name}{kind}" for name in ("full", "empty", "empty too")]
    write_table(paths[0], [row], names)
    for path in paths[1:]:
        if kind == ".parquet":
            with duckdb.connect() as database:
                source = f"SELECT * FROM '{paths[0]}' WHERE false"
                database.execute(f"COPY ({source}) TO '{path}' (FORMAT parquet)")
        else:
            path.write_text(",".join(names) + "\n" if kind == ".csv" else "")
    assert len(read_log(paths).counts().sources) == 1


GONE = "this field is not there"
MANIFESTS = {
    "of version 5, expected 7; count the log again": {"version": 5},
    r"rows_read: expected int >= 0, found -1": {"rows_read": -1},
    r"reward_scale: expected int <= 37, found 38": {"reward_scale": 38},
    r"rows_dropped\[...\]: expected int >= 0": {"rows_dropped": {"why": -1}},
    r"dropped_rewards\[...\]\[1\]: expected float": {"dropped_rewards": {"why": [0.5, "x"]}},
    r"state_columns\[0\]: expected str, got int, found 1": {"state_columns": [1]},
    r"missing required field sources": {"sources": GONE},
    r"its sources are no rising texts": {"sources": ["b", "a"]},
    r"bins\[...\]: expected object, got int": {"bins": {"state": 1}},
    r"other fields than those expected": {"more": 1},
}


@pytest.mark.parametrize("message", MANIFESTS)
def test_a_manifest_that_is_damaged_says_what_is_and_what_to_do(tmp_path, monkeypatch, message):
    def changed(manifest, **how):
        content = {n: x for n, x in (manifest | MANIFESTS[message]).items() if x != GONE}
        return json.dumps(content, **how)

    path = tmp_path / "counts.parquet"
    monkeypatch.setattr(file, "json", SimpleNamespace(dumps=changed))
    write_counts(counts_of("0.5"), path)
    with pytest.raises(InvalidCounts, match=message):
        read_counts(path)


@pytest.mark.thorough
@settings(max_examples=4)
@given(
    rewards=st.lists(st.sampled_from(["0", "4", "0.5", "2", "-1e-3"]), min_size=1, max_size=6),
    cut=st.integers(0, 6),
    rng=st.randoms(use_true_random=False),
)
def test_rewards_vary_just_where_one_transition_earned_two(rewards, cut, rng):
    """In any order, in one piece or in two: not what they add up to, but each of them counts."""
    vary = len(set(map(float, rewards))) > 1
    rng.shuffle(rewards)
    parts = [nameless(counts_of(*part)) for part in (rewards[:cut], rewards[cut:]) if part]
    for counts in (counts_of(*rewards), merge_counts(parts)):
        facts = facts_of(counts)
        assert facts.rewards_vary == vary
        low, high = min(map(float, rewards)), max(map(float, rewards))
        assert with_zero(facts.single.rewards) == (min(0.0, low), max(0.0, high))
        logged = counts.to_counts().rewards
        assert (logged.least.tolist(), logged.greatest.tolist()) == ([low], [high])


def test_nothing_is_written_where_nothing_can_be(tmp_path):
    with pytest.raises(FileFailure, match="cannot be written"):
        write_counts(counts_of(1), tmp_path / "nowhere" / "counts.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.one_quick
@pytest.mark.parametrize("cut", [1, 3, 5])
def test_an_episode_that_is_cut_between_two_files_is_noticed(cut, tmp_path):
    steps = [f"{e},{t},s{t % 2},a,1,{int(t == 3)}" for e in (1, 2) for t in range(4)]
    parts = []
    for name, lines in {"first": steps[:cut], "rest": steps[cut:], "other": steps}.items():
        log = tmp_path / f"{name}.csv"
        log.write_text("\n".join(["episode,step,state,action,reward,terminated", *lines]) + "\n")
        source = read_log(log)
        counted = dataclasses.replace(source.counts(), edges=source.edges())
        write_counts(counted, tmp_path / f"{name}.parquet")
        parts.append(read_counts(tmp_path / f"{name}.parquet"))
    for order in (parts[:2], parts[1::-1]):
        with pytest.raises(ShapeMismatch, match="goes on in counts"):
            merge_counts(order)
    alone = merge_counts(parts[2:])  # whose episodes have the same names, and are whole
    assert counts_digest(alone) == counts_digest(parts[2])
