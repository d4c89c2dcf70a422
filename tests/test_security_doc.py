"""The table of limits in docs/explanation/security.md, beside the code that has them."""

import re

import pytest

from featurewatch.agents import consumer_thread, time_share
from featurewatch.cli.config.settings import ClusterSection, WebSection
from featurewatch.cli.runtime import resync
from featurewatch.cli.runtime.supervisor import DEFAULT_BACKOFF
from featurewatch.common.http import access, listener, openid, passwords, rate_limits
from featurewatch.kafka import limits, sasl
from featurewatch.kafka.address import Address
from featurewatch.kafka.client_config.oauth import assertion, fetch, token
from featurewatch.monitor import alert_budget
from featurewatch.monitor.rules import rule
from featurewatch.monitor.snapshot import MAX_INCOMPATIBLE
from featurewatch.streams import events, health, node_addresses, types
from featurewatch.streams.apiversions import node_features
from featurewatch.streams.apiversions.settings import ApiVersionsSettings
from featurewatch.streams.bus.settings import MAX_EVENT_BYTES
from featurewatch.streams.kraft import commits, snapshot_spool, source
from featurewatch.streams.kraft.records import batch, decoder
from featurewatch.streams.zookeeper import bounded_socket, session
from featurewatch.streams.zookeeper.settings import ZookeeperSettings
from featurewatch.streams.zookeeper.watcher import changes
from featurewatch.tables.image import limits as image_limits
from featurewatch.web import live, login, server
from featurewatch.web.openid import provider
from tests.paths import ROOT

ROWS = {
    cells[0]: cells[1:]
    for line in (ROOT / "docs" / "explanation" / "security.md").read_text().splitlines()
    if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 4
}


