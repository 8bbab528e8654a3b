"""What tests of model files share: models to write, and files as others would write them."""

from __future__ import annotations

import io
import json
import lzma
import tarfile
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import stormpy
from hypothesis import strategies as st

from support.strategies import mdps
from surestep import FiniteMDP, Pairs
from surestep.io.models import prism, storm_process

AWKWARD = [
    "",
    "a0",
    "a1",
    "__a0",
    "go left",
    "end",
    "start",
    'quo"te',
    "new\nline",
    "ünï",
    "0",
    "🙂",
]
MARKS = st.sampled_from(["goal", "unsafe", "x_1", "_"])  # labels that every checker takes
NAMES = st.one_of(st.sampled_from(AWKWARD), st.text(max_size=4))


@st.composite
def storable_mdps(draw, labels=True, discounts=(0.0, 0.5, 0.9), marks=MARKS, **bounds):
    """Models with one discount, with or without labels, that start in one state or in several."""
    mdp = draw(mdps(**bounds))
    pairs, states = mdp.pairs, mdp.num_states
    initial = mdp.initial
    if draw(st.booleans()):
        initial = np.eye(states)[draw(st.integers(0, states - 1))]
    return FiniteMDP(
        Pairs(
            pairs.offsets,
            pairs.action,
            pairs.num_actions,
            draw(names(states)) if labels else None,
            draw(names(pairs.num_actions)) if labels else None,
        ),
        mdp.offsets,
        mdp.successor,
        mdp.probability,
        mdp.reward,
        np.full(mdp.num_pairs, draw(st.sampled_from(discounts))),
        initial,
        mdp.ending_reward,
        draw(st.dictionaries(marks, masks(states), max_size=2)) if labels else None,
    )


def masks(count):
    """Which of the states are marked."""
    return st.lists(st.booleans(), min_size=count, max_size=count)


def names(count):
    """Distinct labels, or none."""
    return st.one_of(
        st.none(), st.lists(NAMES, min_size=count, max_size=count, unique=True).map(tuple)
    )


DOUBLE, BIT = {"type": "double", "size": 64}, {"type": "bool", "size": 1}


def umb(choices=(), branches=(), *, actions=0, players=1, kind=DOUBLE, initial=(0,), more=None):
    """The index and the files of an archive: choices of each state, branches of each choice.

    A branch is (target, probability). `more` adds files, and entries to the index.
    """
    targets = [target for row in branches for target, _ in row]
    chances = [chance for row in branches for _, chance in row]
    system = {
        "time": "discrete",
        "#players": players,
        "#states": len(choices),
        "#initial-states": len(initial),
        "#choices": len(branches),
        "#choice-actions": actions,
        "#branches": len(targets),
        "#branch-actions": 0,
        "#observations": 0,
        "branch-probability-type": kind,
    }
    index = {"format-version": 1, "format-revision": 0, "transition-system": system}
    files = {
        "state-to-choices.bin": offsets(choices),
        "choice-to-branches.bin": offsets([len(row) for row in branches]),
        "branch-to-target.bin": np.array(targets, "<u8").tobytes(),
        "branch-to-probability.bin": np.array(chances, "<f8").tobytes(),
        "state-is-initial.bin": bits(np.isin(np.arange(len(choices)), initial)),
    }
    index.update((more or {}).get("index", {}))
    files.update((more or {}).get("files", {}))
    return index, files


def offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype("<u8").tobytes()


def bits(mask):
    padded = np.zeros(-(-len(mask) // 64) * 64, bool)
    padded[: len(mask)] = mask
    return np.packbits(padded, bitorder="little").tobytes()


def write_umb(path, index, files, compress=bytes, form=tarfile.DEFAULT_FORMAT):
    """Packs an archive with Python's tarfile."""
    buffer = io.BytesIO()
    contents = index if isinstance(index, bytes) else json.dumps(index).encode("utf-8")
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for name, data in {"index.json": contents, **files}.items():
            header = tarfile.TarInfo(name)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    path.write_bytes(compress(buffer.getvalue()))
    return path


def gzipped(data):
    coder = zlib.compressobj(wbits=31)
    return coder.compress(data) + coder.flush()


COMPRESSIONS = {"plain": bytes, "gzip": gzipped, "xz": lzma.compress}


def storm_in_this_process(monkeypatch):
    """Lets Storm read programs here: to start a process for each takes most of the time."""

    def run(script, **_):
        storm_process.main(Path(script[-1]))

    monkeypatch.setattr(prism, "subprocess", SimpleNamespace(run=run))


def storm_values(model, discount, reward=""):
    """Discounted values of a model of Storm's, the best ones of an MDP, to 1e-10."""
    direction = "" if model.model_type.name == "DTMC" else "max"
    name = f'{{"{reward}"}}' if reward else ""
    formula = stormpy.parse_property(f"R{name}{direction}=? [ Cdiscount={discount} ]")
    environment = stormpy.Environment()
    settings = environment.solver().min_max()
    settings.precision = stormpy.Rational(1e-10)
    settings.relative_termination_criterion = False
    found = stormpy.model_checking(model, formula, environment=environment)
    return np.array(found.get_value_vector())
