"""Writing and reading back: what comes out is what went in, and files are whole or not there."""

import errno
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from support.model_files import NAMES, storable_mdps
from support.strategies import mdps
from surestep import FiniteMDP, Policy, evaluate
from surestep.errors import FileFailure, InvalidModel, InvalidParameter, NeverEnds
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


def test_states_called_end_and_start_are_states_like_any_other(tmp_path):
    # An absorbing state without reward, last in line, which is called 'end' but is not marked so.
    P = np.array([[[0.0, 1.0, 0.0]], [[0.5, 0.0, 0.5]], [[0.0, 0.0, 1.0]]])
    labels = {"state_labels": ("start", "init", "end"), "action_labels": ("end",)}
    mdp = model(P, [[1.0], [0.0], [0.0]], initial=[0.5, 0.25, 0.25], **labels)
    write_mdp(mdp, tmp_path / "m.umb")
    assert read_mdp(tmp_path / "m.umb", 0.9) == mdp


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


@pytest.mark.parametrize("label", RESERVED)
def test_labels_that_have_a_meaning_in_files_are_not_written(tmp_path, label):
    mdp = replace(model(), marks={label: [True]})
    with pytest.raises(InvalidModel, match=f"states are marked as '{label}', which says in model"):
        write_mdp(mdp, tmp_path / "m.umb")


@pytest.mark.parametrize("argument", ["reward", "initial"])
@pytest.mark.parametrize("value", [1, b"goal", ["goal"], True])
def test_what_is_chosen_goes_by_a_name(tmp_path, argument, value):
    write_mdp(model(), tmp_path / "m.umb")
    with pytest.raises(InvalidParameter, match=f"{argument} is .*, expected str or None"):
        read_mdp(tmp_path / "m.umb", 0.9, **{argument: value})


def test_numbers_come_back_to_the_last_bit(tmp_path):
    P = np.array([[[1 / 3, 2 / 3]], [[5e-324, 1.0]]])
    R = np.array([[[-0.1, 1e308]], [[-5e-324, 1e-300]]])
    mdp = model(P, R, initial=[0.1, 0.9])
    write_mdp(mdp, tmp_path / "m.umb")
    found = read_mdp(tmp_path / "m.umb", 0.9)
    assert found == mdp
    assert found.reward.tobytes() == mdp.reward.tobytes()


@pytest.mark.parametrize("initial", [[1.0 - 2**-50, 0.0], [1.0, 2**-50], [0.0, 1.0]])
def test_a_start_that_is_all_but_certain_is_not_made_certain(tmp_path, initial):
    mdp = model(np.ones((2, 1, 2)) / 2, [[1.0], [0.0]], initial=initial)
    write_mdp(mdp, tmp_path / "m.umb")
    assert read_mdp(tmp_path / "m.umb", 0.9).initial.tolist() == initial


def test_undiscounted_models_that_end_can_be_stored(tmp_path):
    mdp = model(np.array([[[0.0, 1.0]], [[0.0, 0.0]]]), [[2.0], [3.0]], discount=1.0)
    write_mdp(mdp, tmp_path / "m.umb")
    found = read_mdp(tmp_path / "m.umb", 1)
    assert found == mdp
    assert evaluate(found, Policy.uniform(found)).tolist() == [5.0, 3.0]


def test_an_action_that_no_state_has_is_kept(tmp_path):
    mdp = model(np.ones((1, 3, 1)), [[1.0, 2.0, 3.0]], enabled=[[True, True, False]])
    write_mdp(mdp, tmp_path / "m.umb")
    assert read_mdp(tmp_path / "m.umb", 0.9).pairs.num_actions == 3


def test_the_same_model_always_makes_the_same_bytes(tmp_path):
    for name in ("m.umb", "n.umb"):
        write_mdp(model(), tmp_path / name)
    assert (tmp_path / "m.umb").read_bytes() == (tmp_path / "n.umb").read_bytes()


# ---- whole or not at all ----------------------------------------------------------------------


