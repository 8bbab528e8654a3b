"""The rows of a heat map: what a setting is called there, and in which order settings stand."""

import pytest

from surestep.experiments import Method
from surestep.figures.heat_maps import row_names, setting_of, short


@pytest.mark.parametrize(
    ("n_wedge", "setting", "found"),
    [
        (27, "epsilon=0.1", (27.0, "N∧ = 27")),
        (None, "epsilon=0.1, delta=1.0", (0.1, "ε = 0.1")),
        (None, "kappa=1e-05", (1e-05, "κ = 1e-05")),
        (None, "n_min=30", (30.0, "n_min = 30")),
        (None, "n_wedge=auto", (0.0, "N∧ = auto")),
        (None, "", (0.0, "")),
    ],
)
def test_a_setting_is_a_number_to_sort_by_and_a_few_characters(n_wedge, setting, found):
    assert setting_of(Method("spibb", setting, n_wedge)) == found


def test_methods_that_differ_in_a_second_setting_have_rows_of_their_own():
    methods = [
        Method("spibb-2s", f"delta={delta}", n_wedge) for n_wedge in (20, 5) for delta in (0.5, 0.1)
    ]
    names = row_names(methods)
    assert list(names.values()) == [
        "N∧ = 5, δ = 0.1", "N∧ = 5, δ = 0.5", "N∧ = 20, δ = 0.1", "N∧ = 20, δ = 0.5",
    ]  # fmt: skip
    assert list(row_names(methods[::2]).values()) == ["N∧ = 5", "N∧ = 20"]


@pytest.mark.parametrize(
    ("size", "words"), [(1, "1"), (1000, "1k"), (1500, "1,500"), (2_000_000, "2,000k")]
)
def test_data_sizes_are_not_rounded(size, words):
    assert short(size) == words
