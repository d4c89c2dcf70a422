"""The file with TLS, headers and users: what is accepted, and how each mistake is named."""

import hmac
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.common.http.errors import WebConfigError
from featurewatch.common.http.tokens import SESSION_S, TokenSet, read_tokens
from featurewatch.common.http.web_config import (
    MAX_FILE_BYTES,
    ClientAuth,
    parse_web_config,
    read_web_config,
)
from tests.common.http.ports import OTHER_TOKEN, PASSWORD, TOKEN, hashed

FILE = Path("/etc/featurewatch/web.yaml")
TLS = {"cert_file": "a.pem", "key_file": "/run/a.key"}
MUTUAL = {**TLS, "client_ca_file": "ca.pem", "client_auth_type": "RequireAndVerifyClientCert"}


def test_a_whole_file() -> None:
    """Every key of it; files are relative to its folder, as in exporter-toolkit."""
    user = hashed()
    config = parse_web_config(
        {
            "tls_server_config": {
                **MUTUAL,
                "client_allowed_sans": ["prometheus"],
                "min_version": "TLS13",
                "max_version": "TLS13",
            },
            "http_server_config": {
                "http2": "false",
                "headers": {"X-Frame-Options": "deny", "X-XSS-Protection": ""},
            },
            "basic_auth_users": {"prometheus": user},
        },
        FILE,
    )
    assert config.tls is not None
    assert config.tls.files == (
        FILE.parent / "a.pem",
        Path("/run/a.key"),
        FILE.parent / "ca.pem",
    )
    assert config.tls.client_auth is ClientAuth.REQUIRED
    assert config.tls.allowed_sans == {"prometheus"}
    assert config.users == {"prometheus": user.encode()}
    assert parse_web_config(None, FILE) == parse_web_config({}, FILE)


