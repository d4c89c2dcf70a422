"""The reference broker, one operation at a time."""

import time
from collections import deque

import pytest

from featurewatch.reference.zookeeper.machines.broker import BrokerIdentity, ReferenceBroker
from featurewatch.reference.zookeeper.machines.dialect import (
    EARLY_DRAFT_STRUCK,
    LATER_DRAFT,
    RELEASED,
    Dialect,
)
from featurewatch.reference.zookeeper.machines.encoding import encode_features
from featurewatch.reference.zookeeper.machines.protocol import (
    Disconnected,
    ExitProcess,
    OperationCompleted,
    Reconnected,
    RequestReceived,
    SendResponse,
    SessionStarted,
    Tick,
    UpdateMetadataReceived,
    WatchFired,
    WatchKind,
)
from featurewatch.reference.zookeeper.machines.requests import (
    ApiVersions,
    DeleteFeatures,
    ErrorCode,
    FeaturesResponse,
    UpdateFeatures,
    UpdateMetadata,
    UpdateResponse,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Create,
    Delete,
    Exists,
    GetData,
    GetDataResult,
    Multi,
    OperationRefused,
    OutcomeUnknown,
    SetData,
)
from featurewatch.reference.zookeeper.wire.api_keys import OFFERED, ApiDialect
from featurewatch.streams.types import SupportedRange
from tests.reference.zookeeper.machines.driving import SESSION, Driver
from tests.reference.zookeeper.machines.results import succeeded


def broker(dialect: Dialect = LATER_DRAFT) -> tuple[ReferenceBroker, Driver]:
    """A broker that supports alpha 1-3."""
    machine = ReferenceBroker(BrokerIdentity(4), dialect, {"alpha": SupportedRange(1, 3)})
    return machine, Driver(machine)


def finalize(driver: Driver, dialect: Dialect, level: int, version: int | None = None) -> None:
    """Another session creates or sets the features znode."""
    data = encode_features(dialect, {"alpha": level})
    write = Create(dialect.path, data) if version is None else SetData(dialect.path, data, version)
    driver.history.write(0, write)


def test_it_reads_and_checks_before_it_registers() -> None:
    """The broker creates its own znode only after the read has completed (F-62)."""
    _, driver = broker()
    finalize(driver, LATER_DRAFT, 2)
    driver.start()
    reads = driver.served.index(GetData("/features", watch=True))
    makes = next(n for n, operation in enumerate(driver.served) if isinstance(operation, Create))
    assert reads < makes
    assert [
        operation for operation in driver.served if isinstance(operation, Create | SetData | Delete)
    ] == [driver.served[makes]]


def test_an_excluded_broker_never_registers() -> None:
    """It exits with a non-zero code and names the levels that exclude it (F-63)."""
    _, driver = broker()
    finalize(driver, LATER_DRAFT, 4)
    driver.start()
    assert not any(isinstance(operation, Create) for operation in driver.served)
    (end,) = driver.exits
    assert end.code != 0
    assert "alpha is at level 4 and broker 4 supports 1-3" in end.reason


def test_responses_come_from_the_cache() -> None:
    """A response needs no request to ZooKeeper or to any node (F-56)."""
    machine, driver = broker()
    finalize(driver, LATER_DRAFT, 2)
    driver.start()
    (reply,) = machine.receive(RequestReceived(1, ApiVersions()), 0)
    assert reply == SendResponse(1, FeaturesResponse({"alpha": (1, 3)}, {"alpha": 2}, 0))
    (refusal,) = machine.receive(RequestReceived(2, UpdateFeatures(())), 0)
    assert isinstance(refusal, SendResponse)
    assert isinstance(refusal.response, UpdateResponse)
    assert refusal.response.error is ErrorCode.NOT_CONTROLLER


