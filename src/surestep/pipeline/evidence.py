"""Reads all that an improvement is made from: the log, tables beside it, π_b and the terms.

|S|, |A| and the enabled pairs follow from the rows of the behavior table, else from the table of
possible pairs, else from the lists of states and actions; else every action seen anywhere is
enabled in every state seen. States in which nothing is decided come last and have one action, the
first; they count in |S|.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import msgspec
import numpy as np

import surestep.description as keys
from surestep._arrays import BoolArray, first_where, freeze, run_sums
from surestep._files import read_path
from surestep._names import unknown
from surestep.certificates import Certifier
from surestep.errors import InvalidParameter
from surestep.io.counts.file import kind_of_counts, read_counts
from surestep.io.counts.labelled import LabelledCounts, merge_counts
from surestep.io.labels.label_tables import (
    PairTable,
    check_listed,
    check_log_fits,
    policy_from_propensities,
    propensities_vary,
    propensity_ranges,
    read_label_table,
    read_lifted,
)
from surestep.io.labels.learnt_states import LearntStates, learn
from surestep.io.labels.vocabulary import Label, Vocabulary, check_labels, in_order, with_names
from surestep.io.logs.columns import ColumnMapping, naming
from surestep.io.logs.loading import RANDOM, STOPPED, UNEXPLAINED, UNFINISHED
from surestep.io.logs.source import LogSource, open_log
from surestep.io.logs.tables import matching
from surestep.io.logs.warehouse import WarehouseTables, read_tables
from surestep.kernels.runs import discounted_returns
from surestep.model import Counts, DecisionLog, Policy, Statement, estimate_behavior
from surestep.model.known import Known
from surestep.model.numbering import Numbering, by_appearance
from surestep.model.statements import STOPPING
from surestep.pipeline.terms import Terms, facts_of
from surestep.results.record import ROW_PROPENSITIES, InputFile

Inferred = Literal["uniform", "propensities", "row-propensities", "estimate"]
MOST_LOADED = 5_000_000  # rows of a log that are loaded where no claim needs its steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The counted log, the behavior policy, the terms, and where all of it came from."""

    terms: Terms
    told: Known  # facts from which certifiers take settings
    certifiers: tuple[Certifier, ...]  # of the terms; the first is the main one
    counts: LabelledCounts
    assembly: "Assembly"
    resting: tuple[Label, ...]  # states in which nothing is decided, in the order of labels
    kinds: Mapping[str, Any]  # the kinds of input beside the log, as in `Parameters`
    description: keys.Description
    files: tuple[InputFile, ...]
    defaults: tuple[str, ...]  # names of the parameters left to defaults
    source: "LogSource | CountsSource"
    guideline: PairTable | None = None

    @property
    def log_source(self) -> LogSource | None:
        """Returns the log that was read; None where only counts are given."""
        return self.source if isinstance(self.source, LogSource) else None


# What an improvement takes beside the log: the paths of their keys in a description.
SOURCES = {
    name: keys.PATHS[name] for name in ("behavior", *keys.LimitKeys.__struct_fields__, "guideline")
}


