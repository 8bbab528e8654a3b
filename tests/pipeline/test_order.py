"""The order of decisions, on stacks, in splits and for bins; and that of bins in every file."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import surestep
from support.problems import logged_problem
from surestep import Policy, certify, read_log
from surestep.certificates import Stitched
from surestep.certificates.episodes import parts_of_log, training_for
from surestep.certificates.stacks import stacks_of
from surestep.errors import InvalidLog, InvalidParameter
from surestep.offpolicy import split_episodes
from surestep.pipeline import verify_result
from surestep.pipeline.evidence import gather
from surestep.pipeline.terms import Terms, usual_train_share
from surestep.results.policy_files import policy_parquet_rows

CONTEXTS, ACTIONS, EPISODES = 30, 8, 4000
BINS = {"columns": {"state": "age"}, "bins": {"age": {"quantiles": 3}}}


def telling(seed):
    """Concurrent episodes: all first decisions, of equal actions, and then all second ones.

    The second decision of an episode, which does nothing, tells which action had the better luck in
    its context in the last seven tenths of the episodes. Rows lie in the order of the decisions.
    """
    rng = np.random.default_rng(seed)
    context, action = rng.integers(CONTEXTS, size=EPISODES), rng.integers(ACTIONS, size=EPISODES)
    paid = rng.random(EPISODES) < 0.5
    later = np.arange(EPISODES) >= round(0.3 * EPISODES)
    key, size = (ACTIONS * context + action)[later], CONTEXTS * ACTIONS
    mean = np.bincount(key, paid[later], size) / np.maximum(np.bincount(key, minlength=size), 1)
    lucky = mean.reshape(CONTEXTS, ACTIONS).argmax(axis=1)
    names = [f"c{c:02}" for c in range(CONTEXTS)] + [f"t{c:02}" for c in range(CONTEXTS)]
    return {
        "episode": np.tile(np.arange(EPISODES), 2),
        "step": np.repeat([0, 1], EPISODES),
        "state": np.array(names, object)[np.concatenate([context, context + CONTEXTS])],
        "action": np.concatenate([action, lucky[context]]),
        "reward": np.concatenate([paid, np.zeros(EPISODES)]),
        "terminated": np.repeat([False, True], EPISODES),
    }


def told(problem, certifier):
    """The policy that does in every context what the training part tells of it."""
    log = training_for(problem, certifier).log
    pairs = log.pairs
    number = {label: s for s, label in enumerate(pairs.state_labels)}
    best = np.zeros(pairs.num_states, int)
    for c in range(CONTEXTS):
        said = log.action[log.state == number[f"t{c:02}"]]
        best[number[f"c{c:02}"]] = said[0] if said.size else 0
    return Policy.deterministic(pairs, best)


def problem_of(log):
    """The problem of a log of episodes of which the first step counts, which earns 0 or 1."""
    return logged_problem(log, 0.0, (0.0, 1.0))


@pytest.mark.thorough
@pytest.mark.parametrize("number", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_a_logger_who_learns_from_concurrent_episodes_is_read_in_the_order_of_decisions(number):
    """At δ = 10 %, more failures than are allowed come once in 100 tests; of 200 logs, a claim that
    fails in 20 % of them has more with 95 %.
    """
    wrong, by_episode = 0, 0
    for seed in range(number):
        log, certifier = read_log(telling(seed)).load(), Stitched(seed=seed, series=96)
        assert log.order is not None
        problem = problem_of(log)
        wrong += certify(problem, told(problem, certifier), certifier).lower > 0
        if seed < 8:  # episode by episode, the first part tells what came in the second
            problem = problem_of(replace(log, order=None))
            by_episode += certify(problem, told(problem, certifier), certifier).lower > 0
    assert by_episode >= 3
    assert wrong <= scipy.stats.binom.ppf(0.99, number, 0.1)


@st.composite
def interleaved(draw, ends=("end", "clock", "unknown")):
    """Rows of some episodes, mixed, each with a state of its own: its place in the table."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=2, max_size=6))
    left = [e for e, many in enumerate(lengths) for _ in range(many)]
    left = draw(st.permutations(left)) if draw(st.booleans()) else left
    how = [draw(st.sampled_from(ends)) for _ in lengths]
    step = [left[:i].count(e) for i, e in enumerate(left)]
    last = [t == lengths[e] - 1 for e, t in zip(left, step, strict=True)]
    return {
        "episode": np.array(left),
        "step": np.array(step),
        "state": np.array([f"s{i:02}" for i in range(len(left))], object),
        "action": np.zeros(len(left), int),
        "reward": np.arange(len(left), dtype=float),
        "terminated": np.array([a and how[e] == "end" for e, a in zip(left, last, strict=True)]),
        "truncated": np.array([a and how[e] == "clock" for e, a in zip(left, last, strict=True)]),
    }


