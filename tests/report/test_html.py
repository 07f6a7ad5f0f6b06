"""The page as text: what is told, in which words, and that text is never markup."""

import json
import re
from base64 import b64decode
from dataclasses import asdict, replace
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from pydantic import TypeAdapter

from elute.demos.corrupt import corrupt
from elute.demos.pointmass import pointmass
from elute.errors import EluteError
from elute.report.changes import ColumnChange, column_changes
from elute.report.charts import Axis, Bar, Line, bar_chart, line_chart
from elute.report.groups import grouped
from elute.report.html import Curve, Purification, Report, page, write_html
from elute.report.markup import Html, element
from elute.report.numbers import duration, number, tick_labels, ticks
from elute.report.words import summary

EVIL = "<script>window.hacked = 1</script>\"'&"
VERSIONS = {"elute": "0.1.0", "torch": "2.13.0", "mujoco": "3.9.0"}

PAPER_RUN = {"preset": "paper", "purifier": None, "settings": {}}


def row(method="bc-all", mean=500.0, seed=0, task="hopper", demos="action-noise/heavy", **more):
    dp = method.startswith("dp-")
    made = {
        "digest": sha256(f"{method}{task}{demos}{seed}".encode()).hexdigest(),
        "method": method,
        "task": task,
        "demos": demos,
        "regime": "episode",
        "target": "inpaint" if dp else None,
        "reverse_step": 60 if dp else None,
        "auto": dp,
        "seed": seed,
        "run": {
            "preset": "default", "purifier": {"preset": "default"} if dp else None, "settings": {},
        },
        "data": None,
        "metrics": {"mean": mean, "stderr": 20.0, "normalised": mean / 4000, "success": 0.5,
                    "returns": [mean] * 10, "lengths": [1000] * 10},
        "timings": {"train": 20.1, "evaluate": 5.0},
        "spent": 36.0,
        "versions": VERSIONS,
    }  # fmt: skip
    return made | more


def seeds(method, means, **more):
    return [row(method, mean, seed, **more) for seed, mean in enumerate(means)]


PURIFIED = {
    "method": "diffusion",
    "reverse_step": 60,
    "reverse_step_why": "actions should err least",
    "target": "inpaint",
    "seed": 0,
    "heldout_error": {"before": 0.32134, "after": 0.15427},
    "candidates": {"0": 0.32134, "10": 0.26383, "60": 0.15427, "300": 0.35775},
    "rows": 300,
    "optimal_rows": 200,
    "moved": {"observation[0]": 0.0, "action[0]": 0.3374, "action[1]": 0.3628},
    "distance": {"before": 0.49762, "after": 0.37088},
}
AUDIT = {
    "file": "/somewhere/else/noisy.npz",
    "rows": 5137,
    "findings": [
        {"code": "misaligned", "severity": "error", "message": "misaligned by 1 row",
         "advice": "realign it", "file": "/somewhere/else/good.npz", "about_optimal": True},
        {"code": "low-coverage", "severity": "warning", "message": "93% lie farther",
         "advice": "check", "file": "/somewhere/else/noisy.npz"},
    ],
    "episodes": [],
}  # fmt: skip


def changed():
    clean = pointmass(3)
    return column_changes(corrupt(clean, "gaussian", 0.6), clean, pointmass(2, seed=1))


def full_report():
    """Something of every part, for the browser, too."""
    rows = [
        line
        for k, demos in enumerate(("action-noise/heavy", "action-noise/light", "checkpoint/early"))
        for task in ("hopper", "walker2d")
        for method, mean in (("bc-all", 573), ("isw-bc", 700), ("bcnd", -80), ("dp-bc", 3925))
        for line in seeds(
            method, [mean + 300 * k + 40 * s for s in range(3)], task=task, demos=demos
        )
    ]
    x = list(range(0, 1000, 10))
    return Report(
        rows=rows + seeds("bc-all", [1.0, 2.0], task=EVIL, demos=EVIL),
        audits=[AUDIT, AUDIT, {"file": EVIL, "rows": 1, "findings": []}],
        purifications=[Purification(name="hopper/noisy", facts=PURIFIED, columns=changed())],
        curves=[Curve(name=f"{EVIL}{k}", x=x, y=[1 / (1 + k + a) for a in x]) for k in range(9)],
        clip=b"\0\0\0\x18ftypmp42",
        clip_caption="dp-bc, seed 0",
        command="elute report --html report.html",
        metadata={"machine": "two cores"},
    )


