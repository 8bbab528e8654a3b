"""A stand-in for Ray: tasks are done in this process, the one that was given last comes first."""

from __future__ import annotations

import io
import os
import pickle
import sys
from types import MappingProxyType, ModuleType, SimpleNamespace

from surestep import parallel


def stand_in(monkeypatch, *machines):
    """A stand-in for Ray in its place, with these machines, or one of two cores."""
    monkeypatch.setattr(parallel, "use_one_thread", lambda: None)  # they are this process's threads
    device = os.environ.get(parallel.VARIABLE, "auto")
    monkeypatch.setenv(parallel.VARIABLE, device)  # tasks set it
    ray = StandIn(machines or ({"CPU": 2.0},))
    monkeypatch.setitem(sys.modules, "ray", ray)
    return ray


class RayError(Exception):
    """What Ray raises where it lost something."""


class RayTaskError(RayError):
    """What Ray raises where a task did."""

    def __init__(self, cause):
        super().__init__(f"Traceback of the worker:\n{cause}")
        self.cause = cause


def read_only(mapping):
    """The mapping, as one that nobody can change."""
    return MappingProxyType(mapping)


class Pickler(pickle.Pickler):
    """Takes read-only mappings too, as Ray's does."""

    def reducer_override(self, item):
        if isinstance(item, MappingProxyType):
            return read_only, (dict(item),)
        return NotImplemented


def travelled(answer):
    """The answer as it comes from another machine."""
    written = io.BytesIO()
    Pickler(written).dump(answer)
    return pickle.loads(written.getvalue())  # noqa: S301


class StandIn(ModuleType):
    """The part of Ray that is used, on `machines` of some resources each."""

    def __init__(self, machines):
        super().__init__("ray")
        self.machines = [dict(resources) for resources in machines]
        self.exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
        self.options, self.cancelled = {}, []
        self.waiting, self.most_waiting = {}, 0
        self.lost = False  # the next task is

    def is_initialized(self):
        return True

    def nodes(self):
        return [{"Alive": True, "Resources": resources} for resources in self.machines]

    def cluster_resources(self):
        names = {name for resources in self.machines for name in resources}
        return {name: sum(each.get(name, 0.0) for each in self.machines) for name in names}

    def remote(self, **options):
        self.options = options
        return lambda function: SimpleNamespace(remote=lambda *given: self.take(function, given))

    def take(self, function, given):
        answer = object()
        self.waiting[answer] = (function, pickle.dumps(given))
        self.most_waiting = max(self.most_waiting, len(self.waiting))
        return answer

    def wait(self, answers, num_returns):
        return [answers[-1]], answers[:-1]

    def get(self, answer):
        function, given = self.waiting.pop(answer)
        if self.lost:
            raise RayError("The node is gone.\nMore about it.")
        try:
            return travelled(function(*pickle.loads(given)))  # noqa: S301
        except Exception as problem:
            raise RayTaskError(problem) from None

    def cancel(self, answer, force):
        self.cancelled.append(answer)
