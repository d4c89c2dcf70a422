"""A cluster beside its Strimzi resources."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from featurewatch.cli.app import app
from featurewatch.cli.commands.readiness import assess
from featurewatch.cli.errors import UsageError
from featurewatch.monitor.strimzi import StrimziError, compare, kafka_of
from featurewatch.tables.image.cluster import ClusterImage
from tests.monitor.readiness.clusters import controllers, image, nodes, ranges
from tests.monitor.strimzi_resources import document, kafka, pool
from tests.simulation import records as r
from tests.simulation.records import CLUSTER

POOLS = (pool("controllers", ["controller"], [1, 2, 3]), pool("brokers", ["broker"], [1, 2]))
LIVE = image(*controllers(*["4.3"] * 3), *nodes("4.3", "4.3"), level=30)


@pytest.mark.parametrize(
    ("resources", "live", "texts"),
    [
        ((kafka(), *POOLS), LIVE, []),
        # Another cluster's resources are not compared any further.
        ((kafka(cluster="other"), *POOLS), LIVE,
         [f"Kafka orders is the cluster other, and this is {CLUSTER}"]),
        # The operator's level, by release or by name, and that of a resource without one.
        ((kafka("4.2"), *POOLS), LIVE,
         ["spec.kafka.metadataVersion is 4.2, and 30 (4.3-IV0) is finalized",
          "status.kafkaMetadataVersion is 4.2, and 30 (4.3-IV0) is finalized"]),
        ((kafka(""), *POOLS), LIVE, []),
        ((kafka("9.9-IV0"), *POOLS), LIVE,
         [f"{field} is 9.9-IV0, which is not known here: it cannot be compared"
          for field in ("spec.kafka.metadataVersion", "status.kafkaMetadataVersion")]),
        # Node ids: a ghost of an earlier pool, and a pool whose nodes never registered.
        ((kafka(), POOLS[0], pool("brokers", ["broker"], [1])), LIVE,
         ["broker 2 is registered, and in no node pool"]),
        ((kafka(), POOLS[0], pool("brokers", ["broker"], [1, 2, 7, 8])), LIVE,
         ["brokers 7-8 are in a node pool, and not registered"]),
        ((kafka(), *POOLS),
         image(*controllers(*["4.3"] * 3), r.register_controller(9, ranges("4.3")),
               *nodes("4.3", "4.3"), level=30),
         ["controller 9 is registered, and in no node pool"]),
        ((kafka(), pool("all", ["broker", "controller"], [1, 2])), LIVE,
         ["controller 3 is registered, and in no node pool",
          "the voters are 1-3, the controllers of the node pools are 1-2"]),
        ((kafka(version="4.4.0"), *POOLS), LIVE,
         ["spec.kafka.version is 4.4.0, and brokers 1-2 registered with Kafka 4.3",
          "spec.kafka.version is 4.4.0, and controllers 1-3 registered with Kafka 4.3"]),
        ((kafka(),), LIVE,
         ["no node pool of Kafka orders was given: node ids cannot be compared"]),
    ],
)  # fmt: skip
def test_where_they_disagree(
    resources: tuple[dict[str, Any], ...], live: ClusterImage, texts: list[str]
) -> None:
    """Level, release, node ids by role, and voters; node pools of other clusters do not count."""
    found = kafka_of([document(*resources, pool("others", ["broker"], [99], of="payments"))])
    assert [difference.text for difference in compare(found, live)] == texts


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "there is no resource of the kind Kafka"),
        (["text", None, {"kind": "List", "items": 7}], "there is no resource of the kind Kafka"),
        ([kafka(), {**kafka(), "metadata": {"name": "b"}}], "there is more than one Kafka"),
        ([{**kafka(), "metadata": []}], "a resource has no metadata.name"),
        ([kafka(), {**POOLS[0], "status": {}}], "has no status.nodeIds"),
        ([kafka(), pool("p", ["observer"], [1])], "a role or an id that is none of Kafka's"),
        ([kafka(), {**POOLS[0], "status": {"nodeIds": ["1e9"]}}], "a role or an id"),
        ([kafka(), {**POOLS[0], "status": {"nodeIds": "1"}}], "are not lists"),
    ],
)
def test_other_documents_are_refused(documents: list[Any], message: str) -> None:
    """In one line that says what is wrong."""
    with pytest.raises(StrimziError, match=message):
        kafka_of(documents)


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A list, or documents after each other; 3 where they disagree."""
    monkeypatch.setattr(assess, "read_image", lambda *_, **__: LIVE)
    at = ("cluster", "compare-strimzi", str(tmp_path / "kafka.yaml"))
    source = ("--bootstrap-controller", "kafka-1:9093")
    (tmp_path / "kafka.yaml").write_text(json.dumps(document(kafka(), *POOLS)))
    same = CliRunner().invoke(app, [*at, *source])
    assert (same.exit_code, "agree" in same.output) == (0, True)
    parts = [json.dumps(each) for each in (kafka("4.2"), *POOLS)]
    (tmp_path / "kafka.yaml").write_text("\n---\n".join(parts))
    other = CliRunner().invoke(app, [*at, *source, "--json"])
    assert other.exit_code == 3
    assert [item["declared"] for item in json.loads(other.stdout)["differences"]] == [29, 29]
    (tmp_path / "kafka.yaml").write_text("a: [")
    wrong = CliRunner().invoke(app, [*at, *source])
    assert isinstance(wrong.exception, UsageError)
