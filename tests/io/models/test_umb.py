"""UMB archives that others wrote: Storm's exports, what the format allows, and what is refused."""

import io
import json
import lzma
import os
import tarfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import stormpy
import stormpy.examples
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from model_files import (
    BIT,
    COMPRESSIONS,
    DOUBLE,
    bits,
    offsets,
    storm_values,
    umb,
    write_umb,
)
from surestep import optimal
from surestep.errors import InvalidModel, SurestepError
from surestep.io import from_prism, read_mdp
from surestep.io.models.umb_archive import PIECE, Unpacked

PROGRAM = """\
mdp
module walk
  x : [-2..2] init 0;
  tired : bool init false;
  [left] x > -2 & !tired -> 0.9 : (x'=x-1) + 0.1 : (tired'=true);
  [right] x < 2 & !tired -> (x'=x+1);
  [rest] tired -> (tired'=false);
endmodule
label "end" = x = 2 & !tired;
rewards "reward"
  x = 1 : 2;
  [right] true : -1;
  [rest] true : 0.5;
endrewards
rewards "steps"
  true : 1;
endrewards
"""


# ---- Storm's exports --------------------------------------------------------------------------


def build(folder, text=PROGRAM):
    """The model that Storm builds from a program, with everything that it can build."""
    (folder / "walk.prism").write_text(text)
    program = stormpy.parse_prism_program(folder / "walk.prism")
    options = stormpy.BuilderOptions(build_full=True)
    return stormpy.build_model(program, options=options)


def export(model, path, compression="NO_COMPRESSION", **settings):
    options = stormpy.io.UmbExportOptions()
    options.compression = getattr(stormpy.io.CompressionMode, compression)
    options.allow_choice_origins_as_actions = False
    for name, value in settings.items():
        setattr(options, name, value)
    stormpy.io.export_to_umb(model, path, options=options)
    return path


@pytest.mark.parametrize("compression", ["NO_COMPRESSION", "GZIP", "XZ", "DEFAULT"])
def test_storms_exports_are_read(tmp_path, compression):
    storm = build(tmp_path)
    mdp = read_mdp(export(storm, tmp_path / "walk.umb", compression), 0.9)
    assert (mdp.num_states, mdp.num_pairs) == (storm.nr_states, storm.nr_choices)
    assert_allclose(optimal(mdp).value, storm_values(storm, 0.9, "reward"), atol=1e-7)
    assert np.flatnonzero(mdp.initial).tolist() == list(storm.initial_states)
    assert mdp.pairs.state_labels[np.argmax(mdp.initial)] == "(tired=false,x=0)"
    assert len(set(mdp.pairs.state_labels)) == mdp.num_states
    assert set(mdp.pairs.action_labels) == {"left", "right", "rest"}
    assert mdp == from_prism(tmp_path / "walk.prism", 0.9, reward="reward")


def test_a_chain_of_storms_has_a_single_action(tmp_path):
    chain = (
        "dtmc\nmodule m\n x : [0..1] init 0;\n [go] x=0 -> 0.5 : (x'=1) + 0.5 : true;\nendmodule"
    )
    mdp = read_mdp(export(build(tmp_path, chain), tmp_path / "m.umb"), 0.9)
    assert mdp.pairs.action_labels is None
    assert mdp.pairs.num_actions == 1
    assert np.diff(mdp.offsets).tolist() == [2, 0]  # Storm calls the last state a deadlock
    assert not mdp.reward.any()


SHIPPED = Path(stormpy.examples.__file__).parent / "files"
EXPLICIT = {  # .tra, .lab and the rewards that Storm ships as examples of its dialect
    "a chain": ("die", "die", {"transition_rewards": "die.coin_flips.trans.rew"}),
    "two dice": ("two_dice", "two_dice", {"transition_rewards": "two_dice.flip.trans.rew"}),
    "both rewards": (
        "mdp_general",
        "mdp_general",
        {
            "state_rewards": "mdp_general.state.rew",
            "transition_rewards": "mdp_general.trans.rew",
        },
    ),
    "no rewards": ("mdp_whitespaces", "mdp_general", {}),
}


@pytest.mark.parametrize("name", EXPLICIT)
def test_explicit_files_in_storms_dialect_are_converted_by_stormpy(tmp_path, name):
    tra, lab, rewards = EXPLICIT[name]
    labels = (SHIPPED / f"lab/{lab}.lab").read_text().replace("\n4 init", "\n4")  # one start
    (tmp_path / "m.lab").write_text(labels)
    storm = stormpy.build_model_from_explicit(
        SHIPPED / f"tra/{tra}.tra",
        tmp_path / "m.lab",
        **{kind: SHIPPED / "rew" / file for kind, file in rewards.items()},
    )
    stormpy.io.export_to_umb(storm, tmp_path / "m.umb")
    mdp = read_mdp(tmp_path / "m.umb", 0.9)
    assert (mdp.num_states, mdp.num_pairs) == (storm.nr_states, storm.nr_choices)
    assert mdp.num_transitions == storm.nr_transitions
    assert np.flatnonzero(mdp.initial).tolist() == list(storm.initial_states)
    assert mdp.pairs.action_labels is None
    if rewards:
        assert_allclose(optimal(mdp).value, storm_values(storm, 0.9), atol=1e-6)
    else:
        assert not mdp.reward.any()


