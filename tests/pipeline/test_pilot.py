"""Pilots: planned by a result, judged by their episodes, and refused where a plan is not kept."""

import json
import tomllib
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import scipy.stats
from click.testing import CliRunner

import surestep
from surestep.cli.main import main
from surestep.errors import InvalidLog, InvalidParameter, ResultMismatch
from surestep.followup import lots
from surestep.followup.pilot import PilotPlan, judged, toml_of
from surestep.pipeline.followup import read_plan

MADE = "2026-01-01"


def table(episodes, seed=1, arm=None, better=True, **columns):
    """One decision an episode: treating the severe and not the mild pays, by 0.8 to 0.2."""
    rng = np.random.default_rng(seed)
    state = rng.integers(2, size=episodes)
    treat = rng.integers(2, size=episodes)
    if arm is not None and better:
        treat = np.where(np.asarray(arm) == "new", state, treat)
    paid = (rng.random(episodes) < np.where(state == treat, 0.8, 0.2)).astype(float)
    rows = {
        "state": np.array(["mild", "severe"])[state],
        "action": np.array(["wait", "treat"])[treat],
        "reward": paid,
        "harm": 0.1 * treat,
        "episode": np.array([f"p{e}" for e in range(episodes)]),
        "step": np.zeros(episodes, int),
        "over": np.ones(episodes, bool),
    }
    if arm is not None:
        rows["arm"] = np.asarray(arm)
    days = np.datetime64("2026-02-01") + np.arange(episodes)
    rows["day"] = days.astype(str)
    return rows | columns


SIGNALS = {
    "reward": {"column": "reward", "ending": (0, 1)},
    "harm": {"column": "harm", "ending": (0, 1), "cost": True, "not_worse_by": 0.3},
}


def improved(**more):
    roles = {"terminated": "over"}
    return surestep.improve(
        table(400), columns=roles, discount=0, worlds=0, certificates=["posterior"], **more
    )


@pytest.fixture(scope="module")
def result():
    return improved(ending=(0, 1))


@pytest.fixture(scope="module")
def with_signals():
    return improved(signals=SIGNALS)


@pytest.fixture(scope="module")
def plan(result):
    made = surestep.pilot(result, log=table(400), time="day", deadline=30, episodes=80)
    fixed = msgspec.structs.replace(made.plan, made=MADE)
    return replace(made, plan=fixed, toml=toml_of(fixed))


def drawn_arms(episodes, seed=2, share=0.5):
    return np.where(np.random.default_rng(seed).random(episodes) < share, "new", "old")


def answered(result, plan, rows, **more):
    return surestep.pilot(result, rows, plan=plan, today="2027-01-01", **more).answer


@pytest.mark.thorough
def test_a_plan_says_what_to_expect(result):
    made = surestep.pilot(result, log=table(400))
    forecast = made.forecast
    assert forecast.gain == result.estimated_gain
    assert forecast.cut == 0
    assert 20 <= forecast.needed <= 200
    assert 0.7 <= forecast.proved <= 0.95
    assert forecast.at_risk == pytest.approx(made.plan.episodes / 2)
    assert forecast.pairs == pytest.approx(np.log(10) / (2 * forecast.gain), abs=1)
    (measure,) = made.plan.measures
    assert measure.middle == pytest.approx(table(400)["reward"].mean())
    assert measure.variance == pytest.approx(table(400)["reward"].var())
    for words in ("80 % of pilots show a gain", "What to record", "When to stop"):
        assert words in made.report.replace("\u202f", " ")


