"""What steps may earn, as a user declares it, also without a discount; what a log contradicts."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surestep
from support.pump_commands import run_surestep, write_lines
from support.strategies import episodic_mdps
from surestep import Policy, estimate_behavior, estimate_mdp, performance, read_log, sample_log
from surestep.errors import InvalidParameter, RefutedBounds
from surestep.io import write_counts
from surestep.io.counts.labelled import merge_counts
from surestep.model import Statement
from surestep.model.known import Ranges
from surestep.pipeline import certify_result, verify_result
from surestep.pipeline.recording import terms_of

HEADER = "episode,step,state,action,reward,terminated,next_state"
SURVIVAL = [
    "0,0,sick,wait,0,false,bad",
    "0,1,bad,treat,0,false,sick",
    "0,2,sick,treat,1,true,home",
    "1,0,sick,wait,0,true,dead",
    "2,0,sick,treat,1,true,home",
    "3,0,sick,wait,0,false,sick",
    "3,1,sick,treat,1,true,home",
]
NUMBERS = st.fractions(-3, 3, max_denominator=4)
DEBT = ["0,0,sick,wait,-3,false,bad", "0,1,bad,treat,4,true,home", *SURVIVAL[3:]]


@pytest.fixture
def log(tmp_path):
    def write(rows=SURVIVAL):
        return write_lines(tmp_path / "log.csv", [HEADER, *rows])

    return write


def improve(source, **terms):
    usual = {"discount": 0.9, "n_wedge": 1, "worlds": 0, "certificates": ["robust"]}
    return surestep.improve(source, **(usual | terms))


@settings(max_examples=25)
@given(
    running=st.tuples(NUMBERS, NUMBERS).map(sorted),
    ending=st.tuples(NUMBERS, NUMBERS).map(sorted),
    discount=st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]),
)
def test_returns_of_all_episodes_lie_between_the_bounds_and_reach_them(running, ending, discount):
    """By enumeration in exact arithmetic: extremes of every step, ends after 0 to 5 steps."""
    low, high = Ranges(
        tuple(map(float, running)), tuple(map(float, ending))
    ).returns(float(discount))  # fmt: skip
    returns = [
        sum(discount**t * r for t, r in enumerate(earned)) + discount**steps * end
        for steps in range(6)
        for earned in product(running, repeat=steps)
        for end in ending
    ]
    for_ever = [reward / (1 - discount) for reward in running]
    assert low <= float(min(returns + for_ever)) + 1e-12
    assert high >= float(max(returns + for_ever)) - 1e-12
    # No narrower bounds would do.
    assert (low, high) == pytest.approx(
        (float(min(ending[0], for_ever[0])), float(max(ending[1], for_ever[1])))
    )


def test_decimals_are_taken_as_they_are_written():
    assert Ranges((-1.0, 1.0), (0.0, 0.0)).returns(0.95) == (-20.0, 20.0)
    assert Ranges((-140, 160), (-400, 500)).returns(0.95) == (-2800.0, 3200.0)


def test_without_a_discount_only_ends_may_pay():
    assert Ranges((0.0, 0.0), (-2.0, 3.0)).returns(1.0) == (-2.0, 3.0)
    assert Ranges((0.0, 0.0), (1.0, 3.0)).returns(1.0) == (0.0, 3.0)  # no end may ever come
    with pytest.raises(InvalidParameter, match=r"discount is 1 and a running step earns -1.* to 0"):
        Ranges((-1.0, 0.0), (0.0, 1.0)).returns(1.0)


def test_a_range_that_is_left_out_is_zero_and_ends_are_worth_zero(log):
    result = improve(log(), discount=0.99, ending=(0, 1))
    claim = result.certificate
    assert (claim.figures["value_low"], claim.figures["value_high"]) == (0.0, 1.0)
    values = {"running_low": 0.0, "running_high": 0.0, "ending_low": 0, "ending_high": 1}
    assert Statement("rewards-as-declared", values) in claim.assumptions
    assert result.record.parameters.running == (0.0, 0.0)
    assert not {"running", "ending"} & {*result.record.defaults}
    wide = improve(log(), discount=0.5, running=(-1, 0), ending=(-1, 1)).certificate
    assert (wide.figures["value_low"], wide.figures["value_high"]) == (-2.0, 1.0)


def test_returns_bound_single_rewards_too(log):
    result = improve(log(), returns=(-2.0, 5.0))
    claim = result.certificate
    assert (claim.figures["value_low"], claim.figures["value_high"]) == (-2.0, 5.0)
    bounds = Statement("returns-bounded-from-any-step", {"low": -2.0, "high": 5.0})
    assert bounds in claim.assumptions
    # What is still to come from a step on is r + 0.9 G, and both lie between −2 and 5.
    assert (claim.parameters["reward_low"], claim.parameters["reward_high"]) == (-6.5, 6.8)
    assert result.record.parameters.running is None


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("said", "options"),
    [
        ({"running": (-1.0, 0.5), "ending": (0.0, 1.0)}, "--running -1.0 0.5 --ending 0.0 1.0"),
        ({"returns": (-1.0, 2.5)}, "--set 'stakes.returns=[-1.0, 2.5]'"),
    ],
)
def test_what_was_said_is_recorded_repeated_and_verified(log, tmp_path, said, options):
    result = improve(log(), **said)
    assert f"{options} " in result.record.command
    again = terms_of(result.record)
    for name in ("running", "ending", "returns"):
        assert getattr(again.stakes, name) == said.get(name)
    result.save(tmp_path / "out")
    verified = verify_result(tmp_path / "out", str(log()))
    assert verified.level == "same bytes"


@pytest.mark.thorough
def test_other_logs_are_judged_with_what_was_said(log, tmp_path):
    improve(log(), ending=(0, 1)).save(tmp_path / "out")
    later = write_lines(tmp_path / "later.csv", [HEADER, *SURVIVAL, "4,0,bad,treat,0,true,dead"])
    judged = certify_result(tmp_path / "out", str(later), ["robust"])
    (claim,) = judged.certificates
    assert (claim.figures["value_low"], claim.figures["value_high"]) == (0.0, 1.0)
    write_lines(later, [HEADER, *SURVIVAL, "4,0,bad,treat,0.5,false,bad"])
    with pytest.raises(RefutedBounds, match=r"row 8, column 'reward': '0\.5', expected 0 to 0 whe"):
        certify_result(tmp_path / "out", str(later), ["robust"])
    # What is declared now replaces all that was declared before.
    judged = certify_result(tmp_path / "out", str(later), ["robust"], returns=(0, 2))
    assert judged.certificates[0].figures["value_high"] == 2.0


def test_a_reward_on_the_way_is_refused_with_its_row(log, tmp_path):
    path = log([*SURVIVAL, "4,0,sick,wait,0.25,false,bad", "4,1,bad,wait,0,true,dead"])
    words = f"{path}, row 8, column 'reward': '0.25', expected 0 to 0 where it goes on and 0 to 1"
    given = ["improve", path, "--discount", "1", "--ending", "0", "1"]
    found = run_surestep(*given, "-o", tmp_path / "out")
    assert found.exit_code == 2
    assert not (tmp_path / "out").exists()
    assert words in found.output
    write_counts(read_log(path).counts(), tmp_path / "counts.parquet")
    counts = surestep.io.read_counts(tmp_path / "counts.parquet")
    with pytest.raises(RefutedBounds, match="state 'sick', action 'wait': a step that goes on ear"):
        improve(counts, ending=(0, 1))


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("rows", "terms", "words"),
    [
        # The last row of a recording that stopped is no end.
        ([*SURVIVAL, "4,0,sick,wait,1,false,bad"], {"ending": (0, 1)}, "row 8, .*'1', expected"),
        (SURVIVAL, {"returns": (0.0, 0.9)}, r"from episode 0, step 0 on, 1 is earned, .*0\.0 to 0"),
        (SURVIVAL, {"returns": (0.5, 1.0)}, r"from episode 1, step 0 on, 0 is earned, .*0\.5 to 1"),
        # What is still to come is held against the bounds too.
        (DEBT, {"returns": (-1.0, 2.0)}, "from episode 0, step 1 on, 4 is earned, expected"),
    ],
)
def test_what_the_log_refutes_is_named(rows, terms, words, log):
    with pytest.raises(RefutedBounds, match=words):
        improve(log(rows), discount=1, **terms)
    assert improve(log(DEBT), discount=1, returns=(-1.0, 4.0)).certificate is not None


LAST = {  # how the last row of episode 4, which earns −1000, comes to be left out
    "clock": ("terminated,truncated", "false,true"),
    "unknown": ("terminated", "false"),
}


def with_last_row(folder, columns, flags):
    """A log of one-step episodes with ends, and a last row that alone earns −1000."""
    header = f"episode,step,state,action,reward,{columns}"
    over = {"terminated": "true", "truncated": "false"}
    ended = ",".join(over[name] for name in columns.split(","))
    rows = [f"{e},0,s,{'ab'[e % 2]},{e % 2},{ended}" for e in range(4)]
    rows += [f"4,0,s,a,0.5,{ended.replace('true', 'false')}", f"4,1,s,b,-1000,{flags}"]
    return read_log(write_lines(folder / "log.csv", [header, *rows]))


@pytest.mark.thorough
@pytest.mark.parametrize("how", LAST)
def test_a_row_that_is_left_out_shows_what_steps_may_earn(tmp_path, how):
    """A clock stops what goes on; where nobody knows, the step may be of either kind."""
    log = with_last_row(tmp_path, *LAST[how])
    write_counts(log.counts(), tmp_path / "counts.parquet")
    for source in (log, surestep.io.read_counts(tmp_path / "counts.parquet")):
        given = improve(source).record.parameters
        assert given.running == (-1000.0, 0.5)
        assert given.ending == ((-1000.0, 1.0) if how == "unknown" else (0.0, 1.0))
        for declared in ({"running": (0, 1), "ending": (-400, 1)}, {"returns": (0, 10)}):
            with pytest.raises(RefutedBounds, match="-1000"):
                improve(source, **declared)
        if source is log:  # whatever it is taken for, the wider range holds it
            improve(source, returns=(-1000, 10))
            improve(source, running=(-1000, 1), ending=(0, 1))
        as_end = {"running": (0, 1), "ending": (-1000, 1)}
        if how == "unknown":
            improve(source, **as_end)
        else:
            with pytest.raises(RefutedBounds, match="-1000"):
                improve(source, **as_end)


def test_least_and_greatest_rewards_of_rows_left_out_add_up(tmp_path):
    """Merged, in either order; decimals are the doubles that are written."""
    parts = []
    for number, reward in enumerate((0.1, -7.25)):
        ended = {"terminated": [True, False, False], "episode": [0, 1, 1], "step": [0, 0, 1]}
        rows = {"state": ["s"] * 3, "action": [f"a{number}"] * 3, "reward": [0.0, 0.0, reward]}
        parts.append(read_log(ended | rows).counts())
    for both in (parts, parts[::-1]):
        (ends,) = merge_counts(both).dropped_rewards.values()
        assert ends == (-7.25, 0.1)


@pytest.mark.thorough
def test_another_log_is_judged_with_what_the_log_of_the_result_showed(log, tmp_path):
    improve(log(["9,0,sick,wait,-7,false,bad", "9,1,bad,treat,3,true,home", *SURVIVAL])).save(
        tmp_path / "out"
    )
    later = write_lines(tmp_path / "later.csv", [HEADER, *SURVIVAL, "4,0,bad,treat,5,true,dead"])
    (claim,) = certify_result(tmp_path / "out", str(later), ["robust"]).certificates
    values = {"running_low": -7.0, "running_high": 0.0, "ending_low": 0.0, "ending_high": 5.0}
    assert Statement("rewards-within-seen", values) in claim.assumptions
    assert claim.figures["value_low"] == -70.0


CHANCES = {  # home, back to sick, worse, dead
    ("sick", "wait"): (0.2, 0.4, 0.4, 0.0),
    ("sick", "treat"): (0.5, 0.3, 0.2, 0.0),
    ("worse", "wait"): (0.0, 0.2, 0.3, 0.5),
    ("worse", "treat"): (0.0, 0.5, 0.0, 0.5),
}
PLACES = ("home", "sick", "worse", "dead")
# Treated, V = .5 + .3 V + .2 · .5 V; by π_b, V = .35 + .35 V + .3 W with W = .35 V + .15 W.
GAIN = 5 / 6 - 0.35 / (0.65 - 0.3 * 0.35 / 0.85)


def survival(episodes, seed=0):
    """The rows of so many stays, until home, which pays 1, or dead."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        state, step = "sick", 0
        while state in ("sick", "worse"):
            action = ("wait", "treat")[rng.integers(2)]
            after = PLACES[rng.choice(4, p=CHANCES[state, action])]
            over = after in ("home", "dead")
            words = (episode, step, state, action, int(after == "home"), str(over).lower(), after)
            rows.append(",".join(map(str, words)))
            state, step = after, step + 1
    return rows


