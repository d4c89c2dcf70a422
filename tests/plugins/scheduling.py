"""A pytest plugin: how a run in several processes (``-n``) hands out the tests."""

from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer


class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Each process takes a whole folder of tests, since a folder's tests share what runs."""

    def _split_scope(self, nodeid: str) -> str:
        return "/".join(nodeid.partition("::")[0].split("/")[:2])


def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> FolderScheduling:
    """The scheduler of this run."""
    return FolderScheduling(config, log)
