"""The commands that read, on a bus in this process: what they print, and their exit codes."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from featurewatch.cli.app import app
from featurewatch.cli.errors import UsageError
from featurewatch.cli.output.cluster_states import STALE_AFTER_MS
from featurewatch.common.private_files import write_private
from featurewatch.streams.codec.outputs import Output, encode_output, topic_of
from featurewatch.streams.outputs import (
    Alert,
    AlertState,
    CapabilityClass,
    ChangeKind,
    FeatureChange,
    Operation,
    OperationKind,
    OperationPhase,
    Severity,
    Snapshot,
)
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, OPERATIONS, STATE
from featurewatch.streams.types import (
    ClusterId,
    FeatureLevel,
    FeatureName,
    NodeId,
    Role,
    SupportedRange,
)
from tests.streams.bus.mock_bus import MockBus

NOW_MS = int(time.time() * 1000)
CLUSTER = ClusterId("a-cluster")
FEATURE = FeatureName("metadata.version")
ALERT = Alert(
    id="a-cluster/incompatible-node/broker-1",
    cluster=CLUSTER,
    rule="incompatible-node",
    severity=Severity.CRITICAL,
    state=AlertState.FIRING,
    subject={"role": "broker", "node": 1},
    summary="Broker 1 must be upgraded.",
    evidence={},
    since_ms=NOW_MS,
    at_ms=NOW_MS,
    cause="a-cluster/kraft/1-1",
)
CHANGE = FeatureChange(
    cluster=CLUSTER,
    feature=FEATURE,
    before=FeatureLevel(0),
    after=FeatureLevel(19),
    kind=ChangeKind.FINALIZED,
    epoch=1,
    revision=1,
    provenance={"offset": 1, "leader_epoch": 1, "append_ms": NOW_MS},
    from_snapshot=False,
    append_ms=NOW_MS,
    seen_ms=NOW_MS,
)
STEP = Operation(
    id="a",
    cluster=CLUSTER,
    operation="a",
    kind=OperationKind.TOPIC_CREATION,
    phase=OperationPhase.COMPLETED,
    reason="",
    topic="a",
    partition=-1,
    broker=-1,
    summary="Topic a was created",
    details={},
    offset=5,
    leader_epoch=1,
    append_ms=1000,
    seen_ms=1000,
)
SNAPSHOT = Snapshot(
    cluster=CLUSTER,
    epoch=1,
    revision=1,
    provenance={"offset": 1, "leader_epoch": 1, "append_ms": NOW_MS},
    ready=True,
    leader_id=1,
    leader_epoch=1,
    finalized={FEATURE: FeatureLevel(19)},
    classes=(
        CapabilityClass(Role.BROKER, {FEATURE: SupportedRange(1, 19)}, True, (NodeId(1),), (), ()),
    ),
    incompatible=(),
    sources={"kraft": "following"},
    digest="0" * 64,
    at_ms=NOW_MS,
)

Put = Callable[..., None]
Run = Callable[..., "tuple[int, str, str]"]


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> MockBus:
    """A bus with the output topics, empty."""
    made = MockBus(partitions=1)
    for topic in (FEATURE_CHANGES, ALERTS, EPOCHS, STATE, OPERATIONS):
        # A tombstone, as compaction leaves it: it makes the topic and says nothing.
        made.put(made.settings.topic(topic), b"x", None, 0)  # type: ignore[arg-type]
    monkeypatch.setattr("featurewatch.cli.logs.set_up", lambda **_: None)
    monkeypatch.delenv("FEATUREWATCH_CONFIG", raising=False)
    return made


@pytest.fixture
def put(bus: MockBus) -> Put:
    """Puts outputs on their topics."""

    def put(*outputs: Output, state: bool = False) -> None:
        for output in outputs:
            topic = STATE if state else topic_of(output)
            message = encode_output(output)
            bus.put(bus.settings.topic(topic), message.key, message.value or b"", 0)

    return put


@pytest.fixture
def run(bus: MockBus) -> Run:
    """Runs a command on the bus; gives its exit code, and what it printed."""

    def run(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(
            app, [*arguments, "--bus", bus.settings.bootstrap_servers], catch_exceptions=False
        )
        return result.exit_code, result.stdout, result.stderr

    return run


def _newest(age_ms: int = 0, **other: object) -> Snapshot:
    """The snapshot with the current time: the module may have been imported minutes ago."""
    at_ms = int(time.time() * 1000) - age_ms
    return replace(SNAPSHOT, at_ms=at_ms, **other)  # type: ignore[arg-type]  # as the test wants it


def test_a_forgotten_cluster_is_not_listed(bus: MockBus, put: Put, run: Run) -> None:
    """A message without a value on the topic of states removes the cluster; others remain."""
    put(_newest(), _newest(cluster=ClusterId("another")), state=True)
    bus.put(bus.settings.topic(STATE), CLUSTER.encode(), None, 0)  # type: ignore[arg-type]
    code, out, _ = run("state", "--json")
    assert code == 0
    assert [json.loads(line)["cluster"] for line in out.splitlines()] == ["another"]
    assert run("state", "--cluster", CLUSTER)[0] == 4


def test_clusters_that_were_never_seen_are_named(put: Put, run: Run, tmp_path: Path) -> None:
    """By their ids, or else by what their entries have; the check is unknown."""
    put(_newest(), _newest(cluster=ClusterId("another")), state=True)
    file = tmp_path / "featurewatch.yaml"
    file.write_text(
        f"clusters: [{{cluster_id: {CLUSTER}, servers: 'a:1'}}, {{cluster_id: gone}}, "
        "{controllers: 'c:1'}, {zookeeper: 'z:1'}]"
    )
    code, _, err = run("alerts", "--check", "--config", str(file))
    assert code == 4
    assert "gone: has never sent a message" in err
    assert "1 of these have never sent a message: c:1; z:1" in err
    file.write_text(
        f"clusters: [{{cluster_id: {CLUSTER}, servers: 'a:1'}}, {{controllers: 'c:1'}}]"
    )
    assert run("alerts", "--check", "--config", str(file))[0] == 0


def test_check_exits_with_3_while_an_alert_fires(put: Put, run: Run) -> None:
    """Exit code 3 while it fires, 0 once it is resolved; without --check always 0."""
    put(_newest(), state=True)
    put(ALERT)
    assert run("alerts", "--check")[0] == 3
    code, out, _ = run("alerts")
    assert code == 0
    assert "critical  incompatible-node: Broker 1 must be upgraded." in out
    put(replace(ALERT, state=AlertState.RESOLVED))
    assert run("alerts", "--check")[:2] == (0, "no alert fires\n")
    assert "resolved" in run("alerts", "--all")[1]


@pytest.mark.parametrize(
    "newest",
    [
        None,
        _newest(age_ms=2 * STALE_AFTER_MS),
        _newest(ready=False),
    ],
    ids=["nothing", "old", "catching-up"],
)
def test_unknown_is_not_healthy(put: Put, run: Run, newest: Snapshot | None) -> None:
    """No alert, but nothing that is known to hold now: exit code 4, and why, on stderr."""
    put(replace(ALERT, state=AlertState.RESOLVED))
    if newest is not None:
        put(newest, state=True)
    code, out, err = run("alerts", "--check")
    assert (code, out) == (4, "")
    assert err.count("\n") == 1


def test_state_of_nothing_is_unknown(put: Put, run: Run) -> None:
    """Without a snapshot the exit code is 4; with one its table is shown, with its alerts."""
    put(replace(ALERT, state=AlertState.RESOLVED))
    code, out, _ = run("state")
    assert code == 4
    assert "nothing is known of any cluster yet" in out
    put(_newest(), state=True)
    put(ALERT)
    code, out, _ = run("state")
    assert code == 0
    assert "19 (3.7-IV4)" in out
    assert "Broker 1 must be upgraded." in out


@pytest.mark.parametrize("command", ["changes", "alerts", "epochs", "state", "operations"])
def test_json_is_a_document_a_line_and_nothing_else(put: Put, run: Run, command: str) -> None:
    """Every line on stdout is one JSON object of the cluster; a repeated key has one line."""
    for _ in range(2):
        put(CHANGE, ALERT, SNAPSHOT, STEP)
        put(_newest(), state=True)
    code, out, _ = run(command, "--json")
    assert code == 0
    (document,) = [json.loads(line) for line in out.splitlines()]
    assert document["cluster"] == CLUSTER


def test_what_cannot_be_read_is_logged_and_passed_over(
    bus: MockBus, put: Put, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """Bytes of somebody else on our topics stop nothing, and their place is told."""
    for topic in (FEATURE_CHANGES, ALERTS, EPOCHS, STATE):
        bus.put(bus.settings.topic(topic), b"x", b"no JSON", 0)
    put(CHANGE)
    code, out, _ = run("changes", "--json")
    assert code == 0
    assert json.loads(out)["after"] == 19
    assert "featurewatch.feature-changes partition 0 offset 1" in caplog.text


def test_operations_are_lines_of_a_timeline(put: Put, run: Run) -> None:
    """The controller's operations, in their order."""
    put(replace(STEP, id="b", append_ms=2000, offset=6, summary="Topic b was created"), STEP)
    first, second = run("operations")[1].splitlines()
    assert "topic-creation completed: Topic a was created" in first
    assert "Topic b was created" in second


