"""The API over HTTP: what it answers, and what it refuses."""

import asyncio
import json
import socket
from dataclasses import replace
from typing import Any

import jsonschema_rs
import pytest
from aiohttp import ClientResponse
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from featurewatch.streams.outputs import Severity
from featurewatch.web.event_stream import EventCursor, EventEncoder
from featurewatch.web.model import FleetModel
from featurewatch.web.openapi import ROOT, document
from featurewatch.web.parameters import page, sorted_by
from featurewatch.web.problems import CONTENT_TYPE, ProblemError
from featurewatch.web.request_rules import HEADERS
from tests.web.rolls import ROLLED, publish, rolling
from tests.web.samples import (
    NOW_MS,
    alert_of,
    change_of,
    nodes_on,
    operation_of,
    publish_history,
    read_model,
    state_of,
)
from tests.web.sites import site

MARKUP = "<img src=x onerror=alert(1)>"


def many(count: int) -> FleetModel:
    """A model of this many clusters, one in ten with a critical alert."""
    names = [f"cluster-{number:04d}" for number in range(count)]
    return read_model([*map(state_of, names), *map(alert_of, names[::10])])


async def events_of(response: ClientResponse, count: int) -> list[tuple[str, str, Any]]:
    """The next events of a stream: kind, id and data."""
    found: list[tuple[str, str, Any]] = []
    fields: dict[str, str] = {}
    async with asyncio.timeout(30):
        while len(found) < count:
            line = (await response.content.readline()).decode().rstrip("\n")
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "event" in fields:
                found.append((fields["event"], fields["id"], json.loads(fields["data"])))
                fields = {}
    return found


async def test_every_list_is_paged_by_cursors_to_its_end() -> None:
    """Page by page each cluster comes once, in both orders, and the total is that of all."""
    async with site(many(25)) as served:
        for order in ("id", "urgency"):
            seen: list[str] = []
            query = f"?limit=10&order={order}"
            cursor = ""
            for _ in range(3):
                page = await served.body(f"/clusters{query}{cursor}")
                assert page["total"] == 25
                seen += [row["cluster"] for row in page["items"]]
                cursor = f"&cursor={page['next_cursor']}"
            assert page["next_cursor"] is None
            assert len(seen) == len(set(seen)) == 25
            if order == "urgency":
                assert seen[:3] == ["cluster-0000", "cluster-0010", "cluster-0020"]
            else:
                assert seen == sorted(seen)


async def test_the_link_of_a_page_is_relative() -> None:
    """It leads to the next page under whatever path a proxy serves the API."""
    async with site(many(3)) as served:
        response = await served.get("/clusters?limit=1&health=good")
        target = response.headers["Link"].partition(">")[0].removeprefix("<")
        assert target.startswith("?")
        rest = await served.body(f"/clusters{target}")
    assert [row["cluster"] for row in rest["items"]] == ["cluster-0002"]
    assert (rest["total"], rest["next_cursor"]) == (2, None)


async def test_filters_and_totals() -> None:
    """A filter selects single rows; the totals of the fleet are those of all clusters."""
    async with site(many(20)) as served:
        assert (await served.body("/clusters?health=critical"))["total"] == 2
        assert (await served.body("/clusters?q=CLUSTER-001&state=ready"))["total"] == 10
        fleet = await served.body("/fleet")
        assert fleet["health"] == {"critical": 2, "unknown": 0, "warning": 0, "good": 18}
        assert (await served.body("/alerts?state=firing"))["total"] == 2
        assert (await served.body("/alerts?cluster=cluster-0000"))["total"] == 1
        assert (await served.body("/sources"))["items"][0]["state"] == "following"


