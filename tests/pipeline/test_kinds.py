"""What `improve` does with several certificates, a choice of N∧, and a stress test."""

import dataclasses

import numpy as np
import pytest

from support.chosen import chosen_spibb
from support.labelled_worlds import COLUMNS, NAMES, world
from support.log_tables import frame_of
from surestep import Policy, certify, improve, load, read_log
from surestep.algorithms import SPIBB
from surestep.certificates import APriori, Posterior, Robust, training_part
from surestep.choosing_n_wedge import usual_grid
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.model import estimate_behavior
from surestep.pipeline.certify import certify_result
from surestep.pipeline.evidence import CountsSource, gather
from surestep.pipeline.improve import draft, result_of
from surestep.pipeline.recording import terms_of
from surestep.pipeline.terms import ROUNDS, Terms, usual_train_share
from surestep.pipeline.verify import verify_result
from surestep.rehearsal import rehearse
from surestep.report.answer import verdict

FEW_SERIES = ["stitched:series=96", "posterior", "robust"]  # the default but for the series
RANGES = {"running": (-9.0, 9.0), "ending": (-9.0, 9.0)}
KINDS = ["posterior", "robust"]


def known_log(seed=1):
    rows = world(seed).rows
    return read_log(frame_of(rows, (*NAMES, "behavior_prob")), columns=COLUMNS)


def made(terms, source=None):
    return draft(gather(known_log() if source is None else source, terms))


def numbering():
    """Returns the numbering of the log by first appearance, which is the same under all terms."""
    return gather(known_log(), Terms.of(discount=0.9)).assembly.numbering


@pytest.fixture(scope="module")
def usual():
    """What comes of the log without any choice."""
    return made(Terms.of(discount=0.9))


def test_by_default_a_proof_is_stood_by_and_the_rest_of_the_log_judges(usual):
    question, found = usual.question, result_of(usual.findings)
    assert [each.kind for each in found.certificates] == ["stitched", "posterior", "robust"]
    share = usual_train_share(known_log().counts().episodes.recorded)
    split = {"train_share": share, "logger": "adaptive"}
    used = found.record.parameters
    assert split == {"train_share": used.train_share, "logger": used.logger}
    seed = used.seeds["certificates"]
    for claim in found.certificates[:2]:
        assert split.items() <= claim.parameters.items()
        assert claim.parameters["seed"] == seed
    # The first half of few episodes choose, and the others are looked at.
    log, part = question.problem.log, question.training.log
    assert share == 0.5
    assert part.num_episodes == round(share * log.num_episodes)
    np.testing.assert_array_equal(part.state, log.state[: part.num_steps])
    place = numbering().pair  # the question counts states as they come, the table by name
    np.testing.assert_array_equal(found.table.visits[place], question.training.counts.visits)
    rest = question.problem.counts.visits - question.training.counts.visits
    np.testing.assert_array_equal(found.table.held_out_visits[place], rest)
    policy = question.algorithm.improve(question.training).policy
    assert numbering().policy(found.policy) == policy
    belief = Posterior(**split, seed=seed)
    assert found.certificates[1] == certify(question.problem, policy, belief)
    means = question.problem.counts.rewards.values / np.maximum(question.problem.counts.times, 1)
    bounds = {"reward_low": min(0.0, means.min()), "reward_high": max(0.0, means.max())}
    assert found.certificates[2] == certify(question.problem, policy, Robust(**bounds))


def test_counts_cannot_be_split_and_are_stood_by_a_proof_for_all_policies():
    counts = CountsSource(known_log().counts())
    found = result_of(made(Terms.of(discount=0.9), counts).findings)
    assert [each.kind for each in found.certificates] == ["robust"]
    assert found.record.parameters.train_share is None
    assert "train_share" not in found.record.defaults


def test_an_estimated_behavior_policy_is_that_of_the_training_part():
    source = read_log(frame_of(world(1).rows, NAMES), columns=COLUMNS)
    question = made(Terms.of(discount=0.9), source).question
    training = estimate_behavior(question.training.counts)
    assert question.problem.behavior == training
    assert question.problem.behavior_is_estimated
    assert training != estimate_behavior(question.problem.counts)


@pytest.mark.thorough
def test_a_logger_who_has_not_learnt_leaves_the_split_to_chance():
    """The seed of the split is the digest of the data, and all kinds have the same one."""
    question = made(Terms.of(discount=0.9, logger="fixed", train_share=0.5)).question
    seed = question.certifiers[0].seed
    assert seed == question.belief.seed > 0
    expected = training_part(question.problem, 0.5, seed)
    np.testing.assert_array_equal(question.training.counts.visits, expected.counts.visits)
    assert (
        result_of(made(Terms.of(discount=0.9, logger="fixed")).findings).certificates[0].standing
        == "proved"
    )


