"""`surestep describe` on logs in the shape of well known public ones: which roles it finds."""

import tomllib

import pytest

from support.pump_commands import run_surestep, write_lines

CASES, STEPS = 60, 4
SIZE = CASES * STEPS


def table(header, row):
    """Returns the lines of a log; a row is made of its number, its case and its step."""
    return [header, *(row(i, i // STEPS, i % STEPS) for i in range(SIZE))]


def xes():
    """Returns the lines of an event log whose traces have different lengths."""
    lines = ["<log>"]
    for case in range(CASES):
        lines.append(f'<trace><string key="concept:name" value="173{case}"/>')
        lines.append(f'<string key="LoanGoal" value="{["car", "home"][case % 2]}"/>')
        lines += [
            f'<event><string key="org:resource" value="User_{(case + step) % 7}"/>'
            f'<string key="concept:name" value="{["create", "call", "offer"][step % 3]}"/>'
            f'<date key="time:timestamp" value="2016-01-{1 + step:02d}T10:00:00Z"/>'
            '<string key="lifecycle:transition" value="complete"/></event>'
            for step in range(2 + case % 4)
        ]
        lines.append("</trace>")
    return [*lines, "</log>"]


# The lines of a log, its ending, and the columns of some roles; None: no column has that role.
SHAPES = {
    "BPI challenge, XES": (
        xes(),
        "xes",
        {
            "episode": "episode",
            "action": "concept:name",
            "state": ["case:LoanGoal", "org:resource"],
        },
    ),
    "event log, CSV": (
        table(
            "case:concept:name,concept:name,time:timestamp,org:resource,case:LoanGoal",
            lambda i, e, s: (
                f"Application_{e},{['create', 'call', 'offer'][i % 3]},"
                f"2016-01-{1 + s:02d} 10:00:00+00:00,User_{i % 7},{['car', 'home'][e % 2]}"
            ),
        ),
        "csv",
        {"episode": "case:concept:name", "action": "concept:name", "step": "time:timestamp"},
    ),
    "event log of a helpdesk": (
        table(
            "Case ID,Activity,Complete Timestamp,Resource,last_event",
            lambda i, e, s: (
                f"Case {e},{['assign', 'wait', 'close'][i % 3]},"
                f"2012-10-{1 + s:02d} 15:00:00,{'ab'[i % 2]},{s == STEPS - 1}"
            ),
        ),
        "csv",
        {"episode": "Case ID", "action": "Activity", "state": "Resource"},
    ),
    "intensive care, every 4 hours": (
        table(
            "stay,hours,lactate,pressure,vasopressor_dose,died",
            lambda i, e, s: (
                f"{3000 + 7 * e},{4 * s},{i % 11 / 3:.2f},{60 + i % 17},{i % 3},{int(e % 9 == 0)}"
            ),
        ),
        "csv",
        {"episode": "stay", "step": "hours", "action": "vasopressor_dose"},
    ),
    "intensive care, charts": (
        table(
            "subject_id,hadm_id,icustay_id,charttime,gcs,sofa,treatment,reward",
            lambda i, e, s: (
                f"{e // 2},{500 + e // 2},{900 + e},2150-03-{1 + s:02d} 04:00:00,"
                f"{3 + i % 12},{i % 9},{i % 5},{int(s == 3)}"
            ),
        ),
        "csv",
        {"episode": "icustay_id", "action": "treatment"},
    ),
    "bandit feedback": (
        table(
            ",timestamp,item_id,position,click,propensity_score,user_feature_0",
            lambda i, e, s: (
                f"{i},2019-11-24 00:00:{i % 60:02d}.{i:06d}+00:00,{i % 80},{1 + i % 3},"
                f"{int(i % 20 == 0)},0.0125,{'xyz'[i % 3]}"
            ),
        ),
        "csv",
        {"episode": None, "action": "item_id", "state": ["position", "user_feature_0"]},
    ),
    "uplift of a campaign": (
        table(
            "f0,f1,treatment,conversion,visit,exposure",
            lambda i, e, s: (
                f"{i % 13 / 7:.4f},{i % 5},{int(i % 7 > 0)},{int(i % 50 == 0)},"
                f"{int(i % 9 == 0)},{i % 2}"
            ),
        ),
        "csv",
        {"action": "treatment"},
    ),
    "offline reinforcement learning": (
        table(
            "episode_id,timestep,observations,actions,rewards,terminals,timeouts",
            lambda i, e, s: f"{e},{s},cell {i % 6},{i % 4},{i % 3},{int(s == 3)},0",
        ),
        "csv",
        {"terminated": "terminals"},
    ),
    "a table of pandas": (
        table(
            ",customer_id,week,segment,offer,spend",
            lambda i, e, s: f"{i},{e},{s},{'abc'[i % 3]},{'xy'[i % 2]},{i % 50}.5",
        ),
        "csv",
        {"episode": "customer_id", "step": "week", "state": "segment"},
    ),
    "an inventory": (
        table(
            "Unnamed: 0,store,day,stock,order,profit",
            lambda i, e, s: f"{i},{e % 3},{i // 3},{i % 12},{i % 4},{i % 23 - 5}",
        ),
        "csv",
        {"episode": None, "reward": "profit", "state": ["store", "day", "stock", "order"]},
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_roles_of_public_logs_are_found(shape, tmp_path):
    """Of these 25 roles, names and repeated values alone found 13."""
    lines, ending, wanted = SHAPES[shape]
    told = run_surestep("describe", write_lines(tmp_path / f"log.{ending}", lines))
    assert told.exit_code == 0, told.output
    columns = tomllib.loads((tmp_path / "log.toml").read_text("utf-8"))["columns"]
    assert {role: columns.get(role) for role in wanted} == wanted


@pytest.mark.thorough
def test_equal_gaps_between_steps_are_divided_away(tmp_path):
    lines, _, _ = SHAPES["intensive care, every 4 hours"]
    log = write_lines(tmp_path / "log.csv", lines)
    given = ("--reward", "died", "--ends", "complete")
    refused = run_surestep("count", log, "--episode", "stay", "--step", "hours", "--state",
                           "pressure", "--action", "vasopressor_dose", *given, "-o",
                           tmp_path / "raw.counts")  # fmt: skip
    assert refused.exit_code == 2
    assert "step 0 is followed by step 4" in refused.stderr
    assert f"step // 4); {CASES * (STEPS - 1)} rows are affected" in " ".join(
        refused.stderr.split()
    )
    assert run_surestep("describe", log).exit_code == 0
    file = tmp_path / "log.toml"
    query = tomllib.loads(file.read_text("utf-8"))["query"]
    assert query == 'SELECT * REPLACE ("hours" // 4 AS "hours") FROM log'
    told = run_surestep("count", file, *given, "-o", tmp_path / "log.counts")
    assert told.exit_code == 0, told.output
