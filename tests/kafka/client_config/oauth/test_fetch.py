"""Tokens from endpoints, files and programs that answer, and that do not: one line each."""

import os
import socket
import ssl
import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import trustme

from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.login import login_of
from featurewatch.kafka.client_config.oauth.fetch import MAX_ANSWER_BYTES, fetch
from featurewatch.kafka.client_config.oauth.settings import (
    FetchLimits,
    OauthLogin,
    TokenCommand,
    TokenEndpoint,
    TokenFile,
)
from tests.oidc import CLIENT_ID, SECRET, Answer, Provider, respond, running_provider

LIMITS = FetchLimits(connect_s=2.0, read_s=2.0)
HURRY = FetchLimits(connect_s=0.3, read_s=0.3)


def endpoint(url: str, secret: str = SECRET, **properties: str) -> TokenEndpoint:
    """The endpoint of properties."""
    login = login_of(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": url,
            "sasl.oauthbearer.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.secret": secret,
            **properties,
        }
    )
    assert isinstance(login, OauthLogin)
    assert isinstance(login.source, TokenEndpoint)
    return login.source


def test_an_endpoint_grants_a_token_for_id_secret_and_scope() -> None:
    """The request is that of RFC 6749, section 4.4."""
    with running_provider() as provider:
        source = endpoint(provider.url, **{"sasl.oauthbearer.scope": "a b"})
        assert fetch(source, LIMITS).count(".") == 2
    assert provider.bodies == ["grant_type=client_credentials&scope=a+b"]


def test_tls_of_the_endpoint_has_its_own_authority(tmp_path: Path) -> None:
    """The authority of Kafka does not count for the endpoint."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with running_provider(context) as provider:
        source = endpoint(provider.url, **{"https.ca.location": str(tmp_path / "ca.pem")})
        assert fetch(source, LIMITS).count(".") == 2
        with pytest.raises(TokenError, match=r"no certificate that is trusted .*https.ca.location"):
            fetch(endpoint(provider.url), LIMITS)
        plain = provider.url.replace("https", "http")
        with pytest.raises(TokenError, match=r"cannot be reached|is not HTTP"):
            fetch(endpoint(plain), LIMITS)


def redirecting(_: Provider, request: BaseHTTPRequestHandler) -> None:
    """To another host, with a secret in the query."""
    respond(request, 302, "", Location=f"https://evil.test/in?secret={SECRET}")


def html(_: Provider, request: BaseHTTPRequestHandler) -> None:
    """A page for people."""
    respond(request, 200, "<html>sign in</html>", "text/html")


def large(_: Provider, request: BaseHTTPRequestHandler) -> None:
    """More than is read."""
    respond(request, 200, '"' + "x" * MAX_ANSWER_BYTES + '"')


def empty(_: Provider, request: BaseHTTPRequestHandler) -> None:
    """No token in it."""
    respond(request, 200, "{}")


def overloaded(_: Provider, request: BaseHTTPRequestHandler) -> None:
    """A code that says nothing about the next request."""
    respond(request, 503, "busy", "text/plain")


def dripping(_: Provider, request: BaseHTTPRequestHandler) -> None:
    """A byte now and then."""
    for _byte in range(100):
        request.wfile.write(b"H")
        request.wfile.flush()
        time.sleep(0.05)


def silent(_: Provider, request: BaseHTTPRequestHandler) -> None:
    """Nothing at all."""
    request.connection.recv(1)  # until the client gives up


def noise(_: Provider, request: BaseHTTPRequestHandler) -> None:
    """Another protocol."""
    request.wfile.write(b"SSH-2.0-OpenSSH\r\n\r\n")
    request.close_connection = True


@pytest.mark.parametrize(
    ("answer", "limits", "line", "is_transient"),
    [
        (redirecting, LIMITS, "redirects to https://evil.test/in, which is not followed", False),
        (html, LIMITS, "answered with text/html that is not a JSON object", False),
        (large, LIMITS, f"answered with more than {MAX_ANSWER_BYTES} bytes", False),
        (empty, LIMITS, "answered without an access_token", False),
        (overloaded, LIMITS, "refused a token with code 503", True),
        (dripping, HURRY, "did not answer within 0.3 s (sasl.login.read.timeout.ms)", True),
        (silent, HURRY, "did not answer within 0.3 s (sasl.login.read.timeout.ms)", True),
        (noise, LIMITS, "its answer is not HTTP, or ended too early", True),
    ],
)
def test_an_endpoint_that_grants_none_is_one_line(
    answer: Answer, limits: FetchLimits, line: str, is_transient: bool
) -> None:
    """With the endpoint, and without the secret."""
    with running_provider() as provider:
        provider.answer = answer
        with pytest.raises(TokenError) as raised:
            fetch(endpoint(provider.url), limits)
    assert line in str(raised.value)
    assert provider.url in str(raised.value)
    assert SECRET not in str(raised.value)
    assert raised.value.is_transient == is_transient


def test_a_wrong_secret_is_one_line_without_it() -> None:
    """The provider's own reason is quoted."""
    with running_provider() as provider:
        with pytest.raises(TokenError) as raised:
            fetch(endpoint(provider.url, "gue55ed"), LIMITS)
        assert "code 401 (invalid_client, " in str(raised.value)
        assert "check the client's id, its secret and the scope" in str(raised.value)
        assert "gue55ed" not in str(raised.value)


