"""A pytest plugin: the servers that all processes of a run share."""

from typing import Any

import pytest

from tests.shared_servers import OwnServers, RemoteServers, SharedServers

_SERVERS = pytest.StashKey[SharedServers]()


@pytest.fixture(scope="session")
def shared_servers(pytestconfig: pytest.Config) -> SharedServers:
    """The shared servers of this run."""
    return pytestconfig.stash[_SERVERS]


def pytest_configure(config: pytest.Config) -> None:
    """The main process owns the servers; a worker of xdist asks it for them."""
    workerinput: dict[str, Any] | None = getattr(config, "workerinput", None)
    config.stash[_SERVERS] = (
        OwnServers() if workerinput is None else RemoteServers(workerinput["shared_servers"])
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends them."""
    config.stash[_SERVERS].close()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a worker of xdist where it finds the main process."""
    servers = node.config.stash[_SERVERS]
    assert isinstance(servers, OwnServers)
    node.workerinput["shared_servers"] = servers.listen()
