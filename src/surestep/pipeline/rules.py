"""Turns a tree into rules in the users' own words, with the evidence for each rule."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from surestep._arrays import BoolArray, freeze
from surestep._words import counted, harmless, listed
from surestep.algorithms.trees import Leaf, StateColumn, Tree, joined
from surestep.io.labels.binning import DECIMAL, Binning
from surestep.io.labels.vocabulary import Vocabulary, called, in_order
from surestep.results.findings import Findings, PolicyTable
from surestep.results.rules import Rule, Rules

SHOWN_EXCEPTIONS = 3
TIED = 1e-9  # of a frequency: less is no difference
NEVER = 1e-12  # the time in states that π_b never enters: its odds decide there, too


def columns_of(words: Vocabulary, quiet: BoolArray) -> tuple[StateColumn, ...]:
    """Returns the columns of the states; bins and numbers are ordered."""
    columns = []
    for i, column in enumerate(words.state_columns):
        texts = [label[i] for label in words.states]
        decided = [text for text, end in zip(texts, quiet, strict=True) if not end]
        order, ordered = values_in_order(texts, column, words.binnings, decided)
        code = freeze(np.array([order.index(text) for text in texts]))
        columns.append(StateColumn(code=code, ordered=ordered, texts=tuple(order)))
    return tuple(columns)


def values_in_order(
    texts: Iterable[str],
    column: str,
    binnings: Mapping[str, Binning],
    decided: Iterable[str] | None = None,
) -> tuple[list[str], bool]:
    """Returns the sorted values of a column, and whether their order has a meaning.

    The order of bins and numbers has one. `decided` lists the values that must be numbers, by
    default all.
    """
    order = [text for (text,) in in_order([(x,) for x in texts], [column], binnings)]
    numbers = {text: float(text) for text in order if re.fullmatch(DECIMAL, text)}
    numeric = {*(order if decided is None else decided)} <= {*numbers}
    if numeric:
        order.sort(key=lambda text: numbers.get(text, math.inf))
    return order, numeric or column in binnings


def rules_of(findings: Findings, tree: Tree, columns: Sequence[StateColumn]) -> Rules:
    """Returns the rules of a tree, those with the largest gain first, and one for the rest last.

    The rest has the action of most leaves; of equal ones, that of the most decisions.
    """
    table = findings.table
    leaves = Counter(leaf.action for leaf in tree)
    last = max(tree, key=lambda x: (leaves[x.action], table.all_decisions[x.states].sum())).action
    whole = joined(tree, last)
    words = table.vocabulary
    written = [rule_of(x, whole, columns, words) for x in tree if x.action != last]
    rules = Rules(
        columns=words.state_columns,
        rules=(*written, rule_of(whole, whole, columns, words)),
        behavior_is_estimated=findings.record.behavior_is_estimated,
        situations=tuple(
            sorted(x for x, end in zip(words.states, table.quiet, strict=True) if not end)
        ),
    )
    *judged, rest = [judged_rule(findings, rules, rule) for rule in rules.rules]
    judged.sort(key=lambda rule: (rule.action is None, -rule.gain))
    return msgspec.structs.replace(rules, rules=(*judged, rest))


def rule_of(leaf: Leaf, whole: Leaf, columns: Sequence[StateColumn], words: Vocabulary) -> Rule:
    """Returns the rule of a leaf: 'If the condition is worn or fair: service.'."""
    when = dict[str, tuple[str, ...]]()
    said = []
    for name, column, values, known in zip(
        words.state_columns, columns, leaf.values, whole.values, strict=True
    ):
        if values != known:
            when[name] = tuple(column.texts[value] for value in sorted(values))
            shown = [*map(harmless, called(when[name], [name] * len(values), words.names))]
            between = {value for value in known if min(values) <= value <= max(values)}
            told = listed(shown, "or")
            if column.ordered and between == values and len(values) > 1:
                told = range_words(shown, min(values) == min(known), max(values) == max(known))
            said.append(f"the {harmless(name)} is {told}")
    start = f"If {listed(said)}" if said else "Else"
    action = leaf.action - 1
    done = ", ".join(map(harmless, words.action_name(action))) if leaf.action else "as before"
    return Rule(
        text=f"{start}: {done}.",
        when=when,
        action=words.actions[action] if leaf.action else None,
    )


def range_words(shown: Sequence[str], is_first: object, is_last: object) -> str:
    """Words several ordered values as a range; a bin's text has its edges: '40 to < 50'."""
    low = f"at least {shown[0].partition(' to < ')[0]}"
    high = f"{'less than' if '< ' in shown[-1] else 'at most'} {shown[-1].rpartition('< ')[2]}"
    return high if is_first else low if is_last else f"{low} and {high}"


