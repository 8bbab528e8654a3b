"""Learnt structures: exact scores over all choices, false alarms, and what may not matter."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from surestep.algorithms import drafted, learn_structure
from surestep.certificates import NodeRobust, NodeStitched
from surestep.environments.sysadmin import STRUCTURE, SysAdmin
from surestep.errors import InvalidLog, InvalidParameter
from surestep.model import FactoredLog, Structure

LEARN = {"parents": "learn", "action": "learn"}
NAMES = ("a", "b", "c")


def most_alarms(logs):
    """The failures that a share of 5 % would exceed once in 10⁶ tests."""
    return int(stats.binom.isf(1e-6, logs, 0.05))


def log_of(draw, seed, episodes=10, steps=20, actions=2):
    """A log of three columns of two values; `draw` makes chances of 1 from (states, actions)."""
    rng = np.random.default_rng(seed)
    state = np.zeros((episodes, steps + 1, 3), np.int16)
    action = rng.integers(actions, size=(episodes, steps))
    state[:, 0] = rng.integers(2, size=(episodes, 3))
    for t in range(steps):
        state[:, t + 1] = rng.random((episodes, 3)) < draw(state[:, t], action[:, t])
    values = dict.fromkeys(NAMES, ("no", "yes"))
    table = {name: {} for name in NAMES}
    return FactoredLog(
        structure=Structure.read(values, [f"do_{i}" for i in range(actions)], table),
        state=state[:, :-1].reshape(-1, 3),
        action=action.ravel(),
        next_state=state[:, 1:].reshape(-1, 3),
        ended=np.zeros(action.size, np.bool_),
        offsets=np.arange(episodes + 1) * steps,
    )


def chain(state, action):
    """a depends on itself, b on a and the action, c on nothing."""
    a = 0.2 + 0.5 * state[:, 0]
    return np.stack([a, 0.1 + 0.3 * state[:, 0] + 0.4 * action, np.full(len(a), 0.3)], axis=1)


def independent(state, action):
    return np.tile([0.2, 0.5, 0.7], (len(state), 1))


def exact_scores(log, column):
    """The score of each choice, by predicting one draw after the other in fractions."""
    words = [NAMES[column], *(name for name in NAMES if name != NAMES[column])]
    words += [f"next.{name}" for name in NAMES[:column]]
    places = {name: c for c, name in enumerate((*NAMES, *(f"next.{n}" for n in NAMES)))}
    rows = np.concatenate([log.state, log.next_state], axis=1).tolist()
    bar = math.log((len(words) + 2) / 0.05)
    scores = {}
    for size in range(len(words) + 1):
        for parents in itertools.combinations(words, size):
            for way in ("none", "all"):
                counts, chance = {}, Fraction(1)
                for row, action in zip(rows, log.action.tolist(), strict=True):
                    node = (*(row[places[p]] for p in parents), action if way == "all" else 0)
                    seen = counts.setdefault(node, [0, 0])
                    drawn = row[3 + column]
                    chance *= Fraction(2 * seen[drawn] + 1, 2 * sum(seen) + 2)
                    seen[drawn] += 1
                terms = len(parents) + (way == "all")
                exact = math.log(chance.numerator) - math.log(chance.denominator)
                scores[parents, way] = exact - terms * bar
    return scores


@pytest.mark.parametrize("seed", range(3))
def test_of_all_choices_the_one_is_found_that_predicts_best(seed):
    log = log_of(chain, seed, episodes=8)
    found = learn_structure(log, dict.fromkeys(NAMES, LEARN))
    for column, name in enumerate(NAMES):
        scores = exact_scores(log, column)
        best = max(scores, key=scores.get)
        assert (tuple(found[name]["parents"]), found[name]["action"]) == best


def test_columns_find_what_they_depend_on():
    found = learn_structure(log_of(chain, 1, episodes=40), dict.fromkeys(NAMES, LEARN))
    assert found == {
        "a": {"parents": ["a"], "action": "none", "learnt": True},
        "b": {"parents": ["a"], "action": "all", "learnt": True},
        "c": {"parents": [], "action": "none", "learnt": True},
    }


def test_without_dependence_next_to_nothing_is_learnt():
    alarms = sum(
        any(entry["parents"] or entry["action"] != "none" for entry in found.values())
        for found in (
            learn_structure(log_of(independent, seed), dict.fromkeys(NAMES, LEARN))
            for seed in range(60)
        )
    )
    assert alarms <= most_alarms(60)


@pytest.mark.parametrize("machines", [4, 6])
def test_a_ring_is_learnt_as_a_group(machines):
    world = SysAdmin(machines)
    log = world.sample(world.first_failed(0.3), 100, rng=machines)
    found = learn_structure(log, {"machine_*": LEARN})["machine_*"]
    assert found["parents"] == ["@", "@left + @right"]
    assert found["action"] == {"reboot_@": "reboot_@"}


def test_a_ring_is_learnt_machine_by_machine():
    world = SysAdmin(4)
    log = world.sample(world.first_failed(0.3), 300, rng=1)
    tables = {
        f"machine_{i}": {"parents": "learn", "action": {"reboot": f"reboot_{i}"}} for i in range(4)
    }
    found = learn_structure(log, tables)
    for i in range(4):
        near = {f"machine_{(i + step) % 4}" for step in (-1, 0, 1)}
        assert set(found[f"machine_{i}"]["parents"]) == near


def test_parents_that_known_cases_name_stay():
    world = SysAdmin(4)
    log = world.sample(world.first_failed(0.3), 100, rng=1)
    known = STRUCTURE["machine_*"]["known"]
    tables = {
        "machine_*": {"parents": "learn", "action": {"reboot": "reboot_@"}, "known": known},
        "reward": STRUCTURE["reward"],
    }
    assert drafted(tables)["machine_*"]["parents"] == ["@"]
    found = learn_structure(log, tables)
    assert found["machine_*"] == STRUCTURE["machine_*"] | {"learnt": True}
    made = world.structure(found)
    assert made.learnt == ("machine_*",)
    assert replace(made, learnt=()) == world.structure()


def test_values_and_actions_that_only_the_rest_of_the_log_shows_change_nothing():
    world = SysAdmin(5)
    log = world.sample(world.first_failed(0.3), 20, rng=1)
    columns = {f"machine_{i}": ("failed", "rusty", "works") for i in range(5)}
    actions = ["dance", *log.structure.actions, "reboot_9"]
    other = FactoredLog(
        structure=Structure.read(columns, actions, {"machine_*": {}}),
        state=2 * log.state,
        action=log.action + 1,
        next_state=2 * log.next_state,
        ended=log.ended,
        offsets=log.offsets,
    )
    tables = {"machine_*": LEARN}
    assert learn_structure(other, tables) == learn_structure(log, tables)


def test_a_column_that_is_missing_where_it_would_matter_is_no_parent():
    """The end depends on the next a; where nobody sees that of a step that ends, it cannot tell."""
    log = log_of(chain, 1, episodes=40)
    ended = (log.next_state[:, 0] == 1) & (np.arange(log.num_steps) % 3 > 0)
    tables = {name: {} for name in NAMES} | {"end": LEARN}
    values = dict.fromkeys(NAMES, ("no", "yes"))
    seen = replace(
        log,
        structure=Structure.read(values, ["do_0", "do_1"], drafted(tables)),
        ended=ended,
        offsets=np.arange(log.num_steps + 1),
    )
    unseen = np.where(ended[:, np.newaxis], -1, log.next_state)
    assert learn_structure(seen, tables)["end"]["parents"] == ["next.a"]
    blind = learn_structure(replace(seen, next_state=unseen), tables)["end"]
    assert blind["parents"] == ["a"]


def test_claims_by_a_learnt_structure_are_believed():
    world = SysAdmin(3)
    log = world.sample(world.first_failed(0.3), 300, rng=1)
    given = {"machine_*": LEARN, "reward": STRUCTURE["reward"]}
    tables = learn_structure(log.episodes(np.arange(90)), given)
    believed = replace(log, structure=world.structure(tables))
    confirmed = {name: {k: v for k, v in table.items() if k != "learnt"}
                 for name, table in tables.items()}  # fmt: skip
    policy = world.fewest_failed_neighbours()
    for certifier in (NodeStitched(), NodeRobust()):
        claim = certifier.certify(world.problem(believed), policy)
        assert claim.standing == "believed"
        assert claim.assumptions[1].code == "structure-learnt"
        assert "machine_*" in str(claim.assumptions[1])
        proof = certifier.certify(
            world.problem(replace(log, structure=world.structure(confirmed))), policy
        )
        assert (proof.standing, proof.lower) == ("proved", claim.lower)
        assert not proof.assumes("structure-learnt")


def test_same_says_that_a_column_keeps_its_value():
    columns, actions = {"age": ("old", "young"), "dose": ("high", "low")}, ["give", "wait"]
    kept = Structure.read(
        columns,
        actions,
        {
            "age": {"parents": ["age"], "action": "none", "known": "same"},
            "dose": {
                "parents": ["dose"],
                "known": ["same", {"action": "give", "is": "high"}],
            },
        },
    )
    # By (age), and by (dose, action): give leads to high, and wait keeps what there is.
    assert kept.known.tolist() == [0, 1, 0, 0, 0, 1]
    with pytest.raises(InvalidLog, match=r"row 2 contradicts the structure: age: age old"):
        FactoredLog(
            structure=kept,
            state=[[0, 1], [0, 0]],
            action=[0, 1],
            next_state=[[0, 0], [1, 0]],
            ended=[False, False],
            offsets=[0, 2],
        )
    ring = Structure.read(
        {f"m_{i}": ("down", "up") for i in range(3)},
        ["wait"],
        {"m_*": {"parents": ["@left", "@"], "known": "same"}},
    )
    assert ring.known.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parents": "lern"}, "has the parent 'lern'; .*or parents = \"learn\""),
        ({"action": "lern"}, "structure.a.action is 'lern'"),
        ({"known": [{"action": "do_0", "is": "no"}]}, "names parts of an action that is to be"),
        ({"known": "sane"}, "structure.a .*expected known to have .* 'same'; found 'sane'"),
        ({"known": ["same", "sane"]}, "structure.a .*expected known .* 'same'; found 'sane'"),
        ({"known": [{"b": "no", "is": "maybe"}]}, "column 'a' has no value 'maybe'"),
    ],
)
def test_wrong_words_are_refused_by_name(changes, words):
    tables = dict.fromkeys(NAMES, LEARN) | {"a": LEARN | changes}
    with pytest.raises(InvalidParameter, match=words):
        learn_structure(log_of(chain, 1, episodes=1), tables)


def test_a_structure_says_that_it_is_not_yet_learnt():
    with pytest.raises(InvalidParameter, match=r'structure\.a says "learn".*learn_structure'):
        Structure.read({"a": ("no", "yes")}, ["wait"], {"a": LEARN})
    with pytest.raises(InvalidParameter, match=r"structure\.a\.known has no key 'a'"):
        Structure.read({"a": ("no", "yes")}, ["wait"], {"a": {"known": "same"}})
