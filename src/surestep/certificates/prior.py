"""Priors of rows and starts: the weight of each state that a pair may lead to; laws of rewards.

Where the problem says which successors a pair may have, its weight is spread over these, and it may
have weights of the user's own. Otherwise a pair may lead to every known state.

No single prior is right everywhere:

- "weight" shares the weight evenly. Among hundreds of states, the ends of episodes and the states
  that the log really visits get next to nothing. Rare actions then seem to lead on for longer than
  they do, and a policy that takes them seems to gain.
- "pooled" takes an action for the mean of all actions in its state, so that nothing can be gained
  where little is known. But a rare action may be rare because it is dangerous, and a policy that
  goes to states with such actions seems to gain.

Both send all unknown transitions to much the same states, and draws of many rows average out. Where
those states are good for the new policy, both are sure of a gain that nobody saw. So "cautious"
makes three claims: under both, and under a prior that is against the policy (`adverse_questions`).
Its own claim is the smallest of them.

Rewards are known, or seen, or drawn from the laws of those that were seen.
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.certificates.common import refused, statement_if, support_statements
from surestep.certificates.drawn import DrawnQuestion, ModelDraws
from surestep.certificates.episodes import with_ends
from surestep.certificates.refuting import SAME, check_reward_bounds, check_values
from surestep.kernels.posterior import FIRST, LOW, REACH, SECOND, WEIGHT, RewardDraws, Rows
from surestep.model import Counts, FiniteMDP, Pairs, Policy, Statement, Successors, estimate_mdp
from surestep.model.known import Ranges
from surestep.model.problem import Problem, stopped
from surestep.planning.ends import steps_towards
from surestep.planning.evaluation import evaluate, occupancy

PriorName = Literal["cautious", "weight", "pooled", "uniform", "jeffreys", "own"]
RewardModel = Literal["deterministic", "bounded"]
OF_A_WEIGHT = ("cautious", "weight", "pooled", "own")  # priors whose weight is for the user to say
FIXED_ALPHA = {"uniform": 1.0, "jeffreys": 0.5}
# The total of a row under the third prior; chosen on Resource Gathering and Wet Chicken, after 0.5,
# 1 and 2, which claim less.
ADVERSE = 0.2
NEARLY_ONE = 0.9999  # the largest discount of the mean model, which need not end
ALIKE = 9  # digits: numbers that agree in them are the same
LEAST_OTHERS, MOST_OTHERS = 1.0, 100.0  # visits that the others of a group may weigh
SHOWN = 5.0  # unusual rewards that noise would have shown on average: none comes once in 150 times


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """The priors of all rows, and of the starts."""

    rows: tuple[Rows, ...]  # "cautious" has two
    alpha: float | None  # of a successor, where it is the same for all
    total: float | None  # of a row, where it is the same for all
    start_alpha: float  # of a start
    startable: arrays.BoolArray  # [S]


def prior_statements(problem: Problem, name: PriorName, prior: Prior) -> tuple[Statement, ...]:
    """Returns the assumptions about rows; under "cautious", that one of its priors is right."""
    states = problem.num_states if problem.support is None else None
    pooled = name in ("cautious", "pooled")  # which leaves no exact posterior
    return (
        Statement(
            "rows-prior",
            {"prior": name, "states": states, "alpha": prior.alpha, "weight": prior.total},
        ),
        *support_statements(problem),
        *statement_if(pooled, "prior-read-off", prior=name),
        *statement_if(name == "cautious", "prior-against-policy", weight=ADVERSE),
    )


def prior_of(problem: Problem, name: PriorName, weight: float) -> Prior:
    """Returns the prior of that name; `weight` is the total of a row, unless the prior fixes it.

    "cautious" has the rows of two priors, and the weights of the first; its third one depends on
    the policy. Under "uniform" and "jeffreys" each start has the weight of a state of a row; under
    the other priors all starts share `weight` evenly.
    """
    support, size = problem.support, problem.num_states
    # An episode starts in no state where it is over, unless one did.
    allowed = ~problem.counts.terminal | (problem.counts.starts > 0)
    if name == "own" and (support is None or support.weight is None):
        raise refused("no-successor-weights")
    fixed = FIXED_ALPHA.get(name)
    alpha = fixed
    total = None if name == "own" or fixed is not None else weight
    if support is None:  # about all states
        total = weight if fixed is None else fixed * size
        alpha = None if name == "pooled" else total / size
    names: tuple[PriorName, ...] = ("weight", "pooled") if name == "cautious" else (name,)
    return Prior(
        rows=tuple(rows_of(problem, single, weight) for single in names),
        alpha=alpha,
        total=total,
        start_alpha=weight / int(allowed.sum()) if fixed is None else fixed,
        startable=allowed,
    )


def rows_of(problem: Problem, name: PriorName, weight: float) -> Rows:
    """Returns the law of all rows under one prior.

    Unsafe states end an episode that counts the chance to reach them, so they have no rows; but
    they may be starts.
    """
    counts = stopped(problem).counts
    support = problem.support
    nothing = np.zeros(0)
    if support is not None:
        steps = (support.offsets, support.successor, support.times(counts))
        given = weights_of(support, counts, name, weight)
        laws: tuple[arrays.FloatArray, ...] = (given, np.zeros(1), nothing, nothing)
    else:
        steps = (counts.offsets, counts.successor, counts.times)
        size = problem.num_states
        total = FIXED_ALPHA[name] * size if name in FIXED_ALPHA else weight
        pooled: arrays.FloatArray = np.zeros(counts.pairs.num_pairs)
        elsewhere: arrays.FloatArray = np.arange(1, size + 1) / size
        if name == "pooled":
            pooled, every = base_of(counts, weight)
            elsewhere = np.cumsum(every)
        laws = (nothing, np.array([total]), pooled, elsewhere)
    return Rows(*steps, np.cumsum(steps[2], dtype=np.float64), *laws)


def base_of(counts: Counts, weight: float) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns the parts of a pooled prior: n(s,·) / (n(s,·) + c) of each pair [K], and g [S].

    Its rows have the prior c · m, where a pair does what pairs of its state do:
    m(s'|s,a) = (n(s,·,s') + c g(s')) / (n(s,·) + c), g(s') = (n(·,·,s') + c/|S|) / (n + c), where n
    counts steps: each is the mean of a Dirichlet posterior whose prior has the weight c. A pair's
    own steps count in both. Without them, two actions that were seen less than c times would each
    get the outcomes of the other one, and the better would look worse.
    """
    pairs = counts.pairs
    visits = arrays.run_sums(counts.visits, pairs.offsets)
    into = np.bincount(counts.successor, counts.times, pairs.num_states)
    every = (into + weight / pairs.num_states) / (into.sum() + weight)
    return (visits / (visits + weight))[pairs.state], every


