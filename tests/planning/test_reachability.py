"""Chances to reach states: against exact fractions, against Storm, and laws that hold for any."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import stormpy
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.model_files import storm_in_this_process
from support.storm_oracle import storm_chance
from support.strategies import all_pairs, mdps, policies
from surestep import FiniteMDP, Pairs, Policy, reachability
from surestep.errors import InvalidParameter, NotConverged, ShapeMismatch
from surestep.io import from_prism
from surestep.planning import ReachChance

GOALS = ("most", "least")

# ---- models and exact answers -------------------------------------------------------------------


@st.composite
def worlds(draw, max_states=4, max_actions=2):
    """A model with loops, ends, traps and stored zeros, and a target that is not empty."""
    pairs = draw(all_pairs(max_states, max_actions))
    states, rows = range(pairs.num_states), []
    for _ in range(pairs.num_pairs):
        row = draw(
            st.dictionaries(st.sampled_from(states), st.sampled_from([0, 1, 1, 2, 3, 10**9]))
        )
        rows.append(row if any(row.values()) else {})
    weight = [np.array([*row.values()], float) for row in rows]
    probability = [each / each.sum() for each in weight if each.size]
    if draw(st.booleans()):  # sums that are 1 only within rounding
        probability = [each * (1 + draw(st.integers(-9, 9)) * 1e-13) for each in probability]
    start = np.array(draw(st.lists(st.integers(0, 3), min_size=len(states), max_size=len(states))))
    start[draw(st.sampled_from(states))] += 1
    mdp = FiniteMDP(
        pairs,
        np.concatenate([[0], np.cumsum([len(row) for row in rows])]),
        np.array([s for row in rows for s in row], int),
        np.concatenate([np.zeros(0), *probability]),
        np.ones(sum(map(len, rows))),
        np.array([draw(st.sampled_from([0.0, 0.5, 1.0])) for _ in rows]),
        start / start.sum(),
    )
    return mdp, sorted(draw(st.sets(st.sampled_from(states), min_size=1)))


def exact_rows(mdp):
    """The distribution of each pair, {state: Fraction}, as its stored numbers are proportional."""
    rows = []
    for k in range(mdp.num_pairs):
        run = slice(mdp.offsets[k], mdp.offsets[k + 1])
        row = {
            int(s): Fraction(float(p))
            for s, p in zip(mdp.successor[run], mdp.probability[run], strict=True)
            if p > 0
        }
        total = sum(row.values())
        rows.append({s: p / total for s, p in row.items()})
    return rows


def mixed(mdp, probability):
    """The exact rows of the chain that a policy [K] makes."""
    chain, total = [{} for _ in range(mdp.num_states)], [Fraction(0)] * mdp.num_states
    for s, p in zip(mdp.pairs.state.tolist(), probability.tolist(), strict=True):
        total[s] += Fraction(p)
    for k, row in enumerate(exact_rows(mdp)):
        s = int(mdp.pairs.state[k])
        for after, p in row.items():
            chain[s][after] = (
                chain[s].get(after, 0) + Fraction(float(probability[k])) * p / total[s]
            )
    return [{after: p for after, p in row.items() if p > 0} for row in chain]


def exact_chances(chain, target):
    """The chance to reach the target from each state of a chain, by elimination in fractions."""
    able = set(target)
    while any(able & row.keys() for s, row in enumerate(chain) if s not in able):
        able |= {s for s, row in enumerate(chain) if able & row.keys()}
    open_states = sorted(able - set(target))
    place = {s: i for i, s in enumerate(open_states)}
    system = []
    for s in open_states:
        line = [Fraction(int(s == t)) - chain[s].get(t, 0) for t in open_states]
        system.append([*line, sum((chain[s].get(t, Fraction(0)) for t in target), Fraction(0))])
    for i in range(len(system)):
        pivot = next(r for r in range(i, len(system)) if system[r][i] != 0)
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [x / system[i][i] for x in system[i]]
        for r in range(len(system)):
            if r != i and system[r][i] != 0:
                system[r] = [
                    x - system[r][i] * y for x, y in zip(system[r], system[i], strict=True)
                ]
    return [
        Fraction(1) if s in target else system[place[s]][-1] if s in place else Fraction(0)
        for s in range(len(chain))
    ]


def choices_of(mdp):
    """Every way to choose one pair a state."""
    offsets = mdp.pairs.offsets.tolist()
    return itertools.product(*(range(a, b) for a, b in itertools.pairwise(offsets)))


def exact_best(mdp, target, goal):
    """The most or least chance from each state, by trying every deterministic policy."""
    rows, best = exact_rows(mdp), max if goal == "most" else min
    tried = [exact_chances([rows[k] for k in chosen], target) for chosen in choices_of(mdp)]
    return [best(each) for each in zip(*tried, strict=True)]


def path_chance(chain_at, state, target, steps):
    """The chance to reach the target, added up over all paths; `chain_at(n)` with n steps left."""
    if state in target:
        return Fraction(1)
    if steps == 0:
        return Fraction(0)
    row = chain_at(steps)[state]
    return sum(
        (p * path_chance(chain_at, s, target, steps - 1) for s, p in row.items()), Fraction(0)
    )


def tolerance_of(mdp):
    """The width of bounds that may be asked for: any, where steps are rare."""
    return 1e-9 if mdp.probability[mdp.probability > 0].min(initial=1.0) > 1e-3 else 1.0


def assert_bounds(found, exact, tolerance):
    """The truth lies between the bounds, they are near each other, and 0 and 1 are exact."""
    assert isinstance(found, ReachChance)
    for low, high, truth in zip(found.lower.tolist(), found.upper.tolist(), exact, strict=True):
        assert 0 <= low <= high <= 1
        assert Fraction(low) <= truth <= Fraction(high)
        assert high - low <= tolerance
        if truth == 0:
            assert high == 0
    if tolerance >= 1e-9:  # for ever, where the graph tells
        ones = np.array([truth == 1 for truth in exact])
        assert (found.lower[ones] == 1).all()


def start_of(mdp, found):
    """The bounds from where episodes begin."""
    return tuple(float(mdp.initial @ bound) for bound in (found.lower, found.upper))


# ---- ever ---------------------------------------------------------------------------------------


@settings(max_examples=5 * settings.default.max_examples)
@given(world=worlds(), goal=st.sampled_from(GOALS))
def test_the_most_and_the_least_are_those_of_all_deterministic_policies(world, goal):
    mdp, target = world
    exact = exact_best(mdp, target, goal)
    found = reachability(mdp, target, goal)
    assert_bounds(found, exact, tolerance_of(mdp))


@pytest.mark.thorough
@settings(max_examples=5 * settings.default.max_examples)
@given(data=st.data())
def test_the_chance_of_a_policy_is_that_of_its_chain(data):
    mdp, target = data.draw(worlds())
    policy = data.draw(policies(mdp.pairs))
    exact = exact_chances(mixed(mdp, policy.probability), target)
    found = reachability(mdp, target, policy)
    assert_bounds(found, exact, tolerance_of(mdp))


@given(data=st.data())
def test_a_policy_lies_between_the_least_and_the_most(data):
    mdp = data.draw(mdps())
    target = data.draw(st.sets(st.integers(0, mdp.num_states - 1), min_size=1))
    policy = data.draw(policies(mdp.pairs))
    within = data.draw(st.one_of(st.none(), st.integers(0, 5)))
    mask = np.isin(np.arange(mdp.num_states), [*target])
    least, most = (reachability(mdp, mask, policy=goal, within=within) for goal in reversed(GOALS))
    own = reachability(mdp, mask, policy, within=within)
    assert (least.lower <= own.upper).all()
    assert (own.lower <= most.upper).all()


def test_a_walk_has_the_chances_of_the_gamblers_ruin():
    states, up = 101, 0.48
    P = np.zeros((states, 1, states))
    for s in range(1, states - 1):
        P[s, 0, [s - 1, s + 1]] = 1 - up, up
    mdp = FiniteMDP.from_dense(P, np.zeros((states, 1)), 0.9, initial=50)
    found, ratio = reachability(mdp, states - 1), (1 - up) / up
    exact = (ratio ** np.arange(states) - 1) / (ratio ** (states - 1) - 1)
    assert (found.upper - found.lower).max() <= 1e-9
    np.testing.assert_allclose((found.lower + found.upper) / 2, exact, atol=1e-9)


def test_a_long_corridor_is_certain_both_ways():
    states = 20_000
    offsets = np.arange(states + 1)
    offsets[-1] = states - 1
    mdp = FiniteMDP(
        Pairs.full(states, 1),
        offsets,
        np.arange(1, states),
        np.ones(states - 1),
        np.zeros(states - 1),
        np.ones(states),
        np.eye(1, states)[0],
    )
    for goal in GOALS:
        assert reachability(mdp, [states - 1], policy=goal).lower.min() == 1
        assert reachability(mdp, [0], policy=goal).upper[1:].max() == 0


def test_rare_steps_are_proven_where_only_waiting_is_long():
    P = np.array([[[1.0, 1e-15, 3e-15]], [[0, 0, 0]], [[0, 0, 0]]])
    mdp = FiniteMDP.from_dense(P, np.zeros((3, 1)), 1.0)
    for asked in ({"policy": "most"}, {"policy": "least"}, {"policy": Policy.uniform(mdp)}):
        found = reachability(mdp, [1], tolerance=1e-12, **asked)
        assert start_of(mdp, found) == pytest.approx((0.25, 0.25), abs=1e-12)


def nearly_closed(far):
    """Two states that lead to each other nearly always, and else to one end each."""
    P = np.zeros((4, 1, 4))
    P[0, 0], P[1, 0] = [0, 1 - far, far, 0], [1 - far, 0, 0, far]
    return FiniteMDP.from_dense(P, np.zeros((4, 1)), 1.0)


def test_where_rounding_leaves_more_the_bounds_are_wider_and_hold():
    found = reachability(nearly_closed(1e-10), [2])
    assert 1e-9 < found.upper[0] - found.lower[0] < 1e-3
    assert found.lower[0] <= 0.5 <= found.upper[0]
    assert found.lower[2:].tolist() == found.upper[2:].tolist() == [1, 0]


def test_bounds_that_say_nothing_are_refused():
    with pytest.raises(NotConverged, match=r"^ways to the target are so long"):
        reachability(nearly_closed(1e-16), [2])


def slippery_grid(size, slip, traps, seed):
    """A grid whose moves go astray to either side; the last cell is the goal, traps end too."""
    rng, states = np.random.default_rng(seed), size * size
    trap = rng.random(states) < traps
    trap[[0, -1]] = False
    ends = trap | (np.arange(states) == states - 1)
    P = np.zeros((states, 4, states))
    moves = ((-1, 0), (0, 1), (1, 0), (0, -1))
    for s, a in itertools.product(np.flatnonzero(~ends).tolist(), range(4)):
        for turn, p in ((0, 1 - slip), (1, slip / 2), (3, slip / 2)):
            down, right = moves[(a + turn) % 4]
            row, column = np.clip([s // size + down, s % size + right], 0, size - 1)
            P[s, a, row * size + column] += p
    return FiniteMDP.from_dense(P, np.zeros((states, 4)), 1.0), trap


def exact_most(mdp, target):
    """The most chances by policy iteration in fractions, proven by v ≥ P_a v for every pair."""
    rows, offsets = exact_rows(mdp), mdp.pairs.offsets.tolist()
    chosen = [*offsets[:-1]]
    while True:
        value = exact_chances([rows[k] for k in chosen], target)
        q = [sum((p * value[t] for t, p in row.items()), Fraction(0)) for row in rows]
        best = [max(range(a, b), key=q.__getitem__) for a, b in itertools.pairwise(offsets)]
        better = [s not in target and q[k] > value[s] for s, k in enumerate(best)]
        if not any(better):
            return value
        chosen = [k if yes else old for k, yes, old in zip(best, better, chosen, strict=True)]


@pytest.mark.parametrize(("slip", "traps", "seed"), [(0.01, 0.3, 4), (0.01, 0.2, 7), (0.3, 0.2, 1)])
def test_slippery_grids_have_the_exact_chances(slip, traps, seed):
    mdp, _ = slippery_grid(5, slip, traps, seed)
    assert_bounds(reachability(mdp, [24]), exact_most(mdp, [24]), 1e-9)


def test_a_slippery_grid_is_bounded_as_storm_has_it():
    mdp, trap = slippery_grid(20, 0.3, 0.05, 0)
    for target, goal, direction in (([399], "most", "max"), (trap, "least", "min")):
        found, places = reachability(mdp, target, goal), np.arange(400)[target]
        assert (found.upper - found.lower).max() <= 1e-9
        np.testing.assert_allclose(found.lower, storm_chance(mdp, places, direction), atol=1e-6)


def test_grids_in_which_policies_hide_for_next_to_nothing_are_bounded():
    mdp, trap = slippery_grid(20, 0.3, 0.2, 1)
    most, least = reachability(mdp, [399]), reachability(mdp, trap, "least")
    assert (most.upper - most.lower).max() <= 1e-9
    assert (least.upper - least.lower).max() <= 1e-9
    ways = most.upper > 0  # episodes end in the goal or in a trap, where both can be reached
    np.testing.assert_allclose((most.lower + least.lower)[ways], 1, atol=3e-9)


def test_a_pair_that_stays_changes_no_most_chance_where_policies_hide():
    mdp, _ = slippery_grid(10, 0.1, 0.2, 0)
    ends = np.diff(mdp.offsets[mdp.pairs.offsets]) == 0
    P = np.concatenate([mdp.dense()[0], np.diag(1.0 - ends)[:, None]], 1)
    stays = reachability(FiniteMDP.from_dense(P, np.zeros((100, 5)), 1.0), [99])
    moves = reachability(mdp, [99])
    assert (stays.lower <= moves.upper).all()
    assert (moves.lower <= stays.upper).all()
    assert (stays.upper - stays.lower).max() <= 1e-9


def test_where_the_best_policy_waits_for_rare_slips_bounds_are_wider_and_hold():
    mdp, trap = slippery_grid(10, 0.01, 0.2, 1)
    most, least = reachability(mdp, [99]), reachability(mdp, trap, "least")
    assert (most.upper - most.lower).max() <= 1e-6
    assert (least.upper - least.lower).max() <= 1e-6
    # Episodes end in the goal or in a trap, unless they never end.
    open_states = most.upper > 0
    assert (most.lower + least.lower <= 1)[open_states].all()
    assert (most.upper + least.upper >= 1)[open_states].all()


def test_a_large_model_is_bounded_as_storm_has_it():
    rng = np.random.default_rng(5)
    states, actions = 2_000, 3
    successor = np.sort(
        (rng.integers(0, states, (states * actions, 1)) + np.array([0, 1, 17])) % states, 1
    )
    mdp = FiniteMDP(
        Pairs.full(states, actions),
        np.arange(states * actions + 1) * 3,
        successor.ravel(),
        rng.dirichlet(np.ones(3), states * actions).ravel(),
        np.zeros(successor.size),
        np.ones(states * actions),
        np.full(states, 1 / states),
    )
    ends = np.zeros(states, bool)
    ends[rng.choice(states, 40, replace=False)] = True
    kept = ~ends[mdp.pairs.state][np.repeat(np.arange(mdp.num_pairs), 3)]
    mdp = FiniteMDP(
        mdp.pairs,
        np.concatenate([[0], np.cumsum(3 * ~ends[mdp.pairs.state])]),
        mdp.successor[kept],
        mdp.probability[kept],
        np.zeros(kept.sum()),
        mdp.discount,
        mdp.initial,
    )
    target = np.flatnonzero(ends)[:20]
    for goal, direction in zip(GOALS, ("max", "min"), strict=True):
        found = reachability(mdp, target, policy=goal)
        assert (found.upper - found.lower).max() <= 1e-9
        np.testing.assert_allclose(found.lower, storm_chance(mdp, target, direction), atol=1e-6)


# ---- within some steps --------------------------------------------------------------------------


@settings(max_examples=3 * settings.default.max_examples)
@given(world=worlds(3), goal=st.sampled_from(GOALS), steps=st.integers(0, 3))
def test_within_is_the_best_of_all_policies_that_know_the_time(world, goal, steps):
    mdp, target = world
    rows, best = exact_rows(mdp), max if goal == "most" else min
    exact = [Fraction(int(s in target)) for s in range(mdp.num_states)]
    chains = [[rows[k] for k in chosen] for chosen in choices_of(mdp)]
    if len(chains) ** steps <= 64:
        plans = [*itertools.product(chains, repeat=steps)]
        exact = [
            best(path_chance(lambda n, p=plan: p[n - 1], s, target, steps) for plan in plans)
            for s in range(mdp.num_states)
        ]
    else:
        for _ in range(steps):
            after = [
                [sum((p * exact[t] for t, p in chain[s].items()), Fraction(0)) for chain in chains]
                for s in range(mdp.num_states)
            ]
            exact = [1 if s in target else best(each) for s, each in enumerate(after)]
    assert_bounds(reachability(mdp, target, policy=goal, within=steps), exact, 1e-12)


@settings(max_examples=3 * settings.default.max_examples)
@given(data=st.data())
def test_within_a_policy_is_the_sum_over_paths(data):
    mdp, target = data.draw(worlds())
    policy, steps = data.draw(policies(mdp.pairs)), data.draw(st.integers(0, 4))
    chain = mixed(mdp, policy.probability)
    exact = [path_chance(lambda _: chain, s, target, steps) for s in range(mdp.num_states)]
    found = reachability(mdp, target, policy, within=steps)
    assert_bounds(found, exact, 1e-12)


@given(world=worlds(), goal=st.sampled_from(GOALS))
def test_more_steps_reach_more_and_come_to_ever(world, goal):
    mdp, target = world
    ever, before = reachability(mdp, target, goal), None
    for steps in (0, 1, 2, 5, 50):
        found = reachability(mdp, target, policy=goal, within=steps)
        assert before is None or (before.lower <= found.upper).all()
        assert (found.lower <= ever.upper).all()
        before = found


@pytest.mark.parametrize("steps", [1, 10, 100])
def test_within_a_policy_is_a_power_of_its_matrix(steps):
    mdp, _ = slippery_grid(5, 0.3, 0.2, 1)
    P = np.eye(25) * (np.diff(mdp.offsets[mdp.pairs.offsets]) == 0)  # ends stay where they are
    P += mdp.dense()[0].mean(1)
    exact = np.linalg.matrix_power(P, steps)[:, 24]
    found = reachability(mdp, [24], Policy.uniform(mdp), within=steps)
    np.testing.assert_allclose(found.lower, exact, atol=1e-12)
    np.testing.assert_allclose(found.upper, exact, atol=1e-12)


def test_within_comes_to_ever():
    P = [[[0.5, 0.3, 0.2], [0.0, 0.6, 0.4]], [[0.0] * 3] * 2, [[0.0] * 3] * 2]
    mdp = FiniteMDP.from_dense(P, np.zeros((3, 2)), 0.0)
    for goal in GOALS:
        ever, late = (
            reachability(mdp, [1], policy=goal),
            reachability(mdp, [1], policy=goal, within=100),
        )
        assert start_of(mdp, late) == pytest.approx(start_of(mdp, ever), abs=1e-11)
        assert ever.lower[0] <= 0.6 <= ever.upper[0]


def test_chances_too_small_for_doubles_are_bounded():
    P = np.zeros((4, 1, 4))
    for s in range(3):
        P[s, 0, [s, s + 1]] = 1, 1e-200
    mdp = FiniteMDP.from_dense(P, np.zeros((4, 1)), 1.0)
    found = reachability(mdp, [3], within=3)
    assert 0 == found.lower[0] < found.upper[0] < 1e-300
    assert reachability(mdp, [3], within=0).upper.tolist() == [0, 0, 0, 1]
    assert reachability(mdp, [3]).lower.min() == 1


# ---- Storm --------------------------------------------------------------------------------------

DRONE = """\
mdp
const double wind = 0.3;
module drone
  x : [0..3] init 0;
  charge : [0..12] init 12;
  parcel : bool init true;
  [out]  x<3 & charge>0 -> 1-wind : (x'=x+1) & (charge'=charge-1) + wind : (charge'=charge-1);
  [home] x>0 & charge>0 -> 1-wind : (x'=x-1) & (charge'=charge-1) + wind : (charge'=charge-1);
  [dash] x=0 & parcel & charge>1 -> 0.8 : (x'=3) & (charge'=charge-2)
                                    + 0.2 : (x'=1) & (charge'=0);
  [plug] x=0 & charge<12 -> (charge'=min(charge+6, 12));
  [load] x=0 & !parcel -> (parcel'=true);
  [drop] x=3 & parcel & charge>0 -> (parcel'=false);
endmodule
label "lost" = x>0 & charge=0;
"""
RACE = """\
mdp
module race
  x : [0..6] init 3;
  y : [0..2] init 0;
  [walk] x>0 & x<6 -> 0.45 : (x'=x+1) + 0.55 : (x'=x-1);
  [wait] y<2 -> (y'=y+1);
  [back] y>0 -> (y'=y-1);
  [jump] x=2 & y=2 -> 0.3 : (x'=6) + 0.7 : (x'=0);
  [stay] x=0 | x=6 -> true;
endmodule
label "lost" = x=6;
"""


@pytest.mark.parametrize("program", [DRONE, RACE], ids=["drone", "race"])
@pytest.mark.parametrize("within", [None, 0, 7, 40])
@pytest.mark.parametrize("goal", GOALS)
def test_chances_of_programs_are_storms(tmp_path, program, within, goal, monkeypatch):
    storm_in_this_process(monkeypatch)
    path = tmp_path / "m.prism"
    path.write_text(program, encoding="utf-8")
    built = stormpy.build_model(stormpy.parse_prism_program(path), options=build_options())
    steps, direction = (
        "" if within is None else f"<={within}",
        {"most": "max", "least": "min"}[goal],
    )
    asked = stormpy.parse_property(f'P{direction}=? [ F{steps} "lost" ]')
    expected = stormpy.model_checking(built, asked).get_value_vector()[built.initial_states[0]]
    mdp = from_prism(path, 0.5)
    found = reachability(mdp, mdp.marks["lost"], policy=goal, within=within)
    assert start_of(mdp, found) == pytest.approx((expected, expected), abs=1e-5)


def build_options():
    """All labels, as Storm leaves out those that no formula names."""
    options = stormpy.BuilderOptions()
    options.set_build_all_labels()
    return options


@settings(max_examples=25)
@given(
    world=worlds(6, 3),
    goal=st.sampled_from(GOALS),
    within=st.one_of(st.none(), st.integers(0, 20)),
)
def test_chances_are_storms(world, goal, within):
    mdp, target = world
    if mdp.probability.min(initial=1) < 1e-8:  # Storm's sweeps stop too early for these
        within = 5
    direction = {"most": "max", "least": "min"}[goal]
    found = reachability(mdp, target, policy=goal, within=within)
    expected = storm_chance(mdp, np.array(target), direction, within)
    np.testing.assert_allclose(found.lower, expected, atol=1e-7)


# ---- what is asked ------------------------------------------------------------------------------


@example(target=[1])
@example(target=np.array([False, True, False]))
@example(target=np.int32(1))
@given(target=st.just((1, 1)))
def test_a_target_is_a_mask_or_state_numbers(target):
    mdp = FiniteMDP.from_dense([[[0, 0.5, 0.5]], [[0] * 3], [[0] * 3]], np.zeros((3, 1)), 0.5)
    found = reachability(mdp, target)
    assert start_of(mdp, found) == pytest.approx((0.5, 0.5))
    assert not found.lower.flags.writeable
    assert repr(found) == "ReachChance(lower=0…1, upper=0…1)"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"target": []}, "target has no states, expected at least one of the 3"),
        ({"target": [False] * 3}, "target has no states, expected at least one of the 3"),
        ({"target": [True, False]}, "target has shape (2,), expected (3,)"),
        ({"target": [[0, 1]]}, "target has 2 dimensions, expected a flat array"),
        ({"target": [0, 3]}, "target[1] is 3, expected 0 to 2; 1 of 2 values is affected"),
        ({"target": [-1]}, "target[0] is -1, expected 0 to 2"),
        ({"target": [0.5]}, "target[0] is 0.5, expected a whole number"),
        ({"target": "goal"}, "target holds values of type <U4, expected numbers"),
        ({"within": -1}, "within is -1, expected a whole number of at least 0 or None"),
        ({"within": 2.5}, "within is 2.5, expected a whole number of at least 0 or None"),
        ({"tolerance": 0}, "tolerance is 0, expected a number above 0"),
        ({"tolerance": None}, "tolerance is None, expected a number above 0"),
        ({"policy": "mos"}, "policy is 'mos'; did you mean most? expected one of most, least"),
        ({"mdp": 3}, "mdp is of type int, expected FiniteMDP"),
    ],
)
def test_bad_input_is_refused_in_a_line(asked, message):
    mdp = FiniteMDP.from_dense([[[0, 0.5, 0.5]], [[0] * 3], [[0] * 3]], np.zeros((3, 1)), 0.5)
    with pytest.raises(InvalidParameter) as refusal:
        reachability(**{"mdp": mdp, "target": [1], **asked})
    assert str(refusal.value) == message


def test_a_policy_of_another_model_is_refused():
    mdp = FiniteMDP.from_dense([[[1.0]]], [[0.0]], 0.5)
    with pytest.raises(ShapeMismatch):
        reachability(mdp, [0], Policy.uniform(Pairs.full(2, 1)))


def test_states_of_nearly_one_chance_are_not_merged_where_nothing_hides():
    # From the first state the target is entered once in 10¹⁴ steps, else the second one, which is
    # worth as little. As one state, they would enter the target whenever they leave it.
    P = np.zeros((4, 1, 4))
    P[0, 0, [1, 2]], P[1, 0, [2, 3]] = [1 - 1e-14, 1e-14], [2e-14, 1 - 2e-14]
    mdp = FiniteMDP.from_dense(P, np.zeros((4, 1)), 0.9)
    for goal in ("most", "least", Policy.uniform(mdp)):
        found = reachability(mdp, [2], goal)
        np.testing.assert_allclose(found.lower[:2], [3e-14, 2e-14], atol=1e-9)
        assert (found.upper - found.lower).max() <= 1e-9
        assert (found.lower[:2] <= [3e-14, 2e-14]).all()
        assert (found.upper[:2] >= [3e-14, 2e-14]).all()
