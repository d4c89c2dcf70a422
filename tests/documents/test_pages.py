"""The documents' command lines, run as they are written and in order (see `scripts`)."""

import base64
import http.server
import json
import subprocess
import tarfile
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.stack.java.jars import Cache, tool_command
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles, combined
from featurewatch.streams.types import METADATA_VERSION
from tests.conftest import MakeCluster
from tests.documents.blocks import PAGES, Block, Command, blocks, commands
from tests.documents.register import SHOWN
from tests.documents.scripts import NIGHTLY, codes_of, place_of
from tests.documents.session import Session, assert_shown
from tests.integrations.tools import tool
from tests.paths import ROOT
from tests.pipeline.history.lakes import HOUR, Story, lake_of, year
from tests.processes import free_port
from tests.waiting import eventually

DEFAULT_PORTS: Final = {"source": 9584, "worker": 9778, "page": 9780, "notify": 9786}
ACKNOWLEDGED: Final = "5L6g3nShT-eMCtK--X86sw/unreadable/record/MESSAGE"
KAFKA: Final = "kafka-1:9093,kafka-2:9093,kafka-3:9093"
HERE = {place: [] for place in ("monitored", "quorum", "levels", "lake", "alone", *NIGHTLY)}
for page in PAGES:
    lines = [c for block in blocks(page) for c in commands(block)]
    for place in dict.fromkeys(map(place_of, lines)):
        if place is not None:
            HERE[place].append(str(page.relative_to(ROOT)))


def pages(place: str) -> pytest.MarkDecorator:
    """The pages with lines that run in a place."""
    return pytest.mark.parametrize("page", HERE[place])


def follow(session: Session, place: str, page: str) -> None:
    """Runs the lines of a page that belong to a place, and compares what the page shows of them."""
    for block in blocks(ROOT / page):
        for command in commands(block):
            if place_of(command) == place:
                printed = session.run(command, codes_of(command))
                if command.output and not _is_sample(command):
                    assert_shown(session.named(command.output), printed)
    session.close()


def _is_sample(command: Command) -> bool:
    return any(entry.covers(command.page, command.output or "") for entry in SHOWN)


def block_of(page: str, language: str, begins: str) -> Any:
    """The content of the block of a page that begins so."""
    found: list[Block] = [*blocks(ROOT / page)]
    (text,) = (b.text for b in found if b.language == language and b.text.startswith(begins))
    return yaml.safe_load(text)


@contextmanager
def ended(session: Session) -> Iterator[Session]:
    """A session of which nothing runs afterwards."""
    try:
        yield session
    finally:
        session.kill()


# Without a cluster ------------------------------------------------------------------------------


@pages("alone")
def test_lines_that_need_no_cluster(page: str, tmp_path: Path) -> None:
    """Rules, dashboards, simulations, log directories."""
    names = {
        "/etc/prometheus/rules": "rules",
        "/etc/featurewatch/webhook-secret": "webhook-secret",
        "0..1000000": "0..5",
        "1000000": "5",
        "100000": "2",
    }
    properties = "process.roles=controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:9093\n"
    properties += "listeners=CONTROLLER://localhost:9093\ncontroller.listener.names=CONTROLLER\n"
    (tmp_path / "server.properties").write_text(f"{properties}log.dirs={tmp_path / 'log'}\n")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    route = block_of("docs/how-to/receivers.md", "yaml", "route:\n  receiver: team")
    (tmp_path / "alertmanager.yml").write_text(yaml.safe_dump(route))
    with ended(Session(tmp_path, names)) as session:
        if page.endswith("receivers.md"):
            session.program("amtool", tool("amtool"))
        follow(session, "alone", page)


# Of a lake --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A year of a cluster and two that are followed now, as the pipeline stores them."""
    stories = [year("orders")]
    for cluster, release in (("4L6g3nShT-eMCtK--X86sw", "3.9"), ("uJyR2Uy8R7mPp1jWn7tDqg", "4.0")):
        story = Story(cluster, datetime.now(UTC) - 2 * HOUR)
        for role, node in (("controller", 1), ("broker", 1), ("broker", 2)):
            story.node(role, node, release, timedelta(seconds=1))
        story.finalize(METADATA_VERSION, 21, timedelta(seconds=1))
        story.heartbeat(datetime.now(UTC))
        stories.append(story)
    return lake_of(tmp_path_factory.mktemp("lake"), *stories)


@pages("lake")
def test_lines_that_read_a_lake(page: str, lake: Path, tmp_path: Path) -> None:
    """What was finalized, and the fleet, from Delta's tables."""
    desired = block_of("docs/how-to/fleet.md", "yaml", "clusters:                       # names")
    (tmp_path / "levels.yaml").write_text(yaml.safe_dump(desired))
    with ended(Session(tmp_path, {"/data/lake": str(lake)})) as session:
        follow(session, "lake", page)


