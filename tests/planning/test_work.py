"""How much work planning does: mistakes in its limits would make it slow, not wrong."""

from types import SimpleNamespace

import numpy as np
import pytest

from surestep import FiniteMDP, Policy, evaluate_with_bound, optimal
from surestep.errors import NotConverged
from surestep.planning import backups, chain, evaluation, iteration, robust
from surestep.planning.chain import Chain
from surestep.planning.horizons import rule_for_all
from surestep.planning.proof import Bracket, Horizon, StoppingRule

STEPS = Horizon(1.0, 50.0, uniform=False)


class Calls:
    """Stands for a function, counts how often it is called, and keeps the arguments."""

    def __init__(self, function):
        self.function, self.arguments, self.named = function, [], []

    def __call__(self, *arguments, **named):
        self.arguments.append(arguments)
        self.named.append(named)
        return self.function(*arguments, **named)

    @property
    def number(self):
        return len(self.arguments)


@pytest.fixture
def watch(monkeypatch):
    """Replaces a function of a module by one that counts, and that may answer otherwise."""

    def replace(module, name, answer=None):
        calls = Calls(answer or getattr(module, name))
        monkeypatch.setattr(module, name, calls)
        return calls

    return replace


def chain_of(size, weight=0.5, reward=1.0):
    """States that each stay where they are, and earn the same."""
    one = np.ones(size)
    return Chain(np.arange(size + 1), np.arange(size, dtype=np.int32), weight * one, reward * one)


def ring(states, discount=0.99):
    """States that lead around, and earn in one place: sweeps are slow."""
    table = np.zeros((states, 1, states))
    table[np.arange(states), 0, (np.arange(states) + 1) % states] = 1.0
    reward = np.zeros((states, 1))
    reward[0] = 1.0
    return FiniteMDP.from_dense(table, reward, discount=discount)


# ---- which way is taken -----------------------------------------------------------------------


@pytest.mark.parametrize(("states", "method"), [(300, "dense"), (301, "components")])
def test_models_of_up_to_300_states_are_solved_densely(states, method):
    mdp = ring(states)
    assert evaluate_with_bound(mdp, Policy.uniform(mdp)).method == method


@pytest.mark.parametrize(
    ("size", "limit"), [(301, 30_100), (199_999, 19_999_900), (300_000, 20_000_000)]
)
@pytest.mark.parametrize("too_much", [0, 1])
def test_components_are_factorised_while_little_fills_in(size, limit, too_much, watch):
    fill = watch(chain, "predicted_fill", lambda _: limit + too_much)
    sparse = watch(chain, "solve_sparse", lambda _: "sparse")
    slowly = watch(chain, "solve_slowly", lambda *_: "slowly")
    part = SimpleNamespace(reward=np.empty(size))
    found = chain.solve_part(part, np.zeros(0), 0.25, STEPS)
    assert fill.arguments == [(part,)]
    assert (sparse.number, slowly.number) == (1 - too_much, too_much)
    assert found == ("slowly" if too_much else "sparse")
    if too_much:
        good_enough = slowly.arguments[0][-1]
        assert good_enough(None, 0.25)
        assert not good_enough(None, 0.26)


def test_every_slow_component_is_solved_once(watch):
    settle = watch(chain, "settle_components", lambda *given: given[2])  # all are slow
    parts = watch(chain, "solve_part", lambda part, *_: np.full(part.reward.size, 2.0))
    value = chain.solve_components(chain_of(4), np.zeros(4), 0.1, STEPS)
    assert value.tolist() == [2.0] * 4
    assert [given[2] for given in settle.arguments] == [0, 1, 2, 3, 4]
    assert parts.number == 4
    assert {given[4] for given in settle.arguments} == {1_000}  # sweeps


def test_what_is_good_enough_is_not_solved_again(watch):
    krylov = watch(chain, "solve_krylov", lambda _, start, *__: (start, 0.1))
    swept = watch(chain, "solve_by_sweeps")
    model = chain_of(2)
    for target, calls in ((1.0, 0), (0.1, 1)):
        chain.solve_slowly(
            model, np.zeros(2), target, STEPS, lambda _, residual, most=target: residual <= most
        )
        assert (krylov.number, swept.number) == (calls, 0)


