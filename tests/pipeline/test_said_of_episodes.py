"""What a user says of whole episodes: which values follow, and what the log must not contradict."""

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import surestep
from surestep import FiniteMDP, Policy, evaluate, read_log
from surestep.cli.main import main
from surestep.errors import InvalidParameter, RefutedBounds
from surestep.io import write_counts
from surestep.model import Statement
from surestep.pipeline import certify_result, verify_result
from surestep.pipeline.recording import terms_of
from surestep.pipeline.terms import Terms

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


@pytest.fixture
def log(tmp_path):
    """Writes a log of these rows."""

    def write(rows=SURVIVAL):
        path = tmp_path / "log.csv"
        path.write_text("\n".join([HEADER, *rows]) + "\n")
        return path

    return write


def improve(path, **terms):
    usual = {"discount": 0.9, "n_wedge": 1, "worlds": 0, "certificates": ["robust"]}
    return surestep.improve(read_log(path), **(usual | terms))


# ---- values -------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(data=st.data())
def test_values_of_models_that_pay_at_ends_lie_between_the_bounds(data):
    low, high = sorted(data.draw(st.tuples(*[st.integers(-3, 3)] * 2)))
    states = data.draw(st.integers(1, 4))
    P = np.zeros((states, 2, states))
    R = np.zeros((states, 2))
    for s, a in np.ndindex(states, 2):
        if data.draw(st.booleans()) or s == a == 0:
            R[s, a] = data.draw(st.integers(low, high))  # an end
        else:
            P[s, a, [0, data.draw(st.integers(0, states - 1))]] = 0.5
            P[s, a] /= P[s, a].sum()
    discount = data.draw(st.sampled_from([0.0, 0.5, 0.99, 1.0]))
    mdp = FiniteMDP.from_dense(P, R, discount)
    for name in ("reward_at_end", "return_bounds"):
        if low == high == 0:
            continue
        found = Terms(discount=discount, **{name: (low, high)}).value_bounds_for(None)
        assert found == (min(low, 0), max(high, 0))
        value = evaluate(mdp, Policy.uniform(mdp))
        assert found[0] - 1e-9 <= value.min() <= value.max() <= found[1] + 1e-9


def test_values_lie_between_what_ends_pay_and_not_between_rewards_for_ever(log):
    result = improve(log(), discount=0.99, reward_at_end=(0, 1))
    assert result.record.parameters["value_bounds"] == [0.0, 1.0]
    assert "value_bounds" not in result.record.defaults
    said = result.certificate.assumptions
    assert Statement("paid-at-end", {"low": 0, "high": 1}) in said
    assert not {"reward-bounds-read-off", "value-bounds-read-off"} & {each.code for each in said}
    assert improve(log(), discount=0.99).record.parameters["value_bounds"] == [0.0, 100.0]


def test_bounds_of_returns_leave_single_rewards_to_the_data(log):
    result = improve(log(), return_bounds=(-2.0, 5.0))
    assert result.record.parameters["value_bounds"] == [-2.0, 5.0]
    said = result.certificate.assumptions
    assert Statement("returns-bounded-from-any-step", {"low": -2.0, "high": 5.0}) in said
    assert Statement("reward-bounds-read-off") in said


# ---- records ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "bounds", "option"),
    [
        ("reward_at_end", (0.0, 1.0), "--reward-at-end 0.0 1.0"),
        ("return_bounds", (-1.0, 2.5), "--return-bounds -1.0 2.5"),
    ],
)
def test_what_was_said_is_recorded_repeated_and_verified(log, tmp_path, name, bounds, option):
    result = improve(log(), **{name: bounds})
    assert result.record.parameters[name] == list(bounds)
    assert f" {option} " in result.record.command
    assert "--value-bounds" not in result.record.command
    assert getattr(terms_of(result.record), name) == bounds
    assert terms_of(result.record).value_bounds is None
    result.save(tmp_path / "out")
    verified = verify_result(tmp_path / "out", str(log()))
    assert verified.level == "same bytes"


