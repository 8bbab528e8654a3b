"""Several signals of one log: how they are read, what is refused, and what their limits keep."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

import surestep
from support.problems import uniform_problem
from surestep import Counts
from surestep.algorithms import SPIBB, Constrained
from surestep.algorithms.contract import NO_LIMITS
from surestep.certificates import Posterior, Stitched
from surestep.certificates.certifying import values_of
from surestep.choosing_within_limits import ConstrainedChoice
from surestep.description import described
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io import read_counts, read_log, write_counts
from surestep.io.counts.labelled import merge_counts
from surestep.model import Statement
from surestep.model.known import Known
from surestep.model.problem import Signal
from surestep.model.statements import WITHIN_SEEN
from surestep.pipeline.evidence import gather
from surestep.pipeline.explain import ActionReason, Explanation, in_words
from surestep.pipeline.findings import settle
from surestep.pipeline.improve import prepared
from surestep.pipeline.posing import unsafe_states
from surestep.pipeline.rehearse import rehearse_log
from surestep.pipeline.terms import ROUNDS, Terms

SIGNALS = {
    "survival": {"column": "survived", "ending": [0, 1]},
    "dialysis": {"column": "dialysis", "running": [0, 1], "ending": [0, 1], "cost": True},
}
FIRST, PAID = {"s": SIGNALS["survival"]}, {"column": "dialysis"}
TOLD = {"discount": 0.9, "ends": "complete", "columns": {"state": "ward", "episode": "case"}}


def patients(episodes=60, seed=0):
    """A log of wards, in which care helps and costs."""
    rng, rows = np.random.default_rng(seed), []
    for case in range(episodes):
        ward = rng.choice(["a", "b"])
        for step in range(rng.integers(1, 4)):
            care = rng.random() < 0.5
            rows.append([case, step, ward, "care" if care else "wait", 0, int(care)])
            ward = rng.choice(["a", "b", "c"])
        rows[-1][4] = int(rng.random() < 0.4 + 0.4 * care)
    names = ("case", "step", "ward", "action", "survived", "dialysis")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def posed(frame, **words):
    """The problem of a log, as `improve` makes it."""
    description, given = surestep.description.given_as(frame, **{**TOLD, **words})
    source = surestep.io.logs.source.open_log(description, given)
    terms = Terms.of(description)
    return prepared(gather(source, terms))


def test_a_further_signal_is_the_problem_of_its_column():
    """Its problem is the one of a log whose reward is that column, a cost with a minus."""
    frame = patients()
    whole = posed(frame, signals=SIGNALS).problem
    paid = frame | {"reward": [-x for x in frame["dialysis"]]}
    alone = posed(paid, running=(-1, 0), ending=(-1, 0)).problem
    (signal,) = whole.signals
    assert (whole.name, signal.name) == ("survival", "dialysis")
    assert (signal.cost, signal.margin) == (True, 0)
    np.testing.assert_array_equal(signal.problem.log.reward, alone.log.reward)
    assert signal.problem.counts == alone.counts
    assert signal.problem.value_bounds == alone.value_bounds
    assert signal.problem.premises == alone.premises
    np.testing.assert_array_equal(whole.log.pair, signal.problem.log.pair)


def test_the_first_signal_is_the_reward():
    """Whoever has one signal under [signals] gets the same problem as with a column of rewards."""
    frame, first = patients(), {"survival": SIGNALS["survival"]}
    columns = {**TOLD["columns"], "reward": "survived"}
    told = posed(frame, signals=first).problem
    plain = posed(frame, columns=columns, ending=(0, 1)).problem
    assert told.counts == plain.counts
    assert told.value_bounds == plain.value_bounds
    assert told.signals == ()


def test_both_parts_of_the_log_have_all_signals():
    """The same episodes choose, and judge, for every signal; π_b is one."""
    question = posed(patients(), signals=SIGNALS, unsafe={"states": "ward = 'c'", "within": 2})
    for part in (question.training, question.judging):
        assert [signal.name for signal in part.signals] == ["dialysis", "ward = 'c'"]
        for signal in part.signals:
            np.testing.assert_array_equal(signal.problem.log.pair, part.log.pair)
            assert signal.problem.behavior == part.behavior
    chance = question.problem.signals[1].problem
    names = chance.counts.pairs.state_labels
    assert [names[s] for s in np.flatnonzero(chance.reach.states)] == ["c"]


@pytest.mark.one_quick
@pytest.mark.parametrize(("within", "chance"), [(1, 0), (2, 0), (3, 1), (4, 1), (None, 1)])
def test_within_counts_decisions_and_not_states(within, chance):
    """The third decision leads into the ward that is not to be reached, the fourth state."""
    wards = [("a", "b", "b", "c"), ("b", "a", "a", "c")] * 20
    rows = [
        (case, step, ward, ("care", "wait")[case % 3 // 2], int(step == 3), 0)
        for case, stay in enumerate(wards)
        for step, ward in enumerate(stay)
    ]
    names = ("case", "step", "ward", "action", "survived", "dialysis")
    frame = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    frame["ward"] = [f"{ward}{step}" for _, step, ward, *_ in rows]  # each step a ward of its own
    whole = posed(frame, signals=FIRST, unsafe={"states": "ward = 'c3'", "within": within}).problem
    assert values_of(whole.signals[0], [whole.behavior]) == [pytest.approx(chance)]


def test_counts_carry_signals_by_name(tmp_path):
    """They are written, read, and merged; a file without them has the form that it had."""
    frame = patients()
    columns = {**TOLD["columns"], "reward": "survived"}
    plain = read_log(frame, ends="complete", columns=columns).counts()
    description = described({"ends": "complete", "columns": columns, "signals": SIGNALS})
    source = surestep.io.logs.source.open_log(description, frame)
    whole = source.counts_of_all()
    write_counts(whole, tmp_path / "all.parquet")
    write_counts(plain, tmp_path / "one.parquet")
    again = read_counts(tmp_path / "all.parquet")
    write_counts(again, tmp_path / "again.parquet")
    write_counts(dataclasses.replace(again, signals={}), tmp_path / "first.parquet")
    files = {name: (tmp_path / f"{name}.parquet").read_bytes() for name in ("all", "one")}
    assert (tmp_path / "again.parquet").read_bytes() == files["all"]
    assert (tmp_path / "first.parquet").read_bytes() == files["one"]
    assert b'"signals"' not in files["one"]
    paid = again.signals["dialysis"].transitions
    assert int(paid.reward_sum.sum()) == -sum(frame["dialysis"])
    assert (paid.greatest_reward <= 0).all()
    other = dataclasses.replace(again, sources=("0" * 64,), signals={})
    with pytest.raises(surestep.errors.ShapeMismatch, match="different signals"):
        merge_counts([again, other])


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("ward = 'b'", {"b, 2", "b, 11"}),
        ("age >= 10", {"a, 10", "b, 11"}),
        ("ward = 'a' and age < 10", {"a, 9"}),
        ("age between 2 and 9 or ward = 'b'", {"a, 9", "b, 2", "b, 11"}),
    ],
)
def test_a_condition_marks_states(condition, holds):
    """Columns of numbers are compared as numbers; an end is no unsafe state."""
    frame = {
        "ward": ["a", "a", "b", "b"],
        "age": [9, 10, 2, 11],
        "action": list("xyxy"),
        "reward": [0, 1, 0, 1],
    }
    source = read_log(frame, columns={"state": ["ward", "age"]})
    words = gather(source, Terms.of(discount=0)).assembly.vocabulary
    found = unsafe_states(condition, words)
    named = {", ".join(words.states[s]) for s in np.flatnonzero(found)}
    assert named == holds


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"unsafe": {"states": "ward = 'z'"}}, "holds in no state.*'ward'"),
        ({"unsafe": {"states": "wards = 'a'"}}, "wards.*expected a condition on 'ward'"),
        ({"unsafe": {"states": "ward in (select 'a')"}}, "expected a condition"),
        ({"unsafe": {"states": "1; drop table states"}}, "expected a condition"),
        ({"unsafe": {"within": 3}}, "unsafe.*expected the key states"),
        ({"unsafe": {"states": "ward = 'a'", "at_most": 1.5}}, "unsafe.at_most is 1.5"),
        ({"unsafe": {"states": "ward = 'a'", "at_most": 0.1, "not_worse_by": 0.1}}, "as before"),
        ({"signals": {"s": {"column": "survive"}}}, "no column 'survive'.*did you mean"),
        (
            {"signals": SIGNALS | {"t": {"column": "survivd", "ending": [0, 1]}}},
            "no column 'survivd'.*did you mean survived",
        ),
        ({"signals": {"s": {"column": "survived", "not_worse_by": 1}}}, "first signal is improved"),
        ({"signals": SIGNALS | {"d": {"column": "dialysis"}}}, "signals.d says neither running"),
        ({"signals": SIGNALS, "running": (0, 2)}, "stakes.running is .* beside .signals"),
        ({"signals": FIRST | {"d": PAID | {"running": [0, 0]}}}, "range of rewards"),
        ({"signals": FIRST | {"d": PAID | {"running": [0, 0.5], "cost": True}}}, "ends its"),
    ],
)
def test_bad_signals_are_refused_in_one_line(said, words):
    with pytest.raises((InvalidParameter, InvalidLog, surestep.errors.RefutedBounds), match=words):
        posed(patients(), **{"signals": SIGNALS, **said})


def test_a_condition_reads_no_files(tmp_path):
    """The condition of somebody else's result can look at states, and at nothing else."""
    (tmp_path / "secret.csv").write_text("x\n1\n")
    frame = patients()
    reading = {name: value for name, value in TOLD.items() if name != "discount"}
    reading["columns"] = {**TOLD["columns"], "reward": "survived"}
    words = gather(read_log(frame, **reading), Terms.of(discount=0.9)).assembly.vocabulary
    for condition in (
        f"ward in (from '{tmp_path}/secret.csv')",
        f"exists (from read_csv('{tmp_path}/secret.csv'))",
        "getenv('HOME') is not null",
        "ward = 'a' or random() < 0.5",
        """ward = 'a' or main."random" () < 0.5""",
        "ward = 'a' or current_date < DATE '2026-01-01'",
        "ward = 'a' or now() is null",
    ):
        with pytest.raises(InvalidParameter):
            unsafe_states(condition, words)


