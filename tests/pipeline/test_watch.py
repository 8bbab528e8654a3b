"""Watching: three questions about an adopted policy, in worlds whose truth is known."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import surestep
from surestep._words import number
from surestep.errors import InvalidLog, InvalidParameter, ResultMismatch
from surestep.followup.watching import detect, lowest_season
from surestep.offpolicy import betting
from surestep.pipeline.followup import drifted
from surestep.report.followup import goodness

GOOD = {("mild", "wait"): 0.8, ("mild", "treat"): 0.6, ("severe", "wait"): 0.2}
BEFORE = GOOD | {("severe", "treat"): 0.7}
AFTER = GOOD | {("severe", "treat"): 0.05}
TEST_LEVEL = 1e-3  # the chance that a simulation below fails although the promise holds


def log(seed, sizes, advised, first=0, held=None):
    """Episodes of two steps on average; what helps is as in `BEFORE`, then as in `AFTER`."""
    rng = np.random.default_rng(seed)
    names = ("case", "step", "day", "state", "action", "reward", "over", "chance", "arm")
    rows = {name: [] for name in names}
    for e in range(sum(sizes)):
        arm = "before" if held is not None and rng.random() < held else "new"
        for step in itertools.count():
            state = ("mild", "severe")[rng.integers(2)]
            treat = advised if arm == "new" else {"mild": 0.5, "severe": 0.5}
            chance = treat[state]
            action = "treat" if rng.random() < chance else "wait"
            over = rng.random() < 0.5
            good = (BEFORE if e < sizes[0] else AFTER)[state, action]
            reward = float(over and rng.random() < good)
            taken = chance if action == "treat" else 1 - chance
            day = str(np.datetime64("2027-01-01" if first else "2026-01-01") + e // 4)
            values = (first + e, step, day, state, action, reward, int(over), taken, arm)
            for name, value in zip(names, values, strict=True):
                rows[name].append(value)
            if over:
                break
    return rows


COIN = {"mild": 0.5, "severe": 0.5}
ADVICE = {"mild": 0.0, "severe": 1.0}
OLD = log(1, (600,), COIN)
PROOF = {"worlds": 0, "certificates": ["stitched"]}  # watching needs neither a test nor a belief
ROLES = {"episode": "case", "time": "day", "terminated": "over", "propensity": "chance"}


@pytest.fixture(scope="module")
def result():
    terms = {"discount": 1, "running": (0, 0), "ending": (0, 1), **PROOF}
    return surestep.improve(OLD, columns=ROLES, **terms)


def part(table, rows):
    """The first rows of a table."""
    return {name: values[:rows] for name, values in table.items()}


def test_the_world_is_as_planned(result):
    assert result.verdict == "proved better"
    assert result.act("severe", rng=0) == "treat"
    assert result.act("mild", rng=0) == "wait"


def test_nothing_happens_where_nothing_changed(result):
    watched = surestep.watch(result, log(2, (500,), ADVICE, 1_000), log=OLD)
    assert not watched.alarm
    assert watched.known == 500
    assert [rate.share for rate in watched.followed.values()] == [1, 1]
    assert "failed" not in [check.outcome for check in watched.checks]
    assert "No alarm after 500 episodes" in watched.report
    assert [*goodness(watched).pictures[0].curves] == ["as recorded"]  # no clock cut any


def test_a_fall_is_found_and_dated(result):
    watched = surestep.watch(result, log(3, (200, 300), ADVICE, 1_000), log=OLD)
    assert watched.alarm
    proved, former = watched.levels
    assert proved.value > former.value
    assert 200 <= proved.place < 320
    assert proved.alarm.startswith(f"{1_000 + proved.place} (2027-")
    assert 1_150 <= int(proved.since.split()[0]) <= 1_000 + proved.place
    assert watched.checks[1].outcome == "failed"  # what steps earn
    assert "Alarm: the new policy is no longer as good" in watched.report


def test_levels_are_lower_bounds_of_the_truth(result):
    """The policy returns .75, the coin .575; both levels hold, and come from what they say."""
    proved, former = surestep.watch(result, log(2, (9,), ADVICE, 1_000), log=OLD).levels
    starts = np.flatnonzero(np.array(OLD["step"]) == 0)
    returns = np.add.reduceat(OLD["reward"], starts)
    assert former.value == pytest.approx(betting(returns, 0.0, 0.1), abs=1e-12)
    assert former.value < 0.575
    assert proved.value == pytest.approx(former.value + result.certificate.lower)
    assert proved.value < 0.75
    assert (proved.delta, former.delta) == (0.2, 0.1)


@pytest.mark.thorough
def test_an_estimated_policy_has_no_proved_level_of_its_own():
    """The gain over an estimate of practice is none over practice: no level follows from it."""
    table = {name: values for name, values in OLD.items() if name != "chance"}
    roles = {name: column for name, column in ROLES.items() if name != "propensity"}
    terms = {"discount": 1, "running": (0, 0), "ending": (0, 1), **PROOF}
    made = surestep.improve(table, columns=roles, **terms)
    new = {name: values for name, values in log(2, (9,), ADVICE, 1_000).items() if name != "chance"}
    proved, former = surestep.watch(made, new, log=table).levels
    if "policy_lower" in made.certificate.figures:
        assert proved.value == made.certificate.figures["policy_lower"]
    else:
        assert proved.value is None
    assert former.value is not None


def test_without_the_old_log_there_is_no_level_and_no_alarm(result):
    watched = surestep.watch(result, log(3, (0, 300), ADVICE, 1_000))
    assert not watched.alarm
    assert watched.checks is None
    assert [level.value for level in watched.levels] == [None, None]
    assert "Not watched: there is no level to compare with" in watched.report
    assert "Not tested: the old log is not there" in watched.report


@pytest.mark.thorough
def test_a_holdout_needs_no_level_and_no_old_log(result):
    falls = log(4, (400, 2_200), ADVICE, 1_000, held=0.4)
    watched = surestep.watch(result, falls, holdout=("arm", "before"))
    gain, none = watched.levels
    assert gain.value == result.certificate.lower
    assert none.value == 0
    assert watched.alarm
    assert gain.place >= 400
    assert sum(rate.total for rate in watched.followed.values()) < len(falls["case"])
    steady = log(5, (1_600,), ADVICE, 1_000, held=0.25)
    assert not surestep.watch(result, steady, holdout=("arm", "before")).alarm


def cases(number, seed, harm):
    """One decision a case: to treat pays 0.9 in place of 0.1, and harms with a chance."""
    rng = np.random.default_rng(seed)
    treat = rng.random(number) < (0.5 if seed == 1 else 1)
    table = {"episode": np.arange(number), "step": np.zeros(number, int), "over": np.ones(number)}
    table |= {"state": np.full(number, "ill"), "action": np.where(treat, "treat", "wait")}
    table["reward"] = (rng.random(number) < np.where(treat, 0.9, 0.1)).astype(float)
    return table | {"harm": (rng.random(number) < harm).astype(float)}


def test_exchanged_dates_are_another_log():
    old = cases(500, 1, 0.0)
    days = (np.datetime64("2025-01-01") + np.arange(500)).astype(str)
    roles = {"terminated": "over", "time": "day"}
    result = surestep.improve(
        old | {"day": days}, columns=roles, discount=0, ending=(0, 1), **PROOF
    )
    later = (np.datetime64("2027-01-01") + np.arange(300)).astype(str)
    new = cases(300, 2, 0.0) | {"day": later}
    order = np.random.default_rng(0).permutation(500)
    same = {name: column[order] for name, column in (old | {"day": days}).items()}
    assert not surestep.watch(result, new, log=same).alarm  # the order of rows is nothing
    with pytest.raises(ResultMismatch, match="has other times or further signals than those"):
        surestep.watch(result, new, log=old | {"day": days[order]})


@pytest.mark.thorough
def test_limits_of_further_signals_are_watched():
    signals = {
        "reward": {"column": "reward", "ending": (0, 1)},
        "harm": {"column": "harm", "ending": (0, 1), "cost": True, "not_worse_by": 0.1},
    }
    old = cases(500, 1, 0.2)
    roles = {"terminated": "over"}
    result = surestep.improve(old, columns=roles, discount=0, signals=signals, **PROOF)
    quiet = surestep.watch(result, cases(300, 2, 0.2), log=old)
    assert not quiet.alarm
    # With ill harm of all, whose counts of states, actions and rewards are the same: a lower limit.
    with pytest.raises(ResultMismatch, match=r"other times or further signals.*another_log=…"):
        surestep.watch(result, cases(300, 2, 0.2), log=old | {"harm": np.ones(500)})
    bound = lowest_season(-old["harm"], 1, -1.0, 0.1) - 0.1
    assert quiet.levels[2].name == "the limit of harm"
    assert quiet.levels[2].value == pytest.approx(bound, abs=1e-12)
    assert bound < -old["harm"].mean() - 0.1  # what was seen, and the margin
    loud = surestep.watch(result, cases(300, 3, 0.7), log=old)
    assert [level.alarm is not None for level in loud.levels] == [False, False, True]
    assert "It breaks a limit: go back" in loud.report
    levels = [level.value for level in loud.levels]
    seen = detect(-cases(300, 3, 0.7)["harm"], levels[2], 0.0, within=3_000, alpha=0.05)
    assert loud.levels[2].alarm == str(seen.alarm)  # a third of α is its part
    without = surestep.watch(result, cases(300, 3, 0.7))
    assert [level.value for level in without.levels[1:]] == [None, None]
    held = cases(600, 2, 0.2) | {"arm": np.resize(["new", "before"], 600)}
    beside = surestep.watch(result, held, holdout=("arm", "before"))
    assert (beside.levels[2].value, beside.levels[2].alarm) == (-0.1, None)
    held["harm"] = np.where(held["arm"] == "new", 1.0, 0.0)
    assert surestep.watch(result, held, holdout=("arm", "before")).levels[2].alarm is not None
    with pytest.raises(InvalidLog, match=r"returned 0\.5 of harm, expected at most 0"):
        surestep.watch(result, old | {"harm": np.full(500, -0.5)})


@pytest.mark.thorough
def test_a_limit_on_a_chance_is_its_own_level():
    told = {"states": "state = 'ill'", "at_most": 0.4}
    old = cases(500, 1, 0) | {"state": np.resize(["ill", "well", "well"], 500)}
    how = {"columns": {"terminated": "over"}, "discount": 0, "ending": (0, 1), **PROOF}
    result = surestep.improve(old, unsafe=told, **how)
    new = cases(300, 2, 0) | {"state": np.resize(["ill", "well", "well"], 300)}
    quiet = surestep.watch(result, new)
    assert (quiet.alarm, quiet.levels[2].value, quiet.levels[2].delta) == (False, -0.4, 0.0)
    worse = surestep.watch(result, cases(300, 2, 0))
    assert worse.levels[2].alarm is not None
    new["arm"] = np.resize(["new", "new", "before"], 300)
    new["state"] = np.where(new["arm"] == "before", "ill", "well")  # the holdout does not count
    assert surestep.watch(result, new, holdout=("arm", "before")).levels[2].alarm is None
    never = surestep.improve(old, unsafe=told | {"at_most": 0}, **how)
    quiet = surestep.watch(never, cases(300, 2, 0) | {"state": ["well"] * 300})
    assert (quiet.alarm, quiet.levels[2].value) == (False, 0.0)
    assert "Not tested: the limit" not in quiet.report
    broken = cases(300, 2, 0) | {"state": ["well"] * 100 + ["ill"] + ["well"] * 199}
    assert surestep.watch(never, broken).levels[2].alarm == "100"  # once is too often


def test_seasons_take_the_lowest_part_of_the_old_log(result):
    new = log(2, (50,), ADVICE, 1_000)
    one, four = (surestep.watch(result, new, log=OLD, seasons=k).levels for k in (1, 4))
    assert four[1].value < one[1].value
    assert four[0].value is None  # what was proved, was proved of all seasons together
    starts = np.flatnonzero(np.array(OLD["step"]) == 0)
    returns = np.add.reduceat(OLD["reward"], starts)
    assert four[1].value == pytest.approx(lowest_season(returns, 4, 0.0, 0.1), abs=1e-12)


def test_the_first_pending_episode_stops_the_count(result):
    new = log(3, (200, 300), ADVICE, 1_000)
    new["open"] = [int(case == 1_100) for case in new["case"]]
    watched = surestep.watch(result, new, log=OLD, pending="open")
    assert (watched.known, watched.alarm) == (100, False)
    assert "the outcome of 1100 (2027-01-26) is pending" in watched.report


@pytest.mark.thorough
def test_rows_may_come_in_any_order(result):
    new = log(3, (200, 300), ADVICE, 1_000)
    mixed = np.random.default_rng(0).permutation(len(new["case"]))
    shuffled = {name: [values[i] for i in mixed] for name, values in new.items()}
    ours, theirs = (surestep.watch(result, one, log=OLD) for one in (new, shuffled))
    days = [
        {level.alarm.split()[1] for level in one.levels if level.alarm} for one in (ours, theirs)
    ]
    assert ours.alarm
    assert theirs.alarm
    assert all(days)


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 5)
@given(seed=st.integers(0, 50), cut=st.integers(20, 300))
def test_a_longer_file_goes_on_to_the_same_answer(result, seed, cut):
    new = log(seed, (100, 200), ADVICE, 1_000)
    rows = int(np.searchsorted(new["case"], 1_000 + cut))
    whole, first = (surestep.watch(result, one, log=OLD) for one in (new, part(new, rows)))
    assert (whole.values[: first.known] == first.values).all()
    for ours, theirs in zip(first.levels, whole.levels, strict=True):
        if ours.alarm:
            assert ours[-3:] == theirs[-3:]
        elif theirs.alarm:
            assert theirs.place >= first.known


def test_how_far_it_is_followed_has_an_interval(result):
    watched = surestep.watch(result, log(6, (300,), {"mild": 0.1, "severe": 0.6}, 1_000), log=OLD)
    rates = watched.followed
    assert [*rates] == [("severe",), ("mild",)]  # the least followed first
    assert rates["severe",].low < 0.6 < rates["severe",].high
    assert rates["mild",].low < 0.9 < rates["mild",].high


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("taken", "followed", "words"),
    [
        (COIN, False, "ot followed: hardly more than before"),
        ({"mild": 0.45, "severe": 0.55}, False, "ot followed: hardly more than before"),
        (
            {"mild": 0.0, "severe": 0.5},
            True,
            "In 1 of 2 situations decisions are hardly more often",
        ),
        ({"mild": 0.2, "severe": 0.8}, True, "No alarm after 400 episodes"),
        (ADVICE, True, "No alarm after 400 episodes"),
    ],
)
def test_a_policy_that_nobody_follows_is_not_called_fine(result, taken, followed, words):
    """By the coin as before, a tenth of the way, in one situation alone, mostly, and always."""
    watched = surestep.watch(result, log(6, (400,), taken, 1_000), log=OLD)
    assert watched.is_followed == followed
    assert words in watched.report
    assert ("ot followed" in watched.report) == (not followed)
    assert ("hardly more often" in watched.report) == (taken["severe"] < 0.8)
    assert [*watched.before.values()] == [0.5, 0.5]
    assert watched.content()["is_followed"] == followed


@pytest.mark.thorough
def test_an_alarm_without_followers_is_no_word_against_the_new_policy(result):
    """The coin returns less than was proved of the new policy, which nobody follows."""
    watched = surestep.watch(result, log(3, (400,), COIN, 1_000), log=OLD)
    assert watched.alarm
    assert "Alarm, and not followed: hardly more than before" in watched.report
    assert "no longer as good" not in watched.report
    few = surestep.watch(result, log(3, (100,), COIN, 1_000), log=OLD)
    assert not few.alarm
    assert "Not followed: hardly more than before" in few.report


@pytest.mark.thorough
def test_episodes_that_a_clock_cut_are_drawn_as_recorded():
    """Three steps of six earn 1 each; the rest may be worth up to 10 more, or nothing."""
    rng = np.random.default_rng(5)

    def rows(first, day, episodes):
        case = np.repeat(np.arange(first, first + episodes), 3)
        return {
            "case": case.tolist(),
            "step": np.tile([0, 1, 2], episodes).tolist(),
            "day": [str(np.datetime64(day) + int(e - first) // 9) for e in case],
            "state": rng.choice(["mild", "severe"], case.size).tolist(),
            "action": rng.choice(["treat", "wait"], case.size).tolist(),
            "reward": [1.0] * case.size,
            "over": [0] * case.size,
            "cut": np.tile([0, 0, 1], episodes).tolist(),
        }

    old = rows(0, "2026-01-01", 300)
    roles = {"episode": "case", "time": "day", "terminated": "over", "truncated": "cut"}
    terms = {"discount": 0.9, "running": (0, 1), "ending": (0, 1), **PROOF}
    watched = surestep.watch(
        surestep.improve(old, columns=roles, **terms), rows(1_000, "2027-01-01", 100), log=old
    )
    earned, rest = 1 + 0.9 + 0.81, 0.9**3 / (1 - 0.9)
    assert watched.recorded == pytest.approx(earned)
    assert watched.values == pytest.approx(earned + rest)
    content = watched.content()
    assert (content["mean"], content["mean_at_best"]) == pytest.approx((earned, earned + rest))
    level = watched.levels[1].value
    assert level < earned
    assert "100 % of these returns are of episodes that a clock cut" in plain(watched.report)
    words = f"2.71 on average, must fall below {number(level - rest, 3)} (the level of former"
    assert words in plain(watched.report)
    curves = goodness(watched).pictures[0].curves
    assert {name: value for name, line in curves.items() for _, value in line} == pytest.approx(
        {"as recorded": earned, "at best": earned + rest}
    )
    assert "while those of the old log or a holdout count at worst" in plain(watched.report)


def plain(page):
    """A page with usual spaces."""
    return " ".join(page.replace("\u202f", " ").split())


def test_rows_of_the_old_log_among_the_new_ones_are_refused(result):
    new = log(2, (50,), ADVICE, 1_000)
    both = {name: [*OLD[name], *values] for name, values in new.items()}
    with pytest.raises(
        InvalidLog, match="episode '0' began before the old log ended; expected rows"
    ):
        surestep.watch(result, both, log=OLD)


def test_what_the_policy_does_not_know_is_counted(result):
    new = log(2, (50,), ADVICE, 1_000)
    new["action"][3] = "surgery"
    new["state"][5] = "unheard-of"
    assert surestep.watch(result, new, log=OLD).unknown == 2


def test_the_answer_as_json_has_all_but_the_page(result):
    content = surestep.watch(result, log(3, (200, 300), ADVICE, 1_000), log=OLD).content()
    assert content["alarm"] is True
    assert content["levels"][0]["name"] == "the level proved of the new policy"
    assert {"share", "low", "high", "state"} <= {*content["followed"][0]}
    assert [check["code"] for check in content["drift"]] == ["drift-next-state", "drift-reward"]


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"within": 0}, InvalidParameter, "within is 0, expected a whole number of 1 or more"),
        ({"alpha": 0}, InvalidParameter, "alpha is 0, expected a number above 0 and below 1"),
        ({"alpha": 2.5}, InvalidParameter, "alpha is 2.5, expected a number above 0"),
        ({"seasons": 0}, InvalidParameter, "seasons is 0, expected 1 to 600, the episodes of"),
        ({"seasons": 900}, InvalidParameter, "seasons is 900, expected 1 to 600"),
        ({"holdout": ("arms", "before")}, InvalidLog, "there is no column 'arms'"),
        ({"holdout": ("arm", "old")}, InvalidLog, "column 'arm' is 'old' in no episode"),
        ({"holdout": ("arm", "new")}, InvalidLog, "column 'arm' is 'new' in every episode"),
        ({"pending": "opens"}, InvalidLog, "there is no column 'opens'"),
    ],
)
def test_what_cannot_be_is_refused(result, how, error, words):
    with pytest.raises(error, match=words):
        surestep.watch(result, log(2, (50,), ADVICE, 1_000), **{"log": OLD} | how)


@pytest.mark.thorough
def test_a_return_above_the_declared_range_is_refused_one_below_is_not(result):
    new = log(2, (50,), ADVICE, 1_000)
    last = [i for i, over in enumerate(new["over"]) if over]
    new["reward"][last[7]] = -40.0  # a disaster that nobody declared is what a watch is for
    assert surestep.watch(result, new, log=OLD).values.min() == -40
    new["reward"][last[8]] = 3.0
    with pytest.raises(InvalidLog, match="episode '1008' returned 3, expected at most 1, as was"):
        surestep.watch(result, new, log=OLD)


def one_step_log(rng, size, chance):
    """Rows of one step in one of two situations, by two actions; what they earn has a chance."""
    state = rng.integers(2, size=size)
    action = rng.integers(2, size=size)
    return surestep.DecisionLog(
        surestep.Pairs.full(3, 2),
        state=state,
        action=action,
        reward=(rng.random(size) < chance).astype(float),
        next_state=np.full(size, 2),
        terminated=np.ones(size, bool),
        truncated=np.zeros(size, bool),
        episode_offsets=np.arange(size + 1),
    )


@pytest.mark.thorough
def test_a_change_of_rewards_is_told_from_luck():
    """40 pairs of logs each: without a change none fails but in 1 of 200, with one nearly all."""
    rng = np.random.default_rng(8)
    old, same, other = ([one_step_log(rng, 400, x) for _ in range(40)] for x in (0.5, 0.5, 0.75))
    alike, changed = (
        sum(drifted(*logs)[1].outcome == "failed" for logs in zip(old, new, strict=True))
        for new in (same, other)
    )
    assert alike <= binom.ppf(1 - TEST_LEVEL, 40, 0.005)
    assert changed >= 36


def test_where_nothing_counts_yet_nothing_is_said(result):
    new = log(2, (30,), ADVICE, 1_000)
    new["open"] = [1] * len(new["case"])
    watched = surestep.watch(result, new, log=OLD, pending="open")
    assert (watched.known, watched.alarm, watched.content()["mean"]) == (0, False, None)
    assert "No alarm after 0 episodes" in watched.report


def test_a_disaster_of_the_holdout_beyond_all_bounds_is_no_crash(result):
    new = log(5, (200,), ADVICE, 1_000, held=0.3)
    first = next(
        i for i, arm in enumerate(new["arm"]) if arm == "before" and new["over"][i] and i > 9
    )
    new["reward"][first] = -40.0
    watched = surestep.watch(result, new, holdout=("arm", "before"))
    assert watched.values.max() <= 1
    assert not watched.alarm


def test_false_alarms_of_the_whole_verb_are_as_rare_as_promised():
    """Old log, level and new rows drawn anew: wrong in α + δ at most; the test errs in 1 of 1,000.

    By the level of former practice alone, of a policy that is as good as former practice.
    """
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(200):
        old, new = rng.binomial(1, 0.6, (2, 300)).astype(float)
        level = lowest_season(old, 1, 0.0, 0.1)
        wrong += detect(new, level, 1.0, within=300, alpha=0.05).alarm is not None
    assert wrong <= binom.ppf(1 - TEST_LEVEL, 200, 0.15)


@pytest.mark.slow  # forty results
def test_false_alarms_with_levels_that_were_proved():
    """The whole way with fresh logs, and a policy that is followed: wrong in α and 2 δ at most."""
    wrong = levels_wrong = 0
    for seed in range(40):
        old = log(100 + seed, (300,), COIN)
        made = surestep.improve(
            old,
            columns=ROLES,
            discount=1,
            running=(0, 0),
            ending=(0, 1),
            certificates=["stitched"],
            rules=0,
            worlds=0,
        )
        words = made.table.vocabulary
        pairs = made.table.pairs
        rows = zip(pairs.state, pairs.action, made.table.probability, strict=True)
        taken = {(words.states[s][0], words.actions[a][0]): float(p) for s, a, p in rows}
        advice = {state: taken[state, "treat"] for state in COIN}
        value = (
            sum(x * BEFORE[s, "treat"] + (1 - x) * BEFORE[s, "wait"] for s, x in advice.items()) / 2
        )
        watched = surestep.watch(made, log(500 + seed, (300,), advice, 1_000), log=old, within=300)
        wrong += watched.alarm
        proved, former = (level.value or 0.0 for level in watched.levels)
        levels_wrong += proved > value or former > 0.575
    assert levels_wrong <= binom.ppf(1 - TEST_LEVEL, 40, 0.2)
    assert wrong <= binom.ppf(1 - TEST_LEVEL, 40, 0.25)
