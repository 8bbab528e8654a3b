"""Hypothesis strategies for the nouns: small models with everything that makes them awkward."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from surestep import Counts, DecisionLog, FiniteMDP, Pairs, Policy, Problem, sample_log

WEIGHTS = st.integers(1, 9)
REWARDS = st.one_of(
    st.integers(-5, 5).map(float), st.floats(-100, 100, allow_nan=False, allow_subnormal=False)
)
DISCOUNTS = st.sampled_from([0.0, 0.3, 0.5, 0.9, 0.95, 0.99])


def drawn_array(draw, elements, shape):
    """An array of independent draws."""
    size = int(np.prod(shape))
    return np.array(draw(st.lists(elements, min_size=size, max_size=size))).reshape(shape)


@st.composite
def all_pairs(draw, max_states=6, max_actions=3, min_states=1):
    """Pairs with ragged actions."""
    states = draw(st.integers(min_states, max_states))
    actions = draw(st.integers(1, max_actions))
    enabled = [
        draw(st.lists(st.booleans(), min_size=actions, max_size=actions).filter(any))
        for _ in range(states)
    ]
    return Pairs.from_enabled(np.array(enabled))


@st.composite
def mdps(draw, max_states=6, max_actions=3, undiscounted=False):
    """Models with ragged actions, ends of episodes, and a discount per pair.

    With `undiscounted`, some pairs that lead only to higher states have discount 1.
    """
    pairs = draw(all_pairs(max_states, max_actions, min_states=2 if undiscounted else 1))
    one_discount = draw(st.one_of(st.none(), DISCOUNTS))
    offsets, successor, probability, reward, ending, discount = [0], [], [], [], [], []
    for k in range(pairs.num_pairs):
        state = int(pairs.state[k])
        rising = undiscounted and state < pairs.num_states - 1 and draw(st.booleans())
        targets = range(state + 1 if rising else 0, pairs.num_states)
        support = draw(st.lists(st.sampled_from(targets), unique=True, max_size=len(targets)))
        weight = np.array([draw(WEIGHTS) for _ in support], float)
        successor += support
        probability += list(weight / weight.sum()) if support else []
        reward += [draw(REWARDS) for _ in support]
        ending.append(0.0 if support else draw(REWARDS))
        discount.append(
            1.0 if rising else draw(DISCOUNTS) if one_discount is None else one_discount
        )
        offsets.append(len(successor))
    start = np.array(
        draw(st.lists(WEIGHTS, min_size=pairs.num_states, max_size=pairs.num_states)), float
    )
    return FiniteMDP(
        pairs,
        np.array(offsets),
        np.array(successor, int),
        np.array(probability),
        np.array(reward),
        np.array(discount),
        start / start.sum(),
        np.array(ending),
    )


@st.composite
def episodic_mdps(draw, max_states=4, max_actions=3, rewards=REWARDS):
    """Models that logs can show: all others go on, and episodes are over in the last state."""
    pairs = draw(all_pairs(max_states, max_actions, min_states=2))
    end = pairs.num_states - 1
    P = np.zeros((pairs.num_states, pairs.num_actions, pairs.num_states))
    for s, a in zip(pairs.state, pairs.action, strict=True):
        if s < end:
            support = draw(st.lists(st.integers(0, end), unique=True, min_size=1, max_size=3))
            P[s, a, support] = [draw(WEIGHTS) for _ in support]
            P[s, a] /= P[s, a].sum()
    R = np.array(draw(st.lists(rewards, min_size=P.size, max_size=P.size))).reshape(P.shape)
    start = np.array([*draw(st.lists(WEIGHTS, min_size=end, max_size=end)), 0], float)
    return FiniteMDP.from_dense(P, R, 0.5, start / start.sum(), pairs.enabled())


@st.composite
def policies(draw, pairs):
    """Any policy, deterministic ones included."""
    table = []
    for s in range(pairs.num_states):
        size = int(pairs.offsets[s + 1] - pairs.offsets[s])
        weight = np.array(
            draw(st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any)), float
        )
        table += list(weight / weight.sum())
    return Policy(pairs, np.array(table))


@st.composite
def count_tables(draw, max_states=4, max_actions=3):
    """Dense counts [S, A, S]."""
    states, actions = draw(st.integers(1, max_states)), draw(st.integers(1, max_actions))
    size = states * actions * states
    cells = draw(st.lists(st.integers(0, 6), min_size=size, max_size=size))
    return np.array(cells).reshape(states, actions, states)


@st.composite
def counts(draw, max_states=4, max_actions=3):
    """Counts of any kind of reward."""
    table = draw(count_tables(max_states, max_actions))
    per_transition = draw(st.booleans())
    observed = table if per_transition else table.sum(axis=2)
    cells = draw(st.lists(REWARDS, min_size=observed.size, max_size=observed.size))
    rewards = np.array(cells).reshape(observed.shape)
    if draw(st.booleans()):
        return Counts.from_dense(table, rewards=rewards)
    return Counts.from_dense(table, reward_sums=np.where(observed > 0, rewards, 0.0))


@st.composite
def decision_logs(draw, max_states=4, max_actions=3, rewards=REWARDS):
    """Logs of which some episodes terminate, all of them in the last state."""
    pairs = draw(all_pairs(max_states, max_actions))
    end = pairs.num_states - 1
    busy = st.integers(0, max(end - 1, 0))  # nobody decides at the end, unless it is all there is
    columns = {name: [] for name in ("state", "action", "reward", "next_state")}
    flags, lengths = [], draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    for length in lengths:
        terminates = end > 0 and draw(st.booleans())
        states = draw(st.lists(busy, min_size=length, max_size=length))
        last = end if terminates else draw(busy)
        for state, next_state in zip(states, [*states[1:], last], strict=True):
            enabled = pairs.action[pairs.offsets[state] : pairs.offsets[state + 1]]
            columns["state"].append(state)
            columns["action"].append(int(draw(st.sampled_from(enabled.tolist()))))
            columns["reward"].append(draw(rewards))
            columns["next_state"].append(next_state)
        both = terminates and draw(st.booleans())
        flags += [(False, False)] * (length - 1) + [(terminates, both or not terminates)]
    terminated, truncated = zip(*flags, strict=True)
    return DecisionLog(
        pairs,
        **{name: np.array(values) for name, values in columns.items()},
        terminated=np.array(terminated),
        truncated=np.array(truncated),
        episode_offsets=np.concatenate([[0], np.cumsum(lengths)]),
    )


# ---- problems ---------------------------------------------------------------------------------

SEEDS = st.integers(0, 10**6)
VISITS = (0, 1, 9, 400, 400)  # a pair has about that many: none, too few, and enough for any N∧


def up_to(largest, smallest=1):
    """Whole numbers of which every second one is the largest."""
    return st.one_of(st.integers(smallest, largest), st.just(largest))


@st.composite
def problems(draw, max_states=4, max_actions=3, all_visited=False, generic=False):
    """Problems without a log, with every kind of reward and both rules for unseen pairs.

    Actions are ragged, some states are known ends, and some pairs were never visited, unless
    `all_visited`: then each transition has 0 to 3 visits, and ends earn nothing. Rewards are small
    whole numbers, so that many values are equal; `generic` ones are noise, so that none are.
    Tables come from a seed, since there are many of them; shapes and kinds are what shrinks.
    """
    states, actions = draw(up_to(max_states)), draw(up_to(max_actions))
    rng = np.random.default_rng(draw(SEEDS))
    enabled = rng.random((states, actions)) < 0.9
    enabled[~enabled.any(axis=1), 0] = True
    ends = rng.random(states) < 0.2
    ends[0] = False  # where episodes start
    times = rng.integers(0, 4, (states, actions, states))
    times[:, :, 0] += times.sum(axis=2) == 0
    if not all_visited:
        times *= rng.choice(VISITS, (states, actions, 1))
    times[ends], times[~enabled] = 0, 0
    per_transition, known = draw(st.booleans()), draw(st.booleans())
    size = times.shape if per_transition else enabled.shape
    rewards = rng.normal(size=size) if generic else rng.integers(-3, 4, size).astype(float)
    if all_visited:
        rewards[ends] = 0.0
    observed = times if per_transition else times.sum(axis=2)
    counts = Counts.from_dense(
        times,
        **{"rewards": rewards} if known else {"reward_sums": rewards * observed},
        enabled=enabled,
        terminal=ends,
    )
    return draw(problems_of(counts, random_policy(counts.pairs, rng), rewards))


@st.composite
def logged_problems(draw, max_states=4, max_actions=3, generic=False):
    """Problems with the log of a few episodes; see `problems`."""
    states, actions = draw(up_to(max_states, 2)), draw(up_to(max_actions))
    rng = np.random.default_rng(draw(SEEDS))
    enabled = rng.random((states, actions)) < 0.9
    enabled[~enabled.any(axis=1), 0] = True
    P = rng.dirichlet(np.full(states, 0.5), (states, actions))
    P[-1] = 0.0  # episodes are over in the last state
    P[~enabled] = 0.0
    rewards = rng.normal(size=P.shape) if generic else rng.integers(-3, 4, P.shape).astype(float)
    mdp = FiniteMDP.from_dense(P, rewards, 0.5, enabled=enabled)
    behavior = random_policy(mdp.pairs, rng)
    log = sample_log(mdp, behavior, draw(up_to(60)), draw(up_to(6)), rng)
    counts = log.counts(rewards=draw(st.sampled_from([None, rewards])))
    return draw(problems_of(counts, behavior, rewards, log))


@st.composite
def problems_of(draw, counts, behavior, rewards, log=None):
    """Problems around counts, with bounds that no value of a model with these rewards exceeds."""
    discount = draw(DISCOUNTS)
    low, high = min(float(rewards.min()), 0.0), max(float(rewards.max()), 0.0)
    steps, room = 1 / (1 - discount), draw(st.sampled_from([0.1, 1.0, 50.0]))
    return Problem(
        counts=counts,
        behavior=behavior,
        discount=discount,
        value_bounds=(low * steps - room, high * steps + room),
        unseen=draw(st.sampled_from(["terminal", "pessimistic"])),
        log=log,
    )


def random_policy(pairs, rng):
    """Any policy, with some actions that are never taken."""
    weight = np.where(rng.random(pairs.num_pairs) < 0.8, rng.integers(1, 6, pairs.num_pairs), 0)
    weight[pairs.offsets[:-1]] += np.add.reduceat(weight, pairs.offsets[:-1]) == 0
    total = np.add.reduceat(weight, pairs.offsets[:-1])
    return Policy(pairs, weight / total[pairs.state])
