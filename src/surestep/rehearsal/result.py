"""Summarises a stress test: how often claims were wrong, and how much more data would help.

**Calibration** finds the rank of its own draws that worlds of other kinds leave to a certificate. A
certificate from K draws claims the r-th smallest, with r = ⌊δ(K+1)⌋ by its own prior. In a world
w whose truth is known, let u_w be the number of draws that do not exceed the truth: the claim of
rank r is wrong exactly where u_w < r. So among W worlds the claim of rank

    r = min(⌊δ(K+1)⌋, the ⌊δ(W+1)⌋-th smallest u_w)

is wrong in less than δ(W+1) of them. Of several kinds of worlds the smallest r is taken, of those
that calibrate: worlds in which the unseen is as good as can be are only reported. This is
one step, not a search: no rank is tried and then kept because it looked well. Where r = 0, no rank
at all survives the worlds, and the certificate is refused.
"""

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import msgspec
import numpy as np

import surestep._arrays as arrays
from surestep._json import read_json
from surestep._names import refuse_unknown
from surestep._reprs import short_html, short_repr
from surestep.certificates import Certifier
from surestep.errors import CertificateRefused, InvalidParameter, InvalidResult
from surestep.model.statements import Scalar, Statement
from surestep.offpolicy.intervals import lower_limit, upper_limit

ROUNDING = 1e-9  # δ(K+1) that is whole must not fall short of it


@dataclass(frozen=True, slots=True)
class Calibration:
    """The rank that the worlds of a stress test leave to a certificate from draws; 0: none.

    Parameters
    ----------
    draws : int
        The number K of draws.
    rank_of_prior : int
        The rank ⌊δ(K+1)⌋ without worlds.
    ranks : tuple of int
        The rank that each kind of world allows.
    family : tuple of str
        The kinds of worlds that calibrate.

    Examples
    --------
    >>> surestep.rehearsal.Calibration(99, 10, (4, 12), ("one", "another")).rank
    4
    """

    draws: int  # K
    rank_of_prior: int  # ⌊δ(K+1)⌋
    ranks: tuple[int, ...]  # the rank that each kind of world allows
    family: tuple[str, ...]  # the kinds that calibrate

    @property
    def rank(self) -> int:
        """Returns r, the smallest that any kind of world allows."""
        return min(self.rank_of_prior, *self.ranks)

    @property
    def strictest(self) -> str:
        """Returns the kind of world that allows the least."""
        return self.family[int(np.argmin(self.ranks))]

    def applied_to(self, certifier: Certifier) -> Certifier:
        """Returns the certifier with δ = r/(K+1), so that it claims by the rank r of the worlds.

        Parameters
        ----------
        certifier : Certifier
            The certifier that was calibrated.

        Returns
        -------
        Certifier
            The same at another δ.

        Raises
        ------
        CertificateRefused
            Where no rank survives the worlds.
        """
        if self.rank == 0:
            why: dict[str, Scalar] = {"kind": self.strictest, "draws": self.draws}
            raise CertificateRefused(Statement("fails-stress-test", why))
        return replace(certifier, delta=self.rank / (self.draws + 1))  # type: ignore[type-var]


def calibrated_rank(below_truth: arrays.IntArray, draws: int, delta: float) -> int:
    """Returns min(⌊δ(K+1)⌋, the ⌊δ(W+1)⌋-th smallest u_w), for u [W] and K draws."""
    place = min(math.floor(delta * (below_truth.size + 1) + ROUNDING), below_truth.size)
    if place < 1:
        raise InvalidParameter(
            f"worlds is {below_truth.size} for each kind, expected at least 1/delta − 1 = "
            f"{arrays.in_digits(arrays.least_draws(delta))} to calibrate: fewer do not show what "
            "happens so rarely"
        )
    rank = math.floor(delta * (draws + 1) + ROUNDING)
    return min(rank, int(np.sort(below_truth)[place - 1]))


def draws_below(
    draws: arrays.FloatArray, gain: arrays.FloatArray, tolerance: float
) -> arrays.IntArray:
    """Counts the draws [W, K] that do not exceed the truth [W]; refusals (NaN) count as such."""
    exceeding = draws > (gain + tolerance)[:, np.newaxis]  # a refusal (NaN) exceeds nothing
    return np.asarray(draws.shape[1] - np.count_nonzero(exceeding, axis=1))


LEVEL = 0.95  # of the intervals around rates
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

