"""A pytest plugin: which releases of Kafka a test runs on.

A test marked ``releases("4.1.2")`` that takes ``release`` runs on these releases in the suite. With
``--releases`` it runs on others: a comma list, or ``all`` for the oldest and the newest patch of
each line that operators run (`NIGHTLY`), as ``make releases`` does every night. A test marked
``nightly`` is left to that: it takes minutes.
"""

from typing import Final

import pytest

NIGHTLY: Final = (
    *("3.3.0", "3.3.2"),
    *("3.7.0", "3.7.2"),
    *("3.9.0", "3.9.2"),
    *("4.1.0", "4.1.2"),
    *("4.3.0", "4.3.1"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The releases of this run."""
    parser.addoption(
        "--releases", default="", help="Kafka releases, a comma list or 'all', not the suite's few"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives ``release`` its values; what it starts is shared by a module's tests."""
    marker = metafunc.definition.get_closest_marker("releases")
    if marker is None or "release" not in metafunc.fixturenames:
        return
    given = metafunc.config.getoption("releases")
    releases = NIGHTLY if given == "all" else tuple(filter(None, given.split(",")))
    metafunc.parametrize("release", releases or marker.args, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the nightly tests to the night."""
    if not config.getoption("releases"):
        skip = pytest.mark.skip(reason="takes minutes: make releases runs it every night")
        for item in items:
            if item.get_closest_marker("nightly") is not None:
                item.add_marker(skip)
