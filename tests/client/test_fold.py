"""The fold of a topic: messages in; values, each once, and problems by their names out."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.client.errors import (
    ClientError,
    ClusterRetiredError,
    LaterVersionError,
    RevisionBackError,
    RevisionsLostError,
    UnreadableError,
)
from featurewatch.client.fold import Record, TopicFold
from featurewatch.streams.codec import cloudevents
from featurewatch.streams.codec.outputs import encode_output
from featurewatch.streams.outputs import Alert, FeatureChange, Snapshot
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, STATE
from tests.client.published import (
    CLUSTER,
    alert,
    change,
    change_record,
    deletion,
    record,
    snapshot,
    state_record,
)


def changes_of(*records: Record, known: dict[str, int] | None = None) -> list[object]:
    """Revisions of values, and names of problems."""
    fold = TopicFold(FEATURE_CHANGES, FeatureChange, known)
    return [
        item.revision if isinstance(item, FeatureChange) else type(item)
        for each in records
        for item in fold.apply(each)
    ]


@pytest.mark.parametrize(
    ("changes", "known", "expected"),
    [
        ([change(1), change(2)], {}, [1, 2]),
        ([change(7)], {}, [7]),  # earlier ones have expired, or were not asked for
        ([change(1), change(1), change(2), change(1)], {}, [1, 2]),
        ([change(1), change(1, feature="other"), change(2)], {}, [1, 1, 2]),
        ([change(1), change(4), change(5)], {}, [1, RevisionsLostError, 4, 5]),
        ([change(4)], {CLUSTER: 2}, [RevisionsLostError, 4]),
        ([change(3)], {CLUSTER: 2}, [3]),
        ([change(5), change(2), change(3)], {}, [5, RevisionBackError, 2, 3]),
        ([change(1), change(1, seen_ms=9)], {}, [1, RevisionBackError, 1]),
        ([change(1), change(8, cluster="another"), change(2)], {}, [1, 8, 2]),
    ],
)
def test_revisions_come_once_and_what_is_missing_is_named(changes, known, expected):
    """One that is published twice is dropped; a hole and a restart of the numbers are problems."""
    assert changes_of(*map(change_record, changes), known=known) == expected


def test_a_later_version_is_named_and_a_foreign_schema_is_not_one():
    """By the attribute of CloudEvents that names the schema; the schema's id has the same."""
    later = replace(FEATURE_CHANGES, version=3)
    message = encode_output(change(1))
    headers = cloudevents.headers(later, "upgraded", CLUSTER, "id", 0)
    assert (headers[-1][0], headers[-1][1].decode()) == ("ce_dataschema", later.schema_id)
    fold = TopicFold(FEATURE_CHANGES, FeatureChange)
    (problem,) = fold.apply(record(message._replace(headers=headers)))
    assert isinstance(problem, LaterVersionError)
    assert (problem.version, problem.known, problem.key) == (3, 1, CLUSTER)
    foreign = [("ce_dataschema", b"https://registry.example/schemas/9")]
    (value,) = fold.apply(record(message._replace(headers=foreign)))
    assert value == change(1)


def test_what_cannot_be_read_is_named():
    """A missing field, and a key of another cluster."""
    fold = TopicFold(FEATURE_CHANGES, FeatureChange)
    message = encode_output(change(1))
    content = orjson.loads(message.value or b"")
    del content["after"]
    (problem,) = fold.apply(record(message._replace(value=orjson.dumps(content))))
    assert isinstance(problem, UnreadableError)
    assert str(problem) == (
        "featurewatch.feature-changes partition 0 offset 0 cannot be read: "
        "FeatureChange has no field after"
    )
    (problem,) = fold.apply(record(message._replace(key=b"another")))
    assert isinstance(problem, UnreadableError)
    assert "the key is 'another'" in str(problem)


def test_a_retired_cluster_is_named_if_something_was_said_of_it():
    """A deletion of a cluster that the caller never saw says nothing to it."""
    fold = TopicFold(STATE, Snapshot)
    assert [*fold.apply(deletion("another"))] == []
    assert len([*fold.apply(state_record(snapshot(3)))]) == 1
    (problem,) = fold.apply(deletion())
    assert isinstance(problem, ClusterRetiredError)
    assert problem.cluster == CLUSTER
    # Followed again, its revisions restart, which is no surprise then.
    assert [*fold.apply(state_record(snapshot(1)))] == [snapshot(1)]


def test_a_revision_that_is_published_at_another_time_is_the_same():
    """The digest says that two snapshots have the same content."""
    fold = TopicFold(EPOCHS, Snapshot)
    first, again = snapshot(3), replace(snapshot(3), at_ms=99)
    items = [item for each in (first, again) for item in fold.apply(record(encode_output(each)))]
    assert items == [first]


def test_one_cluster_alone():
    """Messages of others are left out before they are read, alerts by the begin of their keys."""
    fold = TopicFold(FEATURE_CHANGES, FeatureChange, cluster=CLUSTER)
    assert [*fold.apply(Record("t", 0, 0, b"another", b"garbage"))] == []
    assert [*fold.apply(change_record(change(1)))] == [change(1)]
    alerts = TopicFold(ALERTS, Alert, cluster=CLUSTER)
    assert [*alerts.apply(record(encode_output(alert(1))))] == [alert(1)]
    assert [*alerts.apply(Record("t", 0, 0, f"{CLUSTER}-b/rule/x".encode(), b"garbage"))] == []


@pytest.mark.fuzz
@given(st.binary(), st.binary(), st.lists(st.tuples(st.just("ce_dataschema"), st.binary())))
def test_any_bytes_are_a_value_or_a_problem(key, value, headers):
    """Nothing else is raised, whatever the message holds."""
    fold = TopicFold(FEATURE_CHANGES, FeatureChange)
    for item in fold.apply(Record("t", 0, 0, key, value, headers)):
        assert isinstance(item, ClientError)
