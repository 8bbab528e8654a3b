"""The sentences of alarms: one for every code, with all of its numbers."""

import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from findings import maintenance_findings
from surestep.report.words.alarms import alarm_words, baseline_words
from surestep.results.alarms import FIGURES, Alarm, AlarmCode
from surestep.results.baseline import Baseline

WHOLE = {"decisions": 1234, "situations": 17, "visits": 2}


@pytest.mark.parametrize("code", get_args(AlarmCode))
def test_every_code_has_a_sentence_that_names_its_numbers(code):
    names = FIGURES[code]
    figures = {name: WHOLE.get(name, 0.125 + 2 * i) for i, name in enumerate(names)}
    if "share" in figures:
        figures["share"] = 0.75
    words = alarm_words(Alarm(code, figures))
    assert words.endswith(".")
    for name, value in figures.items():
        text = "75\u202f%" if name == "share" else f"{value:,}"
        assert text in words, name
    changed = [
        alarm_words(Alarm(code, figures | {name: value / 2 if name == "share" else value + 1}))
        for name, value in figures.items()
    ]
    assert len({words, *changed}) == len(changed) + 1


def test_the_docs_explain_each_code_once():
    docs = (Path(__file__).parents[3] / "docs" / "result.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^## Alarms$(.*?)^## ", docs, re.M | re.S)
    cells = re.findall(r"^\| (`.*?`) \|", table, re.M)
    assert re.findall("`(.*?)`", " ".join(cells)) == [*get_args(AlarmCode)]


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
