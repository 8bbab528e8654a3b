"""Many data sets in one call: the answers of one at a time, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.settings import SETTINGS, needs_log
from support.frozen import assert_frozen
from support.gpu import NEARLY
from support.strategies import SEEDS, problems
from surestep import Pairs, Policy, evaluate
from surestep._arrays import run_owners, run_sums
from surestep.algorithms import ALGORITHMS, SPIBB, BasicRL, LowerSPIBB, improve_batch
from surestep.algorithms.batch import improve_batches
from surestep.algorithms.contract import Limits, limited
from surestep.environments import make
from surestep.errors import InvalidCounts, InvalidParameter, NeverEnds, NotConverged, ShapeMismatch
from surestep.model.batch import CountsBatch, ProblemBatch
from surestep.model.counts import LoggedRewards

CASES = [
    algorithm
    for name in ALGORITHMS
    for algorithm in SETTINGS.get(name, ())
    if not needs_log(algorithm)
]


@st.composite
def batches(draw, size=5):
    """Data sets like that of a problem, of which each saw its pairs more often, less, or never."""
    problem, rng = draw(problems(generic=True)), np.random.default_rng(draw(SEEDS))
    counts, logged = problem.counts, problem.counts.rewards
    owner, several = run_owners(counts.offsets), []
    for _ in range(size):
        often = rng.choice([0, 1, 30], counts.pairs.num_pairs)
        times = rng.binomial(counts.times, 0.7) * often[owner]
        values = logged.values
        if not logged.known:
            observed = times if logged.per == "transition" else run_sums(times, counts.offsets)
            values = rng.normal(size=values.size) * observed
        rewards = replace(logged, values=values)
        starts = rng.integers(0, 5, counts.starts.size) + counts.starts
        new = replace(counts, times=times, rewards=rewards, starts=starts)
        several.append(replace(problem, counts=new))
    return ProblemBatch.from_problems(several)


@pytest.mark.parametrize("algorithm", CASES, ids=repr)
@settings(max_examples=settings.default.max_examples // 5)
@given(problems=batches())
def test_a_batch_is_improved_as_its_problems_are(algorithm, problems):
    found = improve_batch(algorithm, problems)
    assert_frozen(found)
    assert_frozen(problems.counts)
    for index in range(problems.counts.num_data_sets):
        problem = problems.problem(index)
        improved = algorithm.improve(problem)
        alone = improved.plan
        assert found.n_wedge == improved.n_wedge
        slack = 1e-9 * max(1.0, np.abs(alone.value).max())
        assert found.value[index] == pytest.approx(alone.value, abs=slack)
        policy = Policy(problems.counts.pairs, found.policy[index])
        assert evaluate(problem.estimate(), policy) == pytest.approx(alone.value, abs=slack)
        # Rewards are noise: only pairs never visited are equally good, and the lowest of them wins.
        assert found.policy[index] == pytest.approx(alone.policy.probability, abs=1e-12)


@pytest.mark.gpu
@pytest.mark.slow
def test_data_sets_are_improved_alike_on_a_gpu(both):
    benchmark, rng = make("gridworld"), np.random.default_rng(2)
    problems = ProblemBatch.from_problems(
        [benchmark.problem(benchmark.sample(20, rng)) for _ in range(2)]
    )
    expected, found = both(lambda: improve_batch(SPIBB(n_wedge=3), problems))
    assert (found.policy == expected.policy).all()
    np.testing.assert_allclose(found.value, expected.value, **NEARLY)


@pytest.mark.parametrize("n_wedge", [2**63, pytest.param(10**400, id="huge")])
def test_more_visits_than_any_log_has_are_no_n_wedge(n_wedge):
    with pytest.raises(InvalidParameter, match="expected a whole number of at least 0"):
        SPIBB(n_wedge=n_wedge).improve(ProblemBatch(**terms()).problem(0))


def test_algorithms_that_run_at_once_give_what_each_gives_alone():
    problems = ProblemBatch(**terms())
    several = [SPIBB(n_wedge=0), LowerSPIBB(n_wedge=1), BasicRL(), SPIBB(n_wedge=3)]
    for algorithm, together in zip(several, improve_batches(several, problems), strict=True):
        alone = improve_batch(algorithm, problems)
        assert together.n_wedge == alone.n_wedge
        for name in ("policy", "value", "iterations"):
            np.testing.assert_array_equal(getattr(together, name), getattr(alone, name))
    policies = [batch.policy for batch in improve_batches(several, problems)]
    assert not np.array_equal(policies[0], policies[3])


@pytest.mark.parametrize("n_wedge", [np.int8(2), 2**61])
def test_any_number_of_visits_is_an_n_wedge(n_wedge):
    problems = ProblemBatch(**terms())
    found = improve_batch(SPIBB(n_wedge=n_wedge), problems).policy
    for index in range(2):
        alone = SPIBB(n_wedge=n_wedge).improve(problems.problem(index)).policy
        assert np.array_equal(found[index], alone.probability)


def parts(**changes):
    """The arguments of a batch of two data sets: one state, two actions that lead back."""
    return {
        "pairs": Pairs.full(1, 2),
        "offsets": np.array([0, 1, 2]),
        "successor": np.zeros(2, np.int32),
        "times": np.array([[3, 1], [2, 0]]),
        "rewards": LoggedRewards(np.array([[3.0, 1.0], [1.0, 0.0]]), "pair", False),
        "starts": np.array([[1], [2]]),
    } | changes


def seen(values, per="pair", known=False, *ends):
    return {"rewards": LoggedRewards(values, per, known, *ends)}


MEANS = [[3.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rewards": [1.0]}, "rewards is of type list, expected LoggedRewards"),
        ({"times": [3, 1]}, r"times has shape \(2,\), expected \(1, 2\)"),
        ({"times": np.zeros((0, 2))}, r"times has shape \(0, 2\), expected"),
        ({"times": [[3, 1], [2, -1]]}, r"times\[1, 1\] is -1, expected 0 or more"),
        ({"times": [[2, 1], [2**62, 0]]}, "data set 1: the sum of all times is more than"),
        ({"starts": [1, 2]}, r"starts has shape \(2,\), expected \(2, 1\)"),
        ({"starts": [[1], [0]]}, "data set 1: starts add up to 0, expected at least 1"),
        (
            {"terminal": [True], "times": [[0, 0], [2, 1]]} | seen([0.0, 0.0], known=True),
            "data set 1: state 0 is marked as terminal",
        ),
        (seen([3.0, 1.0]), r"reward has shape \(2,\), expected \(2, 2\)"),
        (seen(MEANS, known=True), r"reward has shape \(2, 2\), expected \(2,\)"),
        (seen([[3.0, 1.0], [np.nan, 0.0]]), r"reward\[1, 0\] is nan, expected a finite"),
        (
            seen([[3.0, 1.0], [1.0, 7.0]], "transition"),
            r"data set 1: reward sum of state 0, action 1 → state 0 is 7\.0, but it was never",
        ),
        (
            seen(MEANS, "pair", False, [[1, 1], [2, 0]], [[1, 1], [3, 0]]),
            r"data set 1: rewards of state 0, action 0 are 2\.0 to 3\.0, and their mean is 0\.5",
        ),
    ],
)
def test_a_batch_that_no_logs_could_have_made_is_refused(changes, message):
    with pytest.raises(InvalidCounts, match=message):
        CountsBatch(**parts(**changes))


def test_what_is_no_batch_or_no_algorithm_is_refused():
    with pytest.raises(InvalidParameter, match=r"discount is 1\.5, expected 0 to 1"):
        ProblemBatch(**terms(discount=1.5))
    with pytest.raises(InvalidParameter, match="problems is of type list, expected ProblemBatch"):
        improve_batch(BasicRL(), [])
    for wrong in (None, "spibb", 3):
        with pytest.raises(InvalidParameter, match=r"algorithm is .*, expected one of surestep\.a"):
            improve_batch(wrong, ProblemBatch(**terms()))


def test_problems_on_other_terms_are_no_batch():
    first = ProblemBatch(**terms()).problem(0)
    for change in ({"discount": 0.8}, {"value_bounds": (0.0, 9.0)}, {"unseen": "pessimistic"}):
        with pytest.raises(ShapeMismatch, match=r"problem 1 has another .* than problem 0"):
            ProblemBatch.from_problems([first, replace(first, **change)])


def terms(counts=None, **changes):
    """The arguments of a batch of problems."""
    counts = CountsBatch(**parts()) if counts is None else counts
    return {
        "counts": counts,
        "behavior": Policy.uniform(Pairs.full(1, 2)),
        "discount": 0.9,
        "value_bounds": (0.0, 10.0),
    } | changes


def test_discount_1_is_refused_where_an_estimate_never_ends():
    for algorithm in (BasicRL(), SPIBB(n_wedge=0)):
        with pytest.raises(NeverEnds, match="state 0 never ends under "):
            improve_batch(algorithm, ProblemBatch(**terms(discount=1.0)))


@pytest.mark.parametrize("limits", [None, Limits()])
def test_a_subclass_that_improves_otherwise_is_asked_to(limits):
    """The compiled loop is that of its parent: it would report SPIBB under another name."""

    class Idle(SPIBB):
        def improve(self, problem):
            return SPIBB(n_wedge=10**9).improve(problem)

    algorithm = Idle(n_wedge=0) if limits is None else limited(Idle(n_wedge=0), limits)
    problems = ProblemBatch(**terms())
    behavior = np.broadcast_to(problems.behavior.probability, (2, 2))
    assert np.array_equal(improve_batch(algorithm, problems).policy, behavior)
    assert not np.array_equal(improve_batch(SPIBB(n_wedge=0), problems).policy, behavior)


def test_rounds_are_limited(monkeypatch):
    problems = ProblemBatch(**terms())
    rounds = improve_batch(SPIBB(n_wedge=0), problems).iterations
    most = int(rounds.max())
    monkeypatch.setattr("surestep.planning.optimum.ITERATION_LIMIT", most)
    assert improve_batch(SPIBB(n_wedge=0), problems).iterations.tolist() == rounds.tolist()
    monkeypatch.setattr("surestep.planning.optimum.ITERATION_LIMIT", most - 1)
    with pytest.raises(NotConverged, match=f"stopped after {most - 1} rounds, the limit"):
        improve_batch(SPIBB(n_wedge=0), problems)


def test_values_too_large_for_doubles_are_refused():
    huge = LoggedRewards(np.array([[0.0, 1.0], [1.7e308, 0.0]]), "pair", False)
    problems = ProblemBatch(**terms(CountsBatch(**parts(rewards=huge)), discount=0.999))
    with pytest.raises(NotConverged, match="the values of data set 1 are too large for doubles"):
        improve_batch(BasicRL(), problems)