class Tree(HTMLParser):
    """Elements in order, with their attributes and what is written in them."""

    VOID = frozenset({"meta", "link", "input"})

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.ids = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        found = [tag, dict(attrs), ""]
        self.elements.append(found)
        if tag not in self.VOID:
            self.open.append(found)

    def handle_startendtag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        for found in self.open:
            found[2] += data

    def all(self, tag):
        return [found for found in self.elements if found[0] == tag]

    def texts(self, tag):
        return [found[2] for found in self.all(tag)]


@pytest.fixture(scope="module")
def tree():
    return Tree(page(full_report()))


def told(*rows, audits=(), purifications=()):
    return summary(grouped(rows), audits, purifications)


# ---- what is told


def test_parts_come_in_their_order(tree):
    assert [found[1]["id"] for found in tree.all("section")] == [
        "summary", "audit", "changes", "reverse-step", "curves", "returns", "tables", "made", "clip"
    ]  # fmt: skip
    links = [found[1]["href"][1:] for found in tree.all("a") if found[1]["href"] != "#main"]
    assert set(links) <= {found[1].get("id") for found in tree.elements}


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (Report(), []),
        (Report(rows=[row()]), ["summary", "returns", "tables", "made"]),
        (Report(audits=[AUDIT]), ["summary", "audit"]),
        (Report(command="elute report"), ["made"]),
        (
            Report(purifications=[Purification(name="n", facts=PURIFIED | {"candidates": {}})]),
            ["summary", "changes"],
        ),
    ],
)
def test_what_there_is_nothing_of_is_left_out(report, expected):
    assert [found[1]["id"] for found in Tree(page(report)).all("section")] == expected


def test_a_clear_difference_is_told_as_one():
    lead, *_ = told(*seeds("bc-all", [560, 573, 586]), *seeds("dp-bc", [3900, 3925, 3950]))
    assert "purified demonstrations gave 3925 ± 14 (dp-bc, 3 seeds)" in lead
    assert "unpurified ones 573 ± 8 (bc-all, 3 seeds): clearly better." in lead
    assert "98 % instead of 14 %" in lead
    lead, *_ = told(*seeds("bc-all", [3900, 3925, 3950]), *seeds("dp-bc", [560, 573, 586]))
    assert "clearly worse." in lead


def test_an_unclear_difference_is_told_as_one():
    overlapping, *_ = told(*seeds("bc-all", [500, 900]), *seeds("dp-bc", [600, 1100]))
    assert "perhaps better (the 95 % intervals overlap: it may be chance)" in overlapping
    single, *_ = told(*seeds("bc-all", [500]), *seeds("dp-bc", [900]))
    assert "better (one seed: it may be chance)" in single
    assert "±" not in single
    mixed, *_ = told(*seeds("bc-all", [500, 510, 505]), *seeds("dp-bc", [900]))
    assert "perhaps better (one seed: it may be chance)" in mixed
    for sentence in (overlapping, single, mixed):
        assert "clearly" not in sentence
    same, *_ = told(*seeds("bc-all", [500]), *seeds("dp-bc", [500]))
    assert ": the same." in same


def test_many_comparisons_are_counted():
    rows = []
    for task, gain in (("hopper", 900), ("ant", 10), ("walker2d", -900)):
        rows += seeds("bc-all", [1000, 1020, 1040], task=task)
        rows += seeds("dp-bc", [1000 + gain, 1020 + gain, 1040 + gain], task=task)
    lead, chance, extremes, *_ = told(*rows)
    assert "clearly better than unpurified ones (bc-all) on 1 of 3 sets" in lead
    assert "clearly worse on 1; on 1 it may be chance" in lead
    # of 9 pairs each, 9, 6 and 0 are won
    assert "probability 56 %" in chance
    assert "Most was gained on hopper" in extremes
    assert "most was lost on walker2d with action-noise/heavy (from 1020 to 120)" in extremes


