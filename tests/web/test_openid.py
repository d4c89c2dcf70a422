"""Sign-in by OpenID Connect: at a provider that is not ours, and with tokens that are not valid."""

import asyncio
import base64
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar, web
from cryptography.hazmat.primitives.asymmetric import rsa

from featurewatch.common.http import openid
from featurewatch.common.http.access import SESSION_COOKIE
from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.common.http.errors import WebConfigError
from featurewatch.common.http.openid import FLOW_S, OpenIdConfig, SignIn
from featurewatch.common.http.web_config import parse_web_config
from featurewatch.stack.java.jars import Cache
from featurewatch.web.openapi import ROOT
from featurewatch.web.openid.errors import SignInError, UnknownKeyError
from featurewatch.web.openid.held_answer import FIRST_WAIT_S, HeldAnswer
from featurewatch.web.openid.id_token import may_read, signing_keys, verified_claims
from featurewatch.web.openid.provider import MAX_ANSWER_BYTES, Metadata
from featurewatch.web.openid.routes import COOKIE
from featurewatch.web.server import PageServer
from featurewatch.web.settings import PageSettings
from featurewatch.web.worker_rows import WorkerRows
from tests.common.http.ports import TOKEN, Files
from tests.oidc_server import OidcServer, oidc_server
from tests.web.openid_section import CALLBACK, CLIENT, SECRET, section
from tests.web.samples import NOW_MS, read_model, state_of

HTML = {"Accept": "text/html"}
FLEET = f"{ROOT}/fleet"


@pytest.fixture(scope="module")
def provider(stack_cache: Cache) -> Iterator[OidcServer]:
    """mock-oauth2-server."""
    with oidc_server(stack_cache) as server:
        yield server


@asynccontextmanager
async def page(**access: Any) -> AsyncIterator[ClientSession]:
    """A served page, and a browser with cookies."""
    settings = PageSettings(port=0, access=AccessSettings(**access))
    model = read_model([state_of()])
    server = PageServer(settings, model, WorkerRows(), lambda: NOW_MS, lambda: 0.0)
    async with (
        server.serving(),
        ClientSession(
            f"http://127.0.0.1:{server.port}/", cookie_jar=CookieJar(unsafe=True)
        ) as client,
    ):
        yield client


async def begin(client: ClientSession, view: str = "") -> str:
    """Begins a sign-in; the address of the provider to which the browser is sent."""
    response = await client.get("/openid-login", params={"view": view}, allow_redirects=False)
    assert response.status == 303, await response.text()
    cookie = response.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Lax", f"Max-Age={FLOW_S}"} <= set(cookie.split("; "))
    assert SECRET not in cookie
    return response.headers["Location"]


async def signed_in_at(client: ClientSession, url: str, user: str, groups: list[str]) -> str:
    """What the provider sends the browser back with: the query of its redirect."""
    form = {"username": user, "claims": json.dumps({"groups": groups})}
    async with ClientSession() as elsewhere:
        response = await elsewhere.post(url, data=form, allow_redirects=False)
        location = response.headers["Location"]
    assert location.startswith(f"{CALLBACK}?")
    return urlsplit(location).query


async def end(client: ClientSession, query: str) -> ClientResponse:
    """The browser comes back."""
    return await client.get(f"/openid-callback?{query}", allow_redirects=False)


@pytest.mark.stack
async def test_who_signs_in_and_is_in_a_group_may_read(
    provider: OidcServer, tmp_path: Path
) -> None:
    """The page links to the sign-in, and comes back to the view that it was opened for."""
    files = Files(tmp_path)
    config = section(provider.issuer, tmp_path, allowed_groups=["upgraders"])
    async with page(config_file=files.write(openid_connect=config)) as client:
        form = await client.get("/?view=alerts", headers=HTML)
        text = await form.text()
        assert form.status == 401
        assert 'href="./openid-login?view=view%3Dalerts"' in text
        assert "<form" not in text
        assert (await client.get(FLEET)).status == 401
        url = await begin(client, "view=alerts")
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert query["code_challenge_method"] == "S256"
        assert (query["client_id"], query["redirect_uri"]) == (CLIENT, CALLBACK)
        back = await end(client, await signed_in_at(client, url, "ann", ["staff", "upgraders"]))
        assert (back.status, back.headers["Location"]) == (303, "./?view=alerts")
        session = [
            cookie for cookie in back.headers.getall("Set-Cookie") if SESSION_COOKIE in cookie
        ]
        assert "SameSite=Strict" in session[0]
        assert "Max-Age=28800" in session[0]
        assert (await client.get(FLEET)).status == 200
        assert (await client.head("/login")).status == 204
        # A provider's code is good for one sign-in, and so is the cookie of it.
        assert (await end(client, "code=again&state=x")).status == 403
        assert (await client.post("/logout")).status == 204
        assert (await client.get(FLEET)).status == 401


