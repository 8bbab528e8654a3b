"""Holds claims in worlds of nodes against the truth: true structures and wrong ones.

python tools/structures.py [--logs LOGS] [--write]

Prints the table of docs/coverage.md, or writes it there. The world is a ring of four machines
beside the weather, 32 states, whose exact values are known. A machine stays up with a chance of
0.9; one that is down comes up with 0.5, or if it is reset. A step earns 1 a machine that is up, and
a reset costs 0.5. Episodes have 30 steps, γ = 0.8, δ = 10 %. Today's policy takes any action in
half of the steps, else it waits; the new one resets the first machine that is down, or the worse
one always machine 0. A logger who learns resets more after good episodes, and less after poor
ones: then the log is not of today's policy, and no returns of practice are compared with. Without
effect, resets do nothing and cost nothing. In wrong structures bad weather or being machine 0 takes
away the share ε of the chance to be up, and that is left out. In the last ones today's policy acts
in good weather only, so that resets look good that do nothing. Learnt nodes have parents and parts
of the action from the part of the log that chooses. *Proved* are claims that no failed or blind
test of the structure forbids. Seeds are fixed.
"""

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from coverage_page import around_block
from surestep import DecisionLog, Policy, Problem, certify
from surestep.algorithms import learn_structure
from surestep.certificates import NodeRobust, NodeStitched, Stitched
from surestep.checks import check_structure
from surestep.model import FactoredLog, FactoredProblem, Pairs, Structure
from surestep.model.factored import ColumnRules
from surestep.parallel import available_cores, map_as_done

PAGE = Path(__file__).resolve().parent.parent / "docs" / "coverage.md"
SMALLEST = ["--logs", "1"]
MACHINES, STEPS, DISCOUNT, DELTA, COST = 4, 30, 0.8, 0.1, 0.5
STAYS, COMES, BAD = 0.9, 0.5, 0.5
ACTIONS = [*(f"reset_{i}" for i in range(MACHINES)), "wait"]
SMALL = 1e-9
LEARNT = ("machine_*", "weather")
UNKNOWN = {"parents": "learn", "action": "learn"}
STATES = np.array([*itertools.product(range(2), repeat=MACHINES + 1)])
START = (1,) * MACHINES + (0,)


class World(NamedTuple):
    """A ring of machines beside the weather, and who made its log."""

    name: str
    episodes: int
    effect: float = 0.0  # the part of the chance to be up that what is left out takes away
    left_out: str = ""  # "weather" or "members"
    works: bool = True  # whether a reset does something
    learns: bool = False  # whether today's policy looks at earlier episodes
    worse: bool = False  # whether the new policy is
    picks: bool = False  # whether today's policy acts in good weather only


WORLDS = (
    *(World("better policy", episodes) for episodes in (30, 100, 300)),
    World("better policy, a logger who learns", 100, learns=True),
    World("worse policy", 100, worse=True),
    World("without effect", 100, works=False),
    World("without effect, a logger who learns", 100, works=False, learns=True),
    World("wrong: bad weather matters, ε = 0.05", 100, 0.05, "weather"),
    World("wrong: bad weather matters, ε = 0.4", 100, 0.4, "weather"),
    World("wrong: machine 0 differs, ε = 0.4", 100, 0.4, "members"),
    *(
        World(
            f"wrong, without effect: the weather tells the action, ε = {effect}",
            2_000,
            effect,
            "weather",
            works=False,
            picks=True,
        )
        for effect in (0.4, 1.0)
    ),
)


def structure(world: World) -> Structure:
    """Returns what is said of the ring."""
    known = [{"action": "reset", "is": "up"}] if world.works else []
    return read(
        world,
        {
            "machine_*": {"parents": ["@"], "action": {"reset": "reset_@"}, "known": known},
            "weather": {"parents": [], "action": "none"},
        },
    )


