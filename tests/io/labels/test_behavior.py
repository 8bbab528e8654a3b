"""Policies as tables: read from every kind of table, and fitted to logs that they made or not."""

from collections import Counter

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_tables import KINDS, frame_of, write_table
from support.strategies import all_pairs, policies
from surestep.errors import InvalidLog, InvalidPolicy, ShapeMismatch, SurestepError
from surestep.io import read_log
from surestep.io.labels.binning import Binning
from surestep.io.labels.label_tables import check_log_fits, policy_from_propensities, read_pairs
from surestep.model import Pairs, Policy
from surestep.pipeline.evidence import assemble

COLUMNS = ("state", "action", "probability")
MEMORY = {
    "dict": lambda frame: frame,
    "pandas": pandas.DataFrame,
    "polars": lambda frame: polars.DataFrame({k: v.tolist() for k, v in frame.items()}),
    "arrow": lambda frame: pyarrow.table({k: v.tolist() for k, v in frame.items()}),
}


@st.composite
def behaviors(draw):
    return draw(policies(draw(all_pairs())))


def policy_rows(policy):
    pairs = policy.pairs
    cells = zip(pairs.state, pairs.action, policy.probability, strict=True)
    return [{"state": f"s{s}", "action": f"a{a}", "probability": float(p)} for s, a, p in cells]


def reading(rows, columns=COLUMNS):
    return read_pairs(frame_of(rows, columns), ("state",), ("action",), policy=True)


def table_of(*cells):
    return reading([dict(zip(COLUMNS, row, strict=True)) for row in cells])


def by_label(policy):
    """(state, action) → probability."""
    pairs = policy.pairs
    return {
        (pairs.state_labels[s], pairs.action_labels[a]): p
        for s, a, p in zip(pairs.state, pairs.action, policy.probability, strict=True)
    }


@settings(max_examples=10)
@given(
    policy=behaviors(),
    kind=st.sampled_from([*KINDS, *MEMORY]),
    rng=st.randoms(),
    probability=st.sampled_from(["probability", "prob", "p", "behavior_prob", "PScore"]),
    state=st.sampled_from(["ward", "state", "Observation"]),
)
def test_a_policy_comes_back_from_every_kind_of_table(
    policy, kind, rng, probability, state, folder
):
    rows = policy_rows(policy)
    expected = {(row["state"], row["action"]): row["probability"] for row in rows}
    rng.shuffle(rows)
    columns = (probability, state, "action", "note")
    rows = [
        {state: r["state"], "action": r["action"], probability: r["probability"], "note": "x"}
        for r in rows
    ]
    if kind in KINDS:
        source = write_table(folder / f"policy{kind}", rows, columns)
    else:
        source = MEMORY[kind](frame_of(rows, columns))
    found = read_pairs(source, ("ward",), ("action",), policy=True)
    assert by_label(Policy(found.pairs, found.probability)) == pytest.approx(expected, rel=1e-12)
    assert found.vocabulary.state_columns == ("ward",)
    assert list(found.vocabulary.states) == sorted(found.vocabulary.states)


def test_states_of_several_columns_and_bins(tmp_path):
    path = tmp_path / "policy.csv"
    path.write_text(
        "ward,p,age,drug\na,0.25,10,wait\na,0.75,39.5,treat\nb,1,>= 40,wait\nb,1,-3,treat\n"
    )
    bins = {"age": Binning(edges=[40])}
    found = read_pairs(path, ("ward", "age"), ("drug",), bins, policy=True)
    assert by_label(Policy(found.pairs, found.probability)) == {
        ("a, < 40", "wait"): 0.25,
        ("a, < 40", "treat"): 0.75,
        ("b, >= 40", "wait"): 1,
        ("b, < 40", "treat"): 1,
    }
    assert found.vocabulary.index("state", {"ward": "b", "age": 17}) == 1


