"""A later log with what the result does not have: the claim stays right, or is refused."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surestep
from pump_commands import write_lines
from surestep import FiniteMDP, Policy, performance
from surestep.certificates import Asked
from surestep.errors import ShapeMismatch
from surestep.pipeline import certify_result, check_certificates
from surestep.pipeline.certify import SavedPolicy

TERMS = {"discount": 0.5, "n_wedge": 3, "certificates": ["robust"], "worlds": 0}
BOUNDS = {"reward_bounds": (-8.0, 2.0), "value_bounds": (-8.0, 4.0)}
DELTA, LOGS = 0.2, 60
MOST_WRONG = 23  # of 60 at a chance of 0.2: more happen in less than one of a thousand runs


def table(rows, names=("episode", "step", "state", "action", "reward", "terminated")):
    """Rows as a table in memory."""
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return {
        name: np.array(values, object if isinstance(values[0], str) else None)
        for name, values in columns.items()
    }


def first_rows():
    """Where `bold` always pays 2 and `safe` 1, and nobody has met the other states."""
    return [(i, 0, "here", ("safe", "bold")[i % 2], (1.0, 2.0)[i % 2], True) for i in range(41)]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("other")
    surestep.improve(table(first_rows()), **TERMS, **BOUNDS).save(home / "estimated")
    half = {
        "state": np.array(["here"] * 2, object),
        "action": np.array(["safe", "bold"], object),
        "probability": np.array([0.5, 0.5]),
    }
    surestep.improve(table(first_rows()), **TERMS, **BOUNDS, behavior=half).save(home / "known")
    declared = {name: half[name] for name in ("state", "action")}
    given = {**TERMS, **BOUNDS, "possible": declared}
    surestep.improve(table(first_rows()), **given).save(home / "declared")
    return home


# ---- states that only the later log has ---------------------------------------------------------


def later_rows(rng, episodes=30):
    """After `bold`, half of the time comes a trap, where everything costs."""
    rows = []
    for i in range(episodes):
        bold = rng.random() < 0.5
        trapped = bold and rng.random() < 0.5
        rows.append((i, 0, "here", "bold" if bold else "safe", 2.0 if bold else 1.0, not trapped))
        if trapped:
            kick = rng.random() < 0.25
            rows.append((i, 1, "trap", "kick" if kick else "wait", -8.0 if kick else -4.0, True))
    return rows


def true_gain(bold):
    """Of always `bold`, over so often; in the trap nothing changes, and 5 is lost on average."""
    chances, rewards = np.zeros((3, 2, 3)), np.zeros((3, 2, 3))  # here, trap, end
    chances[0, 0, 1:], rewards[0, 0, 1:] = 0.5, 2.0  # bold
    chances[0, 1, 2], rewards[0, 1, 2] = 1.0, 1.0  # safe
    chances[1, :, 2], rewards[1, :, 2] = 1.0, [-8.0, -4.0]  # kick, wait
    mdp = FiniteMDP.from_dense(chances, rewards, 0.5, [1.0, 0.0, 0.0])
    usual = Policy.from_dense(mdp, [[bold, 1 - bold], [0.25, 0.75], [1, 0]])
    new = Policy.from_dense(mdp, [[1, 0], [0.25, 0.75], [1, 0]])
    return performance(mdp, new) - performance(mdp, usual)


@pytest.mark.parametrize("folder", ["estimated", "known"])
def test_what_only_the_later_log_shows_is_in_the_claim(folder, home):
    saved = surestep.load(home / folder).table
    assert saved.probability[:2].tolist() == [1.0, 0.0]
    gain = true_gain(saved.behavior[0])
    assert gain < -0.12
    rows = later_rows(np.random.default_rng(0), 1001)
    kinds = ["robust", "stitched"]
    judged = certify_result(home / folder, table(rows), kinds, delta=0.01)
    assert [claim.lower <= gain for claim in judged.certificates] == [True, True]
    for claim in judged.certificates:
        (said,) = [each for each in claim.assumptions if each.code == "states-beyond-result"]
        assert said.values == {"states": 1}
    check_certificates(home / folder, table(rows), judged.certificates)
    # Were episodes taken to end where the result knows nothing, a gain would be claimed.
    cut = [(*row[:5], True) for row in rows if row[2] == "here"]
    wrong = certify_result(home / folder, table(cut), kinds, delta=0.01)
    assert wrong.certificates[1].lower > 0 > gain


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["estimated", "known"])
def test_such_claims_are_wrong_no_more_often_than_they_say(folder, home):
    gain = true_gain(surestep.load(home / folder).table.behavior[0])
    wrong = {"robust": 0, "stitched": 0}
    for seed in range(LOGS):
        rows = later_rows(np.random.default_rng(seed))
        judged = certify_result(home / folder, table(rows), [*wrong], delta=DELTA)
        for claim in judged.certificates:
            wrong[claim.kind] += claim.lower > gain + 1e-9
    assert max(wrong.values()) <= MOST_WRONG, wrong


def problem_of(folder, rows, kinds=(), **how):
    return SavedPolicy.of(
        folder, table(rows, **how), None, [Asked.of(kind) for kind in kinds], None
    )


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5)
def test_all_that_was_done_in_a_new_state_is_one_pair(seed, home):
    """The estimated gain is that of the model with every action, where π_b is what was done."""
    rows = later_rows(np.random.default_rng(seed), 40)
    made = problem_of(home / "known", rows)
    model, pairs = made.problem.estimate(), made.problem.counts.pairs
    found = performance(model, made.policy) - performance(model, made.problem.behavior)
    bold = [row for row in rows if row[3] == "bold"]
    trapped = [row[4] for row in rows if row[2] == "trap"]
    share = Fraction(len(trapped), len(bold))
    earned = Fraction(0) if not trapped else Fraction(int(sum(trapped)), len(trapped))
    best = 2 + Fraction(1, 2) * share * earned
    assert found == pytest.approx(float(best - (best + 1) / 2), abs=1e-12)
    if trapped:
        place = pairs.state_labels.index("trap")
        assert np.diff(pairs.offsets)[place] == 1
        assert made.problem.counts.visits[pairs.offsets[place]] == len(trapped)
    whole = problem_of(home / "known", rows, ["stitched"]).problem
    assert whole.counts == made.problem.counts
    assert whole.log.counts() == made.problem.counts


def test_decisions_where_the_result_has_none_are_such_states_too(tmp_path):
    # In the first log episodes end in `late`; in the second one somebody decides there.
    names = ("episode", "step", "state", "action", "reward", "next_state", "terminated")
    first = [(i, 0, "here", "ab"[i % 2], float(i % 2), "late", True) for i in range(40)]
    surestep.improve(table(first, names), **TERMS).save(tmp_path / "out")
    later = [(i, 0, "here", "ab"[i % 2], float(i % 2), "late", False) for i in range(30)]
    later += [(i, 1, "late", "abc"[i % 3], -1.0, "gone", True) for i in range(30)]
    for kinds in ((), ("stitched",)):
        problem = problem_of(tmp_path / "out", [*sorted(later)], kinds, names=names).problem
        pairs = problem.counts.pairs
        late = pairs.offsets[pairs.state_labels.index("late")]
        assert problem.counts.visits[late] == 30
        assert not problem.counts.terminal[pairs.state_labels.index("late")]
        assert problem.counts.terminal[pairs.state_labels.index("gone")]
        assert [each.code for each in problem.premises].count("states-beyond-result") == 1


# ---- actions that only the later log has --------------------------------------------------------


def with_an_action(name):
    """A log in which something else is done in a state of the result, once."""
    return [
        (0, 0, "here", name, 0.0, True),
        *((i, *row[1:]) for i, row in enumerate(first_rows(), 1)),
    ]


def test_an_action_that_an_estimated_policy_never_took_is_taken_by_nobody(home):
    kinds = ["robust", "posterior:draws=50"]
    judged = certify_result(home / "estimated", table(with_an_action("odd")), kinds)
    for claim in judged.certificates:
        assert "actions-beyond-result" in [each.code for each in claim.assumptions]
        assert "behavior-estimated" in [each.code for each in claim.assumptions]
    made = problem_of(home / "estimated", with_an_action("odd"))
    odd = made.problem.counts.pairs.action_labels.index("odd")
    pair = np.flatnonzero(made.problem.counts.pairs.action == odd)
    assert made.problem.counts.visits[pair].tolist() == [1]
    assert made.policy.probability[pair].tolist() == [0.0]
    assert made.problem.behavior.probability[pair].tolist() == [0.0]
    model = made.problem.estimate()
    assert performance(model, made.policy) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("known", "which the behavior policy of the result never takes there"),
        ("declared", "which was declared not to be possible there"),
    ],
)
def test_an_action_that_a_known_policy_never_takes_is_refused_with_its_row(
    folder, why, home, tmp_path
):
    lines = ["episode,step,state,action,reward,terminated"]
    lines += [",".join(map(str, row)).lower() for row in with_an_action("odd")]
    file = write_lines(tmp_path / "later.csv", lines)
    with pytest.raises(ShapeMismatch, match=why) as caught:
        certify_result(home / folder, file, ["robust"])
    assert "later.csv, row 1, column 'action': the log takes action 'odd' in" in str(caught.value)


# ---- bins and propensities -----------------------------------------------------------------------


def test_bins_of_a_later_log_are_those_of_the_result(tmp_path):
    def log(ages, size):
        age = np.resize(np.array(ages, float), size)
        action = np.array(["ab"[i // len(ages) % 2] for i in range(size)], object)
        earned = np.where(action == "b", 1.0, 0.0)
        return {"age": age, "action": action, "reward": earned, "next_age": np.roll(age, 1)}

    columns = {"state": "age"}
    source = surestep.read_log(log([1, 2, 3, 4], 160), columns=columns, bins=["age:quantiles=4"])
    surestep.improve(source, **TERMS).save(tmp_path / "out")
    later = log([1.5, 2.5, 3.5, 99.0], 80)  # whose own quantiles are elsewhere
    made = SavedPolicy.of(tmp_path / "out", later, None, [], None)
    assert made.problem.counts.pairs.num_states == 4
    assert made.problem.counts.visits.tolist() == [10] * 8
    assert "states-beyond-result" not in [each.code for each in made.problem.premises]


def test_propensities_are_compared_where_the_result_decides(tmp_path):
    names = ("episode", "step", "state", "action", "reward", "terminated", "behavior_prob")
    first = [(*row, 0.5) for row in first_rows()]
    surestep.improve(table(first, names), **TERMS, **BOUNDS).save(tmp_path / "out")
    rows = later_rows(np.random.default_rng(3))
    chance = {"safe": 0.5, "bold": 0.5, "kick": 0.25, "wait": 0.75}
    later = [(*row, chance[row[3]]) for row in rows]
    made = problem_of(tmp_path / "out", later, names=names)
    assert "states-beyond-result" in [each.code for each in made.problem.premises]
    other = [(*row[:6], 0.7 if row[3] == "bold" else row[6]) for row in later]
    with pytest.raises(ShapeMismatch, match=r"'bold'.*with probability 0\.7, but the behavior"):
        problem_of(tmp_path / "out", other, names=names)