def read(world: World, tables: dict[str, dict[str, object]]) -> Structure:
    """Returns the structure of tables for the columns, with the rewards of a world."""
    names = [f"machine_{i}" for i in range(MACHINES)]
    columns = dict.fromkeys(names, ("down", "up")) | {"weather": ("good", "bad")}
    price = -COST if world.works else 0.0
    terms = [{"of": "machine_*", "up": 1.0}, {"of": "action", "reset_*": price}]
    return Structure.read(columns, ACTIONS, tables | {"reward": {"terms": terms}})


def chance_up(world: World, state: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Returns the chance of each machine to be up next [N, machines]."""
    up = state[:, :MACHINES] == 1
    changed = np.zeros(up.shape)
    if world.left_out == "weather":
        changed += state[:, MACHINES:] == 1
    if world.left_out == "members":
        changed[:, 0] = 1
    chance = np.where(up, STAYS, COMES) * (1 - world.effect * changed)
    if world.works:
        chance = np.where(np.arange(MACHINES) == action[:, np.newaxis], 1.0, chance)
    return chance


def earned(world: World, state: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Returns the reward of steps."""
    price = COST if world.works else 0.0
    return state[:, :MACHINES].sum(axis=1) - price * (action < MACHINES)


def policies(world: World) -> tuple[ColumnRules, ColumnRules]:
    """Returns the new policy and today's."""
    said = structure(world)
    new = ColumnRules.of(said, [({"@": "down"}, "reset_@")], "wait", group="machine_*")
    if world.worse:
        new = ColumnRules.of(said, [], "reset_0")
    in_bad = [({"weather": "bad"}, "wait")] if world.picks else []
    return new, ColumnRules.of(said, in_bad, "wait", chance=[0.0, 0.5] if in_bad else 0.5)


def table_of(rules: ColumnRules) -> Policy:
    """Returns rules as a table over all states."""
    return Policy(Pairs.full(len(STATES), len(ACTIONS)), rules.chances(STATES).ravel())


def value(world: World, rules: ColumnRules) -> float:
    """Returns the exact value of a policy, by the whole matrix of the chain."""
    chain, reward = np.zeros((len(STATES), len(STATES))), np.zeros(len(STATES))
    chances = rules.chances(STATES)
    weather = np.where(STATES[:, MACHINES] == 1, BAD, 1 - BAD)
    for a in range(len(ACTIONS)):
        action = np.full(len(STATES), a)
        up = chance_up(world, STATES, action)[:, np.newaxis, :]
        after = STATES[np.newaxis, :, :MACHINES] == 1
        moved = np.where(after, up, 1 - up).prod(axis=2) * weather
        chain += chances[:, [a]] * moved
        reward += chances[:, a] * earned(world, STATES, action)
    values = np.linalg.solve(np.eye(len(STATES)) - DISCOUNT * chain, reward)
    return float(values[(STATES == START).all(axis=1).argmax()])


def logged(world: World, seed: int) -> FactoredLog:
    """Returns a log; a logger who learns doubts resets after poor episodes, and likes them else."""
    rng = np.random.default_rng([seed, world.episodes])
    state = np.empty((world.episodes, STEPS + 1, MACHINES + 1), np.int64)
    action = np.empty((world.episodes, STEPS), np.int64)
    state[:, 0] = START
    eager, usual = 0.5, 0.0
    # Episodes of a logger who does not look back are drawn at once.
    for block in np.arange(world.episodes).reshape(-1, 1 if world.learns else world.episodes):
        for t in range(STEPS):
            now = state[block, t]
            any_action = rng.random(block.size) < eager
            if world.picks:
                any_action &= now[:, MACHINES] == 0
            action[block, t] = np.where(
                any_action, rng.integers(len(ACTIONS), size=block.size), len(ACTIONS) - 1
            )
            up = rng.random((block.size, MACHINES)) < chance_up(world, now, action[block, t])
            bad = rng.random((block.size, 1)) < BAD
            state[block, t + 1] = np.hstack([up, bad])
        paid = earned(world, state[block, :-1].reshape(-1, MACHINES + 1), action[block].ravel())
        usual = 0.8 * usual + 0.2 * paid.mean()
        eager = (0.9 if paid.mean() > usual else 0.1) if world.learns else eager
    steps = world.episodes * STEPS
    return FactoredLog(
        structure=structure(world),
        state=state[:, :-1].reshape(steps, -1),
        action=action.ravel(),
        next_state=state[:, 1:].reshape(steps, -1),
        ended=np.zeros(steps, np.bool_),
        offsets=np.arange(world.episodes + 1) * STEPS,
    )


def flat_claim(world: World, log: FactoredLog, rules: tuple[ColumnRules, ColumnRules]) -> float:
    """Returns the claim of the stitched certificate that knows no structure."""
    digits = 2 ** np.arange(MACHINES + 1)[::-1]
    pairs = Pairs.full(len(STATES), len(ACTIONS))
    last = np.zeros(log.num_steps, np.bool_)
    last[log.offsets[1:] - 1] = True
    flat = DecisionLog(
        pairs=pairs,
        state=log.state @ digits,
        action=log.action,
        reward=earned(world, log.state, log.action),
        next_state=log.next_state @ digits,
        terminated=log.ended,
        truncated=last,
        episode_offsets=log.offsets,
    )
    new, today = (Policy(pairs, table_of(one).probability) for one in rules)
    bounds = (-COST / (1 - DISCOUNT), MACHINES / (1 - DISCOUNT))
    problem = Problem(
        counts=flat.counts(), behavior=today, discount=DISCOUNT, value_bounds=bounds, log=flat
    )
    terms = Stitched(return_low=bounds[0], return_high=bounds[1], known_start=True, practice=0.0)
    return certify(problem, new, terms).lower


def claims(task: tuple[World, int]) -> list[float]:
    """Returns four claims about one log, and whether its structure failed, and is blind."""
    world, seed = task
    log, (new, today) = logged(world, seed), policies(world)
    problem = FactoredProblem(log=log, behavior=today, discount=DISCOUNT, start=START)
    test = check_structure(log, new, DISCOUNT, START)
    stitched = NodeStitched(practice=0.0 if world.learns else NodeStitched().practice)
    found = learn_structure(stitched.parts(problem)[0].log, dict.fromkeys(LEARNT, UNKNOWN))
    learnt = replace(problem, log=replace(log, structure=read(world, found)))
    return [
        flat_claim(world, log, (new, today)),
        stitched.certify(problem, new).lower,
        NodeRobust().certify(problem, new).lower,
        stitched.certify(learnt, new).lower,
        test.failed,
        test.is_blind,
    ]


def lines(logs: int) -> Iterator[str]:
    """Yields the lines of the table."""
    kinds = ("flat", "nodes", "robust", "learnt nodes")
    yield (
        "| world | episodes | true gain | "
        + " | ".join(f"{kind}: wrong, gain proved" for kind in kinds)
        + " | structure fails, blind | nodes: *proved* and wrong |"
    )
    yield "| --- |" + " --- |" * (len(kinds) + 4)
    for world in WORLDS:
        new, today = policies(world)
        gain = value(world, new) - value(world, today)
        tasks = [(world, seed) for seed in range(logs)]
        found = map_as_done(claims, tasks, workers=available_cores())
        rows = np.array([row for _, row in found])
        cells = []
        for lower in rows[:, :4].T:
            share = np.mean(np.maximum(lower, 0)) / gain if gain > SMALL else np.nan
            proved = f"{share:.0%}" if gain > SMALL else f"{np.mean(lower > 0):.1%} of logs"
            cells.append(f"{np.mean(lower > gain + SMALL):.1%}, {proved}")
        fails, blind = rows[:, 4:].T
        acted = (rows[:, 1] > max(gain, 0.0) + SMALL) & (fails == 0) & (blind == 0)
        cells += [f"{fails.mean():.1%}, {blind.mean():.1%}", f"{acted.mean():.1%}"]
        yield f"| {world.name} | {world.episodes} | {gain:.2f} | " + " | ".join(cells) + " |"


def main() -> None:
    """Prints the table, or writes it into the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--logs", type=int, default=120)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    made = "\n".join(lines(chosen.logs))
    print(made)
    if chosen.write:
        before, after = around_block(PAGE, "structures")
        PAGE.write_text(f"{before}\n\n{made}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
