"""A pytest plugin: the servers that all processes of a run share.

Those of a group of tests (`tests.plugins.scheduling`) end with the group: each idle node takes two
hundredths of a core, and nine of them would run until the end.
"""

from collections.abc import Generator
from typing import Any

import pytest

from tests.plugins.scheduling import GROUPS, SCOPE
from tests.shared_servers import SERVERS, OwnServers, RemoteServers, SharedServers

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


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Ends the servers of a group after its last test."""
    result = yield
    scope = item.stash.get(SCOPE, "")
    if scope in GROUPS and (nextitem is None or nextitem.stash.get(SCOPE, "") != scope):
        for name in sorted(GROUPS[scope] & SERVERS.keys()):
            item.config.stash[_SERVERS].end(name)
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a worker of xdist where it finds the main process."""
    servers = node.config.stash[_SERVERS]
    assert isinstance(servers, OwnServers)
    node.workerinput["shared_servers"] = servers.listen()
