"""The reference controller, one operation at a time."""

import pytest

from featurewatch.reference.zookeeper.machines.controller.controller import ReferenceController
from featurewatch.reference.zookeeper.machines.dialect import (
    DIALECTS,
    EARLY_DRAFT,
    EARLY_DRAFT_STRUCK,
    LATER_DRAFT,
    RELEASED,
    Dialect,
)
from featurewatch.reference.zookeeper.machines.encoding import encode_features
from featurewatch.reference.zookeeper.machines.protocol import (
    Disconnected,
    Effect,
    OperationCompleted,
    Reconnected,
    RequestReceived,
    SendResponse,
    SendUpdateMetadata,
    SessionLost,
    SessionStarted,
    Tick,
    UpdateMetadataDelivered,
    WatchFired,
    WatchKind,
)
from featurewatch.reference.zookeeper.machines.requests import (
    ApiVersions,
    EarlyUpdate,
    EarlyUpdateType,
    ErrorCode,
    FeaturesResponse,
    LaterUpdate,
    ReleasedUpdate,
    UpdateFeatures,
    UpdateMetadata,
    UpdateResponse,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    CheckVersion,
    Create,
    GetData,
    Multi,
    Operation,
    OperationRefused,
    OutcomeUnknown,
    SetData,
)
from featurewatch.streams.types import SupportedRange
from tests.reference.zookeeper.machines.driving import SESSION, WRITES, Driver
from tests.reference.zookeeper.machines.results import succeeded
from tests.simulation.reference.tree import read

RAISE = UpdateFeatures((ReleasedUpdate("alpha", 1, upgrade_type=2),))


def controller(dialect: Dialect = RELEASED) -> tuple[ReferenceController, Driver]:
    """A candidate that supports alpha 1-3."""
    machine = ReferenceController(1, dialect, {"alpha": SupportedRange(1, 3)})
    return machine, Driver(machine)


def writes_features(operation: Operation) -> bool:
    """Whether an operation writes the finalized features."""
    return isinstance(operation, Multi) and operation.operations[-1].path.startswith("/feature")


@pytest.mark.parametrize("name", [name for name in DIALECTS if name != "early-draft"])
def test_start_up_waits_until_the_znode_exists(name: str) -> None:
    """Before the first levels are written, nothing is served and no broker is read (F-16, F-17)."""
    machine, driver = controller(DIALECTS[name])
    driver.give(SessionStarted(SESSION))
    creation = driver.until(writes_features)
    assert isinstance(creation, Multi)
    assert isinstance(creation.operations[1], Create)
    driver.request(RAISE)
    assert driver.replies.pop().error is ErrorCode.NOT_CONTROLLER
    assert not any("/brokers" in str(operation) for operation in driver.served)
    driver.serve(OutcomeUnknown())
    driver.give(Disconnected())
    driver.give(Reconnected())
    driver.until(writes_features)
    assert not machine.active
    driver.rest()
    assert machine.active
    assert machine.levels == {"alpha": 3}


DRAFTS = pytest.mark.parametrize("dialect", [EARLY_DRAFT, EARLY_DRAFT_STRUCK, LATER_DRAFT])


def level_of(dialect: Dialect, level: int, timeout_ms: int | None = None) -> UpdateFeatures:
    """An update of alpha in a draft, which may lower it."""
    item = LaterUpdate("alpha", level, True) if dialect is LATER_DRAFT else EarlyUpdate(
        "alpha", level, EarlyUpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE
    )  # fmt: skip
    if timeout_ms is None:
        return UpdateFeatures((item,))
    return UpdateFeatures((item,), timeout_ms=timeout_ms)


@DRAFTS
@pytest.mark.parametrize("timeout_ms", [None, 250])
def test_a_request_times_out(dialect: Dialect, timeout_ms: int | None) -> None:
    """After ``timeoutMs``, by default 60000, and not before; a write that has begun may have
    happened (F-20)."""
    _, driver = controller(dialect)
    driver.start()
    driver.request(level_of(dialect, 2, timeout_ms))
    driver.until(writes_features)
    driver.now_ms += (60_000 if timeout_ms is None else timeout_ms) - 1
    driver.give(Tick())
    assert driver.replies == []
    driver.now_ms += 1
    driver.give(Tick())
    (reply,) = driver.replies
    assert (reply.error, reply.unknown) == (ErrorCode.REQUEST_TIMED_OUT, True)


