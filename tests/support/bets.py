"""The lower limit of a single bet."""

from surestep.certificates.bets import Bet, limits_of, on_one_mean


def lower_limit(series, complete, stake, least, delta):
    """L of series [R, M], of which the first `complete` [R] values are there."""
    return limits_of([Bet(series, complete, delta, on_one_mean(stake, least))])[0]


def lower_limit_in_turn(series, complete, turns, delta):
    """L of series [R, M] of values of two kinds in turn."""
    return limits_of([Bet(series, complete, delta, turns)])[0]
