"""A pytest plugin: what a run by day leaves to the night.

By day, tests marked ``nightly`` are deselected, tests with random cases try a tenth of them and
those of Hypothesis a third of their examples, with fixed seeds, and tests marked
``releases("4.1.2")`` run on these releases of Kafka: two runs of one commit run the same.
``make nightly`` (``--nightly``) runs everything, with all cases and examples and new seeds, on the
oldest and the newest patch of each release line that operators run (`RELEASES`). ``--releases``
names other releases, as a comma list.
"""

from collections.abc import Container, Iterable
from random import SystemRandom
from typing import Any, Final

import hypothesis.core
import pytest
from hypothesis import settings

RELEASES: Final = (
    *("3.3.0", "3.3.2"),
    *("3.7.0", "3.7.2"),
    *("3.9.0", "3.9.2"),
    *("4.1.0", "4.1.2"),
    *("4.3.0", "4.3.1"),
    "4.4.0",
)
_SETTINGS: Final = "_hypothesis_internal_use_settings"
"""There is no public way to change what a decorator has set."""
_FEWEST_EXAMPLES: Final = 20
"""A test with fewer tries all of them by day."""
_run = {"nightly": False}


def case_count(full: int) -> int:
    """How many of ``full`` random cases this run tries: a tenth by day."""
    return full if _run["nightly"] else full // 10


def case_seeds(full: int) -> range:
    """The seeds of this run: by night ones that were never used before."""
    first = SystemRandom().randrange(1 << 40) if _run["nightly"] else 0
    return range(first, first + case_count(full))


def nightly_but(by_day: Container[Any], values: Iterable[Any]) -> list[Any]:
    """Values as parameters of a test, of which only those ``by_day`` run by day."""
    night = pytest.mark.nightly
    return [one if one in by_day else pytest.param(one, marks=night) for one in values]


def _example_count(full: int) -> int:
    """How many of ``full`` examples of Hypothesis are tried by day."""
    return max(full // 3, min(full, _FEWEST_EXAMPLES))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of a nightly run."""
    parser.addoption("--nightly", action="store_true", help="run everything, with all cases")
    parser.addoption("--releases", default="", help="Kafka releases, a comma list")


def pytest_configure(config: pytest.Config) -> None:
    """Sets the size of this run before any test module is imported."""
    _run["nightly"] = config.getoption("nightly")
    fixed = not _run["nightly"] and config.getoption("--fuzz-minutes", None) is None
    if fixed and config.getoption("--hypothesis-seed", None) is None:
        vars(hypothesis.core)["global_force_seed"] = 0  # what the option sets


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives ``release`` its values; what it starts is shared by a module's tests."""
    marker = metafunc.definition.get_closest_marker("releases")
    if marker is None or "release" not in metafunc.fixturenames:
        return
    chosen = tuple(filter(None, metafunc.config.getoption("releases").split(",")))
    by_night = RELEASES if metafunc.config.getoption("nightly") else marker.args
    metafunc.parametrize("release", chosen or by_night, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the nightly tests by day, and gives those of Hypothesis fewer examples."""
    if config.getoption("nightly"):
        return
    nightly = [item for item in items if item.get_closest_marker("nightly")]
    items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    config.hook.pytest_deselected(items=nightly)
    tests: dict[int, Any] = {}  # a function is the test of each of its parameters
    for item in items:
        test = getattr(item, "obj", None)
        test = getattr(test, "__func__", test)
        if hasattr(test, _SETTINGS):
            tests[id(test)] = test
    for test in tests.values():
        written: settings = getattr(test, _SETTINGS)
        fewer = settings(written, max_examples=_example_count(written.max_examples))
        setattr(test, _SETTINGS, fewer)
