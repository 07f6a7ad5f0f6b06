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
from typing import Any

import numpy as np

from elute.demos.audit.finding import counted
from elute.demos.output import output
from elute.report.changes import ColumnChange
from elute.report.charts import (
    STYLES,
    Axis,
    Bar,
    Line,
    bar_chart,
    histogram,
    line_chart,
    spanning,
)
from elute.report.groups import Group, Place, Row, grouped, is_scored, place, step
from elute.report.markup import Content, Html, element, join
from elute.report.numbers import duration, number, with_error
from elute.report.paper import REMARKS
from elute.report.statistics import winners
from elute.report.words import by_file, summary

Json = Mapping[str, Any]
POINTS = 200
"""Most points of a learning curve that are drawn."""
MOST_COLUMNS = 8
"""A longer table can be filtered."""


@dataclass(frozen=True, kw_only=True)
class Purification:
    """What became of one file."""

    name: str
    facts: Json
    """As `elute purify --json` prints them."""
    columns: tuple[ColumnChange, ...] = ()
    """Of `changes.column_changes`: what moved most."""


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


@dataclass(frozen=True)
class _Section:
    id: str
    title: str
    content: Html


def write_html(path: Path, report: Report) -> None:
    """Write the page; a failure leaves nothing behind, or what was there.

    Raises:
        EluteError: the path cannot be written.
    """
    with output(path) as temporary:
        temporary.write_text(page(report), encoding="utf-8")