def size(value: int) -> str:
    """Bytes as the table has them."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if value >= 1 << shift:
            return f"{value / (1 << shift):.3g} {unit}"
    return f"{value:,} bytes"


def response(api_key: int) -> str:
    """The limit of a response."""
    limit = limits.response_limit(api_key)
    return f"{size(limit.max_bytes)}, {limit.max_items:,} items"


LIMITS = {
    "response of a Kafka node before the login is over": size(limits.LOGIN_FRAME_BYTES),
    "response to ApiVersions": response(18),
    "response to Fetch": size(limits.response_limit(1).max_bytes),
    "response to FetchSnapshot": size(limits.response_limit(59).max_bytes),
    "message of a SASL login": size(limits.response_limit(36).max_bytes),
    "any other response": response(60),
    "string in a response": f"{limits.MAX_STRING_BYTES:,} bytes",
    "time for a response, also one that comes byte by byte": (
        f"{ApiVersionsSettings((Address('h', 1),)).timeout_s:g} s"
    ),
    "answer of a token endpoint, token file, or output of a token command": size(
        fetch.MAX_ANSWER_BYTES
    ),
    "token": f"{token.MAX_TOKEN_CHARS:,} characters",
    "assertion, its key, or its template": size(assertion._MAX_BYTES),
    "iterations of SCRAM that a node requires": f"4,096 to {sasl.MAX_ITERATIONS:,}",
    "addresses of a cluster's nodes that are remembered beside the configured ones": (
        f"{node_addresses.MAX_NODES} nodes of each role, "
        f"with {node_addresses.MAX_LISTENERS} listeners"
    ),
    "cluster id": f"{types.MAX_CLUSTER_ID_CHARS} printable characters",
    "features of a node": f"{node_features.MAX_FEATURES:,}",
    "name of a feature": f"{node_features.MAX_NAME_CHARS} printable characters",
    "record batch of the metadata log": size(batch.MAX_BATCH_BYTES),
    "metadata record": size(decoder.MAX_RECORD_BYTES),
    "records of one commit, as JSON": size(commits.MAX_COMMIT_BYTES),
    "dead letters of one record batch": str(commits.MAX_BATCH_DEAD_LETTERS),
    "bytes in a dead letter": size(events.MAX_PAYLOAD_BYTES),
    "snapshot of the metadata log": size(snapshot_spool.DEFAULT_MAX_SNAPSHOT_BYTES),
    "free room in the temporary directory (`TMPDIR`) for a snapshot": (
        f"its size and {size(snapshot_spool.RESERVED_BYTES)}"
    ),
    "frame of a ZooKeeper server": size(bounded_socket.DEFAULT_MAX_FRAME_BYTES),
    "time for a frame, and for the answer to a read": (
        f"{ZookeeperSettings('h').answer_timeout_ms / 1000:g} s"
    ),
    "session timeout that a ZooKeeper server grants": f"{bounded_socket.MAX_SESSION_MS // 1000} s",
    "children of a znode": f"{session.MAX_CHILDREN:,}, with names that ZooKeeper allows",
    "znode": size(changes.MAX_ZNODE_BYTES),
    "nodes of one cluster": (
        f"{image_limits.MAX_NODES:,}, with {image_limits.MAX_CLASSES} different sets of ranges"
    ),
    "features of one cluster": (
        f"{image_limits.MAX_FEATURES} finalized ones, and {image_limits.MAX_FEATURES} of each node"
    ),
    "alerts of one rule about one node": str(rule.MAX_FINDINGS),
    "alerts about nodes, features and znodes of one cluster": str(rule.MAX_ALERTS),
    "of them, alerts that begin or change": (
        f"{alert_budget.CAPACITY:,} at once, then one a second"
    ),
    "time of a worker for one cluster, beyond twice what messages of their size take": (
        f"{time_share.CAPACITY_S:g} s at once, and a fifth of the time"
    ),
    "messages that a worker reads ahead": size(consumer_thread.MAX_QUEUED_BYTES),
    "incompatible nodes in a snapshot, one for each level": f"{MAX_INCOMPATIBLE:,}",
    "event": size(MAX_EVENT_BYTES),
    "requests of one HTTP client": (
        f"{WebSection().max_requests_per_s:g} a second, and those of {access.BURST_S:g} s at once"
    ),
    "HTTP clients that are counted": (
        f"{rate_limits.MAX_CLIENTS:,} addresses, or networks of 64 bits in IPv6"
    ),
    "connections of one HTTP client": (
        f"{listener.MAX_CONNECTIONS_OF_CLIENT} beside its event streams; of a proxy, as many as of "
        "all"
    ),
    "connections of all HTTP clients": (
        f"{health._MAX_CONNECTIONS} of health and metrics; of the page "
        f"{server._OTHER_CONNECTIONS} beside the event streams"
    ),
    "event streams of all clients": str(WebSection().max_streams),
    "event streams of one client": str(WebSection().max_streams_per_client),
    "time for a request, from the connection or the request before": f"{listener.IDLE_S:g} s",
    "time for a TLS handshake": f"{listener.HANDSHAKE_S:g} s",
    "time in which a client takes nothing of a response": (
        f"{listener.WRITE_S:g} s; of an event stream {live.WRITE_S:g} s"
    ),
    "address of a request, and each of its headers": (
        f"{listener.MAX_LINE_BYTES:,} bytes, {listener.MAX_HEADERS} headers"
    ),
    "login sent by a browser": f"{login.MAX_FORM_BYTES:,} bytes in {login.FORM_S:g} s",
    "answer of an OpenID provider": (
        f"{size(provider.MAX_ANSWER_BYTES)} in {provider.TIMEOUT_S:g} s"
    ),
    "time to sign in at an OpenID provider": f"{openid.FLOW_S} s",
    "wrong passwords of one HTTP client": (
        f"{access.MAX_FAILED_LOGINS}, then one in {access._FAILED_LOGIN_S:g} s; "
        f"{access.MAX_CHECKS_OF_CLIENT} checked at a time"
    ),
    "passwords that are checked or wait for it": str(passwords.MAX_WAITING),
    "resync request": size(resync.MAX_REQUEST_BYTES),
    "time between two republications of a source": f"{resync.MIN_INTERVAL_S:g} s",
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_documented_limit_is_the_code_s(name: str) -> None:
    """Each default is what the code has."""
    assert ROWS[name][0] == LIMITS[name]


def test_the_settings_of_the_table_exist() -> None:
    """Each ``clusters.`` setting in it is one, and each limit that is one is in it."""
    named = {name for row in ROWS.values() for name in re.findall(r"`clusters\.(\w+)`", row[1])}
    assert named == {name for name in ClusterSection.model_fields if name.startswith("max_")}


def test_the_restarts_are_as_documented() -> None:
    """How soon a source that failed is started again, and a refused snapshot fetched."""
    text = " ".join((ROOT / "docs" / "explanation" / "security.md").read_text().split())
    assert f"started again after {DEFAULT_BACKOFF.first_s:g} s, then" in text
    assert f"up to {DEFAULT_BACKOFF.max_s:g} s." in text
    assert f"every {source.REFUSED_RETRY_MS // 1000} s" in text
