"""Tables that cannot be counted: each refused in one sentence that says where and what to do."""

import os

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_tables import write_table
from support.pump_commands import write_lines
from surestep.errors import FileFailure, InvalidLog, InvalidParameter, SurestepError
from surestep.io import read_log
from surestep.io.logs.columns import ROLES, resolve

HEADER = "episode,step,state,action,reward,terminated,truncated"
ROW = {"episode": "1", "step": 0, "state": "a", "action": "x", "reward": 1.0}


def counting(folder, *lines, header=HEADER):
    path = folder / "log.csv"
    path.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    return read_log(path).counts()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1,0,,x,1,0,0"], r"log\.csv, row 1, column 'state': found nothing, expected a value"),
        ([",0,a,x,1,0,0"], "row 1, column 'episode': found nothing"),
        (["1,0,a,x,1,0,0", "1,1,a,x,nan,0,0"], "row 2, column 'reward': found 'nan', expected a f"),
        (["1,0,a,x,1_000,0,0"], "column 'reward': found '1_000'"),
        (["1,0,a,x,ten,0,0", "1,1,a,x,ten,0,0"], "found 'ten', .*; 2 rows are affected"),
        (["1,0.5,a,x,1,0,0"], "column 'step': found '0.5', expected a whole number"),
        (["1,0,a,x,1,maybe,0"], "column 'terminated': found 'maybe', expected true or false"),
        (["1,0,a,x,1,0,"], "column 'truncated': found nothing, expected true or false"),
        (["1,0,a,x,1,0,0"] * 2, "in episode '1', step 0 is there 2 times; expected once"),
        (["1,0,a,x,1,0,0", "1,2,a,x,1,0,0"], "row 1, .* episode '1', step 0 is followed by step 2"),
        (["1,0,a,x,1,1,0", "1,1,a,x,1,0,0"], "row 2, .*'1', the episode ended at step 0; exp"),
        (["1,0,a,x,1e-400,0,0"], "found '1e-400', which needs 400 digits after the point"),
        (["1,0,a,x,1e-30,0,0", "1,1,a,x,1e9,0,0"], "cannot be added up exactly; round"),
        (["1,0,a,x,1,0"], r"log\.csv, line 2: found 6 values, expected 7"),
        ([], r"log\.csv has no row"),
    ],
)
def test_a_bad_row_is_named(lines, message, folder):
    with pytest.raises(InvalidLog, match=message):
        counting(folder, *lines)


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 2)
@given(steps=st.lists(st.integers(0, 130), min_size=1, max_size=140), first=st.integers(0, 70))
def test_steps_are_accepted_exactly_when_each_is_there_once(steps, first):
    for tried in (steps, [first + s for s in range(len(steps))]):
        frame = {
            name: np.full(len(tried), value, None if name == "reward" else object)
            for name, value in ROW.items()
        } | {"step": np.array(tried)}
        whole = sorted(tried) == list(range(min(tried), max(tried) + 1))
        if whole:
            read_log(frame, ends="clock").counts()
        else:
            with pytest.raises(InvalidLog, match=r"times; expected once|is followed by step"):
                read_log(frame, ends="clock").counts()


def test_a_step_without_next_state_says_why(folder):
    header = "state,action,reward,next_state,terminated,truncated"
    kept = counting(folder, "a,x,1,,1,0", "a,x,1,,0,1", "a,x,1,b,0,0", header=header)
    assert sum(kept.dropped.values()) == 1
    with pytest.raises(InvalidLog, match="'next_state': found nothing, expected a value, or"):
        counting(folder, "a,x,1,,0,0", header=header)
    pair = "s,t,action,reward,next_s,next_t"
    path = folder / "pair.csv"
    path.write_text(f"{pair}\na,b,x,1,a,\n")
    with pytest.raises(InvalidLog, match="column 'next_t': found nothing, expected a value"):
        read_log(path, columns={"state": ["s", "t"]}).counts()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "episode,step,stat,action,reward",
            "no column says what the state is; the columns are 'episode', 'step', 's",
        ),
        ("episode,step,obs,observation,action,reward", "may be column 'obs' or 'observation'"),
        (
            "step,state,action,reward",
            r"the episode is; .* columns=\{'episode': …\}, or next states",
        ),
        (
            "episode,stat,acton",
            r"what the step and the state and the action and the reward are; .* name them with "
            r"columns=\{'step': …, 'state': …, 'action': …, 'reward'",
        ),
        ("state,state,action", "column 'state' is given twice"),
        ("state,,action", r"are 'state', 'Unnamed: 1', 'action'; .* columns=\{'reward': …\}"),
        ("date,action,reward", "what the state is; the columns are 'date', 'action', 'reward'; n"),
    ],
)
def test_a_bad_header_is_explained(header, message, folder):
    with pytest.raises(InvalidLog, match=message):
        counting(folder, header=header)


