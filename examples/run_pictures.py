"""Draws a performance profile and a heat map from the table of a run, with Matplotlib alone.

python examples/run_pictures.py [FOLDER]    a run without certifiers; by default a small one is made
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from surestep.experiments import make_experiment, read_run, run_experiment, valued

SMALLEST = ()  # the arguments of the quickest run


def small_run(folder: Path) -> Path:
    """Runs RaMDP with three settings on the gridworld."""
    experiment = make_experiment(
        "small",
        environments=["gridworld"],
        algorithms=[{"name": "ramdp", "kappa": [0.001, 0.01, 0.1]}],
        episodes=[10, 30, 100, 300],
        repetitions=50,
        seed=1,
    )
    return run_experiment(experiment, folder / "small").parent


def main(run: Path, output: Path) -> None:
    columns = valued(read_run(run).columns, "normalised")  # 0 is the behavior policy, 1 the optimum
    size = np.asarray(columns["episodes"])
    parts = ("environment", "algorithm", "setting", "n_wedge")
    rows = zip(*map(columns.get, parts), strict=True)
    method = np.array(
        [", ".join(str(x) for x in row if x and x is not np.ma.masked) for row in rows]
    )
    methods, sizes = np.unique(method), np.unique(size)
    figure, (profile, heat) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    for name in methods:
        values = np.sort(columns["performance"][(method == name) & (size == sizes[0])])
        profile.step(values, 1 - np.arange(values.size) / values.size, label=name)  # ends there
    profile.set(xlabel="normalised performance τ", ylabel=f"share ≥ τ, data size {sizes[0]}")
    profile.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15))
    means = [
        [columns["performance"][(method == m) & (size == n)].mean() for n in sizes] for m in methods
    ]
    image = heat.imshow(means, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    heat.set(xlabel="data size", xticks=range(sizes.size), yticks=range(methods.size))
    heat.set_xticklabels(sizes)
    heat.set_yticklabels(methods)
    figure.colorbar(image, label="mean normalised performance")
    figure.savefig(output)
    print(f"wrote {output}: {methods.size} methods, {sizes.size} data sizes")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        given = sys.argv[1:]
        run = Path(given[0]) if given else small_run(Path(place))
        main(run, Path("run.png") if given else Path(place) / "run.png")
