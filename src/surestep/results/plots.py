"""Makes the pictures of a result: values for the page to draw, and a figure for Matplotlib."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IntArray, run_sums
from surestep._drawing import BLUE, drawing, typeset
from surestep._words import floored, harmless, signed
from surestep.certificates.registry import BUILT_IN, standing_name, standing_of
from surestep.errors import InvalidParameter
from surestep.model import Certificate
from surestep.model.statements import STOPPING, WITHIN_SEEN
from surestep.rehearsal import Rehearsal
from surestep.results.findings import UNCHANGED, Findings, PolicyTable
from surestep.sections import Caption, Flag, Histogram, Layer, Strip, Strips, Tone

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_STATES = 10
LONGEST = 40  # characters of a name beside an axis
TONES: dict[str, Tone] = {"proved": "blue", "asymptotic": "purple", "posterior": "orange"}
FEW = 3.0  # an L below −3 times the scale of the picture is cut
SMALLEST, LARGEST = 1e-300, 1e300  # beyond these, differences overflow


def changes_figure(table: PolicyTable) -> "Figure":
    """Draws the changes that matter most: how often an action is taken today and from now on.

    Each state has a line, for the action whose probability rises most.
    """
    if not table.changed.any():
        raise InvalidParameter("the policy changes nothing, expected a change to draw")
    changed = most_changed(table)
    pairs = [gaining_action(table, state) for state in changed[:MOST_STATES][::-1].tolist()]
    places = range(len(pairs))
    today = table.behavior[pairs]
    new = table.probability[pairs]
    with drawing(7.5, 1.6 + 0.35 * len(pairs)) as figure:
        axes = figure.subplots()
        axes.hlines(places, today, new, color=BLUE)
        axes.plot(today, places, "o", color=BLUE, markerfacecolor="white", label="today")
        axes.plot(new, places, "o", color=BLUE, label="new")
        axes.set_yticks(places, [pair_name(table, pair) for pair in pairs])
        axes.set_xlim(-0.03, 1.03)
        axes.set_xlabel("how often the action is taken")
        axes.xaxis.set_major_formatter("{x:.0%}")
        axes.set_title(f"The changes that matter most: {len(pairs)} of {changed.size:,}")
        figure.legend(loc="outside upper right", ncols=2)
    return figure


# ---- as values ----------------------------------------------------------------------------------


def pair_name(table: PolicyTable, pair: int) -> str:
    """Returns the names of a state and an action, in one line beside an axis."""
    words = table.vocabulary
    state = ", ".join(words.state_name(int(table.pairs.state[pair])))
    action = ", ".join(words.action_name(int(table.pairs.action[pair])))
    return f"{shortened(state)}: {shortened(action)}"


def most_changed(table: PolicyTable) -> IntArray:
    """Returns the changed states, sorted by their decisions times Σ_a (π_I − π_b)(a|s) A(s,a)."""
    moved = (table.probability - table.behavior) * table.advantage
    offsets = table.pairs.offsets
    worth = run_sums(moved, offsets) * run_sums(table.visits, offsets)
    states = np.flatnonzero(table.changed)
    return states[np.argsort(-worth[states], kind="stable")]


def claims_picture(gain: float, claims: Sequence[Certificate], names: Sequence[str]) -> Strips:
    """Returns a bar for each claim, from L to the right end.

    The scale is the largest of the estimated gain, the L nearest to 0, and any L above 0. An L
    below −3 times the scale is cut.
    """
    gain = within_reach(gain)
    said = [within_reach(c.lower) for c in claims if c.lower is not None and not c.says_nothing]
    matters = max(abs(gain), min(map(abs, said), default=0.0), *said, SMALLEST)
    end = max(gain, *said, 0.0) + 0.1 * matters
    strips = []
    for claim, name in zip(claims, names, strict=True):
        if claim.lower is None or claim.says_nothing:
            words = "refused" if claim.lower is None else "says nothing"
            strips.append(Strip(name, end, end, tone="vermilion", words=words))
            continue
        lower = max(within_reach(claim.lower), -FEW * matters)
        words = f"{standing_name(claim)}, L = {signed(floored(claim.lower))}"
        strips.append(
            Strip(
                name, lower, end, (lower if lower == claim.lower else None), tone_of(claim), words
            )
        )
    return Strips(
        Caption(
            "certificates-picture",
            "What each certificate claims at least",
            "Each bar begins at L, the least gain that the claim leaves open: the further right, "
            "the stronger. Right of “no difference”, a gain is claimed.",
        ),
        "gain per episode over the current policy",
        strips,
        flags_of(gain),
    )


def within_reach(value: float) -> float:
    """Returns the nearest number of a size that can be drawn."""
    return 0.0 if abs(value) < SMALLEST else min(max(value, -LARGEST), LARGEST)


def tone_of(claim: Certificate) -> Tone:
    """Returns the colour of a claim: green only if a built-in kind proves a gain.

    It is not green if the range of rewards was not declared, or if the claim leaves out rows
    without a known outcome.
    """
    proved = standing_of(claim) == "proved" and (claim.lower or 0.0) > 0
    if not proved or claim.kind not in BUILT_IN or claim.assumes(WITHIN_SEEN, STOPPING.code):
        return TONES.get(standing_of(claim), "grey")
    return "green"


def gains_picture(gain: float, lower: float | None, rehearsal: Rehearsal) -> Histogram:
    """Returns a histogram of the true gains in worlds with about as much data as the log."""
    gains = rehearsal.gain[:, rehearsal.sizes.index(own_size(rehearsal))]
    edges, times = gain_bins(gains, rehearsal.tolerance, gain)
    layers = [
        Layer(times[0], "vermilion", "worse than the current policy"),
        Layer(times[1], "grey", "no difference"),
        Layer(times[2], "blue", "better"),
    ]
    reach = [signed(float(end)) for end in (gains.min(), gains.max(), np.median(gains))]
    return Histogram(
        Caption(
            "gains-picture",
            "The true gain in simulated worlds",
            f"Worlds by the true gain of the policy made there: {reach[0]} to {reach[1]}, median "
            f"{reach[2]}. Dashed: this report's numbers.",
        ),
        "true gain",
        "world",
        edges,
        layers,
        flags_of(gain, lower),
    )


def own_size(rehearsal: Rehearsal) -> float:
    """Returns the size of simulated data that is nearest to the size of the log."""
    return min(rehearsal.sizes, key=lambda size: abs(size - 1))


def flags_of(gain: float, lower: float | None = None) -> list[Flag]:
    """Returns flags at 0, at the estimated gain and at a lower bound, for an axis of gains."""
    flags = [Flag(0.0, "no difference"), Flag(gain, f"estimate {signed(gain)}")]
    return flags if lower is None else [*flags, Flag(lower, f"L = {signed(floored(lower))}")]


def shortened(name: str) -> str:
    """Shortens a name to one line beside an axis; escapes dollars, which begin formulas."""
    return typeset(harmless(name, LONGEST)) if name else ""


# ---- orders and bins for readers ----------------------------------------------------------------


FEWEST_BETWEEN = 2  # no bin ends at a power of ten within this factor of N∧
MOST_GAIN_BINS = 30


def moves_in(table: PolicyTable, state: int) -> tuple[IntArray, int]:
    """Sorts the pairs of a state by |π_I − π_b|, then π_I; returns them, and how many change."""
    run = np.arange(table.pairs.offsets[state], table.pairs.offsets[state + 1])
    change = np.abs(table.probability[run] - table.behavior[run])
    return run[np.lexsort((-table.probability[run], -change))], int((change > UNCHANGED).sum())


def gaining_action(table: PolicyTable, state: int) -> int:
    """Returns the pair of a state with the largest π_I − π_b."""
    run = slice(int(table.pairs.offsets[state]), int(table.pairs.offsets[state + 1]))
    return run.start + int(np.argmax((table.probability - table.behavior)[run]))


def kept_states(findings: Findings) -> IntArray:
    """Returns the states in which nothing changes, sorted by their visits under π_b."""
    states = np.flatnonzero(~(findings.table.quiet | findings.table.changed))
    return states[np.argsort(-findings.behavior_occupancy[states], kind="stable")]


class VisitBin(NamedTuple):
    """The number of pairs with `low` to `high` visits, both included."""

    low: int
    high: int
    times: int


def visit_bins(visits: IntArray, n_wedge: int | None) -> list[VisitBin]:
    """Sorts pairs [K] by their visits; returns bins between powers of ten, one ending at N∧.

    The first bin holds the pairs without a visit, the last one the largest number.
    """
    largest = int(visits.max(initial=1))
    ends = [10**power for power in range(1, len(str(largest)) + 1)]
    if n_wedge is not None and 0 < n_wedge < ends[-1]:
        apart = [end for end in ends[:-1] if max(end / n_wedge, n_wedge / end) >= FEWEST_BETWEEN]
        ends = sorted({*apart, n_wedge, ends[-1]})
    begins = [0, 1, *(end + 1 for end in ends)]
    return [
        VisitBin(low, high, int(((visits >= low) & (visits <= high)).sum()))
        for low, high in zip(begins, [0, *ends], strict=False)
        if low <= largest
    ]


def gain_bins(
    gain: FloatArray, tolerance: float, also: float
) -> tuple[list[float], list[list[int]]]:
    """Returns the edges of at most 30 bins of a round width, and three rows of counts.

    The rows count worlds that are worse, without a difference, and better, in each bin. The bins
    cover every gain, 0 and the number `also`. A gain within the tolerance is no difference, and
    counts in the bin that begins at 0.
    """
    low, high = min(0.0, also, float(gain.min())), max(0.0, also, float(gain.max()))
    width = round_width((high - low) / (MOST_GAIN_BINS - 2))
    first = math.floor(low / width)
    last = max(math.ceil(high / width), first + 1)
    same = np.abs(gain) <= tolerance
    place = np.clip(np.floor(gain / width), first, last - 1).astype(int)
    place = np.where(same, min(0, last - 1), place) - first
    counts = [
        np.bincount(place[sort], minlength=last - first).tolist()
        for sort in (gain < -tolerance, same, gain > tolerance)
    ]
    return [width * i for i in range(first, last + 1)], counts


def round_width(least: float) -> float:
    """Rounds a width up to 1, 2 or 5 times a power of ten; returns 1 for 0."""
    if not least > 1e-300:
        return 1.0
    size = 10.0 ** math.floor(math.log10(least))
    return next(factor * size for factor in (1, 2, 5, 10) if factor * size >= least * 0.999)
