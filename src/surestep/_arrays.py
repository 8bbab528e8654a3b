"""Reads, checks, freezes and adds up the flat arrays that hold models, policies and logs.

A *run* is a slice of a flat array: with `offsets` of length n + 1, item i owns
`flat[offsets[i]:offsets[i + 1]]`. States own runs of pairs, pairs own runs of transitions.
"""

import dataclasses
import math
import mmap
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from surestep.errors import InvalidParameter, SurestepError

FloatArray = npt.NDArray[np.floating[Any]]  # doubles, once they are inside
IntArray = npt.NDArray[np.integer[Any]]  # 64 bits: offsets and counts
IndexArray = npt.NDArray[np.integer[Any]]  # 32 bits: states and actions
BoolArray = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]
ErrorType = type[SurestepError]
Describe = Callable[[int], str] | None  # the words for an entry, by its flat index
Kind = TypeVar("Kind", bound=AnyArray)
Result = TypeVar("Result")
Thing = TypeVar("Thing")

LARGEST_INDEX = int(np.iinfo(np.int32).max)
LARGEST_DOUBLE = float(np.finfo(np.float64).max)
LARGEST_EXACT_DOUBLE = 2**53  # above it, whole numbers are not all doubles
ROUNDING_SLACK = 1e-12  # a sum this close to 1 is 1 in doubles: its terms are kept bit for bit
SUM_TOLERANCE = 1e-6  # a sum this close to 1 (probabilities of single precision) is rescaled


# ---- reading arguments ------------------------------------------------------------------------


def numbers(name: str, values: object, error: ErrorType) -> AnyArray:
    """Returns `values` as an array of numbers of any shape and type."""
    if isinstance(values, np.ma.MaskedArray):
        raise error(f"{name} is a masked array, expected one without missing values")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError) as problem:
        raise error(f"{name} is not a rectangular table of numbers: {problem}") from None
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise error(f"{name} holds values of type {array.dtype}, expected numbers")
    return array


def floats(
    name: str,
    values: object,
    shape: tuple[int, ...] | None,
    error: ErrorType,
    describe: Describe = None,
    *,
    least: float = -LARGEST_DOUBLE,
    most: float = LARGEST_DOUBLE,
) -> FloatArray:
    """Returns finite doubles of the given shape (any shape for None), from `least` to `most`.

    `describe` turns the flat index of an offender into words for the message.
    """
    result: FloatArray = shaped(name, numbers(name, values, error), shape, error).astype(
        np.float64, copy=False
    )
    check_within(name, result, (least, most), error, describe)
    return result


def whole_numbers(
    name: str,
    values: object,
    shape: tuple[int, ...] | None,
    error: ErrorType,
    describe: Describe = None,
) -> IntArray:
    """Returns 64-bit integers of the given shape (any for None); whole doubles are taken, too."""
    array = shaped(name, numbers(name, values, error), shape, error)
    if array.dtype.kind == "f":
        array = array.astype(np.float64, copy=False)  # half precision cannot hold the limit
        wrong = ~(np.abs(array) <= LARGEST_EXACT_DOUBLE) | (array != np.round(array))
    elif array.dtype == np.uint64:
        wrong = array > np.iinfo(np.int64).max
    else:
        return array.astype(np.int64, copy=False)
    for i, others in first_where(wrong, "value"):
        raise error(
            f"{name}{entry_name(array, i, describe)} is {array.flat[i]}, expected a whole "
            f"number{others}"
        )
    return array.astype(np.int64, copy=False)


def booleans(name: str, values: object, shape: tuple[int, ...], error: ErrorType) -> BoolArray:
    """Returns booleans of the given shape; the numbers 0 and 1 are taken, too."""
    array = shaped(name, numbers(name, values, error), shape, error)
    if array.dtype == np.bool_:
        return array
    for i, others in first_where((array != 0) & (array != 1), "value"):
        raise error(
            f"{name}{entry_name(array, i)} is {array.flat[i]}, expected True or False{others}"
        )
    return array.astype(np.bool_, copy=False)


def indices(
    name: str,
    values: object,
    below: int,
    error: ErrorType,
    describe: Describe = None,
    *,
    least: int = 0,
) -> IndexArray:
    """Returns flat indices `least` ≤ i < `below` in 32 bits: the caller's own, or frozen."""
    array = numbers(name, values, error)
    if array.dtype != np.int32:
        array = whole_numbers(name, array, None, error, describe)
    if array.ndim != 1:
        raise error(f"{name} has {array.ndim} dimensions, expected a flat array")
    check_within(name, array, (least, below - 1), error, describe)
    return array if array.dtype == np.int32 else own(array.astype(np.int32))


