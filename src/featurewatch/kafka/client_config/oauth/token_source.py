"""The tokens of one login, which all connections of the process share.

A shell: it owns the thread that fetches, the current token and the time of the next fetch. Nothing
runs while nobody asks: who asks after the time to renew gets the new token, or the old one while
that lasts and no new one comes.
"""

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from functools import lru_cache
from typing import Final

from featurewatch.common.text import error_line
from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.iam.settings import MskToken
from featurewatch.kafka.client_config.oauth.fetch import Fetch, fetch
from featurewatch.kafka.client_config.oauth.settings import OauthLogin
from featurewatch.kafka.client_config.oauth.token import Token, read_token, renewal_s

LOG: Final = logging.getLogger("featurewatch.oauth")

_RENEWAL_WAIT_S: Final = 1.0
"""How long who has a valid token waits for a newer one."""


class TokenSource:
    """Gives a valid token to threads and to event loops.

    ``clock`` gives seconds since 1970, ``monotonic`` those of a clock that does not go back,
    ``chance`` a random number of at least 0 and below 1; ``pause`` waits.
    """

    def __init__(
        self,
        login: OauthLogin,
        *,
        fetch: Fetch = fetch,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.login = login
        self._fetch = fetch
        self._clock = clock
        self._monotonic = monotonic
        self._chance = chance
        self._pause = pause
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._renew_s = 0.0
        """When to renew the token, in seconds since 1970."""
        self._pending: Future[Token] | None = None
        self._error: TokenError | None = None
        """Why the last fetch failed; None: it did not."""
        self._attempt_error: TokenError | None = None
        """Why the last attempt failed of a fetch that is not over."""
        self._fetched_s = float("-inf")
        self._retry_s = float("-inf")
        """Before this monotonic second nothing is fetched again after a failure."""

    async def token(self, timeout_s: float) -> Token:
        """A token that is valid now, fetched within this time if need be.

        Raises:
            TokenError: No token is valid. A fetch that is not over continues for the next call.
        """
        current, pending = self._ask()
        if pending is None:
            return _given(current)
        wait_s = timeout_s if current is None else min(timeout_s, _RENEWAL_WAIT_S)
        future = asyncio.wrap_future(pending)
        try:
            done, _ = await asyncio.wait((future,), timeout=wait_s)
            if done:
                return future.result()
        except TokenError:
            pass
        finally:
            future.cancel()  # the fetch continues
        return self._instead(current, wait_s)

    def token_blocking(self, timeout_s: float) -> Token:
        """As `token`, in a thread without an event loop."""
        current, pending = self._ask()
        if pending is None:
            return _given(current)
        wait_s = timeout_s if current is None else min(timeout_s, _RENEWAL_WAIT_S)
        with suppress(TokenError, FutureTimeoutError):
            return pending.result(wait_s)
        return self._instead(current, wait_s)

    def discard(self, text: str) -> None:
        """Lets another token be fetched than this, which a broker refused, soon but not at once:
        every connection of the process may be refused in the same way."""
        with self._lock:
            if self._token is not None and self._token.text == text:
                self._renew_s = 0.0
                pause_s = self.login.limits.max_backoff_s
                self._retry_s = max(self._retry_s, self._fetched_s + pause_s)

    def _ask(self) -> tuple[Token | None, "Future[Token] | None"]:
        """The token if it is valid, and the fetch to wait for, if any; raises `TokenError`."""
        with self._lock:
            now_s = self._clock()
            current = self._token
            if current is not None and current.expires_s <= now_s:
                current = self._token = None
            if current is not None and now_s < self._renew_s:
                return current, None
            if self._pending is None:
                is_too_soon = self._monotonic() < self._retry_s
                if is_too_soon and current is not None:
                    return current, None
                if is_too_soon and self._error is not None:
                    raise TokenError(str(self._error))
                self._pending = Future()
                self._pending.set_running_or_notify_cancel()
                threading.Thread(
                    target=self._renew,
                    args=(self._pending,),
                    name="featurewatch-oauth",
                    daemon=True,
                ).start()
            return current, self._pending

    def _instead(self, current: Token | None, waited_s: float) -> Token:
        """The token that was valid when a fetch failed or took too long; raises `TokenError`."""
        with self._lock:
            error = self._attempt_error or self._error
        if current is not None and current.expires_s > self._clock():
            return current
        if error is not None:
            raise TokenError(str(error))
        raise TokenError(f"no token came from {self.login.source} within {waited_s:g} s")

    def _renew(self, pending: "Future[Token]") -> None:
        """Fetches in a separate thread, and completes ``pending`` in any case."""
        result: Token | TokenError
        try:
            result = self._fetched()
        except TokenError as error:
            result = error
        except Exception as error:
            LOG.exception("no token could be fetched")
            result = TokenError(f"no token from {self.login.source}: {error_line(error)}")
        with self._lock:
            self._pending = None
            before, self._error, self._attempt_error = self._error, None, None
            if isinstance(result, Token):
                now_s = self._clock()
                if before is not None:
                    LOG.info("tokens come from %s again", self.login.source)
                self._token = result
                self._fetched_s = self._monotonic()
                self._renew_s = renewal_s(result, now_s, self.login.refresh, self._chance())
            else:
                self._error = result
                self._retry_s = self._monotonic() + self.login.limits.max_backoff_s
                is_new = before is None or str(before) != str(result)
                if self._token is not None and is_new:
                    LOG.warning("the token is not renewed, and the old one stays: %s", result)
        if isinstance(result, Token):
            pending.set_result(result)
        else:
            pending.set_exception(result)

    def _fetched(self) -> Token:
        """A new token; what fails for a moment is tried again for a while (Kafka's ``Retry``)."""
        limits, source = self.login.limits, self.login.source
        end_s = self._monotonic() + limits.max_backoff_s
        backoff_s = limits.backoff_s
        while True:
            try:
                return self._read(self._fetch(source, limits))
            except TokenError as error:
                if not error.is_transient or self._monotonic() + backoff_s > end_s:
                    raise
                with self._lock:
                    self._attempt_error = error
            self._pause(backoff_s)
            backoff_s *= 2

    def _read(self, text: str) -> Token:
        source, now_s = self.login.source, self._clock()
        if isinstance(source, MskToken):
            from featurewatch.kafka.client_config.oauth.signed_token import read_signed_token

            return read_signed_token(text, now_s)
        return read_token(text, self.login.subject_claim, str(source), now_s)


def _given(current: Token | None) -> Token:
    assert current is not None  # noqa: S101 - without a token there is a fetch, or an error
    return current


@lru_cache(maxsize=64)
def token_source(login: OauthLogin) -> TokenSource:
    """The one source of tokens of a login in this process."""
    return TokenSource(login)
