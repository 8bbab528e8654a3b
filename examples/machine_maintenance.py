"""Plan the maintenance of one machine: run it, service it or replace it, week by week.

The model is made up for this example. A machine wears through five conditions and may break down;
a running machine earns money, less as it wears; a service may bring back two conditions, or fail
to; a replacement costs a lot and makes the machine new. The example compares the habit of running
it until it breaks with the best plan for the known model.
"""

import numpy as np
from rich.console import Console
from rich.table import Table

from surestep import FiniteMDP, Policy, evaluate_with_bound, occupancy, optimal
from surestep.model import Pairs

CONDITIONS = ("new", "good", "fair", "worn", "failing", "broken")
ACTIONS = ("run", "service", "replace")
RUN, SERVICE, REPLACE = range(3)
WEEKLY_DISCOUNT = 0.98

WEEKLY_PROFIT = (100.0, 95.0, 85.0, 65.0, 40.0)  # of a week's run, by condition
WEAR = (0.20, 0.25, 0.30, 0.35, 0.00)  # chance to lose one condition in a week's run
BREAKDOWN = (0.00, 0.01, 0.03, 0.08, 0.25)  # chance to break down in a week's run
SERVICE_COST, SERVICE_WORKS = 230.0, 0.8
REPLACEMENT_COST, BREAKDOWN_COST = 500.0, 300.0


def maintenance_model() -> FiniteMDP:
    """The machine as an MDP: six conditions, of which the broken one allows only replacement."""
    size, broken = len(CONDITIONS), CONDITIONS.index("broken")
    transition = np.zeros((size, len(ACTIONS), size))
    reward = np.zeros((size, len(ACTIONS), size))
    enabled = np.ones((size, len(ACTIONS)), bool)
    enabled[broken, [RUN, SERVICE]] = False
    for condition in range(broken):
        worse = min(condition + 1, broken - 1)
        transition[condition, RUN, worse] += WEAR[condition]
        transition[condition, RUN, broken] += BREAKDOWN[condition]
        transition[condition, RUN, condition] += 1 - WEAR[condition] - BREAKDOWN[condition]
        reward[condition, RUN] = WEEKLY_PROFIT[condition]
        reward[condition, RUN, broken] -= BREAKDOWN_COST
        better = max(condition - 2, 0)
        transition[condition, SERVICE, better] += SERVICE_WORKS
        transition[condition, SERVICE, condition] += 1 - SERVICE_WORKS
        reward[condition, SERVICE] = WEEKLY_PROFIT[condition] - SERVICE_COST
    transition[:, REPLACE, 0] = 1.0
    reward[:, REPLACE] = -REPLACEMENT_COST
    return FiniteMDP.from_dense(
        transition,
        reward,
        WEEKLY_DISCOUNT,
        initial=CONDITIONS.index("new"),
        enabled=enabled,
        state_labels=CONDITIONS,
        action_labels=ACTIONS,
    )


def run_to_failure(pairs: Pairs) -> Policy:
    """The habit: run the machine until it breaks, then replace it."""
    actions = [RUN] * (len(CONDITIONS) - 1) + [REPLACE]
    return Policy.deterministic(pairs, actions)


def main() -> None:
    mdp = maintenance_model()
    habit = run_to_failure(mdp.pairs)
    today, plan = evaluate_with_bound(mdp, habit), optimal(mdp)
    weeks = occupancy(mdp, plan.policy)
    share = mdp.pairs.dense(weeks / weeks.sum()).sum(axis=1)

    table = Table(title="One machine, week by week: the habit and the best plan")
    for column in ("condition", "habit", "best"):
        table.add_column(column)
    for column in ("value of habit", "value of best", "time spent there"):
        table.add_column(column, justify="right")
    for state, condition in enumerate(CONDITIONS):
        before, after = (
            ACTIONS[int(policy.dense()[state].argmax())] for policy in (habit, plan.policy)
        )
        changed = f"[bold green]{after}[/]" if after != before else after
        table.add_row(
            condition,
            before,
            changed,
            f"{today.value[state]:.1f}",
            f"{plan.value[state]:.1f}",
            f"{share[state]:.0%}",
        )
    console = Console()
    console.print(table)
    before, after = float(mdp.initial @ today.value), float(mdp.initial @ plan.value)
    console.print(
        f"A new machine is worth {before:.2f} with the habit, {after:.2f} with the best plan "
        f"({after / before - 1:+.0%}).\nFound in {plan.iterations} rounds of policy iteration; "
        f"values are proven to within {max(today.error_bound, plan.error_bound):.1e}."
    )


if __name__ == "__main__":
    main()
