"""The documentation runs: every Python block, every `$ elute` line and what it is said to print."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import elute

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_python(code, names):
    exec(compile(code, "documentation", "exec"), names)


def run_console(text, folder):
    """Run each command; the lines under it must appear in its output, in order."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *expected = part.strip().splitlines()
        assert command.startswith("elute "), command
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(command)],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), f"{command}: {done.stderr}"
        printed = done.stdout + done.stderr
        for line in expected:
            if line != "...":
                assert line in printed, f"{command} does not print {line!r}:\n{printed}"
                printed = printed.split(line, 1)[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for folder in ("experiments", "results"):  # of a checkout
        (tmp_path / folder).symlink_to(ROOT / folder)
    names = {}
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            run_python(text, names)
        elif "$ " in text:
            run_console(text, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        file, _, heading = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not heading or heading in anchors(target), link


def anchors(page):
    """What headings are called in links."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.strip().lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.slow
def test_tables_are_those_of_the_lines():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tables", "--check"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_finding_has_a_row():
    code = "\n".join(p.read_text() for p in (ROOT / "src/elute/demos/audit").glob("*.py"))
    codes = set(re.findall(r'Finding\(\s*"([a-z-]+)"', code))
    rows = set(re.findall(r"^\| `([a-z-]+)`", (ROOT / "docs/reference/findings.md").read_text(),
                          re.MULTILINE))  # fmt: skip
    assert codes == rows


def test_every_public_name_has_a_row_and_exists():
    page = (ROOT / "docs/reference/python.md").read_text()
    for name in elute.__all__:
        assert getattr(elute, name)
        assert f"`{name}" in page


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert str(page.relative_to(ROOT / "docs")) in menu
