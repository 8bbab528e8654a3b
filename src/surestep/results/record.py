"""Records the inputs, settings and versions of a result, so that it can be repeated."""

import hashlib
import json
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NotRequired, Self, TypedDict

import msgspec
import numpy as np
from scipy.special import ndtri

from surestep._arrays import FloatArray
from surestep._files import failing_to_read
from surestep._json import read_json, typed
from surestep.checks import Check
from surestep.description import described
from surestep.errors import InvalidResult
from surestep.model.log import DecisionLog
from surestep.model.noun import noun
from surestep.offpolicy.intervals import share_interval
from surestep.results.groups import GroupGain

Number = float | int


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """All settings that change the answer, defaults included."""

    discount: Number
    algorithm: dict[str, Any]  # its name and all its settings
    n_wedge: int | None
    n_wedge_chosen_by: str | None
    zeta: Number | None
    least_visits: int | None
    delta: Number
    running: tuple[Number, Number] | None
    ending: tuple[Number, Number] | None
    returns: tuple[Number, Number] | None
    unseen: str
    behavior: str
    states: str
    actions: str
    possible: str
    allowed: str
    columns: dict[str, list[str]]
    seeds: dict[str, int]
    certificates: list[str]
    train_share: Number | None
    logger: str | None
    worlds: int
    sizes: list[Number]
    time_limit: Number | None
    rules: int | None = None
    guideline: str = "none"
    left_out: str | None = None  # a column of the state that the policy does not look at


class QueryFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The facts that a record keeps of the query that prepared a log."""

    digest: str  # of the rows of the query
    types: dict[str, str]  # of the columns of the log
    keys: tuple[str | None, str | None]  # the columns of episodes and steps


FORMAT = "surestep run"
VERSION = 11


@dataclass(frozen=True, slots=True)
class InputFile:
    """The fingerprint of a file that went into a result."""

    role: str  # "log", or the key of the description that names it
    name: str  # without its folder
    size: int  # bytes
    sha256: str

    @classmethod
    def of(cls, role: str, path: Path) -> Self:
        """Reads a file piece by piece; returns its size and digest."""
        with failing_to_read(path), path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return cls(role, path.name, file.tell(), digest)


def digests_of(files: Mapping[str, bytes]) -> dict[str, str]:
    """Returns the digests of files, by their names."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


# How π_b is found if it was not given. Each row may name the probability of its own action, which
# may depend on more than the state.
ROW_PROPENSITIES = "row-propensities"
ESTIMATED = ("estimate", ROW_PROPENSITIES)


class Estimates(TypedDict):
    """ρ of π_b and of the new policy in the MDP estimated from the data that chose the policy.

    If these data are a part of the log, `gain_of_all` is the gain in the MDP of the whole log.
    `held_out_gain` is then the gain in the MDP of the rest, with an interval of about 1 − δ. If
    cases were lost, `lost_worst` is the gain if all went as badly as possible. `lost_opposed` is
    the gain if they did for π_I, and for π_b went as well as possible.
    `episodes_for_proof` is about how many such episodes would prove a gain that these do not
    prove, estimated from the choosing part; None if a hundred times as many would not.
    `guideline` is the gain of a guideline over π_b, `over_guideline` the gain of the new policy
    over the guideline, each with an interval, from the data that did not choose the policy.
    """

    behavior: float
    policy: float
    gain_of_all: NotRequired[float]
    held_out_gain: NotRequired[float]
    held_out_low: NotRequired[float]
    held_out_high: NotRequired[float]
    lost_worst: NotRequired[float]
    lost_opposed: NotRequired[float]
    episodes_for_proof: NotRequired[int | None]
    guideline: NotRequired[tuple[float, float, float]]
    over_guideline: NotRequired[tuple[float, float, float]]


