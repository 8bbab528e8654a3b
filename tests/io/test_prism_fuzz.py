"""Programs with mistakes: each becomes a model or is refused, and Storm takes nobody down with it.

Storm is a library of C++ that could end the process, so the programs are tried in another one,
which says after each what came of it. Every search has a large form, which `make test-all` runs.
"""

import json
import random
import subprocess
import sys

import pytest

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
  d : [-1..1] init 0;
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
PIECES = (
    *("0", "1", "-1", "0.5", "1/0", "1e999", "1e-400", "2147483648", "99999999999999999999"),
    *(
        "x",
        "s",
        "x'",
        "true",
        "false",
        "!",
        "&",
        "|",
        "=>",
        "?",
        ":",
        ";",
        ",",
        "..",
        "=",
        "<",
        ">",
    ),
    *(
        "+",
        "-",
        "*",
        "/",
        "(",
        ")",
        "[",
        "]",
        '"',
        "'",
        "//",
        "/*",
        "#",
        "\\",
        "\n",
        "\0",
        "é",
        "🙂",
    ),
    *(
        "mdp",
        "dtmc",
        "ctmc",
        "ma",
        "pomdp",
        "smg",
        "pta",
        "const",
        "formula",
        "module",
        "endmodule",
    ),
    *(
        "init",
        "endinit",
        "rewards",
        "endrewards",
        "label",
        "system",
        "endsystem",
        "global",
        "clock",
    ),
    *("mod(x,0)", "floor(0.5)", "pow(2,99)", "log(0,0)", "min()", "func(max,1,2)", "bool", "int"),
)
OPTIONS = {
    "constants": [None, "p=0.5", "p=0", "p=1", "p=2", "p=-1", "p=nan", "p=", "q=1", {"p": 0.3}],
    "reward": [None, "way", "steps", "", "none", "\ud800"],
    "initial": [None, "uniform", "far", "end", "deadlock", ""],
    "discount": [0.0, 0.9, 1.0],
}
CHILD = """
import json, resource, sys
from surestep import Policy, SurestepError, evaluate
from surestep.io import from_prism

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
for line in sys.stdin:
    text, options = json.loads(line)
    with open(sys.argv[1], "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)
    try:
        mdp = from_prism(sys.argv[1], **options)
        answer = f"model of {mdp.num_states}"
    except SurestepError as refusal:
        answer = "refused" if "\\n" not in str(refusal) else f"in two lines: {refusal}"
    print(json.dumps(answer), flush=True)
"""


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


def answers(folder, cases):
    """What the other process says of each case; fewer answers where it was ended."""
    lines = "".join(f"{json.dumps(case)}\n" for case in cases)
    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHILD, str(folder / "fuzzed.prism")],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
    )
    return [json.loads(line) for line in child.stdout.splitlines()], child.stderr


@pytest.mark.parametrize("count", [40, pytest.param(3000, marks=pytest.mark.slow)])
def test_programs_with_a_few_changes(tmp_path, count):
    rng = random.Random(13)
    cases = [spoiled_case(rng) for _ in range(count)]
    found, complaints = answers(tmp_path, cases)
    assert len(found) == count, (cases[len(found)], complaints[-2000:])
    assert {answer.split()[0] for answer in found} == {"model", "refused"}
    assert complaints == ""


def test_the_programs_to_be_spoiled_are_good(tmp_path):
    found, complaints = answers(tmp_path, PROGRAMS)
    assert [answer.split()[0] for answer in found] == ["model", "model"], (found, complaints)
