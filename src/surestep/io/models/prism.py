"""Builds models from programs in the PRISM language, with Storm."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import surestep._arrays as arrays
import surestep.io.models.storm_process as storm
from surestep._files import read_path, read_whole, temporary_folder
from surestep._json import converted
from surestep._settings import check_setting
from surestep.errors import InvalidModel, InvalidParameter, MissingExtra, install, named_in_errors
from surestep.io.models.checker import DEADLOCK, END, CheckerModel, from_checker
from surestep.io.models.umb import read_umb
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import LazyLabels

Constants = dict[str, bool | int | float] | str
UNNAMED = "default"  # the identifier that Storm gives to a reward structure without a name


def from_prism(
    path: str | os.PathLike[str],
    discount: float,
    constants: Mapping[str, bool | int | float] | str | None = None,
    *,
    reward: str | None = None,
    initial: str | None = None,
    end: str | None = None,
) -> FiniteMDP:
    """Builds the model of a program in the PRISM language; needs stormpy.

    Parameters
    ----------
    path : str or Path
        The program, an `mdp` or a `dtmc`; one without a type is an MDP, as in PRISM.
    discount : float
        The discount of every pair, from 0 to 1.
    constants : dict or str, optional
        The constants that the program leaves open, such as {"N": 3} or "N=3,p=0.1".
    reward : str, optional
        The reward structure that counts ("" for one without a name); needed if there are several.
    initial : str, optional
        Where episodes start, if the program has several initial states: "uniform", or a label.
    end : str, optional
        A label of states that end the episode. Totals are those of PRISM's `F "label"`: the
        rewards before such a state, and ∞ if it may be missed. A start that is worth ∞ is refused
        at discount 1.

    Returns
    -------
    FiniteMDP
        The model. States are labelled with the values of their variables, actions with their
        names; the labels of the program stay.

    Raises
    ------
    FileFailure
        There is no such file.
    InvalidModel
        Storm refuses the program, or a constant, reward structure or label is missing.
    MissingExtra
        Stormpy is not installed.

    Notes
    -----
    Absorbing states without reward and with the label `end` end the episode. A deadlock earns its
    state rewards for ever, as in PRISM, and ends the episode if there are none.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> program = Path(tempfile.mkdtemp(), "coin.prism")
    >>> _ = program.write_text('''
    ...     mdp
    ...     module coin
    ...         s : [0..1] init 0;
    ...         [toss] s=0 -> 0.5 : (s'=0) + 0.5 : (s'=1);
    ...         [stay] s=1 -> true;
    ...     endmodule
    ... ''')
    >>> surestep.io.from_prism(program, discount=0.9).num_states
    2
    """
    file = read_path(path)
    number = arrays.read_discount(discount)
    for name, value in {"reward": reward, "initial": initial, "end": end}.items():
        check_setting(name, value, str | None)
    text = read_whole(file)
    plain = {} if constants is None else constants
    if isinstance(plain, Mapping):
        plain = {name: arrays.as_python(value) for name, value in plain.items()}
    given: Constants = converted(plain, Constants, "constants", InvalidParameter)
    if find_spec("stormpy") is None:
        raise MissingExtra(
            "the PRISM language is read through stormpy, which is not installed; "
            f"{install('storm')}"
        )
    with named_in_errors(file, InvalidModel), temporary_folder() as folder:
        model = built_by_storm(folder, text, given, reward)
        if model.num_states > storm.FEW_STATES:
            names = LazyLabels(lambda: names_of_states(file, text, given, reward), model.num_states)
            model = replace(model, state_labels=names)
        if end is not None and end not in model.labels:
            raise InvalidModel(
                f"end is {end!r}, expected a label of the program: "
                f"{', '.join(map(repr, model.labels))}"
            )
        # As deadlocks, states with the label `end` stay, and all states are those of the program.
        labels = {**model.marks(), DEADLOCK: model.marked(DEADLOCK) | model.marked(END)}
        return from_checker(
            replace(model, labels=labels),
            number,
            initial,
            None if end is None else model.labels[end],
        )


def names_of_states(
    file: Path, text: bytes, constants: Constants, reward: str | None
) -> Sequence[str]:
    """Returns the values of the variables in each state [S]; Storm builds the program once more."""
    with named_in_errors(file, InvalidModel), temporary_folder() as folder:
        model = built_by_storm(folder, text, constants, reward, named=True)
        return model.state_labels or [*map(str, range(model.num_states))]


def built_by_storm(
    folder: Path, text: bytes, constants: Constants, reward: str | None, named: bool = False
) -> CheckerModel:
    """Has Storm write the model of a program into a folder; reads it.

    A few states are always named by the values of their variables; many only if `named`.
    """
    (folder / storm.PROGRAM).write_bytes(text)
    (folder / storm.REQUEST).write_text(
        json.dumps({"constants": constants, "reward": reward, "named": named})
    )
    child = subprocess.run(
        [sys.executable, "-P", storm.__file__, str(folder)], capture_output=True, check=False
    )
    if not (folder / storm.ANSWER).exists():
        how = f"signal {-child.returncode}" if child.returncode < 0 else "an error"
        raise InvalidModel(
            f"Storm ended with {how} instead of reading the program; a constant divided by zero "
            "does that"
        )
    answer = json.loads((folder / storm.ANSWER).read_text())
    if "complaint" in answer:
        raise InvalidModel(answer["complaint"])
    model = read_umb(
        folder / storm.MODEL, UNNAMED if answer["structure"] == "" else answer["structure"]
    )
    return replace(
        model,
        state_labels=answer.get("names") or None,
        state_reward=np.array(answer.get("state_rewards", model.state_reward)),
    )
