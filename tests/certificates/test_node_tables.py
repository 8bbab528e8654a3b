"""Tables of all states of a world of nodes: exact products, worst cases, SPIBB, and claims.

Truth comes from walks over all draws in exact rationals, and from nested worst cases that know
nothing of tables.
"""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from surestep import Policy, evaluate, performance
from surestep.algorithms import SPIBB, BasicRL, improve_on_nodes
from surestep.certificates import NodeRobust, NodeStitched
from surestep.certificates.node_law import node_stacks
from surestep.certificates.node_tables import NodeTable, node_counts, node_tails
from surestep.certificates.nodes import node_course, roll_out_nodes, world_of
from surestep.certificates.stacks import Way
from surestep.certificates.uncertainty import chance_interval
from surestep.environments.sysadmin import SysAdmin, sysadmin
from surestep.errors import InvalidParameter
from surestep.kernels.stitched import BOTH
from surestep.model import FactoredLog, FactoredProblem, Pairs
from surestep.model.factored import ColumnRules
from surestep.model.structure import Structure

DISCOUNT = 0.8
COLUMNS = {"heat": ("low", "mid", "high"), "lamp": ("off", "on")}
ACTIONS = ("wait", "cool")
# Heat has three values; the lamp looks at the next heat, and is known where it is high; an end
# comes last, and rewards depend on the next columns.
TABLE = {
    "heat": {"parents": ["heat"], "action": {"cool": "cool"}},
    "lamp": {
        "parents": ["lamp", "next.heat"],
        "action": "none",
        "known": [{"next.heat": "high", "is": "on"}],
    },
    "end": {
        "parents": ["next.lamp"],
        "action": "none",
        "known": [{"next.lamp": "off", "is": "no"}],
    },
    "reward": {
        "terms": [{"of": "next.heat", "low": 1.0, "high": -2.0}, {"of": "action", "cool": -0.5}]
    },
}
WORLD = Structure.read(COLUMNS, ACTIONS, TABLE)
STATES = [*itertools.product(range(3), range(2))]


def draws_of(state, action, structure=WORLD):
    """Yields every way in which a step can go: its values, and the nodes it draws with values."""
    width = len(structure.columns)

    def decide(d, row, used):
        if d == structure.target.size:
            yield row, used
            return
        target = int(structure.target[d])
        over = row[2 * width] == 1 and width in structure.target[:d]
        node = int(structure.nodes.at(d, np.array([row]), np.array([action]))[0])
        known = int(structure.known[node])
        for value in range(len(structure.values[target])):
            if over or known in (-1, value):
                after = [*row]
                after[width + target] = value
                further = used if over or known >= 0 else (*used, (node, value))
                yield from decide(d + 1, after, further)
                if over:
                    return

    yield from decide(0, [*state, *([0] * (width + 2))], ())


def log_of_draws(counts, structure=WORLD):
    """Makes a log in which nodes are drawn as often as `counts` says, as far as steps fit."""
    rng = np.random.default_rng(int(sum(counts)))
    rows = []
    for _ in range(sum(counts)):
        state, action = STATES[rng.integers(len(STATES))], int(rng.integers(2))
        ways = [*draws_of(state, action, structure)]
        rows.append((state, action, ways[rng.integers(len(ways))][0]))
    return FactoredLog(
        structure=structure,
        state=[state for state, _, _ in rows],
        action=[action for _, action, _ in rows],
        next_state=[values[2:4] for *_, values in rows],
        ended=[values[4] == 1 for *_, values in rows],
        offsets=range(len(rows) + 1),
    )


def posed(log, chance=0.5):
    behavior = ColumnRules.of(WORLD, [({"heat": "high"}, "cool")], "wait", chance=chance)
    return FactoredProblem(log=log, behavior=behavior, discount=DISCOUNT, start=(0, 0))


def exact_values(problem, chances):
    """V of a policy [S, A] by the frequencies of nodes, in rationals until the last solve."""
    counts = node_counts(problem)
    size = len(STATES)
    matrix, right = np.eye(size), np.zeros(size)
    for s, state in enumerate(STATES):
        for action in range(2):
            for values, used in draws_of(state, action):
                chance = Fraction(1)
                for node, value in used:
                    chance *= Fraction(int(counts[node, value]), int(counts[node].sum()))
                weight = chances[s][action] * float(chance)
                earned = problem.structure.reward_of(np.array([values]), np.array([action]))[0]
                right[s] += weight * earned
                if values[4] == 0:
                    matrix[s, STATES.index((values[2], values[3]))] -= DISCOUNT * weight
    return np.linalg.solve(matrix, right)


@settings(max_examples=5)
@given(steps=st.integers(150, 400), chance=st.floats(0.1, 1.0))
def test_the_estimate_is_the_product_of_frequencies(steps, chance):
    problem = posed(log_of_draws([steps]), chance)
    table = NodeTable.of(problem)
    value = evaluate(table.problem.estimate(), table.problem.behavior)[: len(STATES)]
    chances = problem.behavior.chances(np.array(STATES))
    np.testing.assert_allclose(value, exact_values(problem, chances), atol=1e-9)


