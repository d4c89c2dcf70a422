"""A cluster that `featurewatch up` follows, with a shell beside it."""

from collections.abc import Iterator
from typing import Final

import pytest

from featurewatch.stack.java.jars import Cache, tool_command
from featurewatch.stack.kafka.cluster import Cluster
from tests.documents.blocks import Command
from tests.documents.following import ended
from tests.documents.session import Session
from tests.processes import free_port
from tests.waiting import eventually

DEFAULT_PORTS: Final = {"source": 9584, "worker": 9778, "page": 9780, "notify": 9786}
KAFKA: Final = "kafka-1:9093,kafka-2:9093,kafka-3:9093"


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
