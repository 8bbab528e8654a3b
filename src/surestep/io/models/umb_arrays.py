"""The arrays of a UMB archive: numbers, bits, runs, strings and valuations of states.

All are in little-endian order. What is declared is held against the size of a file before any of
it is read.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from surestep._arrays import AnyArray, BoolArray, FloatArray, IntArray, read_offsets
from surestep.errors import InvalidModel
from surestep.io.models.umb_archive import Archive
from surestep.io.models.umb_index import Record
from surestep.model.pairs import Labels

WIDTH = {"double": 64, "rational": 128}  # bits, where the index does not say
VARIABLE_WIDTH = {"bool": 1, "int": 64, "uint": 64}  # bits, where the index does not say
DOUBLE = 8  # bytes
PADDING = "padding"


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


def numbers(archive: Archive, name: str, count: int, kind: Record) -> FloatArray:
    """Reads `count` real numbers of a declared type; all are 0 without a file."""
    width = number_width(kind)
    if width == DOUBLE or name not in archive:
        doubles: FloatArray = column(archive, name, count, "<f8")
        return doubles
    data = values(archive, name, count, width)
    return np.fromiter(
        (rational(data[at : at + width]) for at in range(0, len(data), width)), np.float64, count
    )


def number_width(kind: Record) -> int:
    """Returns how many bytes a number of a declared type has: 8, of a fraction 16 or a multiple."""
    word = kind.get("type", str)
    if word not in WIDTH:
        raise InvalidModel(
            f"{kind.place}: values are of type {word!r}, expected {' or '.join(WIDTH)}"
        )
    width = kind.count("size", WIDTH[word])
    if width % WIDTH[word] or not width or (word == "double" and width != WIDTH[word]):
        raise InvalidModel(f"{kind.place}: the size of a {word} is {width} bits, which cannot be")
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


class Variable(NamedTuple):
    """A variable, or bits that mean nothing, in the order in which they are packed."""

    name: str
    kind: str
    width: int  # bits
    offset: int  # to be added to the value that is stored


def valuation_labels(archive: Archive, valuations: Record, states: int) -> Labels:
    """Reads labels such as (x=1,b=true) [S].

    None where there are no valuations, where two states share one, or where there are variables
    other than whole numbers and truth values: the model is one without labels too.
    """
    description = valuations.record("states", {})
    classes = description.get("classes", list, [])
    variables = read_variables(description.place, classes[0]) if len(classes) == 1 else None
    if not variables or all(variable.kind == PADDING for variable in variables):
        return None
    total = sum(variable.width for variable in variables)
    if total % 8:
        raise InvalidModel(
            f"{description.place}: a valuation has {total} bits, expected whole bytes"
        )
    data = values(archive, "valuations/states/valuations.bin", states, total // 8)
    rows = np.frombuffer(data, np.uint8).reshape(states, -1)
    columns: list[list[str]] = []
    at = 0
    for variable in variables:
        if variable.kind != PADDING:
            first, last = at // 8, -(-(at + variable.width) // 8)
            packed = np.unpackbits(rows[:, first:last], axis=1, bitorder="little")
            begin = at - 8 * first
            texts = decode(variable, packed[:, begin : begin + variable.width].astype(np.bool_))
            columns.append([f"{variable.name}={text}" for text in texts])
        at += variable.width
    labels = tuple(f"({','.join(row)})" for row in zip(*columns, strict=True))
    return labels if len(set(labels)) == states else None


def read_variables(place: str, described: object) -> list[Variable] | None:
    """Returns the variables of a class; None where one is of a type that is not read."""
    if not isinstance(described, dict):
        raise InvalidModel(f"{place}: a class is {str(described)[:40]!r}, expected an object")
    variables: list[Variable] = []
    for entry in Record(described, place).get("variables", list):
        if not isinstance(entry, dict):
            raise InvalidModel(f"{place}: a variable is {str(entry)[:40]!r}, expected an object")
        record = Record(entry, f"{place}, variables")
        if PADDING in entry:
            variables.append(Variable("", PADDING, record.count(PADDING), 0))
            continue
        kind = record.record("type")
        word = kind.get("type", str)
        width = kind.count("size", VARIABLE_WIDTH.get(word, 0))
        if word not in VARIABLE_WIDTH or not 0 < width <= 64 or entry.get("is-optional"):
            return None
        offset = record.get("offset", int, 0)
        variables.append(Variable(record.get("name", str), word, width, offset))
    return variables


def decode(variable: Variable, mask: BoolArray) -> list[str]:
    """Returns the values of a variable as text, from its bits [S, width]."""
    if variable.kind == "bool":
        return ["true" if value else "false" for value in np.any(mask, axis=1).tolist()]
    word = np.zeros((mask.shape[0], 64), np.bool_)
    word[:, : variable.width] = mask
    if variable.kind == "int":  # the highest bit is the sign
        word[:, variable.width :] = mask[:, -1:]
    signed = "<i8" if variable.kind == "int" else "<u8"
    stored = np.packbits(word, axis=1, bitorder="little").view(signed).ravel()
    return [str(value + variable.offset) for value in stored.tolist()]
