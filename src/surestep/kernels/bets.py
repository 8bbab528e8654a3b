"""Plays bets on the differences of a pilot, one episode after the other, against many claims."""

import numpy as np

from surestep.kernels._compile import kernel
from surestep.kernels.types import FloatsIn, IntsOut

MOST = 0.99  # of the capital may be lost in one episode


@kernel()
def first_reached(
    values: FloatsIn,
    least: FloatsIn,
    weight: FloatsIn,
    stakes: FloatsIn,
    claims: FloatsIn,
    target: float,
    when: IntsOut,
) -> None:
    """Writes after how many episodes the mean capital against each claim first reaches the target.

    Writes the number of episodes plus 1 if it never does. `least` [n] has the least possible
    `values`, and `weight` [n] the share of each stake that an episode gets.
    """
    for i in range(claims.size):
        when[i] = values.size + 1
        capital = np.ones(stakes.size)
        for t in range(values.size):
            room = claims[i] - least[t]
            total = 0.0
            for j in range(stakes.size):
                stake = stakes[j] * weight[t]
                if stake * room > MOST:
                    stake = MOST / room
                capital[j] *= 1.0 + stake * (values[t] - claims[i])
                total += capital[j]
            if total >= target * stakes.size:
                when[i] = t + 1
                break
