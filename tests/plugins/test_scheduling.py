"""The plugin that hands out tests in scopes."""

from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.plugins.scheduling import GROUPS, LONGEST

pytest_plugins = ("pytester",)

INI = f"""
[pytest]
addopts = -p xdist -p tests.plugins.scheduling -p no:cacheprovider --import-mode=importlib
pythonpath = {ROOT}
markers = stack
"""
FIXTURES = """
import os, pathlib, pytest

@pytest.fixture
def log(request):
    with pathlib.Path({log!r}).open("a") as log:
        log.write(os.environ["PYTEST_XDIST_WORKER"] + " " + request.node.nodeid + "\\n")

@pytest.fixture
def quorum_430():
    pass

@pytest.fixture
def cluster(quorum_430):
    pass

@pytest.fixture
def spark():
    pass
"""
SHORT = "def test_one(log): pass\ndef test_other(log): pass\ndef test_third(log): pass\n"
QUORUM = "def test_quorum(log, cluster): pass\n" + SHORT
SPARK = "def test_spark(log, spark): pass\n" + SHORT
STACK = "import pytest\npytestmark = pytest.mark.stack\n" + SHORT


def test_the_longest_folders_exist() -> None:
    """Each folder has tests: one that was renamed would be handed out late."""
    for folder in LONGEST:
        assert [*(ROOT / folder).rglob("test_*.py")], folder


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Path:
    """A suite whose tests log where they run."""
    pytester.makeini(INI)
    log = pytester.path / "log"
    pytester.makeconftest(FIXTURES.format(log=str(log)))
    return log


def test_what_shares_a_fixture_runs_in_one_process(pytester: pytest.Pytester, suite: Path) -> None:
    """Groups come first, each in one process, with their whole files."""
    pytester.makepyfile(test_a=SHORT, test_b=STACK, test_x=QUORUM, test_y=QUORUM, test_z=SPARK)
    assert pytester.runpytest_subprocess("-n", "2").ret == 0
    lines = [line.split() for line in suite.read_text().splitlines()]
    files = {
        worker: [*dict.fromkeys(nodeid[:6] for by, nodeid in lines if by == worker)]
        for worker in ("gw0", "gw1")
    }
    assert len(lines) == 18
    first = sorted(names[: 1 + ("test_x" in names)] for names in files.values())
    assert first == [["test_x", "test_y"], ["test_z"]]
    assert {nodeid[:6] for _, nodeid in lines} == {f"test_{name}" for name in "abxyz"}


def test_short_files_are_handed_out_last(pytester: pytest.Pytester, suite: Path) -> None:
    """Groups come first, then what needs a stack. One process, as those of two are in no order."""
    pytester.makepyfile(test_a=SHORT, test_b=STACK, test_z=SPARK)
    assert pytester.runpytest_subprocess("-n", "1").ret == 0
    names = [line.split()[1][:6] for line in suite.read_text().splitlines()]
    assert [*dict.fromkeys(names)] == ["test_z", "test_b", "test_a"]


def test_two_tests_of_one_name_end_the_run(pytester: pytest.Pytester, suite: Path) -> None:
    """Their name is given: in several processes only one of them would run."""
    pytester.makepyfile(SHORT)
    with suite.with_name("conftest.py").open("a") as conftest:
        conftest.write("\ndef pytest_collection_modifyitems(items): items.append(items[0])\n")
    result = pytester.runpytest_inprocess()
    result.stderr.fnmatch_lines(["*2 tests have one name: *test_one*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_test_with_jars_and_without_the_mark_ends_the_run(
    pytester: pytest.Pytester, suite: Path
) -> None:
    """It would run, and fetch the jars, where neither Kafka nor a network is needed."""
    pytester.makepyfile("def test_jars(stack_cache): pass")
    with suite.with_name("conftest.py").open("a") as conftest:
        conftest.write("\n@pytest.fixture\ndef stack_cache(): pass\n")
    result = pytester.runpytest_inprocess()
    result.stderr.fnmatch_lines(["*test_jars needs the mark stack*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_the_fixtures_of_groups_exist() -> None:
    """A fixture that was renamed would not keep its tests together."""
    text = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("conftest.py"))
    for fixtures in GROUPS.values():
        for name in fixtures:
            assert f"\ndef {name}(" in text, name
