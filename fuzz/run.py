"""The campaign: damaged copies of the seeds, read in processes that may die.

    python -m fuzz.run --inputs 100000 [--jobs 2] [--seed 0] [--guided 20000]
    python -m fuzz.run --only 12345        # one of them again, with its traceback

Input n of seed s is always the same. An input must be read or refused within some seconds and
4 GiB; what makes the library underneath crash or hang by itself is counted apart. `--guided` adds
inputs that are bred by coverage (atheris). Failing inputs are kept in `fuzz/failures`, and the
summary goes to `fuzz/summary.json`. The exit code is 1 if there was a fault of ours.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from threading import Thread

import numpy as np

from fuzz.corpus import seeds
from fuzz.mutate import copy, damage

HERE = Path(__file__).parent
FAILURES, SUMMARY = HERE / "failures", HERE / "summary.json"
PATIENCE = 20.0
"""Seconds that an input may take."""
MEMORY = 4 * 2**30
"""Bytes that a reader may use beyond what it starts with."""
BARE = """
import sys, pathlib
def visit(name, item):
    import h5py
    dict(item.attrs)
    if isinstance(item, h5py.Dataset):
        item[()]
def read(path):
    with open(path, "rb") as file:
        head = file.read(8)
    if head == b"\\x89HDF\\r\\n\\x1a\\n":
        import h5py
        with h5py.File(path) as file:
            visit("", file)
            file.visititems(visit)
    elif head[:4] == b"PAR1":
        import pyarrow.parquet
        pyarrow.parquet.read_table(path)
    elif path.suffix == ".arrow":
        import pyarrow.ipc
        pyarrow.ipc.open_stream(path).read_all()
given = pathlib.Path(sys.argv[1])
for path in [given] if given.is_file() else [p for p in given.rglob("*") if p.is_file()]:
    try:
        read(path)
    except Exception:
        pass
"""
"""Reads a file by the library underneath alone."""


def make(number: int, seed: int, folder: Path) -> tuple[str, Path]:
    """The kind and path of an input."""
    known = seeds()
    kind, original = known[number % len(known)]
    path = copy(original, folder)
    damage(path, np.random.default_rng([seed, number]))
    return kind, path


def worker(seed: int) -> None:
    """Tries the inputs whose numbers it is told, and answers each with a line."""
    from fuzz.target import attempt  # noqa: PLC0415 (only here is all of elute needed)

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    warnings.simplefilter("error")
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        with TemporaryDirectory() as name:
            kind, path = make(int(line), seed, Path(name))
            try:
                answer = attempt(kind, path)
            except Exception:
                answer = traceback.format_exc()
        print(json.dumps(answer), flush=True)


class Reader:
    """A worker, and what it answers."""

    def __init__(self, seed: int) -> None:
        command = [sys.executable, "-m", "fuzz.run", "--worker", "--seed", str(seed)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.answers: Queue[str] = Queue()
        Thread(target=self._listen, daemon=True).start()
        self.answers.get()  # it is ready; importing everything does not count

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.answers.put(json.loads(line))
        self.answers.put("crashed")

    def ask(self, number: int) -> str:
        """What became of an input."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
            return self.answers.get(timeout=PATIENCE)
        except Empty:
            return "hangs"
        except BrokenPipeError:
            return "crashed"

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


def answers(numbers: Iterator[int], seed: int) -> Iterator[tuple[int, str]]:
    """Of each input, from one worker after another."""
    reader = Reader(seed)
    for number in numbers:
        answer = reader.ask(number)
        if answer in ("crashed", "hangs"):
            reader.stop()
            reader = Reader(seed)
        yield number, answer
    reader.stop()


def blame(number: int, seed: int, answer: str) -> str:
    """`read`, `refused`, `fault of a library`, or `fault`; a fault's input is kept."""
    if answer in ("read", "refused"):
        return answer
    with TemporaryDirectory() as name:
        kind, path = make(number, seed, Path(name))
        if answer in ("crashed", "hangs") and _library_fails(path):
            return "fault of a library"
        kept = FAILURES / f"{seed}-{number}-{kind}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        shutil.move(path, kept / path.name)
        (kept / "traceback.txt").write_text(answer)
    return "fault"


def _library_fails(path: Path) -> bool:
    try:
        done = subprocess.run(
            [sys.executable, "-c", BARE, str(path)], timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode < 0


def campaign(inputs: int, jobs: int, seed: int) -> dict[str, Counter[str]]:
    """Answers by kind, counted."""
    kinds = [kind for kind, _ in seeds()]
    found: dict[str, Counter[str]] = {kind: Counter() for kind in sorted(set(kinds))}
    done: Queue[tuple[int, str] | Exception | None] = Queue()

    numbers = iter(range(inputs))  # each worker takes the next

    def work() -> None:
        try:
            for number, answer in answers(numbers, seed):
                done.put((number, blame(number, seed, answer)))
            done.put(None)
        except Exception as error:  # of the campaign itself
            done.put(error)

    for _ in range(jobs):
        Thread(target=work, daemon=True).start()
    began, count, working = time.monotonic(), 0, jobs
    while working:
        one = done.get()
        if one is None:
            working -= 1
            continue
        if isinstance(one, Exception):
            raise one
        count += 1
        found[kinds[one[0] % len(kinds)]][one[1]] += 1
        if count % 1000 == 0:
            rate = count / (time.monotonic() - began)
            print(f"{count} of {inputs}, {rate:.0f} a second", file=sys.stderr, flush=True)
    return found


def guided(runs: int, seed: int) -> int:
    """Breed inputs by coverage; how many failed."""
    if not runs:
        return 0
    command = [sys.executable, "-m", "fuzz.guided", f"-atheris_runs={runs}", f"-seed={seed + 1}"]
    done = subprocess.run(command, check=False, cwd=HERE.parent)
    return int(done.returncode != 0)


def main() -> None:
    """Run it, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--guided", type=int, default=0, help="inputs that are bred by coverage")
    parser.add_argument("--only", type=int, help="try one input here")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        worker(given.seed)
        return
    if given.only is not None:
        from fuzz.target import attempt  # noqa: PLC0415

        with TemporaryDirectory() as name:
            print(attempt(*make(given.only, given.seed, Path(name))))
        return
    began = time.monotonic()
    found = campaign(given.inputs, given.jobs, given.seed)
    total: Counter[str] = sum(found.values(), Counter())
    bred = guided(given.guided, given.seed)
    summary = {
        "inputs": given.inputs,
        "seed": given.seed,
        "guided_inputs": given.guided,
        "guided_failures": bred,
        "tracebacks": total["fault"],
        "minutes": round((time.monotonic() - began) / 60, 1),
        "answers": dict(total),
        "by_kind": {kind: dict(counts) for kind, counts in found.items()},
    }
    SUMMARY.write_text(json.dumps(summary, indent=2) + "\n")
    print(json.dumps(summary, indent=2))
    print(f"{total['fault'] + bred} tracebacks")
    sys.exit(bool(total["fault"] + bred))


if __name__ == "__main__":
    main()
