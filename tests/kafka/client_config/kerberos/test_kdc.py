"""Tickets of a real KDC, logins at an acceptor of the same library, and what errors say."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.kafka.client_config.kerberos.exchange import gssapi_exchange
from featurewatch.kafka.client_config.kerberos.gss import acquire, initiate
from featurewatch.kafka.client_config.kerberos.settings import QOPS, KerberosLogin, TicketError
from featurewatch.kafka.client_config.kerberos.ticket_files import keytab_principals, renew_cache
from featurewatch.kafka.client_config.kerberos.ticket_source import TicketSource
from featurewatch.kafka.sasl import SaslError
from tests.kerberos import CLIENT, KAFKA, REALM, Kdc, client_config, program, running_kdc

gssapi = pytest.importorskip("gssapi", reason="the extra kerberos is not installed")

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A KDC, which starts in a tenth of a second."""
    with running_kdc(tmp_path_factory.mktemp("kdc")) as running_one:
        yield running_one


@pytest.fixture(autouse=True)
def _client(kdc: Kdc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This process is a client of the realm, without a ticket."""
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.config))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'default'}")


def login(kdc: Kdc, **changes: Any) -> KerberosLogin:
    """The client's login by its keytab."""
    given = {"principal": f"{CLIENT}@{REALM}", "keytab": str(kdc.keytab(CLIENT))}
    return KerberosLogin("kafka", **{**given, **changes})


class Acceptor:
    """The server's side of RFC 4752 with the key of a principal, as Java's SASL has it."""

    def __init__(self, kdc: Kdc, offer: bytes = b"\x01\x00\x00\x00") -> None:
        store = {"keytab": str(kdc.keytab(KAFKA))}
        self._context = gssapi.SecurityContext(
            creds=gssapi.Credentials(usage="accept", store=store), usage="accept"
        )
        self._offer = offer
        self._has_offered = False
        self.client = ""
        self.reply = b""

    def respond(self, message: bytes) -> bytes:
        """The response to a message of the client."""
        if not self._context.complete:
            return self._context.step(message) or b""
        self.client = str(self._context.initiator_name)
        if not self._has_offered:
            self._has_offered = True
            assert message == b""
            return bytes(self._context.wrap(self._offer, False).message)
        self.reply = self._context.unwrap(message).message
        return b""


def complete(acceptor: Acceptor, used: KerberosLogin) -> int:
    """Logs in at an acceptor; how many messages the client sent."""
    context, token = initiate(acquire(used, f"test-{time.monotonic_ns()}"), used, HOST)
    exchange = gssapi_exchange(context, token, used.qops)
    message, count = next(exchange), 1
    while True:
        try:
            message = exchange.send(acceptor.respond(message))
        except StopIteration:
            return count
        count += 1


@pytest.mark.parametrize(
    ("offer", "qops", "reply"),
    [
        (b"\x01\0\0\0", ("auth",), b"\x01\0\0\0"),
        (b"\x07\x01\0\0", ("auth",), b"\x01\0\0\0"),
        (b"\x07\x01\0\0", ("auth-conf", "auth"), b"\x04\x01\0\0"),
        (b"\x03\x01\0\0", ("auth-conf", "auth-int"), b"\x02\x01\0\0"),
        (b"\x01\0\0\0", QOPS, b"\x01\0\0\0"),
    ],
)
def test_the_login_agrees_on_the_preferred_protection(
    kdc: Kdc, offer: bytes, qops: tuple[str, ...], reply: bytes
) -> None:
    """Three messages; the acceptor knows the client by its ticket, and not by a name."""
    acceptor = Acceptor(kdc, offer)
    assert complete(acceptor, login(kdc, qops=qops)) == 3
    assert acceptor.client == f"{CLIENT}@{REALM}"
    assert acceptor.reply == reply


@pytest.mark.parametrize(
    ("offer", "line"),
    [
        (b"\x04\x01\0\0", "offers the protection auth-conf and not auth: set javax.security.sasl"),
        (b"\0\0\0\0", "offers the protection none and not auth"),
        (b"\x01", "is not of four bytes"),
        (b"", "is not of four bytes"),
    ],
)
def test_an_offer_that_does_not_fit_is_one_line(kdc: Kdc, offer: bytes, line: str) -> None:
    """With the property to set."""
    with pytest.raises(SaslError, match=line):
        complete(Acceptor(kdc, offer), login(kdc))


@pytest.mark.parametrize("answer", [b"", b"\0" * 100, b"\x60\x82", bytes(range(256)) * 20])
def test_a_server_that_does_not_prove_itself_is_refused(kdc: Kdc, answer: bytes) -> None:
    """Whatever it sends: nothing follows that it could use."""
    used = login(kdc)
    context, token = initiate(acquire(used, f"test-{time.monotonic_ns()}"), used, HOST)
    exchange = gssapi_exchange(context, token, used.qops)
    next(exchange)
    with pytest.raises(SaslError, match=r"^the server"):
        for _ in range(20):
            exchange.send(answer)


def test_an_offer_that_is_changed_on_its_way_is_refused(kdc: Kdc) -> None:
    """It is protected by the key of the session."""
    acceptor, used = Acceptor(kdc), login(kdc)
    context, token = initiate(acquire(used, f"test-{time.monotonic_ns()}"), used, HOST)
    exchange = gssapi_exchange(context, token, used.qops)
    empty = exchange.send(acceptor.respond(next(exchange)))
    offer = acceptor.respond(empty)
    with pytest.raises(SaslError, match="the server's offer cannot be read"):
        exchange.send(offer[:-1] + bytes([offer[-1] ^ 1]))


def test_a_ticket_ends_and_the_keytab_gives_another(kdc: Kdc) -> None:
    """Tickets of two seconds, used for five: each login has a valid one."""
    kdc.administer(f'modprinc -maxlife "2 seconds" {CLIENT}')
    try:
        source = TicketSource(login(kdc))
        end_s, ends = time.monotonic() + 5, set()
        while time.monotonic() < end_s:
            source.exchange_blocking(HOST, 10)
            assert source._ticket is not None
            ends.add(source._ticket.expires_s)
            time.sleep(0.05)
        assert 3 <= len(ends) <= 5
    finally:
        kdc.administer(f'modprinc -maxlife "10 hours" {CLIENT}')


def test_a_ticket_cache_is_used_and_renewed_by_kinit(kdc: Kdc, tmp_path: Path) -> None:
    """The default one, and one that is named; its principal needs no name."""
    default, other = tmp_path / "default", tmp_path / "other"
    for cache in (default, other):
        keytab = ["-k", "-t", str(kdc.keytab(CLIENT)), CLIENT]
        kdc.run("kinit", "-c", str(cache), "-l", "60", "-r", "3600", *keytab)
    for name in ("", str(other), f"FILE:{other}"):
        used = login(kdc, principal="", keytab=None, cache=name, kinit=program("kinit"))
        ticket = acquire(used, "unused")
        assert ticket.principal == f"{CLIENT}@{REALM}"
        acceptor = Acceptor(kdc)
        complete(acceptor, used)
        assert acceptor.client == ticket.principal
    before = other.stat().st_mtime_ns
    libraries = str(Path(program("kinit")).parents[1] / "lib/x86_64-linux-gnu")
    with pytest.MonkeyPatch.context() as patch:
        if os.path.isdir(libraries):
            patch.setenv("LD_LIBRARY_PATH", libraries)
        renew_cache(used)
    assert other.stat().st_mtime_ns > before


def test_a_cache_without_a_ticket_gives_way_to_the_keytab(kdc: Kdc) -> None:
    """As in Java, where both are named."""
    assert acquire(login(kdc, cache="/nowhere/cache"), "both").principal == f"{CLIENT}@{REALM}"


def test_what_is_missing_is_one_line_with_what_to_do(kdc: Kdc, tmp_path: Path) -> None:
    """Keytabs, principals, caches and services that are not there."""
    text = tmp_path / "text.keytab"
    text.write_text("secret")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"keytab": "/none.keytab"}, r"the keytab /none.keytab cannot be read: No such file"),
        ({"keytab": str(tmp_path)}, r"cannot be read: Is a directory"),
        ({"keytab": str(text)}, r"is not a keytab: export the principal's key again"),
        (
            {"keytab": str(kdc.keytab(KAFKA))},
            r"has no key of featurewatch@TEST.EXAMPLE but of kafka/127.0.0.1@TEST.EXAMPLE: ",
        ),
        ({"principal": f"nobody@{REALM}"}, r"has no key of nobody@TEST.EXAMPLE but of feat"),
        ({"principal": f"{CLIENT}@OTHER.EXAMPLE"}, r"has no key of featurewatch@OTHER.EXAMPLE but"),
        ({"keytab": None, "cache": "/none"}, r"from the ticket cache /none: No cred.*: run kinit"),
        ({"service": "bus"}, r"Server bus/127.0.0.1@TEST.EXAMPLE not found.*: compare sasl.kerb"),
    ]
    for changes, line in cases:
        service = changes.pop("service", "kafka")
        used = KerberosLogin(
            service,
            **{"principal": f"{CLIENT}@{REALM}", "keytab": str(kdc.keytab(CLIENT)), **changes},
        )
        with pytest.raises(TicketError, match=line) as raised:
            initiate(acquire(used, f"test-{time.monotonic_ns()}"), used, HOST)
        assert "secret" not in str(raised.value)
        assert "\n" not in str(raised.value)


