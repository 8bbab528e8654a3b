"""A log and what is said of it: how its columns are listed."""

from support.log_tables import frame_of
from surestep.io import read_log


def test_columns_are_listed_one_below_the_other():
    row = {"state": "a", "action": "x", "reward": 1, "pscore": 0.5}
    listed = str(read_log(frame_of([row], [*row])).columns).splitlines()
    assert listed[-1] == "propensity  pscore"
    assert all(line[11] == " " != line[12] for line in listed)
