"""A signal with a discount of its own: what is posed, refused, limited and claimed."""

from dataclasses import replace

import numpy as np
import pytest

import surestep
from support.clinic import ACTIONS, STATES, TODAY, clinic
from support.log_tables import table_of
from support.problems import logged_problem, uniform_problem
from surestep import Counts, Policy, performance
from surestep._arrays import altered
from surestep._words import number
from surestep.algorithms import Constrained
from surestep.certificates import certify
from surestep.description import described
from surestep.errors import InvalidParameter, NeverEnds
from surestep.io import read_log
from surestep.model import Signal
from surestep.model.known import Known, Ranges
from surestep.pipeline.evidence import gather, open_source
from surestep.pipeline.improve import prepared
from surestep.pipeline.terms import Terms
from surestep.report.totals import total_name
from surestep.sampling import sample_log

SCORE = {"column": "reward", "running": [-1, 0], "ending": [-21, 10]}
DEATHS = {"column": "died", "ending": [0, 1], "cost": True, "not_worse_by": 0.02}
TOLD = {"discount": 0.95, "worlds": 0}


def patients(episodes=600, seed=0):
    world = clinic()
    policy = Policy(world.pairs, TODAY.ravel())
    log = sample_log(world, policy, episodes, 400, np.random.default_rng(seed))
    table = table_of(log, STATES, ACTIONS)
    table["died"] = (log.next_state == STATES.index("died")).astype(int)
    return {name: table[name] for name in table if name not in ("next_state", "truncated")}


def posed(frame, **words):
    description, given = surestep.description.given_as(frame, **{**TOLD, **words})
    return prepared(gather(open_source(description, given), Terms.of(description))).problem


@pytest.mark.thorough
def test_its_problem_is_that_of_a_log_with_that_discount():
    frame = patients(60)
    whole = posed(frame, signals={"score": SCORE, "deaths": DEATHS | {"discount": 1}})
    paid = frame | {"reward": -frame["died"]}
    alone = posed(paid, discount=1, ending=(-1, 0))
    (deaths,) = whole.signals
    assert (whole.discount, deaths.problem.discount) == (0.95, 1.0)
    assert deaths.problem.value_bounds == alone.value_bounds == (-1.0, 0.0)
    assert deaths.problem.counts == alone.counts
    assert deaths.problem.premises == alone.premises
    shared = posed(frame, signals={"score": SCORE, "deaths": DEATHS})
    assert shared.signals[0].problem.discount == 0.95


def test_that_of_the_first_signal_is_the_one_of_all():
    first = {"score": SCORE | {"discount": 0.5}, "deaths": DEATHS}
    told = described({"signals": first})
    assert told.stakes.discount == 0.5
    assert Terms.of(told).of_signal(told.signals["deaths"]).discount == 0.5
    with pytest.raises(InvalidParameter, match=r"stakes.discount is 0.9 beside \[signals\]"):
        described({"signals": first, "stakes": {"discount": 0.9}})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"discount": 1, "running": [0, 1]}, "signals.deaths, a cost: discount is 1 and a running"),
        ({"discount": 1, "returns": [1, 0]}, "lower number of returns first"),
        ({"discount": 2}, "signals.deaths"),
        ({"per": 0}, "signals.deaths"),
    ],
)
def test_what_cannot_be_bounded_is_refused_before_the_log_is_read(more, message):
    """Nothing is there to be read."""
    with pytest.raises(InvalidParameter, match=message):
        Terms.of(
            described(
                {"stakes": {"discount": 0.95}, "signals": {"score": SCORE, "deaths": DEATHS | more}}
            )
        )


def test_the_reward_too_is_refused_before_the_log_is_read():
    with pytest.raises(InvalidParameter, match="returns have no bounds"):
        Terms.of(described({"stakes": {"discount": 1, "running": [0, 1]}}))
    Terms.of(described({"stakes": {"discount": 1, "running": [0, 1], "returns": [0, 9]}}))


def test_declared_returns_bound_a_total():
    days = {
        "column": "step",
        "running": [0, 400],
        "ending": [0, 400],
        "returns": [0, 80_000],
        "cost": True,
        "discount": 1,
    }
    whole = posed(patients(60), columns={"step": "step"}, signals={"score": SCORE, "days": days})
    assert whole.signals[0].problem.value_bounds == (-80_000.0, 0.0)


