"""States learnt from a log: what taught them judges nothing, all else is as if given by hand."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import surestep
from pump_commands import run_surestep
from surestep import read_log
from surestep.errors import InvalidLog, InvalidParameter, ShapeMismatch
from surestep.io.counts.file import read_counts, write_counts
from surestep.io.counts.labelled import counts_digest, merge_counts
from surestep.io.labels.state_rules import rule_from_json
from surestep.io.logs.learnt_states import STATE
from surestep.pipeline import certify_result, verify_result
from surestep.states import learn

COLUMNS = {"state": ["lactate", "ward"], "action": "dose"}
APART = "states-learnt-apart"
RNG = np.random.default_rng(0)


def stays(episodes=150, seed=0):
    """Low doses help where lactate is below 2, high ones elsewhere; wards mean nothing."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        lactate = rng.gamma(2, 1.2)
        for step in range(4):
            dose = rng.choice(["low", "high"])
            good = (lactate < 2) == (dose == "low")
            last = step == 3
            rows.append((f"e{episode:04d}", step, round(lactate, 2), rng.choice(["a", "b"]), dose,
                         float(last and lactate < 2), last))  # fmt: skip
            lactate = max(0.1, lactate + rng.normal(-0.4 if good else 0.4, 0.3))
    names = ("episode", "step", "lactate", "ward", "dose", "reward", "terminated")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


@pytest.fixture(scope="module")
def log():
    return stays()


@pytest.fixture(scope="module")
def learnt(log):
    return learn(read_log(log, columns=COLUMNS), "tree", discount=1.0)


def test_what_is_left_is_the_log_with_the_rule_by_hand(log, learnt):
    rule = rule_from_json(json.loads(learnt.reading.states_from))
    assert rule.columns == ("lactate",)
    assert learnt.reading.learnt_from == 30
    state = [rule.labels()[i] for i in rule.indices(np.array(log["lactate"])[:, np.newaxis])]
    kept = [i for i, name in enumerate(log["episode"]) if name >= "e0030"]
    by_hand = {name: [values[i] for i in kept] for name, values in (log | {STATE: state}).items()}
    columns = {"state": ["ward", STATE], "action": "dose"}
    ours, theirs = learnt.counts(), read_log(by_hand, columns=columns).counts()
    assert ours.states == theirs.states
    assert (ours.transitions.times == theirs.transitions.times).all()
    assert ours.episodes == theirs.episodes
    first, second = learnt.load(), read_log(by_hand, columns=columns).load()
    assert (first.reward == second.reward).all()
    assert (first.state == second.state).all()


def test_a_result_with_learnt_states_is_saved_verified_and_acts(log, learnt, tmp_path):
    result = surestep.improve(learnt, discount=1.0, ending=(0, 1), worlds=0)
    assert "states-learnt-apart" in [each.code for each in result.certificate.assumptions]
    result.save(tmp_path / "out")
    assert verify_result(tmp_path / "out", log).level == "same bytes"
    saved = surestep.load(tmp_path / "out")
    rng = np.random.default_rng(0)
    assert saved.act({"lactate": 0.5, "ward": "a"}, rng) in ("low", "high")
    with pytest.raises(InvalidParameter, match="column 'lactate' is missing"):
        saved.act({"ward": "a"}, rng)
    # In order, a measurement stands where its state would; so do options of the command line.
    place = saved.table.vocabulary.state_index
    named = place({"ward": "a", "lactate": 0.5})
    assert place(("a", 0.5)) == place(("a", "0.5")) == named
    assert place(saved.table.vocabulary.states[named]) == named
    state = ("--state", "ward=a", "--state", "lactate=0.5")
    explained = run_surestep("explain", tmp_path / "out", *state)
    assert explained.stdout.startswith("ward a, learnt state lactate <")
    with pytest.raises(InvalidParameter, match="expected numbers"):
        saved.act({"lactate": "much", "ward": "a"}, rng)
    # Nothing of a later log taught the states.
    judged = certify_result(tmp_path / "out", stays(40, seed=1), ["robust"])
    (claim,) = judged.certificates
    (premise,) = [each for each in claim.assumptions if each.code == "states-learnt-apart"]
    assert premise.values["episodes"] == 0


