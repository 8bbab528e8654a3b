"""What rewards may be: within their bounds, within what values allow, and known or not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep import Counts, Policy, Problem
from surestep.certificates.prior import (
    all_known,
    atoms_of,
    kin_of,
    reward_draws,
    weight_of_others,
)
from surestep.errors import CertificateRefused
from surestep.model import LoggedRewards
from surestep.model.known import Ranges


def problem_of(rewards, known=True, **terms):
    """Two states; the second ends episodes. Both actions of the first were seen, 4 and 2 times."""
    times = np.zeros((2, 2, 2), int)
    times[0, 0, [0, 1]], times[0, 1, 1] = [3, 1], 2
    rewards = np.asarray(rewards, float)
    seen = times if rewards.ndim == 3 else times.sum(axis=2)
    told = {"rewards": rewards} if known else {"reward_sums": rewards * seen}
    counts = Counts.from_dense(times, **told, terminal=[False, True])
    terms = {"discount": 0.5, "value_bounds": (-2.0, 8.0)} | terms
    return Problem(counts=counts, behavior=Policy.uniform(counts), **terms)


PAIRS = [[1.0, 2.0], [0.0, 0.0]]


def within(low, high):
    """The same range of rewards on the way and at ends."""
    return Ranges((low, high), (low, high))


def test_rewards_are_known_where_none_is_left_open():
    assert all_known(problem_of(PAIRS))
    assert not all_known(problem_of(PAIRS, known=False))
    assert all_known(problem_of(np.zeros((2, 2, 2))))  # of every transition, seen or not
    assert not all_known(problem_of(np.zeros((2, 2, 2)), known=False))


def test_of_sums_alone_noise_is_taken_to_be_of_the_two_bounds():
    # Of 4 visits, 1 on average between −1 and 3 is a half: 2 of 4; of 2 visits, 2 is ¾.
    found = reward_draws(problem_of(PAIRS, known=False), "bounded", within(-1.0, 3.0))
    assert found.seen[:2].tolist() == [[-1.0, 4.0, 2.0, 2.0, 4.0], [-1.0, 4.0, 1.5, 0.5, 2.0]]
    assert np.isnan(found.seen[2:, 0]).all()


def test_atoms_are_the_rows_by_group_and_weigh_by_what_is_known_of_them():
    # κ = 3: one visit weighs 1, three 3 · 4 / 6, and what is known 4; equal rows are one.
    rows = np.zeros((5, 5))
    rows[:, 0], rows[:, 4] = [7.0, 5.0, 5.0, 5.0, 5.0], [1.0, 3.0, 1.0, 0.0, 1.0]
    offsets, atoms = atoms_of(rows, np.array([2, 0, 0, 0, 2]), 4, 3.0, (-1.0, 9.0))
    assert offsets.tolist() == [0, 1, 1, 3, 3]
    assert atoms[:, 0].tolist() == [5.0, 5.0, 7.0, -1.0, 9.0]
    assert atoms[:, 4].tolist() == [7.0, 1.0, 1.0, 0.5, 0.5]
    assert not atoms[:, 1:4].any()


def noisy(sums, least, greatest, times, **terms):
    """A problem of one action, with rewards of transitions."""
    tables = [np.asarray(each, float)[:, None] for each in (sums, least, greatest)]
    counts = Counts.from_dense(np.asarray(times)[:, None], reward_sums=tables[0])
    rewards = [table[np.asarray(times)[:, None] > 0] for table in tables]
    counts = replace(counts, rewards=LoggedRewards(rewards[0], "transition", False, *rewards[1:]))
    terms = {"discount": 0.5, "value_bounds": (-20.0, 20.0)} | terms
    return Problem(counts=counts, behavior=Policy.uniform(counts), **terms)


def test_what_never_varied_is_exact_where_others_vary():
    # What leads to state 1 earns 0 or 1, what leads to state 0 always 2, even if it was seen once.
    problem = noisy(
        sums=[[80, 12], [2, 10]],
        least=[[2, 0], [2, 0]],
        greatest=[[2, 1], [2, 1]],
        times=[[40, 40], [1, 20]],
    )
    found = reward_draws(problem, "bounded", within(0.0, 2.0))
    assert (found.group < 0).all()  # by where they lead
    assert found.seen[[0, 2]].tolist() == [[2.0, 0, 0, 0, 0]] * 2
    assert found.seen[[1, 3], :4].tolist() == [[0.0, 1.0, 12, 28], [0.0, 1.0, 10, 10]]
    assert found.seen[[1, 3], 4].tolist() == [40, 20]
    # Shares of 0.3 and 0.5 of 1, with 2 as the unit.
    others = moments((0.15, 0.25), (0.21 / 4, 0.25 / 4), (40, 20), (0, 0))
    assert found.others == pytest.approx(others)
    assert 1 < others < 100
    # Of 30 rewards 22 / 60 would not have been the usual one: 5 of 13.6, and not of 13.
    # So it is whether 12 of 40 rewards were 1, or 28.
    for visits, ones, exact in ((13, 12, False), (14, 12, True), (13, 28, False), (14, 28, True)):
        few = noisy(
            sums=[[2 * (visits - 1), ones], [2, 10]],
            least=[[2, 0], [2, 0]],
            greatest=[[2, 1], [2, 1]],
            times=[[visits - 1, 40], [1, 20]],
        )
        found = reward_draws(few, "bounded", within(0.0, 2.0))
        assert found.seen[[0, 2], 4].tolist() == ([0, 0] if exact else [visits - 1, 1])


def moments(mean, spread, visits, group):
    """κ as the docstring says, group by group; between 1 and 100."""
    between, reached = 0.0, 0.0
    for g in set(group):
        rows = [(n, m) for n, m, each in zip(visits, mean, group, strict=True) if each == g]
        total = sum(n for n, _ in rows)
        center = sum(n * m for n, m in rows) / total
        between += sum(n * (m - center) ** 2 for n, m in rows)
        reached += total - sum(n**2 for n, _ in rows) / total
    single = sum(n * v for n, v in zip(visits, spread, strict=True)) / max(
        sum(visits) - len(visits), 1
    )
    excess = between - (len(mean) - len(set(group))) * single
    return 100.0 if excess <= 0 else min(max(single * reached / excess, 1.0), 100.0)


@given(
    rows=st.lists(
        st.tuples(
            st.integers(-24, 24).map(lambda eighths: eighths / 8),  # alone, it is its own mean
            st.floats(0.1, 4),
            st.integers(1, 9),
            st.sampled_from([0, 1, 4]),
        ),
        min_size=1,
        max_size=9,
    )
)
def test_others_weigh_by_the_moments_of_a_one_way_layout(rows):
    mean, spread, visits, group = map(np.array, zip(*rows, strict=True))
    found = weight_of_others(mean, spread, visits, group)
    assert found == pytest.approx(moments(*zip(*rows, strict=True)), rel=1e-6)


def test_weights_of_others_do_not_depend_on_the_unit():
    times = [[40, 40], [1, 20]]
    ends = np.array([[2, 0], [1, 0]]), np.array([[2, 1], [1, 1]])
    found = [
        reward_draws(
            noisy(
                unit * np.array([[80, 12], [1, 10]]),
                *(unit * each for each in ends),
                times,
                value_bounds=(-20 * unit, 20 * unit),
            ),
            "bounded",
            within(0.0, 2 * unit),
        )
        for unit in (1.0, 1e140, 1e-140)
    ]
    for other in found[1:]:
        assert found[0].others == pytest.approx(other.others)
        assert (found[0].group == other.group).all()


@pytest.mark.parametrize(
    ("table", "by_successor", "groups"),
    [
        ([[[0, 5]] * 2, [[0, 5]] * 2], True, 2),  # what a step pays depends on where it leads
        ([[[0, 0], [5, 5]], [[9, 9], [2, 2]]], False, 4),  # or on what was done
        ([[[0, 0], [0, 0]], [[0, 0], [0, 0]]], True, 2),
    ],
)
def test_rewards_are_like_those_that_predict_them(table, by_successor, groups):
    times = np.full((2, 2, 2), 3)
    counts = Counts.from_dense(times, reward_sums=3.0 * np.array(table))
    mean, observed = counts.means(), counts.observed > 0
    found = kin_of(counts, mean, observed)
    assert ((found.of_pair < 0).all(), found.number) == (by_successor, groups)


def left_out_error(mean, group):
    """Σ (mean − what the others of its group and the mean of all others say of it)²."""
    total = 0.0
    for i, own in enumerate(mean):
        others = [m for j, m in enumerate(mean) if j != i]
        alike = [m for j, m in enumerate(mean) if j != i and group[j] == group[i]]
        rest = sum(others) / max(len(others), 1)
        total += (own - (sum(alike) + rest) / (len(alike) + 1)) ** 2
    return total


@given(
    table=st.lists(st.integers(0, 9), min_size=6, max_size=6),
    seen=st.lists(st.booleans(), min_size=6, max_size=6).filter(any),
)
def test_the_groups_are_those_in_which_means_predict_each_other_best(table, seen):
    times = np.array(seen, int).reshape(2, 3)
    visits = np.stack([times, 0 * times], axis=2)
    counts = Counts.from_dense(visits, reward_sums=np.array(table, float).reshape(2, 3) * times)
    mean, observed = counts.means(), counts.observed > 0
    found = kin_of(counts, mean, observed)
    state, action = np.repeat([0, 1], 3), np.tile(range(3), 2)
    errors = [
        left_out_error([m for m, s in zip(table, seen, strict=True) if s], each[np.array(seen)])
        for each in (state, action, np.zeros(6, int))
    ]
    chosen = left_out_error(mean[observed].tolist(), found.of_seen[observed])
    assert chosen == pytest.approx(min(errors), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("greatest", "differs"), [(1e-9, False), (1.1e-9, True)])
def test_rewards_are_the_same_up_to_rounding_of_the_largest(greatest, differs):
    problem = noisy(
        sums=[[4, 0], [4, 0]],
        least=[[1, 0], [1, 0]],
        greatest=[[1, greatest], [1, 0]],
        times=[[4, 4], [4, 4]],
    )
    if not differs:
        assert reward_draws(problem, "deterministic", None).seen[1, 0] == 0.0
        return
    with pytest.raises(CertificateRefused, match=r"earned 0\.0 and 1\.1e-09 in the log"):
        reward_draws(problem, "deterministic", None)


def test_nothing_can_be_drawn_of_rewards_that_nobody_saw():
    counts = Counts.from_dense(np.zeros((1, 1, 1), int), reward_sums=np.zeros((1, 1)))
    empty = replace(problem_of(PAIRS), counts=counts, behavior=Policy.uniform(counts))
    with pytest.raises(CertificateRefused, match="no reward was ever observed"):
        reward_draws(empty, "deterministic", None)
    assert reward_draws(empty, "deterministic", within(0.0, 1.0)).atoms[:, 0].tolist() == [0.0, 1.0]
