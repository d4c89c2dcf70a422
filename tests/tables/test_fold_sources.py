"""A retired source is removed, together with what only that source published."""

from featurewatch.controller.monitor import MonitorState, step
from featurewatch.streams.events import Event, SourceState
from featurewatch.tables.image.cluster import Authority
from tests.simulation import records as r
from tests.simulation import znodes as z


def after(*events: Event) -> MonitorState:
    """The state after some events of one cluster."""
    state = MonitorState.of(r.CLUSTER)
    for event in events:
        state = step(state, event).state
    return state


def retired(source: str) -> Event:
    """An operator's retirement of a source."""
    return r.status(SourceState.RETIRED, -1, source=source, seen_ms=99)


MOVED: tuple[Event, ...] = (
    *z.reading("s1", [z.broker(1, {}, czxid=10), z.migration(3000)], 50),
    z.following(),
    r.commit(3, r.level("metadata.version", 21)),
    r.following(3),
    z.status(SourceState.SILENT, 50),
)
"""A cluster that has come from ZooKeeper, which was switched off then."""


def test_what_only_the_source_told_goes_with_it() -> None:
    """The znodes of a ZooKeeper that was shut down after a migration are removed."""
    before = after(*MOVED)
    assert len(before.image.zookeeper.nodes) == 1
    assert {alert.rule for alerts in before.firing.values() for alert in alerts} >= {
        "source-stalled"
    }
    outcome = step(before, retired("zookeeper"))
    image = outcome.state.image
    assert set(image.sources.statuses) == {"kraft"}
    assert (len(image.zookeeper.nodes), dict(image.zookeeper.znodes)) == (0, {})
    assert list(outcome.delta.zookeeper.nodes.values()) == [None]
    assert image.ready
    assert not outcome.state.firing


def test_the_word_of_the_authority_stays() -> None:
    """The log's nodes and levels stay, but the image is not ready any more."""
    image = after(*MOVED, retired("kraft")).image
    assert image.authority is Authority.LOG
    assert dict(image.features.levels) == {"metadata.version": 21}
    assert not image.ready


def test_a_source_that_speaks_again_is_taken_up() -> None:
    """A retired source may publish again."""
    image = after(*MOVED, retired("zookeeper"), z.following(100)).image
    assert set(image.sources.statuses) == {"kraft", "zookeeper"}


def test_nobody_is_retired_twice() -> None:
    """An unknown source changes nothing."""
    assert step(after(*MOVED, retired("zookeeper")), retired("zookeeper")).delta.skipped
