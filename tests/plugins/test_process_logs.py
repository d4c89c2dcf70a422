"""The plugin that shows logs of processes, in separate sessions."""

import shutil
import threading
from pathlib import Path

import pytest

from tests.process_logs import log_ends

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from featurewatch.stack.errors import StartError
from featurewatch.stack.process.group import Group
from tests.process_logs import started

class Servers(Group):
    members = ()

    def start(self):
        node = self.directory / "node-1"
        (node / "data").mkdir(parents=True)
        lines = [f"{self.directory.name} {number}" for number in range(40)]
        (node / "server.log").write_text("\\n".join(lines))
        (node / "data" / "00000000000000000000.log").write_text("a segment")
        if self.directory.name == "broken":
            raise StartError("it ended")

@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    with started(Servers(tmp_path_factory.mktemp("x") / "shared", None, temporary=True)) as group:
        yield group

@pytest.fixture
def broken(tmp_path):
    with started(Servers(tmp_path / "broken", None, temporary=True)) as group:
        yield group

@pytest.mark.stack
def test_fails(shared, tmp_path):
    (tmp_path / "watch.log").write_text("a separate process")
    assert False

@pytest.mark.stack
def test_does_not_start(broken):
    pass

def test_has_no_processes(tmp_path):
    (tmp_path / "other.log").write_text("not shown")
    assert False
"""


def test_a_failure_shows_the_ends_of_the_logs(pytester: pytest.Pytester) -> None:
    """Of shared clusters, of what the test started, and of a cluster that did not start."""
    pytester.makeini(f"""
        [pytest]
        addopts = -p tests.plugins.process_logs -p no:cacheprovider
        pythonpath = {ROOT}
        markers = stack
    """)
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=2, errors=1)
    text = result.stdout.str()
    for name in ("shared", "broken"):
        assert f"{name} 39" in text
        assert f"{name} 14" not in text
    titles = [line.strip("- ") for line in result.outlines if line.startswith("- end of ")]
    assert {Path(title).name for title in titles} == {"watch.log", "server.log"}
    assert "a separate process" in result.outlines
    assert "a segment" not in result.outlines


def test_logs_may_be_deleted_while_they_are_looked_for(tmp_path: Path) -> None:
    """A broker that runs deletes the directories of topics; the failure is told nevertheless."""
    (tmp_path / "server.log").write_text("it stays")
    ended = threading.Event()

    def delete_topics() -> None:
        while not ended.is_set():
            for topic in ("a", "b", "c"):
                (tmp_path / "data" / topic).mkdir(parents=True, exist_ok=True)
                (tmp_path / "data" / topic / "cleaner.log").write_text("it goes")
            shutil.rmtree(tmp_path / "data")

    broker = threading.Thread(target=delete_topics)
    broker.start()
    try:
        for _ in range(50):
            assert (f"end of {tmp_path / 'server.log'}", "it stays") in log_ends([tmp_path])
    finally:
        ended.set()
        broker.join()
