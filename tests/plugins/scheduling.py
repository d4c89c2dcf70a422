"""A pytest plugin: how a run in several processes (``-n``) hands out the tests."""

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer

LONGEST: Final = (
    "tests/pipeline",
    "tests/integration/processes",
    "tests/integration/kraft",
    "tests/agents",
    "tests/stack",
    "tests/simulation",
    "tests/streams",
    "tests/conformance",
    "tests/faults",
    "tests/integration/releases",
    "tests/integration/reference",
    "tests/integration/zookeeper",
    "tests/web",
    "tests/integrations",
    "tests/plugins",
)
"""What takes minutes, the longest first. With two processes one begins with Spark, which computes
on all cores, and the other with tests that mostly wait for processes. Short folders fill the end,
so that both processes end at the same time."""


def scope_of(nodeid: str) -> str:
    """The folder whose tests one process runs one after the other, since they share what runs."""
    folders = nodeid.partition("::")[0].split("/")
    named = "/".join(folders[:3])
    return named if named in LONGEST else "/".join(folders[:2])


def rank_of(nodeid: str) -> int:
    """The place of a test's folder in the order in which folders are handed out."""
    scope = scope_of(nodeid)
    return LONGEST.index(scope) if scope in LONGEST else len(LONGEST)


class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Each process takes a whole folder of tests."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> FolderScheduling | None:
    """The scheduler of this run, which hands folders out in the order of the tests.

    A run that asks for ``--dist loadfile`` hands out files in that order: its tests share nothing
    that takes long to start, and no process is left at the end with a whole folder.
    """
    config.option.loadscopereorder = False
    return None if config.getoption("dist") == "loadfile" else FolderScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The tests of a process of xdist in the order in which folders are handed out.

    Two tests of one name end the run: xdist would run one of them and tell nobody.
    """
    counts = Counter(item.nodeid for item in items)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise pytest.UsageError(f"{counts[twice[0]]} tests have one name: {twice[0]}")
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank_of(item.nodeid))
