"""A kind of certificate that is not built in, made here: whatever asks certifiers takes it too."""

import dataclasses
import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import surestep
from support.labelled_worlds import COLUMNS, NAMES, world
from support.log_tables import frame_of
from support.toy_extension import Hopeful
from surestep import certify, improve, read_log
from surestep.algorithms import SPIBB
from surestep.certificates import Posterior, Robust, Stitched, certify_many, verify
from surestep.certificates.registry import MEMBERS, Asked, NoClaim
from surestep.choosing_n_wedge import AutoNWedge
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.model.known import Known
from surestep.pipeline.certify import certify_result
from surestep.pipeline.checks import practice
from surestep.pipeline.evidence import gather
from surestep.pipeline.improve import draft, prepared, result_of
from surestep.pipeline.terms import Terms
from surestep.pipeline.verify import verify_result
from surestep.planning import performance
from surestep.rehearsal import Completed, EpisodeBootstrap, calibrate, rehearse
from surestep.report.answer import verdict
from surestep.results.findings import belief_in, rung_of
from surestep.results.plots import tone_of


def estimated_gain(problem, policy):
    model = problem.estimate()
    return performance(model, policy) - performance(model, problem.behavior)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy(Hopeful):
    """Claims the estimated gain less a larger margin, and calls that proved too."""

    margin: float = 0.01

    name: ClassVar = "toy"


class Shy(Toy):
    """Claims as much, and says that nothing is proved."""

    name: ClassVar = "shy"

    def certify(self, problem, policy):
        claim = Toy.certify(self, problem, policy)
        return dataclasses.replace(claim, standing="as-published")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting(Toy):
    """Leaves a part of the log to the choice of the policy, as it is told."""

    train_share: float = 0.3
    logger: str = "adaptive"
    seed: int = 0

    name: ClassVar = "parting"


class ShyParting(Parting):
    """Does so too, and says that nothing is proved."""

    name: ClassVar = "shy-parting"
    certify = Shy.certify


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing(Hopeful):
    """Claims a quantile of its own draws around the estimated gain, less a bias."""

    draws: int = 39
    bias: float = 0.0
    seed: int = 0

    name: ClassVar = "drawing"
    calibrates: ClassVar = True

    def gains(self, problem, policies):
        noise = np.random.default_rng(self.seed).normal(-self.bias, 0.1, self.draws)
        return np.stack([estimated_gain(problem, policy) + noise for policy in policies])

    def certify(self, problem, policy):
        lower = float(np.sort(self.gains(problem, [policy])[0])[self.rank - 1])
        claim = Hopeful.certify(Hopeful(delta=self.delta), problem, policy)
        settings = dataclasses.asdict(self)
        return dataclasses.replace(claim, kind=self.name, lower=lower, parameters=settings)

    def choosing_bounds(self, problems, policies, again):
        other = dataclasses.replace(self, seed=self.seed + 1)
        return Hopeful.choosing_bounds(other, problems, policies, again)


def table():
    return frame_of(world(1).rows, (*NAMES, "behavior_prob"))


def known_log():
    return read_log(table(), columns=COLUMNS)


@pytest.fixture(scope="module")
def problem():
    made = draft(gather(known_log(), Terms.of(discount=0.9)))
    return made.question.problem


def test_certify_takes_what_has_the_members_of_a_certifier(problem):
    policy, toy = SPIBB(n_wedge=3).improve(problem).policy, Toy(margin=0.02)
    claim = certify(problem, policy, toy)
    changed = np.count_nonzero(policy.probability != problem.behavior.probability)
    assert changed > 0
    assert claim.lower == estimated_gain(problem, policy) - 0.02 * changed
    own, *others = claim.assumptions
    assert (own.code, str(own)) == ("in-own-words", "The estimate is the truth.")
    assert tuple(others) == problem.premises
    assert certify_many([problem] * 2, [policy] * 2, toy) == [claim] * 2
    with pytest.raises(CertificateRefused, match="kind is 'toy', which cannot be verified here"):
        verify(claim, problem, policy)


