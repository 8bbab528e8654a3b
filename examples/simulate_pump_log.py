"""Draw the example log `pumps.csv`: what the crew of a waterworks did with its pumps, week by week.

Everything here is simulated: the model is made up, the seed is fixed, and nobody's data was used.
A pump wears through five conditions while the demand for water goes up and down. Every week the
crew runs it, runs it at reduced load (`ease`), takes it out for a `service`, or sells it. A pump
that is sold or wrecked is gone for good; of the others the recording stops after 13 weeks.

The crew's habit is written in `pumps_policy.csv`: several shifts with ideas of their own, so that
most things were tried. It rightly leaves new pumps alone, but it services worn ones too late, and
no more often when low demand makes a week without them cheap.

A week earns between −140 (a service) and 160 (a new pump at high demand), the week in which a pump
goes between −400 (wrecked) and 500 (sold as new): ranges that the waterworks knows, whatever the
log shows.

    python examples/simulate_pump_log.py          writes both files beside this script
    python examples/simulate_pump_log.py --judge  says what the habit and the best plan are worth
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from surestep import DecisionLog, FiniteMDP, Policy, optimal, performance, sample_log
from surestep.model import Pairs

SMALLEST = ("--judge",)  # the arguments of the quickest run; none of them writes files
CONDITIONS = ("new", "good", "fair", "worn", "failing")
DEMANDS = ("low", "normal", "high")
ACTIONS = ("run", "ease", "service", "sell")
RUN, EASE, SERVICE, SELL = range(4)
STATES = tuple((condition, demand) for condition in CONDITIONS for demand in DEMANDS)
END = len(STATES)  # sold or wrecked
LOG_COLUMNS = (
    *("episode", "step", "condition", "demand", "decision"),
    *("reward", "terminated", "truncated"),
)

WEEKLY_DISCOUNT = 0.95
EPISODES, WEEKS, SEED = 6_000, 13, 2_025
WEEKLY_PROFIT = {"new": 100, "good": 100, "fair": 90, "worn": 70, "failing": 50}
LOAD = {"low": 0.4, "normal": 1.0, "high": 1.6}  # what is earned, and how much the pump wears
WEAR = {"new": 0.22, "good": 0.24, "fair": 0.28, "worn": 0.32, "failing": 0.0}
WRECKED = {"new": 0.0, "good": 0.005, "fair": 0.02, "worn": 0.07, "failing": 0.20}
EASE_EARNS, EASE_WEARS = 0.6, 0.4  # shares of what a run earns and risks
SERVICE_COST, SERVICE_WORKS = 140, 0.6  # it brings back two conditions, or else only one
RESALE = {"new": 500, "good": 400, "fair": 300, "worn": 200, "failing": 120}
WRECK_COST = 400
NEXT_DEMAND = np.array([[0.7, 0.3, 0.0], [0.2, 0.6, 0.2], [0.0, 0.4, 0.6]])
FIRST_CONDITION = {"new": 0.5, "good": 0.3, "fair": 0.2}  # some pumps are bought used
FIRST_DEMAND = np.array([0.3, 0.5, 0.2])

HABIT = {  # run, ease, service, sell; the same for every demand, with the exceptions below
    "new": (0.97, 0.01, 0.02, 0.0),
    "good": (0.85, 0.08, 0.07, 0.0),
    "fair": (0.68, 0.15, 0.15, 0.02),
    "worn": (0.50, 0.20, 0.26, 0.04),
    "failing": (0.42, 0.22, 0.26, 0.10),
}
EXCEPTIONS = {  # few stop a pump that still runs well when water is short
    ("good", "high"): (0.94, 0.03, 0.03, 0.0),
    ("fair", "high"): (0.80, 0.10, 0.10, 0.0),
    ("failing", "low"): (0.66, 0.12, 0.16, 0.06),
}


def pump_model() -> FiniteMDP:
    """One pump as an MDP: fifteen states of condition and demand, and the end."""
    size = len(STATES) + 1
    transition = np.zeros((size, len(ACTIONS), size))
    reward = np.zeros_like(transition)
    for s, (condition, demand) in enumerate(STATES):
        profit = WEEKLY_PROFIT[condition] * LOAD[demand]
        level = CONDITIONS.index(condition)
        for action, earns, wears in ((RUN, 1.0, 1.0), (EASE, EASE_EARNS, EASE_WEARS)):
            wreck = WRECKED[condition] * LOAD[demand] * wears
            wear = WEAR[condition] * LOAD[demand] * wears
            move(transition[s, action], demand, level, 1.0 - wear - wreck)
            move(transition[s, action], demand, min(level + 1, len(CONDITIONS) - 1), wear)
            transition[s, action, END] = wreck
            reward[s, action, :END] = round(earns * profit)
            reward[s, action, END] = -WRECK_COST
        move(transition[s, SERVICE], demand, max(level - 2, 0), SERVICE_WORKS)
        move(transition[s, SERVICE], demand, max(level - 1, 0), 1.0 - SERVICE_WORKS)
        reward[s, SERVICE] = -SERVICE_COST
        transition[s, SELL, END] = 1.0
        reward[s, SELL] = RESALE[condition]
    initial = np.zeros(size)
    for condition, share in FIRST_CONDITION.items():
        move(initial, None, CONDITIONS.index(condition), share)
    return FiniteMDP.from_dense(
        transition,
        reward,
        WEEKLY_DISCOUNT,
        initial,
        state_labels=tuple(", ".join(label) for label in (*STATES, ("(end)", "(end)"))),
        action_labels=ACTIONS,
    )


def move(row: np.ndarray, demand: str | None, level: int, probability: float) -> None:
    """Adds the chance to be in a condition next week, spread over next week's demand."""
    share = FIRST_DEMAND if demand is None else NEXT_DEMAND[DEMANDS.index(demand)]
    begin = level * len(DEMANDS)
    row[begin : begin + len(DEMANDS)] += probability * share


