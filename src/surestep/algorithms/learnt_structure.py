"""Learns what columns depend on, from the part of a log that chooses.

**Score.** With the parents Z, the draws of a column fall into nodes. Each draw is predicted by the
earlier ones of its node, after a prior of ½ draws of each value (Krichevsky and Trofimov 1981). So
no draw predicts itself: the sum of the logarithms is a likelihood of what was held out. Of counts
n_x of the V values in each node it has the closed form

    ln KT = Σ_nodes [ Σ_x ln Γ(n_x + ½) − ln Γ(Σ_x n_x + V/2) + ln Γ(V/2) − V ln Γ(½) ].

**Search.** It begins with no parents, and goes to the best neighbour: one parent more or less, or
another part of the action. A parent, and an action that matters, must raise ln KT by ln(C/0.05),
if there are C choices. That is the bar of `checks.structure`, where the other side is the largest
likelihood; so here a bit less evidence is enough, as a parent too many costs data and no truth. Of
equals the first is taken: the column itself, then its neighbours, then the others in their order.
Two columns that matter only together are not found.

**Only the part that chooses.** Values that it does not show count for nothing: neither V nor the
parts of the action have them. What the rest of the log shows changes nothing here (a test).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import surestep._arrays as arrays
from surestep.certificates.node_law import log_kt, node_draws
from surestep.description import NodeKeys, several, structure_keys
from surestep.errors import InvalidParameter
from surestep.model.factored import FactoredLog
from surestep.model.structure import (
    ACTION,
    HERE,
    IS,
    LEARN,
    LEFT,
    NEXT,
    RIGHT,
    Member,
    Reader,
    Structure,
    Sums,
    looked,
)

Choice = tuple[int, tuple[str, ...]]  # a way to tell actions apart, by its number, and parents
CLEAR = 0.05  # over the number of choices: the ratio of likelihoods that a parent must beat


def drafted(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns tables without what is to be learnt; parents that `known` names stay.

    Parameters
    ----------
    tables : mapping
        The tables of a structure, some with `parents = "learn"` or `action = "learn"`.

    Returns
    -------
    dict
        Tables that `Structure.read` takes, so that a log can be made.

    Raises
    ------
    InvalidParameter
        `known` names parts of an action that is to be learnt.

    Examples
    --------
    >>> from surestep.algorithms import drafted
    >>> drafted({"lamp": {"parents": "learn", "action": "none"}})
    {'lamp': {'parents': [], 'action': 'none'}}
    """
    drafts = {}
    for name, entry in structure_keys(tables).items():
        own = [HERE if "*" in name else name]
        said = [w for case in entry.cases for w in (own if isinstance(case, str) else case)]
        if ACTION in said and entry.action == LEARN:
            raise InvalidParameter(
                f"structure.{name}.known names parts of an action that is to be learnt; expected "
                'action = {part = "…"} with these parts'
            )
        kept = dict.fromkeys(word for word in said if word not in (ACTION, IS))
        empty = {"parents": [*kept], ACTION: "none"}
        drafts[name] = {k: empty.get(k, v) if v == LEARN else v for k, v in tables[name].items()}
    return drafts


