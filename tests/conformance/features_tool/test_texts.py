"""Every byte that ``kafka-features`` prints, and its exit code, from ``featurewatch features``."""

import re
from collections.abc import Callable

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from tests.conformance.kafka_tools import (
    COMPAT,
    CommandResult,
    KafkaTool,
    OurCommand,
)
from tests.waiting import eventually

pytestmark = pytest.mark.stack

# Nothing here changes a cluster: what is no dry run is refused, or ends before it is sent.
ASKED = (
    "describe",
    "upgrade --feature metadata.version=99 --feature foo=1 --feature kraft.version=1 --dry-run",
    "upgrade --feature foo=1",
    "upgrade --feature metadata.version=21 --feature transaction.version=1 --dry-run",
    "upgrade --metadata 3.9 --feature kraft.version=0 --dry-run",
    "upgrade --metadata 3.9-IV0 --dry-run",
    "upgrade --metadata 3.9 --feature metadata.version=21 --dry-run",
    "upgrade --metadata 4.4-IV0 --dry-run",
    "upgrade --metadata 4.4 --dry-run",
    "upgrade --metadata 4.0-IV0 --dry-run",
    "upgrade --metadata 3.3 --dry-run",
    "upgrade --metadata 3.0 --dry-run",
    "upgrade --metadata 3.0-IV0 --dry-run",
    "upgrade --metadata 0.10.1 --dry-run",
    "upgrade --metadata 2.8.1 --dry-run",
    "upgrade --metadata nonsense",
    "upgrade",
    "upgrade --feature foo",
    "upgrade --feature foo=x",
    "upgrade --feature foo=",
    "upgrade --feature foo=40000",
    "upgrade --feature foo=0",
    "upgrade --feature foo=-1",
    "upgrade --feature =1",
    "upgrade --feature foo=1 --feature foo=2",
    "downgrade --metadata 3.3-IV3 --dry-run",
    "downgrade --feature metadata.version=20 --unsafe --dry-run",
    "downgrade --feature metadata.version=15 --unsafe",
    "downgrade --feature kraft.version=0 --feature metadata.version=20 --dry-run",
    "downgrade --feature metadata.version=+19 --dry-run",
    "downgrade",
    "disable --feature foo --dry-run",
    "disable --feature metadata.version --dry-run",
    "disable --feature kraft.version --feature group.version --unsafe --dry-run",
    "disable --feature foo --feature foo",
    "disable",
)
ASKED_OF_4 = (
    "upgrade --release-version 4.3 --dry-run",
    "upgrade --release-version 3.3-IV3 --dry-run",
    "upgrade --release-version 2.8 --dry-run",
    "upgrade --release-version 4.3 --feature a=1",
    "upgrade --release-version 4.3 --metadata 4.3",
    "downgrade --release-version 4.2 --dry-run",
    "downgrade --release-version 3.9 --unsafe --dry-run",
    "describe --node-id 2",
    "describe --node-id -1",
)
LOOKED_UP = (
    "version-mapping",
    *(
        f"version-mapping --release-version {version}"
        for version in ("3.3", "3.9", "4.0-IV1", "4.3.0")
    ),
    *(
        f"version-mapping --release-version {version}"
        for version in ("4.4", "4.4-IV0", "3.0", "4", "x")
    ),
    "feature-dependencies --feature eligible.leader.replicas.version=1 --feature group.version=1",
    "feature-dependencies --feature metadata.version=30 --feature metadata.version=31 "
    "--feature metadata.version=32",
    "feature-dependencies --feature kraft.version=1 --feature kraft.version=2",
    "feature-dependencies --feature transaction.version=2 --feature foo=1",
    "feature-dependencies --feature streams.version=1 --feature share.version",
)


@pytest.fixture(params=["3.9.1", "4.3.0"])
def cluster(request: pytest.FixtureRequest, quorum_of: Callable[[str], Cluster]) -> Cluster:
    """Each of the shared clusters in turn."""
    return quorum_of(request.param)


