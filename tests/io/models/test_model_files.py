"""Writing and reading back: what comes out is what went in, and files are whole or not there."""

import errno
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from support.model_files import NAMES, storable_mdps
from surestep import FiniteMDP
from surestep.errors import FileFailure, InvalidModel, InvalidParameter
from surestep.io import read_mdp, write_mdp
from surestep.io.models import umb
from surestep.io.models.checker import RESERVED

LOOP = np.ones((1, 1, 1))


def model(P=LOOP, R=((1.0,),), discount=0.9, initial=0, **rest):
    return FiniteMDP.from_dense(P, R, discount, initial, **rest)


# ---- round trips ------------------------------------------------------------------------------


@given(mdp=storable_mdps(marks=NAMES.filter(lambda name: name not in RESERVED)))
def test_an_archive_gives_back_exactly_what_was_written(folder, mdp):
    write_mdp(mdp, folder / "m.umb")
    assert read_mdp(folder / "m.umb", mdp.discount[0]) == mdp


@given(mdp=storable_mdps())
def test_a_model_that_was_read_is_written_the_same_again(folder, mdp):
    path = folder / "again.umb"
    write_mdp(mdp, path)
    before = path.read_bytes()
    write_mdp(read_mdp(path, 0.5), path)
    assert path.read_bytes() == before


