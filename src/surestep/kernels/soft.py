"""Computes greedy steps of Soft-SPIBB: the best policy within a budget of distance to π_b.

Moving mass d from pair a to pair b gains d·(q(b) − q(a)) and costs d·(leave(a) + enter(b)) of the
budget ε of a state. For Soft-SPIBB both prices are the error e(s,a) of the pair, for its lower form
leaving is free.
"""

import numpy as np
from numba import prange

from surestep._arrays import FloatArray
from surestep.kernels._compile import SWEEP_THREADS, helper, kernel
from surestep.kernels.types import FloatsIn, FloatsOut, IntsIn

USED_UP = -1.0  # the budget is spent: not even a move at price 0 is allowed


@helper
def per_price(amount: float, price: float) -> float:
    """Returns amount / price: the gain per unit of budget, or the mass that a budget moves.

    It is infinite if the price is 0.
    """
    return amount / price if price > 0.0 else np.inf


@helper
def keeps_up(gain: float, price: float, speed: float, tie: float) -> bool:
    """Tells whether gain / price is at least `speed`, up to a tie that covers rounding."""
    return per_price(gain + tie, price) >= speed


@helper
def next_receiver(
    first: int, last: int, q: FloatArray, enter: FloatArray, paid: float, giver: int, tie: float
) -> int:
    """Returns the pair that takes over from `giver` as the budget grows; −1 if none does.

    It has a higher q than `giver` and costs more to enter than `paid`: mass moves to pair b at the
    rate (q(b) − q(giver)) / (enter(b) − paid). The highest rate comes first, the first pair among
    ties.
    """
    best = -1
    for b in range(first, last):
        if q[b] > q[giver] + tie and enter[b] < np.inf:
            speed = per_price(q[b] - q[giver], enter[b] - paid)
            if best < 0 or not keeps_up(q[best] - q[giver], enter[best] - paid, speed, tie):
                best = b
    return best


@helper
def next_donor(
    first: int,
    last: int,
    q: FloatArray,
    leave: FloatArray,
    price: float,
    receiver: int,
    probability: FloatArray,
    tie: float,
) -> tuple[int, float]:
    """Returns the pair that gives its mass to `receiver` next, and its rate; −1 if none does.

    The highest rate comes first, the first pair among ties.
    """
    best, highest = -1, 0.0
    for a in range(first, last):
        if q[a] < q[receiver] - tie and probability[a] > 0.0 and leave[a] < np.inf:
            speed = per_price(q[receiver] - q[a], leave[a] + price)
            if best < 0 or not keeps_up(q[receiver] - q[best], leave[best] + price, speed, tie):
                best, highest = a, speed
    return best, highest


@helper
def first_receiver(first: int, last: int, q: FloatArray, enter: FloatArray, tie: float) -> int:
    """Returns the pair that is cheapest to enter, the best among equals; −1 if none is allowed."""
    receiver = -1
    for b in range(first, last):
        if enter[b] < np.inf and (
            receiver < 0
            or enter[b] < enter[receiver]
            or (enter[b] == enter[receiver] and q[b] > q[receiver] + tie)
        ):
            receiver = b
    return receiver