def without_epoch(result: CommandResult) -> CommandResult:
    """A broker's epoch is the offset that it has read up to: another each time."""
    return CommandResult(result.code, re.sub(r"Epoch: \d+", "Epoch: n", result.out), result.err)


def without_leader(result: CommandResult) -> CommandResult:
    """Another controller may lead by the time that the second one asks."""
    return CommandResult(
        result.code, re.sub(r"Local controller \d+", "Local controller n", result.out), result.err
    )


def raises_kraft_version(ours: OurCommand, cluster: Cluster) -> bool:
    """Whether the voters have told the leader that they support it, as they tell each new one some
    seconds after its election: until then it refuses."""
    step = ("upgrade", "--feature", "kraft.version=1", "--dry-run")
    return ours("--bootstrap-controller", cluster.controllers, *step).code == 0


@pytest.mark.form("released")
def test_the_texts_are_the_tools(tool: KafkaTool, ours: OurCommand, cluster: Cluster) -> None:
    """stdout, stderr and exit code of describe, upgrade, downgrade and disable, on brokers and on
    controllers' listeners of both releases: refusals, dry runs, and what a person may get wrong
    (M-02, M-08 as released, M-18 as released, M-19, M-20 as released, M-21 as released,
    M-23 as released, M-24)."""
    assert eventually(lambda: raises_kraft_version(ours, cluster), 60)
    newer = ASKED_OF_4 if tool.release == "4.3.0" else ()
    compat = ("--compat", COMPAT[tool.release])
    for by, address in (
        ("--bootstrap-server", cluster.bootstrap_servers),
        ("--bootstrap-controller", cluster.controllers),
    ):
        for line in (*ASKED, *newer):
            arguments = (by, address, *line.split())
            expected, result = tool(*arguments), ours(*compat, *arguments)
            if line.startswith("describe") and by == "--bootstrap-server":
                expected, result = without_epoch(expected), without_epoch(result)
            assert without_leader(result) == without_leader(expected), line


@pytest.mark.form("released")
def test_what_is_looked_up_is_the_tools(ours: OurCommand, tool: KafkaTool) -> None:
    """version-mapping and feature-dependencies, which 4.x has: defaults of releases, of levels that
    are not in production, dependencies, and names that there are not (M-17 as released,
    M-21 as released)."""
    if tool.release == "3.9.1":
        # It has neither: asked of it, its process would end.
        assert ours("version-mapping", "--compat", "3.9").out.startswith("metadata.version=21")
        return
    for line in LOOKED_UP:
        assert ours(*line.split(), "--compat", "4.3") == tool(*line.split()), line


def test_any_controller_leads_to_the_active_one(ours: OurCommand, quorum_430: Cluster) -> None:
    """A controller that is not active takes no change; whichever is named, the active one is asked,
    and says whose word it is (F-79, M-02)."""
    results = {
        ours("upgrade", "--feature", "metadata.version=99", "--dry-run", *where)
        for where in [
            *(("--bootstrap-controller", address) for address in quorum_430.controllers.split(",")),
            *(
                ("--bootstrap-server", address)
                for address in quorum_430.bootstrap_servers.split(",")
            ),
        ]
    }
    (only,) = results
    assert f"Local controller {quorum_430.leader().id} only supports" in only.out


def test_an_address_of_the_other_kind_is_an_error(ours: OurCommand, quorum_430: Cluster) -> None:
    """A broker's listener given as a controller's, and the reverse: one line with what to give."""
    step = ("upgrade", "--feature", "metadata.version=99", "--dry-run")
    servers, controllers = quorum_430.bootstrap_servers, quorum_430.controllers
    for given, right in (
        (("--bootstrap-controller", servers), "give it as --bootstrap-server"),
        (("--bootstrap-server", controllers), "as --bootstrap-controller"),
    ):
        result = ours(*given, *step)
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
        assert right in result.err
    result = ours("describe", "--bootstrap-server", controllers)
    assert (result.code, result.out) == (1, "")
    assert "as --bootstrap-controller" in result.err
