"""Rolls of real clusters that `featurewatch upgrade` leads, while messages are written and read.

The script obeys: it asks, and does what is printed. What happens to the clusters meanwhile is what
happens to people's: disks are lost, brokers killed and left behind, people turn back.
"""

import json
import re
import shlex
import shutil
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles, combined
from featurewatch.streams.kraft.directory.files import read_meta, snapshots
from tests.cli.led_upgrade import (
    DEADLINE_S,
    LedUpgrade,
    age_s,
    assert_nothing_lost,
    running,
    traffic_of,
)
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly, pytest.mark.timeout(7200)]


def test_to_4_3_with_a_lost_disk_and_a_soak_cut_short(stack_cache: Cache, tmp_path: Path) -> None:
    """A voter's disk is lost in the middle: no other node may be restarted until another directory
    votes. In the soak a node goes back: it starts again, and nothing can be finalized before."""
    spec = replace(combined(["3.9.1"] * 3), dynamic_voters=True)
    with (
        running(spec, tmp_path / "cluster", stack_cache) as cluster,
        traffic_of(cluster) as traffic,
    ):
        led = LedUpgrade(cluster, tmp_path, "4.3.1")
        plan = led.plan("4.3", soak_s=60)
        assert sorted(plan["controllers"]) == [1, 2, 3]
        first = led.roll_next()
        lost, other = sorted({1, 2, 3} - {first})
        _replace_disk(led, lost, other)

        assert led.roll()["current"] in ("soak", "finalize")
        # What speaks for going back is nothing that featurewatch sees.
        led.restart(lost, "3.9.1")
        returned_s = time.time()
        found = led.status()
        assert (found["current"], found["next_node"]) == ("roll-controllers", lost)
        assert led.refusals().keys() >= {"nodes", "soak", "levels"}
        found = led.roll()
        # Between the text and now only time can pass.
        (soak,) = (one["text"] for one in found["steps"] if one["id"] == "soak")
        assert age_s(soak) <= time.time() - returned_s
        led.complete()
        assert_nothing_lost(traffic)


def _replace_disk(led: LedUpgrade, lost: int, other: int) -> None:
    """Kills a voter, whose directory is lost, and makes its new directory a voter instead."""
    node = led.cluster.node(lost)
    old = read_meta(node.data / "meta.properties")["directory.id"]
    node.kill()
    shutil.rmtree(node.data)

    def is_seen() -> bool:
        report = led.check_restart(other)
        return {one["name"] for one in report["checks"] if one["verdict"] == "no"} >= {"quorum"}

    assert eventually(is_seen, DEADLINE_S)
    node.format(led.cluster.cluster_id, ["--no-initial-controllers"])
    led.start(lost)
    server = ("--bootstrap-server", led.cluster.bootstrap_servers)
    removal = ("remove-controller", "-i", str(lost), "--controller-directory-id", old)
    properties = str(node.directory / "server.properties")
    addition = (*("--command-config", properties), "add-controller")
    new = read_meta(node.data / "meta.properties")["directory.id"]
    for change, votes, does_not in ((removal, None, old), (addition, new, None)):
        line = shlex.join(["featurewatch", "quorum", *server, *change])
        assert eventually(partial(_is_allowed, led, line), DEADLINE_S), line
        # 4: nobody answered in time, and the voters show what became of it.
        if led.run(line, codes=(0, 4)).returncode:
            done = partial(_have_voters, led, shlex.join(server), votes, does_not)
            assert eventually(done, DEADLINE_S), line


def _have_voters(led: LedUpgrade, server: str, votes: str | None, does_not: str | None) -> bool:
    """Whether this directory votes, and that one does not."""
    done = led.run(f"featurewatch quorum describe --json {server}", codes=(0, 1, 4))
    if done.returncode:
        return False
    directories = {voter["directory_id"] for voter in json.loads(done.stdout)["voters"]}
    return votes in {None, *directories} and does_not not in directories


