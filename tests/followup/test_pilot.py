"""What is not known yet never speaks for the new policy, nor against it, at any look."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from surestep.followup.episodes import Episodes, Measure
from surestep.followup.pilot import DAY, PilotPlan, judged, seconds

MADE = "2026-01-01"
COIN = Measure("return", 0.0, 1.0, middle=0.5, variance=0.25)
rows = st.lists(
    st.tuples(
        st.booleans(),  # the new policy
        st.floats(0, 1),  # the return
        st.booleans(),  # not known yet
        st.floats(0, 0.5),  # how much of the range a clock cut
    ),
    min_size=1,
    max_size=25,
)


def episodes_of(given_rows, *, known):
    new, returns, pending, cut = map(np.array, zip(*given_rows, strict=True))
    left = np.zeros(new.size) if known else cut
    return Episodes(
        measures=(COIN,),
        ids=tuple(map(str, range(new.size))),
        starts=seconds(MADE) + DAY * np.arange(new.size),
        arm=np.where(new, "new", "old"),
        returns=returns[np.newaxis],
        lowest=np.maximum(returns - left, 0)[np.newaxis],
        highest=np.minimum(returns + left, 1)[np.newaxis],
        pending=np.zeros(new.size, bool) if known else pending,
        followed=np.ones(new.size),
    )


@settings(deadline=None)
@given(rows, st.integers(0, 40), st.sampled_from([None, 3.0]))
def test_late_and_cut_outcomes_widen_the_interval(given_rows, day, deadline):
    plan = PilotPlan(
        made=MADE,
        digest="",
        delta=0.5,
        episodes=8,
        measures=[COIN],
        share=0.4,
        deadline=deadline,
    )
    today = str(np.datetime64(MADE) + day)
    whole, part = (
        judged(plan, "", episodes_of(given_rows, known=known), today) for known in (True, False)
    )
    assert part.counted <= whole.counted == len(given_rows)
    if whole.measures and part.measures:  # the share of arms passed its test
        (all_known,), (some_known,) = whole.measures, part.measures
        assert some_known.lower <= all_known.lower + 1e-12
        assert some_known.upper >= all_known.upper - 1e-12
        assert all(line[1] <= all_known.lower + 1e-12 for line in some_known.lines)


def test_pending_ones_count_from_the_deadline_on():
    given_rows = [(True, 1.0, False, 0.0), (False, 0.0, True, 0.0), (True, 1.0, False, 0.0)]
    fixed = {"made": MADE, "digest": "", "delta": 0.1, "episodes": 8, "measures": [COIN]}
    counted = [
        judged(
            PilotPlan(**fixed, deadline=10.0), "", episodes_of(given_rows, known=False), today
        ).counted
        for today in ("2026-01-11", "2026-01-12")  # it began on 2026-01-02
    ]
    assert counted == [1, 3]
