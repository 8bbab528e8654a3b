"""Coarse states: a random model of which the log shows groups of states only.

What comes next depends on where in its group the process is, so the log is no Markov process:
certificates that rest on one promise nothing here.
"""

from __future__ import annotations

import numpy as np

from surestep.environments.alike import (
    ACTIONS,
    HORIZON,
    STATES,
    SUCCESSORS,
    AlikeWorld,
    draw_world,
    little_effect,
)
from surestep.environments.benchmark import Benchmark
from surestep.environments.building import legacy_generator, share, whole_number
from surestep.environments.merged import Merged, expected_visits
from surestep.model.pairs import Pairs
from surestep.model.policy import Policy

GROUP = 5  # states that are shown as one


def coarse(seed: int = 1, effect: float = 1.0, group: int = GROUP) -> Benchmark:
    """Builds a world of 19 groups of `group` states each, and an end; the log shows groups.

    Groups are made by chance, so they mean nothing. π_b sees groups, too. The model is what very
    many episodes of π_b show; policies are judged in the world itself.
    """
    effect = share("effect", effect)
    group = whole_number("group", group, 1, 50)
    groups = STATES - 1
    finer = draw_world(groups * group + 1, ACTIONS, SUCCESSORS, legacy_generator(seed))
    shown = np.append(np.arange(groups * group) % groups, groups)
    seen = finer.behavior[np.append(np.arange(groups), -1)]
    world = little_effect("coarse", effect, AlikeWorld(finer.rows, seen[shown]))
    pairs = Pairs.full(STATES, ACTIONS)
    log = Merged(mdp=world.mdp, pairs=pairs, shown=shown)
    return Benchmark(
        name="coarse",
        mdp=log.model(expected_visits(world.mdp, world.behavior, HORIZON)),
        behavior=Policy.from_dense(pairs, seen),
        horizon=HORIZON,
        rewards="observed",
        value_bounds=world.value_bounds,
        simulator=log,
    )