@DRAFTS
def test_a_valid_request_is_one_write(dialect: Dialect) -> None:
    """The data version grows by 1 at each, even if no level changes (F-32)."""
    _, driver = controller(dialect)
    driver.start()
    before = driver.history.tree[dialect.path].stat.version
    for count, level in enumerate((2, 2, 3), start=1):
        driver.request(level_of(dialect, level))
        driver.rest()
        assert succeeded(driver.replies.pop())
        assert driver.history.tree[dialect.path].stat.version == before + count


@pytest.mark.form("released")
def test_released_kafka_does_not_write_what_changes_nothing() -> None:
    """The request succeeds, and the data version stays (F-32 as released)."""
    _, driver = controller()
    driver.start()
    before = driver.history.tree[RELEASED.path].stat.version
    driver.request(UpdateFeatures(()))
    driver.rest()
    assert succeeded(driver.replies.pop())
    assert driver.history.tree[RELEASED.path].stat.version == before


def test_levels_are_sent_to_all_live_brokers_before_the_response() -> None:
    """UPDATE_METADATA has the new epoch and levels, and is confirmed before the client's answer
    (F-46, F-92)."""
    _, driver = controller(EARLY_DRAFT_STRUCK)
    driver.start()
    for broker_id in (2, 3):
        driver.join(broker_id, EARLY_DRAFT_STRUCK, alpha=(1, 3))
    driver.rest()
    effects: list[Effect] = []
    driver.request(level_of(EARLY_DRAFT_STRUCK, 2))
    while driver.pending:
        request = driver.pending.popleft()
        act = driver.history.write if isinstance(request.operation, WRITES) else None
        outcome = (
            act(SESSION, request.operation) if act else read(driver.history.tree, request.operation)
        )
        effects += driver.give(OperationCompleted(request.token, outcome))
    shown = [effect for effect in effects if isinstance(effect, SendUpdateMetadata | SendResponse)]
    epoch = driver.history.tree[EARLY_DRAFT_STRUCK.path].stat.version
    message = UpdateMetadata(epoch, {"alpha": 2})
    assert shown == [SendUpdateMetadata(2, message), SendUpdateMetadata(3, message)]
    for broker_id in (2, 3):
        assert driver.replies == []
        driver.give(UpdateMetadataDelivered(broker_id, epoch))
    assert [succeeded(reply) for reply in driver.replies] == [True]


def delivering() -> tuple[Driver, int]:
    """An update that is written, and that brokers 2 and 3 have yet to confirm; and its epoch."""
    _, driver = controller(EARLY_DRAFT_STRUCK)
    driver.start()
    for broker_id in (2, 3):
        driver.join(broker_id, EARLY_DRAFT_STRUCK, alpha=(1, 3))
    driver.rest()
    driver.request(level_of(EARLY_DRAFT_STRUCK, 2))
    driver.rest()
    return driver, driver.history.tree[EARLY_DRAFT_STRUCK.path].stat.version


def test_a_success_means_that_all_live_brokers_have_the_levels() -> None:
    """Unconfirmed levels are sent again, a confirmation of older levels does not count, and a
    broker that leaves is not waited for (F-92)."""
    driver, epoch = delivering()
    message = UpdateMetadata(epoch, {"alpha": 2})
    driver.give(UpdateMetadataDelivered(2, epoch))
    driver.give(UpdateMetadataDelivered(3, epoch - 1))
    assert driver.give(Tick()) == [SendUpdateMetadata(3, message)]
    assert driver.replies == []
    driver.history.close(103)
    driver.give(WatchFired("/brokers/ids/3", WatchKind.DELETED))
    driver.rest()
    assert [succeeded(reply) for reply in driver.replies] == [True]
    assert driver.give(Tick()) == []


def test_a_success_is_not_reported_if_a_broker_has_not_confirmed_in_time() -> None:
    """The levels are written all the same, so the outcome is not a failure either (F-92)."""
    driver, epoch = delivering()
    driver.give(UpdateMetadataDelivered(2, epoch))
    driver.now_ms += 60_000
    assert not any(isinstance(effect, SendUpdateMetadata) for effect in driver.give(Tick()))
    (reply,) = driver.replies
    assert (succeeded(reply), reply.unknown) == (False, True)
    driver.give(UpdateMetadataDelivered(3, epoch))
    assert len(driver.replies) == 1


