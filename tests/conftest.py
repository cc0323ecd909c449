"""Fixtures for all tests."""

import pytest

from sw import cli


@pytest.fixture
def systolith(capsys):
    """Run the command line in this process: (exit status, standard output, standard error)."""
    def call(*arguments):
        status = cli.main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return status, out, err
    return call
