"""Tells which policies end for certain, from the graph of a model alone.

A pair *lasts* if it has successors and discount 1; any other pair ends the episode with some
chance, since discounting by γ is worth the same as ending with 1 − γ. A policy ends for certain
if it can reach a pair that does not last from every state: the chain is finite, so the chance
to have gone on for n steps falls geometrically. Otherwise it comes into a set of states that lead
only to each other, and total rewards need not exist. They exist if all rewards in such a set are 0:
then the policy *rests* there, which is worth 0 unless the model says otherwise (`endless`).

An *end component* is a set of states with lasting pairs, at least one each, that lead only to each
other and from each to all: in it, and only in such sets, can some policy stay for ever (L. de
Alfaro, "Formal verification of probabilistic systems", PhD thesis, Stanford 1997, section 3.3).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy  # loads its parts when they are needed

from surestep._arrays import (
    BoolArray,
    FloatArray,
    IndexArray,
    IntArray,
    marked,
    offsets_of,
    run_owners,
    run_sums,
)
from surestep.errors import NeverEnds
from surestep.kernels.components import Order, strike_out
from surestep.model import FiniteMDP, Pairs, Policy
from surestep.planning.backups import RowModel
from surestep.planning.chain import Chain, order_by_component


class EndComponents(NamedTuple):
    """The largest end components made of some pairs."""

    component: IntArray  # [S] the number of a state's component; −1: it is in none
    inner: BoolArray  # [K] the pairs of the components


class Edges(NamedTuple):
    """The possible transitions, each with its pair, its state and its successor."""

    pair: IntArray
    source: IntArray
    target: IndexArray

    @classmethod
    def of(cls, model: RowModel, pairs: BoolArray) -> "Edges":
        """Returns the edges of the pairs marked [K]."""
        pair = run_owners(model.offsets)
        possible = pairs[pair] & (model.probability > 0)
        pair = pair[possible]
        return cls(pair, model.pairs.state[pair], model.successor[possible])

    def components(self, num_states: int) -> Order:
        """Returns the states by strongly connected component."""
        return order_by_component(
            np.arange(num_states + 1),
            offsets_of(np.bincount(self.source, minlength=num_states)),
            self.target,
        )


def numbered(order: Order) -> IntArray:
    """Returns the number of each state's component [S]."""
    return run_owners(order.starts)[order.place]


def lasting(model: RowModel) -> BoolArray:
    """Returns the pairs [K] after which the episode goes on for certain, undiscounted."""
    possible = run_sums((model.probability > 0).astype(np.int64), model.offsets)
    result: BoolArray = (possible > 0) & (model.discount == 1.0)
    return result


def idle(mdp: FiniteMDP) -> BoolArray:
    """Returns the pairs [K] that last and earn 0, so that going on with them for ever is worth 0.

    There are none if the model gives another worth to endless episodes.
    """
    earns = (mdp.reward != 0) & (mdp.probability > 0)
    earning = marked(run_owners(mdp.offsets)[earns], mdp.num_pairs)
    return lasting(mdp) & ~earning & (mdp.endless == 0)


def goes_round(model: RowModel) -> bool:
    """Tells whether pairs of discount 1 form a cycle, so that there is no longest path."""
    if model.discount.max() < 1.0:
        return False
    _, source, target = edges = Edges.of(model, model.discount == 1.0)
    component = numbered(edges.components(model.pairs.num_states))
    return bool((component[source] == component[target]).any())


def steps_towards(model: RowModel, allowed: BoolArray, goals: BoolArray) -> IntArray:
    """Returns for each state an allowed pair [K] that leads nearer to a goal; −1 if none does.

    A policy of these pairs reaches a goal for certain: from every state, it does so with a chance
    above 0 in as many steps as the way is long. Goals have −1 too.
    """
    states = model.pairs.num_states
    pair, source, target = Edges.of(model, allowed)
    nearer = entered_from(target, source, goals)  # backwards
    chosen = np.full(states, -1)
    leads = nearer[source] == target
    # Written in reverse, so that the first of several pairs is written last.
    chosen[source[leads][::-1]] = pair[leads][::-1]
    return chosen


