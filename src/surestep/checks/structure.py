"""Does a column depend on something that the structure of the log leaves out?

**What is assumed** (`certificates.nodes`): given everything known up to (s, a), and the next
columns decided earlier in the step, a column has the law of its node. So whatever was known before
a draw must not tell it beyond its node. These are the left-out variables:

- every column of the state now, and every next column (and the end) that was decided before;
- the action;
- of columns that share their nodes, which one it is;
- the place in the log: rows from 2ᵏ to 2ᵏ⁺¹, for a law that changes over time.

In a group, its own columns and the actions that belong to one of its members are told by their
offset in the order of the ring. Groups of more than 40 members look at the 8 nearest on both sides.

**The test.** The rows of a node with the value v of a variable z are compared with its other rows.
With counts n there, and m elsewhere,

    E = KT(n) · KT(m) / ML(n + m),    ML(c) = Π_x (c_x / Σc)^{c_x},
    KT(n) = Γ(V/2) / Γ(½)^V · Π_x Γ(n_x + ½) / Γ(Σn + V/2)    (Krichevsky and Trofimov 1981).

**Proof** (universal inference: Wasserman, Ramdas and Balakrishnan 2020). Let θ be the law of the
node. KT(n) · KT(m) is a product of predictive chances, one a draw: for each draw z is known before,
and so are the earlier draws of its kind. So W = KT(n) · KT(m) / Π_x θ_x^{n_x + m_x} is a
nonnegative martingale from 1, whatever the logger does with the past, and E ≤ W as no law makes the
draws more likely than their frequencies. By Ville's inequality P(W ever reaches 1/β) ≤ β, wherever
in the log one stops. With β = α/M for each of the M comparisons that the structure makes possible,
whether the log shows them or not: P(the largest E ≥ M/α) ≤ α. Rows may be in neither count if that
is decided before the draw: so are those where an earlier column of a ring has no value yet. ∎

**Where a stack stops.** Only rows before the first entry of a node that nobody saw count. Whether
an entry is seen may be decided by what it was, so this place is no stopping time, and the mean of W
may be above 1 there: if a fair draw of 1 at z = v is never seen, then n is a run of 0s, and with
the others known W has an infinite mean. So the largest E is compared, and not the mean of all: what
Ville says holds at every place. A missing column of the state has none of its values. A variable of
the next state that is missing in any row of a node, maybe for what came later, is not compared.

The blocks of the log double, as parts of its length would not be known before its end.

**What it would notice**: see `noticed_change`. **Where it says nothing**: see `blind_share`.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

import surestep._arrays as arrays
from surestep._words import number, percent
from surestep.certificates.node_law import (
    LEFT_OVER,
    before_stops,
    estimated_law,
    log_kt,
    node_draws,
    rolled_out,
    sampled_log,
)
from surestep.checks.check import Check, CheckKind
from surestep.model.factored import ColumnRules, FactoredLog, FactoredProblem
from surestep.model.structure import ACTION, END, HERE, LEFT, NEXT, REWARD, RIGHT, Structure

LEVEL = 0.05  # the chance that the test fails though the structure is true, at most
FEW = 250  # rows of a node with a value; with fewer, the test notices next to nothing
MOST_BLIND = 0.05  # share of the steps of the new policy
DRAWN = 1000  # rollouts that say what such an effect is worth
NEAREST = 8  # members on each side that are compared …
MANY = 40  # … in groups with more than that
FIRST_ROWS = 1024  # the first block of the log; blocks double in length
BLOCKS = 16
POWER = 0.84  # standard deviations below the mean that four of five logs exceed
FINE = 1001  # how many changes of a chance are tried
ROLLOUTS = 300
MOST_STEPS = 1000  # of a rollout
ERRORS = 3  # standard errors of rollouts by which a claim may exceed the best guess


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The comparison with the strongest evidence against a structure.

    Parameters
    ----------
    node : str
        The node.
    variable : str
        The variable that the node leaves out.
    value : str
        The value at which rows are compared with the other rows of the node.
    drawn : str
        The value of the node's column of which the chances differ most.
    chance : float
        Its frequency among these rows.
    elsewhere : float
        Its frequency among the others.
    rows : int
        The number of these rows.
    others : int
        The number of the others.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from surestep.checks import check_structure
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> world = SysAdmin(4)
    >>> alone = {"machine_*": {"parents": ["@"], "action": {"reboot": "reboot_@"}}}
    >>> log = world.sample(world.first_failed(0.3), 100, rng=1)
    >>> worst = check_structure(replace(log, structure=world.structure(alone))).worst
    >>> worst.node, worst.variable, worst.value
    ('machine_*: @ works, action other', '@right', 'failed')
    """

    node: str
    variable: str
    value: str
    drawn: str
    chance: float
    elsewhere: float
    rows: int
    others: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureTest:
    """The outcome of the test of a structure on a log.

    Parameters
    ----------
    tests : int
        The number M of comparisons that the structure makes possible.
    evidence : float
        The natural logarithm of the largest e-value over M; −∞ where nothing was compared.
    worst : LeftOut or None
        The comparison with the largest e-value.
    notices : float or None
        The smallest change of a chance that four of five logs would show, if it concerns 250 rows
        of the median node; None if none would. It is approximate.
    blind : float or None
        The share of the new policy's steps of which the log shows too little; None without one.
    blind_before : float or None
        The share of the current policy's steps that meet a node with fewer than 250 rows; None
        where it is not told.

    Examples
    --------
    >>> from surestep.checks import check_structure
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> world = SysAdmin(3)
    >>> found = check_structure(world.sample(world.first_failed(0.3), 300, rng=1))
    >>> found.failed, found.tests, round(found.notices, 1)
    (False, 84, 0.2)
    """

    tests: int
    evidence: float
    worst: LeftOut | None
    notices: float | None
    blind: float | None = None
    blind_before: float | None = None

    @property
    def failed(self) -> bool:
        """Tells whether the log speaks against the structure, at the level of 0.05."""
        return self.evidence >= -math.log(LEVEL)

    @property
    def is_blind(self) -> bool:
        """Tells whether too many steps of either policy are where the test notices nothing."""
        return max(self.blind or 0.0, self.blind_before or 0.0) > MOST_BLIND


