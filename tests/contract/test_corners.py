"""Every number that can be set, at the corners of its range: an answer, or a refusal in one line.

Any other error, and any warning, fails. The large form of the same is among the slow tests.
"""

import csv
import dataclasses
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.corners import CORNERS, LONGEST_LINE, small_log
from contract.settings import SETTINGS
from support.pump_commands import run_surestep
from surestep import certify, read_log
from surestep.algorithms import SPIBB
from surestep.bounds import ProblemSize, compare_bounds
from surestep.certificates import APriori, Posterior, Robust, Stitched, Trajectory
from surestep.errors import SurestepError
from surestep.pipeline.evidence import gather
from surestep.pipeline.improve import draft, problem_of
from surestep.pipeline.terms import Terms
from surestep.rehearsal.rehearse import read_sizes
from surestep.report.result import result_page

BOUNDED = {"reward_low": 0, "reward_high": 3}
CERTIFIERS = [
    APriori(),
    APriori(bound="beta"),
    APriori(bound="spi"),
    Robust(**BOUNDED),
    Posterior(draws=99),
    Posterior(draws=99, rewards="bounded", **BOUNDED),
    Trajectory(train_share=0.5, **BOUNDED),
    Trajectory(train_share=0.5, interval="bernstein", horizon=3, **BOUNDED),
    Trajectory(train_share=0.5, interval="student-t"),
    Trajectory(train_share=0.5, interval="bca", estimator="dr"),
    Stitched(logger="fixed", series=96),
    Stitched(return_low=-5, return_high=40, series=96, **BOUNDED),
]
KINDS = (
    "a-priori", "posterior:draws=99", "trajectory:train_share=0.5", "robust", "stitched",
)  # fmt: skip
corners = st.sampled_from(CORNERS)
ends = st.tuples(corners, corners)


def answers_or_refuses(call):
    """Fails on every error but a refusal in one line."""
    said = ""
    try:
        call()
    except SurestepError as refusal:
        said = str(refusal)
    assert "\n" not in said
    assert len(said) < LONGEST_LINE


@pytest.fixture(scope="module")
def source():
    return read_log(small_log())


@pytest.fixture(scope="module")
def problem(source):
    evidence = gather(source, Terms.of(discount=0.9))
    return problem_of(
        evidence.assembly,
        evidence.terms,
        evidence.told,
        evidence.counts,
        evidence.log_source,
    )


def numeric(settings):
    """The names of the settings that are numbers, or may be."""
    return [
        field.name
        for field in dataclasses.fields(settings)
        if not isinstance(getattr(settings, field.name), str)
    ]


@pytest.mark.parametrize("name", SETTINGS)
def test_algorithms(name, problem):
    algorithm = SETTINGS[name][0]
    for setting, value in itertools.product(numeric(algorithm), CORNERS):
        answers_or_refuses(
            lambda s=setting, v=value: dataclasses.replace(algorithm, **{s: v}).improve(problem)
        )


@pytest.mark.one_quick
@pytest.mark.parametrize("certifier", CERTIFIERS, ids=str)
def test_certificates(certifier, problem):
    policy = SPIBB(n_wedge=3).improve(problem).policy
    for setting, value in itertools.product(numeric(certifier), CORNERS):
        answers_or_refuses(
            lambda s=setting, v=value: certify(
                problem, policy, dataclasses.replace(certifier, **{s: v})
            )
        )


SIZE_TERMS = {"states": 5, "actions": 3, "delta": 0.1, "discount": 0.9, "branching": None}
BOUND_TERMS = {"visits": 100, "wanted_zeta": 0.1, "value_bounds": (-1.0, 1.0), "gain": 0.0}


@settings(max_examples=100)
@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(SIZE_TERMS, corners)),
    st.fixed_dictionaries(
        {}, optional={name: ends if name == "value_bounds" else corners for name in BOUND_TERMS}
    ),
)
def test_bounds(size, others):
    answers_or_refuses(
        lambda: compare_bounds(ProblemSize(**SIZE_TERMS | size), **BOUND_TERMS | others)
    )


TERMS = {
    "discount": corners, "delta": corners, "n_wedge": corners, "zeta": corners, "worlds": corners,
    "running": ends | corners, "ending": ends | corners, "returns": ends | corners,
}  # fmt: skip


@settings(max_examples=300)
@given(st.fixed_dictionaries({}, optional=TERMS), st.sampled_from(KINDS))
def test_terms(changes, kind):
    answers_or_refuses(lambda: Terms.of(**{"discount": 0.9, "certificates": [kind]} | changes))


@given(st.lists(corners, max_size=3) | corners)
def test_sizes(sizes):
    answers_or_refuses(lambda: read_sizes(sizes))


USUAL = {"discount": 0.9, "n_wedge": 3, "worlds": 0}


