"""Writing and reading back: what comes out is what went in, and files are whole or not there."""

import errno
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import NAMES, SUFFIXES, storable_mdps
from strategies import mdps
from surestep import FiniteMDP, Pairs, Policy, evaluate
from surestep.errors import FileFailure, InvalidModel, InvalidParameter, NeverEnds, SurestepError
from surestep.io import read_mdp, write_mdp
from surestep.io.checker_model import RESERVED

LOOP = np.ones((1, 1, 1))


def model(P=LOOP, R=((1.0,),), discount=0.9, initial=0, **rest):
    return FiniteMDP.from_dense(P, R, discount, initial, **rest)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples of a test: each overwrites the last, whatever that was."""
    return tmp_path_factory.mktemp("models")


# ---- round trips ------------------------------------------------------------------------------


@given(mdp=storable_mdps(marks=NAMES.filter(lambda name: name not in RESERVED)))
def test_umb_gives_back_exactly_what_was_written(folder, mdp):
    write_mdp(mdp, folder / "m.umb")
    assert read_mdp(folder / "m.umb", mdp.discount[0]) == mdp


@given(mdp=storable_mdps(labels=False))
def test_explicit_files_give_back_exactly_a_model_without_labels(folder, mdp):
    write_mdp(mdp, folder / "m.tra")
    found = read_mdp(folder / "m.tra", mdp.discount[0])
    pairs = Pairs(mdp.pairs.offsets, mdp.pairs.action, int(mdp.pairs.action.max()) + 1)
    assert found == with_pairs(mdp, pairs)  # actions that no state has are not in the files


@given(mdp=storable_mdps())
def test_explicit_files_give_back_labels_and_may_number_actions_anew(folder, mdp):
    write_mdp(mdp, folder / "m.tra")
    found = read_mdp(folder / "m.tra", mdp.discount[0])
    assert found.pairs.state_labels == mdp.pairs.state_labels
    assert found.marks == mdp.marks
    assert names(found) == names(mdp)
    for name in ("offsets", "successor", "probability", "reward", "ending_reward", "initial"):
        np.testing.assert_array_equal(getattr(found, name), getattr(mdp, name), name)
    np.testing.assert_array_equal(found.pairs.offsets, mdp.pairs.offsets)


def names(mdp):
    """The label of each pair's action, or its number."""
    labels = mdp.pairs.action_labels
    return [a if labels is None else labels[a] for a in mdp.pairs.action.tolist()]


def with_pairs(mdp, pairs):
    arrays = (mdp.offsets, mdp.successor, mdp.probability, mdp.reward, mdp.discount, mdp.initial)
    return FiniteMDP(pairs, *arrays, mdp.ending_reward)


@given(mdp=storable_mdps())
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_model_that_was_read_is_written_the_same_again(folder, mdp, suffix):
    path = folder / f"again{suffix}"
    write_mdp(mdp, path)
    before = {file: file.read_bytes() for file in folder.glob("again.*")}
    write_mdp(read_mdp(path, 0.5), path)
    assert {file: file.read_bytes() for file in folder.glob("again.*")} == before


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_states_called_end_and_start_are_states_like_any_other(tmp_path, suffix):
    # An absorbing state without reward, last in line, which is called 'end' but is not marked so.
    P = np.array([[[0.0, 1.0, 0.0]], [[0.5, 0.0, 0.5]], [[0.0, 0.0, 1.0]]])
    labels = {"state_labels": ("start", "init", "end"), "action_labels": ("end",)}
    mdp = model(P, [[1.0], [0.0], [0.0]], initial=[0.5, 0.25, 0.25], **labels)
    write_mdp(mdp, tmp_path / f"m{suffix}")
    assert read_mdp(tmp_path / f"m{suffix}", 0.9) == mdp


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_episodes_start_where_a_label_says_if_one_is_asked_for(tmp_path, suffix):
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
        path = tmp_path / f"m{suffix}"
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


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("label", RESERVED)
def test_labels_that_have_a_meaning_in_files_are_not_written(tmp_path, suffix, label):
    mdp = replace(model(), marks={label: [True]})
    with pytest.raises(InvalidModel, match=f"states are marked as '{label}', which says in model"):
        write_mdp(mdp, tmp_path / f"m{suffix}")


def test_labels_that_are_no_words_are_for_umb_only(tmp_path):
    with pytest.raises(InvalidModel, match="states are marked as 'far away', expected a word of"):
        write_mdp(replace(model(), marks={"far away": [True]}), tmp_path / "m.tra")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("argument", ["reward", "initial"])