def ending_policy(model: RowModel, goes_on: BoolArray) -> Policy:
    """Finds a policy that surely leaves the pairs `goes_on` [K]; refuses models without one.

    `goes_on` marks all lasting pairs, or only the lasting pairs in which no policy may rest.
    """
    pairs = model.pairs
    chosen = steps_towards(model, goes_on, marked(pairs.state[~goes_on], pairs.num_states))
    last = np.flatnonzero(~goes_on)
    chosen[pairs.state[last][::-1]] = last[::-1]
    if (chosen < 0).any():
        stuck = goes_on & (chosen < 0)[pairs.state]
        circle = first_of(circles(Edges.of(model, stuck), chosen >= 0)[0])
        raise NeverEnds(
            f"{names(pairs, circle)} never ends under any policy: all actions lead back, at "
            "discount 1; expected a way to an end from every state, or a discount below 1"
        )
    return Policy(pairs, marked(chosen, pairs.num_pairs).astype(np.float64))


def refuse_endless(model: RowModel, policy: FloatArray) -> None:
    """Refuses a policy [K] that may never end; the message names a state that it never leaves."""
    refuse_circle(model.pairs, endless_circle(model, policy))


def refuse_circle(pairs: Pairs, circle: IntArray) -> None:
    """Refuses a policy that goes round for ever in the states `circle`, unless it is empty."""
    if circle.size:
        raise NeverEnds(
            f"{names(pairs, circle)} never ends under the policy, which may come there and "
            "only goes round, at discount 1; expected a policy that ends for certain, or a "
            "discount below 1"
        )


def endless_circle(model: RowModel, policy: FloatArray) -> IntArray:
    """Returns a set of states that a policy [K] never leaves; it is empty if the policy ends."""
    taken = policy > 0
    return first_of(circles(Edges.of(model, taken), leaving(model, taken))[0])


def leaving(model: RowModel, taken: BoolArray) -> BoolArray:
    """Marks the states [S] in which one of the pairs `taken` [K] does not last."""
    return marked(model.pairs.state[taken & ~lasting(model)], model.pairs.num_states)


def resting(mdp: FiniteMDP, policy: FloatArray, chain: Chain) -> Chain:
    """Returns the chain of a policy [K], ended in its resting states, with states by component.

    Refuses a policy that goes round for ever in other states.
    """
    taken = policy > 0
    row = run_owners(chain.offsets)
    possible = chain.weight > 0
    edges = Edges(row, row, chain.successor)
    if not possible.all():
        edges = Edges(*(column[possible] for column in edges))
    circle, order = circles(edges, leaving(mdp, taken))
    if circle.max() < 0:
        return replace(chain, by_component=order)
    # The last place, −1, is for states in no circle.
    earns = marked(circle[mdp.pairs.state[taken & ~idle(mdp)]], mdp.num_states + 1)
    earns[-1] = False
    refuse_circle(mdp.pairs, first_of(np.where(earns[circle], circle, -1)))
    return replace(
        chain, weight=np.where((circle >= 0)[row], 0.0, chain.weight), by_component=order
    )


def circles(edges: Edges, ends: BoolArray) -> tuple[IntArray, Order]:
    """Numbers the sets of states that no edge leaves and that hold no state of `ends` [S].

    States with the same number [S] are in one set, and lead to each other; −1: in no set. Also
    returns the states by component.
    """
    _, source, target = edges
    order = edges.components(ends.size)
    component = numbered(order)
    inside = np.bincount(source[component[source] == component[target]], minlength=ends.size)
    leaves = ends | (inside == 0) | (inside < np.bincount(source, minlength=ends.size))
    left = marked(component[leaves], ends.size)
    return np.where(left[component], -1, component), order