def judged_rule(findings: Findings, rules: Rules, rule: Rule) -> Rule:
    """Completes a rule with its exceptions, decisions, estimated gain and evidence."""
    table = findings.table
    labels = table.vocabulary.states
    mine = {s for s, x in enumerate(labels) if not table.quiet[s] and rules.rule(x) is rule}
    place = -1 if rule.action is None else table.vocabulary.action_places[rule.action]
    pairs = table.pairs
    own = np.isin(pairs.state, [*mine])
    taken = own & (pairs.action == place)
    time = findings.behavior_occupancy[pairs.state] * table.behavior
    follow = {*pairs.state[taken & (table.probability == 1.0)].tolist()}
    changes = [change for change in findings.changes if change.state in mine]
    seen = table.visits + table.held_out_visits
    kept = sorted(mine - follow)
    before = as_before(findings, kept)
    text = rule.text.replace(": as before.", f": {before}.")
    if kept and place >= 0:
        named = [f"“{harmless(', '.join(table.vocabulary.state_name(s)))}”" for s in kept]
        more = len(kept) - SHOWN_EXCEPTIONS
        named[SHOWN_EXCEPTIONS:] = [counted(more, "other situation")] if more > 0 else []
        text = f"{rule.text.removesuffix('.')}, but {before} if {listed(named, 'or')}."
    return msgspec.structs.replace(
        rule,
        text=text,
        exceptions=() if place < 0 else tuple(labels[s] for s in kept),
        why=why_kept(table, kept, place) if kept and place >= 0 else "",
        decisions=int(seen[own].sum()),
        taken=int(seen[taken].sum()),
        today=None if place < 0 else float(time[taken].sum() / (time[own].sum() or 1.0)),
        gain=math.fsum(change.contribution for change in changes),
        evidence=dict(Counter(change.evidence for change in changes if change.evidence)),
    )


def as_before(findings: Findings, states: Sequence[int]) -> str:
    """Returns "as before", with the action that is taken most often in these states, if one is."""
    table = findings.table
    there = np.isin(table.pairs.state, states)
    time = (findings.behavior_occupancy[table.pairs.state] + NEVER) * table.behavior
    taken = np.bincount(table.pairs.action[there], weights=time[there], minlength=2)
    mostly = table.vocabulary.action_name(int(taken.argmax()))
    second, first = np.sort(taken)[-2:]
    words = f" (mostly {', '.join(map(harmless, mostly))})"
    return f"as before{words * bool(first > second * (1 + TIED))}"


def why_kept(table: PolicyTable, states: Sequence[int], place: int) -> str:
    """Says why the action of a rule is not taken more often in these states."""
    there = np.isin(table.pairs.state, states) & (table.pairs.action == place)
    seen = table.visits[there if table.allowed is None else there & table.allowed]
    log = "the part of the log that chose" if table.held_out_visits.any() else "the log"
    most = f"{'at most ' * (seen.size > 1)}{counted(int(seen.max(initial=0)), 'time')}"
    needed = f"where more than {table.n_wedge or 0:,} are needed (N∧)"
    reasons = [f"seen there {most} in {log}, {needed}"] * (seen.size > 0)
    barred = ["not allowed there"] * (seen.size < len(states))
    return f"The reason: {listed(reasons + barred, 'or')}."
