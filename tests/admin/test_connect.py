"""The public names of `featurewatch.admin`, and the constructor that all its clients have."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from featurewatch import admin
from featurewatch.admin import (
    ElectionAdmin,
    FeatureAdmin,
    QuorumAdmin,
    ReassignmentAdmin,
    RegistrationAdmin,
    RequestError,
    TopicAdmin,
)
from featurewatch.admin.session import AdminSession
from featurewatch.common.private_files import write_private
from featurewatch.kafka.messages import CreateTopicsRequestV7, CreateTopicsResponseV7
from tests.admin.scripted_brokers import ScriptedBrokers

CLIENTS = [
    ElectionAdmin,
    FeatureAdmin,
    QuorumAdmin,
    ReassignmentAdmin,
    RegistrationAdmin,
    TopicAdmin,
]
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "u",
    "sasl.password": "p",
    "default.api.timeout.ms": "7000",
}


def test_each_public_name_is_imported_at_its_first_use() -> None:
    """The list of names, their modules and what type checkers see are the same."""
    tree = ast.parse(Path(admin.__file__).read_text())
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("featurewatch.")
        for alias in node.names
    }
    assert (
        imported == {*admin.__all__} == {name for names in admin._HOMES.values() for name in names}
    )
    assert all(getattr(admin, name).__name__ == name for name in admin.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = admin.nothing
    loaded = "import sys, featurewatch.admin; print('featurewatch.kafka.connection' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert result.stdout == "False\n"


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("as_file", [False, True])
def test_a_client_connects_by_addresses_and_properties(
    kind: type[AdminSession], as_file: bool, tmp_path: Path
) -> None:
    """Brokers as text, and the properties file of Kafka's tools or a mapping with TLS, SASL and the
    timeout (A-33)."""
    file = tmp_path / "client.properties"
    write_private(file, "".join(f"{key}={value}\n" for key, value in LOGIN.items()))
    client = kind.connect("a:1,b:2", config=file if as_file else LOGIN)
    assert [str(address) for address in client._bootstrap.addresses] == ["a:1", "b:2"]
    assert (client._bootstrap.security.mechanism, client._timeout_s) == ("PLAIN", 7.0)
    assert kind.connect("a:1", config=LOGIN, timeout_s=3)._timeout_s == 3
    assert kind.connect("a:1")._bootstrap.security.mechanism is None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "give the address of a broker"),
        ({"servers": "nowhere"}, "'nowhere' is not an address"),
        ({"servers": "a:1", "controllers": "b:1"}, "brokers or controllers, not both"),
        ({"controllers": "a:1"}, "topics are managed through brokers"),
        ({"servers": "a:1", "config": "/nowhere"}, "/nowhere cannot be read"),
        (
            {"servers": "a:1", "config": {"sasl.mechanismus": "PLAIN"}},
            "did you mean sasl.mechanism",
        ),
        (
            {"servers": "a:1", "config": {"default.api.timeout.ms": "x"}},
            "not a number of milliseconds",
        ),
    ],
)
def test_a_wrong_argument_is_one_error(arguments: dict[str, Any], reason: str) -> None:
    """Before anything is connected (A-33)."""
    with pytest.raises(RequestError, match=reason):
        TopicAdmin.connect(**arguments)


async def test_a_connected_client_changes_a_cluster() -> None:
    """The example of the package."""

    def created(request: CreateTopicsRequestV7) -> CreateTopicsResponseV7:
        result = CreateTopicsResponseV7.CreatableTopicResult(
            name=request.topics[0].name,
            topic_id=None,
            error_code=0,
            error_message=None,
            num_partitions=12,
            replication_factor=3,
            configs=(),
        )
        return CreateTopicsResponseV7(throttle_time_ms=0, topics=(result,))

    cluster = ScriptedBrokers(CreateTopicsRequestV7, 1, _1=[created])
    connections = cluster.connections()
    async with TopicAdmin.connect("broker-1:9092", connections=connections) as client:
        await client.create_topic("orders", 12, 3)
    ((_, request),) = cluster.received
    assert [(topic.name, topic.num_partitions) for topic in request.topics] == [("orders", 12)]