def test_rows_that_share_a_node_share_its_draws_and_pairs_have_those_of_the_scarcest():
    problem = posed(log_of_draws([300]))
    table, counts = NodeTable.of(problem), node_counts(problem)
    times = table.problem.counts
    for k in np.flatnonzero(table.law >= 0):
        row = times.times[times.offsets[k] : times.offsets[k + 1]]
        assert sorted(row) == sorted(counts[table.law[k]][: row.size])
    for s, state in enumerate(STATES):
        for action in range(2):
            used = {node for _, used in draws_of(state, action) for node, _ in used}
            assert times.visits[2 * s + action] == min(counts[node].sum() for node in used)


def worst_values(problem, chances, delta, best=False):
    """The worst (or best) values by nested minima over the nodes' intervals; L is not asked."""
    structure = problem.structure
    counts = node_counts(problem)
    unknown = {node for s in STATES for a in (0, 1) for _, u in draws_of(s, a) for node, _ in u}
    share = delta / len(unknown)
    sets = {}
    for node in unknown:
        row = counts[node][: structure.node_sizes[node]]
        level = share / (row.size if row.size > 2 else 1)
        sets[node] = chance_interval(row, np.full(row.size, row.sum()), level, strict=True)
    sign = -1 if best else 1

    def tree(d, row, action):
        """Returns a reward and the next state, or a node (None if it is known) and its trees."""
        if d == structure.target.size:
            earned = structure.reward_of(np.array([row]), np.array([action]))[0]
            return float(earned), None if row[4] else STATES.index((row[2], row[3]))
        target = int(structure.target[d])
        node = int(structure.nodes.at(d, np.array([row]), np.array([action]))[0])
        known = int(structure.known[node])
        ways = range(len(structure.values[target])) if known < 0 else [known]
        trees = []
        for way in ways:
            after = [*row]
            after[2 + target] = way
            trees.append(tree(d + 1, after, action))
        return trees[0] if known >= 0 else (node, trees)

    def nested(part, value):
        head, rest = part
        if not isinstance(rest, list):
            return head + (0.0 if rest is None else DISCOUNT * value[rest])
        worth = np.array([nested(one, value) for one in rest])
        low, high = sets[head]
        chance, left = low.copy(), 1 - low.sum()
        for way in np.argsort(sign * worth):
            extra = min(high[way] - low[way], left)
            chance[way] += extra
            left -= extra
        return float(chance @ worth)

    trees = [[tree(0, [*state, 0, 0, 0, 0], action) for action in (0, 1)] for state in STATES]
    value = np.zeros(len(STATES))
    for _ in range(90):
        value = np.array(
            [chances[s] @ [nested(part, value) for part in trees[s]] for s in range(len(STATES))]
        )
    return value


def test_the_robust_claim_knows_the_nested_worst_cases():
    problem = posed(log_of_draws([400]))
    policy = ColumnRules.of(WORLD, [({"heat": ("mid", "high")}, "cool")], "wait")
    claim = NodeRobust(delta=0.2).certify(problem, policy)
    ours = worst_values(problem, policy.chances(np.array(STATES)), 0.2)[0]
    theirs = worst_values(problem, problem.behavior.chances(np.array(STATES)), 0.2, best=True)[0]
    assert claim.figures["lowest_performance"] == pytest.approx(ours, abs=1e-6)
    assert claim.figures["highest_behavior"] == pytest.approx(theirs, abs=1e-6)
    assert ours - theirs - 1e-6 <= claim.lower
    assert NodeRobust().certify(problem, problem.behavior).lower == 0.0


def test_tails_are_the_nested_worst_cases_of_each_state():
    problem = posed(log_of_draws([400]))
    policy = ColumnRules.of(WORLD, [({"heat": ("mid", "high")}, "cool")], "wait")
    least, most = node_tails(problem, policy, 0.2)
    states = np.array(STATES)
    ours = worst_values(problem, policy.chances(states), 0.2)
    theirs = worst_values(problem, problem.behavior.chances(states), 0.2, best=True)
    np.testing.assert_allclose(least, ours, atol=1e-6)
    np.testing.assert_allclose(most, theirs, atol=1e-6)
    # A log that was foreseen to be so large has the set that it then has.
    half = replace(problem, log=problem.log.episodes(np.arange(0, problem.log.num_episodes, 2)))
    counts = node_counts(half)
    both = replace(half, log=half.log.episodes(np.repeat(np.arange(half.log.num_episodes), 2)))
    assert (node_counts(both) == 2 * counts).all()
    found, foreseen = node_tails(both, policy, 0.2), node_tails(half, policy, 0.2, 2.0)
    np.testing.assert_array_equal(found, foreseen)


