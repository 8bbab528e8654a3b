"""Judge a policy that was made elsewhere: here a rule of a handbook, for the pumps of the example.

No algorithm of surestep has a part in it. `improvement_of` makes an `Improvement` of the bare
policy; a class that returns it, registered under a name, goes through everything that an algorithm
goes through: certificates, stress tests, the report, a saved folder, explanations, verification.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

import surestep
from surestep import Improvement, Policy, Problem, improvement_of
from surestep.pipeline import explain, verify_result

LOG = Path(__file__).with_name("pumps.toml")


@dataclass(frozen=True)
class Handbook:
    """Services every pump that is worn, and leaves the others to the habit."""

    name: ClassVar = "handbook"
    source: ClassVar = "the handbook of a workshop"
    constraint: ClassVar = "only worn pumps are treated in another way"
    promises: ClassVar = frozenset()

    def improve(self, problem: Problem) -> Improvement:
        """Returns the rule as an improvement of the problem."""
        pairs, habit = problem.counts.pairs, problem.behavior.probability
        worn = np.array([label.split(", ")[0] == "worn" for label in pairs.state_labels])
        service = pairs.action == pairs.action_labels.index("service")
        return improvement_of(problem, Policy(pairs, np.where(worn[pairs.state], service, habit)))


def main() -> None:
    """Prints what the log says of the rule, and what a saved folder knows of it."""
    surestep.register(Handbook)
    result = surestep.improve(
        LOG,
        Handbook(),
        least_visits=1,  # the rule is the rule, also where the log says little
        certificates=["stitched", "posterior:draws=99"],
        worlds=0,
    )
    print(f"{result.verdict}: an estimated gain of {result.estimated_gain:.0f} an episode")
    for claim in result.certificates:
        print(f"{claim.kind}, {claim.standing}: L = {claim.lower:.0f}")
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "result"
        result.save(saved)
        reasons = explain(surestep.load(saved), ("worn", "low"))
        print(*(f"{each.action[0]} {each.probability:.2g}" for each in reasons.actions), sep=", ")
        print(verify_result(saved, LOG).level)


if __name__ == "__main__":
    main()
