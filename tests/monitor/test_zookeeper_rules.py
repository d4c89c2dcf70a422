"""The rules about znodes and about the migration from ZooKeeper to KRaft."""

import orjson
import pytest

from featurewatch.monitor.snapshot import snapshot
from featurewatch.streams.codec.outputs import decode_snapshot, encode_output
from featurewatch.streams.outputs import Alert, Migration, Severity, Snapshot, ZookeeperController
from featurewatch.streams.types import NodeId
from featurewatch.streams.znodes import Znode
from tests.simulation import records as r
from tests.simulation import znodes as z
from tests.simulation.engine import Engine
from tests.simulation.records import MV, NEW, OLD, TV


def watching(*znodes: Znode) -> Engine:
    """An engine that has applied one complete snapshot."""
    engine = Engine()
    engine.apply_all([*z.reading("s1", znodes, 50), z.following()])
    return engine


def firing(engine: Engine) -> dict[str, Alert]:
    """The firing alerts, by the tail of the id."""
    alerts = (alert for alerts in engine.state.firing.values() for alert in alerts)
    return {alert.id.partition("/")[2]: alert for alert in alerts}


def migrating(brokers: int) -> Engine:
    """A log in the state *pre-migration*, and brokers in ZooKeeper that it has not registered."""
    engine = watching(*(z.broker(i, {}, 10 + i) for i in range(brokers)))
    engine.apply_all([r.commit(3, r.level(MV, 21), r.migration_state(2)), r.following(3)])
    return engine


def test_missed_versions_are_one_alert() -> None:
    """The number and path of missed versions, once; the alert's id has the znode's path."""
    engine = watching(z.features({}, 5, 2))
    (alert,) = engine.apply(z.change(z.features({TV: 1}, 5, 6), 60, missed=3)).alerts
    assert alert.id == f"{r.CLUSTER}/znode-missed/znode/feature"
    assert (alert.subject, alert.severity) == ({"znode": "/feature"}, Severity.WARNING)
    assert alert.evidence == {"missed": 3, "version": 6}
    assert "3 versions of /feature before version 6" in alert.summary


def test_the_severity_of_an_unreadable_znode() -> None:
    """The features znode concerns every node; a broker's znode concerns that broker."""
    engine = watching(z.unreadable(z.FEATURE, 5), z.unreadable("/brokers/ids/1", 10))
    alerts = firing(engine)
    assert alerts["znode-unreadable/znode/feature"].severity is Severity.CRITICAL
    assert alerts["znode-unreadable/znode/brokers/ids/1"].severity is Severity.WARNING


def test_an_unreadable_broker_is_not_taken_for_healthy() -> None:
    """While a level is finalized, its support by such a broker is unknown."""
    engine = watching(z.features({TV: 1}, 5), z.unreadable("/brokers/ids/1", 10))
    alert = firing(engine)[f"missing-feature/node/broker-1/{TV}"]
    assert alert.evidence["verdict"] == "unknown"
    assert "repair its znode first, which cannot be read" in alert.summary


def test_brokers_of_zookeeper_are_live_and_not_registered() -> None:
    """In ZooKeeper mode absent brokers do not count: there is nothing to unregister."""
    engine = watching(z.features({MV: 25}, 5), z.broker(1, OLD, 10))
    alerts = firing(engine)
    above = alerts[f"level-above-support/feature/{MV}"]
    assert "above what 1 live node supports: start it on a newer release." in above.summary
    assert alerts[f"incompatible-node/node/broker-1/{MV}"].severity is Severity.CRITICAL


@pytest.mark.parametrize(
    ("event", "summary"),
    [
        (z.change(z.features({TV: 1}, 60), 60, recreated=True), "deleted and recreated"),
        (*z.reading("s2", [z.features({TV: 1}, 5, 3)], 40), "ZooKeeper was restored"),
    ],
)
def test_an_epoch_that_went_backwards(event: object, summary: str) -> None:
    """The highest epoch, and the kind of regression; published once."""
    engine = watching(z.features({TV: 2}, 5, 7))
    engine.apply(event)  # type: ignore[arg-type]
    alert = firing(engine)["znode-regression/znode/feature"]
    assert (alert.severity, alert.evidence) == (Severity.CRITICAL, {"previous_max": 7})
    assert summary in alert.summary