HALVES, ZERO = np.ones((2, 1, 2)) / 2, [[1.0], [0.0]]
SPECIAL = {
    # An absorbing state without reward, last in line, which is called 'end' but is not marked so.
    "states called end and start": model(
        np.array([[[0.0, 1.0, 0.0]], [[0.5, 0.0, 0.5]], [[0.0, 0.0, 1.0]]]),
        [[1.0], [0.0], [0.0]],
        initial=[0.5, 0.25, 0.25],
        state_labels=("start", "init", "end"),
        action_labels=("end",),
    ),
    "numbers to the last bit": model(
        np.array([[[1 / 3, 2 / 3]], [[5e-324, 1.0]]]),
        np.array([[[-0.1, 1e308]], [[-5e-324, 1e-300]]]),
        initial=[0.1, 0.9],
    ),
    "a start that is all but certain": model(HALVES, ZERO, initial=[1.0, 2**-50]),
    "a start that is less than certain": model(HALVES, ZERO, initial=[1.0 - 2**-50, 0.0]),
    "an action that no state has": model(
        np.ones((1, 3, 1)), [[1.0, 2.0, 3.0]], enabled=[[True, True, False]]
    ),
    "no discount, and an end": model([[[0.0, 1.0]], [[0.0, 0.0]]], [[2.0], [3.0]], discount=1.0),
    "no discount, and no end": model(discount=1.0),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_models_come_back_too(tmp_path, name):
    mdp = SPECIAL[name]
    write_mdp(mdp, tmp_path / "m.umb")
    found = read_mdp(tmp_path / "m.umb", mdp.discount[0])
    assert found == mdp
    assert found.reward.tobytes() == mdp.reward.tobytes()


def test_episodes_start_where_a_label_says_if_one_is_asked_for(tmp_path):
    ends = np.array([[[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 0.0, 0.0]]])
    for initial in (1, [0.5, 0.25, 0.25]):  # the second start is one more state in the file
        mdp = replace(
            model(ends, [[1.0], [2.0], [3.0]], initial=initial),
            marks={
                "goal": [False, False, True],
                "early": [True, True, False],
                "never": [False] * 3,
            },
        )
        path = tmp_path / "m.umb"
        write_mdp(mdp, path)
        assert read_mdp(path, 0.9) == read_mdp(path, 0.9, initial="uniform") == mdp
        early = read_mdp(path, 0.9, initial="early")
        assert early == replace(mdp, initial=[0.5, 0.5, 0.0])
        assert read_mdp(path, 0.9, initial="goal").initial.tolist() == [0.0, 0.0, 1.0]
        with pytest.raises(InvalidModel, match="no state is marked as 'never', expected one to"):
            read_mdp(path, 0.9, initial="never")
        with pytest.raises(
            InvalidModel, match=r"initial is 'gaol', expected one of 'uniform', .*'goal"
        ):
            read_mdp(path, 0.9, initial="gaol")


# ---- whole or not at all ----------------------------------------------------------------------


class Refusal(OSError):
    def __init__(self):
        super().__init__(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("error", [Refusal, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["write", "replace"])
@pytest.mark.parametrize("there", [True, False])
def test_a_write_that_fails_leaves_everything_as_it_was(tmp_path, monkeypatch, error, step, there):
    path = tmp_path / "m.umb"
    second = model(np.zeros((1, 1, 1)), R=[[6.0]])
    if there:
        write_mdp(model(R=[[5.0]], state_labels=("ward",)), path)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    told = set()
    for calls in range(100):
        with monkeypatch.context() as patch:
            fail_at(patch, step, calls, error)
            try:
                write_mdp(second, path)
                break
            except (FileFailure, KeyboardInterrupt) as failure:
                told.add(str(failure))
        assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before
    assert 0 < calls < 99
    full = f"{path} cannot be written: No space left on device"
    assert told == {full if error is Refusal else ""}
    assert read_mdp(path, 0.9) == second
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def fail_at(patch, step, calls, error):
    """Lets the given step fail once it has been taken `calls` times."""
    taken = iter(range(1000))
    if step == "replace":
        replace = os.replace

        def replacing(source, target):
            if next(taken) == calls:
                raise error()
            replace(source, target)

        patch.setattr(os, "replace", replacing)
        return
    tar_chunks = umb.tar_chunks

    def chunks(files):
        for chunk in tar_chunks(files):
            if next(taken) == calls:
                raise error()
            yield chunk

    patch.setattr(umb, "tar_chunks", chunks)


# ---- refusals ---------------------------------------------------------------------------------

DISCOUNTS = [[0.9, 0.9], [0.5, 0.9]]
REFUSED = [
    *(
        (replace(model(), marks={label: [True]}), f"states are marked as '{label}', which says")
        for label in RESERVED
    ),
    *(
        (model(**{f"{kind}_labels": ("half \ud800",)}), f"label of {kind} 0 is .*a lone surrogate")
        for kind in ("state", "action")
    ),
    (
        model(np.ones((2, 2, 2)) / 2, np.zeros((2, 2)), DISCOUNTS, state_labels=("s", "t")),
        "the discount of state 't', action 0 is 0.5, that of state 's', action 0 is 0.9; .* only "
        "a model with a single one",
    ),
]


@pytest.mark.parametrize(("mdp", "words"), REFUSED)
def test_what_no_file_can_hold_is_not_written(tmp_path, mdp, words):
    with pytest.raises(InvalidModel, match=words):
        write_mdp(mdp, tmp_path / "m.umb")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("value", [1, b"goal", ["goal"], True])
def test_what_is_chosen_goes_by_a_name(tmp_path, value):
    write_mdp(model(), tmp_path / "m.umb")
    for argument in ("reward", "initial"):
        with pytest.raises(InvalidParameter, match=f"{argument} is .*, expected str or None"):
            read_mdp(tmp_path / "m.umb", 0.9, **{argument: value})


@pytest.mark.parametrize(
    "path", ["m.drn", "m", "", "m.umb.gz", "m.UMB", ".umb", "model.prism", "m.tra"]
)
def test_other_suffixes_are_refused_with_the_one_that_is_known(path):
    for call in (lambda: read_mdp(path, 0.9), lambda: write_mdp(model(), path)):
        with pytest.raises(InvalidParameter, match=r"expected \.umb \(.*from_prism; docs/mod"):
            call()


@pytest.mark.parametrize("path", [None, 5, b"m.umb", "a\0.umb", "\ud800.umb", ["m.umb"]])
def test_what_is_no_path_is_refused(path):
    for call in (lambda: read_mdp(path, 0.9), lambda: write_mdp(model(), path)):
        with pytest.raises(InvalidParameter, match="path is"):
            call()


def test_files_and_folders_that_are_not_there(tmp_path):
    with pytest.raises(FileFailure, match=r"nothing\.umb cannot be read: No such file"):
        read_mdp(tmp_path / "nothing.umb", 0.9)
    (tmp_path / "folder.umb").mkdir()
    with pytest.raises(FileFailure, match=r"folder\.umb cannot be read: Is a directory"):
        read_mdp(tmp_path / "folder.umb", 0.9)
    with pytest.raises(FileFailure, match=r"folder\.umb cannot be written: it is a folder"):
        write_mdp(model(), tmp_path / "folder.umb")
    with pytest.raises(FileFailure, match=r"m\.umb cannot be written: No such file or directory"):
        write_mdp(model(), tmp_path / "nowhere" / "m.umb")
    assert os.listdir(tmp_path) == ["folder.umb"]
