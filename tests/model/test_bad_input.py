"""Bad input: every mistake is an error of its own class that names the first offender.

Each row of the table is a mistake, the class of its error, and what the message must say: the
first offender with its value, what was expected, and how many are affected.
"""

import math

import numpy as np
import pytest
import scipy.sparse

from surestep import Counts, FiniteMDP, MDPBatch, Pairs, Policy, Problem, evaluate, performance
from surestep.errors import (
    InvalidCounts,
    InvalidModel,
    InvalidParameter,
    InvalidPolicy,
    ShapeMismatch,
    SurestepError,
)
from surestep.model import LoggedRewards

LABELS = {"state_labels": ("ward", "home"), "action_labels": ("wait", "treat")}
GOOD = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
PAIRS = Pairs.full(2, 2)
RAGGED = Pairs.from_enabled([[1, 0], [1, 1]])
COUNTS = Counts.from_dense(np.ones((2, 2, 2), int), rewards=np.zeros((2, 2)))


def model(P=GOOD, R=((0.0, 0.0), (0.0, 0.0)), discount=0.9, initial=0, enabled=None, **labels):
    return FiniteMDP.from_dense(P, R, discount, initial, enabled, **labels)


def with_row(*row, at=(0, 1)):
    """Dynamics in which the row of one pair is replaced."""
    P = GOOD.copy()
    P[at] = row
    return P


def with_value(value, at=(0, 1)):
    """A table [2, 2] of zeros and one other value."""
    table = np.zeros((2, 2))
    table[at] = value
    return table


def raw_model(**changes):
    """The model of `GOOD`, made from its arrays."""
    good = model()
    names = ("offsets", "successor", "probability", "reward", "discount", "initial")
    return FiniteMDP(**{"pairs": PAIRS, **{n: getattr(good, n) for n in names}, **changes})


def sparse(*matrices, R=((0.0, 0.0), (0.0, 0.0)), **rest):
    return FiniteMDP.from_sparse([scipy.sparse.csr_array(m) for m in matrices], R, 0.9, **rest)


def counts(C=((((1, 2), (0, 0)), ((0, 1), (0, 0)))), **rest):
    rest = rest or {"rewards": np.zeros((2, 2))}
    return Counts.from_dense(np.array(C), **rest)


def raw_counts(**changes):
    good = {
        "pairs": Pairs.full(2, 1),
        "offsets": [0, 2, 3],
        "successor": [0, 1, 1],
        "times": [1, 2, 3],
        "rewards": LoggedRewards([0.0, 0.0], "pair", True),
        "starts": [1, 0],
    }
    return Counts(**{**good, **changes})


def batch(probability=((0.5, 0.5, 1.0), (1.0, 0.0, 0.0)), **changes):
    good = {
        "pairs": Pairs.full(2, 1),
        "offsets": [0, 2, 3],
        "successor": [0, 1, 1],
        "probability": probability,
        "expected_reward": np.zeros((2, 2)),
        "discount": [0.9, 0.9],
        "initial": [1.0, 0.0],
    }
    return MDPBatch(**{**good, **changes})


def problem(**changes):
    good = {
        "counts": COUNTS,
        "behavior": Policy.uniform(COUNTS),
        "discount": 0.9,
        "value_bounds": (0.0, 1.0),
    }
    return Problem(**{**good, **changes})


ENDS = "(or no successor at all, to end the episode)"

