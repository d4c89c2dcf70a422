"""The verdict on real clusters, and where their first level comes from."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from featurewatch.cli.config.settings import ClusterSection as Watched
from featurewatch.cli.runtime.cluster_image import read_image
from featurewatch.common.private_files import write_private
from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft import release_of
from featurewatch.monitor.readiness import applied_by_all, assess_readiness
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec
from featurewatch.streams.events import (
    LogCommit,
    RecordJson,
)
from featurewatch.streams.kraft.source import KraftSettings, KraftSource
from featurewatch.streams.source import wall_clock_ms
from featurewatch.streams.types import METADATA_VERSION, ClusterId
from tests.cli.commands import featurewatch
from tests.integration.kraft.support import until
from tests.streams.recording_sink import RecordingSink
from tests.waiting import eventually

pytestmark = pytest.mark.stack


def test_a_real_cluster_that_was_not_rolled_yet(quorum_391: Cluster, tmp_path: Path) -> None:
    """Every node in both roles is a blocker; the levels of its own release are finalized."""
    at = ("readiness", "--bootstrap-controller", quorum_391.controllers)
    done = featurewatch(tmp_path, *at, "--target", "4.3", "--json")
    assert (done.returncode, done.stderr) == (3, "")
    report = json.loads(done.stdout)
    assert {(blocker["role"], blocker["node_id"]) for blocker in report["blockers"]} == {
        (role, node.spec.id) for role in ("broker", "controller") for node in quorum_391.nodes
    }
    assert {blocker["software"] for blocker in report["blockers"]} == {"3.9"}
    assert report["controller_response"]["release"] == "3.9"
    assert report["controller_response"]["assumed"] is False
    # Nobody set min.insync.replicas by a request, and the brokers' files were not read.
    assert report["elr"] | {"topics": [], "controller": 0} == {
        "controller": 0,
        "cluster_before": None,
        "cluster_after": None,
        "brokers": [],
        "unread_brokers": [1, 2, 3],
        "topic_count": report["elr"]["topic_count"],
        "topics": [],
        "topics_with_own": report["elr"]["topics_with_own"],
    }
    with_files = featurewatch(
        tmp_path,
        *at,
        "--bootstrap-server",
        quorum_391.bootstrap_servers,
        "--target",
        "4.3",
        "--json",
    )
    elr = json.loads(with_files.stdout)["elr"]
    assert (elr["cluster_after"], elr["unread_brokers"], elr["brokers"]) == (1, [], [])
    watched = Watched(controllers=quorum_391.controllers, servers=quorum_391.bootstrap_servers)
    image = read_image(watched)
    now_ms = wall_clock_ms()
    own = assess_readiness(image, release_of("3.9"), {}, now_ms=now_ms)
    assert (own.verdict, own.blockers, own.divergences) == (Verdict.YES, (), ())
    assert applied_by_all(image, now_ms)[0] is not Verdict.NO


def test_unreachable_brokers_make_the_verdict_unknown(quorum_391: Cluster, tmp_path: Path) -> None:
    """The quorum's quiet log has a record twice a second, which is no reason to wait on."""
    completed = featurewatch(
        tmp_path,
        *("readiness", "--target", "3.9", "--json"),
        *("--bootstrap-controller", quorum_391.controllers, "--bootstrap-server", "127.0.0.1:1"),
    )
    assert completed.returncode == 4
    assert "nodes could not be queried: nobody listens at 127.0.0.1:1" in completed.stdout


def test_files_do_not_show_whether_a_controller_is_active(
    quorum_391: Cluster, tmp_path: Path
) -> None:
    """It is said beside the verdict; a misspelt key of a login is refused before all else."""
    at = ("readiness", "--target", "3.9", "--log-directory", str(quorum_391.nodes[0].data))
    # The files of a node that has just started do not have all brokers unfenced yet.
    assert eventually(lambda: featurewatch(tmp_path, *at).returncode == 0)
    assert "It was read from files" in featurewatch(tmp_path, *at).stdout
    login = tmp_path / "login.properties"
    write_private(login, "security.protocl=SSL\n")
    completed = featurewatch(tmp_path, *at, "--command-config", str(login))
    assert (completed.returncode, "did you mean security.protocol?" in completed.stderr) == (
        2,
        True,
    )


def records_of(directory: Path, cluster: str) -> list[RecordJson]:
    """All records of a log directory that nobody writes to."""

    async def nothing() -> None:
        return None

    async def read() -> list[RecordJson]:
        sink = RecordingSink()
        settings = KraftSettings(
            ClusterId(cluster), log_directory=directory, log_directory_settle_ms=0
        )
        task = asyncio.ensure_future(KraftSource(settings, sink, nothing).run())
        try:
            await until(sink.following)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return [record for commit in sink.of(LogCommit) for record in commit.records]

    return asyncio.run(read())


@pytest.mark.form("released")
def test_the_first_level_comes_from_formatting_and_no_other_setting_counts(
    make_cluster: Callable[[ClusterSpec], Cluster],
) -> None:
    """The active controller writes what the node was formatted with into an empty log, once: not
    again when it starts with a log that has it (M-39 as released). inter.broker.protocol.version is
    ignored: the broker registers as metadata.version allows, with its directories (M-66).
    """
    older = {"inter.broker.protocol.version": "3.5"}
    running = make_cluster(
        ClusterSpec([NodeSpec(1, "3.9.1", properties=older)], metadata_version="3.7-IV4")
    )
    (node,) = running.nodes
    node.stop()
    node.start()
    running.wait_ready()
    image = read_image(Watched(controllers=running.controllers))
    assert dict(image.features.levels) == {METADATA_VERSION: 19}
    running.stop()
    records = records_of(node.data, running.cluster_id)
    levels = [record for record in records if record["type"] == "FEATURE_LEVEL_RECORD"]
    assert [level["data"] for level in levels] == [{"name": METADATA_VERSION, "featureLevel": 19}]
    assert levels[0]["offset"] < 5
    starts = [record for record in records if record["type"] == "REGISTER_BROKER_RECORD"]
    gate = release_of("3.9").gate(19, "registerBrokerRecordVersion")
    assert gate != release_of("3.9").gate(9, "registerBrokerRecordVersion")
    assert [start["version"] for start in starts] == [gate] * 2
    assert all(start["data"]["logDirs"] for start in starts)
