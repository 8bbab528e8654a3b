"""The whole way round, in a world with a known truth: log, pilot, adoption, drift, alarm, again."""

import csv

import numpy as np
import pytest

import surestep
from surestep.checks import failed

COIN = {"mild": 0.5, "severe": 0.5}  # the chance that something is done
ADVISED = {"mild": 0.1, "severe": 0.9}
BEFORE = {
    ("mild", "wait"): 0.8,
    ("mild", "act"): 0.7,
    ("severe", "wait"): 0.3,
    ("severe", "act"): 0.8,
}
AFTER = BEFORE | {("severe", "act"): 0.1, ("severe", "wait"): 0.6}
ROLES = {"episode": "case", "time": "day", "terminated": "over"}
STAKES = {"discount": 1, "running": (0, 0), "ending": (0, 1), "worlds": 0}
UNTIL = "2031-04-30"


def cases(number, begin, seed, rules, good, first):
    """Rows of cases, ten a day; each draws one of the rules by its arm."""
    rng = np.random.default_rng(seed)
    for case in range(first, first + number):
        arm = str(rng.choice([*rules]))
        over = False
        step = 0
        while not over:
            state = str(rng.choice(["mild", "severe"]))
            action = "act" if rng.random() < rules[arm][state] else "wait"
            over = rng.random() < 0.5
            reward = int(over and rng.random() < good[state, action])
            day = np.datetime64(begin) + (case - first) // 10
            yield [case, step, day, arm, state, action, reward, int(over)]
            step += 1


def write(path, *parts):
    head = ["case", "step", "day", "arm", "state", "action", "reward", "over"]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *(row for part in parts for row in part)])


def worth(chance, good):
    """What a case returns on average, by the chances that something is done."""
    return sum(x * good[s, "act"] + (1 - x) * good[s, "wait"] for s, x in chance.items()) / 2


def chances(result):
    """The chance that a policy acts, by situations."""
    words = result.table.vocabulary
    pairs = result.table.pairs
    rows = zip(pairs.state, pairs.action, result.table.probability, strict=True)
    taken = {(words.states[s][0], words.actions[a][0]): p for s, a, p in rows}
    return {state: taken[state, "act"] for state in COIN}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("round")
    write(folder / "log.csv", cases(600, "2030-10-01", 1, {"old": COIN}, BEFORE, 0))
    arms = {"old": COIN, "new": ADVISED}
    write(folder / "pilot.csv", cases(200, "2031-01-01", 5, arms, BEFORE, 10_000))
    good = [*cases(140, "2031-02-01", 3, {"new": ADVISED}, BEFORE, 20_000)]
    bad = cases(900, "2031-02-15", 4, {"new": ADVISED}, AFTER, 20_140)
    write(folder / "good.csv", good)
    write(folder / "since.csv", good, bad)
    return folder


@pytest.mark.thorough
def test_log_pilot_adoption_drift_alarm_and_a_second_round(files):
    first = surestep.improve(files / "log.csv", columns=ROLES, behavior="uniform", **STAKES)
    assert first.verdict == "proved better"
    assert first.certificate.lower <= worth(chances(first), BEFORE) - worth(COIN, BEFORE)
    plan = surestep.pilot(first, log=files / "log.csv", episodes=200, until=UNTIL)
    judged = surestep.pilot(first, files / "pilot.csv", plan=plan)
    assert judged.answer.verdict == "proved better"
    assert judged.plan.until == UNTIL
    steady = surestep.watch(first, files / "good.csv", log=files / "log.csv")
    assert not steady.alarm
    watched = surestep.watch(first, files / "since.csv", log=files / "log.csv")
    assert watched.alarm
    assert failed(watched.checks)  # so old rows do not stand beside new ones
    day = max(level.alarm.split("(")[1].rstrip(")") for level in watched.levels if level.alarm)
    assert "2031-02-15" < day < "2031-03-15"
    again = surestep.improve(
        files / "since.csv",
        columns=ROLES,
        query=f"SELECT * FROM log WHERE day > '{day}' AND day <= '{UNTIL}'",
        **STAKES,
    )
    assert again.verdict == "proved better"
    gain = worth(chances(again), AFTER) - worth(ADVISED, AFTER)
    assert 0 < again.certificate.lower <= gain
    assert worth(chances(again), AFTER) > worth(COIN, AFTER) > worth(chances(first), AFTER)


@pytest.mark.thorough
def test_old_and_new_rows_together_show_the_drift(files):
    """Who puts both into one log is told: the check of rewards over time fails."""
    both = [str(files / name) for name in ("log.csv", "since.csv")]
    made = surestep.improve(both, columns=ROLES, certificates=["stitched"], **STAKES)
    assert "drift-reward" in [check.code for check in failed(made.record.checks)]
    assert made.verdict != "proved better"


@pytest.mark.thorough
def test_old_rows_may_stand_beside_new_ones_where_nothing_drifted(files):
    both = [str(files / name) for name in ("log.csv", "good.csv")]
    made = surestep.improve(both, columns=ROLES, certificates=["stitched"], **STAKES)
    assert "drift-reward" not in [check.code for check in failed(made.record.checks)]
    assert chances(made)["severe"] > 0.5


@pytest.mark.thorough
def test_rows_are_chosen_by_the_start_of_their_case(files):
    """A case that began before the day counts whole, or not at all."""
    query = (
        'SELECT * FROM (SELECT *, first_value(day) OVER (PARTITION BY "case" ORDER BY step) AS '
        "began FROM log) WHERE began > '2031-02-27' AND began <= '2031-04-30'"
    )
    rows = surestep.improve(
        files / "since.csv", columns=ROLES, query=query, certificates=["stitched"], **STAKES
    )
    assert rows.table.visits.sum() > 0
