"""`dssync report`: what it makes of logs, what it says to files that are none, what it leaves behind."""

import os
import re
import stat

import pytest
from report_helper import log, write

NO_BREAK = "\u00a0"


@pytest.fixture
def report(dssync, tmp_path):
    """`dssync report` that must succeed; returns the page, with spaces that break."""

    def run(*arguments):
        page = tmp_path / "page.html"
        result = dssync("report", *arguments, "-o", page)
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines()[-1].startswith(f"{page}: ")
        return page.read_text(encoding="utf-8").replace(NO_BREAK, " ")

    return run


@pytest.fixture
def refusal(dssync, tmp_path):
    """`dssync report` that must refuse: status 2, one line, and no page. Returns the line."""

    def run(*arguments):
        page = tmp_path / "refused.html"
        result = dssync("report", *arguments, "-o", page)
        assert result.returncode == 2, result.stderr
        assert result.stdout == "" and result.stderr.count("\n") == 1
        assert result.stderr.startswith("dssync report: ")
        assert not page.exists()
        return result.stderr.strip()

    return run


def conclusion(page):
    return re.search(r'<p class="conclusion">(.*?)</p>', page).group(1)


def test_two_methods_are_compared(report, tmp_path):
    fast = write(tmp_path / "fast.jsonl", log("ds-sync", pace=0.1))
    slow = write(tmp_path / "slow.jsonl", log("bsp-ring", pace=0.4))
    page = report(fast, slow)
    # Both come to 0.9 - 0.6 exp(-80 / 20) = 88.9 %, so that 88.5 % is the highest half percent, found in iteration 80.
    assert "ds-sync reached 88.5 % accuracy after 8 s of training, 4.0 times sooner than bsp-ring (32 s)." in conclusion(page)
    assert page.count("<svg") > 10


def test_accuracy_can_be_chosen(report, tmp_path):
    file = write(tmp_path / "run.jsonl", log())
    assert "reached 80 % accuracy after 4 s" in conclusion(report(file, "--accuracy", "80%"))
    assert "No run reached 95.5 % accuracy" in conclusion(report(file, "--accuracy", "95.5 %"))


def test_seeds_are_grouped(report, tmp_path):
    files = [write(tmp_path / f"{seed}.jsonl", log(seed=seed, pace=0.1 * seed)) for seed in (1, 2, 3)]
    page = report(*files)
    assert "16 s (mean of 3 runs, 8 s to 24 s)" in conclusion(page)
    assert page.count('<tr class="member">') == 3


def test_names_say_what_differs(report, tmp_path):
    files = [write(tmp_path / f"{limit}.jsonl", log(options={"disagreement_limit": limit})) for limit in (0.2, 0.5)]
    page = report(*files)
    assert "ds-sync, disagreement limit 0.2" in page and "ds-sync, disagreement limit 0.5" in page
    assert "The runs differ in more than the method" in page


def test_failures_are_told_plainly(report, tmp_path):
    good = write(tmp_path / "good.jsonl", log("ds-sync"))
    bad = write(tmp_path / "bad.jsonl", log("ps", iterations=20, end="failed"))
    cut = write(tmp_path / "cut.jsonl", log("asp", iterations=20, end=None))
    page = report(good, bad, cut)
    assert "ps failed after iteration 20 of 20." in conclusion(page)
    assert "asp has no end in its log after iteration 20 of 20." in conclusion(page)
    assert "rank 3 was killed by signal 9 (Killed)" in page


def test_old_logs_say_what_is_missing(report, tmp_path):
    lines = log()
    del lines[0]["command"]
    page = report(write(tmp_path / "old.jsonl", lines))
    assert "The log does not have the command" in page
    assert "The logs say nothing about links" in page and "The logs say nothing about the network" in page


def test_network_traffic_and_changes_of_plan_are_shown(report, tmp_path):
    replanned = {"event": "replanned", "iteration": 40, "seconds": 4.0, "reason": "rack-b up is <slow>"}
    lines = log(network_bytes=8e5, extra=[replanned, {"event": "something new"}])
    page = report(write(tmp_path / "run.jsonl", lines))
    assert "8 NICs a[0-3], b[0-3], both ways" in page and "2 uplinks rack-a, rack-b, both ways" in page
    assert "1.05×" in page  # measured against predicted
    assert 'class="mark"' in page and "rack-b up is &lt;slow&gt;" in page
    assert page.count('<figure class="round">') == 2
    assert "something new (1)" in page