def test_an_excluded_broker_exits_one_read_after_the_notification() -> None:
    """No timer and no other operation is between them, so that it takes the milliseconds of one
    read and hardly any time of the processor (F-69)."""
    _, driver = broker()
    finalize(driver, LATER_DRAFT, 2)
    driver.start()
    finalize(driver, LATER_DRAFT, 9, 0)
    driver.served.clear()
    notified_ms, began = driver.now_ms, time.process_time()
    driver.give(WatchFired("/features", WatchKind.CHANGED))
    driver.rest()
    assert time.process_time() - began < 0.1
    assert (driver.served, driver.now_ms) == ([GetData("/features", watch=True)], notified_ms)
    assert [end.code for end in driver.exits] == [1]


def test_each_watch_leads_to_one_read_and_the_same_check() -> None:
    """The newest levels are read, however often they changed; an excluded broker exits (F-14,
    F-64)."""
    machine, driver = broker()
    finalize(driver, LATER_DRAFT, 2)
    driver.start()
    driver.served.clear()
    finalize(driver, LATER_DRAFT, 1, 0)
    finalize(driver, LATER_DRAFT, 3, 1)
    driver.give(WatchFired("/features", WatchKind.CHANGED))
    driver.rest()
    assert driver.served == [GetData("/features", watch=True)]
    assert (machine.cached.epoch, machine.cached.levels) == (2, {"alpha": 3})
    finalize(driver, LATER_DRAFT, 9, 2)
    driver.give(WatchFired("/features", WatchKind.CHANGED))
    driver.rest()
    assert [end.code for end in driver.exits] == [1]
    assert machine.receive(Tick(), 5) == []


@pytest.mark.form("document")
@pytest.mark.parametrize("bounds", [(0, 3), (3, 2), (-1, 2)])
def test_a_broker_with_an_invalid_range_does_not_start(bounds: tuple[int, int]) -> None:
    """It exits with the range, and has read and written nothing (F-04)."""
    machine = ReferenceBroker(BrokerIdentity(4), LATER_DRAFT, {"alpha": SupportedRange(*bounds)})
    driver = Driver(machine)
    driver.start()
    (end,) = driver.exits
    assert (end.code, machine.registered, driver.served) == (1, False, [])
    assert f"alpha {bounds[0]}-{bounds[1]}" in end.reason


def test_levels_that_a_controller_sends_are_checked_first() -> None:
    """An excluded broker exits and adopts nothing; supported levels that are older than the cached
    ones are ignored (F-65)."""
    machine, driver = broker(EARLY_DRAFT_STRUCK)
    finalize(driver, EARLY_DRAFT_STRUCK, 2)
    driver.start()
    driver.give(UpdateMetadataReceived(UpdateMetadata(1, {"alpha": 3})))
    assert (machine.cached.epoch, machine.cached.levels) == (1, {"alpha": 3})
    driver.give(UpdateMetadataReceived(UpdateMetadata(0, {"alpha": 2})))
    assert (machine.cached.epoch, machine.cached.levels) == (1, {"alpha": 3})
    assert driver.exits == []
    driver.give(UpdateMetadataReceived(UpdateMetadata(2, {"alpha": 9})))
    assert [end.code for end in driver.exits] == [1]
    assert (machine.cached.epoch, driver.pending) == (1, deque())


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_the_check_comes_before_the_epoch_is_compared(epoch: int) -> None:
    """A broker that sent levels exclude exits, whatever their epoch (F-93)."""
    machine, driver = broker(EARLY_DRAFT_STRUCK)
    finalize(driver, EARLY_DRAFT_STRUCK, 2)
    driver.start()
    driver.give(UpdateMetadataReceived(UpdateMetadata(1, {"alpha": 3})))
    driver.give(UpdateMetadataReceived(UpdateMetadata(epoch, {"alpha": 9})))
    assert [end.code for end in driver.exits] == [1]
    assert machine.cached.levels == {"alpha": 3}


