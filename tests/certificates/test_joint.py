"""Joint claims about several signals, held against truths, first where they could fail.

A claim that may fail with probability δ is allowed as many failures as one that fails exactly that
often would exceed once in 10⁶ tests. A form that is not valid must fail far more often.
"""

import json
import pickle
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import msgspec
import numpy as np
import pytest
import scipy.stats

import surestep.choosing_within_limits as choosing
from support.failures import allowed_failures
from support.problems import logged_problem
from surestep import Certificate, FiniteMDP, Policy, performance, sample_log
from surestep.algorithms import Constrained
from surestep.certificates import Certifier, Posterior, Robust, Stitched, certify, verify
from surestep.certificates.common import Needs, SignalPart, claim_of, values_statement
from surestep.certificates.uncertainty import SetTerms, uncertainty_of
from surestep.choosing_within_limits import ConstrainedChoice
from surestep.errors import CertificateMismatch
from surestep.model import Reach, Signal, reaching
from surestep.model.known import Known
from surestep.model.problem import stopped
from surestep.planning import reachability

DELTA, DISCOUNT, WITHIN = 0.1, 0.9, 6
HERE, THERE, UNSAFE, END = range(4)
UNSAFE_STATES = np.arange(4) == UNSAFE
UNIT = {"reward_low": 0.0, "reward_high": 1.0}
TOLD = Known(reward_bounds=(0.0, 1.0), rewards_vary=True, returns=(0.0, 10.0))
KINDS = {
    "stitched": Stitched(delta=DELTA, series=6, return_low=0.0, return_high=10.0, tails=0.0),
    "robust": Robust(delta=DELTA, **UNIT),
    "posterior": Posterior(delta=DELTA, draws=49, rewards="bounded", **UNIT),
}
LOGS = 15


def models_of(first, second, risk):
    """Two actions: mean rewards of each signal, and a chance to get to the unsafe state."""
    P, R = np.zeros((4, 2, 4)), np.zeros((2, 4, 2))
    P[[HERE, THERE], :, HERE] = P[[HERE, THERE], :, THERE] = 0.35
    P[[HERE, THERE], :, UNSAFE] = risk
    P[[HERE, THERE], :, END] = 0.3 - np.array(risk)
    P[UNSAFE, :, END] = 1.0
    R[0, [HERE, THERE]], R[1, [HERE, THERE]] = first, second
    return [FiniteMDP.from_dense(P, each, DISCOUNT) for each in R]


def taking(bold, models):
    """The policy that takes the second action with this chance in every state."""
    return Policy(models[0].pairs, np.tile([1 - bold, bold], 4))


def problem_of(log, reward, behavior):
    """The problem of a log with these rewards."""
    log = replace(log, reward=reward.astype(float))
    size = log.pairs.num_states
    counts = replace(log.counts(), terminal=np.arange(size) == size - 1)
    return logged_problem(log, DISCOUNT, (0.0, 10.0), behavior, counts=counts)


def posed(models, behavior, *, episodes=80, seed=0, opposed=False, margins=(0.0, 0.0)):
    """The problem of a log with rewards of 0 and 1, its second signal and the chance."""
    rng = np.random.default_rng(seed)
    log = sample_log(models[0], behavior, episodes, 20, rng)
    one, two = rng.random((2, log.num_steps))
    draws = (one, 1 - one if opposed else two)  # 1 of either: 0 of the other
    parts = [
        problem_of(log, draw < model.expected_reward[log.pair], behavior)
        for model, draw in zip(models, draws, strict=True)
    ]
    chance = reaching(parts[0], Reach(UNSAFE_STATES, WITHIN))
    signals = (
        Signal(name="second", problem=parts[1], margin=margins[0], known=TOLD),
        Signal(name="unsafe", problem=chance, margin=margins[1], cost=True),
    )
    return replace(parts[0], signals=signals)


def truths(models, policy, behavior):
    """Gains of all signals, and what their displayed bounds must not be above."""
    gains = [performance(each, policy) - performance(each, behavior) for each in models]
    before, after = (
        models[0].initial @ reachability(models[0], UNSAFE_STATES, each, within=WITHIN).lower
        for each in (behavior, policy)
    )
    return [*gains, before - after], [*gains, -after]


