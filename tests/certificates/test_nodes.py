"""Stitched rollouts on nodes: their law by enumeration, flat models to the bit, and claims.

A proved claim may fail with probability δ. Tests of that draw with fixed seeds and allow as many
failures as a claim that fails exactly that often would exceed once in 10⁶ tests.
"""

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from surestep import FiniteMDP, Policy, Problem, sample_log
from surestep.certificates import nodes as module
from surestep.certificates.node_law import sampled_log
from surestep.certificates.nodes import (
    NodeStitched,
    node_course,
    node_stacks,
    paid_node_returns,
    roll_out_nodes,
    world_of,
)
from surestep.certificates.stacks import Case, Way, course_of, roll_out_each, stacks_of
from surestep.environments.sysadmin import SysAdmin
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.kernels.nodes import NodeStacks
from surestep.kernels.stitched import BOTH, OURS, THEIRS
from surestep.model.behavior_tree import estimated_behavior
from surestep.model.factored import ColumnRules, FactoredLog, FactoredProblem
from surestep.model.statements import Statement
from surestep.model.structure import Structure

DELTA = 0.1


def most_failures(logs, chance=DELTA):
    return int(stats.binom.isf(1e-6, logs, chance))


def empty_log(structure, start):
    """Returns a log of one step that nobody saw, to pose a problem with."""
    return FactoredLog(
        structure=structure,
        state=[start],
        action=[0],
        next_state=[[-1] * len(start)],
        ended=[False],
        offsets=[0, 1],
    )


def law_by_trajectories(structure, rules, start, laws, steps, discount):
    """Returns the law of the return by all trajectories, with exact chances."""
    columns = len(structure.columns)
    law = Counter()

    def walk(state, t, weight, total, chance):
        if t == steps:
            law[round(total, 9)] += chance
            return
        action = rules.act(np.array([state]))
        row = [*state, *([0] * (columns + 2))]

        def decide(d, row, chance):
            if d == structure.target.size:
                earned = structure.reward_of(np.array([row]), action)[0]
                walk(
                    tuple(row[columns : 2 * columns]),
                    t + 1,
                    weight * discount,
                    total + weight * earned,
                    chance,
                )
                return
            node = int(structure.nodes.at(d, np.array([row]), action)[0])
            target = int(structure.target[d])
            for value in range(len(structure.values[target])):
                known = structure.known[node]
                p = laws[node][value] if known < 0 else Fraction(int(known == value))
                if p == 0:
                    continue
                drawn = [*row]
                drawn[columns + target] = value
                if target == columns and value == 1:
                    earned = structure.reward_of(np.array([drawn]), action)[0]
                    law[round(total + weight * earned, 9)] += chance * p
                    continue
                decide(d + 1, drawn, chance * p)

        decide(0, row, chance)

    walk(tuple(start), 0, 1.0, 0.0, Fraction(1))
    return law


