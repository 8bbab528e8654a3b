"""Runs the stress test beside a structure: the whole method, in worlds drawn from a posterior.

World k has a law of every node, drawn from its Dirichlet posterior with the prior ½ of each value
(Jeffreys), given the whole log. There the current policy makes a log of as many episodes, which
start as those of the log did, and are recorded for as long at most. An episode that is over in the
log may take as long as the longest one. The method sees only that log. The true gain of its policy
is the mean of `TRUTH` rollouts of both policies by the same random numbers. It counts as equal to a
claim within two of its standard errors.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np

import surestep._arrays as arrays
from surestep.algorithms.node_rules import FoundRules
from surestep.certificates.node_law import PRIOR, drawn_laws, rolled_out, sampled_log, seen_draws
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.model import Certificate
from surestep.model.factored import MISSING, FactoredProblem
from surestep.rehearsal.result import Rehearsal

TRUTH = 1_000  # rollouts behind a true gain
LIMITS = (
    "This is a stress test in worlds made from the log, not a confidence level.",
    "The structure is true in every world: it says nothing of a wrong one.",
    "It says nothing of causes that nobody recorded: no world has them.",
)
Method = Callable[[FactoredProblem], tuple[FoundRules, Certificate, Certificate | None]]


def rehearse_nodes(
    problem: FactoredProblem,
    method: Method,
    *,
    delta: float,
    worlds: int,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Rehearsal:
    """Runs a method in worlds drawn from the posterior of a problem with a known π_b.

    Parameters
    ----------
    problem : FactoredProblem
        The log, with its structure.
    method : callable
        Makes rules of a problem, a claim about them, and maybe a belief.
    delta : float
        The chance that a claim may be wrong.
    worlds : int
        The number of worlds.
    seed : int, default 0
        The seed. The outcome of a world depends on it and on its number alone.
    progress : callable, optional
        Called with the numbers of worlds that are done, and of all worlds.

    Returns
    -------
    Rehearsal
        The outcomes, of one kind of world and one size.

    Raises
    ------
    InvalidParameter
        Nobody knows all of the current policy, or it is a table.

    Examples
    --------
    >>> from surestep.algorithms.node_rules import FoundRules
    >>> from surestep.certificates import NodeStitched
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> from surestep.rehearsal import rehearse_nodes
    >>> world = SysAdmin(3)
    >>> problem = world.problem(world.sample(world.first_failed(0.3), 50, rng=1))
    >>> rules = FoundRules(world.fewest_failed_neighbours(), (), "nothing", 0.0)
    >>> def method(problem):
    ...     return rules, NodeStitched().certify(problem, rules.policy), None
    >>> tested = rehearse_nodes(problem, method, delta=0.1, worlds=2)
    >>> tested.worlds, tested.summary().violated.happened
    (2, 0)
    """
    behavior, log = problem.rolled_behavior, problem.log
    if behavior is None:
        raise InvalidParameter(
            "the worlds of a stress test need a current policy of rules that is known everywhere; "
            "expected `behavior` of the problem to be one"
        )
    weights = seen_draws(log, PRIOR)
    lengths = arrays.run_lengths(log.offsets)
    steps = np.where(log.ended[log.offsets[1:] - 1], lengths.max(), lengths)
    unseen = (log.next_state[log.ended] == MISSING).all()  # where episodes ended
    rows = []
    for world in range(worlds):
        progress(world, worlds)
        rng = np.random.default_rng([seed, world])
        law = drawn_laws(weights, 1, rng)
        starts = np.maximum(rng.choice(log.starts, lengths.size), 0)
        made = sampled_log(problem.structure, law[0], behavior, starts, steps=steps, rng=rng)
        hidden = (made.ended & unseen)[:, np.newaxis]
        made = arrays.altered(
            made, next_state=np.where(hidden, MISSING, made.next_state), reward=made.earned
        )
        policy, claim, belief = behavior, None, None
        with suppress(CertificateRefused):  # then nothing is changed
            found, claim, belief = method(replace(problem, log=made))
            policy = found.policy
        known = starts if problem.start is None else problem.start
        first = np.resize(known, (TRUTH, starts.shape[1]))
        ours, theirs = (
            rolled_out(problem, law, one, first, seed=world, rest=rest)[0]
            for one, rest in zip((policy, behavior), problem.rest_bounds, strict=True)
        )
        lower = [
            np.nan if one is None or one.lower is None else one.lower for one in (claim, belief)
        ]
        rows.append(((ours - theirs).mean(), *lower, (ours - theirs).std() / TRUTH**0.5))
    gain, claims, beliefs, errors = np.array(rows).T
    return Rehearsal(
        kind="stitched-nodes",
        delta=delta,
        family=("posterior of nodes",),
        member=np.zeros(worlds, np.int64),
        sizes=(1.0,),
        episodes=(log.num_episodes,),
        horizon=(int(steps.max()),),
        own_episodes=log.num_episodes,
        gain=gain,
        claim=claims,
        calibrated_claim=None,
        calibration=None,
        tolerance=float(2 * errors.mean()),
        outside=np.zeros(worlds, np.bool_),
        limits=LIMITS,
        belief=beliefs,
    )