KINDS_OF_MODELS = {
    "ctmc": (
        "ctmc\nmodule m\n x : [0..1] init 0;\n <> x=0 -> 3 : (x'=1);\nendmodule",
        "stochastic",
    ),
    "ma": ("ma\nmodule m\n x : [0..1] init 0;\n <> x=0 -> 3 : (x'=1);\nendmodule", "urgent-stoch"),
    "pomdp": (
        "pomdp\nobservables x endobservables\nmodule m\n x : [0..1] init 0;\n"
        " [a] x=0 -> (x'=1);\nendmodule",
        "2 observations",
    ),
}


@pytest.mark.parametrize("kind", KINDS_OF_MODELS)
def test_other_kinds_of_models_are_refused(tmp_path, kind):
    text, words = KINDS_OF_MODELS[kind]
    with pytest.raises(
        InvalidModel, match=f"m.umb: the model has .*{words}.*, expected discrete t"
    ):
        read_mdp(export(build(tmp_path, text), tmp_path / "m.umb"), 0.9)


def test_intervals_are_refused(tmp_path):
    kind = stormpy.io.UmbExportValueType.DOUBLE_INTERVAL
    path = export(build(tmp_path), tmp_path / "m.umb", value_type=kind)
    with pytest.raises(InvalidModel, match="values are of type 'double-interval', expected double"):
        read_mdp(path, 0.9)


# ---- what the format allows -------------------------------------------------------------------


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


@pytest.mark.parametrize("form", COMPRESSIONS)
def test_rewards_of_states_choices_and_branches_add_up(tmp_path, form):
    more = {
        "index": annotation("rewards", "r1", ["states", "choices", "branches"], alias="cost"),
        "files": values(
            "rewards",
            "r1",
            states=doubles(1, 10),
            choices=doubles(100, 200, 300),
            branches=doubles(0.5, 0.25, 0.125, 0),
        ),
    }
    path = tmp_path / "m.umb"
    mdp = read_mdp(write_umb(path, *umb(CHOICES, BRANCHES, more=more), COMPRESSIONS[form]), 0.5)
    assert mdp.reward.tolist() == [101.5, 101.25, 201.125, 310.0]
    assert mdp.pairs.action.tolist() == [0, 1, 0]
    assert mdp.pairs.action_labels is None
    storm = stormpy.build_model_from_umb(path)
    assert_allclose(optimal(mdp).value, storm_values(storm, 0.5, "cost"), atol=1e-7)


def test_the_reward_structure_called_reward_counts(tmp_path):
    def structures(*names):
        entries = {
            f"r{i}": {"alias": n, "applies-to": ["states"], "type": DOUBLE}
            for i, n in enumerate(names)
        }
        files = {
            k: v
            for i in range(len(names))
            for k, v in values("rewards", f"r{i}", states=doubles(i + 1, 0)).items()
        }
        return {"index": {"annotations": {"rewards": entries}}, "files": files}

    assert read(tmp_path, CHOICES, BRANCHES, more=structures("cost")).reward.tolist()[0] == 1.0
    both = structures("cost", "reward")
    assert read(tmp_path, CHOICES, BRANCHES, more=both).reward.tolist()[0] == 2.0
    two = structures("cost", "time")
    with pytest.raises(
        InvalidModel, match=r"reward is None, expected one of the reward structures: 'cost', 'time'"
    ):
        read(tmp_path, CHOICES, BRANCHES, more=two)
    for number, name in enumerate(("cost", "time"), start=1):
        path = write_umb(tmp_path / "m.umb", *umb(CHOICES, BRANCHES, more=two))
        assert read_mdp(path, 0.5, reward=name).reward.tolist()[0] == number
    with pytest.raises(InvalidModel, match=r"reward is 'tine', expected one of .*: 'cost', 'time'"):
        read_mdp(path, 0.5, reward="tine")
    write_umb(path, *umb(CHOICES, BRANCHES))
    with pytest.raises(InvalidModel, match=r"reward is 'cost', expected one .*: there are none"):
        read_mdp(path, 0.5, reward="cost")


def test_labels_of_states_stay_with_the_model(tmp_path):
    more = {
        "index": {
            "annotations": {
                "aps": {
                    "l1": {"alias": "goal", "applies-to": ["states"], "type": BIT},
                    "l2": {"alias": "none", "applies-to": ["states"], "type": BIT},
                    "l3": {"alias": "risky", "applies-to": ["choices"], "type": BIT},
                }
            }
        },
        "files": values("aps", "l1", states=bits([False, True])),
    }
    mdp = read(tmp_path, CHOICES, BRANCHES, more=more)
    assert {label: states.tolist() for label, states in mdp.marks.items()} == {
        "goal": [False, True]
    }


def test_several_initial_states_become_a_distribution_when_asked_for(tmp_path):
    path = write_umb(tmp_path / "m.umb", *umb(CHOICES, BRANCHES, initial=(0, 1)))
    with pytest.raises(InvalidModel, match="2 states"):
        read_mdp(path, 0.5)
    assert read_mdp(path, 0.5, initial="uniform").initial.tolist() == [0.5, 0.5]


def test_branches_to_the_same_state_are_put_together(tmp_path):
    branches = [[(1, 0.25), (0, 0.5), (1, 0.25)], [(0, 1.0)]]
    more = {
        "index": annotation("rewards", "r", ["branches"]),
        "files": values("rewards", "r", branches=doubles(4, 1, 0, 7)),
    }
    mdp = read(tmp_path, [1, 1], branches, more=more)
    assert mdp.successor.tolist() == [0, 1, 0]
    assert mdp.probability.tolist() == [0.5, 0.5, 1.0]
    assert mdp.reward.tolist() == [1.0, 2.0, 7.0]


