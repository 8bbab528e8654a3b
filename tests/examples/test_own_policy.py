"""A policy that was made elsewhere: the example says what the docs show, and rehearses too."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from surestep import (
    FiniteMDP,
    Policy,
    Problem,
    certify,
    extensions,
    improvement_of,
    rehearse,
    sample_log,
)
from surestep.certificates import Robust
from surestep.rehearsal import Completed

ROOT = Path(__file__).parents[2]


@pytest.fixture
def example(monkeypatch):
    """The script, the class of which is forgotten afterwards."""
    monkeypatch.setattr(extensions, "_registered", {})
    spec = importlib.util.spec_from_file_location("own_policy", ROOT / "examples/own_policy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DOCS = (ROOT / "docs/own_policy.md").read_text(encoding="utf-8")


@pytest.mark.slow  # test_scripts runs it too
def test_the_docs_show_what_the_example_prints(example, capsys):
    example.main()
    assert f"```\n{capsys.readouterr().out}```" in DOCS


def test_the_docs_show_the_rule():
    source = (ROOT / "examples/own_policy.py").read_text(encoding="utf-8")
    body = source[source.index("        pairs, habit") : source.index("def main")].rstrip()
    assert body in DOCS


class Always:
    """One policy, whatever the data say."""

    def __init__(self, policy):
        self.policy = policy

    def improve(self, problem):
        return improvement_of(problem, self.policy)


def test_a_bare_policy_is_certified_and_rehearsed():
    mdp = FiniteMDP.from_dense([[[0.0, 1.0]] * 2, [[0.0, 0.0]] * 2], [[0.0, 1.0], [0.0, 0.0]], 0.9)
    usual, rule = Policy.uniform(mdp), Policy.from_dense(mdp, [[0.2, 0.8], [0.5, 0.5]])
    log = sample_log(mdp, usual, 200, 3, np.random.default_rng(0))
    counts = log.counts([[0.0, 1.0], [0.0, 0.0]])
    problem = Problem(counts=counts, behavior=usual, discount=0.9, value_bounds=(0.0, 1.0), log=log)
    certifier = Robust(known_start=True)
    claim = certify(problem, improvement_of(problem, rule), certifier)
    assert claim == certify(problem, rule, certifier)
    assert 0.2 < claim.lower < 0.3  # the gain is 0.3
    found = rehearse(
        *(problem, Always(rule), certifier),
        rng=np.random.default_rng(0), worlds=1, sizes=(1.0,), family=[Completed("self-loop")],
    )  # fmt: skip
    assert found.gain == pytest.approx(0.3)
