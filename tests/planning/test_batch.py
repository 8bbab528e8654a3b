"""Batches of models against the same models one by one.

Which entries fill in when states are eliminated, against an elimination of a dense table.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.gpu import MANY, NEARLY
from support.oracles import brute_force_optimum, exact_value, largest_gap
from support.strategies import mdps, policies
from surestep import (
    FiniteMDP,
    MDPBatch,
    Pairs,
    Policy,
    evaluate,
    evaluate_batch,
    optimal,
    optimal_batch,
    performance,
)
from surestep.errors import (
    InvalidParameter,
    InvalidPolicy,
    NeverEnds,
    NotConverged,
    ShapeMismatch,
)
from surestep.planning import batch, evaluate_with_bound, evaluation, q_values
from surestep.planning.batch import plan_elimination, plan_for_edges, proven_errors


def variants(mdp, count, seed):
    """Models with the pairs, discounts and start of `mdp`, and other dynamics and rewards."""
    rng = np.random.default_rng(seed)
    models = []
    for _ in range(count):
        weight = rng.random(mdp.num_transitions) + 0.05
        owner = np.repeat(np.arange(mdp.num_pairs), np.diff(mdp.offsets))
        total = np.bincount(owner, weight, minlength=mdp.num_pairs)
        models.append(
            FiniteMDP(
                mdp.pairs,
                mdp.offsets,
                mdp.successor,
                weight / total[owner],
                rng.normal(size=mdp.num_transitions),
                mdp.discount,
                mdp.initial,
                mdp.ending_reward,
            )
        )
    return models


@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_every_value_of_a_batch_is_exact_within_its_proven_error(data):
    mdp = data.draw(mdps(undiscounted=data.draw(st.booleans())))
    policy = data.draw(policies(mdp.pairs))
    models = variants(mdp, 3, seed=data.draw(st.integers(0, 1000)))
    batch = MDPBatch.from_models(models)
    found = evaluate_batch(batch, policy)
    assert evaluate(batch, policy).tolist() == found.value.tolist()
    each = np.tile(policy.probability, (3, 1))
    assert evaluate(batch, each).tolist() == found.value.tolist()
    for b in range(3):
        # The batch stores expected rewards, so its own model is the truth it is held to.
        exact = exact_value(batch.model(b), policy.probability)
        assert largest_gap(found.value[b], exact) <= Fraction(found.error_bound[b])
    assert (found.error_bound <= 1e-9 * (1 + np.abs(found.value).max(axis=1)) * 100).all()


@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_every_optimum_of_a_batch_is_exact_within_its_proven_error(data):
    mdp = data.draw(mdps(max_states=4, undiscounted=data.draw(st.booleans())))
    batch = MDPBatch.from_models(variants(mdp, 2, seed=data.draw(st.integers(0, 1000))))
    plans = optimal_batch(batch)
    for b in range(2):
        model = batch.model(b)
        assert largest_gap(plans.value[b], brute_force_optimum(model)) <= plans.error_bound[b]
        achieved = exact_value(model, plans.probability[b])
        assert largest_gap(plans.value[b], achieved) <= plans.error_bound[b]


@given(data=st.data())
def test_one_policy_a_model_is_taken_too(data):
    mdp = data.draw(mdps())
    chosen = [data.draw(policies(mdp.pairs)) for _ in range(3)]
    models = variants(mdp, 3, seed=1)
    found = evaluate_batch(
        MDPBatch.from_models(models), np.stack([policy.probability for policy in chosen])
    )
    for model, policy, value, error in zip(
        models, chosen, found.value, found.error_bound, strict=True
    ):
        single = evaluate_with_bound(model, policy)
        # Rewards are averaged before or after: one more rounding error a successor.
        slack = 1e-12 * (1 + np.abs(single.value).max()) * 100
        assert np.abs(single.value - value).max() <= single.error_bound + error + slack


FIELDS = ("value", "residual", "error_bound", "method")


def assert_same_bits(first, second, names):
    for name in names:
        a, b = getattr(first, name), getattr(second, name)
        assert type(a) is type(b), name
        np.testing.assert_array_equal(a, b)


@given(data=st.data())
def test_a_model_by_itself_is_a_batch_of_one(data):
    mdp = data.draw(mdps(undiscounted=data.draw(st.booleans())))
    policy = data.draw(policies(mdp.pairs))
    single, whole = evaluate_with_bound(mdp, policy), evaluate_batch(mdp, policy)
    assert (whole.value.shape, len(whole.method)) == ((1, mdp.num_states), 1)
    assert_same_bits(whole[0], single, FIELDS)
    np.testing.assert_array_equal(whole.value[0], evaluate(mdp, policy))
    assert performance(mdp, policy) == mdp.initial @ whole.value[0]
    batch = MDPBatch.from_models([mdp])
    found = evaluate_batch(batch, policy)
    assert found.method == ("elimination",)
    # Rewards are averaged before or after: one more rounding error a successor.
    slack = 1e-10 * (1 + np.abs(single.value).max())
    gap = np.abs(found.value[0] - single.value).max()
    assert gap <= single.error_bound + found.error_bound[0] + slack
    # Several policies of a model are eliminated, however many there are.
    table = np.tile(policy.probability, (2, 1))
    for count in (1, 2):
        alike = evaluate_batch(mdp, table[:count])
        assert alike.method == ("elimination",) * count
        assert_same_bits(alike[count - 1], found[0], FIELDS)


@given(data=st.data())
def test_the_plan_of_a_model_by_itself_is_that_of_a_batch_of_one(data):
    mdp = data.draw(mdps(max_states=4, undiscounted=data.draw(st.booleans())))
    minimise = data.draw(st.booleans())
    names = ("value", "iterations", "residual", "error_bound", "q")
    single, whole = optimal(mdp, minimise=minimise), optimal_batch(mdp, minimise=minimise)
    assert_same_bits(whole[0], single, names)
    assert whole[0].policy == single.policy
    for name in names[:-1]:
        np.testing.assert_array_equal(getattr(whole, name)[0], getattr(single, name))
    np.testing.assert_array_equal(whole.probability, [single.policy.probability])
    batch = MDPBatch.from_models([mdp])
    found = optimal_batch(batch, minimise=minimise)
    slack = 1e-10 * (1 + np.abs(single.value).max())
    gap = np.abs(found.value[0] - single.value).max()
    assert gap <= single.error_bound + found.error_bound[0] + slack
    plan, model = found[0], batch.model(0)
    np.testing.assert_array_equal(plan.policy.probability, found.probability[0])
    np.testing.assert_array_equal(plan.q, q_values(model, plan.value))
    achieved = exact_value(model, plan.policy.probability)
    assert largest_gap(plan.value, achieved) <= plan.error_bound
    sign = -1 if minimise else 1
    best = brute_force_optimum(model.with_rewards(sign * model.expected_reward))
    assert largest_gap(sign * plan.value, best) <= plan.error_bound


def test_what_is_asked_for_is_done_one_by_one():
    mdp = FiniteMDP.from_dense(np.full((2, 2, 2), 0.5), [[0.0, 3.0], [1.0, -1.0]], 0.75)
    models, policy = [mdp, mdp.with_rewards(9 * mdp.expected_reward)], Policy.uniform(mdp)
    batch, table = MDPBatch.from_models(models), np.tile(policy.probability, (4, 1))
    for source, rows in ((batch, policy), (batch, table), (mdp, table)):
        for asked in ({"method": "sparse"}, {"tolerance": 1e-6}):
            found = evaluate_batch(source, rows, **asked)
            for b, used in enumerate(found.method):
                assert used == asked.get("method", "dense")
                model = mdp if source is mdp else batch.model(b % 2)
                assert_same_bits(found[b], evaluate_with_bound(model, policy, **asked), FIELDS)
    plans = optimal_batch(batch, tolerance=1e-6, minimise=True)
    for b in range(2):
        single = optimal(batch.model(b), tolerance=1e-6, minimise=True)
        assert_same_bits(plans[b], single, ("value", "error_bound", "q"))


def test_a_tolerance_that_cannot_be_proved_has_what_was_reached_and_the_name_of_its_model():
    mdp = FiniteMDP.from_dense(np.full((2, 2, 2), 0.5), [[0.0, 3.0], [1.0, -1.0]], 0.75)
    large = mdp.with_rewards(1e9 * mdp.expected_reward)
    batch, policy = MDPBatch.from_models([mdp, large]), Policy.uniform(mdp)
    with pytest.raises(NotConverged, match=r"^model 1: the error of the values") as problem:
        evaluate_batch(batch, policy, tolerance=1e-9)
    assert problem.value.evaluation.error_bound > 1e-9
    with pytest.raises(NotConverged, match=r"^model 1: the error of the values") as problem:
        optimal_batch(batch, tolerance=1e-9)
    assert problem.value.plan.error_bound > 1e-9
    with pytest.raises(NotConverged, match=r"^the error of the values") as problem:
        evaluate_batch(large, policy, tolerance=1e-9)
    assert problem.value.evaluation.method == "dense"
    with pytest.raises(NotConverged, match=r"^the error of the values") as problem:
        optimal_batch(large, tolerance=1e-9)
    assert problem.value.plan.policy == optimal(large).policy


def test_several_policies_of_a_large_model_need_no_copy_of_it(monkeypatch):
    mdp = FiniteMDP.from_dense(np.full((2, 2, 2), 0.5), [[0.0, 3.0], [1.0, -1.0]], 0.75)
    table = np.tile(Policy.uniform(mdp).probability, (2, 1))
    for most, used in ((8, "elimination"), (7, "dense")):  # it has 8 transitions
        monkeypatch.setattr(evaluation, "LARGE", most)
        assert evaluate_batch(mdp, table).method == (used, used)
    alone = evaluate_with_bound(mdp, Policy.uniform(mdp))
    assert_same_bits(evaluate_batch(mdp, table)[1], alone, FIELDS)


def test_what_is_no_model_policy_or_method_is_refused():
    mdp = FiniteMDP.from_dense(np.full((2, 2, 2), 0.5), [[0.0, 3.0], [1.0, -1.0]], 0.75)
    batch, policy = MDPBatch.from_models([mdp]), Policy.uniform(mdp)
    wanted = "models is of type list, expected MDPBatch or FiniteMDP"
    with pytest.raises(InvalidParameter, match=wanted):
        evaluate_batch([mdp], policy)
    with pytest.raises(InvalidParameter, match=wanted):
        optimal_batch([mdp])
    for verb in (lambda: evaluate_with_bound(batch, policy), lambda: optimal(batch)):
        with pytest.raises(InvalidParameter, match="mdp is of type MDPBatch, expected FiniteMDP"):
            verb()
    with pytest.raises(InvalidParameter, match="method is 'elimination'; expected one of"):
        evaluate_batch(batch, policy, method="elimination")
    other = Policy.uniform(Pairs.full(3, 2))
    for models, name in ((mdp, "model"), (batch, "batch")):
        with pytest.raises(ShapeMismatch, match=f"the {name} has 2 states, the policy has 3"):
            evaluate_batch(models, other)


@pytest.mark.slow
def test_models_too_large_for_the_compiled_loop_go_one_by_one():
    rng = np.random.default_rng(0)
    transition = rng.dirichlet(np.ones(310), size=(310, 2))
    mdp = FiniteMDP.from_dense(transition, rng.random((310, 2)), 0.9)
    models = variants(mdp, 2, seed=3)
    batch = MDPBatch.from_models(models)
    values, plans = evaluate_batch(batch, Policy.uniform(mdp)), optimal_batch(batch)
    assert "elimination" not in values.method
    for b, model in enumerate(models):
        single = evaluate_with_bound(model, Policy.uniform(mdp))
        np.testing.assert_allclose(values.value[b], single.value, atol=1e-8)
        np.testing.assert_allclose(plans.value[b], optimal(model).value, atol=1e-7)


def test_the_whole_batch_is_the_same_bit_for_bit_as_its_parts():
    mdp = FiniteMDP.from_dense(np.full((25, 4, 25), 1 / 25), np.zeros((25, 4)), 0.95)
    models = variants(mdp, 64, seed=9)
    whole = optimal_batch(MDPBatch.from_models(models))
    for b in (0, 17, 63):
        part = optimal_batch(MDPBatch.from_models([models[b]]))
        assert np.array_equal(whole.value[b], part.value[0])
        assert np.array_equal(whole.probability[b], part.probability[0])


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("verb", ["evaluate", "optimise"])
def test_batches_on_a_gpu_have_the_values_of_the_processor(verb, both):
    mdp = FiniteMDP.from_dense(np.full((6, 2, 6), 1 / 6), np.zeros((6, 2)), 0.9)
    batch = MDPBatch.from_models(variants(mdp, MANY, seed=1))
    if verb == "optimise":
        expected, found = both(lambda: optimal_batch(batch))
        assert (found.probability == expected.probability).all()
        assert (found.iterations == expected.iterations).all()
    else:
        expected, found = both(lambda: evaluate_batch(batch, Policy.uniform(mdp)))
        assert (np.abs(found.value - expected.value) <= found.error_bound.max()).all()
    np.testing.assert_allclose(found.value, expected.value, **NEARLY)


def test_one_model_takes_any_number_of_policies():
    P = np.full((2, 2, 2), 0.5)
    mdp = FiniteMDP.from_dense(P, [[0.0, 3.0], [1.0, -1.0]], 0.75)
    table = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.5, 0.5], [0.25, 0.75, 0.0, 1.0]])
    found = evaluate_batch(MDPBatch.from_models([mdp]), table).value
    for value, row in zip(found, table, strict=True):
        assert value == pytest.approx(evaluate(mdp, Policy(mdp.pairs, row)))
    with pytest.raises(InvalidPolicy, match=r"policies has shape \(3, 4\), expected \(2, 4\)"):
        evaluate_batch(MDPBatch.from_models([mdp, mdp]), table)


def test_a_policy_that_rests_is_worth_0_however_it_is_given():
    stays = np.zeros((2, 2, 2))
    stays[0, 0, 0] = stays[0, 1, 1] = 1.0
    mdp = FiniteMDP.from_dense(stays, np.zeros((2, 2)), 1.0)
    rest = Policy.from_dense(mdp, [[1, 0], [1, 0]])
    for policy in (rest, rest.probability[np.newaxis], np.tile(rest.probability, (3, 1))):
        assert not evaluate_batch(mdp, policy).value.any()


def test_policies_after_the_last_model_are_for_the_first_ones_again():
    P = np.full((2, 2, 2), 0.5)
    mdp = FiniteMDP.from_dense(P, [[0.0, 3.0], [1.0, -1.0]], 0.75)
    batch = MDPBatch.from_models([mdp, replace(mdp, reward=9 * mdp.reward)])
    table = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.5, 0.5], [0.25, 0.75, 0.0, 1.0]])[
        [0, 1, 2, 0]
    ]
    whole = evaluate_batch(batch, table)
    for part in (slice(0, 2), slice(2, 4)):
        alone = evaluate_batch(batch, table[part])
        for name in ("value", "residual", "error_bound"):
            np.testing.assert_array_equal(getattr(whole, name)[part], getattr(alone, name))


def test_of_policies_that_repeat_the_models_the_right_one_is_refused():
    P = np.zeros((2, 2, 2))
    P[0, 0, 0] = P[0, 1, 1] = 1.0
    mdp = FiniteMDP.from_dense(P, np.zeros((2, 2)), 1.0)
    batch = MDPBatch.from_models([mdp, replace(mdp, reward=9 * mdp.reward)])
    ends, stays = [0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0]
    with pytest.raises(NeverEnds, match=r"^model 1: "):
        evaluate_batch(batch, np.array([ends, stays, ends, ends]))
    with pytest.raises(NeverEnds, match=r"^model 1 with policy 3: "):
        evaluate_batch(batch, np.array([ends, ends, ends, stays]))


def test_errors_grow_with_residuals_terms_and_steps():
    # Two states of two actions that lead to both: 2 + 2 + 8 terms of a size of 3 + 5.
    P = np.full((2, 2, 2), 0.5)
    batch = MDPBatch.from_models([FiniteMDP.from_dense(P, [[0.0, 3.0], [1.0, -1.0]], 0.75)])
    value, residual = np.array([[-5.0, 2.0]]), np.array([0.25])
    found = proven_errors(batch, value, residual, 4.0, 0.0)
    assert found == pytest.approx([1.0])
    found = proven_errors(batch, value, 0 * residual, 4.0, 0.0)
    assert found == pytest.approx([12 * 2.0**-52 * 8 * 4], rel=1e-9)
    found = proven_errors(batch, value, 0 * residual, 4.0, 0.125)
    assert found == pytest.approx([0.125 * 8 * 4])


def test_policy_iteration_of_a_batch_is_limited(monkeypatch):
    P = np.full((2, 2, 2), 0.5)
    batch = MDPBatch.from_models([FiniteMDP.from_dense(P, [[0.0, 3.0], [1.0, -1.0]], 0.75)])
    rounds = int(optimal_batch(batch).iterations.max())
    monkeypatch.setattr("surestep.planning.optimum.ITERATION_LIMIT", rounds)
    assert optimal_batch(batch).iterations.tolist() == [rounds]
    monkeypatch.setattr("surestep.planning.optimum.ITERATION_LIMIT", rounds - 1)
    with pytest.raises(NotConverged, match=f"of model 0 stopped after {rounds - 1} rounds, the"):
        optimal_batch(batch)


def test_values_too_large_for_doubles_are_refused():
    huge = FiniteMDP.from_dense(np.ones((1, 1, 1)), [[1e308]], 0.9)
    batch = MDPBatch.from_models([huge])
    with pytest.raises(NotConverged, match="the values of model 0 are too large for doubles"):
        evaluate_batch(batch, Policy.uniform(huge))
    with pytest.raises(NotConverged, match="the values of model 0 are too large for doubles"):
        optimal_batch(batch)


def test_policies_in_single_precision_are_rescaled_and_discounts_too_near_1_refused():
    mdp = FiniteMDP.from_dense(np.full((1, 3, 1), 1.0), [[1.0, 2.0, 3.0]], 0.95)
    batch = MDPBatch.from_models([mdp])
    thirds = np.full((1, 3), 1 / 3, np.float32)
    assert evaluate_batch(batch, thirds).value[0, 0] == pytest.approx(40.0, rel=1e-9)
    near = MDPBatch.from_models([FiniteMDP.from_dense([[[1.0]]], [[1.0]], 1 - 2**-53)])
    for verb in (lambda: evaluate_batch(near, np.ones((1, 1))), lambda: optimal_batch(near)):
        with pytest.raises(NotConverged, match="discounts further below 1"):
            verb()


@pytest.fixture(autouse=True)
def no_plan_is_remembered():
    plan_for_edges.cache_clear()
    yield
    plan_for_edges.cache_clear()


def plan_of(table):
    """The plan for one action a state, which leads where the table [S, S] says."""
    size = len(table)
    offsets = np.concatenate([[0], np.cumsum(table.sum(axis=1))])
    return plan_elimination(Pairs.full(size, 1), offsets, np.nonzero(table)[1].astype(np.int32))


@given(size=st.integers(1, 9), seed=st.integers(0, 10**6), density=st.sampled_from([0.1, 0.3]))
def test_all_that_fills_in_is_planned_and_nothing_else(size, seed, density):
    table = np.random.default_rng(seed).random((size, size)) < density
    plan = plan_of(table)
    assert sorted(plan.order.tolist()) == list(range(size))
    assert plan.order[plan.place].tolist() == list(range(size))
    filled = table[np.ix_(plan.order, plan.order)]
    for c in range(size):
        below = np.flatnonzero(filled[c + 1 :, c]) + c + 1
        filled[below] |= filled[c] & (np.arange(size) > c)
    for i in range(size):
        lower = plan.lower[plan.lower_offsets[i] : plan.lower_offsets[i + 1]]
        upper = plan.upper[plan.upper_offsets[i] : plan.upper_offsets[i + 1]]
        assert lower.tolist() == np.flatnonzero(filled[i, :i]).tolist()
        assert upper.tolist() == (np.flatnonzero(filled[i, i + 1 :]) + i + 1).tolist()


def test_nothing_fills_in_where_that_can_be_avoided():
    star = np.zeros((7, 7), bool)
    star[0, 1:] = star[1:, 0] = True
    plan = plan_of(star)  # eliminated first, the middle would leave its row to all others
    assert plan.lower.size == plan.upper.size == 6


def test_work_and_states_have_a_limit(monkeypatch):
    # Four states that lead everywhere: 3 rows take 3 entries each, then 2 take 2, and one takes 1.
    everywhere = np.ones((4, 4), bool)
    monkeypatch.setattr(batch, "MOST_WORK", 14)
    assert plan_of(everywhere) is not None
    plan_for_edges.cache_clear()
    monkeypatch.setattr(batch, "MOST_WORK", 13)
    assert plan_of(everywhere) is None
    alone = np.eye(4, dtype=bool)
    monkeypatch.setattr(batch, "MOST_STATES", 4)
    assert plan_of(alone).upper.size == 0
    monkeypatch.setattr(batch, "MOST_STATES", 3)
    assert plan_of(alone) is None


@pytest.mark.parametrize(("more", "planned"), [((), True), ((1,), False)])
def test_up_to_two_million_multiplications_are_planned(more, planned):
    # What leads to r states of a clique and back is eliminated first: r rows take r entries each.
    # The clique itself takes 181² + … + 1² of them.
    clique, links = 182, (83, 10, 4, 2, *more)
    table = np.zeros((clique + len(links),) * 2, bool)
    table[:clique, :clique] = True
    for state, number in enumerate(links, clique):
        table[state, :number] = table[:number, state] = True
    assert sum(r**2 for r in (*range(clique), *links)) == 2_000_000 + len(more)
    assert (plan_of(table) is not None) is planned


def test_up_to_2000_states_are_planned():
    nothing = np.zeros(0, np.int32)
    for size, planned in ((2000, True), (2001, False)):
        found = plan_elimination(Pairs.full(size, 1), np.zeros(size + 1, np.int64), nothing)
        assert (found is not None) is planned


def test_the_plans_of_32_shapes_are_remembered():
    for size in (*range(1, 33), *range(1, 33)):
        plan_of(np.zeros((size, size), bool))
    assert plan_for_edges.cache_info().hits == 32
    for size in (33, 1):
        plan_of(np.zeros((size, size), bool))
    assert plan_for_edges.cache_info().hits == 32