def test_a_rejected_bootstrap_prevents_the_start() -> None:
    """If ZooKeeper rejects the znode, the controller never begins to serve (F-17)."""
    machine, driver = controller()
    driver.give(SessionStarted(SESSION))
    driver.until(writes_features)
    driver.serve(OperationRefused("no right to create"))
    driver.rest()
    assert not machine.active
    assert "no right to create" in driver.log_lines[-1]


@pytest.mark.form("document", "released")
@pytest.mark.parametrize("name", DIALECTS)
def test_every_write_of_the_features_is_fenced(name: str) -> None:
    """Each write checks the version of the controller epoch of this controller's election (F-13).

    Before it is elected, it serves no update, and answers 41 (F-19, F-19 as released).
    """
    dialect = DIALECTS[name]
    machine, driver = controller(dialect)
    driver.request(RAISE)
    assert driver.replies == [UpdateResponse(ErrorCode.NOT_CONTROLLER, driver.replies[0].message)]
    assert driver.replies[0].error == 41
    driver.start()
    epoch = driver.history.tree["/controller_epoch"]
    assert (machine.epoch, int(epoch.data)) == (1, 1)
    writes = [operation for operation in driver.served if writes_features(operation)]
    assert writes
    for operation in writes:
        assert isinstance(operation, Multi)
        assert operation.operations[0] == CheckVersion("/controller_epoch", epoch.stat.version)


def test_a_deposed_controller_notices_at_its_write() -> None:
    """It changes nothing, responds NOT_CONTROLLER, and resigns (F-13)."""
    machine, driver = controller()
    driver.start()
    before = driver.history.tree["/feature"]
    driver.depose()
    driver.request(RAISE)
    driver.rest()
    assert driver.replies[0].error is ErrorCode.NOT_CONTROLLER
    assert driver.history.tree["/feature"] == before
    assert (machine.active, machine.controller_id) == (False, 99)


def test_a_joiner_waits_for_the_outcome_of_a_write() -> None:
    """While a write is in flight, no broker is read (F-67)."""
    machine, driver = controller()
    driver.start()
    driver.request(RAISE)
    driver.join(2, alpha=(2, 3))
    assert [writes_features(request.operation) for request in driver.pending] == [True]
    driver.rest()
    assert machine.levels == {"alpha": 1}
    assert machine.accepted == {}
    assert "incompatibilities" in driver.log_lines[-1]


@pytest.mark.form("document")
def test_brokers_are_watched_and_the_newest_content_is_kept() -> None:
    """A broker that changes its ranges, joins or leaves is noticed (F-15)."""
    machine, driver = controller(LATER_DRAFT)
    driver.start()
    driver.join(2, alpha=(1, 3))
    driver.rest()
    driver.join(3, alpha=(1, 4))
    driver.rest()
    assert machine.accepted == {2: {"alpha": (1, 3)}, 3: {"alpha": (1, 4)}}
    path = "/brokers/ids/3"
    assert GetData(path, watch=True) in driver.served
    changed = driver.history.tree[path].data.replace(b":4}", b":9}")
    driver.history.write(103, SetData(path, changed, 0))
    driver.give(WatchFired(path, WatchKind.CHANGED))
    driver.rest()
    assert machine.accepted[3] == {"alpha": (1, 9)}
    driver.history.close(102)
    driver.give(WatchFired("/brokers/ids/2", WatchKind.DELETED))
    driver.rest()
    assert [*machine.accepted] == [3]


def test_a_broker_that_a_lower_level_admits_again_counts() -> None:
    """It is in the live set from then on, and excludes what it does not support (F-38)."""
    machine, driver = controller(LATER_DRAFT)
    driver.start()
    driver.join(2, LATER_DRAFT, alpha=(1, 2))
    driver.rest()
    assert 2 not in machine.accepted
    driver.request(level_of(LATER_DRAFT, 2))
    driver.rest()
    assert 2 in machine.accepted
    driver.request(level_of(LATER_DRAFT, 3))
    driver.rest()
    assert [succeeded(reply) for reply in driver.replies] == [True, False]


def test_a_starting_controller_keeps_levels_above_its_own_range() -> None:
    """It takes the znode as it is, although it does not support what is finalized (F-70)."""
    machine, driver = controller(LATER_DRAFT)
    driver.history.write(1, Create("/features", encode_features(LATER_DRAFT, {"alpha": 7})))
    driver.start()
    assert machine.levels == {"alpha": 7}


