"""From a table to a result: the same as counting and improving by hand, whatever the names."""

import dataclasses
import shlex
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import surestep
from support.labelled_worlds import COLUMNS, DERIVED, ENDING, NAMES, NEXT, WORLDS, place_of, world
from support.log_tables import frame_of, table_of, write_table
from surestep import Counts, Policy, Problem, certify, evaluate, load, performance, read_log
from surestep.algorithms import ALGORITHMS, SPIBB
from surestep.certificates import APriori
from surestep.certificates.registry import NoClaim
from surestep.cli.main import main
from surestep.errors import CertificateRefused, InvalidLog, InvalidParameter, ShapeMismatch
from surestep.io import read_counts, write_counts
from surestep.io.labels.vocabulary import Vocabulary
from surestep.model import Statement
from surestep.model.numbering import by_appearance
from surestep.pipeline.evidence import gather
from surestep.pipeline.improve import check_share, draft
from surestep.pipeline.terms import Terms

DISCOUNTS = st.sampled_from([0.3, 0.9])
N_WEDGES = st.integers(1, 12)
RULES = st.sampled_from(["terminal", "pessimistic"])
BOUNDS = (-40.0, 40.0)
WITHOUT_Y = {"place": [*"abb"], "age": [1, 1, 9], "action": [*"xxx"], "probability": [1] * 3}


def improve(source, *algorithm, **terms):
    """`surestep.improve` without a stress test, which takes its time."""
    return surestep.improve(source, *algorithm, **({"worlds": 0} | terms))


def source_of(rows, columns=(*NAMES, "behavior_prob"), **options):
    return read_log(frame_of(rows, columns), columns=COLUMNS, **options)


def test_a_table_in_memory_or_a_file_is_improved_with_its_columns(tmp_path):
    rows = world(1).rows
    terms = {"discount": 0.9, "n_wedge": 5, "certificates": ["robust"]}
    frame, file = frame_of(rows, NAMES), write_table(tmp_path / "log.csv", rows, NAMES)
    for source in (frame, file):
        log = read_log(source, columns=COLUMNS)
        assert improve(source, columns=COLUMNS, **terms).files() == improve(log, **terms).files()
        for known in (log, log.counts()):
            with pytest.raises(InvalidParameter, match="columns is given beside"):
                improve(known, columns=COLUMNS, **terms)


def without_propensities(rows, **options):
    return source_of(rows, NAMES, **options)


def counted_by_hand(rows, end, states, actions, enabled):
    """Dense counts of the rows over these states, of which the last is the `end`."""
    place = {label: i for i, label in enumerate(states)}
    times = np.zeros((len(states), len(actions), len(states)), int)
    sums, starts = np.zeros(times.shape), np.zeros(len(states), int)
    for row in rows:
        here = place[row["place"], row["level"]]
        cell = here, actions.index(row["move"]), place[row["next_place"], row["next_level"]]
        times[cell] += 1
        sums[cell] += row["reward"]
        starts[here] += row["step"] == 0
    return Counts.from_dense(
        times,
        reward_sums=sums,
        starts=starts,
        enabled=enabled,
        terminal=np.arange(len(states)) == place[end],
    )


def observed_by_hand(each):
    """Counts over all that the log shows: every action in every state, the end with one."""
    end = place_of(each.mdp.num_states - 1)
    seen = {(row["place"], row["level"]) for row in each.rows}
    seen |= {tuple(row[name] for name in NEXT) for row in each.rows}
    states = [*sorted(seen - {end}), end]
    actions = sorted({row["move"] for row in each.rows})
    enabled = np.ones((len(states), len(actions)), bool)
    enabled[-1, 1:] = False
    return counted_by_hand(each.rows, end, states, actions, enabled), states, actions


def claim_by_hand(problem, policy, n_wedge):
    try:
        return certify(problem, policy, APriori(bound="spibb", delta=0.1, n_wedge=n_wedge))
    except CertificateRefused as refusal:
        return certify(problem, policy, NoClaim(refusal=str(refusal), code=refusal.code))


