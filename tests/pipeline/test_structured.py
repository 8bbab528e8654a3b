"""`improve` with a known structure: from a file to rules, a proof, a page, and back."""

import json
import math
import tomllib
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO

import msgspec
import numpy as np
import pytest

import surestep._arrays as arrays
from support.log_tables import write_table
from surestep import improve, load
from surestep.certificates.refuting import check_node_returns
from surestep.checks import failed
from surestep.cli.main import main
from surestep.environments.sysadmin import DISCOUNT, STRUCTURE, SysAdmin
from surestep.errors import (
    FileFailure,
    InvalidLog,
    InvalidParameter,
    InvalidPolicy,
    InvalidResult,
    RefutedBounds,
    ResultMismatch,
)
from surestep.model import FactoredLog, FactoredProblem, Structure
from surestep.pipeline import (
    certify_result,
    explain,
    improve_structured,
    pilot,
    structured,
    verify_result,
    watch,
)
from surestep.pipeline import current_policy as policies
from surestep.pipeline.evidence import open_source
from surestep.report.structured import structured_sections

NOTHING = "not shown to be better"
CURRENT = {
    "format": "surestep column rules",
    "group": "machine_*",
    "rules": [{"when": {"@": ["failed", "failed"]}, "action": "reboot_@", "chance": 0.3}],
    "default": "nothing",
    "chance": 0.3,
}
PLANT = """
files = "plant.csv"
ends = "clock"
columns.state = ["machine_0", "machine_1", "machine_2", "machine_3"]
columns.step = "week"
behavior.policy = "current.json"
stakes.discount = 0.95
method.worlds = 0

[structure."machine_*"]
values = ["failed", "works"]
parents = ["@", "@left + @right"]
action = {reboot = "reboot_@"}
known = [{action = "reboot", is = "works"}, {"@" = "failed", is = "failed"}]

[structure.reward]
terms = [{of = "machine_*", works = 1.0}, {of = "action", "reboot_*" = -1.0}]
"""
CLINIC = """
files = "clinic.csv"
columns = {state = ["pressure", "age"], step = "day"}
stakes = {discount = 1, horizon = 4}

[structure.pressure]
parents = ["pressure"]
[structure.age]
parents = ["age"]
action = "none"
known = "same"
[structure.end]
parents = ["next.pressure"]
action = "none"
[structure.reward]
terms = [{of = "next.end", yes = -1.0}]
"""


def plant_rows(log):
    structure = log.structure
    rows = []
    reward = log.earned
    for e in range(log.num_episodes):
        for week, i in enumerate(range(*log.offsets[e : e + 2])):
            labels = (structure.values[c][v] for c, v in enumerate(log.state[i]))
            rows.append(
                {
                    "episode": e,
                    "week": week,
                    **dict(zip(structure.columns, labels, strict=True)),
                    "action": structure.actions[log.action[i]],
                    "reward": reward[i],
                }
            )
    return rows


def clinic_rows(episodes, rng):
    """Treating at high pressure lowers it; episodes end by death, or after four days."""
    rows = []
    for e in range(episodes):
        high, age = rng.random() < 0.6, "old" if rng.random() < 0.5 else "young"
        for day in range(4):
            treat = rng.random() < 0.5
            after = rng.random() < (0.1 if treat else 0.8) if high else rng.random() < 0.2
            died = after and rng.random() < 0.3
            rows.append(
                {
                    "episode": e,
                    "day": day,
                    "pressure": "high" if high else "normal",
                    "age": age,
                    "action": "treat" if treat else "wait",
                    "reward": -1.0 if died else 0.0,
                    "terminated": died,
                    "truncated": day == 3 and not died,
                    "next_pressure": "high" if after else "normal",
                    "next_age": age,
                }
            )
            if died:
                break
            high = after
    return rows


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plant")
    world = SysAdmin(4)
    rows = plant_rows(world.sample(world.first_failed(0.3), 300, rng=1))
    write_table(folder / "plant.csv", rows, tuple(rows[0]))
    (folder / "current.json").write_text(json.dumps(CURRENT))
    (folder / "plant.toml").write_text(PLANT)
    return folder


@pytest.fixture(scope="module")
def said(plant):
    """What the command prints as JSON; it writes the folder `result` beside the description."""
    command = ["improve", str(plant / "plant.toml"), "-o", str(plant / "result"), "--json"]
    with redirect_stdout(StringIO()) as printed, pytest.raises(SystemExit) as stop:
        main(command)
    assert stop.value.code == 0
    return json.loads(printed.getvalue())


@pytest.fixture(scope="module")
def result(plant, said):
    return load(plant / "result")


def test_rules_are_proved_below_their_true_gain(result):
    world = SysAdmin(4)
    better, before = (
        world.sample(policy, 1000, rng=1, steps=200).returns(DISCOUNT).mean()
        for policy in (result.rules.policy(world.structure()), world.first_failed(0.3))
    )
    assert result.verdict == "proved better"
    assert 0 < result.certificate.lower < better - before
    assert result.estimated_gain == pytest.approx(better - before, rel=0.2)
    assert result.rules.texts()[-1] == "Else: nothing."
    works = dict.fromkeys(result.structure.columns, "works")
    assert result.act(works) == "nothing"
    assert result.act(works | {"machine_2": "failed"}) == "reboot_2"
    with pytest.raises(InvalidParameter, match="column 'machine_1' is 'rusty', expected one of"):
        result.act(works | {"machine_1": "rusty"})


