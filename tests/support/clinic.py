"""A clinic of which some patients are lost, with the truth of what its new policy gains."""

import numpy as np

from support.log_tables import table_of
from surestep import FiniteMDP, Policy, performance
from surestep.sampling import sample_log

STATES, ACTIONS = ("mild", "worse", "severe", "recovered", "died"), ("watch", "treat")
RANGES = {"running": (-1.0, 0.0), "ending": (-20.0, 10.0)}
DISCOUNT = 0.95
TODAY = np.tile([0.6, 0.4], (5, 1))  # watched or treated by chance, whatever the state


def clinic(*, cures=True):
    """The world: a treatment helps, or else it kills; either way it costs 1 a week."""
    P, R = np.zeros((5, 2, 5)), np.zeros((5, 2, 5))
    P[0, 0] = [0.50, 0.20, 0.00, 0.30, 0.00]
    P[1, 0] = [0.20, 0.45, 0.25, 0.08, 0.02]
    P[2, 0] = [0.00, 0.20, 0.55, 0.00, 0.25] if cures else [0.00, 0.45, 0.50, 0.00, 0.05]
    P[0, 1] = [0.50, 0.15, 0.00, 0.35, 0.00] if cures else [0.20, 0.10, 0.00, 0.50, 0.20]
    P[1, 1] = [0.40, 0.30, 0.10, 0.19, 0.01] if cures else [0.30, 0.10, 0.00, 0.40, 0.20]
    P[2, 1] = [0.10, 0.50, 0.32, 0.00, 0.08] if cures else [0.10, 0.40, 0.00, 0.20, 0.30]
    R[:, 1], R[..., 3], R[..., 4] = -1.0, 10.0, -20.0
    return FiniteMDP.from_dense(P, R, DISCOUNT, initial=[0.3, 0.5, 0.2, 0.0, 0.0])


def patients(world, number, seed, *, lost_at_random=True):
    """The log of patients, some of whom nobody sees again after a row, as a table.

    They are lost at random given the state, or else nine of ten who die under treatment are.
    """
    policy, rng = Policy(world.pairs, TODAY.ravel()), np.random.default_rng(seed)
    log = sample_log(world, policy, number, 400, rng)
    chance = np.array([0.02, 0.03, 0.06, 0.0, 0.0])[log.state]
    if not lost_at_random:
        chance = np.where((log.next_state == 4) & (log.action == 1), 0.9, 0.0)
    lost = rng.random(log.num_steps) < chance
    firsts = np.minimum.reduceat(np.where(lost, log.step, 10**6), log.episode_offsets[:-1])
    last = np.repeat(firsts, np.diff(log.episode_offsets))
    table = table_of(log, STATES, ACTIONS)
    table["reward"] = np.where(lost, -1.0 * (log.action == 1), log.reward)
    table["terminated"] = log.terminated & ~lost
    kept = log.step <= last
    return {name: table[name][kept] for name in table if name not in ("next_state", "truncated")}


def true_gain(world, result):
    """What the policy of a result gains in truth over today's."""
    policy, table = TODAY.copy(), result.table
    for pair, chance in enumerate(table.probability):
        (state,) = table.vocabulary.state_name(int(table.pairs.state[pair]))
        (action,) = table.vocabulary.action_name(int(table.pairs.action[pair]))
        if state in STATES:
            policy[STATES.index(state), ACTIONS.index(action)] = chance
    gained, today = (
        performance(world, Policy(world.pairs, each.ravel())) for each in (policy, TODAY)
    )
    return gained - today
