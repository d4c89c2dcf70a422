"""One message that a reader of outputs cannot use ends the reading of no other. Without a bus."""

import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from featurewatch.cli.output import live_printer
from featurewatch.cli.output.live_printer import LivePrinter
from featurewatch.cli.runtime.notify.run import _AlertFeed
from featurewatch.cli.runtime.page import _Outputs
from featurewatch.common.limited_log import LimitedLog
from featurewatch.integrations.notify.alert_book import AlertBook
from featurewatch.streams.bus.feed import FailureLog, TopicFeed
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import encode_output
from featurewatch.streams.outputs import AlertState
from featurewatch.streams.topics import ALERTS, FEATURE_CHANGES, STATE
from featurewatch.web.model import FleetModel
from tests.web.samples import NOW_MS, alert_of, change_of, message_of, state_of

BUS = BusSettings("127.0.0.1:1")


class OnTopic:
    """A message as confluent-kafka gives it."""

    def __init__(self, topic: str, value: bytes | None, key: bytes = b"k") -> None:
        self.topic = lambda: topic
        self.value = lambda: value
        self.key = lambda: key
        self.partition = lambda: 3
        self.offset = lambda: 7


def alert_message(**others: Any) -> OnTopic:
    """An alert on its topic."""
    return OnTopic(BUS.topic(ALERTS), encode_output(alert_of(**others)).value)


def deep_alert() -> OnTopic:
    """An alert whose evidence orjson reads and does not write."""
    fields = json.loads(encode_output(alert_of(node=9)).value or b"")
    nested = b'{"a":' * 300 + b"1" + b"}" * 300
    value = json.dumps(fields | {"evidence": "here"}).encode().replace(b'"here"', nested)
    return OnTopic(BUS.topic(ALERTS), value)


class Server:
    """What a feed needs of a page."""

    def __init__(self) -> None:
        self.model = FleetModel("boot")
        self.notified = 0

    def now_ms(self) -> int:
        """A moment after what is on the topics."""
        return NOW_MS + 1

    def notify(self) -> None:
        """Counts, as a page does."""
        self.model.count()
        self.notified += 1


class BrokenFeed(TopicFeed):
    """A reader with a fault that one message meets."""

    def __init__(self, error: Exception) -> None:
        super().__init__(FailureLog(logging.getLogger("featurewatch.test"), "nothing comes"))
        self.error = error
        self.values: list[bytes | None] = []

    def apply_message(self, message: Any) -> None:
        """Notes the value of a message, or meets the fault."""
        if message.value() == b"bad":
            raise self.error
        self.values.append(message.value())


def apply(feed: TopicFeed, *messages: Any) -> None:
    """Applies messages of a first reading."""
    feed.begin()
    feed.apply(messages)
    feed.end()


def test_any_error_of_a_message_is_that_message_s(caplog: pytest.LogCaptureFixture) -> None:
    """It is named by its place, once, with the stack of a fault that nobody expected."""
    feed = BrokenFeed(TypeError("Recursion limit reached"))
    apply(feed, *(OnTopic("a-topic", value) for value in (b"1", b"bad", b"2")))
    assert feed.values == [b"1", b"2"]
    (record,) = caplog.records
    assert record.getMessage() == (
        "a-topic partition 3 offset 7 is passed over: TypeError: Recursion limit reached"
    )
    assert record.exc_info is not None


def test_an_error_of_this_process_is_raised() -> None:
    """Whoever prints to a pipe that nobody reads must end."""
    with pytest.raises(BrokenPipeError):
        apply(BrokenFeed(BrokenPipeError()), OnTopic("a-topic", b"bad"))


def test_notifications_pass_over_an_alert_that_cannot_be_sent() -> None:
    """And those after it fire."""
    book = AlertBook()
    apply(_AlertFeed(book, []), deep_alert(), alert_message(node=2))
    assert [alert.subject["node"] for alert in book.firing.values()] == [2]
    assert book.is_complete


@pytest.mark.parametrize("as_json", [True, False])
def test_up_passes_over_an_alert_that_cannot_be_printed(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints the others."""
    apply(LivePrinter(BUS, as_json=as_json), deep_alert(), alert_message(node=2))
    assert "Broker 2 must be upgraded." in capsys.readouterr().out


def test_what_was_printed_is_remembered_for_a_while(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster may flap for weeks: alerts that fire stay known, and of all others the newest."""
    monkeypatch.setattr(live_printer, "MAX_KNOWN", 20)
    printer = LivePrinter(BUS, as_json=False)
    fires = alert_message(node=-1)
    changes = [
        OnTopic(BUS.topic(FEATURE_CHANGES), encode_output(change_of(revision=revision)).value)
        for revision in range(100)
    ]
    ended = (alert_message(node=node, state=AlertState.RESOLVED) for node in range(100))
    apply(printer, fires, *changes, *ended)
    assert len(printer._firing) + len(printer._others) == 21
    capsys.readouterr()
    again: Any = fires, alert_message(node=99, state=AlertState.RESOLVED)
    printer.apply(again)
    assert capsys.readouterr().out == ""


def test_the_page_passes_over_an_alert_that_it_cannot_serve() -> None:
    """The others are served."""
    server: Any = Server()
    apply(_Outputs(server, BUS), deep_alert(), alert_message(node=2))
    assert [alert.subject["node"] for alert in server.model.alerts()] == [2]


def test_the_page_shows_a_state_of_a_newer_worker_as_unknown() -> None:
    """Its levels come from a source that this version does not know."""
    server: Any = Server()
    messages = []
    for cluster, authority in (("newer", "log-v2"), ("known", "kraft")):
        _, key, value = message_of(state_of(cluster, authority=authority))
        messages.append(OnTopic(BUS.topic(STATE), value, key))
    apply(_Outputs(server, BUS), *messages)
    rows = {row["cluster"]: row for row in server.model.summaries()}
    assert rows["known"]["unknown_reason"] is None
    assert (rows["newer"]["health"], rows["newer"]["state"]) == ("unknown", "unknown")
    assert "log-v2" in rows["newer"]["unknown_reason"]


def test_a_state_of_which_no_row_follows_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page shows the one before, and its clock continues."""
    server: Any = Server()
    feed = _Outputs(server, BUS)
    _, key, value = message_of(state_of())
    apply(feed, OnTopic(BUS.topic(STATE), value, key))

    def fail(_: object) -> None:
        raise ValueError("a fault")

    with monkeypatch.context() as broken:
        broken.setattr("featurewatch.web.model.summary", fail)
        for cluster in ("a-cluster", "b-cluster"):
            _, key, value = message_of(state_of(cluster, revision=2))
            message: Any = OnTopic(BUS.topic(STATE), value, key)
            feed.apply([message])
    server.model.tick(NOW_MS + 3_600_000)
    (row,) = server.model.summaries()
    assert (row["cluster"], row["revision"]) == ("a-cluster", 1)


def test_lines_about_messages_are_limited(caplog: pytest.LogCaptureFixture) -> None:
    """Ten of a kind at once, then one a minute with the number of the others."""
    clock = SimpleNamespace(now_s=0.0)
    log = LimitedLog(logging.getLogger("featurewatch.test"), lambda: clock.now_s)
    for kind in ("one", "other"):
        for number in range(1_000):
            log.note(kind, "%s %d", kind, number)
    assert len(caplog.records) == 20
    clock.now_s = 61.0
    log.note("one", "%s", "again")
    assert caplog.records[-1].getMessage() == "again (and 990 more since the last such line)"