@pytest.mark.parametrize("value", [1, b"goal", ["goal"], True])
def test_what_is_chosen_goes_by_a_name(tmp_path, argument, value):
    write_mdp(model(), tmp_path / "m.umb")
    with pytest.raises(InvalidParameter, match=f"{argument} is of type .*, expected a string"):
        read_mdp(tmp_path / "m.umb", 0.9, **{argument: value})


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_numbers_come_back_to_the_last_bit(tmp_path, suffix):
    P = np.array([[[1 / 3, 2 / 3]], [[5e-324, 1.0]]])
    R = np.array([[[-0.1, 1e308]], [[-5e-324, 1e-300]]])
    mdp = model(P, R, initial=[0.1, 0.9])
    write_mdp(mdp, tmp_path / f"m{suffix}")
    found = read_mdp(tmp_path / f"m{suffix}", 0.9)
    assert found == mdp
    assert found.reward.tobytes() == mdp.reward.tobytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("initial", [[1.0 - 2**-50, 0.0], [1.0, 2**-50], [0.0, 1.0]])
def test_a_start_that_is_all_but_certain_is_not_made_certain(tmp_path, suffix, initial):
    mdp = model(np.ones((2, 1, 2)) / 2, [[1.0], [0.0]], initial=initial)
    write_mdp(mdp, tmp_path / f"m{suffix}")
    assert read_mdp(tmp_path / f"m{suffix}", 0.9).initial.tolist() == initial


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_undiscounted_models_that_end_can_be_stored(tmp_path, suffix):
    mdp = model(np.array([[[0.0, 1.0]], [[0.0, 0.0]]]), [[2.0], [3.0]], discount=1.0)
    write_mdp(mdp, tmp_path / f"m{suffix}")
    found = read_mdp(tmp_path / f"m{suffix}", 1)
    assert found == mdp
    assert evaluate(found, Policy.uniform(found)).tolist() == [5.0, 3.0]


def test_an_action_that_no_state_has_is_kept_by_umb_only(tmp_path):
    mdp = model(np.ones((1, 3, 1)), [[1.0, 2.0, 3.0]], enabled=[[True, True, False]])
    for suffix, actions in ((".umb", 3), (".tra", 2)):
        write_mdp(mdp, tmp_path / f"m{suffix}")
        assert read_mdp(tmp_path / f"m{suffix}", 0.9).pairs.num_actions == actions


def test_labels_are_words_that_prism_takes_for_names(tmp_path):
    labels = ("go", "go_left", "go left", "S", "init", "a1", "__x", "")
    mdp = model(np.ones((1, 8, 1)), [range(8)], action_labels=labels)
    write_mdp(mdp, tmp_path / "m.tra")
    lines = (tmp_path / "m.tra").read_text().splitlines()[1:]
    words = ["go", "go_left", "__go_20_left", "__S", "__init", "__a1", "___5f__5f_x", "__"]
    assert [line.split()[4] for line in lines] == words
    assert read_mdp(tmp_path / "m.tra", 0.9) == mdp


def test_the_same_model_always_makes_the_same_bytes(tmp_path):
    for name in ("m.umb", "n.umb"):
        write_mdp(model(), tmp_path / name)
    assert (tmp_path / "m.umb").read_bytes() == (tmp_path / "n.umb").read_bytes()


def test_paths_may_be_strings_and_names_may_have_dots(tmp_path):
    write_mdp(model(R=[[5.0]]), str(tmp_path / "v1.2 final.tra"))
    assert read_mdp(str(tmp_path / "v1.2 final.tra"), 0.9) == model(R=[[5.0]])
    assert (tmp_path / "v1.2 final.trew").exists()


# ---- files that belong together ---------------------------------------------------------------


def test_only_the_siblings_that_are_needed_are_written(tmp_path):
    write_mdp(model(R=[[0.0]]), tmp_path / "m.tra")
    assert sorted(os.listdir(tmp_path)) == ["m.lab", "m.tra"]
    assert (tmp_path / "m.tra").read_text() == "1 1 1\n0 0 0 1.0 a0\n"
    assert (tmp_path / "m.lab").read_text() == '0="init"\n0: 0\n'


def test_siblings_of_an_earlier_model_do_not_speak_into_the_next(tmp_path):
    path = tmp_path / "m.tra"
    path.with_suffix(".srew").write_text("1 1\n0 7.0\n")
    write_mdp(model(R=[[5.0]], state_labels=("ward",)), path)
    assert sorted(os.listdir(tmp_path)) == ["m.lab", "m.sta", "m.tra", "m.trew"]
    write_mdp(model(R=[[0.0]]), path)
    assert sorted(os.listdir(tmp_path)) == ["m.lab", "m.tra"]
    assert read_mdp(path, 0.9) == model(R=[[0.0]])


