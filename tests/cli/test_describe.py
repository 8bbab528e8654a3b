"""`surestep describe`: a file that the other verbs take, made without a question."""

import os
import subprocess
import tomllib

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import surestep
from careless_logs import outcome_in_state
from support.pump_commands import LINES, POLICY, run_surestep, write_lines
from surestep.description import HELP, given_as
from surestep.io.sql import sql_name

SIZE = 240


def table(header, row):
    """The lines of a log whose rows are made of their numbers."""
    return [header, *(row(i) for i in range(SIZE))]


# Tables of several kinds: their lines, and the columns of the roles that are to be found.
KINDS = {
    "usual names": (
        table(
            "episode,step,state,action,reward,terminated,propensity",
            lambda i: f"{i // 3},{i % 3},s{i % 4},{'xy'[i % 2]},{i % 5},{int(i % 3 == 2)},0.5",
        ),
        {"episode": "episode", "step": "step", "state": "state", "action": "action",
         "reward": "reward", "terminated": "terminated", "propensity": "propensity"},
    ),
    "patients and times": (
        table(
            "patient_id,chart time,lactate,ward,dose,profit,note",
            lambda i: f"{i // 4},2024-01-{1 + i % 4:02d} 08:00,{i / 7:.3f},{'ab'[i % 2]},"
            f"{i % 3},{-i % 9},note {i}",
        ),
        {"episode": "patient_id", "step": "chart time", "state": ["lactate", "ward"],
         "action": "dose", "reward": "profit"},
    ),
    "one decision a row": (
        table("age;arm;clicked", lambda i: f"{20 + i % 40};{'ABC'[i % 3]};{i % 2}"),
        {"state": "age", "action": "arm", "reward": "clicked"},
    ),
}  # fmt: skip
REWARD = {"one decision a row": "clicked"}  # what no hint finds, and the file asks for


@pytest.mark.one_quick
@pytest.mark.parametrize("kind", KINDS)
def test_the_file_is_one_that_inspect_and_improve_take(kind, tmp_path):
    lines, roles = KINDS[kind]
    log = write_lines(tmp_path / "the log.csv", lines)
    more = ("--set", "reader.delim=;") if ";" in lines[0] else ()
    told = run_surestep("describe", log, *more)
    assert (told.exit_code, told.stderr) == (0, ""), told.output
    file = tmp_path / "the log.toml"
    assert f"wrote {file}\n" in told.stdout
    assert f"surestep inspect '{file}'" in told.stdout
    content = tomllib.loads(file.read_text("utf-8"))
    if kind in REWARD:
        assert '# reward = "reward"  # not found: name it' in file.read_text("utf-8")
        assert REWARD[kind] in content["columns"]["state"]
        given = ("--reward", REWARD[kind], "--state", roles["state"])
    else:
        assert content["columns"] == roles
        given = ()
    assert content["files"] == ["the log.csv"]
    looked = run_surestep("inspect", file, *given)
    assert looked.exit_code == 0, looked.output
    ends = ("--ends", "complete", "--worlds", "0", "-o", tmp_path / "out")
    ends = ends[2:] if "terminated" in roles or "episode" not in roles else ends
    discount = 0.95 if "episode" in roles else 0.0  # which its rows by themselves need
    if discount == 0:
        refused = run_surestep("improve", file, *given, *ends)
        assert refused.exit_code == 2
        assert "--episode and --step" in refused.stderr
    made = run_surestep("improve", file, *given, *ends, "--discount", discount)
    assert made.exit_code == 0, made.output
    assert surestep.load(tmp_path / "out").record.parameters.discount == discount


def test_numbers_get_bins_and_a_policy_beside_the_log_is_found(tmp_path):
    write_lines(tmp_path / "pumps.csv", LINES[:400])
    write_lines(tmp_path / "pumps_policy.csv", POLICY)
    (tmp_path / "elsewhere").mkdir()
    for target in (tmp_path / "pumps.toml", tmp_path / "elsewhere" / "own.toml"):
        given = () if target.name == "pumps.toml" else ("-o", target)
        assert run_surestep("describe", tmp_path / "pumps.csv", *given).exit_code == 0
        found = given_as(target)[0]  # its files are those that there are
        assert (found.columns.action, found.columns.reward) == ("decision", "reward")
        assert os.path.samefile(found.files, tmp_path / "pumps.csv")
        assert os.path.samefile(found.behavior.policy, tmp_path / "pumps_policy.csv")
    lines, _ = KINDS["patients and times"]
    run_surestep("describe", write_lines(tmp_path / "other.csv", lines))
    bins = tomllib.loads((tmp_path / "other.toml").read_text("utf-8"))["bins"]
    assert bins == {"lactate": {"quantiles": 10}}


