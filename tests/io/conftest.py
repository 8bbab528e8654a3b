"""What the tests of files share."""

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples of a test: each overwrites the last, whatever that was."""
    return tmp_path_factory.mktemp("files")