def test_an_endpoint_that_is_down_is_one_line() -> None:
    """Nothing listens there."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}/token"
        with pytest.raises(TokenError, match="cannot be reached: Connection refused"):
            fetch(endpoint(url), LIMITS)


def test_a_file_that_is_missing_empty_and_good(tmp_path: Path) -> None:
    """The text of the file is the token, white space included."""
    file = tmp_path / "token"
    with pytest.raises(TokenError, match=r"token file .*/token cannot be read: No such file"):
        fetch(TokenFile(str(file)), LIMITS)
    file.write_text(" \n")
    with pytest.raises(TokenError, match="is empty"):
        fetch(TokenFile(str(file)), LIMITS)
    file.write_text("a.b.c\n")
    assert fetch(TokenFile(str(file)), LIMITS) == "a.b.c\n"


def python(program: str, *arguments: str) -> TokenCommand:
    """A command that runs a program of Python."""
    return TokenCommand(sys.executable, ("-c", program, *arguments))


def test_a_program_prints_a_token_and_no_shell_reads_its_arguments() -> None:
    """Signs of a shell are passed on."""
    shown = python("import sys; print(sys.argv[1])", "$HOME; echo x")
    assert fetch(shown, FetchLimits(read_s=20)) == "$HOME; echo x\n"


@pytest.mark.parametrize(
    ("command", "read_s", "line"),
    [
        (TokenCommand("/none/get-token"), 20, "cannot be started: No such file or directory"),
        (TokenCommand("a\0b"), 20, "cannot be started"),
        (python("print('secret'); raise SystemExit(3)"), 20, "failed with exit code 3"),
        (python(""), 20, "printed nothing"),
        (python("while True: print('secret' * 1000)"), 20, "printed more than"),
        (python("import time; time.sleep(60)"), 0.3, "took longer than 0.3 s"),
        (
            python("import os, time; print('secret', flush=True); os.close(1); time.sleep(60)"),
            1.0,
            "took longer than 1 s",
        ),
    ],
)
def test_a_program_that_prints_none_is_one_line(
    command: TokenCommand, read_s: float, line: str
) -> None:
    """With what went wrong, and without what it printed."""
    with pytest.raises(TokenError) as raised:
        fetch(command, FetchLimits(read_s=read_s))
    assert line in str(raised.value)
    assert "secret" not in str(raised.value)


def test_what_a_program_starts_ends_with_it(tmp_path: Path) -> None:
    """A child does not outlive the time of the command."""
    file = tmp_path / "pid"
    program = (
        "import subprocess, sys; child = subprocess.Popen(['sleep', '60']);"
        f"open({str(file)!r}, 'w').write(str(child.pid)); child.wait()"
    )
    with pytest.raises(TokenError, match="took longer"):
        fetch(python(program), FetchLimits(read_s=3))
    state = Path(f"/proc/{file.read_text()}/stat")
    end_s = time.monotonic() + 10
    while state.exists() and state.read_text().split()[2] != "Z" and time.monotonic() < end_s:
        os.sched_yield()
    assert not state.exists() or state.read_text().split()[2] == "Z"