@pytest.mark.thorough
def test_a_log_of_survival_is_improved_certified_rehearsed_and_verified(log, tmp_path):
    path = log(survival(200))
    kinds = ["robust", "posterior", "a-priori"]
    result = improve(path, discount=1, ending=(0, 1), n_wedge=20, certificates=kinds, worlds=1)
    parameters = result.record.parameters
    assert (parameters.discount, parameters.ending) == (1.0, (0, 1))
    assert [each.kind for each in result.certificates] == ["robust", "posterior", "no-claim"]
    assert "the bounds divide by 1 − γ" in result.certificates[2].parameters["refusal"]
    robust, posterior = result.certificates[:2]
    assert -1 <= robust.lower <= posterior.lower
    assert 0 < posterior.lower < GAIN
    assert np.isfinite(result.rehearsal.gain).all()
    result.save(tmp_path / "out")
    assert verify_result(tmp_path / "out", str(path)).level == "same bytes"


@pytest.mark.thorough
def test_a_gain_in_survival_is_proved_by_default(log):
    source = read_log(log(survival(600)))
    result = surestep.improve(source, discount=1, ending=(0, 1), worlds=0)
    kinds = [each.kind for each in result.certificates]
    assert kinds == ["stitched", "posterior", "robust"]
    assert result.certificate.standing == "proved"
    assert (result.certificate.figures["return_low"], result.certificate.span) == (0.0, 1.0)
    assert 0 < result.certificate.lower < GAIN