def weights_of(
    support: Successors, counts: Counts, name: PriorName, weight: float
) -> arrays.FloatArray:
    """Returns the weight of each given successor [T']."""
    owner = arrays.run_owners(support.offsets)
    if name == "own" and support.weight is not None:
        return support.weight
    if name in FIXED_ALPHA:
        return np.full(support.successor.size, FIXED_ALPHA[name])
    if name != "pooled":
        return weight / support.sizes[owner]
    pairs = counts.pairs
    size = np.int64(counts.pairs.num_states)
    step = pairs.state[arrays.run_owners(counts.offsets)] * size + counts.successor
    given, place = np.unique(pairs.state[owner] * size + support.successor, return_inverse=True)
    pooled, elsewhere = base_of(counts, weight)
    visits = np.maximum(arrays.run_sums(counts.visits, pairs.offsets), 1)[pairs.state[owner]]
    times = np.bincount(np.searchsorted(given, step), counts.times, given.size)[place]
    share = pooled[owner] * times / visits + (1 - pooled[owner]) * elsewhere[support.successor]
    return weight * share / arrays.run_sums(share, support.offsets)[owner]


# ---- the third prior of the cautious ------------------------------------------------------------


def adverse_questions(question: DrawnQuestion) -> list[tuple[DrawnQuestion, list[int]]]:
    """Returns questions under priors that are against the policies, each with its policies' places.

    A little weight of each row leads to the one state, of those that its pair may lead to, in which
    the policy gains the least over π_b in the mean model. At discount 1 it is one from which both
    end along steps that were seen, so that they end in every drawn model too, unless only some
    steps count. Where the ends of ranges of rewards have a weight, one pair earns the worst of its
    range; see `worst_pair`. A policy that is judged alone gains what it is worth itself.
    """
    models, behavior, policies = question
    mdp = mean_model(models)
    extreme = models.extreme if models.rewards.least.size > 0 else 0.0
    values, ends, taken = [], [], []
    for chances in question.everyone:
        policy = Policy(mdp.pairs, np.append(chances, 1.0))
        values.append(evaluate(mdp, policy)[: models.counts.pairs.num_states])
        ends.append(ending_states(models, chances))
        taken.append(occupancy(mdp, policy)[:-1] if extreme > 0 else np.zeros(0))
    alike: dict[bytes, tuple[ModelDraws, list[int]]] = {}
    for place, chances in enumerate(policies):
        gain = rounded(values[1 + place] - (0.0 if models.alone else values[0]))
        gain[~(ends[0] & ends[1 + place])] = np.inf
        if (models.alone or (chances != behavior).any()) and np.isfinite(gain.min()):
            rows = adverse_rows(models.rows[0], gain)
            more: arrays.FloatArray = np.zeros(0)
            if extreme > 0:
                more = extreme * worst_pair(models, mdp, taken[1 + place] - taken[0])
            key = b"".join(part.tobytes() for part in (rows.given, rows.elsewhere, more))
            against = replace(models, rows=(rows,), rewards=models.rewards._replace(more=more))
            alike.setdefault(key, (against, []))[1].append(place)
    return [
        (DrawnQuestion(against, behavior, policies[places]), places)
        for against, places in alike.values()
    ]