def test_the_log_is_read_as_it_was_drawn(plant, result):
    assert result.record.data == {"rows": 300 * 39, "episodes": 300}  # the clock stopped the last
    assert result.certificate.figures["training_episodes"] == round(0.36 * 300)
    assert result.structure.values[0] == ("failed", "works")


@pytest.mark.thorough
def test_a_result_is_saved_loaded_and_made_again(plant, result, tmp_path, capsys):
    folder = tmp_path / "result"
    result.save(folder)
    loaded = load(folder)
    assert loaded.files() == result.files()
    assert (loaded.verdict, loaded.estimated_gain) == (result.verdict, result.estimated_gain)
    with pytest.raises(SystemExit) as stop:
        main(["verify", str(folder), str(plant / "plant.toml")])
    assert stop.value.code == 0
    assert "confirmed: the same bytes" in capsys.readouterr().out
    other = plant / "other.toml"
    other.write_text(PLANT.replace("0.95", "0.9"))
    with pytest.raises(ResultMismatch, match="stakes: your description says another thing"):
        verify_result(folder, other)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ResultMismatch, match=r"holds \['notes.txt'\], expected only files of"):
        verify_result(folder, plant / "plant.toml")
    (folder / "notes.txt").unlink()
    belief = (folder / "belief.json").read_bytes()
    (folder / "belief.json").unlink()
    with pytest.raises(FileFailure, match=r"belief\.json cannot be read: No such file"):
        verify_result(folder, plant / "plant.toml")
    (folder / "belief.json").write_bytes(belief)
    page = (folder / "report.html").read_text()
    assert "Not stress tested: none was asked for." in page
    assert "Adopt it" in page
    assert "If people decided by what the log does not record" in page
    (folder / "rules.json").write_text(json.dumps(CURRENT))
    with pytest.raises(InvalidResult, match=r"rules.json was changed"):
        load(folder)


def test_the_command_prints_the_answer_as_json(said, result):
    assert said["verdict"] == "proved better"
    assert said["lower"] == result.certificate.lower
    assert said["rules"][-1] == "Else: nothing."


@pytest.fixture(scope="module")
def few(plant):
    world = SysAdmin(4)
    rows = plant_rows(world.sample(world.first_failed(0.3), 60, rng=1))
    write_table(plant / "few.csv", rows, tuple(rows[0]))
    changed = PLANT.replace("plant.csv", "few.csv").replace("worlds = 0", "worlds = 1")
    (plant / "few.toml").write_text(changed)
    told = []
    made = improve_structured(plant / "few.toml", progress=lambda *said: told.append(said))
    assert ("stress test", 0, 1) in told
    return made


@pytest.mark.thorough
def test_what_is_not_proved_may_be_believed(few):
    """60 episodes prove nothing; their structure was tested too little to call it believed."""
    assert few.certificate.lower < 0 < few.belief.lower < 8.8
    assert few.test.is_blind
    assert few.verdict == "not shown to be better"
    assert [check.code for check in failed(few.checks)] == ["blind-structure"]
    assert "The log has hardly been where the policies go" in few.report
    seen = replace(few, test=replace(few.test, blind=0.0))
    assert seen.verdict == "believed better"
    title, *_ = structured_sections(seen)
    assert (title.title, title.mood) == ("Pilot it", "caution")
    assert "In 0 of 1 simulated world it believed in more than was true" in title.sentences[0]
    assert [key.name for key in title.keys][:2] == ["Believed, at least", "Best guess"]


@pytest.mark.thorough
def test_a_stress_test_is_saved_and_undoes_beliefs(few, tmp_path):
    tested = few.rehearsal
    assert 5 < tested.gain[0, 0] < 11  # rules that 60 episodes choose gain about 8.8
    assert tested.claim[0, 0] < tested.belief[0, 0] < tested.gain[0, 0]
    assert 0 < tested.tolerance < 1
    few.save(tmp_path / "result")
    assert load(tmp_path / "result").files() == few.files()
    assert "In 1 simulated world" in few.report
    assert "Not stress tested" not in few.report
    zeros, ones = np.zeros((40, 1)), np.ones((40, 1))
    none = np.zeros((40, 1), np.bool_)
    wrong = arrays.altered(
        tested, gain=zeros, belief=ones, claim=zeros, member=np.zeros(40, np.int64), outside=none
    )
    seen = replace(few, test=replace(few.test, blind=0.0))
    assert (seen.verdict, replace(seen, rehearsal=wrong).verdict) == ("believed better", NOTHING)
    title, *_ = structured_sections(replace(seen, rehearsal=wrong))
    assert title.title == "Keep what you do"
    assert "the stress test undoes it" in title.sentences[0]


