"""Bounds that the data refute, and claims about a saved policy that are made again."""

import json

import numpy as np
import pytest

from support.problems import uniform_problem
from support.pump_commands import write_lines
from surestep import Counts, certify, improve, read_log
from surestep.certificates import Posterior, Robust
from surestep.errors import RefutedBounds
from surestep.pipeline import certify_result, rehearse_log
from surestep.pipeline.evidence import gather
from surestep.pipeline.improve import draft
from surestep.pipeline.terms import Terms

# Each of two arms pays the same every time, one of them 2, the other 0.5.
ROWS = [
    "episode,step,state,action,reward,next_state,terminated",
    *(f"{i},0,here,{'ab'[i % 2]},{(2, 0.5)[i % 2]},there,true" for i in range(40)),
]
KINDS = ("a-priori", "robust", "posterior", "trajectory:horizon=3")
REFUTED = [
    ({"ending": (-0.001, 0.001)}, r"row 1, column 'reward': '2', .* -0\.001 to 0\.001 where it en"),
    ({"ending": (0.0, 1.5)}, r"row 1, column 'reward': '2', expected 0 to 0 where it goes on and"),
    ({"ending": (1.0, 3.0)}, r"row 2, column 'reward': '0\.5', expected 0 to 0 .* and 1 to 3"),
    ({"running": (0.0, 3.0)}, "row 1, column 'reward': '2', expected 0 to 3 .* and 0 to 0 where"),
    ({"returns": (-1.0, 1.0)}, "from episode 0, step 0 on, 2 is earned, expected -1.0 to 1.0"),
]
CHECKED = ("a-priori", "robust", "posterior:draws=99")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("refuted")
    write_lines(home / "log.csv", ROWS)
    result = improve(home / "log.csv", discount=0.5, n_wedge=3, certificates=["a-priori"], worlds=0)
    result.save(home / "out")
    return home


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("bounds", "words", "kind"),
    [  # every range and every kind; all kinds of each range by `make test-all`
        pytest.param(*refuted, kind, marks=[] if i % len(KINDS) == k else [pytest.mark.slow])
        for i, refuted in enumerate(REFUTED)
        for k, kind in enumerate(KINDS)
    ],
)
def test_no_improvement_rests_on_them_whatever_kind_is_asked_for(bounds, words, kind, home):
    source = read_log(home / "log.csv")
    terms = Terms.of(discount=0.5, n_wedge=3, certificates=[kind], **bounds)
    with pytest.raises(RefutedBounds, match=words):
        draft(gather(source, terms))
    with pytest.raises(RefutedBounds):
        improve(source.counts(), discount=0.5, n_wedge=3, certificates=["a-priori"], **bounds)


def test_a_single_reward_refutes_bounds_that_its_mean_does_not():
    """Rewards 0.25 and 2.25 of one arm: on average 1.25, but bounds are about every reward."""
    rows = {"state": ["here"] * 20, "action": ["a"] * 20, "next_state": ["there"] * 20}
    rows |= {"reward": [0.25, 2.25] * 10, "terminated": [True] * 20}
    source = read_log({name: np.array(column) for name, column in rows.items()})
    for bounds, refuting in (((1.0, 3.0), "0.25"), ((-1.0, 2.0), "2.25")):
        with pytest.raises(RefutedBounds, match=f"column 'reward': '{refuting}', expected"):
            improve(source, discount=0.5, n_wedge=3, ending=bounds)


def test_no_rehearsal_rests_on_them(home):
    terms = {"discount": 0.5, "n_wedge": 3, "certificates": ["a-priori"], "ending": (0.0, 1.5)}
    with pytest.raises(RefutedBounds, match="row 1, column 'reward': '2', expected"):
        rehearse_log(read_log(home / "log.csv"), terms, worlds=9)


@pytest.mark.parametrize("bounds", [(0.0, 1.5), (1.0, 3.0)])
def test_a_saved_policy_is_not_judged_by_them(bounds, home):
    with pytest.raises(RefutedBounds):
        certify_result(home / "out", home / "log.csv", ["a-priori"], ending=bounds)


@pytest.mark.parametrize(
    "setting", ["robust:reward_low=0,reward_high=1", "posterior:reward_low=1,reward_high=3"]
)
def test_bounds_among_the_settings_of_a_certificate_are_held_against_the_data_too(setting, home):
    terms = {"discount": 0.5, "n_wedge": 3, "worlds": 0}
    with pytest.raises(RefutedBounds, match="a reward of state 'here'"):
        improve(home / "log.csv", certificates=[setting], **terms)
    with pytest.raises(RefutedBounds, match="a reward of state 'here'"):
        improve(home / "log.csv", certificates=["a-priori", setting], **terms)


def test_bounds_that_the_data_touch_are_taken(home):
    terms = {"discount": 0.5, "n_wedge": 3, "certificates": ["a-priori"], "worlds": 0}
    assert improve(home / "log.csv", ending=(0.5, 2.0), **terms).certificate.lower is not None
    assert improve(home / "log.csv", returns=(0.5, 2.0), **terms).certificate.lower is not None


def test_a_refusal_is_saved_without_a_claim_and_the_page_is_loud(home, tmp_path):
    terms = {"discount": 0.5, "n_wedge": 3, "certificates": ["a-priori", "robust"], "worlds": 0}
    result = improve(home / "log.csv", **terms | {"discount": 1.0, "ending": (0.0, 2.0)})
    result.save(tmp_path / "out")
    for name in ("certificate.json", "certificates.json"):
        found = json.loads((tmp_path / "out" / name).read_text())
        claim = found[0] if isinstance(found, list) else found
        assert (claim["standing"], claim["lower"], claim["zeta"]) == ("none", None, None)
    assert "No guarantee covers this policy." in result.report
    assert result.certificate.says_nothing


def test_certifiers_refuse_them_in_python_too():
    counts = Counts.from_dense([[[3, 1], [0, 2]], [[0, 5], [1, 4]]], rewards=[[0, 1], [1, 0]])
    problem = uniform_problem(counts, 0.5, (-0.1, 0.1))
    for certifier in ("a-priori", Posterior(), Robust(reward_low=0, reward_high=1)):
        with pytest.raises(RefutedBounds, match="value_bounds"):
            certify(problem, problem.behavior, certifier)


def two_arms(wins, number=40):
    """A log of two arms, of which one pays as often as `wins` says, the other every time."""
    paid = [(i % wins == 0, 0.5)[i % 2] for i in range(number)]
    return [
        "episode,step,state,action,reward,next_state,terminated",
        *(f"{i},0,here,{'ab'[i % 2]},{float(paid[i])},there,true" for i in range(number)),
    ]


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A result by bounds that were read off its log, one by bounds that were given, and logs."""
    judged = tmp_path_factory.mktemp("certify")
    write_lines(judged / "log.csv", two_arms(4))
    write_lines(judged / "later.csv", two_arms(6, 60))
    terms = {"discount": 0.5, "n_wedge": 3, "certificates": ["a-priori"], "worlds": 0}
    improve(judged / "log.csv", **terms).save(judged / "read-off")
    improve(judged / "log.csv", ending=(-1.0, 2.0), **terms).save(judged / "given")
    return judged
