"""Checks of one file: values, columns, duplicates, actions, episode ends."""

import numpy as np

from elute.columns import Column
from elute.demos.audit.finding import Finding, listed
from elute.demos.audit.sample import Sample
from elute.demos.audit.summary import Bounds, Summary
from elute.episodes import Array, Episodes

JUMP = 15.0
"""Times the typical change of an action that make a jump."""
RARE = 0.01
"""Jumps in more rows than this are how the robot is driven, not accidents."""
SATURATED = 0.2
"""Share of actions at their bounds that is worth knowing."""


def value_findings(summary: Summary, columns: tuple[Column, ...], rows: int) -> list[Finding]:
    """Values that are not finite."""
    findings = []
    if summary.rewards is not None and not np.isfinite(summary.rewards).all():
        findings.append(_bad_rewards(np.flatnonzero(~np.isfinite(summary.rewards))))
    bad = summary.non_finite
    if len(bad) == 0:
        return findings
    where = [c.name for c, n in zip(columns, summary.non_finite_by_column, strict=True) if n]
    where = where or ["next observations"]
    return [
        *findings,
        Finding(
            "non-finite",
            "error",
            f"{len(bad)} of {rows} rows hold NaN or infinity, in {listed(where)}; "
            f"first at row {bad[0]}",
            "drop these rows with --fix OUT, which splits their episodes there",
            repair="drop-non-finite",
            numbers={"rows": len(bad), "first_row": int(bad[0]), "columns": where},
        ),
    ]


def state_findings(columns: tuple[Column, ...]) -> list[Finding]:
    """Simulator states in place of observations, as in raw recordings."""
    if {column.key for column in columns} != {"states"}:
        return []
    return [
        Finding(
            "raw-states",
            "warning",
            "observations are raw simulator states (time, positions, velocities), since the file "
            "holds none",
            "elute demos convert FILE OUT --adapt sawyer-reach computes RoboTurk's of the Sawyer; "
            "for robosuite use robomimic's dataset_states_to_obs.py",
        )
    ]


def _bad_rewards(rows: Array) -> Finding:
    return Finding(
        "non-finite-rewards",
        "warning",
        f"{len(rows)} rewards are NaN or infinite; first at row {rows[0]}",
        "returns of these episodes cannot be told; imitation itself does not use rewards",
        numbers={"rows": len(rows), "first_row": int(rows[0])},
    )


def column_findings(summary: Summary, columns: tuple[Column, ...], sample: Sample) -> list[Finding]:
    """Columns that never change, repeat another one, or hold two values but are not called so."""
    constant = summary.low >= summary.high
    findings = []
    if constant.any():
        names = [c.name for c, same in zip(columns, constant, strict=True) if same]
        findings.append(
            Finding(
                "constant-columns",
                "note",
                f"{len(names)} columns never change: {listed(names)}",
                "they carry no information; purification passes them through",
                numbers={"columns": names},
            )
        )
    pairs = _equal_columns(summary.column_hashes, constant)
    if pairs:
        names = [f"{columns[a].name} = {columns[b].name}" for a, b in pairs]
        findings.append(
            Finding(
                "duplicate-columns",
                "warning",
                f"{len(pairs)} columns repeat another: {listed(names)}",
                "check how the observation was put together",
                numbers={"columns": [[columns[a].name, columns[b].name] for a, b in pairs]},
            )
        )
    binary = _binary(sample.pairs, constant)
    names = [c.name for c, two in zip(columns, binary, strict=True) if two and c.role != "discrete"]
    if names:
        findings.append(
            Finding(
                "undeclared-discrete",
                "note",
                f"{len(names)} columns hold only two values: {listed(names)}",
                "if they are switches (a gripper), say so: --columns "
                f"'{names[0]}=discrete', and they will not be purified",
                numbers={"columns": names},
            )
        )
    return findings


def _equal_columns(hashes: Array, constant: Array) -> list[tuple[int, int]]:
    first: dict[int, int] = {}
    pairs = []
    for i in np.flatnonzero(~constant).tolist():
        same = first.setdefault(int(hashes[i]), i)
        if same != i:
            pairs.append((same, i))
    return pairs


def _binary(sample: Array, constant: Array) -> Array:
    if len(sample) < 10:
        return np.zeros(len(constant), dtype=bool)
    low, high = sample.min(axis=0), sample.max(axis=0)
    apart = high - low > 1e-3 * np.maximum(1.0, np.abs(high))  # not a constant that was rounded
    two: Array = ((sample == low) | (sample == high)).all(axis=0) & ~constant & apart
    return two


def duplicate_findings(summary: Summary, episodes: Episodes) -> list[Finding]:
    """Rows and episodes that stand in the file more than once."""
    n = len(summary.hashes)
    findings = []
    repeated = n - len(np.unique(summary.hashes))
    if repeated:
        findings.append(
            Finding(
                "duplicate-rows",
                "warning" if repeated > RARE * n else "note",
                f"{repeated} of {n} rows repeat an earlier row exactly",
                "a recorder that stood still, or data joined twice: they weigh double in training",
                numbers={"rows": repeated, "share": repeated / n},
            )
        )
    position = np.arange(n) - np.repeat(episodes.starts, episodes.lengths)
    with np.errstate(over="ignore"):
        scrambled = summary.hashes * (2 * position.astype(np.uint64) + np.uint64(1))
        whole = np.add.reduceat(scrambled, episodes.starts)
    first: dict[int, int] = {}
    copies = []
    for i, digest in enumerate(whole.tolist()):
        same = first.setdefault(digest, i)
        if same != i and episodes.lengths[same] == episodes.lengths[i] > 1:
            copies.append((same, i))
    if copies:
        shown = listed([f"{b} = {a}" for a, b in copies])
        findings.append(
            Finding(
                "duplicate-episodes",
                "warning",
                f"{len(copies)} of {len(episodes)} episodes repeat another: {shown}",
                "leave the copies out with FILE#episodes=..., unless the weight is meant",
                numbers={"episodes": [list(pair) for pair in copies]},
            )
        )
    return findings