@pytest.mark.thorough
@pytest.mark.parametrize("pilots", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_planned_episodes_prove_about_as_often_as_forecast(result, pilots):
    made = surestep.pilot(result, log=table(400))
    proved = 0
    for seed in range(pilots):
        arm = drawn_arms(made.plan.episodes, seed)
        rows = table(arm.size, 100 + seed, arm, day=np.full(arm.size, "2027-05-01"))
        proved += answered(result, made, rows).verdict == "proved better"
    assert proved >= scipy.stats.binom.ppf(1e-3, pilots, 0.8)  # fewer: once in 1,000 tests


@pytest.mark.thorough
def test_a_plan_is_the_same_when_it_is_read_again(result, plan, tmp_path):
    (tmp_path / "pilot.toml").write_text(plan.toml)
    assert read_plan(tmp_path).plan == plan.plan
    assert tomllib.loads(plan.toml)["measures"][0]["name"] == "reward"


def test_verdicts(result, plan):
    arm = drawn_arms(200)
    assert answered(result, plan, table(200, 3, arm)).verdict == "proved better"
    assert answered(result, plan, table(200, 3, arm, better=False)).verdict == "not yet"
    swapped = np.where(arm == "new", "old", "new")
    worse = answered(result, plan, table(200, 3, arm, arm_=arm) | {"arm": swapped})
    assert worse.verdict == "stop: it is worse"
    assert worse.measures[0].upper < 0
    assert answered(result, plan, table(5, 3, drawn_arms(5))).verdict == "not yet"


def test_the_answer_is_that_of_the_bets(result, plan):
    from surestep.followup import bets

    arm = drawn_arms(120)
    rows = table(120, 4, arm)
    answer = answered(result, plan, rows)
    (measure,) = plan.plan.measures
    wager = bets.Wager(0.0, 1.0, measure.middle, measure.variance, 80, 0.1)
    series = bets.gains(wager, arm == "new", np.full(120, 0.5), rows["reward"])
    assert answer.measures[0].lower == bets.lower_bound(series, wager)
    assert answer.measures[0].estimate == pytest.approx(series.value.mean())
    assert answer.followed == (1.0, pytest.approx(0.5, abs=0.15))


@pytest.mark.thorough
def test_the_first_pending_outcome_stops_the_count(result, plan):
    arm = drawn_arms(60)
    over = np.ones(60, bool)
    over[40] = False
    rows = table(60, 3, arm, over=over)
    early = surestep.pilot(result, rows, plan=plan, today="2026-04-01").answer
    assert (early.counted, early.pending, early.overdue) == (40, 1, 0)
    late = surestep.pilot(result, rows, plan=plan, today="2026-06-01").answer
    assert (late.counted, late.pending, late.overdue) == (60, 1, 1)
    worst = rows["reward"].copy()
    worst[40] = 0.0 if arm[40] == "new" else 1.0
    again = answered(result, plan, table(60, 3, arm) | {"reward": worst})
    assert late.measures[0].lower == again.measures[0].lower


def test_rows_count_in_the_order_of_their_starts(result, plan):
    arm = drawn_arms(60)
    rows = table(60, 3, arm)
    turned = {name: np.asarray(values)[::-1].copy() for name, values in rows.items()}
    assert answered(result, plan, rows).measures == answered(result, plan, turned).measures


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arm": np.array(["new"] * 59 + ["neu"])}, "episode 'p59' is in the arm 'neu'"),
        ({"reward": np.array([0.0] * 9 + [2.0] + [0.0] * 50)}, "'p9' returned 2 of reward"),
        ({"day": np.array(["2025-12-31"] * 60)}, "'p0' began before the plan was made"),
        ({"episode": np.array(["p1"] * 2 + [f"q{e}" for e in range(58)])}, "in both arms"),
    ],
)
def test_one_line_and_no_claim(result, plan, change, words):
    arm = np.array(["new", "old"] * 30)
    rows = table(60, 3, arm) | change
    if "episode" in change:
        rows["step"] = np.array([0, 1] + [0] * 58)
        rows["over"] = np.array([False] + [True] * 59)
    with pytest.raises(InvalidLog, match=words):
        answered(result, plan, rows)


