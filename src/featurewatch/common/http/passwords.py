"""Passwords of HTTP users against bcrypt hashes.

A hash is slow to check on purpose: it is checked in a thread, few at a time, and once for each pair
of name and password, whose digest under a secret of the process is remembered.
"""

import asyncio
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import bcrypt

MAX_CHECKS: Final = 2
"""Checks that run at the same time."""

MAX_WAITING: Final = 32
"""Checks that run or wait."""

_MAX_REMEMBERED: Final = 1_000
_MAX_PASSWORD_BYTES: Final = 72
"""The bytes of a password that bcrypt reads."""


class TooManyChecksError(Exception):
    """Too many passwords are being checked: one more would wait for long."""


class PasswordChecker:
    """Checks passwords; ``hashes`` are bcrypt hashes by the name of the user."""

    def __init__(self, hashes: Mapping[str, bytes]) -> None:
        self._hashes = hashes
        cost = max((int(value[4:6]) for value in hashes.values()), default=4)
        # An unknown name costs as much time as the others.
        self._nobody = bcrypt.gensalt(cost) + b"." * 31
        self._secret = secrets.token_bytes(32)
        self._verified: OrderedDict[bytes, None] = OrderedDict()
        self._running: dict[bytes, asyncio.Future[bool]] = {}
        self._slots = asyncio.Semaphore(MAX_CHECKS)

    def is_verified(self, user: str, password: str) -> bool:
        """Whether this pair was checked before, and is right."""
        return self._digest(user, password) in self._verified

    def is_running(self, user: str, password: str) -> bool:
        """Whether this pair is being checked: one more `check` of it costs nothing."""
        return self._digest(user, password) in self._running

    async def check(self, user: str, password: str) -> bool:
        """Whether this is the user's password; raises `TooManyChecksError`."""
        digest = self._digest(user, password)
        if digest in self._verified:
            self._verified.move_to_end(digest)
            return True
        running = self._running.get(digest)
        if running is None:
            if len(self._running) >= MAX_WAITING:
                raise TooManyChecksError
            running = asyncio.ensure_future(self._check(user, password.encode(), digest))
            self._running[digest] = running
            running.add_done_callback(lambda _: self._running.pop(digest, None))
        # A page loads its files at the same time: they share one check.
        return await asyncio.shield(running)

    async def _check(self, user: str, password: bytes, digest: bytes) -> bool:
        hashed = self._hashes.get(user)
        async with self._slots:
            matches = await asyncio.to_thread(_matches, password, hashed or self._nobody)
        if hashed is None or not matches:
            return False
        self._verified[digest] = None
        if len(self._verified) > _MAX_REMEMBERED:
            self._verified.popitem(last=False)
        return True

    def _digest(self, user: str, password: str) -> bytes:
        name = user.encode()
        text = b"%d:%b%b" % (len(name), name, password.encode())
        return hmac.digest(self._secret, text, "sha256")


def _matches(password: bytes, hashed: bytes) -> bool:
    is_possible = len(password) <= _MAX_PASSWORD_BYTES and b"\0" not in password
    matches = bcrypt.checkpw(password if is_possible else b"", hashed)
    return is_possible and matches