def test_cut_rollouts_with_true_tails_have_the_true_mean():
    """Within 5 standard errors; with the bounds that hold whatever comes, they are far below."""
    world, truth = SysAdmin(3), sysadmin(3)
    policy = world.fewest_failed_neighbours()
    problem = world.problem(world.sample(world.first_failed(0.3), 3_000, rng=1))
    tables = [
        Policy(truth.mdp.pairs, rules.chances(np.argwhere(np.ones((2, 2, 2)))).ravel())
        for rules in (policy, problem.behavior)
    ]
    values = np.array([evaluate(truth.mdp, table) for table in tables])
    gain = values[0, -1] - values[1, -1]
    stacks, course = node_stacks(problem.log), node_course(problem, policy)
    with_tails = world_of(stacks, course._replace(tails=values.ravel()), stacks, 0)
    without = world_of(stacks, course, stacks, 0)
    for way in (Way(BOTH, 2, 2), Way(BOTH, 1, 4)):
        tallied = roll_out_nodes(with_tails, [way], 2, 1, keep=True)
        rounds = tallied.differences[0, : tallied.complete[0]]
        assert rounds.size > 2_000
        assert abs(rounds.mean() - gain) < 5 * rounds.std() / np.sqrt(rounds.size)
        least = roll_out_nodes(without, [way], 2, 1, keep=True)
        assert least.differences[0, : least.complete[0]].mean() < gain - 10


@pytest.mark.thorough
def test_robust_tails_prove_more_and_are_no_part_of_large_worlds():
    small, large = SysAdmin(4), SysAdmin(20)
    for world, used in ((small, True), (large, False)):
        problem = world.problem(world.sample(world.first_failed(0.3), 300, rng=1))
        policy = world.fewest_failed_neighbours()
        claims = [NodeStitched(tails=tails).certify(problem, policy) for tails in (0.2, 0.0)]
        assert [claim.figures["robust_tails"] for claim in claims] == [used, False]
        assert (claims[0].lower > claims[1].lower) == used


@pytest.mark.thorough
def test_claims_hold_where_the_truth_is_known():
    """They are wrong far less often than δ; as often as δ once in 10⁶ tests, at most."""
    world, delta, logs = SysAdmin(3), 0.3, 40
    truth = sysadmin(3)
    pairs = Pairs.full(8, 4)
    better = Policy(pairs, truth.behavior.probability)
    wrong, wrong_with_tails = 0, 0
    for seed in range(logs):
        problem = world.problem(world.sample(world.first_failed(0.3), 30 + 5 * seed, rng=seed))
        rules = problem.behavior.chances(np.argwhere(np.ones((2, 2, 2))))
        before = performance(truth.mdp, Policy(truth.mdp.pairs, rules.ravel()))
        gain = performance(truth.mdp, truth.behavior) - before
        wrong += NodeRobust(delta=delta).certify(problem, better).lower > gain
        if seed % 5 == 0:
            both = replace(problem, behavior=Policy(pairs, rules.ravel()))
            wrong_with_tails += NodeStitched(delta=delta).certify(both, better).lower > gain
    assert wrong <= stats.binom.isf(1e-6, logs, delta)
    assert wrong_with_tails <= stats.binom.isf(1e-3, logs // 5, delta)


def test_factored_spibb_is_near_the_best_where_flat_spibb_has_hardly_begun():
    world, truth = SysAdmin(5), sysadmin(5)
    log = world.sample(world.first_failed(0.3), 20, rng=1)
    problem = world.problem(log)
    behavior = problem.behavior.chances(np.argwhere(np.ones((2,) * 5))).ravel()
    keeps = improve_on_nodes(SPIBB(n_wedge=10**6), problem)
    # Where all machines have failed, nothing is random, and no data are needed.
    np.testing.assert_allclose(keeps.probability[6:], behavior[6:], atol=1e-12)
    policy = improve_on_nodes(SPIBB(n_wedge=10), problem)
    best = performance(truth.mdp, improve_on_nodes(BasicRL(), problem).probability)
    gained = performance(truth.mdp, policy.probability)
    assert gained == pytest.approx(best, rel=0.02)
    assert gained > performance(truth.mdp, behavior) + 3


def test_worlds_without_a_table_are_refused():
    world = SysAdmin(30)
    problem = world.problem(world.sample(world.first_failed(0.3), 2, rng=1))
    with pytest.raises(InvalidParameter, match="at least 33,285,996,544 rows, expected at most"):
        NodeRobust().certify(problem, world.fewest_failed_neighbours())
    small = posed(log_of_draws([30]))
    for wrong in ({"discount": 0.0}, {"horizon": 3}, {"behavior": None}):
        with pytest.raises(InvalidParameter, match="a discount above 0, and no horizon"):
            NodeTable.of(replace(small, **wrong))