def test_a_residual_is_aimed_for_that_proves_the_tolerance(watch):
    solve = watch(evaluation, "solve")
    mdp = ring(3)
    evaluate_with_bound(mdp, Policy.uniform(mdp), tolerance=1e-3)
    evaluation.occupancy(mdp, Policy.uniform(mdp))
    assert [given["target"] for given in solve.named] == [
        pytest.approx(1e-3 / 100 / 2, rel=1e-6),
        pytest.approx(1e-9 / 3 / 10, rel=1e-6),
    ]


def test_components_are_settled_to_a_residual_that_proves_the_tolerance(watch):
    settle = watch(chain, "settle_components")
    optimal(ring(301), tolerance=1e-3)
    assert settle.arguments[0][3] == pytest.approx(1e-3 / 100 / 2, rel=1e-6)


def ahead(states, discount=0.99):
    """Each state leads to the next one, or stays; the last one stays for ever."""
    table, here = np.zeros((states, 2, states)), np.arange(states)
    table[here, :, here] = [0.0, 0.5]
    table[here[:-1], :, here[1:]] = [1.0, 0.5]
    table[-1, :, -1] = 1.0
    return FiniteMDP.from_dense(table, np.ones((states, 2)), discount=discount)


def test_a_model_without_a_way_back_is_solved_in_one_pass(watch):
    sweeps = watch(backups, "best_values")
    search = watch(chain, "strong_components")
    plan = optimal(ahead(301))
    assert plan.value == pytest.approx(np.full(301, 100.0), rel=1e-9)
    assert (plan.iterations, sweeps.number, search.number) == (1, 0, 0)
    optimal(ring(301))
    assert (sweeps.number, search.number) == (2, 1)


class Stopped(Exception):
    """Ends a call where all that is looked for has been seen."""


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_rounding_counts_once_for_each_term_of_a_visit(share, watch, monkeypatch):
    # Such long rows that a relative error of 2⁻¹⁴ is possible.
    rounding = 2.0**-14
    long = {**vars(evaluation.arrays), "run_lengths": lambda _: np.array([3, 2**38 - 8])}
    monkeypatch.setattr(evaluation, "arrays", SimpleNamespace(**long))
    solve = watch(evaluation, "solve")
    solve.function = stop
    mdp = FiniteMDP.from_dense(np.ones((1, 1, 1)), np.ones((1, 1)), discount=share)
    with pytest.raises(Stopped):
        evaluation.occupancy(mdp, Policy.uniform(mdp))
    good_enough, visits = solve.named[0]["good_enough"], 1 / (1 - share)
    allowed = min(4 * rounding * (1 + visits), 1e-3)
    assert solve.named[0]["target"] == pytest.approx(allowed / 10, rel=1e-9)
    # (1 − share) · more + rounding · (1 + visits + more) is to be at most what is allowed.
    most = (allowed - rounding * (1 + visits)) / (1 - share + rounding)
    assert good_enough(np.array([visits + 0.999 * most]), None)
    assert not good_enough(np.array([visits + 1.001 * most]), None)


def stop(*_, **__):
    raise Stopped


# ---- chains -----------------------------------------------------------------------------------


# ---- policies ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("slowest", "sweeps"), [(0.8, 2), (0.98, 2), (0.995, 100)])
def test_value_iteration_gives_up_where_sweeps_are_slower_than_asked(slowest, sweeps, watch):
    calls = watch(backups, "best_values")
    mdp = FiniteMDP.from_dense(np.ones((1, 1, 1)), np.ones((1, 1)), discount=0.99)
    rule = StoppingRule(Horizon(1.0, 100.0, uniform=False), 1.0, 12, 1e-9)
    plan = iteration.jacobi(mdp, rule, 100, slowest)
    assert plan is None
    assert calls.number == sweeps


def two_choices(pairs=2):
    """One state that leads back to itself, by pairs that are all the same."""
    return FiniteMDP.from_dense(np.ones((1, pairs, 1)), np.ones((1, pairs)), discount=0.5)


@pytest.mark.parametrize(("width", "updates", "rounds"), [(0.4, 0, 2), (0.6, 1, 2)])
def test_what_is_the_same_for_all_states_is_added_at_once(width, updates, rounds, watch):
    # A ring of two states with γ = 0.9: values off by (1 ± width · goal) of the best ones.
    mdp, goal = ring(2, 0.9), 1e-3
    best = np.array([1.0, 0.9]) / (1 - 0.81)
    solved = watch(iteration, "solve_to", lambda *_: best)
    # Residuals of ± e around a mean count ten times each, so that the bracket is ± 10 e.
    tilt = width * goal / 10 / 1.9 * np.array([1.0, -1.0])
    rule = rule_for_all(mdp, goal)
    plan = iteration.iterate(mdp, lambda q: np.ones(2), best - 1.0 + tilt, rule)
    assert (solved.number, plan.iterations) == (updates, rounds)
    for _, backed_up, *_ in solved.arguments:
        assert backed_up == pytest.approx(best, abs=goal)


