"""Nothing is done twice: a log is read and certifiers are made once."""

import pytest

import surestep
from support.pump_commands import write_lines
from surestep import read_log
from surestep.certificates.registry import Asked
from surestep.io.logs import counting, source
from surestep.pipeline import certify_result, evidence

ROWS = [
    "episode,step,state,action,reward,terminated,next_state",
    *(
        f"{e},{s},{'ab'[s]},{'xy'[(e + s) % 2]},{0 if s == 0 else e % 2},{s == 1},{'be'[s]}"
        for e in range(40)
        for s in range(2)
    ),
]
TERMS = {"discount": 0.9, "n_wedge": 1, "worlds": 0, "certificates": ["trajectory"]}


@pytest.fixture
def log(tmp_path):
    return write_lines(tmp_path / "log.csv", ROWS)


@pytest.fixture
def calls(monkeypatch):
    """The names of the functions that are watched, one a call."""
    made = []

    def watch(owner, name):
        original = getattr(owner, name)

        def watched(*arguments, **named):
            made.append(name)
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, watched)

    for owner, name in (
        (source, "count_rows"),
        (source, "numbered_steps"),
        (counting, "check_rows"),
    ):
        watch(owner, name)
    watch(Asked, "make_with")
    return made


@pytest.mark.parametrize("said", [{}, {"returns": (0.0, 1.0)}])
def test_a_log_is_counted_once_and_its_steps_are_read_once(log, calls, said):
    surestep.improve(read_log(log), **TERMS, **said)
    reads = [name for name in calls if name in ("count_rows", "numbered_steps", "check_rows")]
    assert reads == ["count_rows", "numbered_steps"]


def test_steps_are_read_once_for_another_log_too(log, calls, tmp_path):
    said = {"returns": (0.0, 1.0)}
    surestep.improve(read_log(log), **TERMS, **said).save(tmp_path / "out")
    other = write_lines(tmp_path / "other.csv", [ROWS[0], *reversed(ROWS[1:])])
    calls.clear()
    certify_result(tmp_path / "out", other, ["stitched", "robust"])
    assert calls.count("count_rows") == calls.count("numbered_steps") == 1
    assert calls.count("make_with") == 3  # those asked for, and that of the result


@pytest.mark.parametrize("n_wedge", [1, None])
def test_certifiers_are_told_what_goes_with_the_algorithm(log, n_wedge):
    kinds = ["posterior", "robust", "a-priori", "a-priori:bound=beta", "a-priori:n-wedge=3"]
    asked = {"certificates": kinds, "n_wedge": n_wedge, "algorithm": "spibb-2s"}
    result = surestep.improve(read_log(log), **TERMS | asked)
    told = [
        (claim.parameters["bound"], claim.parameters["n_wedge"])
        for claim in result.certificates[2:]
    ]
    used = None if n_wedge is None else result.record.parameters.n_wedge
    assert told == [("2s", used), ("beta", used), ("2s", 3)]


def test_a_log_that_changes_after_it_was_counted_is_refused(log):
    table = read_log(log)
    counts = table.counts()
    write_lines(log, [*ROWS, "40,0,c,x,0,True,e"])
    parts = evidence.assemble(counts, "estimate")
    with pytest.raises(surestep.errors.InvalidLog, match="other labels than when it was counted"):
        evidence.numbered(parts, table, counts, ["stitched"], of_rows=False)
