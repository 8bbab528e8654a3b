"""Counts wrong claims of pilots where the truth is known, and how long they take to prove a gain.

python tools/pilots.py [--runs RUNS] [--write]

Each case is judged as `surestep pilot` does it, with δ = 10 %. Bounds are running maxima: one is
wrong where anybody who looked after every episode, and stopped at the first green, would have been
wrong. Seeds are fixed. --write puts the tables into docs/coverage.md.
"""

import argparse
from pathlib import Path

import numpy as np

import surestep
from coverage_page import around_block
from surestep._words import percent
from surestep.followup import bets
from surestep.followup.episodes import Episodes, Measure
from surestep.followup.lots import in_order
from surestep.followup.pilot import DAY, PilotPlan, judged
from surestep.rehearsal import Rate

DELTA, MANY, PLANNED = 0.1, 300, 200
MADE, TODAY = "2026-01-01", "2030-01-01"
FIRST = 1_767_225_600.0  # 2026-01-01, in seconds
PAGE = Path(__file__).parent.parent / "docs" / "coverage.md"
SMALLEST = ("--runs", "3")


def coins(rng, chance):
    """Returns a coin for each chance."""
    return (rng.random(np.size(chance)) < chance).astype(float)


def wrong(returns, new, plan, *, truth=0.0, highest=None):
    """Tells whether the bound of a pilot was ever above the true gain."""
    episodes = Episodes(
        measures=tuple(plan.measures),
        ids=tuple(map(str, range(new.size))),
        starts=FIRST + DAY / 4 * np.arange(new.size),
        arm=np.where(new, "new", "old"),
        returns=returns[np.newaxis],
        lowest=returns[np.newaxis],
        highest=(returns if highest is None else highest)[np.newaxis],
        pending=np.zeros(new.size, bool),
        followed=np.ones(new.size),
    )
    return judged(plan, "", episodes, TODAY).measures[0].lower > truth


def plan_of(middle=0.5, variance=0.25, low=0.0, **more):
    """Returns a plan whose stakes are those of old returns with this mean and variance."""
    measure = Measure("return", low, 1.0, middle=middle, variance=variance)
    fixed = {"made": MADE, "digest": "", "delta": DELTA, "episodes": PLANNED}
    return PilotPlan(**fixed, measures=[measure], **more)


def alike(chance, share=0.5):
    """Returns a run in which both arms are coins."""

    def run(rng):
        plan = plan_of(chance, chance * (1 - chance), share=share)
        return wrong(coins(rng, np.full(MANY, chance)), rng.random(MANY) < share, plan)

    return run


def harmful(rng):
    """Returns a run in which the new policy loses 0.05."""
    new = rng.random(MANY) < 0.5
    return wrong(coins(rng, np.where(new, 0.45, 0.5)), new, plan_of(), truth=-0.05)


