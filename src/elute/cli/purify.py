"""`elute purify`: fit a purifier on the good demonstrations and clean the others."""

from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from rich.table import Table

from elute.cli.demos import named, parse_bounds
from elute.cli.show import out, print_json, progress, say, say_losses
from elute.demos.audit.alignment import alignment_findings
from elute.demos.audit.audit import audit
from elute.demos.audit.finding import Finding
from elute.demos.audit.sample import SAMPLE_ROWS, take_sample
from elute.demos.audit.summary import Bounds
from elute.demos.files import open_demos, save, split_spec
from elute.demos.output import check_output
from elute.diffusion.ddpm import OtherTrainingError
from elute.episodes import Array
from elute.errors import EluteError
from elute.purify.artefact import load_transform, save_transform
from elute.purify.clip import ClippedTransform, action_bounds
from elute.purify.controls import NearestPurifier, RelabelPurifier
from elute.purify.diffusion import DiffusionPurifier, DiffusionTransform
from elute.purify.filters import FilterPurifier, FilterTransform
from elute.purify.identity import IdentityPurifier
from elute.purify.normaliser import Normaliser
from elute.purify.purifier import Purifier, Target, Transform
from elute.purify.select import (
    FOLDS,
    MOST_ROWS,
    Choice,
    at_most,
    choose_reverse_step,
    sample_rows,
)
from elute.purify.wiener import WienerPurifier, WienerTransform
from elute.report.before_after import SERIES_ROWS, BeforeAfter, check_figure, draw_before_after
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet, DemoSource

if TYPE_CHECKING:
    from elute.cli.main import PurifyOptions

MOVED = "moved"
"""Extra column: how far each pair moved, in standard deviations per column."""
TARGETS: tuple[Target, ...] = ("joint", "action", "inpaint")
FILTERS = ("gaussian", "mean", "median")
METHODS = ("diffusion", "wiener", *FILTERS, "nearest", "relabel", "identity")
MOST_FINDINGS = 3
"""Of the audit that are said; the audit itself says them all."""


def run(noisy: str, output: Path, options: "PurifyOptions") -> None:
    """Purify a file and say what was done."""
    import torch

    torch.set_num_threads(1)
    noisy, options = named(noisy), replace(options, optimal=named(options.optimal))
    limits = _check(noisy, output, options)
    seeds = Seeds(options.seed)
    source = _first(noisy, options.rows)
    good = _first(options.optimal, options.optimal_rows)
    optimal = good.rows(0, good.episodes.n_rows)
    sample = at_most(source, MOST_ROWS, seeds)
    demos = DemoSet(optimal=optimal, supplementary=sample)
    _say_findings(noisy, source, optimal, options)
    fitted, choice = _fitted(demos, seeds, options, output)
    if options.save_model is not None and isinstance(fitted, DiffusionTransform):
        save_transform(fitted, options.save_model)
    transform = _clipped(fitted, demos, limits) if options.clip else fitted
    normaliser = Normaliser.fit(np.concatenate([optimal.pairs, sample.pairs]).astype(np.float64))
    chosen = sample_rows(source.episodes.n_rows, MOST_ROWS, seeds)
    purification = Purification(transform, normaliser.scale, chosen, options.seed)
    in_one_batch = isinstance(fitted, DiffusionTransform) and fitted.purifier.batch_statistics
    with progress("purifying") as update:
        losses = save(
            purification(0, source.rows(0, source.episodes.n_rows)) if in_one_batch else source,
            output,
            format=options.to,
            transform=None if in_one_batch else purification,
            strict=options.strict,
            progress=update,
        )
    _checkpoint(output).unlink(missing_ok=True)
    say_losses(losses)
    pairs, moved = purification.sample()
    distances = [_distances(optimal.pairs, rows, normaliser) for rows in (sample.pairs, pairs)]
    report = _settings(fitted, choice, options) | {
        "rows": source.episodes.n_rows,
        "optimal_rows": len(optimal),
        "moved": purification.mean_move(source),
        "distance": {"before": float(distances[0].mean()), "after": float(distances[1].mean())},
    }
    if options.as_json:
        print_json(report)
    else:
        _show(report)
    say(f"wrote {output}")
    if options.figure is not None:
        n = min(SERIES_ROWS, source.episodes.n_rows)
        shown = BeforeAfter(
            title=_title(report, source),
            before=source.rows(0, n),
            after=open_demos(str(output)).rows(0, n),
            optimal=optimal,
            scale=normaliser.scale,
            moved=moved,
            distances=(distances[0], distances[1]),
        )
        draw_before_after(shown, options.figure)
        say(f"wrote {options.figure}")


