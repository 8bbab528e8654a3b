"""Changes: equal advice is shown together, and nothing is rounded into another policy."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.findings import gridworld_findings, maintenance_findings
from surestep import Pairs
from surestep.io.labels.vocabulary import Vocabulary
from surestep.report.changes import changed_items, moves_words, table_section, together
from surestep.results.findings import StateChange

# Policies that look alike once they are rounded, and are not.
POLICIES = ((0.5, 0.5), (0.5 + 1e-15, 0.5 - 1e-15), (0.25, 0.75), (1.0, 0.0), (1 - 1e-12, 1e-12))
LABELS = [(a, b, c) for a in "xyz" for b in "01" for c in ("", "low")]


@st.composite
def changed_findings(draw):
    """Findings with states of three columns, of which some change."""
    names = draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=12, unique=True))
    chosen = [draw(st.sampled_from(POLICIES)) for _ in names]
    evidence = st.sampled_from([None, "confirmed", "open", "contradicted"])
    changed = draw(st.lists(st.sampled_from(range(len(names))), min_size=1, unique=True))
    pairs, visits = Pairs.full(len(names), 2), np.arange(2 * len(names))
    table = replace(
        maintenance_findings().table,
        vocabulary=Vocabulary(("a", "b", "c"), ("do",), tuple(names), (("wait",), ("act",))),
        pairs=pairs, probability=np.array(chosen).ravel(),
        behavior=np.full(pairs.num_pairs, 0.5) + np.tile([0.125, -0.125], len(names)),
        visits=visits, trusted=visits > 3, q=visits / 7, advantage=visits / 9,
        quiet=np.zeros(len(names), np.bool_), held_out_visits=visits,
        advantage_low=visits - 1.0, advantage_high=visits + 1.0,
    )  # fmt: skip
    changes = tuple(StateChange(s, 0.1, 0.5, 1 / (1 + s), draw(evidence)) for s in changed)
    return replace(maintenance_findings(), table=table, changes=changes)


@given(changed_findings())
def test_equal_advice_is_shown_together_and_all_of_it_once(findings):
    table, name = findings.table, findings.table.vocabulary.state_name
    policy = table.probability.reshape(-1, 2)
    groups = together(table, findings.changes)
    shown = [change for group in groups for change in group.changes]
    assert sorted(shown) == sorted(findings.changes)
    assert [group.changes[0] for group in groups] == sorted(
        (group.changes[0] for group in groups), key=findings.changes.index
    )
    for group in groups:
        first = group.changes[0]
        names = [name(change.state) for change in group.changes]
        for change in group.changes:
            assert policy[change.state].tobytes() == policy[first.state].tobytes()
            assert change.evidence == first.evidence
        assert sum(len({each[i] for each in names}) > 1 for i in range(3)) <= 1
        assert np.prod([len(texts) for texts in group.situation]) == len(names)
        for i, texts in enumerate(group.situation):
            assert {*texts} == {each[i] for each in names}


@given(changed_findings())
def test_always_is_said_of_what_is_done_always(findings):
    for change in findings.changes:
        words = moves_words(findings.table, [change.state])
        first, last = findings.table.pairs.offsets[change.state : change.state + 2]
        certain = findings.table.probability[first:last].max() == 1
        assert words.startswith("always ") == certain
        assert "100\u202f%" not in words
    for item in changed_items(findings):
        assert item.mood == {"✓": "good", "✗": "bad"}.get(item.sign, "plain")


def test_the_table_has_every_situation_the_changed_ones_first():
    findings = gridworld_findings()
    (table,) = table_section(findings).tables
    word = [row[-1] for row in table.rows]
    assert word == ["changed"] * len(findings.changes) + ["unchanged"] * (
        findings.table.num_deciding - len(findings.changes)
    )
    assert len({row[:2] for row in map(tuple, table.rows)}) == findings.table.num_deciding
    shares = [row[-2].key for row in table.rows[: len(findings.changes)]]
    assert shares == sorted(shares, reverse=True)


@given(changed_findings())
def test_what_the_rest_of_the_log_contradicts_is_not_among_those_that_matter_most(findings):
    assert not [item for item in changed_items(findings) if item.mood == "bad"]
    contradicted = [c._replace(evidence="contradicted") for c in findings.changes]
    assert changed_items(replace(findings, changes=tuple(contradicted))) == []
