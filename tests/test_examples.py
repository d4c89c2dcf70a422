"""The programs and configurations in ``examples/``."""

import subprocess
import sys

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.codec.outputs import encode_output, encode_state
from featurewatch.streams.topics import FEATURE_CHANGES, STATE
from tests.client.bus import ClientBus
from tests.client.published import CLUSTER, change, snapshot
from tests.integrations.tools import tool
from tests.paths import ROOT

EXAMPLES = ROOT / "examples"


def test_every_example_is_listed():
    """In the README."""
    listed = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.iterdir():
        assert path.name == "README.md" or f"]({path.name})" in listed


@pytest.mark.stack
def test_the_service_switches_when_the_level_changes(bus: Cluster) -> None:
    """It starts on the old path, and takes the new one when the change is on its topic."""
    topics = ClientBus(bus.bootstrap_servers)
    topics.put(STATE, encode_state(snapshot(1, {"transaction.version": 1})))
    command = [sys.executable, "service.py", bus.bootstrap_servers, CLUSTER, topics.settings.prefix]
    changed = encode_output(change(2, after=2, feature="transaction.version"))
    with subprocess.Popen(
        command, cwd=EXAMPLES, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as service:
        assert service.stdout is not None
        try:
            assert service.stdout.readline() == "order 0: two round trips\n"
            topics.put(FEATURE_CHANGES, changed)
            for _ in range(1000):
                if "one round trips" in service.stdout.readline():
                    break
            else:
                raise AssertionError("it did not switch")
        finally:
            service.kill()


def test_alertmanager_accepts_the_recipe():
    """By its own check."""
    done = subprocess.run(
        [tool("amtool"), "check-config", str(EXAMPLES / "alertmanager.yml")],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