def test_disabling_names_what_went() -> None:
    """The alert has the levels that were finalized until then."""
    engine = watching(z.features({TV: 2, MV: 7}, 5, 7))
    engine.apply(z.change(z.features({}, 5, 8, enabled=False), 60))
    alert = firing(engine)["features-disabled/znode/feature"]
    assert alert.evidence == {"erased": {MV: 7, TV: 2}}
    assert f"removed {MV} 7, {TV} 2" in alert.summary


def test_a_migration_warns_of_metadata_version() -> None:
    """The alert fires while the log reports a migration; missing brokers are named."""
    engine = migrating(3)
    alerts = firing(engine)
    warning = alerts["migration-in-progress/migration"]
    assert (warning.severity, warning.subject) == (Severity.WARNING, {})
    assert warning.evidence == {"state": "pre-migration"}
    assert alerts["migration-incomplete/migration"].evidence == {"missing": 3, "nodes": [0, 1, 2]}
    engine.apply(r.commit(9, *(r.register(i, OLD, migrating=True) for i in (0, 2))))
    engine.apply(r.following(9, seen_ms=100_000))  # the text of an alert changes once a minute
    assert firing(engine)["migration-incomplete/migration"].evidence["nodes"] == [1]
    engine.apply(r.commit(10, r.register(1, OLD)))  # a KRaft broker of the same id is another
    engine.apply(r.following(10, seen_ms=200_000))
    assert firing(engine)["migration-incomplete/migration"].evidence["nodes"] == [1]
    engine.apply(r.commit(11, r.migration_state(3)))
    assert firing(engine) == {}


def test_the_count_of_many_missing_brokers_is_rounded() -> None:
    """Above ten the count is rounded, so that a cluster that registers causes no flood of
    alerts."""
    engine = migrating(40)
    alert = firing(engine)["migration-incomplete/migration"]
    assert alert.evidence == {"missing": 20}
    assert "at least 20 brokers" in alert.summary
    outcomes = [
        engine.apply(r.commit(9 + i, r.register(i, OLD, migrating=True))) for i in range(19)
    ]
    assert [outcome.alerts for outcome in outcomes] == [()] * 19


def taken(engine: Engine) -> Snapshot:
    """The current state, encoded and decoded."""
    state = snapshot(engine.state.image, 5)
    assert decode_snapshot(encode_output(state).value) == state
    return state


def test_a_snapshot_has_its_authority_and_the_controller() -> None:
    """Its authority, the controller from ZooKeeper, and the provenance of the features znode."""
    engine = watching(
        z.broker(1, NEW, 10), z.features({TV: 2}, 5, 7), z.controller(1, 9), z.controller_epoch(4)
    )
    state = taken(engine)
    assert (state.authority, state.epoch, state.ready) == ("zookeeper", 7, True)
    assert state.controller == ZookeeperController(1, 4, -1)
    assert state.provenance["path"] == "/feature"
    assert state.migration == Migration("unknown", False, -1, 1, ())


def test_a_snapshot_of_a_migration() -> None:
    """Its state, and the brokers of ZooKeeper that have not registered; the digest covers both."""
    engine = migrating(3)
    engine.apply_all([z.change(z.migration(3000, 60), 60)])
    state = taken(engine)
    assert state.authority == "kraft"
    assert state.migration == Migration(
        "pre-migration", True, 3000, 3, (NodeId(0), NodeId(1), NodeId(2))
    )
    engine.apply(z.deleted("/brokers/ids/1", 61))
    after = taken(engine)
    assert after.migration.missing == (0, 2)
    assert (after.revision, after.digest != state.digest) == (state.revision, True)


def test_snapshots_of_before_zookeeper_can_be_read() -> None:
    """A message of an earlier release lacks the newer fields."""
    state = taken(watching(z.broker(1, NEW, 10)))
    old = orjson.loads(encode_output(state).value or b"")
    for name in ("authority", "controller", "migration"):
        del old[name]
    read = decode_snapshot(orjson.dumps(old))
    assert (read.authority, read.migration, read.digest) == ("none", Migration(), state.digest)
