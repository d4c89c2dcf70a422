"""The model of the page: a fold of topics, and what clients get of its changes."""

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.streams.codec.events import MalformedEventError
from featurewatch.streams.outputs import Alert, AlertState, Severity, Snapshot
from featurewatch.streams.types import ClusterId, Role
from featurewatch.web.change_index import ChangeIndex, DocumentKey
from featurewatch.web.documents import STALE_AFTER_MS, urgency
from featurewatch.web.event_stream import MAX_CACHED_BYTES, EventCursor, EventEncoder
from featurewatch.web.history.cluster_history import RETIRED_MS
from featurewatch.web.model import MAX_CHANGES, MAX_RESOLVED, RESOLVED_MS, FleetModel
from tests.web.samples import (
    NOW_MS,
    alert_of,
    change_of,
    message_of,
    nodes_on,
    operation_of,
    publish_history,
    read_model,
    state_of,
)

CLUSTERS = st.sampled_from(["a", "b", "c"])
SNAPSHOTS = st.builds(
    lambda cluster, revision, old: state_of(
        cluster, *((nodes_on("3.9", 1), nodes_on("4.0", 2)) if old else ()), revision=revision
    ),
    CLUSTERS,
    st.integers(1, 3),
    st.booleans(),
)
FIRING = st.builds(
    lambda cluster, node, severity, state: alert_of(cluster, node, severity=severity, state=state),
    CLUSTERS,
    st.integers(1, 3),
    st.sampled_from(Severity),
    st.sampled_from(AlertState),
)
REMOVED = CLUSTERS.map(lambda cluster: ("state", cluster.encode(), None))
MESSAGES = st.lists(
    st.one_of(
        SNAPSHOTS.map(message_of),
        FIRING.map(message_of),
        st.builds(change_of, CLUSTERS, st.integers(1, 3)).map(message_of),
        REMOVED,
    ),
    max_size=30,
)


class _Client:
    """A page: holds the newest document of each key, as the events gave it."""

    def __init__(self, model: FleetModel) -> None:
        self.documents: dict[tuple[str, str], Any] = {}
        self.position = ""
        self._fetch(model)

    def _fetch(self, model: FleetModel) -> None:
        self.documents = {**_current(model)}
        self.position = model.index.position()

    def receive(self, model: FleetModel, data: bytes) -> None:
        """Applies events, and fetches everything after a ``reset``."""
        for block in data.decode().split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in block.split("\n"))
            self.position = fields["id"]
            if fields["event"] == "reset":
                self._fetch(model)
                return
            content = orjson.loads(fields["data"])
            key = fields["event"], content.get("id") or _name(content)
            if content.get("removed"):
                self.documents.pop(key, None)
            else:
                self.documents[key] = content


def _name(content: dict[str, Any]) -> str:
    """The id of a document that has no field for it."""
    if "feature" in content:
        return f"{content['cluster']}/change/{content['feature']}/{content['revision']}"
    return str(content.get("cluster", ""))


def _current(model: FleetModel) -> dict[tuple[str, str], Any]:
    """The documents of clusters and alerts as the model has them now."""
    keys = [DocumentKey("state", row["cluster"]) for row in model.summaries()]
    keys += [DocumentKey("alert", alert.id) for alert in model.alerts()]
    return {key: _plain(model.document(key, NOW_MS)) for key in keys}


def _plain(document: Any) -> Any:
    """A document as a client has it."""
    return orjson.loads(orjson.dumps(document, default=list, option=orjson.OPT_NON_STR_KEYS))


@given(MESSAGES, st.lists(st.booleans(), max_size=30), st.data())
def test_a_client_that_comes_and_goes_has_what_the_model_has(
    messages: list[tuple[str, bytes, bytes | None]], served: list[bool], data: st.DataObject
) -> None:
    """Whatever it missed, and wherever its connection ended, it ends with the newest documents."""
    model = FleetModel("boot")
    model.index = ChangeIndex("boot", max_removed=data.draw(st.integers(0, 2)))
    encoder = EventEncoder(model.index, lambda key: model.document(key, NOW_MS))
    client = _Client(model)
    for number, message in enumerate(messages):
        model.apply(*message, NOW_MS)
        model.count()
        if number < len(served) and served[number]:
            client.receive(model, EventCursor(model.index, client.position).next_events(encoder))
    cursor = EventCursor(model.index, client.position)
    while not cursor.is_current:
        client.receive(model, cursor.next_events(encoder))
    held = {key: item for key, item in client.documents.items() if key[0] in ("state", "alert")}
    assert {key: _plain(item) for key, item in held.items()} == _current(model)