@dataclass(frozen=True, slots=True)
class Estimated:
    """An estimate, and the ends of an interval of about 1 − δ."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The undiscounted total of a signal, or the share of episodes that have it.

    Parameters
    ----------
    name : str
        The name of the signal.
    share : bool
        It is a share of episodes: each counts once, or not at all.
    cost : bool
        Less is better.
    chance : bool
        It is the chance to reach unsafe states.
    per : int or None
        Per how many episodes numbers are; None: per episode.
    within : int or None
        Only so many steps count; None: all until an episode ends.
    before, after, change : Estimated
        Under the current policy, under the new one, and the difference.

    Examples
    --------
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> (total,) = surestep.improve(table, discount=0, ending=(0, 1), worlds=0, per=100).totals
    >>> total.share, total.before.value, total.after.value
    (True, 50.0, 100.0)
    """

    name: str
    share: bool
    cost: bool
    chance: bool
    per: int | None
    within: int | None
    before: Estimated
    after: Estimated
    change: Estimated


@noun("command", "counts_sha256")
@dataclass(frozen=True, slots=True)
class Record:
    """The content of run.json, except the digests of the other files.

    Parameters
    ----------
    versions : mapping
        The versions of surestep and what it computes with.
    machine : mapping
        The system and the processor.
    inputs : tuple of InputFile
        Name, size and digest of every file; none for a table in memory.
    counts_sha256 : str
        The digest of the counts file that `surestep count` would write.
    description : mapping
        What was given, files by their names.
    parameters : Parameters
        All that changes the answer.
    defaults : tuple of str
        The parameters that nobody gave.
    vocabulary : mapping
        Columns, bins and end states.
    data : mapping
        What the log holds: rows, episodes, transitions.
    estimates : mapping
        What models of the parts of the log expect of both policies.
    command : str
        The command that makes the same result.
    baseline : Baseline, optional
        What the episodes earned; None without whole episodes.
    checks : tuple of Check
        The checks of what claims assume.
    query : mapping, optional
        The digest of the rows, where a query prepared the log.
    totals : tuple of Total
        Undiscounted totals and shares before and after, where the model of the data has them.
    groups : tuple of GroupGain
        What the new policy means for groups of episodes.
    beside_counts : str, optional
        A digest of the times and further signals of the rows, where the log has them.

    Examples
    --------
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> result = surestep.improve(table, discount=0, worlds=0)
    >>> result.record.parameters.delta, result.record.unit
    (0.1, 'per episode')
    """

    versions: Mapping[str, str]
    machine: Mapping[str, str]
    inputs: tuple[InputFile, ...]
    counts_sha256: str
    description: Mapping[str, Any]
    parameters: Parameters
    defaults: tuple[str, ...]
    vocabulary: Mapping[str, Any]
    data: Mapping[str, Any]
    estimates: Estimates
    command: str
    baseline: "Baseline | None" = None
    checks: tuple[Check, ...] = ()
    query: Mapping[str, Any] | None = None  # as QueryFacts
    totals: tuple[Total, ...] = ()
    groups: tuple[GroupGain, ...] = ()
    beside_counts: str | None = None  # not in results of older releases

    @property
    def behavior_is_estimated(self) -> bool:
        """Tells whether π_b was estimated from the actions in the log."""
        return self.parameters.behavior in ESTIMATED

    @property
    def about(self) -> Mapping[str, str]:
        """Returns title, population, period, author and date, as far as they were given."""
        return dict(self.description.get("about", {}))

    @property
    def unit(self) -> str:
        """Returns the unit of gains, such as 'per episode'."""
        return str(self.description.get("stakes", {}).get("unit", "per episode"))

    def to_json(self, outputs: Mapping[str, str]) -> str:
        """Returns the record as JSON.

        Parameters
        ----------
        outputs : mapping
            The digests of the other files of the result, by their names.

        Returns
        -------
        str
            The content of run.json.
        """
        content = {
            "format": FORMAT,
            "version": VERSION,
            **asdict(self),
            "parameters": msgspec.structs.asdict(self.parameters),
            "outputs": dict(outputs),
        }
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> tuple[Self, Mapping[str, str]]:
        """Reads the record that `to_json` wrote.

        Parameters
        ----------
        text : str
            The content of run.json.

        Returns
        -------
        (Record, mapping)
            The record, and the digests of the other files.

        Raises
        ------
        InvalidResult
            The text is no record.
        """
        try:
            content = read_json(text)
            if content.pop("format") != FORMAT or content.pop("version") != VERSION:
                raise ValueError(f"expected format {FORMAT!r} of version {VERSION}")
            outputs = typed(content.pop("outputs"), dict[str, str], "outputs")
            record = typed(content, cls)
            typed(record.parameters.algorithm["algorithm"], str, "the name of the algorithm")
            typed(record.query, QueryFacts | None, "query")  # type: ignore[arg-type]
            if (described(record.description).query is None) != (record.query is None):
                raise ValueError("expected a query, and what it made, or neither")
            return record, outputs
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
            raise InvalidResult(
                f"run.json is not what `surestep improve` writes: {problem}"
            ) from None


