"""Runs checks: those of a log, and those of a result, at one level together."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from surestep._arrays import IntArray
from surestep.checks.check import CHECKS, Check, GivenLog, GivenResult
from surestep.model.log import DecisionLog

DELTA = 0.05  # the chance that a test fails although all assumptions hold, at most
LEVEL = DELTA / 10  # of each of the eight tests; every further signal has two more
OF_REWARDS = ("markov-reward", "drift-reward")
MOST_STEPS = 150_000  # of a log that are looked at: whole episodes, drawn at random beyond that


def check_log(
    log: DecisionLog | str,
    names: Sequence[str] = (),
    *,
    discount: float | None = None,
    drawn_from: int = 0,
) -> tuple[Check, ...]:
    """Tests the assumptions of claims on a log.

    Seeds come from the data, so that nobody can try others. Checks never change a claim.

    Parameters
    ----------
    log : DecisionLog or str
        The log, or the code of the reason why it cannot be tested.
    names : sequence of str, optional
        The names of the states [S], for pictures.
    discount : float, optional
        The discount; without one the model's values are not tested.
    drawn_from : int
        The number of episodes from which those of the log were drawn; 0 by default: all are there.

    Returns
    -------
    tuple of Check
        One check for each assumption, in the order of the page.

    Examples
    --------
    >>> from surestep.checks import check_log, failed
    >>> from surestep.environments import make
    >>> gridworld = make("gridworld")
    >>> checks = check_log(gridworld.sample(200, 1), ["cell"] * 25, discount=0.95)
    >>> failed(checks)
    []
    """
    if isinstance(log, str):
        return tuple(Check.unchecked(code, log) for code, kind in CHECKS.items() if kind.of_log)
    known = log.with_outcomes()
    given = given_log(known)
    given = given._replace(
        names=names or [*map(log.pairs.state_name, range(log.pairs.num_states))],
        discount=discount,
        whole=log.episodes(looked_at(log, given.seed)),
    )
    made = (kind.of_log(given) for kind in CHECKS.values() if kind.of_log is not None)
    return tuple(of_drawn(made, given.log.num_episodes, max(known.num_episodes, drawn_from)))


def check_signals(logs: Mapping[str, DecisionLog | None]) -> tuple[Check, ...]:
    """Returns the checks of the rewards of further signals, by the log of each signal."""
    checks = list[Check]()
    for name, log in logs.items():
        if log is None:
            of_signal = [Check.unchecked(code, "no-steps") for code in OF_REWARDS]
        else:
            given = given_log(log.with_outcomes())
            tests = (CHECKS[code].of_log for code in OF_REWARDS)
            made = (test(given) for test in tests if test is not None)
            of_signal = of_drawn(made, given.log.num_episodes, log.num_episodes)
        checks += (replace(check, signal=name) for check in of_signal)
    return tuple(checks)


def of_drawn(checks: Iterable[Check | None], looked_at: int, of: int) -> list[Check]:
    """Returns the checks with the numbers of episodes looked at and of all, where they differ."""
    made = [check for check in checks if check is not None]
    if looked_at == of:
        return made
    return [replace(x, episodes=(looked_at, of)) if x.why is None else x for x in made]


def check_result(result: GivenResult) -> tuple[Check, ...]:
    """Returns the checks of a result, beside those of its log."""
    checks = [kind.of_result(result) for kind in CHECKS.values() if kind.of_result is not None]
    return tuple(check for check in checks if check is not None)


def given_log(log: DecisionLog) -> GivenLog:
    """Returns a log as checks are given it: whole episodes of a large one, and a seed.

    The data decide the seed, however states and actions are numbered.
    """
    digest = hashlib.sha256(log.reward.tobytes())
    digest.update(log.episode_offsets.tobytes())
    seed = int.from_bytes(digest.digest()[:7], "big")
    return GivenLog(
        log.episodes(looked_at(log, seed)) if log.num_steps > MOST_STEPS else log, seed, LEVEL
    )


def looked_at(log: DecisionLog, seed: int) -> IntArray:
    """Returns the numbers of the episodes that are looked at, in their order; at least one."""
    if log.num_steps <= MOST_STEPS:
        return np.arange(log.num_episodes)
    order = np.random.default_rng(seed).permutation(log.num_episodes)
    upto = np.cumsum(np.diff(log.episode_offsets)[order])
    return np.sort(order[: max(int(np.searchsorted(upto, MOST_STEPS)), 1)])
