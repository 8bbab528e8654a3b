"""Runs the checks of a log, which share one level, and those of a result."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from surestep._arrays import IntArray
from surestep.checks.check import CHECKS, Check, GivenLog, GivenResult
from surestep.model.log import DecisionLog

DELTA = 0.05  # at most the chance that any test fails although all assumptions hold
LEVEL = DELTA / 10  # of each test: eight of a log, and two more of every further signal
OF_REWARDS = ("markov-reward", "drift-reward")
MOST_STEPS = 150_000  # to test; from a larger log, whole episodes are drawn at random


def check_log(
    log: DecisionLog | str,
    names: Sequence[str] = (),
    *,
    discount: float | None = None,
    drawn_from: int = 0,
) -> tuple[Check, ...]:
    """Tests the assumptions of claims on a log.

    The data determine the seeds, so that nobody can choose them. Checks never change a claim.

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


def check_signals(logs: Mapping[str, DecisionLog | None]) -> Iterator[Check]:
    """Checks the rewards of further signals; each signal has its own log."""
    for name, log in logs.items():
        if log is None:
            of_signal = [Check.unchecked(code, "no-steps") for code in OF_REWARDS]
        else:
            given = given_log(log.with_outcomes())
            tests = (CHECKS[code].of_log for code in OF_REWARDS)
            made = (test(given) for test in tests if test is not None)
            of_signal = of_drawn(made, given.log.num_episodes, log.num_episodes)
        yield from (replace(check, signal=name) for check in of_signal)


def of_drawn(checks: Iterable[Check | None], looked_at: int, of: int) -> list[Check]:
    """Adds to checks how many of all episodes were drawn, if not all were; drops None."""
    made = [check for check in checks if check is not None]
    if looked_at == of:
        return made
    return [replace(x, episodes=(looked_at, of)) if x.why is None else x for x in made]


def check_result(result: GivenResult) -> tuple[Check, ...]:
    """Runs the checks of a result; `check_log` runs those of its log."""
    checks = [kind.of_result(result) for kind in CHECKS.values() if kind.of_result is not None]
    return tuple(check for check in checks if check is not None)


def given_log(log: DecisionLog) -> GivenLog:
    """Returns the input of the checks of a log; draws whole episodes of a large log.

    The rewards and lengths of episodes determine the seed, not the numbers of states and actions.
    """
    digest = hashlib.sha256(log.reward.tobytes())
    digest.update(log.episode_offsets.tobytes())
    seed = int.from_bytes(digest.digest()[:7], "big")
    return GivenLog(
        log.episodes(looked_at(log, seed)) if log.num_steps > MOST_STEPS else log, seed, LEVEL
    )


def looked_at(log: DecisionLog, seed: int) -> IntArray:
    """Returns the numbers of the episodes to test, in their order; at least one."""
    if log.num_steps <= MOST_STEPS:
        return np.arange(log.num_episodes)
    order = np.random.default_rng(seed).permutation(log.num_episodes)
    upto = np.cumsum(np.diff(log.episode_offsets)[order])
    return np.sort(order[: max(int(np.searchsorted(upto, MOST_STEPS)), 1)])
