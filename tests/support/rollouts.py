"""Rollouts of one case, as tests of stitched certificates ask for them."""

from typing import NamedTuple

from surestep.certificates.stacks import Case, roll_out_each


class Draw(NamedTuple):
    """Random numbers to roll out with, and the numbers of runs and rounds."""

    seed: int
    purpose: int
    runs: int
    rounds: int


def roll_out(stacks, course, readable, way, draw):
    """Rounds until an entry is missing; a pair that is not `readable` [K] cuts a rollout."""
    case = Case(stacks, course, readable, draw.seed, draw.rounds)
    return roll_out_each([case], [way], draw.purpose, draw.runs)[0]
