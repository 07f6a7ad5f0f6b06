"""`elute tour`: the whole story, told by the commands a user would type.

Good and shaky demonstrations are recorded from the shipped Walker2d expert, checked, purified
and learnt from, with and without; a page at the end tells it in pictures.
"""

import json
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from elute import __version__
from elute.cli.show import out
from elute.collect.video import film
from elute.demos.files import load
from elute.envs.task import find_task
from elute.errors import EluteError
from elute.policy import load_policy
from elute.report.changes import column_changes
from elute.report.html import Report, write_html
from elute.report.purification import Purification

TASK, NOISE = "walker2d", "gaussian:0.6"
OPTIMAL_ROWS, ROWS, SEEDS, EPISODES, FRAMES = 200, 500, 3, 5, 100
METHODS = {"plain": "bc-all", "purified": "dp-bc"}
"""Folder of the policies, and what the paper calls the method."""


def run(folder: str) -> None:
    """Record, check, purify, learn, compare."""
    home = Path(folder)
    _clear(home)
    good, noisy, clean = (home / name for name in ("good.h5", "noisy.h5", "purified.h5"))
    _say("An expert that comes with elute walks on two legs: a few good demonstrations.")
    _elute("demos", "collect", TASK, "--rows", ROWS, "-o", good, "--to", "vild")
    _say("The same with a shaky hand: noise on every action, so it stumbles.")
    _elute(
        *("demos", "collect", TASK, "--noise", NOISE, "--rows", ROWS, "--seed", 1),
        *("-o", noisy, "--to", "vild"),
    )
    _say("Is anything broken in it?")
    audited = _told("demos", "audit", noisy, "--optimal", good)
    _say(f"{OPTIMAL_ROWS} good rows show what is normal; {ROWS} shaky ones are purified by it.")
    purified = _told(
        *("purify", noisy, "--rows", ROWS, "--optimal", good, "--optimal-rows", OPTIMAL_ROWS),
        *("-o", clean),
    )
    out.print(
        f"  reverse step {purified['reverse_step']}, chosen without an environment; error of "
        f"held-out actions {purified['heldout_error']['before']:.3f} before, "
        f"{purified['heldout_error']['after']:.3f} after"
    )
    rows = []
    for name, data in (("plain", noisy), ("purified", clean)):
        _say(f"{SEEDS} policies cloned from the {name} demonstrations, and what they earn.")
        _elute(
            *("train", "bc", "--optimal", good, "--optimal-rows", OPTIMAL_ROWS),
            *("--supplementary", data, "--rows", ROWS, "--task", TASK),
            *("--seeds", SEEDS, "-o", home / name),
        )
        scored = _told("evaluate", home / name, "--task", TASK, "--episodes", EPISODES)
        rows += _rows(METHODS[name], scored, purified)
    _show(rows)
    page = home / "report.html"
    changes = column_changes(load(noisy).first(ROWS), load(clean), load(good).first(OPTIMAL_ROWS))
    write_html(
        page,
        Report(
            title="A shaky walker, purified",
            rows=rows,
            audits=[audited],
            purifications=[Purification(name=noisy.name, facts=purified, columns=changes)],
            clip=_clip(home),
            clip_caption="A policy that learnt from the purified demonstrations.",
            command=f"elute tour --to {folder}",
        ),
    )
    _say(f"All of it in one page: {page}. Next: elute demos audit YOUR_FILE")


def _rows(method: str, scored: dict[str, Any], purified: dict[str, Any]) -> list[dict[str, Any]]:
    """Lines of results, as a grid would have written them."""
    dp = method.startswith("dp-")
    return [
        {
            "digest": f"tour {method} {one['seed']}",
            "method": method,
            "task": TASK,
            "demos": "action-noise/heavy",
            "regime": "paper",
            "target": purified["target"] if dp else None,
            "reverse_step": purified["reverse_step"] if dp else None,
            "auto": dp,
            "seed": int(one["seed"]),
            "run": {
                "preset": "default",
                "purifier": {"preset": "default"} if dp else None,
                "settings": {},
            },
            "data": None,
            "metrics": {
                "mean": one["mean"],
                "normalised": one["normalised"],
                "success": one["success"],
                "returns": [episode["return"] for episode in one["episodes"]],
            },
            "timings": {},
            "spent": 0.0,
            "versions": {"elute": __version__} | scored["versions"],
        }
        for one in scored["seeds"]
    ]


def _clip(home: Path) -> bytes | None:
    """A few seconds of a policy, where films can be made."""
    path, policy = home / "clip.mp4", load_policy(home / "purified" / "seed-0.safetensors")
    try:
        film(policy, replace(find_task(TASK), horizon=FRAMES), path)
    except EluteError:
        return None
    return path.read_bytes()


def _show(rows: list[dict[str, Any]]) -> None:
    table = Table("demonstrations", "mean return", "of the expert", box=None, padding=(0, 2))
    for name, method in METHODS.items():
        found = [row["metrics"] for row in rows if row["method"] == method]
        mean = sum(m["mean"] for m in found) / len(found)
        share = sum(m["normalised"] for m in found) / len(found)
        table.add_row(name, f"{mean:.0f}", f"{share:.0%}")
    out.print()
    out.print(table)


def _clear(home: Path) -> None:
    marker = home / ".elute-tour"
    if home.exists() and not marker.exists() and any(home.iterdir()):
        raise EluteError(f"{home}: not a folder of an earlier tour", hint="choose another --to")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    marker.touch()


def _say(text: str) -> None:
    out.print(f"\n{text}", style="bold", markup=False)


def _elute(*arguments: object, quietly: bool = False) -> str:
    words = list(map(str, arguments))
    out.print(f"$ elute {shlex.join(words)}", style="cyan", markup=False)
    sys.stdout.flush()
    done = subprocess.run(
        [sys.executable, "-m", "elute", *words],
        check=False,
        text=True,
        stdout=subprocess.PIPE if quietly else None,
    )
    if done.returncode not in (0, 1):
        raise EluteError(f"the command ended with code {done.returncode}")
    return done.stdout or ""


def _told(*arguments: object) -> dict[str, Any]:
    """What a command prints for machines."""
    answer: dict[str, Any] = json.loads(_elute(*arguments, "--json", quietly=True))
    return answer
