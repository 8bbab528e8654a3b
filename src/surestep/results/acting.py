"""Acting by a policy: an action of π_I, or where it has none, of a fallback that says so."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from surestep._arrays import FloatArray
from surestep.errors import InvalidParameter
from surestep.io.labels.vocabulary import Label, joined, unknown_label
from surestep.results.table import PolicyTable

Action = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Nearest:
    """A fallback: what π_b does in the state whose bins are nearest.

    Nearest is the state of the log with the fewest bins in between, over all binned columns
    together; it has the same labels in all other columns. Of several, the first one.

    Examples
    --------
    >>> from surestep.results import Nearest
    >>> ages = {"age": [31, 31, 52, 52] * 60, "action": ["a", "b"] * 120, "reward": [1, 0] * 120}
    >>> log = surestep.read_log(
    ...     ages, columns={"state": "age"}, bins={"age": {"edges": [20, 40, 60]}}
    ... )
    >>> result = surestep.improve(log, discount=0, ending=(0, 1), worlds=0)
    >>> result.act({"age": 75}, 0, Nearest()).fallback
    'nearest'
    """


@dataclass(frozen=True, slots=True)
class Default:
    """A fallback: one action, whatever the state is.

    Parameters
    ----------
    action : str, sequence or mapping
        An action that the policy knows: a text, one text a column, or a row.

    Examples
    --------
    >>> from surestep.results import Default
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> result = surestep.improve(table, discount=0, ending=(0, 1), worlds=0)
    >>> result.act("unheard-of", 0, Default("wait"))
    Decision(action='wait', fallback='default', followed=None)
    """

    action: object


Fallback = Nearest | Default


class Decision(NamedTuple):
    """An action, and whose it is.

    Parameters
    ----------
    action : str or tuple of str
        The action: a text, or one text a column.
    fallback : {"nearest", "default"} or None
        The fallback that chose it; None: it is an action of π_I.
    followed : tuple of str or None
        The state whose row of the policy was followed; None where no row was.

    Examples
    --------
    >>> from surestep.results import Decision
    >>> Decision("wait", None, ("mild",)).action
    'wait'
    """

    action: Action
    fallback: Literal["nearest", "default"] | None
    followed: Label | None


def action_in(table: PolicyTable, state: object, rng: np.random.Generator) -> Action:
    """Draws an action of π_I; refused in a state that it does not decide in."""
    s = table.vocabulary.index("state", state)
    if table.quiet[s]:
        raise InvalidParameter(
            f"nothing is ever decided in state {state!r}: episodes end there, or the log goes no "
            "further"
        )
    return drawn(table, s, table.probability, rng)


def decision_in(
    table: PolicyTable,
    state: object,
    rng: np.random.Generator,
    fallback: Fallback,
    *,
    behavior_known: bool,
) -> Decision:
    """Draws an action of π_I, or of the fallback in a state that π_I has no grounds to decide in.

    That is one that the log never decides in, unless a π_b that is known says what is done there.
    """
    label = table.vocabulary.label_of("state", state)
    s = table.vocabulary.state_places.get(label)
    if s is not None and not table.quiet[s] and (behavior_known or table.all_decisions[s] > 0):
        return Decision(drawn(table, s, table.probability, rng), None, label)
    if isinstance(fallback, Default):
        chosen = table.vocabulary.index("action", fallback.action)
        return Decision(as_action(table.vocabulary.actions[chosen]), "default", None)
    nearest = nearest_state(table, label)
    return Decision(
        drawn(table, nearest, table.behavior, rng), "nearest", table.vocabulary.states[nearest]
    )


def drawn(table: PolicyTable, state: int, chances: FloatArray, rng: np.random.Generator) -> Action:
    """Draws an action of a state by the chances of its pairs."""
    run = slice(table.pairs.offsets[state], table.pairs.offsets[state + 1])
    chosen = rng.choice(table.pairs.action[run], p=chances[run])
    return as_action(table.vocabulary.actions[int(chosen)])


def as_action(label: Label) -> Action:
    """Returns an action as a text, or as one a column."""
    return label[0] if len(label) == 1 else label


def nearest_state(table: PolicyTable, label: Label) -> int:
    """Finds the state of the log with the fewest bins in between; refused where there is none."""
    words = table.vocabulary
    between = {
        int(s): bins_between(table, label, words.states[s])
        for s in np.flatnonzero(table.all_decisions)
    }
    apart = {s: bins for s, bins in between.items() if bins is not None}
    if not apart:
        hint = unknown_label("state", words.state_columns, label, words.state_places)
        raise InvalidParameter(
            f"no state of the log is like {joined(label)!r} but for its bins: {hint}; expected a "
            "default action as fallback, Default(action)"
        )
    return min(apart, key=apart.__getitem__)


def bins_between(table: PolicyTable, one: Label, other: Label) -> int | None:
    """Counts the bins from one state to another; None where another column differs."""
    words = table.vocabulary
    total = 0
    for column, text, known in zip(words.state_columns, one, other, strict=True):
        if text == known:
            continue
        binning = words.binnings.get(column)
        here, there = (None if binning is None else binning.place(x) for x in (text, known))
        if here is None or there is None:
            return None
        total += abs(here - there)
    return total
