"""Where the a-priori bounds fail: four counterexamples, computed. docs/bounds.md explains them.

The first two look at a radius, the last two at a whole bound: in each of these a log is drawn from
a known MDP, SPIBB's policy is computed from the log alone, and what the bound says about it is held
against the truth.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc, betainc, betaincc

from surestep import Counts, FiniteMDP, Pairs, Policy, Problem, estimate_mdp, performance
from surestep.algorithms import SPIBB
from surestep.bounds import BOUNDS, ProblemSize, equivalent_n_wedge, zeta
from surestep.model import LoggedRewards

DELTA = 0.1
DISCOUNT, VALUE_BOUND = 0.5, 1.0  # of the last two counterexamples
EXPERIMENTS = (  # |S|, |A| and the N∧ of SPIBB in the paper's Figures 4 to 6
    ("Gridworld", 25, 4, (100, 200, 400)),
    ("Wet Chicken", 25, 5, (60, 120, 180)),
    ("Resource Gathering", 376, 4, (600, 800, 1000)),
)


# ---- a radius about a split is not about a row ------------------------------------------------


def row_errors(
    successors: int = 100, visits: int = 146, draws: int = 2000, seed: int = 1
) -> np.ndarray:
    """‖P̂ − P‖₁ of a row with equally likely successors, for each of the drawn data sets."""
    rng = np.random.default_rng(seed)
    times = rng.multinomial(visits, np.full(successors, 1 / successors), size=draws)
    return np.abs(times / visits - 1 / successors).sum(axis=1)


# ---- the interval of β is not centred at p̂ ----------------------------------------------------


def posterior_failure(visits: int, radius: float) -> float:
    """The largest P(2|p − k/N| > radius) over the outcomes k, for p ~ Beta(k+1, N−k+1)."""
    k = np.arange(visits + 1)
    a, b = k + 1, visits - k + 1
    below = betainc(a, b, np.maximum(k / visits - radius / 2, 0))
    above = betaincc(a, b, np.minimum(k / visits + radius / 2, 1))
    return float((below + above).max())


def frequentist_failure(visits: int, radius: float) -> float:
    """The supremum of P(2|p − K/N| > radius) over all p, for K ~ Binomial(N, p).

    Between two values of p at which an outcome begins or ceases to fail, the chance falls first and
    rises then, so it is largest just beside one of them. By symmetry it is enough to look just
    above p = k/N + radius/2, where k and all below it fail, and all above k + N·radius.
    """
    k = np.arange(visits + 1)
    p = k / visits + radius / 2
    k, p = k[p < 1], p[p < 1]
    far = np.minimum(np.floor(k + visits * radius), visits)
    return float((bdtr(k, visits, p) + bdtrc(far, visits, p)).max())


class SplitFailure(NamedTuple):
    """How often β's radius fails at one split, in the worst case, and what that adds up to."""

    experiment: str
    n_wedge: int  # N∧ of β
    posterior: float  # as a multiple of δ_T, the rate that the radius is built for
    frequentist: float  # the same
    all_pairs: float  # the frequentist rates of |S||A| pairs, added up, as a multiple of δ


def split_failures() -> list[SplitFailure]:
    """The failure rates of β's radius at the paper's own settings."""
    found = []
    for experiment, states, actions, settings in EXPERIMENTS:
        pairs = states * actions
        share = DELTA / pairs**2  # δ_T
        for given in settings:
            size = ProblemSize(states, actions, DELTA)
            n = equivalent_n_wedge(given, size, given="spibb", wanted="beta")
            radius = float(BOUNDS["beta"].radius(n, size))
            posterior, frequentist = posterior_failure(n, radius), frequentist_failure(n, radius)
            found.append(
                SplitFailure(
                    experiment,
                    n,
                    posterior / share,
                    frequentist / share,
                    frequentist * pairs / DELTA,
                )
            )
    return found


# ---- a bound against the truth ----------------------------------------------------------------


class Verdict(NamedTuple):
    """What a bound says about SPIBB's policy, and what is true of it."""

    gain: float  # ρ(π_I, M̃) − ρ(π_b, M̃), in the estimated MDP
    zeta: float  # the bound says ρ(π_I, M) − ρ(π_b, M) ≥ −ζ
    difference: float  # the true ρ(π_I, M) − ρ(π_b, M)

    @property
    def broken(self) -> bool:
        """Whether the truth is worse than the bound allows."""
        return self.difference < -self.zeta