def action_findings(
    summary: Summary, bounds: Bounds | None, columns: tuple[Column, ...], rows: int
) -> list[Finding]:
    """Actions outside their bounds, at them, and sudden jumps."""
    findings = []
    if bounds is not None and summary.outside.any():
        worst = int(summary.outside.argmax())
        findings.append(
            Finding(
                "out-of-bounds",
                "warning",
                f"actions leave their bounds by up to {summary.excess:.3g}: in "
                f"{summary.outside[worst] / rows:.0%} of the rows of {columns[worst].name}",
                "a simulator clips them and so did probably the recorder; "
                "--fix OUT --clip stores what was executed",
                repair="clip",
                numbers={"excess": summary.excess, "rows_by_column": summary.outside.tolist()},
            )
        )
    if bounds is not None and (summary.at_bounds > SATURATED * rows).any():
        worst = int(summary.at_bounds.argmax())
        findings.append(
            Finding(
                "saturated",
                "note",
                f"{summary.at_bounds[worst] / rows:.0%} of {columns[worst].name} is at its bounds "
                "or beyond",
                "bang-bang control is hard to average: prefer learners that keep the modes apart",
                numbers={"rows_by_column": summary.at_bounds.tolist()},
            )
        )
    jumps = np.flatnonzero(np.nan_to_num(summary.jump, nan=0.0) > JUMP)
    if 0 < len(jumps) <= RARE * rows or 0 < len(jumps) <= 2:
        findings.append(
            Finding(
                "action-jumps",
                "warning",
                f"actions jump in {len(jumps)} rows by over {JUMP:.0f} times their typical change: "
                f"rows {listed(jumps.tolist())}",
                "dropped frames or a joined recording look like this; look at these rows",
                numbers={"rows": jumps[:100].tolist(), "count": len(jumps)},
            )
        )
    return findings


def end_findings(episodes: Episodes, horizon: int | None) -> list[Finding]:
    """Episodes whose end is missing, odd, or of the wrong kind."""
    findings = []
    open_ended = np.flatnonzero(~(episodes.terminated | episodes.truncated)).tolist()
    if open_ended:
        findings.append(
            Finding(
                "unended-episodes",
                "warning",
                f"{len(open_ended)} of {len(episodes)} episodes end without a terminal or time-out "
                f"flag: {listed(open_ended)}",
                "a recording that was cut off; treat the end as a time-out, not as a success",
                numbers={"episodes": open_ended},
            )
        )
    single = np.flatnonzero(episodes.lengths == 1).tolist()
    if single:
        findings.append(
            Finding(
                "one-step-episodes",
                "warning",
                f"{len(single)} of {len(episodes)} episodes have a single step: {listed(single)}",
                "often a stray flag that cuts an episode; check the recorder",
                numbers={"episodes": single},
            )
        )
    findings += _timeout_findings(episodes, horizon)
    if episodes.inferred.any():
        findings.append(
            Finding(
                "inferred-ends",
                "note",
                "the file does not say whether its episodes ended or were cut by a time limit; "
                f"taken as ended: {int(episodes.terminated.sum())}, "
                f"as cut: {int(episodes.truncated.sum())}",
                "give --task, or --horizon N, if that is wrong",
            )
        )
    return findings


def step_findings(summary: Summary) -> list[Finding]:
    """Steps inside an episode that do not lead to the next row."""
    rows = summary.broken_steps
    if len(rows) == 0:
        return []
    return [
        Finding(
            "broken-steps",
            "warning",
            f"the next observation of {len(rows)} rows is not the observation of the row that "
            f"follows in the same episode: rows {listed(rows[:6].tolist())}",
            "an episode boundary is missing there, or one of the two was processed alone",
            numbers={"rows": rows[:100].tolist(), "count": len(rows)},
        )
    ]


def _timeout_findings(episodes: Episodes, horizon: int | None) -> list[Finding]:
    limit = horizon or int(episodes.lengths.max())
    suspects = np.flatnonzero(episodes.terminated & (episodes.lengths == limit)).tolist()
    shorter = np.bincount(episodes.lengths[episodes.lengths < limit], minlength=1)
    chance = len(suspects) < 3 or limit < 10 or len(suspects) <= 2 * shorter.max()
    if not suspects or (horizon is None and chance):
        return []
    return [
        Finding(
            "timeout-as-terminal",
            "warning",
            f"{len(suspects)} episodes of exactly {limit} rows are stored as terminal: "
            f"{listed(suspects)}",
            "that is a time limit, not an end: value learners will think the world stops there",
            numbers={"length": limit, "episodes": suspects},
        )
    ]
