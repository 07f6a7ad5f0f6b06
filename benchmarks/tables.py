"""Tables and figures of README and docs, rebuilt from committed lines.

    python -m benchmarks.tables            # rewrites what stands between the marks, draws anew
    python -m benchmarks.tables --check    # says where a page no longer agrees with the lines

A mark is a command in a comment, `hours`, `coverage`, `choice`, `earned` or `steps`. Below one that
prints a table is `<!-- end -->`, below one that draws a figure the figure. What explains a table
stands on a page once, under the first that has it. Whether a figure is of today's lines is not
checked.
"""

import argparse
import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np

import benchmarks.choice
import benchmarks.coverage
from elute import results

ROOT = Path(__file__).parents[1]
MARK = re.compile(r"(<!-- (elute report --table [^\n]*) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
OWN = re.compile(r"(<!-- (hours|coverage|choice|earned|steps) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
FIGURE = re.compile(r"<!-- (elute report --figure [^\n]*) -->\n")


def main() -> None:
    """Rewrite, or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    stale = []
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        before = page.read_text(encoding="utf-8")
        after = rebuilt(before)
        for command in [] if given.check else FIGURE.findall(before):
            run(command)
        if after != before:
            stale.append(page.relative_to(ROOT))
            if not given.check:
                page.write_text(after, encoding="utf-8")
    for page in stale:
        print(f"{page}: {'stale' if given.check else 'rewritten'}")
    sys.exit(bool(given.check and stale))


def rebuilt(page: str) -> str:
    """The page with today's tables."""
    said: set[str] = set()
    page = MARK.sub(lambda found: f"{found[1]}\n{table(found[2], said)}\n{found[4]}", page)
    return OWN.sub(lambda found: f"{found[1]}\n{MADE[found[2]]()}\n{found[4]}", page)


def hours() -> str:
    """What the lines took."""
    told = ["| lines | runs | core hours, each run by itself |", "|---|---|---|"]
    for file in sorted((ROOT / "results").rglob("*.jsonl")):
        runs = results.read(file).rows
        spent = sum(sum(run["timings"].values()) for run in runs)
        told.append(f"| `{file.relative_to(ROOT)}` | {len(runs)} | {spent / 3600:.1f} |")
    return "\n".join(told) + "\n"


def coverage() -> str:
    """What the distance of the states, which `benchmarks.coverage` measured, says of returns."""
    told = [
        "| distance | sets | BC-all | DP-BC | mean gain | DP-BC better "
        "| near the expert: BC-all, DP-BC | above DP-BC: ISW-BC, DP-ISW-BC |",
        "|---|---|---|---|---|---|---|---|",
    ]
    bands = benchmarks.coverage.bands(benchmarks.coverage.joined())
    for band, after in itertools.zip_longest(bands, bands[1:]):
        ends = f"{band['over']} to {after['over']}" if after else f"over {band['over']}"
        means = f"{band['bc-all']:.2f} | {band['dp-bc']:.2f} | {band['gain']:+.2f}"
        near, weighed = band["near"], band["weighed"]
        above = ", ".join(str(weighed[m]["above dp-bc"]) for m in ("isw-bc", "dp-isw-bc"))
        told.append(
            f"| {ends} | {band['sets']} | {means} | {band['better']} "
            f"| {near['bc-all']}, {near['dp-bc']} | {above} |"
        )
    return "\n".join(told) + "\n"


def choice() -> str:
    """Reverse steps and the error of a policy there, as `benchmarks.choice` found them."""
    told = [
        "| optimal rows | task | noise | left alone | best step | for a policy | for actions |",
        "|---|---|---|---|---|---|---|",
    ]
    shown = "action-noise/light", "action-noise/heavy"
    lines = benchmarks.choice.measured().values()
    for row in sorted(lines, key=lambda row: bool(row["regime"] == "episode")):
        if row["demos"] in shown:
            _, noise = row["demos"].split("/")
            rows = "an episode" if row["regime"] == "episode" else "first 50"
            errors = {step: f"{error:.3f}".lstrip("0") for step, error in row["errors"].items()}
            steps = [str(row[key]) for key in ("best", "chosen", "by_actions")]
            cells = [rows, row["task"], noise, errors["0"], *(f"{s}, {errors[s]}" for s in steps)]
            told.append(f"| {' | '.join(cells)} |")
    return "\n".join(told) + "\n"


def earned() -> str:
    """What each way to choose the reverse step earns by the committed sweep."""
    rows = benchmarks.choice.measured()
    ways = [
        benchmarks.choice.earned(rows, regime, group)
        for regime, group in (("episode", "table1"), ("episode", "noise"), ("paper", "table1"))
    ]
    names = {
        "none": "no purification",
        "chosen": "`auto` for a policy",
        "by_actions": "`auto` for actions",
        "held_out": "policy, held out",
        "best": "**the step at which the policy truly errs least**",
        "of the sweep": "the fixed step above 0 that earned most, in hindsight",
    }
    told = [
        "| mean score, and beside `auto` for a policy | one optimal episode "
        "| one episode, other noise | first 50 rows |",
        "|---|---|---|---|",
        *(
            f"| {name} | {' | '.join(earns[way].told(way != 'chosen') for earns in ways)} |"
            for way, name in names.items()
        ),
    ]
    return "\n".join(told) + "\n"


def steps() -> str:
    """What fixed steps and the chosen one earn on each kind of data, by the committed lines."""
    shown = ("0", "10", "30", "50", "60", "100", "200", "300", "auto")
    told = [
        f"| mean score | sets | none | {' | '.join(shown[1:-1])} | chosen |",
        f"|{'---|' * (len(shown) + 2)}",
    ]
    for name, (regime, *files) in KINDS.items():
        places = [
            means
            for place, means in benchmarks.choice.swept(*files).items()
            if place.regime == regime and "auto" in means
        ]
        scores = {step: [means[step] for means in places if step in means] for step in shown}
        sets = len(places)
        cells = [f"{np.mean(scores[s]):.2f}" if len(scores[s]) == sets else "-" for s in shown]
        told.append(f"| {name} | {sets} | {' | '.join(cells)} |")
    return "\n".join(told) + "\n"


REAL = "paper, real files realigned by 1"
KINDS = {
    "Table 1, one optimal episode": ("episode", "reverse-step"),
    "types of noise, one optimal episode": ("episode", "noise"),
    "all levels mixed, one optimal episode": ("episode", "mixed"),
    "published HalfCheetah files, 50 rows": (REAL, "ablations/real-steps", "real-halfcheetah"),
    "Table 1, first 50 rows": ("paper", "reverse-step"),
    "types of noise, first 50 rows": ("paper", "noise"),
    "all levels mixed, first 50 rows": ("paper", "mixed"),
}
MADE = {"hours": hours, "coverage": coverage, "choice": choice, "earned": earned, "steps": steps}


def table(command: str, said: set[str]) -> str:
    """What a command prints, for a page, without what explains it if that was said already."""
    told = []
    for part in run(f"{command} --format markdown").strip().split("\n\n"):
        explains = not part.startswith(("|", "**", "("))
        if not (explains and part in said):
            told.append(part)
        if explains:
            said.add(part)
    return "\n\n".join(told) + "\n"


def run(command: str) -> str:
    """What a command prints."""
    _, *arguments = shlex.split(command)
    done = subprocess.run(
        [sys.executable, "-m", "elute", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return done.stdout


if __name__ == "__main__":
    main()
