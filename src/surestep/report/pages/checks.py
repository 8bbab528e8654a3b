"""Can the claim rest on this log? One line an assumption: what was tested, found and missed."""

from __future__ import annotations

from collections.abc import Sequence

from surestep._words import number, percent, signed
from surestep.checks import Check, Mark, aside, says, summary, title
from surestep.checks.words import small_percent
from surestep.report.charts.small_bars import luck_bars
from surestep.report.charts.strips import STRIP, Segment, Strip, strip_chart
from surestep.report.charts.svg import Axis, Caption, Tone
from surestep.report.html import Element, Node, element, label
from surestep.report.page_tables import Cell, Column, Row, data_table, figure, more
from surestep.results.findings import Findings

HEADING = "Can the claim rest on this log?"
SIGNS = {"passed": "✓", "failed": "✗", "told": "•", "unchecked": "–"}
STANDS = {"passed": "no sign against it", "failed": "fails", "told": "", "unchecked": "not tested"}
ON_ONE_LINE = {9: "\u2409", 10: "\u240a"}  # names of states may be anything
SMALLEST_CHANGE = 1e-4  # of chances, where the picture of hidden causes begins


def checks_section(findings: Findings) -> Element | None:
    """Returns the checks of a result; None for one that has none."""
    checks = findings.record.checks
    if not checks:
        return None
    return element("section", element("h2", HEADING), checks_content(checks), id="checks")


def checks_content(checks: Sequence[Check]) -> list[Node]:
    """Returns a line an assumption, and before them how many fail."""
    return [
        element(
            "p",
            element("strong", summary(checks)),
            " A test that finds nothing proves nothing; beside it stands how strong an effect "
            "would have been noticed. In small pictures the bars are what luck alone does, and the "
            "stroke is this log.",
        ),
        element("ul", [check_line(check) for check in checks], class_="checks"),
    ]


def check_line(check: Check) -> Element:
    """Returns one assumption: its sign, its words, and its picture."""
    details, stands = aside(check), STANDS[check.outcome]
    return element(
        "li",
        element("span", SIGNS[check.outcome], class_="sign", aria_hidden="true"),
        element(
            "div",
            element(
                "p",
                title(check),
                element("span", f" ({stands})", class_="stands") if stands else None,
                class_="assumption",
            ),
            element("p", element("bdi", says(check).translate(ON_ONE_LINE))),
            element("p", details, class_="aside") if details else None,
            wide_picture(check),
        ),
        small_picture(check),
        class_=f"check {check.outcome}",
    )


# ---- pictures ---------------------------------------------------------------------------------


def small_picture(check: Check) -> Element | None:
    """Returns what luck does, and the log; None where that is not a single number."""
    if check.statistic is None or not check.picture:
        return None
    caption = Caption(
        f"check-{check.code}",
        "What luck alone does, and this log",
        f"This log is {signed(check.statistic, 2)} standard deviations from the mean of shuffled "
        "logs.",
    )
    bars = [(mark.low, mark.high, mark.value) for mark in check.picture]
    tone: Tone = "vermilion" if check.outcome == "failed" else "blue"
    return element("div", luck_bars(caption, bars, check.statistic, tone), class_="luck")


def wide_picture(check: Check) -> Element | None:
    """Returns the picture of a check that compares more than one number; None without any."""
    if check.outcome == "unchecked":
        return None
    match check.code:
        case "model-returns":
            return more("Returns and values, state by state", returns_figure(check))
        case "hidden-causes":
            return hidden_figure(check)
        case "enough-data":
            return more("Where the new policy spends its time", places_figure(check))
        case _:
            return None


def returns_figure(check: Check) -> Element:
    """Returns what luck leaves around the model's values, and mean returns as strokes."""
    marks = check.picture
    ends = [end for mark in marks for end in (mark.low, mark.high, mark.value)]
    strips = [
        Strip(
            mark.name,
            amount=f"{number(mark.value, 3)}, model {number(mark.beside or 0.0, 3)}",
            segments=[Segment(mark.low, mark.high, tone_of_range(mark), faint=True)],
            point=mark.value,
        )
        for mark in marks
    ]
    caption = Caption(
        "check-returns",
        "Mean returns and the model's values",
        "Strokes are mean returns of the episodes from their first visit of a state on; bars are "
        "what luck alone does around the values that the model says.",
    )
    return figure(
        strip_chart(caption, strips, Axis.around("return from there on", ends), ()),
        caption.description,
        numbers=data_table(
            "returns-numbers",
            "Mean returns, values of the model, and what luck does around them",
            [Column("state"), *(Column(text, "number") for text in RETURNS_COLUMNS)],
            [
                Row(
                    [
                        Cell(label(mark.name)),
                        *(
                            Cell(number(value))
                            for value in (mark.value, mark.beside or 0.0, mark.low, mark.high)
                        ),
                    ]
                )
                for mark in marks
            ],
        ),
    )


RETURNS_COLUMNS = ("mean return", "model", "luck from", "to")


def tone_of_range(mark: Mark) -> Tone:
    """Returns vermilion where a value lies outside its range."""
    return "blue" if mark.low <= mark.value <= mark.high else "vermilion"


def hidden_figure(check: Check) -> Element:
    """Returns the changes of chances that the claim stands, on an axis of powers of ten."""
    figures = check.figures
    low = min(SMALLEST_CHANGE, figures["proved"] / 2)
    strips = [
        Strip(name, amount=small_percent(figures[key]), segments=[Segment(low, figures[key], tone)])
        for name, key, tone in STANDS_CHANGES
    ]
    caption = Caption(
        "check-hidden",
        "How strong hidden causes may be",
        f"The claim stands changes of up to {small_percent(figures['estimated'])} of the chances "
        "of every step by the model's values, and of up to "
        f"{small_percent(figures['proved'])} by value bounds alone.",
    )
    axis = Axis("change of the chances, as a share", low, 1.0, log=True)
    return figure(strip_chart(caption, strips, axis, ()), caption.description)


STANDS_CHANGES: tuple[tuple[str, str, Tone], ...] = (
    ("by the model's values", "estimated", "orange"),
    ("by value bounds", "proved", "blue"),
)


def places_figure(check: Check) -> Element:
    """Returns where the new policy spends most time, and what share of the log is there."""
    strips = [
        Strip(
            mark.name,
            amount=f"{percent(mark.value)}, log {percent(mark.beside or 0.0)}",
            segments=[
                Segment(mark.low, mark.high, "vermilion" if mark.marked else "blue", STRIP / 2)
            ],
            point=mark.beside,
        )
        for mark in check.picture
    ]
    caption = Caption(
        "check-places",
        "Where the new policy spends its time",
        "Bars are shares of the new policy's time, as estimated, strokes shares of the log's "
        "decisions; in red, states that the log hardly visits, or of open bins.",
    )
    most = max((max(mark.high, mark.beside or 0.0) for mark in check.picture), default=1.0)
    axis = Axis("share", 0.0, 1.05 * most)
    return figure(strip_chart(caption, strips, axis, ()), caption.description)