def gather(
    log: "LogSource | CountsSource", terms: Terms, objects: Mapping[str, object] | None = None
) -> Evidence:
    """Reads, counts and numbers everything that a description names.

    `objects` of Python, by the names of `SOURCES`, stand in for files. Under terms that split the
    log, its first part alone says where bins by quantiles begin.
    """
    given = {name: keys.at(log.description, path) for name, path in SOURCES.items()}
    given |= objects or {}
    said = log.description.given()
    for role in objects or {}:  # objects have no names in a description
        keys.put(said, SOURCES[role], None)
    source = log if isinstance(log, LogSource) else None
    if source is not None:
        source.check_one_decision(terms.discount)
        log = source = with_learnt_states(with_edges(source, terms), terms.discount)
    counts = log.counts()
    facts = facts_of(counts)
    in_order = source is not None or isinstance(log, TablesSource)
    terms = replace(terms, has_episodes=in_order and facts.episodes > 0)
    terms = log.terms(terms) if isinstance(log, TablesSource) else terms
    told = terms.certifier_settings(facts)
    certifiers = tuple(asked.make_with(told) for asked in terms.asked)
    behavior = behavior_of(given["behavior"], counts, source)
    seen = keys.is_word(SOURCES["possible"], given["possible"])
    possible, limits, guideline = (
        None
        if given[name] is None or keys.is_word(SOURCES[name], given[name])
        else pair_table_of(given[name], counts, source)
        for name in ("possible", "allowed", "guideline")
    )
    lists = {name: labels_of(given[name], name[:-1], counts) for name in ("states", "actions")}
    kinds = {name: "observed" if labels is None else "listed" for name, labels in lists.items()}
    if isinstance(behavior, PairTable) or possible is not None:
        told_by = "possible pairs" if isinstance(behavior, str) else "behavior table"
        kinds = dict.fromkeys(kinds, told_by)
    kinds |= {
        "behavior": behavior if isinstance(behavior, str) else "table",
        "possible": keys.SEEN if seen else "all" if possible is None else "listed",
        "allowed": "all" if limits is None else "listed",
        "guideline": "none" if guideline is None else "listed",
    }
    files = [("log", path) for path in log.files]
    for role, name in (
        *given.items(),
        *(("tables", name) for name in log.description.tables.values()),
    ):
        if isinstance(name, str | os.PathLike) and not keys.is_word(SOURCES.get(role, role), name):
            files += [(role, path) for path in matching(read_path(name))]
    learnt = {} if source is None else source.learnt
    parts = assemble(counts, behavior, **lists, possible=possible, learnt=learnt, log=source)
    parts = parts if limits is None else within(parts, limits)
    words = with_names(parts.vocabulary, log.description.names)
    return Evidence(
        terms=terms,
        told=told,
        certifiers=certifiers,
        counts=counts,
        assembly=numbered(
            replace(parts, vocabulary=words),
            log,
            counts,
            terms.looking(certifiers),
            of_rows=(behavior == ROW_PROPENSITIES),
        ),
        resting=tuple(words.states[s] for s in np.flatnonzero(parts.quiet)),
        kinds=kinds,
        description=keys.described(said),
        files=tuple(InputFile.of(*file) for file in files),
        defaults=("behavior",) if given["behavior"] is None else (),
        source=log,
        guideline=guideline,
    )


def with_edges(log: LogSource, terms: Terms) -> LogSource:
    """Returns the log with edges of quantiles from the part that chooses the policy alone."""
    bins = log.description.bins.items()
    by_quantile = [name for name, rule in bins if rule.width is None and rule.edges is None]
    by_returns = [name for name, rule in bins if rule.tree is not None or rule.kmeans == keys.AUTO]
    if by_returns and not terms.splits:
        raise InvalidParameter(
            f"the states {by_returns[0]!r} are learnt from returns, by the part of the log that "
            "chooses the policy, but no certificate holds a part out to judge it; expected one "
            "that does, such as stitched"
        )
    if not by_quantile or log.columns.episode is None or not terms.splits:
        return log
    if terms.of_split("logger") == "fixed":
        raise InvalidParameter(
            f"the bins of {by_quantile[0]!r} follow from the part of the log that chooses the "
            "policy, but with the logger 'fixed' that part is drawn at random; expected edges of "
            "your own, or the logger 'adaptive', for whom it is the first one"
        )
    return replace(log, edges_from=terms.share_of)


def with_learnt_states(log: LogSource, discount: float) -> LogSource:
    """Returns the log with the states that measurements teach, by the part that chooses."""
    for name, rule in log.to_learn.items():
        columns = keys.several(rule.columns)
        for missing in (column for column in columns if column not in log.types):
            raise unknown(f"there is no column {missing!r} to learn from", missing, log.types)
        if log.columns.episode is None:
            raise InvalidParameter(
                f"the states {name!r} are learnt from what rows of episodes return, but the log "
                f"has no episodes; name them with {naming('episode', 'step')}"
            )
        rows = log.measured(columns)
        episode = rows["surestep episode"]
        values = np.stack([rows[column] for column in columns], axis=1)
        begins = np.flatnonzero(np.diff(episode, prepend=0, append=0))  # episodes count from 1
        returns = discounted_returns(begins, rows["surestep reward"], discount)
        log = log.with_states(learn(name, rule, values, returns, episode))
    return log


