"""Values computed by the model checker Storm, an independent oracle for small models.

A model has these arrays: state ``s`` owns the pairs ``pairs.offsets[s]`` to
``pairs.offsets[s + 1] - 1``, pair ``k`` owns the transitions ``offsets[k]`` to
``offsets[k + 1] - 1`` with their ``successor`` and ``probability``, and ``expected_reward[k]`` is
the reward of taking it. A pair without successors ends the episode, as does a state without
pairs: in Storm both go to an extra absorbing state with reward 0.

Rewards of either sign are fine. Storm's total reward ``[ C ]`` rejects negative rewards on an
MDP, so the undiscounted functions ask for the reward until the end, ``[ F "end" ]``, instead; with
cycles, only rewards of at least 0 have the right total there.
"""

from fractions import Fraction
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import stormpy
from numpy.typing import ArrayLike, NDArray
from stormpy import Interval
from stormpy.datastructures import SparseMatrixBuilder
from stormpy.models import (
    SparseDtmc,
    SparseMdp,
    SparseModelComponents,
    SparseRewardModel,
    StateLabeling,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def storm_discounted_optimum(
    model: Any, discount: float, direction: Literal["max", "min"] = "max"
) -> FloatArray:
    """Optimal discounted value of every state, for a discount strictly between 0 and 1.

    The values are within ``discounted_precision`` of the exact ones. The first reward is not
    discounted: V = max over the pairs of r + discount P V.
    """
    starts, transition, reward = _choices(model)
    built = _build(transition, reward, starts)
    return _discounted(built, reward, discount, direction)


def storm_discounted_value(
    model: Any, policy_probability: ArrayLike, discount: float
) -> FloatArray:
    """Discounted value of a policy given by the probability ``[K]`` of each pair in its state."""
    transition, reward = _induced(model, policy_probability)
    return _discounted(_build(transition, reward), reward, discount, "")


def storm_total_optimum(
    model: Any, direction: Literal["max", "min"] = "max", until: str = 'F "end"'
) -> FloatArray:
    """Optimal undiscounted total reward of a model whose every path ends.

    A path ends in the extra state or in a state that can only stay where it is with reward 0.
    Where some choices let it go on forever, Storm's answer to "max" is infinity; to "min", with
    rewards of at least 0, it is the least of those that end. With rewards of at least 0, ``C``
    asks for the total of paths that need not end.
    """
    starts, transition, reward = _choices(model)
    return _total(_build(transition, reward, starts), direction, until)


def storm_total_value(
    model: Any, policy_probability: ArrayLike, until: str = 'F "end"'
) -> FloatArray:
    """Undiscounted total reward of a policy, given and limited as in the functions above."""
    return _total(_build(*_induced(model, policy_probability)), "", until)


def storm_chance(
    model: Any, target: IntArray, direction: Literal["max", "min"], within: int | None = None
) -> FloatArray:
    """The largest or least probability to reach the states of ``target`` from every state."""
    starts, transition, reward = _choices(model)
    built = _build(transition, reward, starts)
    built.labeling.add_label("target")
    for state in target.tolist():
        built.labeling.add_label_to_state("target", state)
    steps = "" if within is None else f"<={within}"
    return _check(built, f'P{direction}=? [ F{steps} "target" ]', 1e-10)


def storm_interval_optimum(
    low: FloatArray, high: FloatArray, starts: IntArray, reward: FloatArray, discount: float
) -> FloatArray:
    """The best discounted value against the worst rows between ``low`` and ``high`` [K, S].

    State s owns the rows from ``starts[s]`` on. Rewards ``[K]`` lie between 0 and 1: with 1 − γ a
    step stops, at a goal with the chance of its reward, so that the goal is reached with the
    probability (1 − γ) V. Storm asks for lower ends above 0.
    """
    rows, states = low.shape
    stops = (1 - discount) * np.stack([reward, 1 - reward], axis=1)
    ends = [
        np.block([[discount * bound, stops], [np.zeros((2, states)), np.eye(2)]])
        for bound in (low, high)
    ]
    builder = SparseMatrixBuilder[Interval](
        rows=rows + 2, columns=states + 2, has_custom_row_grouping=True, row_groups=states + 2
    )
    first = {*starts.tolist(), rows, rows + 1}
    for row in range(rows + 2):
        if row in first:
            builder.new_row_group(row)
        for column in np.flatnonzero(ends[1][row]).tolist():
            interval = Interval(ends[0][row, column], ends[1][row, column])
            builder.add_next_value(row, column, interval)
    labeling = StateLabeling(states + 2)
    for label, state in (("init", 0), ("goal", states)):
        labeling.add_label(label)
        labeling.add_label_to_state(label, state)
    components = SparseModelComponents[Interval](
        transition_matrix=builder.build(), state_labeling=labeling
    )
    environment = stormpy.Environment()
    environment.solver().min_max().precision = stormpy.Rational(1e-12)
    environment.solver().min_max().relative_termination_criterion = False
    result = stormpy.model_checking(
        SparseMdp[Interval](components),
        stormpy.parse_property('Pmax=? [ F "goal" ]'),
        environment=environment,
        uncertainty_resolution_mode=stormpy.UncertaintyResolutionMode.MINIMIZE,
    )
    return np.array(result.get_value_vector()[:states]) / (1 - discount)


def discounted_precision(reward: FloatArray, discount: float) -> float:
    """The absolute precision asked of Storm: 1e-10 where double precision allows it.

    Storm iterates until no value changes by more than precision (1 - discount) / discount and
    has no limit on iterations, so this must stay above the rounding of the largest value.
    """
    rounding = 4.0 * np.finfo(np.float64).eps * float(np.abs(reward).max(initial=0.0))
    return max(1e-10, rounding / (1.0 - discount) ** 2)


def _choices(model: Any) -> tuple[IntArray, sp.csr_matrix, FloatArray]:
    """First choice of every state, transition matrix and reward, with the extra end state."""
    offsets = np.asarray(model.pairs.offsets, dtype=np.int64)
    size = model.num_states + 1
    rows = sp.csr_matrix(
        (model.probability, model.successor, model.offsets), shape=(offsets[-1], size)
    )
    rows = _ending(sp.vstack([rows, sp.csr_matrix((1, size))], format="csr"))
    extra = offsets[-1]
    order = [
        np.arange(offsets[s], offsets[s + 1]) if offsets[s] < offsets[s + 1] else [extra]
        for s in range(model.num_states)
    ]
    order.append([extra])
    starts = np.cumsum([0] + [len(pairs) for pairs in order[:-1]])
    picked = np.concatenate(order).astype(np.int64)
    return starts, rows[picked], np.append(model.expected_reward, 0.0)[picked]


def _induced(model: Any, policy_probability: ArrayLike) -> tuple[sp.csr_matrix, FloatArray]:
    """Transition matrix and reward of the Markov chain under a policy."""
    starts, transition, reward = _choices(model)
    owners = np.repeat(np.arange(starts.size), np.diff(np.append(starts, reward.size)))
    has_pairs = np.append(np.diff(np.asarray(model.pairs.offsets)) > 0, False)
    weight = np.ones(reward.size)
    weight[has_pairs[owners]] = np.asarray(policy_probability, dtype=np.float64)
    mix = sp.csr_matrix((weight, (owners, np.arange(reward.size))))
    return (mix @ transition).tocsr(), np.asarray(mix @ reward)


def _ending(rows: sp.csr_matrix) -> sp.csr_matrix:
    """Send the rows without transitions to the end state, the last column."""
    empty = np.flatnonzero(np.diff(rows.indptr) == 0)
    column = np.full(empty.size, rows.shape[1] - 1)
    return (rows + sp.csr_matrix((np.ones(empty.size), (empty, column)), rows.shape)).tocsr()


def _build(transition: sp.csr_matrix, reward: FloatArray, starts: IntArray | None = None) -> Any:
    """An MDP whose state s owns the rows from ``starts[s]`` on, or a chain without ``starts``."""
    transition.sum_duplicates()
    transition.eliminate_zeros()
    entries = transition.tocoo()
    builder = SparseMatrixBuilder[float](
        rows=transition.shape[0],
        columns=transition.shape[1],
        entries=transition.nnz,
        has_custom_row_grouping=starts is not None,
        row_groups=0 if starts is None else starts.size,
    )
    groups = [] if starts is None else starts.tolist()
    builder.add_next_values(
        entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), groups
    )
    components = SparseModelComponents[float](
        transition_matrix=builder.build(),
        state_labeling=_labeling(transition, reward, starts),
        reward_models={
            "reward": SparseRewardModel[float](optional_state_action_reward_vector=reward.tolist())
        },
    )
    return SparseDtmc[float](components) if starts is None else SparseMdp[float](components)