def test_another_share_of_arms_than_planned(result, plan):
    arm = drawn_arms(200, share=0.8)
    answer = answered(result, plan, table(200, 3, arm))
    assert answer.verdict == "no claim"
    assert answer.share_evidence > 1000
    assert "share of arms" in answer.why
    assert not answer.measures


@pytest.mark.thorough
def test_a_ramp_up_has_its_chances(result, plan):
    steps = [("2026-01-01", 0.2), ("2026-04-01", 0.8)]
    fixed = msgspec.structs.replace(plan.plan, share=steps)
    ramp = replace(plan, plan=fixed, toml=toml_of(fixed))
    share = np.where(np.arange(200) < 59, 0.2, 0.8)  # days since 2026-02-01
    arm = np.where(np.random.default_rng(5).random(200) < share, "new", "old")
    assert answered(result, ramp, table(200, 3, arm)).verdict == "proved better"
    late = msgspec.structs.replace(fixed, share=[("2026-03-01", 0.5)])
    with pytest.raises(InvalidLog, match="began before 2026-03-01, the first date of share"):
        answered(result, replace(plan, plan=late), table(200, 3, arm))
    rows = table(200, 3, arm)
    without = msgspec.structs.replace(fixed, time=None, deadline=None)
    del rows["day"]
    with pytest.raises(InvalidLog, match=r"dates \(share\).* named by time"):
        answered(result, replace(plan, plan=without), rows)


@pytest.mark.thorough
def test_limits_of_other_signals_are_judged_as_well(with_signals):
    result = with_signals
    made = surestep.pilot(result, log=table(400), episodes=200)
    assert [one.margin for one in made.plan.measures] == [0.0, 0.3]
    arm = drawn_arms(300)
    rows = table(300, 3, arm)
    del rows["day"]
    answer = answered(result, made, rows)
    assert answer.verdict == "proved better"
    assert answer.measures[1].lower > -0.3
    rows["harm"] = np.where(arm == "new", 1.0, 0.0)
    assert answered(result, made, rows).verdict == "stop: it is worse"


@pytest.mark.thorough
def test_a_limit_on_a_chance_of_its_own():
    result = improved(ending=(0, 1), unsafe={"states": "state = 'severe'", "at_most": 0.9})
    made = surestep.pilot(result, log=table(400), episodes=200)
    assert made.plan.measures[1].at_most == 0.9
    arm = drawn_arms(400)
    rows = table(400, 3, arm)
    del rows["day"]
    answer = answered(result, made, rows)
    assert answer.verdict == "proved better"
    assert answer.measures[1].lower < answer.measures[1].estimate < answer.measures[1].upper
    assert answer.measures[1].estimate == pytest.approx(-0.5, abs=0.15)


@pytest.mark.thorough
def test_a_past_control_is_believed_at_most_and_fails_with_drift(result):
    old = table(400)
    made = surestep.pilot(result, log=old, control="past", episodes=100)
    assert made.forecast.needed is not None
    new = table(150, 8, np.array(["new"] * 150))
    del new["arm"], new["day"]
    answer = answered(result, made, new, log=old)
    assert answer.verdict == "believed better"
    shifted = new | {"reward": (np.random.default_rng(1).random(150) < 0.99).astype(float)}
    drifted = answered(result, made, shifted, log=old)
    assert drifted.verdict == "no claim"
    assert "changed" in drifted.why


@pytest.mark.thorough
def test_no_check_of_new_rows_can_prove_a_past_control(result):
    # What was done before works as well now, so that nothing is gained. New rows cannot show it.
    old = table(400)
    made = surestep.pilot(result, log=old, control="past", episodes=100)
    new = table(150, 8, np.array(["new"] * 150))
    del new["arm"], new["day"]
    right = (new["state"] == "severe") == (new["action"] == "treat")
    assert right.all()  # nobody does what has become better
    assert answered(result, made, new, log=old).verdict == "believed better"