@pytest.mark.form("released")
def test_without_a_znode_there_is_no_epoch() -> None:
    """A node responds with epoch -1 (F-54 as released)."""
    machine, _ = controller()
    (sent,) = machine.receive(RequestReceived(1, ApiVersions(3)), 0)
    assert isinstance(sent, SendResponse)
    assert isinstance(sent.response, FeaturesResponse)
    assert sent.response.epoch == -1


def test_a_request_times_out_before_it_is_started() -> None:
    """Nothing was changed then, and nothing will be; during the write the outcome is unknown."""
    _, driver = controller()
    driver.start()
    driver.request(RAISE)
    driver.request(UpdateFeatures((ReleasedUpdate("alpha", 2),), timeout_ms=10))
    driver.now_ms += 10
    driver.give(Tick())
    assert [reply.unknown for reply in driver.replies] == [False]
    driver.now_ms += 60_000
    driver.give(Tick())
    assert [reply.unknown for reply in driver.replies] == [False, True]
    assert {reply.error for reply in driver.replies} == {ErrorCode.REQUEST_TIMED_OUT}
    driver.rest()
    assert len(driver.replies) == 2
    assert driver.history.tree["/feature"].stat.version == 1


@pytest.mark.form("released")
def test_a_success_is_reported_if_the_session_ends_before_the_read_back() -> None:
    """Once ZooKeeper has acknowledged the write, it is done (F-42 as released)."""
    _, driver = controller()
    driver.start()
    driver.request(RAISE)
    driver.until(writes_features)
    driver.serve()
    driver.give(SessionLost())
    assert [succeeded(reply) for reply in driver.replies] == [True]


def test_a_session_that_ends_during_the_write_leaves_the_outcome_unknown() -> None:
    """Neither success nor failure is reported (F-45)."""
    _, driver = controller()
    driver.start()
    driver.request(RAISE)
    driver.give(SessionLost())
    assert [(succeeded(reply), reply.unknown) for reply in driver.replies] == [(False, True)]


@pytest.mark.form("document", "released")
def test_zookeeper_rejects_the_write() -> None:
    """Every valid item gets a server-side error, and the znode is unchanged (F-44)."""
    for dialect, code in ((RELEASED, None), (LATER_DRAFT, ErrorCode.FEATURE_UPDATES_FAILED)):
        _, driver = controller(dialect)
        driver.start()
        item = LaterUpdate("alpha", 1, allow_downgrade=True)
        driver.request(RAISE if code is None else UpdateFeatures((item,)))
        before = driver.history.tree
        driver.serve(OperationRefused("no right to write"))
        driver.rest()
        (reply,) = driver.replies
        error = reply.results[0].error if code is None else reply.error
        assert error is (code or ErrorCode.FEATURE_UPDATE_FAILED)
        assert driver.history.tree is before


def test_a_foreign_change_repeats_the_decision() -> None:
    """The write requires the version of the decision; otherwise the decision is repeated."""
    machine, driver = controller()
    driver.start()
    by_hand = b'{"version":2,"status":1,"features":{"alpha":{"max_version_level":2}}}'
    driver.history.write(0, SetData("/feature", by_hand, 0))
    driver.request(UpdateFeatures((ReleasedUpdate("alpha", 3),)))
    driver.rest()
    assert "to the same value" in driver.replies[0].results[0].message
    driver.give(WatchFired("/feature", WatchKind.CHANGED))
    driver.rest()
    driver.history.write(0, SetData("/feature", by_hand, 1))
    driver.request(UpdateFeatures((ReleasedUpdate("alpha", 3),)))
    driver.rest()
    assert succeeded(driver.replies[1])
    assert machine.levels == {"alpha": 3}


def test_a_manually_raised_epoch_leads_to_a_new_election() -> None:
    """The controller could write nothing, so it deletes ``/controller`` and is elected with a new
    epoch."""
    machine, driver = controller()
    driver.start()
    driver.history.write(0, SetData("/controller_epoch", b"8", 1))
    driver.request(RAISE)
    driver.rest()
    assert driver.replies[0].error is ErrorCode.NOT_CONTROLLER
    assert (machine.active, machine.epoch) == (True, 9)
    driver.request(RAISE)
    driver.rest()
    assert succeeded(driver.replies[1])


def test_a_watch_left_on_the_features_is_always_set_again() -> None:
    """Each watch event leads to one read that sets a new watch."""
    _, driver = controller()
    driver.start()
    driver.served.clear()
    driver.give(WatchFired("/feature", WatchKind.CHANGED))
    driver.rest()
    assert [str(operation) for operation in driver.served] == [
        "GetData(path='/feature', watch=True)"
    ]
