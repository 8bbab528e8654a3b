"""Pictures of a result for notebooks: `result.plot.changes()`, `.certificates()`, `.rehearsal()`.

Each is a figure of Matplotlib, which notebooks show and `savefig` writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import IntArray
from surestep._drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, drawing
from surestep.certificates.standing import standing_of
from surestep.errors import InvalidParameter
from surestep.model import Certificate
from surestep.rehearsal import Rehearsal
from surestep.results.ranking import gaining_action
from surestep.results.table import PolicyTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_STATES = 10
LONGEST = 40  # characters of a name beside an axis
COLOURS = {"proved": BLUE, "asymptotic": PURPLE, "posterior": ORANGE}  # by standing; others grey
FEW = 3.0  # an L further below 0 than this many times what matters is cut
BINS = 20


@dataclass(frozen=True, slots=True)
class Plots:
    """The pictures of one result."""

    table: PolicyTable
    certificates_made: tuple[Certificate, ...]  # the first is the one to stand by
    stress_test: Rehearsal | None
    gain: float  # that the model expects

    def __call__(self) -> NoReturn:
        """Says which pictures there are."""
        raise InvalidParameter(
            "result.plot() draws nothing, expected the name of a picture: result.plot.changes(), "
            "result.plot.certificates() or result.plot.rehearsal()"
        )

    def changes(self) -> Figure:
        """Draws the changes that matter most: how often an action is taken, before and after.

        They are ordered by how often the log decides there, times what one decision gains.
        """
        states = most_changed(self.table)[:MOST_STATES]
        if not states.size:
            raise InvalidParameter("the policy changes nothing, expected a change to draw")
        with drawing(7.5, 1.2 + 0.42 * states.size) as figure:
            axes = figure.subplots()
            for place, state in enumerate(states[::-1]):
                draw_change(axes, self.table, int(state), place)
            names = [shortened(self.table.vocabulary.state_name(int(s))) for s in states[::-1]]
            axes.set_yticks(range(states.size), names)
            axes.set_ylim(-0.7, states.size - 0.3)
            axes.set_xlim(-0.03, 1.03)
            axes.set_xlabel("chance of the action that gains most: before (grey), after (blue)")
            changed = int(self.table.changed.sum())
            axes.set_title(f"The changes that matter most: {states.size} of {changed:,}")
        return figure

    def certificates(self) -> Figure:
        """Draws what each certificate claims at least of the gain, beside what is estimated."""
        claims = self.certificates_made
        said = [
            claim.lower for claim in claims if claim.lower is not None and not claim.says_nothing
        ]
        scale = max(abs(self.gain), min(map(abs, said), default=0.0), *said, 1e-300)
        low = min([0.0, *(lower for lower in said if lower >= -FEW * scale)]) - 0.3 * scale
        high = max(0.0, self.gain, *said) + 0.3 * scale
        with drawing(7.5, 1.4 + 0.5 * len(claims)) as figure:
            axes = figure.subplots()
            for place, claim in enumerate(claims[::-1]):
                draw_claim(axes, claim, place, low, high)
            axes.axvline(0.0, color=GREY, linewidth=1.2)
            axes.axvline(self.gain, color=GREEN, linestyle="--", linewidth=1.5)
            side = "right" if self.gain > (low + high) / 2 else "left"
            above = len(claims) - 0.5
            axes.text(self.gain, above, " estimated gain ", color=GREEN, va="bottom", ha=side)
            axes.set_yticks(range(len(claims)), [claim.kind for claim in claims[::-1]])
            axes.set_ylim(-0.6, len(claims) - 0.1)
            axes.set_xlim(low, high)
            axes.set_xlabel("difference to the current policy: at least L")
            axes.set_title("What each certificate claims; the first is stood by")
        return figure

    def rehearsal(self) -> Figure:
        """Draws the true gains in the worlds of the stress test, with data as much as the log."""
        test = self.stress_test
        if test is None or test.gain.size == 0:
            raise InvalidParameter(
                "there is no stress test in worlds of several kinds; make the result with worlds=10"
            )
        size = min(range(len(test.sizes)), key=lambda place: abs(test.sizes[place] - 1.0))
        gain = test.gain[:, size]
        lower = self.certificates_made[0].lower
        edges = np.histogram_bin_edges(gain, BINS)
        worse = gain < -test.tolerance
        with drawing(7.5, 3.6) as figure:
            axes = figure.subplots()
            parts = [gain[worse], gain[~worse]]
            named = [f"worse: {worse.sum():,}", f"not worse: {(~worse).sum():,}"]
            axes.hist(
                parts, bins=edges.tolist(), stacked=True, color=[VERMILION, BLUE], label=named
            )
            axes.axvline(0.0, color=GREY, linewidth=1.2)
            axes.axvline(self.gain, color=GREEN, linestyle="--", linewidth=1.5, label="estimated")
            if lower is not None and edges[0] <= lower <= edges[-1]:
                axes.axvline(lower, color=ORANGE, linestyle=":", linewidth=2, label="claimed: L")
            axes.set_xlabel("true gain over the current policy")
            axes.set_ylabel("worlds")
            axes.set_title(f"Stress test: {gain.size:,} worlds, data × {test.sizes[size]:g}")
            axes.legend()
        return figure


def most_changed(table: PolicyTable) -> IntArray:
    """Returns the changed states, by their decisions times Σ_a (π_I − π_b)(a|s) A(s,a)."""
    moved = (table.probability - table.behavior) * table.advantage
    worth = arrays.run_sums(moved, table.pairs.offsets) * table.decisions
    states = np.flatnonzero(table.changed)
    ordered: IntArray = states[np.argsort(-worth[states], kind="stable")]
    return ordered


def draw_change(axes: Axes, table: PolicyTable, state: int, place: int) -> None:
    """Draws how often the action that gains most chance is taken in a state."""
    pair = gaining_action(table, state).pair
    before, after = float(table.behavior[pair]), float(table.probability[pair])
    axes.plot([before, after], [place, place], color=GREY, linewidth=1.5, zorder=1)
    axes.scatter([before], [place], color=GREY, s=30, zorder=2)
    axes.scatter([after], [place], color=BLUE, s=45, zorder=2)
    name = shortened(table.vocabulary.action_name(int(table.pairs.action[pair])))
    middle = (before + after) / 2
    axes.annotate(name, (middle, place), (0, 3), textcoords="offset points", ha="center", size=8)


def draw_claim(axes: Axes, claim: Certificate, place: int, low: float, high: float) -> None:
    """Draws a claim as a bar from L to the right, or says why there is none."""
    colour = COLOURS.get(standing_of(claim), GREY)
    if claim.lower is None or claim.says_nothing:
        words = "refused" if claim.lower is None else "says nothing"
        axes.text(low, place, f" {words}", color=VERMILION, va="center")
        return
    begin = max(claim.lower, low)
    axes.barh(place, high - begin, left=begin, height=0.4, color=colour, alpha=0.35)
    axes.plot([begin, begin], [place - 0.2, place + 0.2], color=colour)
    words = f" L = {claim.lower:.4g}, {claim.standing} "
    if claim.lower < low:
        axes.text(low, place, f"◀{words}", va="center", size=9)
        return
    side = "right" if begin > (low + high) / 2 else "left"  # where there is more room
    axes.text(begin, place, words, va="center", ha=side, size=9)


def shortened(label: Sequence[str]) -> str:
    """Returns a label in one line beside an axis; a dollar is no formula."""
    text = ", ".join(label)
    cut = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return cut.replace("$", r"\$")