def test_one_seed_of_many_sets_is_hedged():
    rows = [
        line
        for task in ("ant", "hopper")
        for line in (*seeds("bc-all", [1000], task=task), *seeds("dp-bc", [2000], task=task))
    ]
    lead = told(*rows)[0]
    assert "on 2 of 2 sets" in lead
    assert "with one seed each: any one may be chance" in lead


def test_a_chosen_step_stands_for_a_sweep():
    rows = [
        *seeds("bc-all", [500, 510]),
        *seeds("dp-bc", [900, 910]),
        *seeds("dp-bc", [700, 710], auto=False, reverse_step=10),
    ]
    sentences = told(*rows)
    assert sum("unpurified" in sentence for sentence in sentences) == 1
    assert [group.name for group in grouped(rows)] == ["bc-all", "dp-bc", "dp-bc @10"]


def test_nothing_to_compare_is_told():
    lead = told(*seeds("bc-all", [500, 510]), *seeds("dwbc", [700, 710]))[0]
    assert lead.startswith("2 methods on 1 set of demonstrations; no method is there both")


def test_a_later_line_of_a_seed_replaces_the_earlier():
    group, *others = grouped([row(mean=1.0), row(mean=5.0)])
    assert (group.scores, others) == ((5.0,), [])


def test_other_settings_are_other_groups_and_say_so():
    rows = [*seeds("bc", [1.0, 2.0]), *seeds("bc", [3.0, 4.0], run=PAPER_RUN)]
    assert [group.name for group in grouped(rows)] == ["bc (preset default)", "bc (preset paper)"]


def test_a_run_without_a_score_is_left_out_and_told():
    rows = [row(mean=float("nan")), row(mean=5.0, seed=1)]
    assert [group.scores for group in grouped(rows)] == [(5.0,)]
    assert "Left out, without a finite score: 1 run." in page(Report(rows=rows))


def test_what_purification_did_is_told():
    sentence = told(purifications=[("noisy.npz", PURIFIED)])[0]
    assert "Purification of noisy.npz moved 2 of 3 columns and left rows nearer" in sentence
    assert "0.498 before, 0.371 after" in sentence
    assert "at reverse step 60 the held-out action error goes from 0.321 to 0.154" in sentence
    untouched = told(purifications=[("noisy.npz", PURIFIED | {"reverse_step": 0})])[0]
    assert "left as it was" in untouched


def test_findings_stand_by_file_without_its_folders(tree):
    text = page(full_report())
    assert [t for t in tree.texts("h3") if t.endswith(".npz")] == ["noisy.npz", "good.npz"]
    assert "Misaligned by 1 row." in text
    assert "The audit of 3 files found 1 error, 1 warning." in text
    assert "Nothing found." in text


def test_the_papers_number_stands_beside_ours_with_its_doubts():
    rows = [*seeds("dp-bc", [1.0, 2.0], task="hopper", demos="action-noise/light")]
    found = Tree(page(Report(rows=rows)))
    cells = found.texts("td")
    assert "1825 ± 1371" in cells  # the number, and note 1
    assert any("step 1 is not in the reverse-step table" in text for text in found.texts("ol"))
    real = Tree(page(Report(rows=[row(data={"optimal": "good.h5"})])))
    assert not any("recorded anew" in text for text in real.texts("p"))


def test_every_version_that_was_used_is_named():
    rows = [row(), row(seed=1, versions=VERSIONS | {"mujoco": "3.3.0"})]
    assert "3.9.0, 3.3.0" in Tree(page(Report(rows=rows))).texts("dd")
    assert "2, seeds 0 to 1" in Tree(page(Report(rows=rows))).texts("dd")


