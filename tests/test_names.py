"""The refusal of a name that is not known: one sentence, for whatever has names."""

import pytest

from surestep._names import unknown
from surestep.algorithms.registry import SHELF as ALGORITHMS
from surestep.certificates.registry import SHELF as CERTIFICATES
from surestep.environments.registry import SHELF as ENVIRONMENTS
from surestep.errors import InvalidParameter


@pytest.mark.parametrize(
    ("name", "known", "words"),
    [
        ("aple", ["apple", "fig"], "no aple; did you mean apple? expected one of apple, fig"),
        ("aple", {"apple": 1, "maple": 2}, "no aple; did you mean maple or apple? expected one"),
        ("aa", ["aab", "aac", "aad", "aae"], "did you mean aae or aad or aac? expected one of aab"),
        ("zzz", ["apple"], "no zzz; expected one of apple"),
        (None, iter(["apple"]), "no None; expected one of apple"),
        ("aple", [], "no aple; there are none"),
    ],
)
def test_a_name_is_refused_with_those_that_come_closest(name, known, words):
    assert words in str(unknown(f"no {name}", name, known))


@pytest.mark.parametrize("shelf", [ALGORITHMS, CERTIFICATES, ENVIRONMENTS], ids=lambda s: s.sort)
def test_every_registry_refuses_alike(shelf):
    first = next(iter(shelf.everything()))
    assert shelf.get(first) is shelf.find(first)
    with pytest.raises(InvalidParameter) as refusal:
        shelf.get(f"{first}x")
    words = str(refusal.value)
    assert words.startswith("there is no ")
    assert f" '{first}x'; did you mean {first}" in words
    assert words.endswith(f"expected one of {', '.join(shelf.everything())}")