def worst_pair(
    models: ModelDraws, mdp: FiniteMDP, more_often: arrays.FloatArray
) -> arrays.FloatArray:
    """Returns −1 or 1 [K] at the pair whose least or greatest reward would take most of the gain.

    With d for how much more often the policy takes a pair than π_b does, its least (d > 0) or
    greatest (d < 0) reward in one more visit of n costs a = |d| · reach / n. Suppose that λ such
    rewards were to be expected in the data, in any pairs. None of them came with a chance of e^−λ,
    and they cost at most λ · max a. So one pair, that of the largest a, stands for all.
    """
    visits = arrays.run_sums(models.rows[0].times, models.rows[0].offsets)
    worst = np.where(
        more_often > 0,
        *(
            arrays.run_sums(
                mdp.probability * np.append(end, end.mean())[mdp.successor], mdp.offsets
            )[:-1]
            for end in (models.rewards.least, models.rewards.greatest)
        ),
    )
    cost = more_often * (mdp.expected_reward[:-1] - worst) / np.maximum(visits, 1)
    place = int(np.argmax(rounded(np.where(visits > 0, cost, 0.0))))
    side = np.zeros(visits.size)
    side[place] = -np.sign(more_often[place])
    return side


def rounded(values: arrays.FloatArray) -> arrays.FloatArray:
    """Returns values relative to the largest, without the digits that rounding may have made."""
    return np.round(values / (np.abs(values).max(initial=0.0) or 1.0), ALIKE)


def adverse_rows(rows: Rows, gain: arrays.FloatArray) -> Rows:
    """Returns rows with a little prior weight, all of it on the state with the least gain [S].

    Where the gain is ∞ at all given successors of a row, they share the weight evenly.
    """
    if rows.given.size == 0:
        there = (np.arange(gain.size) >= np.argmin(gain)).astype(np.float64)
        return rows._replace(
            weight=np.array([ADVERSE]), pooled=np.zeros_like(rows.pooled), elsewhere=there
        )
    lengths = arrays.run_lengths(rows.offsets)
    filled = lengths > 0
    here = gain[rows.successor]
    first = np.lexsort((here, arrays.run_owners(rows.offsets)))[rows.offsets[:-1][filled]]
    shared = np.where(np.isinf(here[first]), ADVERSE / lengths[filled], 0.0)
    given = np.repeat(shared, lengths[filled])
    given[first[shared == 0]] = ADVERSE
    return rows._replace(given=given)


def ending_states(models: ModelDraws, policy: arrays.FloatArray) -> arrays.BoolArray:
    """Returns the states [S] from which a policy [K] may end along steps that were seen.

    With a discount below 1, or where only some steps count, these are all.
    """
    counts = models.counts
    if models.discount < 1 or models.horizon is not None:
        return np.ones(counts.pairs.num_states, np.bool_)
    seen = estimate_mdp(counts, models.discount)
    may_end: arrays.BoolArray = steps_towards(seen, policy > 0, counts.terminal) >= 0
    return may_end | counts.terminal


