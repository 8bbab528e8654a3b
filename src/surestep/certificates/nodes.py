"""The stitched certificate on nodes: proofs in worlds whose states nobody can enumerate.

**What is assumed.** A state has columns. The structure says for every column of the next state what
its law depends on: some columns now, a part of the action, and maybe next columns that come earlier
in an order of decisions. A *node* is such a column (or a group that shares its nodes) with values
of these parents and a part of the action. The assumption: *given everything that whoever acted knew
up to (s, a), and the next columns that come earlier in the order, a column has the law of its node,
at every (s, a) that either policy can reach.* It contains that the log is Markov, that there are no
hidden causes, that nothing changes over time, that shared nodes are alike, and that columns are
independent given their parents. The last one is used twice: for the law of the log, and where
rollouts put entries of different steps together.

**Step 1: stacks.** Let Y_{j,1}, Y_{j,2}, … be independent draws from the law of node j, independent
between nodes and of the logger's own randomness. In (s, a), a logger reads, for each column in the
order, the next unread entry of the node that applies; two columns that share a node read two
entries. That entry was not read before, and which one it is was decided by entries read before: so
given all of these it has the law of the node. Hence the log that is read off has the law of the
real log, whatever the logger knows of the past: it may learn, cool off or quit. It shows the first
N_j entries of every node, and N_j may depend on everything. Entries stand in the order of
decisions: by step, and within a step by the order of columns.

**Step 2: places.** An entry that was read and that nobody saw keeps its place, and no round gets
past it: leaving it out would leave out what came of it. This concerns the columns of a step that
ended without a next state and were decided before the end. The columns that the structure decides
*after* the end are not drawn in such a step; their nodes then are the laws given that it goes on,
and columns must be independent given that. Where a parent is missing, nobody knows which stack was
read: every stack that may have been gets a place that cannot be read. On a stack that was not, the
entries before that place are still its first ones, in their order, and no others are used.

**Step 3: what is known.** A node that is declared to have one value is not read, by log or rollout.
That is part of the assumption; one row against it refuses the log (`FactoredLog`). The reward of a
step is a declared function of (s, a, s′), or a node of its own; the end likewise. Neither is ever
taken from the row of another node. Starts are one joint stack, unless the one start is known.

**Step 4: a round.** π_I and then π_b are rolled out from one start. In each of its steps a rollout
reads the next entry of every node that applies, in the order of decisions: the l-th read of node j
in this rollout reads Y_{j, b_j + l}, where b_j is what earlier rounds may have read. After a round
b_j rises by the larger number of reads of the two. A rollout is cut after H steps (there is always
such an H: known nodes use up no entries), or where it needs a node that fold 1 never saw, or where
nobody knows what its policy does: a rule of its own past, as H and these nodes come from fold 1 and
the policies are given.

**Lemma.** E[X | earlier rounds] ≤ Δ, for X = G_I − G_b. Which entry a rollout reads next is decided
by what it and earlier rounds have read, and neither has read it. So given these it has the law of
its node, and by the assumption the rollout is by itself a trajectory of its policy, also through
states that the log never shows. Sharing entries and random numbers changes the joint law of both
rollouts, and no mean. A cut may come in the middle of a step, after some of its columns: then what
is left is bounded by `rest_bounds`, which hold for the return from any step on *whatever is drawn*,
and not only in the mean. So what is paid at a cut is at most the mean of what is left for π_I, and
at least that for π_b. No return is below `return_bounds`, nor above. ∎

**Theorem.** Rounds go on until one needs an entry that the log does not have, or that nobody saw.
With H, the readable nodes and the stakes from fold 1, `bets.limits_of` gives P(L > Δ) ≤ δ: the
rounds on infinite stacks are such a series as it needs, and the log has some first ones of them,
however many. It holds given fold 1, for any logger and any number of states; no union over nodes is
taken. Policies may be rolled out in pairs or in turn, and several series with other random numbers
may be made, as in `certificates.stitched`. ∎

**Returns of practice.** The returns of the episodes of the part that judges show what π_b is worth
without rolling it out, and without knowing it (`certificates.practice`). L is then L_I − U: L_I by
rounds of π_I alone, U by a bet on these returns, each with its own part of δ (a union bound). Where
π_b is an estimate, only such an L is a proof: it is taken wherever fold 1 expects it above 0.

**Robust tails** (where the states can be listed). On an event of probability 1 − δ′ a robust set of
nodes from *all* of the log contains their laws (`certificates.node_tables`). Then the least value
of π_I and the greatest of π_b in the state where H steps are over bound what is left there, and
with L at the level δ − δ′ the argument of `certificates.stitched` holds. In the middle of a step
something was drawn already: what is left there is bounded by `rest_bounds` as before. Whether there
are such tails is decided by fold 1, with its own set for as many counts as the whole log has.

A flat model is the special case of one column whose nodes are the pairs; its rounds are then those
of `certificates.stitched` to the last bit (a test holds both against each other).

What is *not* valid: to read an entry twice in a rollout, or in two rounds; to leave out entries for
what came of them; a structure that was chosen on the part that judges; a draw that is only partly
seen and filled in by a guess; anything that is not valid there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
import surestep.certificates.common as common
from surestep._settings import Delta
from surestep.certificates.bets import (
    CERTIFYING,
    MOST_ROUNDS,
    PLANNING,
    PLANNING_SEED,
    BetPlan,
    Fold,
    best_plans,
    limits_of,
)
from surestep.certificates.episodes import split_of
from surestep.certificates.node_law import (
    LONGEST,
    node_stacks,
    strides_of,
    structure_statements,
)
from surestep.certificates.node_tables import node_tails
from surestep.certificates.stacks import Tallies, Way, tallies_of
from surestep.certificates.stitched import (
    FEWEST,
    Planning,
    check_rounds,
    figures_of,
    levels_of,
)
from surestep.certificates.uncertainty import SMALLEST_LEVEL
from surestep.errors import InvalidParameter
from surestep.kernels.nodes import (
    UNKNOWN,
    UNREADABLE,
    NodeCourse,
    NodeStacks,
    Rules,
    Sums,
    World,
    node_rounds,
    room_for_nodes,
)
from surestep.kernels.stitched import FOREVER, Tallied, coupled_chances
from surestep.model import Certificate, ColumnRules, FactoredProblem, Policy, Statement
from surestep.model.known import Logger
from surestep.model.statements import Scalar
from surestep.offpolicy.split import split_episodes

PLANNED_DRAWS = 400_000  # of columns, in which fold 1 may try a way, over all runs
CLEARLY = 0.1  # of the range of returns: what rollouts in turn must promise more than paired ones
MOST_PLANNING_RUNS = 64
NEGLIGIBLE = 1e-6  # the discount after which a rollout is cut that no other horizon cuts


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStitched(common.WithRanges):
    """A lower bound on the gain of a policy, over rollouts stitched from the entries of nodes.

    Parameters
    ----------
    delta : float, default 0.1
        The chance δ that the claim is wrong.
    train_share : float, default 0.3
        The share of the episodes that may have chosen the policy.
    logger : {"adaptive", "fixed"}
        "fixed": the logger acted in all episodes alike, and the share is drawn by `seed`.
        "adaptive": it may have learnt on the way, and the share is the first part of the log.
    seed : int, default 0
        Of rollouts, and of that share.
    series : int, default 1
        The number of series of rounds over the part that judges.
    one_of : int, default 1
        Of so many series, one has to reach a capital of as many times 1/δ. A single series needs no
        such factor: it proves more where the range of returns is large, and owes more to the seed.
    practice : float, default 0.3
        The share of δ that a bound on the returns of the part that judges takes, where π_b is not
        known, or where the other part expects more of comparing with them; 0: never.
    tails : float, default 0.2
        The share of δ for a robust set of nodes that bounds what is left where rollouts are cut, in
        worlds of few states and where the other part expects more of it; 0: never.

    Notes
    -----
    `surestep.certificates.nodes` has the proof.

    Examples
    --------
    >>> from surestep.certificates import NodeStitched
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> world = SysAdmin(4)
    >>> problem = world.problem(world.sample(world.first_failed(0.3), 1000, rng=1), 0.3)
    >>> claim = NodeStitched().certify(problem, world.fewest_failed_neighbours())
    >>> str(claim.standing), claim.lower > 0
    ('proved', True)
    """

    delta: Delta = 0.1
    train_share: common.Share = 0.3
    logger: Logger = "adaptive"
    seed: common.Seed = 0
    series: Annotated[int, Meta(ge=1, le=100_000)] = 1
    one_of: Annotated[int, Meta(ge=1, le=100_000)] = 1
    practice: common.Share = 0.3
    tails: common.Share = 0.2

    name: ClassVar = "stitched-nodes"

    def parts(self, problem: FactoredProblem) -> tuple[FactoredProblem, FactoredProblem]:
        """Splits a problem into the part that may choose, and the part that judges.

        Parameters
        ----------
        problem : FactoredProblem
            The whole log.

        Returns
        -------
        tuple of FactoredProblem
            Both parts.

        Raises
        ------
        CertificateRefused
            A part has too few episodes.
        """
        first, second = split_episodes(problem.log, *split_of(self))
        train, test = (0 if part is None else part.num_episodes for part in (first, second))
        if first is None or second is None or min(train, test) < FEWEST["episodes"]:
            raise common.refused(
                "too-few-episodes",
                what="episodes",
                whole=train + test,
                train=train,
                test=test,
                least=FEWEST["episodes"],
            )
        return replace(problem, log=first), replace(problem, log=second)

    def expected(
        self,
        training: FactoredProblem,
        policies: Sequence[ColumnRules | Policy],
        tails: arrays.FloatArray | None = None,
    ) -> list[BetPlan]:
        """Returns the bet that a training part plans for each policy, with the L that it expects.

        Parameters
        ----------
        training : FactoredProblem
            The part that may choose.
        policies : sequence of ColumnRules or Policy
            The candidates.
        tails : array of float [2, S], optional
            What may be left where rollouts of the one policy are cut after some steps.

        Returns
        -------
        list of BetPlan
            The bets; `score` is the L that is expected. It is no claim.
        """
        if training.behavior is None and not self.practice:
            raise InvalidParameter("practice is 0, but the behavior policy is not known")
        stacks = node_stacks(training.log)
        returns = paid_node_returns(training) if self.practice else None
        planning = [
            Planning(
                self,
                stacks,
                node_course(training, policy),
                (1 - self.train_share) / self.train_share,
                None if tails is None else tails.ravel(),
                returns=returns,
            )
            for policy in policies
        ]
        # Against rollouts of π_b where it is known, and against its returns.
        folds = [
            [
                fold._replace(one_of=self.one_of)
                for fold in one.folds()
                if training.behavior is not None or fold.alone
            ]
            for one in planning
        ]
        draws = max(training.log.num_steps * training.structure.target.size, 1)
        runs = int(np.clip(PLANNED_DRAWS // draws, 1, MOST_PLANNING_RUNS))
        plans = best_plans(folds, runs, tally_nodes, clearly=CLEARLY)
        if not (is_estimated(training) and self.practice):
            return plans
        # Only returns of practice can prove a gain over what was done.
        by_returns = [[fold for fold in several if fold.baseline is not None] for several in folds]
        proofs = best_plans(by_returns, runs, tally_nodes, clearly=CLEARLY)
        return [
            proof if proof.score > 0 else plan for proof, plan in zip(proofs, plans, strict=True)
        ]

    def certify(self, problem: FactoredProblem, policy: ColumnRules | Policy) -> Certificate:
        """Returns L by rounds on the part that judges, as the other part planned them.

        Parameters
        ----------
        problem : FactoredProblem
            The whole log.
        policy : ColumnRules or Policy
            The new policy, chosen without the part that judges.

        Returns
        -------
        Certificate
            The claim.

        Raises
        ------
        CertificateRefused
            A part has too few episodes, or δ is too small.
        """
        common.check_delta(self.delta, "a bet", SMALLEST_LEVEL)
        first, second = self.parts(problem)
        share = self.tails * self.delta
        grown = problem.log.num_episodes / first.log.num_episodes
        (plan,) = self.expected(first, [policy], node_tails(first, policy, share, grown))
        stacks = node_stacks(second.log)
        tails = node_tails(problem, policy, share) if plan.fold.robust else None
        course = node_course(second, policy, tails)
        world = world_of(stacks, course, plan.fold.stacks, self.seed)
        rounds = roll_out_nodes(world, [plan.way], CERTIFYING, self.series, keep=True)
        check_rounds(plan.way, rounds, world.course)
        (lower,) = limits_of([plan.bet(rounds, None)])
        low, high = problem.return_bounds
        figures = figures_of(plan.way, rounds)
        compared: dict[str, Scalar] = {}
        if plan.fold.baseline is not None:
            returns = paid_node_returns(second)
            _, level = levels_of(self, robust=plan.fold.robust, returns=True)
            upper = min(plan.fold.baseline.upper(returns, returns.size, level), high)
            rolled = figures["estimate"]
            gain = rolled - float(returns.mean()) if isinstance(rolled, float) else None
            compared = {"estimate": gain, "policy_lower": lower, "practice_upper": upper}
            lower -= upper
        believed = problem.structure.learnt or (is_estimated(problem) and not compared)
        return Certificate(
            kind=self.name,
            standing="believed" if believed else "proved",
            lower=max(lower, low - high),
            delta=self.delta,
            span=high - low,
            assumptions=self.assumptions(problem, by_returns=bool(compared)),
            parameters={name: getattr(self, name) for name in self.__dataclass_fields__},
            figures={
                "episodes": second.log.num_episodes,
                "training_episodes": first.log.num_episodes,
                "steps": second.log.num_steps,
                "training_steps": first.log.num_steps,
                "nodes": int((problem.structure.known < 0).sum()),
                "nodes_seen": int((arrays.run_lengths(stacks.offsets) > 0).sum()),
                "robust_tails": plan.fold.robust,
                "expected": plan.score,
                "return_low": low,
                "return_high": high,
                **figures,
                **compared,
            },
        )

    def assumptions(
        self, problem: FactoredProblem, *, by_returns: bool = False
    ) -> tuple[Statement, ...]:
        """Returns the assumptions of a claim.

        Parameters
        ----------
        problem : FactoredProblem
            The whole log.
        by_returns : bool, default False
            The claim compares with returns of practice.

        Returns
        -------
        tuple of Statement
            They are those of the proof.
        """
        low, high = problem.return_bounds
        least, most = problem.rest_bounds
        learnt = "logger-never-learnt" if self.logger == "fixed" else "order-of-decisions"
        return (
            *structure_statements(problem.structure),
            *problem.premises,
            Statement("no-hidden-causes"),
            *((Statement("practice-as-recorded"),) if by_returns else problem.about_behavior),
            Statement(
                "chosen-from-part", dict(zip(("share", "seed"), split_of(self), strict=True))
            ),
            Statement(learnt),
            Statement("nothing-left-out"),
            Statement("starts-unchosen" if problem.start is None else "start-known"),
            Statement("returns-bounded", {"low": low, "high": high}),
            Statement("rest-bounded", {"low": least, "high": most}),
            Statement("seed-fixed"),
        )


def is_estimated(problem: FactoredProblem) -> bool:
    """Tells whether π_b is an estimate: nothing asks whether it describes the part that judges."""
    return any(said.code == "behavior-estimated-apart" for said in problem.about_behavior)


def paid_node_returns(problem: FactoredProblem) -> arrays.FloatArray:
    """Returns each episode's return, plus the most that may follow if a clock cut it.

    These are the returns Y of `certificates.practice`: at most the greatest return, and equal to it
    if the outcome of the last step is unknown.
    """
    log = problem.log
    last = log.offsets[1:] - 1
    steps = arrays.run_lengths(log.offsets)
    over = log.ended[last] | (steps >= (problem.horizon or math.inf))
    paid = log.returns(problem.discount, problem.horizon)
    left = paid + problem.discount**steps * problem.rest_bounds[1]
    lost = ~log.ended[last] & (log.next_state[last] < 0).all(axis=1)
    high = problem.return_bounds[1]
    return np.where(lost, high, np.where(over, paid, np.minimum(left, high)))


def rules_of(policy: ColumnRules) -> Rules:
    """Returns the arrays of rules that kernels read: the first rule for all values at once."""
    return Rules(
        policy.slots.ravel(),
        strides_of(policy.sizes),
        policy.first(),
        policy.taken.ravel(),
        policy.chance,
        policy.cumulated.ravel(),
        policy.edge,
    )


def sums_of(sums: Any) -> Sums:
    """Returns the arrays of sums of the model that kernels read."""
    return Sums(sums.first, sums.offsets, sums.place, sums.stride, sums.part)


def node_course(
    problem: FactoredProblem,
    policy: ColumnRules | Policy,
    tails: arrays.FloatArray | None = None,
) -> NodeCourse:
    """Returns the course of π_I and π_b: both rules, or both tables over all states.

    A state of a table is the number whose digits are the columns, the last one counting least.
    `tails` [2, S] bound what is left where rollouts are cut after some steps.
    """
    structure = problem.structure
    empty = np.zeros(0, np.int64)
    none = Rules(empty, empty, empty, empty, np.zeros(0), np.zeros(0), 0)
    # Where π_b is not known, its rounds are those of π_I, and no bet is on them.
    behavior = policy if problem.behavior is None else problem.behavior
    ours, theirs = none, none
    chances = np.zeros(0)
    if isinstance(policy, ColumnRules) and isinstance(behavior, ColumnRules):
        ours, theirs = rules_of(policy), rules_of(behavior)
    elif isinstance(policy, Policy) and isinstance(behavior, Policy):
        chances = np.empty(4 * policy.pairs.num_pairs)
        both = policy.probability, behavior.probability
        coupled_chances(policy.pairs.offsets, *both, chances)
    else:
        raise InvalidParameter("one policy is a table and the other one rules, expected both alike")
    return NodeCourse(
        sums_of(structure.nodes),
        structure.target,
        sums_of(structure.rewards),
        structure.worth,
        structure.num_actions,
        structure.known,
        ours,
        theirs,
        chances,
        strides_of(structure.sizes),
        empty if problem.start is None else np.array(problem.start, np.int64),
        float(problem.discount),
        problem.return_bounds,
        problem.rest_bounds,
        np.zeros(0) if tails is None else tails.ravel(),
        FOREVER if problem.horizon is None else problem.horizon,
    )


def world_of(stacks: NodeStacks, course: NodeCourse, first: NodeStacks, seed: int) -> World:
    """Returns a course on stacks; only nodes that the `first` fold saw are read.

    A run ends with the last start of the log, or after `MOST_ROUNDS`.
    """
    starts = stacks.starts.size // course.strides.size
    most = stacks.entry.size if course.start.size else starts
    unseen = (course.known == UNKNOWN) & (arrays.run_lengths(first.offsets) == 0)
    known = np.where(unseen, UNREADABLE, course.known)
    return World(stacks, course._replace(known=known), seed, min(most, MOST_ROUNDS))


def roll_out_nodes(
    world: World, ways: Sequence[Way], purpose: int, runs: int, *, keep: bool
) -> Tallied:
    """Rolls out a world in several ways, the runs of each one after the other."""
    number = len(ways) * runs
    tallied = Tallied.empty(number, world.rounds if keep else 1)
    turns = np.array([way.who for way in ways])
    # A rollout through nodes that are known reads nothing, and might never end.
    course = world.course
    lasting = (
        math.log(NEGLIGIBLE) / math.log(course.discount) if 0 < course.discount < 1 else math.inf
    )
    longest = int(min(lasting, LONGEST))
    steps = np.array([longest if most is None else most for way in ways for most in way[1:]])
    states = course.chances.size // (4 * course.num_actions)
    room = room_for_nodes(course.known.size, states, course.strides.size)
    node_rounds.all(number, room, purpose, runs, turns, steps, world, tallied)
    return tallied


def tally_nodes(folds: Sequence[Fold], ways: Sequence[Sequence[Way]], runs: int) -> Tallies:
    """Adds up the rounds of folds with stacks of nodes."""
    parts = []
    for (stacks, course, *_), several in zip(folds, ways, strict=True):
        world = world_of(stacks, course, stacks, PLANNING_SEED)
        tallied = roll_out_nodes(world, several, PLANNING, runs, keep=False)
        parts.append(tallies_of(tallied, np.array([[way.who for way in several]]), runs))
    return Tallies(*(np.concatenate(figures) for figures in zip(*parts, strict=True)))