@pytest.mark.thorough
def test_a_wrong_structure_proves_nothing(plant, tmp_path):
    """Who says that neighbours do not matter is contradicted by the log."""
    wrong = plant / "wrong.toml"
    wrong.write_text(PLANT.replace('["@", "@left + @right"]', '["@"]'))
    result = improve_structured(wrong)
    assert result.test.failed
    assert result.verdict == NOTHING
    (check,) = failed(result.checks)
    assert (check.code, check.signal) == (
        "structure",
        "machine_*: @ works, action other leads to failed where @right = failed",
    )
    title, *_ = structured_sections(result)
    assert (title.title, title.mood) == ("Answer one question first", "bad")
    assert "The log contradicts the structure (machine_*: @ works" in title.sentences[0]
    assert "Add the missing parent" in title.sentences[0]
    assert "The log contradicts the structure" in result.report


def proof_of(claim):
    return arrays.altered(claim, standing="proved")


LEARN = 'parents = "learn"\naction = "learn"\n\n'
LEARNT_PLANT = (
    f"{PLANT[: PLANT.index('parents')]}{LEARN}{PLANT[PLANT.index('[structure.reward]') :]}"
)


@pytest.mark.thorough
def test_a_learnt_structure_is_believed_until_somebody_confirms_it(plant, tmp_path, capsys):
    (plant / "learn.toml").write_text(LEARNT_PLANT)
    command = ["improve", str(plant / "learn.toml"), "-o", str(tmp_path / "result")]
    with pytest.raises(SystemExit) as stop:
        main(command)
    assert stop.value.code == 0
    screen = capsys.readouterr().out
    assert screen.lstrip().startswith("Pilot it\n") or "\nPilot it\n" in screen
    assert "All claims rest on the learnt structure: is it true?" in screen
    lines = ['parents = ["@", "@left + @right"]', 'action = { "reboot_@" = "reboot_@" }']
    assert all(f'[structure."machine_*"]: {line}' in screen for line in lines)
    result = load(tmp_path / "result")
    assert (result.verdict, result.certificate.standing) == ("believed better", "believed")
    assert result.certificate.assumes("structure-learnt")
    assert result.structure.learnt == ("machine_*",)
    assert "The learnt structure" in result.report
    assert verify_result(tmp_path / "result", plant / "learn.toml").confirmed
    # Who writes these lines in place of "learn" has the same structure, without the mark.
    confirmed = tomllib.loads(LEARNT_PLANT.replace(LEARN, "\n".join([*lines, ""])))["structure"]
    assert confirmed["machine_*"].items() >= result.record.learnt["machine_*"].items()
    structure = Structure.read(result.record.columns, result.record.actions, confirmed)
    assert structure == replace(result.structure, learnt=())
    assert replace(result, certificate=proof_of(result.certificate)).verdict == "proved better"


def test_the_part_that_judges_teaches_no_structure(tmp_path, monkeypatch):
    """Where the first half is as it was, the rest may say anything; and not the other way."""
    world, rng = SysAdmin(4), np.random.default_rng(2)
    log = world.sample(world.first_failed(0.3), 60, rng=1)
    free = {"machine_*": {}, "reward": STRUCTURE["reward"]}
    log = replace(log, structure=world.structure(free))
    taught = np.arange(log.num_steps) < log.offsets[30]
    (tmp_path / "current.json").write_text(json.dumps(CURRENT))
    (tmp_path / "plant.toml").write_text(LEARNT_PLANT)

    class Learnt(Exception):
        """Stops before rules are looked for."""

    def stop(training, *more, **options):
        raise Learnt(training.structure.node_names)

    def learnt(kept):
        noise = rng.integers(2, size=log.state.shape)
        state = np.where(kept[:, np.newaxis], log.state, noise)
        rows = plant_rows(replace(log, state=state, next_state=np.roll(state, -1, axis=0)))
        write_table(tmp_path / "plant.csv", rows, tuple(rows[0]))
        with pytest.raises(Learnt) as found:
            improve_structured(tmp_path / "plant.toml")
        return found.value.args[0]

    monkeypatch.setattr(structured, "find_rules", stop)
    assert learnt(taught)[-1] == "machine_*: @ works, @left + @right 2, action reboot_@"
    assert learnt(~taught) == ("machine_*: always",)