def improved_as_by_hand(
    source, counts, policy, n_wedge, discount=0.9, unseen="pessimistic", **more
):
    """A result that is what SPIBB and the certifier make of the problem, and that problem."""
    terms = {
        "discount": discount,
        "returns": BOUNDS,
        "unseen": unseen,
        "certificates": ["a-priori"],
    }
    result = improve(source, n_wedge=n_wedge, **terms, **more)
    problem = Problem(
        counts=counts, behavior=policy, discount=discount, value_bounds=BOUNDS, unseen=unseen
    )
    expected = SPIBB(n_wedge=n_wedge).improve(problem)
    table, mdp = result.table, problem.estimate()
    np.testing.assert_array_equal(table.visits, problem.counts.visits)
    np.testing.assert_array_equal(table.trusted, problem.counts.visits > n_wedge)
    np.testing.assert_allclose(table.behavior, problem.behavior.probability, atol=1e-12)
    np.testing.assert_allclose(table.probability, expected.policy.probability, atol=1e-9)
    value = evaluate(mdp, expected.policy)
    usual = np.bincount(table.pairs.state, table.behavior * table.q, table.pairs.num_states)
    ours = np.bincount(table.pairs.state, table.probability * table.q, table.pairs.num_states)
    np.testing.assert_allclose(ours, value, atol=1e-8)
    np.testing.assert_allclose(table.advantage, table.q - usual[table.pairs.state], atol=1e-9)
    claim = claim_by_hand(problem, expected.policy, n_wedge)
    assert result.certificate.kind == claim.kind
    np.testing.assert_allclose(result.certificate.lower, claim.lower, atol=1e-7)
    assert result.certificate.assumptions[: len(claim.assumptions)] == claim.assumptions
    estimates = result.record.estimates
    assert estimates["behavior"] == pytest.approx(performance(mdp, problem.behavior), abs=1e-8)
    assert estimates["policy"] == pytest.approx(performance(mdp, expected.policy), abs=1e-8)
    return result, problem


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 5)
@given(each=ENDING, discount=DISCOUNTS, n_wedge=N_WEDGES, unseen=RULES, rng=st.randoms())
def test_with_a_behavior_table_states_and_actions_are_its_rows(
    each, discount, n_wedge, unseen, rng
):
    rows, table = each.rows, each.table
    rng.shuffle(rows)
    rng.shuffle(table)
    terms = (n_wedge, discount, unseen)
    result, problem = improved_as_by_hand(
        *(source_of(rows), each.log.counts(), each.behavior, *terms),
        behavior=frame_of(table, tuple(table[0])),
    )
    assert result.record.parameters.states == "behavior table"
    # The world may count actions that no state has, and no table names.
    policy = Policy(problem.counts.pairs, result.policy.probability)
    by_hand = claim_by_hand(problem, policy, n_wedge)
    low, high = BOUNDS
    declared = Statement("returns-bounded-from-any-step", {"low": low, "high": high})
    # Nothing more is taken for granted.
    assert result.certificate.assumptions == (*by_hand.assumptions, declared)
    states = [place_of(s) for s in range(each.mdp.num_states)]
    assert list(result.table.vocabulary.states) == states
    assert result.table.quiet.tolist() == [s == len(states) - 1 for s in range(len(states))]


