"""Learning states: against brute force, what is found where the truth is known, and refusals."""

import sys

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from surestep.description import Bin
from surestep.errors import InvalidLog, MissingExtra
from surestep.io.labels import learnt_states as module
from surestep.io.labels.learnt_states import LEAST_ROWS, short_between
from surestep.kernels.runs import discounted_returns

COLUMNS = ("lactate", "age", "noise")


def learn(name, kind, size, columns, *taught):
    return module.learn(name, Bin(**{kind: size}, columns=columns), *taught)


def ward(episodes, *, noise=0.3, seed=0):
    """Earned is 1 for lactate below 2.1 in people below 60, else 0, with noise; 5 rows each."""
    rng = np.random.default_rng(seed)
    episode = np.repeat(np.arange(episodes), 5)
    values = np.column_stack(
        [
            rng.gamma(2, 1.2, episode.size).round(2),
            np.repeat(rng.integers(20, 95, episodes), 5).astype(float),
            rng.normal(size=episode.size),
        ]
    )
    earned = (values[:, 0] < 2.1) & (values[:, 1] < 60)
    return values, earned + noise * rng.normal(size=episode.size), episode


def squared_error(returns, left):
    return sum(((part - part.mean()) ** 2).sum() for part in (returns[left], returns[~left]))


TABLES = st.integers(0, 10**9).map(
    lambda seed: np.random.default_rng(seed).integers(-9, 9, (40, 2)) / [1, 4]
)


@pytest.mark.thorough
@given(TABLES, st.integers(0, 10**9), st.sampled_from([1.0, 1e-9, 1e90]))
def test_a_tree_of_two_leaves_is_the_best_threshold_of_all(table, seed, scale):
    """For any scale of measurements and of returns."""
    returns = np.random.default_rng(seed).normal(size=40) + (table[:, 0] > 1)
    errors = [
        squared_error(returns, left)
        for column in table.T
        for value in np.unique(column)
        if LEAST_ROWS <= (left := column < value).sum() <= 40 - LEAST_ROWS
    ]
    found = learn("c", "tree", 2, ("a", "b"), table * scale, returns * scale, np.arange(40))
    left = found.indices(table * scale) == 0
    assert LEAST_ROWS <= left.sum() <= 40 - LEAST_ROWS
    np.testing.assert_allclose(squared_error(returns, left), min(errors), rtol=1e-9)


def test_a_tree_finds_the_leaves_that_there_are():
    values, returns, episode = ward(400)
    found = learn("condition", "tree", 3, COLUMNS, values, returns, episode)
    assert found.name == "condition"
    assert set(found.labels) <= {
        "lactate < 2.1, age < 60", "lactate >= 2.1, age < 60", "age >= 60",
        "lactate < 2.1, age >= 60", "lactate >= 2.1",
    }  # fmt: skip
    auto = learn("condition", "tree", "auto", COLUMNS, values, returns, episode)
    assert len(auto.labels) == 4  # the least that is tried


def test_clusters_are_found_whatever_the_units():
    rng = np.random.default_rng(0)
    centres = np.array([[20.0, 1e-6], [40.0, 1e-6], [20.0, 3e-6], [40.0, 3e-6]])
    truth = np.arange(200) % 4
    values = centres[truth] + rng.normal(size=(200, 2)) * [0.5, 5e-8]
    returns, episode = truth.astype(float), np.arange(200) // 2
    for size in (4, "auto"):
        found = learn("condition", "kmeans", size, ("age", "dose"), values, returns, episode)
        place = found.indices(centres)
        np.testing.assert_allclose(np.array(found.centres)[place], centres, rtol=0.05)
        assert found.labels[place[0]] == "age about 20, dose about 1e-06"
        assert found.indices(values).tolist() == place[truth].tolist()


@pytest.mark.one_quick
@pytest.mark.parametrize("kind", ["tree", "kmeans"])
def test_what_teaches_again_finds_the_same_and_last_bits_change_nothing(kind):
    values, returns, episode = ward(60)
    found = learn("c", kind, "auto", COLUMNS, values, returns, episode)
    assert learn("c", kind, "auto", COLUMNS, values, returns, episode) == found
    shaky = np.nextafter(values, np.random.default_rng(0).choice([-1e9, 1e9], values.shape))
    other = learn("c", kind, "auto", COLUMNS, shaky, returns, episode)
    for rows in (values, shaky):
        np.testing.assert_array_equal(other.indices(rows), other.indices(values))
        np.testing.assert_array_equal(other.indices(rows), found.indices(values))