MISTAKES: dict[str, tuple[Any, str]] = {
    "no mapping": (["a"], "the file must be a mapping"),
    "unknown": ({"web": {}}, "the key web is unknown: there are tls_server_config, "),
    "misspelt": (
        {"tls_server_config": {**TLS, "min_versoin": "TLS13"}},
        "the key tls_server_config.min_versoin is unknown: did you mean min_version?",
    ),
    "inline": ({"tls_server_config": {"cert": "PEM"}}, "tls_server_config.cert is not supported"),
    "suites": (
        {"tls_server_config": {**TLS, "cipher_suites": []}},
        "tls_server_config.cipher_suites is not supported: the suites are those of OpenSSL",
    ),
    "rate": ({"rate_limit": {}}, "rate_limit is not supported: set web.max_requests_per_s"),
    "http2": ({"http_server_config": {"http2": "true"}}, "http_server_config.http2 is not"),
    "header": (
        {"http_server_config": {"headers": {"Server": "x"}}},
        "the key http_server_config.headers.Server is unknown",
    ),
    "split header": (
        {"http_server_config": {"headers": {"X-Frame-Options": "deny\r\nx: y"}}},
        "must be one line of ASCII",
    ),
    "no key": ({"tls_server_config": {"cert_file": "a"}}, "tls_server_config.key_file is missing"),
    "unverified": (
        {"tls_server_config": {**MUTUAL, "client_auth_type": "RequireAnyClientCert"}},
        "RequireAnyClientCert is not supported, as it verifies nothing",
    ),
    "client auth": (
        {"tls_server_config": {**TLS, "client_auth_type": "yes"}},
        "must be one of NoClientCert, ",
    ),
    "no authority": (
        {"tls_server_config": {**TLS, "client_auth_type": "VerifyClientCertIfGiven"}},
        "need each other",
    ),
    "unused authority": ({"tls_server_config": {**TLS, "client_ca_file": "a"}}, "need each other"),
    "names": (
        {"tls_server_config": {**TLS, "client_allowed_sans": ["a"]}},
        "client_allowed_sans needs the client_auth_type RequireAndVerifyClientCert",
    ),
    "version": (
        {"tls_server_config": {**TLS, "min_version": "TLS10"}},
        "tls_server_config.min_version must be one of TLS12, TLS13",
    ),
    "version list": (
        {"tls_server_config": {**TLS, "min_version": ["TLS12"]}},
        "tls_server_config.min_version must be one of TLS12, TLS13",
    ),
    "versions": (
        {"tls_server_config": {**TLS, "min_version": "TLS13", "max_version": "TLS12"}},
        "min_version is above max_version",
    ),
    "plain password": ({"basic_auth_users": {"ann": PASSWORD}}, "basic_auth_users.ann is no"),
    "cost": (
        {"basic_auth_users": {"ann": hashed().replace("$04$", "$31$")}},
        "basic_auth_users.ann has the bcrypt cost 31: 4 to 15 are possible",
    ),
    "colon": ({"basic_auth_users": {"a:b": hashed()}}, "a name that no client can send"),
    "list": ({"basic_auth_users": ["ann"]}, "basic_auth_users must map"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(name: str) -> None:
    """One line with the file, the key and what to write; never a password."""
    content, expected = MISTAKES[name]
    with pytest.raises(WebConfigError) as caught:
        parse_web_config(content, FILE)
    text = str(caught.value)
    assert text.startswith(f"{FILE}: ")
    assert expected in text
    assert "\n" not in text
    assert PASSWORD not in text


KEYS = st.sampled_from(
    ["tls_server_config", "http_server_config", "basic_auth_users", "headers", *MUTUAL, "", "x"]
)
TEXTS = st.one_of(KEYS, st.text(max_size=20), st.none())


@pytest.mark.fuzz
@given(
    st.recursive(
        TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
        max_leaves=12,
    )
)
def test_any_content_is_read_or_refused(content: Any) -> None:
    """Whatever YAML gives."""
    try:
        parse_web_config(content, FILE)
    except WebConfigError as error:
        assert "\n" not in str(error)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """No file, no YAML, a key twice, too much."""
    file = tmp_path / "web.yaml"
    with pytest.raises(WebConfigError, match="cannot be read: No such file"):
        read_web_config(file)
    for text, reason in (
        ("a: [", "not YAML"),
        ("basic_auth_users: {}\nbasic_auth_users: {}\n", "is already set in line"),
        ("#" * (MAX_FILE_BYTES + 1), "is larger than"),
    ):
        file.write_text(text)
        with pytest.raises(WebConfigError, match=reason):
            read_web_config(file)


def test_tokens_of_a_file(tmp_path: Path) -> None:
    """One a line with comments; what is too short to be a secret is refused, and not quoted."""
    file = tmp_path / "tokens"
    file.write_text(f"# new\n{TOKEN}\n\n  {OTHER_TOKEN}\n")
    tokens = read_tokens(file)
    assert tokens.find(TOKEN) == TOKEN.encode()
    assert tokens.find(OTHER_TOKEN)
    for wrong in ("", TOKEN[:-1], TOKEN + "x", "\udcff", "ä" * 30):
        assert tokens.find(wrong) is None
    for text, reason in (
        ("# none\n", "has no token"),
        (f"{TOKEN}\nsecret\n", "line 2"),
        ("a b" * 10, "line 1"),
        ("ä" * 30, "not ASCII"),
    ):
        file.write_text(text)
        with pytest.raises(WebConfigError, match=reason) as caught:
            read_tokens(file)
        assert "secret" not in str(caught.value)


def test_a_session_ends() -> None:
    """After its time, with its token, and when anything of it is changed."""
    tokens = TokenSet([TOKEN, OTHER_TOKEN])
    session = tokens.new_session(TOKEN.encode(), 1_000.0)
    assert tokens.accepts_session(session, 1_000.0)
    assert TokenSet([TOKEN]).accepts_session(session, 999.0 + SESSION_S)
    assert not tokens.accepts_session(session, 1_000.0 + SESSION_S)
    assert not TokenSet([OTHER_TOKEN]).accepts_session(session, 1_000.0)
    ends, _, seal = session.partition(".")
    text = b"featurewatch session until " + ends.encode()
    quick = hmac.digest(TOKEN.encode(), text, "sha256").hex()
    assert seal != quick, "whoever has a cookie could try millions of tokens a second"
    assert not tokens.accepts_session(f"{ends}.{quick}", 1_000.0)
    ends, _, seal = session.partition(".")
    for forged in (f"{int(ends) + 1}.{seal}", f"{ends}.{seal[:-1]}", seal, "", ".", f"{ends}."):
        assert not tokens.accepts_session(forged, 1_000.0)
    assert TOKEN not in session
