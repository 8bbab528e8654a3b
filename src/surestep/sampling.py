"""Draws logs and counts of a policy in a known MDP."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import surestep._arrays as arrays
from surestep.errors import InvalidModel
from surestep.kernels.records import Process
from surestep.kernels.runs import population_counts, running_sums, shares_of_rest, simulate
from surestep.model import Counts, DecisionLog, FiniteMDP, LoggedRewards, Policy
from surestep.model.pairs import check_same_pairs

Chances = Callable[[arrays.IntArray, arrays.FloatArray], arrays.FloatArray]  # of every run
STEPS_AT_ONCE = 4_000_000  # transitions that one call of the kernel may draw


def sample_log(
    mdp: FiniteMDP, policy: Policy, episodes: int, horizon: int, rng: np.random.Generator | int
) -> DecisionLog:
    """Draws a log of episodes of a policy in a known model.

    Parameters
    ----------
    mdp : FiniteMDP
        The model; each episode starts by its start distribution.
    policy : Policy
        The policy that acts.
    episodes : int
        The number of episodes.
    horizon : int
        The number of steps after which episodes are truncated.
    rng : numpy.random.Generator or int
        The source of randomness, or a seed.

    Returns
    -------
    DecisionLog
        An episode terminates when it enters a state whose pairs have no successors; the log has no
        decisions there.

    Raises
    ------
    InvalidModel
        If the policy may take an action that ends the episode in any other state, or earn a reward
        at the end: no log can show either.

    Examples
    --------
    >>> mdp = surestep.FiniteMDP.from_dense([[[0.9, 0.1]], [[0.5, 0.5]]], [[0.0], [1.0]], 0.9)
    >>> policy = surestep.Policy.uniform(mdp)
    >>> surestep.sample_log(mdp, policy, episodes=100, horizon=10, rng=1)
    DecisionLog(num_episodes=100, num_steps=1000, num_states=2, num_actions=1)
    """
    arrays.expect_count("episodes", episodes)
    arrays.expect_count("horizon", horizon)
    rng = arrays.generator(rng)
    over = ends_without_decision(mdp, policy)
    sums = process_of(mdp, policy, over, running_sums)
    room = max(horizon, min(episodes * horizon, STEPS_AT_ONCE))
    lengths: list[arrays.IntArray] = []
    taken: list[arrays.IntArray] = []
    missing = episodes
    while missing > 0:
        steps = np.empty(missing, np.int64)
        transitions = np.empty(room, np.int64)
        done = simulate(rng, sums, horizon, steps, transitions)
        lengths.append(steps[:done])
        taken.append(transitions[: steps[:done].sum()].copy())
        missing -= done
    return log_of_transitions(
        mdp, over, arrays.offsets_of(np.concatenate(lengths)), np.concatenate(taken)
    )


def log_of_transitions(
    mdp: FiniteMDP, over: arrays.BoolArray, offsets: arrays.IntArray, taken: arrays.IntArray
) -> DecisionLog:
    """Returns the log of episodes with the transitions `taken` [N]."""
    pair = arrays.run_owners(mdp.offsets)[taken]
    next_state = mdp.successor[taken]
    last = arrays.marked(offsets[1:] - 1, taken.size)
    terminated = last & over[next_state]
    return DecisionLog(
        mdp.pairs,
        mdp.pairs.state[pair],
        mdp.pairs.action[pair],
        arrays.own(mdp.reward[taken]),
        next_state,
        arrays.own(terminated),
        arrays.own(last & ~terminated),
        arrays.own(offsets),
    )


def process_of(mdp: FiniteMDP, policy: Policy, over: arrays.BoolArray, chances: Chances) -> Process:
    """Returns the model under the policy as a record for kernels, with `chances` of every run."""
    return Process(
        mdp.pairs.offsets,
        chances(mdp.pairs.offsets, policy.probability),
        mdp.offsets,
        mdp.successor,
        chances(mdp.offsets, mdp.probability),
        over,
        chances(np.array([0, mdp.num_states]), mdp.initial),
    )


def end_states(mdp: FiniteMDP) -> arrays.BoolArray:
    """Marks the states [S] without any successor, in which an episode is over."""
    return np.asarray(arrays.run_lengths(mdp.offsets[mdp.pairs.offsets]) == 0)


def ends_without_decision(mdp: FiniteMDP, policy: Policy) -> arrays.BoolArray:
    """Marks the states [S] without any successor; refuses ends that no log can show."""
    arrays.expect("mdp", mdp, FiniteMDP)
    arrays.expect("policy", policy, Policy)
    pairs = mdp.pairs
    check_same_pairs("the model", pairs, "the policy", policy.pairs)
    over = end_states(mdp)
    ending = arrays.run_lengths(mdp.offsets) == 0
    for k, others in arrays.first_where(
        ending & (policy.probability > 0) & ~over[pairs.state], "pair"
    ):
        raise InvalidModel(
            f"the policy takes {pairs.pair_name(k)} with probability {policy.probability[k]:.10g}, "
            "but it has no successor, and a log needs a next state; expected a transition to an "
            f"end state of the model's own{others}"
        )
    for k, others in arrays.first_where(
        ending & (policy.probability > 0) & (mdp.ending_reward != 0), "pair"
    ):
        raise InvalidModel(
            f"{pairs.pair_name(k)} earns {mdp.ending_reward[k]} after the end of the episode, "
            "which no log shows; expected 0 (give the reward to the transitions that lead "
            f"there){others}"
        )
    for s, others in arrays.first_where(over & (mdp.initial > 0), "state"):
        raise InvalidModel(
            f"episodes start in {pairs.state_name(s)} with probability {mdp.initial[s]:.10g}, "
            f"where they are over at once; expected a start with a decision{others}"
        )
    return over


@dataclass(frozen=True, slots=True)
class CountSampler:
    """Draws the counts of a policy's trajectories in a model; made once, it draws many times."""

    mdp: FiniteMDP
    policy: Policy
    shares: Process  # its chances are shares of the rest of a run

    @classmethod
    def of(cls, mdp: FiniteMDP, policy: Policy) -> "CountSampler":
        """Returns the sampler of the policy in the model; refuses models as `sample_log` does."""
        return cls(
            mdp, policy, process_of(mdp, policy, ends_without_decision(mdp, policy), shares_of_rest)
        )

    def draw(
        self, episodes: int, horizon: int, rng: np.random.Generator
    ) -> tuple[arrays.IntArray, arrays.IntArray]:
        """Draws the counts of the model's transitions [T], and of the starts of episodes [S]."""
        times = np.zeros(self.mdp.num_transitions, np.int64)
        starts = np.zeros(self.mdp.num_states, np.int64)
        population_counts(rng, self.shares, episodes, horizon, times, starts)
        return times, starts


