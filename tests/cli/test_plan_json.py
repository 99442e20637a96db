"""`dssync plan --format json`: the contract of docs/command-line.md, on every shipped example."""

import json

import pytest
from conftest import EXAMPLES

TWO_RACKS = "examples/topologies/two-racks.yaml"
SCHEDULES = ["auto", "published"]


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.stem)
def example(request):
    return request.param


def load(plan, *arguments):
    return json.loads(plan(*arguments, "--format", "json"))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_has_the_keys_of_the_contract(plan, example, schedule):
    result = load(plan, "--topology", example, "--schedule", schedule)
    assert result["workers"] == len(result["names"]) == len(set(result["names"]))
    assert result["schedule"] == schedule
    assert result["shards"] >= 1
    assert result["bytes"] == 8_000_000
    assert result["disagreement_limit"] == 0.25
    assert result["group_limit"] is None
    assert set(result["mixing"]) == {"cycle_norm", "steady_disagreement", "exact"}
    assert set(result["baselines"]) == set(result["speedups"]) == {"bsp-ring", "bsp-hierarchical"}
    for link in result["cost"]["links"]:
        assert set(link) == {"name", "bytes_per_iteration", "seconds", "capacity_bytes_per_second"}
    assert list(result)[0] == "topology" and list(result)[-1] == "speedups"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_round_divides_the_workers(plan, example, schedule):
    result = load(plan, "--topology", example, "--schedule", schedule)
    assert result["rounds"]
    for number in result["rounds"]:
        assert number["label"]
        members = [rank for group in number["groups"] for rank in group]
        assert sorted(members) == list(range(result["workers"]))
        assert all(group and group == sorted(group) for group in number["groups"])


@pytest.mark.parametrize("limit", ["0", "0.2", "0.5", "2"])
def test_mixing_is_within_the_limit_and_never_apart(plan, example, limit):
    result = load(plan, "--topology", example, "--disagreement", limit)
    assert result["within_limit"] is True
    assert result["mixing"]["steady_disagreement"] <= float(limit) + 1e-9
    assert result["mixing"]["cycle_norm"] < 1
    assert result["mixing"]["exact"] == (result["mixing"]["cycle_norm"] < 1e-9)
    assert result["cost"]["seconds_per_iteration"] <= min(result["baselines"].values()) * (1 + 1e-9)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_seconds_follow_from_the_links(plan, example, schedule):
    result = load(plan, "--topology", example, "--schedule", schedule)
    cost = result["cost"]
    links = {link["name"]: link for link in cost["links"]}
    assert len(links) == len(cost["links"])
    for link in links.values():
        assert link["seconds"] == pytest.approx(link["bytes_per_iteration"] / link["capacity_bytes_per_second"])
    busiest = max(link["seconds"] for link in links.values())
    assert links[cost["bottleneck"]]["seconds"] == pytest.approx(busiest)
    if result["shards"] == len(result["rounds"]):
        assert cost["seconds_per_iteration"] == pytest.approx(busiest + cost["latency_seconds"])
    else:  # the mean of the rounds' peaks
        assert cost["seconds_per_iteration"] >= (busiest + cost["latency_seconds"]) * (1 - 1e-9)


def test_speedups_are_ratios_to_the_baselines(plan, example):
    result = load(plan, "--topology", example)
    for name, seconds in result["baselines"].items():
        assert result["speedups"][name] == pytest.approx(seconds / result["cost"]["seconds_per_iteration"])


def test_two_racks_baselines_are_those_of_the_formulas(plan):
    # Ring: 2 * 7/8 * 8 MB over a 50 Mbit/s uplink. Hierarchical: 2 * 1/2 * 8 MB over it.
    result = load(plan, "--topology", TWO_RACKS)
    assert result["baselines"]["bsp-ring"] == pytest.approx(14e6 / 6.25e6)
    assert result["baselines"]["bsp-hierarchical"] == pytest.approx(8e6 / 6.25e6)


