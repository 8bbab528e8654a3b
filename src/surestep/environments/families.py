"""Builds families of worlds that put claims to the test.

*Worlds in which little can be gained.* The model is random, like a Garnet. Its last state ends the
episode and pays 1 for entering it. The behavior policy is random, too. The effects of actions are
shrunk towards their mean: with effects at λ, the row of a pair is
(1 − λ) · (mean row of the state under π_b) + λ · (its own row), so that π_b is worth the same at
every λ, and at λ = 0 all policies are. Bandits (one decision, which wins or loses), noisy rewards,
and coarse states (the log shows groups only) are built in the same way.

*Worlds in which the worst, or the best, reward hardly ever shows.* Each step is in one of several
situations, all alike, and ends the episode with the chance 0.1. Both actions lead on in the same
way: only their rewards differ. π_b takes the tempting action with the chance 0.2. It seems to
earn 0.5 more a step than the usual action, and truly earns 0.5 less: now and then it meets a
disaster, or the usual action a jackpot. Most logs of 100 episodes show none.

*Adaptive loggers.* A bandit algorithm made the log, and learnt from episode to episode. Counts of
such a log are no fair sample: an action that began badly is tried less often afterwards, so its
record stays bad.

*Miswritten logs.* Every episode stands several times, and counts as evidence each time. Or a row
has the state after its step, so that a death is booked on the state and not on the action. Or
recording stops when a machine breaks, and the outcome of the last step is missing.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import check_setting
from surestep.environments.benchmark import Benchmark, LegacySeed, Portion, Truth
from surestep.environments.hidden import Merged, expected_visits
from surestep.environments.random_mdp import draw_garnet
from surestep.kernels.runs import discounted_returns, running_sums
from surestep.model import FiniteMDP, Pairs, Policy
from surestep.model.log import UNKNOWN, DecisionLog
from surestep.sampling import ends_without_decision, log_of_transitions, process_of, sample_log

STATES = 20
ACTIONS = 4
SUCCESSORS = 4
DISCOUNT = 0.95
HORIZON = 50
Arms = Annotated[int, Meta(ge=1, le=10_000)]
Dimension = Annotated[int, Meta(ge=1, le=1_000)]


def alike(seed: LegacySeed = 1) -> Benchmark:
    """Builds a world of 20 states and 4 actions in which all actions have the same effect."""
    return replace(nearly_alike(seed, 0.0), name="alike")


def nearly_alike(
    seed: LegacySeed = 1,
    effect: Portion = 0.05,
    states: Annotated[int, Meta(ge=3, le=1_000)] = STATES,
    actions: Dimension = ACTIONS,
    successors: Dimension = SUCCESSORS,
) -> Benchmark:
    """Builds a world in which actions have the share `effect` of their effect in a random model.

    The same seed and size give the same π_b, of the same value, and the same rows to shrink.
    """
    check_setting("successors", successors, Annotated[int, Meta(ge=1, le=states)])
    return little_effect(
        "nearly-alike",
        effect,
        *draw_world(states, actions, successors, np.random.RandomState(seed)),
    )


def draw_world(
    states: int, actions: int, successors: int, rng: np.random.RandomState
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Draws rows [S, A, S] and a behavior policy [S, A]; the last state ends the episode.

    Each pair has random successors, with the gaps of sorted uniform numbers as chances. π_b is
    uniform on the simplex, state by state.
    """
    garnet = draw_garnet((states - 1) * actions, states, successors, rng)
    rows = np.zeros((states * actions, states))
    np.put_along_axis(rows[:-actions], garnet.successor, garnet.probability, axis=1)
    return rows.reshape(states, actions, states), rng.dirichlet(np.ones(actions), size=states)


def shrunk(
    rows: arrays.FloatArray, behavior: arrays.FloatArray, effect: float
) -> arrays.FloatArray:
    """Returns (1 − λ) Σ_a π_b(a|s) P(·|s,a) + λ P(·|s,a) of rows P [S, A, S], λ = `effect`."""
    mean = np.einsum("sa,sat->st", behavior, rows)
    return np.asarray((1 - effect) * mean[:, np.newaxis] + effect * rows)


