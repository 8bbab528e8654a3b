"""One map over tasks: the same answers in this process and in workers, which are spawned."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numba
import numpy as np
import pytest

from support import tasks
from surestep import FiniteMDP, Pairs, Policy, evaluate, parallel
from surestep.errors import InvalidModel, InvalidParameter, SurestepError
from surestep.parallel import map_in_order


def models(count):
    rng = np.random.default_rng(2)
    return [
        FiniteMDP.from_dense(rng.dirichlet(np.ones(6), (6, 2)), rng.normal(size=(6, 2)), 0.9)
        for _ in range(count)
    ]


def use_parallel_kernels():
    """Evaluates a model large enough to wake the threads of the kernels."""
    states, width = 60_000, 4
    pairs = Pairs.full(states, 1)
    successor = (np.arange(states)[:, np.newaxis] + 7 * np.arange(width)) % states
    mdp = FiniteMDP(
        pairs,
        np.arange(states + 1) * width,
        successor.ravel(),
        np.full(states * width, 0.25),
        np.ones(states * width),
        np.full(states, 0.5),
        np.full(states, 1 / states),
    )
    np.testing.assert_allclose(evaluate(mdp, Policy.uniform(mdp), method="iterative"), 2.0)


def test_two_workers_give_the_bits_of_one_even_after_the_parent_used_threads():
    use_parallel_kernels()
    given = models(5)
    assert list(map_in_order(tasks.plan, given, workers=2)) == list(map_in_order(tasks.plan, given))


def test_workers_are_spawned_and_answers_come_in_the_order_of_the_tasks(monkeypatch):
    monkeypatch.setattr(tasks, "MARK", "set by the parent")
    answers = list(map_in_order(tasks.whereabouts, range(20), workers=2))
    assert [task for task, *_ in answers] == list(range(20))
    assert os.getpid() not in {process for _, process, *_ in answers}
    assert {method for *_, method, _ in answers} == {"spawn"}
    assert {mark for *_, mark in answers} == {"as imported"}


def test_one_worker_is_this_process():
    answers = list(map_in_order(tasks.whereabouts, range(3)))
    assert [task for task, *_ in answers] == [0, 1, 2]
    assert {process for _, process, *_ in answers} == {os.getpid()}


def test_models_are_still_frozen_in_a_worker():
    assert list(map_in_order(tasks.frozen, models(1), workers=2)) == [True]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_error_of_a_task_is_raised_after_the_answers_before_it(workers):
    answers = map_in_order(tasks.refuse_three, range(6), workers=workers)
    assert [next(answers) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(InvalidModel, match="initial state is 3, expected 0 to 0"):
        next(answers)
    assert list(answers) == []


def test_one_worker_does_a_task_only_when_its_answer_is_wanted():
    done = []
    answers = map_in_order(done.append, range(3))
    assert done == []
    next(answers)
    assert done == [0]


@pytest.mark.parametrize("workers", [0, -1])
def test_there_is_at_least_one_worker(workers):
    with pytest.raises(InvalidParameter, match=f"workers is {workers}, expected 1 to 1024"):
        list(map_in_order(tasks.whereabouts, [1], workers=workers))


@pytest.mark.parametrize("workers", [1, 2])
def test_no_tasks_give_no_answers(workers):
    assert list(map_in_order(tasks.whereabouts, [], workers=workers)) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent(number):
    """All of them have the pipe open that is read here, which ends when the last one has."""
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"sys.path.insert(0, {str(Path(tasks.__file__).parent)!r})\n"
        "import tasks; from surestep.parallel import map_in_order\n"
        "list(map_in_order(tasks.never_done, range(4), workers=2))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    begun = [process.stdout.readline() for _ in range(2)]
    os.killpg(process.pid, number) if number == signal.SIGINT else process.kill()
    _, said = process.communicate(timeout=120)
    assert begun == ["begun\n"] * 2
    assert process.returncode in (-number, 130)
    if number == signal.SIGINT:  # one traceback, the parent's; workers say nothing
        assert said.count("Traceback") == 1
        assert said.endswith("KeyboardInterrupt\n")


def test_answers_that_are_no_longer_wanted_are_not_waited_for():
    answers = map_in_order(tasks.wait_if_asked, [0, 1, 1, 1], workers=2)
    assert next(answers) == 0
    answers.close()


def test_a_worker_that_dies_is_told_in_a_sentence():
    with pytest.raises(SurestepError, match="a worker process died, perhaps for want of memory"):
        list(map_in_order(tasks.die, range(3), workers=2))


def test_work_that_is_soon_done_starts_no_processes(monkeypatch):
    monkeypatch.setattr(parallel, "available_cores", lambda engine: 7 if engine == "local" else 90)
    given = [("local", 9.9), ("local", 10.0), ("ray", 0.1)]
    assert [parallel.usual_workers(*each) for each in given] == [1, 7, 90]


def test_threads_do_every_task_in_its_place_and_hand_on_what_goes_wrong(monkeypatch):
    names = set()

    def square(number):
        names.add(threading.current_thread().name)
        return number**2

    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    assert parallel.map_in_threads(square, range(50)) == [number**2 for number in range(50)]
    assert len(names) >= numba.get_num_threads()
    names.clear()
    monkeypatch.setattr(numba, "get_num_threads", lambda: 1)
    assert parallel.map_in_threads(square, [3]) == [9]
    assert names == {threading.current_thread().name}
    with pytest.raises(ZeroDivisionError):
        parallel.map_in_threads(lambda number: 1 / number, [2, 1, 0])
