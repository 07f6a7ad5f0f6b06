"""Commands in this process, because starting one is slow; `commands.py` has the others."""

import sys

import pytest

from elute.cli.main import main


@pytest.fixture
def run_here(capfd, monkeypatch):
    """Run a command: (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["elute", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capfd.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return run