def _is_allowed(led: LedUpgrade, line: str) -> bool:
    """Whether a dry run says yes; 1 while no leader responds."""
    return led.run(line, "--dry-run", codes=(0, 1, 3, 4)).returncode == 0


def test_to_4_4_with_a_way_back_and_a_ghost(stack_cache: Cache, tmp_path: Path) -> None:
    """People turn back after the first node, and begin again. A broker is never started on the new
    release: its registration is in the way until it is removed. Two people finalize at once."""
    nodes = [*combined(["3.9.1"] * 3).nodes, NodeSpec(4, "3.9.1", Roles.BROKER)]
    with (
        running(ClusterSpec(nodes), tmp_path / "cluster", stack_cache) as cluster,
        traffic_of(cluster) as traffic,
    ):
        led = LedUpgrade(cluster, tmp_path, "4.4.0", {"readiness": {"ghost_after_s": 45}})
        plan = led.plan("4.4", soak_s=20)
        assert plan["brokers"] == [4]
        first = led.roll_next()
        assert first is not None
        (step,) = (one for one in plan["steps"] if one["id"] == "roll-controllers")
        assert step["way_back"].startswith("restart the nodes on Kafka 3.9 in the same way")
        led.restart(first, "3.9.1")
        found = led.until(lambda one: one["verdict"] == "yes")
        assert found["current"] == "roll-controllers"

        while led.until(lambda one: one["verdict"] == "yes")["current"] == "roll-controllers":
            led.roll_next()
        cluster.node(4).kill()
        haunted = led.until(lambda one: _check(one, "ghosts")["verdict"] == "no")
        ghosts = _check(haunted, "ghosts")
        assert ghosts["text"] == "registered without a living node: broker 4"
        assert led.refusals().keys() >= {"ghosts", "levels"}
        (command,) = re.findall(r"featurewatch cluster .*", ghosts["remedy"])
        led.run(command)
        led.until(lambda one: one["current"] == "finalize" and one["verdict"] == "yes")
        _finalize_at_once(led)
        assert led.status()["complete"]
        assert_nothing_lost(traffic)


def _filled(led: LedUpgrade, check: str, node: int) -> str:
    """The printed command for a node, with what only its machine knows."""
    words = {"ID": str(node), "DIRECTORY": str(led.cluster.node(node).data)}
    return shlex.join(words.get(word, word) for word in shlex.split(check))


def _assert_answers_are_true(led: LedUpgrade, check: str) -> None:
    """No, until a node has a snapshot since the levels were lowered, which it writes meanwhile.

    Without the directory nothing is known, and the remedy names the offset to look for.
    """
    for node in (3, 2, 1):
        words = shlex.split(_filled(led, check, node))
        words = [word for word in words if word != "--wait"] + ["--json"]
        at = words.index("--node-directory")
        blind = json.loads(led.run(shlex.join(words[:at] + words[at + 2 :])).stdout)
        snapshot = _check(blind, "snapshot")
        assert snapshot["verdict"] == "unknown", blind
        (lowered,) = map(int, re.findall(r"a number above (\d+)", snapshot["remedy"]))
        before = _newest_snapshot(led, node)
        snapshot = _check(json.loads(led.run(shlex.join(words)).stdout), "snapshot")
        after = _newest_snapshot(led, node)
        if after <= lowered:
            assert snapshot["verdict"] == "no", snapshot
            assert re.search(
                r" and replay \S+ .* of offset \d+: Kafka 4.1 does not start$", snapshot["text"]
            )
        elif before > lowered:
            assert snapshot["verdict"] == "yes", snapshot


def _newest_snapshot(led: LedUpgrade, node: int) -> int:
    """The end offset of a node's newest snapshot; 0: it has none."""
    found = snapshots(led.cluster.node(node).metadata_log)
    return found[-1].offset if found else 0


