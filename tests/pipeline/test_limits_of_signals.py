"""Further signals lead to constrained policies by default, and a result says what limits keep."""

from dataclasses import replace

import numpy as np

from surestep import Counts, Policy, Problem
from surestep.algorithms import SPIBB, Constrained
from surestep.algorithms.limits import NO_LIMITS
from surestep.certificates import Posterior, Stitched
from surestep.choosing_n_wedge import ConstrainedChoice
from surestep.model.known import Known
from surestep.model.signals import Signal
from surestep.pipeline.explain import ActionReason, Explanation, in_words
from surestep.pipeline.findings import settle
from surestep.pipeline.terms import ROUNDS, Terms


def problem():
    times = np.zeros((2, 2, 2), int)
    times[0, :, 1] = 50
    counts = Counts.from_dense(times, rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    plain = Problem(
        counts=counts, behavior=Policy.uniform(counts), discount=0.9, value_bounds=(0.0, 1.0)
    )
    return replace(plain, signals=(Signal(name="dialysis", problem=plain),))


def improving(asked, **said):
    terms = Terms.of(discount=0.9, **said)
    return terms.algorithm_for(asked, Known(delta=0.1), [Stitched(), Posterior()], NO_LIMITS)


def test_where_nobody_named_an_algorithm_limits_count():
    asked = problem()
    found = improving(asked, least_visits=10)
    assert isinstance(found, ConstrainedChoice)
    assert (found.algorithm.n_wedge, found.rounds) == (9, ROUNDS)
    assert (found.certifier, found.otherwise) == (Stitched(), Posterior())
    assert improving(asked, n_wedge=7) == Constrained(n_wedge=7)
    assert improving(asked, algorithm="spibb", n_wedge=7) == SPIBB(n_wedge=7)
    assert not isinstance(improving(replace(asked, signals=())), ConstrainedChoice)
    settled = settle(replace(found, certifier=Posterior(), otherwise=None), asked)
    assert settled.algorithm.name == "constrained"
    assert settled.chosen_by is None  # N∧ is what visits were asked for
    assert settled.improvement.policy.dense()[0].tolist() == [0.0, 1.0]


def test_a_limit_that_keeps_an_action_is_named():
    def reason(action, *kept_by):
        return ActionReason((action,), 0.5, 0.5, 9, True, 0.0, 0.0, None, kept_by=kept_by)

    actions = reason("ease", "dialysis"), reason("wait"), reason("push", "dialysis", "cost")
    told = Explanation(("s",), ("s",), ("a",), "constrained", 9, False, actions, 0)
    words = " ".join(in_words(told))
    assert "'ease' is kept from being taken more often by the limit of dialysis." in words
    assert "'push' is kept from being taken more often by the limits of dialysis and cost." in words
    assert "'wait' is kept" not in words