# In none of these worlds do all limits hold, so that every joint claim is wrong.
WORLDS = {
    # first and second signal, risk of the unsafe state, margins of the second and of the chance
    "no effect": (models_of((0.5, 0.5), (0.5, 0.5), (0.02, 0.02)), (0.0, 0.0)),
    "opposed": (models_of((0.1, 0.9), (0.9, 0.1), (0.02, 0.02)), (0.0, 0.5)),
    "never seen": (models_of((0.1, 0.9), (0.5, 0.5), (0.0, 1e-6)), (2.0, 0.0)),
}


# Every world and every kind are tried; those that are not yet together, by `make test-all`.
TOGETHER = {
    "no effect": ("stitched",),
    "opposed": ("robust",),
    "never seen": ("posterior",),
}


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("world", "kind"),
    [
        pytest.param(*pair, marks=[] if pair[1] in TOGETHER[pair[0]] else [pytest.mark.slow])
        for pair in product(WORLDS, KINDS)
    ],
)
def test_joint_claims_are_wrong_no_more_often_than_they_may_be(world, kind):
    models, margins = WORLDS[world]
    behavior, policy = taking(0.5, models), taking(0.9, models)
    gains, shown = truths(models, policy, behavior)
    assert gains[0] <= 1e-9 or gains[1] < -margins[0] or gains[2] < -margins[1]
    wrong = too_high = 0
    for seed in range(LOGS):
        problem = posed(models, behavior, seed=seed, opposed=world == "opposed", margins=margins)
        assert world != "never seen" or not (problem.log.next_state == UNSAFE).any()
        claim = certify(problem, policy, KINDS[kind])
        wrong += claim.none_worse
        too_high += any(
            part.lower > truth + 1e-9 for part, truth in zip(claim.signals, shown, strict=True)
        )
    assert max(wrong, too_high) <= allowed_failures(LOGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal(Certifier):
    """An interval of one-step gains that is wrong as often as it may be, but for the log's size."""

    delta: float = DELTA

    name: ClassVar = "normal"
    value_figures: ClassVar = frozenset()
    needs: ClassVar = Needs()
    may_choose: ClassVar = False

    def certify(self, problem, policy):
        log = problem.log
        weight = policy.probability[log.pair] / problem.behavior.probability[log.pair]
        gain = (weight - 1) * log.reward
        error = gain.std(ddof=1) / np.sqrt(gain.size)
        lower = float(gain.mean() - scipy.stats.norm.isf(self.delta) * error)
        return claim_of(
            self, problem, lower, "asymptotic", assumptions=(values_statement(problem),)
        )


@pytest.mark.thorough
def test_bounds_at_the_whole_delta_do_not_hold_at_once_and_shared_ones_do():
    P = np.zeros((2, 2, 2))
    P[0, :, 1] = 1.0
    mdp = FiniteMDP.from_dense(P, np.zeros((2, 2)), DISCOUNT)
    behavior, policy = Policy.uniform(mdp), Policy.from_dense(mdp, [[0.1, 0.9]] * 2)
    logs, naive, shared = 60, 0, 0
    for seed in range(logs):
        rng = np.random.default_rng(seed)
        log = sample_log(mdp, behavior, 200, 1, rng)
        parts = [problem_of(log, rng.normal(size=log.num_steps), behavior) for _ in range(7)]
        signals = tuple(Signal(name=f"s{k}", problem=p) for k, p in enumerate(parts[1:]))
        found = certify(replace(parts[0], signals=signals), policy, Normal()).signals
        naive += any(part.tested > 0 for part in found)  # no action has any effect
        shared += any(part.lower > 0 for part in found)
    assert shared <= allowed_failures(logs)
    assert naive > allowed_failures(logs)


@pytest.mark.parametrize("known_start", [False, True])
def test_robust_bounds_have_the_same_sets_of_rows_for_all_signals(known_start):
    models = models_of((0.3, 0.7), (0.5, 0.5), (0.02, 0.05))
    problem = posed(models, taking(0.5, models))
    parts = [problem, *(signal.problem for signal in problem.signals)]
    shares = Robust(known_start=known_start).shares(parts)
    rows, rewards = 6 + (not known_start), 6  # pairs in which somebody decides
    total = rows + 2 * rewards
    chance_rows = rows - 2  # nothing is decided any more in the unsafe state
    expected = [(rows + rewards) / total, (rows + rewards) / total, chance_rows / total]
    assert shares == pytest.approx(expected, abs=1e-15)
    terms = SetTerms(delta=DELTA, reward_low=0.0, reward_high=1.0, known_start=known_start)
    each = [terms, terms, replace(terms, reward_low=None, reward_high=None)]
    sets = [
        uncertainty_of(stopped(part), replace(one, delta=share * DELTA))
        for part, share, one in zip(parts, shares, each, strict=True)
    ]
    end = problem.counts.offsets[2 * UNSAFE]  # of the states that come before the unsafe one
    for name in ("low", "high"):
        one, two, chance = (getattr(each.models.rows, name)[:end] for each in sets)
        np.testing.assert_allclose(two, one, rtol=1e-12)
        np.testing.assert_allclose(chance, one, rtol=1e-12)


def test_all_hold_by_the_share_of_draws_in_which_all_do():
    models = models_of((0.2, 0.9), (0.5, 0.45), (0.02, 0.05))
    behavior, policy = taking(0.5, models), taking(0.9, models)
    judge = KINDS["posterior"]
    problem = posed(models, behavior, episodes=400, margins=(0.0, 1.0))
    tested = [problem, *(SignalPart.of(signal).tested for signal in problem.signals)]
    settings = [judge, judge, Posterior(delta=DELTA, draws=judge.draws)]
    (first,), (second,), _ = judge.gains_each(settings, tested, [[policy]] * 3)
    lost = np.count_nonzero(first <= 0)
    assert lost < judge.rank
    order = np.sort(second[first > 0])
    most = judge.rank - 1 - lost  # further draws that may break the limit
    for place, holds in ((most, True), (most + 1, False)):
        margin = -float(order[place])
        signals = (replace(problem.signals[0], margin=margin), problem.signals[1])
        claim = certify(replace(problem, signals=signals), policy, judge)
        broken = sum(a <= 0 or b < -margin for a, b in zip(first, second, strict=True))
        assert (broken < judge.rank) == holds == claim.none_worse
    shown = [tested[0], tested[1], SignalPart.of(problem.signals[1]).shown]
    lower = np.array([[part.lower] for part in claim.signals])
    below = (np.concatenate(judge.gains_each(settings, shown, [[policy]] * 3)) < lower).any(axis=0)
    assert np.count_nonzero(below) < judge.rank


@pytest.mark.parametrize("kind", KINDS)
def test_all_hold_only_if_each_does(kind):
    models = models_of((0.0, 1.0), (0.5, 0.5), (0.02, 0.02))
    behavior, policy = taking(0.3, models), taking(0.7, models)
    judge, wide = KINDS[kind], (9.0, 0.99)
    problem = posed(models, behavior, episodes=20_000 if kind == "robust" else 400, margins=wide)
    assert certify(problem, policy, judge).none_worse
    second, unsafe = problem.signals
    for signals in ((replace(second, margin=0.0), unsafe), (second, replace(unsafe, margin=0.0))):
        assert not certify(replace(problem, signals=signals), policy, judge).none_worse


@pytest.mark.parametrize("kind", KINDS)
def test_certificates_with_signals_are_kept_and_verified(kind):
    models = models_of((0.3, 0.7), (0.5, 0.5), (0.02, 0.05))
    behavior, policy = taking(0.5, models), taking(0.7, models)
    problem = posed(models, behavior)
    claim = certify(problem, policy, KINDS[kind])
    assert [part.name for part in claim.signals] == ["reward", "second", "unsafe"]
    assert Certificate.from_json(claim.to_json()) == claim
    assert pickle.loads(pickle.dumps(claim)) == claim  # noqa: S301
    assert verify(claim, problem, policy) == claim
    for change in ({"lower": 0.5}, {"holds": True}, {"limit": -3.0}, {"name": "third"}):
        forged = msgspec.structs.replace(claim.signals[1], **change)
        signals = (claim.signals[0], forged, claim.signals[2])
        with pytest.raises(CertificateMismatch, match="signals"):
            verify(replace(claim, signals=signals), problem, policy)
    with pytest.raises(CertificateMismatch, match="number of signals"):
        verify(replace(claim, signals=claim.signals[:2]), problem, policy)
    plain = certify(replace(problem, signals=()), policy, KINDS[kind])
    assert "signals" not in json.loads(plain.to_json())
    assert (plain.lower, plain.none_worse) == (claim.lower, True)


@pytest.mark.parametrize("kind", KINDS)
def test_where_no_policy_within_the_limits_is_found_nothing_changes(kind, monkeypatch):
    models = models_of((0.3, 0.7), (0.5, 0.5), (0.02, 0.05))
    behavior = taking(0.5, models)
    monkeypatch.setattr(choosing, "candidate", lambda *_: [])
    way = ConstrainedChoice(algorithm=Constrained(n_wedge=5), certifier=KINDS[kind])
    assert way.improve(posed(models, behavior)).policy == behavior
