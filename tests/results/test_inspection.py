"""What an inspection holds, as what JSON can hold."""

import json
from dataclasses import dataclass

from surestep.results.inspection import ActionUse, Bin, Spread, StateUse, as_json


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
