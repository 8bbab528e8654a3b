"""Certificates of many problems at once, against those of one problem at a time."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from surestep import certify
from surestep.algorithms import SPIBB
from surestep.certificates import APriori, Posterior, Robust, Stitched, certify_batch
from surestep.certificates.bounding import choosing_bounds_each, claims_of, gains_each
from surestep.certificates.certifying import certify_each
from surestep.environments import make
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.planning import robust_batch


@pytest.fixture(scope="module")
def asked():
    """Data sets of Gridworld of several sizes, with SPIBB's policies; the last bounds are wrong."""
    benchmark = make("gridworld")
    problems = [
        benchmark.problem(benchmark.sample(episodes, np.random.default_rng(episodes)))
        for episodes in (5, 1000, 1500, 1000)
    ]
    problems[3] = replace(problems[3], value_bounds=(50.0, 60.0))
    return problems, [SPIBB(n_wedge=27).improve(problem).policy for problem in problems]


@pytest.mark.parametrize(
    "kind",
    ["interval", *(pytest.param(k, marks=pytest.mark.slow) for k in ("l1", "two-successor"))],
)
def test_robust_certificates_of_a_batch_are_those_of_the_loop_for_one_set(asked, kind, monkeypatch):
    problems, policies = asked
    certifier = Robust(set=kind, reward_low=0.0, reward_high=1.0, delta=0.2)
    *found, refused = certify_batch(problems, policies, certifier)
    monkeypatch.setattr(robust_batch, "SMALL", 0)  # no set is small: each is done on its own
    for claim, *each in zip(found, problems[:3], policies[:3], strict=True):
        single = certify(*each, certifier)
        errors = claim.figures["evaluation_error"] + single.figures["evaluation_error"]
        assert abs(claim.lower - single.lower) <= errors <= 1e-6
        assert claim.assumptions == single.assumptions
        assert claim.figures.keys() == single.figures.keys()
    assert len({claim.lower for claim in found}) == 3
    with pytest.raises(CertificateRefused) as single:
        certify(problems[3], policies[3], certifier)
    assert isinstance(refused, CertificateRefused)
    assert str(refused).startswith("value_bounds is (50.0, 60.0), but by the data a value of")
    assert str(single.value).startswith("value_bounds is (50.0, 60.0), but by the data a value of")


def test_stitched_certificates_of_several_logs_are_those_of_each_alone(asked):
    """Logs of other lengths, seeds of their own, another problem, π_b itself, and a refusal."""
    problems, policies = ([*part[:2], part[2]] for part in asked)
    wet = make("wet-chicken")
    problems.append(wet.problem(wet.sample(60, np.random.default_rng(0))))
    policies.append(SPIBB(n_wedge=5).improve(problems[-1]).policy)
    problems += [problems[1], replace(problems[1], log=None)]
    policies += [problems[1].behavior, policies[1]]
    certifiers = [Stitched(seed=seed, logger="fixed") for seed in range(len(problems))]
    *found, refused = certify_each(problems, policies, certifiers)
    for claim, *each in zip(found, problems, policies, certifiers, strict=False):
        assert claim == certify(*each)
    assert found[1].lower > 0
    assert refused.code == "no-log"


def test_other_certifiers_answer_one_by_one(asked):
    problems, policies = asked
    found = certify_batch(problems, policies, APriori(bound="spibb", delta=0.1))
    assert len(found) == len(problems)
    assert certify_batch([], [], Robust()) == []


def test_every_problem_needs_a_policy(asked):
    problems, policies = asked
    with pytest.raises(InvalidParameter, match="4 problems and 1 policies, expected a policy"):
        certify_batch(problems, policies[:1], Robust())


def test_a_subclass_with_a_claim_of_its_own_is_asked_for_it(asked):
    """What parents say of many problems at once is not what their children say of each."""
    problems, policies = asked
    timid = certify(problems[0], problems[0].behavior, Stitched())

    @dataclass(frozen=True)
    class Timid(Stitched):
        def certify(self, problem, policy):
            return timid

        def choosing_bounds(self, problem, policies, again):
            return [-1.0] * len(policies)

    @dataclass(frozen=True)
    class Doubting(Posterior):
        def gains(self, problem, policies):
            return np.full((len(policies), self.draws), -1.0)

    assert claims_of([Timid()] * 2, problems[:2], policies[:2]) == [timid] * 2
    several = [[policy] for policy in policies[:2]]
    assert choosing_bounds_each(Timid(), problems[:2], several, None) == [[-1.0]] * 2
    doubts = gains_each([Doubting(draws=9)] * 2, problems[:2], several)
    assert np.array_equal(doubts, np.full((2, 1, 9), -1.0))
