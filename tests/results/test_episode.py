"""Episodes that act with a memory, against a memory that plain Python keeps."""

import numpy as np
import pytest

import surestep
from surestep import Policy
from surestep.checks import says
from surestep.environments import make
from surestep.errors import InvalidParameter
from surestep.pipeline import verify_result
from surestep.pipeline.inspect import inspect
from surestep.results import Default, Episode


def second_order(episodes, seed, lag=1):
    """Coins: each is the one `lag + 1` flips before with chance 0.9, whatever is done."""
    rng = np.random.default_rng(seed)
    rows = []
    for e in range(episodes):
        coins = list[int]()
        for t in range(rng.geometric(0.1)):
            same = len(coins) > lag and rng.random() < 0.9
            coins.append(coins[-1 - lag] if same else int(rng.integers(2)))
            rows.append((e, t, "HT"[coins[-1]], "xy"[rng.integers(2)], 0.0))
    names = ("episode", "step", "coin", "action", "reward")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def tiger_result(memory, episodes=3_000, **more):
    """Rows of uniform decisions in Tiger, improved with a memory."""
    world = make("tiger", memory=0)
    log = world.simulator.rollout(
        Policy.uniform(world.mdp), episodes, world.horizon, np.random.default_rng(1)
    )
    seen, actions = log.pairs.state_labels, log.pairs.action_labels
    table = {
        "episode": np.repeat(np.arange(log.num_episodes), np.diff(log.episode_offsets)),
        "step": log.step,
        "sound": [seen[s] for s in log.state],
        "action": [actions[a] for a in log.action],
        "reward": log.reward,
        "terminated": log.terminated,
        "truncated": log.truncated,
    }
    terms = {"discount": 0.95, "running": (-1, -1), "ending": (-100, 10), "worlds": 0}
    terms |= {"certificates": "stitched", "columns": {"state": "sound"}}
    return table, surestep.improve(table, memory=memory, **terms, **more)


@pytest.mark.thorough
def test_an_episode_remembers_what_its_states_need(tmp_path):
    """With a memory of one sound: open the other door where two sounds in a row agree."""
    table, made = tiger_result(1, 1_200)
    made.save(tmp_path / "result")
    result = surestep.load(tmp_path / "result")
    assert result.memory_steps == 1
    assert verify_result(tmp_path / "result", table).level == "same bytes"
    episode = Episode(result, 0)
    assert [episode.act(x) for x in ("left", "right", {"sound": "left"})] == ["listen"] * 3
    assert episode.act(["left"]) == "open-right"
    assert Episode(result, 0).act("right") == "listen"
    with pytest.raises(InvalidParameter, match="column 'sound 1 step before' is missing"):
        result.act({"sound": "left"}, 0)


def test_an_episode_without_memory_is_act():
    _, result = tiger_result(0, 300)
    chances = [
        [each.act("left") for _ in range(50)] for each in (Episode(result, 3), Acting(result, 3))
    ]
    assert chances[0] == chances[1]


class Acting:
    """`Result.act`, with one generator."""

    def __init__(self, result, seed):
        self.result, self.rng = result, np.random.default_rng(seed)

    def act(self, state):
        return self.result.act(state, self.rng)


@pytest.mark.thorough
def test_what_was_done_instead_is_remembered():
    table = second_order(400, 3)
    table["reward"] = [  # it pays to do what was done before
        float(t > 0 and table["action"][i] == table["action"][i - 1])
        for i, t in enumerate(table["step"])
    ]
    result = surestep.improve(
        table, columns={"state": "coin"}, memory=1, ends="complete", discount=0.5, running=(0, 1),
        ending=(0, 1), worlds=0,
    )  # fmt: skip
    episode = Episode(result, 0, Default("x"))
    with pytest.raises(InvalidParameter, match="nothing was observed yet"):
        episode.did("x")
    for done in "xyyx":
        episode.act("H")
        episode.did(done)
        assert episode.past[0] == ("H", done)
        assert episode.act("T").action == done
    with pytest.raises(InvalidParameter, match="no action has 'z' in column 'action'"):
        episode.did("z")


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("lag", "asked", "enough"), [(1, 2, 1), (0, 1, 0), (2, 1, None), (2, 3, 2)]
)
def test_the_checks_name_the_shortest_memory_that_is_enough(lag, asked, enough):
    table = second_order(700, lag, lag)
    source = surestep.read_log(table, columns={"state": "coin"}, memory=asked, ends="complete")
    (check,) = [check for check in inspect(source).checks if check.code == "memory"]
    if enough is None:
        assert check.outcome == "failed"
        assert says(check).startswith("With a memory of 1 step, the time before it")
    else:
        assert check.figures == {"asked": asked, "enough": enough, "tested": asked + 2}
        assert f"more is needed than a memory of {enough} step" in says(check)


def test_the_page_tells_situations_in_the_order_of_time():
    """The sign of the first step says which way pays in the second."""
    rng = np.random.default_rng(0)
    sign, way = rng.integers(0, 2, (2, 600))
    table = {
        "episode": np.repeat(np.arange(600), 2),
        "step": np.tile([0, 1], 600),
        "place": [text for s in sign for text in (f"sign {'AB'[s]}", "fork")],
        "action": [text for w in way for text in ("go", ("left", "right")[w])],
        "reward": np.stack([np.zeros(600), sign == way], axis=1).ravel(),
    }
    roles = {"state": "place", "known_before": "place"}
    result = surestep.improve(
        table, columns=roles, memory=1, ends="complete", discount=1, ending=(0, 1), rules=0,
        worlds=0,
    )  # fmt: skip
    assert result.verdict == "proved better"
    assert "1 step before: place sign A, action go; now: place fork" in result.report
    checks = {check.code: check for check in result.record.checks}
    assert checks["memory"].why == "nothing-to-compare"  # nothing was longer ago than one step
    assert "outcome-in-state" not in checks


@pytest.mark.slow  # 60 logs each, and each log tested with several memories
@pytest.mark.parametrize(
    ("lag", "asked", "named", "least"),
    [(0, 1, (0, None), 59), (1, 2, (1,), 59), (2, 1, ("-",), 48)],
)
def test_the_shortest_memory_is_named_in_most_of_sixty_short_logs(lag, asked, named, least):
    """Logs of 200 episodes; at most 2 tests of a level of 0.5 % may fail by chance each time."""
    found = list[object]()
    for seed in range(60):
        table = second_order(200, seed, lag)
        source = surestep.read_log(table, columns={"state": "coin"}, memory=asked, ends="complete")
        (check,) = [check for check in inspect(source).checks if check.code == "memory"]
        found.append("-" if check.outcome == "failed" else check.figures.get("enough"))
    assert sum(each in named for each in found) >= least
