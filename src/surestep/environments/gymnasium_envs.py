"""Makes the benchmarks available as Gymnasium environments.

Importing this module registers them, as Gymnasium 1.0 expects of packages. So
`gymnasium.make("surestep.environments.gymnasium_envs:surestep/Gridworld-v0")` works without another
import.
"""

import math
from typing import Any

import numpy as np

from surestep._arrays import FloatArray
from surestep.environments.benchmark import Benchmark
from surestep.environments.registry import PUBLISHED, make
from surestep.errors import InvalidParameter, MissingExtra, install
from surestep.sampling import end_states

try:
    import gymnasium
    from gymnasium.spaces import Discrete
except ImportError:
    raise MissingExtra(
        f"environments to act in need Gymnasium, which is not installed; {install('rl')}"
    ) from None


def id_of(name: str) -> str:
    """Returns the Gymnasium id of a benchmark: `surestep/RandomMDPBadEgg-v0`."""
    words = name.replace("/", "-").split("-")
    return f"surestep/{''.join('MDP' if word == 'mdp' else word.capitalize() for word in words)}-v0"


TABULAR = {id_of(name): name for name in PUBLISHED}

Info = dict[str, Any]


class TabularEnv(gymnasium.Env[np.int64, np.int64]):
    """A benchmark to act in: observations are its states, actions its actions.

    An episode terminates at an end of the model, and is truncated at the benchmark's horizon.
    `info["action_mask"]` marks the enabled actions; any other action is a wasted step, which leaves
    the state unchanged and earns nothing.
    """

    def __init__(self, benchmark: str, **parameters: object) -> None:
        """Makes the benchmark by its name and parameters, as `environments.make` does."""
        self.benchmark: Benchmark = make(benchmark, **parameters)
        self.mdp = mdp = self.benchmark.mdp  # for `surestep.io.from_gymnasium`
        self.observation_space = Discrete(mdp.num_states)
        self.action_space = Discrete(mdp.pairs.num_actions)
        self._over = end_states(mdp)
        self._state: int | None = None
        self._steps = 0
        self._horizon = self.benchmark.horizon or math.inf

    def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[np.int64, Info]:
        """Starts an episode; there are no options."""
        super().reset(seed=seed)
        self._state = draw_index(self.benchmark.mdp.initial, self.np_random)
        self._steps = 0
        return np.int64(self._state), self._info(self._state)

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, Info]:
        """Takes one step; returns observation, reward, terminated, truncated and info."""
        mdp = self.benchmark.mdp
        if self._state is None or self._over[self._state]:
            raise InvalidParameter("the episode is over or has not begun; call reset() first")
        if not self.action_space.contains(action):
            raise InvalidParameter(
                f"action is {action!r}, expected 0 to {mdp.pairs.num_actions - 1}"
            )
        state = self._state
        reward = 0.0
        pair = int(mdp.pairs.find(np.array(state), np.array(action)))
        if pair >= 0:
            first, last = mdp.offsets[pair : pair + 2]
            transition = first + draw_index(mdp.probability[first:last], self.np_random)
            state = int(mdp.successor[transition])
            reward = float(mdp.reward[transition])
        self._state = state
        self._steps += 1
        terminated = bool(self._over[state])
        truncated = not terminated and self._steps >= self._horizon
        return np.int64(state), reward, terminated, truncated, self._info(state)

    def _info(self, state: int) -> Info:
        pairs = self.benchmark.mdp.pairs
        mask = np.zeros(pairs.num_actions, np.int8)
        mask[pairs.action[pairs.offsets[state] : pairs.offsets[state + 1]]] = 1
        return {"action_mask": mask}


def draw_index(probability: FloatArray, rng: np.random.Generator) -> int:
    """Draws an index with the given probabilities; never an index of probability 0."""
    cumulative = np.cumsum(probability)
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))


def register() -> None:
    """Registers all benchmarks that are not yet registered."""
    for env_id, name in TABULAR.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id, entry_point=f"{__name__}:TabularEnv", kwargs={"benchmark": name}
            )


register()
