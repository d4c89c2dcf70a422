"""What rests on a learned release says so: alerts, readiness, the state and the page."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from featurewatch.cli.output import state_view
from featurewatch.controller.kraft.releases import releases
from featurewatch.kafka.releases import package_files, reread
from featurewatch.monitor.readiness import Limits, assess_readiness
from featurewatch.monitor.snapshot import snapshot
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.outputs import Alert
from featurewatch.web.documents import ClusterFacts, cluster_document
from tests.learned_releases import made_up, without
from tests.monitor.readiness.clusters import cluster
from tests.simulation import records as r
from tests.simulation.records import CLUSTER

NOTE = "by tables learned from /opt/kafka/libs (Kafka 9.1.0)"


@pytest.fixture(autouse=True)
def learned(tmp_path: Path) -> Iterator[None]:
    """Kafka 9.1 is learned."""
    with without("99.0", tmp_path) as directory:
        directory.mkdir()
        (directory / "9.1.json").write_text(json.dumps(made_up()))
        reread()
        yield


def run(*names: str, level: int) -> tuple[MonitorState, tuple[Alert, ...]]:
    """The state and the firing alerts of brokers of these releases, long after they started."""
    records = [
        r.register(node_id, releases()[name].ranges(), fenced=False)
        for node_id, name in enumerate(names, start=1)
    ]
    state = MonitorState.of(CLUSTER)
    for event in [*cluster(*records, level=level), r.following(100_000), r.following(200_000)]:
        state = step(state, event, limits=Limits(upgrade_ms=1000)).state
    return state, tuple(alert for alerts in state.firing.values() for alert in alerts)


def test_alerts_of_a_cluster_with_nodes_of_a_learned_release_name_its_tables() -> None:
    """In the text that a person gets, and in the evidence."""
    _, alerts = run("9.1", "4.3", level=29)
    (alert,) = (alert for alert in alerts if alert.rule == "upgrade-blocked")
    assert alert.summary.endswith(f" ({NOTE})")
    assert alert.evidence["learned"] == [NOTE]
    _, alerts = run("4.2", "4.3", level=29)
    assert "upgrade-blocked" in {alert.rule for alert in alerts}
    assert not [alert for alert in alerts if "learned" in alert.evidence]


def test_state_page_and_readiness_name_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where a level alone is of that release."""
    newest = releases()["9.1"].levels[-1].level
    for names, level in ((("9.1", "9.1"), 29), (("4.3",), newest)):
        state, alerts = run(*names, level=level)
        shown = snapshot(state.image, 0)
        state_view._print_json(shown)
        document = json.loads(capsys.readouterr().out)
        assert (document["learned"], document["cluster"]) == ([NOTE], CLUSTER)
        assert cluster_document(ClusterFacts(shown, alerts, {}, 0))["learned"] == (NOTE,)
        assert assess_readiness(state.image).learned == (NOTE,)
    shown = snapshot(run("4.3", level=29)[0].image, 0)
    assert cluster_document(ClusterFacts(shown, (), {}, 0))["learned"] == ()


def test_what_a_worker_published_about_an_unknown_release_ends_when_it_starts_with_the_file(
    tmp_path: Path,
) -> None:
    """With the next heartbeat: nothing of the cluster changes."""
    newest = package_files()[-1].release
    records = [r.register(node, releases()[newest].ranges(), fenced=False) for node in (1, 2)]
    (tmp_path / "before").mkdir()
    with without(newest, tmp_path / "before"):
        state = MonitorState.of(CLUSTER)
        for event in [*cluster(*records, level=29), r.following(100_000)]:
            state = step(state, event).state
        assert [alert.rule for alerts in state.firing.values() for alert in alerts] == [
            "release-unknown"
        ]
    result = step(state, r.following(200_000))
    assert [(alert.rule, str(alert.state)) for alert in result.alerts] == [
        ("release-unknown", "resolved")
    ]
    assert not result.state.firing
