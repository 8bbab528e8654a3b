"""Text files of numbers and words, one record a line, read as arrays.

The words of a file are found all at once, as positions in its bytes. A column of them becomes an
array without a loop over lines, and a word that is not what it should be is named with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surestep._arrays import LARGEST_INDEX, BoolArray, FloatArray, IntArray, run_lengths
from surestep.errors import InvalidModel

BLANK = np.isin(np.arange(256), list(b" \t\n\r\v\f"))
NEWLINE, COMMENT, ZERO = b"\n#0"
MOST_DIGITS = len(str(LARGEST_INDEX))
SHOWN = 40  # characters of a word that a message quotes
RATIONAL = re.compile(rb"([+-]?\d+)/(\d+)")


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """The lines of a file that are neither blank nor comments (`# …`), and their words.

    Line i has the words `offsets[i]` … `offsets[i+1] − 1`, and word w the bytes `first[w]` …
    `last[w] − 1`.
    """

    data: bytes
    number: IntArray  # [L] counted from 1, comments and blank lines included
    offsets: IntArray  # [L+1]
    first: IntArray  # [W]
    last: IntArray  # [W]

    @property
    def lengths(self) -> IntArray:
        """How many words each line has [L]."""
        return run_lengths(self.offsets)

    def __len__(self) -> int:
        return self.number.size

    def after(self, header: int) -> Lines:
        """The lines without the first ones."""
        return Lines(self.data, self.number[header:], self.offsets[header:], self.first, self.last)

    def column(self, index: int) -> IntArray:
        """The word that stands in each line at the given place [L]."""
        return self.offsets[:-1] + index

    def text(self, word: int) -> bytes:
        """The word as it stands in the file."""
        return self.data[self.first[word] : self.last[word]]

    def texts(self, words: IntArray) -> list[bytes]:
        """Many words as they stand in the file."""
        bounds = zip(self.first[words].tolist(), self.last[words].tolist(), strict=True)
        return [self.data[first:last] for first, last in bounds]

    def whole(self, words: IntArray, what: str, below: int = LARGEST_INDEX + 1) -> IntArray:
        """Whole numbers 0 ≤ n < `below`; `what` calls them in messages."""
        size = self.last[words] - self.first[words]
        letters = np.frombuffer(self.data, np.uint8)
        value = np.zeros(words.size, np.int64)
        wrong = (size < 1) | (size > MOST_DIGITS)
        for place in range(min(int(size.max(initial=0)), MOST_DIGITS)):
            inside = place < size
            # A word shorter than others must not look past the end of the file.
            digit = letters[np.where(inside, self.first[words] + place, 0)].astype(np.int64) - ZERO
            wrong |= inside & ((digit < 0) | (digit > 9))
            value = np.where(inside, 10 * value + digit, value)
        self.refuse(
            wrong | (value >= below),
            words,
            lambda word: f"{what} is {word}, expected a whole number from 0 to {below - 1}",
        )
        return value

    def doubles(self, words: IntArray, what: str) -> FloatArray:
        """Finite numbers: decimal, scientific or rational (1/3), rounded to the nearest double."""
        texts = self.texts(words)
        try:
            value = np.fromiter(map(float, texts), np.float64, len(texts))
        except ValueError:
            value = np.fromiter(map(nearest_double, texts), np.float64, len(texts))
        if b"_" in self.data:  # Python's float takes 1_000, no checker does
            value[np.fromiter((b"_" in text for text in texts), np.bool_, len(texts))] = np.nan
        self.refuse(
            ~np.isfinite(value), words, lambda word: f"{what} is {word}, expected a finite number"
        )
        return value

    def refuse(self, wrong: BoolArray, words: IntArray, message: Callable[[str], str]) -> None:
        """Raises, where any of the words is wrong: its line, and what it says."""
        if wrong.any():
            word = int(words[int(np.argmax(wrong))])
            text = self.text(word).decode("utf-8", "replace")
            quoted = repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")
            raise InvalidModel(f"line {self.line_of(word)}: {message(quoted)}")

    def line_of(self, word: int) -> int:
        """The number of the line in which a word stands."""
        return int(self.number[np.searchsorted(self.offsets, word, side="right") - 1])


def split_lines(data: bytes) -> Lines:
    """The lines and words of a file."""
    letters = np.frombuffer(data, np.uint8)
    blank = np.concatenate([[True], BLANK[letters], [True]])
    first = np.flatnonzero(blank[:-1] & ~blank[1:])
    last = np.flatnonzero(~blank[:-1] & blank[1:])
    ends = np.flatnonzero(letters == NEWLINE)
    offsets = np.concatenate([[0], np.searchsorted(first, ends), [first.size]])
    filled = offsets[1:] > offsets[:-1]
    begins = offsets[:-1][filled]
    comment = letters[first[begins]] == COMMENT
    number = np.flatnonzero(filled) + 1
    if not comment.any():
        return Lines(data, number, np.append(begins, first.size), first, last)
    kept = np.repeat(~comment, np.diff(np.append(begins, first.size)))
    lengths = np.diff(np.append(begins, first.size))[~comment]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Lines(data, number[~comment], offsets, first[kept], last[kept])


def nearest_double(text: bytes) -> float:
    """The double nearest to a decimal or rational number, and NaN for anything else."""
    try:
        rational = RATIONAL.fullmatch(text)
        if rational is None:
            return float(text)
        return int(rational[1]) / int(rational[2])
    except (ValueError, ArithmeticError):  # too many digits, a denominator of 0
        return float("nan")
