"""The documents' command lines that need no cluster, as they are written and in order."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from featurewatch.common.private_files import write_private
from featurewatch.streams.types import METADATA_VERSION
from tests.documents.following import block_of, ended, follow, pages
from tests.documents.session import Session
from tests.integrations.tools import tool
from tests.paths import ROOT
from tests.pipeline.history.lakes import HOUR, Story, lake_of, year


@pages("alone")
def test_lines_that_need_no_cluster(page: str, tmp_path: Path) -> None:
    """Rules, dashboards, simulations, log directories."""
    names = {
        "/etc/prometheus/rules": "rules",
        "/etc/featurewatch/webhook-secret": "webhook-secret",
        "0..1000000": "0..5",
        "1000000": "5",
        "100000": "2",
    }
    properties = "process.roles=controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:9093\n"
    properties += "listeners=CONTROLLER://localhost:9093\ncontroller.listener.names=CONTROLLER\n"
    write_private(tmp_path / "server.properties", f"{properties}log.dirs={tmp_path / 'log'}\n")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    route = block_of("docs/how-to/receivers.md", "yaml", "route:\n  receiver: team")
    (tmp_path / "alertmanager.yml").write_text(yaml.safe_dump(route))
    with ended(Session(tmp_path, names)) as session:
        if page.endswith("receivers.md"):
            session.program("amtool", tool("amtool"))
        follow(session, "alone", page)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A year of a cluster and two that are followed now, as the pipeline stores them."""
    stories = [year("orders")]
    for cluster, release in (("4L6g3nShT-eMCtK--X86sw", "3.9"), ("uJyR2Uy8R7mPp1jWn7tDqg", "4.0")):
        story = Story(cluster, datetime.now(UTC) - 2 * HOUR)
        for role, node in (("controller", 1), ("broker", 1), ("broker", 2)):
            story.node(role, node, release, timedelta(seconds=1))
        story.finalize(METADATA_VERSION, 21, timedelta(seconds=1))
        story.heartbeat(datetime.now(UTC))
        stories.append(story)
    return lake_of(tmp_path_factory.mktemp("lake"), *stories)


@pages("lake")
def test_lines_that_read_a_lake(page: str, lake: Path, tmp_path: Path) -> None:
    """What was finalized, and the fleet, from Delta's tables."""
    desired = block_of("docs/how-to/fleet.md", "yaml", "clusters:                       # names")
    (tmp_path / "levels.yaml").write_text(yaml.safe_dump(desired))
    with ended(Session(tmp_path, {"/data/lake": str(lake)})) as session:
        follow(session, "lake", page)