def test_other_logs_are_judged_with_what_was_said(log, tmp_path):
    improve(log(), reward_at_end=(0, 1)).save(tmp_path / "out")
    later = tmp_path / "later.csv"
    later.write_text("\n".join([HEADER, *SURVIVAL, "4,0,bad,treat,0,true,dead"]) + "\n")
    judged = certify_result(tmp_path / "out", str(later), ["robust"])
    (claim,) = judged.certificates
    assert (claim.figures["value_low"], claim.figures["value_high"]) == (0.0, 1.0)
    later.write_text("\n".join([HEADER, *SURVIVAL, "4,0,bad,treat,0.5,false,bad"]) + "\n")
    with pytest.raises(RefutedBounds, match=r"row 8, column 'reward': '0\.5' earns something"):
        certify_result(tmp_path / "out", str(later), ["robust"])


# ---- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"reward_at_end": (0, 1), "return_bounds": (0, 1)}, "both reward_at_end and return_bou"),
        ({"reward_at_end": (0, 1), "value_bounds": (0, 1)}, "both value_bounds and reward_at_end"),
        ({"return_bounds": (0, 1), "value_bounds": (0, 1)}, "both value_bounds and return_bounds"),
        ({"reward_at_end": (0, 0)}, "reward_at_end is 0 to 0"),
        ({"reward_at_end": (1, 0)}, "reward_at_end is .*, the lower one first"),
        ({"return_bounds": (0, float("inf"))}, "return_bounds is .*, expected two finite numbers"),
        ({"discount": 1}, "discount is 1, .*reward_at_end=.low, high.*return_bounds=.low, high"),
    ],
)
def test_what_means_nothing_is_refused(log, terms, words):
    with pytest.raises(InvalidParameter, match=words):
        improve(log(), **terms)


def test_a_reward_on_the_way_is_refused_with_its_row(log, tmp_path):
    path = log([*SURVIVAL, "4,0,sick,wait,0.25,false,bad", "4,1,bad,wait,0,true,dead"])
    words = f"{path}, row 8, column 'reward': '0.25' earns something, but does not end its episode"
    found = CliRunner().invoke(
        main,
        [
            "improve",
            str(path),
            *("--discount", "1", "--reward-at-end", "0", "1", "-o"),
            str(tmp_path / "out"),
        ],
    )
    assert found.exit_code == 2
    assert not (tmp_path / "out").exists()
    assert words in found.output
    write_counts(read_log(path).counts(), tmp_path / "counts.parquet")
    counts = surestep.io.read_counts(tmp_path / "counts.parquet")
    with pytest.raises(RefutedBounds, match="a step of state 'sick', action 'wait' earns someth"):
        surestep.improve(counts, discount=0.9, n_wedge=1, reward_at_end=(0, 1))


def test_the_last_row_of_a_recording_that_stopped_is_no_end(log):
    path = log([*SURVIVAL, "4,0,sick,wait,1,false,bad"])
    with pytest.raises(RefutedBounds, match=r"row 8, column 'reward': '1' earns something"):
        improve(path, reward_at_end=(0, 1))


def test_an_end_that_pays_more_is_refused(log):
    with pytest.raises(RefutedBounds, match=r"ends of episodes pay 0 to 1, expected 0 to 0\.5"):
        improve(log(), reward_at_end=(0, 0.5))
    with pytest.raises(RefutedBounds, match=r"ends of episodes pay 0 to 1, expected 0\.5 to 1"):
        improve(log(), reward_at_end=(0.5, 1))


def test_an_episode_that_returns_more_is_refused_by_its_number(log):
    with pytest.raises(RefutedBounds, match=r"the return of episode 2 is 1, expected 0\.0 to 0\.9"):
        improve(log(), return_bounds=(0.0, 0.9))
    with pytest.raises(RefutedBounds, match=r"the return of episode 1 is 0, expected 0\.5 to 1"):
        improve(log(), discount=1, return_bounds=(0.5, 1.0))


def test_what_is_still_to_come_is_held_against_the_bounds_too(log):
    rows = ["0,0,sick,wait,-3,false,bad", "0,1,bad,treat,4,true,home", *SURVIVAL[3:]]
    with pytest.raises(RefutedBounds, match=r"from episode 0, step 1 on, 4 is earned, expected"):
        improve(log(rows), discount=1, return_bounds=(-1.0, 2.0))
    assert improve(log(rows), discount=1, return_bounds=(-1.0, 4.0)).certificate is not None