def test_cluster_selects_the_messages_of_one_cluster(put: Put, run: Run) -> None:
    """--cluster leaves the others out."""
    put(CHANGE, replace(CHANGE, cluster=ClusterId("another")))
    assert len(run("changes")[1].splitlines()) == 2
    (line,) = run("changes", "--cluster", "another")[1].splitlines()
    assert "another" in line


def test_an_invalid_properties_file_for_the_bus_is_wrong_usage(
    bus: MockBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka's own words for a property that it does not know, and wrong usage."""
    from featurewatch.cli.errors import UsageError

    file = tmp_path / "bus.properties"
    write_private(file, "no.such.property=1\n")
    monkeypatch.setenv("FEATUREWATCH_BUS__COMMAND_CONFIG", str(file))
    with pytest.raises(UsageError, match=r"no\.such\.property"):
        CliRunner().invoke(
            app, ["state", "--bus", bus.settings.bootstrap_servers], catch_exceptions=False
        )


def test_a_cluster_is_found_by_its_name(put: Put, run: Run) -> None:
    """Each command that takes an id takes the name, and shows it beside the id."""
    put(_newest(name="orders"), _newest(cluster=ClusterId("another"), name="payments"), state=True)
    put(replace(ALERT, name="orders"), CHANGE, replace(CHANGE, cluster=ClusterId("another")))
    for command in ("state", "changes", "alerts"):
        code, out, _ = run(command, "--cluster", "orders", "--json")
        assert code == 0
        assert [json.loads(line)["cluster"] for line in out.splitlines()] == [CLUSTER], command
        assert run(command, "--cluster", CLUSTER, "--json")[1] == out
    assert "orders (a-cluster)" in run("state", "--cluster", "orders")[1]
    assert "orders (a-cluster)  critical" in run("alerts")[1]
    assert run("state", "--cluster", "Orders")[0] == 4


def test_an_ambiguous_name_is_refused(put: Put, run: Run) -> None:
    """With the ids that it may mean; an id counts before a name that is the same."""
    others = [ClusterId(f"c{number}") for number in range(2)]
    put(*(_newest(cluster=cluster, name="orders") for cluster in others), state=True)
    with pytest.raises(UsageError, match=r"2 clusters are called orders: .* of one: c0, c1"):
        run("alerts", "--cluster", "orders", "--check")
    put(_newest(cluster=ClusterId("orders")), state=True)
    assert run("alerts", "--cluster", "orders", "--check")[0] == 0
