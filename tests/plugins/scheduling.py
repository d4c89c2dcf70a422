"""A pytest plugin: how a run in several processes (``-n``) hands out the tests.

A process takes a file at a time, but what shares a fixture that others would disturb, or that is
costly to start, goes to one process (`GROUPS`). Groups come first, then what needs a stack: short
files are left for the end, so that all processes end at the same time.
"""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer

GROUPS: Final = {
    "spark": {"spark"},
    "quorums": {"quorum_391", "quorum_430", "quorum_of", "zookeeper_391", "tools_of"},
}
"""The fixtures of each group. Tests of quorums look at all topics of a cluster or at all of its
reassignments: no other test may change these meanwhile."""

SCOPE: Final = pytest.StashKey[str]()
"""What a test is handed out with, in a worker of xdist."""

LONGEST: Final = (
    "tests/agents",
    "tests/integration/processes",
    "tests/stack",
    "tests/faults",
    "tests/integration",
    "tests/web",
    "tests/integrations/notify",
)
"""Where the files are that take longest, the longest first."""


def scopes_of(items: list[pytest.Item]) -> dict[str, str]:
    """By the id of each test what it is handed out with: the name of a group, or its file."""
    groups = {
        _file_of(item): group
        for group, fixtures in GROUPS.items()
        for item in items
        if not fixtures.isdisjoint(getattr(item, "fixturenames", ()))
    }
    return {item.nodeid: groups.get(_file_of(item), _file_of(item)) for item in items}


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _in_order(items: list[pytest.Item], scopes: dict[str, str]) -> list[pytest.Item]:
    """The tests in the order in which their scopes are handed out."""
    with_stack = {scopes[item.nodeid] for item in items if item.get_closest_marker("stack")}
    order = [*GROUPS, *LONGEST]

    def rank(scope: str) -> tuple[bool, int]:
        places = [order.index(name) for name in order if f"{scope}/".startswith(f"{name}/")]
        is_short = scope not in with_stack and scope not in GROUPS
        return is_short, min(places, default=len(order))

    ranks = {scope: rank(scope) for scope in {*scopes.values()}}
    return sorted(items, key=lambda item: ranks[scopes[item.nodeid]])


class ScopeScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Each process takes a scope of tests, in the order of the tests."""

    _scopes: dict[str, str] | None = None

    def _split_scope(self, nodeid: str) -> str:
        if self._scopes is None:
            # All workers have written the same by now.
            file = next(self.config._tmp_path_factory.getbasetemp().glob("scopes-*.json"))
            self._scopes = json.loads(file.read_text())
        return self._scopes[nodeid]


def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> ScopeScheduling:
    """The scheduler of this run, which hands scopes out in the order of the tests."""
    config.option.loadscopereorder = False
    return ScopeScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the tests of a worker of xdist in order, and tells the main process their scopes.

    Two tests of one name end the run: xdist would run one of them and tell nobody. So does a test
    that needs Kafka's jars and is not marked: `make test-fast` would fetch them.
    """
    for item in items:
        has_jars = "stack_cache" in getattr(item, "fixturenames", ())
        if has_jars and not item.get_closest_marker("stack"):
            raise pytest.UsageError(f"{item.nodeid} needs the mark stack")
    counts = Counter(item.nodeid for item in items)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise pytest.UsageError(f"{counts[twice[0]]} tests have one name: {twice[0]}")
    workerinput: dict[str, Any] | None = getattr(config, "workerinput", None)
    if workerinput is not None:
        scopes = scopes_of(items)
        for item in items:
            item.stash[SCOPE] = scopes[item.nodeid]
        items[:] = _in_order(items, scopes)
        shared = Path(config.option.basetemp).parent  # the main process's
        (shared / f"scopes-{workerinput['workerid']}.json").write_text(json.dumps(scopes))