LINE = "1,0,a,x,1,1,0"
WIDE = ("utf-16", "utf-16-le", "utf-16-be")


def test_files_that_are_no_tables(folder, tmp_path):
    for name, content, error, message in (
        ("empty.csv", b"", InvalidLog, "is empty, expected a first line"),
        ("latin.csv", HEADER.encode() + b"\n1,0,\xe9\xff,x,1,0,0\n", InvalidLog, "(?i)not utf-8"),
        ("latin1.csv", b"\xff", InvalidLog, "(?i)not utf-8"),
        *(
            (f"{utf}.csv", HEADER.encode(utf), InvalidLog, "is UTF-16, expected UTF-8")
            for utf in WIDE
        ),
        ("head.csv", b"state," * 200_000, InvalidLog, "does not end within its first megabyte"),
        ("broken.parquet", b"PAR1 and nothing else", InvalidLog, "cannot be read"),
        ("empty.parquet", b"", InvalidLog, "cannot be read"),
        ("broken.jsonl", b'{"state": ', InvalidLog, "cannot be read|no column"),
        ("log.doc", b"", InvalidParameter, "no known ending, expected .csv"),
        ("log.xlsx", b"", InvalidParameter, "save a spreadsheet as CSV"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(error, match=message) as refusal:
            read_log(tmp_path / name).counts()
        assert name in str(refusal.value)
    with pytest.raises(FileFailure, match="is no file"):
        read_log(tmp_path / "missing.csv")
    for address in ("s3://bucket/log.csv", "https://example.org/log.parquet"):
        with pytest.raises(FileFailure, match=r"log\.\w+ is an address, and those are not read"):
            read_log(address)
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nothing.csv")
    for odd in ("/dev/zero", tmp_path / "pipe.csv", tmp_path / "g*.csv", tmp_path):
        with pytest.raises(FileFailure, match="is a pipe, a device or a link to nothing; expected"):
            read_log(odd)
    (tmp_path / "pipe.csv").unlink()
    (tmp_path / "gone.csv").unlink()
    with pytest.raises(InvalidParameter, match="of different kinds"):
        read_log([tmp_path / "empty.csv", tmp_path / "broken.parquet"])
    write_table(tmp_path / "fine.parquet", [ROW], tuple(ROW))
    with pytest.raises(InvalidLog, match=r"cannot be read: .*broken\.parquet"):
        read_log([tmp_path / "fine.parquet", tmp_path / "broken.parquet"])
    with pytest.raises(InvalidParameter, match="no file was given"):
        read_log([])
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "one.csv").write_text(HEADER)
    with pytest.raises(InvalidLog, match=r"other\.csv, row 1, column 'state': found nothing, exp"):
        read_log([tmp_path / "one.csv", tmp_path / "other.csv"]).counts()
    for junk in (None, 3, object(), {"state": 3}, {1: 2}, {}, {"a": []}, b"log.csv", "a\0b"):
        with pytest.raises(SurestepError):
            read_log(junk)


@pytest.mark.parametrize("sign", ["_delta_log/0.json", "metadata/v1.metadata.json", ".hoodie/x"])
def test_tables_that_keep_deleted_rows_in_their_files_are_refused(sign, tmp_path):
    for name in (f"table/{sign}", "table/data/log.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write_lines(tmp_path / name, [HEADER, LINE])
    for path in ("table", "table/data", "table/data/log.csv", "table/data/*.csv", "."):
        with pytest.raises(FileFailure, match=r"table is a table of .* rows that were deleted"):
            read_log(tmp_path / path)
    (tmp_path / "table" / sign).unlink()
    (tmp_path / "table" / sign).parent.rmdir()
    assert read_log(tmp_path / "table").counts().rows_read == 1


def test_a_folder_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    """Not passed over, since its rows would be missing; the superuser may read all of them."""
    (tmp_path / "log" / "closed").mkdir(parents=True)
    write_lines(tmp_path / "log" / "log.csv", [HEADER, LINE])
    scandir = os.scandir

    def refusing(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(PermissionError, match="closed"):
        read_log(tmp_path / "log")


def test_a_message_holds_a_few_letters_of_a_cell_of_megabytes(tmp_path):
    big = "q" * 1_500_000
    for name, cells, message in (
        ("reward", f"1,0,a,x,{big},0,0", r"row 1, column 'reward': found 'q{20,80}…, expected a"),
        ("quote", f'1,0,"{big},x,1,0,0', "Value with unterminated quote found"),
        ("label", f"1,0,{big},,1,0,0", "row 1, column 'action': found nothing"),
    ):
        write_lines(tmp_path / f"{name}.csv", [HEADER, cells])
        with pytest.raises(InvalidLog, match=message) as refused:
            read_log(tmp_path / f"{name}.csv").counts()
        assert len(str(refused.value)) < 1_000
    assert len(str(InvalidLog(big))) == 4_001


def test_a_missing_number_is_not_called_a_label(tmp_path):
    rows = [{**ROW, "state": 1, "action": 2}, {**ROW, "step": 1, "state": None, "action": 2}]
    table = {name: [row[name] for row in rows] for name in ROW}
    path = tmp_path / "log.parquet"
    pandas.DataFrame(table).astype({"state": "Int64"}).to_parquet(path)
    with pytest.raises(InvalidLog, match=r"'state': found nothing, expected a number \("):
        read_log(path, ends="clock").counts()
    with pytest.raises(InvalidLog, match="a finite number, since the column is binned"):
        read_log(path, bins={"state": {"width": 1}}, ends="clock").counts()


def test_rewards_of_another_type_are_refused(tmp_path):
    rows = [{**ROW, "reward": True}]
    path = write_table(tmp_path / "log.parquet", rows, tuple(ROW))
    with pytest.raises(InvalidLog, match="reward, is of type BOOLEAN, expected numbers"):
        read_log(path, ends="complete").counts()


@pytest.mark.parametrize("role", [role for role in ROLES if ROLES[role].aliases])
def test_every_alias_is_found_and_the_canonical_name_goes_first(role):
    base = [name for name in ("episode", "step", "state", "action", "reward") if name != role]
    for alias in ROLES[role].aliases:
        for written in (alias, alias.upper()):
            found = getattr(resolve([*base, written]), role)
            assert found in (written, (written,))
    both = getattr(resolve([*base, ROLES[role].aliases[-1], role]), role)
    assert both in (role, (role,))


def test_bad_choices_of_columns_are_refused():
    columns = ["state", "action", "reward", "next_state"]
    with pytest.raises(InvalidLog, match="the next state has 1 columns"):
        resolve([*columns, "more"], {"state": ["state", "more"]})
    for chosen in (
        {"state": ["state", "action"]}, {"action": "state"}, {"state": ["state", "reward"]},
        {"reward": "state"},
    ):  # fmt: skip
        with pytest.raises(InvalidLog, match=r"column '\w+' is that of the state and of "):
            resolve(columns, chosen)


def test_rows_with_a_last_observation_only_are_refused_and_not_taken_for_decisions():
    columns = ["episode", "step", "state", "action", "reward", "is_last", "is_terminal"]
    with pytest.raises(InvalidLog, match="column 'is_last' marks rows that hold a last observat"):
        resolve(columns)
    assert resolve(columns, {"truncated": "is_last"}).truncated == "is_last"


def test_labels_of_json_are_strings_or_what_numbers_mean(tmp_path):
    path = tmp_path / "log.jsonl"
    row = '{"state": "1.10", "action": 1, "reward": 0.5, "next_state": 1.10}'
    path.write_text(f"{row}\n{row}\n")
    assert read_log(path).counts().states == (("1.1",), ("1.10",))


def test_states_are_not_learnt_from_rewards():
    rule = {"condition": {"kmeans": 3, "columns": ["step", "reward"]}}
    with pytest.raises(InvalidLog, match="'condition' is learnt from column 'reward', the reward"):
        read_log({name: [ROW[name]] for name in ROW if name != "state"}, bins=rule, ends="clock")


@pytest.mark.parametrize("name", ["od\td", "od\nd", "surestep row", "Surestep time"])
def test_names_of_columns_that_others_read_as_something_else_are_refused(name):
    frame = {"state": ["a", "b"], "action": ["x", "y"], "reward": [0, 1], name: [7, 8]}
    with pytest.raises(InvalidLog, match=r"there is a column .*; expected another name for it"):
        read_log(frame)
