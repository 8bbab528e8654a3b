"""Names in pictures and tables: those of papers, with the letters of mathematics."""

from __future__ import annotations

from collections.abc import Iterable

from surestep.experiments.experiment import (
    CONTENT,
    PER_REPETITION,
    STREAM,
    read_environment,
    read_label,
)
from surestep.experiments.metrics import Method

ALGORITHMS = {  # as their authors call them; others have their own names
    "basic-rl": "Basic RL",
    "spibb": "SPIBB",
    "lower-spibb": "SPIBB (≤)",
    "spibb-2s": "2s",
    "spibb-beta": "β",
    "exact-soft-spibb": "Soft-SPIBB (exact)",
    "approx-soft-spibb": "Soft-SPIBB (approximate)",
    "lower-soft-spibb": "Soft-SPIBB (lower)",
    "advantage-soft-spibb": "Soft-SPIBB (advantageous)",
    "one-step-exact-soft-spibb": "Soft-SPIBB (exact, one step)",
    "one-step-approx-soft-spibb": "Soft-SPIBB (approximate, one step)",
    "ramdp": "RaMDP",
    "rmin": "R-MIN",
    "pessimistic-mbie": "MBIE (pessimistic)",
    "duipi": "DUIPI",
    "robust-mdp": "Robust MDP",
    "hcpi": "HCPI",
}
STREAMS = ("wet-chicken/heuristic", "wet-chicken/continuous")  # one stream of steps is a data set
LETTERS = {"epsilon": "ε", "kappa": "κ", "delta": "δ", "xi": "ξ", "n_wedge": "N∧"}
MATHEMATICS = {  # as LaTeX writes it, which Matplotlib understands
    "N∧": r"$N_\wedge$",
    "π_b": r"$\pi_b$",
    "π_I": r"$\pi_I$",
    "π*": r"$\pi^{*}$",
    "V_max": r"$V_{\max}$",
    "V_min": r"$V_{\min}$",
    "Δ": r"$\Delta$",
    "β": r"$\beta$",
    "δ": r"$\delta$",
    "ε": r"$\varepsilon$",
    "ζ": r"$\zeta$",
    "κ": r"$\kappa$",
    "ξ": r"$\xi$",
    "ρ": r"$\rho$",
    "τ": r"$\tau$",
    "γ": r"$\gamma$",
    "|S|": r"$|S|$",
    "|A|": r"$|A|$",
}


def typeset(text: str) -> str:
    r"""Returns a text with signs of mathematics as LaTeX has them; a `$` of its own stays one.

    >>> print(typeset("N∧ = 5 for $9, ρ(π_b)"))
    $N_\wedge$ = 5 for \$9, $\rho$($\pi_b$)
    """
    result = text.replace("$", "\\$")
    for sign, written in MATHEMATICS.items():
        result = result.replace(sign, written)
    return result


def algorithm_name(algorithm: str) -> str:
    """Returns an algorithm as its authors call it."""
    return ALGORITHMS.get(algorithm, algorithm)


def setting_words(setting: str) -> str:
    """Returns the settings of a table's label: 'ε = 0.1, rewards = known'."""
    return ", ".join(f"{LETTERS.get(name, name)} = {x}" for name, x in read_label(setting).items())


def method_name(method: Method) -> str:
    """Returns a method with its settings: 'SPIBB, N∧ = 100'."""
    n_wedge = "" if method.n_wedge is None else f"N∧ = {method.n_wedge}"
    parts = (algorithm_name(method.algorithm), n_wedge, setting_words(method.setting))
    return ", ".join(filter(None, parts))


def metric_name(metric: str) -> str:
    """Returns what a metric is called: 'mean', '10 % CVaR', 'better than π_b'."""
    if metric.startswith("cvar"):
        return f"{metric.removeprefix('cvar')} % CVaR"
    return f"{metric} than π_b" if metric in ("better", "worse") else metric


def size_noun(labels: Iterable[str]) -> str:
    """Returns what data sizes of the environments count: trajectories, or steps of one stream.

    Several may count different things: then it is "size".
    """
    nouns = set()
    for label in labels:
        name, parameters = read_environment(label)
        own = CONTENT in parameters  # the name is then its user's
        stream = STREAM in parameters or (name in STREAMS and not own)
        nouns.add("steps" if stream else "trajectories")
    return nouns.pop() if len(nouns) == 1 else "size"


def size_axis(labels: Iterable[str]) -> str:
    """Returns the words at an axis of data sizes: 'trajectories in the data set'."""
    noun = size_noun(labels)
    return "size of the data set" if noun == "size" else f"{noun} in the data set"


def size_words(size: int, labels: Iterable[str]) -> str:
    """Returns a data size: '1,000 trajectories', or 'size 1,000' of different things."""
    noun = size_noun(labels)
    if noun == "size":
        return f"size {size:,}"
    one = {"trajectories": "trajectory", "steps": "step"}
    return f"{size:,} {one[noun] if size == 1 else noun}"


def environment_name(label: str) -> str:
    """Returns an environment without its seed, where that is the repetition, and without marks."""
    name, parameters = read_environment(label)
    shown = [
        f"{LETTERS.get(key, key)} = {value}"
        for key, value in parameters.items()
        if key not in (CONTENT, STREAM) and (key, value) != ("seed", PER_REPETITION)
    ]
    return ", ".join([name, *shown])
