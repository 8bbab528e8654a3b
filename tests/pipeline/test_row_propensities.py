"""A log whose rows name probabilities that vary within a bin, and claims that say what they do."""

import numpy as np
import pytest

from surestep import improve, read_log
from surestep.errors import InvalidLog, InvalidParameter
from surestep.pipeline import certify_result, verify_result
from surestep.pipeline.terms import usual_train_share

KINDS = ["trajectory:horizon=2,claim=horizon", "robust"]


def rows_of(seed, *, vary=True, propensities=True):
    """A severity that whoever acts sees decides how likely treatment is; the state is a bin."""
    rng = np.random.default_rng(seed)
    severe = np.repeat(rng.random(150) < 0.5, 2)
    likely = np.where(severe, 0.8, 0.3) if vary else np.full(300, 0.5)
    treated = rng.random(300) < likely
    table = {
        "episode": np.repeat(np.arange(150), 2),
        "step": np.tile([0, 1], 150),
        "score": rng.random(300),
        "action": np.where(treated, "treat", "wait"),
        "reward": (rng.random(300) < 0.3 + 0.5 * treated - 0.2 * severe).astype(float),
        "terminated": np.tile([False, True], 150),
    }
    return table | ({"pscore": np.where(treated, likely, 1 - likely)} if propensities else {})


def log_of(*given, **settings):
    columns = {"state": "score"}
    return read_log(rows_of(*given, **settings), columns=columns, bins={"score": {"edges": [0.5]}})


def improved(source, **settings):
    settings = {"certificates": KINDS, "running": (0.0, 1.0), "ending": (0.0, 1.0)} | settings
    return improve(source, discount=0.9, n_wedge=10, worlds=0, **settings)


def codes(claim):
    return [each.code for each in claim.assumptions]


@pytest.mark.thorough
def test_each_kind_says_what_it_does_where_probabilities_vary_within_a_state(tmp_path):
    result = improved(log_of(0))
    assert result.record.parameters.behavior == "row-propensities"
    by_episodes, by_model = result.certificates
    assert by_episodes.kind == "trajectory"
    assert "propensities-of-rows" in codes(by_episodes)
    assert not {"markov", "no-hidden-causes"} & {*codes(by_episodes)}
    assert {"markov", "no-hidden-causes", "behavior-estimated"} <= {*codes(by_model)}
    assert "acted-on-more" in codes(by_episodes)
    assert "acted-on-more" in codes(by_model)
    # Weights are those of rows: the effective number of episodes is not that of any mean.
    policy = dict(zip(result.table.vocabulary.states, result.policy.dense(), strict=True))
    rows = rows_of(0)
    label = np.where(rows["score"] < 0.5, "< 0.5", ">= 0.5")
    actions = [text for (text,) in result.table.vocabulary.actions]
    chance = [policy[(s,)][actions.index(a)] for s, a in zip(label, rows["action"], strict=True)]
    chosen = round(usual_train_share(150) * 150)
    weight = (np.array(chance) / rows["pscore"]).reshape(-1, 2).prod(axis=1)[chosen:]
    figures = by_episodes.figures
    assert figures["effective_episodes"] == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert figures["largest_weight"] == pytest.approx(weight.max())
    # The page, what is saved, and what is made again.
    page = result.report
    assert "The current policy was estimated" in page
    result.save(tmp_path / "result")
    assert verify_result(tmp_path / "result", rows_of(0)).confirmed
    later = certify_result(tmp_path / "result", rows_of(1), KINDS).certificates
    assert "propensities-of-rows" in codes(later[0])
    assert [codes(claim).count("acted-on-more") for claim in later] == [1, 1]


@pytest.mark.thorough
def test_where_probabilities_are_those_of_states_nothing_is_estimated():
    result = improved(log_of(0, vary=False))
    assert result.record.parameters.behavior == "propensities"
    assert "behavior-known" in codes(result.certificates[0])
    chosen = improved(log_of(0, vary=False), behavior="row-propensities")
    assert "propensities-of-rows" in codes(chosen.certificates[0])
    assert "acted-on-more" not in codes(chosen.certificates[0])


def test_who_wants_probabilities_of_states_is_told_what_else_there_is():
    with pytest.raises(
        InvalidLog, match=r"between 0\.3 and 0\.8.*or say behavior='row-propensities'"
    ):
        improved(log_of(0), behavior="propensities")
    with pytest.raises(InvalidParameter, match="behavior is 'row-propensities', but no column"):
        improved(log_of(0, propensities=False), behavior="row-propensities")
    with pytest.raises(InvalidParameter, match="propensities are asked for"):
        log_of(0, propensities=False).load(propensities=True)


@pytest.mark.thorough
def test_a_randomised_trial_is_known_without_a_table(tmp_path):
    """Half and half in every state; recorded, verified and certified as a table is."""
    source = log_of(0, vary=False, propensities=False)
    result = improved(source, behavior="uniform", certificates=["trajectory", "robust"])
    assert result.record.parameters.behavior == "uniform"
    assert not result.record.behavior_is_estimated
    assert result.table.behavior[result.table.decided].tolist() == [0.5] * 4
    assert all("behavior-known" in codes(claim) for claim in result.certificates)
    assert "--behavior uniform" in result.record.command
    result.save(tmp_path / "result")
    verify_result(tmp_path / "result", rows_of(0, vary=False, propensities=False))
    scores = ["< 0.5"] * 2 + [">= 0.5"] * 2
    table = {"score": scores, "action": ["wait", "treat"] * 2, "probability": [0.5] * 4}
    same = improved(source, behavior=table, certificates=["trajectory", "robust"])
    claims = [[claim.lower for claim in each.certificates] for each in (result, same)]
    assert claims[0] == pytest.approx(claims[1], abs=1e-9)


def test_a_column_named_propensity_score_is_one_of_propensities():
    rows = rows_of(0)
    rows["propensity_score"] = rows.pop("pscore")
    source = read_log(rows, columns={"state": "score"}, bins={"score": {"edges": [0.5]}})
    assert source.columns.propensity == "propensity_score"
