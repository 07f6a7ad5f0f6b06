"""The seeds: a small valid input of every kind.

    python -m fuzz.corpus              # writes them anew, into fuzz/corpus/KIND/

They are committed, so that an input is the same wherever it is made. What elute does not write
itself (LeRobot v2.1, videos) is built as for the tests.
"""

import shutil
import sys
from pathlib import Path

import numpy as np

from elute.demos.files import save
from elute.demos.formats import FORMATS, format_module
from elute.episodes import Episodes
from elute.learners.actor import Design
from elute.learners.bc import BC
from elute.policy import save_policy
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

CORPUS = Path(__file__).parent / "corpus"
TESTS = Path(__file__).parents[1] / "tests"


def demos(lengths: tuple[int, ...] = (3, 2, 4)) -> Demonstrations:
    """A few rows of every array there is."""
    rng, n = np.random.default_rng(0), sum(lengths)
    observations = rng.normal(size=(n, 4))
    return Demonstrations(
        observations=observations,
        actions=rng.normal(size=(n, 2)),
        rewards=rng.normal(size=n),
        next_observations=observations + 0.1,
        extras={"clean_actions": rng.normal(size=(n, 2))},
        episodes=Episodes.of(lengths, terminated=[True, False, True]),
    )


def write() -> None:
    """All seeds."""
    shutil.rmtree(CORPUS, ignore_errors=True)
    rows = demos()
    for name in FORMATS:
        folder = CORPUS / name
        folder.mkdir(parents=True)
        save(rows, folder / f"demos-v0{format_module(name).SUFFIXES[0]}", format=name)
    write_lerobot(CORPUS / "lerobot")
    (CORPUS / "policy").mkdir()
    learner = BC(updates=1, hold_out=0.0, actor=Design(hidden=(5,)))
    policy = learner.fit(DemoSet(rows, rows), Seeds(0)("bc"))
    save_policy(policy, CORPUS / "policy" / "seed-0.safetensors")


def write_lerobot(folder: Path) -> None:
    """Data sets by others: of yesterday, and of today with a video."""
    sys.path.insert(0, str(TESTS))
    from lerobot_folders import v21, v30  # type: ignore[import-not-found]  # noqa: PLC0415

    v21(folder / "others-v21", lengths=(2, 1))
    v30(folder / "others-v30", lengths=(2, 1), video=b"video")


def seeds() -> list[tuple[str, Path]]:
    """Kind and path of each."""
    return [
        (folder.name, path)
        for folder in sorted(CORPUS.iterdir())
        for path in sorted(folder.iterdir())
    ]


if __name__ == "__main__":
    write()
