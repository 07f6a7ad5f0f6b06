"""Experiments as TOML: what is run, said once.

    name = "table1"
    tasks = ["ant", "hopper"]
    demos = ["action-noise/heavy", "checkpoint/early"]
    regimes = ["episode"]
    methods = ["bc-opt", "bc-all", "dp-bc"]
    seeds = 5

Every combination is a run. A method may be `PURIFIER-LEARNER`: `dp-bc`, `median-bc`, `wiener-dwbc`.
`demonstrations` learns nothing: it scores the recorded episodes. `steps` is how long methods play
that learn online. `[settings.METHOD]` sets hyper-parameters of its learner. Unknown keys are
errors. What does not fit into one product is added to it, said by the keys in which it differs:

    [[also]]
    methods = ["dp-bc"]
    target = "joint"
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from elute.collect.catalogue import NAMES, TENS
from elute.envs.task import find_task
from elute.errors import EluteError
from elute.experiment.methods import METHODS, Method, find_method
from elute.experiment.purifiers import (
    STEPPED,
    PurifierOptions,
    check_purifier,
    make_purifier,
)
from elute.experiment.settings import with_settings
from elute.learners.adversarial import OnlineMethod

Regime = Literal["paper", "spread", "episode", "episodes", "whole", "expert"]
"""paper: the first 50 optimal and 500 other rows. spread: 50 optimal rows drawn at random. episode:
one optimal episode and 1000 other rows. episodes: another episode and other rows for each seed.
whole: all rows. expert: 5000 optimal rows, no others."""
Starts = Literal["stock", "demonstrations"]
"""Where episodes of an evaluation begin: wherever the task has them begin, or, nine of ten, in the
first state of one of the robot's ten demonstrations."""
PREFIXES = {
    "dp": "diffusion",
    **{name: name for name in ("wiener", "gaussian", "mean", "median", "nearest", "relabel")},
}
"""Of methods that purify first."""
DEMONSTRATIONS = "demonstrations"
"""The method that is none: the recorded returns."""