class Variable(NamedTuple):
    """A variable that the structure leaves out: some columns are said not to depend on it."""

    name: str
    values: Sequence[str]
    place: arrays.IntArray | None = None  # [n] column of `values`; −1 if it is decided later
    of_action: arrays.IntArray | None = None  # [n, A] its value for each action
    now: bool = True  # whether a new policy can change its values

    @property
    def comparisons(self) -> int:
        """Returns how many values are compared with the rest; one, if there are only two."""
        return len(self.values) - (len(self.values) < 3)

    def at(self, i: int, values: arrays.IntArray, action: arrays.IntArray) -> arrays.IntArray:
        """Returns the value of the variable in each row, for the i-th column; −1 if missing."""
        if self.place is not None:
            return np.asarray(values[:, self.place[i]])
        if self.of_action is not None:
            return np.asarray(self.of_action[i, action])
        block = np.frexp(np.arange(action.size) // FIRST_ROWS)[1]
        return np.asarray(np.minimum(block, BLOCKS - 1))


class Compared(NamedTuple):
    """Counts of the values that columns with shared nodes drew, by every left-out variable."""

    columns: arrays.IntArray  # [n] their places in the order of decisions
    nodes: arrays.IntArray  # [k] the nodes with draws
    draws: arrays.FloatArray  # counts [k, values of a node] of all rows
    tests: int
    tables: Sequence[tuple[Variable, arrays.FloatArray]]  # counts [k, 1 + values, values of a node]


def check_structure(
    log: FactoredLog,
    policy: ColumnRules | None = None,
    discount: float = 1.0,
    start: Sequence[int] | None = None,
    seed: int = 0,
    *,
    behavior: ColumnRules | None = None,
) -> StructureTest:
    """Tests whether a column depends on something that its structure leaves out.

    Parameters
    ----------
    log : FactoredLog
        The log, with its structure.
    policy : ColumnRules, optional
        The new policy, to tell where it goes.
    discount : float, default 1.0
        The discount γ of its steps.
    start : sequence of int, optional
        The one state in which episodes start, if it is known; else starts of the log are drawn.
    seed : int, default 0
        The seed of its rollouts.
    behavior : ColumnRules, optional
        The current policy. It made the log, so only the rows of its nodes are counted, and not
        those of what they leave out.

    Returns
    -------
    StructureTest
        The evidence against the structure, and what it could have shown.

    Examples
    --------
    >>> from surestep.checks import check_structure
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> world = SysAdmin(3)
    >>> log = world.sample(world.first_failed(0.3), 300, rng=1)
    >>> tested = check_structure(log, world.fewest_failed_neighbours(), 0.95, (1, 1, 1))
    >>> tested.failed, tested.is_blind
    (False, False)
    """
    units = compared(log)
    tests = sum(unit.tests for unit in units)
    largest, worst = -math.inf, None
    for unit in units:
        for variable, counts in unit.tables:
            evidence = log_e_values(variable, counts)
            if evidence.max(initial=-math.inf) > largest:
                largest = float(evidence.max())
                place = np.unravel_index(evidence.argmax(), evidence.shape)
                worst = told(log.structure, unit, variable, counts, place)
    draws = (total for unit in units for total in unit.draws)
    totals = sorted(draws, key=lambda total: float(total.sum()))
    bar = math.log(max(tests, 1) / LEVEL)
    share = partial(blind_share_of, log, discount=discount, start=start, seed=seed)
    nodes_alone = [unit._replace(tables=[]) for unit in units]
    return StructureTest(
        tests=tests,
        evidence=largest - math.log(max(tests, 1)),
        worst=worst,
        notices=noticed_change(totals[len(totals) // 2], bar) if totals else None,
        blind=None if policy is None else share(units, policy),
        blind_before=None if behavior is None else share(nodes_alone, behavior),
    )


def compared(log: FactoredLog) -> list[Compared]:
    """Counts how often each draw of a log occurs, by every left-out variable."""
    structure, values = log.structure, log.values()
    stacks, when = node_draws(log)
    node, drawn = log.draws()
    kept = arrays.marked(when[before_stops(stacks)], node.size)
    node = np.where(kept.reshape(node.shape), node, -1)
    units = []
    firsts = np.append(np.unique(structure.nodes.first), structure.num_nodes)
    for first, end in itertools.pairwise(firsts.tolist()):
        columns = np.flatnonzero(structure.nodes.first == first)
        size = int(structure.node_sizes[first])
        if size == 1:
            continue
        variables = left_out(structure, columns)
        seen = np.unique(node[:, columns])
        seen = seen[seen >= 0]
        tables = [(z, np.zeros((seen.size, len(z.values) + 1, size))) for z in variables]
        for i, column in enumerate(columns):
            rows = np.flatnonzero(node[:, column] >= 0)
            local = np.searchsorted(seen, node[rows, column])
            for variable, table in tables:
                if variable.place is None or variable.place[i] >= 0:
                    value = variable.at(i, values, log.action)[rows]
                    place = local * table.shape[1] * size + (value + 1) * size + drawn[rows, column]
                    table += np.bincount(place, minlength=table.size).reshape(table.shape)
        unknown = int((structure.known[first:end] < 0).sum())
        tests = unknown * sum(variable.comparisons for variable in variables)
        draws = tables[-1][1].sum(axis=1)  # every row lies in a block
        units.append(Compared(columns, seen, draws, tests, tables))
    return units


def left_out(structure: Structure, columns: arrays.IntArray) -> list[Variable]:
    """Returns the variables on which columns may depend, though their structure leaves them out.

    `columns` share their nodes. The last variable is the place in the log; of several columns, the
    one before it is the member.
    """
    width, number = len(structure.columns), columns.size
    names = [*structure.columns, END, REWARD]
    own, member = structure.target[columns], np.arange(number)
    variables = [
        Variable(names[place], structure.values[place], np.full(number, place))
        for place in range(width)
        if place not in own or number == 1
    ]
    variables += [
        Variable(
            NEXT + names[place], structure.values[place], np.full(number, width + place), now=False
        )
        for place in structure.target[: columns[0]].tolist()
    ]
    near = [*range(1, NEAREST + 1), *range(number - NEAREST, number)]
    for offset in near if number > MANY else range(1, number):
        other = (member + offset) % number
        signed = offset if 2 * offset <= number else offset - number
        name = {1: RIGHT, number - 1: LEFT}.get(offset, f"{HERE}{signed:+}")
        variables.append(Variable(name, structure.values[own[0]], own[other]))
        decided = np.where(other < member, width + own[other], -1)
        variables.append(Variable(NEXT + name, structure.values[own[0]], decided, now=False))
    variables.append(actions_of(structure, columns))
    if number > 1:
        variables.append(Variable(HERE, structure.values[own[0]], own))
        members = np.repeat(member[:, np.newaxis], structure.num_actions, axis=1)
        variables.append(
            Variable("which one", [names[place] for place in own], None, members, now=False)
        )
    ends = [0, *(FIRST_ROWS << k for k in range(BLOCKS - 1))]
    blocks = [f"{a + 1} to {b}" for a, b in itertools.pairwise(ends)]
    variables.append(Variable("rows", [*blocks, f"from {ends[-1] + 1}"], now=False))
    return variables


def actions_of(structure: Structure, columns: arrays.IntArray) -> Variable:
    """Returns the action as a variable; an action of one member is named by its offset and part."""
    number, actions = columns.size, structure.num_actions
    part = structure.nodes.part.reshape(-1, actions)[columns]
    belongs = part != np.array([[np.bincount(row).argmax()] for row in part])
    owned = (belongs.sum(axis=0) == 1) & (number > 1)
    owner = belongs.argmax(axis=0)
    offset = (owner - np.arange(number)[:, np.newaxis]) % number
    far = (number > MANY) & (offset > NEAREST) & (offset < number - NEAREST)
    relative = part[owner, np.arange(actions)] * (number + 1) + np.where(far, number, offset)
    code = np.where(owned, actions + relative, np.arange(actions))
    _, first, of_action = np.unique(code, return_index=True, return_inverse=True)
    labels = [structure.actions[place % actions] for place in first]
    name = ACTION
    if number > 1:
        name = f"{ACTION}, seen from {structure.columns[structure.target[columns[0]]]}"
    return Variable(name, labels, None, of_action.reshape(part.shape))


def steps_of(
    log: FactoredLog,
    policy: ColumnRules,
    discount: float,
    start: Sequence[int] | None = None,
    seed: int = 0,
) -> tuple[FactoredLog, arrays.FloatArray]:
    """Returns steps of a policy under the estimated law of the nodes, and how much each counts."""
    rng = np.random.default_rng(seed)
    starts = np.maximum(log.starts, 0) if start is None else np.array([start])
    first = starts[rng.integers(len(starts), size=ROLLOUTS)]
    weights = discount ** np.arange(MOST_STEPS, dtype=np.float64)
    most = int(np.count_nonzero(weights > LEFT_OVER))
    made = sampled_log(log.structure, estimated_law(log), policy, first, steps=most, rng=rng)
    return made, weights[arrays.ranges(0, arrays.run_lengths(made.offsets))]


def could_miss(problem: FactoredProblem, policy: ColumnRules) -> float:
    """Returns what a policy may lose by a parent that was not learnt and that the test missed.

    Let q and p be the shares of the value of a left-out variable among the draws of a node: in the
    steps of the policy, and in the log. If this value changes a chance there by ε, then the policy
    meets another law than the estimated one, by ε(q − p). For each value ε is the change that four
    of five logs would show in its rows (`noticed_change`), or all that is possible: in a long log
    less goes unnoticed, but as small a gain is proved there. Each learnt table is taken to be wrong
    by itself, in the direction that costs most, for all its nodes at once; what that costs comes
    from rollouts with and without it.

    Parameters
    ----------
    problem : FactoredProblem
        The whole log, with a structure of which tables were learnt.
    policy : ColumnRules
        The new policy.

    Returns
    -------
    float
        The most that one table may cost, a return.
    """
    structure, law = problem.structure, estimated_law(problem.log)
    steps = steps_of(problem.log, policy, problem.discount, problem.start)
    units = compared(problem.log)
    bar = math.log(max(sum(unit.tests for unit in units), 1) / LEVEL)
    first = np.resize(np.maximum(problem.starts, 0), (DRAWN, len(structure.columns)))

    def worth(law: arrays.FloatArray) -> float:
        returns, _ = rolled_out(problem, law[np.newaxis], policy, first, seed=0, rest=0.0)
        return float(returns.mean())

    usual, cost = worth(law), 0.0
    learnt = tuple(f"{table}: " for table in structure.learnt)
    for unit in units:
        if not any(structure.node_names[k].startswith(learnt) for k in unit.nodes):
            continue
        change = np.max(
            [missed_changes(unit, *table, bar, steps) for table in unit.tables if table[0].now],
            axis=0,
        )
        own = law[unit.nodes]
        for value in range(int(structure.node_sizes[unit.nodes[0]])):
            others = 1 - np.diff(own, axis=1, prepend=0.0)[:, value]
            moved = np.minimum(change / others, 1.0)[:, np.newaxis]
            other = law.copy()
            other[unit.nodes] += moved * ((np.arange(law.shape[1]) >= value) - own)
            cost = max(cost, usual - worth(other))
    return cost


def missed_changes(
    unit: Compared,
    variable: Variable,
    counts: arrays.FloatArray,
    bar: float,
    steps: tuple[FactoredLog, arrays.FloatArray],
) -> arrays.FloatArray:
    """Returns the largest ε(q − p) for each node of a unit, by the values of a variable."""
    made, weight = steps
    rows, values = counts[:, 1:].sum(axis=-1), made.values()
    met = np.zeros((len(rows) + 1, rows.shape[1]))  # the last row: nodes that were never drawn
    for i, d in enumerate(unit.columns.tolist()):
        place = arrays.places_among(unit.nodes, made.structure.nodes.at(d, values, made.action))
        np.add.at(met, (place, variable.at(i, values, made.action)), weight)
    met = met[:-1]
    excess = met / np.maximum(met.sum(axis=1, keepdims=True), LEFT_OVER)  # no step counts less
    excess -= rows / np.maximum(rows.sum(axis=1, keepdims=True), 1)
    largest = np.zeros(len(rows))
    for k, z in np.argwhere(excess > 0):
        noticed = noticed_change(unit.draws[k], bar, float(rows[k, z]))
        largest[k] = max(largest[k], excess[k, z] * (1.0 if noticed is None else noticed))
    return largest


def log_ml(counts: arrays.FloatArray) -> arrays.FloatArray:
    """Returns ln ML of counts [..., V]."""
    rows = counts.sum(axis=-1)
    return np.asarray(xlogy(counts, counts).sum(axis=-1) - xlogy(rows, rows))


def log_e_value(there: arrays.FloatArray, total: arrays.FloatArray) -> arrays.FloatArray:
    """Returns ln E of counts [..., V] at a value, among those of all rows that are compared."""
    return log_kt(there) + log_kt(total - there) - log_ml(total)


def noticed_change(total: arrays.FloatArray, bar: float, few: float = FEW) -> float | None:
    """Returns the least change of a chance that four of five logs show; None if none is shown.

    `total` has the counts of the draws of a node. Suppose that in `few` of its rows, or in half of
    them if that is less, the chance of its rarest value is larger by ε, and that of its most
    frequent value smaller by ε.
    With the counts that are expected, let R be ML(n) · ML(m) / ML(n + m). Twice its logarithm is
    about noncentral χ², so that ln E is about normal with the variance 2 ln R. So ε is noticed if
    ln E − 0.84 √(2 ln R) ≥ ln(M/α). That was so in 77 to 84 % of simulated logs.
    """
    rows = total.sum()
    there, chance = min(few, rows / 2), total / rows
    order = np.argsort(total)
    shift = np.zeros(total.size)
    shift[order[0]], shift[order[-1]] = 1.0, -1.0

    changes = np.linspace(0.0, chance.max(), FINE)
    counts, others = there * (chance + np.outer(changes, shift)), (rows - there) * chance
    ratio = log_ml(counts) + log_ml(others) - log_ml(counts + others)
    least = log_e_value(counts, counts + others) - POWER * np.sqrt(2 * np.maximum(ratio, 0.0))
    return float(changes[(least >= bar).argmax()]) if (least >= bar).any() else None


def log_e_values(variable: Variable, counts: arrays.FloatArray) -> arrays.FloatArray:
    """Returns ln E of every node at every value that is compared [k, comparisons]."""
    total = counts.sum(axis=1)
    there = counts[:, 1:][:, : variable.comparisons]
    evidence = log_e_value(there, total[:, np.newaxis])
    rows = there.sum(axis=-1)
    evidence[(rows == 0) | (rows == total.sum(axis=-1)[:, np.newaxis])] = -math.inf
    if variable.place is not None and not variable.now:
        evidence[counts[:, 0].sum(axis=-1) > 0] = -math.inf  # missing, perhaps by later draws
    return evidence


def told(
    structure: Structure,
    unit: Compared,
    variable: Variable,
    counts: arrays.FloatArray,
    place: Sequence[np.intp],
) -> LeftOut:
    """Returns a comparison with names and frequencies, to be shown."""
    node, value = place
    there = counts[node, value + 1]
    others = counts[node].sum(axis=0) - there
    rows, rest = int(there.sum()), int(others.sum())
    chance, elsewhere = there / max(rows, 1), others / max(rest, 1)
    most = int(np.abs(chance - elsewhere).argmax())
    return LeftOut(
        node=structure.node_names[unit.nodes[node]],
        variable=variable.name,
        value=variable.values[int(value)],
        drawn=structure.values[structure.target[unit.columns[0]]][most],
        chance=float(chance[most]),
        elsewhere=float(elsewhere[most]),
        rows=rows,
        others=rest,
    )


def blind_share(
    log: FactoredLog,
    policy: ColumnRules,
    discount: float,
    start: Sequence[int] | None = None,
    seed: int = 0,
) -> float:
    """Returns the share of a policy's discounted steps of which the log shows too little.

    Such a step has a node, and a value of a column or of the action, that less than 250 rows of the
    log have together. The member and the time do not count. Earlier draws of the same step do not
    either: with them 6 to 9 % of steps would be blind on SysAdmin with 8 or 20 machines and 300
    episodes, also of the policy that made the log, and without them at most 4 %. Steps are drawn
    from the estimated law of the nodes; a missing column of a start gets its first value.

    Parameters
    ----------
    log : FactoredLog
        The log, with its structure.
    policy : ColumnRules
        The new policy.
    discount : float
        The discount γ of its steps.
    start : sequence of int, optional
        The one state in which episodes start, if it is known; else starts of the log are drawn.
    seed : int, default 0
        The seed of the rollouts.

    Returns
    -------
    float
        The share.

    Examples
    --------
    >>> from surestep.checks import blind_share
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> world = SysAdmin(3)
    >>> policy, same = world.fewest_failed_neighbours(), world.first_failed(0.3)
    >>> logs = [world.sample(same, episodes, rng=1) for episodes in (5, 500)]
    >>> [round(blind_share(log, policy, 0.95, (1, 1, 1)), 1) for log in logs]
    [0.3, 0.0]
    """
    return blind_share_of(log, compared(log), policy, discount=discount, start=start, seed=seed)


def blind_share_of(
    log: FactoredLog,
    units: Sequence[Compared],
    policy: ColumnRules,
    *,
    discount: float,
    start: Sequence[int] | None,
    seed: int,
) -> float:
    """Returns the share of steps with a node, or a value there, that the log shows too seldom."""
    structure = log.structure
    made, weight = steps_of(log, policy, discount, start, seed)
    values = made.values()
    blind = np.zeros(made.num_steps, np.bool_)
    for unit in units:
        rare = np.append(unit.draws.sum(axis=1) < FEW, True)
        few = [
            (variable, np.vstack([counts.sum(axis=-1) < FEW, np.ones(counts.shape[1], np.bool_)]))
            for variable, counts in unit.tables
            if variable.now
        ]
        for i, d in enumerate(unit.columns.tolist()):
            node = structure.nodes.at(d, values, made.action)
            drawn = structure.known[node] < 0
            place = arrays.places_among(unit.nodes, node)  # −1, the last row, where never drawn
            blind |= drawn & rare[place]
            for variable, table in few:
                blind |= drawn & table[place, variable.at(i, values, made.action) + 1]
    return float(weight @ blind / weight.sum())


# ---- as lines of a page -------------------------------------------------------------------------


def checks_of(
    test: StructureTest, lower: float | None, estimates: Mapping[str, float]
) -> list[Check]:
    """Returns the checks of a result that rests on a structure, whose gain was estimated."""
    worst = test.worst if test.failed else None
    compared = {"tests": float(test.tests)}
    if worst is not None:
        compared = {name: float(getattr(worst, name)) for name in KINDS[0].figures}
    before = {} if test.blind_before is None else {"before": test.blind_before}
    gain = estimates["policy"] - estimates["behavior"]
    above = max(gain, 0.0) + ERRORS * estimates.get("error", 0.0)
    shown = [
        Check(
            code="structure",
            outcome="failed" if test.failed else "passed",
            figures=compared,
            noticed=test.notices,
            signal=None
            if worst is None
            else f"{worst.node} leads to {worst.drawn} where {worst.variable} = {worst.value}",
        ),
        Check(
            code="blind-structure",
            outcome="failed" if test.is_blind else "passed",
            figures={"new": test.blind or 0.0, **before},
        ),
        Check.failing(
            "claim-above-guess", (lower or 0.0) > above, claim=lower or 0.0, estimate=gain
        ),
    ]
    return [*filter(None, shown)]


def compared_words(check: Check) -> str:
    """Says how much was compared, and which effect the test would have noticed."""
    power = (
        "The log is too small for a test that would notice much."
        if check.noticed is None
        else f"The test would notice a chance that changes by {number(check.noticed, 2)} or more, "
        f"in four of five logs, where {FEW} rows have that value."
    )
    return f"{int(check.figures['tests']):,} comparisons found no further dependence. {power}"


def blind_words(check: Check) -> str:
    """Says how often the policies go where nothing can be tested."""
    before = check.figures.get("before")
    current = (
        f"In {percent(before)} of its steps the current policy meets a part of the world that the "
        f"log shows fewer than {FEW} times. "
        if before
        else ""
    )
    return (
        f"In {percent(check.figures['new'])} of its steps the new policy meets a combination that "
        f"the log shows fewer than {FEW} times: a missing parent would go unnoticed there. "
        f"{current}More than {percent(MOST_BLIND)} is neither called proved nor believed. A pilot "
        "needs no structure."
    )


KINDS = (
    CheckKind(
        code="structure",
        title="What depends on what is as the structure says",
        broken="The log contradicts the structure",
        passed=compared_words,
        failed="That was so in {chance:%} of {rows:row}, and in {elsewhere:%} of {others:row} with "
        "another value there: it depends on more than its parents. Add the missing parent, or "
        "split what is shared, and run the command again.",
        figures=("chance", "rows", "elsewhere", "others"),
        figures_also=(("tests",),),
        against="structure-true",
        asks=True,
    ),
    CheckKind(
        code="blind-structure",
        title="The log has been where the policies go",
        broken="The log has hardly been where the policies go",
        failed=blind_words,
        figures=("new",),
        figures_also=(("new", "before"),),
        asks=True,
    ),
    CheckKind(
        code="claim-above-guess",
        title="The claim is clearly above the best guess",
        failed="A gain of at least {claim} is claimed, but only {estimate} is estimated: the "
        "structure, the data or stakes.returns may be wrong. Find out which.",
        figures=("claim", "estimate"),
        asks=True,
    ),
)
