"""Valuations of states in a UMB archive: the values of variables, packed bit by bit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surestep._arrays import BoolArray
from surestep.errors import InvalidModel
from surestep.io.tar import Archive
from surestep.io.umb_index import Record
from surestep.io.umb_values import values
from surestep.model.pairs import Labels

PADDING = "padding"
WIDTH = {"bool": 1, "int": 64, "uint": 64}  # bits, where the index does not say


class Variable(NamedTuple):
    """A variable, or bits that mean nothing, in the order in which they are packed."""

    name: str
    kind: str
    width: int  # bits
    offset: int  # to be added to the value that is stored


def valuation_labels(archive: Archive, valuations: Record, states: int) -> Labels:
    """Labels such as (x=1,b=true) [S].

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
            bits = np.unpackbits(rows[:, first:last], axis=1, bitorder="little").astype(np.bool_)
            begin = at - 8 * first
            texts = decoded(variable, bits[:, begin : begin + variable.width])
            columns.append([f"{variable.name}={text}" for text in texts])
        at += variable.width
    labels = tuple(f"({','.join(row)})" for row in zip(*columns, strict=True))
    return labels if len(set(labels)) == states else None


def read_variables(place: str, described: object) -> list[Variable] | None:
    """The variables of a class of valuations; None where one is of a type that is not read."""
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
        width = kind.count("size", WIDTH.get(word, 0))
        if word not in WIDTH or not 0 < width <= 64 or entry.get("is-optional"):
            return None
        offset = record.get("offset", int, 0)
        variables.append(Variable(record.get("name", str), word, width, offset))
    return variables


def decoded(variable: Variable, bits: BoolArray) -> list[str]:
    """The values of a variable as text, from its bits [S, width]."""
    if variable.kind == "bool":
        return ["true" if value else "false" for value in np.any(bits, axis=1).tolist()]
    word = np.zeros((bits.shape[0], 64), np.bool_)
    word[:, : variable.width] = bits
    if variable.kind == "int":  # the highest bit is the sign
        word[:, variable.width :] = bits[:, -1:]
    signed = "<i8" if variable.kind == "int" else "<u8"
    stored = np.packbits(word, axis=1, bitorder="little").view(signed).ravel()
    return [str(value + variable.offset) for value in stored.tolist()]
