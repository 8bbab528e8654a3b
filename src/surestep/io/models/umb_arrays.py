"""The arrays of a UMB archive: numbers, bits, runs, strings and valuations of states.

All are in little-endian order. What is declared is held against the size of a file before any of
it is read.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from surestep._arrays import AnyArray, BoolArray, FloatArray, IntArray, read_offsets
from surestep.errors import InvalidModel
from surestep.io.models.umb_archive import Archive
from surestep.io.models.umb_index import Valuations, ValueType, Variable
from surestep.model.pairs import Labels

WIDTH = {"double": 64, "rational": 128}  # bits, where the index does not say
VARIABLE_WIDTH = {"bool": 1, "int": 64, "uint": 64}  # bits, where the index does not say
DOUBLE = 8  # bytes


def column(archive: Archive, name: str, count: int, dtype: str) -> AnyArray:
    """Reads `count` values of a machine type; all are 0 without a file."""
    if name not in archive:
        return np.zeros(count, dtype)
    return np.frombuffer(values(archive, name, count, np.dtype(dtype).itemsize), dtype)


def values(archive: Archive, name: str, count: int, width: int) -> bytes:
    """Reads the bytes of `count` values of `width` bytes each, if that is what the file holds."""
    expect_size(archive, name, count, width)
    return archive.read(name)


def expect_size(archive: Archive, name: str, count: int, width: int) -> None:
    """Refuses a file that does not hold `count` values, before anything of it is read."""
    if archive.size(name) != count * width:
        raise InvalidModel(
            f"{name} has {archive.size(name)} bytes, expected {count * width} ({count} × {width})"
        )


def bits(archive: Archive, name: str, count: int) -> BoolArray:
    """Reads `count` bits in words of 64, the lowest first; none is set without a file."""
    words = column(archive, name, -(-count // 64), "<u8")
    return np.unpackbits(words.view(np.uint8), count=count, bitorder="little").astype(np.bool_)


def runs(archive: Archive, name: str, items: int, total: int) -> IntArray:
    """Reads the offsets of `items` runs over `total` elements; runs of one without a file."""
    expect_runs(archive, name, items, total)
    if name not in archive:
        return np.arange(items + 1)
    offsets = column(archive, name, items + 1, "<u8")
    return read_offsets(name, offsets, items, total, InvalidModel)


def expect_runs(archive: Archive, name: str, items: int, total: int) -> None:
    """Refuses a file that does not hold the offsets of `items` runs."""
    if name in archive:
        expect_size(archive, name, items + 1, 8)
    elif items != total:
        raise InvalidModel(f"{name} is missing, but {items} runs over {total} elements need it")


def strings(archive: Archive, folder: str, count: int) -> list[str] | None:
    """Reads `count` strings; None without a file."""
    if f"{folder}/string-mapping.bin" not in archive:
        return None
    size = archive.size(f"{folder}/strings.bin")
    offsets = runs(archive, f"{folder}/string-mapping.bin", count, size)
    data = archive.read(f"{folder}/strings.bin")
    try:
        return [data[first:last].decode("utf-8") for first, last in pairwise(offsets.tolist())]
    except UnicodeDecodeError:
        raise InvalidModel(f"{folder}/strings.bin is not valid UTF-8") from None


def numbers(archive: Archive, name: str, count: int, kind: ValueType) -> FloatArray:
    """Reads `count` real numbers of a declared type; all are 0 without a file."""
    width = number_width(name, kind)
    if width == DOUBLE or name not in archive:
        doubles: FloatArray = column(archive, name, count, "<f8")
        return doubles
    data = values(archive, name, count, width)
    return np.fromiter(
        (rational(data[at : at + width]) for at in range(0, len(data), width)), np.float64, count
    )


def number_width(name: str, kind: ValueType) -> int:
    """Returns how many bytes a number of a declared type has: 8, of a fraction 16 or a multiple."""
    if kind.type not in WIDTH:
        raise InvalidModel(
            f"{name}: values are of type {kind.type!r}, expected {' or '.join(WIDTH)}"
        )
    usual = WIDTH[kind.type]
    width = kind.size or usual
    if width % usual or (kind.type == "double" and width != usual):
        raise InvalidModel(f"{name}: the size of a {kind.type} is {width} bits, which cannot be")
    return width // 8


def rational(data: bytes) -> float:
    """Returns the double nearest to a fraction: a signed numerator, an unsigned denominator."""
    half = len(data) // 2
    numerator = int.from_bytes(data[:half], "little", signed=True)
    denominator = int.from_bytes(data[half:], "little")
    try:
        return numerator / denominator
    except ArithmeticError:  # not a number of any use: refused where it is used
        return float("nan")


# ---- valuations of states: the values of variables, packed bit by bit ---------------------------


def valuation_labels(archive: Archive, valuations: Valuations, states: int) -> Labels:
    """Reads labels such as (x=1,b=true) [S].

    None where there are no valuations, where two states share one, or where there are variables
    other than whole numbers and truth values: the model is one without labels too.
    """
    classes = valuations.states.classes
    variables = classes[0].variables if len(classes) == 1 else []
    widths = [*map(variable_width, variables)]
    if 0 in widths or all(variable.padding for variable in variables):
        return None
    total = sum(widths)
    name = "valuations/states/valuations.bin"
    if total % 8:
        raise InvalidModel(f"{name}: a valuation has {total} bits, expected whole bytes")
    data = values(archive, name, states, total // 8)
    rows = np.frombuffer(data, np.uint8).reshape(states, -1)
    columns: list[list[str]] = []
    at = 0
    for variable, width in zip(variables, widths, strict=True):
        if not variable.padding:
            first, last = at // 8, -(-(at + width) // 8)
            packed = np.unpackbits(rows[:, first:last], axis=1, bitorder="little")
            begin = at - 8 * first
            texts = decode(variable, packed[:, begin : begin + width].astype(np.bool_))
            columns.append([f"{variable.name}={text}" for text in texts])
        at += width
    labels = tuple(f"({','.join(row)})" for row in zip(*columns, strict=True))
    return labels if len(set(labels)) == states else None


def variable_width(variable: Variable) -> int:
    """Returns how many bits a variable has; 0 where it is of a type that is not read."""
    if variable.padding:
        return variable.padding
    usual = VARIABLE_WIDTH.get(variable.type.type, 0)
    width = variable.type.size or usual
    return width if usual and width <= 64 and not variable.is_optional else 0


def decode(variable: Variable, mask: BoolArray) -> list[str]:
    """Returns the values of a variable as text, from its bits [S, width]."""
    kind = variable.type.type
    if kind == "bool":
        return ["true" if value else "false" for value in np.any(mask, axis=1).tolist()]
    states, width = mask.shape
    word = np.zeros((states, 64), np.bool_)
    word[:, :width] = mask
    if kind == "int":  # the highest bit is the sign
        word[:, width:] = mask[:, -1:]
    signed = "<i8" if kind == "int" else "<u8"
    stored = np.packbits(word, axis=1, bitorder="little").view(signed).ravel()
    return [str(value + variable.offset) for value in stored.tolist()]