def described(folder, lines, *more, encoding="utf-8"):
    """Returns what describe says of a log: the content of its file, and its text."""
    log = folder / "log.csv"
    log.write_text("\n".join(lines) + "\n", encoding)
    (folder / "log.toml").unlink(missing_ok=True)
    told = run_surestep("describe", log, *(part for each in more for part in ("--set", each)))
    assert told.exit_code == 0, told.output
    text = (folder / "log.toml").read_text("utf-8")
    return tomllib.loads(text), text


@pytest.mark.thorough
def test_what_is_known_only_later_is_no_state_and_a_cost_no_reward(tmp_path):
    lines = table(
        "stay_id,hour,lactate,dose,died,cost",
        lambda i: f"{i // 4},{i % 4},{'' if i % 8 == 3 else i % 5},{i % 2},{i // 4 % 2},{i % 7}",
    )
    content, text = described(tmp_path, lines)
    assert content["columns"] == {
        "episode": "stay_id", "step": "hour", "state": "lactate", "action": "dose",
    }  # fmt: skip
    assert '# known only after the decision? "died", "cost"\n' in text
    assert f'# "lactate" is missing in {SIZE // 8} rows' in text
    offered = next(line for line in text.splitlines() if "If that is a cost" in line)
    query = tomllib.loads(offered.partition("cost: ")[2])["query"]
    columns = {"episode": "stay_id", "step": "hour", "state": "died", "action": "dose"}
    source = surestep.read_log(tmp_path / "log.csv", query=query, columns=columns, ends="complete")
    assert sorted(source.load().reward) == sorted(-(i % 7) for i in range(SIZE))


@pytest.mark.thorough
def test_a_column_that_last_rows_alone_tell_is_no_state(tmp_path):
    table = outcome_in_state(1, 300).table
    table.pop("terminated")
    rows = [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
    content, text = described(tmp_path, [",".join(table), *rows])
    assert content["columns"]["state"] == "pain"
    assert '# "status" is known after the decision: last rows alone have "died", "disch' in text
    offered = next(line for line in text.splitlines() if "If these are how" in line)
    query = tomllib.loads(offered.partition("end: ")[2])["query"]
    counts = surestep.read_log(
        tmp_path / "log.csv", query=query, columns={"state": "pain"}
    ).counts()
    assert counts.episodes.terminated == sum(word != "in care" for word in table["status"])


def test_rows_with_dates_are_no_cases_by_themselves(tmp_path):
    hotels = table(
        "hotel,stay_date,competitor_price,price,revenue",
        lambda i: f"h{i % 6},2024-01-{1 + i // 10:02d},{90 + i % 3},{100 + i % 4},{i % 9}",
    )
    content, text = described(tmp_path, hotels)
    assert content["columns"] == {
        "step": "stay_date", "state": ["hotel", "competitor_price"], "action": "price",
        "reward": "revenue",
    }  # fmt: skip
    assert '# episode = "episode"  # not found: name it; or take out step, if every row' in text
    told = run_surestep("inspect", tmp_path / "log.toml")
    assert (told.exit_code, "what the episode is" in told.stderr) == (2, True), told.output


def test_one_decision_a_row_with_seconds_and_names_of_items(tmp_path):
    clicks = table(
        "timestamp,user_segment,item_id,propensity,reward",
        lambda i: f"{1700000000 + 97 * i},{'abc'[i % 3]},{[101, 205][i % 2]},0.5,{i % 5 // 4}",
    )
    content, text = described(tmp_path, clicks)
    assert content["columns"] == {
        "state": "user_segment", "action": "item_id", "reward": "reward",
        "propensity": "propensity",
    }  # fmt: skip
    assert content["behavior"] == {"policy": "propensities"}
    assert '# episode = "episode"  # not found: name it; without it, every row' in text
    assert run_surestep("inspect", tmp_path / "log.toml").exit_code == 0


def test_how_a_file_is_written_is_said_and_then_used(tmp_path):
    mailing = table(
        "customer_id;date;segment;offer;spend",
        lambda i: (
            f"{i // 4};{13 + i % 4}/01/2024;{['gold', 'silver', 'NULL'][i % 3]};{'xy'[i % 2]};"
            + ("NULL" if i % 3 else f"{i % 50},5")
        ),
    )
    settings = ["nullstr=NULL", "decimal_separator=,", "timestampformat=%d/%m/%Y"]
    content, text = described(tmp_path, mailing, *(f"reader.{each}" for each in settings))
    assert content["columns"] == {
        "episode": "customer_id", "step": "date", "state": "segment", "action": "offer",
        "reward": "spend",
    }  # fmt: skip
    assert f"# seen: 0.5 to {max(i % 50 for i in range(0, SIZE, 3))}.5; what is" in text


NAMES = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1,
                max_size=6),
        st.sampled_from(['a"b', "a\nfiles = 1", "# x", "[bins]", "a.b", "id = 1", "état", "\x7f"]),
    ),
    min_size=1, max_size=6, unique_by=str.lower,
)  # fmt: skip