class Purification:
    """Purifies a file chunk by chunk, and remembers what is said about it afterwards."""

    def __init__(self, transform: Transform, scale: Array, chosen: Array, seed: int) -> None:
        self.transform, self.scale, self.chosen, self.seed = transform, scale, chosen, seed
        # by first row, because a writer may ask for the same rows twice
        self.totals: dict[int, Array] = {}
        self.kept: dict[int, tuple[Array, Array]] = {}

    def __call__(self, start: int, rows: Demonstrations) -> Demonstrations:
        """These rows, purified, with how far each moved."""
        cleaned = self.transform(rows, first_row=start, seed=self.seed)
        away = cleaned.pairs - rows.pairs
        moved = np.sqrt(((away / self.scale) ** 2).mean(axis=1))
        inside = (self.chosen >= start) & (self.chosen < start + len(rows))
        kept = self.chosen[inside] - start
        self.totals[start] = np.abs(away).sum(axis=0)
        self.kept[start] = cleaned.pairs[kept], moved[kept]
        return cleaned.with_extra(MOVED, moved)

    def sample(self) -> tuple[Array, Array]:
        """Of the chosen rows: the purified pairs, and how far they moved."""
        pairs, moved = zip(*(self.kept[start] for start in sorted(self.kept)), strict=True)
        return np.concatenate(pairs), np.concatenate(moved)

    def mean_move(self, source: DemoSource) -> dict[str, float]:
        """Of every column, over all rows."""
        columns = (*source.observation_columns, *source.action_columns)
        mean = np.sum(list(self.totals.values()), axis=0) / source.episodes.n_rows
        return {column.name: float(m) for column, m in zip(columns, mean, strict=True)}


def _check(noisy: str, output: Path, options: "PurifyOptions") -> Bounds | None:
    """Refuse what cannot end well, before any work is done; the bounds that were given."""
    inputs = [split_spec(given)[0] for given in (noisy, options.optimal)]
    inputs += [options.model] if options.model is not None else []
    outputs = [path for path in (output, options.save_model, options.figure) if path is not None]
    for path in outputs:
        if sum(path.resolve() == other.resolve() for other in outputs) > 1:
            raise EluteError(f"{path}: stands for two outputs", hint="give each its own path")
    check_output(output, inputs)
    if options.figure is not None:
        check_figure(options.figure, inputs)
    if options.save_model is not None:
        check_output(options.save_model, inputs)
        if options.method != "diffusion":
            raise EluteError(f"--save-model: {options.method} has no model to save")
    _check_method(options)
    if options.model is not None:
        _check_reuse(options)
    if options.bounds and not options.clip:
        raise EluteError("--bounds goes with --clip")
    return parse_bounds(options.bounds) if options.bounds else None


def _check_method(options: "PurifyOptions") -> None:
    """A flag that would change nothing is a mistake."""
    method = options.method
    takes_step = method in ("diffusion", "wiener")
    targets = TARGETS if takes_step else ("joint", "action") if method in FILTERS else ()
    ignored = [
        *(["--preset"] if method != "diffusion" and options.preset != "default" else []),
        *(["--reverse-step"] if not takes_step and options.reverse_step != "auto" else []),
        *(["--target"] if options.target in TARGETS and options.target not in targets else []),
    ]
    if method in METHODS and ignored:
        can = f"; targets of {method} are {', '.join(targets)}" if targets else ""
        raise EluteError(f"{' and '.join(ignored)}: not for --method {method}{can}")


def _check_reuse(options: "PurifyOptions") -> None:
    """A model brings its own settings."""
    for name, default in (("method", "diffusion"), ("preset", "default")):
        given = getattr(options, name)
        if given != default:
            raise EluteError(
                f"--{name} {given} does not go with --model: the model is trained already",
                hint="leave out one of them; --target and --reverse-step may be given",
            )


def _clipped(fitted: Transform, demos: DemoSet, limits: Bounds | None) -> Transform:
    bounds, said_by = (limits, "--bounds") if limits is not None else action_bounds(demos)
    low, high = float(bounds.low.min()), float(bounds.high.max())
    say(f"actions are clipped to {low:.4g}..{high:.4g} ({said_by})")
    return ClippedTransform(fitted, bounds)