class Refusal(OSError):
    def __init__(self):
        super().__init__(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("error", [Refusal, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["write", "replace"])
def test_a_write_that_fails_leaves_everything_as_it_was(tmp_path, monkeypatch, suffix, error, step):
    path = tmp_path / f"m{suffix}"
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
    from surestep.io import prism_writer, umb_writer

    def failing(original):
        def chunks(*args, **kwargs):
            for chunk in original(*args, **kwargs):
                if next(taken) == calls:
                    raise error()
                yield chunk

        return chunks

    patch.setattr(umb_writer, "tar_chunks", failing(umb_writer.tar_chunks))
    for name in ("transition_lines", "reward_lines", "label_lines"):
        patch.setattr(prism_writer, name, failing(getattr(prism_writer, name)))


def test_a_first_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    for calls in range(2):
        with monkeypatch.context() as patch:
            fail_at(patch, "replace", calls, Refusal)
            with pytest.raises(FileFailure, match="cannot be written: No space left on device"):
                write_mdp(model(), tmp_path / "m.tra")
        assert os.listdir(tmp_path) == []


# ---- refusals ---------------------------------------------------------------------------------


def test_a_model_with_more_than_one_discount_is_refused(tmp_path):
    P = np.ones((2, 2, 2)) / 2
    mdp = model(P, np.zeros((2, 2)), discount=[[0.9, 0.9], [0.5, 0.9]], state_labels=("s", "t"))
    for suffix in SUFFIXES:
        with pytest.raises(InvalidModel) as refusal:
            write_mdp(mdp, tmp_path / f"m{suffix}")
        assert (
            "the discount of state 't', action 0 is 0.5, that of state 's', action 0 is 0.9"
            in str(refusal.value)
        )
    assert os.listdir(tmp_path) == []


@given(mdp=mdps(), suffix=st.sampled_from(SUFFIXES))
def test_either_all_discounts_are_equal_or_nothing_is_written(folder, mdp, suffix):
    path = folder / f"discounts{suffix}"
    path.unlink(missing_ok=True)
    if (mdp.discount == mdp.discount[0]).all():
        write_mdp(mdp, path)
    else:
        with pytest.raises(InvalidModel, match="only a model with a single one"):
            write_mdp(mdp, path)
    assert path.exists() == (mdp.discount == mdp.discount[0]).all()


@pytest.mark.parametrize("path", ["m.drn", "m", "", "m.tra.gz", "m.TRA", ".tra", "model.prism"])
def test_other_suffixes_are_refused_with_those_that_are_known(path):
    for call in (lambda: read_mdp(path, 0.9), lambda: write_mdp(model(), path)):
        with pytest.raises(InvalidParameter, match=r"expected one of \.tra, \.umb .*from_prism"):
            call()


@pytest.mark.parametrize("path", [None, 5, b"m.tra", "a\0.tra", "\ud800.umb", ["m.tra"]])
def test_what_is_no_path_is_refused(path):
    for call in (lambda: read_mdp(path, 0.9), lambda: write_mdp(model(), path)):
        with pytest.raises(InvalidParameter, match="path is"):
            call()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_and_folders_that_are_not_there(tmp_path, suffix):
    with pytest.raises(FileFailure, match=r"nothing\.\w+ cannot be read: No such file"):
        read_mdp(tmp_path / f"nothing{suffix}", 0.9)
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(FileFailure, match=r"folder\.\w+ cannot be read: Is a directory"):
        read_mdp(tmp_path / f"folder{suffix}", 0.9)
    with pytest.raises(FileFailure, match=r"folder\.\w+ cannot be written: it is a folder"):
        write_mdp(model(), tmp_path / f"folder{suffix}")
    with pytest.raises(FileFailure, match=r"m\.\w+ cannot be written: No such file or directory"):
        write_mdp(model(), tmp_path / "nowhere" / f"m{suffix}")
    assert os.listdir(tmp_path) == [f"folder{suffix}"]


@pytest.mark.parametrize("discount", [1.5, -0.1, np.nan, None, "0.9", [0.9], True, 10**400])
def test_discounts_that_are_none_are_refused(tmp_path, discount):
    write_mdp(model(), tmp_path / "m.umb")
    with pytest.raises(InvalidParameter, match="discount is"):
        read_mdp(tmp_path / "m.umb", discount)


def test_without_a_discount_policies_that_may_never_end_are_refused(tmp_path):
    write_mdp(model(), tmp_path / "m.umb")
    endless = read_mdp(tmp_path / "m.umb", 1.0)
    with pytest.raises(NeverEnds, match="state 0"):
        evaluate(endless, Policy.uniform(endless))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", ["state", "action"])
def test_labels_that_are_no_text_are_refused(tmp_path, suffix, kind):
    mdp = model(**{f"{kind}_labels": ("half \ud800",)})
    with pytest.raises(InvalidModel, match=f"label of {kind} 0 is .*a lone surrogate"):
        write_mdp(mdp, tmp_path / f"m{suffix}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("mdp", [None, "model", LOOP, Pairs.full(1, 1)])
def test_only_models_are_written(tmp_path, mdp):
    with pytest.raises(SurestepError, match=r"mdp is of type \w+, expected FiniteMDP"):
        write_mdp(mdp, tmp_path / "m.umb")