def test_files_that_may_be_missing_are_not_missed(tmp_path):
    index, files = umb([1, 1], [[(0, 1.0)], [(0, 1.0)]], actions=1)
    for name in ("state-to-choices.bin", "choice-to-branches.bin", "branch-to-target.bin"):
        del files[name]
    index.update(annotation("rewards", "r", ["states"]))
    mdp = read_mdp(write_umb(tmp_path / "m.umb", index, files), 0.5)
    assert mdp.successor.tolist() == [0, 0]
    assert mdp.pairs.action.tolist() == [0, 0]
    assert mdp.reward.tolist() == [0.0, 0.0]


def test_a_state_without_choices_and_a_choice_without_branches_are_ends(tmp_path):
    more = {
        "index": annotation("rewards", "r", ["choices"]),
        "files": values("rewards", "r", choices=doubles(3, 4)),
    }
    mdp = read(tmp_path, [2, 0], [[(1, 1.0)], []], more=more)
    assert np.diff(mdp.offsets).tolist() == [1, 0, 0]
    assert mdp.ending_reward.tolist() == [0.0, 4.0, 0.0]


def rationals(*fractions, size=128):
    half = size // 16
    return b"".join(
        n.to_bytes(half, "little", signed=True) + d.to_bytes(half, "little") for n, d in fractions
    )


@pytest.mark.parametrize("size", [128, 256])
def test_rationals_are_rounded_to_the_nearest_double(tmp_path, size):
    big = 2**60 if size == 128 else 3**70
    chances = [(1, 3), (2 * big, 3 * big), (1, 1), (1, 1)]
    kind = {"type": "rational", "size": size}
    more = {
        "index": annotation("rewards", "r", ["branches"], kind),
        "files": {
            "branch-to-probability.bin": rationals(*chances, size=size),
            **values(
                "rewards", "r", branches=rationals((-1, 3), (0, 1), (1, 7), (5, 2), size=size)
            ),
        },
    }
    mdp = read(tmp_path, CHOICES, BRANCHES, kind=kind, more=more)
    assert mdp.probability.tolist() == [1 / 3, 2 / 3, 1.0, 1.0]
    assert mdp.reward.tolist() == [-1 / 3, 0.0, 1 / 7, 2.5]
    if size == 128:
        storm = stormpy.build_model_from_umb(tmp_path / "m.umb")
        row = storm.transition_matrix.get_row(0)
        assert [float(entry.value) for entry in row] == mdp.probability.tolist()[:2]


def actions(*numbers, strings=None):
    files = {"actions/choices/values.bin": np.array(numbers, "<u4").tobytes()}
    if strings is not None:
        texts = [text.encode() for text in strings]
        files["actions/choices/string-mapping.bin"] = offsets([len(text) for text in texts])
        files["actions/choices/strings.bin"] = b"".join(texts)
    return {"files": files}


