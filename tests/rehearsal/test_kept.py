"""Rehearsals that stop and go on: finished blocks are kept, and used only for what made them."""

import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.known_worlds import two_ways_problem
from support.stand_in_ray import stand_in
from surestep import _blocks
from surestep._blocks import digest_of
from surestep.algorithms import SPIBB
from surestep.certificates import Posterior, Robust
from surestep.errors import OutOfTime, SurestepError
from surestep.model import Statement
from surestep.rehearsal import Completed, DrawnFromPosterior, rehearse

FAMILY = (Completed("self-loop"), DrawnFromPosterior("jeffreys"))
WORLDS = 12
BLOCKS = 15  # three rounds of five worlds at most: two kinds in two stages, and luck
DONE = [*range(0, 50, 5), *range(50, 61, 2)]  # worlds, after so many blocks


POSTERIOR = Posterior(starts="known", prior="weight", draws=19, delta=0.2)


def run(certifier=POSTERIOR, worlds=WORLDS, n_wedge=3, seed=1, **settings):
    rng = np.random.default_rng(seed)
    given = {"rng": rng, "sizes": (1.0, 4.0), "family": FAMILY} | settings
    return rehearse(two_ways_problem(), SPIBB(n_wedge=n_wedge), certifier, worlds=worlds, **given)