def mean_model(models: ModelDraws) -> FiniteMDP:
    """Returns the mean of the models drawn under the first prior.

    A prior over all states would fill every row. So its weight leads to one more state, the last,
    and from there at once to each state alike. Rewards are observed means; a reward that was never
    observed is the mean of the others. Where only N steps count, a discount of N/(N + 1) takes
    their place: the number of steps that are left is then N on average.
    """
    counts = models.counts
    rows = models.rows[0]
    rewards = models.rewards
    pairs = counts.pairs
    size = counts.pairs.num_states
    num_pairs = counts.pairs.num_pairs
    goes_on = ~counts.terminal[pairs.state]
    owner = arrays.run_owners(rows.offsets)
    weight = rows.times + (rows.given if rows.given.size > 0 else 0.0)
    total = arrays.run_sums(weight, rows.offsets) + rows.weight
    chance = weight / np.where(goes_on, total, 1.0)[owner]
    anywhere = np.where(goes_on, rows.weight / np.where(goes_on, total, 1.0), 0.0)
    steps = models.horizon
    typical = 0.0
    discount = models.discount if steps is None else steps / (steps + 1)
    if rewards.atoms.size > 0:
        typical = float(np.average(means_of(rewards.atoms), weights=rewards.atoms[:, WEIGHT]))
    earned = np.nan_to_num(means_of(rewards.seen), nan=typical)
    if not rewards.per_pair:
        share = chance + (anywhere / size)[owner]
        earned = typical + arrays.run_sums(share * (earned - typical), rows.offsets)
    last = rows.offsets[1:][goes_on]
    pair = np.insert(owner, last, np.flatnonzero(goes_on))
    kept = goes_on[pair]
    pair = np.append(pair[kept], np.full(size, num_pairs))
    return FiniteMDP(
        Pairs(
            np.append(pairs.offsets, num_pairs + 1), np.append(pairs.action, 0), pairs.num_actions
        ),
        arrays.offsets_of(np.bincount(pair, minlength=num_pairs + 1)),
        np.append(np.insert(rows.successor, last, size)[kept], np.arange(size)),
        np.append(np.insert(chance, last, anywhere[goes_on])[kept], np.full(size, 1 / size)),
        np.append(earned, 0.0)[pair],
        np.append(np.full(num_pairs, min(discount, NEARLY_ONE)), 1.0),
        np.append(counts.starts / counts.starts.sum(), 0.0),
        np.append(np.where(goes_on, 0.0, counts.unseen_reward()), 0.0),
    )


def means_of(rewards: arrays.FloatArray) -> arrays.FloatArray:
    """Returns the mean of each row of a table of rewards; NaN where nothing is known."""
    both = rewards[:, FIRST] + rewards[:, SECOND]
    share = np.divide(rewards[:, FIRST], both, out=np.zeros(len(rewards)), where=both > 0)
    return rewards[:, LOW] + rewards[:, REACH] * share


# ---- rewards ------------------------------------------------------------------------------------


def reward_draws(problem: Problem, model: RewardModel, ranges: Ranges | None) -> RewardDraws:
    """Checks that data and settings fit together; returns the rewards of drawn models."""
    check_values(problem)
    counts = problem.counts
    rewards = counts.rewards
    per_pair = rewards.per == "pair"
    bounds = () if ranges is None else ranges.rewards
    if all_known(problem):
        earned = rewards.values
        if per_pair:  # known ends of episodes have no row
            earned = np.where(counts.terminal[counts.pairs.state], np.nan, earned)
        return RewardDraws.known(earned, per_pair, counts.pairs.num_pairs)
    if bounds and not rewards.known:
        check_reward_bounds(counts, bounds)
    if model == "deterministic" and not rewards.known:
        check_deterministic(problem)
    mean = counts.means()
    observed = (counts.observed > 0) | rewards.known
    if not observed.any() and not bounds:
        raise refused("no-reward-observed")
    seen = np.zeros((mean.size, 5))
    seen[:, LOW] = np.where(observed, mean, np.nan)
    kin = kin_of(counts, mean, observed)
    others = 0.0
    if model == "bounded" and not rewards.known:
        others = add_noise(problem, seen, observed, kin, bounds)
    atoms = atoms_of(seen[observed], kin.of_seen[observed], kin.number, others, bounds)
    draws = RewardDraws(per_pair, kin.of_pair, seen, *atoms, np.array([others]))
    if ranges is None or rewards.known:
        return draws
    least, greatest = (np.where(counts.terminal, end, on) for on, end in zip(*ranges, strict=True))
    return draws._replace(least=least, greatest=greatest)