def check_within(
    name: str, array: AnyArray, span: tuple[float, float], error: ErrorType, describe: Describe
) -> None:
    """Refuses numbers outside a span, and NaN; allocates no array unless it refuses."""
    least, most = span
    if array.size == 0 or (
        np.minimum.reduce(array, None) >= least
        and (most == math.inf or np.maximum.reduce(array, None) <= most)
    ):
        return
    wanted = f"{least} to {most}" if most < LARGEST_DOUBLE else f"{least} or more, and finite"
    if least == -LARGEST_DOUBLE:
        wanted = "a finite number"
    for i, others in first_where(~((array >= least) & (array <= most)), "value"):
        raise error(
            f"{name}{entry_name(array, i, describe)} is {array.flat[i]}, expected {wanted}{others}"
        )


def shaped(name: str, array: AnyArray, shape: tuple[int, ...] | None, error: ErrorType) -> AnyArray:
    """Returns the array unchanged; refuses one of another shape."""
    if shape is not None and array.shape != shape:
        raise error(f"{name} has shape {array.shape}, expected {shape}")
    return array


def entry_name(array: AnyArray, flat_index: int, describe: Describe = None) -> str:
    """Returns the place of an entry in words: ' of state 3, action 1' or '[3, 1]'."""
    if describe is not None:
        return f" of {describe(flat_index)}"
    return str([int(i) for i in np.unravel_index(flat_index, array.shape)]) if array.ndim else ""


def first_where(wrong: AnyArray, noun: str) -> list[tuple[int, str]]:
    """Returns a list with the first wrong entry and their number in words, or an empty list.

    `for i, others in first_where(…): raise …` refuses it.
    """
    return [(int(np.argmax(wrong)), affected(wrong, noun))] if wrong.any() else []


def affected(wrong: AnyArray, noun: str) -> str:
    """Words how many of several entries are wrong: '; 1 of 3 pairs is affected'."""
    count = int(np.count_nonzero(wrong))
    verb = "is" if count == 1 else "are"
    return f"; {count} of {wrong.size} {noun}s {verb} affected" if wrong.size != 1 else ""


def is_number(value: object) -> TypeGuard[float]:
    """Tells whether a setting is a real number that fits a double (NaN and infinities too)."""
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        return False
    return not isinstance(value, int) or abs(value) <= LARGEST_DOUBLE


def as_python(value: Any) -> Any:
    """Returns a number of NumPy's as Python's own, and an array, or a list of them, as a tuple."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
        return tuple(value) if isinstance(value, list) else value
    if isinstance(value, tuple | list) and any(isinstance(part, np.generic) for part in value):
        return tuple(map(as_python, value))
    return value


def read_discount(discount: object) -> float:
    """Returns a discount from 0 to 1; an array without dimensions is a number too."""
    number = as_python(discount)
    if not (is_number(number) and 0 <= number <= 1):
        raise InvalidParameter(f"discount is {discount!r}, expected 0 to 1")
    return float(number)


def generator(rng: object) -> np.random.Generator:
    """Returns the generator itself, or a new one with this seed."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise InvalidParameter(
            f"rng is {shown(rng)}, expected a numpy.random.Generator, or a whole number of 0 or "
            "more, the seed of one"
        )
    return np.random.default_rng(int(rng))


def shown(value: object) -> str:
    """Returns a value for a message, cut short where it is long."""
    if isinstance(value, int) and not is_number(value) and not isinstance(value, bool):
        return "a whole number beyond all doubles"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def expect(
    name: str, value: object, kind: type | tuple[type, ...], error: ErrorType = InvalidParameter
) -> None:
    """Refuses an argument of another type."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(allowed.__name__ for allowed in kinds)
        raise error(f"{name} is of type {type(value).__name__}, expected {wanted}")


def expect_count(name: str, value: object) -> None:
    """Refuses anything but a whole number of 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidParameter(f"{name} is {shown(value)}, expected a whole number of 1 or more")


def least_draws(delta: float) -> int:
    """Returns ⌈1/δ⌉ − 1: fewer draws show nothing so rare. 1/δ may be rounded a little."""
    return math.ceil(1 / Fraction(float(delta)) - Fraction(1, 10**9)) - 1


def in_digits(count: int) -> str:
    """Returns a whole number for a message: a long one as a power of ten."""
    return f"{count}" if count < 10**15 else f"{Decimal(count):.6g}"


def freeze(array: Kind) -> Kind:
    """Returns a read-only contiguous array.

    An array that is read-only already, down to its memory or its mapped file, is not copied. Any
    other array is copied, so that the caller may go on writing to its own.
    """
    flags = array.flags
    if array.base is None and not flags.writeable and flags.c_contiguous:
        return array
    owner = writable_owner(array)
    shared = owner is not None
    if isinstance(owner, mmap.mmap):
        shared = not memoryview(owner).readonly
    return own(array.copy(order="C") if shared or not array.flags.c_contiguous else array)