class Refusal(OSError):
    def __init__(self):
        super().__init__(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("error", [Refusal, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["write", "replace"])
def test_a_write_that_fails_leaves_everything_as_it_was(tmp_path, monkeypatch, error, step):
    path = tmp_path / "m.umb"
    first = model(R=[[5.0]], state_labels=("ward",))
    second = model(np.zeros((1, 1, 1)), R=[[6.0]])
    write_mdp(first, path)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    for calls in range(100):
        with monkeypatch.context() as patch:
            fail_at(patch, step, calls, error)
            try:
                write_mdp(second, path)
                break
            except (FileFailure, KeyboardInterrupt):
                pass
        assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before
    assert 0 < calls < 99
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


def test_a_first_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    for step in ("write", "replace"):
        with monkeypatch.context() as patch:
            fail_at(patch, step, 0, Refusal)
            with pytest.raises(FileFailure, match="cannot be written: No space left on device"):
                write_mdp(model(), tmp_path / "m.umb")
        assert os.listdir(tmp_path) == []


# ---- refusals ---------------------------------------------------------------------------------


def test_a_model_with_more_than_one_discount_is_refused(tmp_path):
    P = np.ones((2, 2, 2)) / 2
    mdp = model(P, np.zeros((2, 2)), discount=[[0.9, 0.9], [0.5, 0.9]], state_labels=("s", "t"))
    words = "the discount of state 't', action 0 is 0.5, that of state 's', action 0 is 0.9"
    with pytest.raises(InvalidModel, match=words):
        write_mdp(mdp, tmp_path / "m.umb")
    assert os.listdir(tmp_path) == []


@given(mdp=mdps())
def test_either_all_discounts_are_equal_or_nothing_is_written(folder, mdp):
    path = folder / "discounts.umb"
    path.unlink(missing_ok=True)
    if (mdp.discount == mdp.discount[0]).all():
        write_mdp(mdp, path)
    else:
        with pytest.raises(InvalidModel, match="only a model with a single one"):
            write_mdp(mdp, path)
    assert path.exists() == (mdp.discount == mdp.discount[0]).all()


@pytest.mark.parametrize("path", ["m.drn", "m", "", "m.umb.gz", "m.UMB", ".umb", "model.prism"])
def test_other_suffixes_are_refused_with_the_one_that_is_known(path):
    for call in (lambda: read_mdp(path, 0.9), lambda: write_mdp(model(), path)):
        with pytest.raises(InvalidParameter, match=r"expected \.umb \(.*from_prism\)$"):
            call()


def test_explicit_files_are_refused_with_the_command_that_converts_them(tmp_path):
    (tmp_path / "v1.2.tra").write_text("1 1 1\n0 0 0 1.0\n")
    command = f"prism -importmodel {tmp_path}/v1.2.all -exportmodel {tmp_path}/v1.2.umb "
    for call in (read_mdp, lambda path, discount: write_mdp(model(), path)):
        with pytest.raises(InvalidParameter) as refusal:
            call(tmp_path / "v1.2.tra", 0.9)
        assert "'.tra' of PRISM's explicit files, expected .umb; " in str(refusal.value)
        assert command in str(refusal.value)
        assert "\n" not in str(refusal.value)
    assert (tmp_path / "v1.2.tra").read_text() == "1 1 1\n0 0 0 1.0\n"


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


def test_without_a_discount_policies_that_may_never_end_are_refused(tmp_path):
    write_mdp(model(), tmp_path / "m.umb")
    endless = read_mdp(tmp_path / "m.umb", 1.0)
    with pytest.raises(NeverEnds, match="state 0"):
        evaluate(endless, Policy.uniform(endless))


@pytest.mark.parametrize("kind", ["state", "action"])
def test_labels_that_are_no_text_are_refused(tmp_path, kind):
    mdp = model(**{f"{kind}_labels": ("half \ud800",)})
    with pytest.raises(InvalidModel, match=f"label of {kind} 0 is .*a lone surrogate"):
        write_mdp(mdp, tmp_path / "m.umb")
    assert os.listdir(tmp_path) == []
