"""One HTML page that tells the whole story, in one file that needs nothing else.

    write_html(Path("report.html"), Report(rows=read(results).rows, command="elute report ..."))

In this order: what came out, in words; what the audit found; what purification changed; how the
reverse step was chosen; learning curves; bars with intervals; tables; how it was made; a clip. What
there is nothing to say about is left out.

The page is complete without JavaScript, which only sorts and filters. It may load nothing and run
nothing but its own script: a policy in its head names the script's and the style's digests, and all
text goes through `markup`, so that a file called `<script>` is a name and no more.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import numpy as np

from elute.demos.output import output
from elute.report.blocks import (
    Section,
    facts_list,
    figure,
    legend,
    note,
    sentence,
    short_name,
    unbroken,
)
from elute.report.charts import STYLES, Axis, Line, line_chart, spanning
from elute.report.groups import Group, Row, grouped, is_scored
from elute.report.markup import Content, Html, element, join
from elute.report.numbers import duration, number
from elute.report.purification import Json, Purification, changes_section, reverse_step_section
from elute.report.returns import bars_section, tables_section
from elute.report.words import by_file, summary

POINTS = 200
"""Most points of a learning curve that are drawn."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How learning went, of one run; curves of the same axes share a chart."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    x_name: str = "updates"
    y_name: str = "loss"


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that a page can tell; every part may be missing."""

    title: str = "What came of the demonstrations"
    rows: Sequence[Row] = ()
    """Lines of results."""
    audits: Sequence[Json] = ()
    """Of one file each, as `elute demos audit --json` prints them."""
    purifications: Sequence[Purification] = ()
    curves: Sequence[Curve] = ()
    clip: bytes | None = None
    """An MP4 film of a rollout."""
    clip_caption: str = ""
    command: str = ""
    """That made this page."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """More about how it was made: host-independent facts by name."""


def write_html(path: Path, report: Report) -> None:
    """Write the page; a failure leaves nothing behind, or what was there.

    Raises:
        EluteError: the path cannot be written.
    """
    with output(path) as temporary:
        temporary.write_text(page(report), encoding="utf-8", errors="replace")


def page(report: Report) -> str:
    """The whole page."""
    groups = grouped(report.rows)
    sections = [
        section
        for section in (
            _summary(report, groups),
            _audits(report.audits),
            changes_section(report.purifications),
            reverse_step_section(report.purifications),
            _curves(report.curves),
            bars_section(groups),
            tables_section(groups, report.rows),
            _made(report),
            _clip(report),
        )
        if section.content
    ]
    style, script = (_resource(name) for name in ("page.css", "page.js"))
    links = [element("li", element("a", s.title, href=f"#{s.id}")) for s in sections]
    return "<!doctype html>\n" + element(
        "html",
        element("head", *_head(report.title, style, script)),
        element(
            "body",
            element("a", "Skip to the contents", href="#main", class_="skip"),
            element(
                "header",
                element("p", "elute report", class_="kicker"),
                element("h1", report.title),
                element("nav", element("ul", *links), aria_label="Parts of this page"),
            ),
            element("main", *map(_drawn, sections), id="main", tabindex="-1"),
            element("footer", element("p", "Everything on this page is in this file.")),
            element("script", Html(script)),
        ),
        lang="en",
    )


def _resource(name: str) -> str:
    return (files("elute.report") / name).read_text(encoding="utf-8").strip()


def _head(title: str, style: str, script: str) -> Iterable[Html]:
    digests = [b64encode(sha256(s.encode()).digest()).decode() for s in (style, script)]
    policy = (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "img-src data:; media-src data:; base-uri 'none'; form-action 'none'"
    )
    yield element("meta", charset="utf-8")
    yield Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}"/>')
    yield element("meta", name="viewport", content="width=device-width, initial-scale=1")
    yield element("meta", name="color-scheme", content="light dark")
    yield element("title", title)
    yield element("link", rel="icon", href="data:,")
    yield element("style", Html(style))


def _drawn(section: Section) -> Html:
    heading = element("h2", section.title, id=f"{section.id}-title")
    return element("section", heading, section.content, id=section.id,
                   aria_labelledby=f"{section.id}-title")  # fmt: skip


def _summary(report: Report, groups: Sequence[Group]) -> Section:
    unscored = sum(not is_scored(row) for row in report.rows)
    told = [(short_name(p.name), p.facts) for p in report.purifications]
    sentences = summary(groups, report.audits, told, unscored)
    if not sentences:
        return Section("summary", "Summary", Html())
    lead, *more = map(unbroken, sentences)
    parts = [element("p", lead, class_="lead")]
    if more:
        parts.append(element("ul", *(element("li", sentence) for sentence in more)))
    if groups:
        parts.append(note("± is the standard error over seeds; intervals are 95 %, Student's."))
    return Section("summary", "Summary", join(parts))


def _audits(audits: Sequence[Json]) -> Section:
    parts = []
    for file, findings in by_file(audits).items():
        nothing = () if findings else (element("li", "Nothing found."),)
        parts.append(element("h3", short_name(file), title=file))
        parts.append(element("ul", *map(_finding, findings), *nothing, class_="findings"))
    return Section("audit", "What the audit found", join(parts))


def _finding(finding: Json) -> Html:
    severity = str(finding["severity"])
    known = severity if severity in ("error", "warning", "note") else "note"
    head = [element("span", severity, class_="badge"), " ", element("code", finding["code"])]
    advice = finding.get("advice")
    return element(
        "li",
        element("p", *head),
        element("p", sentence(finding["message"])),
        element("p", sentence(advice), class_="quiet") if advice else None,
        class_=known,
    )


def _curves(curves: Sequence[Curve]) -> Section:
    charts: dict[tuple[str, str], list[Curve]] = {}
    for curve in curves:
        if len(curve.x):
            charts.setdefault((curve.x_name, curve.y_name), []).append(curve)
    panels = [_curve_chart(*names, together) for names, together in charts.items()]
    content = element("div", *panels, class_="panels") if panels else Html()
    return Section("curves", "How learning went", content)


def _curve_chart(x_name: str, y_name: str, curves: Sequence[Curve]) -> Html:
    lines = [_thinned(curve, f"line-{k % STYLES}") for k, curve in enumerate(curves)]
    xs = [float(x) for line in lines for x in line.x]
    ends = "; ".join(f"{line.name} ends at {_last(line.y)}" for line in lines)
    chart = line_chart(
        f"{y_name} over {x_name}",
        f"{ends}.",
        lines,
        Axis(x_name, min(xs), max(xs)),
        spanning("", [y for line in lines for y in line.y]),
    )
    return figure(f"{y_name} over {x_name}", chart, legend([(li.style, li.name) for li in lines]))


def _thinned(curve: Curve, style: str) -> Line:
    kept = np.unique(np.linspace(0, len(curve.x) - 1, POINTS).round().astype(int)).tolist()
    return Line(curve.name, [curve.x[k] for k in kept], [curve.y[k] for k in kept], style)


def _last(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return number(known[-1]) if known else "nothing"


def _made(report: Report) -> Section:
    facts: list[tuple[str, Content]] = []
    if report.command:
        facts.append(("command", element("code", report.command)))
    rows = report.rows
    if rows:
        seeds = sorted({int(row["seed"]) for row in rows})
        facts.append(("runs", f"{len(rows)}, seeds {_ranges(seeds)}"))
        spent = sum(float(row.get("spent") or 0.0) for row in rows)
        if spent:
            facts.append(("computed in", f"{duration(spent)} of one core"))
        facts += [(name, ", ".join(found)) for name, found in _versions(rows).items()]
    facts += list(report.metadata.items())
    return Section("made", "How this was made", facts_list(facts) if facts else Html())


def _ranges(numbers: Sequence[int]) -> str:
    """`0 to 4, 7`."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(f"{r[0]} to {r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)


def _versions(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Every version that was used: runs of several are not quite comparable."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for name, version in (row.get("versions") or {}).items():
            if str(version) not in found.setdefault(str(name), []):
                found[str(name)].append(str(version))
    return found


def _clip(report: Report) -> Section:
    if not report.clip:
        return Section("clip", "A rollout", Html())
    uri = f"data:video/mp4;base64,{b64encode(report.clip).decode()}"
    caption = report.clip_caption or "A rollout of the policy"
    film = Html(f'<video controls muted loop playsinline preload="metadata" src="{uri}">')
    film = join([film, "This browser shows no MP4 films.", Html("</video>")])
    return Section("clip", "A rollout", figure(caption, film))
