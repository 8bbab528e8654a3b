"""Models that Storm exports as UMB archives, read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import stormpy
import stormpy.examples
from numpy.testing import assert_allclose

from support.model_files import storm_values
from surestep import optimal
from surestep.errors import InvalidModel
from surestep.io import from_prism, read_mdp

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


@pytest.mark.one_quick
@pytest.mark.parametrize("compression", ["NO_COMPRESSION", "GZIP", "XZ", "DEFAULT"])
def test_storms_exports_are_read(tmp_path, compression):
    storm = build(tmp_path)
    mdp = read_mdp(export(storm, tmp_path / "walk.umb", compression), 0.9)
    assert (mdp.num_states, mdp.num_pairs) == (storm.nr_states, storm.nr_choices)
    assert_allclose(optimal(mdp).value, storm_values(storm, 0.9, "reward"), atol=1e-7)
    assert np.flatnonzero(mdp.initial).tolist() == list(storm.initial_states)
    assert set(mdp.pairs.action_labels) == {"left", "right", "rest"}
    # Storm's archives do not name states; the program does.
    built = from_prism(tmp_path / "walk.prism", 0.9, reward="reward")
    assert built.pairs.state_labels[np.argmax(mdp.initial)] == "(tired=false,x=0)"
    assert len(set(built.pairs.state_labels)) == mdp.num_states
    assert replace(built, pairs=replace(built.pairs, state_labels=None)) == mdp


SHIPPED = Path(stormpy.examples.__file__).parent / "files"
BOTH = {f"{kind}_rewards": f"mdp_general.{kind[:5]}.rew" for kind in ("state", "transition")}
EXPLICIT = {  # .tra, .lab and the rewards that Storm ships as examples of its dialect
    "a chain": ("die", "die", {"transition_rewards": "die.coin_flips.trans.rew"}),
    "two dice": ("two_dice", "two_dice", {"transition_rewards": "two_dice.flip.trans.rew"}),
    "both rewards": ("mdp_general", "mdp_general", BOTH),
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


@pytest.mark.parametrize(
    ("kind", "command", "words"),
    [
        ("ctmc", "<> x=0 -> 3 :", "stochastic"),
        ("ma", "<> x=0 -> 3 :", "urgent-stoch"),
        ("pomdp observables x endobservables", "[a] x=0 ->", "2 observations"),
    ],
)
def test_other_kinds_of_models_are_refused(tmp_path, kind, command, words):
    text = f"{kind} module m x : [0..1] init 0; {command} (x'=1); endmodule"
    words = f"m.umb: the model has .*{words}.*, expected discrete t"
    with pytest.raises(InvalidModel, match=words):
        read_mdp(export(build(tmp_path, text), tmp_path / "m.umb"), 0.9)


def test_intervals_are_refused(tmp_path):
    kind = stormpy.io.UmbExportValueType.DOUBLE_INTERVAL
    path = export(build(tmp_path), tmp_path / "m.umb", value_type=kind)
    with pytest.raises(InvalidModel, match="values are of type 'double-interval', expected double"):
        read_mdp(path, 0.9)