@pytest.mark.stack
async def test_who_is_in_no_group_or_comes_from_elsewhere_may_not(
    provider: OidcServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another group, another state, another browser, a code that was used: none gets a session."""
    files = Files(tmp_path)
    config = section(provider.issuer, tmp_path, allowed_groups=["upgraders"])
    async with page(config_file=files.write(openid_connect=config)) as client:
        url = await begin(client)
        other = await end(client, await signed_in_at(client, url, "bob", ["staff"]))
        assert other.status == 403
        assert "in none of the groups" in await other.text()
        url = await begin(client)
        query = await signed_in_at(client, url, "ann", ["upgraders"])
        forged = await end(client, re.sub(r"state=[^&]*", "state=forged", query))
        assert forged.status == 403
        async with page(config_file=tmp_path / "web.yaml") as another:
            assert (await end(another, query)).status == 403
        refused = await end(client, f"error=access_denied&{query}")
        assert "access_denied" in await refused.text()
        assert (await end(client, query)).status == 303
        client.cookie_jar.clear()
        await begin(client)
        assert (await client.get(FLEET)).status == 401
    assert SECRET not in caplog.text


# -- a provider that answers anything --------------------------------------------------------------

Answer = Callable[[web.Request], web.Response]


@asynccontextmanager
async def scripted(answers: dict[str, Answer]) -> AsyncIterator[str]:
    """A provider that answers these paths; its issuer."""

    async def serve(request: web.Request) -> web.Response:
        return answers[request.path](request)

    runner = web.AppRunner(app := web.Application())
    app.router.add_route("*", "/{path:.*}", serve)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


def metadata(issuer: str = "", **changes: str) -> Answer:
    """The metadata of the provider, as its own host has them."""

    def answer(request: web.Request) -> web.Response:
        own = f"http://{request.host}"
        content = {
            "issuer": issuer or own,
            "authorization_endpoint": f"{own}/auth",
            "token_endpoint": f"{own}/token",
            "jwks_uri": f"{own}/keys",
        }
        return web.json_response(content | changes)

    return answer


DISCOVERY = "/.well-known/openid-configuration"


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (metadata("https://another.test"), "names another issuer"),
        (metadata(token_endpoint="http://idp.test/token"), "not by https"),  # noqa: S106
        (lambda _: web.Response(text="<html>"), "code 200 that is not JSON"),
        (lambda _: web.Response(status=503), "answered with code 503"),
        (lambda _: web.Response(status=302, headers={"Location": "/x"}), "answered with code 302"),
        (lambda _: web.Response(body=b"[" * (MAX_ANSWER_BYTES + 1)), "with more than 262,144"),
        (lambda _: web.Response(body=b"[" * 100_000), "that is not JSON"),
    ],
)
async def test_a_provider_that_answers_otherwise_is_one_line(
    tmp_path: Path, answer: Answer, line: str
) -> None:
    """On the page, and with nothing behind it."""
    async with scripted({DISCOVERY: answer}) as issuer:
        config = Files(tmp_path).write(openid_connect=section(issuer, tmp_path))
        async with page(config_file=config) as client:
            response = await client.get("/openid-login", allow_redirects=False)
            assert response.status == 502
            assert line in await response.text()


async def test_a_provider_that_does_not_answer_keeps_nobody_waiting() -> None:
    """It is asked again after a while, by one sign-in; the others fail at once with its line."""
    begun, may_answer = asyncio.Event(), asyncio.Event()
    asked: list[str] = []
    now_s = 0.0

    async def answer(url: str) -> Metadata:
        asked.append(url)
        begun.set()
        await may_answer.wait()
        if url == "works":
            return Metadata("a", "t", "k")
        raise SignInError(f"{url} did not answer")

    held: HeldAnswer[Metadata] = HeldAnswer(lambda: now_s)

    async def line(url: str) -> str:
        try:
            return (await held.get(lambda: answer(url), 100)).jwks_uri
        except SignInError as error:
            return str(error)

    may_answer.set()
    one, two = asyncio.create_task(line("one")), asyncio.create_task(line("two"))
    assert {await one, await two} == {"one did not answer"}
    now_s += FIRST_WAIT_S - 1
    assert await line("three") == "one did not answer"
    now_s += 1
    may_answer.clear()
    begun.clear()
    trying = asyncio.create_task(line("four"))
    await begun.wait()
    assert await line("five") == "one did not answer"
    may_answer.set()
    assert await trying == "four did not answer"
    now_s += 2 * FIRST_WAIT_S - 1
    assert await line("six") == "four did not answer"
    now_s += 1
    assert await line("works") == "k"
    assert await line("seven") == "k"
    now_s += 100
    assert await line("eight") == "eight did not answer"
    assert asked == ["one", "four", "works", "eight"]


async def test_failed_sign_ins_ask_the_provider_once(tmp_path: Path) -> None:
    """Each of them says why."""
    asked: list[str] = []

    def refuse(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=503)

    async with scripted({DISCOVERY: refuse}) as issuer:
        config = Files(tmp_path).write(openid_connect=section(issuer, tmp_path))
        async with page(config_file=config) as client:
            for _ in range(5):
                response = await client.get("/openid-login", allow_redirects=False)
                assert response.status == 502
                assert "answered with code 503" in await response.text()
    assert asked == [DISCOVERY]


async def test_a_token_endpoint_that_refuses_is_one_line(tmp_path: Path) -> None:
    """The code and its error are named, the secret is not; a token login stays possible."""
    refusal = web.json_response
    answers: dict[str, Answer] = {
        DISCOVERY: metadata(),
        "/token": lambda request: refusal(
            {"error": f"bad {request.headers['Authorization'][:5]}"}, status=400
        ),
    }
    files = Files(tmp_path)
    async with scripted(answers) as issuer:
        config = files.write(openid_connect=section(issuer, tmp_path))
        tokens = files.write_tokens(TOKEN)
        async with page(config_file=config, token_file=tokens) as client:
            state = parse_qs(urlsplit(await begin(client)).query)["state"][0]
            response = await end(client, f"code=c&state={state}")
            text = await response.text()
            assert (response.status, response.content_type) == (502, "text/html")
            assert "/token answered with code 400 (bad Basic)" in text
            assert SECRET not in text
            assert "<form" in text
            assert (await client.get(FLEET, headers={"Authorization": f"Bearer {TOKEN}"})).ok


# -- tokens and cookies ----------------------------------------------------------------------------

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CONFIG = OpenIdConfig("https://idp.test", CLIENT, SECRET, Path("/secret"), CALLBACK)


def jwk(key: rsa.RSAPrivateKey, name: str = "k1") -> dict[str, Any]:
    """The public key of a key, as providers publish it."""
    algorithm = jwt.algorithms.RSAAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": name, "alg": "RS256"}


def id_token(
    key: Any = KEY, algorithm: str = "RS256", head: dict[str, Any] | None = None, **claims: Any
) -> str:
    """A token for this client; a claim that is None is left out."""
    now_s = int(time.time())
    content = {
        "iss": "https://idp.test",
        "aud": CLIENT,
        "sub": "u",
        "nonce": "n",
        "iat": now_s,
        "exp": now_s + 60,
        **claims,
    }
    content = {name: value for name, value in content.items() if value is not None}
    return jwt.encode(content, key, algorithm, headers={"kid": "k1", **(head or {})})


def unsigned() -> str:
    """A token without a signature."""
    _, payload, _ = id_token().split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none","kid":"k1"}').rstrip(b"=").decode()
    return f"{none}.{payload}."


def test_a_valid_token_gives_its_claims() -> None:
    """Also where the provider has other keys, and keys that cannot be read."""
    keys = signing_keys({"keys": [jwk(OTHER_KEY, "k0"), {"kty": "?"}, 1, jwk(KEY)]})
    assert set(keys) == {"k0", "k1"}
    assert verified_claims(id_token(), keys, CONFIG, "n")["sub"] == "u"
    several = id_token(aud=[CLIENT, "x"], azp=CLIENT)
    assert verified_claims(several, keys, CONFIG, "n")["azp"] == CLIENT


@pytest.mark.parametrize(
    ("token", "line"),
    [
        (lambda: id_token(OTHER_KEY), "is not valid"),
        (lambda: id_token(iss="https://another.test"), "is not valid"),
        (lambda: id_token(aud="another"), "is not valid"),
        (lambda: id_token(exp=1), "is not valid"),
        (lambda: id_token(exp=None), "is not valid"),
        (lambda: id_token(sub=None), "is not valid"),
        (lambda: id_token(iat=4_000_000_000), "is not valid"),
        (lambda: id_token(nonce="other"), "not for this sign-in"),
        (lambda: id_token(nonce=None), "not for this sign-in"),
        (lambda: id_token(azp="another"), "for another client"),
        (lambda: id_token(SECRET, "HS256"), "is not valid"),
        (unsigned, "is not valid"),
        (lambda: "e30.e30", "not a JSON Web Token"),
        (lambda: "", "not a JSON Web Token"),
    ],
)
def test_a_token_that_is_not_valid_is_one_line(token: Callable[[], str], line: str) -> None:
    """Signature, issuer, audience, times, nonce, and algorithms that prove nothing."""
    keys = signing_keys({"keys": [jwk(KEY)]})
    with pytest.raises(SignInError, match=line):
        verified_claims(token(), keys, CONFIG, "n")


def test_a_key_that_is_unknown_may_be_new() -> None:
    """Then the keys are read again."""
    with pytest.raises(UnknownKeyError):
        verified_claims(id_token(), signing_keys({"keys": []}), CONFIG, "n")
    contents: list[Any] = [None, [], {"keys": {}}]
    for content in contents:
        with pytest.raises(SignInError, match="not a set of keys"):
            signing_keys(content)


@pytest.mark.parametrize(
    ("claims", "claim", "expected"),
    [
        ({"groups": ["a", "ops"]}, "groups", True),
        ({"groups": "ops"}, "groups", True),
        ({"groups": ["a"]}, "groups", False),
        ({"groups": [["ops"], {"ops": 1}, None]}, "groups", False),
        ({"groups": {"ops": 1}}, "groups", False),
        ({}, "groups", False),
        ({"realm_access": {"roles": ["ops"]}}, "realm_access.roles", True),
        ({"realm_access": "ops"}, "realm_access.roles", False),
    ],
)
def test_groups_are_compared_as_they_are(
    claims: dict[str, Any], claim: str, expected: bool
) -> None:
    """A claim of another shape is no group."""
    config = OpenIdConfig(
        *("https://idp.test", CLIENT, SECRET, Path("/s"), CALLBACK),
        groups_claim=claim,
        allowed_groups=frozenset({"ops"}),
    )
    assert may_read(claims, config) is expected
    assert may_read(claims, CONFIG)


def test_cookies_end_and_belong_to_a_configuration() -> None:
    """Changed by one character, of another file, too late, or of the other kind: none counts."""
    sign_in = SignIn("s", "n", "v", "view=x")
    cookie, session = openid.begun(CONFIG, sign_in, 1000), openid.new_session(CONFIG, 1000)
    assert openid.sign_in_of(CONFIG, cookie, 1000) == sign_in
    assert openid.accepts_session(CONFIG, session, 1000)
    other = OpenIdConfig("https://idp.test", CLIENT, "other", Path("/s"), CALLBACK)
    fewer = OpenIdConfig(
        *("https://idp.test", CLIENT, SECRET, Path("/s"), CALLBACK),
        allowed_groups=frozenset({"ops"}),
    )
    for config in (other, fewer):
        assert openid.sign_in_of(config, cookie, 1000) is None
        assert not openid.accepts_session(config, session, 1000)
    for late_s in (-1, FLOW_S + 1):
        assert openid.sign_in_of(CONFIG, cookie, 1000 + late_s) is None
    for late_s in (-1, 8 * 3600 + 1):
        assert not openid.accepts_session(CONFIG, session, 1000 + late_s)
    for wrong in (
        "",
        "x",
        f"{session}0",
        cookie,
        "9" * 13 + ".x",
        "²." + session.partition(".")[2],
    ):
        assert not openid.accepts_session(CONFIG, wrong, 1000)
    for wrong in ("", "x.y", session, cookie[:-1], "é" + cookie):
        assert openid.sign_in_of(CONFIG, wrong, 1000) is None
    assert SECRET not in repr(CONFIG) + cookie + session
    assert COOKIE not in SimpleCookie(session)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"issuer": None}, "openid_connect.issuer is missing"),
        ({"issuer": "http://idp.test"}, "issuer must be a URL of https"),
        ({"redirect_uri": "https://watch.test/"}, "and openid-callback"),
        ({"client_secret_file": "absent"}, "client_secret_file: No such file"),
        ({"client_secret": SECRET}, "the key openid_connect.client_secret is unknown"),
        ({"scopes": "profile"}, "scopes must contain openid"),
        ({"allowed_groups": "ops"}, "allowed_groups must be a list"),
        ({"session_hours": 25}, "session_hours from 1 to 24"),
        ({"client_id": ["a"]}, "client_id must be one line of text"),
    ],
)
def test_a_section_that_cannot_be_used_is_named(
    tmp_path: Path, change: dict[str, Any], line: str
) -> None:
    """With its key, and never with the secret."""
    content = section("https://idp.test", tmp_path) | change
    with pytest.raises(WebConfigError, match=line) as raised:
        parse_web_config({"openid_connect": content}, tmp_path / "web.yaml")
    assert SECRET not in str(raised.value)
