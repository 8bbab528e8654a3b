"""Findings of small problems for the tests of the report, worked out in the plainest way."""

from __future__ import annotations

import runpy
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from surestep import (
    Certificate,
    FiniteMDP,
    Pairs,
    Policy,
    Problem,
    certify,
    estimate_behavior,
    evaluate,
    occupancy,
    sample_counts,
    sample_log,
)
from surestep.algorithms import SPIBB
from surestep.certificates import APriori, Posterior, Robust
from surestep.certificates.registry import NoClaim
from surestep.checks import Check
from surestep.checks.check import Mark
from surestep.environments.gridworld import gridworld
from surestep.errors import CertificateRefused
from surestep.io.labels.vocabulary import Vocabulary
from surestep.planning import performance as performance_of
from surestep.rehearsal import rehearse
from surestep.results.advantage_intervals import advantage_intervals
from surestep.results.findings import Findings, PolicyTable, StateChange, WantedPair
from surestep.results.record import InputFile, Parameters, Record

EXAMPLE = Path(__file__).parents[2] / "examples" / "machine_maintenance.py"
UNCHANGED = 1e-12


@cache
def maintenance_findings(episodes=400, n_wedge=20, estimated=False):
    """Machine maintenance: mostly run to failure, with a service or a replacement now and then."""
    example = runpy.run_path(str(EXAMPLE))
    mdp = example["maintenance_model"]()
    behavior = example["run_to_failure"](mdp.pairs).mix(Policy.uniform(mdp), 0.25)
    counts = sample_counts(mdp, behavior, episodes, 26, np.random.default_rng(7))
    if estimated:
        behavior = estimate_behavior(counts)
    problem = Problem(
        counts=counts, behavior=behavior, discount=0.98, value_bounds=(-25_000.0, 5_000.0)
    )
    conditions, actions = example["CONDITIONS"], example["ACTIONS"]
    words = Vocabulary(
        ("condition",), ("decision",), tuple((c,) for c in conditions), tuple((a,) for a in actions)
    )
    return findings_of(problem, words, n_wedge, episodes)


@cache
def rehearsed_findings(worlds=8, sizes=(1.0, 4.0, 16.0)):
    """Four treatments, of which the best-looking one is tried, with all kinds of guarantees.

    The claim of a posterior is rehearsed; the trajectory certificate is refused.
    """
    chances, rewards = np.zeros((3, 4, 3)), np.zeros((3, 4, 3))  # failure 1 or success 2
    chances[0, :, 1:], rewards[0, :, 2] = [[0.6, 0.4], [0.5, 0.5], [0.4, 0.6], [0.9, 0.1]], 1.0
    clinic = FiniteMDP.from_dense(chances, rewards, 0.9)
    usual = Policy.from_dense(clinic, [[0.4, 0.3, 0.28, 0.02], [1, 0, 0, 0], [1, 0, 0, 0]])
    log = sample_log(clinic, usual, 40, 1, np.random.default_rng(0))
    problem = Problem(
        counts=log.counts(rewards), behavior=usual, discount=0.9, value_bounds=(0.0, 1.0), log=log
    )
    treatments = (("wait",), ("drug A",), ("drug B",), ("surgery",))
    words = Vocabulary(("state",), ("treatment",), (("ill",), ("worse",), ("well",)), treatments)
    algorithm, settled = SPIBB(n_wedge=5), Posterior(delta=0.2, draws=99, starts="known")
    policy = algorithm.improve(problem).policy
    further = (
        Robust(delta=0.2, known_start=True),
        Robust(delta=0.2, strict=True, set="l1"),
        APriori(delta=0.2),
        NoClaim(
            asked="trajectory",
            refusal="the policy was made from all episodes",
            code="made-from-log",
            delta=0.2,
        ),
    )
    return replace(
        findings_of(problem, words, 5, 40),
        certificates=tuple(certify(problem, policy, one) for one in (settled, *further)),
        rehearsal=rehearse(
            problem, algorithm, settled, rng=np.random.default_rng(0), worlds=worlds, sizes=sizes
        ),
    )