def learn_structure(
    log: FactoredLog, tables: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Learns the parents and the parts of the action that tables leave open.

    Parameters
    ----------
    log : FactoredLog
        The part of a log that chooses. Its own structure gives columns, values and actions; that of
        `drafted(tables)` will do.
    tables : mapping
        The tables of a structure, some with `parents = "learn"` or `action = "learn"`.

    Returns
    -------
    dict
        All tables, complete. What was learnt has the mark `learnt`, by which claims are only
        believed. Who knows that such a table is true takes the mark away.

    Raises
    ------
    InvalidParameter
        A table names something that does not exist.

    Examples
    --------
    >>> from surestep.algorithms import learn_structure
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> world = SysAdmin(4)
    >>> log = world.sample(world.first_failed(0.3), 100, rng=1)
    >>> learn_structure(log, {"machine_*": {"parents": "learn", "action": "learn"}})["machine_*"]
    {'parents': ['@', '@left + @right'], 'action': {'reboot_@': 'reboot_@'}, 'learnt': True}
    """
    columns = {name: log.structure.values[c] for c, name in enumerate(log.structure.columns)}
    drafted_tables = drafted(tables)
    log = replace(log, structure=Structure.read(columns, log.structure.actions, drafted_tables))
    stacks, when = node_draws(log)
    row, d = np.divmod(when[stacks.entry >= 0], log.structure.target.size)
    reader = Reader(columns, log.structure.actions)
    found = {name: dict(entry) for name, entry in tables.items()}
    drafts = structure_keys(drafted_tables)
    for name, entry in structure_keys(tables).items():
        if LEARN in (entry.parents, entry.action):
            members = reader.members_of(name, entry.edge)
            rows = [row[log.structure.target[d] == reader.place[one.name]] for one in members]
            found[name] |= learnt(log, reader, (name, entry, drafts[name]), members, rows)
        reader.add(name, drafts[name])
    return found


def learnt(
    log: FactoredLog,
    reader: Reader,
    said: tuple[str, NodeKeys, NodeKeys],
    members: Sequence[Member],
    rows: Sequence[arrays.IntArray],
) -> dict[str, Any]:
    """Returns the parents and the action by which a table predicts its draws best.

    `said` has its name, what was said of it, and its draft; `rows` are those that its members draw.
    """
    name, entry, draft = said
    values, width = log.values(), len(log.structure.columns)
    seen = [values[r, width + reader.place[m.name]] for r, m in zip(rows, members, strict=True)]
    drawn = np.unique(np.concatenate(seen), return_inverse=True)[1]
    size = int(drawn.max(initial=0)) + 1
    given = several(draft.parents)
    asked = [key for key in ("parents", ACTION) if getattr(entry, key) == LEARN]
    shown, taken = values[np.concatenate(rows)], np.unique(log.action)
    offered = possible_parents(reader, name, members, shown) if "parents" in asked else []
    free = [word for word in offered if word not in given]
    ways = possible_actions(reader, members, taken) if ACTION in asked else [draft.action]
    bar = math.log((len(free) + len(ways)) / CLEAR)

    def score(choice: Choice) -> float:
        way, words = choice
        sums = Sums.joined(
            [
                looked(0, [reader.sources_of(name, word, one) for word in words], len(labels), part)
                for one in members
                for labels, part in [reader.parts_of(name, ways[way], one)]
            ]
        )
        node = np.concatenate([sums.at(i, values, log.action)[r] for i, r in enumerate(rows)])
        some, code = np.unique(node, return_inverse=True)
        counts = np.bincount(code * size + drawn, minlength=some.size * size).reshape(-1, size)
        needed = bar * ((way > 0) + len(words) - len(given))
        # What differs less is equal, so that last bits choose nothing.
        return round(float(log_kt(counts.astype(np.float64)).sum()) - needed, 6)

    way, words = climbed((0, given), free, len(ways), score)
    parents = [word for word in dict.fromkeys((*offered, *words)) if word in words]
    best = {"parents": parents, ACTION: ways[way]}
    return {key: best[key] for key in asked} | {"learnt": True}


def climbed(
    choice: Choice, free: Sequence[str], ways: int, score: Callable[[Choice], float]
) -> Choice:
    """Goes from a choice to its best neighbour until none is better."""
    way, words = choice
    more = [(way, (*words, word)) for word in free if word not in words]
    less = [(way, tuple(w for w in words if w != word)) for word in free if word in words]
    best = max([choice, *more, *less, *((n, words) for n in range(ways))], key=score)
    return choice if best == choice else climbed(best, free, ways, score)


def possible_parents(
    reader: Reader, name: str, members: Sequence[Member], values: arrays.IntArray
) -> list[str]:
    """Returns the column itself, neighbours, other columns, and columns decided before.

    One that is missing in a row where the table is drawn is none: `values` are those of such rows.
    """
    own = [reader.place[member.name] for member in members]
    missing = {*np.flatnonzero((values < 0).any(axis=0)).tolist()}
    shown = {*values[:, own].flat, *(s.value for s in members[0].around.values() if s.place < 0)}
    words = [
        *([HERE] if "*" in name else [name] * (name in reader.columns)),
        # With a third value, which only the other part may show, a sum would be another one.
        *([f"{LEFT} + {RIGHT}"] * (len(own) > 2 and len(shown) < 3)),
        *([LEFT, RIGHT] * (len(own) > 1)),
        *(other for other in reader.columns if reader.place[other] not in own),
        *(NEXT + other for other in reader.decided),
    ]
    return [
        word
        for word in words
        if all(s.place not in missing for m in members for s in reader.sources_of(name, word, m))
    ]


def possible_actions(
    reader: Reader, members: Sequence[Member], taken: arrays.IntArray
) -> list[Any]:
    """Returns ways to tell actions apart: none, those of the member such as reboot_@, and all.

    Only what every member showed is one of the member: `taken` are the actions that were.
    """
    star, names = members[0].star if members[0].around else "", [reader.actions[a] for a in taken]
    spelled = [action.replace(star, HERE) for action in names if star and star in action]
    own = [one for one in spelled if all(one.replace(HERE, m.star) in names for m in members)]
    groups = [*([one] for one in own), *([own] * (len(own) > 1))]
    return ["none", *({one: one for one in group} for group in groups), "all"]