def little_effect(
    name: str,
    effect: float,
    rows: arrays.FloatArray,
    behavior: arrays.FloatArray,
    *,
    won: int = -1,
    horizon: int = HORIZON,
    labels: Sequence[str] | None = None,
) -> Benchmark:
    """Returns the benchmark of the world with effects at `effect`, and a prize in state `won`."""
    prize = np.eye(len(rows))[won]
    mdp = FiniteMDP.from_dense(
        shrunk(rows, behavior, effect),
        np.broadcast_to(prize, rows.shape),
        DISCOUNT,
        state_labels=labels,
    )
    return Benchmark(
        name=name,
        mdp=mdp,
        behavior=Policy.from_dense(mdp, behavior),
        horizon=horizon,
        value_bounds=(0.0, 1.0),  # the reward of 1 is paid once
    )


def bandit(seed: LegacySeed = 1, arms: Arms = 10, effect: Portion = 0.2) -> Benchmark:
    """Builds a bandit whose arms win with random chances, shrunk towards their mean under π_b.

    A chance is uniform on [0, 1] with effects at 1, and the same for all arms with effects at 0.
    π_b is uniform on the simplex.
    """
    rng = np.random.RandomState(seed)
    chance = rng.uniform(size=arms)
    behavior = rng.dirichlet(np.ones(arms), size=3)
    rows = np.zeros((3, arms, 3))
    rows[0, :, 1:] = np.column_stack([chance, 1 - chance])
    return little_effect(
        "bandit", effect, rows, behavior, won=1, horizon=1, labels=("start", "won", "lost")
    )


# ---- logs that hide states within groups, or noise in rewards ------------------------------------


def coarse(
    seed: LegacySeed = 1, effect: Portion = 1.0, group: Annotated[int, Meta(ge=1, le=50)] = 5
) -> Benchmark:
    """Builds a world of 19 groups of `group` states each, and an end; the log shows groups.

    Groups are random, so they mean nothing. The next state depends on the state within the group,
    so the log is no Markov process: certificates that assume one promise nothing here. π_b sees
    groups, too. The model is the one that very many episodes of π_b show; policies are judged in
    the world itself.
    """
    groups = STATES - 1
    rows, behavior = draw_world(
        groups * group + 1, ACTIONS, SUCCESSORS, np.random.RandomState(seed)
    )
    shown = np.append(np.arange(groups * group) % groups, groups)
    seen = behavior[np.append(np.arange(groups), -1)]
    world = little_effect("coarse", effect, rows, seen[shown])
    pairs = Pairs.full(STATES, ACTIONS)
    log = Merged(mdp=world.mdp, pairs=pairs, shown=shown)
    return Benchmark(
        name="coarse",
        mdp=log.model(expected_visits(world.mdp, world.behavior, HORIZON)),
        behavior=Policy.from_dense(pairs, seen),
        horizon=HORIZON,
        value_bounds=world.value_bounds,
        simulator=log,
    )


