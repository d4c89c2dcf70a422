"""The name of a cluster: where it comes from, who gets it, and that old rows do without it."""

from dataclasses import replace

import orjson

from featurewatch.common.text import MAX_NAME_CHARS
from featurewatch.monitor.rows import states_of_rows
from featurewatch.monitor.snapshot import snapshot
from featurewatch.streams.codec.events import decode
from featurewatch.streams.codec.outputs import decode_alert, decode_snapshot, encode_output
from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.outputs import AlertState
from featurewatch.streams.topics import METADATA_LOG
from tests.simulation import records as r
from tests.simulation.engine import Engine
from tests.simulation.records import CLUSTER, MV, NEW, OLD
from tests.streams.encoded import value_of


def named(name: str, offset: int, *, source: str = "kraft") -> SourceStatus:
    """A source that follows a cluster of this name."""
    return replace(r.following(offset, source=source), name=name)


def firing(engine: Engine) -> dict[str, str]:
    """The names in the alerts that fire, by their ids."""
    return {alert.id: alert.name for alerts in engine.state.firing.values() for alert in alerts}


def with_an_alert(name: str) -> Engine:
    """A cluster of this name with a node that a level excludes."""
    engine = Engine()
    engine.apply_all([r.commit(10, r.level(MV, 25)), named(name, 10)])
    engine.apply(r.commit(20, r.register(1, OLD)))
    assert firing(engine)
    return engine


def test_the_state_and_alerts_have_the_name_of_the_source() -> None:
    """And the digest has nothing of it."""
    engine, other = with_an_alert("orders"), with_an_alert("")
    assert snapshot(engine.state.image, 5).name == "orders"
    assert set(firing(engine).values()) == {"orders"}
    assert snapshot(engine.state.image, 5).digest == snapshot(other.state.image, 5).digest
    assert snapshot(other.state.image, 5).name == ""


def test_a_changed_name_shows_up_everywhere() -> None:
    """Each alert that fires is published once more, with the same beginning, under a new event
    id; what ends by the same event ends under the new name."""
    engine = with_an_alert("orders")
    before = {alert.id: alert for alerts in engine.state.firing.values() for alert in alerts}
    result = engine.apply(named("payments", 30))
    assert {alert.id for alert in result.alerts} == before.keys()
    for alert in result.alerts:
        assert alert == replace(
            before[alert.id], name="payments", at_ms=alert.at_ms, cause=alert.cause
        )
        assert encode_output(alert).headers != encode_output(before[alert.id]).headers
    assert engine.apply(named("payments", 31)).alerts == ()
    ended = engine.apply(r.commit(40, r.register(1, NEW))).alerts
    assert {(alert.state, alert.name) for alert in ended} == {(AlertState.RESOLVED, "payments")}


def test_what_is_not_from_the_source_leaves_the_name() -> None:
    """A worker that calls a source silent does not know it; and of two names one stays."""
    engine = with_an_alert("orders")
    engine.apply(r.status(SourceState.SILENT, 30))
    assert set(firing(engine).values()) == {"orders"}
    engine.apply(named("orders", 30))
    engine.apply(named("another", 30, source="api-versions"))
    assert set(firing(engine).values()) == {"another"}
    for offset in (31, 32):
        assert engine.apply(named("orders", offset)).alerts == ()
    engine.apply(r.status(SourceState.RETIRED, source="api-versions"))
    assert snapshot(engine.state.image, 5).name == "orders"


def test_a_restart_keeps_the_name() -> None:
    """The rows of alerts do not have it, as older workers read them, too."""
    engine = with_an_alert("orders")
    before = engine.state.firing
    rows = [value for key, value in engine.rows.items() if "alerts/" in key]
    assert rows
    assert not any(b"orders" in value for value in rows)
    engine.restart()
    assert engine.state.firing == before
    assert engine.apply(named("orders", 30)).alerts == ()


def test_rows_and_messages_of_older_versions_have_no_name() -> None:
    """They are read as those of a cluster without one, which the next status names."""
    engine = with_an_alert("orders")

    def without(value: bytes) -> bytes:
        return value.replace(b',"name":"orders"', b"").replace(b'"name":"orders",', b"")

    old = {key: without(value) for key, value in engine.rows.items()}
    assert old != engine.rows
    state = states_of_rows(old.items())[CLUSTER]
    assert state.image.sources.cluster_name == ""
    engine = Engine(old)
    assert set(firing(engine).values()) == {""}
    assert {alert.name for alert in engine.apply(named("orders", 30)).alerts} == {"orders"}
    (alert,) = next(iter(engine.state.firing.values()))[:1]
    for output, decoder in ((alert, decode_alert), (snapshot(state.image, 5), decode_snapshot)):
        content = orjson.loads(encode_output(output).value or b"")
        del content["name"]
        assert decoder(orjson.dumps(content)) == replace(output, name="")


def test_a_name_of_any_length_is_cut() -> None:
    """A process with the right to write to a topic can write anything."""
    value = value_of(METADATA_LOG, named("n" * 10_000, 10))
    status = decode(METADATA_LOG, value)
    assert isinstance(status, SourceStatus)
    assert status.name == "n" * MAX_NAME_CHARS
