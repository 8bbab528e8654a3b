"""Are claims plausible, given the estimate, returns, rewards and logged probabilities?"""

from surestep.certificates.registry import SHELF
from surestep.checks.check import Check, CheckKind, GivenResult


def highest(result: GivenResult) -> float:
    """Returns the largest claimed gain; 0 if no claim is positive."""
    return max(
        (claim.lower for claim in result.certificates if claim.lower is not None), default=0.0
    )


def above_estimate(result: GivenResult) -> Check | None:
    """Fails if the largest claim exceeds the estimated gain."""
    claim = highest(result)
    return Check.failing(
        "claim-above-estimate",
        claim > max(result.gain, 0.0) + 1e-9 * abs(result.gain),
        claim=claim,
        estimate=result.gain,
    )


def above_returns(result: GivenResult) -> Check | None:
    """Fails if the largest claim exceeds the range of the returns of episodes, 0 included."""
    if result.returns is None:
        return None
    claim = highest(result)
    low, high = result.returns
    return Check.failing(
        "claim-above-returns",
        claim > max(high, 0.0) - min(low, 0.0),
        claim=claim,
        low=low,
        high=high,
    )


def rewards_vary(result: GivenResult) -> Check | None:
    """Fails if a claimed gain assumes exact rewards, but rewards vary."""
    kinds = [SHELF.find(claim.kind) for claim in result.certificates if (claim.lower or 0.0) > 0]
    takes_means = any(kind is not None and kind.needs.exact_rewards for kind in kinds)
    return Check.failing("rewards-vary", result.rewards_vary and takes_means)


def acted_on_more(result: GivenResult) -> Check | None:
    """Fails if a claimed gain excludes hidden causes although logged probabilities vary."""
    needed = {"acted-on-more", "no-hidden-causes"}
    return Check.failing(
        "acted-on-more",
        any(
            (claim.lower or 0.0) > 0 and needed <= {said.code for said in claim.assumptions}
            for claim in result.certificates
        ),
    )


KINDS = (
    CheckKind(
        code="claim-above-estimate",
        title="A claimed gain exceeds the estimated one",
        failed="A gain of at least {claim} is claimed, but only {estimate} is estimated: one of "
        "the two is wrong.",
        figures=("claim", "estimate"),
        forbids_proof=lambda check, claim: (claim.lower or 0.0) > check.figures["estimate"],
        of_result=above_estimate,
    ),
    CheckKind(
        code="claim-above-returns",
        title="A claimed gain exceeds what episodes earned",
        failed="A gain of at least {claim} is claimed, but episodes earned only {low} to {high}.",
        figures=("claim", "low", "high"),
        of_result=above_returns,
    ),
    CheckKind(
        code="baseline-gap",
        title="The model and the episodes disagree on what the current policy earns",
        failed="The model says that the current policy earns {model} per episode; the episodes say "
        "{low} to {high}. The model does not describe the log, so its gains may be wrong too.",
        figures=("model", "low", "high"),
        # `results.Baseline` has the test: a normal mean, with one false alarm in a thousand.
        of_result=lambda result: Check.failing(
            "baseline-gap", result.gap is not None, **(result.gap or {})
        ),
    ),
    CheckKind(
        code="rewards-vary",
        title="A claim takes rewards for exact that vary",
        failed="Rewards vary, but a claim takes their means for exact.",
        of_result=rewards_vary,
    ),
    CheckKind(
        code="acted-on-more",
        title="Recorded probabilities depend on more than the recorded situation",
        failed="Whoever decided looked at more than the situation: the probabilities that the log "
        "names vary within it. If what they saw also affects the outcome, the claimed gain may not "
        "exist. Add it to the situation, or ask for a trajectory certificate, which allows for it.",
        against="no-hidden-causes",
        of_result=acted_on_more,
    ),
)
