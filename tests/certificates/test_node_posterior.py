"""The posterior over laws of nodes, against linear solves in every drawn world; its sampler.

The oracle (`support.node_world`) enumerates states and draws by itself.
"""

import math
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from support.node_world import DISCOUNT, EARNED, NEW, NODES, OLD, WORLD, dense, exact
from surestep.certificates import NodePosterior
from surestep.certificates.node_law import drawn_laws, rolled_out, sampled_log
from surestep.checks import check_structure
from surestep.environments.sysadmin import SysAdmin
from surestep.errors import InvalidParameter
from surestep.model import FactoredProblem, Pairs, Policy
from surestep.model.factored import ColumnRules

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "rare_losses.py"


def prior(weight=5.0):
    weights = np.zeros((NODES, 3))
    weights[:6] += weight / 3
    weights[6:, :2] += weight / 2
    return weights


def weights_by_heart(log):
    """The Dirichlet weights of every node under the four priors, counted row by row."""
    counts = np.zeros((NODES, 3))
    for (h, b), a, (after, light), over in zip(
        log.state.tolist(), log.action, log.next_state.tolist(), log.ended, strict=True
    ):
        counts[2 * h + a, after] += 1
        counts[6 + 3 * b + after, light] += 1
        counts[12 + light, int(over)] += 1
    counts[12] = 0  # known: nothing is counted
    alike = prior()
    pooled = np.zeros_like(alike)
    # Column h has a node for each of two actions, the others have none of an action.
    for siblings in (*([2 * h, 2 * h + 1] for h in range(3)), *([k] for k in range(6, NODES))):
        some = counts[siblings].sum(axis=0) + alike[siblings[0]]
        pooled[siblings] = 5 * some / some.sum()
    return [counts + alike, counts + alike / 2, counts + pooled, counts + pooled / 2]


def worlds_by_heart(log, draws, rng):
    return np.concatenate([drawn_laws(one, draws, rng) for one in weights_by_heart(log)])


def drawn_world(seed):
    rng = np.random.default_rng(seed)
    return drawn_laws(prior(), 1, rng)[0], rng


def posed(log, start=(1, 0)):
    return FactoredProblem(log=log, behavior=OLD, discount=DISCOUNT, start=start)


def logged(law, episodes, rng, steps=8):
    starts = np.column_stack([rng.integers(3, size=episodes), rng.integers(2, size=episodes)])
    return sampled_log(WORLD, law, OLD, starts, steps=steps, rng=rng)


@pytest.mark.one_quick
@pytest.mark.parametrize("episodes", [4, 60])
def test_gains_in_drawn_worlds_are_those_of_linear_solves(episodes):
    """With few episodes worlds differ, with many they share nearly all rollouts."""
    law, rng = drawn_world(3)
    problem = posed(logged(law, episodes, rng))
    # Where worlds differ, a hundred rollouts of its own are needed in each of all four priors.
    own = NodePosterior(draws=60, rollouts=100 if episodes == 60 else 400, seed=7)
    gains, errors = own.gains(problem, NEW)
    worlds = worlds_by_heart(problem.log, 60, np.random.default_rng(7))
    truth = np.array([(exact(law, NEW) - exact(law, OLD))[2] for law in worlds]).reshape(4, 60)
    assert np.abs((gains - truth) / errors).max() < 5
    assert errors.max() < truth.std()
    # An error that is too large would hide all mistakes: rollouts of two worlds agree no better.
    assert errors.mean() < 4 / math.sqrt(60 * 100) * (1 if episodes == 60 else 2)


