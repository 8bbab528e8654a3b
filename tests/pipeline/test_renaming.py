"""What states and actions are called decides nothing: numbers follow the order of the log."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.labelled_worlds import WORLDS, world
from surestep import improve, read_log
from surestep.model.numbering import by_appearance, places

NAMES = ("episode", "step", "state", "action", "reward", "next_state", "terminated", "truncated")


def table_of(each, states, actions):
    """The log of a world, its states and actions called by these names."""
    log = each.log
    step = np.arange(log.num_steps) - np.repeat(log.episode_offsets[:-1], lengths_of(log))
    columns = (
        np.repeat(np.arange(log.num_episodes), lengths_of(log)), step, states[log.state],
        actions[log.action], log.reward, states[log.next_state], log.terminated, log.truncated,
    )  # fmt: skip
    return dict(zip(NAMES, columns, strict=True))


def lengths_of(log):
    return np.diff(log.episode_offsets)


def named(numbers, seed):
    """As many names, in an order that a seed decides."""
    words = np.array([f"n{i:02}" for i in range(numbers)], object)
    return np.random.default_rng(seed).permutation(words)


def results(each, seed, **terms):
    """Everything that a user sees of an improvement, by the numbers of the world."""
    pairs = each.mdp.pairs
    states, actions = named(pairs.num_states, seed), named(pairs.num_actions, seed + 1)
    result = improve(read_log(table_of(each, states, actions)), discount=0.9, **terms)
    words = result.table.vocabulary
    rows = {
        (states.tolist().index(words.states[s][0]), actions.tolist().index(words.actions[a][0])): p
        for s, a, p in zip(
            result.table.pairs.state, result.table.pairs.action, result.table.probability,
            strict=True,
        )
        if not result.table.quiet[s]
    }  # fmt: skip
    assert list(words.states[: len(words.states) - result.table.quiet.sum()]) == sorted(
        label for s, label in enumerate(words.states) if not result.table.quiet[s]
    )
    claims = [(claim.kind, claim.lower) for claim in result.certificates]
    gains = None if result.rehearsal is None else result.rehearsal.gain.tolist()
    return result.verdict, claims, rows, [check.p_value for check in result.record.checks], gains


def test_renaming_states_and_actions_changes_nothing():
    each = world(3, states=5, actions=3, episodes=60)
    assert results(each, 10, worlds=0) == results(each, 0, worlds=0)


def test_kinds_that_need_no_episodes_are_called_alike_too():
    each = world(3, states=5, actions=3, episodes=60)
    kinds = ["posterior:train_share=0", "robust", "a-priori"]
    first = results(each, 0, worlds=0, certificates=kinds)
    assert results(each, 10, worlds=0, certificates=kinds) == first


def test_renaming_changes_no_stress_test_either():
    each = world(5, states=3, actions=2, episodes=60)
    first = results(each, 0, worlds=1)
    assert first[-1] is not None
    assert results(each, 30, worlds=1) == first


@given(each=WORLDS, data=st.data())
def test_numbers_by_appearance_and_back(each, data):
    log = each.log
    last = np.array(data.draw(st.lists(st.booleans(), min_size=log.pairs.num_states,
                                       max_size=log.pairs.num_states)))  # fmt: skip
    numbering = by_appearance(log, last)
    moved = numbering.log(log)
    # The same rows, of other numbers; every state and action first comes after those below it.
    np.testing.assert_array_equal(numbering.state[moved.state], log.state)
    np.testing.assert_array_equal(numbering.action[moved.action], log.action)
    np.testing.assert_array_equal(numbering.pair[moved.pair], log.pair)
    np.testing.assert_array_equal(moved.pairs.find(moved.state, moved.action), moved.pair)
    assert (np.diff(last[numbering.state].astype(int)) >= 0).all()
    seen = [s for s in dict.fromkeys(moved.state.tolist()) if not last[numbering.state[s]]]
    assert seen == sorted(seen)
    actions = list(dict.fromkeys(moved.action.tolist()))
    assert actions == sorted(actions)
    back = by_appearance(log, last).pairs
    assert back == moved.pairs
    np.testing.assert_array_equal(numbering.pair[places(numbering.pair)], np.arange(back.num_pairs))