def law_of(
    values: arrays.FloatArray, weights: arrays.FloatArray
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns values scaled to mean 1, and their chances, which are the weights scaled to sum 1."""
    chances = weights / weights.sum()
    return values / (values @ chances), chances


# law → the values of the factor X of rewards, and their chances. P(X ≥ x) of the last law falls
# like x^−1.5: with values that double for ever, X would have no finite variance.
LAWS = {
    "two-point": law_of(np.array([0.0, 2.0]), np.array([0.5, 0.5])),
    "skewed": law_of(np.array([0.0, 20.0]), np.array([0.95, 0.05])),
    "heavy-tailed": law_of(2.0 ** np.arange(10), 2.0 ** (-1.5 * np.arange(10))),
}
MOST_ON_THE_WAY = 0.1


def noisy(
    seed: LegacySeed = 1,
    law: Literal["two-point", "skewed", "heavy-tailed"] = "two-point",
    effect: Portion = 0.2,
) -> Benchmark:
    """Builds a world of 20 states with effects at `effect`, and noise in every reward.

    Entering state s pays μ(s) · X. X has mean 1 and is drawn anew in every step by one of three
    laws. "two-point" pays nothing or the double. "skewed" pays nothing in 19 of 20 steps.
    "heavy-tailed" has ten values, each the double of the one before. μ is 1 at the end of the
    episode, and at most 0.1 on the way there.
    """
    rng = np.random.RandomState(seed)
    rows, behavior = draw_world(STATES, ACTIONS, SUCCESSORS, rng)
    mean = MOST_ON_THE_WAY * rng.uniform(size=STATES)
    mean[-1] = 1.0
    most = 1.0 + MOST_ON_THE_WAY / (1 - DISCOUNT)  # the end, and every step on the way to it
    values, chances = LAWS[law]
    # State (s, j) of the finer model is state s, entered with the j-th outcome of X.
    coarser = np.repeat(shrunk(rows, behavior, effect), values.size, axis=0)
    finer = coarser[..., np.newaxis] * chances
    cube = finer.reshape(*finer.shape[:2], -1)
    reward = np.broadcast_to((mean[:, np.newaxis] * values).ravel(), cube.shape)
    pairs = Pairs.full(STATES, ACTIONS)
    log = Merged(
        mdp=FiniteMDP.from_dense(cube, reward, DISCOUNT),
        pairs=pairs,
        shown=np.repeat(np.arange(STATES), values.size),
    )
    return Benchmark(
        name="noisy",
        # All copies of a state are alike, so their shares do not matter.
        mdp=log.model(np.ones(log.mdp.num_pairs)),
        behavior=Policy.from_dense(pairs, behavior),
        horizon=HORIZON,
        value_bounds=(0.0, most),
        return_bounds=(0.0, most * float(values.max())),
        simulator=log,
    )


# ---- rare rewards --------------------------------------------------------------------------------

ENDS = 0.1  # the chance that a step ends the episode
TEMPTED = 0.2  # the chance of the tempting action under π_b
USUAL, TEMPTING = 1.0, 1.5  # the rewards that the two actions nearly always earn
Situations = Annotated[int, Meta(ge=1, le=100)]


def disaster(
    chance: Portion = 0.002, situations: Situations = 1, declared: bool = True
) -> Benchmark:
    """Builds a world in which the tempting action loses 500 with the chance `chance`."""
    return rare(
        "disaster",
        np.array([[USUAL, USUAL], [TEMPTING, -500.0]]),
        (0.0, chance),
        situations,
        declared,
    )


def jackpot(
    chance: Portion = 0.0005, situations: Situations = 1, declared: bool = True
) -> Benchmark:
    """Builds a world in which the usual action earns 2000 with the chance `chance`."""
    return rare(
        "jackpot",
        np.array([[USUAL, 2000.0], [TEMPTING, TEMPTING]]),
        (chance, 0.0),
        situations,
        declared,
    )


def rare(
    name: str,
    earned: arrays.FloatArray,
    chances: tuple[float, float],
    situations: int,
    declared: bool,
) -> Benchmark:
    """Returns the world in which action a earns `earned`[a, 1] with its chance, else [a, 0].

    If ranges are not `declared`, the rewards of the log stand for them.
    """
    states = situations + 1  # the last ends the episode
    leads = np.append(np.full(situations, (1 - ENDS) / situations), ENDS)
    rarely = np.array([[1 - chance, chance] for chance in chances])
    # Each state stands twice in the finer model: entered with the usual reward, or the rare one.
    rows = np.einsum("s,aj->asj", leads, rarely).reshape(2, -1)
    pays = np.broadcast_to(earned[:, np.newaxis], (2, states, 2)).reshape(2, -1)
    cube = np.zeros((2 * states, 2, 2 * states))
    cube[: 2 * situations] = rows
    pairs = Pairs.full(states, 2, action_labels=("usual", "tempting"))
    log = Merged(
        mdp=FiniteMDP.from_dense(cube, np.broadcast_to(pays, cube.shape), DISCOUNT),
        pairs=pairs,
        shown=np.repeat(np.arange(states), 2),
    )
    low, high = float(earned.min()), float(earned.max())
    return Benchmark(
        name=name,
        mdp=log.model(np.ones(log.mdp.num_pairs)),
        behavior=Policy.from_dense(pairs, [[1 - TEMPTED, TEMPTED]] * states),
        horizon=HORIZON,
        value_bounds=(min(0.0, low) / (1 - DISCOUNT), high / (1 - DISCOUNT)),
        ranges=((low, high), (low, high)),
        declared=declared,
        simulator=log,
    )


# ---- adaptive loggers ----------------------------------------------------------------------------


def adaptive(seed: LegacySeed = 1, effect: Portion = 0.05, epsilon: Portion = 0.3) -> Benchmark:
    """Builds `nearly-alike` with the log of an ε-greedy learner that begins with π_b."""
    plain = nearly_alike(seed, effect)
    return replace(plain, name="adaptive", simulator=Learner(truth=plain.truth, epsilon=epsilon))


def adaptive_bandit(
    seed: LegacySeed = 1, arms: Arms = 10, effect: Portion = 0.2, epsilon: Portion = 0.3
) -> Benchmark:
    """Builds `bandit` with the log of an ε-greedy learner that begins with π_b."""
    plain = bandit(seed, arms, effect)
    return replace(
        plain, name="adaptive/bandit", simulator=Learner(truth=plain.truth, epsilon=epsilon)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """A logger that follows a policy with probability ε, else takes the action of the best record.

    The record of an action is the mean of the discounted returns after it in earlier episodes. In a
    state without any record, the policy decides.
    """

    truth: Truth  # the benchmark's own model: only the logger is unusual
    epsilon: float

    def rollout(
        self, policy: Policy, episodes: int, horizon: int, rng: np.random.Generator
    ) -> DecisionLog:
        """Returns the log of a learner that begins with the policy, episode after episode."""
        mdp = self.truth.mdp
        over = ends_without_decision(mdp, policy)
        sums = process_of(mdp, policy, over, running_sums)
        # As lists, of which Python takes one element faster.
        pair_offsets, decide, offsets, successor, move, ended, begin = (
            part.tolist() for part in sums
        )
        owner = arrays.run_owners(mdp.offsets)
        visits = np.zeros(mdp.num_pairs, np.int64)
        total = np.zeros(mdp.num_pairs)
        best = [-1] * mdp.num_states  # the pair with the best record; −1: none was tried
        taken: list[arrays.IntArray] = []  # by each episode
        for _ in range(episodes):
            transitions: list[int] = []
            chances = rng.random(3 * horizon + 1).tolist()
            state = element_at([0, mdp.num_states], begin, 0, chances.pop())
            while len(transitions) < horizon and not ended[state]:
                pair = best[state] if chances.pop() >= self.epsilon else -1
                uniform = chances.pop()
                pair = element_at(pair_offsets, decide, state, uniform) if pair < 0 else pair
                transitions.append(element_at(offsets, move, pair, chances.pop()))
                state = successor[transitions[-1]]
            steps = np.array(transitions, np.int64)
            taken.append(steps)
            returned = discounted_returns(
                np.array([0, steps.size]), mdp.reward[steps], mdp.discount[0]
            )
            np.add.at(visits, owner[steps], 1)
            np.add.at(total, owner[steps][::-1], returned[::-1])
            # All states have the same actions.
            records = np.where(visits > 0, total / np.maximum(visits, 1), -np.inf).reshape(
                mdp.num_states, -1
            )
            tried = records.max(axis=1) > -np.inf
            best = np.where(tried, mdp.pairs.offsets[:-1] + records.argmax(axis=1), -1).tolist()
        lengths = np.array([steps.size for steps in taken])
        return log_of_transitions(mdp, over, arrays.offsets_of(lengths), np.concatenate(taken))


def element_at(offsets: list[int], sums: list[float], run: int, uniform: float) -> int:
    """Returns the element of the run at which its running sums pass `uniform`."""
    first, last = offsets[run], offsets[run + 1]
    return bisect_right(sums, uniform * sums[last - 1], first, last - 1)


# ---- miswritten logs -----------------------------------------------------------------------------


def copied(
    seed: LegacySeed = 1, effect: Portion = 0.05, times: Annotated[int, Meta(ge=1, le=100)] = 5
) -> Benchmark:
    """Builds `nearly-alike` with a log in which every episode stands `times` times."""
    plain = nearly_alike(seed, effect)
    return replace(plain, name="copied", simulator=Miswritten(truth=plain.truth, times=times))


@dataclass(frozen=True, slots=True, kw_only=True)
class Miswritten:
    """Makes logs of a known model that hold episodes several times, or have changed rows."""

    truth: Truth
    times: int = 1  # the number of copies of every episode
    rewrite: Callable[[DecisionLog], DecisionLog] | None = None  # None: rows stay unchanged

    def rollout(
        self, policy: Policy, episodes: int, horizon: int, rng: np.random.Generator
    ) -> DecisionLog:
        """Returns episodes of the policy, with changed rows and copies."""
        log = sample_log(self.truth.mdp, policy, -(-episodes // self.times), horizon, rng)
        if self.rewrite is not None:
            log = self.rewrite(log)
        return log if self.times == 1 else log.episodes(np.arange(episodes) % log.num_episodes)


CARE, DIED, DISCHARGED, OVER = range(4)


def outcome_in_state(deadly: Portion = 0.2) -> Benchmark:
    """Builds a ward whose log has the status at the end of each week as the state of that week.

    One patient in ten goes home each week. The drug is worth 1 a week, and kills with the chance
    `deadly`, which costs 10; π_b gives it to half of the patients. The model is the one that the
    log shows: patients in care live under any action, and the dead die under any action.
    """
    labels = ("in care", "died", "discharged", "over")
    rows = np.zeros((4, 2, 4))
    rows[CARE] = [
        [0.9, 0.0, 0.1, 0.0],
        [0.9 * (1 - deadly), deadly, 0.1 * (1 - deadly), 0.0],
    ]
    earned = np.zeros((4, 2, 4))
    earned[CARE, 1] = [1.0, -10.0, 1.0, 0.0]
    ward = FiniteMDP.from_dense(rows, earned, DISCOUNT, state_labels=labels)
    shown = np.zeros((4, 2, 4))
    shown[CARE] = rows[CARE].mean(axis=0)
    shown[DIED : DISCHARGED + 1, :, OVER] = 1.0
    pays = np.zeros((4, 2, 4))
    pays[:, 1] = 1.0
    pays[DIED] = -10.0
    return Benchmark(
        name="outcome-in-state",
        mdp=FiniteMDP.from_dense(shown, pays, DISCOUNT, shown[CARE, 0], state_labels=labels),
        behavior=Policy.uniform(ward),
        horizon=8,
        value_bounds=(-10.0, 1 / (1 - DISCOUNT)),
        simulator=Miswritten(
            truth=Truth(ward, np.arange(ward.num_pairs)), rewrite=written_afterwards
        ),
    )


def written_afterwards(log: DecisionLog) -> DecisionLog:
    """Returns the log with the state after each step in place of the state before it."""
    following = np.append(log.next_state[1:], CARE)
    following[log.truncated] = CARE
    return replace(log, state=log.next_state, next_state=np.where(log.terminated, OVER, following))


BROKEN = 2


def stops_that_know(breaks: Portion = 0.2) -> Benchmark:
    """Builds machines whose recording stops when they break, as if a clock had stopped it.

    "run" earns 1, or breaks the machine with the chance `breaks`; a broken machine earns nothing
    for ever. "service" earns a half. π_b takes each action half of the time. The model is the one
    that the log shows: machines that never break.
    """

    def machines(broken: float) -> FiniteMDP:
        rows = np.zeros((3, 2, 3))
        rows[:BROKEN] = [[0.5, 0.5, 0.0], [0.5 * (1 - broken), 0.5 * (1 - broken), broken]]
        earned = np.zeros((3, 2, 3))
        earned[:BROKEN] = [[0.5, 0.5, 0.5], [1.0, 1.0, 0.0]]
        return FiniteMDP.from_dense(
            rows, earned, 0.9, state_labels=("good", "worn", "broken"),
            action_labels=("service", "run"),
        )  # fmt: skip

    seen = machines(0.0)
    true = machines(breaks)
    return Benchmark(
        name="stops-that-know",
        mdp=seen,
        behavior=Policy.uniform(seen),
        horizon=30,
        value_bounds=(0.0, 10.0),  # 1 in every step
        simulator=Miswritten(
            truth=Truth(true, np.arange(true.num_pairs)), rewrite=stopped_at_the_end
        ),
    )


def stopped_at_the_end(log: DecisionLog) -> DecisionLog:
    """Returns the log in which the next states of terminating steps are unknown."""
    return replace(
        log,
        next_state=np.where(log.terminated, UNKNOWN, log.next_state),
        terminated=np.zeros(log.num_steps, np.bool_),
    )