@pytest.mark.parametrize("kind", ["tree", "kmeans"])
def test_numbers_have_six_digits(kind):
    values, returns, episode = ward(60)
    content = msgspec.to_builtins(learn("c", kind, 20, COLUMNS, values, returns, episode))

    def numbers(part):
        if isinstance(part, dict | list | tuple):
            for each in part.values() if isinstance(part, dict) else part:
                yield from numbers(each)
        elif isinstance(part, float):
            yield part

    found = list(numbers(content))
    assert len(found) >= 19
    assert found == [float(f"{number:.6g}") for number in found]


def test_auto_takes_the_size_that_tells_held_out_returns_best():
    """Sixteen steps of a stair are told by 16 leaves or more, noise by as few as there are."""
    rng = np.random.default_rng(2)
    values, episode = rng.random((3000, 1)), np.arange(3000) // 3
    stair = np.floor(16 * values[:, 0])
    assert len(learn("c", "tree", "auto", ("x",), values, stair, episode).labels) >= 16
    noise = rng.normal(size=3000)
    assert len(learn("c", "tree", "auto", ("x",), values, noise, episode).labels) == 4


@pytest.mark.parametrize("kind", ["tree", "kmeans"])
def test_only_the_first_episodes_teach(kind, monkeypatch):
    values, returns, episode = ward(60)
    monkeypatch.setattr(module, "MOST_ROWS", 153)  # 30 whole episodes
    first = learn("c", kind, 6, COLUMNS, values[:150], returns[:150], episode[:150])
    assert learn("c", kind, 6, COLUMNS, values, returns, episode) == first
    first = learn("c", kind, 6, COLUMNS, values[:153], returns[:153], episode[:153])
    assert learn("c", kind, 6, COLUMNS, values, returns, episode * 0) == first


@given(
    st.lists(st.lists(st.floats(-5, 5), min_size=1, max_size=6), max_size=5),
    st.sampled_from([0.0, 0.5, 1.0]),
)
@example([], 1.0)
def test_returns_are_those_of_the_definition(episodes, discount):
    expected = [
        sum(discount**i * reward for i, reward in enumerate(rewards[t:]))
        for rewards in episodes
        for t in range(len(rewards))
    ]
    earned = np.array([reward for each in episodes for reward in each], float)
    begins = np.cumsum([0, *map(len, episodes)])
    found = discounted_returns(begins, earned, discount)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(st.floats(-1e9, 1e9), st.floats(1e-9, 1e9))
def test_a_short_number_lies_between(low, more):
    low, high = float(f"{low:.6g}"), float(f"{low + more:.6g}")
    if low < high:
        short = short_between(low, high)
        assert low < short <= high
        assert short == float(f"{short:.6g}")


def test_few_distinct_rows_are_as_many_clusters():
    values = np.repeat([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]], 4, axis=0)
    found = learn("c", "kmeans", 50, ("x", "same"), values, np.zeros(12), np.arange(12))
    assert found.centres == ((1.0, 5.0), (2.0, 5.0), (4.0, 5.0))


@pytest.mark.parametrize("kind", ["tree", "kmeans"])
def test_measurements_that_nothing_can_be_learnt_from_are_refused(kind):
    values, returns, episode = ward(20)

    def refused(says, measured=values, earned=returns, episodes=episode, size=4):
        with pytest.raises(InvalidLog, match=says):
            learn("condition", kind, size, COLUMNS, measured, earned, episodes)

    nothing = r"would be one state: lactate, age, noise \(to 6 digits\) do not tell [0-9]+ rows"
    refused(nothing, np.full((100, 3), 0.1))
    refused(nothing, 1e9 + values)
    refused(nothing, values[:1], returns[:1], episode[:1])
    outlier = np.where((np.arange(100) == 10)[:, None], 2.0, np.ones((100, 3)))
    refused(nothing, outlier, size="auto")
    refused("do not tell 0 rows", values[:0], returns[:0], episode[:0])
    refused("found on every third episode; give a size", episodes=episode // 10, size="auto")


def test_a_tree_of_returns_that_do_not_vary_is_refused():
    values, returns, episode = ward(20)
    rounding = 0.1 + 1e-17 * returns + np.where(values[:, 2] > 0, 1.4e-17, 0)
    for earned in (np.zeros(100), rounding):
        with pytest.raises(InvalidLog, match=r"lactate, age, noise .* do not tell 100 rows apart"):
            learn("condition", "tree", 4, COLUMNS, values, earned, episode)


def test_without_the_extra_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    with pytest.raises(MissingExtra, match=r"scikit-learn.*pip install '.\[states\]'"):
        learn("c", "tree", 4, COLUMNS, *ward(20))