def test_practice_that_nobody_wrote_down_is_compared_by_its_returns(tmp_path):
    rows = clinic_rows(1500, np.random.default_rng(3))
    write_table(tmp_path / "clinic.csv", rows, tuple(rows[0]))
    (tmp_path / "clinic.toml").write_text(CLINIC)
    result = improve_structured(tmp_path / "clinic.toml")
    assert result.rules.texts() == ["If pressure = high: treat.", "Else: wait."]
    for claim in (result.certificate, result.belief):
        assert "practice-as-recorded" in [said.code for said in claim.assumptions]
    assert result.certificate.lower < result.belief.lower < result.estimated_gain
    assert result.verdict == "proved better"
    assert result.certificate.figures["estimate"] == pytest.approx(result.estimated_gain, abs=0.02)
    assert "in the worlds the current policy acts, and nobody knows all of it" in result.report
    # Of those who begin high, wait has 0.8 and treat 0.1 to go on so, and a death takes 0.3.
    assert 0 < result.certificate.lower < result.estimated_gain < 0.4
    assert result.act({"pressure": "high", "age": "old"}) == "treat"


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ("stakes.discount = 0.95", "", InvalidParameter, "stakes.discount is missing"),
        ("worlds = 0", "grid = 3", InvalidParameter, "method"),
        pytest.param(
            'behavior.policy = "current.json"\nstakes.discount = 0.95\nmethod.worlds = 0',
            "stakes.discount = 0.95\nmethod.worlds = 3",
            InvalidParameter,
            "method.worlds is 3, but in the worlds the current policy acts",
            marks=pytest.mark.thorough,
        ),
        ("works = 1.0", "works = 2.0", InvalidLog, "row 1 contradicts the structure: its reward"),
        ("current.json", "plant.toml", InvalidParameter, "expected rules as rules.json"),
        ('["@", "@left', '["@", "@leaf', InvalidParameter, "has the parent '@leaf'"),
        ('"reboot_@"}', '"reset_@"}', InvalidParameter, "has the action 'reset_0'"),
        ('["@", "@left + @right"]', '"lern"', InvalidParameter, 'or parents = "learn"'),
        ('{reboot = "reboot_@"}', '"learn"', InvalidParameter, "names parts of an action"),
    ],
)
def test_mistakes_end_in_one_line(plant, tmp_path, old, new, error, words):
    (plant / "mistake.toml").write_text(PLANT.replace(old, new))
    with pytest.raises(error) as refusal:
        improve_structured(plant / "mistake.toml")
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_current_policy_that_is_not_there_is_told_before_the_log_is_read(plant, monkeypatch):
    (plant / "mistake.toml").write_text(PLANT.replace("current.json", "curent.json"))
    monkeypatch.setattr(structured, "open_source", None)
    with pytest.raises(FileFailure, match=r"curent\.json is no file"):
        improve_structured(plant / "mistake.toml")


def test_descriptions_without_a_structure_are_for_the_other_verb(plant):
    (plant / "flat.toml").write_text(PLANT.partition("[structure")[0])
    with pytest.raises(InvalidParameter, match=r"there is no \[structure\]"):
        improve_structured(plant / "flat.toml")
    with pytest.raises(InvalidParameter, match="improve_structured"):
        improve(plant / "plant.toml")


def test_a_test_that_compared_nothing_is_saved_and_loaded(result, tmp_path):
    nothing = replace(result.test, evidence=-math.inf, worst=None)
    record = msgspec.structs.replace(result.record, test=msgspec.to_builtins(nothing))
    made = replace(result, test=nothing, record=record)
    made.save(tmp_path / "result")
    assert load(tmp_path / "result").test == nothing


@pytest.mark.parametrize(
    "verb",
    [
        lambda result: explain(result, "works"),
        lambda result: certify_result(result, "log.csv", ["robust"]),
        lambda result: pilot(result, episodes=50),
        lambda result: watch(result, "log.csv", within=50),
    ],
)
def test_verbs_that_need_a_table_of_situations_say_so(result, tmp_path, verb):
    result.save(tmp_path / "result")
    for given in (result, tmp_path / "result"):
        with pytest.raises(InvalidResult, match="rules over columns, and no table of situations"):
            verb(given)


def test_notebooks_show_the_page_and_inspect_reads_the_log(plant, result):
    assert "srcdoc=" in result._repr_html_()
    with pytest.raises(SystemExit) as stop:
        main(["inspect", str(plant / "plant.toml")])
    assert stop.value.code == 0


def test_a_missing_value_is_named(plant, tmp_path):
    rows = plant_rows(SysAdmin(4).sample(SysAdmin(4).first_failed(0.3), 30, rng=1))
    rows[7]["machine_2"] = ""
    write_table(tmp_path / "plant.csv", rows, tuple(rows[0]))
    (tmp_path / "current.json").write_text(json.dumps(CURRENT))
    (tmp_path / "plant.toml").write_text(PLANT)
    with pytest.raises(InvalidLog, match="column 'machine_2' has no value in step 8 of the log"):
        improve_structured(tmp_path / "plant.toml")


def test_a_clock_that_nothing_supports_is_asked_about(tmp_path):
    rows = plant_rows(SysAdmin(4).sample(SysAdmin(4).first_failed(0.3), 30, rng=1))
    left = [row for row in rows if row["episode"] % 3 or row["week"] < 20]
    write_table(tmp_path / "plant.csv", left, tuple(rows[0]))
    (tmp_path / "current.json").write_text(json.dumps(CURRENT))
    (tmp_path / "plant.toml").write_text(PLANT)
    with pytest.raises(InvalidLog, match=r"Did a clock stop the recordings, .* ends = \"random\""):
        improve_structured(tmp_path / "plant.toml")


