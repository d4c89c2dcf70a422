"""Real ZooKeeper servers: start, failover, durability, stop."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import make_acl

from featurewatch.stack.errors import StackError, StartError
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.zookeeper.ensemble import Ensemble, four_letter_command
from featurewatch.stack.zookeeper.specs import EnsembleSpec
from tests.conftest import Certificates
from tests.paths import ROOT
from tests.processes import is_alive, popen
from tests.stack.logins import digest_spec
from tests.waiting import eventually

pytestmark = pytest.mark.stack

MakeEnsemble = Callable[..., Ensemble]


@contextmanager
def session(hosts: str, start_s: float = 15.0, **options: Any) -> Iterator[KazooClient]:
    """A client with a session, closed after the block."""
    client = KazooClient(hosts, **options)
    try:
        client.start(timeout=start_s)
        yield client
    finally:
        client.stop()
        client.close()


def test_three_servers_serve_one_tree(ensemble: Ensemble) -> None:
    """A started ensemble has one leader, and a write to one server is read from another."""
    assert sorted(server.mode() for server in ensemble.servers) == ["follower"] * 2 + ["leader"]
    assert ensemble.secure_connect_string == ""
    with session(ensemble.connect_string) as client:
        client.create("/three", b"of three")
    for server in ensemble.servers:
        with session(server.address) as client:
            client.sync("/three")
            assert client.get("/three")[0] == b"of three"


def test_leader_killed_and_restarted(make_ensemble: MakeEnsemble) -> None:
    """After kill -9 of the leader another one leads, the session survives, and the old one
    returns."""
    ensemble = make_ensemble(EnsembleSpec(3))
    with session(ensemble.connect_string, timeout=30.0) as client:
        client.create("/mine", b"1", ephemeral=True)
        before = client.client_id
        old = ensemble.leader()
        old.kill()
        assert not old.running
        assert "does not respond" in (old.not_ready_reason() or "")
        assert ensemble.leader().number != old.number
        assert client.retry(client.get, "/mine")[0] == b"1"
        assert client.client_id == before
    old.start()
    assert old.mode() == "follower"
    with session(old.address) as client:
        client.sync("/")
        with pytest.raises(NoNodeError):
            client.get("/mine")


def test_no_majority_no_service(make_ensemble: MakeEnsemble) -> None:
    """With two of three servers down, the third reports that it does not serve."""
    ensemble = make_ensemble(EnsembleSpec(3))
    for number in (1, 2):
        ensemble.server(number).stop()
    survivor = ensemble.server(3)
    assert eventually(lambda: "not currently serving" in survivor.mode())
    with pytest.raises(StackError, match="no ZooKeeper server leads"):
        ensemble.leader(timeout_s=0.3)
    ensemble.server(1).start()
    assert survivor.not_ready_reason() is None


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_one_server_keeps_its_data(make_ensemble: MakeEnsemble, how: str) -> None:
    """Data survives a stop and kill -9, at the same address."""
    ensemble = make_ensemble()
    address = ensemble.connect_string
    with session(address) as client:
        client.create("/kept", b"x")
    server = ensemble.server(1)
    getattr(server, how)()
    assert server.pid is None
    server.start()
    assert (server.mode(), ensemble.connect_string) == ("standalone", address)
    with session(address) as client:
        assert client.get("/kept")[0] == b"x"


def test_properties_reach_the_server(make_ensemble: MakeEnsemble) -> None:
    """Given properties override the stack's own."""
    ensemble = make_ensemble(EnsembleSpec(properties={"4lw.commands.whitelist": "srvr,conf"}))
    port = ensemble.server(1).ports.client
    assert f"clientPort={port}" in four_letter_command(port, "conf")
    assert "not in the whitelist" in four_letter_command(port, "ruok")


