"""What is said of situations that were learnt from measurements."""

from surestep.io.labels.state_rules import Split, TreeRule
from surestep.report.words.learnt_states import MOST_NAMED, learnt_words


def tree(leaves):
    """A tree that cuts lactate at 1, 2, …"""
    split = None
    for threshold in range(leaves - 1, 0, -1):
        split = Split("lactate", float(threshold), None, split)
    return TreeRule(("lactate",), split)


def test_they_are_told_with_the_episodes_that_taught_them():
    assert learnt_words(None, None) == learnt_words(None, 30) == ()
    assert learnt_words(tree(2), 800) == (
        "The 2 situations were learnt with the first 800 episodes, which judge nothing else: "
        "lactate < 1; lactate ≥ 1.",
    )
    (given,) = learnt_words(tree(2), None)
    assert given.startswith("The 2 situations are those of a rule that was given: ")


def test_of_many_only_some_are_named():
    (sentence,) = learnt_words(tree(MOST_NAMED), 5)
    assert (sentence.count(";"), "more" in sentence) == (MOST_NAMED - 1, False)
    (sentence,) = learnt_words(tree(MOST_NAMED + 3), 5)
    assert sentence.endswith("; lactate 5 to < 6; 3 more.")
