"""The sources' metrics, and the health views over HTTP."""

import socket
import threading
from dataclasses import fields, replace

import aiohttp
import pytest

from featurewatch.common.http.errors import PortTakenError
from featurewatch.streams.events import SourceState
from featurewatch.streams.health import HealthServer, source_readiness, source_views
from featurewatch.streams.metrics import METRICS, SourceReport, exposition
from tests.paths import PACKAGE

FOLLOWING = SourceReport(
    cluster="c1",
    source="kraft",
    state=SourceState.FOLLOWING,
    offset=41,
    high_watermark=43,
    lag=1,
    records_read=30,
    records_skipped=12,
    published=9,
    dead_letters=2,
    restarts=3,
)
STALLED = SourceReport(
    cluster="c2",
    source="api-versions",
    state=SourceState.STALLED,
    detail="nobody listens at h:1",
)


class Source:
    """A source with the given report."""

    def __init__(self, report):
        self.now = report

    def report(self):
        """As it was told."""
        return self.now


def test_every_metric_is_exposed_for_every_source():
    """Each definition gives one series a source, with its value."""
    text = exposition([FOLLOWING, STALLED]).decode()
    for metric in METRICS:
        assert f"# TYPE {metric.name} {metric.kind}" in text
        value = float(metric.value(FOLLOWING))
        assert f'{metric.name}{{kafka_cluster="c1",source="kraft"}} {value}' in text
    assert 'featurewatch_source_lag_records{kafka_cluster="c1",source="kraft"} 1.0' in text
    assert 'featurewatch_source_offset{kafka_cluster="c2",source="api-versions"} -1.0' in text
    stalled = (
        'featurewatch_source_state{kafka_cluster="c2",source="api-versions",state="stalled"} 1.0'
    )
    assert stalled in text


def test_a_cluster_has_one_name():
    """The name of the configuration, or else the id, once for all its sources."""
    named = [replace(FOLLOWING, source=source, name="orders") for source in ("kraft", "zookeeper")]
    text = exposition([*named, STALLED]).decode()
    lines = [line for line in text.splitlines() if line.startswith("featurewatch_cluster_info")]
    assert lines == [
        'featurewatch_cluster_info{kafka_cluster="c1",name="orders"} 1.0',
        'featurewatch_cluster_info{kafka_cluster="c2",name="c2"} 1.0',
    ]


def test_each_scrape_reads_the_sources():
    """Nothing is kept: what a source says now is what is shown, new sources included."""
    sources = [Source(STALLED)]
    scrape = source_views(lambda: sources).metrics
    assert b'following{kafka_cluster="c2",source="api-versions"} 0.0' in scrape()()
    sources[0].now = FOLLOWING
    assert b'following{kafka_cluster="c1",source="kraft"} 1.0' in scrape()()


async def test_the_loop_reads_reports_and_another_thread_renders_them(monkeypatch):
    """A scrape of many sources does not hold up what follows clusters, and shows one moment."""
    threads = []

    def rendered(reports):
        threads.append(threading.get_ident())
        return exposition(reports)

    monkeypatch.setattr("featurewatch.streams.metrics.exposition", rendered)
    source = Source(STALLED)
    views = source_views(lambda: [source])
    async with (
        HealthServer(views, port=0) as server,
        aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as http,
        http.get("/metrics") as answer,
    ):
        assert answer.status == 200
    assert threads
    assert threading.get_ident() not in threads
    render = views.metrics()
    source.now = FOLLOWING
    assert b'kafka_cluster="c2"' in render()


def test_sources_set_every_count_of_their_reports():
    """A field that no source sets would be exposed as its default, which looks like a value."""
    code = "".join(path.read_text() for path in (PACKAGE / "streams").rglob("*.py"))
    code += "".join(path.read_text() for path in (PACKAGE / "cli" / "runtime").rglob("*.py"))
    unset = [item.name for item in fields(SourceReport) if f"{item.name}=" not in code]
    assert unset == [], "set them in _report of streams/source_shell.py"


def test_metrics_are_named_after_their_kind():
    """Counters end in _total, gauges do not, and every name and help is there once."""
    assert all(m.name.endswith("_total") == (m.kind == "counter") for m in METRICS)
    assert len({m.name for m in METRICS}) == len({m.help for m in METRICS}) == len(METRICS)


@pytest.mark.parametrize(
    ("reports", "ready"),
    [([], False), ([FOLLOWING], True), ([FOLLOWING, STALLED], False), ([STALLED], False)],
)
def test_ready_means_that_every_source_follows(reports, ready):
    """No source at all is not ready either: unknown is not healthy."""
    assert source_readiness(reports).ready is ready


@pytest.mark.parametrize(
    "state", [SourceState.CATCHING_UP, SourceState.STALLED, SourceState.SILENT]
)
def test_only_following_is_ready(state):
    """A source that catches up has not seen the present yet."""
    report = SourceReport("c", "kraft", state)
    assert source_readiness([report]).waiting[0]["state"] == state


async def test_the_views_over_http():
    """200 or 503, and JSON that says which source is not ready and why."""
    source = Source(STALLED)
    async with (
        HealthServer(source_views(lambda: [source]), port=0) as server,
        aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as http,
    ):
        async with http.get("/healthz") as answer:
            assert (answer.status, await answer.json()) == (200, {"status": "ok"})
        async with http.get("/readyz") as answer:
            assert answer.status == 503
            assert await answer.json() == {
                "ready": False,
                "waiting": [
                    {
                        "cluster": "c2",
                        "source": "api-versions",
                        "state": "stalled",
                        "reason": "nobody listens at h:1",
                    }
                ],
            }
        source.now = FOLLOWING
        async with http.get("/readyz") as answer:
            assert (answer.status, (await answer.json())["ready"]) == (200, True)
        async with http.get("/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=")
            assert "featurewatch_source_following" in await answer.text()


async def test_without_a_source_the_reason_is_given():
    """An empty list of sources says what to do."""
    async with (
        HealthServer(source_views(list), port=0) as server,
        aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as http,
        http.get("/readyz") as answer,
    ):
        assert answer.status == 503
        assert "configure at least one cluster" in (await answer.json())["reason"]


async def test_a_taken_port_is_one_clear_line():
    """The error names the address and says what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"127.0.0.1:{port} .*choose another port"):
            await HealthServer(source_views(list), port=port).start()
