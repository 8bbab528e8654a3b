"""A saved result comes back, is refused once touched, and acts as its policy says."""

import dataclasses
import json
import shutil
import subprocess
import sys

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import surestep
from support.junk import paths_of
from support.labelled_worlds import COLUMNS, DERIVED, NAMES, world
from support.log_tables import frame_of
from surestep.errors import (
    FileFailure,
    InvalidCertificate,
    InvalidParameter,
    InvalidResult,
    SurestepError,
)
from surestep.pipeline import explain
from surestep.pipeline.recording import terms_of
from surestep.results.result import certificates_from_json, certificates_to_json

FILES = (
    *("certificate.json", "certificates.json", "policy.csv", "policy.parquet"),
    *("report.html", "run.json"),
)
FALSE_ALARM = 1e-6
NONSENSE = (*("null", "true", "-1", "0", "7", "1e300", '""', '"x"'), *("[]", '["x"]', "{}", "[1]"))


def made(rows=None, columns=NAMES, bins=None, **terms):
    rows = world(5, states=5, episodes=60).rows if rows is None else rows
    source = surestep.read_log(frame_of(rows, columns), columns=COLUMNS, bins=bins)
    return surestep.improve(source, **({"discount": 0.9, "n_wedge": 12, "worlds": 0} | terms))


@pytest.fixture(scope="module")
def result():
    return made()


@pytest.fixture
def saved(result, tmp_path):
    result.save(tmp_path / "out")
    return tmp_path / "out"


def test_it_stands_for_its_policy(result):
    pairs = result.policy.pairs
    table = np.ones((pairs.num_states, pairs.num_actions, pairs.num_states)) / pairs.num_states
    rewards = np.arange(pairs.num_states * pairs.num_actions).reshape(table.shape[:2])
    mdp = surestep.FiniteMDP.from_dense(table, rewards, 0.9, enabled=pairs.enabled())
    mdp = dataclasses.replace(mdp, pairs=pairs)
    assert surestep.performance(mdp, result) == surestep.performance(mdp, result.policy)


def test_it_comes_back_equal_by_value_and_bytes(result, saved):
    found = surestep.load(saved)
    assert found == result
    assert found.policy == result.policy
    assert found.files() == result.files() == {f.name: f.read_bytes() for f in saved.iterdir()}
    assert sorted(found.files()) == sorted(FILES)
    # People read these: one value a line, two spaces a level.
    for name, begin in (("run.json", '{\n  "'), ("certificates.json", '[\n  {\n    "')):
        assert found.files()[name].decode().startswith(begin)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["changed", "cut", "missing", "a folder"])
def test_a_folder_that_was_touched_is_refused(name, how, saved):
    file = saved / name
    content = file.read_bytes()
    if how == "changed":
        file.write_bytes(content.replace(b"0", b"1", 1))
    elif how == "cut":
        file.write_bytes(content[:-30])
    else:
        file.unlink()
        if how == "a folder":
            file.mkdir()
    if (name, how) == ("run.json", "changed"):
        return  # what run.json says is judged by what it says, below
    with pytest.raises((InvalidResult, FileFailure), match=name):
        surestep.load(saved)


@pytest.fixture(scope="module")
def altered(result, tmp_path_factory):
    """A folder with a result to alter, and its record as it was."""
    folder = tmp_path_factory.mktemp("altered")
    result.save(folder / "out")
    shutil.copy(folder / "out" / "run.json", folder)
    return folder


@pytest.mark.thorough
@settings(max_examples=100)
@given(place=st.integers(0, 10**6), value=st.sampled_from([None, *NONSENSE]))
def test_any_change_of_the_record_is_read_or_refused(place, value, altered):
    """One value of run.json is gone, or nonsense: no error but our own ever comes of it."""
    folder = altered / "out"
    content = json.loads((altered / "run.json").read_text())
    places = list(paths_of(content))
    *path, key = places[place % len(places)]
    at = content
    for step in path:
        at = at[step]
    if value is None:
        del at[key]
    else:
        at[key] = json.loads(value)
    (folder / "run.json").write_text(json.dumps(content))
    try:
        found = surestep.load(folder)
        terms_of(found.record)
        state = found.table.vocabulary.states[0]
        explain(found, state)
        found.act(state, np.random.default_rng(1))
    except SurestepError:
        return


@pytest.mark.parametrize("text", ["[]", "{}", '{"kind": "robust"}', "3", "null", "["])
def test_a_result_has_certificates(text):
    with pytest.raises(SurestepError, match=r"empty|is no JSON|expected|missing"):
        certificates_from_json(text)


def test_one_certificate_or_a_list_of_them_is_read(result):
    assert certificates_from_json(result.certificate.to_json()) == (result.certificate,)
    several = certificates_to_json(result.certificates)
    assert certificates_from_json(f"\n {several}") == result.certificates
    twice = several.replace('"kind"', '"delta": 0.5,\n"kind"', 1)
    with pytest.raises(InvalidCertificate, match="'delta' stands twice"):
        certificates_from_json(twice)