@pytest.fixture(scope="module")
def kept_blocks(tmp_path_factory):
    """The blocks of a rehearsal without an interruption."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def whole(kept_blocks):
    """What comes out without an interruption, by the number of worlds."""
    found = {worlds: run(worlds=worlds).to_json() for worlds in (5, 10)}
    return found | {WORLDS: run(folder=kept_blocks).to_json()}


def interrupt_at(number):
    """A progress function that is interrupted once so many blocks are done."""

    def tell(done, total):
        assert total == DONE[BLOCKS]
        if done == DONE[number]:
            raise KeyboardInterrupt

    return tell


@pytest.mark.one_quick
@pytest.mark.parametrize("number", [0, 1, 7, BLOCKS - 1])
def test_an_interrupted_rehearsal_goes_on_to_the_same_end(number, whole, tmp_path):
    kept = {"folder": tmp_path / "kept", "made_with": "these versions"}
    with pytest.raises(KeyboardInterrupt):
        run(**kept, progress=interrupt_at(number))
    calls = []
    found = run(**kept, progress=lambda *call: calls.append(call))
    assert calls[0] == (DONE[number], DONE[BLOCKS])  # what was finished is not made again
    assert found.to_json() == whole[WORLDS]
    assert len([*(tmp_path / "kept").iterdir()]) == BLOCKS
    calls.clear()
    assert run(**kept, progress=lambda *call: calls.append(call)).to_json() == whole[WORLDS]
    assert set(calls) == {(DONE[BLOCKS], DONE[BLOCKS])}


def test_an_interrupt_while_workers_end_is_raised(monkeypatch):
    def interrupted_at_its_end(function, tasks, **where):
        try:
            yield from enumerate(map(function, tasks))
        finally:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules[rehearse.__module__], "map_as_done", interrupted_at_its_end)
    with pytest.raises(KeyboardInterrupt):
        run(worlds=5)


def test_blocks_of_a_cluster_are_kept_as_they_come(whole, tmp_path, monkeypatch):
    """Its answers come in another order than the blocks, and after any of them a run may end."""
    stand_in(monkeypatch, {"CPU": 1.0}, {"CPU": 1.0})
    folder = tmp_path / "kept"
    told = []

    def end_at_seven(done, total):
        assert len([*folder.glob("*")]) == len(told)
        told.append(done)
        if len(told) == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(folder=folder, engine="ray", progress=end_at_seven)
    calls = []
    found = run(folder=folder, engine="ray", progress=lambda *call: calls.append(call))
    assert calls == sorted(calls)
    assert (len(calls), calls[0], calls[-1]) == (BLOCKS - 6, (told[-1], 60), (60, 60))
    assert found.to_json() == whole[WORLDS]


def test_a_machine_with_other_code_makes_no_blocks(monkeypatch):
    stand_in(monkeypatch)
    rehearsing = sys.modules[rehearse.__module__]
    codes = iter(["ours", "theirs"])
    monkeypatch.setattr(rehearsing, "code_here", lambda: next(codes))
    with pytest.raises(SurestepError, match="with other sources or versions than the process that"):
        run(engine="ray")


@pytest.mark.slow
def test_blocks_that_something_else_made_are_not_used(tmp_path):
    kept = {"folder": tmp_path, "made_with": "these versions"}
    run(**kept)
    for other, used in (
        ({"made_with": "other versions"}, 0),
        ({"n_wedge": 4}, 0),
        ({"seed": 2}, 0),
        ({"sizes": (1.0, 5.0)}, 36),  # calibration and luck are of the data's own size
        ({"certifier": replace(POSTERIOR, delta=0.25)}, 0),
        ({"certifier": Robust()}, 0),
    ):
        calls, terms = [], kept | other
        found = run(**terms, progress=lambda *call, calls=calls: calls.append(call))
        assert calls[0][0] == used, other
        del terms["folder"]
        assert found.to_json() == run(**terms).to_json()
        run(**kept)


def test_blocks_of_certificates_without_draws_are_kept_too(tmp_path):
    calls = []
    terms = {"certifier": Robust(known_start=True), "worlds": 2, "folder": tmp_path}
    first = run(**terms)
    again = run(**terms, progress=lambda *call: calls.append(call))
    assert calls[0] == (14, 14)  # two kinds, and twice five worlds of luck
    assert again.to_json() == first.to_json()


@pytest.mark.one_quick
@pytest.mark.parametrize("damage", [b"", b"PK\3\4 no archive", b"\x93NUMPY\1\0", None])
def test_damaged_blocks_are_made_again(damage, whole, kept_blocks, tmp_path):
    folder = shutil.copytree(kept_blocks, tmp_path / "kept")
    for number, file in enumerate(sorted(folder.iterdir())):
        content = file.read_bytes()
        file.write_bytes(content[: 50 * (number + 1)] if damage is None else damage)
    assert run(folder=folder).to_json() == whole[WORLDS]


def clock_of(monkeypatch, blocks):
    """A clock that shows 10 seconds once that many blocks are begun."""
    ticks = iter([0.0] * (1 + blocks) + [10.0] * BLOCKS)
    monkeypatch.setattr(sys.modules[rehearse.__module__], "monotonic", lambda: next(ticks))


@pytest.mark.one_quick
@pytest.mark.parametrize(("blocks", "reached"), [(6, 5), (9, 5), (10, 10), (14, 10), (15, WORLDS)])
def test_a_time_limit_leaves_a_rehearsal_of_the_worlds_reached(
    blocks, reached, whole, tmp_path, monkeypatch
):
    clock_of(monkeypatch, blocks)
    found = run(time_limit=10.0, least_worlds=reached)
    assert found.worlds == reached
    assert found.to_json() == whole[reached]


def test_after_a_time_limit_there_are_no_more_worlds_of_luck_than_without_one(monkeypatch):
    """δ = 0.05 asks for 19 of them, and the last of the four blocks that hold these has 20."""
    settings = {"certifier": Robust(delta=0.05), "sizes": (1.0,), "family": FAMILY[:1]}
    clock_of(monkeypatch, 6)
    limited = run(worlds=30, time_limit=10.0, **settings)
    assert (limited.worlds, limited.luck.size) == (10, 19)
    assert limited.to_json() == run(worlds=10, **settings).to_json()


def test_too_few_worlds_are_no_rehearsal_but_are_kept(whole, tmp_path, monkeypatch):
    clock_of(monkeypatch, 9)
    words = "time limit of 10 s ended the stress test after 5 of 12 worlds .* expected at least 9"
    with pytest.raises(OutOfTime, match=words):
        run(time_limit=10.0, least_worlds=9, folder=tmp_path)
    clock_of(monkeypatch, 1)
    found = run(time_limit=10.0, least_worlds=9, folder=tmp_path)
    assert found.to_json() == whole[10]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, -0.0, 1.0, 2.0])
    | st.sampled_from(["", "1", "a", "a;", "list 1;"])
    | st.sampled_from([b"", b"a"])
    | st.lists(st.integers(0, 2), max_size=3).map(lambda each: np.array(each, np.int64))
    | st.lists(st.integers(0, 2), max_size=3).map(lambda each: np.array(each, np.int32)),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=2), inside),
    max_leaves=6,
)


def told(value):
    """A value as something that can be compared."""
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.tolist()
    if isinstance(value, dict):
        return "dict", [(key, told(each)) for key, each in value.items()]
    if isinstance(value, list):
        return "list", [told(each) for each in value]
    return type(value).__name__, repr(value)


@given(VALUES, VALUES)
def test_digests_are_equal_for_equal_values_only(one, other):
    assert (digest_of(one) == digest_of(other)) == (told(one) == told(other))


def test_the_sources_that_compute_count_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr(_blocks, "__file__", str(tmp_path / "package" / "_blocks.py"))

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return _blocks.code_here.__wrapped__()

    before = write("package/model/counts.py", "a")
    for name in ("package/report/page.py", "package/cli/deep/main.py", "other.py", "package/x.txt"):
        assert write(name, "b") == before
    changes = ["package/errors.py", "package/model/report/page.py", "package/model/counts.py"]
    assert len({before, *(write(name, "c") for name in changes)}) == 4


def test_premises_have_a_digest_and_other_objects_have_none():
    low, high = (Statement("values-bounded", {"low": 0.0, "high": high}) for high in (1.0, 2.0))
    assert digest_of(low) == digest_of(replace(low)) != digest_of(high)
    with pytest.raises(TypeError, match="object has no digest"):
        digest_of(object())
