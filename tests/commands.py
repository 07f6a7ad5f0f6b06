"""Commands in processes of their own, as a user types them."""

import signal
import subprocess
import sys


def elute(*arguments, **options) -> subprocess.CompletedProcess:
    """Run a command to its end."""
    return subprocess.run(
        _command(arguments), capture_output=True, text=True, check=False, **options
    )


def started(*arguments) -> subprocess.Popen:
    """A command that runs, to be interrupted."""
    return subprocess.Popen(
        _command(arguments),
        stderr=subprocess.PIPE,
        text=True,
        # A runner in the background may have passed on that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def _command(arguments):
    return [sys.executable, "-m", "elute", *map(str, arguments)]