def test_the_standard_library_alone_reads_the_policy(result, saved):
    """What a user's own service needs: csv and json, and nothing installed."""
    code = """
import csv, json, sys
folder = sys.argv[1]
policy = {}
with open(f"{folder}/policy.csv", newline="", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        here = policy.setdefault((row["place"], row["level"]), {})
        here[row["move"]] = float(row["probability"])
with open(f"{folder}/certificate.json", encoding="utf-8") as file:
    lower = json.load(file)["lower"]
with open(f"{folder}/run.json", encoding="utf-8") as file:
    json.load(file)["versions"]["surestep"]
try:
    import numpy
except ImportError:
    print(json.dumps([[list(state), actions] for state, actions in policy.items()] + [lower]))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(saved)],
        capture_output=True,
        text=True,
        check=True,
    )
    *rows, lower = json.loads(done.stdout)
    table, expected = result.table, {}
    for k in np.flatnonzero(table.decided):
        state = table.vocabulary.states[table.pairs.state[k]]
        action = table.vocabulary.actions[table.pairs.action[k]][0]
        expected.setdefault(state, {})[action] = table.probability[k]
    assert {tuple(state): actions for state, actions in rows} == expected
    assert lower == result.certificate.lower


def test_actions_are_drawn_as_often_as_the_policy_says(result):
    """χ² over all states that leave something to chance; a false alarm has probability 1e-6."""
    table, rng = result.table, np.random.default_rng(11)
    tested = 0
    for s in np.flatnonzero(~table.quiet):
        run = slice(table.pairs.offsets[s], table.pairs.offsets[s + 1])
        chance = table.probability[run]
        names = [table.vocabulary.actions[a][0] for a in table.pairs.action[run]]
        draws = [result.act(table.vocabulary.states[s], rng) for _ in range(2000)]
        seen = np.array([draws.count(name) for name in names])
        assert seen.sum() == 2000
        assert not seen[chance == 0].any()
        if (chance > 0).sum() > 1:
            tested += 1
            found = chisquare(seen[chance > 0], 2000 * chance[chance > 0] / chance.sum())
            assert found.pvalue > FALSE_ALARM
    assert tested  # the world was chosen so that something is left to chance


def test_a_row_or_a_label_means_the_same_state(result, saved):
    label = result.table.vocabulary.states[0]
    row = {"place": label[0], "level": label[1], "reward": 5, "nobody": "asks"}
    for one, other in [(label, row), (list(label), row), ((label[0], int(label[1])), label)]:
        draws = [result.act(each, np.random.default_rng(3)) for each in (one, other)]
        assert draws[0] == draws[1] == surestep.load(saved).act(one, np.random.default_rng(3))
        assert result.act(one, 3) == draws[0]


def test_rows_and_tables_of_libraries_act_like_their_labels(result):
    deciding = [*np.array(result.table.vocabulary.states)[~result.table.quiet]] * 3
    columns = {
        "level": [int(level) for _, level in deciding],
        "place": [place for place, _ in deciding],
        "weight": [0.5] * len(deciding),
    }
    rng = np.random.default_rng(4)
    expected = [result.act(tuple(map(str, label)), rng) for label in deciding]
    frame = pandas.DataFrame(columns)
    for table in (frame, polars.DataFrame(columns), pyarrow.table(columns)):
        assert result.act(table, np.random.default_rng(4)) == expected
    rng = np.random.default_rng(4)
    assert [result.act(row, rng) for _, row in frame.iterrows()] == expected
    numbers = frame.assign(place=frame["place"].str[1:].astype(int))
    assert numbers.iloc[0].dtype == np.float64  # so that 1 is 1.0 there
    words = dataclasses.replace(
        result.table.vocabulary,
        states=tuple((place[1:], level) for place, level in result.table.vocabulary.states),
    )
    assert words.index("state", numbers.iloc[0]) == words.index("state", (deciding[0][0][1:], "0"))
    frame.loc[1, "place"] = "cellar"
    with pytest.raises(InvalidParameter, match="row 2: no state has 'cellar' in column 'place'"):
        result.act(frame, np.random.default_rng(4))
    with pytest.raises(InvalidParameter, match="there is no column 'place'; did you mean 'palce'"):
        result.act(frame.rename(columns={"place": "palce"}), np.random.default_rng(4))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (("p0", "7"), r"no state has '7' in column 'level'; known are '0', '1'"),
        ("p0", "has 1 values, expected 2: place, level"),
        (("p2", "0"), "nothing is ever decided in state"),
    ],
)
def test_states_that_nobody_knows_are_refused(state, message, result):
    assert result.table.quiet[result.table.vocabulary.index("state", ("p2", "0"))]
    with pytest.raises(InvalidParameter, match=message):
        result.act(state, np.random.default_rng(1))
    with pytest.raises(InvalidParameter, match="rng is"):
        result.act(("p0", "0"), 0.7)


def test_raw_numbers_are_binned_before_acting(tmp_path):
    rows = [
        row | {"place": 10.0 * int(row["place"][1]) + 1.5, "next_place": 0}
        for row in world(5, states=5, episodes=60).rows
    ]
    result = made(rows, DERIVED, bins={"place": {"width": 10}})
    result.save(tmp_path / "out")
    again = surestep.load(tmp_path / "out")
    assert again == result
    for place in (0, 3.25, "9.99", np.float64(1)):
        told = [
            each.act({"place": place, "level": "0"}, np.random.default_rng(2))
            for each in (result, again)
        ]
        assert told == [result.act(("0 to < 10", "0"), np.random.default_rng(2))] * 2
    with pytest.raises(InvalidParameter, match="expected a finite number to bin"):
        result.act({"place": float("inf"), "level": "0"}, np.random.default_rng(2))