def test_same_logs_give_the_same_bytes(dssync, tmp_path):
    files = [write(tmp_path / f"{seed}.jsonl", log(seed=seed, network_bytes=8e5)) for seed in (1, 2)]
    pages = []
    for name in ("a.html", "b.html"):
        assert dssync("report", *files, "-o", tmp_path / name).returncode == 0
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]


def test_nothing_in_a_log_becomes_markup(report, tmp_path):
    evil = "<script>alert('x')</script>\""
    lines = log(method=evil, network_bytes=8e5, options={evil: evil}, end="failed")
    lines[0]["command"] = ["dssync", evil]
    lines[-1]["cause"] = evil
    page = report(write(tmp_path / "evil.jsonl", lines))
    assert page.count("<script>") == 1  # its own
    assert "&lt;script&gt;alert" in page


def test_torn_last_line_is_noted(dssync, tmp_path):
    file = write(tmp_path / "torn.jsonl", log(end=None))
    with file.open("a") as stream:
        stream.write('{"event":"iteration","itera')
    result = dssync("report", file, "-o", tmp_path / "page.html")
    assert result.returncode == 0
    assert result.stderr == f"dssync report: note: {file}: the last line is incomplete and was left out\n"
    assert "is incomplete and was left out" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text, place, words",
    [
        ("", "", "is empty"),
        ("hosts:\n  - {name: a}\n", ":1", "expected a JSON object"),
        ('{"workers": 8}\n', ":1", 'expected a line with an "event"'),
        ('{"event": "iteration"}\n', ":1", 'expected the event "started" first'),
        ('{"event": "started"}\n{broken\n{"event": "finished"}\n', ":2", "expected a JSON object"),
    ],
    ids=["empty", "yaml", "another json", "no start", "broken line"],
)
def test_files_that_are_no_logs(refusal, tmp_path, text, place, words):
    file = tmp_path / "bad.jsonl"
    file.write_text(text)
    message = refusal(file)
    assert f"{file}{place}: " in message and words in message


def test_missing_log_is_named(refusal, tmp_path):
    assert "nowhere.jsonl: the log cannot be opened (No such file or directory)" in refusal(tmp_path / "nowhere.jsonl")
    assert "is a folder" in refusal(tmp_path)


@pytest.mark.parametrize("value", ["88", "0%", "101%", "much", "nan%"])
def test_wrong_accuracy(refusal, tmp_path, value):
    message = refusal(write(tmp_path / "run.jsonl", log()), "--accuracy", value)
    assert "--accuracy: expected a percentage" in message and value in message


def test_logs_are_required(dssync):
    result = dssync("report")
    assert result.returncode == 2
    assert result.stderr == "dssync report: LOG is required; see dssync report --help\n"


def test_help(dssync):
    result = dssync("report", "--help")
    assert result.returncode == 0
    for word in ("LOG", "--output", "--accuracy"):
        assert word in result.stdout


def test_no_log_is_ever_overwritten(dssync, tmp_path):
    one = write(tmp_path / "one.jsonl", log(seed=1))
    two = write(tmp_path / "two.jsonl", log(seed=2))
    before = one.read_bytes()
    for arguments, words in (((one, "-o", one), "is one of the logs"), (("-o", one, two), "is not an HTML page")):
        result = dssync("report", *arguments)
        assert result.returncode == 2 and words in result.stderr
    assert one.read_bytes() == before


def test_a_page_is_replaced(dssync, tmp_path):
    file = write(tmp_path / "run.jsonl", log())
    page = tmp_path / "page.html"
    for _ in range(2):
        assert dssync("report", file, "-o", page).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "run.jsonl"]


def test_unwritable_output_leaves_nothing(dssync, tmp_path):
    file = write(tmp_path / "run.jsonl", log())
    result = dssync("report", file, "-o", tmp_path / "nowhere" / "page.html")
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr == f"dssync report: {tmp_path}/nowhere/page.html: the report cannot be written (No such file or directory)\n"
    assert dssync("report", file, "-o", "/dev/null").returncode == 2
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]