# ---- declared returns ----------------------------------------------------------------------------


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("returns", "words"),
    [
        ("[0, 1]", "from episode 0, step 0 on, 59.* is earned, expected 0.0 to 1.0: wider bounds"),
        ("[60, 90]", "from episode 2, step 0 on, 47.* expected 60.0 to 90.0"),
        ("[-9, 3.9]", "expected -9.0 to 3.9"),
    ],
)
def test_returns_that_the_log_refutes_are_refused(plant, returns, words):
    """Four machines earn 4 an hour at most, all of them cut by a clock after 39 hours."""
    (plant / "returns.toml").write_text(f"stakes.returns = {returns}\n{PLANT}")
    with pytest.raises(RefutedBounds, match=words):
        improve_structured(plant / "returns.toml")


def test_returns_are_compared_from_every_step_on_until_the_horizon():
    """Earned 1, 2, 4 with γ = ½: 3 in all, 4 from the second step, 4 from the third."""
    table = {"x": {"parents": []}, "reward": {"values": [1, 2, 4]}, "end": {"parents": []}}
    structure = Structure.read({"x": ["a"]}, ["go"], table)
    log = FactoredLog(
        structure=structure,
        state=[[0]] * 3,
        action=[0] * 3,
        next_state=[[0]] * 3,
        ended=[False, False, True],
        offsets=[0, 3],
        reward=[1.0, 2.0, 4.0],
    )

    def refuted(low, high, ended=True, horizon=None):
        problem = FactoredProblem(
            log=log if ended else replace(log, ended=[False] * 3),
            behavior=None,
            discount=0.5,
            rest_bounds=(low, high),
            horizon=horizon,
        )
        try:
            check_node_returns(problem)
        except RefutedBounds as refusal:
            return str(refusal).partition(" on,")[0]
        return None

    assert refuted(0, 3.9) == "from episode 0, step 1"
    assert refuted(0, 4) is None
    assert refuted(3, 4) is None
    assert refuted(3.1, 4) == "from episode 0, step 0"
    assert refuted(3.1, 4, ended=False) is None  # ½³ · 4 may follow the cut
    assert refuted(3.6, 4, ended=False) == "from episode 0, step 0"
    assert refuted(-1, 3.9, ended=False) is None  # −½² may follow
    assert refuted(0, 3.9, ended=False) == "from episode 0, step 1"
    assert refuted(0, 2, horizon=2) is None  # 1 + ½ · 2, and 2
    assert refuted(0, 1.9, horizon=2) == "from episode 0, step 0"


def test_a_claim_clearly_above_the_best_guess_is_withheld(result):
    assert failed(result.checks) == []
    estimates = dict(result.record.estimates)
    assert 0 < estimates["error"] < 0.2
    estimates["policy"] = estimates["behavior"] + result.certificate.lower
    record = msgspec.structs.replace(result.record, estimates=estimates)
    assert replace(result, record=record).verdict == "proved better"  # within the error
    estimates["policy"] -= 4 * estimates["error"]
    doubted = replace(result, record=record)
    (check,) = failed(doubted.checks)
    assert (check.code, check.figures["claim"]) == ("claim-above-guess", result.certificate.lower)
    assert doubted.verdict == NOTHING
    line, _, against = structured_sections(doubted)
    assert (line.title, line.mood) == ("Answer one question first", "bad")
    assert line.sentences[0].startswith("The claim is clearly above the best guess. A gain of")
    assert "The claim is clearly above the best guess" in [item.title for item in against.items]


# ---- values that the log lacks -------------------------------------------------------------------


ENGINE = """
files = "engine.csv"
columns = {state = ["engine"], step = "day"}
stakes = {discount = 1, horizon = 4}
behavior.policy = "uniform"
method.worlds = 0

[structure.engine]
parents = ["engine"]
[structure.end]
parents = ["next.engine"]
action = "none"
[structure.reward]
terms = [{of = "next.engine", runs = 1.0}]
"""
EXPLODES = ("runs = 1.0", "runs = 1.0, exploded = -10000.0")
LISTED = ('parents = ["engine"]', 'parents = ["engine"]\nvalues = ["exploded", "stands", "runs"]')
WITHIN = "proved within the rewards seen"


def engine_rows(episodes, seed, explodes=0.0):
    """An engine runs in half of all days, and in 0.8 when pushed; pushed, it may explode."""
    rng = np.random.default_rng(seed)
    rows = []
    for e in range(episodes):
        state = "runs"
        for day in range(4):
            push = rng.random() < 0.5
            after = "runs" if rng.random() < (0.8 if push else 0.5) else "stands"
            over = push and rng.random() < explodes
            after = "exploded" if over else after
            rows.append(
                {
                    "episode": e,
                    "day": day,
                    "engine": state,
                    "action": "push" if push else "wait",
                    "reward": {"runs": 1.0, "stands": 0.0, "exploded": -10000.0}[after],
                    "terminated": over,
                    "truncated": day == 3 and not over,
                    "next_engine": after,
                }
            )
            state = after
            if over:
                break
    return rows


