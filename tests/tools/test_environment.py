"""The set-up: a lock is dealt into parts that are installed side by side."""

import pytest

from environment import SETS, lock_of, parts_of


@pytest.mark.parametrize("packages", SETS)
def test_every_package_is_in_one_part_with_its_hashes(packages):
    lock = lock_of(packages).read_text(encoding="utf-8")
    expected = [line for line in lock.splitlines() if not line.startswith("#")]
    parts = parts_of(lock_of(packages), 2)
    assert sorted(line for part in parts for line in part.splitlines()) == sorted(expected)
    for part in parts:
        assert part[0].isalnum()
        assert part.endswith("\n")
        for above, line in zip(part.splitlines(), part.splitlines()[1:], strict=False):
            assert line.startswith(" ") == above.endswith("\\")
    assert abs(parts[0].count("==") - parts[1].count("==")) <= 1