@settings(max_examples=settings.default.max_examples // 5)
@given(each=ENDING, discount=DISCOUNTS, n_wedge=N_WEDGES, unseen=RULES)
def test_without_a_table_the_behavior_is_what_was_done(each, discount, n_wedge, unseen):
    counts, states, actions = observed_by_hand(each)
    pairs = counts.pairs
    total = np.bincount(pairs.state, counts.visits, pairs.num_states)[pairs.state]
    share = 1 / np.bincount(pairs.state, minlength=pairs.num_states)[pairs.state]
    behavior = np.where(total > 0, counts.visits / np.maximum(total, 1), share)
    policy, source = Policy(pairs, behavior, estimated=True), without_propensities(each.rows)
    result, _ = improved_as_by_hand(source, counts, policy, n_wedge, discount, unseen)
    assert list(result.table.vocabulary.states) == states
    assert list(result.table.vocabulary.actions) == [(action,) for action in actions]
    for what in ("states", "actions"):
        only = Statement("nothing-beyond-observed", {"what": what})
        assert only in result.certificate.assumptions
    assert Statement("behavior-estimated") in result.certificate.assumptions
    assert result.record.defaults[0] == "behavior"
    assert "estimated" in result.report


@settings(max_examples=settings.default.max_examples // 5)
@given(each=ENDING, n_wedge=N_WEDGES)
def test_propensities_are_the_behavior_where_the_log_has_them(each, n_wedge):
    counts, states, actions = observed_by_hand(each)
    known = {}
    for row in each.rows:
        place = states.index((row["place"], row["level"])), actions.index(row["move"])
        known[place] = row["behavior_prob"]
    pairs = counts.pairs
    behavior = np.array([known.get(k, np.nan) for k in zip(pairs.state, pairs.action, strict=True)])
    lost = False  # probability of actions that are nowhere in the log
    for s in range(pairs.num_states):  # what is left goes to what was never seen, evenly
        run = slice(pairs.offsets[s], pairs.offsets[s + 1])
        unknown = np.isnan(behavior[run])
        rest = (1 - np.nansum(behavior[run])) / max(1, unknown.sum())
        behavior[run] = np.where(unknown, max(0.0, rest), behavior[run])
        lost |= rest > 1e-6 and not unknown.any()
    if lost:
        with pytest.raises(InvalidLog, match="if there are more actions, list them"):
            improve(source_of(each.rows), discount=0.9, n_wedge=n_wedge)
        return
    policy, source = Policy(pairs, behavior), source_of(each.rows)
    result, _ = improved_as_by_hand(source, counts, policy, n_wedge)
    assert result.record.parameters.behavior == "propensities"


@settings(max_examples=settings.default.max_examples // 5)
@given(each=WORLDS, n_wedge=N_WEDGES, discount=DISCOUNTS)
def test_contributions_add_up_to_the_estimated_gain(each, n_wedge, discount):
    terms = Terms.of(discount=discount, n_wedge=n_wedge)
    made = draft(gather(without_propensities(each.rows), terms))
    table, changes = made.findings.table, made.findings.changes
    before, after = (made.findings.record.estimates[name] for name in ("behavior", "policy"))
    assert sum(each.contribution for each in changes) == pytest.approx(after - before, abs=1e-8)
    assert [each.state for each in changes if not table.changed[each.state]] == []
    sizes = [abs(each.contribution) for each in changes]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 5)
@given(each=WORLDS, discount=DISCOUNTS)
def test_ranges_are_those_of_the_rewards_observed(each, discount):
    terms = {"certificates": ["robust"], "worlds": 0}  # one episode cannot be split
    result = improve(without_propensities(each.rows), discount=discount, **terms)
    over = [row.get("terminated") in (True, "true", 1) for row in each.rows]
    for name, ends in (("running", False), ("ending", True)):
        rewards = [row["reward"] for row, end in zip(each.rows, over, strict=True) if end == ends]
        expected = (min(rewards, default=0.0), max(rewards, default=0.0))
        assert getattr(result.record.parameters, name) == expected
    assert "rewards-within-seen" in {said.code for said in result.certificate.assumptions}
    assert "running" in result.record.defaults
    if any(result.record.parameters.running):
        with pytest.raises(InvalidParameter, match=r"discount is 1.*returns=\(low, high\)"):
            improve(without_propensities(each.rows), discount=1, **terms)


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 5)
@given(each=WORLDS, kind=st.sampled_from([".csv", ".parquet", ".jsonl"]))
def test_counts_in_place_of_the_log_give_the_same(each, kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp("counts")
    source = read_log(write_table(folder / f"log{kind}", each.rows, NAMES), columns=COLUMNS)
    write_counts(source.counts(), folder / "counts.parquet")
    terms = {"discount": 0.9, "n_wedge": 3, "certificates": ["robust", "a-priori"]}
    from_log = improve(source, **terms)
    from_counts = improve(read_counts(folder / "counts.parquet"), **terms)
    # States are numbered as they come in a log, and by label in counts: rounding differs.
    ours, theirs = from_counts.table, from_log.table
    assert ours.vocabulary == theirs.vocabulary
    for name in ("visits", "trusted"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    for name in ("probability", "behavior", "q", "advantage"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-9)
    claim, same = from_counts.certificate, from_log.certificate
    assert claim.lower == pytest.approx(same.lower, abs=1e-9)
    assert (claim.kind, claim.assumptions, claim.parameters) == (
        *(same.kind, same.assumptions, same.parameters),
    )
    assert from_counts.record.counts_sha256 == from_log.record.counts_sha256


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 5)
@given(each=WORLDS, data=st.data())
def test_bins_are_what_numpy_would_make_of_the_numbers(each, data):
    assume(len(each.rows) > 1)
    edges = sorted(data.draw(st.sets(st.integers(-3, 3), min_size=1, max_size=3)))
    rows = [
        row | {"place": data.draw(st.floats(-5, 5)), "step": i} for i, row in enumerate(each.rows)
    ]
    rows = [row | {"episode": 0, "terminated": False, "truncated": False} for row in rows]
    shown = [f"< {edges[0]}", *(f"{a} to < {b}" for a, b in pairwise(edges))]
    shown.append(f">= {edges[-1]}")
    binned = [row | {"place": shown[int(np.digitize(row["place"], edges))]} for row in rows]
    rule = {"place": {"edges": edges}}
    raw = improve(source_of(rows, DERIVED, bins=rule), discount=0.9, n_wedge=1)
    by_hand = improve(source_of(binned, DERIVED), discount=0.9, n_wedge=1)
    # Bins come by their numbers, labels by their letters.
    ours, theirs = raw.table.vocabulary.states, by_hand.table.vocabulary.states
    order = [ours.index(label) for label in theirs]
    assert sorted(order) == list(range(len(ours)))
    first, offsets = raw.table, raw.table.pairs.offsets
    pairs = np.concatenate([np.arange(offsets[s], offsets[s + 1]) for s in order])
    for name in ("probability", "behavior", "visits"):
        np.testing.assert_array_equal(getattr(first, name)[pairs], getattr(by_hand.table, name))
    for name in ("q", "advantage"):
        np.testing.assert_allclose(
            getattr(first, name)[pairs], getattr(by_hand.table, name), rtol=1e-9, atol=1e-9
        )
    np.testing.assert_array_equal(first.quiet[order], by_hand.table.quiet)


@settings(max_examples=settings.default.max_examples // 5)
@given(each=ENDING, rng=st.randoms())
def test_loading_gives_the_log_that_was_written(each, rng):
    rows = each.rows
    rng.shuffle(rows)
    source = source_of(rows, NAMES)
    pairs = labelled_pairs(each)
    # Episodes come in the order in which the first steps of them lie among the shuffled rows.
    names = sorted({row["episode"] for row in rows})
    order = [names.index(row["episode"]) for row in rows if row["step"] == 0]
    found, log = source.load(pairs), each.log.episodes(np.array(order))
    ended = log.terminated | log.truncated
    for name in ("state", "action", "reward", "next_state", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(found, name), getattr(log, name), err_msg=name)
    np.testing.assert_array_equal(found.episode_offsets, log.episode_offsets)
    assert ended.sum() == log.num_episodes
    counted, loaded = source.counts().to_counts(pairs), found.counts()
    for name in ("offsets", "successor", "times", "starts", "terminal"):
        np.testing.assert_array_equal(getattr(counted, name), getattr(loaded, name), err_msg=name)
    np.testing.assert_allclose(counted.rewards.values, loaded.rewards.values, atol=1e-9)


def labelled_pairs(each):
    pairs = each.mdp.pairs
    states = tuple(place_of(s) for s in range(pairs.num_states))
    actions = tuple((f"m{a}",) for a in range(pairs.num_actions))
    words = Vocabulary(("place", "level"), ("move",), states, actions)
    return words.pairs_of(np.stack([pairs.state, pairs.action], axis=1))


def one_of_each_form():
    """Algorithms with different settings, with all that they need: a command has no more forms."""
    forms = {
        tuple(f"{field.name}: {field.type}" for field in dataclasses.fields(algorithm)): name
        for name, algorithm in sorted(ALGORITHMS.items(), reverse=True)
    }
    for place, name in enumerate(sorted(forms.values())):
        needed = [
            f"{field.name}=1"
            for field in dataclasses.fields(ALGORITHMS[name])
            if field.default is dataclasses.MISSING and "n_wedge" not in field.name
        ]
        terms = {"algorithm": ":".join([name, *needed]), "certificates": ["robust"]}
        yield pytest.param(terms, marks=[pytest.mark.slow] if place % 4 else [])


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "terms",
    [
        *one_of_each_form(),
        {"n_wedge": 7, "delta": 0.2, "returns": (-30.0, 50.0), "unseen": "terminal"},
        *(
            pytest.param(terms, marks=pytest.mark.slow)
            for terms in (
                {"zeta": 1e4, "algorithm": "spibb-beta", "delta": 0.05},
                {"algorithm": "spibb-2s", "n_wedge": 9, "behavior": "estimate"},
            )
        ),
        {"n_wedge": "auto", "certificates": ["robust:set=l1", "posterior:draws=99"]},
        {"running": (-9.0, 9.0), "ending": (-9.0, 9.0), "worlds": 0},
    ],
)
def test_a_command_repeats_what_was_given_and_leaves_out_what_was_not(terms, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "log.csv", world(3, episodes=60).rows, NAMES)
    result = improve(read_log("log.csv", columns=COLUMNS), discount=0.9, **terms)
    outcome = CliRunner().invoke(main, shlex.split(result.record.command)[1:])
    assert outcome.exit_code == 0, outcome.output
    assert load("OUT").files() == result.files()


def test_lists_say_what_there_is_beyond_the_log():
    rows, table = world(1).rows, world(1).table
    everywhere = sorted({(row["place"], row["level"]) for row in rows})
    listed = {"states": [*everywhere, ("attic", "9")], "actions": [f"m{a}" for a in range(4)]}
    terms = {"discount": 0.9, "certificates": ["a-priori"]}
    plain = improve(without_propensities(rows), **terms)
    more = improve(without_propensities(rows), **terms, **listed)
    assert more.table.pairs.num_states == plain.table.pairs.num_states + 1
    assert ("attic", "9") in more.table.vocabulary.states
    assert more.certificate.figures["actions"] == 4
    codes = [assumption.code for assumption in more.certificate.assumptions]
    assert "nothing-beyond-observed" not in codes
    assert more.record.parameters.states == more.record.parameters.actions == "listed"
    assert more.act(("attic", "9"), np.random.default_rng(1)).startswith("m")
    first = f"the log has the state '{', '.join(everywhere[0])}', which the list of states does not"
    with pytest.raises(ShapeMismatch, match=first):
        improve(without_propensities(rows), discount=0.9, states=[("attic", "9")])
    listed["behavior"] = frame_of(table, tuple(table[0]))
    with pytest.raises(InvalidParameter, match="expected no other list of them beside it"):
        improve(without_propensities(rows), discount=0.9, **listed)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"states": [("a", "< 2"), ("b", "< 2")]},
            "second.csv, row 2: the log has the state 'b, >= 2', which the list of states does",
        ),
        ({"actions": ["x"]}, "first.csv, row 2: the log has the action 'y', which the list of"),
        (
            {"behavior": WITHOUT_Y},
            "first.csv, row 2: the log takes action 'y' in state 'b, < 2', but the dict",
        ),
    ],
)
def test_a_label_that_nobody_listed_is_named_with_its_row(given, says, tmp_path):
    head = "episode,step,place,age,action,reward,terminated\n"
    (tmp_path / "first.csv").write_text(f"{head}1,0,a,1,x,0,false\n1,1,b,1.5,y,1,true\n")
    (tmp_path / "second.csv").write_text(f"{head}2,0,a,1,x,0,false\n2,1,b,7,x,1,true\n")
    how = {"columns": {"state": ["place", "age"]}, "bins": {"age": {"edges": [2]}}}
    with pytest.raises(ShapeMismatch) as refused:
        improve(tmp_path / "*.csv", discount=0.9, **how, **given)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"discount": None}, "nobody says how much the next step counts; expected discount=…"),
        ({"discount": float("nan")}, r"stakes\.discount is nan, expected a number"),
        ({"n_wedge": 5, "zeta": 1.0}, "both n_wedge and zeta"),
        ({"n_wedge": 5, "algorithm": "spibb:n_wedge=7"}, "n_wedge is given beside the N∧ of the"),
        ({"zeta": 1.0, "algorithm": "spibb:n_wedge=7"}, "zeta is given beside the N∧"),
        ({"n_wedge": 5, "algorithm": "basic-rl"}, "basic-rl has no N∧"),
        ({"algorithm": SPIBB(n_wedge=3), "n_wedge": 0}, "n_wedge is given beside the N∧"),
        ({"delta": 0.1, "algorithm": "hcpi:delta=0.2"}, "expected one δ"),
        ({"algorithm": "spibb:wedge=3"}, "has no setting 'wedge'"),
        ({"behavior": "propensities"}, "name it with columns=.'propensity'"),
    ],
)
def test_bad_terms_are_refused(terms, message):
    with pytest.raises(InvalidParameter, match=message):
        improve(without_propensities(world(1).rows), **({"discount": 0.9} | terms))


