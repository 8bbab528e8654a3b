"""A GPU gives the processor's answers: streams to the bit where nothing rounds, values nearly so.

Sizes are tiny for what simulates a GPU. What takes long to compile for it is slow there.
"""

import numpy as np
import pytest
from numba import config, njit

from support.problems import uniform_problem
from surestep import (
    Counts,
    FiniteMDP,
    MDPBatch,
    Pairs,
    Policy,
    Problem,
    certify,
    device,
    evaluate_batch,
    optimal_batch,
    value_iteration,
)
from surestep.algorithms import SPIBB, improve_batch
from surestep.certificates import Posterior, Stitched, drawn, posterior, stepping
from surestep.certificates.common import Question
from surestep.checks.shuffling import shuffle_test
from surestep.environments import make
from surestep.kernels import _cuda, _device
from surestep.kernels._cuda import THREADS_A_BLOCK, Gpu, is_frozen
from surestep.kernels._device import brought_home, device_in_use, machine_for, require_gpu
from surestep.kernels._types import FloatsIn, FloatsOut, IntsOut, Room, RoomSize
from surestep.kernels.elimination import evaluate_each, room_to_evaluate
from surestep.kernels.random_streams import beta, gamma, start_stream, uniform
from surestep.model.batch import ProblemBatch
from surestep.model.counts import LoggedRewards
from surestep.model.signals import Reach, reaching
from surestep.planning.batch import models_of, plan_elimination
from surestep.planning.pruning import Backup

MANY = 9 if config.ENABLE_CUDASIM else 5_000
NEARLY = {"rtol": 1e-10, "atol": 1e-12}


def both(do):
    """What comes back on the processor, and on the GPU."""
    with device("cpu"):
        expected = do()
    with device("cuda"):
        assert device_in_use() != "cpu"
        return expected, do()


def random_model(states=6, actions=2, width=3, seed=0):
    """A model with noise in everything, γ = 0.9."""
    rng = np.random.default_rng(seed)
    pairs = Pairs.full(states, actions)
    successor = np.stack([rng.choice(states, width, False) for _ in range(pairs.num_pairs)])
    return FiniteMDP(
        pairs,
        np.arange(pairs.num_pairs + 1) * width,
        np.sort(successor, axis=1).ravel(),
        rng.dirichlet(np.ones(width), pairs.num_pairs).ravel(),
        rng.normal(size=pairs.num_pairs * width),
        np.full(pairs.num_pairs, 0.9),
        rng.dirichlet(np.ones(states)),
    )


def batch_of_models(size):
    """As many models, over the same successors."""
    model, rng = random_model(), np.random.default_rng(1)
    rows = (size, model.pairs.num_pairs, 3)
    return MDPBatch(
        model.pairs,
        model.offsets,
        model.successor,
        rng.dirichlet(np.ones(3), rows[:2]).reshape(size, -1),
        rng.normal(size=rows[:2]),
        model.discount,
        model.initial,
    )


def counted_problem(states=5, seed=0):
    """Counts of a random model, with rewards that are known."""
    rng = np.random.default_rng(seed)
    pairs = Pairs.full(states, 2)
    successor = np.stack([rng.choice(states, 2, False) for _ in range(pairs.num_pairs)])
    counts = Counts(
        pairs,
        np.arange(pairs.num_pairs + 1) * 2,
        np.sort(successor, axis=1).ravel(),
        rng.integers(1, 9, pairs.num_pairs * 2),
        LoggedRewards(rng.random(pairs.num_pairs), "pair", True),
        np.full(states, 2),
    )
    problem = uniform_problem(counts, 0.9, (0.0, 10.0))
    return problem, Policy.deterministic(pairs, np.zeros(states, int))


def draw_numbers(
    first: int, last: int, room: Room, seed: int, shape: float, words: IntsOut, numbers: FloatsOut
) -> None:
    for task in range(first, last):
        u, stream = uniform(start_stream(seed, task, 3))
        words[task] = int(u * 2.0**52)
        x, stream = gamma(stream, shape)
        y, stream = beta(stream, shape, 2.0)
        room.floats[0], room.floats[1], room.ints[0] = x, y, task
        numbers[task] = room.floats[0] + room.floats[1] + room.ints[0]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.3, 1.0, 40.0])
