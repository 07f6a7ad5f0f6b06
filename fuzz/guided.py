"""Inputs bred by the coverage of our readers (atheris, libFuzzer).

    pip install atheris
    python -m fuzz.guided -atheris_runs=20000 [-seed=1]

The first byte picks a seed of the corpus, the rest is edits of it: (place, byte) triples. So what
is bred is damage, and not whole files, which chance would never build.
"""

import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris

with atheris.instrument_imports(include=["elute.demos", "elute.policy"]):
    from fuzz.target import attempt
from fuzz.corpus import seeds
from fuzz.mutate import copy


def edits(content: bytes, data: atheris.FuzzedDataProvider) -> bytes:
    """Bytes changed, cut off, or put in, as the data says."""
    changed = bytearray(content)
    while data.remaining_bytes() > 3 and changed:
        at = data.ConsumeIntInRange(0, len(changed) - 1)
        kind = data.ConsumeIntInRange(0, 7)
        if kind == 0:
            del changed[at:]
        elif kind == 1:
            del changed[at : at + data.ConsumeIntInRange(1, 64)]
        elif kind == 2:
            changed[at:at] = data.ConsumeBytes(8)
        else:
            changed[at] = data.ConsumeIntInRange(0, 255)
    return bytes(changed)


KNOWN = seeds()


def one_input(given: bytes) -> None:
    """Damage a seed as told, and read it."""
    data = atheris.FuzzedDataProvider(given)
    kind, original = KNOWN[data.ConsumeIntInRange(0, len(KNOWN) - 1)]
    with TemporaryDirectory() as name:
        path = part = copy(original, Path(name))
        if path.is_dir():
            files = sorted(p for p in path.rglob("*") if p.is_file())
            part = files[data.ConsumeIntInRange(0, len(files) - 1)]
        part.write_bytes(edits(part.read_bytes(), data))
        attempt(kind, path)


if __name__ == "__main__":
    warnings.simplefilter("error")
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