@pytest.mark.thorough
def test_new_rows_beside_a_past_control_are_since_the_plan(result):
    old = table(400)
    made = surestep.pilot(result, log=old, control="past", episodes=100, time="day")
    new = table(60, 8, np.array(["new"] * 60))  # of 2026-02, before the plan
    with pytest.raises(InvalidLog, match="'p0' began before the plan was made"):
        answered(result, made, new, log=old)


@pytest.mark.thorough
def test_a_plan_judges_every_signal_of_the_result(plan, with_signals):
    two = with_signals
    made = surestep.pilot(two, log=table(400), episodes=80)
    fewer = msgspec.structs.replace(made.plan, measures=made.plan.measures[:1], made=MADE)
    with pytest.raises(InvalidParameter, match=r"expected those of the result: reward .*, harm"):
        answered(two, replace(made, plan=fewer), table(60, 3, drawn_arms(60)))


@pytest.mark.thorough
def test_dates_need_a_column_of_times(result):
    old = {name: values for name, values in table(400).items() if name != "day"}
    with pytest.raises(InvalidLog, match="no column says when episodes began"):
        surestep.pilot(result, log=old, deadline=30)
    assert surestep.pilot(result, log=old, deadline=30, time="day").plan.time == "day"


def test_a_plan_of_another_result(result, plan):
    other = improved(ending=(0, 2))
    with pytest.raises(ResultMismatch, match="plan is of another result"):
        answered(other, plan, table(60, 3, drawn_arms(60)))


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"share": 1.0}, "share"),
        ({"share": [("2026-05-01", 0.5), ("2026-04-01", 0.1)]}, "rising dates"),
        ({"share": [("soon", 0.5)]}, "'soon'"),
        ({"delta": 0.0}, "delta"),
        ({"episodes": 1}, "episodes"),
        ({"deadline": -1.0}, "deadline"),
        ({"until": "never"}, "'never'"),
        ({"new": "x", "old": "x"}, "two different names of arms"),
        ({"new": ""}, "new: expected str of length >= 1"),
        ({"arm": ""}, "arm: expected str of length >= 1"),
        ({"until": "1970-01-01"}, "expected until after made"),
        ({"deadline": float("inf")}, "deadline"),
        ({"deadline": float("nan")}, "deadline"),
        ({"share": float("nan")}, "share"),
        ({"delta": 1e-300}, "delta"),
        ({"episodes": 10**20}, "episodes"),
    ],
)
def test_bad_plans_are_refused(result, given, words):
    with pytest.raises(InvalidParameter, match=words):
        surestep.pilot(result, log=table(400), **given)


def test_rows_need_a_plan_and_a_plan_needs_the_log(result, plan):
    rows = table(60, 3, drawn_arms(60))
    with pytest.raises(InvalidParameter, match="expected rows and the plan that"):
        surestep.pilot(result, rows)
    with pytest.raises(InvalidParameter, match="episodes is given"):
        surestep.pilot(result, rows, plan=plan, episodes=5)
    with pytest.raises(InvalidParameter, match="neither here nor beside the result"):
        surestep.pilot(result)


def test_no_episode_at_all_says_nothing(plan):
    empty = np.zeros((1, 0))
    nothing = msgspec.structs.replace(plan.plan, deadline=None)
    from surestep.followup.episodes import Episodes, Measure

    episodes = Episodes(
        measures=(Measure("reward", 0.0, 1.0, 0.0),),
        ids=(),
        starts=None,
        arm=np.array([], str),
        returns=empty,
        lowest=empty,
        highest=empty,
        pending=np.zeros(0, bool),
        followed=np.zeros(0),
    )
    answer = judged(nothing, "", episodes, "2027-01-01")
    assert answer.verdict == "not yet"
    assert (answer.measures[0].lower, answer.measures[0].upper) == (-1, 1)