def test_whole_episodes_judge_learnt_states_without_calling_them_markov(log):
    """Each row has a probability of its own; the learnt states know nothing of it."""
    rng = np.random.default_rng(5)
    told = log | {"pscore": rng.uniform(0.3, 0.7, len(log["dose"])).round(3).tolist()}
    source = learn(read_log(told, columns=COLUMNS), "tree:size=3", discount=1.0)
    kinds = ["trajectory:estimator=is,return_low=0,return_high=1", "robust"]
    result = surestep.improve(source, discount=1.0, ending=(0, 1), certificates=kinds, worlds=0)
    by_episodes, by_model = ([*map(str, claim.assumptions)] for claim in result.certificates)
    assert any("probability that its row of the log names" in said for said in by_episodes)
    assert any("What a state is was learnt" in said for said in by_episodes)
    assert not any("Markov" in said for said in by_episodes)
    assert any("is Markov in the given states" in said for said in by_model)


def test_improve_learns_what_the_log_was_opened_with(log):
    source = read_log(log, columns=COLUMNS, states_from="bins:size=2,share=0.3")
    with pytest.raises(InvalidParameter, match="states are to be learnt"):
        source.counts()
    result = surestep.improve(source, discount=1.0, ending=(0, 1), worlds=0)
    assert result.record.parameters["learnt_from"] == 45
    assert [rule.split("=")[0] for rule in result.record.parameters["bins"]] == ["lactate:edges"]
    assert result.record.parameters["states_from"] is None


def test_a_rule_in_a_file_costs_no_episodes(log, learnt, tmp_path):
    file = tmp_path / "rule.json"
    file.write_text(learnt.reading.states_from, encoding="utf-8")
    counts = read_log(log, columns=COLUMNS, states_from=str(file)).counts()
    assert counts.episodes.recorded == 150


def test_no_episode_that_taught_judges_whatever_else_is_done_to_rows(log):
    """Time runs against the log, in a form of its own, and some episodes are cut to nothing."""
    number = [int(name[1:]) for name in log["episode"]]
    began = [f"{28 - n % 28:02d}/{12 - n // 28:02d}/2024" for n in number]
    lost = ["" if n % 3 == 0 or (n % 7 == 0 and step == 2) else "x"
            for n, step in zip(number, log["step"], strict=True)]  # fmt: skip
    source = read_log(
        log | {"began": began, "note": lost},
        columns=COLUMNS | {"time": "began"},
        time_format="%d/%m/%Y",
        missing=["note=drop"],
    )
    whole = source.load()
    taught = math.ceil(0.5 * len({n for n in number if n % 3}))
    rest = learn(source, "tree:share=0.5", discount=1.0)
    assert rest.reading.learnt_from == taught
    judging = rest.load()
    # What is left are the last episodes of the log, in its order of time, and all of them.
    first = whole.episode_offsets[-judging.num_episodes - 1]
    np.testing.assert_array_equal(judging.reward, whole.reward[first:])
    assert whole.num_episodes - judging.num_episodes == taught


@pytest.mark.parametrize(
    ("reading", "says"),
    [
        ({"states_from": "tree:depth=3"}, "expected a method with size=N or share=X"),
        ({"states_from": "{}"}, "a rule of states cannot be read"),
        ({"states_from": "tree:share=2"}, "share is 2.0, expected a number above 0"),
        ({"columns": {"state": ["ward"], "action": "dose"}, "states_from": "tree"}, "numbers only"),
        ({"states_from": "tree:share=0.1"}, "15 episodes with 60 rows, expected at least 20"),
    ],
)
def test_what_cannot_be_learnt_is_refused(log, reading, says):
    with pytest.raises((InvalidLog, InvalidParameter)) as refusal:
        learn(read_log(log, **({"columns": COLUMNS} | reading)), discount=1.0)
    assert says in str(refusal.value)


