"""What a learnt structure is worth beside a known one, and what a missed parent does.

    python benchmarks/learned_structure.py [--logs 5] [--cells 4:100 …] [--rare 100:0.01:0.3 …]

SysAdmin with n machines, as in `benchmarks/nodes.py`: the current policy takes any action in 30 %
of steps, else it reboots the first failed machine; the new one reboots the failed machine with the
fewest failed neighbours. The structure is known, or learnt from the part of the log that chooses:
of all machines together (`machine_*`: parents and action, nothing is given), or of each machine by
itself (parents; given are its reboot, and that a failed one stays failed). Printed are the share of
neighbours that are found as parents, how many machines are parents that are none, the mean L⁺ over
the true gain (δ = 0.1), how often L is above the gain, and what `improve` takes from L, as the test
of the structure could have missed it. Last is the value of factored SPIBB (N∧ = 10), where the
whole log teaches the structure; of logs up to 300 episodes.

Then the danger, in a world whose true gain is 0. Pushing a machine in good weather lets it work
with a chance of 0.5 + the effect, else it is 0.5. Weather is bad in half of the steps. The log
pushes in few of these, the new policy in all. Who misses the weather believes in a gain. A cell has
the episodes, the share of steps with bad weather in which the log pushes, and the effect. Printed
are how often the weather is missed, how often L is above 0 with the known and the learnt structure,
how often L or what `NodePosterior` believes is above 0 where `check_structure` neither fails nor
says too little of where the policy goes, and how often that is so less what the test could have
missed: then it is believed. There are 5 times as many logs.
"""

import argparse
from dataclasses import replace

import numpy as np

from surestep import Policy, performance
from surestep.algorithms import SPIBB, improve_on_nodes, learn_structure
from surestep.certificates import NodePosterior, NodeStitched
from surestep.checks import check_structure
from surestep.checks.structure import could_miss
from surestep.environments.sysadmin import DISCOUNT, STRUCTURE, SysAdmin, sysadmin
from surestep.model import ColumnRules, FactoredLog, FactoredProblem, Structure

SMALLEST = ("--logs", "1", "--cells", "3:30", "--rare", "30:0.05:0.3", "--truth", "50")
CELLS = ("4:100", "4:300", "4:1000", "8:20", "8:100", "8:300", "8:1000")
RARE = (
    *("100:0.01:0.3", "300:0.01:0.3", "1000:0.01:0.3", "3000:0.01:0.3"),
    *("300:0.05:0.15", "300:0.05:0.12", "1400:0.01:0.12"),
    "3500:0.016:0.06",
)
STEPS, BAD = 40, 0.5
BELIEVER = NodePosterior(draws=99)
MOST_PLANNED = 300  # episodes
SHARES = {100: 0.5, 300: 0.36}  # of the log that chooses, as `improve` has it; else 0.3


def certifier_for(episodes: int) -> NodeStitched:
    """Returns the certifier with the share of the log that `improve` uses."""
    return NodeStitched(train_share=SHARES.get(episodes, 0.5 if episodes < 100 else 0.3))


def true_value(world: SysAdmin, policy: ColumnRules, episodes: int) -> float:
    """Returns the value of a policy by simulation."""
    return float(world.sample(policy, episodes, rng=0, steps=150).returns(DISCOUNT).mean())


def tables_of(machines: int, way: str) -> dict[str, dict]:
    """Returns what is said of the ring: all, nothing of a machine, or only its reboot."""
    reward = {"reward": STRUCTURE["reward"]}
    if way == "known":
        return STRUCTURE
    if way == "together":
        return {"machine_*": {"parents": "learn", "action": "learn"}} | reward
    return {
        f"machine_{i}": {
            "parents": "learn",
            "action": {"reboot": f"reboot_{i}"},
            "known": [
                {"action": "reboot", "is": "works"},
                {f"machine_{i}": "failed", "is": "failed"},
            ],
        }
        for i in range(machines)
    } | reward


def found_in(machines: int, tables: dict[str, dict]) -> tuple[float, float]:
    """Returns the share of neighbours that are parents, and the number of others a machine."""
    found = others = 0
    for i in range(machines):
        star = {"@": i, "@left": (i - 1) % machines, "@right": (i + 1) % machines}
        entry = tables.get("machine_*") or tables[f"machine_{i}"]
        words = " + ".join(entry["parents"]).split(" + ")
        named = {star[w] if w in star else int(w.rpartition("_")[2]) for w in words if w}
        found += len(named & {*star.values()} - {i})
        others += len(named - {*star.values()})
    return found / (2 * machines), others / machines


