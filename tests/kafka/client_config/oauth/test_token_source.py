"""One source of tokens for threads and event loops: shared, renewed, and recovering."""

import asyncio
import logging
import threading
from collections.abc import Callable

import pytest

from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.oauth.settings import (
    FetchLimits,
    OauthLogin,
    TokenFile,
    TokenOrigin,
)
from featurewatch.kafka.client_config.oauth.token_source import TokenSource, token_source
from tests.oidc import jwt

LOGIN = OauthLogin(TokenFile("/token"), limits=FetchLimits(1, 1, 0.1, 10))


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


class Endpoint:
    """Gives tokens of 100 s while it is not ``broken``, and counts."""

    def __init__(self, clock: Time) -> None:
        self.broken: TokenError | None = None
        self.count = 0
        self.until = threading.Event()
        self.until.set()
        self._clock = clock

    def fetch(self, _: TokenOrigin, __: FetchLimits) -> str:
        """A token, or the error."""
        self.until.wait(10)
        self.count += 1
        if self.broken is not None:
            raise self.broken
        return jwt({"sub": "s", "exp": self._clock.now_s + 100, "jti": self.count})


def made() -> tuple[TokenSource, Endpoint, Time]:
    """A source, its endpoint and its clock."""
    clock = Time()
    endpoint = Endpoint(clock)
    source = TokenSource(
        LOGIN,
        fetch=endpoint.fetch,
        clock=clock,
        monotonic=clock,
        chance=lambda: 0.0,
        pause=clock.forward,
    )
    return source, endpoint, clock


def test_a_token_is_fetched_once_and_again_at_its_renewal() -> None:
    """At four fifths of its lifetime."""
    source, endpoint, clock = made()
    first = source.token_blocking(10)
    clock.forward(79)
    assert source.token_blocking(10) is first
    clock.forward(1)
    second = source.token_blocking(10)
    assert (endpoint.count, second.expires_s - first.expires_s) == (2, 80)
    assert asyncio.run(source.token(10)) is second


async def test_threads_and_event_loops_wait_for_one_fetch() -> None:
    """Whoever is cancelled takes it from nobody."""
    source, endpoint, _ = made()
    endpoint.until.clear()
    waiting = [asyncio.ensure_future(source.token(10)) for _ in range(20)]
    waiting += [
        asyncio.ensure_future(asyncio.to_thread(source.token_blocking, 10)) for _ in range(3)
    ]
    cancelled = waiting.pop()
    await asyncio.sleep(0)
    waiting[0].cancel()
    endpoint.until.set()
    tokens = await asyncio.gather(*waiting[1:], cancelled)
    assert (len(set(map(id, tokens))), endpoint.count) == (1, 1)


async def test_a_slow_endpoint_is_a_line_and_its_token_is_there_later() -> None:
    """Who waits gives up in time; the fetch continues."""
    source, endpoint, _ = made()
    endpoint.until.clear()
    with pytest.raises(TokenError, match=r"no token came from /token within 0.05 s"):
        await source.token(0.05)
    with pytest.raises(TokenError, match=r"no token came from /token within 0.05 s"):
        await asyncio.to_thread(source.token_blocking, 0.05)
    endpoint.until.set()
    await source.token(10)
    assert endpoint.count == 1


def test_what_fails_for_a_moment_is_tried_again_in_one_fetch() -> None:
    """After pauses that double."""
    source, endpoint, clock = made()
    fails, begin_s = [TokenError("down", is_transient=True)] * 3, clock.now_s
    fetch: Callable[..., str] = endpoint.fetch

    def failing(*arguments: object) -> str:
        endpoint.broken = fails.pop() if fails else None
        return fetch(*arguments)

    source._fetch = failing
    source.token_blocking(10)
    # Pauses of 0.1, 0.2 and 0.4 s.
    assert (endpoint.count, round(clock.now_s - begin_s, 3)) == (4, 0.7)


def test_a_failure_is_repeated_for_a_while_and_then_tried_again() -> None:
    """The endpoint is not asked by each connection."""
    source, endpoint, clock = made()
    endpoint.broken = TokenError("refused")
    for _ in range(3):
        with pytest.raises(TokenError, match="refused"):
            source.token_blocking(10)
    assert endpoint.count == 1
    endpoint.broken = None
    clock.forward(10)
    assert source.token_blocking(10).subject == "s"


def test_the_old_token_stays_while_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    """A failed renewal is logged once, and so is its end."""
    caplog.set_level(logging.INFO, "featurewatch.oauth")
    source, endpoint, clock = made()
    first = source.token_blocking(10)
    clock.forward(80)
    endpoint.broken = TokenError("refused")
    assert source.token_blocking(10) is first
    clock.forward(10)
    assert source.token_blocking(10) is first
    assert endpoint.count == 3
    assert [record.getMessage() for record in caplog.records] == [
        "the token is not renewed, and the old one stays: refused"
    ]
    clock.forward(10)
    with pytest.raises(TokenError, match="refused"):
        source.token_blocking(10)
    endpoint.broken = None
    clock.forward(10)
    assert source.token_blocking(10) is not first
    assert caplog.records[-1].getMessage() == "tokens come from /token again"


def test_a_refused_token_is_replaced_but_not_at_once() -> None:
    """Another token comes after a pause."""
    source, endpoint, clock = made()
    first = source.token_blocking(10)
    source.discard(first.text)
    assert source.token_blocking(10) is first
    clock.forward(10)
    assert source.token_blocking(10) is not first
    source.discard(first.text)
    assert endpoint.count == 2


def test_logins_that_are_equal_share_a_source() -> None:
    """One source for each login in a process."""
    assert token_source(LOGIN) is token_source(OauthLogin(TokenFile("/token"), limits=LOGIN.limits))
    assert token_source(LOGIN) is not token_source(OauthLogin(TokenFile("/other")))
