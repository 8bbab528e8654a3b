"""Defines structures: the dependencies of every column of the next state, as nodes.

A node is a column, the values of its parents, and the part of the action that matters to it. The
columns of a group share their nodes. `Structure.read` turns tables of a description into arrays.
"""

from __future__ import annotations

import fnmatch
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._names import refuse_unknown, unknown
from surestep.description import NodeKeys, Several, several, structure_keys
from surestep.errors import InvalidParameter
from surestep.model.noun import noun

NEXT = "next."  # before the name of a column that was decided earlier in the same step
HERE, LEFT, RIGHT = "@", "@left", "@right"  # a column of a group, and its neighbours in a ring
END, REWARD, ACTION, IS = "end", "reward", "action", "is"
BETWEEN = ", "  # values of several columns, in a key of `terms`
YES_NO = ("no", "yes")
KEYS = ("parents", "action", "known", "edge", "learnt", "values")  # of a column
LEARN = "learn"  # in place of parents or an action: `algorithms.learnt_structure` finds them
SAME = "same"  # among what is known: in all other cases a column keeps its value
MOST_NODES = 2**22
SAME_REWARD = 1e-9  # of the largest reward: how closely a row has to agree with the known function


@dataclass(frozen=True, slots=True, eq=False)
class Sums(arrays.ByValue, arrays.Frozen):
    """Places in a table, each a first place plus strides times values: of D columns or rewards.

    Values lie in one row: the columns now, then those of the next state, the end and the reward.
    """

    first: arrays.IntArray  # [D]
    offsets: arrays.IntArray  # [D+1] where the terms of each begin
    place: arrays.IntArray  # [terms] where the value lies
    stride: arrays.IntArray  # [terms]
    part: arrays.IntArray  # [D·A] what an action adds

    @staticmethod
    def joined(each: Sequence[Sums]) -> Sums:
        """Joins the places of several columns, or rewards."""
        lines = {
            name: np.array([x for one in each for x in getattr(one, name)], np.int64)
            for name in ("first", "place", "stride", "part")
        }
        terms = np.array([one.place.size for one in each], np.int64)
        return Sums(offsets=arrays.offsets_of(terms), **lines)

    def looked_at(self, d: int) -> arrays.IntArray:
        """Returns where the values lie that column d looks at."""
        return self.place[self.offsets[d] : self.offsets[d + 1]]

    def at(self, d: int, values: arrays.IntArray, action: arrays.IntArray) -> arrays.IntArray:
        """Returns the places of column d for rows of values [N, …] and their actions [N]."""
        actions = self.part.size // self.first.size
        places: arrays.IntArray = self.first[d] + self.part[d * actions + action]
        strides = self.stride[self.offsets[d] : self.offsets[d + 1]]
        for place, stride in zip(self.looked_at(d), strides, strict=True):
            places += stride * values[:, place]
        return places


