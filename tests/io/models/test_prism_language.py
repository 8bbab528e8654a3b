"""Programs in the PRISM language: models by hand, against tables, and complaints in our words."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import stormpy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from support.model_files import storm_in_this_process, storm_values
from surestep import FiniteMDP, Policy, evaluate, optimal
from surestep.errors import FileFailure, InvalidModel, InvalidParameter, MissingExtra, NeverEnds
from surestep.io import from_prism
from surestep.io.models import prism

MACHINE = """\
mdp
const int LAST = 2;       // condition in which the machine stands still
const double wear;
module machine
  x : [0..LAST] init 0;
  [run] x < LAST -> wear : (x'=x+1) + 1-wear : true;
  [repair] x > 0 -> (x'=0);
endmodule
rewards
  [run] true : 1;
  [repair] true : -3;
  x = 1 : -0.5;
endrewards
"""


@pytest.fixture(autouse=True)
def _storm_in_this_process(monkeypatch):
    storm_in_this_process(monkeypatch)


def write(folder, text):
    path = folder / "m.prism"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# ---- models by hand ---------------------------------------------------------------------------


@pytest.mark.parametrize("constants", ["wear=1/4", {"wear": np.float64(0.25)}])
def test_a_machine(tmp_path, constants, monkeypatch):
    monkeypatch.undo()  # Storm has a process of its own
    mdp = from_prism(write(tmp_path, MACHINE), 0.9, constants)
    P, R = np.zeros((3, 2, 3)), np.zeros((3, 2))
    P[0, 0] = [0.75, 0.25, 0.0]
    P[1, 0] = [0.0, 0.75, 0.25]
    P[1, 1] = P[2, 1] = [1.0, 0.0, 0.0]
    R[0, 0], R[1, 0], R[1, 1], R[2, 1] = 1.0, 0.5, -3.5, -3.0
    assert mdp == FiniteMDP.from_dense(
        P,
        R,
        0.9,
        enabled=[[True, False], [True, True], [False, True]],
        state_labels=("(x=0)", "(x=1)", "(x=2)"),
        action_labels=("run", "repair"),
    )


def test_deadlocks_and_absorbing_states_called_end_end_the_episode(tmp_path):
    program = """\
    mdp
    module m
      x : [0..3] init 0;
      [a] x=0 -> 0.5 : (x'=1) + 0.5 : (x'=2);
      [b] x=0 -> (x'=3);
      [loop] x=2 -> true;
      [loop] x=3 -> true;
    endmodule
    label "end" = x=2;
    rewards [b] true : 4; endrewards
    """
    mdp = from_prism(write(tmp_path, program), 0.5)
    assert mdp.pairs.state_labels == ("(x=0)", "(x=1)", "(x=2)", "(x=3)")
    ends = {mdp.pairs.state_labels[s] for s in mdp.pairs.state[np.diff(mdp.offsets) == 0]}
    assert ends == {"(x=1)", "(x=2)"}  # and (x=3) stays where it is
    assert optimal(mdp).value.tolist() == [4.0, 0.0, 0.0, 0.0]


def test_many_states_are_named_when_somebody_asks(tmp_path, monkeypatch):
    program = "dtmc module m x : [-1..10000]; [] true -> (x'=mod(x+2,9999)-1); endmodule"
    named = []
    build = prism.built_by_storm
    monkeypatch.setattr(
        prism, "built_by_storm", lambda *a, **k: named.append(bool(k)) or build(*a, **k)
    )
    mdp = from_prism(write(tmp_path, program), 0.9)
    labels = mdp.pairs.state_labels
    assert (len(labels), named) == (9999, [False])
    program = program.replace("10000", "10001").replace("9999", "10001")
    mdp = from_prism(write(tmp_path, program), 0.9)
    labels = mdp.pairs.state_labels
    assert (len(labels), named) == (10_001, [False, False])
    assert mdp.pairs.state_name(3) == "state '(x=2)'"
    assert named == [False, False, True]
    assert labels == tuple(f"(x={x})" for x in range(-1, 10_000))
    assert pickle.loads(pickle.dumps(mdp)) == mdp  # noqa: S301
    assert labels != labels[1:]
    assert labels != 3
    several = "dtmc module m x : [0..2]; [] true -> (x'=0); endmodule init x<2 endinit"
    mdp = from_prism(write(tmp_path, several), 0.9, initial="uniform")
    assert named == [False, False, True, False]
    assert sorted(mdp.pairs.state_labels) == ["(x=0)", "(x=1)"]


def test_a_state_called_end_stays_even_if_it_is_entered_surely(tmp_path):
    program = (
        "mdp module m x : [0..2] init 0; [] x=0 -> (x'=1); [] x=1 -> true; [] x=2 -> true; "
        'endmodule label "end" = x=1;'
    )
    mdp = from_prism(write(tmp_path, program), 0.5)
    assert mdp.pairs.state_labels == ("(x=0)", "(x=1)")


def test_a_chain_and_a_model_without_rewards(tmp_path):
    program = "dtmc module m x : [0..1] init 1; [] true -> 0.5 : (x'=0) + 0.5 : (x'=1); endmodule"
    mdp = from_prism(write(tmp_path, program), 0.5)
    assert mdp.pairs.num_actions == 1
    assert mdp.pairs.action_labels is None
    assert not mdp.reward.any()
    assert mdp.probability.tolist() == [0.5] * 4
    assert mdp.pairs.state_labels[np.argmax(mdp.initial)] == "(x=1)"


def test_labels_of_states_have_all_variables_also_those_that_begin_true(tmp_path):
    program = """\
    mdp
    module a
      z : bool init true;
      y : [0..1] init 0;
      b : bool init false;  // Storm leaves out what never changes
      [] y=0 -> (y'=1);
      [] y=1 -> (z'=false);
    endmodule
    module c
      d : [0..1] init 0;
      [] d=0 -> (d'=1);
    endmodule
    """
    mdp = from_prism(write(tmp_path, program), 0.5)
    assert sorted(mdp.pairs.state_labels) == [
        f"(z={z},y={y},d={d})" for z, y in (("false", 1), ("true", 0), ("true", 1)) for d in (0, 1)
    ]


def test_modules_with_several_variables_and_synchronised_actions(tmp_path):
    program = """\
    mdp
    const bool fair;
    module coin
      heads : bool init false;
      [toss] fair -> 0.5 : (heads'=true) + 0.5 : (heads'=false);
      [toss] !fair -> 0.9 : (heads'=true) + 0.1 : (heads'=false);
    endmodule
    module clock
      t : [-1..1] init -1;
      [toss] t < 1 -> (t'=t+1);
    endmodule
    rewards "heads" heads : 1; endrewards
    rewards "time" [toss] true : 1; endrewards
    """
    path = write(tmp_path, program)
    fair = from_prism(path, 0.5, {"fair": True}, reward="heads")
    values = dict(zip(fair.pairs.state_labels, evaluate(fair, Policy.uniform(fair)), strict=True))
    # The deadlock t=1 earns `heads` for ever: V(t=1) = 2 · heads, V(t=0) = heads + 0.5 · 2 · 0.5.
    assert values["(heads=true,t=1)"] == 2.0
    assert values["(heads=true,t=0)"] == 1.5
    assert values["(heads=false,t=-1)"] == 0.5
    unfair = from_prism(path, 0.5, "fair=false", reward="heads")
    assert_allclose(evaluate(unfair, Policy.uniform(unfair))[np.argmax(unfair.initial)], 0.9)
    steps = from_prism(path, 0.5, "fair=false", reward="time")
    assert_allclose(evaluate(steps, Policy.uniform(steps))[np.argmax(steps.initial)], 1.5)


def test_a_reward_structure_without_a_name_can_be_chosen(tmp_path):
    program = MACHINE + 'rewards "time" true : 1; endrewards\n'
    plain = from_prism(write(tmp_path, MACHINE), 0.9, "wear=0.5")
    path = write(tmp_path, program)
    assert from_prism(path, 0.9, "wear=0.5", reward="") == plain
    assert from_prism(path, 0.9, "wear=0.5", reward="time").reward.tolist() == [1.0] * 6


@pytest.mark.parametrize(
    "sum_of_three",
    ["0.8 : (s'=1) + 0.1 : (s'=2) + 0.1 : (s'=0)", "1/3 : (s'=1) + 1/3 : (s'=2) + 1/3 : (s'=0)"],
)
def test_sums_of_probabilities_may_be_rounded(tmp_path, sum_of_three):
    program = f"mdp module m s : [0..2] init 0; [] s=0 -> {sum_of_three}; endmodule"
    assert from_prism(write(tmp_path, program), 0.9).num_transitions == 3


def test_labels_of_the_program_stay_with_the_model(tmp_path):
    program = (
        "mdp module m x : [0..2] init 0; [] x<2 -> (x'=x+1); endmodule "
        'label "far" = x>0; label "nowhere" = x>5; label "end" = x=2;'
    )
    marks = from_prism(write(tmp_path, program), 0.9).marks
    assert {label: states.tolist() for label, states in marks.items()} == {
        "far": [False, True, True],
        "nowhere": [False, False, False],
    }


def test_several_initial_states_become_a_distribution_when_asked_for(tmp_path):
    program = (
        "mdp module m x : [0..3]; [] true -> (x'=min(x+1,3)); endmodule "
        'init x<2 endinit label "late" = x>0;'
    )
    path = write(tmp_path, program)

    def starts(initial):
        mdp = from_prism(path, 0.9, initial=initial)
        return dict(zip(mdp.pairs.state_labels, mdp.initial.tolist(), strict=True))

    third = 1 / 3
    assert starts("uniform") == {"(x=0)": 0.5, "(x=1)": 0.5, "(x=2)": 0.0, "(x=3)": 0.0}
    assert starts("late") == {"(x=0)": 0.0, "(x=1)": third, "(x=2)": third, "(x=3)": third}
    with pytest.raises(InvalidModel, match="'soon', expected one of 'uniform', 'late', "):
        starts("soon")


# ---- deadlocks: PRISM gives them a loop, on which they earn their state rewards ------------------

DEADLOCK = """\
{kind}
module m
  s : [0..2] init 0;
  [] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);{loop}
endmodule
rewards s=1 : 1; [] true : {transition}; endrewards
"""


@pytest.mark.parametrize("kind", ["mdp", "dtmc"])
def test_a_deadlock_earns_its_state_reward_for_ever(tmp_path, kind):
    bare = from_prism(write(tmp_path, DEADLOCK.format(kind=kind, loop="", transition=0)), 0.9)
    assert_allclose(evaluate(bare, Policy.uniform(bare)), [4.5, 10.0, 0.0])
    text = DEADLOCK.format(kind=kind, loop=" [] s>0 -> true;", transition=0)
    looped = from_prism(write(tmp_path, text), 0.9)
    assert_allclose(optimal(bare).value, optimal(looped).value)
    program = stormpy.parse_prism_program(tmp_path / "m.prism")
    assert_allclose(optimal(bare).value, storm_values(stormpy.build_model(program), 0.9), atol=1e-7)


def test_no_command_leads_around_a_deadlock_so_none_earns_there(tmp_path):
    text = DEADLOCK.format(kind="mdp", loop="", transition=100)
    mdp = from_prism(write(tmp_path, text), 0.9)
    assert_allclose(evaluate(mdp, Policy.uniform(mdp)), [104.5, 10.0, 0.0])
    assert np.diff(mdp.offsets).tolist() == [2, 1, 0]  # only the deadlock without rewards ends it


def test_without_discount_a_deadlock_that_earns_never_ends(tmp_path):
    text = DEADLOCK.format(kind="mdp", loop="", transition=0)
    mdp = from_prism(write(tmp_path, text), 1.0)
    with pytest.raises(NeverEnds, match=r"state '\(s=1\)' never ends under the policy"):
        optimal(mdp)


TRAPS = {
    "a comment": "// endmodule\nmdp module m {body} endmodule // endmodule\n{rewards}",
    "a renaming": "mdp module m {body} endmodule module n = m [s=t] endmodule {rewards}",
    "a name": "mdp module endmodule_ {body} endmodule {rewards}",
    "a formula": "mdp formula f = s=0; module m {body} endmodule {rewards}",
}


@pytest.mark.parametrize("name", TRAPS)
def test_deadlocks_are_found_whatever_the_program_looks_like(tmp_path, name):
    body = "s : [0..1] init 0; [] s=0 -> (s'=1);"
    text = TRAPS[name].format(body=body, rewards="rewards s=1 : 1; endrewards")
    mdp = from_prism(write(tmp_path, text), 0.5)
    assert (mdp.initial @ evaluate(mdp, Policy.uniform(mdp))) >= 0.5
    assert mdp.reward.max() == 1.0


@st.composite
def programs(draw, least=-3):
    """A program of random commands over x = 0 … 4, once bare and once with loops in deadlocks."""
    kind = draw(st.sampled_from(["mdp", "dtmc"]))
    moves = draw(
        st.dictionaries(
            st.integers(0, 4), st.lists(st.integers(0, 4), min_size=1, max_size=3), max_size=4
        )
    )
    rewards = draw(st.lists(st.integers(least, 3), min_size=5, max_size=5))
    commands = [f"[] x={x} -> (x'={y});" for x, targets in moves.items() for y in targets]
    loops = [f"[] x={x} -> true;" for x in range(5) if x not in moves]
    earned = " ".join(f"x={x} : {r};" for x, r in enumerate(rewards))

    def text(lines):
        body = " ".join(lines)
        return f"{kind} module m x : [0..4] init 0; {body} endmodule rewards {earned} endrewards"

    return text(commands), text(commands + loops)


@settings(max_examples=6)
@given(texts=programs())
def test_deadlocks_have_the_values_of_loops(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("deadlocks")
    bare, looped = (from_prism(write(folder, text), 0.9) for text in texts)
    assert bare.pairs.state_labels == looped.pairs.state_labels
    assert_allclose(optimal(bare).value, optimal(looped).value, atol=1e-9)


# ---- totals without a discount ----------------------------------------------------------------

DICE = """\
dtmc
module die
  s : [0..7] init 0;
  [] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [] s=1 -> 0.5 : (s'=3) + 0.5 : (s'=4);
  [] s=2 -> 0.5 : (s'=5) + 0.5 : (s'=6);
  [] s=3 -> 0.5 : (s'=1) + 0.5 : (s'=7);
  [] s=4 | s=5 -> (s'=7);
  [] s=6 -> 0.5 : (s'=2) + 0.5 : (s'=7);
  [] s=7 -> (s'=7);
endmodule
label "done" = s=7;
rewards "coin_flips" s<7 : 1; endrewards
"""
GOAL = """\
mdp
module m
  s : [0..3] init 0;
  [try] s=0 -> 0.5 : (s'=1) + 0.5 : true;
  [wait] s=0 -> (s'=2);
  [on] s=1 -> (s'=3);
  [stay] s>=2 -> true;
endmodule
label "{goal}" = s=1;
rewards [try] true : 1; s=1 : 7; s=3 : {behind}; endrewards
"""


@pytest.mark.parametrize("end", [None, "done"])
def test_a_die_takes_eleven_thirds_of_a_coin_flip(tmp_path, end):
    mdp = from_prism(write(tmp_path, DICE), 1.0, end=end)
    assert evaluate(mdp, Policy.uniform(mdp))[0] == pytest.approx(11 / 3, rel=1e-12)
    assert optimal(mdp).value[0] == pytest.approx(11 / 3, rel=1e-12)


@pytest.mark.parametrize("goal", ["goal", "end"])
def test_a_label_ends_episodes_and_to_miss_it_is_infinite(tmp_path, goal):
    mdp = from_prism(write(tmp_path, GOAL.format(goal=goal, behind=1)), 1.0, end=goal)
    assert mdp.pairs.state_labels == ("(s=0)", "(s=1)", "(s=2)")
    assert optimal(mdp.with_discount(0.5)).value == pytest.approx([4 / 3, 0, 0])
    least = optimal(mdp, minimise=True)  # two tries on average; to wait would be for ever
    assert least.value == pytest.approx([2, 0, np.inf])
    assert least.q[:2].tolist() == [2, np.inf]
    assert least.policy.probability[:2].tolist() == [1, 0]
    with pytest.raises(NeverEnds, match=r"^state '\(s=2\)' never ends under some policy"):
        optimal(mdp)
    with pytest.raises(NeverEnds, match=r"^state '\(s=2\)' never ends under the policy"):
        evaluate(mdp, Policy.uniform(mdp))


def test_without_an_end_the_total_goes_on_behind_a_label(tmp_path):
    mdp = from_prism(write(tmp_path, GOAL.format(goal="goal", behind=0)), 1.0)
    assert optimal(mdp).value == pytest.approx([9, 7, 0, 0])
    assert optimal(mdp, minimise=True).value == pytest.approx([0, 7, 0, 0])
    mdp = from_prism(write(tmp_path, GOAL.format(goal="goal", behind=1)), 1.0)
    with pytest.raises(NeverEnds, match=r"state '\(s=3\)' never ends under any policy"):
        optimal(mdp)


@settings(max_examples=6)
@given(texts=programs(least=0), goal=st.integers(0, 4))
def test_totals_of_programs_are_storms(tmp_path_factory, texts, goal):
    path = write(tmp_path_factory.mktemp("totals"), f'{texts[1]} label "goal" = x={goal};')
    options = stormpy.BuilderOptions()
    options.set_build_all_labels()
    options.set_build_all_reward_models()
    built = stormpy.build_model(stormpy.parse_prism_program(path), options=options)
    (start,) = built.initial_states
    for end, until in ((None, "C"), ("goal", 'F "goal"')):
        mdp = from_prism(path, 1.0, end=end)
        for least in (False, True):
            chain = built.model_type.name == "DTMC"
            direction = "" if chain else ("max", "min")[least]
            asked = stormpy.parse_property(f"R{direction}=? [ {until} ]")
            expected = np.array(stormpy.model_checking(built, asked).get_value_vector())
            try:
                found = optimal(mdp, minimise=least).value[mdp.initial.argmax()]
            except NeverEnds:
                assert np.isinf(expected).any() if end is None else np.isinf(expected[start])
            else:
                assert found == pytest.approx(expected[start], abs=1e-5)


# ---- refusals ---------------------------------------------------------------------------------

BODY = "module m x : [0..1] init 0; [] true -> (x'=1-x); endmodule "
STEP = "mdp module m x : [0..1] init 0; [] true -> {}; endmodule"
RATES = "ctmc module m x : [0..1] init 0; <> true -> 3 : (x'=1-x); endmodule"
EARNED = 'rewards "a" true : 1; endrewards'
REFUSED = [
    ("", {}, "Storm says: WrongFormatException: Parsing error at 1:1"),
    (MACHINE.replace("endm", "endn"), {}, 'Parsing error at 8:1: expecting "endmodule"'),
    (
        MACHINE,
        {},
        "no value is given for the constants wear, expected one for each, such as constants={'we",
    ),
    (MACHINE, {"constants": {"wear": 0.5, "tear": 1}}, "Storm says: Unknown constant 'tear'."),
    (MACHINE, {"constants": {"wear": True}}, "Illegal type of expression defining constant 'wear'"),
    (MACHINE, {"constants": "wear=2"}, "Storm says: "),
    (
        STEP.format("0.9 : (x'=1)"),
        {},
        "probabilities of state 0, choice 0 sum to 0.9, expected 1; 2 of 2 choices are affected",
    ),
    (STEP.format("(x'=x+1)"), {}, "leads to an out-of-bounds value (2) for the variable 'x'"),
    (
        f'mdp {BODY} {EARNED} rewards "b" true : 2; endrewards',
        {},
        "reward is None, expected one of the program's reward structures: 'a', 'b'",
    ),
    (f"mdp {BODY} {EARNED}", {"reward": "b"}, "reward is 'b', expected one of the program's rew"),
    (f'mdp {BODY} label "home" = x=1;', {"end": "hom"}, "end is 'hom', expected a label of the "),
    (
        f"mdp {BODY.replace(' init 0', '')} init true endinit",
        {},
        "2 states (0, 1, …) are marked as 'init', expected one initial state; initial='uniform'",
    ),
    (RATES, {}, "the model is of type 'ctmc', expected 'mdp' or 'dtmc'"),
    (f"{BODY} dtmc", {}, "Storm says: WrongFormatException: Parsing error at 1:"),
    (
        "const int N; mdp module m x : [0..N] init 0; [] x<N -> (x'=x+1); endmodule",
        {"constants": {"N": 10**9}},
        "Storm says: ",
    ),
    (
        "mdp const int N; module m x : [1..N] init 1; [] x<N -> (x'=x+1); endmodule",
        {"constants": {"N": 10**9}},
        "variable x has 1,000,000,000 values, expected at most 100,000,000",
    ),
    (
        f"mdp global y : [-5..2000000000] init 0; {BODY}",
        {},
        "variable y has 2,000,000,006 values, expected at most 100,000,000",
    ),
]


@pytest.mark.parametrize("before", ["", "// mdp or dtmc\n", "\n const int N = 1; // dtmc\n"])
def test_a_program_without_a_type_is_an_mdp(tmp_path, before):
    program = f"{before}{BODY.replace('[] true', '[stay] true -> true; [go] true')}"
    untyped = from_prism(write(tmp_path, program), 0.9)
    assert untyped.pairs.num_pairs == 4  # in a chain they would be one choice
    assert untyped == from_prism(write(tmp_path, f"mdp {program}"), 0.9)


@pytest.mark.parametrize(("program", "arguments", "words"), REFUSED)
def test_what_storm_does_not_like_is_refused_with_the_file(
    tmp_path, capfd, program, arguments, words, monkeypatch
):
    if (program, arguments, words) in REFUSED[::4]:
        monkeypatch.undo()  # Storm has a process of its own
    path = write(tmp_path, program)
    with pytest.raises(InvalidModel) as refusal:
        from_prism(path, **{"discount": 0.9, **arguments})
    assert words in str(refusal.value)
    assert str(refusal.value).startswith(f"{path}: ")
    assert "\n" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert capfd.readouterr() == ("", "")  # Storm's own log is kept quiet


@pytest.mark.parametrize(
    "constants", [5, ["wear=1"], {1: 2}, {"wear": "0.5"}, {"wear": None}, {"wear": 1j}]
)
def test_constants_that_are_none_are_refused(tmp_path, constants):
    with pytest.raises(InvalidParameter, match="constants"):
        from_prism(write(tmp_path, MACHINE), 0.9, constants)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileFailure, match=r"m\.prism cannot be read: No such file or directory"):
        from_prism(tmp_path / "m.prism", 0.9)
    with pytest.raises(InvalidParameter, match="path is of type NoneType"):
        from_prism(None, 0.9)
    with pytest.raises(InvalidParameter, match="discount is 2"):
        from_prism(write(tmp_path, MACHINE), 2)


def test_a_program_that_ends_storm_is_refused_like_any_other(tmp_path, monkeypatch):
    monkeypatch.undo()  # Storm has a process of its own
    program = (
        "mdp const int N; module m x : [0..1] init 0; "
        "[] true -> 0.5 : (x'=1) + 0.5/(N-2) : (x'=0); endmodule"
    )
    # Some processors stop at a whole number divided by zero; others give a number for it.
    refusal = (
        r"m\.prism: (Storm ended with signal 8 instead of reading|probabilit(y|ies) of state 0)"
    )
    with pytest.raises(InvalidModel, match=refusal):
        from_prism(write(tmp_path, program), 0.9, {"N": 2})


def test_without_stormpy_the_message_ends_with_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "stormpy", None)
    with pytest.raises(MissingExtra) as refusal:
        from_prism(write(tmp_path, MACHINE), 0.9)
    assert str(refusal.value).endswith("pip install '.[storm]'")


def test_stormpy_is_not_imported_before_it_is_needed():
    code = "import surestep.io, sys; sys.exit('stormpy' in sys.modules or 'numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