class Kin(NamedTuple):
    """Groups of rewards that are likely to be alike."""

    of_pair: arrays.IntArray  # [K]; −1 where transitions to the same state are of one group
    of_seen: arrays.IntArray  # [K] or [T]
    number: int  # of groups


def kin_of(counts: Counts, mean: arrays.FloatArray, observed: arrays.BoolArray) -> Kin:
    """Returns the grouping in which the observed means predict each other best.

    Transitions are grouped by successor, by pair, or all together; pairs by state, by action, or
    all together. The prediction of a mean is the average of the others in its group, to which the
    mean of all others is added as one more.
    """
    pairs = counts.pairs
    together = Kin(np.zeros(pairs.num_pairs, np.int64), np.zeros(mean.size, np.int64), 1)
    if counts.rewards.per == "pair":
        state, action = pairs.state.astype(np.int64), pairs.action.astype(np.int64)
        candidates = [
            Kin(state, state, pairs.num_states),
            Kin(action, action, pairs.num_actions),
        ]
    else:
        pair, successor = arrays.run_owners(counts.offsets), counts.successor.astype(np.int64)
        candidates = [
            Kin(np.full(pairs.num_pairs, -1), successor, pairs.num_states),
            Kin(np.arange(pairs.num_pairs), pair, pairs.num_pairs),
        ]
    seen = mean[observed] / largest_of(mean[observed])  # squares stay finite
    rest = (seen.sum() - seen) / max(seen.size - 1, 1)

    def error(kin: Kin) -> float:
        group = kin.of_seen[observed]
        sums = np.bincount(group, seen, kin.number)[group]
        return float(np.sum((seen - (sums - seen + rest) / np.bincount(group)[group]) ** 2))

    return min([*candidates, together], key=error)


def add_noise(
    problem: Problem,
    seen: arrays.FloatArray,
    observed: arrays.BoolArray,
    kin: Kin,
    bounds: tuple[float, ...],
) -> float:
    """Writes the laws of mean rewards, which are noisy, into `seen`; returns the weight of others.

    Among all n rewards between least and greatest with a given mean, those vary most that are only
    at the two ends: x n times the greatest, (1 − x) n times the least. Their Bayesian bootstrap has
    the mean least + (greatest − least) · Beta(x n, (1 − x) n).
    """
    counts = with_ends(problem)
    visits = counts.observed
    least, greatest = counts.observed_rewards()
    if counts.rewards.least is None:
        least, greatest = (np.full(least.size, end) for end in bounds)
    mean = seen[:, LOW].copy()
    reach = greatest - least
    varied = observed & (reach > SAME * largest_of(least, greatest))
    share = np.zeros(mean.size)
    share[varied] = np.clip((mean[varied] - least[varied]) / reach[varied], 0.0, 1.0)
    noisy = observed & ~calm_groups(kin, visits, np.minimum(share, 1 - share))[kin.of_seen]
    between = noisy & (share > 0) & (share < 1)
    seen[noisy, WEIGHT] = visits[noisy]
    seen[between, LOW], seen[between, REACH] = least[between], reach[between]
    seen[between, FIRST] = (share * visits)[between]
    seen[between, SECOND] = ((1 - share) * visits)[between]
    unit = largest_of(least, greatest)  # squares stay finite
    spread = (share * (1 - share) * (reach / unit) ** 2)[noisy]
    return weight_of_others(mean[noisy] / unit, spread, visits[noisy], kin.of_seen[noisy])


def weight_of_others(
    mean: arrays.FloatArray,
    spread: arrays.FloatArray,
    visits: arrays.IntArray,
    group: arrays.IntArray,
) -> float:
    """Returns κ = σ²/τ²: so many visits tell as much about a mean as the others of its group.

    σ² is the variance of single rewards, τ² that of the true means in a group, by the moments of a
    one-way layout: Σ n (m − M)² has the mean (T − G) σ² + Σ_g (N_g − Σ n²/N_g) τ², where M is the
    mean of the group, and N_g its visits.
    """
    total = np.bincount(group, visits)
    present = total > 0
    center = np.bincount(group, visits * mean) / np.maximum(total, 1)
    between = float(visits @ (mean - center[group]) ** 2)
    free = mean.size - int(present.sum())
    within = float(visits @ spread) / max(float((visits - 1).sum()), 1.0)
    squares = np.bincount(group, visits.astype(np.float64) ** 2)
    reached = float((total - squares / np.maximum(total, 1)).sum())
    excess = between - free * within
    if not excess * MOST_OTHERS > within * reached:
        return MOST_OTHERS
    return max(LEAST_OTHERS, within * reached / excess)