def engine(folder, seed, *changes, episodes=800, explodes=0.0):
    rows = engine_rows(episodes, seed, explodes)
    write_table(folder / "engine.csv", rows, tuple(rows[0]))
    words = ENGINE
    for old, new in changes:
        assert old in words
        words = words.replace(old, new, 1)
    (folder / "engine.toml").write_text(words)
    return improve_structured(folder / "engine.toml")


@pytest.mark.thorough
def test_a_value_that_nobody_listed_leaves_a_question(tmp_path):
    """Pushing gains 0.15 on each of 4 days, if the engine only runs and stands."""
    open_one = engine(tmp_path, 1)
    claim = open_one.certificate
    assert 0 < claim.lower < 4 * 0.15
    assert (open_one.verdict, claim.standing) == (WITHIN, "proved")
    (said,) = (said for said in claim.assumptions if said.code == "rewards-within-seen")
    assert (said.values["running_low"], said.values["running_high"]) == (0.0, 1.0)
    assert "rewards-within-seen" in [said.code for said in open_one.belief.assumptions]
    assert "Answer one question first" in open_one.report
    assert "Can “engine” ever have a value that this log does not show?" in open_one.report
    open_one.save(tmp_path / "result")
    assert load(tmp_path / "result").verdict == WITHIN
    listed = engine(tmp_path, 1, (LISTED[0], LISTED[1].replace('"exploded", ', "")))
    assert (listed.verdict, listed.certificate.lower) == ("proved better", claim.lower)
    returns = engine(tmp_path, 1, ("horizon = 4", "horizon = 4, returns = [0, 4]"))
    assert returns.verdict == "proved better"


@pytest.mark.thorough
def test_a_value_that_only_a_term_names_is_a_value(tmp_path):
    """Where an explosion may cost 10,000, the log is too small for a proof."""
    named = engine(tmp_path, 1, EXPLODES)
    assert named.record.columns == {"engine": ["exploded", "runs", "stands"]}
    assert named.certificate.lower < 0
    assert named.verdict == "not shown to be better"
    assert named.estimated_gain == pytest.approx(4 * 0.15, abs=0.15)  # it was never seen
    listed = engine(tmp_path, 1, EXPLODES, LISTED)
    assert listed.record.columns == {"engine": ["exploded", "stands", "runs"]}
    assert listed.act({"engine": "exploded"}) in ("push", "wait")
    known = engine(tmp_path, 1, (LISTED[0], LISTED[0] + '\nknown = [{engine = "off", is = "off"}]'))
    assert known.record.columns == {"engine": ["off", "runs", "stands"]}
    with pytest.raises(InvalidLog, match=r"'engine' has the value 'stands', which its `values`"):
        engine(tmp_path, 1, (LISTED[0], LISTED[1].replace('"stands", ', "")))


@pytest.mark.slow  # 10 logs
def test_rare_explosions_are_not_proved_away(tmp_path):
    """Pushed, the engine explodes with the chance 0.0005: pushing every day loses 9 or more."""
    for seed in range(10):
        seen = any(row["terminated"] for row in engine_rows(800, seed, 0.0005))
        careless = engine(tmp_path, seed, *([EXPLODES] * seen), explodes=0.0005)
        assert careless.verdict in (WITHIN, "believed better", "not shown to be better")
        careful = engine(tmp_path, seed, EXPLODES, LISTED, explodes=0.0005)
        assert careful.verdict == "not shown to be better"


# ---- the current policy: a table, an estimate, logged probabilities ------------------------------


RING = SysAdmin(3)
STATES = (np.arange(8)[:, np.newaxis] >> np.arange(3)) & 1
SMALL = (
    PLANT.replace(', "machine_3"', "")
    .replace("plant.csv", "small.csv")
    .replace('behavior.policy = "current.json"', "")
)


def table_rows(columns=3, rows=slice(None)):
    """The chances of rebooting the first failed machine, 0.3 of them random, as a table."""
    chances = RING.first_failed(0.3).chances(STATES)
    return [
        {
            **{f"machine_{i}": ("failed", "works")[state[i]] for i in range(columns)},
            "action": action,
            "probability": repr(float(chance)),
        }
        for state, law in zip(STATES, chances, strict=True)
        for action, chance in zip(RING.structure().actions, law, strict=True)
    ][rows]


@pytest.fixture
def small(tmp_path):
    """Writes a log of three machines with logged probabilities; returns a maker of descriptions."""
    log = RING.sample(RING.first_failed(0.3), 90, rng=2, steps=30)
    chances = RING.first_failed(0.3).chances(log.state)
    rows = plant_rows(log)
    for row, action, law in zip(rows, log.action, chances, strict=True):
        row["propensity"] = repr(float(law[action]))

    def description(words="", *, logged=False, change=lambda rows: None):
        change(rows)
        names = [name for name in rows[0] if logged or name != "propensity"]
        write_table(tmp_path / "small.csv", rows, tuple(names))
        (tmp_path / "small.toml").write_text(words + "\n" + SMALL)
        return tmp_path / "small.toml"

    return description


def found_policy(path):
    """The current policy that a description names, and the log."""
    description, frame = structured.keys.given_as(path)
    source = open_source(description, frame)
    log, binnings = structured.factored(source)
    choosing = log.episodes(np.arange(10))
    given = description.behavior.policy
    return policies.current_policy(given, log, choosing, source.columns, binnings), log


