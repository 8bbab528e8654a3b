"""Curves: what the published bounds need, and what other choices of N∧ and δ would have given."""

from __future__ import annotations

from surestep._words import about, number, percent, signed
from surestep.report.charts.svg import TONES, Axis, Caption, Level, Line, Mark, legend, line_chart
from surestep.report.html import Element, Node, element
from surestep.report.page_tables import Cell, Column, data_table, figure, number_columns, row
from surestep.report.pages.certificates import tone_of_gain
from surestep.report.words.verdict import standing_words
from surestep.results.findings import DeltaPoint, Findings, NWedgePoint, ZetaCurve

SMALLEST_SHOWN = 1e-3  # of the span: smaller losses need not be told apart in the picture
DASHED = ("spi-no-gamma", "ks")  # bounds that nearly coincide with another one


# ---- ζ against N∧ --------------------------------------------------------------------------------


def bounds_section(findings: Findings) -> Element | None:
    """Returns ζ of every bound over the number of visits, and where it begins to say something."""
    curves, span = findings.zeta_curves, findings.certificate.span
    if not curves:
        return None
    standings = sorted({curve.standing for curve in curves})
    return element(
        "section",
        element("h2", "What the published bounds would need"),
        element(
            "p",
            "Formulas from the papers promise a largest loss ζ before any data is looked at, for "
            "a policy that changes only what was seen more than N∧ times. The more visits, the "
            f"smaller the loss. A loss of {number(span)} or more says nothing, since no two "
            "policies can differ by more.",
        ),
        [element("p", f"Standing: {standing_words(standing)}.") for standing in standings],
        zeta_figure(findings) if span > 0 else None,
        needs_table(findings),
        id="bounds",
    )


def zeta_figure(findings: Findings) -> Element:
    """Returns the curves, with the span of the values and the N∧ that was used."""
    curves, span = findings.zeta_curves, findings.certificate.span
    lines = [
        Line(
            curve.bound,
            list(zip(curve.visits, curve.zeta, strict=True)),
            TONES[i % len(TONES)],
            curve.bound in DASHED,
        )
        for i, curve in enumerate(curves)
    ]
    smallest = SMALLEST_SHOWN * span
    losses = [loss for curve in curves for loss in curve.zeta if loss > smallest]
    n_wedge = findings.n_wedge
    caption = Caption(
        "zeta-picture",
        "The loss ζ that each bound allows, over the number of visits N∧",
        "Falling lines, one a bound. "
        + "; ".join(curve_words(curve, span) for curve in curves)
        + ".",
    )
    chart = line_chart(
        caption,
        lines,
        Axis.around(
            "visits of each changed pair, N∧", [n for c in curves for n in c.visits], log=True
        ),
        Axis.around("loss ζ", [*losses, 2 * span, span / 10], log=True),
        levels=[Level(span, f"says nothing above {number(span)}", "above")],
        marks=[] if n_wedge is None or n_wedge <= 0 else [Mark(n_wedge, f"N∧ = {n_wedge:,}")],
    )
    text = (
        "Both axes grow by factors. In the shaded part a bound says nothing; where a line leaves "
        "the picture below, the bound claims a gain, or next to no loss."
    )
    return figure(chart, text, legend=legend(lines), numbers=zeta_numbers(curves))


def curve_words(curve: ZetaCurve, span: float) -> str:
    """Returns where a curve begins to say something."""
    visits = curve.first_visits(span)
    return f"{curve.bound} says nothing before " + (
        f"{curve.visits[-1]:,} visits" if visits is None else f"{about(visits)} visits"
    )


