"""Files counted as tasks on a Ray cluster give the bytes of one pass."""

import pytest

from support.log_tables import write_table
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io import read_log, write_counts
from surestep.io.logs.source import count_on_ray

pytestmark = [
    pytest.mark.slow,  # a cluster takes its time to start
    # Ray warns about its own future defaults, and leaves sockets to the interpreter's end.
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_a_local_cluster_gives_the_same_bytes(tmp_path):
    ray = pytest.importorskip("ray", reason="needs the extra: pip install '.[cluster]'")
    rows = [
        {"episode": e, "step": t, "state": (e + t) % 4, "action": t % 2, "reward": e / 8}
        for e in range(12)
        for t in range(5)
    ]
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(3):
        part = [row for row in rows if row["episode"] % 3 == number]
        write_table(folder / f"{number}.parquet", part, tuple(rows[0]))
    source, seen = read_log(folder), []
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        counts = count_on_ray(source, progress=lambda *done: seen.append(done))
        write_table(folder / "4.parquet", [rows[0], rows[0]], tuple(rows[0]))
        with pytest.raises(
            InvalidLog, match=r"4\.parquet, row 2.* step 0 is there 2 times"
        ) as refusal:
            count_on_ray(read_log(folder))
        assert "Traceback" not in str(refusal.value)
    finally:
        ray.shutdown()
    assert seen == [(1, 3), (2, 3), (3, 3)]
    write_counts(counts, tmp_path / "cluster.parquet")
    write_counts(source.counts(), tmp_path / "alone.parquet")
    alone, cluster = (tmp_path / f"{name}.parquet" for name in ("alone", "cluster"))
    assert alone.read_bytes() == cluster.read_bytes()


def test_a_table_in_memory_is_not_sent_to_a_cluster():
    frame = {name: [1] for name in ("state", "action", "reward", "next_state")}
    numpy = pytest.importorskip("numpy")
    source = read_log({name: numpy.array(values) for name, values in frame.items()})
    with pytest.raises(InvalidParameter, match="a cluster counts files only"):
        count_on_ray(source)
