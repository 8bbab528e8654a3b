"""Plain words for the number of rows that make a situation."""

from __future__ import annotations

from surestep.io.labels.histories import Length
from surestep.report.numbers import counted


def history_words(history: str | None, learnt_from: int | None) -> tuple[str, ...]:
    """Returns what a situation is where it may be several rows, and how that was chosen.

    Both are as run.json has them. None where nobody asked for histories.
    """
    if history is None:
        return ()
    length = Length.read(history)
    if length.rows is None:
        return ("How many rows make a situation is to be chosen.",)
    sentence = (
        "A situation is the present row alone."
        if length.rows == 1
        else f"A situation is the last {length.rows} rows of an episode, with the actions between "
        "them."
    )
    if not length.log_likelihood:
        return (sentence,)
    table = ", ".join(
        f"{likelihood:.4f} with {counted(rows, 'row')}"
        for rows, likelihood in enumerate(length.log_likelihood, 1)
    ).replace("-", "−")
    return (
        sentence,
        f"That was chosen with the first {counted(learnt_from or 0, 'episode')}, which judge "
        f"nothing else, by how well what comes next is told where it was held out: log-likelihood "
        f"a row {table}.",
    )