def test_starts_are_weighed_like_the_episodes_of_the_log():
    law, rng = drawn_world(5)
    problem = posed(logged(law, 40, rng), start=None)
    gains, errors = NodePosterior(draws=60, rollouts=100, seed=7).gains(problem, NEW)
    drawing = np.random.default_rng(7)
    worlds = worlds_by_heart(problem.log, 60, drawing)
    share = drawing.dirichlet(np.ones(40), 60)
    begin = problem.log.starts @ [2, 1]
    truth = [
        own @ (exact(law, NEW) - exact(law, OLD))[begin]
        for law, own in zip(worlds, np.tile(share, (4, 1)), strict=True)
    ]
    assert np.abs((gains.ravel() - truth) / errors.ravel()).max() < 5


@pytest.mark.thorough
def test_the_claim_is_the_quantile_of_exact_gains_less_its_error():
    law, rng = drawn_world(3)
    problem = posed(logged(law, 60, rng))
    certifier = NodePosterior(draws=99, rollouts=200)
    claim = certifier.certify(problem, NEW)
    judged = replace(problem, log=problem.log.episodes(np.arange(18, 60)))
    worlds = worlds_by_heart(judged.log, 99, np.random.default_rng(0))
    truth = np.array([(exact(law, NEW) - exact(law, OLD))[2] for law in worlds]).reshape(4, 99)
    quantile = np.sort(truth)[:, 8]
    assert certifier.rank == 9  # 0.9 · 0.1 · 100
    z, error = stats.norm.ppf(0.99), claim.figures["standard_error"]
    assert quantile.min() - 2 * z * error < claim.lower < quantile.min()
    spread = truth[quantile.argmin()].std()
    assert claim.figures["spread"] == pytest.approx(spread, rel=0.1)
    assert (claim.standing, claim.figures["episodes"]) == ("posterior", 42)
    assert certifier.certify(problem, NEW) == claim


def test_an_unknown_practice_is_worth_what_its_episodes_returned():
    """Episodes of one step earn −0.5 or more for π_b; returns differ from rollouts by a cut."""
    law, rng = drawn_world(4)
    log = logged(law, 300, rng, steps=40)
    problem = FactoredProblem(log=log, behavior=None, discount=DISCOUNT)
    gains, errors = NodePosterior(draws=60, rollouts=100).gains(problem, NEW)
    known, _ = NodePosterior(draws=60, rollouts=100).gains(replace(problem, behavior=OLD), NEW)
    begin = log.starts @ [2, 1]
    truth = (exact(law, NEW) - exact(law, OLD))[begin].mean()
    assert abs(gains.mean() - truth) < 4 * gains.std() + 4 * errors.mean()
    assert gains.std() > known.std()  # returns of 300 episodes say less than the laws of nodes
    claim = NodePosterior(draws=60).certify(problem, NEW)
    assert "practice-as-recorded" in [said.code for said in claim.assumptions]


def wrong_claims(worlds, episodes, delta, draws=60):
    wrong = 0
    for seed in range(worlds):
        law, rng = drawn_world(1000 + seed)
        problem = posed(logged(law, episodes, rng))
        certifier = NodePosterior(delta=delta, draws=draws, rollouts=20, seed=seed)
        claim = certifier.certify(problem, NEW)
        wrong += claim.lower > (exact(law, NEW) - exact(law, OLD))[2]
    return wrong


@pytest.mark.thorough
def test_claims_are_wrong_as_rarely_as_promised_under_the_prior():
    """With δ = 0.4 not more than 40 % of claims, and not so few that anything would pass."""
    wrong = wrong_claims(40, 12, 0.4)
    assert 0.1 * 40 < wrong < stats.binom.ppf(0.9999, 40, 0.4)


@pytest.mark.slow
def test_claims_are_wrong_as_rarely_as_promised_in_many_worlds():
    """The worlds are drawn from one of the four priors under which a claim has to hold."""
    assert 0 < wrong_claims(400, 12, 0.1, 100) < stats.binom.ppf(0.9999, 400, 0.1)


RARE = runpy.run_path(str(SCRIPT))
alike, wrong_beliefs = RARE["alike"], RARE["wrong_beliefs"]