def test_a_small_part_is_not_enough_to_estimate_what_is_done_now():
    rows = world(1).rows
    terms = {"discount": 0.9, "certificates": ["stitched"]}
    with pytest.raises(InvalidParameter, match=r"train_share is 0\.2, and what is done now is est"):
        improve(without_propensities(rows), train_share=0.2, **terms)
    known = improve(source_of(rows), train_share=0.2, **terms)
    assert known.certificate.parameters["train_share"] == 0.2
    check_share(0.3, 10)
    check_share(0.1, 1_000)


def test_episodes_are_asked_for_where_an_algorithm_needs_them():
    counts = without_propensities(world(1).rows).counts()
    with pytest.raises(InvalidParameter, match="hcpi looks at whole episodes"):
        improve(counts, "hcpi", discount=0.9)
    loose = source_of(world(1).rows, ("place", "level", "move", "reward", *NEXT, "terminated"))
    with pytest.raises(InvalidLog, match="loose transitions, which are no episodes"):
        improve(loose, "hcpi", discount=0.9)


def test_two_successor_algorithms_say_both_n_wedge():
    source = without_propensities(world(3, episodes=60).rows)
    for name in ("spibb-2s", "spibb-beta"):
        parameters = improve(source, name, discount=0.9, n_wedge=1000).record.parameters
        assert parameters.algorithm["spibb_n_wedge"] == 1000
        assert parameters.n_wedge not in (0, 1000)