def test_streams_are_the_same_to_the_bit_and_their_numbers_nearly(shape):
    number = 3 * THREADS_A_BLOCK + 1 if not config.ENABLE_CUDASIM else 7

    def draw(run):
        words, numbers = np.zeros(number, np.int64), np.zeros(number)
        run((5, shape, words, numbers))
        return words, numbers

    def on_the_processor(args):
        njit(draw_numbers)(0, number, RoomSize(2, 1).room(), *args)

    def on_the_gpu(args):
        assert require_gpu().run(draw_numbers, number, RoomSize(2, 1), args)

    with device("cuda"):
        words, numbers = draw(on_the_gpu)
    expected_words, expected = draw(on_the_processor)
    assert (words == expected_words).all()
    np.testing.assert_allclose(numbers, expected, **NEARLY)


def test_batches_are_evaluated_alike():
    batch = batch_of_models(2 if config.ENABLE_CUDASIM else MANY)
    uniform_policy = Policy.uniform(batch.pairs)
    expected, found = both(lambda: evaluate_batch(batch, uniform_policy))
    np.testing.assert_allclose(found.value, expected.value, **NEARLY)
    assert (np.abs(found.value - expected.value) <= found.error_bound.max()).all()


@pytest.mark.slow
def test_batches_are_optimised_alike():
    batch = batch_of_models(MANY)
    expected, found = both(lambda: optimal_batch(batch))
    np.testing.assert_allclose(found.value, expected.value, **NEARLY)
    assert (found.probability == expected.probability).all()
    assert (found.iterations == expected.iterations).all()


@pytest.mark.slow
def test_data_sets_are_improved_alike():
    benchmark, rng = make("gridworld"), np.random.default_rng(2)
    problems = ProblemBatch.from_problems(
        [benchmark.problem(benchmark.sample(20, rng)) for _ in range(2)]
    )
    expected, found = both(lambda: improve_batch(SPIBB(n_wedge=3), problems))
    assert (found.policy == expected.policy).all()
    np.testing.assert_allclose(found.value, expected.value, **NEARLY)


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["cautious", "weight", "pooled", "uniform"])
def test_claims_from_drawn_models_are_alike(prior):
    problem, policy = counted_problem()
    certifier = Posterior(draws=MANY, prior=prior, seed=4)
    expected, found = both(lambda: certify(problem, policy, certifier))
    assert found.lower == pytest.approx(expected.lower, rel=1e-9)