@settings(max_examples=30)
@given(mdp=episodic_mdps(), seed=st.integers(0, 10**6), episodes=st.integers(1, 20))
def test_the_estimate_of_ended_episodes_earns_their_mean_return(mdp, seed, episodes):
    # The flows of the log are those of the estimated chain: what comes into a state leaves it.
    log = sample_log(mdp, Policy.uniform(mdp), episodes, 30, np.random.default_rng(seed))
    ended = np.flatnonzero(log.terminated[log.episode_offsets[1:] - 1])
    if ended.size == 0:
        return
    log = log.episodes(ended)
    counts = log.counts()
    behavior = estimate_behavior(counts)
    returned = log.reward.sum() / log.num_episodes
    scale = 1 + np.abs(log.reward).sum()
    found = performance(estimate_mdp(counts, 1.0), behavior)
    assert found == pytest.approx(returned, abs=1e-9 * scale)


def test_an_estimate_in_which_nothing_ends_is_refused_with_the_state(log, tmp_path):
    # Recording stopped while somebody went to and fro, in states that nobody was seen to leave.
    cut = [
        "900,0,sick,wait,0,false,hall",
        "900,1,hall,wait,0,false,room",
        "900,2,room,wait,0,false,hall",
        "900,3,hall,wait,0,false,room",
    ]
    path = log([*survival(50), *cut])
    options = ["--discount", "1", "--ending", "0", "1", "--set", "method.n_wedge=5"]
    found = run_surestep("improve", path, *options, "-o", tmp_path / "out")
    assert found.exit_code == 2
    assert not (tmp_path / "out").exists()
    assert "state 'hall' (with 1 other state) never ends under the policy" in found.output
