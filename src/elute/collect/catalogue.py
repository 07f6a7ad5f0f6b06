"""Named demonstrations, made on first use from the shipped experts and kept in a cache.

    load(fetch("halfcheetah/action-noise/heavy"))

    TASK/expert                                        the expert's mean action
    TASK/action-noise/{light,medium,heavy}             mean action + normal noise of .25, .4, .6
    TASK/uniform-noise/{light,medium,heavy}            uniform noise of the same deviations
    TASK/salt-pepper/{light,medium,heavy}              grains with probability .25, .4, .6
    TASK/checkpoint/{early,middle,late}                policy after 1, 1.5, 3 M steps, sampled
    TASK/action-noise/mixed                            rows of the three action-noise sets, shuffled
    sawyer-reach/operator                              ten of the scripted operator, synthetic
    sawyer-reach/roboturk                              the ten human ones, where their files are
    .../optimal, supplementary, l1, l2                 the best two, the others, halves of those

A file's name is a digest of all that made it (policy, settings, versions of the simulator) and of
how numpy rounds here; the digest of its content lies beside it and is checked each time.
"""

import hashlib
import itertools
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from elute.collect import operator, roboturk
from elute.collect.record import record
from elute.collect.shipped import CHECKPOINTS, EXPERTS, shipped_path
from elute.demos.files import load, save
from elute.demos.output import output
from elute.envs.task import SAWYER_REACH, TASKS, find_task
from elute.episodes import Piece
from elute.errors import EluteError
from elute.noise import ActionNoise, Kind
from elute.policy import GaussianPolicy, load_policy
from elute.rng import Seeds
from elute.types import Demonstrations

ROWS = 5000
"""Of each entry, and then to the end of the episode."""
MIXED_ROWS = 1000
"""Taken from each level for the mixed set."""
SEED = 0
NUMBERS = 1
"""Raised whenever the code above makes other data of the same settings."""
LEVELS = {"light": 0.25, "medium": 0.4, "heavy": 0.6}
NOISES: dict[str, Kind] = {
    "action-noise": "gaussian",
    "uniform-noise": "uniform",
    "salt-pepper": "salt-pepper",
}
Say = Callable[[str], None]


@dataclass(frozen=True)
class Recipe:
    """How an entry is made; a mixed one is made of others."""

    task: str
    policy: str
    noise: ActionNoise
    parts: tuple[str, ...] = ()


def _recipes() -> dict[str, Recipe]:
    made = {}
    for task in EXPERTS:
        made[f"{task}/expert"] = Recipe(task, "best", ActionNoise())
        for family, kind in NOISES.items():
            for name, level in LEVELS.items():
                made[f"{task}/{family}/{name}"] = Recipe(task, "best", ActionNoise(kind, level))
        for name, mark in zip(("early", "middle", "late"), CHECKPOINTS, strict=True):
            made[f"{task}/checkpoint/{name}"] = Recipe(task, mark, ActionNoise("sample"))
        levels = tuple(f"{task}/action-noise/{name}" for name in LEVELS)
        made[f"{task}/action-noise/mixed"] = Recipe(task, "best", ActionNoise(), levels)
    return made


@dataclass(frozen=True)
class Ten:
    """Robot demonstrations: the paper's ten, human or synthetic, or a set of them."""

    human: bool
    part: str = ""

    @property
    def sources(self) -> list[Path]:
        """The files they come from."""
        if self.human:
            return list(roboturk.paths(roboturk.roboturk_folder()).values())
        return [operator.SHIPPED]

    def load(self) -> Demonstrations:
        """Those of the set, in the paper's order."""
        if self.human:
            demos = roboturk.read_roboturk(roboturk.roboturk_folder())
        else:
            demos = load(operator.SHIPPED)
        return demos.select(roboturk.members(self.part)) if self.part else demos


def _tens() -> dict[str, Ten]:
    made = {}
    for name, human in (("operator", False), ("roboturk", True)):
        made[f"{SAWYER_REACH}/{name}"] = Ten(human)
        for part in roboturk.SETS:
            made[f"{SAWYER_REACH}/{name}/{part}"] = Ten(human, part)
    return made


RECIPES = _recipes()
TENS = _tens()
NAMES = (*RECIPES, *TENS)


def optimal_beside(name: str) -> str:
    """The entry that is D_o where this one is D_s."""
    task, source, *_ = name.split("/")
    return f"{task}/{source}/optimal" if name in TENS else f"{task}/expert"


