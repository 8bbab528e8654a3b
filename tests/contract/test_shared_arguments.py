"""Arguments that several verbs share are explained once, and stand in all their docstrings."""

import inspect

import docstrings
import surestep


def test_docstrings_say_what_the_description_says():
    assert docstrings.outdated() == [], "run python tools/docstrings.py --write"


def test_types_are_those_of_readers():
    told = inspect.getdoc(surestep.improve)
    assert "delta : float in (0, 1), default 0.1\n" in told
    assert "Annotated" not in told
    assert "Meta(" not in told


def test_a_text_that_differs_is_noticed(tmp_path, monkeypatch):
    home = tmp_path / "pipeline"
    home.mkdir()
    text = (docstrings.SOURCES / "pipeline" / "verify.py").read_text(encoding="utf-8")
    (home / "verify.py").write_text(text.replace("The folder of a saved", "A folder of a"))
    monkeypatch.setattr(docstrings, "SOURCES", tmp_path)
    monkeypatch.setattr(docstrings, "VERBS", {"pipeline/verify.py": ("verify_result",)})
    assert docstrings.outdated(write=True) == ["pipeline/verify.py: verify_result"]
    assert docstrings.outdated() == []
    assert (home / "verify.py").read_text(encoding="utf-8") == text