@dataclass(frozen=True, slots=True)
class CountsSource:
    """Counts in place of a log, and the files that they came from."""

    serves: ClassVar[tuple[str, ...]] = ()  # what looks at more than counts, and need not
    labelled: LabelledCounts
    files: tuple[Path, ...] = ()
    description: keys.Description = field(default_factory=keys.Description)

    @property
    def columns_in_files(self) -> dict[str, tuple[str, ...]]:
        """Returns the columns of each role that the files have."""
        return {"state": self.labelled.state_columns, "action": self.labelled.action_columns}

    def counts(self) -> LabelledCounts:
        """Returns the counts, as a log gives them."""
        return self.labelled

    def tied(self) -> int:
        """Returns how many rows were decided at one time with others: no counts say so."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesSource(CountsSource):
    """The tables that a warehouse made of a log: counts, and the first entries of its stacks."""

    serves: ClassVar = ("stitched", "posterior", "robust")
    made: WarehouseTables

    def tied(self) -> int:
        """Returns how many rows of the log were decided at one time with others."""
        return self.made.tied

    def terms(self, terms: Terms) -> Terms:
        """Returns the terms with the share of the tables; refuses another split of the log."""
        share = self.made.share
        if (
            terms.of_split("train_share") not in (None, share)
            or terms.of_split("logger") == "fixed"
        ):
            raise InvalidParameter(
                f"the tables were split after the first {share:g} of the episodes; expected "
                f"train_share {share:g} and the logger 'adaptive', or queries with another share"
            )
        return replace(terms, method=msgspec.structs.replace(terms.method, train_share=share))


def open_source(
    description: keys.Description, frame: object = None, memory_limit: str | None = None
) -> LogSource | CountsSource:
    """Opens a log in files or in memory, or the counts of one that `surestep count` wrote."""
    files = tuple(map(read_path, keys.several(description.files)))
    kinds = {kind_of_counts(file) for file in files} - {None}
    if not isinstance(frame, LabelledCounts) and not kinds:
        return open_log(description, frame, memory_limit)
    first = next(iter(description.signals.values()), None)
    told = description.given()
    if first is not None and told["columns"] == {"reward": first.column}:  # it says what it was
        del told["columns"]
    for name in {*keys.HOW_TO_READ} & {*told}:
        raise InvalidParameter(
            f"{name} is given beside counts, which were read already; expected no way to read a log"
        )
    if "table" in kinds:
        made = read_tables(files)
        whole = replace(made.counts, ends_apart=description.unsafe.states is not None)
        return TablesSource(whole, files, description, made=made._replace(counts=whole))
    if not isinstance(frame, LabelledCounts):
        frame = merge_counts([*map(read_counts, files)])
    counts = replace(frame, ends_apart=description.unsafe.states is not None)
    return CountsSource(counts, files, description)


def check_there(description: keys.Description) -> None:
    """Refuses a description one of whose files is not there."""
    for name in keys.several(description.files):
        matching(read_path(name))


def behavior_of(
    behavior: object, counts: LabelledCounts, source: LogSource | None
) -> PairTable | Inferred:
    """Returns the table that is given, or how π_b is found without one."""
    logged = counts.transitions.lowest is not None
    if behavior is None and not logged:
        return "estimate"
    if behavior is None:
        return "row-propensities" if propensities_vary(counts) else "propensities"
    if not isinstance(behavior, str) or behavior not in keys.WORDS_FOR_BEHAVIOR:
        return pair_table_of(behavior, counts, source, policy=True)
    word = cast(Inferred, behavior)
    if word in ("propensities", "row-propensities") and not logged:
        raise InvalidParameter(
            f"behavior is {word!r}, but no column of the log says with which probability its "
            f"actions were taken; name it with {naming('propensity')}"
        )
    return word


def labels_of(given: object, role: str, counts: LabelledCounts) -> tuple[Label, ...] | None:
    """Reads the labels in a file or table, or in a list of them."""
    columns = getattr(counts, f"{role}_columns")
    if isinstance(given, list | tuple):
        labels = [(label,) if isinstance(label, str) else label for label in given]
        return check_labels(role, columns, labels)
    if given is None:
        return None
    return tuple(read_label_table(given, {role: columns}, counts.binnings).labels[role])


def pair_table_of(
    given: object, counts: LabelledCounts, source: LogSource | None, *, policy: bool = False
) -> PairTable:
    """Reads the pairs in a file or table, of a policy with their probabilities.

    A log that is read with a memory says which columns are of the present.
    """
    columns = (
        ColumnMapping(counts.state_columns, counts.action_columns, "")
        if source is None
        else source.columns
    )
    return read_lifted(given, columns, counts.states, counts.binnings, policy=policy)


@dataclass(frozen=True, slots=True)
class Assembly:
    """The parts of a problem, but for its terms."""

    vocabulary: Vocabulary
    counts: Counts
    behavior: Policy
    quiet: BoolArray  # [S] nothing is decided there
    premises: tuple[Statement, ...]
    allowed: BoolArray | None = None  # [K] what may be recommended; None: all
    log: DecisionLog | None = None  # every step; None where none were loaded
    has_times: bool = False  # a column says when each step was decided
    looked_at: bool = False  # the problem is posed with whole episodes
    numbering: Numbering | None = None  # by first appearance; None: in the order of labels


def numbered(
    parts: Assembly,
    source: LogSource | CountsSource,
    counts: LabelledCounts,
    looking: Sequence[str],
    *,
    of_rows: bool,
) -> Assembly:
    """Loads the steps of the log, and renumbers states and actions by first appearance.

    Steps are loaded if the algorithm or a certifier (named in `looking`) needs whole episodes, or
    if the log has episodes and is not too large. Otherwise the parts stay unchanged. `of_rows` asks
    for the propensities of rows.
    """
    serves = looking if isinstance(source, LogSource) else source.serves
    unserved = [name for name in looking if name not in serves]
    if unserved:
        raise InvalidParameter(
            f"{unserved[0]} looks at whole episodes, but only counts are given; expected a log"
        )
    few = counts.episodes.recorded and counts.rows_read <= MOST_LOADED
    if not isinstance(source, LogSource | TablesSource) or not (looking or few):
        return parts
    if isinstance(source, TablesSource):
        log = source.made.load(parts.counts.pairs)
    else:
        propensities = of_rows and counts.transitions.lowest is not None
        log = source.load(parts.counts.pairs, counts, propensities=propensities, numbered=True)
    numbering = by_appearance(log, parts.quiet)
    log = numbering.log(log)
    log = source.made.known(log) if isinstance(source, TablesSource) else log
    return replace(
        parts,
        vocabulary=parts.vocabulary.picked(numbering.state, numbering.action),
        counts=log.counts(),
        behavior=numbering.policy(parts.behavior),
        quiet=parts.quiet[numbering.state],
        allowed=None if parts.allowed is None else parts.allowed[numbering.pair],
        log=log,
        has_times=isinstance(source, TablesSource) or source.columns.time is not None,
        looked_at=bool(looking),
        numbering=numbering,
    )


def assemble(
    counts: LabelledCounts,
    behavior: PairTable | Inferred,
    *,
    states: Sequence[Label] | None = None,
    actions: Sequence[Label] | None = None,
    possible: PairTable | None = None,
    learnt: Mapping[str, LearntStates] | None = None,
    log: LogSource | None = None,
) -> Assembly:
    """Numbers the labels, counts over the numbers, and finds the behavior policy."""
    tables = [given for given in (behavior, possible) if isinstance(given, PairTable)]
    if len(tables) == 2 or (tables and (states is not None or actions is not None)):
        which = "behavior table" if tables[0] is behavior else "table of what is possible"
        raise InvalidParameter(
            f"the {which} says which states and actions there are, and which of them in which "
            "state; expected no other list of them beside it"
        )
    deciding: Sequence[Label]
    taken: Sequence[Label]
    for table in tables:
        check_log_fits(table, counts, log)
        deciding, taken = table.vocabulary.states, table.vocabulary.actions
        enabled = np.stack([table.pairs.state, table.pairs.action])
    if not tables:
        deciding = known_labels("state", states, counts, log)
        taken = known_labels("action", actions, counts, log)
        enabled = np.indices((len(deciding), len(taken))).reshape(2, -1)
    known = {*deciding}
    resting = [
        label
        for label in dict.fromkeys((*counts.states, *counts.end_states()))
        if label not in known
    ]
    vocabulary = Vocabulary(
        counts.state_columns,
        counts.action_columns,
        (*deciding, *resting),
        tuple(taken),
        counts.binnings,
        learnt=learnt or {},
    )
    quiet = freeze(np.arange(len(vocabulary.states)) >= len(deciding))
    alone = np.stack([np.flatnonzero(quiet), np.zeros(len(resting), np.int64)])
    pairs = vocabulary.pairs_of(np.concatenate([enabled, alone], axis=1).T)
    observed = counts.to_counts(pairs)
    premises = of_recording(counts)
    if isinstance(behavior, PairTable):
        certain = np.ones(pairs.num_pairs - behavior.pairs.num_pairs)
        policy = Policy(pairs, np.concatenate([behavior.probability, certain]))
    else:
        policy, said = inferred_policy(behavior, counts, observed)
        beyond = [
            Statement("nothing-beyond-observed", {"what": what})
            for what, listed in (("states", states), ("actions", actions))
            if listed is None
        ]
        premises = (*([Statement("pairs-declared")] if tables else beyond), *premises, *said)
    premises += (Statement("states-learnt"),) if learnt else ()
    return Assembly(vocabulary, observed, policy, quiet, premises)


def policy_of(table: PairTable, assembly: Assembly, behavior: Policy) -> Policy:
    """Returns a table's policy: its action in each state, and π_b in states it leaves out."""
    pairs = behavior.pairs
    marked = table.marked(assembly.vocabulary, pairs) & ~assembly.quiet[pairs.state]
    number = run_sums(marked.astype(np.int64), pairs.offsets)
    for s, others in first_where(number > 1, "state"):
        raise InvalidParameter(
            f"{table.name} has {number[s]} actions in {pairs.state_name(s)}, expected one in each "
            f"state{others}"
        )
    return Policy(pairs, np.where(number[pairs.state] == 1, marked, behavior.probability))


