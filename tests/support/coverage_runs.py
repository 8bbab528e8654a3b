"""A small run with certifiers, for the tests of what is drawn and written of such runs."""

from surestep.experiments import read_experiments, run_experiment

PLAN = """
title = "Coverage: a small one"
seed = 5
repetitions = 3
episodes = [10, 300]
environments = [{name = "wet-chicken"}]
algorithms = [{name = "spibb", n_wedge = 5}, {name = "basic-rl"}]
certifiers = [
    {name = "a-priori", bound = "beta"},
    {name = "posterior", prior_weight = 5, draws = 19, starts = "known"},
]
"""


def run_with_certifiers(directory):
    """Makes the run in the directory."""
    plan = directory.with_name("small.toml")
    plan.write_text(PLAN)
    (experiment,) = read_experiments(str(plan))
    run_experiment(experiment, directory)
    return directory
