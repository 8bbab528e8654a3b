"""Compares candidate policies by their lower bound and by how hard they are to follow.

People can follow a policy with one action in every state that it changes, and remember a small tree
over the columns of the state. Such policies are preferred where they promise nearly as much.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from surestep.algorithms import Algorithm
from surestep.algorithms.contract import ROUNDING, Limits
from surestep.algorithms.trees import StateColumn, Tree, grow
from surestep.certificates.common import Bound, Certifier, unless_refused, usable
from surestep.certificates.registry import CERTIFIERS, check_certifier
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.model import Improvement, Policy, Problem

NEARLY = 0.9  # of the largest bound: enough for a policy that people can follow
MIXED = np.inf  # the size of a policy that may draw lots
ONE_ACTION = 1e6  # the size of a policy with one action in every state that it changes


class Tried(NamedTuple):
    """A candidate policy, and the algorithm that made it.

    Its size says how hard it is to follow: the number of rules of a tree, else `ONE_ACTION` or
    `MIXED`. `left_out` is the place of a column that it ignores. With further signals, `spare` is
    its distance from the limit of each.
    """

    algorithm: Algorithm
    policy: Policy
    size: float = MIXED
    tree: Tree = ()
    left_out: int | None = None
    spare: Mapping[str, float] = {}


class Candidate(NamedTuple):
    """A policy that was tried, its improvement, and its bound, or why there is none."""

    tried: Tried
    improvement: Improvement
    lower: Bound

    @property
    def n_wedge(self) -> int | None:
        """Returns the N∧ in the settings of the algorithm; None if it has none."""
        return n_wedge_of(self.tried.algorithm)


class Choice(NamedTuple):
    """All candidates, the grid first; the place of the best, and the certifier that chose it."""

    candidates: tuple[Candidate, ...]
    taken: int
    chosen_by: Certifier

    @property
    def best(self) -> Candidate:
        """Returns the chosen candidate."""
        return self.candidates[self.taken]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Choosing(ABC):
    """Chooses among candidates: says who judges these, and which ones there are.

    `certifier` is what chooses, and where it promises no gain, `otherwise`. Candidates keep to the
    `limits`. With `one_action` there are policies with one action in every state that they change,
    and with `columns` trees over these of up to so many `rules`.
    """

    certifier: Certifier
    otherwise: Certifier | None = None
    limits: Limits = dataclasses.field(default_factory=Limits)
    one_action: bool = False
    columns: tuple[StateColumn, ...] = ()
    rules: int = 0

    def improve(self, problem: Problem) -> Improvement:
        """Returns the policy of the best candidate."""
        return self.choose(problem).best.improvement

    @abstractmethod
    def choose(self, problem: Problem) -> Choice:
        """Tries all candidates. All of the problem chooses."""


def new_trees(
    known: Sequence[Tried],
    source: Tried,
    problem: Problem,
    columns: Sequence[StateColumn],
    most: int,
) -> list[Tried]:
    """Grows trees for a candidate's policy within its N∧; leaves out trees already known."""
    inside = problem.within(problem.counts.visits <= (n_wedge_of(source.algorithm) or 0))
    policies = {one.policy.probability.tobytes() for one in known if one.tree}
    return [
        source._replace(policy=policy, size=size, tree=tree, left_out=None)
        for tree, policy, size in grow(inside, source.policy, columns, most)
        if policy.probability.tobytes() not in policies
    ]


def with_one_action(policy: Policy, behavior: Policy) -> Policy:
    """Returns the policy with one action in every state that it changes.

    Of the actions that the policy takes more often than π_b, this is the most probable one, the
    first of equals. So closed pairs are still not taken more often than by π_b.
    """
    offsets, state = policy.pairs.offsets, policy.pairs.state
    more = policy.probability > behavior.probability + ROUNDING
    chance = np.where(more, policy.probability, 0.0)
    most = np.flatnonzero(more & (chance == np.maximum.reduceat(chance, offsets[:-1])[state]))
    changed, first = np.unique(state[most], return_index=True)
    alone = np.where(np.isin(state, changed), 0.0, policy.probability)
    alone[most[first]] = 1.0
    return Policy(policy.pairs, alone)


def check_may_choose(name: str, certifier: Certifier) -> None:
    """Refuses a certifier whose claims must not choose a policy."""
    check_certifier(certifier)
    if not certifier.may_choose:
        choosing = " or ".join(kind.__name__ for kind in CERTIFIERS.values() if kind.may_choose)
        raise InvalidParameter(
            f"{name} is of type {type(certifier).__name__}, expected {choosing}: the claims of "
            "others hold for an N∧ that was fixed beforehand"
        )


def in_numbers(lower: Iterable[Bound]) -> list[float]:
    """Returns bounds as numbers, −∞ for each refusal."""
    return [-np.inf if isinstance(bound, CertificateRefused) else bound for bound in lower]


def best_of(tried: Sequence[Tried], lower: Sequence[Bound]) -> int:
    """Returns the position of the largest bound; of equal ones, that of the largest N∧.

    If the largest bound is above 0, takes the smallest candidate with at least nine tenths of it;
    of candidates of equal size, the one with the largest bound.
    """
    if not usable(lower):
        unless_refused(lower[0])
    values = in_numbers(lower)
    best = max(values)
    near = [i for i, value in enumerate(values) if value >= (NEARLY * best if best > 0 else best)]
    sizes = [one.size if best > 0 else MIXED for one in tried]
    return min(near, key=lambda i: (sizes[i], -values[i], -(n_wedge_of(tried[i].algorithm) or 0)))


def n_wedge_setting(algorithm: Any) -> str | None:
    """Returns the name of the algorithm's setting for N∧; None if it has none."""
    names = [field.name for field in dataclasses.fields(algorithm)]
    return next((name for name in ("n_wedge", "spibb_n_wedge") if name in names), None)


def n_wedge_of(algorithm: Algorithm) -> int | None:
    """Returns the N∧ in the settings of the algorithm; None if it has none."""
    setting = n_wedge_setting(algorithm)
    return None if setting is None else int(getattr(algorithm, setting))
