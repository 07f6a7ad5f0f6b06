"""Hold Ctrl-C back while HDF5 is at work.

Python raises KeyboardInterrupt in whatever Python code runs next. During a call into HDF5 that is
the clean-up of a weak reference, where it is lost, or a callback of the file being written, where
it crashes the library. Held back, it arrives between two chunks.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A block that Ctrl-C does not enter; it is delivered when the block ends."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
