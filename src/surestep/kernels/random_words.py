"""Random numbers for kernels that draw in any order: one stream for each (seed, draw, row).

A stream depends on its three numbers alone, so what is drawn does not depend on how draws are
shared out among threads and chunks, nor on which other rows are drawn. Streams are those of
xoshiro256++ (Blackman and Vigna 2021), started by SplitMix64 (Steele, Lea and Flood 2014).
"""

from __future__ import annotations

import math

import numpy as np

from surestep._arrays import AnyArray
from surestep.kernels._compile import F64, FLOATS_OUT, I64, helper, kernel

# Every number is a uint64: mixed with a signed one, Numba would turn it into a double.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
BITS_12, BITS_17, BITS_23, BITS_27 = np.uint64(12), np.uint64(17), np.uint64(23), np.uint64(27)
BITS_30, BITS_31, BITS_45, BITS_64 = np.uint64(30), np.uint64(31), np.uint64(45), np.uint64(64)


@helper
def mixed(word: np.uint64) -> np.uint64:
    """The output function of SplitMix64: every bit of the word decides about every other one."""
    word = (word ^ (word >> BITS_30)) * FIRST_FACTOR
    word = (word ^ (word >> BITS_27)) * SECOND_FACTOR
    return word ^ (word >> BITS_31)


@helper
def start_stream(words: AnyArray, seed: int, draw: int, row: int) -> None:
    """Sets `words` [4], unsigned of 64 bits, to the start of the stream of these numbers."""
    state = mixed(np.uint64(seed) + GOLDEN)
    state = mixed((state ^ np.uint64(draw)) + GOLDEN)
    state = mixed((state ^ np.uint64(row)) + GOLDEN)
    for i in range(4):
        state += GOLDEN
        words[i] = mixed(state)


@helper
def turned(word: np.uint64, bits: np.uint64) -> np.uint64:
    """The word rotated to the left."""
    return (word << bits) | (word >> (BITS_64 - bits))


@helper
def uniform(words: AnyArray) -> float:
    """The next number of the stream, more than 0 and less than 1, of 52 random bits."""
    result = turned(words[0] + words[3], BITS_23) + words[0]
    shifted = words[1] << BITS_17
    words[2] ^= words[0]
    words[3] ^= words[1]
    words[1] ^= words[2]
    words[0] ^= words[3]
    words[2] ^= shifted
    words[3] = turned(words[3], BITS_45)
    return (np.float64(result >> BITS_12) + 0.5) * 2.0**-52


@helper
def normal(words: AnyArray) -> float:
    """A standard normal number, by the polar method (Marsaglia and Bray 1964)."""
    while True:
        x, y = 2.0 * uniform(words) - 1.0, 2.0 * uniform(words) - 1.0
        square = x * x + y * y
        if 0.0 < square < 1.0:
            return x * math.sqrt(-2.0 * math.log(square) / square)


@helper
def gamma(words: AnyArray, shape: float) -> float:
    """A number with density ∝ x^(shape − 1) e^(−x).

    By Marsaglia and Tsang (2000) from shape 1 on, below by Ahrens and Dieter (1974, GS), which is
    0 where the number is too small for a double.
    """
    if shape >= 1.0:
        d = shape - 1.0 / 3.0
        c = 1.0 / math.sqrt(9.0 * d)
        while True:
            x = normal(words)
            v = 1.0 + c * x
            if v > 0.0:
                v = v * v * v
                u = uniform(words)
                if u < 1.0 - 0.0331 * (x * x) * (x * x):  # saves the logarithms, nearly always
                    return d * v
                if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                    return d * v
    b = 1.0 + shape / math.e
    while True:
        p = b * uniform(words)
        if p <= 1.0:
            x = math.exp(math.log(p) / shape)
            u = uniform(words)
            if u <= 1.0 - x or math.log(u) <= -x:  # 1 − x ≤ e^(−x)
                return x
        else:
            x = -math.log((b - p) / shape)
            if math.log(uniform(words)) <= (shape - 1.0) * math.log(x):
                return x


@helper
def beta(words: AnyArray, first: float, second: float) -> float:
    """A number with density ∝ x^(first − 1) (1 − x)^(second − 1); the two are not both tiny."""
    x, y = gamma(words, first), gamma(words, second)
    return x / (x + y)


@helper
def broken_off(words: AnyArray, alpha: float, rest: float) -> float:
    """A number from Beta(1 + α, rest), for α of no more than about 0.1.

    Drawn from Beta(1, rest) by inversion, and kept with probability x^α, which is about rest^(−α)
    on average.
    """
    while True:
        x = 1.0 - math.exp(math.log(uniform(words)) / rest)
        u = uniform(words)
        # By convexity x^α ≥ 1 + α (1 − 1/x): saves the logarithms, nearly always.
        if x > 0.0 and ((1.0 - u) * x >= alpha * (1.0 - x) or math.log(u) <= alpha * math.log(x)):
            return x


@kernel(I64, I64, I64, FLOATS_OUT)
def uniforms(seed: int, draw: int, row: int, numbers: AnyArray) -> None:
    """The first numbers of a stream."""
    words = np.empty(4, np.uint64)
    start_stream(words, seed, draw, row)
    for i in range(numbers.size):
        numbers[i] = uniform(words)


@kernel(I64, F64, FLOATS_OUT)
def gammas(seed: int, shape: float, numbers: AnyArray) -> None:
    """Independent Gamma(shape) numbers, each from a stream of its own."""
    words = np.empty(4, np.uint64)
    for i in range(numbers.size):
        start_stream(words, seed, i, 0)
        numbers[i] = gamma(words, shape)