@kernel(threads_from=SWEEP_THREADS)
def spend_budget(
    pair_offsets: IntsIn,
    q: FloatsIn,
    behavior: FloatsIn,
    leave: FloatsIn,
    enter: FloatsIn,
    budget: float,
    tie: float,
    probability: FloatsOut,
) -> None:
    """Maximises Σ_a π(a|s) q(s,a) subject to Σ_a leave·(π_b − π)⁺ + enter·(π − π_b)⁺ ≤ budget.

    Solves a linear program for each state exactly, by a falling price λ of the budget. At price λ
    every unit of moved mass goes to one receiver r, the pair that maximises q − λ·enter. Pair a
    gives all its mass as soon as λ < (q(r) − q(a)) / (leave(a) + enter(r)). As λ falls, either
    another pair gives, or another pair takes over as receiver with everything received so far. Each
    such event spends more of the budget. The event that uses it up is done in part: all mixtures of
    two solutions that are optimal at the same λ are optimal. A pair that takes over has the larger
    q, so it never gave before. The mass that π_b gave to the old receiver stays there, and that
    pair may give it later.
    """
    for s in prange(pair_offsets.size - 1):
        first, last = pair_offsets[s], pair_offsets[s + 1]
        for k in range(first, last):
            probability[k] = behavior[k]
        receiver = first_receiver(first, last, q, enter, tie)
        rest, received = budget, 0.0
        # Moves at price 0 have the highest rate, so they come first, even without a budget.
        while receiver >= 0 and rest >= 0.0:
            heir = next_receiver(first, last, q, enter, enter[receiver], receiver, tie)
            donor, giving = next_donor(
                first, last, q, leave, enter[receiver], receiver, probability, tie
            )
            if heir >= 0 and keeps_up(
                q[heir] - q[receiver], enter[heir] - enter[receiver], giving, tie
            ):
                price = enter[heir] - enter[receiver]
                moved = min(received, per_price(rest, price))
                rest = rest - moved * price if moved == received else USED_UP
                probability[receiver] = max(probability[receiver] - moved, behavior[receiver])
                probability[heir] += moved
                receiver = heir
            elif donor >= 0:
                price = leave[donor] + enter[receiver]
                moved = min(probability[donor], per_price(rest, price))
                rest = rest - moved * price if moved == probability[donor] else USED_UP
                probability[donor] -= moved
                probability[receiver] += moved
                received += moved
            else:
                break


@helper
def lowest_value(first: int, last: int, q: FloatArray, done: FloatArray, tie: float) -> int:
    """Returns the first pair not done whose q is within `tie` of the lowest."""
    lowest = np.inf
    for a in range(first, last):
        if done[a - first] == 0.0:
            lowest = min(lowest, q[a])
    for a in range(first, last):
        if done[a - first] == 0.0 and q[a] <= lowest + tie:
            return a
    return -1


@kernel(threads_from=SWEEP_THREADS)
def spend_budget_greedily(
    pair_offsets: IntsIn,
    q: FloatsIn,
    behavior: FloatsIn,
    error: FloatsIn,
    reference: FloatsIn,
    budget: float,
    tie: float,
    probability: FloatsOut,
) -> None:
    """Moves mass from the worst pairs to the highest gain per unit of budget (Approx-Soft-SPIBB).

    Half of the budget limits the mass that a pair gives, and the mass that it takes; the whole
    budget limits each move. The published rule lacks the second limit, and may overspend.
    `reference` [K] is a second estimate of q: a move that loses under it is allowed only as far as
    earlier moves of the state have gained (Advantage-Soft-SPIBB). A reference of 0 has no effect.
    """
    enter = error.copy()
    for s in prange(pair_offsets.size - 1):
        first, last = pair_offsets[s], pair_offsets[s + 1]
        for k in range(first, last):
            probability[k] = behavior[k]
        rest, surplus = budget, 0.0
        done = np.zeros(last - first)
        for _ in range(first, last):
            donor = lowest_value(first, last, q, done, tie)
            done[donor - first] = 1.0
            if error[donor] == np.inf:
                continue
            offer = min(probability[donor], per_price(rest, 2.0 * error[donor]))
            for k in range(first, last):
                enter[k] = error[k]
            while offer > 0.0:
                receiver = next_receiver(first, last, q, enter, 0.0, donor, tie)
                if receiver < 0:
                    break
                enter[receiver] = np.inf  # once for each donor
                price = error[donor] + error[receiver]
                moved = min(offer, per_price(rest, 2.0 * error[receiver]))
                moved = min(moved, per_price(rest, price))
                advantage = reference[receiver] - reference[donor]
                if advantage < 0.0:
                    moved = min(moved, surplus / -advantage)
                if moved > 0.0:
                    offer -= moved
                    probability[donor] -= moved
                    probability[receiver] += moved
                    rest -= moved * price
                    surplus += moved * advantage