@noun("columns", "num_actions", "num_nodes")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Structure(arrays.ByValue, arrays.Frozen):
    """The columns of a state, and what each of them depends on in the next state.

    Parameters
    ----------
    columns : tuple of str
        The names of the columns.
    values : tuple of tuple of str
        The values of each column, of the end and of the reward.
    actions : tuple of str
        The names of the actions.
    target : array of int [D]
        The columns of the next state in the order in which they are decided.
    nodes : Sums
        The node of each of them.
    known : array of int [K]
        The value of every node that is known to have only one; else −1.
    rewards : Sums
        The terms of the reward of a step.
    worth : array of float
        What each term is worth.
    groups : mapping from str to tuple of int
        The columns of each group, in the order of its ring.
    edges : mapping from str to int or None
        The value that counts beyond the ends of a group that is a row; None for a ring.
    node_sizes : array of int [K]
        The number of values of each node.
    node_names : tuple of str
        The words for each node: its column or group, its parents and its part of the action.
    learnt : tuple of str, default ()
        The tables that were learnt from a log and that nobody confirmed: claims are then believed.
    declared : tuple of str, default ()
        The columns whose tables list their values.

    Examples
    --------
    >>> from surestep.model import Structure
    >>> structure = Structure.read(
    ...     {"lamp": ["off", "on"]}, ["wait", "switch"],
    ...     {"lamp": {"parents": ["lamp"]}, "reward": {"terms": [{"of": "lamp", "on": 1.0}]}})
    >>> structure.num_nodes, structure.reward_range
    (4, (0.0, 1.0))
    """

    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    actions: tuple[str, ...]
    target: arrays.IntArray
    nodes: Sums
    known: arrays.IntArray
    rewards: Sums
    worth: arrays.FloatArray
    groups: Mapping[str, tuple[int, ...]]
    edges: Mapping[str, int | None]
    node_sizes: arrays.IntArray
    node_names: tuple[str, ...]
    learnt: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()

    @classmethod
    def read(
        cls,
        columns: Mapping[str, Sequence[object]],
        actions: Sequence[str],
        table: Mapping[str, Mapping[str, Any]],
    ) -> Structure:
        """Reads the tables of a description.

        Parameters
        ----------
        columns : mapping from str to sequence of str
            The columns of the state, with their values.
        actions : sequence of str
            The names of the actions.
        table : mapping from str to mapping
            For every column, or group of columns such as `machine_*`, its `parents`, `action`,
            `known`, `edge` and `values`; also `end` and `reward`. They are decided in this order.
            `learnt` marks a table that nobody confirmed.

        Returns
        -------
        Structure
            The structure.

        Raises
        ------
        InvalidParameter
            A table names something that does not exist, or leaves something open.
        """
        reader = Reader({name: tuple(map(str, columns[name])) for name in columns}, tuple(actions))
        for name, entry in structure_keys(table).items():
            reader.add(name, entry)
        return reader.structure()

    @property
    def sizes(self) -> arrays.IntArray:
        """Returns the number of values of each column."""
        return np.array([len(values) for values in self.values[: len(self.columns)]])

    @property
    def num_actions(self) -> int:
        """Returns the number of actions."""
        return len(self.actions)

    @property
    def num_nodes(self) -> int:
        """Returns the number of nodes."""
        return int(self.known.size)

    @property
    def has_end(self) -> bool:
        """Tells whether episodes can be over."""
        return bool((self.target == len(self.columns)).any())

    @property
    def draws_reward(self) -> bool:
        """Tells whether the reward is a node of its own."""
        return bool((self.target == len(self.columns) + 1).any())

    @property
    def reward_range(self) -> tuple[float, float]:
        """Returns bounds of the reward of every step: each term at its least, or its greatest."""
        places = [*sorted(self.rewards.first.tolist()), self.worth.size]
        terms = [self.worth[a:b] for a, b in itertools.pairwise(places)]
        return sum(float(t.min()) for t in terms), sum(float(t.max()) for t in terms)

    @property
    def open_columns(self) -> list[str]:
        """Returns the columns that rewards depend on and whose values nobody listed."""
        both = 2 * self.columns  # now and next
        looked_at = {both[place] for place in self.rewards.place if place < len(both)}
        return sorted(looked_at - {*self.declared})

    def reward_of(self, values: arrays.IntArray, action: arrays.IntArray) -> arrays.FloatArray:
        """Returns the reward of steps.

        Parameters
        ----------
        values : array of int [N, …]
            The columns now, those of the next state, the end and the reward.
        action : array of int [N]
            The actions.

        Returns
        -------
        array of float [N]
            The sum of all terms.
        """
        total = np.zeros(action.size)
        for d in range(self.rewards.first.size):
            total += self.worth[self.rewards.at(d, values, action)]
        return total

    def slots(self, group: str) -> arrays.IntArray:
        """Returns the columns that local rules look at.

        Parameters
        ----------
        group : str
            The name of a group, such as `machine_*`.

        Returns
        -------
        array of int [M, 3]
            For every member its own column, the one to its left and the one to its right; −1 beyond
            the ends of a row.
        """
        refuse_unknown(f"the structure has no group {group!r}", group, self.groups)
        return neighbours(self.groups[group], is_row=self.edges[group] is not None)


class Source(NamedTuple):
    """A column that is a parent, or a fixed value beyond the edge of a row of columns."""

    place: int  # in a row of values; −1 for a fixed value
    values: tuple[str, ...]
    value: int = 0  # if it is fixed


class Member(NamedTuple):
    """A column of a table, with what the star and the words of its group mean for it."""

    name: str
    star: str
    around: Mapping[str, Source]


