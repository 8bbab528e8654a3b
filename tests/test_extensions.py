"""What others bring, registered by code or by installed packages, here and in workers."""

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from click.testing import CliRunner

import surestep
from support import toy_extension
from support.labelled_worlds import NAMES, world
from support.log_tables import write_table
from support.pump_commands import run_surestep
from support.toy_extension import Halfway, Hopeful, coin
from surestep import SurestepError, extensions
from surestep.algorithms import make_algorithm
from surestep.algorithms.registry import describe_algorithms
from surestep.certificates import make_certifier
from surestep.cli.main import main
from surestep.environments import make
from surestep.errors import InvalidParameter
from surestep.experiments import read_experiments, run_experiment
from surestep.parallel import map_as_done

OWN = """title = "Own"
seed = 1
repetitions = 2
episodes = [30]
environments = [{name = "coin"}]
algorithms = [{name = "halfway", n_wedge = 2}]
certifiers = [{name = "hopeful"}]
"""


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch):
    """Leaves nothing registered or loaded behind."""
    monkeypatch.setattr(extensions, "_registered", {})
    for known in (extensions.installed, extensions.loaded):
        known.cache_clear()
    yield
    for known in (extensions.installed, extensions.loaded):
        known.cache_clear()


def install(folder, distribution, entries, version="1.0"):
    """Makes an installed package out of entry points: group, name and what they mean."""
    info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    text = ""
    for wanted in dict.fromkeys(group for group, *_ in entries):
        lines = [f"{name} = {value}\n" for group, name, value in entries if group == wanted]
        text += "".join([f"[surestep.{wanted}]\n", *lines])
    (info / "entry_points.txt").write_text(text)


def everything():
    surestep.register(Halfway)
    surestep.register(Hopeful)
    surestep.register(coin)


def test_what_is_registered_is_found_by_its_name():
    everything()
    assert make_algorithm("halfway", n_wedge=3) == Halfway(n_wedge=3)
    assert make_certifier("hopeful:margin=0.5") == Hopeful(margin=0.5)
    assert make("coin", seed=2).mdp.num_states == coin(seed=2).mdp.num_states
    assert describe_algorithms()[-1].name == "halfway"
    assert surestep.register(coin, name="toys/coin") is coin
    assert make("toys/coin").mdp.num_states == coin().mdp.num_states


def test_nobody_looks_at_installed_packages_for_what_is_built_in():
    make_algorithm("spibb", n_wedge=3)
    make_certifier("robust:strict=true")
    make("bandit")
    assert extensions.installed.cache_info().misses == 0
    with pytest.raises(InvalidParameter, match=r"there is no algorithm 'os\.path'"):
        make_algorithm("os.path")  # a name is looked up, and never imported
    assert extensions.installed.cache_info().misses == 1


@pytest.mark.thorough
def test_workers_know_what_was_registered(tmp_path):
    everything()
    plan = tmp_path / "own.toml"
    plan.write_text(OWN)
    (experiment,) = read_experiments(str(plan))
    table = run_experiment(experiment, tmp_path / "run", workers=2)
    alone = run_experiment(experiment, tmp_path / "alone")
    assert table.read_bytes() == alone.read_bytes()


def test_what_workers_cannot_import_is_refused_by_name(monkeypatch):
    class Here(Halfway):
        name = "here"

    surestep.register(Here)
    assert list(map_as_done(str, [1])) == [(0, "1")]
    with pytest.raises(InvalidParameter, match=r"algorithm 'here' .* cannot import it from"):
        list(map_as_done(str, [1], workers=2))
    monkeypatch.setattr(extensions, "_registered", {})
    typed = types.ModuleType("__main__")  # as in a notebook, where no file has it
    typed.coin = types.FunctionType(coin.__code__, globals(), "coin")
    typed.coin.__module__, typed.coin.__qualname__ = "__main__", "coin"
    monkeypatch.setitem(sys.modules, "__main__", typed)
    surestep.register(typed.coin)
    with pytest.raises(InvalidParameter, match=r"environment 'coin' .* from __main__; define it"):
        list(map_as_done(str, [1], workers=2))


class Nameless(Hopeful):
    name = ""


class Sloppy(Halfway):
    name = "spibb"


class Half:
    name = "half"

    def improve(self, problem):
        return problem


@pytest.mark.parametrize(
    ("thing", "name", "words"),
    [
        (Sloppy, None, "algorithm 'spibb' needs a name that is not built in"),
        (coin, "bandit", "environment 'bandit' needs a name that is not built in"),
        (Hopeful, "robust", "kind of certificate 'robust' needs a name that is not built in"),
        (Hopeful, "other", "kind of certificate 'other' calls itself 'hopeful'"),
        (Halfway, "other", "algorithm 'other' calls itself 'halfway'"),
        (Nameless, None, "kind of certificate '' needs a name"),
        (coin, "a:b", "environment 'a:b' needs a name .*, of letters, digits"),
        (Half, None, "algorithm 'half' is .*expected a frozen dataclass with improve"),
        (int, None, "cannot be registered, expected a class that can improve"),
        (Hopeful(), None, "cannot be registered"),
        (3, None, "3 cannot be registered"),
    ],
)
def test_what_is_refused(thing, name, words):
    with pytest.raises(SurestepError, match=words):
        surestep.register(thing, name)
    assert extensions.registered() == ()