def loaded(table):
    """The log of a table; None where no row says where it led."""
    try:
        return read_log(table).load()
    except InvalidLog:
        return None


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 2)
@given(interleaved(), st.floats(0, 1))
def test_a_split_in_time_leaves_every_row_on_its_side(table, share):
    log = loaded(table)
    if log is None:
        return
    place = log.reward.astype(int)  # in the table
    assert sorted(place) == sorted(set(place))
    in_order = np.argsort(log.order) if log.order is not None else np.arange(log.num_steps)
    assert (np.diff(place[in_order]) > 0).all()
    first, second = parts_of_log(log, share, None)
    sides = [set() if part is None else set(part.reward) for part in (first, second)]
    assert sides[0] | sides[1] == set(log.reward)
    if first is None or second is None:
        return
    assert max(sides[0]) < min(sides[1])
    assert first.continued is None
    if log.num_episodes > 1:
        episodes = np.repeat(np.arange(log.num_episodes), np.diff(log.episode_offsets))
        owner = dict(zip(place, episodes, strict=True))
        rows = [[owner[int(row)] for row in side] for side in sides]
        for part, mine, others in ((first, *rows), (second, *rows[::-1])):
            whole = part.whole()
            left = set() if whole is None else {owner[int(row)] for row in whole.reward}
            assert left == {*mine} - {*others}
        assert first.starts.size + second.starts.size == log.num_episodes
        assert first.num_episodes == round(share * log.num_episodes)
        assert second.starts.size == second.counts().starts.sum()
    contiguous = (np.diff(table["episode"]) != 0).sum() == np.unique(table["episode"]).size - 1
    if contiguous and log.num_episodes > 1:
        assert log.order is None
        assert (first, second) == split_episodes(log, share)


def test_stacks_have_rows_in_the_order_of_decisions_and_no_start_that_is_none():
    table = {
        "episode": ["a", "b", "a", "c", "b", "a", "c"],
        "step": [0, 0, 1, 0, 1, 2, 1],
        "state": ["s"] * 7,
        "action": ["x"] * 7,
        "reward": [0, 1, 2, 3, 4, 5, 6],
        "terminated": [False, False, False, False, True, True, True],
    }
    log = read_log(table).load()
    assert log.reward.tolist() == [0, 2, 5, 1, 4, 3, 6]  # episode by episode
    assert log.order.tolist() == [0, 2, 5, 1, 4, 3, 6]
    assert stacks_of(log).reward.tolist() == [0, 1, 2, 3, 4, 5, 6]
    first, second = parts_of_log(log, 2 / 3, None)
    assert stacks_of(first).reward.tolist() == [0, 1, 2]
    assert (first.num_episodes, first.truncated.sum()) == (2, 2)
    assert stacks_of(second).reward.tolist() == [3, 4, 5, 6]
    assert second.continued.tolist() == [True, True, False]
    assert stacks_of(second).starts.size == second.starts.size == 1
    # A time column goes before the order of the file.
    times = [f"2025-01-0{day}" for day in (7, 6, 8, 1, 9, 9, 2)]
    later = read_log(table | {"when": times}, columns={"time": "when"}).load()
    assert stacks_of(later).reward.tolist() == [3, 6, 1, 0, 2, 4, 5]
    assert replace(second, reward=second.reward + 1).starts.size == 1
    for wrong in ([0, 2, 5, 1, 4, 3, 3], [2, 3, 5, 1, 4, 6, 7]):
        with pytest.raises(InvalidLog, match="expected steps, and episodes, in the order"):
            replace(log, order=wrong)