def calm_groups(kin: Kin, visits: arrays.IntArray, minority: arrays.FloatArray) -> arrays.BoolArray:
    """Returns the groups [G] whose rewards never varied, although noise would have shown.

    `minority` is the share of visits with an unusual reward. At the rate of the groups that vary, a
    calm group should have shown at least `SHOWN` unusual rewards, and it showed none.
    """
    shown = np.bincount(kin.of_seen, visits, kin.number)
    unusual = np.bincount(kin.of_seen, visits * minority, kin.number)
    varied = unusual > 0
    rate = unusual.sum() / max(shown[varied].sum(), 1.0)
    calm: arrays.BoolArray = ~varied & (shown * rate >= SHOWN)
    return calm


def largest_of(*rewards: arrays.FloatArray) -> float:
    """Returns the largest magnitude of a reward, to compare rewards by; 1 where all are 0."""
    return max(float(np.abs(values).max(initial=0.0)) for values in rewards) or 1.0


def atoms_of(
    rows: arrays.FloatArray,
    group: arrays.IntArray,
    number: int,
    others: float,
    bounds: tuple[float, ...],
) -> tuple[arrays.IntArray, arrays.FloatArray]:
    """Returns the laws that unknown rewards are drawn from, by group; equal rows become one.

    A row has the weight n (1 + κ)/(n + κ): 1 for one visit, and 1 + κ where it is known. The two
    bounds, if given, belong to no group and have the weight of one visit together.
    """
    visits = np.where(rows[:, WEIGHT] > 0, rows[:, WEIGHT], np.inf)
    weight = (1 + others) / (1 + others / visits)
    keyed, place = np.unique(
        np.column_stack([group, rows[:, :WEIGHT]]), axis=0, return_inverse=True
    )
    atoms = np.column_stack([keyed[:, 1:], np.bincount(place.ravel(), weight, len(keyed))])
    ends = np.zeros((len(bounds), 5))
    ends[:, LOW], ends[:, WEIGHT] = bounds, 0.5
    owner = keyed[:, 0].astype(np.int64)
    return arrays.offsets_of(np.bincount(owner, minlength=number)), np.concatenate([atoms, ends])


def all_known(problem: Problem) -> bool:
    """Tells whether the reward of every transition that may come is known, seen or not."""
    counts = problem.counts
    if not counts.rewards.known or counts.rewards.per == "pair":
        return counts.rewards.known
    partial = problem.stored_sizes() < problem.support_sizes()
    return not partial[~counts.terminal[counts.pairs.state]].any()


def reward_statements(
    problem: Problem, model: RewardModel, ranges: Ranges | None, extreme: float
) -> tuple[Statement, ...]:
    """Returns the assumptions about rewards."""
    rewards = problem.counts.rewards
    if all_known(problem):
        return (Statement("rewards-known"),)
    per = {"per": rewards.per}
    if rewards.known:
        seen = Statement("rewards-given-known")
    elif model == "bounded":
        seen = Statement("rewards-bootstrapped", per)
    else:
        seen = Statement("rewards-never-vary", per)
    low, high = (None, None) if ranges is None else ranges.rewards
    return (
        seen,
        Statement("rewards-unseen-alike", per),
        *statement_if(ranges is not None, "reward-bounds-weighted", low=low, high=high),
        *statement_if(extreme > 0 and not rewards.known, "extremes-weighted", weight=extreme),
    )


def check_deterministic(problem: Problem) -> None:
    """Refuses counts, or a log, in which one transition (or pair) earned different rewards."""
    counts = with_ends(problem)
    least, greatest = counts.observed_rewards()
    vary = greatest - least > SAME * largest_of(least, greatest)
    for i, others in arrays.first_where(vary, counts.rewards.per):
        raise refused(
            "rewards-not-deterministic",
            what=counts.reward_name(i),
            least=least[i],
            most=greatest[i],
            others=others,
        )
