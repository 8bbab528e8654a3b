"""Evidence: all that an improvement is made from, read and fitted together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from surestep._files import read_path
from surestep.errors import InvalidParameter
from surestep.io.counts.file import is_counts_file, read_counts
from surestep.io.counts.labelled import LabelledCounts, counts_digest, merge_counts
from surestep.io.labels.behavior import BehaviorTable, read_behavior_table
from surestep.io.labels.label import Label
from surestep.io.labels.tables import nowhere, read_label_list
from surestep.io.labels.vocabulary import read_labels
from surestep.io.logs.columns import ROLES
from surestep.io.logs.source import LogSource, read_log
from surestep.io.logs.tables import matching
from surestep.pipeline.assembly import Assembly, BehaviorKind, assemble
from surestep.pipeline.certifying import RewardFacts
from surestep.results.record import InputFile

Inferred = Literal["propensities", "estimate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The counted log, the behavior policy, and where both came from."""

    counts: LabelledCounts
    assembly: Assembly
    behavior: BehaviorKind
    states: str  # "observed", "listed" or "behavior table"
    actions: str
    columns: Mapping[str, Sequence[str]]  # by role
    bins: tuple[str, ...]  # the rules, as given
    files: tuple[InputFile, ...]
    defaults: tuple[str, ...]  # of the above, what nobody said
    source: LogSource | None  # None where only counts are given
    rewards: RewardFacts

    @property
    def has_episodes(self) -> bool:
        """Tells whether there are whole episodes, step by step."""
        return self.source is not None and has_episodes(self.source, self.counts)

    @property
    def seed(self) -> int:
        """Returns the seed of certificates where none is given: nobody can have tried others."""
        return seed_of(self.counts)


def has_episodes(source: LogSource, counts: LabelledCounts) -> bool:
    """Returns whether there are whole episodes, step by step."""
    return bool(counts.episodes.recorded) and source.columns.weight is None


def seed_of(counts: LabelledCounts) -> int:
    """Returns a seed that the data decide."""
    return int(counts_digest(counts)[:15], 16)


def gather(
    source: object, behavior: object = None, states: object = None, actions: object = None
) -> Evidence:
    """Reads and counts everything; see `improve` for what may be given."""
    log = CountsSource(source) if isinstance(source, LabelledCounts) else source
    log = log if isinstance(log, LogSource | CountsSource) else read_log(log)
    counts = log.counts()
    table = behavior_of(behavior, counts)
    lists_given = {"state": states, "action": actions}
    lists = {role: labels_of(given, role, counts) for role, given in lists_given.items()}
    kind: BehaviorKind = "table" if isinstance(table, BehaviorTable) else table
    files = [*(InputFile.of("log", path) for path in log.files)]
    for role, given in (("behavior", behavior), ("states", states), ("actions", actions)):
        if isinstance(given, str | os.PathLike) and not (role == "behavior" and kind != "table"):
            files += [InputFile.of(role, path) for path in matching(read_path(given))]
    known = {role: "observed" if each is None else "listed" for role, each in lists.items()}
    if kind == "table":
        known = dict.fromkeys(known, "behavior table")
    return Evidence(
        counts=counts,
        assembly=assemble(
            counts,
            table,
            lists["state"],
            lists["action"],
            log.place_of if isinstance(log, LogSource) else nowhere,
        ),
        behavior=kind,
        states=known["state"],
        actions=known["action"],
        columns=columns_of(log),
        bins=log.bins,
        files=tuple(files),
        defaults=("behavior",) if behavior is None else (),
        source=log if isinstance(log, LogSource) else None,
        rewards=RewardFacts.of(counts),
    )


@dataclass(frozen=True, slots=True)
class CountsSource:
    """Counts in place of a log, and the files that they came from."""

    labelled: LabelledCounts
    files: tuple[Path, ...] = ()
    bins: ClassVar[tuple[str, ...]] = ()  # they were binned when they were made

    def counts(self) -> LabelledCounts:
        """The counts, as a log gives them."""
        return self.labelled


def open_source(
    paths: str | Path | Sequence[str | Path],
    *,
    columns: Mapping[str, Sequence[str]],
    bins: Sequence[str],
    memory_limit: str | None,
) -> LogSource | CountsSource:
    """Opens a log in files, or the counts of one that `surestep count` wrote."""
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    files = tuple(map(read_path, paths))
    found = [*map(is_counts_file, files)]
    if not any(found):
        return read_log(paths, columns=columns, bins=bins, memory_limit=memory_limit)
    if not all(found):
        raise InvalidParameter(
            f"{files[found.index(True)]} holds counts, but {files[found.index(False)]} does not; "
            "expected a log or counts, not both"
        )
    for given, value in (("bins are", bins), ("columns are", columns)):
        if value:
            raise InvalidParameter(
                f"{given} given, but {files[0]} holds counts, which have theirs already; expected "
                "none beside counts"
            )
    return CountsSource(merge_counts([read_counts(path) for path in files]), files)


def behavior_of(behavior: object, counts: LabelledCounts) -> BehaviorTable | Inferred:
    """The table that is given, or how π_b is found in the log itself."""
    if isinstance(behavior, BehaviorTable):
        return behavior
    if behavior is None:
        return "estimate" if counts.transitions.lowest is None else "propensities"
    word = behavior if isinstance(behavior, str) else ""
    if word == "estimate":
        return "estimate"
    if word == "propensities":
        if counts.transitions.lowest is None:
            raise InvalidParameter(
                "behavior is 'propensities', but no column of the log says with which probability "
                "its actions were taken; name it with --behavior-prob"
            )
        return "propensities"
    columns = counts.state_columns, counts.action_columns
    return read_behavior_table(behavior, *columns, counts.binnings)


def labels_of(given: object, role: str, counts: LabelledCounts) -> tuple[Label, ...] | None:
    """Reads the labels in a file or table, or in a list of them."""
    columns = getattr(counts, f"{role}_columns")
    if given is None:
        return None
    if not isinstance(given, list | tuple):
        return read_label_list(given, role, columns, counts.binnings)
    return read_labels(
        role, columns, [(each,) if isinstance(each, str) else each for each in given]
    )


def columns_of(log: LogSource | CountsSource) -> dict[str, tuple[str, ...]]:
    """Returns the columns of each role that there are."""
    if isinstance(log, CountsSource):
        return {"state": log.labelled.state_columns, "action": log.labelled.action_columns}
    found = {role: getattr(log.columns, role) for role in ROLES}
    return {
        role: (names,) if isinstance(names, str) else tuple(names)
        for role, names in found.items()
        if names
    }