def test_a_policy_that_need_not_end_is_refused_for_that_signal():
    """After one step nothing ever ends in this log, which a clock stopped."""
    rows = [(e, t, "s", "ab"[(e + t) % 2], 1.0, 0) for e in range(40) for t in range(4)]
    names = ("episode", "step", "state", "action", "reward", "died")
    frame = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    signals = {"score": SCORE | {"running": [0, 1]}, "deaths": DEATHS | {"discount": 1}}
    with pytest.raises(NeverEnds, match=r"signals\.deaths: .*never ends"):
        posed(frame, ends="clock", signals=signals)


# ---- limits ------------------------------------------------------------------------------------


def late_deaths(own):
    """A risky action earns at once, and kills three of ten after three further steps."""
    times = np.zeros((6, 2, 6), int)
    times[0, 0, 4], times[0, 1, 1] = 500, 500
    times[1, 0, 2] = times[2, 0, 3] = 500
    times[3, 0] = [0, 0, 0, 0, 350, 150]
    ends = np.arange(6) > 3
    score, died = np.zeros((6, 2, 6)), np.zeros((6, 2, 6))
    score[0, 1, 1], score[0, 0, 4], died[3, 0, 5] = 1.0, 0.5, -1.0

    def problem(rewards, discount, bounds):
        counts = Counts.from_dense(times, rewards=rewards, starts=[1000, *[0] * 5], terminal=ends)
        return uniform_problem(counts, discount, bounds)

    deaths = Signal(name="deaths", problem=problem(died, own, (-1, 0)), margin=0.05, cost=True)
    first = problem(score, 0.5, (0, 2))
    habit = [0.5, 0.5, *[1.0, 0.0] * 5]
    behavior = Policy(first.counts.pairs, np.array(habit))
    return altered(first, signals=(deaths,)).with_behavior(behavior)


@pytest.mark.parametrize(("own", "risky"), [(0.5, 1.0), (1.0, 2 / 3)])
def test_a_limit_without_a_discount_sees_what_comes_late(own, risky):
    """Before, 15 of 100 die; at most 20 may. At γ = 1/2 only an eighth of them is seen."""
    problem = late_deaths(own)
    found = Constrained(n_wedge=10, price=0.0, rounds=1e-6).improve(problem)
    assert found.policy.probability[1] == pytest.approx(risky, abs=1e-6)
    assert found.unmet == ()


def test_a_policy_that_never_ends_breaks_a_limit_without_a_discount():
    times = np.zeros((2, 2, 2), int)
    times[0, 0, 0], times[0, 1, 1] = 500, 500  # wait, or leave
    counts = Counts.from_dense(
        times, rewards=[[1.0, 0.0], [0.0, 0.0]], starts=[500, 0], terminal=[False, True]
    )
    paid = replace(counts, rewards=replace(counts.rewards, values=-0.1 * counts.rewards.values))
    bill = uniform_problem(paid, 1.0, (-100, 0))
    problem = altered(
        uniform_problem(counts, 0.9, (0, 10)),
        signals=(Signal(name="bill", problem=bill, margin=50.0, cost=True),),
    )
    found = Constrained(n_wedge=10).improve(problem).policy
    assert np.isfinite(performance(bill.estimate(), found))


# ---- claims ------------------------------------------------------------------------------------


def with_deaths(log, behavior, discount):
    first = logged_problem(log, 0.95, (-21, 10), behavior)
    died = replace(log, reward=-1.0 * (log.next_state == STATES.index("died")))
    deaths = logged_problem(died, discount, (-1, 0), behavior)
    known = Known(reward_bounds=(-1.0, 0.0), ranges=Ranges((0.0, 0.0), (-1.0, 0.0)))
    signal = Signal(name="deaths", problem=deaths, cost=True, known=known)
    return altered(first, signals=(signal,))


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "kind", ["stitched:series=32", "robust:reward_low=-21,reward_high=10", "posterior"]
)
def test_each_kind_claims_a_share_that_is_true(kind):
    """12 logs: more than 4 bounds above the truth have a chance of 4e-3 where 10 % are allowed."""
    world = clinic()
    behavior = Policy(world.pairs, TODAY.ravel())
    policy = Policy(world.pairs, np.tile([0.2, 0.8], 5))
    honest = surestep.FiniteMDP.from_dense(
        np.where(np.arange(5)[:, None, None] < 3, world.dense().P, 0.0),
        -1.0 * np.tile(np.arange(5) == 4, (5, 2, 1)),
        1.0,
        initial=world.initial,
    )
    truth = performance(honest, policy) - performance(honest, behavior)
    above = 0
    for seed in range(12):
        log = sample_log(world, behavior, 300, 400, np.random.default_rng(seed))
        claim = certify(with_deaths(log, behavior, 1.0), policy, kind)
        deaths = claim.signals[1]
        assert deaths.refusal is None
        above += deaths.lower > truth
        assert deaths.before == pytest.approx(0.218, abs=0.08)
    assert above <= 4