MISTAKES = {
    # ---- probabilities that are none -----------------------------------------------------------
    "a row of 0.9, as in the design": (
        lambda: model(with_row(0.4, 0.5, at=(0, 0)), **LABELS),
        InvalidModel,
        "transition probabilities of state 'ward', action 'wait' sum to 0.9, expected 1 "
        f"{ENDS}; 1 of 4 pairs is affected",
    ),
    "two rows above 1": (
        lambda: model(np.full((2, 2, 2), [[[0.5], [0.5]], [[0.6], [0.7]]])),
        InvalidModel,
        f"transition probabilities of state 1, action 0 sum to 1.2, expected 1 {ENDS}; 2 of 4",
    ),
    "a row just outside the tolerance": (
        lambda: model(with_row(0.5, 0.5 + 2e-6)),
        InvalidModel,
        "state 0, action 1 sum to 1.000002, expected 1",
    ),
    "a negative probability": (
        lambda: model(with_row(1.25, -0.25)),
        InvalidModel,
        "probability of state 0, action 1 → state 1 is -0.25, expected 0 to 1; 1 of 5 values is",
    ),
    "a probability that is tiny and negative": (
        lambda: model(with_row(1.0, -1e-300)),
        InvalidModel,
        "probability of state 0, action 1 → state 1 is -1e-300, expected 0 to 1",
    ),
    "NaN as probability": (
        lambda: model(with_row(1.0, math.nan), **LABELS),
        InvalidModel,
        "probability of state 'ward', action 'treat' → state 'home' is nan, expected a finite "
        "number; 1 of 5 values is affected",
    ),
    "infinity as probability": (
        lambda: model(with_row(math.inf, -math.inf)),
        InvalidModel,
        "probability of state 0, action 1 → state 0 is inf, expected a finite number; 2 of 5",
    ),
    "probabilities whose sum is infinite": (
        lambda: model(with_row(1e308, 1e308)),
        InvalidModel,
        "state 0, action 1 sum to inf, expected 1",
    ),
    "a sparse row that does not sum to 1": (
        lambda: sparse([[0.5, 0.5], [0, 0]], [[0.3, 0.3], [0, 1]], **LABELS),
        InvalidModel,
        "transition probabilities of state 'ward', action 'treat' sum to 0.6, expected 1",
    ),
    "NaN in a sparse matrix": (
        lambda: sparse([[0.5, 0.5], [0, 0]], [[1.0, 0.0], [0, math.nan]]),
        InvalidModel,
        "probability of state 1, action 1 → state 1 is nan, expected a finite number; 1 of 4",
    ),
    "a sparse array without a sum in the raw constructor": (
        lambda: raw_model(probability=[0.5, 0.5, 0.25, 1.0]),
        InvalidModel,
        "transition probabilities of state 0, action 1 sum to 0.25, expected 1",
    ),
    "a pair whose only successor has probability 0": (
        lambda: raw_model(probability=[0.5, 0.5, 0.0, 1.0]),
        InvalidModel,
        f"transition probabilities of state 0, action 1 sum to 0, expected 1 {ENDS}",
    ),
    "a row of a batch": (
        lambda: batch(((0.5, 0.5, 1.0), (0.5, 0.25, 0.0))),
        InvalidModel,
        "transition probabilities of state 0, action 0 in model 1 sum to 0.75, expected 1 "
        "(or 0, to end the episode); 1 of 4 rows is affected",
    ),
    "a negative probability in a batch": (
        lambda: batch(((0.5, 0.5, 1.0), (1.5, -0.5, 0.0))),
        InvalidModel,
        "→ state 1 in model 1 is -0.5, expected 0 to 1; 1 of 6 values is affected",
    ),
    "NaN in a batch": (
        lambda: batch(((0.5, 0.5, math.nan), (1.0, 0.0, 0.0))),
        InvalidModel,
        "probability[0, 2] is nan, expected a finite number; 1 of 6 values is affected",
    ),
    # ---- rewards -------------------------------------------------------------------------------
    "an infinite reward of a pair": (
        lambda: model(R=with_value(-math.inf), **LABELS),
        InvalidModel,
        "R of state 'ward', action 'treat' is -inf, expected a finite number; 1 of 4 values is",
    ),
    "NaN as reward of a transition": (
        lambda: model(R=np.full((2, 2, 2), math.nan)),
        InvalidModel,
        "reward of state 0, action 0 → state 0 is nan, expected a finite number; 4 of 4 values are",
    ),
    "NaN as reward in a sparse matrix": (
        lambda: sparse(
            *GOOD.swapaxes(0, 1), R=[scipy.sparse.csr_array([[math.nan, 1], [1, 1]])] * 2
        ),
        InvalidModel,
        "reward of state 0, action 0 → state 0 is nan, expected a finite number; 2 of 4",
    ),
    "an expected reward beyond all doubles": (
        lambda: model(np.ones((1, 1, 1)) + 1e-13, np.full((1, 1), np.finfo(float).max)),
        InvalidModel,
        "the expected reward of state 0, action 0 is too large for a double",
    ),
    "an ending reward where the episode goes on": (
        lambda: raw_model(ending_reward=[0.0, 2.0, 3.0, 0.0]),
        InvalidModel,
        "the ending reward of state 0, action 1 is 2.0, but the pair has successors; expected 0",
    ),
    "rewards of the wrong shape": (
        lambda: model(R=np.zeros((2, 3))),
        InvalidModel,
        "R has shape (2, 3), expected (2, 2) or (2, 2, 2)",
    ),
    "sparse rewards of the wrong number": (
        lambda: sparse(*GOOD.swapaxes(0, 1), R=[scipy.sparse.eye_array(2)]),
        InvalidModel,
        "R has 1 matrices of 2 states, expected 2 of 2",
    ),
    "no sparse rewards at all": (
        lambda: sparse(*GOOD.swapaxes(0, 1), R=[]),
        InvalidModel,
        "R has shape (0,), expected (2, 2) (states × actions)",
    ),
    "an infinite expected reward in a batch": (
        lambda: batch(expected_reward=[[0.0, 1.0], [math.inf, 2.0]]),
        InvalidModel,
        "expected_reward[1, 0] is inf, expected a finite number; 1 of 4 values is affected",
    ),
    # ---- discounts -----------------------------------------------------------------------------
    "a discount above 1": (
        lambda: model(discount=1.5),
        InvalidModel,
        "discount of state 0, action 0 is 1.5, expected 0 to 1; 4 of 4 pairs are affected",
    ),
    "one discount below 0": (
        lambda: model(discount=0.5 - with_value(1.0, at=(1, 0)), **LABELS),
        InvalidModel,
        "discount of state 'home', action 'wait' is -0.5, expected 0 to 1; 1 of 4 pairs is",
    ),
    "NaN as discount": (
        lambda: model(discount=math.nan),
        InvalidModel,
        "discount of state 0, action 0 is nan, expected a finite number; 4 of 4 values are",
    ),
    "discounts of the wrong shape": (
        lambda: model(discount=[0.9, 0.9]),
        InvalidModel,
        "discount has shape (2,), expected (2, 2) (states × actions) or (4,) (enabled pairs)",
    ),
    "the discount of a problem": (
        lambda: problem(discount=1.01),
        InvalidParameter,
        "discount is 1.01, expected 0 to 1",
    ),
    # ---- starts --------------------------------------------------------------------------------
    "an initial state below 0": (
        lambda: model(initial=-1),
        InvalidModel,
        "initial state is -1, expected 0 to 1",
    ),
    "an initial state that does not exist": (
        lambda: model(initial=2),
        InvalidModel,
        "initial state is 2, expected 0 to 1",
    ),
    "an initial state of 2 to the 63": (
        lambda: model(initial=2**63),
        InvalidModel,
        "initial state is 9223372036854775808, expected 0 to 1",
    ),
    "half an initial state": (
        lambda: model(initial=0.5),
        InvalidModel,
        "initial is 0.5, expected a state or a distribution",
    ),
    "NaN as initial state": (
        lambda: model(initial=math.nan),
        InvalidModel,
        "initial is nan, expected a state or a distribution",
    ),
    "an initial distribution that does not sum to 1": (
        lambda: model(initial=[0.5, 0.25]),
        InvalidModel,
        "probabilities of the initial distribution sum to 0.75, expected 1",
    ),
    "a negative initial probability": (
        lambda: model(initial=[1.5, -0.5], **LABELS),
        InvalidModel,
        "probability of starting in state 'home' is -0.5, expected 0 to 1; 1 of 2 values is",
    ),
    "NaN in the initial distribution": (
        lambda: model(initial=[math.nan, 1.0], **LABELS),
        InvalidModel,
        "initial of state 'ward' is nan, expected a finite number; 1 of 2 values is affected",
    ),
    "an initial distribution over too many states": (
        lambda: model(initial=[0.5, 0.5, 0.0]),
        InvalidModel,
        "initial has shape (3,), expected (2,)",
    ),
    "no start in any state": (
        lambda: counts(rewards=np.zeros((2, 2)), starts=[0, 0]),
        InvalidCounts,
        "starts add up to 0, expected at least 1 episode",
    ),
    "a negative number of starts": (
        lambda: counts(rewards=np.zeros((2, 2)), starts=[3, -2]),
        InvalidCounts,
        "starts of state 1 is -2, expected 0 or more; 1 of 2 states is affected",
    ),
    "half a start": (
        lambda: counts(rewards=np.zeros((2, 2)), starts=[0.5, 0.5]),
        InvalidCounts,
        "starts of state 0 is 0.5, expected a whole number; 2 of 2 values are affected",
    ),
    # ---- shapes, pairs and runs ----------------------------------------------------------------
    "dynamics that are no cube": (
        lambda: model(P=np.zeros((2, 2, 3))),
        InvalidModel,
        "P has shape (2, 2, 3), expected [states, actions, states]",
    ),
    "dynamics without states": (
        lambda: model(P=np.zeros((0, 2, 0))),
        InvalidModel,
        "P has shape (0, 2, 0), expected [states, actions, states]",
    ),
    "dynamics that are words": (
        lambda: model(P="table"),
        InvalidModel,
        "P holds values of type <U5, expected numbers",
    ),
    "dynamics with complex numbers": (
        lambda: model(P=GOOD + 0j),
        InvalidModel,
        "P holds values of type complex128, expected numbers",
    ),
    "ragged lists": (
        lambda: model(P=[[[1.0, 0.0]], [[1.0]]]),
        InvalidModel,
        "P is not a rectangular table of numbers",
    ),
    "dense tables where matrices are expected": (
        lambda: FiniteMDP.from_sparse([GOOD[:, 0]], [[0.0], [0.0]], 0.9),
        InvalidModel,
        "P[0] is of type ndarray, expected a SciPy sparse matrix (tables go into FiniteMDP.from_",
    ),
    "sparse matrices of different sizes": (
        lambda: sparse(np.eye(2), np.eye(3)),
        InvalidModel,
        "P[1] has shape (3, 3), expected (2, 2)",
    ),
    "a state without actions": (
        lambda: model(enabled=[[True, True], [False, False]], **LABELS),
        InvalidModel,
        "state 'home' has no action, expected at least one (a state that ends the episode has an "
        "action without successors); 1 of 2 states is affected",
    ),
    "states without actions among pairs": (
        lambda: Pairs([0, 0, 1, 1], [0], 1),
        InvalidModel,
        "state 0 has no action, expected at least one (a state that ends the episode has an "
        "action without successors); 2 of 3 states are affected",
    ),
    "a mask of the wrong shape": (
        lambda: model(enabled=[[True, False]]),
        InvalidModel,
        "enabled has shape (1, 2), expected (2, 2)",
    ),
    "a mask of other numbers": (
        lambda: Pairs.from_enabled([[1, 0], [2, 3]]),
        InvalidModel,
        "enabled[1, 0] is 2, expected True or False; 2 of 4 values are affected",
    ),
    "an action that does not exist": (
        lambda: Pairs([0, 2], [0, 2], 2),
        InvalidModel,
        "action[1] is 2, expected 0 to 1; 1 of 2 values is affected",
    ),
    "actions that are not rising": (
        lambda: Pairs([0, 1, 3], [1, 1, 0], 2, ("ward", "home")),
        InvalidModel,
        "the actions of state 'home' are not rising: 1 is followed by 0",
    ),
    "an action listed twice": (
        lambda: Pairs([0, 2], [1, 1], 2),
        InvalidModel,
        "the actions of state 0 are not rising: 1 is followed by 1",
    ),
    "offsets that fall": (
        lambda: Pairs([0, 2, 1, 3], [0, 0, 0], 1),
        InvalidModel,
        "pair offsets falls from 2 to 1 at position 2; 1 of 3 runs is affected",
    ),
    "offsets that end elsewhere": (
        lambda: Pairs([0, 1, 3], [0, 0], 1),
        InvalidModel,
        "pair offsets runs from 0 to 3, expected from 0 to 2",
    ),
    "half an offset": (
        lambda: Pairs([0, 0.5, 2], [0, 0], 1),
        InvalidModel,
        "pair offsets[1] is 0.5, expected a whole number; 1 of 3 values is affected",
    ),
    "too few labels": (
        lambda: model(state_labels=["ward"]),
        InvalidModel,
        "1 state labels were given, expected 2",
    ),
    "a label given twice": (
        lambda: model(action_labels=["wait", "wait"]),
        InvalidModel,
        "action label 'wait' is given twice, the second time at 1",
    ),
    "a label that is a number": (
        lambda: model(state_labels=["ward", 2]),
        InvalidModel,
        "label of state 1 is 2, expected a string",
    ),
    "one string as labels": (
        lambda: model(state_labels="wh"),
        InvalidModel,
        "state labels are 'wh', expected a sequence of strings",
    ),
    "a successor that does not exist": (
        lambda: raw_model(successor=[0, 1, 2, 1]),
        InvalidModel,
        "successor of state 0, action 1 is 2, expected 0 to 1; 1 of 4 values is affected",
    ),
    "a negative successor": (
        lambda: raw_counts(successor=[0, 1, -1]),
        InvalidCounts,
        "successor of state 1, action 0 is -1, expected 0 to 1; 1 of 3 values is affected",
    ),
    "a successor listed twice": (
        lambda: raw_model(successor=[1, 1, 0, 1]),
        InvalidModel,
        "successor 1 of state 0, action 0 is listed twice; expected each successor once (add the "
        "probabilities or counts up); 1 of 4 transitions is affected",
    ),
    "offsets of transitions for too few pairs": (
        lambda: raw_model(offsets=[0, 2, 4]),
        InvalidModel,
        "transition offsets has shape (3,), expected (5,)",
    ),
    "a model on no pairs": (
        lambda: raw_model(pairs="pairs"),
        InvalidModel,
        "pairs is of type str, expected Pairs",
    ),
    # ---- policies ------------------------------------------------------------------------------
    "a policy on a disabled action": (
        lambda: Policy.from_dense(RAGGED, [[0.5, 0.5], [0.5, 0.5]]),
        InvalidPolicy,
        "policy gives 0.5 to state 0, action 1, which is not enabled; expected 0; 1 of 4 values is",
    ),
    "a policy on a disabled action that has a label": (
        lambda: Policy.from_dense(
            model(enabled=[[True, False], [True, False]], **LABELS), [[0.0, 1.0], [0.0, 1.0]]
        ),
        InvalidPolicy,
        "policy gives 1.0 to state 'ward', action 'treat', which is not enabled; expected 0; "
        "2 of 4 values are affected",
    ),
    "a deterministic policy on a disabled action": (
        lambda: Policy.deterministic(RAGGED, [1, 0]),
        InvalidPolicy,
        "actions gives 1 to state 0, expected one of its enabled actions [0]; 1 of 2 states is",
    ),
    "deterministic actions that do not exist": (
        lambda: Policy.deterministic(model(**LABELS), [-1, 7]),
        InvalidPolicy,
        "actions gives -1 to state 'ward', expected one of its enabled actions [0, 1]; 2 of 2",
    ),
    "half an action": (
        lambda: Policy.deterministic(PAIRS, [0, 0.5]),
        InvalidPolicy,
        "actions of state 1 is 0.5, expected a whole number; 1 of 2 values is affected",
    ),
    "action probabilities that do not sum to 1": (
        lambda: Policy.from_dense(model(**LABELS), [[0.5, 0.5], [0.5, 0.25]]),
        InvalidPolicy,
        "action probabilities of state 'home' sum to 0.75, expected 1; 1 of 2 states is affected",
    ),
    "a negative action probability": (
        lambda: Policy.from_dense(PAIRS, [[0.5, 0.5], [1.5, -0.5]]),
        InvalidPolicy,
        "probability of state 1, action 1 is -0.5, expected 0 to 1; 1 of 4 values is affected",
    ),
    "NaN as action probability": (
        lambda: Policy.from_dense(PAIRS, [[math.nan, 0.5], [0.5, 0.5]]),
        InvalidPolicy,
        "policy of state 0, action 0 is nan, expected a finite number; 1 of 4 values is affected",
    ),
    "an infinite action probability": (
        lambda: Policy(PAIRS, [0.5, 0.5, math.inf, 0.0]),
        InvalidPolicy,
        "probability of state 1, action 0 is inf, expected a finite number; 1 of 4 values is",
    ),
    "NaN at a disabled action": (
        lambda: Policy.from_dense(RAGGED, [[1.0, math.nan], [0.5, 0.5]]),
        InvalidPolicy,
        "policy gives nan to state 0, action 1, which is not enabled; expected 0",
    ),
    "a table for other states": (
        lambda: Policy.from_dense(PAIRS, np.full((3, 2), 0.5)),
        InvalidPolicy,
        "policy has shape (3, 2), expected (2, 2) (states × actions) or (4,) (enabled pairs)",
    ),
    "infinity in a softmax": (
        lambda: Policy.softmax(PAIRS, with_value(math.inf)),
        InvalidPolicy,
        "q of state 0, action 1 is inf, expected a finite number; 1 of 4 values is affected",
    ),
    # ---- counts --------------------------------------------------------------------------------
    "both rewards and reward sums": (
        lambda: counts(rewards=np.zeros((2, 2)), reward_sums=np.zeros((2, 2))),
        InvalidCounts,
        "both of rewards and reward_sums given, expected exactly one",
    ),
    "neither rewards nor reward sums": (
        lambda: counts(starts=[1, 0]),
        InvalidCounts,
        "neither of rewards and reward_sums given, expected exactly one",
    ),
    "a negative count": (
        lambda: counts([[[1, -2], [0, 0]], [[0, -1], [0, 0]]]),
        InvalidCounts,
        "count of state 0, action 0 → state 1 is -2, expected 0 or more; 2 of 3 transitions are",
    ),
    "half a count": (
        lambda: counts([[[1, 0.5], [0, 0]], [[0, 1], [0, 0]]]),
        InvalidCounts,
        "C[0, 0, 1] is 0.5, expected a whole number; 1 of 8 values is affected",
    ),
    "NaN as count": (
        lambda: counts([[[1, math.nan], [0, 0]], [[0, 1], [0, 0]]]),
        InvalidCounts,
        "C[0, 0, 1] is nan, expected a whole number; 1 of 8 values is affected",
    ),
    "an infinite count": (
        lambda: counts([[[math.inf, 1], [0, 0]], [[0, 1], [0, 0]]]),
        InvalidCounts,
        "C[0, 0, 0] is inf, expected a whole number; 1 of 8 values is affected",
    ),
    "a count beyond 64 bits": (
        lambda: counts(np.full((1, 1, 1), 2**63, np.uint64)),
        InvalidCounts,
        "C[0, 0, 0] is 9223372036854775808, expected a whole number",
    ),
    "a double that may have lost its last digit": (
        lambda: counts(np.full((1, 1, 1), 2.0**54)),
        InvalidCounts,
        "C[0, 0, 0] is 1.8014398509481984e+16, expected a whole number",
    ),
    "counts that are no cube": (
        lambda: counts([[1, 2], [3, 4]]),
        InvalidCounts,
        "C has shape (2, 2), expected [states, actions, states]",
    ),
    "an infinite known reward": (
        lambda: counts(rewards=with_value(math.inf)),
        InvalidCounts,
        "rewards of state 0, action 1 is inf, expected a finite number; 1 of 4 values is affected",
    ),
    "NaN as reward sum": (
        lambda: counts(reward_sums=with_value(math.nan, at=(0, 0))),
        InvalidCounts,
        "reward_sums of state 0, action 0 is nan, expected a finite number; 1 of 4 values is",
    ),
    "rewards for other actions": (
        lambda: counts(rewards=np.zeros((2, 3))),
        InvalidCounts,
        "rewards has shape (2, 3), expected (2, 2) or (2, 2, 2)",
    ),
    "a reward sum of a pair never visited": (
        lambda: counts(reward_sums=with_value(3.0, at=(1, 1))),
        InvalidCounts,
        "reward sum of state 1, action 1 is 3.0, but it was never observed; expected 0; 1 of 4",
    ),
    "a reward sum of a transition never seen": (
        lambda: counts(reward_sums=np.ones((2, 2, 2))),
        InvalidCounts,
        "reward_sums holds 1.0 for state 0, action 1 → state 0, which was never observed; "
        "expected 0; 5 of 8 values are affected",
    ),
    "decisions in a terminal state": (
        lambda: counts(rewards=np.zeros((2, 2)), terminal=[False, True]),
        InvalidCounts,
        "state 1 is marked as terminal, but decisions were made there; 1 of 2 states is affected",
    ),
    "rewards that are no rewards": (
        lambda: raw_counts(rewards=[0.0, 0.0]),
        InvalidCounts,
        "rewards is of type list, expected LoggedRewards",
    ),
    "rewards per something else": (
        lambda: raw_counts(rewards=LoggedRewards([0.0, 0.0], "state", True)),
        InvalidCounts,
        "rewards are per 'state', expected 'pair' or 'transition'",
    ),
    "rewards of unknown standing": (
        lambda: raw_counts(rewards=LoggedRewards([0.0, 0.0], "pair", "yes")),
        InvalidCounts,
        "known is 'yes', expected True or False",
    ),
    "a reward too many": (
        lambda: raw_counts(rewards=LoggedRewards([0.0, 0.0, 0.0], "pair", True)),
        InvalidCounts,
        "reward has shape (3,), expected (2,)",
    ),
    # ---- things that do not belong together ----------------------------------------------------
    "counts of different numbers of states": (
        lambda: COUNTS + Counts.from_dense(np.ones((3, 2, 3), int), rewards=np.zeros((3, 2))),
        ShapeMismatch,
        "the first counts has 2 states, the second counts has 3",
    ),
    "counts of different numbers of actions": (
        lambda: COUNTS + Counts.from_dense(np.ones((2, 1, 2), int), rewards=np.zeros((2, 1))),
        ShapeMismatch,
        "the first counts has 2 actions, the second counts has 1",
    ),
    "counts of different enabled actions": (
        lambda: (
            COUNTS
            + Counts.from_dense(
                np.zeros((2, 2, 2), int), rewards=np.zeros((2, 2)), enabled=[[1, 1], [0, 1]]
            )
        ),
        ShapeMismatch,
        "the first counts and the second counts enable different actions in state 1; 1 of 2 states",
    ),
    "a policy for another model": (
        lambda: evaluate(model(), Policy.uniform(Pairs.full(3, 2))),
        ShapeMismatch,
        "the model has 2 states, the policy has 3",
    ),
    "a policy for other actions": (
        lambda: performance(model(**LABELS), Policy.uniform(RAGGED)),
        ShapeMismatch,
        "the model and the policy enable different actions in state 'ward'; 1 of 2 states is",
    ),
    "a mixture of policies of different shape": (
        lambda: Policy.uniform(PAIRS).mix(Policy.uniform(RAGGED), 0.5),
        ShapeMismatch,
        "the first policy and the second policy enable different actions in state 0; 1 of 2 states",
    ),
    "a mixture with something else": (
        lambda: Policy.uniform(PAIRS).mix([0.5, 0.5], 0.5),
        InvalidPolicy,
        "other is of type list, expected Policy",
    ),
    "a problem with the behavior of another": (
        lambda: problem(behavior=Policy.uniform(Pairs.full(2, 3))),
        ShapeMismatch,
        "the counts has 2 actions, the behavior policy has 3",
    ),
    "a batch of models of different shape": (
        lambda: MDPBatch.from_models([model(), model(enabled=[[1, 1], [1, 0]])]),
        ShapeMismatch,
        "model 0 and model 1 enable different actions in state 1; 1 of 2 states is affected",
    ),
    "a batch of arrays of different numbers of models": (
        lambda: batch(expected_reward=np.zeros((3, 2))),
        InvalidModel,
        "expected_reward has shape (3, 2), expected (2, 2)",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_by_name(name):
    call, error, words = MISTAKES[name]
    with pytest.raises(SurestepError) as refusal:
        call()
    assert type(refusal.value) is error
    assert words in str(refusal.value)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_refusal_hides_no_other_error_behind_it(name):
    call, _, _ = MISTAKES[name]
    with pytest.raises(SurestepError) as refusal:
        call()
    assert refusal.value.__cause__ is None
    assert refusal.value.__context__ is None or refusal.value.__suppress_context__


def test_the_inputs_that_the_mistakes_are_made_from_are_good():
    good = model()
    assert raw_model() == good == sparse(*GOOD.swapaxes(0, 1))
    assert counts().visits.tolist() == [3, 0, 1, 0]
    assert raw_counts().visits.tolist() == [3, 3]
    assert batch().num_models == 2
    assert problem().value_bound == 1.0