@pytest.mark.thorough
def test_the_first_kind_that_may_choose_does():
    robust = made(Terms.of(discount=0.9, certificates=["robust"], **RANGES))
    assert result_of(robust.findings).record.parameters.n_wedge_chosen_by == "robust"
    judge = Robust(reward_low=-9.0, reward_high=9.0)
    problem = robust.question.problem
    grid = usual_grid(int(problem.counts.visits.max()), 9)
    chosen = chosen_spibb(problem, judge, grid)
    policy = numbering().policy(result_of(robust.findings).policy)
    assert (policy, result_of(robust.findings).certificate) == (chosen.policy, chosen.certificate)
    published = made(Terms.of(discount=0.9, certificates=[APriori(bound="beta")]))
    assert result_of(published.findings).record.parameters.n_wedge_chosen_by == "posterior"
    assert result_of(published.findings).certificate.parameters == {
        "bound": "beta", "delta": 0.1, "n_wedge": None,
    }  # fmt: skip


@pytest.mark.thorough
def test_episodes_that_judge_have_no_part_in_the_policy():
    """The policy is that of the training part; other kinds may use all of the log."""
    share = "trajectory:train_share=0.4,horizon=2,claim=horizon"
    result = made(Terms.of(discount=0.9, certificates=[share, "posterior"]))
    part = training_part(result.question.problem, 0.4, None)
    n_wedge = result_of(result.findings).record.parameters.n_wedge
    policy = SPIBB(n_wedge=n_wedge).improve(part).policy
    assert numbering().policy(result_of(result.findings).policy) == policy
    visits = result_of(result.findings).table.visits[numbering().pair]
    np.testing.assert_array_equal(visits, part.counts.visits)
    assert [each.kind for each in result_of(result.findings).certificates] == [
        "trajectory",
        "posterior",
    ]
    belief = result_of(result.findings).certificates[1]
    seed = result_of(result.findings).record.parameters.seeds["certificates"]
    held_out = Posterior(train_share=0.4, seed=seed)
    assert belief == certify(result.question.problem, policy, held_out)
    # Another choice of what is kept back: another policy may come of it, from other episodes.
    with pytest.raises(InvalidParameter, match="only one part of the log can choose"):
        made(Terms.of(discount=0.9, certificates=[share, "trajectory:train_share=0.5,horizon=2"]))
    with pytest.raises(InvalidParameter, match="has train_share 0"):
        made(Terms.of(discount=0.9, certificates=["trajectory:train_share=0"]))


def test_a_refusal_takes_its_place_and_says_what_was_asked():
    rows = frame_of(world(1).rows, NAMES)
    estimated = read_log(rows, columns=COLUMNS)
    result = result_of(
        made(Terms.of(discount=0.9, certificates=["posterior", "trajectory"]), estimated).findings
    )
    assert [each.kind for each in result.certificates] == ["posterior", "no-claim"]
    refused = result.certificates[1].parameters
    assert (refused["asked"], refused["code"]) == ("trajectory", "behavior-not-known")


@pytest.mark.thorough
def test_the_stress_test_is_of_the_whole_pipeline_and_is_saved(tmp_path):
    log = frame_of(world(2, episodes=60).rows, (*NAMES, "behavior_prob"))
    terms = Terms.of(discount=0.9, worlds=1, certificates=FEW_SERIES)
    drafted = made(terms, read_log(log, columns=COLUMNS))
    drafted = dataclasses.replace(drafted, how=drafted.how._replace(sizes=(0.5,)))
    result = result_of(drafted.finished(lambda *told: None))
    question, how = drafted.question, drafted.how
    expected = rehearse(
        *(question.problem, question.algorithm, question.certifiers[0]),
        belief=question.belief, rng=np.random.default_rng(0), worlds=1, sizes=how.sizes,
    )  # fmt: skip
    assert expected.kind == "stitched"
    assert np.isfinite(expected.lucky_belief).any()
    assert result.rehearsal.to_json() == expected.to_json()
    result.save(tmp_path / "out")
    assert load(tmp_path / "out").rehearsal.to_json() == expected.to_json()
    assert load(tmp_path / "out").certificates == result.certificates
    assert "stress test" in result.report


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"certificates": []}, "expected at least one, and none twice"),
        ({"certificates": ["robust", "robust"]}, "none twice"),
        ({"worlds": 12, "certificates": ["posterior:delta=0.05"]}, "at least 19 of each kind"),
        (
            {"worlds": 9, "certificates": ["trajectory:claim=horizon,horizon=3"]},
            "the claim is about the first steps only",
        ),
        ({"train_share": 0}, "train_share is 0, expected a number > 0"),
        ({"logger": "random"}, "logger is 'random', expected another word"),
        ({"certificates": ["no-claim"]}, "there is no kind of certificate 'no-claim'"),
        ({"certificates": [Policy]}, "certifier is of type type"),
        ({"worlds": 3, "certificates": ["posterior"]}, "worlds is 3, expected 0, or at least 9"),
        ({"logger": "adaptive", "certificates": ["stitched:logger=fixed"]}, "log is split once"),
        ({"train_share": 0.5, "certificates": ["posterior:train_share=0.2"]}, "is split once"),
    ],
)
def test_terms_that_make_no_sense_are_refused(terms, words):
    with pytest.raises(InvalidParameter, match=words):
        Terms.of(discount=0.9, **terms)