# Of a cluster -----------------------------------------------------------------------------------


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


@pytest.fixture(scope="module")
def monitored(
    quorum_430: Cluster, stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """A shell beside `featurewatch up`, which is started as the README says."""
    directory = tmp_path_factory.mktemp("monitored")
    ports = {name: free_port() for name in ("source", "worker", "page", "notify")}
    names = {
        KAFKA: quorum_430.controllers,
        "kafka-1:9093": quorum_430.controllers.split(",")[0],
        "HOST:PORT": quorum_430.bootstrap_servers,
        "HOST": "127.0.0.1",
        "localhost": "127.0.0.1",
        **dict.fromkeys(("ID", "orders-eu"), quorum_430.cluster_id),
        **{str(port): str(ports[name]) for name, port in DEFAULT_PORTS.items()},
        "FILE": "featurewatch.yaml",
    }
    variables = {f"FEATUREWATCH_WEB__{name.upper()}_PORT": str(ports[name]) for name in ports}
    with ended(Session(directory, names, variables)) as session:
        up = f"featurewatch up --controllers {KAFKA}"
        session.run(Command("README.md", 0, up))
        bus = next(directory.rglob("bus/bootstrap-servers")).read_text().strip()
        names["kafka-1:9092"] = variables["BUS"] = bus
        configs = tool_command("4.3.0", "kafka.admin.ConfigCommand", cache=stack_cache)
        session.program("kafka-configs", *configs)
        ready = Command("", 0, "curl -fs localhost:9778/readyz && curl -fs localhost:9584/readyz")
        assert eventually(lambda: _succeeds(session, ready)), "up does not become ready"
        yield session
        session.close()


def _succeeds(session: Session, command: Command) -> bool:
    try:
        session.run(command)
    except AssertionError:
        return False
    return True


@pytest.mark.stack
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
        follow(own, "monitored", page)


def _unreadable(session: Session) -> str:
    """The id of an alert about a message that cannot be read, which is sent."""
    cluster = session.names["ID"]
    producer = Producer({"bootstrap.servers": session.names["kafka-1:9092"]})
    producer.produce("featurewatch.metadata-log", key=cluster, value=b"a test message")
    assert producer.flush(30) == 0

    def ids() -> list[str]:
        printed = session.again(Command("", 0, "featurewatch alerts --json"))
        return [json.loads(line)["id"] for line in printed.splitlines()]

    assert eventually(lambda: any("/unreadable/" in id_ for id_ in ids()))
    return next(id_ for id_ in ids() if "/unreadable/" in id_)


@pytest.mark.stack
@pages("quorum")
def test_lines_that_change_topics(page: str, quorum_430: Cluster, tmp_path: Path) -> None:
    """Topics, reassignments and elections of a real cluster."""
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    brokers = [str(node.id) for node in quorum_430.spec.nodes]
    names = {
        "kafka-1:9092": quorum_430.bootstrap_servers,
        "orders": topic,
        "orders.*": f"{topic}.*",
        "4,5,6": ",".join(brokers),
    }
    topics = {"version": 1, "topics": [{"topic": topic}]}
    move = {"topic": topic, "partition": 0, "replicas": [3, 2, 1]}
    led = {"partitions": [{"topic": topic, "partition": 0}]}
    for name, content in (
        ("topics.json", topics),
        ("plan.json", {"version": 1, "partitions": [move]}),
        ("partitions.json", led),
    ):
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "prepare-upgrade.txt").write_text("features describe\ntopics list\n")
    with ended(Session(tmp_path, names)) as session:
        follow(session, "quorum", page)
    admin = AdminClient({"bootstrap.servers": quorum_430.bootstrap_servers})
    for future in admin.delete_topics([topic]).values():
        with suppress(KafkaException):
            future.result()


@pytest.mark.stack
@pages("levels")
def test_lines_that_change_levels(page: str, make_cluster: MakeCluster, tmp_path: Path) -> None:
    """Levels of a cluster that nobody else uses."""
    cluster = make_cluster(combined(["4.3.0"]))
    names = {
        "kafka-1:9092": cluster.bootstrap_servers,
        "kafka-1:9093": cluster.controllers,
    }
    with ended(Session(tmp_path, names)) as session:
        follow(session, "levels", page)


# By night ---------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.stack
@pages("stack")
def test_lines_that_start_stacks(page: str, stack_cache: Cache, tmp_path: Path) -> None:
    """Each page begins without a stack, and leaves at most one."""
    with ended(Session(tmp_path)) as session:
        try:
            follow(session, "stack", page)
        finally:
            session.run(Command(page, 0, "featurewatch stack down --remove || true"))


