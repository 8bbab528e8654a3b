"""A log that a file describes, with a query: improved, confirmed, and read from wherever one is."""

import csv
import json
import shlex
import shutil

import duckdb
import numpy as np
import pytest

import surestep
from support.pump_commands import run_surestep, write_lines
from surestep.pipeline import verify_result

QUERY = """
SELECT patient, day, ward.kind AS ward, dose, CASE WHEN pressure < 60 THEN -1 ELSE 1 END AS reward,
       day = 2 AS terminated
FROM log JOIN wards AS ward USING (room)
"""
DESCRIPTION = f'''
files = ["raw/visits.csv"]
query = """{QUERY}"""
tables = {{ wards = "raw/wards.csv" }}
case = "patient"

[columns]
state = "ward"
action = "dose"
episode = "patient"
step = "day"

[behavior]
policy = "habit.csv"

[stakes]
discount = 0.9
running = [-1, 1]
ending = [-1, 1]

[method]
n_wedge = 5
certificates = ["robust"]
worlds = 0
'''
FILES = ("--behavior", "habit.csv", "--set", "tables.wards=raw/wards.csv")


@pytest.fixture(scope="module", autouse=True)
def few_cases():
    """Tries a query in few cases: whether it looks ahead has tests of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surestep.io.logs.query.CASES", 4)
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A description, its files, and the result that it makes, seen from another folder."""
    home = tmp_path_factory.mktemp("described")
    (home / "raw").mkdir()
    rng = np.random.default_rng(3)
    rooms, doses = rng.integers(4, size=300), rng.integers(2, size=300)
    pressure = np.where(rng.random(300) < 0.3 + 0.4 * doses, 70, 50)
    write_lines(
        home / "raw" / "visits.csv",
        ["patient,day,room,dose,pressure"]
        + [f"{i // 3},{i % 3},{rooms[i]},d{doses[i]},{pressure[i]}" for i in range(300)],
    )
    write_lines(home / "raw" / "wards.csv", ["room,kind", "0,icu", "1,icu", "2,step", "3,step"])
    habit = [f"{ward},d{dose},0.5" for ward in ("icu", "step") for dose in (0, 1)]
    write_lines(home / "habit.csv", ["ward,dose,probability", *habit])
    (home / "log.toml").write_text(DESCRIPTION, encoding="utf-8")
    made = run_surestep("improve", home / "log.toml", "-o", home / "out")
    assert made.exit_code == 0, made.output
    return home


@pytest.mark.thorough
def test_the_result_is_that_of_rows_prepared_by_hand(home, tmp_path):
    with duckdb.connect() as database:
        for name, file in {"log": "visits", "wards": "wards"}.items():
            database.execute(f"CREATE TABLE {name} AS FROM '{home / 'raw' / file}.csv'")
        prepared = tmp_path / "prepared.csv"
        database.execute(f"COPY ({QUERY} ORDER BY patient, day) TO '{prepared}' (HEADER)")
    columns = {"state": "ward", "action": "dose", "episode": "patient", "step": "day"}
    given = {"discount": 0.9, "n_wedge": 5, "certificates": ["robust"], "worlds": 0}
    ranges = {"running": (-1, 1), "ending": (-1, 1), "behavior": home / "habit.csv"}
    by_hand = surestep.improve(prepared, columns=columns, **given, **ranges)
    made = surestep.load(home / "out")
    assert made.table == by_hand.table
    assert made.certificates == by_hand.certificates
    assert made.record.counts_sha256 == by_hand.record.counts_sha256


@pytest.mark.thorough
def test_it_is_confirmed_by_its_description_alone_and_made_again_by_its_command(
    home, tmp_path, monkeypatch
):
    record = surestep.load(home / "out").record
    assert {(file.role, file.name) for file in record.inputs} == {
        *(("log", "visits.csv"), ("tables", "wards.csv"), ("behavior", "habit.csv"))
    }
    assert str(home) not in json.dumps(record.description)
    told = run_surestep("verify", home / "out", home / "log.toml")
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("confirmed: the same bytes in every file\n")
    for place in ("log", "other"):  # from their folder, and from that of the description
        shutil.copytree(home / "raw", tmp_path / place, dirs_exist_ok=True)
    shutil.copy(home / "habit.csv", tmp_path / "log")
    monkeypatch.chdir(tmp_path / "log")
    words = shlex.split(record.command)
    assert run_surestep(*words[1:]).exit_code == 0
    assert surestep.load("OUT").files() == surestep.load(home / "out").files()
    monkeypatch.chdir(home / "raw")
    assert surestep.improve("../log.toml").files() == surestep.load(home / "out").files()