def _first(spec: str, rows: int | None) -> DemoSource:
    """A file, or only its first rows, which alone are read."""
    source = open_demos(spec)
    return source if rows is None else source.rows(0, min(rows, source.episodes.n_rows))


def _say_findings(
    noisy: str, source: DemoSource, optimal: Demonstrations, options: "PurifyOptions"
) -> None:
    """The gravest findings of the audit, in a few lines."""
    found = _findings(noisy, source, optimal, options)
    for finding in found[:MOST_FINDINGS]:
        mend = f"; elute demos audit {quote(finding.file)} --fix OUT mends it"
        say(f"warning: {finding.file}: {finding.message}{mend if finding.repair else ''}")
    if found:
        more = len(found) - MOST_FINDINGS
        rest = f"{more} more; " if more > 0 else ""
        command = f"elute demos audit {quote(noisy)} --optimal {quote(options.optimal)}"
        say(f"warning: {rest}{command} says what to do")


def _findings(
    noisy: str, source: DemoSource, optimal: Demonstrations, options: "PurifyOptions"
) -> list[Finding]:
    """Errors and warnings about the rows in use, and whether the whole files are misaligned."""
    audited = audit(_glance(source), optimal=_glance(optimal))
    found = [finding for finding in audited.findings if finding.severity != "note"]
    for spec, rows, about_optimal in (
        (noisy, options.rows, False),
        (options.optimal, options.optimal_rows, True),
    ):
        known = any(f.code == "misaligned" and f.about_optimal == about_optimal for f in found)
        if rows is not None and not known:  # so few may be too few to see it
            whole = alignment_findings(take_sample(open_demos(spec)), None)
            found = [*(replace(f, file=spec) for f in whole if f.code == "misaligned"), *found]
    return found


def _glance(source: DemoSource) -> DemoSource:
    """A source of bounded size: itself, or blocks of rows spread over it."""
    if source.episodes.n_rows <= SAMPLE_ROWS:
        return source
    joined = reduce(add, take_sample(source).runs)
    return replace(joined, provenance=source.provenance)


def _fitted(
    demos: DemoSet, seeds: Seeds, options: "PurifyOptions", output: Path
) -> tuple[Transform, Choice | None]:
    """A fitted purifier, and how its reverse step was chosen; an interrupted training goes on."""
    if options.model is not None:
        loaded = load_transform(options.model)
        step, target = _step(options.reverse_step), _target(options.target)
        aimed = replace(loaded.purifier, target=target or loaded.purifier.target)
        loaded = replace(loaded, purifier=aimed)
        return (loaded if step is None else loaded.at(step)), None
    purifier = _purifier(options)
    if not isinstance(purifier, DiffusionPurifier):
        return purifier.fit(demos, seeds), None
    choice = None
    if options.preset == "default":
        step = _step(options.reverse_step)
        if step is None or len(demos.optimal) >= 2 * FOLDS:
            with progress("choosing the reverse step") as update:
                choice = choose_reverse_step(
                    purifier,
                    demos,
                    seeds,
                    progress=update,
                    **({} if step is None else {"candidates": (0, step) if step else (0,)}),
                )
        if step is None and choice is not None:
            step = choice.reverse_step
        purifier = replace(purifier, reverse_step=step or 0)
    return _trained(purifier, demos, seeds, _checkpoint(output)), choice


def _checkpoint(output: Path) -> Path:
    """Where the training is put down until the output is written."""
    return output.with_name(f".{output.name}.training")


def _trained(
    purifier: DiffusionPurifier, demos: DemoSet, seeds: Seeds, checkpoint: Path
) -> DiffusionTransform:
    if checkpoint.exists():
        say(f"going on with the training in {checkpoint}; delete it to begin anew")
    with progress("training") as update:
        try:
            return purifier.fit(demos, seeds, progress=update, checkpoint=checkpoint)
        except OtherTrainingError:
            say(f"{checkpoint} is of another training; beginning anew")
            checkpoint.unlink()
            return purifier.fit(demos, seeds, progress=update, checkpoint=checkpoint)


