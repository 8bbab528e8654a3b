"""The rows of a heat map: what a setting is called there, and in which order settings stand."""

import pytest

from surestep.experiments import Method
from surestep.figures.heat_maps import setting_of


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