async def test_alerts_are_sorted_once_for_all_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand take a while, and the event loop serves everybody."""
    counted: list[int] = []

    def count(*arguments: Any) -> Any:
        counted.append(1)
        return sorted_by(*arguments)

    monkeypatch.setattr("featurewatch.web.api.sorted_by", count)
    async with site(many(20)) as served:
        for path in ("/alerts", "/alerts?state=firing", "/alerts?limit=1"):
            assert (await served.body(path))["total"] == 2
        assert len(counted) == 1
        response = await served.get("/alerts")
        tag = {"If-None-Match": response.headers["ETag"]}
        assert (await served.get("/alerts", **tag)).status == 304
        served.apply(alert_of("cluster-0001"))
        assert (await served.get("/alerts", **tag)).status == 200
        assert (await served.body("/alerts"))["total"] == 3
        assert len(counted) == 2


async def test_a_cluster_is_found_by_its_name() -> None:
    """The name is in its row and in its alerts, and another name is a change."""
    model = read_model([state_of(name="Orders"), alert_of(name="Orders"), state_of("another")])
    async with site(model) as served:
        (row,) = (await served.body("/clusters?q=order"))["items"]
        assert (row["cluster"], row["name"]) == ("a-cluster", "Orders")
        assert (await served.body("/alerts"))["items"][0]["name"] == "Orders"
        assert (await served.body("/clusters/another"))["name"] == ""
        etag = (await served.get("/clusters")).headers["ETag"]
        served.apply(state_of(name="payments"))
        assert (await served.get("/clusters", **{"If-None-Match": etag})).status == 200
        assert (await served.body("/clusters?q=order"))["total"] == 0


async def test_what_has_not_changed_is_304() -> None:
    """Until the content changes; a time is no content. Each query has its own tag."""
    async with site() as served:
        for path in ("/clusters", "/clusters/a-cluster"):
            etag = (await served.get(path)).headers["ETag"]
            assert etag.startswith('W/"')
            again = await served.get(path, **{"If-None-Match": f'"other", {etag}'})
            assert (again.status, await again.read()) == (304, b"")
            served.apply(state_of(at_ms=NOW_MS + 20_000))
            assert (await served.get(path, **{"If-None-Match": etag})).status == 304
            served.apply(alert_of(severity=Severity.WARNING, node=len(path)))
            assert (await served.get(path, **{"If-None-Match": etag})).status == 200
        etag = (await served.get("/clusters")).headers["ETag"]
        assert (await served.get("/clusters?q=b", **{"If-None-Match": etag})).status == 200


async def test_before_the_topics_are_read_nothing_is_claimed() -> None:
    """503 with Retry-After, not an empty list; the totals say that they are not complete."""
    async with site(FleetModel("boot")) as served:
        for path in ("/clusters", "/clusters/a", "/alerts", "/sources"):
            response = await served.get(path)
            assert response.status == 503
            assert int(response.headers["Retry-After"]) > 0
        assert (await served.body("/fleet"))["complete"] is False
        assert (await served.client.get("/readyz")).status == 503
        assert (await served.client.get("/healthz")).status == 200


@pytest.mark.parametrize(
    ("path", "status", "parameter"),
    [
        ("/clusters/nobody", 404, None),
        ("/nothing", 404, None),
        ("/schemas/nothing", 404, None),
        ("/schemas/..%2f..%2fsettings", 404, None),
        ("/clusters/..%2f..%2fetc%2fpasswd", 404, None),
        ("/clusters?limit=0", 400, "limit"),
        ("/clusters?limit=1001", 400, "limit"),
        ("/clusters?limit=1e3", 400, "limit"),
        ("/clusters?limit=%C2%B2", 400, "limit"),
        ("/clusters?health=fine", 400, "health"),
        ("/clusters?token=secret", 400, "token"),
        ("/clusters?q=" + "x" * 400, 400, "q"),
        ("/clusters?cursor=nonsense", 400, "cursor"),
        ("/clusters?cursor=%00", 400, "cursor"),
        ("/clusters/a-cluster/readiness?target=9.9", 400, "target"),
        ("/clusters/a-cluster/readiness", 503, None),
        ("/events?from=1", 400, "from"),
    ],
)
async def test_a_refusal_is_a_problem_document(
    path: str, status: int, parameter: str | None
) -> None:
    """RFC 9457, with the parameter that is wrong."""
    async with site() as served:
        response = await served.get(path)
        assert (response.status, response.content_type) == (status, CONTENT_TYPE)
        problem = await response.json()
    assert problem["status"] == status
    assert problem["detail"]
    named = [error["parameter"] for error in problem.get("errors", [])]
    assert named == ([] if parameter is None else [parameter])


async def test_a_cursor_of_another_query_is_refused() -> None:
    """Of another resource, another filter or another order."""
    async with site(many(5)) as served:
        cursor = (await served.body("/clusters?limit=1"))["next_cursor"]
        for path in ("/alerts?", "/clusters?q=c&", "/clusters?order=urgency&", "/sources?"):
            assert (await served.get(f"{path}cursor={cursor}")).status == 400
        assert (await served.get(f"/clusters?limit=3&cursor={cursor}")).status == 200


@given(st.text(max_size=60))
def test_any_cursor_is_refused_and_any_position_is_a_reset(text: str) -> None:
    """Whatever a client sends there."""
    with pytest.raises(ProblemError):
        page([1, 2], lambda item: (item,), {"cursor": text}, "clusters")
    model = read_model([state_of()])
    encoder = EventEncoder(model.index, lambda _: {})
    events = EventCursor(model.index, text).next_events(encoder)
    assert events == b"" if not text else events.startswith(b"event: reset\n")


async def test_only_reading_is_possible() -> None:
    """405 with Allow for all other methods, on every path."""
    async with site() as served:
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
            for path in ("/", f"{ROOT}/clusters", "/healthz"):
                response = await served.client.request(method, path)
                assert response.status == 405
                assert response.headers["Allow"] == "GET, HEAD"
        head = await served.client.head(f"{ROOT}/clusters")
        assert (head.status, await head.read()) == (200, b"")


async def test_what_is_no_http_is_answered_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever can connect could fill the log with it."""
    async with site() as served:
        url = URL(served.server.url)
        for line in (
            b"BREW / HTTP/1.1",
            b"GET",
            b"\x00\xff\x16\x03",
            b"GET / HTTP/1.1\r\nx\x00y: z",
        ):
            reader, writer = await asyncio.open_connection(url.host, url.port)
            writer.write(line + b"\r\n\r\n")
            async with asyncio.timeout(30):
                assert b" 400 " in await reader.readline()
            writer.close()
        assert (await served.get("/fleet")).status == 200
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9780", 200),
        ("localhost", 200),
        ("[::1]:9780", 200),
        ("page.example.org", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost@evil.example", 421),
        ("[", 421),
        ("", 421),
    ],
)
async def test_a_forged_host_is_refused(host: str, status: int) -> None:
    """On loopback the page has its own names only, and that of its external address."""
    async with site(external_url="https://page.example.org/featurewatch/") as served:
        for path in ("/", f"{ROOT}/clusters"):
            assert (await served.client.get(path, headers={"Host": host})).status == status
        assert (await served.client.get("/healthz", headers={"Host": host})).status == 200


