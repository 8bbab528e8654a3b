"""Episodes known again: what is kept of those that chose a policy, so that they do not judge it.

A file with other episodes in it, or in another order, is another file, but old episodes are old
ones. Each has a digest of its states, actions, rewards and ends; the smallest of a log's digests
are kept. Of another log, those up to the largest that was kept are looked for among them.

Two episodes may well be alike, where they are short. By Good and Turing, the share of the episodes
of a log that are like another one of it is about the chance that a fresh one is like one of it.
Only more than that explains, in all but one log of a million, are old episodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from surestep._arrays import run_lengths
from surestep.certificates.confidence import chance_interval
from surestep.model.log import DecisionLog

Digests = npt.NDArray[np.uint64]

MOST = 1024  # digests that are kept
LETTERS = 16  # hexadecimal ones, of a digest
BY_CHANCE = 1e-6
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # SplitMix64: Steele, Lea and Flood (2014)
FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


class Met(NamedTuple):
    """How many episodes of a log look like old ones."""

    alike: int
    looked_at: int
    most: int  # so many may do so by chance

    @property
    def are_old(self) -> bool:
        """Returns whether there are more than chance explains."""
        return self.alike > self.most


class KnownEpisodes(NamedTuple):
    """What is kept of the episodes of a log."""

    number: int
    once: int  # how many of them no other one is like
    digests: str  # the smallest of different ones, rising, 16 hexadecimal letters each

    @classmethod
    def of(cls, log: DecisionLog) -> KnownEpisodes:
        """Returns what is kept of a log; the order of its episodes does not matter."""
        different, times = np.unique(episode_digests(log), return_counts=True)
        kept = different[:MOST].astype(">u8").tobytes().hex()
        return cls(log.num_episodes, int(np.count_nonzero(times == 1)), kept)

    @property
    def smallest(self) -> Digests:
        """Returns the digests that were kept, rising."""
        return np.frombuffer(bytes.fromhex(self.digests), ">u8").astype(np.uint64)

    def met_in(self, log: DecisionLog) -> Met:
        """Returns how many episodes of a log look like one that is known."""
        kept, found = self.smallest, episode_digests(log)
        all_kept = kept.size < MOST
        looked_at = found if all_kept else found[found <= kept[-1]]
        alike = int(np.isin(looked_at, kept).sum())
        times = np.unique(found, return_counts=True)[1]
        # Whoever made the other log may have repeated himself more.
        chance = max(
            chance_of_alike(self.number, self.once),
            chance_of_alike(found.size, int(np.count_nonzero(times == 1))),
        )
        most = binom.ppf(1 - BY_CHANCE, looked_at.size, chance)
        return Met(alike, looked_at.size, int(most))

    @classmethod
    def read(cls, content: object) -> KnownEpisodes | None:
        """Reads what a record holds of it; ValueError where that is nothing of the kind."""
        if content is None:
            return None
        if not isinstance(content, dict) or tuple(content) != cls._fields:
            raise ValueError(f"the known episodes are {content!r}")
        known = cls(**content)
        whole = all(type(each) is int for each in (known.number, known.once))
        if not whole or not 0 <= known.once <= known.number:
            raise ValueError(f"of {known.number!r} known episodes, {known.once!r} are unique")
        if not isinstance(known.digests, str) or len(known.digests) % LETTERS:
            raise ValueError("the digests of known episodes are cut off")
        if not 0 < known.smallest.size <= min(MOST, known.number):
            raise ValueError(f"there are {known.smallest.size} digests of known episodes")
        return known


def chance_of_alike(number: int, once: int) -> float:
    """Returns an upper bound on the chance that a fresh episode is like one of so many."""
    repeated, all_of_them = np.array([number - once]), np.array([number])
    return float(chance_interval(repeated, all_of_them, BY_CHANCE, strict=False)[1][0])


def episode_digests(log: DecisionLog) -> Digests:
    """Returns a number [E] of each episode, which its steps decide, in their order."""
    begins = log.episode_offsets[:-1]
    place = np.arange(log.num_steps) - np.repeat(begins, run_lengths(log.episode_offsets))
    rewards = (log.reward + 0.0).view(np.uint64)  # −0 is 0
    digest = np.zeros(log.num_steps, np.uint64)
    for column in (place, log.state, log.action, rewards, log.next_state, log.terminated):
        digest = mixed(digest ^ column.astype(np.uint64))
    return mixed(np.add.reduceat(digest, begins))


def mixed(words: Digests) -> Digests:
    """Returns the words after one step of SplitMix64, which spreads every bit over all."""
    words = words + GOLDEN
    for shift, factor in zip(SHIFTS, FACTORS, strict=False):
        words = (words ^ (words >> shift)) * factor
    spread: Digests = words ^ (words >> SHIFTS[-1])
    return spread