def test_a_rehearsal_of_several_signals_is_refused():
    """Worlds have one signal: nothing would be said of the others."""
    description, frame = surestep.description.given_as(patients(), **TOLD, signals=SIGNALS)
    with pytest.raises(InvalidParameter, match="worlds have one signal"):
        rehearse_log(surestep.io.logs.source.open_log(description, frame), worlds=9)


def test_what_a_claim_assumes_of_further_signals_is_said():
    """Their declared ranges are among the assumptions; ranges that were only seen prove less."""
    question = posed(patients(), signals=SIGNALS)
    problem, policy = question.problem, question.problem.behavior
    claim = surestep.certify(problem, policy, "robust:reward_low=0,reward_high=1")
    sentences = [str(said) for said in claim.assumptions]
    assert sum(sentence.startswith("Of dialysis: As declared") for sentence in sentences) == 1
    (signal,) = problem.signals
    values = {"running_low": 0, "running_high": 1, "ending_low": 0, "ending_high": 1}
    seen = dataclasses.replace(signal.problem, premises=(Statement(WITHIN_SEEN, values),))
    signals = (dataclasses.replace(signal, problem=seen),)
    open_one = dataclasses.replace(problem, signals=signals)
    claim = surestep.certify(open_one, policy, "robust:reward_low=0,reward_high=1")
    assert claim.assumes(WITHIN_SEEN)