def test_misuse_raises(ensemble: Ensemble) -> None:
    """An even number, an unknown server and a second start raise one-line errors."""
    with pytest.raises(StackError, match=r"1, 3, 5, \.\.\. servers, not 2"):
        EnsembleSpec(2)
    with pytest.raises(StackError, match="no ZooKeeper server 4; the last one is 3"):
        ensemble.server(4)
    with pytest.raises(StartError, match="ZooKeeper server 1 runs already"):
        ensemble.server(1).start()


def test_a_failed_start_gives_the_reason(stack_cache: Cache, tmp_path: Path) -> None:
    """The error of a server that ends during its start has its own reason; no directory is left."""
    spec = EnsembleSpec(properties={"tickTime": "never"})
    ensemble = Ensemble(tmp_path / "ensemble", spec, cache=stack_cache, temporary=True)
    with pytest.raises(StartError, match=r"server 1 ended .*never") as caught, ensemble:
        pass
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ensemble").exists()


def test_tls(make_ensemble: MakeEnsemble, certificates: Certificates) -> None:
    """A client that trusts the authority gets a session over TLS; another gets none."""
    ensemble = make_ensemble(EnsembleSpec(tls=certificates.tls()))
    hosts = ensemble.secure_connect_string
    with session(hosts, use_ssl=True, ca=str(certificates.ca)) as client:
        client.create("/over-tls")
    with pytest.raises(KazooTimeoutError), session(hosts, 1.0, use_ssl=True):
        pass


def test_tls_with_client_certificates(
    make_ensemble: MakeEnsemble, certificates: Certificates
) -> None:
    """An ensemble that requires client certificates rejects clients without one."""
    ensemble = make_ensemble(EnsembleSpec(tls=certificates.tls(clients=True)))
    hosts, ca = ensemble.secure_connect_string, str(certificates.ca)
    own = str(certificates.client)
    with session(hosts, use_ssl=True, ca=ca, certfile=own, keyfile=own) as client:
        assert client.exists("/zookeeper")
    with pytest.raises(KazooTimeoutError), session(hosts, 1.0, use_ssl=True, ca=ca):
        pass


# kazoo's own thread dies of a refused login, aloud.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_digest_login(make_ensemble: MakeEnsemble) -> None:
    """With DIGEST-MD5 a user with the password reads and writes; others get no session."""
    ensemble = make_ensemble(digest_spec({"watcher": "secret"}))
    login = {"mechanism": "DIGEST-MD5", "username": "watcher", "password": "secret"}
    with session(ensemble.connect_string, sasl_options=login) as client:
        client.create("/mine", acl=[make_acl("sasl", "watcher", all=True)])
        assert client.exists("/mine")
    wrong = login | {"password": "wrong"}
    for options in ({"sasl_options": wrong}, {}):
        refused = pytest.raises((KazooTimeoutError, KazooException))
        with refused, session(ensemble.connect_string, 1.0, **options) as client:
            client.create("/others")
    with session(ensemble.connect_string, sasl_options=login) as client:
        assert not client.exists("/others")


OWNER = """
import sys, time
from pathlib import Path
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.zookeeper.specs import EnsembleSpec
from tests.stack.logins import digest_spec
from featurewatch.stack.zookeeper.ensemble import Ensemble
ensemble = Ensemble(Path(sys.argv[1]), EnsembleSpec(3), cache=Cache(Path(sys.argv[2])),
                    temporary=True)
ensemble.start()
print(*[server.pid for server in ensemble.servers], flush=True)
time.sleep(600)
"""


def test_killed_owner_leaves_no_server(stack_cache: Cache, tmp_path: Path) -> None:
    """After kill -9 of the process that started an ensemble, the servers end and the directory is
    removed within seconds."""
    directory = tmp_path / "ensemble"
    command = [sys.executable, "-c", OWNER, str(directory), str(stack_cache.directory)]
    with popen(command, stdout=subprocess.PIPE, cwd=ROOT) as owner:
        assert owner.stdout is not None
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 3
        assert all(map(is_alive, pids))
        owner.send_signal(signal.SIGKILL)
    assert eventually(lambda: not any(map(is_alive, pids)))
    assert eventually(lambda: not directory.exists())
