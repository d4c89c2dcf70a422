"""Shown texts of situations that no test brings about with real nodes: rendered from a model.

`register` sends the texts here; each is compared with what the command's own code prints.
"""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from immutables import Map

from featurewatch.admin.features.metadata import FeatureMetadata
from featurewatch.admin.features.updates import FeatureUpdate
from featurewatch.cli.app import app
from featurewatch.cli.commands.features.common.preview import preview
from featurewatch.cli.commands.pipeline import audit
from featurewatch.cli.commands.readiness import assess
from featurewatch.cli.commands.readiness.rendering import view
from featurewatch.cli.output.rendering import console
from featurewatch.controller.kraft import release_of
from featurewatch.kafka.address import Address
from featurewatch.monitor.readiness import assess_readiness
from featurewatch.monitor.readiness.elr_settings import MinIsrFacts
from featurewatch.pipeline.audit.report import VERDICTS, AuditReport, OutputDifference, TableCounts
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, NodeId, SupportedRanges
from featurewatch.tables.partitions.minimums import MinIsr
from tests.documents.blocks import shown
from tests.documents.session import assert_shown
from tests.monitor.readiness.clusters import controllers, image, led_by, nodes, ranges
from tests.monitor.strimzi_resources import document, kafka, pool
from tests.simulation import records as r


def test_readiness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers of three releases, of which one is fenced."""
    members = (
        *controllers("4.3", "4.3", "4.3"),
        *nodes("4.3", "3.9", "3.9"),
        r.register(7, ranges("3.8")),
    )
    monkeypatch.setattr(time, "time", lambda: 1.0)
    monkeypatch.setattr(assess, "read_image", lambda *_, **__: image(*members, level=19))
    arguments = ["readiness", "--bootstrap-controller", "kafka-1:9093", "--target", "4.3"]
    result = CliRunner().invoke(app, arguments)
    assert_shown(shown("how-to/readiness.md", "NOT READY"), result.output)


def test_known_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4.2, with streams groups."""
    members = (*controllers("4.2"), *nodes("4.2"), r.level("streams.version", 1))
    monkeypatch.setattr(assess, "read_image", lambda *_, **__: image(*members, level=29))
    at = ("--bootstrap-controller", "kafka-1:9093")
    result = CliRunner().invoke(app, ["readiness", *at])
    text = shown("how-to/readiness.md", "Known faults on the way")
    assert "\n".join(line.rstrip() for line in text.splitlines()) in "\n".join(
        line.rstrip() for line in result.output.splitlines()
    )


def test_what_becomes_of_min_insync_replicas() -> None:
    """One broker with a setting, one with another file, one topic with its own."""
    facts = MinIsrFacts(
        Map({"b/2": MinIsr(1, 1), "t/orders": MinIsr(3, 2)}),
        frozenset({"orders", "payments"}),
        {NodeId(1): 2, NodeId(3): 1},
    )
    members = (*controllers("4.3", "4.3", "4.3"), *nodes("4.3", "4.3", "4.3"))
    report = assess_readiness(image(*members, level=25), release_of("4.3"), min_isr=facts)
    shown_text = console()
    with shown_text.capture() as captured:
        shown_text.print(view(report))
    printed = [line.rstrip() for line in captured.get().splitlines()]
    expected = shown("how-to/readiness.md", "min.insync").splitlines()
    start = printed.index(expected[0])
    assert printed[start : start + len(expected)] == expected


def test_strimzi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another level than the operator's, and controllers of an earlier node pool."""
    members = (*controllers("4.3", "4.3", "4.3", "4.3", "4.3"), *nodes("4.3"))
    live = led_by(image(*members, level=29), 1)
    quorum = replace(live.log.quorum, voters=(NodeId(1), NodeId(2)))
    live = replace(live, log=replace(live.log, quorum=quorum))
    monkeypatch.setattr(assess, "read_image", lambda *_, **__: live)
    resource = kafka()
    del resource["status"]["kafkaMetadataVersion"]
    pools = pool("a", ["controller"], [1, 2]), pool("b", ["broker"], [1])
    (tmp_path / "kafka.yaml").write_text(json.dumps(document(resource, *pools)))
    at = ("--bootstrap-controller", "kafka-1:9093")
    file = str(tmp_path / "kafka.yaml")
    result = CliRunner().invoke(app, ["cluster", "compare-strimzi", file, *at])
    assert result.exit_code == 3
    expected = shown("how-to/admin.md", "Kafka orders").splitlines()
    assert result.output.splitlines()[1:] == expected[1:]


def test_what_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of nodes of 4.4 and one of 4.3, with the levels of 4.0 and less."""
    members = (*controllers("4.4"), *nodes("4.4", "4.3"))
    monkeypatch.setattr(assess, "read_image", lambda *_, **__: image(*members, level=22))
    at = ("--bootstrap-controller", "kafka-1:9093")
    result = CliRunner().invoke(app, ["levels", "--off", *at])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    for line in shown("how-to/readiness.md", "Cluster 5L6g").splitlines()[1:]:
        assert any(printed.startswith(line.removesuffix("…").rstrip()) for printed in lines), line


def test_the_preview_of_a_change() -> None:
    """From the newest level of 3.9 to that of 4.0, as it is shown before the question."""
    levels = {METADATA_VERSION: FeatureLevel(21)}
    before = FeatureMetadata(SupportedRanges(), levels, 1, Address("kafka-1", 9092))
    lines = [*preview(before, [FeatureUpdate(METADATA_VERSION, FeatureLevel(25))])]
    assert_shown(shown("how-to/features.md", "metadata"), "\n".join([*lines, "Go on? [y/N]"]))


def test_the_report_of_an_audit(capsys: pytest.CaptureFixture[str]) -> None:
    """An audit that found each kind of difference."""

    def counts(table: str, late: int = 0, duplicates: int = 0, **verdicts: int) -> TableCounts:
        return TableCounts(
            table, {**dict.fromkeys(VERDICTS, 0), **verdicts}, late, 30_000 * late, duplicates
        )

    def difference(verdict: str, table: str, id_: str, *fields: str) -> OutputDifference:
        return OutputDifference(table, "prod", id_, verdict, fields)

    report = AuditReport(
        folded_round=1,
        counts=(
            counts("feature_changes", equal=63, different=1, missing=1, duplicates=1),
            counts("alerts", equal=196, extra=1),
            counts("epochs", equal=43, reordered=1, late=1),
        ),
        differences=(
            difference("missing", "feature_changes", "prod/change/transaction.version/4"),
            difference(
                "extra", "alerts", "prod/missing-feature/node/broker-0/group.version/firing/17"
            ),
            difference(
                "different", "feature_changes", "prod/change/group.version/5", "after", "epoch"
            ),
        ),
    )
    audit._show(report, as_json=False)
    assert_shown(shown("how-to/audit.md", "feature_changes"), capsys.readouterr().out)
