"""The arrays of a UMB archive: numbers, bits, runs and strings, all in little-endian order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from surestep._arrays import AnyArray, BoolArray, FloatArray, IntArray, read_offsets
from surestep.errors import InvalidModel
from surestep.io.tar import Archive
from surestep.io.umb_index import Record

WIDTH = {"double": 64, "rational": 128}  # bits, where the index does not say


def column(archive: Archive, name: str, count: int, dtype: str) -> AnyArray:
    """`count` values of a machine type; all 0 without a file."""
    if name not in archive:
        return np.zeros(count, dtype)
    return np.frombuffer(values(archive, name, count, np.dtype(dtype).itemsize), dtype)


def values(archive: Archive, name: str, count: int, width: int) -> bytes:
    """The bytes of `count` values, each `width` bytes wide, if that is what the file holds."""
    if archive.size(name) != count * width:
        raise InvalidModel(
            f"{name} has {archive.size(name)} bytes, expected {count * width} ({count} × {width})"
        )
    return archive.read(name)


def bits(archive: Archive, name: str, count: int) -> BoolArray:
    """`count` bits in words of 64, the lowest first; none is set without a file."""
    words = column(archive, name, -(-count // 64), "<u8")
    return np.unpackbits(words.view(np.uint8), count=count, bitorder="little").astype(np.bool_)


def runs(archive: Archive, name: str, items: int, total: int) -> IntArray:
    """Offsets of `items` runs over `total` elements; runs of one without a file."""
    if name in archive:
        offsets = column(archive, name, items + 1, "<u8")
        return read_offsets(name, offsets, items, total, InvalidModel)
    if items != total:
        raise InvalidModel(f"{name} is missing, but {items} runs over {total} elements need it")
    return np.arange(items + 1)


def strings(archive: Archive, folder: str, count: int) -> list[str] | None:
    """`count` strings; None without a file."""
    if f"{folder}/string-mapping.bin" not in archive:
        return None
    data = archive.read(f"{folder}/strings.bin")
    offsets = runs(archive, f"{folder}/string-mapping.bin", count, len(data))
    try:
        return [data[first:last].decode("utf-8") for first, last in pairwise(offsets.tolist())]
    except UnicodeDecodeError:
        raise InvalidModel(f"{folder}/strings.bin is not valid UTF-8") from None


def numbers(archive: Archive, name: str, count: int, kind: Record) -> FloatArray:
    """`count` real numbers of a declared type; all 0 without a file."""
    word = kind.get("type", str)
    if word not in WIDTH:
        raise InvalidModel(
            f"{kind.place}: values are of type {word!r}, expected {' or '.join(WIDTH)}"
        )
    width = kind.count("size", WIDTH[word])
    if width % WIDTH[word] or not width or (word == "double" and width != WIDTH[word]):
        raise InvalidModel(f"{kind.place}: the size of a {word} is {width} bits, which cannot be")
    if word == "double" or name not in archive:
        doubles: FloatArray = column(archive, name, count, "<f8")
        return doubles
    half = width // 16  # bytes of the numerator, and of the denominator
    data = values(archive, name, count, 2 * half)
    return np.fromiter(
        (rational(data[at : at + 2 * half]) for at in range(0, len(data), 2 * half)),
        np.float64,
        count,
    )


def rational(data: bytes) -> float:
    """The double nearest to a fraction: a signed numerator, then an unsigned denominator."""
    half = len(data) // 2
    numerator = int.from_bytes(data[:half], "little", signed=True)
    denominator = int.from_bytes(data[half:], "little")
    try:
        return numerator / denominator
    except ArithmeticError:  # not a number of any use: refused where it is used
        return float("nan")