def test_probabilities_may_have_a_decimal_comma(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("state;action;p\na;x;0,25\na;y;,75\nb;x;1,000\n")
    found = read_pairs(path, ("state",), ("action",), policy=True)
    assert found.probability.tolist() == [0.25, 0.75, 1.0]


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        (["a,x,0.5", "a,y,zero"], InvalidPolicy, "row 2, column 'p': found 'zero', expected a num"),
        (["a,x,1.5"], InvalidPolicy, r"t\.csv, row 1, column 'p': found '1\.5', expected a number"),
        (["a,x,-0.1"], InvalidPolicy, r"found '-0\.1', expected a number from 0 to 1"),
        (["a,x,nan"], InvalidPolicy, "found 'nan'"),
        (["a,x,0_1"], InvalidPolicy, "found '0_1'"),
        (["a,x,"], InvalidLog, "row 1, column 'p': found nothing, expected a value"),
        (["a,x,0.5", "b,x,1", "a,x,0.5"], InvalidLog, "row 3: state 'a', action 'x' is there ag"),
        (["a,x,0.5", "a,y,0.4"], InvalidPolicy, r"t\.csv: .* of state 'a' sum to 0\.9, expected 1"),
        (["a,x,0.5", "a,y,0.500002"], InvalidPolicy, "sum to 1.000002, expected 1"),
        ([",x,1"], InvalidLog, "row 1, column 'state': found nothing, expected a value"),
        (["a,,1"], InvalidLog, "row 1, column 'action': found nothing, expected a value"),
        ([], InvalidLog, "has no row"),
    ],
)
def test_a_bad_row_is_named(lines, error, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["state,action,p", *lines, ""]))
    with pytest.raises(error, match=message):
        read_pairs(path, ("state",), ("action",), policy=True)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("stat,action,p", "no column 'state' for the state; did you mean 'stat'"),
        ("state,drug,p", "no column 'action' for the action; the columns are"),
        ("state,action,probabilty", "no column 'probability' for the probability; did you mean 'p"),
        ("state,action,prob,p", "the probability may be column 'prob' or 'p'"),
        ("obs,context,action,p", "the state may be column 'obs' or 'context'"),
        ("", "is empty"),
    ],
)
def test_a_bad_header_is_explained(header, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n" if header else "")
    with pytest.raises(InvalidLog, match=message) as refusal:
        read_pairs(path, ("state",), ("action",), policy=True)
    assert "t.csv" in str(refusal.value)


def test_a_state_of_several_columns_needs_all_of_them():
    frame = {"state": np.array([1]), "action": np.array([1]), "p": np.array([1.0])}
    with pytest.raises(InvalidLog, match="no column 'ward'"):
        read_pairs(frame, ("ward", "age"), ("action",), policy=True)


def test_sums_within_single_precision_are_rescaled():
    found = table_of(("a", "x", 1 / 3 + 3e-7), ("a", "y", 2 / 3))
    assert found.probability.sum() == pytest.approx(1, abs=1e-12)


@settings(max_examples=settings.default.max_examples // 2)
@given(content=st.binary(max_size=100), kind=st.sampled_from([".csv", ".jsonl", ".parquet"]))
def test_any_bytes_are_read_or_refused(content, kind, folder):
    path = folder / f"fuzz{kind}"
    path.write_bytes(content if kind != ".csv" else b"state,action,p\n" + content)
    with pytest.raises(SurestepError, match="fuzz"):
        read_pairs(path, ("state",), ("action",), policy=True)


# ---- logs -------------------------------------------------------------------------------------

STEPS = st.lists(st.tuples(*[st.integers(0, 2)] * 3, st.booleans()), min_size=1, max_size=12)


def log_of(steps):
    rows = [
        {"state": f"s{s}", "action": f"a{a}", "reward": 1.0, "next_state": f"s{n}", "done": over}
        for s, a, n, over in steps
    ]
    return read_log(frame_of(rows, tuple(rows[0]))).counts()


@settings(max_examples=6)
@given(policy=behaviors(), steps=STEPS)
def test_a_log_fits_exactly_if_every_step_is_possible(policy, steps):
    table = reading(policy_rows(policy))
    possible = {
        (int(s), int(a))
        for s, a, p in zip(policy.pairs.state, policy.pairs.action, policy.probability, strict=True)
        if p > 0
    }
    taken = Counter((s, a) for s, a, *_ in steps)
    unknown = sorted(s for s, _ in taken if s >= policy.pairs.num_states)
    wrong = sorted(pair for pair in taken if pair not in possible)
    counts = log_of(steps)
    if unknown:
        with pytest.raises(ShapeMismatch, match=f"the log has the state 's{unknown[0]}'"):
            check_log_fits(table, counts)
    elif wrong:
        s, a = wrong[0]
        words = f"takes action 'a{a}' in state 's{s}', but"
        with pytest.raises(ShapeMismatch, match=words):
            check_log_fits(table, counts)
    else:
        check_log_fits(table, counts)


@settings(max_examples=6)
@given(policy=behaviors(), steps=STEPS)
def test_the_model_of_a_log_has_the_table_and_the_states_without_decisions(policy, steps):
    table = reading(policy_rows(policy))
    listed = zip(policy.pairs.state, policy.pairs.action, policy.probability, strict=True)
    possible = {(int(s), int(a)) for s, a, p in listed if p > 0}
    counts = log_of([step for step in steps if step[:2] in possible] or [(*min(possible), 9, True)])
    model = assemble(counts, table)
    quiet = sorted({label[0] for label in counts.states} - set(policy_states(policy)))
    if "(end)" in counts.to_counts().pairs.state_labels:
        quiet.append("(end)")
    expected = by_label(Policy(table.pairs, table.probability)) | {
        (label, "a" + first(table)): 1 for label in quiet
    }
    assert by_label(model.behavior) == expected
    known = [label for (label,) in model.vocabulary.states]
    assert known == [*policy_states(policy), *quiet]
    assert [known[s] for s in np.flatnonzero(model.quiet)] == quiet
    assert model.counts.times.sum() == counts.rows_read


def policy_states(policy):
    return [f"s{s}" for s in range(policy.pairs.num_states)]


def first(table):
    """The number of the first action that the table has."""
    return table.vocabulary.actions[0][0].removeprefix("a")


def test_refusals_say_what_the_log_does():
    table = table_of(("s0", "a0", 1.0), ("s0", "a1", 0.0))
    with pytest.raises(ShapeMismatch) as refusal:
        check_log_fits(table, log_of([(0, 1, 0, False), (0, 1, 5, False), (0, 2, 0, False)]))
    assert str(refusal.value) == (
        "the log takes action 'a1' in state 's0', but the dict gives it probability 0 there; "
        "expected a row with a probability above 0; 3 of 3 transitions are affected"
    )
    with pytest.raises(ShapeMismatch, match="'a2' in state 's0', but the dict does not lis"):
        check_log_fits(table, log_of([(0, 2, 0, False)]))
    with pytest.raises(ShapeMismatch) as refusal:
        check_log_fits(table, log_of([(7, 0, 0, False)]))
    assert str(refusal.value) == (
        "the log has the state 's7', which the dict does not have: no state has 's7' in column "
        "'state'; known are 's0'"
    )


def test_numbers_of_a_binned_column_have_a_decimal_point(tmp_path):
    file = tmp_path / "policy.csv"
    file.write_text("age;action;probability\n7.5;a;0,25\n7.5;b;0,75\n8.5;a;1\n")
    table = read_pairs(file, ["age"], ["action"], {"age": Binning(edges=(8.0,))}, policy=True)
    assert table.vocabulary.states == (("< 8",), (">= 8",))
    assert table.probability.tolist() == [0.25, 0.75, 1.0]
    file.write_text("age;action;probability\n7.5;a;1\n1,234;a;1\n")
    with pytest.raises(InvalidLog, match=r"row 2, column 'age': found '1,234'.*decimal point"):
        read_pairs(file, ["age"], ["action"], {"age": Binning(edges=(8.0,))}, policy=True)
    file.write_text("name;action;probability\n1,234;a;1\n")  # what is no number stays a label
    assert read_pairs(file, ["name"], ["action"], policy=True).vocabulary.states == (("1,234",),)


def test_a_binned_column_of_the_state_may_be_called_like_the_probability():
    frame = {"p": np.array([3, 3]), "action": np.array([1, 2]), "probability": np.array([0.5, 0.5])}
    table = read_pairs(frame, ["p"], ["action"], {"p": Binning(width=1)}, policy=True)
    assert table.vocabulary.states == (("3 to < 4",),)
    assert table.probability.tolist() == [0.5, 0.5]


LABELS = {"state_labels": ("a", "b"), "action_labels": ("x", "y", "z")}
PAIRS = Pairs.full(2, 3, **LABELS)


@st.composite
def logged_policies(draw):
    """A policy, and the pairs that a log of it happens to show."""
    policy = draw(policies(draw(all_pairs())))
    possible = np.flatnonzero(policy.probability > 0)
    shown = draw(st.lists(st.sampled_from(possible.tolist()), unique=True))
    return policy, np.array(shown, int)


@given(logged=logged_policies())
def test_what_was_seen_is_kept_and_the_rest_is_shared(logged):
    policy, seen = logged
    pairs = policy.pairs
    found, completed, unseen = policy_from_propensities(
        pairs, seen, policy.probability[seen], policy.probability[seen]
    )
    shared = uniform = 0
    for s in range(pairs.num_states):
        run = range(pairs.offsets[s], pairs.offsets[s + 1])
        rest = 1 - sum(policy.probability[k] for k in run if k in seen)
        unknown = [k for k in run if k not in seen]
        uniform += len(unknown) == len(run)
        shared += len(unknown) < len(run) and rest > 1e-6
        for k in run:
            expected = rest / len(unknown) if k in unknown else policy.probability[k]
            assert found.probability[k] == pytest.approx(expected, abs=1e-12)
    assert completed == shared
    assert unseen == uniform
    assert not found.estimated


@given(policy=st.deferred(lambda: all_pairs().flatmap(policies)))
def test_a_log_that_shows_everything_gives_the_policy_itself(policy):
    seen = np.flatnonzero(policy.probability > 0)
    exactly = policy.probability[seen]
    found, *undetermined = policy_from_propensities(
        policy.pairs, seen, exactly * (1 - 1e-10), exactly
    )
    np.testing.assert_allclose(found.probability, policy.probability, atol=1e-12)
    assert undetermined == [0, 0]


def test_a_rest_within_rounding_is_no_probability_of_unseen_actions():
    shown = np.array([0.3, 0.7 - 1e-8])
    found, *undetermined = policy_from_propensities(PAIRS, np.array([0, 1]), shown, shown)
    assert found.probability[2] == 0
    assert found.probability.tolist()[3:] == [1 / 3] * 3
    assert undetermined == [0, 1]


@pytest.mark.parametrize(
    ("seen", "low", "high", "message"),
    [
        ([4], [0.3], [0.4], "of state 'b', action 'y' is between 0.3 and 0.4: the policy that"),
        ([0], [0.5], [0.5 * (1 + 3e-9)], "looks at more than the state columns"),
        ([0, 1], [0.5, 0.6], [0.5, 0.6], "seen in state 'a' sum to 1.1, expected at most 1"),
        ([0, 1, 2], [0.2] * 3, [0.2] * 3, "actions seen in state 'a' sum to 0.6, expected 1;"),
    ],
)
def test_contradictions_are_told(seen, low, high, message):
    with pytest.raises(InvalidLog) as refusal:
        policy_from_propensities(PAIRS, *map(np.array, (seen, low, high)))
    assert message in str(refusal.value)