def exact_chances(structure):
    """The chances of the true current policy, in the order in which the log has its actions."""
    order = [RING.structure().actions.index(action) for action in structure.actions]
    return RING.first_failed(0.3).chances(STATES)[:, order]


def codes(result):
    return [said.code for said in result.certificate.assumptions]


def test_a_table_is_the_current_policy_that_it_says(small, tmp_path):
    rows = table_rows()
    write_table(tmp_path / "current.csv", rows, tuple(rows[0]))
    path = small('behavior.policy = "current.csv"')
    current, log = found_policy(path)
    exact = exact_chances(log.structure)
    np.testing.assert_allclose(current.rules.chances(STATES), exact, atol=1e-12)


@pytest.mark.slow  # four times the whole pipeline
@pytest.mark.parametrize("policy", ["current.csv", "estimate"])
def test_a_result_is_made_again_with_its_current_policy(small, tmp_path, policy):
    rows = table_rows()
    write_table(tmp_path / "current.csv", rows, tuple(rows[0]))
    path = small(f'behavior.policy = "{policy}"')
    result = improve_structured(path)
    is_table = policy == "current.csv"
    assert result.record.current == {
        "from": "table" if is_table else "estimate",
        "columns": [f"machine_{i}" for i in range(3)],
        "whole": True,
    }
    assert ("behavior-known" in codes(result)) == is_table
    assert ("the current policy, as it was written down." in result.report) == is_table
    roles = [one.role for one in result.record.inputs]
    assert roles == ["log 1", "behavior"][: 1 + is_table]
    result.save(tmp_path / "result")
    assert load(tmp_path / "result").record.current == result.record.current
    assert verify_result(tmp_path / "result", path).level == "same bytes"


def test_a_table_may_name_few_columns(small, tmp_path):
    rows = [
        {"machine_1": value, "action": action, "probability": chance}
        for value, law in (("works", (0.1, 0.2, 0.3, 0.4)), ("failed", (0.25,) * 4))
        for action, chance in zip(RING.structure().actions, law, strict=True)
    ]
    write_table(tmp_path / "current.csv", rows, tuple(rows[0]))
    current, log = found_policy(small('behavior.policy = "current.csv"'))
    assert current.record(log.structure)["columns"] == ["machine_1"]
    assert log.structure.actions[0] == "nothing"  # the last one of the table
    assert current.rules.chances(np.array([[0, 1, 0], [1, 0, 1]])).tolist() == [
        [0.4, 0.1, 0.2, 0.3],
        [0.25] * 4,
    ]
    assert current.rules.is_whole


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({0: {"probability": "0.5"}}, InvalidPolicy, "current.csv: .* sum"),
        ({0: {"probability": "2"}}, InvalidPolicy, "row 1, column 'probability': found '2'"),
        ({5: {"action": "nothin"}}, InvalidParameter, "current.csv: a rule takes 'nothin'; did"),
        (
            {place: {"machine_1": "rusty"} for place in range(4)},
            InvalidParameter,
            "current.csv: rule .* 'rusty'; expected",
        ),
        (slice(4, None), InvalidLog, "takes '.*' where machine_0 = failed, machine_1 = failed and"),
        (slice(0, 28), InvalidLog, "step 1 of the log takes '.*' where .* = works; .* no pro"),
    ],
)
def test_tables_with_mistakes_are_refused_by_name(small, tmp_path, change, error, words):
    rows = table_rows()
    if isinstance(change, slice):
        rows = rows[change]
    else:
        for place, changes in change.items():
            rows[place] |= changes
    write_table(tmp_path / "current.csv", rows, tuple(rows[0]))
    path = small('behavior.policy = "current.csv"')
    with pytest.raises(error, match=words) as refusal:
        found_policy(path)
    assert "\n" not in str(refusal.value)


RULES = json.dumps(CURRENT)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        # Nobody takes a random action: the log, in which 30 % are random, contradicts it.
        ('"chance": 0.3', '"chance": 0', InvalidLog, "takes '.*' where machine_0 = .* no prob"),
        ('"failed", "failed"', '"works", "failed"', InvalidParameter, "rule 1: @ = .* never holds"),
        ("0.3}]", "1.5}]", InvalidParameter, "rule 1 has the chance 1.5, expected 0 to 1"),
        ("0.3}]", "-0.1}]", InvalidParameter, "rule 1 has the chance -0.1, expected 0 to 1"),
        ('"chance": 0.3}]', '"chance": 1, "chance": 0.3}]', InvalidParameter, "'chance' stands tw"),
        (RULES, "[" * 100_000, InvalidParameter, "recursion .*; expected rules as rules.json"),
        ("reboot_", "r\N{LATIN SMALL LETTER E WITH ACUTE}boot_", InvalidParameter, "utf-8"),
        ("nothing", "nothin", InvalidParameter, "current.json: a rule takes 'nothin'; did you"),
    ],
)
def test_rules_with_mistakes_are_refused_by_name(small, tmp_path, old, new, error, words):
    assert old in RULES
    (tmp_path / "current.json").write_text(RULES.replace(old, new), encoding="latin-1")
    path = small('behavior.policy = "current.json"')
    with pytest.raises(error, match=words) as refusal:
        found_policy(path)
    assert "current.json" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_table_without_columns_of_the_state_is_refused(small, tmp_path):
    rows = [{"engine": 1, "action": "nothing", "probability": 1}]
    write_table(tmp_path / "current.csv", rows, tuple(rows[0]))
    path = small('behavior.policy = "current.csv"')
    with pytest.raises(InvalidLog, match="has no column of the state; expected at least one of"):
        found_policy(path)


