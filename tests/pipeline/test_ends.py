"""How episodes end is said, and not guessed: which last rows count, and which claims then prove.

Claims that may fail with probability δ = 10 % are made of 200 logs each. One that fails exactly so
often would have more failures than are allowed once in 100 such tests; one that fails in 20 % of
logs has more in 95 % of them. Seeds are fixed.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

import surestep
from support.log_tables import table_of
from support.problems import logged_problem
from support.pump_commands import run_surestep
from surestep import DecisionLog, FiniteMDP, Policy, certify, performance, read_log
from surestep.certificates import Robust, Stitched
from surestep.certificates.certifying import certify_many
from surestep.certificates.stitched import may_have_tails
from surestep.checks.words import asked, forbids_proof
from surestep.errors import InvalidLog
from surestep.io.counts.file import write_counts
from surestep.io.logs.loading import RANDOM, STOPPED, UNEXPLAINED, UNFINISHED
from surestep.model.log import UNKNOWN
from surestep.pipeline import verify_result
from surestep.pipeline.inspect import inspect
from surestep.pipeline.rehearse import rehearse_log
from surestep.results.findings import is_proved
from surestep.sampling import sample_log

LOGS = 200


def allowed(number):
    """The claims that may be wrong; more are once in 100 tests of claims wrong in 10 %."""
    return scipy.stats.binom.ppf(0.99, number, 0.1)


# At work a machine earns 0.1 a day with care, 0.5 without; without, it may break, which costs 1 and
# ends the episode. After one day in three it rests for another.
WORK, REST, END = range(3)
CARE, HURRY = range(2)


def machine(chance=0.4):
    """The model, what is done (either way, at random), and what earns more if nothing breaks."""
    P, R = np.zeros((3, 2, 3)), np.zeros((3, 2, 3))
    P[WORK, :, WORK], P[WORK, :, REST], P[REST, :, WORK] = 2 / 3, 1 / 3, 1.0
    P[WORK, HURRY] *= 1 - chance
    P[WORK, HURRY, END] = chance
    R[WORK, CARE], R[WORK, HURRY], R[WORK, HURRY, END] = 0.1, 0.5, -1.0
    mdp = FiniteMDP.from_dense(P, R, 0.5, initial=[1.0, 0.0, 0.0])
    return mdp, Policy.uniform(mdp), Policy.deterministic(mdp.pairs, [HURRY, 0, 0])


def recorded(seed, episodes=150, days=8):
    """The log of a clock that stops after so many days."""
    mdp, behavior, _ = machine()
    return sample_log(mdp, behavior, episodes, days, np.random.default_rng(seed))


def problem_of(log):
    """The problem of a log, with the ranges that its owner knows."""
    return logged_problem(log, 0.5, (-1.0, 1.0))


def with_unknown(log, rows):
    """The log in which nobody knows of some last rows [N] where they led, nor why they are last."""
    return replace(
        log,
        next_state=np.where(rows, UNKNOWN, log.next_state),
        terminated=log.terminated & ~rows,
        truncated=log.truncated & ~rows,
    )


def failures(logs):
    """In how many logs more is claimed of hurrying than it gains, which is a loss."""
    mdp, behavior, hurried = machine()
    truth = performance(mdp, hurried) - performance(mdp, behavior)
    assert truth < -0.1
    problems = [problem_of(log) for log in logs]
    claims = certify_many(problems, [hurried] * len(logs), Stitched())
    return sum(claim.lower > truth for claim in claims), sum(claim.lower > 0 for claim in claims)


@pytest.mark.thorough
def test_where_all_that_breaks_is_left_out_a_loss_is_proved_a_gain():
    lost = [log.rows(~log.terminated) for log in (recorded(seed, 300) for seed in range(12))]
    assert failures(lost) == (12, 12)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("share", "number"),
    [(1.0, 80), *(pytest.param(share, LOGS, marks=pytest.mark.slow) for share in (1.0, 0.5))],
)
def test_ends_that_nobody_recorded_break_no_claim(share, number):
    logs = []
    for seed in range(number):
        log, rng = recorded(seed), np.random.default_rng(seed)
        logs.append(with_unknown(log, log.terminated & (rng.random(log.num_steps) < share)))
    wrong, better = failures(logs)
    assert wrong <= allowed(number)
    assert better == 0


@pytest.mark.thorough
@pytest.mark.parametrize("number", [80, pytest.param(LOGS, marks=pytest.mark.slow)])
def test_a_recording_that_stops_for_what_comes_next_breaks_no_claim(number):
    # On a day of rest nobody writes anything, and so the row before it is often the last one.
    logs = []
    for seed in range(number):
        log, rng = recorded(seed), np.random.default_rng(seed)
        stops = (log.next_state == REST) & (rng.random(log.num_steps) < 0.3)
        stops |= log.terminated & (rng.random(log.num_steps) < 0.9)
        first = np.minimum.reduceat(
            np.where(stops, log.step, log.num_steps), log.episode_offsets[:-1]
        )
        last = np.repeat(first, np.diff(log.episode_offsets))
        cut = log.rows(log.step <= last)
        logs.append(with_unknown(cut, (stops & (log.step == last))[log.step <= last]))
    wrong, better = failures(logs)
    assert wrong <= allowed(number)
    assert better == 0


@pytest.mark.thorough
@pytest.mark.parametrize("number", [20, pytest.param(LOGS, marks=pytest.mark.slow)])
def test_a_clock_breaks_no_claim_and_leaves_them_their_strength(number):
    logs = [recorded(seed) for seed in range(number)]
    by_clock = [log.rows(log.terminated | (log.step < 7)) for log in logs]  # where it led, is gone
    wrong, better = failures(by_clock)
    assert wrong <= allowed(number)
    assert better == 0
    careful = Policy.deterministic(machine()[0].pairs, [CARE, 0, 0])
    long = [log.rows(log.terminated | (log.step < 7)) for log in map(recorded, range(3), [900] * 3)]
    claims = certify_many([problem_of(log) for log in long], [careful] * 3, Stitched())
    assert all(claim.lower > 0 for claim in claims)


def test_what_counts_leave_out_proves_nothing():
    log = recorded(0)
    some = with_unknown(log, log.terminated & (np.arange(log.num_steps) % 2 == 0))
    policy = machine()[2]
    known, unknown = problem_of(log), problem_of(some)
    robust = Robust(reward_low=-1.0, reward_high=0.5)
    codes = [said.code for said in certify(unknown, policy, robust).assumptions]
    assert codes.count("stopping-tells-nothing") == 1
    assert "stopping-tells-nothing" not in str(certify(unknown, policy, Stitched()).assumptions)
    assert "stopping-tells-nothing" not in str(certify(known, policy, robust).assumptions)
    claim = replace(certify(known, policy, robust), lower=1.0)
    assert is_proved(claim)
    stops = certify(unknown, policy, robust).assumptions
    assert not is_proved(replace(claim, assumptions=stops))
    # Nor is a robust set of such counts what is left where rollouts are cut.
    stitched = Stitched(tails=0.5, reward_low=-1.0, reward_high=0.5)
    assert not may_have_tails(stitched, unknown, some)
    assert may_have_tails(stitched, known, log)


def rows_of(log, *, ends):
    """A table of the log, with or without a column of ends."""
    table = table_of(log, ["work", "rest", "end"], ["care", "hurry"])
    left_out = {"next_state", "truncated"} | (set() if ends else {"terminated"})
    return {name: values for name, values in table.items() if name not in left_out}


TERMS = {"discount": 0.5, "worlds": 0}
CHOICES = ("terminated", "truncated", "next_state", "complete", "clock", "random")


def test_a_log_that_says_nothing_of_ends_is_refused_by_all_that_claims(tmp_path):
    table = rows_of(recorded(0), ends=False)
    calls = {
        "counts": lambda: read_log(table).counts(),
        "improve": lambda: surestep.improve(read_log(table), **TERMS),
        "rehearse": lambda: rehearse_log(read_log(table), {"discount": 0.5}, worlds=10),
    }
    for call in calls.values():
        with pytest.raises(InvalidLog, match="nobody says how episodes end") as refusal:
            call()
        assert all(choice in str(refusal.value) for choice in CHOICES)
    path = tmp_path / "log.csv"
    lines = [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
    path.write_text("\n".join([",".join(table), *lines]) + "\n")
    for command in (["count"], ["improve", "--discount", "0.5"]):
        said = run_surestep(*command, path, "-o", tmp_path / "out")
        assert said.exit_code == 2
        for option in ("--terminated", "--ends complete", "--ends clock"):
            assert option in said.output
    shown = run_surestep("inspect", path)
    assert shown.exit_code == 0
    assert "no column says whether an episode is over" in shown.output


@pytest.mark.thorough
def test_last_rows_are_ends_or_the_clocks_or_unknown():
    log = recorded(0, episodes=40)
    table, over = rows_of(log, ends=True), int(log.terminated.sum())
    by_clock = read_log(table, ends="clock")
    assert by_clock.counts().dropped == {STOPPED: 40 - over}
    assert by_clock.load().num_steps == log.num_steps - (40 - over)
    unknown = read_log(table)
    assert unknown.counts().dropped == {UNFINISHED: 40 - over}
    loaded = unknown.load()
    assert loaded.num_steps == log.num_steps
    last = loaded.episode_offsets[1:] - 1
    assert (loaded.next_state == UNKNOWN).sum() == (loaded.next_state[last] == UNKNOWN).sum()
    assert ((loaded.next_state == UNKNOWN) == (~log.terminated & log.truncated)).all()
    assert loaded.counts() == by_clock.load().counts()
    assert loaded.with_outcomes() == by_clock.load()
    silent = rows_of(log, ends=False)
    assert read_log(silent, ends="complete").counts().episodes.terminated == 40
    # A truncated column beside either word is believed.
    first = (np.cumsum(log.truncated) <= 3) & log.truncated
    both = read_log(silent | {"truncated": first}, ends="complete")
    assert both.counts().episodes.terminated == 37
    assert both.counts().dropped == {STOPPED: 3}
    assert read_log(table | {"timeout": first}, ends="clock").counts().dropped == {
        STOPPED: 40 - over
    }
    text = np.where(log.terminated, "yes", "no").astype(object)
    again = read_log(table | {"terminated": text}, ends="clock")
    assert again.counts().dropped == {STOPPED: 40 - over}


@pytest.mark.thorough
def test_a_result_says_who_stopped_the_recording_and_is_made_again(tmp_path):
    table = rows_of(recorded(1, episodes=60), ends=True)
    ranges = {"running": (0.0, 0.5), "ending": (-1.0, 0.0), "certificates": ["stitched", "robust"]}
    codes = {}
    for name, reading in {"clock": {"ends": "clock"}, "unknown": {}}.items():
        made = surestep.improve(read_log(table, **reading), **TERMS, **ranges)
        codes[name] = [{said.code for said in each.assumptions} for each in made.certificates]
        made.save(tmp_path / name)
        assert verify_result(tmp_path / name, table).level == "same bytes"
    clock, stops = {"stopped-by-clock"}, {"stopping-tells-nothing"}
    assert [said & (clock | stops) for said in codes["clock"]] == [clock, clock]
    assert [said & (clock | stops) for said in codes["unknown"]] == [set(), stops]


def test_a_log_of_steps_has_unknown_ones_only_where_nothing_follows():
    log = recorded(0, episodes=3)
    fields = (log.pairs, log.state, log.action, log.reward)
    flags = (log.terminated, log.truncated, log.episode_offsets)
    middle = log.next_state.copy()
    middle[0] = UNKNOWN
    expected = "expected no flag, and the state in which the next step begins"
    with pytest.raises(InvalidLog, match=rf"episode 0, step 0 has the next state -1, .*{expected}"):
        DecisionLog(*fields, middle, *flags)


@pytest.mark.parametrize(("known", "part"), [(0, "chooses"), (1, "judges")])
def test_a_part_of_which_no_row_says_where_it_led_is_named(known, part):
    """One half has ends, the other has rows of which nobody knows what came of them."""
    half = np.arange(60) // 30
    rows = {"episode": np.arange(60), "step": np.zeros(60, int), "state": ["s"] * 60}
    rows |= {"action": ["a", "b"] * 30, "reward": np.arange(60) % 2, "terminated": half != known}
    with pytest.raises(InvalidLog, match=f"no row of the part of the log that {part} the policy"):
        surestep.improve(read_log(rows), discount=0.9, train_share=0.5, worlds=0)


# ---- what supports that a clock stopped the recordings ------------------------------------------

HALF = [12 if e % 2 else 6 for e in range(40)]  # lengths of episodes, one as long as the other


def of_lengths(lengths, *, starts=None, times=None, flags=None):
    """A table of episodes without ends, of these lengths; steps and times may be of a calendar."""
    rows = [(e, t) for e, length in enumerate(lengths) for t in range(length)]
    first = np.zeros(len(lengths), int) if starts is None else np.asarray(starts)
    table = {"episode": [e for e, _ in rows], "step": [int(first[e]) + t for e, t in rows]}
    table |= {"state": ["s"] * len(rows), "action": ["ab"[(e + t) % 2] for e, t in rows]}
    table |= {"reward": [float((e * t) % 2) for e, t in rows]}
    if times is not None:
        begun = np.datetime64("2025-01-01") + np.asarray(times)
        table["when"] = [str(begun[e] + 7 * t) for e, t in rows]  # a step takes a week
    if flags is not None:
        table["truncated"] = [flags and t == lengths[e] - 1 for e, t in rows]
    return table


def reason(table, **reading):
    """The one reason for which last rows are left out."""
    (why,) = read_log(table, **({"ends": "clock"} | reading)).counts().dropped
    return why


@pytest.mark.thorough
def test_a_clock_needs_support_where_episodes_have_different_lengths():
    assert reason(of_lengths(HALF)) == UNEXPLAINED
    assert reason(of_lengths(HALF), ends="random") == RANDOM
    assert reason(of_lengths([12] * 40)) == STOPPED
    # A column of flags explains those that it marks, and no others.
    assert reason(of_lengths(HALF, flags=True)) == STOPPED
    assert reason(of_lengths(HALF, flags=False)) == UNEXPLAINED
    # 95 % reach the greatest length, or fewer do.
    assert reason(of_lengths([12] * 38 + [3] * 2)) == STOPPED
    assert reason(of_lengths([12] * 37 + [3] * 3)) == UNEXPLAINED
    # A calendar: episodes begin in any week, and are recorded until the same one.
    starts = [30 - length for length in HALF]
    assert reason(of_lengths(HALF, starts=starts)) == STOPPED
    assert reason(of_lengths(HALF, starts=[e % 7 for e in range(40)])) == UNEXPLAINED


def test_a_date_supports_a_clock(tmp_path):
    days = [e % 7 - 7 * length for e, length in enumerate(HALF)]  # they end in one week
    told = {"columns": {"time": "when"}}
    assert reason(of_lengths(HALF, times=days), **told) == STOPPED
    early = [day - 21 * (e in (0, 2, 4)) for e, day in enumerate(days)]  # all but three short ones
    assert reason(of_lengths(HALF, times=early), **told) == UNEXPLAINED
    assert reason(of_lengths(HALF, times=[0] * 40), **told) == UNEXPLAINED
    # Those that began too late are cut by the date, and the others have the greatest length.
    lengths = [12] * 30 + [*range(2, 12)]
    begins = [*range(30), *(7 * (16 - length) for length in lengths[30:])]
    assert reason(of_lengths(lengths, times=begins), **told) == STOPPED
    # Steps that are time stamps are such a column.
    for times, why in ((days, STOPPED), (early, UNEXPLAINED)):
        table = of_lengths(HALF, times=times)
        table["step"] = table.pop("when")
        assert reason(table) == why
        assert reason(table, columns={"time": "step"}) == why


@pytest.mark.thorough
def test_a_clock_without_support_is_asked_about_also_of_counts(tmp_path):
    table = of_lengths(HALF)
    ranges = {"running": (0.0, 1.0), "behavior": "uniform", **TERMS}
    counts = read_log(table, ends="clock").counts()
    write_counts(counts, tmp_path / "counts.parquet")
    for source in (read_log(table, ends="clock"), tmp_path / "counts.parquet"):
        result = surestep.improve(source, **ranges)
        checks = result.record.checks
        (failed,) = [check for check in checks if check.code == "clock-unsupported"]
        assert forbids_proof([failed], result.certificate)
        for support in ("`truncated`", "`time`", "a calendar", "95 %", 'ends = "random"'):
            assert support in asked(checks)
    codes = {check.code for check in inspect(read_log(table, ends="clock")).checks}
    assert "clock-unsupported" in codes
    random = surestep.improve(read_log(table, ends="random"), **ranges)
    assert "clock-unsupported" not in {check.code for check in random.record.checks}
    assert "stopped-at-random" in {said.code for said in random.certificate.assumptions}