def page(report: Report) -> str:
    """The whole page."""
    groups = grouped(report.rows)
    sections = [
        section
        for section in (
            _summary(report, groups),
            _audits(report.audits),
            _purifications(report.purifications),
            _reverse_steps(report.purifications),
            _curves(report.curves),
            _bars(groups),
            _tables(groups, report.rows),
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


def _drawn(section: _Section) -> Html:
    heading = element("h2", section.title, id=f"{section.id}-title")
    return element("section", heading, section.content, id=section.id,
                   aria_labelledby=f"{section.id}-title")  # fmt: skip


def _summary(report: Report, groups: Sequence[Group]) -> _Section:
    unscored = sum(not is_scored(row) for row in report.rows)
    told = [(_file(p.name), p.facts) for p in report.purifications]
    sentences = summary(groups, report.audits, told, unscored)
    if not sentences:
        return _Section("summary", "Summary", Html())
    lead, *more = map(_unbroken, sentences)
    parts = [element("p", lead, class_="lead")]
    if more:
        parts.append(element("ul", *(element("li", sentence) for sentence in more)))
    if groups:
        parts.append(_note("± is the standard error over seeds; intervals are 95 %, Student's."))
    return _Section("summary", "Summary", join(parts))


def _audits(audits: Sequence[Json]) -> _Section:
    parts = []
    for file, findings in by_file(audits).items():
        nothing = () if findings else (element("li", "Nothing found."),)
        parts.append(element("h3", _file(file), title=file))
        parts.append(element("ul", *map(_finding, findings), *nothing, class_="findings"))
    return _Section("audit", "What the audit found", join(parts))


def _finding(finding: Json) -> Html:
    severity = str(finding["severity"])
    known = severity if severity in ("error", "warning", "note") else "note"
    head = [element("span", severity, class_="badge"), " ", element("code", finding["code"])]
    advice = finding.get("advice")
    return element(
        "li",
        element("p", *head),
        element("p", _sentence(finding["message"])),
        element("p", _sentence(advice), class_="quiet") if advice else None,
        class_=known,
    )


def _purifications(purifications: Sequence[Purification]) -> _Section:
    parts = [part for purified in purifications for part in _purification(purified)]
    return _Section("changes", "What purification changed", join(parts))


def _purification(purified: Purification) -> Iterable[Html]:
    yield element("h3", _file(purified.name), title=purified.name)
    yield _facts(_purifier_facts(purified.facts))
    if purified.columns:
        yield _legend([("before", "before"), ("after", "after"), ("optimal", "optimal rows")])
        panels = map(_change, purified.columns)
        yield element("div", *panels, class_="panels")
    moved = purified.facts.get("moved") or {}
    if any(moved.values()):
        rows = [(name, number(by)) for name, by in moved.items() if by > 0]
        still = len(moved) - len(rows)
        caption = "Mean move of each column, in its own unit"
        table = _table(("column", "moved by"), rows, caption, numbers={1})
        others = (_note(f"{counted(still, 'other')} stayed as before."),) if still else ()
        title = f"The columns that moved ({len(rows)})"
        yield element("details", element("summary", title), table, *others)


def _purifier_facts(facts: Json) -> Iterable[tuple[str, Content]]:
    target = facts.get("target")
    yield "method", f"{facts['method']}, target {target}" if target else str(facts["method"])
    if facts.get("rows") is not None:
        yield "rows", f"{facts['rows']}, judged by {facts.get('optimal_rows', 0)} optimal ones"
    if facts.get("reverse_step") is not None:
        why = facts.get("reverse_step_why")
        yield "reverse step", f"{facts['reverse_step']}{f' ({why})' if why else ''}"
    for key, name in (("distance", "distance to the nearest optimal row"),
                      ("heldout_error", "held-out action error")):  # fmt: skip
        pair = facts.get(key) or {}
        if pair.get("before") is not None and pair.get("after") is not None:
            yield name, f"{number(pair['before'])} → {number(pair['after'])}"


def _change(change: ColumnChange) -> Html:
    """Row by row, and below it how the values are distributed."""
    caption = f"{change.name}: moved by {number(change.moved)} standard deviations"
    return _figure(caption, _series_chart(change), _distribution(change))


def _series_chart(change: ColumnChange) -> Html:
    rows = list(range(len(change.before)))
    low, high = change.optimal_range
    return line_chart(
        f"{change.name}, row by row",
        f"The first {len(rows)} rows before and after; the band holds 90 % of the optimal rows, "
        f"{number(low)} to {number(high)}.",
        [
            Line("before", rows, change.before, "before"),
            Line("after", rows, change.after, "after"),
        ],
        Axis("row", 0, max(1, len(rows) - 1)),
        spanning("", [*change.before, *change.after, low, high]),
        band=(low, high),
        stops=[stop - 0.5 for stop in change.stops],
    )


def _distribution(change: ColumnChange) -> Html:
    kinds = [kind for kind in ("optimal", "before", "after") if kind in change.histograms]
    low, high = change.edges
    return histogram(
        f"{change.name}, distribution",
        "The share of all rows at each value: before, after, and in the optimal rows.",
        [(kind, kind, change.histograms[kind]) for kind in kinds],
        Axis("value (height: share of rows)", low, high if high > low else low + 1),
        change.edges,
    )


def _reverse_steps(purifications: Sequence[Purification]) -> _Section:
    panels = [
        _step_curve(purified)
        for purified in purifications
        if len(purified.facts.get("candidates") or {}) > 1
    ]
    told = (
        "Optimal actions that were held out are spoilt, purified at every step that is tried, and "
        "compared with the truth. No simulator is needed. Step 0 is no purification."
    )
    content = join([element("p", told), element("div", *panels, class_="panels")])
    return _Section("reverse-step", "How far to go back", content if panels else Html())


def _step_curve(purified: Purification) -> Html:
    found = {int(k): float(v) for k, v in purified.facts["candidates"].items()}
    steps = sorted(found)
    errors = [found[k] for k in steps]
    chosen = purified.facts.get("reverse_step")
    places = list(range(len(steps)))
    shown = [(float(k), str(value)) for k, value in zip(places, steps, strict=True)]
    marked = (float(steps.index(chosen)), f"chosen: {chosen}") if chosen in steps else None
    chart = line_chart(
        f"Held-out action error at each reverse step, {_file(purified.name)}",
        ", ".join(f"{k}: {number(e)}" for k, e in found.items()) + f"; chosen {chosen}.",
        [Line("held-out action error", places, errors, "after", dots=True)],
        Axis("reverse step", -0.3, len(steps) - 0.7, shown),
        spanning("", errors, zero=True),
        chosen=marked,
    )
    rows = [(str(k), number(found[k]), "chosen" if k == chosen else "") for k in steps]
    head = ("reverse step", "held-out error", "")
    table = _table(head, rows, "Held-out action error at each step", numbers={0, 1})
    more = element("details", element("summary", "The same as a table"), table)
    return _figure(f"{_file(purified.name)}: held-out action error", chart, more)


def _curves(curves: Sequence[Curve]) -> _Section:
    charts: dict[tuple[str, str], list[Curve]] = {}
    for curve in curves:
        if len(curve.x):
            charts.setdefault((curve.x_name, curve.y_name), []).append(curve)
    panels = [_curve_chart(*names, together) for names, together in charts.items()]
    content = element("div", *panels, class_="panels") if panels else Html()
    return _Section("curves", "How learning went", content)


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
    return _figure(f"{y_name} over {x_name}", chart, _legend([(li.style, li.name) for li in lines]))


def _thinned(curve: Curve, style: str) -> Line:
    kept = np.unique(np.linspace(0, len(curve.x) - 1, POINTS).round().astype(int)).tolist()
    return Line(curve.name, [curve.x[k] for k in kept], [curve.y[k] for k in kept], style)


def _last(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return number(known[-1]) if known else "nothing"


def _bars(groups: Sequence[Group]) -> _Section:
    charts: dict[tuple[str, str], dict[Place, list[Group]]] = {}
    for group in groups:
        regime, task, _ = group.place
        charts.setdefault((task, regime), {}).setdefault(group.place, []).append(group)
    parts = []
    for (task, regime), places in charts.items():
        parts.append(element("h3", task, " ", element("small", f"regime {regime}")))
        panels = [_bar_panel(where, line) for where, line in places.items()]
        parts.append(element("div", *panels, class_="panels"))
    if parts:
        keys = [("plain", "unpurified"), ("after", "purified")]
        if any(group.paper for group in groups):
            keys.append(("mark", "the paper's number"))
        told = "Mean return over seeds; the line through a bar is the 95 % interval of its mean."
        parts = [element("p", told), _legend(keys), *parts]
    return _Section("returns", "What the policies earn", join(parts))


def _bar_panel(where: Place, line: Sequence[Group]) -> Html:
    size = max(abs(g.ours.mean) for g in line)
    title = f"Mean return on {where.task} with {where.demos}"
    chart = bar_chart(
        title,
        "; ".join(f"{g.name} {with_error(g.ours, size)}" for g in line),
        [_bar(g, size) for g in line],
    )
    return _figure(where.demos, chart)


def _bar(group: Group, size: float) -> Bar:
    paper = group.paper
    more = [f"95 % interval {_interval(group)}"] if group.ours.interval else []
    more += [f"in the paper {number(paper.mean)}"] if paper else []
    return Bar(
        name=group.name,
        value=group.ours.mean,
        shown=with_error(group.ours, size),
        style="after" if group.purified else "plain",
        interval=group.ours.interval,
        mark=paper.mean if paper else None,
        hint=f"{group.name}: {', '.join(more)}" if more else "",
    )


def _interval(group: Group) -> str:
    interval = group.ours.interval
    if interval is None:
        return ""
    size = max(map(abs, interval))
    return f"{number(interval.low, like=size)} to {number(interval.high, like=size)}"


def _tables(groups: Sequence[Group], rows: Sequence[Row]) -> _Section:
    if not groups:
        return _Section("tables", "All numbers", Html())
    parts = [*_result_table(groups)]
    if len(rows) > len(groups):
        title = f"Every run by itself ({len(rows)})"
        parts.append(element("details", element("summary", title), _run_table(rows)))
    return _Section("tables", "All numbers", join(parts))


def _result_table(groups: Sequence[Group]) -> Iterable[Html]:
    notes = list(dict.fromkeys(g.paper.note for g in groups if g.paper and g.paper.note))
    best = _best(groups)
    sizes: dict[Place, float] = {}
    for g in groups:
        sizes[g.place] = max(sizes.get(g.place, 0.0), abs(g.ours.mean))
    columns: dict[str, list[Content]] = {
        "task": [g.place.task for g in groups],
        "demonstrations": [g.place.demos for g in groups],
        "regime": [g.place.regime for g in groups],
        "method": [g.name for g in groups],
        "reverse step": [", ".join(map(str, g.chosen)) for g in groups],
        "return": [_return(g, sizes[g.place], (g.place, g.name) in best) for g in groups],
        "best": ["best" if (g.place, g.name) in best else "" for g in groups],
        "95 % interval": [_interval(g) for g in groups],
        "normalised": [_mean(g.normalised) for g in groups],
        "success": [_mean(g.success) for g in groups],
        "seeds": [str(g.ours.seeds) for g in groups],
        "paper": [_paper(g, notes) for g in groups],
    }
    kept = {name: values for name, values in columns.items() if any(values)}
    regimes = {g.place.regime for g in groups}
    if len(regimes) == 1:
        del kept["regime"]
    everywhere = f", regime {regimes.pop()}" if len(regimes) == 1 else ""
    texts = {"task", "demonstrations", "regime", "method", "best"}
    yield _table(
        tuple(kept),
        list(zip(*kept.values(), strict=True)),
        f"Mean return of every method on every set of demonstrations{everywhere}",
        numbers={k for k, name in enumerate(kept) if name not in texts},
        filtered=True,
    )
    if "best" in kept:
        yield _note("best: no other on the same demonstrations is clearly better.")
    if any(g.paper for g in groups):
        yield from _about_paper(groups, notes)


def _best(groups: Sequence[Group]) -> set[tuple[Place, str]]:
    """Of every place with several methods and seeds."""
    places: dict[Place, list[Group]] = {}
    for group in groups:
        places.setdefault(group.place, []).append(group)
    return {
        (where, name)
        for where, line in places.items()
        if len(line) > 1 and all(g.ours.interval for g in line)
        for name in winners({g.name: g.ours for g in line})
    }


def _return(group: Group, size: float, best: bool) -> Content:
    shown = with_error(group.ours, size)
    return element("strong", shown) if best else shown


def _mean(values: Sequence[float]) -> str:
    return f"{np.mean(values):.2f}" if values else ""


def _paper(group: Group, notes: Sequence[str]) -> Content:
    paper = group.paper
    if paper is None:
        return ""
    spread = "" if paper.spread is None else f" ± {number(paper.spread, like=paper.mean)}"
    shown = f"{number(paper.mean)}{spread}"
    if not paper.note:
        return shown
    k = notes.index(paper.note) + 1
    link = element("a", str(k), href=f"#note-{k}", aria_label=f"note {k}")
    return join([shown, element("sup", link)])


def _about_paper(groups: Sequence[Group], notes: Sequence[str]) -> Iterable[Html]:
    remarks = [REMARKS.get(t, "") for t in dict.fromkeys(g.paper.table for g in groups if g.paper)]
    if not all("real" in g.place.regime for g in groups):
        remarks.insert(0, "Our demonstrations were recorded anew, with our experts: the paper's "
                          "numbers are of other data.")  # fmt: skip
    told = " ".join(filter(None, remarks))
    yield _note(f"About the paper's numbers: {told}")
    if notes:
        items = [element("li", note, id=f"note-{k}") for k, note in enumerate(notes, start=1)]
        yield element("ol", *items, class_="quiet notes")


def _run_table(rows: Sequence[Row]) -> Html:
    head = ("task", "demonstrations", "regime", "method", "step", "seed", "return", "took", "run")
    made = []
    for row in rows:
        regime, task, demos = place(row)
        mean = number(row["metrics"]["mean"]) if is_scored(row) else "none"
        used = row.get("reverse_step") if step(row) else None
        seconds = sum((row.get("timings") or {}).values())
        made.append(
            (task, demos, regime, row["method"], used, row["seed"], mean, f"{seconds:.0f} s",
             str(row.get("digest", ""))[:8])
        )  # fmt: skip
    return _table(head, made, "Every run", numbers={4, 5, 6, 7}, filtered=True)


def _made(report: Report) -> _Section:
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
    return _Section("made", "How this was made", _facts(facts) if facts else Html())


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


def _clip(report: Report) -> _Section:
    if not report.clip:
        return _Section("clip", "A rollout", Html())
    uri = f"data:video/mp4;base64,{b64encode(report.clip).decode()}"
    caption = report.clip_caption or "A rollout of the policy"
    film = Html(f'<video controls muted loop playsinline preload="metadata" src="{uri}">')
    film = join([film, "This browser shows no MP4 films.", Html("</video>")])
    return _Section("clip", "A rollout", _figure(caption, film))


def _file(name: str) -> str:
    """A path without its folders, which say nothing to a reader elsewhere."""
    return name.rsplit("/", 1)[-1] if name.startswith(("/", ".")) else name


def _sentence(words: str) -> str:
    """With a capital and a full stop: findings are told as half sentences."""
    whole = words[:1].upper() + words[1:]
    return whole if whole.endswith((".", "!", "?")) else f"{whole}."


def _unbroken(words: str) -> str:
    """Numbers stay on a line with their error and unit."""
    return words.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}").replace(
        " %", "\N{NO-BREAK SPACE}%"
    )


def _note(words: str) -> Html:
    return element("p", words, class_="quiet")


def _facts(facts: Iterable[tuple[str, Content]]) -> Html:
    pairs = [element("div", element("dt", name), element("dd", value)) for name, value in facts]
    return element("dl", *pairs)


def _figure(caption: str, *content: Html) -> Html:
    return element("figure", element("figcaption", caption), *content)


def _legend(keys: Sequence[tuple[str, str]]) -> Html:
    items = [element("li", _key(style), name) for style, name in keys]
    return element("ul", *items, class_="legend")


def _key(style: str) -> Html:
    if style == "mark":
        drawn = element("path", d="M10 1l5 6l-5 6l-5-6z", class_="mark")
    else:
        drawn = element("path", d="M1 7H19", class_=f"line {style}")
    return element("svg", drawn, viewBox="0 0 20 14", aria_hidden="true")


def _table(
    head: Sequence[str],
    rows: Sequence[Sequence[Content]],
    caption: str,
    *,
    numbers: set[int],
    filtered: bool = False,
) -> Html:
    """Sorted by the page's script, and filtered where there are many rows."""
    titles = [
        element("th", name, scope="col", class_="n" if k in numbers else None)
        for k, name in enumerate(head)
    ]
    lines = [_row(row, numbers) for row in rows]
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *titles)),
        element("tbody", *lines),
        data_filter="yes" if filtered and len(rows) > MOST_COLUMNS else None,
    )
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _row(row: Sequence[Content], numbers: set[int]) -> Html:
    cells = [element("td", v, class_="n" if k in numbers else None) for k, v in enumerate(row)]
    return element("tr", *cells)
