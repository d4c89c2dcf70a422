"""What was read from the provider, and that it could not be read: both are held for a while."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from featurewatch.web.openid.errors import SignInError

T = TypeVar("T")

FIRST_WAIT_S: Final = 5.0
MAX_WAIT_S: Final = 60.0
"""The provider is asked again this long after a failure; twice as long after each further one, up
to the maximum."""


class HeldAnswer(Generic[T]):
    """A value that is read again when it is too old, by one reader at a time.

    While the provider cannot be reached, sign-ins fail at once with the reason, and do not wait
    for the one that tries it again. ``monotonic`` gives seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._held: tuple[T, float] | None = None
        self._failure: SignInError | None = None
        self._retry_s = float("-inf")
        self._wait_s = FIRST_WAIT_S

    async def get(self, read: Callable[[], Awaitable[T]], max_age_s: float) -> T:
        """Returns the value, at most ``max_age_s`` old; ``read`` reads it.

        Raises `SignInError`, as ``read`` did when it was called last.
        """
        held = self._current(max_age_s)
        if held is None:
            if self._failure is not None and self._lock.locked():
                raise self._again()
            async with self._lock:
                held = self._current(max_age_s) or await self._read(read)
        return held[0]

    def _current(self, max_age_s: float) -> tuple[T, float] | None:
        held = self._held
        return held if held is not None and self._monotonic() < held[1] + max_age_s else None

    async def _read(self, read: Callable[[], Awaitable[T]]) -> tuple[T, float]:
        began_s = self._monotonic()
        if self._failure is not None and began_s < self._retry_s:
            raise self._again()
        try:
            self._held = held = await read(), began_s
        except SignInError as error:
            self._failure = error
            self._retry_s = self._monotonic() + self._wait_s
            self._wait_s = min(2 * self._wait_s, MAX_WAIT_S)
            raise
        self._failure, self._wait_s = None, FIRST_WAIT_S
        return held

    def _again(self) -> SignInError:
        """Another error with the same line: one that is raised again collects tracebacks."""
        return SignInError(str(self._failure))