def habit(pairs: Pairs) -> Policy:
    """What the crew does; at the end nobody decides, so any action stands for it."""
    rows = [EXCEPTIONS.get(label, HABIT[label[0]]) for label in STATES]
    return Policy.from_dense(pairs, np.array([*rows, (1.0, 0.0, 0.0, 0.0)]))


def pump_log() -> DecisionLog:
    """The decisions that `pumps.csv` holds."""
    mdp = pump_model()
    return sample_log(mdp, habit(mdp.pairs), EPISODES, WEEKS, np.random.default_rng(SEED))


def write_files(folder: Path) -> None:
    """Writes the log and the habit."""
    log = pump_log()
    with (folder / "pumps.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(LOG_COLUMNS)
        for episode in range(log.num_episodes):
            begin, end = log.episode_offsets[episode : episode + 2]
            for row in range(begin, end):
                writer.writerow(
                    (
                        *(episode + 1, row - begin),
                        *(*STATES[log.state[row]], ACTIONS[log.action[row]]),
                        *(int(log.reward[row]), int(log.terminated[row]), int(log.truncated[row])),
                    )
                )
    with (folder / "pumps_policy.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("condition", "demand", "decision", "probability"))
        for label in STATES:
            chances = EXCEPTIONS.get(label, HABIT[label[0]])
            writer.writerows(
                (*label, action, chance) for action, chance in zip(ACTIONS, chances, strict=True)
            )


def judge() -> None:
    """Prints the true return of the habit and of the best plan, which a log cannot tell."""
    mdp = pump_model()
    today = performance(mdp, habit(mdp.pairs))
    best = performance(mdp, optimal(mdp).policy)
    print(f"true return, discount {WEEKLY_DISCOUNT}: habit {today:.1f}, best plan {best:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--judge", action="store_true", help="say what the plans are worth")
    if parser.parse_args().judge:
        judge()
    else:
        write_files(Path(__file__).parent)


if __name__ == "__main__":
    main()