def test_an_excluded_broker_that_does_not_know_yet_is_silent() -> None:
    """It reads no partition, writes only its own znode, and serves no update (F-66).

    That is its state between its registration and the watch event with the levels. Clients cannot
    produce or fetch at any time: the listener has no such requests.
    """
    for api_dialect in (ApiDialect.EARLY_DRAFT, ApiDialect.LATER_DRAFT, ApiDialect.RELEASED):
        assert {0, 1}.isdisjoint(OFFERED[api_dialect])
    _, driver = broker()
    finalize(driver, LATER_DRAFT, 2)
    driver.give(SessionStarted(SESSION))
    driver.until(lambda operation: isinstance(operation, Create))
    finalize(driver, LATER_DRAFT, 9, 0)
    driver.rest()
    driver.request(UpdateFeatures(()))
    driver.request(DeleteFeatures(("alpha",)))
    driver.give(Tick())
    driver.rest()
    assert not any(succeeded(reply) for reply in driver.replies)
    paths = {
        (type(operation), operation.path)
        for operation in driver.served
        if not isinstance(operation, Multi)
    }
    own = (Create, "/brokers/ids/4")
    assert own in paths
    reads = {path for operation_type, path in paths - {own} if operation_type in (GetData, Exists)}
    assert reads == {path for _, path in paths - {own}} == {"/features", "/controller"}
    driver.give(WatchFired("/features", WatchKind.CHANGED))
    driver.rest()
    assert [end.code for end in driver.exits] == [1]


@pytest.mark.parametrize("dialect", [LATER_DRAFT, RELEASED], ids=lambda dialect: dialect.name)
def test_a_lower_epoch(dialect: Dialect) -> None:
    """Released Kafka exits; in the drafts the cached levels stay during the life of a znode."""
    machine, driver = broker(dialect)
    finalize(driver, dialect, 2)
    finalize(driver, dialect, 3, 0)
    driver.start()
    old = driver.history.at(1)[dialect.path]
    driver.give(WatchFired(dialect.path, WatchKind.CHANGED))
    request = driver.pending.popleft()
    driver.give(OperationCompleted(request.token, GetDataResult(*old)))
    assert bool(driver.exits) is dialect.exits_at_lower_epoch
    assert (machine.cached.epoch, machine.cached.levels) == (1, {"alpha": 3})


def test_a_recreated_znode_restarts_the_epochs() -> None:
    """In the drafts a recreated znode replaces the cached levels, though its epoch is lower."""
    machine, driver = broker()
    finalize(driver, LATER_DRAFT, 2)
    finalize(driver, LATER_DRAFT, 3, 0)
    driver.start()
    driver.history.write(0, Delete("/features"))
    finalize(driver, LATER_DRAFT, 1)
    driver.give(WatchFired("/features", WatchKind.DELETED))
    driver.rest()
    assert (machine.cached.epoch, machine.cached.levels) == (0, {"alpha": 1})


def test_a_registration_of_unknown_outcome_is_resolved() -> None:
    """The znode's owner decides: a znode of another session makes the broker exit."""
    machine, driver = broker()
    driver.give(SessionStarted(SESSION))
    driver.until(lambda operation: isinstance(operation, Create))
    request = driver.pending.popleft()
    driver.history.write(SESSION, request.operation)
    driver.give(OperationCompleted(request.token, OutcomeUnknown()))
    driver.give(Disconnected())
    driver.give(Reconnected())
    driver.rest()
    assert machine.registered
    second_broker = ReferenceBroker(BrokerIdentity(4), LATER_DRAFT, {})
    second = Driver(second_broker, driver.history)
    second.give(SessionStarted(SESSION + 1))
    second.rest()
    assert [end.code for end in second.exits] == [1]
    assert "another session" in second.exits[0].reason


def test_an_unreadable_znode_before_registering_ends_it() -> None:
    """Unknown levels are not supported levels; after registering, the error is logged and the cache
    stays."""
    _, driver = broker()
    driver.give(SessionStarted(SESSION))
    driver.serve(OperationRefused("no right to read"))
    assert isinstance(driver.exits[0], ExitProcess)
    machine, driver = broker()
    finalize(driver, LATER_DRAFT, 2)
    driver.start()
    driver.give(WatchFired("/features", WatchKind.CHANGED))
    driver.serve(OperationRefused("no right to read"))
    assert not driver.exits
    assert machine.cached.levels == {"alpha": 2}
    assert "no right to read" in driver.log_lines[-1]