def treatment_table(seed, chances, rows=400):
    """One decision among some arms, each of which pays 1 with its chance."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(len(chances), size=rows)
    return one_step(
        np.array([f"a{each}" for each in arm], object),
        (rng.random(rows) < np.array(chances)[arm]).astype(float),
    )


def one_step(action, reward):
    """Decisions in one place that lead to another, where all is over."""
    return {
        "state": np.full(reward.size, "here", object),
        "action": action,
        "reward": reward,
        "next_state": np.full(reward.size, "there", object),
        "terminated": np.ones(reward.size, bool),
    }


@pytest.mark.thorough
def test_rewards_that_vary_are_no_exact_observations():
    """The bounds of single rewards are taken, from a log and from its counts alike.

    All arms are equal, so that every gain proved would be wrong.
    """
    terms = Terms.of(discount=0.5, n_wedge=10, certificates=KINDS)
    for seed in range(8):
        source = read_log(treatment_table(seed, [0.3] * 4))
        posterior, robust = result_of(made(terms, source).findings).certificates
        assert posterior.parameters["rewards"] == "bounded"
        assert (robust.parameters["reward_low"], robust.parameters["reward_high"]) == (0.0, 1.0)
        assert robust.lower <= 0
    from_counts, from_log = (
        improve(each, discount=0.5, worlds=0, n_wedge=10) for each in (source.counts(), source)
    )
    assert from_counts.certificates == from_log.certificates
    same = improve(known_log(), discount=0.9, worlds=0, certificates=KINDS)
    assert same.certificate.parameters["rewards"] == "deterministic"


def noughts_and_fours():
    """100 visits of each of two actions, whose rewards of 0 and 4 add up to a multiple of 100."""
    rewards = np.repeat([0.0, 4.0, 0.0, 4.0], [75, 25, 50, 50])
    return one_step(np.repeat(np.array(["a", "b"], object), 100), rewards)


def test_deterministic_rewards_are_refused_where_they_vary(tmp_path):
    table = noughts_and_fours()
    kind = "posterior:rewards=deterministic"
    words = "rewards is 'deterministic', but one transition earned different rewards"
    for source in (read_log(table), read_log(table).counts()):
        with pytest.raises(InvalidParameter, match=words):
            improve(source, discount=0.9, certificates=[kind], worlds=0)
        with pytest.raises(InvalidParameter, match=words):
            improve(source, discount=0.9, certificates=["a-priori", Posterior()], worlds=0)
    improve(read_log(table), discount=0.9, worlds=0, n_wedge=10).save(tmp_path / "out")
    with pytest.raises(InvalidParameter, match=words):
        certify_result(tmp_path / "out", table, [kind])


def in_episodes(table):
    """The same decisions, each of them an episode."""
    rows = table["reward"].size
    return table | {"episode": np.arange(rows), "step": np.zeros(rows, int)}


def test_where_nothing_can_be_gained_nothing_is_proved_and_beliefs_are_told_apart():
    """All arms are alike, so that "proved better" is wrong: in at most a tenth of such logs.

    2 or more of 3 would by chance be seen in 3 % of cases, and seeds are fixed. What is believed
    there is never green, and the page says how often such beliefs are wrong.
    """
    proved = 0
    for seed in range(3):
        table = in_episodes(treatment_table(seed, [0.3] * 4))
        # Two ends: what leads to one pays 1, to the other 0.
        table["next_state"] = np.where(table["reward"] > 0, "well", "ill").astype(object)
        terms = {"worlds": int(seed == 0), "n_wedge": 10, "certificates": FEW_SERIES}
        result = improve(read_log(table), discount=0.5, **terms)
        proved += result.verdict == "proved better"
        judged = verdict(result.certificates, changed=True, rehearsal=result.rehearsal)
        assert judged.rung == result.verdict
        assert (judged.mood == "good") == (result.verdict == "proved better")
        assert seed > 0 or result.rehearsal.lucky_belief.size == 10
        assert f'"verdict": "{result.verdict}"' in result.files()["certificate.json"].decode()
    assert proved < 2
    clear = in_episodes(treatment_table(0, [0.1, 0.9], rows=300))
    found = improve(read_log(clear), discount=0.5, worlds=0, n_wedge=10, ending=(0.0, 1.0))
    assert found.verdict == "proved better"
    assert found.certificate.lower > 0
    assert '<section id="answer" class="good">\n<h1>Adopt it</h1>' in found.report


@pytest.mark.thorough
def test_a_forged_stress_test_is_refused(tmp_path):
    table = treatment_table(0, [0.2, 0.8])
    terms = {"worlds": 1, "n_wedge": 5, "certificates": ["robust"]}
    made = improve(read_log(table), discount=0.5, **terms)
    better = dataclasses.replace(made.rehearsal, gain=np.abs(made.rehearsal.gain) + 1.0)
    other = dataclasses.replace(made.record, machine={**made.record.machine, "processor": "other"})
    dataclasses.replace(made, rehearsal=better, record=other).save(tmp_path / "better")
    assert verify_result(tmp_path / "better", table).difference.startswith("rehearsal.json: ")


def test_noisy_rewards_need_no_bounds_to_be_stood_by():
    """Means between 0.2 and 0.4 say nothing of single returns, which are 0 or 1."""
    table = in_episodes(treatment_table(0, [0.2, 0.4]))
    found = improve(read_log(table), discount=0.5, worlds=0, n_wedge=10)
    claim = found.certificate
    assert (claim.kind, claim.standing) == ("stitched", "proved")
    assert (claim.parameters["return_low"], claim.parameters["return_high"]) == (0.0, 1.0)


@pytest.mark.thorough
def test_the_same_episodes_in_another_order_are_no_judges(tmp_path):
    table = in_episodes(treatment_table(0, [0.1, 0.9], rows=300))
    improve(read_log(table), discount=0.5, worlds=0, n_wedge=5).save(tmp_path / "out")
    turned = {name: column[::-1].copy() for name, column in table.items()}
    words = "the policy was chosen from this very log"
    assert certify_result(tmp_path / "out", table, ["stitched"]).same_log
    with pytest.raises(CertificateRefused, match=words):
        certify_result(tmp_path / "out", turned, ["stitched"])


@pytest.mark.thorough
def test_only_the_claim_that_was_settled_on_may_prove(tmp_path):
    table = in_episodes(treatment_table(0, [0.1, 0.9], rows=300))
    terms = {"discount": 0.5, "worlds": 0, "n_wedge": 5, "ending": (0.0, 1.0)}
    result = improve(read_log(table), **terms)
    result.save(tmp_path / "out")
    judged = certify_result(tmp_path / "out", table, ["stitched", "stitched:seed=7"])
    assert judged.certificates[0] == result.certificate
    assert judged.certificates[1].lower > 0
    for claim, rung in zip(
        judged.certificates, ("proved better", "not shown to be better"), strict=True
    ):
        assert judged.verdict(claim).rung == rung
    later = in_episodes(treatment_table(1, [0.1, 0.9], rows=300))
    fresh = certify_result(tmp_path / "out", later, ["robust", "posterior"])
    assert fresh.fresh


def test_the_default_records_what_was_chosen_and_makes_it_again(usual):
    found = result_of(usual.findings)
    parameters, choice = found.record.parameters, found.record.defaults
    assert {"algorithm", "n_wedge", "train_share"} <= set(choice)
    assert parameters.algorithm["algorithm"] in ("spibb", "provable")
    terms = terms_of(found.record)
    assert (terms.method.algorithm, terms.method.n_wedge, terms.named[1]) == (None, None, {})
    named = improve(known_log(), "provable:rounds=2,price=0", discount=0.9, worlds=0)
    settings = {"rounds": 2, "price": 0}
    assert named.record.parameters.algorithm == {"algorithm": "provable", **settings}
    assert named.record.parameters.n_wedge is None
    terms = terms_of(named.record)
    assert terms.named[:2] == ("provable", settings)


@pytest.mark.thorough
def test_candidates_beside_are_those_of_the_default_alone(usual):
    question = usual.question
    assert [each.name for each in question.algorithm.beside] == ["provable"] * len(ROUNDS)
    assert question.algorithm.one_action
    for terms in (
        Terms.of(discount=0.9, algorithm="spibb"),
        Terms.of(discount=0.9, certificates=["posterior"]),
    ):
        algorithm = made(terms).question.algorithm
        assert (algorithm.beside, algorithm.one_action) == ((), False)
    for terms in (Terms.of(discount=0.9, n_wedge=5), Terms.of(discount=0.9, zeta=1.0)):
        assert made(terms).question.algorithm.name == "spibb"