def _check(status: dict[str, Any], name: str) -> dict[str, Any]:
    return next((one for one in status["checks"] if one["name"] == name), {"verdict": ""})


def _finalize_at_once(led: LedUpgrade) -> None:
    """Two people: what each is told is true, and at least one of them finalizes."""
    status = led.status()
    reports: list[dict[str, Any]] = []

    def finalize() -> None:
        reports.append(led.finalize(status))

    people = [threading.Thread(target=finalize) for _ in range(2)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    outcomes = [report["outcome"] for report in reports]
    assert len(outcomes) == 2
    assert "finalized" in outcomes, reports
    for report in reports:
        assert report["outcome"] in ("finalized", "not-sent"), report


def test_back_from_4_2_after_its_levels_are_finalized(stack_cache: Cache, tmp_path: Path) -> None:
    """The active controller is killed in the middle of the last step: what is reported is true, and
    a second try ends well. Then the way back of the plan is taken, level by level and node by
    node, and no node before it has a snapshot of the lower levels."""
    properties = {"metadata.log.max.snapshot.interval.ms": "90000"}
    spec = replace(combined(["4.1.2"] * 3), properties=properties)
    with (
        running(spec, tmp_path / "cluster", stack_cache) as cluster,
        traffic_of(cluster) as traffic,
    ):
        led = LedUpgrade(cluster, tmp_path, "4.2.0")
        plan = led.plan("4.2", soak_s=0)
        led.roll()
        status = led.until(lambda one: one["current"] == "finalize" and one["verdict"] == "yes")
        leader = cluster.leader()
        reports: list[dict[str, Any]] = []
        person = threading.Thread(target=lambda: reports.append(led.finalize(status)))
        person.start()
        time.sleep(1)
        leader.kill()
        person.join()
        led.start(leader.id)
        (report,) = reports
        assert report["outcome"] in ("finalized", "unknown", "not-sent"), report
        if report["outcome"] == "finalized":
            assert led.status()["complete"]
        else:
            led.complete()

        (step,) = (one for one in plan["steps"] if one["id"] == "finalize")
        assert not step["point_of_no_return"]
        lower, check = re.findall(r"`(featurewatch .*?)`", step["way_back"])
        assert led.run(lower).returncode == 0
        assert led.status()["current"] == "finalize"
        _assert_answers_are_true(led, check)
        for node in (3, 2, 1):
            led.restart(node, "4.1.2", _filled(led, check, node))
        found = led.status()
        assert (found["current"], found["changed"]) == ("roll-controllers", [])
        assert_nothing_lost(traffic)


def test_a_node_starts_on_older_software_when_the_check_says_so(
    stack_cache: Cache, tmp_path: Path
) -> None:
    """Levels are raised and lowered: before the snapshot Kafka does not start, after it, it does.
    One node, so that nothing but its own directory can mend it."""
    properties = {"metadata.log.max.snapshot.interval.ms": "60000"}
    spec = replace(combined(["4.2.0"]), metadata_version="4.1", properties=properties)
    with running(spec, tmp_path / "cluster", stack_cache) as cluster:
        led, (node,) = LedUpgrade(cluster, tmp_path, "4.2.0"), cluster.nodes
        server = f"featurewatch features --bootstrap-server {cluster.bootstrap_servers}"
        led.run(f"{server} upgrade --feature metadata.version=29")
        led.run(f"{server} downgrade --feature metadata.version=27")
        words = ("--release", "4.1", "--node-directory", str(node.data), "--accept", "quorum")
        verdicts: list[str] = []

        def may_start() -> bool:
            verdicts.append(_check(led.check_restart(node.id, *words), "snapshot")["verdict"])
            return verdicts[-1] == "yes"

        assert eventually(may_start, DEADLINE_S), verdicts
        assert {*verdicts[:-1]} <= {"no"}
        node.stop()
        led.start(node.id, "4.1.2")
        assert led.check_restart(node.id, *words)["verdict"] == "yes"