@pytest.mark.one_quick
@pytest.mark.parametrize("kind", ["trajectory", "trajectory:interval=bernstein"])
def test_episodes_that_the_split_has_cut_are_no_truncated_ones(kind):
    """Every episode has ended; those that are under way at the split are left out on both sides."""
    rng = np.random.default_rng(0)
    number = np.arange(600)
    at = np.argsort(number // 2 + (number % 2) * (0.5 + rng.integers(20, size=600)))
    action = rng.integers(2, size=600)
    paid = (rng.random(600) < 0.2 + 0.6 * action).astype(float)
    rows = (number // 2, number % 2, number % 2, action, paid, number % 2 == 1)
    names = ("episode", "step", "state", "action", "reward", "terminated")
    table = {name: values[at] for name, values in zip(names, rows, strict=True)}
    terms = {"discount": 0.9, "worlds": 0, "running": (0, 1), "ending": (0, 1)}
    result = surestep.improve(read_log(table), behavior="uniform", certificates=[kind], **terms)
    figures = result.certificate.figures
    chosen = round(usual_train_share(300) * 300)
    assert result.table.changed.any() or "bernstein" in kind  # which takes more episodes
    assert figures["episodes"] == 300 - chosen
    assert 2 <= figures["training_episodes"] < chosen
    assert figures["truncated_episodes"] == 0
    hcpi = surestep.improve(read_log(table), "hcpi", behavior="uniform", **terms)
    assert hcpi.table.changed.any()


@pytest.mark.thorough
def test_the_order_of_a_file_is_named_among_the_assumptions():
    def codes(table, **columns):
        made = surestep.improve(
            read_log(table, columns=columns), discount=0.9, worlds=0, certificates=["stitched"]
        )
        return [said.code for said in made.certificate.assumptions]

    table = {
        name: values[np.arange(2 * EPISODES) % EPISODES < 200]
        for name, values in telling(0).items()
    }
    assert "file-order-is-decision-order" in codes(table)
    when = np.array([f"2025-01-01 {i // 60:02}:{i % 60:02}" for i in range(400)], object)
    assert "file-order-is-decision-order" not in codes(table | {"when": when}, time="when")
    order = np.lexsort((table["step"], table["episode"]))
    in_order = {name: values[order] for name, values in table.items()}
    assert "file-order-is-decision-order" not in codes(in_order)


def edges(table, share, **reading):
    """The edges of ages that improving a table with such a share would have."""
    terms = Terms.of(discount=0.9, train_share=share)
    evidence = gather(read_log(table, **reading), terms)
    return evidence.counts.binnings["age"].edges


@settings(max_examples=settings.default.max_examples // 5)
@given(interleaved(), st.none() | st.floats(0.2, 0.8), st.integers(0, 2**20))
def test_rows_that_judge_do_not_move_the_edges_of_bins(table, share, seed):
    log = loaded(table)
    if log is None:
        return
    episodes = read_log(table).counts().episodes.recorded
    first, second = parts_of_log(log, share or usual_train_share(episodes), None)
    if first is None or second is None:
        return
    rng = np.random.default_rng(seed)
    ages = rng.integers(20, 90, len(table["step"])).astype(float)
    aged = {name: values for name, values in table.items() if name != "state"} | {"age": ages}
    chosen = first.reward.astype(int)
    if np.unique(ages[chosen]).size < 2:
        return
    found = edges(aged, share, **BINS)
    moved = ages.copy()
    moved[second.reward.astype(int)] *= 1000
    assert edges(aged | {"age": moved}, share, **BINS) == found


def visits(number=80):
    """Episodes of two steps; those after the part that chooses are of much older people."""
    rng = np.random.default_rng(3)
    chosen = round(usual_train_share(number) * number)
    age = np.where(np.arange(2 * number) < 2 * chosen, 0.0, 1000.0)
    age += rng.integers(1, 90, 2 * number)
    action = rng.integers(2, size=2 * number)
    return {
        "episode": np.arange(2 * number) // 2,
        "step": np.arange(2 * number) % 2,
        "age": age,
        "action": action,
        "reward": (rng.random(2 * number) < 0.3 + 0.4 * action).astype(float),
        "terminated": np.arange(2 * number) % 2 == 1,
    }


@pytest.mark.one_quick
@pytest.mark.parametrize("number", [80, 300])
def test_a_result_with_such_bins_is_made_again(number, tmp_path):
    log, asked = visits(number), {"discount": 0.9, "worlds": 0, "running": (0, 1), "ending": (0, 1)}
    made = surestep.improve(read_log(log, **BINS), certificates=["stitched"], **asked)
    assert max(made.table.vocabulary.binnings["age"].edges) < 100
    made.save(tmp_path / "made")
    assert verify_result(tmp_path / "made", log).level == "same bytes"
    # All of it chooses where nothing is held out.
    whole = surestep.improve(read_log(log, **BINS), certificates=["robust"], **asked)
    assert max(whole.table.vocabulary.binnings["age"].edges) > 1000


def test_a_part_drawn_at_random_says_no_edges():
    with pytest.raises(InvalidParameter, match="the bins of 'age' follow from the part of the log"):
        surestep.improve(read_log(visits(), **BINS), discount=0.9, worlds=0, logger="fixed")


@pytest.mark.parametrize("name", ["x", "place", "kept", "begun", "Decided_at"])
def test_the_first_rows_of_one_episode_teach_whatever_columns_are_called(name, tmp_path):
    """Steps of a text file are text, of which "10" comes before "2"; none of the rest may teach."""
    log = tmp_path / "log.csv"
    rows = [f"e,{i},{1000 - i},{'ab'[i % 2]},{i},{i == 299}\n" for i in range(300)]
    log.write_text(f"episode,step,{name},action,reward,terminated\n{''.join(rows)}")
    bins = {"cond": {"tree": 2, "columns": [name]}}
    source = read_log(log, bins=bins, columns={"state": "cond"})
    taught = replace(source, edges_from=lambda episodes: 0.3).measured([name])
    assert taught["surestep reward"].tolist() == [*range(90)]
    assert taught[name].tolist() == [1000 - i for i in range(90)]


AGES, DOSES = np.array([1.0, 5.0, 15.0, 150.0]), np.array([0.5, 3.0, 20.0])
BINNED = {"age": {"edges": [2, 10, 100]}, "dose": {"width": 2}}
IN_ORDER = ["< 2", "2 to < 10", "10 to < 100", ">= 100"]
DOSES_IN_ORDER = ["0 to < 2", "2 to < 4", "20 to < 22"]


def in_no_order(seed=0, times=40):
    """Ages and doses at random, in no order."""
    rng = np.random.default_rng(seed)
    size = times * AGES.size * DOSES.size
    age, dose = rng.choice(AGES, size), rng.choice(DOSES, size)
    return {
        "age": age,
        "dose": dose,
        "reward": (dose < 1) * 1.0,
        "next_age": rng.choice(AGES, size),
    }


def test_rows_of_every_file_are_in_the_order_of_the_bins(tmp_path):
    log = surestep.read_log(in_no_order(), columns={"state": "age", "action": "dose"}, bins=BINNED)
    improve = {"discount": 0.9, "n_wedge": 3, "certificates": ["a-priori"], "worlds": 0}
    result = surestep.improve(log, **improve)
    result.save(tmp_path / "out")
    with open(tmp_path / "out" / "policy.csv", encoding="utf-8", newline="") as file:
        written = [(row["age"], row["dose"]) for row in csv.DictReader(file)]
    assert written == [(age, dose) for age in IN_ORDER for dose in DOSES_IN_ORDER]
    read = [
        (*row.values(),)[:2] for row in policy_parquet_rows(tmp_path / "out" / "policy.parquet")
    ]
    assert read == written
    loaded = surestep.load(tmp_path / "out")
    assert loaded.table == result.table
    assert loaded.act(1e9, np.random.default_rng(0)) == "0 to < 2"
    # A table of the policy is put into the same order, whatever its own is.
    table = {
        "age": np.array([age for age, _ in reversed(written)], object),
        "dose": np.array([dose for _, dose in reversed(written)], object),
        "probability": result.table.behavior[result.table.decided][::-1].copy(),
    }
    given = surestep.improve(log, behavior=table, **improve)
    assert given.table.vocabulary == result.table.vocabulary
    assert verify_result(tmp_path / "out", in_no_order()).level == "same bytes"