def within(assembly: Assembly, limits: PairTable) -> Assembly:
    """Returns the assembly with the pairs that may be recommended; refuses limits without any."""
    pairs = assembly.counts.pairs
    marked = limits.marked(assembly.vocabulary, pairs) & ~assembly.quiet[pairs.state]
    if not marked.any():
        raise InvalidParameter(
            f"{limits.name} has no pair of a state and an action that is possible there, so that "
            "nothing may be recommended; expected at least one"
        )
    return replace(assembly, allowed=freeze(marked))


def inferred_policy(
    how: Inferred, counts: LabelledCounts, numbered: Counts
) -> tuple[Policy, tuple[Statement, ...]]:
    """Returns π_b without a table, and the assumptions behind it."""
    if how == "uniform":
        return Policy.uniform(numbered), ()
    if how == "propensities":
        ranges = propensity_ranges(counts, counts.pairs_of_rows(numbered.pairs))
        policy, completed, unseen = policy_from_propensities(numbered.pairs, *ranges)
        said = []
        if completed:
            said.append(Statement("propensities-completed", {"states": completed}))
        if unseen > np.count_nonzero(numbered.terminal):
            said.append(Statement("undecided-states-any-action"))
        return policy, tuple(said)
    varying = how == "row-propensities" and propensities_vary(counts)
    return estimate_behavior(numbered), (Statement("acted-on-more"),) if varying else ()


def known_labels(
    role: str, listed: Sequence[Label] | None, counts: LabelledCounts, log: LogSource | None
) -> list[Label]:
    """Returns the listed labels, else those of the log, in order and without ends of episodes."""
    columns = getattr(counts, f"{role}_columns")
    logged = getattr(counts, f"{role}s")
    ends = {*counts.end_states()} if role == "state" else set()
    if listed is not None:
        logged = [label for label in logged if label not in ends]
        check_listed(role, columns, listed, logged, where=f"the list of {role}s", log=log)
    return in_order({*(logged if listed is None else listed)} - ends, columns, counts.binnings)


def of_recording(counts: LabelledCounts) -> tuple[Statement, ...]:
    """Returns the assumptions about starts, and about where recordings stopped."""
    premises = (
        (not counts.episodes.recorded, Statement("starts-where-decided")),
        (not {STOPPED, UNEXPLAINED}.isdisjoint(counts.dropped), Statement("stopped-by-clock")),
        (RANDOM in counts.dropped, Statement("stopped-at-random")),
        (UNFINISHED in counts.dropped, STOPPING),
    )
    return tuple(premise for holds, premise in premises if holds)