def test_checks_split_the_log_as_it_does():
    source = known_log()

    def later_rows(certifier):
        terms = Terms.of(discount=0.9, certificates=[certifier])
        question = prepared(gather(source, terms, {"behavior": "estimate"}))
        return question, practice(question, SimpleNamespace(policy=question.problem.behavior))

    question, found = later_rows(Parting())
    first, whole = question.training.log, question.problem.log
    assert first.num_episodes == round(0.3 * whole.num_episodes)
    assert found.late.sum() == whole.num_steps - first.num_steps > 0
    for certifier in (Parting(logger="fixed", seed=1), Toy()):
        assert later_rows(certifier)[1] == "behavior-of-all"


def test_its_claims_choose_n_wedge(problem):
    grid = (1, 2, 5, 10, 1000)
    auto = AutoNWedge(algorithm=SPIBB(n_wedge=1), certifier=Toy(), grid=grid)
    policies = [SPIBB(n_wedge=n).improve(problem).policy for n in grid]
    bounds = [certify(problem, policy, Toy()).lower for policy in policies]
    best = max(range(len(grid)), key=lambda i: (bounds[i], grid[i]))
    choice = auto.choose(problem)
    assert [each.lower for each in choice.candidates] == bounds
    assert choice.taken == best
    assert bounds[best] > min(bounds)


@pytest.mark.thorough
def test_a_kind_with_draws_of_its_own_chooses_by_other_ones_and_is_calibrated(problem):
    grid, kind = (1, 10, 1000), Drawing()
    auto = AutoNWedge(algorithm=SPIBB(n_wedge=1), certifier=kind, grid=grid)
    policies = [SPIBB(n_wedge=n).improve(problem).policy for n in grid]
    other = Drawing(seed=1)
    bounds = [certify(problem, policy, other).lower for policy in policies]
    assert [each.lower for each in auto.choose(problem).candidates] == bounds
    terms = {"rng": 0, "worlds": 19, "family": [Completed("self-loop"), EpisodeBootstrap()]}
    found = rehearse(problem, auto, kind, sizes=[1.0], **terms)
    assert (found.kind, found.calibration.draws) == ("drawing", 39)
    assert found.calibration.rank_of_prior == kind.rank == 4
    np.testing.assert_array_equal(found.belief, found.claim)
    shy, bold = (calibrate(problem, auto, Drawing(bias=bias), **terms).rank for bias in (1e3, -1e3))
    assert (shy, bold) == (4, 0)
    rank = found.calibration.rank
    assert 0 <= rank <= 4
    left = dataclasses.replace(found.calibration, ranks=(2, 3))
    assert left.applied_to(kind) == dataclasses.replace(kind, delta=2 / 40)
    with pytest.raises(InvalidParameter, match="of type Toy, expected one that draws"):
        calibrate(problem, auto, Toy(), rng=0)


@pytest.mark.slow  # the calibration itself is tested above
def test_a_kind_with_draws_is_calibrated_by_improve():
    result = improve(known_log(), discount=0.9, certificates=[Drawing()], worlds=9)
    assert result.record.parameters.n_wedge_chosen_by == "drawing"
    assert result.rehearsal.calibration.draws == 39


def test_it_is_rehearsed_as_a_belief(problem):
    found = rehearse(
        *(problem, SPIBB(n_wedge=3), Toy()),
        rng=np.random.default_rng(0),
        worlds=2,
        sizes=[1.0, 2.0],
        family=[Completed("self-loop")],
    )
    assert (found.kind, found.calibration) == ("toy", None)
    assert found.claim.shape == (2, 2)
    assert np.isfinite(found.claim).all()
    # What it calls proved is counted among what is only believed.
    np.testing.assert_array_equal(found.belief, found.claim)


