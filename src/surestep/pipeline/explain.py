"""Explains what a policy does in one state, from the saved result alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from surestep._words import counted, listed, number
from surestep.algorithms.registry import kind_of
from surestep.description import SEEN
from surestep.io.labels.vocabulary import Label
from surestep.results.result import Result, with_table

KEEPS_SCARCE = ("spibb", "spibb-2s", "spibb-beta")  # π = π_b wherever data is scarce
MOST_NAMED = 6  # actions in a sentence


class ActionReason(NamedTuple):
    """The figures of one action in the state that is explained."""

    action: Label
    behavior: float  # π_b
    probability: float  # π_I
    visits: int
    trusted: bool | None
    q: float
    advantage: float
    more_visits: int | None  # until it would be trusted; None where it is, or never will be
    allowed: bool | None = None  # may be recommended; None: no limits were set
    name: Label = ()  # as people call it; empty: as the log does
    kept_by: tuple[str, ...] = ()  # signals whose limits keep it from being taken more often
    promising: float = 0.0  # how much better it looks than π_I, where it was seen too seldom

    @property
    def called(self) -> Label:
        """Returns the display name of the action, or its label if it has none."""
        return self.name or self.action


@dataclass(frozen=True, slots=True)
class Explanation:
    """One state: all its actions, and what decides between them.

    Parameters
    ----------
    state : tuple of str
        The state, one text a column.
    state_columns : tuple of str
        The columns of states.
    action_columns : tuple of str
        The columns of actions.
    algorithm : str
        The algorithm that made the policy.
    n_wedge : int or None
        N∧, where the algorithm has one.
    behavior_is_estimated : bool
        The current policy was read off the log.
    actions : tuple of ActionReason
        The figures of each action: its chance before and now, its visits and its value.
    held_out_visits : int
        Decisions there that judge the policy, and did not choose it.
    only_seen : bool, default False
        Nothing is recommended that the log does not show there.
    open_bins : tuple of (str, str)
        Columns and labels of bins that have no end.
    name : tuple of str
        The state as people call it; empty: as the log does.

    Examples
    --------
    >>> from surestep.pipeline import explain
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> result = surestep.improve(table, discount=0, ending=(0, 1), worlds=0)
    >>> why = explain(result, "mild")
    >>> why.changed, [(reason.action, reason.probability) for reason in why.actions]
    (True, [(('treat',), 0.0), (('wait',), 1.0)])
    """

    state: Label
    state_columns: tuple[str, ...]
    action_columns: tuple[str, ...]
    algorithm: str
    n_wedge: int | None
    behavior_is_estimated: bool
    actions: tuple[ActionReason, ...]
    held_out_visits: int
    only_seen: bool = False
    open_bins: tuple[tuple[str, str], ...] = ()
    name: Label = ()

    @property
    def called(self) -> Label:
        """Returns the display name of the state, or its label if it has none."""
        return self.name or self.state

    @property
    def visits(self) -> int:
        """Counts the visits of the state in the part of the log that chose the policy."""
        return sum(action.visits for action in self.actions)

    @property
    def untried(self) -> tuple[ActionReason, ...]:
        """Returns the actions that nobody tried there, as far as that part shows."""
        return tuple(action for action in self.actions if action.visits == 0)

    @property
    def changed(self) -> bool:
        """Tells whether π_I does something else than π_b there."""
        return any(abs(action.probability - action.behavior) > 1e-12 for action in self.actions)


def explain(result: Result, state: object) -> Explanation:
    """Explains what a policy does in one state.

    Parameters
    ----------
    result : Result
        The result with the policy.
    state : str, sequence or mapping
        The state, as for `Result.act`.

    Returns
    -------
    Explanation
        The actions with their figures; `in_words` makes sentences of it.

    Raises
    ------
    InvalidParameter
        The policy does not know the state.

    Examples
    --------
    >>> from surestep.pipeline import explain
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> explain(surestep.improve(table, discount=0, worlds=0), "mild").algorithm
    'spibb'
    """
    table = with_table(result).table
    words = table.vocabulary
    s = words.index("state", state)
    run = range(int(table.pairs.offsets[s]), int(table.pairs.offsets[s + 1]))
    return Explanation(
        words.states[s],
        words.state_columns,
        words.action_columns,
        result.record.parameters.algorithm["algorithm"],
        table.n_wedge,
        result.record.behavior_is_estimated,
        () if table.quiet[s] else tuple(reason(result, k) for k in run),
        int(table.held_out_visits[table.pairs.state == s].sum()),
        result.record.parameters.possible == SEEN,
        tuple(
            (column, text)
            for column, text in zip(words.state_columns, words.states[s], strict=True)
            if column in words.binnings and text in words.binnings[column].open_labels()
        ),
        words.state_name(s),
    )


def reason(result: Result, pair: int) -> ActionReason:
    """Returns the figures of one pair."""
    table = result.table
    visits = int(table.visits[pair])
    trusted = None if table.trusted is None else bool(table.trusted[pair])
    allowed = None if table.allowed is None else bool(table.allowed[pair])
    never = visits == 0 and result.record.parameters.possible == SEEN
    open_later = trusted is False and allowed is not False and not never
    return ActionReason(
        table.vocabulary.actions[int(table.pairs.action[pair])],
        float(table.behavior[pair]),
        float(table.probability[pair]),
        visits,
        trusted,
        float(table.q[pair]),
        float(table.advantage[pair]),
        table.n_wedge + 1 - visits if open_later and table.n_wedge is not None else None,
        allowed,
        table.vocabulary.action_name(int(table.pairs.action[pair])),
        () if table.kept_by is None else tuple(filter(None, table.kept_by[pair].split(";"))),
        float(table.promising[pair]),
    )


def in_words(explanation: Explanation) -> tuple[str, ...]:
    """Explains in sentences what a policy does in a state, and why.

    Parameters
    ----------
    explanation : Explanation
        What `explain` returned.

    Returns
    -------
    tuple of str
        The sentences.

    Examples
    --------
    >>> from surestep.pipeline import explain, in_words
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> result = surestep.improve(table, discount=0, ending=(0, 1), worlds=0)
    >>> in_words(explain(result, "mild"))[-1]
    'What was done before is only estimated from the log.'
    """
    if not explanation.actions:
        return ("Nothing is ever decided there: episodes end, or the log goes no further.",)
    sentences = [
        f"The bin '{text}' of {column} has no end: it also holds what is far from all that the log "
        "shows."
        for column, text in explanation.open_bins
    ]
    visits = times(explanation.visits)
    sentences.append(
        f"The part of the log that chose the policy decides there {visits}, and the rest, which "
        f"judges it, {times(explanation.held_out_visits)}."
        if explanation.held_out_visits
        else f"The log decides there {visits}."
    )
    if not explanation.changed:
        sentences.append("The new policy does what was done before.")
    spibb = explanation.algorithm in KEEPS_SCARCE
    if not spibb:
        keeps_to = kind_of(explanation.algorithm).constraint or "nothing but the estimate"
        sentences.append(f"{explanation.algorithm} keeps to: {keeps_to}.")
    barred = [action for action in explanation.actions if action.allowed is False]
    if barred:
        sentences.append(
            f"{action_names(barred)} {'is' if len(barred) == 1 else 'are'} not among the pairs "
            "that may be recommended: not taken more often than before."
        )
    sentences += [
        f"{name_of(action.called)} is kept from being taken more often by the "
        f"{'limit' if len(action.kept_by) == 1 else 'limits'} of {listed(action.kept_by)}."
        for action in explanation.actions
        if action.kept_by
    ]
    if spibb:
        sentences += spibb_words(explanation)
    else:
        best = max(explanation.actions, key=lambda action: action.q)
        sentences.append(
            f"The highest estimated value there has {name_of(best.called)} ({number(best.q, 5)})."
        )
    if explanation.behavior_is_estimated:
        sentences.append("What was done before is only estimated from the log.")
    return tuple(sentences)


def spibb_words(explanation: Explanation) -> Iterator[str]:
    """Explains which actions keep their probability for lack of data, and where the rest goes."""
    n_wedge = explanation.n_wedge
    open_ones = [action for action in explanation.actions if action.allowed is not False]
    free = [action for action in open_ones if action.trusted is not False]
    untried = [action for action in open_ones if action.trusted is False and not action.visits]
    seldom = [action for action in open_ones if action.trusted is False and action.visits]
    if untried:
        why = ", and nothing is recommended that nobody tried" if explanation.only_seen else ""
        yield f"{action_names(untried)} {keeps(untried)}: never tried there{why}."
    if seldom:
        yield (
            f"{action_names(seldom)} {keeps(seldom)}: tried at most {times(n_wedge or 0)} (N∧), "
            "too seldom to tell how good that is."
        )
    yield from (
        f"{name_of(action.called)} looks better than the new policy, by "
        f"{number(action.promising, 3)}; {counted(action.more_visits or 0, 'more visit')} would "
        "free it."
        for action in seldom
        if action.promising
    )
    if not free:
        return
    best = max(free, key=lambda action: action.q)
    if n_wedge is not None and len(free) > 1:
        alone = max(action.probability for action in free) > 1 - 1e-9
        yield (
            f"Among {action_names(free)}, tried more often, {'all' if alone else 'the rest of the'}"
            f" probability goes to {name_of(best.called)}, whose estimated value is highest "
            f"({number(best.q, 5)})."
        )
    elif n_wedge is not None:
        limited = " and may be recommended" if len(open_ones) < len(explanation.actions) else ""
        yield (
            f"Only {name_of(best.called)} was tried often enough{limited}, so there is nothing to "
            "choose from."
        )


def keeps(reasons: Sequence[ActionReason]) -> str:
    """Words whether these actions keep their probability, or are no longer taken."""
    one = len(reasons) == 1
    if any(reason.probability < reason.behavior - 1e-12 for reason in reasons):
        return "is no longer taken" if one else "are no longer taken"
    return "keeps the probability that it had" if one else "keep the probability that they had"


def action_names(reasons: Sequence[ActionReason]) -> str:
    """Returns actions in a sentence: all of a few, else the first ones and how many others."""
    names = [name_of(reason.called) for reason in reasons]
    if len(names) > MOST_NAMED:
        names = [*names[: MOST_NAMED - 1], f"{len(names) - MOST_NAMED + 1:,} others"]
    return listed(names)


def name_of(label: Label) -> str:
    """Names an action in a sentence."""
    return f"'{', '.join(label)}'"


def times(count: int) -> str:
    """Words a number of times: 'never', 'once', '7 times'."""
    return "never" if count == 0 else "once" if count == 1 else f"{count:,} times"
