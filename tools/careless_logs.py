"""Logs as people have them, each with a fault that once gave a green, wrong answer.

Every world is a function of a seed and a number of episodes. It returns what somebody would give to
`improve`, and what is true of the action that the fault makes look better; without the `fault` it
is the honest twin, in which that action is better.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import surestep
from careless_structures import WORLDS as STRUCTURED_WORLDS
from surestep import Result


class Careless(NamedTuple):
    """A log, how it is described, and what it is truly worth to do the tempting action.

    No state changes that, so that only the share of decisions counts that take it.
    """

    table: dict[str, np.ndarray]
    told: dict[str, Any]  # arguments of `improve`
    tempting: str
    today: float  # the share that takes it in the log
    worth: Callable[[float], float]  # by the share
    states: tuple[tuple[str, ...], ...]  # equally frequent ones, in which is decided

    @property
    def gain(self) -> float:
        """Returns what taking it everywhere truly gains."""
        return self.worth(1.0) - self.worth(self.today)

    @property
    def before(self) -> float:
        """Returns what is earned today."""
        return self.worth(self.today)

    def improved(self, worlds: int) -> Result:
        """Returns what is made of the log."""
        return surestep.improve(self.table, worlds=worlds, **self.told)

    def gain_of(self, result: Result) -> float:
        """Returns what the policy of a result truly gains; 0 where it is what was done."""
        words, table = result.table.vocabulary, result.table
        if not table.changed.any():
            return 0.0
        share = dict.fromkeys(self.states, self.today)
        for pair in np.flatnonzero(table.decided):
            state = words.states[table.pairs.state[pair]]
            if state in share and words.actions[table.pairs.action[pair]] == (self.tempting,):
                share[state] = float(table.probability[pair])
        return self.worth(float(np.mean([*share.values()]))) - self.worth(self.today)


def columns_of(rows):
    """Returns rows as columns."""
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def outcome_in_state(seed, episodes, fault=True):
    """The week's status is written when the week is over, and stands among the state.

    Up to 8 weeks. Each week one patient in ten goes home. The drug is worth 1 a week, and kills one
    in five weeks, which costs 10; in the honest twin it does not kill, the status is that at the
    beginning of the week, and hardly anybody stays to the last of 100 weeks.
    """
    rng, rows = np.random.default_rng(seed), []
    deadly, weeks = (0.2, 8) if fault else (0.0, 100)
    for episode in range(episodes):
        for step in range(weeks):
            drug, pain = rng.random() < 0.5, rng.random() < 0.5
            died, home = drug and rng.random() < deadly, rng.random() < 0.1
            over = died or home
            after = "died" if died else "discharged" if home else "in care"
            rows.append(
                {
                    "episode": episode,
                    "step": step,
                    "pain": "yes" if pain else "no",
                    "status": after if fault else "in care",
                    "action": "drug" if drug else "none",
                    "reward": -10.0 * died + drug * (not died),
                    "terminated": over or step == weeks - 1,
                }
            )
            if over:
                break
    told = {"columns": {"state": ["pain", "status"]}, "discount": 0.95}
    told |= {"running": (0, 1), "ending": (-10, 1)}

    def worth(share):
        value = 0.0
        for _ in range(weeks):
            dies = share * deadly
            value = -10 * dies + (share - dies) + 0.95 * (1 - dies) * 0.9 * value
        return value

    states = (("yes", "in care"), ("no", "in care"))
    return Careless(columns_of(rows), told, "drug", 0.5, worth, states)


def end_of_some(seed, episodes, fault=True):
    """The state `ward` ends some episodes, and in others recording only stops there.

    `quick` earns 1 and leads to the ward, where a clock stops the recording: it would cost 5 in the
    next step. `slow` earns 1 in one of five, and its patients go home through the ward. In the
    honest twin the ward costs nothing, and its rows are there.
    """
    rng, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        quick = rng.random() < 0.5
        row = {"episode": episode, "step": 0, "state": "bed", "next_state": "ward"}
        row |= {"action": "quick" if quick else "slow", "terminated": not quick}
        row |= {"reward": 1.0 if quick else float(rng.random() < 0.2), "truncated": quick and fault}
        rows.append(row)
        if quick and not fault:
            end = {"state": "ward", "next_state": "home", "terminated": True, "reward": 0.0}
            rows.append(row | {"step": 1, "truncated": False} | end)
    told = {"discount": 0.9, "running": (0, 1), "ending": (-5, 1)}

    def worth(share):
        return share * (1 - 0.9 * 5 * fault) + (1 - share) * 0.2

    return Careless(columns_of(rows), told, "quick", 0.5, worth, (("bed",),))


def one_went_on(seed, episodes):
    """Patients die under `quick` in half of the cases, and one row is a decision in `dead`."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        quick = rng.random() < 0.5
        died = quick and rng.random() < 0.5
        row = {"episode": episode, "step": 0, "state": "bed", "reward": float(quick)}
        row |= {"action": "quick" if quick else "slow", "next_state": "dead" if died else "home"}
        rows.append(row | {"terminated": True})
    strange = {"step": 1, "state": "dead", "next_state": "home", "terminated": True}
    rows[-1] |= {"next_state": "dead", "terminated": False}
    rows.append(rows[-1] | strange | {"reward": 0.0})
    return columns_of(rows)