def test_the_clip_is_in_the_page(tree):
    (film,) = tree.all("video")
    assert {"controls", "muted", "loop"} <= set(film[1])
    kind, _, data = film[1]["src"].partition(",")
    assert kind == "data:video/mp4;base64"
    assert b64decode(data) == full_report().clip


# ---- safe, whole, small


def test_text_is_never_markup(tree):
    text = page(full_report())
    assert "<script>window" not in text
    assert len(tree.all("script")) == 1
    assert EVIL in tree.texts("td")  # it is shown as it is
    assert not [k for _, attributes, _ in tree.elements for k in attributes if k.startswith("on")]


def test_nothing_comes_from_elsewhere(tree):
    for tag, attributes, _ in tree.elements:
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            assert attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes)
    for name in ("page.css", "page.js"):
        text = (files("elute.report") / name).read_text()
        assert not re.search(r"url\(|@import|https?:|fetch|import\s|innerHTML|eval", text)
        assert "</" not in text


def test_only_markup_is_markup():
    assert element("p", "a<b", Html("<b>c</b>")) == "<p>a&lt;b<b>c</b></p>"
    assert element("p", title='"&') == '<p title="&quot;&amp;"></p>'
    assert element("p", "\0a\n") == "<p>\N{REPLACEMENT CHARACTER}a\n</p>"
    assert element("rect", x=1.04, y=2.0, class_=None) == '<rect x="1" y="2"/>'


