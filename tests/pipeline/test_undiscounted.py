"""Survival is not discounted: from a log whose episodes all end to a policy and its claims."""

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import surestep
from support.strategies import episodic_mdps
from surestep import (
    Policy,
    estimate_behavior,
    estimate_mdp,
    performance,
    read_log,
    sample_log,
)
from surestep.cli.main import main
from surestep.errors import NeverEnds
from surestep.pipeline import verify_result

HEADER = "episode,step,state,action,reward,terminated,next_state"
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


@pytest.fixture
def log(tmp_path):
    """Writes rows to a file."""

    def write(rows):
        path = tmp_path / "log.csv"
        path.write_text("\n".join([HEADER, *rows]) + "\n")
        return path

    return write


def test_a_log_of_survival_is_improved_certified_rehearsed_and_verified(log, tmp_path):
    path = log(survival(200))
    result = surestep.improve(
        read_log(path),
        discount=1,
        ending=(0, 1),
        n_wedge=20,
        certificates=["robust", "posterior", "a-priori"],
        worlds=1,
    )
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
    output = tmp_path / "out"
    found = CliRunner().invoke(main, ["improve", str(path), *options, "-o", str(output)])
    assert found.exit_code == 2
    assert not output.exists()
    assert "state 'hall' (with 1 other state) never ends under the policy" in found.output
    with pytest.raises(NeverEnds, match="state 'hall'"):
        surestep.improve(read_log(path), discount=1, ending=(0, 1), n_wedge=5)