def named(numbers, seed):
    """As many names, in an order that a seed decides."""
    words = np.array([f"n{i:02}" for i in range(numbers)], object)
    return np.random.default_rng(seed).permutation(words)


def results(each, seed, **terms):
    """Everything that a user sees of an improvement, by the numbers of the world."""
    pairs = each.mdp.pairs
    states, actions = named(pairs.num_states, seed), named(pairs.num_actions, seed + 1)
    result = improve(read_log(table_of(each.log, states, actions)), discount=0.9, **terms)
    words = result.table.vocabulary
    rows = {
        (states.tolist().index(words.states[s][0]), actions.tolist().index(words.actions[a][0])): p
        for s, a, p in zip(
            result.table.pairs.state, result.table.pairs.action, result.table.probability,
            strict=True,
        )
        if not result.table.quiet[s]
    }  # fmt: skip
    assert list(words.states[: len(words.states) - result.table.quiet.sum()]) == sorted(
        label for s, label in enumerate(words.states) if not result.table.quiet[s]
    )
    claims = [(claim.kind, claim.lower) for claim in result.certificates]
    gains = None if result.rehearsal is None else result.rehearsal.gain.tolist()
    return result.verdict, claims, rows, [check.p_value for check in result.record.checks], gains


@pytest.mark.one_quick
@pytest.mark.parametrize("kinds", [None, ["posterior:train_share=0", "robust", "a-priori"]])
def test_renaming_states_and_actions_changes_nothing(kinds):
    each = world(3, states=5, actions=3, episodes=60)
    first, again = (results(each, seed, worlds=0, certificates=kinds) for seed in (0, 10))
    assert again == first