@pytest.mark.thorough
def test_an_estimate_is_made_from_the_part_that_chooses_and_named(small, monkeypatch):
    parts = []

    def spied(log):
        parts.append(log)
        return found(log)

    found = policies.estimated_behavior
    monkeypatch.setattr(policies, "estimated_behavior", spied)
    path = small('behavior.policy = "estimate"')
    result = improve_structured(path)
    (part,) = parts
    assert part.num_episodes == result.certificate.figures["training_episodes"]
    whole = found_policy(path)[1]
    np.testing.assert_array_equal(part.action, whole.action[: part.num_steps])
    compares_returns = "practice_upper" in result.certificate.figures
    expected = "practice-as-recorded" if compares_returns else "behavior-estimated-apart"
    assert expected in codes(result)
    assert "behavior-known" not in codes(result)
    assert result.record.current["from"] == "estimate"
    assert not compares_returns
    assert "more than an estimate of what is done now" in result.report
    seen = replace(result, test=replace(result.test, blind=0.0))
    for claim in ("certificate", "belief"):
        higher = arrays.altered(getattr(result, claim), lower=1.0)
        gaining = replace(seen, **{claim: higher})
        assert gaining.verdict == "believed better"
        title, *_ = structured_sections(gaining)
        assert (title.title, title.mood) == ("Pilot it", "caution")
        assert "Write that policy down (behavior.policy)" in title.sentences[1]
        assert "more than an estimate of what is done now" in title.sentences[0]
        assert "more than an estimate of what is done now" in title.keys[0].meaning
    assert "an estimate of the current policy. It looks at machine_0" in result.report


def test_logged_probabilities_are_the_current_policy(small):
    for words in ("", 'behavior.policy = "propensities"'):
        current, log = found_policy(small(words, logged=True))
        assert current.source == "propensities"
        assert [said.code for said in current.about] == [
            "behavior-known",
            "propensities-by-columns",
        ]
        found = current.rules.chances(STATES)
        known = found > 0  # what the part that chooses has shown
        exact = exact_chances(log.structure)
        np.testing.assert_allclose(found[known], exact[known], atol=1e-12)
        assert known.mean() > 0.8


@pytest.mark.thorough
def test_probabilities_that_vary_are_no_policy(small):
    """Also where only the part that judges shows it: from row 2,400 on, of episode 80."""

    def later(rows):
        for row in rows[2400:]:
            row["propensity"] = "0.5"

    current, _ = found_policy(small(logged=True, change=later))
    assert (current.source, current.rules) == ("returns", None)
    for word in ("propensities", "row-propensities"):
        with pytest.raises(InvalidLog, match=f"is '{word}', but an action has several .* leave"):
            found_policy(small(f'behavior.policy = "{word}"', logged=True))
    with pytest.raises(InvalidLog, match="no column of the log has them; name it with"):
        found_policy(small('behavior.policy = "propensities"'))
    assert found_policy(small())[0].source == "returns"


@pytest.mark.thorough
def test_a_trial_that_was_none_is_asked_about(tmp_path):
    """Whoever treated did so in half of the cases; declared are 9 in 10 at high pressure."""
    rows = clinic_rows(1_000, np.random.default_rng(3))
    write_table(tmp_path / "clinic.csv", rows, tuple(rows[0]))
    table = [
        {"pressure": pressure, "action": action, "probability": chance}
        for pressure, often in (("high", 0.1), ("normal", 0.5))
        for action, chance in (("treat", often), ("wait", 1 - often))
    ]
    write_table(tmp_path / "current.csv", table, tuple(table[0]))

    def made(policy):
        (tmp_path / "clinic.toml").write_text(
            f'behavior.policy = "{policy}"\nmethod.worlds = 0\n' + CLINIC
        )
        return improve_structured(tmp_path / "clinic.toml")

    true, false = made("uniform"), made("current.csv")
    assert (true.verdict, true.record.checks) == ("proved better", ())
    (check,) = false.record.checks
    assert check.code == "declared-policy"
    assert check.signal == "action treat"
    assert (false.certificate.lower or 0.0) > 0
    assert false.verdict == "not shown to be better"
    assert structured_sections(false)[0].title == "Answer one question first"
    false.save(tmp_path / "false")
    assert load(tmp_path / "false").record.checks == false.record.checks
    assert verify_result(tmp_path / "false", tmp_path / "clinic.toml").confirmed