def test_links_of_two_racks_have_the_names_of_the_contract(plan):
    names = {link["name"] for link in load(plan, "--topology", TWO_RACKS)["cost"]["links"]}
    assert {"a0 out", "a0 in", "rack-a up", "rack-a down"} <= names
    assert len(names) == 2 * (8 + 2)


def test_bytes_scale_the_seconds(plan):
    small = load(plan, "--topology", TWO_RACKS, "--bytes", "8MB")
    large = load(plan, "--topology", TWO_RACKS, "--bytes", "80MB")
    assert large["bytes"] == 80_000_000
    assert large["cost"]["seconds_per_iteration"] == pytest.approx(10 * small["cost"]["seconds_per_iteration"])


def test_group_limit_holds(plan):
    result = load(plan, "--topology", TWO_RACKS, "--group-limit", "3", "--disagreement", "2")
    assert result["group_limit"] == 3
    assert max(len(group) for number in result["rounds"] for group in number["groups"]) <= 3


def test_published_hypercube_has_its_known_figures(plan):
    result = load(plan, "--topology", TWO_RACKS, "--schedule", "published", "--group-limit", "2", "--disagreement", "0.1")
    assert len(result["rounds"]) == 3 and result["shards"] == 1
    assert result["mixing"]["steady_disagreement"] == pytest.approx(0.5, abs=1e-3)
    assert result["mixing"]["exact"] is True
    assert result["within_limit"] is False


def test_same_input_gives_the_same_bytes(plan, example):
    for format in ("json", "text"):
        arguments = ["--topology", example, "--format", format]
        assert plan(*arguments) == plan(*arguments)


def test_one_worker_has_nothing_to_wait_for(plan, tmp_path):
    file = tmp_path / "one.yaml"
    file.write_text("hosts:\n  - {name: solo, nic: 1Gbps}\n")
    result = load(plan, "--topology", file)
    assert result["workers"] == 1
    assert result["cost"]["seconds_per_iteration"] == 0
    assert result["cost"]["bottleneck"] is None
    assert result["speedups"] == {"bsp-ring": None, "bsp-hierarchical": None}


def test_workers_of_one_host_meet_for_nothing(plan, tmp_path):
    file = tmp_path / "host.yaml"
    file.write_text("hosts:\n  - {name: box, nic: 1Gbps, workers: 4}\n")
    result = load(plan, "--topology", file)
    assert result["names"] == ["box/0", "box/1", "box/2", "box/3"]
    assert result["cost"]["seconds_per_iteration"] == 0
    assert result["mixing"]["steady_disagreement"] == 0


def test_exact_racks_are_replicas(plan):
    """Gradients cost 1.5 of 8 MB at 25 MB/s inside a rack; the uplinks carry the parameters in every second iteration."""
    result = load(plan, "--topology", TWO_RACKS, "--exact-inside", "rack")
    assert result["exact_inside"] == "rack"
    assert result["replicas"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert result["inside"]["seconds_per_iteration"] == pytest.approx(0.48)
    assert result["cost"]["seconds_per_iteration"] == pytest.approx(8e6 / 6.25e6 / 2)
    assert result["speedups"]["bsp-ring"] == pytest.approx(2.24 / (0.48 + 8e6 / 6.25e6 / 2))
    assert list(result)[-1] == "speedups"


@pytest.mark.parametrize("level", ["host", "rack", "site", "auto"])
def test_groups_are_unions_of_exact_regions(plan, example, level):
    result = load(plan, "--topology", example, "--exact-inside", level)
    assert result["within_limit"] is True
    for replica in result.get("replicas", []):
        for number in result["rounds"]:
            assert any(set(replica) <= set(group) for group in number["groups"])


def test_without_regions_there_are_no_keys_for_them(plan):
    assert not {"exact_inside", "replicas", "inside"} & set(load(plan, "--topology", TWO_RACKS))