def with_names(text, names):
    """The file of lots after staff wrote the episodes beside them."""
    head, *lots = text.splitlines()
    return "\n".join([head, *(lot + name for lot, name in zip(lots, names, strict=False))])


@pytest.mark.thorough
def test_lots_show_failures_that_were_left_out(result):
    made = surestep.pilot(result, log=table(400), draw=200, episodes=80)
    assert made.files["lots.csv"] == made.lots.encode()
    assert f'lots_digest = "{lots.read(made.lots)[-1]}"' in made.toml
    arm = drawn_arms(200)
    text = "\n".join(["place,arm,episode", *(f"{e + 1},{arm[e]}," for e in range(200))])
    fixed = msgspec.structs.replace(made.plan, lots_digest=None)
    filled = replace(made, plan=fixed, lots=with_names(text, [f"p{e}" for e in range(200)]))
    rows = table(200, 3, arm, better=False)  # there is no gain
    del rows["day"], rows["arm"]
    assert surestep.pilot(result, rows, plan=filled).answer.verdict == "not yet"
    kept = (rows["reward"] == 1) | (arm == "old") | (np.arange(200) % 10 > 2)
    some = {name: np.asarray(values)[kept] for name, values in rows.items()}
    answer = surestep.pilot(result, some, plan=filled)
    assert answer.answer.verdict == "not yet"
    assert answer.answer.missing == (~kept).sum()
    assert answer.answer.counted == np.argmin(kept)  # without a deadline
    assert "in the order of their lots" in answer.report
    assert "A lot that is left out stops the count" in made.report
    assert "lots without a row: pending" in answer.report
    with pytest.raises(InvalidParameter, match="other arms than were drawn"):
        surestep.pilot(result, rows, plan=replace(made, lots=text))


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"draw": 20}, "20 lots are drawn, expected 80, as planned, to 1,000,000"),
        ({"draw": 10**20}, "100,000,000,000,000,000,000 lots are drawn"),
        ({"draw": 80, "control": "past"}, "concurrent control and one share"),
        ({"draw": 80, "share": [("2026-01-01", 0.5)]}, "concurrent control and one share"),
    ],
)
def test_lots_that_cannot_be_drawn(result, given, words):
    with pytest.raises(InvalidParameter, match=words):
        surestep.pilot(result, log=table(400), episodes=80, **given)


def test_a_green_answer_without_lots_has_a_caution(result, plan):
    arm = drawn_arms(200)
    dated = surestep.pilot(result, table(200, 3, arm), plan=plan, today="2027-01-01")
    assert dated.answer.verdict == "proved better"
    assert dated.answer.order == "starts"
    for words in ("Not tested: whether all episodes", "in the order of their starts"):
        assert words in dated.report
    fixed = msgspec.structs.replace(plan.plan, time=None, deadline=None)
    rows = table(200, 3, arm)
    del rows["day"]
    undated = surestep.pilot(result, rows, plan=replace(plan, plan=fixed))
    assert undated.answer.order == "rows"
    assert "in the order of their starts" not in undated.report
    assert "in the order of the rows, as no column says when they began" in undated.report


@pytest.mark.thorough
def test_another_old_log_has_to_be_called_so_and_the_plan_says_it(result):
    other = table(300, 9)
    for how in ({}, {"control": "past"}):
        with pytest.raises(ResultMismatch, match=r"does not have the counts.*another_log=…"):
            surestep.pilot(result, log=other, **how)
    with pytest.raises(InvalidParameter, match="expected one"):
        surestep.pilot(result, log=table(400), another_log=other)
    made = surestep.pilot(result, another_log=other, control="past", episodes=100)
    assert "The old log is not the one that the result was made from." in made.report
    assert f'another_log = "{made.plan.another_log}"' in made.toml
    new = table(150, 8, np.array(["new"] * 150))
    del new["arm"], new["day"]
    with pytest.raises(ResultMismatch, match="the one that the plan was made with"):
        answered(result, made, new, log=table(400))
    done = surestep.pilot(result, new, plan=made, log=other)
    assert done.answer.verdict == "believed better"
    assert "Not tested: whether all episodes that began since the plan" in done.report
    assert "counts of the old log, not that of the result" in done.report


