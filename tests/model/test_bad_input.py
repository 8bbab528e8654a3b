"""Bad input: every mistake is an error of its own class that names the first offender.

Each row of the table is a mistake, the class of its error, and what the message must say: the
first offender with its value, what was expected, and how many are affected.
"""

import math

import numpy as np
import pytest
import scipy.sparse

from surestep import Counts, FiniteMDP, MDPBatch, Pairs, Policy, Problem, evaluate
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
    InvalidModel: [
        # probabilities that are none
        (
            lambda: model(with_row(0.4, 0.5, at=(0, 0)), **LABELS),
            "transition probabilities of state 'ward', action 'wait' sum to 0.9, expected 1 "
            f"{ENDS}; 1 of 4 pairs is affected",
        ),
        (lambda: model(with_row(0.5, 0.5 + 2e-6)), "state 0, action 1 sum to 1.000002, expected 1"),
        (
            lambda: model(with_row(1.25, -0.25)),
            "probability of state 0, action 1 → state 1 is -0.25, expected 0 or more",
        ),
        (
            lambda: model(with_row(1.0, math.nan), **LABELS),
            "probability of state 'ward', action 'treat' → state 'home' is nan, expected 0 or "
            "more, and finite; 1 of 5 values is affected",
        ),
        (
            lambda: raw_model(probability=[0.5, 0.5, 0.0, 1.0]),
            f"transition probabilities of state 0, action 1 sum to 0, expected 1 {ENDS}",
        ),
        (
            lambda: batch(((0.5, 0.5, 1.0), (0.5, 0.25, 0.0))),
            "transition probabilities of state 0, action 0 in model 1 sum to 0.75, expected 1 "
            "(or 0, to end the episode); 1 of 4 rows is affected",
        ),
        (
            lambda: batch(((0.5, 0.5, math.nan), (1.0, 0.0, 0.0))),
            "probability[0, 2] is nan, expected 0 or more, and finite; 1 of 6 values is affected",
        ),
        # rewards
        (
            lambda: model(R=with_value(-math.inf), **LABELS),
            "R of state 'ward', action 'treat' is -inf, expected a finite number; 1 of 4 values is",
        ),
        (
            lambda: model(np.ones((1, 1, 1)) + 1e-13, np.full((1, 1), np.finfo(float).max)),
            "the expected reward of state 0, action 0 is too large for a double",
        ),
        (
            lambda: raw_model(ending_reward=[0.0, 2.0, 3.0, 0.0]),
            "ending_reward of state 0, action 1 is 2.0, but the pair has successors; expected 0",
        ),
        (
            lambda: sparse(*GOOD.swapaxes(0, 1), R=[scipy.sparse.eye_array(2)]),
            "R has 1 matrices of 2 states, expected 2 of 2",
        ),
        (
            lambda: sparse(*GOOD.swapaxes(0, 1), R=[]),
            "R has shape (0,), expected (2, 2) (states × actions)",
        ),
        (
            lambda: batch(expected_reward=[[0.0, 1.0], [math.inf, 2.0]]),
            "expected_reward[1, 0] is inf, expected a finite number; 1 of 4 values is affected",
        ),
        # discounts
        (lambda: model(discount=1.5), "discount of state 0, action 0 is 1.5, expected 0 to 1"),
        (
            lambda: model(discount=[0.9, 0.9]),
            "discount has shape (2,), expected (2, 2) (states × actions) or (4,) (enabled pairs)",
        ),
        # starts
        (lambda: model(initial=-1), "initial state is -1, expected 0 to 1"),
        (lambda: model(initial=0.5), "initial is 0.5, expected a state or a distribution"),
        (
            lambda: model(initial=[0.5, 0.25]),
            "probabilities of the initial distribution sum to 0.75, expected 1",
        ),
        (
            lambda: model(initial=[1.5, -0.5], **LABELS),
            "initial of state 'home' is -0.5, expected 0 or more",
        ),
        (
            lambda: model(initial=[math.nan, 1.0], **LABELS),
            "initial of state 'ward' is nan, expected 0 or more, and finite",
        ),
        # shapes, pairs and runs
        (
            lambda: model(P=np.zeros((2, 2, 3))),
            "P has shape (2, 2, 3), expected [states, actions, states]",
        ),
        (lambda: model(P="table"), "P holds values of type <U5, expected numbers"),
        (lambda: model(P=[[[1.0, 0.0]], [[1.0]]]), "P is not a rectangular table of numbers"),
        (
            lambda: FiniteMDP.from_sparse([GOOD[:, 0]], [[0.0], [0.0]], 0.9),
            "P[0] is of type ndarray, expected a SciPy sparse matrix (tables go into "
            "FiniteMDP.from_",
        ),
        (lambda: sparse(np.eye(2), np.eye(3)), "P[1] has shape (3, 3), expected (2, 2)"),
        (
            lambda: model(enabled=[[True, True], [False, False]], **LABELS),
            "state 'home' has no action (a state that ends the episode has one without "
            "successors), expected at least one; 1 of 2 runs is affected",
        ),
        (
            lambda: Pairs.from_enabled([[1, 0], [2, 3]]),
            "enabled[1, 0] is 2, expected True or False; 2 of 4 values are affected",
        ),
        (lambda: Pairs([0, 2], [0, 2], 2), "action[1] is 2, expected 0 to 1"),
        (
            lambda: Pairs([0, 2], [1, 1], 2),
            "the actions of state 0 are not rising: 1 is followed by 1",
        ),
        (
            lambda: Pairs([0, 2, 1, 3], [0, 0, 0], 1),
            "pair offsets falls from 2 to 1 at position 2; 1 of 3 runs is affected",
        ),
        (
            lambda: Pairs([0, 1, 3], [0, 0], 1),
            "pair offsets runs from 0 to 3, expected from 0 to 2",
        ),
        (
            lambda: Pairs([0, 0.5, 2], [0, 0], 1),
            "pair offsets[1] is 0.5, expected a whole number; 1 of 3 values is affected",
        ),
        (lambda: model(state_labels=["ward"]), "1 state labels were given, expected 2"),
        (
            lambda: model(action_labels=["wait", "wait"]),
            "action label 'wait' is given twice, the second time at 1",
        ),
        (lambda: model(state_labels=["ward", 2]), "label of state 1 is 2, expected a string"),
        (lambda: model(state_labels="wh"), "state labels are 'wh', expected a sequence of strings"),
        (
            lambda: raw_model(successor=[0, 1, 2, 1]),
            "successor of state 0, action 1 is 2, expected 0 to 1",
        ),
        (
            lambda: raw_model(successor=[1, 1, 0, 1]),
            "successor 1 of state 0, action 0 is listed twice; expected each successor once (add "
            "the "
            "probabilities or counts up); 1 of 4 transitions is affected",
        ),
        (lambda: raw_model(offsets=[0, 2, 4]), "transition offsets has shape (3,), expected (5,)"),
        (lambda: raw_model(pairs="pairs"), "pairs is of type str, expected Pairs"),
        # things that do not belong together
        (
            lambda: batch(expected_reward=np.zeros((3, 2))),
            "expected_reward has shape (3, 2), expected (2, 2)",
        ),
    ],
    InvalidParameter: [
        # discounts
        (lambda: problem(discount=1.01), "discount is 1.01, expected 0 to 1")
    ],
    InvalidCounts: [
        # starts
        (
            lambda: counts(rewards=np.zeros((2, 2)), starts=[0, 0]),
            "starts add up to 0, expected at least 1 episode",
        ),
        (
            lambda: counts(rewards=np.zeros((2, 2)), starts=[3, -2]),
            "starts of state 1 is -2, expected 0 or more",
        ),
        # shapes, pairs and runs
        # counts
        (
            lambda: counts(rewards=np.zeros((2, 2)), reward_sums=np.zeros((2, 2))),
            "both of rewards and reward_sums given, expected exactly one",
        ),
        (
            lambda: counts(starts=[1, 0]),
            "neither of rewards and reward_sums given, expected exactly one",
        ),
        (
            lambda: counts([[[1, -2], [0, 0]], [[0, -1], [0, 0]]]),
            "times of state 0, action 0 → state 1 is -2, expected 0 or more",
        ),
        (
            lambda: counts([[[1, 0.5], [0, 0]], [[0, 1], [0, 0]]]),
            "C[0, 0, 1] is 0.5, expected a whole number; 1 of 8 values is affected",
        ),
        (
            lambda: counts(np.full((1, 1, 1), 2**63, np.uint64)),
            "C[0, 0, 0] is 9223372036854775808, expected a whole number",
        ),
        (
            lambda: counts(np.full((1, 1, 1), 2.0**54)),
            "C[0, 0, 0] is 1.8014398509481984e+16, expected a whole number",
        ),
        (
            lambda: counts([[1, 2], [3, 4]]),
            "C has shape (2, 2), expected [states, actions, states]",
        ),
        (
            lambda: counts(rewards=with_value(math.inf)),
            "rewards of state 0, action 1 is inf, expected a finite number; 1 of 4 values is "
            "affected",
        ),
        (
            lambda: counts(reward_sums=np.ones((2, 2, 2))),
            "reward sum of state 0, action 1 → state 0 is 1.0, but it was never observed; expected "
            "0; 5 of 8 values are affected",
        ),
        (
            lambda: counts(rewards=np.zeros((2, 2)), terminal=[False, True]),
            "state 1 is marked as terminal, but decisions were made there; 1 of 2 states is "
            "affected",
        ),
        (lambda: raw_counts(rewards=[0.0, 0.0]), "rewards is of type list, expected LoggedRewards"),
        (
            lambda: raw_counts(rewards=LoggedRewards([0.0, 0.0], "state", True)),
            "per is 'state'; expected one of pair, transition",
        ),
        (
            lambda: raw_counts(rewards=LoggedRewards([0.0, 0.0], "pair", "yes")),
            "known is 'yes', expected True or False",
        ),
    ],
    InvalidPolicy: [
        # policies
        (
            lambda: Policy.from_dense(RAGGED, [[0.5, 0.5], [0.5, 0.5]]),
            "policy gives 0.5 to state 0, action 1, which is not enabled; expected 0; 1 of 4 "
            "values is",
        ),
        (
            lambda: Policy.deterministic(model(**LABELS), [-1, 7]),
            "actions gives -1 to state 'ward', expected one of its enabled actions [0, 1]; 2 of 2",
        ),
        (
            lambda: Policy.from_dense(model(**LABELS), [[0.5, 0.5], [0.5, 0.25]]),
            "action probabilities of state 'home' sum to 0.75, expected 1; 1 of 2 states is "
            "affected",
        ),
        (
            lambda: Policy.from_dense(PAIRS, [[0.5, 0.5], [1.5, -0.5]]),
            "probability of state 1, action 1 is -0.5, expected 0 or more",
        ),
        (
            lambda: Policy.from_dense(PAIRS, [[math.nan, 0.5], [0.5, 0.5]]),
            "policy of state 0, action 0 is nan, expected a finite number; 1 of 4 values is "
            "affected",
        ),
        (
            lambda: Policy.softmax(PAIRS, with_value(math.inf)),
            "q of state 0, action 1 is inf, expected a finite number; 1 of 4 values is affected",
        ),
        # things that do not belong together
        (
            lambda: Policy.uniform(PAIRS).mix([0.5, 0.5], 0.5),
            "other is of type list, expected Policy",
        ),
    ],
    ShapeMismatch: [
        # things that do not belong together
        (
            lambda: COUNTS + Counts.from_dense(np.ones((3, 2, 3), int), rewards=np.zeros((3, 2))),
            "the first counts has 2 states, the second counts has 3",
        ),
        (
            lambda: (
                COUNTS
                + Counts.from_dense(
                    np.zeros((2, 2, 2), int), rewards=np.zeros((2, 2)), enabled=[[1, 1], [0, 1]]
                )
            ),
            "the first counts and the second counts enable different actions in state 1; 1 of 2 "
            "states",
        ),
        (
            lambda: evaluate(model(), Policy.uniform(Pairs.full(3, 2))),
            "the model has 2 states, the policy has 3",
        ),
        (
            lambda: problem(behavior=Policy.uniform(Pairs.full(2, 3))),
            "the counts has 2 actions, the behavior policy has 3",
        ),
        (
            lambda: MDPBatch.from_models([model(), model(enabled=[[1, 1], [1, 0]])]),
            "model 0 and model 1 enable different actions in state 1; 1 of 2 states is affected",
        ),
    ],
}


@pytest.mark.parametrize(
    ("error", "call", "words"), [(error, *row) for error, rows in MISTAKES.items() for row in rows]
)
def test_a_mistake_is_refused_in_words_and_hides_no_other_error(error, call, words):
    with pytest.raises(SurestepError) as refusal:
        call()
    assert type(refusal.value) is error
    assert words in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__context__ is None or refusal.value.__suppress_context__


def test_the_inputs_that_the_mistakes_are_made_from_are_good():
    good = model()
    assert raw_model() == good == sparse(*GOOD.swapaxes(0, 1))
    assert counts().visits.tolist() == [3, 0, 1, 0]
    assert raw_counts().visits.tolist() == [3, 3]
    assert batch().num_models == 2
    assert problem().value_bound == 1.0