def test_those_who_do_not_see_are_told_the_same(tree):
    charts = [found for found in tree.all("svg") if found[1].get("class") == "chart"]
    assert len(charts) > 8
    assert len(tree.texts("desc")) == len(charts)
    assert all(text.strip() for text in tree.texts("desc"))
    assert all(found[1].get("role") == "img" for found in charts)
    assert len(tree.all("caption")) == len(tree.all("table"))
    assert all(found[1].get("scope") == "col" for found in tree.all("th"))
    assert [len(tree.all(tag)) for tag in ("header", "nav", "main", "footer", "h1")] == [1] * 5
    levels = [int(tag[1]) for tag, _, _ in tree.elements if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [found[1]["id"] for found in tree.elements if "id" in found[1]]
    assert len(set(ids)) == len(ids)
    assert tree.all("html")[0][1]["lang"] == "en"


def _luminance(colour):
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _contrast(one, other):
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_colours_can_be_read(dark):
    css = (files("elute.report") / "page.css").read_text()
    light, turned = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    colours = dict(re.findall(r"--(\w+): (#\w{6})", turned if dark else light))
    for ground in ("page", "card"):
        for name in ("ink", "quiet", "link", "error", "warning"):  # text: WCAG AA
            assert _contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        for name in ("before", "after", "optimal", "fourth", "plain", "focus", "mark"):
            assert _contrast(colours[name], colours[ground]) >= 3, (name, ground)


def test_a_thousand_runs_stay_small():
    rows = [
        line
        for task in ("ant", "halfcheetah", "hopper", "walker2d")
        for demos in ("action-noise/heavy", "action-noise/medium", "action-noise/light",
                      "checkpoint/early", "checkpoint/late")
        for method in ("bc-opt", "bc-all", "bcnd", "dwbc", "demodice", "isw-bc", "smodice", "dbc",
                       "diffusion-bc", "dp-bc")
        for line in seeds(method, [100.0, 2000.0, 300.5, 1.0, 7.25], task=task, demos=demos)
    ]  # fmt: skip
    assert len(rows) == 1000
    made = page(replace(full_report(), rows=rows, clip=None))
    assert len(made.encode()) < 500_000


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "report.html"
    write_html(path, full_report())
    first = path.read_bytes()
    write_html(path, full_report())
    assert path.read_bytes() == first
    with pytest.raises(KeyError):
        write_html(path, Report(rows=[{"metrics": {"mean": 1.0}}]))
    assert path.read_bytes() == first
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(EluteError, match="does not exist"):
        write_html(tmp_path / "no" / "report.html", Report())


def test_a_name_that_is_no_text_is_written_all_the_same(tmp_path):
    path = tmp_path / "report.html"
    write_html(path, Report(audits=[{"file": "a\udcff.npz", "findings": []}]))
    assert "a?.npz" in path.read_text(encoding="utf-8")


# ---- what changed, charts, numbers


def test_changes_are_plain_data_and_right():
    clean = pointmass(3)
    pairs = clean.pairs.copy()
    pairs[:, 2] += 2 * pairs[:, 2].std()
    moved = clean.with_pairs(pairs, "push")
    (change,) = column_changes(clean, moved, clean)
    scale = clean.pairs[:, 2].std()
    assert change.name == clean.observation_columns[2].name
    assert change.moved == pytest.approx(2.0, rel=1e-3)
    assert change.before == pytest.approx(clean.pairs[:100, 2], rel=1e-3, abs=1e-9)
    assert np.subtract(change.after, change.before) == pytest.approx(2 * scale, rel=1e-2)
    assert change.stops == tuple(s for s in clean.episodes.stops[:-1].tolist())
    assert change.histograms["before"] == change.histograms["optimal"]
    assert {kind: pytest.approx(sum(h), abs=0.01) for kind, h in change.histograms.items()} == {
        "before": 1.0, "after": 1.0, "optimal": 1.0
    }  # fmt: skip
    again = json.loads(json.dumps(asdict(change)))
    assert TypeAdapter(ColumnChange).validate_python(again) == change
    assert column_changes(clean, clean, clean) == ()


def test_changes_need_the_same_rows():
    clean = pointmass(3)
    with pytest.raises(EluteError, match="not the same rows"):
        column_changes(clean, clean.first(10), clean)


def test_bars_are_as_long_as_their_numbers_and_wild_intervals_are_cut():
    bars = [
        Bar("a", 100.0, "100", "plain", (90.0, 110.0)),
        Bar("b", -50.0, "-50", "after", (-9000.0, 9000.0)),
    ]
    drawn = bar_chart("t", "d", bars)
    widths = [float(w) for w in re.findall(r'<rect [^>]*?width="([\d.]+)"', drawn)]
    assert widths[0] / widths[1] == pytest.approx(2.0, rel=0.02)
    ends = [float(x) for x in re.findall(r"M([\d.]+) [\d.]+v8", drawn)]
    assert max(ends) <= 320
    assert min(ends) >= 0


def test_a_line_has_gaps_where_nothing_is_known():
    chart = line_chart(
        "t", "d", [Line("a", [0, 1, 2, 3], [0.0, 1.0, None, 0.0], "after")],
        Axis("x", 0, 3), Axis("y", 0, 1),
    )  # fmt: skip
    (path,) = re.findall(r'<path d="([^"]+)" class="line after"', chart)
    assert path == "M42.0 152.0L131.3 12.0M310.0 152.0"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(3925.4, "3925"), (-80.04, "-80.0"), (1.234, "1.23"), (0.3213, "0.321"), (0.00123, "0.0012"),
     (0.0, "0"), (-0.0, "0"), (1e-9, "1e-09")],
)  # fmt: skip
def test_numbers_have_about_three_digits(value, shown):
    assert number(value) == shown


def test_numbers_side_by_side_agree():
    assert number(7.4, like=3925.0) == "7"
    assert number(-0.2, like=3925.0) == "0"
    assert duration(12.0) == "12.0 s"
    assert duration(600.0) == "10.0 min"
    assert duration(36_000.0) == "10.0 h"


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [(0, 10_000, ["0", "2500", "5000", "7500", "10000"]), (-1, 1, ["-1", "-0.5", "0", "0.5", "1"]),
     (0.1, 0.35, ["0.1", "0.2", "0.3"]), (5, 5, ["5"])],
)  # fmt: skip
def test_ticks_are_round_numbers_inside(low, high, labels):
    assert tick_labels(ticks(low, high)) == labels