@pytest.mark.thorough
def test_a_query_that_only_the_result_has_runs_where_that_is_allowed(home, monkeypatch):
    monkeypatch.chdir(home)
    given = ("out", "raw/visits.csv", *FILES)
    told = run_surestep("verify", *given)
    assert (told.exit_code, told.stdout) == (2, "")
    assert "made by a query that is not yours" in told.stderr
    assert "CASE WHEN pressure < 60" in told.stderr
    assert "allow it with --allow-query" in told.stderr
    told = run_surestep("verify", *given, "--allow-query")
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("confirmed: the same bytes in every file\n")
    judging = ("certify", "out", "raw/visits.csv", "--kind", "robust", *FILES[2:])
    assert "made by a query that is not yours" in run_surestep(*judging).stderr
    told = run_surestep(*judging, "--allow-query")
    assert told.exit_code == 0, told.output
    with pytest.raises(surestep.SurestepError, match="allow it with allow_query=True"):
        verify_result("out", "raw/visits.csv")


def test_a_forged_query_does_not_run(home, tmp_path, monkeypatch):
    out = shutil.copytree(home / "out", tmp_path / "out")
    record = json.loads((out / "run.json").read_text())
    stolen = f"SELECT * FROM read_text('{home / 'habit.csv'}')"
    record["description"]["query"] = stolen
    (out / "run.json").write_text(json.dumps(record))
    for more in ((), ("--allow-query",)):
        told = run_surestep("verify", out, home / "log.toml", *more)
        assert (told.exit_code, "query: your description says" in told.stderr) == (2, True)
    monkeypatch.chdir(home)
    given = ("raw/visits.csv", *FILES, "--allow-query")
    told = run_surestep("verify", out, *given)  # nor does it reach other files
    assert (told.exit_code, told.stdout) == (2, ""), told.output
    assert "0.5" not in told.stderr


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("file", "before", "after", "message"),
    [
        ("raw/wards.csv", "3,step", "3,icu", "the query does not make the rows"),
        ("raw/visits.csv", "0,0,", "0,0,1", "the query does not make the rows"),
        ("log.toml", "pressure < 60", "pressure < 80", "query: your description says"),
        (
            "habit.csv",
            "icu,d0,0.5\nicu,d1,0.5",
            "icu,d0,0.4\nicu,d1,0.6",
            "your habit.csv is not the file",
        ),
    ],
)
def test_another_file_is_noticed(file, before, after, message, home, tmp_path):
    for name in ("raw/visits.csv", "raw/wards.csv", "log.toml", "habit.csv"):
        (tmp_path / "raw").mkdir(exist_ok=True)
        text = (home / name).read_text("utf-8")
        assert name != file or before in text
        (tmp_path / name).write_text(text.replace(before, after, 1) if name == file else text)
    told = run_surestep("verify", home / "out", tmp_path / "log.toml")
    assert (told.exit_code, message in told.output) == (2, True), told.output


# ---- files and what is said of them -----------------------------------------------------------


@pytest.mark.thorough
def test_options_stand_above_the_file_and_set_above_options(home, tmp_path):
    given = ("--discount", "0.5", "--delta", "0.2", "--set", "method.delta=0.3")
    made = run_surestep("improve", home / "log.toml", *given, "-o", tmp_path / "out")
    assert made.exit_code == 0, made.output
    record = surestep.load(tmp_path / "out").record
    assert (record.parameters.discount, record.parameters.delta) == (0.5, 0.3)
    assert record.description["stakes"] == {
        **{"discount": 0.5, "running": [-1.0, 1.0], "ending": [-1.0, 1.0]}
    }
    with (tmp_path / "out" / "policy.csv").open(newline="") as file:
        assert {"ward", "dose"} <= set(next(csv.reader(file)))