def _purifier(options: "PurifyOptions") -> Purifier:
    step, target = _step(options.reverse_step), _target(options.target)
    if options.method == "diffusion":
        if options.preset == "default":
            return DiffusionPurifier(target=target or "inpaint")
        made = {"paper": DiffusionPurifier.paper, "reference": DiffusionPurifier.reference}
        if options.preset not in made:
            raise EluteError(f"{options.preset!r} is no preset", hint="default, paper, reference")
        preset = made[options.preset](10 if step is None else step)
        return replace(preset, target=target or preset.target)
    if options.method in FILTERS:
        smoothed: Literal["joint", "action"] = "joint" if target == "joint" else "action"
        kind = cast("Literal['gaussian', 'mean', 'median']", options.method)
        return FilterPurifier(kind=kind, target=smoothed)
    wiener = WienerPurifier()
    others: dict[str, Purifier] = {
        "wiener": replace(
            wiener,
            reverse_step=wiener.reverse_step if step is None else step,
            target=target or wiener.target,
        ),
        "nearest": NearestPurifier(),
        "relabel": RelabelPurifier(),
        "identity": IdentityPurifier(),
    }
    if options.method not in others:
        raise EluteError(f"{options.method!r} is no method", hint="there are " + ", ".join(METHODS))
    return others[options.method]


def _step(text: str) -> int | None:
    """A reverse step; none for "auto"."""
    if text == "auto":
        return None
    if not text.isdecimal():
        raise EluteError(f"--reverse-step {text}: expected auto or a number from 0 to 1000")
    return int(text)


def _target(text: str) -> Target | None:
    if not text:
        return None
    for target in TARGETS:
        if target == text:
            return target
    raise EluteError(f"{text!r} is no target", hint="there are " + ", ".join(TARGETS))


def _settings(fitted: Transform, choice: Choice | None, options: "PurifyOptions") -> dict[str, Any]:
    """What was done, and why at this step."""
    steps = fitted.purifier if isinstance(fitted, DiffusionTransform | WienerTransform) else None
    step = None if steps is None else steps.reverse_step
    aimed = fitted.purifier if isinstance(fitted, FilterTransform) else steps
    relabels = "action" if options.method in ("nearest", "relabel") else None
    errors = dict(choice.errors) if choice is not None else {}
    if options.reverse_step != "auto":
        why = "given"
    elif choice is not None:
        why = "recovers spoilt optimal actions best"
    else:
        why = "the model's own" if options.model is not None else "the default of this method"
    return {
        "method": options.method,
        "reverse_step": step,
        "reverse_step_why": None if steps is None else why,
        "target": relabels if aimed is None else aimed.target,
        "seed": options.seed,
        "heldout_error": {"before": errors.get(0), "after": errors.get(step or 0)},
        "candidates": {str(k): v for k, v in errors.items()},
    }


def _distances(optimal: Array, others: Array, normaliser: Normaliser) -> Array:
    """Of each pair to the nearest optimal pair, in standard deviations per column."""
    from scipy.spatial import cKDTree

    width = np.sqrt(max(1, int(normaliser.varies.sum())))
    near, _ = cKDTree(normaliser.apply(optimal)).query(normaliser.apply(others))
    distances: Array = near / width
    return distances


def _title(report: dict[str, Any], source: DemoSource) -> str:
    name = Path(source.provenance.source).name
    step, target = report["reverse_step"], report["target"]
    how = f", reverse step {step}, target {target}" if step is not None else ""
    return f"{name}, purified: {report['rows']} rows, {report['method']}{how}"


def _show(report: dict[str, Any]) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_row("method", f"{report['method']}, target {report['target'] or '-'}")
    table.add_row("rows", f"{report['rows']}, with {report['optimal_rows']} optimal ones")
    if report["reverse_step"] is not None:
        step, why = report["reverse_step"], report["reverse_step_why"]
        nothing = "; nothing is purified" if step == 0 else ""
        table.add_row("reverse step", f"{step} ({why}{nothing})")
    errors, distance = report["heldout_error"], report["distance"]
    if errors["before"] is not None:
        table.add_row("held-out action error", f"{errors['before']:.4g} -> {errors['after']:.4g}")
    table.add_row("distance to optimal", f"{distance['before']:.4g} -> {distance['after']:.4g}")
    moved = {name: value for name, value in report["moved"].items() if value > 0}
    largest = sorted(moved, key=lambda name: -moved[name])[:6]
    table.add_row("moved most", ", ".join(f"{name} {moved[name]:.3g}" for name in largest) or "-")
    out.print(table, markup=False)
