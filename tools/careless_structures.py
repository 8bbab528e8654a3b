"""Logs with a [structure], each with a fault that once gave a green or a hopeful, wrong answer.

Every world is a function of a seed and a number of episodes, as those of `careless_logs`. Somebody
waits or goes, in few states, so that the value of every policy is exact.
"""

import csv
import json
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surestep.pipeline import improve_structured
from surestep.results.structured import StructuredResult

ACTIONS = np.array(["wait", "go"])


class Law(NamedTuple):
    """What truly happens, and what is done today."""

    columns: dict[str, Sequence[str]]
    move: np.ndarray  # [S, 2, S]; what is missing to 1 ends the episode
    pays: np.ndarray  # [S, 2]: mean rewards
    start: np.ndarray  # [S]
    practice: np.ndarray  # [S]: the chance to go
    steps: int
    discount: float = 1.0

    @property
    def labels(self) -> np.ndarray:
        """Returns the labels of the states [S, columns]."""
        return np.array([*product(*self.columns.values())])

    def value(self, going: np.ndarray) -> float:
        """Returns what a policy earns that goes with a chance in each state."""
        chances, value = np.stack([1 - going, going], axis=1), np.zeros(going.size)
        for _ in range(self.steps):
            value = (chances * (self.pays + self.discount * self.move @ value)).sum(axis=1)
        return float(self.start @ value)


class CarelessStructure(NamedTuple):
    """A log, the words that describe it, and the truth."""

    table: dict[str, np.ndarray]
    words: str
    law: Law
    current: dict[str, object] | None = None  # rules that are said to be the current policy

    @property
    def before(self) -> float:
        """Returns what is earned today."""
        return self.law.value(self.law.practice)

    def improved(self, worlds: int) -> StructuredResult:
        """Returns what is made of the log."""
        with tempfile.TemporaryDirectory() as name:
            log, rules, words = (Path(name, file) for file in ("log.csv", "rules.json", "log.toml"))
            with log.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(self.table)
                writer.writerows(zip(*(each.tolist() for each in self.table.values()), strict=True))
            rules.write_text(json.dumps({"format": "surestep column rules"} | (self.current or {})))
            words.write_text(f'files = "log.csv"\nmethod.worlds = {worlds}\n{self.words}')
            return improve_structured(words)

    def gain_of(self, result: StructuredResult) -> float:
        """Returns what the rules of a result truly gain."""
        said = result.structure
        places = [said.columns.index(name) for name in self.law.columns]
        states = np.zeros(self.law.labels.shape, np.int64)
        for column, place in enumerate(places):
            states[:, place] = [*map(said.values[place].index, self.law.labels[:, column])]
        going = result.policy.chances(states)[:, said.actions.index("go")]
        return self.law.value(going) - self.before


def played(law, rng, going, paid):
    """Returns the table of episodes that go with chances [E, S], and are paid by a function."""
    episodes = np.arange(len(going))
    state, parts = rng.choice(law.start.size, episodes.size, p=law.start), []
    for step in range(law.steps):
        go = (rng.random(episodes.size) < going[episodes, state]).astype(int)
        reached = np.cumsum(law.move[state, go], axis=1) <= rng.random((episodes.size, 1))
        after = reached.sum(axis=1)  # S: over
        over = after == law.start.size
        part = {"episode": episodes, "step": np.full(episodes.size, step), "action": ACTIONS[go]}
        part |= {"reward": paid(rng, state, go, after), "terminated": over}
        part |= {"truncated": ~over & (step == law.steps - 1)}
        shown = np.vstack([law.labels, np.full(law.labels.shape[1], "exploded")])
        for column, name in enumerate(law.columns):
            part |= {name: shown[state, column], f"next_{name}": shown[after, column]}
        parts.append(part)
        episodes, state = episodes[~over], after[~over]
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(table["episode"], kind="stable")
    return {name: column[order] for name, column in table.items()}


# ---- the worlds ---------------------------------------------------------------------------------

EXPLODES = 0.0005
ENGINE = """
columns = {state = ["engine"]}
stakes = {discount = 1, horizon = 4}
behavior.policy = "uniform"
[structure.engine]
parents = ["engine"]%s
[structure.end]
parents = ["next.engine"]
action = "none"
[structure.reward]
terms = [{of = "next.engine", runs = 1.0%s}]
"""


def explosions(seed, episodes, *, listed=False):
    """Going lets an engine run in 0.8 of all days, else 0.5, and may cost 10,000.

    Who describes the log names the explosion if it shows one, or if it is `listed`.
    """
    runs = np.array([0.5, 0.8 * (1 - EXPLODES)])
    stands = np.array([0.5, 0.2 * (1 - EXPLODES)])
    law = Law(
        columns={"engine": ("runs", "stands")},
        move=np.tile(np.stack([runs, stands], axis=1), (2, 1, 1)),
        pays=np.tile(runs - [0, 10_000 * EXPLODES], (2, 1)),
        start=np.array([1.0, 0.0]),
        practice=np.array([0.5, 0.5]),
        steps=4,
    )
    table = played(
        law,
        np.random.default_rng(seed),
        np.full((episodes, 2), 0.5),
        lambda rng, state, go, after: np.array([1.0, 0.0, -10_000.0])[after],
    )
    named = listed or table["terminated"].any()
    also = ", exploded = -10000.0" if named else ""
    values = '\nvalues = ["exploded", "runs", "stands"]' if listed else ""
    return CarelessStructure(table, ENGINE % (values, also), law)