async def test_every_response_has_the_headers() -> None:
    """The page, its files, the API, refusals and streams."""
    async with site() as served:
        for path in ("/", f"{ROOT}/fleet", f"{ROOT}/nothing", f"{ROOT}/events", "/static/x/y"):
            response = await served.client.get(path)
            assert HEADERS.items() <= dict(response.headers).items()
            response.close()
        assert "'unsafe" not in HEADERS["Content-Security-Policy"]


async def test_a_change_arrives_as_an_event() -> None:
    """The cluster's row with its new content, the alert, and the totals."""
    async with site() as served:
        stream = await served.get("/events")
        (first,) = await events_of(stream, 1)
        assert first[0] == "snapshot"
        served.apply(alert_of(), change_of())
        found = {kind: data for kind, _, data in await events_of(stream, 4)}
        assert found["state"]["health"] == "critical"
        assert found["alert"]["summary"] == "Broker 1 must be upgraded."
        assert found["change"]["after"] == 25
        assert found["fleet"]["health"]["critical"] == 1
        stream.close()


async def test_a_stream_continues_after_the_last_event() -> None:
    """Changes made while the client was disconnected come then, newest content only."""
    async with site() as served:
        stream = await served.get("/events")
        served.apply(alert_of(node=1))
        last = (await events_of(stream, 2))[-1][1]
        stream.close()
        served.apply(*(state_of(revision=revision) for revision in range(2, 30)))
        stream = await served.get("/events", **{"Last-Event-ID": last})
        kinds = [(kind, data) for kind, _, data in await events_of(stream, 2)]
        stream.close()
    states = [data["revision"] for kind, data in kinds if kind == "state"]
    assert states in ([29], [1, 29], [])
    assert "reset" not in [kind for kind, _ in kinds]