@given(MESSAGES)
def test_the_model_is_the_newest_message_of_each_key(
    messages: list[tuple[str, bytes, bytes | None]],
) -> None:
    """Read again from the beginning, as after a failure of the bus, nothing differs."""
    model = FleetModel("boot")
    expected: dict[bytes, bytes] = {}
    for topic, key, value in messages:
        model.apply(topic, key, value, NOW_MS)
        if topic == "state":
            expected.pop(key, None)
            expected.update({} if value is None else {key: value})
    model.end_reading(NOW_MS)
    assert {row["cluster"].encode() for row in model.summaries()} == expected.keys()
    before, number = _current(model), model.index.content_sequence
    model.begin_reading()
    for topic, key, value in messages:
        is_newest = topic != "state" or expected.get(key) == value
        if is_newest:
            model.apply(topic, key, value, NOW_MS)
    model.end_reading(NOW_MS)
    assert _current(model) == before
    if all(topic == "state" and value is not None for topic, _, value in messages):
        assert model.index.content_sequence == number


def test_what_does_not_come_again_is_removed() -> None:
    """After a failure the topics are reread; a cluster that was retired meanwhile is removed."""
    model = read_model([state_of("a"), state_of("b"), alert_of("b")])
    model.begin_reading()
    model.apply(*message_of(state_of("a")), NOW_MS)
    assert {row["cluster"] for row in model.summaries()} == {"a", "b"}
    model.end_reading(NOW_MS)
    assert {row["cluster"] for row in model.summaries()} == {"a"}
    assert model.alerts() == []


@pytest.mark.parametrize(
    ("snapshot", "alerts", "health", "state"),
    [
        (state_of(), [], "good", "ready"),
        (state_of("a-cluster", nodes_on("3.9", 1), nodes_on("4.0", 2)), [], "good", "mixed"),
        (state_of(), [alert_of()], "critical", "ready"),
        (state_of(), [alert_of(severity=Severity.WARNING)], "warning", "ready"),
        (state_of(), [alert_of(state=AlertState.RESOLVED)], "good", "ready"),
        (state_of(ready=False), [], "unknown", "unknown"),
        (state_of(ready=False), [alert_of()], "critical", "unknown"),
        (state_of(at_ms=NOW_MS - STALE_AFTER_MS - 1), [], "unknown", "ready"),
    ],
)
def test_unknown_is_never_good(
    snapshot: Snapshot, alerts: list[Alert], health: str, state: str
) -> None:
    """The health of a cluster by what is known of it; a critical alert outweighs everything."""
    model = read_model([snapshot, *alerts])
    (row,) = model.summaries()
    assert (row["health"], row["state"]) == (health, state)
    assert (row["unknown_reason"] is None) == (snapshot.ready and snapshot.at_ms == NOW_MS)
    assert model.fleet(NOW_MS)["health"][health] == 1


def test_a_state_becomes_unknown_with_time() -> None:
    """Without any message: a minute after the last state the cluster is unknown, and counted."""
    model = read_model([state_of()])
    number = model.index.content_sequence
    model.tick(NOW_MS + STALE_AFTER_MS)
    assert model.index.content_sequence == number
    model.tick(NOW_MS + STALE_AFTER_MS + 1)
    assert model.fleet(NOW_MS)["unknown"] == 1
    assert model.index.content_sequence > number


def test_a_combined_node_counts_once_and_as_upgraded_in_both_roles() -> None:
    """Node 1 runs 4.0 in one role and 3.9 in the other, so it is not yet on the newest."""
    classes = (
        nodes_on("4.0", 1, 2),
        nodes_on("3.9", 1, role=Role.CONTROLLER),
        nodes_on("4.0", 2, role=Role.CONTROLLER),
    )
    (row,) = read_model([state_of("a", *classes)]).summaries()
    assert (row["nodes"], row["nodes_on_newest"], row["newest_release"]) == (2, 1, "4.0")


def test_worst_first_then_longest() -> None:
    """Critical, unknown, warning, good; among equals a mixed cluster, then the older state."""
    model = read_model(
        [
            state_of("good"),
            state_of("mixed", nodes_on("3.9", 1), nodes_on("4.0", 2)),
            state_of("older", at_ms=NOW_MS - 10),
            state_of("silent", at_ms=NOW_MS - STALE_AFTER_MS - 1),
            state_of("bad"),
            alert_of("bad"),
        ]
    )
    ordered = [row["cluster"] for row in sorted(model.summaries(), key=urgency)]
    assert ordered == ["bad", "silent", "mixed", "older", "good"]


def test_its_size_is_bounded() -> None:
    """Of changes the newest are held, and a resolved alert for an hour."""
    changes = [change_of(revision=revision) for revision in range(1, MAX_CHANGES + 10)]
    model = read_model([state_of(), *changes, alert_of(state=AlertState.RESOLVED)])
    assert [change.revision for change in model.changes("a-cluster")] == [
        *range(MAX_CHANGES + 9, 9, -1)
    ]
    assert len(model.alerts()) == 1
    model.tick(NOW_MS + RESOLVED_MS + 1)
    assert model.alerts() == []
    keys = model.index.changed_since(0) or []
    assert sum(key.kind == "change" for key in keys) == MAX_CHANGES


