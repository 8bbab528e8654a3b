"""Estimates in words."""

from dataclasses import replace

from surestep.report.words.estimates import baseline_words

from findings import maintenance_findings
from surestep.results.baseline import Baseline


def test_what_the_episodes_earned_is_told_with_those_that_were_cut_off():
    record = maintenance_findings().record
    assert baseline_words(record) == ""
    seen = Baseline(
        mean=2.0, low=1.5, high=2.5, episodes=1200, cut_off=0, least=0.0, greatest=3.0, model=9.0,
        model_episodes=100,
    )  # fmt: skip
    words = baseline_words(replace(record, baseline=seen))
    assert words.startswith("The 1,200 episodes of the log earned 2 on average (95\u202f% interval")
    assert "1.5 to 2.5)" in words
    cut = baseline_words(replace(record, baseline=replace(seen, cut_off=7)))
    assert "for 7 that were cut off, the model adds what would have come" in cut
