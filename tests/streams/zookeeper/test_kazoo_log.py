"""Kazoo's log lines become a line that says what to do."""

import logging

import pytest

from featurewatch.streams.zookeeper.kazoo_log import KazooLogHandler
from featurewatch.streams.zookeeper.settings import ZookeeperSettings


def reasons() -> tuple[KazooLogHandler, logging.Logger]:
    """The collector, and a logger that it listens to."""
    collector = KazooLogHandler(ZookeeperSettings("zk:2181/kafka"))
    logger = logging.Logger("test")
    logger.addHandler(collector)
    return collector, logger


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Connection dropped: socket connection error: Connection refused", "nobody listens there"),
        ("Cannot resolve nowhere: not known", "Cannot resolve nowhere: not known: is the name"),
        (
            "Connection dropped: socket connection error: a:1 does not speak TLS (X): check it",
            "cannot be used: a:1 does not speak TLS (X): check it",
        ),
        ("Connection dropped: socket connection broken", "has it lost its quorum"),
        ("AUTH_FAILED closing: no", "the login is refused"),
        ("Connection dropped: weather", "cannot be used: weather"),
    ],
)
def test_a_warning_becomes_a_line(text, reason):
    """Where, what, and what to do, in one line."""
    collector, logger = reasons()
    assert collector.reason == "connecting to ZooKeeper at zk:2181/kafka"
    logger.warning(text)
    assert collector.reason.startswith("ZooKeeper at zk:2181/kafka cannot be used: ")
    assert reason in collector.reason
    logger.warning("Transition to CONNECTING")
    assert reason in collector.reason


def test_an_exception_in_the_connection_names_itself():
    """The reason is the error that ended the thread, in one short line."""
    collector, logger = reasons()
    try:
        raise ValueError("many\nlines " * 100)
    except ValueError:
        logger.exception("Unhandled exception in connection loop")
    assert "ValueError: many lines" in collector.reason
    assert "\n" not in collector.reason
    assert len(collector.reason) < 300


def test_a_refused_login_is_not_covered_up():
    """The server answers that it wants a login and then closes: the answer is the reason."""
    collector, logger = reasons()
    collector.login_wanted()
    logger.warning("Connection dropped: socket connection broken")
    assert "no session without a login" in collector.reason
    logger.warning("Connection dropped: socket connection error: Connection refused")
    assert "nobody listens there" in collector.reason