def test_a_cluster_that_flaps_holds_a_bounded_number_of_resolved_alerts() -> None:
    """The newest of them; those that fire stay, and another cluster's do too."""
    states = state_of(), state_of("other")
    model = read_model([*states, alert_of(node=-1), alert_of("other", state=AlertState.RESOLVED)])
    for node in range(MAX_RESOLVED + 100):
        ended = alert_of(node=node, state=AlertState.RESOLVED)
        model.apply(*message_of(ended), NOW_MS)
    held = [alert.subject["node"] for alert in model.alerts() if alert.cluster == "a-cluster"]
    assert held == [-1, *range(100, MAX_RESOLVED + 100)]
    assert sum(alert.cluster == "other" for alert in model.alerts()) == 1


def test_nothing_stays_of_a_cluster_that_is_removed() -> None:
    """The time of its state neither, whatever names come."""
    model = read_model([])
    for number in range(20):
        cluster = ClusterId(f"cluster-{number}")
        model.apply(*message_of(state_of(cluster)), NOW_MS)
        model.apply(*message_of(alert_of(cluster)), NOW_MS)
        model.set_times(cluster, {"mixed": 1}, NOW_MS)
        model.apply(*message_of(alert_of(cluster, state=AlertState.RESOLVED)), NOW_MS)
        model.apply("state", cluster.encode(), None, NOW_MS)
    model.tick(NOW_MS + RESOLVED_MS + 1)
    assert not (model._snapshots or model._summaries or model._since or model._changes)
    assert not (model._alerts or model._firing or model._resolved)


def test_the_history_of_a_retired_cluster_goes_although_its_topics_have_it() -> None:
    """Its topics are read after its state was removed, or again; a new cluster's may come first."""
    model = read_model([state_of("stays")])

    def held() -> list[str]:
        return [name for name in ("stays", "gone", "new") if model.history.revisions(name)]

    publish_history(model, state_of("stays"), state_of("gone"), operation_of("gone"))
    model.tick(NOW_MS - 2 * RETIRED_MS)
    model.error = "the bus is unreachable"
    model.tick(NOW_MS - RETIRED_MS)
    model.error = None
    model.tick(NOW_MS)
    publish_history(model, state_of("new"))
    model.tick(NOW_MS + RETIRED_MS - 1)
    assert held() == ["stays", "gone", "new"]
    model.apply(*message_of(state_of("new")), NOW_MS)
    model.tick(NOW_MS + RETIRED_MS)
    assert held() == ["stays", "new"]
    assert model.history.operations("gone") == []
    model.tick(NOW_MS + 3 * RETIRED_MS)
    assert held() == ["stays", "new"]
    model.history.begin_reading()
    publish_history(model, state_of("stays"), state_of("new"))
    model.apply("state", b"new", None, NOW_MS)
    model.history.end_reading()
    assert held() == ["stays"]
    keys = model.index.changed_since(0) or []
    assert {key.id for key in keys if key.kind in ("revisions", "operations")} == {"stays"}


def test_removals_are_remembered_up_to_a_number() -> None:
    """A client that missed more than these begins again; documents that exist are all there."""
    index = ChangeIndex("boot", max_removed=10)
    index.mark_changed(DocumentKey("state", "stays"))
    for number in range(1_000):
        key = DocumentKey("alert", str(number))
        index.mark_changed(key)
        index.remove(key)
    assert len(index._removed) == 10
    assert [*index._changed] == [*index._contents] == [DocumentKey("state", "stays")]
    assert index.changed_since(1) is None
    assert index.changed_since(index.sequence) == []


def test_encoded_events_are_bounded_in_bytes() -> None:
    """A document may have any size; what is dropped is encoded again."""
    index = ChangeIndex("boot")
    text = "x" * (MAX_CACHED_BYTES // 10)
    encoder = EventEncoder(index, lambda key: {"id": key.id, "text": text})
    keys = [DocumentKey("alert", str(number)) for number in range(50)]
    for key in keys:
        index.mark_changed(key)
        assert len(encoder.encode(key)) > len(text)
        assert sum(len(encoded) for _, encoded in encoder._encoded.values()) <= MAX_CACHED_BYTES
    assert encoder.encode(keys[-1]) is encoder.encode(keys[-1])


@pytest.mark.parametrize("topic", ["state", "alerts", "feature-changes"])
@pytest.mark.parametrize("value", [b"", b"{}", b"[]", b"\xff", b'{"cluster": 1}'])
def test_an_unreadable_message_changes_nothing(topic: str, value: bytes) -> None:
    """It is refused, and the model is what it was."""
    model = read_model([state_of()])
    number = model.index.sequence
    with pytest.raises(MalformedEventError):
        model.apply(topic, b"a-cluster", value, NOW_MS)
    assert model.index.sequence == number


def test_times_alone_are_no_change_of_content() -> None:
    """A state that is published again is sent rarely, and ETags hold."""
    model = read_model([state_of()])
    number, content = model.index.sequence, model.index.content_sequence
    model.apply(*message_of(replace(state_of(), at_ms=NOW_MS + 1_000)), NOW_MS + 1_000)
    assert model.index.sequence == number
    model.apply(*message_of(replace(state_of(), at_ms=NOW_MS + 11_000)), NOW_MS + 11_000)
    assert model.index.sequence > number
    assert model.index.content_sequence == content