def test_a_keytab_of_an_older_key(kdc: Kdc) -> None:
    """The key was changed after the keytab was written."""
    kdc.administer("addprinc -randkey changed")
    used = login(kdc, principal=f"changed@{REALM}", keytab=str(kdc.keytab("changed")))
    kdc.administer("cpw -randkey changed")
    with pytest.raises(TicketError, match=r"the key in the keytab is not the principal's"):
        acquire(used, "older")


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"realm": "OTHER.EXAMPLE"}, r"find KDC for realm.*: add the realm to krb5.conf, or corr"),
        ({"port": 1}, r"Cannot contact any KDC for realm 'TEST.EXAMPLE': is a KDC up"),
    ],
)
def test_a_configuration_that_does_not_fit(
    kdc: Kdc,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    line: str,
) -> None:
    """It is read again each time, so a corrected one needs no restart."""
    config = tmp_path / "krb5.conf"
    config.write_text(client_config(**{"port": kdc.port, **settings}))
    monkeypatch.setenv("KRB5_CONFIG", str(config))
    source = TicketSource(login(kdc, principal=CLIENT), pause_s=0.0)
    if "realm" in settings:
        keytab = kdc.directory / "other.keytab"
        kdc.run("ktutil", input_text=_entry("OTHER.EXAMPLE", keytab))
        source = TicketSource(login(kdc, principal=CLIENT, keytab=str(keytab)), pause_s=0.0)
    with pytest.raises(TicketError, match=line):
        source.exchange_blocking(HOST, 10)
    if "realm" not in settings:
        config.write_text(client_config(kdc.port))
        source.exchange_blocking(HOST, 10)


