"""How often a posterior claim of held-out data is wrong, by size of problem and kind of rewards.

    python benchmarks/posterior.py [--table sizes noise] [--repetitions 200] [--states 10 700]
                                   [--prior cautious]

Worlds are drawn at random: every state leads to a few others, with chances that are drawn for each
action, and one step in twenty ends the episode. "Effects" is the share of the differences between
actions that is kept. The behavior policy is drawn, too, and makes two logs of the same size. SPIBB
(N∧ = 5) chooses a policy from one; the posterior, by default with its default prior, claims a gain
from the other, and the claim is held against the truth at δ = 0.1. Every repetition has a world of
its own; there are fewer of them for more than 30 states, and at least 10. Nobody knows the rewards:

exact          what a step pays depends on where it leads
two-point      0 or 1, with a mean that depends on the pair and on where the step leads
gains, losses  the same means, but as +20 or −20, rarely
heavy          the same means, with a Pareto tail of index 2.1, as gains and as losses
ends           0 or 1, paid at the end of the episode only

A cell is refuted where an exact binomial test says so. If all promises were kept, it would say so
of a cell of the table in 5 % of runs.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from surestep import (
    DecisionLog,
    FiniteMDP,
    Pairs,
    Policy,
    Problem,
    certify,
    performance,
    sample_log,
)
from surestep.algorithms import SPIBB
from surestep.certificates import Posterior
from surestep.certificates.prior import PriorName
from surestep.offpolicy.intervals import lower_limit

# The arguments of the quickest run.
SMALLEST = ("--repetitions", "1", "--states", "10", "10", "--draws", "9")
DELTA, DISCOUNT, ENDING, HORIZON, N_WEDGE = 0.1, 0.95, 0.05, 50, 5
FALSE_ALARMS = 0.05  # of a whole table
RARE, TAIL = 20.0, 2.1  # the size of a rare reward, the index of a heavy tail
NOISE = ("two-point", "gains", "losses", "heavy gains", "heavy losses", "ends")
SIZES = (
    (10, 2, 2), (10, 2, 10), (10, 5, 2), (10, 25, 2), (10, 25, 10), (30, 2, 2), (30, 5, 10),
    (30, 25, 10), (100, 2, 2), (100, 5, 10), (100, 25, 50), (300, 2, 2), (300, 5, 10),
    (700, 2, 2), (700, 5, 10), (700, 25, 50),
)  # fmt: skip


class Cell(NamedTuple):
    """What worlds and logs look like."""

    states: int
    actions: int
    successors: int
    visits: int  # of a pair, on average, in each of the two logs
    effects: float
    rewards: str


class World(NamedTuple):
    """A model with mean rewards, and the policy that makes its logs."""

    mdp: FiniteMDP
    behavior: Policy


def draw_world(cell: Cell, rng: np.random.Generator) -> World:
    """A world of the cell; its last state is the end."""
    size, actions, width = cell.states, cell.actions, cell.successors
    successor = np.stack([rng.choice(size, width, replace=False) for _ in range(size)])
    successor = np.column_stack([np.sort(successor, axis=1), np.full(size, size)])
    chances = differing(rng.dirichlet(np.ones(width), (size, actions)), cell.effects)
    chances = np.concatenate([(1 - ENDING) * chances, np.full((size, actions, 1), ENDING)], axis=2)
    prize = rng.random(size + 1)[successor][:, np.newaxis]
    own = differing(rng.random((size, actions, 1)), cell.effects)
    reward = {
        "exact": np.broadcast_to(prize, chances.shape),
        "ends": np.where(successor[:, np.newaxis] == size, own, 0.0),
    }.get(cell.rewards, (own + prize) / 2)
    last = size * actions
    pairs = Pairs(
        np.append(np.arange(size + 1) * actions, last + 1),
        np.append(np.tile(np.arange(actions), size), 0),
        actions,
    )
    mdp = FiniteMDP(
        pairs,
        np.append(np.arange(last + 1), last) * (width + 1),
        np.repeat(successor, actions, axis=0).ravel(),
        chances.ravel(),
        reward.ravel() * (-1 if "losses" in cell.rewards else 1),
        np.full(last + 1, DISCOUNT),
        np.append(np.full(size, 1 / size), 0.0),
    )
    behavior = np.append(rng.dirichlet(np.ones(actions), size).ravel(), 1.0)
    return World(mdp, Policy(pairs, behavior))


def differing(table: np.ndarray, effects: float) -> np.ndarray:
    """The table, whose axis 1 is over actions, with this share of their differences."""
    return (1 - effects) * table.mean(axis=1, keepdims=True) + effects * table


def draw_log(world: World, cell: Cell, rng: np.random.Generator) -> DecisionLog:
    """A log with noisy rewards of the right means."""
    steps = cell.visits * cell.states * cell.actions
    episodes = max(1, round(steps * ENDING / (1 - (1 - ENDING) ** HORIZON)))
    log = sample_log(world.mdp, world.behavior, episodes, HORIZON, rng)
    size, sign = np.abs(log.reward), np.sign(log.reward)
    if cell.rewards == "exact":
        return log
    if cell.rewards.startswith("heavy"):
        noisy = size * rng.pareto(TAIL, size.size) * (TAIL - 1)
    else:
        top = RARE if cell.rewards in ("gains", "losses") else 1.0
        noisy = top * (rng.random(size.size) < size / top)
    return replace(log, reward=sign * noisy)


def problem_of(world: World, log: DecisionLog, rewards: tuple[float, float]) -> Problem:
    """What the log says, and that values lie between the least and the greatest reward for ever."""
    low, high = (each / (1 - DISCOUNT) for each in rewards)
    return Problem(
        counts=log.counts(), behavior=world.behavior, discount=DISCOUNT, value_bounds=(low, high)
    )


def claim_and_truth(
    cell: Cell, draws: int, seed: int, prior: PriorName = "cautious"
) -> tuple[float, float]:
    """L of a log, for a policy of another one; and what it gains."""
    rng = np.random.default_rng([seed, *cell[:4]])
    world = draw_world(cell, rng)
    logs = [draw_log(world, cell, rng) for _ in range(2)]
    ranges = [(min(0.0, log.reward.min()), max(1e-3, log.reward.max())) for log in logs]
    chosen, judged = (problem_of(world, log, each) for log, each in zip(logs, ranges, strict=True))
    policy = SPIBB(n_wedge=N_WEDGE).improve(chosen).policy
    certifier = Posterior(delta=DELTA, draws=draws, seed=seed, prior=prior)
    if cell.rewards != "exact":
        low, high = ranges[1]
        certifier = replace(certifier, rewards="bounded", reward_low=low, reward_high=high)
    lower = certify(judged, policy, certifier).lower
    gain = performance(world.mdp, policy) - performance(world.mdp, world.behavior)
    return float(lower or 0.0), float(gain)


def cells(table: str) -> Iterator[Cell]:
    """The cells of a table."""
    if table == "sizes":
        for size, visits, effects in product(SIZES, (10, 50), (1.0, 0.1)):
            yield Cell(*size, visits, effects, "exact")
    else:
        for rewards, states, visits, effects in product(
            NOISE, (10, 30), (2, 5, 20, 100), (1.0, 0.1)
        ):
            yield Cell(states, 3, 3, visits, effects, rewards)


def report(table: Sequence[Cell], repetitions: int, draws: int, prior: PriorName) -> None:
    """Prints a line for every cell, and how many are refuted."""
    heads = ("rewards", *Cell._fields[:-1], "wrong", "of", "positive", "mean L", "mean gain")
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    refuted = 0
    for cell in table:
        number = min(repetitions, max(10, round(repetitions * 30 / cell.states)))
        rows = [claim_and_truth(cell, draws, seed, prior) for seed in range(number)]
        lower, gain = np.array(rows).T
        wrong = int(np.count_nonzero(lower > gain))
        refuted += lower_limit(wrong, number, FALSE_ALARMS / len(table)) > DELTA
        figures = (cell.rewards, *cell[:-1], wrong, number, f"{np.mean(lower > 0):.0%}")
        means = f"{lower.mean():.3g} | {gain.mean():.3g}"
        print(f"| {' | '.join(map(str, figures))} | {means} |", flush=True)
    print(f"\nrefuted: {refuted} of {len(table)} cells")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--table", nargs="+", choices=("sizes", "noise"), default=["sizes", "noise"]
    )
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--states", type=int, nargs=2, default=(10, 700), help="least and most")
    parser.add_argument("--draws", type=int, default=99, help="models that a claim is drawn from")
    parser.add_argument("--prior", choices=("cautious", "weight", "pooled"), default="cautious")
    given = parser.parse_args()
    for name in given.table:
        least, most = given.states
        table = [cell for cell in cells(name) if least <= cell.states <= most]
        report(table, given.repetitions, given.draws, given.prior)


if __name__ == "__main__":
    main()
