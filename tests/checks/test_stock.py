"""Cases that were running when a log ended: where they are, and what a policy means for them."""

from types import SimpleNamespace

import numpy as np
import pytest

import surestep
from surestep._words import percent
from surestep.checks import says
from surestep.checks.check import GivenResult, GivenStock
from surestep.checks.stock import check
from surestep.description import given_as
from surestep.pipeline.checks import running_stock, state_names
from surestep.pipeline.evidence import gather, open_source
from surestep.pipeline.improve import prepared
from surestep.pipeline.terms import Terms
from surestep.report.groups import harm_words

NAMES = ["new", "worn", "failing", "(end)"]


def found(first, last, gain, interval=lambda starts: (-400.0, -450.0, -350.0)):
    stock = GivenStock(np.array(first), np.array(last), np.array(gain), interval, NAMES)
    return check(GivenResult(**dict.fromkeys(GivenResult.__dataclass_fields__) | {"stock": stock}))


def test_where_cases_begin_as_they_run_on_nothing_is_said():
    assert found([60, 30, 10, 0], [50, 40, 10, 0], [1.0, 2.0, 0.0, 0.0]) is None
    assert found([60, 30, 10, 0], [0, 0, 0, 0], [1.0, -2.0, 0.0, 0.0]) is None  # none runs on
    assert found([99, 1, 0, 0], [96, 1, 3, 0], [1.0, 1.0, 1.0, 0.0]) is None  # few
    assert check(GivenResult(**dict.fromkeys(GivenResult.__dataclass_fields__))) is None


def test_cases_where_hardly_any_begins_are_told():
    told = found([98, 1, 1, 0], [50, 30, 20, 0], [1.0, 2.0, 3.0, 0.0])
    assert (told.figures["running"], told.figures["seldom"], told.figures["worse"]) == (100, 0.5, 0)
    assert says(told) == (
        f"100 cases were not over when the log ended, and {percent(0.5)} of them are in situations "
        "in which hardly any case begins. The claim is about cases that begin as those of the log "
        "did; it says nothing of these."
    )


def test_a_loss_of_running_cases_is_named_and_few_are_enough():
    asked = []
    told = found(
        [98, 1, 1, 0],
        [97, 0, 3, 0],
        [100.0, -5.0, -400.0, -1e-12],
        lambda starts: (asked.append(starts.tolist()), (-400.0, -450.0, -350.0))[1],
    )
    assert asked == [[0, 0, 3, 0]]
    assert "3 cases (“failing”) the best guess is a loss: −400 each" in says(told)
    record = SimpleNamespace(groups=(), checks=(told,))
    assert harm_words(record).startswith("It is worse for cases that run already, in “failing”.")


def plant(seed, episodes=1500):
    """Pumps begin good; those that run fail with 0.3. A failing pump that is run earns −400.

    A service earns −50, and ends the case well; the recording stops after three weeks.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for pump in range(episodes):
        state, over = "good", False
        for week in range(3):
            do = ("run", "service")[int(rng.integers(2))]
            over = state == "failing" and week < 2
            earned = {"run": -400.0 if over else 100.0, "service": -50.0}[do]
            rows.append((pump, week, state, do, earned, over, week == 2))
            if over:
                break
            state = "failing" if do == "run" and rng.random() < 0.3 else "good"
    names = ("pump", "week", "condition", "do", "earned", "over", "cut")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def test_the_gain_from_where_cases_are_is_near_the_truth():
    columns = {"episode": "pump", "step": "week", "state": "condition", "action": "do"}
    columns |= {"reward": "earned", "terminated": "over", "truncated": "cut"}
    asked = {"columns": columns, "behavior": "uniform", "discount": 0.5, "worlds": 0}
    asked |= {"running": (-50, 100), "ending": (-400, -50), "certificates": ["stitched"]}
    description, frame = given_as(plant(0), **asked)
    evidence = gather(
        open_source(description, frame), Terms.of(description, certificates=["stitched"])
    )
    question = prepared(evidence)
    pairs = question.problem.counts.pairs
    run = [label[0] for label in evidence.assembly.vocabulary.actions].index("run")
    choice = np.diff(pairs.offsets)[pairs.state] == 1
    policy = surestep.Policy(pairs, ((pairs.action == run) | choice).astype(float))
    words = state_names(evidence.assembly.vocabulary)
    stock = running_stock(question, SimpleNamespace(policy=policy, changed=np.ones(1, bool)), words)
    names = {name: place for place, name in enumerate(stock.names)}
    assert stock.first[names["good"]] == stock.first.sum() == 1500
    failing = names["failing"]
    assert stock.last[failing] > 0
    assert stock.gain[failing] == pytest.approx(-400 + 225)  # in truth; today half are run
    told = check(GivenResult(**dict.fromkeys(GivenResult.__dataclass_fields__) | {"stock": stock}))
    assert told.figures["high"] < 0
    unchanged = SimpleNamespace(policy=policy, changed=np.zeros(1, bool))
    assert running_stock(question, unchanged, words) is None
