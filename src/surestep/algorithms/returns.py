"""Returns that followed each pair in the log: Monte Carlo's estimate of q under π_b."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.errors import InvalidParameter
from surestep.kernels.returns import discounted_returns
from surestep.model.problem import Problem


class PairReturns(NamedTuple):
    """Every-visit returns of the pairs [K]: how many, their mean, their variance (ddof 1)."""

    times: IntArray
    mean: FloatArray  # 0 where there is none
    variance: FloatArray  # 0 where there are fewer than two


def pair_returns(problem: Problem) -> PairReturns:
    """Returns the discounted returns after every visit, to the end of its episode in the log."""
    log = problem.log
    if log is None:
        raise InvalidParameter(
            "this algorithm looks at the returns of whole episodes, but the problem has no log; "
            "give it as Problem(log=…)"
        )
    returns = np.empty(log.reward.size)
    discounted_returns(log.episode_offsets, log.reward, problem.single_discount, returns)
    pair, size = log.pair, problem.counts.pairs.num_pairs
    times = np.bincount(pair, minlength=size)
    mean = np.bincount(pair, returns, size) / np.maximum(times, 1)
    spread = np.bincount(pair, (returns - mean[pair]) ** 2, size)
    return PairReturns(times, mean, spread / np.maximum(times - 1, 1))
