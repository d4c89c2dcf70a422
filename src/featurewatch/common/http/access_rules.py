"""The rules of an HTTP port as their files have them, and new ones when these have changed."""

import logging
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from featurewatch.common.http import openid
from featurewatch.common.http.errors import WebConfigError
from featurewatch.common.http.passwords import PasswordChecker
from featurewatch.common.http.tls import server_context
from featurewatch.common.http.tokens import TokenSet, read_tokens
from featurewatch.common.http.web_config import ClientAuth, WebConfig, read_web_config
from featurewatch.common.text import error_line

_LOG: Final = logging.getLogger("featurewatch.http")

Fingerprint = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class AccessRules:
    """TLS, headers and logins; ``context`` is None without TLS."""

    config: WebConfig = field(default_factory=WebConfig)
    tokens: TokenSet = field(default_factory=TokenSet)
    context: ssl.SSLContext | None = None
    passwords: PasswordChecker = field(default_factory=lambda: PasswordChecker({}))

    @property
    def needs_credentials(self) -> bool:
        """Whether a request needs a password, a token or a session."""
        return bool(self.config.users or self.tokens or self.config.openid)

    def accepts_session(self, session: str, now_s: float) -> bool:
        """Whether a browser's cookie has a session that has not ended."""
        config = self.config.openid
        return self.tokens.accepts_session(session, now_s) or (
            config is not None and openid.accepts_session(config, session, now_s)
        )

    @property
    def has_login(self) -> bool:
        """Whether a login is required to read."""
        tls = self.config.tls
        needs_certificate = tls is not None and tls.client_auth is ClientAuth.REQUIRED
        return needs_certificate or self.needs_credentials

    @property
    def challenge(self) -> str:
        """The header ``WWW-Authenticate``."""
        basic = ['Basic realm="featurewatch", charset="UTF-8"'] if self.config.users else []
        bearer = ['Bearer realm="featurewatch"'] if self.tokens else []
        # HTTP has no scheme for a sign-in, but a 401 needs one.
        by_page = ['FeaturewatchPage realm="featurewatch"'] if not (basic or bearer) else []
        return ", ".join(basic + bearer + by_page)


@dataclass(frozen=True, slots=True)
class AccessRulesFiles:
    """Where the rules are; as in `AccessSettings`."""

    config_file: Path | None
    token_file: Path | None
    must_have_login: bool

    def read(self) -> AccessRules:
        """The rules as the files are now; raises `WebConfigError`."""
        config = WebConfig() if self.config_file is None else read_web_config(self.config_file)
        rules = AccessRules(
            config,
            TokenSet() if self.token_file is None else read_tokens(self.token_file),
            None if config.tls is None else server_context(config.tls),
            PasswordChecker(config.users),
        )
        if self.must_have_login and not rules.has_login:
            raise WebConfigError(
                f"{self.config_file} has no login: set basic_auth_users, or the client_auth_type "
                f"{ClientAuth.REQUIRED}, or openid_connect, or web.token_file beside it"
            )
        return rules

    def named(self) -> Iterable[Path]:
        """The configured files."""
        return filter(None, (self.config_file, self.token_file))


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """The access rules of one port.

    ``config_file`` is a `web_config`, ``token_file`` has bearer tokens; without either there is no
    login. ``must_have_login`` refuses files without one. Of ``proxies`` the client's address is
    believed.
    """

    config_file: Path | None = None
    token_file: Path | None = None
    must_have_login: bool = False
    proxies: tuple[str, ...] = ()
    max_requests_per_s: float = 100.0

    @property
    def files(self) -> AccessRulesFiles:
        """The files with the rules."""
        return AccessRulesFiles(self.config_file, self.token_file, self.must_have_login)


class AccessRulesReader:
    """Rereads the rules when one of their files has changed."""

    def __init__(self, files: AccessRulesFiles, rules: AccessRules) -> None:
        self._files = files
        self._paths = self._all_paths(rules)
        self._seen = _fingerprint(self._paths)
        self.error = ""
        """Why the current files cannot be used; empty if they are in use."""

    @property
    def has_files(self) -> bool:
        """Whether there is a file that can change."""
        return bool(self._paths)

    def read_changed(self) -> AccessRules | None:
        """New rules; None if nothing has changed, or the new files are unusable (logged in a line).

        Whatever the files make their readers raise, they are read again at their next change.
        """
        return None if _fingerprint(self._paths) == self._seen else self.read()

    def read(self) -> AccessRules | None:
        """The rules as the files are now; None if they are unusable, which is logged."""
        self._seen = _fingerprint(self._paths)
        try:
            rules = self._files.read()
        except Exception as error:
            is_expected = isinstance(error, WebConfigError)
            self.error = str(error) if is_expected else error_line(error)
            _LOG.error(
                "TLS and logins stay as they were: %s",
                self.error,
                exc_info=None if is_expected else error,
            )
            return None
        self.error = ""
        paths = self._all_paths(rules)
        if paths != self._paths:  # else what was replaced during the reading would not be noticed
            self._paths, self._seen = paths, _fingerprint(paths)
        _LOG.info("TLS and logins were reloaded: %s", ", ".join(map(str, self._files.named())))
        return rules

    def _all_paths(self, rules: AccessRules) -> tuple[Path, ...]:
        tls, provider = rules.config.tls, rules.config.openid
        return (
            *self._files.named(),
            *(() if tls is None else tls.files),
            *(() if provider is None else provider.files),
        )


def _fingerprint(paths: Iterable[Path]) -> Fingerprint:
    return tuple(map(_identity, paths))


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns
