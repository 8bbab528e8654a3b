"""Performance profiles: which share of the repetitions reaches how much, all of it at a glance."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surestep._arrays import AnyArray, FloatArray
from surestep._drawing import drawing, picture_format, rendered
from surestep.experiments import Method, Profile, Run, profile, selected, valued
from surestep.experiments.metrics import Group, floats, groups_of
from surestep.experiments.naming import environment_name, size_words, typeset
from surestep.experiments.panels import check_lines, check_number, names_of
from surestep.figures.curves import (
    LABELS,
    LEVEL,
    band_handle,
    draw_band,
    legend_below,
    line_handles,
    looks_of,
)
from surestep.figures.request import Files, Request

LEVELS = 201  # at which shares are counted, evenly over all that is reached in an environment
SHOWN = 3  # data sizes, where nobody says which
PARTS = ("algorithm", "setting", "n-wedge")


def draw_profiles(run: Run, path: Path, request: Request) -> Files:
    """Draws profiles of a run for `path`, and the table beside it.

    A column for each data size, of which three are taken unless some are chosen; a row for each
    environment. A band holds for its whole profile at once.
    """
    kind, value = picture_format(path), request.value or "normalised"
    groups = list(groups_of(valued(selected(run, request.selection), value)))
    sizes = sorted({group.episodes for group in groups})
    if not request.selection.episodes:
        places = np.linspace(0, len(sizes) - 1, min(SHOWN, len(sizes))).round()
        sizes = [sizes[int(place)] for place in places]
    groups = [group for group in groups if group.episodes in sizes]
    environments = list(dict.fromkeys(group.environment for group in groups))
    methods = list(dict.fromkeys(group.method for group in groups))
    check_number(len(environments), len(sizes))
    check_lines(len(methods))
    looks = looks_of(methods, PARTS)
    profiles = profiles_of(groups)
    with drawing(3.8 * max(len(sizes), 1.3), 2.9 * len(environments) + 1.0, request.look) as figure:
        grid = figure.subplots(
            len(environments), len(sizes), sharex="row", sharey=True, squeeze=False
        )
        for group, made in zip(groups, profiles, strict=True):
            axes = grid[environments.index(group.environment), sizes.index(group.episodes)]
            look = looks[group.method] | {"markevery": LEVELS // 10}
            axes.plot(made.levels, made.share, **look)
            if request.bands:
                draw_band(
                    axes, made.levels.tolist(), made.low.tolist(), made.high.tolist(), look["color"]
                )
        label_panels(grid, environments, sizes, LABELS[value])
        handles = line_handles(names_of(methods, PARTS), looks)
        legend_below(figure, [*handles, band_handle()] if request.bands else handles)
        return {path: rendered(figure, kind), path.with_suffix(".csv"): as_csv(groups, profiles)}


def profiles_of(groups: Sequence[Group]) -> list[Profile]:
    """Returns the profiles of the groups, those of one environment at the same levels."""
    reached: dict[str, list[FloatArray]] = {}
    for group in groups:
        reached.setdefault(group.environment, []).append(floats(group.rows, "performance"))
    levels = {}
    for environment, values in reached.items():
        low, high = min(map(np.min, values)), max(map(np.max, values))
        room = 0.02 * (high - low) or 0.5
        levels[environment] = np.linspace(low - room, high + room, LEVELS)
    return [
        profile(floats(group.rows, "performance"), levels[group.environment]) for group in groups
    ]


def label_panels(
    grid: AnyArray, environments: Sequence[str], sizes: Sequence[int], label: str
) -> None:
    """Writes what panels are of, and marks what π_b reaches where that is 0."""
    for place, (row, environment) in enumerate(zip(grid, environments, strict=True)):
        name = environment_name(environment) if len(environments) > 1 else ""
        row[0].set_ylabel(typeset("\n".join(filter(None, ["share of repetitions ≥ τ", name]))))
        for axes, size in zip(row, sizes, strict=True):
            axes.set_ylim(-0.02, 1.02)
            if not label.startswith("performance"):
                axes.axvline(0.0, **LEVEL)
            if place == 0:
                axes.set_title(size_words(size, environments), fontweight="normal")
            axes.set_xlabel(typeset(f"{label}: τ"))


def as_csv(groups: Sequence[Group], profiles: Sequence[Profile]) -> bytes:
    """Returns all profiles as CSV, a level a line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["environment", "episodes", *Method._fields, *Profile._fields])
    for group, made in zip(groups, profiles, strict=True):
        for numbers in zip(*(column.tolist() for column in made), strict=True):
            rounded = [float(f"{number:.9g}") for number in numbers]
            writer.writerow([group.environment, group.episodes, *group.method, *rounded])
    return text.getvalue().encode()