def laws_by_stacks(problem, policy, laws, depth, way, rounds):
    """Returns the law of each round by all stacks of so many entries a node, with exact chances."""
    structure = problem.structure
    read = np.flatnonzero(structure.known < 0)
    sizes = np.zeros(structure.num_nodes, np.int64)
    sizes[read] = depth
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    course = node_course(problem, policy)
    found = [Counter() for _ in range(rounds)]
    for entries in itertools.product(range(2), repeat=depth * read.size):
        chance = Fraction(1)
        for place, value in enumerate(entries):
            chance *= laws[int(read[place // depth])][value]
        stacks = NodeStacks(
            offsets, offsets[1:].copy(), np.array(entries, np.int32), np.zeros(0, np.int64)
        )
        world = world_of(stacks, course, stacks, 0)._replace(rounds=rounds)
        tallied = roll_out_nodes(world, [way], 1, 1, keep=True)
        assert tallied.complete[0] == rounds
        for i in range(rounds):
            found[i][round(float(tallied.differences[0, i]), 9)] += chance
    return found


def pair_of_machines():
    columns = {"m_0": ["down", "up"], "m_1": ["down", "up"]}
    table = {
        "m_*": {
            "parents": ["@"],
            "action": {"reset": "reset_@"},
            "known": [{"action": "reset", "is": "up"}],
        },
        "reward": {"terms": [{"of": "m_*", "up": 1.0}, {"of": "action", "reset_*": -0.25}]},
    }
    structure = Structure.read(columns, ["reset_0", "reset_1", "wait"], table)
    laws = {0: (Fraction(3, 4), Fraction(1, 4)), 2: (Fraction(1, 3), Fraction(2, 3))}
    assert [structure.node_names[k] for k in laws] == [
        "m_*: @ down, action other",
        "m_*: @ up, action other",
    ]
    reset = ColumnRules.of(structure, [({"@": "down"}, "reset_@")], "wait", group="m_*")
    return structure, laws, reset, ColumnRules.of(structure, [], "wait")


def with_ends():
    columns = {"x": ["bad", "good"], "y": ["bad", "good"]}
    table = {
        "x": {"parents": ["x"], "action": "none"},
        "end": {"parents": ["next.x"], "action": "none"},
        "y": {"parents": [], "action": {"push": "push"}},
        "reward": {
            "terms": [
                {"of": ["x", "y"], "good, good": 2.0, "bad, *": -1.0},
                {"of": "next.x", "good": 0.5},
            ]
        },
    }
    structure = Structure.read(columns, ["wait", "push"], table)
    thirds = (Fraction(1, 3), Fraction(2, 3))
    laws = {k: thirds if k % 2 else (Fraction(3, 4), Fraction(1, 4)) for k in range(6)}
    push = ColumnRules.of(structure, [({"y": "good"}, "push")], "wait")
    return structure, laws, push, ColumnRules.of(structure, [({"x": "bad"}, "push")], "wait")


def problem_of(structure, behavior, start, steps, discount=0.5):
    return FactoredProblem(
        log=empty_log(structure, start),
        behavior=behavior,
        discount=discount,
        start=start,
        rest_bounds=(-9.0, 9.0),
        horizon=steps,
    )


@pytest.mark.parametrize(("steps", "rounds", "depth"), [(1, 2, 4), (2, 1, 4)])
def test_rollouts_on_shared_nodes_have_the_law_of_their_policy(steps, rounds, depth):
    structure, laws, reset, wait = pair_of_machines()
    problem = problem_of(structure, wait, (0, 1), steps)
    for policy, way in ((reset, Way(OURS)), (wait, Way(THEIRS))):
        exact = law_by_trajectories(structure, policy, (0, 1), laws, steps, 0.5)
        if way.who == THEIRS:
            exact = Counter({-value: chance for value, chance in exact.items()})
        for found in laws_by_stacks(problem, reset, laws, depth, way, rounds):
            assert found == exact


@pytest.mark.thorough
def test_rollouts_with_ends_and_parents_in_the_next_step_have_the_law_of_their_policy():
    structure, laws, ours, theirs = with_ends()
    problem = problem_of(structure, theirs, (1, 1), 2)
    exact = law_by_trajectories(structure, ours, (1, 1), laws, 2, 0.5)
    (found,) = laws_by_stacks(problem, ours, laws, 2, Way(OURS), 1)
    assert found == exact
    assert sum(exact.values()) == 1


def test_both_policies_together_have_the_mean_of_each_alone():
    structure, laws, reset, wait = pair_of_machines()
    problem = problem_of(structure, wait, (0, 1), 1)
    means = [
        sum(Fraction(value) * chance for value, chance in law.items())
        for policy in (reset, wait)
        for law in [law_by_trajectories(structure, policy, (0, 1), laws, 1, 0.5)]
    ]
    for found in laws_by_stacks(problem, reset, laws, 4, Way(BOTH), 2):
        assert sum(Fraction(value) * p for value, p in found.items()) == means[0] - means[1]


def test_private_nodes_give_the_rounds_of_the_flat_certificate_to_the_bit():
    rng = np.random.default_rng(5)
    num_states, num_actions = 5, 3
    mdp = FiniteMDP.from_dense(
        rng.dirichlet(np.full(num_states, 0.5), (num_states, num_actions)),
        rng.normal(size=(num_states, num_actions)),
        discount=0.9,
    )
    both = [
        Policy.from_dense(mdp, rng.dirichlet(np.full(num_actions, 5.0), num_states)) for _ in "Ib"
    ]
    log = sample_log(mdp, both[1], 200, horizon=12, rng=rng)
    bounds = (-40.0, 40.0)
    problem = Problem(
        counts=log.counts(mdp.expected_reward),
        behavior=both[1],
        discount=0.9,
        value_bounds=bounds,
        log=log,
    )
    course = course_of(problem, both[0], bounds, None)
    names = [str(s) for s in range(num_states)]
    actions = [str(a) for a in range(num_actions)]
    worth = {
        f"{s}, {a}": float(mdp.expected_reward[s * num_actions + a])
        for s in range(num_states)
        for a in range(num_actions)
    }
    structure = Structure.read(
        {"s": names},
        actions,
        {"s": {"parents": ["s"]}, "reward": {"terms": [{"of": ["s", "action"]} | worth]}},
    )
    factored = FactoredProblem(
        log=FactoredLog(
            structure=structure,
            state=log.pairs.state[log.pair][:, np.newaxis],
            action=log.pairs.action[log.pair],
            next_state=log.next_state[:, np.newaxis],
            ended=log.terminated,
            offsets=np.arange(201) * 12,
        ),
        behavior=both[1],
        discount=0.9,
        rest_bounds=bounds,
    )
    flat, stacks = stacks_of(log), node_stacks(factored.log)
    assert (flat.offsets == stacks.offsets).all()
    assert (flat.successor == stacks.entry).all()
    rewards = mdp.expected_reward[np.repeat(np.arange(15), np.diff(flat.offsets))]
    flat = flat._replace(reward=rewards)
    case = Case(flat, course, flat.sizes > 0, 7, flat.starts.size)
    world = world_of(stacks, node_course(factored, both[0]), stacks, 7)
    for way in (Way(BOTH, 9, 9), Way(OURS, 20, 20), Way(3, 5, 8)):
        (expected,) = roll_out_each([case], [way], 2, 6)
        found = roll_out_nodes(world, [way], 2, 6, keep=True)
        assert expected.complete.min() > 5
        assert (found.complete == expected.complete).all()
        assert (found.cuts == expected.cuts).all()
        assert (found.differences == expected.differences).all()


def test_stacks_keep_the_place_of_what_nobody_saw():
    structure = Structure.read(
        {"x": ["a", "b"]},
        ["go"],
        {"x": {"parents": ["x"]}, "end": {"parents": ["next.x"]}},
    )
    log = FactoredLog(
        structure=structure,
        state=[[0], [1], [-1], [0]],
        action=[0, 0, 0, 0],
        next_state=[[1], [-1], [0], [1]],
        ended=[False, True, False, False],
        offsets=[0, 2, 4],
    )
    stacks = node_stacks(log)
    each = [stacks.entry[a:b].tolist() for a, b in itertools.pairwise(stacks.offsets)]
    # x from a: 1, unknown parent, 1; from b: ended, unknown parent; ends after a and b.
    assert each == [[1, -1, 1], [-1, -1], [-1, 0], [0, -1, 0]]
    assert (stacks.stops - stacks.offsets[:-1]).tolist() == [1, 0, 0, 1]


@pytest.mark.thorough
def test_a_claim_is_proved_with_its_assumptions_and_the_same_again():
    world = SysAdmin(5)
    problem = world.problem(world.sample(world.first_failed(0.3), 300, rng=2))
    policy = world.fewest_failed_neighbours()
    claim = NodeStitched().certify(problem, policy)
    assert claim == NodeStitched().certify(problem, policy)
    codes = [assumption.code for assumption in claim.assumptions]
    assert codes[0] == "structure-true"
    assert {"start-known", "order-of-decisions", "rest-bounded"} <= {*codes}
    better, before = (
        world.sample(one, 1000, rng=1, steps=200).returns(0.95).mean()
        for one in (policy, problem.behavior)
    )
    assert 0 < claim.lower < better - before
    fixed = NodeStitched(logger="fixed", series=32, one_of=8).certify(problem, policy)
    assert fixed.lower < better - before


def test_rollouts_end_where_all_that_comes_is_known():
    structure = Structure.read(
        {"x": ["a", "b"]},
        ["wait", "go"],
        {
            "x": {"parents": ["x"], "known": [{"action": "wait", "is": "a"}]},
            "reward": {"terms": [{"of": "x", "b": 1.0}]},
        },
    )
    wait, go = (ColumnRules.of(structure, [], action) for action in ("wait", "go"))
    states = np.random.default_rng(1).integers(0, 2, (50, 1))
    log = FactoredLog(
        structure=structure,
        state=states,
        action=np.ones(50, np.int64),
        next_state=np.roll(states, -1),
        ended=np.zeros(50, np.bool_),
        offsets=np.arange(11) * 5,
    )
    problem = FactoredProblem(log=log, behavior=go, discount=0.5)
    assert NodeStitched().certify(problem, wait).lower < 0


def test_small_logs_and_policies_of_two_kinds_are_refused():
    world = SysAdmin(3)
    problem = world.problem(world.sample(world.first_failed(0.3), 3, rng=2))
    with pytest.raises(CertificateRefused, match="episodes"):
        NodeStitched().certify(problem, world.fewest_failed_neighbours())
    enough = world.problem(world.sample(world.first_failed(0.3), 30, rng=2))
    table = Policy.uniform(
        FiniteMDP.from_dense(np.full((8, 4, 8), 1 / 8), np.zeros((8, 4)), discount=0.9)
    )
    with pytest.raises(InvalidParameter, match="expected both alike"):
        NodeStitched().certify(enough, table)


def risky(*, seen):
    """A step is good or bad, and after a bad one an episode ends with chance ½.

    Going is good more often, and costs as much as makes both actions worth the same: Δ = 0.
    """
    table = {
        "x": {"parents": []},
        "end": {"parents": ["next.x"], "action": "none", "known": [{"next.x": "good", "is": "no"}]},
        "reward": {"terms": [{"of": "next.x", "good": 1.0}, {"of": "action", "go": -0.3385}]},
    }
    structure = Structure.read({"x": ["bad", "good"]}, ["wait", "go"], table)

    def draw(episodes, rng, most=30):
        rows = []
        lengths = []
        for _ in range(episodes):
            state, cooling, length = 1, 0, 0
            for t in range(most):
                # The logger waits three steps after a bad one, and quits after many steps.
                action = 0 if cooling else int(rng.random() < 0.6)
                good = int(rng.random() < (0.7 if action else 0.5))
                over = not good and rng.random() < 0.5
                rows.append((state, action, good if seen or not over else -1, over))
                state, cooling, length = good, max(cooling - 1, 0) if good else 3, t + 1
                if over or (t > 10 and cooling and rng.random() < 0.2):
                    break
            lengths.append(length)
        state, action, after, over = map(np.array, zip(*rows, strict=True))
        return FactoredLog(
            structure=structure,
            state=state[:, np.newaxis],
            action=action,
            next_state=after[:, np.newaxis],
            ended=over,
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
        )

    wait, go = (ColumnRules.of(structure, [], action) for action in ("wait", "go"))
    return draw, wait, go


def wrong_claims(logs, *, ours, behavior):
    wrong = 0
    for seed, log in enumerate(logs):
        problem = FactoredProblem(
            log=log,
            behavior=behavior,
            discount=0.9,
            start=(1,),
            rest_bounds=(-3.385, 10.0),
        )
        wrong += NodeStitched(delta=DELTA, seed=seed).certify(problem, ours).lower > 1e-9
    return wrong


def small_range():
    """Two columns with shared nodes, and one step a round: with returns of 0 to 2 bets are bold."""
    return Structure.read(
        {"m_0": ["off", "on"], "m_1": ["off", "on"]},
        ["wait", "push"],
        {
            "m_*": {"parents": []},
            "reward": {"terms": [{"of": f"next.m_{i}", "on": 1.0} for i in range(2)]},
        },
    )


def cooling_log(structure, episodes, rng, steps=12, chance=0.4):
    """Draws from a logger who stops pushing after failures; both actions have the same law."""
    state = np.zeros((episodes, steps + 1, 2), np.int64)
    action = np.zeros((episodes, steps), np.int64)
    tired = np.zeros(episodes, np.bool_)
    for t in range(steps):
        action[:, t] = ~tired & (rng.random(episodes) < 0.7)
        state[:, t + 1] = rng.random((episodes, 2)) < chance
        failed = (state[:, t + 1] == 0).any(axis=1)
        tired = np.where(action[:, t] == 1, failed, tired & (rng.random(episodes) < 0.7))
    return FactoredLog(
        structure=structure,
        state=state[:, :-1].reshape(-1, 2),
        action=action.ravel(),
        next_state=state[:, 1:].reshape(-1, 2),
        ended=np.zeros(episodes * steps, np.bool_),
        offsets=np.arange(episodes + 1) * steps,
    )


def wrong_where_the_range_is_small(logs, *, chance):
    structure = small_range()
    wait, push = (ColumnRules.of(structure, [], action) for action in ("wait", "push"))
    wrong = 0
    for seed in range(logs):
        problem = FactoredProblem(
            log=cooling_log(structure, 40, np.random.default_rng(seed), chance=chance),
            behavior=wait,
            discount=0.5,
            start=(0, 0),
            rest_bounds=(0.0, 2.0),
            horizon=1,
        )
        wrong += NodeStitched(delta=DELTA, seed=seed).certify(problem, push).lower > 1e-9
    return wrong


@pytest.mark.thorough
def test_claims_hold_where_the_range_is_small_and_the_logger_cools_off():
    assert wrong_where_the_range_is_small(50, chance=0.4) <= most_failures(50)


@pytest.mark.slow  # 2,000 logs a cell
@pytest.mark.parametrize("chance", [0.05, 0.4, 0.9])
def test_claims_hold_in_many_small_worlds(chance):
    assert wrong_where_the_range_is_small(2000, chance=chance) <= most_failures(2000)


@pytest.mark.thorough
@pytest.mark.parametrize("number", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_claims_hold_where_episodes_end_and_the_logger_quits(number):
    draw, wait, go = risky(seen=True)
    logs = [draw(80, np.random.default_rng(seed)) for seed in range(number)]
    for ours, theirs in ((wait, go), (go, wait)):
        assert wrong_claims(logs, ours=ours, behavior=theirs) <= most_failures(number)


@pytest.mark.slow  # that the invalid form fails: nothing that the product does
def test_leaving_out_the_draws_of_steps_that_ended_is_wrong(monkeypatch):
    """The invalid form claims a gain where there is none; the valid one does not."""
    draw, wait, go = risky(seen=False)
    logs = [draw(2500, np.random.default_rng(seed)) for seed in range(8)]
    assert wrong_claims(logs, ours=wait, behavior=go) == 0

    def left_out(log):
        stacks = node_stacks(log)
        kept = stacks.entry >= 0
        sizes = np.add.reduceat(np.append(kept, 0), stacks.offsets[:-1]) * (
            np.diff(stacks.offsets) > 0
        )
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return NodeStacks(offsets, offsets[1:].copy(), stacks.entry[kept], stacks.starts)

    monkeypatch.setattr(module, "node_stacks", left_out)
    assert wrong_claims(logs, ours=wait, behavior=go) > most_failures(8)


def test_paid_returns_count_what_nobody_saw_as_the_most():
    structure = Structure.read(
        {"x": ["a", "b"]},
        ["go"],
        {
            "x": {"parents": ["x"]},
            "end": {"parents": ["next.x"]},
            "reward": {"terms": [{"of": "x", "b": 1.0}]},
        },
    )
    log = FactoredLog(
        structure=structure,
        state=[[1], [1], [1], [0], [1]],
        action=[0] * 5,
        next_state=[[1], [0], [1], [-1], [-1]],
        ended=[False, True, False, False, True],
        offsets=[0, 2, 3, 4, 5],
    )
    problem = FactoredProblem(log=log, behavior=None, discount=0.5, rest_bounds=(0.0, 2.0))
    # Over after two steps; cut after one, with a half of 2 left; lost; over after one.
    assert paid_node_returns(problem).tolist() == [1.5, 1 + 0.5 * 2, 2.0, 1.0]
    within = replace(problem, horizon=1)
    assert paid_node_returns(within).tolist() == [1.0, 1.0, 2.0, 1.0]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("seen", "action", "logs"),
    [
        (False, 1, 30),
        *(
            pytest.param(seen, action, 300, marks=pytest.mark.slow)
            for seen in (True, False)
            for action in (0, 1)
        ),
    ],
)
def test_claims_against_returns_of_practice_are_seldom_wrong(seen, action, logs):
    """The logger cools off, quits, and loses rows; nothing can be gained by either action."""
    draw, *policies = risky(seen=seen)
    drawn = [draw(300, np.random.default_rng(seed)) for seed in range(logs)]
    wrong = wrong_claims(drawn, ours=policies[action], behavior=None)
    assert wrong <= most_failures(logs)


def test_returns_of_practice_prove_a_gain_where_nobody_knows_the_policy():
    world = SysAdmin(4)
    log = world.sample(world.first_failed(0.6), 600, rng=3)
    problem = replace(world.problem(log), behavior=None, horizon=40)
    claim = NodeStitched().certify(problem, world.fewest_failed_neighbours())
    better, before = (
        world.sample(policy, 4000, rng=1).returns(0.95).mean()
        for policy in (world.fewest_failed_neighbours(), world.first_failed(0.6))
    )
    assert 0 < claim.lower < better - before
    assert claim.lower == claim.figures["policy_lower"] - claim.figures["practice_upper"]
    with pytest.raises(InvalidParameter, match="practice is 0"):
        NodeStitched(practice=0).certify(problem, world.fewest_failed_neighbours())


COIN = {"parents": [], "action": "none"}
PARITY = {
    "a": COIN,
    "b": COIN,
    "y": {"parents": ["a", "b"]},
    "reward": {"terms": [{"of": "next.y", "good": 1.0}]},
}


def guided_by_parity(episodes, seed, *, sees):
    """Coins a and b; where they agree "on" is good with 0.9, else "off"; "steady" always with 0.7.

    Practice that sees the parity returns 0.76 a step, else 0.56: only then "steady" gains.
    """
    columns = {"a": ["no", "yes"], "b": ["no", "yes"], "y": ["bad", "good"]}
    structure = Structure.read(columns, ["on", "off", "steady"], PARITY)
    good = np.array([[0.9, 0.1, 0.7], [0.1, 0.9, 0.7], [0.1, 0.9, 0.7], [0.9, 0.1, 0.7]])
    law = np.column_stack([1 - np.append([0.5, 0.5], good), np.ones(14)])
    rows = [[0.6, 0.1, 0.3], [0.1, 0.6, 0.3]] if sees else [[0.35, 0.35, 0.3]] * 2
    conditions = [{"a": a, "b": b} for a, b in itertools.product(["no", "yes"], repeat=2)]
    practice = ColumnRules.of_laws(structure, conditions[:3], [rows[0], rows[1], rows[1], rows[0]])
    starts = np.random.default_rng([seed, 1]).integers(2, size=(episodes, 3))
    rng = np.random.default_rng(seed)
    log = sampled_log(structure, law, practice, starts, steps=5, rng=rng)
    estimated = (Statement("behavior-estimated-apart"),)
    problem = FactoredProblem(
        log=log, behavior=None, discount=1.0, horizon=5, about_behavior=estimated
    )
    first, _ = NodeStitched().parts(problem)
    return replace(problem, behavior=estimated_behavior(first.log))


def test_a_claim_over_an_estimated_practice_is_no_proof():
    """A tree sees no parity, so that π̂_b is worth less than what was done; returns tell."""
    steady = ColumnRules.of(guided_by_parity(20, 0, sees=True).structure, [], "steady")
    blind = guided_by_parity(1000, 1, sees=True)
    wrong = NodeStitched().certify(blind, steady)
    assert wrong.lower > 0 > 5 * (0.7 - 0.76)
    assert (wrong.standing, wrong.assumes("behavior-estimated-apart")) == ("believed", True)
    claim = NodeStitched().certify(guided_by_parity(1000, 1, sees=False), steady)
    assert (claim.standing, claim.assumes("practice-as-recorded")) == ("proved", True)
    assert 0 < claim.lower < 5 * (0.7 - 0.56)
    assert NodeStitched(practice=0).certify(blind, steady).standing == "believed"


def laws_of(tallied, rounds):
    """How often each difference of a round came up, over its runs."""
    return [
        {round(float(v), 9): n for v, n in zip(*np.unique(column, return_counts=True), strict=True)}
        for column in tallied.differences[:, :rounds].T
    ]


@pytest.mark.parametrize("steps", [1, 2])
def test_rollouts_of_laws_have_the_law_of_their_returns(steps):
    """Exact values on two columns whose nodes are known: only actions are drawn, by their laws."""
    columns = {"x": ["bad", "good"], "y": ["bad", "good"]}
    table = {
        "x": {
            "parents": [],
            "known": [{"action": "push", "is": "good"}, {"action": "wait", "is": "bad"},
                      {"action": "rest", "is": "bad"}],
        },
        "y": {"parents": ["x"], "action": "none",
              "known": [{"x": "bad", "is": "good"}, {"x": "good", "is": "bad"}]},
        "reward": {"terms": [{"of": "x", "good": 1.0}, {"of": "y", "good": 0.25},
                             {"of": "action", "push": -4.0, "rest": -16.0}]},
    }  # fmt: skip
    structure = Structure.read(columns, ["wait", "push", "rest"], table)
    law = [[0.125, 0.625, 0.25], [0.5, 0.0, 0.5]]
    policy = ColumnRules.of_laws(structure, [{"x": "bad"}], law)
    exact = Counter()

    def walk(state, t, total, chance):
        if t == steps:
            exact[round(total, 9)] += chance
            return
        for action, p in enumerate(law[state[0]]):
            earned = state[0] + 0.25 * state[1] - (0, 4, 16)[action]
            after = (int(action == 1), 1 - state[0])
            walk(after, t + 1, total + 0.5**t * earned, chance * p)

    walk((0, 1), 0, 0.0, 1.0)
    problem = problem_of(structure, policy, (0, 1), steps)
    stacks = node_stacks(problem.log)
    world = world_of(stacks, node_course(problem, policy), stacks, 3)._replace(rounds=2)
    runs = 20_000
    for who, sign in ((OURS, 1), (THEIRS, -1)):
        tallied = roll_out_nodes(world, [Way(who)], 1, runs, keep=True)
        assert (tallied.complete == 2).all()
        for found in laws_of(tallied, 2):
            # Zero chances never come up, and all others come up as often as they should.
            assert {*found} == {sign * value for value, chance in exact.items() if chance}
            for value, chance in exact.items():
                error = abs(found.get(sign * value, 0) / runs - chance)
                assert error < 5 * (chance * (1 - chance) / runs) ** 0.5 + 1e-9


def test_a_rollout_is_cut_where_nobody_knows_what_is_done():
    """What is left counts as the most for the current policy, and as the least for the new one."""
    structure, *_ = with_ends()
    known = ColumnRules.of_laws(structure, [{"x": "good"}], [[1.0, 0.0], [0.0, 0.0]])
    problem = problem_of(structure, known, (0, 1), 2)
    stacks = node_stacks(problem.log)
    world = world_of(stacks, node_course(problem, known), stacks, 3)._replace(rounds=1)
    for who in (OURS, THEIRS):
        tallied = roll_out_nodes(world, [Way(who)], 1, 1, keep=True)
        assert tallied.cuts[0] == 1
        assert tallied.differences[0, 0] == -9.0  # the least of −9, or less the most of 9