def sample_counts(
    mdp: FiniteMDP, policy: Policy, episodes: int, horizon: int, rng: np.random.Generator | int
) -> Counts:
    """Draws the counts of a log by the same law as `sample_log`, fast for any number of episodes.

    Parameters
    ----------
    mdp : FiniteMDP
        The model; each episode starts by its start distribution.
    policy : Policy
        The policy that acts.
    episodes : int
        The number of episodes.
    horizon : int
        The number of steps after which episodes are truncated.
    rng : numpy.random.Generator or int
        The source of randomness, or a seed.

    Returns
    -------
    Counts
        The counts, with the sums of rewards.

    Raises
    ------
    InvalidModel
        If `sample_log` refuses the model.

    Notes
    -----
    Trajectories are exchangeable. So only the number of trajectories in each state is carried
    through time, and split by multinomial draws over actions and successors.

    Examples
    --------
    >>> mdp = surestep.FiniteMDP.from_dense([[[0.9, 0.1]], [[0.5, 0.5]]], [[0.0], [1.0]], 0.9)
    >>> policy = surestep.Policy.uniform(mdp)
    >>> counts = surestep.sample_counts(mdp, policy, episodes=10**9, horizon=10, rng=1)
    >>> int(counts.visits.sum())
    10000000000
    """
    arrays.expect_count("episodes", episodes)
    arrays.expect_count("horizon", horizon)
    rng = arrays.generator(rng)
    sampler = CountSampler.of(mdp, policy)
    times, starts = sampler.draw(episodes, horizon, rng)
    seen = times > 0
    ended = arrays.marked(mdp.successor[seen], mdp.num_states)
    return Counts(
        mdp.pairs,
        arrays.offsets_of(arrays.run_sums(seen.astype(np.int64), mdp.offsets)),
        mdp.successor[seen],
        times[seen],
        LoggedRewards(
            mdp.reward[seen] * times[seen],
            "transition",
            known=False,
            least=mdp.reward[seen],
            greatest=mdp.reward[seen],
        ),
        starts,
        arrays.own(ended & sampler.shares.over),
    )
