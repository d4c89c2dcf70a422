"""Whatever a request has in its headers and its address: it is admitted or refused."""

import asyncio
import base64
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.common.http.access import AccessControl
from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.common.http.clients import ClientAddresses, client_key
from featurewatch.common.http.problems import ProblemError
from featurewatch.common.http.rate_limits import RateLimits
from tests.common.http.ports import PASSWORD, TOKEN, Files, hashed

HEADER = st.text(st.characters(codec="utf-8"), max_size=60)
BASIC = st.binary(max_size=60).map(lambda data: "Basic " + base64.b64encode(data).decode())
SCHEMES = st.sampled_from(["Basic ", "Bearer ", "basic", "", "BEARER  "])
AUTHORIZATION = st.one_of(HEADER, BASIC, st.builds("".join, st.tuples(SCHEMES, HEADER)))
QUERY = st.text("abcdefghijklmnopqrstuvwxyz=&%;+0123456789", max_size=30)


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> AccessControl:
    """A port with users and tokens, and no limit of requests."""
    files = Files(Path(tmp_path_factory.mktemp("access")))
    config = files.write(basic_auth_users={"ann": hashed()})
    made = AccessSettings(config, files.write_tokens(TOKEN), False, ("127.0.0.1",), 1e9)
    access = AccessControl(made)
    # Guesses are slowed down otherwise, and would not be looked at.
    access._failed_logins = RateLimits(1e9, 1e9, time.monotonic)
    return access


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """One event loop for all examples."""
    with asyncio.Runner() as made:
        yield made


@pytest.mark.fuzz
@settings(deadline=None)
@given(authorization=AUTHORIZATION, cookie=HEADER, forwarded=HEADER, query=QUERY)
def test_nobody_guesses_a_login(
    access: AccessControl,
    runner: asyncio.Runner,
    authorization: str,
    cookie: str,
    forwarded: str,
    query: str,
) -> None:
    """Every such request is a problem document, and no other error."""
    headers = {
        "Authorization": authorization,
        "Cookie": f"featurewatch_session={cookie}",
        "X-Forwarded-For": forwarded,
    }
    for given_headers in (headers, {"Cookie": headers["Cookie"]}):
        request = make_mocked_request("GET", f"/metrics?{query}", headers=given_headers)
        with pytest.raises(ProblemError):
            runner.run(access.admit(request))


@pytest.mark.fuzz
@given(st.text(max_size=60), st.lists(st.text(max_size=60), max_size=3))
def test_any_address_is_a_key(peer: str, forwarded: list[str]) -> None:
    """Of a length that is bounded by that of the address of the connection, or of an address."""
    for addresses in (ClientAddresses(), ClientAddresses(["0.0.0.0/0", "::/0"])):
        found = addresses.client_of(peer, forwarded)
        assert len(found) <= max(len(client_key(peer)), 60)


async def test_the_right_password_is_admitted(access: AccessControl) -> None:
    """So that the tests above can fail."""
    encoded = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
    for authorization in (f"Basic {encoded}", f"Bearer {TOKEN}"):
        request = make_mocked_request("GET", "/metrics", headers={"Authorization": authorization})
        await access.admit(request)