LIMITS = (
    "This is a stress test in worlds made from the data, not a confidence level.",
    "It says nothing certain about the true world, which may be none of them.",
    "It says nothing about dynamics that no world contains.",
    "It says nothing about data that is not Markov in the given states: every world is.",
    "Episodes start, and rewards are, as observed; from counts alone, they have no noise.",
)


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of worlds, with the 95 % Clopper–Pearson interval of its chance.

    Parameters
    ----------
    share : float
        The share of the worlds in which it happened.
    happened : int
        Their number.
    total : int
        The number of all worlds.
    low, high : float
        The interval.

    Examples
    --------
    >>> rate = surestep.rehearsal.Rate.of(np.array([True, False, False, False]))
    >>> rate.share, round(rate.high, 2)
    (0.25, 0.81)
    """

    share: float
    happened: int
    total: int
    low: float
    high: float

    @classmethod
    def of(cls, happened: arrays.BoolArray) -> Self:
        """Returns the rate of the entries that are true.

        Parameters
        ----------
        happened : array of bool [W]
            Whether it happened in each world.

        Returns
        -------
        Rate
            The rate.
        """
        total = int(happened.size)
        count = int(np.count_nonzero(happened))
        tail = (1 - LEVEL) / 2
        low = lower_limit(count, total, tail)
        return cls(count / total, count, total, low, upper_limit(count, total, tail))


@dataclass(frozen=True, slots=True)
class SizeSummary:
    """The rates at one data size, in all worlds or in those of one kind.

    Parameters
    ----------
    size : float
        The amount of data, as a multiple of the user's.
    episodes : int
        The number of episodes.
    violated : Rate
        How often the claim was above the truth.
    harmed : Rate
        How often the policy was worse than π_b, whatever was claimed.
    certified : Rate
        How often a gain was claimed.
    refused : Rate
        How often no claim was made.
    calibrated_violated, calibrated_certified : Rate or None
        The same for the calibrated claim, where there is one.
    mean_gain : float
        The mean true gain.
    gain_quantiles : tuple of float
        True gains at 5, 25, 50, 75 and 95 %.
    median_claim : float or None
        The median of the claims that were made.

    Examples
    --------
    >>> from surestep.algorithms import SPIBB
    >>> counts = surestep.Counts.from_dense([[[0, 30], [0, 20]], [[0, 0], [0, 0]]],
    ...     rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    >>> problem = surestep.Problem(counts=counts, behavior=surestep.Policy.uniform(counts),
    ...     discount=0.9, value_bounds=(0.0, 1.0))
    >>> robust = surestep.certificates.Robust(known_start=True)
    >>> found = surestep.rehearse(problem, SPIBB(n_wedge=5), robust, rng=0, worlds=2, sizes=[1])
    >>> found.summary(1.0).harmed.happened
    0
    """

    size: float
    episodes: int
    violated: Rate
    harmed: Rate
    certified: Rate
    refused: Rate
    calibrated_violated: Rate | None
    calibrated_certified: Rate | None
    mean_gain: float
    gain_quantiles: tuple[float, ...]
    median_claim: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rehearsal:
    """The outcomes of a stress test in W worlds at Z data sizes.

    Parameters
    ----------
    kind : str
        The kind of the certificate.
    delta : float
        Its δ.
    family : tuple of str
        The kinds of worlds.
    member : array of int [W]
        The kind of each world.
    sizes : tuple of float [Z]
        Amounts of data, as multiples of the user's.
    episodes, horizon : tuple of int [Z]
        The number of episodes, and the most steps of one, at each size.
    own_episodes : int
        The number of episodes in the user's data.
    gain : array of float [W, Z]
        The true ρ(π_I) − ρ(π_b).
    claim : array of float [W, Z]
        The claim L; NaN where the certificate was refused.
    calibrated_claim : array of float [W, Z] or None
        The claim by the rank that other worlds of the same kinds left to the certificate; None
        where it has no draws, or is refused.
    calibration : Calibration or None
        That rank.
    tolerance : float
        The difference up to which claims and truths count as equal.
    outside : array of bool [W, Z]
        Whether a true value lay outside of the given value bounds.
    limits : tuple of str
        Sentences about the limits of the stress test.
    luck : array of float [W']
        The claim less the truth where all actions are alike, at size 1; NaN where refused.
    belief : array of float [W, Z]
        The claim of a certificate that is only believed.
    lucky_belief : array of float [W']
        That claim less the truth where all actions are alike.

    Examples
    --------
    >>> from surestep.algorithms import SPIBB
    >>> counts = surestep.Counts.from_dense([[[0, 30], [0, 20]], [[0, 0], [0, 0]]],
    ...     rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    >>> problem = surestep.Problem(counts=counts, behavior=surestep.Policy.uniform(counts),
    ...     discount=0.9, value_bounds=(0.0, 1.0))
    >>> robust = surestep.certificates.Robust(known_start=True)
    >>> found = surestep.rehearse(problem, SPIBB(n_wedge=5), robust, rng=0, worlds=2, sizes=[1])
    >>> found.kind, found.worlds, found.gain.shape
    ('robust', 2, (10, 1))
    """

    kind: str
    delta: float
    family: tuple[str, ...]
    member: arrays.IntArray
    sizes: tuple[float, ...]
    episodes: tuple[int, ...]
    horizon: tuple[int, ...]
    own_episodes: int
    gain: arrays.FloatArray
    claim: arrays.FloatArray
    calibrated_claim: arrays.FloatArray | None
    calibration: Calibration | None
    tolerance: float
    outside: arrays.BoolArray
    limits: tuple[str, ...]
    luck: arrays.FloatArray = field(default_factory=lambda: np.zeros(0))
    belief: arrays.FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    lucky_belief: arrays.FloatArray = field(default_factory=lambda: np.zeros(0))

    __repr__ = short_repr("kind", "delta", "sizes", "gain.shape", "tolerance")
    _repr_html_ = short_html("kind", "delta", "worlds", "family", "sizes", "episodes", "gain")

    __setstate__ = arrays.restore_frozen

    def __post_init__(self) -> None:
        # Tables of every world have a column for each size.
        for name in ("gain", "claim", "calibrated_claim", "outside", "belief"):
            if (table := getattr(self, name)) is not None:
                object.__setattr__(self, name, arrays.freeze(table.reshape(-1, len(self.sizes))))
        arrays.keep(self, member=self.member, luck=self.luck, lucky_belief=self.lucky_belief)

    @property
    def worlds(self) -> int:
        """Returns the number of worlds of each kind, but for those where all actions are alike."""
        return self.member.size // max(len(self.family), 1)

    def summary(self, size: float = 1.0, kind: str | None = None) -> SizeSummary:
        """Returns the rates at one size, in all worlds or in those of one kind.

        Parameters
        ----------
        size : float, default 1.0
            One of the sizes.
        kind : str, optional
            One of the family; by default all worlds count.

        Returns
        -------
        SizeSummary
            The rates.

        Raises
        ------
        InvalidParameter
            Where there is no such size or kind.
        """
        if size not in self.sizes:
            raise InvalidParameter(
                f"size is {size!r}, expected one of {', '.join(f'{own:g}' for own in self.sizes)}"
            )
        z = self.sizes.index(size)
        chosen = np.ones(self.member.size, np.bool_)
        if kind is not None:
            refuse_unknown(f"there is no kind of world {kind!r}", kind, self.family)
            chosen = self.member == self.family.index(kind)
        gain, claim = self.gain[chosen, z], self.claim[chosen, z]
        made = ~np.isnan(claim)
        later = None if self.calibrated_claim is None else self.calibrated_claim[chosen, z]
        return SizeSummary(
            size=size,
            episodes=self.episodes[z],
            violated=Rate.of(claim > gain + self.tolerance),
            harmed=Rate.of(gain < -self.tolerance),
            certified=Rate.of(claim > 0),
            refused=Rate.of(~made),
            calibrated_violated=None if later is None else Rate.of(later > gain + self.tolerance),
            calibrated_certified=None if later is None else Rate.of(later > 0),
            mean_gain=float(gain.mean()),
            gain_quantiles=tuple(float(quantile) for quantile in np.quantile(gain, QUANTILES)),
            median_claim=float(np.median(claim[made])) if made.any() else None,
        )

    @property
    def luck_bound(self) -> float | None:
        """Returns the L that luck alone claims in at most a share δ of worlds of equal actions.

        The ⌈(1 − δ)(W + 1)⌉-th smallest; None where there are too few worlds for that.
        """
        return luck_limit(self.luck, self.delta)

    def luck_bound_of_beliefs(self, delta: float) -> float | None:
        """Returns `luck_bound` for claims that are only believed.

        Parameters
        ----------
        delta : float
            The δ of that belief.

        Returns
        -------
        float or None
            The bound; None where there are too few worlds.
        """
        return luck_limit(self.lucky_belief, delta)

    @property
    def believes_its_claim(self) -> bool:
        """Tells whether the belief is the claim itself, not a second claim."""
        return np.array_equal(self.luck, self.lucky_belief, equal_nan=True)

    @property
    def wrong_beliefs(self) -> Rate | None:
        """Returns how often a belief is above the truth where all actions are alike."""
        held = self.lucky_belief[~np.isnan(self.lucky_belief)]
        return None if held.size == 0 else Rate.of(held > self.tolerance)

    def power(self) -> arrays.FloatArray:
        """Returns the share of worlds in which a gain is certified, by calibrated claims if any.

        Returns
        -------
        array of float [Z]
            The share at each size.
        """
        claim = self.claim if self.calibrated_claim is None else self.calibrated_claim
        return np.asarray(np.mean(claim > 0, axis=0))

    def more_episodes(self, chance: float = 0.5) -> int | None:
        """Returns how many more episodes certify a gain in this share of worlds.

        Between two sizes, the share is taken to be a straight line over the logarithm of the size.

        Parameters
        ----------
        chance : float, default 0.5
            The share of worlds.

        Returns
        -------
        int or None
            The number of episodes; None where no size that was tried is enough.
        """
        if not 0 < chance <= 1:
            raise InvalidParameter(f"chance is {chance!r}, expected more than 0 and at most 1")
        if self.worlds == 0:
            return None
        power = self.power()
        enough = np.flatnonzero(power >= chance)
        if enough.size == 0:
            return None
        z = int(enough[0])
        around = slice(max(z - 1, 0), z + 1)
        needed = np.interp(chance, power[around], np.log(self.sizes[around]))
        return max(0, math.ceil((math.exp(needed) - 1) * self.own_episodes - 1e-6))

    def to_json(self) -> str:
        """Returns everything as JSON, with summaries for readers.

        Returns
        -------
        str
            The JSON; what is not there is null.
        """
        content = {part.name: getattr(self, part.name) for part in fields(self)} | {
            "more_episodes_for_half": self.more_episodes(),
            "summary": {
                kind or "all": [self.summary(size, kind) for size in self.sizes]
                for kind in (None, *self.family)
                if self.worlds > 0
            },
        }
        return msgspec.json.encode(content, enc_hook=np.ndarray.tolist).decode()


def rehearsal_from_json(text: str) -> Rehearsal:
    """Returns the outcomes of a stress test that `Rehearsal.to_json` wrote.

    Parameters
    ----------
    text : str
        The JSON.

    Returns
    -------
    Rehearsal
        The outcomes.

    Raises
    ------
    InvalidResult
        Where the text is something else.

    Examples
    --------
    >>> from surestep.algorithms import SPIBB
    >>> counts = surestep.Counts.from_dense([[[0, 30], [0, 20]], [[0, 0], [0, 0]]],
    ...     rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    >>> problem = surestep.Problem(counts=counts, behavior=surestep.Policy.uniform(counts),
    ...     discount=0.9, value_bounds=(0.0, 1.0))
    >>> robust = surestep.certificates.Robust(known_start=True)
    >>> found = surestep.rehearse(problem, SPIBB(n_wedge=5), robust, rng=0, worlds=2, sizes=[1])
    >>> surestep.rehearsal.rehearsal_from_json(found.to_json()).family == found.family
    True
    """
    try:
        rehearsal = msgspec.json.decode(text, type=Rehearsal, dec_hook=read_array)
        if read_json(rehearsal.to_json()) != read_json(text):
            raise ValueError("its parts do not fit together")
        return rehearsal
    except (msgspec.MsgspecError, ValueError, TypeError, IndexError, RecursionError) as problem:
        raise InvalidResult(f"this is no rehearsal that surestep wrote: {problem!r}") from None


def read_array(kind: Any, values: list[object]) -> arrays.AnyArray:
    """Returns an array of JSON, in which null is NaN."""
    array = np.array(values)
    return array.astype(np.float64) if array.dtype == object else array


def luck_limit(luck: arrays.FloatArray, delta: float) -> float | None:
    """Returns the ⌈(1 − δ)(W + 1)⌉-th smallest of W numbers; None where they are too few."""
    place = math.ceil((1 - delta) * (luck.size + 1) - 1e-9)
    if not 1 <= place <= luck.size or np.isnan(luck).all():
        return None
    return float(np.sort(np.nan_to_num(luck, nan=-np.inf))[place - 1])
