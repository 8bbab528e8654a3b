"""The contract of an algorithm: settings, one verb, and the promises it makes.

An algorithm *declares* its promises, and one suite of tests holds every algorithm to exactly those.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, ClassVar, Protocol

from msgspec import Meta

from surestep.model.problem import Improvement, Problem

NWedge = Annotated[int, Meta(ge=0, description="pairs with at most that many visits are avoided")]


class Promise(Enum):
    """A property that holds for every problem."""

    KEEPS_BEHAVIOR = "keeps π_b without data"
    NEVER_WORSE = "never worse than π_b in the estimated MDP"
    REACHES_OPTIMUM = "reaches the optimum as every pair's visits grow"
    OPTIMAL_IN_CLASS = "optimal in its class of policies"
    RENUMBERING = "values do not depend on the numbers of states and actions"


class Improver(Protocol):
    """Whatever proposes a policy for a problem."""

    def improve(self, problem: Problem) -> Improvement:
        """Returns the policy it proposes."""
        ...


class Algorithm(Improver, Protocol):
    """A frozen dataclass of settings with one verb.

    One that looks at whole episodes (`problem.log`) has `looks_at_log` = True besides.
    """

    name: ClassVar[str]  # in the registry and on the command line
    source: ClassVar[str]  # the paper it comes from
    constraint: ClassVar[str]  # what holds for its policies, in words; empty: nothing

    @property
    def promises(self) -> frozenset[Promise]:
        """Returns the promises that it makes with these settings."""
        ...