def _entry(realm: str, keytab: Path) -> str:
    """Lines for ktutil that write a key of the client in another realm."""
    kind = "aes256-cts-hmac-sha1-96"
    return f"addent -password -p {CLIENT}@{realm} -k 1 -e {kind}\npassword\nwkt {keytab}\nquit\n"


def test_clocks_that_differ(kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library follows the KDC's clock; where that is switched off, the line says what to do."""
    try:
        kdc.stop()
        kdc.start(ahead_s=600)
        complete_context = initiate(acquire(login(kdc), "ahead"), login(kdc), HOST)
        assert complete_context[1]
        config = tmp_path / "krb5.conf"
        config.write_text(client_config(kdc.port, kdc_timesync="0"))
        monkeypatch.setenv("KRB5_CONFIG", str(config))
        with pytest.raises(TicketError, match=r"lock skew too great.*: set the clocks of this"):
            acquire(login(kdc), "not-followed")
    finally:
        kdc.stop()
        kdc.start()


def test_a_kdc_that_recovers(kdc: Kdc) -> None:
    """Logins by a ticket continue while it is down; without one they fail at once."""
    source, other = TicketSource(login(kdc)), TicketSource(login(kdc), pause_s=0.0)
    source.exchange_blocking(HOST, 10)
    kdc.stop()
    try:
        source.exchange_blocking(HOST, 10)
        with pytest.raises(TicketError, match="Cannot contact any KDC"):
            other.exchange_blocking(HOST, 10)
    finally:
        kdc.start()
    other.exchange_blocking(HOST, 10)


def test_many_threads_log_in_at_once(kdc: Kdc) -> None:
    """The library is used by one thread at a time, and each gets its own message."""
    source, tokens = TicketSource(login(kdc)), set()

    def log_in() -> None:
        tokens.add(next(source.exchange_blocking(HOST, 10)))

    threads = [threading.Thread(target=log_in) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tokens) == 20


@pytest.mark.fuzz
@given(st.binary(max_size=300).map(lambda content: b"\x05\x02" + content))
def test_any_keytab_has_some_principals(content: bytes) -> None:
    """Whatever is in it, reading it ends."""
    assert all("@" in name for name in keytab_principals(content))