ACTIONS = {
    "numbers": (actions(0, 2, 1), 3, [0, 2, 1], None),
    "numbers that fall": (actions(2, 0, 1), 3, [0, 2, 1], None),
    "numbers that repeat": (actions(1, 1, 0), 3, [0, 1, 2], ("a1", "a1 (2)", "a0")),
    "names": (
        actions(0, 2, 1, strings=("go", "idle", "stay")),
        3,
        [0, 2, 1],
        ("go", "idle", "stay"),
    ),
    "names that fall": (
        actions(2, 0, 0, strings=("go", "idle", "stay")),
        3,
        [0, 1, 1],
        ("stay", "go"),
    ),
    "names that are numbers": (actions(0, 1, 0, strings=("a1", "a0")), 2, [0, 1, 0], ("a1", "a0")),
    "a choice without a name": (actions(0, 1, 1, strings=("", "go")), 2, [0, 1, 1], ("0", "go")),
    "no names at all": (actions(0, 0, 0, strings=("",)), 1, [0, 1, 0], None),
    "two actions of one name": (
        actions(0, 1, 0, strings=("go", "go")),
        2,
        [0, 1, 0],
        ("go", "go (2)"),
    ),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_actions_are_numbered(tmp_path, name):
    more, count, numbers, labels = ACTIONS[name]
    mdp = read(tmp_path, CHOICES, BRANCHES, actions=count, more=more)
    assert mdp.pairs.action.tolist() == numbers
    assert mdp.pairs.action_labels == labels


def valuations(variables, data, **more):
    described = {"states": {"unique": True, "classes": [{"variables": variables}], **more}}
    return {"index": {"valuations": described}, "files": {"valuations/states/valuations.bin": data}}


def variable(name, kind, size, **more):
    return {"name": name, "type": {"type": kind, "size": size}, **more}


VALUATIONS = {
    "of bits": (
        [variable("b", "bool", 1), variable("x", "uint", 2, offset=-3), {"padding": 5}],
        bytes([0b110, 0b001]),
        ("(b=false,x=0)", "(b=true,x=-3)"),
    ),
    "of signed numbers": (
        [variable("x", "int", 3), variable("y", "int", 13)],
        np.array([0b101 | (5 << 3), 0b011 | (0x1FFF << 3)], "<u2").tobytes(),
        ("(x=-3,y=5)", "(x=3,y=-1)"),
    ),
    "of whole words": (
        [variable("x", "uint", 64, offset=1), {"name": "y", "type": {"type": "int"}}],
        np.array([2**64 - 1, 2**64 - 2, 0, 7], "<u8").tobytes(),
        (f"(x={2**64},y=-2)", "(x=1,y=7)"),
    ),
    "that two states share": ([variable("x", "uint", 8)], bytes([1, 1]), None),
    "of other types": ([variable("x", "double", 64)], doubles(1, 2), None),
    "that may be missing": (
        [variable("x", "uint", 7, **{"is-optional": True})],
        bytes([1, 2]),
        None,
    ),
    "that are said not to be missing": (
        [variable("x", "uint", 8, **{"is-optional": None})],
        bytes([1, 2]),
        ("(x=1)", "(x=2)"),
    ),
    "with an offset that is no whole number": (
        [variable("x", "uint", 8, offset=0.5)],
        bytes([1, 2]),
        None,
    ),
    "without a name": ([{"type": {"type": "uint", "size": 8}}], bytes([1, 2]), None),
    "of padding": ([{"padding": 8}], bytes([1, 2]), None),
}


@pytest.mark.parametrize("name", VALUATIONS)
def test_valuations_become_labels(tmp_path, name):
    variables, data, labels = VALUATIONS[name]
    mdp = read(tmp_path, CHOICES, BRANCHES, more=valuations(variables, data))
    assert mdp.pairs.state_labels == labels


def test_files_that_nobody_needs_are_not_read(tmp_path):
    junk = {"annotations/aps/other/choices/values.bin": b"?", "notes.txt": b"\xff" * 700}
    index, files = umb(
        CHOICES, BRANCHES, more={"index": annotation("aps", "other", ["choices"], BIT)}
    )
    assert read_mdp(write_umb(tmp_path / "m.umb", index, {**junk, **files}), 0.5).num_pairs == 3


def test_archives_may_hold_folders_extended_headers_and_names_that_begin_with_a_dot(tmp_path):
    index, files = umb(CHOICES, BRANCHES)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        folder = tarfile.TarInfo("./actions")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in {"index.json": json.dumps(index).encode(), **files}.items():
            header = tarfile.TarInfo(f"./{name}")
            header.size, header.mtime = len(data), 1.5  # half a second needs an extended header
            header.pax_headers = {"path": header.name, "size": str(len(data))}  # told twice
            archive.addfile(header, io.BytesIO(data))
    (tmp_path / "m.umb").write_bytes(buffer.getvalue())
    assert read_mdp(tmp_path / "m.umb", 0.5) == read(tmp_path, CHOICES, BRANCHES)


def test_long_names_and_large_sizes_have_forms_of_their_own(tmp_path):
    name = "r" * 90
    more = {
        "index": annotation("rewards", name, ["states"]),
        "files": values("rewards", name, states=doubles(1, 2)),
    }
    folder = tarfile.TarInfo("annotations/rewards/" + "s" * 90)
    folder.type = tarfile.DIRTYPE
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        path = write_umb(tmp_path / "m.umb", *umb(CHOICES, BRANCHES, more=more), form=form)
        path.write_bytes(folder.tobuf(form) + path.read_bytes())
        assert read_mdp(path, 0.5).reward.tolist() == [1.0, 1.0, 1.0, 2.0]
    path = write_umb(path, *umb(CHOICES, BRANCHES, more=more), form=form)
    data = bytearray(path.read_bytes())
    size = int(data[124:135], 8)
    data[124:136] = b"\x80" + size.to_bytes(11, "big")  # in binary, as for files beyond 8 GiB
    data[148:156] = b"%06o\0 " % (sum(data[:148]) + 256 + sum(data[156:512]))
    path.write_bytes(data)
    assert read_mdp(path, 0.5).reward.tolist() == [1.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize("form", ["gzip", "xz"])
def test_nothing_but_zeros_may_follow_what_is_compressed(tmp_path, form):
    path = write_umb(tmp_path / "m.umb", *umb(CHOICES, BRANCHES), COMPRESSIONS[form])
    data, whole = path.read_bytes(), read_mdp(path, 0.5)
    path.write_bytes(data + bytes(4))
    assert read_mdp(path, 0.5) == whole
    path.write_bytes(data + data)
    with pytest.raises(InvalidModel, match="something follows the compressed data, expected noth"):
        read_mdp(path, 0.5)


def test_what_follows_is_seen_wherever_the_compressed_data_ends(tmp_path):
    path = write_umb(tmp_path / "m.umb", *umb(CHOICES, BRANCHES), COMPRESSIONS["gzip"])
    data, whole = path.read_bytes(), read_mdp(path, 0.5)
    name = b"x" * (PIECE - len(data) - 1) + b"\0"  # so that a piece ends with the data
    path.write_bytes(data[:3] + b"\x08" + data[4:10] + name + data[10:])
    assert path.stat().st_size == PIECE
    assert read_mdp(path, 0.5) == whole
    with path.open("ab") as packed:
        packed.write(b"more")
    with pytest.raises(InvalidModel, match="something follows the compressed data, expected noth"):
        read_mdp(path, 0.5)


# ---- refusals ---------------------------------------------------------------------------------


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
REFUSED = {
    "no index": (
        lambda i, f: i.clear(),
        "index.json: object missing required field format-version",
    ),
    "a newer version": (
        entry(2, "format-version"),
        "index.json.format-version: expected int <= 1, found 2",
    ),
    "no model": (
        entry(None, SYSTEM),
        "index.json: object missing required field transition-system",
    ),
    "a model that is a list": (
        entry([], SYSTEM),
        "index.json.transition-system: expected object, got array",
    ),
    "no number of states": (
        entry(None, SYSTEM, "#states"),
        "transition-system: object missing required field #states",
    ),
    "states that are text": (
        entry("2", SYSTEM, "#states"),
        "transition-system.#states: expected int, got str, found '2'",
    ),
    "states that are true": (
        entry(True, SYSTEM, "#states"),
        "#states: expected int, got bool, found True",
    ),
    "half a state": (entry(2.5, SYSTEM, "#states"), "#states: expected int, got float, found 2.5"),
    "fewer than no states": (
        entry(-1, SYSTEM, "#states"),
        "#states: expected int >= 0, found -1",
    ),
    "no states": (entry(0, SYSTEM, "#states"), "the model has 0 states, expected 1 to 2147483647"),
    "states beyond all numbers": (
        entry(10**400, SYSTEM, "#states"),
        "#states: expected int <= 9223372036854775807, found 10000",
    ),
    "more states than there are": (
        entry(2**31 - 1, SYSTEM, "#states"),
        "state-to-choices.bin has 24 bytes, expected 17179869184 (2147483648 × 8)",
    ),
    "more branches than there are": (
        entry(10**18, SYSTEM, "#branches"),
        "branch-to-probability.bin has 32 bytes, expected 8000000000000000000",
    ),
    "a game": (
        entry(2, SYSTEM, "#players"),
        "2 players and 0 observations, expected discrete time",
    ),
    "no probabilities": (
        entry(None, SYSTEM, "branch-probability-type"),
        "transition-system: object missing required field branch-probability-type",
    ),
    "probabilities of another type": (
        entry({"type": "uint"}, SYSTEM, "branch-probability-type"),
        "branch-to-probability.bin: values are of type 'uint', expected double or rational",
    ),
    "probabilities of another size": (
        entry({"type": "double", "size": 32}, SYSTEM, "branch-probability-type"),
        "the size of a double is 32 bits, which cannot be",
    ),
    "no file of probabilities": (
        file("branch-to-probability.bin", None),
        "branch-to-probability.bin is missing, expected the probabilities of the branches",
    ),
    "a file that is too short": (
        file("branch-to-target.bin", bytes(24)),
        "branch-to-target.bin has 24 bytes, expected 32 (4 × 8)",
    ),
    "runs that fall": (
        file("choice-to-branches.bin", np.array([0, 3, 2, 4], "<u8").tobytes()),
        "choice-to-branches.bin falls from 3 to 2 at position 2",
    ),
    "runs that end elsewhere": (
        file("state-to-choices.bin", np.array([0, 2, 2], "<u8").tobytes()),
        "state-to-choices.bin runs from 0 to 2, expected from 0 to 3",
    ),
    "runs that are needed": (
        file("state-to-choices.bin", None),
        "state-to-choices.bin is missing, but 2 runs over 3 elements need it",
    ),
    "a target that does not exist": (
        file("branch-to-target.bin", np.array([0, 1, 2, 1], "<u8").tobytes()),
        "successor of state 0, choice 1 is 2, expected 0 to 1",
    ),
    "a target beyond all states": (
        file("branch-to-target.bin", np.array([0, 1, 2**64 - 1, 1], "<u8").tobytes()),
        "successor of state 0, choice 1 is 18446744073709551615",
    ),
    "probabilities that sum to 0.9": (
        file("branch-to-probability.bin", doubles(0.25, 0.65, 1, 1)),
        "probabilities of state 0, choice 0 sum to 0.9, expected 1",
    ),
    "NaN": (
        file("branch-to-probability.bin", doubles(0.25, 0.75, np.nan, 1)),
        "the probability of branch 2 is nan, expected 0 to 1",
    ),
    "a negative probability": (
        file("branch-to-probability.bin", doubles(-0.25, 1.25, 1, 1)),
        "the probability of branch 0 is -0.25, expected 0 to 1; 1 of 4 values is affected",
    ),
    "a fraction of nothing": (
        lambda i, f: (
            i[SYSTEM].update({"branch-probability-type": {"type": "rational"}}),
            f.update(
                {"branch-to-probability.bin": rationals((1, 4), (3, 4), (1, 0), (1, 1), size=128)}
            ),
        ),
        "the probability of branch 2 is nan, expected 0 to 1",
    ),
    "valuations that are no object": (
        entry({"states": {"unique": True, "classes": [7]}}, "valuations"),
        "index.json.valuations.states.classes[0]: expected object, got int, found 7",
    ),
    "a variable that is no object": (
        entry({"states": {"unique": True, "classes": [{"variables": [7]}]}}, "valuations"),
        "classes[0].variables[0]: expected object, got int, found 7",
    ),
    "no initial state": (
        file("state-is-initial.bin", None),
        "no state is marked as 'init', expected one to start in",
    ),
    "two initial states": (
        file("state-is-initial.bin", bits([True, True])),
        "2 states (0, 1, …) are marked as 'init', expected one initial state; initial='uniform'",
    ),
    "a reward of NaN": (
        file("annotations/rewards/r/choices/values.bin", doubles(1, np.nan, 3)),
        "reward of state 0, choice 1 is nan, expected a finite number",
    ),
    "a reward too few": (
        file("annotations/rewards/r/choices/values.bin", doubles(1, 2)),
        "annotations/rewards/r/choices/values.bin has 16 bytes, expected 24 (3 × 8)",
    ),
    "rewards of players": (
        entry(["players"], *REWARD, "applies-to"),
        "applies to ['players'] and may be random, expected fixed rewards of states, choices, bran",
    ),
    "rewards of anything": (
        entry([[]], *REWARD, "applies-to"),
        "applies to [[]] and may be random",
    ),
    "random rewards": (entry(DOUBLE, *REWARD, "probability-type"), "['choices'] and may be random"),
    "rewards without a type": (
        entry(None, *REWARD, "type"),
        "rewards/r/choices/values.bin: values are of type ''",
    ),
    "rewards that are a list": (
        entry([], "annotations"),
        "index.json.annotations: expected object, got array",
    ),
    "an action that does not exist": (
        file("actions/choices/values.bin", np.array([0, 2, 0], "<u4").tobytes()),
        "the action of choice 1 is 2, expected 0 to 1; 1 of 3 choices is affected",
    ),
    "names that are cut off": (
        lambda i, f: f.update(
            {
                "actions/choices/string-mapping.bin": offsets([2, 9]),
                "actions/choices/strings.bin": b"goo",
            }
        ),
        "actions/choices/string-mapping.bin runs from 0 to 11, expected from 0 to 3",
    ),
    "names without letters": (
        file("actions/choices/string-mapping.bin", offsets([0, 0])),
        "actions/choices/strings.bin is missing in the archive",
    ),
    "names in another encoding": (
        lambda i, f: f.update(
            {
                "actions/choices/string-mapping.bin": offsets([1, 1]),
                "actions/choices/strings.bin": b"a\xff",
            }
        ),
        "actions/choices/strings.bin is not valid UTF-8",
    ),
    "valuations that are cut off": (
        lambda i, f: (
            i.update(valuations([variable("x", "uint", 16)], b"")["index"]),
            f.update({"valuations/states/valuations.bin": b"123"}),
        ),
        "valuations/states/valuations.bin has 3 bytes, expected 4 (2 × 2)",
    ),
    "valuations of half a byte": (
        lambda i, f: i.update(valuations([variable("x", "uint", 4)], b"")["index"]),
        "a valuation has 4 bits, expected whole bytes",
    ),
    "labels for other states": (
        entry({"tool": "surestep", "parameters": {"state-labels": ["a", "b", "c"]}}, "file-data"),
        "state-labels has 3 entries for 2 states",
    ),
    "two states with one label": (
        entry({"tool": "surestep", "parameters": {"state-labels": ["a", "a"]}}, "file-data"),
        "state label 'a' is given twice, the second time at 1",
    ),
    "labels that are numbers": (
        entry({"tool": "surestep", "parameters": {"state-labels": [1, 2]}}, "file-data"),
        "state-labels[0]: expected str, got int, found 1",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_refused_by_name(tmp_path, name):
    change, words = REFUSED[name]
    path = write_umb(tmp_path / "m.umb", *spoiled(change))
    with pytest.raises(InvalidModel) as refusal:
        read_mdp(path, 0.9)
    assert words in str(refusal.value)
    assert str(refusal.value).startswith(f"{path}: ")
    assert refusal.value.__cause__ is None


def test_the_archive_that_the_mistakes_are_made_from_is_good(tmp_path):
    assert read_mdp(write_umb(tmp_path / "m.umb", *good()), 0.9).num_pairs == 3


INDEXES = {
    "no JSON": (b"{", "index.json is not valid JSON"),
    "no object": (b"[]", "index.json: expected object, got array"),
    "no text": (b"\xff\xfe", "index.json is not valid JSON"),
    "deep": (b"[" * 100_000, "index.json is not valid JSON"),
    "a long number": (b'{"format-version": ' + b"9" * 5000 + b"}", "index.json is not valid JSON"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_that_is_none_is_refused(tmp_path, name):
    index, words = INDEXES[name]
    with pytest.raises(InvalidModel) as refusal:
        read_mdp(write_umb(tmp_path / "m.umb", index, {}), 0.9)
    assert words in str(refusal.value)


ARCHIVES = {
    "an empty file": (b"", "the file is no archive, or damaged or cut off before byte 0, expect"),
    "text": (b"2 3 4\n" * 200, "the file is no archive"),
    "gzip of nothing": (COMPRESSIONS["gzip"](b""), "the file is no archive, or damaged or cut off"),
    "gzip of text": (COMPRESSIONS["gzip"](b"2 3 4\n" * 200), "the file is no archive"),
    "gzip that breaks off": (
        COMPRESSIONS["gzip"](b"x" * 99)[:-1],
        "the compressed data is cut off",
    ),
    "gzip that is damaged": (b"\x1f\x8b\x08" + b"?" * 99, "compressed data cannot be unpacked"),
    "xz that breaks off": (lzma.compress(b"x" * 99)[:-1], "the compressed data is cut off"),
    "xz that is damaged": (
        lzma.compress(b"x" * 99)[:20] + b"?" * 99,
        "compressed data cannot be unpacked",
    ),
    "xz that wants much memory": (
        lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]),
        "compressed data cannot be unpacked: Memory usage limit",
    ),
    "a bomb": (
        lzma.compress(bytes(1 << 25), preset=0),
        "becomes more than 200 times as large, if unpacked",
    ),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_what_is_no_archive_is_refused(tmp_path, name):
    data, words = ARCHIVES[name]
    (tmp_path / "m.umb").write_bytes(data)
    with pytest.raises(InvalidModel) as refusal:
        read_mdp(tmp_path / "m.umb", 0.9)
    assert words in str(refusal.value)


MUCH, LARGE = 100 << 20, 12 << 20  # bytes: more than may be unpacked at all, and less
HELD = 6 << 20  # bytes that may be held at a time: a piece, the list of files, what is declared
BOMBS = {  # a change of a good model, which gzip then packs 1,000 to 1
    "much that nobody needs": (
        file("notes.txt", bytes(MUCH)),
        "the file becomes more than 200 times as large, if unpacked; if that is meant, unpack it",
    ),
    "probabilities that are not declared": (
        file("branch-to-probability.bin", bytes(LARGE)),
        f"branch-to-probability.bin has {LARGE} bytes, expected 32 (4 × 8)",
    ),
    "names that are not declared": (
        lambda i, f: f.update(
            {
                "actions/choices/string-mapping.bin": offsets([1, 1]),
                "actions/choices/strings.bin": bytes(LARGE),
            }
        ),
        f"string-mapping.bin runs from 0 to 2, expected from 0 to {LARGE}",
    ),
    "rewards that are not declared": (
        file("annotations/rewards/r/choices/values.bin", bytes(LARGE)),
        f"values.bin has {LARGE} bytes, expected 24 (3 × 8)",
    ),
    "labels of more states than there are": (
        lambda i, f: (
            i["annotations"].update(annotation("aps", "l", ["states"], BIT)["annotations"]),
            f.update(values("aps", "l", states=bytes(LARGE))),
        ),
        f"aps/l/states/values.bin has {LARGE} bytes, expected 8 (1 × 8)",
    ),
    "states that only an index claims": (
        lambda i, f: (
            [f.pop(name) for name in ("state-to-choices.bin", "choice-to-branches.bin")],
            i[SYSTEM].update({"#states": 10**9, "#choices": 10**9, "#branches": 10**9}),
        ),
        "branch-to-probability.bin has 32 bytes, expected 8000000000",
    ),
    "an index of brackets": (entry([[]] * 700_000, "file-data"), "index.json has 2800"),
    "more files than a model has": (
        lambda i, f: f.update({f"{number}": b"" for number in range(4_200)}),
        "the archive holds more than 4096 files, expected those of a model",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_unpacked_is_limited_by_what_is_declared(tmp_path, name):
    change, words = BOMBS[name]
    path = write_umb(tmp_path / "m.umb", *spoiled(change), COMPRESSIONS["gzip"])
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(InvalidModel) as refusal:
            read_mdp(path, 0.9)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert words in str(refusal.value)
    assert held < HELD


def test_an_extended_header_is_not_unpacked_into_memory(tmp_path):
    path = write_umb(tmp_path / "m.umb", *good())
    much = extended(bytes(LARGE))
    path.write_bytes(COMPRESSIONS["gzip"](much + path.read_bytes()))
    del much
    tracemalloc.start()
    try:
        with pytest.raises(
            InvalidModel, match="headers of a file have more than 8192 bytes before byte 512, expe"
        ):
            read_mdp(path, 0.9)
        assert tracemalloc.get_traced_memory()[1] < HELD
    finally:
        tracemalloc.stop()


def test_zeros_behind_an_archive_are_not_kept(tmp_path):
    path = write_umb(tmp_path / "m.umb", *good())
    whole = read_mdp(path, 0.9)
    path.write_bytes(COMPRESSIONS["gzip"](path.read_bytes() + bytes(LARGE)))
    tracemalloc.start()
    try:
        assert read_mdp(path, 0.9) == whole
        assert tracemalloc.get_traced_memory()[1] < HELD
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("form", ["gzip", "xz"])
@given(data=st.data())
def test_what_is_unpacked_in_pieces_is_what_was_packed(tmp_path_factory, form, data):
    plain = data.draw(st.binary(max_size=200)) * data.draw(st.sampled_from([1, 7, 1500]))
    path = tmp_path_factory.mktemp("unpacked") / "packed"
    path.write_bytes(COMPRESSIONS[form](plain))
    places = st.integers(0, len(plain) + 5)
    with path.open("rb") as packed:
        unpacked = Unpacked(packed)
        for _ in range(data.draw(st.integers(1, 5))):
            at, size = data.draw(places), data.draw(places)
            assert unpacked.seek(at) == min(at, len(plain))
            assert unpacked.read(size) == plain[at : at + size]
            assert unpacked.tell() == min(at + size, len(plain))


def header_of(name, *, kind=tarfile.REGTYPE, size=0):
    """A header as somebody might write it, with the checksum that belongs to it."""
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, "/etc/passwd"
    block = bytearray(header.tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = size.to_bytes(12, "big", signed=True) if size < 0 else b"%011o\0" % size
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + 256 + sum(block[156:]))
    return bytes(block)


def extended(data, kind=tarfile.XHDTYPE):
    """An extended header, and the data that follow it."""
    return header_of("x", kind=kind, size=len(data)) + data + bytes(-len(data) % 512)


def sparse_header():
    """The header of a file with holes, whose map goes on in the next block."""
    block = bytearray(header_of("x", kind=tarfile.GNUTYPE_SPARSE))
    block[482] = 1
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + 256 + sum(block[156:]))
    return bytes(block)


REWARDS = "annotations/rewards/r/choices/values.bin"
DAMAGED, TOO_LARGE = "damaged or cut off before byte", "the headers of a file have more than 8192 b"
OTHER_HEADERS = {  # what stands before a good archive, and how it is refused
    "a link": (
        header_of(REWARDS, kind=tarfile.SYMTYPE),
        "values.bin is of type b'2' in the archive, expected plain files and folders",
    ),
    "a hard link": (header_of("x", kind=tarfile.LNKTYPE), "x is of type b'1' in the archive"),
    "a device": (header_of("x", kind=tarfile.CHRTYPE), "x is of type b'3' in the archive"),
    "a file with holes": (
        header_of(REWARDS, kind=tarfile.GNUTYPE_SPARSE),
        "values.bin is of type b'S' in the archive",
    ),
    "another name": (extended(b"11 path=ab\n"), "index.json is missing in the archive"),
    "another long name": (
        extended(b"ab\0", tarfile.GNUTYPE_LONGNAME),
        "index.json is missing in the archive",
    ),
    "another size": (extended(b"18 size=999999999\n"), DAMAGED),
    "a size beyond all files": (extended(b"29 size=99999999999999999999\n"), DAMAGED),
    "a size that is none": (extended(b"11 size=-1\n"), DAMAGED),
    "a size that is no number": (extended(b"10 size=x\n"), DAMAGED),
    "holes": (
        extended(b"27 GNU.sparse.realsize=999\n"),
        "index.json is of type b'0' with holes in the archive, expected plain files and folders",
    ),
    "holes that are none": (extended(b"20 GNU.sparse.map=x\n"), DAMAGED),
    "holes that are cut off": (
        extended(b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"),
        DAMAGED,
    ),
    "records that are cut off": (extended(b"15 path=ab\n"), DAMAGED),
    "records that go nowhere": (extended(b"0 path=ab\n"), DAMAGED),
    "records without an end": (extended(b"path"), DAMAGED),
    "records that are told twice": (extended(b"11 path=ab\n11 path=cd\n"), DAMAGED),
    "a long name of zeros": (extended(bytes(3), tarfile.GNUTYPE_LONGNAME), DAMAGED),
    "a long name with more behind it": (extended(b"ab\0c", tarfile.GNUTYPE_LONGNAME), DAMAGED),
    "a record for all files": (
        extended(b"13 comment=1\n", tarfile.XGLTYPE),
        "a header for all its files, expected one for each; pack them anew, for example with tar ",
    ),
    "an endless extended header": (extended(b"comment=" + b"x" * (1 << 17)), TOO_LARGE),
    "endlessly many of them": (extended(b"11 path=ab\n") * 2_000, TOO_LARGE),
    "an endless map of holes": (
        sparse_header() + (bytes(504) + b"\x01" + bytes(7)) * 2_000,
        TOO_LARGE,
    ),
    "a size below nothing": (header_of("x", size=-512), DAMAGED),
    "a size below nothing, later": (header_of("x") + header_of("y", size=-512), DAMAGED),
    "an extended header below nothing": (
        header_of("x", kind=tarfile.XHDTYPE, size=-512),
        DAMAGED,
    ),
    "a checksum that is wrong": (
        header_of("x") + header_of("y").replace(b"y", b"z", 1),
        "the file is no archive, or damaged or cut off before byte 1024, expected tar, or tar",
    ),
    "an end before the end": (
        header_of("x") + bytes(512),
        "something follows the archive, expected nothing but zeros",
    ),
}


@pytest.mark.parametrize("form", ["plain", "gzip"])
@pytest.mark.parametrize("name", OTHER_HEADERS)
def test_a_header_that_is_not_understood_is_refused(tmp_path, name, form):
    first, words = OTHER_HEADERS[name]
    path = write_umb(tmp_path / "m.umb", *good())
    path.write_bytes(COMPRESSIONS[form](first + path.read_bytes()))
    with pytest.raises(InvalidModel) as refusal:
        read_mdp(path, 0.9)
    assert words in str(refusal.value)


def test_zeros_in_place_of_a_header_are_not_taken_for_the_end(tmp_path):
    path = write_umb(tmp_path / "m.umb", *good())
    data = path.read_bytes()
    with tarfile.open(path) as archive:
        headers = [member.offset for member in archive]
    assert len(headers) > 5
    for at in headers:
        path.write_bytes(data[:at] + bytes(512) + data[at + 512 :])
        with pytest.raises(InvalidModel, match="something follows the archive, expected nothing"):
            read_mdp(path, 0.9)


def test_folders_count_as_files(tmp_path):
    path = write_umb(tmp_path / "m.umb", *good())
    path.write_bytes(header_of("x", kind=tarfile.DIRTYPE) * 4_100 + path.read_bytes())
    with pytest.raises(InvalidModel, match="the archive holds more than 4096 files"):
        read_mdp(path, 0.9)


def test_a_file_that_stands_twice_in_the_archive_is_refused(tmp_path):
    path = write_umb(tmp_path / "m.umb", *good())
    data = path.read_bytes()
    size = int(data[124:135], 8)  # of the index, which comes first
    path.write_bytes(data[: 512 + size + -size % 512] + data)
    with pytest.raises(InvalidModel, match=r"index\.json stands twice in the archive"):
        read_mdp(path, 0.9)


@pytest.mark.parametrize("form", COMPRESSIONS)
def test_an_archive_that_is_cut_off_anywhere_is_refused_or_lacks_nothing(tmp_path, form):
    index, files = umb([1], [[(0, 1.0)]])
    small = {name: files[name] for name in ("branch-to-probability.bin", "state-is-initial.bin")}
    path = write_umb(tmp_path / "m.umb", index, small, COMPRESSIONS[form])
    data, whole = path.read_bytes(), read_mdp(path, 0.9)
    end = len(data.rstrip(b"\0")) if form == "plain" else len(data)
    for size in reversed(range(min(end + 1024, len(data)))):
        os.truncate(path, size)
        try:
            found = read_mdp(path, 0.9)
        except SurestepError:
            continue
        assert found == whole
        assert size >= end  # nothing but padding is missing
