"""What `improve` does with several certificates, a choice of N∧, and a stress test."""

import numpy as np
import pytest

from labelled_worlds import COLUMNS, NAMES, world
from log_tables import frame_of
from surestep import Policy, certify, improve, load, read_log
from surestep.algorithms import SPIBB
from surestep.certificates import APriori, Posterior, Robust, Trajectory, training_part
from surestep.choosing import choose_n_wedge
from surestep.errors import InvalidParameter
from surestep.pipeline.evidence import gather
from surestep.pipeline.improving import make_result, prepared
from surestep.pipeline.terms import DEFAULT_WORLDS, Terms
from surestep.pipeline.verifying import verify_result
from surestep.rehearsal import rehearse


def known_log(seed=1):
    rows = world(seed).rows
    return read_log(frame_of(rows, (*NAMES, "behavior_prob")), columns=COLUMNS)


def made(terms, source=None):
    return make_result(gather(known_log() if source is None else source), terms, lambda *told: None)


def test_by_default_a_posterior_is_stood_by_and_chooses_n_wedge():
    result = made(Terms(discount=0.9))
    problem, found = result.problem, result.result
    assert [each.kind for each in found.certificates] == ["posterior", "robust", "a-priori"]
    chosen = choose_n_wedge(problem, "spibb", Posterior())
    assert found.record.parameters["n_wedge"] == chosen.n_wedge
    assert found.record.parameters["n_wedge_chosen_by"] == "posterior"
    assert found.policy == chosen.policy
    assert found.certificate == chosen.certificate  # fresh draws, which had no part in the choice
    means = problem.counts.rewards.values / np.maximum(problem.counts.times, 1)
    bounds = {"reward_low": min(0.0, means.min()), "reward_high": max(0.0, means.max())}
    assert found.certificates[1] == certify(problem, found.policy, Robust(**bounds))
    assert found.certificates[2] == certify(problem, found.policy, APriori())


def test_the_first_kind_that_may_choose_does():
    robust = made(Terms(discount=0.9, certificates=["robust"], reward_bounds=(-9.0, 9.0)))
    assert robust.result.record.parameters["n_wedge_chosen_by"] == "robust"
    judge = Robust(reward_low=-9.0, reward_high=9.0)
    chosen = choose_n_wedge(robust.problem, "spibb", judge)
    assert (robust.result.policy, robust.result.certificate) == (chosen.policy, chosen.certificate)
    published = made(Terms(discount=0.9, certificates=[APriori(bound="beta")]))
    assert published.result.record.parameters["n_wedge_chosen_by"] == "posterior"
    assert published.result.certificate.parameters == {
        "bound": "beta", "delta": 0.1, "n_wedge": None,
    }  # fmt: skip


def test_episodes_that_judge_have_no_part_in_the_policy():
    """The policy is that of the training part; other kinds may use all of the log."""
    share = "trajectory:train_share=0.4,horizon=2,claim=horizon"
    result = made(Terms(discount=0.9, certificates=[share, "posterior"]))
    judge = Trajectory(train_share=0.4, horizon=2, claim="horizon", reward_low=-9, reward_high=9)
    part = training_part(result.problem, 0.4, 0)
    n_wedge = result.result.record.parameters["n_wedge"]
    assert result.result.policy == SPIBB(n_wedge=n_wedge).improve(part).policy
    np.testing.assert_array_equal(result.result.table.visits, part.counts.visits)
    assert [each.kind for each in result.result.certificates] == ["trajectory", "posterior"]
    whole = certify(result.problem, result.result.policy, Posterior())
    assert result.result.certificates[1] == whole
    assert judge.train_share == result.result.certificate.parameters["train_share"]
    # Another choice of what is kept back: another policy may come of it, from other episodes.
    with pytest.raises(InvalidParameter, match="only one part of the log can choose"):
        made(Terms(discount=0.9, certificates=[share, "trajectory:train_share=0.5,horizon=2"]))
    with pytest.raises(InvalidParameter, match="has train_share 0"):
        made(Terms(discount=0.9, certificates=["trajectory:train_share=0"]))


