"""The page in a real browser: keyboard, filter, dark mode, a phone, and nothing fetched.

Chromium is driven over its own pipe (file descriptors 3 and 4, messages ended by NUL), so that no
other library is needed.
"""

import fcntl
import json
import os
import select
import shutil
import signal
import time
from base64 import b64decode
from contextlib import contextmanager

import numpy as np
import pytest
from test_html import full_report

from elute.report.html import Report, write_html

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium: apt-get install chromium")
SECONDS = 60
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # tests may run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
)


class Page:
    """One tab. `events` holds what the browser told by itself."""

    def __init__(self, read, write):
        self.read, self.write, self.session, self.number = read, write, None, 0
        self.pending, self.events = b"", []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def __call__(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _next(self):
        while b"\0" not in self.pending:
            ready, _, _ = select.select([self.read], [], [], SECONDS)
            assert ready, "the browser does not answer"
            received = os.read(self.read, 1 << 20)
            assert received, "the browser is gone"
            self.pending += received
        message, _, self.pending = self.pending.partition(b"\0")
        return json.loads(message)

    def open(self, path):
        before = len(self.told("Page.loadEventFired"))
        self("Page.navigate", url=path.as_uri())
        while len(self.told("Page.loadEventFired")) == before:
            self.events.append(self._next())

    def value(self, expression):
        answer = self("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key, code, text=""):
        names = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self("Input.dispatchKeyEvent", type="keyDown", text=text, **names)
        self("Input.dispatchKeyEvent", type="keyUp", **names)

    def tab(self):
        self.press("Tab", 9)

    def enter(self):
        self.press("Enter", 13, "\r")

    def size(self, width, height, mobile=False):
        self(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=mobile,
        )  # fmt: skip

    def colours(self, scheme):
        wanted = [{"name": "prefers-color-scheme", "value": scheme}]
        self("Emulation.setEmulatedMedia", features=wanted)

    def screenshot(self, path):
        taken = self("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(b64decode(taken["data"]))
        assert path.read_bytes().startswith(b"\x89PNG")

    def told(self, method):
        return [event["params"] for event in self.events if event.get("method") == method]


@contextmanager
def browser(home):
    """A tab of a new browser that is gone afterwards."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # not 3 or 4 themselves, which would be overwritten one by the other
    given = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (theirs_in, theirs_out)]
    os.close(theirs_in)
    os.close(theirs_out)
    log = home / "chromium.log"
    pid = os.posix_spawn(
        BROWSER,
        [BROWSER, *FLAGS, f"--user-data-dir={home / 'profile'}", "about:blank"],
        os.environ | {"HOME": str(home)},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, given[0], 3),
            (os.POSIX_SPAWN_DUP2, given[1], 4),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setpgroup=0,
    )
    for end in given:
        os.close(end)
    try:
        yield Page(ours_in, ours_out)
    finally:
        os.close(ours_out)  # it ends by itself when the pipe does
        os.close(ours_in)
        _end(pid)


def _end(pid):
    until = time.monotonic() + 10
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.killpg(pid, signal.SIGKILL)
        time.sleep(0.05)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def chromium(home):
    with browser(home) as page:
        yield page


@pytest.fixture
def page(chromium, home):
    """The full report, opened anew in the light, on a desktop."""
    path = home / "report.html"
    if not path.exists():
        write_html(path, full_report())
    chromium.size(1100, 800)
    chromium.colours("light")
    chromium.events.clear()
    chromium.open(path)
    return chromium


def column(page, name):
    """What stands in a column of the table of results, of rows that are shown."""
    return page.value(
        f"""(() => {{
          const table = document.querySelector("#tables table");
          const k = [...table.tHead.rows[0].cells].findIndex(c => c.textContent === {name!r});
          return [...table.tBodies[0].rows].filter(r => !r.hidden)
            .map(r => r.cells[k].textContent);
        }})()"""
    )


def sorting(page):
    return page.value(
        "Object.fromEntries([...document.querySelectorAll('#tables table')[0].tHead.rows[0].cells]"
        ".map(c => [c.textContent, c.getAttribute('aria-sort')]))"
    )


def focus_head(page, name):
    """Walk to a button by Tab alone, as one without a mouse does."""
    page.value("document.querySelector('#tables input').focus()")
    for _ in range(30):
        page.tab()
        if page.value("document.activeElement.textContent") == name:
            return
    pytest.fail(f"{name} cannot be reached by the keyboard")


def test_nothing_is_fetched_and_nothing_complains(page, home):
    asked = [told["request"]["url"] for told in page.told("Network.requestWillBeSent")]
    outside = [url for url in asked if not url.startswith(("data:", "blob:", "file:///"))]
    pages = [url for url in asked if url.startswith("file:")]
    assert outside == []
    assert pages == [(home / "report.html").as_uri()]
    assert page.told("Runtime.exceptionThrown") == []
    assert page.told("Runtime.consoleAPICalled") == []
    assert page.told("Log.entryAdded") == []
    assert page.value("window.hacked") is None
    assert page.value("document.styleSheets.length") == 1  # the policy let it in


def test_a_table_sorts_by_keyboard(page):
    before = [float(text.split()[0]) for text in column(page, "return")]
    assert before != sorted(before)
    assert set(sorting(page).values()) == {"none"}
    focus_head(page, "return")
    assert page.value("document.activeElement.matches(':focus-visible')")
    page.enter()
    assert [float(text.split()[0]) for text in column(page, "return")] == sorted(before)
    assert sorting(page)["return"] == "ascending"
    page.press(" ", 32, " ")
    falling = [float(text.split()[0]) for text in column(page, "return")]
    assert falling == sorted(before, reverse=True)
    assert sorting(page)["return"] == "descending"
    focus_head(page, "paper")
    page.enter()
    known = [text for text in column(page, "paper") if text]
    assert column(page, "paper")[: len(known)] == known  # what is missing stays below
    assert [name for name, way in sorting(page).items() if way != "none"] == ["paper"]


def test_a_table_is_filtered_by_words(page):
    everything = column(page, "method")
    assert page.value("document.querySelector('#tables input').labels[0].textContent")
    page.value("document.querySelector('#tables input').focus()")
    page("Input.insertText", text="HOPPER heavy")
    wanted = page.value("document.querySelector('#tables output').textContent")
    assert set(column(page, "task")) == {"hopper"}
    assert set(column(page, "demonstrations")) == {"action-noise/heavy"}
    assert wanted == f"{len(column(page, 'task'))} of {len(everything)} rows"
    page("Input.insertText", text=" nowhere")
    assert column(page, "task") == []
    page.value("document.querySelector('#tables input').select()")
    page.press("Backspace", 8)
    assert column(page, "method") == everything


def test_it_turns_dark(page, home):
    def lightness(what, of="body"):
        colour = page.value(f"getComputedStyle(document.querySelector({of!r})).{what}")
        return sum(int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])

    assert lightness("backgroundColor") > 600
    assert lightness("color") < 200
    page.screenshot(home / "light.png")
    page.colours("dark")
    assert lightness("backgroundColor") < 200
    assert lightness("color") > 600
    assert lightness("fill", ".chart .strong") > 600  # charts, too
    page.screenshot(home / "dark.png")


def test_a_phone_needs_no_sideways_scrolling(page, home):
    page.size(360, 740, mobile=True)
    page.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.value("innerWidth") == 360
    assert page.value("document.documentElement.scrollWidth") == 360
    wide = """[...document.querySelectorAll("body *")].filter(e => !e.closest(".scroll, svg, .skip")
              && e.getBoundingClientRect().right > 360.5).map(e => e.outerHTML.slice(0, 80))"""
    assert page.value(wide) == []
    assert (
        page.value("""[...document.querySelectorAll("#tables .scroll")]
                         .some(e => e.scrollWidth > e.clientWidth)""")
    )  # tables scroll in themselves
    smallest = """Math.min(...[...document.querySelectorAll(".chart text")]
                  .map(e => e.getBoundingClientRect()).filter(r => r.height).map(r => r.height))"""
    assert page.value(smallest) > 9
    page.screenshot(home / "phone.png")


def test_the_first_stop_leads_past_the_links(page):
    page.tab()
    assert page.value("document.activeElement.getAttribute('href')") == "#main"
    assert page.value("document.activeElement.getBoundingClientRect().left") >= 0
    page.enter()
    assert page.value("document.activeElement.id") == "main"


def test_without_scripts_everything_is_there(page, home):
    count = "document.querySelectorAll('#tables tbody tr').length"
    rows = page.value(count)
    page("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(home / "report.html")
        assert page.value(count) == rows
        assert page.value("document.querySelectorAll('button, input').length") == 0
        assert page.value("document.querySelectorAll('svg.chart').length") > 3
    finally:
        page("Emulation.setScriptExecutionDisabled", value=False)


def test_the_clip_plays(chromium, home):
    imageio = pytest.importorskip("imageio.v2", reason="films need elute[video]")
    pytest.importorskip("imageio_ffmpeg", reason="films need elute[video]")
    film = home / "film.mp4"
    with imageio.get_writer(film, fps=10, macro_block_size=1) as writer:
        for level in range(0, 200, 20):
            writer.append_data(np.full((48, 64, 3), level, dtype=np.uint8))
    path = home / "clip.html"
    write_html(path, Report(clip=film.read_bytes()))
    chromium.open(path)
    until = time.monotonic() + SECONDS
    while not chromium.value("document.querySelector('video').readyState"):
        assert time.monotonic() < until, "the film does not load"
        time.sleep(0.05)
    assert chromium.value("document.querySelector('video').duration") == pytest.approx(1.0)
    assert chromium.value("document.querySelector('video').videoWidth") == 64
