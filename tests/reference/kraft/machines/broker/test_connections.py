"""Versions of requests by level, and the connections of a broker at a change of the level."""

from typing import Final

import pytest

from featurewatch.controller.kraft import release_of
from featurewatch.reference.kraft.machines.broker.api_versions import (
    MAX_APIS,
    finalized_features,
    software_versions,
    usable,
    versions_at,
)
from featurewatch.reference.kraft.machines.broker.connections import (
    RETRY_MS,
    AskPeer,
    ClientConnected,
    ClientGone,
    CloseClient,
    Connections,
    LevelPublished,
    PeerDisconnected,
    PeersPublished,
    PeerVersions,
    RetryPeers,
)
from featurewatch.reference.kraft.machines.broker.settings import BrokerSettings
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.metadata.levels import level_rules
from featurewatch.streams.types import SupportedRange

NOW_MS: Final = 1_000_000
PEERS: Final = PeersPublished(frozenset({2, 3}))
ALL: Final = dict.fromkeys(("Fetch", "Metadata", "ControllerRegistration"), (0, 32767))


def _connections(form: Form, level: int = 8) -> Connections:
    connections = Connections(BrokerSettings(1, "c", "i" * 22, (), form=form))
    connections.receive(LevelPublished(level), NOW_MS)
    return connections


def _negotiated(form: Form, level: int = 8) -> Connections:
    connections = _connections(form, level)
    for asked in connections.receive(PEERS, NOW_MS):
        assert isinstance(asked, AskPeer)
        connections.receive(PeerVersions(asked.number, ALL), NOW_MS)
    return connections


@pytest.mark.form("document")
def test_a_new_level_makes_a_broker_renegotiate() -> None:
    """It asks every other broker again; until one has answered, no request may be sent to it, and
    the versions of the new level are used then (M-48)."""
    connections = _negotiated(Form.KIP_778)
    assert connections.usable_with(2)["Fetch"] == SupportedRange(4, 13)
    effects = connections.receive(LevelPublished(10), NOW_MS)
    asked = [effect for effect in effects if isinstance(effect, AskPeer)]
    assert [it.broker_id for it in asked] == [2, 3]
    assert connections.usable_with(2) == {}
    connections.receive(PeerVersions(asked[0].number, ALL), NOW_MS)
    assert connections.usable_with(2)["Fetch"] == SupportedRange(4, 15)
    assert connections.usable_with(3) == {}
    assert connections.receive(LevelPublished(10), NOW_MS) == []


@pytest.mark.form("document")
def test_a_new_level_closes_the_connections_of_clients() -> None:
    """Of all that are open, once: a client asks for versions on a new connection only. One that
    connects afterwards stays (M-50)."""
    connections = _connections(Form.KIP_778)
    for connection_id in (5, 6, 7):
        connections.receive(ClientConnected(connection_id), NOW_MS)
    connections.receive(ClientGone(6), NOW_MS)
    assert connections.receive(LevelPublished(9), NOW_MS) == [CloseClient(5), CloseClient(7)]
    assert connections.clients == 0
    connections.receive(ClientConnected(8), NOW_MS)
    assert connections.receive(LevelPublished(9), NOW_MS) == []
    assert connections.receive(LevelPublished(8), NOW_MS) == [CloseClient(8)]


@pytest.mark.form("released")
def test_a_released_broker_keeps_its_connections() -> None:
    """Clients stay connected, and versions follow the level without another answer (M-48 as
    released, M-50 as released)."""
    connections = _negotiated(Form.RELEASED)
    connections.receive(ClientConnected(5), NOW_MS)
    assert connections.receive(LevelPublished(10), NOW_MS) == []
    assert connections.usable_with(2)["Fetch"] == SupportedRange(4, 15)
    assert connections.clients == 1


@pytest.mark.parametrize("form", Form)
def test_the_first_level_closes_nothing(form: Form) -> None:
    """Before it nothing is offered."""
    connections = Connections(BrokerSettings(1, "c", "i" * 22, (), form=form))
    connections.receive(ClientConnected(1), NOW_MS)
    assert connections.offered == {}
    assert connections.receive(LevelPublished(8), NOW_MS) == []
    assert connections.offered["Fetch"] == SupportedRange(4, 13)