def ring(cell: str, logs: int, truth: int) -> None:
    """Prints a line for each way to have the structure of a ring."""
    machines, episodes = map(int, cell.split(":"))
    world, table = SysAdmin(machines), sysadmin(machines)
    policy, certifier = world.fewest_failed_neighbours(), certifier_for(episodes)
    gain = true_value(world, policy, truth) - true_value(world, world.first_failed(0.3), truth)
    for way in ("known", "together", "by itself"):
        figures = []
        for seed in range(logs):
            given = world.problem(world.sample(world.first_failed(0.3), episodes, rng=seed))
            said = tables_of(machines, way)
            tables = learn_structure(certifier.parts(given)[0].log, said)
            problem = with_tables(given, tables)
            lower = certifier.certify(problem, policy).lower
            value = np.nan
            if episodes <= MOST_PLANNED:
                whole = with_tables(given, learn_structure(given.log, said))
                spibb = improve_on_nodes(SPIBB(n_wedge=10), whole).probability
                value = performance(table.mdp, Policy(table.mdp.pairs, spibb))
            missed = could_miss(problem, policy)
            figures.append(
                [*found_in(machines, tables), max(lower, 0), lower > gain, missed, value]
            )
        share, others, least, wrong, missed, value = np.mean(figures, axis=0)
        print(
            f"{machines:8} {episodes:8}  {way:10} {share:6.0%} {others:6.2f} {least / gain:8.0%} "
            f"{wrong:6.0%} {missed:6.2f} {value:7.2f}",
            flush=True,
        )


def with_tables(problem: FactoredProblem, tables: dict[str, dict]) -> FactoredProblem:
    """Returns a problem with another structure."""
    log = problem.log
    columns = dict(zip(log.structure.columns, log.structure.values, strict=False))
    structure = Structure.read(columns, log.structure.actions, tables)
    return replace(problem, log=replace(log, structure=structure))


def weather(machine: list[str] | str) -> dict[str, dict]:
    """Returns what is said of the world with weather; `machine` are the parents of the machine."""
    return {
        "weather": {"parents": [], "action": "none"},
        "machine": {"parents": machine},
        "reward": {"terms": [{"of": "machine", "works": 1.0}]},
    }


def rare(episodes: int, pushed: float, effect: float, logs: int) -> None:
    """Prints how often the weather is missed, and what is claimed then, though the gain is 0."""
    columns = {"weather": ("bad", "good"), "machine": ("failed", "works")}
    structure = Structure.read(columns, ["rest", "push"], weather(["weather"]))
    good = ({"weather": "good"}, "push")
    current = ColumnRules.of(structure, [good], "rest", chance=[1.0, 2 * pushed])
    new = ColumnRules.of(structure, [good], "push", chance=[1.0, 0.0])
    certifier, figures = certifier_for(episodes), []
    for seed in range(logs):
        rng = np.random.default_rng(seed)
        state = np.empty((episodes, STEPS + 1, 2), np.int16)
        state[:, 0] = 1
        state[:, 1:, 0] = rng.random((episodes, STEPS)) >= BAD
        action = np.empty((episodes, STEPS), np.int64)
        for t in range(STEPS):
            action[:, t] = current.act(state[:, t], rng)
            chance = 0.5 + effect * action[:, t] * state[:, t, 0]
            state[:, t + 1, 1] = rng.random(episodes) < chance
        log = FactoredLog(
            structure=structure,
            state=state[:, :-1].reshape(-1, 2),
            action=action.ravel(),
            next_state=state[:, 1:].reshape(-1, 2),
            ended=np.zeros(action.size, np.bool_),
            offsets=np.arange(episodes + 1) * STEPS,
        )
        given = FactoredProblem(log=log, behavior=current, discount=DISCOUNT)
        tables = learn_structure(certifier.parts(given)[0].log, weather("learn"))
        problem = with_tables(given, tables)
        claims = [certifier.certify(one, new).lower for one in (given, problem)]
        best = max(
            claims[1],
            replace(BELIEVER, train_share=certifier.train_share).certify(problem, new).lower,
        )
        test = check_structure(problem.log, new, DISCOUNT, behavior=current)
        trusted = not test.failed and not test.is_blind
        missed = "weather" not in tables["machine"]["parents"]
        less = best - could_miss(problem, new)
        wrong = [claims[0] > 0, claims[1] > 0, trusted and best > 0, trusted and less > 0]
        figures.append([missed, *wrong])
    cell = f"{episodes:8} {pushed:7.1%} {effect:6} "
    print(cell + " ".join(f"{x:9.0%}" for x in np.mean(figures, axis=0)), flush=True)


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--logs", type=int, default=5)
    parser.add_argument("--cells", nargs="*", default=CELLS)
    parser.add_argument("--rare", nargs="*", default=RARE)
    parser.add_argument("--truth", type=int, default=2000)
    given = parser.parse_args()
    print("machines episodes  structure   found others L⁺/gain  wrong missed   SPIBB")
    for cell in given.cells:
        ring(cell, given.logs, given.truth)
    print("\nepisodes  pushed effect    missed L>0 known    learnt    tested  believed")
    for cell in given.rare:
        episodes, pushed, effect = cell.split(":")
        rare(int(episodes), float(pushed), float(effect), 5 * given.logs)


if __name__ == "__main__":
    main()
