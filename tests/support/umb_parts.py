"""What tests of UMB archives share: parts of an index and of its files, and mistakes to be made."""

import json

import numpy as np

from support.model_files import DOUBLE, offsets, umb, write_umb
from surestep.io import read_mdp


def annotation(group, name, levels, kind=DOUBLE, alias=None):
    described = {"applies-to": levels, "type": kind, **({"alias": alias} if alias else {})}
    return {"annotations": {group: {name: described}}}


def values(group, name, **levels):
    return {f"annotations/{group}/{name}/{level}/values.bin": v for level, v in levels.items()}


def doubles(*numbers):
    return np.array(numbers, "<f8").tobytes()


CHOICES, BRANCHES = [2, 1], [[(0, 0.25), (1, 0.75)], [(1, 1.0)], [(1, 1.0)]]


def read(folder, *model, discount=0.5, **settings):
    return read_mdp(write_umb(folder / "m.umb", *umb(*model, **settings)), discount)


def actions(*numbers, strings=None):
    files = {"actions/choices/values.bin": np.array(numbers, "<u4").tobytes()}
    if strings is not None:
        texts = [text.encode() for text in strings]
        files["actions/choices/string-mapping.bin"] = offsets([len(text) for text in texts])
        files["actions/choices/strings.bin"] = b"".join(texts)
    return {"files": files}


def good():
    more = {
        "index": annotation("rewards", "r", ["choices"]),
        "files": {**values("rewards", "r", choices=doubles(1, 2, 3)), **actions(0, 1, 0)["files"]},
    }
    return umb(CHOICES, BRANCHES, actions=2, more=more)


def spoiled(change):
    """The good archive after a change of its index or its files."""
    index, files = good()
    index = json.loads(json.dumps(index))
    change(index, files)
    return index, files


def entry(value, *path):
    """A change of one entry of the index."""

    def change(index, files):
        for key in path[:-1]:
            index = index[key]
        if value is None:
            del index[path[-1]]
        else:
            index[path[-1]] = value

    return change


def file(name, data):
    """A change of one file."""

    def change(index, files):
        if data is None:
            del files[name]
        else:
            files[name] = data

    return change


SYSTEM, REWARD = "transition-system", ("annotations", "rewards", "r")
