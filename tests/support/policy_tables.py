"""Random policy tables, with labels that are hard to write down."""

import numpy as np
from hypothesis import strategies as st

from surestep.io.labels.vocabulary import Vocabulary
from surestep.results.findings import PolicyTable

LABELS = st.one_of(
    st.sampled_from(
        ["-3", "=A1", "'quoted'", "a,b", 'say "no"', "", " ", "+x", "@me", "1e5", "\tx"]
    ),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=6),
)

LIMITS = st.sampled_from(["=a; b", "", "dialysis"])


@st.composite
def policy_tables(draw):
    width, acting = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    deciding, ends = draw(st.integers(1, 4)), draw(st.integers(0, 2))
    names = draw(
        st.lists(
            st.sampled_from(["ward", "q", "Visits", "age", "=x", "probability", "drug", "Q"]),
            min_size=width + acting,
            max_size=width + acting,
            unique_by=str.lower,
        )
    )

    def labels(columns, size):
        return draw(
            st.lists(st.tuples(*[LABELS] * columns), min_size=size, max_size=size, unique=True)
        )

    states = labels(width, deciding + ends)
    actions = sorted(labels(acting, draw(st.integers(1, 3))))
    vocabulary = Vocabulary(
        tuple(names[:width]), tuple(names[width:]), tuple(states), tuple(actions)
    )
    everywhere = [(s, a) for s in range(deciding) for a in range(len(actions))]
    chosen = draw(st.sets(st.sampled_from(everywhere)))
    # Every state has an action, and every action is somewhere, or the files would not know it.
    chosen |= {(s, s % len(actions)) for s in range(deciding)}
    chosen |= {(0, a) for a in range(len(actions))}
    pairs = vocabulary.pairs_of([*chosen, *((deciding + i, 0) for i in range(ends))])
    numbers = st.floats(-1e6, 1e6, allow_nan=False)
    size, quiet = pairs.num_pairs, np.arange(deciding + ends) >= deciding
    at_end = quiet[pairs.state]

    def column(values, default):
        drawn = np.array(draw(st.lists(values, min_size=size, max_size=size)))
        return np.where(at_end, default, drawn)

    def policy():
        weight = column(st.floats(0.01, 1), 1.0)
        total = np.add.reduceat(weight, pairs.offsets[:-1])
        return weight / total[pairs.state]

    trusted = draw(st.booleans())
    return PolicyTable(
        vocabulary,
        pairs,
        policy(),
        policy(),
        column(st.integers(0, 10**12), 0),
        column(st.booleans(), False) if trusted else None,
        column(numbers, 0.0),
        column(numbers, 0.0),
        quiet,
        column(st.integers(0, 10**12), 0),
        column(numbers, 0.0),
        column(numbers, 0.0),
        draw(st.integers(0, 10**9)) if trusted else None,
        column(st.booleans(), False) if draw(st.booleans()) else None,
        column(LIMITS, "") if draw(st.booleans()) else None,
    )