@pytest.mark.slow
def test_renaming_changes_no_stress_test_either():
    each = world(2, states=3, actions=2, episodes=60)
    first = results(each, 0, worlds=1)
    assert first[-1] is not None
    assert results(each, 30, worlds=1) == first


@given(each=WORLDS, data=st.data())
def test_numbers_by_appearance_and_back(each, data):
    log = each.log
    last = np.array(data.draw(st.lists(st.booleans(), min_size=log.pairs.num_states,
                                       max_size=log.pairs.num_states)))  # fmt: skip
    numbering = by_appearance(log, last)
    moved = numbering.log(log)
    # The same rows, of other numbers; every state and action first comes after those below it.
    np.testing.assert_array_equal(numbering.state[moved.state], log.state)
    np.testing.assert_array_equal(numbering.action[moved.action], log.action)
    np.testing.assert_array_equal(numbering.pair[moved.pair], log.pair)
    np.testing.assert_array_equal(moved.pairs.find(moved.state, moved.action), moved.pair)
    assert (np.diff(last[numbering.state].astype(int)) >= 0).all()
    seen = [s for s in dict.fromkeys(moved.state.tolist()) if not last[numbering.state[s]]]
    assert seen == sorted(seen)
    actions = list(dict.fromkeys(moved.action.tolist()))
    assert actions == sorted(actions)
    back = by_appearance(log, last).pairs
    assert back == moved.pairs
    np.testing.assert_array_equal(
        numbering.pair[np.argsort(numbering.pair)], np.arange(back.num_pairs)
    )
