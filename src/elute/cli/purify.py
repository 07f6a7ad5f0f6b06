"""`elute purify`: fit a purifier on the good demonstrations and clean the others."""

import hashlib
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from rich.table import Table

from elute.cli.arguments import cores, named, open_first
from elute.cli.purifier import check_options, clipped, fit_purifier
from elute.cli.show import out, print_json, progress, say, say_losses
from elute.demos.audit.alignment import alignment_findings
from elute.demos.audit.audit import audit
from elute.demos.audit.finding import Finding
from elute.demos.audit.sample import SAMPLE_ROWS, take_sample
from elute.demos.files import check_losses, guess_format, open_demos, save, split_spec
from elute.demos.formats import format_module
from elute.demos.hdf5 import stamp
from elute.demos.output import check_output
from elute.episodes import Array
from elute.errors import EluteError
from elute.experiment.cluster import ray_library
from elute.experiment.purifiers import PurifierOptions
from elute.experiment.shards import Engine, Work, local, ray
from elute.experiment.stages import digest
from elute.purify.artefact import save_transform
from elute.purify.diffusion import DiffusionTransform
from elute.purify.filters import FilterTransform
from elute.purify.normaliser import Normaliser
from elute.purify.purifier import Transform
from elute.purify.select import MOST_ROWS, Choice, at_most, sample_rows
from elute.purify.shards import MOVED, Purification, Shards, shard_folder
from elute.purify.wiener import WienerTransform
from elute.report.before_after import SERIES_ROWS, BeforeAfter, draw_before_after
from elute.report.figures import check_figure
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet, DemoSource, chunk_bounds

MOST_FINDINGS = 3
"""Of the audit that are said; the audit itself says them all."""
PROBE_ROWS = 16
"""Of the file, purified to see whether shards are of the same work."""


@dataclass(frozen=True, kw_only=True)
class PurifyOptions:
    """What `elute purify` was told, besides its files."""

    optimal: str
    optimal_rows: int | None
    rows: int | None
    purifier: PurifierOptions
    save_model: Path | None
    figure: Path | None
    engine: str
    address: str
    jobs: int | None
    seed: int
    to: str
    strict: bool
    as_json: bool