@pytest.mark.thorough
def test_improve_stands_by_it_but_never_calls_its_claim_proved(problem, tmp_path):
    result = improve(known_log(), discount=0.9, certificates=[Toy(), "robust"], worlds=1)
    claim = result.certificate
    assert (claim.kind, claim.standing) == ("toy", "by-extension")
    assert claim.lower > 0
    assert result.record.parameters.n_wedge_chosen_by == "toy"
    assert result.rehearsal.kind == "toy"
    assert result.verdict != "proved better"
    assert "from a plug-in: nothing is known here of its proof" in result.report
    result.save(tmp_path / "result")
    for again in (verify_result, lambda *at: certify_result(*at, ["robust"])):
        with pytest.raises(InvalidParameter, match="there is no kind of certificate 'toy'"):
            again(tmp_path / "result", table())
    # It judges a result that was made without it.
    other = improve(known_log(), discount=0.9, certificates=["robust"], worlds=0)
    other.save(tmp_path / "other")
    (claim,) = certify_result(tmp_path / "other", table(), [Toy(margin=0.5)]).certificates
    assert claim.kind == "toy"


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        (Toy(), "not shown to be better"),
        (Parting(), "believed better"),
        (Parting(train_share=0.0), "not shown to be better"),
        (ShyParting(), "not shown to be better"),
    ],
)
def test_a_gain_is_believed_only_with_a_part_of_the_log_left_to_the_choice(kind, verdict):
    result = improve(known_log(), discount=0.9, certificates=[kind], n_wedge=3, worlds=0)
    assert result.certificate.lower > 0
    assert result.verdict == verdict


def test_at_most_it_is_believed(problem):
    policy = SPIBB(n_wedge=3).improve(problem).policy
    own = certify(problem, policy, Toy())
    assert own.lower > 0
    declared = tuple(said for said in own.assumptions if said.code != "rewards-within-seen")
    proof = dataclasses.replace(own, kind=Stitched.name, standing="proved", assumptions=declared)

    def rung(claim, fresh):
        return rung_of([claim], changed=True, rehearsal=None, fresh=fresh)

    assert [rung(proof, fresh) for fresh in (False, True)] == ["proved better"] * 2
    assert rung(own, False) == "not shown to be better"
    assert rung(own, True) == "believed better"
    humble = dataclasses.replace(own, standing="as-published")
    # Beside another one it is not rehearsed, and not believed either.
    beside = rung_of([humble, own], changed=True, rehearsal=None, fresh=True)
    assert beside == "not shown to be better"
    assert verdict([own], changed=True, fresh=True).mood != "good"
    assert (tone_of(own), tone_of(proof)) == ("grey", "green")
    refused = certify(problem, policy, NoClaim(refusal="so", code="no-log"))
    assert tone_of(refused) == "grey"


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("kinds", "believed"),
    [
        ([Toy(), "posterior"], 1),
        ([Parting(), "posterior"], 0),
        ([ShyParting(), "posterior"], None),  # it is rehearsed, but nobody should believe it
        (["stitched", Parting()], None),
        (["stitched", Parting(), "posterior"], 2),
        (["posterior:train_share=0", "stitched"], None),
        (["stitched", "posterior:train_share=0", "posterior:prior=jeffreys", "posterior"], 2),
    ],
)
def test_the_belief_that_is_shown_is_the_one_that_is_rehearsed(kinds, believed):
    terms = Terms.of(discount=0.9, certificates=kinds, n_wedge=3, worlds=0)
    evidence = gather(known_log(), terms)
    made = draft(evidence)
    claims, question = result_of(made.findings).certificates, made.question
    shown = belief_in(claims)
    assert shown == (None if believed is None else claims[believed])
    if shown is not None:
        rehearsed = question.rehearsed[-1]
        policy = evidence.assembly.numbering.policy(result_of(made.findings).policy)
        assert certify(question.problem, policy, rehearsed) == shown


@pytest.mark.parametrize("certifier", [Shy(), Posterior(starts="known", draws=99)])
def test_a_belief_beside_is_measured_whatever_stands_first(problem, certifier):
    terms = {"belief": Posterior(starts="known", prior="jeffreys"), "worlds": 0, "sizes": [1.0]}
    found, plain = (
        rehearse(problem, SPIBB(n_wedge=3), each, rng=np.random.default_rng(0), **terms)
        for each in (certifier, Robust(known_start=True))
    )
    assert np.isfinite(found.lucky_belief).all()
    np.testing.assert_array_equal(found.lucky_belief, plain.lucky_belief)
    assert not found.believes_its_claim
    assert (found.luck != found.lucky_belief).any()