def test_a_request_is_held_back_until_its_record_can_be_persisted() -> None:
    """An RPC that comes with a type of records is offered from the level on that has the type, and
    not used with a peer before (M-49)."""
    software = software_versions("4.4")
    of_records = {
        "ControllerRegistration": "REGISTER_CONTROLLER_RECORD",
        "UnregisterController": "UNREGISTER_CONTROLLER_RECORD",
    }
    software = dict(software) | {
        name: SupportedRange(0, 0)
        for name in ("AlterUserScramCredentials", "CreateDelegationToken", "AssignReplicasToDirs")
    }
    of_records |= {
        "AlterUserScramCredentials": "USER_SCRAM_CREDENTIAL_RECORD",
        "CreateDelegationToken": "DELEGATION_TOKEN_RECORD",
    }
    for name, record_type in of_records.items():
        since = level_rules()[record_type].since
        assert name in versions_at(software, since)
        assert name not in versions_at(software, since - 1)
        assert name not in usable(versions_at(software, since - 1), {name: (0, 9)})
    directories = level_rules()["REGISTER_BROKER_RECORD"].fields["logDirs"].since
    assert "AssignReplicasToDirs" in versions_at(software, directories)
    assert "AssignReplicasToDirs" not in versions_at(software, directories - 1)


def test_the_versions_of_fetch_are_those_of_the_level() -> None:
    """Up to what the software has (``MetadataVersion.fetchRequestVersion``)."""
    newest = release_of("4.4").levels[-1].level
    software = software_versions("4.4")
    expected = {1: 12, 2: 13, 8: 13, 9: 14, 10: 15, 19: 16, 21: 17, 27: 18, newest: 18}
    assert {level: versions_at(software, level)["Fetch"].maximum for level in expected} == expected
    old = software_versions("3.6")
    assert versions_at(old, newest)["Fetch"] == SupportedRange(0, 15)
    assert versions_at(software, 5)["Metadata"] == software["Metadata"]
    assert "UpdateMetadata" in old
    assert "UpdateMetadata" not in software


def test_an_old_answer_of_a_peer_does_not_count() -> None:
    """It may be from before the peer knew the level; nor do answers that nobody waits for."""
    connections = _connections(Form.KIP_778)
    first, _ = connections.receive(PEERS, NOW_MS)
    assert isinstance(first, AskPeer)
    connections.receive(LevelPublished(10), NOW_MS)
    connections.receive(PeerVersions(first.number, ALL), NOW_MS)
    connections.receive(PeerVersions(99, ALL), NOW_MS)
    assert connections.usable_with(2) == {}


def test_a_peer_that_disconnects_or_fails_is_asked_again() -> None:
    """At once when it has closed the connection, after a while without an answer; one that is not
    registered any more is forgotten."""
    connections = _negotiated(Form.KIP_778)
    (asked,) = connections.receive(PeerDisconnected(2), NOW_MS)
    assert isinstance(asked, AskPeer)
    connections.receive(PeerVersions(asked.number, None), NOW_MS)
    assert connections.receive(RetryPeers(), NOW_MS + RETRY_MS - 1) == []
    (again,) = connections.receive(RetryPeers(), NOW_MS + RETRY_MS)
    assert isinstance(again, AskPeer)
    assert again.broker_id == 2
    connections.receive(PeersPublished(frozenset({3})), NOW_MS)
    connections.receive(PeerVersions(again.number, ALL), NOW_MS)
    assert connections.usable_with(2) == {}
    assert connections.receive(PeerDisconnected(2), NOW_MS) == []
    assert connections.usable_with(3) != {}


@pytest.mark.parametrize(
    "versions",
    [
        {"Fetch": (-1, 13)},
        {"Fetch": (9, 3)},
        {"Fetch": (30, 40)},
        {"Nonsense": (0, 1)},
        {},
        {f"Api{number}": (0, 1) for number in range(MAX_APIS + 1)},
    ],
)
def test_a_hostile_answer_of_a_peer_enables_nothing(versions: dict[str, tuple[int, int]]) -> None:
    """Ranges that are not valid, disjoint or of unknown requests, and too many of them."""
    connections = _connections(Form.KIP_778)
    first, _ = connections.receive(PEERS, NOW_MS)
    assert isinstance(first, AskPeer)
    connections.receive(PeerVersions(first.number, versions), NOW_MS)
    assert connections.usable_with(2) == {}


@pytest.mark.form("document")
def test_finalized_features_of_the_document_have_no_minimum_in_version_4() -> None:
    """Version 3 alone has one (M-10)."""
    levels = {"metadata.version": 8, "group.version": 1}
    assert finalized_features(levels, 2) == []
    assert finalized_features(levels, 3)[1] == {
        "name": "metadata.version",
        "max_version_level": 8,
        "min_version_level": 8,
    }
    assert finalized_features(levels, 4) == [
        {"name": "group.version", "max_version_level": 1},
        {"name": "metadata.version", "max_version_level": 8},
    ]