def ramp_up(rng):
    """Returns a run in which the share rises from 10 to 90 % while the level rises for all."""
    share = np.repeat(np.linspace(0.1, 0.9, 10), MANY // 10)
    days = np.arange("2026-01-01", "2026-04-01", dtype="datetime64[D]")
    steps = [(str(days[int(i * MANY / 40)]), float(x)) for i, x in enumerate(share[:: MANY // 10])]
    # Episodes begin every six hours: the chance is that of their day.
    dates = np.array([np.datetime64(date) for date, _ in steps])
    start = np.datetime64("2026-01-01") + np.arange(MANY) * np.timedelta64(6, "h")
    chance = np.array([x for _, x in steps])[np.searchsorted(dates, start, side="right") - 1]
    returns = coins(rng, np.linspace(0.3, 0.7, MANY))
    return wrong(returns, rng.random(MANY) < chance, plan_of(0.3, 0.21, share=steps))


def heavy(rng):
    """Returns a run with −40 in 1 % of the episodes, in both arms."""
    returns = np.where(rng.random(MANY) < 0.01, -40.0, rng.random(MANY))
    return wrong(returns, rng.random(MANY) < 0.5, plan_of(0.095, 16.3, low=-40.0))


def truncated(rng):
    """Returns a run whose recording misses the last part, in which the control does better."""
    new = rng.random(MANY) < 0.5
    so_far = 0.7 * coins(rng, np.where(new, 0.6, 0.45))
    return wrong(so_far, new, plan_of(0.42, 0.12), highest=so_far + 0.3)


def pending(by_starts):
    """Returns a run in which good outcomes are known after a day, and bad ones after 30."""

    def run(rng):
        new = rng.random(MANY) < 0.5
        returns = coins(rng, np.full(MANY, 0.5))
        begun = np.arange(MANY) / 4
        # In the new arm, bad outcomes take longer still.
        known = begun + np.where(returns > 0, 1, np.where(new, 30, 2))
        plan = plan_of(deadline=60.0)
        wager = bets.Wager(0.0, 1.0, 0.5, 0.25, PLANNED, DELTA)
        for day in range(4, int(begun[-1]), 4):
            there = begun <= day
            done = known <= day
            if not by_starts:
                order = np.argsort(known[done], kind="stable")
                series = bets.gains(
                    wager, new[done][order], np.full(order.size, 0.5), returns[done][order]
                )
                if bets.reached(series, wager, np.zeros(1))[0] < np.inf:
                    return True
                continue
            episodes = Episodes(
                measures=(Measure("return", 0.0, 1.0),),
                ids=tuple(map(str, range(there.sum()))),
                starts=FIRST + DAY * begun[there],
                arm=np.where(new, "new", "old")[there],
                returns=returns[np.newaxis, there],
                lowest=returns[np.newaxis, there],
                highest=returns[np.newaxis, there],
                pending=~done[there],
                followed=np.ones(there.sum()),
            )
            today = str(np.datetime64(MADE) + day)
            if judged(plan, "", episodes, today).measures[0].lower > 0:
                return True
        return False

    return run


def careless(what, with_lots):
    """Returns a run in which the new policy changes nothing, and the rows are kept carelessly.

    30 % of the failed episodes of the new arm are left out, or of the others in the control; or
    rows are made of completed episodes alone, and failures take 30 days in the new arm; or the
    column of the arm says what was done, and 30 % of those who would fail leave the new arm.
    """

    def run(rng):
        new = rng.random(MANY) < 0.5
        returns = coins(rng, np.full(MANY, 0.5))
        begun = np.arange(MANY) / 4
        failed = new & (returns == 0)
        arm = new & ~(failed & (rng.random(MANY) < 0.3) & (what == "as taken"))
        left_out = {"dropped": failed, "control": ~new & (returns == 1)}.get(what, ~new & new)
        there = ~(left_out & (rng.random(MANY) < 0.3))
        there &= ~(failed & (begun > begun[-1] - 30) & (what == "completed"))
        names = np.array([f"e{i}" for i in range(MANY)])
        plan = plan_of(lots="lots.csv" if with_lots else None, deadline=60.0)
        episodes = Episodes(
            measures=tuple(plan.measures),
            ids=tuple(names[there].tolist()),
            starts=FIRST + DAY * begun[there],
            arm=np.where(arm, "new", "old")[there],
            returns=returns[np.newaxis, there],
            lowest=returns[np.newaxis, there],
            highest=returns[np.newaxis, there],
            pending=np.zeros(there.sum(), bool),
            followed=np.ones(there.sum()),
        )
        today = str(np.datetime64(MADE) + MANY // 4)
        if with_lots:
            drawn = np.where(new, "new", "old")
            lots = [f"{i + 1},{drawn[i]},{names[i]}" for i in range(MANY)]
            text = "\n".join(["place,arm,episode", *lots])
            today = today if what == "completed" else TODAY
            episodes = in_order(text, None, episodes)
        return judged(plan, "", episodes, today).verdict == "proved better"

    return run


def past(drift):
    """Returns a run with past episodes as control, in which all returns rise, or none does.

    The new policy does what the old one did. A claim is wrong; "no claim" is none.
    """
    old = one_step(np.random.default_rng(0), 400, 0.5)
    how = {"columns": {"terminated": "over"}, "discount": 0, "ending": (0, 1)}
    result = surestep.improve(
        old, worlds=0, certificates=["posterior"], algorithm="basic-rl", **how
    )
    plan = surestep.pilot(result, log=old, control="past", episodes=PLANNED)

    def run(rng):
        rows = one_step(rng, MANY, 0.5 + drift)
        answer = surestep.pilot(result, rows, plan=plan, log=old, today=TODAY).answer
        return answer.verdict == "believed better"

    return run


def one_step(rng, many, level):
    """Returns a log of one decision an episode, in which actions do nothing."""
    return {
        "episode": np.arange(many),
        "step": np.zeros(many, int),
        "state": np.array(["mild", "severe"])[rng.integers(2, size=many)],
        "action": np.array(["wait", "treat"])[rng.integers(2, size=many)],
        "reward": coins(rng, np.full(many, level)),
        "over": np.ones(many, bool),
    }


BROKEN = {"the same, by the order of completion": lambda: pending(by_starts=False)}
CARELESS = {
    "30 % of the failed episodes of the new arm left out": "dropped",
    "only completed episodes, failures take longer": "completed",
    "the column of the arm says what was done": "as taken",
}
WITHOUT_LOTS = {
    f"{name}, without lots": (lambda what=what: careless(what, with_lots=False))
    for name, what in CARELESS.items()
}
WITHOUT_LOTS["30 % of the good episodes of the control left out, without lots"] = lambda: careless(
    "control", with_lots=False
)
CASES = {
    "no gain, coin of ½, arms 1:1": lambda: alike(0.5),
    "no gain, coin of 0.98": lambda: alike(0.98),
    "no gain, arms 1:4": lambda: alike(0.5, 0.2),
    "harm of 0.05": lambda: harmful,
    "ramp-up from 10 to 90 % while the level rises from 0.3 to 0.7": lambda: ramp_up,
    "heavy tails: −40 in 1 % of the episodes": lambda: heavy,
    "truncated returns, the control gains later": lambda: truncated,
    "bad outcomes pending for longer in the new arm": lambda: pending(by_starts=True),
    **BROKEN,
    "past control, nothing changed (believed)": lambda: past(0.0),
    "past control, the level rose by 0.2 (the check must fail)": lambda: past(0.2),
    **{
        f"{name}, with lots": (lambda what=what: careless(what, with_lots=True))
        for name, what in CARELESS.items()
    },
    **WITHOUT_LOTS,
}
EFFECTS = {"0.2": 0.2, "0.5": 0.5, "1": 1.0}


def rate(make, runs, seed):
    """Returns how often a case is wrong."""
    run = make()
    rng = np.random.default_rng([44, seed])
    return Rate.of(np.array([run(rng) for _ in range(runs)], bool))


def needed(effect, rng):
    """Returns after how many episodes a gain of so many standard deviations is proved."""
    most = round(60 / effect**2)
    new = rng.random(most) < 0.5
    chance = 0.5 + np.where(new, 0.5, -0.5) * effect * 0.5
    test = 4 * (1.2816 + 0.8416) ** 2 / effect**2
    wager = bets.Wager(0.0, 1.0, 0.5, 0.25, round(test), DELTA)
    series = bets.gains(wager, new, np.full(most, 0.5), coins(rng, chance))
    return bets.reached(series, wager, np.zeros(1))[0], test


def tables(runs):
    """Returns both tables as Markdown."""
    lines = [
        f"| pilot of {MANY} episodes | runs | wrong (95 %) |",
        "| --- | ---: | ---: |",
    ]
    for seed, (name, make) in enumerate(CASES.items()):
        found = rate(make, -(-runs // 5) if name.startswith("past") else runs, seed)
        ends = f"{percent(found.low)} – {percent(found.high)}"
        mark = " (not what `pilot` does)" if name in BROKEN else ""
        mark = " (a caution stands beside it)" if name in WITHOUT_LOTS else mark
        lines.append(f"| {name}{mark} | {found.total:,} | {percent(found.share)} ({ends}) |")
    lines += [
        "",
        "| gain in standard deviations | median | 80 % by | t-test of fixed size, 80 % power |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for seed, (name, effect) in enumerate(EFFECTS.items()):
        rng = np.random.default_rng([45, seed])
        both = [needed(effect, rng) for _ in range(runs)]
        middle, most = np.quantile([when for when, _ in both], [0.5, 0.8], method="higher")
        lines.append(f"| {name} | {middle:,.0f} | {most:,.0f} | {both[0][1]:,.0f} |")
    return "\n".join(lines)


def main():
    """Prints the tables, or writes them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    made = tables(chosen.runs)
    print(made)
    if chosen.write:
        before, after = around_block(PAGE, "pilots")
        PAGE.write_text(f"{before}\n\n{made}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