def test_a_refusal_takes_its_place_and_says_what_was_asked():
    rows = frame_of(world(1).rows, NAMES)
    estimated = read_log(rows, columns=COLUMNS)
    result = made(Terms(discount=0.9, certificates=["posterior", "trajectory"]), estimated).result
    assert [each.kind for each in result.certificates] == ["posterior", "no-claim"]
    assert (
        result.certificates[1]
        .parameters["refusal"]
        .startswith("trajectory: the behavior policy is only estimated")
    )


def test_without_a_discount_nothing_is_claimed_and_n_wedge_must_be_given():
    one_way = [
        {"state": f"s{i % 3}", "action": f"a{i % 2}", "reward": 1.0, "next_state": f"s{i % 3 + 1}"}
        for i in range(60)
    ]
    source = read_log(frame_of(one_way, tuple(one_way[0])))
    terms = {"discount": 1, "value_bounds": (-90.0, 90.0)}
    result = improve(source, **terms, n_wedge=3)
    assert {each.kind for each in result.certificates} == {"no-claim"}
    assert result.rehearsal is None
    with pytest.raises(InvalidParameter, match=r"N∧ cannot be chosen: discount is 1.*give one"):
        improve(source, **terms)


def test_the_stress_test_is_of_the_whole_pipeline_and_is_saved(tmp_path):
    terms = Terms(discount=0.9, worlds=9)
    result = made(terms)
    problem, auto = prepared(gather(known_log()), terms)
    expected = rehearse(problem, auto, Posterior(), rng=np.random.default_rng(0), worlds=9)
    assert result.result.rehearsal.to_json() == expected.to_json()
    result.result.save(tmp_path / "out")
    assert load(tmp_path / "out").rehearsal.to_json() == expected.to_json()
    assert load(tmp_path / "out").certificates == result.result.certificates
    assert "stress test" in result.result.report
    found = verify_result(tmp_path / "out", frame_of(world(1).rows, (*NAMES, "behavior_prob")))
    assert found.level == "same bytes"


def test_small_logs_are_rehearsed_by_default_and_large_ones_are_not(monkeypatch):
    monkeypatch.setattr("surestep.pipeline.terms.MOST_STATES_REHEARSED", 128)
    problem, _ = prepared(gather(known_log()), Terms(discount=0.9))
    assert Terms(discount=0.9).worlds_for(problem) == DEFAULT_WORLDS
    assert Terms(discount=0.9, delta=0.05).worlds_for(problem) == 19  # fewer cannot calibrate
    assert Terms(discount=0.9, worlds=0).worlds_for(problem) == 0
    monkeypatch.setattr("surestep.pipeline.terms.MOST_STATES_REHEARSED", problem.num_states - 1)
    assert Terms(discount=0.9).worlds_for(problem) == 0


def test_bounds_of_rewards_give_those_of_values_and_a_claim_of_their_own():
    result = improve(known_log(), discount=0.9, reward_bounds=(-3.0, 30.0), worlds=0)
    assert result.record.parameters["value_bounds"] == [-30.0, 300.0]
    assert "value_bounds" not in result.record.defaults
    for each in result.certificates:
        assert not any("were read off the data" in sentence for sentence in each.assumptions)
    assert result.certificates[1].parameters["reward_high"] == 30.0


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"certificates": []}, "expected at least one, and none twice"),
        ({"certificates": "posterior"}, "certificates is 'posterior', expected a list of kinds"),
        ({"certificates": ["robust", Robust()]}, "none twice"),
        ({"certificates": ["no-claim"]}, "there is no certificate of the kind 'no-claim'"),
        ({"certificates": [Policy]}, "a certifier is of type type"),
        ({"reward_bounds": (3.0, 3.0)}, "reward_bounds is .*, expected two finite numbers"),
        ({"worlds": 3}, "worlds is 3, expected 0, or at least 9"),
        ({"worlds": -1}, "worlds is -1"),
        ({"worlds": 2.5}, r"worlds is 2\.5"),
        ({"n_wedge": "car"}, "n_wedge is 'car', expected a whole number, or 'auto'"),
    ],
)
def test_terms_that_make_no_sense_are_refused(terms, words):
    with pytest.raises(InvalidParameter, match=words):
        Terms(discount=0.9, **terms)