@pytest.mark.parametrize("position", ["other.1", "boot.999999", "boot.-1", "nonsense", "boot.1.1"])
async def test_a_foreign_position_is_a_reset(position: str) -> None:
    """Of another process, of the future, or no position at all."""
    async with site() as served:
        stream = await served.get("/events", **{"Last-Event-ID": position})
        ((kind, event_id, _),) = await events_of(stream, 1)
        stream.close()
    assert kind == "reset"
    assert event_id.startswith("boot.")


async def test_the_number_of_streams_is_bounded() -> None:
    """One more is refused, and there is room again when one ends."""
    async with site(max_streams=2) as served:
        streams = [await served.get("/events") for _ in range(2)]
        refused = await served.get("/events")
        assert refused.status == 503
        assert int(refused.headers["Retry-After"]) > 0
        streams.pop().close()
        async with asyncio.timeout(30):
            while (response := await served.get("/events")).status == 503:
                served.apply(alert_of(node=served.server.model.index.sequence))
                await asyncio.sleep(0.02)
        response.close()
        streams.pop().close()


async def test_a_client_that_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is written to it is bounded; others get every change meanwhile."""
    monkeypatch.setattr("featurewatch.web.live.WRITE_S", 0.5)
    states = [state_of(f"c-{number:03d}") for number in range(300)]
    async with site(read_model(states)) as served:
        with socket.socket() as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            stalled.connect(("127.0.0.1", served.server.port))
            stalled.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            async with asyncio.timeout(60):
                while served.server.streams.count == 0:
                    await asyncio.sleep(0.02)
                revision = 1
                while served.server.streams.count > 0:
                    revision += 1
                    served.apply(*(replace(state, revision=revision) for state in states))
                    await asyncio.sleep(0.06)
        stream = await served.get("/events")
        served.apply(alert_of("c-000"))
        kinds = [kind for kind, _, _ in await events_of(stream, 2)]
        stream.close()
    assert "alert" in kinds


async def test_markup_in_names_is_data() -> None:
    """Names and texts of clusters come as JSON strings, under a type that no browser renders."""
    summary = f"{MARKUP} must be upgraded."
    model = read_model([state_of(MARKUP), alert_of(MARKUP, summary=summary)])
    async with site(model) as served:
        response = await served.get("/clusters")
        assert response.content_type == "application/json"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert (await response.json())["items"][0]["cluster"] == MARKUP
        name = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"
        assert (await served.body(f"/clusters/{name}"))["firing"][0]["summary"] == summary


async def test_classes_of_nodes_have_their_release() -> None:
    """And those on the newest are marked, so that a page can say who is left."""
    model = read_model([state_of("a", nodes_on("3.9", 1), nodes_on("4.0", 2, 3))])
    async with site(model) as served:
        cluster = await served.body("/clusters/a")
    assert [
        (item["software"], item["nodes"], item["is_newest"]) for item in cluster["classes"]
    ] == [
        ("3.9", [1], False),
        ("4.0", [2, 3], True),
    ]
    assert (cluster["nodes_on_newest"], cluster["nodes"]) == (2, 3)


async def test_the_description_is_what_is_served() -> None:
    """Each path of it exists, and each response has the schema that it names."""
    model = read_model([alert_of(ROLLED), change_of(ROLLED)])
    publish_history(model, state_of(ROLLED, revision=1), operation_of(ROLLED))
    parameters: dict[str, dict[str, str | int]] = {
        "differences": {"from": 1, "to": 1},
        "rehearsal": {"step": "stop:broker-2"},
    }
    described = document()
    async with site(model) as served:
        publish(rolling("4.0", "3.9", "3.9"), model, served.server.rows, NOW_MS)
        served.server.rows.end_reading()
        for path, operations in described["paths"].items():
            if path.endswith("/events"):
                continue
            url = path.format(cluster=ROLLED, topic="state", revision=1)
            response = await served.client.get(url, params=parameters.get(path.split("/")[-1]))
            assert response.status == 200, (path, await response.text())
            content = operations["get"]["responses"]["200"]["content"][response.content_type]
            schema = {**content["schema"], "components": described["components"]}
            jsonschema_rs.Draft202012Validator(schema).validate(await response.json())
        served_paths = {
            resource.canonical
            for resource in served.server.make_app().router.resources()
            if resource.canonical.startswith(ROOT)
        }
    assert served_paths == described["paths"].keys()
