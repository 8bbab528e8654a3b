"""Small problems that tests of the posterior share, and the moments of its rows."""

from dataclasses import replace

import numpy as np
import scipy.stats

from support.failures import RARE
from support.problems import uniform_problem
from surestep import Counts, Policy
from surestep.certificates.drawn import DrawnQuestion, drawn_chunks, drawn_gains_each
from surestep.certificates.posterior import MEMORY, drawn_each
from surestep.errors import CertificateRefused


def posterior_gains(problem, policies, settings, memory=MEMORY):
    """The gains of one policy [draws], or of several in the same draws [P, draws]."""
    several = [policies] if isinstance(policies, Policy) else policies
    (gains,) = drawn_each([settings], [problem], [several], memory)
    if isinstance(gains, CertificateRefused):
        raise gains
    return gains.lower[0] if isinstance(policies, Policy) else gains.lower


def example(**changes):
    """Three states and an end; one pair never visited, one seen once."""
    table = np.zeros((4, 2, 4), int)
    table[0] = [[3, 9, 0, 1], [0, 0, 7, 0]]
    table[1] = [[0, 0, 1, 0], [4, 0, 0, 12]]
    table[2] = [[0, 20, 2, 5], [0, 0, 0, 0]]
    rewards = np.array([[0.0, 1.0], [0.5, -1.0], [2.0, 0.0], [0.0, 0.0]])
    counts = Counts.from_dense(
        table, rewards=rewards, starts=[6, 3, 0, 0], terminal=[False, False, False, True]
    )
    problem = uniform_problem(counts, 0.8, (-5.0, 10.0))
    policy = Policy.from_dense(counts, [[0.2, 0.8], [1, 0], [0.7, 0.3], [0.5, 0.5]])
    return replace(problem, **changes), policy


def with_sums(problem, per):
    """The example with rewards that were observed only: the same each time, or in two sizes."""
    counts = problem.counts
    times = dense_times(counts)
    observed = times.sum(axis=2) if per == "pair" else times
    sizes = np.random.default_rng(4).random(observed.shape)
    seen = Counts.from_dense(
        times, reward_sums=sizes * observed, starts=counts.starts, terminal=counts.terminal
    )
    return replace(problem, counts=seen)


def dense_times(counts):
    """#_D(s,a,s') as a table [S, A, S]."""
    pairs = counts.pairs
    table = np.zeros((pairs.num_states, pairs.num_actions, pairs.num_states), int)
    pair = np.repeat(np.arange(pairs.num_pairs), np.diff(counts.offsets))
    table[pairs.state[pair], pairs.action[pair], counts.successor] = counts.times
    return table


def assert_moments(rows, shape, slack=0.0):
    """Rows [draws, S] have mean and covariance of a Dirichlet, but for a false alarm in 10⁶."""
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
    draws, (mean, total) = len(rows), (shape / shape.sum(), shape.sum())
    covariance = (np.diag(mean) - np.outer(mean, mean)) / (total + 1)
    centred = rows - mean
    products, squares = centred.T @ centred / draws, (centred**2).T @ centred**2 / draws
    spread = np.sqrt(np.maximum(squares - products**2, 0.0))
    limit = scipy.stats.norm.isf(RARE / 2 / (mean.size + products.size)) / np.sqrt(draws)
    assert (np.abs(centred.mean(axis=0)) <= limit * centred.std(axis=0) + 1e-12).all()
    assert (np.abs(products - covariance) <= limit * spread + slack + 1e-12).all()


BOUNDS = {"reward_low": -0.5, "reward_high": 1.5}


def chunk_of(models, used, draws):
    """The first draws of the rows of these pairs."""
    question = DrawnQuestion(replace(models, draws=draws), 1.0 * used, np.zeros((0, used.size)))
    (chunk,) = drawn_chunks([question], 2**30)
    return chunk


def gains_in(questions, draws, memory):
    """The gains in so many draws of the models of each question."""
    models = [replace(question.models, draws=draws) for question in questions]
    asked = [
        question._replace(models=each) for question, each in zip(questions, models, strict=True)
    ]
    return drawn_gains_each(asked, memory)
