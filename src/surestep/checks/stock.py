"""Are running cases in situations in which hardly any case begins?

A claim is about episodes that begin as those of the log did. A case that was running when the log
ended goes on from where it is: perhaps in a situation that the new policy hardly enters, so that
what it does there counts for next to nothing in the claim. So the situations in which episodes
began are compared with those of running ones, after their last rows. For situations from which the
model sees a loss, it estimates the gain of the cases there, with an interval.
"""

import numpy as np

from surestep.checks.check import Check, CheckKind, GivenResult, Mark
from surestep.checks.words import filled

SELDOM = 0.1  # times the share of running cases: a smaller share of the first situations is small
FEW = 0.05  # of the running cases: so few in such situations are not worth a line
ROUNDING = 1e-9
NAMED = 3  # situations


def check(result: GivenResult) -> Check | None:
    """Tells where running cases are; None if cases begin there, and the model sees no loss."""
    stock = result.stock
    if stock is None or not stock.last.any():
        return None
    running = float(stock.last.sum())
    rare = stock.first / max(int(stock.first.sum()), 1) < SELDOM * stock.last / running
    seldom = float(stock.last[rare].sum())
    worse = (stock.last > 0) & (stock.gain < -ROUNDING * np.abs(stock.gain).max())
    if seldom < FEW * running and not worse.any():
        return None
    some = np.where(worse, stock.last, 0)
    gain, low, high = stock.interval(some) if worse.any() else (0.0, 0.0, 0.0)
    figures = (running, seldom / running, float(some.sum()), gain, low, high)
    most = np.argsort(-some, kind="stable")[:NAMED].tolist()
    return Check(
        code=KIND.code,
        outcome="told",
        figures=dict(zip(KIND.figures, figures, strict=True)),
        picture=tuple(Mark(stock.names[s], 0.0, 0.0, float(some[s])) for s in most if some[s]),
    )


def told(check: Check) -> str:
    """Says where running cases are, and what the new policy may mean for them."""
    where = ", ".join(f"“{mark.name}”" for mark in check.picture)
    loss = (
        f" In the situations of {{worse:case}} ({where}{' …' * (len(check.picture) == NAMED)}) the "
        "best guess is a loss: {gain:+} each, probably {low:+} to {high:+}. Keep what you do there."
    )
    return filled(
        "{running:case} were not over when the log ended, and {seldom:%} of them are in situations "
        "in which hardly any case begins. The claim is about cases that begin as those of the log "
        f"did; it says nothing of these.{loss * bool(check.figures['worse'])}",
        check,
    )


KIND = CheckKind(
    code="running-cases",
    title="The claim is about new cases",
    failed=told,
    figures=("running", "seldom", "worse", "gain", "low", "high"),
    of_result=check,
)
