"""Histories whose length is to be chosen, for verbs that need nothing else to be learnt."""

from __future__ import annotations

from surestep.cli.terminal import say
from surestep.io.logs.reading import is_to_be_learnt
from surestep.io.logs.source import LogSource


def with_history(source: LogSource, *, quiet: bool = False) -> LogSource:
    """Returns the log with as many rows a state as it suggests, and says so unless `quiet`.

    Where states are to be learnt first, which takes a discount, the log stays as it is.
    """
    reading = source.reading
    if reading.history_length.rows is not None or is_to_be_learnt(reading.states_from):
        return source
    from surestep.report.words.histories import history_words
    from surestep.states import choose_history

    chosen = choose_history(source)
    if not quiet:
        for sentence in history_words(chosen.reading.history, chosen.reading.learnt_from):
            say(sentence)
    return chosen