@cache
def gridworld_findings(episodes=100, n_wedge=20, size=5):
    """Gridworld, whose states are two columns."""
    benchmark = gridworld(size)
    counts = sample_counts(
        benchmark.mdp, benchmark.behavior, episodes, benchmark.horizon, np.random.default_rng(1)
    )
    problem = Problem(
        counts=counts,
        behavior=benchmark.behavior,
        discount=benchmark.discount,
        value_bounds=benchmark.value_bounds,
    )
    states = tuple((str(s % size), str(s // size)) for s in range(size * size))
    words = Vocabulary(
        ("column", "row"), ("move",), states, (("north",), ("east",), ("south",), ("west",))
    )
    return findings_of(problem, words, n_wedge, episodes)


def findings_of(problem, vocabulary, n_wedge, episodes):
    """All that a report shows about the SPIBB policy of a problem with one γ."""
    mdp, behavior, pairs = problem.estimate(), problem.behavior, problem.counts.pairs
    policy = SPIBB(n_wedge=n_wedge).improve(problem).policy
    q = action_values(mdp, evaluate(mdp, policy))
    usual = np.bincount(pairs.state, behavior.probability * q, pairs.num_states)
    advantage = q - usual[pairs.state]
    visits = state_sums(pairs, occupancy(mdp, behavior))
    table = PolicyTable(
        vocabulary,
        pairs,
        policy.probability,
        behavior.probability,
        problem.counts.visits,
        problem.counts.visits > n_wedge,
        q,
        advantage,
        np.zeros(pairs.num_states, np.bool_),
        np.zeros_like(problem.counts.visits),
        *advantage_intervals(problem, evaluate(mdp, policy), 0.1),
        n_wedge,
    )
    performance, usual_performance = (
        float(mdp.initial @ evaluate(mdp, each)) for each in (policy, behavior)
    )
    better = state_sums(pairs, policy.probability * advantage)
    moved = state_sums(pairs, np.abs(policy.probability - behavior.probability)) > UNCHANGED
    changes = [
        StateChange(int(s), visits[s] / visits.sum(), better[s], visits[s] * better[s])
        for s in np.flatnonzero(moved)
    ]
    after = state_sums(pairs, occupancy(mdp, policy))
    certificate = claim(problem, policy, 0.1)
    return Findings(
        table=table,
        behavior_occupancy=visits / visits.sum(),
        changes=tuple(sorted(changes, key=lambda change: -change.contribution)),
        certificates=(certificate,),
        rehearsal=None,
        wanted=wanted_pairs(problem, table, n_wedge, after / after.sum()),
        record=replace(
            record(problem, n_wedge),
            estimates={"behavior": usual_performance, "policy": performance},
            data={
                "rows": int(problem.counts.visits.sum()) + 3,
                "dropped": {"the action is missing": 2, "the reward is no number": 1},
                "transitions": int(problem.counts.times.size),
                "episodes": episodes,
                "terminated": episodes // 3,
                "truncated": episodes - episodes // 3,
            },
        ),
    )


def state_sums(pairs, values):
    """Σ_a of a quantity of pairs [S]."""
    return np.bincount(pairs.state, values, pairs.num_states)


def action_values(mdp, value):
    """Q [K] of taking an action and being worth `value` from then on."""
    q = mdp.ending_reward.copy()
    owner = np.repeat(np.arange(mdp.pairs.num_pairs), np.diff(mdp.offsets))
    reached = mdp.probability * (mdp.reward + mdp.discount[owner] * value[mdp.successor])
    np.add.at(q, owner, reached)
    return q


def claim(problem, policy, delta):
    """The a-priori certificate, or one that claims nothing and says why."""
    try:
        return certify(problem, policy, APriori(delta=delta))
    except CertificateRefused as refusal:
        return no_claim(problem, str(refusal), delta)


def no_claim(problem, reason, delta=0.1):
    """What stands where a certificate was refused."""
    low, high = problem.value_bounds
    return Certificate(
        kind="no-claim",
        standing="none",
        lower=None,
        delta=delta,
        span=high - low,
        assumptions=("Every value lies between the bounds given.",),
        notes=(reason,),
        parameters={},
        figures={},
    )


def wanted_pairs(problem, table, n_wedge, occupancy_after):
    """Pairs that look better than what π_I does, but lack visits."""
    state = table.pairs.state
    value = state_sums(table.pairs, table.probability * table.q)
    promise = (table.q - value[state]) * occupancy_after[state]
    lacking = np.flatnonzero(~table.trusted & (promise > 0) & ~problem.counts.terminal[state])
    ordered = lacking[np.argsort(-promise[lacking], kind="stable")]
    return tuple(
        WantedPair(int(k), int(n_wedge + 1 - table.visits[k]), float(promise[k])) for k in ordered
    )


def record(problem, n_wedge):
    """A record that does not depend on the machine."""
    return Record(
        versions={"surestep": "0.1.0", "python": "3.11.2", "numpy": "2.1.0"},
        machine={"system": "Linux", "processor": "x86_64"},
        inputs=(InputFile("log", "decisions.csv", 1_234_567, "ab" * 32),),
        counts_sha256="cd" * 32,
        description={"files": ["decisions.csv"], "stakes": {"discount": problem.single_discount}},
        parameters=Parameters(
            discount=problem.single_discount,
            algorithm={"algorithm": "spibb", "n_wedge": n_wedge},
            n_wedge=n_wedge,
            n_wedge_chosen_by=None,
            zeta=None,
            least_visits=None,
            delta=0.1,
            running=None,
            ending=None,
            returns=None,
            unseen=problem.unseen,
            behavior="estimate" if problem.behavior_is_estimated else "table",
            states="log",
            actions="log",
            possible="all",
            allowed="all",
            columns={},
            seeds={},
            certificates=[],
            train_share=None,
            logger=None,
            worlds=0,
            sizes=[],
            time_limit=None,
        ),
        defaults=("delta", "unseen"),
        vocabulary={},
        data={},
        estimates=dict.fromkeys(
            ("behavior", "policy"), performance_of(problem.estimate(), problem.behavior)
        ),
        command="surestep improve decisions.csv --set method.n_wedge=20 --discount 0.95 -o OUT",
    )


# ---- findings with something changed -----------------------------------------------------------


def with_certificate(findings, **changes):
    """The same findings with another claim."""
    first, *others = findings.certificates
    return replace(findings, certificates=(replace(first, **changes), *others))


def with_checks(findings, name="ward"):
    """The same findings with a check of every kind; `name` is that of the states in pictures."""
    luck = {"level": 0.0083, "statistic": 9.5, "rows": 1234, "one_an_episode": True}
    bars = tuple(Mark("", 0.5 * i - 4, 0.5 * i - 3.5, float(i * (15 - i))) for i in range(16))
    places = {"share": 0.6, "states": 2.0, "decisions": 31.0}
    checks = (
        Check(code="markov-next-state", outcome="failed", p_value=0.001, noticed=0.05,
              picture=bars, **luck),
        Check.unchecked("markov-reward", "nothing-varies"),
        Check(code="model-returns", outcome="failed", level=0.0083, p_value=0.001, rows=900,
              one_an_episode=False, noticed=0.2, figures={"states": 2.0},
              picture=(Mark(name, 0.4, 0.6, 0.2, 0.5), Mark(name, 0.0, 0.4, 0.1, 0.2))),
        Check(code="drift-next-state", outcome="passed", p_value=0.4, noticed=0.7, picture=bars,
              **luck | {"statistic": -0.3, "one_an_episode": False}),
        Check.unchecked("drift-reward", "nothing-to-compare"),
        Check(code="behavior-memory", outcome="passed", p_value=0.5, noticed=0.3, picture=bars,
              **luck | {"statistic": 0.2}),
        Check(code="practice-changed", outcome="failed", p_value=0.001, noticed=0.2, picture=bars,
              figures={"gain": 0.4, "has_gain": 1.0}, **luck),
        Check(code="hidden-causes", outcome="told",
              figures={"estimate_odds": 4.52, "belief_odds": 3.67},
              picture=(Mark("", 1.0, 1.0, 368.8), Mark("", 5.0, 5.0, -23.5),
                       Mark("demand", 1.0, 1.36, 1.36), Mark(name, 1.0, 3.59, 3.59))),
        Check(code="enough-data", outcome="failed",
              figures={f"{kind}_{what}": value for kind in ("scarce", "open")
                       for what, value in places.items()},
              picture=(Mark(name, 0.0, 0.6, 0.6, 0.02, True), Mark(name, 0.0, 0.4, 0.4, 0.5))),
    )  # fmt: skip
    return replace(findings, record=replace(findings.record, checks=checks))


def with_parameters(findings, **parameters):
    """The same findings with other parameters in their record."""
    changed = msgspec.structs.replace(findings.record.parameters, **parameters)
    return replace(findings, record=replace(findings.record, parameters=changed))


def with_words(findings, **words):
    """The same findings with other names of states, actions or columns."""
    vocabulary = replace(findings.table.vocabulary, **words)
    return replace(findings, table=replace(findings.table, vocabulary=vocabulary))


def without_changes(findings):
    """Findings of a policy that is π_b itself."""
    table = replace(findings.table, probability=findings.table.behavior)
    behavior = findings.record.estimates["behavior"]
    record = replace(findings.record, estimates={"behavior": behavior, "policy": behavior})
    return replace(findings, table=table, changes=(), record=record, wanted=())


def with_many_states(findings, num_states, label_length=20):
    """Findings with so many situations, every second one changed, and labels that long."""
    actions = len(findings.table.vocabulary.actions)
    pairs, rng = Pairs.full(num_states, actions), np.random.default_rng(3)
    behavior, probability = rng.dirichlet(np.ones(actions), (2, num_states))
    probability[::2] = behavior[::2]
    visits = rng.integers(0, 10_000, pairs.num_pairs)
    q = rng.normal(size=pairs.num_pairs)
    share = np.full(num_states, 1 / num_states)
    words = replace(
        findings.table.vocabulary,
        state_columns=("place", "time"),
        states=tuple((str(s).rjust(label_length, "x"), str(s % 24)) for s in range(num_states)),
    )
    return replace(
        findings,
        table=PolicyTable(
            words,
            pairs,
            probability.ravel(),
            behavior.ravel(),
            visits,
            visits > 20,
            q,
            q,
            np.zeros(num_states, np.bool_),
            visits,
            q - 1,
            q + 1,
            20,
        ),
        behavior_occupancy=share,
        changes=tuple(StateChange(s, share[s], 0.5, 0.5) for s in range(1, num_states, 2)),
        wanted=tuple(WantedPair(k, 5, 1.0 / (k + 1)) for k in range(pairs.num_pairs)),
    )


def with_many_columns(findings):
    """The same findings with states of 20 columns of long names."""
    columns = tuple(f"measurement number {i}" for i in range(20))
    number = len(findings.table.vocabulary.states)
    states = tuple(tuple(f"value {s} of {name}" for name in columns) for s in range(number))
    return with_words(findings, state_columns=columns, states=states)
