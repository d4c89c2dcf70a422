"""Running stacks that tests share. Mark every test that uses one ``@pytest.mark.stack``.

- ``stack_cache``: the jar cache (fetched on first use, with progress).
- ``quorum_391``, ``quorum_430``: three combined nodes each, started on first use and shared by all
  processes of the run: use topics and names of your own, finalize nothing. Each has its
  default level. ``quorum_of(release)``: the one of that release, for tests of several releases.
- ``bus``: one 4.3.0 node for topics, shared likewise.
- ``zookeeper_391``: three brokers in ZooKeeper mode, shared likewise.
- ``make_cluster(spec)``: a started cluster of your own, gone after the test. The one to stop and
  kill nodes of: ``make_cluster(combined(["3.9.1"] * 3, "3.7-IV4"))``.
- ``ensemble``: three ZooKeeper servers, shared: write below a chroot of your own, stop no server.
- ``make_ensemble(spec)``: a started ensemble of your own, one server if no spec is given. The one
  to stop and kill servers of. `stack.zookeeper.ensemble.Ensemble`: ``.connect_string``,
  ``.leader()``, ``.server(1).kill()``, ``.server(1).start()``. With TLS:
  ``EnsembleSpec(tls=certificates.tls())`` and ``.secure_connect_string``; with SASL:
  ``digest_spec({"user": "password"})`` of `tests.stack.logins`. Kafka in ZooKeeper mode:
  ``make_cluster(zookeeper_mode(2, ensemble.connect_string + "/mine"))``.
- ``certificates``: PEM files of an authority (``.ca``), a server and a client (``.client``).

A cluster is a `stack.kafka.cluster.Cluster`: ``.bootstrap_servers``, ``.controllers``,
``.cluster_id``, ``.node(1).kill()``, ``.node(1).start("4.3.0")``, ``.leader()``,
``.node(1).metadata_log``.
"""

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from featurewatch.common.private_files import write_private
from featurewatch.kafka.failures import KnownListeners
from featurewatch.stack.java.jars import Cache, default_cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.stack.zookeeper.specs import EnsembleSpec, Tls
from tests.process_logs import started
from tests.shared_servers import SharedServers

pytest_plugins = (
    "tests.plugins.collecting",
    "tests.plugins.flaky",
    "tests.plugins.fuzzing",
    "tests.plugins.process_logs",
    "tests.plugins.nightly",
    "tests.plugins.requirements",
    "tests.plugins.scheduling",
    "tests.plugins.shared_servers",
)

MakeCluster = Callable[[ClusterSpec], Cluster]
MakeEnsemble = Callable[..., Ensemble]
"""Takes an `EnsembleSpec`, or nothing for one server."""


def pytest_configure() -> None:
    """A shell ignores SIGINT in what it runs in the background, and every process that a test
    starts would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_known_listeners(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting has worked before: another test may have had the port, and texts depend on it."""
    monkeypatch.setattr("featurewatch.kafka.connection._KNOWN", KnownListeners())


@pytest.fixture(scope="session")
def stack_cache(pytestconfig: pytest.Config) -> Cache:
    """The jars of both tested releases; a first fetch shows its progress past pytest's capture."""
    cache = Cache(default_cache())
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else ExitStack():
        for release in ("3.9.1", "4.3.0"):
            cache.class_path(release)
    return cache


@pytest.fixture(scope="session")
def quorum_391(stack_cache: Cache, shared_servers: SharedServers) -> Cluster:
    """Three combined nodes of 3.9.1, shared."""
    return shared_servers.cluster("quorum_391")


@pytest.fixture(scope="session")
def quorum_430(stack_cache: Cache, shared_servers: SharedServers) -> Cluster:
    """Three combined nodes of 4.3.0, shared."""
    return shared_servers.cluster("quorum_430")


@pytest.fixture(scope="session")
def quorum_of(stack_cache: Cache, shared_servers: SharedServers) -> Callable[[str], Cluster]:
    """The shared cluster of three combined nodes of a release, for tests of several releases.

    `request.getfixturevalue` would hide from the scheduler which tests use these clusters.
    """
    return lambda release: shared_servers.cluster(f"quorum_{release.replace('.', '')}")


@pytest.fixture(scope="session")
def bus(stack_cache: Cache, shared_servers: SharedServers) -> Cluster:
    """One 4.3.0 node for topics, shared."""
    return shared_servers.cluster("bus")


@pytest.fixture(scope="session")
def zookeeper_391(stack_cache: Cache, shared_servers: SharedServers) -> Cluster:
    """Three brokers of 3.9.1 in ZooKeeper mode, shared."""
    return shared_servers.cluster("zookeeper_391")


@pytest.fixture(scope="session")
def ensemble(stack_cache: Cache, shared_servers: SharedServers) -> Ensemble:
    """Three ZooKeeper servers, shared."""
    return shared_servers.ensemble("ensemble")


@pytest.fixture
def make_cluster(stack_cache: Cache, tmp_path: Path) -> Iterator[MakeCluster]:
    """Starts clusters that belong to one test."""
    with ExitStack() as stack:
        made: list[Cluster] = []

        def make(spec: ClusterSpec) -> Cluster:
            directory = tmp_path / f"cluster-{len(made)}"
            cluster = Cluster(spec, directory, cache=stack_cache, temporary=True)
            made.append(stack.enter_context(started(cluster)))
            return cluster

        yield make


@pytest.fixture
def make_ensemble(stack_cache: Cache, tmp_path: Path) -> Iterator[MakeEnsemble]:
    """Starts ensembles that belong to one test."""
    with ExitStack() as stack:
        made: list[Ensemble] = []

        def make(spec: EnsembleSpec | None = None) -> Ensemble:
            directory = tmp_path / f"ensemble-{len(made)}"
            servers = Ensemble(directory, spec, cache=stack_cache, temporary=True)
            made.append(stack.enter_context(started(servers)))
            return servers

        yield make


@dataclass(frozen=True)
class Certificates:
    """PEM files; ``server`` and ``client`` hold a key, then its certificate."""

    ca: Path
    server: Path
    client: Path

    def tls(self, *, clients: bool = False) -> Tls:
        """For an ensemble; with ``clients`` it demands a certificate from them too."""
        return Tls(self.server, trust_store=self.ca if clients else None)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority and what it signed: a server on the loopback interface, and a client."""
    directory = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.pem")
    for name, identity in (("server", "127.0.0.1"), ("client", "client@example.org")):
        issued = authority.issue_cert(identity)
        # Java reads private keys in PKCS #8 alone.
        key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
        write_private(directory / f"{name}.pem", pem + chain)
    return Certificates(*(directory / f"{name}.pem" for name in ("ca", "server", "client")))


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port on which nobody listens: it is bound, so that no server gets it during the test."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]
