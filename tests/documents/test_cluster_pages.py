"""The documents' command lines about a cluster, run as they are written and in order."""

import base64
import http.server
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import combined
from tests.conftest import MakeCluster
from tests.documents.blocks import Command
from tests.documents.following import block_of, ended, follow, pages
from tests.documents.session import Session
from tests.monitor.strimzi_resources import document, kafka, pool
from tests.processes import free_port
from tests.waiting import eventually

pytestmark = pytest.mark.stack

ACKNOWLEDGED: Final = "5L6g3nShT-eMCtK--X86sw/unreadable/record/MESSAGE"
"""The id of an alert in docs/reference/alerts.md."""


class _Receiver(http.server.BaseHTTPRequestHandler):
    """An Alertmanager and a webhook that take everything."""

    def do_POST(self) -> None:
        """Answers 200."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Prints nothing."""


@pytest.fixture(scope="module")
def receiver() -> Iterator[str]:
    """The address of a receiver of notifications."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pages("monitored")
def test_lines_about_a_monitored_cluster(page: str, monitored: Session, receiver: str) -> None:
    """What a reader looks at while `featurewatch up` follows a cluster."""
    own = monitored.child()
    secret = monitored.directory / "webhook-secret"
    secret.write_text("whsec_" + base64.b64encode(bytes(32)).decode())
    settings = block_of("docs/reference/alerts.md", "yaml", "web:\n  external_url")
    settings["notify"]["alertmanagers"] = [f"http://{receiver}"]
    (webhook,) = settings["notify"]["webhooks"]
    webhook.update(url=f"http://{receiver}/", secret_file=str(secret), private=True)
    (monitored.directory / "featurewatch.yaml").write_text(yaml.safe_dump(settings))
    if page == "docs/reference/alerts.md":
        own.names = {**own.names, ACKNOWLEDGED: _unreadable(monitored)}
    if page == "docs/how-to/page.md":
        port = str(free_port())
        own.variables = {**own.variables, "FEATUREWATCH_WEB__PAGE_PORT": port}
        own.names = {**own.names, "9780": port}
    with ended(own):
        if "/FeaturewatchNotify" in page:
            own.again(Command("", 0, "featurewatch notify --config FILE"))
        follow(own, "monitored", page)


def _unreadable(session: Session) -> str:
    """The id of an alert about a message that cannot be read, which is sent."""
    cluster = session.names["ID"]
    address = session.names["kafka-1:9092"]
    producer = Producer({"bootstrap.servers": address, "partitioner": "murmur2"})
    producer.produce("featurewatch.metadata-log", key=cluster, value=b"a test message")
    assert producer.flush(30) == 0

    found: list[str] = []

    def is_found() -> bool:
        printed = session.again(Command("", 0, "featurewatch alerts --json"))
        ids = (json.loads(line)["id"] for line in printed.splitlines())
        found.extend(id_ for id_ in ids if "/unreadable/" in id_)
        return bool(found)

    assert eventually(is_found)
    return found[0]


@pages("quorum")
def test_lines_that_change_topics(page: str, quorum_430: Cluster, tmp_path: Path) -> None:
    """Topics, reassignments and elections of a real cluster."""
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    brokers = [str(node.id) for node in quorum_430.spec.nodes]
    names = {
        "kafka-1:9092": quorum_430.bootstrap_servers,
        "kafka-1:9093": quorum_430.controllers,
        "orders": topic,
        "orders.*": f"{topic}.*",
        "4,5,6": ",".join(brokers),
    }
    combined_pool = pool("all", ["broker", "controller"], [1, 2, 3])
    topics = {"version": 1, "topics": [{"topic": topic}]}
    move = {"topic": topic, "partition": 0, "replicas": [3, 2, 1]}
    led = {"partitions": [{"topic": topic, "partition": 0}]}
    for name, content in (
        ("topics.json", topics),
        ("plan.json", {"version": 1, "partitions": [move]}),
        ("partitions.json", led),
        ("kafka.yaml", document(kafka(cluster=quorum_430.cluster_id), combined_pool)),
    ):
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "prepare-upgrade.txt").write_text("features describe\ntopics list\n")
    with ended(Session(tmp_path, names)) as session:
        follow(session, "quorum", page)
    admin = AdminClient({"bootstrap.servers": quorum_430.bootstrap_servers})
    for future in admin.delete_topics([topic]).values():
        with suppress(KafkaException):
            future.result()


@pages("upgrade")
def test_lines_that_lead_an_upgrade(page: str, quorum_391: Cluster, tmp_path: Path) -> None:
    """The plan of a real cluster that is not upgraded here, and what follows from it."""
    names = {
        "kafka-1:9092": quorum_391.bootstrap_servers,
        "kafka-1:9093": quorum_391.controllers,
        "/var/lib/kafka": str(quorum_391.node(3).data),
    }
    with ended(Session(tmp_path, names)) as session:
        follow(session, "upgrade", page)


@pages("levels")
def test_lines_that_change_levels(page: str, make_cluster: MakeCluster, tmp_path: Path) -> None:
    """Levels of a cluster that nobody else uses."""
    cluster = make_cluster(combined(["4.3.0"]))
    names = {
        "kafka-1:9092": cluster.bootstrap_servers,
        "kafka-1:9093": cluster.controllers,
    }
    levels = block_of(page, "yaml", "version: 1\nlevels")
    (tmp_path / "levels.yaml").write_text(yaml.safe_dump(levels))
    sections = [{"name": "orders-eu", "servers": cluster.bootstrap_servers}]
    (tmp_path / "featurewatch.yaml").write_text(yaml.safe_dump({"clusters": sections}))
    with ended(Session(tmp_path, names)) as session:
        follow(session, "levels", page)
