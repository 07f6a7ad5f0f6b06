"""`elute report` as typed, from lines that were committed."""

import json
import os
from pathlib import Path

import pytest

from commands import elute
from elute import corrupt, save
from elute.demos.pointmass import pointmass

ROOT = Path(__file__).parents[2]
LINES = ROOT / "results" / "real-halfcheetah.jsonl"


def report(*arguments):
    done = elute("report", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_paper_stands_beside_ours():
    found = json.loads(report("--table", "1", "--results", LINES, "--json"))
    cells = {(c["demos"], c["method"]): c for c in found["cells"]}
    purified = cells["action-noise/heavy", "dp-bc"]
    assert (purified["paper"], purified["seeds"], purified["regime"]) == (
        1365,
        5,
        "paper, real files realigned by 1",
    )
    assert purified["mean"] > cells["action-noise/heavy", "bc-all"]["mean"]


def test_what_the_demonstrations_earned():
    found = json.loads(report("--table", "quality", "--results", ROOT / "results", "--json"))
    returns = {(c["task"], c["demos"]): c for c in found["cells"]}
    assert len(returns) == 28
    assert returns["hopper", "expert"]["paper"] == 3594
    for task in ("ant", "halfcheetah", "walker2d", "hopper"):
        heavy, expert = returns[task, "action-noise/heavy"], returns[task, "expert"]
        assert heavy["mean"] < 0.5 * expert["mean"]


def test_what_was_recorded_has_no_seeds():
    told = report("--table", "quality", "--results", ROOT / "results" / "quality.jsonl")
    assert "over 5 to 40 recorded episodes" in told
    assert "seed" not in told


@pytest.mark.parametrize("table", ["headline", "summary", "noise-summary", "reverse-step-summary"])
def test_summaries_are_told_to_machines(table):
    methods = json.loads(report("--table", table, "--results", ROOT / "results", "--json"))[
        "methods"
    ]
    purified = next(m for m in methods if (m["method"], m["regime"]) == ("dp-bc", "episode"))
    for found in purified["compared"].values():
        assert 0 <= found["above"] <= found["sets"] == purified["sets"] == 24


def test_a_regime_can_be_asked_for():
    where = ("--table", "1", "--results", ROOT / "results", "--json")
    real = "paper, real files realigned by 1"
    for regime, shown in (("episode", {"episode"}), ("paper", {"paper", real})):
        found = json.loads(report(*where, "--regime", regime))
        assert {cell["regime"] for cell in found["cells"]} == shown
    done = elute("report", *where, "--regime", "epsode")
    assert done.returncode == 2
    assert "did you mean episode" in done.stderr


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--figure", "elasticity", "--regime", "paper"), "--regime is for lines"),
        (("--figure", "elasticity", "--results", LINES), "--results is for lines"),
        (("--table", "1", "--results", LINES, "--json", "--format", "latex"), "--format is for"),
        (("--figure", "summary", "--format", "latex"), "--format is for"),
        (("--table", "1", "--results", "none.jsonl"), "--results names them"),
        (("--table", "nonsense", "--results", "none.jsonl"), "no table 'nonsense'"),
        (("--figure", "nonsense", "--results", "none.jsonl"), "no figure 'nonsense'"),
        (("--table", "1", "--results", "none.jsonl", "--format", "x"), "no format 'x'"),
        (("--html", "page.html", "--results", os.devnull), "no lines"),
    ],
)
def test_what_cannot_be_reported_is_refused(tmp_path, flags, told):
    done = elute("report", *flags, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert not list(tmp_path.iterdir())


def test_what_no_table_counts_is_said_once(tmp_path):
    run = json.loads(LINES.read_text().splitlines()[0])
    lost = run | {"digest": "lost", "seed": 99, "metrics": {"mean": None, "normalised": None}}
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (run, lost)) + "junk\n" * 1000)
    done = elute("report", "--table", "1", "--results", path)
    assert done.returncode == 0
    assert "lines 3, 4, 5, 6, 7 and 995 more are torn or hold no run; left out" in done.stderr
    assert "1 of 2 runs diverged" in done.stderr
    assert len(done.stderr) < 500


def test_lines_of_one_run_that_differ_are_told(tmp_path):
    first = json.loads(LINES.read_text().splitlines()[0])
    other = first | {"metrics": first["metrics"] | {"mean": 1.0}}
    for name, line in (("a", first), ("b", other), ("c", other)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    done = elute("report", "--table", "1", "--results", tmp_path, "--json")
    assert "1 of 1 runs have lines of different numbers" in " ".join(done.stderr.split())
    assert json.loads(done.stdout)["cells"][0]["mean"] == 1.0


def test_a_summary_of_no_scores_is_refused(tmp_path):
    first = json.loads(LINES.read_text().splitlines()[0])
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(first | {"metrics": {"mean": 1.0, "normalised": None}}) + "\n")
    done = elute("report", "--figure", "summary", "--results", path, "-o", tmp_path / "a.png")
    assert done.returncode == 2
    assert "no lines for figure summary, or not enough" in done.stderr
    assert "it needs runs with scores" in done.stderr


@pytest.mark.parametrize(
    ("table", "file", "notes"),
    [
        ("1", "table1", "(1)"),
        ("reverse-step", "reverse-step", "(1)"),
        ("summary", "table1", "mean: over"),
        ("headline", "table1", "mean: over"),
    ],
)
def test_a_large_table_fits_a_terminal(table, file, notes):
    lines = ROOT / "results" / f"{file}.jsonl"
    narrow, wide = (
        elute("report", "--table", table, "--results", lines, env=os.environ | {"COLUMNS": width})
        for width in ("80", "250")
    )
    head = narrow.stdout[: narrow.stdout.index(notes)].splitlines()
    assert max(map(len, head)) <= 80
    assert not any(line.startswith(" ") for line in head)  # a broken cell would go on there
    assert ("demos" in wide.stdout) == (table == "1")  # where it fits, as the paper has it


def test_audits_and_purifications_go_on_the_page(tmp_path):
    good = pointmass(5)
    save(good, tmp_path / "good.npz")
    save(corrupt(good, "gaussian", 0.4, seed=0), tmp_path / "noisy.npz")
    audit, purification = tmp_path / "audit.json", tmp_path / "purify.json"
    audit.write_text(elute("demos", "audit", tmp_path / "noisy.npz", "--json").stdout)
    purification.write_text(
        elute(
            *("purify", tmp_path / "noisy.npz", "--optimal", tmp_path / "good.npz"),
            *("--method", "wiener", "-o", tmp_path / "clean.npz", "--json"),
        ).stdout
    )
    page = tmp_path / "page.html"
    report("--html", page, "--results", LINES, "--with", audit, "--with", purification)
    text = page.read_text()
    for part in ("What the audit found", "What purification changed", "noisy.npz", "row by row"):
        assert part in text


@pytest.mark.parametrize("content", ["[1]", "{}", "no JSON"])
def test_what_neither_printed_is_refused(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    done = elute("report", "--html", tmp_path / "p.html", "--with", tmp_path / "a.json",
                 "--results", LINES)  # fmt: skip
    assert done.returncode == 2
    assert "a.json" in done.stderr
    assert not (tmp_path / "p.html").exists()


def test_a_figure_of_the_theory_needs_no_lines(tmp_path):
    path = tmp_path / "e.png"
    report("--figure", "elasticity", "-o", path)
    assert path.read_bytes()[:4] == b"\x89PNG"
