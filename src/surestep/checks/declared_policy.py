"""Does the log take actions with the chances that were declared for the current policy?

Without any doubt about the chances θ that were declared, a gambler who starts with 1 and predicts
every action by those before it multiplies his wealth by q(a)/θ(a) each time: on average by
Σ_a θ(a) q(a)/θ(a) ≤ 1. In a part j of the log, with n_a times the action a of V possible ones, the
predictions (n_a + ½)/(n + V/2) lead to

    W_j = KT(n) / Π_a θ_a^{n_a}    (Krichevsky and Trofimov 1981).

**Parts.** He bets the share ε on each part, and keeps the rest: Π_j (1 − ε + ε W_j). Every bet
changes one factor, so this is a nonnegative supermartingale that starts at 1, whatever people did
before, and wherever the log stops. So is a mean of such wealths: over ε from nearly 1 (all parts
are a little off) to 1 in 10,000 (one part is far off), and over cuts of the log: as a whole, and by
situations, where 90 : 10 here and 10 : 90 there do not cancel out.

**Digits.** 0.33 may stand for a third. In a cell, where one law was declared, the true chances are
at most the written ones and half a unit of their last digit, and sum to at most 1. The largest
likelihood L of such chances replaces that of the true ones, so that wealth can only fall. By
Lagrange duality, for every λ ≥ 0 and the shares s_a = min(high_a, n_a/λ),

    ln L ≤ Σ_a n_a ln s_a + λ (1 − Σ_a s_a).

**Level.** By Ville's inequality P(wealth ever reaches 1/α) ≤ α. ∎ Rows may be left out if that was
decided before their action. Chances of rows, which a logger who learns may change at will, are
cells of their own.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

import surestep._arrays as arrays
from surestep.checks.check import Check, CheckKind
from surestep.model import ColumnRules, FactoredLog, Problem

LEVEL = 0.001
SHARES = (0.999, 0.1, 0.01, 0.001, 0.0001)  # ε
SAME = 1e-7  # a number of single precision has the digits of the nearest short one
HALVINGS = 60  # of the range of λ


class Decisions(NamedTuple):
    """Actions that a log took, and the chances that were declared for them, in n entries."""

    cuts: Sequence[arrays.IntArray]  # [n] the part that an entry lies in, one array a cut
    law: arrays.IntArray  # [n] entries of a law and a part are a cell
    action: arrays.IntArray  # [n]
    taken: arrays.FloatArray  # [n] how often
    chance: arrays.FloatArray  # [n] as declared
    high: arrays.FloatArray  # [n] the largest chance that its digits allow
    choices: int  # V
    name: Callable[[int, int], str]  # of an entry's action and part, in a cut


def of_problem(problem: Problem, behavior: str) -> Decisions | None:
    """Returns the decisions as a whole and by states; None if no chances were declared.

    `behavior` says where the policy comes from. Where rows name chances, each has its own law.
    """
    pairs, log = problem.counts.pairs, problem.episodes
    pair: arrays.IntArray = np.flatnonzero(problem.counts.visits)
    law, chance = pairs.state[pair], problem.behavior.probability[pair]
    taken = problem.counts.visits[pair].astype(np.float64)
    if problem.behavior_is_estimated:
        if log is None or log.propensity is None:
            return None
        pair, chance = log.pair, log.propensity
        law, taken = np.arange(pair.size), np.ones(pair.size)
    state, action = pairs.state[pair], pairs.action[pair]
    return Decisions(
        [np.zeros_like(state), state],
        law,
        action,
        taken,
        chance,
        chance if behavior == "uniform" else highest(chance, chance),
        pairs.num_actions,
        lambda cut, entry: (
            pairs.pair_name(pair[entry]) if cut else pairs.action_name(action[entry])
        ),
    )


def of_rules(log: FactoredLog, rules: ColumnRules, source: str) -> Decisions:
    """Returns the decisions as a whole, by each column, and by all columns.

    `source` is that of the current policy. Rules have a law for each member; their digits are those
    of the chance of a random action.
    """
    structure = log.structure
    rule, member_action = rules.deciding(log.state)
    law = rule * structure.num_actions + member_action
    chance = rules.chances(log.state)[np.arange(log.num_steps), log.action]
    if source == "propensities" and log.propensity is not None:
        chance = log.propensity  # known also where the part that chose the policy shows none
    # States with the same sum would be one part: that has hardly a chance, and does no harm.
    mixed = log.state @ np.random.default_rng(0).integers(2**62, size=len(structure.columns))
    whole = np.unique(mixed, return_inverse=True)[1]
    code = (whole * (law.max() + 1) + law) * structure.num_actions + log.action
    _, row, taken = np.unique(code, return_index=True, return_counts=True)
    state, action, chance = log.state[row], log.action[row], chance[row]
    high = chance
    if source != "uniform":
        high = highest(chance, rules.chance[rule[row]] if source == "rules" else chance)

    def name(cut: int, entry: int) -> str:
        said = [
            f"{column} = {values[code] if code >= 0 else 'missing'}"
            for column, values, code in zip(
                structure.columns, structure.values, state[entry], strict=False
            )
        ]
        shown = {0: [], len(said) + 1: said}.get(cut, said[cut - 1 : cut])
        return ", ".join([*shown, f"action {structure.actions[action[entry]]}"])

    return Decisions(
        [np.zeros_like(row), *state.T, whole[row]],
        law[row],
        action,
        taken.astype(np.float64),
        chance,
        high,
        structure.num_actions,
        name,
    )


def highest(chance: arrays.FloatArray, written: arrays.FloatArray) -> arrays.FloatArray:
    """Returns the largest chances [n] that the digits of a number [n] allow; 0 is always meant."""
    digits = 1 + sum(np.abs(np.round(written, d) - written) > SAME for d in range(1, 6))
    half = 0.5 * 10.0 ** -np.where(written <= SAME, 6, digits)
    return np.minimum(chance + half, 1.0)


def log_most_likely(
    cell: arrays.IntArray, taken: arrays.FloatArray, high: arrays.FloatArray
) -> arrays.FloatArray:
    """Returns ln L of each cell: chances are at most `high` [n], and sum to at most 1."""
    low = np.zeros(cell.max() + 1)
    top = np.bincount(cell, taken)
    for _ in range(HALVINGS):
        middle = (low + top) / 2
        above = np.bincount(cell, np.minimum(high, taken / middle[cell])) > 1
        low = np.where(above, middle, low)
        top = np.where(above, top, middle)
    share = np.minimum(high, taken / top[cell])
    return np.asarray(
        np.bincount(cell, taken * np.log(share)) + top * (1 - np.bincount(cell, share))
    )


def log_wealths(made: Decisions, part: arrays.IntArray) -> arrays.FloatArray:
    """Returns ln W of each part [J]; parts [n] are numbered from 0."""
    laws = int(made.law.max()) + 1
    codes, first, entry = np.unique(
        (part * np.int64(laws) + made.law) * made.choices + made.action,
        return_index=True,
        return_inverse=True,
    )
    taken = np.bincount(entry, made.taken).astype(np.float64)
    cells, cell = np.unique(codes // made.choices, return_inverse=True)
    kinds, kind = np.unique(part[first] * made.choices + made.action[first], return_inverse=True)
    terms = gammaln(np.bincount(kind, taken) + 0.5) - gammaln(0.5)
    predicted = np.bincount(kinds // made.choices, terms) + gammaln(made.choices / 2)
    predicted -= gammaln(np.bincount(part, made.taken) + made.choices / 2)
    return np.asarray(
        predicted - np.bincount(cells // laws, log_most_likely(cell, taken, made.high[first]))
    )


def check(made: Decisions | None) -> tuple[Check, ...]:
    """Returns a failed check if wealth reaches 1/α, with where most was won; else none."""
    if made is None:
        return ()
    cuts = [np.unique(cut, return_inverse=True)[1] for cut in made.cuts]
    won = [log_wealths(made, part) for part in cuts]
    wealth = [
        logsumexp([np.logaddexp(np.log1p(-e), np.log(e) + parts).sum() for e in SHARES])
        for parts in won
    ]
    if logsumexp(wealth) < math.log(len(wealth) * len(SHARES) / LEVEL):
        return ()
    cut = int(np.argmax(wealth))
    inside = np.flatnonzero(cuts[cut] == np.argmax(won[cut]))
    action, taken = made.action[inside], made.taken[inside]
    times = np.bincount(action, taken)[action]
    declared = np.bincount(action, taken * made.chance[inside])[action] / times
    most = int(np.argmax(times / taken.sum() - declared))
    return (
        Check(
            code=KIND.code,
            outcome="failed",
            figures={
                "logged": float(times[most] / taken.sum()),
                "declared": float(declared[most]),
                "decisions": float(taken.sum()),
            },
            signal=made.name(cut, int(inside[most])),
        ),
    )


KIND = CheckKind(
    code="declared-policy",
    title="Actions were taken with the declared chances",
    broken="The log does not follow the declared policy",
    failed="The action was taken in {logged:%} of {decisions:decision} there, and {declared:%} was "
    "declared. A gain over the declared policy may be none over what people do. Correct "
    "behavior.policy, or the recorded probabilities; or have the policy estimated: behavior.policy "
    '= "estimate".',
    aside="It fails where bets against the declared chances win 1,000 times their stake; a chance "
    "is known within its digits.",
    figures=("logged", "declared", "decisions"),
    forbids_proof=lambda check, certificate: True,
    asks=True,
    of_result=lambda result: next(iter(result.declared), None),
)
