"""The arrays of a UMB archive: numbers, bits, runs and strings, all in little-endian order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from surestep._arrays import AnyArray, BoolArray, FloatArray, IntArray, read_offsets
from surestep.errors import InvalidModel
from surestep.io.tar import Archive
from surestep.io.umb_index import Record

WIDTH = {"double": 64, "rational": 128}  # bits, where the index does not say
DOUBLE = 8  # bytes


def column(archive: Archive, name: str, count: int, dtype: str) -> AnyArray:
    """`count` values of a machine type; all 0 without a file."""
    if name not in archive:
        return np.zeros(count, dtype)
    return np.frombuffer(values(archive, name, count, np.dtype(dtype).itemsize), dtype)


def values(archive: Archive, name: str, count: int, width: int) -> bytes:
    """The bytes of `count` values, each `width` bytes wide, if that is what the file holds."""
    expect_size(archive, name, count, width)
    return archive.read(name)


def expect_size(archive: Archive, name: str, count: int, width: int) -> None:
    """Refuses a file that does not hold `count` values, before anything of it is read."""
    if archive.size(name) != count * width:
        raise InvalidModel(
            f"{name} has {archive.size(name)} bytes, expected {count * width} ({count} × {width})"
        )


def bits(archive: Archive, name: str, count: int) -> BoolArray:
    """`count` bits in words of 64, the lowest first; none is set without a file."""
    words = column(archive, name, -(-count // 64), "<u8")
    return np.unpackbits(words.view(np.uint8), count=count, bitorder="little").astype(np.bool_)


def runs(archive: Archive, name: str, items: int, total: int) -> IntArray:
    """Offsets of `items` runs over `total` elements; runs of one without a file."""
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
    """`count` strings; None without a file."""
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
    """`count` real numbers of a declared type; all 0 without a file."""
    width = number_width(kind)
    if width == DOUBLE or name not in archive:
        doubles: FloatArray = column(archive, name, count, "<f8")
        return doubles
    data = values(archive, name, count, width)
    return np.fromiter(
        (rational(data[at : at + width]) for at in range(0, len(data), width)), np.float64, count
    )


def number_width(kind: Record) -> int:
    """How many bytes a number of a declared type has: 8, or for a fraction 16 or a multiple."""
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
    """The double nearest to a fraction: a signed numerator, then an unsigned denominator."""
    half = len(data) // 2
    numerator = int.from_bytes(data[:half], "little", signed=True)
    denominator = int.from_bytes(data[half:], "little")
    try:
        return numerator / denominator
    except ArithmeticError:  # not a number of any use: refused where it is used
        return float("nan")