@pytest.mark.nightly
@pytest.mark.stack
def test_lines_that_rehearse_an_upgrade(make_cluster: MakeCluster, tmp_path: Path) -> None:
    """A node of 3.9 with an older level, and then what its directory shows."""
    cluster = make_cluster(combined(["3.9.1"], "3.7-IV4"))
    names = {
        "kafka-1:9093": cluster.controllers,
        "kafka-1:9092": cluster.bootstrap_servers,
        "/var/lib/kafka": str(cluster.node(1).data),
    }
    with ended(Session(tmp_path, names)) as session:
        follow(session, "rehearsal", "docs/how-to/rehearse.md")
        raise_level = "features --bootstrap-server kafka-1:9092 upgrade --metadata 3.9"
        session.run(Command("", 0, f"featurewatch {raise_level}"))
        follow(session, "rehearsal", "docs/how-to/storage.md")


def _four_brokers() -> ClusterSpec:
    brokers = [NodeSpec(node, "4.3.0", Roles.BROKER) for node in (2, 3, 4)]
    return ClusterSpec([NodeSpec(1, "4.3.0"), *brokers])


def _create(cluster: Cluster, **topics: Sequence[Sequence[int]]) -> None:
    """Creates topics with these replicas; writes need two of them, where there are two."""
    new = [
        NewTopic(
            name,
            replica_assignment=[*map(list, replicas)],
            config={"min.insync.replicas": str(len(replicas[0]))},
        )
        for name, replicas in topics.items()
    ]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.create_topics(new).values():
        future.result()


@pytest.mark.nightly
@pytest.mark.stack
def test_lines_that_rehearse_moves(make_cluster: MakeCluster, tmp_path: Path) -> None:
    """Four brokers and the topics of the page."""
    cluster = make_cluster(_four_brokers())
    _create(cluster, orders=[(1, 2), (2, 3), (3, 1)] * 4, audit=[(2,)])
    moves = [{"topic": "orders", "partition": n, "replicas": [4, 3]} for n in (1, 4, 7)]
    plan = {"version": 1, "partitions": moves}
    (tmp_path / "moves.json").write_text(json.dumps(plan))
    with ended(Session(tmp_path, {"kafka-1:9093": cluster.controllers})) as session:
        follow(session, "moves", "docs/how-to/rehearse.md")


@pytest.mark.nightly
@pytest.mark.stack
def test_lines_about_operations(
    make_cluster: MakeCluster, stack_cache: Cache, tmp_path: Path
) -> None:
    """The timeline of a cluster that `featurewatch up --operations` follows."""
    cluster = make_cluster(_four_brokers())
    _create(cluster, orders=[(1, 2, 3)] * 12)
    names = {"host:9093": cluster.controllers, "host:9092": cluster.bootstrap_servers}
    ports = ("SOURCE", "WORKER", "PAGE", "NOTIFY")
    variables = {f"FEATUREWATCH_WEB__{name}_PORT": str(free_port()) for name in ports}
    with ended(Session(tmp_path, names, variables)) as session:
        configs = tool_command("4.3.0", "kafka.admin.ConfigCommand", cache=stack_cache)
        session.program("kafka-configs", *configs)
        follow(session, "operations", "docs/explanation/operations.md")


@pytest.mark.nightly
@pytest.mark.stack
def test_lines_about_the_lake(
    monitored: Session, quorum_430: Cluster, stack_cache: Cache, tmp_path: Path
) -> None:
    """The lake is filled, audited, and filled from files."""
    node = quorum_430.node(1)
    session = monitored.child()
    session.names = {
        **session.names,
        "/data/lake": str(tmp_path / "lake"),
        "/var/lib/kafka/metadata": str(node.metadata_log),
        "MkU3OEVBNTcwNTJENDM2Qk": quorum_430.cluster_id,
    }
    with tarfile.open(monitored.directory / "support-bundle.tar.gz", "w:gz") as bundle:
        bundle.add(node.data, "node-1")
    (segment, *_) = sorted(node.metadata_log.glob("*.log"))
    arguments = ("--cluster-metadata-decoder", "--files", str(segment))
    dump = tool_command(
        "4.3.0", "org.apache.kafka.tools.DumpLogSegments", *arguments, cache=stack_cache
    )
    text = subprocess.run(dump, capture_output=True, check=True).stdout
    (monitored.directory / "dump.txt").write_bytes(text)
    with ended(session):
        for page in ("pipeline", "audit", "replay"):
            follow(session, "spark", f"docs/how-to/{page}.md")