@pytest.mark.thorough
def test_rare_losses_make_no_gain_where_no_action_matters():
    """δ = 0.1. A prior of the same weight for each value makes nearly all of these claims."""
    assert wrong_beliefs(60, 0.001) <= 9
    assert wrong_beliefs(60, 0.001, priors=1) > 36
    log = alike(0, 0.001, quits=False)
    behavior = ColumnRules.of(log.structure, [], "go", chance=0.2)
    problem = FactoredProblem(log=log, behavior=behavior, discount=0.9, horizon=1)
    go = ColumnRules.of(log.structure, [], "go")
    assert NodePosterior().certify(problem, go).lower < 0
    tested = check_structure(log, go, 0.9, behavior=behavior)
    assert (tested.blind, tested.is_blind) == (0.0, True)  # waiting was seen a hundred times
    assert tested.blind_before == pytest.approx(0.1, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("quits", [False, True])
@pytest.mark.parametrize("disaster", [0.0003, 0.001, 0.003])
def test_no_gain_is_believed_too_often_where_no_action_matters(disaster, quits):
    assert wrong_beliefs(300, disaster, quits=quits) <= 0.15 * 300


def test_sampled_steps_have_the_law_of_their_nodes():
    law, rng = drawn_world(8)
    log = logged(law, 4000, rng, steps=5)
    on, _ = dense(law)
    before, after = log.state @ [2, 1], log.next_state @ [2, 1]
    for s in range(6):
        for a in range(2):
            there = (before == s) & (log.action == a)
            seen = np.bincount(after[there & ~log.ended], minlength=6)
            expected = there.sum() * on[s, a]
            assert np.abs(seen - expected).max() < 5 * np.sqrt(there.sum() * 0.25) + 1
    high = log.state[:, 0] == 2
    assert log.action[high].mean() == pytest.approx(0.75, abs=0.05)
    np.testing.assert_allclose(log.earned, EARNED[log.next_state[:, 0]] - 0.5 * log.action)


def test_sampled_episodes_stop_at_their_end_or_after_their_steps():
    law, rng = drawn_world(8)
    starts = np.zeros((300, 2), np.int64)
    most = 1 + np.arange(300) % 7
    log = sampled_log(WORLD, law, OLD, starts, steps=most, rng=rng)
    lengths = np.diff(log.offsets)
    ended = log.ended[log.offsets[1:] - 1]
    assert (log.starts == starts).all()
    assert ((lengths == most) | ended).all()
    assert log.ended.sum() == ended.sum() > 0
    inner = np.setdiff1d(np.arange(log.num_steps), log.offsets[:-1])
    assert (log.state[inner] == log.next_state[inner - 1]).all()


@pytest.mark.parametrize("horizon", [None, 3])
def test_rollouts_leave_nothing_out(horizon):
    law, rng = drawn_world(2)
    problem = replace(posed(logged(law, 1, rng)), horizon=horizon)
    starts = np.tile([[1, 0]], (4000, 1))
    for policy in (NEW, OLD):
        returns, _ = rolled_out(problem, law[np.newaxis], policy, starts, seed=1, rest=0.0)
        value = exact(law, policy)
        if horizon:
            on, earned = dense(law)
            chances = policy.chances(np.array([(h, b) for h in range(3) for b in range(2)]))
            value = np.zeros(6)
            for _ in range(horizon):
                value = (chances * (earned + DISCOUNT * on @ value)).sum(axis=1)
        assert abs(returns.mean() - value[2]) < 5 * returns.std() / math.sqrt(4000)


def test_settings_and_policies_that_do_not_fit_are_refused():
    with pytest.raises(InvalidParameter, match="draws is 5, expected at least 11"):
        NodePosterior(draws=5)
    world = SysAdmin(3)
    problem = world.problem(world.sample(world.first_failed(0.3), 20, rng=1))
    table = Policy.uniform(Pairs.full(8, 4))
    with pytest.raises(InvalidParameter, match="a policy is a table over all states"):
        NodePosterior().certify(problem, table)