def test_what_an_environment_returns_is_looked_at():
    surestep.register(lambda: 3, "three")
    with pytest.raises(InvalidParameter, match="three returns a int, expected a Benchmark"):
        make("three")


def test_entry_points_are_imported_by_name_and_a_broken_one_breaks_no_other(tmp_path, monkeypatch):
    (tmp_path / "toy_copy.py").write_text(Path(toy_extension.__file__).read_text())
    (tmp_path / "toy_bad.py").write_text("raise SystemExit('no\\nlicense')\n")
    install(
        tmp_path,
        "toy-pack",
        [("algorithms", "halfway", "toy_copy:Halfway"), ("environments", "coin", "toy_copy:coin")],
    )
    install(
        tmp_path,
        "bad-pack",
        [
            ("algorithms", "broken", "toy_bad:Any"),
            ("algorithms", "spibb", "toy_bad:Any"),
            ("algorithms", "wrong", "toy_copy:coin"),
            ("environments", "coin", "toy_bad:coin"),
        ],
    )
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("toy_copy", "toy_bad"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert make_algorithm("spibb", n_wedge=3).n_wedge == 3
    assert "toy_copy" not in sys.modules  # not before somebody asks
    assert type(make_algorithm("halfway", n_wedge=3)).__module__ == "toy_copy"
    refusals = {
        "broken": "the extension bad-pack cannot be used, for its algorithm 'broken': "
        "SystemExit: no license",
        "wrong": "the extension bad-pack cannot be used, for its algorithm 'wrong': the algorithm "
        "'wrong' is ",
    }
    for name, words in refusals.items():
        with pytest.raises(InvalidParameter) as refusal:
            make_algorithm(name)
        assert str(refusal.value).startswith(words)
    with pytest.raises(InvalidParameter, match=r"'coin' is there twice, .* bad-pack and toy-pack"):
        make("coin")
    with pytest.raises(InvalidParameter, match=r"'halfway' is there already, .* toy-pack"):
        surestep.register(Halfway)
    listed = CliRunner().invoke(main, ["algorithms"], prog_name="surestep")
    assert listed.exit_code == 0
    assert "halfway" in listed.stdout
    assert "by extension toy-pack: a test" in listed.stdout
    assert [line.split(": ")[0] for line in listed.stderr.splitlines()] == [
        f"the extension bad-pack cannot be used, for its algorithm '{name}'"
        for name in ("broken", "spibb", "wrong")
    ]


COMMANDS = """
import sys
from surestep.cli.main import main

COLUMNS = ("--state", "place", "--state", "level", "--action", "move", "--discount", "0.9")
OWN = ("--algorithm", "halfway:n_wedge=5", "--kind", "hopeful", "--kind", "robust")
VERBS = (
    ("improve", "log.csv", *COLUMNS, *OWN, "--worlds", "1", "--workers", "1", "-o", "out"),
    ("verify", "out", "log.csv"),
    ("certify", "out", "log.csv", "--kind", "hopeful:margin=0.5", "-o", "more.json"),
    ("run", "own.toml", "--workers", "1", "-o", "rows"),
)

if __name__ == "__main__":
    for verb in VERBS:
        try:
            main(verb, prog_name="surestep")
        except SystemExit as end:
            print(verb[0], "ends with", end.code, flush=True)
"""


@pytest.mark.thorough
def test_an_installed_package_works_in_every_verb_and_is_missed_by_name(tmp_path):
    site = tmp_path / "site"
    entries = [("algorithms", "Halfway"), ("certificates", "Hopeful"), ("environments", "coin")]
    named = [(group, value.lower(), f"toy_pack:{value}") for group, value in entries]
    install(site, "toy-pack", named)
    (site / "toy_pack.py").write_text(Path(toy_extension.__file__).read_text())
    write_table(tmp_path / "log.csv", world(5, states=5, episodes=60).rows, NAMES)
    (tmp_path / "own.toml").write_text(OWN)
    (tmp_path / "commands.py").write_text(COMMANDS)
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "commands.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    ends = [line for line in done.stdout.splitlines() if " ends with " in line]
    verbs = ("improve", "verify", "certify", "run")
    assert ends == [f"{verb} ends with 0" for verb in verbs], done.stdout + done.stderr
    told = " ".join(done.stdout.split())
    assert "by extension toy-pack" in told
    assert "confirmed: the same bytes in every file" in told
    assert "By extension toy-pack: from a plug-in" in told
    result = surestep.load(tmp_path / "out")
    assert result.certificate.standing == "by-extension"
    assert result.certificate.lower > 0
    assert result.verdict != "proved better"
    assert "by extension toy-pack" in result.report
    assert result.record.versions["toy-pack"] == "1.0"
    missed = run_surestep("verify", tmp_path / "out", tmp_path / "log.csv")
    assert missed.exit_code == 2
    assert missed.stderr.startswith("Error: there is no algorithm 'halfway'")
