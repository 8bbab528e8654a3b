"""Makes the simulated worlds of stress tests from the data of a problem, by kind.

A kind of world is a frozen settings object with one method, `world`. A world knows its truth, and
draws the data that π_b would have collected there. Where `is_one_world`, all worlds of the kind
have one truth, and only the data differ. Where not `calibrates`, a certificate is only held against
the worlds, and not calibrated by them.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, get_args

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import Settings, check_settings
from surestep.certificates import Certifier
from surestep.certificates.drawn import ModelDraws, drawn_models
from surestep.certificates.prior import prior_of
from surestep.errors import InvalidParameter, NeverEnds
from surestep.kernels.posterior import RewardDraws
from surestep.model import FiniteMDP, Problem
from surestep.planning.ends import endless_circle
from surestep.rehearsal.completion import (
    MOST_CELLS,
    CompletedRows,
    Fill,
    actions_alike,
    completed,
    mdp_of_rows,
)
from surestep.rehearsal.sources import Resampled, Residuals, Simulated, World

WorldPrior = Literal["weight", "uniform", "jeffreys"]
WEIGHTS = (1.0, 5.0)  # of the priors in the default family
MEMORY = 2**30  # bytes of one drawn world
MOST_DRAWS = 100  # of a world without a discount, until one ends


@dataclass(frozen=True, slots=True)
class Completed(Settings):
    """The maximum-likelihood MDP, with rows of unseen pairs filled in by a rule.

    Parameters
    ----------
    fill : {"self-loop", "uniform", "pessimistic", "optimistic"}
        Unseen pairs lead back to their state, everywhere, or to the visited state where
        r + γ V^{π_b} is least, or largest. None leads to where it cannot.

    Examples
    --------
    >>> surestep.rehearsal.Completed("uniform").name
    'estimate, unseen: uniform'
    """

    fill: Fill

    truth: ClassVar = "estimate"
    is_one_world: ClassVar = True

    @property
    def name(self) -> str:
        """Returns its name in results."""
        return f"{self.truth}, unseen: {self.fill}"

    @property
    def calibrates(self) -> bool:
        """Tells whether the fill calibrates: not where the unseen is as good as can be.

        There π_b earns the most by what it did and the new policy gives up, so that no certificate
        but one that counts all that is unseen in favour of π_b, and then says nothing, survives.
        """
        return self.fill != "optimistic"

    def world(self, problem: Problem, rng: np.random.Generator) -> World:
        """Returns the completed MDP, in which π_b acts.

        Parameters
        ----------
        problem : Problem
            The data.
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        World
            The world.
        """
        return acting_anew(problem, completed(problem, self.fill))


@dataclass(frozen=True, slots=True)
class DrawnFromPosterior(Settings):
    """A draw from the Dirichlet posterior; rewards are known or the observed means.

    Parameters
    ----------
    prior : {"weight", "uniform", "jeffreys"}
        "weight" spreads `weight` over the states that a pair may lead to; "uniform" has weight 1 a
        state, "jeffreys" ½.
    weight : float, optional
        The weight of the prior of that name.

    Examples
    --------
    >>> surestep.rehearsal.DrawnFromPosterior("jeffreys").name
    'posterior, jeffreys'
    """

    prior: WorldPrior = "weight"
    weight: Annotated[float | None, Meta(ge=1e-3, le=10**9)] = None

    is_one_world: ClassVar = False
    calibrates: ClassVar = True

    def __post_init__(self) -> None:
        check_settings(self)
        if (self.prior == "weight") == (self.weight is None):
            wanted = "a number" if self.weight is None else "None, as it has a weight of its own"
            raise InvalidParameter(
                f"weight is {self.weight!r} for the prior {self.prior!r}, expected {wanted}"
            )

    @property
    def name(self) -> str:
        """Returns its name in results."""
        return f"posterior, {f'weight {self.weight:g}' if self.prior == 'weight' else self.prior}"

    def world(self, problem: Problem, rng: np.random.Generator) -> World:
        """Draws a model of the posterior, in which π_b acts.

        Parameters
        ----------
        problem : Problem
            The data.
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        World
            The world.
        """
        size = problem.counts.pairs.num_pairs
        prior = prior_of(problem, self.prior, 0.0 if self.weight is None else self.weight)
        for _ in range(MOST_DRAWS):
            models = ModelDraws(
                counts=problem.counts,
                rows=prior.rows,
                discount=problem.single_discount,
                value_bounds=problem.value_bounds,
                start_weight=np.zeros(0),
                rewards=RewardDraws.known(np.zeros(size), True, size),
                seed=int(rng.integers(2**63 - 1)),
                draws=1,
            )
            drawn = next(drawn_models(models, MEMORY))
            pair = arrays.run_owners(drawn.offsets)
            rows = CompletedRows(pair, drawn.successor, drawn.probability)
            truth = mdp_of_rows(problem, rows)
            if endless_circle(truth, problem.behavior.probability).size == 0:
                return acting_anew(problem, truth)
        raise InvalidParameter(
            f"in {MOST_DRAWS} worlds of the kind {self.name!r}, one after the other, the behavior "
            "policy may never end, at discount 1; expected another kind, or a discount below 1"
        )


@dataclass(frozen=True, slots=True)
class EpisodeBootstrap(Completed):
    """Episodes of the log, drawn again with replacement; the completed estimate counts as true.

    Parameters
    ----------
    fill : {"self-loop", "uniform", "pessimistic", "optimistic"}
        The rule for unseen pairs of the estimate; see `Completed`.

    Examples
    --------
    >>> surestep.rehearsal.EpisodeBootstrap().name
    'episode bootstrap, unseen: self-loop'
    """

    fill: Fill = "self-loop"

    truth: ClassVar = "episode bootstrap"

    def world(self, problem: Problem, rng: np.random.Generator) -> World:
        """Returns the completed MDP of all episodes, with some of them as data.

        Parameters
        ----------
        problem : Problem
            The data.
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        World
            The world.

        Raises
        ------
        InvalidParameter
            Where the problem has no log.
        """
        if problem.log is None:
            raise InvalidParameter(
                "the problem has no log, and an episode bootstrap draws whole episodes; give it as "
                "Problem(log=…), or leave this kind of world out"
            )
        return Resampled.of(completed(problem, self.fill), problem.log)


@dataclass(frozen=True, slots=True)
class ActionsAlike:
    """Worlds in which all actions of a state are alike: only luck can look like a gain.

    Every action of a state has the row of all its actions together, and observed rewards are those
    of all together too. Known rewards stay as they are.

    Parameters
    ----------
    noise : tuple of two floats, optional
        Each reward is one of the two, which leaves the most to luck; by default rewards vary as in
        the log.

    Examples
    --------
    >>> surestep.rehearsal.ActionsAlike().name
    'all actions alike'
    """

    noise: tuple[float, float] | None = None

    name: ClassVar = "all actions alike"
    is_one_world: ClassVar = True
    calibrates: ClassVar = False  # what luck claims is told for itself

    def world(self, problem: Problem, rng: np.random.Generator) -> World:
        """Returns the pooled MDP, in which π_b acts.

        Parameters
        ----------
        problem : Problem
            The data.
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        World
            The world.
        """
        truth = actions_alike(problem)
        return Simulated.of(truth, problem.behavior, self.noise or Residuals.of(problem, truth))


WorldKind = Completed | DrawnFromPosterior | ActionsAlike


def acting_anew(problem: Problem, truth: FiniteMDP) -> Simulated:
    """Returns a world in which π_b acts, and rewards vary around their means as in the log."""
    return Simulated.of(truth, problem.behavior, Residuals.of(problem, truth))


def completion_ends(problem: Problem, fill: Fill) -> bool:
    """Tells whether π_b ends for certain in a completion, and in the models that lead to it."""
    try:
        truth = completed(problem, fill)
        return endless_circle(truth, problem.behavior.probability).size == 0
    except NeverEnds:
        return False


def default_family(problem: Problem, certifier: Certifier) -> tuple[WorldKind, ...]:
    """Returns all completions, posteriors under other priors, and the bootstrap.

    Worlds in which every row leads everywhere are left out where that makes them too large, and
    where every pair was seen, all completions are one. Without a discount, completions in which the
    behavior policy may never end are left out too.

    Parameters
    ----------
    problem : Problem
        The data.
    certifier : Certifier
        The certifier to be tested; worlds of its own prior would hardly refute it.

    Returns
    -------
    tuple of WorldKind
        The kinds of worlds.

    Examples
    --------
    >>> counts = surestep.Counts.from_dense([[[0, 30], [0, 20]], [[0, 0], [0, 0]]],
    ...     rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    >>> problem = surestep.Problem(counts=counts, behavior=surestep.Policy.uniform(counts),
    ...     discount=0.9, value_bounds=(0.0, 1.0))
    >>> robust = surestep.certificates.Robust()
    >>> [kind.name for kind in surestep.rehearsal.default_family(problem, robust)][:2]
    ['estimate, unseen: self-loop', 'posterior, weight 1']
    """
    unseen = int(np.count_nonzero(problem.unseen_pairs()))
    wide = ("uniform",) if problem.support is None else ("pessimistic", "optimistic")
    fits = unseen * problem.num_states <= MOST_CELLS
    fills = [fill for fill in get_args(Fill) if fits or fill not in wide]
    fills = [
        fill
        for fill in (fills if unseen else fills[:1])
        if problem.single_discount < 1 or completion_ends(problem, fill)
    ]
    family: list[WorldKind] = [Completed(fill) for fill in fills]
    priors = [DrawnFromPosterior("weight", weight) for weight in WEIGHTS]
    if int(problem.support_sizes().sum()) <= MOST_CELLS:
        priors += [DrawnFromPosterior("jeffreys"), DrawnFromPosterior("uniform")]
    family += [kind for kind in priors if not certifier.has_prior(kind.prior, kind.weight)]
    if problem.log is not None and EpisodeBootstrap().fill in fills:
        family.append(EpisodeBootstrap())
    return tuple(family)
