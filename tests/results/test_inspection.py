"""What an inspection holds, as what JSON can hold."""

import json
from dataclasses import dataclass

from surestep.io.logs.inspection import Rewards
from surestep.results.chart_bins import Bin
from surestep.results.inspection import (
    ActionUse,
    EpisodeLengths,
    Spread,
    StateUse,
    as_json,
    reward_edges,
)


@dataclass(frozen=True)
class Looked:
    """Nested as inspections are."""

    source: str
    bins: tuple[Bin, ...]
    spread: Spread | None
    kind: type


def test_names_stay_and_tuples_become_lists():
    looked = Looked("log.csv", (Bin(1, 2, 30), Bin(3, 9, 4)), None, Bin)
    assert as_json(looked) == {
        "source": "log.csv",
        "bins": [{"low": 1, "high": 2, "times": 30}, {"low": 3, "high": 9, "times": 4}],
        "spread": None,
        "kind": Bin,  # a type is no value of its own kind
    }
    assert as_json(Looked) is Looked


def test_labels_of_several_columns_are_lists():
    use = ActionUse(("stay", "low"), 5, 2, 1)
    assert as_json(use) == {
        "action": ["stay", "low"],
        "visits": 5,
        "states": 2,
        "trusted_states": 1,
    }
    nested = (StateUse(("a",), (1, 2)), 3.5, True, None, "text", ())
    assert as_json(nested) == [{"state": ["a"], "visits": [1, 2]}, 3.5, True, None, "text", []]
    assert json.loads(json.dumps(as_json(nested))) == as_json(nested)


def test_edges_of_bins_lie_between_the_numbers_of_rows():
    lengths = EpisodeLengths(9, 9, 0, 0, None, (Bin(1, 2, 4), Bin(3, 4, 3), Bin(5, 6, 2)))
    assert lengths.edges == [0.5, 2.5, 4.5, 6.5]
    assert lengths._replace(histogram=(Bin(7, 7, 9),)).edges == [6.5, 7.5]


def test_edges_of_rewards_end_where_outliers_begin():
    rewards = Rewards(9, -50.0, (0.0, 1.0, 2.0), 90.0, -1.0, 3.0, (1, 2, 3, 1))
    assert reward_edges(rewards) == [-1.0, 0.0, 1.0, 2.0, 3.0]
