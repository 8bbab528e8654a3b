"""Finds the current policy of a log with a structure, as the description says."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surestep._files import read_path, read_whole
from surestep._json import converted, read_json
from surestep._words import listed
from surestep.description import WORDS_FOR_BEHAVIOR
from surestep.errors import InvalidLog, InvalidParameter, named_in_errors
from surestep.io.labels.binning import Binning
from surestep.io.labels.label_tables import read_pairs, table_in
from surestep.io.labels.vocabulary import joined
from surestep.io.logs.columns import ColumnMapping, naming
from surestep.io.logs.formats import has_format
from surestep.io.logs.tables import connected, types_of
from surestep.model import ColumnRules, FactoredLog, Statement, Structure
from surestep.model.behavior_tree import estimated_behavior, logged_behavior
from surestep.model.factored import action_of
from surestep.results.structured import WrittenRules

KNOWN = Statement("behavior-known")
WORDS = (None, *WORDS_FOR_BEHAVIOR)  # all else are files


class CurrentPolicy(NamedTuple):
    """The current policy, where it comes from, and what a claim assumes about it."""

    source: str  # "rules", "table", or a word of `behavior.policy`; "returns" if nobody knows it
    rules: ColumnRules | None = None
    about: tuple[Statement, ...] = (KNOWN,)

    def record(self, structure: Structure) -> dict[str, Any]:
        """Returns what run.json says of it."""
        if self.rules is None:
            return {"from": self.source}
        return {
            "from": self.source,
            "columns": looked_at(self.rules, structure),
            "whole": self.rules.is_whole,
        }


def looked_at(rules: ColumnRules, structure: Structure) -> list[str]:
    """Returns the columns that rules look at."""
    slots = np.unique(rules.slots) if rules.num_rules else ()
    return [structure.columns[c] for c in slots if c >= 0]


def current_policy(
    given: str | None,
    log: FactoredLog,
    choosing: FactoredLog,
    columns: ColumnMapping,
    binnings: Mapping[str, Binning],
) -> CurrentPolicy:
    """Returns the current policy of a log; only the part that chooses estimates or completes it."""
    structure = log.structure
    if given == "estimate":
        estimated = (Statement("behavior-estimated-apart"),)
        return CurrentPolicy(given, estimated_behavior(choosing), estimated)
    if given == "uniform":
        return CurrentPolicy(given, ColumnRules.of(structure, [], structure.actions[0], chance=1.0))
    if given in (None, "propensities", "row-propensities"):
        return by_propensities(given, log, choosing)
    path = read_path(given)
    if has_format(path):
        kind, rules = "table", table_rules(path, log, columns, binnings)
    else:
        kind, rules = "rules", written_rules(path, structure)
    check_taken(rules, log, path)
    return CurrentPolicy(kind, rules)


def written_rules(path: Path, structure: Structure) -> ColumnRules:
    """Reads rules as rules.json has them."""
    try:
        rules: WrittenRules = converted(read_json(read_whole(path)), WrittenRules)
    except ValueError as problem:
        raise InvalidParameter(
            f"{path}: {problem}; expected rules as rules.json of a result has them, a table of "
            'states, actions and probabilities, or behavior.policy = "uniform" for a trial'
        ) from None
    with named_in_errors(path.name, InvalidParameter):
        return rules.policy(structure)


def by_propensities(given: str | None, log: FactoredLog, choosing: FactoredLog) -> CurrentPolicy:
    """Returns the policy by logged probabilities, if the whole log agrees with it."""
    why = f"no column of the log has them; name it with {naming('propensity')}"
    if log.propensity is not None:
        why = "an action has several where the columns of the state are alike"
        rules = logged_behavior(choosing, log)
        if rules is not None:
            named = listed(looked_at(rules, log.structure) or ["no column"])
            about = Statement("propensities-by-columns", {"columns": named})
            return CurrentPolicy("propensities", rules, (KNOWN, about))
    if given is not None:
        raise InvalidLog(
            f"behavior.policy is {given!r}, but {why}; else name a table or rules, or leave "
            "behavior.policy out: then the claim compares with what the episodes of the log "
            "returned"
        )
    return CurrentPolicy("returns")


def table_rules(
    path: Path, log: FactoredLog, columns: ColumnMapping, binnings: Mapping[str, Binning]
) -> ColumnRules:
    """Reads a table of values of some columns, actions and probabilities."""
    structure = log.structure
    with connected(table_in(path)) as database:
        there = types_of(database)
    named = [name for name in columns.state if name in there]
    if not named:
        raise InvalidLog(
            f"{path} has no column of the state; expected at least one of "
            f"{', '.join(columns.state)}, or rules (behavior.policy)"
        )
    table = read_pairs(path, named, columns.action, binnings, policy=True)
    words = table.vocabulary
    law = np.zeros((len(words.states) + 1, structure.num_actions))
    with named_in_errors(table.name, InvalidParameter):
        action = np.array([action_of(structure, joined(label)) for label in words.actions])
        law[table.pairs.state, action[table.pairs.action]] = table.probability
        conditions = [dict(zip(named, label, strict=True)) for label in words.states]
        return ColumnRules.of_laws(structure, conditions, law)


def check_taken(rules: ColumnRules, log: FactoredLog, path: Path) -> None:
    """Refuses a log with an action that the current policy never takes there."""
    structure, named = log.structure, looked_at(rules, log.structure)
    chance = rules.chances(log.state)[np.arange(log.num_steps), log.action]
    for step in np.flatnonzero(chance == 0)[:1]:
        state = zip(structure.columns, structure.values, log.state[step], strict=False)
        shown = [f"{name} = {values[v]}" for name, values, v in state if name in named]
        where = f" where {listed(shown)}" if shown else ""
        raise InvalidLog(
            f"step {step + 1:,} of the log takes {structure.actions[log.action[step]]!r}{where}; "
            f"{path.name} gives it no probability above 0 there, expected one"
        )
