"""Random streams of the kernels: against their definition in whole numbers, and their laws."""

import numba
import numpy as np
import pytest
import scipy.stats

from support.gpu import MANY, NEARLY
from surestep.kernels._compile import Tasks
from surestep.kernels.random_streams import beta, gamma, start_stream, uniform
from surestep.kernels.types import FloatsOut, IntsOut, Room, RoomSize

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


@numba.njit
def uniforms(seed, draw, row, numbers):
    """Writes the first numbers of a stream."""
    words = start_stream(seed, draw, row)
    for i in range(numbers.size):
        numbers[i], words = uniform(words)


@numba.njit
def gammas(seed, shape, numbers):
    """Draws independent Gamma(shape) numbers, each from a stream of its own."""
    for i in range(numbers.size):
        numbers[i], _ = gamma(start_stream(seed, i, 0), shape)


def mixed(word):
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return word ^ (word >> 31)


def turned(word, bits):
    return ((word << bits) | (word >> (64 - bits))) & WORD


def stream(seed, draw, row):
    """The stream by its definition: SplitMix64 starts xoshiro256++."""
    state = 0
    for number in (seed, draw, row):
        state = mixed(((state ^ number) + GOLDEN) & WORD)
    a, b, c, d = (mixed((state + GOLDEN * i) & WORD) for i in range(1, 5))
    while True:
        result = (turned((a + d) & WORD, 23) + a) & WORD
        shifted = (b << 17) & WORD
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        d = turned(d, 45)
        yield ((result >> 12) + 0.5) * 2.0**-52


@pytest.mark.parametrize("numbers", [(0, 0, 0), (1, 2, 3), (2**63 - 1, 10**6, 2**31)], ids=str)
def test_a_stream_is_xoshiro_started_by_splitmix(numbers):
    found = np.empty(20)
    uniforms(*numbers, found)
    exact = stream(*numbers)
    assert found.tolist() == [next(exact) for _ in range(20)]


def test_neighbouring_streams_have_nothing_to_do_with_each_other():
    firsts = np.empty((60, 60))
    one = np.empty(1)
    for draw in range(60):
        for row in range(60):
            uniforms(0, draw, row, one)
            firsts[draw, row] = one[0]
    assert scipy.stats.kstest(firsts.ravel(), "uniform").pvalue > 1e-6
    for first, second in ((firsts[:-1], firsts[1:]), (firsts[:, :-1], firsts[:, 1:])):
        assert scipy.stats.pearsonr(first.ravel(), second.ravel()).pvalue > 1e-6


@pytest.mark.one_quick
@pytest.mark.parametrize("shape", [0.01, 0.2, 0.5, 0.99, 1.0, 1.2, 7.0, 1e4])
def test_gamma_numbers_have_their_law(shape):
    found = np.empty(200_000)
    gammas(3, shape, found)
    assert scipy.stats.kstest(found, scipy.stats.gamma(shape).cdf).pvalue > 1e-6


def draw_numbers(
    first: int, last: int, room: Room, shape: float, words: IntsOut, numbers: FloatsOut
) -> None:
    for task in range(first, last):
        u, stream = uniform(start_stream(5, task, 3))
        words[task] = int(u * 2.0**52)
        x, stream = gamma(stream, shape)
        y, stream = beta(stream, shape, 2.0)
        room.floats[0], room.floats[1], room.ints[0] = x, y, task
        numbers[task] = room.floats[0] + room.floats[1] + room.ints[0]


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.3, 1.0, 40.0])
def test_streams_on_a_gpu_are_the_same_to_the_bit_and_their_numbers_nearly(shape, both):
    def draw():
        words, numbers = np.zeros(MANY, np.int64), np.zeros(MANY)
        Tasks(draw_numbers, None).all(MANY, RoomSize(2, 1), shape, words, numbers)
        return words, numbers

    (expected_words, expected), (words, numbers) = both(draw)
    assert (words == expected_words).all()
    np.testing.assert_allclose(numbers, expected, **NEARLY)
