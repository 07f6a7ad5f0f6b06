"""Ctrl-C that is never lost.

Python raises KeyboardInterrupt in whatever runs next. After a long call into HDF5 that is often
the clean-up of a weak reference, where exceptions are ignored. So it is remembered, too, and
raised again at the next chunk.
"""

import signal
import sys
from types import FrameType

_asked = False


def listen() -> None:
    """Remember Ctrl-C from now on, unless whoever started us had it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _remember)
        sys.unraisablehook = _quietly


def check() -> None:
    """Stop here if Ctrl-C was pressed and got lost.

    Raises:
        KeyboardInterrupt: it was.
    """
    if _asked:
        raise KeyboardInterrupt


def _remember(number: int, frame: FrameType | None) -> None:
    global _asked  # noqa: PLW0603 (a signal handler has no other place)
    _asked = True
    signal.default_int_handler(number, frame)


def _quietly(lost: "sys.UnraisableHookArgs") -> None:
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
