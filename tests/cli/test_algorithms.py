"""`surestep algorithms`: what each takes, promises, and comes from."""

import json

from support.pump_commands import run_surestep
from surestep.algorithms import ALGORITHMS, make_algorithm


def test_every_algorithm_is_listed_with_what_it_declares():
    result = run_surestep("algorithms", "--json")
    assert result.exit_code == 0
    found = {entry["name"]: entry for entry in json.loads(result.stdout)}
    assert list(found) == list(ALGORITHMS)
    for name, entry in found.items():
        required = {setting: 1 for setting in entry["settings"] if "=" not in setting}
        algorithm = make_algorithm(name, **required)
        assert set(entry["promises"]) == {promise.value for promise in algorithm.promises}
        assert entry["source"] == algorithm.source
        assert entry["constraint"] == algorithm.constraint
        assert entry["summary"]


def test_the_text_names_settings_promises_and_source():
    result = run_surestep("algorithms", "spibb-beta")
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert text.startswith("spibb-beta spibb_n_wedge, delta=0.1 ")
    assert "always: π = π_b on pairs with at most N∧^β visits" in text
    assert "promises: never worse than π_b in the estimated MDP" in text
    assert "2023" in text