@pytest.mark.parametrize("said", ["proved", "posterior", "asymptotic", "as-published"])
def test_what_it_calls_proved_or_believed_is_by_extension_wherever_it_is_written(problem, said):
    @dataclass(frozen=True)
    class Bold(Toy):
        def certify(self, problem, policy):
            return dataclasses.replace(Toy.certify(self, problem, policy), standing=said)

    policy, humble = SPIBB(n_wedge=3).improve(problem).policy, said.startswith("as")
    own = certify(problem, policy, Bold())
    assert own.standing == (said if humble else "by-extension")
    assert json.loads(own.to_json())["standing"] == own.standing
    assert f"standing='{own.standing}'" in repr(own)
    assert certify_many([problem], [policy], Bold()) == [own]
    words = verdict([own], changed=True, fresh=True)
    if humble:
        assert (words.rung, words.mood) == ("not shown to be better", "caution")
        assert words.why == "The data do not show that the new policy is better."
        return
    assert words.rung == "believed better"
    assert "Believed (by extension), not proved: a model puts the chance" in words.why
    waiting = verdict([own], changed=True, fresh=True, awaited=True)
    assert "is believed, but the stress test that may undo it is still to come" in waiting.why
    assert "posterior" not in words.why + waiting.why


@pytest.mark.parametrize("missing", [name for name in MEMBERS if name != "delta"])
def test_a_missing_member_is_named(problem, missing):
    members = {name: getattr(Toy, name) for name in MEMBERS if name not in (missing, "delta")}
    fields = [("delta", float, dataclasses.field(default=0.1))]
    kind = dataclasses.make_dataclass("Half", fields, namespace=members, frozen=True)
    with pytest.raises(InvalidParameter, match=rf"of type Half, .*; {missing} is missing$"):
        certify(problem, problem.behavior, kind())
    with pytest.raises(InvalidParameter, match=rf"; {missing} is missing; or a name, one of"):
        Asked.of(kind())


def test_a_kind_has_to_inherit_what_it_does_not_say(problem):
    members = {name: getattr(Toy, name) for name in MEMBERS if name != "delta"}
    fields = [("delta", float, dataclasses.field(default=0.1))]
    kind = dataclasses.make_dataclass("Loose", fields, namespace=members, frozen=True)
    with pytest.raises(InvalidParameter, match=r"of type Loose, .* inherits from surestep\.cert"):
        certify(problem, problem.behavior, kind())
    with pytest.raises(InvalidParameter, match="told is missing"):
        surestep.register(kind)


def test_names_of_kinds_that_are_built_in_are_refused(problem):
    class Robust(Toy):
        name: ClassVar = "robust"

    class Liar(Toy):
        def certify(self, problem, policy):
            return dataclasses.replace(Toy().certify(problem, policy), kind="stitched")

    @dataclass(frozen=True)
    class Renamed(Toy):
        name: str = "fake"  # a setting

    assert certify(problem, problem.behavior, Renamed()).kind == "fake"
    with pytest.raises(InvalidParameter, match=r"of type Renamed, .* with another name than"):
        certify(problem, problem.behavior, Renamed(name="robust"))
    with pytest.raises(InvalidParameter, match=r"of type Renamed, .* with another name than"):
        Asked.of(Renamed(name="robust"))
    with pytest.raises(InvalidParameter, match=r"of type Robust, .* with another name than"):
        certify(problem, problem.behavior, Robust())
    with pytest.raises(InvalidParameter, match="Liar makes a certificate of the kind 'stitched'"):
        certify(problem, problem.behavior, Liar())


def test_a_kind_may_make_its_claims_together(problem):
    class Together(Toy):
        @staticmethod
        def certify_many(asked):
            return [Toy(margin=7.0).certify(problem, policy) for _, problem, policy, *_ in asked]

    policy, claim = SPIBB(n_wedge=3).improve(problem).policy, Toy(margin=7.0)
    assert certify(problem, policy, Together()) == certify(problem, policy, claim)
    assert (
        certify_many([problem] * 2, [policy] * 2, Together())
        == [certify(problem, policy, claim)] * 2
    )


def test_it_is_told_what_it_has_settings_for(problem):
    known = Known(delta=0.3, seed=4)
    assert Asked("toy", {}, Toy).make_with(known) == Toy(delta=0.3)
    assert Asked("toy", {"delta": 0.2}, Toy).make_with(known).delta == 0.2
    assert Asked("parting", {}, Parting).make_with(known) == Parting(delta=0.3, seed=4)
