"""Claims about a saved policy that are made again: from what they say, and from no sentence."""

from dataclasses import replace

import pytest

from support.pump_commands import write_lines
from surestep import improve
from surestep.errors import CertificateMismatch, RefutedBounds
from surestep.model import Statement
from surestep.pipeline import certify_result, check_certificates

KINDS = ("a-priori", "robust", "posterior:draws=99")


def rows(wins, number=40):
    """A log of two arms, of which one pays as often as `wins` says, the other every time."""
    paid = [(i % wins == 0, 0.5)[i % 2] for i in range(number)]
    return [
        "episode,step,state,action,reward,next_state,terminated",
        *(f"{i},0,here,{'ab'[i % 2]},{float(paid[i])},there,true" for i in range(number)),
    ]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A result by bounds that were read off its log, one by bounds that were given, and logs."""
    home = tmp_path_factory.mktemp("certify")
    write_lines(home / "log.csv", rows(4))
    write_lines(home / "later.csv", rows(6, 60))
    terms = {"discount": 0.5, "n_wedge": 3, "certificates": ["a-priori"], "worlds": 0}
    improve(home / "log.csv", **terms).save(home / "read-off")
    improve(home / "log.csv", ending=(-1.0, 2.0), **terms).save(home / "given")
    return home


@pytest.mark.parametrize("bounds", [None, (-3.0, 5.0)])
@pytest.mark.parametrize(("folder", "log"), [("read-off", "log.csv"), ("given", "later.csv")])
def test_claims_come_out_the_same_whatever_bounds_of_rewards_they_were_given(
    folder, log, bounds, home
):
    made = certify_result(home / folder, home / log, KINDS, ending=bounds)
    check_certificates(home / folder, home / log, made.certificates)


def test_claims_by_several_bounds_are_checked_together(home):
    claims = [
        claim
        for bounds in (None, (-1.0, 2.0), (-3.0, 5.0))
        for claim in certify_result(
            home / "read-off", home / "log.csv", ["a-priori"], ending=bounds
        ).certificates
    ]
    assert len({claim.span for claim in claims}) == 3
    check_certificates(home / "read-off", home / "log.csv", claims)


def test_a_claim_that_hides_or_makes_up_what_it_was_told_is_refused(home):
    place = home / "read-off", home / "later.csv"
    (told,) = certify_result(*place, ["a-priori"]).certificates
    hidden = tuple(said for said in told.assumptions if said.code != "rewards-within-seen")
    with pytest.raises(CertificateMismatch, match=r"assumptions is \["):
        check_certificates(*place, [replace(told, assumptions=hidden)])
    made_up = {"running_low": 0.0, "running_high": 0.0, "ending_low": 0.9, "ending_high": 1.0}
    declared = (*hidden, Statement("rewards-as-declared", made_up))
    with pytest.raises(RefutedBounds, match=r"expected 0 to 0 where it goes on and 0\.9 to 1 w"):
        check_certificates(*place, [replace(told, assumptions=declared)])