def writable_owner(array: AnyArray) -> object:
    """Returns what may change an array: an array that it is a view of, or memory not of NumPy.

    It is the array itself if that may be written to; None if all is read-only down to its memory.
    """
    owner: object = array
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    return owner


def own(array: Kind) -> Kind:
    """Makes a new array read-only in place, without a copy, and returns it."""
    array.flags.writeable = False
    return array


def keep(noun: Any, **fields: object) -> None:
    """Sets fields of a frozen dataclass in its constructor; arrays become read-only."""
    for name, value in fields.items():
        object.__setattr__(noun, name, freeze(value) if isinstance(value, np.ndarray) else value)


def altered(noun: Thing, **fields: object) -> Thing:
    """Returns a copy of a dataclass with other fields, unchecked since the package made them."""
    result = object.__new__(type(noun))
    for field in dataclasses.fields(noun):  # type: ignore[arg-type]
        value = fields.get(field.name, getattr(noun, field.name))
        object.__setattr__(
            result, field.name, own(value) if isinstance(value, np.ndarray) else value
        )
    return result


def restore_frozen(instance: Any, state: Sequence[object]) -> None:
    """Restores a pickled or copied dataclass with read-only arrays: a `__setstate__`."""
    keep(
        instance,
        **dict(zip([field.name for field in dataclasses.fields(instance)], state, strict=True)),
    )


def equal_fields(first: Any, second: Any) -> bool:
    """Tells whether two dataclass instances of one type are equal, arrays compared in full."""
    pairs = ((getattr(first, f.name), getattr(second, f.name)) for f in dataclasses.fields(first))
    return all(
        a is b
        or (
            np.array_equal(a, b)
            if isinstance(a, np.ndarray) or isinstance(b, np.ndarray)
            else a == b
        )
        for a, b in pairs
    )


class ByValue:
    """A base of dataclasses that are equal if their fields are equal, and have no hash."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and equal_fields(self, other))


class Frozen:
    """A base of dataclasses whose arrays the package made: freezes them without a check."""

    __slots__ = ()

    def __post_init__(self) -> None:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        keep(self, **{field.name: getattr(self, field.name) for field in fields})


class Remembering:
    """A base of dataclasses that cache derived values; copies, pickles and == omit them."""

    __slots__ = ("_known",)
    _known: dict[object, Any]

    def remembered(self, key: object, derive: Callable[[], Result]) -> Result:
        """Returns the cached value of this key; calls `derive` if there is none."""
        if not hasattr(self, "_known"):
            object.__setattr__(self, "_known", {})
        if key not in self._known:
            self._known[key] = derive()
        answer: Result = self._known[key]
        return answer


# ---- runs -------------------------------------------------------------------------------------


def read_offsets(name: str, values: object, items: int, total: int, error: ErrorType) -> IntArray:
    """Returns offsets of `items` runs over a flat array of length `total`."""
    offsets = whole_numbers(name, values, (items + 1,), error)
    if offsets[0] != 0 or offsets[-1] != total:
        raise error(f"{name} runs from {offsets[0]} to {offsets[-1]}, expected from 0 to {total}")
    for i, others in first_where(offsets[1:] < offsets[:-1], "run"):
        raise error(
            f"{name} falls from {offsets[i]} to {offsets[i + 1]} at position {i + 1}{others}"
        )
    return offsets


def read_full_offsets(
    name: str, values: object, total: int, error: ErrorType, owns: tuple[Callable[[int], str], str]
) -> IntArray:
    """Returns offsets of runs, and refuses an empty run; `owns` names an owner and an element."""
    items = numbers(name, values, error).size - 1
    if not 1 <= items <= LARGEST_INDEX:
        raise error(f"{name} are those of {max(items, 0)} runs, expected 1 to {LARGEST_INDEX}")
    offsets = read_offsets(name, values, items, total, error)
    for i, others in first_where(run_lengths(offsets) == 0, "run"):
        raise error(f"{owns[0](i)} has no {owns[1]}, expected at least one{others}")
    return offsets


def offsets_of(lengths: AnyArray) -> IntArray:
    """Returns offsets of runs with the given lengths."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def places_among(keys: IntArray, wanted: IntArray) -> IntArray:
    """Returns the place of each wanted number among rising keys, which are none below 0; or −1."""
    place = np.searchsorted(keys, wanted)
    return np.where(np.append(keys, -1)[place] == wanted, place, -1)


