"""``featurewatch demo``, from its first line to its summary."""

from collections import defaultdict
from pathlib import Path

import orjson
import pytest

from tests.cli.commands import featurewatch

ANNOUNCED = {"level-above-support", "incompatible-node"}
"""The end of each act: a node that is started again on software that is too old."""


@pytest.mark.stack
def test_every_alert_of_the_demo_is_one_that_it_announces(tmp_path: Path) -> None:
    """Each act shows its own alerts and no others, and no change is lost or published twice."""
    done = featurewatch(tmp_path, "demo", "--json", timeout_s=300)
    assert done.returncode == 0, done.stderr
    assert "does not answer" not in done.stderr  # everything ends before the bus does
    events = [orjson.loads(line) for line in done.stdout.splitlines()]
    rules: defaultdict[str, set[str]] = defaultdict(set)
    for event in events:
        if event["event"] == "alert":
            rules[event["alert"]["cluster"]].add(event["alert"]["rule"])
    assert list(rules.values()) == [ANNOUNCED, ANNOUNCED]
    summary = events[-1]
    assert (summary["event"], summary["lost"], summary["duplicated"]) == ("summary", 0, 0)
