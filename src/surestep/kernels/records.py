"""Records of arrays that travel together: models, a plan of elimination, a process to sample."""

from __future__ import annotations

from typing import NamedTuple

from surestep.kernels._types import BatchIn, BoolsIn, FloatsIn, IndicesIn, IntsIn


class Model(NamedTuple):
    """A model as a Bellman backup reads it."""

    pair_offsets: IntsIn  # [S+1]
    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    probability: FloatsIn  # [T]
    discount: FloatsIn  # [K]
    reward: FloatsIn  # [K] expected


class Models(NamedTuple):
    """Models of one shape; what differs has one row each, or one row for all."""

    pair_offsets: IntsIn  # [S+1]
    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    probability: BatchIn  # [B, T]
    discount: FloatsIn  # [K]
    reward: BatchIn  # [B, K] expected


class EliminationPlan(NamedTuple):
    """The order of elimination, and the rows of L and U in it, for any policy of the shape."""

    order: IntsIn  # [S] the state eliminated i-th
    place: IntsIn  # [S] when each state is eliminated
    lower_offsets: IntsIn  # [S+1]
    lower: IntsIn  # the columns of each row of L, rising
    upper_offsets: IntsIn  # [S+1]
    upper: IntsIn  # the columns of each row of U without the diagonal, rising


class Process(NamedTuple):
    """A model under a policy, to draw episodes from.

    Each of the chances is given as kernels need it to draw: as a running sum of its run, or as a
    share of what is left of it.
    """

    pair_offsets: IntsIn  # [S+1]
    policy: FloatsIn  # [K]
    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    probability: FloatsIn  # [T]
    over: BoolsIn  # [S] states in which an episode is over
    initial: FloatsIn  # [S]
