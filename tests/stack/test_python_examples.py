"""The examples of `featurewatch.admin` in documents and docstrings, run on brokers of 4.3.0.

Those of KIP-4's draft run in `test_controlled_brokers`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from featurewatch import admin
from featurewatch.admin import KafkaApiError, TopicAdmin, blocking, blocking_client, session
from featurewatch.admin.cluster import registrations
from featurewatch.admin.elections import client as elections
from featurewatch.admin.features import client as features
from featurewatch.admin.reassignments import client as reassignments
from featurewatch.admin.topics import client as topics
from featurewatch.admin.topics import reader
from featurewatch.admin.topics.reader import TopicMetadataReader
from featurewatch.common.private_files import write_private
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams import types
from tests.python_examples import (
    examples_in_docstring,
    examples_in_page,
    replaced,
    run_example,
)

pytestmark = pytest.mark.stack

NAMES = {
    **{name: getattr(admin, name) for name in admin.__all__},
    **{name: getattr(types, name) for name in ("METADATA_VERSION", "FeatureLevel")},
    **{name: getattr(types, name) for name in ("NodeId", "NodeKey", "Role")},
    "TopicMetadataReader": TopicMetadataReader,
}
"""What the docstrings' examples take as imported."""
DOCUMENTED: list[ModuleType | Any] = [
    admin,
    blocking_client.blocking,
    elections,
    features,
    reader,
    reassignments,
    registrations,
    session.AdminSession.connect,
    topics,
]
EXAMPLES = [
    *(
        pytest.param(source, {}, id=f"{page}-{number}")
        for page in ("how-to/admin.md", "how-to/features.md")
        for number, source in enumerate(examples_in_page(page))
    ),
    *(
        pytest.param(source, NAMES, id=owner.__name__)
        for owner in DOCUMENTED
        for source in examples_in_docstring(owner)
    ),
]


@contextmanager
def topic(servers: str, *, exists: bool) -> Iterator[str]:
    """A name of a topic, which is deleted in the end."""
    name = f"example-{time.time_ns()}"
    with blocking(TopicAdmin.connect(servers)) as client:
        if exists:
            client.create_topic(name, assignment=[(1, 2, 3)])
        yield name
        client.delete([name])


@pytest.mark.parametrize(("source", "names"), EXAMPLES)
def test_an_example_runs(
    quorum_430: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    names: dict[str, Any],
) -> None:
    """As it is written, but for the address and the topic's name; only the levels that the cluster
    has are finalized, and 4.3 cannot unregister controllers."""
    monkeypatch.chdir(tmp_path)
    write_private(tmp_path / "client.properties", "security.protocol=PLAINTEXT\n")
    servers = quorum_430.bootstrap_servers
    is_used = "TopicPartition(" in source
    has_topic = "orders" in source
    refused = pytest.raises(KafkaApiError) if "unregister" in source else nullcontext()
    with topic(servers, exists=is_used) as name, refused:
        values = {"kafka-1:9092": servers} | ({"orders": name} if has_topic else {})
        run_example(replaced(source, values), names)


def test_every_documented_client_has_an_example() -> None:
    """An example that is moved or broken would otherwise run no more."""
    assert [owner.__name__ for owner in DOCUMENTED if not examples_in_docstring(owner)] == []
    assert len(examples_in_page("how-to/admin.md")) == 3
    assert len(examples_in_page("how-to/features.md")) == 1