def listed_explosions(seed, episodes):
    """The same, where the explosion is known to be possible."""
    return explosions(seed, episodes, listed=True)


WEATHER = """
columns = {state = ["weather", "machine"]}
stakes.discount = 0.95
behavior.policy = "rules.json"
ends = "clock"
[structure.weather]
parents = []
action = "none"
[structure.machine]
parents = "learn"
[structure.reward]
terms = [{of = "machine", works = 1.0}]
"""


def learnt_weather(seed, episodes, effect=0.12, share=0.05):
    """Weather decides whether going helps, and in bad weather the log seldom goes.

    Who misses that takes going for better; it never is.
    """
    works = 0.5 + effect * np.outer([0, 0, 1, 1], [0, 1])  # bad, bad, good, good
    law = Law(
        columns={"weather": ("bad", "good"), "machine": ("failed", "works")},
        move=np.stack([1 - works, works, 1 - works, works], axis=2) / 2,
        pays=np.outer([0.0, 1.0, 0.0, 1.0], [1, 1]),
        start=np.array([0.0, 0.0, 0.0, 1.0]),
        practice=np.array([share, share, 1.0, 1.0]),
        steps=40,
        discount=0.95,
    )
    table = played(
        law,
        np.random.default_rng(seed),
        np.tile(law.practice, (episodes, 1)),
        lambda rng, state, go, after: (state % 2).astype(float),
    )
    rules = [{"when": {"weather": ["good", "good"]}, "action": "go"}]
    current = {"rules": rules, "default": "wait", "chance": 2 * share}
    return CarelessStructure(table, WEATHER, law._replace(steps=400), current)


ALIKE = """
columns = {state = ["light"]}
stakes = {discount = 1, horizon = 1}
behavior.policy = "rules.json"
[structure.light]
parents = []
action = "none"
[structure.reward]
values = [-50, 0, 1]
parents = []
action = "all"
"""


def rare_losses(seed, episodes, chance=0.001):
    """A step earns −50 with a small chance, else 0 or 1, whatever is done; 9 in 10 go."""
    law = Law(
        columns={"light": ("green", "red")},
        move=np.full((2, 2, 2), 0.5),
        pays=np.full((2, 2), 0.5 - 50 * chance),
        start=np.array([0.5, 0.5]),
        practice=np.array([0.9, 0.9]),
        steps=1,
    )
    chances = [chance, 0.5 - chance, 0.5]
    table = played(
        law,
        np.random.default_rng(seed),
        np.full((episodes, 2), 0.9),
        lambda rng, state, go, after: rng.choice([-50, 0, 1], state.size, p=chances),
    )
    return CarelessStructure(table, ALIKE, law, {"rules": [], "default": "go", "chance": 0.2})


CASES = """
columns = {state = ["x", "y"]}
stakes = {discount = 1, horizon = 4}
behavior.policy = "%s"
[structure."*"]
parents = []
action = "none"
[structure.reward]
values = [0, 1]
parents = ["x", "y"]
action = "all"
"""


def of_cases(seed, episodes, says, pays, practice, first=None):
    """Cases with two marks come by chance; the `first` 30 % of episodes may differ."""
    law = Law(
        columns={"x": ("0", "1"), "y": ("0", "1")},
        move=np.full((4, 2, 4), 0.25),
        pays=np.array(pays),
        start=np.full(4, 0.25),
        practice=np.array(practice),
        steps=4,
    )
    going = np.tile(law.practice, (episodes, 1))
    if first is not None:
        going[: 3 * episodes // 10] = first
    table = played(
        law,
        np.random.default_rng(seed),
        going,
        lambda rng, state, go, after: (rng.random(state.size) < law.pays[state, go]).astype(int),
    )
    return CarelessStructure(table, CASES % says, law)


def practice_that_changed(seed, episodes):
    """Going is better by 0.3; at first one in five go, later most do."""
    pays, practice = np.tile([0.3, 0.6], (4, 1)), np.full(4, 0.85)
    return of_cases(seed, episodes, "estimate", pays, practice, np.full(4, 0.2))


def practice_by_parity(seed, episodes):
    """It pays to go if x ≠ y, and people know; a tree that looks at x or y alone sees nothing."""
    odd = np.array([0, 1, 1, 0])
    pays = np.stack([0.8 * (1 - odd), 0.2 + 0.8 * odd], axis=1)
    return of_cases(seed, episodes, "estimate", pays, 0.1 + 0.8 * odd)


def declared_trial(seed, episodes):
    """The log is called a trial, but nine in ten go, which is better."""
    return of_cases(seed, episodes, "uniform", np.tile([0.3, 0.6], (4, 1)), np.full(4, 0.9))


WORLDS = {  # with the sizes of their logs
    "[structure] explosions that many logs lack": (explosions, (800,)),
    "[structure] explosions, listed": (listed_explosions, (800,)),
    "[structure] learnt, the weather is thin": (learnt_weather, (300,)),
    "[structure] rare losses, no action matters": (rare_losses, (3000,)),
    "[structure] estimated practice that changed": (practice_that_changed, (3000,)),
    "[structure] estimated practice by a parity": (practice_by_parity, (4000,)),
    "[structure] not as declared": (declared_trial, (3000,)),
}