# ---- the command line ---------------------------------------------------------------------------


def written(path, rows):
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def run(*words):
    return CliRunner().invoke(main, [*map(str, words)])


def test_the_command_line_plans_judges_and_verifies(result, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old = written(tmp_path / "log.csv", table(400))
    made = run("improve", old, "--terminated", "over", "--discount", 0, "--ending", 0, 1,
               "--certificate", "posterior", "--worlds", 0, "-o", "result")  # fmt: skip
    assert made.exit_code == 0, made.output
    planned = run("pilot", "result", "--time", "day", "--share", "2026-01-01=0.5")
    assert planned.exit_code == 0, planned.output
    assert "What to record" in planned.output
    assert run("pilot", "result").exit_code == 2  # a plan is never overwritten
    arm = drawn_arms(200)
    future = (np.datetime64("2030-01-01") + np.arange(200)).astype(str)
    new = written(tmp_path / "new.csv", table(200, 3, arm, day=future))
    beside = run("pilot", "result", new, "--share", 0.3)
    assert (beside.exit_code, "share is given beside new rows" in beside.output) == (2, True)
    answer = run("pilot", "result", new, "--json")
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.output)["verdict"] == "proved better"
    assert (tmp_path / "pilot" / "answer.json").read_text() == answer.output
    assert run("verify", "result", old, "--terminated", "over").exit_code == 2  # no such option
    assert run("verify", "result", old).exit_code == 0
    confirmed = run("verify", "pilot", new)
    assert (confirmed.exit_code, "confirmed" in confirmed.output) == (0, True)
    for output in ("result", "result/pilot"):
        into = run("pilot", "result", new, "--plan", "pilot", "-o", output)
        assert (
            into.exit_code,
            "is in the folder of a result" in " ".join(into.output.split()),
        ) == (2, True)
    assert run("verify", "result", old).exit_code == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "answer.json").write_text("{}")
    refused = run("pilot", "result", new, "-o", "other")
    assert (refused.exit_code, "is not of a pilot" in refused.output) == (2, True)
    assert (tmp_path / "other" / "answer.json").read_text() == "{}"
    page = tmp_path / "pilot" / "pilot.html"
    text = page.read_text()
    page.write_text(text.replace("new policy", "old policy"))
    assert "answer.json comes out otherwise" in run("verify", "pilot", new).output
    page.unlink()
    assert run("verify", "pilot", new).exit_code == 1
    page.write_text(text)
    (tmp_path / "pilot" / "better.html").write_text("Proved")
    added = run("verify", "pilot", new)
    assert (added.exit_code, "expected only files of the pilot" in added.output) == (2, True)
    (tmp_path / "pilot" / "better.html").unlink()
    confirmed = run("verify", "pilot", new)
    assert (confirmed.exit_code, "confirmed" in confirmed.output) == (0, True)
    shorter = written(tmp_path / "shorter.csv", table(150, 3, arm[:150], day=future[:150]))
    assert run("verify", "pilot", shorter).exit_code == 1
    toml = tmp_path / "pilot" / "pilot.toml"
    toml.write_text(toml.read_text().replace("delta = 0.1", "delta = 0.2"))
    refuted = run("verify", "pilot", new)
    assert refuted.exit_code == 1
    with_draw = run("pilot", "result", "--draw", 200, "--episodes", 100, "-o", "drawn")
    assert with_draw.exit_code == 0, with_draw.output
    assert "The lots are drawn: lots.csv" in with_draw.output
    listed = tmp_path / "drawn" / "lots.csv"
    listed.write_text(with_names(listed.read_text(), [f"p{e}" for e in range(200)]))
    judged_by_lots = run("pilot", "result", new, "--plan", "drawn")
    assert judged_by_lots.exit_code < 2, judged_by_lots.output
    assert run("verify", "drawn", new).exit_code == 0
    listed.unlink()
    assert run("verify", "drawn", new).exit_code == 2
    swapped = table(200, 3, arm, day=future) | {"arm": np.where(arm == "new", "old", "new")}
    worse = written(tmp_path / "worse.csv", swapped)
    stopped = run("pilot", "result", worse, "-o", "elsewhere")
    assert stopped.exit_code == 1
    assert "Stop: the new policy is worse" in stopped.output
    assert (tmp_path / "elsewhere" / "answer.html").is_file()


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("delta = ", "not written as TOML"),
        ('made = "2026-01-01"', "digest"),
        ("PLAN\nstakes = 1", "stakes"),
        ("PLAN delta 0.1 two", "not written as TOML"),
    ],
)
def test_damaged_plans(plan, tmp_path, toml, words):
    (tmp_path / "pilot.toml").write_text(toml.replace("PLAN", "episodes = 3"))
    with pytest.raises(InvalidParameter, match=words):
        read_plan(tmp_path)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("key", "wrong", "words"),
    [
        ("low = 0.0", "low = -inf", "numbers of 'reward' within"),
        ("high = 1.0", "high = 1e308", "numbers of 'reward' within"),
        ("high = 1.0", "high = nan", "numbers of 'reward' within"),
        ("middle", "middle = nan #", "numbers of 'reward' within"),
        ("variance", "variance = nan #", "variance"),
        ("variance", "variance = inf #", "numbers of 'reward' within"),
        ("discount = 0.0", "discount = 0.5", "those of the result: reward .discount 0.0"),
        ("margin = 0.0", "margin = 0.5", "without margin and at_most"),
        ("margin = 0.0", "at_most = 0.5", "without margin and at_most"),
        ("episodes = 80", f"episodes = {10**20}", "episodes"),
        ("until", "today = 1 #", "today"),
    ],
)
def test_plans_that_were_edited_wrongly_are_refused(result, tmp_path, key, wrong, words):
    rows = table(60, 3, drawn_arms(60))
    made = surestep.pilot(result, log=table(400), time="day", episodes=80, until="2099-01-01")
    fixed = msgspec.structs.replace(made.plan, made=MADE)
    assert key in toml_of(fixed)
    (tmp_path / "pilot.toml").write_text(toml_of(fixed).replace(key, wrong))
    with pytest.raises(InvalidParameter, match=words):
        surestep.pilot(result, rows, plan=tmp_path, today="2027-01-01")


def test_a_margin_does_not_turn_worse_into_proved(result, plan):
    """The truth is a loss: with a margin as wide as the range, it would pass."""
    arm = drawn_arms(200)
    worse = table(200, 3, arm) | {"arm": np.where(arm == "new", "old", "new")}
    assert answered(result, plan, worse).verdict == "stop: it is worse"
    wide = msgspec.structs.replace(plan.plan.measures[0], margin=1.0)
    with pytest.raises(ValueError, match="without margin"):
        msgspec.structs.replace(plan.plan, measures=[wide])


def test_today_is_not_before_the_plan(result, plan):
    rows = table(60, 3, drawn_arms(60))
    assert answered(result, plan, rows)
    with pytest.raises(InvalidParameter, match="before the plan was made"):
        surestep.pilot(result, rows, plan=plan, today="2025-12-31")


def test_a_plan_keeps_its_range():
    with pytest.raises(msgspec.ValidationError, match="middle between them"):
        msgspec.convert(
            {
                "made": MADE,
                "digest": "",
                "delta": 0.1,
                "episodes": 5,
                "measures": [{"name": "reward", "low": 0, "high": 1, "middle": 2}],
            },
            PilotPlan,
        )
