"""Draws random numbers in kernels, in any order: one stream for each (seed, draw, row).

A stream depends on these three numbers alone. So the random numbers do not depend on the threads or
chunks that draw them, nor on the other rows that are drawn. The generator is xoshiro256++ (Blackman
and Vigna 2021), seeded by SplitMix64 (Steele, Lea and Flood 2014).

A stream is four words. A function that draws from it returns the number and the four new words: so
the words stay in registers, where an array would be written and read for every number.
"""

import math
from typing import TypeAlias

import numpy as np

from surestep._arrays import FloatArray
from surestep.kernels._compile import helper, inlined

# Every number is a uint64: Numba turns sums of a signed and an unsigned number into doubles.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
BITS_12, BITS_17, BITS_23, BITS_27 = np.uint64(12), np.uint64(17), np.uint64(23), np.uint64(27)
BITS_30, BITS_31, BITS_45, BITS_64 = np.uint64(30), np.uint64(31), np.uint64(45), np.uint64(64)

Words: TypeAlias = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@helper
def mixed(word: np.uint64) -> np.uint64:
    """Mixes a word as SplitMix64 does: every bit of it affects every bit of the result."""
    word = (word ^ (word >> BITS_30)) * FIRST_FACTOR
    word = (word ^ (word >> BITS_27)) * SECOND_FACTOR
    return word ^ (word >> BITS_31)


@helper
def start_stream(seed: int, draw: int, row: int) -> Words:
    """Returns the first words of the stream for (seed, draw, row)."""
    state = mixed(np.uint64(seed) + GOLDEN)
    state = mixed((state ^ np.uint64(draw)) + GOLDEN)
    first = mixed((state ^ np.uint64(row)) + GOLDEN) + GOLDEN
    second, third = first + GOLDEN, first + GOLDEN + GOLDEN
    return mixed(first), mixed(second), mixed(third), mixed(third + GOLDEN)


@helper
def turned(word: np.uint64, bits: np.uint64) -> np.uint64:
    """Returns the word rotated to the left."""
    return (word << bits) | (word >> (BITS_64 - bits))


@helper
def uniform(words: Words) -> tuple[float, Words]:
    """Returns the next number of the stream, more than 0 and less than 1, of 52 random bits."""
    a, b, c, d = words
    result = turned(a + d, BITS_23) + a
    shifted = b << BITS_17
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    return (np.float64(result >> BITS_12) + 0.5) * 2.0**-52, (a, b, c, turned(d, BITS_45))


@helper
def normal(words: Words) -> tuple[float, Words]:
    """Returns a standard normal number, by the polar method (Marsaglia and Bray 1964)."""
    while True:
        u, words = uniform(words)
        v, words = uniform(words)
        x, y = 2.0 * u - 1.0, 2.0 * v - 1.0
        square = x * x + y * y
        if 0.0 < square < 1.0:
            return x * math.sqrt(-2.0 * math.log(square) / square), words


@helper
def gamma(words: Words, shape: float) -> tuple[float, Words]:
    """Draws from the density ∝ x^(shape − 1) e^(−x).

    The method is Marsaglia and Tsang (2000) from shape 1 on, and Ahrens and Dieter (1974, GS)
    below. The latter returns 0 if the number is too small for a double.
    """
    if shape >= 1.0:
        d = shape - 1.0 / 3.0
        c = 1.0 / math.sqrt(9.0 * d)
        while True:
            x, words = normal(words)
            v = 1.0 + c * x
            if v > 0.0:
                v = v * v * v
                u, words = uniform(words)
                if u < 1.0 - 0.0331 * (x * x) * (x * x):  # saves the logarithms, nearly always
                    return d * v, words
                if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                    return d * v, words
    b = 1.0 + shape / math.e
    while True:
        u, words = uniform(words)
        p = b * u
        u, words = uniform(words)
        if p <= 1.0:
            x = math.exp(math.log(p) / shape)
            if u <= 1.0 - x or math.log(u) <= -x:  # 1 − x ≤ e^(−x)
                return x, words
        else:
            x = -math.log((b - p) / shape)
            if math.log(u) <= (shape - 1.0) * math.log(x):
                return x, words


@helper
def beta(words: Words, first: float, second: float) -> tuple[float, Words]:
    """Draws from ∝ x^(first − 1) (1 − x)^(second − 1); `first`, `second` must not both be tiny."""
    x, words = gamma(words, first)
    y, words = gamma(words, second)
    return x / (x + y), words


@inlined
def first_above(sums: FloatArray, begin: int, end: int, x: float) -> int:
    """Returns the place of the first of the rising `sums`[begin:end] above x; or the last place."""
    left = end - begin
    while left > 1:
        half = left // 2
        begin = begin + half if sums[begin + half - 1] <= x else begin
        left -= half
    return begin
