"""The number of its own draws a certificate may claim to exceed, judged by worlds of other kinds.

A certificate from K draws claims the r-th smallest, with r = ⌊δ(K+1)⌋ by its own prior. In a world
w whose truth is known, let u_w be the number of draws that do not exceed the truth: the claim of
rank r is wrong exactly where u_w < r. So among W worlds the claim of rank

    r = min(⌊δ(K+1)⌋, the ⌊δ(W+1)⌋-th smallest u_w)

is wrong in less than δ(W+1) of them. Of several kinds of worlds the smallest r is taken, of those
that calibrate: worlds in which the unseen is as good as can be are only reported. This is
one step, not a search: no rank is tried and then kept because it looked well. Where r = 0, no rank
at all survives the worlds, and the certificate is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IntArray
from surestep.certificates.certifying import with_delta
from surestep.certificates.common import Certifier
from surestep.certificates.posterior import Posterior
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.model.statements import Scalar, Statement

ROUNDING = 1e-9  # δ(K+1) that is whole must not fall short of it


@dataclass(frozen=True, slots=True)
class Calibration:
    """The rank that the worlds leave to a certificate from `draws` draws; 0: none."""

    draws: int  # K
    rank_of_prior: int  # ⌊δ(K+1)⌋
    ranks: tuple[int, ...]  # what each kind of world allows
    family: tuple[str, ...]  # the kinds that calibrate

    @property
    def rank(self) -> int:
        """r, the smallest that any kind of world allows."""
        return min(self.rank_of_prior, *self.ranks)

    @property
    def strictest(self) -> str:
        """The kind of world that allows the least."""
        return self.family[int(np.argmin(self.ranks))]

    def applied_to(self, certifier: Posterior) -> Certifier:
        """The certifier with δ = r/(K+1), so that it claims what the worlds left of it."""
        if self.rank == 0:
            why: dict[str, Scalar] = {"kind": self.strictest, "draws": self.draws}
            raise CertificateRefused(Statement("fails-stress-test", why))
        return with_delta(certifier, self.rank / (self.draws + 1))


def calibrated_rank(below_truth: IntArray, draws: int, delta: float) -> int:
    """min(⌊δ(K+1)⌋, the ⌊δ(W+1)⌋-th smallest u_w), for u [W] and K draws."""
    place = min(whole_part(delta * (below_truth.size + 1)), below_truth.size)
    if place < 1:
        raise InvalidParameter(
            f"worlds is {below_truth.size} for each kind, expected at least 1/delta − 1 = "
            f"{arrays.in_digits(arrays.least_draws(delta))} to calibrate: fewer do not show what "
            "happens so rarely"
        )
    return min(whole_part(delta * (draws + 1)), int(np.sort(below_truth)[place - 1]))


def draws_below(draws: FloatArray, gain: FloatArray, tolerance: float) -> IntArray:
    """u_w: how many of the draws [W, K] do not exceed the truth [W]; all, where none were made."""
    exceeding = draws > (gain + tolerance)[:, np.newaxis]  # a refusal (NaN) exceeds nothing
    below: IntArray = draws.shape[1] - np.count_nonzero(exceeding, axis=1)
    return below


def calibration_of(
    counts: Sequence[IntArray], family: tuple[str, ...], certifier: Posterior
) -> Calibration:
    """The calibration by the u_w of each kind of world."""
    ranks = [calibrated_rank(below, certifier.draws, certifier.delta) for below in counts]
    return Calibration(certifier.draws, certifier.rank, tuple(ranks), family)


def whole_part(value: float) -> int:
    """⌊value⌋, where a value that is whole but for rounding counts as whole."""
    return math.floor(value + ROUNDING)
