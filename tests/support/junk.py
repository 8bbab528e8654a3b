"""Junk for the constructors: things that are no tables, and tables that are nearly right."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

HUGE = 10**400  # fits no machine number

ODD_NUMBERS = st.sampled_from(
    [
        0,
        1,
        -1,
        2,
        0.5,
        -0.0,
        1e-320,
        1e308,
        -1e308,
        2**31,
        2**53 + 1,
        2**62,
        2**63,
        2**64 - 1,
        -(2**63),
        float("nan"),
        float("inf"),
        -float("inf"),
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=3),
    st.binary(max_size=3),
    ODD_NUMBERS,
    st.sampled_from([HUGE, -HUGE, object(), type, {}, {1: 2}, set(), range(3), slice(2), ...]),
    st.sampled_from([np.float16(0.5), np.float32(0.5), np.int8(1), np.bool_(True), np.uint64(2)]),
    st.sampled_from([np.longdouble("1e4000"), np.datetime64("2020-01-01"), np.str_("a")]),
)
DTYPES = st.sampled_from(
    ["?", "i1", "i4", "i8", "u8", "f2", "f4", "f8", "g", "c16", "O", "U2", "S2", "M8[s]", "m8[s]"]
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)
LISTS = st.recursive(
    st.one_of(st.integers(-2, 2), st.floats(), st.none(), ODD_NUMBERS, st.just(HUGE)),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=8,
)


@st.composite
def junk_arrays(draw):
    """Arrays of any type and shape, read-only, reversed and masked ones included."""
    array = draw(hnp.arrays(draw(DTYPES), draw(SHAPES)))
    form = draw(st.sampled_from(["plain", "frozen", "reversed", "fortran", "masked", "structured"]))
    if form == "frozen":
        array.flags.writeable = False
    elif form == "reversed" and array.ndim:
        array = array[::-1]
    elif form == "fortran":
        array = np.asfortranarray(array)
    elif form == "masked" and array.dtype.kind in "iuf":
        array = np.ma.masked_array(array, np.zeros(array.shape, bool))
    elif form == "structured":
        array = np.zeros(2, [("a", "i4"), ("b", "f8")])
    return array


@st.composite
def sparse_matrices(draw):
    """SciPy matrices of any size and number type."""
    states = draw(st.integers(1, 3))
    shape = draw(st.sampled_from([(states, states), (states, states + 1), (1, 1)]))
    dense = np.zeros(shape, draw(st.sampled_from(["?", "i1", "f4", "f8", "c16", "g"])))
    value = draw(ODD_NUMBERS)
    with np.errstate(all="ignore"):
        dense[draw(st.integers(0, shape[0] - 1)), 0] = np.float64(value).astype(dense.dtype)
    kind = draw(st.sampled_from([scipy.sparse.csr_array, scipy.sparse.coo_matrix]))
    return kind(dense)


JUNK = st.one_of(
    SCALARS, junk_arrays(), LISTS, sparse_matrices(), st.lists(sparse_matrices(), max_size=3)
)


@st.composite
def nearly(draw, table):
    """The table with one thing wrong, or none: an odd entry, another shape, another type."""
    array = np.array(table)
    change = draw(st.sampled_from(["none", "entry", "entries", "shape", "type", "list", "order"]))
    if change in ("entry", "entries") and array.size:
        cells = array.ravel().tolist()
        for _ in range(1 if change == "entry" else draw(st.integers(1, array.size))):
            cells[draw(st.integers(0, array.size - 1))] = draw(ODD_NUMBERS)
        ragged = any(np.ndim(cell) for cell in cells)
        array = np.array(cells, dtype=object if ragged else None).reshape(array.shape)
    elif change == "shape":
        array = draw(
            st.sampled_from(
                [
                    array[..., np.newaxis],
                    array[np.newaxis],
                    array[:-1] if array.ndim else array,
                    np.concatenate([array, array]) if array.ndim else array,
                    array.ravel(),
                    array.T,
                    array[:0] if array.ndim else array,
                ]
            )
        )
    elif change == "type":
        with np.errstate(all="ignore"):
            array = array.astype(draw(DTYPES.filter(lambda d: d not in ("M8[s]", "m8[s]"))))
    elif change == "list":
        return array.tolist()
    elif change == "order":
        array = np.asfortranarray(array)
    return array


@st.composite
def arguments(draw, good):
    """The good arguments by name, some of them spoiled."""
    spoiled = draw(st.lists(st.sampled_from(sorted(good)), unique=True, max_size=2))
    result = dict(good)
    for name in spoiled:
        value = good[name]
        if isinstance(value, np.ndarray | float | int) and draw(st.integers(0, 3)):
            result[name] = draw(nearly(value))
        else:
            result[name] = draw(JUNK)
    return result


def paths_of(value, path=()):
    """The way to every place in a JSON value but the whole of it."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from paths_of(each, (*path, key))


def damaged(data, content):
    """The bytes with some of them changed, cut, put in or repeated."""
    content = bytearray(content)
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, max(0, len(content) - 1)))
        size = data.draw(st.integers(1, 40))
        fresh = data.draw(
            st.one_of(
                st.binary(max_size=6),
                st.sampled_from([b"\0", b'"', b"\n", b"\xff", b"PAR1", b"9" * 400]),
            )
        )
        how = data.draw(st.sampled_from(["change", "cut", "insert", "repeat", "end"]))
        if how == "change":
            content[place : place + len(fresh)] = fresh
        elif how == "cut":
            del content[place : place + size]
        elif how == "insert":
            content[place:place] = fresh
        elif how == "repeat":
            content[place:place] = content[place : place + size]
        else:
            del content[place:]
    return bytes(content)