def stops_that_know(seed, episodes, fault=True):
    """Recording is said to stop by a clock, but it stops when a machine breaks.

    `run` earns 1, or breaks the machine in one of five, which then earns nothing for ever;
    `service` earns a half. In the honest twin machines never break, and a date stops recording: the
    steps are those of a calendar.
    """
    rng, rows, breaks = np.random.default_rng(seed), [], 0.2 if fault else 0.0
    for episode in range(episodes):
        for step in range(30 if fault else min(30, episodes - episode)):
            run = rng.random() < 0.5
            broken = run and rng.random() < breaks
            row = {"episode": episode, "step": step, "action": "run" if run else "service"}
            row |= {} if fault else {"step": episode + step}
            row |= {"state": "worn" if rng.random() < 0.5 else "good"}
            rows.append(row | {"reward": float(not broken) if run else 0.5})
            if broken:
                break
    told = {"ends": "clock", "discount": 0.9, "running": (0, 1)}

    def worth(share):
        earned = share * (1 - breaks) + (1 - share) * 0.5
        return earned / (1 - 0.9 * (1 - share * breaks))

    return Careless(columns_of(rows), told, "run", 0.5, worth, (("worn",), ("good",)))


def gone_when_broken(seed, episodes, fault=True):
    """Machines that ran break in the next step, one in two, whatever is done, and leave the record.

    `run` earns 1, `service` a half. Recording is said to stop by a clock, after up to 30 steps. In
    the honest twin it does, and machines never break.
    """
    rng, rows, breaks = np.random.default_rng(seed), [], 0.5 if fault else 0.0
    for episode in range(episodes):
        hot = False
        for step in range(30):
            run = rng.random() < 0.5
            row = {"episode": episode, "step": step, "action": "run" if run else "service"}
            rows.append(row | {"state": "hot" if hot else "cold", "reward": 1.0 if run else 0.5})
            if hot and rng.random() < breaks:
                break
            hot = run
    told = {"ends": "clock", "discount": 0.9, "running": (0, 1)}

    def worth(share):
        earned = 0.5 + 0.5 * share
        return earned + 0.9 * earned / (0.1 + 0.9 * breaks * share)

    return Careless(columns_of(rows), told, "run", 0.5, worth, (("hot",), ("cold",)))


def copied_rows(seed, cases, fault=True):
    """Cases of one decision each stand five times in the log; no action is better.

    In the honest twin every case stands once, and `new` earns more.
    """
    rng = np.random.default_rng(seed)
    new = rng.random(cases) < 0.5
    reward = (rng.random(cases) < 0.5 + 0.3 * new * (not fault)).astype(float)
    group, age = rng.integers(0, 2, cases).astype(str), rng.uniform(20, 80, cases)
    times = 5 if fault else 1
    table = {"group": group, "age": age, "action": np.where(new, "new", "old"), "reward": reward}
    table = {name: np.tile(values, times) for name, values in table.items()}
    order = rng.permutation(times * cases)
    table = {name: values[order] for name, values in table.items()}
    told = {"columns": {"state": "group"}, "discount": 0.0, "ending": (0, 1)}
    states = (("0",), ("1",))
    return Careless(table, told, "new", 0.5, lambda share: share * 0.3 * (not fault), states)


def stream(seed, episodes):
    """A stream of rows without a column of episodes, as if a discount of 0.9 were none."""
    log = stops_that_know(seed, episodes)
    kept = {name: log.table[name] for name in ("state", "action", "reward")}
    told = {"discount": 0.9, "running": (0, 1), "ending": (0, 1)}
    return log._replace(table=kept, told=told)


def dropped_by_query(seed, cases, fault=True):
    """A query leaves out those whom `bold` harmed, one in five, who lose 5; the others gain 1.

    `usual` gains 1 in half of the cases. In the honest twin a query leaves out a site of tests, and
    nobody is harmed.
    """
    rng = np.random.default_rng(seed)
    bold, harm = rng.random(cases) < 0.3, 0.2 * fault
    lost = bold & (rng.random(cases) < harm)
    reward = np.where(lost, -5.0, np.where(bold, 1.0, rng.random(cases) < 0.5))
    table = {"case": np.arange(cases), "step": np.zeros(cases, int), "state": np.full(cases, "ill")}
    table |= {"action": np.where(bold, "bold", "usual"), "reward": reward}
    table |= {"terminated": np.ones(cases, bool), "site": rng.integers(0, 9, cases)}
    told = {"columns": {"episode": "case"}, "discount": 0.9, "ending": (0, 1)}
    told["query"] = f"SELECT * FROM log WHERE {'reward > -4' if fault else 'site > 0'}"
    told["columns"] |= {} if fault else {"known_before": "site"}

    def worth(share):
        return share * (1 - 6 * harm) + (1 - share) * 0.5

    return Careless(table, told, "bold", 0.3, worth, (("ill",),))


