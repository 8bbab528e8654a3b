"""Mistakes on the command line: told in a line, with exit code 2, and nothing is written."""

import shlex

import pytest

from support.made_runs import made_run
from support.pump_commands import LINES, POLICY, PUMPS, UNTESTED, run_surestep, write_lines

SHORT = LINES[:151]
PUMP = shlex.join(PUMPS[:-2])  # without the discount
SIZE = "--states 25 --actions 4 --discount 0.95"
HEADER, ROW = "patient,day,ward,severity,decision,gain,done", "1,0,a,low,wait,0.5,0"
WARD = "--episode patient --step day --state ward --state severity --action decision"
WRITTEN = {  # files of a few lines
    "mixed.csv": [*SHORT[:7], SHORT[7].replace(SHORT[7].split(",")[5], "many"), *SHORT[8:]],
    "rewrad.csv": [SHORT[0].replace("reward", "rewrad"), *SHORT[1:]],
    "cut.csv": [*SHORT[:40], "1,2"],
    "ward.csv": [HEADER, ROW],
    "actionless.csv": ["episode,step,state,reward", "1,0,s,1"],
    "log.toml": ["mine"],
    "gone.toml": ['files = "gone.csv"'],
    "nothing.toml": ["[stakes]", "discount = 0.9"],
    "typo.toml": ['files = "log.csv"', "fils = 1"],
    "table.toml": ['files = "log.csv"', 'tables = { a = "gone.csv" }', 'query = "FROM log"'],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Logs, good and bad, and what they make: a result, a run and descriptions."""
    home = tmp_path_factory.mktemp("mistakes")
    write_lines(home / "log.csv", LINES[:1501])
    write_lines(home / "later.csv", [LINES[0], *LINES[3013:3513]])
    write_lines(home / "policy.csv", POLICY)
    given = ("--behavior", home / "policy.csv", *UNTESTED, "-o", home / "result")
    done = run_surestep("improve", home / "log.csv", *PUMPS, *given)
    assert done.exit_code == 0, done.output
    made_run(home / "run", repetitions=2)
    for name, lines in WRITTEN.items():
        write_lines(home / name, lines)
    return home


IMPROVE = f"improve log.csv {PUMP} --discount 0.95 -o out"
CERTIFY, EXPLAIN = "certify result log.csv", "explain result"
LONG, TOO_LONG = "x" * 300, "File name too long"
OWN_LOG = "the policy was chosen from this very log"
MISTAKES = [  # a command, and parts of what it says
    ("bounds", "No such command 'bounds'. Did you mean 'bound'?"),
    ("algorithms soft-spib", "there is no algorithm 'soft-spib'; did you mean"),
    (f"bound {SIZE} --value-bound 1", "Nothing is asked: give --visits, --zeta, or both."),
    (f"bound {SIZE} --visits 10", "Give either --value-bound or --values LOW HIGH."),
    (f"bound {SIZE} --value-bound 1 --zeta 1 --branching 26", "branching is 26"),
    (
        f"count ward.csv {WARD} --reward gian -o c.parquet",
        "no column 'gian', chosen for reward; did",
    ),
    (
        f"count ward.csv {WARD} --reward gain --reward done -o c.parquet",
        "is ['gain', 'done'], expec",
    ),
    ("count log.csv --address auto -o c.parquet", "--address is for --engine ray"),
    ("merge ward.csv -o c.parquet", "ward.csv"),
    (f"merge {LONG}.parquet -o c.parquet", TOO_LONG),
    (f"describe {LONG}.csv", TOO_LONG),
    (f"inspect {LONG}.csv", TOO_LONG),
    (f"compare run --from {LONG}", TOO_LONG),
    (f"explain {LONG} --state a", TOO_LONG),
    ("inspect actionless.csv -o page.html", "no column says what the action is"),
    ("inspect none.csv -o page.html", "is no file"),
    (f"inspect log.csv {PUMP} --behavior ward.csv -o page.html", "there is no column 'condition'"),
    (f"inspect log.csv {PUMP} --n-wedge -1 -o page.html", "--n-wedge"),
    ("inspect gone.toml log.csv", "expected one description, or the files"),
    ("describe log.csv", "log.toml is there already; name another file with -o"),
    ("describe log.csv -o log.csv", "log.csv"),
    ("describe", "Missing argument 'LOG...'"),
    ("describe none.csv", "none.csv is no file, and no folder"),
    ("describe s3://bucket/x", "is an address, and those are not read"),
    ("describe '*.csv'", "name the file to write with -o"),
    ("describe log.csv --set columns.action=x -o a.toml", "--set says here how"),
    ("describe log.csv --set reader.delim=ab -o a.toml", "reader.delim is 'ab'"),
    ("improve gone.toml --discount 0.9 -o out", "gone.csv is no file"),
    ("improve nothing.toml -o out", "nothing.toml names no files, expected the key `files`"),
    (
        "improve typo.toml --discount 0.9 -o out",
        "typo.toml: there is no key 'fils'; did you mean f",
    ),
    ("improve table.toml --discount 0.9 -o out", "gone.csv is no"),
    ("improve log.tml -o out", "log.tml is no file"),  # before the discount, which is missing too
    (
        f"improve rewrad.csv {PUMP} --discount 0.9 -o out",
        "rewrad.csv … no column says what the reward is … 'rewrad' … --reward",
    ),
    (
        f"improve mixed.csv {PUMP} --discount 0.9 -o out",
        "mixed.csv … row 7 … 'reward' … 'many' … finite number",
    ),
    (
        f"improve cut.csv {PUMP} --discount 0.9 -o out",
        "cut.csv, line 41: … found 2 values, expected",
    ),
    (f"{IMPROVE} --discount x", "'--discount': 'x' is not a valid float"),
    (f"{IMPROVE} --set epsilon", "--set is 'epsilon', expected KEY=VALUE such as"),
    (f"{IMPROVE} --set stakes.discont=1", "no key 'discont' in [stakes]; did you mean discount"),
    (f"{IMPROVE} --behavior nothing.csv", "nothing.csv is no file"),
    (f"{IMPROVE} --behavior {LONG}", TOO_LONG),
    (f"{IMPROVE} --set limits.allowed={LONG}", TOO_LONG),
    (f"{IMPROVE} --behavior propensities", "name it with --propensity"),
    (f"rehearse log.csv {PUMP} --sizes 1,x", "'1,x' is no list of numbers"),
    (f"rehearse log.csv {shlex.join(PUMPS)} --behavior policy.csv --sizes 0", "sizes"),
    (
        f"rehearse log.csv {shlex.join(PUMPS)} --behavior policy.csv --running 0 1",
        "expected 0 to 1 where it goes on and 0 to 0 where it ends",
    ),
    (f"{EXPLAIN} --state wron --state high", "did you mean 'worn'?"),
    (f"{EXPLAIN} --state worn", "has 1 values, expected 2: condition, demand"),
    (f"{EXPLAIN} --state condition=worn --state high", "give every --state with its column"),
    (f"{EXPLAIN} --state condition=worn --state condition=new", "column 'demand' is missing"),
    (EXPLAIN, "Missing option '--state'"),
    (CERTIFY, "expected a LOG, and at least one --certificate"),
    (f"{CERTIFY} --kind robust:sets=l1", "robust has no setting 'sets'; did you mean set"),
    (f"{CERTIFY} --kind trajectory:train_share=0.25", OWN_LOG),
    (f"{CERTIFY} --kind stitched:seed=7,logger=fixed", OWN_LOG),
    (
        f"{CERTIFY} later.csv --kind trajectory:horizon=5,claim=horizon",
        "a file of this log is one that the policy was made from",
    ),
    ("compare run --metric maen", "there is no metric 'maen'; did you mean mean?"),
    ("compare run --against ramdp", "--against is 'ramdp', which names no method of this run"),
    ("figure run -o f.png --metric maen", "there is no metric 'maen'; did you mean mean?"),
    ("figure run -o n.gif", "has the suffix '.gif', expected .png, .svg or .pdf"),
    ("figure paper/gridworld -o missing/n.png", "missing is no folder"),
    ("figure n-wegde -o n.png", "n-wegde"),
]


@pytest.mark.parametrize(("command", "words"), MISTAKES)
def test_a_mistake_is_told_in_one_line_and_nothing_is_written(command, words, home, monkeypatch):
    monkeypatch.chdir(home)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    told = run_surestep(*shlex.split(command))
    assert told.exit_code == 2, told.output
    assert isinstance(told.exception, SystemExit)
    said = " ".join(told.stderr.split())
    for part in words.split(" … "):
        assert part in said
    assert "Traceback" not in told.output
    lines = told.stderr.strip().splitlines()
    assert len(lines) <= (5 if lines[0].startswith("Usage: ") else 1), told.stderr
    assert told.stdout == ""
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before
