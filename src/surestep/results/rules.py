"""Holds a policy as rules that people can remember: one action, or *as before*, a situation.

The file rules.json holds them. The first rule that fits a situation decides; the last rule fits
every situation.
"""

from typing import Literal, Self, TypeVar

import msgspec

from surestep._json import read_json, typed
from surestep.errors import InvalidParameter, InvalidResult
from surestep.io.labels.vocabulary import Label

Thing = TypeVar("Thing")


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One action for some situations, with today's share of the action and the data about it.

    Parameters
    ----------
    text : str
        The rule as a sentence.
    when : dict of str to tuple of str
        The values of columns of the situation, all of which must fit; none: any.
    action : tuple of str or None
        The action, one text a column; None: as before.
    exceptions : tuple of tuple of str
        Situations in which the action was seen too seldom, or is not allowed: as before there.
    why : str
        Which of that is the reason, as a sentence; empty without exceptions.
    decisions : int
        The rows of the log in its situations.
    taken : int
        Those of them with the action of the rule.
    today : float or None
        The share of the action in today's decisions there; None: as before.
    gain : float
        The part of the estimated gain that the rule brings.
    evidence : dict of str to int
        How many of its changes the rows set aside confirm, contradict or leave open.

    Examples
    --------
    >>> from surestep.results.rules import Rule
    >>> Rule(text="If the condition is worn: service.", when={"condition": ("worn",)},
    ...     action=("service",)).action
    ('service',)
    """

    text: str
    when: dict[str, tuple[str, ...]]
    action: tuple[str, ...] | None
    exceptions: tuple[tuple[str, ...], ...] = ()
    why: str = ""
    decisions: int = 0
    taken: int = 0
    today: float | None = None
    gain: float = 0.0
    evidence: dict[str, int] = {}


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a policy, in the order in which they are read.

    Parameters
    ----------
    format : str
        The kind of file.
    version : int
        The version of its format.
    columns : tuple of str
        The columns of the situation.
    rules : tuple of Rule
        The rules; the last one fits every situation.
    behavior_is_estimated : bool
        *As before* is an estimate of what is done today.
    situations : tuple of tuple of str
        All situations in which the log shows decisions, sorted; none in files of older releases.

    Examples
    --------
    >>> table = {
    ...     "state": ["mild", "mild", "severe", "severe"] * 60,
    ...     "action": ["wait", "treat"] * 120,
    ...     "reward": [1.0, 0.0, 0.0, 1.0] * 60,
    ... }
    >>> result = surestep.improve(table, discount=0, ending=(0, 1), worlds=0)
    >>> [rule.text for rule in result.rules.rules]
    ['If the state is severe: treat.', 'Else: wait.']
    """

    format: Literal["surestep rules"] = "surestep rules"
    version: Literal[1] = 1
    columns: tuple[str, ...]
    rules: tuple[Rule, ...]
    behavior_is_estimated: bool
    situations: tuple[tuple[str, ...], ...] = ()

    def rule(self, label: Label) -> Rule:
        """Returns the rule for a situation.

        Parameters
        ----------
        label : tuple of str
            The situation, one text a column.

        Returns
        -------
        Rule
            The first one that fits.
        """
        texts = dict(zip(self.columns, label, strict=True))
        return next(x for x in self.rules if all(texts[c] in v for c, v in x.when.items()))

    def action(self, label: Label) -> Label | None:
        """Returns the action of the rules in a situation.

        Parameters
        ----------
        label : tuple of str
            The situation, one text a column.

        Returns
        -------
        tuple of str or None
            The action; None: as before.

        Raises
        ------
        InvalidParameter
            The log shows no decision in this situation, so that no policy was judged there.
        """
        if self.situations and label not in self.situations:
            raise InvalidParameter(
                f"the log shows no decision in the situation {', '.join(map(str, label))!r}, so "
                "that rules say nothing there; expected one of `situations`"
            )
        rule = self.rule(label)
        return None if label in rule.exceptions else rule.action

    def to_json(self) -> str:
        """Returns the content of rules.json.

        Returns
        -------
        str
            The rules as JSON.
        """
        return pretty(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads the rules that `to_json` wrote.

        Parameters
        ----------
        text : str
            The content of rules.json.

        Returns
        -------
        Rules
            The rules.

        Raises
        ------
        InvalidResult
            The text is no file of rules.
        """
        return read_as(cls, "rules.json", text)


def pretty(content: msgspec.Struct) -> str:
    """Returns a struct as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()


def read_as(kind: type[Thing], name: str, text: str) -> Thing:
    """Reads a JSON file of a result as an instance of `kind`."""
    try:
        return typed(read_json(text), kind)
    except ValueError as problem:
        raise InvalidResult(f"{name} is not what `surestep improve` writes: {problem}") from None