def estimated_practice(seed, episodes):
    """Nobody says what is done, a tenth of the log tells it, and no action does anything."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        for step in range(50):
            row = {"episode": episode, "step": step, "state": str(rng.integers(12))}
            row |= {"action": "abc"[rng.integers(3)], "reward": float(rng.random() < 0.5)}
            rows.append(row | {"terminated": rng.random() < 0.1 or step == 49})
            if rows[-1]["terminated"]:
                break
    told = {"discount": 0.95, "running": (0, 1), "ending": (0, 1), "train_share": 0.1}
    return Careless(columns_of(rows), told, "a", 1 / 3, lambda share: 0.0, (("0",),))


def two_steps_back(seed, episodes, fault=True):
    """What `now` earns, 0.3, is paid two steps later, by 0.7; the state is the step.

    In the honest twin nothing is paid. In the last two of six steps the action does nothing.
    """
    rng, price = np.random.default_rng(seed), 0.7 * fault
    now = rng.random((episodes, 6)) < 0.5
    taken = np.where(np.arange(6) < 4, now, False)
    before = np.concatenate([np.zeros((episodes, 2)), taken[:, :-2]], axis=1)
    step = np.tile(np.arange(6), episodes)
    table = {"episode": np.repeat(np.arange(episodes), 6), "step": step, "state": step.astype(str)}
    table |= {"action": np.where(now.ravel(), "now", "later"), "terminated": step == 5}
    table |= {"reward": (0.3 * taken - price * before).ravel()}
    told = {"discount": 1.0, "returns": (-2.8, 1.2), "behavior": "uniform"}
    states = tuple((str(step),) for step in range(4))
    return Careless(table, told, "now", 0.5, lambda share: 4 * share * (0.3 - price), states)


def not_as_declared(seed, cases, fault=True):
    """The log is called a fair trial, but `new`, which earns more, is what nine of ten get.

    In the honest twin it is a fair trial.
    """
    rng, today = np.random.default_rng(seed), 0.9 if fault else 0.5
    new = rng.random(cases) < today
    reward = (rng.random(cases) < np.where(new, 0.8, 0.2)).astype(float)
    table = {"state": rng.integers(0, 2, cases).astype(str), "reward": reward}
    table |= {"action": np.where(new, "new", "old")}
    told = {"discount": 0.0, "ending": (0, 1), "behavior": "uniform"}
    states = (("0",), ("1",))
    return Careless(table, told, "new", today, lambda share: 0.2 + 0.6 * share, states)


def unseen_group(seed, cases, fault=True):
    """The new drug gains 0.15, but loses 0.015 in the 5 % of site B, which no state tells.

    No group may lose more than 0.005. The truth is that of site B; in the honest twin it gains too.
    """
    rng = np.random.default_rng(seed)
    harmed, new = rng.random(cases) < 0.05, rng.random(cases) < 0.5
    there = -0.015 if fault else 0.15
    earned = rng.random(cases) < 0.5 + new * np.where(harmed, there, 0.15)
    table = {"state": np.full(cases, "ill"), "action": np.where(new, "new", "old")}
    table |= {"reward": earned.astype(float), "site": np.where(harmed, "B", "A")}
    told = {"discount": 0.0, "ending": (0, 1), "behavior": "uniform"}
    told |= {"groups": {"columns": ["site"], "not_worse_by": 0.005}}
    return Careless(table, told, "new", 0.5, lambda share: 0.5 + there * share, (("ill",),))


WORLDS = {  # with the sizes of their logs
    "outcome in the state": (outcome_in_state, (300, 1000)),
    "an end of some": (end_of_some, (300, 1000)),
    "stops that know": (stops_that_know, (300, 1000)),
    "gone when broken": (gone_when_broken, (300, 1000)),
    "a stream": (stream, (300,)),
    "dropped by a query": (dropped_by_query, (300, 1000)),
    "copied rows": (copied_rows, (100, 300)),
    "estimated practice": (estimated_practice, (1000,)),
    "not as declared": (not_as_declared, (300, 1000)),
    "two steps back": (two_steps_back, (300, 1000, 2000)),
    "a group that no state tells": (unseen_group, (3000,)),
    **STRUCTURED_WORLDS,
}