def marked(places: AnyArray, size: int) -> BoolArray:
    """Returns a mask of this size that is true at these places only."""
    mask = np.zeros(size, np.bool_)
    mask[places] = True
    return mask


def run_lengths(offsets: IntArray) -> IntArray:
    """Returns the length of each run; `np.diff` takes three times as long for few."""
    return np.subtract(offsets[1:], offsets[:-1])


def run_owners(offsets: IntArray) -> IntArray:
    """Returns the item that owns each element of the flat array."""
    return np.repeat(np.arange(offsets.size - 1), run_lengths(offsets))


def owner(offsets: IntArray, element: int) -> int:
    """Returns the item whose run holds the element."""
    return int(np.searchsorted(offsets, element, side="right")) - 1


def ranges(starts: IntArray | int, lengths: IntArray) -> IntArray:
    """Returns start, start + 1, … for every run, run after run; `lengths` says how many."""
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)


def run_sums(values: Kind, offsets: IntArray) -> Kind:
    """Returns the sum over each run of values [..., n]; 0 for an empty one."""
    filled = run_lengths(offsets) > 0
    if filled.all() and filled.size:  # so it mostly is, and masks cost more than the sums
        return np.add.reduceat(values, offsets[:-1], axis=-1)  # type: ignore[return-value]
    sums = np.zeros((*values.shape[:-1], filled.size), dtype=values.dtype)
    if values.size:
        sums.T[filled] = np.add.reduceat(values, offsets[:-1][filled], axis=-1).T
    return sums  # type: ignore[return-value]


def largest_magnitude(values: FloatArray) -> float:
    """Returns max |values|, or 0 where there are none; without a copy of them."""
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def weighted_rows(rows: FloatArray, weight: FloatArray) -> FloatArray:
    """Returns Σ_i weight_i · row_i of each row [..., n].

    A row's sum does not depend on how many others there are, as it may with BLAS.
    """
    return np.asarray((rows * weight).sum(axis=-1))


def not_rising(values: AnyArray, offsets: IntArray) -> BoolArray:
    """Finds the values that are no larger than the one before them in their run."""
    falling = np.zeros(values.size + 1, np.bool_)
    falling[1:-1] = values[1:] <= values[:-1]
    falling[offsets] = False
    return falling[:-1]


def first_of_equal(*sorted_keys: AnyArray) -> BoolArray:
    """Finds the places where one of the keys [n], sorted together, differs from the one before."""
    new = np.ones(sorted_keys[0].size, np.bool_)
    new[1:] = np.any([key[1:] != key[:-1] for key in sorted_keys], axis=0)
    return new


def repeated_in_run(values: AnyArray, offsets: IntArray) -> BoolArray:
    """Finds the values that stand in their run for the second time."""
    repeated = np.zeros(values.size, np.bool_)
    if not_rising(values, offsets).any():  # a sort tells disorder from repetition
        owners = run_owners(offsets)
        order = np.lexsort((values, owners))
        repeated[order] = ~first_of_equal(values[order], owners[order])
    return repeated


# ---- distributions ----------------------------------------------------------------------------


class RunWords(NamedTuple):
    """The words of messages about a distribution per run."""

    what: str  # 'transition probabilities'
    noun: str  # 'pair': what a run belongs to
    name: Callable[[int], str]  # of the item that owns a run
    remedy: str = ""
    layer: str = ""  # 'model': what a leading axis numbers


def normalised_runs(
    probability: FloatArray,
    offsets: IntArray,
    words: RunWords,
    error: ErrorType,
    *,
    zeros_allowed: bool = False,
) -> FloatArray:
    """Returns probabilities [N] or [B, N] whose non-empty runs sum to 1 (or 0, where allowed).

    A sum within rounding of 1 leaves its run untouched, one within `SUM_TOLERANCE` is rescaled, any
    other one is refused. No probability that is given is below 0.
    """
    lengths = run_lengths(offsets)
    with np.errstate(over="ignore"):
        sums = run_sums(probability, offsets)
    gap = np.abs(sums - 1.0)
    gap[..., lengths == 0] = 0.0
    if zeros_allowed:
        gap[sums == 0] = 0.0
    rescale = gap > ROUNDING_SLACK
    if not rescale.any():
        return probability
    for i, others in first_where(gap > SUM_TOLERANCE, words.noun):
        layer = f" in {words.layer} {i // lengths.size}" if probability.ndim == 2 else ""
        raise error(
            f"{words.what} of {words.name(i % lengths.size)}{layer} sum to {sums.flat[i]:.10g}, "
            f"expected 1{words.remedy}{others}"
        )
    return np.asarray(probability / np.repeat(np.where(rescale, sums, 1.0), lengths, axis=-1))
