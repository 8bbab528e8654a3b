"""Functions that worker processes import by name."""

from __future__ import annotations

import multiprocessing
import os
import time

import surestep

MARK = "as imported"  # a test sets it; a forked child would see that, a spawned one does not


def whereabouts(task):
    """The task, the process that does it, how that was started, and what it knows of the parent."""
    return task, os.getpid(), multiprocessing.get_start_method(allow_none=True), MARK


def plan(mdp):
    """What planning says about a model, in numbers that compare bit for bit."""
    best, uniform = surestep.optimal(mdp), surestep.Policy.uniform(mdp)
    value, policy = best.value.tolist(), best.policy.dense().tolist()
    return value, policy, surestep.performance(mdp, uniform)


def refuse_three(task):
    """The task, unless it is 3: then the error that a model out of range gives."""
    if task == 3:
        surestep.FiniteMDP.from_dense([[[1.0]]], [[0.0]], 0.9, initial=task)
    return task


def improved(task):
    """What an algorithm makes of a problem, in numbers that compare bit for bit."""
    algorithm, problem = task
    found = algorithm.improve(problem)
    return found.policy.probability.tolist(), found.plan.value.tolist()


def never_done(task):
    """Says that it has begun, and then takes longer than anybody waits."""
    os.write(1, b"begun\n")  # at once: another worker says the same
    time.sleep(10_000)


def wait_if_asked(task):
    """The task; if it is not 0, after longer than anybody waits."""
    if task:
        time.sleep(10_000)
    return task


def die(task):
    """Ends its process, as the system does when memory runs out."""
    os._exit(9)


def device_and_gpu(task):
    """The device that a Ray task is told to compute on, and the GPUs that it was given."""
    import ray

    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    return os.environ.get("SURESTEP_DEVICE"), given, tuple(ray.get_gpu_ids())
