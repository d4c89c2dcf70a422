"""A pytest plugin: a failure shows the ends of the logs of the processes that its test had.

The logs are those below the test's ``tmp_path`` and below the directories of the clusters and
ensembles that its fixtures gave it.
"""

from collections.abc import Generator

import pytest

from featurewatch.stack.process.group import Group
from tests.process_logs import log_ends


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds a section for each log, while the processes and their directories are still there."""
    report = yield
    if report.failed and call.when != "teardown" and item.get_closest_marker("stack"):
        values = (getattr(item, "funcargs", None) or {}).items()
        groups = [value.directory for _, value in values if isinstance(value, Group)]
        own = [value for name, value in values if name == "tmp_path"]
        report.sections += log_ends([*own, *groups])
    return report