@pytest.mark.slow
def test_claims_with_noisy_rewards_are_alike():
    benchmark = make("gridworld", size=2)
    log = benchmark.sample(30, np.random.default_rng(0))
    problem = benchmark.problem(log)
    policy = SPIBB(n_wedge=2).improve(problem).policy
    certifier = Posterior(
        draws=MANY, rewards="bounded", reward_low=-1.0, reward_high=2.0, extreme_weight=1.0
    )
    expected, found = both(lambda: certify(problem, policy, certifier))
    assert found.lower == pytest.approx(expected.lower, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_large_drawn_models_are_stepped_to_the_same_values(discount, monkeypatch):
    monkeypatch.setattr(drawn, "SMALL", 2)
    problem, policy = counted_problem()
    if discount == 1.0:  # every pair ends at once with some chance: the last state is an end
        over = np.arange(5) == 4
        problem = Problem(
            counts=Counts(
                problem.counts.pairs,
                problem.counts.offsets,
                np.tile([1, 4], 10),
                problem.counts.times * np.repeat(~over, 4),
                problem.counts.rewards,
                np.where(over, 0, 2),
                over,
            ),
            behavior=problem.behavior,
            discount=1.0,
            value_bounds=(0.0, 50.0),
        )
    certifier = Posterior(draws=MANY, prior="weight", prior_weight=0.5)
    expected, found = both(lambda: certify(problem, policy, certifier))
    apart = expected.figures["evaluation_error"] + found.figures["evaluation_error"]
    assert abs(found.lower - expected.lower) <= apart < 1e-3


@pytest.mark.slow
def test_stitched_rounds_are_alike_to_the_bit():
    benchmark = make("gridworld", size=2)
    problem = benchmark.problem(benchmark.sample(12, np.random.default_rng(0)))
    policy = SPIBB(n_wedge=1).improve(problem).policy
    certifier = Stitched(train_share=0.0)
    expected, found = both(lambda: certify(problem, policy, certifier))
    assert found.lower == expected.lower


@pytest.mark.slow
@pytest.mark.parametrize("small", [128, 2])
def test_claims_about_chances_are_alike(small, monkeypatch):
    monkeypatch.setattr(drawn, "SMALL", small)
    benchmark = make("gridworld", size=2)
    whole = benchmark.problem(benchmark.sample(12, np.random.default_rng(0)))
    policy = SPIBB(n_wedge=1).improve(whole).policy
    problem = reaching(whole, Reach(np.arange(whole.num_states) == 1, 3, alone=True))
    for certifier in (Posterior(draws=MANY), Stitched(train_share=0.0)):
        expected, found = both(lambda judge=certifier: certify(problem, policy, judge))
        assert found.lower == pytest.approx(expected.lower, rel=1e-9)


@pytest.mark.slow
def test_data_sets_that_are_judged_together_are_judged_alike():
    benchmark, rng = make("gridworld", size=2), np.random.default_rng(0)
    problems = [benchmark.problem(benchmark.sample(9 + i, rng)) for i in range(3)]
    policies = [SPIBB(n_wedge=1).improve(problem).policy for problem in problems]
    believers = [Posterior(draws=9, seed=seed) for seed in range(3)]
    several = [[policy, problems[0].behavior] for policy in policies]
    expected, found = both(lambda: posterior.gains_each(believers, problems, several))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, **NEARLY)
    asked = [
        Question(Stitched(train_share=0.0, seed=seed), problem, policy)
        for seed, (problem, policy) in enumerate(zip(problems, policies, strict=True))
    ]
    expected, found = both(lambda: Stitched.certify_many(asked))
    assert [claim.lower for claim in found] == [claim.lower for claim in expected]


@pytest.mark.slow
def test_shuffles_are_alike():
    rng = np.random.default_rng(0)
    group, past = np.repeat([0, 1], 6), np.tile([0, 1], 6)
    label, number = rng.integers(0, 2, 12), rng.normal(size=12)
    for test, outcome in ((shuffle_test, label), (shuffle_test, number)):
        expected, found = both(lambda test=test, outcome=outcome: test(
            group, past, outcome, seed=1, level=0.1
        ))  # fmt: skip
        assert found.p_value == expected.p_value


def test_large_models_are_planned_alike():
    mdp = random_model(states=9, seed=3)
    expected, found = both(lambda: value_iteration(mdp, tolerance=1e-6))
    np.testing.assert_allclose(found.value, expected.value, atol=2e-6)
    assert isinstance(found.value, np.ndarray)
    assert (found.policy.probability == expected.policy.probability).all()


def test_a_frozen_array_is_sent_once_and_forgotten_with_it():
    backup = Backup.of(random_model())
    with device("cuda"):
        machine, there = machine_for(backup)
        assert machine_for(backup)[1].probability is there.probability
        gpu = require_gpu()
        assert brought_home(there.probability).tolist() == backup.probability.tolist()
        before = len(gpu.kept)
        del backup
        assert len(gpu.kept) < before
    assert machine.gpu is gpu


def test_what_can_still_change_is_sent_anew():
    numbers = np.ones(4)
    part = np.broadcast_to(numbers, 4)  # can itself not be written to
    gpu, seen = require_gpu(), []
    for value in (1.0, 2.0):
        numbers[:] = value
        done = np.zeros(4)
        assert gpu.run(add_up, 4, RoomSize(0), (np.ascontiguousarray(part), done))
        seen.append(done.tolist())
        assert not is_frozen(part)
    assert seen == [[1.0] * 4, [2.0] * 4]


