"""Bearer tokens, and the sessions of browsers that showed one.

A session is a time and its HMAC under a key that follows from the token: every process that knows
the token accepts it, a restart does not end it, and taking the token out of its file does. The key
costs time to compute: whoever has a cookie, and so can try tokens, tries few.
"""

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from featurewatch.common.http.errors import WebConfigError

MIN_TOKEN_CHARS: Final = 20
MAX_TOKEN_CHARS: Final = 512
MAX_TOKENS: Final = 100
SESSION_S: Final = 12 * 3600
"""A session ends this long after the login."""

_MAX_FILE_BYTES: Final = 1 << 20


class TokenSet:
    """The tokens that are accepted, several of them while one takes the place of another."""

    def __init__(self, tokens: Sequence[str] = ()) -> None:
        self._tokens = tuple(token.encode() for token in tokens)
        self._keys = {token: _session_key(token) for token in self._tokens}

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def find(self, candidate: str) -> bytes | None:
        """The token that equals a text; the time that this takes depends on neither."""
        given = candidate.encode(errors="replace")
        found = None
        for token in self._tokens:
            if hmac.compare_digest(token, given):
                found = token
        return found

    def new_session(self, token: bytes, now_s: float) -> str:
        """The value of the cookie of a browser that has sent a token."""
        ends = str(int(now_s) + SESSION_S)
        return f"{ends}.{_seal(self._keys[token], ends)}"

    def accepts_session(self, session: str, now_s: float) -> bool:
        """Whether a cookie has a session of one of the tokens that has not ended."""
        ends, _, seal = session.partition(".")
        if not (ends.isascii() and ends.isdecimal() and len(ends) <= 12):
            return False
        given = seal.encode(errors="replace")
        is_sealed = False
        for key in self._keys.values():
            is_sealed |= hmac.compare_digest(_seal(key, ends).encode(), given)
        return is_sealed and now_s < int(ends) <= now_s + SESSION_S


def read_tokens(file: Path) -> TokenSet:
    """The tokens of a file, one per line; ``#`` begins a comment. Raises `WebConfigError`."""
    return TokenSet(_all_tokens(file))


def first_token(file: Path) -> str:
    """The first token of such a file, for a client. Raises `WebConfigError`."""
    return _all_tokens(file)[0]


def _all_tokens(file: Path) -> list[str]:
    try:
        if file.stat().st_size > _MAX_FILE_BYTES:
            raise WebConfigError(f"{file} is larger than {_MAX_FILE_BYTES:,} bytes")
        text = file.read_text(encoding="ascii")
    except UnicodeDecodeError:
        raise WebConfigError(f"{file} has tokens that are not ASCII") from None
    except OSError as error:
        raise WebConfigError(f"{file} cannot be read: {error.strerror}") from None
    tokens = list(_parsed(text, file))
    if not tokens:
        raise WebConfigError(f"{file} has no token: write one a line, openssl rand -hex 32")
    if len(tokens) > MAX_TOKENS:
        raise WebConfigError(f"{file} has more than {MAX_TOKENS} tokens")
    return tokens


def _parsed(text: str, file: Path) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        token = line.strip()
        if not token or token.startswith("#"):
            continue
        is_usable = token.isprintable() and not any(sign in token for sign in ' ",;')
        if not (is_usable and MIN_TOKEN_CHARS <= len(token) <= MAX_TOKEN_CHARS):
            raise WebConfigError(
                f"{file} has a token in line {number} that cannot be used: it must have "
                f"{MIN_TOKEN_CHARS} to {MAX_TOKEN_CHARS} characters, without spaces, quotes, "
                "commas and semicolons"
            )
        yield token


@lru_cache(maxsize=MAX_TOKENS)
def _session_key(token: bytes) -> bytes:
    """The key of a token's sessions: scrypt with 4 MiB, a hundredth of a second or two."""
    return hashlib.scrypt(token, salt=b"featurewatch session", n=1 << 12, r=8, p=1, dklen=32)


def _seal(key: bytes, ends: str) -> str:
    return hmac.digest(key, b"featurewatch session until " + ends.encode(), "sha256").hex()
