"""Builds SysAdmin: machines in a ring, of which one can be rebooted in each step.

A rebooted machine works next; a failed one stays failed. A working one stays up with a chance of
1 − (0.05 + 0.3 · failed neighbours). A step earns the number of working machines, less 1 for a
reboot. All machines work at first (Guestrin et al. 2003; sizes and chances as in gym-factored).
`SysAdmin` simulates any number of machines by columns; `sysadmin` enumerates the states of few.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep.certificates.node_law import sampled_log
from surestep.environments.benchmark import Benchmark, mdp_from_rows
from surestep.errors import InvalidParameter
from surestep.model import Pairs, Policy, Structure
from surestep.model.factored import ColumnRules, FactoredLog, FactoredProblem, Rule
from surestep.planning import policy_iteration
from surestep.planning.iteration import best_actions

DISCOUNT = 0.95
STEPS = 40
FAILED, WORKS = "failed", "works"
GROUP = "machine_*"
STAYS_UP = np.array([0.35, 0.65, 0.95])  # with so many working neighbours
RANDOM = 0.3  # the share of random actions in π_b
FEWEST, MOST = 3, 12  # machines of an enumerated ring
# Reboots the failed machine with the fewest failed neighbours; 4 rules, whatever the number.
FEWEST_FAILED: tuple[Rule, ...] = (
    ({"@": FAILED, "@left": WORKS, "@right": WORKS}, "reboot_@"),
    ({"@": FAILED, "@left": WORKS}, "reboot_@"),
    ({"@": FAILED, "@right": WORKS}, "reboot_@"),
    ({"@": FAILED}, "reboot_@"),
)
STRUCTURE: dict[str, dict[str, Any]] = {
    GROUP: {
        "parents": ["@", "@left + @right"],
        "action": {"reboot": "reboot_@"},
        "known": [{"action": "reboot", "is": WORKS}, {"@": FAILED, "is": FAILED}],
    },
    "reward": {"terms": [{"of": GROUP, WORKS: 1.0}, {"of": "action", "reboot_*": -1.0}]},
}


@dataclass(frozen=True, slots=True)
class SysAdmin:
    """A ring of machines, by columns: nothing is enumerated, so that there may be any number.

    Parameters
    ----------
    machines : int, default 8
        Their number, at least 3.

    Examples
    --------
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> world = SysAdmin(60)
    >>> world.sample(world.first_failed(0.3), episodes=5, rng=1)
    FactoredLog(num_steps=200, num_episodes=5)
    """

    machines: int = 8

    def __post_init__(self) -> None:
        arrays.expect_count("machines", self.machines)
        if self.machines < FEWEST:
            raise InvalidParameter(f"machines is {self.machines}, expected at least {FEWEST}")

    def structure(self, table: dict[str, dict[str, Any]] | None = None) -> Structure:
        """Returns the structure.

        Parameters
        ----------
        table : dict, optional
            Another description of it; by default all machines share three nodes.

        Returns
        -------
        Structure
            The columns, actions and nodes.
        """
        names = range(self.machines)
        columns = {f"machine_{i}": (FAILED, WORKS) for i in names}
        actions = [*(f"reboot_{i}" for i in names), "nothing"]
        return Structure.read(columns, actions, table or STRUCTURE)

    def first_failed(self, chance: float = 0.0) -> ColumnRules:
        """Returns the rule that reboots the first failed machine.

        Parameters
        ----------
        chance : float, default 0.0
            The chance of a random action.

        Returns
        -------
        ColumnRules
            The policy.
        """
        return ColumnRules.of(
            self.structure(), FEWEST_FAILED[-1:], "nothing", group=GROUP, chance=chance
        )

    def fewest_failed_neighbours(self, chance: float = 0.0) -> ColumnRules:
        """Returns the rules that reboot the failed machine with the fewest failed neighbours.

        Parameters
        ----------
        chance : float, default 0.0
            The chance of a random action.

        Returns
        -------
        ColumnRules
            The policy.
        """
        return ColumnRules.of(
            self.structure(), FEWEST_FAILED, "nothing", group=GROUP, chance=chance
        )

    def sample(
        self,
        policy: ColumnRules,
        episodes: int,
        rng: np.random.Generator | int,
        steps: int = STEPS,
    ) -> FactoredLog:
        """Draws episodes of a policy; no episode is over before its recording.

        Parameters
        ----------
        policy : ColumnRules
            The policy.
        episodes : int
            Their number.
        rng : numpy.random.Generator or int
            The source of randomness, or a seed.
        steps : int, default 40
            The steps of each.

        Returns
        -------
        FactoredLog
            The log.
        """
        return sampled_log(
            self.structure(),
            self.law(),
            policy,
            np.ones((episodes, self.machines), np.int64),
            steps=steps,
            rng=arrays.generator(rng),
        )

    def law(self) -> arrays.FloatArray:
        """Returns the cumulative chances of the values of the three nodes, and of what is known.

        Returns
        -------
        array of float [K, 2]
            The chances to have failed, and 1.
        """
        law = np.ones((self.structure().num_nodes, 2))
        # A node is a machine's value, the number of working neighbours, and whether it is rebooted.
        law.reshape(2, STAYS_UP.size, 2, 2)[1, :, 0, 0] = 1 - STAYS_UP
        return law

    def problem(self, log: FactoredLog, chance: float = RANDOM) -> FactoredProblem:
        """Returns the problem of a log by the rule of the first failed machine.

        Parameters
        ----------
        log : FactoredLog
            The log.
        chance : float, default 0.3
            The chance of a random action in π_b.

        Returns
        -------
        FactoredProblem
            With the known start, and bounds that hold whatever comes.
        """
        return FactoredProblem(
            log=log,
            behavior=self.first_failed(chance),
            discount=DISCOUNT,
            start=(1,) * self.machines,
            rest_bounds=(-1.0, self.machines / (1 - DISCOUNT)),
            return_bounds=(self.machines - 1.0, self.machines / (1 - DISCOUNT)),
        )


def sysadmin(machines: Annotated[int, Meta(ge=FEWEST, le=MOST)] = 8) -> Benchmark:
    """Builds a ring of few machines with all its states; π_b is 0.7 π* + 0.3 uniform.

    Machine 0 is the first binary digit of a state, and all work at first.
    """
    n, states = machines, 2**machines
    state = (np.arange(states)[:, np.newaxis] >> np.arange(n)[::-1]) & 1
    pairs = Pairs.full(states, n + 1, action_labels=[*(f"reboot_{i}" for i in range(n)), "nothing"])
    around = np.roll(state, 1, axis=1) + np.roll(state, -1, axis=1)
    up = (state * STAYS_UP[around])[pairs.state]
    up[np.arange(n) == pairs.action[:, np.newaxis]] = 1.0
    probability = np.ones((pairs.num_pairs, 1))
    for i in range(n):  # the last machine counts least
        both = np.stack([1 - up[:, i], up[:, i]], axis=1)
        probability = (probability[:, :, np.newaxis] * both[:, np.newaxis]).reshape(len(up), -1)
    reward = state.sum(axis=1)[pairs.state] - (pairs.action < n)
    mdp = mdp_from_rows(
        pairs, np.arange(states)[np.newaxis], probability, reward[:, np.newaxis], DISCOUNT
    )
    mdp = arrays.altered(mdp, initial=(np.arange(states) == states - 1).astype(np.float64))
    best = policy_iteration(mdp, best_actions(mdp), Policy.uniform(mdp)).policy
    return Benchmark(
        name="sysadmin",
        mdp=mdp,
        behavior=best.mix(Policy.uniform(mdp), RANDOM),
        horizon=STEPS,
        rewards="known",
        value_bounds=(-1.0, n / (1 - DISCOUNT)),
    )
