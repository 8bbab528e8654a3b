"""Half and twice the states that were learnt, from the rows that taught them.

They are to show whether a claim rests on how finely states are cut. A result must be the same again
wherever it is made, so nothing but NumPy has a part in them: leaves, clusters and bins are cut in
two, or put together two by two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from surestep._arrays import BoolArray
from surestep.io.labels.bin_rules import coarser_option, edges_option, finer_option, read_bin_option
from surestep.io.labels.binning import Binning
from surestep.io.labels.state_rules import CentreRule, Split, StateRule, TreeRule
from surestep.io.logs.histories import columns_in_files
from surestep.io.logs.learnt_states import raw_states, rule_of
from surestep.io.logs.source import LogSource
from surestep.states.choosing_size import Rows
from surestep.states.learning import ROWS_A_STATE, first_rows
from surestep.states.of_log import teaching_episodes
from surestep.states.regression_trees import short_between

ROUNDS = 20  # of moving two centres: a cluster need not be cut in the best way


def other_sizes(source: LogSource, discount: float) -> tuple[LogSource, LogSource] | None:
    """Returns a log whose states were learnt with half and with twice as many states.

    What these are is learnt from the episodes that taught the states (`learnt_from`). None where
    they teach no finer ones.
    """
    reading, rule = source.reading, rule_of(source.reading.states_from)
    rows, columns = teaching_rows(source, discount)
    if rule is None:
        finer = tuple(finer_bins(reading.bins, rows, columns))
        if finer == tuple(reading.bins):
            return None
        coarser = tuple(coarser_bins(reading.bins, columns))
        readings = [replace(reading, bins=bins) for bins in (coarser, finer)]
    else:
        measured = rows._replace(values=rows.values[:, [*map(columns.index, rule.columns)]])
        rules = [half_of(rule, measured), twice_of(rule, measured)]
        if rules[1].num_states == rule.num_states:
            return None
        texts = [json.dumps(each.to_json(), ensure_ascii=False) for each in rules]
        readings = [replace(reading, states_from=text) for text in texts]
    coarse, fine = map(source.again, readings)
    return coarse, fine


def teaching_rows(source: LogSource, discount: float) -> tuple[Rows, tuple[str, ...]]:
    """Returns the rows that taught the states of a log, and the columns that they measure."""
    reading, rule = source.reading, rule_of(source.reading.states_from)
    columns = dict(columns_in_files(source.columns.by_role(), reading))
    if rule is not None:
        columns["state"] = raw_states(tuple(columns["state"]), rule)
    # Before they were learnt, states were the measurements themselves.
    before = replace(reading, bins=(), states_from="bins", learnt_from=None, history=None)
    number = reading.learnt_from or 0
    rows, measured, _ = teaching_episodes(
        source.again(before, columns), lambda total: number, discount
    )
    return first_rows(rows), measured


def half_of(rule: StateRule, rows: Rows) -> StateRule:
    """Returns the rule with half as many states, but two at the least."""
    wanted = max(rule.num_states // 2, 2)
    return pruned(rule, rows, wanted) if isinstance(rule, TreeRule) else merged(rule, rows, wanted)


def twice_of(rule: StateRule, rows: Rows) -> StateRule:
    """Returns the rule with each state cut in two, where the rows allow it."""
    if isinstance(rule, CentreRule):
        return replace(rule, centres=tuple(halved_clusters(rule, rows)))

    def cut(split: Split | None, members: Rows) -> Split | None:
        if split is None:
            return best_split(rule.columns, members)
        low = members.values[:, rule.columns.index(split.column)] < split.threshold
        below, above = chosen(members, low), chosen(members, ~low)
        return replace(split, below=cut(split.below, below), above=cut(split.above, above))

    root = cut(rule.root, rows)
    assert root is not None
    return replace(rule, root=root)


# ---- leaves -----------------------------------------------------------------------------------


def best_split(columns: tuple[str, ...], rows: Rows) -> Split | None:
    """Returns the split of a leaf that tells returns apart best; None where none is large enough.

    Each side has as many rows as a leaf has at the least. What a split tells is the sum of squares
    between the means of both sides.
    """
    number, best = rows.returns.size, (0.0, "", 0.0)
    if number < 2 * ROWS_A_STATE:
        return None
    spread = rows.returns - rows.returns.mean()
    for column, values in zip(columns, rows.values.T, strict=True):
        order = np.argsort(values, kind="stable")
        ordered, below = values[order], np.cumsum(spread[order])[:-1]
        count = np.arange(1, number)
        told = below**2 / count + below**2 / (number - count)
        few = np.minimum(count, number - count) < ROWS_A_STATE
        told[few | (ordered[1:] == ordered[:-1])] = 0.0
        place = int(np.argmax(told))
        if told[place] > best[0]:
            threshold = short_between(float(ordered[place]), float(ordered[place + 1]))
            best = (float(told[place]), column, threshold)
    return None if best[0] == 0 else Split(best[1], best[2], None, None)


def pruned(rule: TreeRule, rows: Rows, leaves: int) -> TreeRule:
    """Returns the tree without the last splits that tell least, until it has so many leaves."""
    root = rule.root
    for _ in range(rule.num_states - leaves):
        _, last = min(last_splits(root, rows, rule.columns), key=lambda told: told[0])
        root = without(root, last)
    return replace(rule, root=root)


def last_splits(
    split: Split, rows: Rows, columns: tuple[str, ...]
) -> Iterator[tuple[float, Split]]:
    """Yields the splits between two leaves, with how much each tells of the rows there."""
    low = rows.values[:, columns.index(split.column)] < split.threshold
    sides = [(split.below, chosen(rows, low)), (split.above, chosen(rows, ~low))]
    for side, members in sides:
        if side is not None:
            yield from last_splits(side, members, columns)
    if split.below is None and split.above is None:
        spread = rows.returns - rows.returns.mean() if rows.returns.size else rows.returns
        told = [float(spread[side].sum()) ** 2 / max(side.sum(), 1) for side in (low, ~low)]
        yield sum(told), split


def without(split: Split, last: Split) -> Split:
    """Returns the tree with a leaf in place of one of its splits, but for the first one."""
    sides = (
        None if side is last or side is None else without(side, last)
        for side in (split.below, split.above)
    )
    below, above = sides
    return replace(split, below=below, above=above)


def chosen(rows: Rows, members: BoolArray) -> Rows:
    """Returns some of the rows [N]; their episodes do not matter."""
    return rows._replace(values=rows.values[members], returns=rows.returns[members])


# ---- clusters ---------------------------------------------------------------------------------


def halved_clusters(rule: CentreRule, rows: Rows) -> Iterator[tuple[float, ...]]:
    """Yields the centres of twice as many clusters: two for each that has enough rows.

    They begin at the means of both sides of the median of the column that varies most, and then
    move to the means of the rows that are nearest to them (Lloyd 1982).
    """
    state, units = rule.indices(rows.values), np.array(rule.units)
    for number, centre in enumerate(rule.centres):
        members = rows.values[state == number] / units
        widest = members[:, int(np.argmax(members.std(axis=0)))] if members.size else members
        low = widest <= np.median(widest) if members.size else np.zeros(0, np.bool_)
        if members.shape[0] < 2 * ROWS_A_STATE or low.all():
            yield centre
            continue
        for _ in range(ROUNDS):
            below, above = members[low].mean(axis=0), members[~low].mean(axis=0)
            nearer = ((members - below) ** 2).sum(axis=1) <= ((members - above) ** 2).sum(axis=1)
            if nearer.all() or not nearer.any() or (nearer == low).all():
                break
            low = nearer
        yield tuple((below * units).tolist())
        yield tuple((above * units).tolist())


def merged(rule: CentreRule, rows: Rows, clusters: int) -> CentreRule:
    """Returns the nearest two centres put together, again and again, until there are so many.

    Near are those whose union has the least more squares around its mean (Ward 1963).
    """
    units = np.array(rule.units)
    centres = np.array(rule.centres) / units
    weight = np.bincount(rule.indices(rows.values), minlength=rule.num_states).astype(float)
    while weight.size > clusters:
        apart = ((centres[:, None] - centres[None]) ** 2).sum(axis=2)
        total = weight[:, None] + weight[None]
        cost = apart * weight[:, None] * weight[None] / np.maximum(total, 1.0)
        cost[np.tril_indices(weight.size)] = np.inf
        one, other = np.unravel_index(int(np.argmin(cost)), cost.shape)
        shares = np.array([weight[one], weight[other]]) / max(total[one, other], 1.0)
        if shares.sum() > 0:
            centres[one] = shares[0] * centres[one] + shares[1] * centres[other]
        weight[one] = total[one, other]
        centres, weight = np.delete(centres, other, axis=0), np.delete(weight, other)
    return replace(rule, centres=tuple(map(tuple, (centres * units).tolist())))


# ---- bins -------------------------------------------------------------------------------------


def coarser_bins(bins: Sequence[str], columns: tuple[str, ...]) -> Iterator[str]:
    """Yields each rule of bins, with half of them where it is of one of the columns."""
    for rule in bins:
        yield coarser_option(rule) if read_bin_option(rule)[0] in columns else rule


def finer_bins(bins: Sequence[str], rows: Rows, columns: tuple[str, ...]) -> Iterator[str]:
    """Yields each rule of bins, with bins between edges cut at the median of the rows in them.

    Other rules say themselves what twice the bins are.
    """
    for rule in bins:
        column, binning = read_bin_option(rule)
        if column not in columns:
            yield rule
            continue
        if not isinstance(binning, Binning) or binning.edges is None:
            yield finer_option(rule)
            continue
        values = rows.values[:, columns.index(column)]
        place, edges = binning.indices(values), {*binning.edges}
        for number in range(len(binning.edges) + 1):
            inside = values[place == number]
            distinct = np.unique(inside)
            if inside.size >= 2 * ROWS_A_STATE and distinct.size > 1:
                above = min(
                    max(int(distinct.searchsorted(np.median(inside))), 1), distinct.size - 1
                )
                edges.add(short_between(float(distinct[above - 1]), float(distinct[above])))
        yield edges_option(column, sorted(edges))
