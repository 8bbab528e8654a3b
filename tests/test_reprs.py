"""Every public noun prints in a line what it is, however many numbers it holds."""

import dataclasses
import importlib
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import surestep
from support.claims import claim
from support.problems import uniform_problem
from surestep import (
    Counts,
    FiniteMDP,
    MDPBatch,
    Pairs,
    Plan,
    Policy,
    Problem,
    certify,
    evaluate_batch,
    optimal,
    sample_log,
    two_successor,
)
from surestep._reprs import brief
from surestep.algorithms import SPIBB
from surestep.certificates import APriori
from surestep.environments import Benchmark, make
from surestep.model.batch import CountsBatch, ProblemBatch
from surestep.model.counts import LoggedRewards
from surestep.model.mdp import Marks
from surestep.model.successors import Successors
from surestep.offpolicy import ImportanceWeights, importance_weights
from surestep.planning import EvaluationBatch

LONGEST = 200  # characters
HOMES = ("model", "planning", "transforms", "rehearsal", "offpolicy", "algorithms")
HOMES = (*HOMES, "environments", "io", "results", "certificates", "sampling")
NUMBERS = re.compile("Array|Pairs|Policy|MDP|Counts|Problem|Rehearsal|PolicyTable|DecisionLog")


def public_nouns():
    """The public dataclasses that hold arrays, or nouns that do."""
    homes = [surestep, *(importlib.import_module(f"surestep.{home}") for home in HOMES)]
    public = [getattr(home, name) for home in homes for name in getattr(home, "__all__", ())]
    nouns = {
        noun
        for noun in public
        if isinstance(noun, type)
        and dataclasses.is_dataclass(noun)
        and any(NUMBERS.search(str(field.type)) for field in dataclasses.fields(noun))
    }
    return sorted(nouns, key=lambda noun: noun.__name__)


@pytest.mark.parametrize("noun", public_nouns(), ids=lambda noun: noun.__name__)
def test_public_nouns_share_one_way_to_print(noun):
    assert noun.__repr__.__qualname__.startswith("short_repr.")


@pytest.fixture(scope="module")
def instances():
    """One of each, from a grid of 25 states."""
    world = make("gridworld")
    mdp = dataclasses.replace(world.mdp, marks={f"label {i}": np.ones(25) for i in range(50)})
    log = sample_log(mdp, world.behavior, episodes=60, horizon=50, rng=np.random.default_rng(1))
    counts = log.counts()
    problem = Problem(
        counts=counts,
        behavior=world.behavior,
        discount=0.95,
        value_bounds=(-1234.56789, 1234.56789),
        log=log,
        premises=("a sentence",) * 9,
    )
    improvement = SPIBB(n_wedge=5).improve(problem)
    models = MDPBatch.from_models([mdp, mdp])
    arrays = (counts.times, counts.rewards.values, counts.starts)
    times, rewards, starts = (np.stack([array, array]) for array in arrays)
    seen = LoggedRewards(rewards, counts.rewards.per, counts.rewards.known)
    batch = CountsBatch(
        counts.pairs, counts.offsets, counts.successor, times, seen, starts, counts.terminal
    )
    return [
        *(world, mdp, mdp.pairs, mdp.marks, world.behavior, log, counts, counts.rewards, problem),
        *(improvement, improvement.plan, models, two_successor(mdp), two_successor(mdp).chains),
        *(batch, importance_weights(log, world.behavior, world.behavior)),
        ProblemBatch(
            counts=batch, behavior=world.behavior, discount=0.95, value_bounds=(-99.0, 99.0)
        ),
        certify(problem, improvement, APriori()),
        evaluate_batch(models, world.behavior),
    ]


def test_nouns_print_in_a_line(instances):
    for noun in instances:
        text = repr(noun)
        assert text.startswith(f"{type(noun).__name__}("), text
        assert len(text) <= LONGEST, text
        assert "\n" not in text
        assert "array" not in text


def test_nouns_are_tables_in_notebooks(instances):
    for noun in instances:
        if not isinstance(noun, (Benchmark, ImportanceWeights, EvaluationBatch)):
            html = noun._repr_html_()
            assert html.startswith(f"<table><caption>{type(noun).__name__}</caption><tr>"), html
            assert html.count("<tr>") == html.count("<th>")
    plan = next(noun for noun in instances if isinstance(noun, Plan))
    assert "<th>error bound</th>" in plan._repr_html_()


def test_what_is_printed():
    mdp = FiniteMDP.from_dense(np.eye(3)[:, None], [[1.0]] * 3, 0.9)
    assert repr(mdp) == "FiniteMDP(num_states=3, num_pairs=3, num_transitions=3, discount=0.9)"
    several = mdp.with_discount([0.5, 0.9, 0.25])
    assert repr(several).endswith("discount=0.25…0.9)")
    assert repr(mdp.pairs) == "Pairs(num_states=3, num_actions=1, num_pairs=3)"
    counts = Counts.from_dense([[[3, 1]], [[0, 0]]], rewards=[[1.0], [0.0]])
    assert repr(counts) == "Counts(num_states=2, num_pairs=2, visits=0…4, known=True)"
    assert repr(Policy.uniform(mdp)) == "Policy(num_states=3, num_pairs=3, estimated=False)"
    assert repr(Marks((), np.zeros((0, 3), bool))) == "Marks(labels=())"
    plan = repr(optimal(mdp))
    assert plan.startswith("Plan(num_states=3, value=10, iterations=")
    support = Successors(Pairs.full(2, 1), [0, 2, 4], [0, 1, 0, 1])
    assert repr(support) == "Successors(num_states=2, num_pairs=2, sizes=2)"
    made = SPIBB(n_wedge=2).improve(uniform_problem(counts, 0.9, (0.0, 10.0)))
    assert "n_wedge" in repr(made)
    assert "n_wedge" not in repr(dataclasses.replace(made, n_wedge=None))  # None is left out


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1 / 3, "0.333333"),
        (np.float64(2.0), "2"),
        (np.int64(7), "7"),
        (np.array([2.0, 2.0]), "2"),
        (np.array([1, 5]), "1…5"),
        (np.array([True, False]), "False…True"),
        (np.zeros(0), "[0]"),
        (np.array(["a", "b"]), "[2]"),
        ((0.5, "x"), "(0.5, 'x')"),
        (tuple(range(5)), "[5]"),
        ("x" * 99, "'" + "x" * 38 + "…"),
    ],
)
def test_values_are_brief(value, text):
    assert brief(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300))
def test_a_lower_bound_is_never_shown_above_itself(lower):
    bound = claim("proved", lower)
    shown = float(re.search(r"lower=([^,]+)", repr(bound))[1])
    assert shown <= lower
    assert lower - shown <= 1e-5 * abs(lower) + 1e-300
    assert f"<th>lower</th><td>{brief(shown)}</td>" in bound._repr_html_()