def first_of(circle: IntArray) -> IntArray:
    """Returns the states of the first numbered set in `circle` [S]; −1 marks states in no set."""
    return np.flatnonzero(np.isin(circle, circle[circle >= 0][:1]))


def names(pairs: Pairs, states: IntArray) -> str:
    """Returns the name of the first state, with the number of other states."""
    others = states.size - 1
    more = f" (with {others} other state{'s' * (others > 1)})" if others else ""
    return f"{pairs.state_name(int(states[0]))}{more}"


def staying(model: RowModel, allowed: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Marks the states [S] from which some policy only ever takes allowed pairs, and these pairs.

    The search goes backwards from states without allowed pairs: each pair that leads to such a
    state is struck out.
    """
    owner, states = model.pairs.state, model.pairs.num_states
    pair, _, target = Edges.of(model, allowed)
    left = np.bincount(owner[allowed], minlength=states)
    entries = offsets_of(np.bincount(target, minlength=states))
    strike_out(entries, pair[np.argsort(target, kind="stable")], owner, left)
    safe = left > 0
    return safe, allowed & ~marked(pair[~safe[target]], owner.size)


def end_components(model: RowModel, pairs: BoolArray) -> EndComponents:
    """Returns the largest end components made of these lasting pairs [K].

    Finds strongly connected components, and removes the pairs that lead out of theirs, until none
    does. Each round first removes all pairs from which no policy can go on for ever.
    """
    inner = pairs.copy()
    states = model.pairs.num_states
    while True:
        inner = staying(model, inner)[1]
        pair, source, target = edges = Edges.of(model, inner)
        component = numbered(edges.components(states))
        leaving = pair[component[source] != component[target]]
        if leaving.size == 0:
            break
        inner[leaving] = False
    return EndComponents(np.where(marked(source, states), component, -1), inner)


def missing(model: RowModel) -> EndComponents:
    """Returns the states from which no policy ends for certain, as one set, and their pairs.

    Its pairs are also those of other states that may lead there. (C. Baier and J.-P. Katoen,
    "Principles of model checking", 2008, algorithm 45: strike out the states without a way to an
    end, and the pairs that may lead to such a state, until all others have a way.)
    """
    state = model.pairs.state
    ends = ~lasting(model)
    kept = np.ones_like(ends)
    while True:
        goals = marked(state[kept & ends], model.pairs.num_states)
        near = goals | (steps_towards(model, kept, goals) >= 0)
        safe, further = staying(model, kept & near[state])
        if np.array_equal(kept, further):
            return EndComponents(np.where(safe, -1, 0), ~kept)
        kept = further


# ---- breadth-first search over runs of successors, by SciPy -------------------------------------


def entered_from(source: IntArray, target: IntArray, start: BoolArray) -> IntArray:
    """Returns the state from which each state [S] was reached first, from all of `start` [S].

    It is S for the start itself, and −1 for states that no edges lead to.
    """
    # The search begins in one more state, whose neighbours are those of the start.
    states = start.size
    lengths = np.append(np.bincount(source, minlength=states), np.count_nonzero(start))
    after = np.append(target[np.argsort(source, kind="stable")], np.flatnonzero(start))
    return breadth_first(offsets_of(lengths), after.astype(np.int32), states)[1][:-1]


def breadth_first(
    offsets: IntArray, successor: IndexArray, start: int
) -> tuple[IntArray, IntArray]:
    """Returns the states reachable from `start`, in the order of the search, and parents [S].

    The successors of a state are visited in the order of its run. The parent of a state is the
    state from which it was reached first: the start itself for the start, −1 if it is unreachable.
    """
    size = offsets.size - 1
    order, parent = scipy.sparse.csgraph.breadth_first_order(
        scipy.sparse.csr_array((np.ones(successor.size), successor, offsets), shape=(size, size)),
        start,
    )
    parent = np.maximum(parent, -1).astype(np.int64)  # SciPy has −9999 for unreachable states
    parent[start] = start
    return order.astype(np.int64), parent