@pytest.mark.thorough
def test_what_further_signals_earn_is_tested_too():
    """The checks of a result have a line of each, by its name; chances have none."""
    unsafe = {"states": "ward = 'c'", "within": 2}
    asked = {"signals": SIGNALS, "unsafe": unsafe, "certificates": ["stitched:series=16"]}
    result = surestep.improve(patients(), **TOLD, **asked, worlds=0)
    named = [check.code for check in result.record.checks if check.signal == "dialysis"]
    assert named == ["markov-reward", "drift-reward"]
    assert {check.signal for check in result.record.checks} == {None, "dialysis"}
    assert "Reached means: at the start, or by one of the first 2 decisions." in result.report


def problem():
    times = np.zeros((2, 2, 2), int)
    times[0, :, 1] = 50
    counts = Counts.from_dense(times, rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    plain = uniform_problem(counts, 0.9, (0.0, 1.0))
    return replace(plain, signals=(Signal(name="dialysis", problem=plain),))


def improving(asked, **said):
    terms = Terms.of(discount=0.9, **said)
    return terms.algorithm_for(asked, Known(delta=0.1), [Stitched(), Posterior()], NO_LIMITS)


def test_where_nobody_named_an_algorithm_limits_count():
    asked = problem()
    found = improving(asked, least_visits=10)
    assert isinstance(found, ConstrainedChoice)
    assert (found.algorithm.n_wedge, found.rounds) == (9, ROUNDS)
    assert (found.certifier, found.otherwise) == (Stitched(), Posterior())
    assert improving(asked, n_wedge=7) == Constrained(n_wedge=7)
    assert improving(asked, algorithm="spibb", n_wedge=7) == SPIBB(n_wedge=7)
    assert not isinstance(improving(replace(asked, signals=())), ConstrainedChoice)
    settled = settle(replace(found, certifier=Posterior(), otherwise=None), asked)
    assert settled.algorithm.name == "constrained"
    assert settled.chosen_by is None  # N∧ is what visits were asked for
    assert settled.improvement.policy.dense()[0].tolist() == [0.0, 1.0]


def test_a_limit_that_keeps_an_action_is_named():
    def reason(action, *kept_by):
        return ActionReason((action,), 0.5, 0.5, 9, True, 0.0, 0.0, None, kept_by=kept_by)

    actions = reason("ease", "dialysis"), reason("wait"), reason("push", "dialysis", "cost")
    told = Explanation(("s",), ("s",), ("a",), "constrained", 9, False, actions, 0)
    words = " ".join(in_words(told))
    assert "'ease' is kept from being taken more often by the limit of dialysis." in words
    assert "'push' is kept from being taken more often by the limits of dialysis and cost." in words
    assert "'wait' is kept" not in words
