"""Every byte that ``kafka-metadata-quorum`` prints, and its exit code, from ours.

On the shared clusters, whose voters are static; what is changed here is refused.
"""

import json
import shlex
from pathlib import Path

import pytest

from featurewatch.common.private_files import write_private
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from tests.conformance.kafka_tools import COMPAT, KafkaTool, OurCommand
from tests.conformance.quorum_tool import lines
from tests.conformance.quorum_tool.pair import QuorumPair
from tests.guarded import JAAS, guarded_node

pytestmark = pytest.mark.stack


def addresses(cluster: Cluster) -> tuple[tuple[str, str], ...]:
    """Both ways to name a cluster."""
    return (
        ("--bootstrap-server", cluster.bootstrap_servers),
        ("--bootstrap-controller", cluster.controllers),
    )


def test_descriptions_are_the_tools(pair: QuorumPair, cluster: Cluster) -> None:
    """Status and replication through brokers and controllers, and the options that do not go
    together."""
    for by in addresses(cluster):
        for line in lines.DESCRIBED:
            shown = pair.is_equal(*by, *line.split())
            assert (shown.code, shown.err) == (0, "")
            assert shown.out.count("\n") == (8 if "--status" in line else 4)
        for line in lines.MISTAKEN:
            assert pair.is_equal(*by, *shlex.split(line)).code == 1


def test_removals_are_refused_as_by_the_tool(pair: QuorumPair, cluster: Cluster) -> None:
    """Invalid ids, and by the leader: the voters are static."""
    server, controller = addresses(cluster)
    remove = (*server, "remove-controller")
    refused = pair.is_equal(*remove, "--controller-id=-1", "-d", lines.DIRECTORY)
    assert refused.err == "Invalid negative --controller-id: -1\n"
    for directory in lines.WRONG_DIRECTORIES:
        refused = pair.is_equal(*remove, "-i", "1", f"--controller-directory-id={directory}")
        assert refused.err.startswith("Failed to parse --controller-directory-id: "), directory
    for by in (server, controller):
        static = pair.is_equal(*by, "remove-controller", "-i", "1", "-d", lines.DIRECTORY)
        assert "Cluster doesn't support removing voter because the kraft.version" in static.err


def test_additions_are_refused_as_by_the_tool(
    pair: QuorumPair, cluster: Cluster, tmp_path: Path
) -> None:
    """Configurations that are no controller's, directories that are not formatted, and by the
    leader: the voters are static."""
    server, controller = addresses(cluster)
    for name, file in lines.write_configurations(tmp_path, cluster.cluster_id).items():
        arguments = (*server, "--command-config", str(file), "add-controller", "--dry-run")
        expected, result = pair.by_tool(*arguments), pair.by_ours(*arguments)
        assert (result.out, result.err) == (expected.out, expected.err), name
        # The tool asks no cluster about a dry run; ours does, and says no.
        assert result.code == (3 if expected.code == 0 else 1), name
    file = tmp_path / "good.properties"
    for by in (server, controller):
        static = pair.is_equal(*by, "--command-config", str(file), "add-controller")
        assert "Cluster doesn't support adding voter because the kraft.version" in static.err


def test_a_cluster_in_zookeeper_mode_has_no_quorum(
    pair: QuorumPair, tool: KafkaTool, zookeeper_391: Cluster
) -> None:
    """A broker without the request is refused with the same text."""
    by = ("--bootstrap-server", zookeeper_391.bootstrap_servers)
    for line in lines.DESCRIBED:
        assert pair.is_equal(*by, *line.split()).code == 1


def test_the_document_has_what_the_text_has(
    ours: OurCommand, tool: KafkaTool, cluster: Cluster
) -> None:
    """Voters, who leads, and what may fail; --json needs no other option."""
    for by in addresses(cluster):
        result = ours(*by, "--compat", COMPAT[tool.release], "describe", "--json")
        assert (result.code, result.err) == (0, "")
        document = json.loads(result.out)
        assert document["cluster_id"] == cluster.cluster_id
        assert document["active_controller"] == cluster.leader().id
        assert (document["kraft_version"], document["voters_are"]) == (0, "static")
        assert (document["majority"], document["fetching_voters"], document["may_fail"]) == (
            2,
            3,
            1,
        )
        by_id = {voter["id"]: voter for voter in document["voters"]}
        assert set(by_id) == {node.id for node in cluster.nodes}
        assert [one["id"] for one in by_id.values() if one["is_active"]] == [cluster.leader().id]
        assert {one["directory_id"] for one in by_id.values()} == {None}


@pytest.mark.parametrize("tool", ["4.3.0"], indirect=True)
def test_a_login_without_rights_is_refused_as_by_the_tool(
    pair: QuorumPair, tool: KafkaTool, stack_cache: Cache, tmp_path: Path
) -> None:
    """Each command, through brokers and controllers, and what the login lacks."""
    login = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
    login += f'sasl.jaas.config={JAAS} username="guest" password="may-not";\n'
    with guarded_node(
        tmp_path / "cluster", stack_cache, {"guest": "may-not"}, tool.release
    ) as node:
        files = lines.write_configurations(tmp_path, node.cluster.cluster_id)
        client, controller = tmp_path / "client.properties", tmp_path / "controller.properties"
        write_private(client, login)
        write_private(controller, login + files["good"].read_text())
        remove = f"remove-controller -i 1 -d {lines.DIRECTORY}".split()
        for by in (
            ("--bootstrap-server", node.broker),
            ("--bootstrap-controller", node.controller),
        ):
            described = (*by, "--command-config", str(client), "describe")
            refused = pair.is_equal(*described, "--status")
            assert "ClusterAuthorizationException" in refused.err
            # Through controllers the tool asks for the cluster first; ours needs that for its id.
            for result in (command(*described, "--replication") for command in pair.both):
                assert "ClusterAuthorizationException" in result.err
                assert result.code == 1
            for file, change in ((controller, ["add-controller"]), (client, remove)):
                arguments = (*by, "--command-config", str(file), *change)
                expected, result = pair.by_tool(*arguments), pair.ours(*arguments)
                assert "ClusterAuthorizationException" in expected.err
                assert (result.code, expected.code) == (1, 1)
                assert "featurewatch: this login lacks" in result.err
