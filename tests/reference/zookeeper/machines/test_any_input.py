"""Any events in any order: a machine never raises and responds to each request once."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.reference.zookeeper.machines.broker import BrokerIdentity, ReferenceBroker
from featurewatch.reference.zookeeper.machines.controller.controller import ReferenceController
from featurewatch.reference.zookeeper.machines.dialect import DIALECTS
from featurewatch.reference.zookeeper.machines.protocol import (
    Disconnected,
    Reconnected,
    SessionLost,
    SessionStarted,
    Tick,
    WatchFired,
    WatchKind,
)
from featurewatch.reference.zookeeper.machines.requests import (
    ApiVersions,
    DeleteFeatures,
    EarlyUpdate,
    LaterUpdate,
    ReleasedUpdate,
    UpdateFeatures,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    BadVersion,
    GetChildrenResult,
    GetDataResult,
    NodeExists,
    NoNode,
    OperationDone,
    OperationRefused,
    OperationResult,
    OutcomeUnknown,
    Stat,
)
from featurewatch.streams.types import SupportedRange
from tests.reference.zookeeper.machines.driving import SESSION, Driver

PATHS = st.sampled_from(
    [
        "/controller",
        "/controller_epoch",
        "/feature",
        "/features",
        "/brokers/ids",
        "/brokers/ids/1",
        "/brokers/ids/x",
        "/elsewhere",
    ]
)
STATS = st.builds(Stat, st.integers(0, 3), st.just(5), st.just(6), st.sampled_from([0, 7, 8]))
CONTENT = st.sampled_from(
    [
        b"",
        b"1",
        b"{}",
        b"[1",
        b"\xff",
        b'{"version":2,"status":1,"features":{}}',
        b'{"version":2,"status":0,"features":{}}',
        b'{"version":0,"features":{}}',
        b'{"version":0,"data":{"features":{}}}',
        b'{"version":1,"brokerid":1,"timestamp":"1"}',
        b'{"version":1,"host":"h","port":1,"jmx_port":-1,"timestamp":"1"}',
    ]
)
INDEX = st.integers(0, 1)
OUTCOMES = st.one_of(
    st.builds(GetDataResult, CONTENT, STATS),
    st.builds(GetChildrenResult, st.just(("1", "2", "x"))),
    st.builds(OperationDone, st.just((None,))),
    st.builds(NoNode, INDEX),
    st.builds(NodeExists, INDEX),
    st.builds(BadVersion, INDEX),
    st.builds(OperationRefused, st.just("no right")),
    st.just(OutcomeUnknown()),
)
ITEMS = st.lists(
    st.builds(ReleasedUpdate, st.sampled_from(["alpha", ""]), st.integers(-1, 3))
    | st.builds(LaterUpdate, st.sampled_from(["alpha", ""]), st.integers(-1, 3))
    | st.builds(EarlyUpdate, st.sampled_from(["alpha", ""]), st.integers(-1, 3)),
    max_size=2,
).map(tuple)
REQUESTS = st.one_of(
    st.builds(UpdateFeatures, ITEMS, st.sampled_from([0, 50, 60_000]), st.integers(0, 2)),
    st.builds(DeleteFeatures, st.sampled_from([(), ("alpha",), ("",)])),
    st.builds(ApiVersions, st.integers(0, 4)),
)
STEPS = st.lists(
    st.one_of(
        *[st.none()] * 8,
        OUTCOMES,
        REQUESTS,
        st.builds(WatchFired, PATHS, st.sampled_from(WatchKind)),
        st.just(Tick()),
        st.sampled_from([SessionLost(), Disconnected(), Reconnected()]),
    ),
    max_size=80,
)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=150)
@given(steps=STEPS, is_broker=st.booleans())
def test_anything(name: str, steps: list[Any], is_broker: bool) -> None:
    """A machine handles everything: junk in znodes, results that do not fit, requests at any
    time."""
    dialect = DIALECTS[name]
    machine: Any = ReferenceController(1, dialect, {"alpha": SupportedRange(1, 3)})
    if is_broker:
        machine = ReferenceBroker(BrokerIdentity(1), dialect, {"alpha": SupportedRange(1, 3)})
    driver = Driver(machine)
    driver.give(SessionStarted(SESSION))
    for step in [*steps, SessionLost()]:
        driver.now_ms += 20
        if isinstance(step, UpdateFeatures | DeleteFeatures | ApiVersions):
            driver.request(step)
        elif isinstance(step, SessionLost):
            driver.pending.clear()
            driver.give(step)
            driver.give(SessionStarted(SESSION))
        elif step is not None and not isinstance(step, OperationResult):
            driver.give(step)
        elif driver.pending:
            driver.serve(step)
        if driver.exits:
            assert [end.code for end in driver.exits] == [1]
            return
    assert len(driver.replies) == driver.requests
