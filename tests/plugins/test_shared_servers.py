"""The plugin of shared servers, and the servers themselves."""

from collections.abc import Iterator

import pytest

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.zookeeper.ensemble import Ensemble
from tests.paths import ROOT
from tests.shared_servers import SERVERS, OwnServers, RemoteServers

pytest_plugins = ("pytester",)

INI = f"""
[pytest]
addopts = -p xdist -p tests.plugins.scheduling -p tests.plugins.shared_servers -p no:cacheprovider
    --import-mode=importlib
pythonpath = {ROOT}
markers = stack
"""
CONFTEST = """
import pathlib, pytest
from tests.shared_servers import RemoteServers

def log(text):
    with pathlib.Path({log!r}).open("a") as file:
        file.write(text + "\\n")

RemoteServers.end = lambda self, name: log(name)

@pytest.fixture
def logged(request):
    log(request.node.name)

@pytest.fixture
def quorum_430():
    pass
"""
QUORUM = "def test_{0}(logged, quorum_430): pass\ndef test_{0}_alone(logged): pass\n"


def test_servers_of_a_group_end_with_it(pytester: pytest.Pytester) -> None:
    """After the last test of its last file, and before any other test."""
    pytester.makeini(INI)
    log = pytester.path / "log"
    pytester.makeconftest(CONFTEST.format(log=str(log)))
    others = "def test_one(logged): pass\ndef test_other(logged): pass\n"
    pytester.makepyfile(test_a=others, test_b=QUORUM.format("b"), test_c=QUORUM.format("c"))
    assert pytester.runpytest_subprocess("-n", "1").ret == 0
    lines = log.read_text().splitlines()
    assert lines == [
        *("test_b", "test_b_alone", "test_c", "test_c_alone"),
        *("quorum_391", "quorum_430", "zookeeper_391"),
        *("test_one", "test_other"),
    ]


@pytest.fixture
def own(stack_cache: Cache, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnServers]:
    """The servers of a run, one ensemble of one server."""
    assert stack_cache
    monkeypatch.setitem(
        SERVERS,
        "ensemble",
        lambda own, directory: Ensemble(directory, cache=own.cache, temporary=True),
    )
    servers = OwnServers()
    yield servers
    servers.close()


@pytest.mark.stack
def test_servers_that_ended_are_started_again(own: OwnServers) -> None:
    """A process that asks again gets new ones; those that nobody asked for need no end."""
    remote = RemoteServers(own.listen())
    remote.end("ensemble")
    first = remote.ensemble("ensemble")
    pid = first.server(1).pid
    assert first.server(1).mode() == "standalone"
    remote.end("ensemble")
    assert not first.server(1).running
    assert not first.directory.exists()
    second = remote.ensemble("ensemble")
    assert second.server(1).mode() == "standalone"
    assert second.server(1).pid not in (None, pid)
    assert own.ensemble("ensemble").server(1).pid == second.server(1).pid
