"""`dssync plan` for people: what must be readable in it. tests/golden holds the whole output of the examples."""

import re

import pytest
from conftest import EXAMPLES

TWO_RACKS = "examples/topologies/two-racks.yaml"


def section(text, title):
    """The lines between a title and the next one."""
    body = text.split(f"\n{title} ", 1)[1].split("\n", 1)[1]
    return re.split(r"\n\n\S", body, maxsplit=1)[0]


def big_topology(sites, racks, hosts):
    lines = ["defaults: {nic: 10Gbps, latency: 10us}", "switches:", "  - {name: core}"]
    for s in range(sites):
        lines.append(f"  - {{name: site{s}, parent: core, uplink: 100Gbps}}")
        lines.append(f'  - {{name: "s{s}r[0-{racks - 1}]", parent: site{s}, uplink: 20Gbps}}')
    lines.append("hosts:")
    for s in range(sites):
        lines += [f'  - {{name: "s{s}r{r}h[0-{hosts - 1}]", switch: s{s}r{r}}}' for r in range(racks)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_fits_the_page(plan, example, locale):
    text = plan("--topology", example, LC_ALL=locale)
    assert max(map(len, text.splitlines())) <= 100
    assert not any(line.endswith(" ") for line in text.splitlines())
    assert "\x1b" not in text
    if locale == "C":
        assert text.isascii()


def test_answers_first(plan):
    top = plan("--topology", TWO_RACKS).split("\nNetwork ")[0]
    assert "8 workers, 8 MB" in top
    assert "per iteration" in top and "as fast as bsp-hierarchical" in top
    assert "bottleneck: " in top
    assert "within the limit of 0.25" in top


def test_tells_of_exact_regions(plan):
    text = plan("--topology", TWO_RACKS, "--exact-inside", "rack")
    assert "exact inside: rack" in " ".join(text.split())
    assert "averaged inside 2 exact regions in every iteration: 480 ms of it" in text
    assert "8 NICs" in section(text, "Load per link and iteration, inside exact regions")
    assert "no groups     nobody" in section(text, "Who meets whom")
    assert max(map(len, text.splitlines())) <= 100


def test_draws_the_network(plan):
    tree = section(plan("--topology", TWO_RACKS), "Network")
    assert tree.splitlines()[1:] == [
        "  core",
        "  ├─ rack-a     uplink 50 Mbit/s (16:1 oversubscribed)",
        "  │  └─ a[0-3]  4 hosts, NIC 200 Mbit/s",
        "  └─ rack-b     uplink 50 Mbit/s (16:1 oversubscribed)",
        "     └─ b[0-3]  4 hosts, NIC 200 Mbit/s",
    ]


def test_draws_who_meets_whom(plan):
    # The published schedule of pairs: neighbours, then one apart, then the same place of the other rack.
    text = plan("--topology", TWO_RACKS, "--schedule", "published", "--group-limit", "2")
    rows = [line.split() for line in section(text, "Who meets whom").splitlines()]
    cells = {row[-4]: "".join(row[-3:]) for row in rows if len(row) >= 4 and re.fullmatch("[ab][0-3]", row[-4])}
    assert len(cells) == 8
    for column in range(3):
        letters = [cell[column] for cell in cells.values()]
        assert sorted(letters) == list("AABBCCDD")
    assert len(set(cells.values())) == 8  # no two workers are together throughout


def test_names_what_the_published_schedule_breaks(plan):
    text = plan("--topology", TWO_RACKS, "--schedule", "published", "--disagreement", "0.1")
    assert "ABOVE the limit of 0.1" in text
    assert "This S exceeds the limit of 0.1." in text


def test_compares_limits(plan):
    rows = section(plan("--topology", TWO_RACKS, "--disagreement", "0.3"), "What another limit on S would bring")
    rows = rows.splitlines()[2:]
    limits = [float(line.lstrip(" ▶").split()[0]) for line in rows]
    assert limits == [0, 0.1, 0.25, 0.3, 0.5, 1, 2]
    assert [line for line in rows if "▶" in line] == [rows[3]]


def test_says_which_limits_groups_cannot_meet(plan):
    rows = section(plan("--topology", TWO_RACKS, "--group-limit", "2", "--disagreement", "0.5"), "What another limit on S would bring")
    assert "0.25  not with groups of at most 2: the smallest S is 0.5" in rows


def test_large_networks_stay_short(plan, tmp_path):
    file = tmp_path / "large.yaml"
    file.write_text(big_topology(sites=4, racks=32, hosts=8))
    text = plan("--topology", file)
    assert "1024 workers" in text
    assert len(text.splitlines()) < 100
    assert max(map(len, text.splitlines())) <= 100
    assert "s[0-3]r[0-31]h[0-7]" in section(text, "Network")


def test_unlike_hosts_stay_short(plan, tmp_path):
    file = tmp_path / "unlike.yaml"
    hosts = "".join(f"  - {{name: h{i}, nic: {100 + i}Mbps}}\n" for i in range(200))
    file.write_text("hosts:\n" + hosts)
    text = plan("--topology", file)
    assert len(text.splitlines()) < 150
    assert "188 more switches and hosts" in section(text, "Network")


def test_one_worker_has_nothing_to_average(plan, tmp_path):
    file = tmp_path / "one.yaml"
    file.write_text("hosts:\n  - {name: solo, nic: 1Gbps}\n")
    assert "No link is used: there is one worker." in plan("--topology", file)


def test_color_is_for_terminals(plan):
    plain = plan("--topology", TWO_RACKS)
    painted = plan("--topology", TWO_RACKS, "--color", "always", NO_COLOR="1")
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[\d+m", "", painted) == plain
    assert plan("--topology", TWO_RACKS, "--color", "never") == plain
