"""A log that shows less than there is: states of a finite model that it does not tell apart.

Merged states make a log that is not Markov, or one whose rewards are noisy (successors that differ
in what they pay), or one that leaves out how an episode ended. What policies are worth is known
exactly all the same: in the finer model, where a policy does the same in all states of one group.

*Tiger, Voicemail and CheeseMaze: what matters is hidden, and the log shows signs of it.*
The three check environments of Simão, Suilen and Jansen (AAAI 2023), with the numbers of their
package `pogym`: an episode begins with an observation, and opening a door, saving, deleting or
finding the cheese ends it. A state of the log is the last `memory` observations with the actions
that followed them, and the present observation. The log is no Markov process, but what policies of
it are worth is known exactly: in the model of what is hidden and remembered.

π_b sees the present observation only: it is the softmax of the best action values in the model that
very many episodes of a uniform policy would show (there, of Q-learning).

*A hidden cause: doctors who treat whom they see to be worse, and a log that does not show it.*
Ten wards on the way to recovery. In every step a patient is mild or severe with equal chances,
whatever came before; a mild one moves on, a severe one falls back or dies. The decision, to wait or
to treat, changes nothing at all, but severe patients are treated more often: the log makes
treatment look harmful, and every policy is worth the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from msgspec import Meta
from scipy.sparse import coo_array

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IntArray
from surestep.environments.benchmark import Benchmark, Portion, Truth
from surestep.model import DecisionLog, FiniteMDP, Pairs, Policy
from surestep.planning import optimal, q_values
from surestep.sampling import sample_log


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Merged(arrays.ByValue):
    """Logs of a finer model in which each of its states is shown as one of `pairs`.

    States that are shown as one have the same actions.
    """

    mdp: FiniteMDP  # the finer model
    pairs: Pairs  # of the log
    shown: IntArray  # [S of mdp] as which state of the log
    truth: Truth = field(init=False)

    def __post_init__(self) -> None:
        """Freezes the array and finds the pair of the log of each pair of the model."""
        arrays.keep(
            self,
            shown=self.shown,
            truth=Truth(
                self.mdp, self.pairs.find(self.shown[self.mdp.pairs.state], self.mdp.pairs.action)
            ),
        )

    __setstate__ = arrays.restore_frozen

    def rollout(
        self, policy: Policy, episodes: int, horizon: int, rng: np.random.Generator
    ) -> DecisionLog:
        """Returns the log of a policy that sees the states of the log."""
        return self.log_of(self.truth.acting(policy), episodes, horizon, rng)

    def log_of(
        self, acting: Policy, episodes: int, horizon: int, rng: np.random.Generator
    ) -> DecisionLog:
        """Returns the log of a policy that sees the states of the finer model."""
        log = sample_log(self.mdp, acting, episodes, horizon, rng)
        return replace(
            log,
            pairs=self.pairs,
            state=self.shown[log.state],
            next_state=self.shown[log.next_state],
        )

    def model(self, visits: FloatArray) -> FiniteMDP:
        """Returns the model that very many logs show, where pairs are visited in these shares.

        P̄(s'|s,a) = Σ_x w(x,a) P(s'|x,a) / Σ_x w(x,a) over the states x that are shown as s, with
        w = `visits` [K of mdp], or equal where all of them are 0; rewards are means alike.
        """
        fine = self.mdp
        pair = self.truth.pair
        total = np.bincount(pair, visits, self.pairs.num_pairs)
        weight = np.where(total[pair] > 0, visits, 1.0)
        owner = arrays.run_owners(fine.offsets)
        size = np.int64(self.pairs.num_states)
        taken = weight[owner] * fine.probability
        key, place = np.unique(pair[owner] * size + self.shown[fine.successor], return_inverse=True)
        mass = np.bincount(place, taken)
        earned = np.bincount(place, taken * fine.reward)
        above = key // size
        row = np.bincount(above, mass, self.pairs.num_pairs)
        return FiniteMDP(
            self.pairs,
            arrays.own(arrays.offsets_of(np.bincount(above, minlength=self.pairs.num_pairs))),
            key % size,
            mass / row[above],
            earned / mass,
            np.full(self.pairs.num_pairs, fine.discount[0]),
            np.bincount(self.shown, fine.initial, self.pairs.num_states).astype(np.float64),
        )


def expected_visits(mdp: FiniteMDP, policy: Policy, horizon: int) -> FloatArray:
    """Returns how often an episode takes each pair [K] within `horizon` steps, on average."""
    owner = arrays.run_owners(mdp.offsets)
    at: FloatArray = mdp.initial
    visits = np.zeros(mdp.num_pairs)
    for _ in range(horizon):
        taken = at[mdp.pairs.state] * policy.probability
        visits += taken
        moved = np.bincount(mdp.successor, taken[owner] * mdp.probability, mdp.num_states)
        at = moved.astype(np.float64, copy=False)
    return visits


# ---- hidden observations ----------------------------------------------------------------------

DISCOUNT = 0.95
HORIZON = 100
MemoryLength = Annotated[int, Meta(ge=0, le=3)]
OVER = "over"

Window = tuple[int, ...]  # observation, action, observation, …, the present observation
Place = tuple[int, Window]  # the hidden state, and the observations and actions remembered


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HiddenProcess:
    """A process of hidden states [H], actions [A] and observations [O]; the last state is over."""

    name: str
    actions: tuple[str, ...]
    observations: tuple[str, ...]
    initial: FloatArray  # [H]
    move: FloatArray  # [H, A, H]
    reward: FloatArray  # [H, A, H]
    observe: FloatArray  # [H, O] chances of observations where a state is entered, or begins
    value_bounds: tuple[float, float]
    sharpness: float  # of π_b: the inverse temperature of its softmax

    def starts(self) -> Iterator[tuple[Place, float]]:
        """Yields where episodes begin, with which chance."""
        for hidden, seen in np.argwhere(self.initial[:, np.newaxis] * self.observe).tolist():
            yield (hidden, (seen,)), float(self.initial[hidden] * self.observe[hidden, seen])

    def steps(self, place: Place, action: int, memory: int) -> Iterator[tuple[Place, float, float]]:
        """Yields where an action leads to, with which chance and reward."""
        hidden, window = place
        for then in np.flatnonzero(self.move[hidden, action]).tolist():
            chance = float(self.move[hidden, action, then])
            earned = float(self.reward[hidden, action, then])
            if then == self.initial.size - 1:  # the episode is over, which shows nothing
                yield (then, ()), chance, earned
            for seen in np.flatnonzero(self.observe[then]).tolist():
                after = (*window, action, seen)[-2 * memory - 1 :]
                yield (then, after), chance * float(self.observe[then, seen]), earned

    def words(self, window: Window) -> str:
        """Returns a window in words: 'left listen right'; of observations, the last is present."""
        names = (self.observations, self.actions)
        return " ".join(names[i % 2][code] for i, code in enumerate(window)) or OVER


def remembered(process: HiddenProcess, memory: int) -> Benchmark:
    """Builds the benchmark whose log shows windows of this memory."""
    plain, _ = explored(process, 0)
    seen = plain.model(expected_visits(plain.mdp, Policy.uniform(plain.mdp), HORIZON))
    by_observation = Policy.softmax(
        seen, q_values(seen, optimal(seen).value), 1 / process.sharpness
    ).dense()
    log, windows = explored(process, memory)
    present = [window[-1] if window else -1 for window in windows]
    behavior = Policy.from_dense(log.pairs, by_observation[present])
    return Benchmark(
        name=process.name,
        mdp=log.model(expected_visits(log.mdp, log.truth.acting(behavior), HORIZON)),
        behavior=behavior,
        horizon=HORIZON,
        value_bounds=process.value_bounds,
        simulator=log,
    )


def explored(process: HiddenProcess, memory: int) -> tuple[Merged, list[Window]]:
    """Returns the model of hidden states with windows, and the windows that its log shows.

    Windows come in order, the short ones of an episode's beginning first, and the end last.
    """
    places = {place: number for number, (place, _) in enumerate(process.starts())}
    steps: list[list[tuple[int, int, float, float]]] = [[] for _ in process.actions]
    waiting = list(places)
    for here in waiting:  # which grows on the way
        for action, led in enumerate(steps):
            for there, chance, earned in process.steps(here, action, memory):
                if there not in places:
                    places[there] = len(places)
                    waiting.append(there)
                led.append((places[here], places[there], chance, earned))
    initial = np.zeros(len(places))
    for place, chance in process.starts():
        initial[places[place]] = chance
    size = (len(places), len(places))
    chances, rewards = [], []
    for led in steps:
        begins, ends, probability, reward = map(np.array, zip(*led, strict=True))
        chances.append(coo_array((probability, (begins, ends)), size))
        rewards.append(coo_array((reward, (begins, ends)), size))
    windows = sorted({window for _, window in places}, key=lambda w: (not w, len(w), w))
    number = {window: place for place, window in enumerate(windows)}
    pairs = Pairs.full(
        len(windows),
        len(process.actions),
        state_labels=tuple(map(process.words, windows)),
        action_labels=process.actions,
    )
    shown = np.array([number[window] for _, window in places])
    mdp = FiniteMDP.from_sparse(chances, rewards, DISCOUNT, initial, action_labels=process.actions)
    return Merged(mdp=mdp, pairs=pairs, shown=shown), windows


def doors(rewards: tuple[tuple[float, float], tuple[float, float]]) -> dict[str, FloatArray]:
    """Returns moves and rewards of one of two hidden states that never changes.

    The first action costs 1 and changes nothing; the others end the episode and pay by the state.
    """
    move = np.zeros((3, 3, 3))
    reward = np.zeros((3, 3, 3))
    for hidden in range(2):
        move[hidden, 0, hidden] = 1.0
        reward[hidden, 0, hidden] = -1.0
        move[hidden, 1:, 2] = 1.0
        reward[hidden, 1:, 2] = [pays[hidden] for pays in rewards]
    return {"move": move, "reward": reward}


TIGER = HiddenProcess(
    name="tiger",
    actions=("listen", "open-left", "open-right"),
    observations=("left", "right"),
    initial=np.array([0.5, 0.5, 0.0]),
    **doors(((-100.0, 10.0), (10.0, -100.0))),
    observe=np.array([[0.85, 0.15], [0.15, 0.85], [0.0, 0.0]]),
    value_bounds=(-100.0, 10.0),  # to listen for ever costs 20
    sharpness=0.05,
)


def tiger(memory: MemoryLength = 1) -> Benchmark:
    """Builds Tiger: behind one of two doors; to listen costs 1, and is right with chance 0.85.

    The tiger's door pays −100, the other one 10 (Cassandra, Kaelbling and Littman 1994; there an
    episode goes on after a door).
    """
    return remembered(TIGER, memory)


VOICEMAIL = HiddenProcess(
    name="voicemail",
    actions=("ask", "save", "delete"),
    observations=("keep", "drop"),
    initial=np.array([0.65, 0.35, 0.0]),
    **doors(((5.0, -10.0), (-20.0, 5.0))),
    observe=np.array([[0.8, 0.2], [0.3, 0.7], [0.0, 0.0]]),
    value_bounds=(-20.0, 5.0),  # to ask for ever costs 20 as well
    sharpness=0.3,
)


def voicemail(memory: MemoryLength = 1) -> Benchmark:
    """Builds Voicemail: to save or to delete a message whose worth the user says unclearly.

    To ask costs 1. To save what is to be kept (0.65 of the messages) pays 5, else −10; to delete
    what is to go pays 5, else −20 (Williams and Young 2007).
    """
    return remembered(VOICEMAIL, memory)


# Where the cells of the maze lie, the cheese last, and what one sees there; a wall is all else.
CELLS = ((0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 2), (1, 4), (2, 0), (2, 4), (2, 2))
SHAPES = ("corner-left", "corridor", "crossing", "corner-right", "shaft", "dead-end")
SHAPE_OF = (0, 1, 2, 1, 3, 4, 4, 4, 5, 5)
MOVES = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}


def maze_moves() -> FloatArray:
    """Returns P [H, A, H]: one cell on, or none where a wall is; the cheese leads nowhere."""
    at = {where: cell for cell, where in enumerate(CELLS)}
    move = np.zeros((len(CELLS), len(MOVES), len(CELLS)))
    for cell, (row, column) in enumerate(CELLS[:-1]):
        for action, (down, right) in enumerate(MOVES.values()):
            move[cell, action, at.get((row + down, column + right), cell)] = 1.0
    return move


CHEESE_MAZE = HiddenProcess(
    name="cheese-maze",
    actions=tuple(MOVES),
    observations=SHAPES,
    initial=np.append(np.full(len(CELLS) - 1, 1 / (len(CELLS) - 1)), 0.0),
    move=maze_moves(),
    reward=np.where(np.arange(len(CELLS)) == len(CELLS) - 1, 1.0, -0.01) + np.zeros((11, 4, 1)),
    observe=np.vstack([np.eye(len(SHAPES))[list(SHAPE_OF)], np.zeros(len(SHAPES))]),
    value_bounds=(-0.01 / (1 - DISCOUNT), 1.0),
    sharpness=15.0,
)


def cheese_maze(memory: MemoryLength = 1) -> Benchmark:
    """Builds CheeseMaze: eleven cells of which one sees the shape only; the cheese ends the search.

    A step costs 0.01 and the one to the cheese pays 1; the start is any other cell (McCallum 1992).
    """
    return remembered(CHEESE_MAZE, memory)


# ---- a hidden cause ---------------------------------------------------------------------------

WARDS = 10
RECOVERED, DIED = WARDS, WARDS + 1
PLACES = WARDS + 2
SEVERITIES = 2  # mild, severe
DECISIONS = ("wait", "treat")
# chances to move on, to stay, to fall back and to die
COURSE = ((0.9, 0.1, 0.0, 0.0), (0.0, 0.5, 0.45, 0.05))
DISCOUNT_OF_WARDS = 0.99
LONGEST_STAY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctors:
    """Doctors whose decisions follow a policy on average, and the severity in each case.

    Where the policy treats with probability p, they treat the severe with p + κ and the mild with
    p − κ, κ = tilt · min(p, 1 − p).
    """

    patients: Merged
    tilt: float

    @property
    def truth(self) -> Truth:
        """Returns the model with severities, in which policies that do not see them are judged."""
        return self.patients.truth

    def acting(self, policy: Policy) -> Policy:
        """Returns the policy of the doctors, who know the severity."""
        plain = self.truth.acting(policy).dense()
        lean = self.tilt * plain.min(axis=1) * np.where(np.arange(len(plain)) % 2, 1.0, -1.0)
        return Policy.from_dense(self.patients.mdp, plain + np.stack([-lean, lean], axis=1))

    def rollout(
        self, policy: Policy, episodes: int, horizon: int, rng: np.random.Generator
    ) -> DecisionLog:
        """Returns the log of the doctors, without the severities."""
        return self.patients.log_of(self.acting(policy), episodes, horizon, rng)


def hidden_cause(tilt: Portion = 0.6) -> Benchmark:
    """Builds twelve states in which doctors act on a severity that the log does not show.

    π_b treats half of the patients: with the usual tilt 0.8 of the severe and 0.2 of the mild. The
    model is what very many episodes show.
    """
    pairs = Pairs.full(
        PLACES,
        len(DECISIONS),
        state_labels=(*(f"ward {ward}" for ward in range(WARDS)), "recovered", "died"),
        action_labels=DECISIONS,
    )
    rows = course_of_patients()
    prize = np.repeat(np.arange(PLACES) == RECOVERED, SEVERITIES).astype(np.float64)
    mdp = FiniteMDP.from_dense(
        rows,
        np.broadcast_to(prize, rows.shape),
        DISCOUNT_OF_WARDS,
        np.repeat(np.arange(PLACES) == 0, SEVERITIES) / SEVERITIES,
        action_labels=DECISIONS,
    )
    patients = Merged(mdp=mdp, pairs=pairs, shown=np.repeat(np.arange(PLACES), SEVERITIES))
    doctors = Doctors(patients=patients, tilt=tilt)
    behavior = Policy.uniform(pairs)
    return Benchmark(
        name="hidden-cause",
        mdp=patients.model(expected_visits(mdp, doctors.acting(behavior), LONGEST_STAY)),
        behavior=behavior,
        horizon=LONGEST_STAY,
        value_bounds=(0.0, 1.0),  # the reward of 1 is paid once
        simulator=doctors,
    )


def course_of_patients() -> FloatArray:
    """Returns P [(ward, severity), action, (ward, severity)]: the decision changes nothing."""
    after = np.zeros((PLACES, SEVERITIES, PLACES))
    for ward in range(WARDS):
        back = max(ward - 1, 0)
        for severity, course in enumerate(COURSE):
            for target, chance in zip((ward + 1, ward, back, DIED), course, strict=True):
                after[ward, severity, target] += chance
    flat = np.repeat(after.reshape(-1, PLACES) / SEVERITIES, SEVERITIES, axis=1)
    return np.repeat(flat[:, np.newaxis], len(DECISIONS), axis=1)