def zeta_numbers(curves: tuple[ZetaCurve, ...]) -> Element:
    """Returns a dozen points of each curve."""
    step = max(len(curves[0].visits) // 12, 1)
    losses = [dict(zip(curve.visits, curve.zeta, strict=True)) for curve in curves]
    rows = [
        row(
            Cell(f"{visits:,}"),
            *(Cell(number(loss[visits]) if visits in loss else "–") for loss in losses),
        )
        for visits in curves[0].visits[::step]
    ]
    columns = [Column("Visits", "number"), *(Column(c.bound, "number") for c in curves)]
    return data_table("zeta-numbers", "ζ of each bound", columns, rows)


def needs_table(findings: Findings) -> Element:
    """Returns from how many visits on each bound says something, and claims a gain."""
    span = findings.certificate.span

    def visits_cell(curve: ZetaCurve, below: float) -> Cell:
        visits = curve.first_visits(below)
        if visits is None:
            return Cell(f"more than {curve.visits[-1]:,}", float(curve.visits[-1]) * 2)
        return Cell(about(visits), visits)

    rows = [
        row(
            Cell(element("span", curve.bound, class_="word")),
            Cell(element("span", curve.standing, class_="word")),
            visits_cell(curve, span),
            visits_cell(curve, span / 10),
            visits_cell(curve, 0.0),
        )
        for curve in findings.zeta_curves
    ]
    columns = [
        Column("Bound"),
        Column("Standing"),
        *number_columns(
            "Visits until it says anything",
            f"… until it limits the loss to {number(span / 10)}",
            "… until it claims a gain",
        ),
    ]
    return data_table(
        "bounds-needs",
        "Visits of each changed pair that each bound asks for",
        columns,
        rows,
        sortable=True,
    )


# ---- other choices -------------------------------------------------------------------------------


def choices_section(findings: Findings) -> Element | None:
    """Returns how the result depends on what somebody chose."""
    by_n_wedge = n_wedge_part(findings) if findings.n_wedge_curve else None
    by_delta = delta_part(findings) if findings.delta_curve else None
    if by_n_wedge is None and by_delta is None:
        return None
    named = [name for name, part in (("N∧", by_n_wedge), ("δ", by_delta)) if part is not None]
    return element(
        "section",
        element("h2", f"How the result depends on {' and '.join(named)}"),
        by_n_wedge,
        by_delta,
        id="choices",
    )


def lower_words(lower: float | None, span: float) -> Node:
    """Returns L, or that there is none, or that it says nothing."""
    if lower is None:
        return "refused"
    if -lower >= span:
        return element("span", "says nothing", class_="nothing")
    return signed(lower)


def n_wedge_part(findings: Findings) -> list[Node]:
    """Returns the gain, and what is guaranteed of it, over N∧."""
    points, span = findings.n_wedge_curve, findings.certificate.span
    said = [p for p in points if p.lower is not None and -p.lower < span]
    lines = [Line("estimated gain", [(p.n_wedge, p.gain) for p in points], "blue")]
    if said:
        guaranteed = [(p.n_wedge, p.lower) for p in said if p.lower is not None]
        lines.append(
            Line("guaranteed: L", guaranteed, tone_of_gain(findings.certificate), dashed=True)
        )
    heights = [height for line in lines for _, height in line.points]
    caption = Caption(
        "n-wedge-picture",
        "The estimated gain, and what is guaranteed of it, for other choices of N∧",
        "; ".join(f"N∧ = {p.n_wedge:,}: estimated {signed(p.gain)}" for p in points) + ".",
    )
    marks = [] if not findings.n_wedge else [Mark(findings.n_wedge, "used here")]
    chart = line_chart(
        caption,
        lines,
        Axis.around("N∧", [p.n_wedge for p in points], log=True),
        Axis.around("gain", [*heights, 0.0]),
        levels=[Level(0.0, "no gain")],
        marks=marks,
        dots=True,
    )
    return [
        element("h3", "Another N∧"),
        element(
            "p",
            "A small N∧ changes more, on less data; a large one changes little. Where nothing is "
            "changed, nothing is gained or lost."
            + ("" if said else " The guarantee says nothing, whichever of these is chosen."),
        ),
        figure(chart, "What other choices of N∧ would have given.", legend=legend(lines)),
        n_wedge_table(findings, points),
    ]


def n_wedge_table(findings: Findings, points: tuple[NWedgePoint, ...]) -> Element:
    """Returns the numbers of the picture, and how many pairs would be trusted."""
    span = findings.certificate.span
    rows = [
        row(
            Cell([f"{p.n_wedge:,}", used(p.n_wedge == findings.n_wedge)], p.n_wedge),
            Cell(f"{p.trusted_pairs:,}", p.trusted_pairs),
            Cell(signed(p.gain), p.gain),
            Cell(lower_words(p.lower, span), p.lower),
        )
        for p in points
    ]
    columns = [
        *number_columns("N∧", "Pairs seen more often", "Estimated gain", "Guaranteed: L"),
    ]
    return data_table("n-wedge-numbers", "The result for other N∧", columns, rows, sortable=True)


def used(here: bool) -> Element | None:
    """Returns the mark of the choice behind this report, or None."""
    return element("span", " used here", class_="used") if here else None


def delta_part(findings: Findings) -> list[Node]:
    """Returns what is guaranteed of the same policy, over δ."""
    points, span = findings.delta_curve, findings.certificate.span
    said = [p for p in points if -p.lower < span]
    text = (
        "A larger δ is a bolder claim: it may be wrong more often. The policy stays the same."
        + ("" if said else " With every δ listed, the guarantee says nothing.")
    )
    return [
        element("h3", "Another δ"),
        element("p", text),
        delta_figure(findings, points) if said else None,
        delta_table(findings, points),
    ]


def delta_figure(findings: Findings, points: tuple[DeltaPoint, ...]) -> Element:
    """Returns L over δ, as far as it says something."""
    span = findings.certificate.span
    caption = Caption(
        "delta-picture",
        "What is guaranteed of the gain, for other choices of δ",
        "; ".join(f"δ = {number(p.delta)}: L = {signed(p.lower)}" for p in points) + ".",
    )
    said = [p.lower for p in points if -p.lower < span]
    over_delta = [(p.delta, p.lower) for p in points]
    chart = line_chart(
        caption,
        [Line("guaranteed: L", over_delta, tone_of_gain(findings.certificate))],
        Axis.around("δ, the chance to be wrong", [p.delta for p in points], log=True),
        Axis.around("guaranteed: L", [*said, 0.0]),
        levels=[Level(0.0, "no gain"), Level(-span, "says nothing below", "below")],
        marks=[Mark(findings.certificate.delta, "used here")],
        dots=True,
    )
    return figure(chart, "What is guaranteed of the gain with other choices of δ.")


def delta_table(findings: Findings, points: tuple[DeltaPoint, ...]) -> Element:
    """Returns the numbers of the picture."""
    span = findings.certificate.span
    rows = [
        row(
            Cell([number(p.delta), used(p.delta == findings.certificate.delta)], p.delta),
            Cell(percent(1 - p.delta), 1 - p.delta),
            Cell(lower_words(p.lower, span), p.lower),
        )
        for p in points
    ]
    columns = [*number_columns("δ", "Confidence", "L")]
    return data_table("delta-numbers", "The claim for other δ", columns, rows, sortable=True)