def claimed(bound: str, n_wedge: int, size: tuple[int, int], gain: float) -> float:
    """ζ of the bound for a model of `size` = (|S|, |A|)."""
    states, actions = size
    whole = ProblemSize(states, actions, DELTA, value_bound=VALUE_BOUND, discount=DISCOUNT)
    return zeta(bound, n_wedge, whole, gain=gain)


def judge(bound: str, n_wedge: int, log: Counts, truth: FiniteMDP, behavior: Policy) -> Verdict:
    """The verdict on the policy that SPIBB computes from the log."""
    bounds = (-VALUE_BOUND, VALUE_BOUND)
    problem = Problem(counts=log, behavior=behavior, discount=DISCOUNT, value_bounds=bounds)
    estimate, improved = problem.estimate(), SPIBB(n_wedge=n_wedge).improve(problem).policy
    gain = performance(estimate, improved) - performance(estimate, behavior)
    size = (log.pairs.num_states, log.pairs.num_actions)
    difference = performance(truth, improved) - performance(truth, behavior)
    return Verdict(gain, claimed(bound, n_wedge, size, gain), difference)


RISKY = 0.1  # how often π_b takes the risky action of state 0: right, or the gamble
SLACK = 1.05  # so many times N∧ visits of it are expected, so that it is trusted


# ---- SPIBB: what was never seen is worth 0 ----------------------------------------------------

LEFT_REWARD = -0.1


def maze_counts(left: int, tried: np.ndarray) -> Counts:
    """Counts of a maze: `left` episodes go left, `tried[a]` go right and take door a.

    In state 0, left earns −0.1 and leads to the end, state 3; right leads to state 1, which has
    many doors. Each of them leads to state 2, which earns −1 and leads to the end.
    """
    doors, right = tried.size, int(tried.sum())
    pairs = Pairs(
        np.array([0, 2, 2 + doors, 3 + doors, 4 + doors]),
        np.concatenate([[0, 1], np.arange(doors), [0, 0]]),
        doors,
    )
    return Counts(
        pairs,
        np.append(np.arange(doors + 4), doors + 3),  # one successor a pair, but none at the end
        np.concatenate([[3, 1], np.full(doors, 2), [3]]),
        np.concatenate([[left, right], tried, [right]]),
        LoggedRewards(
            np.concatenate([[LEFT_REWARD, 0.0], np.zeros(doors), [-1.0, 0.0]]), "pair", known=True
        ),
        np.array([left + right, 0, 0, 0]),
    )


def unseen_pairs(n_wedge: int = 10**5, seed: int = 1) -> Verdict:
    """The verdict of SPIBB's bound on a maze with ten times as many doors as N∧, drawn and run."""
    rng = np.random.default_rng(seed)
    doors, episodes = 10 * n_wedge, int(SLACK * n_wedge / RISKY)
    right = rng.binomial(episodes, RISKY)
    tried = np.bincount(rng.integers(doors, size=right), minlength=doors)
    log = maze_counts(episodes - right, tried)
    truth = estimate_mdp(maze_counts(1, np.ones(doors, int)), DISCOUNT)  # a log that saw it all
    shares = np.concatenate([[1 - RISKY, RISKY], np.full(doors, 1 / doors), [1.0, 1.0]])
    return judge("spibb", n_wedge, log, truth, Policy(log.pairs, shares))


def unseen_pairs_on_average(n_wedge: int = 10**6) -> Verdict:
    """The same in closed form, with the mean share of doors that are seen.

    Right is worth −γ², and seems to be worth −γ² times the share of doors that were seen.
    """
    doors = 10 * n_wedge
    seen = 1 - (1 - 1 / doors) ** (SLACK * n_wedge)
    gain = (1 - RISKY) * (-(DISCOUNT**2) * seen - LEFT_REWARD)
    difference = (1 - RISKY) * (-(DISCOUNT**2) - LEFT_REWARD)
    return Verdict(gain, claimed("spibb", n_wedge, (4, doors), gain), difference)


# ---- 2s and β: a policy that knows where P̂ is too large ---------------------------------------

GOOD = 0.1  # how often π_b takes the good action of a station