def current_machine() -> dict[str, str]:
    """Returns the system, the processor and the GPU, on which the last bits of results depend."""
    from llvmlite.binding import get_host_cpu_name

    from surestep.kernels.devices import usable_gpu

    gpu = usable_gpu()
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": get_host_cpu_name(),
        **({} if gpu is None else {"gpu": gpu.name}),
    }


# ---- what the episodes earned -------------------------------------------------------------------


LEVEL = 0.95  # confidence of the interval
FALSE_ALARMS = 0.001  # the chance to report a gap by chance alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The mean return of the episodes, with a 95 % interval; and ρ(π_b) of the estimated model.

    Where recording stopped before an episode was over, the model's value of what would have come
    is added. The interval is that of a normal mean: for readers, and no guarantee. If every episode
    returned 0 or 1, or every one 0 or −1, it is that of a share.
    """

    mean: float
    low: float
    high: float
    episodes: int
    cut_off: int  # episodes that were not over when recording stopped
    least: float  # the smallest return of an episode
    greatest: float  # the largest return of an episode
    model: float
    model_episodes: int  # from which the model was estimated

    def gap(self, guessed: float) -> dict[str, float] | None:
        """Returns figures of a gap between the model and the episodes beyond chance; or None.

        The standard error of the model is taken to be that of a mean over its episodes. `guessed`
        is how much of its ρ(π_b) is a guess: the worth of actions that were never seen.
        """
        error = (self.high - self.low) / 2 / usual(LEVEL)
        both = error * math.sqrt(1 + self.episodes / self.model_episodes)
        room = (
            guessed + usual(1 - FALSE_ALARMS) * both + 1e-9 * max(abs(self.mean), abs(self.model))
        )
        if abs(self.model - self.mean) <= room:
            return None
        return {"model": self.model, "low": self.low, "high": self.high}


def usual(level: float) -> float:
    """Returns the normal quantile: a mean is off by at most so many standard errors."""
    return float(ndtri((1 + level) / 2))


def baseline_of(
    log: DecisionLog, discount: float, value: FloatArray, model: float, model_episodes: int
) -> Baseline:
    """Returns the baseline; `value` [S] and `model` are the values and ρ of π_b in the model."""
    log = log.with_outcomes()
    first = log.episode_offsets[:-1]
    weight = discount**log.step
    earned = np.add.reduceat(weight * log.reward, first)
    last = log.episode_offsets[1:] - 1
    cut_off = ~log.terminated[last]
    after = np.where(cut_off, weight[last] * discount * value[log.next_state[last]], 0.0)
    returns = earned + after
    mean = float(returns.mean())
    half = (
        usual(LEVEL) * float(returns.std(ddof=1)) / math.sqrt(returns.size)
        if returns.size > 1
        else abs(mean - model)  # a single episode never shows a gap
    )
    low, high = mean - half, mean + half
    one = -1.0 if mean < 0 else 1.0
    if np.isin(returns, (0.0, one)).all():
        low, high = sorted(one * end for end in share_interval(one * mean, returns.size, 1 - LEVEL))
    return Baseline(
        mean=mean,
        low=low,
        high=high,
        episodes=returns.size,
        cut_off=int(np.count_nonzero(cut_off)),
        least=float(returns.min()),
        greatest=float(returns.max()),
        model=model,
        model_episodes=model_episodes,
    )
