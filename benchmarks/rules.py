"""What rules cost: the lower bound of policies with trees among the candidates, and without.

    python benchmarks/rules.py [--logs 10] [--worlds ruled rough none]

A machine has a wear (8 levels, ordered) and a site (4 values, without an order), and goes through
12 steps with one of three actions. In worlds that are ruled, which action is right follows from two
thresholds of the wear and a set of sites; in rough ones, it is drawn for each of the 32 situations;
in the last kind, all actions are alike. A right action pays with chance 0.8, another with 0.3, and
wears the machine less. Printed are the mean lower bound of both ways (0 where nothing is claimed),
in how many logs rules are taken, how many rules they are, and the time of both.
"""

import argparse
import time

import numpy as np

import surestep

SMALLEST = ("--logs", "1", "--worlds", "ruled", "--episodes", "60")
STEPS, LEVELS, SITES, ACTIONS = 12, 8, 4, 3


def right_actions(world: str, rng: np.random.Generator) -> np.ndarray:
    """Returns the right action of each wear and site [8, 4]; −1: all are alike."""
    if world == "none":
        return np.full((LEVELS, SITES), -1)
    if world == "rough":
        return rng.integers(0, ACTIONS, (LEVELS, SITES))
    low, high = sorted(rng.choice(np.arange(2, LEVELS - 1), 2, replace=False))
    some = rng.permutation(SITES) < SITES // 2
    right = np.zeros((LEVELS, SITES), np.int64)
    right[low:] = 1
    right[high:, some] = 2
    return right


def log_of(world: str, episodes: int, seed: int) -> dict[str, list]:
    """Draws a log of a world; actions are taken at random, the first one half of the time."""
    rng = np.random.default_rng(seed)
    right = right_actions(world, rng)
    site = rng.integers(0, SITES, episodes)
    wear = rng.integers(0, LEVELS, episodes)
    names = ("episode", "step", "wear", "site", "action", "reward")
    table: dict[str, list] = {name: [] for name in names}
    for step in range(STEPS):
        action = rng.choice(ACTIONS, episodes, p=[0.5, 0.25, 0.25])
        is_right = action == right[wear, site]
        paid = rng.random(episodes) < np.where(is_right, 0.8, 0.3)
        table["episode"] += range(episodes)
        table["step"] += [step] * episodes
        table["wear"] += wear.tolist()
        table["site"] += [f"site {number}" for number in site]
        table["action"] += [("run", "grease", "service")[number] for number in action]
        table["reward"] += paid.astype(float).tolist()
        worse = rng.random(episodes) < np.where(is_right, 0.3, 0.5)
        wear = np.where(rng.random(episodes) < 0.2, 0, np.minimum(wear + worse, LEVELS - 1))
    order = np.argsort(table["episode"], kind="stable")
    return {name: [values[i] for i in order] for name, values in table.items()}


def main() -> None:
    """Improves every log both ways, and prints a row a world."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--logs", type=int, default=10)
    options.add_argument("--episodes", type=int, nargs="+", default=[300, 1_000])
    options.add_argument("--worlds", nargs="+", default=["ruled", "rough", "none"])
    given = options.parse_args()
    print(
        f"{'world':8}{'episodes':>10}{'table':>10}{'rules':>10}{'taken':>8}{'number':>8}{'time':>8}"
    )
    for world in given.worlds:
        for episodes in given.episodes:
            lower: dict[int, list[float]] = {0: [], 12: []}
            spent = dict.fromkeys(lower, 0.0)
            sizes = []
            for seed in range(given.logs):
                log = log_of(world, episodes, seed)
                for most in lower:
                    began = time.process_time()
                    result = surestep.improve(
                        log, columns={"state": ["wear", "site"]}, ends="complete", discount=0.9,
                        running=(0, 1), ending=(0, 1), rules=most, worlds=0,
                    )  # fmt: skip
                    spent[most] += time.process_time() - began
                    lower[most].append(max(result.certificate.lower or 0.0, 0.0))
                    sizes += [len(result.rules.rules)] if result.rules else []
            taken = f"{len(sizes)}/{given.logs}"
            number = f"{np.mean(sizes):.1f}" if sizes else "-"
            print(
                f"{world:8}{episodes:>10,}{np.mean(lower[0]):>10.3f}{np.mean(lower[12]):>10.3f}"
                f"{taken:>8}{number:>8}{spent[12] / spent[0]:>8.2f}"
            )


if __name__ == "__main__":
    main()