def run(noisy: str, output: Path, options: PurifyOptions) -> None:
    """Purify a file and say what was done."""
    import torch

    torch.set_num_threads(1)
    noisy, options = named(noisy), replace(options, optimal=named(options.optimal))
    _check(noisy, output, options)
    seeds = Seeds(options.seed)
    source = open_first(noisy, options.rows)
    format_module(options.to or guess_format(output, source.provenance.format))
    good = open_first(options.optimal, options.optimal_rows)
    source = _labelled(source, good)
    optimal = good.rows(0, good.episodes.n_rows)
    sample = at_most(source, MOST_ROWS, seeds)
    demos = DemoSet(optimal=optimal, supplementary=sample)
    _say_findings(noisy, source, optimal, options)
    fitted, choice = fit_purifier(options.purifier, demos, seeds, _checkpoint(output))
    if options.save_model is not None and isinstance(fitted, DiffusionTransform):
        save_transform(fitted, options.save_model)
    transform = clipped(fitted, demos, options.purifier)
    columns = (*optimal.observation_columns, *optimal.action_columns)
    normaliser = Normaliser.fit(np.concatenate([optimal.pairs, sample.pairs]), columns)
    purification = Purification(transform, normaliser.scale, options.seed)
    seen = Seen(sample_rows(source.episodes.n_rows, MOST_ROWS, seeds))
    if isinstance(fitted, DiffusionTransform) and fitted.purifier.batch_statistics:
        losses = _in_one_batch(source, purification, seen, output, options)
    else:
        work = _work(source, good, purification, options)
        losses = _in_shards(source, purification, seen, work, output, options)
    _checkpoint(output).unlink(missing_ok=True)
    say_losses(losses)
    pairs, moved = seen.sample()
    distances = [_distances(optimal.pairs, rows, normaliser) for rows in (sample.pairs, pairs)]
    report = _settings(fitted, choice, options) | {
        "input": noisy,
        "optimal": options.optimal,
        "output": str(output),
        "rows": source.episodes.n_rows,
        "optimal_rows": len(optimal),
        "moved": seen.mean_move(source),
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


class Seen:
    """Remembers, of purified chunks that pass by, what is said about them afterwards."""

    def __init__(self, chosen: Array) -> None:
        self.chosen = chosen
        # by first row, because a writer may ask for the same rows twice
        self.totals: dict[int, Array] = {}
        self.kept: dict[int, tuple[Array, Array]] = {}

    def __call__(self, start: int, rows: Demonstrations, cleaned: Demonstrations) -> None:
        """Rows before and after."""
        inside = (self.chosen >= start) & (self.chosen < start + len(rows))
        kept = self.chosen[inside] - start
        self.totals[start] = np.abs(cleaned.pairs - rows.pairs).sum(axis=0)
        self.kept[start] = cleaned.pairs[kept], cleaned.extras[MOVED][kept]

    def sample(self) -> tuple[Array, Array]:
        """Of the chosen rows: the purified pairs, and how far they moved."""
        pairs, moved = zip(*(self.kept[start] for start in sorted(self.kept)), strict=True)
        return np.concatenate(pairs), np.concatenate(moved)

    def mean_move(self, source: DemoSource) -> dict[str, float]:
        """Of every column, over all rows."""
        columns = (*source.observation_columns, *source.action_columns)
        mean = np.sum(list(self.totals.values()), axis=0) / source.episodes.n_rows
        return {column.name: float(m) for column, m in zip(columns, mean, strict=True)}


def _in_one_batch(
    source: DemoSource,
    purification: Purification,
    seen: Seen,
    output: Path,
    options: PurifyOptions,
) -> list[str]:
    """All rows at once, because every row shapes every other."""
    if options.engine != "local":
        raise EluteError(
            f"--engine {options.engine}: this purifier needs all rows in one batch",
            hint="leave out --engine, or choose another preset",
        )
    rows = source.rows(0, source.episodes.n_rows)
    cleaned = purification(0, rows)
    seen(0, rows, cleaned)
    return save(cleaned, output, format=options.to, strict=options.strict)


def _in_shards(
    source: DemoSource,
    purification: Purification,
    seen: Seen,
    work: str,
    output: Path,
    options: PurifyOptions,
) -> list[str]:
    """Purify what is not purified yet, then write it all in order."""
    bounds = chunk_bounds(source.episodes)
    ends = dict(bounds)
    with ExitStack() as stack:
        shards: Shards | None = None
        if len(bounds) > 1 or options.engine != "local":
            if options.strict:  # not only when all the work is done
                check_losses(source, output, format=options.to, transform=purification)
            folder = output.with_name(f".{output.name}.shards")
            shards = stack.enter_context(shard_folder(folder, work))
            _finish(Work(source, purification, shards), bounds, options)

        def change(start: int, rows: Demonstrations) -> Demonstrations:
            whole = ends.get(start) == start + len(rows)
            stored = shards.patch(start, rows) if shards is not None and whole else None
            cleaned = purification(start, rows) if stored is None else stored
            if whole:
                seen(start, rows, cleaned)
            return cleaned

        with progress("writing" if shards else "purifying", "rows") as update:
            return save(
                source,
                output,
                format=options.to,
                transform=change,
                strict=options.strict,
                progress=update,
            )


def _finish(work: Work, bounds: list[tuple[int, int]], options: PurifyOptions) -> None:
    """Every shard that is missing."""
    missing = work.shards.missing(bounds)
    total = work.source.episodes.n_rows
    done = before = total - sum(stop - start for start, stop in missing)
    if before:
        say(f"going on with {len(bounds) - len(missing)} of {len(bounds)} shards done")
    if not missing:
        return
    engine = _engine(options)
    with progress("purifying", "rows", before=before) as update:
        for rows in engine(work, missing):
            done += rows
            update(done, total)


def _engine(options: PurifyOptions) -> Engine:
    if options.engine == "ray":
        return ray(options.jobs, options.address, cores=cores(None))
    return local(cores(options.jobs))


def _work(
    source: DemoSource, good: DemoSource, purification: Purification, options: PurifyOptions
) -> str:
    """A digest of all that the purified rows depend on: files, settings, and a few rows purified.

    The last say what the settings do not, such as versions of the libraries.
    """
    probe = purification(0, source.rows(0, min(PROBE_ROWS, source.episodes.n_rows)))
    model = options.purifier.model
    facts = {
        "inputs": [_identity(data) for data in (source, good)],
        "purifier": {k: str(v) for k, v in asdict(options.purifier).items()},
        "model": stamp(model) if model is not None else None,
        "seed": options.seed,
        "probe": hashlib.sha256(probe.pairs.tobytes()).hexdigest(),
    }
    return digest(facts)


def _identity(source: DemoSource) -> list[Any]:
    """Which rows of which file, and when that was changed last."""
    columns = [(c.name, c.role) for c in (*source.observation_columns, *source.action_columns)]
    rows, origin = [source.episodes.lengths.tolist(), columns], source.origin
    if origin is None:
        return [*rows, source.provenance.source]
    return [*rows, str(origin.path.resolve()), origin.stamp, origin.pieces]


def _check(noisy: str, output: Path, options: PurifyOptions) -> None:
    """Refuse what cannot end well, before any work is done."""
    inputs = [split_spec(given)[0] for given in (noisy, options.optimal)]
    inputs += [options.purifier.model] if options.purifier.model is not None else []
    outputs = [path for path in (output, options.save_model, options.figure) if path is not None]
    for path in outputs:
        if sum(path.resolve() == other.resolve() for other in outputs) > 1:
            raise EluteError(f"{path}: stands for two outputs", hint="give each its own path")
    check_output(output, inputs)
    if options.figure is not None:
        check_figure(options.figure, inputs)
    if options.save_model is not None:
        check_output(options.save_model, inputs)
        if options.purifier.method != "diffusion":
            raise EluteError(f"--save-model: {options.purifier.method} has no model to save")
    check_options(options.purifier)
    if options.engine not in ("local", "ray") or (options.address and options.engine != "ray"):
        raise EluteError(
            f"--engine {options.engine}", hint="local, or ray with or without --address"
        )
    if options.engine == "ray":
        ray_library()


def _checkpoint(output: Path) -> Path:
    """Where the training is put down until the output is written."""
    return output.with_name(f".{output.name}.training")


def _labelled(source: DemoSource, good: DemoSource) -> DemoSource:
    """The same with filter keys: all its episodes are purified, and some were taken as optimal."""
    episodes = source.episodes.with_filter("purified", range(len(source.episodes)))
    here, there = source.origin, good.origin
    if here is not None and there is not None and here.path.samefile(there.path):
        starts = {piece.start for piece in there.pieces}
        chosen = [i for i, piece in enumerate(here.pieces) if piece.start in starts]
        episodes = episodes.with_filter("optimal", chosen)
    return replace(source, episodes=episodes)  # type: ignore[type-var] # both are dataclasses


def _say_findings(
    noisy: str, source: DemoSource, optimal: Demonstrations, options: PurifyOptions
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
    noisy: str, source: DemoSource, optimal: Demonstrations, options: PurifyOptions
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


def _settings(fitted: Transform, choice: Choice | None, options: PurifyOptions) -> dict[str, Any]:
    """What was done, and why at this step."""
    told = options.purifier
    steps = fitted.purifier if isinstance(fitted, DiffusionTransform | WienerTransform) else None
    step = None if steps is None else steps.reverse_step
    aimed = fitted.purifier if isinstance(fitted, FilterTransform) else steps
    relabels = "action" if told.method in ("nearest", "relabel") else None
    errors = dict(choice.errors) if choice is not None else {}
    teaches = choice.for_policy if choice is not None and told.reverse_step == "auto" else None
    if told.reverse_step != "auto":
        why = "given"
    elif choice is not None:
        why = "actions should err least"
    else:
        why = "the model's own" if told.model is not None else "the default of this method"
    return {
        "method": told.method,
        "reverse_step": step,
        "reverse_step_why": None if steps is None else why,
        "reverse_step_for_policy": teaches,
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
        teaches = report["reverse_step_for_policy"]
        if teaches not in (None, step):
            table.add_row(
                "", f"{teaches} if a policy is cloned from the rows, which averages noise"
            )
    errors, distance = report["heldout_error"], report["distance"]
    if errors["before"] is not None:
        table.add_row("held-out action error", f"{errors['before']:.4g} -> {errors['after']:.4g}")
    table.add_row("distance to optimal", f"{distance['before']:.4g} -> {distance['after']:.4g}")
    moved = {name: value for name, value in report["moved"].items() if value > 0}
    largest = sorted(moved, key=lambda name: -moved[name])[:6]
    table.add_row("moved most", ", ".join(f"{name} {moved[name]:.3g}" for name in largest) or "-")
    out.print(table, markup=False)
