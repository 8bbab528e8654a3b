"""Claims about several signals: how often they are wrong, what they cost, and what others do.

    python benchmarks/signals.py [--tables coverage cost comparison] [--logs 20] [--small]

Coverage. Worlds of three states to decide in and an end, each step with two actions. π_b takes
either; the second one pays more of the first signal. The second signal is

independent  helped by the second action in one state, harmed in another, with noise of its own
opposed      what the first one is, with a minus
no effect    the same whatever is done
less         harmed by the second action, but by less than its margin

The second action also leads to an unsafe state more often. π_b gets there in about 5 % of episodes,
or ("unseen") so seldom that hardly a log shows the state, which is declared all the same. A part of
each log chooses a policy: one within limits, as `improve` does, and one of SPIBB, which breaks
them. The rest certifies. "Wrong" is a claim that all hold where not all do in truth; "too high" a
log in which some displayed bound is above its truth; "claimed" a claim that all hold. A proved kind
is refuted where an exact binomial test says so: if all promises were kept, once in 20 tables.

Cost. CPU time of certifying, and of `improve` without worlds, by turns: one signal, two, and two
with unsafe states. Ratios are those of medians to one signal.

Comparison. Mazes with pits; see `constrained_peers` for the methods of others.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import constrained_peers as peers
import duckdb
import numpy as np

import surestep
from surestep import DecisionLog, FiniteMDP, Policy, Problem, certify, performance, sample_log
from surestep.algorithms import SPIBB
from surestep.algorithms.contract import Limits
from surestep.certificates import Robust, training_for
from surestep.certificates.registry import Asked
from surestep.description import given_as
from surestep.experiments.intervals import binomial_interval
from surestep.model import Certificate, Reach, Signal, reaching
from surestep.model.known import Known, Ranges, Split, with_zero
from surestep.offpolicy.intervals import lower_limit
from surestep.pipeline.evidence import gather, open_source
from surestep.pipeline.improve import prepared
from surestep.pipeline.stress_test import Assignment
from surestep.pipeline.terms import Terms, usual_train_share
from surestep.planning.reaching import reachability

SMALLEST = ("--logs", "1", "--small", "--tables", "coverage", "comparison")
DELTA, DISCOUNT, HORIZON, WITHIN = 0.1, 0.9, 30, 10
LEAST_VISITS = 10
FALSE_ALARMS = 0.05  # of a whole table
ROUNDING = 1e-9  # of truths, which are exact but for it
KINDS = ("stitched:series=12", "posterior:draws=99", "robust")
FAMILIES = ("independent", "opposed", "no effect", "less")
METHODS = ("constrained", "spibb")
LOW, HIGH, UNSAFE, END = range(4)
ROBUST = Robust(reward_low=-400.0, reward_high=500.0)
UNIT = Ranges((0.0, 1.0), (0.0, 1.0))


class World(NamedTuple):
    """A model a signal, with mean rewards between 0 and 1, and the policy that makes the logs."""

    models: tuple[FiniteMDP, ...]
    behavior: Policy
    unsafe: np.ndarray  # [S]
    margins: tuple[float, float]  # of the second signal, and of the chance
    opposed: bool = False

    def draw(self, episodes: int, rng: np.random.Generator) -> list[DecisionLog]:
        """Returns a log with the rewards of each signal: 0 or 1."""
        log = sample_log(self.models[0], self.behavior, episodes, HORIZON, rng)
        one, two = rng.random((2, log.num_steps))
        draws = (one, 1 - one if self.opposed else two)  # 1 of either: 0 of the other
        return [
            replace(log, reward=(draw < model.expected_reward[log.pair]).astype(float))
            for draw, model in zip(draws, self.models, strict=True)
        ]

    def truths(self, policy: Policy) -> tuple[list[float], list[float]]:
        """Returns the gain of every signal, and what a displayed bound must not be above."""
        first = self.models[0]
        gains = [performance(m, policy) - performance(m, self.behavior) for m in self.models]
        before, after = (
            first.initial @ reachability(first, self.unsafe, each, within=WITHIN).lower
            for each in (self.behavior, policy)
        )
        return [*gains, float(before - after)], [*gains, -float(after)]


def small_world(family: str, *, seen: bool) -> World:
    """Returns the world of a family, whose unsafe state is seen in logs or not."""
    risk = np.array([0.01, 0.02]) if seen else np.array([0.0, 2e-4])
    rows, first, second = np.zeros((4, 2, 4)), np.zeros((4, 2)), np.zeros((4, 2))
    rows[LOW, :, [LOW, HIGH]], rows[HIGH, :, [LOW, HIGH]] = 0.35, 0.40
    rows[[LOW, HIGH], :, UNSAFE] = risk
    rows[[LOW, HIGH], :, END] = 1 - rows[[LOW, HIGH]].sum(axis=2)
    rows[UNSAFE, :, END] = 1.0
    first[[LOW, HIGH]] = 0.3, 0.8
    second[[LOW, HIGH]] = {
        "independent": [(0.3, 0.6), (0.6, 0.3)],
        "opposed": 1 - first[[LOW, HIGH]],
        "no effect": 0.5,
        "less": (0.5, 0.4),
    }[family]
    models = [FiniteMDP.from_dense(rows, table, DISCOUNT, LOW) for table in (first, second)]
    behavior = Policy(models[0].pairs, np.tile([0.6, 0.4], 4))
    margins = {"no effect": (0.5, 0.05), "less": (1.0, 0.05)}.get(family, (0.0, 0.0))
    unsafe = np.arange(4) == UNSAFE
    return World(tuple(models), behavior, unsafe, margins, family == "opposed")


def posed(
    world: World | peers.Maze, logs: Sequence[DecisionLog], ranges: Sequence[Ranges]
) -> tuple[Problem, Known]:
    """Returns the problem of a log with its signals, and what its owner knows of the first."""
    discount, parts, known = float(world.models[0].discount[0]), [], []
    ends = np.arange(world.models[0].num_states) == world.models[0].num_states - 1
    for log, each in zip(logs, ranges, strict=True):
        bounds = each.returns(discount)
        part = Problem(
            counts=replace(log.counts(), terminal=ends),
            behavior=world.behavior,
            discount=discount,
            value_bounds=with_zero(bounds),
            log=log,
        )
        split = Split(usual_train_share(log.num_episodes), "adaptive")
        told = Known(delta=DELTA, seed=1, split=split, returns=bounds, ranges=each)
        parts.append(part)
        known.append(told._replace(reward_bounds=each.rewards, rewards_vary=True))
    margin = world.margins[0] if isinstance(world, World) else 0.0
    signals = [Signal(name="second", problem=parts[1], margin=margin, known=known[1])]
    if isinstance(world, World):
        chance = reaching(parts[0], Reach(world.unsafe, WITHIN))
        signals.append(Signal(name="unsafe", problem=chance, margin=world.margins[1], cost=True))
    return replace(parts[0], signals=tuple(signals)), known[0]


def chosen(problem: Problem, told: Known, method: str, *kinds: str) -> tuple[Policy, Certificate]:
    """Returns the policy by the part that chooses, and what the first kind claims by the rest."""
    judge, *others = (Asked.of(kind).make_with(told) for kind in kinds)
    training = training_for(problem, judge)
    if method == "spibb":
        policy = SPIBB(n_wedge=LEAST_VISITS).improve(training).policy
    else:
        terms, limits = (
            Terms.of(discount=problem.single_discount),
            Limits(least_visits=LEAST_VISITS),
        )
        way: Any = terms.algorithm_for(problem, told, [judge, *others], limits)
        policy = way.improve(training).policy
    return policy, certify(problem, policy, judge)


class Outcome(NamedTuple):
    """What a log led to."""

    wrong: bool
    too_high: bool
    claimed: bool


def outcome(world: World, episodes: int, kind: str, method: str, seed: int) -> Outcome:
    """Draws a log, claims, and looks at the truth only then."""
    rng = np.random.default_rng([seed, episodes])
    problem, told = posed(world, world.draw(episodes, rng), (UNIT, UNIT))
    policy, claim = chosen(problem, told, method, kind)
    claimed = claim.none_worse and (claim.lower or 0.0) > 0
    gains, shown = world.truths(policy)
    limits = (-margin - ROUNDING for margin in world.margins)
    hold = gains[0] > 0 and all(g >= limit for g, limit in zip(gains[1:], limits, strict=True))
    too_high = any(
        part.lower is not None and part.lower > truth + ROUNDING
        for part, truth in zip(claim.signals, shown, strict=True)
    )
    return Outcome(claimed and not hold, too_high, claimed)


def print_coverage(logs: int, families: Sequence[str], sizes: Sequence[int]) -> None:
    """Prints a line for every family, size, kind and method."""
    cells = [*product(families, (True, False), sizes, KINDS, METHODS)]
    heads = ("second signal", "unsafe", "episodes", "kind", "policy", "wrong", "too high")
    print(f"| {' | '.join((*heads, 'claimed', 'verdict'))} |\n|{' --- |' * (len(heads) + 2)}")
    level, refuted, pooled = FALSE_ALARMS / (2 * len(cells)), 0, dict[str, list[np.ndarray]]()
    for family, seen, episodes, kind, method in cells:
        world, (word, _, _) = small_world(family, seen=seen), kind.partition(":")
        found = np.array([outcome(world, episodes, kind, method, n) for n in range(logs)])
        pooled.setdefault(word, []).append(found)
        wrong, high, _ = found.sum(axis=0)
        beyond = any(lower_limit(int(each), logs, level) > DELTA for each in (wrong, high))
        verdict = "measured" if word == "posterior" else "refuted" if beyond else "kept"
        refuted += verdict == "refuted"
        figures = (family, "seen" if seen else "unseen", episodes, word, method, *rates(found))
        print(f"| {' | '.join(map(str, figures))} | {verdict} |", flush=True)
    for word, several in pooled.items():
        whole = np.concatenate(several)
        shown = " | ".join(rates(whole))
        print(f"| all | all | all | {word} | both | {shown} | {len(whole)} logs |")
    print(f"\nrefuted: {refuted} of {len(cells)} cells, {logs} logs each")


def rates(found: np.ndarray) -> list[str]:
    """Returns the shares of outcomes [N, 3] with their intervals of Clopper and Pearson at 95 %."""
    several = (binomial_interval(int(times), len(found)) for times in found.sum(axis=0))
    return [f"{value:.0%} [{low:.0%}, {high:.0%}]" for value, low, high in several]


# ---- cost ----------------------------------------------------------------------------------------

PUMPS = Path(__file__).parents[1] / "examples"
VARIANTS = ("the first", "the second", "both", "both and unsafe")


class Texture(NamedTuple):
    """A log as a table, how it is read, and what its signals and unsafe states are."""

    frame: Mapping[str, Any]
    words: Mapping[str, Any]
    signals: Mapping[str, Mapping[str, Any]]
    unsafe: Mapping[str, Any]

    def told(self, variant: str) -> dict[str, Any]:
        """Returns what `improve` is told; of one signal, as if there were no other."""
        if variant in VARIANTS[:2]:
            name, rule = [*self.signals.items()][VARIANTS.index(variant)]
            alone = {key: value for key, value in rule.items() if key != "not_worse_by"}
            return {**self.words, "signals": {name: alone}}
        more = {"unsafe": self.unsafe} if variant == VARIANTS[-1] else {}
        return {**self.words, "signals": self.signals, **more}


def dense_texture(episodes: int, seed: int = 0) -> Texture:
    """Returns the log of a world in which every step may lead to all of ten states."""
    rng, size, actions = np.random.default_rng(seed), 11, 3
    rows = np.zeros((size, actions, size))
    rows[:-1] = rng.dirichlet(np.ones(size), (size - 1, actions))
    mdp = FiniteMDP.from_dense(rows, np.zeros((size, actions)), DISCOUNT)
    log = sample_log(mdp, Policy.uniform(mdp), episodes, HORIZON, rng)
    ranges = {"running": (0, 1), "ending": (0, 1)}
    chance = rng.random((2, mdp.num_pairs))[:, log.pair]
    first, second = (rng.random(chance.shape) < chance).astype(int)
    frame = {
        "episode": np.repeat(np.arange(episodes), np.diff(log.episode_offsets)),
        "step": log.step, "state": log.state, "action": log.action, "first": first,
        "second": second, "terminated": log.terminated, "truncated": log.truncated,
    }  # fmt: skip
    return Texture(
        frame,
        {"discount": DISCOUNT, "behavior": "uniform", "columns": {}},
        {"first": {"column": "first", **ranges}, "second": {"column": "second", **ranges}},
        {"states": "state = 9", "within": WITHIN},
    )


def pump_texture(episodes: int) -> Texture:
    """Returns the log of the examples with a further signal: services."""
    table = duckdb.sql(
        "SELECT *, (decision = 'service')::INT AS serviced "
        f"FROM '{PUMPS / 'pumps.csv'}' WHERE episode <= {episodes}"
    ).fetchnumpy()
    frame = {name: np.asarray(column) for name, column in table.items()}
    words = {
        "discount": 0.95,
        "behavior": PUMPS / "pumps_policy.csv",
        "columns": {"state": ["condition", "demand"], "action": "decision"},
    }
    rules = {
        "profit": {"column": "reward", "running": (-140, 160), "ending": (-400, 500)},
        "services": {
            "column": "serviced", "cost": True, "running": (0, 1), "ending": (0, 1),
            "not_worse_by": 0.5,
        },
    }  # fmt: skip
    return Texture(frame, words, rules, {"states": "condition = 'failing'", "within": WITHIN})


def prepared_by(texture: Texture, variant: str) -> Assignment:
    """Returns what `improve` makes of a log before it improves."""
    description, frame = given_as(texture.frame, **texture.told(variant))
    terms = Terms.of(description)
    return prepared(gather(open_source(description, frame), terms))


def works_of(texture: Texture) -> dict[str, Callable[[str], object]]:
    """Returns what is to be done, by its name, each for any number of signals."""
    asked = {variant: prepared_by(texture, variant) for variant in VARIANTS}
    policy = SPIBB(n_wedge=LEAST_VISITS).improve(asked[VARIANTS[0]].training).policy

    def certifying(judge: Any) -> Callable[[str], object]:
        return lambda variant: certify(asked[variant].problem, policy, judge)

    works = {judge.name: certifying(judge) for judge in (*asked[VARIANTS[0]].certifiers, ROBUST)}
    works["improve"] = lambda variant: surestep.improve(
        texture.frame, worlds=0, **texture.told(variant)
    )
    return works


def print_cost(times: int, textures: Mapping[str, Texture]) -> None:
    """Prints CPU time with one signal, and what more of them take as a multiple of the mean."""
    print(f"| log | work | {' | '.join(VARIANTS)} |\n|{' --- |' * (len(VARIANTS) + 2)}")
    for title, texture in textures.items():
        for name, work in works_of(texture).items():
            first, second, *more = cpu_seconds(work, times)
            ratios = " | ".join(f"{2 * each / (first + second):.2f}" for each in more)
            print(f"| {title} | {name} | {first:.2f} s | {second:.2f} s | {ratios} |", flush=True)


def cpu_seconds(work: Callable[[str], object], times: int) -> list[float]:
    """Returns the median CPU time of each variant; the first turn only compiles."""
    taken = [[0.0] * len(VARIANTS)]
    for _ in range(times + 1):
        turn = []
        for variant in VARIANTS:
            began = time.process_time()
            work(variant)
            turn.append(time.process_time() - began)
        taken.append(turn)
    return [statistics.median(each) for each in zip(*taken[2:], strict=True)]


# ---- comparison ----------------------------------------------------------------------------------

MAZE_RANGES = (Ranges((-1.0, 0.0), (-1.0, peers.GOAL_REWARD)), Ranges((-1.0, 0.0), (0.0, 0.0)))
MAZE_HORIZON = 100
RATIOS = (0.1, 0.4, 0.7, 0.9)


def print_comparison(logs: int, ratios: Sequence[float], sizes: Sequence[int]) -> None:
    """Prints what several methods make of logs of mazes; ours with its joint claim."""
    heads = ("ratio", "episodes", "method", "return", "pits", "worse in either", "claimed", "wrong")
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for ratio, episodes in product(ratios, sizes):
        found: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(logs):
            maze = peers.maze(seed, ratio)
            log = sample_log(maze.models[0], maze.behavior, episodes, MAZE_HORIZON, seed)
            pits = replace(log, reward=np.where(maze.pits[log.next_state], -1.0, 0.0))
            problem, told = posed(maze, (log, pits), MAZE_RANGES)
            both = [problem, problem.signals[0].problem]
            ours, claim = chosen(problem, told, "constrained", *KINDS[:2])
            policies = {
                "π_b": maze.behavior,
                "S-OPT": peers.s_opt(both),
                "H-OPT": peers.h_opt([log, pits], maze.behavior, seed),
                "shielded": peers.shielded(problem, maze.models[0], maze.pits),
                "ours": ours,
            }
            before = [performance(model, maze.behavior) for model in maze.models]
            for name, policy in policies.items():
                now = [performance(model, policy) for model in maze.models]
                worse = any(n < b - ROUNDING for n, b in zip(now, before, strict=True))
                claimed = name == "ours" and claim.none_worse and (claim.lower or 0.0) > 0
                wrong = claimed and (worse or now[0] <= before[0])
                found.setdefault(name, []).append((*now, worse, claimed, wrong))
        for name, rows in found.items():
            earned, entered, worse, claimed, wrong = np.mean(rows, axis=0)
            said = f"{claimed:.0%} | {wrong:.0%}" if name == "ours" else "- | -"
            figures = f"{earned:.0f} | {-entered:.2f} | {worse:.0%} | {said}"
            print(f"| {ratio} | {episodes} | {name} | {figures} |", flush=True)


def main() -> None:
    """Reads the arguments and prints the tables."""
    tables = ("coverage", "cost", "comparison")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", nargs="+", choices=tables, default=tables)
    parser.add_argument("--logs", type=int, default=20, help="of each cell of coverage")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--episodes", nargs="+", type=int, default=(100, 300, 1_000))
    parser.add_argument("--mazes", type=int, default=5, help="of each ratio and size")
    parser.add_argument("--small", action="store_true", help="a run of seconds")
    given = parser.parse_args()
    small = given.small
    if "coverage" in given.tables:
        families, sizes = (FAMILIES[:1], (50,)) if small else (given.families, given.episodes)
        print_coverage(given.logs, families, sizes)
    if "cost" in given.tables:
        episodes = 50 if small else 1_000
        textures = {"pumps": pump_texture(episodes), "dense": dense_texture(episodes)}
        if small:
            textures.popitem()
        print_cost(1 if small else 3, textures)
    if "comparison" in given.tables:
        cells = (1, RATIOS[1:2], (20,)) if small else (given.mazes, RATIOS, (50, 500))
        print_comparison(*cells)


if __name__ == "__main__":
    main()