def _labeling(
    transition: sp.csr_matrix, reward: FloatArray, starts: IntArray | None
) -> StateLabeling:
    """Label the first state and the states that can only stay where they are with reward 0."""
    num_states = transition.shape[1]
    first = np.arange(num_states) if starts is None else starts
    owners = np.repeat(np.arange(num_states), np.diff(np.append(first, reward.size)))
    stays = np.asarray(transition[np.arange(reward.size), owners]).ravel() > 1.0 - 1e-12
    ended = np.logical_and.reduceat(stays & (reward == 0.0), first)
    labeling = StateLabeling(num_states)
    labeling.add_label("init")
    labeling.add_label_to_state("init", 0)
    labeling.add_label("end")
    for state in np.flatnonzero(ended).tolist():
        labeling.add_label_to_state("end", state)
    return labeling


def _discounted(built: Any, reward: FloatArray, discount: float, direction: str) -> FloatArray:
    """Discounted reward of every state; the discount reaches Storm as an exact fraction."""
    exact = Fraction(discount)
    factor = f"{exact.numerator}/{exact.denominator}"
    formula = f'R{{"reward"}}{direction}=? [ Cdiscount={factor} ]'
    return _check(built, formula, discounted_precision(reward, discount))


def _total(built: Any, direction: str, until: str) -> FloatArray:
    """Total reward until the end, of every state."""
    return _check(built, f'R{{"reward"}}{direction}=? [ {until} ]', 1e-10)


def _check(built: Any, formula: str, precision: float) -> FloatArray:
    """Values of all states but the extra one, to an absolute precision.

    Storm's discounted iteration reads the min-max settings for Markov chains too.
    """
    environment = stormpy.Environment()
    solver = environment.solver()
    for settings in (solver.min_max(), solver.native()):
        settings.precision = stormpy.Rational(precision)
        settings.relative_termination_criterion = False
    result = stormpy.model_checking(built, stormpy.parse_property(formula), environment=environment)
    return np.array(result.get_value_vector()[:-1])
