"""Acts by a policy: draws an action of π_I, or takes the default of a user where it has none."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from surestep.errors import InvalidParameter
from surestep.io.labels.vocabulary import Label
from surestep.results.table import PolicyTable

Action = str | tuple[str, ...]


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



class Decision(NamedTuple):
    """An action, and whose it is.

    Parameters
    ----------
    action : str or tuple of str
        The action: a text, or one text a column.
    fallback : "default" or None
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
    fallback: Literal["default"] | None
    followed: Label | None


def answer_in(
    table: PolicyTable,
    state: object,
    rng: np.random.Generator,
    fallback: Default | None,
    *,
    behavior_known: bool,
) -> Action | Decision:
    """Draws an action of π_I; a fallback acts in a state that π_I has no grounds to decide in.

    That is one that the log never decides in, unless a π_b that is known says what is done there.
    """
    words = table.vocabulary
    if fallback is None:
        s = words.index("state", state)
        if table.quiet[s]:
            raise InvalidParameter(
                f"nothing is ever decided in state {state!r}: episodes end there, or the log goes "
                "no further"
            )
        return drawn_action(table, s, rng)
    label = words.label_of("state", state)
    place = words.state_places.get(label, -1)
    known = place >= 0 and not table.quiet[place]
    if known and (behavior_known or table.all_decisions[place] > 0):
        return Decision(drawn_action(table, place, rng), None, label)
    default = words.actions[words.index("action", fallback.action)]
    return Decision(as_action(default), "default", None)


def drawn_action(table: PolicyTable, state: int, rng: np.random.Generator) -> Action:
    """Draws an action of a state by the probabilities of π_I."""
    run = slice(table.pairs.offsets[state], table.pairs.offsets[state + 1])
    chosen = rng.choice(table.pairs.action[run], p=table.probability[run])
    return as_action(table.vocabulary.actions[int(chosen)])


def as_action(label: Label) -> Action:
    """Returns an action as a text, or as one a column."""
    return label[0] if len(label) == 1 else label
