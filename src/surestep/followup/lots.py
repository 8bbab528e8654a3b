"""Draws the lots of a pilot, and puts its episodes into their order.

A lot has a place, an arm that chance drew before the first episode, and, once it is used, the
episode that got it. Lots are used in order. So an episode that is missing from the rows shows: its
lot is pending, in the arm that was drawn. The arm is that of the lot, whatever was done.
"""

import csv
import hashlib
from dataclasses import replace
from io import StringIO

import numpy as np

from surestep._arrays import first_where
from surestep.errors import InvalidLog, InvalidParameter
from surestep.followup.episodes import Episodes

LOTS = "lots.csv"
HEAD = ["place", "arm", "episode"]


def drawn(many: int, share: float, names: tuple[str, str]) -> str:
    """Returns the text of lots.csv, with the name of the new arm first; nobody can foresee it."""
    new = np.random.default_rng().random(many) < share
    text = StringIO()
    lots = [[place, names[0] if x else names[1], ""] for place, x in enumerate(new, 1)]
    csv.writer(text, lineterminator="\n").writerows([HEAD, *lots])
    return text.getvalue()


def read(text: str) -> tuple[list[str], list[str], str]:
    """Returns arms of lots, their episodes (empty where none got it), and the digest of the arms.

    The digest is the SHA-256 of all arms.
    """
    head, *lots = [row for row in csv.reader(StringIO(text)) if row] or [[]]
    expected = [(str(place), len(HEAD)) for place in range(1, len(lots) + 1)]
    if head != HEAD or [(lot[0], len(lot)) for lot in lots] != expected:
        raise InvalidParameter(
            f"the file of lots has the columns {', '.join(head)}, and {len(lots)} rows; expected "
            "place, arm, episode in each row, and the places 1, 2, 3 and so on without a gap"
        )
    arms = [arm for _, arm, _ in lots]
    digest = hashlib.sha256("\n".join(arms).encode()).hexdigest()
    return arms, [episode for *_, episode in lots], digest


def in_order(text: str, digest: str | None, episodes: Episodes) -> Episodes:
    """Returns the episodes of used lots, in the order and the arms of these; refuses any others.

    A lot without a row before the last one used is pending, and began no later than the next one.
    """
    arms, names, found = read(text)
    if digest not in (None, found):
        raise InvalidParameter("the lots have other arms than were drawn; expected them as drawn")
    used = [name for name in names if name]
    different, times = np.unique(used, return_counts=True)
    for e, others in first_where(times > 1, "episode"):
        raise InvalidLog(f"episode {str(different[e])!r} has two lots; expected one{others}")
    for e, others in first_where(~np.isin(episodes.ids, used), "episode"):
        raise InvalidLog(
            f"episode {episodes.ids[e]!r} has no lot; expected each in the file of lots{others}"
        )
    names = names[: max((i for i, name in enumerate(names, 1) if name), default=0)]
    rows = {name: e for e, name in enumerate(episodes.ids)}
    row = np.array([rows.get(name, len(rows)) for name in names], np.int64)
    starts = episodes.starts
    if starts is not None:
        starts = np.append(starts, np.inf)[row]
        later = np.minimum.accumulate(starts[::-1])[::-1]
        starts = np.where(row < len(rows), starts, later)
    nothing = np.zeros((len(episodes.measures), 1))
    return replace(
        episodes,
        ids=tuple(name or f"of lot {place}" for place, name in enumerate(names, 1)),
        starts=starts,
        arm=np.array(arms[: len(names)], str),
        returns=np.append(episodes.returns, nothing, axis=1)[:, row],
        lowest=np.append(episodes.lowest, nothing, axis=1)[:, row],
        highest=np.append(episodes.highest, nothing, axis=1)[:, row],
        pending=np.append(episodes.pending, True)[row],
        followed=np.append(episodes.followed, np.nan)[row],
    )
