"""Counts false alarms and delays of `surestep watch` where the truth is known.

python tools/watches.py [--runs RUNS]

Prints the table of docs/coverage.md. A false alarm is one among the first N = 1,000 episodes
although nothing changed; α is 10 %. Levels are lower bounds by an old log of 1,000 episodes, which
may be too high in δ = 10 %, unless the table says otherwise. Seeds are fixed.
"""

import argparse
from pathlib import Path

import numpy as np

from surestep.followup.watching import detect, lowest_season, paired

ROOT = Path(__file__).resolve().parent.parent
N, ALPHA, DELTA = 1_000, 0.1, 0.1
OLD = 1_000  # episodes of the old log
YEAR = 500  # episodes
LAST = 20_000  # episode at which a run is given up

SMALLEST = ["--runs", "3"]


def coins(rng, mean):
    """Returns a coin for each chance."""
    return (rng.random(np.size(mean)) < mean).astype(float)


def rare(rng, mean):
    """Returns 1 in most episodes, and −40 so seldom that the mean is that; at most 1."""
    return np.where(rng.random(np.size(mean)) < (1 - mean) / 41, -40.0, 1.0)


def seasonal(size, swing, mean=0.5):
    """Returns the means of episodes through the seasons."""
    return mean + swing * np.sin(2 * np.pi * np.arange(size) / YEAR)


def alarm_of(values, level, high=1.0):
    """Returns the episode of the alarm, from 1; infinite without one."""
    seen = detect(values, level, high, within=N, alpha=ALPHA)
    return np.inf if seen.alarm is None else seen.alarm + 1


def without_change(draw, mean, level_of, *, low=0.0, swing=0.0):
    """Returns a run: an old log tells the level, and new episodes are like old ones."""

    def run(rng):
        old = draw(rng, seasonal(OLD, swing, mean))
        return alarm_of(draw(rng, seasonal(LAST, swing, mean)), level_of(old, low))

    return run


def by_bound(old, low):
    """Returns the level that `watch` takes."""
    return lowest_season(old, 1, low, DELTA)


def by_seasons(old, low):
    """Returns the level of the lowest of eight parts of two years."""
    return lowest_season(old, 8, low, DELTA)


def with_holdout(share, swing):
    """Returns a run of pairs with a holdout, against no gain at all; both arms are alike."""

    def run(rng):
        held = rng.random(LAST) < share
        gains, places = paired(coins(rng, seasonal(LAST, swing)), held)
        alarm = alarm_of(gains, 0.0)
        return places[int(alarm) - 1] + 1 if np.isfinite(alarm) else alarm

    return run


RUNS = {
    "coin of ½, level at the true mean": without_change(coins, 0.5, lambda old, low: 0.5),
    "coin of ½": without_change(coins, 0.5, by_bound),
    "coin of 0.98": without_change(coins, 0.98, by_bound),
    "−40 in 1 % of episodes": without_change(rare, 0.59, by_bound, low=-40.0),
    "level is the mean of 1,000 old episodes": without_change(
        coins, 0.5, lambda old, low: float(old.mean())
    ),
    "level is the mean of 100 old episodes": without_change(
        coins, 0.5, lambda old, low: float(old[:100].mean())
    ),
    "seasons of ±0.1": without_change(coins, 0.5, by_bound, swing=0.1),
    "seasons of ±0.2": without_change(coins, 0.5, by_bound, swing=0.2),
    "seasons of ±0.2, the lowest of 8 parts": without_change(coins, 0.5, by_seasons, swing=0.2),
    "seasons of ±0.2, a holdout of 20 %": with_holdout(0.2, 0.2),
}
FALLS = {  # from ½ after 200 episodes: to what, and how it is watched
    "to 0.4": (0.4, by_bound, 0.0),
    "to 0.25": (0.25, by_bound, 0.0),
    "to 0.1": (0.1, by_bound, 0.0),
    "to 0.25, seasons of ±0.1, the lowest of 8 parts": (0.25, by_seasons, 0.1),
}


def delays(to, level_of, swing, rng):
    """Returns a run with a fall after 200 episodes: the delay of the alarm, or a false one as 0."""
    old = coins(rng, seasonal(OLD, swing))
    mean = seasonal(LAST, swing)
    mean[200:] += to - 0.5
    return max(alarm_of(coins(rng, mean), level_of(old, 0.0)) - 200, 0.0)


def holdout_delay(rng):
    """Returns the delay of a gain of ¼ that is gone after 200 episodes, against a proved 0.15."""
    held = rng.random(LAST) < 0.2
    gain = np.where(np.arange(LAST) < 200, 0.25, 0.0)
    values, places = paired(coins(rng, seasonal(LAST, 0.1) + np.where(held, 0.0, gain)), held)
    alarm = alarm_of(values, 0.15)
    return max(places[int(alarm) - 1] + 1 - 200, 0) if np.isfinite(alarm) else alarm


def main():
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    runs = parser.parse_args().runs
    print(f"| nothing changed | alarm within {N:,} | median run |\n| --- | ---: | ---: |")
    for seed, (name, run) in enumerate(RUNS.items()):
        rng = np.random.default_rng([44, seed])
        ends = np.array([run(rng) for _ in range(runs)])
        middle = np.median(np.minimum(ends, LAST))
        longest = f"{middle:,.0f}" if middle < LAST else f"over {LAST:,}"
        print(f"| {name} | {100 * np.mean(ends <= N):.1f} % | {longest} |")
    print("\n| a fall from 0.5 after 200 episodes | median delay | 80 % by | never |")
    print("| --- | ---: | ---: | ---: |")
    falls = {name: lambda rng, how=how: delays(*how, rng) for name, how in FALLS.items()}
    falls["a gain of 0.25 is gone, seasons of ±0.1, a holdout of 20 %"] = holdout_delay
    for seed, (name, run) in enumerate(falls.items()):
        rng = np.random.default_rng([45, seed])
        ends = np.array([run(rng) for _ in range(runs)])
        middle, most = np.quantile(np.minimum(ends, LAST), [0.5, 0.8])
        print(f"| {name} | {middle:,.0f} | {most:,.0f} | {100 * np.mean(np.isinf(ends)):.1f} % |")


if __name__ == "__main__":
    main()