def improved(source, kind, **changes):
    """A whole improvement, with its page."""
    given = USUAL | {"certificates": [kind]} | changes
    if "zeta" in changes:
        del given["n_wedge"]
    assert result_page(draft(gather(source, Terms.of(**given))).findings)


@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from(["discount", "delta", "n_wedge", "zeta"]),
    value=corners,
    kind=st.sampled_from(KINDS[:4]),
)
def test_improvements(name, value, kind, source):
    answers_or_refuses(lambda: improved(source, kind, **{name: value}))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [*KINDS, "robust:set=l1,strict=true", "posterior:draws=99,rewards=bounded"]
)
def test_all_improvements(kind, source):
    for name, value in itertools.product(("discount", "delta", "n_wedge", "zeta"), CORNERS):
        answers_or_refuses(lambda n=name, v=value: improved(source, kind, **{n: v}))
    for low, high in itertools.product(
        (0, 1, -1, 3, 5e-324, 1e16, 1e308, -1e308, 2**200), repeat=2
    ):
        for name in ("running", "ending", "returns"):
            answers_or_refuses(lambda n=name, b=(low, high): improved(source, kind, **{n: b}))


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("corners") / "log.csv"
    columns = small_log()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


TEXTS = [
    *("0", "1", "-1", "-0.0", "5e-324", "0.9999999999999999", "1e308", "-1e308", "nan", "inf"),
    *(str(2**63), str(2**200), "9" * 5000, "", "x", "1e9999", "0x10", "１"),
]
OPTIONS = {  # or keys
    "improve": [
        *("--delta", "--discount", "method.zeta", "method.n_wedge", "--worlds", "--time-limit")
    ],
    "rehearse": ["--sizes", "--seed", "--workers", "--worlds", "--delta"],
    "bound": ["--states", "--actions", "--discount", "--delta", "--visits", "--zeta", "--gain"],
}
CHEAP = ("--discount", "0.9", "--kind", "a-priori", "--set", "method.n_wedge=3")
PLAIN = {
    "improve": [*CHEAP, "--worlds", "0"],
    "rehearse": [*CHEAP, "--worlds", "1", "--sizes", "1", "--workers", "1"],
    "bound": ["--states", "5", "--actions", "2", "--discount", "0.9", "--value-bound", "1"],
}


def words_for(option, text):
    """How an option, or a key that has none, is given."""
    return (option, text) if option.startswith("--") else ("--set", f"{option}={text}")


def command_ends(verb, given, log_file, out):
    """Runs a command, which must end with code 0 or with 2 and an error that can be read."""
    words = {"improve": [log_file, "-o", out], "rehearse": [log_file], "bound": ["--zeta", "1"]}
    told = run_surestep(verb, *words[verb], *PLAIN[verb], *given)
    assert told.exit_code in (0, 2), (verb, given, told.exception)
    assert told.exception is None or isinstance(told.exception, SystemExit)
    if told.exit_code == 2:
        assert "Error: " in told.stderr
        assert "No such option" not in told.stderr
        assert len(told.stderr) < LONGEST_LINE + 6000  # what was typed may be repeated


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("verb", "given"),
    [
        ("improve", ("--delta", "0.9999999999999999", "--kind", "posterior:draws=99")),
        ("improve", ("--delta", "5e-324", "--kind", "posterior")),
        ("improve", ("--running", "-1e308", "1e308")),
        ("improve", ("--set", "stakes.returns=[-1e308, 1e308]")),
        ("improve", ("--kind", "posterior:draws=4611686018427387904")),
        ("rehearse", ("--worlds", "4611686018427387904")),
        ("rehearse", ("--sizes", "1e308")),
        ("rehearse", ("--delta", "5e-324")),
        ("improve", ("--set", f"method.zeta={'9' * 5000}")),
        ("improve", ("--set", f"columns.state={'[' * 5000}")),
        ("bound", ("--value-bound", "1e308")),
        ("bound", ("--states", "9" * 400)),
    ],
)
def test_corners_that_once_failed(verb, given, log_file, tmp_path):
    command_ends(verb, given, log_file, tmp_path / "out")


def test_small_command_lines(log_file, tmp_path):
    rng = random.Random(0)
    for number in range(20):
        verb = rng.choice([*OPTIONS])
        given = words_for(rng.choice(OPTIONS[verb]), rng.choice(TEXTS))
        command_ends(verb, given, log_file, tmp_path / f"{number}")


@pytest.mark.slow
@pytest.mark.parametrize("verb", OPTIONS)
def test_all_command_lines(verb, log_file, tmp_path):
    for number, (option, text) in enumerate(itertools.product(OPTIONS[verb], TEXTS)):
        command_ends(verb, words_for(option, text), log_file, tmp_path / f"{number}")
