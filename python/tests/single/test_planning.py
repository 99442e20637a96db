"""dssync.plan: what the command line prints, as values."""

import json
import pathlib
import pydoc

import pytest

import dssync

ROOT = pathlib.Path(__file__).resolve().parents[3]
TWO_RACKS = ROOT / "examples/topologies/two-racks.yaml"
GOLDEN = json.loads((ROOT / "tests/golden/plan-two-racks.json").read_text())


def test_is_the_plan_of_the_command_line():
    plan = dssync.plan(TWO_RACKS)
    assert list(plan.names) == GOLDEN["names"]
    assert plan.shards == GOLDEN["shards"]
    assert [list(map(list, round.groups)) for round in plan.rounds] == [round["groups"] for round in GOLDEN["rounds"]]
    assert plan.mixing.steady_disagreement == pytest.approx(GOLDEN["mixing"]["steady_disagreement"])
    assert plan.mixing.exact == GOLDEN["mixing"]["exact"]
    assert plan.cost.seconds_per_iteration == pytest.approx(GOLDEN["cost"]["seconds_per_iteration"])
    assert plan.cost.bottleneck == GOLDEN["cost"]["bottleneck"]
    assert {name: link.seconds for name, link in plan.cost.links.items()} == {
        link["name"]: pytest.approx(link["seconds"]) for link in GOLDEN["cost"]["links"]}


def test_bytes_are_a_number_or_text():
    assert dssync.plan(TWO_RACKS, bytes=16e6) == dssync.plan(TWO_RACKS, bytes="16MB") != dssync.plan(TWO_RACKS)
    with pytest.raises(dssync.InputError, match="8 MX"):
        dssync.plan(TWO_RACKS, bytes="8 MX")


def test_published():
    [first, second] = dssync.plan(TWO_RACKS, published=True, group_limit=3).rounds[:2]
    assert max(map(len, first.groups)) <= 3
    assert first != second


def test_exact_regions():
    plan = dssync.plan(TWO_RACKS, exact_inside="rack")
    assert plan.replicas == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert plan.cost.seconds_per_iteration == pytest.approx(8e6 / 6.25e6 / 2)  # the uplinks, in every second iteration
    assert plan.inside.seconds_per_iteration == pytest.approx(1.5 * 8e6 / 25e6)
    assert "8 workers in 2 exact regions" in repr(plan)
    assert dssync.plan(TWO_RACKS).replicas == ()
    with pytest.raises(dssync.InputError, match="expected none, host, rack"):
        dssync.plan(TWO_RACKS, exact_inside="shelf")


def test_limit_that_cannot_be_met():
    with pytest.raises(dssync.InputError, match=r"groups of at most 2 cannot keep the disagreement within 0.001; the smallest"):
        dssync.plan(TWO_RACKS, disagreement=0.001, group_limit=2)


def test_bad_files(tmp_path):
    with pytest.raises(dssync.InputError, match="nowhere.yaml"):
        dssync.plan("nowhere.yaml")
    bad = tmp_path / "bad.yaml"
    bad.write_text("hosts: [{name: a}]\nswitchs: []\n")
    with pytest.raises(dssync.InputError, match=r"bad.yaml:2: .*switchs"):
        dssync.plan(bad)


def test_readable():
    text = repr(dssync.plan(TWO_RACKS))
    assert text.startswith("Plan(8 workers, a cycle of ")
    assert "bottleneck" in text.splitlines()[0]
    assert any("a0 a1 a2 a3" in line for line in text.splitlines()[1:])


def test_picture():
    plan = dssync.plan(TWO_RACKS)
    picture = plan._repr_html_()
    assert picture.count("<rect") == 8 * len(plan.rounds)
    assert picture.endswith("</svg>")
    assert "<title>b3</title>" in picture


def test_flat_networks_and_dicts():
    flat = dssync.Topology.flat(8, nic="10Gbps")
    assert flat.workers == 8
    assert repr(flat) == "Topology(8 workers: h0 h1 h2 h3 h4 h5 h6 h7)"
    assert repr(dssync.Topology.flat(12)) == "Topology(12 workers: h0 h1 h2 h3 ... h11)"
    assert repr(dssync.Topology.flat(1)) == "Topology(1 worker: h0)"
    assert "<pre>" in flat._repr_html_() and "10Gbps" in flat._repr_html_()
    same = {"defaults": {"nic": "10Gbps"}, "hosts": [{"name": "h[0-7]"}]}
    assert dssync.plan(same, bytes="8MB") == dssync.plan(flat, bytes="8MB")
    with pytest.raises(dssync.InputError, match="with 0 workers: expected at least 1"):
        dssync.Topology.flat(0)
    with pytest.raises(dssync.InputError, match="expected a Topology, the name of a file, or a dict"):
        dssync.plan(8)


def test_help_starts_with_what_people_need():
    text = pydoc.render_doc(dssync, renderer=pydoc.plaintext)
    assert text.index("dssync.DivideShuffle(model, optimizer, topology=") < text.index("PACKAGE CONTENTS")
    assert all(name in dssync.__doc__ for name in ("DivideShuffle", "Topology", "plan", "consolidate", "clip_grad_norm_"))