def add_up(first: int, last: int, room: Room, given: FloatsIn, done: FloatsOut) -> None:
    for task in range(first, last):
        done[task] += given[task] + room.floats.size


def test_what_does_not_fit_is_left_as_it_was(monkeypatch):
    given, done = np.ones(4), np.zeros(4)
    gpu = require_gpu()

    def full(*args, **kwargs):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Gpu, "room", full)
        assert not gpu.run(add_up, 4, RoomSize(2), (given, done))
        assert done.tolist() == [0.0] * 4
    assert gpu.run(add_up, 4, RoomSize(2), (given, done))
    assert done.tolist() == [3.0] * 4


def test_every_task_is_done_where_room_is_scarce(monkeypatch):
    monkeypatch.setattr(_cuda, "THREADS_A_BLOCK", 4)
    monkeypatch.setattr(_cuda, "MOST_LANES", 1 << 18)
    monkeypatch.setattr(_cuda, "LEAST_LANES", 8)
    # Room for 20 lanes: 14 are taken, which are three and a half blocks.
    monkeypatch.setattr(Gpu, "free", 8 * 2 * 20 / _cuda.ROOM_SHARE)
    done = np.zeros(26)
    assert require_gpu().run(_cuda.count_tasks, done.size, RoomSize(1, 1), (done,))
    assert done.tolist() == [1.0] * 26


@pytest.mark.slow
@pytest.mark.parametrize("small", [128, 2])
def test_claims_are_alike_where_the_gpu_is_only_taken_for_many_tasks(small, monkeypatch):
    """A model or two of what was drawn on the GPU is no reason to leave it."""
    monkeypatch.setattr(drawn, "SMALL", small)
    problem, policy = counted_problem()
    certifier = Posterior(draws=30, seed=4)
    with device("cpu"):
        expected = certify(problem, policy, certifier).lower
    gpu = require_gpu_for_test()
    monkeypatch.setattr(_device, "LEAST_TASKS", 20)
    for module in (_device, stepping):
        monkeypatch.setattr(module, "usable_gpu", lambda: gpu)
    with device("auto"):
        found = certify(problem, policy, certifier).lower
    assert found == pytest.approx(expected, abs=1e-4)


def require_gpu_for_test():
    with device("cuda"):
        return require_gpu()


@pytest.mark.slow
def test_what_is_on_a_full_gpu_is_brought_home_for_the_processor(monkeypatch):
    batch = batch_of_models(MANY)
    uniform_policy = Policy.uniform(batch.pairs)
    with device("cpu"):
        expected = evaluate_batch(batch, uniform_policy).value
    gpu = require_gpu_for_test()
    plan = plan_elimination(batch.pairs, batch.offsets, batch.successor)
    value, residual = gpu.arrays.empty(expected.shape), gpu.arrays.empty((len(expected),))
    monkeypatch.setattr(Gpu, "run", lambda *args: False)
    _device.say_too_small.cache_clear()
    with device("cuda"), pytest.warns(UserWarning, match="too little memory"):
        evaluate_each.all(
            MANY,
            room_to_evaluate(plan),
            models_of(batch),
            np.ascontiguousarray(uniform_policy.probability[np.newaxis]),
            plan,
            value,
            residual,
        )
    assert (brought_home(value) == expected).all()


def test_work_that_does_not_fit_goes_to_the_processor_and_says_so_once(monkeypatch):
    batch = batch_of_models(MANY)
    uniform_policy = Policy.uniform(batch.pairs)
    with device("cpu"):
        expected = evaluate_batch(batch, uniform_policy).value
    monkeypatch.setattr(Gpu, "run", lambda *args: False)
    _device.say_too_small.cache_clear()
    with device("cuda"), pytest.warns(UserWarning, match="too little memory"):
        found = evaluate_batch(batch, uniform_policy).value
    assert (found == expected).all()
