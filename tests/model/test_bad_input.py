"""Bad input: every mistake is an error of its own class that names the first offender.

Each row of the table is a mistake, the class of its error, and what the message must say: the
first offender with its value, what was expected, and how many are affected. One row of a family
has the whole sentence.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from support.problems import uniform_problem
from surestep import (
    Counts,
    DecisionLog,
    FiniteMDP,
    MDPBatch,
    Pairs,
    Policy,
    Problem,
    estimate_behavior,
    estimate_mdp,
    evaluate,
)
from surestep.algorithms import SPIBB
from surestep.errors import (
    InvalidCounts,
    InvalidLog,
    InvalidModel,
    InvalidParameter,
    InvalidPolicy,
    ShapeMismatch,
    SurestepError,
)
from surestep.model import LoggedRewards
from surestep.model.policy import policy_of

LABELS = {"state_labels": ("ward", "home"), "action_labels": ("wait", "treat")}
GOOD = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
ZEROS = np.zeros((2, 2))
PAIRS = Pairs.full(2, 2)
RAGGED = Pairs.from_enabled([[1, 0], [1, 1]])
UNIFORM = Policy.uniform(PAIRS)
COUNTS = Counts.from_dense(np.ones((2, 2, 2), int), rewards=ZEROS)
HUGE = 10**400


def model(P=GOOD, R=ZEROS, discount=0.9, initial=0, enabled=None, **labels):
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


def sparse(*matrices, R=ZEROS, **rest):
    return FiniteMDP.from_sparse([scipy.sparse.csr_array(m) for m in matrices], R, 0.9, **rest)


def counts(C=((((1, 2), (0, 0)), ((0, 1), (0, 0)))), **rest):
    return Counts.from_dense(np.array(C), **rest or {"rewards": ZEROS})


def twice(*tables, **rest):
    return counts(*tables, **rest) + counts(*tables, **rest)


def raw_counts(rewards):
    return Counts(Pairs.full(2, 1), [0, 2, 3], [0, 1, 1], [1, 2, 3], rewards, [1, 0])


def batch(probability=((0.5, 0.5, 1.0), (1.0, 0.0, 0.0)), expected_reward=ZEROS):
    rest = (expected_reward, [0.9, 0.9], [1.0, 0.0])
    return MDPBatch(Pairs.full(2, 1), [0, 2, 3], [0, 1, 1], probability, *rest)


def problem(counts=COUNTS, **changes):
    good = {"behavior": UNIFORM, "discount": 0.9, "value_bounds": (0.0, 1.0)}
    return Problem(counts=counts, **{**good, **changes})


# Two episodes: ward → home → out (terminated), and ward → ward (truncated). No treatment at home.
STAY = {"state_labels": ("ward", "home", "out"), "action_labels": ("wait", "treat")}
STEPS = {
    "pairs": Pairs.from_enabled([[1, 1], [1, 0], [1, 0]], **STAY),
    "state": [0, 1, 0],
    "action": [1, 0, 0],
    "reward": [-1.0, 2.0, 0.5],
    "next_state": [1, 2, 0],
    "terminated": [False, True, False],
    "truncated": [False, False, True],
    "episode_offsets": [0, 2, 3],
}
ALIKE = {"state": [0, 0, 0], "next_state": [0, 2, 0], "action": [0, 0, 0]}
NOTHING = {name: [] for name in STEPS if name not in ("pairs", "episode_offsets")}


def log(**changes):
    return DecisionLog(**{**STEPS, **changes})


def problem_of_log(other=None, **changes):
    """A log with counts that are not its own."""
    return uniform_problem(replace(log().counts(), **changes), 0.9, (0.0, 1.0), log=other or log())


def other_rewards(values=None, per="transition", known=False, **ranges):
    logged = log().counts().rewards
    return LoggedRewards(logged.values if values is None else values, per, known, **ranges)


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
        (lambda: model(with_row(1.25, -0.25)), "action 1 → state 1 is -0.25, expected 0 or more"),
        (
            lambda: model(with_row(1.0, math.nan), **LABELS),
            "probability of state 'ward', action 'treat' → state 'home' is nan, expected 0 or "
            "more, and finite; 1 of 5 values is affected",
        ),
        (lambda: raw_model(probability=[0.5, 0.5, 0.0, 1.0]), "state 0, action 1 sum to 0, expec"),
        (
            lambda: batch(((0.5, 0.5, 1.0), (0.5, 0.25, 0.0))),
            "transition probabilities of state 0, action 0 in model 1 sum to 0.75, expected 1 "
            "(or 0, to end the episode); 1 of 4 rows is affected",
        ),
        (lambda: batch(((0.5, 0.5, math.nan), (1.0, 0.0, 0.0))), "probability[0, 2] is nan"),
        # rewards
        (lambda: model(R=with_value(-math.inf), **LABELS), "'ward', action 'treat' is -inf, exp"),
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
        (lambda: sparse(*GOOD.swapaxes(0, 1), R=[]), "R has shape (0,), expected (2, 2) (states ×"),
        (lambda: batch(expected_reward=with_value(math.inf)), "expected_reward[0, 1] is inf"),
        # discounts
        (lambda: model(discount=1.5), "discount of state 0, action 0 is 1.5, expected 0 to 1"),
        (
            lambda: model(discount=[0.9, 0.9]),
            "discount has shape (2,), expected (2, 2) (states × actions) or (4,) (enabled pairs)",
        ),
        # starts
        (lambda: model(initial=-1), "initial state is -1, expected 0 to 1"),
        (lambda: model(initial=0.5), "initial state is 0.5, expected 0 to 1"),
        (lambda: model(initial=[0.5, 0.25]), "of the initial distribution sum to 0.75, expected 1"),
        (lambda: model(initial=[1.5, -0.5], **LABELS), "initial of state 'home' is -0.5"),
        (lambda: model(initial=[math.nan, 1.0], **LABELS), "initial of state 'ward' is nan"),
        # shapes, pairs and runs
        (lambda: model(P=np.zeros((2, 2, 3))), "(2, 2, 3), expected [states, actions, states]"),
        (lambda: model(P="table"), "P holds values of type <U5, expected numbers"),
        (lambda: model(P=[[[1.0, 0.0]], [[1.0]]]), "P is not a rectangular table of numbers"),
        (
            lambda: FiniteMDP.from_sparse([GOOD[:, 0]], [[0.0], [0.0]], 0.9),
            "P[0] is of type ndarray, expected a SciPy sparse matrix (tables go into FiniteMDP.fr",
        ),
        (lambda: sparse(np.eye(2), np.eye(3)), "P[1] has shape (3, 3), expected (2, 2)"),
        (
            lambda: model(enabled=[[True, True], [False, False]], **LABELS),
            "state 'home' has no action (a state that ends the episode has one without "
            "successors), expected at least one; 1 of 2 runs is affected",
        ),
        (lambda: Pairs.from_enabled([[1, 0], [2, 3]]), "enabled[1, 0] is 2, expected True or Fals"),
        (lambda: Pairs([0, 2], [0, 2], 2), "action[1] is 2, expected 0 to 1"),
        (lambda: Pairs([0, 2], [1, 1], 2), "state 0 are not rising: 1 is followed by 1"),
        (lambda: Pairs([0, 2, 1, 3], [0] * 3, 1), "pair offsets falls from 2 to 1 at position 2"),
        (lambda: Pairs([0, 1, 3], [0, 0], 1), "runs from 0 to 3, expected from 0 to 2"),
        (lambda: Pairs([0, 0.5, 2], [0, 0], 1), "offsets[1] is 0.5, expected a whole number"),
        (lambda: model(state_labels=["ward"]), "1 state labels were given, expected 2"),
        (lambda: model(action_labels=["wait", "wait"]), "'wait' is given twice, the second time a"),
        (lambda: model(state_labels=["ward", 2]), "label of state 1 is 2, expected a string"),
        (lambda: model(state_labels="wh"), "state labels are 'wh', expected a sequence of strings"),
        (lambda: raw_model(successor=[0, 1, 2, 1]), "state 0, action 1 is 2, expected 0 to 1"),
        (
            lambda: raw_model(successor=[1, 1, 0, 1]),
            "successor 1 of state 0, action 0 is listed twice; expected each successor once (add "
            "the probabilities or counts up); 1 of 4 transitions is affected",
        ),
        (lambda: raw_model(offsets=[0, 2, 4]), "transition offsets has shape (3,), expected (5,)"),
        (lambda: raw_model(pairs="pairs"), "pairs is of type str, expected Pairs"),
        # things that do not belong together
        (lambda: batch(expected_reward=np.zeros((3, 2))), "has shape (3, 2), expected (2, 2)"),
        *(
            (lambda junk=junk: MDPBatch.from_models(junk), "expected a list of FiniteMDPs")
            for junk in (None, 5, [], model(), [model(), UNIFORM])
        ),
    ],
    InvalidParameter: [
        (lambda: problem(discount=1.01), "discount is 1.01, expected 0 to 1"),
        *(
            (lambda wrong=wrong: problem(discount=wrong), ", expected 0 to 1")
            for wrong in (-0.1, math.nan, None, True, "0.9", [0.9], HUGE)
        ),
        *(
            (lambda wrong=wrong: problem(unseen=wrong), "expected one of terminal, pessimistic")
            for wrong in ("optimistic", "", None, 0, ["terminal"], np.array([1, 2]))
        ),
        *(
            (lambda wrong=wrong: problem(value_bounds=(0, wrong)), "value_bounds[1] is ")
            for wrong in (math.inf, math.nan, None, "1", True, HUGE)
        ),
        *(
            (lambda wrong=wrong: problem(value_bounds=wrong), ", expected 2 values")
            for wrong in ((0.0,), 5.0, None, "abc")
        ),
        (lambda: problem(value_bounds=(1.0, 0.0)), "expected the lower one first"),
        (lambda: problem(behavior=None), "behavior is of type NoneType, expected Policy"),
        (lambda: problem("log"), "counts is of type str, expected Counts"),
        (lambda: problem(log="log"), "log is 'log', expected DecisionLog or None"),
        (lambda: estimate_mdp(None, 0.9), "counts is of type NoneType, expected Counts"),
        *(
            (lambda wrong=wrong: estimate_behavior(COUNTS, wrong), "expected a finite number of 0 ")
            for wrong in (-1, math.nan, math.inf, None, "1", True, HUGE)
        ),
        *(
            (lambda wrong=wrong: Policy.softmax(PAIRS, ZEROS, wrong), "expected a number above 0")
            for wrong in (0, -1.0, math.nan, None, True, "1", HUGE, [1.0])
        ),
        *(
            (lambda wrong=wrong: UNIFORM.mix(UNIFORM, wrong), "expected 0 to 1")
            for wrong in (-0.1, 1.1, math.nan, None, True, "1", HUGE, [1.0])
        ),
        *(
            (lambda wrong=wrong: policy_of(wrong, PAIRS), ", expected Policy, what has")
            for wrong in (None, "uniform", 0.5, SPIBB(n_wedge=2))
        ),
        (lambda: log().episodes([0, 2]), "the selection of episodes[1] is 2, expected 0 to 1"),
        (lambda: log().episodes([-1]), "the selection of episodes[0] is -1, expected 0 to 1"),
        (lambda: log().episodes(slice(2, None)), "holds no episode, expected at least one"),
        (lambda: log().episodes([True, False, True]), "mask of episodes has shape (3,), expected"),
        (lambda: log().episodes(slice("a", "b")), "slice slice('a', 'b', None) selects no episode"),
        (lambda: log().episodes(1), "episodes has 0 dimensions, expected a flat array"),
    ],
    InvalidCounts: [
        (lambda: counts(rewards=ZEROS, starts=[0, 0]), "starts add up to 0, expected at least 1 e"),
        (lambda: counts(rewards=ZEROS, starts=[3, -2]), "starts of state 1 is -2, expected 0 or m"),
        (lambda: counts(rewards=ZEROS, reward_sums=ZEROS), "both of rewards and reward_sums given"),
        (lambda: counts(starts=[1, 0]), "neither of rewards and reward_sums given, expected exac"),
        (lambda: counts([[[1, -2], [0, 0]], [[0, -1], [0, 0]]]), "state 1 is -2, expected 0 or mo"),
        (lambda: counts([[[1, 0.5], [0, 0]], [[0, 1], [0, 0]]]), "C[0, 0, 1] is 0.5, expected a w"),
        (lambda: counts(np.full((1, 1, 1), 2**63, np.uint64)), "C[0, 0, 0] is 9223372036854775808"),
        (lambda: counts(np.full((1, 1, 1), 2.0**54)), "is 1.8014398509481984e+16, expected a who"),
        (lambda: counts([[1, 2], [3, 4]]), "C has shape (2, 2), expected [states, actions, states"),
        (lambda: counts(rewards=with_value(math.inf)), "rewards of state 0, action 1 is inf, exp"),
        (
            lambda: counts(reward_sums=np.ones((2, 2, 2))),
            "reward sum of state 0, action 1 → state 0 is 1.0, but it was never observed; expected "
            "0; 5 of 8 values are affected",
        ),
        (lambda: counts(rewards=ZEROS, terminal=[False, True]), "state 1 is marked as terminal, b"),
        (
            lambda: Counts.from_dense([[[1], [2]]], rewards=[[0.0, 0.0]], enabled=[[True, False]]),
            "visits of state 0, action 1, which is not enabled",
        ),
        (lambda: raw_counts([0.0, 0.0]), "rewards is of type list, expected LoggedRewards"),
        (lambda: raw_counts(LoggedRewards([0.0, 0.0], "state", True)), "expected one of pair, tra"),
        (lambda: raw_counts(LoggedRewards([0.0, 0.0], "pair", "yes")), "known is 'yes', expected"),
        (lambda: log().counts(np.full((3, 2, 3), math.inf)), "'wait' → state 'ward' is inf, expec"),
        (
            lambda: log(**ALIKE, reward=[1e308, 0.0, 1e308]).counts(),
            "reward sum of state 'ward', action 'wait' → state 'ward' is inf, expected a finite "
            "number",
        ),
        (lambda: twice([[[1]]], reward_sums=[[1e308]]), "reward sum of state 0, action 0 is inf"),
        (lambda: twice([[[1]]], reward_sums=[[[1e308]]]), "action 0 → state 0 is inf, expected"),
        (lambda: twice([[[2**61]]], rewards=[[0.0]]), "the sum of all times is more than"),
        (lambda: counts([[[2**61, 2**61]], [[0, 0]]], rewards=[[0.0], [0.0]]), "sum of all times"),
        (lambda: twice([[[1]]], rewards=[[0.0]], starts=[2**61]), "the sum of all starts is more"),
        (lambda: counts([[[1]]], rewards=[[0.0]], starts=[2**63 - 1]), "the sum of all starts is"),
        *(
            (
                lambda ranges=ranges: LoggedRewards([1.0], "pair", *ranges),
                "without the others, or for known ones; expected both with sums, or neither",
            )
            for ranges in ((False, [1.0]), (True, [1.0], [1.0]))
        ),
    ],
    InvalidPolicy: [
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
        (lambda: Policy.from_dense(PAIRS, [[0.5, 0.5], [1.5, -0.5]]), "state 1, action 1 is -0.5"),
        (lambda: Policy.from_dense(PAIRS, with_value(math.nan)), "state 0, action 1 is nan, expec"),
        (lambda: Policy.softmax(PAIRS, with_value(math.inf)), "q of state 0, action 1 is inf, exp"),
        (lambda: UNIFORM.mix([0.5, 0.5], 0.5), "other is of type list, expected Policy"),
    ],
    InvalidLog: [
        (
            lambda: log(action=[1, 1, 0]),
            "action 'treat' of episode 0, step 1 is not enabled in state 'home'; 1 of 3 steps is",
        ),
        (lambda: log(state=[0, -1, 0]), "state of episode 0, step 1 is -1, expected 0 to 2"),
        (lambda: log(next_state=[1, 3, 0]), "next_state of episode 0, step 1 is 3, expected -1 to"),
        (
            lambda: log(reward=[0.0, math.nan, math.inf]),
            "reward of episode 0, step 1 is nan, expected a finite number; 2 of 3 values are",
        ),
        (lambda: log(reward=[0.0, 1.0]), "reward has shape (2,), expected (3,)"),
        (
            lambda: log(next_state=[0, 2, 0]),
            "episode 0, step 0 has the next state 0, terminated False and truncated False; "
            "expected no flag, and the state in which the next step begins, 1; 1 of 3 steps is",
        ),
        (lambda: log(truncated=[True, False, True]), "truncated True; expected no flag"),
        (
            lambda: log(truncated=[False, False, False]),
            "episode 1, step 0 has the next state 0, terminated False and truncated False; "
            "expected a flag (truncated, if only recording stopped), or -1 if nobody knows it",
        ),
        (lambda: log(episode_offsets=[0, 2, 2, 3]), "episode 1 has no step, expected at least one"),
        (lambda: log(**NOTHING, episode_offsets=[0]), "those of 0 runs, expected 1 to 2147483647"),
        (lambda: log(episode_offsets=[0, 2, 4]), "runs from 0 to 4, expected from 0 to 3"),
        *(
            (lambda bad=bad: log(propensity=[0.25, bad, 0.5]), "propensity")
            for bad in (-0.1, 0.0, 1.1, math.nan)
        ),
        (
            lambda: log(terminated=[False, True, True]).counts(),
            "episode 1, step 0 terminates in state 'ward', but episode 0, step 0 goes on there; "
            "expected an end where nobody decides and every step terminates (give terminated steps "
            "a next state of their own); 1 of 3 states is affected",
        ),
        (
            lambda: log(next_state=[1, 2, 2]).counts(),  # the last of which a clock cut
            "episode 0, step 1 terminates in state",
        ),
        (
            lambda: log().counts(np.zeros((2, 2))),
            "rewards has shape (2, 2), expected (3, 2) (states × actions) or (4,) (enabled pairs)",
        ),
    ],
    ShapeMismatch: [
        (lambda: COUNTS + counts(np.ones((3, 2, 3), int), rewards=np.zeros((3, 2))), "has 2 state"),
        (
            lambda: COUNTS + counts(GOOD * 0, rewards=ZEROS, enabled=[[1, 1], [0, 1]]),
            "the first counts and the second counts enable different actions in state 1; 1 of 2 "
            "states",
        ),
        (lambda: evaluate(model(), Policy.uniform(Pairs.full(3, 2))), "the model has 2 states, th"),
        (lambda: problem(behavior=Policy.uniform(Pairs.full(2, 3))), "actions, the behavior polic"),
        (lambda: UNIFORM.mix(Policy.uniform(Pairs.full(2, 3)), 0.5), "actions, the second policy"),
        (
            lambda: MDPBatch.from_models([model(), model(enabled=[[1, 1], [1, 0]])]),
            "model 0 and model 1 enable different actions in state 1; 1 of 2 states is affected",
        ),
        (lambda: MDPBatch.from_models([model(), model(discount=0.6)]), "1 has another discount th"),
        (lambda: MDPBatch.from_models([model(), model(initial=1)]), "1 has another initial than m"),
        (
            lambda: counts(rewards=ZEROS) + counts(rewards=with_value(3.0)),
            "the known reward of state 0, action 1 is 0.0 in the first counts and 3.0 in the "
            "second; 1 of 4 pairs is affected",
        ),
        (  # where nothing was seen
            lambda: counts(rewards=GOOD) + counts(rewards=with_row(1.0, 9.0)),
            "state 0, action 1 → state 1 is 0.0 in the first counts and 9.0 in the second",
        ),
        (
            lambda: log().counts() + replace(log().counts(), rewards=other_rewards()),
            "with the least and the greatest reward, per transition",
        ),
        # counts of another log
        (
            lambda: uniform_problem(log().counts() + log().counts(), 0.9, (0.0, 1.0), log=log()),
            "count of state 'ward', action 'wait' → state 'ward' is 2 in the counts, but 1 in the "
            "log; 3 of 3 values are affected",
        ),
        (
            lambda: uniform_problem(log().episodes([0]).counts(), 0.9, (0.0, 1.0), log=log()),
            "→ state 'ward' is 0 in the counts, but 1 in the log",
        ),
        (lambda: problem_of_log(starts=[1, 1, 0]), "starts of state 'ward' is 1 in the counts, bu"),
        (lambda: problem_of_log(terminal=None), "terminal of state 'out' is 0 in the counts, but"),
        (
            lambda: problem_of_log(rewards=other_rewards([0.5, -1.0 + 1e-6, 2.0])),
            "reward sum of state 'ward', action 'treat' → state",
        ),
        (
            lambda: problem_of_log(rewards=other_rewards([0.5, -1.0, 0.0, 0.0], "pair")),
            "of state 'home', action 'wait' is 0.0 in the",
        ),
        (
            lambda: problem_of_log(
                rewards=other_rewards(least=[-0.5, -2.0, 1.0], greatest=[0.5, -1.0, 2.0])
            ),
            "least reward of state 'ward', action 'wait' → state 'ward' is -0.5 in the counts, but",
        ),
        (lambda: problem_of_log(log(pairs=Pairs.full(3, 2))), "the counts and the log enable diff"),
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
    assert raw_model() == model() == sparse(*GOOD.swapaxes(0, 1))
    assert counts().visits.tolist() == [3, 0, 1, 0]
    assert raw_counts(LoggedRewards([0.0, 0.0], "pair", True)).visits.tolist() == [3, 3]
    assert batch().num_models == 2
    assert problem().value_bound == 1.0
    assert problem_of_log(rewards=other_rewards()).log == log()
