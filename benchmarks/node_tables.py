"""What nodes are worth where all states can be enumerated: factored SPIBB, and the robust claim.

    python benchmarks/node_tables.py [--logs 10] [--cells 8:20 8:100 8:500 4:100 4:500 4:2000]

SysAdmin with n machines, 40-step episodes, π_b = 0.7 π* + 0.3 uniform, γ = 0.95, N∧ = 10, δ = 0.1.
Printed are mean performances of basic RL and SPIBB by flat counts and by nodes (true values, on the
known world), the mean L of the robust certificate by flat counts and by nodes, of the stitched one
on nodes, the mean true gain, how often a claim was above it, and the CPU seconds of a policy and of
a robust claim on nodes. All claims are about the policy of SPIBB by nodes, except the flat ones.
"""

import argparse
import time

import numpy as np

from surestep import Policy, performance
from surestep.algorithms import SPIBB, BasicRL, improve_on_nodes
from surestep.certificates import NodeRobust, NodeStitched, Robust, certify
from surestep.environments import Benchmark
from surestep.environments.sysadmin import SysAdmin, sysadmin
from surestep.model import DecisionLog, FactoredLog, FactoredProblem

SMALLEST = ("--logs", "1", "--cells", "3:20")
CELLS = ("8:20", "8:100", "8:500", "4:100", "4:500", "4:2000")


def by_columns(world: SysAdmin, log: DecisionLog) -> FactoredLog:
    """Returns the log of an enumerated ring by its machines."""
    digits = np.arange(world.machines)[::-1]
    return FactoredLog(
        structure=world.structure(),
        state=log.state[:, np.newaxis] >> digits & 1,
        action=log.action,
        next_state=log.next_state[:, np.newaxis] >> digits & 1,
        ended=log.terminated,
        offsets=log.episode_offsets,
    )


def one_log(world: SysAdmin, truth: Benchmark, episodes: int, seed: int) -> list[float]:
    """Returns the figures of one log."""
    log = truth.sample(episodes, seed)
    flat = truth.problem(log)
    behavior = Policy(flat.counts.pairs, truth.behavior.probability)
    given = world.problem(by_columns(world, log))
    problem = FactoredProblem(
        log=given.log,
        behavior=behavior,
        discount=given.discount,
        start=given.start,
        rest_bounds=given.rest_bounds,
        return_bounds=given.return_bounds,
    )

    def value(policy: Policy) -> float:
        return performance(truth.mdp, Policy(truth.mdp.pairs, policy.probability))

    began = time.process_time()
    policy = improve_on_nodes(SPIBB(n_wedge=10), problem)
    improving = time.process_time() - began
    began = time.process_time()
    robust = NodeRobust().certify(problem, policy).lower
    certifying = time.process_time() - began
    flat_policy = SPIBB(n_wedge=10).improve(flat).policy
    return [
        value(BasicRL().improve(flat).policy),
        value(improve_on_nodes(BasicRL(), problem)),
        value(flat_policy),
        value(policy),
        certify(flat, flat_policy, Robust(known_start=True)).lower,
        robust,
        NodeStitched().certify(problem, policy).lower,
        value(policy) - value(behavior),
        improving,
        certifying,
    ]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--logs", type=int, default=10)
    parser.add_argument("--cells", nargs="*", default=CELLS)
    given = parser.parse_args()
    print("machines episodes | basic: flat  nodes | SPIBB: flat  nodes (least) | "
          "robust: flat   nodes stitched   gain wrong | CPU s: policy claim")  # fmt: skip
    for cell in given.cells:
        machines, episodes = map(int, cell.split(":"))
        world, truth = SysAdmin(machines), sysadmin(machines)
        rows = np.array([one_log(world, truth, episodes, seed) for seed in range(given.logs)])
        mean = rows.mean(axis=0)
        wrong = int((rows[:, 5:7] > rows[:, 7:8]).any(axis=1).sum())
        print(
            f"{machines:8} {episodes:8} | {mean[0]:11.1f} {mean[1]:6.1f} | {mean[2]:11.1f} "
            f"{mean[3]:6.1f} {rows[:, 3].min():7.1f} | {mean[4]:12.1f} {mean[5]:7.1f} "
            f"{mean[6]:8.1f} {mean[7]:6.1f} {wrong:5} | {mean[8]:13.2f} {mean[9]:5.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