class Reader:
    """Reads the tables of a structure, one after the other, in the order of decisions."""

    def __init__(self, columns: dict[str, tuple[str, ...]], actions: tuple[str, ...]) -> None:
        """Begins with the columns of the state, and no nodes."""
        for name, values in columns.items():
            if len(set(values)) < len(values) or not values:
                raise InvalidParameter(
                    f"column {name!r} has the values {values}, not all different"
                )
        self.columns = columns
        self.actions = actions
        self.variables: dict[str, tuple[str, ...]] = columns | {END: YES_NO, REWARD: ("0",)}
        self.place = {name: c for c, name in enumerate(self.variables)}
        self.decided: dict[str, Sums] = {}
        self.known: list[int] = []
        self.names: list[str] = []
        self.sizes: list[int] = []
        self.rewards: list[Sums] = []
        self.worth: list[float] = []
        self.groups: dict[str, tuple[int, ...]] = {}
        self.edges: dict[str, int | None] = {}
        self.learnt: list[str] = []
        self.declared: list[str] = []

    def add(self, name: str, entry: NodeKeys) -> None:
        """Reads the table of one column, or of the reward."""
        if name == REWARD and not entry.values:
            check_keys(name, entry.given(), ("terms", "values"))
            for term in entry.terms or ():
                self.add_term(term)
            return
        check_keys(name, entry.given(), KEYS)
        if name == REWARD:
            for wrong in (value for value in several(entry.values) if isinstance(value, str)):
                raise InvalidParameter(f"structure.reward.values has {wrong!r}, expected numbers")
            self.variables[REWARD] = tuple(map(str, several(entry.values)))
        members = self.members_of(name, entry.edge)
        if entry.values and name != REWARD:
            self.declared += [member.name for member in members]
            if entry.labels != (has := self.variables[members[0].name]):
                raise InvalidParameter(
                    f"structure.{name}.values is {entry.labels}, but its column has {has}"
                )
        if LEARN in (entry.parents, entry.action):
            raise InvalidParameter(
                f'structure.{name} says "{LEARN}", which only `improve` does by itself; expected '
                "the tables that surestep.algorithms.learn_structure returns"
            )
        self.learnt += [name] * entry.learnt
        parents = several(entry.parents)
        first = len(self.known)
        self.add_nodes(name, entry, parents, members[0])
        for member in members:
            if member.name in self.decided:
                raise InvalidParameter(f"column {member.name!r} is in two tables of the structure")
            sources = [self.sources_of(name, parent, member) for parent in parents]
            labels, part = self.parts_of(name, entry.action, member)
            self.decided[member.name] = looked(first, sources, len(labels), part)
        if name == REWARD:
            worth = {value: float(value) for value in self.variables[REWARD]}
            self.add_term({"of": NEXT + REWARD} | worth)

    def members_of(self, name: str, edge: object) -> list[Member]:
        """Returns the columns of a table: one, or those that fit `name_*`, as a ring or row."""
        fitting = [name] if name in (END, REWARD) else fnmatch.filter(self.columns, name)
        if not fitting:
            raise unknown(f"structure.{name} names no column", name, [*self.columns, END, REWARD])
        if "*" not in name:
            return [Member(name, name, {})]
        values = self.variables[fitting[0]]
        for other in fitting:
            if self.variables[other] != values:
                raise InvalidParameter(
                    f"structure.{name}: column {other!r} has the values {self.variables[other]}, "
                    f"and {fitting[0]!r} has {values}; columns of a group need the same values: "
                    "list them (values = […])"
                )
        self.groups[name] = tuple(self.place[member] for member in fitting)
        self.edges[name] = None if edge is None else self.value_of(fitting[0], edge)
        around = neighbours(self.groups[name], is_row=edge is not None).tolist()
        beyond = self.edges[name] or 0
        return [
            Member(
                one,
                star_of(name, one),
                {
                    word: Source(place, values, beyond)
                    for word, place in zip((HERE, LEFT, RIGHT), places, strict=True)
                },
            )
            for one, places in zip(fitting, around, strict=True)
        ]

    def value_of(self, column: str, value: object) -> int:
        """Returns the number of a value of a column."""
        values = self.variables[column]
        if str(value) not in values:
            raise InvalidParameter(
                f"column {column!r} has no value {str(value)!r}; it has {values}"
            )
        return values.index(str(value))

    def sources_of(self, name: str, parent: str, member: Member) -> list[Source]:
        """Returns the columns of a parent; where it is a sum, the numbers of values are added."""
        sources = []
        for word in (part.strip() for part in parent.split("+")):
            bare = word.removeprefix(NEXT)
            shift = len(self.columns) if word != bare else 0
            if bare in member.around:
                source = member.around[bare]
            elif bare in self.columns or (shift and bare in self.decided):
                source = Source(self.place[bare], self.variables[bare])
            else:
                raise unknown(
                    f"structure.{name} has the parent {word!r}",
                    bare,
                    self.columns,
                    ', or parents = "learn"',
                )
            if shift and source.place >= 0 and [*self.place][source.place] not in self.decided:
                raise InvalidParameter(
                    f"structure.{name} has the parent {word!r}, which is not decided before it; "
                    "put its table first"
                )
            sources.append(source._replace(place=source.place + shift if source.place >= 0 else -1))
        return sources

    def parts_of(
        self, name: str, action: str | Mapping[str, Several] | None, member: Member
    ) -> tuple[list[str], list[int]]:
        """Returns the names of the parts of the action that matter, and the part of each action."""
        if action in (None, "all"):
            return [*self.actions], [*range(len(self.actions))]
        if action == "none":
            return ["any"], [0] * len(self.actions)
        if isinstance(action, str):
            raise InvalidParameter(
                f'structure.{name}.action is {action!r}, expected "all", "none", "learn", or parts '
                'with their actions such as {reboot = "reboot_@"}'
            )
        part = [0] * len(self.actions)
        for number, named in enumerate(action.values(), start=1):
            for one in several(named):
                spelled = one.replace(HERE, member.star)
                refuse_unknown(
                    f"structure.{name} has the action {spelled!r}", spelled, self.actions
                )
                part[self.actions.index(spelled)] = number
        return ["other", *action], part

    def add_nodes(self, name: str, entry: NodeKeys, parents: Sequence[str], member: Member) -> None:
        """Adds the nodes of a table, with their names and what is known of them."""
        labels, _ = self.parts_of(name, entry.action, member)
        choices = [options_of(self.sources_of(name, parent, member)) for parent in parents]
        if math.prod(map(len, choices)) * len(labels) > MOST_NODES - len(self.known):
            raise InvalidParameter(
                f"structure makes more than {MOST_NODES} nodes; name fewer parents"
            )
        rules: list[Any] = [*entry.cases]
        if SAME in rules:
            own, values = HERE if member.around else name, self.variables[member.name]
            rules = [rule for rule in rules if rule != SAME]
            rules += [{own: value, IS: value} for value in values]
        for rule in rules:
            check_keys(f"{name}.known", rule, (*parents, ACTION, IS))
            for key, options in zip((*parents, ACTION), [*choices, labels], strict=True):
                if key in rule and str(rule[key]) not in options:
                    raise unknown(
                        f"structure.{name}.known: {key} = {rule[key]!r}", str(rule[key]), options
                    )
        for values in itertools.product(*choices, labels):
            case = dict(zip((*parents, ACTION), values, strict=True))
            given = [r for r in rules if all(case[k] == str(v) for k, v in r.items() if k != IS)]
            self.known.append(self.value_of(member.name, given[0][IS]) if given else -1)
            said = [
                f"{key} {value}" for key, value in case.items() if len(labels) > 1 or key != ACTION
            ]
            self.names.append(f"{name}: {', '.join(said) or 'always'}")
            self.sizes.append(len(self.variables[member.name]))

    def add_term(self, term: Mapping[str, Any]) -> None:
        """Adds a term of the reward: numbers by the values of some columns and the action."""
        of = several(term["of"])
        stars = [word for word in of if "*" in word]
        if stars:
            for column in fnmatch.filter(self.columns, stars[0]):
                self.add_term({**term, "of": [column if word == stars[0] else word for word in of]})
            return
        of_all = Member("", "", {})
        sources = [self.sources_of(REWARD, word, of_all) for word in of if word != ACTION]
        labels, part = self.parts_of(REWARD, "all" if ACTION in of else "none", of_all)
        worth = dict.fromkeys(itertools.product(*map(options_of, sources), labels), 0.0)
        for key, value in term.items():
            if key == "of":
                continue
            fitting = [
                place
                for place in worth
                if fnmatch.fnmatchcase(", ".join(place if ACTION in of else place[:-1]), key)
            ]
            if not fitting:
                raise unknown(f"a term of structure.reward has {key!r}", key, map(", ".join, worth))
            worth |= dict.fromkeys(fitting, value)
        self.rewards.append(looked(len(self.worth), sources, len(labels), part))
        self.worth += worth.values()

    def structure(self) -> Structure:
        """Returns the structure that was read; refuses a column without a table."""
        for name in self.columns:
            if name not in self.decided:
                raise InvalidParameter(
                    f"column {name!r} has no table in the structure; expected [structure.{name}], "
                    "or a group such as machine_*"
                )
        ended = [*self.decided].index(END) if END in self.decided else len(self.decided)
        late = [len(self.columns) + self.place[name] for name in [*self.decided][ended + 1 :]]
        for place in (place for term in self.rewards for place in term.place):
            if place in late:
                name = [*self.place][place - len(self.columns)]
                raise InvalidParameter(
                    f"structure.reward looks at {NEXT + name!r}, which is decided after the end: "
                    f"a step that ends has none; put structure.{name} before structure.end"
                )
        return Structure(
            columns=tuple(self.columns),
            values=tuple(self.variables.values()),
            actions=self.actions,
            target=np.array([self.place[name] for name in self.decided]),
            nodes=Sums.joined([*self.decided.values()]),
            known=np.array(self.known),
            rewards=Sums.joined(self.rewards),
            worth=np.array(self.worth),
            groups=self.groups,
            edges=self.edges,
            node_sizes=np.array(self.sizes),
            node_names=tuple(self.names),
            learnt=tuple(self.learnt),
            declared=tuple(self.declared),
        )