def test_a_measurement_that_is_missing_where_states_are_learnt_has_its_place(log):
    """It would make labels of all numbers of its column. What holds other words stays as it is."""
    lost = [None if i == 5 else value for i, value in enumerate(log["lactate"])]
    for rules in ([], ["lactate=label"]):
        source = read_log(log | {"lactate": lost}, columns=COLUMNS, missing=rules)
        with pytest.raises(InvalidLog, match=r"row 6, column 'lactate': found .* among numbers.*"
                           r"missing=\['lactate=drop'\]"):  # fmt: skip
            learn(source, "tree:size=2", discount=1.0)
    words = ["a" if i % 2 else None for i in range(len(lost))]
    source = read_log(log | {"ward": words}, columns=COLUMNS, missing=["ward=label"])
    learnt = learn(source, "tree:size=2", discount=1.0)
    assert {ward for ward, _ in learnt.counts().states} == {"a", "missing"}


def test_measurements_that_no_bin_is_made_of_are_no_part_of_the_state(log):
    """Nor is one that never varies; what is no measurement stays."""
    rng = np.random.default_rng(2)
    noise = {f"noise{i}": rng.random(len(log["dose"])).tolist() for i in range(6)}
    table = log | noise | {"always": [1.0] * len(log["dose"])}
    columns = {"state": ["ward", *noise, "lactate", "always"], "action": "dose"}
    learnt = learn(read_log(table, columns=columns), "bins", discount=1.0)
    assert learnt.columns.state == ("ward", "lactate")
    assert {ward for ward, _ in learnt.counts().states} == {"a", "b"}


def test_counts_of_learnt_states_say_what_taught_them(log, learnt, tmp_path):
    counts = learnt.counts()
    assert counts.taught.first_by == {"log": 30}
    assert rule_from_json(counts.taught.rule).columns == ("lactate",)
    write_counts(counts, tmp_path / "counts.parquet")
    read = read_counts(tmp_path / "counts.parquet")
    assert read.taught == counts.taught
    assert counts_digest(read) == counts_digest(counts)
    assert counts_digest(replace(read, taught=None)) != counts_digest(counts)
    terms = {"discount": 0.9, "worlds": 0, "certificates": ["robust"]}
    result = surestep.improve(read, **terms)
    (premise,) = [said for said in result.certificate.assumptions if said.code == APART]
    assert premise.values == {"episodes": 30}
    assert "--states-from" not in result.record.command
    result.save(tmp_path / "out")
    assert surestep.load(tmp_path / "out").act({"lactate": 0.5, "ward": "a"}, RNG) in (
        "low",
        "high",
    )
    again = tmp_path / "counts.parquet"
    assert verify_result(tmp_path / "out", again).level == "same values"  # no file was read
    certified = certify_result(tmp_path / "out", again, kinds=["robust"])
    assert [said.code for said in certified.certificates[0].assumptions].count(APART) == 1


def test_episodes_that_taught_in_the_order_of_time_are_counted_so(log):
    times = log | {"when": [f"2025-01-01 00:{int(e[1:]) % 60:02d}:00" for e in log["episode"]]}
    source = read_log(times, columns=COLUMNS | {"time": "when"})
    assert learn(source, "tree", discount=1.0).counts().taught.first_by == {"time": 30}


def test_counts_of_one_rule_merge_and_those_of_others_do_not(learnt):
    taught = learnt.counts()
    rule = learnt.reading.states_from
    later = read_log(stays(40, seed=1), columns=COLUMNS, states_from=rule).counts()
    assert later.taught.first_by == {}
    both = merge_counts([taught, later])
    assert both.taught == taught.taught
    other = learn(read_log(stays(150, seed=2), columns=COLUMNS), "tree:size=9", discount=1.0)
    with pytest.raises(ShapeMismatch, match="learnt by different rules"):
        merge_counts([taught, other.counts()])
    with pytest.raises(ShapeMismatch, match="learnt by different rules"):
        merge_counts([taught, replace(later, taught=None)])