def ten_of(name: str) -> str:
    """All ten robot demonstrations that a set of them is of."""
    return "/".join(name.split("/")[:2])


def is_named(text: str) -> bool:
    """Whether this looks like an entry's name rather than a path."""
    return text.partition("/")[0] in TASKS and not Path(text).exists()


def fetch(name: str, *, say: Say = lambda text: None) -> Path:
    """The file of an entry, made if it is not there.

    Raises:
        EluteError: no such entry, or a cache that cannot be written.
    """
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
        raise EluteError(f"{name!r} is not in the catalogue", hint=hint)
    path = cache() / f"{name.replace('/', '-')}-{digest(name)[:16]}-{rounding()}.npz"
    if path.exists() and _intact(path):
        return path
    if path.exists():
        say(f"{path} has changed since it was made; making it again")
    demos = make(name, say=say)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EluteError(
            f"{path.parent} cannot be made: {error.strerror}",
            hint="set ELUTE_CACHE to a folder that can be written",
        ) from error
    save(demos, path)
    with output(_checksum(path)) as temporary:
        temporary.write_text(_sha256(path))
    say(f"made {name}: {len(demos)} rows, kept in {path}")
    return path


def make(name: str, *, say: Say = lambda text: None) -> Demonstrations:
    """The demonstrations of an entry, made anew."""
    if name in TENS:
        return TENS[name].load()
    recipe = RECIPES[name]
    if recipe.parts:
        return _mixed([load(fetch(part, say=say)) for part in recipe.parts])
    return record(
        load_policy(shipped_path(recipe.task, recipe.policy)),
        find_task(recipe.task),
        noise=recipe.noise,
        rows=ROWS,
        seed=SEED,
    )


def _mixed(levels: list[Demonstrations]) -> Demonstrations:
    """The first rows of each level, all shuffled; a row is an episode of its own."""
    first, *others = (level.first(MIXED_ROWS) for level in levels)
    together = first
    for level in others:
        together = together + level
    order = Seeds(SEED)("mixed").permutation(len(together))
    return together.take([Piece(int(row), 1) for row in order])


def digest(name: str) -> str:
    """Of all that the entry is made of."""
    facts = _ten_facts(name) if name in TENS else _recipe_facts(name)
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _ten_facts(name: str) -> dict[str, Any]:
    files = [_sha256(path) for path in TENS[name].sources]
    return {"name": name, "numbers": NUMBERS, "files": files}


def _recipe_facts(name: str) -> dict[str, Any]:
    recipe = RECIPES[name]
    return {
        "name": name,
        "numbers": NUMBERS,
        "rows": ROWS,
        "noise": str(recipe.noise),
        "seed": SEED,
        "task": asdict(replace(find_task(recipe.task), random_score=None, expert_score=None)),
        "policy": _sha256(shipped_path(recipe.task, recipe.policy)),
        "parts": [MIXED_ROWS, *map(digest, recipe.parts)] if recipe.parts else [],
        "versions": _versions(),
    }


@lru_cache(maxsize=1)
def rounding() -> str:
    """What tells apart machines, or environments, whose numpy makes other episodes of one recipe.

    Kernels for other processors add up in another order; a robot that walks is elsewhere soon.
    """
    rng = np.random.default_rng(0)
    widths = (17, 100, 100, 6)  # as large as the experts
    layers = tuple(
        (rng.standard_normal(ends, np.float32) / np.float32(10), np.zeros(ends[1], np.float32))
        for ends in itertools.pairwise(widths)
    )
    ones = np.ones(widths[-1])
    policy = GaussianPolicy(layers, 0 * ones, np.zeros(widths[0]), np.ones(widths[0]), -ones, ones)
    rows = rng.standard_normal((20, widths[0]))
    acted = policy.act(rows[:1]), policy.act(rows)  # one row may take another way than many
    return hashlib.sha256(b"".join(a.tobytes() for a in acted)).hexdigest()[:8]


@lru_cache(maxsize=1)
def _versions() -> list[str]:
    """Asked for thousands of times by a large grid, and slow to find."""
    return [version(package) for package in ("gymnasium", "mujoco", "numpy")]


def cache() -> Path:
    """Where entries are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(os.environ.get("ELUTE_CACHE") or Path(home) / "elute")


def _intact(path: Path) -> bool:
    try:
        return _checksum(path).read_text() == _sha256(path)
    except OSError:
        return False


def _checksum(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