@dataclass(frozen=True, kw_only=True)
class Data:
    """Files instead of the catalogue; paths within a folder that is given when it is run."""

    optimal: str
    demos: Mapping[str, str]
    """File of each set of demonstrations."""
    realign: int = 0
    """By how many steps the optimal file is shifted."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """All of a grid."""

    name: str
    tasks: tuple[str, ...]
    demos: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: int = 5
    first_seed: int = 0
    regimes: tuple[Regime, ...] = ("episode",)
    optimal_rows: tuple[int, ...] = (0,)
    """How many there are; 0: as many as the regime has."""
    episodes: int = 10
    preset: str = "default"
    """Of the learners."""
    purifier_preset: str = "default"
    target: str = ""
    reverse_steps: tuple[int | Literal["auto"], ...] = ("auto",)
    """Of the diffusion purifier."""
    steps: int | None = None
    """Of the environment, for methods that play it."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of learners, by the method's name."""
    starts: Starts = "stock"
    data: Data | None = None
    also: tuple["Experiment", ...] = ()
    """The same with other keys: grids that are run as part of this one."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One cell of a grid and one seed: all that its numbers depend on, but the data itself."""

    task: str
    demos: str
    method: str
    regime: Regime
    seed: int
    episodes: int
    preset: str
    purifier: PurifierOptions | None
    settings: Mapping[str, Any]
    max_step: int = 0
    """How far up the purifier is trained at least, so that steps of a sweep share one."""
    starts: Starts = "stock"
    optimal_rows: int = 0
    """0: as many as the regime has."""

    @property
    def name(self) -> str:
        """For people."""
        options = self.purifier or PurifierOptions()
        stepped = self.purifier is not None and options.method in STEPPED
        words = (
            *(self.task, self.demos, self.regime),
            f"{self.optimal_rows} rows" if self.optimal_rows else "",
            self.method + (f"@{options.reverse_step}" if stepped else ""),
            options.target,
            "" if options.preset == "default" else f"purifier {options.preset}",
            "" if self.preset == "default" else f"preset {self.preset}",
            f"seed {self.seed}",
        )
        return " ".join(filter(None, words))

    @property
    def auto(self) -> bool:
        """Whether the reverse step is chosen."""
        options = self.purifier
        return options is not None and (options.method, options.preset, options.reverse_step) == (
            "diffusion",
            "default",
            "auto",
        )

    def to_json(self) -> dict[str, Any]:
        """All of it, for a line of results."""
        return asdict(replace(self, purifier=None)) | {
            "purifier": None if self.purifier is None else self.purifier.to_json()
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Run":
        """What `to_json` wrote."""
        options = given["purifier"]
        return cls(**{**given, "purifier": None if options is None else PurifierOptions(**options)})

    @property
    def learns(self) -> bool:
        """Whether there is a policy to learn."""
        return self.method != DEMONSTRATIONS

    def learner(self) -> Method:
        """As the method's name and the settings say."""
        _, learner = split_method(self.method)
        return with_settings(find_method(learner, self.preset), self.settings)


def load_experiment(path: Path, overrides: Mapping[str, Any]) -> Experiment:
    """Read, check, and overrule by `a.b` = value.

    Raises:
        EluteError: no such file, no TOML, an unknown key, or a value that cannot be.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise EluteError(f"{path}: no such file") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise EluteError(f"{path}: {error}") from error
    for key, value in overrides.items():
        _put(table, key, value)
    more = table.pop("also", [])
    if not isinstance(more, list) or not all(isinstance(keys, dict) for keys in more):
        raise EluteError(
            f"{path}: also: expected tables",
            hint="""[[also]] begins one; or --set 'also=[{"seeds": 3}]'""",
        )
    first = _experiment(table, str(path))
    return replace(first, also=tuple(_added(table, keys, f"{path}, also") for keys in more))


def _experiment(table: Mapping[str, Any], where: str) -> Experiment:
    _check_keys(table, Experiment, where)
    if isinstance(table.get("data"), dict):
        _check_keys(table["data"], Data, f"{where}, data")
    try:
        experiment = TypeAdapter(Experiment).validate_python(table)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(str(part) for part in first["loc"])
        raise EluteError(f"{where}: {at}: {first['msg']}") from error
    _check(experiment)
    return experiment


def _added(table: Mapping[str, Any], keys: Mapping[str, Any], where: str) -> Experiment:
    """The experiment with other keys; its settings are those of methods that are left."""
    for key in set(keys) & {"name", "data", "also"}:
        raise EluteError(f"{where}: {key} is one for the whole experiment")
    both = {**table, **keys}
    if "settings" not in keys:
        settings, left = both.get("settings", {}), both.get("methods", ())
        both["settings"] = {name: values for name, values in settings.items() if name in left}
    return _experiment(both, where)


def _put(table: dict[str, Any], key: str, value: object) -> None:
    *outer, last = key.split(".")
    for name in outer:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise EluteError(f"--set {key}: there is nothing to set inside {name}")
    table[last] = value


def _check_keys(table: Mapping[str, Any], kind: type, where: str) -> None:
    known = [f.name for f in fields(kind)]
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise EluteError(f"{where}: unknown key {key!r}", hint=hint)


def _check(experiment: Experiment) -> None:
    """What would fail in the middle of a grid fails before it."""
    for task in experiment.tasks:
        find_task(task)
        for demos in experiment.demos if experiment.data is None else ():
            check_named(f"{task}/{demos}", experiment.starts)
    if experiment.data is not None and set(experiment.demos) - set(experiment.data.demos):
        missing = ", ".join(sorted(set(experiment.demos) - set(experiment.data.demos)))
        raise EluteError(f"no file is named for {missing}", hint="[data.demos] names them")
    if experiment.data is not None and experiment.starts != "stock":
        raise EluteError("starts = 'demonstrations' is for the catalogue's, not for files")
    _check_sizes(experiment)
    for name in experiment.methods:
        _check_method(name)
    for run in _product(experiment):
        if run.learns:
            run.learner()
        if run.purifier is not None:
            check_purifier(run.purifier)
            make_purifier(run.purifier)
    _check_methods(experiment)


def _check_sizes(experiment: Experiment) -> None:
    if experiment.seeds < 1 or experiment.episodes < 1 or experiment.first_seed < 0:
        raise EluteError("expected at least one seed, from 0 on, and one episode")
    for key in ("tasks", "demos", "methods", "regimes", "optimal_rows", "reverse_steps"):
        if not getattr(experiment, key):
            raise EluteError(f"{key} is empty, so there is nothing to run")
    if min(experiment.optimal_rows) < 0:
        raise EluteError(f"{min(experiment.optimal_rows)} optimal rows cannot be")
    if not re.fullmatch(r"(?!\.)[\w.-]+(/(?!\.)[\w.-]+)*", experiment.name):
        raise EluteError(
            f"name {experiment.name!r}: expected letters, digits, - and _, folders before /",
            hint="it names the file of results; -o puts it elsewhere",
        )


def _check_methods(experiment: Experiment) -> None:
    for name in set(experiment.settings) - set(experiment.methods):
        raise EluteError(f"settings of {name}, which is not among the methods")
    if experiment.steps is not None and not any(map(is_online, experiment.methods)):
        raise EluteError("steps: none of the methods plays a task", hint="leave it out")
    if experiment.purifier_preset == "default":
        return
    if not any(split_method(name)[0] == "diffusion" for name in experiment.methods):
        raise EluteError("purifier_preset: no method is dp-LEARNER", hint="leave it out")
    if "auto" in experiment.reverse_steps:
        raise EluteError(
            f"the preset {experiment.purifier_preset} does not choose its reverse step",
            hint="give reverse_steps, as [10]",
        )


def _check_method(name: str) -> None:
    if name != DEMONSTRATIONS and split_method(name)[1] not in METHODS:
        known = [*METHODS, "bc-all", *(f"{prefix}-bc" for prefix in PREFIXES), DEMONSTRATIONS]
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise EluteError(f"{name!r} is no method", hint=hint)


def check_named(name: str, starts: Starts) -> None:
    """Refuse what is not in the catalogue, or has no starts of its own."""
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        raise EluteError(
            f"{name!r} is not in the catalogue", hint=f"did you mean {near[0]}?" if near else ""
        )
    if starts == "demonstrations" and name not in TENS:
        raise EluteError(f"{name}: starts = 'demonstrations' is for sawyer-reach alone")


def split_method(name: str) -> tuple[str | None, str]:
    """The purifier's name, if there is one, and the learner's."""
    prefix, _, rest = name.partition("-")
    if prefix in PREFIXES and rest:
        return PREFIXES[prefix], rest
    return None, "bc" if name == "bc-all" else name


def is_online(method: str) -> bool:
    """Whether it plays the task while it learns."""
    presets = METHODS.get(split_method(method)[1], {})
    return any(isinstance(make(), OnlineMethod) for make in presets.values())


def runs(experiment: Experiment) -> list[Run]:
    """All of them, seed after seed, so that a stopped grid is even; none twice."""
    parts = [_product(part) for part in (experiment, *experiment.also)]
    made = sorted((run for part in parts for run in part), key=lambda run: run.seed)
    return list({json.dumps(run.to_json(), sort_keys=True): run for run in made}.values())


def _product(experiment: Experiment) -> list[Run]:
    """Tasks take turns, so that neighbours share no stage and two workers do not wait."""
    seeds = range(experiment.first_seed, experiment.first_seed + experiment.seeds)
    highest = max([step for step in experiment.reverse_steps if step != "auto"], default=0)
    rows = product(experiment.regimes, experiment.optimal_rows)
    sets = list(product(experiment.demos, experiment.tasks))
    made = []
    for seed, (regime, n), method in product(seeds, rows, experiment.methods):
        for options, (demos, task) in product(_purifiers(experiment, method), sets):
            fixed = options is not None and options.reverse_step != "auto"
            run = Run(
                task=task,
                demos=demos,
                method=method,
                regime=regime,
                seed=seed,
                episodes=experiment.episodes,
                preset=experiment.preset,
                purifier=options,
                settings=_settings(experiment, method),
                max_step=highest if fixed else 0,
                starts=experiment.starts,
                optimal_rows=n,
            )
            made.append(run)
    return made


def _settings(experiment: Experiment, method: str) -> Mapping[str, Any]:
    given = experiment.settings.get(method, {})
    if experiment.steps is None or not is_online(method):
        return given
    return {"loop.env_steps": experiment.steps, **given}


def _purifiers(experiment: Experiment, method: str) -> list[PurifierOptions | None]:
    purifier, _ = split_method(method)
    if purifier is None:
        return [None]
    if purifier != "diffusion":
        return [PurifierOptions(method=purifier)]
    options = PurifierOptions(target=experiment.target, preset=experiment.purifier_preset)
    return [replace(options, reverse_step=str(step)) for step in experiment.reverse_steps]
