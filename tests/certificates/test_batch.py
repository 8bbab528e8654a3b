"""Certificates of many problems at once, against those of one problem at a time."""

from dataclasses import replace

import numpy as np
import pytest

from surestep import certify
from surestep.algorithms import SPIBB
from surestep.certificates import APriori, Robust, Stitched, certify_many
from surestep.environments import make
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.planning import robust


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
    *found, refused = certify_many(problems, policies, certifier)
    monkeypatch.setattr(robust, "SMALL", 0)  # no set is small: each is done on its own
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
    certifiers = [Stitched(seed=seed, logger="fixed", series=96) for seed in range(len(problems))]
    *found, refused = certify_many(problems, policies, certifiers)
    for claim, *each in zip(found, problems, policies, certifiers, strict=False):
        assert claim == certify(*each)
    assert found[1].lower > 0
    assert refused.code == "no-log"


@pytest.mark.gpu
@pytest.mark.slow
def test_stitched_certificates_on_a_gpu_are_the_same_to_the_bit(both):
    benchmark, rng = make("gridworld", size=2), np.random.default_rng(0)
    problems = [benchmark.problem(benchmark.sample(9 + i, rng)) for i in range(3)]
    policies = [SPIBB(n_wedge=1).improve(problem).policy for problem in problems]
    certifiers = [Stitched(train_share=0.0, seed=seed) for seed in range(3)]
    expected, found = both(lambda: certify_many(problems, policies, certifiers))
    assert [claim.lower for claim in found] == [claim.lower for claim in expected]


def test_other_certifiers_answer_one_by_one(asked):
    problems, policies = asked
    found = certify_many(problems, policies, APriori(bound="spibb", delta=0.1))
    assert len(found) == len(problems)
    assert certify_many([], [], Robust()) == []


def test_certifiers_of_several_settings_are_asked_together(asked):
    problems, policies = ([part[1]] * 3 for part in asked)
    settings = [{"set": "interval"}, {"set": "l1"}, {"delta": 0.03}]
    certifiers = [Robust(**each, reward_low=0.0, reward_high=1.0) for each in settings]
    assert certify_many(problems, policies, certifiers) == [
        *map(certify, problems, policies, certifiers)
    ]


def test_every_problem_needs_a_policy(asked):
    problems, policies = asked
    with pytest.raises(InvalidParameter, match="4 problems, 1 policies and 4 certifiers, expected"):
        certify_many(problems, policies[:1], Robust())
