"""The page of `dssync report` in a browser: charts are drawn, no text covers another, nothing is loaded, no script fails."""

import html
import json
import re
import shutil
import subprocess

import pytest
from conftest import ENVIRONMENT
from report_helper import log, write

CHROMIUM = shutil.which("chromium")

# Before the page's own script: what goes wrong. After it: what is there.
WATCH = """<script>
window.problems = [];
addEventListener('error', (event) => problems.push(String(event.message)));
addEventListener('unhandledrejection', (event) => problems.push(String(event.reason)));
addEventListener('securitypolicyviolation', (event) => problems.push(event.blockedURI));
</script>"""
PROBE = """<script>
const inked = (svg) => [...svg.querySelectorAll('path, rect, circle')].filter((shape) => {
  const box = shape.getBBox();
  return box.width + box.height > 1;
}).length;
const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
const covered = [];
const outside = [];
for (const svg of document.querySelectorAll('figure svg:not(.swatch)')) {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].filter((text) => text.textContent).map((text) => [text.textContent, text.getBoundingClientRect()]);
  texts.forEach(([text, box], i) => {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) outside.push(text);
    texts.slice(i + 1).forEach(([other, place]) => { if (overlap(box, place)) covered.push(text + ' / ' + other); });
  });
}
const chart = document.querySelector('#chart-accuracy-iterations svg.lines');
const area = chart.getBoundingClientRect();
chart.dispatchEvent(new PointerEvent('pointermove', { clientX: area.left + area.width / 2, clientY: area.top + area.height / 2 }));
const readout = document.querySelector('.readout')?.textContent ?? '';
const color = () => getComputedStyle(document.body).backgroundColor;
const before = color();
document.querySelector('#theme').click();
const folded = () => document.querySelectorAll('details:not([open])').length;
const onScreen = folded();
dispatchEvent(new Event('beforeprint'));
const result = {
  problems, covered, outside, readout,
  charts: Object.fromEntries([...document.querySelectorAll('figure[id]')].map((figure) => [figure.id, inked(figure.querySelector('svg:not(.swatch)'))])),
  rounds: document.querySelectorAll('figure.round').length,
  loaded: performance.getEntriesByType('resource').map((entry) => entry.name),
  colors: [before, color()],
  folded: [onScreen, folded()],
  wider: document.documentElement.scrollWidth - innerWidth,
};
const out = document.createElement('pre');
out.id = 'probe';
out.textContent = JSON.stringify(result);
document.body.replaceChildren(out);
</script>"""


@pytest.fixture
def probe(dssync, tmp_path):
    """Makes a page of the logs, opens it in a window of the given width, and returns what was found there."""

    def run(*files, width=1240):
        page = tmp_path / "page.html"
        result = dssync("report", *files, "-o", page)
        assert result.returncode == 0, result.stderr
        text = page.read_text(encoding="utf-8").replace("<head>", "<head>" + WATCH).replace("</body>", PROBE + "</body>")
        probed = tmp_path / "probed.html"
        probed.write_text(text, encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile", f"--window-size={width},3000"]
        shown = subprocess.run([CHROMIUM, *flags, "--dump-dom", probed.as_uri()], env=ENVIRONMENT | {"HOME": str(tmp_path)},
                               capture_output=True, encoding="utf-8", timeout=120)
        found = re.search(r'<pre id="probe">(.*?)</pre>', shown.stdout, re.DOTALL)
        assert found, shown.stderr[-2000:]
        return json.loads(html.unescape(found.group(1)))

    return run


pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the report's page is not opened")


@pytest.fixture
def logs(tmp_path):
    replanned = {"event": "replanned", "iteration": 40, "seconds": 4.0, "reason": "rack-b up is slow"}
    return [
        write(tmp_path / "one.jsonl", log("ds-sync", seed=1, network_bytes=8e5, extra=[replanned])),
        write(tmp_path / "two.jsonl", log("ds-sync", seed=2, network_bytes=8e5)),
        write(tmp_path / "ring.jsonl", log("bsp-ring", pace=0.4, network_bytes=8e5)),
        write(tmp_path / "asp.jsonl", log("asp", pace=0.05, best=0.8)),
        write(tmp_path / "bad.jsonl", log("ps", iterations=30, end="failed")),
    ]


@pytest.mark.parametrize("width", [1240, 500])
def test_the_page_in_a_browser(probe, logs, width):
    found = probe(*logs, width=width)
    assert found["problems"] == [] and found["loaded"] == []
    assert found["covered"] == [] and found["outside"] == []
    charts = ["time-to-accuracy", "accuracy-time", "accuracy-iterations", "loss", "split", "pace", "disagreement",
              "links-1", "links-2", "network-1", "network-2"]
    assert {f"chart-{name}" for name in charts} <= set(found["charts"])
    assert min(found["charts"].values()) >= 3
    assert found["rounds"] == 4  # two of each plan
    assert "ds-sync, seed 1" in found["readout"] and "%" in found["readout"]
    assert found["colors"][0] != found["colors"][1]
    assert found["wider"] <= 0
    assert found["folded"][0] > 0 and found["folded"][1] == 0  # on the screen, and on paper


def test_long_names_find_room(probe, tmp_path):
    long = "a-very-long-value-of-an-option-that-somebody-thought-was-fine"
    files = [write(tmp_path / f"{i}.jsonl", log(options={"one_option": long, "another": f"{long}-{i}"}, pace=0.1 + i / 7)) for i in range(9)]
    found = probe(*files)
    assert found["problems"] == [] and found["covered"] == [] and found["outside"] == [] and found["wider"] <= 0
