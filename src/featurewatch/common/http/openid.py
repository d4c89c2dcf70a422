"""Sign-in by OpenID Connect: the section of the file, and what browsers keep of it. Pure.

Both cookies are sealed with keys that follow from the client's secret and the configuration: every
process with the same file accepts them, a restart ends none, and a change of the file ends all.
"""

import base64
import binascii
import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson

MAX_GROUPS: Final = 100
MAX_SESSION_HOURS: Final = 24
FLOW_S: Final = 600
"""How long a person may take to sign in at the provider."""

KEYS: Final = (
    "issuer",
    "client_id",
    "client_secret_file",
    "redirect_uri",
    "scopes",
    "groups_claim",
    "allowed_groups",
    "session_hours",
    "ca_file",
)
_MAX_SECRET_BYTES: Final = 4_096
_MAX_COOKIE_CHARS: Final = 4_096
_MAX_TEXT_CHARS: Final = 1_000


@dataclass(frozen=True, slots=True)
class OpenIdConfig:
    """Section ``openid_connect``; an empty ``allowed_groups`` lets in whoever can sign in."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    client_secret_file: Path
    redirect_uri: str
    scopes: str = "openid profile"
    groups_claim: str = "groups"
    allowed_groups: frozenset[str] = frozenset()
    session_hours: int = 8
    ca_file: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the section names."""
        return (self.client_secret_file, *(() if self.ca_file is None else (self.ca_file,)))


class SignIn(NamedTuple):
    """A sign-in that has begun: what the provider is sent, and the view to come back to."""

    state: str
    nonce: str
    verifier: str
    view: str


def parse_openid(content: Mapping[str, Any], folder: Path) -> OpenIdConfig:
    """The section, whose keys are known; raises `ValueError` that names the key."""
    texts = {
        key: _text(content[key], key)
        for key in (*KEYS[:6], "ca_file")
        if content.get(key) is not None
    }
    for key in KEYS[:4]:
        if not texts.get(key):
            raise ValueError(f"openid_connect.{key} is missing")
    for key in ("issuer", "redirect_uri"):
        if not is_safe_url(texts[key]):
            raise ValueError(
                f"openid_connect.{key} must be a URL of https, as secrets travel there"
            )
    if not urlsplit(texts["redirect_uri"]).path.endswith("/openid-callback"):
        raise ValueError(
            "openid_connect.redirect_uri must be the page's address and openid-callback: "
            "https://featurewatch.example.org/openid-callback"
        )
    scopes = texts.get("scopes", "openid profile")
    if "openid" not in scopes.split():
        raise ValueError("openid_connect.scopes must contain openid")
    groups = content.get("allowed_groups") or []
    if not isinstance(groups, list) or not all(isinstance(each, str) for each in groups):
        raise ValueError("openid_connect.allowed_groups must be a list of names")
    hours = content.get("session_hours", 8)
    try:
        is_valid = 1 <= int(str(hours)) <= MAX_SESSION_HOURS
    except ValueError:
        is_valid = False
    if len(groups) > MAX_GROUPS or not is_valid:
        raise ValueError(
            f"openid_connect has at most {MAX_GROUPS} allowed_groups, and session_hours from 1 to "
            f"{MAX_SESSION_HOURS}"
        )
    secret_file = folder / texts["client_secret_file"]
    return OpenIdConfig(
        texts["issuer"],
        texts["client_id"],
        _secret(secret_file),
        secret_file,
        texts["redirect_uri"],
        scopes,
        texts.get("groups_claim", "groups"),
        frozenset(groups),
        int(str(hours)),
        folder / texts["ca_file"] if "ca_file" in texts else None,
    )


def is_safe_url(text: str) -> bool:
    """Whether nobody on the way reads what is sent to a URL: by https, or on this machine."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    if not parts.hostname or parts.username is not None or parts.fragment or parts.query:
        return False
    try:
        is_local = ipaddress.ip_address(parts.hostname).is_loopback
    except ValueError:
        is_local = parts.hostname == "localhost"
    return parts.scheme == "https" or (parts.scheme == "http" and is_local)


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str) or len(value) > _MAX_TEXT_CHARS or not value.isprintable():
        raise ValueError(f"openid_connect.{key} must be one line of text")
    return value


def _secret(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(_MAX_SECRET_BYTES + 1)
    except OSError as error:
        raise ValueError(f"openid_connect.client_secret_file: {error.strerror}") from None
    text = content.decode("latin-1").strip()
    if not text or len(content) > _MAX_SECRET_BYTES:
        raise ValueError("openid_connect.client_secret_file is empty or too large")
    return text


# -- what browsers keep ----------------------------------------------------------------------------


def new_session(config: OpenIdConfig, now_s: float) -> str:
    """The value of the cookie of a browser whose user has signed in."""
    ends = str(int(now_s) + config.session_hours * 3600)
    return f"{ends}.{_seal(config, 'session', ends)}"


def accepts_session(config: OpenIdConfig, session: str, now_s: float) -> bool:
    """Whether a cookie has a session that has not ended."""
    ends, _, seal = session.partition(".")
    if not (ends.isascii() and ends.isdecimal() and len(ends) <= 12):
        return False
    expected = _seal(config, "session", ends).encode()
    is_sealed = hmac.compare_digest(expected, seal.encode(errors="replace"))
    return is_sealed and now_s < int(ends) <= now_s + config.session_hours * 3600


def begun(config: OpenIdConfig, sign_in: SignIn, now_s: float) -> str:
    """The value of the cookie of a browser that is sent to the provider."""
    content = base64.urlsafe_b64encode(orjson.dumps([int(now_s) + FLOW_S, *sign_in])).decode()
    return f"{content}.{_seal(config, 'sign-in', content)}"


def sign_in_of(config: OpenIdConfig, cookie: str, now_s: float) -> SignIn | None:
    """The sign-in that a browser has begun; None: it has not, or too long ago."""
    content, _, seal = cookie.partition(".")
    if len(cookie) > _MAX_COOKIE_CHARS or not content.isascii():
        return None
    expected = _seal(config, "sign-in", content).encode()
    if not hmac.compare_digest(expected, seal.encode(errors="replace")):
        return None
    try:
        ends_s, *texts = orjson.loads(base64.urlsafe_b64decode(content))
        return SignIn(*texts) if now_s < ends_s <= now_s + FLOW_S else None
    except (binascii.Error, TypeError, ValueError):
        return None


def _seal(config: OpenIdConfig, purpose: str, content: str) -> str:
    text = f"featurewatch {purpose} {content}".encode()
    return hmac.digest(_key(config), text, "sha256").hex()


@lru_cache(maxsize=16)
def _key(config: OpenIdConfig) -> bytes:
    """The key of cookies: whoever has one, and so can try secrets, tries few."""
    about = repr((config.issuer, config.client_id, sorted(config.allowed_groups)))
    salt = hashlib.sha256(about.encode()).digest()
    secret = config.client_secret.encode()
    return hashlib.scrypt(secret, salt=salt, n=1 << 12, r=8, p=1, dklen=32)
