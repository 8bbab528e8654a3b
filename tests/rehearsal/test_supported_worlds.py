"""Completions where it is known what may come, and pooled actions, all by hand."""

from dataclasses import replace

import numpy as np
import pytest

from support.problems import uniform_problem
from surestep import Counts, Pairs
from surestep.errors import InvalidParameter
from surestep.model.counts import LoggedRewards
from surestep.model.successors import Successors
from surestep.rehearsal import DrawnFromPosterior, completed, completion, default_family
from surestep.rehearsal.completion import actions_alike

# State 0 has three actions, of which the last two were never tried. State 1 earns 1, state 2
# earns −1, both lead to the end 3; nobody was ever in state 4.
TIMES = np.zeros((5, 3, 5), int)
TIMES[0, 0, [1, 2]], TIMES[1, 0, 3], TIMES[2, 0, 3] = [3, 1], 3, 1
REWARDS = np.zeros((5, 3))
REWARDS[1], REWARDS[2] = 1.0, -1.0
ENABLED = np.zeros((5, 3), bool)
ENABLED[0], ENABLED[:, 0] = True, True


def problem_of(*unseen):
    """What the two unseen pairs of state 0 may lead to, and nothing else is new."""
    counts = Counts.from_dense(
        TIMES, rewards=REWARDS, enabled=ENABLED, terminal=[False] * 3 + [True, False]
    )
    problem = uniform_problem(counts, 0.5, (-9.0, 9.0))
    if not unseen:
        return problem
    rows = [[1, 2], *unseen, [3], [3], [], [4]]
    support = Successors(
        counts.pairs,
        np.cumsum([0, *map(len, rows)]),
        np.array([s for row in rows for s in row], np.int32),
    )
    return replace(problem, support=support)


def row(mdp, pair):
    run = slice(mdp.offsets[pair], mdp.offsets[pair + 1])
    return dict(zip(mdp.successor[run].tolist(), mdp.probability[run].tolist(), strict=True))


@pytest.mark.parametrize(
    ("fill", "first", "second"),
    [
        ("self-loop", {0: 1.0}, {1: 0.5, 2: 0.5}),  # a loop that cannot be goes anywhere it may
        ("uniform", {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, {1: 0.5, 2: 0.5}),
        ("pessimistic", {2: 1.0}, {2: 1.0}),
        ("optimistic", {1: 1.0}, {1: 1.0}),
    ],
)
def test_unseen_pairs_lead_only_to_where_they_may(fill, first, second):
    mdp = completed(problem_of([0, 1, 2], [1, 2]), fill)
    assert row(mdp, 0) == {1: 0.75, 2: 0.25}  # as it was seen
    assert row(mdp, 1) == pytest.approx(first)
    assert row(mdp, 2) == pytest.approx(second)
    assert row(mdp, 6) == {4: 1.0}


def test_the_best_and_the_worst_are_states_that_were_visited_where_any_may_come():
    # State 4 would be the best for a pair that leads there or to state 2: nobody knows it, though.
    for fill in ("pessimistic", "optimistic"):
        mdp = completed(problem_of([2, 4], [4]), fill)
        assert row(mdp, 1) == {2: 1.0}
        assert row(mdp, 2) == {4: 1.0}  # where nothing else may come
        assert row(completed(problem_of(), fill), 1) == {1 if fill == "optimistic" else 2: 1.0}


def test_without_a_support_all_states_are_equally_likely():
    mdp = completed(problem_of(), "uniform")
    assert row(mdp, 1) == row(mdp, 2) == pytest.approx(dict.fromkeys(range(5), 0.2))


def test_rows_that_lead_everywhere_have_a_limit(monkeypatch):
    problem = problem_of()  # 3 unseen pairs, with that of state 4, and 5 states
    monkeypatch.setattr(completion, "MOST_CELLS", 15)
    completed(problem, "uniform")
    monkeypatch.setattr(completion, "MOST_CELLS", 14)
    with pytest.raises(InvalidParameter, match=r"3 unseen pairs .* 5 states have 15 transitions"):
        completed(problem, "uniform")


def test_the_default_family_leaves_out_what_is_too_large(monkeypatch):
    monkeypatch.setattr("surestep.rehearsal.worlds.MOST_CELLS", 15)
    names = {kind.name for kind in default_family(problem_of(), None)}
    assert {"estimate, unseen: uniform", "estimate, unseen: optimistic"} <= names
    assert not {"posterior, jeffreys", "posterior, uniform"} & names  # 35 transitions
    monkeypatch.setattr("surestep.rehearsal.worlds.MOST_CELLS", 14)
    assert "estimate, unseen: uniform" not in {k.name for k in default_family(problem_of(), None)}
    supported = {kind.name for kind in default_family(problem_of([0], [1]), None)}
    assert {"estimate, unseen: uniform", "posterior, jeffreys"} <= supported
    assert not {"estimate, unseen: pessimistic", "estimate, unseen: optimistic"} & supported
    assert {"posterior, weight 1", "posterior, weight 5"} <= supported


@pytest.mark.parametrize("weight", [1e-3, 1e9])
def test_the_ends_of_the_range_of_weights_are_allowed(weight):
    assert DrawnFromPosterior("weight", weight).weight == weight
    for wrong in (float(np.nextafter(weight, 0.0 if weight < 1 else np.inf)), True):
        with pytest.raises(
            InvalidParameter, match=r"expected a number from 0\.001 to 1,000,000,000"
        ):
            DrawnFromPosterior("weight", wrong)


# ---- all actions alike ------------------------------------------------------------------------


def pooled(per, values, times):
    """Two states and two actions that lead to either; what was earned, by pair or transition."""
    counts = Counts(
        Pairs.full(2, 2),
        [0, 2, 4, 4, 4],
        [0, 1, 0, 1],
        times,
        LoggedRewards(np.array(values), per, False),
        [1, 0],
        [False, False],
    )
    return actions_alike(uniform_problem(counts, 0.5, (-9.0, 9.0)))


def test_actions_alike_have_what_was_seen_of_all_together():
    mdp = pooled("transition", [3.0, 8.0, 9.0, 0.0], [1, 4, 3, 0])
    assert row(mdp, 0) == row(mdp, 1) == {0: 0.5, 1: 0.5}
    # To state 0: (3 + 9) in 4 times; to state 1: 8 in 4 times. Nobody decided in state 1.
    assert mdp.reward[:4].tolist() == [3.0, 2.0, 3.0, 2.0]
    assert row(mdp, 2) == row(mdp, 3) == {1: 1.0}


def test_rewards_of_pairs_are_pooled_by_how_often_each_was_taken():
    mdp = pooled("pair", [10.0, 3.0, 0.0, 0.0], [1, 4, 3, 0])
    # Action 0 earns 2 on average and action 1 earns 1. To state 0: (1 · 2 + 3 · 1)/4; to 1: 2.
    assert mdp.reward[:4].tolist() == [1.25, 2.0, 1.25, 2.0]
