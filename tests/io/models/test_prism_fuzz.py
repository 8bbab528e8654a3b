"""Programs with mistakes: each becomes a model or is refused, and Storm takes nobody down with it.

Every search has a large form, which `make test-all` runs.
"""

import random

import pytest

from surestep import SurestepError
from surestep.io import from_prism

WALK, DIE = (
    """\
mdp
const int N = 2;
const double p;
formula busy = x>0;
module walk
  x : [0..N] init 0;
  tired : bool init false;
  [go] x<N & !tired -> p : (x'=x+1) + 1-p : (tired'=true);
  [back] busy -> 0.8 : (x'=0) + 0.1 : (x'=x-1) + 0.1 : true;
  [] tired -> (tired'=false);
endmodule
label "far" = x=N;
rewards "way" [go] true : 1; x=N : 2; endrewards
rewards tired : -1; endrewards
""",
    """\
dtmc
module die
  s : [0..3];
  d : [-1..1];
  [] s=0 -> 1/2 : (s'=1) + 1/2 : (s'=2) & (d'=1);
  [] s=1 -> 0.25 : (s'=3) + 0.75 : (d'=max(-1,d-1));
endmodule
module twin = die [s=t, d=e] endmodule
init s<2 & t=0 & d=0 & e=0 endinit
label "end" = s=3;
rewards "steps" true : s+d; endrewards
""",
)
PROGRAMS = [  # and what they need
    (WALK, {"constants": "p=0.5", "reward": "way", "discount": 0.9}),
    (DIE, {"initial": "uniform", "discount": 0.9}),
]
WORDS = """\
0 1 -1 0.5 1/0 1e999 1e-400 2147483648 99999999999999999999 x s x' true false ! & | => ? : ; , .. =
< > + - * / ( ) [ ] " ' // /* # \\ é 🙂 mdp dtmc ctmc ma pomdp smg pta const formula module
endmodule init endinit rewards endrewards label system endsystem global clock mod(x,0) floor(0.5)
pow(2,99) log(0,0) min() func(max,1,2) bool int
"""
PIECES = ("\n", "\0", *WORDS.split())
OPTIONS = {
    "constants": [None, "p=0.5", "p=0", "p=1", "p=2", "p=-1", "p=nan", "p=", "q=1", {"p": 0.3}],
    "reward": [None, "way", "steps", "", "none", "\ud800"],
    "initial": [None, "uniform", "far", "end", "deadlock", ""],
    "discount": [0.0, 0.9, 1.0],
}


def spoiled(rng, text):
    """The text after a few edits; numbers stay small, so that there are few states."""
    for _ in range(rng.randint(0, 3)):
        start = rng.randrange(len(text) + 1)
        stop = min(len(text), start + rng.choice([0, 0, 1, 2, 5, 20]))
        lines = text.split("\n")
        middle = rng.choice(
            [rng.choice(PIECES), f" {rng.choice(PIECES)} ", "", rng.choice(lines), text[start:stop]]
        )
        text = text[:start] + middle + text[stop:]
    return text


def spoiled_case(rng):
    """A program and the arguments of `from_prism`, changed here and there."""
    text, options = rng.choice(PROGRAMS)
    changed = {name: rng.choice(OPTIONS[name]) for name in OPTIONS if rng.random() < 0.1}
    return spoiled(rng, text), options | changed


@pytest.mark.thorough
@pytest.mark.parametrize("count", [8, pytest.param(1000, marks=pytest.mark.slow)])
def test_programs_with_a_few_changes(tmp_path, capfd, count):
    rng = random.Random(2)
    path, models, refusals = tmp_path / "fuzzed.prism", 0, []
    for _ in range(count):
        text, options = spoiled_case(rng)
        path.write_text(text, encoding="utf-8")
        try:
            models += from_prism(path, **options).num_states > 0
        except SurestepError as refusal:
            refusals.append(str(refusal))
    assert all(f"{path}: " in text and "\n" not in text for text in refusals)
    assert 0 < models < count
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("text", "options"), PROGRAMS)
def test_the_programs_to_be_spoiled_are_good(tmp_path, text, options):
    (tmp_path / "good.prism").write_text(text)
    assert from_prism(tmp_path / "good.prism", **options).num_states > 3