def test_a_row_of_a_chain_has_the_terms_of_all_actions(watch):
    # Two actions that lead to three states each: six terms and two, and 8 to spare.
    rules, rule_of = [], StoppingRule.of
    watch(StoppingRule, "of", lambda *given: rules.append(rule_of(*given)) or rules[-1])
    mdp = FiniteMDP.from_dense(np.full((3, 2, 3), 1 / 3), np.ones((3, 2)), discount=0.5)
    evaluate_with_bound(mdp, Policy.uniform(mdp))
    assert [rule.terms for rule in rules] == [6 + 2 + 8]


@pytest.mark.parametrize(("left", "turns"), [(0.5, 0), (0.51, 1)])
def test_both_sides_move_at_once_while_half_of_the_residual_goes(left, turns, watch, monkeypatch):
    # One state that earns 1 at γ = ½: the residual of v is 1 − v/2.
    values = iter([2 - 2 * left, 2.0])
    solved = watch(robust, "solve_to", lambda *_: np.array([next(values)]))
    improved = Calls(robust.Operator.improved)
    monkeypatch.setattr(robust.Operator, "improved", lambda *given: improved(*given))
    nothing = np.zeros(1)
    ball = robust.l1_ball(two_choices(1), nothing, nothing, nothing, nothing)
    plan = robust.robust_optimal(ball)
    assert plan.iterations == 3
    assert improved.number == turns
    assert [given[2] for given in solved.arguments] == pytest.approx([0.01, 0.01 * left])


@pytest.mark.parametrize(("floor", "refused"), [(1.0, True), (0.99, False)])
def test_a_residual_that_is_as_small_as_rounding_is_refused_at_once(floor, refused, watch):
    # The first residual is the reward of 1, and no error is good enough.
    rule = SimpleNamespace(
        horizon=Horizon(1.0, 2.0, uniform=False),
        bracket=lambda *_: Bracket(-2.0, 2.0, goal=0.0, floor=floor),
        tolerance=0.0,
    )
    mdp = two_choices(1)
    solved = watch(iteration, "solve_to", lambda *_: np.ones(1))
    planners = (
        lambda: iteration.jacobi(mdp, rule, 1, np.inf),
        lambda: iteration.iterate(mdp, lambda q: np.ones(1), np.zeros(1), rule, limit=1),
    )
    for plan, at_last in zip(planners, (None, "after 1 rounds"), strict=True):
        expected = "proven to be at most 2" if refused else at_last
        if expected is None:
            assert plan() is None
        else:
            with pytest.raises(NotConverged, match=expected):
                plan()
    assert solved.number == (0 if refused else 1)


@pytest.mark.parametrize(
    ("second", "floor", "held", "chosen", "holds"),
    [
        (1 + 5e-13, 0.0, False, 0, False),  # as good as before, up to ties
        (1 + 3e-12, 0.0, False, 1, False),
        (1.0, 1 + 5e-13, False, 0, False),  # the floor is no better than going on
        (1.0, 1 + 3e-12, False, 0, True),
        (1.0, 1 - 5e-13, True, 0, True),  # going on is no better than the floor
        (1.0, 1 - 3e-12, True, 0, False),
    ],
)
def test_a_choice_changes_only_for_a_better_one(second, floor, held, chosen, holds):
    nothing = np.zeros(2)
    models = robust.l1_ball(two_choices(), nothing, nothing, nothing, nothing)
    operator = robust.Operator(models, None, np.array([floor]))
    ours = robust.WorstChoice(np.array([1.0, 0.0]), np.array([held]))
    found = SimpleNamespace(
        value=np.array([1.5]),
        extreme=SimpleNamespace(q=np.array([1.0, second])),
        choice=robust.WorstChoice(np.array([0.0, 1.0]), np.array([not held])),
    )
    better = operator.improved(ours, found)
    assert better.policy.argmax() == chosen
    assert better.held.tolist() == [holds]
    # The rows take 0.5 away from what was believed, where that counts.
    assert operator.gained(found, ours) == (0.0 if held else 0.5)