def station_counts(safe: int, arrivals: np.ndarray, bad: np.ndarray, good: np.ndarray) -> Counts:
    """Counts of a gamble: arrivals, bad and good decisions at each of the stations 1 … k.

    In state 0, the safe action leads to the end, state k + 1; the gamble leads to a station. There
    one stays, and each step earns −(1 − γ) by the bad or 1 − γ by the good action: ∓1 in all.
    """
    k = arrivals.size
    pairs = Pairs(
        np.append(np.arange(k + 2) * 2, 2 * k + 3), np.append(np.tile([0, 1], k + 1), 0), 2
    )
    stations, step = np.arange(1, k + 1), 1 - DISCOUNT
    return Counts(
        pairs,
        np.cumsum(np.concatenate([[0, 1, k], np.ones(2 * k, int), [0]])),
        np.concatenate([[k + 1], stations, np.repeat(stations, 2)]),
        np.concatenate([[safe], arrivals, np.column_stack([bad, good]).ravel()]),
        LoggedRewards(
            np.concatenate([[0.0, 0.0], np.tile([-step, step], k), [0.0]]), "pair", known=True
        ),
        np.append(safe + arrivals.sum(), np.zeros(k + 1, int)),
    )


def lucky_successors(bound: str, n_wedge: int = 10**5, seed: int = 1) -> Verdict:
    """The verdict of a bound on a gamble among N∧ stations, drawn and run.

    Episodes are so long that one arrival gives the good action of a station two thirds of N∧
    visits: a station that was reached twice is trusted, one that was reached once is not.
    """
    rng = np.random.default_rng(seed)
    stations, episodes = n_wedge, int(SLACK * n_wedge / RISKY)
    gambles = rng.binomial(episodes, RISKY)
    arrivals = np.bincount(rng.integers(stations, size=gambles), minlength=stations)
    steps = arrivals * int(2 / 3 * n_wedge / GOOD)
    good = rng.binomial(steps, GOOD)
    log = station_counts(episodes - gambles, arrivals, steps - good, good)
    once = np.ones(stations, int)
    truth = estimate_mdp(station_counts(1, once, once, once), DISCOUNT)  # all rows are uniform
    shares = np.concatenate([[1 - RISKY, RISKY], np.tile([1 - GOOD, GOOD], stations), [1.0]])
    return judge(bound, n_wedge, log, truth, Policy(log.pairs, shares))


def lucky_successors_on_average(bound: str, n_wedge: int = 10**6) -> Verdict:
    """The same in closed form, with the mean shares of stations reached never, once and twice."""
    stations, gambles = n_wedge, SLACK * n_wedge
    never = (1 - 1 / stations) ** gambles
    once = gambles / stations * (1 - 1 / stations) ** (gambles - 1)
    habit = 2 * GOOD - 1  # a station's value under π_b; it is 1 where the good action is chosen

    def advantage(trusted: float) -> float:
        """π_I always gambles, and the station is a trusted one with this probability."""
        return DISCOUNT * (trusted + (1 - trusted) * habit - RISKY * habit)

    gain = advantage(1 - once * stations / gambles)  # P̂ is 1/gambles at a station reached once
    size = (stations + 2, 2)
    return Verdict(gain, claimed(bound, n_wedge, size, gain), advantage(1 - never - once))


# ---- all of them ------------------------------------------------------------------------------


def main() -> None:
    """Prints every counterexample."""
    size, errors = ProblemSize(100, 4, DELTA), row_errors()
    print(f"1. A row with 100 successors and 146 visits: mean L1 error {errors.mean():.2f}")
    for name in ("spibb", "2s", "beta"):
        radius = float(BOUNDS[name].radius(146, size))
        print(f"   {name:6} radius {radius:.2f}, exceeded in {(errors > radius).mean():.0%}")

    print("\n2. How often the radius of β fails at one split, as a multiple of δ_T")
    for row in split_failures():
        print(
            f"   {row.experiment:18} N∧ = {row.n_wedge:3}  posterior {row.posterior:8,.1f}"
            f"  frequentist {row.frequentist:8,.1f}"
        )

    verdicts = {
        "3. Unseen pairs, N∧ = 10⁵, drawn, spibb": unseen_pairs(),
        "   Unseen pairs, N∧ = 10⁶, on average, spibb": unseen_pairs_on_average(),
        "4. Lucky successors, N∧ = 10⁵, drawn, 2s": lucky_successors("2s"),
        "   Lucky successors, N∧ = 10⁵, drawn, beta": lucky_successors("beta"),
        "   Lucky successors, N∧ = 10⁶, on average, 2s": lucky_successors_on_average("2s"),
    }
    print()
    for what, verdict in verdicts.items():
        print(f"{what:46} claims {-verdict.zeta:+.3f}, truth {verdict.difference:+.3f}")


if __name__ == "__main__":
    main()