@pytest.mark.parametrize("kind", ["a-priori", "trajectory:reward_low=-21,reward_high=10"])
def test_a_kind_that_needs_a_discount_refuses_that_signal_alone(kind):
    world = clinic()
    behavior = Policy(world.pairs, TODAY.ravel())
    log = sample_log(world, behavior, 300, 400, np.random.default_rng(0))
    claim = certify(with_deaths(log, behavior, 1.0), behavior, kind)
    score, deaths = claim.signals
    assert score.refusal is None
    assert "discount" in deaths.refusal
    assert not deaths.holds


def test_a_belief_that_cannot_be_held_of_one_signal_leaves_the_others():
    world = clinic()
    behavior = Policy(world.pairs, TODAY.ravel())
    policy = Policy(world.pairs, np.tile([0.2, 0.8], 5))
    log = sample_log(world, behavior, 300, 400, np.random.default_rng(0))
    problem = with_deaths(log, behavior, 1.0)
    (deaths,) = problem.signals
    endless = replace(deaths.problem, value_bounds=(-1.7e308, 1.7e308))
    more = replace(deaths, name="more", problem=endless)
    alone = certify(problem, policy, "posterior").signals
    score, refused, kept = certify(
        altered(problem, signals=(more, deaths)), policy, "posterior"
    ).signals
    assert (score.lower, kept.lower) == pytest.approx((alone[0].lower, alone[1].lower))
    assert "value_bounds" in refused.refusal
    assert not any(claim.holds for claim in (score, refused, kept))


# ---- the whole way -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result():
    signals = {"score": SCORE, "deaths": DEATHS | {"discount": 1, "per": 100}}
    source = read_log(patients(1200, 3))
    return surestep.improve(
        source, discount=0.95, signals=signals, worlds=0, certificates=["stitched:series=32"]
    )


@pytest.mark.thorough
def test_deaths_are_shown_as_the_share_that_dies(result):
    """The discounted sum was shown for it: lower by what patients die later."""
    frame = patients(1200, 3)
    last = dict(zip(frame["episode"], frame["died"], strict=True))
    died = 100 * np.mean([*last.values()])
    score, deaths = result.totals
    assert (deaths.name, deaths.share, deaths.per) == ("deaths", True, 100)
    assert deaths.before.value == pytest.approx(died, abs=3)
    assert deaths.after.value < deaths.before.low
    assert not score.share
    assert result.certificate.signals[1].before == pytest.approx(died / 100, abs=0.02)
    for words in ("deaths per 100 episodes", "score per episode", "deaths: not discounted"):
        assert words in result.report
    today = number(result.record.estimates["behavior"], 3)
    said = f"each later step counts 5 % less; today's value is about {today}"
    assert said in result.report.replace("\u202f", " ").replace("&#39;", "'")


@pytest.mark.thorough
def test_a_signal_alone_has_its_name_and_its_sign():
    alone = {name: value for name, value in DEATHS.items() if name != "not_worse_by"}
    told = {"signals": {"deaths": alone}, "certificates": ["posterior"]}
    result = surestep.improve(patients(600, 3), **TOLD, **told)
    (deaths,) = result.totals
    assert (deaths.name, deaths.cost, deaths.share) == ("deaths", True, True)
    assert 0 < deaths.after.value < deaths.before.value < 1
    assert "deaths (share of episodes)" in result.report
    assert "percentage points, probably −" in result.report


@pytest.mark.thorough
def test_unsafe_states_are_counted_beside_a_reward():
    """In per cent, and named by their condition; the unit says what a reward and a case are."""
    told = {"running": (-1, 0), "ending": (-21, 10), "unsafe": {"states": "state = 'severe'"}}
    source = read_log(patients(200, 3))
    result = surestep.improve(source, **TOLD, **told, certificates=["posterior"], horizon=8)
    score, severe = result.totals
    assert (score.name, severe.share, severe.within) == ("reward", True, 8)
    named = replace(result.record, description={"stakes": {"unit": "points per patient"}})
    assert total_name(score, named) == "points per patient within 8 steps"
    assert total_name(severe, named) == (
        "state = 'severe' reached (share of patients) within 8 steps"
    )
    hundreds = replace(score, per=100, within=None)
    assert total_name(hundreds, named) == "points per 100 patients"
    assert total_name(hundreds, result.record) == "reward per 100 episodes"


def test_totals_are_kept(result, tmp_path):
    result.save(tmp_path / "kept")
    assert surestep.load(tmp_path / "kept").totals == result.totals
