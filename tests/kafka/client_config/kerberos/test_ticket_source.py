"""One source of tickets for threads and event loops: shared, renewed, and recovering."""

import asyncio
import logging
import threading

import pytest

from featurewatch.kafka.client_config.kerberos.gss import Context, Ticket
from featurewatch.kafka.client_config.kerberos.settings import (
    KerberosLogin,
    RenewalRule,
    TicketError,
)
from featurewatch.kafka.client_config.kerberos.ticket_source import (
    TicketSource,
    renewal_s,
    ticket_source,
)
from tests.waiting import eventually

LOGIN = KerberosLogin("kafka", "fw", "/keytab", renewal=RenewalRule(0.8, 0.0, 10.0))
LIFETIME_S = 100.0


class Time:
    """A clock that only `forward` moves."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        """The time, in seconds."""
        return self.now_s

    def forward(self, seconds: float) -> None:
        """Moves the time."""
        self.now_s += seconds


class Realm:
    """Gives tickets of `LIFETIME_S` while it is not ``broken``, and counts; the token is theirs."""

    def __init__(self) -> None:
        self.clock = Time()
        self.broken: TicketError | None = None
        self.no_service: TicketError | None = None
        self.count = 0
        self.renewed = 0
        self.end_s: float | None = None
        self.until = threading.Event()
        self.until.set()

    def acquire(self, _: KerberosLogin, __: str) -> Ticket:
        """A ticket, or the error."""
        self.until.wait(10)
        self.count += 1
        if self.broken is not None:
            raise self.broken
        end_s = self.end_s or self.clock.now_s + LIFETIME_S
        return Ticket(None, f"ticket {self.count}", end_s)

    def initiate(self, ticket: Ticket, _: KerberosLogin, host: str) -> tuple[Context, bytes]:
        """A context of which nothing but the first token is used."""
        if self.no_service is not None:
            raise self.no_service
        return object(), f"{ticket.principal} for {host}".encode()  # type: ignore[return-value]

    def renew_cache(self, _: KerberosLogin) -> None:
        """As ``kinit -R``."""
        self.renewed += 1
        self.end_s = self.clock.now_s + LIFETIME_S

    def source(self, login: KerberosLogin = LOGIN) -> TicketSource:
        """A source of its tickets."""
        return TicketSource(
            login,
            acquire=self.acquire,
            initiate=self.initiate,
            renew_cache=self.renew_cache,
            clock=self.clock,
            monotonic=self.clock,
            chance=lambda: 0.0,
        )


@pytest.fixture
def realm() -> Realm:
    """A realm that works."""
    return Realm()


def first(source: TicketSource, host: str = "h") -> bytes:
    """The first message of a login."""
    return next(source.exchange_blocking(host, 10))


def settled(realm: Realm, count: int, source: TicketSource) -> bool:
    """Whether the renewal is over after this many tickets."""
    return eventually(lambda: realm.count == count and not source._is_renewing)


def test_a_renewal_runs_beside_logins_by_the_old_ticket(realm: Realm) -> None:
    """Who asks does not wait for it; after it, the new ticket serves."""
    source = realm.source()
    assert first(source) == b"ticket 1 for h"
    realm.clock.forward(79)
    assert first(source, "i") == b"ticket 1 for i"
    assert realm.count == 1
    realm.clock.forward(2)
    realm.until.clear()
    assert first(source) == first(source) == b"ticket 1 for h"
    realm.until.set()
    assert settled(realm, 2, source)
    assert first(source) == b"ticket 2 for h"


async def test_the_old_ticket_serves_while_no_new_one_comes(
    realm: Realm, caplog: pytest.LogCaptureFixture
) -> None:
    """One line in the log; once it has ended the reason is raised; then it recovers."""
    source = realm.source()
    await source.exchange("h", 10)
    realm.broken = TicketError("the KDC is unreachable")
    with caplog.at_level(logging.INFO, "featurewatch.kerberos"):
        for attempt in (2, 3):
            realm.clock.forward(81 if attempt == 2 else 3)
            assert next(await source.exchange("h", 10)) == b"ticket 1 for h"
            assert settled(realm, attempt, source)
        assert [record.getMessage() for record in caplog.records] == [
            "the Kerberos ticket is not renewed, and the old one stays: the KDC is unreachable"
        ]
        realm.clock.forward(20)
        with pytest.raises(TicketError, match="the KDC is unreachable"):
            await source.exchange("h", 10)
        assert realm.count == 4
        with pytest.raises(TicketError, match="the KDC is unreachable"):
            await source.exchange("h", 10)
        assert realm.count == 4  # too soon after a failure
        realm.broken = None
        realm.clock.forward(3)
        assert next(await source.exchange("h", 10)) == b"ticket 5 for h"
        assert "again" in caplog.records[-1].getMessage()


async def test_a_kdc_that_does_not_answer_costs_no_more_than_the_timeout(realm: Realm) -> None:
    """Later requests are served, and those that are given up are not begun."""
    realm.until.clear()
    source = realm.source()
    requests = await asyncio.gather(
        *(source.exchange(f"h{number}", 0.05) for number in range(3)), return_exceptions=True
    )
    assert all("came within 0.05 s: is the KDC up" in str(error) for error in requests)
    with pytest.raises(TicketError, match=r"within 0\.05 s"):
        source.exchange_blocking("h", 0.05)
    realm.until.set()
    assert next(await source.exchange("h", 10)) == b"ticket 1 for h"


def test_a_server_without_a_principal_does_not_concern_others(realm: Realm) -> None:
    """But a KDC that no longer takes the ticket lets another be acquired."""
    source = realm.source()
    first(source)
    realm.clock.forward(15)
    realm.no_service = TicketError("unknown", concerns_host=True)
    with pytest.raises(TicketError, match="unknown"):
        first(source)
    realm.no_service = None
    assert first(source) == b"ticket 1 for h"
    assert realm.count == 1
    realm.no_service = TicketError("the ticket is not valid")
    with pytest.raises(TicketError, match="not valid"):
        first(source)
    realm.no_service = None
    first(source)
    assert settled(realm, 2, source)
    assert first(source) == b"ticket 2 for h"


def test_a_ticket_of_which_a_login_was_refused_is_replaced_once_in_a_while(realm: Realm) -> None:
    """Not with each of a thousand connections."""
    source = realm.source()
    for _ in range(3):
        first(source)
        source.discard()
    assert realm.count == 1
    realm.clock.forward(11)
    first(source)
    assert settled(realm, 2, source)


def test_a_ticket_cache_is_read_again_and_renewed_only_if_nothing_else_does(realm: Realm) -> None:
    """As k5start and sssd do; else by kinit."""
    source = realm.source(KerberosLogin("kafka", cache="", renewal=LOGIN.renewal))
    realm.end_s = realm.clock.now_s + LIFETIME_S
    first(source)
    realm.clock.forward(81)
    realm.end_s = realm.clock.now_s + LIFETIME_S
    first(source)
    assert settled(realm, 2, source)
    assert realm.renewed == 0
    realm.clock.forward(81)
    first(source)
    assert settled(realm, 4, source)
    assert realm.renewed == 1
    realm.clock.forward(50)
    assert first(source) == b"ticket 4 for h"


@pytest.mark.parametrize(
    ("rule", "chance", "expected_s"),
    [
        (RenewalRule(0.8, 0.0, 60), 0.0, 800),
        (RenewalRule(0.8, 0.05, 60), 0.5, 825),
        (RenewalRule(0.5, 0.0, 900), 0.0, 900),
        (RenewalRule(0.5, 0.0, 2000), 0.0, 500),
        (RenewalRule(1.0, 1.0, 0), 0.9, 1000),
    ],
)
def test_the_time_to_renew(rule: RenewalRule, chance: float, expected_s: float) -> None:
    """Of a ticket of 1000 s: a part of its lifetime, and not soon after the last if it lasts."""
    assert renewal_s(5_000.0, 6_000.0, rule, chance) == 5_000 + expected_s


def test_equal_logins_share_one_source() -> None:
    """All connections of a process have one ticket."""

    def other(name: str) -> KerberosLogin:
        return KerberosLogin("kafka", name, "/keytab")

    assert ticket_source(other("a")) is ticket_source(other("a"))
    assert ticket_source(other("a")) is not ticket_source(other("b"))