def named_values(columns: Sequence[str], tables: Mapping[str, NodeKeys]) -> dict[str, set[str]]:
    """Returns the values of each column that known cases and terms of the reward name."""
    said = [
        (name if word in (IS, HERE, LEFT, RIGHT) else word, str(value))
        for name, entry in tables.items()
        for case in entry.cases
        if not isinstance(case, str)
        for word, value in case.items()
    ]
    said += [
        pair
        for entry in tables.values()
        for term in entry.terms or ()
        for key in term.keys() - {"of"}
        # The action comes last.
        for pair in zip(
            sorted(several(term["of"]), key=ACTION.__eq__),  # type: ignore[arg-type]
            key.split(BETWEEN),
            strict=False,
        )
    ]
    return {
        column: {
            value
            for word, value in said
            if fnmatch.fnmatchcase(column, word.removeprefix(NEXT)) and not {*value} & {*"*?["}
        }
        for column in columns
    }


def star_of(group: str, name: str) -> str:
    """Returns what stands in place of the star in the name of a member."""
    before, _, after = group.partition("*")
    return name[len(before) : len(name) - len(after)]


def neighbours(members: Sequence[int], *, is_row: bool) -> arrays.IntArray:
    """Returns every member with those to its left and right [M, 3]; −1 beyond the ends of a row."""
    around = np.stack([members, np.roll(members, 1), np.roll(members, -1)], axis=1)
    if is_row:
        around[0, 1] = around[-1, 2] = -1
    return around


def check_keys(name: str, entry: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Refuses keys that a table does not have."""
    for key in entry:
        refuse_unknown(f"structure.{name} has no key {key!r}", key, keys)


def options_of(sources: Sequence[Source]) -> Sequence[str]:
    """Returns the values of a parent: of a sum, from no column to all at their last."""
    if len(sources) == 1:
        return sources[0].values
    return [str(i) for i in range(1 + sum(len(source.values) - 1 for source in sources))]


def looked(first: int, parents: Sequence[Sequence[Source]], parts: int, part: list[int]) -> Sums:
    """Returns the places of the nodes of a column; the part of the action has stride 1."""
    stride, terms = parts, list[tuple[int, int]]()
    for sources in reversed(parents):
        first += sum(stride * source.value for source in sources if source.place < 0)
        terms += [(source.place, stride) for source in sources if source.place >= 0]
        stride *= len(options_of(sources))
    place, strides = np.array(terms, np.int64).reshape(-1, 2).T
    return Sums(np.array([first]), np.array([0, len(terms)]), place, strides, np.array(part))