@pytest.mark.thorough
@given(names=NAMES)
def test_whatever_columns_are_called_the_file_says_nothing_else(names, tmp_path_factory):
    home = tmp_path_factory.mktemp("names")
    columns = [f"i % {2 + 40 * (k % 2)} AS {sql_name(name)}" for k, name in enumerate(names)]
    rows = f"SELECT {', '.join(columns)} FROM range(90) AS rows(i)"
    duckdb.execute(f"COPY ({rows}) TO '{home / 'log.parquet'}' (FORMAT parquet)")
    told = run_surestep("describe", home / "log.parquet")
    assert told.exit_code == 0, told.output
    found = given_as(home / "log.toml")[0].given()
    named = found.get("columns", {}).values()
    used = {name for given in named for name in ([given] if isinstance(given, str) else given)}
    assert used <= set(names)
    assert set(found.get("bins", {})) <= used
    assert found.keys() <= {"files", "columns", "bins", "behavior", "stakes"}


def test_a_column_is_looked_at_whichever_its_place(tmp_path):
    names = [f"x{n}" for n in range(57)]
    lines = table(",".join(["action", *names, "reward"]), lambda i: ",".join([str(i % 2)] * 59))
    text = described(tmp_path, lines)[1]
    assert all(f'"{name}"' in text for name in names)


def test_all_keys_are_listed():
    told = run_surestep("describe", "--keys").stdout
    assert all(f"{path}: " in told for path in HELP)
    assert "method.delta: The chance that the claim is wrong (δ).  [default: 0.1]" in told


def test_a_line_end_in_the_name_of_a_file_breaks_no_line(tmp_path):
    log = write_lines(tmp_path / "a\nb.csv", ["state,action,reward", "s,x,1", "s,y,0"])
    done = run_surestep("describe", log).stdout.splitlines()
    shown = str(log.with_suffix(".toml")).replace("\n", r"\n")
    assert done == [f"wrote {shown}", f"next: read it, then: surestep inspect $'{shown}'"]
    words = subprocess.run(
        ["bash", "-c", f"printf %s {done[1].rpartition('inspect ')[2]}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert words.stdout == str(log.with_suffix(".toml"))


@pytest.mark.thorough
def test_a_table_of_too_many_columns_is_refused_in_one_line(tmp_path):
    lines = [",".join(f"c{i}" for i in range(5_001)), ",".join(["0"] * 5_001)]
    done = run_surestep("describe", write_lines(tmp_path / "wide.csv", lines))
    assert done.exit_code == 2
    assert "there are 5,001 columns, expected at most 5,000" in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_was_seen_is_no_suggestion_of_what_is_possible(tmp_path):
    """Ranges of the log itself would turn 'within the rewards seen' into a proof."""
    lines = ["episode,step,state,action,reward", "1,0,a,x,-400", "1,1,b,y,300", "2,0,a,y,1"]
    run_surestep("describe", write_lines(tmp_path / "log.csv", lines))
    file = tmp_path / "log.toml"
    text = file.read_text("utf-8")
    for name in ("running", "ending"):
        assert f"# {name} = [?, ?]  # seen: −400 to 300; what is possible" in text
    file.write_text(text.replace("# running", "running"), "utf-8")
    refused = run_surestep("improve", file, "-o", tmp_path / "out")
    assert refused.exit_code == 2
    assert "is not written as TOML: Invalid value (at line" in refused.stderr
