"""Builds problems: of a log, of its further signals, and of the chance to reach unsafe states.

Ranges that a user declared are held against the data before anything rests on them.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np

from surestep._arrays import BoolArray, affected, altered
from surestep.certificates.refuting import SAME, check_returns, check_values
from surestep.description import Description
from surestep.errors import InvalidParameter, NeverEnds, RefutedBounds, said
from surestep.io.counts.labelled import LabelledCounts
from surestep.io.labels.vocabulary import Vocabulary, joined
from surestep.io.logs.loading import BY_CLOCK
from surestep.io.logs.source import LogSource
from surestep.io.sql import sql_name
from surestep.model import DecisionLog, Problem, Reach, Signal, Statement, reaching
from surestep.model.known import Known, Ranges, single_rewards
from surestep.pipeline.evidence import Assembly, CountsSource
from surestep.pipeline.terms import Terms, facts_of
from surestep.planning.ends import refuse_endless

# SQL that reads other tables, or gives another answer at another time.
NO_CONDITION = re.compile(
    r"\bselect\b|;|--|/\*|\b(current_(date|time|timestamp)|localtime(stamp)?)\b|"
    r'\b(random|\w*uuid\w*|now|today|\w*current_\w+|transaction_timestamp)"?\s*\(',
    re.IGNORECASE,
)


def problem_of(
    parts: Assembly,
    terms: Terms,
    told: Known,
    counts: LabelledCounts,
    source: LogSource | None,
) -> Problem:
    """Builds the problem under the terms; its premises list all that was assumed.

    Refuses declared ranges of rewards and returns that the counts or the log contradict.
    """
    premises = parts.premises + terms.premises(told)
    log = parts.log if parts.looked_at else None
    if log is not None and log.order is not None and not parts.has_times:
        premises += (Statement("file-order-is-decision-order"),)
    problem = Problem(
        counts=parts.counts,
        behavior=parts.behavior,
        discount=terms.discount,
        value_bounds=terms.value_bounds(told, parts.counts.terminal),
        unseen=terms.used("unseen"),
        log=log,
        premises=premises,
    )
    check_declared(terms, problem, counts, source, parts.log)
    return problem


def with_signals(
    problem: Problem,
    description: Description,
    source: LogSource | CountsSource,
    parts: Assembly,
    terms: Terms,
) -> Problem:
    """Returns a problem with the signals that a description names."""
    signals = [
        further_signal(name, description, source, parts, terms)
        for name in [*description.signals][1:]
    ]
    rule = description.unsafe
    if rule.states is not None:
        chance = reaching(problem, Reach(unsafe_states(rule.states, parts.vocabulary), rule.within))
        if rule.within is None:
            refuse_endless(problem.estimate(), problem.behavior.probability)
        signals.append(
            Signal(
                name=rule.states,  # the condition says what is to be avoided
                problem=chance,
                margin=rule.not_worse_by or 0.0,
                cost=True,
                at_most=rule.at_most if isinstance(rule.at_most, float) else None,
            )
        )
    first = next(iter(description.signals.items()), None)
    name, cost = (problem.name, False) if first is None else (first[0], first[1].cost)
    return altered(problem, name=name, cost=cost, signals=tuple(signals))


def further_signal(
    name: str,
    description: Description,
    source: LogSource | CountsSource,
    parts: Assembly,
    terms: Terms,
) -> Signal:
    """Returns a further signal as a problem of its own over the same states and actions."""
    rule = description.signals[name]
    counts, log = counted(source, description, name)
    own = terms.of_signal(rule)
    told = own.certifier_settings(facts_of(counts))
    pairs = parts.counts.pairs
    steps = None if log is None or parts.log is None else log.load(pairs, counts)
    visits = counts.to_counts(pairs) if steps is None else steps.counts()
    problem = problem_of(replace(parts, counts=visits, log=steps), own, told, counts, log)
    if own.discount == 1 != terms.discount:
        try:
            refuse_endless(problem.estimate(), problem.behavior.probability)
        except NeverEnds as endless:
            raise NeverEnds(f"signals.{name}: {endless}") from None
    return Signal(
        name=name,
        problem=problem,
        margin=rule.not_worse_by or 0.0,
        cost=rule.cost,
        known=told,
    )


def counted(
    source: LogSource | CountsSource, description: Description, name: str
) -> tuple[LabelledCounts, LogSource | None]:
    """Returns the counts of a signal, and the log where there is one."""
    if isinstance(source, LogSource):
        log = source.of_signal(description.signals[name])
        return log.counts(), log
    if name not in source.labelled.signals:
        known = ", ".join(source.labelled.signals) or "none"
        raise InvalidParameter(
            f"the counts have no signal {name!r}; expected counts of a description with it (they "
            f"have {known})"
        )
    return replace(source.labelled.signals[name], ends_apart=source.labelled.ends_apart), None


def unsafe_states(condition: str, words: Vocabulary) -> BoolArray:
    """Marks the states [S] in which a condition on columns holds; refuses one that never holds.

    The condition sees columns of numbers as numbers. It can read nothing else, since it may come
    from somebody else's result.
    """
    expected = f"expected a condition on {', '.join(map(repr, words.state_columns))}"
    if NO_CONDITION.search(condition):
        raise InvalidParameter(f"unsafe.states is {condition!r}, {expected} alone")
    # An end of its own, of a state in which others went on, is as unsafe as the state.
    states = [[re.sub(r"( \(end\))+$", "", text) for text in label] for label in words.states]
    columns = zip(words.state_columns, zip(*states, strict=True), strict=True)
    table = {name: np.array(labels, object) for name, labels in columns}
    with duckdb.connect() as database:
        database.register("labels", {"place": np.arange(len(words.states)), **table})
        database.execute("CREATE TABLE states AS FROM labels")
        database.execute("SET enable_external_access = false; SET lock_configuration = true")
        typed = ", ".join(f"{number_or_text(database, name)} AS {sql_name(name)}" for name in table)
        try:
            answer = database.execute(
                f"SELECT coalesce({condition}, false)::BOOLEAN FROM "
                f"(SELECT place, {typed} FROM states) ORDER BY place"
            ).fetchnumpy()
        except duckdb.Error as problem:
            why = str(problem).splitlines()[0]
            raise InvalidParameter(f"unsafe.states is {condition!r}: {why}; {expected}") from None
    (holds,) = answer.values()
    if not holds.any():
        shown = "; ".join(f"{name} is {', '.join(some(labels))}" for name, labels in table.items())
        raise InvalidParameter(
            f"unsafe.states is {condition!r}, which holds in no state; {expected}: {shown}"
        )
    return np.asarray(holds, np.bool_)


def number_or_text(database: duckdb.DuckDBPyConnection, name: str) -> str:
    """Returns SQL for a column: a number where all labels, but for those of ends, are numbers."""
    column = sql_name(name)
    number = f"TRY_CAST({column} AS DOUBLE)"
    texts = f"SELECT count(*) FROM states WHERE {number} IS NULL AND NOT starts_with({column}, '(')"
    return column if database.execute(texts).fetchall()[0][0] else number


def some(labels: Iterable[str]) -> list[str]:
    """Returns the first five distinct labels, and '…' if there are more."""
    different = [*dict.fromkeys(labels)]
    return [*different[:5], *(["…"] if len(different) > 5 else [])]


# ---- declared ranges ----------------------------------------------------------------------------


def check_declared(
    terms: Terms,
    problem: Problem,
    counts: LabelledCounts,
    source: LogSource | None,
    log: DecisionLog | None,
) -> None:
    """Refuses declared ranges of rewards and returns that the log contradicts.

    `log` has the steps of the source over the pairs of the problem, where they were loaded.
    """
    if terms.declared_ranges is not None:
        check_ranges(terms.declared_ranges, counts, source)
    returns = terms.stakes.returns
    if returns is None:
        return
    single = single_rewards(returns, terms.discount)
    earned = dropped_beyond(single, counts, SAME * max(*map(abs, single.running), SAME))
    if earned:
        raise beyond_ranges(earned, single, said("returns", "--returns"))
    if source is not None and counts.episodes.recorded:
        steps = source.load(problem.counts.pairs, counts) if log is None else log
        check_returns(problem, steps, returns, rests=True)
    check_values(problem)


def beyond_ranges(where: str, ranges: Ranges, which: str, others: str = "") -> RefutedBounds:
    """Returns the refusal of ranges that a row exceeds, with the setting that declares them."""
    return RefutedBounds(
        Statement(
            "rewards-beyond-ranges",
            {
                **ranges.statement(declared=True).values,
                "where": where,
                "which": which,
                "others": others,
            },
        )
    )


def check_ranges(ranges: Ranges, counts: LabelledCounts, source: LogSource | None) -> None:
    """Refuses ranges that a reward of the log exceeds.

    Rows that counts leave out are checked too. A row cut by a clock is a running step; if it is
    unknown whether a row ended its episode, its reward has to lie in one of both ranges.
    """
    rows = counts.transitions
    unit = 10**counts.scale
    beyond = np.zeros(rows.terminated.shape, np.bool_)
    for (low, high), over in ((ranges.running, ~rows.terminated), (ranges.ending, rows.terminated)):
        least, most = (Fraction(repr(float(end))) * unit for end in (low, high))
        outside = (rows.least_reward < math.ceil(least)) | (rows.greatest_reward > math.floor(most))
        beyond |= over & outside.astype(np.bool_)
    counted = bool(beyond.any())
    where = (
        source.first_beyond(*ranges, counted=counted)
        if source is not None and (counted or counts.dropped_rewards)
        else ""
    )
    if counted and not where:
        first = int(np.argmax(beyond))
        state, action = counts.states[rows.state[first]], counts.actions[rows.action[first]]
        rewards = [int(end[first]) / unit for end in (rows.least_reward, rows.greatest_reward)]
        where = (
            f"state {joined(state)!r}, action {joined(action)!r}: a step that "
            f"{'ends its episode' if rows.terminated[first] else 'goes on'} earns "
            f"{rewards[0]:g} to {rewards[1]:g}"
        )
    if where := where or dropped_beyond(ranges, counts):
        which = f"{said('running', '--running')}, {said('ending', '--ending')}"
        others = affected(beyond, "transition") if counted else ""
        raise beyond_ranges(where, ranges, which, others)


def dropped_beyond(ranges: Ranges, counts: LabelledCounts, slack: float = 0.0) -> str:
    """Names a row that counts leave out and whose reward is outside the ranges; empty: no row."""
    for why, ends in counts.dropped_rewards.items():
        may_be = (ranges.running,) if why in BY_CLOCK else ranges
        for reward in ends:
            if not any(low - slack <= reward <= high + slack for low, high in may_be):
                return f"a row that is not counted ({why}) earns {reward:g}"
    return ""
